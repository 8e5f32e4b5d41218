#define _GNU_SOURCE
#include "real/cluster/link.h"

#include <arpa/inet.h>
#include <assert.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

#include "real/cluster/netlink.h"

static struct ifinfomsg head_of(unsigned link, bool is_up)
{
	return (struct ifinfomsg){
		.ifi_family = AF_UNSPEC, .ifi_index = (int)link, .ifi_flags = is_up ? IFF_UP : 0, .ifi_change = IFF_UP};
}

enum psd_status psd_link_add_bridge(int netlink, unsigned bridge, struct psd_error *err)
{
	const struct ifinfomsg head = head_of(bridge, true);
	struct psd_netlink_message message;

	psd_netlink_begin(&message, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof(head));
	psd_netlink_put_text(&message, IFLA_IFNAME, "bridge");
	const size_t info = psd_netlink_nest_begin(&message, IFLA_LINKINFO, NULL, 0);
	psd_netlink_put_text(&message, IFLA_INFO_KIND, "bridge");
	psd_netlink_nest_end(&message, info);
	return psd_netlink_send(netlink, &message, "add a bridge", err);
}

/* A locally administered Ethernet address: two bytes, and the IPv4 address. */
struct ethernet {
	unsigned char bytes[6];
};

static struct ethernet ethernet_of(uint32_t address)
{
	return (struct ethernet){{0x02, 0x00, (unsigned char)(address >> 24), (unsigned char)(address >> 16),
				  (unsigned char)(address >> 8), (unsigned char)address}};
}

enum psd_status psd_link_add_pair(int netlink, unsigned bridge, unsigned port, int namespace_fd, unsigned peer,
				  uint32_t address, uint32_t mtu_bytes, struct psd_error *err)
{
	const struct ethernet ethernet = ethernet_of(address);
	const struct ifinfomsg head = head_of(port, true), peer_head = head_of(peer, false);
	struct psd_netlink_message message;
	char name[IFNAMSIZ];
	size_t info, data, other;

	snprintf(name, sizeof(name), "port%u", port);
	psd_netlink_begin(&message, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof(head));
	psd_netlink_put_text(&message, IFLA_IFNAME, name);
	psd_netlink_put_u32(&message, IFLA_MTU, mtu_bytes);
	psd_netlink_put_u32(&message, IFLA_MASTER, bridge);
	info = psd_netlink_nest_begin(&message, IFLA_LINKINFO, NULL, 0);
	psd_netlink_put_text(&message, IFLA_INFO_KIND, "veth");
	data = psd_netlink_nest_begin(&message, IFLA_INFO_DATA, NULL, 0);
	other = psd_netlink_nest_begin(&message, VETH_INFO_PEER, &peer_head, sizeof(peer_head));
	psd_netlink_put_text(&message, IFLA_IFNAME, "eth0");
	psd_netlink_put(&message, IFLA_ADDRESS, ethernet.bytes, sizeof(ethernet.bytes));
	psd_netlink_put_u32(&message, IFLA_MTU, mtu_bytes);
	psd_netlink_put_u32(&message, IFLA_NET_NS_FD, (uint32_t)namespace_fd);
	psd_netlink_nest_end(&message, other);
	psd_netlink_nest_end(&message, data);
	psd_netlink_nest_end(&message, info);
	return psd_netlink_send(netlink, &message, "add a veth pair", err);
}

enum psd_status psd_link_add_neighbour(int netlink, unsigned link, uint32_t address, struct psd_error *err)
{
	const struct ndmsg head = {.ndm_family = AF_INET, .ndm_ifindex = (int)link, .ndm_state = NUD_PERMANENT};
	const struct ethernet ethernet = ethernet_of(address);
	const uint32_t wire_address = htonl(address);
	struct psd_netlink_message message;

	psd_netlink_begin(&message, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &head, sizeof(head));
	psd_netlink_put(&message, NDA_DST, &wire_address, sizeof(wire_address));
	psd_netlink_put(&message, NDA_LLADDR, ethernet.bytes, sizeof(ethernet.bytes));
	return psd_netlink_send(netlink, &message, "add a neighbour", err);
}

enum psd_status psd_link_set_up(int netlink, unsigned link, struct psd_error *err)
{
	const struct ifinfomsg head = head_of(link, true);
	struct psd_netlink_message message;

	psd_netlink_begin(&message, RTM_NEWLINK, 0, &head, sizeof(head));
	return psd_netlink_send(netlink, &message, "set a link up", err);
}

static enum psd_status add_route(int netlink, unsigned link, uint32_t network, unsigned prefix_bits,
				 const char *congestion, struct psd_error *err)
{
	const struct rtmsg head = {.rtm_family = AF_INET,
				   .rtm_dst_len = (unsigned char)prefix_bits,
				   .rtm_table = RT_TABLE_MAIN,
				   .rtm_protocol = RTPROT_BOOT,
				   .rtm_scope = RT_SCOPE_LINK,
				   .rtm_type = RTN_UNICAST};
	const uint32_t wire_network = htonl(network);
	struct psd_netlink_message message;

	psd_netlink_begin(&message, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &head, sizeof(head));
	psd_netlink_put(&message, RTA_DST, &wire_network, sizeof(wire_network));
	psd_netlink_put_u32(&message, RTA_OIF, link);
	if (congestion) {
		const size_t metrics = psd_netlink_nest_begin(&message, RTA_METRICS, NULL, 0);

		psd_netlink_put_text(&message, RTAX_CC_ALGO, congestion);
		psd_netlink_nest_end(&message, metrics);
	}
	return psd_netlink_send(netlink, &message, "add a route", err);
}

enum psd_status psd_link_set_address(int netlink, unsigned link, uint32_t address, unsigned prefix_bits,
				     const char *congestion, struct psd_error *err)
{
	const struct ifaddrmsg head = {
		.ifa_family = AF_INET, .ifa_prefixlen = (unsigned char)prefix_bits, .ifa_index = link};
	const uint32_t wire_address = htonl(address), network = address & ~(UINT32_MAX >> prefix_bits);
	struct psd_netlink_message message;

	assert(prefix_bits >= 1 && prefix_bits <= 31);
	psd_netlink_begin(&message, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof(head));
	psd_netlink_put(&message, IFA_LOCAL, &wire_address, sizeof(wire_address));
	psd_netlink_put(&message, IFA_ADDRESS, &wire_address, sizeof(wire_address));
	psd_netlink_put_u32(&message, IFA_FLAGS,
			    IFA_F_NOPREFIXROUTE); /* the kernel's own route cannot name a congestion control */
	const enum psd_status status = psd_netlink_send(netlink, &message, "set an address", err);
	if (status != PSD_OK)
		return status;
	if (add_route(netlink, link, network, prefix_bits, congestion, NULL) == PSD_OK)
		return PSD_OK;
	return add_route(netlink, link, network, prefix_bits, NULL, err);
}

enum psd_status psd_link_set_batch(int netlink, unsigned link, uint32_t batch_bytes, struct psd_error *err)
{
	const struct ifinfomsg head = {.ifi_family = AF_UNSPEC, .ifi_index = (int)link};
	struct psd_netlink_message message;

	psd_netlink_begin(&message, RTM_NEWLINK, 0, &head, sizeof(head));
	psd_netlink_put_u32(&message, IFLA_GSO_MAX_SIZE, batch_bytes);
	return psd_netlink_send(netlink, &message, "set the largest batch of segments", err);
}

enum psd_status psd_link_set_rate(int netlink, unsigned link, double rate_bps, uint32_t burst_bytes,
				  uint32_t limit_bytes, struct psd_error *err)
{
	const struct tcmsg head = {.tcm_family = AF_UNSPEC,
				   .tcm_ifindex = (int)link,
				   .tcm_handle = TC_H_MAKE(1U << 16, 0U),
				   .tcm_parent = TC_H_ROOT};
	const uint64_t rate_bytes_per_sec = (uint64_t)(rate_bps / 8 + 0.5);
	/* The 32-bit rate must not be 0; RATE64 replaces it when larger. Without a link layer the kernel needs a
	 * table. */
	const struct tc_tbf_qopt options = {
		.rate = {.linklayer = TC_LINKLAYER_ETHERNET,
			 .rate = rate_bytes_per_sec < UINT32_MAX ? (uint32_t)rate_bytes_per_sec : UINT32_MAX},
		.limit = limit_bytes};
	struct psd_netlink_message message;

	psd_netlink_begin(&message, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, &head, sizeof(head));
	psd_netlink_put_text(&message, TCA_KIND, "tbf");
	const size_t nest = psd_netlink_nest_begin(&message, TCA_OPTIONS, NULL, 0);
	psd_netlink_put(&message, TCA_TBF_PARMS, &options, sizeof(options));
	psd_netlink_put_u32(&message, TCA_TBF_BURST, burst_bytes);
	psd_netlink_put(&message, TCA_TBF_RATE64, &rate_bytes_per_sec, sizeof(rate_bytes_per_sec));
	psd_netlink_nest_end(&message, nest);
	return psd_netlink_send(netlink, &message, "shape a link with tbf", err);
}
