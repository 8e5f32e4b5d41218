/* List of the hosts (workers and separate servers) of a cluster, from a file or from mpirun, and the number of this
 * process among them. The file has one line for each host: ADDRESS, ADDRESS:PORT or [IPV6]:PORT. Workers come first,
 * then separate servers; '#' begins a comment. Hosts with the same address and without a port get consecutive ports. */
#ifndef PSD_REAL_HOSTS_H
#define PSD_REAL_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/error.h"
#include "real/net/mesh.h"

enum { PSD_HOSTS_FIRST_PORT = 7411, PSD_HOSTS_MAX = 4096 };

struct psd_hosts {
	struct psd_mesh_host *hosts;
	unsigned *lines; /* line of each host in the file, from 1; shape (n_hosts) */
	unsigned n_hosts;
};

/* Reads a hosts file into *hosts, which psd_hosts_release() releases. PSD_EFILE: the file cannot be read; PSD_EINVAL,
 * with the line: it is malformed; PSD_ENOMEM. */
enum psd_status psd_hosts_load(struct psd_hosts *hosts, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Reads a list of hosts from `length` bytes of text, as in a hosts file. path: name of the file in errors. Statuses as
 * psd_hosts_load(). */
enum psd_status psd_hosts_parse(struct psd_hosts *hosts, const char *path, const char *text, size_t length,
				struct psd_error *err) PSD_MUST_CHECK;
void psd_hosts_release(struct psd_hosts *hosts);

/* Checks that host `self` can resolve the names that it needs: its own, and those of the hosts before it, to which it
 * connects. path: the hosts file, for errors. PSD_EINVAL, with the line: a name cannot be resolved; PSD_ENOMEM. */
enum psd_status psd_hosts_look_up(const struct psd_hosts *hosts, const char *path, unsigned self,
				  struct psd_error *err) PSD_MUST_CHECK;

/* True if the name of host `self` is resolved to a loopback address although another host's name is not. Then other
 * machines cannot connect to it. Resolves names, which may take a while. */
bool psd_hosts_is_hidden(const struct psd_hosts *hosts, unsigned self);

/* Fills *hosts with one host at 127.0.0.1 for each process that mpirun has started on this machine. It has no hosts if
 * this process was started alone. PSD_EINVAL: the environment shows several processes without a hosts file, of srun, of
 * torchrun, or of mpirun on several machines; PSD_ENOMEM. */
enum psd_status psd_hosts_launched(struct psd_hosts *hosts, struct psd_error *err) PSD_MUST_CHECK;
/* Reads the rank of this process from the environment variables of mpirun, torchrun, srun and others. PSD_EINVAL: no
 * such variable is set, the rank is not a number below n_hosts, or the number of started processes is not n_hosts. */
enum psd_status psd_hosts_find_rank(unsigned n_hosts, unsigned *rank, struct psd_error *err) PSD_MUST_CHECK;
/* Finds the rank of this process, to be printed in front of its lines, as far as the environment variables tell it.
 * is_one_of_several: the caller knows that the process is one of several hosts; false: the environment must show that.
 * Returns false if no rank was found. */
bool psd_hosts_guess_rank(bool is_one_of_several, unsigned *rank);
/* Returns the number of hosts that have the same address as `host`, itself included. *nth: number of these hosts before
 * `host` in the list. */
unsigned psd_hosts_beside(const struct psd_hosts *hosts, unsigned host, unsigned *nth);

#endif
