/* The hosts of a cluster, from a file or mpirun, and the number of this process among them. The file has a line for
 * each: ADDRESS, ADDRESS:PORT or [IPV6]:PORT; workers first, then separate servers; '#' begins a comment. Hosts that
 * share an address and have no port get consecutive ports. */
#ifndef PSD_REAL_HOSTS_H
#define PSD_REAL_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/error.h"
#include "real/net/mesh.h"

enum { PSD_HOSTS_FIRST_PORT = 7411, PSD_HOSTS_MAX = 4096 };

struct psd_hosts {
	struct psd_mesh_host *hosts;
	unsigned *lines; /* line number of each host in the file */
	unsigned n_hosts;
};

/* Reads a hosts file. psd_hosts_release() releases *hosts. PSD_EFILE, PSD_EINVAL with place, PSD_ENOMEM. */
enum psd_status psd_hosts_load(struct psd_hosts *hosts, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Reads hosts from the text of a hosts file; path: its name in errors. */
enum psd_status psd_hosts_parse(struct psd_hosts *hosts, const char *path, const char *text, size_t length,
				struct psd_error *err) PSD_MUST_CHECK;
void psd_hosts_release(struct psd_hosts *hosts);

/* Checks that the names which host `self` needs can be resolved: its own, and those of hosts before it, which it
 * connects to. path: the hosts file. PSD_EINVAL with place, PSD_ENOMEM. */
enum psd_status psd_hosts_look_up(const struct psd_hosts *hosts, const char *path, unsigned self,
				  struct psd_error *err) PSD_MUST_CHECK;

/* True if the name of host `self` resolves to a loopback address and another host's does not: other machines could not
 * connect to it. Looks names up. */
bool psd_hosts_is_hidden(const struct psd_hosts *hosts, unsigned self);

/* Fills *hosts with a 127.0.0.1 for each process that mpirun has started on this machine; with none for a process that
 * was started alone. PSD_EINVAL: the environment tells of several processes that this file cannot join, such as those
 * of srun, of torchrun, or of mpirun on other machines; PSD_ENOMEM. */
enum psd_status psd_hosts_launched(struct psd_hosts *hosts, struct psd_error *err) PSD_MUST_CHECK;
/* Reads this process's rank from the environment of mpirun, torchrun, srun and others. PSD_EINVAL: none is set, it is
 * not a number below n_hosts, or they have started another number of processes. */
enum psd_status psd_hosts_find_rank(unsigned n_hosts, unsigned *rank, struct psd_error *err) PSD_MUST_CHECK;
/* Finds this process's rank for messages, as far as the environment tells it. is_one_of_several: it is known to be;
 * otherwise only an environment that tells so counts. False: not found. */
bool psd_hosts_guess_rank(bool is_one_of_several, unsigned *rank);
/* Number of hosts that have the address of `host`. *nth: number of those before `host`. */
unsigned psd_hosts_beside(const struct psd_hosts *hosts, unsigned host, unsigned *nth);

#endif
