/* Tracks of links in traces: bytes over uplinks, by the formulas of the exchanges. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli_helper.h"
#include "tests/scratch_folder.h"

/* 67,108,864 values of four bytes; racks of 4 nodes below one uplink. */
#define TREE_SCENARIO                                                                                                  \
	"--set iterations=2 --set model.graph=../models/one-tensor.yaml --set compute.samples_per_sec= "               \
	"--set cluster.nodes=8 --set cluster.network.nodes_per_rack=4 scenarios/examples/fat-tree.yaml "
#define TREE "--csv --quiet --trace /dev/stdout " TREE_SCENARIO

static const double gradient_bytes = 4.0 * 67108864.0;

/* Bytes at the end of a link's track, the integral of its rate in bytes, and its number of counters. */
struct track {
	double bytes, integral_bytes;
	unsigned n;
};

static double number_after(const char *line, const char *key)
{
	const char *found = strstr(line, key);

	cr_assert_not_null(found, "%s", line);
	return strtod(found + strlen(key), NULL);
}

static struct track track_of(const char *trace, const char *link)
{
	struct track track = {.n = 0};
	double before_us = 0.0, bps = 0.0;
	char start[64];

	snprintf(start, sizeof(start), "\n{\"name\":\"%s of ", link);
	for (const char *line = trace; (line = strstr(line, start)); line++, track.n++) {
		char text[512];

		snprintf(text, sizeof(text), "%.*s", (int)strcspn(line + 1, "\n"), line + 1);
		track.integral_bytes += bps * (number_after(text, "\"ts\":") - before_us) * 1e-6 / 8.0;
		before_us = number_after(text, "\"ts\":");
		bps = number_after(text, "\"bit/s\":");
		track.bytes = number_after(text, "\"bytes\":");
	}
	cr_expect_eq(bps, 0.0, "the rate of %s is %g at the end", link, bps);
	return track;
}

static unsigned n_iterations(const char *trace)
{
	unsigned n = 0;

	for (const char *at = trace; (at = strstr(at, "\"iteration\":")); at++) {
		const unsigned number = (unsigned)strtoul(at + strlen("\"iteration\":"), NULL, 10);

		n = number + 1 > n ? number + 1 : n;
	}
	return n;
}

static void expect_bytes(const char *trace, const char *link, double expected)
{
	const struct track track = track_of(trace, link);

	cr_expect_gt(track.n, 0, "%s has no track", link);
	cr_expect_float_eq(track.bytes / expected, 1.0, 1e-6, "%s: %.0f, expected %.0f", link, track.bytes, expected);
	cr_expect_float_eq(track.integral_bytes / expected, 1.0, 1e-4, "%s: %.0f, expected %.0f", link,
			   track.integral_bytes, expected);
}

/* The last node of a rack alone sends to the next rack: as much as each member of a ring, 2 (P - 1) / P of the
 * gradient. Nodes of one worker have rows, and no tracks. */
Test(link_tracks, a_ring_passes_an_uplink_once)
{
	const struct run made = run_program("psd-sim", TREE "--system Ring", "");
	const double expected = n_iterations(made.text) * 2.0 * 7.0 / 8.0 * gradient_bytes;

	cr_assert_eq(made.exit_status, 0, "%s", made.text);
	expect_bytes(made.text, "leaf0_spine0_up", expected);
	expect_bytes(made.text, "leaf1_spine0_down", expected);
	expect_bytes(made.text, "leaf1_spine0_up", expected);
	expect_bytes(made.text, "leaf0_spine0_down", expected);
	cr_expect_eq(track_of(made.text, "node0_out").n, 0);
	free(made.text);
}

/* Each of R = 4 workers sends gradients to the P - R shards of the other rack, and each of R shards parameters to its
 * P - R workers: 2 R (P - R) / P gradients. */
Test(link_tracks, servers_pass_an_uplink_for_each_pair_of_racks)
{
	const struct run made = run_program("psd-sim", TREE "--system 'A server on each node'", "");
	const double expected = n_iterations(made.text) * 2.0 * 4.0 * 4.0 / 8.0 * gradient_bytes;

	cr_assert_eq(made.exit_status, 0, "%s", made.text);
	expect_bytes(made.text, "leaf0_spine0_up", expected);
	expect_bytes(made.text, "leaf0_spine0_down", expected);
	free(made.text);
}

/* A node with two workers has one link: the ring of four leaves it once. */
Test(link_tracks, workers_share_the_link_of_their_node)
{
	const struct run made = run_program("psd-sim",
					    TREE "--system Ring --set cluster.workers_per_node=2 --set cluster.nodes=2 "
						 "--set cluster.network.topology=star "
						 "--set cluster.network.nodes_per_rack= "
						 "--set cluster.network.oversubscription=",
					    "");
	const double expected = n_iterations(made.text) * 2.0 * 3.0 / 4.0 * gradient_bytes;

	cr_assert_eq(made.exit_status, 0, "%s", made.text);
	expect_bytes(made.text, "node0_out", expected);
	expect_bytes(made.text, "node1_in", expected);
	free(made.text);
}

/* Nodes of one worker and one of two workers, in groups. */
Test(link_tracks, a_link_of_one_worker_has_none)
{
	const struct run made = run_program("psd-sim",
					    "--csv --quiet --trace /dev/stdout --system Ring --set iterations=2 "
					    "scenarios/replay/two-speeds.yaml",
					    "");

	cr_assert_eq(made.exit_status, 0, "%s", made.text);
	cr_expect_eq(track_of(made.text, "node1_out").n, 0);
	cr_expect_gt(track_of(made.text, "node2_out").n, 0);
	free(made.text);
}

/* Two nodes: half of the gradient to the other shard, half of the parameters back to the other worker, over each
 * direction of the cable. 145,578 parameters of cifar10-quick. */
Test(link_tracks, links_of_a_platform_file_have_tracks)
{
	const struct run made =
		run_program("psd-sim", "--csv --quiet --trace /dev/stdout scenarios/examples/platform.yaml", "");
	const double both = track_of(made.text, "cable_UP").bytes + track_of(made.text, "cable_DOWN").bytes;

	cr_assert_eq(made.exit_status, 0, "%s", made.text);
	cr_expect_float_eq(both, n_iterations(made.text) * 2.0 * 4.0 * 145578.0, 1.0, "%g", both);
	free(made.text);
}

/* Files by rank are of single workers. */
FOLDER_TEST(link_tracks, files_of_ranks_have_none, scratch_folder_make())
{
	char arguments[512], path[512];
	struct run made;

	snprintf(arguments, sizeof(arguments), "--csv --quiet --trace %s/%%r.json --system Ring " TREE_SCENARIO,
		 folder.path);
	made = run_program("psd-sim", arguments, "");
	cr_assert_eq(made.exit_status, 0, "%s", made.text);
	free(made.text);
	snprintf(path, sizeof(path), "cat %s/*.json", folder.path);
	made = run_command(path);
	cr_expect_not_null(strstr(made.text, "ncclDevKernel"), "%.300s", made.text);
	cr_expect_null(strstr(made.text, "leaf0"));
	free(made.text);
}
