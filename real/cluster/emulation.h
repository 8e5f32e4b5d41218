/* An emulated cluster on this machine. Each node is a network namespace with one network interface, eth0. A bridge
 * connects the nodes like a switch whose ports have the full rate. Each node's link has a limited rate in both
 * directions. Processes in a node reach the other nodes at known addresses, and nothing else. No namespace or interface
 * has a name in the system. When this process ends, even by SIGKILL, the kernel kills the processes in the nodes and
 * removes namespaces, bridge and links. Linux only; needs neither root nor the programs of iproute2. It does not start
 * the processes in the nodes. */
#ifndef PSD_REAL_EMULATION_H
#define PSD_REAL_EMULATION_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

/* Largest number of nodes. A node needs two file descriptors, and the usual limit of a process is 1024. */
#define PSD_EMULATION_MAX_NODES 400
#define PSD_EMULATION_MIN_MTU	576U
#define PSD_EMULATION_MAX_MTU	65535U

struct psd_emulation_options {
	unsigned n_nodes; /* number of nodes, 1 to PSD_EMULATION_MAX_NODES */
	bool has_rate;	  /* links have the rate rate_bps; false: links are as fast as this machine allows */
	/* Rate of each node's link, bits per second: from the node to the switch, and also to the node unless
	 * has_receive_rate. Ethernet's header of 14 bytes counts, so TCP's payload gets at most
	 * psd_emulation_payload_ratio() * rate_bps. */
	double rate_bps;
	/* Links have the rate receive_bps to the node, and rate_bps from it; false: rate_bps in both directions. */
	bool has_receive_rate;
	double receive_bps; /* rate of each node's link from the switch to the node, bits per second */
	/* Factor on both rates of each node's link, n_nodes entries; NULL: all links are alike. */
	const double *node_ratios;
	bool has_dilation; /* dilation_ratio is set; false: it is 1 */
	/* Factor by which a replay runs slower than the cluster that it emulates, >= 1. rate_bps and receive_bps are
	 * already divided by it. The queue of a link has the same number of bytes as on the cluster, so it takes longer
	 * to empty. From a factor of 8 on, this is also true of the bursts that a link lets pass. */
	double dilation_ratio;
	/* Largest number of connections over which one node receives messages at the same time. If it is 2 or more, and
	 * links have a rate, the receive buffers of TCP are limited. Then all of a node's buffers together hold half of
	 * a link's queue, but each holds at least 32 KiB. So senders get equal rates, and no packet is dropped.
	 * Otherwise, or if the machine does not allow it, the kernel chooses the sizes of the buffers. */
	unsigned most_connections;
	bool has_mtu; /* mtu_bytes is set; false: links have PSD_EMULATION_DEFAULT_MTU */
	uint32_t mtu_bytes;
};

/* Usual packet size (MTU) of links, bytes, as on Ethernet. A larger one would not be faster here, since the kernel
 * passes many TCP segments on in one piece. */
#define PSD_EMULATION_DEFAULT_MTU 1500U

/* Returns the fraction of a link's rate that TCP payload can use with packets of full size: (mtu_bytes - 52) /
 * (mtu_bytes + 14). It is 95.6 % for 1500 bytes, 99.3 % for 9000 bytes. Pure, any thread. */
double psd_emulation_payload_ratio(uint32_t mtu_bytes);

struct psd_emulation;

/* Makes the emulated cluster; the caller closes *emulation by psd_emulation_close(). For a short time it forks a helper
 * process, so it must be called before threads start. PSD_EINVAL: an option is out of range; PSD_ENOMEM; PSD_ERUN: this
 * machine lacks something, which the text names; PSD_ELOST: the helper process was killed. */
enum psd_status psd_emulation_open(const struct psd_emulation_options *options, struct psd_emulation **emulation,
				   struct psd_error *err) PSD_MUST_CHECK;

/* Removes the cluster. Call it when all processes in its nodes have ended. NULL is allowed. */
void psd_emulation_close(struct psd_emulation *emulation);

#define PSD_EMULATION_ADDRESS_MAX 16
/* Writes the IPv4 address of a node into text, "10.0.0.1" for node 0, and returns text. Pure, any thread. */
char *psd_emulation_address(unsigned node, char text[PSD_EMULATION_ADDRESS_MAX]);

/* Moves the calling process into a node, which it cannot leave, and closes its descriptors of the cluster. The process
 * must have only one thread. The kernel kills the process when the thread that forked it ends. Only the parent process
 * calls psd_emulation_close(). PSD_ERUN: the kernel does not allow it. */
enum psd_status psd_emulation_enter(struct psd_emulation *emulation, unsigned node,
				    struct psd_error *err) PSD_MUST_CHECK;

#endif
