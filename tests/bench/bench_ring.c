/* Cost of rings in SimGrid: wall seconds and memory of a whole process each, platform included. CSV, one line per case.
 * Exits 1 if the simulated time is wrong. */
#define _DEFAULT_SOURCE

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/scenario/scenario.h"
#include "sim/network/network.h"

#define LATENCY_SEC	10e-6
#define LINK_BPS	80e9
#define GRADIENT_BYTES	(UINT64_C(64) << 20)
#define TOLERANCE_RATIO 1e-3 /* chunks are rounded down to whole bytes */

struct ring {
	const char *fidelity;
	unsigned hosts;
	unsigned steps; /* steps of one all-reduce, in sequence */
	unsigned repeats;
	uint64_t chunk_bytes;
	double latency_sec; /* latency of one step */
	unsigned *started, *sent, *arrived;
	unsigned n_left; /* hosts that have not finished the repeat */
};

/* Cookies: host, then host + hosts for an arrival. Step k + 1 starts when the host's step k was sent and its
 * predecessor's arrived. */
static void start_step(struct ring *ring, unsigned host)
{
	const unsigned step = ring->started[host];

	if (step == ring->steps || ring->sent[host] < step || ring->arrived[host] < step)
		return;
	ring->started[host]++;
	psd_network_transfer(host, (host + 1) % ring->hosts, ring->chunk_bytes, host);
}

static void start_ring(struct ring *ring)
{
	ring->repeats--;
	ring->n_left = ring->hosts;
	for (unsigned host = 0; host < ring->hosts; host++)
		ring->started[host] = ring->sent[host] = ring->arrived[host] = 0;
	for (unsigned host = 0; host < ring->hosts; host++)
		start_step(ring, host);
}

static void wake(void *context, uint64_t tag)
{
	struct ring *ring = context;
	const unsigned host = (unsigned)(tag % ring->hosts), next = (host + 1) % ring->hosts;

	if (tag < ring->hosts) {
		ring->sent[host]++;
		psd_network_timer(ring->latency_sec, ring->hosts + next);
		start_step(ring, host);
		return;
	}
	ring->arrived[host]++;
	start_step(ring, host);
	if (ring->arrived[host] == ring->steps && --ring->n_left == 0 && ring->repeats)
		start_ring(ring);
}

/* Returns 0 if the simulated time is the closed form. */
static int simulate(struct ring ring)
{
	const struct psd_platform platform = {.topology = PSD_TOPOLOGY_STAR,
					      .nodes = ring.hosts,
					      .workers_per_node = 1,
					      .workers = ring.hosts,
					      .send_bps = LINK_BPS,
					      .receive_bps = LINK_BPS,
					      .latency_sec = LATENCY_SEC,
					      .link_bps = LINK_BPS};
	const double expected_sec =
		ring.repeats * ring.steps * (ring.latency_sec + 8.0 * (double)ring.chunk_bytes / LINK_BPS);
	struct psd_error err;
	unsigned *counters = calloc(3 * (size_t)ring.hosts, sizeof(*counters));

	if (!counters)
		return 1;
	ring.started = counters;
	ring.sent = counters + ring.hosts;
	ring.arrived = counters + 2 * (size_t)ring.hosts;
	if (psd_network_open(&platform, wake, &ring, &err) != PSD_OK) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	start_ring(&ring);
	if (psd_network_run(&err) != PSD_OK) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	free(counters);
	return fabs(psd_network_now_sec() / expected_sec - 1) > TOLERANCE_RATIO;
}

static double now_sec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* One process per case, as psd-sim does: memory does not add up, and SimGrid is one per process. Pages of the libraries
 * that the child does not touch are not in its memory: another 25 MiB for a program of its own. */
static int measure(struct ring ring)
{
	const double start_sec = now_sec();
	struct rusage usage;
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(simulate(ring));
	if (child < 0 || wait4(child, &status, 0, &usage) != child)
		return 1;
	printf("%u,%s,%u,%.3f,%.3f,%.1f,%s\n", ring.hosts, ring.fidelity, ring.hosts * ring.steps * ring.repeats,
	       now_sec() - start_sec,
	       (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
		       1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec),
	       (double)usage.ru_maxrss / 1024, status ? "wrong" : "right");
	return status != 0;
}

static struct ring by_message(unsigned hosts)
{
	return (struct ring){.fidelity = "message",
			     .hosts = hosts,
			     .steps = 2 * (hosts - 1),
			     .repeats = 1,
			     .chunk_bytes = GRADIENT_BYTES / hosts,
			     .latency_sec = LATENCY_SEC};
}

static struct ring by_flow(const char *fidelity, unsigned hosts, unsigned repeats)
{
	return (struct ring){.fidelity = fidelity,
			     .hosts = hosts,
			     .steps = 1,
			     .repeats = repeats,
			     .chunk_bytes = GRADIENT_BYTES / hosts * 2 * (hosts - 1),
			     .latency_sec = 2 * (hosts - 1) * LATENCY_SEC};
}

int main(void)
{
	int n_wrong = 0;

	puts("hosts,fidelity,transfers,wall_sec,cpu_sec,rss_mib,simulated_time");
	n_wrong += measure(by_message(8));
	n_wrong += measure(by_message(64));
	n_wrong += measure(by_message(128));
	n_wrong += measure(by_message(512));
	n_wrong += measure(by_message(1024));
	n_wrong += measure(by_flow("flow", 512, 1));
	n_wrong += measure(by_flow("flow", 4096, 1));
	n_wrong += measure(by_flow("flow 467 in sequence", 256, 467));
	return n_wrong != 0;
}
