#define _GNU_SOURCE
#include "real/cluster/join.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "real/base/affinity.h"
#include "real/base/console.h"
#include "real/keep/agreed_terms.h"
#include "real/net/socket.h"

/* Joining closes its listener, so it gets a copy. */
static enum psd_status share_listener(struct psd_worker_options *worker, struct psd_error *err)
{
	if (worker->listener < 0)
		return PSD_OK;
	worker->listener = fcntl(worker->listener, F_DUPFD_CLOEXEC, 0);
	return worker->listener < 0 ? psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot listen: %s", strerror(errno))
				    : PSD_OK;
}

enum psd_status psd_join(const struct psd_worker_options *options, const struct psd_hosts *hosts, unsigned self,
			 struct psd_worker_result *result, struct psd_error *err)
{
	struct psd_text terms = {.bytes = NULL};
	struct psd_worker_options worker = *options;
	enum psd_status status = psd_worker_check(worker.made->costed->scenario, err);
	unsigned n_beside;

	if (!status)
		status = psd_worker_check_optimiser(worker.made, err);
	if (!status)
		psd_text_add(&terms, "build: %s\n", worker.build ? worker.build : "-");
	if (!status)
		status = psd_terms_add(&terms, worker.made, worker.train, worker.n_iterations, err);
	psd_socket_allow_many();
	if (!status)
		status = share_listener(&worker, err);
	if (!status) {
		worker.self = self;
		worker.hosts = hosts->hosts;
		worker.terms = terms.bytes;
		n_beside = psd_hosts_beside(hosts, self, &worker.place);
		(void)psd_affinity_pin(worker.place, n_beside); /* unpinned works as well */
		psd_console_explain_crashes();
		status = psd_worker_run(&worker, result, err);
	}
	psd_text_release(&terms);
	return status;
}
