/* Classes of equal flows in an all-reduce, for the time in which nothing else uses the network. Flows of one class have
 * equal bytes and pass links of the same classes. Links of one class have equal rates and carry equal numbers of flows
 * of each class. Under max-min sharing all flows of a class then have equal rates at any time, so only one flow of each
 * class is simulated. Classes are found by refinement: a class is divided if its flows pass links of different classes,
 * or its links carry different flows, until nothing changes. Pure, any thread. */
#ifndef PSD_SIM_FLOW_CLASSES_H
#define PSD_SIM_FLOW_CLASSES_H

#include "engine/base/error.h"
#include "engine/collectives/collective.h"
#include "sim/network/network.h"
#include "sim/network/platform.h"

/* largest number of classes of flows, and of links; with more classes, they would save little */
enum { PSD_MOST_FLOW_CLASSES = 4096 };

struct psd_flow_class {
	uint64_t bytes;
	unsigned n_members; /* number of flows in the class */
	unsigned n_links;
	/* for each link on the route: its class, and the number of flows of this class that the link carries */
	struct psd_class_link links[PSD_ROUTE_LINKS];
};

struct psd_flow_classes {
	struct psd_flow_class *flows; /* classes of flows, n_flows entries */
	unsigned n_flows;
	double *link_bps; /* rate of the links of each class, bits per second; n_links entries */
	unsigned n_links;
};

/* Finds the classes of the payload's flows. ratios: factor on the rate of each node's links; NULL: 1 everywhere.
 * *classes is filled on success and released by psd_flow_classes_release(). If there would be more than
 * PSD_MOST_FLOW_CLASSES classes, *has_classes is false and *classes is not filled. PSD_ENOMEM. */
enum psd_status psd_flow_classes_find(struct psd_flow_classes *classes, const struct psd_payload *payload,
				      const struct psd_layout *layout, const struct psd_platform *platform,
				      const double *ratios, bool *has_classes, struct psd_error *err) PSD_MUST_CHECK;
void psd_flow_classes_release(struct psd_flow_classes *classes);

#endif
