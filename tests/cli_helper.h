/* Runs a program that was built beside the test, from the root of the repository. Needs _GNU_SOURCE in the file that
 * includes this. */
#ifndef PSD_TESTS_CLI_HELPER_H
#define PSD_TESTS_CLI_HELPER_H

#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct run {
	int exit_status;
	char *text; /* output on the stream that `redirections` leave on the pipe */
};

struct program_path {
	char text[PATH_MAX];
};

static inline struct program_path path_of(const char *program)
{
	struct program_path path;
	const ssize_t length = readlink("/proc/self/exe", path.text, sizeof(path.text) - 1);

	cr_assert_gt(length, 0);
	path.text[length] = '\0';
	char *name = strrchr(path.text, '/') + 1;

	snprintf(name, sizeof(path.text) - (size_t)(name - path.text), "%s", program);
	return path;
}

/* COMMAND goes through the shell. */
static inline struct run run_command(const char *command)
{
	char piece[4096];
	struct run result = {.text = NULL};
	size_t n_bytes, size = 0;
	FILE *pipe, *memory;
	int wait_status;

	pipe = popen(command, "r");
	memory = open_memstream(&result.text, &size);
	cr_assert(pipe && memory);
	while ((n_bytes = fread(piece, 1, sizeof(piece), pipe)) > 0)
		fwrite(piece, 1, n_bytes, memory);
	fclose(memory);
	wait_status = pclose(pipe);
	cr_assert(WIFEXITED(wait_status), "%s", command);
	result.exit_status = WEXITSTATUS(wait_status);
	return result;
}

/* ARGUMENTS and REDIRECTIONS go through the shell. */
static inline struct run run_program(const char *program, const char *arguments, const char *redirections)
{
	char command[4 * PATH_MAX];

	snprintf(command, sizeof(command), "%s %s %s", path_of(program).text, arguments, redirections);
	return run_command(command);
}

/* COMMAND, without single quotes, runs where PATH is a disk of 16 KiB. Skips the test where no user may mount one. */
static inline struct run run_on_small_disk(const char *path, const char *command)
{
	char line[4 * PATH_MAX];

	if (system("unshare -Urm mount -t tmpfs -o size=16k none /tmp 2>/dev/null"))
		cr_skip_test("no user may mount a disk of his own here");
	snprintf(line, sizeof(line), "unshare -Urm sh -c 'mount -t tmpfs -o size=16k none %s && { %s; }' 2>&1", path,
		 command);
	return run_command(line);
}

/* Control characters of ASCII and of Latin-1, and bytes that are neither. */
#define HOSTILE_NAME                                                                                                   \
	"\x1b[31m\xc2\x9b"                                                                                             \
	"2J\x07\x9b"
#define HOSTILE_YAML "\\e[31m\\N\\x9b2J\\a" /* as YAML writes most of it */

/* Lines in which nothing drives a terminal; the colour of the name is there as text. */
static inline void expect_plain(const char *what, const char *text)
{
	cr_expect_not_null(strstr(text, "[31m"), "%s: %s", what, text);
	for (const char *c = text; *c; c++)
		cr_expect_not((unsigned char)*c < 0x20 ? *c != '\n' : *c == 0x7f, "%s: byte %d", what, *c);
	cr_expect_null(strstr(text, "\xc2\x9b"), "%s", what);
}

/* One line on stderr that has `words` in it, nothing on stdout. */
static inline void expect_one_line(const char *program, const char *arguments, int exit_status, const char *words)
{
	FILE *output = tmpfile();
	char redirections[64];
	struct run error;

	cr_assert_not_null(output);
	snprintf(redirections, sizeof(redirections), "2>&1 >/dev/fd/%d", fileno(output));
	error = run_program(program, arguments, redirections);
	cr_expect_eq(error.exit_status, exit_status, "%s: status %d", arguments, error.exit_status);
	cr_expect_not_null(strstr(error.text, words), "%s: %s", arguments, error.text);
	cr_expect(*error.text && strchr(error.text, '\n') == error.text + strlen(error.text) - 1, "%s: %s", arguments,
		  error.text);
	cr_expect_eq(getc(output), EOF, "%s", arguments);
	free(error.text);
	fclose(output);
}

/* A CSV's column in the row of that number, from 1; the caller frees it. */
static inline char *csv_field(const char *csv, unsigned row, const char *column)
{
	char *copy = strdup(csv), *head = copy, *line = strchr(copy, '\n') + 1, *field;
	unsigned at = 0;

	line[-1] = '\0';
	for (char *name = strsep(&head, ","); name && strcmp(name, column); name = strsep(&head, ","))
		at++;
	for (unsigned r = 1; r < row; r++)
		line = strchr(line, '\n') + 1;
	line[strcspn(line, "\n")] = '\0';
	for (unsigned i = 0; i < at; i++)
		(void)strsep(&line, ",");
	field = strdup(strsep(&line, ","));
	free(copy);
	return field;
}

/* Both CSVs have the same there, of so many characters at least. */
static inline void expect_same_field(const char *executed, const char *predicted, unsigned row, const char *column,
				     size_t least)
{
	char *counted = csv_field(executed, row, column), *foretold = csv_field(predicted, row, column);

	cr_expect_str_eq(counted, foretold, "%s of row %u: %s, predicted %s", column, row, counted, foretold);
	cr_expect_geq(strlen(counted), least, "%s of row %u: %s", column, row, counted);
	free(counted);
	free(foretold);
}

/* "PROGRAM VERSION (commit C)", VERSION being the file at the root; without git the commit is left out. */
static inline void expect_version(const char *text, const char *program)
{
	char number[32] = "", expected[128];
	FILE *in = fopen("VERSION", "r");
	size_t length;

	cr_assert_not_null(in);
	cr_expect_eq(fscanf(in, "%31s", number), 1);
	fclose(in);
	length = (size_t)snprintf(expected, sizeof(expected), "%s %s", program, number);
	cr_expect_eq(strncmp(text, expected, length), 0, "'%s' is not '%s'", text, expected);
	if (strcmp(text + length, "\n") == 0)
		return;
	cr_expect_eq(strncmp(text + length, " (commit ", 9), 0, "%s", text);
	cr_expect_str_eq(text + strlen(text) - 2, ")\n");
}

#endif
