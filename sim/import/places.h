/* The role of each operator in training: units of forward and backward, and seconds that belong to no layer. A unit is
 * an outermost operator (forward), or a node of autograd (backward). Knows nothing of models. */
#ifndef PSD_IMPORT_PLACES_H
#define PSD_IMPORT_PLACES_H

#include "sim/import/trace.h"

enum psd_role {
	PSD_ROLE_NONE, /* ranges around everything; time here is not placed */
	PSD_ROLE_FORWARD,
	PSD_ROLE_BACKWARD,
	PSD_ROLE_OPTIMIZER,
	PSD_ROLE_COLLECTIVE,
	PSD_ROLE_BUCKETS, /* copies into and out of buckets of gradients */
	PSD_ROLE_DATA,	  /* reading samples, and their copies to the device */
	PSD_ROLES
};
extern const char *const psd_role_names[PSD_ROLES];

struct psd_trace_unit {
	uint32_t op;	  /* its outermost operator */
	uint32_t step;	  /* PSD_TRACE_NONE: outside of all steps */
	uint32_t module;  /* innermost range of the user's around it, an operator; PSD_TRACE_NONE: none */
	uint32_t forward; /* for backward: unit of forward whose gradient it is; PSD_TRACE_NONE: not in the trace */
	uint32_t before;  /* unit that its thread started before, of the same step and role; PSD_TRACE_NONE: none */
	enum psd_role role;
	double sec; /* seconds of its kernels; without kernels in the trace, its own seconds */
};

struct psd_trace_step {
	double start_us, dur_us;
	double role_sec[PSD_ROLES];
	double kernel_sec; /* sum over all kernels, or operators */
	double busy_sec;   /* time in which the device has work */
};

struct psd_places {
	const struct psd_trace *trace; /* borrowed */
	struct psd_trace_unit *units;  /* in order of start, over all threads */
	uint32_t n_units;
	uint32_t *unit_of;	/* unit of each operator; PSD_TRACE_NONE: none */
	enum psd_role *role_of; /* role of each operator */
	struct psd_trace_step *steps;
	uint32_t n_steps;
	bool has_kernels;
	bool has_marks;	    /* steps are ranges `ProfilerStep#N`; false: the whole trace is one */
	double outside_sec; /* kernels outside of all steps */
};

/* On success psd_places_release() releases *places. PSD_ENOMEM. */
enum psd_status psd_places_find(struct psd_places *places, const struct psd_trace *trace,
				struct psd_error *err) PSD_MUST_CHECK;
void psd_places_release(struct psd_places *places);

/* Step in which a time is; PSD_TRACE_NONE: none. */
uint32_t psd_places_step(const struct psd_places *places, double us);

#endif
