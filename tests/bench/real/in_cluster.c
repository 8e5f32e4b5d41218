/* Runs one command per node of an emulated cluster, for benchmarks of programs that know nothing of it: each process
 * finds itself in its node's network and what it needs to find the others in its environment (RANK, WORLD_SIZE,
 * MASTER_ADDR, MASTER_PORT, NODE_ADDRESS, and eth0 for Gloo). TCP there is cubic whatever the machine's default, by the
 * nodes' routes. Standard output is the command's. */
#define _GNU_SOURCE

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/units.h"
#include "tests/real/node_processes.h"

#define MASTER_PORT "29500"
#define LIMIT_SEC   600.0

struct command {
	struct psd_emulation_options options;
	const char *report_path; /* NULL: none */
	double within_sec;
	char **argv; /* NULL-terminated */
};

static int misuse(const char *what)
{
	fprintf(stderr,
		"in-cluster: %s\n"
		"usage: in-cluster --nodes N [--bandwidth RATE] [--within TIME] [--report FILE.csv] -- COMMAND "
		"[ARGUMENT...]\n",
		what);
	return 2;
}

static int complain(const struct psd_error *err)
{
	fprintf(stderr, "in-cluster: %s\n", err->text);
	return 1;
}

static void set_number(const char *name, unsigned value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	setenv(name, text, 1);
}

static int live(void *context, unsigned node)
{
	const struct command *const command = context;
	char address[PSD_EMULATION_ADDRESS_MAX];

	set_number("RANK", node);
	set_number("WORLD_SIZE", command->options.n_nodes);
	setenv("MASTER_ADDR", psd_emulation_address(0, address), 1);
	setenv("MASTER_PORT", MASTER_PORT, 1);
	setenv("NODE_ADDRESS", psd_emulation_address(node, address), 1);
	setenv("GLOO_SOCKET_IFNAME", "eth0", 1);
	execvp(command->argv[0], command->argv);
	fprintf(stderr, "in-cluster: cannot run '%s': %s\n", command->argv[0], strerror(errno));
	return 127;
}

static void report_end(FILE *report, const struct node_end *end)
{
	if (report)
		fprintf(report, "%u,%s,%d,%.3f,%llu\n", end->node, end->was_killed ? "signal" : "exit",
			end->exit_or_signal, end->cpu_sec, (unsigned long long)end->peak_memory_bytes);
	if (end->was_killed || end->exit_or_signal)
		fprintf(stderr, "in-cluster: node %u: %s %d\n", end->node,
			end->was_killed ? "killed by signal" : "exit status", end->exit_or_signal);
}

/* Waits for all; a failed process ends the others, which may wait for it. Returns the number of failed processes, 1 if
 * they did not end in time. */
static int wait_all(const struct command *command, FILE *report)
{
	struct node_end end;
	int n_failed = 0;

	for (unsigned n_left = command->options.n_nodes; n_left > 0 && !n_failed; n_left--) {
		if (!wait_in_nodes(command->within_sec, &end)) {
			fprintf(stderr, "in-cluster: nothing has ended for %g s\n", command->within_sec);
			return 1;
		}
		report_end(report, &end);
		n_failed += end.was_killed || end.exit_or_signal;
	}
	return n_failed;
}

static int run(struct command *command, FILE *report)
{
	struct psd_emulation *emulation;
	struct psd_error err;
	int n_failed;

	if (psd_emulation_open(&command->options, &emulation, &err) != PSD_OK)
		return complain(&err);
	for (unsigned node = 0; node < command->options.n_nodes; node++)
		(void)start_in_node(emulation, node, live, command);
	if (report)
		fputs("node,end,status,cpu_sec,peak_memory_bytes\n", report);
	n_failed = wait_all(command, report);
	end_in_nodes();
	psd_emulation_close(emulation);
	return n_failed != 0;
}

/* Returns false when the option or its value is none. */
static bool take(struct command *command, const char *name, const char *value)
{
	uint64_t count;

	if (!strcmp(name, "--nodes")) {
		if (!psd_units_read_count(value, &count) || count < 1 || count > PSD_EMULATION_MAX_NODES)
			return false;
		command->options.n_nodes = (unsigned)count;
		return true;
	}
	if (!strcmp(name, "--bandwidth"))
		return command->options.has_rate = psd_units_read_rate(value, &command->options.rate_bps);
	if (!strcmp(name, "--within"))
		return psd_units_read_seconds(value, &command->within_sec);
	if (!strcmp(name, "--report")) {
		command->report_path = value;
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	struct command command = {.within_sec = LIMIT_SEC};
	FILE *report = NULL;
	int at = 1, status;

	for (; at < argc && strcmp(argv[at], "--") != 0; at += 2)
		if (at + 1 >= argc || !take(&command, argv[at], argv[at + 1]))
			return misuse("an option or its value is wrong");
	if (at + 1 >= argc || !command.options.n_nodes)
		return misuse("needs --nodes and a command");
	command.argv = argv + at + 1;
	if (command.report_path) {
		report = fopen(command.report_path, "we");
		if (!report) {
			fprintf(stderr, "in-cluster: %s: %s\n", command.report_path, strerror(errno));
			return 1;
		}
	}
	status = run(&command, report);
	if (report && fclose(report))
		status = 1;
	return status;
}
