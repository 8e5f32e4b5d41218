/* The network between workers changes times, never results: emulated links, links shaped by the processes themselves,
 * latency, several connections, several collectives at a time. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "tests/real/training.h"
#include "tests/test_with.h"

enum { BATCH = 4 };

#define ROUNDING_RATIO 1e-5

#define TRAIN "iterations: 4, optimiser: {momentum: 0.9}, learning_rate: {policy: fixed, base: 0.001}"

static struct training *make(const char *system, unsigned workers, const char *more)
{
	char train[256];

	snprintf(train, sizeof(train), "%s%s", TRAIN, more);
	return training_make("cifar10-quick.yaml", system, workers, 1, BATCH, 1, train);
}

static struct training *run(struct training *training)
{
	return training_finish(training, "a ground");
}

static void check_same_and_free(struct training *plain, struct training *other, unsigned workers)
{
	for (unsigned w = 0; w < workers; w++)
		cr_expect(training_is_same(plain, w, other, w), "worker %u", w);
	training_free(plain);
	training_free(other);
}

static const char *const systems[] = {"sync: ps", "sync: sfb", "sync: ring"};
enum { SYSTEMS = sizeof(systems) / sizeof(systems[0]) };

Test(cluster_kind, several_connections_carry_the_same_tensors)
{
	for (unsigned s = 0; s < SYSTEMS; s++)
		check_same_and_free(run(make(systems[s], 3, "")), run(make(systems[s], 3, ", streams: 3")), 3);
}

Test(cluster_kind, latency_and_shaped_links_change_no_bit)
{
	for (unsigned s = 0; s < SYSTEMS; s++) {
		struct training *shaped = make(systems[s], 3, ", streams: 2");

		shaped->options.cluster_kind = PSD_CLUSTER_SHAPED;
		shaped->loaded.scenario.network.latency_sec = 1e-3;
		check_same_and_free(run(make(systems[s], 3, "")), run(shaped), 3);
	}
}

/* The ends of a training are real ones: what a prediction adds for them would be there twice. With so much of it
 * nothing would move in time. */
Test(cluster_kind, only_predictions_add_the_latency_of_the_ends)
{
	struct training *shaped = make("sync: ps, host: {latency: 1000s}", 2, "");

	cr_assert_gt(shaped->made.plan.rates.latency_sec, shaped->options.worker.stall_sec);
	shaped->options.cluster_kind = PSD_CLUSTER_SHAPED;
	check_same_and_free(run(make("sync: ps", 2, "")), run(shaped), 2);
}

/* Lower bound: each of N nodes sends and receives 2 (N - 1) / N of the parameters in an iteration, at the rate of its
 * link, whatever its bucket lets pass at once. */
Test(cluster_kind, a_shaped_run_is_as_slow_as_its_links)
{
	struct training *shaped = make("sync: ring", 2, "");
	double least_sec;

	shaped->options.cluster_kind = PSD_CLUSTER_SHAPED;
	shaped->made.point.bandwidth_bps = 50e6;
	run(shaped);
	least_sec = 8.0 * (double)shaped->result.sent_bytes_per_node / 50e6;
	cr_assert_geq(shaped->result.iteration_sec, least_sec);
	training_free(shaped);
}

TEST_ROW(cluster_kind, rings_in_forward_order_change_no_bit,
	 check_same_and_free(run(make("schedule: wait-free, sync: ring", 3, "")),
			     run(make("schedule: wait-free, sync: ring, priority: forward, barrier: layer", 3, "")), 3))

/* Rings for some tensors, servers for others: no worker may hold its link for a ring while another still waits for a
 * part from it. */
Test(cluster_kind, rings_and_servers_do_not_wait_for_each_other)
{
	struct training *mixed =
		make("schedule: wait-free, sync: ring, barrier: layer, priority: forward", 4, ", streams: 2");
	unsigned n_servers = 0;
	struct psd_error err;

	for (unsigned i = 0; i < mixed->made.plan.n_items; i += 2) {
		mixed->made.plan.items[i].method = &psd_method_ps;
		n_servers++;
	}
	cr_assert_gt(mixed->made.plan.n_items, n_servers);
	psd_program_release(&mixed->made.program);
	cr_assert_eq(psd_program_make(&mixed->made.program, &mixed->made.plan, &err), PSD_OK, "%s", err.text);
	run(mixed);
	for (unsigned w = 1; w < 4; w++)
		cr_expect(training_is_same(mixed, 0, mixed, w), "worker %u", w);
	training_free(mixed);
}

/* Two numbers have one sum whatever their order, so that on two workers nothing changes; on three it is the same to
 * rounding. */
Test(cluster_kind, servers_may_add_in_order_of_arrival)
{
	struct training *apart = run(make("sync: ps, servers: 1", 3, ""));
	struct training *added = run(make("sync: ps, servers: 1", 3, ", deterministic: false"));
	double difference = 0, norm = 0;

	check_same_and_free(run(make("sync: ps", 2, "")), run(make("sync: ps", 2, ", deterministic: false")), 2);
	for (uint64_t e = 0; e < apart->loaded.costed.graph.parameters; e++) {
		difference += pow((double)apart->parameters[e] - (double)added->parameters[e], 2);
		norm += pow((double)apart->parameters[e], 2);
	}
	cr_assert_lt(sqrt(difference / norm), ROUNDING_RATIO);
	training_free(apart);
	training_free(added);
}

/* A test between two iterations waits until the first is complete on its worker, whatever is ready before by its rank.
 */
Test(cluster_kind, tests_between_iterations_neither_block_nor_change_anything)
{
	static const char more[] = ", test_every: 1, data: {kind: synthetic, training_samples: 12, test_samples: 8}";
	static const char *const pipelined[] = {"sync: ring, barrier: layer, priority: forward",
						"sync: hybrid, barrier: layer, priority: forward",
						"sync: ps, barrier: layer, priority: forward"};

	for (unsigned s = 0; s < sizeof(pipelined) / sizeof(pipelined[0]); s++) {
		struct training *tested = make(pipelined[s], 3, more);

		tested->options.worker.is_tested = true;
		check_same_and_free(run(make(pipelined[s], 3, more)), run(tested), 3);
	}
}
