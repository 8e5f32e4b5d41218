/* An emulated cluster on this machine. Every node is a network namespace with one interface, eth0. A bridge joins them
 * and each link is shaped in both directions, like a switch with full-rate ports. Processes in a node reach the other
 * nodes at known addresses and nothing else. Nothing has a name in the system: when this process ends, even by SIGKILL,
 * the kernel kills the nodes' processes and removes namespaces, bridge and links. Linux only; needs neither root nor
 * iproute2. Refuses to know what the nodes compute. */
#ifndef PSD_REAL_EMULATION_H
#define PSD_REAL_EMULATION_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

#define PSD_EMULATION_MAX_NODES 400 /* each node takes two descriptors, of which a process usually has 1024 */
#define PSD_EMULATION_MIN_MTU	576U
#define PSD_EMULATION_MAX_MTU	65535U

struct psd_emulation_options {
	unsigned n_nodes; /* number of nodes, 1 to PSD_EMULATION_MAX_NODES */
	bool has_rate;	  /* links have a rate; false: they are as fast as the machine */
	/* Rate of each node's link in each direction. Ethernet's header of 14 bytes counts, so that TCP's payload gets
	 * psd_emulation_payload_ratio() of it at most. */
	double rate_bps;
	bool has_receive_rate; /* rates differ by direction; false: rate_bps both ways */
	double receive_bps;    /* rate into each node */
	bool has_dilation;     /* time is dilated; false: by 1, not at all */
	double dilation_ratio; /* stretches shapers' queues, and from 8 on their bursts, in time; >= 1 */
	/* Largest number of connections that bring messages to one node at a time. From 2 on, if links have a rate,
	 * TCP's receive buffers together hold half of a port's queue, at least 32 KiB each, so that senders get equal
	 * shares and lose nothing. Otherwise, or if the machine forbids it, the kernel chooses their sizes. */
	unsigned most_connections;
	bool has_mtu; /* links have their own MTU; false: PSD_EMULATION_DEFAULT_MTU */
	uint32_t mtu_bytes;
};

/* MTU of Ethernet, bytes. A larger one saves nothing, since batches of segments pass in one piece. */
#define PSD_EMULATION_DEFAULT_MTU 1500U

/* Share of TCP's payload in full frames: (mtu - 52) / (mtu + 14), 95.6 % at 1500, 99.3 % at 9000. Pure, any thread. */
double psd_emulation_payload_ratio(uint32_t mtu_bytes);

struct psd_emulation;

/* Makes the emulated cluster; the caller closes *emulation. Forks a process for a while: call it before threads start.
 * PSD_EINVAL: an option is out of range; PSD_ENOMEM; PSD_ERUN: this machine lacks something, the text names it;
 * PSD_ELOST: a process that helps was killed. */
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
