/* Sweeps over any key as a command: the rows are those of single runs with --set. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sweep/progress.h"
#include "sim/sweep/sweep.h"
#include "tests/cli_helper.h"
#include "tests/scratch_folder.h"

#define SWEPT "--estimate --csv scenarios/quickstart.yaml "

static struct run run(const char *arguments)
{
	return run_program("psd-sim", arguments, "2>&1");
}

/* Line `row` of a text, from 0; the caller frees it. */
static char *line_of(const char *text, unsigned row)
{
	while (row-- > 0)
		text = strchr(text, '\n') + 1;
	return strndup(text, strcspn(text, "\n"));
}

Test(sweep, rows_are_those_of_single_runs)
{
	static const char *const latencies[] = {"5us", "50us"};
	const struct run swept = run(SWEPT "--set sweep.nodes=4 --system Ring --sweep model.batch_per_worker=32,64 "
					   "--sweep cluster.network.latency=5us,50us");
	char *head = line_of(swept.text, 0);

	cr_assert_eq(swept.exit_status, 0, "%s", swept.text);
	cr_expect(strstr(head, ",cost,model,batch_per_worker,precision,device,stack,model.batch_per_worker,"
			       "cluster.network.latency_sec"),
		  "%s", head);
	for (unsigned i = 0; i < 4; i++) {
		char arguments[256], *row = line_of(swept.text, 1 + i), *single;
		struct run alone;

		snprintf(arguments, sizeof(arguments),
			 SWEPT "--set sweep.nodes=4 --system Ring --set model.batch_per_worker=%u --set "
			       "cluster.network.latency=%s",
			 i < 2 ? 32 : 64, latencies[i % 2]);
		alone = run(arguments);
		single = line_of(alone.text, 1);
		cr_expect(*single && !strncmp(row, single, strlen(single)), "%s\n%s", row, single);
		free(alone.text);
		free(row);
		free(single);
	}
	free(head);
	free(swept.text);
}

/* 256 numbers of nodes, 256 seeds and 9 batches are 589824 points; of 4 systems as many as 2^21 / 4 are accepted. */
Test(sweep, too_many_points_are_refused_before_they_are_loaded)
{
	const struct run many =
		run(SWEPT "--sweep nodes=1..256 --sweep seed=1..256 --sweep model.batch_per_worker=1..9");

	cr_expect_eq(many.exit_status, 2);
	cr_expect(strstr(many.text, "'sweep' has 589824 points of 4 systems, must have 524288 points or fewer\n"), "%s",
		  many.text);
	free(many.text);
}

Test(sweep, points_are_counted_for_each_system)
{
	struct psd_scenario scenario = {.n_systems = 4, .n_sweep_nodes = 256, .n_sweep_bandwidths = 256};
	struct psd_error err;

	scenario.n_sweep_fuses = 8;
	cr_expect_eq(psd_sweep_check(&scenario, NULL, &err), PSD_OK);
	scenario.n_sweep_fuses = 9;
	cr_expect_eq(psd_sweep_check(&scenario, NULL, &err), PSD_EINVAL);
	scenario.n_sweep_fuses = 32;
	cr_expect_eq(psd_sweep_check(&scenario, "Ring", &err), PSD_OK);
	scenario.n_sweep_fuses = 33;
	cr_expect_eq(psd_sweep_check(&scenario, "Ring", &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, "'sweep' has 2162688 points of 1 system, must have 2097152 points or fewer");
}

/* The number of an entry alone would say nothing. */
Test(sweep, a_column_names_the_list_whose_entry_is_swept)
{
	const struct run table =
		run("--estimate scenarios/examples/cluster.yaml --sweep cluster.slow.0.compute=100%,70%");

	cr_expect_eq(table.exit_status, 0, "%s", table.text);
	cr_expect_not_null(strstr(table.text, "slow.0  "), "%s", table.text);
	free(table.text);
}

Test(sweep, a_table_has_a_column_for_each_key)
{
	const struct run table = run("--estimate scenarios/quickstart.yaml --sweep nodes=2 --sweep "
				     "cluster.network.latency=5us,1ms --system Ring");

	cr_assert_eq(table.exit_status, 0, "%s", table.text);
	cr_expect(strstr(table.text, "\nnetwork "), "%s", table.text);
	cr_expect(strstr(table.text, "\nlatency "), "%s", table.text);
	cr_expect(strstr(table.text, "\n    5us ") && strstr(table.text, "\n    1ms "), "%s", table.text);
	free(table.text);
}

FOLDER_TEST(sweep, files_of_one_csv_sweep_the_same_keys, scratch_folder_make())
{
	static const char text[] = "model: {graph: m.yaml, batch_per_worker: 1}\ncompute: {device: cpu}\n"
				   "cluster: {nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
				   "systems: [{name: S, sync: ring}]\nsweep: {%s: [%s]}\n";
	static const char model[] = "name: m\ninput: {channels: 3}\nlayers: [{name: fc, kind: Linear, outputs: 4}]\n";
	char scenario[512], arguments[512];

	scratch_folder_write(&folder, "m.yaml", model, strlen(model));
	snprintf(scenario, sizeof(scenario), text, "model.batch_per_worker", "1, 2");
	scratch_folder_write(&folder, "a.yaml", scenario, strlen(scenario));
	snprintf(scenario, sizeof(scenario), text, "nodes", "1, 2");
	scratch_folder_write(&folder, "b.yaml", scenario, strlen(scenario));
	snprintf(arguments, sizeof(arguments), "--estimate --csv %s/a.yaml %s/b.yaml", folder.path, folder.path);
	expect_one_line("psd-sim", arguments, 2, "must sweep the same keys");
}

Test(sweep, simulations_are_swept_too)
{
	const struct run swept = run("--csv --quiet scenarios/quickstart.yaml --sweep nodes=2 --system Ring --sweep "
				     "cluster.stack=psd,none"),
			 alone = run("--csv --quiet scenarios/quickstart.yaml --set sweep.nodes=2 --system Ring --set "
				     "cluster.stack=none");
	char *row = line_of(swept.text, 2), *single = line_of(alone.text, 1);

	cr_expect(*single && !strncmp(row, single, strlen(single)), "%s\n%s", row, single);
	free(row);
	free(single);
	free(swept.text);
	free(alone.text);
}

static unsigned n_lines(const char *text)
{
	unsigned n = 0;

	for (; (text = strchr(text, '\n')); text++)
		n++;
	return n;
}

/* A sweep of the schedule of one system: every other system has one row, with an empty field of the key. */
Test(sweep, rows_of_other_systems_are_there_once)
{
	const struct run plain = run(SWEPT "--sweep nodes=2,4"),
			 swept = run(SWEPT "--sweep nodes=2,4 --sweep systems.Ring.schedule=wait-free,sequential");
	const unsigned n_systems = (n_lines(plain.text) - 1) / 2;
	unsigned n_rings = 0, n_empty = 0;

	cr_assert_eq(swept.exit_status, 0, "%s", swept.text);
	cr_expect_eq(n_lines(swept.text), 1 + 2 * (n_systems + 1), "%s", swept.text);
	for (unsigned i = 1; i < n_lines(swept.text); i++) {
		char *row = line_of(swept.text, i);

		n_rings += strstr(row, ",Ring,") != NULL;
		n_empty += row[strlen(row) - 1] == ',';
		free(row);
	}
	cr_expect_eq(n_rings, 4, "%s", swept.text);
	cr_expect_eq(n_empty, 2 * (n_systems - 1), "%s", swept.text);
	free(plain.text);
	free(swept.text);
}

Test(sweep, the_head_has_the_range_of_the_batch)
{
	const struct run table = run("--estimate scenarios/quickstart.yaml --sweep model.batch_per_worker=8..32*2");

	cr_expect(strstr(table.text, "; batch 8 to 32 per worker\n"), "%s", table.text);
	cr_expect(strstr(table.text, " a batch, ") && strstr(table.text, " on one worker alone"), "%s", table.text);
	free(table.text);
}

/* Three groups of 2 nodes with 2 workers each, which have 48, 32 and 32 samples. */
Test(sweep, the_head_has_the_batch_of_all_groups)
{
	const struct run table = run("--estimate scenarios/examples/groups.yaml"),
			 swept = run("--estimate scenarios/examples/groups.yaml "
				     "--sweep cluster.groups.0.batch_per_worker=16,48");
	char words[64];

	snprintf(words, sizeof(words), "; batch %d of all groups\n", 2 * 2 * (48 + 32 + 32));
	cr_expect(strstr(table.text, words), "%s", table.text);
	snprintf(words, sizeof(words), "; batch %d to %d of all groups\n", 2 * 2 * (16 + 32 + 32),
		 2 * 2 * (48 + 32 + 32));
	cr_expect(strstr(swept.text, words), "%s", swept.text);
	free(table.text);
	free(swept.text);
}

/* ---- parts ---- */

static void write_part(const struct scratch_folder *folder, unsigned i)
{
	char arguments[512];
	struct run part;

	snprintf(arguments, sizeof(arguments),
		 SWEPT "--sweep model.batch_per_worker=32,64 --sweep systems.Ring.schedule=wait-free,sequential "
		       "--shard %u/3 >%s/%u.csv",
		 i, folder->path, i);
	part = run(arguments);
	cr_assert_eq(part.exit_status, 0, "%s", part.text);
	free(part.text);
}

static void expect_refused(const struct scratch_folder *folder, const char *parts, const char *words)
{
	char command[2 * PATH_MAX];
	struct run merged;

	snprintf(command, sizeof(command), "cd %s && %s merge %s 2>&1", folder->path, path_of("psd-sim").text, parts);
	merged = run_command(command);
	cr_expect_eq(merged.exit_status, 2, "%s", parts);
	cr_expect(strstr(merged.text, words), "%s: %s", parts, merged.text);
	free(merged.text);
}

/* 4 systems, 3 sizes and 2 batches are 24 rows, 8 in each part. */
FOLDER_TEST(sweep, parts_join_to_the_bytes_of_the_whole, scratch_folder_make())
{
	const struct run whole =
		run(SWEPT "--sweep model.batch_per_worker=32,64 --sweep systems.Ring.schedule=wait-free,sequential");
	char arguments[512];
	struct run merged;

	for (unsigned i = 1; i <= 3; i++)
		write_part(&folder, i);
	snprintf(arguments, sizeof(arguments), "merge %s/3.csv %s/1.csv %s/2.csv", folder.path, folder.path,
		 folder.path);
	merged = run(arguments);
	cr_expect_str_eq(merged.text, whole.text);
	free(whole.text);
	free(merged.text);

	expect_refused(&folder, "1.csv 3.csv", "1.csv: part 2/3 of the sweep is missing");
	expect_refused(&folder, "1.csv 2.csv 2.csv", "2.csv:2: row 2 is there twice");
	snprintf(arguments, sizeof(arguments), "sed -i 4d %s/2.csv", folder.path);
	cr_assert_eq(system(arguments), 0);
	expect_refused(&folder, "1.csv 2.csv 3.csv", "1.csv: row 8 of 30 is missing, it belongs to part 2/3");
	snprintf(arguments, sizeof(arguments), "sed -i 1s/,rows// %s/3.csv", folder.path);
	cr_assert_eq(system(arguments), 0);
	expect_refused(&folder, "1.csv 2.csv 3.csv", "3.csv:1: the last columns must be settings,shard,row,rows");
}

/* One of two parts of six rows: two numbers of nodes, three systems. */
static void write_part_of_settings(const struct scratch_folder *folder, unsigned i, const char *name,
				   const char *settings)
{
	char arguments[512];
	struct run part;

	snprintf(arguments, sizeof(arguments),
		 "--estimate --csv --shard %u/2 scenarios/examples/first.yaml %s >%s/%s.csv", i, settings, folder->path,
		 name);
	part = run(arguments);
	cr_assert_eq(part.exit_status, 0, "%s", part.text);
	free(part.text);
}

/* The first part is quoted, for its list. */
FOLDER_TEST(sweep, parts_of_other_settings_are_refused, scratch_folder_make())
{
	static const struct {
		const char *settings, *words;
	} others[] = {
		{"--sweep nodes=2,4 --set seed=3",
		 "o.csv:2: the settings have --set seed=3, those of the first part --set seed=2\n"},
		{"--sweep nodes=2,4", "the settings have nothing more, those of the first part --set seed=2\n"},
		{"--sweep nodes=2,4 --set seed=2 --set model.batch_per_worker=8",
		 "the settings have --set model.batch_per_worker=8, those of the first part nothing more\n"},
		{"--sweep nodes=2,8 --set seed=2",
		 "the settings have --sweep nodes=[2,8], those of the first part --sweep nodes=[2,4]\n"},
	};
	char arguments[512];
	struct run merged;

	write_part_of_settings(&folder, 1, "1", "--sweep nodes=2,4 --set seed=2");
	write_part_of_settings(&folder, 2, "2", "--sweep nodes=2,4 --set seed=2");
	snprintf(arguments, sizeof(arguments), "merge %s/1.csv %s/2.csv", folder.path, folder.path);
	merged = run(arguments);
	cr_expect_eq(merged.exit_status, 0, "%s", merged.text);
	cr_expect_null(strstr(merged.text, "seed"), "%s", merged.text);
	free(merged.text);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		write_part_of_settings(&folder, 2, "o", others[i].settings);
		expect_refused(&folder, "1.csv o.csv", others[i].words);
	}
}

/* psd-plot reads the parts themselves, and draws nothing without one of them. */
FOLDER_TEST(sweep, a_plot_notices_a_lost_part, scratch_folder_make())
{
	char command[512];
	struct run plot;

	for (unsigned i = 1; i <= 3; i++) {
		snprintf(command, sizeof(command), "--estimate --csv scenarios/quickstart.yaml --shard %u/3 >%s/%u.csv",
			 i, folder.path, i);
		plot = run(command);
		cr_assert_eq(plot.exit_status, 0, "%s", plot.text);
		free(plot.text);
	}
	snprintf(command, sizeof(command), "build/psd-plot speedup %s/1.csv %s/3.csv -o %s/p.svg 2>&1", folder.path,
		 folder.path, folder.path);
	plot = run_command(command);
	cr_expect_eq(plot.exit_status, 2);
	cr_expect(strstr(plot.text, "row 2 of 12 of ") && strstr(plot.text, "it belongs to part 2/3"), "%s", plot.text);
	free(plot.text);
	snprintf(command, sizeof(command), "build/psd-plot speedup %s/1.csv %s/2.csv %s/3.csv -o %s/p.svg 2>&1",
		 folder.path, folder.path, folder.path, folder.path);
	plot = run_command(command);
	cr_expect_eq(plot.exit_status, 0, "%s", plot.text);
	free(plot.text);
}

Test(sweep, progress_tells_the_rest_of_the_time)
{
	static const struct {
		unsigned n_done;
		double elapsed_sec;
		const char *words;
	} lines[] = {
		{0, 50, ""}, {1, 0.5, ""}, {20, 10, "40 s left, "}, {20, 100, "7 min left, "}, {1, 100, "2.8 h left, "},
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct psd_text text = {.bytes = NULL};

		psd_progress_add_left(&text, lines[i].n_done, 100, lines[i].elapsed_sec);
		cr_expect_str_eq(text.bytes ? text.bytes : "", lines[i].words);
		psd_text_release(&text);
	}
}

/* The sentence below the table is about the best size, which it names: here the second of three. */
Test(sweep, bottlenecks_are_those_of_the_best_buckets)
{
	const struct run table =
		run("--estimate --system Ring --set sweep.nodes=16 --sweep fuse=1KiB,32MiB,1GiB scenarios/fusion.yaml");

	cr_assert_eq(table.exit_status, 0, "%s", table.text);
	cr_expect_not_null(strstr(table.text, "\nRing at 16 nodes, buckets of 33.55 MB: bound by "), "%s", table.text);
	free(table.text);
}
