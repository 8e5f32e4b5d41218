/* All executors agree where several collectives are in progress, and where iterations overlap: a synthetic method, in
 * the estimate and in both fidelities of the simulation. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "tests/simulate_helper.h"
#include "tests/synthetic_helper.h"

enum { TEXT_MAX = 1024, ITERATIONS = 12 };

#define EXACT_RATIO 1e-6 /* the network ends what is within 1 ns of now */

static const double compute_sec = 0.1; /* batch over images per second */
static const double matrix_bytes = 64 << 20, latency_sec = 50e-6;

static const char *const fidelities[] = {"flow", "message"};

/* A case of one matrix, its program made by hand. */
struct synthetic_case {
	struct loaded loaded;
	struct psd_case made;
};

static void open_case(struct synthetic_case *opened, const struct synthetic *synthetic, unsigned workers, double bps,
		      const char *fidelity, const char *disturbance)
{
	loaded_print(&opened->loaded,
		     "title: t\nmodel: {graph: tests/data/one_layer_64mib.yaml, batch_per_worker: 1}\n"
		     "compute: {device: v100, samples_per_sec: 10}\n"
		     "cluster:\n  stack: none\n  nodes: %u\n  network: {bandwidth: %.0fbps, latency: 50us}\n%s"
		     "systems: [{name: A, sync: ring}]\niterations: %d\nfidelity: %s\n",
		     workers, bps, disturbance, ITERATIONS, fidelity);
	loaded_case(&opened->made, &opened->loaded, 0, 0);
	make_synthetic(&opened->made, synthetic);
}

static void close_case(struct synthetic_case *opened)
{
	psd_case_release(&opened->made);
	loaded_close(&opened->loaded);
}

/* Seconds and bytes of a ring of so many hosts: 2 (P - 1) steps of a P-th of the matrix, each with its latency. */
static double ring_sec(unsigned members, double bps)
{
	return 2 * (members - 1) * (8 * matrix_bytes / members / bps + latency_sec);
}

/* Bytes of a host that sends every chunk twice, but once the chunks of its two neighbours, which are not among the
 * larger ones. */
static uint64_t ring_bytes(uint64_t members)
{
	const uint64_t elements = 4096 * 4096;

	return 4 * (2 * elements - 2 * (elements / members));
}

static void expect_sec(double sec, double expected_sec, const char *name)
{
	cr_expect_float_eq(sec, expected_sec, EXACT_RATIO * expected_sec, "%s: %.9f s, expected %.9f s", name, sec,
			   expected_sec);
}

/* The same for every executor: the mean of all iterations, and the bytes of the node that sends most. Spans may be
 * looked at. */
static void expect_outcomes(const struct synthetic *synthetic, unsigned workers, double bps, double iteration_sec,
			    uint64_t sent_bytes,
			    void (*look)(const struct told *, const struct psd_program *, const struct synthetic *,
					 const char *name))
{
	for (unsigned f = 0; f < 2; f++) {
		struct synthetic_case opened;
		struct told *told = shared_memory(sizeof(*told));

		open_case(&opened, synthetic, workers, bps, fidelities[f], "");
		const struct psd_outcome estimate = estimated(&opened.made);
		const struct psd_outcome simulation = simulated_spans(&opened.made, tell, told);
		expect_sec(estimate.iteration_sec, iteration_sec, "estimate");
		expect_sec(simulation.iteration_sec, iteration_sec, fidelities[f]);
		cr_expect_eq(estimate.sent_bytes_per_node, sent_bytes);
		cr_expect_eq(simulation.sent_bytes_per_node, sent_bytes, "%s", fidelities[f]);
		expect_one_at_a_time(told, &opened.made.program, fidelities[f]);
		for (unsigned host = 0; host < workers; host++)
			for (unsigned other = 0; other < host; other++)
				expect_same_order(told, &opened.made.program, host, other, fidelities[f]);
		if (look)
			look(told, &opened.made.program, synthetic, fidelities[f]);
		munmap(told, sizeof(*told));
		close_case(&opened);
	}
}

/* ---- several collectives in progress ---- */

static void look_for_overlap(const struct told *told, const struct psd_program *program,
			     const struct synthetic *synthetic, const char *name)
{
	(void)synthetic;
	expect_overlap(told, program, 0, 1, ITERATIONS, name);
	expect_overlap(told, program, 2, 3, ITERATIONS, name);
}

/* Iterations are compute and a ring, one after the other; the last ring comes after the last NEXT. */
static double sequential_sec(double rings_sec)
{
	return compute_sec + rings_sec * (ITERATIONS - 1) / ITERATIONS;
}

Test(contract_synthetic, groups_without_a_common_host_do_not_wait_for_each_other)
{
	const struct synthetic even_and_odd = {.groups = {{0, 2, 3}, {1, 2, 3}}, .n_groups = 2};

	expect_outcomes(&even_and_odd, 6, 10e9, sequential_sec(ring_sec(3, 10e9)), ring_bytes(3), look_for_overlap);
}

Test(contract_synthetic, collectives_of_one_group_take_turns)
{
	const struct synthetic even_twice = {.groups = {{0, 2, 2}, {0, 2, 2}}, .n_groups = 2};

	expect_outcomes(&even_twice, 4, 10e9, sequential_sec(2 * ring_sec(2, 10e9)), 2 * ring_bytes(2), NULL);
}

/* A collective that goes before has its hosts to itself, even while it waits: so the third waits for the second, and
 * the second for the first. After the first iteration the third runs beside the next iteration's first, whose hosts are
 * ahead. */
Test(contract_synthetic, a_chain_of_groups_is_executed_in_order)
{
	const struct synthetic in_order = {.groups = {{0, 1, 2}, {1, 1, 2}, {2, 1, 2}}, .n_groups = 3};

	expect_outcomes(&in_order, 4, 10e9, compute_sec + (3 + (ITERATIONS - 2) * 2) * ring_sec(2, 10e9) / ITERATIONS,
			2 * ring_bytes(2), NULL);
}

Test(contract_synthetic, ends_of_a_chain_go_before_its_middle)
{
	const struct synthetic ends_first = {.groups = {{0, 1, 2}, {2, 1, 2}, {1, 1, 2}}, .n_groups = 3};

	expect_outcomes(&ends_first, 4, 10e9, sequential_sec(2 * ring_sec(2, 10e9)), 2 * ring_bytes(2), NULL);
}

/* ---- rounds that depend on each other ---- */

Test(contract_synthetic, a_round_begins_when_the_one_before_is_over)
{
	const struct synthetic twice = {.groups = {{0}}, .n_groups = 1, .n_more_rounds = 1};

	expect_outcomes(&twice, 4, 10e9, sequential_sec(2 * ring_sec(4, 10e9)), 2 * ring_bytes(4), NULL);
}

Test(contract_synthetic, workers_begin_collectives_by_themselves_where_none_waits_for_another)
{
	for (unsigned n_more_rounds = 0; n_more_rounds < 3; n_more_rounds++) {
		const struct synthetic all = {.groups = {{0}}, .n_groups = 1, .n_more_rounds = n_more_rounds};
		struct synthetic_case opened;

		open_case(&opened, &all, 4, 10e9, "flow", "");
		cr_expect_eq(psd_program_orders_collectives(&opened.made.program), n_more_rounds == 0, "%u more rounds",
			     n_more_rounds);
		close_case(&opened);
	}
}

/* ---- staleness ---- */

static void look_for_staleness(const struct told *told, const struct psd_program *program,
			       const struct synthetic *synthetic, const char *name)
{
	for (unsigned host = 0; host < 4; host++)
		expect_staleness(told, program, host, synthetic->staleness, ITERATIONS, name);
}

/* Rings of s seconds, iterations 0, 1, ... n - 1. In sequence they are s apart beside compute c. Else ring j ends at
 * c + (j + 1) s, for which forward j + 1 + staleness waits: it begins at c + (j + 1) s, and compute ends c later. */
static double stale_sec(uint32_t staleness, double s)
{
	const double n = ITERATIONS, c = compute_sec;

	if (staleness == 0)
		return sequential_sec(s);
	return fmax(n * c, 2 * c + (n - 1 - staleness) * s) / n;
}

Test(contract_synthetic, on_a_slow_network_a_stale_iteration_takes_as_long_as_its_collective)
{
	const uint32_t stalenesses[] = {0, 1, 3};
	const double bps = 4e9; /* the ring takes twice the compute */

	cr_assert_gt(ring_sec(4, bps), 2 * compute_sec);
	for (unsigned i = 0; i < 3; i++) {
		const struct synthetic all = {.groups = {{0}}, .n_groups = 1, .staleness = stalenesses[i]};

		expect_outcomes(&all, 4, bps, stale_sec(stalenesses[i], ring_sec(4, bps)), ring_bytes(4),
				look_for_staleness);
	}
}

Test(contract_synthetic, on_a_quick_network_a_stale_iteration_takes_as_long_as_its_compute)
{
	for (uint32_t staleness = 1; staleness <= 3; staleness += 2) {
		const struct synthetic all = {.groups = {{0}}, .n_groups = 1, .staleness = staleness};

		cr_assert_lt(ring_sec(4, 10e9), compute_sec);
		expect_outcomes(&all, 4, 10e9, compute_sec, ring_bytes(4), NULL);
	}
}

Test(contract_synthetic, groups_may_be_stale_and_under_way_at_once)
{
	const struct synthetic even_and_odd = {.groups = {{0, 2, 2}, {1, 2, 2}}, .n_groups = 2, .staleness = 1};
	const double bps = 2e9;

	cr_assert_gt(ring_sec(2, bps), compute_sec);
	expect_outcomes(&even_and_odd, 4, bps, stale_sec(1, ring_sec(2, bps)), ring_bytes(2), look_for_overlap);
}

/* Iterations whose backward is over on that host at a time. */
static uint32_t n_over(const struct told *told, const struct psd_program *program, unsigned host, double at_sec)
{
	uint32_t t = 0;
	const struct psd_span *backward;

	while ((backward = find_told(told, program, PSD_OP_BACKWARD, host, t, 0)) && backward->end_sec <= at_sec)
		t++;
	return t;
}

/* The most iterations that `quick` begins ahead of what `slow` has computed. */
static uint32_t most_ahead(const struct told *told, const struct psd_program *program, unsigned quick, unsigned slow)
{
	uint32_t most = 0;

	for (uint32_t t = 0; t < ITERATIONS; t++) {
		const double begun_sec = find_told(told, program, PSD_OP_FORWARD, quick, t, 0)->start_sec;
		const uint32_t over = n_over(told, program, slow, begun_sec);

		most = t > over && t - over > most ? t - over : most;
	}
	return most;
}

/* The slow worker never waits: its iterations take twice the compute, and the last ring comes after the last NEXT. */
Test(contract_synthetic, a_quick_worker_is_ahead_of_a_slow_one_by_the_staleness_and_no_more)
{
	const uint32_t stalenesses[] = {0, 1, 3};

	for (unsigned i = 0; i < 6; i++) {
		const uint32_t staleness = stalenesses[i / 2];
		const struct synthetic all = {.groups = {{0}}, .n_groups = 1, .staleness = staleness};
		const double waits_sec = staleness > 0 ? 0.0 : ring_sec(4, 10e9);
		struct told *told = shared_memory(sizeof(*told));
		struct synthetic_case opened;

		open_case(&opened, &all, 4, 10e9, fidelities[i % 2], "  slow: [{node: 1, compute: 50%}]\n");
		expect_sec(simulated_spans(&opened.made, tell, told).iteration_sec,
			   2 * compute_sec + waits_sec * (ITERATIONS - 1) / ITERATIONS, fidelities[i % 2]);
		cr_expect_eq(most_ahead(told, &opened.made.program, 0, 1), staleness, "%s: %u iterations ahead, not %u",
			     fidelities[i % 2], most_ahead(told, &opened.made.program, 0, 1), staleness);
		munmap(told, sizeof(*told));
		close_case(&opened);
	}
}
