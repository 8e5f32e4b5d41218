/* The links of an emulated cluster: a bridge, veth pairs, addresses and shapers, each one request over a netlink socket
 * of the namespace that holds it. Interfaces have numbers of the caller's choice above 999, small ones the kernel's. */
#ifndef PSD_REAL_LINK_H
#define PSD_REAL_LINK_H

#include <stdint.h>

#include "engine/base/error.h"

#define PSD_LINK_LOOPBACK 1 /* the kernel's number for lo in every namespace */

/* All: netlink: an open psd_netlink socket; PSD_ERUN if the kernel refuses, with its reason. */

/* A bridge without spanning tree, up, so that its ports forward from the start. */
enum psd_status psd_link_add_bridge(int netlink, unsigned bridge, struct psd_error *err) PSD_MUST_CHECK;

/* A veth pair: `port` here, up, in the bridge; `peer` (called eth0, down) in the namespace of namespace_fd, with the
 * Ethernet address that belongs to this IPv4 address (host byte order). */
enum psd_status psd_link_add_pair(int netlink, unsigned bridge, unsigned port, int namespace_fd, unsigned peer,
				  uint32_t address, uint32_t mtu_bytes, struct psd_error *err) PSD_MUST_CHECK;
/* Beyond the link is the peer with that address: nobody asks for it. The kernel keeps 1,024 neighbours that were asked
 * for, those of all namespaces together, and any number of these, from Linux 5.0 on. */
enum psd_status psd_link_add_neighbour(int netlink, unsigned link, uint32_t address,
				       struct psd_error *err) PSD_MUST_CHECK;

enum psd_status psd_link_set_up(int netlink, unsigned link, struct psd_error *err) PSD_MUST_CHECK;

/* Gives the link, which is up, an IPv4 address (host byte order) and the route to its prefix. Connections over that
 * route use the congestion control `congestion` if the kernel has it, whatever the machine's default. */
enum psd_status psd_link_set_address(int netlink, unsigned link, uint32_t address, unsigned prefix_bits,
				     const char *congestion, struct psd_error *err) PSD_MUST_CHECK;

/* The largest batch of segments that the link's sockets hand down in one piece, for connections made from now on. */
enum psd_status psd_link_set_batch(int netlink, unsigned link, uint32_t batch_bytes,
				   struct psd_error *err) PSD_MUST_CHECK;

/* Shapes what leaves the link with tbf; again: changes the rate, and keeps what is queued. Bytes count with their
 * Ethernet header of 14 bytes. burst_bytes may leave at once after a pause; beyond limit_bytes queued is dropped. */
enum psd_status psd_link_set_rate(int netlink, unsigned link, double rate_bps, uint32_t burst_bytes,
				  uint32_t limit_bytes, struct psd_error *err) PSD_MUST_CHECK;

#endif
