/* The table of results, one group of rows for each point, so that systems are compared at equal conditions. */
#include <math.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/base/units.h"
#include "engine/result/columns.h"
#include "engine/scenario/stack.h"
#include "sim/output/grid.h"
#include "sim/output/output.h"

/* ---- head of the table ---- */

/* Least and largest of a value over the variants of a sweep. */
struct span {
	double least, most;
};

static void widen(struct span *span, double value)
{
	span->least = fmin(span->least, value);
	span->most = fmax(span->most, value);
}

/* Spans over all variants: batch (of all workers, if groups divide it), seconds of a batch, and samples per second of a
 * worker that only computes. */
struct workloads {
	struct span batch, compute_sec, samples_per_sec;
	bool has_devices; /* devices or profiles differ */
};

static double find_batch(const struct psd_scenario *scenario, const struct psd_point *point)
{
	const struct psd_system none = {.name = NULL};

	return scenario->n_groups > 0 ? (double)psd_scenario_all_samples(scenario, &none, point->nodes, point->workers)
				      : psd_scenario_workload(scenario, &none).batch_per_worker;
}

static struct workloads find_workloads(const struct psd_report *report)
{
	const struct psd_system none = {.name = NULL};
	const struct span empty = {INFINITY, -INFINITY};
	struct workloads found = {empty, empty, empty, false};
	const char *first = NULL;

	for (unsigned p = 0; p < report->n_points; p++) {
		const struct psd_costed_model *costed = psd_report_costed(report, &report->results[p]);
		const struct psd_workload workload = psd_scenario_workload(costed->scenario, &none);
		const char *device = workload.profile_path ? workload.profile_path : workload.device_name;

		first = first ? first : device;
		found.has_devices = found.has_devices || strcmp(device, first) != 0;
		widen(&found.batch, find_batch(costed->scenario, &report->results[p].point));
		widen(&found.compute_sec, costed->costs.compute_sec);
		widen(&found.samples_per_sec, workload.batch_per_worker / costed->costs.compute_sec);
	}
	return found;
}

static void write_model(FILE *out, const struct psd_report *report)
{
	const struct workloads workloads = find_workloads(report);
	const struct psd_scenario *scenario = report->costed->scenario;
	const struct psd_graph *graph = &report->costed->graph;
	const uint64_t wire_bytes = graph->parameters * (psd_precision_is_half(scenario->precision) ? 2 : 4);
	char count[PSD_UNITS_TEXT_MAX], bytes[PSD_UNITS_TEXT_MAX];

	fputs("model     ", out);
	psd_grid_write_text(out, graph->name);
	fprintf(out, ": %s parameters in %u tensor%s, gradients of %s (%s); batch %.0f",
		psd_units_write_count(graph->parameters, count), graph->n_tensors, psd_text_plural(graph->n_tensors),
		psd_units_write_bytes(wire_bytes, bytes),
		scenario->precision == PSD_PRECISION_BF16    ? "bf16"
		: psd_precision_is_half(scenario->precision) ? "fp16"
							     : "fp32",
		workloads.batch.least);
	if (workloads.batch.most > workloads.batch.least)
		fprintf(out, " to %.0f", workloads.batch.most);
	fputs(scenario->n_groups > 0 ? " of all groups\n" : " per worker\n", out);
}

static void add_compute(struct psd_text *sentence, const struct psd_workload *workload, const struct psd_costs *costs)
{
	static const char *const words[PSD_COSTS_SOURCES] = {
		[PSD_COSTS_MODEL] = "from a model of the device, not measured: ",
		[PSD_COSTS_SCALED] = "measured in part, the rest scaled: ",
		[PSD_COSTS_MEASURED] = "measured: ",
	};
	char sec[PSD_UNITS_TEXT_MAX], number[PSD_UNITS_TEXT_MAX];

	const double samples_per_sec = workload->batch_per_worker / costs->compute_sec;

	psd_text_add(sentence, "%s a batch, %s samples/s", psd_units_write_seconds(costs->compute_sec, sec),
		     psd_units_write_number(samples_per_sec, number));
	psd_text_add(sentence, " on one worker alone; ");
	psd_text_add(sentence, "%s%s", words[costs->source],
		     workload->profile_path ? psd_file_name(workload->profile_path) : workload->device_name);
	if (workload->samples_per_sec > 0.0)
		psd_text_add(sentence, ", scaled to %s samples/s",
			     psd_units_write_number(workload->samples_per_sec, number));
	if (workload->mfu_ratio > 0.0)
		psd_text_add(sentence, ", scaled to %.4g %% of its peak", 100.0 * workload->mfu_ratio);
}

/* The variants of a sweep compute for different times. */
static void add_computes(struct psd_text *sentence, const struct workloads *workloads,
			 const struct psd_workload *workload)
{
	char least[PSD_UNITS_TEXT_MAX], most[PSD_UNITS_TEXT_MAX];

	psd_text_add(sentence, "%s to %s a batch, ", psd_units_write_seconds(workloads->compute_sec.least, least),
		     psd_units_write_seconds(workloads->compute_sec.most, most));
	psd_text_add(sentence, "%s to %s samples/s on one worker alone; ",
		     psd_units_write_number(workloads->samples_per_sec.least, least),
		     psd_units_write_number(workloads->samples_per_sec.most, most));
	if (workloads->has_devices)
		psd_text_add(sentence, "several devices");
	else
		psd_text_add(sentence, "%s",
			     workload->profile_path ? psd_file_name(workload->profile_path) : workload->device_name);
}

static void write_compute(FILE *out, const struct psd_report *report)
{
	const struct workloads workloads = find_workloads(report);
	const struct psd_scenario *scenario = report->costed->scenario;
	const struct psd_workload workload = psd_scenario_workload(scenario, &(struct psd_system){.name = NULL});
	struct psd_text sentence = {.bytes = NULL};

	psd_text_add(&sentence, "compute   ");
	if (workloads.compute_sec.most > workloads.compute_sec.least)
		add_computes(&sentence, &workloads, &workload);
	else
		add_compute(&sentence, &workload, &report->costed->costs);
	if (scenario->jitter_ratio > 0.0)
		psd_text_add(&sentence, ", jitter %.3g %%", 100.0 * scenario->jitter_ratio);
	if (scenario->spread.ratio > 0.0)
		psd_text_add(&sentence, ", spread %.3g %%", 100.0 * scenario->spread.ratio);
	if (scenario->spread.tail_chance_ratio > 0.0)
		psd_text_add(&sentence, ", %.3g %% of iterations %.4g times as long",
			     100.0 * scenario->spread.tail_chance_ratio, scenario->spread.tail_factor);
	psd_sentence_write(out, &sentence, 10);
}

/* Writes a line for each system with its own workload, or with several batches in an iteration. */
static void write_own_workloads(FILE *out, const struct psd_report *report)
{
	const struct psd_scenario *scenario = report->costed->scenario;

	for (const struct psd_system *system = report->systems; system < report->systems + report->n_systems;
	     system++) {
		const struct psd_workload workload = psd_scenario_workload(scenario, system);
		const unsigned n = psd_system_micro_batches(system);
		struct psd_text sentence = {.bytes = NULL};

		if (!psd_system_has_workload(system) && n == 1)
			continue;
		psd_text_add(&sentence, "          %s: ", system->name);
		if (n > 1 && scenario->n_groups > 0) /* their batches follow */
			psd_text_add(&sentence, "%u micro-batches in an iteration", n);
		else if (n > 1)
			psd_text_add(&sentence, "%u micro-batches of %u in an iteration", n, workload.batch_per_worker);
		if (psd_system_has_workload(system)) {
			psd_text_add(&sentence, "%sbatch %u, %s, ", n > 1 ? "; " : "", workload.batch_per_worker,
				     workload.precision_name);
			add_compute(&sentence, &workload, psd_costed_model_costs(report->costed, system));
		}
		psd_sentence_write(out, &sentence, 12);
	}
}

static void add_extent(struct psd_text *sentence, const struct psd_report *report)
{
	const struct psd_scenario *scenario = report->costed->scenario;
	unsigned fewest = report->results[0].point.nodes, most = fewest;

	for (unsigned p = 1; p < report->n_points; p++) {
		const unsigned nodes = report->results[p].point.nodes;

		fewest = nodes < fewest ? nodes : fewest;
		most = nodes > most ? nodes : most;
	}
	if (fewest == most)
		psd_text_add(sentence, "%u node%s", most, psd_text_plural(most));
	else
		psd_text_add(sentence, "%u to %u nodes", fewest, most);
	if (scenario->n_groups > 0 && report->results[0].point.workers != most * scenario->workers_per_node)
		psd_text_add(sentence, ", %u workers", report->results[0].point.workers);
	else if (scenario->workers_per_node > 1)
		psd_text_add(sentence, " of %u workers", scenario->workers_per_node);
}

/* Adds the latency of a message between two nodes: of the cluster, or of the groups if all have their own. */
static void add_latency(struct psd_text *sentence, const struct psd_scenario *scenario)
{
	double least_sec = INFINITY, most_sec = 0.0;
	char sec[PSD_UNITS_TEXT_MAX];

	for (unsigned g = 0; g < scenario->n_groups; g++) {
		least_sec = fmin(least_sec, scenario->groups[g].latency_sec);
		most_sec = fmax(most_sec, scenario->groups[g].latency_sec);
	}
	if (scenario->n_groups == 0 || least_sec <= 0.0)
		least_sec = most_sec = scenario->network.latency_sec;
	psd_text_add(sentence, ", %s", psd_units_write_seconds(least_sec, sec));
	if (most_sec > least_sec)
		psd_text_add(sentence, " to %s", psd_units_write_seconds(most_sec, sec));
	psd_text_add(sentence, " one way, ");
}

/* Adds the network to the title, with its bandwidth if the sweep has only one; several bandwidths have a column of
 * their own. */
static void add_network(struct psd_text *sentence, const struct psd_scenario *scenario)
{
	const struct psd_network *network = &scenario->network;
	char rate[PSD_UNITS_TEXT_MAX];

	double least_bps = psd_scenario_point(scenario, 0).bandwidth_bps, most_bps = least_bps;
	psd_scenario_find_links(scenario, &least_bps, &most_bps);
	if (scenario->n_sweep_bandwidths < 2 && least_bps > 0.0)
		psd_text_add(sentence, ", %s", psd_units_write_rate(least_bps, rate));
	if (most_bps > least_bps)
		psd_text_add(sentence, " to %s", psd_units_write_rate(most_bps, rate));
	if (network->topology == PSD_TOPOLOGY_PLATFORM) {
		psd_text_add(sentence, ", SimGrid platform %s", psd_file_name(network->platform_path));
		return;
	}
	add_latency(sentence, scenario);
	if (network->topology == PSD_TOPOLOGY_STAR)
		psd_text_add(sentence, "one switch that never blocks");
	else
		psd_text_add(sentence, "%s of %u nodes, uplinks %.3g:1", psd_topology_names[network->topology],
			     network->nodes_per_rack, network->oversubscription_ratio);
}

static void write_cluster(FILE *out, const struct psd_report *report)
{
	const struct psd_scenario *scenario = report->costed->scenario;
	struct psd_text sentence = {.bytes = NULL};

	psd_text_add(&sentence, "cluster   ");
	add_extent(&sentence, report);
	add_network(&sentence, scenario);
	if (scenario->n_slowdowns)
		psd_text_add(&sentence, ", %u slowdown%s", scenario->n_slowdowns,
			     psd_text_plural(scenario->n_slowdowns));
	if (scenario->n_backgrounds)
		psd_text_add(&sentence, ", background traffic");
	psd_sentence_write(out, &sentence, 10);
}

static void add_kinds(struct psd_text *sentence, const struct psd_kinds *kinds, const struct psd_node_group groups[])
{
	char rate[PSD_UNITS_TEXT_MAX], sec[PSD_UNITS_TEXT_MAX];
	bool are_uneven = false;

	for (unsigned k = 1; k < kinds->n; k++)
		are_uneven = are_uneven || kinds->nodes[k].workers != kinds->nodes[0].workers;
	for (unsigned k = 0, first = 0; k < kinds->n; first = kinds->nodes[k++].end_node) {
		const struct psd_plan_kind *kind = &kinds->plan[k];
		const struct psd_workload *own = &kind->system.own;
		const unsigned n = kinds->nodes[k].end_node - first;

		psd_text_add(sentence, "%s%u node%s", k > 0 ? "; " : "", n, psd_text_plural(n));
		if (are_uneven)
			psd_text_add(sentence, " of %u worker%s", kinds->nodes[k].workers,
				     psd_text_plural(kinds->nodes[k].workers));
		if (own->profile_path || own->device_name)
			psd_text_add(sentence, " (%s)",
				     own->profile_path ? psd_file_name(own->profile_path) : own->device_name);
		if (kind->speed_ratio != 1.0)
			psd_text_add(sentence, " of speed %s %%",
				     psd_units_write_number(100.0 * kind->speed_ratio, rate));
		if (groups[kinds->nodes[k].group].bandwidth_bps > 0.0)
			psd_text_add(sentence, " at %s", psd_units_write_rate(kind->bandwidth_bps, rate));
		if (groups[kinds->nodes[k].group].latency_sec > 0.0)
			psd_text_add(sentence, ", %s one way",
				     psd_units_write_seconds(groups[kinds->nodes[k].group].latency_sec, sec));
		psd_text_add(sentence, ": batch %u, %s", kind->batch,
			     psd_units_write_seconds(kind->costs.compute_sec / kind->speed_ratio, sec));
	}
}

/* Tells how the samples of an iteration are divided among groups, for each way that a system divides them. */
static void write_groups(FILE *out, const struct psd_report *report)
{
	const struct psd_costed_model *costed = report->costed;
	const struct psd_point point = psd_scenario_point(costed->scenario, 0);

	for (unsigned split = 0; psd_split_names[split] && costed->scenario->n_groups > 0; split++) {
		struct psd_text sentence = {.bytes = NULL};
		struct psd_kinds kinds;
		struct psd_error err;
		unsigned s = 0;

		while (s < report->n_systems && (unsigned)report->systems[s].split != split)
			s++;
		if (s == report->n_systems ||
		    psd_kinds_make(&kinds, costed->scenario, &costed->graph, &report->systems[s], &point, NULL, &err))
			continue;
		psd_text_add(&sentence, "groups    split %s: ", psd_split_names[split]);
		add_kinds(&sentence, &kinds, costed->scenario->groups);
		psd_kinds_release(&kinds);
		psd_sentence_write(out, &sentence, 10);
	}
}

static bool has_several_stacks(const struct psd_report *report)
{
	for (unsigned s = 1; s < report->n_systems; s++)
		if (report->systems[s].stack != report->systems[0].stack)
			return true;
	return false;
}

/* "Ring, PowerSGD on ": names of the systems on that stack. */
static void add_users(struct psd_text *sentence, const struct psd_report *report, const struct psd_stack_row *stack)
{
	const char *separator = "";

	for (unsigned s = 0; s < report->n_systems; s++)
		if (report->systems[s].stack == stack) {
			psd_text_add(sentence, "%s%s", separator, report->systems[s].name);
			separator = ", ";
		}
	psd_text_add(sentence, " on ");
}

/* Writes a line for each stack of the systems. Where nothing costs anything there is none to name. */
static void write_stacks(FILE *out, const struct psd_report *report)
{
	const char *head = "stack     ";

	for (unsigned s = 0; s < report->n_systems; s++) {
		const struct psd_stack_row *stack = report->systems[s].stack;
		struct psd_text sentence = {.bytes = NULL};
		bool is_new = !stack->frees_device;

		for (unsigned other = 0; other < s; other++)
			is_new = is_new && report->systems[other].stack != stack;
		if (!is_new)
			continue;
		psd_text_add(&sentence, "%s", head);
		if (has_several_stacks(report))
			add_users(&sentence, report, stack);
		psd_stack_add_line(&sentence, stack);
		psd_sentence_write(out, &sentence, 10);
		head = "          ";
	}
}

static void write_executor(FILE *out, const struct psd_report *report)
{
	const struct psd_scenario *scenario = report->costed->scenario;

	if (report->is_estimate)
		fputs("executor  estimate, closed form", out);
	else
		fprintf(out, "executor  SimGrid, fidelity %s", psd_fidelity_names[scenario->fidelity]);
	fputs("; speedup over one worker ", out);
	if (scenario->baseline_system < 0) {
		fputs("that only computes\n", out);
		return;
	}
	fputs("of ", out);
	psd_grid_write_text(out, scenario->systems[scenario->baseline_system].name);
	fputc('\n', out);
}

static void add_skipped(struct psd_text *sentence, uint64_t n, const char *words)
{
	char count[PSD_UNITS_TEXT_MAX];

	if (n > 0)
		psd_text_add(sentence, "; %s %s", psd_units_write_count(n, count), words);
}

/* Says, for the simulation of most nodes, how many of them were simulated, and what else was not. */
static void write_classes(FILE *out, const struct psd_report *report)
{
	const struct psd_outcome *most = &report->results[0].outcome;
	struct psd_text sentence = {.bytes = NULL};

	for (unsigned i = 1; i < report->n_systems * report->n_points; i++)
		if (report->results[i].outcome.n_nodes > most->n_nodes)
			most = &report->results[i].outcome;
	if (most->n_simulated_nodes == 0 || most->n_simulated_nodes == most->n_nodes)
		return;
	psd_text_add(&sentence, "classes   %u node%s for %u", most->n_simulated_nodes,
		     most->n_simulated_nodes == 1 ? " stands" : "s stand", most->n_nodes);
	add_skipped(&sentence, most->n_skipped_messages, "messages were like others and not simulated");
	add_skipped(&sentence, most->n_skipped_iterations, "iterations were like others and not simulated");
	psd_text_add(&sentence, " (all: --every-node)");
	psd_sentence_write(out, &sentence, 10);
}

/* ---- the table ---- */

static bool has_fit(const struct psd_report *report)
{
	for (unsigned i = 0; i < report->n_systems * report->n_points; i++)
		if (report->results[i].is_fitted.value > 0.0)
			return true;
	return false;
}

static void write_calibration(FILE *out, const struct psd_calibrated *calibration)
{
	char rate[PSD_UNITS_TEXT_MAX];

	if (calibration->workers)
		fprintf(out, "calibrated on up to %u worker%s at %s; what is beyond is extrapolated\n",
			calibration->workers, psd_text_plural(calibration->workers),
			psd_units_write_rate(calibration->bandwidth_bps, rate));
}

enum psd_status psd_output_table(FILE *out, const struct psd_report *report, struct psd_error *err)
{
	struct psd_text table = {.bytes = NULL};

	psd_grid_write_text(out, report->costed->scenario->title);
	fputs("\n\n", out);
	write_model(out, report);
	write_compute(out, report);
	write_own_workloads(out, report);
	write_cluster(out, report);
	write_groups(out, report);
	write_stacks(out, report);
	write_executor(out, report);
	if (!report->is_estimate)
		write_classes(out, report);
	fputc('\n', out);
	psd_columns_add_table(&table, report->results, report->n_systems, report->n_points);
	PSD_TRY(psd_output_text(out, &table, err));
	fputc('\n', out);
	if (has_fit(report))
		fputs("c: calibrated on this value; not a prediction\n", out);
	write_calibration(out, &report->costed->scenario->calibration);
	psd_output_notes(out, report);
	psd_output_bottlenecks(out, report);
	return PSD_OK;
}

enum psd_status psd_output_csv(FILE *out, const struct psd_report *report, struct psd_error *err)
{
	struct psd_text text = {.bytes = NULL};

	for (unsigned i = 0; i < report->n_systems * report->n_points; i++)
		psd_columns_add_csv(&text, &report->results[i]);
	return psd_output_text(out, &text, err);
}
