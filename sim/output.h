/* What psd-sim writes to standard output: for people (table, bottlenecks, plan) and for scripts (CSV, JSON), each in a file of its own.
 * Write errors stay in the stream's flag; nothing here looks at it. */
#ifndef PSD_SIM_OUTPUT_H
#define PSD_SIM_OUTPUT_H

#include <stdio.h>

#include "engine/case.h"
#include "engine/error.h"
#include "sim/json.h"
#include "sim/sweep.h"

/* The table with its head, notes and one sentence for each system. PSD_ENOMEM. */
enum psd_status psd_output_table(FILE *out, const struct psd_report *report, struct psd_error *err) PSD_MUST_CHECK;
/* The sentences alone: what bounds each system at its largest point. */
void psd_output_bottlenecks(FILE *out, const struct psd_report *report);
/* "note: ..." lines: where the figures are approximate, and what was left out. */
void psd_output_notes(FILE *out, const struct psd_report *report);

/* RFC 4180 but for the line ends, which are "\n". The columns and their order are a promise. */
void psd_output_csv_head(FILE *out);
void psd_output_csv(FILE *out, const struct psd_report *report);
/* One field, quoted where it has to be. */
void psd_output_csv_text(FILE *out, const char *text);

/* Adds one object for each result to an open array. PSD_ENOMEM and what psd_case_make() returns. */
enum psd_status psd_output_json(struct psd_json *json, const struct psd_report *report, struct psd_error *err) PSD_MUST_CHECK;

/* The plan of one case with the reason of each choice. point_words: which point this is, such as "point 6 of 6". PSD_ENOMEM. */
enum psd_status psd_output_plan(FILE *out, const struct psd_case *planned, const char *point_words,
				struct psd_error *err) PSD_MUST_CHECK;

/* The scenario with all values that take effect, as a scenario file; its paths hold from the working directory. */
void psd_output_scenario(FILE *out, const struct psd_scenario *scenario);

extern const char *const psd_output_resource_names[]; /* by enum psd_resource: "device", "copy out" ... */

#endif
