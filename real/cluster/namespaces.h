/* Network namespaces without names, held by file descriptors of this process alone. When it ends, in whatever manner,
 * the kernel removes them with all their interfaces. They need no privileges where the machine allows user namespaces.
 * Refuses to configure them: real/cluster/link.c does, over the sockets opened here. */
#ifndef PSD_REAL_NAMESPACES_H
#define PSD_REAL_NAMESPACES_H

#include <stdbool.h>

#include "engine/base/error.h"

struct psd_namespace {
	int net_fd;	/* descriptor of the namespace */
	int netlink_fd; /* descriptor of a psd_netlink socket opened in the namespace */
};

struct psd_namespaces {
	bool has_user;
	int user_fd; /* if has_user: descriptor of the user namespace around the others */
	unsigned count;
	struct psd_namespace *nets; /* network namespaces; shape (count) */
};

/* Makes `count` (>= 1) network namespaces; psd_namespaces_close() releases them. With CAP_SYS_ADMIN they are plain, and
 * a process in them keeps its rights over files. Otherwise a user namespace surrounds them, in which user and group
 * keep their numbers. Forks a process for a while: call it before threads start. PSD_ERUN: the machine forbids it (the
 * text names the settings that decide); PSD_ELOST: that process was killed or stands still; PSD_ENOMEM. */
enum psd_status psd_namespaces_open(struct psd_namespaces *namespaces, unsigned count,
				    struct psd_error *err) PSD_MUST_CHECK;
void psd_namespaces_close(struct psd_namespaces *namespaces);

/* Moves the calling process, which must have one thread, into nets[index] for good. Returns 0 or an errno. */
int psd_namespaces_enter(const struct psd_namespaces *namespaces, unsigned index) PSD_MUST_CHECK;

#endif
