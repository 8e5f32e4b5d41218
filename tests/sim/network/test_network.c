/* SimGrid behind network.h against closed forms. Each case is a process of its own, so each may open one network. */
#define _POSIX_C_SOURCE 200809L

#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/scenario/scenario.h"
#include "sim/network/platform.h"

#define CLOSED_FORM_RATIO 1e-3
#define FLUID_RATIO	  1e-6 /* SimGrid ends what is within 1 ns of now */
#define MEBIBYTE	  (UINT64_C(1) << 20)

#define assert_near(value, expected, ratio)                                                                            \
	cr_assert(fabs((value) - (expected)) <= (ratio)*fabs((double)(expected)), "%s is %.9g, expected %.9g", #value, \
		  (double)(value), (double)(expected))

/* ---- the log of a run ---- */

enum { LOG_MAX = 4096 };

/* Each case is a process, and has one. */
static struct log {
	uint64_t cookies[LOG_MAX];
	double dates_sec[LOG_MAX];
	unsigned n;
} wakes;

static void note(void *context, uint64_t tag)
{
	(void)context;
	cr_assert_lt(wakes.n, LOG_MAX);
	wakes.cookies[wakes.n] = tag;
	wakes.dates_sec[wakes.n++] = psd_network_now_sec();
}

static double date_sec(uint64_t tag)
{
	for (unsigned i = 0; i < wakes.n; i++)
		if (wakes.cookies[i] == tag)
			return wakes.dates_sec[i];
	cr_assert_fail("nobody woke with tag %llu", (unsigned long long)tag);
	return 0;
}

static struct psd_platform star(unsigned nodes)
{
	return (struct psd_platform){.topology = PSD_TOPOLOGY_STAR,
				     .nodes = nodes,
				     .workers_per_node = 1,
				     .workers = nodes,
				     .send_bps = 10e9,
				     .receive_bps = 10e9,
				     .latency_sec = 10e-6,
				     .nodes_per_rack = nodes,
				     .oversubscription_ratio = 1,
				     .link_bps = 10e9};
}

static void open_with(const struct psd_platform *platform, psd_wake_fn wake, void *context)
{
	struct psd_error err = {0};

	cr_assert_eq(psd_network_open(platform, wake, context, &err), PSD_OK, "%s", err.text);
}

static void open_log(const struct psd_platform *platform, psd_wake_fn wake)
{
	open_with(platform, wake, NULL);
}

static void run(void)
{
	struct psd_error err = {0};

	cr_assert_eq(psd_network_run(&err), PSD_OK, "%s", err.text);
}

static double seconds(uint64_t bytes, double rate_bps)
{
	return 8.0 * (double)bytes / rate_bps;
}

/* ---- ring ---- */

struct ring {
	unsigned hosts, steps;
	uint64_t chunk_bytes;
	unsigned sent[64], arrived[64], started[64];
};

static void start_step(struct ring *ring, unsigned host)
{
	const unsigned step = ring->started[host];

	if (step == ring->steps || ring->sent[host] < step || ring->arrived[host] < step)
		return;
	ring->started[host]++;
	psd_network_transfer(host, (host + 1) % ring->hosts, ring->chunk_bytes, host);
}

static void wake_ring(void *context, uint64_t tag)
{
	struct ring *ring = context;
	const unsigned host = (unsigned)(tag % ring->hosts), next = (host + 1) % ring->hosts;

	if (tag < ring->hosts) {
		ring->sent[host]++;
		psd_network_timer(psd_network_latency_sec(host, next), ring->hosts + next);
	} else {
		ring->arrived[host]++;
	}
	start_step(ring, host);
}

Test(network, ring_of_64_takes_the_closed_form)
{
	static struct ring ring = {.hosts = 64, .steps = 2 * 63, .chunk_bytes = 64 * MEBIBYTE / 64};
	const struct psd_platform platform = star(64);
	/* every host sends 2 (P - 1) chunks of S / P, each after the one before has arrived */
	const double expected_sec = 2 * 63 * (10e-6 + seconds(64 * MEBIBYTE, 10e9) / 64);

	open_with(&platform, wake_ring, &ring);
	for (unsigned host = 0; host < 64; host++)
		start_step(&ring, host);
	run();
	assert_near(psd_network_now_sec(), expected_sec, CLOSED_FORM_RATIO);
	for (unsigned host = 0; host < 64; host++)
		cr_assert_eq(ring.arrived[host], 2 * 63);
}

/* ---- sharing ---- */

Test(network, push_of_8_is_bounded_by_the_receiver)
{
	const struct psd_platform platform = star(9);

	open_log(&platform, note);
	for (unsigned host = 1; host <= 8; host++)
		psd_network_transfer(host, 0, 100 * MEBIBYTE, host);
	run();
	cr_assert_eq(wakes.n, 8);
	for (unsigned i = 0; i < 8; i++) { /* all end together, in the order of their start */
		assert_near(wakes.dates_sec[i], seconds(800 * MEBIBYTE, 10e9), FLUID_RATIO);
		cr_assert_eq(wakes.cookies[i], i + 1);
	}
}

Test(network, both_directions_of_a_link_are_free_of_each_other)
{
	struct psd_platform platform = star(2);

	platform.receive_bps = 5e9; /* and have their own capacities */
	open_log(&platform, note);
	psd_network_transfer(0, 1, 100 * MEBIBYTE, 1);
	psd_network_transfer(1, 0, 100 * MEBIBYTE, 2);
	run();
	assert_near(date_sec(1), seconds(100 * MEBIBYTE, 5e9), FLUID_RATIO);
	assert_near(date_sec(2), seconds(100 * MEBIBYTE, 5e9), FLUID_RATIO);
}

Test(network, sender_is_bounded_by_its_own_way_out)
{
	struct psd_platform platform = star(3);

	platform.send_bps = 4e9;
	open_log(&platform, note);
	psd_network_transfer(0, 1, 100 * MEBIBYTE, 1);
	psd_network_transfer(0, 2, 100 * MEBIBYTE, 2);
	run();
	assert_near(date_sec(1), seconds(200 * MEBIBYTE, 4e9), FLUID_RATIO);
}

Test(network, pairs_are_used_again_with_new_sizes)
{
	const struct psd_platform platform = star(2);

	open_log(&platform, note);
	for (unsigned i = 1; i <= 3; i++) {
		psd_network_transfer(0, 1, i * MEBIBYTE, i);
		run();
	}
	assert_near(date_sec(1), seconds(1 * MEBIBYTE, 10e9), FLUID_RATIO);
	assert_near(date_sec(2), seconds(3 * MEBIBYTE, 10e9), FLUID_RATIO);
	assert_near(date_sec(3), seconds(6 * MEBIBYTE, 10e9), FLUID_RATIO);
}

static void start_same_pair(void *context, uint64_t tag)
{
	note(context, tag);
	if (tag < 5)
		psd_network_transfer(0, 1, MEBIBYTE, tag + 1);
}

Test(network, a_pair_is_used_again_by_its_own_wake)
{
	const struct psd_platform platform = star(2);

	open_log(&platform, start_same_pair);
	psd_network_transfer(0, 1, MEBIBYTE, 1);
	run();
	cr_assert_eq(wakes.n, 5);
	assert_near(date_sec(5), seconds(5 * MEBIBYTE, 10e9), FLUID_RATIO);
}

/* ---- topologies ---- */

static struct psd_platform racked(unsigned topology)
{
	struct psd_platform platform = star(8);

	platform.topology = topology;
	platform.nodes_per_rack = 4;
	platform.oversubscription_ratio = 4;
	return platform;
}

Test(network, rack_uplink_bounds_what_leaves_the_rack)
{
	const struct psd_platform platform = racked(PSD_TOPOLOGY_RACKS);

	open_log(&platform, note);
	for (unsigned host = 0; host < 4; host++)
		psd_network_transfer(host, 4 + host, 10 * MEBIBYTE, host); /* the other rack */
	run();
	/* 4 nodes of 10 Gb/s behind 4 * 10 / 4 Gb/s */
	assert_near(psd_network_now_sec(), seconds(40 * MEBIBYTE, 10e9), FLUID_RATIO);
}

Test(network, rack_uplink_is_full_duplex)
{
	const struct psd_platform platform = racked(PSD_TOPOLOGY_RACKS);

	open_log(&platform, note);
	for (unsigned host = 0; host < 8; host++)
		psd_network_transfer(host, (host + 4) % 8, 10 * MEBIBYTE, host);
	run();
	assert_near(psd_network_now_sec(), seconds(40 * MEBIBYTE, 10e9), FLUID_RATIO);
}

Test(network, traffic_within_a_rack_is_not_slowed)
{
	const struct psd_platform platform = racked(PSD_TOPOLOGY_RACKS);

	open_log(&platform, note);
	for (unsigned host = 0; host < 4; host++)
		psd_network_transfer(host, (host + 1) % 4, 10 * MEBIBYTE, host);
	run();
	assert_near(psd_network_now_sec(), seconds(10 * MEBIBYTE, 10e9), FLUID_RATIO);
}

Test(network, fat_tree_spines_are_chosen_by_the_receiver)
{
	struct psd_platform platform = racked(PSD_TOPOLOGY_FAT_TREE);

	platform.oversubscription_ratio = 2; /* 4 nodes of 10 Gb/s per leaf: two uplinks of 10 Gb/s */
	open_log(&platform, note);
	psd_network_transfer(0, 4, 10 * MEBIBYTE, 1); /* spine 0, alone */
	psd_network_transfer(1, 5, 10 * MEBIBYTE, 2); /* spine 1, shared with the next */
	psd_network_transfer(2, 7, 10 * MEBIBYTE, 3);
	run();
	assert_near(date_sec(1), seconds(10 * MEBIBYTE, 10e9), FLUID_RATIO);
	assert_near(date_sec(2), seconds(20 * MEBIBYTE, 10e9), FLUID_RATIO);
	assert_near(date_sec(3), seconds(20 * MEBIBYTE, 10e9), FLUID_RATIO);
}

Test(network, servers_and_a_rack_that_is_not_full_have_ways)
{
	struct psd_platform platform = racked(PSD_TOPOLOGY_FAT_TREE);

	platform.nodes = platform.workers = 5;
	platform.servers = 2;
	open_log(&platform, note);
	psd_network_transfer(0, 6, MEBIBYTE, 1);
	run();
	assert_near(date_sec(1), seconds(MEBIBYTE, 10e9), FLUID_RATIO);
}

/* Both servers receive from the other rack. In one rack they share its link of 10 Gb/s. */
Test(network, servers_are_in_the_racks_that_are_named)
{
	static struct log log;
	static const uint64_t servers_in[] = {1};
	struct psd_platform platform = racked(PSD_TOPOLOGY_RACKS);

	platform.servers = 2;
	platform.servers_in = servers_in;
	platform.n_servers_in = 1;
	open_with(&platform, note, &log);
	psd_network_transfer(0, 8, 10 * MEBIBYTE, 1);
	psd_network_transfer(1, 9, 10 * MEBIBYTE, 2);
	run();
	assert_near(psd_network_now_sec(), seconds(20 * MEBIBYTE, 10e9), FLUID_RATIO);
}

/* The first server is in the sender's rack. */
Test(network, servers_spread_over_the_racks)
{
	static struct log log;
	struct psd_platform platform = racked(PSD_TOPOLOGY_RACKS);

	platform.servers = 2;
	open_with(&platform, note, &log);
	psd_network_transfer(0, 8, 10 * MEBIBYTE, 1);
	psd_network_transfer(1, 9, 10 * MEBIBYTE, 2);
	run();
	assert_near(psd_network_now_sec(), seconds(10 * MEBIBYTE, 10e9), FLUID_RATIO);
}

static struct psd_platform nodes_of_two(void)
{
	struct psd_platform platform = star(2);

	platform.workers_per_node = 2;
	platform.workers = 4;
	platform.local_bps = 100e9;
	return platform;
}

Test(network, local_traffic_does_not_touch_the_nodes_link)
{
	const struct psd_platform platform = nodes_of_two();

	open_log(&platform, note);
	psd_network_transfer(0, 1, 100 * MEBIBYTE, 1); /* node 0, from worker to worker */
	psd_network_transfer(0, 2, 100 * MEBIBYTE, 2); /* to node 1 */
	run();
	assert_near(date_sec(1), seconds(100 * MEBIBYTE, 100e9), FLUID_RATIO);
	assert_near(date_sec(2), seconds(100 * MEBIBYTE, 10e9), FLUID_RATIO);
	cr_assert_eq(psd_network_latency_sec(0, 1), 0);
	cr_assert_eq(psd_network_latency_sec(0, 2), 10e-6);
}

Test(network, workers_of_a_node_share_its_link)
{
	const struct psd_platform platform = nodes_of_two();

	open_log(&platform, note);
	psd_network_transfer(0, 2, 100 * MEBIBYTE, 1);
	psd_network_transfer(1, 3, 100 * MEBIBYTE, 2);
	run();
	assert_near(date_sec(1), seconds(200 * MEBIBYTE, 10e9), FLUID_RATIO);
}

/* Two nodes of 4 workers behind 2 switches. */
static struct psd_platform nodes_of_two_switches(void)
{
	struct psd_platform platform = star(2);

	platform.workers_per_node = 4;
	platform.workers = 8;
	platform.local_bps = 100e9;
	platform.local_latency_sec = 3e-6;
	platform.workers_per_switch = 2;
	platform.between_bps = 40e9;
	return platform;
}

/* 0 and 1 send to the other switch and share the uplink, 20 Gb/s each; 3 sends back to 1 through an uplink of its own:
 * 40. The transfer from 0 to 1 passes no uplink. It has the rest of worker 1's link, 60 Gb/s, and once 3 is through,
 * the rest of worker 0's: 80. */
Test(network, only_what_crosses_loads_the_uplinks_of_switches)
{
	const struct psd_platform platform = nodes_of_two_switches();

	open_log(&platform, note);
	psd_network_transfer(0, 2, 100 * MEBIBYTE, 1);
	psd_network_transfer(1, 3, 100 * MEBIBYTE, 2);
	psd_network_transfer(0, 1, 200 * MEBIBYTE, 3);
	psd_network_transfer(3, 1, 100 * MEBIBYTE, 4);
	run();
	assert_near(date_sec(1), seconds(200 * MEBIBYTE, 40e9), FLUID_RATIO);
	assert_near(date_sec(2), seconds(200 * MEBIBYTE, 40e9), FLUID_RATIO);
	const double four_sec = seconds(100 * MEBIBYTE, 40e9);
	assert_near(date_sec(4), four_sec, FLUID_RATIO);
	assert_near(date_sec(3), four_sec + (seconds(200 * MEBIBYTE, 1) - 60e9 * four_sec) / 80e9, FLUID_RATIO);
	cr_assert_eq(psd_network_latency_sec(0, 1), 3e-6);
	cr_assert_eq(psd_network_latency_sec(0, 2), 3e-6);
	cr_assert_eq(psd_network_latency_sec(0, 4), 10e-6);
}

/* An uplink slower than the node's link holds up what leaves the node, and what crosses inside it at the same time. */
Test(network, traffic_that_leaves_a_node_passes_the_switch)
{
	struct psd_platform platform = nodes_of_two_switches();

	platform.between_bps = 4e9;
	open_log(&platform, note);
	psd_network_transfer(0, 4, 10 * MEBIBYTE, 1);
	psd_network_transfer(1, 2, 10 * MEBIBYTE, 2);
	psd_network_transfer(3, 7, 10 * MEBIBYTE, 3);
	run();
	assert_near(date_sec(1), seconds(20 * MEBIBYTE, 4e9), FLUID_RATIO);
	assert_near(date_sec(2), seconds(20 * MEBIBYTE, 4e9), FLUID_RATIO);
	assert_near(date_sec(3), seconds(10 * MEBIBYTE, 4e9), FLUID_RATIO);
}

/* And the worker's own link: of two messages each has half of it, out of their sender or into their receiver. */
Test(network, traffic_that_leaves_a_node_behind_switches_passes_the_workers_link)
{
	struct psd_platform platform = nodes_of_two_switches();

	platform.local_bps = 4e9;
	open_log(&platform, note);
	psd_network_transfer(0, 4, 10 * MEBIBYTE, 1);
	psd_network_transfer(0, 5, 10 * MEBIBYTE, 2);
	psd_network_transfer(1, 6, 10 * MEBIBYTE, 3);
	psd_network_transfer(2, 6, 10 * MEBIBYTE, 4);
	run();
	for (unsigned i = 1; i <= 4; i++)
		assert_near(date_sec(i), seconds(20 * MEBIBYTE, 4e9), FLUID_RATIO);
}

/* ---- links that change ---- */

static void scale_on_wake(void *context, uint64_t tag)
{
	note(context, tag);
	if (tag == 100)
		psd_network_scale_link(0, 0.25);
	if (tag == 101)
		psd_network_scale_link(0, 1);
}

Test(network, a_slow_link_slows_transfers_under_way_until_it_is_fast_again)
{
	const struct psd_platform platform = star(3);
	const uint64_t bytes = UINT64_C(1250000000); /* 1 s at 10 Gb/s */

	open_log(&platform, scale_on_wake);
	psd_network_transfer(0, 1, bytes, 1);
	psd_network_transfer(2, 1, 0, 2);
	psd_network_timer(0.5, 100);
	psd_network_timer(0.9, 101);
	run();
	/* half is through at 0.5 s, another 0.1 at 0.9 s, the rest takes 0.4 s */
	assert_near(date_sec(1), 1.3, FLUID_RATIO);
	cr_assert_eq(date_sec(2), 0);
}

Test(network, a_transfer_that_started_on_a_slow_link_gets_faster_with_it)
{
	const struct psd_platform platform = star(2);

	open_log(&platform, scale_on_wake);
	psd_network_scale_link(0, 0.5);
	psd_network_transfer(1, 0, UINT64_C(1250000000), 1);
	psd_network_timer(1, 101);
	run();
	assert_near(date_sec(1), 1.5, FLUID_RATIO);
}

/* ---- order ---- */

static void start_more(void *context, uint64_t tag)
{
	note(context, tag);
	if (tag == 1) {
		psd_network_timer(0, 10);
		psd_network_timer(0, 11);
	}
}

Test(network, timers_wake_by_date_then_by_start)
{
	static const uint64_t expected[] = {4, 1, 3, 10, 11, 2};
	const struct psd_platform platform = star(2);

	open_log(&platform, start_more);
	psd_network_timer(2e-3, 1);
	psd_network_timer(5e-3, 2);
	psd_network_timer(2e-3, 3);
	psd_network_timer(1e-3, 4);
	run();
	cr_assert_eq(wakes.n, 6);
	for (unsigned i = 0; i < 6; i++)
		cr_assert_eq(wakes.cookies[i], expected[i]);
	assert_near(date_sec(11), 2e-3, FLUID_RATIO);
}

Test(network, timers_come_before_transfers_of_their_date)
{
	const struct psd_platform platform = star(2);

	open_log(&platform, note);
	psd_network_transfer(0, 1, UINT64_C(1250000000), 1); /* exactly 1 s */
	psd_network_timer(1, 2);
	run();
	cr_assert_eq(wakes.cookies[0], 2);
	cr_assert_eq(wakes.cookies[1], 1);
	cr_assert_eq(wakes.dates_sec[0], wakes.dates_sec[1]);
}

static void stop_at_first(void *context, uint64_t tag)
{
	note(context, tag);
	if (wakes.n == 1)
		psd_network_stop();
}

Test(network, stop_holds_back_the_rest_until_the_next_run)
{
	const struct psd_platform platform = star(4);

	open_log(&platform, stop_at_first);
	for (unsigned host = 0; host < 4; host++)
		psd_network_transfer(host, (host + 1) % 4, MEBIBYTE, host);
	psd_network_timer(1, 9);
	run();
	cr_assert_eq(wakes.n, 1);
	run();
	cr_assert_eq(wakes.n, 5);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(wakes.cookies[i], i);
	cr_assert_eq(wakes.dates_sec[4], 1);
}

/* Cookie 1 stops before 2 is reported; the timer 3 stops again just before, and 4 is so short that it ends in that very
 * instant. */
static void stop_twice(void *context, uint64_t tag)
{
	note(context, tag);
	if (tag == 1) {
		psd_network_transfer(2, 3, 1, 4);
		psd_network_timer(0, 3);
	}
	if (tag == 1 || tag == 3)
		psd_network_stop();
}

Test(network, an_event_held_back_by_a_stop_is_reported_once_and_used_again)
{
	static const uint64_t expected[] = {1, 3, 2, 4};
	const struct psd_platform platform = star(4);

	open_log(&platform, stop_twice);
	psd_network_transfer(0, 1, MEBIBYTE, 1);
	psd_network_transfer(1, 2, MEBIBYTE, 2);
	run();
	cr_assert_eq(wakes.n, 1);
	run();
	cr_assert_eq(wakes.n, 2);
	run();
	cr_assert_eq(wakes.n, 4);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(wakes.cookies[i], expected[i]);
	psd_network_transfer(1, 2, MEBIBYTE, 5); /* both on the pair of 2 */
	psd_network_transfer(1, 2, MEBIBYTE, 6);
	run();
	cr_assert_eq(wakes.n, 6);
	assert_near(date_sec(5), seconds(3 * MEBIBYTE, 10e9), 1e-5); /* and a byte */
	assert_near(date_sec(6), seconds(3 * MEBIBYTE, 10e9), 1e-5);
}

/* Some transfers between random hosts, each end starting another; the whole log of it. */
static void start_random(void *context, uint64_t tag)
{
	static uint64_t state = 42;
	unsigned from, to;

	note(context, tag);
	if (tag >= 2000)
		return;
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	from = (unsigned)(state >> 60) % 8;
	to = (from + 1 + (unsigned)(state >> 40) % 7) % 8;
	psd_network_transfer(from, to, 1000 + (state >> 20) % 5 * 1000, tag + 1);
	if (state >> 63)
		psd_network_timer(1e-6, tag + 2);
}

static void log_in_child(int fd)
{
	const struct psd_platform platform = racked(PSD_TOPOLOGY_FAT_TREE);

	open_log(&platform, start_random);
	for (uint64_t i = 0; i < 4; i++)
		psd_network_transfer((unsigned)i, (unsigned)i + 4, 5000, 1985 + i);
	run();
	if (write(fd, &wakes, sizeof(wakes)) != (ssize_t)sizeof(wakes))
		_exit(1);
	_exit(0);
}

static void read_whole(int fd, char *into, size_t size)
{
	while (size > 0) {
		const ssize_t n = read(fd, into, size);

		cr_assert_gt(n, 0);
		into += n;
		size -= (size_t)n;
	}
}

Test(network, runs_repeat_exactly)
{
	static struct log logs[2];

	for (int i = 0; i < 2; i++) {
		int fds[2], status;
		pid_t child;

		cr_assert_eq(pipe(fds), 0);
		child = fork();
		if (child == 0)
			log_in_child(fds[1]);
		close(fds[1]);
		read_whole(fds[0], (char *)&logs[i], sizeof(logs[i]));
		close(fds[0]);
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert_eq(status, 0);
	}
	cr_assert_gt(logs[0].n, 40);
	cr_assert_eq(memcmp(&logs[0], &logs[1], sizeof(logs[0])), 0);
}

/* ---- platform files ---- */

#define XML_HEAD                                                                                                       \
	"<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform "          \
	"version=\"4.1\">\n"

/* Two senders with very different distances to one receiver, and names that sort badly as text. */
static const char far_and_near[] = XML_HEAD
	"<zone id=\"z\" routing=\"Cluster\">\n"
	"<host id=\"n10\" speed=\"1Gf\"/><host id=\"n2\" speed=\"1Gf\"/><host id=\"n1\" speed=\"1Gf\"/>\n"
	"<link id=\"u1\" bandwidth=\"1GBps\" latency=\"1us\"/><link id=\"d1\" bandwidth=\"1GBps\" latency=\"1us\"/>\n"
	"<link id=\"u2\" bandwidth=\"1GBps\" latency=\"1us\"/><link id=\"d2\" bandwidth=\"1GBps\" latency=\"1us\"/>\n"
	"<link id=\"u10\" bandwidth=\"1GBps\" latency=\"50ms\"/><link id=\"d10\" bandwidth=\"1GBps\" "
	"latency=\"50ms\"/>\n"
	"<host_link id=\"n1\" up=\"u1\" down=\"d1\"/><host_link id=\"n2\" up=\"u2\" down=\"d2\"/><host_link id=\"n10\" "
	"up=\"u10\" down=\"d10\"/>\n"
	"</zone>\n</platform>\n";

static const char *write_xml(const char *text)
{
	static char path[32];
	int fd;

	snprintf(path, sizeof(path), "/tmp/psd-test-XXXXXX");
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	return path;
}

static struct psd_platform users(const char *path, unsigned nodes)
{
	return (struct psd_platform){.topology = PSD_TOPOLOGY_PLATFORM,
				     .nodes = nodes,
				     .workers_per_node = 1,
				     .workers = nodes,
				     .path = path};
}

Test(network, latency_of_the_ends_counts_between_nodes_only)
{
	struct psd_platform platform = nodes_of_two();

	platform.host_latency_sec = 70e-6;
	open_log(&platform, note);
	cr_assert_eq(psd_network_latency_sec(0, 1), 0);
	assert_near(psd_network_latency_sec(0, 2), 10e-6 + 70e-6, FLUID_RATIO);
}

Test(network, latency_of_the_ends_adds_to_a_users_platform)
{
	const char *path = write_xml(far_and_near);
	struct psd_platform platform = users(path, 3);

	platform.nodes = 2; /* n1 and n2 are one, n10 has another */
	platform.workers_per_node = 2;
	platform.host_latency_sec = 70e-6;
	open_log(&platform, note);
	unlink(path);
	assert_near(psd_network_latency_sec(0, 1), 2e-6, FLUID_RATIO);
	assert_near(psd_network_latency_sec(2, 0), 50e-3 + 1e-6 + 70e-6, FLUID_RATIO);
}

Test(network, users_platform_shares_fairly_whatever_the_latencies)
{
	const char *path = write_xml(far_and_near);
	const struct psd_platform platform = users(path, 3);

	open_log(&platform, note);
	unlink(path);
	assert_near(psd_network_latency_sec(0, 1), 2e-6, FLUID_RATIO);	       /* n1 to n2 */
	assert_near(psd_network_latency_sec(2, 0), 50e-3 + 1e-6, FLUID_RATIO); /* n10 to n1 */
	psd_network_transfer(1, 0, UINT64_C(500000000), 1);
	psd_network_transfer(2, 0, UINT64_C(500000000), 2);
	run();
	assert_near(date_sec(1), 1, FLUID_RATIO);
	assert_near(date_sec(2), 1, FLUID_RATIO);
}

Test(network, users_link_can_be_scaled)
{
	const char *path = write_xml(far_and_near);
	const struct psd_platform platform = users(path, 3);

	open_log(&platform, note);
	unlink(path);
	psd_network_scale_link(1, 0.5);
	psd_network_transfer(1, 0, UINT64_C(500000000), 1);
	psd_network_transfer(2, 0, UINT64_C(500000000), 2);
	run();
	assert_near(date_sec(1), 1, FLUID_RATIO);
	assert_near(date_sec(2), 1, FLUID_RATIO);
	psd_network_transfer(1, 0, UINT64_C(500000000), 3);
	run();
	assert_near(date_sec(3), 2, FLUID_RATIO);
}

Test(network, hosts_without_a_way_end_the_run)
{
	const char *path = write_xml(XML_HEAD "<zone id=\"z\" routing=\"Full\"><host id=\"a\" speed=\"1Gf\"/>"
					      "<host id=\"b\" speed=\"1Gf\"/></zone></platform>");
	const struct psd_platform platform = users(path, 2);
	struct psd_error err = {0};

	open_log(&platform, note);
	unlink(path);
	psd_network_transfer(0, 1, 1, 1);
	cr_assert_eq(psd_network_run(&err), PSD_ERUN);
	cr_assert_str_eq(err.text, "transfer from a to b: the platform has no way between them");
}

struct bad_file {
	const char *text, *words; /* the message after the path */
};

static void assert_refused(const struct bad_file *bad)
{
	const char *path = write_xml(bad->text);
	const struct psd_platform platform = users(path, 3);
	struct psd_error err = {0};

	cr_assert_eq(psd_platform_check(&platform, &err), PSD_EINVAL, "%s", bad->text);
	cr_assert_eq(strncmp(err.text, path, strlen(path)), 0, "%s", err.text);
	cr_assert_str_eq(err.text + strlen(path), bad->words);
	unlink(path);
}

#define ONE_HOST(attributes)                                                                                           \
	XML_HEAD "<zone id=\"z\" routing=\"Full\">\n<host id=\"a\" " attributes "/></zone></platform>"

Test(network, bad_files_give_one_line)
{
	static const struct bad_file files[] = {
		{"", ":1: Invalid XML (XML input line 1, state 1): EOF in prolog."},
		{ONE_HOST("speed=\"1Gf\" bogus=\"1\""),
		 ":5: Invalid XML (XML input line 5, state 74): Bad attribute `bogus' in `host' element start tag."},
		{ONE_HOST("speed=\"1Gx\""), ":5: unknown unit: Gx"},
		{ONE_HOST("speed=\"1Gf\""), ": platform has 1 hosts, the scenario needs 3"},
		{XML_HEAD "<zone id=\"z\" routing=\"Nope\"></zone></platform>", ": Not a valid model!"}, /* abort() */
		{XML_HEAD "</platform>", ": the platform has no zone, must have one"},
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		assert_refused(&files[i]);
}

Test(network, a_speed_or_bandwidth_of_nothing_is_refused)
{
	static const struct bad_file files[] = {
		{XML_HEAD "<zone id=\"z\" routing=\"Full\"><host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"0f\"/>"
			  "<host id=\"c\" speed=\"1Gf\"/></zone></platform>",
		 ": host 'b' has speed 0, must be above 0"},
		{XML_HEAD
		 "<zone id=\"z\" routing=\"Full\"><host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/>"
		 "<host id=\"c\" speed=\"1Gf\"/><link id=\"l\" bandwidth=\"0Bps\" latency=\"0us\"/></zone></platform>",
		 ": link 'l' has bandwidth 0 Bps, must be above 0"},
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		assert_refused(&files[i]);
}

Test(network, a_good_file_passes_and_a_missing_one_is_named)
{
	const char *path = write_xml(far_and_near);
	struct psd_platform platform = users(path, 3);
	struct psd_error err = {0};

	cr_assert_eq(psd_platform_check(&platform, &err), PSD_OK, "%s", err.text);
	unlink(path);
	cr_assert_eq(psd_platform_check(&platform, &err), PSD_EFILE);
	cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

static void own_handler(int signal)
{
	(void)signal;
}

Test(network, signal_handlers_stay_as_they_were)
{
	const struct psd_platform platform = star(2);
	const struct sigaction own = {.sa_handler = own_handler};
	struct sigaction after;

	cr_assert_eq(sigaction(SIGINT, &own, NULL), 0);
	open_log(&platform, note);
	cr_assert_eq(sigaction(SIGINT, NULL, &after), 0);
	cr_assert(after.sa_handler == own_handler);
}

Test(network, names_sort_as_a_person_expects)
{
	static const char *const names[] = {"a", "a1", "a2", "a10", "a10b2", "a10b11", "b", "b007", "b8"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++) {
			const int order = psd_platform_compare_names(names[i], names[j]);

			cr_assert_eq((order > 0) - (order < 0), (i > j) - (i < j), "%s and %s", names[i], names[j]);
		}
	cr_assert_neq(psd_platform_compare_names("n1", "n01"), 0);
}

Test(network, a_dump_with_too_many_ways_is_refused)
{
	struct psd_platform platform = racked(PSD_TOPOLOGY_RACKS);
	struct psd_error err = {0};

	platform.nodes = platform.workers = 513;
	cr_assert_eq(psd_platform_write(stdout, &platform, &err), PSD_EINVAL);
	cr_assert(strstr(err.text, "513 hosts, must have at most 512, "), "%s", err.text);
}

/* Writes `platform` as XML, loads that as a user would, and tells when the same transfers end. */
static double time_of_dump(const struct psd_platform *platform, unsigned n_hosts)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct psd_error err = {0};
	struct psd_platform file;
	const char *path;

	cr_assert_eq(psd_platform_write(out, platform, &err), PSD_OK, "%s", err.text);
	fclose(out);
	path = write_xml(text);
	free(text);
	file = users(path, n_hosts);
	open_log(&file, note);
	unlink(path);
	assert_near(psd_network_latency_sec(0, n_hosts - 1), platform->latency_sec, FLUID_RATIO);
	for (unsigned host = 0; host < n_hosts; host++)
		psd_network_transfer(host, (host + 4) % n_hosts, 10 * MEBIBYTE, host);
	run();
	return psd_network_now_sec();
}

Test(network, a_dumped_star_is_the_same_network)
{
	struct psd_platform platform = star(8);

	platform.send_bps = 4e9;	   /* the slower of the two directions */
	platform.host_latency_sec = 70e-6; /* left out of the dump; otherwise it would count twice */
	assert_near(time_of_dump(&platform, 8), seconds(10 * MEBIBYTE, 4e9), FLUID_RATIO);
}

/* Each worker sends to its counterpart on the other node: 4 of 10 MiB over its link, or 2 over a switch's uplink. */
Test(network, dumped_switches_are_the_same_network)
{
	struct psd_platform platform = nodes_of_two_switches();

	platform.between_bps = 4e9;
	assert_near(time_of_dump(&platform, 8), seconds(20 * MEBIBYTE, 4e9), FLUID_RATIO);
	assert_near(psd_network_latency_sec(0, 1), 3e-6, FLUID_RATIO);
	assert_near(psd_network_latency_sec(0, 2), 3e-6, FLUID_RATIO);
}

Test(network, dumped_racks_are_the_same_network)
{
	const struct psd_platform platform = racked(PSD_TOPOLOGY_RACKS);

	assert_near(time_of_dump(&platform, 8), seconds(40 * MEBIBYTE, 10e9), FLUID_RATIO);
}
