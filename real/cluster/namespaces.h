/* Network namespaces without names: held by file descriptors of this process alone, so that the kernel removes them,
 * with every interface in them, when the last holder is gone, however it ended. Made without privileges where the
 * machine allows user namespaces. Refuses to configure them: real/cluster/link.c does, over the sockets given here. */
#ifndef PSD_REAL_NAMESPACES_H
#define PSD_REAL_NAMESPACES_H

#include <stdbool.h>

#include "engine/base/error.h"

struct psd_namespace {
	int net_fd;	/* the namespace */
	int netlink_fd; /* a psd_netlink socket that was opened in it */
};

struct psd_namespaces {
	bool has_user;
	int user_fd; /* if has_user: the user namespace around the others, which this process might not make */
	unsigned count;
	struct psd_namespace *nets; /* [count] */
};

/* Makes `count` (>= 1) network namespaces. The caller releases with psd_namespaces_close. A process that may (root with
 * CAP_SYS_ADMIN) makes plain network namespaces, so that who enters them keeps its rights over files; another makes a
 * user namespace around them, in which its user and group keep their numbers. PSD_ERUN: the machine forbids it (the
 * text says what and which settings decide); PSD_ENOMEM. Forks a process for a while: call it before threads start. */
enum psd_status psd_namespaces_open(struct psd_namespaces *namespaces, unsigned count,
				    struct psd_error *err) PSD_MUST_CHECK;
void psd_namespaces_close(struct psd_namespaces *namespaces);

/* Moves the calling process, which must have one thread, into nets[index] for good. Returns 0 or an errno. */
int psd_namespaces_enter(const struct psd_namespaces *namespaces, unsigned index) PSD_MUST_CHECK;

#endif
