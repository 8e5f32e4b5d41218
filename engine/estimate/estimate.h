/* The estimate executor (psd-sim --estimate): it executes the program on one representative host of each class, with
 * closed formulas for the duration of transfers. It takes microseconds per point of a sweep. If all hosts are equal
 * and switches do not block, it is exact, except for the order in which transfers share a port. In racks the uplinks
 * of a fat tree count as one. Platform files, jitter, stragglers and background traffic are not supported. */
#ifndef PSD_ESTIMATE_H
#define PSD_ESTIMATE_H

#include "engine/base/error.h"
#include "engine/program/outcome.h"
#include "engine/program/program.h"

/* Estimates the times of a run of that length, and fills *outcome on success. PSD_ENOMEM. PSD_EINVAL: it needs more
 * than length.most_events events. PSD_ERUN: the program does not end. Any thread. */
enum psd_status psd_estimate(const struct psd_program *program, struct psd_run_length length,
			     struct psd_outcome *outcome, struct psd_error *err) PSD_MUST_CHECK;

/* A program prepared for estimates at several rates of the plan's links: classes of hosts, their duties and bytes. */
struct psd_estimator;
/* Prepares the program, which must stay as it is until psd_estimator_free(). PSD_ENOMEM. PSD_EINVAL: it is clear that
 * a run of this length needs more than length.most_events events. */
enum psd_status psd_estimator_new(struct psd_estimator **estimator, const struct psd_program *program,
				  struct psd_run_length length, struct psd_error *err) PSD_MUST_CHECK;
void psd_estimator_free(struct psd_estimator *estimator);
/* Does what psd_estimate() does, at the plan's present rates. */
enum psd_status psd_estimator_run(struct psd_estimator *estimator, struct psd_run_length length,
				  struct psd_outcome *outcome, struct psd_error *err) PSD_MUST_CHECK;

/* The same, but the bytes per node in *outcome stay 0: with many nodes, counting them takes most of the time. */
enum psd_status psd_estimator_time(struct psd_estimator *estimator, struct psd_run_length length,
				   struct psd_outcome *outcome, struct psd_error *err) PSD_MUST_CHECK;

/* The same as psd_estimate(), without the bytes per node. prices: cache of transfer times at the plan's rates, to which
 * this function adds; NULL: no cache is kept. */
enum psd_status psd_estimate_time(const struct psd_program *program, struct psd_run_length length,
				  struct psd_prices *prices, struct psd_outcome *outcome,
				  struct psd_error *err) PSD_MUST_CHECK;

#endif
