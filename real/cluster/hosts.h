/* List of the hosts (workers and separate servers) of a cluster, and the number of this process among them. The list
 * comes from a file or from mpirun. The file has one line for each host: ADDRESS, ADDRESS:PORT or [IPV6]:PORT. Workers
 * come first, then separate servers; '#' begins a comment. Hosts with the same address and without a port get
 * consecutive ports, beginning with PSD_HOSTS_FIRST_PORT. */
#ifndef PSD_REAL_HOSTS_H
#define PSD_REAL_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/error.h"
#include "real/net/mesh.h"

enum { PSD_HOSTS_FIRST_PORT = 7411, PSD_HOSTS_MAX = 4096 };

struct psd_hosts {
	struct psd_mesh_host *hosts;
	unsigned *lines; /* line number of each host in the file, from 1; shape (n_hosts) */
	unsigned n_hosts;
};

/* Reads a hosts file into *hosts, which psd_hosts_release() releases. PSD_EFILE: the file cannot be read; PSD_EINVAL:
 * it is malformed, and the text has the line number; PSD_ENOMEM. */
enum psd_status psd_hosts_load(struct psd_hosts *hosts, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Reads a list of hosts from `length` bytes of text in the format of a hosts file. path: name of the file for errors.
 * Statuses as psd_hosts_load(). */
enum psd_status psd_hosts_parse(struct psd_hosts *hosts, const char *path, const char *text, size_t length,
				struct psd_error *err) PSD_MUST_CHECK;
void psd_hosts_release(struct psd_hosts *hosts);

/* Checks that host `self` can resolve the names that it needs: its own name, and the names of the hosts before it in
 * the list, to which it connects. path: the hosts file, for errors. PSD_EINVAL: a name cannot be resolved, and the text
 * has its line number; PSD_ENOMEM. */
enum psd_status psd_hosts_look_up(const struct psd_hosts *hosts, const char *path, unsigned self,
				  struct psd_error *err) PSD_MUST_CHECK;

/* True if the name of host `self` is resolved to a loopback address although another host has an address that is not
 * loopback. Then other machines cannot connect to host `self`. Resolves names, which may take seconds. */
bool psd_hosts_is_hidden(const struct psd_hosts *hosts, unsigned self);

/* Fills *hosts with one host at 127.0.0.1 for each process that mpirun has started on this machine. If this process was
 * started alone, *hosts becomes empty. PSD_EINVAL: several processes were started, but not by mpirun on one machine (by
 * srun, by torchrun, or by mpirun on several machines), so they need a hosts file; PSD_ENOMEM. */
enum psd_status psd_hosts_launched(struct psd_hosts *hosts, struct psd_error *err) PSD_MUST_CHECK;
/* Reads the rank of this process from the environment variables of mpirun, torchrun, srun and others. PSD_EINVAL: no
 * such variable is set, the rank is not a number below n_hosts, or the number of started processes is not n_hosts. */
enum psd_status psd_hosts_find_rank(unsigned n_hosts, unsigned *rank, struct psd_error *err) PSD_MUST_CHECK;
/* Finds the rank of this process, which is printed at the beginning of its lines, in the environment variables.
 * is_one_of_several: true if the caller knows that this process is one of several hosts; otherwise the environment
 * variables must show that. Returns false if no rank was found. */
bool psd_hosts_guess_rank(bool is_one_of_several, unsigned *rank);
/* Returns the number of hosts that have the same address as `host`, which is counted, too. *nth: number of these hosts
 * that come before `host` in the list. */
unsigned psd_hosts_beside(const struct psd_hosts *hosts, unsigned host, unsigned *nth);

#endif
