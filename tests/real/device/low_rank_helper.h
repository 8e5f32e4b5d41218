/* A worker's tensors and their low-rank factors, each in memory with a guard behind it. */
#ifndef PSD_TESTS_REAL_LOW_RANK_HELPER_H
#define PSD_TESTS_REAL_LOW_RANK_HELPER_H

#include <criterion/criterion.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "real/device/low_rank.h"

enum { MOST_TENSORS = 8, GUARD = 64, GUARD_BYTE = 0x5a };

/* A float's rounding, of its value. A sum of n products in any order is off by n of those, of the sum of all sizes. */
#define ROUNDING (FLT_EPSILON / 2.0)
/* Error of unit vectors: double precision adds this to a float's rounding if columns are far from dependent. */
#define DOUBLE_NOISE 1e-9

#define PLAIN(n)                                                                                                       \
	{                                                                                                              \
		.n_dims = 1, .dims = {n}, .elements = n                                                                \
	}
#define MATRIX(rows, inputs)                                                                                           \
	{                                                                                                              \
		.n_dims = 2, .dims = {rows, inputs}, .elements = (uint64_t)(rows) * (inputs)                           \
	}
#define KERNEL(n, channels)                                                                                            \
	{                                                                                                              \
		.n_dims = 4, .dims = {n, channels, 3, 3}, .elements = (uint64_t)(n) * (channels)*9                     \
	}

struct low_rank_layout {
	unsigned rank, n_tensors, n_matrices;
	struct psd_tensor tensors[MOST_TENSORS];
};

/* A worker's values, with copies from before a step. */
struct low_rank_worker {
	struct psd_low_rank_work work;
	struct psd_low_rank_tensor tensors[MOST_TENSORS];
	uint64_t elements, n_left, n_right;
	float *gradient, *residual, *left, *right; /* before; tensors without gaps */
};

static inline float *low_rank_take(uint64_t n)
{
	char *taken = calloc(n * sizeof(float) + GUARD, 1);

	cr_assert_not_null(taken);
	memset(taken + n * sizeof(float), GUARD_BYTE, GUARD);
	return (float *)(void *)taken;
}

static inline void low_rank_expect_guard(const float *taken, uint64_t n, const char *what)
{
	const char *behind = (const char *)(taken + n);

	for (unsigned i = 0; i < GUARD; i++)
		cr_assert_eq(behind[i], GUARD_BYTE, "byte %u behind the %s is written", i, what);
}

static inline void low_rank_open(struct low_rank_worker *of, const struct low_rank_layout *layout, unsigned n_threads)
{
	*of = (struct low_rank_worker){
		.work = {.n_tensors = layout->n_tensors, .n_threads = n_threads, .rank = layout->rank}};
	for (unsigned t = 0; t < layout->n_tensors; t++) {
		const struct psd_tensor *tensor = &layout->tensors[t];

		of->tensors[t] = (struct psd_low_rank_tensor){.gradient = low_rank_take(tensor->elements),
							      .elements = tensor->elements,
							      .shape = psd_low_rank_shape_of(tensor, layout->rank),
							      .number = 3 * t};
		of->elements += tensor->elements;
		of->n_left += psd_low_rank_left(tensor, layout->rank);
		of->n_right += psd_low_rank_right(tensor, layout->rank);
	}
	of->work.tensors = of->tensors;
	of->work.residual = low_rank_take(of->elements);
	of->work.left = low_rank_take(of->n_left);
	of->work.right = low_rank_take(of->n_right);
	of->gradient = low_rank_take(of->elements);
	of->residual = low_rank_take(of->elements);
	of->left = low_rank_take(of->n_left);
	of->right = low_rank_take(of->n_right);
}

static inline void low_rank_close(struct low_rank_worker *of)
{
	for (unsigned t = 0; t < of->work.n_tensors; t++) {
		low_rank_expect_guard(of->tensors[t].gradient, of->tensors[t].elements, "gradient");
		free(of->tensors[t].gradient);
	}
	low_rank_expect_guard(of->work.residual, of->elements, "residual");
	low_rank_expect_guard(of->work.left, of->n_left, "left matrices");
	low_rank_expect_guard(of->work.right, of->n_right, "right matrices");
	free(of->work.residual), free(of->work.left), free(of->work.right);
	free(of->gradient), free(of->residual), free(of->left), free(of->right);
}

static inline void low_rank_remember(struct low_rank_worker *of)
{
	float *gradient = of->gradient;

	for (unsigned t = 0; t < of->work.n_tensors; t++) {
		memcpy(gradient, of->tensors[t].gradient, of->tensors[t].elements * sizeof(*gradient));
		gradient += of->tensors[t].elements;
	}
	memcpy(of->residual, of->work.residual, of->elements * sizeof(float));
	memcpy(of->left, of->work.left, of->n_left * sizeof(float));
	memcpy(of->right, of->work.right, of->n_right * sizeof(float));
}

typedef enum psd_status low_rank_step_fn(const struct psd_low_rank_work *work, struct psd_error *err);

static inline void low_rank_step(struct low_rank_worker *of, low_rank_step_fn *step)
{
	struct psd_error err = {.text = ""};

	low_rank_remember(of);
	cr_assert_eq(step(&of->work, &err), PSD_OK, "%s", err.text);
}

#endif
