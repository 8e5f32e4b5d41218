/* Links of an emulated cluster: bridge, veth pairs, addresses and rate limits. Each function sends one request to the
 * kernel, over a netlink socket of the namespace to which the link belongs. A link is identified by the number of its
 * interface. The caller chooses this number, 1000 or more. */
#ifndef PSD_REAL_LINK_H
#define PSD_REAL_LINK_H

#include <stdint.h>

#include "engine/base/error.h"

#define PSD_LINK_LOOPBACK 1 /* number of the loopback interface in every namespace, chosen by the kernel */

/* In all functions, `netlink` is a socket of psd_netlink_open(). PSD_ERUN: the kernel rejects the request; the text has
 * the kernel's reason. */

/* Adds a bridge with the interface number `bridge` and sets it up. It has no spanning tree, so its ports forward
 * packets without a delay at the start. */
enum psd_status psd_link_add_bridge(int netlink, unsigned bridge, struct psd_error *err) PSD_MUST_CHECK;

/* Adds a veth pair, which is two connected interfaces. The interface `port` is in this namespace, belongs to the
 * bridge, and is set up. The interface `peer` is in the namespace of namespace_fd, has the name eth0, and is not set up
 * yet. Its Ethernet address is made from the IPv4 address `address` (host byte order). */
enum psd_status psd_link_add_pair(int netlink, unsigned bridge, unsigned port, int namespace_fd, unsigned peer,
				  uint32_t address, uint32_t mtu_bytes, struct psd_error *err) PSD_MUST_CHECK;
/* Adds a permanent entry for an IPv4 address (host byte order) to the link's neighbour table, so that no ARP request is
 * sent for the address. The kernel keeps at most 1,024 entries that it found by ARP, counted over all namespaces, but
 * any number of permanent entries (Linux 5.0). */
enum psd_status psd_link_add_neighbour(int netlink, unsigned link, uint32_t address,
				       struct psd_error *err) PSD_MUST_CHECK;

enum psd_status psd_link_set_up(int netlink, unsigned link, struct psd_error *err) PSD_MUST_CHECK;

/* Gives an IPv4 address (host byte order) to a link that is set up, and adds the route to the network of the address's
 * first prefix_bits bits. Connections over that route use the congestion control with the name `congestion` if the
 * kernel has it. */
enum psd_status psd_link_set_address(int netlink, unsigned link, uint32_t address, unsigned prefix_bits,
				     const char *congestion, struct psd_error *err) PSD_MUST_CHECK;

/* Sets the largest number of bytes of TCP segments that a socket gives to the link in one piece. It applies to
 * connections that are made later. */
enum psd_status psd_link_set_batch(int netlink, unsigned link, uint32_t batch_bytes,
				   struct psd_error *err) PSD_MUST_CHECK;

/* Limits the rate of bytes that leave the link, by the kernel's token bucket (tbf). Ethernet's header of 14 bytes
 * counts. rate_bps: bits per second; burst_bytes: bytes that may leave without a delay after a pause; limit_bytes: size
 * of the queue; packets that do not fit are dropped. A second call changes these values and keeps the queued
 * packets. */
enum psd_status psd_link_set_rate(int netlink, unsigned link, double rate_bps, uint32_t burst_bytes,
				  uint32_t limit_bytes, struct psd_error *err) PSD_MUST_CHECK;

#endif
