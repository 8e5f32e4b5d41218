/* Links of a generated platform: their numbers, rates and names, and the route between two hosts, for the simulation
 * and for XML. Private to sim/. A route between nodes has up to four links: out of the node, up from its leaf switch,
 * down to the other leaf switch, into the node. A route inside a node has the two local links of the workers. If nodes
 * have PCIe switches, the local link of the worker and the uplink of its switch are added at both ends, also on routes
 * between switches of one node. A fat tree has two levels, and nodes_per_rack / oversubscription_ratio spine switches
 * (rounded, at least one). Each leaf switch has one link to each spine, and one from it. The number of the receiving
 * node decides over which spine a route goes (D-mod-k, as in SimGrid's FAT_TREE). The last rack may have fewer nodes,
 * but its leaf switch has as many uplinks as the others. Separate servers are in the racks of servers_in or, without
 * it, spread evenly over the racks of workers. */
#ifndef PSD_SIM_PLATFORM_H
#define PSD_SIM_PLATFORM_H

#include "sim/network/network.h"

/* largest number of links of a route; size of a link's or host's name, bytes */
enum { PSD_ROUTE_LINKS = 8, PSD_LINK_NAME = 48 };

/* Returns the number of hosts of the platform. Hosts and nodes are numbered from 0; worker nodes come before nodes of
 * separate servers. All functions here are pure, any thread. */
unsigned psd_platform_hosts(const struct psd_platform *platform);
/* Returns the number of links of the platform; they are numbered from 0. */
unsigned psd_platform_links(const struct psd_platform *platform);
/* Returns the number of the host's node. */
unsigned psd_platform_node_of(const struct psd_platform *platform, unsigned host);
/* Returns the number of the link out of a node or, if is_in is not 0, of the link into it. */
unsigned psd_platform_node_link(unsigned node, int is_in);
/* Tells whether a link serves several hosts: the link of a node with several workers, an uplink of a switch or rack.
 * Links of a user's platform all count as such. */
bool psd_platform_is_shared(const struct psd_platform *platform, unsigned link);
/* Returns the rate of a link, bits per second. */
double psd_platform_link_bps(const struct psd_platform *platform, unsigned link);
/* Returns the rate of a link, bits per second, with slow nodes. ratios: factor on the rates of each node's links; NULL:
 * no node is slow. */
double psd_platform_slowed_bps(const struct psd_platform *platform, const double *ratios, unsigned link);
/* Returns the number of the first host on a node. */
unsigned psd_platform_first_host(const struct psd_platform *platform, unsigned node);
/* Returns the one-way latency between two hosts of a generated platform, as psd_network_latency_sec(). */
double psd_platform_latency_sec(const struct psd_platform *platform, unsigned from, unsigned to);
/* Writes the name of a link to `name`, which has PSD_LINK_NAME bytes. */
void psd_platform_link_name(const struct psd_platform *platform, unsigned link, char *name);
/* Writes the name of a host to `name`, which has PSD_LINK_NAME bytes. The natural order of the names (n2 before n10) is
 * the order of the hosts' numbers. */
void psd_platform_host_name(const struct psd_platform *platform, unsigned host, char *name);
/* Writes the numbers of the links on the route from host `from` to another host `to`, in order, to links[], which has
 * PSD_ROUTE_LINKS entries. Returns their number. */
unsigned psd_platform_route(const struct psd_platform *platform, unsigned from, unsigned to, unsigned *links);

/* Compares two names in natural order, in which n2 comes before n10. Returns a negative number, 0 or a positive number,
 * as strcmp(). */
int psd_platform_compare_names(const char *a, const char *b);

/* Fills err with the reason why SimGrid refuses the platform file at `path`, and returns PSD_EINVAL. words: all
 * messages of SimGrid. The text is the line of them that has the reason, and the place has the line number in the file
 * if the message names one. */
enum psd_status psd_platform_refuse(const char *path, const char *words, struct psd_error *err);

#endif
