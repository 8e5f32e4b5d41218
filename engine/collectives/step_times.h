/* Carries the steps of a transfer out, where no closed form says what they take: who waits for whom, and what those
 * who send at a time leave each other of a link. Of a message at a time it knows what simulation in message fidelity
 * does. Any thread. */
#ifndef PSD_STEP_TIMES_H
#define PSD_STEP_TIMES_H

#include "engine/collectives/collective.h"

/* As psd_collective.alone_sec, of a payload whose elements have element_bits each. */
double psd_step_times_sec(const struct psd_payload *payload, struct psd_members members, double element_bits,
			  const struct psd_ways *ways);
/* The same where the members in one place of every node do the same, whom the first node's stand for: as exact as their
 * messages are equally long. All nodes are full. */
double psd_step_times_node_sec(const struct psd_payload *payload, struct psd_members members, double element_bits,
			       const struct psd_ways *ways);
/* Seconds of all its flows, which begin together: more than the busiest link takes, where a flow that others hold up
 * inside a node has held up others. Not a number: out of memory. */
double psd_step_times_flows_sec(const struct psd_payload *payload, struct psd_members members,
				const struct psd_ways *ways);

#endif
