#define _GNU_SOURCE
#include "real/cluster/emulation.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

#include "engine/base/units.h"
#include "engine/scenario/scenario.h"
#include "real/cluster/link.h"
#include "real/cluster/namespaces.h"

#define FIRST_ADDRESS UINT32_C(0x0a000001) /* 10.0.0.1 */
#define PREFIX_BITS   16
#define BRIDGE	      1000U
#define FIRST_PORT    1001U
#define NODE_LINK     1000U
#define CONGESTION    "cubic" /* BBR, some machines' default, carries half as much over veth pairs as cubic */

/* A batch of TCP segments crosses the machine as one packet: MOST_BATCH_BYTES, or the bytes of BATCH_SEC at the link's
 * rate if these are fewer. That keeps 10 Gbit/s affordable, since a packet costs both ends an interrupt: batches of 250
 * us take 1.5 times the processor time of 500 us, those of 100 us twice (tests/bench/real/bench_emulation.c, two
 * cores). A shaper lets bytes of its burst pass at once. A busy processor calls a shaper late by up to a scheduler's
 * slice, about LATE_SEC at any rate; if the burst does not hold the bytes of that time, the link has lost them.
 * Measured with a parameter server on two cores: excess of messages over their time at the link's rate with bursts of
 * 0.5, 1, 2, 4 ms: four workers at 5 Gbit/s 28, 21, 11, 6 %, and 8 ms no less; three at 1 Gbit/s 4.7, 1.2, 0.3, 0.4 %.
 * Streams delay bytes that pass at once after a pause (real/net/emulated.h). A burst lasts BURST_SEC of the cluster's
 * time at least. */
#define MOST_BATCH_BYTES 65536.0
#define BATCH_SEC	 500e-6
#define LATE_SEC	 4e-3
#define BURST_SEC	 500e-6
#define MAX_BURST_BYTES	 16e6
/* The queue of a switch's port. Three senders to one get the full rate with 2 to 20 ms; a small message waits as
 * long. */
#define QUEUE_SEC	  5e-3
#define HEADER_BYTES	  52 /* IP, and TCP with time stamps */
#define FRAME_BYTES	  14 /* Ethernet */
#define MIN_QUEUE_BYTES	  262144
#define MAX_QUEUE_BYTES	  64e6
#define MIN_RECEIVE_BYTES 32768

struct psd_emulation {
	struct psd_namespaces namespaces; /* [0] the switch, [1 + node] the nodes */
	unsigned n_nodes;
	uint32_t mtu_bytes;
	double dilation_ratio;
	uint32_t receive_bytes; /* size of a connection's receive buffer; 0: the kernel's choice */
};

static struct psd_namespace *switch_of(struct psd_emulation *emulation)
{
	return &emulation->namespaces.nets[0];
}

static struct psd_namespace *node_of(struct psd_emulation *emulation, unsigned node)
{
	return &emulation->namespaces.nets[1 + node];
}

/* ---- shaping ---- */

struct shape {
	uint32_t burst_bytes, limit_bytes;
};

static uint32_t clamp(double value, double low, double high)
{
	return (uint32_t)(value < low ? low : value > high ? high : value);
}

static uint32_t batch_of(const struct psd_emulation *emulation, double rate_bps)
{
	return clamp(emulation->dilation_ratio * rate_bps / 8 * BATCH_SEC, emulation->mtu_bytes, MOST_BATCH_BYTES);
}

/* batch_bytes: the senders' batch on this link */
static struct shape shape_of(const struct psd_emulation *emulation, double rate_bps, uint32_t batch_bytes)
{
	const double bytes_per_sec = emulation->dilation_ratio * rate_bps / 8;
	const double burst_bytes = fmax(bytes_per_sec * BURST_SEC, rate_bps / 8 * LATE_SEC);

	return (struct shape){
		/* A batch with all its headers must fit, or the shaper takes it apart, or drops it. */
		.burst_bytes = clamp(burst_bytes, 1.125 * batch_bytes + 2 * emulation->mtu_bytes, MAX_BURST_BYTES),
		.limit_bytes = clamp(bytes_per_sec * QUEUE_SEC, MIN_QUEUE_BYTES, MAX_QUEUE_BYTES),
	};
}

static enum psd_status check_rate(double rate_bps, struct psd_error *err)
{
	char text[PSD_UNITS_TEXT_MAX];

	if (rate_bps >= PSD_RUN_MIN_BPS && rate_bps <= PSD_RUN_MAX_BPS)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "emulated cluster: a link of %s, must be 100kbps to 400Gbps",
			     psd_units_write_rate(rate_bps, text));
}

static enum psd_status set_rates(struct psd_emulation *emulation, unsigned node, double send_bps, double receive_bps,
				 struct psd_error *err)
{
	const uint32_t batch_bytes = batch_of(emulation, send_bps); /* equal on all nodes, so also on arrival */
	const struct shape out = shape_of(emulation, send_bps, batch_bytes),
			   in = shape_of(emulation, receive_bps, batch_bytes);

	PSD_TRY(check_rate(send_bps, err));
	PSD_TRY(check_rate(receive_bps, err));
	PSD_TRY(psd_link_set_batch(node_of(emulation, node)->netlink_fd, NODE_LINK, batch_bytes, err));
	PSD_TRY(psd_link_set_rate(node_of(emulation, node)->netlink_fd, NODE_LINK, send_bps, out.burst_bytes,
				  out.limit_bytes, err));
	return psd_link_set_rate(switch_of(emulation)->netlink_fd, FIRST_PORT + node, receive_bps, in.burst_bytes,
				 in.limit_bytes, err);
}

double psd_emulation_payload_ratio(uint32_t mtu_bytes)
{
	return (double)(mtu_bytes - HEADER_BYTES) / (double)(mtu_bytes + FRAME_BYTES);
}

/* ---- making ---- */

char *psd_emulation_address(unsigned node, char text[PSD_EMULATION_ADDRESS_MAX])
{
	const uint32_t address = FIRST_ADDRESS + node;

	snprintf(text, PSD_EMULATION_ADDRESS_MAX, "%u.%u.%u.%u", address >> 24, address >> 16 & 255, address >> 8 & 255,
		 address & 255);
	return text;
}

/* Measured with seven senders on links of 1 Gbit/s. With the kernel's buffers some senders are three times as fast as
 * others, and parameter servers wait for the last. With buffers of half a port's queue in total, shares are equal
 * within a tenth and nothing is lost; with all of the queue something is. */
static uint32_t buffer_of(const struct psd_emulation *emulation, const struct psd_emulation_options *options)
{
	const double receive_bps = options->has_receive_rate ? options->receive_bps : options->rate_bps;

	if (!options->has_rate || options->most_connections < 2)
		return 0;
	struct shape shape = shape_of(emulation, receive_bps, batch_of(emulation, options->rate_bps));
	return clamp(0.5 * shape.limit_bytes / options->most_connections, MIN_RECEIVE_BYTES, MAX_QUEUE_BYTES);
}

static enum psd_status join_node(struct psd_emulation *emulation, unsigned node, struct psd_error *err)
{
	const struct psd_namespace *const own = node_of(emulation, node);

	enum psd_status status =
		psd_link_add_pair(switch_of(emulation)->netlink_fd, BRIDGE, FIRST_PORT + node, own->net_fd, NODE_LINK,
				  FIRST_ADDRESS + node, emulation->mtu_bytes, err);
	if (status == PSD_OK)
		status = psd_link_set_up(own->netlink_fd, PSD_LINK_LOOPBACK, err);
	if (status == PSD_OK)
		status = psd_link_set_up(own->netlink_fd, NODE_LINK, err);
	if (status == PSD_OK)
		status = psd_link_set_address(own->netlink_fd, NODE_LINK, FIRST_ADDRESS + node, PREFIX_BITS, CONGESTION,
					      err);
	for (unsigned other = 0; status == PSD_OK && other < emulation->n_nodes; other++)
		if (other != node)
			status = psd_link_add_neighbour(own->netlink_fd, NODE_LINK, FIRST_ADDRESS + other, err);
	return status;
}

static enum psd_status join_all(struct psd_emulation *emulation, const struct psd_emulation_options *options,
				struct psd_error *err)
{
	enum psd_status status = psd_link_add_bridge(switch_of(emulation)->netlink_fd, BRIDGE, err);

	for (unsigned node = 0; status == PSD_OK && node < emulation->n_nodes; node++) {
		const double ratio = options->node_ratios ? options->node_ratios[node] : 1.0;
		const double receive_bps = options->has_receive_rate ? options->receive_bps : options->rate_bps;

		status = join_node(emulation, node, err);
		if (status == PSD_OK && options->has_rate)
			status = set_rates(emulation, node, ratio * options->rate_bps, ratio * receive_bps, err);
	}
	return status;
}

enum psd_status psd_emulation_open(const struct psd_emulation_options *options, struct psd_emulation **emulation,
				   struct psd_error *err)
{
	struct psd_emulation *made;

	if (options->n_nodes < 1 || options->n_nodes > PSD_EMULATION_MAX_NODES)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "emulated cluster: %u nodes, must be 1 to %d",
				     options->n_nodes, PSD_EMULATION_MAX_NODES);
	if (options->has_mtu &&
	    (options->mtu_bytes < PSD_EMULATION_MIN_MTU || options->mtu_bytes > PSD_EMULATION_MAX_MTU))
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "emulated cluster: an MTU of %u bytes, must be %u to %u", options->mtu_bytes,
				     PSD_EMULATION_MIN_MTU, PSD_EMULATION_MAX_MTU);
	made = calloc(1, sizeof(*made));
	if (!made)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	made->n_nodes = options->n_nodes;
	made->mtu_bytes = options->has_mtu ? options->mtu_bytes : PSD_EMULATION_DEFAULT_MTU;
	made->dilation_ratio = options->has_dilation ? options->dilation_ratio : 1.0;
	made->receive_bytes = buffer_of(made, options);
	enum psd_status status = psd_namespaces_open(&made->namespaces, 1 + options->n_nodes, err);
	if (status == PSD_OK)
		status = join_all(made, options, err);
	if (status != PSD_OK) {
		psd_emulation_close(made);
		return status;
	}
	*emulation = made;
	return PSD_OK;
}

/* ---- processes ---- */

/* Applies to each socket that is made in the node from now on. Where it is forbidden the kernel's sizes stay: slower,
 * not wrong. */
static void limit_buffers(uint32_t receive_bytes)
{
	const int fd = receive_bytes ? open("/proc/sys/net/ipv4/tcp_rmem", O_WRONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	(void)dprintf(fd, "4096 %u %u", receive_bytes, receive_bytes);
	close(fd);
}

enum psd_status psd_emulation_enter(struct psd_emulation *emulation, unsigned node, struct psd_error *err)
{
	const pid_t parent = getppid();

	assert(node < emulation->n_nodes);
	int error = psd_namespaces_enter(&emulation->namespaces, 1 + node);
	/* A change of rights clears the death signal, and the parent may have ended meanwhile. */
	if (!error && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		error = errno;
	if (getppid() != parent)
		_exit(1);
	psd_namespaces_close(&emulation->namespaces);
	if (error)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "emulated cluster: cannot move a process into node %u: %s", node, strerror(error));
	limit_buffers(emulation->receive_bytes);
	return PSD_OK;
}

void psd_emulation_close(struct psd_emulation *emulation)
{
	if (!emulation)
		return;
	psd_namespaces_close(&emulation->namespaces);
	free(emulation);
}
