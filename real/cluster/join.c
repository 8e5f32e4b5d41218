#include "real/cluster/join.h"

#include "real/base/affinity.h"
#include "real/net/socket.h"
#include "real/session/terms.h"

enum psd_status psd_join(const struct psd_worker_options *options, const struct psd_hosts *hosts, unsigned self,
			 struct psd_worker_result *result, struct psd_error *err)
{
	struct psd_text terms = {.bytes = NULL};
	struct psd_worker_options worker = *options;
	enum psd_status status = psd_worker_check(worker.made->matter->scenario, err);
	unsigned n_beside;

	if (!status)
		status = psd_worker_check_optimiser(worker.made, err);
	if (!status)
		status = psd_terms_add(&terms, worker.made, worker.train, worker.n_iterations, err);
	if (!status) {
		worker.self = self;
		worker.hosts = hosts->hosts;
		worker.terms = terms.bytes;
		worker.listener = -1;
		psd_socket_allow_many();
		n_beside = psd_hosts_beside(hosts, self, &worker.place);
		(void)psd_affinity_pin(worker.place, n_beside); /* unpinned works as well */
		status = psd_worker_run(&worker, result, err);
	}
	psd_text_release(&terms);
	return status;
}
