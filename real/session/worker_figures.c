/* What a run has measured. */
#include <stdlib.h>

#include "real/session/worker_parts.h"

enum { WARMUP_ITERATIONS = 2 }; /* not measured: first touches of memory, windows of TCP */

static int compare_doubles(const void *left, const void *right)
{
	const double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/* Sorts. */
static double median(double *values, uint32_t n)
{
	if (n == 0)
		return 0.0;
	qsort(values, n, sizeof(*values), compare_doubles);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

uint32_t psd_worker_first_measured(uint32_t n_iterations)
{
	return n_iterations > WARMUP_ITERATIONS ? WARMUP_ITERATIONS : n_iterations - 1;
}

uint32_t psd_worker_warmed_up(uint32_t n_measured)
{
	return n_measured + WARMUP_ITERATIONS;
}

static uint64_t per_iteration(const struct psd_worker *worker, uint64_t bytes)
{
	return bytes / worker->options->n_iterations;
}

/* Iterations that a test kept waiting are left out, or taken without the wait where there are no others. */
enum psd_status psd_worker_measure(struct psd_worker *worker, struct psd_worker_result *result, struct psd_error *err)
{
	const uint32_t n = worker->options->n_iterations;
	const uint32_t first = psd_worker_first_measured(n);
	const double *next_sec = worker->interpreter.next_sec, *pause_sec = worker->tests.pause_sec;
	double *iteration_sec = calloc(2 * (size_t)n, sizeof(*iteration_sec)), *compute_sec = iteration_sec + n;
	uint32_t n_tested = 0, n_measured = 0;

	if (!iteration_sec)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a worker");
	for (uint32_t i = first; i < n; i++)
		n_tested += pause_sec[i] > 0.0;
	for (uint32_t i = first; i < n; i++) {
		if (pause_sec[i] > 0.0 && n_tested < n - first)
			continue;
		iteration_sec[n_measured] = next_sec[i] - (i > 0 ? next_sec[i - 1] : 0.0) - pause_sec[i];
		compute_sec[n_measured++] = worker->compute_sec[i];
	}
	*result = (struct psd_worker_result){
		.iteration_sec = median(iteration_sec, n_measured),
		.compute_sec = median(compute_sec, n_measured),
		.sent_bytes_per_node = per_iteration(worker, worker->sent_bytes),
		.received_bytes_per_node = per_iteration(worker, worker->received_bytes),
		.last_loss = worker->last_loss,
		.late_sec = median(worker->late_sec + first, n - first),
	};
	psd_worker_measure_load(worker, result);
	free(iteration_sec);
	return PSD_OK;
}

/* The node with most, of the sums over its hosts. */
void psd_worker_gather(struct psd_worker *worker, struct psd_worker_result *result)
{
	const struct psd_worker_result own = *result;

	result->sent_bytes_per_node = result->received_bytes_per_node = 0;
	for (unsigned node = 0; node < psd_layout_nodes(worker->layout); node++) {
		uint64_t sent_bytes = 0, received_bytes = 0;

		for (unsigned h = 0; h < worker->n_hosts; h++) {
			const struct psd_wire_bye *bye = &worker->peers[h].bye;

			if (psd_layout_node(worker->layout, h) != node)
				continue;
			sent_bytes += h == worker->self ? own.sent_bytes_per_node : bye->sent_bytes;
			received_bytes += h == worker->self ? own.received_bytes_per_node : bye->received_bytes;
			if (h != worker->self && bye->compute_sec > result->compute_sec)
				result->compute_sec = bye->compute_sec;
		}
		if (sent_bytes > result->sent_bytes_per_node)
			result->sent_bytes_per_node = sent_bytes;
		if (received_bytes > result->received_bytes_per_node)
			result->received_bytes_per_node = received_bytes;
	}
}
