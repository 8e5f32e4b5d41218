/* Takes part in a case as one host of a cluster whose other hosts are processes elsewhere. Refuses to start them, and
 * to shape links: they are as the cluster has them. */
#ifndef PSD_REAL_JOIN_H
#define PSD_REAL_JOIN_H

#include "real/cluster/hosts.h"
#include "real/session/worker.h"

/* In this process, which is hosts[self] of as many as the case has; who it is, the hosts and the terms are filled in.
 * options->listener: of psd_mesh_listen(), stays open, so that nobody else takes its place between two cases; -1: there
 * is none yet. Statuses as psd_launch(). *result: whole on host 0, elsewhere that host's own. */
enum psd_status psd_join(const struct psd_worker_options *options, const struct psd_hosts *hosts, unsigned self,
			 struct psd_worker_result *result, struct psd_error *err) PSD_MUST_CHECK;

#endif
