/* Runs a case as one host of a cluster whose other hosts are started elsewhere. Refuses to start them and to shape
 * links. */
#ifndef PSD_REAL_JOIN_H
#define PSD_REAL_JOIN_H

#include "real/cluster/hosts.h"
#include "real/session/worker.h"

/* Runs the host `self` in this process, after filling in the options' number, hosts and terms. options->listener: a
 * socket of psd_mesh_listen(), which stays open to keep its port between two cases; -1: none. Statuses as psd_launch().
 * *result: the whole run's on host 0, elsewhere that host's own. */
enum psd_status psd_join(const struct psd_worker_options *options, const struct psd_hosts *hosts, unsigned self,
			 struct psd_worker_result *result, struct psd_error *err) PSD_MUST_CHECK;

#endif
