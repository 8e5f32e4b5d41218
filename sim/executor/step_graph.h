/* Stepwise transfers, message by message, without SimGrid: where no two messages ever share a link at a time, each
 * lasts as long as its bytes on the slowest link of its way, and begins when the messages before it allow it. Pure, any
 * thread. */
#ifndef PSD_SIM_STEP_GRAPH_H
#define PSD_SIM_STEP_GRAPH_H

#include "engine/base/error.h"
#include "engine/collectives/collective.h"
#include "sim/network/network.h"

struct psd_step_graph {
	bool is_free;	     /* no two messages share a link at a time; false: the other fields are not set */
	double sec;	     /* seconds from the begin of the first step to the end of the last */
	uint64_t n_messages; /* number of messages of all members in all steps */
	uint64_t n_skipped;  /* number of messages of steps that last as long as the first step */
};

/* Sets *is_free as in struct psd_step_graph. PSD_ENOMEM. */
enum psd_status psd_step_graph_check(bool *is_free, const struct psd_payload *payload, const struct psd_layout *layout,
				     const struct psd_platform *platform, struct psd_error *err) PSD_MUST_CHECK;
/* Times a stepwise transfer whose members begin together and have the network to themselves. ratios: speed of each
 * node's links; NULL: 1 everywhere. PSD_ENOMEM. */
enum psd_status psd_step_graph_find(struct psd_step_graph *graph, const struct psd_payload *payload,
				    const struct psd_layout *layout, const struct psd_platform *platform,
				    const double *ratios, struct psd_error *err) PSD_MUST_CHECK;

#endif
