/* Helpers of the emulated cluster's suites: open one or skip the test, wait for processes, simple work for nodes, and
 * checks that nothing is left. */
#ifndef PSD_TESTS_EMULATION_HELPER_H
#define PSD_TESTS_EMULATION_HELPER_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/real/node_processes.h"
#include "tests/real/waiting_socket.h"

#define PORT	   4711
#define WITHIN_SEC 30.0 /* generous: reached only by a failure */
#define SLEEP_SEC  60	/* a child that is meant to be killed ends by SIGALRM after this */
#define RATE_BPS   8e9
#define NOBODY	   65534

/* The mounts of namespaces before the test, a line each. Others on the machine have some, too, and make and end them
 * meanwhile. */
static char earlier_mounts[1 << 16];
static bool has_own_mounts; /* else it cannot mount anything either */

static inline bool is_namespace_mount(const char *line)
{
	return strstr(line, " nsfs ") != NULL;
}

static inline void note_mounts(void)
{
	FILE *const mounts = fopen("/proc/self/mountinfo", "re");
	size_t used_bytes = 0;
	char line[1024];

	cr_assert_not_null(mounts);
	while (fgets(line, sizeof(line), mounts)) {
		if (!is_namespace_mount(line))
			continue;
		used_bytes +=
			(size_t)snprintf(earlier_mounts + used_bytes, sizeof(earlier_mounts) - used_bytes, "%s", line);
		cr_assert_lt(used_bytes, sizeof(earlier_mounts));
	}
	fclose(mounts);
}

/* Mounts of other processes no longer appear in this process, and its own appear in no other. */
static inline void keep_mounts_apart(void)
{
	if (has_own_mounts || unshare(CLONE_NEWNS) < 0)
		return;
	cr_assert_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	note_mounts();
	has_own_mounts = true;
}

/* Orphans of this process's children become its children: wait for them, and count them. */
static inline void adopt_orphans(void)
{
	cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	keep_mounts_apart();
}

static inline struct psd_emulation *open_or_skip(unsigned n_nodes)
{
	const struct psd_emulation_options options = {.n_nodes = n_nodes, .has_rate = true, .rate_bps = RATE_BPS};
	struct psd_emulation *emulation = NULL;
	struct psd_error err;

	adopt_orphans();
	if (psd_emulation_open(&options, &emulation, &err) != PSD_OK) {
		cr_assert_not_null(strstr(err.text, "namespace"), "%s",
				   err.text); /* anything else is not the machine's ban */
		cr_skip_test("%s", err.text);
	}
	return emulation;
}

/* A process that checks something ends with a number for the check that failed, or 0. */
static inline void expect_success(void)
{
	struct node_end end = {.process = 0};

	cr_assert(wait_in_nodes(WITHIN_SEC, &end));
	cr_assert(!end.was_killed && end.exit_or_signal == 0, "node %u: %s %d", end.node,
		  end.was_killed ? "signal" : "exit status", end.exit_or_signal);
}

static inline bool is_namespace(const char *target)
{
	return strncmp(target, "net:[", 5) == 0 || strncmp(target, "user:[", 6) == 0;
}

/* Counts this process's descriptors: all, or those that hold namespaces or sockets of them. */
static inline unsigned count_descriptors(bool only_namespaces)
{
	DIR *const folder = opendir("/proc/self/fd");
	const struct dirent *entry;
	unsigned count = 0;

	cr_assert_not_null(folder);
	while ((entry = readdir(folder))) {
		char target[256];
		const ssize_t n_bytes = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);

		if (n_bytes < 0)
			continue;
		target[n_bytes] = '\0';
		count += !only_namespaces || is_namespace(target);
	}
	closedir(folder);
	return count;
}

/* No process below this one is left, so only this process's own descriptors and mounts could hold a namespace; they do
 * not. (No other process was given one.) A mount's number, with which its line begins, is unique while it lasts. */
static inline void expect_nothing_left(void)
{
	char line[1024];
	FILE *const mounts = fopen("/proc/self/mountinfo", "re");

	cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1);
	cr_assert_eq(errno, ECHILD);
	cr_assert_eq(count_descriptors(true), 0);
	cr_assert_not_null(mounts);
	while (has_own_mounts && fgets(line, sizeof(line), mounts))
		cr_assert(!is_namespace_mount(line) || strstr(earlier_mounts, line), "%s", line);
	fclose(mounts);
}

/* Becomes a user without rights, who owns the files he makes; from root only. */
static inline void become_nobody(void)
{
	if (geteuid() != 0)
		return;
	keep_mounts_apart();
	cr_assert_eq(setresgid(NOBODY, NOBODY, NOBODY), 0);
	cr_assert_eq(setresuid(NOBODY, NOBODY, NOBODY), 0);
	cr_assert_eq(prctl(PR_SET_DUMPABLE, 1), 0); /* as in a program he started: /proc/self is his */
}

/* ---- work for nodes ---- */

static inline int check_addresses(void *context, unsigned node)
{
	char expected[PSD_EMULATION_ADDRESS_MAX];
	struct ifaddrs *all;
	unsigned n_loopback = 0, n_own = 0;

	(void)context;
	psd_emulation_address(node, expected);
	if (getifaddrs(&all) < 0)
		return 100;
	for (const struct ifaddrs *each = all; each; each = each->ifa_next) {
		char address[INET_ADDRSTRLEN], mask[INET_ADDRSTRLEN];

		if (!each->ifa_addr || each->ifa_addr->sa_family != AF_INET)
			continue;
		inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)each->ifa_addr)->sin_addr, address,
			  sizeof(address));
		inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)each->ifa_netmask)->sin_addr, mask,
			  sizeof(mask));
		if (strcmp(each->ifa_name, "lo") == 0)
			n_loopback += strcmp(address, "127.0.0.1") == 0;
		else if (strcmp(each->ifa_name, "eth0") != 0 || strcmp(address, expected) != 0 ||
			 strcmp(mask, "255.255.0.0") != 0)
			return 101; /* an address it should not have */
		else
			n_own++;
	}
	freeifaddrs(all);
	return n_loopback == 1 && n_own == 1 ? 0 : 102;
}

static inline int sleep_long(void *context, unsigned node)
{
	(void)context;
	(void)node;
	alarm(SLEEP_SEC);
	pause();
	return 0;
}

static inline int greet(void *context, unsigned node)
{
	const struct psd_socket_options options = {0};
	char address[PSD_EMULATION_ADDRESS_MAX], congestion[PSD_SOCKET_CONGESTION_MAX];
	const int fd = connect_within(psd_emulation_address(node + 1, address), PORT, WITHIN_SEC, &options);

	(void)context;
	if (fd < 0)
		return 100;
	/* The node has every right in its network, so cubic is there unless the kernel has none. */
	if (strcmp(psd_socket_congestion(fd, congestion), "cubic") != 0 && strcmp(congestion, "reno") != 0)
		return 101;
	return write(fd, "hello", 5) == 5 ? 0 : 102;
}

static inline int be_greeted(void *context, unsigned node)
{
	const struct psd_socket_options options = {0};
	char from[INET_ADDRSTRLEN], expected[PSD_EMULATION_ADDRESS_MAX], text[5];
	struct sockaddr_in peer;
	socklen_t peer_bytes = sizeof(peer);
	struct psd_error err;
	uint16_t port;
	int listener, fd;

	(void)context;
	if (psd_socket_listen(NULL, PORT, &options, &listener, &port, &err) != PSD_OK)
		return 100;
	fd = accept_within(listener, WITHIN_SEC);
	if (fd < 0)
		return 100;
	if (getpeername(fd, (struct sockaddr *)&peer, &peer_bytes) < 0)
		return 101;
	inet_ntop(AF_INET, &peer.sin_addr, from, sizeof(from));
	if (strcmp(from, psd_emulation_address(node - 1, expected)) != 0)
		return 102;
	if (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, (int)(1000 * WITHIN_SEC)) != 1)
		return 103;
	return recv(fd, text, sizeof(text), MSG_WAITALL) == 5 && memcmp(text, "hello", 5) == 0 ? 0 : 104;
}

static inline void expect_greetings(struct psd_emulation *emulation)
{
	(void)start_in_node(emulation, 1, be_greeted, NULL);
	(void)start_in_node(emulation, 0, greet, NULL);
	expect_success();
	expect_success();
}

#endif
