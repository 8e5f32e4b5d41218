/* The links of a generated cluster and the way between any two of its hosts: the one truth behind the simulation and
 * the XML dump. Private to sim/. A way takes at most four links between nodes: out of the node, up from its leaf, down
 * to the other leaf, into the node; or the two local links between workers of one node. Where nodes have switches, a
 * worker's local link and its switch's uplink come before and behind: between nodes, and between switches of one. Fat
 * tree: two levels, nodes_per_rack / oversubscription_ratio spines (rounded, at least one), one link from each leaf to
 * each spine and back, the spine chosen by the receiving node (D-mod-k, as SimGrid's FAT_TREE does). The last rack may
 * hold fewer nodes; its leaf is as large as the others. */
#ifndef PSD_SIM_PLATFORM_H
#define PSD_SIM_PLATFORM_H

#include "sim/network/network.h"

enum { PSD_ROUTE_LINKS = 8, PSD_LINK_NAME = 48 };

/* Hosts and links, numbered from 0, as are nodes: those of workers, then those of servers. Pure, any thread, as is
 * everything below. */
unsigned psd_platform_hosts(const struct psd_platform *platform);
unsigned psd_platform_links(const struct psd_platform *platform);
unsigned psd_platform_node_of(const struct psd_platform *platform, unsigned host);
/* A node's way out (is_in: in). */
unsigned psd_platform_node_link(unsigned node, int is_in);
double psd_platform_link_bps(const struct psd_platform *platform, unsigned link);
/* `name` takes PSD_LINK_NAME bytes. Names of hosts sort naturally in the order of their numbers. */
void psd_platform_link_name(const struct psd_platform *platform, unsigned link, char *name);
void psd_platform_host_name(const struct psd_platform *platform, unsigned host, char *name);
/* The links from one host to another, in order, into links (PSD_ROUTE_LINKS of them); returns their number. from != to.
 */
unsigned psd_platform_route(const struct psd_platform *platform, unsigned from, unsigned to, unsigned *links);

/* Names in the order a person expects: digits compare as numbers, so n2 comes before n10. Negative, 0 or positive like
 * strcmp(). */
int psd_platform_compare_names(const char *a, const char *b);

/* Fills err with PSD_EINVAL and the meaningful line of what SimGrid said about the file at path; its line number moves
 * to the front. */
enum psd_status psd_platform_refuse(const char *path, const char *words, struct psd_error *err);

#endif
