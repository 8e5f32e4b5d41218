/* Links of a generated cluster, and the route between any two of its hosts, for simulation and XML. Private to sim/. A
 * route between nodes takes at most four links: out of the node, up from its leaf, down to the other leaf, into the
 * node. A route inside a node takes the two local links of the workers. Where nodes have switches, the worker's local
 * link and its switch's uplink come first and last, also between switches of one node. A fat tree has two levels and
 * nodes_per_rack / oversubscription_ratio spines (rounded, at least one). Each leaf has one link to each spine and
 * back; the receiving node chooses the spine (D-mod-k, as in SimGrid's FAT_TREE). The last rack may hold fewer nodes;
 * its leaf is as large as the others. Servers are in the racks of the workers, evenly, or where servers_in says. */
#ifndef PSD_SIM_PLATFORM_H
#define PSD_SIM_PLATFORM_H

#include "sim/network/network.h"

enum { PSD_ROUTE_LINKS = 8, PSD_LINK_NAME = 48 };

/* Numbers of hosts and links, from 0. Nodes of workers come before nodes of servers. Pure, any thread, as all functions
 * below. */
unsigned psd_platform_hosts(const struct psd_platform *platform);
unsigned psd_platform_links(const struct psd_platform *platform);
unsigned psd_platform_node_of(const struct psd_platform *platform, unsigned host);
/* Link out of a node, or into it if is_in. */
unsigned psd_platform_node_link(unsigned node, int is_in);
double psd_platform_link_bps(const struct psd_platform *platform, unsigned link);
/* Writes a link's name; `name` takes PSD_LINK_NAME bytes. Natural order of host names is the order of host numbers. */
void psd_platform_link_name(const struct psd_platform *platform, unsigned link, char *name);
void psd_platform_host_name(const struct psd_platform *platform, unsigned host, char *name);
/* Writes the links from one host to another, in order, to links (PSD_ROUTE_LINKS of them) and returns their number.
 * from != to. */
unsigned psd_platform_route(const struct psd_platform *platform, unsigned from, unsigned to, unsigned *links);

/* Compares names in natural order: n2 comes before n10. Returns a negative number, 0 or a positive one, as strcmp(). */
int psd_platform_compare_names(const char *a, const char *b);

/* Fills err with PSD_EINVAL and the meaningful line of SimGrid's words about the file at path. The line number moves to
 * the front. */
enum psd_status psd_platform_refuse(const char *path, const char *words, struct psd_error *err);

#endif
