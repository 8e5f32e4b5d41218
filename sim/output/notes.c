/* Notes about a report: figures that are approximate, and settings that were not taken into account. */
#include <math.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/collectives/collective.h"
#include "engine/program/choice.h"
#include "engine/scenario/scenario_heed.h"
#include "engine/scenario/stack.h"
#include "sim/output/grid.h"
#include "sim/output/output.h"

enum { MOST_CASES_NAMED = 6, LEAST_FOR_P99 = 100 };

#define MOST_SPREAD_RATIO 0.15 /* highest spread of a calibration without a warning */

static bool may_take_steps(const struct psd_report *report)
{
	for (unsigned s = 0; s < report->n_systems; s++)
		if (psd_choice_may_take_steps(&report->systems[s]))
			return true;
	return false;
}

/* Tells whether links change their capacity during a run, in any variant of a sweep. */
static bool has_changing_links(const struct psd_report *report)
{
	for (unsigned r = 0; r < report->n_systems * report->n_points; r++) {
		const struct psd_scenario *scenario = psd_report_costed(report, &report->results[r])->scenario;

		for (unsigned i = 0; i < scenario->n_slowdowns; i++)
			if (scenario->slowdowns[i].link_ratio != 1.0)
				return true;
		if (scenario->n_backgrounds > 0)
			return true;
	}
	return false;
}

/* Writes each line as a sentence with that beginning. */
static void write_lines(FILE *out, const char *beginning, const char *lines)
{
	for (const char *line = lines; line && *line; line = strchr(line, '\n') + 1) {
		struct psd_text sentence = {.bytes = NULL};

		psd_text_add(&sentence, "%s%.*s", beginning, (int)strcspn(line, "\n"), line);
		psd_sentence_write(out, &sentence, 6);
	}
}

static void write_added(FILE *out, void (*add)(struct psd_text *text, const struct psd_report *report),
			const struct psd_report *report)
{
	struct psd_text text = {.bytes = NULL};

	add(&text, report);
	write_lines(out, "", text.bytes);
	psd_text_release(&text);
}

/* Names the keys of the scenario that an estimate ignores and a simulation takes into account. */
static void add_estimate_note(struct psd_text *text, const struct psd_report *report)
{
	struct psd_text keys = {.bytes = NULL};

	if (report->is_estimate)
		psd_scenario_add_unheeded(&keys, report->costed->scenario, PSD_BY_ESTIMATE, PSD_BY_SIMULATION);
	for (const char *line = keys.bytes; line && *line; line = strchr(line, '\n') + 1)
		psd_text_add(text, "note: %.*s\n", (int)strcspn(line, "\n"), line);
	psd_text_release(&keys);
}

/* Tells what flow fidelity leaves out where links change their rates. */
static void add_flow_note(struct psd_text *text, const struct psd_report *report)
{
	if (!report->is_estimate && report->costed->scenario->fidelity == PSD_FIDELITY_FLOW && may_take_steps(report) &&
	    has_changing_links(report))
		psd_text_add(text, "note: flow fidelity takes a ring as one flow for each neighbour, and was off by up "
				   "to 30 %% where links slow down or have other traffic: use fidelity: message\n");
}

/* Appends "4 nodes, 10 Gb/s, model.batch_per_worker 64". */
static void add_place(struct psd_text *text, const struct psd_report *report, const struct psd_result *result)
{
	char point[64], rate[PSD_UNITS_TEXT_MAX];

	psd_text_add(text, "%s", psd_result_point_name(&result->point, point, sizeof(point)));
	if (report->costed->scenario->n_sweep_bandwidths > 1)
		psd_text_add(text, ", %s", psd_units_write_rate(result->point.bandwidth_bps, rate));
	psd_result_add_swept(text, result->swept);
}

/* A budget that is no lower than the links of all points. Links that change may be faster at times. */
static void add_budget(struct psd_text *text, const struct psd_report *report, unsigned s)
{
	const struct psd_system *system = &report->systems[s];
	double fastest_bps = 0.0;

	for (unsigned p = 0; p < report->n_points; p++) {
		const struct psd_result *result = &report->results[s * report->n_points + p];

		if (result->is_refused || result->point.nodes < 2)
			continue;
		system = result->system->budget_bps < system->budget_bps ? result->system : system;
		fastest_bps =
			fmax(fastest_bps, psd_scenario_fastest_link_bps(psd_report_costed(report, result)->scenario,
									system, result->point.bandwidth_bps));
	}
	if (!has_changing_links(report))
		psd_result_add_budget(text, system, fastest_bps, report->costed->scenario->network.payload_ratio);
}

/* Returns the system's result at the last point that has one, if possible at the last one that withholds chunks; NULL:
 * no point has a result. */
static const struct psd_result *last_result(const struct psd_report *report, unsigned s, bool withholds)
{
	const struct psd_result *last = NULL;

	for (unsigned p = report->n_points; p-- > 0;) {
		const struct psd_result *result = &report->results[s * report->n_points + p];
		const struct psd_early_chunks *early = &result->outcome.early;

		if (result->is_refused)
			continue;
		if (!withholds || early->n_sent < early->n)
			return result;
		last = last ? last : result;
	}
	return last;
}

static void add_where(struct psd_text *where, const struct psd_report *report, const struct psd_result *result)
{
	psd_text_clear(where);
	psd_text_add(where, "' at ");
	add_place(where, report, result);
}

/* Chunks that are sent early, ages of reads, the bound of asynchronous training, and periods that it cuts short. */
static void add_counts(struct psd_text *text, const struct psd_report *report, unsigned s)
{
	const struct psd_result *managed = last_result(report, s, true), *last = last_result(report, s, false);
	struct psd_text where = {.bytes = NULL};

	if (!last)
		return;
	add_where(&where, report, managed);
	psd_result_add_managed(text, managed->system, where.bytes, &managed->outcome.early);
	add_where(&where, report, last);
	psd_result_add_reads(text, last->system, where.bytes, last->outcome.reads);
	psd_result_add_bound(text, last, where.bytes);
	psd_result_add_period(text, last, where.bytes);
	psd_text_release(&where);
}

static bool has_line(const struct psd_text *text, const char *line, size_t length)
{
	const char *end = NULL;

	for (const char *at = text->bytes; at && *at; at = end + 1) {
		end = strchr(at, '\n');
		if ((size_t)(end - at) == length && memcmp(at, line, length) == 0)
			return true;
	}
	return false;
}

/* Adds the notes of one variant of a system that `said` lacks. Those which one of two other variants lacks tell the
 * swept values. */
static void add_variant(struct psd_text *text, struct psd_text *said, const struct psd_result *result, unsigned workers,
			const struct psd_text *others)
{
	struct psd_text lossy = {.bytes = NULL}, swept = {.bytes = NULL};
	size_t length;

	psd_result_add_lossy(&lossy, result->system, workers, result->outcome.n_parts);
	psd_result_add_swept(&swept, result->swept);
	for (const char *line = lossy.bytes; line && *line; line += length + 1) {
		length = strcspn(line, "\n");
		if (has_line(said, line, length))
			continue;
		psd_text_add(said, "%.*s\n", (int)length, line);
		psd_text_add(text, "%.*s", (int)length, line);
		if (swept.bytes && (!has_line(&others[0], line, length) || !has_line(&others[1], line, length)))
			psd_text_add(text, " (%s)", swept.bytes + strlen(", "));
		psd_text_add(text, "\n");
	}
	psd_text_release(&lossy);
	psd_text_release(&swept);
}

/* Adds notes on how a system trains with the most workers of its points, in all variants of a sweep. A note that the
 * first and the last one share counts as that of all. */
static void add_lossy(struct psd_text *text, const struct psd_report *report, unsigned s)
{
	const struct psd_result *results = &report->results[s * report->n_points];
	struct psd_text ends[2] = {{.bytes = NULL}, {.bytes = NULL}}, said = {.bytes = NULL};
	unsigned workers = 1;

	for (unsigned p = 0; p < report->n_points; p++)
		if (!results[p].is_refused && results[p].point.workers > workers)
			workers = results[p].point.workers;
	for (unsigned p = 0; p < report->n_points; p++)
		if (p == 0 || p + 1 == report->n_points)
			psd_result_add_lossy(&ends[p > 0], results[p].system, workers, results[p].outcome.n_parts);
	for (unsigned p = 0; p < report->n_points; p++)
		if (!results[p].is_refused)
			add_variant(text, &said, &results[p], workers, ends);
	psd_text_release(&said);
	psd_text_release(&ends[0]);
	psd_text_release(&ends[1]);
}

static void write_system_notes(FILE *out, const struct psd_report *report)
{
	struct psd_text text = {.bytes = NULL};

	for (unsigned s = 0; s < report->n_systems; s++)
		add_lossy(&text, report, s);
	for (unsigned s = 0; s < report->n_systems; s++)
		psd_result_add_assumed(&text, &report->systems[s]);
	for (unsigned s = 0; s < report->n_systems; s++)
		add_counts(&text, report, s);
	for (unsigned s = 0; s < report->n_systems; s++)
		add_budget(&text, report, s);
	if (text.bytes)
		fputs(text.bytes, out);
	psd_text_release(&text);
}

/* Warns that psd-run cannot emulate the links of this scenario. */
static void write_links_note(FILE *out, const struct psd_scenario *scenario)
{
	const unsigned n_points = scenario->has_train && !scenario->has_replay ? psd_scenario_points(scenario) : 0;
	char text[PSD_UNITS_TEXT_MAX];

	for (unsigned p = 0; p < n_points; p++) {
		const double bps = psd_scenario_point(scenario, p).bandwidth_bps;

		if (bps == 0.0 || (bps >= PSD_RUN_MIN_BPS && bps <= PSD_RUN_MAX_BPS))
			continue;
		fprintf(out, "note: psd-run refuses links of %s: it takes 100kbps to 400Gbps\n",
			psd_units_write_rate(bps, text));
		return;
	}
}

/* Tells that a throughput, which is measured or of the peak rate, hides what a system recomputes. */
static void add_recompute_note(struct psd_text *text, const struct psd_report *report)
{
	const struct psd_scenario *scenario = report->costed->scenario;

	for (unsigned s = 1; s < report->n_systems; s++) {
		const struct psd_system *first = &report->systems[0], *system = &report->systems[s];
		const struct psd_workload one = psd_scenario_workload(scenario, first),
					  other = psd_scenario_workload(scenario, system);
		const bool has_rate = one.samples_per_sec > 0.0 || one.mfu_ratio > 0.0;

		if (!has_rate || one.samples_per_sec != other.samples_per_sec || one.mfu_ratio != other.mfu_ratio ||
		    psd_workload_recomputes(&one) == psd_workload_recomputes(&other))
			continue;
		psd_text_add(text,
			     "note: %s and %s differ in 'recompute', not in '%s', which is the throughput with it or "
			     "without "
			     "it: set one for each of them\n",
			     first->name, system->name, one.mfu_ratio > 0.0 ? "mfu" : "samples_per_sec");
		return;
	}
}

/* Rate of the fastest link that the system has between nodes in the sweep, without headers. */
static double most_link_bps(const struct psd_scenario *scenario, const struct psd_system *system)
{
	double most_bps = 0.0;

	for (unsigned p = 0; p < psd_scenario_points(scenario); p++) {
		const struct psd_point point = psd_scenario_point(scenario, p);

		if (point.nodes > 1)
			most_bps = fmax(most_bps, psd_scenario_fastest_link_bps(scenario, system, point.bandwidth_bps));
	}
	return most_bps * scenario->network.payload_ratio;
}

static const char *of_systems(const struct psd_report *report, unsigned n)
{
	return n < report->n_systems ? " of some systems" : "";
}

/* Explains why a faster link would not help where the software stack is the limit. */
static void write_transport_note(FILE *out, const struct psd_report *report)
{
	const struct psd_scenario *scenario = report->costed->scenario;
	struct psd_text sentence = {.bytes = NULL};
	double least_bps = INFINITY, most_bps = 0.0, again_bps = INFINITY;
	char rate[PSD_UNITS_TEXT_MAX];
	unsigned n_held = 0;

	for (unsigned s = 0; s < report->n_systems; s++) {
		const struct psd_host_costs *host = &report->systems[s].host;
		const double link_bps = most_link_bps(scenario, &report->systems[s]), bps = host->transport_bps;

		if (bps == 0.0 || bps >= link_bps * host->share_ratio || bps < link_bps * host->streams_ratio)
			continue;
		n_held++;
		least_bps = fmin(least_bps, bps);
		most_bps = fmax(most_bps, bps);
		if (host->streams_ratio > 0.0)
			again_bps = fmin(again_bps, bps / host->streams_ratio / scenario->network.payload_ratio);
	}
	if (!n_held)
		return;
	psd_text_add(&sentence, "note: the software stack%s moves at most %s", of_systems(report, n_held),
		     psd_units_write_rate(least_bps, rate));
	if (most_bps > least_bps)
		psd_text_add(&sentence, " to %s", psd_units_write_rate(most_bps, rate));
	psd_text_add(&sentence, " in or out of a node (host.transport): %s",
		     scenario->network.oversubscription_ratio > 1.0 ? "faster links help only between racks"
								    : "links faster than that change nothing");
	if (isfinite(again_bps))
		psd_text_add(&sentence, " up to %s, where several connections reach more (host.streams)",
			     psd_units_write_rate(again_bps, rate));
	psd_sentence_write(out, &sentence, 6);
}

/* Tells which share of a link parallel connections reach, and that it is a stack's assumption. */
static void add_streams_note(struct psd_text *text, const struct psd_report *report)
{
	const struct psd_system *assuming = NULL;
	double least_ratio = 1.0, most_ratio = 0.0;
	unsigned n_held = 0;

	for (unsigned s = 0; s < report->n_systems; s++) {
		const struct psd_system *system = &report->systems[s];
		const struct psd_host_costs *host = &system->host;
		const double link_bps = most_link_bps(report->costed->scenario, system);

		if (host->transport_bps == 0.0 || link_bps * host->streams_ratio <= host->transport_bps ||
		    host->streams_ratio >= host->share_ratio)
			continue;
		n_held++;
		least_ratio = fmin(least_ratio, host->streams_ratio);
		most_ratio = fmax(most_ratio, host->streams_ratio);
		if (system->stack && system->stack->assumes_streams &&
		    system->stack->host.streams_ratio == host->streams_ratio)
			assuming = system;
	}
	if (!n_held)
		return;
	psd_text_add(text, "note: the software stack%s reaches %.3g %%", of_systems(report, n_held),
		     100.0 * least_ratio);
	if (most_ratio > least_ratio)
		psd_text_add(text, " to %.3g %%", 100.0 * most_ratio);
	psd_text_add(text, " of a link's rate by several connections (host.streams)");
	if (assuming)
		psd_text_add(text, ", which stack %s assumes: no published value checks it; measure yours, and set it",
			     assuming->stack->name);
	psd_text_add(text, "\n");
}

/* Stacks that follow from the systems' methods compare software, too. */
static void add_stacks_note(struct psd_text *text, const struct psd_report *report)
{
	const struct psd_system *first = NULL;

	for (unsigned s = 0; s < report->n_systems && !report->costed->scenario->stack_name; s++) {
		const struct psd_system *system = &report->systems[s];

		if (system->stack_name)
			continue;
		if (first && system->stack != first->stack) {
			psd_text_add(
				text,
				"note: %s is on stack %s and %s on %s because of their methods: the comparison is of "
				"software, too; 'cluster.stack' sets one for all\n",
				first->name, first->stack->name, system->name, system->stack->name);
			return;
		}
		first = first ? first : system;
	}
}

/* Names systems whose levels are one. */
static void write_levels_note(FILE *out, const struct psd_report *report)
{
	for (unsigned s = 0; s < report->n_systems && psd_scenario_most_per_node(report->costed->scenario) == 1; s++) {
		const enum psd_sync sync = report->systems[s].sync;

		if (sync < PSD_SYNC_ALL_REDUCE || sync >= PSD_SYNC_AUTO ||
		    psd_all_reduces[sync - PSD_SYNC_ALL_REDUCE] != &psd_two_level)
			continue;
		fputs("note: with one worker a node, the levels of '", out);
		psd_grid_write_text(out, report->systems[s].name);
		fputs("' are a ring\n", out);
	}
}

static bool has_host(const struct psd_scenario *scenario)
{
	const struct psd_node *root = scenario->root;
	const struct psd_node *systems = psd_node_child(root, "systems");

	if (psd_node_child(psd_node_child(root, "cluster"), "host"))
		return true;
	for (const struct psd_node *system = systems ? systems->first : NULL; system; system = system->next)
		if (psd_node_child(system, "host"))
			return true;
	return false;
}

/* Warns about devices with memory of their own on a stack without costs. */
static void add_host_note(struct psd_text *text, const struct psd_report *report)
{
	const struct psd_scenario *scenario = report->costed->scenario;

	if (report->n_systems > 0 && report->systems[0].stack->frees_device && !has_host(scenario) &&
	    scenario->device_name && strcmp(scenario->device_name, "cpu") != 0)
		psd_text_add(text, "note: without 'host' copies and sums cost nothing on stack 'none'\n");
}

/* Tells that a machine's cores compute the layers, at the speed that the device's times say. */
static void write_machine_note(FILE *out, const struct psd_scenario *scenario)
{
	struct psd_text sentence = {.bytes = NULL};

	if (scenario->machine.cores == 0 || !scenario->device_name ||
	    psd_device_find(scenario->device_name)->shares_memory)
		return;
	psd_text_add(&sentence,
		     "note: 'cluster.machine' is for machines without accelerators: its cores compute the layers of "
		     "device '%s' and serve its messages; leave it out for devices of their own",
		     scenario->device_name);
	psd_sentence_write(out, &sentence, 6);
}

/* Warns about a calibration on a machine that others used: only its spread shows it. */
static void add_spread_note(struct psd_text *text, const struct psd_report *report)
{
	const double spread_ratio = report->costed->scenario->calibration.spread_ratio;

	if (spread_ratio > MOST_SPREAD_RATIO)
		psd_text_add(
			text,
			"note: calibrated with a spread of %.0f %%: predictions may be off by as much; calibrate again "
			"on a quiet machine\n",
			100.0 * spread_ratio);
}

/* Warns that a percentile of few iterations is the slowest of them. */
static void write_percentiles_note(FILE *out, const struct psd_report *report)
{
	for (unsigned r = 0; r < report->n_systems * report->n_points; r++) {
		const struct psd_result *result = &report->results[r];

		if (result->is_refused || !result->outcome.has_percentiles ||
		    result->outcome.n_iterations >= LEAST_FOR_P99)
			continue;
		fprintf(out, "note: p99 of %u iterations is the slowest of them: 'iterations: 1000' measures it\n",
			result->outcome.n_iterations);
		return;
	}
}

static bool has_system(const struct psd_scenario *scenario, const char *name)
{
	for (unsigned s = 0; s < scenario->n_systems; s++)
		if (!strcmp(scenario->systems[s].name, name))
			return true;
	return false;
}

/* Names published systems that the scenario lacks: a misspelt name would look like a system without published
 * values. */
static void write_strangers(FILE *out, const struct psd_report *report)
{
	const struct psd_published *published = report->published;

	for (unsigned i = 0; published && i < published->n_rows; i++) {
		const char *name = published->rows[i].system;

		if (has_system(report->costed->scenario, name) || (i && !strcmp(published->rows[i - 1].system, name)))
			continue;
		fputs("note: published values name system '", out);
		psd_grid_write_text(out, name);
		fputs("', which this scenario lacks\n", out);
	}
}

/* "PS at 64 nodes, Ring at 64 nodes": the first few cases that are chosen. */
static void add_cases(struct psd_text *text, const struct psd_report *report, bool is_refused)
{
	unsigned n_more = 0, n_named = 0;

	for (unsigned i = 0; i < report->n_systems * report->n_points; i++) {
		const struct psd_result *result = &report->results[i];

		if (result->is_elsewhere)
			continue;
		if (is_refused ? !result->is_refused : !result->outcome.is_estimate)
			continue;
		if (n_named == MOST_CASES_NAMED) {
			n_more++;
			continue;
		}
		psd_text_add(text, "%s%s at ", n_named++ ? "; " : "", result->system_name);
		add_place(text, report, result);
	}
	if (n_more)
		psd_text_add(text, "; and %u more", n_more);
}

/* Names the rows that are estimates although a simulation was asked for. */
static void write_estimated_note(FILE *out, const struct psd_report *report)
{
	struct psd_text sentence = {.bytes = NULL};
	char count[PSD_UNITS_TEXT_MAX];

	if (!report->n_estimated)
		return;
	psd_text_add(&sentence,
		     "note: estimated in closed form, since their simulations need more than %s events each "
		     "(most_events): ",
		     psd_units_write_count(report->costed->scenario->most_events, count));
	add_cases(&sentence, report, false);
	psd_sentence_write(out, &sentence, 6);
}

enum psd_status psd_output_refused(const struct psd_report *report, struct psd_error *err)
{
	static const char *const instead[] = {
		[PSD_RELIEF_NODES] = "",
		[PSD_RELIEF_LENGTH] = "",
		[PSD_RELIEF_ESTIMATE] = ", or for '--estimate'",
		[PSD_RELIEF_FLOW] = ", or for 'fidelity: flow'",
		[PSD_RELIEF_FLOW_OR_ESTIMATE] = ", for 'fidelity: flow', or for '--estimate'",
	};
	const struct psd_scenario *scenario = report->costed->scenario;
	struct psd_text cases = {.bytes = NULL};
	char count[PSD_UNITS_TEXT_MAX];

	if (!report->n_refused)
		return PSD_OK;
	add_cases(&cases, report, true);
	psd_error_set(err, PSD_ERUN, (struct psd_place){scenario->path, 0, 0},
		      "%u of %u cases have no row, they need more than %s events each: %s; allow more with '--set "
		      "most_events=N' (a million takes half a second), or ask for fewer nodes or iterations%s",
		      report->n_refused, report->n_systems * report->n_points,
		      psd_units_write_count(scenario->most_events, count), cases.bytes ? cases.bytes : "",
		      instead[report->relief]);
	psd_text_release(&cases);
	return PSD_ERUN;
}

/* Says which part of the model psd-run cannot compute. */
static void write_predicted_only(FILE *out, const struct psd_graph *graph)
{
	const struct psd_graph_share share = psd_graph_predicted_only(graph);
	struct psd_text sentence = {.bytes = NULL};

	if (!share.first)
		return;
	psd_text_add(&sentence,
		     "note: psd-run cannot compute %u of %u layers and inputs, first '%s': %.0f %% of the FLOPs, "
		     "%.0f %% of the parameters",
		     share.n_layers, graph->n_layers, share.first, 100 * share.flops_ratio,
		     100 * share.parameters_ratio);
	psd_sentence_write(out, &sentence, 6);
}

void psd_output_add_comparison(struct psd_text *text, const struct psd_report *report)
{
	add_estimate_note(text, report);
	add_flow_note(text, report);
	for (unsigned s = 0; s < report->n_systems; s++)
		add_lossy(text, report, s);
	add_recompute_note(text, report);
	add_streams_note(text, report);
	add_host_note(text, report);
	add_stacks_note(text, report);
	add_spread_note(text, report);
}

void psd_output_notes(FILE *out, const struct psd_report *report)
{
	const struct psd_scenario *scenario = report->costed->scenario;

	write_added(out, add_estimate_note, report);
	write_added(out, add_flow_note, report);
	write_predicted_only(out, &report->costed->graph);
	write_lines(out,
		    "note: ", report->costed->graph.doubts); /* decisions about the model that its file leaves open */
	write_estimated_note(out, report);
	write_system_notes(out, report);
	write_links_note(out, scenario);
	write_added(out, add_recompute_note, report);
	write_transport_note(out, report);
	write_added(out, add_streams_note, report);
	write_added(out, add_host_note, report);
	write_machine_note(out, scenario);
	write_added(out, add_stacks_note, report);
	write_levels_note(out, report);
	write_added(out, add_spread_note, report);
	write_percentiles_note(out, report);
	write_strangers(out, report);
}
