/* Sweeps over any key as a command: the rows are those of single runs with --set. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	cr_expect(strstr(head, ",low,high,model,batch_per_worker,precision,device,stack,model.batch_per_worker,"
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
