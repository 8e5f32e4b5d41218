/* Max-min sharing of links by classes of flows, without SimGrid. A flow here stands for a class of equal flows, and a
 * link for a class of equal links. The rates are those that SimGrid's CM02 gives to the single flows. Has no clock: the
 * caller says the time. */
#ifndef PSD_SIM_SHARING_H
#define PSD_SIM_SHARING_H

#include <stdbool.h>
#include <stdint.h>

enum { PSD_SHARING_LINKS = 4 }; /* largest number of links on the way of a flow */

/* Link on the way of a flow. */
struct psd_sharing_use {
	uint32_t link;
	double n_flows; /* number of flows of this class that share one link of that class */
};

struct psd_sharing_flow {
	struct psd_sharing_use uses[PSD_SHARING_LINKS];
	unsigned n_uses;
	double left_bytes; /* bytes that have not been sent at the time of the last psd_sharing_solve() */
	double rate;	   /* bytes per second */
	double end_sec;	   /* time at which the flow ends if no rate changes */
	uint64_t number;   /* flows are numbered in the order in which they begin */
	uint32_t from, to; /* numbers by which the caller recognises the flow */
};

struct psd_sharing_link {
	double rate;	  /* bytes per second of one link of the class */
	double left;	  /* scratch memory: bytes per second that no flow has yet */
	double n_flows;	  /* scratch memory: number of flows whose rate is not known yet */
	uint32_t n_open;  /* scratch memory: number of classes of flows whose rate is not known yet */
	uint32_t first;	  /* scratch memory: index of the first of the link's flows in of_links */
	uint32_t n_known; /* scratch memory: number of the link's flows in of_links */
};

struct psd_sharing {
	struct psd_sharing_link *links; /* n_links entries */
	unsigned n_links;
	struct psd_sharing_flow *flows; /* flows that have not ended, n_flows entries */
	uint32_t n_flows, room;
	/* flows that have ended, n_ended entries; entries from next_ended on were not taken yet */
	struct psd_sharing_flow *ended;
	uint32_t n_ended, next_ended, ended_room;
	uint32_t *of_links; /* scratch memory: indices of the flows of each link */
	uint32_t of_room;
	uint32_t *open; /* scratch memory: links that have flows whose rate is not known yet */
	uint64_t n_begun;
	uint64_t n_visits; /* a measure of the time spent: flows visited so far */
	double now_sec;	   /* time of the last psd_sharing_solve() */
	double next_sec;   /* time at which the first flow ends; infinity: there are none */
};

/* Makes n_links links without rates. False: out of memory. psd_sharing_release() is called in both cases. */
bool psd_sharing_init(struct psd_sharing *sharing, unsigned n_links);
void psd_sharing_release(struct psd_sharing *sharing);
/* Adds a flow that begins now; its rate is found by psd_sharing_solve(). False: out of memory. */
bool psd_sharing_add(struct psd_sharing *sharing, const struct psd_sharing_flow *flow);
/* True if a flow ends less than a nanosecond after now_sec. */
bool psd_sharing_is_due(const struct psd_sharing *sharing, double now_sec);
/* Removes the first-begun flow that ends less than a nanosecond after now_sec, and returns it. False: there is none. */
bool psd_sharing_take_ended(struct psd_sharing *sharing, double now_sec, struct psd_sharing_flow *ended);
/* Sets the rates of all flows from now_sec on. Called after flows began or ended. False: out of memory. */
bool psd_sharing_solve(struct psd_sharing *sharing, double now_sec);

#endif
