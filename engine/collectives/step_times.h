/* Times the steps of a transfer that has no closed form: members wait for each other, and simultaneous messages share
 * links. The result is that of a simulation in message fidelity. Any thread. */
#ifndef PSD_STEP_TIMES_H
#define PSD_STEP_TIMES_H

#include "engine/collectives/collective.h"

/* Seconds of a payload if nothing else moves, see psd_collective.alone_sec; its elements have element_bits each. */
double psd_step_times_sec(const struct psd_payload *payload, struct psd_members members, double element_bits,
			  const struct psd_links *links);
/* The same seconds, computed for the first node alone: members at the same position of every node do the same. Exact as
 * far as their messages are equally long. All nodes must be full. */
double psd_step_times_node_sec(const struct psd_payload *payload, struct psd_members members, double element_bits,
			       const struct psd_links *links);
/* Seconds until all flows of the payload, which begin together, have ended; NaN when memory runs out. It exceeds the
 * time of the busiest link where a flow that waits inside a node delays others. */
double psd_step_times_flows_sec(const struct psd_payload *payload, struct psd_members members,
				const struct psd_links *links);

#endif
