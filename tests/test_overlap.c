/* Layers beside all-reduces take longer, in every executor alike. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>
#include <math.h>

#include "tests/simulate_helper.h"

#define SAME_RATIO 1e-6

enum { SIZES = 16 };

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
		struct loaded loaded;
		struct psd_case made;

		loaded_print(&loaded,
			     "title: t\nmodel: {graph: scenarios/models/mlp.yaml, batch_per_worker: 1}\n"
			     "compute: {device: p100, samples_per_sec: 0.5}\n"
			     "cluster: {stack: none, nodes: 4, network: {bandwidth: 10Gbps, latency: 0s}, host: "
			     "{device_share: %g}}\n"
			     "systems: [{name: ring, sync: ring, unit: layer}]\nfidelity: %s\n",
			     shares[i / 2], fidelity);
		loaded_case(&made, &loaded, 0, 0);
		const struct psd_outcome simulation = simulated(&made), estimate = estimated(&made);

		expect_outcome(fidelity, &simulation, &loaded.costed.costs, shares[i / 2]);
		expect_outcome("estimate", &estimate, &loaded.costed.costs, shares[i / 2]);
		psd_case_release(&made);
		loaded_close(&loaded);
	}
}

/* Layers as slow as above. A wait-free schedule agrees before each all-reduce, of which only the last is waited for; a
 * sequential one knows when all are ready. The sum of a layer's two tensors is applied as soon as the device has time:
 * of the first two layers beside what is waited for. */
static void expect_stack(const char *fidelity, bool is_sequential)
{
	const double P = 4, B = 10e9 / 8, bytes = 4.0 * (4096 * 4096 + 4096), agree_sec = 20e-3, tensor_sec = 3e-3;
	const double ring_sec = 2 * (P - 1) / P * bytes / B;
	const double after_sec = is_sequential ? 3 * ring_sec : agree_sec + ring_sec;
	struct loaded loaded;
	struct psd_case made;

	loaded_print(&loaded,
		     "title: t\nmodel: {graph: scenarios/models/mlp.yaml, batch_per_worker: 1}\n"
		     "compute: {device: p100, samples_per_sec: 0.5}\n"
		     "cluster: {stack: none, nodes: 4, network: {bandwidth: 10Gbps, latency: 0s}, host: {agree: %gs, "
		     "tensor: %gs}}\n"
		     "systems: [{name: ring, sync: ring, unit: layer, schedule: %s}]\nfidelity: %s\n"
		     "sweep: {nodes: [1, 4]}\n",
		     agree_sec, tensor_sec, psd_schedule_names[is_sequential ? 0 : 1], fidelity);
	loaded_case(&made, &loaded, 0, 0);
	expect_close("one worker", "iteration", estimated(&made).iteration_sec, loaded.costed.costs.compute_sec);
	psd_case_release(&made);
	loaded_case(&made, &loaded, 0, 1);
	const double iteration_sec = loaded.costed.costs.compute_sec + after_sec + 2 * tensor_sec;

	expect_close(fidelity, "iteration", simulated(&made).iteration_sec, iteration_sec);
	expect_close("estimate", "iteration", estimated(&made).iteration_sec, iteration_sec);
	psd_case_release(&made);
	loaded_close(&loaded);
}

Test(overlap, has_workers_agree_before_an_all_reduce)
{
	expect_stack("flow", false);
	expect_stack("message", false);
	expect_stack("flow", true);
}

/* A system for each size that is tried, from a page on, and one that finds it. */
static void add_sizes(char *text, size_t room, enum psd_schedule schedule)
{
	size_t length = strlen(text);

	for (unsigned i = 0; i < SIZES; i++)
		length += (size_t)snprintf(text + length, room - length,
					   "  - {name: s%u, schedule: %s, sync: ring, fuse: %uKiB}\n", i,
					   psd_schedule_names[schedule], 4u << i);
	snprintf(text + length, room - length, "  - {name: found, schedule: %s, sync: ring, fuse: auto}\n",
		 psd_schedule_names[schedule]);
}

/* The least seconds of all sizes, and of the one found, whose bytes are returned. */
static uint64_t find_size(double share, enum psd_schedule schedule, double *least_sec, double *found_sec)
{
	char text[4096];
	struct loaded loaded;
	uint64_t found_bytes = 0;

	snprintf(text, sizeof(text),
		 "title: t\nmodel: {graph: scenarios/models/resnet50.yaml, batch_per_worker: 64}\n"
		 "compute: {device: p100, samples_per_sec: 172}\n"
		 "cluster: {stack: none, nodes: 16, network: {bandwidth: 10Gbps, latency: 50us}, "
		 "host: {device_share: %g, collective: [{call: 500us}]}}\nsystems:\n",
		 share);
	add_sizes(text, sizeof(text), schedule);
	loaded_open(&loaded, text);
	*least_sec = INFINITY;
	for (unsigned i = 0; i <= SIZES; i++) {
		struct psd_case made;

		loaded_case(&made, &loaded, i, 0);
		*found_sec = estimated(&made).iteration_sec;
		*least_sec = i < SIZES ? fmin(*least_sec, *found_sec) : *least_sec;
		found_bytes = made.plan.fuse_bytes;
		psd_case_release(&made);
	}
	loaded_close(&loaded);
	return found_bytes;
}

/* An all-reduce takes a share of the device, so an early begin costs time beside the cost of calls: buckets become
 * larger. */
Test(overlap, counts_in_how_much_is_gathered)
{
	double least_sec, found_sec;
	uint64_t beside_nothing_bytes, bytes;

	beside_nothing_bytes = find_size(0.0, PSD_SCHEDULE_WAIT_FREE, &least_sec, &found_sec);
	cr_expect_leq(found_sec, (1.0 + SAME_RATIO) * least_sec, "nothing taken: %.6f s", found_sec);
	bytes = find_size(0.8, PSD_SCHEDULE_WAIT_FREE, &least_sec, &found_sec);
	cr_expect_leq(found_sec, (1.0 + SAME_RATIO) * least_sec, "80 %% taken: %.6f s", found_sec);
	cr_expect_gt(bytes, beside_nothing_bytes);
	find_size(0.8, PSD_SCHEDULE_SEQUENTIAL, &least_sec, &found_sec);
	cr_expect_leq(found_sec, (1.0 + SAME_RATIO) * least_sec, "in sequence: %.6f s", found_sec);
}

/* Where cores are shared, all-reduces have theirs already. */
Test(overlap, is_refused_beside_cores)
{
	static const char text[] =
		"model: {graph: m.yaml, batch_per_worker: 1}\ncompute: {device: cpu}\n"
		"cluster: {stack: none, nodes: 4, network: {bandwidth: 10Gbps, latency: 0s}, machine: {cores: "
		"4}, host: {device_share: 10%}}\nsystems:\n  - {name: A, sync: ring}\n";
	struct psd_scenario scenario;
	struct psd_error err = {.text = "accepted"};

	cr_expect_eq(psd_scenario_parse(&scenario, "a.yaml", text, strlen(text), NULL, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, "a.yaml:5:5: 'device_share' of system 'A' has no effect with 'machine', whose cores "
				   "all operations share");
}
