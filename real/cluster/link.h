/* Links of an emulated cluster: bridge, veth pairs, addresses and limits of rates. Each function sends one request to
 * the kernel, over a netlink socket of the namespace that holds the link. A link is named by the number of its
 * interface, which the caller chooses, from 1000 on. */
#ifndef PSD_REAL_LINK_H
#define PSD_REAL_LINK_H

#include <stdint.h>

#include "engine/base/error.h"

#define PSD_LINK_LOOPBACK 1 /* number of the loopback interface in every namespace, chosen by the kernel */

/* In all functions: netlink is a socket of psd_netlink_open(). PSD_ERUN: the kernel refuses; the text has its
 * reason. */

/* Adds a bridge with the number `bridge`, without spanning tree, so that its ports forward packets at once. The bridge
 * is up. */
enum psd_status psd_link_add_bridge(int netlink, unsigned bridge, struct psd_error *err) PSD_MUST_CHECK;

/* Adds a veth pair, which is two connected interfaces. `port` is in this namespace, up, and belongs to the bridge.
 * `peer` is in the namespace of namespace_fd, with the name eth0, and down; its Ethernet address is made from the IPv4
 * address `address` (host byte order). */
enum psd_status psd_link_add_pair(int netlink, unsigned bridge, unsigned port, int namespace_fd, unsigned peer,
				  uint32_t address, uint32_t mtu_bytes, struct psd_error *err) PSD_MUST_CHECK;
/* Adds a permanent entry for an IPv4 address (host byte order) to the link's neighbour table, so that no ARP request is
 * sent for it. The kernel keeps at most 1,024 entries that it found by ARP, in all namespaces together, but any number
 * of permanent ones (Linux 5.0). */
enum psd_status psd_link_add_neighbour(int netlink, unsigned link, uint32_t address,
				       struct psd_error *err) PSD_MUST_CHECK;

enum psd_status psd_link_set_up(int netlink, unsigned link, struct psd_error *err) PSD_MUST_CHECK;

/* Gives a link that is up an IPv4 address (host byte order) and the route to the network of its first prefix_bits bits.
 * Connections over that route use the congestion control with the name `congestion` if the kernel has it. */
enum psd_status psd_link_set_address(int netlink, unsigned link, uint32_t address, unsigned prefix_bits,
				     const char *congestion, struct psd_error *err) PSD_MUST_CHECK;

/* Sets the largest batch of TCP segments, in bytes, that a socket hands to the link in one piece. It holds for
 * connections that are made later. */
enum psd_status psd_link_set_batch(int netlink, unsigned link, uint32_t batch_bytes,
				   struct psd_error *err) PSD_MUST_CHECK;

/* Limits the rate of bytes that leave the link, by the kernel's token bucket (tbf). Ethernet's header of 14 bytes
 * counts. rate_bps: bits per second; burst_bytes: bytes that may leave at once after a pause; limit_bytes: size of the
 * queue, beyond which a packet is dropped. A later call changes the rate and keeps the queue. */
enum psd_status psd_link_set_rate(int netlink, unsigned link, double rate_bps, uint32_t burst_bytes,
				  uint32_t limit_bytes, struct psd_error *err) PSD_MUST_CHECK;

#endif
