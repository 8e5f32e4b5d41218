/* Lines and bars of psd-plot: values, axes, names and panels that results become, and the words for results that mean
 * nothing. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plots/columns.h"
#include "plots/lines.h"
#include "plots/steps.h"
#include "plots/words.h"
#include "tests/plots/plot_helper.h"
#include "tests/scratch_file.h"
#include "tests/scratch_folder.h"

#define HEAD "scenario,system,executor,nodes,workers,bandwidth_bps,iteration_sec,images_per_sec,speedup\n"

/* A figure of results with this text. */
static struct psd_figure *fill(const char *text, const struct psd_lines *lines)
{
	struct psd_figure *figure = malloc(sizeof(*figure));
	struct scratch_file file = scratch_file_write(text);
	const char *path = file.path;
	struct psd_results results;
	struct psd_error err = {.text = ""};

	psd_figure_init(figure);
	cr_assert_eq(psd_results_read(&results, &path, 1, psd_measure_columns(lines->measure), NULL, &err), PSD_OK,
		     "%s", err.text);
	cr_assert_eq(psd_lines_fill(figure, &results, lines, &err), PSD_OK, "%s", err.text);
	psd_figure_keep(figure, &results.arena);
	psd_results_release(&results);
	remove(file.path);
	return figure;
}

static void release(struct psd_figure *figure)
{
	psd_figure_release(figure);
	free(figure);
}

/* Data of the layer of this number in a panel, from 0. */
static const char *data_of(const struct psd_figure *figure, unsigned panel, unsigned number)
{
	const struct psd_layer *layer = figure->panels[panel].layers;

	for (unsigned i = 0; i < number && layer; i++)
		layer = layer->next;
	cr_assert_not_null(layer, "panel %u has no layer %u", panel, number);
	return layer->data.bytes;
}

static const char *entry_of(const struct psd_figure *figure, unsigned number)
{
	const struct psd_entry *entry = figure->entries;

	for (unsigned i = 0; i < number && entry; i++)
		entry = entry->next;
	return entry ? entry->text : "";
}

/* Speedups of 1 and 1.5 are 100 and 75 % of 1 and 2 workers. */
Test(plot_lines, efficiency_is_speedup_over_workers)
{
	const struct psd_lines lines = {.measure = PSD_MEASURE_EFFICIENCY};
	struct psd_figure *figure = fill(HEAD "t,A,sim,1,1,1e9,1,10,1\nt,A,sim,2,2,1e9,1,15,1.5\n", &lines);

	cr_expect_str_eq(data_of(figure, 0, 0), "1 100\n2 75\n");
	cr_expect_str_eq(figure->panels[0].x.label, "workers");
	cr_expect_str_eq(figure->panels[0].y.label, "efficiency, %");
	release(figure);
}

#define SIZED "scenario,system,executor,nodes,workers,bandwidth_bps,iteration_sec,images_per_sec,speedup,fuse_bytes\n"

/* From 106 to 100 ms and back is a valley of 6 %: the axis begins near it, and the ring is at 8 KiB. */
Test(plot_lines, a_valley_of_six_per_cent_shows_and_its_least_is_marked)
{
	const struct psd_lines lines = {.measure = PSD_MEASURE_SECONDS, .over = "fuse_bytes"};
	struct psd_figure *figure = fill(SIZED "t,A,sim,2,2,1e9,0.106,1,1,4096\nt,A,sim,2,2,1e9,0.1,1,1,8192\n"
					       "t,A,sim,2,2,1e9,0.106,1,1,16384\n",
					 &lines);
	const struct psd_panel *panel = &figure->panels[0];
	const double height = (106 - 100) / (panel->y.high - panel->y.low);

	cr_expect_gt(height, 0.5);
	cr_expect_str_eq(data_of(figure, 0, 0), "4096 106\n8192 100\n16384 106\n");
	cr_expect_str_eq(data_of(figure, 0, 1), "8192 100\n");
	cr_expect_str_eq(entry_of(figure, 1), "least");
	cr_expect_str_eq(panel->x.tics[2].text, "16KiB");
	release(figure);
}

/* Seconds of 2 and 3 over 1 and 2: 2 and 1.5. The baseline is the dashed line at 1. */
Test(plot_lines, values_are_divided_by_those_of_a_system_at_the_same_place)
{
	const struct psd_lines lines = {.measure = PSD_MEASURE_SECONDS, .relative = "B"},
			       best = {.measure = PSD_MEASURE_SECONDS, .relative = "best"};
	static const char rows[] = HEAD "t,A,sim,1,1,1e9,2,1,1\nt,A,sim,2,2,1e9,3,1,1\nt,A,sim,4,4,1e9,9,1,1\n"
					"t,B,sim,1,1,1e9,1,1,1\nt,B,sim,2,2,1e9,2,1,1\n";
	struct psd_figure *figure = fill(rows, &lines), *own = fill(rows, &best);

	cr_expect_str_eq(data_of(figure, 0, 1), "1 2\n2 1.5\n");
	cr_expect_str_eq(entry_of(figure, 0), "A");
	cr_expect_str_eq(entry_of(figure, 1), "B");
	cr_expect_str_eq(figure->panels[0].y.label, "seconds, over B");
	cr_expect_str_eq(data_of(own, 0, 1), "1 1\n2 1.5\n4 4.5\n");
	cr_expect_str_eq(data_of(own, 0, 2), "1 1\n2 2\n");
	release(figure);
	release(own);
}

/* A throughput of 10 with a band from 8 to 12.5 takes a step of 1 s, 0.8 to 1.25 s; a published one of 20, 0.5 s. */
Test(plot_lines, bands_and_published_values_follow_the_measure)
{
	const struct psd_lines lines = {.measure = PSD_MEASURE_SECONDS};
	struct psd_figure *figure =
		fill("scenario,system,executor,workers,iteration_sec,images_per_sec,low,high,published_images_per_sec\n"
		     "t,A,sim,1,1,10,8,12.5,20\nt,A,sim,2,1,10,8,12.5,\n",
		     &lines);

	cr_expect_str_eq(data_of(figure, 0, 0), "1 800 1250\n2 800 1250\n");
	cr_expect_str_eq(data_of(figure, 0, 1), "1 1000\n2 1000\n");
	cr_expect_str_eq(data_of(figure, 0, 2), "1 500\n");
	release(figure);
}

/* Two systems at two bandwidths. */
#define FOUR_LINES                                                                                                     \
	HEAD "t,A,sim,1,1,1e9,1,1,1\nt,A,sim,2,2,1e9,1,2,2\nt,A,sim,1,1,1e10,1,1,1\nt,A,sim,2,2,1e10,1,3,3\n"          \
	     "t,B,sim,1,1,1e9,1,1,1\nt,B,sim,2,2,1e9,1,4,4\nt,B,sim,1,1,1e10,1,1,1\nt,B,sim,2,2,1e10,1,5,5\n"

Test(plot_lines, the_title_of_panels_is_the_common_end_of_their_scenarios)
{
	const struct psd_lines lines = {.measure = PSD_MEASURE_EFFICIENCY, .panels = "scenario"};
	struct psd_figure *figure = fill(HEAD "\"VGG, 10 GbE (P, '17)\",A,sim,1,1,1e9,1,1,1\n"
					      "\"VGG, 10 GbE (P, '17)\",A,sim,2,2,1e9,1,2,2\n"
					      "\"Net, 40 GbE (P, '17)\",A,sim,1,1,1e9,1,1,1\n"
					      "\"Net, 40 GbE (P, '17)\",A,sim,2,2,1e9,1,2,2\n",
					 &lines);

	cr_assert_eq(figure->n_panels, 2);
	cr_expect_str_eq(figure->title, "P, '17: A");
	cr_expect_str_eq(figure->panels[0].title, "VGG, 10 GbE");
	release(figure);
}

Test(plot_lines, panels_are_the_values_of_a_column_and_names_the_rest)
{
	const struct psd_lines one = {.measure = PSD_MEASURE_THROUGHPUT},
			       bandwidths = {.measure = PSD_MEASURE_THROUGHPUT, .panels = "bandwidth_bps"},
			       systems = {.measure = PSD_MEASURE_THROUGHPUT, .panels = "system"};
	struct psd_figure *figure = fill(FOUR_LINES, &one);

	cr_expect_eq(figure->n_panels, 1);
	cr_expect_str_eq(entry_of(figure, 1), "A, 10 Gb/s");
	cr_expect_str_eq(figure->title, "t, 1 Gb/s to 10 Gb/s");
	release(figure);
	figure = fill(FOUR_LINES, &bandwidths);
	cr_expect_eq(figure->n_panels, 2);
	cr_expect_str_eq(figure->panels[1].title, "10 Gb/s");
	cr_expect_str_eq(entry_of(figure, 1), "B");
	cr_expect_str_eq(data_of(figure, 1, 1), "1 1\n2 5\n");
	release(figure);
	figure = fill(FOUR_LINES, &systems);
	cr_expect_str_eq(figure->panels[1].title, "B");
	cr_expect_str_eq(entry_of(figure, 1), "10 Gb/s");
	release(figure);
}

/* A swept key is the axis if nothing else varies; its values are words. */
Test(plot_lines, a_swept_key_is_an_axis)
{
	const struct psd_lines lines = {.measure = PSD_MEASURE_THROUGHPUT};
	struct psd_figure *figure = fill("scenario,system,executor,workers,images_per_sec,stack,cluster.stack\n"
					 "t,A,sim,4,30,x,psd\nt,A,sim,4,20,x,horovod\nt,A,sim,4,40,x,nccl\n",
					 &lines);
	const struct psd_axis *x = &figure->panels[0].x;

	cr_expect_eq(x->n_tics, 3);
	cr_expect_str_eq(x->tics[1].text, "horovod");
	cr_expect_str_eq(data_of(figure, 0, 0), "1 30\n2 20\n3 40\n");
	release(figure);
}

/* ---- traces ---- */

static double number_in(const struct psd_row *row, const char *column)
{
	return strtod(psd_row_text(row, column), NULL);
}

/* Steps begin at 0, 5 and 7 ms: the first one fills a pipeline, so a step takes 2 ms. Two workers take 4 ms: both train
 * at the speed of one. */
#define STEP(n, begin, length)                                                                                         \
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#" n "\",\"pid\":1,\"tid\":1,\"ts\":" begin  \
	",\"dur\":" length "}"

Test(plot_lines, a_profile_is_a_point_by_its_steps)
{
	const struct scratch_folder folder = scratch_folder_make();
	static const char one[] = "{\"traceEvents\":[" STEP("1", "0", "5000") "," STEP("2", "5000", "2000") "," STEP(
		"3", "7000", "2000") "]}";
	static const char two[] = "{\"distributedInfo\":{\"rank\":0,\"world_size\":2},\"traceEvents\":[" STEP(
		"7", "1000", "4000") "," STEP("8", "5000", "4000") "," STEP("9", "9000", "4000") "]}";
	struct psd_results results;
	struct psd_error err = {.text = ""};

	scratch_folder_write(&folder, "1.json", one, strlen(one));
	scratch_folder_write(&folder, "2.json", two, strlen(two));
	const struct scratch_path first = scratch_folder_path(&folder, "1.json"),
				  second = scratch_folder_path(&folder, "2.json");
	const char *paths[] = {first.text, second.text};

	cr_assert(psd_steps_are_traces(paths, 2));
	cr_assert_eq(psd_steps_read(&results, paths, 2, NULL, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(results.n_rows, 2);
	cr_expect_float_eq(number_in(&results.rows[0], "iteration_sec"), 0.002, 1e-9);
	cr_expect_float_eq(number_in(&results.rows[1], "iteration_sec"), 0.004, 1e-9);
	cr_expect_float_eq(number_in(&results.rows[1], "workers"), 2, 0);
	cr_expect_float_eq(number_in(&results.rows[1], "speedup"), 1, 1e-9);
	psd_results_release(&results);
	scratch_folder_remove(&folder);
}

/* Both forms of a simulation's trace have the iteration of its CSV. */
Test(plot_lines, a_simulated_trace_has_the_iteration_of_its_result)
{
	const struct scratch_folder folder = scratch_folder_make();
	char arguments[512];

	for (unsigned nodes = 1; nodes <= 2; nodes++) {
		static const char *const names[] = {"all", "rank%r"};

		for (unsigned i = 0; i < 2; i++) {
			snprintf(arguments, sizeof(arguments),
				 "--csv --quiet --system Ring --set iterations=5 --set sweep.nodes=%u --trace "
				 "'%s/%u-%s.json' scenarios/quickstart.yaml",
				 nodes, folder.path, nodes, names[i]);
			struct run run = run_program("psd-sim", arguments, "");

			cr_assert_eq(run.exit_status, 0);
			free(run.text);
		}
	}
	struct psd_results results;
	struct psd_error err = {.text = ""};
	const struct scratch_path paths[] = {
		scratch_folder_path(&folder, "1-all.json"), scratch_folder_path(&folder, "2-all.json"),
		scratch_folder_path(&folder, "1-rank0.json"), scratch_folder_path(&folder, "2-rank0.json"),
		scratch_folder_path(&folder, "2-rank1.json")};
	const char *all[] = {paths[0].text, paths[1].text}, *ranks[] = {paths[2].text, paths[3].text, paths[4].text};
	double speedup;

	cr_assert_eq(psd_steps_read(&results, all, 2, NULL, &err), PSD_OK, "%s", err.text);
	speedup = number_in(&results.rows[1], "speedup");
	cr_expect_str_eq(psd_row_text(&results.rows[1], "system"), "Ring");
	psd_results_release(&results);
	cr_assert_eq(psd_steps_read(&results, ranks, 3, NULL, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(results.n_rows, 2, "two ranks are one point");
	cr_expect_float_eq(number_in(&results.rows[1], "speedup"), speedup, 0.02 * speedup);
	psd_results_release(&results);
	scratch_folder_remove(&folder);
}

/* ---- refusals ---- */

/* One line with these words about a file of this text, status 2, and no picture. */
static void expect_refused(const char *arguments, const char *text, const char *words)
{
	const struct scratch_folder folder = scratch_folder_make();
	char command[1024];
	struct run run;

	scratch_folder_write(&folder, "in.csv", text, strlen(text));
	snprintf(command, sizeof(command), "cd %s && $PSD_PLOT %s in.csv -o out.svg 2>&1; echo $?; ls", folder.path,
		 arguments);
	run = run_command(command);
	cr_expect_not_null(strstr(run.text, words), "%s: no '%s' in: %s", arguments, words, run.text);
	cr_expect_not_null(strstr(run.text, "\n2\nin.csv\n"), "%s: %s", arguments, run.text);
	cr_expect_eq(strchr(run.text, '\n'), strstr(run.text, "\n2\nin.csv\n"), "%s", run.text);
	free(run.text);
	scratch_folder_remove(&folder);
}

#define TWO HEAD "t,A,sim,1,1,1e9,1,1,1\nt,A,sim,2,2,1e9,1,2,2\n"

Test(plot_lines, results_that_cannot_be_drawn_are_refused_in_a_line)
{
	static const struct {
		const char *arguments, *text, *words;
	} cases[] = {
		{"efficiency", "", "in.csv:1: is empty, the first line must be that of psd-sim --csv"},
		{"efficiency", HEAD, "in.csv:2: has no result, must have a row for each point"},
		{"efficiency", "a,b\n1,2\n", "in.csv:1: column 'scenario' is missing"},
		{"efficiency", TWO "t,A,sim,4,4,1e9,1,4,nan\n",
		 "in.csv:4: 'speedup' is 'nan', must be empty or a number"},
		{"seconds", TWO "t,A,sim,4,4,1e9,1e308,4,4\n",
		 ":4: 'iteration_sec' is '1e308', must be a number above 0"},
		{"throughput", TWO "t,A,sim,4,0,1e9,1,4,4\n", "in.csv:4: 'workers' is '0', must be a number above 0"},
		{"throughput", TWO "t,A,sim,4,4,-1,1,4,4\n", "in.csv:4: 'bandwidth_bps' is '-1', must be empty or"},
		{"throughput", TWO "t,A,sim,4,4\n", "in.csv:4: the line has 5 fields, must have 9"},
		{"throughput", HEAD "t,A,sim,1,1,1e9,1,1,1\n",
		 "all rows are of one point, lines need several: 'psd-plot bars'"},
		{"throughput", TWO "t,A,sim,2,2,1e9,1,9,2\n",
		 "in.csv:4: 'A' has a second result at workers 2, a line needs one"},
		{"throughput --over nods", TWO, "'--over' is 'nods', must be a column of the results, such as nodes"},
		{"throughput --panels colour", TWO, "'--panels' is 'colour', must be a column of the results"},
		{"throughput --where colour=1", TWO, "'--where' is 'colour', must be a column of the results"},
		{"throughput --where nodes=3", TWO, "'--where nodes=3' leaves no row"},
		{"throughput --where nodes", TWO, "'--where' is 'nodes', must be COLUMN=VALUE such as workers=8"},
		{"throughput --relative B", TWO, "'--relative' is 'B', must be 'best' or a system"},
		{"throughput --systems B", TWO, "there is no system 'B', there are 'A'"},
		{"throughput --size 3", TWO, "'--size' is '3', must be a width or a width and a height such as 85mm"},
		{"throughput --size 1mm", TWO, "'--size' is '1mm', must be from 50mm to 2500mm"},
		{"throughput --size 85mm,10mm", TWO, "the picture is too small for its texts: say a larger --size"},
		{"bars --measure speed", TWO,
		 "'--measure' is 'speed', must be speedup, efficiency, seconds or throughput"},
		{"bars", HEAD "t,A,sim,1,1,1e9,1,,\n", "there is no result with a throughput in it"},
		{"drawing", TWO, "unknown command 'drawing', must be "},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_refused(cases[i].arguments, cases[i].text, cases[i].words);
}

/* The end of the name chooses the form; each begins as its form does. */
Test(plot_lines, pictures_have_four_forms)
{
	static const char script[] =
		"cd %s && printf '%%s' '" HEAD
		"t,A,sim,1,1,1e9,1,1,1\nt,A,sim,2,2,1e9,1,2,2\n' >in.csv; for f in svg png "
		"pdf eps; do $PSD_PLOT throughput in.csv -o out.$f --size 85mm 2>&1; head -c 5 out.$f | tr -d '\\211'; "
		"echo; done; grep -a -o 'viewBox=\"[0-9 ]*' out.svg; grep -a '^%%%%BoundingBox' out.eps";
	const struct scratch_folder folder = scratch_folder_make();
	char command[1024];

	snprintf(command, sizeof(command), script, folder.path);
	struct run run = run_command(command);

	cr_expect_eq(strncmp(run.text, "<?xml\nPNG\r\n", 11), 0, "%s", run.text);
	cr_expect_not_null(strstr(run.text, "\n%PDF-\n%!PS-\nviewBox=\"0 0 321 "), "%s", run.text);
	cr_expect_not_null(strstr(run.text, "%%BoundingBox: 0 0 24"), "%s", run.text);
	free(run.text);
	scratch_folder_remove(&folder);
}

/* A bar for each result, the published one below it, and the error: 12 over 10 is +20 %. */
Test(plot_lines, bars_stand_beside_published_values)
{
	const struct scratch_folder folder = scratch_folder_make();
	static const char text[] =
		"scenario,system,executor,workers,bandwidth_bps,images_per_sec,published_images_per_sec\n"
		"t,A,sim,2,1e9,12,10\nt,B,sim,2,1e9,30,\nt,B,sim,4,1e9,60,60\n";
	char command[512];

	scratch_folder_write(&folder, "in.csv", text, strlen(text));
	snprintf(command, sizeof(command),
		 "cd %s && $PSD_PLOT bars in.csv -o out.svg 2>&1; grep -o '>[^<]*</text>' out.svg", folder.path);
	struct run run = run_command(command);
	static const char *const words[] = {
		">A<",	       ">B<",	      "> 12 (+20.0 %)<",     "> 10<", "> 30<", "> 60 (+0.0 %)<", ">2 workers<",
		">4 workers<", ">published<", ">samples per second<"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		cr_expect_not_null(strstr(run.text, words[i]), "no '%s' in: %s", words[i], run.text);
	free(run.text);
	scratch_folder_remove(&folder);
}

/* A third of 10 ems, without 1.02 for the dots, is for the end, which tells names apart; no character is split. */
Test(plot_lines, a_text_is_cut_in_its_middle)
{
	struct psd_arena arena = {.blocks = NULL};
	const char *cut = psd_words_cut(&arena, "parameter servers in sequence 19", 10), *plain = "short";
	const char *accents =
		psd_words_cut(&arena, "\303\244\303\266\303\274\303\237\303\244\303\266\303\274\303\237", 6);

	cr_expect_eq(strncmp(cut, "paramet", 7), 0, "%s", cut);
	cr_expect_str_eq(cut + strlen(cut) - 3, " 19");
	cr_expect_leq(psd_words_width(cut), 10);
	cr_expect_eq(psd_words_cut(&arena, plain, 10), plain);
	for (const char *c = accents; *c; c += psd_text_plain_bytes(c))
		cr_assert_gt(psd_text_plain_bytes(c), 0, "%s", accents);
	cr_expect_leq(psd_words_width(accents), 6);
	psd_arena_release(&arena);
}
