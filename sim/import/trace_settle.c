/* Order in a trace: spans inside spans, and the operator of each kernel. */
#include <stdlib.h>

#include "sim/import/trace.h"

static int by(uint64_t one, uint64_t other)
{
	return (one > other) - (one < other);
}

static int by_time(double one, double other)
{
	return (one > other) - (one < other);
}

static int compare_ops(const void *left, const void *right)
{
	const struct psd_trace_op *one = left, *other = right;
	int order = by(one->thread, other->thread);

	if (!order)
		order = by_time(one->start_us, other->start_us);
	if (!order)
		order = by_time(other->dur_us, one->dur_us); /* the outer one first */
	if (!order)
		order = by(other->is_range, one->is_range);
	if (!order)
		order = by(one->external, other->external);
	return order ? order : by(one->name, other->name);
}

static int compare_launches(const void *left, const void *right)
{
	const struct psd_trace_launch *one = left, *other = right;
	const int order = by(one->correlation, other->correlation);

	return order ? order : by_time(one->start_us, other->start_us);
}

static int compare_kernels(const void *left, const void *right)
{
	const struct psd_trace_kernel *one = left, *other = right;
	int order = by_time(one->start_us, other->start_us);

	if (!order)
		order = by(one->correlation, other->correlation);
	return order ? order : by(one->name, other->name);
}

static double end_of(const struct psd_trace_op *op)
{
	return op->start_us + op->dur_us;
}

/* Innermost span around the time, from span `at` outwards; PSD_TRACE_NONE: none. */
static uint32_t around(const struct psd_trace *trace, uint32_t at, double us)
{
	while (at != PSD_TRACE_NONE && end_of(&trace->ops[at]) < us)
		at = trace->ops[at].parent;
	return at;
}

/* Whether `inner`, which starts later, is inside. Clocks with whole microseconds let it end a little later. */
static bool holds(const struct psd_trace_op *outer, const struct psd_trace_op *inner)
{
	return end_of(outer) > inner->start_us && end_of(outer) + 1 >= end_of(inner);
}

/* True if operators were left out inside this one, or inside one around it. */
static bool has_left_out(const struct psd_trace *trace, uint32_t op)
{
	while (op != PSD_TRACE_NONE && !trace->ops[op].has_left_out)
		op = trace->ops[op].parent;
	return op != PSD_TRACE_NONE;
}

/* False: an operator that was left out may be inside another one than it seemed. */
static bool find_parents(struct psd_trace *trace)
{
	uint32_t last = PSD_TRACE_NONE;
	bool is_right = true;

	for (uint32_t i = 0; i < trace->n_ops; i++) {
		struct psd_trace_op *op = &trace->ops[i];

		if (i && trace->ops[i - 1].thread != op->thread)
			last = PSD_TRACE_NONE;
		while (last != PSD_TRACE_NONE && !holds(&trace->ops[last], op)) {
			if (end_of(&trace->ops[last]) > op->start_us) /* neither is inside the other */
				is_right &= !has_left_out(trace, last);
			last = trace->ops[last].parent;
		}
		op->parent = last;
		is_right &= !op->is_late || !has_left_out(trace, last);
		last = i;
	}
	return is_right;
}

/* Last span of the thread that starts at this time or before; PSD_TRACE_NONE: none. */
static uint32_t last_before(const struct psd_trace *trace, uint32_t thread, double us)
{
	uint32_t low = 0, high = trace->n_ops;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		const struct psd_trace_op *op = &trace->ops[middle];

		if (op->thread < thread || (op->thread == thread && op->start_us <= us))
			low = middle + 1;
		else
			high = middle;
	}
	return low && trace->ops[low - 1].thread == thread ? low - 1 : PSD_TRACE_NONE;
}

static const struct psd_trace_launch *find_launch(const struct psd_trace *trace, uint64_t correlation)
{
	uint32_t low = 0, high = trace->n_launches;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (trace->launches[middle].correlation < correlation)
			low = middle + 1;
		else
			high = middle;
	}
	return low < trace->n_launches && trace->launches[low].correlation == correlation ? &trace->launches[low]
											  : NULL;
}

/* ---- operators by their external number, for kernels without a launch ---- */

struct external {
	uint64_t number;
	uint32_t op;
};

static int compare_externals(const void *left, const void *right)
{
	const struct external *one = left, *other = right;
	const int order = by(one->number, other->number);

	return order ? order : by(one->op, other->op);
}

static uint32_t find_external(const struct external *externals, uint32_t n, uint64_t number)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (externals[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && externals[low].number == number ? externals[low].op : PSD_TRACE_NONE;
}

/* Without memory for the list such kernels stay without an operator. False: it may be one that was left out. */
static bool place_by_external(struct psd_trace *trace)
{
	bool is_right = true;
	struct external *externals = malloc(((size_t)trace->n_ops + 1) * sizeof(*externals));
	uint32_t n = 0;

	if (!externals)
		return true;
	for (uint32_t i = 0; i < trace->n_ops; i++)
		if (trace->ops[i].external)
			externals[n++] = (struct external){trace->ops[i].external, i};
	qsort(externals, n, sizeof(*externals), compare_externals);
	for (uint32_t i = 0; i < trace->n_kernels; i++)
		if (trace->kernels[i].op == PSD_TRACE_NONE && trace->kernels[i].external) {
			trace->kernels[i].op = find_external(externals, n, trace->kernels[i].external);
			is_right &= trace->kernels[i].op != PSD_TRACE_NONE || !trace->n_left_out;
		}
	free(externals);
	return is_right;
}

bool psd_trace_settle(struct psd_trace *trace)
{
	bool is_open = false, is_right;

	qsort(trace->ops, trace->n_ops, sizeof(*trace->ops), compare_ops);
	if (trace->n_launches)
		qsort(trace->launches, trace->n_launches, sizeof(*trace->launches), compare_launches);
	if (trace->n_kernels)
		qsort(trace->kernels, trace->n_kernels, sizeof(*trace->kernels), compare_kernels);
	is_right = find_parents(trace);
	for (uint32_t i = 0; i < trace->n_kernels; i++) {
		struct psd_trace_kernel *kernel = &trace->kernels[i];
		const struct psd_trace_launch *launch =
			kernel->correlation ? find_launch(trace, kernel->correlation) : NULL;

		if (launch)
			kernel->op =
				around(trace, last_before(trace, launch->thread, launch->start_us), launch->start_us);
		is_open |= kernel->op == PSD_TRACE_NONE;
	}
	return (!is_open || place_by_external(trace)) && is_right;
}
