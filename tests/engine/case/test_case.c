/* Workload of a system: the scenario's, or the system's own. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "engine/scenario/scenario_heed.h"
#include "tests/loaded_helper.h"

#define GRAPH	"graph: scenarios/models/cifar10-quick.yaml"
#define CLUSTER "cluster: {stack: none, nodes: 2, network: {bandwidth: 1Gbps, latency: 10us}}\n"

static void expect_same_costs(const struct psd_case *a, const struct psd_case *b)
{
	const struct psd_costs *costs = a->plan.costs, *others = b->plan.costs;

	for (unsigned i = 0; i < costs->n_layers; i++) {
		cr_expect_eq(costs->forward_sec[i], others->forward_sec[i], "layer %u", i);
		cr_expect_eq(costs->backward_sec[i], others->backward_sec[i], "layer %u", i);
	}
	cr_expect_eq(a->plan.value_bytes, b->plan.value_bytes);
	cr_expect_eq(a->plan.items[0].subject.batch, b->plan.items[0].subject.batch);
}

/* Each system of `of_systems` against the only one of a file that says the same for all. */
static void expect_equal(const struct loaded *of_systems, unsigned system, const char *text)
{
	struct loaded plain;
	struct psd_case own, same;

	loaded_open(&plain, text);
	loaded_case(&own, of_systems, system, 0);
	loaded_case(&same, &plain, 0, 0);
	expect_same_costs(&own, &same);
	psd_case_release(&own);
	psd_case_release(&same);
	loaded_close(&plain);
}

Test(workload, a_systems_own_equals_the_scenarios)
{
	struct loaded loaded;

	loaded_open(&loaded,
		    "model: {" GRAPH ", batch_per_worker: 32}\n"
		    "compute: {device: p100, samples_per_sec: 100}\n" CLUSTER "systems:\n"
		    "  - {name: plain, sync: ring}\n"
		    "  - {name: batch, sync: ring, model: {batch_per_worker: 8}}\n"
		    "  - {name: half, sync: ring, model: {precision: mixed}, compute: {samples_per_sec: 150}}\n"
		    "  - {name: other, sync: ring, compute: {device: v100}}\n");
	expect_equal(&loaded, 0,
		     "model: {" GRAPH ", batch_per_worker: 32}\ncompute: {device: p100, samples_per_sec: 100}\n" CLUSTER
		     "systems: [{name: A, sync: ring}]\n");
	expect_equal(&loaded, 1,
		     "model: {" GRAPH ", batch_per_worker: 8}\ncompute: {device: p100, samples_per_sec: 100}\n" CLUSTER
		     "systems: [{name: A, sync: ring}]\n");
	expect_equal(&loaded, 2,
		     "model: {" GRAPH ", batch_per_worker: 32, precision: mixed}\n"
		     "compute: {device: p100, samples_per_sec: 150}\n" CLUSTER "systems: [{name: A, sync: ring}]\n");
	/* images per second were measured on the scenario's device */
	expect_equal(&loaded, 3,
		     "model: {" GRAPH ", batch_per_worker: 32}\ncompute: {device: v100}\n" CLUSTER
		     "systems: [{name: A, sync: ring}]\n");
	loaded_close(&loaded);
}

static const char overriding[] = "model: {graph: m.yaml, batch_per_worker: 32}\ncompute: {device: p100}\n" CLUSTER
				 "systems: [{name: A, sync: ring, model: {batch_per_worker: 8, precision: mixed}, "
				 "compute: {samples_per_sec: 9}}]\n";

/* A share of the peak is the throughput that takes as long for the model's FLOPs. */
Test(workload, a_share_of_the_peak_is_a_throughput)
{
	struct loaded loaded;

	loaded_open(&loaded,
		    "model: {" GRAPH ", batch_per_worker: 32}\ncompute: {device: v100, mfu: 40%}\n" CLUSTER "systems:\n"
		    "  - {name: fp32, sync: ring}\n"
		    "  - {name: mixed, sync: ring, model: {precision: mixed}, compute: {mfu: 20%}}\n"
		    "  - {name: measured, sync: ring, compute: {samples_per_sec: 9}}\n"
		    "  - {name: other, sync: ring, compute: {device: k20}}\n");
	const struct psd_graph *graph = &loaded.costed.graph;
	const double flops = 32.0 * (double)(graph->forward_flops + graph->backward_flops);
	const double expected_sec[] = {flops / (0.4 * 14e12), flops / (0.2 * 112e12), 32.0 / 9};

	for (unsigned s = 0; s < 3; s++)
		cr_expect_float_eq(psd_costed_model_costs(&loaded.costed, &loaded.scenario.systems[s])->compute_sec,
				   expected_sec[s], 1e-9 * expected_sec[s], "%u", s);
	/* another device leaves the scenario's share out */
	cr_expect_gt(psd_costed_model_costs(&loaded.costed, &loaded.scenario.systems[3])->compute_sec, flops / 3.52e12);
	loaded_close(&loaded);
}

static void expect_refused(const char *compute_and_model, const char *message)
{
	struct psd_scenario scenario;
	struct psd_costed_model costed;
	struct psd_error err = {.text = ""};
	char text[512];

	snprintf(text, sizeof(text), "%s\n" CLUSTER "systems: [{name: A, sync: ring}]\n", compute_and_model);
	cr_assert_eq(psd_scenario_parse(&scenario, "a.yaml", text, strlen(text), NULL, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(psd_costed_model_load(&costed, &scenario, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, message);
	psd_scenario_release(&scenario);
}

Test(workload, a_device_has_the_precision_and_a_profile_no_peak)
{
	expect_refused("model: {" GRAPH ", batch_per_worker: 32, precision: bf16}\ncompute: {device: v100}",
		       "a.yaml:1:8: 'precision' is 'bf16', must be fp32 or mixed on a 'v100'");
	expect_refused("model: {" GRAPH ", batch_per_worker: 32}\ncompute: {profile: p.csv, mfu: 40%}",
		       "a.yaml:2:32: 'mfu' needs 'device', since a profile has no peak rate");
	expect_refused("model: {" GRAPH ", batch_per_worker: 32,\n  recompute: blocks}\ncompute: {device: v100}",
		       "a.yaml:2:14: 'recompute' is 'blocks', must be 'none' for model 'CIFAR-10 quick', whose file "
		       "has no 'repeat'");
}

/* One run has one batch and one precision. */
Test(workload, a_systems_own_is_refused_by_runs)
{
	struct psd_scenario scenario;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_scenario_parse(&scenario, "a.yaml", overriding, strlen(overriding), NULL, &err), PSD_OK);
	for (unsigned i = 0; i < 2; i++) {
		const enum psd_use executor = i ? PSD_BY_REPLAY : PSD_BY_RUN;

		cr_expect_eq(psd_scenario_check_heeded(&scenario, executor, &err), PSD_EINVAL);
		cr_expect_str_eq(err.text,
				 "a.yaml:4:33: 'systems.model' is used only by psd-sim: must be left out here");
	}
	cr_expect_eq(psd_scenario_check_heeded(&scenario, PSD_BY_ESTIMATE, &err), PSD_OK);
	psd_scenario_release(&scenario);
}

Test(workload, a_systems_own_reads_back)
{
	struct psd_scenario scenario;
	struct psd_error err = {.text = ""};
	struct psd_text text = {.bytes = NULL};

	cr_assert_eq(psd_scenario_parse(&scenario, "a.yaml", overriding, strlen(overriding), NULL, &err), PSD_OK);
	psd_scenario_add_text(&text, &scenario);
	cr_expect(strstr(text.bytes, "model: {batch_per_worker: 8, precision: mixed}"), "%s", text.bytes);
	cr_expect(strstr(text.bytes, "compute: {samples_per_sec: 9}"), "%s", text.bytes);
	psd_text_release(&text);
	psd_scenario_release(&scenario);
}
