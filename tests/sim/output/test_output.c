/* Outputs of psd-sim from hand-made results: CSV, JSON, tables, trace events, and the arithmetic between outcome and
 * result. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/case/case.h"
#include "engine/result/columns.h"
#include "engine/scenario/scenario.h"
#include "sim/output/grid.h"
#include "sim/output/json.h"
#include "sim/output/output.h"
#include "sim/output/trace.h"
#include "tests/loaded_helper.h"
#include "tests/test_with.h"

static const double tolerance_ratio = 1e-12;

static void expect_close(double actual, double expected)
{
	cr_assert(fabs(actual - expected) <= tolerance_ratio * fabs(expected), "%.17g, expected %.17g", actual,
		  expected);
}

/* A stream into memory; text() ends it. */
struct memory {
	FILE *out;
	char *text;
	size_t length;
};

static void open_memory(struct memory *memory)
{
	memory->text = NULL;
	memory->out = open_memstream(&memory->text, &memory->length);
	cr_assert_not_null(memory->out);
}

static const char *text_of(struct memory *memory)
{
	cr_assert_eq(fclose(memory->out), 0);
	return memory->text;
}

/* ---- a JSON reader that only says whether text is JSON ---- */

static const char *skip_value(const char *at);

static const char *skip_blanks(const char *at)
{
	return at + strspn(at, " \t\r\n");
}

static const char *skip_string(const char *at)
{
	if (*at++ != '"')
		return NULL;
	for (; *at != '"'; at++) {
		if ((unsigned char)*at < 0x20)
			return NULL;
		if (*at != '\\')
			continue;
		at++;
		if (*at == 'u') {
			if (strspn(at + 1, "0123456789abcdefABCDEF") < 4)
				return NULL;
			at += 4;
		} else if (!*at || !strchr("\"\\/bfnrt", *at)) {
			return NULL;
		}
	}
	return at + 1;
}

static const char *skip_number(const char *at)
{
	char *end;

	if (*at != '-' && !isdigit((unsigned char)*at))
		return NULL;
	strtod(at, &end);
	return end;
}

/* has_keys: an object, else an array. */
static const char *skip_list(const char *at, char close, bool has_keys)
{
	at = skip_blanks(at + 1);
	if (*at == close)
		return at + 1;
	for (;;) {
		if (has_keys) {
			at = skip_string(skip_blanks(at));
			if (!at || *(at = skip_blanks(at)) != ':')
				return NULL;
			at++;
		}
		at = skip_value(at);
		if (!at)
			return NULL;
		at = skip_blanks(at);
		if (*at == close)
			return at + 1;
		if (*at++ != ',')
			return NULL;
	}
}

static const char *skip_value(const char *at)
{
	at = skip_blanks(at);
	if (*at == '{')
		return skip_list(at, '}', true);
	if (*at == '[')
		return skip_list(at, ']', false);
	if (*at == '"')
		return skip_string(at);
	if (!strncmp(at, "null", 4) || !strncmp(at, "true", 4))
		return at + 4;
	if (!strncmp(at, "false", 5))
		return at + 5;
	return skip_number(at);
}

static bool is_json(const char *text)
{
	const char *end = skip_value(text);

	return end && !*skip_blanks(end);
}

Test(output, json_reader_of_this_test_refuses_what_is_no_json)
{
	cr_assert(is_json("{\"a\":[1,null,\"\\u00e9\"],\"b\":{}}"));
	cr_assert_not(is_json("[1,]"));
	cr_assert_not(is_json("{\"a\" 1}"));
	cr_assert_not(is_json("[\"\n\"]"));
	cr_assert_not(is_json("[inf]"));
	cr_assert_not(is_json("[1] 2"));
}

/* ---- JSON ---- */

static void expect_string(const char *text, const char *expected)
{
	struct memory memory;

	open_memory(&memory);
	psd_json_write_string(memory.out, text);
	cr_expect_str_eq(text_of(&memory), expected);
	cr_expect(is_json(memory.text));
	free(memory.text);
}

Test(output, json_escapes_quotes_and_controls_and_keeps_utf8)
{
	expect_string("a \"b\" \\", "\"a \\\"b\\\" \\\\\"");
	expect_string("tab\tend\x7f", "\"tab\\u0009end\\u007f\"");
	expect_string("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
}

Test(output, json_replaces_bytes_that_are_no_utf8)
{
	expect_string("\xff", "\"\\ufffd\"");
	expect_string("a\xc3", "\"a\\ufffd\"");				       /* ends too early */
	expect_string("\xc0\xaf", "\"\\ufffd\\ufffd\"");		       /* overlong '/' */
	expect_string("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"");	       /* a surrogate */
	expect_string("\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""); /* beyond U+10FFFF */
}

Test(output, json_puts_commas_between_elements_only)
{
	struct memory memory;

	open_memory(&memory);
	struct psd_json json = {.out = memory.out};

	psd_json_begin(&json, NULL, '[');
	for (int i = 0; i < 2; i++) {
		psd_json_line(&json);
		psd_json_begin(&json, NULL, '{');
		psd_json_number(&json, "a", 0.1, 6);
		psd_json_begin(&json, "b", '[');
		psd_json_end(&json, ']');
		psd_json_number(&json, "c", INFINITY, 6);
		psd_json_end(&json, '}');
	}
	psd_json_end(&json, ']');
	cr_expect_str_eq(text_of(&memory), "[\n{\"a\":0.1,\"b\":[],\"c\":null},\n{\"a\":0.1,\"b\":[],\"c\":null}]");
	cr_expect(is_json(memory.text));
	free(memory.text);
}

/* ---- CSV ---- */

static void expect_field(const char *text, const char *expected)
{
	struct psd_text field = {.bytes = NULL};

	psd_text_add_csv(&field, text);
	cr_expect_str_eq(field.bytes ? field.bytes : "", expected);
	psd_text_release(&field);
}

Test(output, csv_quotes_only_what_needs_it)
{
	expect_field("plain text 'as is'", "plain text 'as is'");
	expect_field("a,b", "\"a,b\"");
	expect_field("say \"hi\"", "\"say \"\"hi\"\"\"");
	expect_field("two\nlines", "two?lines");
	expect_field("", "");
}

/* ---- results ---- */

static const struct psd_point eight_nodes_of_two = {
	.nodes = 8, .workers_per_node = 2, .workers = 16, .bandwidth_bps = 4e10};

static struct psd_result result_of(double iteration_sec, struct psd_published_row *row)
{
	static struct psd_system system = {.name = "A"};
	static struct psd_scenario scenario = {.batch_per_worker = 32};
	const struct psd_published published = {.rows = row, .n_rows = row ? 1 : 0};
	const struct psd_result_basis basis = {
		.scenario = &scenario, .executor = "sim-flow", .published = &published, .tokens = 16};
	const struct psd_outcome outcome = {.iteration_sec = iteration_sec};

	return psd_result_make(&basis, &system, eight_nodes_of_two, &outcome, 64.0);
}

Test(output, result_counts_the_images_of_all_workers)
{
	const struct psd_result result = result_of(0.8, NULL);
	const double images = 16 * 32; /* an iteration: 16 workers, a batch of 32 each */

	expect_close(result.images_per_sec, images / 0.8);
	expect_close(result.tokens_per_sec.value, 16 * images / 0.8);
	expect_close(result.speedup.value, images / 0.8 / 64.0);
	cr_assert_not(result.published_images_per_sec.is_there || result.published_speedup.is_there);
	cr_assert_not(result.error_ratio.is_there);
}

Test(output, error_is_of_throughput_where_both_are_published)
{
	struct psd_published_row row = {.system = (char[]){"A"},
					.workers = 16,
					.has_images_per_sec = true,
					.images_per_sec = 800,
					.has_speedup = true,
					.speedup = 9};
	const struct psd_result result = result_of(0.8, &row);

	cr_assert(result.error_ratio.is_there);
	expect_close(result.error_ratio.value, 16 * 32 / 0.8 / 800 - 1);
}

Test(output, error_is_of_speedup_where_only_that_is_published)
{
	struct psd_published_row row = {.system = (char[]){"A"}, .workers = 16, .has_speedup = true, .speedup = 9};
	const struct psd_result result = result_of(0.8, &row);

	expect_close(result.error_ratio.value, 16 * 32 / 0.8 / 64.0 / 9 - 1);
}

Test(output, published_values_of_other_worker_counts_do_not_count)
{
	struct psd_published_row row = {.system = (char[]){"A"}, .workers = 8, .has_speedup = true, .speedup = 9};

	cr_assert_not(result_of(0.8, &row).published_speedup.is_there);
}

/* ---- reports ---- */

/* The smallest scenario with everything a report needs; results are filled by the tests. */
struct fixture {
	struct psd_scenario scenario;
	struct psd_costed_model costed;
	struct psd_result results[2];
	struct psd_report report;
};

static const char scenario_text[] = "title: 'a \"title\", with comma'\n"
				    "model: {graph: models/mlp.yaml, batch_per_worker: 32}\n"
				    "compute: {device: cpu}\n"
				    "cluster: {stack: none, nodes: 4, network: {bandwidth: 1Gbps, latency: 50us}}\n"
				    "systems:\n"
				    "  - {name: first, sync: ps, servers: 1, slice: 64MB}\n"
				    "  - {name: the second, sync: hybrid}\n";

static void make_fixture(struct fixture *fixture)
{
	struct psd_error err = {.text = ""};

	memset(fixture, 0, sizeof(*fixture));
	cr_assert_eq(psd_scenario_parse(&fixture->scenario, "scenarios/test.yaml", scenario_text, strlen(scenario_text),
					NULL, &err),
		     PSD_OK, "%s", err.text);
	cr_assert_eq(psd_costed_model_load(&fixture->costed, &fixture->scenario, &err), PSD_OK, "%s", err.text);
	for (unsigned s = 0; s < 2; s++) {
		const struct psd_outcome outcome = {
			.iteration_sec = 2.0,
			.parts = {.compute_sec = 0.25,
				  .other_work_sec = 0.125,
				  .exposed_comm_sec = 1.5,
				  .other_waiting_sec = 0.125},
			.busy_sec = {0.25, 0, 0, 0, 1.9},
			.sent_bytes_per_node = 123456789,
			.received_bytes_per_node = 987654321,
		};
		fixture->results[s] = (struct psd_result){
			.scenario = fixture->scenario.title,
			.system_name = fixture->scenario.systems[s].name,
			.executor = "sim-flow",
			.system = &fixture->scenario.systems[s],
			.point = psd_scenario_point(&fixture->scenario, 0),
			.bandwidth_bps = {true, 1e9},
			.outcome = outcome,
			.images_per_sec = 64,
			.speedup = {true, 2},
		};
	}
	fixture->results[0].published_speedup = (struct psd_result_value){true, 2.5};
	fixture->results[0].error_ratio = (struct psd_result_value){true, 2 / 2.5 - 1};
	fixture->results[0].is_fitted = (struct psd_result_value){true, 1.0};
	fixture->report = (struct psd_report){.costed = &fixture->costed,
					      .systems = fixture->scenario.systems,
					      .results = fixture->results,
					      .n_systems = 2,
					      .n_points = 1};
}

static void release_fixture(struct fixture *fixture)
{
	psd_costed_model_release(&fixture->costed);
	psd_scenario_release(&fixture->scenario);
}

#define FIXTURE_TEST(claim) TEST_OPENED(output, claim, struct fixture, fixture, make_fixture, release_fixture)

/* psd_case_release() when done. */
static void make_case(struct psd_case *made, const struct fixture *fixture, unsigned system)
{
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_case_make(made, &fixture->costed, &fixture->scenario.systems[system],
				   psd_scenario_point(&fixture->scenario, 0), &err),
		     PSD_OK, "%s", err.text);
}

/* The caller frees it, as those of the next. */
static char *table_of(const struct psd_report *report)
{
	struct memory memory;
	struct psd_error err = {.text = ""};

	open_memory(&memory);
	cr_assert_eq(psd_output_table(memory.out, report, &err), PSD_OK, "%s", err.text);
	text_of(&memory);
	return memory.text;
}

static char *plan_of(const struct psd_case *made)
{
	struct memory memory;
	struct psd_error err = {.text = ""};

	open_memory(&memory);
	cr_assert_eq(psd_output_plan(memory.out, made, "point 1 of 1", &err), PSD_OK, "%s", err.text);
	text_of(&memory);
	return memory.text;
}

/* Plan of the first system of a scenario. */
static char *plan_at(const char *text, unsigned point)
{
	struct loaded loaded;
	struct psd_case made;
	char *plan;

	loaded_open(&loaded, text);
	loaded_case(&made, &loaded, 0, point);
	plan = plan_of(&made);
	psd_case_release(&made);
	loaded_close(&loaded);
	return plan;
}

static void expect_bottleneck(const struct psd_report *report, const char *words)
{
	struct memory memory;

	open_memory(&memory);
	psd_output_bottlenecks(memory.out, report);
	cr_expect_not_null(strstr(text_of(&memory), words), "%s", memory.text);
	free(memory.text);
}

static void expect_notes(const struct psd_report *report, const char *expected)
{
	struct memory memory;

	open_memory(&memory);
	psd_output_notes(memory.out, report);
	cr_expect_str_eq(text_of(&memory), expected);
	free(memory.text);
}

FIXTURE_TEST(csv_row_has_every_column_and_leaves_absent_ones_empty)
{
	struct memory memory;
	struct psd_text head = {.bytes = NULL};
	struct psd_error err;

	open_memory(&memory);
	psd_columns_add_csv_head(&head, NULL);
	cr_assert_eq(psd_output_text(memory.out, &head, &err), PSD_OK);
	psd_output_find_limits(&fixture->report);
	cr_assert_eq(psd_output_csv(memory.out, &fixture->report, &err), PSD_OK);
	cr_expect_str_eq(
		text_of(&memory),
		"scenario,system,executor,nodes,workers,bandwidth_bps,iteration_sec,images_per_sec,speedup,compute_sec,"
		"exposed_comm_sec,tx_bytes_per_node,rx_bytes_per_node,published_images_per_sec,published_speedup,error_"
		"ratio,other_work_sec,other_waiting_sec,fuse_bytes,is_fitted,limit,tokens_per_sec,iteration_p50_sec,"
		"iteration_p95_sec,iteration_p99_sec,low,high,efficiency,memory_bytes,hours,cost\n"
		"\"a \"\"title\"\", with "
		"comma\",first,sim-flow,4,4,1000000000,2,64,2,0.25,1.5,123456789,987654321,,2.5,-0.2,0.125,0.125,,yes,"
		"link,,,,,,,,,,\n"
		"\"a \"\"title\"\", with comma\",the "
		"second,sim-flow,4,4,1000000000,2,64,2,0.25,1.5,123456789,987654321,,,,0.125,0.125,,,link,,,,,,,,,,\n");
	free(memory.text);
}

Test(output, the_reference_of_columns_is_current)
{
	const struct psd_reference how = {.is_markdown = true};
	struct psd_text reference = {.bytes = NULL};
	char *text;
	size_t length;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_columns_add_reference(&reference, &how, &err), PSD_OK);
	cr_assert_eq(psd_file_read(&text, &length, "engine/result/README.md", &err), PSD_OK, "%s", err.text);
	cr_expect(strstr(text, reference.bytes), "engine/result/README.md has other columns: make docs writes them");
	free(text);
	psd_text_release(&reference);
}

/* Columns that would say the same in every row are left out, and the parts stand side by side. */
FIXTURE_TEST(table_has_the_parts_that_are_there)
{
	struct psd_text table = {.bytes = NULL};

	for (unsigned r = 0; r < 2; r++)
		fixture->results[r].outcome.parts.other_waiting_sec = 0.0;
	psd_columns_add_table(&table, fixture->results, 2, 1);
	cr_expect_not_null(strstr(table.bytes, "nodes  system      "), "%s", table.bytes);
	cr_expect_not_null(strstr(table.bytes, "    0.250   0.125    1.500      123\n"), "%s", table.bytes);
	psd_text_release(&table);
}

/* The number of reads of each age up to the bound, for systems with stale reads alone. */
FIXTURE_TEST(json_holds_ages_of_reads)
{
	const struct psd_system stale = {.name = "S", .staleness = 2, .reads = PSD_READS_STALE},
				late = {.staleness = 2};
	struct psd_report report = fixture->report;
	struct psd_error err = {.text = ""};
	struct memory memory;

	report.n_systems = report.n_points = 1;
	for (unsigned s = 0; s < 2; s++) {
		struct psd_result result = fixture->report.results[0];
		struct psd_json json;

		result.system = s ? &late : &stale;
		memcpy(result.outcome.reads, (const uint64_t[]){7, 0, 9}, 3 * sizeof(uint64_t));
		report.results = &result;
		open_memory(&memory);
		json = (struct psd_json){.out = memory.out};
		psd_json_begin(&json, NULL, '[');
		cr_assert_eq(psd_output_json(&json, &report, false, &err), PSD_OK);
		psd_json_end(&json, ']');
		text_of(&memory);
		cr_expect(is_json(memory.text));
		cr_expect_eq(!!strstr(memory.text, "\"reads\":[7,0,9]"), s == 0, "%s", memory.text);
		cr_expect_eq(!!strstr(memory.text, "reads"), s == 0);
		free(memory.text);
	}
}

FIXTURE_TEST(json_holds_results_plan_and_busy_times)
{
	struct memory memory;
	struct psd_error err;

	open_memory(&memory);
	struct psd_json json = {.out = memory.out};

	psd_json_begin(&json, NULL, '[');
	cr_assert_eq(psd_output_json(&json, &fixture->report, true, &err), PSD_OK);
	psd_json_end(&json, ']');
	cr_expect(is_json(text_of(&memory)), "%s", memory.text);
	cr_expect_not_null(strstr(memory.text,
				  "\"published_images_per_sec\":null,\"published_speedup\":2.5,\"error_ratio\":-0.2,"));
	cr_expect_not_null(strstr(memory.text, "\"is_fitted\":true,\"limit\":null,"));
	cr_expect_not_null(strstr(memory.text, "\"is_fitted\":null,\"limit\":null,"));
	cr_expect_not_null(strstr(memory.text, "\"network_out_sec\":1.9}"));
	cr_expect_not_null(strstr(memory.text, "\"tensors\":[\"fc1.weight\",\"fc1.bias\"],\"method\":\"ps\""));
	cr_expect_not_null(strstr(memory.text, "\"tensors\":[\"fc1.weight\",\"fc1.bias\"],\"method\":\"sfb\""));
	free(memory.text);
}

FIXTURE_TEST(table_marks_calibrated_values_and_names_the_bottleneck)
{
	char *table;

	table = table_of(&fixture->report);
	cr_expect_not_null(strstr(table, "-20.0 c\n"));
	cr_expect_not_null(strstr(table, "\nc: calibrated on this value; not a prediction\n"));
	cr_expect_not_null(strstr(table, "fidelity flow"));
	/* 1.9 s of 2 s are 95 %; 0.25 s are 12.5 %, printed as the even 12, and 0.125 s 6 % */
	cr_expect_not_null(
		strstr(table,
		       "first at 4 nodes: bound by the network, busy for 95 % of an iteration of 2 s: 12 % "
		       "forward and backward, 6 % other work,\n  75 % exposed communication, 6 % other waiting.\n"),
		"%s", table);
	for (const char *line = table; *line; line += strcspn(line, "\n") + 1)
		cr_expect_leq(strcspn(line, "\n"), PSD_GRID_WIDTH);
	free(table);
}

FIXTURE_TEST(calibration_legend_stands_only_under_calibrated_tables)
{
	char *table;

	fixture->results[0].is_fitted = (struct psd_result_value){true, 0.0};
	table = table_of(&fixture->report);
	cr_expect_null(strstr(table, "calibrated"));
	free(table);
}

Test(output, table_marks_what_lies_beyond_the_calibration)
{
	static const struct {
		unsigned workers;
		double bandwidth_ratio;
		const char *mark; /* NULL: none */
	} cases[] = {{4, 1, NULL}, {2, 1, "  workers\n"}, {4, 2, "  link\n"}, {2, 2, "  both\n"}};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture fixture;
		char *table;

		make_fixture(&fixture);
		fixture.scenario.calibration = (struct psd_calibrated){
			cases[i].workers, fixture.results[0].point.bandwidth_bps * cases[i].bandwidth_ratio, 0.0};
		for (unsigned r = 0; r < 2; r++)
			fixture.results[r].beyond =
				psd_result_beyond(&fixture.scenario.calibration, &fixture.results[r].point);
		table = table_of(&fixture.report);
		cr_expect_eq(strstr(table, "beyond") && cases[i].mark, cases[i].mark != NULL, "%s", table);
		if (cases[i].mark)
			cr_expect_not_null(strstr(table, cases[i].mark), "%s", table);
		free(table);
		release_fixture(&fixture);
	}
}

/* An iteration of 2 s: rebuilds keep the device busy, or another worker keeps it waiting. */
Test(output, bottleneck_follows_the_largest_part)
{
	static const struct {
		struct psd_parts parts;
		const char *words;
	} cases[] = {
		{{0.5, 1.4, 0.1, 0.0},
		 "the second at 4 nodes: bound by the device, busy for 95 % of an iteration of 2 s: 25 % forward and "
		 "backward, 70 % other\n  work (factor rebuilds), 5 % exposed communication.\n"},
		{{0.5, 0.0, 0.5, 1.0},
		 "the second at 4 nodes: bound by waiting for others, which is 50 % of an iteration of 2 s: 25 % "
		 "forward and backward,\n  25 % exposed communication, 50 % other waiting (slow or uneven nodes).\n"},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture fixture;

		make_fixture(&fixture);
		fixture.scenario.jitter_ratio = 0.1;
		fixture.results[1].outcome.parts = cases[i].parts;
		fixture.results[1].outcome.takes_factors = true;
		expect_bottleneck(&fixture.report, cases[i].words);
		release_fixture(&fixture);
	}
}

FIXTURE_TEST(a_percentile_of_few_iterations_is_said_to_be_the_slowest)
{
	for (unsigned r = 0; r < 2; r++) {
		fixture->results[r].outcome.has_percentiles = true;
		fixture->results[r].outcome.n_iterations = 100;
	}
	expect_notes(&fixture->report, "");
	fixture->results[1].outcome.n_iterations = 99;
	expect_notes(&fixture->report,
		     "note: p99 of 99 iterations is the slowest of them: 'iterations: 1000' measures it\n");
}

/* Workers that wait for others do so for their uneven iterations, if anything is drawn. */
Test(output, draws_limit_workers_that_wait_for_others)
{
	static const struct {
		double jitter_ratio;
		struct psd_spread spread;
		const char *limit;
	} cases[] = {
		{0.0, {0.0, 0.0, 0.0}, "waiting"},
		{0.1, {0.0, 0.0, 0.0}, "jitter"},
		{0.0, {0.1, 0.0, 0.0}, "jitter"},
		{0.0, {0.0, 0.01, 3.0}, "jitter"},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture fixture;

		make_fixture(&fixture);
		fixture.scenario.jitter_ratio = cases[i].jitter_ratio;
		fixture.scenario.spread = cases[i].spread;
		fixture.results[1].outcome.parts = (struct psd_parts){0.5, 0.0, 0.5, 1.0};
		psd_output_find_limits(&fixture.report);
		cr_expect_str_eq(fixture.results[1].limit, cases[i].limit, "%u", i);
		release_fixture(&fixture);
	}
}

/* Without a wait at the bound nobody waits for the slow node, and it bounds nothing. */
Test(output, a_slow_node_bounds_asynchronous_training_only_at_its_bound)
{
	static const char *const expected[2] = {"device", "node 2"};
	struct fixture fixture;

	make_fixture(&fixture);
	struct psd_system *system = &fixture.scenario.systems[1];
	struct psd_outcome *outcome = &fixture.results[1].outcome;

	system->is_async = true;
	system->async.bound = 20;
	outcome->parts = (struct psd_parts){1.5, 0.4, 0.1, 0.0};
	outcome->n_iterations = 1;
	outcome->bound_from = 40;
	fixture.scenario.n_slowdowns = 1;
	fixture.scenario.slowdowns[0] = (struct psd_slowdown){2, 0.5, 1.0, 0.0, INFINITY};
	expect_bottleneck(&fixture.report, "the second at 4 nodes: bound by the device, busy for 95 % of an iteration "
					   "of 2 s, the mean over workers:");
	for (unsigned at_bound = 0; at_bound < 2; at_bound++) {
		outcome->is_at_bound = at_bound;
		psd_output_find_limits(&fixture.report);
		cr_expect_str_eq(fixture.results[1].limit, expected[at_bound]);
	}
	release_fixture(&fixture);
}

static void expect_bound_note(uint64_t from, bool is_at_bound, uint64_t job_iterations, const char *expected)
{
	const struct psd_system system = {.name = (char[]){"A"}, .is_async = true, .async = {.bound = 20}};
	const struct psd_result result = {
		.system = &system,
		.outcome = {.bound_from = from, .is_at_bound = is_at_bound, .job_iterations = job_iterations}};
	struct psd_text text = {.bytes = NULL};

	psd_result_add_bound(&text, &result, "' at 4 nodes");
	cr_expect_str_eq(text.bytes ? text.bytes : "", expected);
	psd_text_release(&text);
}

Test(output, a_note_tells_whether_a_bound_is_reached)
{
	expect_bound_note(0, false, 240, "");
	expect_bound_note(40, false, 15,
			  "note: 'A' at 4 nodes: no worker reaches the bound of 20 in the 15 iterations of the "
			  "training\n");
	expect_bound_note(40, false, 1,
			  "note: 'A' at 4 nodes: no worker reaches the bound of 20 in the 1 iteration of the "
			  "training\n");
	expect_bound_note(40, true, 240,
			  "note: 'A' at 4 nodes: a quick worker is 20 iterations ahead after about 40 of the 240 "
			  "iterations of the training and then waits, which is predicted\n");
	expect_bound_note(40, false, 0,
			  "note: 'A' at 4 nodes: a quick worker is 20 iterations ahead after about 40 and then waits, "
			  "which is not predicted: 'train.iterations' and 'job' tell how long the training is\n");
}

/* 3 s of the slowest worker for 2 s of the mean one. */
Test(output, a_note_tells_that_an_asynchronous_job_waits_for_its_slowest_worker)
{
	const struct psd_system system = {.name = (char[]){"A"}, .is_async = true};
	struct psd_result result = {.system = &system, .outcome = {.iteration_sec = 2.0, .slowest_sec = 3.0}};
	struct psd_text text = {.bytes = NULL};

	psd_result_add_bound(&text, &result, "' at 4 nodes");
	cr_expect_null(text.bytes, "a note without a job");
	result.job_hours.is_there = true;
	psd_result_add_bound(&text, &result, "' at 4 nodes");
	cr_expect_str_eq(text.bytes ? text.bytes : "",
			 "note: 'A' at 4 nodes: the job ends when the slowest worker has trained its part, after 50 % "
			 "more time than samples/s tell\n");
	psd_text_release(&text);
}

/* A rebuild that no operation makes is not told of, and a slower node is named by its number in row and sentence. */
Test(output, a_slower_node_is_named_and_no_rebuild_that_is_not_there)
{
	struct fixture fixture;

	make_fixture(&fixture);
	fixture.results[1].outcome.parts = (struct psd_parts){0.5, 1.4, 0.1, 0.0};
	fixture.results[0].outcome.n_iterations = fixture.results[1].outcome.n_iterations = 1;
	fixture.scenario.n_slowdowns = 2;
	fixture.scenario.slowdowns[0] = (struct psd_slowdown){2, 0.5, 1.0, 0.0, INFINITY};
	fixture.scenario.slowdowns[1] = (struct psd_slowdown){1, 1.0, 0.25, 0.0, INFINITY};
	expect_bottleneck(
		&fixture.report,
		"the second at 4 nodes: bound by the device of node 2, at 50 % of its speed, busy for 95 % of an "
		"iteration of 2 s: 25 %\n  forward and backward, 70 % other work, 5 % exposed communication.\n");
	expect_bottleneck(&fixture.report,
			  "first at 4 nodes: bound by the link of node 1, at 25 % of its rate, busy for 95 %");
	psd_output_find_limits(&fixture.report);
	cr_expect_str_eq(fixture.results[0].limit, "link of node 1");
	cr_expect_str_eq(fixture.results[1].limit, "node 2");
	fixture.report.is_estimate = true; /* it ignores them */
	psd_output_find_limits(&fixture.report);
	cr_expect_str_eq(fixture.results[1].limit, "device");
	release_fixture(&fixture);
}

/* Links have 1 Gbit/s. Four workers send to one server: it receives at 600 / (1 + 0.25 * 4) Mbit/s. */
FIXTURE_TEST(a_stack_that_moves_less_than_the_link_is_named)
{
	struct psd_host_costs *host;

	host = &fixture->scenario.systems[0].host;
	host->transport_bps = 1e9;
	expect_bottleneck(&fixture->report, "first at 4 nodes: bound by the network, busy for 95 % of");
	host->transport_bps = 600e6;
	expect_bottleneck(&fixture->report, "first at 4 nodes: bound by the software stack, which moves 600 Mb/s where "
					    "the link has 1 Gb/s (host.transport), busy for\n  95 % of");
	fixture->scenario.systems[0].budget_bps = 100e6;
	expect_bottleneck(&fixture->report, "first at 4 nodes: bound by the system's budget of 100 Mb/s, where the "
					    "link has 1 Gb/s (systems.budget), busy for 95 % of");
	fixture->scenario.systems[0].budget_bps = 0.0;
	host->incast_ratio = 0.25;
	expect_bottleneck(&fixture->report,
			  "first at 4 nodes: bound by the software stack, which receives 300 Mb/s from many senders at "
			  "once where the link has 1\n  Gb/s (host.incast), busy for 95 % of");
}

/* A faster link would help: 90 % of it in all, 70 % by several connections, or else 60 % by one. */
FIXTURE_TEST(a_share_of_the_link_is_the_link)
{
	struct psd_host_costs *host;

	host = &fixture->scenario.systems[0].host;
	host->share_ratio = 0.9;
	expect_bottleneck(&fixture->report, "first at 4 nodes: bound by the network, of whose 1 Gb/s the software "
					    "stack reaches 90 % (host.share), busy for 95 % of");
	host->transport_bps = 600e6;
	host->streams_ratio = 0.7;
	expect_bottleneck(&fixture->report, "first at 4 nodes: bound by the network, of whose 1 Gb/s the software "
					    "stack reaches 70 % (host.streams), busy for 95 % of");
	psd_output_find_limits(&fixture->report);
	cr_expect_str_eq(fixture->results[0].limit, "link");
	host->streams_ratio = 0.5;
	psd_output_find_limits(&fixture->report);
	cr_expect_str_eq(fixture->results[0].limit, "stack");
}

/* Links of the first group have 1 Gbit/s. The stack hides a link that is quicker than it. */
FIXTURE_TEST(a_group_with_a_slower_link_is_named)
{
	fixture->scenario.n_groups = 2;
	fixture->scenario.groups[0] = fixture->scenario.groups[1] =
		(struct psd_node_group){.nodes = 2, .workers_per_node = 1, .speed_ratio = 1.0};
	fixture->scenario.groups[1].bandwidth_bps = 100e6;
	expect_bottleneck(&fixture->report, "first at 4 nodes: bound by the link of group 1, which has 100 Mb/s, busy "
					    "for 95 % of");
	psd_output_find_limits(&fixture->report);
	cr_expect_str_eq(fixture->results[0].limit, "link of group 1");
	fixture->scenario.systems[0].host.transport_bps = 50e6;
	expect_bottleneck(&fixture->report, "first at 4 nodes: bound by the software stack, which moves 50 Mb/s where "
					    "the link has 1 Gb/s");
}

/* Four workers in two racks send n bytes each to one server. Its link of rate L receives 4 n in 4 n / L. Half of them
 * come from the other rack, by uplinks of 2 L / oversubscription together: in 2 n / L with 2, and in 8 n / L with 8. */
FIXTURE_TEST(uplinks_that_take_longer_than_links_are_named)
{
	static const struct {
		double oversubscription_ratio;
		const char *limit;
	} cases[] = {{2.0, "link"}, {8.0, "uplinks"}};

	fixture->scenario.network.topology = PSD_TOPOLOGY_RACKS;
	fixture->scenario.network.nodes_per_rack = 2;
	for (unsigned i = 0; i < 2; i++) {
		fixture->scenario.network.oversubscription_ratio = cases[i].oversubscription_ratio;
		psd_output_find_limits(&fixture->report);
		cr_expect_str_eq(fixture->results[0].limit, cases[i].limit);
	}
	expect_bottleneck(&fixture->report,
			  "first at 4 nodes: bound by the uplinks of the racks (network.oversubscription), busy for");
}

static void make_ring(struct psd_system *system)
{
	system->sync = PSD_SYNC_ALL_REDUCE;
	system->servers = 0;
}

/* Steps of a ring over two racks of two: each sends n bytes out of a node, by a link of rate L in n / L, and out of a
 * rack, by an uplink of 2 L / oversubscription: in n / L with 2, and in 2 n / L with 4. */
FIXTURE_TEST(uplinks_that_lengthen_steps_are_named)
{
	static const enum psd_topology topologies[] = {PSD_TOPOLOGY_RACKS, PSD_TOPOLOGY_FAT_TREE};

	make_ring(&fixture->scenario.systems[0]);
	fixture->scenario.network.nodes_per_rack = 2;
	for (unsigned i = 0; i < 4; i++) {
		fixture->scenario.network.topology = topologies[i / 2];
		fixture->scenario.network.oversubscription_ratio = i % 2 == 0 ? 2.0 : 4.0;
		psd_output_find_limits(&fixture->report);
		cr_expect_str_eq(fixture->results[0].limit, i % 2 == 0 ? "link" : "uplinks", "%u", i);
	}
}

/* A ring over W workers on each of N nodes sends as many bytes out of each worker as out of each node, by links inside
 * nodes of rate l and between nodes of rate 1 Gbit/s; on one node it sends none out of a node. */
FIXTURE_TEST(links_inside_a_node_that_take_longer_are_named)
{
	static const struct {
		unsigned nodes;
		double local_bps;
		const char *limit;
	} cases[] = {{1, 9e9, "local link"}, {2, 9e9, "link"}, {2, 0.9e9, "local link"}, {4, 0.9e9, "link"}};

	make_ring(&fixture->scenario.systems[0]);
	for (unsigned i = 0; i < 4; i++) {
		struct psd_result *result = &fixture->results[0];

		fixture->scenario.network.local_bps = cases[i].local_bps;
		result->point.nodes = cases[i].nodes;
		result->point.workers_per_node = 4 / cases[i].nodes;
		psd_output_find_limits(&fixture->report);
		cr_expect_str_eq(result->limit, cases[i].limit, "%u", i);
		if (i == 0)
			expect_bottleneck(&fixture->report, "bound by the links inside a node (cluster.local), busy");
	}
	fixture->results[0].point.nodes = 2;
	fixture->results[0].point.workers_per_node = 2;
	fixture->scenario.network.local_bps = 0.0;
	fixture->scenario.systems[0].host.local_bps = 0.8e9;
	expect_bottleneck(&fixture->report, "bound by the links inside a node (host.local), busy");
}

/* Nothing leaves the only node, so neither its link nor a budget is the limit. */
FIXTURE_TEST(the_stack_is_named_on_one_node_without_links_inside)
{
	make_ring(&fixture->scenario.systems[0]);
	fixture->scenario.systems[0].budget_bps = 1e8;
	fixture->results[0].point.nodes = 1;
	fixture->results[0].point.workers_per_node = 4;
	psd_output_find_limits(&fixture->report);
	cr_expect_str_eq(fixture->results[0].limit, "stack");
	expect_bottleneck(&fixture->report, "bound by the software stack inside the node, busy");
}

/* Four nodes share one core of rate c for S bytes out and R > S in: (S + R) / (c / 4) is longer than R / L of a link of
 * rate L if c < 4 (S + R) / R L, with (S + R) / R = 1.125 below 4.5 Gbit/s at L = 1 Gbit/s. */
FIXTURE_TEST(cores_that_need_longer_for_bytes_than_the_link_are_named)
{
	static const struct {
		double core_bps;
		const char *limit;
	} cases[] = {{9e9, "link"}, {2e9, "cores"}};

	fixture->scenario.machine.cores = 1;
	for (unsigned i = 0; i < 2; i++) {
		fixture->scenario.machine.bytes_bps = cases[i].core_bps;
		psd_output_find_limits(&fixture->report);
		cr_expect_str_eq(fixture->results[0].limit, cases[i].limit);
	}
	expect_bottleneck(&fixture->report,
			  "first at 4 nodes: bound by the cores that move its bytes (machine.bytes), busy for 95 % of");
}

/* Cores of a machine compute layers, too. */
FIXTURE_TEST(a_machine_beside_an_accelerator_is_noted)
{
	fixture->scenario.machine.cores = 2;
	expect_notes(&fixture->report, "");
	fixture->scenario.device_name = "a100";
	expect_notes(&fixture->report,
		     "note: without 'host' copies and sums cost nothing on stack 'none'\n"
		     "note: 'cluster.machine' is for machines without accelerators: its cores compute the layers of "
		     "device 'a100' and serve\n      its messages; leave it out for devices of their own\n");
}

/* With a wide budget nothing is withheld, with a narrow one something is. */
FIXTURE_TEST(chunks_are_noted_at_the_last_point_that_withholds_some)
{
	struct psd_system *system = &fixture->scenario.systems[0];

	system->is_managed = system->finds_early = true;
	system->managed.clock = 4;
	fixture->report.n_systems = 1;
	fixture->report.n_points = 2;
	fixture->results[0].outcome.early = (struct psd_early_chunks){8, 2, 0.25};
	fixture->results[1].outcome.early = (struct psd_early_chunks){8, 8, 0.75};
	fixture->results[1].system = system;
	fixture->results[1].point.nodes = fixture->results[1].point.workers = 2;
	expect_notes(
		&fixture->report,
		"note: 'first' sends some chunks of gradients in each iteration and all of them every 4 "
		"iterations, so that a gradient is withheld for at most 3 iterations; with more than one worker its "
		"training differs from training without this\n"
		"note: 'first' at 4 nodes sent 2 of 8 chunks (25 %) in each iteration but the last of a clock, 25 "
		"% of all values that it sent\n");
	fixture->results[0].outcome.early.n_sent = 8;
	expect_notes(&fixture->report,
		     "note: 'first' at 2 nodes sent all 8 chunks in each iteration and withheld none\n");
}

FIXTURE_TEST(a_training_shorter_than_a_period_is_noted)
{
	fixture->results[1].outcome.period = 16;
	fixture->results[1].outcome.job_iterations = 4;
	expect_notes(&fixture->report,
		     "note: 'the second' at 4 nodes is predicted over whole periods of 16 iterations; the training has "
		     "4 and ends with an exchange of all values, so that it sends more\n");
}

/* The links have 1 Gbit/s. Separate servers keep them where a group's are slower; a slow node may have a faster one. */
FIXTURE_TEST(a_budget_beyond_the_links_is_noted)
{
	static const char note[] =
		"note: 'the second' has a 'budget' of 500 Mb/s, which limits nothing: the fastest link "
		"has 400 Mb/s\n";
	struct psd_system *system = &fixture->scenario.systems[1];

	system->budget_bps = 500e6;
	expect_notes(&fixture->report, "");
	fixture->scenario.n_groups = 1;
	fixture->scenario.groups[0] = (struct psd_node_group){.nodes = 4, .bandwidth_bps = 400e6};
	expect_notes(&fixture->report, note);
	system->servers = 1;
	expect_notes(&fixture->report, "");
	system->servers = 0;
	fixture->results[1].point.nodes = 1;
	expect_notes(&fixture->report, "");
	fixture->results[1].point.nodes = 4;
	fixture->scenario.n_slowdowns = 1;
	fixture->scenario.slowdowns[0] = (struct psd_slowdown){2, 1.0, 2.0, 0.0, INFINITY};
	expect_notes(&fixture->report, "");
}

FIXTURE_TEST(many_systems_with_one_verdict_share_a_sentence)
{
	enum { MANY = 7 };
	struct psd_result results[MANY];

	for (unsigned i = 0; i < MANY; i++)
		results[i] = fixture->results[0];
	results[1].system = results[2].system = fixture->results[1].system;
	results[1].outcome.busy_sec[PSD_RESOURCE_NIC] = 1.7; /* 85 % of 2 s, and 95 % in the others */
	results[2].outcome.parts = (struct psd_parts){2.0, 0.0, 0.0, 0.0};
	fixture->report.results = results;
	fixture->report.n_systems = MANY;
	expect_bottleneck(&fixture->report,
			  "first, the second, first, first, first, first at 4 nodes: bound by the network, busy for 85 "
			  "to 95 %.\nthe second at 4 nodes: bound by the device, busy for 100 %.\n");
}

static void expect_note_in(const char *text, const char *words)
{
	struct psd_scenario scenario;
	struct psd_error err = {.text = ""};
	struct psd_costed_model costed = {.scenario = &scenario};
	struct psd_report report = {.costed = &costed};

	cr_assert_eq(psd_scenario_parse(&scenario, "t.yaml", text, strlen(text), NULL, &err), PSD_OK, "%s", err.text);
	report.systems = scenario.systems;
	report.n_systems = scenario.n_systems;
	expect_notes(&report, words);
	psd_scenario_release(&scenario);
}

static void expect_note_of(const char *device, const char *network, const char *systems, const char *words)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "model: {graph: m.yaml, batch_per_worker: 1}\ncompute: {device: %s}\n"
		 "cluster: {stack: none, nodes: 2, network: {bandwidth: %s, latency: 0s}}\nsystems: [%s]\n",
		 device, network, systems);
	expect_note_in(text, words);
}

static void expect_note(const char *network, const char *systems, const char *words)
{
	expect_note_of("cpu", network, systems, words);
}

Test(output, a_device_whose_copies_cost_nothing_is_reported)
{
	expect_note("1Gbps", "{name: a, sync: ps}", "");
	expect_note_of("p100", "1Gbps", "{name: a, sync: ps}",
		       "note: without 'host' copies and sums cost nothing on stack 'none'\n");
	expect_note_of("p100", "1Gbps", "{name: a, sync: ps}, {name: b, sync: ps, host: {copy: 8GBps}}", "");
}

Test(output, links_that_the_stack_cannot_use_are_reported)
{
	expect_note("10Gbps", "{name: a, sync: ps, host: {transport: 10Gbps}}", "");
	expect_note("25Gbps", "{name: a, sync: ps, host: {transport: 10Gbps}}",
		    "note: the software stack moves at most 10 Gb/s in or out of a node (host.transport): links faster "
		    "than that change\n      nothing\n");
	expect_note("25Gbps",
		    "{name: a, sync: ps, host: {transport: 10Gbps}}, {name: b, sync: ps}, "
		    "{name: c, sync: ps, host: {transport: 5Gbps}}",
		    "note: the software stack of some systems moves at most 5 Gb/s to 10 Gb/s in or out of a node "
		    "(host.transport): links\n      faster than that change nothing\n");
}

/* The stack moves all of the cluster's rate, which no group of nodes has. */
Test(output, links_of_groups_that_the_stack_cannot_use_are_reported)
{
	expect_note_in(
		"model: {graph: m.yaml, batch_per_worker: 1}\ncompute: {device: cpu}\n"
		"cluster: {stack: none, network: {bandwidth: 1Gbps, latency: 0s},\n"
		"  groups: [{nodes: 1, network: {bandwidth: 5Gbps}}, {nodes: 1, network: {bandwidth: 25Gbps}}]}\n"
		"systems: [{name: a, sync: ps, host: {transport: 10Gbps}}]\n",
		"note: the software stack moves at most 10 Gb/s in or out of a node (host.transport): links "
		"faster than that change\n      nothing\n");
}

/* 10 Gbit/s are 40 % of 25; of 50, several connections reach 20. */
Test(output, links_of_which_connections_reach_a_share_are_reported)
{
	expect_note(
		"20Gbps", "{name: a, sync: ps, host: {transport: 10Gbps, streams: 40%}}",
		"note: the software stack moves at most 10 Gb/s in or out of a node (host.transport): links faster "
		"than that change\n      nothing up to 25 Gb/s, where several connections reach more (host.streams)\n");
	expect_note("50Gbps", "{name: a, sync: ps, host: {transport: 10Gbps, streams: 40%}}, {name: b, sync: ps}",
		    "note: the software stack of some systems reaches 40 % of a link's rate by several connections "
		    "(host.streams)\n");
	expect_note("50Gbps", "{name: a, sync: ps, stack: nccl-tcp}",
		    "note: the software stack reaches 45 % of a link's rate by several connections (host.streams), "
		    "which stack nccl-tcp\n      assumes: no published value checks it; measure yours, and set it\n");
}

Test(output, a_noisy_calibration_is_reported)
{
	expect_note("1Gbps", "{name: a, sync: ps}]\ncalibration: {spread: 15%}\n#", "");
	expect_note("1Gbps", "{name: a, sync: ps}]\ncalibration: {spread: 70%}\n#",
		    "note: calibrated with a spread of 70 %: predictions may be off by as much; calibrate again on a "
		    "quiet machine\n");
}

TEST_ROW(output, a_system_with_steps_in_place_of_a_librarys_is_named,
	 expect_note("10Gbps", "{name: a, sync: ring}, {name: b, sync: nccl}",
		     "note: 'b' leaves its sums to a library ('sync: nccl') by steps that are not seen here: bytes and "
		     "predicted times are a ring's, or those of double trees over nodes where these are quicker\n"))

/* In an iteration of 2 s the device takes 1.1 and the network 0.8: 95 %, and neither is used up. */
FIXTURE_TEST(two_that_take_turns_are_both_named)
{
	fixture->results[0].outcome.busy_sec[PSD_RESOURCE_DEVICE] = 1.1;
	fixture->results[0].outcome.busy_sec[PSD_RESOURCE_NIC] = 0.8;
	expect_bottleneck(
		&fixture->report,
		"first at 4 nodes: bound by turns of the device and the network; the latter is busy for 40 %");
}

FIXTURE_TEST(nothing_busy_is_waiting)
{
	fixture->results[0].outcome.busy_sec[PSD_RESOURCE_NIC] = 1.0; /* half of the iteration, and wait-free */
	expect_bottleneck(&fixture->report, "first at 4 nodes: bound by waiting");
}

FIXTURE_TEST(estimate_says_what_it_ignores)
{
	static const char text[] = "model: {graph: m.yaml, batch_per_worker: 1}\ncompute: {device: cpu, jitter: 10%}\n"
				   "cluster:\n  stack: none\n  nodes: 2\n"
				   "  network: {bandwidth: 1Gbps, latency: 0s, topology: racks, nodes_per_rack: 2}\n"
				   "  slow: [{node: 0, compute: 50%}]\n"
				   "systems:\n  - {name: A}\n";
	struct psd_scenario disturbed;
	struct psd_error err = {.text = ""};

	fixture->report.is_estimate = true;
	expect_notes(&fixture->report, "");
	cr_assert_eq(psd_scenario_parse(&disturbed, "a.yaml", text, strlen(text), NULL, &err), PSD_OK, "%s", err.text);
	fixture->report.costed = &(struct psd_costed_model){.scenario = &disturbed};
	expect_notes(&fixture->report, "note: used only by psd-sim's simulation and replays: 'compute.jitter'\n"
				       "note: used only by psd-sim's simulation and psd-run: 'cluster.slow'\n");
	psd_scenario_release(&disturbed);
}

FIXTURE_TEST(plan_gives_the_rule_in_words_with_its_figures)
{
	struct psd_case made;
	char *plan;

	make_case(&made, fixture, 1);
	plan = plan_of(&made);
	/* P = S = 4, K = 32, M = N = 4096 */
	const unsigned factors = 2 * 32 * 3 * (4096 + 4096), dense = 2 * 4096 * 4096 / 4 * (4 + 4 - 2);
	char expected[200];

	snprintf(expected, sizeof(expected), "fc2: sfb, as 2 K (P-1)(M+N) = %u <= 2 M N (P+S-2)/S = %u values\n",
		 factors, dense);
	cr_expect_not_null(strstr(plan, expected), "%s", plan);
	free(plan);
	psd_case_release(&made);
}

/* Factors are no candidate, which the rule in bytes would take here. */
FIXTURE_TEST(plan_of_local_steps_gives_the_rule_in_seconds_alone)
{
	struct psd_case made;
	char *plan;

	fixture->scenario.systems[1].rule = PSD_RULE_SECONDS;
	fixture->scenario.systems[1].is_local = true;
	fixture->scenario.systems[1].local_sgd.steps = 4;
	make_case(&made, fixture, 1);
	plan = plan_of(&made);
	cr_expect_not_null(strstr(plan, "fc2: ps, as ps takes "), "%s", plan);
	cr_expect_null(strstr(plan, "sfb"), "%s", plan);
	cr_expect_null(strstr(plan, "the rule in bytes"), "%s", plan);
	free(plan);
	psd_case_release(&made);
}

/* With 4 nodes and 1 peer, a period of 3 has 3 times the factors and one average. */
Test(output, plan_of_some_peers_tells_what_is_counted)
{
	static const char text[] =
		"model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 32}\ncompute: {device: k20}\n"
		"cluster: {stack: none, network: {bandwidth: 1Gbps, latency: 50us}}\nsweep: {nodes: [4]}\n"
		"systems: [{name: A, sync: hybrid, peers: 1, local_sgd: {steps: 3}}]\n";
	char *plan = plan_at(text, 0);

	cr_expect_not_null(strstr(plan,
				  "peers: factors are sent in each of these 3 iterations; MB and ms of partial sfb "
				  "are those of an iteration\nwith an exchange, its factors and the parameters"),
			   "%s", plan);
	free(plan);
}

/* Matrices in blocks, the others by servers as they are, and a column of what blocks would cost each. A worker alone
 * has none. */
Test(output, plan_of_compressed_gradients_has_a_column_of_them)
{
	static const char text[] =
		"model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 32}\ncompute: {device: k20}\n"
		"cluster: {stack: none, network: {bandwidth: 1Gbps, latency: 50us}}\nsweep: {nodes: [1, 4]}\n"
		"systems: [{name: A, sync: ps, servers: 2, compress: {by: one-bit, tensors: matrices}}]\n";
	static const char *const expected[] = {"ip1    weight, bias  0.262  one-bit ps  ",
					       "conv3  weight, bias  0.205  ps  ",
					       "sync is ps: the system leaves no choice\n"};

	for (unsigned point = 0; point < 2; point++) {
		char *plan = plan_at(text, point);
		const char *heads = strstr(plan, " adam ");

		cr_assert_not_null(heads, "%s", plan);
		const char *packed = strstr(heads, " one-bit ps ");
		cr_expect_eq(packed && packed < strchr(heads, '\n'), point == 1, "%s", plan);
		for (unsigned i = 0; point == 1 && i < sizeof(expected) / sizeof(expected[0]); i++)
			cr_expect_not_null(strstr(plan, expected[i]), "'%s' in\n%s", expected[i], plan);
		if (point == 0)
			cr_expect_null(strstr(plan, "one-bit"), "%s", plan);
		free(plan);
	}
}

/* A label may be cut at its end, so its number is first. 145,578 parameters are 5 chunks of 32 Ki at most; LARS adds
 * two squares of each of 6 tensors. */
Test(output, plan_of_several_tensors_begins_with_their_number)
{
	static const char sparse[] =
		"model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 32}\ncompute: {device: k20}\n"
		"cluster: {stack: none, network: {bandwidth: 1Gbps, latency: 50us}}\nsweep: {nodes: [4]}\n"
		"systems: [{name: A, sync: ring, fuse: 1MiB, sparse: {sparsity: 0.5}}]\n";
	static const char by_norms[] =
		"model: {graph: tests/data/maskless.yaml, batch_per_worker: 8}\ncompute: {device: cpu}\n"
		"cluster: {stack: none, nodes: 4, network: {bandwidth: 1Gbps, latency: 50us}}\n"
		"systems: [{name: A, sync: zero-1}]\n"
		"train: {iterations: 1, learning_rate: {policy: fixed, base: 0.1}, optimiser: {kind: lars}}\n";
	char *plan = plan_at(sparse, 0);

	cr_expect_not_null(strstr(plan, "\nconv1  10 tensors: ip2.weig"), "%s", plan);
	cr_expect_not_null(strstr(plan, "\nconv1  5 norms of chunks "), "%s", plan);
	free(plan);
	plan = plan_at(by_norms, 0);
	cr_expect_not_null(strstr(plan, "\nconv   12 squares "), "%s", plan);
	free(plan);
}

/* For a layer of 64 x 1024 and 64 biases in rank 9, a node of four sends 2 (4-1)/4, and receives as much: 64 * 9 + 64
 * left values and 1024 * 9 right ones. The layer of 10 x 64 has no factors: 74 * 9 are more than 640. A worker alone
 * has none. */
Test(output, plan_of_low_rank_has_a_column_of_narrow_matrices)
{
	static const char text[] =
		"model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 32}\ncompute: {device: k20}\n"
		"cluster: {stack: none, network: {bandwidth: 1Gbps, latency: 50us}}\nsweep: {nodes: [1, 4]}\n"
		"systems: [{name: A, sync: ring, unit: layer, low_rank: {rank: 9}}]\n";
	const double ring_bytes = 2 * 2 * 3 / 4.0 * 4 * (64 * 9 + 64 + 1024 * 9);
	char cell[32];

	snprintf(cell, sizeof(cell), "%.4g ", ring_bytes / 1e6);
	for (unsigned point = 0; point < 2; point++) {
		char *plan = plan_at(text, point);

		if (point == 0) {
			cr_expect_null(strstr(plan, "low-rank"), "%s", plan);
		} else {
			const char *heads = strstr(plan, " adam "), *row = strstr(plan, "\nip1 ");

			cr_assert(heads && row, "%s", plan);
			const char *narrow = strstr(heads, " low-rank ring "), *value = strstr(row, cell);
			cr_expect(narrow && narrow < strchr(heads, '\n'), "%s", plan);
			cr_expect_eq(strncmp(row, "\nip1    weight, bias  0.262  low-rank", 37), 0, "%s", row);
			cr_expect(value && value < strchr(row + 1, '\n'), "%s in %s", cell, row);
			cr_expect_not_null(strstr(plan, "\nip2    weight, bias  0.003  ring  "), "%s", plan);
			cr_expect_not_null(strstr(plan, "sync is ring: the system leaves no choice\n"), "%s", plan);
		}
		free(plan);
	}
}

FIXTURE_TEST(printed_scenario_reads_back_as_the_same)
{
	struct psd_text first = {.bytes = NULL}, second = {.bytes = NULL};
	struct psd_scenario again;
	struct psd_error err = {.text = ""};

	fixture->scenario.network.latency_sec = 30e-6;
	fixture->scenario.network.payload_ratio = 0.956;
	fixture->scenario.systems[0].host.copy_bps = 2.3e9 * 8;
	fixture->scenario.machine.cores = 2;
	fixture->scenario.machine.bytes_bps = 1.7e9 * 8;
	fixture->scenario.machine.message_sec = 1.0 / 3.0; /* needs all 17 digits */
	fixture->scenario.systems[0].host.latency_sec = 47.25e-6;
	psd_scenario_add_text(&first, &fixture->scenario);
	cr_assert_eq(psd_scenario_parse(&again, "again.yaml", first.bytes, first.length, NULL, &err), PSD_OK,
		     "%s in\n%s", err.text, first.bytes);
	cr_expect_eq(again.network.latency_sec, 30e-6);
	cr_expect_eq(again.network.payload_ratio, 0.956);
	cr_expect_eq(again.systems[0].host.copy_bps, 2.3e9 * 8);
	cr_expect_eq(again.machine.bytes_bps, 1.7e9 * 8);
	cr_expect_eq(again.machine.message_sec, 1.0 / 3.0);
	cr_expect_eq(again.systems[0].host.latency_sec, 47.25e-6);
	cr_expect_eq(again.host.latency_sec, 0);
	psd_scenario_add_text(&second, &again);
	cr_expect_str_eq(second.bytes, first.bytes);
	psd_text_release(&first);
	psd_text_release(&second);
	psd_scenario_release(&again);
}

/* ---- grid ---- */

Test(output, grid_lines_up_and_leaves_empty_columns_out)
{
	struct psd_grid grid = {.n_rows = 0};
	struct psd_text text = {.bytes = NULL};

	psd_grid_add_column(&grid, "", "name", true);
	psd_grid_add_column(&grid, "not", "shown", false);
	psd_grid_add_column(&grid, "time", "s", false);
	psd_grid_add_row(&grid);
	psd_grid_set(&grid, 0, "\xc3\xa9t\xc3\xa9"); /* three characters in five bytes */
	psd_grid_set(&grid, 2, "1.5");
	psd_grid_add_gap(&grid);
	psd_grid_add_row(&grid);
	psd_grid_set(&grid, 0, "a\x1b[2J");
	psd_grid_set(&grid, 2, "10.25");
	psd_grid_add(&text, &grid);
	cr_expect_str_eq(text.bytes, "        time\n"
				     "name       s\n"
				     "------------\n"
				     "\xc3\xa9t\xc3\xa9      1.5\n"
				     "\n"
				     "a?[2J  10.25\n");
	psd_text_release(&text);
	psd_grid_release(&grid);
}

Test(output, grid_cuts_the_first_wide_column_to_the_page)
{
	struct psd_grid grid = {.n_rows = 0};
	struct psd_text text = {.bytes = NULL};

	psd_grid_add_column(&grid, "", "name", true);
	psd_grid_add_column(&grid, "", "text", true);
	psd_grid_add_row(&grid);
	psd_grid_set(&grid, 0, "%080d", 1);
	psd_grid_set(&grid, 1, "%080d", 1);
	psd_grid_add(&text, &grid);
	const char *row = strstr(text.bytes, "\n000");

	cr_assert_not_null(row);
	cr_expect_eq(strcspn(row + 1, "\n"), PSD_GRID_WIDTH);
	cr_expect_not_null(strstr(row, "00..  000"));
	psd_text_release(&text);
	psd_grid_release(&grid);
}

Test(output, grid_cuts_no_whole_column_in_a_file)
{
	struct psd_grid grid = {.is_whole = {true}};
	struct psd_text text = {.bytes = NULL};

	psd_grid_add_column(&grid, "", "limit", true);
	psd_grid_add_column(&grid, "", "name", true);
	psd_grid_add_row(&grid);
	psd_grid_set(&grid, 0, "%080d", 1);
	psd_grid_set(&grid, 1, "%080d", 1);
	psd_grid_add(&text, &grid);
	cr_expect_not_null(strstr(text.bytes, "0001  000"), "%s", text.bytes);
	cr_expect_not_null(strstr(text.bytes, "00..\n"), "%s", text.bytes);
	psd_text_release(&text);
	psd_grid_release(&grid);
}

/* Even where the line is longer then. */
Test(output, grid_cuts_no_two_cells_to_the_same)
{
	struct psd_grid grid = {.n_rows = 0};
	struct psd_text text = {.bytes = NULL};

	psd_grid_add_column(&grid, "", "name", true);
	psd_grid_add_column(&grid, "", "text", false);
	for (unsigned last = 1; last <= 2; last++) {
		psd_grid_add_row(&grid);
		psd_grid_set(&grid, 0, "a name that differs late from others, %u and more", last);
		psd_grid_set(&grid, 1, "%0110d", 1);
	}
	psd_grid_add(&text, &grid);
	cr_expect_not_null(strstr(text.bytes, "\na name that differs late from others, 1..  000"), "%s", text.bytes);
	cr_expect_not_null(strstr(text.bytes, "\na name that differs late from others, 2..  000"), "%s", text.bytes);
	psd_text_release(&text);
	psd_grid_release(&grid);
}

Test(output, sentence_breaks_between_words_but_not_before_a_per_cent_sign)
{
	struct psd_text sentence = {.bytes = NULL};
	struct memory memory;

	for (int i = 0; i < 59; i++) /* 118 characters */
		psd_text_add(&sentence, "a ");
	psd_text_add(&sentence, "5 %% b");
	open_memory(&memory);
	psd_sentence_write(memory.out, &sentence, 2);
	cr_expect_not_null(strstr(text_of(&memory), " a\n  5 % b\n"));
	free(memory.text);
}

/* Points below each other, four digits, and all before the point; what the decimals do not show is 0. */
Test(output, grid_lines_numbers_up_at_their_points)
{
	static const double values[] = {2.49372, 0.0771, 0, 10.00004, 40138.4, 1e-9};
	struct psd_grid grid = {.n_rows = 0};
	struct psd_text text = {.bytes = NULL};

	psd_grid_add_column(&grid, "", "s", false);
	psd_grid_add_column(&grid, "", "name", true);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		psd_grid_add_row(&grid);
		psd_grid_set_number(&grid, 0, values[i], 4);
		psd_grid_set(&grid, 1, "x");
	}
	psd_grid_add(&text, &grid);
	cr_expect_str_eq(text.bytes, "\n"
				     "         s  name\n"
				     "----------------\n"
				     "    2.494   x\n"
				     "    0.0771  x\n"
				     "    0       x\n"
				     "   10.00    x\n"
				     "40138       x\n"
				     "    0       x\n");
	psd_text_release(&text);
	psd_grid_release(&grid);
}

/* Iterations of 1.5 and 0.5 ms, of which 1 ms is waiting: the smallest, 0.5, keeps three digits. */
FIXTURE_TEST(table_of_short_iterations_is_in_milliseconds)
{
	struct psd_text table = {.bytes = NULL};

	for (unsigned r = 0; r < 2; r++) {
		struct psd_result *result = &fixture->results[r];

		result->outcome.iteration_sec = r ? 1.5e-3 : 0.5e-3;
		result->outcome.parts = (struct psd_parts){.compute_sec = 0.5e-3, .exposed_comm_sec = r ? 1e-3 : 0.0};
		result->speedup = (struct psd_result_value){true, r ? 1.0 / 3000 : 1.0};
	}
	psd_columns_add_table(&table, fixture->results, 2, 1);
	cr_expect_not_null(strstr(table.bytes, "  iteration                      compute  exposed"), "%s", table.bytes);
	cr_expect_not_null(strstr(table.bytes, "ms  samples/s  speedup       ms  comm ms"), "%s", table.bytes);
	cr_expect_not_null(strstr(table.bytes, " 0.500 "), "%s", table.bytes);
	cr_expect_not_null(strstr(table.bytes, " 1.500 "), "%s", table.bytes);
	cr_expect_not_null(strstr(table.bytes, " 1.000 "), "%s", table.bytes);
	cr_expect_not_null(strstr(table.bytes, " 0.00033 "), "%s", table.bytes);
	psd_text_release(&table);
}

/* ---- trace ---- */

static uint32_t find_op(const struct psd_program *program, enum psd_op_kind kind)
{
	uint32_t op = 0;

	while (op < program->n_ops && program->ops[op].kind != kind)
		op++;
	cr_assert_lt(op, program->n_ops);
	return op;
}

FIXTURE_TEST(trace_is_json_with_one_event_a_line)
{
	struct psd_case made;
	struct psd_text text = {.bytes = NULL};

	make_case(&made, fixture, 0);
	const uint32_t forward = find_op(&made.program, PSD_OP_FORWARD),
		       receive = find_op(&made.program, PSD_OP_RECEIVE);
	const uint32_t send = made.program.ops[receive].match;
	const struct psd_span spans[] = {
		{.host = 0, .task = {0, forward}, .start_sec = 0, .end_sec = 0.25},
		{.host = 1, .task = {1, send}, .start_sec = 0.25, .end_sec = 1.0000004},
		{.host = 4, .task = {1, send}, .is_arrival = true, .start_sec = 0.25, .end_sec = 1.5, .peer = 1},
	};

	psd_trace_add_head(&text, &made, psd_sim_executor(&fixture->scenario, false));
	for (unsigned i = 0; i < 3; i++)
		psd_trace_add_span(&text, &made.program, &spans[i]);
	psd_trace_add_end(&text);
	cr_assert_not(text.is_out_of_memory);
	cr_expect(is_json(text.bytes), "%s", text.bytes);

	/* 4 workers and 1 server: a name each for the process and its 6 rows; then the spans, and both ends of the
	 * message's arrow; the head and the end */
	unsigned n_lines = 0;

	for (const char *c = text.bytes; *c; c++)
		n_lines += *c == '\n';
	cr_expect_eq(n_lines, 1 + 5 * 7 + 3 + 2 + 1);
	static const char head[] = "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"scenario\":\"a \\\"title\\\", with "
				   "comma\",\"system\":\"first\",\"executor\":\"sim-flow\",\"nodes\":4,\"workers\":4,"
				   "\"bandwidth_bps\":1000000000,\"kinds\":\"forward backward copy send receive reduce "
				   "rebuild apply collective barrier convert gather choose sum step pack repack unpack "
				   "project fit expand measure clip accumulate keep read\"},\"traceEvents\":[\n";

	cr_expect_eq(strncmp(text.bytes, head, strlen(head)), 0, "%s", text.bytes);
	cr_expect_not_null(strstr(
		text.bytes, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":4,\"args\":{\"name\":\"server 0\"}},\n"));
	cr_expect_not_null(strstr(text.bytes, "{\"name\":\"forward "
					      "fc1\",\"cat\":\"forward\",\"ph\":\"X\",\"pid\":0,\"tid\":1,\"ts\":0.000,"
					      "\"dur\":250000.000,\"args\":{\"iteration\":0,\"bytes\":0}},\n"));
	cr_expect_not_null(strstr(
		text.bytes, "\"cat\":\"send\",\"ph\":\"X\",\"pid\":1,\"tid\":5,\"ts\":250000.000,\"dur\":750000.400,"));
	cr_expect_not_null(
		strstr(text.bytes,
		       "\"cat\":\"receive\",\"ph\":\"X\",\"pid\":4,\"tid\":6,\"ts\":250000.000,\"dur\":1250000.000,"));
	const unsigned long long arrow =
		((1ULL * made.program.n_ops + send) * 5 + 1) * 5 + 4; /* iteration 1, 5 hosts */
	char ends[2][192];

	snprintf(ends[0], sizeof(ends[0]), "\"ph\":\"s\",\"id\":%llu,\"pid\":1,\"tid\":5,\"ts\":250000.000}", arrow);
	snprintf(ends[1], sizeof(ends[1]),
		 "\"ph\":\"f\",\"bp\":\"e\",\"id\":%llu,\"pid\":4,\"tid\":6,\"ts\":1499999.999}", arrow);
	cr_expect_not_null(strstr(text.bytes, ends[0]), "%s in %s", ends[0], text.bytes);
	cr_expect_not_null(strstr(text.bytes, ends[1]), "%s in %s", ends[1], text.bytes);
	cr_expect_not_null(strstr(text.bytes, ",\"from\":1}},\n"));
	cr_expect_not_null(strstr(text.bytes, "}\n]}\n"));
	psd_text_release(&text);
	psd_case_release(&made);
}

/* A sweep of a key of a system: its notes are those of all variants, and of one only if others lack it. */
Test(output, notes_on_training_are_those_of_all_variants)
{
	struct fixture fixture;
	struct psd_system late = {.name = (char[]){"R"}, .staleness = 2}, exact = {.name = (char[]){"R"}};
	struct psd_scenario swept = {.n_swept = 1,
				     .swept = {{.path = (char[]){"systems.R.staleness"}, .text = (char[]){"2"}}}};
	static const char note[] = "note: 'R' applies gradients 2 iterations late, so that with more than one worker "
				   "its training differs from synchronous training";
	char expected[256];

	make_fixture(&fixture);
	fixture.report.n_systems = 1;
	fixture.report.n_points = 2;
	fixture.results[0].system = &exact;
	fixture.results[1].system = &late;
	fixture.results[1].swept = &swept;
	snprintf(expected, sizeof(expected), "%s (systems.R.staleness 2)\n", note);
	expect_notes(&fixture.report, expected);
	fixture.results[0].system = &late;
	fixture.results[0].swept = &swept;
	snprintf(expected, sizeof(expected), "%s\n", note);
	expect_notes(&fixture.report, expected);
	fixture.results[0].point.workers = 1; /* the note is that of the point with more */
	expect_notes(&fixture.report, expected);
	fixture.results[1].point.workers = 1;
	expect_notes(&fixture.report, "");
	release_fixture(&fixture);
}
