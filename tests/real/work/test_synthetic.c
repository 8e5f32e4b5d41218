/* The synthetic method for real: the same order rules as in the estimate and the simulation, by replays and by training
 * on loopback. Waits are long enough that load on the machine does not change the order. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/loaded_helper.h"
#include "tests/real/training.h"
#include "tests/synthetic_helper.h"

#define WITHIN_SEC 60.0

enum { ITERATIONS = 8, REPLAYED = 4, TRAINED = 3 };

TestSuite(synthetic_method, .timeout = 120);

/* ---- replays ---- */

/* A collective takes 100 ms before its first message, compute 20 ms. */
static const char one_layer[] = "model: {graph: tests/data/one_layer.yaml, batch_per_worker: 1}\n"
				"compute: {device: titan-x, samples_per_sec: 50, replay: true}\n"
				"cluster: {stack: none, nodes: 4, network: {bandwidth: 1Gbps, latency: 50us}, "
				"host: {collective: [{call: 100ms}]}}\n";

/* While the last layer's collective is under way some workers end the backward pass and others do not. */
static const char two_layers[] = "model: {graph: tests/data/odd.yaml, batch_per_worker: 1}\n"
				 "compute: {device: titan-x, samples_per_sec: 10, jitter: 100%, replay: true}\n"
				 "cluster: {stack: none, nodes: 4, network: {bandwidth: 1Gbps, latency: 50us}, "
				 "host: {collective: [{call: 30ms}]}}\n";

static void open_replay(struct psd_case *made, struct loaded *loaded, const char *job, const char *priority)
{
	loaded_print(loaded, "title: t\n%ssystems: [{name: s, sync: ring, unit: layer, priority: %s}]\n", job,
		     priority);
	loaded_case(made, loaded, 0, 0);
}

/* Every worker decides by itself, or worker 0 for all. */
static void replay(const struct synthetic *synthetic, const char *job, const char *priority, uint64_t sent_bytes,
		   void (*look)(const struct told *, const struct psd_program *, const struct synthetic *))
{
	struct loaded loaded;
	struct psd_case made;
	struct psd_worker_result result;
	struct psd_spans spans;
	struct psd_error err = {.text = ""};
	static struct told told;

	open_replay(&made, &loaded, job, priority);
	make_synthetic(&made, synthetic);
	cr_assert_eq(psd_spans_open(&spans, REPLAYED, &err), PSD_OK, "%s", err.text);
	const struct psd_launch_options launch = {
		.worker.made = &made,
		.worker.train = &loaded.scenario.train,
		.worker.replay = &loaded.scenario.replay,
		.worker.n_iterations = ITERATIONS,
		.cluster_kind = PSD_CLUSTER_LOOPBACK,
		.worker.connect_sec = WITHIN_SEC,
		.worker.stall_sec = WITHIN_SEC,
		.spans = &spans,
	};
	cr_assert_eq(psd_launch(&launch, &result, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(result.sent_bytes_per_node, sent_bytes);
	told.n = 0;
	cr_assert_eq(psd_spans_tell(&spans, &made.program, tell, &told, &err), PSD_OK, "%s", err.text);
	expect_one_at_a_time(&told, &made.program, priority);
	for (unsigned host = 0; host < REPLAYED; host++)
		for (unsigned other = 0; other < host; other++)
			expect_same_order(&told, &made.program, host, other, priority);
	look(&told, &made.program, synthetic);
	psd_spans_close(&spans);
	psd_case_release(&made);
	loaded_close(&loaded);
}

static void look_for_overlap(const struct told *told, const struct psd_program *program,
			     const struct synthetic *synthetic)
{
	(void)synthetic;
	expect_overlap(told, program, 0, 1, ITERATIONS, "replay");
	expect_overlap(told, program, 2, 3, ITERATIONS, "replay");
}

static void look_for_staleness(const struct told *told, const struct psd_program *program,
			       const struct synthetic *synthetic)
{
	for (unsigned host = 0; host < REPLAYED; host++)
		expect_staleness(told, program, host, synthetic->staleness, ITERATIONS, "replay");
}

static void look_for_turns(const struct told *told, const struct psd_program *program,
			   const struct synthetic *synthetic)
{
	(void)synthetic;
	for (uint32_t t = 0; t < ITERATIONS; t++)
		for (unsigned host = 1; host <= 2; host++) /* in the middle of the chain: each is in two groups */
			cr_expect(find_told(told, program, PSD_OP_COLLECTIVE, host, t, 1), "iteration %u, host %u", t,
				  host);
}

enum { MATRIX_BYTES = 128 * 128 * 4 }; /* a ring of two sends all of it, one of four 2 * 3 / 4 */

Test(synthetic_method, replayed_groups_without_a_common_host_are_under_way_at_once)
{
	const struct synthetic even_and_odd = {.groups = {{0, 2, 2}, {1, 2, 2}}, .n_groups = 2};

	replay(&even_and_odd, one_layer, "generation", MATRIX_BYTES, look_for_overlap);
	replay(&even_and_odd, one_layer, "forward", MATRIX_BYTES, look_for_overlap);
}

Test(synthetic_method, replayed_chains_of_groups_come_to_an_end_in_one_order)
{
	const struct synthetic chain = {.groups = {{0, 1, 2}, {1, 1, 2}, {2, 1, 2}}, .n_groups = 3};

	replay(&chain, one_layer, "generation", 2 * MATRIX_BYTES, look_for_turns);
	replay(&chain, one_layer, "forward", 2 * MATRIX_BYTES, look_for_turns);
}

Test(synthetic_method, replayed_iterations_are_ahead_by_the_staleness_and_no_more)
{
	for (uint32_t staleness = 0; staleness <= 3; staleness += 1 + staleness) {
		const struct synthetic all = {.groups = {{0}}, .n_groups = 1, .staleness = staleness};

		replay(&all, one_layer, "generation", MATRIX_BYTES * 3 / 2, look_for_staleness);
	}
}

Test(synthetic_method, replayed_groups_may_be_stale)
{
	const struct synthetic even_and_odd = {.groups = {{0, 2, 2}, {1, 2, 2}}, .n_groups = 2, .staleness = 3};

	replay(&even_and_odd, one_layer, "generation", MATRIX_BYTES, look_for_staleness);
}

static void look_for_rounds(const struct told *told, const struct psd_program *program,
			    const struct synthetic *synthetic)
{
	for (uint32_t t = 0; t < ITERATIONS; t++)
		for (unsigned host = 0; host < REPLAYED; host++)
			cr_expect(
				find_told(told, program, PSD_OP_COLLECTIVE, host, t, 2 * synthetic->n_more_rounds + 1),
				"iteration %u, host %u", t, host);
}

/* Layers of 1,136 and 504 values; a ring of four sends each quarter six times, in both rounds. */
Test(synthetic_method, replayed_rounds_of_several_layers_come_to_an_end_in_one_order)
{
	const struct synthetic twice = {.groups = {{0}}, .n_groups = 1, .n_more_rounds = 1};

	replay(&twice, two_layers, "generation", 2 * 6 * (1136 + 504) / 4 * 4, look_for_rounds);
}

/* ---- training ---- */

static struct training *train(const char *system, unsigned workers, const struct synthetic *synthetic)
{
	const bool is_together = !synthetic || synthetic->n_groups == 1; /* else workers differ, and are not compared */
	char keys[128];

	snprintf(keys, sizeof(keys), "iterations: %d, compare_every: %d, learning_rate: {policy: fixed, base: 0.01}",
		 3 * ITERATIONS, is_together ? 1 : 0);
	struct training *training = training_make("cifar10-quick.yaml", system, workers, 1, 4, 1, keys);

	if (synthetic)
		make_synthetic(&training->made, synthetic);
	return training_finish(training, system);
}

Test(synthetic_method, without_staleness_all_workers_train_as_by_rings)
{
	const struct synthetic all = {.groups = {{0}}, .n_groups = 1};
	struct training *by_rings = train("sync: ring", TRAINED, NULL);
	struct training *by_hand = train("sync: ring", TRAINED, &all);

	for (unsigned host = 0; host < TRAINED; host++)
		cr_expect(training_is_same(by_rings, 0, by_hand, host), "host %u", host);
	training_free(by_rings);
	training_free(by_hand);
}

/* Gradients of an iteration must outlive the layers of the next, else what is summed differs from worker to worker. */
Test(synthetic_method, stale_workers_end_with_the_same_parameters)
{
	for (uint32_t staleness = 1; staleness <= 3; staleness += 2) {
		const struct synthetic all = {.groups = {{0}}, .n_groups = 1, .staleness = staleness};
		struct training *training = train("sync: ring", TRAINED, &all);

		for (unsigned host = 1; host < TRAINED; host++)
			cr_expect(training_is_same(training, 0, training, host), "staleness %u, host %u", staleness,
				  host);
		training_free(training);
	}
}

Test(synthetic_method, each_group_trains_by_itself)
{
	const struct synthetic even_and_odd = {.groups = {{0, 2, 2}, {1, 2, 2}}, .n_groups = 2};
	const char *const systems[] = {"sync: ring", "sync: ring, priority: forward"};

	for (unsigned s = 0; s < 2; s++) {
		struct training *training = train(systems[s], 4, &even_and_odd);

		cr_expect(training_is_same(training, 0, training, 2), "%s", systems[s]);
		cr_expect(training_is_same(training, 1, training, 3), "%s", systems[s]);
		cr_expect_not(training_is_same(training, 0, training, 1), "%s", systems[s]);
		training_free(training);
	}
}
