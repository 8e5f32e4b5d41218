/* Where a plan says that something is remembered of earlier updates. */
#include <criterion/criterion.h>

#include "engine/program/footprint.h"
#include "tests/loaded_helper.h"

#define SCENARIO(train)                                                                                                \
	"title: t\nmodel: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 8}\n"                         \
	"compute: {device: cpu}\n"                                                                                     \
	"cluster: {stack: none, nodes: 2, workers_per_node: 2, network: {bandwidth: 10Gbps, latency: 50us}}\n"         \
	"systems:\n"                                                                                                   \
	"  - {name: ps, sync: ps}\n"                                                                                   \
	"  - {name: two-level ps, sync: two-level-ps, servers: 2}\n"                                                   \
	"  - {name: ring, sync: ring, fuse: 1MB}\n"                                                                    \
	"  - {name: hybrid, sync: hybrid}\n"                                                                           \
	"  - {name: adam, sync: adam}\n"                                                                               \
	"  - {name: packed, sync: ps, compress: {by: one-bit}}\n"                                                      \
	"  - {name: low rank, sync: ring, low_rank: {rank: 2}}\n"                                                      \
	"  - {name: local low rank, sync: ring, low_rank: {rank: 2}, local_sgd: {steps: 4}}\n"                         \
	"  - {name: local ps, sync: ps, local_sgd: {steps: 4}}\n"                                                      \
	"  - {name: local ring, sync: ring, local_sgd: {steps: 4}}\n"                                                  \
	"  - {name: late ps, sync: ps, staleness: 1}\n"                                                                \
	"  - {name: late hybrid, sync: hybrid, staleness: 2}\n"                                                        \
	"  - {name: late two-level ps, sync: two-level-ps, servers: 1, staleness: 1}\n"                                \
	"train: {iterations: 8, " train "learning_rate: {base: 0.1}}\n"

/* A shard updates its parts when there are no local steps or late updates. Otherwise devices update, each the whole
 * item. */
static void check_remembered(const struct psd_plan *plan, bool has_squares)
{
	for (unsigned i = 0; i < plan->n_items; i++) {
		const struct psd_plan_item *item = &plan->items[i];
		const bool is_at_shards = !plan->local && plan->staleness == 0 &&
					  (item->method == &psd_method_ps || item->method == &psd_method_two_level_ps);
		const char *name = plan->system->name;

		cr_expect_eq(psd_plan_keeps(plan, item, PSD_BUFFER_HISTORY), !is_at_shards, "%s", name);
		cr_expect_eq(psd_plan_keeps(plan, item, PSD_BUFFER_PART_HISTORY), is_at_shards, "%s", name);
		cr_expect_eq(psd_plan_keeps(plan, item, PSD_BUFFER_SQUARES), has_squares && !is_at_shards, "%s", name);
		cr_expect_eq(psd_plan_keeps(plan, item, PSD_BUFFER_PART_SQUARES), has_squares && is_at_shards, "%s",
			     name);
	}
}

static void check(const char *text, bool has_squares)
{
	struct loaded loaded;

	loaded_open(&loaded, text);
	for (unsigned s = 0; s < loaded.scenario.n_systems; s++) {
		struct psd_case made;

		loaded_case(&made, &loaded, s, 0);
		check_remembered(&made.plan, has_squares);
		psd_case_release(&made);
	}
	loaded_close(&loaded);
}

/* Then workers update, whatever the system. */
Test(keeps, devices_keep_the_states_when_gradients_are_clipped)
{
	struct loaded loaded;

	loaded_open(
		&loaded,
		"title: t\nmodel: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 8}\n"
		"compute: {device: cpu}\n"
		"cluster: {stack: none, nodes: 2, workers_per_node: 2, network: {bandwidth: 10Gbps, latency: 50us}}\n"
		"systems:\n"
		"  - {name: ps, sync: ps}\n"
		"  - {name: two-level ps, sync: two-level-ps, servers: 2}\n"
		"  - {name: hybrid, sync: hybrid}\n"
		"train: {iterations: 8, optimiser: {clip: 1}, learning_rate: {base: 0.1}}\n");
	for (unsigned s = 0; s < loaded.scenario.n_systems; s++) {
		struct psd_case made;

		loaded_case(&made, &loaded, s, 0);
		for (unsigned i = 0; i < made.plan.n_items; i++) {
			const struct psd_plan_item *item = &made.plan.items[i];

			cr_expect(psd_plan_keeps(&made.plan, item, PSD_BUFFER_HISTORY));
			cr_expect_not(psd_plan_keeps(&made.plan, item, PSD_BUFFER_PART));
			cr_expect_not(psd_plan_keeps(&made.plan, item, PSD_BUFFER_PART_HISTORY));
			cr_expect_not(psd_plan_keeps(&made.plan, item, PSD_BUFFER_ENCODED_PARAMETER));
		}
		psd_case_release(&made);
	}
	loaded_close(&loaded);
}

Test(keeps, adamw_alone_has_squares_and_where_it_has_histories)
{
	check(SCENARIO("optimiser: {kind: adamw}, "), true);
	check(SCENARIO("optimiser: {momentum: 0.9}, "), false);
	check(SCENARIO("optimiser: {kind: lars}, "), false);
	check(SCENARIO(""), false);
}

/* Optimiser state of a worker: momentum of its own steps, and the outer one where devices have it. */
static uint64_t optimiser_elements(const struct psd_case *made)
{
	return psd_footprint_make(&made->program, 8).optimiser_bytes / sizeof(float);
}

/* At the shards or on the devices, wherever an exchange updates parameters; nothing without momentum. */
Test(keeps, outer_momentum_is_where_an_exchange_updates)
{
	static const struct {
		const char *sync, *outer;
		bool is_on_device, is_at_shards;
	} rows[] = {
		{"ring", "", false, false},
		{"ring", ", outer: {momentum: 0}", false, false},
		{"ring", ", outer: {}", true, false},
		{"ps", ", outer: {}", false, true},
		{"two-level-ps", ", outer: {}", false, true},
		{"ps", ", delay: 2, outer: {}", true, false},
		{"ps", ", fragments: 2, outer: {}", false, true},
	};

	for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		struct loaded loaded;
		struct psd_case made;

		loaded_print(&loaded,
			     "title: t\nmodel: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 8}\n"
			     "compute: {device: cpu}\n"
			     "cluster: {stack: none, nodes: 2, network: {bandwidth: 10Gbps, latency: 50us}}\n"
			     "systems: [{name: s, sync: %s, local_sgd: {steps: 4%s}}]\n",
			     rows[r].sync, rows[r].outer);
		loaded_case(&made, &loaded, 0, 0);
		for (unsigned i = 0; i < made.plan.n_items; i++) {
			const struct psd_plan_item *item = &made.plan.items[i];

			cr_expect_eq(psd_plan_keeps(&made.plan, item, PSD_BUFFER_OUTER), rows[r].is_on_device, "row %u",
				     r);
			cr_expect_eq(psd_plan_keeps(&made.plan, item, PSD_BUFFER_PART_OUTER), rows[r].is_at_shards,
				     "row %u", r);
		}
		if (!rows[r].is_at_shards)
			cr_expect_eq(optimiser_elements(&made),
				     (rows[r].is_on_device ? 2 : 1) * made.plan.graph->parameters, "row %u", r);
		psd_case_release(&made);
		loaded_close(&loaded);
	}
}

/* A mean of 8 bits does not move by a thousandth of itself. */
Test(keeps, states_are_fp32_at_any_precision)
{
	static const enum psd_buffer buffers[] = {PSD_BUFFER_HISTORY, PSD_BUFFER_SQUARES, PSD_BUFFER_PART_HISTORY,
						  PSD_BUFFER_PART_SQUARES};
	const struct psd_widths halves = {.precision_bytes = 2, .wire = &psd_encoding_bf16};

	for (unsigned b = 0; b < sizeof(buffers) / sizeof(buffers[0]); b++)
		cr_expect_eq(psd_buffer_value_bytes(buffers[b], &halves), sizeof(float), "%s",
			     psd_buffers[buffers[b]].name);
}
