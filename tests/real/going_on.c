#define _GNU_SOURCE
#include "tests/real/going_on.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"
#include "real/data/tensor_file.h"
#include "real/keep/checkpoint.h"
#include "tests/real/training.h"
#include "tests/scratch_folder.h"

/* The cut is no multiple of EVERY, nor of the two iterations whose samples and choices take turns in memory. An epoch,
 * and its test, ends with a checkpoint where there are 3 workers, and between two where there are 2 or 4. */
enum { BATCH = 4, EVERY = 2, CUT = 3, BEFORE_END = 6, END = 7 };

#define RATE "learning_rate: {policy: exp, base: 0.05, gamma: 0.9, warmup_iterations: 4}, "

/* At this rate a parameter stays as it is but for its last bits. bf16 keeps 8 bits of it. */
#define NO_RATE		"learning_rate: {policy: fixed, base: 1e-9}, "
#define PARAMETER_RATIO (1.0 / 256.0)
#define PARAMETER_LEAST 1e-6
/* An iteration changes running statistics by a tenth of what they are from a batch's, and those by less. */
#define STATE_RATIO 0.4

static struct training *run(const char *system, const char *train, unsigned workers, unsigned workers_per_node,
			    const struct psd_device_kind *kind, const struct psd_checkpoints *checkpoints,
			    uint32_t first, uint32_t end)
{
	struct training *training;
	char job[768];

	snprintf(job, sizeof(job), "iterations: %u, %s", end, train);
	training = training_make("../../tests/data/stateful.yaml", system, workers, workers_per_node, BATCH, 3, job);
	if (kind)
		training_on(training, kind, kind->has_own_memory);
	training->options.worker.checkpoints = checkpoints;
	training->options.worker.first_iteration = first;
	training->options.worker.first_sample = (uint64_t)first * workers * BATCH * training->made.plan.micro_batches;
	training->options.worker.is_tested = true;
	return training_finish(training, system);
}

static void expect_same_file(const char *one, const char *other, const char *system)
{
	struct psd_error err = {.text = ""};
	char *left = NULL, *right = NULL;
	size_t n_left = 0, n_right = 0;

	cr_assert_eq(psd_file_read(&left, &n_left, one, &err), PSD_OK, "%s: %s", system, err.text);
	cr_assert_eq(psd_file_read(&right, &n_right, other, &err), PSD_OK, "%s: %s", system, err.text);
	cr_expect(n_left == n_right && !memcmp(left, right, n_left), "%s: %s is not %s", system, other, one);
	free(left);
	free(right);
}

static void expect_same_checkpoint(const struct psd_checkpoints *one, const struct psd_checkpoints *other,
				   unsigned n_hosts, uint32_t iterations, const char *system)
{
	for (unsigned h = 0; h < n_hosts; h++) {
		const struct psd_checkpoint_host host = {h, n_hosts};

		expect_same_file(psd_checkpoint_path(one, host, iterations).text,
				 psd_checkpoint_path(other, host, iterations).text, system);
	}
}

static float *read_values(struct psd_tensor_file *file, const struct psd_tensor *tensor)
{
	const struct psd_file_tensor *found = psd_tensor_file_find(file, tensor->name);
	const uint64_t n_bytes = tensor->elements * sizeof(float);
	float *values = malloc(n_bytes);
	struct psd_error err = {.text = ""};

	cr_assert(found && values, "%s", tensor->name);
	cr_assert_eq(psd_tensor_file_read(file, found, 0, n_bytes, values, &err), PSD_OK, "%s", err.text);
	return values;
}

/* Parameters, and what batch norm keeps. */
static void expect_all_tensors(const struct training *training, const struct psd_checkpoints *checkpoints)
{
	const struct psd_graph *graph = &training->loaded.costed.graph;
	struct psd_error err = {.text = ""};
	struct psd_tensor_file *file;

	cr_assert_eq(psd_tensor_file_open(&file, psd_checkpoint_parameters_path(checkpoints).text, &err), PSD_OK, "%s",
		     err.text);
	for (unsigned t = 0; t < graph->n_tensors; t++)
		cr_expect_not_null(psd_tensor_file_find(file, graph->tensors[t].name));
	for (unsigned s = 0; s < graph->n_states; s++)
		cr_expect_not_null(psd_tensor_file_find(file, graph->states[s].name));
	cr_expect_null(psd_tensor_file_at(file, graph->n_tensors + graph->n_states), "and no other");
	psd_tensor_file_close(file);
}

/* The values of the parameters with which the run ended. */
static void expect_parameters(const struct training *training, const struct psd_checkpoints *checkpoints,
			      const char *system)
{
	const struct psd_graph *graph = &training->loaded.costed.graph;
	const float *values = training_parameters(training, 0);
	struct psd_error err = {.text = ""};
	struct psd_tensor_file *file;

	cr_assert_eq(psd_tensor_file_open(&file, psd_checkpoint_parameters_path(checkpoints).text, &err), PSD_OK, "%s",
		     err.text);
	for (unsigned t = 0; t < graph->n_tensors; t++) {
		float *saved = read_values(file, &graph->tensors[t]);

		cr_expect_arr_eq(saved, values, graph->tensors[t].elements * sizeof(*saved), "%s: %s", system,
				 graph->tensors[t].name);
		free(saved);
		values += graph->tensors[t].elements;
	}
	psd_tensor_file_close(file);
}

void going_on_check(const char *system, const char *train, unsigned workers, unsigned workers_per_node,
		    const struct psd_device_kind *kind)
{
	const struct scratch_folder whole = scratch_folder_make(), cut = scratch_folder_make();
	const struct psd_checkpoints whole_checkpoints = {.folder = whole.path, .every_iterations = EVERY},
				     cut_checkpoints = {.folder = cut.path, .every_iterations = EVERY};
	struct training *once, *before, *after;
	unsigned n_hosts;
	char job[512];

	snprintf(job, sizeof(job), RATE "%s", train);
	once = run(system, job, workers, workers_per_node, kind, &whole_checkpoints, 0, END);
	before = run(system, job, workers, workers_per_node, kind, &cut_checkpoints, 0, CUT);
	after = run(system, job, workers, workers_per_node, kind, &cut_checkpoints, CUT, END);
	n_hosts = psd_layout_hosts(&once->made.plan.layout);
	cr_expect_not(training_is_same(before, 0, once, 0), "%s: nothing was learnt behind the cut", system);
	for (unsigned w = 0; w < workers; w++)
		cr_expect(training_is_same(after, w, once, w), "%s: worker %u has other parameters", system, w);
	cr_expect_eq(after->result.test_correct, once->result.test_correct, "%s", system);
	expect_same_checkpoint(&whole_checkpoints, &cut_checkpoints, n_hosts, BEFORE_END, system);
	expect_same_checkpoint(&whole_checkpoints, &cut_checkpoints, n_hosts, END, system);
	expect_all_tensors(once, &whole_checkpoints);
	expect_parameters(once, &whole_checkpoints, system);
	expect_same_file(psd_checkpoint_parameters_path(&whole_checkpoints).text,
			 psd_checkpoint_parameters_path(&cut_checkpoints).text, system);
	training_free(once);
	training_free(before);
	training_free(after);
	scratch_folder_remove(&whole);
	scratch_folder_remove(&cut);
}

/* ---- asynchronous servers ---- */

/* An epoch is an iteration: worker 0 tests before iteration 1 while others go on. */
#define ASYNC_DATA "data: {training_samples: 12, test_samples: 32}, optimiser: {momentum: 0.9}"

enum { ASYNC_WORKERS = 3, SERVER = ASYNC_WORKERS, ASYNC_END = CUT + 1, ASYNC_MOST_VALUES = 1 << 17 };

static uint64_t read_named(struct psd_tensor_file *file, const char *name, void *values)
{
	const struct psd_file_tensor *found = psd_tensor_file_find(file, name);
	struct psd_error err = {.text = ""};
	uint64_t n_bytes = 0;

	cr_assert(found && psd_file_tensor_bytes(found, &n_bytes) && n_bytes <= ASYNC_MOST_VALUES * sizeof(float),
		  "%s: %" PRIu64 " bytes", name, n_bytes);
	cr_assert_eq(psd_tensor_file_read(file, found, 0, n_bytes, values, &err), PSD_OK, "%s", err.text);
	return n_bytes / sizeof(float);
}

static struct psd_tensor_file *open_server(const struct psd_checkpoints *checkpoints, uint32_t iterations)
{
	const struct psd_checkpoint_host server = {SERVER, SERVER + 1};
	struct psd_error err = {.text = ""};
	struct psd_tensor_file *file;

	cr_assert_eq(psd_tensor_file_open(&file, psd_checkpoint_path(checkpoints, server, iterations).text, &err),
		     PSD_OK, "%s", err.text);
	return file;
}

/* Behind the cut an update multiplies the history by the momentum and takes it from the parameters. */
static void expect_momentum_alone(struct psd_tensor_file *cut, struct psd_tensor_file *end, const char *tensor,
				  uint32_t n_updates)
{
	static float parameters[2][ASYNC_MOST_VALUES], history[2][ASYNC_MOST_VALUES];
	double squares = 0.0, moved = 0.0;
	char name[2][160];

	snprintf(name[0], sizeof(name[0]), "%s.part", tensor);
	snprintf(name[1], sizeof(name[1]), "%s.part_history", tensor);
	const uint64_t n = read_named(cut, name[0], parameters[0]);

	cr_assert(read_named(end, name[0], parameters[1]) == n && read_named(cut, name[1], history[0]) == n &&
		  read_named(end, name[1], history[1]) == n);
	for (uint64_t e = 0; e < n; e++) {
		double weight = (double)parameters[0][e], step = (double)history[0][e];

		for (uint32_t u = 0; u < n_updates; u++)
			weight -= step *= 0.9;
		squares += pow((double)parameters[1][e] - weight, 2) + pow((double)history[1][e] - step, 2);
		moved += pow((double)history[0][e], 2);
	}
	cr_expect(moved > 0.0 && sqrt(squares) <= 1e-4 * sqrt(moved), "%s: off by %g, momentum %g", tensor,
		  sqrt(squares), sqrt(moved));
}

/* A worker of the first run had all updates of a slice, or lacked some of the last iteration and the one before. */
static void expect_ages(struct psd_tensor_file *file, unsigned n_slices, uint32_t iterations, const char *rate)
{
	static uint32_t ages[ASYNC_MOST_VALUES];
	const uint64_t n = read_named(file, "gradient_ages", ages);

	cr_assert_eq(n, n_slices * (1 + ASYNC_WORKERS));
	for (uint64_t i = 0; i < n; i++) {
		const uint32_t all = ages[i - i % (1 + ASYNC_WORKERS)];

		cr_expect_eq(all, ASYNC_WORKERS * iterations, "%s: %u updates", rate, all);
		cr_expect(ages[i] <= all && ages[i] + 2 * ASYNC_WORKERS > all, "%s: %u of %u", rate, ages[i], all);
	}
}

void going_on_check_asynchronous(const char *rate, const struct psd_device_kind *kind)
{
	const struct scratch_folder folder = scratch_folder_make();
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = EVERY};
	struct psd_tensor_file *cut, *end;
	struct training *runs[2];
	char system[128];

	snprintf(system, sizeof(system), "sync: ps, servers: 1, asynchronous: {bound: 1, rate: %s}", rate);
	for (unsigned r = 0; r < 2; r++)
		runs[r] =
			run(system, "learning_rate: {policy: multistep, base: 0.05, gamma: 0, steps: [3]}, " ASYNC_DATA,
			    ASYNC_WORKERS, 1, kind, &checkpoints, r ? CUT : 0, r ? ASYNC_END : CUT);
	const struct psd_plan *plan = &runs[1]->made.plan;

	cr_expect_eq(runs[0]->result.test_labels, 32);
	cr_expect_leq(runs[0]->result.ages.most_ahead, 1);
	cr_expect_eq(runs[0]->result.ages.n_updates, plan->n_items * ASYNC_WORKERS * CUT);
	cut = open_server(&checkpoints, CUT);
	end = open_server(&checkpoints, ASYNC_END);
	for (unsigned i = 0; i < plan->n_items; i++)
		expect_momentum_alone(cut, end, plan->graph->tensors[psd_plan_tensor(plan, &plan->items[i], 0)].name,
				      ASYNC_WORKERS * (ASYNC_END - CUT));
	expect_ages(cut, plan->n_items, CUT, rate);
	expect_ages(end, plan->n_items, ASYNC_END, rate);
	psd_tensor_file_close(cut);
	psd_tensor_file_close(end);
	training_free(runs[0]);
	training_free(runs[1]);
	scratch_folder_remove(&folder);
}

/* ---- own updates ---- */

enum { OWN_EVERY = 5, OWN_CUT = 6, OWN_END = 10 };

/* Two clocks of two iterations with a rate, one without, and two behind the cut. */
#define OWN_RATE                                                                                                       \
	"learning_rate: {policy: multistep, base: 0.05, gamma: 0, steps: [4]}, data: {training_samples: 40, "          \
	"test_samples: 32}, optimiser: {momentum: 0.9}"

/* Hash of all choices of chunks up to the end. */
static uint64_t read_choices(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host)
{
	const struct psd_file_tensor *found;
	struct psd_error err = {.text = ""};
	struct psd_tensor_file *file;
	uint64_t digest = 0;

	cr_assert_eq(psd_tensor_file_open(&file, psd_checkpoint_path(checkpoints, host, OWN_END).text, &err), PSD_OK,
		     "%s", err.text);
	found = psd_tensor_file_find(file, "chosen.digest");
	cr_assert_not_null(found);
	cr_assert_eq(psd_tensor_file_read(file, found, 0, sizeof(digest), &digest, &err), PSD_OK, "%s", err.text);
	psd_tensor_file_close(file);
	return digest;
}

/* Running statistics are of the parameters that an iteration has read, and so of the times at which sums came. */
void going_on_check_own_updates(const char *system, unsigned workers, const struct psd_device_kind *kind)
{
	const struct scratch_folder folder = scratch_folder_make();
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = OWN_EVERY};
	struct training *once = run(system, OWN_RATE, workers, 1, kind, &checkpoints, 0, OWN_END);
	const uint64_t choices = read_choices(&checkpoints, (struct psd_checkpoint_host){0, workers});
	struct training *resumed = run(system, OWN_RATE, workers, 1, kind, &checkpoints, OWN_CUT, OWN_END);

	for (unsigned w = 0; w < workers; w++) {
		const struct psd_checkpoint_host host = {w, workers};

		cr_expect(training_is_same(resumed, w, once, w), "%s: worker %u has other parameters", system, w);
		cr_expect_eq(read_choices(&checkpoints, host), choices, "%s: worker %u", system, w);
	}
	training_free(once);
	training_free(resumed);
	scratch_folder_remove(&folder);
}

/* ---- a start ---- */

/* By the norm of their difference. */
static void expect_near(struct psd_tensor_file *const files[2], const struct psd_tensor *tensor, double ratio,
			const char *system)
{
	float *one = read_values(files[0], tensor), *other = read_values(files[1], tensor);
	double squares = 0.0, apart = 0.0;

	for (uint64_t e = 0; e < tensor->elements; e++) {
		squares += pow((double)one[e], 2);
		apart += pow((double)other[e] - (double)one[e], 2);
	}
	cr_expect_leq(sqrt(apart), ratio * sqrt(squares) + PARAMETER_LEAST, "%s: %s of norm %g is off by %g", system,
		      tensor->name, sqrt(squares), sqrt(apart));
	free(one);
	free(other);
}

static void expect_near_files(const struct psd_graph *graph, const char *one, const char *other, const char *system)
{
	const char *const paths[] = {one, other};
	struct psd_error err = {.text = ""};
	struct psd_tensor_file *files[2];

	for (unsigned f = 0; f < 2; f++)
		cr_assert_eq(psd_tensor_file_open(&files[f], paths[f], &err), PSD_OK, "%s", err.text);
	for (unsigned t = 0; t < graph->n_tensors; t++)
		expect_near(files, &graph->tensors[t], PARAMETER_RATIO, system);
	for (unsigned s = 0; s < graph->n_states; s++)
		expect_near(files, &graph->states[s], STATE_RATIO, system);
	psd_tensor_file_close(files[0]);
	psd_tensor_file_close(files[1]);
}

void going_on_check_start(const char *system, const struct psd_device_kind *kind)
{
	const struct scratch_folder learnt = scratch_folder_make(), started = scratch_folder_make();
	const struct psd_checkpoints learnt_checkpoints = {.folder = learnt.path, .every_iterations = END},
				     started_checkpoints = {.folder = started.path, .every_iterations = END};
	const struct psd_checkpoint_path file = psd_checkpoint_parameters_path(&learnt_checkpoints);
	struct training *before = run("sync: ps", RATE GOING_ON_SGD, 2, 1, NULL, &learnt_checkpoints, 0, END), *after;
	char job[512];

	snprintf(job, sizeof(job), NO_RATE GOING_ON_SGD ", start: %.200s", file.text);
	after = run(system, job, 3, 1, kind, &started_checkpoints, 0, 1);
	training_expect_same_on_all(after, system);
	expect_near_files(&after->loaded.costed.graph, file.text,
			  psd_checkpoint_parameters_path(&started_checkpoints).text, system);
	training_free(before);
	training_free(after);
	scratch_folder_remove(&learnt);
	scratch_folder_remove(&started);
}
