/* Classes of hosts that behave alike, each with one representative, and the paths of messages between them. Refuses to
 * know time. */
#ifndef PSD_ESTIMATE_CLASSES_H
#define PSD_ESTIMATE_CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/program/program.h"

/* Hosts that behave alike: workers, workers with a shard, and separate servers, in the same groups, on nodes, on
 * machines and in racks that are alike. Each host that owns an Adam matrix is a class of its own. The last host of a
 * class is the representative, since a slice of fewer elements than shards fills the last shards first. */
struct psd_host_class {
	unsigned representative;
	unsigned n_members;
	unsigned n_here;    /* members on the representative's node */
	unsigned node;	    /* class of that node's first host, whose ports all classes there use */
	unsigned n_behind;  /* members behind the representative's switch */
	unsigned behind;    /* class of that switch's first host, whose uplink all classes there use */
	unsigned n_in_rack; /* members in the representative's rack */
	unsigned rack;	    /* kind of that rack, whose uplinks all classes there use */
};

/* Hosts of one class that the representative of another, or of the same, may send to by one path. A path is a sending
 * class, a receiving class and a reach: number ((from * classes) + to) * PSD_REACHES + reach. */
struct psd_class_peers {
	unsigned host; /* the last of these hosts */
	unsigned n;
};

/* Numbers of hosts in a rack. */
struct psd_class_rack {
	unsigned n_workers, n_servers;
	bool has_root;
	unsigned kind; /* equal racks have one kind; a rack with a root is like no other */
};

struct psd_classes {
	const struct psd_program *program; /* borrowed */
	struct psd_host_class *of;
	unsigned n, room;
	unsigned *class_of;	       /* one for each host */
	struct psd_class_peers *peers; /* one for each path */
	struct psd_group *groups;      /* groups of some workers, each once */
	unsigned n_groups;
	bool *is_root;		      /* one for each host: it owns an Adam matrix */
	struct psd_class_rack *racks; /* one for each rack */
};

/* Finds the classes, which the caller releases also after an error. PSD_ENOMEM. The program outlives the classes. */
enum psd_status psd_classes_find(struct psd_classes *classes, const struct psd_program *program,
				 struct psd_error *err) PSD_MUST_CHECK;
void psd_classes_release(struct psd_classes *classes);

bool psd_classes_have_switches(const struct psd_classes *classes);
size_t psd_classes_n_paths(const struct psd_classes *classes);
size_t psd_classes_path(const struct psd_classes *classes, unsigned from, unsigned to, enum psd_reach reach);
/* True when a payload has elements for one class from another by the path. */
bool psd_classes_send(const struct psd_classes *classes, const struct psd_payload *payload, unsigned from, unsigned to,
		      enum psd_reach reach);
/* Number of classes that send to a host's class: a receive ends when all have. classes: a struct psd_classes;
 * psd_duties_make() takes this function. */
uint32_t psd_classes_arrivals(const void *classes, const struct psd_op *receive, unsigned host);

#endif
