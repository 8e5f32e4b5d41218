/* Software stacks that a scenario may name, such as NCCL over TCP: the rates that each reaches, its costs, and its
 * record. The record is a comparison of predictions with published values. */
#ifndef PSD_SCENARIO_STACK_H
#define PSD_SCENARIO_STACK_H

#include <stdbool.h>

#include "engine/base/text.h"
#include "engine/scenario/scenario.h"

struct psd_stack_row {
	const char *name;
	const char *about; /* names of the software and of the network for which the constants are */
	/* source of the constants: fitted to values, measured, or borrowed from another stack */
	const char *source;
	/* Record of a stack that was measured with real runs of psd, in words; NULL: the record compares with
	 * published values. */
	const char *runs;
	struct psd_host_costs host; /* costs of the stack; a rate of 0 means that the work takes no time */
	bool is_on_device;    /* devices sum gradients, so the rate of sums is computed from the device's memory */
	bool assumes_streams; /* host.streams_ratio was neither fitted nor measured */
	bool frees_device;    /* devices convert, update and launch kernels in no time */
};

extern const char *const psd_stack_names[]; /* names of all stacks, NULL-terminated */
/* Returns the row of the stack with that name; NULL: there is none. */
const struct psd_stack_row *psd_stack_find(const char *name);

/* A published value and the prediction for the same case. Both are samples per second, or both are speedups. */
struct psd_stack_point {
	const char *stack;
	const char *where; /* scenario, system and number of workers of the case, as text */
	double published, predicted;
	/* a constant of the stack or scenario was fitted to this value, so it does not test the prediction */
	bool is_fitted;
};

/* Returns entry i of the stack's record; NULL if the record has i entries or fewer. */
const struct psd_stack_point *psd_stack_point(const struct psd_stack_row *stack, unsigned i);

/* Errors of a stack's predictions in its record. Only checked entries count: those to which no constant was fitted. */
struct psd_stack_record {
	/* number of entries to which constants were fitted, and number of checked entries */
	unsigned n_fitted, n_checked;
	/* Median and maximum of |predicted / published - 1| over the checked entries. */
	double median_ratio, worst_ratio;
	/* 10th and 90th percentile of published / predicted over the checked entries; valid if has_band. */
	bool has_band;
	double low_ratio, high_ratio;
};

struct psd_stack_record psd_stack_record(const struct psd_stack_row *stack);

/* Appends one line: the stack's name, and its record in words. */
void psd_stack_add_line(struct psd_text *text, const struct psd_stack_row *stack);
/* Appends one line for each stack, as psd_stack_add_line(). */
void psd_stack_add_list(struct psd_text *text);
/* Appends the source, the constants and the record's entries of a stack. */
void psd_stack_add_details(struct psd_text *text, const struct psd_stack_row *stack);

#endif
