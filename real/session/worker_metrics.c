/* Measurements of a run. */
#include <math.h>
#include <stdlib.h>

#include "engine/base/sort.h"
#include "engine/program/outcome.h"
#include "real/base/fit.h"
#include "real/session/worker_parts.h"

uint32_t psd_worker_warmed_up(uint32_t n_measured)
{
	return n_measured + PSD_WARMUP_ITERATIONS;
}

static uint64_t per_iteration(const struct psd_worker *worker, uint64_t bytes)
{
	const struct psd_iterations measured = psd_worker_measured(worker);

	return bytes / (measured.end - measured.first);
}

struct iteration {
	double sec;		/* the first field, by which they are sorted */
	struct psd_parts parts; /* parts of sec */
};

static double paused_sec(const struct psd_worker *worker, struct psd_iterations those)
{
	double sec = 0.0;

	for (uint32_t i = those.first; i < those.end; i++)
		sec += worker->pauses.sec[i];
	return sec;
}

/* A unit of iterations, from `first` on. */
static struct psd_iterations measured_as_one(const struct psd_worker *worker, uint32_t first)
{
	const uint32_t end = worker->host.options->n_iterations, unit = psd_worker_unit(worker);
	const uint32_t next = (first / unit + 1) * unit;

	return (struct psd_iterations){.first = first, .end = next < end ? next : end};
}

/* Mean of a unit, without the time spent in a pause. */
static struct iteration iteration_of(const struct psd_worker *worker, struct psd_iterations those)
{
	const struct psd_interpreter *interpreter = &worker->interpreter;
	const double n = those.end - those.first,
		     before_sec = those.first > 0 ? interpreter->next_sec[those.first - 1] : 0.0;
	const double pause_sec = paused_sec(worker, those) / n;
	struct iteration iteration = {
		.sec = (interpreter->next_sec[those.end - 1] - before_sec) / n - pause_sec,
		.parts = psd_account_parts(&interpreter->account, 0, those.first, those.end),
	};

	iteration.parts.other_waiting_sec -= pause_sec;
	return iteration;
}

/* Median, or mean of the middle two: unlike medians of each part, its parts add up. */
static struct iteration middle(struct iteration *iterations, uint32_t n)
{
	const struct iteration *low = &iterations[(n - 1) / 2], *high = &iterations[n / 2];

	struct iteration middle = {0};

	qsort(iterations, n, sizeof(*iterations), psd_compare_doubles);
	middle.sec = (low->sec + high->sec) / 2;
	psd_parts_add(&middle.parts, &low->parts, 0.5);
	psd_parts_add(&middle.parts, &high->parts, 0.5);
	return middle;
}

/* Iterations delayed by a pause are left out, or taken without the delay if there are no others. */
enum psd_status psd_worker_measure(struct psd_worker *worker, struct psd_worker_result *result, struct psd_error *err)
{
	const uint32_t first = psd_worker_measured(worker).first, n = psd_worker_measured(worker).end;
	struct iteration *iterations = calloc(n, sizeof(*iterations)), typical;
	uint32_t n_all = 0, n_paused = 0, n_measured = 0;

	if (!iterations)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a worker");
	for (uint32_t i = first; i < n; i = measured_as_one(worker, i).end) {
		n_paused += paused_sec(worker, measured_as_one(worker, i)) > 0.0;
		n_all++;
	}
	for (uint32_t i = first; i < n; i = measured_as_one(worker, i).end)
		if (paused_sec(worker, measured_as_one(worker, i)) <= 0.0 || n_paused == n_all)
			iterations[n_measured++] = iteration_of(worker, measured_as_one(worker, i));
	typical = middle(iterations, n_measured);
	*result = (struct psd_worker_result){
		.iteration_sec = typical.sec,
		.parts = typical.parts,
		.own_compute_sec = typical.parts.compute_sec,
		.sent_bytes_per_node = per_iteration(worker, worker->sent_bytes),
		.received_bytes_per_node = per_iteration(worker, worker->received_bytes),
		.last_loss = worker->losses.last,
		.n_measured = n - first,
		.n_needed = psd_worker_needed(worker),
		.late_sec = psd_fit_summary(worker->timers.late_sec + first, n - first).median,
	};
	psd_work_count_updates(&worker->work, result);
	psd_work_count_early(&worker->work, result);
	psd_work_count_ages(&worker->work, &result->ages);
	psd_reads_add(&worker->interpreter.reads, 0, first, 1, result->reads);
	psd_worker_measure_load(worker, result);
	free(iterations);
	return PSD_OK;
}

/* Adds the reads of the other hosts. */
static void gather_reads(const struct psd_worker *worker, struct psd_worker_result *result)
{
	for (unsigned h = 0; h < worker->host.n_hosts; h++)
		for (unsigned age = 0; age < PSD_READ_AGES && h != worker->host.self; age++)
			result->reads[age] += worker->peers[h].bye.reads[age];
}

/* Adds the updates of the other hosts' shards. */
static void gather_ages(const struct psd_worker *worker, struct psd_gradient_ages *all)
{
	for (unsigned h = 0; h < worker->host.n_hosts; h++) {
		const struct psd_gradient_ages *ages = &worker->peers[h].bye.ages;

		if (h == worker->host.self)
			continue;
		all->n_updates += ages->n_updates;
		all->sum += ages->sum;
		all->most = ages->most > all->most ? ages->most : all->most;
		all->most_ahead = ages->most_ahead > all->most_ahead ? ages->most_ahead : all->most_ahead;
	}
}

/* Asynchronous training: the cluster's rate in samples is the sum of its workers'. */
static void gather_rates(const struct psd_worker *worker, struct psd_worker_result *result)
{
	struct psd_mean_iteration mean = {0};

	for (unsigned w = 0; w < worker->host.layout->workers; w++)
		psd_mean_iteration_add(&mean, w == worker->host.self ? &result->parts : &worker->peers[w].bye.parts,
				       psd_plan_batch(worker->host.plan, w));
	result->iteration_sec = psd_mean_iteration_sec(mean);
	result->parts = psd_mean_iteration_parts(mean);
}

/* Takes the parts of the worker whose device works longest, as a prediction does. Its waits then fill up worker 0's
 * iteration. If its work alone is longer, all parts are scaled to iteration_sec. */
static void gather_parts(const struct psd_worker *worker, struct psd_worker_result *result)
{
	struct psd_parts most = result->parts;

	for (unsigned w = 0; w < worker->host.layout->workers; w++) {
		const struct psd_parts *parts = &worker->peers[w].bye.parts;

		if (w != worker->host.self && psd_parts_work_sec(parts) > psd_parts_work_sec(&most))
			most = *parts;
	}
	const double idle_sec = result->iteration_sec - psd_parts_work_sec(&most);

	if (idle_sec < 0.0) {
		result->parts = psd_parts_scaled(most, result->iteration_sec);
		return;
	}
	result->parts = most;
	result->parts.exposed_comm_sec = fmin(most.exposed_comm_sec, idle_sec);
	result->parts.other_waiting_sec = idle_sec - result->parts.exposed_comm_sec;
}

static void gather_compute(const struct psd_worker *worker, const struct psd_worker_result *result)
{
	double *compute_sec = worker->host.options->compute_sec;

	for (unsigned h = 0; h < worker->host.n_hosts && compute_sec; h++)
		compute_sec[h] =
			h == worker->host.self ? result->own_compute_sec : worker->peers[h].bye.parts.compute_sec;
}

/* Takes the node with most, summed over its hosts. */
void psd_worker_gather(struct psd_worker *worker, struct psd_worker_result *result)
{
	const struct psd_worker_result own = *result;

	result->sent_bytes_per_node = result->received_bytes_per_node = 0;
	for (unsigned node = 0; node < psd_layout_nodes(worker->host.layout); node++) {
		uint64_t sent_bytes = 0, received_bytes = 0;

		for (unsigned h = 0; h < worker->host.n_hosts; h++) {
			const struct psd_wire_bye *bye = &worker->peers[h].bye;

			if (psd_layout_node(worker->host.layout, h) != node)
				continue;
			sent_bytes += h == worker->host.self ? own.sent_bytes_per_node : bye->sent_bytes;
			received_bytes += h == worker->host.self ? own.received_bytes_per_node : bye->received_bytes;
		}
		if (sent_bytes > result->sent_bytes_per_node)
			result->sent_bytes_per_node = sent_bytes;
		if (received_bytes > result->received_bytes_per_node)
			result->received_bytes_per_node = received_bytes;
	}
	gather_reads(worker, result);
	gather_ages(worker, &result->ages);
	if (worker->host.plan->async)
		gather_rates(worker, result);
	else
		gather_parts(worker, result);
	gather_compute(worker, result);
}
