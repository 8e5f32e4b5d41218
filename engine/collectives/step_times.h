/* Simulates the steps of a stepwise transfer whose duration has no closed formula: members wait for each other, and
 * messages share links. The result equals that of psd-sim with `fidelity: message`. Any thread. */
#ifndef PSD_STEP_TIMES_H
#define PSD_STEP_TIMES_H

#include "engine/collectives/collective.h"

/* Returns the seconds of a stepwise payload if no other data move, see psd_collective.alone_sec. NaN: out of memory.
 * element_bits: bits of one element. */
double psd_step_times_sec(const struct psd_payload *payload, struct psd_members members, double element_bits,
			  const struct psd_links *links);
/* The same as psd_step_times_sec(), but simulates only the members of rank 0 to n_timed - 1. It assumes that member r
 * + n_timed behaves as member r. These members must fill whole nodes and racks, and all nodes and racks must be full.
 * The result is exact if all messages of these members have equal lengths. */
double psd_step_times_first_sec(const struct psd_payload *payload, struct psd_members members, unsigned n_timed,
				double element_bits, const struct psd_links *links);
/* Returns the seconds until all flows (struct psd_flow) of the payload have ended, if all begin together. NaN: out of
 * memory. The result may exceed the time of the busiest link: where a flow waits inside a node or at an uplink of a
 * rack, it delays others. With more than 1024 members on racks, or on nodes of several kinds, these waits are not
 * computed. */
double psd_step_times_flows_sec(const struct psd_payload *payload, struct psd_members members,
				const struct psd_links *links);

#endif
