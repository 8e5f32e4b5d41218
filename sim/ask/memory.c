/* Question about memory: the bytes of a worker, by what they are for, whether they fit its device, and what would make
 * them fit. The numbers are psd-run's; those of PyTorch stand beside them. */
#include <string.h>

#include "engine/base/units.h"
#include "engine/model/saved.h"
#include "engine/program/footprint.h"
#include "engine/scenario/stack.h"
#include "sim/ask/ask.h"
#include "sim/ask/border.h"

enum { MOST_BATCH = 1 << 24 };

/* The system on the largest cluster, and the memory of its worker with the largest batch. */
struct need {
	struct psd_case made;
	struct psd_footprint footprint;
	uint64_t memory_bytes; /* memory of a worker's device */
	uint64_t bytes;
	uint64_t more_bytes; /* gradient that accumulation adds, while batches with it are searched; else 0 */
	unsigned batch, workers;
	unsigned group; /* number of that worker's group of nodes */
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
	need->workers = point.workers;
	if (psd_case_make(&need->made, ask->settings.costed, &scenario->systems[system], point, &err))
		return false;
	const unsigned largest = psd_case_largest(&need->made);

	need->batch = psd_case_batch(&need->made, largest);
	need->group = psd_scenario_group(scenario, psd_layout_node(&need->made.plan.layout, largest));
	need->footprint = psd_footprint_make(&need->made.program, need->batch);
	need->bytes = psd_footprint_bytes(&need->footprint);
	return true;
}

static bool batch_fits(void *context, uint64_t batch)
{
	const struct need *need = context;

	return bytes_at(need, batch) + need->more_bytes <= need->memory_bytes;
}

/* Appends the group of the worker, if nodes are in groups. */
static void add_group(struct psd_text *text, const struct psd_scenario *scenario, unsigned group, unsigned batch)
{
	if (scenario->n_groups > 0)
		psd_text_add(text, " in group %u (batch %u)", group, batch);
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

/* Returns the bytes of the worker with another system, which need not be the scenario's. 0: it does not run there. */
static uint64_t bytes_with(const struct psd_ask *ask, const struct need *need, struct psd_system system)
{
	const struct psd_scenario *scenario = ask->scenario;
	const struct psd_point point = psd_scenario_point(scenario, psd_scenario_points(scenario) - 1);
	const struct psd_workload workload = psd_scenario_workload(scenario, &system);
	struct psd_costed_model costed = *ask->settings.costed;
	struct psd_footprint footprint = {.parameters_bytes = 0};
	struct psd_error err;
	struct psd_costs costs;
	struct psd_case made;

	if (psd_workload_costs(&costs, &costed.graph, &workload, system.at, &err))
		return 0;
	costed.own_costs = &costs;
	system.number = 0;
	if (!psd_case_make(&made, &costed, &system, point, &err)) {
		footprint = psd_footprint_make(&made.program, need->batch);
		psd_case_release(&made);
	}
	psd_costs_release(&costs);
	return psd_footprint_bytes(&footprint);
}

/* Bytes of the probabilities that attention keeps; fused kernels (FlashAttention) keep none. recomputes: of those of
 * blocks, which are alike, one's are kept at a time. */
static uint64_t score_bytes(const struct need *need, bool recomputes)
{
	const struct psd_graph *graph = need->made.plan.graph;
	uint64_t bytes = 0, of_block = 0;

	for (const struct psd_layer *layer = graph->layers; layer < graph->layers + graph->n_layers; layer++) {
		if (layer->kind != &psd_layer_attention)
			continue;
		if (!recomputes || layer->block == 0)
			bytes += layer->kept_bytes;
		else if (layer->block == graph->n_blocks)
			of_block += layer->kept_bytes;
	}
	return (bytes + of_block) / sizeof(float) * need->made.plan.value_bytes * need->batch;
}

/* Size of a bucket of PyTorch's DDP by default. */
#define DDP_BUCKET_BYTES (UINT64_C(25) << 20)

/* The system with gradients summed as they are, by ZeRO's third stage in buckets of at least DDP's size. */
static struct psd_system sharded_system(const struct psd_system *system)
{
	struct psd_system sharded = *system;

	sharded.sync = PSD_SYNC_ZERO_3;
	sharded.schedule = PSD_SCHEDULE_WAIT_FREE;
	sharded.rule = PSD_RULE_BYTES;
	sharded.unit = PSD_UNIT_LAYER;
	sharded.placement = PSD_PLACEMENT_RANGES;
	sharded.fuse_bytes = system->fuse_bytes > DDP_BUCKET_BYTES ? system->fuse_bytes : DDP_BUCKET_BYTES;
	sharded.finds_fuse = sharded.is_sparse = sharded.is_managed = sharded.is_compressed = sharded.is_low_rank =
		sharded.is_local = false;
	sharded.pipeline_bytes = 0;
	sharded.servers = sharded.staleness = sharded.peers = sharded.accumulate = 0;
	sharded.wire = 0;
	sharded.prefetch = 1;
	return sharded;
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

static bool divides_batches(const struct need *need, uint64_t n)
{
	const struct psd_kinds *kinds = &need->made.kinds;
	bool divides = need->batch % n == 0;

	for (unsigned k = 0; k < kinds->n; k++)
		divides = divides && kinds->plan[k].batch % n == 0;
	return divides;
}

/* Appends " of 8", or " of 2 in group 0, 8 in group 1" if they differ. */
static void add_micro_batches(struct psd_text *text, const struct need *need, uint64_t n)
{
	const struct psd_kinds *kinds = &need->made.kinds;
	bool differ = false;

	for (unsigned k = 0; k < kinds->n; k++)
		differ = differ || kinds->plan[k].batch != need->batch;
	if (!differ)
		psd_text_add(text, " of %llu", (unsigned long long)(need->batch / n));
	for (unsigned k = 0; k < kinds->n && differ; k++)
		psd_text_add(text, "%s %llu in group %u", k == 0 ? " of" : ",",
			     (unsigned long long)(kinds->plan[k].batch / n), kinds->nodes[k].group);
}

/* Returns the smallest number of equal micro-batches with up to that batch. 0: there is none. */
static uint64_t fewest_micro_batches(const struct need *need, uint64_t batch)
{
	uint64_t n = 2;

	while (n <= PSD_MOST_MICRO_BATCHES && (!divides_batches(need, n) || need->batch / n > batch))
		n++;
	return n <= PSD_MOST_MICRO_BATCHES ? n : 0;
}

/* Names the smallest number of equal micro-batches that fit and have the samples of the batch, in each group. */
static void add_accumulation(struct need *need, struct psd_answers *answers, struct psd_answer *answer)
{
	const struct psd_plan *plan = &need->made.plan;
	const bool adds_parts = plan->n_items > 0 && psd_plan_keeps(plan, &plan->items[0], PSD_BUFFER_SUM);
	const uint64_t batch = find_batch(need, adds_parts ? 0 : plan->graph->parameters * plan->value_bytes);
	const uint64_t n = fewest_micro_batches(need, batch);

	if (plan->micro_batches > 1 || batch == 0)
		return;
	if (n == 0 && need->made.kinds.n > 0 && need->made.system->split != PSD_SPLIT_EVEN)
		psd_text_add(&answer->sentence, " No `accumulate` is named, since the batches of its split follow from "
						"speed and have no common divisor that fits.");
	if (n == 0)
		return;
	psd_text_add(&answer->sentence, " With `accumulate: %llu`,%s in batches", (unsigned long long)n,
		     n > fewest_micro_batches(need, find_batch(need, 0))
			     ? " which keeps a further copy of the gradients,"
			     : "");
	add_micro_batches(&answer->sentence, need, n);
	psd_text_add(&answer->sentence, ", an iteration with all samples fits.");
	add_value(answers, answer, "fitting accumulation", "batches", (double)n);
}

/* A device outside of the table, of which a profile may be, counts as one that gains. */
static bool gains_from(const struct psd_device_row *device, enum psd_precision precision)
{
	return !device || (psd_device_has(device, precision) && psd_device_arithmetic(device, precision) == precision);
}

static bool all_gain_from(const struct need *need, enum psd_precision precision)
{
	const struct psd_kinds *kinds = &need->made.kinds;
	bool all = gains_from(need->made.plan.costs->device, precision);

	for (unsigned k = 1; k < kinds->n; k++)
		all = all && gains_from(kinds->plan[k].costs.device, precision);
	return all;
}

/* Remedies that are told, each beside those before it, until they are enough. The last one may be enough alone. */
struct remedies {
	const struct psd_ask *ask;
	const struct need *need;
	struct psd_answers *answers;
	struct psd_answer *answer;
	struct psd_system system; /* the system with them */
	uint64_t bytes;
	unsigned n;
};

static void add_remedy(struct remedies *remedies, const char *words, const char *name, uint64_t bytes)
{
	static const char *const beside[] = {"", "that and ", "all of that and "};
	char text[PSD_UNITS_TEXT_MAX];

	psd_text_add(&remedies->answer->sentence, " With %s%s it needs %s, which %s.",
		     beside[remedies->n < 2 ? remedies->n : 2], words, psd_units_write_bytes(bytes, text),
		     bytes <= remedies->need->memory_bytes ? "fits" : "does not fit");
	add_value(remedies->answers, remedies->answer, name, "bytes", (double)bytes);
	remedies->bytes = bytes;
	remedies->n++;
}

/* Adds the remedy that is the system. False: it does not run, or needs no less, or those before it are enough. */
static bool add_system(struct remedies *remedies, const struct psd_system *system, const char *words, const char *name)
{
	if (remedies->bytes <= remedies->need->memory_bytes)
		return false;
	const uint64_t bytes = bytes_with(remedies->ask, remedies->need, *system);

	if (bytes == 0 || bytes >= remedies->bytes)
		return false;
	add_remedy(remedies, words, name, bytes);
	remedies->system = *system;
	return true;
}

/* Adds a precision of 16 bits, unless the system has one already. */
static bool add_half(struct remedies *remedies, enum psd_precision half, const char *words, const char *name)
{
	struct psd_system system = remedies->system;

	system.own.precision_name = psd_precision_names[half];
	return remedies->need->made.plan.value_bytes == sizeof(float) && all_gain_from(remedies->need, half) &&
	       add_system(remedies, &system, words, name);
}

static bool add_recomputation(struct remedies *remedies)
{
	struct psd_system system = remedies->system;

	system.own.recompute_name = psd_recompute_names[true];
	return !remedies->need->made.plan.costs->recomputes &&
	       add_system(remedies, &system, "blocks computed again (`model.recompute: blocks`)",
			  "with blocks computed again");
}

static void add_sharding(struct remedies *remedies)
{
	const struct need *need = remedies->need;
	const struct psd_system system = sharded_system(&remedies->system), alone = sharded_system(need->made.system);
	char words[128];

	if (need->workers < 2 || need->made.plan.items[0].method->updates != PSD_OWNER_ALL)
		return;
	snprintf(words, sizeof(words), "parameters, gradients and optimiser sharded over %u workers (`sync: fsdp`)",
		 need->workers);
	if (!add_system(remedies, &system, words, "sharded") || remedies->n < 2)
		return;
	const uint64_t bytes = bytes_with(remedies->ask, need, alone);

	if (bytes == 0 || bytes > need->memory_bytes)
		return;
	psd_text_add(&remedies->answer->sentence, " With `sync: fsdp` alone it needs %s, which also fits.",
		     psd_units_write_bytes(bytes, words));
	add_value(remedies->answers, remedies->answer, "sharded alone", "bytes", (double)bytes);
}

/* Says for each remedy how much memory is left to find: for those of psd, then for fused attention. */
static void add_remedies(const struct psd_ask *ask, const struct need *need, struct psd_answers *answers,
			 struct psd_answer *answer)
{
	struct remedies remedies = {ask, need, answers, answer, *need->made.system, need->bytes, 0};
	const bool is_half =
		add_half(&remedies, PSD_PRECISION_BF16, "layers in bf16 (`model.precision: bf16`)", "in bf16") ||
		add_half(&remedies, PSD_PRECISION_MIXED, "layers in fp16 (`model.precision: mixed`)", "in fp16");
	const bool recomputes = add_recomputation(&remedies) || need->made.plan.costs->recomputes;
	const uint64_t scores = score_bytes(need, recomputes) / (is_half ? 2 : 1);

	add_sharding(&remedies);
	if (scores == 0 || remedies.bytes <= need->memory_bytes)
		return;
	add_remedy(&remedies, "fused attention, which keeps no scores,", "with fused attention",
		   remedies.bytes - scores);
	psd_text_add(&answer->sentence, " Fused attention is a bound, not a system of psd.");
}

/* ---- PyTorch ---- */

/* An all-reduce on the stack of other software than psd-run can be DDP's. Sharded training keeps other bytes. */
static bool is_like_ddp(const struct psd_system *system)
{
	const bool is_sharded = system->sync >= PSD_SYNC_SHARDED && system->sync < PSD_SYNC_LIBRARY;

	return system->sync >= PSD_SYNC_ALL_REDUCE && !is_sharded && strcmp(system->stack->name, "psd") != 0;
}

static uint64_t sample_bytes(const struct psd_graph *graph, const struct psd_saved *saved)
{
	return saved->sample_bytes + saved->head_bytes + graph->layers[0].write_bytes;
}

/* Parameters and gradients in fp32, and with several workers the buckets of DDP beside the gradients. */
static uint64_t torch_states_bytes(const struct need *need)
{
	const uint64_t parameters_bytes = need->made.plan.graph->parameters * sizeof(float);

	return (need->workers > 1 ? 3 : 2) * parameters_bytes + need->footprint.optimiser_bytes;
}

static void say_fit(struct psd_answers *answers, struct psd_answer *answer, const struct need *need, uint64_t bytes)
{
	psd_text_add(&answer->sentence, ", which %s", bytes <= need->memory_bytes ? "fits" : "does not fit");
	add_value(answers, answer, "fits", "flag", bytes <= need->memory_bytes);
}

static void add_torch_parts(const struct need *need, const struct psd_saved *saved, struct psd_answers *answers,
			    struct psd_answer *answer)
{
	const struct psd_graph *graph = need->made.plan.graph;
	const uint64_t saved_bytes = need->batch * saved->sample_bytes, scores_bytes = need->batch * saved->score_bytes;
	const uint64_t inputs_bytes = need->batch * saved->softmax_input_bytes;
	const uint64_t bytes =
		torch_states_bytes(need) + saved->weights_bytes + need->batch * sample_bytes(graph, saved);
	char text[PSD_UNITS_TEXT_MAX];

	psd_text_add(&answer->sentence, "A worker of PyTorch 2%s%s needs %s", need->workers > 1 ? " with DDP" : "",
		     graph->n_blocks == 0		 ? ""
		     : need->made.plan.costs->recomputes ? ", with blocks checkpointed,"
							 : ", without checkpointing,",
		     psd_units_write_bytes(bytes, text));
	add_value(answers, answer, "memory in PyTorch", "bytes", (double)bytes);
	say_fit(answers, answer, need, bytes);
	psd_text_add(&answer->sentence, ": its backward reads %s of saved values",
		     psd_units_write_bytes(saved_bytes + saved->weights_bytes, text));
	add_value(answers, answer, "saved for backward", "bytes", (double)(saved_bytes + saved->weights_bytes));
	if (scores_bytes > 0) {
		psd_text_add(&answer->sentence, " with fused attention, and %s more with eager attention",
			     psd_units_write_bytes(scores_bytes, text));
		add_value(answers, answer, "saved by eager attention", "bytes", (double)scores_bytes);
		psd_text_add(&answer->sentence, " (%s before PyTorch 1.11)",
			     psd_units_write_bytes(scores_bytes + inputs_bytes, text));
		add_value(answers, answer, "saved by eager attention before 1.11", "bytes",
			  (double)(scores_bytes + inputs_bytes));
	}
	psd_text_add(&answer->sentence, ".");
}

/* Says it once, for the first system that can be DDP: others have the same layers. */
static void add_torch(struct psd_ask *ask, struct psd_answers *answers)
{
	const struct psd_system *const systems = ask->scenario->systems;
	const unsigned end = ask->first_system + ask->n_systems;
	unsigned s = ask->first_system;
	struct psd_saved saved;
	struct need need;

	while (s < end && !is_like_ddp(&systems[s]))
		s++;
	if (s == end || !open_need(ask, s, &need))
		return;
	ask->status = psd_saved_count(&saved, need.made.plan.graph, need.made.plan.value_bytes < sizeof(float),
				      need.made.plan.costs->recomputes, ask->err);
	if (!ask->status)
		add_torch_parts(&need, &saved, answers,
				psd_answers_add(answers, "memory", psd_ask_system_name(ask, s)));
	psd_case_release(&need.made);
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
	psd_text_add(&answer->sentence, "A worker of %s", answer->system);
	add_group(&answer->sentence, ask->scenario, need.group, need.batch);
	psd_text_add(&answer->sentence, " needs %s:", psd_units_write_bytes(need.bytes, text));
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
	unsigned largest = ask->first_system, group = 0, batch = 0;
	char text[PSD_UNITS_TEXT_MAX];
	struct psd_answer *answer;
	uint64_t most = 0;

	for (unsigned s = ask->first_system; s < ask->first_system + ask->n_systems; s++) {
		struct need need;

		if (!open_need(ask, s, &need))
			continue;
		if (need.bytes > most) {
			largest = s;
			most = need.bytes;
			group = need.group;
			batch = need.batch;
		}
		psd_case_release(&need.made);
	}
	if (most == 0 || most > ask->scenario->job.memory_bytes)
		return false;
	answer = psd_answers_add(answers, "memory", psd_ask_system_name(ask, largest));
	psd_text_add(&answer->sentence, "Workers of all systems fit ");
	psd_text_add(&answer->sentence, "%s: ", psd_units_write_bytes(ask->scenario->job.memory_bytes, text));
	psd_text_add(&answer->sentence, "%s", answer->system);
	add_group(&answer->sentence, ask->scenario, group, batch);
	psd_text_add(&answer->sentence, " needs most, %s.", psd_units_write_bytes(most, text));
	add_value(answers, answer, "memory", "bytes", (double)most);
	add_value(answers, answer, "fits", "flag", 1.0);
	add_torch(ask, answers);
	return true;
}

const char *psd_ask_memory(struct psd_ask *ask, struct psd_answers *answers)
{
	if (!ask->scenario->has_job || ask->scenario->job.memory_bytes == 0)
		return "`job.memory`";
	if (ask->settings.is_short && add_all_fit(ask, answers))
		return NULL;
	for (unsigned s = 0; s < ask->n_systems && !ask->status; s++)
		add_memory(ask, answers, ask->first_system + s);
	if (!ask->status)
		add_torch(ask, answers);
	psd_text_add(&psd_answers_add(answers, "memory", NULL)->sentence,
		     "Memory is that of psd-run; where PyTorch is named, values are those that its autograd saves. A "
		     "GPU's context, PyTorch's workspace and fragments come on top.");
	return NULL;
}
