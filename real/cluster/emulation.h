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

#define PSD_EMULATION_MAX_NODES 400 /* two descriptors each, within the usual limit of 1024 */
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

/* Makes the cluster. *emulation: the caller closes it. Forks: call it, and psd_emulation_start, before starting
 * threads. PSD_EINVAL: options out of range; PSD_ENOMEM; PSD_ERUN: this machine lacks something, the text says what. */
enum psd_status psd_emulation_open(const struct psd_emulation_options *options, struct psd_emulation **emulation,
				   struct psd_error *err) PSD_MUST_CHECK;

/* Kills (SIGKILL) and collects every process still running, then gives back the rest. NULL is allowed. */
void psd_emulation_close(struct psd_emulation *emulation);

#define PSD_EMULATION_ADDRESS_MAX 16
/* The IPv4 address of a node, 10.0.0.1 for node 0, in text; returns text. Pure, any thread. */
char *psd_emulation_address(unsigned node, char text[PSD_EMULATION_ADDRESS_MAX]);

/* What a process of a node does; its result is the process's exit status (0 to 255). context is as at the fork. */
typedef int psd_emulation_work_fn(void *context, unsigned node);

/* Starts a process in the node, which calls work(context, node) and then exits without running atexit functions.
 * Several may run in one node. It inherits open descriptors (but none of the emulation's), has default signal actions
 * and an empty signal mask, and is killed when the calling *thread* ends: call it from the main thread. Processes that
 * it starts itself are its own to end. *child: its number, from 0 in the order of starts. Standard output is flushed
 * before the fork and at the end. PSD_EINVAL: no such node; PSD_ENOMEM; PSD_ERUN: it could not be made or moved. */
enum psd_status psd_emulation_start(struct psd_emulation *emulation, unsigned node, psd_emulation_work_fn *work,
				    void *context, unsigned *child, struct psd_error *err) PSD_MUST_CHECK;

/* How a process ended. */
struct psd_emulation_end {
	unsigned child, node;
	bool was_killed;    /* by a signal */
	int exit_or_signal; /* its exit status, or the signal's number if was_killed */
	double cpu_sec;	    /* user and system time */
	uint64_t peak_memory_bytes;
};

/* Waits, at most within_sec, until one of the processes ends or this one handles a signal. *has_ended: false when none
 * ended, or none runs; *end is then left alone. Each is told once. PSD_ENOMEM, PSD_ERUN: cannot wait. */
enum psd_status psd_emulation_wait(struct psd_emulation *emulation, double within_sec, bool *has_ended,
				   struct psd_emulation_end *end, struct psd_error *err) PSD_MUST_CHECK;

/* Sends the signal to a child; does nothing if it has ended. */
void psd_emulation_kill(struct psd_emulation *emulation, unsigned child, int signal_number);

#endif
