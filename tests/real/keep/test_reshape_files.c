/* A run that goes on with other hosts, or by another system, against what lies in the files that it goes on from. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/data/tensor_file.h"
#include "tests/real/legs.h"
#include "tests/scratch_folder.h"

TestSuite(reshape_files, .timeout = 240);

enum { END = 7 };

static float *read_tensor(const struct psd_checkpoints *checkpoints, unsigned host, unsigned n_hosts,
			  uint32_t iterations, const char *name, uint64_t *elements)
{
	const struct psd_checkpoint_path path =
		psd_checkpoint_path(checkpoints, (struct psd_checkpoint_host){host, n_hosts}, iterations);
	const struct psd_file_tensor *found;
	struct psd_tensor_file *file;
	struct psd_error err = {.text = ""};
	float *values = NULL;
	uint64_t n_bytes = 0;

	cr_assert_eq(psd_tensor_file_open(&file, path.text, &err), PSD_OK, "%s", err.text);
	found = psd_tensor_file_find(file, name);
	if (found) {
		cr_assert(psd_file_tensor_bytes(found, &n_bytes));
		values = malloc(n_bytes + 1);
		cr_assert(values);
		cr_assert_eq(psd_tensor_file_read(file, found, 0, n_bytes, values, &err), PSD_OK, "%s", err.text);
	}
	psd_tensor_file_close(file);
	*elements = n_bytes / sizeof(float);
	return values;
}

/* Adds what hosts have under that name, element by element; returns how many have it. */
static unsigned add_all(double *sums, uint64_t n, const struct psd_checkpoints *checkpoints, unsigned n_hosts,
			uint32_t iterations, const char *name)
{
	unsigned n_found = 0;

	for (unsigned h = 0; h < n_hosts; h++) {
		uint64_t elements;
		float *values = read_tensor(checkpoints, h, n_hosts, iterations, name, &elements);

		cr_assert_leq(elements, n, "%s", name);
		for (uint64_t e = 0; values && e < elements; e++)
			sums[e] += (double)values[e];
		n_found += values != NULL;
		free(values);
	}
	return n_found;
}

/* ---- batch norm ---- */

#define SMALL_STEPS LEGS_DATA "learning_rate: {base: 0.01}, optimiser: {momentum: 0}"

/* The states of a host after an iteration: of a run that starts from a file, and of one that goes on. */
static void expect_same_states(const struct training *training, const struct psd_checkpoints *one,
			       const struct psd_checkpoints *other, uint32_t other_iterations, unsigned host,
			       const char *what)
{
	const struct psd_graph *graph = &training->loaded.costed.graph;
	const unsigned n_hosts = psd_layout_hosts(&training->made.plan.layout);

	cr_assert_gt(graph->n_states, 0);
	for (unsigned s = 0; s < graph->n_states; s++) {
		uint64_t n_left, n_right;
		float *left = read_tensor(one, host, n_hosts, 1, graph->states[s].name, &n_left);
		float *right = read_tensor(other, host, n_hosts, other_iterations, graph->states[s].name, &n_right);

		cr_assert(left && right && n_left == n_right);
		cr_expect_eq(memcmp(left, right, n_left * sizeof(float)), 0, "%s: host %u: %s differs", what, host,
			     graph->states[s].name);
		free(left);
		free(right);
	}
}

/* Without dropout, whose masks go by the iteration, both have the same batch. */
static const char normed[] = "name: normed\ninput: {channels: 3, height: 6, width: 6}\nlayers:\n"
			     "  - {name: conv1, kind: conv, outputs: 8, kernel: 3}\n"
			     "  - {name: bn1, kind: batch-norm}\n"
			     "  - {name: fc1, kind: inner-product, outputs: 10}\n"
			     "  - {name: loss, kind: softmax-loss}\n";

/* Worker `self` of `workers` has what a run has that starts from the file of worker self modulo workers_before. */
static void check_states(unsigned workers_before, unsigned workers, unsigned self)
{
	const struct scratch_folder folder = scratch_folder_make(), start = scratch_folder_make();
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = END},
				     start_checkpoints = {.folder = start.path, .every_iterations = END};
	const struct side was = {"sync: ring", workers_before, 1}, is = {"sync: ring", workers, 1};
	const unsigned source = self % workers_before;
	const uint64_t first_sample = (uint64_t)LEGS_CUT * LEGS_BATCH * workers_before;
	struct scratch_path graph;
	char train[512], what[96];
	struct training *cut, *started, *after;
	struct leg before, behind;

	scratch_folder_write(&folder, "normed.yaml", normed, strlen(normed));
	graph = scratch_folder_path(&folder, "normed.yaml");
	before = legs_before(graph.text, was, SMALL_STEPS);
	cut = legs_go(&before, &checkpoints);
	behind = legs_behind(graph.text, was, cut, is, SMALL_STEPS, LEGS_CUT + 1);
	snprintf(what, sizeof(what), "%u workers after %u", workers, workers_before);
	snprintf(train, sizeof(train), SMALL_STEPS ", start: %s/iteration-%d/host-%u-of-%u.safetensors", folder.path,
		 LEGS_CUT, source, workers_before);
	started = legs_go(&(struct leg){graph.text, train, is, LEGS_BATCH, 0, 1, first_sample, 0, NULL},
			  &start_checkpoints);
	after = legs_go(&behind, &checkpoints);
	cr_expect(training_is_same(after, self, started, self), "%s: other parameters", what);
	expect_same_states(after, &start_checkpoints, &checkpoints, LEGS_CUT + 1, self, what);
	training_free(cut);
	training_free(started);
	training_free(after);
	scratch_folder_remove(&folder);
	scratch_folder_remove(&start);
}

Test(reshape_files, statistics_stay_with_their_worker)
{
	check_states(3, 2, 0);
	check_states(3, 2, 1);
	check_states(1, 2, 1);
	check_states(2, 3, 2);
}

/* ---- held back ---- */

/* Without momentum parameters go by rate times what has travelled: gradients, and what was held back, less what still
 * is. */
#define HELD_RATE 0.05
#define HELD	  LEGS_DATA "learning_rate: {base: 0.05}, optimiser: {momentum: 0}"
/* Relative to gradients, which a difference of parameters gives with errors of 1e-7 / 0.05. */
#define HELD_RATIO 1e-3

/* A run up to the cut, and two of one iteration behind it, with the same samples: by gradients alone, with a ring that
 * starts from the parameters, and one that goes on. */
struct fork {
	struct scratch_folder folder;
	struct training *cut, *plain, *after;
	unsigned n_before, n_after; /* hosts */
};

static struct fork fork_open(struct side was, struct side is, const char *train)
{
	struct fork fork = {.folder = scratch_folder_make()};
	const struct psd_checkpoints checkpoints = {.folder = fork.folder.path, .every_iterations = END};
	const struct leg before = legs_before(LEGS_ODD, was, train);
	struct leg behind, plainly;
	char start[256];

	fork.cut = legs_go(&before, &checkpoints);
	behind = legs_behind(LEGS_ODD, was, fork.cut, is, train, LEGS_CUT + 1);
	snprintf(start, sizeof(start), HELD ", start: %s/parameters.safetensors", fork.folder.path);
	plainly = (struct leg){LEGS_ODD, start, {"sync: ring", is.workers, 1}, LEGS_BATCH, 0, 1, behind.first_sample,
			       0,	 NULL};
	fork.plain = legs_go(&plainly, NULL);
	fork.after = legs_go(&behind, &checkpoints);
	fork.n_before = psd_layout_hosts(&fork.cut->made.plan.layout);
	fork.n_after = psd_layout_hosts(&fork.after->made.plan.layout);
	return fork;
}

static struct psd_checkpoints fork_checkpoints(const struct fork *fork)
{
	return (struct psd_checkpoints){.folder = fork->folder.path, .every_iterations = END};
}

static void fork_close(struct fork *fork)
{
	training_free(fork->cut);
	training_free(fork->plain);
	training_free(fork->after);
	scratch_folder_remove(&fork->folder);
}

/* One item each. */
static const char *const held_tensors[] = {"fc1.weight", "fc2.weight"};
enum { MOST_HELD = 1 << 15 };

/* Adds the residuals of an item, whose other tensor is its layer's bias; servers' parts, of 1 shard, have gaps. */
static unsigned add_held(double *held, const struct psd_checkpoints *checkpoints, unsigned n_hosts, uint32_t iterations,
			 const char *tensor)
{
	char name[64];
	unsigned n_found;

	snprintf(name, sizeof(name), "%s.residual", tensor);
	n_found = add_all(held, MOST_HELD, checkpoints, n_hosts, iterations, name);
	snprintf(name, sizeof(name), "%s.part_residual", tensor);
	return n_found + add_all(held, MOST_HELD, checkpoints, n_hosts, iterations, name);
}

static uint64_t find_tensor(const struct psd_graph *graph, const char *name, unsigned *tensor)
{
	uint64_t first = 0;

	for (*tensor = 0; strcmp(graph->tensors[*tensor].name, name) != 0; ++*tensor)
		first += graph->tensors[*tensor].elements;
	return first;
}

/* Whole change of a tensor in one iteration. */
static void check_way(const struct fork *fork, const double *held_before, const double *held_after, const char *name,
		      const char *what)
{
	unsigned t;
	const struct psd_graph *graph = &fork->cut->loaded.costed.graph;
	const uint64_t first = find_tensor(graph, name, &t);
	const float *from = training_parameters(fork->cut, 0) + first,
		    *there = training_parameters(fork->after, 0) + first,
		    *plainly = training_parameters(fork->plain, 0) + first;
	double apart = 0.0, squares = 0.0, held = 0.0;

	for (uint64_t e = 0; e < graph->tensors[t].elements; e++) {
		const double gradient = ((double)from[e] - (double)plainly[e]) / HELD_RATE;
		const double way = ((double)from[e] - (double)there[e]) / HELD_RATE;

		apart += pow(way - (held_before[e] + gradient - held_after[e]), 2);
		squares += pow(held_before[e] + gradient, 2);
		held += pow(held_before[e], 2);
	}
	cr_expect_gt(held, 0.1 * squares, "%s: nothing to speak of was held back of %s", what, name);
	cr_expect_leq(sqrt(apart / squares), HELD_RATIO, "%s: %s lost %g", what, name, sqrt(apart / squares));
}

static void check_held(struct side was, struct side is)
{
	struct fork fork = fork_open(was, is, HELD);
	const struct psd_checkpoints checkpoints = fork_checkpoints(&fork);
	char what[256];

	snprintf(what, sizeof(what), "%u of '%s', then %u of '%s'", was.workers, was.system, is.workers, is.system);
	for (unsigned i = 0; i < sizeof(held_tensors) / sizeof(held_tensors[0]); i++) {
		double *before = calloc(2 * MOST_HELD, sizeof(*before)), *after = before + MOST_HELD;

		cr_assert(before);
		cr_assert_geq(add_held(before, &checkpoints, fork.n_before, LEGS_CUT, held_tensors[i]), was.workers,
			      "%s: %s", what, held_tensors[i]);
		cr_assert_geq(add_held(after, &checkpoints, fork.n_after, LEGS_CUT + 1, held_tensors[i]), is.workers,
			      "%s: %s", what, held_tensors[i]);
		check_way(&fork, before, after, held_tensors[i], what);
		free(before);
	}
	fork_close(&fork);
}

#define ONE_BIT "compress: {by: one-bit, momentum: after}"

Test(reshape_files, residuals_stay_in_all_files)
{
	const struct side sparse4 = {"sync: ring, sparse: {sparsity: 0.8, chunk: 64, feedback: full}", 4, 1},
			  sparse3 = {"sync: ring, sparse: {sparsity: 0.7, chunk: 32, feedback: full}", 3, 1},
			  rank3 = {"sync: ring, low_rank: {rank: 1}", 3, 1},
			  rank2 = {"sync: halving-doubling, low_rank: {rank: 2}", 2, 1},
			  bits2 = {"sync: ps, servers: 1, " ONE_BIT, 2, 1},
			  bits3 = {"sync: ps, servers: 1, " ONE_BIT, 3, 1};

	check_held(sparse4, sparse3);
	check_held(sparse3, sparse4);
	check_held(rank3, rank2);
	check_held(rank2, rank3);
	check_held(bits2, bits3);
	check_held(bits3, bits2);
	check_held(bits3, rank2);
	check_held(rank3, sparse4);
}

/* ---- optimiser state ---- */

/* A tensor's buffer in all files of a checkpoint, summed; and the gradient behind the cut, in the sums' order. */
struct remembered {
	double before[MOST_HELD], after[MOST_HELD], gradient[MOST_HELD];
	uint64_t elements;
	unsigned n_before, n_after; /* hosts that have some of it */
};

static struct remembered *remember(struct side was, struct side is, const char *train, const char *tensor,
				   const char *buffer)
{
	struct fork fork = fork_open(was, is, train);
	const struct psd_checkpoints checkpoints = fork_checkpoints(&fork);
	const struct psd_graph *graph = &fork.cut->loaded.costed.graph;
	struct remembered *of = calloc(1, sizeof(*of));
	char name[64];
	unsigned t;
	const uint64_t first = find_tensor(graph, tensor, &t);
	const float *from = training_parameters(fork.cut, 0) + first,
		    *plainly = training_parameters(fork.plain, 0) + first;

	cr_assert(of);
	snprintf(name, sizeof(name), "%s.%s", tensor, buffer);
	of->elements = graph->tensors[t].elements;
	of->n_before = add_all(of->before, MOST_HELD, &checkpoints, fork.n_before, LEGS_CUT, name);
	of->n_after = add_all(of->after, MOST_HELD, &checkpoints, fork.n_after, LEGS_CUT + 1, name);
	for (uint64_t e = 0; e < of->elements; e++)
		of->gradient[e] = ((double)from[e] - (double)plainly[e]) / HELD_RATE;
	fork_close(&fork);
	return of;
}

/* after = kept_ratio before + new_ratio gradient^power, with sums as they are. */
static void expect_remembered(struct side was, struct side is, const char *train, const char *buffer, double kept_ratio,
			      double new_ratio, double power)
{
	struct remembered *of = remember(was, is, train, "fc1.weight", buffer);
	double apart = 0.0, squares = 0.0;

	cr_assert(of->n_before >= was.workers && of->n_after >= is.workers, "%s", buffer);
	for (uint64_t e = 0; e < of->elements; e++) {
		const double expected = kept_ratio * of->before[e] + new_ratio * pow(of->gradient[e], power);

		apart += pow(of->after[e] - expected, 2);
		squares += pow(expected, 2);
	}
	cr_expect_leq(sqrt(apart / squares), HELD_RATIO, "'%s', then '%s': '%s' is off by %g", was.system, is.system,
		      buffer, sqrt(apart / squares));
	free(of);
}

/* From three workers and from two; all velocities together are one. */
Test(reshape_files, velocities_stay_in_all)
{
	const char train[] = LEGS_DATA "learning_rate: {base: 0.05}, optimiser: {momentum: 0.9}";
	const char before[] = "sync: ps, compress: {by: one-bit, momentum: before}";

	expect_remembered((struct side){before, 3, 1}, (struct side){before, 2, 1}, train, "velocity", 0.9, 1.0, 1.0);
	expect_remembered((struct side){before, 2, 1}, (struct side){before, 3, 1}, train, "velocity", 0.9, 1.0, 1.0);
}

/* Two workers have had gradients of half the samples each: their sum, and twice the sum of their squares, is what three
 * have of all, who all have the same. Then three, with steps of their own, each have a third of them. */
Test(reshape_files, means_of_local_steps_become_means_of_all)
{
	const char train[] = LEGS_DATA "learning_rate: {base: 1e-6}, optimiser: {kind: adamw, beta1: 0.9, beta2: 0.95}";
	const struct side local2 = {"sync: ring, local_sgd: {steps: 1}", 2, 1};
	const struct side ring3 = {"sync: ring", 3, 1};

	expect_remembered(local2, ring3, train, "history", 3 * 0.9, 3 * (1 - 0.9), 1.0);
	expect_remembered(local2, ring3, train, "squares", 3 * 2 * 0.95, 3 * (1 - 0.95), 2.0);
}

Test(reshape_files, means_of_all_become_those_of_local_steps)
{
	const char train[] = LEGS_DATA "learning_rate: {base: 1e-6}, optimiser: {kind: adamw, beta1: 0.9, beta2: 0.95}";
	const struct side ring2 = {"sync: ring", 2, 1}, local3 = {"sync: ring, local_sgd: {steps: 1}", 3, 1};

	/* two hosts have the same history, three a third of it and of its gradient each */
	expect_remembered(ring2, local3, train, "history", 0.9 / 2, 1 - 0.9, 1.0);
}

/* ---- masters ---- */

/* In iteration LEGS_CUT a rate of 1e-27. */
#define NOTHING LEGS_DATA "learning_rate: {policy: exp, base: 1e-9, gamma: 1e-6}, optimiser: {momentum: 0}"

/* Workers had what servers keep exactly as bf16 rounds it, to even. */
static float rounded(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
	memcpy(&value, &bits, sizeof(bits));
	return value;
}

static void check_masters(struct side was)
{
	const struct scratch_folder folder = scratch_folder_make();
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = END};
	const struct leg before = legs_before(LEGS_ODD, was, HELD);
	struct training *cut = legs_go(&before, &checkpoints), *after;
	const struct leg behind =
		legs_behind(LEGS_ODD, was, cut, (struct side){"sync: ring", 2, 1}, NOTHING, LEGS_CUT + 1);
	unsigned n_finer = 0;

	after = legs_go(&behind, &checkpoints);
	for (uint64_t e = 0; e < cut->loaded.costed.graph.parameters; e++) {
		const float exact = training_parameters(after, 1)[e], had = training_parameters(cut, 0)[e];

		cr_assert_eq(rounded(exact), had, "%s: parameter %lu", was.system, e);
		n_finer += exact != had;
	}
	cr_expect_gt(n_finer, cut->loaded.costed.graph.parameters / 2, "%s", was.system);
	training_free(cut);
	training_free(after);
	scratch_folder_remove(&folder);
}

Test(reshape_files, states_that_servers_keep_exactly_go_on)
{
	check_masters((struct side){"sync: ps, wire: bf16", 3, 1});
	check_masters((struct side){"sync: ps, wire: bf16, servers: 2", 2, 1});
	check_masters((struct side){"sync: adam, wire: bf16", 3, 1});
}

/* The one host that has it: all of the item's tensor, as the workers had it before. */
static void check_kept(struct side is, const char *buffer)
{
	const struct scratch_folder folder = scratch_folder_make();
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = END};
	const struct side ring2 = {"sync: ring", 2, 1};
	const struct leg before = legs_before(LEGS_ODD, ring2, HELD);
	struct training *cut = legs_go(&before, &checkpoints), *after;
	const struct leg behind = legs_behind(LEGS_ODD, ring2, cut, is, NOTHING, LEGS_CUT + 1);
	unsigned t, n_found = 0;
	const uint64_t first = find_tensor(&cut->loaded.costed.graph, "fc1.weight", &t);
	const uint64_t n_bytes = cut->loaded.costed.graph.tensors[t].elements * sizeof(float);
	char name[64];

	snprintf(name, sizeof(name), "fc1.weight.%s", buffer);
	after = legs_go(&behind, &checkpoints);
	for (unsigned h = 0; h < psd_layout_hosts(&after->made.plan.layout); h++) {
		uint64_t elements;
		float *kept = read_tensor(&checkpoints, h, psd_layout_hosts(&after->made.plan.layout), LEGS_CUT + 1,
					  name, &elements);

		n_found += kept != NULL;
		cr_expect(!kept || !memcmp(kept, training_parameters(cut, 0) + first, n_bytes), "%s: host %u: %s",
			  is.system, h, name);
		free(kept);
	}
	cr_expect_eq(n_found, 1);
	training_free(cut);
	training_free(after);
	scratch_folder_remove(&folder);
}

Test(reshape_files, servers_begin_with_what_is_exact)
{
	check_kept((struct side){"sync: ps, wire: bf16, servers: 1", 3, 1}, "part");
	check_kept((struct side){"sync: adam, wire: bf16", 3, 1}, "master");
}
