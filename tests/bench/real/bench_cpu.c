/* What one worker's compute takes: seconds of forward and backward per iteration on one thread, and the rate beside that of one large
 * matrix product, which is the practical bound of the machine. Seconds are the thread's processor time: a neighbour on the machine
 * counts only by the caches it takes. `bench_cpu MODEL BATCH` prints the layers of one model. */
#define _DEFAULT_SOURCE

#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "engine/graph.h"
#include "real/cpu.h"

#define WARM_UPS	1
#define REPEATS		5
#define PRODUCT_SIDE	1536
#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)

struct run {
	struct psd_graph graph;
	struct psd_compute *compute;
	float **parameters, **gradients;
	float *images;
	int32_t *labels;
	double *forward_sec, *backward_sec; /* per layer, the best of the repeats */
	double iteration_sec;		    /* the best */
	double median_sec;
};

static double now_sec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
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

static void open_run(struct run *run, const char *model, uint32_t batch)
{
	const struct psd_compute_options options = {
		.batch = batch, .n_threads = 1, .seed = 1, .loss_divisor = batch, .is_deterministic = true};
	struct psd_shape shape;
	struct psd_error err;
	char path[256];

	snprintf(path, sizeof(path), "scenarios/models/%s.yaml", model);
	*run = (struct run){0};
	check(psd_graph_load(&run->graph, path, &err), &err);
	shape = run->graph.layers[0].shape;
	run->parameters = calloc(run->graph.n_tensors, sizeof(*run->parameters));
	run->gradients = calloc(run->graph.n_tensors, sizeof(*run->gradients));
	run->forward_sec = calloc(run->graph.n_layers, sizeof(*run->forward_sec));
	run->backward_sec = calloc(run->graph.n_layers, sizeof(*run->backward_sec));
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

static double iterate(struct run *run, uint64_t iteration, bool is_warm)
{
	const struct psd_batch batch = {
		.images = run->images, .labels = run->labels, .iteration = iteration, .is_training = true};
	const double begin_sec = now_sec();
	struct psd_error err;

	psd_compute_cpu.begin(run->compute, &batch);
	for (unsigned l = 0; l < run->graph.n_layers; l++) {
		const double start_sec = now_sec();

		check(psd_compute_cpu.forward(run->compute, l, &err), &err);
		if (is_warm)
			keep_lowest(&run->forward_sec[l], now_sec() - start_sec);
	}
	for (unsigned l = run->graph.n_layers; l-- > 0;) {
		const double start_sec = now_sec();

		check(psd_compute_cpu.backward(run->compute, l, &err), &err);
		if (is_warm)
			keep_lowest(&run->backward_sec[l], now_sec() - start_sec);
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
		(void)iterate(run, i, false);
	for (unsigned i = 0; i < REPEATS; i++)
		secs[i] = iterate(run, WARM_UPS + i, true);
	qsort(secs, REPEATS, sizeof(secs[0]), by_value);
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

static void print_row(const char *model, uint32_t batch, double product_flops_per_sec)
{
	struct run run;
	double flops;

	open_run(&run, model, batch);
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

	open_run(&run, model, batch);
	measure(&run);
	printf("%-16s,%-14s,%11s,%12s,%9s,%9s\n", "layer", "kind", "forward_sec", "backward_sec", "fwd_gflops", "bwd_gflops");
	for (unsigned l = 0; l < run.graph.n_layers; l++) {
		const struct psd_layer *layer = &run.graph.layers[l];

		printf("%-16s,%-14s,%11.5f,%12.5f,%10.1f,%10.1f\n", layer->name, psd_layer_kind_names[layer->kind],
		       run.forward_sec[l], run.backward_sec[l], 1e-9 * batch * (double)layer->forward_flops / run.forward_sec[l],
		       1e-9 * batch * (double)layer->backward_flops / run.backward_sec[l]);
	}
	close_run(&run);
}

int main(int argc, char **argv)
{
	double product_flops_per_sec;
	uint64_t batch;

	if (argc == 3) {
		batch = strtoull(argv[2], NULL, 10);
		if (batch < 1 || batch > UINT32_MAX)
			return 2;
		print_layers(argv[1], (uint32_t)batch);
		return 0;
	}
	if (argc != 1) {
		fprintf(stderr, "usage: bench_cpu [MODEL BATCH]\n");
		return 2;
	}
	omp_set_num_threads(1);
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
