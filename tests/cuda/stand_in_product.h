/* Common code of cuBLAS and cuBLASLt in the stand-in: matrices as they are stored, and their product. Sums are in
 * double, rounded once. Refuses to know handles and descriptors. */
#ifndef PSD_TESTS_CUDA_STAND_IN_PRODUCT_H
#define PSD_TESTS_CUDA_STAND_IN_PRODUCT_H

#include <cublas_v2.h>
#include <stdbool.h>
#include <stddef.h>

#include "tests/cuda/stand_in_numbers.h"

struct psd_stand_in_matrix {
	void *values;
	enum psd_stand_in_number number;
	size_t rows, columns, stride; /* as stored: column by column */
	bool is_transposed;
};

/* C (m, n) = alpha op(A) (m, k) op(B) (k, n) + beta C, and what is done with a vector of C's type. */
struct psd_stand_in_product {
	size_t m, n, k;
	struct psd_stand_in_matrix a, b, c;
	double alpha, beta;
	bool is_tf32;
	bool adds_vector;  /* (m), to each column */
	bool rectifies;	   /* then */
	bool rounds_parts; /* sums of half the depth are of C's type */
	bool sums_b;	   /* the vector (n) becomes op(B)'s column sums */
	void *vector;
	void *workspace;
	size_t workspace_bytes;
};

/* A batch of products of equal shape; the next one's matrices are a_next, b_next and c_next elements further. */
struct psd_stand_in_products {
	struct psd_stand_in_product first;
	long long a_next, b_next, c_next;
	size_t count;
};

/* false: not one of those that psd-run uses. */
bool psd_stand_in_blas_number(cudaDataType type, enum psd_stand_in_number *number);
/* Its rows and columns are those of op(matrix). */
struct psd_stand_in_matrix psd_stand_in_matrix_of(const void *values, enum psd_stand_in_number number,
						  cublasOperation_t operation, int rows, int columns, int stride);
bool psd_stand_in_is_stored(const struct psd_stand_in_matrix *matrix);
/* Which types of A, B and C go together where sums are float: both inputs alike, C float or like them. */
bool psd_stand_in_go_together(const struct psd_stand_in_product *product);
/* Operations of a stream; product: struct psd_stand_in_product, products: struct psd_stand_in_products. */
void psd_stand_in_run_product(void *product);
void psd_stand_in_run_products(void *products);
/* Whether no two results have an element in common. */
bool psd_stand_in_lie_apart(const struct psd_stand_in_products *products);

cublasStatus_t psd_stand_in_blas_status(cudaError_t error);

#endif
