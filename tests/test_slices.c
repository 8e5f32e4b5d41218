/* All-reduces in slices: while one is summed the next is copied from its device, and the one before to it. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>

#include "engine/program/choice.h"
#include "tests/simulate_helper.h"

#define SAME_RATIO 1e-6

/* One tensor of n slices of equal size. Each takes c seconds to copy in one direction and r seconds in the ring, r > c.
 * The first is copied, then rings follow each other without a pause, then the last is copied: c + n r + c after
 * compute. As a whole: n c + n r + n c. */
static void check(const char *fidelity, const char *slice, double n)
{
	const double P = 4, bytes = 4.0 * 4096 * 4096, copy_bytes_per_sec = 10e9, link_bytes_per_sec = 10e9 / 8;
	const double copy_sec = bytes / n / copy_bytes_per_sec;
	const double ring_sec = 2 * (P - 1) / P * bytes / n / link_bytes_per_sec;
	struct loaded loaded;
	struct psd_case made;

	loaded_print(
		&loaded,
		"title: t\nmodel: {graph: tests/data/one_layer_64mib.yaml, batch_per_worker: 1}\n"
		"compute: {device: v100}\n"
		"cluster: {stack: none, nodes: 4, network: {bandwidth: 10Gbps, latency: 0s}, host: {copy: 10GBps}}\n"
		"systems: [{name: ring, sync: ring%s}]\nfidelity: %s\n",
		slice, fidelity);
	loaded_case(&made, &loaded, 0, 0);
	const double expected_sec = loaded.costed.costs.compute_sec + 2 * copy_sec + n * ring_sec;
	const struct psd_outcome simulation = simulated(&made), estimate = estimated(&made);

	cr_assert_eq(made.plan.items[0].n_slices, (unsigned)n);
	cr_expect_float_eq(simulation.iteration_sec, expected_sec, SAME_RATIO * expected_sec, "%s%s: %g s, expected %g",
			   fidelity, slice, simulation.iteration_sec, expected_sec);
	cr_expect_float_eq(estimate.iteration_sec, expected_sec, SAME_RATIO * expected_sec,
			   "estimate%s: %g s, expected %g", slice, estimate.iteration_sec, expected_sec);
	psd_case_release(&made);
	loaded_close(&loaded);
}

Test(slices, an_all_reduce_sums_some_while_others_are_copied)
{
	const char *const fidelities[] = {"flow", "message"};

	for (unsigned f = 0; f < 2; f++) {
		check(fidelities[f], "", 1);
		check(fidelities[f], ", pipeline: 4MiB", 16);
	}
}

/* The tensor of one_layer_64mib.yaml by each all-reduce and by the choice between them, with what copies, conversions
 * and updates take; behind compute it is alone on the cluster. */
static void check_weighed(const char *pipeline, const char *wire)
{
	struct psd_alternative alternatives[PSD_CANDIDATES];
	struct psd_error err = {.text = ""};
	struct loaded loaded;
	struct psd_case chosen;
	char text[4096];
	int length = snprintf(text, sizeof(text),
			      "title: t\nmodel: {graph: tests/data/one_layer_64mib.yaml, batch_per_worker: 1}\n"
			      "compute: {device: v100}\n"
			      "cluster: {stack: none, nodes: 5, network: {bandwidth: 10Gbps, latency: 1ms}, "
			      "host: {copy: 2GBps, update: 3GBps}}\nsystems:\n");

	for (unsigned p = 0; p <= PSD_N_ALL_REDUCES; p++)
		length += snprintf(text + length, sizeof(text) - (size_t)length,
				   "  - {name: s%u, sync: %s, wire: %s%s}\n", p,
				   psd_sync_names[PSD_SYNC_ALL_REDUCE + p], wire, pipeline);
	loaded_open(&loaded, text);
	loaded_case(&chosen, &loaded, PSD_N_ALL_REDUCES, 0);
	cr_assert_eq(psd_choice_weigh(alternatives, &chosen.plan, &chosen.plan.items[0], &err), PSD_OK, "%s", err.text);
	const double chosen_sec = simulated(&chosen).iteration_sec;

	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++) {
		struct psd_case made;

		loaded_case(&made, &loaded, p, 0);
		const double simulated_sec = simulated(&made).iteration_sec;
		const double weighed_sec = loaded.costed.costs.compute_sec + alternatives[p].isolated_sec;

		cr_expect_float_eq(weighed_sec, simulated_sec, SAME_RATIO * simulated_sec,
				   "%s%s, %s: %g s, expected %g", made.plan.items[0].method->name, pipeline, wire,
				   weighed_sec, simulated_sec);
		cr_expect_leq(chosen_sec, (1.0 + SAME_RATIO) * simulated_sec, "%s%s, %s: %g s, chosen %g",
			      made.plan.items[0].method->name, pipeline, wire, simulated_sec, chosen_sec);
		psd_case_release(&made);
	}
	psd_case_release(&chosen);
	loaded_close(&loaded);
}

Test(slices, are_weighed_as_they_move)
{
	const char *const wires[] = {"fp32", "bf16"};

	for (unsigned w = 0; w < 2; w++) {
		check_weighed("", wires[w]);
		check_weighed(", pipeline: 4MiB", wires[w]);
	}
}
