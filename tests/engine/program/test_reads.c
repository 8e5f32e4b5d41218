/* Programs with stale reads, and the ages of reads. */
#include <criterion/criterion.h>

#include "engine/program/interpreter.h"
#include "engine/result/result.h"
#include "tests/loaded_helper.h"

#define SCENARIO(systems, nodes)                                                                                       \
	"title: t\nmodel: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 8}\n"                         \
	"compute: {device: v100}\n"                                                                                    \
	"cluster: {stack: none, nodes: " nodes ", network: {bandwidth: 10Gbps, latency: 50us}, "                       \
	"host: {update: 60GBps}}\n"                                                                                    \
	"systems:\n" systems

#define EVERY_METHOD                                                                                                   \
	"  - {name: ps, sync: ps, staleness: 2, reads: stale}\n"                                                       \
	"  - {name: ps sequential, sync: ps, schedule: sequential, staleness: 1, reads: stale}\n"                      \
	"  - {name: ps layer, sync: ps, barrier: layer, staleness: 3, reads: stale}\n"                                 \
	"  - {name: ps apart, sync: ps, servers: 2, staleness: 2, reads: stale}\n"                                     \
	"  - {name: two-level ps, sync: two-level-ps, staleness: 1, reads: stale}\n"                                   \
	"  - {name: ring, sync: ring, staleness: 4, reads: stale}\n"                                                   \
	"  - {name: fused, sync: ring, fuse: 1MB, barrier: layer, staleness: 2, reads: stale}\n"                       \
	"  - {name: accumulated, sync: ring, accumulate: 2, staleness: 2, reads: stale}\n"

static bool waits_for(const struct psd_program *program, uint32_t op, uint32_t before, uint32_t distance)
{
	for (uint32_t e = 0; e < program->ops[op].n_dependencies; e++) {
		const struct psd_edge *edge = &program->dependencies[program->ops[op].first_dependency + e];

		if (edge->op == before && edge->distance == distance)
			return true;
	}
	return false;
}

/* True if the operation waits, also through others of its iteration, for the other one. */
static bool follows(const struct psd_program *program, uint32_t op, uint32_t before)
{
	bool is = false;

	for (uint32_t e = 0; e < program->ops[op].n_dependencies && !is; e++) {
		const struct psd_edge *edge = &program->dependencies[program->ops[op].first_dependency + e];

		is = edge->distance == 0 && (edge->op == before || follows(program, edge->op, before));
	}
	return is;
}

static uint32_t find(const struct psd_program *program, enum psd_op_kind kind, unsigned item)
{
	uint32_t found = UINT32_MAX;

	for (uint32_t o = 0; o < program->n_ops; o++)
		if (program->ops[o].kind == kind && program->ops[o].item == (int)item) {
			cr_expect_eq(found, UINT32_MAX, "two of kind %d", kind);
			found = o;
		}
	cr_assert_neq(found, UINT32_MAX);
	return found;
}

/* A read waits for the sum of the iteration before the last `staleness`, and for none of this iteration. A worker's own
 * gradient is kept before it travels. */
static void check_program(const struct psd_case *made)
{
	const struct psd_program *program = &made->program;
	const uint32_t staleness = made->plan.staleness;

	for (unsigned i = 0; i < made->plan.n_items; i++) {
		const struct psd_plan_item *item = &made->plan.items[i];
		const uint32_t keep = find(program, PSD_OP_KEEP, i), apply = find(program, PSD_OP_APPLY, i),
			       read = find(program, PSD_OP_READ, i);

		cr_expect(waits_for(program, read, keep, 1));
		cr_expect(waits_for(program, read, apply, 1 + staleness));
		cr_expect(waits_for(program, apply, apply, 1));
		cr_expect_not(follows(program, read, apply));
		cr_expect_eq(program->ops[apply].lag, 0);
		for (uint32_t o = 0; o < program->n_ops; o++) {
			const struct psd_op *op = &program->ops[o];

			if (psd_op_moves(op) && op->item == (int)i)
				cr_expect(follows(program, o, keep), "%s: operation %u", made->system->name, o);
			if (op->kind == PSD_OP_FORWARD && op->micro_batch == 0 &&
			    psd_plan_has_layer(&made->plan, item, op->layer))
				cr_expect(waits_for(program, o, read, 0), "%s: operation %u", made->system->name, o);
		}
		for (enum psd_buffer b = PSD_BUFFER_KEPT; b <= PSD_BUFFER_KEPT_HISTORY; b++)
			cr_expect(psd_plan_keeps(&made->plan, item, b));
		cr_expect(psd_plan_keeps(&made->plan, item, PSD_BUFFER_START));
	}
	cr_expect_eq(program->window, staleness + 2);
}

Test(reads, layers_read_what_the_bound_allows)
{
	struct loaded loaded;

	loaded_open(&loaded, SCENARIO(EVERY_METHOD, "4"));
	for (unsigned s = 0; s < loaded.scenario.n_systems; s++) {
		struct psd_case made;

		loaded_case(&made, &loaded, s, 0);
		check_program(&made);
		psd_case_release(&made);
	}
	loaded_close(&loaded);
}

/* Sums of early chunks and of all chunks count in the order of iterations. A read waits for the operations that make
 * and withhold a worker's own updates. A choice is for the iteration that the bound lets begin behind it. */
Test(reads, of_chunks_wait_for_either_sum)
{
	struct loaded loaded;
	struct psd_case made;

	loaded_open(&loaded, SCENARIO("  - {name: A, sync: ring, staleness: 2, reads: stale, managed: {clock: 4, "
				      "early: 25%}}\n",
				      "4"));
	loaded_case(&made, &loaded, 0, 0);
	const struct psd_program *program = &made.program;
	const uint32_t norms = made.plan.n_items - 1, choose = find(program, PSD_OP_CHOOSE, norms);

	cr_expect(waits_for(program, choose, choose, 1));
	for (unsigned i = 0; i < norms; i++) {
		const uint32_t keep = find(program, PSD_OP_KEEP, i), read = find(program, PSD_OP_READ, i);
		unsigned n_gathers = 0, n_sums = 0;

		cr_expect(waits_for(program, read, keep, 1));
		for (uint32_t o = 0; o < program->n_ops; o++) {
			const struct psd_op *op = &program->ops[o];

			if (op->item != (int)i || (op->kind != PSD_OP_GATHER && op->kind != PSD_OP_APPLY))
				continue;
			cr_expect_eq(op->is_between, !op->is_exchange);
			n_gathers += op->kind == PSD_OP_GATHER;
			n_sums += op->kind == PSD_OP_APPLY;
			cr_expect(op->kind == PSD_OP_APPLY ? waits_for(program, read, o, 3)
							   : waits_for(program, read, o, 1));
			cr_expect(op->kind == PSD_OP_APPLY || waits_for(program, o, choose, 3));
			cr_expect(op->kind == PSD_OP_APPLY || waits_for(program, o, keep, 0));
			for (uint32_t other = 0; other < program->n_ops && op->kind == PSD_OP_APPLY; other++)
				if (program->ops[other].kind == PSD_OP_APPLY && program->ops[other].item == (int)i)
					cr_expect(waits_for(program, o, other, 1));
		}
		cr_expect(n_gathers == 2 && n_sums == 2);
		cr_expect(psd_plan_keeps(&made.plan, &made.plan.items[i], PSD_BUFFER_OWN_HISTORY));
		cr_expect_not(psd_plan_keeps(&made.plan, &made.plan.items[i], PSD_BUFFER_HISTORY));
	}
	cr_expect_not(psd_plan_keeps(&made.plan, &made.plan.items[norms], PSD_BUFFER_OWN_HISTORY));
	cr_expect_eq(program->window, 4);
	psd_case_release(&made);
	loaded_close(&loaded);
}

/* The same operations in the same order as without the key. */
static void expect_synchronous(const char *text)
{
	struct loaded loaded;
	struct psd_case made, other;

	loaded_open(&loaded, text);
	loaded_case(&made, &loaded, 0, 0);
	loaded_case(&other, &loaded, 1, 0);
	cr_assert_eq(made.program.n_ops, other.program.n_ops);
	for (uint32_t o = 0; o < made.program.n_ops; o++)
		cr_expect_eq(made.program.ops[o].kind, other.program.ops[o].kind);
	cr_expect_eq(made.program.n_edges, other.program.n_edges);
	psd_case_release(&made);
	psd_case_release(&other);
	loaded_close(&loaded);
}

Test(reads, without_staleness_the_program_is_synchronous)
{
	expect_synchronous(
		SCENARIO("  - {name: A, sync: ps, staleness: 0, reads: stale}\n  - {name: B, sync: ps}\n", "4"));
	expect_synchronous(
		SCENARIO("  - {name: A, sync: ring, staleness: 2, reads: stale}\n  - {name: B, sync: ring}\n", "1"));
}

/* setting: an option's; NULL: none. place: that the message names. */
static void expect_plan_error(const char *optimiser, const char *setting, const char *place, const char *name)
{
	const char *const settings[] = {setting, NULL};
	struct loaded loaded;
	struct psd_case made;
	struct psd_error err = {.text = ""};
	char text[512], scenario[1024];

	snprintf(scenario, sizeof(scenario),
		 SCENARIO("  - {name: A, sync: ring, staleness: 1, reads: stale}\n",
			  "2") "train: {data: {kind: synthetic}, iterations: 1, optimiser: {%s}, "
			       "learning_rate: {policy: fixed, base: 1}}\n",
		 optimiser);
	cr_assert_eq(psd_scenario_parse(&loaded.scenario, "t.yaml", scenario, strlen(scenario), settings, &err), PSD_OK,
		     "%s", err.text);
	cr_assert_eq(psd_costed_model_load(&loaded.costed, &loaded.scenario, &err), PSD_OK, "%s", err.text);
	snprintf(text, sizeof(text),
		 "%s: system 'A' has 'reads: stale', and its optimiser %s: the optimiser must be 'sgd' without 'clip'",
		 place, name);
	cr_expect_eq(psd_case_make(&made, &loaded.costed, &loaded.scenario.systems[0],
				   psd_scenario_point(&loaded.scenario, 0), &err),
		     PSD_EINVAL);
	cr_expect_str_eq(err.text, text);
	loaded_close(&loaded);
}

Test(reads, updates_by_norms_and_means_are_refused)
{
	expect_plan_error("kind: adamw", NULL, "t.yaml:6:5", "is 'adamw'");
	expect_plan_error("kind: lars, trust: 0.01", NULL, "t.yaml:6:5", "is 'lars'");
	expect_plan_error("clip: 1", NULL, "t.yaml:6:5", "has 'clip'");
	expect_plan_error("", "train.optimiser.clip=1", "--set train.optimiser.clip", "has 'clip'");
	expect_plan_error("", "train.optimiser.kind=adamw", "--set train.optimiser.kind", "is 'adamw'");
	expect_plan_error("clip: 1", "systems.A.reads=stale", "--set systems.A.reads", "has 'clip'");
}

/* ---- ages ---- */

/* Two hosts with one item, which read in iterations 10 to 13. The first has each sum at once, the second one that of
 * iteration 10 before it reads in iteration 13. */
Test(reads, an_age_counts_the_sums_that_are_missing)
{
	const struct psd_op apply = {.kind = PSD_OP_APPLY}, read = {.kind = PSD_OP_READ}, gate = {.kind = PSD_OP_GATE};
	const struct psd_plan plan = {.staleness = 3, .reads_stale = true, .n_items = 1};
	const struct psd_program program = {.plan = &plan};
	uint64_t counts[PSD_READ_AGES] = {0};
	struct psd_read_counts reads;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_reads_init(&reads, &program, 2, (struct psd_iterations){.first = 10, .end = 14}, &err),
		     PSD_OK);
	for (uint32_t i = 10; i < 14; i++) {
		psd_reads_begin(&reads, 0, &read, i);
		psd_reads_begin(&reads, 0, &apply, i);
		psd_reads_begin(&reads, 0, &gate, i);
		if (i == 13)
			psd_reads_begin(&reads, 1, &apply, 10);
		psd_reads_begin(&reads, 1, &read, i);
	}
	psd_reads_add(&reads, 0, 10, 1, counts);
	cr_expect_eq(counts[0], 4);
	psd_reads_add(&reads, 1, 10, 10, counts); /* ages 0, 1, 2, 2 */
	cr_expect_eq(counts[0], 14);
	cr_expect_eq(counts[1], 10);
	cr_expect_eq(counts[2], 20);
	cr_expect_eq(counts[3], 0);
	psd_reads_skip(&reads, 12, 2, 4); /* iterations 11 and 12 count five times */
	memset(counts, 0, sizeof(counts));
	psd_reads_add(&reads, 1, 11, 1, counts);
	cr_expect_eq(counts[0], 0);
	cr_expect_eq(counts[1], 5);
	cr_expect_eq(counts[2], 6);
	psd_reads_release(&reads);
}

Test(reads, a_note_has_the_share_of_each_age_that_was_read)
{
	const struct psd_system system = {.name = "A", .staleness = 4, .reads = PSD_READS_STALE};
	const uint64_t reads[PSD_READ_AGES] = {0, 6, 1, 0, 1}, none[PSD_READ_AGES] = {0};
	struct psd_text text = {.bytes = NULL};

	psd_result_add_reads(&text, &system, "'", none);
	cr_expect_null(text.bytes);
	psd_result_add_reads(&text, &system, "' at 4 nodes", reads);
	cr_expect_str_eq(text.bytes, "note: 'A' at 4 nodes read parameters that lacked the sums of 1 iteration "
				     "(75 %), 2 iterations (12.5 %), 4 iterations (12.5 %)\n");
	psd_text_release(&text);
}
