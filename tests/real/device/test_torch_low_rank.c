/* Gradients of low rank, iteration after iteration on several workers, against PyTorch's powerSGD_hook in double, which
 * torch_low_rank.py runs. It keeps orthonormal what the right matrix starts from, and of what is lost another part on
 * each worker; sums, and so what is applied, are the same. */
#define _XOPEN_SOURCE 700
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/device/low_rank.h"
#include "tests/scratch_folder.h"

enum { ROWS = 24, COLUMNS = 40, RANK = 3, WORKERS = 3, STEPS = 6, MATRIX = ROWS * COLUMNS, BOTH = MATRIX + ROWS };
enum { LEFT = ROWS * RANK + ROWS, RIGHT = COLUMNS * RANK, NUMBER = 5 };

/* Sums over some 40 products of floats, in which what is lost stays for some steps. */
#define TOLERANCE_RATIO 1e-5

struct worker {
	float gradient[BOTH], residual[BOTH], left[LEFT], right[RIGHT];
	struct psd_low_rank_tensor tensors[2];
	struct psd_low_rank_work work;
};

static void open_worker(struct worker *worker)
{
	*worker = (struct worker){
		.tensors = {{worker->gradient, MATRIX, {ROWS, COLUMNS}, NUMBER},
			    {worker->gradient + MATRIX, ROWS, {0, 0}, NUMBER + 1}},
	};
	worker->work = (struct psd_low_rank_work){.tensors = worker->tensors,
						  .n_tensors = 2,
						  .n_threads = 1,
						  .rank = RANK,
						  .residual = worker->residual,
						  .left = worker->left,
						  .right = worker->right};
}

/* Some directions are stronger than others, as gradients have them. */
static void draw(float gradient[BOTH], uint32_t *state)
{
	for (unsigned e = 0; e < BOTH; e++) {
		*state = *state * 1664525u + 1013904223u;
		gradient[e] = ((float)(*state >> 8) * 0x1p-23f - 1.0f) / (1.0f + (float)(e % COLUMNS));
	}
}

typedef float *values_fn(struct worker *worker);

static float *left_of(struct worker *worker)
{
	return worker->left;
}

static float *right_of(struct worker *worker)
{
	return worker->right;
}

static void sum(struct worker workers[WORKERS], values_fn *values, unsigned n)
{
	for (unsigned e = 0; e < n; e++) {
		float all = 0.0f;

		for (unsigned w = 0; w < WORKERS; w++)
			all += values(&workers[w])[e];
		for (unsigned w = 0; w < WORKERS; w++)
			values(&workers[w])[e] = all;
	}
}

static void step(struct worker workers[WORKERS])
{
	struct psd_error err;

	for (unsigned w = 0; w < WORKERS; w++)
		cr_assert_eq(psd_low_rank_project(&workers[w].work, &err), PSD_OK);
	sum(workers, left_of, LEFT);
	for (unsigned w = 0; w < WORKERS; w++)
		cr_assert_eq(psd_low_rank_fit(&workers[w].work, &err), PSD_OK);
	sum(workers, right_of, RIGHT);
	for (unsigned w = 0; w < WORKERS; w++)
		cr_assert_eq(psd_low_rank_expand(&workers[w].work, &err), PSD_OK);
}

static void write_start(FILE *out)
{
	for (unsigned j = 0; j < RANK; j++)
		for (uint32_t c = 0; c < COLUMNS; c++) {
			const float start = psd_low_rank_start(NUMBER, j, c);

			cr_assert_eq(fwrite(&start, sizeof(start), 1, out), 1);
		}
}

/* Writes what the workers have, and fills in what they apply: the sum over workers of a share of each gradient. */
static void run(FILE *out, float applied[STEPS][BOTH])
{
	struct worker *workers = calloc(WORKERS, sizeof(*workers));
	uint32_t state = 1;

	cr_assert(workers);
	for (unsigned w = 0; w < WORKERS; w++)
		open_worker(&workers[w]);
	for (unsigned s = 0; s < STEPS; s++) {
		for (unsigned w = 0; w < WORKERS; w++) {
			draw(workers[w].gradient, &state);
			cr_assert_eq(fwrite(workers[w].gradient, sizeof(float), BOTH, out), BOTH);
			for (unsigned e = 0; e < BOTH; e++)
				workers[w].gradient[e] /= WORKERS;
		}
		step(workers);
		memcpy(applied[s], workers[0].gradient, sizeof(applied[s]));
	}
	free(workers);
}

static double error_ratio(const float *applied, const double *expected, unsigned n)
{
	double difference = 0, norm = 0;

	for (unsigned e = 0; e < n; e++) {
		difference += pow((double)applied[e] - expected[e], 2);
		norm += pow(expected[e], 2);
	}
	return sqrt(difference / norm);
}

static void compare(FILE *in, float applied[STEPS][BOTH])
{
	static double expected[BOTH];
	double worst_ratio = 0;

	for (unsigned s = 0; s < STEPS; s++) {
		cr_assert_eq(fread(expected, sizeof(expected[0]), BOTH, in), BOTH);
		const double matrix_ratio = error_ratio(applied[s], expected, MATRIX),
			     vector_ratio = error_ratio(applied[s] + MATRIX, expected + MATRIX, ROWS);

		worst_ratio = fmax(worst_ratio, fmax(matrix_ratio, vector_ratio));
		cr_expect_lt(matrix_ratio, TOLERANCE_RATIO, "step %u: the matrix is off by %g", s, matrix_ratio);
		cr_expect_lt(vector_ratio, TOLERANCE_RATIO, "step %u: the vector is off by %g", s, vector_ratio);
	}
	cr_log_info("gradients of low rank off by up to %.1e\n", worst_ratio);
}

Test(torch_low_rank, applies_what_pytorch_applies)
{
	static float applied[STEPS][BOTH];
	struct scratch_folder folder;
	char command[400];

	if (system("/usr/bin/python3 -c 'import torch' 2>/dev/null") != 0)
		cr_skip_test("python3-torch is not installed (make deps-bench)");
	folder = scratch_folder_make();
	const struct scratch_path path = scratch_folder_path(&folder, "gradients"),
				  result = scratch_folder_path(&folder, "gradients.out");
	FILE *out = fopen(path.text, "wb");

	cr_assert(out);
	write_start(out);
	run(out, applied);
	cr_assert_eq(fclose(out), 0);
	snprintf(command, sizeof(command), "/usr/bin/python3 tests/real/device/torch_low_rank.py %s %d %d %d %d %d",
		 path.text, ROWS, COLUMNS, RANK, WORKERS, STEPS);
	cr_assert_eq(system(command), 0);
	FILE *in = fopen(result.text, "rb");

	cr_assert(in);
	compare(in, applied);
	fclose(in);
	scratch_folder_remove(&folder);
}
