#define _GNU_SOURCE
#include "tests/real/going_on.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"
#include "real/data/tensor_file.h"
#include "real/session/checkpoint.h"
#include "tests/real/training.h"
#include "tests/scratch_folder.h"

/* The cut is none of the checkpoints that are due by their number, and no multiple of what keeps turns. An epoch and
 * its test end between checkpoints and with them. */
enum { BATCH = 4, EVERY = 2, CUT = 3, BEFORE_END = 6, END = 7 };

static struct training *run(const char *system, const char *train, unsigned workers, unsigned workers_per_node,
			    const struct psd_device_kind *kind, const struct psd_checkpoints *checkpoints,
			    uint32_t first, uint32_t end)
{
	struct training *training;
	char job[512];

	snprintf(job, sizeof(job),
		 "iterations: %u, learning_rate: {policy: exp, base: 0.05, gamma: 0.9, warmup_iterations: 4}, %s", end,
		 train);
	training = training_make("../../tests/data/stateful.yaml", system, workers, workers_per_node, BATCH, 3, job);
	if (kind) {
		psd_case_release(&training->made);
		psd_subject_matter_compute_on(&training->loaded.matter, kind->has_own_memory);
		loaded_case(&training->made, &training->loaded, 0, 0);
		training->options.worker.device = kind;
	}
	training->options.worker.checkpoints = checkpoints;
	training->options.worker.first_iteration = first;
	training->options.worker.is_tested = true;
	training_run(training);
	cr_assert_eq(training->status, PSD_OK, "%s: %s", system, training->err.text);
	return training;
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

/* Parameters, and what batch norm keeps. */
static void expect_all_tensors(const struct training *training, const struct psd_checkpoints *checkpoints)
{
	const struct psd_graph *graph = &training->loaded.matter.graph;
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

void going_on_check(const char *system, const char *train, unsigned workers, unsigned workers_per_node,
		    const struct psd_device_kind *kind)
{
	const struct scratch_folder whole = scratch_folder_make(), cut = scratch_folder_make();
	const struct psd_checkpoints whole_checkpoints = {whole.path, EVERY}, cut_checkpoints = {cut.path, EVERY};
	struct training *once = run(system, train, workers, workers_per_node, kind, &whole_checkpoints, 0, END);
	struct training *before = run(system, train, workers, workers_per_node, kind, &cut_checkpoints, 0, CUT);
	struct training *after = run(system, train, workers, workers_per_node, kind, &cut_checkpoints, CUT, END);
	const unsigned n_hosts = psd_layout_hosts(&once->made.plan.layout);

	cr_expect_not(training_is_same(before, 0, once, 0), "%s: nothing was learnt behind the cut", system);
	for (unsigned w = 0; w < workers; w++)
		cr_expect(training_is_same(after, w, once, w), "%s: worker %u has other parameters", system, w);
	cr_expect_eq(after->result.test_correct, once->result.test_correct, "%s", system);
	expect_same_checkpoint(&whole_checkpoints, &cut_checkpoints, n_hosts, BEFORE_END, system);
	expect_same_checkpoint(&whole_checkpoints, &cut_checkpoints, n_hosts, END, system);
	expect_all_tensors(once, &whole_checkpoints);
	expect_same_file(psd_checkpoint_parameters_path(&whole_checkpoints).text,
			 psd_checkpoint_parameters_path(&cut_checkpoints).text, system);
	training_free(once);
	training_free(before);
	training_free(after);
	scratch_folder_remove(&whole);
	scratch_folder_remove(&cut);
}
