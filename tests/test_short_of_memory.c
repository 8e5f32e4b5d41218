/* Files are read, and cases made and estimated, once for each allocation, which fails: each of these attempts must end
 * with PSD_ENOMEM and its text. The slice with the address sanitiser shows that none of them loses memory. The linker
 * lets the functions below stand for those of the C library and of psd's arenas; libraries keep their own. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/case/case.h"
#include "engine/estimate/estimate.h"
#include "engine/model/onnx/onnx.h"
#include "sim/ask/ask.h"
#include "tests/engine/model/onnx/onnx_file.h"
#include "tests/loaded_helper.h"

static long left = -1; /* allocations before the one that fails; negative: none fails */

static bool fails(void)
{
	return left >= 0 && left-- == 0;
}

/* REPLACED(RESULT, NAME, PARAMETERS, ARGUMENTS): a function that returns NULL where it is to fail, see SHORT_OF in the
 * Makefile. */
#define REPLACED(result, name, parameters, arguments)                                                                  \
	result __real_##name parameters;                                                                               \
	result __wrap_##name parameters;                                                                               \
	result __wrap_##name parameters                                                                                \
	{                                                                                                              \
		return fails() ? NULL : __real_##name arguments;                                                       \
	}

REPLACED(void *, malloc, (size_t bytes), (bytes))
REPLACED(void *, calloc, (size_t n, size_t bytes), (n, bytes))
REPLACED(void *, realloc, (void *old, size_t bytes), (old, bytes))
REPLACED(char *, strdup, (const char *text), (text))
REPLACED(void *, psd_arena_take, (struct psd_arena * arena, size_t bytes), (arena, bytes))
REPLACED(char *, psd_arena_copy, (struct psd_arena * arena, const char *text, size_t length), (arena, text, length))

/* A list that is short of memory counts every file as an input, which is no failure. */
void __real_psd_inputs_note(const char *path);
void __wrap_psd_inputs_note(const char *path);
void __wrap_psd_inputs_note(const char *path)
{
	const long kept = left;

	left = -1;
	__real_psd_inputs_note(path);
	left = kept;
}

/* An attempt at the file, which releases all that it makes. */
typedef enum psd_status (*attempt_fn)(const char *path, struct psd_error *err);

static void each_allocation_fails(attempt_fn attempt, const char *path)
{
	enum psd_status status;

	for (long n = 0;; n++) {
		struct psd_error err = {.text = ""};

		left = n;
		status = attempt(path, &err);
		const bool has_failed = left < 0;
		left = -1;
		if (!has_failed) {
			cr_expect_eq(status, PSD_OK, "%s: %s", path, err.text);
			cr_expect_gt(n, 0, "%s: no allocation", path);
			break;
		}
		cr_expect_eq(status, PSD_ENOMEM, "%s, allocation %ld: status %d: %s", path, n, (int)status, err.text);
		cr_expect(strstr(err.text, "out of memory"), "%s, allocation %ld: %s", path, n, err.text);
	}
}

static void try_files(attempt_fn attempt, const char *const paths[])
{
	for (; *paths; paths++)
		each_allocation_fails(attempt, *paths);
}

#define TRY_FILES(attempt, ...) try_files(attempt, (const char *const[]){__VA_ARGS__, NULL})

static enum psd_status load_model(const char *path, struct psd_error *err)
{
	static const struct psd_model_choices choices = {.allows_other = true};
	struct psd_graph graph;

	PSD_TRY(psd_graph_load_as(&graph, path, &choices, err));
	psd_graph_release(&graph);
	return PSD_OK;
}

Test(short_of_memory, models_are_read_or_refused)
{
	TRY_FILES(load_model, "tests/data/odd.yaml", "scenarios/models/gpt-small.yaml", "tests/data/v0.prototxt",
		  "tests/data/v1.prototxt", "tests/data/v2.prototxt");
}

Test(short_of_memory, exported_models_are_read_or_refused)
{
	TRY_FILES(load_model, "tests/onnx/encoder-old.onnx", "tests/onnx/encoder-plain.onnx",
		  "tests/onnx/functions-dynamo.onnx", "tests/onnx/llama.onnx", "tests/onnx/maps-dynamo.onnx",
		  "tests/onnx/moves-dynamo.onnx", "tests/onnx/own-biases.onnx", "tests/onnx/tied-dynamo.onnx",
		  "tests/onnx/windows-dynamo.onnx");
}

static struct {
	uint8_t *bytes;
	size_t length;
} packed;

static enum psd_status load_packed(const char *path, struct psd_error *err)
{
	struct psd_graph graph;

	PSD_TRY(psd_onnx_parse(&graph, path, packed.bytes, packed.length, NULL, err));
	psd_graph_release(&graph);
	return PSD_OK;
}

Test(short_of_memory, graphs_inside_nodes_are_read_or_refused)
{
	static const char *const texts[] = {
		"function halve (a) -> (c) k { b = Identity(a); c = MaxPool(b) kernel_shape=&k strides=[2,2] }\n"
		"z = halve(x) k=[2,2] @domain=local\nc: b8[] = 1\n"
		"y = If(c) then_branch={ w: f32[8,4,1,1]; a = Conv(z, w); output a } "
		"else_branch={ d = Tanh(z); output d }\n",
		"n: i64[] = 2\nt: b8[] = 1\n"
		"v, l = Loop(n, t, x) body={ input i i64[]; input c b8[]; input v f32[b,4,6,5]; d = Identity(c); "
		"u = Tanh(v); s = Relu(u); output d; output u; output s }\n"
		"y = Sigmoid(v)\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char text[1024];

		snprintf(text, sizeof(text), "input x f32[b,4,6,5]\n%s", texts[i]);
		Onnx__Model *model = onnx_file_of(text);
		packed.bytes = onnx_file_pack(model, &packed.length);
		each_allocation_fails(load_packed, "m.onnx");
		free(packed.bytes);
		onnx__model__free_unpacked(model, NULL);
	}
}

static enum psd_status estimate(struct psd_case *made, struct psd_error *err)
{
	const struct psd_scenario *scenario = made->costed->scenario;
	struct psd_outcome outcome;

	return psd_estimate(&made->program,
			    psd_run_length_make(made->system, scenario->iterations, scenario->jitter_ratio), &outcome,
			    err);
}

static enum psd_status estimate_all(const struct psd_costed_model *costed, struct psd_error *err)
{
	const struct psd_scenario *scenario = costed->scenario;
	enum psd_status status = PSD_OK;

	for (unsigned s = 0; s < scenario->n_systems && !status; s++) {
		struct psd_case made;

		PSD_TRY(psd_case_make(&made, costed, &scenario->systems[s], psd_scenario_point(scenario, 0), err));
		status = estimate(&made, err);
		psd_case_release(&made);
	}
	return status;
}

static enum psd_status predict(const char *path, struct psd_error *err)
{
	static const char *const settings[] = {"cluster.network.latency=20us", NULL};
	struct psd_scenario scenario;
	struct psd_costed_model costed;

	PSD_TRY(psd_scenario_load(&scenario, path, settings, err));
	enum psd_status status = psd_costed_model_load(&costed, &scenario, err);
	if (!status) {
		status = estimate_all(&costed, err);
		psd_costed_model_release(&costed);
	}
	psd_scenario_release(&scenario);
	return status;
}

Test(short_of_memory, scenarios_are_predicted_or_refused)
{
	TRY_FILES(predict, "scenarios/examples/asynchrony.yaml", "scenarios/examples/cores.yaml",
		  "scenarios/examples/joined-factors.yaml", "scenarios/examples/own-network.yaml",
		  "scenarios/examples/partial.yaml", "scenarios/examples/solver.yaml", "scenarios/examples/steps.yaml",
		  "scenarios/examples/text.yaml");
}

Test(short_of_memory, longer_scenarios_are_predicted_or_refused)
{
	TRY_FILES(predict, "scenarios/examples/first.yaml", "scenarios/examples/groups.yaml",
		  "scenarios/examples/job.yaml", "scenarios/examples/sharded.yaml",
		  "scenarios/examples/stale-reads.yaml");
}

static enum psd_status ask_runs(const struct psd_costed_model *costed, struct psd_error *err)
{
	const struct psd_ask_settings settings = {
		.costed = costed, .question = "runs", .is_estimate = true, .n_at_once = 1};
	struct psd_answers answers;
	int signal_number;

	PSD_TRY(psd_ask_all(&settings, &answers, &signal_number, err));
	psd_answers_release(&answers);
	return PSD_OK;
}

/* A single system without a job has an answer if its workers wait, of which a prediction tells. Texts that run short of
 * memory are told of later, as they are written. */
Test(short_of_memory, a_question_does_not_take_a_failure_for_an_answer_that_is_left_out)
{
	bool has_failed = true;
	struct loaded loaded;

	loaded_open(&loaded, "model: {graph: tests/data/one_layer.yaml, batch_per_worker: 1}\n"
			     "compute: {device: k20}\n"
			     "cluster: {nodes: 2, stack: none, network: {bandwidth: 1Gbps, latency: 50us}}\n"
			     "systems: [{name: A, sync: ps}]\n");
	for (long n = 0; has_failed; n++) {
		struct psd_error err = {.text = ""};

		left = n;
		const enum psd_status status = ask_runs(&loaded.costed, &err);
		has_failed = left < 0;
		left = -1;
		cr_expect(status == PSD_OK || (has_failed && status == PSD_ENOMEM), "allocation %ld: %s", n, err.text);
	}
	loaded_close(&loaded);
}
