/* Compute time of one worker: seconds of forward and backward per iteration on one thread, beside the rate of one large
 * matrix product, which is the practical bound of the machine. Seconds are the thread's processor time: a neighbour on
 * the machine counts only by the caches it uses. `cpu MODEL BATCH` prints the layers of one model. `cpu --profile
 * MODEL.yaml BATCH WORKERS` prints a compute profile (traces/profiles/README.md) in elapsed seconds. WORKERS workers
 * compute, each on a core; the slowest one counts, because the others wait for it. They begin every iteration together,
 * as in training, since layers that wait for memory take longer when they coincide. */
#define _DEFAULT_SOURCE

#include <math.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/model/graph.h"
#include "real/base/affinity.h"
#include "real/base/fit.h"
#include "real/calibrate/layer_times.h"
#include "real/cluster/process_group.h"
#include "real/device/cpu/cpu.h"

#define WARM_UPS	      1
#define REPEATS		      5
#define MOST_REPEATS	      100
#define PROFILE_SEC	      1.5
#define PRODUCT_SIDE	      1536
#define PRODUCT_FLOPS_UNKNOWN 1e9 /* nothing to rebuild: not used */

/* A graph and what was measured on it. */
struct run {
	struct psd_graph graph;
	struct psd_layer_times times;
};

static void check(enum psd_status status, const struct psd_error *err)
{
	if (!status)
		return;
	fprintf(stderr, "%s\n", err->text);
	exit(1);
}

/* path: a model file */
static enum psd_status measure_as(struct run *run, const char *path, const struct psd_layer_times_options *options,
				  struct psd_error *err)
{
	enum psd_status status = psd_graph_load(&run->graph, path, err);

	if (!status)
		status = psd_layer_times_open(&run->times, &run->graph, options, err);
	return status ? status : psd_layer_times_measure(&run->times, err);
}

static void measure(struct run *run, const char *path, uint32_t batch, unsigned n_repeats, bool is_cpu_time)
{
	const struct psd_layer_times_options options = {.kind = &psd_device_cpu,
							.batch = batch,
							.n_threads = 1,
							.n_repeats = n_repeats,
							.is_cpu_time = is_cpu_time};
	struct psd_error err;

	check(measure_as(run, path, &options, &err), &err);
}

static void close_run(struct run *run)
{
	psd_layer_times_release(&run->times);
	psd_graph_release(&run->graph);
}

static double now_sec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static float *take(uint64_t count)
{
	float *values = psd_layer_times_values(count, 0.02f);

	if (!values)
		abort();
	return values;
}

/* FLOP/s of one large square product. */
static double measure_product(void)
{
	const uint64_t side = PRODUCT_SIDE, count = side * side;
	float *left = take(count), *right = take(count), *result = take(count);
	double secs[WARM_UPS + REPEATS];

	for (unsigned i = 0; i < WARM_UPS + REPEATS; i++) {
		const double start_sec = now_sec();

		if (dnnl_sgemm('N', 'N', PRODUCT_SIDE, PRODUCT_SIDE, PRODUCT_SIDE, 1.0f, left, PRODUCT_SIDE, right,
			       PRODUCT_SIDE, 0.0f, result, PRODUCT_SIDE))
			abort();
		secs[i] = now_sec() - start_sec;
	}
	psd_fit_sort(secs, WARM_UPS + REPEATS);
	free(left);
	free(right);
	free(result);
	return 2.0 * (double)side * (double)count / secs[0];
}

static const char *path_of(const char *model, char *path, size_t room)
{
	snprintf(path, room, "scenarios/models/%s.yaml", model);
	return path;
}

static void print_row(const char *model, uint32_t batch, double product_flops_per_sec)
{
	struct run run;
	double lowest_sec, flops;
	char path[256];

	measure(&run, path_of(model, path, sizeof(path)), batch, REPEATS, true);
	lowest_sec = run.times.iteration_sec[0];
	flops = (double)batch * (double)(run.graph.forward_flops + run.graph.backward_flops);
	printf("%-14s,%6u,%15.4f,%15.4f,%14.1f,%11.1f,%11.1f,%11.2f,%15.1f,%8.1f\n", model, batch, lowest_sec,
	       run.times.iteration_sec[REPEATS / 2], batch / lowest_sec, flops / lowest_sec * 1e-9,
	       product_flops_per_sec * 1e-9, flops / lowest_sec / product_flops_per_sec,
	       (double)run.graph.activation_bytes * batch / 0x1p20,
	       (double)psd_device_cpu.memory_bytes(run.times.device) / 0x1p20);
	fflush(stdout);
	close_run(&run);
}

static void print_layers(const char *model, uint32_t batch)
{
	struct run run;
	char path[256];

	measure(&run, path_of(model, path, sizeof(path)), batch, REPEATS, true);
	printf("%-16s,%-14s,%11s,%12s,%9s,%9s\n", "layer", "kind", "forward_sec", "backward_sec", "fwd_gflops",
	       "bwd_gflops");
	for (unsigned l = 0; l < run.graph.n_layers; l++) {
		const struct psd_layer *layer = &run.graph.layers[l];
		const double forward_sec = run.times.forward_sec[l * REPEATS],
			     backward_sec = run.times.backward_sec[l * REPEATS];

		printf("%-16s,%-14s,%11.5f,%12.5f,%10.1f,%10.1f\n", layer->name, layer->kind->name, forward_sec,
		       backward_sec, 1e-9 * batch * (double)layer->forward_flops / forward_sec,
		       1e-9 * batch * (double)layer->backward_flops / backward_sec);
	}
	close_run(&run);
}

/* ---- a profile ---- */

/* FLOP/s at which samples of other workers are added where the matrix of the largest inner product is rebuilt. */
static enum psd_status measure_rebuild(struct run *run, double *flops_per_sec, struct psd_error *err)
{
	double secs[MOST_REPEATS], flops;
	const enum psd_status status = psd_layer_times_rebuild(&run->times, secs, &flops, err);

	if (!status)
		*flops_per_sec = flops > 0.0 ? flops / secs[run->times.options.n_repeats / 2] : PRODUCT_FLOPS_UNKNOWN;
	return status;
}

/* Iterations that fill PROFILE_SEC, as far as that is sensible: what disturbs a machine lasts longer than those of a
 * small model. */
static unsigned repeats_of(double iteration_sec)
{
	const double repeats = PROFILE_SEC / iteration_sec;

	return repeats < REPEATS ? REPEATS : repeats > MOST_REPEATS ? MOST_REPEATS : (unsigned)repeats;
}

/* Workers that begin their iterations together. */
struct team {
	const char *path;
	uint32_t batch;
	unsigned n_workers, n_repeats, n_layers;
	struct psd_process_group_barrier *barrier;
	double *values; /* shared, (n_workers, 2 n_layers + 1): forward and backward of each layer, the rate of rebuilds
			 */
};

static void meet(void *context)
{
	const struct team *team = context;

	psd_process_group_barrier_wait(team->barrier);
}

static enum psd_status work(void *context, unsigned worker, struct psd_error *err)
{
	struct team *team = context;
	const struct psd_layer_times_options options = {.kind = &psd_device_cpu,
							.batch = team->batch,
							.n_threads = 1,
							.n_repeats = team->n_repeats,
							.begin = meet,
							.context = team};
	double *values = team->values + (size_t)worker * (2 * team->n_layers + 1);
	struct run run;
	enum psd_status status;

	(void)psd_affinity_pin(worker, team->n_workers); /* more workers than processors share them */
	status = measure_as(&run, team->path, &options, err);
	if (!status)
		status = measure_rebuild(&run, &values[2 * team->n_layers], err);
	if (status)
		return status;
	for (unsigned l = 0; l < team->n_layers; l++) {
		values[2 * l] = psd_layer_times_sec(&run.times, run.times.forward_sec, l);
		values[2 * l + 1] = psd_layer_times_sec(&run.times, run.times.backward_sec, l);
	}
	close_run(&run);
	return PSD_OK;
}

static const double *values_of(const struct team *team, unsigned worker)
{
	return team->values + (size_t)worker * (2 * team->n_layers + 1);
}

/* Its values. */
static const double *slowest_of(const struct team *team)
{
	const double *slowest = team->values;
	double most_sec = 0.0;

	for (unsigned w = 0; w < team->n_workers; w++) {
		double sec = 0.0;

		for (unsigned i = 0; i < 2 * team->n_layers; i++)
			sec += values_of(team, w)[i];
		slowest = sec > most_sec ? values_of(team, w) : slowest;
		most_sec = sec > most_sec ? sec : most_sec;
	}
	return slowest;
}

static void measure_team(struct team *team)
{
	struct psd_error err;
	struct psd_process_group crew;

	team->values =
		psd_process_group_share((size_t)team->n_workers * (2 * team->n_layers + 1) * sizeof(*team->values));
	if (!team->values)
		abort();
	check(psd_process_group_barrier_open(&team->barrier, team->n_workers, &err), &err);
	check(psd_process_group_start(&crew, team->n_workers, work, team, &err), &err);
	check(psd_process_group_wait(&crew, NULL, INFINITY, &err), &err);
}

static void print_profile(const char *path, uint32_t batch, unsigned n_workers)
{
	struct team team = {.path = path, .batch = batch, .n_workers = n_workers};
	const double *values;
	struct run run;

	measure(&run, path, batch, 1, false);
	team.n_repeats = repeats_of(run.times.iteration_sec[0]);
	team.n_layers = run.graph.n_layers;
	psd_layer_times_release(&run.times);
	measure_team(&team);
	values = slowest_of(&team);
	printf("# batch: %u\n# kind: measured\n", batch);
	printf("# origin: psd, tests/bench/real/bench_cpu.c, the slowest of %u at a time, medians of %u iterations\n",
	       n_workers, team.n_repeats);
	printf("# device: cpu\n# gemm_flops_per_sec: %.2fGFLOPS\nlayer,forward_sec,backward_sec\n",
	       1e-9 * values[2 * team.n_layers]);
	for (unsigned l = 0; l < team.n_layers; l++)
		if (run.graph.layers[l].n_inputs > 0)
			printf("%s,%.7f,%.7f\n", run.graph.layers[l].name, values[2 * l], values[2 * l + 1]);
	psd_graph_release(&run.graph);
	psd_process_group_barrier_close(team.barrier);
	psd_process_group_unshare(team.values, (size_t)n_workers * (2 * team.n_layers + 1) * sizeof(*team.values));
}

/* A count of samples or workers. */
static uint32_t count_of(const char *text)
{
	const uint64_t count = strtoull(text, NULL, 10);

	if (count < 1 || count > UINT32_MAX)
		exit(2);
	return (uint32_t)count;
}

int main(int argc, char **argv)
{
	double product_flops_per_sec;

	omp_set_num_threads(1);
	if (argc == 5 && !strcmp(argv[1], "--profile")) {
		print_profile(argv[2], count_of(argv[3]), count_of(argv[4]));
		return 0;
	}
	if (argc == 3) {
		print_layers(argv[1], count_of(argv[2]));
		return 0;
	}
	if (argc != 1) {
		fprintf(stderr, "usage: cpu [MODEL BATCH | --profile MODEL.yaml BATCH WORKERS]\n");
		return 2;
	}
	product_flops_per_sec = measure_product();
	printf("%-14s,%6s,%15s,%15s,%14s,%11s,%11s,%11s,%15s,%8s\n", "model", "batch", "lowest_cpu_sec",
	       "median_cpu_sec", "images_per_sec", "gflop_per_s", "sgemm_gflop", "sgemm_ratio", "activations_MiB",
	       "held_MiB");
	print_row("alexnet", 32, product_flops_per_sec);
	print_row("vgg11", 8, product_flops_per_sec);
	print_row("vgg19", 4, product_flops_per_sec);
	print_row("cifar10-quick", 100, product_flops_per_sec);
	print_row("mlp", 64, product_flops_per_sec);
	print_row("resnet50", 4, product_flops_per_sec);
	return 0;
}
