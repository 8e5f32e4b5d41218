#include "sim/import/inner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/grow.h"
#include "sim/import/places.h"

/* Operator or range whose whole inside has its role and its unit. */
struct psd_outer {
	double start_us, end_us; /* -INFINITY: the thread has none */
	double left_out_us;	 /* latest start of an operator that was left out */
	uint64_t external;
	int64_t sequence; /* number in the sequence of autograd of the last needed operator inside */
	uint32_t op;
};

/* Returns the entry of a thread; NULL: out of memory. */
static struct psd_outer *outer_of(struct psd_inner *inner, const char *thread)
{
	unsigned at = 0;

	if (psd_names_find(&inner->threads, thread, &at))
		return &inner->outers[at];
	void *grown = psd_grown(inner->outers, inner->n_outers, &inner->outers_room, sizeof(*inner->outers));
	if (!grown)
		return NULL;
	inner->outers = grown;
	if (!psd_names_put(&inner->threads, thread, inner->n_outers))
		return NULL;
	inner->outers[inner->n_outers] =
		(struct psd_outer){.start_us = -INFINITY, .end_us = -INFINITY, .left_out_us = -INFINITY};
	return &inner->outers[inner->n_outers++];
}

/* Operators with equal intervals are in order of their external numbers, as after psd_trace_settle(). */
static bool is_inside(const struct psd_outer *outer, const struct psd_trace_op *op)
{
	const double end_us = op->start_us + op->dur_us;

	if (op->start_us < outer->start_us || end_us > outer->end_us || op->start_us >= outer->end_us)
		return false;
	return op->start_us > outer->start_us || end_us < outer->end_us || op->external > outer->external;
}

/* True if an operator inside another one belongs to its unit. A method of TorchScript may be around several units. */
static bool is_plain(const struct psd_trace_op *op, const char *name)
{
	return !op->is_range && op->collective == PSD_TRACE_NONE && strcmp(name, "forward") != 0 &&
	       !psd_places_begins_role(name);
}

bool psd_inner_take(struct psd_inner *inner, struct psd_trace *trace, struct psd_trace_op *op, const char *name,
		    bool *is_needed)
{
	struct psd_outer *outer = outer_of(inner, psd_trace_string(trace, op->thread));
	const bool begins_role = psd_places_begins_role(name), is_op = is_plain(op, name);

	*is_needed = true;
	if (!outer)
		return false;
	op->is_late = !is_op && op->start_us <= outer->left_out_us;
	if (!is_inside(outer, op)) {
		if (is_op || begins_role)
			*outer = (struct psd_outer){.start_us = op->start_us,
						    .end_us = op->start_us + op->dur_us,
						    .left_out_us = outer->left_out_us,
						    .external = op->external,
						    .sequence = op->sequence,
						    .op = trace->n_ops};
	} else if (is_op && (op->sequence < 0 || op->sequence == outer->sequence)) {
		*is_needed = false;
		trace->n_left_out++;
		trace->ops[outer->op].has_left_out = true;
		outer->left_out_us = fmax(outer->left_out_us, op->start_us);
	} else {
		/* the numbers inside an operator of another role are not those of the unit around it */
		outer->sequence = is_op ? op->sequence : begins_role ? INT64_MAX : outer->sequence;
	}
	return true;
}

void psd_inner_release(struct psd_inner *inner)
{
	free(inner->outers);
	psd_names_release(&inner->threads);
	*inner = (struct psd_inner){.outers = NULL};
}
