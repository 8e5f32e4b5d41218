/* Classes of hosts that do equal things in transfers that send all messages at once. Hosts of a class have the same
 * role and the same slowdowns, and send and receive equally many elements in each transfer. Their nodes have equally
 * many hosts of each class, and so have their racks. Under max-min sharing all hosts of a class then do the same at
 * all times, so only one host of each class, the representative, is simulated. Pure, any thread. */
#ifndef PSD_SIM_HOST_CLASSES_H
#define PSD_SIM_HOST_CLASSES_H

#include "engine/base/error.h"
#include "engine/case/case.h"

/* largest number of classes of hosts; with more, classes would save little */
enum { PSD_MOST_HOST_CLASSES = 2048 };

struct psd_host_kind {
	unsigned representative; /* number of the first host of the class */
	unsigned n_members;	 /* number of hosts in the class */
	unsigned n_here;	 /* number of hosts of the class on the representative's node */
	unsigned node, rack;	 /* class of the representative's node, and of its rack */
};

/* Hosts of one class on the node of the representative of another class. */
struct psd_host_peers {
	unsigned to;   /* class of the peers */
	unsigned host; /* number of one of the peers */
	unsigned n;    /* number of peers */
};

struct psd_host_classes {
	struct psd_host_kind *of; /* classes in the order of their representatives, n entries */
	uint32_t n, room;
	/* numbers of classes of nodes and of racks; without racks each node counts as a rack */
	unsigned n_nodes, n_racks;
	unsigned *nodes_in, *racks_in; /* number of nodes, and of racks, in each class */
	unsigned *rack_of_node;	       /* class of the rack of each class of nodes */
	/* peers of all classes; those of class c are entries first_peers[c] to first_peers[c + 1] - 1 */
	struct psd_host_peers *peers;
	uint32_t *first_peers;
};

/* Finds the classes for all sends of a case. If there would be more than half as many classes as hosts, or more than
 * PSD_MOST_HOST_CLASSES, *has_classes is false and *classes is not filled. Otherwise it is released by
 * psd_host_classes_release(). PSD_ENOMEM. */
enum psd_status psd_host_classes_find(struct psd_host_classes *classes, const struct psd_case *simulated,
				      bool *has_classes, struct psd_error *err) PSD_MUST_CHECK;
void psd_host_classes_release(struct psd_host_classes *classes);

#endif
