/* The shape of programs: which operation waits for which. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>
#include <stdlib.h>

#include "engine/encodings/compression.h"
#include "tests/simulate_helper.h"
#include "tests/test_with.h"

static const char cifar10_quick[] = "title: t\n"
				    "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 100}\n"
				    "compute: {device: k20}\n"
				    "cluster: {stack: none, network: {bandwidth: 10Gbps, latency: 50us}}\n"
				    "systems: [{name: varied, sync: ps, pair: 16KiB, slice: 64KiB}]\n"
				    "sweep: {nodes: [1, 2, 8]}\n";

#define UPDATE_BPS 16e9 /* 2 GB/s */

/* ---- every combination ---- */

typedef void (*check_fn)(const struct psd_program *program, const char *name);

static void check_case(const struct loaded *loaded, const struct psd_system *system, unsigned point, check_fn check)
{
	char name[128];
	struct psd_case made;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_case_make(&made, &loaded->costed, system, psd_scenario_point(&loaded->scenario, point), &err),
		     PSD_OK, "%s", err.text);
	snprintf(name, sizeof(name), "%s, %s, barrier %s, priority %s, %s, %s, %u workers, %u servers%s%s%s",
		 psd_sync_names[system->sync], psd_schedule_names[system->schedule], psd_barrier_names[system->barrier],
		 psd_priority_names[system->priority], loaded->costed.costs.has_own_memory ? "copies" : "no copies",
		 psd_encoding_names[system->wire], made.plan.layout.workers, system->servers,
		 system->is_local ? ", local steps" : "", system->is_compressed || system->is_low_rank ? ", " : "",
		 system->is_low_rank	 ? "low rank"
		 : system->is_compressed ? psd_compression_names[system->compress.by]
					 : "");
	check(&made.program, name);
	psd_case_release(&made);
}

static const char shared_nodes[] =
	"title: t\n"
	"model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 100}\n"
	"compute: {device: k20}\n"
	"cluster: {stack: none, workers_per_node: 3, network: {bandwidth: 10Gbps, latency: 50us}}\n"
	"systems: [{name: varied, sync: ps, pair: 16KiB, slice: 64KiB}]\n"
	"sweep: {workers: [1, 3, 7]}\n";

static bool is_sharded(enum psd_sync sync)
{
	return sync >= PSD_SYNC_SHARDED && sync < PSD_SYNC_LIBRARY;
}

/* Methods that send gradients unchanged, and update all of them on each worker. */
static bool takes_local_steps(enum psd_sync sync)
{
	if (is_sharded(sync))
		return false;
	return sync == PSD_SYNC_PS || sync == PSD_SYNC_TWO_LEVEL_PS || sync >= PSD_SYNC_ALL_REDUCE;
}

static void check_points(const struct loaded *loaded, const struct psd_system *system, check_fn check)
{
	for (unsigned point = 0; point < psd_scenario_points(&loaded->scenario); point++)
		check_case(loaded, system, point, check);
}

/* As the system is, and where a method takes them with local steps. */
static void check_steps_of(const struct loaded *loaded, const struct psd_system *system, check_fn check)
{
	struct psd_system local = *system;

	check_points(loaded, system, check);
	local.is_local = true;
	local.local_sgd = (struct psd_local_sgd){.steps = 4};
	if (!system->is_sparse && takes_local_steps(system->sync))
		check_points(loaded, &local, check);
}

/* All gradients as bits, and those of matrices as few of their values. */
static void check_compressed(const struct loaded *loaded, const struct psd_system *system, check_fn check)
{
	static const struct psd_compress compressions[] = {
		{.by = 0, .block_elements = 1024, .tensors = PSD_COMPRESSED_ALL},
		{.by = 1, .block_elements = 2048, .kept_ratio = 0.01, .tensors = PSD_COMPRESSED_MATRICES},
	};

	for (unsigned c = 0; c < sizeof(compressions) / sizeof(compressions[0]); c++) {
		struct psd_system compressed = *system;

		compressed.is_compressed = true;
		compressed.compress = compressions[c];
		check_steps_of(loaded, &compressed, check);
	}
}

/* Rank 9 leaves the last layer's weight of 10 x 64 as it is. */
static void check_low_rank(const struct loaded *loaded, const struct psd_system *system, check_fn check)
{
	struct psd_system narrowed = *system;

	narrowed.is_low_rank = true;
	for (unsigned rank = 2; rank <= 9; rank += 7) {
		narrowed.low_rank.rank = rank;
		check_steps_of(loaded, &narrowed, check);
	}
}

/* All ways from `first` to `last` to synchronise, 2 schedules (with servers also clocked), 2 barriers, 2 priorities,
 * with and without copies, each number of workers, 0 or 3 servers apart, where there are none items of one tensor or of
 * several layers; as they are or rounded for the way; all of them or chunks; where a method takes them also local
 * steps; to servers also compressed; by all-reduces also of low rank. */
static void for_each_of(const char *scenario, unsigned first, unsigned last, check_fn check)
{
	struct loaded loaded;

	loaded_open(&loaded, scenario);
	for (unsigned bits = 0; bits < 1u << 8; bits++)
		for (unsigned sync = first; sync <= last; sync++) {
			struct psd_system system = loaded.scenario.systems[0];
			system.sync = (enum psd_sync)sync;
			system.schedule = bits & 1 ? PSD_SCHEDULE_WAIT_FREE : PSD_SCHEDULE_SEQUENTIAL;
			system.barrier = bits & 2 ? PSD_BARRIER_LAYER : PSD_BARRIER_ITERATION;
			system.priority = bits & 4 ? PSD_PRIORITY_FORWARD : PSD_PRIORITY_GENERATION;
			loaded.costed.costs.has_own_memory = bits & 8;
			system.host.update_bps = UPDATE_BPS;
			system.is_sparse = bits & 64;
			system.sparse = (struct psd_sparse){.sparsity = 0.5, .chunk_elements = 1000};
			if (system.is_sparse && sync < PSD_SYNC_ALL_REDUCE)
				continue;
			if (bits & 128 && (bits & (1 | 32) || sync >= PSD_SYNC_ALL_REDUCE))
				continue;
			if (bits & 128)
				system.schedule = PSD_SCHEDULE_CLOCKED;
			if (sync == PSD_SYNC_AUTO || (sync >= PSD_SYNC_SHARDED && bits >= 32))
				continue; /* by one of the others; the last ones take neither chunks nor encodings */
			if (is_sharded(sync) && sync > PSD_SYNC_SHARDED)
				continue; /* test_zero.c has those whose buckets take turns */
			if (sync >= PSD_SYNC_ALL_REDUCE)
				system.fuse_bytes = bits & 16 ? 48 * 1024 : 0;
			else
				system.servers = bits & 16 ? 3 : 0;
			if (bits & 32)
				system.wire = 1;
			check_steps_of(&loaded, &system, check);
			if (sync == PSD_SYNC_PS && !(bits & 32))
				check_compressed(&loaded, &system, check);
			if (sync >= PSD_SYNC_ALL_REDUCE && sync < PSD_SYNC_AUTO && bits < 32)
				check_low_rank(&loaded, &system, check);
		}
	loaded_close(&loaded);
}

/* One worker a node, 1, 2 and 8 of them; and where nodes have several, what they speak to servers by. */
static void for_each_program(check_fn check)
{
	for_each_of(cifar10_quick, PSD_SYNC_PS, PSD_SYNC_LIBRARY + PSD_N_LIBRARIES - 1, check);
	for_each_of(shared_nodes, PSD_SYNC_PS, PSD_SYNC_TWO_LEVEL_PS, check);
}

/* A claim about a program, and the test that checks it on each. */
#define EACH_PROGRAM(claim)                                                                                            \
	static void check_##claim(const struct psd_program *program, const char *name);                                \
	Test(program, claim)                                                                                           \
	{                                                                                                              \
		for_each_program(check_##claim);                                                                       \
	}                                                                                                              \
	static void check_##claim(const struct psd_program *program, const char *name)

static struct psd_edge dependency(const struct psd_program *program, uint32_t op, uint32_t e)
{
	return program->dependencies[program->ops[op].first_dependency + e];
}

/* An order exists in which every operation follows what it waits for in the same iteration. */
EACH_PROGRAM(no_operation_waits_for_itself)
{
	uint32_t *n_left = calloc(program->n_ops, sizeof(*n_left));
	uint32_t *order = calloc(program->n_ops, sizeof(*order));
	uint32_t n_ordered = 0;

	cr_assert(n_left != NULL && order != NULL);
	for (uint32_t op = 0; op < program->n_ops; op++) {
		for (uint32_t e = 0; e < program->ops[op].n_dependencies; e++)
			n_left[op] += dependency(program, op, e).distance == 0;
		if (n_left[op] == 0)
			order[n_ordered++] = op;
	}
	for (uint32_t i = 0; i < n_ordered; i++) {
		const struct psd_op *op = &program->ops[order[i]];
		for (uint32_t e = 0; e < op->n_dependents; e++) {
			const struct psd_edge edge = program->dependents[op->first_dependent + e];
			if (edge.distance == 0 && --n_left[edge.op] == 0)
				order[n_ordered++] = edge.op;
		}
	}
	cr_assert_eq(n_ordered, program->n_ops, "%s: %u of %u operations wait in a circle", name,
		     program->n_ops - n_ordered, program->n_ops);
	free(order);
	free(n_left);
}

/* Each edge stands once among the dependencies of one end and once among the dependents of the other. */
EACH_PROGRAM(dependents_mirror_dependencies)
{
	uint32_t n_dependencies = 0, n_dependents = 0;

	for (uint32_t op = 0; op < program->n_ops; op++) {
		n_dependencies += program->ops[op].n_dependencies;
		n_dependents += program->ops[op].n_dependents;
		for (uint32_t e = 0; e < program->ops[op].n_dependencies; e++) {
			const struct psd_edge edge = dependency(program, op, e);
			const struct psd_op *before = &program->ops[edge.op];
			unsigned n_found = 0, n_wanted = 0;
			for (uint32_t d = 0; d < before->n_dependents; d++) {
				const struct psd_edge back = program->dependents[before->first_dependent + d];
				n_found += back.op == op && back.distance == edge.distance;
			}
			for (uint32_t other = 0; other < program->ops[op].n_dependencies; other++) {
				const struct psd_edge same = dependency(program, op, other);
				n_wanted += same.op == edge.op && same.distance == edge.distance;
			}
			cr_assert_eq(n_found, n_wanted, "%s: edge from %u to %u", name, edge.op, op);
		}
	}
	cr_assert_eq(n_dependencies, program->n_edges, "%s", name);
	cr_assert_eq(n_dependents, program->n_edges, "%s", name);
}

EACH_PROGRAM(a_receive_directly_follows_its_send)
{
	unsigned n_sends = 0, n_receives = 0;

	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];
		n_sends += op->kind == PSD_OP_SEND;
		if (op->kind != PSD_OP_RECEIVE)
			continue;
		n_receives++;
		cr_assert_gt(i, 0, "%s", name);
		cr_assert_eq(op[-1].kind, PSD_OP_SEND, "%s: operation %u", name, i);
		cr_assert_eq(op->match, i - 1, "%s: operation %u", name, i);
		cr_assert(op->payload.collective == op[-1].payload.collective &&
				  op->payload.elements == op[-1].payload.elements,
			  "%s: operation %u", name, i);
	}
	cr_assert_eq(n_sends, n_receives, "%s", name);
	if (psd_layout_hosts(&program->plan->layout) == 1)
		cr_assert_eq(n_sends, 0, "%s: one host sends to itself", name);
}

struct count {
	const struct psd_collective *collective;
	uint64_t elements;
};

static void add_elements(struct count *counts, const struct psd_op *op)
{
	while (counts->collective != op->payload.collective)
		counts++;
	counts->elements += op->payload.elements;
}

static bool is_compressed(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	return plan->compress && item->method == &psd_method_packed[plan->compress->by];
}

/* An item of a low-rank plan. */
static bool is_narrowed(const struct psd_plan_item *item)
{
	return item->right > 0;
}

static bool is_updated_by_servers(const struct psd_plan_item *item)
{
	return item->method == &psd_method_ps || item->method == &psd_method_two_level_ps;
}

/* All bytes of an item are pushed and pulled, whatever the slices; or all its blocks; or summed, as they are or as
 * narrow matrices. */
EACH_PROGRAM(slices_carry_all_of_an_item)
{
	const struct psd_plan *plan = program->plan;

	for (unsigned i = 0; i < plan->n_items && psd_layout_hosts(&plan->layout) > 1; i++) {
		const struct psd_plan_item *item = &plan->items[i];
		struct count counts[] = {
			{&psd_push, 0},	       {&psd_pull, 0},
			{&psd_broadcast, 0},   {&psd_to_root, 0},
			{&psd_from_root, 0},   {&psd_to_leader, 0},
			{&psd_leader_push, 0}, {&psd_leader_pull, 0},
			{&psd_from_leader, 0}, {plan->candidates[plan->n_candidates - 1]->collective, 0},
			{&psd_all_gather, 0},  {&psd_node_broadcast, 0},
			{&psd_hand_over, 0},   {&psd_leader_broadcast, 0}};
		for (uint32_t o = 0; o < program->n_ops; o++) {
			const struct psd_op *op = &program->ops[o];
			if (op->item == (int)i && (op->kind == PSD_OP_SEND || op->kind == PSD_OP_COLLECTIVE))
				add_elements(counts, op);
		}
		const uint64_t factors = (uint64_t)item->subject.batch * (item->subject.rows + item->subject.columns);
		const bool is_shared = psd_layout_workers_on(&plan->layout, 0) > 1;
		const bool is_by_leaders = item->method == &psd_method_two_level_ps && is_shared;
		const bool is_ps = is_updated_by_servers(item) && !is_by_leaders;
		const bool is_adam = item->method == &psd_method_adam;
		const bool has_peers = plan->layout.workers > 1;
		const uint64_t pushed = is_compressed(plan, item) ? item->n_blocks : is_ps ? item->subject.elements : 0;
		cr_assert_eq(counts[0].elements, pushed, "%s: item %u", name, i);
		cr_assert_eq(counts[1].elements, pushed, "%s: item %u", name, i);
		const bool is_joined = item->method == &psd_method_two_level_sfb && is_shared;
		const bool is_broadcast =
			item->method == &psd_method_sfb || (item->method == &psd_method_two_level_sfb && !is_shared);
		cr_assert_eq(counts[2].elements, is_broadcast && has_peers ? factors : 0, "%s: item %u", name, i);
		cr_assert_eq(counts[11].elements, is_joined ? factors : 0, "%s: item %u", name, i);
		for (unsigned way = 12; way < 14; way++)
			cr_assert_eq(counts[way].elements, is_joined && plan->layout.nodes > 1 ? factors : 0,
				     "%s: item %u", name, i);
		cr_assert_eq(counts[3].elements, is_adam ? factors : 0, "%s: item %u", name, i);
		cr_assert_eq(counts[4].elements, is_adam ? item->subject.elements : 0, "%s: item %u", name, i);
		for (unsigned way = 5; way < 9; way++)
			cr_assert_eq(counts[way].elements, is_by_leaders ? item->subject.elements : 0, "%s: item %u",
				     name, i);
		cr_assert_eq(counts[9].elements,
			     item->method->collective == plan->candidates[plan->n_candidates - 1]->collective &&
					     has_peers
				     ? is_narrowed(item) ? item->left + item->right : item->travelling
				     : 0,
			     "%s: item %u", name, i);
		cr_assert_eq(counts[10].elements,
			     is_sharded(plan->system->sync) && has_peers ? item->subject.elements : 0, "%s: item %u",
			     name, i);
	}
}

/* ---- dependencies ---- */

/* is_before[i]: operation i must be done, in the same iteration, before `op` may start. Freed by the caller. */
static bool *all_before(const struct psd_program *program, uint32_t op)
{
	bool *is_before = calloc(program->n_ops, sizeof(*is_before));
	uint32_t *pending = calloc(program->n_ops, sizeof(*pending));
	uint32_t n_pending = 0;

	cr_assert(is_before != NULL && pending != NULL);
	pending[n_pending++] = op;
	while (n_pending > 0) {
		const uint32_t at = pending[--n_pending];
		for (uint32_t e = 0; e < program->ops[at].n_dependencies; e++) {
			const struct psd_edge edge = dependency(program, at, e);
			if (edge.distance > 0 || is_before[edge.op])
				continue;
			is_before[edge.op] = true;
			pending[n_pending++] = edge.op;
		}
	}
	free(pending);
	return is_before;
}

static uint32_t find_op(const struct psd_program *program, enum psd_op_kind kind, unsigned layer)
{
	for (uint32_t op = 0; op < program->n_ops; op++)
		if (program->ops[op].kind == kind && program->ops[op].layer == layer)
			return op;
	return UINT32_MAX;
}

/* The last layer's first operation on the network, UINT32_MAX when it has none. */
static uint32_t first_exchange(const struct psd_program *program)
{
	const unsigned last_layer = program->plan->items[0].layer;
	const uint32_t send = find_op(program, PSD_OP_SEND, last_layer);

	return send != UINT32_MAX ? send : find_op(program, PSD_OP_COLLECTIVE, last_layer);
}

EACH_PROGRAM(wait_free_waits_for_its_own_layer_and_sequential_for_all)
{
	const struct psd_plan *plan = program->plan;
	const uint32_t exchange = first_exchange(program);

	if (exchange == UINT32_MAX) { /* no other host to exchange with */
		cr_assert(psd_layout_hosts(&plan->layout) == 1 || plan->layout.workers == 1, "%s", name);
		return;
	}
	bool *is_before = all_before(program, exchange);
	for (unsigned i = 0; i < plan->n_items; i++) {
		const unsigned layer = plan->items[i].layer;
		const uint32_t backward = find_op(program, PSD_OP_BACKWARD, layer);
		const bool is_expected =
			layer == plan->items[0].layer || plan->system->schedule == PSD_SCHEDULE_SEQUENTIAL;
		cr_assert_neq(backward, UINT32_MAX, "%s: layer %u", name, layer);
		cr_assert_eq(is_before[backward], is_expected,
			     "%s: the last layer's first exchange %s the backward pass of layer %u", name,
			     is_expected ? "does not wait for" : "waits for", layer);
	}
	free(is_before);
}

/* Copies out too: a sequential stack touches no gradient before the whole backward pass is over. */
EACH_PROGRAM(sequential_copies_nothing_out_before_backward_is_over)
{
	const struct psd_plan *plan = program->plan;
	const uint32_t last_backward = find_op(program, PSD_OP_BACKWARD, plan->items[plan->n_items - 1].layer);

	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];
		const bool is_of_worker = op->kind == PSD_OP_COPY_OUT && op->where == PSD_WHERE_WORKERS;
		if (!is_of_worker || plan->system->schedule != PSD_SCHEDULE_SEQUENTIAL)
			continue;
		bool *is_before = all_before(program, i);
		cr_assert(is_before[last_backward], "%s: layer %u is copied out before backward is over", name,
			  op->layer);
		free(is_before);
	}
}

/* Decoding of received data; otherwise encoding of data to send. */
static bool is_decoding(const struct psd_op *op)
{
	return op->kind == PSD_OP_CONVERT && psd_buffers[op->source.buffer].is_encoded;
}

/* Transfers from servers to workers, at once or through leaders. */
static bool brings_parts(const struct psd_op *op)
{
	return op->payload.collective == &psd_pull || op->payload.collective == &psd_leader_pull ||
	       op->payload.collective == &psd_from_leader;
}

/* After what its leader receives, which is no edge. */
static bool is_handed_on(const struct psd_op *op)
{
	return op->kind == PSD_OP_RECEIVE && op->payload.collective == &psd_from_leader;
}

/* Nothing is pulled, broadcast or summed before the gradient that it carries is final. */
EACH_PROGRAM(nothing_moves_before_its_gradient_is_final)
{
	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];
		if (op->item < 0)
			continue;
		bool *is_before = all_before(program, i);
		const bool needs_send = op->kind == PSD_OP_RECEIVE; /* its messages are its dependency, not an edge */
		const uint32_t backward = find_op(program, PSD_OP_BACKWARD, op->layer);
		bool *is_before_send = needs_send ? all_before(program, op->match) : NULL;
		cr_assert((needs_send ? is_before_send : is_before)[backward] ||
				  (op->kind == PSD_OP_SEND && brings_parts(op)) || is_handed_on(op) ||
				  op->kind == PSD_OP_COPY_IN || is_decoding(op),
			  "%s: '%s' of layer %u does not wait for its gradient", name, psd_ops[op->kind].name,
			  op->layer);
		free(is_before_send);
		free(is_before);
	}
}

/* Whether `waits` waits, in its iteration, for such an operation of the same slice. */
static bool is_after(const struct psd_program *program, uint32_t waits, enum psd_op_kind kind,
		     const struct psd_collective *collective)
{
	const struct psd_op *of = &program->ops[waits];
	bool *is_before = all_before(program, waits), is_found = false;

	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];

		is_found = is_found || (is_before[i] && op->kind == kind && op->item == of->item &&
					op->slice == of->slice && op->payload.collective == collective);
	}
	free(is_before);
	return is_found;
}

static uint32_t find_kind(const struct psd_program *program, enum psd_op_kind kind)
{
	uint32_t op = 0;

	while (program->ops[op].kind != kind)
		op++;
	return op;
}

static uint32_t find_step(const struct psd_program *program, int item)
{
	for (uint32_t op = 0; op < program->n_ops; op++)
		if (program->ops[op].kind == PSD_OP_STEP && program->ops[op].item == item)
			return op;
	cr_assert(false, "item %d has no step", item);
	return 0;
}

/* Operations of an item's synchronisation beside its step: those of workers and of others. */
static bool is_of_exchange(const struct psd_op *op)
{
	return op->item >= 0 && op->kind != PSD_OP_STEP;
}

/* Whether `op` comes after the step, in its iteration: where it receives, whether what is sent does. Parameters that
 * come back do so by what others send. */
static bool is_after_step(const struct psd_program *program, uint32_t op, uint32_t step)
{
	const struct psd_op *of = &program->ops[op];
	bool *is_before = all_before(program, of->kind == PSD_OP_RECEIVE ? of->match : op);
	const bool is_after = is_before[step];

	free(is_before);
	return is_after || (of->kind == PSD_OP_SEND && brings_parts(of)) || is_handed_on(of) ||
	       (of->kind == PSD_OP_RECEIVE && brings_parts(of)) || of->kind == PSD_OP_COPY_IN || is_decoding(of);
}

/* Every item has one step. The step is executed in every iteration; the operations that depend on it are not. */
EACH_PROGRAM(exchanges_come_after_a_local_step)
{
	const struct psd_plan *plan = program->plan;
	unsigned n_steps = 0;

	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];

		n_steps += op->kind == PSD_OP_STEP;
		if (!plan->local) {
			cr_assert_not(op->is_exchange, "%s: operation %u", name, i);
			continue;
		}
		if (op->kind != PSD_OP_GATE) /* the schedule makes some gates, and the methods make others */
			cr_assert_eq(op->is_exchange, is_of_exchange(op), "%s: operation %u, '%s'", name, i,
				     psd_ops[op->kind].name);
		if (is_of_exchange(op))
			cr_assert(is_after_step(program, i, find_step(program, op->item)), "%s: '%s' %u", name,
				  psd_ops[op->kind].name, i);
	}
	/* alone a worker exchanges nothing */
	cr_assert_eq(n_steps, plan->system->is_local && plan->layout.workers > 1 ? plan->n_items : 0, "%s", name);
}

/* Whether `op` depends on operation `before` of the iteration that lies `distance` iterations back. */
static bool has_dependency(const struct psd_program *program, uint32_t op, uint32_t before, uint32_t distance)
{
	for (uint32_t e = 0; e < program->ops[op].n_dependencies; e++)
		if (dependency(program, op, e).op == before && dependency(program, op, e).distance == distance)
			return true;
	return false;
}

/* A step waits for its own layer's gradient, in sequence for that of all; the next forward of the layer waits for the
 * step, at once or by the end of the iteration. */
EACH_PROGRAM(a_step_waits_for_its_gradient_and_the_next_forward_for_it)
{
	const struct psd_plan *plan = program->plan;
	const uint32_t last_backward = find_op(program, PSD_OP_BACKWARD, plan->items[plan->n_items - 1].layer);
	bool *is_before_end = all_before(program, find_kind(program, PSD_OP_BARRIER));

	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];

		if (op->kind != PSD_OP_STEP)
			continue;
		bool *is_before = all_before(program, i);
		cr_assert(is_before[find_op(program, PSD_OP_BACKWARD, op->layer)], "%s: step %u", name, i);
		cr_assert_eq(is_before[last_backward] && op->layer != plan->items[plan->n_items - 1].layer,
			     plan->system->schedule == PSD_SCHEDULE_SEQUENTIAL &&
				     op->layer != plan->items[plan->n_items - 1].layer,
			     "%s: step %u", name, i);
		if (plan->system->barrier == PSD_BARRIER_ITERATION)
			cr_assert(is_before_end[i], "%s: step %u", name, i);
		else
			cr_assert(has_dependency(program, find_op(program, PSD_OP_FORWARD, op->layer), i, 1),
				  "%s: step %u", name, i);
		free(is_before);
	}
	free(is_before_end);
}

/* A leader speaks for its node when it has heard all of it, and hands on what it has heard from all servers. */
static void check_leaders(const struct psd_program *program, const char *name)
{
	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];
		const struct psd_collective *collective = op->kind == PSD_OP_SEND ? op->payload.collective : NULL;

		if (op->kind == PSD_OP_SUM)
			cr_assert(is_after(program, i, PSD_OP_RECEIVE, &psd_to_leader), "%s: sum %u", name, i);
		if (collective == &psd_leader_push)
			cr_assert(is_after(program, i, PSD_OP_SUM, NULL), "%s: push %u", name, i);
		if (collective == &psd_from_leader)
			cr_assert(is_after(program, i, PSD_OP_RECEIVE, &psd_leader_pull), "%s: handing on %u", name, i);
	}
}

TEST_ROW(program, a_leader_speaks_for_its_node_when_it_has_heard_all,
	 for_each_of(shared_nodes, PSD_SYNC_TWO_LEVEL_PS, PSD_SYNC_TWO_LEVEL_PS, check_leaders))

/* ---- buffers ---- */

static bool is_copy(const struct psd_op *op)
{
	return op->kind == PSD_OP_COPY_OUT || op->kind == PSD_OP_COPY_IN;
}

/* A copy of the same slice, on the same hosts, of so many bytes, that is directly before the operation or somewhere
 * after it. */
static bool is_copied(const struct psd_program *program, uint32_t number, enum psd_op_kind kind, uint64_t bytes)
{
	const struct psd_op *of = &program->ops[number];
	bool is_found = false;

	for (uint32_t i = 0; i < program->n_ops && !is_found; i++) {
		const struct psd_op *op = &program->ops[i];
		if (op->kind != kind || op->item != of->item || op->slice != of->slice || op->where != of->where ||
		    op->bytes != bytes)
			continue;
		bool *is_before = all_before(program, kind == PSD_OP_COPY_OUT ? number : i);
		is_found = is_before[kind == PSD_OP_COPY_OUT ? i : number];
		free(is_before);
	}
	return is_found;
}

/* Or becomes what is there, or was. Encoded parameters that leave a shard are not, but where they arrive they are. */
static bool is_of_device(enum psd_buffer buffer)
{
	return psd_buffers[buffer].is_on_device || psd_buffers[buffer].is_encoded;
}

/* Data that leaves a device's memory is copied out first, and data that arrives for it is copied in afterwards. For
 * factors these are all others', and one's own as well where they are rounded for the transfer. A leader's push has
 * been copied out for the sum; its result is copied in with the part that it forwards. */
EACH_PROGRAM(transfers_between_hosts_are_copied_where_devices_have_memory_of_their_own)
{
	const unsigned n_senders = program->plan->layout.workers - !program->plan->wire->is_lossy;
	unsigned n_expected = 0, n_copies = 0;

	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];
		n_copies += is_copy(op);
		if ((op->kind != PSD_OP_SEND && op->kind != PSD_OP_COLLECTIVE) || !program->plan->costs->has_own_memory)
			continue;
		if (op->payload.collective == &psd_nccl ||
		    op->payload.collective == &psd_nccl_two_level) /* read and write there */
			continue;
		const uint64_t out_bytes = op->payload.elements * op->payload.value_bytes; /* a device encodes */
		const bool are_factors =
			op->target.buffer == PSD_BUFFER_FACTORS || op->target.buffer == PSD_BUFFER_ENCODED_FACTORS;
		const uint64_t in_bytes = are_factors ? n_senders * out_bytes : out_bytes;
		if (is_of_device(op->source.buffer) && !brings_parts(op) &&
		    op->payload.collective != &psd_leader_push) {
			n_expected++;
			cr_assert(is_copied(program, i, PSD_OP_COPY_OUT, out_bytes), "%s: operation %u", name, i);
		}
		if (is_of_device(op->target.buffer) && in_bytes > 0 && op->payload.collective != &psd_leader_pull) {
			n_expected++;
			cr_assert(is_copied(program, op->kind == PSD_OP_SEND ? i + 1 : i, PSD_OP_COPY_IN, in_bytes),
				  "%s: operation %u", name, i);
		}
	}
	if (psd_layout_hosts(&program->plan->layout) > 1 || !program->plan->costs->has_own_memory)
		cr_assert_eq(n_copies, n_expected, "%s: %u copies, expected %u", name, n_copies, n_expected);
}

static bool keeps(const struct psd_op *op, const struct psd_program *program, enum psd_buffer buffer)
{
	return buffer == PSD_BUFFER_PARAMETER || buffer == PSD_BUFFER_GRADIENT ||
	       psd_plan_keeps(program->plan, &program->plan->items[op->item], buffer);
}

EACH_PROGRAM(messages_go_between_buffers_that_their_method_keeps)
{
	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];
		if (op->kind == PSD_OP_SEND || op->kind == PSD_OP_RECEIVE || op->kind == PSD_OP_COLLECTIVE)
			cr_assert(keeps(op, program, op->source.buffer) && keeps(op, program, op->target.buffer),
				  "%s: operation %u", name, i);
	}
}

/* A price says how long an operation takes, never whether there is one. */
static void expect_same_shape(const struct psd_program *a, const struct psd_program *b, const char *name)
{
	cr_assert_eq(a->n_ops, b->n_ops, "%s", name);
	cr_assert_eq(a->n_edges, b->n_edges, "%s", name);
	cr_assert_arr_eq(a->dependencies, b->dependencies, a->n_edges * sizeof(*a->dependencies), "%s", name);
	for (uint32_t i = 0; i < a->n_ops; i++)
		cr_assert(a->ops[i].kind == b->ops[i].kind && a->ops[i].where == b->ops[i].where &&
				  a->ops[i].item == b->ops[i].item && a->ops[i].bytes == b->ops[i].bytes &&
				  a->ops[i].turn == b->ops[i].turn,
			  "%s: operation %u", name, i);
}

Test(program, prices_change_no_operation)
{
	static const struct psd_host_costs no_prices;
	struct loaded loaded;
	struct psd_error err;

	loaded_open(&loaded, cifar10_quick);
	for (unsigned sync = PSD_SYNC_PS; sync < PSD_SYNC_LIBRARY + PSD_N_LIBRARIES; sync++)
		for (unsigned point = 0; point < psd_scenario_points(&loaded.scenario); point++) {
			const struct psd_point at = psd_scenario_point(&loaded.scenario, point);
			struct psd_system without = loaded.scenario.systems[0], with;
			struct psd_case made_without, made_with;

			without.sync = (enum psd_sync)sync;
			without.host = no_prices;
			with = without;
			with.host = (struct psd_host_costs){.copy_bps = 8e9,
							    .reduce_bps = 8e9,
							    .update_bps = UPDATE_BPS,
							    .transport_bps = 8e9,
							    .iteration_sec = 1e-3};
			cr_assert_eq(psd_case_make(&made_without, &loaded.costed, &without, at, &err), PSD_OK);
			cr_assert_eq(psd_case_make(&made_with, &loaded.costed, &with, at, &err), PSD_OK);
			expect_same_shape(&made_without.program, &made_with.program, psd_sync_names[sync]);
			psd_case_release(&made_with);
			psd_case_release(&made_without);
		}
	loaded_close(&loaded);
}

/* ---- barriers ---- */

/* Alone, without servers and stages, a worker's device waits for nothing but itself: a stream can be given all of it
 * ahead, once the gate is passed that holds an iteration back until the last one's forward is over. */
EACH_PROGRAM(a_lone_worker_waits_for_its_device_alone)
{
	const struct psd_system *system = program->plan->system;

	if (program->plan->layout.workers > 1 || system->sync < PSD_SYNC_ALL_REDUCE ||
	    system->schedule == PSD_SCHEDULE_SEQUENTIAL || system->is_sparse)
		return;
	for (uint32_t i = 0; i < program->n_ops; i++)
		for (uint32_t e = 0; e < program->ops[i].n_dependencies; e++) {
			const struct psd_op *before = &program->ops[dependency(program, i, e).op];

			if (program->ops[i].resource == PSD_RESOURCE_DEVICE && before->kind != PSD_OP_GATE)
				cr_assert_eq(before->resource, PSD_RESOURCE_DEVICE, "%s: %s waits for %s", name,
					     psd_ops[program->ops[i].kind].name, psd_ops[before->kind].name);
		}
}

/* The end of an iteration as the next one's first forward waits for it: the barrier, and the end of all forward. */
static bool ends_iteration(const struct psd_program *program, uint32_t op)
{
	const bool is_gate = program->ops[op].kind == PSD_OP_GATE &&
			     program->ops[dependency(program, op, 0).op].kind == PSD_OP_FORWARD;

	return is_gate || program->ops[op].kind == PSD_OP_BARRIER;
}

/* Collectives of norms: no parameter depends on them. */
static bool is_of_norms(const struct psd_program *program, const struct psd_op *op)
{
	return op->item >= 0 && program->plan->items[op->item].n_tensors == 0;
}

/* With a barrier per iteration nothing of a worker is left when it passes; gates that nothing waits for do not count.
 */
EACH_PROGRAM(a_barrier_per_iteration_waits_for_all_of_it)
{
	if (program->plan->system->barrier != PSD_BARRIER_ITERATION)
		return;
	bool *is_before = all_before(program, find_kind(program, PSD_OP_BARRIER));
	for (uint32_t i = 0; i < program->n_ops; i++) {
		const enum psd_op_kind kind = program->ops[i].kind;
		const bool is_on_worker = program->ops[i].where == PSD_WHERE_WORKERS;
		const bool is_end = kind == PSD_OP_BARRIER || kind == PSD_OP_NEXT || kind == PSD_OP_GATE;
		/* others receive a worker's own factors: they wait for copy, conversion and send */
		const bool is_leaving = kind == PSD_OP_SEND || kind == PSD_OP_COPY_OUT ||
					(kind == PSD_OP_CONVERT && !is_decoding(&program->ops[i]));
		if (is_on_worker && !is_end && !is_leaving && !is_of_norms(program, &program->ops[i]))
			cr_assert(is_before[i], "%s: the barrier does not wait for operation %u, '%s'", name, i,
				  psd_ops[kind].name);
	}
	free(is_before);
	for (uint32_t i = 0; i < program->n_ops; i++)
		for (uint32_t e = 0; e < program->ops[i].n_dependencies; e++) {
			const struct psd_edge edge = dependency(program, i, e);
			cr_assert(edge.distance == 0 || ends_iteration(program, edge.op) ||
					  program->ops[edge.op].kind == PSD_OP_CHOOSE,
				  "%s: operation %u waits for %u of the iteration before", name, i, edge.op);
		}
}

/* With a barrier per layer a forward pass waits for the end of its own layer's synchronisation, and for nothing else of
 * the iteration before; only the first layer's is part of NEXT. */
EACH_PROGRAM(a_barrier_per_layer_waits_for_that_layer_alone)
{
	const struct psd_plan *plan = program->plan;

	if (plan->system->barrier != PSD_BARRIER_LAYER)
		return;
	for (unsigned i = 0; i < plan->n_items; i++) {
		const unsigned layer = plan->items[i].layer;
		const uint32_t forward = find_op(program, PSD_OP_FORWARD, layer);
		unsigned n_own = 0;
		for (uint32_t e = 0; e < program->ops[forward].n_dependencies; e++) {
			const struct psd_edge edge = dependency(program, forward, e);
			if (edge.distance == 0 || ends_iteration(program, edge.op))
				continue;
			const struct psd_op *before = &program->ops[edge.op];
			/* gates carry no layer; what they join is checked through what they wait for */
			const unsigned before_layer = before->kind == PSD_OP_GATE
							      ? program->ops[dependency(program, edge.op, 0).op].layer
							      : before->layer;
			n_own++;
			cr_assert_eq(before_layer, layer, "%s: forward of layer %u waits for layer %u", name, layer,
				     before_layer);
		}
		cr_assert_gt(n_own, 0, "%s: forward of layer %u waits for nothing", name, layer);
	}
	bool *is_before_next = all_before(program, program->next_op);
	const uint32_t exchange = first_exchange(program);
	if (exchange != UINT32_MAX && program->ops[exchange].kind == PSD_OP_SEND &&
	    plan->system->schedule == PSD_SCHEDULE_WAIT_FREE)
		cr_assert_not(is_before_next[exchange + 1], "%s: the next iteration waits for the last layer", name);
	free(is_before_next);
}

/* ---- turns ---- */

static bool is_reply(const struct psd_op *op)
{
	return (op->kind == PSD_OP_SEND || op->kind == PSD_OP_RECEIVE) &&
	       (brings_parts(op) || op->payload.collective == &psd_from_root);
}

/* Operations that go before those of layers, whatever their item: others wait for their result on the device. */
static bool goes_before_layers(const struct psd_plan *plan, const struct psd_op *op)
{
	return (op->kind == PSD_OP_APPLY && is_sharded(plan->system->sync) && plan->layout.workers > 1) ||
	       op->kind == PSD_OP_STEP || op->kind == PSD_OP_PACK || op->kind == PSD_OP_PROJECT ||
	       op->kind == PSD_OP_FIT ||
	       (op->kind == PSD_OP_CONVERT && op->resource == PSD_RESOURCE_DEVICE &&
		!psd_buffers[op->source.buffer].is_encoded);
}

EACH_PROGRAM(turns_follow_generation_or_the_forward_pass)
{
	const struct psd_plan *plan = program->plan;
	const bool is_sequential = plan->system->schedule != PSD_SCHEDULE_WAIT_FREE;
	int64_t last_push = -1, first_reply = INT64_MAX;

	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];
		const int64_t expected =
			plan->system->priority == PSD_PRIORITY_FORWARD ? (int64_t)op->layer : (int64_t)op->item;

		if (op->item < 0)
			continue;
		if (goes_before_layers(plan, op))
			cr_assert_lt(op->turn, program->ops[0].turn, "%s: operation %u", name, i);
		else if (is_reply(op) && is_sequential)
			first_reply = op->turn < first_reply ? op->turn : first_reply;
		else
			cr_assert_eq(op->turn, expected, "%s: operation %u", name, i);
		if (op->kind == PSD_OP_SEND && !is_reply(op))
			last_push = op->turn > last_push ? op->turn : last_push;
	}
	cr_assert(!is_sequential || first_reply > last_push, "%s: a reply before a push", name);
}

/* On all shards: each sum of a tensor waits for its pushes. */
EACH_PROGRAM(servers_with_a_clock_reply_after_all_sums)
{
	for (uint32_t i = 0; i < program->n_ops && program->plan->system->schedule == PSD_SCHEDULE_CLOCKED; i++) {
		if (program->ops[i].kind != PSD_OP_SEND || !is_reply(&program->ops[i]))
			continue;
		bool *is_before = all_before(program, i);
		for (uint32_t o = 0; o < program->n_ops; o++)
			if (program->ops[o].kind == PSD_OP_REDUCE && program->ops[o].where == program->ops[i].where)
				cr_assert(is_before[o], "%s: reply %u before sum %u", name, i, o);
		free(is_before);
	}
}

/* ---- compute ---- */

/* A rebuild takes over from backward what the gradient of a worker's own samples takes. */
EACH_PROGRAM(forward_backward_and_own_samples_of_rebuilds_hold_all_compute)
{
	const struct psd_plan *plan = program->plan;
	double work_sec = 0.0;

	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];

		cr_assert(op->work_sec >= 0.0, "%s: operation %u takes %g s", name, i, op->work_sec);
		if (op->kind == PSD_OP_FORWARD || op->kind == PSD_OP_BACKWARD)
			work_sec += op->work_sec;
		if (op->kind == PSD_OP_FACTOR)
			work_sec += op->work_sec -
				    psd_cost_rebuild_flops(&plan->items[op->item].subject, plan->layout.workers - 1) /
					    plan->costs->gemm_flops_per_sec;
	}
	cr_assert_float_eq(work_sec, program->plan->costs->compute_sec, 1e-12, "%s: %.17g s of compute, expected %.17g",
			   name, work_sec, program->plan->costs->compute_sec);
}

/* Backward of a first layer without bias is the product that its factors rebuild, and nothing else: what is left of it
 * is 0, whatever rounding makes of a difference of equal times. Each batch has other times. */
Test(program, a_backward_that_is_rebuilt_takes_no_less_than_nothing)
{
	struct loaded loaded;

	for (unsigned batch = 1; batch <= 64; batch++) {
		loaded_print(&loaded,
			     "title: t\nmodel: {graph: scenarios/models/one-tensor.yaml, batch_per_worker: %u}\n"
			     "compute: {device: cpu}\ncluster: {stack: none, nodes: 2, network: {bandwidth: 1Gbps, "
			     "latency: 50us}}\n"
			     "systems: [{name: S, sync: sfb}]\n",
			     batch);
		struct psd_case made;
		loaded_case(&made, &loaded, 0, 0);
		for (uint32_t i = 0; i < made.program.n_ops; i++)
			cr_assert_geq(made.program.ops[i].work_sec, 0.0, "batch %u, operation %u", batch, i);
		psd_case_release(&made);
		loaded_close(&loaded);
	}
}

/* Bytes that operations of that kind apply, each at the rate of updates. */
static uint64_t updated_bytes(const struct psd_program *program, enum psd_op_kind kind, const char *name)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < program->n_ops; i++)
		if (program->ops[i].kind == kind) {
			bytes += program->ops[i].bytes;
			cr_assert_float_eq(program->ops[i].work_sec, 8.0 * (double)program->ops[i].bytes / UPDATE_BPS,
					   1e-12, "%s: operation %u", name, i);
		}
	return bytes;
}

/* Elements that the worker with the largest part updates. */
static uint64_t updated_elements(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	const uint64_t workers = plan->layout.workers;

	return is_sharded(plan->system->sync) ? (item->travelling + workers - 1) / workers : item->travelling;
}

/* Every element that travels is applied once on each worker that has its own gradient of it; servers apply it as part
 * of their reduction. A local step is one more update of every element, whichever host applies the exchange's. */
EACH_PROGRAM(updates_take_their_bytes_over_the_rate)
{
	uint64_t own_bytes = 0, step_bytes = 0;

	for (unsigned i = 0; i < program->plan->n_items; i++) {
		const struct psd_plan_item *item = &program->plan->items[i];

		if (!is_updated_by_servers(item) && item->n_tensors > 0)
			own_bytes += updated_elements(program->plan, item) * program->plan->value_bytes;
		if (program->plan->local)
			step_bytes += item->subject.elements * program->plan->value_bytes;
	}
	cr_assert_eq(updated_bytes(program, PSD_OP_APPLY, name), own_bytes, "%s", name);
	cr_assert_eq(updated_bytes(program, PSD_OP_STEP, name), step_bytes, "%s", name);
}

/* ---- encodings ---- */

/* On every host, one operation encodes data for a lossy transfer, and one operation decodes it after the transfer.
 * Their buffers say so. */
EACH_PROGRAM(rounded_transfers_are_converted_at_both_ends)
{
	const struct psd_plan *plan = program->plan;
	uint64_t encoded_bytes[2] = {0, 0}; /* sent and received */

	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];

		if ((op->kind == PSD_OP_SEND || op->kind == PSD_OP_COLLECTIVE) &&
		    op->source.buffer != PSD_BUFFER_NORMS && !is_compressed(plan, &plan->items[op->item])) {
			cr_assert_eq(op->payload.value_bytes, plan->wire->value_bytes, "%s", name);
			cr_assert_eq(psd_plan_value_bytes(plan, op->target.buffer), plan->wire->value_bytes, "%s",
				     name);
		}
		if (op->kind != PSD_OP_CONVERT)
			continue;
		cr_assert_eq(psd_plan_value_bytes(plan, op->source.buffer) +
				     psd_plan_value_bytes(plan, op->target.buffer),
			     4 + 2, "%s", name);
		encoded_bytes[psd_buffers[op->source.buffer].is_encoded] += op->bytes;
	}
	cr_assert_eq(encoded_bytes[0] > 0, plan->wire->is_lossy, "%s", name);
	cr_assert_eq(encoded_bytes[1] > 0, plan->wire->is_lossy, "%s", name);
}

/* On this host `before` is done, in the same iteration, when `op` may start: by a chain of operations that the host
 * executes. */
static bool is_before_on(const struct psd_program *program, unsigned host, uint32_t before, uint32_t op)
{
	bool *is_pending = calloc(program->n_ops, sizeof(*is_pending));
	bool is;

	cr_assert(is_pending);
	is_pending[op] = true;
	for (bool has_more = true; has_more && !is_pending[before];) {
		has_more = false;
		for (uint32_t i = 0; i < program->n_ops; i++)
			for (uint32_t e = 0; is_pending[i] && e < program->ops[i].n_dependencies; e++) {
				const struct psd_edge edge = dependency(program, i, e);

				if (edge.distance > 0 || is_pending[edge.op] ||
				    !psd_op_runs_on(&program->ops[edge.op], &program->plan->layout, host))
					continue;
				is_pending[edge.op] = has_more = true;
			}
	}
	is = is_pending[before];
	free(is_pending);
	return is;
}

/* Sums, factors and parameters that a host has made itself it takes as the others have them. */
EACH_PROGRAM(a_host_decodes_the_values_it_encodes)
{
	const struct psd_layout *layout = &program->plan->layout;

	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *in = &program->ops[i];

		if (in->kind != PSD_OP_CONVERT || !psd_buffers[in->source.buffer].is_encoded)
			continue;
		for (uint32_t o = 0; o < program->n_ops; o++)
			for (unsigned host = 0; host < 2; host++) {
				const struct psd_op *out = &program->ops[o];

				if (out->kind == PSD_OP_CONVERT && out->target.buffer == in->source.buffer &&
				    out->item == in->item && out->slice == in->slice &&
				    psd_op_runs_on(in, layout, host) && psd_op_runs_on(out, layout, host))
					cr_assert(is_before_on(program, host, o, i), "%s: operation %u, host %u", name,
						  i, host);
			}
	}
}

/* A device with memory of its own converts by itself, and before the next layer: half the bytes are copied, and as soon
 * as with bytes that travel as they are. */
EACH_PROGRAM(devices_with_memory_of_their_own_convert_what_they_have)
{
	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];
		const enum psd_buffer plain =
			psd_buffers[op->source.buffer].is_encoded ? op->target.buffer : op->source.buffer;
		const bool is_there = program->plan->costs->has_own_memory && psd_buffers[plain].is_on_device;

		if (op->kind != PSD_OP_CONVERT)
			continue;
		cr_assert_eq(op->resource, is_there ? PSD_RESOURCE_DEVICE : PSD_RESOURCE_CPU, "%s: operation %u", name,
			     i);
		if (is_there && !psd_buffers[op->source.buffer].is_encoded)
			cr_assert_lt(op->turn, program->ops[find_op(program, PSD_OP_BACKWARD, op->layer)].turn,
				     "%s: operation %u", name, i);
	}
}

static double conversions_sec(const struct loaded *loaded, const struct psd_system *system)
{
	struct psd_case made;
	struct psd_error err = {.text = ""};
	double work_sec = 0.0;

	cr_assert_eq(psd_case_make(&made, &loaded->costed, system, psd_scenario_point(&loaded->scenario, 1), &err),
		     PSD_OK);
	for (uint32_t i = 0; i < made.program.n_ops; i++)
		work_sec += made.program.ops[i].kind == PSD_OP_CONVERT ? made.program.ops[i].work_sec : 0.0;
	psd_case_release(&made);
	return work_sec;
}

Test(program, conversions_of_a_ring_read_and_write_every_value_once_at_the_rate_of_its_owner)
{
	struct loaded loaded;
	struct psd_system system;
	double bytes;

	loaded_open(&loaded, cifar10_quick);
	system = loaded.scenario.systems[0];
	system.sync = PSD_SYNC_ALL_REDUCE;
	system.wire = 1;
	system.host.reduce_bps = 8e9;
	system.host.update_bps = 32e9;
	bytes = 2 * (4 + 2) * (double)loaded.costed.graph.parameters; /* there and back, 4 bytes and 2 */
	psd_costed_model_compute_on(&loaded.costed, false);
	cr_expect_float_eq(conversions_sec(&loaded, &system), bytes / 1e9, 1e-12);
	psd_costed_model_compute_on(&loaded.costed, true);
	cr_expect_float_eq(conversions_sec(&loaded, &system), bytes / 4e9, 1e-12);
	loaded_close(&loaded);
}

/* ---- the order of collectives ---- */

/* One device, or one copy engine behind it, makes the gradients one after the other. So where what a collective waits
 * for comes in the order of the collectives themselves, every worker has them ready in that order. */
static void check_order_of_collectives(const struct psd_program *program, const char *name)
{
	uint32_t last = 0;

	if (!psd_program_orders_collectives(program))
		return;
	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];
		uint32_t latest = 0;

		cr_assert_neq(op->kind, PSD_OP_SEND, "%s: operation %u waits for the link", name, i);
		if (op->kind != PSD_OP_COLLECTIVE)
			continue;
		for (uint32_t e = 0; e < op->n_dependencies; e++) {
			const struct psd_edge before = dependency(program, i, e);

			latest = before.distance == 0 && before.op > latest ? before.op : latest;
		}
		cr_assert_geq(latest, last, "%s: operation %u", name, i);
		last = latest;
	}
}

Test(program, workers_begin_collectives_by_themselves_where_all_have_one_order)
{
	struct loaded loaded;
	struct psd_case made;
	struct psd_error err;

	for_each_program(check_order_of_collectives);
	loaded_open(&loaded, cifar10_quick);
	for (int priority = PSD_PRIORITY_GENERATION; priority <= PSD_PRIORITY_FORWARD; priority++) {
		struct psd_system system = loaded.scenario.systems[0];

		system.sync = PSD_SYNC_ALL_REDUCE;
		system.priority = (enum psd_priority)priority;
		cr_assert_eq(
			psd_case_make(&made, &loaded.costed, &system, psd_scenario_point(&loaded.scenario, 1), &err),
			PSD_OK);
		cr_expect_eq(psd_program_orders_collectives(&made.program), priority == PSD_PRIORITY_GENERATION);
		psd_case_release(&made);
	}
	loaded_close(&loaded);
}

/* ---- traffic ---- */

EACH_PROGRAM(all_nodes_send_as_much_as_all_receive)
{
	const struct psd_layout *layout = &program->plan->layout;
	uint64_t sent_bytes = 0, received_bytes = 0;

	for (unsigned node = 0; node < psd_layout_nodes(layout); node++) {
		const struct psd_traffic traffic = psd_program_traffic(program, node);
		sent_bytes += traffic.sent_bytes;
		received_bytes += traffic.received_bytes;
	}
	cr_assert_eq(sent_bytes, received_bytes, "%s: %lu bytes sent, %lu received", name, sent_bytes, received_bytes);
	if (psd_layout_nodes(layout) > 1 && layout->workers > 1)
		cr_assert_gt(sent_bytes, 0, "%s", name);
}

/* P workers on P nodes pass every value on P-1 times to sum it, and P-1 times to spread it, whatever it travels with.
 */
EACH_PROGRAM(a_ring_moves_the_same_bytes_in_larger_items)
{
	const struct psd_plan *plan = program->plan;
	uint64_t sent_bytes = 0;

	if (plan->system->sync != PSD_SYNC_ALL_REDUCE || plan->sparse || plan->low_rank)
		return;
	for (unsigned node = 0; node < plan->layout.nodes; node++)
		sent_bytes += psd_program_traffic(program, node).sent_bytes;
	cr_assert_eq(sent_bytes, 2 * (plan->layout.workers - 1) * plan->wire->value_bytes * plan->graph->parameters,
		     "%s", name);
}

/* ---- sparse communication ---- */

/* At a sparsity of 0.5, n - floor(n / 2) of n chunks of 1000 values travel, fewer than there are whole ones. Each
 * exchange sends the same share of its whole chunks, rounded to the nearest value, at least one. It also sends the norm
 * of every chunk. */
EACH_PROGRAM(a_sparse_ring_moves_chosen_chunks_and_their_norms)
{
	const struct psd_plan *plan = program->plan;
	uint64_t sent_bytes = 0, chosen = 0, n_whole = 0, n_chunks = 0;

	if (plan->system->sync != PSD_SYNC_ALL_REDUCE || !plan->sparse)
		return;
	for (unsigned i = 0; i < plan->n_items; i++)
		if (plan->items[i].n_tensors > 0) {
			n_whole += plan->items[i].subject.elements / 1000;
			n_chunks += (plan->items[i].subject.elements + 999) / 1000;
		}
	cr_assert_lt(n_chunks - n_chunks / 2, n_whole);
	for (unsigned i = 0; i < plan->n_items; i++)
		if (plan->items[i].n_tensors > 0) {
			const uint64_t whole = plan->items[i].subject.elements / 1000;

			chosen += whole == 0 ? 1 : (2000 * whole * (n_chunks - n_chunks / 2) + n_whole) / (2 * n_whole);
		}
	for (unsigned node = 0; node < plan->layout.nodes; node++)
		sent_bytes += psd_program_traffic(program, node).sent_bytes;
	cr_assert_eq(sent_bytes, 2 * (plan->layout.workers - 1) * (plan->wire->value_bytes * chosen + 4 * n_chunks),
		     "%s", name);
}

/* The choice for an iteration depends on all sums of the one before, and nothing is sent before the choice is made. */
EACH_PROGRAM(chunks_are_chosen_once_by_all_sums_of_the_iteration_before)
{
	unsigned n_choices = 0;

	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];
		bool waits_for_choice = false, *is_before = all_before(program, i);

		n_choices += op->kind == PSD_OP_CHOOSE;
		for (uint32_t o = 0; o < program->n_ops && op->kind == PSD_OP_CHOOSE; o++)
			cr_assert(program->ops[o].kind != PSD_OP_APPLY || is_before[o], "%s: operation %u", name, o);
		for (uint32_t e = 0; e < op->n_dependencies; e++)
			waits_for_choice =
				waits_for_choice || (dependency(program, i, e).distance == 1 &&
						     program->ops[dependency(program, i, e).op].kind == PSD_OP_CHOOSE);
		cr_assert(op->kind != PSD_OP_GATHER || waits_for_choice, "%s: operation %u", name, i);
		free(is_before);
	}
	cr_assert_eq(n_choices, program->plan->sparse != NULL, "%s", name);
}

/* ---- low rank ---- */

/* Matrices of 32 x 75, 32 x 800, 64 x 800 and 64 x 1024 are r columns and r rows each, and so is that of 10 x 64 but
 * for rank 9, where that would be 666 values. Biases have 202. */
EACH_PROGRAM(a_ring_of_low_rank_moves_narrow_matrices_and_all_else)
{
	const struct psd_plan *plan = program->plan;
	const uint64_t r = plan->low_rank;
	const uint64_t values = (32 + 75 + 32 + 800 + 64 + 800 + 64 + 1024) * r + (r == 9 ? 640 : (10 + 64) * r) + 202;
	uint64_t sent_bytes = 0;

	if (plan->system->sync != PSD_SYNC_ALL_REDUCE || !plan->low_rank)
		return;
	for (unsigned node = 0; node < plan->layout.nodes; node++)
		sent_bytes += psd_program_traffic(program, node).sent_bytes;
	cr_assert_eq(sent_bytes, 2 * (plan->layout.workers - 1) * 4 * values, "%s", name);
}

/* The item's only operation of that kind that reads such a buffer; UINT32_MAX if it has none. */
static uint32_t find_of_item(const struct psd_program *program, unsigned item, enum psd_op_kind kind,
			     enum psd_buffer source)
{
	uint32_t found = UINT32_MAX;

	for (uint32_t i = 0; i < program->n_ops; i++)
		if (program->ops[i].item == (int)item && program->ops[i].kind == kind &&
		    program->ops[i].source.buffer == source) {
			cr_assert_eq(found, UINT32_MAX, "item %u: operations %u and %u", item, found, i);
			found = i;
		}
	return found;
}

/* From the gradient to the update, in the order in which each waits for the one before. */
static const struct {
	enum psd_op_kind kind;
	enum psd_buffer source;
	bool is_copy;
} low_rank_path[] = {
	{PSD_OP_PROJECT, PSD_BUFFER_GRADIENT, false}, {PSD_OP_COPY_OUT, PSD_BUFFER_LEFT, true},
	{PSD_OP_COLLECTIVE, PSD_BUFFER_LEFT, false},  {PSD_OP_COPY_IN, PSD_BUFFER_LEFT, true},
	{PSD_OP_FIT, PSD_BUFFER_LEFT, false},	      {PSD_OP_COPY_OUT, PSD_BUFFER_RIGHT, true},
	{PSD_OP_COLLECTIVE, PSD_BUFFER_RIGHT, false}, {PSD_OP_COPY_IN, PSD_BUFFER_RIGHT, true},
	{PSD_OP_EXPAND, PSD_BUFFER_RIGHT, false},     {PSD_OP_APPLY, PSD_BUFFER_PARAMETER, false},
};

static void check_path_of(const struct psd_program *program, unsigned item, const char *name)
{
	const bool is_narrow = is_narrowed(&program->plan->items[item]);
	uint32_t last = UINT32_MAX;

	for (unsigned s = 0; s < sizeof(low_rank_path) / sizeof(low_rank_path[0]); s++) {
		const uint32_t op = find_of_item(program, item, low_rank_path[s].kind, low_rank_path[s].source);
		const bool is_expected =
			is_narrow && (!low_rank_path[s].is_copy || program->plan->costs->has_own_memory);

		if (low_rank_path[s].kind != PSD_OP_APPLY)
			cr_assert_eq(op != UINT32_MAX, is_expected, "%s: item %u, step %u", name, item, s);
		if (!is_expected)
			continue;
		cr_assert(last == UINT32_MAX || has_dependency(program, op, last, 0), "%s: item %u, step %u", name,
			  item, s);
		last = op;
	}
}

EACH_PROGRAM(narrow_matrices_are_made_and_summed_one_after_the_other)
{
	for (unsigned i = 0; i < program->plan->n_items; i++)
		check_path_of(program, i, name);
}

/* In sequence no sum, the right ones' neither, begins before every item has left the device; nor waits for the second
 * sum of another, which would wait for this one. Else a sum waits for its own item alone. */
EACH_PROGRAM(in_sequence_sums_wait_for_all_left_matrices)
{
	const struct psd_plan *plan = program->plan;
	const bool is_sequential = plan->system->schedule == PSD_SCHEDULE_SEQUENTIAL;
	const enum psd_op_kind leaving = plan->costs->has_own_memory ? PSD_OP_COPY_OUT : PSD_OP_PROJECT;

	for (uint32_t i = 0; i < program->n_ops && plan->low_rank; i++) {
		if (program->ops[i].kind != PSD_OP_COLLECTIVE)
			continue;
		bool *is_before = all_before(program, i);
		for (uint32_t o = 0; o < program->n_ops; o++) {
			const struct psd_op *op = &program->ops[o];
			const bool is_own = op->item == program->ops[i].item;
			const bool is_right = op->source.buffer == PSD_BUFFER_RIGHT;

			if (op->kind == leaving && !is_own)
				cr_assert_eq(is_before[o], is_sequential && !is_right, "%s: operation %u", name, i);
			if (op->kind == PSD_OP_COLLECTIVE && !is_own)
				cr_assert_not(is_before[o], "%s: operation %u", name, i);
		}
		free(is_before);
	}
}
