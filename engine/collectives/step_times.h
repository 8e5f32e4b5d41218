/* Times the steps of a transfer that has no closed form: members wait for each other, and simultaneous messages share
 * links. The result is that of a simulation in message fidelity. Any thread. */
#ifndef PSD_STEP_TIMES_H
#define PSD_STEP_TIMES_H

#include "engine/collectives/collective.h"

/* psd_collective.alone_sec of a payload whose elements have element_bits each. */
double psd_step_times_sec(const struct psd_payload *payload, struct psd_members members, double element_bits,
			  const struct psd_links *links);
/* The same, timed on the first n_timed members alone, which are on whole nodes and racks. Member r + n_timed does the
 * same as member r. Exact as far as their messages are equally long. All nodes and racks are full. */
double psd_step_times_first_sec(const struct psd_payload *payload, struct psd_members members, unsigned n_timed,
				double element_bits, const struct psd_links *links);
/* Seconds of all flows of the payload, which begin together; NaN when memory runs out. It exceeds the time of the
 * busiest link where a flow that waits inside a node, or at an uplink, delays others; for more than 1024 members on
 * racks such waits are left out. */
double psd_step_times_flows_sec(const struct psd_payload *payload, struct psd_members members,
				const struct psd_links *links);

#endif
