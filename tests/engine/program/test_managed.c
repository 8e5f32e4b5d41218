/* Managed communication: bytes and seconds of an iteration, as means over a clock. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>
#include <math.h>

#include "engine/program/period.h"
#include "tests/simulate_helper.h"

#define TOLERANCE_RATIO 1e-9
#define HIDDEN_RATIO	0.01 /* norms overlap with the next iteration, whichever comes */

/* fidelity, system's keys. All 145,578 values are one bucket. */
#define SCENARIO                                                                                                       \
	"title: t\n"                                                                                                   \
	"model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 100}\n"                                 \
	"compute: {device: k20, samples_per_sec: 10000}\n"                                                             \
	"fidelity: %s\n"                                                                                               \
	"cluster: {nodes: 2, stack: none, network: {bandwidth: 1Gbps, latency: 50us}}\n"                               \
	"systems: [{name: A, sync: ring, fuse: 1MB%s}]\n"

#define MANAGED ", managed: {clock: 4, early: 25%, chunk: 1000}"

static struct psd_outcome predict(const char *fidelity, const char *keys, bool is_estimate)
{
	struct loaded loaded;
	struct psd_case made;

	loaded_print(&loaded, SCENARIO, fidelity, keys);
	loaded_case(&made, &loaded, 0, 0);
	const struct psd_outcome outcome = is_estimate ? estimated(&made) : simulated(&made);
	psd_case_release(&made);
	loaded_close(&loaded);
	return outcome;
}

/* 146 chunks, the last of 578 values. In a clock three iterations send 146 - floor(146 * 0.75) = 37 of 1000 values, and
 * one sends all. A ring of two sends half of the values twice, and so 146 norms in each iteration. */
Test(managed, a_node_sends_some_chunks_early_and_all_at_the_end_of_a_clock)
{
	const uint64_t bytes = 4 * (3 * 37 * 1000 + 145578 + 4 * 146) / 4;

	cr_expect_eq(predict("flow", MANAGED, true).sent_bytes_per_node, bytes);
	cr_expect_eq(predict("flow", MANAGED, false).sent_bytes_per_node, bytes);
	cr_expect_eq(predict("message", MANAGED, false).sent_bytes_per_node, bytes);
}

static void expect_early(const char *keys, uint32_t n, uint32_t n_sent, double values_ratio)
{
	const struct psd_early_chunks early[] = {predict("flow", keys, true).early, predict("flow", keys, false).early};

	for (unsigned i = 0; i < 2; i++) {
		cr_expect_eq(early[i].n, n, "%s: %u chunks", keys, early[i].n);
		cr_expect_eq(early[i].n_sent, n_sent, "%s: %u chunks are sent", keys, early[i].n_sent);
		cr_expect_float_eq(early[i].values_ratio, values_ratio, TOLERANCE_RATIO, "%s: %.17g", keys,
				   early[i].values_ratio);
	}
}

/* The chunks of above; 1 of 5 is the least that can be sent, 32000 of 145578 values; one chunk has all values. */
Test(managed, predictions_count_the_chunks_that_are_sent_early)
{
	expect_early(MANAGED, 146, 37, 3 * 37000.0 / (3 * 37000 + 145578));
	expect_early(", managed: {clock: 4, early: 1%}", 5, 1, 3 * 32000.0 / (3 * 32000 + 145578));
	expect_early(", managed: {clock: 4, early: 1%, chunk: 150000}", 1, 1, 3.0 / 4);
	expect_early("", 0, 0, 0);
}

Test(managed, predictions_know_the_period)
{
	cr_expect_eq(predict("flow", MANAGED, true).period, 4);
	cr_expect_eq(predict("flow", MANAGED, false).period, 4);
	cr_expect_eq(predict("flow", ", local_sgd: {steps: 3}", false).period, 3);
	cr_expect_eq(predict("flow", "", true).period, 1);
}

/* As sparse iterations with these chunks, and with all. */
static void expect_mean(const char *fidelity, bool is_estimate)
{
	const double some = predict(fidelity, ", sparse: {sparsity: 75%, chunk: 1000}", is_estimate).iteration_sec;
	const double all = predict(fidelity, ", sparse: {sparsity: 0%, chunk: 1000}", is_estimate).iteration_sec;
	const double mean = predict(fidelity, MANAGED, is_estimate).iteration_sec, expected = (3 * some + all) / 4;

	cr_expect_float_eq(mean, expected, HIDDEN_RATIO * expected, "%s%s: %g s, expected %g", fidelity,
			   is_estimate ? ", estimate" : "", mean, expected);
}

Test(managed, an_iteration_takes_the_mean_of_both_kinds)
{
	expect_mean("flow", true);
	expect_mean("flow", false);
	expect_mean("message", false);
}

static void expect_sec(const char *keys, double expected)
{
	const double sec[] = {predict("flow", keys, true).iteration_sec, predict("flow", keys, false).iteration_sec,
			      predict("message", keys, false).iteration_sec};

	for (unsigned i = 0; i < 3; i++)
		cr_expect_float_eq(sec[i], expected, TOLERANCE_RATIO * expected, "%s: %.17g s, expected %.17g", keys,
				   sec[i], expected);
}

/* A narrow budget is never idle: the bytes of above, 1448 of 1547 on the link, and the latency of two rings of two
 * messages. With a wide one the
 * end of a clock overlaps with as many iterations of 10 ms as the bound allows. */
Test(managed, with_stale_reads_an_iteration_takes_what_the_slower_of_sending_and_computing_takes)
{
	const double bytes = 4 * (3 * 37 * 1000 + 145578 + 4 * 146) / 4.0;

	expect_sec(", budget: 10Mbps, staleness: 2, reads: stale" MANAGED,
		   8 * bytes * 1547 / 1448 / 10e6 + 2 * 2 * 50e-6);
	expect_sec(", staleness: 5, reads: stale" MANAGED, 0.01);
}

static double early_of(const char *keys)
{
	struct loaded loaded;
	struct psd_case made;

	loaded_print(&loaded, SCENARIO, "flow", keys);
	loaded_case(&made, &loaded, 0, 0);
	const double ratio = made.plan.managed->early_ratio;
	psd_case_release(&made);
	loaded_close(&loaded);
	return ratio;
}

/* 100 samples take 10 ms, in which 100 Mbit/s are 125,000 bytes with headers, for 582,312 without. */
Test(managed, early_chunks_are_as_many_as_the_budget_carries_meanwhile)
{
	const double ratio = early_of(", budget: 100Mbps, managed: {clock: 4}");

	cr_expect_float_eq(ratio, 125000.0 * 1448 / 1547 / 582312.0, TOLERANCE_RATIO, "%.17g", ratio);
	cr_expect_eq(early_of(", budget: 800Mbps, managed: {clock: 4}"), 1.0);
	cr_expect_eq(early_of(", budget: 100Mbps, managed: {clock: 4, early: 3%}"), 0.03);
}

/* Operations of a clock's last iteration, and of the others. */
Test(managed, an_operation_is_due_in_iterations_of_its_kind)
{
	const struct psd_period period = psd_period_make(4, 0, 10); /* 3, 7 and the last, 9, exchange */
	const struct psd_op all = {.is_exchange = true}, some = {.is_between = true}, any = {.item = 0};

	cr_expect(psd_op_is_due(&all, &period, 3) && !psd_op_is_due(&some, &period, 3));
	cr_expect(!psd_op_is_due(&all, &period, 4) && psd_op_is_due(&some, &period, 4));
	cr_expect(psd_op_is_due(&any, &period, 3) && psd_op_is_due(&any, &period, 4));
	cr_expect_eq(psd_op_next(&all, &period, 4), 7);
	cr_expect_eq(psd_op_next(&all, &period, 8), 9, "a run ends with all");
	cr_expect_eq(psd_op_next(&some, &period, 3), 4);
	cr_expect_eq(psd_op_next(&some, &period, 4), 4);
	cr_expect_eq(psd_op_next(&any, &period, 3), 3);
	cr_expect_eq(psd_op_times(&all, 12, 3), 3);
	cr_expect_eq(psd_op_times(&some, 12, 3), 9);
	cr_expect_eq(psd_op_times(&any, 12, 3), 12);
}
