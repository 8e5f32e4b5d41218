/* Processor time of a worker while measured: all of it for a replay, the part beside operations for training. */
#include <math.h>

#include "real/base/fit.h"
#include "real/session/worker_parts.h"

/* Time so far of the event loop and of handing operations over, without the operations. */
static double beside_sec(const struct psd_worker *worker)
{
	double sec = psd_machine_own_sec() - worker->load.jobs_cpu_sec;

	for (int r = 0; r < PSD_RESOURCES; r++)
		if (worker->jobs[r].has_lane)
			sec += psd_lane_cpu_sec(&worker->jobs[r].lane);
	return sec;
}

/* Called before anything of a new iteration begins. No layer executes on the processor then; a device's operations
 * begun ahead count in this iteration or the next, which the median ignores. */
void psd_worker_watch_load(struct psd_worker *worker, uint32_t iteration)
{
	if (iteration < worker->load.n_watched)
		return;
	while (worker->load.n_watched <= iteration)
		worker->load.beside_sec[worker->load.n_watched++] = beside_sec(worker);
	if (worker->load.is_watched || iteration < psd_worker_measured(worker).first)
		return;
	worker->load.is_watched = true;
	worker->load.own_from_sec = psd_machine_own_sec();
	worker->load.process_from_sec = psd_machine_process_sec();
	worker->load.has_machine_from = psd_machine_read(&worker->load.machine_from);
}

/* Over the measured iterations. The feed reads ahead, so its time is averaged over all. */
static void measure_beside(struct psd_worker *worker, struct psd_worker_result *result)
{
	const uint32_t n = worker->host.options->n_iterations, first = psd_worker_measured(worker).first;
	const double until_sec = beside_sec(worker);
	double *sec = worker->load.beside_sec;

	if (worker->load.n_watched < n)
		return;
	for (uint32_t i = first; i < n; i++)
		sec[i] = fmax(0.0, (i + 1 < n ? sec[i + 1] : until_sec) - sec[i]);
	struct psd_summary summary = psd_fit_summary(sec + first, n - first);
	result->beside_cpu_sec =
		summary.median + (psd_work_feed(&worker->work) ? psd_feed_cpu_sec(psd_work_feed(&worker->work)) /
									 (n - worker->host.options->first_iteration)
							       : 0.0);
	result->beside_spread_ratio = summary.spread_ratio;
}

void psd_worker_measure_load(struct psd_worker *worker, struct psd_worker_result *result)
{
	struct psd_machine_time until;

	if (!worker->load.is_watched)
		return;
	measure_beside(worker, result);
	if (!worker->load.has_machine_from || !psd_machine_read(&until))
		return;
	result->own_cpu_sec = psd_machine_own_sec() - worker->load.own_from_sec;
	if (worker->host.self == 0) /* one worker counts, since all share the links */
		result->own_cpu_sec += until.interrupt_sec - worker->load.machine_from.interrupt_sec;
	if (worker->is_beside_others && !worker->replay)
		result->real_cpu_sec = psd_machine_process_sec() - worker->load.process_from_sec;
	result->busy_cpu_sec = until.busy_sec - worker->load.machine_from.busy_sec;
	result->stolen_cpu_sec = until.stolen_sec - worker->load.machine_from.stolen_sec;
	result->machine_cpu_sec = until.all_sec - worker->load.machine_from.all_sec;
}
