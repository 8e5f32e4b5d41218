/* Every wait for the CUDA device is left out once, in whole runs and where the device is used alone: the outcome is
 * another one, or the wait's name is in a list of those of which nobody need notice each, with the reason. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/cuda/apart_helper.h"
#include "tests/cuda/cuda_net.h"
#include "tests/cuda/cuda_run.h"
#include "tests/cuda/labelled.h"
#include "tests/cuda/stand_in.h"
#include "tests/test_with.h"

enum { SEEDS = 8, MOST_WAITS = 400, MOST_NAMES = 32, NAME_MAX_BYTES = 32 };

static bool is_among(const char *const names[], const char *name)
{
	for (unsigned i = 0; names[i]; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* How many waits of a name were left out, and how many of these somebody noticed. */
struct tally {
	char name[NAME_MAX_BYTES];
	unsigned left_out, noticed;
};

static void count(struct tally tallies[MOST_NAMES], const char *name, bool is_noticed)
{
	unsigned i = 0;

	while (tallies[i].left_out > 0 && strcmp(tallies[i].name, name) != 0)
		i++;
	cr_assert_lt(i, MOST_NAMES);
	snprintf(tallies[i].name, sizeof(tallies[i].name), "%s", name);
	tallies[i].left_out++;
	tallies[i].noticed += is_noticed;
}

static unsigned noticed(const struct tally *tallies, const char *name)
{
	while (tallies->left_out > 0 && strcmp(tallies->name, name) != 0)
		tallies++;
	return tallies->noticed;
}

static void *share(size_t bytes)
{
	void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(block, MAP_FAILED);
	return block;
}

/* ---- whole runs ---- */

enum { ITERATIONS = 2, WORKERS = 2, STALL_SEC = 20 };

/* Nobody notices that they are left out. */
static const char *const redundant[] = {
	/* The next operation on the compute stream follows by itself, and nothing else needs these waits. They tell the
	 * session when each operation was over. */
	"forward", "rebuild", "apply", "apply chunks", "unpack", "nothing",
	/* The device's own waits. Here the session has waited for everything that they keep apart. Only a device alone
	 * needs them, see below. */
	"open", "load", "begin", "fetch", "close",
	/* Samples are read over those of the iteration before: of runs that wait for each other, each iteration begins
	 * after all that read the last one's. */
	"samples", NULL};

/* Waits of one name that a system does not all need, and how many it needs at least. A later wait for the same stream
 * precedes every user of the others. */
struct cover {
	const char *name; /* NULL: the last one */
	unsigned least;
};

static const struct cover none[] = {{NULL, 0}};
/* All pulls come in before the next iteration; what is fetched at the end is here already. */
static const struct cover of_servers[] = {{"copy in", 1}, {"parameters out", 0}, {NULL, 0}};
static const struct cover of_stages[] = {
	{"backward", 1}, {"copy out", 1}, {"copy in", 1}, {"parameters out", 0}, {NULL, 0}};
/* A collective of several layers needs the last one's wait; the waits for its slices end with the last one's. */
static const struct cover of_slices[] = {{"backward", 1}, {"copy out", 1}, {"copy in", 1}, {NULL, 0}};
/* Where values are rounded and widened on the compute stream, the wait for its results is needed. */
static const struct cover of_rounded[] = {{"backward", 0}, {"convert", 1}, {NULL, 0}};
/* Chunks are gathered on the compute stream; their norms and they themselves are copied one after the other. */
static const struct cover of_chunks[] = {{"backward", 0}, {"copy out", 1}, {"copy in", 1}, {NULL, 0}};

/* The values that leave are those of the last step on the compute stream; the values that come in follow there. */
static const struct cover of_local_steps[] = {{"backward", 0}, {"drift", 1}, {NULL, 0}};

/* Gradients of the last micro-batch are added where they are made. */
static const struct cover of_micro_batches[] = {{"backward", 0}, {"add", 1}, {NULL, 0}};

/* Blocks are packed where gradients are made, and unpacked there when they have come in. */
static const struct cover of_packed[] = {{"backward", 0}, {"pack", 1}, {"copy in", 1}, {NULL, 0}};

/* Products are applied on the stream where they are expanded. */
static const struct cover of_low_rank[] = {{"expand", 0}, {NULL, 0}};

/* The sums of the last iteration are applied by nobody. */
static const struct cover of_late[] = {{"backward", 1}, {"copy out", 1}, {"copy in", 1}, {NULL, 0}};

static const struct cover *find_cover(const struct cover covers[], const char *name)
{
	while (covers->name && strcmp(covers->name, name) != 0)
		covers++;
	return covers->name ? covers : NULL;
}

static bool need_not_be_noticed(const struct cover covers[], const char *name)
{
	return is_among(redundant, name) || find_cover(covers, name);
}

static double *losses; /* that processes share */

static void keep_loss(void *context, const struct psd_progress *progress)
{
	(void)context;
	losses[progress->iteration] = progress->loss;
}

struct outcome {
	struct training *training;
	double losses[ITERATIONS];
};

/* nth: the wait that is left out, 0: none. Workers are not compared: a wait that all leave out alike makes no
 * difference between them. */
static struct outcome run(const char *system, const struct psd_device_kind *kind, unsigned nth)
{
	static const char job[] = "iterations: 2, optimiser: {momentum: 0.9, weight_decay: 0.004}, compare_every: 0, "
				  "learning_rate: {policy: fixed, base: 0.05}";
	struct outcome outcome = {.training = cuda_run_make_job("smooth.yaml", job, system, WORKERS, 1, kind)};

	_Static_assert(ITERATIONS == 2, "as in the job");
	outcome.training->options.worker.progress = keep_loss;
	outcome.training->options.worker.stall_sec = STALL_SEC;
	memset(losses, 0, sizeof(outcome.losses));
	labelled_watch();
	psd_stand_in_skip_one_wait(nth);
	training_run(outcome.training);
	memcpy(outcome.losses, losses, sizeof(outcome.losses));
	return outcome;
}

static bool is_same(const struct outcome *outcome, const struct outcome *right)
{
	bool same = !outcome->training->status && memcmp(outcome->losses, right->losses, sizeof(right->losses)) == 0;

	for (unsigned w = 0; w < WORKERS; w++)
		same = same && training_is_same(outcome->training, w, right->training, w);
	return same;
}

/* Tries some seeds until somebody notices. False: the run has less waits. */
static bool leave_out_of_run(const char *system, const struct psd_device_kind *kind, unsigned nth,
			     const struct cover covers[], const struct outcome *right, struct tally *tallies)
{
	bool is_noticed = false, may_be_covered = false;

	for (unsigned seed = 1; seed <= SEEDS && !is_noticed && !may_be_covered; seed++) {
		struct outcome outcome;

		psd_stand_in_set_seed(seed);
		outcome = run(system, kind, nth);
		is_noticed = !is_same(&outcome, right);
		training_free(outcome.training);
		if (psd_stand_in_left_out() == 0) {
			cr_expect_not(is_noticed, "%s: differs without a wait left out", system);
			return false;
		}
		may_be_covered = need_not_be_noticed(covers, labelled_left_out());
	}
	cr_expect(is_noticed || may_be_covered, "%s: nobody notices that wait %u is left out, for '%s'", system, nth,
		  labelled_left_out());
	count(tallies, labelled_left_out(), is_noticed);
	return true;
}

static void check(const char *system, const struct cover covers[])
{
	const struct psd_device_kind kind = labelled_device();
	struct tally tallies[MOST_NAMES] = {0};
	struct outcome right;
	unsigned nth = 1;

	losses = share(sizeof(right.losses));
	right = run(system, &kind, 0);
	cr_assert_eq(right.training->status, PSD_OK, "%s: %s", system, right.training->err.text);
	while (leave_out_of_run(system, &kind, nth, covers, &right, tallies) && nth < MOST_WAITS)
		nth++;
	for (const struct cover *cover = covers; cover->name; cover++)
		cr_expect_geq(noticed(tallies, cover->name), cover->least, "%s: nobody notices one '%s'", system,
			      cover->name);
	training_free(right.training);
}

static enum psd_status (*open_any)(struct psd_device **device, const struct psd_device_options *options,
				   struct psd_error *err);

/* Worker 1 has all its waits. */
static enum psd_status open_with_all_waits(struct psd_device **device, const struct psd_device_options *options,
					   struct psd_error *err)
{
	if (options->number == 1)
		psd_stand_in_skip_one_wait(0);
	return open_any(device, options, err);
}

/* A worker that reads its parameters before their copy has ended differs from the other one. */
Test(cuda_waits, comparisons_need_one)
{
	static const char job[] = "iterations: 1, learning_rate: {policy: fixed, base: 0.05}";
	struct psd_device_kind kind = labelled_device();
	unsigned n_noticed = 0;

	open_any = kind.open;
	kind.open = open_with_all_waits;
	for (unsigned nth = 1; nth < MOST_WAITS; nth++) {
		struct training *training = cuda_run_make_job("smooth.yaml", job, "sync: ring", WORKERS, 1, &kind);

		psd_stand_in_set_seed(1);
		labelled_watch();
		psd_stand_in_skip_one_wait(nth);
		training_run(training);
		n_noticed += strstr(training->err.text, "worker 0 has other parameters than worker 1") != NULL;
		training_free(training);
		if (psd_stand_in_left_out() == 0)
			break;
	}
	cr_expect_gt(n_noticed, 0);
}

TEST_ROW(cuda_waits, servers_need_each, check("schedule: wait-free, sync: ps", of_servers))
TEST_ROW(cuda_waits, stages_need_each, check("schedule: sequential, sync: ps", of_stages))
TEST_ROW(cuda_waits, factors_need_each, check("schedule: wait-free, sync: sfb", none))
TEST_ROW(cuda_waits, the_hybrid_needs_each, check("schedule: wait-free, sync: hybrid", none))
TEST_ROW(cuda_waits, a_ring_needs_each, check("schedule: wait-free, sync: ring", none))
TEST_ROW(cuda_waits, a_ring_in_parts_needs_each,
	 check("schedule: wait-free, sync: ring, fuse: 1MiB, pipeline: 4KiB", of_slices))

/* A node's sum is read where it was copied to, and what all nodes have summed where it was spread to. */
TEST_ROW(cuda_waits, sums_inside_nodes_need_each, check("schedule: wait-free, sync: nccl-two-level", none))
TEST_ROW(cuda_waits, rounded_values_need_each,
	 check("schedule: wait-free, sync: ring, fuse: 1MiB, wire: fp16", of_rounded))
TEST_ROW(cuda_waits, chunks_need_each,
	 check("schedule: wait-free, sync: ring, fuse: 1MiB, sparse: {sparsity: 0.8, chunk: 70, warmup: 1}", of_chunks))
TEST_ROW(cuda_waits, local_steps_need_each,
	 check("schedule: wait-free, sync: ring, local_sgd: {steps: 2}", of_local_steps))
TEST_ROW(cuda_waits, compressed_gradients_need_each,
	 check("schedule: wait-free, sync: ps, compress: {by: one-bit}", of_packed))
TEST_ROW(cuda_waits, gradients_of_low_rank_need_each,
	 check("schedule: wait-free, sync: ring, low_rank: {rank: 2}", of_low_rank))
TEST_ROW(cuda_waits, micro_batches_need_each, check("schedule: wait-free, sync: ring, accumulate: 2", of_micro_batches))
TEST_ROW(cuda_waits, late_updates_need_each, check("schedule: wait-free, sync: ring, staleness: 1", of_late))

/* ---- a device alone ---- */

enum { ROUNDS = 4, BATCH = 2, PENDING_FLOATS = 4096, MOST_TENSORS = 8, FIRST_ELEMENTS = 8 * 3 * 9 };

#define NETWORK(more)                                                                                                  \
	"name: m\ninput: {channels: 3, height: 7, width: 6}\nlayers:\n"                                                \
	"  - {name: base, kind: conv, outputs: 8, kernel: 3, pad: 1}\n" more                                           \
	"  - {name: r, kind: tanh}\n  - {name: top, kind: inner-product, outputs: 3}\n"                                \
	"  - {name: loss, kind: softmax-loss}\n"

/* Results that depend on the device's waits. */
struct results {
	float gradients[ROUNDS][FIRST_ELEMENTS]; /* those of the first tensor */
	float states[MOST_TENSORS][8];
	double loss;
};

struct alone {
	struct net *net;
	unsigned nth;
	bool fails_to_begin;
	struct results *results; /* that processes share */
};

#define DO(call) APART_CHECK((call) == PSD_OK)

static void await(const struct psd_device_kind *kind, struct psd_device *device, enum psd_stream stream)
{
	DO(kind->wait(device, stream, kind->mark(device, stream), NULL));
}

static float *take_filled(const struct psd_device_kind *kind, struct psd_device *device, const float *values,
			  uint64_t count)
{
	void *block;

	DO(kind->take(device, count * sizeof(*values), &block, NULL));
	DO(kind->copy(device, PSD_STREAM_COPY_IN, block, values, count * sizeof(*values), NULL));
	await(kind, device, PSD_STREAM_COPY_IN);
	return block;
}

/* Rounds of a network one after the other, with images and a first gradient of their own. */
static void run_rounds(const struct alone *alone, const struct psd_device_kind *kind, struct psd_device *device,
		       float *gradients[], float *firsts[])
{
	const uint64_t count = BATCH * net_image_elements(alone->net);
	struct psd_batch batch = alone->net->batch;
	void *images;

	for (unsigned round = 0; round < ROUNDS; round++) {
		DO(kind->take_host(device, count * sizeof(float), &images, NULL));
		for (uint64_t e = 0; e < count; e++)
			((float *)images)[e] = alone->net->images[e] * (float)(round + 1);
		gradients[0] = firsts[round];
		batch.images = images;
		batch.gradients = gradients;
		DO(kind->begin(device, &batch, NULL));
		for (unsigned l = 0; l < alone->net->graph->n_layers; l++)
			DO(kind->forward(device, l, NULL));
		for (unsigned l = alone->net->graph->n_layers; l-- > 0;)
			DO(kind->backward(device, l, NULL));
	}
	await(kind, device, PSD_STREAM_COMPUTE);
}

/* Closes it while something is under way on every stream. */
static void close_busy(const struct alone *alone, const struct psd_device_kind *kind, struct psd_device *device)
{
	const uint64_t bytes = PENDING_FLOATS * sizeof(float);
	void *in, *out, *from, *to;

	DO(kind->take(device, bytes, &in, NULL));
	DO(kind->take(device, bytes, &out, NULL));
	DO(kind->take_host(device, bytes, &from, NULL));
	DO(kind->take_host(device, bytes, &to, NULL));
	DO(kind->copy(device, PSD_STREAM_COPY_OUT, to, out, bytes, NULL));
	DO(kind->copy(device, PSD_STREAM_COPY_IN, in, from, bytes, NULL));
	if (alone->fails_to_begin)
		psd_stand_in_fail("cudaEventRecord", 2, cudaErrorInvalidValue); /* behind the copies of samples */
	APART_CHECK((kind->begin(device, &alone->net->batch, NULL) == PSD_OK) != alone->fails_to_begin);
	for (unsigned l = 0; l < 2 && !alone->fails_to_begin; l++)
		DO(kind->forward(device, l, NULL));
	kind->close(device);
}

/* As the waits left them: what comes later is too late. */
static void keep_results(const struct alone *alone, const struct psd_device_kind *kind, struct psd_device *device,
			 float *firsts[])
{
	static struct results here;

	here.loss = kind->loss(device);
	for (unsigned round = 0; round < ROUNDS; round++)
		DO(kind->copy(device, PSD_STREAM_COPY_OUT, here.gradients[round], firsts[round],
			      FIRST_ELEMENTS * sizeof(float), NULL));
	await(kind, device, PSD_STREAM_COPY_OUT);
	for (unsigned s = 0; s < alone->net->graph->n_states; s++)
		DO(kind->read_state(device, s, here.states[s], NULL));
	*alone->results = here;
}

static void be_alone(const void *argument)
{
	const struct alone *alone = argument;
	const struct psd_graph *graph = alone->net->graph;
	const struct psd_device_options options = {.n_threads = 1};
	const struct psd_device_kind kind = labelled_device();
	float *parameters[MOST_TENSORS], *gradients[MOST_TENSORS], *firsts[ROUNDS];
	struct psd_device *device;

	DO(kind.open(&device, &options, NULL));
	for (unsigned round = 0; round < ROUNDS; round++)
		firsts[round] = take_filled(&kind, device, alone->net->gradients[0], FIRST_ELEMENTS);
	for (unsigned t = 0; t < graph->n_tensors; t++)
		gradients[t] = take_filled(&kind, device, alone->net->gradients[t], graph->tensors[t].elements);
	for (unsigned t = 0; t < graph->n_tensors; t++)
		parameters[t] = take_filled(&kind, device, alone->net->parameters[t], graph->tensors[t].elements);
	DO(kind.load(device, graph, &alone->net->options, parameters, gradients, NULL));
	run_rounds(alone, &kind, device, gradients, firsts);
	keep_results(alone, &kind, device, firsts);
	close_busy(alone, &kind, device);
	APART_CHECK(cudaDeviceSynchronize() == cudaSuccess); /* work left on the streams ends, or the process does */
}

/* False: it has less waits. */
static bool leave_out_alone(struct alone *alone, const struct results *right, struct tally *tallies)
{
	bool is_noticed = false;

	for (unsigned seed = 1; seed <= SEEDS && !is_noticed; seed++) {
		struct apart apart;

		psd_stand_in_set_seed(seed);
		memset(alone->results, 0, sizeof(*alone->results));
		labelled_watch();
		psd_stand_in_skip_one_wait(alone->nth);
		apart = run_apart(be_alone, alone);
		is_noticed = !apart.is_well || memcmp(alone->results, right, sizeof(*right)) != 0;
		if (psd_stand_in_left_out() == 0) {
			cr_assert_not(is_noticed, "wait %u: %s", alone->nth, apart.told);
			return false;
		}
	}
	count(tallies, labelled_left_out(), is_noticed);
	return true;
}

/* Counts for each name the waits whose absence is noticed. */
static void leave_out_each(const char *network, bool fails_to_begin, struct tally tallies[MOST_NAMES])
{
	struct net net = net_make(network, BATCH);
	struct alone alone = {.net = &net, .fails_to_begin = fails_to_begin, .results = share(sizeof(struct results))};
	struct results *right = malloc(sizeof(*right));
	struct apart apart;

	cr_assert(right && net.graph->tensors[0].elements == FIRST_ELEMENTS);
	labelled_watch();
	apart = run_apart(be_alone, &alone);
	cr_assert(apart.is_well, "%s", apart.told);
	memcpy(right, alone.results, sizeof(*right));
	alone.nth = 1;
	while (leave_out_alone(&alone, right, tallies) && alone.nth < MOST_WAITS)
		alone.nth++;
	free(right);
	net_release(&net);
}

static void check_alone(const char *network, bool fails_to_begin, const struct cover needs[])
{
	struct tally tallies[MOST_NAMES] = {0};

	leave_out_each(network, fails_to_begin, tallies);
	for (; needs->name; needs++)
		cr_expect_geq(noticed(tallies, needs->name), needs->least, "'%s': %u noticed", needs->name,
			      noticed(tallies, needs->name));
}

/* Waits for the compute stream that others follow are not needed. */
Test(cuda_waits, a_device_alone_needs_each)
{
	static const struct cover needs[] = {
		{"take", 6}, /* one for each parameter: the copy comes in behind the clearing */
		{"copy in", 1},
		/* Samples arrive before they are read, and after the last ones were: the first two find a free slot,
		 * and the second one's was never used. */
		{"begin", 2 * ROUNDS - 2},
		{"backward", 1},
		{"copy out", 1},
		{"read state", 1},
		{"close", 3}, /* samples are waited for by what reads them */
		{NULL, 0},
	};

	check_alone(NETWORK("  - {name: n, kind: batch-norm}\n"), false, needs);
}

/* Where nothing on the device waits for samples that are under way, and no state is written after the clearing. */
Test(cuda_waits, a_device_that_failed_to_begin_needs_each)
{
	static const struct cover needs[] = {
		{"load", 1}, /* samples arrive behind the clearing */
		{"close", 3},
		{NULL, 0},
	};

	check_alone(NETWORK(""), true, needs);
}
