/* Which items travel as products of narrow matrices, and by which method the others. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "engine/collectives/collective.h"
#include "engine/encodings/low_rank.h"
#include "engine/program/choice.h"
#include "tests/loaded_helper.h"

#define NETWORK                                                                                                        \
	"model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 32}\ncompute: {device: k20}\n"          \
	"cluster: {stack: none, network: {bandwidth: 10Gbps, latency: 50us}}\n"

/* The network's layers, last first: outputs, and inputs of each. */
static const struct {
	uint64_t outputs, inputs;
} layers[] = {{10, 64}, {64, 1024}, {64, 800}, {32, 800}, {32, 75}};
enum { N_LAYERS = sizeof(layers) / sizeof(layers[0]) };

static void expect_item(const struct psd_plan *plan, unsigned i, uint64_t left, uint64_t right)
{
	const struct psd_plan_item *item = &plan->items[i];
	const unsigned p = plan->system->sync - PSD_SYNC_ALL_REDUCE;

	cr_expect_eq(item->left, left, "%s: item %u has %lu", plan->system->name, i, item->left);
	cr_expect_eq(item->right, right, "%s: item %u has %lu", plan->system->name, i, item->right);
	cr_expect_eq(item->method, right ? &psd_method_low_rank[p] : &psd_method_all_reduces[p], "%s: item %u",
		     plan->system->name, i);
	cr_expect_eq(item->n_slices, 1);
	cr_expect_eq(item->travelling, item->subject.elements);
}

/* Rank 9: (10 + 64) * 9 are more than 640 values, so that the last layer travels as it is. */
EACH_PLAN(low_rank_plan, tensors_with_narrow_matrices_travel_as_these_and_others_by_the_all_reduce,
	  NETWORK "systems:\n"
		  "  - {name: two, sync: ring, low_rank: {rank: 2}}\n"
		  "  - {name: eight, sync: torus, low_rank: {rank: 8}}\n"
		  "  - {name: nine, sync: halving-doubling, low_rank: {rank: 9}}\n"
		  "sweep: {nodes: [2, 8]}\n")
{
	const uint64_t rank = plan->system->low_rank.rank;

	cr_assert_eq(plan->low_rank, rank);
	cr_assert_eq(plan->n_items, 2 * N_LAYERS);
	for (unsigned l = 0; l < N_LAYERS; l++) {
		const uint64_t outputs = layers[l].outputs, inputs = layers[l].inputs;

		if (l == 0 && rank == 9)
			expect_item(plan, 0, outputs * inputs, 0);
		else
			expect_item(plan, 2 * l, outputs * rank, inputs * rank);
		expect_item(plan, 2 * l + 1, outputs, 0); /* the bias */
	}
}

/* A bias travels with the left matrix of its weight. */
EACH_PLAN(low_rank_plan, a_bias_of_a_unit_of_layers_is_among_the_left_values,
	  NETWORK "systems: [{name: A, sync: ring, unit: layer, low_rank: {rank: 2}}]\nsweep: {nodes: [2]}\n")
{
	cr_assert_eq(plan->n_items, N_LAYERS);
	for (unsigned l = 0; l < N_LAYERS; l++) {
		expect_item(plan, l, layers[l].outputs * 2 + layers[l].outputs, layers[l].inputs * 2);
		cr_expect_eq(plan->items[l].subject.elements, layers[l].outputs * (layers[l].inputs + 1));
	}
}

/* Left values of rank 2, last layer first, a weight's and a bias's: 20 10, 128 64, 128 64, 64 32, 64 32. An item is
 * complete with what makes it 384 bytes, which are 96 values; without narrow matrices the first weight alone would be
 * 2560 bytes. */
EACH_PLAN(low_rank_plan, tensors_are_gathered_by_the_bytes_of_left_matrices,
	  NETWORK "systems: [{name: A, sync: ring, fuse: 384B, low_rank: {rank: 2}}]\nsweep: {nodes: [4]}\n")
{
	static const unsigned n_tensors[] = {3, 2, 2, 2, 1};
	static const uint64_t left[] = {20 + 10 + 128, 64 + 128, 64 + 64, 32 + 64, 32};
	static const uint64_t right[] = {2 * (64 + 1024), 2 * 800, 2 * 800, 2 * 75, 0};

	cr_assert_eq(plan->n_items, 5, "%u items", plan->n_items);
	for (unsigned i = 0; i < plan->n_items; i++) {
		cr_expect_eq(plan->items[i].n_tensors, n_tensors[i], "item %u has %u tensors", i,
			     plan->items[i].n_tensors);
		expect_item(plan, i, left[i], right[i]);
	}
}

/* A byte more than 384: the item of 96 values is open still. */
EACH_PLAN(low_rank_plan, an_item_is_complete_at_exactly_its_bytes,
	  NETWORK "systems: [{name: A, sync: ring, fuse: 385B, low_rank: {rank: 2}}]\nsweep: {nodes: [4]}\n")
{
	cr_assert_eq(plan->n_items, 4, "%u items", plan->n_items);
	expect_item(plan, 3, 32 + 64 + 32, 2 * 75);
}

static void check_as_without(const struct psd_plan *plan)
{
	cr_expect_eq(plan->low_rank, 0);
	cr_expect_eq(plan->candidates[plan->n_candidates - 1], &psd_method_all_reduces[0]);
	for (unsigned c = 0; c < plan->n_candidates; c++)
		cr_expect_null(strstr(plan->candidates[c]->name, "low-rank"));
	cr_assert_eq(plan->n_items, 2 * N_LAYERS);
	for (unsigned i = 0; i < plan->n_items; i++) {
		expect_item(plan, i, 0, 0);
		cr_expect_not(psd_plan_keeps(plan, &plan->items[i], PSD_BUFFER_RIGHT));
		cr_expect_not(psd_plan_keeps(plan, &plan->items[i], PSD_BUFFER_RESIDUAL));
	}
}

Test(low_rank_plan, one_worker_has_no_narrow_matrices)
{
	for_each_plan(NETWORK "systems: [{name: A, sync: ring, low_rank: {rank: 2}}]\nsweep: {nodes: [1]}\n",
		      check_as_without);
	for_each_plan(NETWORK "systems: [{name: A, sync: ring}]\nsweep: {nodes: [4]}\n", check_as_without);
}

/* ---- alternatives ---- */

/* Behind the methods with rows of their own and in front of the all-reduce, whose name it has. */
static void check_candidates(const struct psd_plan *plan)
{
	const unsigned p = plan->system->sync - PSD_SYNC_ALL_REDUCE;
	char name[64];

	snprintf(name, sizeof(name), "low-rank %s", psd_all_reduces[p]->name);
	cr_assert_eq(plan->n_candidates, 5); /* ps, sfb, adam */
	cr_expect_eq(plan->candidates[3], &psd_method_low_rank[p]);
	cr_expect_eq(plan->candidates[4], &psd_method_all_reduces[p]);
	cr_expect_str_eq(psd_method_low_rank[p].name, name);
	cr_expect_eq(psd_method_low_rank[p].collective, psd_all_reduces[p]);
}

Test(low_rank_plan, every_all_reduce_has_a_row_of_its_own)
{
	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++) {
		char text[1024];

		snprintf(text, sizeof(text),
			 NETWORK "systems: [{name: A, sync: %s, low_rank: {rank: 2}}]\nsweep: {nodes: [2, 8]}\n",
			 psd_all_reduces[p]->name);
		for_each_plan(text, check_candidates);
	}
}

/* P divides the weights' narrow matrices: a node sends and receives 2 (P-1)/P of both. */
EACH_PLAN(low_rank_plan, an_alternative_is_weighed_where_there_are_narrow_matrices,
	  NETWORK "systems: [{name: A, sync: ring, low_rank: {rank: 2}}]\nsweep: {nodes: [2, 4]}\n")
{
	const uint64_t P = plan->layout.workers;
	struct psd_alternative alternatives[PSD_CANDIDATES];
	struct psd_error err = {.text = ""};

	for (unsigned i = 0; i < plan->n_items; i++) {
		const uint64_t values = 2 * (layers[i / 2].outputs + layers[i / 2].inputs);

		cr_assert_eq(psd_choice_weigh(alternatives, plan, &plan->items[i], &err), PSD_OK, "%s", err.text);
		cr_expect_eq(alternatives[3].is_possible, i % 2 == 0, "item %u", i);
		if (i % 2 == 0 && i / 2 < N_LAYERS - 1)
			cr_expect_eq(alternatives[3].node_bytes, 2 * 2 * (P - 1) * values / P * 4, "item %u", i);
	}
}

/* ---- encodings ---- */

/* expected: the error that refuses a system at this number of nodes; "" if it is accepted. */
static void expect_refused(const char *system, unsigned nodes, const char *expected)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "model: {graph: tests/data/one_layer.yaml, batch_per_worker: 64}\ncompute: {device: v100}\n"
		 "cluster: {stack: none, nodes: %u, network: {bandwidth: 10Gbps, latency: 50us}}\nsystems:\n  - {name: "
		 "a, %s}\n",
		 nodes, system);
	loaded_expect_refused(text, expected);
}

Test(low_rank_plan, narrow_matrices_are_not_rounded_on_top)
{
	expect_refused("sync: ring, wire: fp16, low_rank: {rank: 63}", 2,
		       "test.yaml:5:5: 'wire' of system 'a' is 'fp16', must be 'fp32' where tensors go by method "
		       "'low-rank ring'");
	expect_refused("sync: torus, wire: bf16, low_rank: {rank: 2}", 8,
		       "test.yaml:5:5: 'wire' of system 'a' is 'bf16', must be 'fp32' where tensors go by method "
		       "'low-rank torus'");
	expect_refused("sync: ring, wire: fp32, low_rank: {rank: 2}", 2, "");
	/* nothing travels, or nothing narrow does */
	expect_refused("sync: ring, wire: fp16, low_rank: {rank: 2}", 1, "");
	expect_refused("sync: ring, wire: fp16, low_rank: {rank: 64}", 2, "");
}
