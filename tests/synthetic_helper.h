/* A synthetic method, its program made by hand. Each group of workers all-reduces every item by itself, in one round or
 * several, and applies the sum. The first forward operation waits for that, or for the sum of an earlier iteration. The
 * rules that every executor must keep are checked on the spans that it reported. */
#ifndef PSD_TESTS_SYNTHETIC_HELPER_H
#define PSD_TESTS_SYNTHETIC_HELPER_H

#include <criterion/criterion.h>
#include <math.h>

#include "engine/case/case.h"
#include "engine/program/program_builder.h"
#include "engine/result/trace.h"

struct synthetic {
	struct psd_group groups[4]; /* 0 hosts: all workers, as if no group were named */
	unsigned n_groups;
	uint32_t staleness;
	unsigned
		n_more_rounds; /* all-reduces of an item behind its first one, each of which waits for the one before */
};

static inline void add_synthetic_item(struct psd_builder *b, const struct synthetic *synthetic, uint32_t forward,
				      unsigned i)
{
	const struct psd_plan_item *item = &b->plan->items[i];

	for (unsigned g = 0; g < synthetic->n_groups; g++) {
		struct psd_op op = {
			.kind = PSD_OP_COLLECTIVE,
			.resource = PSD_RESOURCE_NIC,
			.where = PSD_WHERE_GROUP,
			.layer = item->layer,
			.item = (int)i,
			.turn = i,
			.bytes = item->subject.elements * b->plan->value_bytes,
			.source = PSD_VIEW(GRADIENT),
			.target = PSD_VIEW(GRADIENT),
			.payload = {.collective = &psd_ring,
				    .elements = item->subject.elements,
				    .value_bytes = b->plan->value_bytes,
				    .group = synthetic->groups[g]},
		};
		uint32_t before = b->backward_of_layer[item->layer];

		for (unsigned round = 0; round <= synthetic->n_more_rounds; round++) {
			const uint32_t collective = psd_builder_add_op(b, &op);

			psd_builder_after(b, collective, before);
			before = collective;
		}
		op.kind = PSD_OP_APPLY;
		op.resource = PSD_RESOURCE_DEVICE;
		const uint32_t apply = psd_builder_add_op(b, &op);
		psd_builder_after(b, apply, before);
		psd_builder_after_iterations(b, forward, apply, 1 + synthetic->staleness);
	}
}

/* The case carries it out instead of its own program. */
static inline void make_synthetic(struct psd_case *made, const struct synthetic *synthetic)
{
	struct psd_builder builder;
	struct psd_error err = {.text = ""};

	psd_program_release(&made->program);
	cr_assert_eq(psd_builder_open(&builder, &made->plan, &err), PSD_OK, "%s", err.text);
	const uint32_t forward = psd_builder_add_compute(&builder);
	for (unsigned i = 0; i < made->plan.n_items; i++)
		add_synthetic_item(&builder, synthetic, forward, i);
	psd_builder_add_ends(&builder, forward);
	cr_assert_eq(psd_builder_close(&builder, &made->program, &err), PSD_OK, "%s", err.text);
}

/* ---- the record of operations ---- */

enum { MOST_TOLD = 4096 };

struct told {
	unsigned n;
	struct psd_span spans[MOST_TOLD];
};

static inline void tell(void *context, const struct psd_program *program, const struct psd_span *span)
{
	struct told *told = context;
	const enum psd_op_kind kind = program->ops[span->task.op].kind;

	if (kind != PSD_OP_COLLECTIVE && kind != PSD_OP_FORWARD && kind != PSD_OP_BACKWARD)
		return;
	if (span->is_arrival)
		return;
	if (told->n < MOST_TOLD)
		told->spans[told->n] = *span;
	told->n++;
}

/* The host's i-th operation of that kind in an iteration, in order of the program; NULL when there is none. */
static inline const struct psd_span *find_told(const struct told *told, const struct psd_program *program,
					       enum psd_op_kind kind, unsigned host, uint32_t iteration, unsigned i)
{
	cr_assert_leq(told->n, MOST_TOLD);
	for (uint32_t op = 0; op < program->n_ops; op++)
		for (unsigned s = 0; s < told->n && program->ops[op].kind == kind; s++) {
			const struct psd_span *span = &told->spans[s];

			if (span->task.op == op && span->task.iteration == iteration && span->host == host && i-- == 0)
				return span;
		}
	return NULL;
}

static inline bool is_told_collective(const struct psd_program *program, const struct psd_span *span)
{
	return program->ops[span->task.op].kind == PSD_OP_COLLECTIVE;
}

static inline bool is_same_task(const struct psd_span *a, const struct psd_span *b)
{
	return a->task.op == b->task.op && a->task.iteration == b->task.iteration;
}

/* Collectives of a host, one after the other. */
static inline void expect_one_at_a_time(const struct told *told, const struct psd_program *program, const char *name)
{
	for (unsigned i = 0; i < told->n; i++)
		for (unsigned j = 0; j < i; j++) {
			const struct psd_span *a = &told->spans[i], *b = &told->spans[j];

			if (a->host == b->host && is_told_collective(program, a) && is_told_collective(program, b))
				cr_expect(a->end_sec <= b->start_sec || b->end_sec <= a->start_sec,
					  "%s: host %u has operation %u of iteration %u and %u of %u under way at once",
					  name, a->host, a->task.op, a->task.iteration, b->task.op, b->task.iteration);
		}
}

static inline const struct psd_span *find_same(const struct told *told, const struct psd_span *wanted, unsigned host)
{
	for (unsigned s = 0; s < told->n; s++)
		if (told->spans[s].host == host && is_same_task(&told->spans[s], wanted))
			return &told->spans[s];
	return NULL;
}

/* When two hosts have two collectives in common, the same one goes first on both. */
static inline void expect_same_order(const struct told *told, const struct psd_program *program, unsigned host,
				     unsigned other, const char *name)
{
	for (unsigned i = 0; i < told->n; i++)
		for (unsigned j = 0; j < told->n; j++) {
			const struct psd_span *a = &told->spans[i], *b = &told->spans[j];
			if (a->host != host || b->host != host || is_same_task(a, b) ||
			    !is_told_collective(program, a) || !is_told_collective(program, b))
				continue;
			const struct psd_span *there_a = find_same(told, a, other),
					      *there_b = find_same(told, b, other);

			if (there_a && there_b)
				cr_expect_eq(
					a->start_sec < b->start_sec, there_a->start_sec < there_b->start_sec,
					"%s: hosts %u and %u disagree about operations %u of iteration %u and %u of %u",
					name, host, other, a->task.op, a->task.iteration, b->task.op,
					b->task.iteration);
		}
}

static inline void expect_overlap(const struct told *told, const struct psd_program *program, unsigned host,
				  unsigned other, uint32_t n_iterations, const char *name)
{
	for (uint32_t t = 0; t < n_iterations; t++) {
		const struct psd_span *a = find_told(told, program, PSD_OP_COLLECTIVE, host, t, 0);
		const struct psd_span *b = find_told(told, program, PSD_OP_COLLECTIVE, other, t, 0);

		cr_assert(a && b, "%s: iteration %u has no collective on hosts %u and %u", name, t, host, other);
		cr_expect_neq(a->task.op, b->task.op);
		cr_expect(a->start_sec < b->end_sec && b->start_sec < a->end_sec,
			  "%s: iteration %u: host %u has its collective from %g to %g s, host %u from %g to %g s", name,
			  t, host, a->start_sec, a->end_sec, other, b->start_sec, b->end_sec);
	}
}

/* With one collective a host and iteration: forward begins once that of 1 + staleness iterations before is over, and
 * does not always wait for the next one. */
static inline void expect_staleness(const struct told *told, const struct psd_program *program, unsigned host,
				    uint32_t staleness, uint32_t n_iterations, const char *name)
{
	bool is_stale = staleness == 0;

	for (uint32_t t = 1 + staleness; t < n_iterations; t++) {
		const struct psd_span *forward = find_told(told, program, PSD_OP_FORWARD, host, t, 0);
		const struct psd_span *over = find_told(told, program, PSD_OP_COLLECTIVE, host, t - 1 - staleness, 0);
		const struct psd_span *next = find_told(told, program, PSD_OP_COLLECTIVE, host, t - staleness, 0);

		cr_assert(forward && over && next, "%s: iteration %u is not complete on host %u", name, t, host);
		cr_expect_geq(forward->start_sec, over->end_sec, "%s: host %u begins iteration %u too early", name,
			      host, t);
		is_stale = is_stale || forward->start_sec < next->end_sec;
	}
	cr_expect(is_stale, "%s: host %u never is %u iterations ahead", name, host, staleness);
}

#endif
