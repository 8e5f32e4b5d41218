/* Hosts of a program that behave alike: one of each class stands for all of it, and between two classes messages go one
 * way or several. Refuses to know time. */
#ifndef PSD_ESTIMATE_CLASSES_H
#define PSD_ESTIMATE_CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/program/program.h"

/* Hosts that behave alike: plain workers, those with a shard and separate servers that are in the same groups, on nodes
 * and machines that are alike; and each host that owns an Adam matrix by itself.
 * The last host of a class stands for it, since a slice of fewer elements than shards fills the last shards first. */
struct psd_host_class {
	unsigned representative;
	unsigned n_members;
	unsigned n_here;   /* on the representative's node */
	unsigned node;	   /* the class of such a node's first host: its ports are those of all classes there */
	unsigned n_behind; /* the representative's switch */
	unsigned behind;   /* the class of such a switch's first host: its uplink is that of all classes there */
};

/* Those of a class to whom the representative of another, or of the same one, may send: on other nodes, or on its own.
 * A way is such a pair, numbered ((from * classes) + to) * PSD_REACHES + reach. */
struct psd_class_peers {
	unsigned host; /* the last of them */
	unsigned n;
};

struct psd_classes {
	const struct psd_program *program; /* borrowed */
	struct psd_host_class *of;
	unsigned n;
	unsigned *class_of;	       /* per host */
	struct psd_class_peers *peers; /* per way */
	struct psd_group *groups;      /* those of some workers, each once */
	unsigned n_groups;
	bool *is_root; /* per host: a class of its own */
};

/* To be released, also after an error; PSD_ENOMEM. The program outlives the classes. */
enum psd_status psd_classes_find(struct psd_classes *classes, const struct psd_program *program,
				 struct psd_error *err) PSD_MUST_CHECK;
void psd_classes_release(struct psd_classes *classes);

bool psd_classes_have_switches(const struct psd_classes *classes);
size_t psd_classes_ways(const struct psd_classes *classes); /* how many */
size_t psd_classes_way(const struct psd_classes *classes, unsigned from, unsigned to, enum psd_reach reach);
/* Whether a payload has something for one class from another that way. */
bool psd_classes_send(const struct psd_classes *classes, const struct psd_payload *payload, unsigned from, unsigned to,
		      enum psd_reach reach);
/* How many classes send to a host's what it receives: a receive ends when all have. Of a struct psd_classes, as
 * psd_duties_make() takes it. */
uint32_t psd_classes_arrivals(const void *classes, const struct psd_op *receive, unsigned host);

#endif
