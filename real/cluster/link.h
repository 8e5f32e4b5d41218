/* The links of an emulated cluster: a bridge, veth pairs, addresses and shapers. Each function sends one request over a
 * netlink socket of the namespace that holds the link. The caller numbers interfaces from 1000 on. */
#ifndef PSD_REAL_LINK_H
#define PSD_REAL_LINK_H

#include <stdint.h>

#include "engine/base/error.h"

#define PSD_LINK_LOOPBACK 1 /* number of the loopback interface in every namespace, given by the kernel */

/* For all functions: netlink is an open psd_netlink socket; PSD_ERUN with the kernel's reason if it refuses. */

/* Adds a bridge without spanning tree, set up, so that its ports forward from the start. */
enum psd_status psd_link_add_bridge(int netlink, unsigned bridge, struct psd_error *err) PSD_MUST_CHECK;

/* Adds a veth pair: `port` here, set up, in the bridge; `peer` (named eth0, down) in the namespace of namespace_fd,
 * with an Ethernet address made of this IPv4 address (host byte order). */
enum psd_status psd_link_add_pair(int netlink, unsigned bridge, unsigned port, int namespace_fd, unsigned peer,
				  uint32_t address, uint32_t mtu_bytes, struct psd_error *err) PSD_MUST_CHECK;
/* Adds a permanent entry for that address to the neighbour table, so that ARP never asks for it. The kernel keeps at
 * most 1,024 entries found by ARP in all namespaces together, but any number of permanent ones (Linux 5.0). */
enum psd_status psd_link_add_neighbour(int netlink, unsigned link, uint32_t address,
				       struct psd_error *err) PSD_MUST_CHECK;

enum psd_status psd_link_set_up(int netlink, unsigned link, struct psd_error *err) PSD_MUST_CHECK;

/* Gives a link that is up an IPv4 address (host byte order) and the route to its prefix. Connections over that route
 * use the congestion control `congestion` if the kernel has it. */
enum psd_status psd_link_set_address(int netlink, unsigned link, uint32_t address, unsigned prefix_bits,
				     const char *congestion, struct psd_error *err) PSD_MUST_CHECK;

/* Sets the largest batch of segments that sockets hand to the link in one piece, for connections made from now on. */
enum psd_status psd_link_set_batch(int netlink, unsigned link, uint32_t batch_bytes,
				   struct psd_error *err) PSD_MUST_CHECK;

/* Shapes bytes that leave the link with tbf; Ethernet's header of 14 bytes counts. burst_bytes may leave at once after
 * a pause; a packet beyond limit_bytes in the queue is dropped. Called again, it changes the rate and keeps the
 * queue. */
enum psd_status psd_link_set_rate(int netlink, unsigned link, double rate_bps, uint32_t burst_bytes,
				  uint32_t limit_bytes, struct psd_error *err) PSD_MUST_CHECK;

#endif
