/* The products of inner product layers against sums in double, at sizes on either side of every block; and that a sample's bits depend on
 * nothing but the sample and the weight. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "real/cpu_product.h"

#define TOLERANCE_RATIO 2e-6 /* of the norm: float sums of up to 2100 terms, a few times sqrt(2100) / 2^24 */
#define NONSENSE	1e6f

struct factors {
	struct psd_cpu_product product;
	float *weight, *bottom, *bias, *dtop, *scratch;
};

static float *take(size_t count, uint32_t seed)
{
	float *values = aligned_alloc(64, (count * sizeof(*values) + 63) / 64 * 64);

	cr_assert(values);
	for (size_t i = 0; i < count; i++) {
		seed = seed * 1664525u + 1013904223u;
		values[i] = (float)(seed >> 8) * 0x1p-23f - 1.0f;
	}
	return values;
}

static struct factors make(uint32_t samples, uint32_t rows, uint32_t columns, unsigned n_threads)
{
	struct factors made = {
		.weight = take((size_t)rows * columns, 1),
		.bottom = take((size_t)samples * rows, 2),
		.bias = take(columns, 3),
		.dtop = take((size_t)samples * columns, 4),
		.scratch = take((size_t)n_threads * PSD_CPU_PRODUCT_SCRATCH, 5),
	};

	if (!psd_cpu_product_is_possible())
		cr_skip_test("this processor has no AVX2: oneDNN does the products");
	made.product = (struct psd_cpu_product){made.weight, samples, rows, columns, n_threads};
	return made;
}

static void release(struct factors *factors)
{
	free(factors->weight);
	free(factors->bottom);
	free(factors->bias);
	free(factors->dtop);
	free(factors->scratch);
}

/* Owned results, on memory that held nonsense. */
static float *nonsense(size_t count)
{
	float *values = take(count, 6);

	for (size_t i = 0; i < count; i++)
		values[i] = NONSENSE;
	return values;
}

static float *forward(const struct factors *factors)
{
	float *top = nonsense((size_t)factors->product.samples * factors->product.columns);

	psd_cpu_product_forward(&factors->product, factors->bottom, factors->bias, top);
	return top;
}

static float *backward(const struct factors *factors)
{
	float *dbottom = nonsense((size_t)factors->product.samples * factors->product.rows);

	psd_cpu_product_backward(&factors->product, factors->dtop, factors->scratch, dbottom);
	return dbottom;
}

/* ---- against sums in double ---- */

static double forward_error_ratio(const struct factors *factors, const float *top)
{
	const uint32_t rows = factors->product.rows, columns = factors->product.columns;
	double difference = 0, norm = 0;

	for (uint32_t s = 0; s < factors->product.samples; s++)
		for (uint32_t c = 0; c < columns; c++) {
			double sum = (double)factors->bias[c];

			for (uint32_t r = 0; r < rows; r++)
				sum += (double)factors->weight[(size_t)c * rows + r] *
				       (double)factors->bottom[(size_t)s * rows + r];
			difference += pow((double)top[(size_t)s * columns + c] - sum, 2);
			norm += sum * sum;
		}
	return sqrt(difference / norm);
}

static double backward_error_ratio(const struct factors *factors, const float *dbottom)
{
	const uint32_t rows = factors->product.rows, columns = factors->product.columns;
	double difference = 0, norm = 0;

	for (uint32_t s = 0; s < factors->product.samples; s++)
		for (uint32_t r = 0; r < rows; r++) {
			double sum = 0;

			for (uint32_t c = 0; c < columns; c++)
				sum += (double)factors->weight[(size_t)c * rows + r] *
				       (double)factors->dtop[(size_t)s * columns + c];
			difference += pow((double)dbottom[(size_t)s * rows + r] - sum, 2);
			norm += sum * sum;
		}
	return sqrt(difference / norm);
}

static void check_products(uint32_t samples, uint32_t rows, uint32_t columns)
{
	struct factors factors = make(samples, rows, columns, 1);
	float *top = forward(&factors), *dbottom = backward(&factors);
	const double forward_ratio = forward_error_ratio(&factors, top);
	const double backward_ratio = backward_error_ratio(&factors, dbottom);

	cr_expect_lt(forward_ratio, TOLERANCE_RATIO, "forward %u x %u x %u is off by %g", samples, rows, columns, forward_ratio);
	cr_expect_lt(backward_ratio, TOLERANCE_RATIO, "backward %u x %u x %u is off by %g", samples, rows, columns,
		     backward_ratio);
	free(top);
	free(dbottom);
	release(&factors);
}

Test(cpu_product, every_number_of_samples)
{
	for (uint32_t samples = 1; samples <= 20; samples++)
		check_products(samples, 70, 13);
}

Test(cpu_product, every_end_of_a_row)
{
	for (uint32_t rows = 1; rows <= 40; rows++) {
		check_products(3, rows, 7);
		check_products(14, rows, 7);
	}
}

Test(cpu_product, every_end_of_the_outputs)
{
	for (uint32_t columns = 1; columns <= 12; columns++) {
		check_products(3, 33, columns);
		check_products(14, 33, columns);
	}
}

Test(cpu_product, sizes_around_the_blocks)
{
	static const uint32_t rows[] = {1023, 1024, 1025, 2100}, columns[] = {127, 128, 129, 257};

	for (unsigned i = 0; i < 4; i++)
		for (unsigned j = 0; j < 4; j++) {
			check_products(5, rows[i], columns[j]);
			check_products(13, rows[i], columns[j]);
		}
}

/* ---- the same bits ---- */

static void check_bits(const float *part, const float *whole, size_t count, const char *what, unsigned number)
{
	for (size_t i = 0; i < count; i++)
		cr_assert(part[i] == whole[i], "%s %u: value %zu is %a, must be %a", what, number, i, (double)part[i],
			  (double)whole[i]);
}

/* 40 samples at once, then the first 1 to 39 of them: few and many samples take different ways. */
Test(cpu_product, a_sample_does_not_depend_on_its_batch)
{
	struct factors factors = make(40, 1045, 133, 1);
	float *top = forward(&factors), *dbottom = backward(&factors);

	for (uint32_t samples = 1; samples < 40; samples++) {
		float *part_top, *part_dbottom;

		factors.product.samples = samples;
		part_top = forward(&factors), part_dbottom = backward(&factors);
		check_bits(part_top, top, (size_t)samples * 133, "forward of", samples);
		check_bits(part_dbottom, dbottom, (size_t)samples * 1045, "backward of", samples);
		free(part_top);
		free(part_dbottom);
	}
	free(top);
	free(dbottom);
	release(&factors);
}

static void check_threads(uint32_t samples)
{
	struct factors factors = make(samples, 1045, 133, 3);
	float *top, *dbottom;

	factors.product.n_threads = 1;
	top = forward(&factors), dbottom = backward(&factors);
	for (unsigned n_threads = 2; n_threads <= 3; n_threads++) {
		float *shared_top, *shared_dbottom;

		factors.product.n_threads = n_threads;
		shared_top = forward(&factors), shared_dbottom = backward(&factors);
		check_bits(shared_top, top, (size_t)samples * 133, "forward, threads", n_threads);
		check_bits(shared_dbottom, dbottom, (size_t)samples * 1045, "backward, threads", n_threads);
		free(shared_top);
		free(shared_dbottom);
	}
	free(top);
	free(dbottom);
	release(&factors);
}

Test(cpu_product, threads_change_nothing)
{
	check_threads(5);
	check_threads(20);
}

/* Fewer outputs and inputs than threads: some have nothing to do. */
Test(cpu_product, more_threads_than_work)
{
	struct factors factors = make(2, 1, 1, 3);
	float *top = forward(&factors), *dbottom = backward(&factors);

	cr_assert_lt(fabs((double)top[1] - ((double)factors.bias[0] + (double)factors.weight[0] * (double)factors.bottom[1])),
		     TOLERANCE_RATIO);
	cr_assert_lt(fabs((double)dbottom[1] - (double)factors.weight[0] * (double)factors.dtop[1]), TOLERANCE_RATIO);
	free(top);
	free(dbottom);
	release(&factors);
}
