/* Replays: the bytes of the program, times that are never shorter than what is predicted of them, messages of a share
 * of their size, no memory for tensors, and an end with a reason where the machine was not true to the times. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "real/cluster/launch.h"
#include "real/replay/repeated_memory.h"
#include "real/replay/replay.h"
#include "tests/cli_helper.h"
#include "tests/loaded_helper.h"
#include "tests/scratch_folder.h"
#include "tests/test_with.h"

#define WITHIN_SEC     60.0
#define SAME_SUM_RATIO 1e-9 /* the same seconds, added in another order */

TestSuite(replay, .timeout = 120);

/* A case, and what its replay on loopback had to say. */
struct replayed {
	struct loaded loaded;
	struct psd_case made;
	struct psd_worker_result result;
};

static void make(struct replayed *replayed, const char *bandwidth, const char *system, const char *emulation)
{
	loaded_print(&replayed->loaded,
		     "title: t\nmodel: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 8}\n"
		     "compute: {device: titan-x, samples_per_sec: 800, replay: true}\n%s\n"
		     "cluster: {stack: none, nodes: 3, network: {bandwidth: %s, latency: 50us}, host: {copy: 1GBps, "
		     "reduce: 1GBps, "
		     "iteration: 1ms, collective: [{call: 1ms, step: 100us}]}}\nsystems:\n  - {name: s, %s}\n",
		     emulation, bandwidth, system);
	loaded_case(&replayed->made, &replayed->loaded, 0, 0);
}

static void replay_at(const char *bandwidth, enum psd_cluster_kind cluster_kind, struct replayed *replayed,
		      const char *system, const char *emulation)
{
	struct psd_error err = {.text = ""};
	struct psd_launch_options launch = {
		.worker.made = &replayed->made,
		.worker.train = &replayed->loaded.scenario.train,
		.worker.replay = &replayed->loaded.scenario.replay,
		.worker.n_iterations = 4,
		.cluster_kind = cluster_kind,
		.worker.connect_sec = WITHIN_SEC,
		.worker.stall_sec = WITHIN_SEC,
	};

	make(replayed, bandwidth, system, emulation);
	cr_assert_eq(psd_launch(&launch, &replayed->result, &err), PSD_OK, "%s", err.text);
}

static void replay_on(enum psd_cluster_kind cluster_kind, struct replayed *replayed, const char *system,
		      const char *emulation)
{
	replay_at("1Gbps", cluster_kind, replayed, system, emulation);
}

static void replay(struct replayed *replayed, const char *system, const char *emulation)
{
	replay_on(PSD_CLUSTER_LOOPBACK, replayed, system, emulation);
}

static void release(struct replayed *replayed)
{
	psd_case_release(&replayed->made);
	loaded_close(&replayed->loaded);
}

static const char *const systems[] = {
	"schedule: sequential, sync: ps",
	"schedule: wait-free, sync: ps, servers: 2",
	"schedule: wait-free, sync: sfb",
	"schedule: wait-free, sync: adam",
	"schedule: wait-free, sync: ring",
	"schedule: wait-free, sync: two-level-ps",
	"schedule: wait-free, sync: two-level-sfb",
	"schedule: wait-free, sync: ps, compress: {by: one-bit}",
	"schedule: sequential, sync: ps, servers: 2, compress: {by: top-k, kept: 5%, tensors: matrices}",
	"schedule: wait-free, sync: ring, low_rank: {rank: 2}",
	"schedule: sequential, sync: two-level, fuse: 64KiB, low_rank: {rank: 4}",
};
enum { N_SYSTEMS = sizeof(systems) / sizeof(systems[0]) };

/* ---- bytes and times ---- */

static void expect_bytes_of_system(const char *system, const char *emulation)
{
	struct replayed replayed;

	replay(&replayed, system, emulation);
	cr_expect_eq(replayed.result.sent_bytes_per_node, most_sent_bytes(&replayed.made), "%s: %llu", system,
		     (unsigned long long)replayed.result.sent_bytes_per_node);
	release(&replayed);
}

/* Periods of two iterations, in which a worker of three sends its factors to one other and then to the other. */
static void expect_bytes_of_turns(const char *emulation)
{
	struct replayed replayed;
	uint64_t most = 0;

	replay(&replayed, "sync: sfb, peers: 1, local_sgd: {steps: 2}", emulation);
	for (unsigned node = 0; node < 3; node++) {
		const uint64_t bytes = psd_program_mean_traffic(&replayed.made.program, node).sent_bytes;

		most = bytes > most ? bytes : most;
	}
	cr_expect_eq(replayed.result.sent_bytes_per_node, most, "%lu of %lu", replayed.result.sent_bytes_per_node,
		     most);
	release(&replayed);
}

TEST_ROW(replay, sends_factors_to_peers_in_turn, expect_bytes_of_turns(""))
TEST_ROW(replay, tells_the_bytes_of_peers_where_it_sent_a_share,
	 expect_bytes_of_turns("emulation: {payload_scale: 1%}"))

static void expect_bytes_of_program(const char *emulation)
{
	char system[64];

	for (unsigned s = 0; s < N_SYSTEMS; s++)
		expect_bytes_of_system(systems[s], emulation);
	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++) {
		snprintf(system, sizeof(system), "sync: %s", psd_all_reduces[p]->name);
		expect_bytes_of_system(system, emulation);
	}
}

TEST_ROW(replay, sends_the_bytes_of_the_program, expect_bytes_of_program(""))
TEST_ROW(replay, sends_the_norms_of_parts,
	 expect_bytes_of_system("schedule: wait-free, sync: zero-3",
				"train: {iterations: 4, data: {kind: synthetic, training_samples: 96}, optimiser: "
				"{kind: lars, clip: 1}, learning_rate: {policy: fixed, base: 1}}"))
TEST_ROW(replay, tells_the_bytes_of_whole_messages_where_it_sent_a_share,
	 expect_bytes_of_program("emulation: {payload_scale: 1%}"))

/* Half of the bytes, whole messages or a share of them, and conversions that take their time: at this rate longer than
 * all else. */
#define SLOW ", host: {reduce: 40MBps, update: 40MBps}"

static void check_encoded(const char *sync, const char *wire, const char *emulation)
{
	struct replayed exact, rounded;
	char system[96];
	double convert_sec = 0.0;

	snprintf(system, sizeof(system), "schedule: sequential, sync: %s" SLOW, sync);
	replay(&exact, system, emulation);
	snprintf(system, sizeof(system), "schedule: sequential, sync: %s, wire: %s" SLOW, sync, wire);
	replay(&rounded, system, emulation);
	cr_expect_eq(2 * rounded.result.sent_bytes_per_node, exact.result.sent_bytes_per_node, "%s %s", system,
		     emulation);
	cr_expect_eq(rounded.result.sent_bytes_per_node, most_sent_bytes(&rounded.made), "%s %s", system, emulation);
	for (uint32_t i = 0; i < rounded.made.program.n_ops; i++) {
		const struct psd_op *op = &rounded.made.program.ops[i];

		if (op->kind == PSD_OP_CONVERT && psd_op_runs_on(op, &rounded.made.plan.layout, 0))
			convert_sec += op->work_sec;
	}
	cr_expect_gt(convert_sec, 0.0);
	cr_expect_geq(rounded.result.iteration_sec,
		      (1 - SAME_SUM_RATIO) * (rounded.loaded.costed.costs.compute_sec + convert_sec), "%s: %g s",
		      system, rounded.result.iteration_sec);
	release(&exact);
	release(&rounded);
}

Test(replay, rounded_values_are_half_of_the_bytes_and_converted)
{
	static const char *const syncs[] = {"ps", "ps, servers: 2", "sfb", "hybrid", "adam", "ring", "double-tree"};

	for (unsigned s = 0; s < sizeof(syncs) / sizeof(syncs[0]); s++) {
		check_encoded(syncs[s], s % 2 ? "fp16" : "bf16", "");
		check_encoded(syncs[s], s % 2 ? "bf16" : "fp16", "emulation: {payload_scale: 1%}");
	}
}

struct collectives {
	unsigned n;
	uint64_t bytes;
};

static void count_collective(void *context, const struct psd_program *program, const struct psd_span *span)
{
	struct collectives *collectives = context;

	if (program->ops[span->task.op].kind != PSD_OP_COLLECTIVE)
		return;
	collectives->n++;
	collectives->bytes += span->bytes;
}

/* 145578 floats in ten tensors, from the last layer on in bytes: 2560, 40, 262144; 256, 204800; 256, 102400, 128, 9600,
 * 128. Each of the first two runs is as long as it must be, the third is the rest. */
Test(replay, gathers_tensors_into_few_collectives)
{
	const uint32_t n_iterations = 4, n_workers = 3;
	struct collectives collectives = {0, 0};
	struct psd_error err = {.text = ""};
	struct replayed replayed;
	struct psd_spans spans;

	make(&replayed, "1Gbps", "sync: ring, fuse: 200KiB", "");
	cr_assert_eq(psd_spans_open(&spans, n_workers, &err), PSD_OK, "%s", err.text);
	const struct psd_launch_options launch = {
		.worker.made = &replayed.made,
		.worker.train = &replayed.loaded.scenario.train,
		.worker.replay = &replayed.loaded.scenario.replay,
		.worker.n_iterations = n_iterations,
		.cluster_kind = PSD_CLUSTER_LOOPBACK,
		.worker.connect_sec = WITHIN_SEC,
		.worker.stall_sec = WITHIN_SEC,
		.spans = &spans,
	};
	cr_assert_eq(psd_launch(&launch, &replayed.result, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_spans_tell(&spans, &replayed.made.program, count_collective, &collectives, &err), PSD_OK, "%s",
		     err.text);
	cr_expect_eq(collectives.n, 3 * n_iterations * n_workers, "%u", collectives.n);
	cr_expect_eq(collectives.bytes, UINT64_C(4) * 145578 * n_iterations * n_workers);
	cr_expect_eq(replayed.result.sent_bytes_per_node, most_sent_bytes(&replayed.made));
	psd_spans_close(&spans);
	release(&replayed);
}

/* The parts of the iteration are all of it. */
static void expect_whole(const struct psd_worker_result *result)
{
	const struct psd_parts *parts = &result->parts;
	const double sum_sec =
		parts->compute_sec + parts->other_work_sec + parts->exposed_comm_sec + parts->other_waiting_sec;

	cr_expect_float_eq(sum_sec, result->iteration_sec, SAME_SUM_RATIO * result->iteration_sec, "%.9f s of %.9f s",
			   sum_sec, result->iteration_sec);
}

/* Without what a rebuild from factors has taken over. */
static double forward_and_backward_sec(const struct psd_program *program)
{
	double sec = 0.0;

	for (const struct psd_op *op = program->ops; op < program->ops + program->n_ops; op++)
		if (op->kind == PSD_OP_FORWARD || op->kind == PSD_OP_BACKWARD)
			sec += op->work_sec;
	return sec;
}

/* Two of the four iterations are measured, and one of these exchanges, or each exchanges one of two fragments. */
static void check_local_steps(const char *keys)
{
	static const char *const syncs[] = {"ps", "ps, servers: 2", "two-level-ps", "ring", "double-tree"};

	for (unsigned s = 0; s < sizeof(syncs) / sizeof(syncs[0]); s++) {
		struct replayed replayed;
		char system[96];

		snprintf(system, sizeof(system), "sync: %s, local_sgd: {steps: 2%s}", syncs[s], keys);
		replay(&replayed, system, s % 2 ? "" : "emulation: {payload_scale: 1%}");
		cr_expect_eq(replayed.result.sent_bytes_per_node, most_sent_bytes(&replayed.made) / 2, "%s: %lu",
			     system, (unsigned long)replayed.result.sent_bytes_per_node);
		cr_expect_geq(replayed.result.iteration_sec, replayed.loaded.costed.costs.compute_sec);
		expect_whole(&replayed.result);
		release(&replayed);
	}
}

TEST_ROW(replay, local_steps_send_what_one_of_them_does, check_local_steps(""))
TEST_ROW(replay, fragments_send_what_one_local_step_does, check_local_steps(", fragments: 2"))
TEST_ROW(replay, late_exchanges_send_what_one_local_step_does, check_local_steps(", delay: 1"))

/* All micro-batches are waited for, and exchanged once. */
Test(replay, micro_batches_send_what_one_of_them_does)
{
	static const char *const syncs[] = {"ps", "ps, servers: 2", "sfb", "ring"};

	for (unsigned s = 0; s < sizeof(syncs) / sizeof(syncs[0]); s++) {
		struct replayed replayed;
		char system[64];

		snprintf(system, sizeof(system), "sync: %s, accumulate: 3", syncs[s]);
		replay(&replayed, system, s % 2 ? "" : "emulation: {payload_scale: 1%}");
		const double compute_sec = forward_and_backward_sec(&replayed.made.program);

		cr_expect_eq(replayed.result.sent_bytes_per_node, most_sent_bytes(&replayed.made), "%s: %lu", syncs[s],
			     (unsigned long)replayed.result.sent_bytes_per_node);
		cr_expect_gt(compute_sec, 2 * replayed.loaded.costed.costs.compute_sec);
		cr_expect_float_eq(replayed.result.parts.compute_sec, compute_sec, SAME_SUM_RATIO * compute_sec);
		expect_whole(&replayed.result);
		release(&replayed);
	}
}

/* On loopback the network takes no time of its own, so the compute and the barrier are what an iteration cannot be
 * shorter than. */
Test(replay, takes_as_long_as_predicted_in_the_seconds_of_the_cluster)
{
	static const char *const emulations[] = {"", "emulation: {dilation: 3.5}"};

	for (unsigned e = 0; e < 2; e++)
		for (unsigned s = 0; s < N_SYSTEMS; s++) {
			struct replayed replayed;

			replay(&replayed, systems[s], emulations[e]);
			const double compute_sec = forward_and_backward_sec(&replayed.made.program);

			cr_expect_float_eq(replayed.result.parts.compute_sec, compute_sec,
					   SAME_SUM_RATIO * compute_sec);
			expect_whole(&replayed.result);
			cr_expect_geq(replayed.result.iteration_sec,
				      (1 - SAME_SUM_RATIO) * (replayed.loaded.costed.costs.compute_sec + 1e-3));
			release(&replayed);
		}
}

/* A ring's own costs are waited for even where the network is quick: the class's call and steps. */
Test(replay, waits_for_what_a_ring_costs_beside_the_network)
{
	struct replayed replayed;
	double ring_sec = 0.0;

	replay(&replayed, "schedule: sequential, sync: ring", "");
	for (uint32_t i = 0; i < replayed.made.program.n_ops; i++)
		if (replayed.made.program.ops[i].kind == PSD_OP_COLLECTIVE)
			ring_sec += 1e-3 + 4 * 100e-6; /* three workers: four steps */
	cr_expect_gt(ring_sec, 0.0);
	cr_expect_geq(replayed.result.iteration_sec,
		      (1 - SAME_SUM_RATIO) * (replayed.loaded.costed.costs.compute_sec + 1e-3 + ring_sec));
	release(&replayed);
}

/* Where the machine cannot make links, processes keep to their rate: slower by the dilation, and by as much as messages
 * are smaller. Compute and the ways to the servers and back follow one another, and what a bucket lets pass at once
 * does not count as arrived. */
Test(replay, has_links_as_slow_as_everything_else)
{
	const double link_bps = 1e9;
	struct replayed replayed;

	replay_on(PSD_CLUSTER_SHAPED, &replayed, "schedule: sequential, sync: ps",
		  "emulation: {dilation: 2, payload_scale: 50%}");
	cr_expect_geq(replayed.result.iteration_sec, replayed.loaded.costed.costs.compute_sec +
							     8 * (double)most_sent_bytes(&replayed.made) / link_bps);
	release(&replayed);
}

/* Two ways in sequence, each as late as the cluster's links and ends; a quick machine's own latency counts towards it,
 * so it is asked for a little less. */
Test(replay, messages_are_as_late_as_the_links_and_ends_of_the_cluster)
{
	const double host_latency_sec = 20e-3;
	struct replayed replayed;

	replay_on(PSD_CLUSTER_SHAPED, &replayed, "schedule: sequential, sync: ps, host: {latency: 20ms}",
		  "emulation: {dilation: 2}");
	cr_expect_geq(replayed.result.iteration_sec,
		      replayed.loaded.costed.costs.compute_sec + 0.9 * 2 * host_latency_sec);
	release(&replayed);
}

/* The steps of a ring wait for each other, so its bytes' time and its latencies add up; but a link lets some
 * milliseconds of it pass at once after each latency, which is all of a step's bytes here. */
Test(replay, bytes_of_a_ring_do_not_hide_behind_its_latencies)
{
	const double link_bps = 400e6, latency_sec = 2e-3;
	const char *const system = "schedule: sequential, sync: ring, host: {latency: 1950us}";
	double ring_sec = 0.0;
	struct replayed replayed;
	struct psd_error err;

	make(&replayed, "400Mbps", system, "");
	if (psd_launch_try_emulation(&replayed.made, &replayed.loaded.scenario.replay, &err) != PSD_OK) {
		release(&replayed);
		cr_skip_test("%s", err.text);
	}
	release(&replayed);
	replay_at("400Mbps", PSD_CLUSTER_EMULATED, &replayed, system, "emulation: {dilation: 2}");
	for (uint32_t i = 0; i < replayed.made.program.n_ops; i++)
		if (replayed.made.program.ops[i].kind == PSD_OP_COLLECTIVE)
			ring_sec += 1e-3 + 4 * (100e-6 + 10e-6 + latency_sec);
	cr_expect_geq(replayed.result.iteration_sec, replayed.loaded.costed.costs.compute_sec + ring_sec +
							     8 * (double)most_sent_bytes(&replayed.made) / link_bps);
	release(&replayed);
}

/* ---- memory ---- */

Test(replay, memory_of_any_length_is_one_small_piece)
{
	const uint64_t n_bytes = UINT64_C(8) << 30;
	struct psd_repeated_memory repeated;
	struct psd_error err;
	struct rusage before, after;
	const char *bytes;

	cr_assert_eq(psd_repeated_memory_open(&repeated, n_bytes, &err), PSD_OK, "%s", err.text);
	cr_assert_geq(repeated.length_bytes, n_bytes);
	bytes = repeated.base;
	getrusage(RUSAGE_SELF, &before);
	for (uint64_t at = 0; at < n_bytes; at += 1 << 20)
		((char *)repeated.base)[at] = 1;
	getrusage(RUSAGE_SELF, &after);
	cr_expect_eq(bytes[n_bytes - (1 << 20)], 1);
	cr_expect_lt(after.ru_maxrss - before.ru_maxrss, 64 << 10, "KiB");
	psd_repeated_memory_close(&repeated);
}

/* ---- is it true ---- */

static struct psd_worker_result result_of(double own_sec, double busy_sec, double late_sec)
{
	return (struct psd_worker_result){.iteration_sec = 1,
					  .late_sec = late_sec,
					  .own_cpu_sec = own_sec,
					  .busy_cpu_sec = busy_sec,
					  .machine_cpu_sec = 10};
}

Test(replay, a_replay_on_an_idle_machine_that_is_in_time_is_true)
{
	const struct psd_worker_result idle = result_of(7, 7, 0.02);
	const struct psd_replay at_1 = {.dilation_ratio = 1, .payload_ratio = 1};
	struct psd_error err;

	cr_expect(psd_replay_is_true(&idle));
	cr_expect_eq(psd_replay_check(&idle, &at_1, "s", &err), PSD_OK);
}

/* Sounded at 20 first; what one asks for is where the next is. */
static bool sound(struct psd_soundings *soundings, double own_sec, double late_sec)
{
	const struct psd_worker_result result = result_of(own_sec, own_sec, late_sec);

	return psd_replay_sound(soundings, &result);
}

Test(replay, soundings_end_with_one_that_is_half_as_late_as_allowed)
{
	struct psd_soundings soundings = {.next_ratio = 20};

	cr_expect(sound(&soundings, 1, 0.05)); /* 5 % where 1 % is looked for */
	cr_expect_float_eq(soundings.next_ratio, 100.0, 0);
	cr_expect_not(soundings.is_true);
	cr_expect_not(sound(&soundings, 1, 0.01));
	cr_expect(soundings.is_true);
	cr_expect_float_eq(soundings.dilation_ratio, 100.0, 0);
	cr_expect_float_eq(soundings.result.late_sec, 0.01, 0);
}

Test(replay, soundings_go_back_to_the_last_that_was_true)
{
	struct psd_soundings soundings = {.next_ratio = 20};

	cr_expect(sound(&soundings, 1, 0.015)); /* true, but a whole run's might not be: 20 * 1.5 */
	cr_expect_float_eq(soundings.next_ratio, 30.0, 0);
	while (sound(&soundings, 1, 0.03))
		;
	cr_expect_eq(soundings.n_runs, 6);
	cr_expect(soundings.is_true);
	cr_expect_float_eq(soundings.dilation_ratio, 20.0, 0);
	cr_expect_float_eq(soundings.result.late_sec, 0.015, 0);
}

Test(replay, soundings_of_which_none_was_true_leave_the_last)
{
	struct psd_soundings soundings = {.next_ratio = 20};

	while (sound(&soundings, 1, 0.03))
		;
	cr_expect_not(soundings.is_true);
	cr_expect_float_eq(soundings.dilation_ratio, 20.0 * 3 * 3 * 3 * 3 * 3, 1e-9); /* 3 % where 1 % is looked for */
}

Test(replay, a_replay_that_was_not_true_is_run_again_as_after_a_sounding)
{
	const struct psd_worker_result in_time = result_of(7, 7, 0.02), late = result_of(1, 1, 0.03),
				       others = result_of(1, 9, 0.03), disturbed = result_of(1, 1, 0.5);
	double dilation_ratio = 20.0;

	cr_expect_not(psd_replay_again(&in_time, &dilation_ratio));
	cr_expect_not(psd_replay_again(&others, &dilation_ratio)); /* busy with 80 % that no dilation makes less */
	cr_expect_float_eq(dilation_ratio, 20.0, 0);
	cr_expect(psd_replay_again(&late, &dilation_ratio));
	cr_expect_float_eq(dilation_ratio, 60.0, 1e-9); /* 3 % where 1 % is looked for */
	cr_expect(psd_replay_again(&disturbed, &dilation_ratio));
	cr_expect_float_eq(dilation_ratio, 4 * 60.0, 1e-9); /* not 50 times as long */
}

Test(replay, a_replay_that_is_not_true_names_the_dilation_at_which_it_would_be)
{
	static const struct {
		double own_sec, busy_sec, late_sec;
		const char *expected;
	} cases[] = {
		/* 90 % where 70 % may be: 20 * 9/7 = 25.7 */
		{9, 9, 0,
		 "s: at dilation 20 this machine was busy for 90 % of the time, must be 70 % or less; use --dilation "
		 "26"},
		/* others have 21 %, which leaves 49 % for what took 59 %: 20 * 59/49 = 24.1 */
		{5.9, 8, 0,
		 "s: at dilation 20 this machine was busy for 80 % of the time, must be 70 % or less; use --dilation "
		 "25"},
		/* 5 % where 2 % may be: 20 * 5/2 */
		{1, 1, 0.05,
		 "s: at dilation 20 timers of this machine were late by 5.0 % of an iteration, must be 2 % or less; "
		 "use --dilation 50"},
		{1, 9, 0,
		 "s: this machine was busy for 90 % of the time, must be 70 % or less, and mostly with other programs: "
		 "no dilation helps"},
		/* others have 55 %, too much to tell what a longer run would be like */
		{0.5, 6, 0.05,
		 "s: timers of this machine were late by 5.0 % of an iteration, must be 2 % or less, and mostly other "
		 "programs kept it busy: no dilation helps"},
	};

	const struct psd_replay at_20 = {.dilation_ratio = 20, .payload_ratio = 1};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct psd_worker_result result =
			result_of(cases[i].own_sec, cases[i].busy_sec, cases[i].late_sec);
		struct psd_error err = {.text = "accepted"};

		cr_expect_eq(psd_replay_check(&result, &at_20, "s", &err), PSD_ERUN);
		cr_expect_str_eq(err.text, cases[i].expected);
	}
}

/* The latency that this machine adds to a ring's steps matters, until times are so long that it does not. */
Test(replay, dilation_for_messages_is_the_least_that_is_accepted)
{
	struct replayed replayed;
	struct psd_error err = {.text = ""};
	double dilation_ratio = 0.0;
	char advice[64];

	make(&replayed, "1Gbps", "sync: ring", "");
	cr_assert_eq(psd_replay_estimate(&replayed.made, 1.0, &dilation_ratio, &err), PSD_OK);
	cr_assert_gt(dilation_ratio, 1.0);
	cr_expect_eq(psd_replay_check_messages(&replayed.made, dilation_ratio, &err), PSD_OK);
	cr_expect_eq(psd_replay_check_messages(&replayed.made, dilation_ratio - 1.0, &err), PSD_ERUN);
	snprintf(advice, sizeof(advice), "must be 2 %% or less; use --dilation %.0f", dilation_ratio);
	cr_expect_not_null(strstr(err.text, advice), "%s", err.text);
	release(&replayed);
}

/* Three nodes at 100 Gbit/s are 37.5 GB/s, of which a quarter is sent: a machine that moves 1 GB/s needs 9.4 times as
 * long. */
Test(replay, dilation_for_busy_links_is_what_the_machine_moves)
{
	struct replayed replayed;
	struct psd_error err = {.text = ""};
	double dilation_ratio = 0.0;

	make(&replayed, "1Gbps", "sync: ps", "emulation: {payload_scale: 0.25}");
	replayed.made.plan.rates.send_bps = 100e9;
	cr_assert_eq(psd_replay_estimate(&replayed.made, 0.25, &dilation_ratio, &err), PSD_OK);
	cr_expect_eq(dilation_ratio, 10.0);
	release(&replayed);
}

/* ---- the command ---- */

static const char tiny_model[] = "name: tiny\ninput: {channels: 16}\nlayers:\n"
				 "  - {name: fc1, kind: inner-product, outputs: 8}\n"
				 "  - {name: loss, kind: softmax-loss}\n";

/* A layer takes nanoseconds at most on this device, so timers of any machine are late. */
static const char tiny_scenario[] =
	"title: tiny\nmodel: {graph: tiny.yaml, batch_per_worker: 1}\n"
	"compute: {device: h100, replay: true}\n"
	"cluster: {stack: none, nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
	"systems:\n  - {name: PS, schedule: sequential, sync: ps, host: {iteration: 1us}}\n";

static struct run run_scenario(const char *scenario, const char *options, const char *redirections)
{
	const struct scratch_folder folder = scratch_folder_make();
	char arguments[1024];
	struct run run;

	scratch_folder_write(&folder, "tiny.yaml", tiny_model, strlen(tiny_model));
	scratch_folder_write(&folder, "s.yaml", scenario, strlen(scenario));
	snprintf(arguments, sizeof(arguments), "--no-emulation --quiet %s %s/s.yaml", options, folder.path);
	run = run_program("psd-run", arguments, redirections);
	scratch_folder_remove(&folder);
	return run;
}

static struct run run_tiny(const char *options, const char *redirections)
{
	return run_scenario(tiny_scenario, options, redirections);
}

Test(replay, fails_where_time_is_too_quick)
{
	struct run run = run_tiny("", "2>&1 >/dev/null");

	cr_expect_eq(run.exit_status, 1, "%s", run.text);
	cr_expect_eq(strncmp(run.text, "psd-run: PS: ", 13), 0, "%s", run.text);
	free(run.text);
}

/* Slow would take an hour: the time limit shows whether it has begun. */
Test(replay, a_replay_with_one_system_that_is_too_quick_begins_with_none)
{
	static const char text[] =
		"title: tiny\nmodel: {graph: tiny.yaml, batch_per_worker: 1}\n"
		"compute: {device: h100, replay: true}\n"
		"cluster: {stack: none, nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
		"systems:\n  - {name: Slow, schedule: sequential, sync: ps, host: {iteration: 1000s}}\n"
		"  - {name: Quick, schedule: sequential, sync: ps}\n";
	struct run run = run_scenario(text, "", "2>&1");

	cr_expect_eq(run.exit_status, 1, "%s", run.text);
	cr_expect_eq(strncmp(run.text, "psd-run: Quick: at dilation 1 ", 30), 0, "%s", run.text);
	free(run.text);
}

/* At this dilation an iteration takes a second, of which timers are late by less than 2 %; a machine that others keep
 * busy may fail all the same, but then with that as its reason. */
Test(replay, needs_no_training_job_and_leaves_a_row)
{
	struct run run = run_tiny("--csv --iterations 3 --set systems.0.host.iteration=10ms --dilation 100", "2>&1");

	cr_expect(strstr(run.text, "% of the time") || strstr(run.text, "timers of this machine were late") ||
			  strstr(run.text, "\ntiny,PS,real-replay,2,2,,"),
		  "%s", run.text);
	free(run.text);
}

Test(replay, option_for_dilation_is_checked_as_the_key)
{
	struct run run = run_tiny("--dilation 0.5", "2>&1 >/dev/null");

	cr_expect_eq(run.exit_status, 2);
	cr_expect_str_eq(run.text, "--dilation: 'dilation' is '0.5', must be 'auto' or a number from 1 to 1000000\n");
	free(run.text);
	expect_one_line("psd-run", "--dilation 2 scenarios/quickstart.yaml", 2,
			"'emulation' has no effect where 'compute.replay' is 'false', only with true");
}

/* ---- beside real workers ---- */

/* An iteration lasts a second, which no layer does, and workers that replay compute for 50 ms, which no other does. */
static const char mixed_scenario[] =
	"title: tiny\nmodel: {graph: tiny.yaml, batch_per_worker: 1}\n"
	"compute: {device: h100, replay: true, real_workers: 1, samples_per_sec: 20}\n"
	"cluster: {stack: none, nodes: 3, network: {bandwidth: 1Gbps, latency: 50us}}\n"
	"systems:\n  - {name: PS, schedule: sequential, sync: ps, host: {iteration: 1s}}\n"
	"train: {data: {kind: synthetic}, iterations: 3, learning_rate: {policy: fixed, base: 0.1}}\n";

/* There is no loss: a worker that computes on zeros does not train. */
Test(replay, real_workers_leave_a_row_of_their_own_word)
{
	struct run csv = run_scenario(mixed_scenario, "--csv", "2>&1");
	struct run table = run_scenario(mixed_scenario, "", "2>&1");

	cr_expect(strstr(csv.text, "% of the time") || strstr(csv.text, "timers of this machine were late") ||
			  strstr(csv.text, "\ntiny,PS,real-cpu-replay,3,3,,"),
		  "%s", csv.text);
	cr_expect(strstr(table.text, "% of the time") || strstr(table.text, "timers of this machine were late") ||
			  (strstr(table.text, "replay    beside 1 worker that computes on zeros from the others: ") &&
			   strstr(table.text, "note: 'PS' computed for ") && !strstr(table.text, "loss")),
		  "%s", table.text);
	free(csv.text);
	free(table.text);
}

static void expect_refused(const char *options, int status, const char *line)
{
	struct run run = run_scenario(mixed_scenario, options, "2>&1 >/dev/null");

	cr_expect_eq(run.exit_status, status, "%s", options);
	cr_expect(strstr(run.text, line), "%s", run.text);
	free(run.text);
}

Test(replay, real_workers_are_some_and_take_their_time)
{
	expect_refused("--set compute.real_workers=0", 2,
		       "--set compute.real_workers: 'real_workers' is '0', must be a whole number from 1 to 1048576\n");
	expect_refused("--set compute.real_workers=3", 2,
		       "--set compute.real_workers: 'real_workers' is 3, must be less than the number of workers, 3: "
		       "the others replay\n");
	expect_refused("--set compute.replay=false", 2,
		       "s.yaml:3:39: 'real_workers' has no effect where 'replay' is 'false', only with true\n");
	expect_refused("--set emulation.dilation=auto", 2,
		       "--set emulation.dilation: 'dilation' is 'auto', must be 1 with 'real_workers', which compute "
		       "in real time and send whole messages\n");
	expect_refused("--set emulation.payload_scale=0.5", 2,
		       "--set emulation.payload_scale: 'payload_scale' is '0.5', must be 1 with 'real_workers', "
		       "which compute in real time and send whole messages\n");
}

/* They took 5 of the machine's 10 seconds, and of the others all took 3: 60 % of what is left, and 80 % of all. */
Test(replay, the_time_of_real_workers_is_not_the_machines)
{
	struct psd_worker_result result = result_of(3, 8, 0);

	cr_expect_not(psd_replay_is_true(&result));
	result.real_cpu_sec = 5;
	cr_expect(psd_replay_is_true(&result));
	cr_expect_float_eq(psd_replay_busy_ratio(&result), 0.6, 1e-9);
	result.real_cpu_sec =
		10; /* in steps of a hundredth of a second busy may be less than they say that they took */
	cr_expect_float_eq(psd_replay_busy_ratio(&result), 0.0, 0);
}

Test(replay, beside_real_workers_is_told_of_no_dilation)
{
	const struct psd_replay replay = {.dilation_ratio = 1, .payload_ratio = 1, .real_workers = 1};
	struct psd_worker_result result = result_of(4, 9, 0);
	struct psd_error err = {.text = "accepted"};

	result.real_cpu_sec = 5;
	cr_expect_eq(psd_replay_check(&result, &replay, "s", &err), PSD_ERUN);
	cr_expect_str_eq(err.text, "s: this machine was busy for 80 % of the time that real workers left, must be 70 % "
				   "or less; real workers take no dilation: use fewer nodes, slower links or larger "
				   "messages");
	result = result_of(1, 1, 0.05);
	cr_expect_eq(psd_replay_check(&result, &replay, "s", &err), PSD_ERUN);
	cr_expect_str_eq(err.text, "s: timers of this machine were late by 5.0 % of an iteration, must be 2 % or less; "
				   "real workers take no dilation: use fewer nodes, slower links or larger messages");
}
