/* The first host of a node makes the memory and gives it to the others. A host that cannot take it keeps to its share
 * alone, so the sum is right nevertheless. */
#define _GNU_SOURCE
#include "real/net/rate_limit.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "real/net/node_memory.h"

enum {
	MIN_GRANT_BYTES = 16 * 1024, /* worth a system call */
	PACKET_BYTES = 1448,
};

#define GRANT_SEC      500e-6 /* duration of a burst on the link */
#define MOST_GRANT_SEC 1e-3   /* a 16 KiB grant would take longer at low rates */
/* Time for which an idle node saves its rate. A thread that waits for a core is late by up to a scheduler's slice, 4
 * ms (real/cluster/emulation.c), and loses the rate that it cannot save; on a node of several hosts another one may
 * use it. Kernel's buffers add to the excess over the rate, more with several hosts. Largest excess of any 100 ms, all
 * packets and acknowledgements counted, with a ring and a parameter server of 2 nodes at 60 Mbit/s, 1, 2 and 4 hosts a
 * node: 3.2, 2.8 and 3.8 %. With 3.5 ms also for several hosts it is 2 % more with 4. */
#define SAVED_SEC	 3.5e-3
#define SHARED_SAVED_SEC 2.5e-3

static uint64_t saved_bytes(const struct psd_rate_limit *limit, double rate_bps)
{
	const double saved_sec = limit->n_hosts > 1 ? SHARED_SAVED_SEC : SAVED_SEC;

	return (uint64_t)fmax(rate_bps / 8 * saved_sec, 2.0 * (double)limit->grant_bytes);
}

void psd_rate_limit_init(struct psd_rate_limit *limit)
{
	pthread_mutexattr_t kind;

	*limit = (struct psd_rate_limit){.grant_bytes = 0};
	(void)pthread_mutexattr_init(&kind); /* none of these fails on Linux */
	(void)pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
	(void)pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
	(void)pthread_mutex_init(&limit->mutex, &kind);
	(void)pthread_mutexattr_destroy(&kind);
}

/* A bucket is valid at each moment, so a host that was killed leaves no damage. */
static void lock(struct psd_rate_limit *limit)
{
	if (pthread_mutex_lock(&limit->mutex) == EOWNERDEAD)
		(void)pthread_mutex_consistent(&limit->mutex);
}

static void unlock(struct psd_rate_limit *limit)
{
	(void)pthread_mutex_unlock(&limit->mutex);
}

void psd_rate_limit_add(struct psd_rate_limit *limit, double send_bps, double receive_bps, double now_sec)
{
	lock(limit);
	const double all_bps[2] = {8 * limit->buckets[0].bytes_per_sec + receive_bps,
				   8 * limit->buckets[1].bytes_per_sec + send_bps};
	const double bytes_per_sec = fmin(all_bps[0], all_bps[1]) / 8;
	const double worth_bytes = fmax(bytes_per_sec * GRANT_SEC, MIN_GRANT_BYTES);
	const double grant_bytes = fmax(fmin(worth_bytes, bytes_per_sec * MOST_GRANT_SEC), PACKET_BYTES);

	limit->n_hosts++;
	limit->grant_bytes = (size_t)grant_bytes;
	for (unsigned b = 0; b < 2; b++)
		psd_bucket_change(&limit->buckets[b], all_bps[b], saved_bytes(limit, all_bps[b]), now_sec);
	unlock(limit);
}

uint64_t psd_rate_limit_take(struct psd_rate_limit *limit, bool sends, uint64_t wanted_bytes, double now_sec,
			     double *ready_sec)
{
	struct psd_bucket *bucket = &limit->buckets[sends];
	uint64_t granted_bytes = 0;

	lock(limit);
	const uint64_t most_bytes = wanted_bytes < limit->grant_bytes ? wanted_bytes : limit->grant_bytes;
	*ready_sec = psd_bucket_ready_sec(bucket, most_bytes, now_sec);
	if (*ready_sec <= now_sec)
		granted_bytes = psd_bucket_take(bucket, most_bytes, now_sec);
	unlock(limit);
	return granted_bytes;
}

void psd_rate_limit_give_back(struct psd_rate_limit *limit, bool sends, uint64_t unmoved_bytes)
{
	lock(limit);
	psd_bucket_give_back(&limit->buckets[sends], unmoved_bytes);
	unlock(limit);
}

/* ---- sharing ---- */

static void init(void *bytes)
{
	psd_rate_limit_init(bytes);
}

/* Gives the memory to all other hosts of the node. */
static enum psd_status give_all(struct psd_node_meeting *meeting, struct psd_rate_limit **limit, struct psd_error *err)
{
	const struct psd_mesh_options *mesh = meeting->join->mesh;
	const unsigned end = mesh->self + psd_layout_hosts_beside(mesh->layout, mesh->self);
	struct psd_node_memory memory = {.fd = -1};
	enum psd_status status = PSD_OK;
	bool is_taken = false;

	for (unsigned peer = mesh->self + 1; peer < end && !status; peer++) {
		meeting->peer = peer;
		meeting->fd = meeting->join->fds[peer * mesh->n_connections];
		status = psd_node_memory_give(meeting, &memory, &is_taken, err);
	}
	if (memory.fd >= 0)
		close(memory.fd);
	*limit = memory.bytes;
	return status;
}

enum psd_status psd_rate_limit_share(const struct psd_transport_join *join, struct psd_rate_limit **limit,
				     struct psd_error *err)
{
	const struct psd_mesh_options *mesh = join->mesh;
	const unsigned first = psd_layout_first(mesh->layout, psd_layout_node(mesh->layout, mesh->self));
	bool has_remarked = false;
	struct psd_node_meeting meeting = {.join = join,
					   .peer = first,
					   .fd = join->fds[first * mesh->n_connections],
					   .n_bytes = sizeof(**limit),
					   .init = init,
					   .otherwise = "neither uses the other one's part of the budget",
					   .has_remarked = &has_remarked};
	void *bytes = NULL;

	if (mesh->self == first)
		return give_all(&meeting, limit, err);
	const enum psd_status status = psd_node_memory_take(&meeting, &bytes, err);
	*limit = bytes;
	return status;
}

void psd_rate_limit_unshare(struct psd_rate_limit *limit)
{
	psd_node_memory_unmap(limit, sizeof(*limit));
}
