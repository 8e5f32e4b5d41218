/* The estimate executor: list scheduling on one representative host of each class with closed-form transfers, in
 * microseconds per point. Exact for equal hosts on a non-blocking switch, except for the order in which transfers share
 * a port. On racks a fat tree's uplinks count as one. Knows no platform file, no jitter, no stragglers and no
 * background traffic. */
#ifndef PSD_ESTIMATE_H
#define PSD_ESTIMATE_H

#include "engine/base/error.h"
#include "engine/program/outcome.h"
#include "engine/program/program.h"

/* Fills the outcome. PSD_ENOMEM, PSD_ERUN. Any thread. */
enum psd_status psd_estimate(const struct psd_program *program, struct psd_run_length length,
			     struct psd_outcome *outcome, struct psd_error *err) PSD_MUST_CHECK;
/* The same without the nodes' bytes, whose sum takes longest on many nodes. prices: of transfers by the plan's rates,
 * which grows; or NULL. */
enum psd_status psd_estimate_time(const struct psd_program *program, struct psd_run_length length,
				  struct psd_prices *prices, struct psd_outcome *outcome,
				  struct psd_error *err) PSD_MUST_CHECK;

#endif
