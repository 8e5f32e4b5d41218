/* Classes of hosts that behave in the same way. The estimate executes only one host of each class, the representative.
 * This module also finds the paths of messages between classes. It has no clock. */
#ifndef PSD_ESTIMATE_CLASSES_H
#define PSD_ESTIMATE_CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/program/program.h"

/* Class of hosts that behave in the same way. They have the same role (worker, worker with a shard, or separate server)
 * and are in the same groups of collectives. Their nodes (psd_layout_kind()), machines and racks are of the same kind.
 * A host that is the root of some item (bucket) is a class of its own. The representative is the last host of a class:
 * if a slice has fewer elements than there are shards, only the last shards have elements. */
struct psd_host_class {
	/* number of the representative: the host of the class that the estimate executes */
	unsigned representative;
	unsigned n_members; /* number of hosts in the class */
	unsigned n_here;    /* number of hosts of this class on the node of the representative */
	/* class of the first host on the node of the representative; all classes on this node use the ports of that
	 * class */
	unsigned node;
	unsigned n_behind; /* number of hosts of this class behind the representative's PCIe switch */
	/* class of the first host behind the representative's PCIe switch; all classes behind this switch use the
	 * uplink of that class */
	unsigned behind;
	unsigned n_in_rack; /* number of hosts of this class in the rack of the representative */
	/* Kind of the representative's rack (psd_class_rack.kind); all classes in racks of this kind use the same
	 * ports for uplinks. */
	unsigned rack;
};

/* Hosts at the end of a path. A path is a sending class, a receiving class, and a reach (distance). The hosts at its
 * end are those of the receiving class at this reach from the representative of the sending class. The number of a
 * path is (from * n + to) * PSD_REACHES + reach, where n is the number of classes. */
struct psd_class_peers {
	unsigned host; /* highest number of a host at the end of the path */
	unsigned n;
};

/* Contents of a rack: numbers of its workers and servers, kinds of its nodes, and whether one of its hosts is the root
 * of some item (bucket). */
struct psd_class_rack {
	unsigned n_workers, n_servers;
	unsigned first_kind, last_kind; /* kinds of the first and the last worker node; each kind is a range of nodes */
	bool has_root;
	/* kind of the rack: the same number for racks with equal hosts; a rack with a root has its own kind */
	unsigned kind;
};

struct psd_classes {
	const struct psd_program *program; /* program whose hosts are divided into classes, borrowed */
	/* array of all classes, n entries */
	struct psd_host_class *of;
	unsigned n, room;	       /* number of classes, and number of entries for which `of` has memory */
	unsigned *class_of;	       /* class of each host, one entry per host */
	struct psd_class_peers *peers; /* hosts at the end of each path, one entry per path */
	/* different groups of hosts that execute collectives, except the group of all workers; n_groups entries */
	struct psd_group *groups;
	unsigned n_groups;
	bool *is_root;		      /* one entry per host: it is the root of some item (bucket) */
	struct psd_class_rack *racks; /* contents of each rack, one entry per rack */
};

/* Divides the hosts of a program into classes. The caller calls psd_classes_release() in all cases, even after an
 * error. The program must exist as long as the classes. PSD_ENOMEM. */
enum psd_status psd_classes_find(struct psd_classes *classes, const struct psd_program *program,
				 struct psd_error *err) PSD_MUST_CHECK;
void psd_classes_release(struct psd_classes *classes);

/* True if nodes have PCIe switches. */
bool psd_classes_have_switches(const struct psd_classes *classes);
/* Returns the number of paths, see struct psd_class_peers. */
size_t psd_classes_n_paths(const struct psd_classes *classes);
/* Returns the number of the path from class `from` to class `to` with this reach. */
size_t psd_classes_path(const struct psd_classes *classes, unsigned from, unsigned to, enum psd_reach reach);
/* True if a transfer of the payload sends elements from class `from` to class `to` between hosts at distance
 * `reach`. */
bool psd_classes_send(const struct psd_classes *classes, const struct psd_payload *payload, unsigned from, unsigned to,
		      enum psd_reach reach);
/* Returns the number of messages for which a receive operation waits on the class of `host`: one for each path over
 * which the payload sends to this class. It is the psd_arrivals_fn of the estimate; classes: a struct psd_classes. */
uint32_t psd_classes_arrivals(const void *classes, const struct psd_op *receive, unsigned host);

#endif
