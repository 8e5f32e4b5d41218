/* Results as JSON: the columns of the CSV by name (null for an empty cell), busy times, and the plan on request. */
#include <math.h>

#include "engine/result/columns.h"
#include "sim/output/output.h"

enum { SECONDS_DIGITS = 9 };

/* Keys of "busy", by enum psd_resource. */
static const char *const busy_keys[PSD_RESOURCES] = {"device_sec", "copy_out_sec", "copy_in_sec", "cpu_sec",
						     "network_out_sec"};

/* Writes the columns of the CSV as members of an object. */
static void write_fields(struct psd_json *json, const struct psd_result *result)
{
	struct psd_field field;

	for (unsigned c = 0; psd_result_field(result, c, &field); c++)
		if (field.text)
			psd_json_string(json, field.name, field.text);
		else if (field.is_flag || field.is_words)
			psd_json_flag(json, field.name, field.number.is_there, field.number.value > 0.0);
		else if (field.digits)
			psd_json_number(json, field.name, field.number.is_there ? field.number.value : NAN,
					field.digits);
		else
			psd_json_count(json, field.name, (uint64_t)field.number.value);
}

static void write_busy(struct psd_json *json, const struct psd_outcome *outcome)
{
	psd_json_begin(json, "busy", '{');
	for (int r = 0; r < PSD_RESOURCES; r++)
		psd_json_number(json, busy_keys[r], outcome->busy_sec[r], SECONDS_DIGITS);
	psd_json_end(json, '}');
}

/* Stale reads: number of reads of each age, the youngest first. */
static void write_reads(struct psd_json *json, const struct psd_result *result)
{
	if (result->system->staleness == 0 || result->system->reads != PSD_READS_STALE)
		return;
	psd_json_begin(json, "reads", '[');
	for (unsigned age = 0; age <= result->system->staleness; age++)
		psd_json_count(json, NULL, result->outcome.reads[age]);
	psd_json_end(json, ']');
}

static void write_alternatives(struct psd_json *json, const struct psd_plan *plan,
			       const struct psd_alternative alternatives[PSD_CANDIDATES])
{
	psd_json_begin(json, "alternatives", '{');
	for (unsigned m = 0; m < plan->n_candidates; m++) {
		const struct psd_alternative *alternative = &alternatives[m];

		if (!alternative->is_possible) {
			psd_json_number(json, plan->candidates[m]->name, NAN, SECONDS_DIGITS);
			continue;
		}
		psd_json_begin(json, plan->candidates[m]->name, '{');
		psd_json_count(json, "node_bytes", alternative->node_bytes);
		psd_json_number(json, "isolated_sec", alternative->isolated_sec, SECONDS_DIGITS);
		psd_json_end(json, '}');
	}
	psd_json_end(json, '}');
}

static enum psd_status write_item(struct psd_json *json, const struct psd_plan *plan, const struct psd_plan_item *item,
				  struct psd_error *err)
{
	const struct psd_graph *graph = plan->graph;
	struct psd_alternative alternatives[PSD_CANDIDATES];

	PSD_TRY(psd_choice_weigh(alternatives, plan, item, err));
	psd_json_line(json);
	psd_json_begin(json, NULL, '{');
	psd_json_string(json, "layer", graph->layers[item->layer].name);
	psd_json_begin(json, "tensors", '[');
	for (unsigned t = 0; t < item->n_tensors; t++)
		psd_json_string(json, NULL, graph->tensors[psd_plan_tensor(plan, item, t)].name);
	psd_json_end(json, ']');
	psd_json_string(json, "method", item->method->name);
	psd_json_count(json, "elements", item->subject.elements);
	write_alternatives(json, plan, alternatives);
	psd_json_end(json, '}');
	return PSD_OK;
}

static enum psd_status write_plan(struct psd_json *json, const struct psd_costed_model *costed,
				  const struct psd_result *result, struct psd_error *err)
{
	struct psd_case made;
	enum psd_status status = psd_case_make(&made, costed, result->system, result->point, err);

	if (status)
		return status;
	psd_json_begin(json, "plan", '[');
	for (unsigned i = 0; i < made.plan.n_items && !status; i++)
		status = write_item(json, &made.plan, &made.plan.items[i], err);
	psd_json_end(json, ']');
	psd_case_release(&made);
	return status;
}

enum psd_status psd_output_json(struct psd_json *json, const struct psd_report *report, bool has_plan,
				struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	for (unsigned i = 0; i < report->n_systems * report->n_points && !status; i++) {
		const struct psd_result *result = &report->results[i];

		if (result->is_refused)
			continue;
		psd_json_line(json);
		psd_json_begin(json, NULL, '{');
		write_fields(json, result);
		write_busy(json, &result->outcome);
		write_reads(json, result);
		if (has_plan)
			status = write_plan(json, psd_report_costed(report, result), result, err);
		psd_json_end(json, '}');
	}
	return status;
}
