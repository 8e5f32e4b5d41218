#include "real/cluster/join.h"

#include "real/base/affinity.h"
#include "real/net/socket.h"
#include "real/session/terms.h"

enum psd_status psd_join(const struct psd_launch_options *options, const struct psd_hosts *hosts, unsigned self,
			 struct psd_worker_result *result, struct psd_error *err)
{
	struct psd_text terms = {.bytes = NULL};
	struct psd_worker_options worker = {
		.made = options->made,
		.train = options->train,
		.n_iterations = options->n_iterations,
		.self = self,
		.hosts = hosts->hosts,
		.listener = -1,
		.connect_sec = options->connect_sec,
		.remark = options->remark,
		.stall_sec = options->stall_sec,
		.is_tested = options->is_tested,
		.progress = options->progress,
		.finished = options->finished,
		.context = options->context,
	};
	enum psd_status status = psd_worker_check(options->made->matter->scenario, err);
	unsigned n_beside, nth;

	if (!status)
		status = psd_worker_check_optimiser(options->made, err);
	if (!status)
		status = psd_terms_add(&terms, options->made, options->train, options->n_iterations, err);
	if (!status) {
		worker.terms = terms.bytes;
		psd_socket_allow_many();
		n_beside = psd_hosts_beside(hosts, self, &nth);
		(void)psd_affinity_pin(nth, n_beside); /* unpinned works as well */
		status = psd_worker_run(&worker, result, err);
	}
	psd_text_release(&terms);
	return status;
}
