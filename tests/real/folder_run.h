/* psd-run of scenarios that a test has written to a folder. Needs _GNU_SOURCE in the file that includes this. */
#ifndef PSD_TESTS_REAL_FOLDER_RUN_H
#define PSD_TESTS_REAL_FOLDER_RUN_H

#include <stdio.h>
#include <string.h>

#include "tests/cli_helper.h"
#include "tests/real/kept_port.h"
#include "tests/scratch_folder.h"

struct folder_arguments {
	char text[1024];
};

/* The command of a run on loopback. options: each @ becomes the folder, here and below. */
static inline struct folder_arguments folder_run_arguments(const struct scratch_folder *folder, const char *options)
{
	struct folder_arguments arguments;

	snprintf(arguments.text, sizeof(arguments.text), "--no-emulation --quiet %s",
		 scratch_folder_spell(folder, options).text);
	return arguments;
}

/* The command, executed in the folder, ends well. */
static inline void folder_shell(const struct scratch_folder *folder, const char *command)
{
	char line[768];
	struct run done;

	snprintf(line, sizeof(line), "cd %s && %s", folder->path, command);
	done = run_command(line);
	cr_assert_eq(done.exit_status, 0, "%s: %s", line, done.text);
	free(done.text);
}

/* It ends well. Returns all that it says, which the caller frees. */
static inline char *folder_run(const struct scratch_folder *folder, const char *options)
{
	struct run done = run_program("psd-run", folder_run_arguments(folder, options).text, "2>&1");

	cr_assert_eq(done.exit_status, 0, "%s: %s", options, done.text);
	return done.text;
}

/* It ends well and says nothing beside its results. */
static inline void folder_run_quietly(const struct scratch_folder *folder, const char *options)
{
	struct run done = run_program("psd-run", folder_run_arguments(folder, options).text, "2>&1 >/dev/null");

	cr_assert_eq(done.exit_status, 0, "%s: %s", options, done.text);
	cr_expect_str_eq(done.text, "", "%s", options);
	free(done.text);
}

/* It is refused in one line with these words. */
static inline void folder_run_refuses(const struct scratch_folder *folder, const char *options, const char *words)
{
	expect_one_line("psd-run", folder_run_arguments(folder, options).text, 2, words);
}

/* It ends well and says so about one system; words: NULL: about none. other: a system of which nothing is said. */
static inline void folder_run_notes(const struct scratch_folder *folder, const char *options, const char *words,
				    const char *other)
{
	char *text = folder_run(folder, options);

	cr_expect(words ? strstr(text, words) != NULL : !strstr(text, "note: "), "%s: %s", options, text);
	cr_expect_null(strstr(text, other), "%s: %s", options, text);
	free(text);
}

/* Two hosts, each started by itself in the folder with options of its own: both fail, in one line with these words. */
static inline void folder_run_disagrees(const struct scratch_folder *folder, const char *options,
					const char *other_options, const char *words, const char *other_words)
{
	char line[4 * PATH_MAX], hosts[64], *other;
	struct run done;

	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u\n127.0.0.1:%u\n", keep_port(), keep_port());
	scratch_folder_write(folder, "hosts", hosts, strlen(hosts));
	snprintf(line, sizeof(line),
		 "cd %s; run() { %s --hosts hosts --quiet \"$@\"; }; run --rank 1 %s 2>rank1 & run --rank 0 %s 2>&1; "
		 "status=$?; wait; exit $status",
		 folder->path, path_of("psd-run").text, other_options, options);
	done = run_command(line);
	other = scratch_folder_read(folder, "rank1");
	cr_expect_eq(done.exit_status, 1);
	cr_expect_not_null(strstr(done.text, words), "%s", done.text);
	cr_expect_not_null(strstr(other, other_words), "%s", other);
	cr_expect_eq(strchr(done.text, '\n'), done.text + strlen(done.text) - 1, "%s", done.text);
	cr_expect_eq(strchr(other, '\n'), other + strlen(other) - 1, "%s", other);
	free(done.text);
	free(other);
}

/* A scenario of so many systems: what nodes send is what psd-sim predicts, numbers of so many digits at least. */
static inline void folder_run_sends_as_predicted(const char *scenario, unsigned n_systems, size_t least_digits)
{
	const struct scratch_folder folder = scratch_folder_make();
	struct run predicted;
	char *executed;

	scratch_folder_write(&folder, "s.yaml", scenario, strlen(scenario));
	executed = folder_run(&folder, "--csv @/s.yaml");
	predicted = run_program("psd-sim", scratch_folder_spell(&folder, "--csv @/s.yaml").text, "2>&1");
	cr_assert_eq(predicted.exit_status, 0, "%s", predicted.text);
	for (unsigned s = 1; s <= n_systems; s++) {
		expect_same_field(executed, predicted.text, s, "tx_bytes_per_node", least_digits);
		expect_same_field(executed, predicted.text, s, "rx_bytes_per_node", least_digits);
	}
	free(predicted.text);
	free(executed);
	scratch_folder_remove(&folder);
}

#endif
