/* Notes that a reader needs before trusting the figures of a report. */
#include <math.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/collectives/collective.h"
#include "engine/program/choice.h"
#include "engine/scenario/scenario_heed.h"
#include "engine/scenario/stack.h"
#include "sim/output/grid.h"
#include "sim/output/output.h"

#define MOST_SPREAD_RATIO 0.15 /* highest spread of a calibration without a warning */

static bool may_take_steps(const struct psd_report *report)
{
	for (unsigned s = 0; s < report->n_systems; s++)
		if (psd_choice_may_take_steps(&report->systems[s]))
			return true;
	return false;
}

/* Tells whether links change their capacity during a run. */
static bool has_changing_links(const struct psd_scenario *scenario)
{
	for (unsigned i = 0; i < scenario->n_slowdowns; i++)
		if (scenario->slowdowns[i].link_ratio != 1.0)
			return true;
	return scenario->n_backgrounds > 0;
}

/* Lists the keys that only a simulation heeds. */
static void write_estimate_note(FILE *out, const struct psd_scenario *scenario)
{
	struct psd_text text = {.bytes = NULL};

	psd_scenario_add_unheeded(&text, scenario, PSD_BY_ESTIMATE, PSD_BY_SIMULATION);
	for (const char *line = text.bytes; line && *line; line = strchr(line, '\n') + 1)
		fprintf(out, "note: %.*s\n", (int)strcspn(line, "\n"), line);
	psd_text_release(&text);
}

static void write_system_notes(FILE *out, const struct psd_report *report)
{
	struct psd_text text = {.bytes = NULL};

	for (unsigned s = 0; s < report->n_systems; s++)
		psd_result_add_lossy(&text, &report->systems[s]);
	for (unsigned s = 0; s < report->n_systems; s++)
		psd_result_add_assumed(&text, &report->systems[s]);
	if (text.bytes)
		fputs(text.bytes, out);
	psd_text_release(&text);
}

/* Warns early that psd-run has no such links. */
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

/* Explains why a faster link would not help where the software stack is the limit. */
static void write_transport_note(FILE *out, const struct psd_report *report)
{
	const struct psd_scenario *scenario = report->costed->scenario;
	struct psd_text sentence = {.bytes = NULL};
	double most_link_bps = 0.0, least_bps = INFINITY, most_bps = 0.0;
	char least[PSD_UNITS_TEXT_MAX], most[PSD_UNITS_TEXT_MAX];
	unsigned n_held = 0;

	for (unsigned p = 0; p < psd_scenario_points(scenario); p++) {
		const struct psd_point point = psd_scenario_point(scenario, p);

		if (point.nodes > 1)
			most_link_bps = fmax(most_link_bps, point.bandwidth_bps * scenario->network.payload_ratio);
	}
	for (unsigned s = 0; s < report->n_systems; s++) {
		const struct psd_host_costs *host = &report->systems[s].host;
		const double bps = host->transport_bps > 0.0
					   ? fmax(host->transport_bps, host->streams_ratio * most_link_bps)
					   : 0.0;

		if (bps == 0.0 || bps >= most_link_bps)
			continue;
		n_held++;
		least_bps = fmin(least_bps, bps);
		most_bps = fmax(most_bps, bps);
	}
	if (!n_held)
		return;
	psd_text_add(&sentence, "note: the software stack%s moves at most %s",
		     n_held < report->n_systems ? " of some systems" : "", psd_units_write_rate(least_bps, least));
	if (most_bps > least_bps)
		psd_text_add(&sentence, " to %s", psd_units_write_rate(most_bps, most));
	psd_text_add(&sentence, " in or out of a node (host.transport): links faster than that change nothing");
	psd_sentence_write(out, &sentence, 6);
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
static void write_host_note(FILE *out, const struct psd_report *report)
{
	const struct psd_scenario *scenario = report->costed->scenario;

	if (report->n_systems > 0 && report->systems[0].stack->frees_device && !has_host(scenario) &&
	    scenario->device_name && strcmp(scenario->device_name, "cpu") != 0)
		fputs("note: without 'host' copies and sums cost nothing on stack 'none'\n", out);
}

/* Warns about a calibration on a machine that others used: only its spread shows it. */
static void write_spread_note(FILE *out, const struct psd_scenario *scenario)
{
	const double spread_ratio = scenario->calibration.spread_ratio;

	if (spread_ratio > MOST_SPREAD_RATIO)
		fprintf(out,
			"note: calibrated with a spread of %.0f %%: predictions may be off by as much; calibrate again "
			"on "
			"a quiet machine\n",
			100.0 * spread_ratio);
}

static bool has_system(const struct psd_scenario *scenario, const char *name)
{
	for (unsigned s = 0; s < scenario->n_systems; s++)
		if (!strcmp(scenario->systems[s].name, name))
			return true;
	return false;
}

/* Names published systems that the scenario lacks: a misspelt name would look like a system without published values.
 * */
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

void psd_output_notes(FILE *out, const struct psd_report *report)
{
	const struct psd_scenario *scenario = report->costed->scenario;

	if (report->is_estimate)
		write_estimate_note(out, scenario);
	else if (scenario->fidelity == PSD_FIDELITY_FLOW && may_take_steps(report) && has_changing_links(scenario))
		fputs("note: flow fidelity takes a ring as one flow per neighbour: optimistic by up to a quarter when "
		      "links change during it;\n      use fidelity: message\n",
		      out);
	write_system_notes(out, report);
	write_links_note(out, scenario);
	write_transport_note(out, report);
	write_host_note(out, report);
	write_spread_note(out, scenario);
	write_strangers(out, report);
}
