/* Question about memory: the bytes of a worker, by what they are for, whether they fit its device, and what would make
 * them fit. */
#include "engine/base/units.h"
#include "engine/program/footprint.h"
#include "sim/ask/ask.h"
#include "sim/ask/border.h"

enum { MOST_BATCH = 1 << 24 };

/* The system on the largest cluster, and its memory. */
struct need {
	struct psd_case made;
	struct psd_footprint footprint;
	uint64_t memory_bytes; /* memory of a worker's device */
	uint64_t bytes;
	uint64_t more_bytes; /* gradient that accumulation adds, while batches with it are searched; else 0 */
	unsigned batch, workers;
};

static uint64_t bytes_at(const struct need *need, uint64_t batch)
{
	const struct psd_footprint footprint = psd_footprint_make(&need->made.program, batch);

	return psd_footprint_bytes(&footprint);
}

/* False: the system does not run there. */
static bool open_need(struct psd_ask *ask, unsigned system, struct need *need)
{
	const struct psd_scenario *scenario = ask->scenario;
	const struct psd_point point = psd_scenario_point(scenario, psd_scenario_points(scenario) - 1);
	struct psd_error err;

	need->memory_bytes = scenario->job.memory_bytes;
	need->batch = psd_scenario_workload(scenario, &scenario->systems[system]).batch_per_worker;
	need->workers = point.workers;
	if (psd_case_make(&need->made, ask->settings.costed, &scenario->systems[system], point, &err))
		return false;
	need->footprint = psd_footprint_make(&need->made.program, need->batch);
	need->bytes = psd_footprint_bytes(&need->footprint);
	return true;
}

static bool batch_fits(void *context, uint64_t batch)
{
	const struct need *need = context;

	return bytes_at(need, batch) + need->more_bytes <= need->memory_bytes;
}

static void add_value(struct psd_answers *answers, struct psd_answer *answer, const char *name, const char *unit,
		      double number)
{
	psd_answer_add_value(answers, answer, (struct psd_answer_value){.name = name, .unit = unit, .number = number});
}

static void add_part(struct psd_answers *answers, struct psd_answer *answer, const char *name, uint64_t bytes)
{
	char text[PSD_UNITS_TEXT_MAX];

	if (bytes > 0)
		psd_text_add(&answer->sentence, "%s %s of %s", answer->n_values > 1 ? "," : "",
			     psd_units_write_bytes(bytes, text), name);
	add_value(answers, answer, name, "bytes", (double)bytes);
}

/* ---- advice ---- */

/* Memory in half precision: the parameters' originals stay in fp32. */
static uint64_t mixed_bytes(const struct need *need)
{
	const struct psd_footprint *footprint = &need->footprint;

	return need->bytes -
	       (footprint->activations_bytes + footprint->differentials_bytes + footprint->gradients_bytes) / 2 +
	       footprint->parameters_bytes / 2;
}

/* Bytes of the probabilities that attention keeps; fused kernels (FlashAttention) keep none. */
static uint64_t score_bytes(const struct need *need)
{
	const struct psd_graph *graph = need->made.plan.graph;
	uint64_t bytes = 0;

	for (const struct psd_layer *layer = graph->layers; layer < graph->layers + graph->n_layers; layer++)
		bytes += layer->kind == &psd_layer_attention ? layer->kept_bytes : 0;
	return bytes / sizeof(float) * need->made.plan.value_bytes * need->batch;
}

/* Bound of memory if parameters, gradients and optimiser are divided among all workers, as by ZeRO's third stage or
 * FSDP: without the layers that are gathered at a time, and without buffers. */
static uint64_t sharded_bytes(const struct need *need, uint64_t bytes)
{
	const struct psd_footprint *footprint = &need->footprint;
	const uint64_t states = footprint->parameters_bytes + footprint->gradients_bytes + footprint->optimiser_bytes;

	return bytes - states - footprint->buffers_bytes + states / need->workers;
}

static void add_advice(const struct need *need, struct psd_answers *answers, struct psd_answer *answer,
		       const char *words, const char *name, uint64_t bytes)
{
	char text[PSD_UNITS_TEXT_MAX];

	psd_text_add(&answer->sentence, " %s it needs %s", words, psd_units_write_bytes(bytes, text));
	psd_text_add(&answer->sentence, bytes <= need->memory_bytes ? ", which fits." : ", which does not fit.");
	add_value(answers, answer, name, "bytes", (double)bytes);
}

static uint64_t find_batch(struct need *need, uint64_t more_bytes)
{
	const struct psd_border border = {batch_fits, need, 1, MOST_BATCH};
	uint64_t batch;

	need->more_bytes = more_bytes;
	batch = psd_border_find(&border, need->batch);
	need->more_bytes = 0;
	return batch;
}

/* Names the smallest number of equal micro-batches that fit and have the samples of the batch. */
static void add_accumulation(struct need *need, struct psd_answers *answers, struct psd_answer *answer)
{
	const struct psd_plan *plan = &need->made.plan;
	const uint64_t batch = find_batch(need, plan->graph->parameters * plan->value_bytes);
	uint64_t n = 2;

	if (plan->micro_batches > 1 || batch == 0)
		return;
	while (n <= PSD_MOST_MICRO_BATCHES && (need->batch % n > 0 || need->batch / n > batch))
		n++;
	if (n > PSD_MOST_MICRO_BATCHES)
		return;
	psd_text_add(&answer->sentence,
		     " With `accumulate: %llu`, in batches of %llu, an iteration with all samples fits.",
		     (unsigned long long)n, (unsigned long long)(need->batch / n));
	add_value(answers, answer, "fitting accumulation", "batches", (double)n);
}

/* Says for each remedy how much memory is left to find. */
static void add_remedies(const struct psd_ask *ask, const struct need *need, struct psd_answers *answers,
			 struct psd_answer *answer)
{
	const bool is_full =
		need->made.plan.value_bytes == sizeof(float) &&
		(ask->scenario->precision == PSD_PRECISION_FP32 || ask->scenario->precision == PSD_PRECISION_TF32);
	const uint64_t scores = score_bytes(need);
	uint64_t left = is_full ? mixed_bytes(need) : need->bytes;
	char words[128];

	if (is_full)
		add_advice(need, answers, answer, "With layers in bf16 (`model.precision`)", "in bf16", left);
	left -= is_full ? scores / 2 : scores;
	if (scores > 0)
		add_advice(need, answers, answer,
			   is_full ? "With fused attention as well, which keeps no scores,"
				   : "With fused attention, which keeps no scores,",
			   "with fused attention", left);
	if (need->workers > 1) {
		snprintf(words, sizeof(words),
			 "With parameters, gradients and optimiser sharded over %u workers (ZeRO, FSDP)%s",
			 need->workers, is_full || scores > 0 ? " as well" : "");
		add_advice(need, answers, answer, words, "sharded", sharded_bytes(need, left));
	}
	if (need->workers > 1 || scores > 0)
		psd_text_add(&answer->sentence, " Fused attention and sharding are bounds, not systems of psd.");
}

/* ---- answers ---- */

static void add_batch(struct need *need, struct psd_answers *answers, struct psd_answer *answer)
{
	const bool fits = need->bytes <= need->memory_bytes;
	const uint64_t batch = find_batch(need, 0);
	char text[PSD_UNITS_TEXT_MAX];

	psd_text_add(&answer->sentence, ". That %s %s", fits ? "fits" : "does not fit",
		     psd_units_write_bytes(need->memory_bytes, text));
	if (batch > 0)
		psd_text_add(&answer->sentence, ", %s batches of up to %llu do", fits ? "and" : "but",
			     (unsigned long long)batch);
	else
		psd_text_add(&answer->sentence, ", at any batch");
	psd_text_add(&answer->sentence, ".");
	add_value(answers, answer, "fitting batch", "samples", (double)batch);
	add_value(answers, answer, "fits", "flag", fits);
}

static void add_memory(struct psd_ask *ask, struct psd_answers *answers, unsigned system)
{
	const struct psd_footprint *parts;
	char text[PSD_UNITS_TEXT_MAX];
	struct psd_answer *answer;
	struct need need;

	if (!open_need(ask, system, &need))
		return;
	parts = &need.footprint;
	answer = psd_answers_add(answers, "memory", psd_ask_system_name(ask, system));
	psd_text_add(&answer->sentence, "A worker of %s needs %s:", answer->system,
		     psd_units_write_bytes(need.bytes, text));
	add_value(answers, answer, "memory", "bytes", (double)need.bytes);
	add_part(answers, answer, "parameters", parts->parameters_bytes);
	add_part(answers, answer, "gradients", parts->gradients_bytes);
	add_part(answers, answer, "optimiser", parts->optimiser_bytes);
	add_part(answers, answer, "buffers", parts->buffers_bytes);
	add_part(answers, answer, "activations", parts->activations_bytes);
	add_part(answers, answer, "their gradients", parts->differentials_bytes);
	add_part(answers, answer, "samples and workspace", parts->other_bytes);
	add_batch(&need, answers, answer);
	if (need.bytes > need.memory_bytes) {
		add_accumulation(&need, answers, answer);
		add_remedies(ask, &need, answers, answer);
	}
	psd_case_release(&need.made);
}

/* Adds one sentence if all systems fit. */
static bool add_all_fit(struct psd_ask *ask, struct psd_answers *answers)
{
	unsigned largest = ask->first_system;
	char text[PSD_UNITS_TEXT_MAX];
	struct psd_answer *answer;
	uint64_t most = 0;

	for (unsigned s = ask->first_system; s < ask->first_system + ask->n_systems; s++) {
		struct need need;

		if (!open_need(ask, s, &need))
			continue;
		largest = need.bytes > most ? s : largest;
		most = need.bytes > most ? need.bytes : most;
		psd_case_release(&need.made);
	}
	if (most == 0 || most > ask->scenario->job.memory_bytes)
		return false;
	answer = psd_answers_add(answers, "memory", psd_ask_system_name(ask, largest));
	psd_text_add(&answer->sentence, "Workers of all systems fit ");
	psd_text_add(&answer->sentence, "%s: ", psd_units_write_bytes(ask->scenario->job.memory_bytes, text));
	psd_text_add(&answer->sentence, "%s needs most, %s.", answer->system, psd_units_write_bytes(most, text));
	add_value(answers, answer, "memory", "bytes", (double)most);
	add_value(answers, answer, "fits", "flag", 1.0);
	return true;
}

void psd_ask_memory(struct psd_ask *ask, struct psd_answers *answers)
{
	if (!ask->scenario->has_job || ask->scenario->job.memory_bytes == 0)
		return;
	if (ask->settings.is_short && add_all_fit(ask, answers))
		return;
	for (unsigned s = 0; s < ask->n_systems && !ask->status; s++)
		add_memory(ask, answers, ask->first_system + s);
	psd_text_add(&psd_answers_add(answers, "memory", NULL)->sentence,
		     "Memory is counted as psd-run allocates it. A GPU's context and fragments come on top; other "
		     "frameworks may keep other activations.");
}
