/* What one worker's compute takes: seconds of forward and backward per iteration on one thread, and the rate beside that of one large
 * matrix product, which is the practical bound of the machine. Seconds are the thread's processor time: a neighbour on the machine
 * counts only by the caches it takes. `cpu MODEL BATCH` prints the layers of one model. `cpu --profile MODEL.yaml BATCH` prints a compute profile
 * (traces/profiles/README.md) in elapsed seconds, so that several at a time tell what workers that share a machine take. */
#define _DEFAULT_SOURCE

#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "engine/graph.h"
#include "real/cpu.h"

#define WARM_UPS	      1
#define REPEATS		      5
#define PRODUCT_SIDE	      1536
#define PRODUCT_FLOPS_UNKNOWN 1e9 /* nothing to rebuild: not used */
#define HUGE_PAGE_BYTES	      (UINT64_C(2) << 20)

struct run {
	struct psd_graph graph;
	struct psd_compute *compute;
	float **parameters, **gradients;
	float *images;
	int32_t *labels;
	double *forward_sec, *backward_sec; /* per layer, of each repeat, ascending once measured */
	double iteration_sec;		    /* the best */
	double median_sec;
};

static clockid_t clock_id = CLOCK_THREAD_CPUTIME_ID;

static double now_sec(void)
{
	struct timespec now;

	clock_gettime(clock_id, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Values in [-scale, scale], the same in each run. */
static void fill(float *values, uint64_t count, float scale)
{
	uint32_t state = 1;

	for (uint64_t i = 0; i < count; i++) {
		state = state * 1664525u + 1013904223u;
		values[i] = scale * ((float)(state >> 8) * 0x1p-23f - 1.0f);
	}
}

static float *take(uint64_t count)
{
	const uint64_t bytes = (count * sizeof(float) + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
	float *values = aligned_alloc(HUGE_PAGE_BYTES, bytes);

	if (!values)
		abort();
	(void)madvise(values, bytes, MADV_HUGEPAGE);
	fill(values, count, 0.02f);
	return values;
}

static void check(enum psd_status status, const struct psd_error *err)
{
	if (!status)
		return;
	fprintf(stderr, "%s\n", err->text);
	exit(1);
}

/* path: of a model file */
static void open_run(struct run *run, const char *path, uint32_t batch)
{
	const struct psd_compute_options options = {.batch = batch, .n_threads = 1, .seed = 1, .loss_divisor = batch};
	struct psd_shape shape;
	struct psd_error err;

	*run = (struct run){0};
	check(psd_graph_load(&run->graph, path, &err), &err);
	shape = run->graph.layers[0].shape;
	run->parameters = calloc(run->graph.n_tensors, sizeof(*run->parameters));
	run->gradients = calloc(run->graph.n_tensors, sizeof(*run->gradients));
	run->forward_sec = calloc(run->graph.n_layers * REPEATS, sizeof(*run->forward_sec));
	run->backward_sec = calloc(run->graph.n_layers * REPEATS, sizeof(*run->backward_sec));
	run->labels = calloc(batch, sizeof(*run->labels));
	if (!run->parameters || !run->gradients || !run->forward_sec || !run->backward_sec || !run->labels)
		abort();
	for (unsigned t = 0; t < run->graph.n_tensors; t++) {
		run->parameters[t] = take(run->graph.tensors[t].elements);
		run->gradients[t] = take(run->graph.tensors[t].elements);
	}
	run->images = take((uint64_t)batch * shape.channels * shape.height * shape.width);
	fill(run->images, (uint64_t)batch * shape.channels * shape.height * shape.width, 1.0f);
	check(psd_compute_cpu.open(&run->compute, &run->graph, &options, run->parameters, run->gradients, &err), &err);
}

static void keep_lowest(double *lowest_sec, double sec)
{
	if (*lowest_sec <= 0 || sec < *lowest_sec)
		*lowest_sec = sec;
}

/* repeat: where the layers' seconds are kept; those of the warm-up are overwritten */
static double iterate(struct run *run, uint64_t iteration, unsigned repeat)
{
	const struct psd_batch batch = {
		.images = run->images, .labels = run->labels, .iteration = iteration, .is_training = true};
	const double begin_sec = now_sec();
	struct psd_error err;

	psd_compute_cpu.begin(run->compute, &batch);
	for (unsigned l = 0; l < run->graph.n_layers; l++) {
		const double start_sec = now_sec();

		check(psd_compute_cpu.forward(run->compute, l, &err), &err);
		run->forward_sec[l * REPEATS + repeat] = now_sec() - start_sec;
	}
	for (unsigned l = run->graph.n_layers; l-- > 0;) {
		const double start_sec = now_sec();

		check(psd_compute_cpu.backward(run->compute, l, &err), &err);
		run->backward_sec[l * REPEATS + repeat] = now_sec() - start_sec;
	}
	return now_sec() - begin_sec;
}

static int by_value(const void *left, const void *right)
{
	const double one = *(const double *)left, other = *(const double *)right;

	return (one > other) - (one < other);
}

static void measure(struct run *run)
{
	double secs[REPEATS];

	for (unsigned i = 0; i < WARM_UPS; i++)
		(void)iterate(run, i, 0);
	for (unsigned i = 0; i < REPEATS; i++)
		secs[i] = iterate(run, WARM_UPS + i, i);
	qsort(secs, REPEATS, sizeof(secs[0]), by_value);
	for (unsigned l = 0; l < run->graph.n_layers; l++) {
		qsort(run->forward_sec + l * REPEATS, REPEATS, sizeof(*run->forward_sec), by_value);
		qsort(run->backward_sec + l * REPEATS, REPEATS, sizeof(*run->backward_sec), by_value);
	}
	run->iteration_sec = secs[0];
	run->median_sec = secs[REPEATS / 2];
}

static void close_run(struct run *run)
{
	psd_compute_cpu.close(run->compute);
	for (unsigned t = 0; t < run->graph.n_tensors; t++) {
		free(run->parameters[t]);
		free(run->gradients[t]);
	}
	free(run->parameters);
	free(run->gradients);
	free(run->forward_sec);
	free(run->backward_sec);
	free(run->images);
	free(run->labels);
	psd_graph_release(&run->graph);
}

/* FLOP/s of one large square product. */
static double measure_product(void)
{
	const uint64_t side = PRODUCT_SIDE, count = side * side;
	float *left = take(count), *right = take(count), *result = take(count);
	double lowest_sec = 0;

	for (unsigned i = 0; i < WARM_UPS + REPEATS; i++) {
		const double start_sec = now_sec();

		if (dnnl_sgemm('N', 'N', PRODUCT_SIDE, PRODUCT_SIDE, PRODUCT_SIDE, 1.0f, left, PRODUCT_SIDE, right, PRODUCT_SIDE,
			       0.0f, result, PRODUCT_SIDE))
			abort();
		keep_lowest(&lowest_sec, now_sec() - start_sec);
	}
	free(left);
	free(right);
	free(result);
	return 2.0 * (double)side * (double)count / lowest_sec;
}

static const char *path_of(const char *model, char *path, size_t room)
{
	snprintf(path, room, "scenarios/models/%s.yaml", model);
	return path;
}

static void print_row(const char *model, uint32_t batch, double product_flops_per_sec)
{
	struct run run;
	double flops;
	char path[256];

	open_run(&run, path_of(model, path, sizeof(path)), batch);
	measure(&run);
	flops = (double)batch * (double)(run.graph.forward_flops + run.graph.backward_flops);
	printf("%-14s,%6u,%15.4f,%15.4f,%14.1f,%11.1f,%11.1f,%11.2f,%15.1f,%8.1f\n", model, batch, run.iteration_sec,
	       run.median_sec, batch / run.iteration_sec, flops / run.iteration_sec * 1e-9, product_flops_per_sec * 1e-9,
	       flops / run.iteration_sec / product_flops_per_sec, (double)run.graph.activation_bytes * batch / 0x1p20,
	       (double)psd_compute_cpu.memory_bytes(run.compute) / 0x1p20);
	fflush(stdout);
	close_run(&run);
}

static void print_layers(const char *model, uint32_t batch)
{
	struct run run;
	char path[256];

	open_run(&run, path_of(model, path, sizeof(path)), batch);
	measure(&run);
	printf("%-16s,%-14s,%11s,%12s,%9s,%9s\n", "layer", "kind", "forward_sec", "backward_sec", "fwd_gflops", "bwd_gflops");
	for (unsigned l = 0; l < run.graph.n_layers; l++) {
		const struct psd_layer *layer = &run.graph.layers[l];
		const double forward_sec = run.forward_sec[l * REPEATS], backward_sec = run.backward_sec[l * REPEATS];

		printf("%-16s,%-14s,%11.5f,%12.5f,%10.1f,%10.1f\n", layer->name, psd_layer_kind_names[layer->kind], forward_sec,
		       backward_sec, 1e-9 * batch * (double)layer->forward_flops / forward_sec,
		       1e-9 * batch * (double)layer->backward_flops / backward_sec);
	}
	close_run(&run);
}

/* ---- a profile ---- */

/* FLOP/s at which the matrix of the largest inner product is rebuilt from the factors of two workers, cleared first as in a run. */
static double measure_rebuild(const struct run *run, uint32_t batch)
{
	const struct psd_layer *largest = NULL;
	const uint32_t samples = 2 * batch;
	uint64_t most = 0;
	double secs[WARM_UPS + REPEATS];

	for (unsigned l = 0; l < run->graph.n_layers; l++)
		if (run->graph.layers[l].kind == PSD_LAYER_INNER_PRODUCT &&
		    run->graph.tensors[run->graph.layers[l].first_tensor].elements > most) {
			largest = &run->graph.layers[l];
			most = run->graph.tensors[largest->first_tensor].elements;
		}
	if (!largest)
		return PRODUCT_FLOPS_UNKNOWN;
	const uint32_t columns = largest->outputs, rows = (uint32_t)(most / columns);
	float *const top = take((uint64_t)samples * columns), *const bottom = take((uint64_t)samples * rows);
	const struct psd_factors factors = {top, bottom};

	for (unsigned i = 0; i < WARM_UPS + REPEATS; i++) {
		float *const gradient = run->gradients[largest->first_tensor];
		const double start_sec = now_sec();

		memset(gradient, 0, most * sizeof(*gradient));
		psd_compute_cpu.rebuild(run->compute, &factors, samples, rows, columns, gradient, NULL);
		secs[i] = now_sec() - start_sec;
	}
	qsort(secs, WARM_UPS + REPEATS, sizeof(secs[0]), by_value);
	free(top);
	free(bottom);
	return 2.0 * samples * (double)most / secs[(WARM_UPS + REPEATS) / 2];
}

static void print_profile(const char *path, uint32_t batch)
{
	struct run run;

	clock_id = CLOCK_MONOTONIC;
	open_run(&run, path, batch);
	measure(&run);
	printf("# batch: %u\n# kind: measured\n# origin: psd, tests/bench/real/bench_cpu.c, medians of %u iterations\n", batch,
	       REPEATS);
	printf("# device: cpu\n# gemm_flops_per_sec: %.2fGFLOPS\nlayer,forward_sec,backward_sec\n",
	       1e-9 * measure_rebuild(&run, batch));
	for (unsigned l = 0; l < run.graph.n_layers; l++)
		if (run.graph.layers[l].kind != PSD_LAYER_INPUT)
			printf("%s,%.7f,%.7f\n", run.graph.layers[l].name, run.forward_sec[l * REPEATS + REPEATS / 2],
			       run.backward_sec[l * REPEATS + REPEATS / 2]);
	close_run(&run);
}

static uint32_t batch_of(const char *text)
{
	const uint64_t batch = strtoull(text, NULL, 10);

	if (batch < 1 || batch > UINT32_MAX)
		exit(2);
	return (uint32_t)batch;
}

int main(int argc, char **argv)
{
	double product_flops_per_sec;

	omp_set_num_threads(1);
	if (argc == 4 && !strcmp(argv[1], "--profile")) {
		print_profile(argv[2], batch_of(argv[3]));
		return 0;
	}
	if (argc == 3) {
		print_layers(argv[1], batch_of(argv[2]));
		return 0;
	}
	if (argc != 1) {
		fprintf(stderr, "usage: cpu [[--profile] MODEL BATCH]\n");
		return 2;
	}
	product_flops_per_sec = measure_product();
	printf("%-14s,%6s,%15s,%15s,%14s,%11s,%11s,%11s,%15s,%8s\n", "model", "batch", "lowest_cpu_sec", "median_cpu_sec",
	       "images_per_sec", "gflop_per_s", "sgemm_gflop", "sgemm_ratio", "activations_MiB", "held_MiB");
	print_row("alexnet", 32, product_flops_per_sec);
	print_row("vgg11", 8, product_flops_per_sec);
	print_row("vgg19", 4, product_flops_per_sec);
	print_row("cifar10-quick", 100, product_flops_per_sec);
	print_row("mlp", 64, product_flops_per_sec);
	print_row("resnet50", 4, product_flops_per_sec);
	return 0;
}
