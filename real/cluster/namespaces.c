#define _GNU_SOURCE
#include "real/cluster/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "real/cluster/netlink.h"

/* A child process makes the namespaces and sends their descriptors, since no process can leave a user namespace. */
enum step {
	STEP_DONE,
	STEP_USER,
	STEP_NUMBERS,
	STEP_NET,
	STEP_SOCKET,
	STEP_KILLED,
	STEP_STUCK,
};

enum { MOST_MAKE_MS = 60000 }; /* for a namespace, which takes some milliseconds */

/* One report for a user namespace, then one for each network namespace, each with descriptors. A failure is the
 * last. */
struct report {
	enum step step;
	int error;
};

#define MAX_FDS 2

static void send_report(int channel, struct report report, const int *fds, size_t n_fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(MAX_FDS * sizeof(int))];
	} control = {0};
	struct iovec body = {.iov_base = &report, .iov_len = sizeof(report)};
	struct msghdr message = {.msg_iov = &body, .msg_iovlen = 1};

	if (n_fds) {
		struct cmsghdr *rights;

		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		rights = CMSG_FIRSTHDR(&message);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(rights), fds, n_fds * sizeof(int));
	}
	if (sendmsg(channel, &message, MSG_NOSIGNAL) < 0)
		_exit(1);
}

static _Noreturn void fail(int channel, enum step step, int error)
{
	send_report(channel, (struct report){.step = step, .error = error}, NULL, 0);
	_exit(1);
}

/* Returns 0 or an errno. */
static int write_file(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	int error = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) < 0)
		error = errno;
	close(fd);
	return error;
}

/* Maps this user and group to themselves, so that files keep their owners inside. */
static void make_user_namespace(int channel)
{
	const uid_t user = geteuid();
	const gid_t group = getegid();
	char text[64];
	int error, fd;

	if (unshare(CLONE_NEWUSER) < 0)
		fail(channel, STEP_USER, errno);
	error = write_file("/proc/self/setgroups", "deny");
	if (error && error != ENOENT)
		fail(channel, STEP_NUMBERS, error);
	snprintf(text, sizeof(text), "%u %u 1\n", user, user);
	error = write_file("/proc/self/uid_map", text);
	if (error)
		fail(channel, STEP_NUMBERS, error);
	snprintf(text, sizeof(text), "%u %u 1\n", group, group);
	error = write_file("/proc/self/gid_map", text);
	if (error)
		fail(channel, STEP_NUMBERS, error);
	fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail(channel, STEP_USER, errno);
	send_report(channel, (struct report){0}, &fd, 1);
	close(fd);
}

static _Noreturn void make(int channel, unsigned count, bool has_user)
{
	if (has_user)
		make_user_namespace(channel);
	for (unsigned i = 0; i < count; i++) {
		int fds[MAX_FDS], error;

		if (unshare(CLONE_NEWNET) < 0)
			fail(channel, STEP_NET, errno);
		fds[0] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
		if (fds[0] < 0)
			fail(channel, STEP_NET, errno);
		error = psd_netlink_open(&fds[1]);
		if (error)
			fail(channel, STEP_SOCKET, error);
		send_report(channel, (struct report){0}, fds, 2);
		close(fds[0]);
		close(fds[1]);
	}
	_exit(0);
}

/* Reads one report and its n_fds descriptors, which are the caller's. */
static struct report receive_report(int channel, int *fds, size_t n_fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(MAX_FDS * sizeof(int))];
	} control = {0};
	struct report report = {0};
	struct iovec body = {.iov_base = &report, .iov_len = sizeof(report)};
	struct msghdr message = {.msg_iov = &body,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	struct pollfd readable = {.fd = channel, .events = POLLIN};
	ssize_t received;

	if (poll(&readable, 1, MOST_MAKE_MS) == 0)
		return (struct report){.step = STEP_STUCK, .error = ETIMEDOUT};
	do
		received = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
	while (received < 0 && errno == EINTR);
	if (received < 0)
		return (struct report){.step = STEP_SOCKET, .error = errno};
	if (received != (ssize_t)sizeof(report))
		return (struct report){.step = STEP_KILLED, .error = ECHILD};
	if (report.error)
		return report;
	const struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
	if (message.msg_flags & MSG_CTRUNC || !rights || rights->cmsg_len != CMSG_LEN(n_fds * sizeof(int)))
		return (struct report){.step = STEP_SOCKET,
				       .error = EMFILE}; /* the kernel closed what did not fit our table */
	memcpy(fds, CMSG_DATA(rights), n_fds * sizeof(int));
	return report;
}

/* Receives the child's descriptors. namespaces->count grows with each, so that close releases those that came. */
static struct report receive_all(int channel, struct psd_namespaces *namespaces, unsigned count, bool has_user)
{
	struct report report = {0};

	if (has_user) {
		report = receive_report(channel, &namespaces->user_fd, 1);
		namespaces->has_user = !report.error;
	}
	while (!report.error && namespaces->count < count) {
		int fds[MAX_FDS];

		report = receive_report(channel, fds, 2);
		if (!report.error)
			namespaces->nets[namespaces->count++] =
				(struct psd_namespace){.net_fd = fds[0], .netlink_fd = fds[1]};
	}
	return report;
}

static struct report make_in_child(struct psd_namespaces *namespaces, unsigned count, bool has_user)
{
	int channel[2];
	struct report report;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) < 0)
		return (struct report){.step = STEP_SOCKET, .error = errno};
	const pid_t child = fork();
	if (child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(channel[0]);
		make(channel[1], count, has_user);
	}
	report = child < 0 ? (struct report){.step = STEP_NET, .error = errno} : (struct report){0};
	close(channel[1]);
	if (child > 0) {
		report = receive_all(channel[0], namespaces, count, has_user);
		(void)kill(child, SIGKILL); /* it has nothing left to do */
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(channel[0]);
	return report;
}

static enum psd_status forbidden(struct report report, struct psd_error *err)
{
	const char *const reason = strerror(report.error);

	switch (report.step) {
	case STEP_USER:
		if (report.error == ENOSPC)
			break;
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "emulated cluster: this machine forbids user namespaces (unshare: %s); needs "
				     "CAP_SYS_ADMIN, or user namespaces for everybody "
				     "(kernel.unprivileged_userns_clone=1, a seccomp profile that allows unshare)",
				     reason);
	case STEP_NUMBERS:
		return psd_error_set(
			err, PSD_ERUN, PSD_NOWHERE,
			"emulated cluster: this machine forbids writing /proc/self/uid_map (%s); needs CAP_SYS_ADMIN, "
			"or user namespaces without restrictions (kernel.apparmor_restrict_unprivileged_userns=0)",
			reason);
	case STEP_NET:
		if (report.error == ENOSPC)
			break;
		return psd_error_set(
			err, PSD_ERUN, PSD_NOWHERE,
			"emulated cluster: cannot make a network namespace (%s); needs CAP_SYS_ADMIN, or user "
			"namespaces without restrictions (kernel.apparmor_restrict_unprivileged_userns=0), and a "
			"kernel with CONFIG_NET_NS",
			reason);
	case STEP_KILLED:
		return psd_error_set(err, PSD_ELOST, PSD_NOWHERE,
				     "emulated cluster: the process that makes its namespaces was killed");
	case STEP_STUCK:
		return psd_error_set(err, PSD_ELOST, PSD_NOWHERE,
				     "emulated cluster: the process that makes its namespaces has stood still for %d s",
				     MOST_MAKE_MS / 1000);
	default: return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "emulated cluster: cannot open a socket: %s", reason);
	}
	return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
			     "emulated cluster: no more namespaces (%s); user.max_user_namespaces and "
			     "user.max_net_namespaces allow too few",
			     reason);
}

enum psd_status psd_namespaces_open(struct psd_namespaces *namespaces, unsigned count, struct psd_error *err)
{
	struct psd_namespaces made = {.nets = calloc(count, sizeof(*made.nets))};

	if (!made.nets)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	struct report report = make_in_child(&made, count, false);
	if (report.step == STEP_NET && report.error == EPERM)
		report = make_in_child(&made, count, true);
	if (report.error) {
		psd_namespaces_close(&made);
		return forbidden(report, err);
	}
	*namespaces = made;
	return PSD_OK;
}

void psd_namespaces_close(struct psd_namespaces *namespaces)
{
	for (unsigned i = 0; i < namespaces->count; i++) {
		close(namespaces->nets[i].netlink_fd);
		close(namespaces->nets[i].net_fd);
	}
	if (namespaces->has_user)
		close(namespaces->user_fd);
	free(namespaces->nets);
	*namespaces = (struct psd_namespaces){0};
}

int psd_namespaces_enter(const struct psd_namespaces *namespaces, unsigned index)
{
	if (namespaces->has_user && setns(namespaces->user_fd, CLONE_NEWUSER) < 0)
		return errno;
	return setns(namespaces->nets[index].net_fd, CLONE_NEWNET) < 0 ? errno : 0;
}
