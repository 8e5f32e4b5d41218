/* Max-min sharing of nodes' links and racks' uplinks by fans. A fan stands for the flows from each host of a class to
 * a set of hosts, its targets, on other nodes: in the same rack, or in other racks. All flows of a fan have sent
 * equally many bytes and have equal rates; a fan is divided when its flows get different rates. Fans with the same
 * targets from one node, or to other racks from one rack, have equal rates, too, as long as links out of nodes have
 * room. They are one bundle, and rates are found for bundles. Rates are those of progressive filling over classes of
 * links: a node's links out and in, a rack's uplinks up and down. The number of flows on a link follows from sums over
 * bundles with the same targets. Has no clock: the caller says the time. */
#ifndef PSD_SIM_FANS_H
#define PSD_SIM_FANS_H

#include "sim/executor/host_classes.h"

enum psd_fan_reach {
	PSD_FAN_IN_RACK, /* to other nodes of the same rack */
	PSD_FAN_BEYOND,	 /* to other racks */
	PSD_FAN_REACHES
};

/* Targets of fans: a set of classes of hosts (host_classes.h), to which the flows of a fan go. */
struct psd_fan_targets {
	uint64_t *bits;	  /* one bit for each class of hosts */
	uint64_t hash;	  /* hash value of the bits */
	double n;	  /* number of all targets */
	uint32_t first;	  /* index of the first bundle with these targets */
	bool is_kept;	  /* the entry stays although no bundle has these targets */
	uint64_t used_at; /* value of psd_fans.n_opened when into_rack last listed the targets */
};

/* Sums over the bundles with the same targets, at each reach: of their hosts, or of the rates of these hosts' flows. */
struct psd_fan_sums {
	double *all[PSD_FAN_REACHES];	  /* one entry for each set of targets */
	double *in_rack[PSD_FAN_REACHES]; /* in one rack of each class, shape (racks, targets) */
	double *on_node;		  /* on one node of each class, in a rack only; shape (nodes, targets) */
};

struct psd_fan {
	unsigned from;	  /* class of the senders */
	uint32_t targets; /* index of the fan's targets in psd_fans.targets */
	enum psd_fan_reach reach;
	/* bytes that each flow has not sent; in a bundle: value of psd_fan_bundle.sent_bytes at which the flows end */
	double left_bytes;
	uint64_t number; /* number in the order in which fans begin; parts of a divided fan have the same number */
	uint64_t tag;	 /* number by which the caller recognises the fan */
	uint32_t next;	 /* index of the next fan in its list: fans of a bundle, fans that begin, or unused entries */
};

/* Bundle: fans with the same targets and reach, from hosts of one node, or from hosts of all nodes of a rack whose
 * outgoing links are not watched (psd_fan_link.is_watched). All its flows have equal rates. */
struct psd_fan_bundle {
	unsigned sender; /* class of nodes, or number of these classes plus class of racks */
	unsigned rack;	 /* class of racks */
	uint32_t targets;
	enum psd_fan_reach reach;
	double n_targets; /* number of targets of each sender */
	/* number of senders: all, in one rack, and on one node if `sender` is a node */
	double n_hosts, n_in_rack, n_on_node;
	double rate;	   /* bytes per second of each flow; below 0: not known yet */
	double sent_bytes; /* bytes that each flow has sent since the bundle began */
	double end_bytes;  /* value of sent_bytes at which the first fan ends */
	uint32_t first;	   /* index of the first fan of the list */
	/* indices of the next bundle of the same sender, and of the next bundle with the same targets */
	uint32_t next, next_alike;
};

/* Class of equal links. */
struct psd_fan_link {
	double rate;   /* bytes per second; 0: there is no such link */
	double share;  /* bytes per second for each flow whose rate is not known yet; infinity: there is none */
	double n_open; /* links of senders: number of flows whose rate is not known yet */
	double known;  /* links of senders: sum of the known rates */
	/* value of psd_fans.version for which `share` is right; for later versions the true share is larger */
	uint64_t at;
	/* the link takes part in the search for rates; false: it is only checked when rates are known (links of
	 * nodes) */
	bool is_watched;
	/* Links of nodes: value of psd_fans.n_opened when the link was last a bottleneck. Links down to racks: value of
	 * psd_fans.version when the link, or a link into a node of the rack, was last a bottleneck. */
	uint64_t cut_at;
	double n_flows; /* links out of nodes: number of flows to other racks */
	/* links up from racks: upper bound of the rate of each of the rack's flows whose node's link is not watched */
	double most;
};

struct psd_fans {
	const struct psd_host_classes *classes;
	unsigned n_words; /* number of 64-bit words in a set of classes of hosts */
	struct psd_fan_targets *targets;
	uint32_t n_targets, target_room;
	double *on_node; /* number of targets on a node of each class, shape (nodes, target_room) */
	double *in_rack; /* number of targets in a rack of each class, shape (racks, target_room) */
	/* largest number of targets on a node of each class of racks, shape (racks, target_room) */
	double *most_on_node;
	struct psd_fan_sums open, known; /* sums over bundles whose rate is not known yet, and over the others */
	/* indices of targets: first n_live ones that are kept or have bundles, then unused ones */
	uint32_t *live;
	uint32_t n_live;
	struct psd_fan *fans;  /* fans that have not ended, and unused ones */
	uint32_t n_fans, room; /* number of entries in use, and for which `fans` has memory */
	/* indices of the first fan that begins at the next psd_fans_solve(), and of the first that is unused */
	uint32_t begun, unused;
	struct psd_fan_bundle *bundles; /* bundles; those without fans are removed by psd_fans_solve() */
	uint32_t n_bundles, bundle_room;
	uint32_t *first_of_sender; /* index of the first bundle of each class of nodes, and then of racks */
	struct psd_fan *ended;	   /* fans that have ended; those from next_ended on were not taken yet */
	uint32_t n_ended, next_ended, ended_room;
	uint32_t *first_of_rack, *next_of_rack; /* classes of nodes in racks of each class, as lists */
	unsigned *n_of_class;			/* number of fans of each class of senders that have not been taken */
	/* links: out of nodes, up from racks, into nodes, down to racks; the number of each kind is that of classes */
	struct psd_fan_link *links;
	unsigned n_links;
	unsigned *heap; /* scratch memory: links, n_heap entries, of which the first has the smallest share */
	unsigned n_heap;
	unsigned *tied; /* scratch memory: links */
	/* indices of targets that have bundles and a host in a rack of each class, shape (racks, target_room) */
	uint32_t *into_rack, *n_into_rack;
	double *into_host; /* scratch memory: bytes per second into each host of these targets, in one rack */
	uint64_t *behind;  /* classes of hosts behind each link of receivers: sets of n_words words */
	uint64_t *cut;	   /* scratch memory: set of n_words words, for each reach, and one more */
	uint64_t version;
	uint64_t n_opened;   /* number of times that all rates were found */
	double changed_rate; /* smallest rate of the flows that have ended since the last psd_fans_solve() */
	uint64_t n_begun;
	uint64_t n_visits; /* a measure of the time spent */
	double now_sec;	   /* time of the last psd_fans_solve() */
	/* time at which the first fan ends, known from psd_fans_solve() until fans are due; infinity: there are none */
	double next_sec;
};

/* False: out of memory. psd_fans_release() is called in both cases. */
bool psd_fans_init(struct psd_fans *fans, const struct psd_host_classes *classes);
void psd_fans_release(struct psd_fans *fans);
/* Sets the rates of links, bytes per second, before there are fans; link: see enum psd_fan_link_kind, class: class of
 * nodes, or of racks. */
enum psd_fan_link_kind { PSD_FAN_OUT, PSD_FAN_UP, PSD_FAN_IN, PSD_FAN_DOWN };
void psd_fans_set_rate(struct psd_fans *fans, enum psd_fan_link_kind kind, unsigned class, double rate);
/* Finds or adds the targets with these bits, which are kept, and sets their index. False: out of memory. */
bool psd_fans_keep_targets(struct psd_fans *fans, const uint64_t *bits, uint32_t *index);
/* Returns the first class of hosts among the targets that is not below `from`. If there is none, returns the number of
 * classes or more. */
unsigned psd_fans_next_target(const struct psd_fans *fans, uint32_t targets, unsigned from);
/* Returns the number of targets that one host of class `from` has at this reach. */
double psd_fans_count(const struct psd_fans *fans, unsigned from, uint32_t targets, enum psd_fan_reach reach);
/* Returns the number of hosts of class `from` that send to each host of class `to`, a target, at this reach. */
unsigned psd_fans_senders(const struct psd_fans *fans, unsigned from, unsigned to, enum psd_fan_reach reach);
/* Adds a fan that begins now; the caller has set from, targets, reach, left_bytes and tag. False: out of memory. */
bool psd_fans_add(struct psd_fans *fans, const struct psd_fan *fan);
/* True if a fan ends less than a nanosecond after now_sec. */
bool psd_fans_are_due(const struct psd_fans *fans, double now_sec);
/* Removes the first-begun fan that is due, and returns it. False: there is none. */
bool psd_fans_take_ended(struct psd_fans *fans, double now_sec, struct psd_fan *ended);
/* Sets the rates of all fans from now_sec on. Called after fans began or ended. False: out of memory. */
bool psd_fans_solve(struct psd_fans *fans, double now_sec);

#endif
