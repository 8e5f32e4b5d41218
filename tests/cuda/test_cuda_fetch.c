/* Samples that come to the CUDA device while it computes on those before them: each iteration has its own, and every
 * wait that sees to it is needed. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/apart_helper.h"
#include "tests/cuda/cuda_net.h"
#include "tests/cuda/stand_in.h"

/* fp32 sums in another order. */
#define TOLERANCE_RATIO 1e-4

enum { ITERATIONS = 6, BATCH = 2, SEEDS = 24, N_SLOTS = 2 };

static const char text[] = "name: m\ninput: {channels: 3, height: 7, width: 6}\nlayers:\n"
			   "  - {name: c, kind: conv, outputs: 4, kernel: 3}\n  - {name: r, kind: relu}\n"
			   "  - {name: top, kind: inner-product, outputs: 3}\n  - {name: loss, kind: softmax-loss}\n";

/* The first gradient of each iteration, here and on the device, which computes beside what is copied. */
struct run {
	struct net net;
	struct cuda_net cuda;
	uint64_t n_values; /* in the images of a batch */
	float *own;	   /* images of the first iteration; of iteration i they are i + 1 times as large */
	float *images[ITERATIONS];
	int32_t *labels;
	float *expected[ITERATIONS], *there[ITERATIONS];
};

static void *take_host(struct run *run, uint64_t bytes)
{
	struct psd_error err = {0};
	void *block;

	cr_assert_eq(psd_device_cuda.take_host(run->cuda.device, bytes, &block, &err), PSD_OK, "%s", err.text);
	return block;
}

static void fill_images(const struct run *run, unsigned i, float *images)
{
	for (uint64_t e = 0; e < run->n_values; e++)
		images[e] = run->own[e] * (float)(i + 1);
}

/* *run stays where it is until close_run(). */
static void open_run(struct run *run)
{
	uint64_t elements;

	run->net = net_make(text, BATCH);
	elements = run->net.graph->tensors[0].elements;
	run->cuda = cuda_net_open(&run->net, PSD_LAYERS_FP32);
	run->n_values = BATCH * net_image_elements(&run->net);
	run->own = run->net.images;
	run->labels = take_host(run, BATCH * sizeof(*run->labels));
	memcpy(run->labels, run->net.labels, BATCH * sizeof(*run->labels));
	for (unsigned i = 0; i < ITERATIONS; i++) {
		run->images[i] = take_host(run, run->n_values * sizeof(float));
		fill_images(run, i, run->images[i]);
		run->there[i] = cuda_net_take(run->cuda.device, run->net.gradients[0], elements);
		run->net.batch.images = run->images[i];
		(void)net_run(&run->net);
		run->expected[i] = malloc(elements * sizeof(float));
		cr_assert(run->expected[i]);
		memcpy(run->expected[i], run->net.gradients[0], elements * sizeof(float));
	}
}

static void close_run(struct run *run)
{
	for (unsigned i = 0; i < ITERATIONS; i++)
		free(run->expected[i]);
	cuda_net_close(&run->cuda);
	net_release(&run->net);
}

static void fetch(struct run *run, const float *images)
{
	const struct psd_batch batch = {.images = images, .labels = run->labels};
	struct psd_error err = {0};

	cr_assert_eq(psd_device_cuda.fetch(run->cuda.device, &batch, &err), PSD_OK, "%s", err.text);
}

static void begin(struct run *run, const float *images, float *gradient, bool is_fetched)
{
	struct psd_batch batch = run->net.batch;
	struct psd_error err = {0};

	run->cuda.gradients[0] = gradient;
	batch.images = images;
	batch.labels = run->labels;
	batch.gradients = run->cuda.gradients;
	batch.is_fetched = is_fetched;
	cr_assert_eq(psd_device_cuda.begin(run->cuda.device, &batch, &err), PSD_OK, "%s", err.text);
}

static void pass(struct run *run, bool is_back)
{
	const unsigned n = run->net.graph->n_layers;
	struct psd_error err = {0};

	for (unsigned l = 0; l < n; l++)
		cr_assert_eq((is_back ? psd_device_cuda.backward
				      : psd_device_cuda.forward)(run->cuda.device, is_back ? n - 1 - l : l, &err),
			     PSD_OK, "%s", err.text);
}

/* That the device's gradients are those of the processor. */
static bool is_as_expected(struct run *run)
{
	const uint64_t elements = run->net.graph->tensors[0].elements;
	float *got = malloc(elements * sizeof(*got));
	bool is = got;

	cuda_net_wait(run->cuda.device, PSD_STREAM_COMPUTE);
	for (unsigned i = 0; i < ITERATIONS && is; i++) {
		cuda_net_get(run->cuda.device, got, run->there[i], elements * sizeof(*got));
		is = cuda_net_distance(got, run->expected[i], elements) < TOLERANCE_RATIO;
	}
	free(got);
	return is;
}

/* Without any wait of the caller's: images of each iteration have memory of their own. */
static void run_ahead(struct run *run)
{
	fetch(run, run->images[0]);
	for (unsigned i = 0; i < ITERATIONS; i++) {
		begin(run, run->images[i], run->there[i], true);
		pass(run, false);
		if (i + 1 < ITERATIONS)
			fetch(run, run->images[i + 1]);
		pass(run, true);
	}
}

Test(cuda_fetch, samples_that_are_fetched_ahead_are_those_of_their_iteration)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct run run;

		open_run(&run);
		psd_stand_in_set_seed(seed);
		run_ahead(&run);
		cr_expect(is_as_expected(&run), "seed %llu", (unsigned long long)seed);
		close_run(&run);
	}
}

/* The batches of a test begin while a fetched one waits for its turn: they leave it where it is. */
Test(cuda_fetch, a_test_between_leaves_what_was_fetched)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct run run;

		open_run(&run);
		psd_stand_in_set_seed(seed);
		for (unsigned i = 0; i < ITERATIONS; i++) {
			if (i == 0 || i == 3) /* nobody had read them in time */
				fetch(&run, run.images[i]);
			for (unsigned t = 0; t < 2; t++) {
				begin(&run, run.images[(i + 3) % ITERATIONS], run.there[i], false);
				pass(&run, false);
			}
			begin(&run, run.images[i], run.there[i], true);
			pass(&run, false);
			pass(&run, true);
			if (i + 1 < ITERATIONS && i + 1 != 3)
				fetch(&run, run.images[i + 1]);
		}
		cr_expect(is_as_expected(&run), "seed %llu", (unsigned long long)seed);
		close_run(&run);
	}
}

/* ---- the purpose of each wait ---- */

struct trial {
	uint64_t seed;
	unsigned left_out; /* the number of a wait of run_ahead(), from 1 */
};

static void leave_out(const void *argument)
{
	const struct trial *trial = argument;
	struct run run;

	open_run(&run);
	psd_stand_in_set_seed(trial->seed);
	psd_stand_in_skip_one_wait(trial->left_out);
	run_ahead(&run);
	APART_CHECK(is_as_expected(&run));
	close_run(&run);
}

static bool notices(unsigned left_out)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		const struct trial trial = {seed, left_out};

		if (!run_apart(leave_out, &trial).is_well)
			return true;
	}
	return false;
}

/* In turn: the copy waits until its slot is free, the layers until the copy has arrived. The first copy waits for an
 * event that was never recorded, which is no wait, and the second for a slot that nothing was in. */
Test(cuda_fetch, each_wait_that_is_left_out_is_noticed)
{
	for (unsigned i = 0; i < ITERATIONS; i++) {
		const unsigned copy = 2 * i, layers = 2 * i + 1;

		cr_expect(i < N_SLOTS || notices(copy), "the copy of iteration %u", i);
		cr_expect(notices(layers), "the layers of iteration %u", i);
	}
}

/* ---- memory of the host's ---- */

/* Two blocks in turn, as a feed has them. waits: until what the next images replace has left. */
static bool run_in_turn(struct run *run, bool waits)
{
	float *const blocks[2] = {take_host(run, run->n_values * sizeof(float)),
				  take_host(run, run->n_values * sizeof(float))};
	uint64_t marks[2] = {0, 0};
	struct psd_error err = {0};

	for (unsigned i = 0; i < ITERATIONS; i++) {
		if (waits && i >= 2)
			cr_assert_eq(psd_device_cuda.wait(run->cuda.device, PSD_STREAM_SAMPLES, marks[i % 2], &err),
				     PSD_OK, "%s", err.text);
		fill_images(run, i, blocks[i % 2]);
		fetch(run, blocks[i % 2]);
		marks[i % 2] = psd_device_cuda.mark(run->cuda.device, PSD_STREAM_SAMPLES);
		begin(run, blocks[i % 2], run->there[i], true);
		pass(run, false);
		pass(run, true);
	}
	return is_as_expected(run);
}

static void write_too_early(const void *argument)
{
	const uint64_t *seed = argument;
	struct run run;

	open_run(&run);
	psd_stand_in_set_seed(*seed);
	APART_CHECK(run_in_turn(&run, false));
	close_run(&run);
}

Test(cuda_fetch, memory_of_samples_may_be_written_when_its_mark_is_over)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct run run;

		open_run(&run);
		psd_stand_in_set_seed(seed);
		cr_expect(run_in_turn(&run, true), "seed %llu", (unsigned long long)seed);
		close_run(&run);
	}
}

Test(cuda_fetch, memory_of_samples_that_is_written_before_is_noticed)
{
	bool is_noticed = false;

	for (uint64_t seed = 1; seed <= SEEDS && !is_noticed; seed++)
		is_noticed = !run_apart(write_too_early, &seed).is_well;
	cr_expect(is_noticed, "nothing is late enough to tell");
}
