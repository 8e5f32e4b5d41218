/* Keys and the executors that heed them: a key that would change a run is refused with its place, others are reported.
 * */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/scenario/scenario_heed.h"
#include "tests/test_with.h"

static struct psd_scenario parse(const char *rest)
{
	static const char head[] = "model: {graph: m.yaml, batch_per_worker: 32, precision: fp32}\n"
				   "compute: {device: cpu, jitter: 0}\n"
				   "systems:\n  - {name: A, sync: ps, host: {copy: 1GBps}}\n"
				   "fidelity: flow\n";
	char text[1024];
	struct psd_scenario scenario;
	struct psd_error err = {.text = ""};
	const int length = snprintf(text, sizeof(text), "%s%s", head, rest);

	cr_assert_eq(psd_scenario_parse(&scenario, "a.yaml", text, (size_t)length, NULL, &err), PSD_OK, "%s", err.text);
	return scenario;
}

#define PLAIN "cluster: {nodes: 2, network: {bandwidth: 1Gbps, latency: 0s}}\n"

static void expect_told(const char *rest, enum psd_use executor, const char *expected)
{
	struct psd_scenario scenario = parse(rest);
	struct psd_text text = {.bytes = NULL};

	psd_scenario_add_unheeded(&text, &scenario, executor, PSD_BY_ALL);
	cr_expect_str_eq(text.bytes ? text.bytes : "", expected);
	psd_text_release(&text);
	psd_scenario_release(&scenario);
}

static void expect_refused(const char *rest, enum psd_use executor, const char *expected)
{
	struct psd_scenario scenario = parse(rest);
	struct psd_error err = {.text = "accepted"};

	cr_expect_eq(psd_scenario_check_heeded(&scenario, executor, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, expected);
	cr_expect_eq(psd_scenario_check_heeded(&scenario, PSD_BY_SIMULATION, &err), PSD_OK, "%s", err.text);
	psd_scenario_release(&scenario);
}

static bool check_row(const struct psd_schema_spot *spot)
{
	cr_expect(spot->key->help && *spot->key->help, "'%s' has no words", spot->path);
	cr_expect(spot->uses & PSD_BY_ALL, "'%s' is used by nobody", spot->path);
	return true;
}

TEST_ROW(heed, every_row_has_words_and_something_that_heeds_it,
	 psd_schema_walk(&psd_scenario_root, NULL, NULL, check_row, NULL))

Test(heed, a_default_value_is_not_reported)
{
	expect_told(PLAIN "baseline: compute\n", PSD_BY_SIMULATION, "");
	expect_told(PLAIN "baseline: compute\n", PSD_BY_RUN, "used only by psd-sim and replays: 'systems.host'\n");
}

Test(heed, a_report_names_the_systems_that_heed_the_key)
{
	expect_told(PLAIN "baseline: A\niterations: 3\npublished: p.csv\n", PSD_BY_RUN,
		    "used only by psd-sim's simulation and replays: 'iterations'\nused only by psd-sim: 'baseline' "
		    "'published'\nused only by psd-sim and replays: 'systems.host'\n");
	expect_told(PLAIN "baseline: A\niterations: 3\n", PSD_BY_REPLAY, "used only by psd-sim: 'baseline'\n");
	expect_told(PLAIN "train: {iterations: 3, learning_rate: {base: 1}}\n", PSD_BY_REPLAY,
		    "used only by training: 'train'\n");
}

/* A user who names a GPU might believe that it computes; a run has the processor anyway. */
Test(heed, a_device_that_does_not_compute_is_reported)
{
	static const char *const settings[] = {"compute.device=p100", NULL};
	static const char text[] = "model: {graph: m.yaml, batch_per_worker: 32}\ncompute: {device: cpu}\n"
				   "systems:\n  - {name: A, sync: ps}\n" PLAIN;
	struct psd_scenario scenario;
	struct psd_text told = {.bytes = NULL};
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_scenario_parse(&scenario, "a.yaml", text, strlen(text), settings, &err), PSD_OK, "%s",
		     err.text);
	psd_scenario_add_unheeded(&told, &scenario, PSD_BY_REPLAY, PSD_BY_ALL);
	cr_expect_null(told.bytes, "%s", told.bytes);
	psd_scenario_add_unheeded(&told, &scenario, PSD_BY_RUN, PSD_BY_ALL);
	cr_assert_not_null(told.bytes);
	cr_expect_str_eq(told.bytes, "used only by psd-sim and replays: 'compute.device'\n");
	psd_text_release(&told);
	psd_scenario_release(&scenario);
}

/* A hybrid that chooses by seconds needs the costs, whatever carries its choice out. */
Test(heed, costs_are_heeded_where_a_system_chooses_by_seconds)
{
	static const char *const settings[] = {"systems.0.sync=hybrid", "systems.0.rule=seconds", NULL};
	static const char text[] = "model: {graph: m.yaml, batch_per_worker: 32}\ncompute: {device: cpu, jitter: 1%}\n"
				   "systems:\n  - {name: A, host: {copy: 1GBps}}\n" PLAIN;
	struct psd_scenario scenario;
	struct psd_text told = {.bytes = NULL};
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_scenario_parse(&scenario, "a.yaml", text, strlen(text), settings, &err), PSD_OK, "%s",
		     err.text);
	psd_scenario_add_unheeded(&told, &scenario, PSD_BY_RUN, PSD_BY_ALL);
	cr_expect_str_eq(told.bytes, "used only by psd-sim's simulation and replays: 'compute.jitter'\n");
	psd_text_release(&told);
	psd_scenario_release(&scenario);
}

Test(heed, a_key_that_would_change_a_run_is_refused_with_its_place)
{
	expect_refused("cluster:\n  nodes: 2\n  network: {bandwidth: 1Gbps, latency: 0s, topology: racks, "
		       "nodes_per_rack: 2}\n",
		       PSD_BY_RUN,
		       "a.yaml:8:54: 'cluster.network.topology' is 'racks', used only by psd-sim: must be 'star' here");
	expect_refused(
		"cluster:\n  nodes: 2\n  network: {platform: p.xml}\n", PSD_BY_RUN,
		"a.yaml:8:13: 'cluster.network.platform' is used only by psd-sim's simulation: must be left out here");
	expect_refused(
		"cluster:\n  nodes: 2\n  network: {bandwidth: 1Gbps, latency: 0s}\n  slow: [{node: 1, link: 50%}]\n",
		PSD_BY_REPLAY,
		"a.yaml:9:26: 'cluster.slow.link' is '50%', used only by psd-sim's simulation: must be '1' here");
}

/* ---- the reference ---- */

/* Rows of the file have one more cell, with an example. */
Test(heed, the_reference_of_keys_is_current)
{
	const struct psd_reference how = {.is_markdown = true};
	struct psd_text reference = {.bytes = NULL};
	char *text;
	const char *at;
	size_t length;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_scenario_add_reference(&reference, &how, &err), PSD_OK);
	cr_assert_eq(psd_file_read(&text, &length, "scenarios/README.md", &err), PSD_OK, "%s", err.text);
	at = text;
	for (char *row = reference.bytes; *row; row += strlen(row) + 1) {
		row[strcspn(row, "\n")] = '\0'; /* the text ends with a line end, and then a zero */
		at = strstr(at, row);
		cr_assert(at, "scenarios/README.md lacks a row, make docs writes it: %s", row);
	}
	free(text);
	psd_text_release(&reference);
}
