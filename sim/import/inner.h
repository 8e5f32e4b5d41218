/* Leaves out operators of a trace that an import does not need. Most operators are inside another operator, to whose
 * unit (struct psd_trace_unit) they belong. Without such inner operators a long trace needs a third of the memory. */
#ifndef PSD_IMPORT_INNER_H
#define PSD_IMPORT_INNER_H

#include "engine/base/names.h"
#include "sim/import/trace.h"

struct psd_inner {
	/* last outer operator of each thread, in the order of the threads' first operators */
	struct psd_outer *outers;
	uint32_t n_outers, outers_room;
	struct psd_names threads; /* index in outers by the name of a thread */
};				  /* all zeros are valid */

/* Decides whether the trace needs the operator `op`, the next entry of trace->ops, and sets *is_needed. op->name and
 * op->dims are not read. If an operator of the same thread that starts later was left out before, marks `op` as late
 * (psd_trace_op.is_late). False: out of memory. */
bool psd_inner_take(struct psd_inner *inner, struct psd_trace *trace, struct psd_trace_op *op, const char *name,
		    bool *is_needed);
void psd_inner_release(struct psd_inner *inner);

#endif
