/* Classes of hosts that behave alike, each with one representative, and the paths of messages between them. Refuses to
 * know time. */
#ifndef PSD_ESTIMATE_CLASSES_H
#define PSD_ESTIMATE_CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/program/program.h"

/* Class: hosts that behave alike. They are workers, workers with a shard, or separate servers, in the same groups, on
 * nodes and machines that are alike. Each host that owns an Adam matrix is a class of its own. The last host of a class
 * is the representative, since a slice of fewer elements than shards fills the last shards first. */
struct psd_host_class {
	unsigned representative;
	unsigned n_members;
	unsigned n_here;   /* number of members on the representative's node */
	unsigned node;	   /* class of that node's first host; all classes on the node use its ports */
	unsigned n_behind; /* number of members behind the representative's switch */
	unsigned behind;   /* class of that switch's first host; all classes behind the switch use its uplink */
};

/* Hosts of one class to which the representative of another (or the same) class may send by one path. A path is a
 * sending class, a receiving class and a reach: number ((from * classes) + to) * PSD_REACHES + reach. */
struct psd_class_peers {
	unsigned host; /* number of the last of these hosts */
	unsigned n;
};

struct psd_classes {
	const struct psd_program *program; /* program whose hosts are classified, borrowed */
	struct psd_host_class *of;
	unsigned n;
	unsigned *class_of;	       /* class of each host, one entry per host */
	struct psd_class_peers *peers; /* receiving hosts of each path, one entry per path */
	struct psd_group *groups;      /* groups that are parts of the workers, each once */
	unsigned n_groups;
	bool *is_root; /* one entry per host: it owns an Adam matrix */
};

/* Finds the classes, which the caller releases also after an error. PSD_ENOMEM. The program outlives the classes. */
enum psd_status psd_classes_find(struct psd_classes *classes, const struct psd_program *program,
				 struct psd_error *err) PSD_MUST_CHECK;
void psd_classes_release(struct psd_classes *classes);

bool psd_classes_have_switches(const struct psd_classes *classes);
size_t psd_classes_n_paths(const struct psd_classes *classes);
size_t psd_classes_path(const struct psd_classes *classes, unsigned from, unsigned to, enum psd_reach reach);
/* True if a payload has elements from class `from` to class `to` by paths of that reach. */
bool psd_classes_send(const struct psd_classes *classes, const struct psd_payload *payload, unsigned from, unsigned to,
		      enum psd_reach reach);
/* Number of classes that send to a host's class: a receive ends when all have. A psd_arrivals_fn for psd_duties_make().
 * classes: a struct psd_classes. */
uint32_t psd_classes_arrivals(const void *classes, const struct psd_op *receive, unsigned host);

#endif
