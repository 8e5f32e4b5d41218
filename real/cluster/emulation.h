/* An emulated cluster on this machine. Each node is a network namespace with one network interface, eth0. A bridge
 * connects the nodes, and each node's link has a limited rate in both directions, as on a switch whose ports have the
 * full rate. Processes in a node reach the other nodes at known addresses, and nothing else. No namespace or interface
 * has a name in the system: when this process ends, even by SIGKILL, the kernel kills the processes in the nodes and
 * removes namespaces, bridge and links. Linux only; needs neither root nor the programs of iproute2. Knows nothing
 * about the processes in the nodes. */
#ifndef PSD_REAL_EMULATION_H
#define PSD_REAL_EMULATION_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

/* Largest number of nodes; a node takes two file descriptors, and a process usually may open 1024. */
#define PSD_EMULATION_MAX_NODES 400
#define PSD_EMULATION_MIN_MTU	576U
#define PSD_EMULATION_MAX_MTU	65535U

struct psd_emulation_options {
	unsigned n_nodes; /* number of nodes, 1 to PSD_EMULATION_MAX_NODES */
	bool has_rate;	  /* links have the rate rate_bps; false: links are as fast as the machine */
	/* Rate of each node's link, bits per second, in both directions unless has_receive_rate. Ethernet's header of
	 * 14 bytes counts, so TCP's payload gets at most psd_emulation_payload_ratio() * rate_bps. */
	double rate_bps;
	bool has_receive_rate; /* links have the rate receive_bps towards the node, and rate_bps away from it */
	double receive_bps;    /* rate of each node's link towards the node, bits per second */
	bool has_dilation;     /* dilation_ratio is set; false: it is 1 */
	/* Factor by which a replay is slower than the cluster, >= 1; the queues of links hold as many seconds more, and
	 * from 8 on their bursts. */
	double dilation_ratio;
	/* Largest number of connections over which messages come to one node at the same time. If it is 2 or more, and
	 * links have a rate, all receive buffers of TCP in a node together hold half of a link's queue, but each at
	 * least 32 KiB. Then senders get equal rates, and no packet is dropped. Otherwise, or if the machine does not
	 * allow it, the kernel chooses the sizes of the buffers. */
	unsigned most_connections;
	bool has_mtu; /* mtu_bytes is set; false: links have PSD_EMULATION_DEFAULT_MTU */
	uint32_t mtu_bytes;
};

/* Largest packet (MTU) of Ethernet, bytes. A larger one would not be faster here, since the kernel passes many TCP
 * segments on in one piece. */
#define PSD_EMULATION_DEFAULT_MTU 1500U

/* Returns the fraction of a link's rate that is payload of TCP, in packets of full size: (mtu_bytes - 52) / (mtu_bytes
 * + 14). It is 95.6 % for 1500 bytes, 99.3 % for 9000. Pure, any thread. */
double psd_emulation_payload_ratio(uint32_t mtu_bytes);

struct psd_emulation;

/* Makes the emulated cluster; the caller closes *emulation by psd_emulation_close(). It forks a helper process for a
 * short time, so call it before threads start. PSD_EINVAL: an option is out of range; PSD_ENOMEM; PSD_ERUN: this
 * machine lacks something, which the text names; PSD_ELOST: the helper process was killed. */
enum psd_status psd_emulation_open(const struct psd_emulation_options *options, struct psd_emulation **emulation,
				   struct psd_error *err) PSD_MUST_CHECK;

/* Removes the cluster. Call it when no process is left in its nodes. NULL is allowed. */
void psd_emulation_close(struct psd_emulation *emulation);

#define PSD_EMULATION_ADDRESS_MAX 16
/* Writes the IPv4 address of a node into text, "10.0.0.1" for node 0, and returns text. Pure, any thread. */
char *psd_emulation_address(unsigned node, char text[PSD_EMULATION_ADDRESS_MAX]);

/* Moves the calling process into a node for ever, and closes its descriptors of the cluster. The process must have only
 * one thread. The kernel kills it when the thread that forked it ends. Only the parent process calls
 * psd_emulation_close(). PSD_ERUN: the kernel refuses. */
enum psd_status psd_emulation_enter(struct psd_emulation *emulation, unsigned node,
				    struct psd_error *err) PSD_MUST_CHECK;

#endif
