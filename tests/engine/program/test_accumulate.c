/* Programs with gradient accumulation. */
#include <criterion/criterion.h>
#include <math.h>

#include "engine/program/footprint.h"
#include "engine/result/result.h"
#include "engine/result/trace.h"
#include "tests/loaded_helper.h"

#define TIE_RATIO 1e-9

/* `update` of 60 GB/s: a sum of gradients takes three fifths of the time of an update. */
#define SCENARIO(methods, sweep)                                                                                       \
	"title: t\nmodel: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 8}\n"                         \
	"compute: {device: v100}\n"                                                                                    \
	"cluster: {stack: none, network: {bandwidth: 10Gbps, latency: 50us}, host: {update: 60GBps}}\n"                \
	"systems:\n" methods "sweep: {nodes: [" sweep "]}\n"
#define EVERY_METHOD                                                                                                   \
	"  - {name: ps, sync: ps, accumulate: 4}\n"                                                                    \
	"  - {name: ps in sequence, sync: ps, schedule: sequential, accumulate: 3}\n"                                  \
	"  - {name: late ps, sync: ps, staleness: 2, accumulate: 2}\n"                                                 \
	"  - {name: ps apart, sync: ps, servers: 1, accumulate: 2}\n"                                                  \
	"  - {name: two-level ps, sync: two-level-ps, accumulate: 2}\n"                                                \
	"  - {name: sfb, sync: sfb, accumulate: 4}\n"                                                                  \
	"  - {name: sfb apart, sync: sfb, servers: 2, accumulate: 4}\n"                                                \
	"  - {name: adam, sync: adam, accumulate: 2}\n"                                                                \
	"  - {name: adam apart, sync: adam, servers: 1, accumulate: 2}\n"                                              \
	"  - {name: hybrid, sync: hybrid, accumulate: 2}\n"                                                            \
	"  - {name: ring, sync: ring, accumulate: 4}\n"                                                                \
	"  - {name: fused, sync: ring, fuse: 1MB, accumulate: 4}\n"                                                    \
	"  - {name: steps, sync: ring, local_sgd: {steps: 4}, accumulate: 2}\n"                                        \
	"  - {name: sparse, sync: ring, sparse: {sparsity: 0.5, chunk: 100}, accumulate: 2}\n"                         \
	"  - {name: low rank, sync: ring, low_rank: {rank: 2}, accumulate: 2}\n"                                       \
	"  - {name: packed, sync: ps, compress: {by: one-bit}, accumulate: 2}\n"                                       \
	"  - {name: once, sync: ring}\n"

static void for_each_case(const char *text, void (*check)(const struct psd_case *made))
{
	struct loaded loaded;

	loaded_open(&loaded, text);
	for (unsigned s = 0; s < loaded.scenario.n_systems; s++)
		for (unsigned p = 0; p < psd_scenario_points(&loaded.scenario); p++) {
			struct psd_case made;

			loaded_case(&made, &loaded, s, p);
			check(&made);
			psd_case_release(&made);
		}
	loaded_close(&loaded);
}

static bool waits_for(const struct psd_program *program, uint32_t op, uint32_t before)
{
	for (uint32_t e = 0; e < program->ops[op].n_dependencies; e++) {
		const struct psd_edge *edge = &program->dependencies[program->ops[op].first_dependency + e];

		if (edge->op == before && edge->distance == 0)
			return true;
	}
	return false;
}

static bool is_summed(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	return item->n_tensors > 0 && !psd_plan_rebuilds(plan, item);
}

/* ---- operations ---- */

static void check_passes(const struct psd_case *made)
{
	const struct psd_program *program = &made->program;
	const uint32_t n = made->plan.micro_batches;
	uint32_t n_forward[8] = {0}, n_backward[8] = {0};
	uint32_t last = UINT32_MAX;

	for (uint32_t o = 0; o < program->n_ops; o++) {
		const struct psd_op *op = &program->ops[o];

		if (!psd_op_is_compute(op))
			continue;
		cr_assert_lt(op->micro_batch, n, "%s", made->system->name);
		n_forward[op->micro_batch] += psd_ops[op->kind].is_forward;
		n_backward[op->micro_batch] += psd_ops[op->kind].is_backward;
		/* each pass waits for the one before, or for the sum between two micro-batches */
		if (last != UINT32_MAX)
			cr_expect(waits_for(program, o, last), "%s: %u", made->system->name, o);
		last = psd_ops[op->kind].is_backward && o + 1 < program->n_ops &&
				       program->ops[o + 1].kind == PSD_OP_ACCUMULATE && program->ops[o + 1].item < 0
			       ? o + 1
			       : o;
	}
	for (uint32_t m = 0; m < n; m++) {
		cr_expect(n_forward[m] > 0 && n_forward[m] == n_forward[0], "%s", made->system->name);
		cr_expect_eq(n_backward[m], n_forward[0], "%s", made->system->name);
	}
}

Test(accumulate, each_micro_batch_has_all_passes_in_order)
{
	for_each_case(SCENARIO(EVERY_METHOD, "1, 2, 4"), check_passes);
}

static uint32_t find_last_backward(const struct psd_case *made, const struct psd_plan_item *item)
{
	const struct psd_program *program = &made->program;
	uint32_t found = UINT32_MAX;

	for (uint32_t o = 0; o < program->n_ops; o++)
		if (psd_ops[program->ops[o].kind].is_backward && program->ops[o].layer == item->layer)
			found = o;
	return found;
}

/* No sum between the first two: backward of the first writes the sum itself. */
static void check_sums(const struct psd_case *made)
{
	const struct psd_program *program = &made->program;
	const uint32_t n = made->plan.micro_batches;
	uint32_t n_of_all = 0, n_of_items = 0, n_summed = 0;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < made->plan.n_items; i++)
		if (is_summed(&made->plan, &made->plan.items[i])) {
			n_summed++;
			bytes += made->plan.items[i].subject.elements * sizeof(float);
		}
	for (uint32_t o = 0; o < program->n_ops; o++) {
		const struct psd_op *op = &program->ops[o];

		if (op->kind != PSD_OP_ACCUMULATE)
			continue;
		cr_expect(op->micro_batch >= 1 && op->micro_batch < n, "%s", made->system->name);
		cr_expect_float_eq(op->work_sec, 0.6 * (double)op->bytes / 60e9, TIE_RATIO * op->work_sec);
		n_of_all += op->item < 0;
		n_of_items += op->item >= 0;
		if (op->item < 0) {
			cr_expect_eq(op->bytes, bytes, "%s", made->system->name);
		} else {
			const struct psd_plan_item *item = &made->plan.items[op->item];

			cr_expect(is_summed(&made->plan, item), "%s", made->system->name);
			cr_expect_eq(op->bytes, item->subject.elements * sizeof(float));
			cr_expect_eq(op->micro_batch, n - 1);
			cr_expect(waits_for(program, o, find_last_backward(made, item)), "%s", made->system->name);
			cr_expect_lt(op->turn, program->ops[find_last_backward(made, item)].turn);
		}
	}
	cr_expect_eq(n_of_all, n > 2 ? n - 2 : 0, "%s: %u", made->system->name, n_of_all);
	cr_expect_eq(n_of_items, n > 1 ? n_summed : 0, "%s: %u of %u", made->system->name, n_of_items, n_summed);
}

Test(accumulate, gradients_are_added_before_they_leave)
{
	for_each_case(SCENARIO(EVERY_METHOD, "1, 2, 4"), check_sums);
}

/* Operations on an item's gradient wait for the sum, not for the backward pass alone. */
static void check_order(const struct psd_case *made)
{
	const struct psd_program *program = &made->program;

	for (uint32_t o = 0; o < program->n_ops && made->plan.micro_batches > 1; o++) {
		const struct psd_op *op = &program->ops[o];
		const struct psd_plan_item *item = op->item >= 0 ? &made->plan.items[op->item] : NULL;

		if (!item || !is_summed(&made->plan, item))
			continue;
		if (op->kind == PSD_OP_ACCUMULATE)
			cr_expect_gt(op->n_dependents, 0, "%s: item %d", made->system->name, op->item);
		else
			cr_expect_not(waits_for(program, o, find_last_backward(made, item)), "%s: '%s' of item %d",
				      made->system->name, psd_ops[op->kind].name, op->item);
	}
}

Test(accumulate, an_exchange_waits_for_the_sum)
{
	for_each_case(SCENARIO(EVERY_METHOD, "1, 2, 4"), check_order);
}

/* A lone worker makes its own gradients, unless servers of their own update matrices. */
static void check_rebuilds(const struct psd_case *made)
{
	for (unsigned i = 0; i < made->plan.n_items; i++) {
		bool has_rebuild = false;

		for (uint32_t o = 0; o < made->program.n_ops; o++)
			has_rebuild = has_rebuild || (psd_ops[made->program.ops[o].kind].rebuilds &&
						      made->program.ops[o].item == (int)i);
		cr_expect_eq(psd_plan_rebuilds(&made->plan, &made->plan.items[i]), has_rebuild, "%s of %u",
			     made->system->name, made->plan.layout.workers);
	}
}

Test(accumulate, gradients_of_factors_are_those_that_an_operation_rebuilds)
{
	for_each_case(SCENARIO(EVERY_METHOD, "1, 2, 4"), check_rebuilds);
}

/* ---- one exchange ---- */

static unsigned count_transfers(const struct psd_program *program)
{
	unsigned n = 0;

	for (uint32_t o = 0; o < program->n_ops; o++)
		n += psd_op_moves(&program->ops[o]);
	return n;
}

/* Factors are of all samples of an iteration: the larger batch has as many. */
Test(accumulate, an_iteration_has_the_transfers_of_the_larger_batch)
{
	static const char *const syncs[] = {"ps", "sfb", "adam", "hybrid", "ring, fuse: 1MB"};

	for (unsigned s = 0; s < sizeof(syncs) / sizeof(syncs[0]); s++) {
		struct loaded loaded, other;
		struct psd_case made, larger;

		loaded_print(&loaded, SCENARIO("  - {name: s, sync: %s, accumulate: 4}\n", "4"), syncs[s]);
		loaded_print(&other, SCENARIO("  - {name: s, sync: %s, model: {batch_per_worker: 32}}\n", "4"),
			     syncs[s]);
		loaded_case(&made, &loaded, 0, 0);
		loaded_case(&larger, &other, 0, 0);
		cr_expect_eq(count_transfers(&made.program), count_transfers(&larger.program), "%s", syncs[s]);
		for (unsigned node = 0; node < 4; node++)
			cr_expect_eq(psd_program_traffic(&made.program, node).sent_bytes,
				     psd_program_traffic(&larger.program, node).sent_bytes, "%s", syncs[s]);
		psd_case_release(&made);
		psd_case_release(&larger);
		loaded_close(&loaded);
		loaded_close(&other);
	}
}

/* ---- time ---- */

/* Backward of a micro-batch leaves out its part of a gradient that is rebuilt; the rebuild makes that of all. */
static void check_work(const struct psd_case *made)
{
	const struct psd_plan *plan = &made->plan;
	double sec = 0.0, expected_sec = plan->micro_batches * made->plan.costs->compute_sec;

	for (uint32_t o = 0; o < made->program.n_ops; o++)
		if (psd_op_is_compute(&made->program.ops[o]) || psd_ops[made->program.ops[o].kind].rebuilds)
			sec += made->program.ops[o].work_sec;
	for (unsigned i = 0; i < plan->n_items; i++)
		if (psd_plan_rebuilds(plan, &plan->items[i]))
			expected_sec += psd_cost_rebuild_flops(&plan->items[i].subject, plan->layout.workers - 1) /
					made->plan.costs->gemm_flops_per_sec;
	cr_expect_float_eq(sec, expected_sec, TIE_RATIO * expected_sec, "%s: %g instead of %g", made->system->name, sec,
			   expected_sec);
}

Test(accumulate, work_of_layers_is_that_of_all_micro_batches)
{
	for_each_case(SCENARIO(EVERY_METHOD, "1, 2, 4"), check_work);
}

/* ---- memory and samples ---- */

Test(accumulate, memory_is_that_of_one_micro_batch_and_one_more_gradient)
{
	struct loaded loaded;
	struct psd_case made, once;

	loaded_open(&loaded, SCENARIO("  - {name: a, sync: ring, accumulate: 16}\n  - {name: b, sync: ring}\n", "2"));
	loaded_case(&made, &loaded, 0, 0);
	loaded_case(&once, &loaded, 1, 0);
	const struct psd_footprint footprint = psd_footprint_make(&made.program, 8),
				   other = psd_footprint_make(&once.program, 8);
	cr_expect_eq(psd_footprint_bytes(&footprint),
		     psd_footprint_bytes(&other) + made.plan.graph->parameters * sizeof(float));
	psd_case_release(&made);
	psd_case_release(&once);
	loaded_close(&loaded);
}

/* 2 workers with 4 batches of 8 samples in half a second; a job of 6400 samples has 100 iterations. */
Test(accumulate, a_result_counts_all_samples)
{
	struct loaded loaded;

	loaded_open(&loaded, SCENARIO("  - {name: a, sync: ring, accumulate: 4}\n", "2") "job: {samples: 6400}\n");
	const struct psd_system *system = &loaded.scenario.systems[0];
	const struct psd_result_basis basis = {.scenario = &loaded.scenario, .executor = "", .compute_sec = 0.1};
	const struct psd_outcome outcome = {.iteration_sec = 0.5};
	const struct psd_result result =
		psd_result_make(&basis, system, psd_scenario_point(&loaded.scenario, 0), &outcome, 32.0);

	cr_expect_eq(psd_system_micro_batches(system), 4);
	cr_expect_eq(psd_scenario_samples(&loaded.scenario, system), 32);
	cr_expect_float_eq(result.images_per_sec, 128.0, TIE_RATIO);
	cr_expect_float_eq(result.speedup.value, 4.0, TIE_RATIO);
	cr_expect_float_eq(result.efficiency_ratio.value, 0.8, TIE_RATIO);
	cr_expect_float_eq(result.job_hours.value, 100 * 0.5 / 3600, TIE_RATIO);
	cr_expect_eq(result.batch, 8);
	loaded_close(&loaded);
}

Test(accumulate, a_trace_tells_micro_batches_apart)
{
	struct psd_text text = {.bytes = NULL};
	struct loaded loaded;
	struct psd_case made;

	loaded_open(&loaded, SCENARIO("  - {name: a, sync: ring, accumulate: 3}\n", "2"));
	loaded_case(&made, &loaded, 0, 0);
	for (uint32_t o = 0; o < made.program.n_ops; o++)
		psd_trace_add_span(&text, &made.program, &(struct psd_span){.task = {0, o}});
	cr_assert_not(text.is_out_of_memory);
	cr_expect_not_null(strstr(text.bytes, "\"name\":\"accumulate all\""));
	cr_expect_not_null(strstr(text.bytes, "\"cat\":\"backward\""));
	cr_expect_not_null(strstr(text.bytes, "\"micro_batch\":0}"));
	cr_expect_not_null(strstr(text.bytes, "\"micro_batch\":2}"));
	cr_expect_null(strstr(text.bytes, "\"micro_batch\":3}"));
	psd_text_release(&text);
	psd_case_release(&made);
	loaded_close(&loaded);
}
