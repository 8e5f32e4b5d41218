/* Assigns the operators of a trace to roles in training: forward, backward, optimiser and so on. Operators of forward
 * and backward are grouped in units. A unit is an outermost operator with all operators inside it (forward), or one
 * node of autograd (backward). This module does not know models. */
#ifndef PSD_IMPORT_PLACES_H
#define PSD_IMPORT_PLACES_H

#include "sim/import/trace.h"

enum psd_role {
	/* no role: ranges that contain operators of several roles; their own time is not assigned */
	PSD_ROLE_NONE,
	PSD_ROLE_FORWARD,
	PSD_ROLE_BACKWARD,
	PSD_ROLE_OPTIMIZER,
	PSD_ROLE_COLLECTIVE,
	PSD_ROLE_BUCKETS, /* copies of gradients into buckets and out of them */
	PSD_ROLE_DATA,	  /* reading of samples, and copies of samples to the device */
	PSD_ROLES
};
extern const char *const psd_role_names[PSD_ROLES];

struct psd_trace_unit {
	uint32_t op;   /* number of the unit's outermost operator */
	uint32_t step; /* number of the step in which the unit is; PSD_TRACE_NONE: in none */
	/* number of the innermost range around the unit that user code or a module has opened (an entry of trace->ops);
	 * PSD_TRACE_NONE: none */
	uint32_t module;
	/* for a unit of backward: number of the unit of forward whose gradient it computes; PSD_TRACE_NONE: not known
	 * */
	uint32_t forward;
	/* number of the unit of the same step and role that the same thread started before; PSD_TRACE_NONE: none */
	uint32_t before;
	enum psd_role role;
	/* seconds of the unit's kernels on the device; if the trace has no kernels, seconds of its operators on the
	 * host */
	double sec;
};

struct psd_trace_step {
	double start_us, dur_us;
	double role_sec[PSD_ROLES];
	double kernel_sec; /* seconds of all kernels in the step, added up; without kernels, of all operators */
	double busy_sec;   /* time in the step in which the device executes at least one kernel, seconds */
};

struct psd_places {
	const struct psd_trace *trace; /* trace whose operators were assigned to roles; borrowed */
	struct psd_trace_unit *units;  /* units in the order of their start, over all threads; n_units entries */
	uint32_t n_units;
	uint32_t *unit_of; /* number of the unit to which each operator belongs; PSD_TRACE_NONE: none */
	uint8_t *role_of;  /* role of each operator (enum psd_role) */
	struct psd_trace_step *steps;
	uint32_t n_steps;
	bool has_kernels;
	/* the trace has a range `ProfilerStep#N` for each step; false: the whole trace counts as one step */
	bool has_marks;
	double outside_sec; /* seconds of kernels that are in no step, added up */
};

/* Finds steps, units and roles of a trace, which must exist as long as *places. On success psd_places_release()
 * releases *places. PSD_ENOMEM. */
enum psd_status psd_places_find(struct psd_places *places, const struct psd_trace *trace,
				struct psd_error *err) PSD_MUST_CHECK;
void psd_places_release(struct psd_places *places);

/* True if a name alone tells the role of an operator or range, whatever is around it. */
bool psd_places_begins_role(const char *name);
/* Returns the number of the step that contains the time `us` (microseconds, as in the trace); PSD_TRACE_NONE: no step
 * does. */
uint32_t psd_places_step(const struct psd_places *places, double us);

#endif
