/* Classes of the flows of an all-reduce that has the network to itself. Flows of one class have equal bytes and pass
 * links of the same classes; links of one class have equal rates and carry equally many flows of each class. So all
 * flows of a class have the same rate at any time, because max-min sharing is symmetric, and one of them stands for
 * all. Found by refinement: flows and links that look alike are told apart by their neighbours until nothing changes.
 * Pure, any thread. */
#ifndef PSD_SIM_FLOW_CLASSES_H
#define PSD_SIM_FLOW_CLASSES_H

#include "engine/base/error.h"
#include "engine/collectives/collective.h"
#include "sim/network/network.h"
#include "sim/network/platform.h"

/* upper limit of the numbers of classes of flows, and of links: a transfer with more has little in common */
enum { PSD_MOST_FLOW_CLASSES = 4096 };

struct psd_flow_class {
	uint64_t bytes;
	unsigned n_members; /* number of flows in the class */
	unsigned n_links;
	/* classes of links on the way, and the number of flows of this class on each link of that class */
	struct psd_class_link links[PSD_ROUTE_LINKS];
};

struct psd_flow_classes {
	struct psd_flow_class *flows; /* n_flows entries */
	unsigned n_flows;
	double *link_bps; /* rate of a link of each class, divided as n_flows of its entries; n_links entries */
	unsigned n_links;
};

/* Finds the classes of the payload's flows. ratios: speed of each node's links, 1: as the platform says; NULL: 1
 * everywhere. *classes is filled on success and released by psd_flow_classes_release(). Sets *has_classes to false, and
 * fills nothing, if there would be too many of them. PSD_ENOMEM. */
enum psd_status psd_flow_classes_find(struct psd_flow_classes *classes, const struct psd_payload *payload,
				      const struct psd_layout *layout, const struct psd_platform *platform,
				      const double *ratios, bool *has_classes, struct psd_error *err) PSD_MUST_CHECK;
void psd_flow_classes_release(struct psd_flow_classes *classes);

#endif
