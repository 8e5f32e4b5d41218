/* The rate limit of a node: bytes that the carriers of its hosts move, counted in each 100 ms. */
#include <criterion/criterion.h>

#include "real/net/segments.h"
#include "real/net/shaped.h"

#define WINDOW_SEC   0.1
#define RUN_SEC	     0.35
#define EXCESS_RATIO 0.05
#define LOST_RATIO   0.01
#define IDLE_SEC     0.05 /* a pause, after which a limiter that saves without end would let a burst pass */
#define TURN_SEC     13e-6

enum { MOST_MOVES = 1 << 16, CARRIERS = 3, MOST_HOSTS = 4, WANTED_BYTES = 1 << 20 };

struct move {
	double at_sec;
	uint64_t bytes;
};

struct moves {
	struct move all[MOST_MOVES];
	unsigned n;
};

static struct moves moved;
static double now_sec;

static double clock_sec(void)
{
	return now_sec;
}

/* The wire takes whatever it is given. */
static ssize_t take_all(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments)
{
	const uint64_t bytes = psd_segments_bytes(segments, n_segments);

	(void)carrier;
	cr_assert_lt(moved.n, MOST_MOVES);
	moved.all[moved.n++] = (struct move){now_sec, bytes};
	return (ssize_t)bytes;
}

static void release(struct psd_carrier *carrier)
{
	(void)carrier;
}

static const struct psd_transport wire = {.name = "wire", .send = take_all, .receive = take_all, .release = release};

/* Most bytes of any window that begins with a move. */
static uint64_t busiest_window(void)
{
	uint64_t bytes = 0, most = 0;

	for (unsigned first = 0, end = 0; first < moved.n; first++) {
		while (end < moved.n && moved.all[end].at_sec < moved.all[first].at_sec + WINDOW_SEC)
			bytes += moved.all[end++].bytes;
		most = bytes > most ? bytes : most;
		bytes -= moved.all[first].bytes;
	}
	return most;
}

/* Moves as fast as the limit allows, but for one pause. */
static void move_for(struct psd_carrier carriers[], bool sends)
{
	static char bytes[WANTED_BYTES];
	const struct iovec all = {bytes, sizeof(bytes)};
	const double start_sec = now_sec;

	moved.n = 0;
	for (unsigned i = 0; now_sec < start_sec + RUN_SEC; i++, now_sec += TURN_SEC) {
		struct psd_carrier *carrier = &carriers[i % CARRIERS];

		if (now_sec > start_sec + WINDOW_SEC && now_sec < start_sec + WINDOW_SEC + IDLE_SEC)
			continue;
		(void)(sends ? carrier->transport->send : carrier->transport->receive)(carrier, &all, 1);
	}
}

/* Hosts of a node share the limit; each has its share of the rate, as in a real run. */
struct node {
	struct psd_rate_limit limit;
	struct psd_shaper shapers[MOST_HOSTS];
	struct psd_carrier carriers[CARRIERS];
};

/* The carriers belong to the first hosts in turn; hosts without carriers are idle. */
static void open_node(struct node *node, double rate_bps, unsigned n_hosts, unsigned n_busy)
{
	now_sec = 1.0;
	psd_rate_limit_init(&node->limit);
	for (unsigned h = 0; h < n_hosts; h++) {
		psd_rate_limit_add(&node->limit, rate_bps / n_hosts, rate_bps / n_hosts, now_sec);
		node->shapers[h] = (struct psd_shaper){&node->limit, clock_sec};
	}
	for (unsigned c = 0; c < CARRIERS; c++) {
		node->carriers[c] = (struct psd_carrier){.transport = &wire, .fd = -1};
		cr_assert(psd_shaped_wrap(&node->shapers[c % n_busy], &node->carriers[c]));
	}
}

static void close_node(struct node *node)
{
	for (unsigned c = 0; c < CARRIERS; c++)
		node->carriers[c].transport->release(&node->carriers[c]);
}

static void expect_budget(double rate_bps, unsigned n_hosts, unsigned n_busy, bool sends)
{
	struct node node;
	uint64_t all_bytes = 0;

	open_node(&node, rate_bps, n_hosts, n_busy);
	move_for(node.carriers, sends);
	for (unsigned m = 0; m < moved.n; m++)
		all_bytes += moved.all[m].bytes;
	const double busiest_bytes = (double)busiest_window();
	const double window_bytes = WINDOW_SEC * rate_bps / 8, whole_bytes = (RUN_SEC - IDLE_SEC) * rate_bps / 8;

	cr_expect_leq(busiest_bytes, (1.0 + EXCESS_RATIO) * window_bytes, "%g bps, %u of %u: %g bytes in 100 ms",
		      rate_bps, n_busy, n_hosts, busiest_bytes);
	/* nothing but the pause is lost, and no share of an idle host */
	cr_expect_geq((double)all_bytes, (1.0 - LOST_RATIO) * whole_bytes, "%g bps, %u of %u: %g bytes in all",
		      rate_bps, n_busy, n_hosts, (double)all_bytes);
	close_node(&node);
}

/* The smallest budget of a scenario, the one of the documents, and one whose grants are worth a system call each. */
static const double rates_bps[] = {10e6, 40e6, 1e9};

enum { RATES = sizeof(rates_bps) / sizeof(rates_bps[0]) };

Test(shaped, any_100_ms_have_no_more_than_five_per_cent_above_the_rate)
{
	for (unsigned r = 0; r < 2 * RATES; r++)
		expect_budget(rates_bps[r / 2], 1, 1, r % 2);
}

Test(shaped, hosts_of_a_node_use_the_shares_of_idle_ones)
{
	for (unsigned r = 0; r < 2 * RATES; r++)
		for (unsigned n_busy = 1; n_busy <= 2; n_busy++) {
			expect_budget(rates_bps[r / 2], 2, n_busy, r % 2);
			expect_budget(rates_bps[r / 2], MOST_HOSTS, n_busy, r % 2);
		}
}

/* ---- late hosts ---- */

/* Shorter than what is saved by a grant of a packet at 10 Mbit/s, 1.2 ms: only whole grants are moved. */
#define LATE_SEC 2.5e-3

/* Moves all that the limit allows whenever a core is free, once in LATE_SEC. */
static uint64_t move_late(struct psd_carrier *carrier, bool sends)
{
	static char bytes[WANTED_BYTES];
	const struct iovec all = {bytes, sizeof(bytes)};
	const double start_sec = now_sec;
	uint64_t all_bytes = 0;
	ssize_t n = 0;

	moved.n = 0;
	for (; now_sec < start_sec + RUN_SEC; now_sec += LATE_SEC)
		do {
			n = (sends ? carrier->transport->send : carrier->transport->receive)(carrier, &all, 1);
			all_bytes += n > 0 ? (uint64_t)n : 0;
		} while (n > 0);
	return all_bytes;
}

Test(shaped, a_host_that_waits_for_a_core_loses_no_rate)
{
	for (unsigned r = 0; r < 2 * RATES; r++) {
		const double rate_bps = rates_bps[r / 2];
		struct node node;

		open_node(&node, rate_bps, 1, 1);
		const double all_bytes = (double)move_late(&node.carriers[0], r % 2);

		cr_expect_geq(all_bytes, (1.0 - LOST_RATIO) * RUN_SEC * rate_bps / 8, "%g bps: %g bytes", rate_bps,
			      all_bytes);
		cr_expect_leq((double)busiest_window(), (1.0 + EXCESS_RATIO) * WINDOW_SEC * rate_bps / 8, "%g bps",
			      rate_bps);
		close_node(&node);
	}
}
