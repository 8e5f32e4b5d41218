/* Runs a program that was built beside the test, from the root of the repository. Needs _GNU_SOURCE in the file that
 * includes this. */
#ifndef PSD_TESTS_CLI_HELPER_H
#define PSD_TESTS_CLI_HELPER_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
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

static inline char *read_all(FILE *in)
{
	char piece[4096], *text = NULL;
	size_t n_bytes, size = 0;
	FILE *memory = open_memstream(&text, &size);

	cr_assert(in && memory);
	while ((n_bytes = fread(piece, 1, sizeof(piece), in)) > 0)
		fwrite(piece, 1, n_bytes, memory);
	fclose(memory);
	return text;
}

/* COMMAND goes through the shell. */
static inline struct run run_command(const char *command)
{
	FILE *pipe = popen(command, "r");
	struct run result = {.text = read_all(pipe)};
	const int wait_status = pclose(pipe);

	cr_assert(WIFEXITED(wait_status), "%s", command);
	result.exit_status = WEXITSTATUS(wait_status);
	return result;
}

/* main() of psd-sim, in the binary of its suites. */
int psd_sim_main(int argc, char *argv[]) __attribute__((weak));

/* The process becomes the program. psd-sim is there already, and loading its libraries anew takes 40 ms; sanitisers
 * look at the program itself. */
static inline _Noreturn void become(const char *program, char *words[])
{
	struct program_path path = path_of(program);
	int n = 1;

	words[0] = path.text;
	while (words[n])
		n++;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	if (psd_sim_main && strcmp(program, "psd-sim") == 0)
		_exit(psd_sim_main(n, words));
#endif
	execv(path.text, words);
	_exit(127);
}

/* Splits a line from words[0] on, and ends with NULL. Returns false if it has too many words. */
static inline bool split_words(char *line, char *words[], unsigned room)
{
	unsigned n = 0;

	for (char *rest = line, *word; (word = strsep(&rest, " "));)
		if (*word && n + 1 < room)
			words[n++] = word;
		else if (*word)
			return false;
	words[n] = NULL;
	return true;
}

/* Redirections to a file, and of the errors to the output, as the shell has them. Returns false for others. */
static inline bool is_plain_redirection(const char *word)
{
	return strcmp(word, "2>&1") == 0 || strncmp(word, ">/", 2) == 0 || strncmp(word, "2>/", 3) == 0;
}

static inline void redirect(const char *word)
{
	const int from = *word == '2' ? STDERR_FILENO : STDOUT_FILENO;
	const int to =
		strcmp(word, "2>&1") == 0 ? STDOUT_FILENO : open(strchr(word, '/'), O_WRONLY | O_CREAT | O_TRUNC, 0666);

	if (dup2(to, from) < 0)
		_exit(127);
}

static inline struct run run_words(const char *program, char *words[], char *const redirections[])
{
	struct run result;
	int ends[2], wait_status;

	cr_assert_eq(pipe(ends), 0);
	fflush(NULL);
	const pid_t child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		for (; *redirections; redirections++)
			redirect(*redirections);
		become(program, words);
	}
	close(ends[1]);
	FILE *const in = fdopen(ends[0], "r");
	result.text = read_all(in);
	fclose(in);
	cr_assert_eq(waitpid(child, &wait_status, 0), child);
	cr_assert(WIFEXITED(wait_status), "%s %s", program, words[1]);
	result.exit_status = WEXITSTATUS(wait_status);
	return result;
}

/* ARGUMENTS and REDIRECTIONS are the shell's; it is asked where they are more than words. */
static inline struct run run_program(const char *program, const char *arguments, const char *redirections)
{
	char command[4 * PATH_MAX], line[2][2 * PATH_MAX], *words[64], *ways[8];
	bool is_plain = !strpbrk(arguments, "|&;<>()$`\\\"'*?[]#~{}\n");

	snprintf(line[0], sizeof(line[0]), "%s", arguments);
	snprintf(line[1], sizeof(line[1]), "%s", redirections);
	is_plain = is_plain && split_words(line[0], words + 1, 63) && split_words(line[1], ways, 8);
	for (unsigned i = 0; is_plain && ways[i]; i++)
		is_plain = is_plain_redirection(ways[i]);
	if (is_plain)
		return run_words(program, words, ways);
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
