/* psd-run's output files: they never overwrite an input, and are written whole or not at all. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cli_helper.h"
#include "tests/killed_helper.h"
#include "tests/real/data/jpeg_helper.h"
#include "tests/real/kept_port.h"
#include "tests/scratch_folder.h"

enum {
	ITERATIONS = 1000, /* give more than 16 KiB of log and of trace */
	KILLED_ITERATIONS = 50
};

static const char model[] = "name: images\ninput: {channels: 3, height: 8, width: 8}\nlayers:\n"
			    "  - {name: fc, kind: inner-product, outputs: 2}\n  - {name: loss, kind: softmax-loss}\n";
static const char published[] = "system,workers,images_per_sec,speedup,use,source\nPS,2,,1.5,check,nobody\n";
static const char scenario[] =
	"title: t\nmodel: {graph: model.yaml, batch_per_worker: 2}\ncompute: {device: cpu}\n"
	"cluster: {stack: none, nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\npublished: published.csv\n"
	"systems:\n  - {name: PS, schedule: sequential, sync: ps}\n"
	"train:\n  data: {kind: packed, path: images}\n  iterations: 2\n  learning_rate: {base: 0.01}\n";

static struct scratch_folder make_inputs(void)
{
	const struct scratch_folder folder = scratch_folder_make();
	char arguments[256], hosts[64];
	struct run packed;

	scratch_folder_write(&folder, "model.yaml", model, strlen(model));
	scratch_folder_write(&folder, "published.csv", published, strlen(published));
	scratch_folder_write(&folder, "s.yaml", scenario, strlen(scenario));
	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u\n127.0.0.1:%u\n", keep_port(), keep_port());
	scratch_folder_write(&folder, "hosts", hosts, strlen(hosts));
	scratch_folder_add(&folder, "photos");
	for (unsigned class = 0; class < 2; class ++) {
		const struct jpeg jpeg = make_jpeg(8, 8, class ? 255 : 0);

		scratch_folder_add(&folder, class ? "photos/dark" : "photos/light");
		scratch_folder_write(&folder, class ? "photos/dark/a.jpg" : "photos/light/a.jpg", jpeg.bytes,
				     jpeg.n_bytes);
		tjFree(jpeg.bytes);
	}
	snprintf(arguments, sizeof(arguments), "pack --quiet %s/photos --side 8 -o %s/images", folder.path,
		 folder.path);
	packed = run_program("psd-run", arguments, "2>&1");
	cr_assert_eq(packed.exit_status, 0, "%s", packed.text);
	free(packed.text);
	return folder;
}

/* The output's name goes behind the options, what is to be done behind it. */
static void expect_refusal(const struct scratch_folder *folder, const char *options, const char *name, const char *rest)
{
	char arguments[2 * PATH_MAX];

	snprintf(arguments, sizeof(arguments), "%s %s %s", options, scratch_folder_path(folder, name).text, rest);
	expect_one_line("psd-run", arguments, 2, ": the file is read by this run, an output must be another file\n");
}

/* By its own name, by another spelling of it, a hard link and a symbolic link; afterwards the file is as it was. */
static void expect_input_is_kept(const struct scratch_folder *folder, const char *options, const char *input,
				 const char *rest)
{
	const struct scratch_path path = scratch_folder_path(folder, input);
	const unsigned n_files = scratch_folder_count(folder);
	struct stat before, after;
	char spelt[128];

	snprintf(spelt, sizeof(spelt), "photos/../%s", input);
	cr_assert_eq(link(path.text, scratch_folder_path(folder, "hard").text), 0);
	cr_assert_eq(symlink(input, scratch_folder_path(folder, "soft").text), 0);
	cr_assert_eq(stat(path.text, &before), 0);
	expect_refusal(folder, options, input, rest);
	expect_refusal(folder, options, spelt, rest);
	expect_refusal(folder, options, "hard", rest);
	expect_refusal(folder, options, "soft", rest);
	cr_expect_eq(scratch_folder_count(folder), n_files + 2);
	cr_assert_eq(remove(scratch_folder_path(folder, "hard").text), 0);
	cr_assert_eq(remove(scratch_folder_path(folder, "soft").text), 0);
	cr_assert_eq(stat(path.text, &after), 0);
	cr_expect(before.st_ino == after.st_ino && before.st_size == after.st_size &&
			  before.st_mtim.tv_sec == after.st_mtim.tv_sec &&
			  before.st_mtim.tv_nsec == after.st_mtim.tv_nsec,
		  "%s %s", options, input);
}

Test(run_outputs, no_option_that_writes_takes_what_is_read, .timeout = 120)
{
	static const char *const options[] = {"--quiet --no-emulation --trace", "--quiet --no-emulation --log",
					      "calibrate --quiet -o"};
	static const char *const inputs[] = {"s.yaml", "model.yaml", "published.csv", "images"};
	const struct scratch_folder folder = make_inputs();
	const struct scratch_path path = scratch_folder_path(&folder, "s.yaml"),
				  photos = scratch_folder_path(&folder, "photos");
	char rest[512];

	for (size_t o = 0; o < sizeof(options) / sizeof(options[0]); o++)
		for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++)
			expect_input_is_kept(&folder, options[o], inputs[i], path.text);
	snprintf(rest, sizeof(rest), "--quiet --hosts %s/hosts --rank 0 %s", folder.path, path.text);
	expect_input_is_kept(&folder, "--log", "hosts", rest);
	expect_input_is_kept(&folder, "pack --quiet -o", "photos/dark/a.jpg", photos.text);
	scratch_folder_remove(&folder);
}

/* Files that a calibration writes beside its scenario. */
FOLDER_TEST(run_outputs, no_file_beside_the_output_takes_what_is_read, make_inputs())
{
	char arguments[512];

	cr_assert_eq(symlink("model.yaml", scratch_folder_path(&folder, "c-points.csv").text), 0);
	snprintf(arguments, sizeof(arguments), "calibrate --quiet -o %s/c.yaml %s/s.yaml", folder.path, folder.path);
	expect_one_line("psd-run", arguments, 2,
			"/c-points.csv: the file is read by this run, an output must be another file\n");
}

FOLDER_TEST(run_outputs, two_outputs_are_two_files, make_inputs())
{
	static const char *const others[] = {"x", "./x", "photos/../x", "soft"};
	char arguments[512];

	cr_assert_eq(symlink("x", scratch_folder_path(&folder, "soft").text), 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		snprintf(arguments, sizeof(arguments), "--quiet --no-emulation --trace %s/x --log %s/%s %s/s.yaml",
			 folder.path, folder.path, others[i], folder.path);
		expect_one_line("psd-run", arguments, 2,
				": the file is written by this run already, an output must be a file of its own\n");
	}
}

/* ---- data that goes away ---- */

/* The log is a pipe, whose second line says that training has begun. The worker that meets it first says
 * so, or the worker that hears of it names it. */
static void check_shortened(const char *options)
{
	const struct scratch_folder folder = make_inputs();
	static const char expected[] = "images: was shortened while it was read\n1\n";
	char command[2 * PATH_MAX];
	const char *newline;
	struct run run;

	snprintf(command, sizeof(command),
		 "cd %s && mkfifo log && { %s --quiet --csv --no-emulation --iterations 100000000 %s --log log s.yaml "
		 "2>&1 >/dev/null & { read head; read first; : >images; cat >/dev/null; } <log; wait $!; echo $?; }",
		 folder.path, path_of("psd-run").text, options);
	run = run_command(command);
	newline = strchr(run.text, '\n');
	cr_expect(strncmp(run.text, "psd-run: ", 9) == 0 && strstr(run.text, expected) != NULL, "%s", run.text);
	cr_expect(newline != NULL && strcmp(newline, "\n1\n") == 0, "%s", run.text);
	free(run.text);
	scratch_folder_remove(&folder);
}

Test(run_outputs, data_that_is_shortened_while_training_is_one_line)
{
	check_shortened("");
	check_shortened("--set train.readers=2");
}

/* ---- names ---- */

FOLDER_TEST(run_outputs, no_name_drives_the_terminal, make_inputs())
{
	static const char hostile[] = "layers:\n  - {name: \"" HOSTILE_YAML "\", kind: inner-product, outputs: 2}\n"
				      "  - {name: loss, kind: softmax-loss}\n";
	static const char *const options[] = {"", "--csv --trace /dev/stdout"};
	char text[sizeof(scenario) + 256];

	snprintf(text, sizeof(text), "name: \"" HOSTILE_YAML "\"\ninput: {channels: 3, height: 8, width: 8}\n%s",
		 hostile);
	scratch_folder_write(&folder, "model.yaml", text, strlen(text));
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		char arguments[512];
		struct run run;

		snprintf(arguments, sizeof(arguments), "--no-emulation %s %s/s.yaml", options[i], folder.path);
		run = run_program("psd-run", arguments, "2>&1");
		cr_expect_eq(run.exit_status, 0, "%s", run.text);
		expect_plain(options[i], run.text);
		free(run.text);
	}
}

/* ---- disks and limits ---- */

#define GOES_ON " on are missing; the run goes on"

/* With what is before the command, and before the scenario behind it: status 1 in one line with these words, then the
 * older file alone. */
static void expect_older(const struct scratch_folder *folder, const char *before, const char *options,
			 const char *words)
{
	char command[2 * PATH_MAX];
	struct run run;

	snprintf(command, sizeof(command),
		 "cd %s/small && echo older >out && %s %s --quiet --csv --no-emulation --iterations %d %s ../s.yaml "
		 ">/dev/null; echo $? $(cat out) $(ls -A)",
		 folder->path, before, path_of("psd-run").text, ITERATIONS, options);
	run = run_on_small_disk(scratch_folder_path(folder, "small").text, command);
	cr_expect_not_null(strstr(run.text, words), "%s: %s", options, run.text);
	cr_expect_eq(strchr(run.text, '\n') + 1, strstr(run.text, "1 older out\n"), "%s: %s", options, run.text);
	free(run.text);
}

/* With what is before the command: the run ends well, and says with these words that lines are missing, when it happens
 * and at the end. Then the columns' line and more than a hundred iterations' instead of the older file, alone. */
static void expect_log_so_far(const struct scratch_folder *folder, const char *before, const char *words)
{
	char command[2 * PATH_MAX], *end;
	struct run run;

	snprintf(command, sizeof(command),
		 "cd %s/small && echo older >out && %s %s --quiet --csv --no-emulation --iterations %d --log out "
		 "../s.yaml >/dev/null; echo $? $(ls -A); head -n 102 out | cut -d , -f 1 | uniq",
		 folder->path, before, path_of("psd-run").text, ITERATIONS);
	run = run_on_small_disk(scratch_folder_path(folder, "small").text, command);
	end = strchr(run.text, '\n');
	cr_assert(end && strchr(end + 1, '\n'), "%s", run.text);
	cr_expect_not_null(strstr(run.text, words), "%s", run.text);
	cr_expect_not_null(strstr(end, words), "%s", run.text);
	cr_expect_eq(strncmp(end - strlen(GOES_ON), GOES_ON, strlen(GOES_ON)), 0, "%s", run.text);
	cr_expect_str_eq(strchr(end + 1, '\n') + 1, "0 out\nsystem\nPS\n", "%s", run.text);
	free(run.text);
}

/* Which the process writes that was started. */
static void expect_older_pack(const struct scratch_folder *folder)
{
	char command[2 * PATH_MAX];
	struct run run;

	snprintf(command, sizeof(command),
		 "cd %s/small && echo older >out && ulimit -f 1 && %s pack --quiet ../photos --side 64 -o out 2>&1; "
		 "echo $? $(cat out) $(ls -A); rm out",
		 folder->path, path_of("psd-run").text);
	run = run_command(command);
	cr_expect_str_eq(run.text, "psd-run: out: cannot be written: File too large\n1 older out\n");
	free(run.text);
}

Test(run_outputs, a_full_disk_and_a_limit_leave_the_older_file, .timeout = 120)
{
	const struct scratch_folder folder = make_inputs();

	scratch_folder_add(&folder, "small");
	expect_older(&folder, "", "--trace out", "out: cannot be written: No space left on device\n");
	expect_older(&folder, "ulimit -f 16;", "--trace out", ": File too large\n");
	expect_older_pack(&folder);
	scratch_folder_remove(&folder);
}

FOLDER_TEST(run_outputs, a_full_disk_and_a_limit_leave_the_log_so_far, make_inputs())
{
	scratch_folder_add(&folder, "small");
	expect_log_so_far(&folder, "", "out: cannot be written: No space left on device: lines from iteration ");
	expect_log_so_far(&folder, "ulimit -f 16;", "out: cannot be written: File too large: lines from iteration ");
}

/* The whole program, which measures for 20 s each time, ten minutes in all, and wants the machine quiet:
 * PSD_FULL_TESTS=1 build/psd-run-tests --filter run_outputs/a_calibration*. Its files are tested in seconds by
 * calibrate_output/. */
Test(run_outputs, a_calibration_leaves_older_files_or_whole_new_ones, .timeout = 3600)
{
	static const char check[] =
		"[ \"$(cat out)\" = older ] || { tail -n 1 out-profile.csv | grep -q '^loss,' && "
		"tail -n 2 out-points.csv | grep -q ',PS,' && tail -n 1 out | grep -q .; } || cat out*";
	struct scratch_folder folder;
	char command[2 * PATH_MAX];
	struct run run;

	if (!getenv("PSD_FULL_TESTS"))
		cr_skip_test("PSD_FULL_TESTS is not set");
	folder = make_inputs();
	scratch_folder_add(&folder, "small");
	snprintf(command, sizeof(command),
		 "cd %s/small && echo older >out && head -c 12k /dev/zero >fill && %s calibrate --quiet --no-emulation "
		 "--attempts 1 ../s.yaml -o out >/dev/null; echo $? $(cat out) $(ls -A)",
		 folder.path, path_of("psd-run").text);
	run = run_on_small_disk(scratch_folder_path(&folder, "small").text, command);
	cr_expect_not_null(strstr(run.text, ": cannot be written: No space left on device\n1 older fill out\n"), "%s",
			   run.text);
	free(run.text);
	scratch_folder_write(&folder, "out", "", 0);
	scratch_folder_write(&folder, "out-profile.csv", "", 0);
	scratch_folder_write(&folder, "out-points.csv", "", 0);
	snprintf(command, sizeof(command), "%s calibrate --quiet --no-emulation --attempts 1 s.yaml -o out",
		 path_of("psd-run").text);
	expect_whole_wherever_killed(&folder, command, check);
	scratch_folder_remove(&folder);
}

/* A log has a line for its columns and whole ones for the iterations so far, a trace ends its list, a data set has
 * always the same bytes. */
Test(run_outputs, a_kill_leaves_older_files_or_whole_new_ones, .timeout = 120)
{
	const struct scratch_folder folder = make_inputs();
	char command[2 * PATH_MAX];

	scratch_folder_write(&folder, "out", "", 0);
	snprintf(command, sizeof(command), "%s pack --quiet photos --side 8 -o out", path_of("psd-run").text);
	expect_whole_wherever_killed(&folder, command, "{ [ \"$(cat out)\" = older ] || cmp out images; } 2>&1");
	scratch_folder_write(&folder, "out-log", "", 0);
	snprintf(command, sizeof(command),
		 "%s --quiet --csv --no-emulation --iterations %d --trace out --log out-log s.yaml",
		 path_of("psd-run").text, KILLED_ITERATIONS);
	expect_whole_wherever_killed(&folder, command,
				     "{ [ \"$(cat out)\" = older ] || tail -n 1 out | grep -qx ']}' || tail -n 3 out; "
				     "[ \"$(cat out-log)\" = older ] || sed 1d out-log | grep -v '^PS,.*,$'; }");
	scratch_folder_remove(&folder);
}
