/* The order of samples: every one once an epoch, the same for any number of workers, and shuffled. */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "real/data/sampler.h"

static void expect_bijection(uint64_t n_samples, uint64_t seed, uint64_t epoch)
{
	const struct psd_sampler sampler = {.seed = seed, .n_samples = n_samples};
	bool *is_drawn = calloc((size_t)n_samples, sizeof(bool));

	cr_assert_not_null(is_drawn);
	for (uint64_t position = 0; position < n_samples; position++) {
		const uint64_t sample = psd_sampler_sample(&sampler, epoch, position);

		cr_assert_lt(sample, n_samples);
		cr_assert_not(is_drawn[sample], "sample %lu of %lu comes twice", (unsigned long)sample,
			      (unsigned long)n_samples);
		is_drawn[sample] = true;
	}
	free(is_drawn);
}

Test(sampler, every_sample_comes_once_an_epoch)
{
	for (uint64_t n_samples = 1; n_samples <= 300; n_samples++)
		for (uint64_t epoch = 0; epoch < 3; epoch++)
			expect_bijection(n_samples, 7, epoch);
	expect_bijection(50000, 1, 0);	 /* CIFAR-10 */
	expect_bijection(65536, 1, 1);	 /* the domain itself, no walk */
	expect_bijection(65537, 1, 2);	 /* the longest walks */
	expect_bijection(1281167, 1, 0); /* ImageNet */
}

/* How many of n positions hold another sample. */
static unsigned differences(const struct psd_sampler *a, uint64_t epoch_a, const struct psd_sampler *b,
			    uint64_t epoch_b)
{
	unsigned differ = 0;

	for (uint64_t position = 0; position < a->n_samples; position++)
		differ += psd_sampler_sample(a, epoch_a, position) != psd_sampler_sample(b, epoch_b, position);
	return differ;
}

Test(sampler, seed_and_epoch_change_the_order)
{
	const struct psd_sampler one = {.seed = 1, .n_samples = 1000}, two = {.seed = 2, .n_samples = 1000};

	/* two random orders agree in one place on average, in more than 10 once in 10 million pairs */
	cr_expect_eq(differences(&one, 0, &one, 0), 0);
	cr_expect_gt(differences(&one, 0, &one, 1), 990);
	cr_expect_gt(differences(&one, 0, &two, 0), 990);
	cr_expect_gt(differences(&one, 1, &two, 0), 990, "seed and epoch are not simply added");
}

/* Pearson's test on the counts of `cells` equally likely outcomes. */
static double chi_square(const unsigned *counts, unsigned cells, unsigned draws)
{
	const double expected = (double)draws / cells;
	double sum = 0;

	for (unsigned i = 0; i < cells; i++)
		sum += (counts[i] - expected) * (counts[i] - expected) / expected;
	return sum;
}

Test(sampler, every_sample_is_as_likely_at_every_place)
{
	enum { N = 10, EPOCHS = 20000 };
	const struct psd_sampler sampler = {.seed = 3, .n_samples = N};

	for (uint64_t position = 0; position < N; position++) {
		unsigned counts[N] = {0};

		for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
			counts[psd_sampler_sample(&sampler, epoch, position)]++;
		/* 9 degrees of freedom: above 33.7 once in 10,000 */
		cr_expect_lt(chi_square(counts, N, EPOCHS), 33.7, "position %lu", (unsigned long)position);
	}
}

Test(sampler, neighbours_are_independent)
{
	enum { N = 8, EPOCHS = 56000 };
	const struct psd_sampler sampler = {.seed = 3, .n_samples = N};
	unsigned counts[N * N] = {0}, pairs[N * (N - 1)], n_pairs = 0;

	for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
		counts[psd_sampler_sample(&sampler, epoch, 2) * N + psd_sampler_sample(&sampler, epoch, 3)]++;
	for (unsigned i = 0; i < N * N; i++)
		if (i / N != i % N)
			pairs[n_pairs++] = counts[i];
	/* 55 degrees of freedom: above 99.6 once in 5,000 */
	cr_expect_lt(chi_square(pairs, N * (N - 1), EPOCHS), 99.6);
}

Test(sampler, epochs_follow_each_other_without_a_gap)
{
	const struct psd_sampler sampler = {.seed = 5, .n_samples = 7};

	for (uint64_t position = 0; position < 30; position++) {
		const struct psd_draw draw = psd_sampler_draw(&sampler, position);

		cr_expect_eq(draw.epoch, position / 7);
		cr_expect_eq(draw.sample, psd_sampler_sample(&sampler, position / 7, position % 7));
	}
}

Test(sampler, workers_share_what_one_would_draw)
{
	enum { GLOBAL_BATCH = 24 };

	for (uint64_t iteration = 0; iteration < 5; iteration++)
		for (uint32_t workers = 1; workers <= 8; workers *= 2) {
			const uint32_t batch = GLOBAL_BATCH / workers;

			for (uint32_t worker = 0; worker < workers; worker++)
				cr_expect_eq(psd_sampler_first(iteration, workers, worker, batch),
					     iteration * GLOBAL_BATCH + (uint64_t)worker * batch);
		}
	/* far into a large job: no 32-bit product on the way */
	cr_expect_eq(psd_sampler_first(1000000, 65536, 65535, 100000),
		     UINT64_C(1000000) * 65536 * 100000 + UINT64_C(65535) * 100000);
}
