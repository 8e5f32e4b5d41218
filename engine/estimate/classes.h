/* Classes of hosts that behave alike, each with one representative, and the paths of messages between classes. Has no
 * clock. */
#ifndef PSD_ESTIMATE_CLASSES_H
#define PSD_ESTIMATE_CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/program/program.h"

/* Class: hosts that behave alike. They are workers, workers with a shard, or separate servers, in the same groups, on
 * nodes, on machines and in racks that are alike. Each host that owns an Adam matrix is a class of its own. The last
 * host of a class is the representative, since a slice of fewer elements than shards fills the last shards first. */
struct psd_host_class {
	unsigned representative; /* number of the host that stands for the class */
	unsigned n_members;	 /* number of hosts in the class */
	unsigned n_here;	 /* number of the class's hosts on the representative's node */
	/* class of the first host on the representative's node; all classes on the node use the ports of that class */
	unsigned node;
	unsigned n_behind; /* number of the class's hosts behind the representative's switch */
	/* class of the first host behind the representative's switch; all classes behind the switch use the uplink of
	 * that class */
	unsigned behind;
	unsigned n_in_rack; /* number of the class's hosts in the representative's rack */
	unsigned rack;	    /* kind of the representative's rack; all classes in the rack use the uplinks of the kind */
};

/* Hosts at the end of one path: those hosts of the receiving class that have this reach (distance) from the
 * representative of the sending class. A path is a sending class, a receiving class and a reach; its number is (from *
 * n + to) * PSD_REACHES + reach, where n is the number of classes. */
struct psd_class_peers {
	unsigned host; /* the host with the highest number among them */
	unsigned n;
};

/* Numbers of hosts in a rack. */
struct psd_class_rack {
	unsigned n_workers, n_servers;
	bool has_root;
	unsigned kind; /* equal racks have one kind; a rack with a root is like no other */
};

struct psd_classes {
	const struct psd_program *program; /* program whose hosts are classified, borrowed */
	/* array of all n classes */
	struct psd_host_class *of;
	unsigned n, room;	       /* number of classes, and entries allocated in `of` */
	unsigned *class_of;	       /* class of each host, one entry per host */
	struct psd_class_peers *peers; /* hosts at the end of each path, one entry per path */
	/* the distinct groups of collectives that only some workers execute; n_groups entries */
	struct psd_group *groups;
	unsigned n_groups;
	bool *is_root;		      /* one entry per host: it owns an Adam matrix */
	struct psd_class_rack *racks; /* one entry per rack */
};

/* Divides the program's hosts into classes. The caller calls psd_classes_release() also after an error. The program
 * must exist as long as the classes. PSD_ENOMEM. */
enum psd_status psd_classes_find(struct psd_classes *classes, const struct psd_program *program,
				 struct psd_error *err) PSD_MUST_CHECK;
void psd_classes_release(struct psd_classes *classes);

/* True if nodes have switches. */
bool psd_classes_have_switches(const struct psd_classes *classes);
/* Returns the number of paths. */
size_t psd_classes_n_paths(const struct psd_classes *classes);
/* Returns the number of the path between two classes with this reach. */
size_t psd_classes_path(const struct psd_classes *classes, unsigned from, unsigned to, enum psd_reach reach);
/* True if a transfer of the payload sends elements from class `from` to class `to` over a path of that reach. */
bool psd_classes_send(const struct psd_classes *classes, const struct psd_payload *payload, unsigned from, unsigned to,
		      enum psd_reach reach);
/* Returns the number of messages for which a receive operation waits on the class of `host`: one from each class and
 * each reach that sends to it. A psd_arrivals_fn for psd_duties_make(). classes: a struct psd_classes. */
uint32_t psd_classes_arrivals(const void *classes, const struct psd_op *receive, unsigned host);

#endif
