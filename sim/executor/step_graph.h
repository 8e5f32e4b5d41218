/* Computes the duration of a stepwise transfer without SimGrid, if no two of its messages use a link at the same time.
 * Then a message lasts as long as its bytes need on the slowest link of its route. It begins when the messages that it
 * waits for have ended. Pure, any thread. */
#ifndef PSD_SIM_STEP_GRAPH_H
#define PSD_SIM_STEP_GRAPH_H

#include "engine/base/error.h"
#include "engine/collectives/collective.h"
#include "sim/network/network.h"

struct psd_step_graph {
	bool is_free;	     /* no two messages use a link at the same time; false: the other fields are not set */
	double sec;	     /* seconds from the begin of the first step to the end of the last */
	uint64_t n_messages; /* number of messages of all members in all steps */
	/* number of messages that were not computed, because their step lasts as long as the first step */
	uint64_t n_skipped;
};

/* Sets *is_free: true if no two messages of the transfer use a link at the same time. PSD_ENOMEM. */
enum psd_status psd_step_graph_check(bool *is_free, const struct psd_payload *payload, const struct psd_layout *layout,
				     const struct psd_platform *platform, struct psd_error *err) PSD_MUST_CHECK;
/* Computes the duration of a stepwise transfer whose members begin together, while nothing else uses the network.
 * ratios: factor on the rate of each node's links; NULL: 1 everywhere. PSD_ENOMEM. */
enum psd_status psd_step_graph_find(struct psd_step_graph *graph, const struct psd_payload *payload,
				    const struct psd_layout *layout, const struct psd_platform *platform,
				    const double *ratios, struct psd_error *err) PSD_MUST_CHECK;

#endif
