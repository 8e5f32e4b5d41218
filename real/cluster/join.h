/* Runs one system of a scenario on one host of a cluster. The other hosts are started elsewhere. This module neither
 * starts them nor limits the rates of links. */
#ifndef PSD_REAL_JOIN_H
#define PSD_REAL_JOIN_H

#include "real/cluster/hosts.h"
#include "real/session/worker.h"

/* Runs host number `self` in this process. It overwrites the options `self`, `hosts` and `terms`. options->listener:
 * socket of psd_mesh_listen(); -1: none. The socket is not closed, so that the port stays reserved between two runs.
 * *result: on host 0 measurements of the whole run; on other hosts measurements of that host. Statuses as
 * psd_launch(). */
enum psd_status psd_join(const struct psd_worker_options *options, const struct psd_hosts *hosts, unsigned self,
			 struct psd_worker_result *result, struct psd_error *err) PSD_MUST_CHECK;

#endif
