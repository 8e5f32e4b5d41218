/* Outputs of psd-plot: it never overwrites an input, and an output is complete or absent, wherever psd-plot is stopped.
 * */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/plots/plot_helper.h"
#include "tests/scratch_folder.h"

enum { KILLS = 20 };

#define DATA	"tests/data/compare/"
#define SPEEDUP "speedup tests/golden/quickstart.csv -o %s/out.svg"
#define DRAWN	"speedup tests/golden/quickstart.csv -o %s/out.png"
#define LINES	"timeline " DATA "predicted.json -o %s/out.svg"
#define COMPARE "compare " DATA "predicted.csv " DATA "measured-1.csv -o %s/out.html"
#define TRACED	COMPARE " --traces " DATA "predicted.json " DATA "measured.json"

static void print_command(char *line, size_t room, const char *command, const char *folder)
{
	const int length = snprintf(line, room, "%s", "$PSD_PLOT ");

	snprintf(line + length, room - (size_t)length, command, folder);
}

/* ---- full disks and limits ---- */

/* A line that complains, a status above 0, every older output and nothing beside them. */
static void expect_older(const char *command, const char *before)
{
	const struct scratch_folder folder = scratch_folder_make();
	char line[2048], script[4096];
	struct run run;

	scratch_folder_add(&folder, "small");
	scratch_folder_add(&folder, "large");
	print_command(line, sizeof(line), command, "$small");
	snprintf(script, sizeof(script),
		 "large=%s/large; small=%s/small; cd $small; for f in out.svg out.png out.html out.csv; do echo older "
		 ">$f; done; cd - >/dev/null; %s %s >/dev/null; echo $? $(cat $small/* 2>/dev/null) $(ls -A $large "
		 "$small | wc -w)",
		 folder.path, folder.path, before, line);
	run = run_on_small_disk(scratch_folder_path(&folder, "small").text, script);
	cr_expect_eq(strncmp(run.text, "psd-plot: ", 10), 0, "%s: %s", command, run.text);
	/* two folders' names beside the four files */
	cr_expect_not_null(strstr(run.text, " older older older older 6\n"), "%s: %s", command, run.text);
	cr_expect_null(strstr(run.text, "\n0 older"), "%s: %s", command, run.text);
	free(run.text);
	scratch_folder_remove(&folder);
}

Test(plot_outputs, a_full_disk_leaves_what_was_there, .timeout = 120)
{
	static const char *const commands[] = {SPEEDUP, DRAWN, LINES, COMPARE, TRACED};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		expect_older(commands[i], "");
		expect_older(commands[i], "ulimit -f 8;");
	}
}

/* ---- sudden ends ---- */

/* A folder of commands that are those of the shell, but for the KILL_AT-th of all that are called: before it, the shell
 * whose process PLOT_PID names is killed. */
static void make_deadly_commands(const struct scratch_folder *folder)
{
	static const char make[] =
		"cd %s && mkdir bin && echo '#!/bin/sh\n"
		"n=$(($(/bin/cat \"$COUNT\") + 1)); echo $n >\"$COUNT\"\n"
		"[ $n -ne \"$KILL_AT\" ] || kill -9 \"$(/bin/cat \"$PLOT_PID\")\"\n"
		"exec \"/bin/${0##*/}\" \"$@\"' >bin/command && chmod +x bin/command && for name in mktemp awk cat sed "
		"gnuplot cp mv rm head tail tr od dirname readlink mkdir sort grep; do ln -s command bin/$name; done";
	char line[2048];

	snprintf(line, sizeof(line), make, folder->path);
	cr_assert_eq(system(line), 0);
}

/* Returns how many commands were called. Those that outlive the shell hold the pipe, so that they are waited for. */
static unsigned plot_until(const struct scratch_folder *folder, const char *command, unsigned kill_at)
{
	char line[2048], script[4096];
	struct run run;
	unsigned n_calls;

	print_command(line, sizeof(line), command, "$out");
	snprintf(script, sizeof(script),
		 "export out=%s/out TMPDIR=%s/work COUNT=%s/count PLOT_PID=%s/pid KILL_AT=%u; mkdir $out $TMPDIR; for "
		 "f in out.svg out.png out.html out.csv; do echo older >$out/$f; done; echo 0 >$COUNT; "
		 "PATH=%s/bin:$PATH sh -c 'echo $$ >$PLOT_PID; exec %s' 3>&1 >/dev/null 2>&1; cat $COUNT",
		 folder->path, folder->path, folder->path, folder->path, kill_at, folder->path, line);
	run = run_command(script);
	n_calls = (unsigned)strtoul(run.text, NULL, 10);
	free(run.text);
	return n_calls;
}

/* Each output is the older one or what the whole command makes. */
static void expect_whole(const struct scratch_folder *folder, const char *command, unsigned kill_at)
{
	char line[1024];
	struct run run;

	snprintf(line, sizeof(line),
		 "cd %s; for f in out.svg out.png out.html out.csv; do [ \"$(cat out/$f)\" = older ] || cmp out/$f "
		 "whole/$f; done 2>&1; rm -rf out work",
		 folder->path);
	run = run_command(line);
	cr_expect_str_eq(run.text, "", "%s, killed at %u: %s", command, kill_at, run.text);
	free(run.text);
}

static void expect_whole_wherever_killed(const char *command)
{
	const struct scratch_folder folder = scratch_folder_make();
	char line[256];
	unsigned n_calls, n_kills;

	make_deadly_commands(&folder);
	n_calls = plot_until(&folder, command, UINT_MAX);
	cr_assert_gt(n_calls, 0, "%s", command);
	n_kills = n_calls < KILLS ? n_calls : KILLS;
	snprintf(line, sizeof(line), "cd %s && mv out whole && rmdir work && ! grep -qx older whole/*.svg",
		 folder.path);
	cr_assert_eq(system(line), 0, "%s: something is left", command);
	for (unsigned k = 1; k <= n_kills; k++) {
		plot_until(&folder, command, k * n_calls / n_kills);
		expect_whole(&folder, command, k * n_calls / n_kills);
	}
	scratch_folder_remove(&folder);
}

Test(plot_outputs, a_kill_leaves_what_was_there_or_what_is_new, .timeout = 120)
{
	expect_whole_wherever_killed(SPEEDUP);
	expect_whole_wherever_killed(TRACED);
}

/* ---- names ---- */

static void expect_plain_plot(const char *command, const char *redirections)
{
	const struct scratch_folder folder = scratch_folder_make();
	char line[2048], script[4096];
	struct run run;

	print_command(line, sizeof(line), command, folder.path);
	snprintf(script, sizeof(script),
		 "for f in predicted measured-1; do sed 's/Hybrid/" HOSTILE_NAME "/' " DATA
		 "$f.csv >%s/$f.csv; done; %s %s",
		 folder.path, line, redirections);
	run = run_command(script);
	expect_plain(command, run.text);
	free(run.text);
	scratch_folder_remove(&folder);
}

Test(plot_outputs, no_name_drives_the_terminal)
{
	expect_plain_plot("compare %1$s/predicted.csv %1$s/measured-1.csv -o %1$s/out.html", "2>&1");
	expect_plain_plot("speedup '%s/" HOSTILE_NAME ".csv' -o out.svg", "2>&1");
	expect_plain_plot("speedup tests/golden/quickstart.csv -o '%s/" HOSTILE_NAME "/out.svg'", "2>&1");
}

/* Draws one result with this title, given by --title or by the CSV, and returns the plot's lines of text. */
static struct run draw_title(const struct scratch_folder *folder, const char *title, bool is_option)
{
	FILE *file = fopen(scratch_folder_path(folder, "in.csv").text, "w");

	cr_assert_not_null(file);
	fprintf(file,
		"scenario,system,executor,workers,bandwidth_bps,images_per_sec,speedup,published_images_per_sec,"
		"published_speedup\n%s,PS,sim-flow,2,,1,1,,\n%s,PS,sim-flow,4,,2,2,,\n",
		is_option ? "t" : title, is_option ? "t" : title);
	fclose(file);
	file = fopen(scratch_folder_path(folder, "title").text, "w");
	cr_assert_not_null(file);
	fprintf(file, "%s", is_option ? title : "");
	fclose(file);
	char line[1024];
	snprintf(line, sizeof(line),
		 "cd %s && title=$(cat title) && $PSD_PLOT speedup in.csv -o out.svg ${title:+\"--title\"} "
		 "${title:+\"$title\"} 2>&1 && grep '<text>' out.svg",
		 folder->path);
	return run_command(line);
}

/* A title is what it says: no quote ends it, nothing in it is a command, and the plot stays XML. */
Test(plot_outputs, a_title_has_any_bytes)
{
	static const char *const titles[][2] = {
		{"'its own'", ">'its own'<"},
		{"'tis a title", ">'tis a title<"},
		{"a''b", ">a''b<"},
		{"]]>", ">]]&gt;<"},
		{"a<b & c]]>d", ">a&lt;b &amp; c]]&gt;d<"},
		{"`id` $(id) @x \\n %d", ">`id` $(id) @x \\n %d<"},
		{"a\001b\033c", ">a?b?c<"},
		{"\377 \303\244 \342\202\254 \303", ">? \303\244 \342\202\254 ?<"},
		{"\357\277\277\355\240\200", ">\?\?\?\?<"}, /* U+FFFF and a surrogate, which XML excludes */
	};
	const struct scratch_folder folder = scratch_folder_make();

	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		for (int is_option = 0; is_option < 2; is_option++) {
			struct run run = draw_title(&folder, titles[i][0], is_option);

			cr_expect_eq(run.exit_status, 0, "%s: %s", titles[i][0], run.text);
			cr_expect_not_null(strstr(run.text, titles[i][1]), "%s: %s", titles[i][0], run.text);
			free(run.text);
		}
	scratch_folder_remove(&folder);
}

/* The line breaks are those of shell lists: no other file and folder is touched, and none is left. */
Test(plot_outputs, folders_have_any_name)
{
	static const char script[] =
		"cd %s && mkdir data 'data\n\nfoo' 'foo\n' 'tmp\nfoo' && echo precious >data/results.txt && echo mine "
		">foo && "
		"export TMPDIR=\"$PWD/tmp\nfoo\" && for f in 'data\n\nfoo' 'foo\n'; do "
		"$PSD_PLOT speedup $OLDPWD/tests/golden/quickstart.csv -o \"$f/out.svg\" 2>&1; "
		"$PSD_PLOT compare $OLDPWD/" DATA "predicted.csv $OLDPWD/" DATA
		"measured-1.csv -o \"$f/out.html\" >/dev/null; "
		"ls -A \"$f\"; done; cat data/results.txt foo; ls -A \"$TMPDIR\"";
	const struct scratch_folder folder = scratch_folder_make();
	char line[2048];
	struct run run;

	snprintf(line, sizeof(line), script, folder.path);
	run = run_command(line);
	cr_expect_str_eq(run.text, "out.csv\nout.html\nout.svg\nout.csv\nout.html\nout.svg\nprecious\nmine\n");
	free(run.text);
	snprintf(line, sizeof(line), "rm -r %s/*", folder.path);
	cr_assert_eq(system(line), 0);
	scratch_folder_remove(&folder);
}

/* Everything between the input and the output is in memory. */
FOLDER_TEST(plot_outputs, no_folder_for_temporary_files_is_needed, scratch_folder_make())
{
	char script[1024];
	struct run run;

	snprintf(script, sizeof(script),
		 "TMPDIR=%s/no $PSD_PLOT speedup tests/golden/quickstart.csv -o %s/out.svg 2>&1; ls %s", folder.path,
		 folder.path, folder.path);
	run = run_command(script);
	cr_expect_str_eq(run.text, "out.svg\n");
	free(run.text);
}

FOLDER_TEST(plot_outputs, a_byte_order_mark_is_no_column, scratch_folder_make())
{
	char script[1024];
	struct run run;

	snprintf(script, sizeof(script),
		 "{ printf '\\357\\273\\277'; cat tests/golden/quickstart.csv; } >%s/in.csv; $PSD_PLOT speedup "
		 "%s/in.csv -o %s/out.svg 2>&1",
		 folder.path, folder.path, folder.path);
	run = run_command(script);
	cr_expect_eq(run.exit_status, 0, "%s", run.text);
	free(run.text);
}

/* In a folder of which "in.csv" is a result and "link.svg" what the shell makes of it. */
static struct run plot_to_link(const struct scratch_folder *folder, const char *make, const char *command)
{
	char line[2048], script[4096];

	print_command(line, sizeof(line), command, folder->path);
	snprintf(script, sizeof(script), "here=$PWD; (cd %s && %s) && %s 2>&1", folder->path, make, line);
	return run_command(script);
}

Test(plot_outputs, an_output_follows_a_link_and_takes_no_input)
{
	static const char *const links[] = {"ln in.csv out.svg", "ln -s in.csv out.svg", "ln -s out.csv out.svg"};
	static const char *const commands[] = {"speedup %1$s/in.csv -o %1$s/out.svg",
					       "speedup %1$s/in.csv -o %1$s/out.svg",
					       "compare " DATA "predicted.csv " DATA "measured-1.csv -o %s/out.html"};
	static const char *const words[] = {"the file is read by this run, an output must be another file",
					    "the file is read by this run, an output must be another file",
					    "the file is written by this run already"};

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		const struct scratch_folder folder = scratch_folder_make();
		char make[256];
		struct run run;

		snprintf(make, sizeof(make), "cp $here/tests/golden/quickstart.csv in.csv && %s", links[i]);
		run = plot_to_link(&folder, make, commands[i]);
		cr_expect_eq(run.exit_status, 2, "%s: %s", links[i], run.text);
		cr_expect_not_null(strstr(run.text, words[i]), "%s: %s", links[i], run.text);
		free(run.text);
		scratch_folder_remove(&folder);
	}
	const struct scratch_folder folder = scratch_folder_make();
	struct run run = plot_to_link(&folder, "mkdir far && ln -s far/new.svg out.svg", SPEEDUP);
	struct stat facts;

	cr_expect_eq(run.exit_status, 0, "%s", run.text);
	cr_assert_eq(lstat(scratch_folder_path(&folder, "out.svg").text, &facts), 0);
	cr_expect(S_ISLNK(facts.st_mode));
	cr_assert_eq(stat(scratch_folder_path(&folder, "far/new.svg").text, &facts), 0);
	cr_expect_gt(facts.st_size, 1000);
	cr_expect_eq(scratch_folder_count(&folder), 2);
	free(run.text);
	scratch_folder_remove(&folder);
}

Test(plot_outputs, help_that_cannot_be_written_is_a_failure)
{
	static const char *const commands[] = {"$PSD_PLOT --help 2>&1 >/dev/full",
					       "$PSD_PLOT --version 2>&1 >/dev/full",
					       "$PSD_PLOT timeline --help 2>&1 >&-"};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct run run = run_command(commands[i]);

		cr_expect_eq(run.exit_status, 1, "%s", commands[i]);
		cr_expect_str_eq(run.text, "psd-plot: cannot write to standard output\n");
		free(run.text);
	}
}

/* The trace has workers 0 and 1. */
Test(plot_outputs, the_first_worker_that_is_missing_is_named)
{
	struct run run = run_command("$PSD_PLOT timeline tests/data/compare/predicted.json --workers 0-99 "
				     "-o build/such.svg 2>&1");

	cr_expect_eq(run.exit_status, 2);
	cr_expect(strstr(run.text, "predicted.json: there is no worker 2 in it"), "%s", run.text);
	free(run.text);
}
