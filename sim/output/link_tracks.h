/* Tracks of links in a trace: rate and bytes of each link that several hosts share, such as uplinks of racks, and of
 * each link of a user's platform. They follow from the spans: the bytes of an operation between two hosts pass the
 * links of their route, evenly between its start and its end. A node's own link has rows of its own in the trace. */
#ifndef PSD_SIM_LINK_TRACKS_H
#define PSD_SIM_LINK_TRACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/text.h"
#include "engine/result/trace.h"
#include "sim/network/platform.h"

/* Change of a link's rate at a time, with the bytes that have passed by then. */
struct psd_link_change {
	double at_sec, bps;
	uint64_t bytes;
	unsigned link;
	bool is_end; /* a flow ends; false: it begins */
};

/* A list with only its platform set is empty. psd_link_tracks_release() releases it. */
struct psd_link_tracks {
	struct psd_platform platform;
	struct psd_link_change *changes;
	uint32_t n, room;
	bool is_out_of_memory;
};

/* Adds the flows of a span, while the network of the simulation is open. */
void psd_link_tracks_add(struct psd_link_tracks *tracks, const struct psd_program *program,
			 const struct psd_span *span);
/* Appends a process of the trace, number `pid`, with a counter for each link that bytes have passed: its rate in bit/s
 * and the bytes until then. The counter's name has the link's rate. Sets text->is_out_of_memory if a change is lost. */
void psd_link_tracks_add_text(struct psd_link_tracks *tracks, struct psd_text *text, unsigned pid);
void psd_link_tracks_release(struct psd_link_tracks *tracks);

#endif
