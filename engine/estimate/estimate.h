/* The estimate executor (psd-sim --estimate): list scheduling on one representative host of each class, with closed
 * formulas for the time of transfers. It takes microseconds per point of a sweep. Exact for equal hosts on a
 * non-blocking switch, except for the order in which transfers share a port. On racks the uplinks of a fat tree count
 * as one. Knows no platform file, no jitter, no stragglers and no background traffic. */
#ifndef PSD_ESTIMATE_H
#define PSD_ESTIMATE_H

#include "engine/base/error.h"
#include "engine/program/outcome.h"
#include "engine/program/program.h"

/* Estimates the times of a run of that length, and fills *outcome on success. PSD_ENOMEM, PSD_ERUN. Any thread. */
enum psd_status psd_estimate(const struct psd_program *program, struct psd_run_length length,
			     struct psd_outcome *outcome, struct psd_error *err) PSD_MUST_CHECK;
/* As psd_estimate(), but leaves the bytes per node in *outcome 0, because counting them takes longest on many nodes.
 * prices: cache for the times of transfers at the plan's rates, to which this function adds; NULL: no cache is kept. */
enum psd_status psd_estimate_time(const struct psd_program *program, struct psd_run_length length,
				  struct psd_prices *prices, struct psd_outcome *outcome,
				  struct psd_error *err) PSD_MUST_CHECK;

#endif
