/* Leaves out operators of a trace that tell an import nothing: most operators are inside another one, to whose unit
 * (struct psd_trace_unit) they belong. Without them a long trace needs a third of the memory. */
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

/* Decides whether the trace needs an operator that is to become trace->ops[trace->n_ops], and sets *is_needed. Its
 * `name` and `dims` are not used. An event out of the order of start of its thread is marked as late: see
 * psd_trace_settle(). False: out of memory. */
bool psd_inner_take(struct psd_inner *inner, struct psd_trace *trace, struct psd_trace_op *op, const char *name,
		    bool *is_needed);
void psd_inner_release(struct psd_inner *inner);

#endif
