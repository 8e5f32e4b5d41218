/* Network namespaces without names, held by file descriptors of this process. When the process ends, in whatever way,
 * the kernel removes them and all their interfaces. They need no privileges if the machine allows user namespaces. This
 * module does not configure the namespaces. real/cluster/link.c does that, over the sockets that are opened here. */
#ifndef PSD_REAL_NAMESPACES_H
#define PSD_REAL_NAMESPACES_H

#include <stdbool.h>

#include "engine/base/error.h"

struct psd_namespace {
	int net_fd;	/* descriptor of the network namespace */
	int netlink_fd; /* socket of psd_netlink_open() in that network namespace */
};

struct psd_namespaces {
	bool has_user;
	int user_fd; /* if has_user: descriptor of the user namespace to which the network namespaces belong */
	unsigned count;
	struct psd_namespace *nets; /* the network namespaces; shape (count) */
};

/* Makes `count` (>= 1) network namespaces; psd_namespaces_close() releases them. If this process has CAP_SYS_ADMIN,
 * they belong to its current user namespace, and a process in them keeps its rights on files. Otherwise they belong to
 * a new user namespace, in which user and group have the same numbers as outside. For a short time it forks a helper
 * process, so it must be called before threads start. PSD_ERUN: the machine does not allow it, and the text names the
 * responsible settings; PSD_ELOST: the helper process was killed or makes no progress; PSD_ENOMEM. */
enum psd_status psd_namespaces_open(struct psd_namespaces *namespaces, unsigned count,
				    struct psd_error *err) PSD_MUST_CHECK;
void psd_namespaces_close(struct psd_namespaces *namespaces);

/* Moves the calling process into network namespace number `index`, which it cannot leave. The process must have only
 * one thread. Returns 0 or an errno. */
int psd_namespaces_enter(const struct psd_namespaces *namespaces, unsigned index) PSD_MUST_CHECK;

#endif
