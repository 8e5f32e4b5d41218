/* Layers beside all-reduces take longer, in every executor alike. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>

#include "tests/simulate_helper.h"

#define SAME_RATIO 1e-6

/* Layers so slow that each all-reduce is over before the layer below is: fc3's runs beside relu2 and fc2's backward
 * pass, fc2's beside relu1 and fc1's, fc1's after all of them. So with share s an iteration takes its compute, s of the
 * first two, and all of the last. The parts say so, too. */
static struct psd_parts expected_parts(const struct psd_costs *costs, double share, double *iteration_sec)
{
	const double P = 4, B = 10e9 / 8, bytes = 4.0 * (4096 * 4096 + 4096);
	const double ring_sec = 2 * (P - 1) / P * bytes / B;

	*iteration_sec = costs->compute_sec + share * 2 * ring_sec + ring_sec;
	return (struct psd_parts){.compute_sec = costs->compute_sec,
				  .exposed_comm_sec = ring_sec,
				  .other_waiting_sec = share * 2 * ring_sec};
}

static void expect_close(const char *who, const char *what, double sec, double expected_sec)
{
	cr_expect_float_eq(sec, expected_sec, SAME_RATIO, "%s: %s %.9f s, expected %.9f", who, what, sec, expected_sec);
}

static void expect_outcome(const char *who, const struct psd_outcome *outcome, const struct psd_costs *costs,
			   double share)
{
	double iteration_sec;
	const struct psd_parts parts = expected_parts(costs, share, &iteration_sec);

	expect_close(who, "iteration", outcome->iteration_sec, iteration_sec);
	expect_close(who, "compute", outcome->parts.compute_sec, parts.compute_sec);
	expect_close(who, "exposed communication", outcome->parts.exposed_comm_sec, parts.exposed_comm_sec);
	expect_close(who, "other waiting", outcome->parts.other_waiting_sec, parts.other_waiting_sec);
}

Test(overlap, lengthens_the_layers_beside_an_all_reduce_by_its_share)
{
	const char *const fidelities[] = {"flow", "message"};
	const double shares[] = {0.0, 0.25, 0.8};

	for (unsigned i = 0; i < 6; i++) {
		const char *fidelity = fidelities[i % 2];
		char text[1024];
		struct loaded loaded;
		struct psd_case made;

		snprintf(text, sizeof(text),
			 "title: t\nmodel: {graph: scenarios/models/mlp.yaml, batch_per_worker: 1}\n"
			 "compute: {device: p100, images_per_sec: 0.5}\n"
			 "cluster: {nodes: 4, network: {bandwidth: 10Gbps, latency: 0s}, host: {overlap: %g}}\n"
			 "systems: [{name: ring, sync: ring, unit: layer}]\nfidelity: %s\n",
			 shares[i / 2], fidelity);
		loaded_open(&loaded, text);
		loaded_case(&made, &loaded, 0, 0);
		const struct psd_outcome simulation = simulated(&made), estimate = estimated(&made);

		expect_outcome(fidelity, &simulation, &loaded.matter.costs, shares[i / 2]);
		expect_outcome("estimate", &estimate, &loaded.matter.costs, shares[i / 2]);
		psd_case_release(&made);
		loaded_close(&loaded);
	}
}

/* Where cores are shared, all-reduces have theirs already. */
Test(overlap, is_refused_beside_cores)
{
	static const char text[] =
		"model: {graph: m.yaml, batch_per_worker: 1}\ncompute: {device: cpu}\n"
		"cluster: {nodes: 4, network: {bandwidth: 10Gbps, latency: 0s}, machine: {cores: 4}, "
		"host: {overlap: 10%}}\nsystems:\n  - {name: A, sync: ring}\n";
	struct psd_scenario scenario;
	struct psd_error err = {.text = "accepted"};

	cr_expect_eq(psd_scenario_parse(&scenario, "a.yaml", text, strlen(text), NULL, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, "a.yaml:5:5: 'overlap' of system 'A' has no effect beside 'machine', whose cores "
				   "all share");
}
