/* Plans: the bucket, the method and the parts of each tensor. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "engine/program/choice.h"
#include "tests/simulate_helper.h"

#define VGG19                                                                                                          \
	"title: t\n"                                                                                                   \
	"model: {graph: scenarios/models/vgg19.yaml, batch_per_worker: 32}\n"                                          \
	"compute: {device: titan-x}\n"                                                                                 \
	"cluster: {stack: none, network: {bandwidth: 10Gbps, latency: 50us}}\n"

static const struct psd_layer *layer_of(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	return &plan->graph->layers[item->layer];
}

static void weigh(struct psd_alternative alternatives[PSD_CANDIDATES], const struct psd_plan *plan,
		  const struct psd_plan_item *item)
{
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_choice_weigh(alternatives, plan, item, &err), PSD_OK, "%s", err.text);
}

/* ---- encodings ---- */

Test(plan, a_method_without_encoded_buffers_takes_no_lossy_encoding)
{
	struct psd_method method = psd_method_sfb;
	struct psd_plan plan = {.wire = &psd_encoding_bf16};

	cr_expect(psd_choice_takes_wire(&plan, &method));
	method.keeps[PSD_BUFFER_ENCODED_FACTORS] = false;
	cr_expect_not(psd_choice_takes_wire(&plan, &method));
	plan.wire = &psd_encoding_fp32;
	cr_expect(psd_choice_takes_wire(&plan, &method));
}

/* ---- compression ---- */

#define COMPRESSED_NETWORK(model)                                                                                      \
	"title: t\nmodel: {graph: " model ", batch_per_worker: 32}\ncompute: {device: titan-x}\n"                      \
	"cluster: {stack: none, network: {bandwidth: 10Gbps, latency: 50us}}\n"
#define COMPRESSED_SYSTEMS                                                                                             \
	"systems:\n"                                                                                                   \
	"  - {name: one-bit, sync: ps, compress: {by: one-bit}}\n"                                                     \
	"  - {name: matrices, sync: ps, compress: {by: one-bit, tensors: matrices, block: 32768}}\n"                   \
	"  - {name: top-k, sync: ps, compress: {by: top-k, block: 2048}}\n"                                            \
	"  - {name: top-k matrices, sync: ps, unit: tensor, compress: {by: top-k, tensors: matrices}}\n"               \
	"  - {name: apart, sync: ps, servers: 3, slice: 4MB, compress: {by: top-k, kept: 100%, block: 3072}}\n"

static uint64_t blocks_of(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	uint64_t n = 0;

	for (unsigned t = 0; t < item->n_tensors; t++)
		n += (uint64_t)ceil((double)plan->graph->tensors[psd_plan_tensor(plan, item, t)].elements /
				    (double)plan->system->compress.block_elements);
	return n;
}

/* All, or what has factors: with a unit of layers a matrix and its bias. */
static void check_compressed(const struct psd_plan *plan)
{
	const struct psd_compress *compress = &plan->system->compress;
	const bool is_of_all = compress->tensors == PSD_COMPRESSED_ALL;

	cr_assert_eq(plan->compress, compress, "%s", plan->system->name);
	cr_expect_eq(plan->compression, psd_compressions[compress->by]);
	cr_expect_eq(plan->block.elements, compress->block_elements);
	for (unsigned i = 0; i < plan->n_items; i++) {
		const struct psd_plan_item *item = &plan->items[i];
		const struct psd_tensor *first = &plan->graph->tensors[psd_plan_tensor(plan, item, 0)];
		const bool is_matrix = layer_of(plan, item)->kind == &psd_layer_inner_product && first->rows > 0;
		const bool is_packed = is_of_all || is_matrix;

		cr_expect_eq(item->method, is_packed ? &psd_method_packed[compress->by] : &psd_method_ps, "%s: '%s'",
			     plan->system->name, first->name);
		cr_expect_eq(item->n_blocks, blocks_of(plan, item), "%s: '%s'", plan->system->name, first->name);
		cr_expect(!is_packed || item->n_slices == 1, "%s: '%s'", plan->system->name, first->name);
	}
}

Test(plan, all_tensors_travel_compressed_or_matrices_alone)
{
	for_each_plan(VGG19 COMPRESSED_SYSTEMS "sweep: {nodes: [2, 8]}\n", check_compressed);
	for_each_plan(COMPRESSED_NETWORK("scenarios/models/cifar10-quick.yaml") COMPRESSED_SYSTEMS
		      "sweep: {nodes: [2, 8]}\n",
		      check_compressed);
}

/* (25088, 4096), (4096, 4096) and (4096, 1000) values with a bias each: matrices in whole blocks of 1024, the biases
 * of 4096 too; that of 1000 in one. Convolutions in blocks of their own: the first has 1728 weights and 64 biases. */
EACH_PLAN(plan, blocks_are_cut_from_each_tensor_anew,
	  VGG19 "systems: [{name: A, sync: ps, compress: {by: one-bit}}]\nsweep: {nodes: [2]}\n")
{
	cr_expect_eq(plan->items[2].n_blocks, 25088 * 4 + 4);
	cr_expect_eq(plan->items[1].n_blocks, 4096 * 4 + 4);
	cr_expect_eq(plan->items[0].n_blocks, 4 * 1000 + 1);
	cr_expect_eq(plan->items[plan->n_items - 1].n_blocks, 2 + 1);
}

/* As without the key, but for its own name. */
EACH_PLAN(plan, one_worker_compresses_nothing, VGG19 COMPRESSED_SYSTEMS "sweep: {nodes: [1]}\n")
{
	struct psd_system system = *plan->system;
	struct psd_plan_input input = {.graph = plan->graph,
				       .costs = plan->costs,
				       .system = &system,
				       .network = &(struct psd_network){.latency_sec = 50e-6},
				       .layout = plan->layout,
				       .link_bps = 10e9,
				       .batch = 32,
				       .machine = plan->machine};
	struct psd_plan without;
	struct psd_error err = {.text = ""};

	system.is_compressed = false;
	cr_assert_eq(psd_plan_make(&without, &input, &err), PSD_OK, "%s", err.text);
	cr_expect_null(plan->compress);
	cr_expect_null(plan->compression);
	cr_expect_eq(plan->n_candidates, without.n_candidates);
	cr_expect_arr_eq(plan->candidates, without.candidates, sizeof(without.candidates));
	cr_assert_eq(plan->n_items, without.n_items);
	for (unsigned i = 0; i < plan->n_items; i++) {
		cr_expect_eq(plan->items[i].method, &psd_method_ps);
		cr_expect_eq(plan->items[i].method, without.items[i].method);
		cr_expect_eq(plan->items[i].n_slices, without.items[i].n_slices);
		cr_expect_eq(plan->items[i].n_blocks, 0);
	}
	psd_plan_release(&without);
}

/* 1 % of 1024 are 10.24; one value at least. */
Test(plan, the_kept_share_of_a_block_is_rounded_up)
{
	static const struct {
		const char *keys;
		uint32_t elements, kept;
	} rows[] = {
		{"", 1024, 11},
		{"kept: 1%, block: 32768", 32768, 328},
		{"kept: 0.001%", 1024, 1},
		{"kept: 25%", 1024, 256},
		{"kept: 50.01%, block: 2048", 2048, 1025},
		{"kept: 100%, block: 5120", 5120, 5120},
	};

	for (unsigned r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
		struct loaded loaded;
		struct psd_case made;

		loaded_print(&loaded,
			     VGG19 "systems: [{name: A, sync: ps, compress: {by: top-k%s%s}}]\nsweep: {nodes: [2]}\n",
			     *rows[r].keys ? ", " : "", rows[r].keys);
		loaded_case(&made, &loaded, 0, 0);
		cr_expect_eq(made.plan.block.elements, rows[r].elements, "%s", rows[r].keys);
		cr_expect_eq(made.plan.block.kept, rows[r].kept, "%s: %u are kept", rows[r].keys, made.plan.block.kept);
		psd_case_release(&made);
		loaded_close(&loaded);
	}
}

/* Where blocks travel, value_bytes is the size of a block. Residuals have 4 bytes a value at any precision. */
EACH_PLAN(plan, blocks_are_as_wide_in_mixed_precision,
	  "model: {graph: scenarios/models/vgg19.yaml, batch_per_worker: 32, precision: mixed}\n"
	  "compute: {device: v100}\ncluster: {stack: none, network: {bandwidth: 10Gbps, latency: 50us}}\n"
	  "systems: [{name: A, sync: ps, compress: {by: one-bit, block: 2048}}]\nsweep: {nodes: [2, 8]}\n")
{
	static const enum psd_buffer of_blocks[] = {PSD_BUFFER_PACKED, PSD_BUFFER_PACKED_PARTS, PSD_BUFFER_PACKED_SUM};

	for (unsigned i = 0; i < 3; i++)
		cr_expect_eq(psd_plan_value_bytes(plan, of_blocks[i]), 2 * 4 + 2048 / 8);
	cr_expect_eq(psd_plan_value_bytes(plan, PSD_BUFFER_GRADIENT), 2);
	cr_expect_eq(psd_plan_value_bytes(plan, PSD_BUFFER_RESIDUAL), 4);
	cr_expect_eq(psd_plan_value_bytes(plan, PSD_BUFFER_PART_RESIDUAL), 4);
}

/* expected: the error that refuses a system at this number of nodes, with a network of one matrix or of none; "" if it
 * is accepted. */
static void expect_wire(const char *model, const char *system, unsigned nodes, const char *expected)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "model: {graph: %s, batch_per_worker: 64}\ncompute: {device: v100}\n"
		 "cluster: {stack: none, nodes: %u, network: {bandwidth: 10Gbps, latency: 50us}}\nsystems:\n  - {name: "
		 "a, sync: ps, %s}\n",
		 model, nodes, system);
	loaded_expect_refused(text, expected);
}

Test(plan, compressed_gradients_are_not_rounded_on_top)
{
	static const char model[] = "scenarios/models/cifar10-quick.yaml";

	expect_wire(model, "wire: fp16, compress: {by: one-bit}", 2,
		    "test.yaml:5:5: 'wire' of system 'a' is 'fp16', must be 'fp32' where tensors go by method 'one-bit "
		    "ps'");
	expect_wire(
		model, "wire: bf16, compress: {by: top-k}", 8,
		"test.yaml:5:5: 'wire' of system 'a' is 'bf16', must be 'fp32' where tensors go by method 'top-k ps'");
	expect_wire(model, "wire: bf16, compress: {by: one-bit, tensors: matrices}", 2,
		    "test.yaml:5:5: 'wire' of system 'a' is 'bf16', must be 'fp32' where tensors go by method 'one-bit "
		    "ps'");
	expect_wire(model, "wire: fp16, asynchronous: {}", 2,
		    "test.yaml:5:5: 'wire' of system 'a' is 'fp16', must be 'fp32' in an 'asynchronous' system");
	expect_wire(model, "wire: fp32, compress: {by: one-bit}", 2, "");
	/* nothing travels, or nothing compressed does */
	expect_wire(model, "wire: fp16, compress: {by: one-bit}", 1, "");
	expect_wire(model, "wire: fp16, servers: 2, compress: {by: one-bit}", 1, "");
}

/* Beside what could be without the key, behind the methods with rows of their own and in front of the ring. */
EACH_PLAN(plan, compressed_items_are_weighed_beside_the_others, VGG19 COMPRESSED_SYSTEMS "sweep: {nodes: [2, 8]}\n")
{
	const struct psd_method *const expected[] = {&psd_method_ps, &psd_method_sfb, &psd_method_adam,
						     &psd_method_packed[plan->system->compress.by],
						     &psd_method_all_reduces[0]};

	cr_assert_eq(plan->n_candidates, sizeof(expected) / sizeof(*expected));
	cr_expect_arr_eq(plan->candidates, expected, sizeof(expected));
	cr_expect_str_eq(expected[3]->name, plan->system->compress.by ? "top-k ps" : "one-bit ps");
}

/* A worker sends the blocks of other shards to them, and sends the blocks of its own shard to each of the others; it
 * receives as many. The busiest worker has the most blocks; the parts differ by one block. */
EACH_PLAN(plan, compressed_alternatives_carry_whole_blocks,
	  VGG19 "systems:\n  - {name: one-bit, sync: ps, compress: {by: one-bit, tensors: matrices}}\n"
		"  - {name: top-k, sync: ps, compress: {by: top-k}}\nsweep: {nodes: [2, 3, 8]}\n")
{
	const uint64_t P = plan->layout.workers, block_bytes = plan->system->compress.by ? 11 * 6 + 2 : 8 + 1024 / 8;

	for (unsigned i = 0; i < plan->n_items; i++) {
		const uint64_t B = plan->items[i].n_blocks, most = (B + P - 1) / P;
		struct psd_alternative alternatives[PSD_CANDIDATES];

		weigh(alternatives, plan, &plan->items[i]);
		cr_expect(alternatives[3].is_possible);
		cr_expect_eq(alternatives[3].node_bytes, 2 * (B - most + (P - 1) * most) * block_bytes,
			     "%s of %lu workers: item %u", plan->system->name, P, i);
		cr_expect_lt(alternatives[3].isolated_sec, alternatives[0].isolated_sec);
	}
}

/* ---- items ---- */

/* Last layer first; within a layer weight before bias. */
EACH_PLAN(plan, items_hold_every_tensor_once_in_order_of_generation,
	  VGG19 "systems:\n"
		"  - {name: ps layer, sync: ps, unit: layer}\n"
		"  - {name: ps tensor, sync: ps, unit: tensor}\n"
		"  - {name: hybrid layer, sync: hybrid, unit: layer}\n"
		"  - {name: hybrid tensor, sync: hybrid, unit: tensor}\n"
		"  - {name: adam tensor, sync: adam, unit: tensor}\n"
		"  - {name: ring layer, sync: ring, unit: layer}\n"
		"  - {name: ring tensor, sync: ring, unit: tensor}\n"
		"sweep: {nodes: [1, 8]}\n")
{
	unsigned n_seen[256] = {0};

	cr_assert_leq(plan->graph->n_tensors, 256);
	for (unsigned i = 0; i < plan->n_items; i++) {
		const struct psd_plan_item *item = &plan->items[i];
		const struct psd_layer *layer = layer_of(plan, item);
		uint64_t elements = 0;
		if (i > 0)
			cr_expect(item[-1].layer > item->layer ||
					  (item[-1].layer == item->layer && item[-1].first < item->first),
				  "%s: item %u is out of order", plan->system->name, i);
		for (unsigned n = 0; n < item->n_tensors; n++) {
			const unsigned t = psd_plan_tensor(plan, item, n);
			cr_expect(t >= layer->first_tensor && t < layer->first_tensor + layer->n_tensors,
				  "%s: item %u reaches beyond layer '%s'", plan->system->name, i, layer->name);
			n_seen[t]++;
			elements += plan->graph->tensors[t].elements;
		}
		cr_expect_eq(item->subject.elements, elements, "%s: item %u", plan->system->name, i);
	}
	for (unsigned t = 0; t < plan->graph->n_tensors; t++)
		cr_expect_eq(n_seen[t], 1, "%s: tensor '%s' is in %u items", plan->system->name,
			     plan->graph->tensors[t].name, n_seen[t]);
}

EACH_PLAN(plan, unit_decides_what_one_item_holds,
	  VGG19 "systems:\n"
		"  - {name: ps layer, sync: ps, unit: layer}\n"
		"  - {name: ps tensor, sync: ps, unit: tensor}\n"
		"  - {name: ring layer, sync: ring, unit: layer}\n"
		"  - {name: ring tensor, sync: ring, unit: tensor}\n"
		"sweep: {nodes: [4]}\n")
{
	/* VGG19: 16 convolutions and 3 inner products, each with a bias */
	cr_expect_eq(plan->n_items, plan->system->unit == PSD_UNIT_LAYER ? 16 + 3 : 2 * (16 + 3), "%s",
		     plan->system->name);
}

/* 4 bytes a value: fc8 of (4096, 1000) has 16.4 MB, fc7 of (4096, 4096) 67.1 MB, fc6 of (25088, 4096) 411 MB, seven
 * convolutions from the last on 9.44 MB each. An item ends with the tensor that makes it as large as it must be. */
EACH_PLAN(plan, tensors_are_gathered_to_a_size,
	  VGG19 "systems: [{name: fused, sync: ring, fuse: 64MB}]\nsweep: {nodes: [4]}\n")
{
	/* with the bias of the item before first, where its weight was the last one: fc8 and fc7's weight; fc7's bias
	 * and fc6's weight; fc6's bias, six convolutions and the weight of the seventh; the rest */
	const unsigned n_tensors[] = {2 + 1, 1 + 1, 1 + 6 * 2 + 1, 1 + 9 * 2};
	const unsigned n_items = sizeof(n_tensors) / sizeof(*n_tensors);

	cr_assert_eq(plan->n_items, n_items, "%u items", plan->n_items);
	for (unsigned i = 0, next = 0; i < n_items; next += n_tensors[i++]) {
		const struct psd_plan_item *item = &plan->items[i];
		uint64_t elements = 0;
		cr_expect_eq(item->first, next, "item %u", i);
		cr_expect_eq(item->n_tensors, n_tensors[i], "item %u has %u tensors", i, item->n_tensors);
		for (unsigned n = 0; n < item->n_tensors; n++)
			elements += plan->graph->tensors[psd_plan_tensor(plan, item, n)].elements;
		cr_expect_eq(item->subject.elements, elements);
		cr_expect_eq(item->subject.rows, 0, "item %u has factors", i);
		/* generation order: the last tensor is the lowest layer's */
		cr_expect_eq(item->layer, plan->graph->tensors[psd_plan_tensor(plan, item, item->n_tensors - 1)].layer);
	}
}

EACH_PLAN(plan, gathering_reaches_from_one_tensor_to_all,
	  VGG19 "systems: [{name: each, sync: ring, fuse: 1B}, {name: all, sync: ring, fuse: 1GB}]\n"
		"sweep: {nodes: [4]}\n")
{
	/* a byte is reached by every tensor, 1 GB (of 575 MB) by none but the last */
	cr_expect_eq(plan->n_items, plan->system->fuse_bytes == 1 ? 2 * (16 + 3) : 1);
}

EACH_PLAN(plan, a_lone_worker_has_one_bucket,
	  VGG19 "systems: [{name: found, sync: ring, fuse: auto}]\nsweep: {nodes: [1]}\n")
{
	cr_expect_eq(plan->n_items, 1);
}

/* An item is complete with the tensor that makes it exactly as large as it must be: fc8's weight, (4096, 1000) floats,
 * is the first tensor. */
EACH_PLAN(plan, gathering_ends_at_the_very_size,
	  VGG19 "systems: [{name: exact, sync: ring, fuse: 16384000B}]\nsweep: {nodes: [4]}\n")
{
	cr_expect_eq(plan->items[0].subject.elements * plan->value_bytes, plan->system->fuse_bytes);
}

EACH_PLAN(plan, biases_travel_with_factors,
	  VGG19 "systems:\n"
		"  - {name: sfb, sync: sfb, unit: tensor}\n"
		"  - {name: adam, sync: adam, unit: tensor}\n"
		"  - {name: sacp, sync: sacp, unit: tensor}\n"
		"  - {name: hybrid, sync: hybrid, unit: tensor}\n"
		"sweep: {nodes: [1, 8]}\n")
{
	for (unsigned i = 0; i < plan->n_items; i++) {
		const struct psd_plan_item *item = &plan->items[i];
		if (item->method != &psd_method_sfb && item->method != &psd_method_adam)
			continue;
		const struct psd_tensor *weight = &plan->graph->tensors[psd_plan_tensor(plan, item, 0)];
		cr_expect_eq(item->n_tensors, 2, "%s: layer '%s'", plan->system->name, layer_of(plan, item)->name);
		cr_expect_eq(item->subject.rows, weight->rows);
		cr_expect_eq(item->subject.columns, weight->columns);
		cr_expect_eq(item->subject.elements, (uint64_t)weight->rows * weight->columns + weight->columns, "%s",
			     plan->system->name);
	}
}

/* ---- methods ---- */

EACH_PLAN(plan, hybrid_sends_factors_of_inner_products_at_eight_nodes,
	  VGG19 "systems: [{name: hybrid, sync: hybrid}]\nsweep: {nodes: [8]}\n")
{
	const char *const with_factors[] = {"fc8", "fc7", "fc6"}; /* as backward reaches them */

	cr_assert_eq(plan->n_items, 19);
	for (unsigned i = 0; i < plan->n_items; i++) {
		const struct psd_plan_item *item = &plan->items[i];
		cr_expect_eq(item->method, i < 3 ? &psd_method_sfb : &psd_method_ps, "'%s'",
			     layer_of(plan, item)->name);
		if (i < 3)
			cr_expect_str_eq(layer_of(plan, item)->name, with_factors[i]);
	}
}

/* With P = S: factors while P <= 2 M N / (K (M+N)). fc8 (4096, 1000) leaves at 51, fc7 at 129, fc6 (25088, 4096) at
 * 221. */
EACH_PLAN(plan, hybrid_leaves_factors_where_they_outgrow_the_matrix,
	  VGG19 "systems: [{name: hybrid, sync: hybrid}]\nsweep: {nodes: [1, 2, 50, 51, 128, 129, 220, 221]}\n")
{
	for (unsigned i = 0; i < 3; i++) {
		const struct psd_plan_item *item = &plan->items[i];
		const uint64_t M = item->subject.rows, N = item->subject.columns, K = 32;
		const bool takes_factors = plan->layout.workers * K * (M + N) <= 2 * M * N;
		cr_expect_eq(item->method, takes_factors ? &psd_method_sfb : &psd_method_ps, "'%s' of %u workers",
			     layer_of(plan, item)->name, plan->layout.workers);
	}
}

EACH_PLAN(plan, one_node_exchanges_nothing,
	  VGG19 "systems: [{name: ps, sync: ps}, {name: hybrid, sync: hybrid}, {name: adam, sync: adam}, "
		"{name: ring, sync: ring}]\nsweep: {nodes: [1]}\n")
{
	struct psd_alternative alternatives[PSD_CANDIDATES];

	for (unsigned i = 0; i < plan->n_items; i++) {
		weigh(alternatives, plan, &plan->items[i]);
		for (unsigned m = 0; m < plan->n_candidates; m++)
			cr_expect_eq(alternatives[m].node_bytes, 0, "%s: %s of '%s'", plan->system->name,
				     plan->candidates[m]->name, layer_of(plan, &plan->items[i])->name);
	}
}

EACH_PLAN(plan, systems_of_one_method_leave_no_choice,
	  VGG19 "systems: [{name: ps, sync: ps}, {name: sfb, sync: sfb}, {name: adam, sync: adam}, {name: "
		"ring, sync: ring}]\n"
		"sweep: {nodes: [1, 2, 8, 300]}\n")
{
	const enum psd_sync sync = plan->system->sync;

	for (unsigned i = 0; i < plan->n_items; i++) {
		const bool has_factors = layer_of(plan, &plan->items[i])->kind == &psd_layer_inner_product;
		const struct psd_method *expected = &psd_method_ps;
		if (sync >= PSD_SYNC_ALL_REDUCE)
			expected = &psd_method_all_reduces[sync - PSD_SYNC_ALL_REDUCE];
		else if (has_factors && sync == PSD_SYNC_SFB)
			expected = &psd_method_sfb;
		else if (has_factors && sync == PSD_SYNC_ADAM)
			expected = &psd_method_adam;
		cr_expect_eq(plan->items[i].method, expected, "%s: '%s'", plan->system->name,
			     layer_of(plan, &plan->items[i])->name);
	}
}

/* Factors peer to peer while (P-1)^2 K (M+N) <= P K (M+N) + P M N, else factors up and the matrix down. */
EACH_PLAN(plan, sacp_chooses_between_peers_and_a_root,
	  VGG19 "systems: [{name: sacp, sync: sacp}]\nsweep: {nodes: [1, 2, 8, 27, 28, 66, 67, 68, 112, 113, 200]}\n")
{
	for (unsigned i = 0; i < plan->n_items; i++) {
		const struct psd_plan_item *item = &plan->items[i];
		const uint64_t P = plan->layout.workers, M = item->subject.rows, N = item->subject.columns,
			       factors = 32 * (M + N);
		const struct psd_method *expected = &psd_method_ps;
		if (M > 0)
			expected = (P - 1) * (P - 1) * factors <= P * factors + P * M * N ? &psd_method_sfb
											  : &psd_method_adam;
		cr_expect_eq(item->method, expected, "'%s' of %lu workers", layer_of(plan, item)->name, P);
	}
}

/* ---- the rule in seconds ---- */

EACH_PLAN(plan, the_rule_in_seconds_takes_the_fastest,
	  VGG19 "systems: [{name: hybrid, sync: hybrid, rule: seconds}, {name: sacp, sync: sacp, rule: "
		"seconds}, {name: hybrid apart, sync: hybrid, rule: seconds, servers: 3, host: {copy: "
		"3GBps, reduce: 2GBps, transport: 8Gbps, incast: 20%, latency: 10us}}]\n"
		"sweep: {nodes: [1, 2, 3, 8, 40, 400]}\n")
{
	const bool is_hybrid = plan->system->sync == PSD_SYNC_HYBRID;

	for (unsigned i = 0; i < plan->n_items; i++) {
		const struct psd_plan_item *item = &plan->items[i];
		const bool has_factors = item->subject.rows > 0;
		struct psd_alternative alternatives[PSD_CANDIDATES];
		double chosen_sec = -1.0;
		weigh(alternatives, plan, item);
		for (unsigned m = 0; m < plan->n_candidates; m++)
			if (plan->candidates[m] == item->method)
				chosen_sec = alternatives[m].isolated_sec;
		cr_assert_geq(chosen_sec, 0.0);
		for (unsigned m = 0; m < plan->n_candidates; m++) {
			const bool needs_factors =
				plan->candidates[m] == &psd_method_sfb || plan->candidates[m] == &psd_method_adam;
			cr_expect_eq(alternatives[m].is_possible, has_factors || !needs_factors);
			if (!alternatives[m].is_possible || (!is_hybrid && !needs_factors) ||
			    (!is_hybrid && !has_factors))
				continue;
			cr_expect_leq(chosen_sec, alternatives[m].isolated_sec,
				      "%s, %u workers, '%s': %s takes %g s, %s %g s", plan->system->name,
				      plan->layout.workers, layer_of(plan, item)->name, item->method->name, chosen_sec,
				      plan->candidates[m]->name, alternatives[m].isolated_sec);
		}
	}
}

/* ---- slices ---- */

/* A slice is no larger than the system's own bound, or than a pair for each shard; no smaller slice number would do. */
EACH_PLAN(plan, slices_are_no_larger_than_their_bound,
	  VGG19 "systems: [{name: ps, sync: ps}, {name: small, sync: ps, pair: 1MB, slice: 1MB}, "
		"{name: large, sync: ps, slice: 1GiB}, {name: adam, sync: adam, slice: 4MB, pair: 64KiB}, "
		"{name: hybrid, sync: hybrid}, {name: ring, sync: ring}]\nsweep: {nodes: [1, 2, 8, 64]}\n")
{
	const uint64_t a_pair_each_bytes = plan->system->pair_bytes * plan->layout.shards;
	const uint64_t bound_bytes =
		plan->system->slice_bytes > a_pair_each_bytes ? plan->system->slice_bytes : a_pair_each_bytes;

	for (unsigned i = 0; i < plan->n_items; i++) {
		const struct psd_plan_item *item = &plan->items[i];
		const uint64_t bytes = item->subject.elements * plan->value_bytes;
		cr_assert_geq(item->n_slices, 1);
		if (item->method == &psd_method_sfb || item->method == &psd_method_all_reduces[0]) {
			cr_expect_eq(item->n_slices, 1);
			continue;
		}
		cr_expect_leq(bytes, bound_bytes * item->n_slices, "%s: '%s' in %u slices", plan->system->name,
			      layer_of(plan, item)->name, item->n_slices);
		cr_expect(item->n_slices == 1 || bytes > bound_bytes * (item->n_slices - 1), "%s: '%s' in %u slices",
			  plan->system->name, layer_of(plan, item)->name, item->n_slices);
	}
}

/* ---- bytes of the alternatives ---- */

EACH_PLAN(plan, alternatives_carry_the_bytes_of_table_1,
	  VGG19 "systems: [{name: hybrid, sync: hybrid}]\nsweep: {nodes: [2, 8, 40]}\n")
{
	const uint64_t P = plan->layout.workers; /* = S */

	struct psd_alternative alternatives[PSD_CANDIDATES]; /* ps, sfb, adam, ring */

	for (unsigned i = 0; i < 3; i++) {
		const struct psd_plan_item *item = &plan->items[i];
		const uint64_t M = item->subject.rows, N = item->subject.columns, K = 32;
		weigh(alternatives, plan, item);
		const uint64_t values = M * N + N; /* with the bias */
		/* shards' parts differ by one value when they do not divide the tensor: pushed by or pulled to each of
		 * the others */
		cr_expect_geq(alternatives[0].node_bytes, 4 * (2 * values * (2 * P - 2) / P));
		cr_expect_leq(alternatives[0].node_bytes, 4 * (2 * values * (2 * P - 2) / P + 4 * P));
		cr_expect_eq(alternatives[1].node_bytes, 4 * (2 * K * (P - 1) * (M + N)));
		cr_expect_eq(alternatives[2].node_bytes, 4 * (P - 1) * (values + K * (M + N)));
		/* sends two chunks but once, and receives two but once; chunks differ by one value when P does not
		 * divide the tensor */
		cr_expect_leq(alternatives[3].node_bytes, 4 * (4 * (P - 1) * values / P + 4));
		cr_expect_geq(alternatives[3].node_bytes + 4 * 4, 4 * (4 * (P - 1) * values / P));
	}
}

/* ---- roots ---- */

EACH_PLAN(plan, matrices_take_turns_on_the_shards,
	  VGG19 "systems: [{name: adam, sync: adam}, {name: adam apart, sync: adam, servers: 2}]\nsweep: "
		"{nodes: [2, 8]}\n")
{
	for (unsigned i = 0; i < 3; i++)
		cr_expect_eq(plan->items[i].root, psd_layout_shard_host(&plan->layout, i % plan->layout.shards),
			     "%s, %u workers: item %u", plan->system->name, plan->layout.workers, i);
}

/* ---- parameters that stay as they start ---- */

/* A network's first weight and last bias. */
Test(plan, fixed_parameters_are_in_no_item)
{
	static const char *const syncs[] = {"ps", "hybrid", "ring", "ring, fuse: 1MiB", "adam"};

	for (unsigned s = 0; s < sizeof(syncs) / sizeof(*syncs); s++) {
		struct loaded loaded;
		struct psd_case made;
		uint64_t elements = 0, expected;

		loaded_print(&loaded, VGG19 "systems: [{name: s, sync: %s}]\nsweep: {nodes: 4}\n", syncs[s]);
		struct psd_tensor *tensors = loaded.costed.graph.tensors;
		const unsigned last = loaded.costed.graph.n_tensors - 1;
		tensors[0].rate_ratio = tensors[last].rate_ratio = 0;
		expected = loaded.costed.graph.parameters - tensors[0].elements - tensors[last].elements;
		loaded_case(&made, &loaded, 0, 0);
		cr_expect_eq(made.plan.n_tensors, last + 1 - 2);
		for (unsigned i = 0; i < made.plan.n_items; i++) {
			elements += made.plan.items[i].subject.elements;
			for (unsigned t = 0; t < made.plan.items[i].n_tensors; t++)
				cr_expect_neq(tensors[psd_plan_tensor(&made.plan, &made.plan.items[i], t)].rate_ratio,
					      0);
		}
		cr_expect_eq(elements, expected, "%s", syncs[s]);
		psd_case_release(&made);
		loaded_close(&loaded);
	}
}

/* The sweep's size replaces the one that Ring names. With one page, each of the MLP's three layers is an item; with as
 * many bytes as all have, there is one item. */
Test(plan, a_sweep_says_how_much_is_gathered)
{
	static const char text[] = "title: t\nmodel: {graph: scenarios/models/mlp.yaml, batch_per_worker: 1}\n"
				   "compute: {device: p100}\n"
				   "cluster: {stack: none, nodes: 4, network: {bandwidth: 10Gbps, latency: 50us}}\n"
				   "systems: [{name: Ring, sync: ring, unit: layer, fuse: 1MiB}]\n"
				   "sweep: {fuse: [4KiB, 1GiB]}\n";
	const unsigned expected_items[] = {3, 1};
	struct loaded loaded;

	loaded_open(&loaded, text);
	for (unsigned p = 0; p < 2; p++) {
		struct psd_case made;

		loaded_case(&made, &loaded, 0, p);
		cr_expect_eq(made.plan.n_items, expected_items[p], "point %u: %u items", p, made.plan.n_items);
		psd_case_release(&made);
	}
	loaded_close(&loaded);
}

/* Servers that keep matrices, chunks that are held back, momentum that has gone before and local steps. */
Test(plan, gradients_that_workers_never_have_whole_are_not_clipped)
{
	static const struct {
		const char *system, *what;
	} refused[] = {
		{"sync: adam", "updates matrices at servers"},
		{"sync: ring, sparse: {sparsity: 50%}", "is 'sparse'"},
		{"sync: ps, compress: {by: one-bit, momentum: before}", "has 'momentum: before'"},
		{"sync: ring, local_sgd: {steps: 2}", "has 'local_sgd'"},
	};

	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct loaded loaded;
		struct psd_case made;
		struct psd_error err = {.text = ""};
		char text[1024], expected[256];

		snprintf(text, sizeof(text),
			 "title: t\nmodel: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 4}\n"
			 "compute: {device: cpu}\n"
			 "cluster: {stack: none, nodes: 4, network: {bandwidth: 10Gbps, latency: 50us}}\n"
			 "systems:\n  - {name: A, %s}\n"
			 "train: {iterations: 8, optimiser: {momentum: 0.9, clip: 1}, learning_rate: {base: 0.1}}\n",
			 refused[i].system);
		snprintf(expected, sizeof(expected),
			 "test.yaml:6:5: system 'A' %s, 'clip' of the optimiser needs whole gradients at workers",
			 refused[i].what);
		loaded_open(&loaded, text);
		cr_expect_eq(psd_case_make(&made, &loaded.costed, &loaded.scenario.systems[0],
					   psd_scenario_point(&loaded.scenario, 0), &err),
			     PSD_EINVAL, "%s", refused[i].system);
		cr_expect_str_eq(err.text, expected);
		loaded_close(&loaded);
	}
}

/* ---- fragments ---- */

/* Fragments are of consecutive items, and as large as the others but for an item at either end. */
Test(plan, fragments_have_about_the_same_bytes)
{
	for (unsigned n = 1; n <= 8; n++) {
		uint64_t elements[8] = {0}, all = 0, largest = 0;
		struct loaded loaded;
		struct psd_case made;

		loaded_print(&loaded,
			     "model: {graph: scenarios/models/gpt-small.yaml, batch_per_worker: 8}\n"
			     "compute: {device: cpu}\n"
			     "cluster: {stack: none, nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
			     "systems: [{name: s, sync: ring, local_sgd: {steps: 8, fragments: %u}}]\n",
			     n);
		loaded_case(&made, &loaded, 0, 0);
		for (unsigned i = 0; i < made.plan.n_items; i++) {
			const struct psd_plan_item *item = &made.plan.items[i];

			cr_assert_lt(item->fragment, n);
			cr_expect(i == 0 || item->fragment >= item[-1].fragment);
			elements[item->fragment] += item->subject.elements;
			all += item->subject.elements;
			largest = item->subject.elements > largest ? item->subject.elements : largest;
		}
		cr_expect_eq(psd_plan_parts(&made.plan), n);
		for (unsigned f = 0; f < n; f++)
			cr_expect(elements[f] + largest >= all / n && elements[f] <= all / n + largest,
				  "%u of %u: %lu of %lu", f, n, elements[f], all);
		psd_case_release(&made);
		loaded_close(&loaded);
	}
}

/* From the last layer on, the six tensors have 2,560, 10, 65,536, 256, 786,432 and 256 of 855,050 values, and their
 * middles lie at 0.15, 0.30, 4.13, 7.98, 53.98 and 99.99 %: in twelfths 0 (four of them), 6 and 11, and in hundredths
 * 0 (two), 4, 7, 53 and 99. */
Test(plan, fragments_without_tensors_are_no_parts)
{
	static const unsigned fragments[] = {12, 100}, parts[] = {3, 5};

	for (unsigned i = 0; i < 2; i++) {
		struct loaded loaded;
		struct psd_case made;

		loaded_print(&loaded,
			     "model: {graph: scenarios/models/small-mlp.yaml, batch_per_worker: 8}\n"
			     "compute: {device: cpu}\n"
			     "cluster: {stack: none, nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
			     "systems: [{name: s, sync: ring, local_sgd: {steps: 100, fragments: %u}}]\n",
			     fragments[i]);
		loaded_case(&made, &loaded, 0, 0);
		cr_expect_eq(psd_plan_parts(&made.plan), parts[i], "%u: %u", fragments[i], psd_plan_parts(&made.plan));
		psd_case_release(&made);
		loaded_close(&loaded);
	}
}
