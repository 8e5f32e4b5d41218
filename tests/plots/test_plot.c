/* psd-plot compare as a command, on hand-made results and traces in tests/data/compare/ whose medians, spreads and
 * errors are worked out here. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/program/program.h"
#include "tests/plots/plot_helper.h"
#include "tests/scratch_file.h"
#include "tests/test_with.h"

#define DATA	  "tests/data/compare/"
#define PREDICTED DATA "predicted.csv"
#define MEASURED  DATA "measured-1.csv " DATA "measured-2.csv " DATA "measured-3.csv"
#define HEAD                                                                                                           \
	"scenario,system,executor,nodes,workers,bandwidth_bps,iteration_sec,images_per_sec,speedup,compute_sec,"       \
	"exposed_comm_"                                                                                                \
	"sec,"                                                                                                         \
	"tx_bytes_per_node,rx_bytes_per_node,published_images_per_sec,published_speedup,error_ratio\n"

/* A folder for out.html, out.csv and out.svg. */
struct folder {
	char path[32];
};

static struct folder make_folder(void)
{
	struct folder folder = {"/tmp/psd-plot-XXXXXX"};

	cr_assert_not_null(mkdtemp(folder.path));
	return folder;
}

static char *read_output(const struct folder *folder, const char *name)
{
	char path[64], *text = NULL;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder->path, name);
	file = fopen(path, "r");
	cr_assert_not_null(file, "%s", path);
	cr_assert_gt(getdelim(&text, &size, '\0', file), 0, "%s", path);
	fclose(file);
	return text;
}

/* Fails when there is anything in it but the three outputs. */
static void remove_folder(const struct folder *folder)
{
	static const char *const names[] = {"out.html", "out.csv", "out.svg"};
	char path[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder->path, names[i]);
		unlink(path);
	}
	cr_expect_eq(rmdir(folder->path), 0, "something is left beside the output");
}

/* A test with a folder for outputs. */
#define OUTPUT_TEST(claim) TEST_WITH(plot, claim, const struct folder, folder, remove_folder, make_folder())

static struct run compare(const struct folder *folder, const char *arguments, const char *redirections)
{
	char command[2048];

	snprintf(command, sizeof(command), "$PSD_PLOT compare %s -o %s/out.html %s", arguments, folder->path,
		 redirections);
	return run_command(command);
}

static void expect_words(const char *text, const char *const *words, size_t n_words)
{
	for (size_t i = 0; i < n_words; i++)
		cr_expect_not_null(strstr(text, words[i]), "no '%s' in:\n%s", words[i], text);
}

#define EXPECT_WORDS(text, ...)                                                                                        \
	do {                                                                                                           \
		static const char *const expected[] = {__VA_ARGS__};                                                   \
		expect_words(text, expected, sizeof(expected) / sizeof(expected[0]));                                  \
	} while (0)

/* One line on stderr with these words, status 2, nothing on stdout, and the older page is as it was. */
static void expect_refusal(const char *arguments, const char *words)
{
	struct folder folder = make_folder();
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/out.html", folder.path);
	file = fopen(path, "w");
	cr_assert(file && fputs("older", file) >= 0 && fclose(file) == 0);
	struct run error = compare(&folder, arguments, "2>&1 >/dev/null"),
		   output = compare(&folder, arguments, "2>/dev/null");
	char *page = read_output(&folder, "out.html");

	cr_expect_eq(error.exit_status, 2, "%s: status %d", arguments, error.exit_status);
	cr_expect_not_null(strstr(error.text, words), "%s: %s", arguments, error.text);
	cr_expect(*error.text && strchr(error.text, '\n') == error.text + strlen(error.text) - 1, "%s: %s", arguments,
		  error.text);
	cr_expect_str_eq(output.text, "");
	cr_expect_str_eq(page, "older");
	free(page);
	free(error.text);
	free(output.text);
	remove_folder(&folder);
}

/* The same for a measured file of this text, which stands behind good ones. */
static void expect_measured_refused(const char *text, const char *words)
{
	struct scratch_file file = scratch_file_write(text);
	char arguments[256], place[128];

	snprintf(arguments, sizeof(arguments), PREDICTED " " DATA "measured-1.csv %s", file.path);
	snprintf(place, sizeof(place), "psd-plot: %s:%s", file.path, words);
	expect_refusal(arguments, place);
	remove(file.path);
}

/* PS on 2 nodes: runs of 1, 0.98 and 1.02 s, median 1, spread (1.02 - 0.98) / 1; predicted 1.02, so the error is 2 %.
 * On 4: runs of 2 and 2, predicted 1.94, -3 %. Hybrid on 2: 0.5 and 0.5, predicted 0.45, -10 %; bytes sent are 1000 in
 * one run and 1020 in the other, so the median 1010 differs from 1000. On 4: 1 and 1.1, median the mean 1.05, spread
 * 0.1 / 1.05, predicted 0.84, -20 %. The last: 2 and 4, median 3, spread 2 / 3. */
OUTPUT_TEST(compare_gives_medians_spreads_and_errors_of_every_measured_point)
{
	struct run run = compare(&folder, PREDICTED " " MEASURED, "2>&1");
	char *csv;

	cr_assert_eq(run.exit_status, 0, "%s", run.text);
	csv = read_output(&folder, "out.csv");
	cr_expect_str_eq(
		csv,
		"scenario,system,executor,nodes,workers,bandwidth_bps,repeats,predicted_iteration_sec,measured_"
		"iteration_sec,spread_ratio,error_ratio,predicted_compute_sec,measured_compute_sec,predicted_exposed_"
		"comm_sec,measured_exposed_comm_sec,predicted_tx_bytes_per_node,measured_tx_bytes_per_node,predicted_"
		"rx_bytes_per_node,measured_rx_bytes_per_node,are_bytes_exact,is_calibrated,is_extrapolated,is_in_"
		"median,is_in_worst\n"
		"Toy,PS,real-cpu,2,2,1000000000,3,1.02,1,0.04,0.02,0.5,0.5,0.52,0.52,1000,1000,1000,1000,yes,no,,yes,"
		"yes\n"
		"Toy,PS,real-cpu,4,4,1000000000,2,1.94,2,0,-0.03,0.5,0.5,1.44,1.5,1500,1500,1500,1500,yes,no,,yes,yes\n"
		"Toy,Hybrid,real-cpu,2,2,1000000000,2,0.45,0.5,0,-0.1,0.4,0.4,0.05,0.1,1000,1010,1000,1000,no,no,,yes,"
		"yes\n"
		"Toy,Hybrid,real-cpu,4,4,1000000000,2,0.84,1.05,0.0952380952,-0.2,0.4,0.4,0.44,0.65,1500,1500,1500,"
		"1500,yes,no,,no,yes\n"
		"Toy,\"A<B & "
		"\"\"C\"\"\",real-cpu,2,2,1000000000,2,3,3,0.666666667,0,0.5,0.5,2.5,2.5,1000,1000,1000,1000,"
		"yes,no,,no,no\n");
	/* in the median 2, 3 and 10 %; the worst of these and of 20 % */
	EXPECT_WORDS(run.text, "Median absolute error 3.0 % of 3 points, bar 5 %: met.\n",
		     "Worst absolute error 20.0 % of 4 points, bar 15 %: not met; it is at Hybrid, 4 nodes, 4 workers, "
		     "1 Gb/s.\n",
		     "5 points measured by 11 runs; not counted: 1 too noisy (spread above 15 %); "
		     "too noisy for the median: 1 (spread above 5 %).\n",
		     "Bytes per node are exact at 4 of 5 points.\n", "1 predicted row has no measurement.\n",
		     "  sent -1.0 %, received 0.0 %\n");
	free(csv);
	free(run.text);
}

static void expect_lines_within(const char *text, size_t most)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		cr_expect_leq(strcspn(line, "\n"), most, "%.*s", (int)strcspn(line, "\n"), line);
}

/* An iteration of 1.02 s: 8 ms that are predicted where 1 us was measured are an error of 799900 %, of nothing. */
OUTPUT_TEST(compare_has_no_error_of_what_was_hardly_measured)
{
	char command[512];
	struct run run;

	snprintf(command, sizeof(command),
		 "f=%s; sed 's/,0.52,/,0.008,/' " DATA "predicted.csv >$f/p.csv; sed 's/,0.52,/,1e-6,/' " DATA
		 "measured-3.csv >$f/m.csv; $PSD_PLOT compare $f/p.csv $f/m.csv -o $f/out.html 2>&1; rm $f/p.csv "
		 "$f/m.csv",
		 folder.path);
	run = run_command(command);
	EXPECT_WORDS(run.text, "  0.008000  0.000001000      -  exact\n",
		     "-: less than a hundredth of the iteration.\n",
		     "compute: measured as time of the processor or GPU, ");
	cr_expect_null(strstr(run.text, "799900"), "%s", run.text);
	free(run.text);
	run = compare(&folder, PREDICTED " " MEASURED, "2>&1 | sed '/^$/,$d'");
	expect_lines_within(run.text, 120);
	free(run.text);
}

OUTPUT_TEST(compare_counts_no_calibrated_point_and_marks_what_lies_beyond)
{
	struct run run = compare(&folder, PREDICTED " " MEASURED " --calibrated " DATA "calibrated.csv", "2>&1");
	char *csv = read_output(&folder, "out.csv");

	/* without the 2 % of PS on 2 nodes: the mean of 3 and 10 %; on 4 nodes, more than the 2 calibrated ones: 3 and
	 * 20 % */
	EXPECT_WORDS(run.text, "Median absolute error 6.5 % of 2 points, bar 5 %: not met.\n",
		     "Worst absolute error 20.0 % of 3 points,", "not counted: 1 calibrated, 1 too noisy",
		     "Counted and extrapolated to more than 2 workers: 2 points, median absolute error 11.5 %, worst "
		     "20.0 %.\n",
		     "  4.0 %  calibrated\n", "  9.5 %  extrapolated; too noisy for the median\n");
	EXPECT_WORDS(csv, ",yes,yes,no,no,no\nToy,PS,real-cpu,4,4,", ",yes,no,yes,yes,yes\nToy,Hybrid,");
	free(csv);
	free(run.text);
}

OUTPUT_TEST(compare_holds_points_to_the_bars_it_is_given)
{
	/* a spread of 0.1 / 1.05 is below 10 %: in the median are 2, 3, 10 and 20 % */
	struct run run = compare(&folder, PREDICTED " " MEASURED " --bar 10% --worst 0.2", "2>&1");

	EXPECT_WORDS(run.text, "Median absolute error 6.5 % of 4 points, bar 10 %: met.\n",
		     "Worst absolute error 20.0 % of 4 points, bar 20 %: met;");
	free(run.text);
}

OUTPUT_TEST(compare_says_that_no_point_is_counted)
{
	struct run run =
		compare(&folder, PREDICTED " " DATA "measured-3.csv --calibrated " DATA "calibrated.csv", "2>&1");

	cr_expect_eq(run.exit_status, 0, "%s", run.text);
	EXPECT_WORDS(
		run.text, "Median absolute error: no point is counted, the bar of 5 % is neither met nor missed.\n",
		"Worst absolute error: no point is counted,",
		"1 point was run once: how far runs scatter is not known, and a miss may be noise. Run again, and give "
		"all files.\n",
		"5 predicted rows have no measurement.\n");
	free(run.text);
}

OUTPUT_TEST(compare_page_stands_alone_and_escapes_text)
{
	struct run run = compare(&folder, PREDICTED " " MEASURED " --title '<i>T & U</i>'", "2>&1");
	char *page = read_output(&folder, "out.html"), *plot = read_output(&folder, "out.svg");

	EXPECT_WORDS(page, "<!DOCTYPE html>", "<title>&lt;i&gt;T &amp; U&lt;/i&gt;</title>",
		     "<th scope=\"row\" class=\"left\">A&lt;B &amp; &quot;C&quot;</th>", "<svg role=\"img\"", "</svg>",
		     "<td class=\"far\">-20.0 %</td>", "</html>\n");
	cr_expect_null(strstr(page, "<i>"));
	cr_expect_null(strstr(page, "A<B"));
	cr_expect_null(strstr(page, "http"));
	cr_expect_null(strstr(page, "<script"));
	EXPECT_WORDS(plot, "<svg", "within ±5 %", "A&lt;B &amp; \"C\"", "measured, seconds per iteration", "</svg>");
	free(page);
	free(plot);
	free(run.text);
}

/* Forward, predicted: 0.1 s on one worker and 0.3 s on the other. Measured: 0.9, 0.9, 0.4 and 0.6 s in iterations 0 to
 * 3 on both, the first two left out: the median 0.5 s, an error of -60 %. Receives, predicted: 0.30 to 0.35 s and 0.32
 * to 0.36 s on one worker, which cover 0.06 s, and 0.04 s on the other. Measured: 0.08 s on both, with another of 0.02
 * s in them that ends first: an error of -37.5 %. Sends take 0.05 s on both sides and are not compared. Reductions on
 * the server belong to no worker. */
OUTPUT_TEST(compare_measures_traces_by_kind_of_operation)
{
	struct run run = compare(
		&folder, PREDICTED " " DATA "measured-1.csv --traces " DATA "predicted.json " DATA "measured.json",
		"2>&1");
	char *page = read_output(&folder, "out.html");

	EXPECT_WORDS(run.text, "\nforward          0.2000      0.5000    -60.0 %\n",
		     "\nsend            0.05000     0.05000          -\n",
		     "\nreceive         0.05000     0.08000    -37.5 %\n",
		     "\napply                 -     0.01000          -\n", "\nsend has no error: ");
	cr_expect_null(strstr(run.text, "\nreduce"));
	EXPECT_WORDS(page, "<td class=\"far\">-60.0 %</td>", "id=\"predicted-gnuplot_canvas\"",
		     "id=\"measured-gnuplot_canvas\"", "iteration 0 (sim-flow)", "iteration 2 (real-cpu)");
	free(page);
	free(run.text);
}

#define ROW "Toy,PS,real-cpu,2,2,1000000000,1,,,0.5,0.5,1000,1000,,,\n"

Test(plot, compare_names_file_and_line_of_what_it_cannot_read)
{
	expect_measured_refused("", "1: is empty, the first line must be that of psd-sim --csv or psd-run --csv");
	expect_measured_refused(HEAD, "2: has no result, must have a row for each run");
	expect_measured_refused("scenario,system\n" ROW,
				"1: column 'executor' is missing, the first line must be that of");
	expect_measured_refused(HEAD ROW "Toy,PS,real-cpu,2,2,1000000000,fast,,,0.5,0.5,1000,1000,,,\n",
				"3: 'iteration_sec' is 'fast', must be a number from 1e-12 to 1e15");
	expect_measured_refused(HEAD "Toy,PS,real-cpu,2,2,1000000000,0,,,0.5,0.5,1000,1000,,,\n",
				"2: 'iteration_sec' is '0', must be a number from 1e-12 to 1e15");
	expect_measured_refused(HEAD "Toy,PS,real-cpu,2,0,1000000000,1,,,0.5,0.5,1000,1000,,,\n",
				"2: 'workers' is '0', must be a whole number of 1 or more");
	expect_measured_refused(HEAD "Toy,PS,real-cpu,2,2,1000000000,1,,,0.5,0.5,1000,-1,,,\n",
				"2: 'rx_bytes_per_node' is '-1', must be a whole number of 0 or more");
	expect_measured_refused(HEAD "Toy,PS,real-cpu,2,2\n", "2: the line has 5 fields, must have 16");
	expect_measured_refused(HEAD "\"Toy,PS,real-cpu,2,2,1000000000,1,,,0.5,0.5,1000,1000,,,\n",
				"2: a quote is open or out of place, must be around a whole cell");
}

TEST_ROW(plot, compare_names_a_measured_row_without_prediction,
	 expect_measured_refused(
		 HEAD ROW "Toy,PS,real-cpu,2,2,2000000000,1,,,0.5,0.5,1000,1000,,,\n",
		 "3: PS, 2 nodes, 2 workers, 2 Gb/s of 'Toy' is not predicted, must be a row of " PREDICTED))

Test(plot, compare_takes_only_runs_of_one_kind_as_repeats)
{
	expect_measured_refused(HEAD "Toy,PS,real-cuda,2,2,1000000000,1,,,0.5,0.5,1000,1000,,,\n",
				"2: 'executor' is 'real-cuda', must be 'real-cpu' as in " DATA "measured-1.csv:2");
	expect_measured_refused(HEAD "Other,PS,real-cpu,2,2,1000000000,1,,,0.5,0.5,1000,1000,,,\n",
				"2: 'scenario' is 'Other', must be 'Toy' as in " DATA "measured-1.csv:2");
}

OUTPUT_TEST(compare_matches_titles_only_where_both_have_them)
{
	struct scratch_file predicted =
		scratch_file_write(HEAD "One,PS,sim-flow,2,2,1000000000,1,,,0.5,0.5,1000,1000,,,\n"
					"Two,PS,sim-flow,2,2,1000000000,2,,,0.5,1.5,1000,1000,,,\n"
					"Two,PS,sim-flow,4,4,1000000000,3,,,0.5,2.5,1000,1000,,,\n");
	struct scratch_file known = scratch_file_write(HEAD "Two,PS,real-cpu,2,2,1e9,2,,,0.5,1.5,1000,1000,,,\n"
							    "Three,PS,real-cpu,4,4,1e9,3,,,0.5,2.5,1000,1000,,,\n");
	struct scratch_file unclear =
		scratch_file_write(HEAD "Three,PS,real-cpu,2,2,1000000000,2,,,0.5,1.5,1000,1000,,,\n");
	char arguments[128], words[256];

	snprintf(arguments, sizeof(arguments), "%s %s", predicted.path, known.path);
	struct run run = compare(&folder, arguments, "2>&1");

	EXPECT_WORDS(run.text, "Worst absolute error 0.0 % of 2 points", "1 predicted row has no measurement.\n");
	snprintf(arguments, sizeof(arguments), "%s %s", predicted.path, unclear.path);
	snprintf(words, sizeof(words),
		 "%s:2: 'scenario' is 'Three', must be a title in %s, where several scenarios have this point",
		 unclear.path, predicted.path);
	expect_refusal(arguments, words);
	remove(predicted.path);
	remove(known.path);
	remove(unclear.path);
	free(run.text);
}

/* Rows behind the head, predicted and measured, give a table with these figures, a summary with this sentence, and such
 * a row of the CSV. */
static void expect_comparison(const char *predicted_rows, const char *measured_rows, const char *figures,
			      const char *sentence, const char *csv_row)
{
	char text[1024], arguments[256];

	snprintf(text, sizeof(text), HEAD "%s", predicted_rows);
	struct scratch_file predicted = scratch_file_write(text);

	snprintf(text, sizeof(text), HEAD "%s", measured_rows);
	struct scratch_file measured = scratch_file_write(text);

	snprintf(arguments, sizeof(arguments), "%s %s", predicted.path, measured.path);
	struct folder folder = make_folder();
	struct run run = compare(&folder, arguments, "2>&1");

	cr_assert_eq(run.exit_status, 0, "%s", run.text);
	char *csv = read_output(&folder, "out.csv");

	expect_words(run.text, &figures, 1);
	expect_words(run.text, &sentence, 1);
	expect_words(csv, &csv_row, 1);
	free(csv);
	free(run.text);
	remove_folder(&folder);
	remove(predicted.path);
	remove(measured.path);
}

/* A machine twice as slow in between: 1.1 / 1, 2.5 / 2 and 1.1 / 1.1 are 1.1, 1.25 and 1; the median 1.1 is an error of
 * 1 / 1.1 - 1, the spread 0.25 / 1.1. The medians of seconds are 1.1 both. Compute: 1, 0.8 and 1. Exposed: 1.2, 2
 * and 1. */
Test(plot, compare_takes_each_run_over_its_own_prediction)
{
	expect_comparison("Toy,PS,sim-flow,2,2,1000000000,1,,,0.5,0.5,1000,1000,,,\n"
			  "Toy,PS,sim-flow,2,2,1000000000,2,,,1.25,0.75,1000,1000,,,\n"
			  "Toy,PS,sim-flow,2,2,1000000000,1.1,,,0.5,0.6,1000,1000,,,\n",
			  "Toy,PS,real-cpu,2,2,1000000000,1.1,,,0.5,0.6,1000,1000,,,\n"
			  "Toy,PS,real-cpu,2,2,1000000000,2.5,,,1,1.5,1000,1000,,,\n"
			  "Toy,PS,real-cpu,2,2,1000000000,1.1,,,0.5,0.6,1000,1000,,,\n",
			  "      1.100     1.100  -9.1 %     3  22.7 %  too noisy\n",
			  "1 point has a prediction for each run: errors and spreads are of the runs over theirs.\n",
			  "\nToy,PS,real-cpu,2,2,1000000000,3,1.1,1.1,0.227272727,-0.0909090909,0.5,0.5,0.6,0.6,"
			  "1000,1000,1000,1000,yes,no,,no,no\n");
}

/* A quarter at each end of 0.7, 1, 1.01, 1.02 and 1.5 s is one run: 0.02 / 1.01 is left. */
Test(plot, compare_leaves_a_quarter_of_the_runs_at_each_end_out_of_the_spread)
{
	expect_comparison("Toy,PS,sim-flow,2,2,1000000000,1,,,0.5,0.5,1000,1000,,,\n",
			  "Toy,PS,real-cpu,2,2,1000000000,1.5,,,0.5,1,1000,1000,,,\n"
			  "Toy,PS,real-cpu,2,2,1000000000,1.01,,,0.5,0.51,1000,1000,,,\n"
			  "Toy,PS,real-cpu,2,2,1000000000,1.02,,,0.5,0.52,1000,1000,,,\n"
			  "Toy,PS,real-cpu,2,2,1000000000,0.7,,,0.5,0.2,1000,1000,,,\n"
			  "Toy,PS,real-cpu,2,2,1000000000,1,,,0.5,0.5,1000,1000,,,\n",
			  "     5   2.0 %", "1 point measured by 5 runs.\n",
			  "\nToy,PS,real-cpu,2,2,1000000000,5,1,1.01,0.0198019802,-0.0099009901,");
}

/* As of a system that names no size, in a sweep of sizes. */
Test(plot, compare_takes_a_row_that_is_repeated_once)
{
	expect_comparison("Toy,PS,sim-flow,2,2,1000000000,1,,,0.5,0.5,1000,1000,,,\n"
			  "Toy,PS,sim-flow,2,2,1000000000,1,,,0.5,0.5,1000,1000,,,\n"
			  "Toy,PS,sim-flow,2,2,1000000000,1,,,0.5,0.5,1000,1000,,,\n",
			  "Toy,PS,real-cpu,2,2,1000000000,2,,,0.5,1.5,1000,1000,,,\n", "-50.0 %",
			  "1 point measured by 1 run.\n", "\nToy,PS,real-cpu,2,2,1000000000,1,1,2,,-0.5,");
}

Test(plot, compare_refuses_a_point_that_is_predicted_more_often_than_it_ran)
{
	static const char run[] = "Toy,PS,real-cpu,2,2,1000000000,1,,,0.5,0.5,1000,1000,,,\n";
	static const char row[] = "Toy,PS,sim-flow,2,2,1000000000,1,,,0.5,0.5,1000,1000,,,\n",
			  longer[] = "Toy,PS,sim-flow,2,2,1000000000,2,,,0.5,1.5,1000,1000,,,\n",
			  other[] = "Toy,PS,sim-message,2,2,1000000000,1,,,0.5,0.5,1000,1000,,,\n";
	char text[1024], arguments[128], words[128];

	snprintf(text, sizeof(text), HEAD "%s%s", row, longer);
	struct scratch_file twice = scratch_file_write(text);

	snprintf(arguments, sizeof(arguments), "%s " DATA "measured-3.csv", twice.path);
	snprintf(words, sizeof(words),
		 "%s:3: is one of 2 rows of this point, which has 1 run: must be its only one, or one for each run",
		 twice.path);
	expect_refusal(arguments, words);
	snprintf(text, sizeof(text), HEAD "%s%s%s", run, run, run);
	struct scratch_file thrice = scratch_file_write(text);

	snprintf(arguments, sizeof(arguments), "%s %s", twice.path, thrice.path);
	snprintf(words, sizeof(words), "%s:3: is one of 2 rows of this point, which has 3 runs", twice.path);
	expect_refusal(arguments, words);
	snprintf(text, sizeof(text), HEAD "%s%s", row, other);
	struct scratch_file mixed = scratch_file_write(text);

	snprintf(arguments, sizeof(arguments), "%s " DATA "measured-3.csv", mixed.path);
	snprintf(words, sizeof(words),
		 "%s:3: 'executor' is 'sim-message', must be 'sim-flow' as in line 2, which predicts the same point",
		 mixed.path);
	expect_refusal(arguments, words);
	remove(twice.path);
	remove(thrice.path);
	remove(mixed.path);
}

Test(plot, a_trace_of_one_rank_is_told_which_one_is_read)
{
	const char text[] = "{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\n\"traceEvents\":[\n]}\n";
	struct scratch_file file = scratch_file_write(text);
	char arguments[512], words[256];

	snprintf(arguments, sizeof(arguments), PREDICTED " " MEASURED " --traces %s " DATA "measured.json", file.path);
	snprintf(words, sizeof(words), "%s:1: a trace of one rank, for tools that read PyTorch's; psd-plot reads",
		 file.path);
	expect_refusal(arguments, words);
	remove(file.path);
}

Test(plot, compare_misuse_is_one_line_and_leaves_the_older_page)
{
	expect_refusal(PREDICTED, "compare takes a predicted and one or more measured files, 1 was given");
	expect_refusal(PREDICTED " --traces " DATA "predicted.json " DATA "measured-1.csv",
		       "1 was given; the 2 files behind '--traces' do not count");
	expect_refusal(PREDICTED " " MEASURED " --traces " DATA "predicted.json --bar 5%",
		       "'--traces' needs 2 files, the predicted and the measured trace, see psd-plot compare --help");
	expect_refusal(PREDICTED " " MEASURED " --traces", "'--traces' needs 2 files, the predicted and");
	expect_refusal(PREDICTED " no-such.csv", "no-such.csv: cannot be opened: No such file or directory");
	expect_refusal(DATA "measured-1.csv " DATA "measured-2.csv", "the first file is the predicted one");
	expect_refusal(PREDICTED " " PREDICTED, "only the first file is the predicted one");
	expect_refusal(PREDICTED " " DATA "measured-1.csv " DATA "measured-1.csv",
		       "measured-1.csv: is given twice, must be given once");
	expect_refusal(PREDICTED " " DATA "measured-1.csv tests/../" DATA "measured-1.csv",
		       "measured-1.csv: is given twice, must be given once");
	expect_refusal(PREDICTED " " MEASURED " --calibrated ''", "'--calibrated' needs a value that is not empty");
	expect_refusal(PREDICTED " " MEASURED " --traces " DATA "predicted.json ''",
		       "'--traces' needs a value that is not empty");
	expect_refusal(PREDICTED " " DATA, DATA ": cannot be read: Is a directory");
	expect_refusal(PREDICTED " " MEASURED " --bar 5% --bar 6%", "'--bar' is given twice, must be given once");
	expect_refusal(PREDICTED " " MEASURED " --output again.html", "'-o' is given twice, must be given once");
	expect_refusal(PREDICTED " " MEASURED " --bar 5",
		       "'--bar' is '5', must be a ratio such as 0.05 or 5%: 5 is 500 %");
	expect_refusal(PREDICTED " " MEASURED " --bar 0", "'--bar' is '0', must be a ratio such as 0.05 or 5%");
	expect_refusal(PREDICTED " " MEASURED " --worst 1%", "'--worst' is 0.01, must be 0.05 or more");
	expect_refusal(PREDICTED " " MEASURED " --linear",
		       "'--linear' is an option of 'psd-plot speedup', not of 'psd-plot compare'");
	expect_refusal(PREDICTED " " MEASURED " --traces " DATA "measured.json " DATA "predicted.json",
		       "measured.json: its executor is 'real-cpu', the first trace must be of psd-sim");
	expect_refusal(PREDICTED " " MEASURED " --traces " PREDICTED " " DATA "measured.json",
		       PREDICTED ":1: not a trace of psd-sim or psd-run");
	expect_refusal(PREDICTED " " MEASURED " --calibrated /dev/null",
		       "/dev/null:1: is empty, the first line must be that of psd-sim --csv");
}

/* One line, status 2, about the file NAME that a command printed into the folder of the output; %s in the arguments is
 * the folder. */
static void expect_made_refused(const char *command, const char *arguments, const char *name, const char *words)
{
	struct folder folder = make_folder();
	char line[512];

	snprintf(line, sizeof(line), "%s > %s/%s", command, folder.path, name);
	free(run_command(line).text);
	snprintf(line, sizeof(line), arguments, folder.path);
	struct run run = compare(&folder, line, "2>&1");

	cr_expect_eq(run.exit_status, 2);
	cr_expect_not_null(strstr(run.text, words), "no '%s' in: %s", words, run.text);
	free(run.text);
	snprintf(line, sizeof(line), "%s/%s", folder.path, name);
	unlink(line);
	remove_folder(&folder);
}

Test(plot, compare_does_not_write_over_its_input)
{
	static const char words[] = ": the file is read by this run, an output must be another file\n";

	expect_made_refused("cat " PREDICTED, "%s/out.csv " DATA "measured-1.csv", "out.csv", words);
	expect_made_refused("cat " PREDICTED, "%s/out.html " DATA "measured-1.csv", "out.html", words);
	expect_made_refused("cat " DATA "predicted.json",
			    PREDICTED " " DATA "measured-1.csv --traces %s/out.svg " DATA "measured.json", "out.svg",
			    words);
}

Test(plot, compare_refuses_what_would_be_counted_wrongly)
{
	static const char traced[] = PREDICTED " " DATA "measured-1.csv --traces " DATA "predicted.json %s/m.json";

	expect_made_refused("sed 2p " DATA "measured.json", traced, "m.json",
			    "m.json:3: 'worker 0' or its 'pid' is there twice, must be there once\n");
	expect_made_refused("sed 's/\"iteration\":[0-9]*/\"iteration\":0.5/' " DATA "measured.json", traced, "m.json",
			    ": 'iteration' is 0.5, must be a whole number of up to nine digits\n");
	expect_made_refused("sed 's/\"dur\":[0-9.]*/\"dur\":1e400/' " DATA "measured.json", traced, "m.json",
			    ": 'dur' is 1e400, must be from 0 to 1e15\n");
	expect_made_refused("sed 's/\"scenario\":\"Toy\"/\"scenario\":\"Play\"/' " DATA "measured.json", traced,
			    "m.json", "m.json: its scenario is 'Play', must be 'Toy' as in " DATA "predicted.json\n");
	expect_made_refused("sed 's/\"nodes\":2/&,\"bandwidth_bps\":2e9/' " DATA "measured.json", traced, "m.json",
			    "m.json: its bandwidth_bps is '2e9', must be '' as in " DATA "predicted.json\n");
	expect_made_refused("sed \"s/Toy,PS/Toy,$(printf %09000d 0)/\" " DATA "measured-1.csv", PREDICTED " %s/m.csv",
			    "m.csv", "m.csv:2: field 2 has 9000 bytes, must have 1000 or fewer\n");
	expect_made_refused("sed '1s/,images_per_sec/,iteration_sec/' " DATA "measured-1.csv", PREDICTED " %s/m.csv",
			    "m.csv", "m.csv:1: column 'iteration_sec' is there twice, must be there once\n");
}

/* Where gnuplot put the text: pixels from the left and from the top. */
struct position {
	double left, top;
};

static struct position position_of(const char *svg, const char *text)
{
	const char *found = strstr(svg, text);

	cr_assert_not_null(found, "no '%s' in:\n%s", text, svg);
	while (found > svg && strncmp(found, "translate(", 10) != 0)
		found--;
	return (struct position){strtod(strchr(found, '(') + 1, NULL), strtod(strchr(found, ',') + 1, NULL)};
}

/* Nine systems at 2 Gb/s, under a title that says 1 Gbit/s. */
static void write_results(const struct folder *folder, const char *name, const char *executor)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder->path, name);
	file = fopen(path, "w");
	cr_assert_not_null(file);
	fprintf(file, HEAD);
	for (int i = 1; i <= 18; i++)
		fprintf(file,
			"\"Nine, 1 Gbit/s\",a system of a long name "
			"%d,%s,%d,%d,2000000000,%d,,1,0.5,0.5,1000,1000,,,\n",
			(i + 1) / 2, executor, 2 - i % 2, 2 - i % 2, i);
	fclose(file);
}

/* A line of text is 15 pixels high; its position is its middle. */
OUTPUT_TEST(compare_draws_its_legend_below_the_axis_and_names_the_bandwidth_of_its_points)
{
	char arguments[128];

	write_results(&folder, "p", "sim-flow");
	write_results(&folder, "m", "real-cpu");
	snprintf(arguments, sizeof(arguments), "%s/p %s/m", folder.path, folder.path);
	struct run run = compare(&folder, arguments, "2>&1");
	char *plot = read_output(&folder, "out.svg"), *page = read_output(&folder, "out.html");
	static const char *const entries[] = {">within ", ">predicted = measured", "a system of a long name 1",
					      "a system of a long name 9"};

	const double axis = position_of(plot, ">measured, seconds").top;

	cr_expect_gt(axis, 300); /* the plots are that high */
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		const struct position entry = position_of(plot, entries[i]);

		cr_expect_gt(entry.top, axis + 20, "%s", entries[i]);
		cr_expect(entry.left > 50 && entry.left < 1000, "%s: its sample and text are in the picture",
			  entries[i]);
	}
	EXPECT_WORDS(page, "<title>Nine, 2 Gb/s</title>", "<h1>Nine, 2 Gb/s</h1>");
	EXPECT_WORDS(plot, ">Nine, 2 Gb/s<");
	free(run.text);
	snprintf(arguments, sizeof(arguments), "$PSD_PLOT speedup %s/p -o %s/out.svg 2>&1", folder.path, folder.path);
	run = run_command(arguments);
	free(plot);
	plot = read_output(&folder, "out.svg");
	EXPECT_WORDS(plot, ">Nine, 2 Gb/s<");
	free(plot);
	free(page);
	free(run.text);
	snprintf(arguments, sizeof(arguments), "rm %s/p %s/m", folder.path, folder.path);
	free(run_command(arguments).text);
}

/* A browser would show gnuplot's names of its curves; text may look like an identifier. */
OUTPUT_TEST(compare_page_has_the_plots_text_as_it_is)
{
	struct run run = compare(&folder, PREDICTED " " MEASURED " --title 'x id=\"y\" url(#z)'", "2>&1");
	char *page = read_output(&folder, "out.html");

	EXPECT_WORDS(page, "<text>x id=\"y\" url(#z)</text>", " id=\"plot-gnuplot_canvas\"", "xlink:href='#plot-gpPt");
	cr_expect_null(strstr(page, "bar_ratio"), "%s", page);
	free(page);
	free(run.text);
}

/* A gnuplot that fails: as with psd-sim and psd-run, 2 is for what was asked and 1 for what went wrong. */
OUTPUT_TEST(a_failure_of_gnuplot_has_status_1)
{
	char command[512];

	snprintf(command, sizeof(command),
		 "cd %s && mkdir bin && printf '#!/bin/sh\\necho no pen >&2\\nexit 3\\n' >bin/gnuplot && chmod +x "
		 "bin/gnuplot && cd - >/dev/null && PATH=%s/bin:$PATH $PSD_PLOT speedup "
		 "tests/golden/quickstart.csv -o %s/out.svg 2>&1; echo $?; rm -r %s/bin",
		 folder.path, folder.path, folder.path, folder.path);
	struct run run = run_command(command);

	snprintf(command, sizeof(command), "psd-plot: %s/out.svg: gnuplot: no pen\n1\n", folder.path);
	cr_expect_str_eq(run.text, command);
	free(run.text);
}

static void expect_drawn(const struct folder *folder, const char *arguments)
{
	char command[256];
	struct run run;
	char *drawn;

	snprintf(command, sizeof(command), "$PSD_PLOT %s -o %s/out.svg 2>&1", arguments, folder->path);
	run = run_command(command);
	cr_expect_eq(run.exit_status, 0, "%s: %s", arguments, run.text);
	drawn = read_output(folder, "out.svg");
	EXPECT_WORDS(drawn, "Hybrid");
	free(drawn);
	free(run.text);
}

/* Columns are found by name, operations by the trace's own list, so that new ones need no new reader. */
OUTPUT_TEST(whatever_psd_sim_writes_is_drawn)
{
	char arguments[256];
	struct run run;

	expect_drawn(&folder, "speedup tests/golden/quickstart.csv");
	snprintf(arguments, sizeof(arguments),
		 "--quiet --trace %s/out.csv --set sweep.nodes=2 scenarios/quickstart.yaml", folder.path);
	run = run_program("psd-sim", arguments, ">/dev/null 2>&1");
	cr_assert_eq(run.exit_status, 0, "%s", run.text);
	free(run.text);
	snprintf(arguments, sizeof(arguments), "timeline %s/out.csv", folder.path);
	expect_drawn(&folder, arguments);
}

/* Systems that are not asked for leave no name; one that is not there is named. */
OUTPUT_TEST(speedup_draws_the_systems_that_are_asked_for)
{
	char command[256];
	struct run run;

	snprintf(command, sizeof(command),
		 "$PSD_PLOT speedup tests/golden/quickstart.csv -o %s/out.svg --systems %s 2>&1", folder.path, "PS");
	run = run_command(command);
	cr_assert_eq(run.exit_status, 0, "%s", run.text);
	free(run.text);
	char *drawn = read_output(&folder, "out.svg");
	cr_expect_not_null(strstr(drawn, ">PS<"));
	cr_expect_null(strstr(drawn, ">Hybrid<"));
	free(drawn);
	snprintf(command, sizeof(command),
		 "$PSD_PLOT speedup tests/golden/quickstart.csv -o %s/out.svg --systems PS,Others 2>&1", folder.path);
	run = run_command(command);
	cr_expect_eq(run.exit_status, 2);
	cr_expect_not_null(
		strstr(run.text, "there is no system 'Others', there are 'PS in sequence', 'PS', 'Ring' and 'Hybrid'"),
		"%s", run.text);
	free(run.text);
}

Test(plot, help_names_every_command)
{
	struct run run = run_command("$PSD_PLOT --help 2>/dev/null");

	cr_expect_eq(run.exit_status, 0);
	EXPECT_WORDS(run.text, "usage: psd-plot ", "\n  speedup  ", "\n  efficiency  ", "\n  seconds  ",
		     "\n  throughput  ", "\n  bars  ", "\n  curve  ", "\n  timeline  ", "\n  compare  ");
	free(run.text);
}

Test(plot, version_is_the_one_of_the_tree)
{
	struct run run = run_command("$PSD_PLOT --version 2>/dev/null");

	cr_expect_eq(run.exit_status, 0);
	expect_version(run.text, "psd-plot");
	free(run.text);
}

/* Within 80 columns and a screen, without options of other commands. */
Test(plot, each_command_has_a_help_of_its_own)
{
	static const struct {
		const char *command, *own, *others;
	} helps[] = {
		{"speedup", "\n  --linear            linear axes", "--workers"},
		{"curve", "usage: psd-plot curve [OPTIONS] FILE.csv...\n", "--linear"},
		{"timeline", "\n  --workers LIST  timelines of only these, ", "--systems"},
		{"compare", "\n  --bar RATIO        largest median of", "--linear"},
		{"", "\n  --version  print", "--bar"},
	};

	for (size_t h = 0; h < sizeof(helps) / sizeof(helps[0]); h++) {
		char command[256];
		unsigned n_lines = 0;

		snprintf(command, sizeof(command), "$PSD_PLOT %s --help 2>&1", helps[h].command);
		struct run run = run_command(command);

		cr_expect_eq(run.exit_status, 0, "%s", run.text);
		cr_expect_eq(strncmp(run.text, "usage: ", 7), 0, "%s", run.text);
		cr_expect_not_null(strstr(run.text, helps[h].own), "%s", run.text);
		cr_expect_null(strstr(run.text, helps[h].others), "%s", run.text);
		for (const char *line = run.text; *line; line += strcspn(line, "\n") + 1, n_lines++)
			cr_expect_leq(strcspn(line, "\n"), 80, "%s", line);
		cr_expect_leq(n_lines, 40, "%s", run.text);
		free(run.text);
	}
}

/* Draws with $PSD_PLOT and these arguments; returns the SVG. */
static char *draw(const char *arguments)
{
	struct folder folder = make_folder();
	char command[512], *drawn;

	snprintf(command, sizeof(command), "$PSD_PLOT %s -o %s/out.svg 2>&1", arguments, folder.path);
	struct run run = run_command(command);

	cr_assert_eq(run.exit_status, 0, "%s", run.text);
	free(run.text);
	drawn = read_output(&folder, "out.svg");
	remove_folder(&folder);
	return drawn;
}

/* PS is the second system of the file, and of the palette's colours. */
Test(plot, a_system_keeps_its_colour_whatever_is_left_out)
{
	char *drawn = draw("speedup tests/golden/quickstart.csv --systems PS");

	EXPECT_WORDS(drawn, "rgb(213,  94,   0)");
	cr_expect_null(strstr(drawn, "rgb(  0, 114, 178)"));
	free(drawn);
}

/* PS in sequence, PS and Ring are within 2 % of each other: two lines lie on the first, one on the second. */
Test(plot, lines_that_lie_on_each_other_all_show)
{
	struct scratch_file file = scratch_file_write(
		HEAD "t,A,sim-flow,1,1,1e9,1,1,1,0,0,0,0,,,\nt,A,sim-flow,2,2,1e9,1,1,1.5,0,0,0,0,,,\n"
		     "t,B,sim-flow,1,1,1e9,1,1,1,0,0,0,0,,,\nt,B,sim-flow,2,2,1e9,1,1,1.5,0,0,0,0,,,\n"
		     "t,C,sim-flow,1,1,1e9,1,1,1,0,0,0,0,,,\nt,C,sim-flow,2,2,1e9,1,1,1.5,0,0,0,0,,,\n");
	char arguments[256], *drawn, *alone;

	snprintf(arguments, sizeof(arguments), "speedup %s", file.path);
	drawn = draw(arguments);
	snprintf(arguments, sizeof(arguments), "speedup %s --systems A", file.path);
	alone = draw(arguments);
	EXPECT_WORDS(drawn, "stroke-width=\"7.00\"", "stroke-width=\"4.50\"");
	cr_expect_null(strstr(alone, "stroke-width=\"4.50\""));
	free(drawn);
	free(alone);
	remove(file.path);
}

/* Filled at a seventh, and only where a file has ends of a band. */
Test(plot, a_band_is_a_ribbon)
{
	struct scratch_file file = scratch_file_write(
		"scenario,system,executor,nodes,workers,bandwidth_bps,images_per_sec,speedup,published_images_per_sec,"
		"published_speedup,low,high\n"
		"t,A,sim-flow,2,2,1e9,20,2,,,18,22\nt,A,sim-flow,4,4,1e9,40,4,,,36,44\nt,B,sim-flow,2,2,1e9,10,1,,,,"
		"\nt,B,sim-flow,4,4,1e9,20,2,,,,\n");
	char arguments[256], *drawn, *without;

	snprintf(arguments, sizeof(arguments), "speedup %s", file.path);
	drawn = draw(arguments);
	snprintf(arguments, sizeof(arguments), "speedup %s --systems B", file.path);
	without = draw(arguments);
	EXPECT_WORDS(drawn, "fill-opacity = '0.15");
	cr_expect_null(strstr(without, "fill-opacity"));
	free(drawn);
	free(without);
	remove(file.path);
}

/* "t, 1 Gbit/s (x)" and "t, 2 Gbit/s (x)" */
Test(plot, names_say_what_titles_do_not_share)
{
	struct scratch_file one = scratch_file_write(HEAD
						     "\"t, a, 1 Gbit/s (x)\",PS,sim-flow,1,1,1e9,1,1,1,0,0,0,0,,,\n"
						     "\"t, a, 1 Gbit/s (x)\",PS,sim-flow,2,2,1e9,1,1,2,0,0,0,0,,,\n"),
			    other = scratch_file_write(
				    HEAD "\"t, a, 2 Gbit/s (x)\",PS,sim-flow,1,1,2e9,1,1,1,0,0,0,0,,,\n"
					 "\"t, a, 2 Gbit/s (x)\",PS,sim-flow,2,2,2e9,1,1,1.5,0,0,0,0,,,\n");
	char arguments[256], *drawn;

	snprintf(arguments, sizeof(arguments), "speedup %s %s", one.path, other.path);
	drawn = draw(arguments);
	EXPECT_WORDS(drawn, ">PS, 1 Gbit/s<", ">PS, 2 Gbit/s<", ">t, a (x)<");
	free(drawn);
	remove(one.path);
	remove(other.path);
}

Test(plot, a_timeline_of_a_run_says_what_a_bar_is)
{
	char *measured = draw("timeline tests/data/compare/measured.json"),
	     *predicted = draw("timeline tests/data/compare/predicted.json");
	struct scratch_file alone = scratch_file_write(
		"{\"otherData\":{\"scenario\":\"t\",\"system\":\"Ring\",\"executor\":\"real-cpu\",\"nodes\":1,"
		"\"kinds\":\"forward send receive\"},\"traceEvents\":[\n"
		"{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"args\":{\"name\":\"worker 0\"}},\n"
		"{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":1,\"args\":{\"name\":\"compute\"}},\n"
		"{\"name\":\"forward x\",\"cat\":\"forward\",\"ph\":\"X\",\"pid\":0,\"tid\":1,\"ts\":0,\"dur\":9,"
		"\"args\":{\"iteration\":0}}\n]}\n");
	char arguments[256], *sends_nothing;

	EXPECT_WORDS(measured, "send: until the network stack has taken the last byte");
	cr_expect_null(strstr(predicted, "send: until"));
	snprintf(arguments, sizeof(arguments), "timeline %s", alone.path);
	sends_nothing = draw(arguments);
	EXPECT_WORDS(sends_nothing, ">forward<");
	cr_expect_null(strstr(sends_nothing, "send: until"));
	free(measured);
	free(predicted);
	free(sends_nothing);
	remove(alone.path);
}

/* In the order in which a trace names them. */
Test(plot, a_timeline_has_a_colour_for_every_kind)
{
	char kinds[512] = "", events[4096] = "", text[8192], arguments[256], *drawn;
	unsigned n_kinds = 0;

	for (unsigned k = 0; k < PSD_OP_KINDS; k++) {
		const char *kind = psd_ops[k].name;

		if (k == PSD_OP_COPY_IN || k == PSD_OP_GATE || k == PSD_OP_NEXT)
			continue;
		snprintf(kinds + strlen(kinds), sizeof(kinds) - strlen(kinds), "%s%s", n_kinds ? " " : "", kind);
		snprintf(events + strlen(events), sizeof(events) - strlen(events),
			 ",\n{\"name\":\"%s x\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":0,\"tid\":1,\"ts\":%u,\"dur\":9,"
			 "\"args\":{\"iteration\":0}}",
			 kind, kind, 10 * n_kinds++);
	}
	snprintf(text, sizeof(text),
		 "{\"otherData\":{\"scenario\":\"t\",\"system\":\"s\",\"executor\":\"sim-flow\",\"nodes\":1,"
		 "\"kinds\":\"%s\"},\"traceEvents\":[\n"
		 "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"args\":{\"name\":\"worker 0\"}},\n"
		 "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":1,\"args\":{\"name\":\"compute\"}}%s\n]}\n",
		 kinds, events);
	struct scratch_file trace = scratch_file_write(text);
	snprintf(arguments, sizeof(arguments), "timeline %s", trace.path);
	drawn = draw(arguments);
	EXPECT_WORDS(drawn, ">forward<", ">gather<", ">choose<", ">sum<");
	free(drawn);
	remove(trace.path);
}

/* The speedup plot of a CSV; to be freed. */
static char *draw_speedup(const char *csv)
{
	char command[256], *drawn;
	struct folder folder = make_folder();
	struct scratch_file input = scratch_file_write(csv);

	snprintf(command, sizeof(command), "$PSD_PLOT speedup %s -o %s/out.svg 2>&1", input.path, folder.path);
	struct run run = run_command(command);

	cr_assert_eq(run.exit_status, 0, "%s", run.text);
	free(run.text);
	drawn = read_output(&folder, "out.svg");
	remove(input.path);
	remove_folder(&folder);
	return drawn;
}

static char *draw_systems(unsigned n_systems)
{
	char text[4096] = HEAD;

	for (unsigned s = 0; s < n_systems; s++)
		for (unsigned workers = 1; workers <= 2; workers++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text),
				 "t,s%u,sim-flow,%u,%u,1e9,1,1,%u,0,0,0,0,,,\n", s, workers, workers, workers);
	return draw_speedup(text);
}

/* How often a plot, which is freed, has it. */
static unsigned count_of(char *drawn, const char *what)
{
	unsigned n = 0;

	for (const char *at = drawn; (at = strstr(at, what)); at++)
		n++;
	free(drawn);
	return n;
}

/* One system's line at this number of bandwidths. */
static char *draw_bandwidths(unsigned n_bandwidths)
{
	char text[4096] = HEAD;

	for (unsigned b = 1; b <= n_bandwidths; b++)
		for (unsigned workers = 1; workers <= 2; workers++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text),
				 "t,s,sim-flow,%u,%u,%ue9,1,1,%u,0,0,0,0,,,\n", workers, workers, b, b * workers);
	return draw_speedup(text);
}

/* The first and the second colour of the palette. */
Test(plot, bandwidths_of_one_system_have_colours_of_their_own)
{
	char *one = draw_bandwidths(1), *two = draw_bandwidths(2);

	EXPECT_WORDS(one, "rgb(  0, 114, 178)");
	cr_expect_null(strstr(one, "rgb(213,  94,   0)"));
	EXPECT_WORDS(two, "rgb(  0, 114, 178)", "rgb(213,  94,   0)");
	free(one);
	free(two);
}

Test(plot, speedup_names_bandwidths_below_a_gigabit_in_megabits)
{
	char *drawn = draw_speedup(HEAD "t,PS,sim-flow,2,2,200000000,2,,1,0.5,0.5,1000,1000,,,\n"
					"t,PS,sim-flow,4,4,200000000,2,,2,0.5,0.5,1000,1000,,,\n"
					"t,PS,sim-flow,2,2,2000000000,1,,1,0.5,0.5,1000,1000,,,\n"
					"t,PS,sim-flow,4,4,2000000000,1,,2,0.5,0.5,1000,1000,,,\n");

	EXPECT_WORDS(drawn, ">t, 200 Mb/s to 2 Gb/s<", ">PS, 200 Mb/s<", ">PS, 2 Gb/s<");
	free(drawn);
}

/* Eight lines have one panel, with a colour each; nine have two, each with its axis. */
Test(plot, more_than_eight_lines_become_panels)
{
	cr_expect_eq(count_of(draw_systems(8), ">workers<"), 1);
	cr_expect_eq(count_of(draw_systems(9), ">workers<"), 2);
	cr_expect_eq(count_of(draw_systems(9), ">s8<"), 1);
}

/* gnuplot's point type 5, which it counts from 0. */
Test(plot, no_prediction_has_the_square_of_what_was_executed)
{
	char *drawn = draw_systems(32);

	cr_expect_not_null(strstr(drawn, "xlink:href='#gpPt6'"));
	cr_expect_null(strstr(drawn, "xlink:href='#gpPt4'"));
	free(drawn);
}

/* ---- sizes to which tensors are gathered ---- */

#define RING_ROW(executor, sec, fuse) "t,Ring," executor ",2,2,1e9," sec ",1,1,0.1,0,10,10,,," fuse "\n"
#define FUSED_HEAD                                                                                                     \
	"scenario,system,executor,nodes,workers,bandwidth_bps,iteration_sec,images_per_sec,speedup,compute_sec,"       \
	"exposed_comm_sec,tx_bytes_per_node,rx_bytes_per_node,published_images_per_sec,published_speedup,fuse_bytes\n"

/* A run is compared with the prediction of its own size, one of two: 0.3 predicted, 0.25 measured, +20 %. */
OUTPUT_TEST(sizes_are_points_of_their_own)
{
	struct scratch_file predicted = scratch_file_write(FUSED_HEAD RING_ROW("sim-flow", "0.3", "65536")
								   RING_ROW("sim-flow", "0.2", "4194304"));
	struct scratch_file measured = scratch_file_write(FUSED_HEAD RING_ROW("real-cpu", "0.25", "65536"));
	char arguments[256], command[256], *csv;
	struct run run;

	snprintf(arguments, sizeof(arguments), "%s %s", predicted.path, measured.path);
	run = compare(&folder, arguments, "2>&1");
	cr_assert_eq(run.exit_status, 0, "%s", run.text);
	csv = read_output(&folder, "out.csv");
	EXPECT_WORDS(csv, "t,\"Ring, 64KiB\",real-cpu,2,2,1000000000,1,0.3,0.25,,0.2,");
	free(run.text);
	free(csv);
	snprintf(command, sizeof(command), "$PSD_PLOT curve %s -o %s/out.svg 2>&1", predicted.path, folder.path);
	run = run_command(command);
	cr_expect_eq(run.exit_status, 0, "%s", run.text);
	csv = read_output(&folder, "out.svg");
	EXPECT_WORDS(csv, ">Ring<", ">64KiB<", ">4MiB<");
	free(run.text);
	free(csv);
	remove(predicted.path);
	remove(measured.path);
}

/* ---- curve ---- */

static char *draw_curve(const struct folder *folder, const char *text, int exit_status)
{
	const struct scratch_file input = scratch_file_write(text);
	char command[256];
	struct run run;

	snprintf(command, sizeof(command), "$PSD_PLOT curve %s -o %s/out.svg 2>&1", input.path, folder->path);
	run = run_command(command);
	cr_expect_eq(run.exit_status, exit_status, "%s", run.text);
	remove(input.path);
	return run.text;
}

OUTPUT_TEST(curve_draws_seconds_over_sizes_and_levels_beside_them)
{
	static const char rows[] = HEAD "t,64KiB,sim-flow,2,2,1e9,0.3,1,1,0,0,0,0,,,\n"
					"t,2 MiB,sim-flow,2,2,1e9,0.1,1,1,0,0,0,0,,,\n"
					"t,auto,sim-flow,2,2,1e9,0.1,1,1,0,0,0,0,,,\n"
					"t,PS,sim-flow,2,2,1e9,0.2,1,1,0,0,0,0,,,\n"
					"t,64KiB,sim-flow,4,4,1e9,0.2,1,1,0,0,0,0,,,\n";
	const char *dashes, *others;
	char *drawn;

	free(draw_curve(&folder, rows, 0));
	drawn = read_output(&folder, "out.svg");
	EXPECT_WORDS(drawn, "64KiB", "2MiB", "2 workers", "4 workers", "auto, 2 workers", "iteration, ms", "300");
	dashes = strstr(drawn, "stroke-dasharray");
	cr_assert_not_null(dashes);
	others = strstr(dashes + 1, "stroke-dasharray"); /* after the curve of PS */
	cr_assert_not_null(others);
	cr_expect_neq(strncmp(dashes, others, strlen("stroke-dasharray='1.0,1.0'")), 0);
	free(drawn);
}

#define SIZED_HEAD                                                                                                     \
	"scenario,system,executor,nodes,workers,bandwidth_bps,iteration_sec,images_per_sec,speedup,"                   \
	"published_images_per_sec,published_speedup,fuse_bytes\n"

/* A system that a sweep gathers to several sizes is a curve over them, which its workers name while it is alone. */
OUTPUT_TEST(sizes_of_a_sweep_are_the_points_of_a_curve)
{
	static const char one[] = SIZED_HEAD "t,Ring,sim-flow,2,2,1e9,0.3,1,1,,,65536\n"
					     "t,Ring,sim-flow,2,2,1e9,0.1,1,1,,,2000000\n"
					     "t,auto,sim-flow,2,2,1e9,0.1,1,1,,,\nt,auto,sim-flow,2,2,1e9,0.1,1,1,,,\n";
	char two[1024], *drawn;

	free(draw_curve(&folder, one, 0));
	drawn = read_output(&folder, "out.svg");
	EXPECT_WORDS(drawn, "64KiB", "2MB", ">Ring<", ">auto<");
	free(drawn);
	snprintf(two, sizeof(two), "%st,Torus,sim-flow,2,2,1e9,0.2,1,1,,,65536\n", one);
	free(draw_curve(&folder, two, 0));
	drawn = read_output(&folder, "out.svg");
	EXPECT_WORDS(drawn, ">Ring<", ">Torus<", ">auto<");
	free(drawn);
	free(draw_curve(&folder, SIZED_HEAD "t,Ring,sim-flow,2,2,1e9,0.3,1,1,,,many\n", 2));
}

OUTPUT_TEST(curve_draws_what_a_log_tested)
{
	char *drawn;

	free(draw_curve(&folder,
			"system,iteration,epoch,loss,training_accuracy_ratio,elapsed_sec,test_accuracy_ratio\n"
			"Ring,0,0,2.3,0.1,1,\nRing,9,0.9,2,0.1,1,0.25\nRing,19,1.9,1,0.1,1,0.5\n",
			0));
	drawn = read_output(&folder, "out.svg");
	EXPECT_WORDS(drawn, "Ring", "epochs", "top-1 of test samples, %");
	free(drawn);
}

/* A test at the end alone would be a dot in an empty frame. */
OUTPUT_TEST(curve_draws_training_where_nobody_was_tested_twice)
{
	char *drawn;

	free(draw_curve(&folder,
			"system,iteration,epoch,loss,training_accuracy_ratio,elapsed_sec,test_accuracy_ratio\n"
			"Ring,0,1,2.3,0.1,1,\nRing,1,2,2,0.5,1,\nRing,2,3,1,0.75,1,0.5\n",
			0));
	drawn = read_output(&folder, "out.svg");
	EXPECT_WORDS(drawn, "Ring", "top-1 of training samples, %", ">test samples<");
	free(drawn);
}

/* Three that are one line, two of which lie on the first and one on the second: 2 + 2.5 * 2 and 2 + 2.5 wide. */
OUTPUT_TEST(curves_that_lie_on_each_other_are_all_seen)
{
	static const char rows[] = "system,epoch,test_accuracy_ratio\nA,1,0.5\nA,2,0.9\nB,1,0.5\nB,2,0.9\n"
				   "C,1,0.502\nC,2,0.9\nD,1,0.1\nD,2,0.2\n";
	char *drawn;

	free(draw_curve(&folder, rows, 0));
	drawn = read_output(&folder, "out.svg");
	EXPECT_WORDS(drawn, "stroke-width=\"7.00\"", "stroke-width=\"4.50\"", "stroke-width=\"2.00\"");
	cr_expect_null(strstr(drawn, "stroke-width=\"9.50\""), "the fourth lies elsewhere");
	free(drawn);
}

OUTPUT_TEST(curve_names_what_it_cannot_draw)
{
	char *said = draw_curve(&folder, HEAD "t,Ring,sim-flow,2,2,1e9,0.3,1,1,0,0,0,0,,,\n", 2);

	EXPECT_WORDS(said, "has no curve: it needs accuracy of tests, bucket sizes (fuse_bytes), or systems named by ");
	free(said);
	said = draw_curve(&folder, HEAD "t,64KiB,sim-flow,2,2,1e9,no,1,1,0,0,0,0,,,\n", 2);
	EXPECT_WORDS(said, ":2: 'iteration_sec' is 'no', must be a number above 0");
	free(said);
}

/* Also where the plot has no use for the column. Fewer columns, and others, are those of other versions. */
OUTPUT_TEST(text_in_a_column_of_numbers_is_refused)
{
	static const char script[] =
		"f=%s/in.csv; o=%s/out.svg; psd() { $PSD_PLOT \"$@\" -o $o 2>&1 >/dev/null; }; "
		"change() { awk -F, -v OFS=, -v n=$1 -v v=$2 'NR == 3 { $n = v } 1' $f.whole >$f; }; "
		"sed 's/^\"[^\"]*\"/Q/' tests/golden/quickstart.csv >$f.whole; set -- fast nan 1x -; "
		"head -1 $f.whole | tr , '\\n' >$f.names; n=0; while read -r name; do n=$((n + 1)); "
		"case $name in scenario | system | executor | limit | is_fitted) continue ;; esac; change $n $1; "
		"said=$(psd speedup $f); case $said in *\"in.csv:3: '$name' is '$1', must be \"*) ;; *) echo \"$name "
		"$1: $said\" ;; esac; set -- $2 $3 $4 $1; done <$f.names; cut -d, -f1-16 $f.whole >$f; psd speedup $f; "
		"sed '1s/$/,remark/; 1!s/$/,fast/' $f.whole >$f; psd speedup $f; change 16 -0.25; psd speedup $f; rm "
		"$f*; echo $n columns";
	static const char log[] =
		"system,iteration,epoch,loss,training_accuracy_ratio,elapsed_sec,test_accuracy_ratio\n"
		"Ring,0,0.5,nan,0.1,1,0.5\nRing,1,1,2,0.1,1,0.6\n";
	char line[2048], *said;
	struct run run;

	snprintf(line, sizeof(line), script, folder.path, folder.path);
	run = run_command(line);
	cr_expect_str_eq(run.text, "31 columns\n");
	free(run.text);
	said = draw_curve(&folder, log, 2);
	EXPECT_WORDS(said, ":2: 'loss' is 'nan', must be empty or a number");
	free(said);
}

/* A value to which the prediction was fitted says nothing about predictions: it is drawn apart and judged by no bar. */
Test(plot, fitted_values_are_drawn_apart_and_judged_by_no_bar)
{
	struct folder folder = make_folder();
	char command[1024];
	struct run run;
	char *drawn;

	snprintf(command, sizeof(command),
		 "$PSD_PLOT speedup tests/golden/poseidon-atc17/vgg19-22k-40gbe.csv -o %s/out.svg 2>&1 && "
		 "{ head -n 1 " PREDICTED " | sed 's/$/,is_fitted/'; sed -n '2s/$/,yes/p; 3,$s/$/,/p' " PREDICTED
		 "; } >%s/p && $PSD_PLOT compare %s/p " MEASURED " -o %s/out.html 2>&1; rm %s/p",
		 folder.path, folder.path, folder.path, folder.path, folder.path);
	run = run_command(command);
	cr_expect_eq(run.exit_status, 0, "%s", run.text);
	EXPECT_WORDS(run.text, "1 fitted to published values", "  fitted\n");
	free(run.text);
	snprintf(command, sizeof(command),
		 "$PSD_PLOT compare " PREDICTED " " MEASURED " -o %s/out.html | grep -c fitted", folder.path);
	run = run_command(command);
	cr_expect_str_eq(run.text, "0\n");
	free(run.text);
	snprintf(command, sizeof(command),
		 "$PSD_PLOT speedup tests/golden/poseidon-atc17/vgg19-22k-40gbe.csv -o %s/out.svg 2>&1", folder.path);
	free(run_command(command).text);
	drawn = read_output(&folder, "out.svg");
	EXPECT_WORDS(drawn, ">published<", ">fitted to published<");
	free(drawn);
	remove_folder(&folder);
}

/* One line of results with these workers, bandwidth and size. */
#define RESULT(system, workers, bps, size) "t," system ",sim-flow," workers "," workers "," bps ",0.5," size "\n"
#define RESULTS                                                                                                        \
	"scenario,system,executor,nodes,workers,bandwidth_bps,iteration_sec,"                                          \
	"fuse_bytes\n"

/* 96 systems are 12 panels of 8 lines; 16 are two. */
Test(plot, a_picture_of_many_lines_comes_with_a_hint)
{
	struct folder folder = make_folder();
	char command[4096];

	for (int n = 16; n <= 96; n += 80) {
		snprintf(command, sizeof(command),
			 "{ printf '" RESULTS "'; awk 'BEGIN { for (i = 0; i < %d; i++) for (n = 1; n < 3; n++) print "
			 "\"t,s\" i \",sim-flow,\" n \",\" n \",1e9,0.5,\" }'; } >%s/in.csv; "
			 "$PSD_PLOT seconds %s/in.csv -o %s/out.svg 2>&1; rm %s/in.csv %s/out.svg",
			 n, folder.path, folder.path, folder.path, folder.path, folder.path);
		struct run run = run_command(command);

		cr_expect_str_eq(run.text, n == 16 ? ""
						   : "psd-plot: 96 lines in 12 panels: --where COLUMN=VALUE or "
						     "--systems NAME,... draws fewer\n");
		free(run.text);
	}
	remove_folder(&folder);
}

/* A curve of one size, or a vertical line through one, means nothing; two hundred curves hide each other. */
Test(plot, curves_that_mean_nothing_are_refused_with_the_plot_that_does)
{
	static const struct {
		const char *rows, *words;
	} cases[] = {
		{RESULTS RESULT("R", "4", "1e9", "4096") RESULT("R", "4", "1e10", "4096"),
		 "has one value of 'fuse_bytes' in each line, a line needs several: say 'sweep: {fuse: [...]}'; "
		 "'bandwidth_bps' varies, --over draws it"},
		{RESULTS RESULT("R", "4", "1e9", "4096")
			 RESULT("R", "4", "1e9", "8192") "t,R,sim-flow,4,4,1e9,0.6,8192\n",
		 "in.csv:4: 'R' has a second result at bucket size 8KiB, a line needs one: keep the rows of one with "
		 "--where, or give fewer files"},
		{RESULTS RESULT("R", "2", "1e9", "4096") RESULT("R", "4", "1e9", "4096"),
		 "has one value of 'fuse_bytes' in each line, a line needs several: say 'sweep: {fuse: [...]}'; "
		 "'workers' varies, --over draws it"},
		{RESULTS RESULT("R", "4", "1e9", "4096"), "'psd-plot bars' draws single points"},
	};
	struct folder folder = make_folder();
	char command[4096];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(command, sizeof(command),
			 "printf '%s' >%s/in.csv; $PSD_PLOT curve %s/in.csv -o %s/out.svg 2>&1", cases[i].rows,
			 folder.path, folder.path, folder.path);
		struct run run = run_command(command);

		cr_expect_eq(run.exit_status, 2, "%s", run.text);
		cr_expect_not_null(strstr(run.text, cases[i].words), "%s", run.text);
		free(run.text);
	}
	snprintf(command, sizeof(command),
		 "awk 'BEGIN { print \"system,epoch,test_accuracy_ratio\"; for (i = 0; i < 400; i++) print \"s\" int(i "
		 "/ 2) \",\" i %% 2 \",0.5\" }' >%s/in.csv; $PSD_PLOT curve %s/in.csv -o %s/out.svg 2>&1; rm %s/in.csv",
		 folder.path, folder.path, folder.path, folder.path);
	struct run run = run_command(command);

	EXPECT_WORDS(run.text, "has 200 curves, of which a plot takes 24: keep the rows of fewer systems");
	free(run.text);
	remove_folder(&folder);
}
