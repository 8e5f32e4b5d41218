/* Predictions for questions: each is made once and kept. Simulations run in child processes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/base/units.h"
#include "engine/estimate/estimate.h"
#include "engine/program/jitter.h"
#include "engine/result/result.h"
#include "sim/ask/ask.h"
#include "sim/executor/simulate.h"
#include "sim/output/output.h"
#include "sim/sweep/children.h"

enum { ALL_SIZES = 64, LEAST_SLOTS = 1024, NODES_WITHOUT_SWEEP = 64 };

static const double size_step_ratio = 1.02;
static const double first_rate_bps = 1e8, rate_step_ratio = 1.01;
/* Fastest port of an adapter for each worker that is sold in 2025: 800 Gbit/s, InfiniBand XDR and Ethernet. */
static const double port_bps = 800e9;

const char *const psd_ask_several_nodes = "several nodes";
const char *const psd_ask_shared_bandwidth = "a group of nodes without its own `bandwidth`";

double psd_ask_rate(const struct psd_ask *ask, uint64_t number)
{
	return number < ask->n_rates ? first_rate_bps * pow(rate_step_ratio, (double)number - 1.0) : ask->most_bps;
}

void psd_ask_add_searched(struct psd_text *text, const struct psd_ask *ask)
{
	psd_text_add(text, " searched (up to ");
	psd_answer_add_rate(text, ask->most_bps);
	psd_text_add(text, ")");
}

void psd_ask_add_own_links(struct psd_text *text, const struct psd_ask *ask)
{
	bool is_open = false;

	for (unsigned g = 0; g < ask->scenario->n_groups && ask->fastest_bps == 0.0; g++) {
		const double own_bps = ask->scenario->groups[g].bandwidth_bps;

		if (own_bps == 0.0)
			continue;
		psd_text_add(text, "%sgroup %u: ", is_open ? ", " : " (", g);
		psd_answer_add_rate(text, own_bps);
		is_open = true;
	}
	if (is_open)
		psd_text_add(text, ")");
}

void psd_ask_add_rate(struct psd_text *text, const struct psd_ask *ask, double bandwidth_bps)
{
	psd_answer_add_rate(text, bandwidth_bps);
	if (ask->fastest_bps > bandwidth_bps) {
		psd_text_add(text, " to ");
		psd_answer_add_rate(text, ask->fastest_bps);
	}
	psd_ask_add_own_links(text, ask);
}

/* A port for each worker of a node, and no less than the scenario's own bandwidths. */
static void find_rates(struct psd_ask *ask)
{
	ask->most_bps = port_bps * psd_scenario_most_per_node(ask->scenario);
	for (unsigned b = 0; b < ask->n_bandwidths; b++)
		ask->most_bps = fmax(ask->most_bps, ask->bandwidths_bps[b]);
	ask->n_rates = 1 + (unsigned)ceil(log(ask->most_bps / first_rate_bps) / log(rate_step_ratio));
}

/* ---- points ---- */

unsigned psd_ask_workers(const struct psd_ask *ask, unsigned nodes)
{
	return psd_scenario_workers(ask->scenario, nodes);
}

double psd_ask_step_samples(const struct psd_ask *ask, unsigned system, unsigned nodes)
{
	return (double)psd_scenario_all_samples(ask->scenario, &ask->scenario->systems[system], nodes,
						psd_ask_workers(ask, nodes));
}

const char *psd_ask_system_name(const struct psd_ask *ask, unsigned system)
{
	return ask->scenario->systems[system].name;
}

static struct psd_point point_of(const struct psd_ask *ask, unsigned nodes, double bandwidth_bps)
{
	struct psd_point point = psd_scenario_point(ask->scenario, 0);

	point.nodes = nodes;
	point.workers_per_node = psd_scenario_most_per_node(ask->scenario);
	point.workers = psd_ask_workers(ask, nodes);
	point.bandwidth_bps = bandwidth_bps;
	point.fuse_bytes = ask->fuse_bytes;
	return point;
}

/* ---- one prediction ---- */

/* Leaves out slow nodes and traffic of nodes that the cluster does not have. */
static void keep_nodes(struct psd_scenario *scenario, unsigned nodes)
{
	unsigned n = 0;

	for (unsigned i = 0; i < scenario->n_slowdowns; i++)
		if (scenario->slowdowns[i].node < nodes)
			scenario->slowdowns[n++] = scenario->slowdowns[i];
	scenario->n_slowdowns = n;
	n = 0;
	for (unsigned i = 0; i < scenario->n_backgrounds; i++)
		if (scenario->backgrounds[i].from_node < nodes && scenario->backgrounds[i].to_node < nodes)
			scenario->backgrounds[n++] = scenario->backgrounds[i];
	scenario->n_backgrounds = n;
}

static enum psd_status simulate_in(struct psd_ask *ask, const struct psd_costed_model *costed,
				   const struct psd_ask_entry *entry, struct psd_outcome *outcome,
				   struct psd_error *err)
{
	const struct psd_point point = point_of(ask, entry->nodes, entry->bandwidth_bps);
	struct psd_case made;
	enum psd_status status = psd_case_make(&made, costed, &costed->scenario->systems[entry->system], point, err);

	*outcome = (struct psd_outcome){.iteration_sec = 0.0};
	if (status)
		return status;
	status = psd_simulate(&made, PSD_DETAIL_CLASSES, NULL, NULL, outcome, err);
	psd_case_release(&made);
	return status;
}

static enum psd_status simulate(struct psd_ask *ask, const struct psd_ask_entry *entry, struct psd_outcome *outcome,
				struct psd_error *err)
{
	struct psd_costed_model costed = *ask->settings.costed;
	struct psd_scenario *fitting;

	if (ask->scenario->n_slowdowns == 0 && ask->scenario->n_backgrounds == 0)
		return simulate_in(ask, ask->settings.costed, entry, outcome, err);
	fitting = malloc(sizeof(*fitting));
	if (!fitting)
		return psd_out_of_memory(err);
	*fitting = *ask->scenario;
	keep_nodes(fitting, entry->nodes);
	costed.scenario = fitting;
	const enum psd_status status = simulate_in(ask, &costed, entry, outcome, err);
	free(fitting);
	return status;
}

static void discard(struct psd_ask_ready *ready)
{
	if (ready->estimator)
		psd_case_release(&ready->made);
	psd_estimator_free(ready->estimator);
	ready->estimator = NULL;
}

/* Makes the system's case that of the entry; *is_new: it was none that reaches it. */
static enum psd_status prepare(struct psd_ask *ask, const struct psd_ask_entry *entry, struct psd_run_length length,
			       bool *is_new, struct psd_error *err)
{
	struct psd_ask_ready *ready = &ask->ready[entry->system - ask->first_system];
	const struct psd_system *system = &ask->scenario->systems[entry->system];
	const struct psd_point point = point_of(ask, entry->nodes, entry->bandwidth_bps);

	*is_new = !ready->estimator || !psd_case_reaches(&ready->made, ask->settings.costed, system, point);
	if (!*is_new) {
		psd_case_move(&ready->made, point);
		return PSD_OK;
	}
	discard(ready);
	PSD_TRY(psd_case_make(&ready->made, ask->settings.costed, system, point, err));
	const enum psd_status status = psd_estimator_new(&ready->estimator, &ready->made.program, length, err);
	if (status)
		psd_case_release(&ready->made);
	else
		ready->memory_bytes = psd_case_memory_bytes(&ready->made);
	return status;
}

static enum psd_status estimate(struct psd_ask *ask, const struct psd_ask_entry *entry, bool *is_new,
				struct psd_outcome *outcome, struct psd_error *err)
{
	struct psd_run_length length =
		psd_run_length_make(&ask->scenario->systems[entry->system], ask->scenario->iterations, 0.0);

	*outcome = (struct psd_outcome){.iteration_sec = 0.0};
	length.most_events = ask->scenario->most_events;
	PSD_TRY(prepare(ask, entry, length, is_new, err));
	PSD_TRY(psd_estimator_time(ask->ready[entry->system - ask->first_system].estimator, length, outcome, err));
	outcome->memory_bytes = ask->ready[entry->system - ask->first_system].memory_bytes;
	return PSD_OK;
}

struct batch {
	struct psd_ask *ask;
	struct psd_ask_entry *entries;
};

/* A simulation with too many events is estimated, unless the estimate leaves keys out: others are simulated with them.
 * A system that does not run on this number of nodes has no prediction. */
static enum psd_status execute_in_child(void *context, unsigned job, struct psd_outcome *outcome, struct psd_error *err)
{
	const struct batch *batch = context;
	enum psd_status status = simulate(batch->ask, &batch->entries[job], outcome, err);
	bool is_new;

	if (status == PSD_EINVAL && err->is_limit && !batch->ask->has_disturbances) {
		status = estimate(batch->ask, &batch->entries[job], &is_new, outcome, err);
		outcome->is_estimate = status == PSD_OK;
	}
	if (status == PSD_EINVAL) {
		*outcome = (struct psd_outcome){.is_refused = true};
		status = PSD_OK;
	}
	return status;
}

static void name_job(const void *context, unsigned job, char *text, size_t room)
{
	const struct batch *batch = context;
	const struct psd_ask_entry *entry = &batch->entries[job];

	snprintf(text, room, "%s at %u nodes", psd_ask_system_name(batch->ask, entry->system), entry->nodes);
}

/* ---- the table of predictions ---- */

static uint64_t hash_of(const struct psd_ask_entry *entry)
{
	uint64_t hash = psd_hash_number(PSD_HASH_START, entry->system), bits;

	memcpy(&bits, &entry->bandwidth_bps, sizeof(bits));
	hash = psd_hash_number(psd_hash_number(hash, entry->nodes), bits);
	return psd_hash_number(psd_hash_number(hash, entry->how), entry->fuse_bytes);
}

static bool is_same(const struct psd_ask_entry *a, const struct psd_ask_entry *b)
{
	return a->system == b->system && a->nodes == b->nodes && a->how == b->how && a->fuse_bytes == b->fuse_bytes &&
	       !memcmp(&a->bandwidth_bps, &b->bandwidth_bps, sizeof(a->bandwidth_bps));
}

static struct psd_ask_entry *slot_of(struct psd_ask_entry *slots, size_t n_slots, const struct psd_ask_entry *entry)
{
	size_t i = (size_t)hash_of(entry) & (n_slots - 1);

	while (slots[i].is_there && !is_same(&slots[i], entry))
		i = (i + 1) & (n_slots - 1);
	return &slots[i];
}

static bool has_room(struct psd_ask *ask)
{
	const size_t n_slots = ask->n_slots ? 2 * ask->n_slots : LEAST_SLOTS;
	struct psd_ask_entry *slots;

	if (2 * ask->n_entries < ask->n_slots)
		return true;
	slots = calloc(n_slots, sizeof(*slots));
	if (!slots) {
		if (!ask->status)
			ask->status = psd_out_of_memory(ask->err);
		return false;
	}
	for (size_t i = 0; i < ask->n_slots; i++)
		if (ask->entries[i].is_there)
			*slot_of(slots, n_slots, &ask->entries[i]) = ask->entries[i];
	free(ask->entries);
	ask->entries = slots;
	ask->n_slots = n_slots;
	return true;
}

static struct psd_ask_entry *keep(struct psd_ask *ask, const struct psd_ask_entry *entry,
				  const struct psd_outcome *outcome)
{
	struct psd_ask_entry *slot = slot_of(ask->entries, ask->n_slots, entry);

	ask->n_entries += !slot->is_there;
	*slot = *entry;
	slot->is_there = true;
	slot->outcome = *outcome;
	return slot;
}

static bool is_known(const struct psd_ask *ask, const struct psd_ask_entry *entry)
{
	return ask->n_slots > 0 && slot_of(ask->entries, ask->n_slots, entry)->is_there;
}

void psd_ask_predict_all(struct psd_ask *ask, const struct psd_ask_entry wanted[], unsigned n)
{
	struct psd_ask_entry *missing = calloc(n > 0 ? n : 1, sizeof(*missing));
	struct psd_outcome *outcomes = calloc(n > 0 ? n : 1, sizeof(*outcomes));
	struct batch batch = {ask, missing};
	struct psd_children children = {.work = execute_in_child, .name = name_job, .context = &batch};

	if (!ask->status && (!missing || !outcomes))
		ask->status = psd_out_of_memory(ask->err);
	for (unsigned i = 0; i < n && !ask->status && !ask->settings.is_estimate; i++)
		if (!is_known(ask, &wanted[i]))
			missing[children.n_jobs++] = wanted[i];
	children.n_at_once = ask->settings.n_at_once < children.n_jobs ? ask->settings.n_at_once : children.n_jobs;
	if (children.n_jobs > 0) {
		ask->status = psd_children_run(&children, outcomes, &ask->signal_number, ask->err);
		if (ask->signal_number && !ask->status)
			ask->status = psd_error_set(ask->err, PSD_ERUN, PSD_NOWHERE, "stopped by a signal");
	}
	for (unsigned i = 0; i < children.n_jobs && !ask->status && has_room(ask); i++) {
		ask->n_simulated += !outcomes[i].is_estimate;
		ask->n_too_large += outcomes[i].is_estimate;
		keep(ask, &missing[i], &outcomes[i]);
	}
	free(missing);
	free(outcomes);
}

/* Estimates an entry and keeps it. A new case is also estimated with the bandwidths of the sweep: most questions ask
 * for all of them, and the case takes longer to make than an estimate. */
static enum psd_status estimate_and_keep(struct psd_ask *ask, const struct psd_ask_entry *entry, struct psd_error *err)
{
	struct psd_ask_entry other = *entry;
	struct psd_outcome outcome;
	bool is_new;
	enum psd_status status = estimate(ask, entry, &is_new, &outcome, err);

	if (status && status != PSD_EINVAL)
		return status;
	if (status)
		outcome = (struct psd_outcome){.is_refused = true};
	keep(ask, entry, &outcome);
	for (unsigned b = 0; b < ask->n_bandwidths && !status && is_new && has_room(ask); b++) {
		struct psd_ask_ready *ready = &ask->ready[entry->system - ask->first_system];
		struct psd_error ignored;
		bool is_other;

		other.bandwidth_bps = ask->bandwidths_bps[b];
		if (!is_known(ask, &other) &&
		    psd_case_reaches(&ready->made, ask->settings.costed, &ask->scenario->systems[entry->system],
				     point_of(ask, other.nodes, other.bandwidth_bps)) &&
		    !estimate(ask, &other, &is_other, &outcome, &ignored))
			keep(ask, &other, &outcome);
	}
	return PSD_OK;
}

/* Shows the question and the prediction that comes next. */
static void show_progress(struct psd_ask *ask, const struct psd_ask_entry *entry)
{
	char name[256];

	if (!ask->progress.is_shown || !ask->question)
		return;
	snprintf(name, sizeof(name), "%s: %.80s at %u nodes", ask->question, psd_ask_system_name(ask, entry->system),
		 entry->nodes);
	psd_progress_show(&ask->progress, ask->n_answered, name);
}

static const struct psd_outcome nothing = {.is_refused = true};

static const struct psd_outcome *predict(struct psd_ask *ask, unsigned system, unsigned nodes, double bandwidth_bps,
					 enum psd_ask_how how)
{
	const struct psd_ask_entry entry = {.system = system,
					    .nodes = nodes,
					    .bandwidth_bps = bandwidth_bps,
					    .how = ask->settings.is_estimate ? PSD_ASK_ESTIMATE : how,
					    .fuse_bytes = ask->fuse_bytes};
	struct psd_error err;

	if (ask->status || !has_room(ask))
		return &nothing;
	if (is_known(ask, &entry))
		return &slot_of(ask->entries, ask->n_slots, &entry)->outcome;
	show_progress(ask, &entry);
	if (entry.how == PSD_ASK_CONFIRM) {
		psd_ask_predict_all(ask, &entry, 1);
		return ask->status ? &nothing : &slot_of(ask->entries, ask->n_slots, &entry)->outcome;
	}
	const enum psd_status status = estimate_and_keep(ask, &entry, &err);
	if (!status)
		return &slot_of(ask->entries, ask->n_slots, &entry)->outcome;
	if (!ask->status) {
		ask->status = status;
		*ask->err = err;
	}
	return &nothing;
}

/* ---- memory ---- */

static bool is_misfit(const struct psd_ask *ask, const struct psd_outcome *outcome)
{
	return ask->scenario->has_job && ask->scenario->job.memory_bytes > 0 &&
	       outcome->memory_bytes > ask->scenario->job.memory_bytes;
}

bool psd_ask_fits(struct psd_ask *ask, unsigned system, unsigned nodes)
{
	return !ask->scenario->has_job || ask->scenario->job.memory_bytes == 0 ||
	       !is_misfit(ask, predict(ask, system, nodes, ask->bandwidths_bps[0], PSD_ASK_ESTIMATE));
}

const struct psd_outcome *psd_ask_predict(struct psd_ask *ask, unsigned system, unsigned nodes, double bandwidth_bps,
					  enum psd_ask_how how)
{
	return psd_ask_fits(ask, system, nodes) ? predict(ask, system, nodes, bandwidth_bps, how) : &nothing;
}

/* Finds the smallest and the largest cluster that a system does not fit; false: it fits all. */
static bool find_misfits(const struct psd_ask *ask, unsigned system, unsigned *least, struct psd_ask_entry *most)
{
	*least = UINT32_MAX;
	*most = (struct psd_ask_entry){.nodes = 0};
	for (size_t i = 0; i < ask->n_slots; i++) {
		const struct psd_ask_entry *entry = &ask->entries[i];

		if (!entry->is_there || entry->system != system || !is_misfit(ask, &entry->outcome))
			continue;
		*least = entry->nodes < *least ? entry->nodes : *least;
		*most = entry->nodes > most->nodes ? *entry : *most;
	}
	return most->nodes > 0;
}

void psd_ask_add_misfits(struct psd_ask *ask, struct psd_answers *answers, const struct psd_text *unanswered)
{
	struct psd_answer *answer = NULL;
	char memory[PSD_UNITS_TEXT_MAX];

	for (unsigned s = ask->first_system; s < ask->first_system + ask->n_systems; s++) {
		struct psd_ask_entry most;
		unsigned least;

		if (!find_misfits(ask, s, &least, &most))
			continue;
		if (!answer) {
			answer = psd_answers_add(answers, "notes", NULL);
			psd_text_add(&answer->sentence, "Left out of answers, since a worker does not fit %s: ",
				     psd_units_write_bytes(ask->scenario->job.memory_bytes, memory));
		}
		psd_text_add(&answer->sentence, "%s%s on ", answer->n_values > 0 ? ", " : "",
			     psd_ask_system_name(ask, s));
		if (least < most.nodes)
			psd_text_add(&answer->sentence, "%u to ", least);
		psd_answer_add_nodes(&answer->sentence, most.nodes);
		psd_answer_add_value(answers, answer,
				     (struct psd_answer_value){.name = "left out",
							       .unit = "bytes",
							       .number = (double)most.outcome.memory_bytes,
							       .system = psd_ask_system_name(ask, s),
							       .nodes = most.nodes});
	}
	if (!answer)
		return;
	psd_text_add(&answer->sentence, ".");
	if (unanswered->length > 0)
		psd_text_add(&answer->sentence, " No system fits, so there is no answer to: %s.", unanswered->bytes);
}

/* ---- figures of predictions ---- */

double psd_ask_samples_per_sec(struct psd_ask *ask, unsigned system, unsigned nodes, double bandwidth_bps,
			       enum psd_ask_how how)
{
	const struct psd_outcome *outcome = psd_ask_predict(ask, system, nodes, bandwidth_bps, how);

	return outcome->iteration_sec > 0.0 ? psd_ask_step_samples(ask, system, nodes) / outcome->iteration_sec : 0.0;
}

double psd_ask_efficiency_ratio(struct psd_ask *ask, unsigned system, unsigned nodes, double bandwidth_bps,
				enum psd_ask_how how)
{
	const struct psd_outcome *outcome = psd_ask_predict(ask, system, nodes, bandwidth_bps, how);
	const struct psd_system *of = &ask->scenario->systems[system];
	const struct psd_point point = point_of(ask, nodes, bandwidth_bps);
	const double compute_sec =
		psd_system_micro_batches(of) * psd_costed_model_compute_sec(ask->settings.costed, of, &point);

	return outcome->iteration_sec > 0.0 ? compute_sec / outcome->iteration_sec : 0.0;
}

/* ---- limits ---- */

void psd_ask_find_limit(struct psd_ask *ask, unsigned system, unsigned nodes, double bandwidth_bps,
			struct psd_answer_value *value)
{
	const struct psd_outcome *outcome = psd_ask_predict(ask, system, nodes, bandwidth_bps, PSD_ASK_CONFIRM);
	const struct psd_result_basis basis = {.scenario = ask->scenario, .executor = ""};
	struct psd_result result;
	const struct psd_report report = {.costed = ask->settings.costed,
					  .is_estimate = ask->settings.is_estimate,
					  .systems = &ask->scenario->systems[system],
					  .results = &result,
					  .n_systems = 1,
					  .n_points = 1};

	value->limit = (struct psd_limit){.kind = PSD_LIMIT_NONE};
	if (outcome->iteration_sec <= 0.0)
		return;
	result = psd_result_make(&basis, &ask->scenario->systems[system], point_of(ask, nodes, bandwidth_bps), outcome,
				 0.0);
	value->limit = psd_output_limit(&report, &result);
}

void psd_ask_add_comparison(struct psd_ask *ask, struct psd_text *text)
{
	const struct psd_result_basis basis = {.scenario = ask->scenario, .executor = ""};
	const struct psd_point point = point_of(ask, ask->most_nodes, ask->bandwidths_bps[0]);
	struct psd_result results[PSD_MAX_SYSTEMS];
	const struct psd_report report = {.costed = ask->settings.costed,
					  .is_estimate = ask->settings.is_estimate,
					  .systems = &ask->scenario->systems[ask->first_system],
					  .results = results,
					  .n_systems = ask->n_systems,
					  .n_points = 1};

	for (unsigned s = 0; s < ask->n_systems; s++) {
		const struct psd_outcome *outcome =
			predict(ask, ask->first_system + s, point.nodes, point.bandwidth_bps, PSD_ASK_ESTIMATE);

		results[s] = psd_result_make(&basis, &report.systems[s], point, outcome, 0.0);
		results[s].is_refused = outcome->is_refused;
	}
	psd_output_add_comparison(text, &report);
}

/* ---- opening ---- */

/* Numbers of nodes: those of the sweep bound the range. Without a sweep it goes to the cluster's, from a single node to
 * 64. */
static void find_range(struct psd_ask *ask)
{
	const struct psd_scenario *scenario = ask->scenario;
	const bool is_swept = scenario->n_sweep_nodes > 0 || scenario->n_sweep_workers > 0;

	ask->least_nodes = is_swept ? UINT32_MAX : 1;
	for (unsigned i = 0; i < psd_scenario_points(scenario); i++) {
		const unsigned nodes = psd_scenario_point(scenario, i).nodes;

		ask->least_nodes = nodes < ask->least_nodes ? nodes : ask->least_nodes;
		ask->most_nodes = nodes > ask->most_nodes ? nodes : ask->most_nodes;
	}
	if (!is_swept && ask->most_nodes == 1 && scenario->network.topology != PSD_TOPOLOGY_PLATFORM)
		ask->most_nodes = NODES_WITHOUT_SWEEP;
}

static enum psd_status list_sizes(struct psd_ask *ask)
{
	unsigned nodes = ask->scenario->n_groups > 0 ? ask->most_nodes : 1;

	ask->sizes = calloc(ask->most_nodes < 2048 ? ask->most_nodes : 2048, sizeof(*ask->sizes));
	if (!ask->sizes)
		return psd_out_of_memory(ask->err);
	for (; nodes < ask->most_nodes; nodes = nodes < ALL_SIZES ? nodes + 1 : (unsigned)(nodes * size_step_ratio))
		ask->sizes[ask->n_sizes++] = nodes;
	ask->sizes[ask->n_sizes++] = ask->most_nodes;
	return PSD_OK;
}

/* Reports a system that cannot run at the last point of the sweep, as a prediction does. */
static enum psd_status check_systems(const struct psd_ask *ask, struct psd_error *err)
{
	const struct psd_scenario *scenario = ask->scenario;
	enum psd_status status = PSD_OK;

	for (unsigned s = 0; s < ask->n_systems && !status; s++) {
		struct psd_case made;

		status = psd_case_make(&made, ask->settings.costed, &scenario->systems[ask->first_system + s],
				       psd_scenario_point(scenario, psd_scenario_points(scenario) - 1), err);
		if (!status)
			psd_case_release(&made);
		else if (status == PSD_EINVAL && err->is_limit)
			status = PSD_OK;
	}
	return status;
}

/* Keeps results of a sweep of the same scenario. */
static void keep_known(struct psd_ask *ask, const struct psd_report *report)
{
	const unsigned n_results = report->n_systems * report->n_points;

	for (unsigned i = 0; i < n_results && has_room(ask); i++) {
		const struct psd_result *result = &report->results[i];
		const struct psd_point *point = &result->point;
		const struct psd_ask_entry entry = {
			.system = (unsigned)(result->system - ask->scenario->systems),
			.nodes = point->nodes,
			.bandwidth_bps = point->bandwidth_bps,
			.fuse_bytes = point->fuse_bytes,
			.how = ask->settings.is_estimate ? PSD_ASK_ESTIMATE : PSD_ASK_CONFIRM,
		};
		const struct psd_point same = point_of(ask, point->nodes, point->bandwidth_bps);

		if (psd_report_costed(report, result) == ask->settings.costed && !result->is_refused &&
		    point->workers == same.workers && point->workers_per_node == same.workers_per_node)
			keep(ask, &entry, &result->outcome);
	}
}

enum psd_status psd_ask_open(struct psd_ask *ask, const struct psd_ask_settings *settings, struct psd_error *err)
{
	const struct psd_scenario *scenario = settings->costed->scenario;
	enum psd_status status = PSD_OK;
	double slowest_bps;

	*ask = (struct psd_ask){.settings = *settings,
				.scenario = scenario,
				.has_disturbances = !settings->is_estimate &&
						    (scenario->n_slowdowns > 0 || scenario->n_backgrounds > 0 ||
						     psd_jitter_is_drawn(scenario)),
				.n_systems = scenario->n_systems,
				.bandwidths_bps = &scenario->network.bandwidth_bps,
				.n_bandwidths = 1,
				.fuse_bytes = psd_scenario_point(scenario, 0).fuse_bytes,
				.err = err};
	if (scenario->n_sweep_bandwidths > 0) {
		ask->bandwidths_bps = scenario->sweep_bandwidth_bps;
		ask->n_bandwidths = scenario->n_sweep_bandwidths;
	}
	if (settings->system_name) {
		ask->n_systems = 1;
		status = psd_scenario_find_system(scenario, settings->system_name, &ask->first_system, err);
	}
	if (!status && ask->bandwidths_bps[0] <= 0.0)
		status = psd_error_set(err, PSD_EINVAL, (struct psd_place){scenario->path, 0, 0},
				       "questions need 'bandwidth' and 'latency' in 'network' beside 'platform'");
	find_range(ask);
	find_rates(ask);
	psd_scenario_find_links(scenario, &slowest_bps, &ask->fastest_bps);
	if (!status)
		status = list_sizes(ask);
	if (!status)
		status = check_systems(ask, err);
	ask->ready = calloc(ask->n_systems, sizeof(*ask->ready));
	if (!status && !ask->ready)
		status = psd_out_of_memory(err);
	if (!status && settings->known)
		keep_known(ask, settings->known);
	if (!status)
		status = ask->status;
	if (status)
		psd_ask_close(ask);
	return status;
}

void psd_ask_close(struct psd_ask *ask)
{
	for (unsigned s = 0; ask->ready && s < ask->n_systems; s++)
		discard(&ask->ready[s]);
	free(ask->ready);
	ask->ready = NULL;
	free(ask->sizes);
	free(ask->entries);
	ask->sizes = NULL;
	ask->entries = NULL;
}
