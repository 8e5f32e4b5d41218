/* Writes psd-sim's results to standard output: for people (table, bottlenecks, plan) and for scripts (CSV, JSON).
 * Write errors set the error flag of `out`, see ferror(). */
#ifndef PSD_SIM_OUTPUT_H
#define PSD_SIM_OUTPUT_H

#include <stdio.h>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/case/case.h"
#include "engine/program/choice.h"
#include "sim/output/json.h"
#include "sim/output/limit.h"
#include "sim/sweep/sweep.h"

/* Writes the head, the table of results, the notes, and one sentence about the bottleneck of each system.
 * PSD_ENOMEM. */
enum psd_status psd_output_table(FILE *out, const struct psd_report *report, struct psd_error *err) PSD_MUST_CHECK;
/* Returns the limit of a result of the report, which was not refused. Pure. */
struct psd_limit psd_output_limit(const struct psd_report *report, const struct psd_result *result);
/* Sets `limit` of each result, the text of the column of that name. */
void psd_output_find_limits(struct psd_report *report);
/* Writes one sentence about the bottleneck of each system, at its point of the sweep with the most workers. */
void psd_output_bottlenecks(FILE *out, const struct psd_report *report);
/* Returns PSD_OK if every case of the sweep has a result. Otherwise returns PSD_ERUN; the text names the cases that
 * were refused, and ways to get results for them. */
enum psd_status psd_output_refused(const struct psd_report *report, struct psd_error *err) PSD_MUST_CHECK;
/* Writes lines "note: ..." about values of the table that are approximate, and about costs that predictions do not
 * include. */
void psd_output_notes(FILE *out, const struct psd_report *report);
/* Appends those of these lines without which a comparison of the systems may mislead. */
void psd_output_add_comparison(struct psd_text *text, const struct psd_report *report);

/* Writes a line of CSV for each result, without the line of column names. PSD_ENOMEM. */
enum psd_status psd_output_csv(FILE *out, const struct psd_report *report, struct psd_error *err) PSD_MUST_CHECK;
/* Writes `text` to out, then releases it. PSD_ENOMEM: memory ran out when the text was made; it is incomplete and is
 * not written. */
enum psd_status psd_output_text(FILE *out, struct psd_text *text, struct psd_error *err) PSD_MUST_CHECK;

/* Writes a JSON object for each result, with its plan if has_plan, as an element of the array that is open in `json`.
 * PSD_ENOMEM, and the statuses of psd_case_make(). */
enum psd_status psd_output_json(struct psd_json *json, const struct psd_report *report, bool has_plan,
				struct psd_error *err) PSD_MUST_CHECK;

/* Writes the plan of one case, with the reason for each choice. point_words: text about the point for the head, such
 * as "point 6 of 6". PSD_ENOMEM. */
enum psd_status psd_output_plan(FILE *out, const struct psd_case *planned, const char *point_words,
				struct psd_error *err) PSD_MUST_CHECK;

#endif
