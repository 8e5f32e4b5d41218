/* A file that names the hosts of a cluster, and which of them this process is. A line for each: ADDRESS, ADDRESS:PORT
 * or [IPV6]:PORT; workers first, separate servers after them; '#' begins a comment. Hosts of one address without ports
 * of their own get one each. */
#ifndef PSD_REAL_HOSTS_H
#define PSD_REAL_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/error.h"
#include "real/net/mesh.h"

enum { PSD_HOSTS_FIRST_PORT = 7411, PSD_HOSTS_MAX = 4096 };

struct psd_hosts {
	struct psd_mesh_host *hosts;
	unsigned *lines; /* of the file */
	unsigned n_hosts;
};

/* *hosts is filled on success, released by psd_hosts_release(). PSD_EFILE, PSD_EINVAL with place, PSD_ENOMEM. */
enum psd_status psd_hosts_load(struct psd_hosts *hosts, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* The same of a text that stands for the file. */
enum psd_status psd_hosts_parse(struct psd_hosts *hosts, const char *path, const char *text, size_t length,
				struct psd_error *err) PSD_MUST_CHECK;
void psd_hosts_release(struct psd_hosts *hosts);

/* Whether the names are known of those that host `self` needs: its own, and those of lower numbers, which it connects
 * to. path: of the file. PSD_EINVAL with place, PSD_ENOMEM. */
enum psd_status psd_hosts_look_up(const struct psd_hosts *hosts, const char *path, unsigned self,
				  struct psd_error *err) PSD_MUST_CHECK;

/* Whether the name of host `self` stands for a loopback address on this machine, and another host's for none: from
 * other machines nobody connects to it. Looks names up. */
bool psd_hosts_is_hidden(const struct psd_hosts *hosts, unsigned self);

/* Those that mpirun has started all on this machine: 127.0.0.1 as often. None where it has started but one, or none. As
 * psd_hosts_parse(); PSD_EINVAL: some are elsewhere, or srun has started others before this process. */
enum psd_status psd_hosts_launched(struct psd_hosts *hosts, struct psd_error *err) PSD_MUST_CHECK;
/* What a launcher calls this process: OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK or SLURM_PROCID of the environment.
 * PSD_EINVAL: there is none, it is no number, or the cluster has no such host. */
enum psd_status psd_hosts_find_rank(unsigned n_hosts, unsigned *rank, struct psd_error *err) PSD_MUST_CHECK;
/* How many hosts have the address of `host`, and how many of them come before it. */
unsigned psd_hosts_beside(const struct psd_hosts *hosts, unsigned host, unsigned *nth);

#endif
