/* An emulated cluster on this machine: every node a network namespace with one interface, eth0, all joined by a bridge,
 * each link shaped in both directions, as a switch with full-rate ports. Processes started in a node reach the other
 * nodes at known addresses and nothing else. Nothing has a name in the system: when this process ends, also by SIGKILL,
 * the kernel kills the nodes' processes and removes namespaces, bridge and links. Linux only; neither root nor iproute2
 * is needed. Refuses to know what the nodes compute. */
#ifndef PSD_REAL_EMULATION_H
#define PSD_REAL_EMULATION_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

#define PSD_EMULATION_MAX_NODES 400 /* each takes two descriptors; the usual limit is 1024 */
#define PSD_EMULATION_MIN_MTU	576U
#define PSD_EMULATION_MAX_MTU	65535U

struct psd_emulation_options {
	unsigned n_nodes; /* 1 to PSD_EMULATION_MAX_NODES */
	bool has_rate;	  /* false: links as fast as the machine */
	/* Of each node's link, each direction; a frame counts with its Ethernet header of 14 bytes, so that TCP's
	 * payload gets at most psd_emulation_payload_ratio() of it. */
	double rate_bps;
	bool has_receive_rate; /* false: rate_bps both ways */
	double receive_bps;    /* into each node */
	bool has_dilation;     /* false: 1 */
	double dilation_ratio; /* what shapers hold lasts so many times as long, from 8 on their bursts too; >= 1 */
	/* That bring messages to one node at a time. From 2 on, where links have a rate, TCP's receive buffers together
	 * hold half of what the port before a node does, but each at least 32 KiB, so that senders are served alike and
	 * lose nothing. Else, and where the machine forbids it, they are as the kernel chooses. */
	unsigned most_connections;
	bool has_mtu; /* false: PSD_EMULATION_DEFAULT_MTU */
	uint32_t mtu_bytes;
};

/* What Ethernet has unless somebody changed it. Larger ones save nothing: batches of segments pass in one piece. */
#define PSD_EMULATION_DEFAULT_MTU 1500U

/* What TCP's payload is of full frames: (mtu - 52) / (mtu + 14), 95.6 % at 1500, 99.3 % at 9000. Pure, any thread. */
double psd_emulation_payload_ratio(uint32_t mtu_bytes);

struct psd_emulation;

/* Makes the cluster. *emulation: the caller closes it. Forks a process for a while: call it before threads start.
 * PSD_EINVAL: an option is out of range; PSD_ENOMEM; PSD_ERUN: this machine lacks something, the text names it. */
enum psd_status psd_emulation_open(const struct psd_emulation_options *options, struct psd_emulation **emulation,
				   struct psd_error *err) PSD_MUST_CHECK;

/* Removes the cluster once no process is left in its nodes. NULL is allowed. */
void psd_emulation_close(struct psd_emulation *emulation);

#define PSD_EMULATION_ADDRESS_MAX 16
/* The IPv4 address of a node as text, 10.0.0.1 for node 0; returns text. Pure, any thread. */
char *psd_emulation_address(unsigned node, char text[PSD_EMULATION_ADDRESS_MAX]);

/* Moves the calling process into a node for good, and closes its descriptors of the cluster. The process must have one
 * thread; the kernel kills it when its parent's thread ends. Call psd_emulation_close() in the parent alone. PSD_ERUN:
 * the kernel refuses. */
enum psd_status psd_emulation_enter(struct psd_emulation *emulation, unsigned node,
				    struct psd_error *err) PSD_MUST_CHECK;

#endif
