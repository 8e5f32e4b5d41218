/* psd-sim's standard output: for people (table, bottlenecks, plan) and for scripts (CSV, JSON), each in a file of its
 * own. Write errors stay in the error flag of `out`; callers check it. */
#ifndef PSD_SIM_OUTPUT_H
#define PSD_SIM_OUTPUT_H

#include <stdio.h>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/case/case.h"
#include "engine/program/choice.h"
#include "sim/output/json.h"
#include "sim/sweep/sweep.h"

/* Writes the table with its head, notes, and one sentence for each system. PSD_ENOMEM. */
enum psd_status psd_output_table(FILE *out, const struct psd_report *report, struct psd_error *err) PSD_MUST_CHECK;
/* Fills the limit of each result: a resource, or a slower node by number. */
void psd_output_find_limits(struct psd_report *report);
/* Writes only the sentences about bottlenecks, for the largest point of each system. */
void psd_output_bottlenecks(FILE *out, const struct psd_report *report);
/* Names the cases without a row, and the ways to have them: PSD_ERUN; PSD_OK where every case has one. */
enum psd_status psd_output_refused(const struct psd_report *report, struct psd_error *err) PSD_MUST_CHECK;
/* Writes "note: ..." lines about figures that are approximate and costs that are left out. */
void psd_output_notes(FILE *out, const struct psd_report *report);

/* Writes the results as rows of CSV, without their head. PSD_ENOMEM. */
enum psd_status psd_output_csv(FILE *out, const struct psd_report *report, struct psd_error *err) PSD_MUST_CHECK;
/* Writes a text and releases it. PSD_ENOMEM: the text is incomplete, and not written. */
enum psd_status psd_output_text(FILE *out, struct psd_text *text, struct psd_error *err) PSD_MUST_CHECK;

/* Adds one object for each result to an open array. PSD_ENOMEM, and statuses of psd_case_make(). */
enum psd_status psd_output_json(struct psd_json *json, const struct psd_report *report,
				struct psd_error *err) PSD_MUST_CHECK;

/* Writes the plan of one case with the reason of each choice. point_words is for example "point 6 of 6". PSD_ENOMEM. */
enum psd_status psd_output_plan(FILE *out, const struct psd_case *planned, const char *point_words,
				struct psd_error *err) PSD_MUST_CHECK;

#endif
