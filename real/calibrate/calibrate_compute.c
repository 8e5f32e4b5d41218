/* Measures layers, rebuilds and the rest of an iteration with all workers that a run would have on their own cores, and
 * reductions and updates of one worker while the others compute. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/program/program.h"
#include "real/base/affinity.h"
#include "real/base/fit.h"
#include "real/base/machine.h"
#include "real/calibrate/calibrate_parts.h"
#include "real/calibrate/core_load.h"
#include "real/calibrate/layer_times.h"
#include "real/calibrate/shared_results.h"
#include "real/cluster/launch.h"
#include "real/device/cpu/cpu.h"
#include "real/work/shard.h"

enum {
	REPEATS = 7,
	HOST_ELEMENTS = 8 << 20, /* 32 MiB: no cache keeps them from one repeat to the next */
	MOST_PARTS = 8,		 /* gradients that are summed; each further one takes as long */
	MOST_ITERATIONS = 1000,
};

#define TRAINING_SEC 1.0 /* seconds of layers in a training */

#define BITS_OF_ELEMENT 32.0

static void wait_for_all(void *context)
{
	psd_shared_results_meet(context);
}

/* Summary of REPEATS values from `first` on. */
static struct psd_summary summarise_member(const struct psd_shared_results *results, unsigned member, unsigned first)
{
	double values[REPEATS];

	memcpy(values, psd_shared_results_values(results, member) + first, sizeof(values));
	return psd_fit_summary(values, REPEATS);
}

/* ---- layers ---- */

/* A member's values: iterations, rebuilds, the FLOPs of one rebuild, then forward and backward of each layer. */
enum { AT_ITERATIONS = 0, AT_REBUILDS = REPEATS, AT_FLOPS = 2 * REPEATS, AT_LAYERS };

static enum psd_status fill_layers(struct psd_layer_times *times, double *values, struct psd_error *err)
{
	PSD_TRY(psd_layer_times_measure(times, err));
	PSD_TRY(psd_layer_times_rebuild(times, values + AT_REBUILDS, values + AT_FLOPS, err));
	for (unsigned l = 0; l < times->graph->n_layers; l++) {
		values[AT_LAYERS + 2 * l] = psd_layer_times_sec(times, times->forward_sec, l);
		values[AT_LAYERS + 2 * l + 1] = psd_layer_times_sec(times, times->backward_sec, l);
	}
	memcpy(values + AT_ITERATIONS, times->turn_sec, REPEATS * sizeof(*values));
	return PSD_OK;
}

static enum psd_status time_layers(void *context, unsigned member, struct psd_error *err)
{
	struct psd_shared_results *results = context;
	const struct psd_calibrate_options *options = results->calibration->options;
	const struct psd_layer_times_options times_options = {
		.kind = options->device,
		.number = member,
		.arithmetic = options->costed->scenario->train.arithmetic,
		.is_without_graphs = !options->costed->scenario->train.has_graphs,
		.may_differ = !options->costed->scenario->train.is_deterministic,
		.batch = options->costed->scenario->batch_per_worker,
		.n_threads = options->costed->scenario->train.threads,
		.n_repeats = REPEATS,
		.begin = wait_for_all,
		.context = results,
	};
	struct psd_layer_times times;

	(void)psd_affinity_pin(member, results->calibration->n_busy);
	PSD_TRY(psd_layer_times_open(&times, &options->costed->graph, &times_options, err));
	const enum psd_status status = fill_layers(&times, psd_shared_results_values(results, member), err);
	if (member == 0)
		options->device->describe(times.device, results->calibration->device_text);
	psd_layer_times_release(&times);
	return status;
}

/* The worker on the slowest core, which the others wait for. */
static unsigned find_slowest(const struct psd_shared_results *results)
{
	unsigned slowest = 0;
	double most_sec = 0.0;

	for (unsigned m = 0; m < results->n_members; m++) {
		const double sec = summarise_member(results, m, AT_ITERATIONS).median;

		slowest = sec > most_sec ? m : slowest;
		most_sec = fmax(most_sec, sec);
	}
	return slowest;
}

static void keep_layers(const struct psd_calibration *calibration, const double *values)
{
	for (unsigned l = 0; l < calibration->options->costed->graph.n_layers; l++) {
		calibration->forward_sec[l] = values[AT_LAYERS + 2 * l];
		calibration->backward_sec[l] = values[AT_LAYERS + 2 * l + 1];
	}
}

/* Factor from an iteration's jitter to that of one operation. Jitters of operations are independent, so an iteration's
 * is the root of the sum of their squares. */
static double operations_per_iteration(const struct psd_calibration *calibration)
{
	const struct psd_graph *graph = &calibration->options->costed->graph;
	double sum_sec = 0.0, sum_of_squares = 0.0;

	for (unsigned first = 0, end; first < graph->n_layers; first = end) {
		double forward_sec = 0.0, backward_sec = 0.0;

		end = psd_program_layers(graph, first).end;
		for (unsigned l = first; l < end; l++) {
			forward_sec += calibration->forward_sec[l];
			backward_sec += calibration->backward_sec[l];
		}
		sum_sec += forward_sec + backward_sec;
		sum_of_squares += pow(forward_sec, 2.0) + pow(backward_sec, 2.0);
	}
	return sum_of_squares > 0.0 ? sum_sec / sqrt(sum_of_squares) : 1.0;
}

static void keep_jitter(struct psd_calibration *calibration, const struct psd_shared_results *results)
{
	const double ratio =
		psd_fit_jitter(results->values + AT_ITERATIONS, results->n_values, results->n_members, REPEATS);
	const struct psd_summary jitter = {.median = ratio * operations_per_iteration(calibration),
					   .n_samples = results->n_members * REPEATS};

	/* replaced with the seconds of layers, whatever its spread */
	calibration->measured[PSD_QUANTITY_JITTER_RATIO].is_there = false;
	psd_calibrate_note(calibration, PSD_QUANTITY_JITTER_RATIO, jitter, "one operation, %u at a time",
			   results->n_members);
}

/* The rate of `work` from its seconds; the spread stays. */
static struct psd_summary rate_of(double work, struct psd_summary sec)
{
	return (struct psd_summary){work / sec.median, sec.spread_ratio, sec.n_samples};
}

enum psd_status psd_calibrate_layers(struct psd_calibration *calibration, struct psd_error *err)
{
	const struct psd_calibrate_options *options = calibration->options;
	struct psd_shared_results results = {
		.calibration = calibration,
		.n_members = calibration->n_busy,
		.n_values = AT_LAYERS + 2 * options->costed->graph.n_layers,
	};
	enum psd_status status = psd_shared_results_run(&results, time_layers, err);

	if (!status) {
		const unsigned slowest = find_slowest(&results);
		const struct psd_summary sec = summarise_member(&results, slowest, AT_ITERATIONS);
		const double flops = results.values[AT_FLOPS];
		const unsigned batch = options->costed->scenario->batch_per_worker;

		if (psd_calibrate_note(calibration, PSD_QUANTITY_LAYERS_SEC, sec, "batch %u, %u at a time", batch,
				       results.n_members)) {
			keep_layers(calibration, psd_shared_results_values(&results, slowest));
			keep_jitter(calibration, &results);
		}
		if (flops > 0.0)
			psd_calibrate_note(calibration, PSD_QUANTITY_REBUILD,
					   rate_of(flops, summarise_member(&results, slowest, AT_REBUILDS)),
					   "%u samples more", batch * (PSD_LAYER_TIMES_REBUILD_WORKERS - 1));
	}
	psd_shared_results_close(&results);
	return status;
}

/* ---- the rest of an iteration ---- */

/* A cluster of one worker, which sends nothing. */
static struct psd_point alone(const struct psd_calibration *calibration)
{
	struct psd_point point = calibration->options->point;

	point.nodes = point.workers = point.workers_per_node = 1;
	return point;
}

static uint32_t training_iterations(const struct psd_calibration *calibration)
{
	const double n = ceil(TRAINING_SEC / calibration->measured[PSD_QUANTITY_LAYERS_SEC].value);

	return (uint32_t)fmin(fmax(n, REPEATS), MOST_ITERATIONS);
}

static enum psd_status launch_alone(const struct psd_shared_results *results, unsigned member,
				    const struct psd_case *made, struct psd_error *err)
{
	const struct psd_calibrate_options *options = results->calibration->options;
	const struct psd_launch_options launch_options = {
		.worker.made = made,
		.worker.train = &made->costed->scenario->train,
		.worker.device = options->device,
		.worker.place = member,
		.worker.n_iterations = psd_worker_warmed_up(training_iterations(results->calibration)),
		.cluster_kind = PSD_CLUSTER_LOOPBACK,
		.worker.connect_sec = PSD_LAUNCH_CONNECT_SEC,
		.worker.stall_sec = options->stall_sec,
		.stop_signal = options->stop_signal,
	};
	double *const values = psd_shared_results_values(results, member);
	struct psd_worker_result result;

	PSD_TRY(psd_launch(&launch_options, &result, err));
	values[0] = result.beside_cpu_sec, values[1] = result.beside_spread_ratio;
	return PSD_OK;
}

/* A member's values: processor seconds of an iteration beside its operations, and their spread. */
static enum psd_status time_beside(void *context, unsigned member, struct psd_error *err)
{
	struct psd_shared_results *results = context;
	const struct psd_costed_model *costed = results->calibration->options->costed;
	struct psd_system system = costed->scenario->systems[0];
	struct psd_case made;

	system.sync = PSD_SYNC_PS;
	system.servers = 0;
	system.finds_fuse = false;
	system.fuse_bytes = 0;
	(void)psd_affinity_pin(member, results->calibration->n_busy);
	PSD_TRY(psd_case_make(&made, costed, &system, alone(results->calibration), err));
	const enum psd_status status = launch_alone(results, member, &made, err);
	psd_case_release(&made);
	return status;
}

static struct psd_summary summarise_beside(const struct psd_shared_results *results)
{
	struct psd_summary summary = {.n_samples = results->n_members * training_iterations(results->calibration)};

	for (unsigned m = 0; m < results->n_members; m++) {
		summary.median += psd_shared_results_values(results, m)[0] / results->n_members;
		summary.spread_ratio = fmax(summary.spread_ratio, psd_shared_results_values(results, m)[1]);
	}
	return summary;
}

enum psd_status psd_calibrate_beside(struct psd_calibration *calibration, struct psd_error *err)
{
	struct psd_shared_results results = {
		.calibration = calibration, .n_members = calibration->n_busy, .n_values = 2};
	enum psd_status status = psd_shared_results_run(&results, time_beside, err);

	if (!status)
		psd_calibrate_note(calibration, PSD_QUANTITY_BESIDE_SEC, summarise_beside(&results),
				   "%u iterations, %u at a time", (unsigned)training_iterations(calibration),
				   calibration->n_busy);
	psd_shared_results_close(&results);
	return status;
}

/* ---- host ---- */

static unsigned parts_of(const struct psd_calibration *calibration)
{
	const unsigned workers = calibration->options->point.workers;

	return workers < MOST_PARTS ? workers : MOST_PARTS;
}

/* Each (HOST_ELEMENTS). */
struct arrays {
	float *weight;
	struct psd_moments moments;
	const float *parts[MOST_PARTS];
};

static bool allocate_arrays(struct arrays *arrays, unsigned n_parts)
{
	*arrays = (struct arrays){
		.weight = psd_layer_times_values(HOST_ELEMENTS, 0.02f),
		.moments = {psd_layer_times_values(HOST_ELEMENTS, 0.02f), calloc(HOST_ELEMENTS, sizeof(float))}};
	bool is_complete = arrays->weight && arrays->moments.history && arrays->moments.squares;
	for (unsigned p = 0; p < n_parts; p++) {
		arrays->parts[p] = psd_layer_times_values(HOST_ELEMENTS, 0.02f);
		is_complete = is_complete && arrays->parts[p];
	}
	return is_complete;
}

static void free_arrays(struct arrays *arrays)
{
	for (unsigned p = 0; p < MOST_PARTS; p++)
		free((void *)(uintptr_t)arrays->parts[p]);
	free(arrays->weight);
	free(arrays->moments.history);
	free(arrays->moments.squares);
}

/* Measures a reduction, then an update, in processor time, which other programs disturb less than wall time. */
static void time_arrays(const struct psd_shared_results *results, const struct arrays *arrays, double values[])
{
	const struct psd_update update =
		psd_solver_update(&results->calibration->options->costed->scenario->train, 1, 0);
	struct psd_shard_part parts[MOST_PARTS];

	for (unsigned p = 0; p < MOST_PARTS; p++)
		parts[p] = (struct psd_shard_part){arrays->parts[p], &psd_encoding_fp32};
	double start_sec = psd_machine_own_sec();
	psd_shard_reduce(&update, parts, parts_of(results->calibration), 1.0f, arrays->weight, arrays->moments,
			 HOST_ELEMENTS);
	values[0] = psd_machine_own_sec() - start_sec;
	start_sec = psd_machine_own_sec();
	psd_update_apply(&update, arrays->weight, arrays->parts[0], arrays->moments, HOST_ELEMENTS);
	values[REPEATS] = psd_machine_own_sec() - start_sec;
}

/* The member's values: seconds of REPEATS reductions, then of REPEATS updates. */
static enum psd_status time_host(void *context, unsigned member, struct psd_error *err)
{
	const struct psd_shared_results *results = context;
	struct arrays arrays;
	const bool is_complete = allocate_arrays(&arrays, parts_of(results->calibration));

	(void)psd_affinity_pin(member, results->calibration->n_busy);
	for (unsigned i = 0; i < REPEATS && is_complete; i++)
		time_arrays(results, &arrays, psd_shared_results_values(results, member) + i);
	free_arrays(&arrays);
	return is_complete ? PSD_OK
			   : psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a measurement of the host");
}

static void note_host(struct psd_calibration *calibration, const struct psd_shared_results *results)
{
	const double bits = BITS_OF_ELEMENT * HOST_ELEMENTS;
	const unsigned n_parts = parts_of(calibration);

	psd_calibrate_note(calibration, PSD_QUANTITY_REDUCE_BPS,
			   rate_of(n_parts * bits, summarise_member(results, 0, 0)), "%u gradients of 32 MiB", n_parts);
	if (calibration->options->device->has_own_memory)
		return; /* the device makes updates itself */
	psd_calibrate_note(calibration, PSD_QUANTITY_UPDATE_BPS, rate_of(bits, summarise_member(results, 0, REPEATS)),
			   "32 MiB");
}

/* One worker reduces while the others compute, as in wait-free training. If two cores that share a memory bus reduce at
 * once, each takes half as long again; a sequential schedule may come closer to that. With layers on a device the other
 * cores are idle. */
enum psd_status psd_calibrate_host(struct psd_calibration *calibration, struct psd_error *err)
{
	struct psd_shared_results results = {.calibration = calibration, .n_members = 1, .n_values = 2 * REPEATS};
	const unsigned n_cores = calibration->options->device->has_own_memory ? 1 : calibration->n_busy;
	struct psd_core_load neighbours;

	PSD_TRY(psd_core_load_start(&neighbours, 1, n_cores, err));
	enum psd_status status = psd_shared_results_run(&results, time_host, err);
	if (!status)
		status = psd_core_load_check(&neighbours, err);
	if (!status)
		note_host(calibration, &results);
	psd_shared_results_close(&results);
	psd_core_load_stop(&neighbours);
	return status;
}
