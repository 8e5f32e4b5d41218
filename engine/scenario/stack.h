/* Software stacks that a scenario may name: what each delivers of a link, and what it costs, beside its record: the
 * published values that it was compared with. */
#ifndef PSD_SCENARIO_STACK_H
#define PSD_SCENARIO_STACK_H

#include <stdbool.h>

#include "engine/base/text.h"
#include "engine/scenario/scenario.h"

struct psd_stack_row {
	const char *name;
	const char *about;	    /* software and network, in a few words */
	const char *source;	    /* origin of the constants: fitted, measured or borrowed */
	const char *runs;	    /* record of runs on this program's side; NULL: published values are its record */
	struct psd_host_costs host; /* rates of 0 are free */
	bool is_on_device;	    /* devices sum, so that `reduce` follows from their memory */
	bool frees_device;	    /* devices convert, update and launch at no cost, too */
};

extern const char *const psd_stack_names[]; /* names of all stacks, NULL-terminated */
/* Returns the row of a name; NULL: no such stack. */
const struct psd_stack_row *psd_stack_find(const char *name);

/* A published value, and the prediction with the stack; both samples per second, or both speedups. */
struct psd_stack_point {
	const char *stack;
	const char *where; /* scenario, system and number of workers */
	double published, predicted;
	bool is_fitted; /* a constant of the stack or of the scenario was fitted to the value */
};

/* Returns point i of the stack's record; NULL behind the last. */
const struct psd_stack_point *psd_stack_point(const struct psd_stack_row *stack, unsigned i);

/* Errors of a stack's record. */
struct psd_stack_record {
	unsigned n_fitted, n_checked; /* numbers of points that constants were fitted to, and of others */
	/* Median and largest |predicted / published - 1| of the others. */
	double median_ratio, worst_ratio;
	/* 10th and 90th percentile of published / predicted of the others; only with has_band. */
	bool has_band;
	double low_ratio, high_ratio;
};

struct psd_stack_record psd_stack_record(const struct psd_stack_row *stack);

/* Appends one line: the stack's name, and its record in words. */
void psd_stack_add_line(struct psd_text *text, const struct psd_stack_row *stack);
/* Appends a line for each stack. */
void psd_stack_add_list(struct psd_text *text);
/* Appends source, constants and points of a stack. */
void psd_stack_add_details(struct psd_text *text, const struct psd_stack_row *stack);

#endif
