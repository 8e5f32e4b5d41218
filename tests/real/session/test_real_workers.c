/* Real workers beside replayed ones: with every method they send the bytes of a fully real run, select the same chunks,
 * and get numbers that do not change the cost of computing. The contract of all sessions is in
 * tests/real/session/test_session_contract.c. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "engine/program/chunks.h"
#include "real/work/chunk_selection.h"
#include "tests/real/training.h"

enum { WORKERS = 3, BATCH = 4, ITERATIONS = 5 };

TestSuite(real_workers, .timeout = 120);

static struct training *run(const char *system, unsigned workers, unsigned workers_per_node,
			    const struct psd_replay *replay)
{
	struct training *training =
		training_make("../../tests/data/smooth.yaml", system, workers, workers_per_node, BATCH, 1,
			      "iterations: 5, optimiser: {momentum: 0.9, weight_decay: 0.004}, "
			      "learning_rate: {policy: fixed, base: 0.05}");

	training->options.worker.replay = replay;
	training->options.worker.n_iterations = ITERATIONS;
	return training_finish(training, system);
}

static struct psd_replay beside(unsigned real_workers)
{
	return (struct psd_replay){.dilation_ratio = 1.0, .payload_ratio = 1.0, .real_workers = real_workers};
}

/* ---- bytes ---- */

static void check_bytes(const char *system, unsigned workers, unsigned workers_per_node)
{
	struct training *real = run(system, workers, workers_per_node, NULL);

	for (unsigned n = 1; n < workers; n++) {
		const struct psd_replay replay = beside(n);
		struct training *mixed = run(system, workers, workers_per_node, &replay);

		cr_expect_gt(mixed->result.sent_bytes_per_node, 0);
		cr_expect_eq(mixed->result.sent_bytes_per_node, real->result.sent_bytes_per_node, "%s, %u real: sent",
			     system, n);
		cr_expect_eq(mixed->result.received_bytes_per_node, real->result.received_bytes_per_node,
			     "%s, %u real: received", system, n);
		training_free(mixed);
	}
	training_free(real);
}

/* Every host refuses a message that its program does not have, so what the busiest sends is what each sends. */
Test(real_workers, every_method_sends_the_bytes_of_a_run_in_which_all_compute)
{
	static const char *const systems[] = {
		"schedule: sequential, sync: ps",
		"sync: ps, servers: 2, wire: fp16",
		"sync: sfb, wire: fp16",
		"sync: hybrid, barrier: layer",
		"sync: adam, wire: bf16",
		"sync: ring, priority: forward, fuse: 4KiB",
		"schedule: sequential, sync: double-tree, wire: fp16",
		"sync: ps, compress: {by: one-bit}",
		"sync: ps, servers: 2, compress: {by: top-k, tensors: matrices}",
	};

	for (size_t s = 0; s < sizeof(systems) / sizeof(systems[0]); s++)
		check_bytes(systems[s], WORKERS, 1);
	check_bytes("sync: two-level", 4, 2);
	check_bytes("sync: ps", 4, 2);
}

/* One exchange of all 3570 values is 51 chunks of 70, so that any choice of so many has as many bytes. Worker 0 holds
 * the digests of all choices against its own in every iteration, and gives up where one differs. */
Test(real_workers, all_choose_the_same_chunks_as_many_as_where_all_compute)
{
	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++) {
		char system[160];

		snprintf(system, sizeof(system),
			 "sync: %s, fuse: 1MB, wire: %s, sparse: {sparsity: 0.8, chunk: 70, warmup: 3%s}",
			 psd_all_reduces[p]->name, p % 2 ? "bf16" : "fp32", p % 3 ? "" : ", feedback: full");
		check_bytes(system, WORKERS, 1);
	}
}

/* A worker that replays may end a forward pass before its own transfers tell which chunks were chosen. */
Test(real_workers, choose_the_same_chunks_beside_stale_reads)
{
	static const char system[] = "sync: ring, fuse: 1MB, staleness: 3, reads: stale, "
				     "managed: {clock: 4, early: 20%, chunk: 70, priority: generation}";
	const struct psd_replay replay = beside(2);
	struct training *training = training_make("../../tests/data/smooth.yaml", system, WORKERS, 1, BATCH, 1,
						  "iterations: 20, learning_rate: {policy: fixed, base: 0.05}");

	training->options.worker.replay = &replay;
	training->options.worker.latency_sec = 0.005;
	training_free(training_finish(training, system));
}

/* ---- values ---- */

/* A server that replays has nothing but what arrived last, and parameters of that would be rubbish. */
Test(real_workers, get_zeros_from_workers_that_replay)
{
	static const char *const systems[] = {"sync: ps, servers: 1", "sync: ps, servers: 1, wire: fp16",
					      "sync: adam, servers: 1, schedule: sequential"};
	const struct psd_replay replay = beside(1);

	for (size_t s = 0; s < sizeof(systems) / sizeof(systems[0]); s++) {
		struct training *training = run(systems[s], WORKERS, 1, &replay);
		const float *parameters = training_parameters(training, 0);

		for (uint64_t i = 0; i < training->loaded.costed.graph.parameters; i++)
			cr_assert_eq(parameters[i], 0.0f, "%s: parameter %llu is %g", systems[s], (unsigned long long)i,
				     (double)parameters[i]);
		training_free(training);
	}
}

/* ---- chunks that are drawn ---- */

static struct training *make_sparse(void)
{
	return training_make("../../tests/data/smooth.yaml", "sync: ring, sparse: {sparsity: 0.8, chunk: 70}", WORKERS,
			     1, BATCH, 1, "iterations: 5, learning_rate: {policy: fixed, base: 0.05}");
}

/* Chunks drawn without norms: in each iteration another k of n, each whole one as often as any other, within six
 * standard deviations of a binomial count, and no smaller one, since there are more than k whole ones. */
Test(real_workers, drawn_chunks_are_those_of_the_seed_and_spread_evenly)
{
	enum { DRAWS = 1000, MOST_CHUNKS = 64 };
	struct training *training = make_sparse();
	const struct psd_plan *plan = &training->made.plan;
	const uint32_t n = plan->n_chunks;
	struct psd_arena arena = {.blocks = NULL};
	const struct psd_iterations run = {.end = DRAWS + 1};
	struct psd_chunk_selection one, same, other;
	struct psd_error err;
	unsigned n_times[MOST_CHUNKS] = {0}, n_whole = 0;
	bool is_whole[MOST_CHUNKS] = {false};

	cr_assert_leq(n, MOST_CHUNKS);
	for (unsigned i = 0; i < plan->n_items; i++)
		for (uint32_t c = 0; c < plan->items[i].n_chunks; c++) {
			is_whole[plan->items[i].first_chunk + c] = (c + 1) * 70 <= plan->items[i].subject.elements;
			n_whole += is_whole[plan->items[i].first_chunk + c];
		}
	cr_assert_eq(psd_chunk_selection_open(&one, plan, run, &arena, &err), PSD_OK);
	cr_assert_eq(psd_chunk_selection_open(&same, plan, run, &arena, &err), PSD_OK);
	cr_assert_eq(psd_chunk_selection_open(&other, plan, run, &arena, &err), PSD_OK);
	const double k = (double)psd_chunks_kept(plan->sparse, n, 1), share = k / n_whole;
	const double most_off = 6.0 * sqrt(DRAWS * share * (1.0 - share));

	cr_assert_leq(k, n_whole);
	cr_assert_lt(n_whole, n);
	for (unsigned d = 0; d < DRAWS; d++) {
		const struct psd_chunk_selection_table *drawn = psd_chunk_selection_of(&one, d + 1);
		unsigned n_drawn = 0;

		psd_chunk_selection_draw(&one, 1);
		psd_chunk_selection_draw(&same, 1);
		psd_chunk_selection_draw(&other, 2);
		for (uint32_t c = 0; c < n; c++) {
			n_drawn += drawn->is_chosen[c];
			n_times[c] += drawn->is_chosen[c];
		}
		cr_assert_eq(n_drawn, (unsigned)k);
		cr_assert_eq(drawn->digest, psd_chunk_selection_of(&same, d + 1)->digest);
		cr_assert_neq(drawn->digest, psd_chunk_selection_of(&other, d + 1)->digest);
		psd_chunk_selection_adopt(&one);
		psd_chunk_selection_adopt(&same);
		psd_chunk_selection_adopt(&other);
	}
	for (uint32_t c = 0; c < n; c++)
		cr_expect_leq(fabs(n_times[c] - (is_whole[c] ? DRAWS * share : 0.0)), is_whole[c] ? most_off : 0.0,
			      "chunk %u was drawn %u times of %u", c, n_times[c], DRAWS);
	psd_arena_release(&arena);
	training_free(training);
}
