/* Programs on a pseudo-terminal: no line of a table, a note or a help is longer than the terminal. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pty.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/text.h"
#include "tests/cli_helper.h"

enum { MOST_WORDS = 32 };

/* Output of `program arguments` on a terminal of that width; the caller frees it. environment: "NAME=VALUE", or
 * NULL. */
static char *on_terminal(int width, const char *program, const char *arguments, const char *environment)
{
	const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)width};
	char *words[MOST_WORDS], *copy = strdup(arguments), *text = NULL, piece[4096];
	size_t n_bytes = 0;
	FILE *memory = open_memstream(&text, &n_bytes);
	int terminal, wait_status;
	ssize_t length;
	pid_t child;

	cr_assert(split_words(copy, words + 1, MOST_WORDS - 1));
	child = forkpty(&terminal, NULL, NULL, &size);
	cr_assert_geq(child, 0);
	if (child == 0) {
		setenv("TERM", "xterm", 1);
		unsetenv("NO_COLOR");
		if (environment)
			putenv((char *)(uintptr_t)environment);
		become(program, words);
	}
	while ((length = read(terminal, piece, sizeof(piece))) > 0)
		fwrite(piece, 1, (size_t)length, memory);
	fclose(memory);
	close(terminal);
	cr_assert_eq(waitpid(child, &wait_status, 0), child);
	cr_expect(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0, "%s %s: %s", program, arguments, text);
	free(copy);
	return text;
}

/* Characters of a line up to its end, without styles. */
static int places_of(const char *line)
{
	int n = 0;

	for (; *line && *line != '\r' && *line != '\n'; line++) {
		if (*line == '\033')
			line += strcspn(line, "m");
		else
			n += ((unsigned char)*line & 0xc0) != 0x80;
	}
	return n;
}

static void expect_narrow(int width, const char *program, const char *arguments)
{
	char *text = on_terminal(width, program, arguments, NULL);

	cr_expect_neq(text[0], '\0', "%s %s", program, arguments);
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		cr_expect_leq(places_of(line), width, "%s %s, %d columns: %.*s", program, arguments, width,
			      (int)strcspn(line, "\r\n"), line);
	free(text);
}

/* The extremes are first. */
static const int widths[] = {60, 200, 80, 120};

static void expect_all_narrow(const char *program, const char *const arguments[])
{
	const size_t n_widths = getenv("PSD_FULL_TESTS") ? sizeof(widths) / sizeof(widths[0]) : 2;

	for (; *arguments; arguments++)
		for (size_t w = 0; w < n_widths; w++)
			expect_narrow(widths[w], program, *arguments);
}

Test(terminal, a_table_fits, .timeout = 120)
{
	static const char *const arguments[] = {
		"--estimate --quiet scenarios/quickstart.yaml",
		"--quiet scenarios/quickstart.yaml",
		"--estimate --quiet scenarios/quickstart.yaml scenarios/fusion.yaml",
		"--estimate --quiet scenarios/compression.yaml",
		"--estimate --quiet scenarios/gpt2.yaml",
		"--estimate --quiet scenarios/poseidon-2015/alexnet.yaml",
		"--estimate --quiet scenarios/gradientflow/resnet50-cluster-p.yaml",
		"--estimate --quiet scenarios/examples/cluster.yaml",
		"--estimate --quiet scenarios/quickstart.yaml --sweep model.batch_per_worker=8,16 --sweep "
		"cluster.network.latency=5us,50us",
		NULL,
	};

	expect_all_narrow("psd-sim", arguments);
}

Test(terminal, answers_plans_layers_and_imports_fit, .timeout = 120)
{
	static const char *const arguments[] = {
		"ask --estimate scenarios/examples/job.yaml",
		"plan scenarios/quickstart.yaml",
		"plan scenarios/compression.yaml",
		"describe scenarios/models/googlenet-aux.yaml",
		"describe scenarios/models/gpt2.yaml",
		"describe scenarios/models/predicted-only.yaml",
		"stacks",
		"stacks psd nccl-tcp",
		"import tests/import/resnet18.json.gz --bandwidth 10Gbps -o /dev/null --graph /dev/null",
		NULL,
	};

	expect_all_narrow("psd-sim", arguments);
}

Test(terminal, helps_fit, .timeout = 120)
{
	static const char *const of_sim[] = {"--help",		"plan --help", "describe --help", "show --help",
					     "platform --help", "ask --help",  "stacks --help",	  "merge --help",
					     "import --help",	"--keys",      "--columns",	  NULL};
	static const char *const of_run[] = {"--help",	    "calibrate --help", "pack --help", "weights --help",
					     "show --help", "--keys train",	NULL};
	static const char *const of_plot[] = {"--help",		 "speedup --help", "curve --help",
					      "timeline --help", "compare --help", NULL};

	expect_all_narrow("psd-sim", of_sim);
	expect_all_narrow("psd-run", of_run);
	for (const char *const *arguments = of_plot; *arguments; arguments++)
		expect_narrow(80, "psd-plot", *arguments);
}

Test(terminal, a_run_fits, .timeout = 120)
{
	expect_narrow(80, "psd-run",
		      "--quiet --no-emulation --nodes 1 --iterations 1 --system PS scenarios/quickstart.yaml");
}

static bool has_style(int width, const char *arguments, const char *environment)
{
	char *text = on_terminal(width, "psd-sim", arguments, environment);
	const bool has_bold = strstr(text, "\033[1m"), has_dim = strstr(text, "\033[2m");

	cr_expect_eq(has_bold, has_dim, "%s", text);
	free(text);
	return has_bold;
}

Test(terminal, styles_are_left_out_where_nobody_wants_them)
{
	static const char arguments[] = "--estimate --quiet scenarios/quickstart.yaml";
	struct run piped = run_program("psd-sim", arguments, "");

	cr_expect(has_style(80, arguments, NULL));
	cr_expect_not(has_style(80, arguments, "NO_COLOR=1"));
	cr_expect_not(has_style(80, arguments, "TERM=dumb"));
	cr_expect_null(strchr(piped.text, '\033'));
	cr_expect_null(strstr(piped.text, "left out"));
	free(piped.text);
}

/* The line of the head; columns of a pipe's table are all of --wide. */
static char *head_of(char *text)
{
	char *head = strstr(text, "\nnodes ");

	cr_assert_not_null(head, "%s", text);
	head[1 + strcspn(head + 1, "\r\n")] = '\0';
	return head + 1;
}

Test(terminal, wide_shows_the_columns_of_a_pipe)
{
	static const char arguments[] = "--estimate --quiet scenarios/quickstart.yaml";
	struct run piped = run_program("psd-sim", arguments, "");
	char *narrow = on_terminal(80, "psd-sim", arguments, NULL),
	     *wide = on_terminal(80, "psd-sim", "--wide --estimate --quiet scenarios/quickstart.yaml", NULL);

	cr_expect_not_null(strstr(narrow, "left out, as the terminal is narrow"), "%s", narrow);
	cr_expect_null(strstr(wide, "left out"), "%s", wide);
	cr_expect_str_eq(head_of(wide), head_of(piped.text));
	cr_expect_str_neq(head_of(narrow), head_of(piped.text));
	free(narrow);
	free(wide);
	free(piped.text);
}

/* Files that programs read have no line's end of the terminal's in a wrong place. */
Test(terminal, csv_and_yaml_are_the_same_as_in_a_pipe)
{
	static const char *const arguments[] = {"--csv --quiet --estimate scenarios/quickstart.yaml",
						"show scenarios/quickstart.yaml",
						"--json --quiet --estimate scenarios/quickstart.yaml"};

	for (size_t a = 0; a < sizeof(arguments) / sizeof(arguments[0]); a++) {
		struct run piped = run_program("psd-sim", arguments[a], "");
		char *shown = on_terminal(80, "psd-sim", arguments[a], NULL), *to = shown;

		for (const char *from = shown; *from; from++)
			if (*from != '\r')
				*to++ = *from;
		*to = '\0';
		cr_expect_str_eq(shown, piped.text);
		free(shown);
		free(piped.text);
	}
}
