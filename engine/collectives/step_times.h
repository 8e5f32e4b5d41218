/* Times the steps of a transfer that has no closed form: members wait for each other, and simultaneous messages share
 * links. The result is the same as that of psd-sim with `fidelity: message`. Any thread. */
#ifndef PSD_STEP_TIMES_H
#define PSD_STEP_TIMES_H

#include "engine/collectives/collective.h"

/* Returns the seconds of a payload if no other data move, see psd_collective.alone_sec. element_bits: bits of one
 * element. */
double psd_step_times_sec(const struct psd_payload *payload, struct psd_members members, double element_bits,
			  const struct psd_links *links);
/* As psd_step_times_sec(), but simulates only the first node's members, and assumes that members at the same position
 * of other nodes behave alike. Exact if the messages of these members have equal lengths. Every node must have
 * members.per_node members. */
double psd_step_times_node_sec(const struct psd_payload *payload, struct psd_members members, double element_bits,
			       const struct psd_links *links);
/* Returns the seconds until all flows (struct psd_flow) of the payload have ended, if all begin together; NaN when
 * memory runs out. It exceeds the time of the busiest link where a flow that waits inside a node delays others. */
double psd_step_times_flows_sec(const struct psd_payload *payload, struct psd_members members,
				const struct psd_links *links);

#endif
