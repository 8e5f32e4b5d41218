/* What a worker costs its machine while it is measured: all of it, which a replay keeps small, and what training takes beside its operations. */
#include <math.h>

#include "real/worker_parts.h"

/* The event loop, what hands over operations and takes them back, and reading ahead, until now; what operations took is left out. */
static double beside_sec(const struct psd_worker *worker)
{
	double sec = psd_machine_own_sec() - worker->jobs_cpu_sec;

	if (worker->has_device)
		sec += psd_lane_cpu_sec(&worker->device);
	if (worker->has_cpu)
		sec += psd_lane_cpu_sec(&worker->cpu);
	if (worker->feed)
		sec += psd_feed_cpu_sec(worker->feed);
	return sec;
}

void psd_worker_watch_load(struct psd_worker *worker)
{
	if (worker->has_load_from ||
	    psd_interpreter_iteration(&worker->interpreter, 0) < psd_worker_first_measured(worker->options->n_iterations))
		return;
	worker->beside_from_sec = beside_sec(worker);
	worker->own_from_sec = psd_machine_own_sec();
	worker->has_load_from = psd_machine_read(&worker->machine_from);
}

void psd_worker_measure_load(const struct psd_worker *worker, struct psd_worker_result *result)
{
	const uint32_t n = worker->options->n_iterations, n_measured = n - psd_worker_first_measured(n);
	struct psd_machine_time until;

	if (!worker->has_load_from)
		return;
	result->beside_cpu_sec = fmax(0.0, beside_sec(worker) - worker->beside_from_sec) / n_measured;
	if (!psd_machine_read(&until))
		return;
	result->own_cpu_sec = psd_machine_own_sec() - worker->own_from_sec;
	if (worker->self == 0) /* the links are all workers', so one of them counts what they take */
		result->own_cpu_sec += until.interrupt_sec - worker->machine_from.interrupt_sec;
	result->busy_cpu_sec = until.busy_sec - worker->machine_from.busy_sec;
	result->stolen_cpu_sec = until.stolen_sec - worker->machine_from.stolen_sec;
	result->machine_cpu_sec = until.all_sec - worker->machine_from.all_sec;
}
