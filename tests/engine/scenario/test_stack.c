/* Stacks: which one a system gets, what it fills in, and what its record says. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "engine/result/result.h"
#include "engine/scenario/device.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/stack.h"

#define ROUNDING 1e-9

static void load(struct psd_scenario *scenario, const char *device, const char *cluster, const char *system)
{
	struct psd_error err = {.text = ""};
	char text[1024];

	snprintf(text, sizeof(text),
		 "model: {graph: m.yaml, batch_per_worker: 1}\ncompute: {device: %s}\n"
		 "cluster: {nodes: 2, network: {bandwidth: 25Gbps, latency: 0s}%s}\nsystems: [{name: a, %s}]\n",
		 device, cluster, system);
	cr_assert_eq(psd_scenario_parse(scenario, "t.yaml", text, strlen(text), NULL, &err), PSD_OK, "%s", err.text);
}

static void expect_stack(const char *device, const char *cluster, const char *system, const char *expected)
{
	struct psd_scenario scenario;

	load(&scenario, device, cluster, system);
	cr_expect_str_eq(scenario.systems[0].stack->name, expected, "%s, %s: %s", device, system, expected);
	psd_scenario_release(&scenario);
}

Test(stack, follows_from_devices_network_and_method)
{
	expect_stack("v100", "", "sync: ring", "nccl-tcp");
	expect_stack("v100", "", "sync: nccl", "nccl-tcp");
	expect_stack("v100", "", "sync: mpi", "mpi");
	expect_stack("v100", "", "sync: ps", "psd");
	expect_stack("cpu", "", "sync: ring", "psd");
	expect_stack("v100", ", machine: {cores: 2}", "sync: ring", "psd");
	expect_stack("v100", ", stack: gloo", "sync: ring", "gloo");
	expect_stack("v100", ", stack: gloo", "sync: ring, stack: ideal", "ideal");
}

Test(stack, of_infiniband_is_rdma)
{
	struct psd_scenario scenario;
	struct psd_error err;
	static const char text[] =
		"model: {graph: m.yaml, batch_per_worker: 1}\ncompute: {device: v100}\n"
		"cluster: {nodes: 2, network: {bandwidth: 100Gbps, latency: 0s, fabric: infiniband}}\n"
		"systems: [{name: a, sync: ring}]\n";

	cr_assert_eq(psd_scenario_parse(&scenario, "t.yaml", text, strlen(text), NULL, &err), PSD_OK, "%s", err.text);
	cr_expect_str_eq(scenario.systems[0].stack->name, "nccl-rdma");
	psd_scenario_release(&scenario);
}

Test(stack, fills_in_what_neither_system_nor_cluster_names)
{
	const struct psd_host_costs *tcp = &psd_stack_find("nccl-tcp")->host;
	struct psd_scenario scenario;

	load(&scenario, "v100", ", host: {agree: 1ms, transport: 9Gbps}", "sync: ring, host: {transport: 7Gbps}");
	const struct psd_host_costs *host = &scenario.systems[0].host;
	cr_expect_eq(host->transport_bps, 7e9);
	cr_expect_eq(host->agree_sec, 1e-3);
	cr_expect_eq(host->share_ratio, tcp->share_ratio);
	cr_expect_eq(host->streams_ratio, tcp->streams_ratio);
	cr_expect_eq(host->n_collective_classes, 1);
	cr_expect_eq(host->collective[0].call_sec, tcp->collective[0].call_sec);
	cr_expect_eq(scenario.host.share_ratio, 1.0);
	psd_scenario_release(&scenario);
}

/* An update moves each byte of a gradient five times, a sum three times. */
Test(stack, never_frees_a_device)
{
	const struct psd_device_row *v100 = psd_device_find("v100");
	const double memory_bps = v100->memory_bps * v100->memory_efficiency_ratio;
	struct psd_scenario scenario;

	load(&scenario, "v100", ", stack: ideal", "sync: ring");
	cr_expect_float_eq(scenario.systems[0].host.convert_bps / memory_bps, 1.0, ROUNDING);
	cr_expect_float_eq(scenario.systems[0].host.update_bps / memory_bps, 1.0 / 5, ROUNDING);
	cr_expect_eq(scenario.systems[0].host.tensor_sec, 10e-6);
	cr_expect_eq(scenario.systems[0].host.launch_sec, 10e-6);
	cr_expect_eq(scenario.systems[0].host.transport_bps, 0.0);
	psd_scenario_release(&scenario);
	load(&scenario, "v100", "", "sync: ring");
	cr_expect_float_eq(scenario.systems[0].host.reduce_bps / memory_bps, 1.0 / 3, ROUNDING);
	psd_scenario_release(&scenario);
}

Test(stack, leaves_updates_to_measured_rates)
{
	struct psd_scenario scenario;

	load(&scenario, "v100, samples_per_sec: 300", "", "sync: ring");
	cr_expect_eq(scenario.systems[0].host.update_bps, 0.0);
	cr_expect_gt(scenario.systems[0].host.convert_bps, 0.0);
	psd_scenario_release(&scenario);
	load(&scenario, "v100, mfu: 40%", "", "sync: ring");
	cr_expect_eq(scenario.systems[0].host.update_bps, 0.0);
	psd_scenario_release(&scenario);
}

Test(stack, none_costs_nothing)
{
	struct psd_scenario scenario;

	load(&scenario, "v100", ", stack: none", "sync: ps");
	const struct psd_host_costs *host = &scenario.systems[0].host;
	cr_expect_eq(host->copy_bps + host->reduce_bps + host->update_bps + host->convert_bps + host->transport_bps,
		     0.0);
	cr_expect_eq(host->tensor_sec + host->launch_sec + host->iteration_sec + host->request_sec, 0.0);
	psd_scenario_release(&scenario);
}

Test(stack, a_rate_may_be_free)
{
	struct psd_scenario scenario;

	load(&scenario, "v100", ", host: {copy: 1GBps, update: free}", "sync: ps, host: {copy: free}");
	cr_expect_eq(scenario.host.copy_bps, 8e9);
	cr_expect_eq(scenario.systems[0].host.copy_bps, 0.0);
	cr_expect_eq(scenario.systems[0].host.update_bps, 0.0);
	cr_expect_gt(scenario.systems[0].host.reduce_bps, 0.0);
	psd_scenario_release(&scenario);
}

Test(stack, is_shown_in_values_that_read_back_equal)
{
	struct psd_text text = {.bytes = NULL};
	struct psd_scenario scenario, again;
	struct psd_error err = {.text = ""};

	load(&scenario, "v100", ", host: {copy: free}", "sync: ps, stack: grpc");
	psd_scenario_add_text(&text, &scenario);
	cr_assert_eq(psd_scenario_parse(&again, "b.yaml", text.bytes, text.length, NULL, &err), PSD_OK, "%s", err.text);
	cr_expect(strstr(text.bytes, "    host: {copy: free, reduce: 9.6Gbps, "), "%s", text.bytes);
	cr_expect(!memcmp(&again.systems[0].host, &scenario.systems[0].host, sizeof(again.systems[0].host)), "%s",
		  text.bytes);
	cr_expect_eq(again.systems[0].stack, scenario.systems[0].stack);
	psd_text_release(&text);
	psd_scenario_release(&scenario);
	psd_scenario_release(&again);
}

/* Every name has a row, and every point a row of its stack. */
Test(stack, each_name_has_a_row_and_a_source)
{
	for (unsigned i = 0; psd_stack_names[i]; i++) {
		const struct psd_stack_row *stack = psd_stack_find(psd_stack_names[i]);

		cr_assert_not_null(stack, "%s", psd_stack_names[i]);
		cr_expect(*stack->source && *stack->about, "%s", stack->name);
	}
	cr_expect_null(psd_stack_find("nobody"));
}

/* A band of values that a stack was not fitted to holds 70 to 90 % of them. */
Test(stack, a_band_holds_eight_of_ten_values)
{
	for (unsigned s = 0; psd_stack_names[s]; s++) {
		const struct psd_stack_row *stack = psd_stack_find(psd_stack_names[s]);
		const struct psd_stack_record record = psd_stack_record(stack);
		const struct psd_stack_point *point;
		unsigned n_inside = 0;

		for (unsigned i = 0; record.has_band && (point = psd_stack_point(stack, i)); i++) {
			const double ratio = point->published / point->predicted;

			n_inside += !point->is_fitted && ratio >= record.low_ratio && ratio <= record.high_ratio;
		}
		cr_expect(!record.has_band ||
				  (n_inside >= 0.7 * record.n_checked && n_inside <= 0.9 * record.n_checked),
			  "%s: %u of %u", stack->name, n_inside, record.n_checked);
		cr_expect_leq(record.worst_ratio, 0.27, "%s", stack->name);
	}
}

/* On 4 workers of batch 1 in 2 s: 2 images/s. One worker alone uses no stack, and a run is no prediction. */
Test(stack, gives_predictions_a_band)
{
	const struct psd_stack_record record = psd_stack_record(psd_stack_find("grpc"));
	const struct psd_outcome outcome = {.iteration_sec = 2};
	struct psd_scenario scenario;

	load(&scenario, "v100", "", "sync: ps, stack: grpc");
	const struct psd_result_basis predicted = {.scenario = &scenario, .executor = "sim-flow", .has_band = true},
				      run = {.scenario = &scenario, .executor = "real"};
	const struct psd_point four = {.nodes = 4, .workers = 4}, one = {.nodes = 1, .workers = 1};
	const struct psd_result result = psd_result_make(&predicted, &scenario.systems[0], four, &outcome, 0);

	cr_assert(record.has_band && result.low.is_there && result.high.is_there);
	cr_expect_float_eq(result.low.value, 2 * record.low_ratio, ROUNDING);
	cr_expect_float_eq(result.high.value, 2 * record.high_ratio, ROUNDING);
	cr_expect_not(psd_result_make(&predicted, &scenario.systems[0], one, &outcome, 0).low.is_there);
	cr_expect_not(psd_result_make(&run, &scenario.systems[0], four, &outcome, 0).low.is_there);
	psd_scenario_release(&scenario);
}
