/* Times the steps of a transfer that has no closed form: members wait for each other, and simultaneous messages share
 * links. The result is the same as that of psd-sim with `fidelity: message`. Any thread. */
#ifndef PSD_STEP_TIMES_H
#define PSD_STEP_TIMES_H

#include "engine/collectives/collective.h"

/* Returns the seconds of a payload if no other data move, see psd_collective.alone_sec. element_bits: bits of one
 * element. */
double psd_step_times_sec(const struct psd_payload *payload, struct psd_members members, double element_bits,
			  const struct psd_links *links);
/* As psd_step_times_sec(), but simulates only the first n_timed members, which fill whole nodes and racks, and assumes
 * that member r + n_timed behaves like member r. Exact if the messages of these members have equal lengths. Every node
 * and rack must be full. */
double psd_step_times_first_sec(const struct psd_payload *payload, struct psd_members members, unsigned n_timed,
				double element_bits, const struct psd_links *links);
/* Returns the seconds until all flows (struct psd_flow) of the payload have ended, if all begin together; NaN when
 * memory runs out. It exceeds the time of the busiest link where a flow that waits inside a node, or at an uplink of a
 * rack, delays others. For more than 1024 members on racks such waits are left out. */
double psd_step_times_flows_sec(const struct psd_payload *payload, struct psd_members members,
				const struct psd_links *links);

#endif
