/* Gradients as products of narrow matrices: what real/device/low_rank.c does on a host. */
#include "real/device/cuda/cuda.h"

/* A matrix, and its narrow ones. */
struct matrix {
	struct psd_low_rank_shape shape;
	uint32_t rank;
	uint64_t elements;
	unsigned number; /* of its tensor */
	float *gradient, *residual, *left, *right;
};

static struct psd_cuda_values floats(float *values)
{
	return (struct psd_cuda_values){values, PSD_CUDA_FLOAT};
}

/* ---- project ---- */

static enum psd_status project(struct psd_device *device, const struct matrix *of, struct psd_error *err)
{
	const struct psd_cuda_right_start start = {of->right, of->shape.columns, of->number};
	const struct psd_cuda_difference sum = {of->residual, of->residual, of->gradient, -1.0f};
	const struct psd_cuda_product left = {.left = floats(of->residual),
					      .right = floats(of->right),
					      .result = floats(of->left),
					      .rows = of->shape.rows,
					      .columns = of->rank,
					      .depth = of->shape.columns,
					      .is_right_transposed = true,
					      .is_exact = true,
					      .alpha = 1.0f};
	enum psd_status status = psd_cuda_run_right_start(device, &start, of->rank, err);

	if (!status)
		status = psd_cuda_run_difference(device, &sum, of->elements, err);
	return status ? status : psd_cuda_multiply_matrices(device, &left, false, err);
}

/* ---- fit ---- */

static enum psd_status make_orthonormal(struct psd_device *device, const struct matrix *of, struct psd_error *err)
{
	const uint32_t rank = of->rank;
	const uint64_t n_pairs = (uint64_t)rank * (rank + 1) / 2;
	const struct psd_cuda_left_products products = {of->left, of->shape.rows, rank, device->column_products};
	const struct psd_cuda_left_fold fold = {device->column_products, rank, device->column_factor};
	const struct psd_cuda_left_factor factor = {device->column_factor, rank};
	const struct psd_cuda_left_inverse inverse = {device->column_factor, device->column_inverse, rank};
	const struct psd_cuda_left_basis basis = {of->left, device->column_inverse, rank};
	enum psd_status status = psd_cuda_run_left_products(device, &products, n_pairs * PSD_CUDA_PRODUCT_LANES, err);

	if (!status)
		status = psd_cuda_run_left_fold(device, &fold, n_pairs, err);
	if (!status)
		status = psd_cuda_run_left_factor(device, &factor, 1, err);
	if (!status)
		status = psd_cuda_run_left_inverse(device, &inverse, rank, err);
	return status ? status : psd_cuda_run_left_basis(device, &basis, of->shape.rows, err);
}

/* result = ratio times left times right, or is added. */
static enum psd_status multiply(struct psd_device *device, const struct matrix *of, float *result, float ratio,
				bool adds, struct psd_error *err)
{
	const struct psd_cuda_product product = {.left = floats(of->left),
						 .right = floats(of->right),
						 .result = floats(result),
						 .rows = of->shape.rows,
						 .columns = of->shape.columns,
						 .depth = of->rank,
						 .adds = adds,
						 .is_exact = true,
						 .alpha = ratio};

	return psd_cuda_multiply_matrices(device, &product, false, err);
}

static enum psd_status fit(struct psd_device *device, const struct matrix *of, struct psd_error *err)
{
	const struct psd_cuda_product right = {.left = floats(of->left),
					       .right = floats(of->residual),
					       .result = floats(of->right),
					       .rows = of->rank,
					       .columns = of->shape.columns,
					       .depth = of->shape.rows,
					       .is_left_transposed = true,
					       .is_exact = true,
					       .alpha = 1.0f};
	enum psd_status status = make_orthonormal(device, of, err);

	if (!status)
		status = psd_cuda_multiply_matrices(device, &right, false, err);
	return status ? status : multiply(device, of, of->residual, -1.0f, true, err);
}

/* ---- expand ---- */

static enum psd_status expand(struct psd_device *device, const struct matrix *of, struct psd_error *err)
{
	return multiply(device, of, of->gradient, 1.0f, false, err);
}

/* ---- all tensors ---- */

typedef enum psd_status matrix_fn(struct psd_device *device, const struct matrix *of, struct psd_error *err);
typedef enum psd_status other_fn(struct psd_device *device, float *gradient, float *left, uint64_t elements,
				 struct psd_error *err);

static enum psd_status leave(struct psd_device *device, float *gradient, float *left, uint64_t elements,
			     struct psd_error *err)
{
	return psd_cuda_copy(device, PSD_STREAM_COMPUTE, left, gradient, elements * sizeof(*left), err);
}

static enum psd_status arrive(struct psd_device *device, float *gradient, float *left, uint64_t elements,
			      struct psd_error *err)
{
	return psd_cuda_copy(device, PSD_STREAM_COMPUTE, gradient, left, elements * sizeof(*left), err);
}

static enum psd_status stay(struct psd_device *device, float *gradient, float *left, uint64_t elements,
			    struct psd_error *err)
{
	(void)device, (void)gradient, (void)left, (void)elements, (void)err;
	return PSD_OK;
}

static enum psd_status begin_all(struct psd_device *device, const struct psd_low_rank_work *work,
				 matrix_fn *begin_matrix, other_fn *begin_other, struct psd_error *err)
{
	struct matrix matrix = {
		.rank = work->rank, .residual = work->residual, .left = work->left, .right = work->right};
	enum psd_status status = psd_cuda_enter(device, err);

	for (unsigned t = 0; t < work->n_tensors && !status; t++) {
		const struct psd_low_rank_tensor *tensor = &work->tensors[t];
		const bool is_matrix = tensor->shape.rows > 0;

		matrix.shape = tensor->shape;
		matrix.elements = tensor->elements;
		matrix.number = tensor->number;
		matrix.gradient = tensor->gradient;
		status = is_matrix ? begin_matrix(device, &matrix, err)
				   : begin_other(device, tensor->gradient, matrix.left, tensor->elements, err);
		matrix.residual += tensor->elements;
		matrix.left += is_matrix ? (uint64_t)tensor->shape.rows * work->rank : tensor->elements;
		matrix.right += (uint64_t)tensor->shape.columns * work->rank;
	}
	return status;
}

enum psd_status psd_cuda_project(struct psd_device *device, const struct psd_low_rank_work *work, struct psd_error *err)
{
	return begin_all(device, work, project, leave, err);
}

enum psd_status psd_cuda_fit(struct psd_device *device, const struct psd_low_rank_work *work, struct psd_error *err)
{
	return begin_all(device, work, fit, stay, err);
}

enum psd_status psd_cuda_expand(struct psd_device *device, const struct psd_low_rank_work *work, struct psd_error *err)
{
	return begin_all(device, work, expand, arrive, err);
}
