/* The emulated cluster's end: nothing of it stays, however its parent ends. */
#define _GNU_SOURCE
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "tests/real/emulation_helper.h"

TestSuite(emulation_end, .timeout = 120);

/* ---- processes ---- */

static int count_namespaces(void *context, unsigned node)
{
	(void)context;
	(void)node;
	return (int)count_descriptors(true);
}

Test(emulation_end, a_process_holds_no_other_nodes_namespace)
{
	struct psd_emulation *const emulation = open_or_skip(3);

	cr_assert_geq(count_descriptors(true), 4); /* three nodes and the switch */
	(void)start_in_node(emulation, 1, count_namespaces, NULL);
	expect_success();
	psd_emulation_close(emulation);
}

/* ---- remains ---- */

/* A network of its own, if it may: others on the machine add interfaces to the common one, and remove them. */
static void leave_common_network(void)
{
	(void)!unshare(CLONE_NEWNET);
}

/* The interfaces of this process's own network, in one line. */
static void list_interfaces(char *text, size_t room_bytes)
{
	struct if_nameindex *interfaces = if_nameindex();
	size_t used_bytes = 0;

	text[0] = '\0';
	cr_assert_not_null(interfaces);
	for (unsigned i = 0; interfaces[i].if_index; i++) {
		used_bytes +=
			(size_t)snprintf(text + used_bytes, room_bytes - used_bytes, "%s ", interfaces[i].if_name);
		cr_assert_lt(used_bytes, room_bytes);
	}
	if_freenameindex(interfaces);
}

Test(emulation_end, nothing_is_left_after_close)
{
	char before[4096], during[4096], after[4096];
	const unsigned n_descriptors = count_descriptors(false);
	struct psd_emulation *emulation;

	leave_common_network();
	list_interfaces(before, sizeof(before));
	emulation = open_or_skip(3);
	for (unsigned node = 0; node < 3; node++)
		(void)start_in_node(emulation, node, sleep_long, NULL);
	list_interfaces(during, sizeof(during));
	cr_assert_neq(waitpid(-1, NULL, WNOHANG), -1); /* they do run */
	end_in_nodes();
	psd_emulation_close(emulation);
	list_interfaces(after, sizeof(after));
	expect_nothing_left();
	cr_assert_eq(count_descriptors(false), n_descriptors);
	cr_assert_str_eq(during, before);
	cr_assert_str_eq(after, before);
}

/* Ends the process with its cluster still running. */
static _Noreturn void open_and_end(unsigned n_nodes, int signal_number)
{
	const struct psd_emulation_options options = {.n_nodes = n_nodes};
	const struct rlimit no_dump = {0};
	struct psd_emulation *emulation;

	(void)setrlimit(RLIMIT_CORE, &no_dump);
	if (psd_emulation_open(&options, &emulation, NULL) != PSD_OK)
		_exit(100);
	for (unsigned node = 0; node < n_nodes; node++)
		(void)start_in_node(emulation, node, sleep_long, NULL);
	if (signal_number) {
		signal(signal_number, SIG_DFL);
		raise(signal_number);
	}
	_exit(0);
}

Test(emulation_end, nothing_is_left_however_the_parent_ends)
{
	static const int signals[] = {0, SIGINT, SIGTERM, SIGKILL, SIGSEGV, SIGABRT}; /* 0: it just exits */
	char before[4096], after[4096];

	leave_common_network();
	psd_emulation_close(open_or_skip(1));
	list_interfaces(before, sizeof(before));
	for (unsigned i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		const pid_t parent = fork();
		unsigned n_orphans = 0;
		int status;
		pid_t ended;

		if (parent == 0)
			open_and_end(3, signals[i]);
		while ((ended = waitpid(-1, &status, 0)) > 0) {
			if (ended == parent) {
				cr_assert_eq(signals[i] ? WTERMSIG(status) : WEXITSTATUS(status), signals[i]);
				continue;
			}
			n_orphans++;
			cr_assert(WIFSIGNALED(status));
			cr_assert_eq(WTERMSIG(status), SIGKILL, "an orphan ended by signal %d", WTERMSIG(status));
		}
		cr_assert_eq(n_orphans, 3);
		expect_nothing_left();
	}
	list_interfaces(after, sizeof(after));
	cr_assert_str_eq(after, before);
}

Test(emulation_end, a_user_without_rights_leaves_nothing_when_killed)
{
	int status;
	unsigned n_killed = 0;

	become_nobody();
	psd_emulation_close(open_or_skip(1));
	if (fork() == 0)
		open_and_end(2, SIGKILL);
	while (waitpid(-1, &status, 0) > 0)
		n_killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	cr_assert_eq(n_killed, 3); /* two processes and their parent */
	expect_nothing_left();
}
