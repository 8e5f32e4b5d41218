/* Choice among cuDNN's engines for convolutions, as the stand-in has them. */
#include <criterion/criterion.h>

#include "tests/cuda/compare_helper.h"
#include "tests/cuda/stand_in.h"

static const enum psd_stand_in_estimates untrue[] = {PSD_STAND_IN_ESTIMATES_UNPLANNED, PSD_STAND_IN_ESTIMATES_UNBEGUN,
						     PSD_STAND_IN_ESTIMATES_UNEQUAL};

static void check(const struct arithmetic *arithmetic)
{
	struct net net = net_make(CONVOLUTIONS, 1);
	struct cuda_net cuda;
	double loss;

	calm(&net);
	cuda = cuda_net_open(&net, arithmetic->arithmetic);
	loss = cuda_net_run(&cuda);
	compare(&cuda, loss, net_run(&net), arithmetic, CONVOLUTIONS);
	cuda_net_close(&cuda);
	net_release(&net);
}

/* The first of what cuDNN lists may turn out to be refused, and an engine that gives equal bits need not be listed. */
Test(cuda_engines, one_is_found_where_estimates_are_wrong)
{
	for (size_t i = 0; i < sizeof(untrue) / sizeof(untrue[0]); i++) {
		psd_stand_in_set_estimates(untrue[i]);
		for (unsigned a = 0; a < sizeof(arithmetics) / sizeof(arithmetics[0]); a++) {
			check(&arithmetics[a]);
			check_timed(CONVOLUTIONS, 2, &arithmetics[a]);
		}
	}
}

enum { PLAIN, EQUAL, UNEQUAL, ENGINES }; /* the fallback; listed ones with equal bits and without */

/* Which engines execute the second iteration of two convolutions, each once forward and with its weight's gradient,
 * and the upper one with its data's. */
static void check_choice(bool may_differ, const unsigned msec[ENGINES], const unsigned expected[ENGINES])
{
	const struct psd_device_options options = {.n_threads = 1, .may_differ = may_differ};
	struct net net = net_make(HEAD "  - {name: c, kind: conv, outputs: 5, kernel: 3}\n" TAIL, 2);
	struct cuda_net cuda = cuda_net_open_with(&net, &options);

	psd_stand_in_count_engines();
	for (int e = 0; e < ENGINES; e++)
		psd_stand_in_set_engine_msec(e, msec[e]);
	(void)cuda_net_run(&cuda);
	psd_stand_in_count_engines();
	(void)cuda_net_run(&cuda);
	for (int e = 0; e < ENGINES; e++)
		cr_expect_eq(psd_stand_in_engine_runs(e), expected[e], "engine %d with %u, %u, %u ms: %u times", e,
			     msec[0], msec[1], msec[2], psd_stand_in_engine_runs(e));
	cuda_net_close(&cuda);
	net_release(&net);
}

/* Five in all; the two forward ones have no engine of unequal bits. */
Test(cuda_engines, the_quickest_is_taken_where_bits_may_differ)
{
	const unsigned plain_msec[ENGINES] = {1, 3, 2}, equal_msec[ENGINES] = {9, 2, 3},
		       unequal_msec[ENGINES] = {9, 3, 2};

	check_choice(false, plain_msec, (const unsigned[]){0, 5, 0});
	check_choice(true, plain_msec, (const unsigned[]){5, 0, 0});
	check_choice(true, equal_msec, (const unsigned[]){0, 5, 0});
	check_choice(true, unequal_msec, (const unsigned[]){0, 2, 3});
}
