/* The plan of one case as a table, then the reason of each choice in words and figures. Refuses to decide anything: it
 * recomputes both rules from the cost model and says where they part. */
#include <string.h>

#include "engine/base/units.h"
#include "sim/output/grid.h"
#include "sim/output/output.h"

enum { METHOD_COLUMNS = 4 };

_Static_assert((int)METHOD_COLUMNS == (int)PSD_METHODS, "each method has a column");

static bool has_factors(const struct psd_plan_item *item)
{
	return item->subject.rows > 0;
}

/* ---- the table ---- */

/* "weight, bias": the names without the layer's in front. */
static void write_tensor_names(const struct psd_graph *graph, const struct psd_plan_item *item, char *text, size_t room)
{
	const char *layer_name = graph->layers[item->layer].name;
	const size_t prefix_length = strlen(layer_name);
	size_t length = 0;

	text[0] = '\0';
	for (unsigned t = 0; t < item->n_tensors && length < room; t++) {
		const char *name = graph->tensors[item->first_tensor + t].name;
		const bool is_prefixed = !strncmp(name, layer_name, prefix_length) && name[prefix_length] == '.';

		length += (size_t)snprintf(text + length, room - length, "%s%s", t ? ", " : "",
					   is_prefixed ? name + prefix_length + 1 : name);
	}
}

static void set_alternative(struct psd_grid *grid, unsigned column, const struct psd_plan_item *item, int method)
{
	const struct psd_alternative *alternative = &item->alternatives[method];
	const double mb = (double)alternative->node_bytes / 1e6, msec = 1e3 * alternative->isolated_sec;

	if (!alternative->is_possible) {
		psd_grid_set(grid, column, "-  ");
		return;
	}
	psd_grid_set(grid, column, "%.*f %9.*f%c", psd_grid_decimals(mb, 3), mb, psd_grid_decimals(msec, 4), msec,
		     (int)item->method == method ? '*' : ' ');
}

static enum psd_status write_grid(FILE *out, const struct psd_plan *plan, struct psd_error *err)
{
	static const char *const uppers[] = {"ps        ", "sfb        ", "adam        ", "ring        "};
	struct psd_grid grid = {.n_rows = 0};
	enum psd_status status;
	char names[PSD_GRID_CELL];

	psd_grid_add_column(&grid, "", "layer", true);
	psd_grid_add_column(&grid, "", "tensors", true);
	psd_grid_add_column(&grid, "size", "MB", false);
	psd_grid_add_column(&grid, "", "method", true);
	for (int m = 0; m < PSD_METHODS; m++)
		psd_grid_add_column(&grid, uppers[m], "MB        ms ", false);
	for (unsigned i = 0; i < plan->n_items; i++) {
		const struct psd_plan_item *item = &plan->items[i];
		const double mb = (double)item->subject.elements * item->subject.value_bytes / 1e6;

		psd_grid_add_row(&grid);
		write_tensor_names(plan->graph, item, names, sizeof(names));
		psd_grid_set(&grid, 0, "%s", plan->graph->layers[item->layer].name);
		psd_grid_set(&grid, 1, "%s", names);
		psd_grid_set(&grid, 2, "%.*f", psd_grid_decimals(mb, 3), mb);
		psd_grid_set(&grid, 3, "%s", psd_method_names[item->method]);
		for (int m = 0; m < PSD_METHODS; m++)
			set_alternative(&grid, 4 + (unsigned)m, item, m);
	}
	status = psd_grid_write(out, &grid, err);
	psd_grid_release(&grid);
	return status;
}

/* ---- the two rules ---- */

static enum psd_method by_bytes(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	const struct psd_layout *layout = &plan->layout;

	if (!has_factors(item))
		return PSD_METHOD_PS;
	if (plan->system->sync == PSD_SYNC_SACP)
		return psd_cost_sacp_takes_sfb(&item->subject, layout->workers) ? PSD_METHOD_SFB : PSD_METHOD_ADAM;
	return psd_cost_hybrid_takes_sfb(&item->subject, layout->workers, layout->shards) ? PSD_METHOD_SFB
											  : PSD_METHOD_PS;
}

/* Of those that the system may take; a tie keeps the earlier one, as in the plan. */
static enum psd_method by_seconds(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	const bool is_sacp = plan->system->sync == PSD_SYNC_SACP;
	int best = -1;

	if (is_sacp && !has_factors(item))
		return PSD_METHOD_PS;
	for (int m = 0; m < PSD_METHODS; m++) {
		if (!item->alternatives[m].is_possible || (is_sacp && m != PSD_METHOD_SFB && m != PSD_METHOD_ADAM))
			continue;
		if (best < 0 || item->alternatives[m].isolated_sec < item->alternatives[best].isolated_sec)
			best = m;
	}
	return (enum psd_method)best;
}

/* P workers, S shards, K batch, M rows, N columns, as in the sources of the rules. */
static void write_bytes_rule(FILE *out, const struct psd_plan *plan, const struct psd_plan_item *item)
{
	const double P = plan->layout.workers, S = plan->layout.shards, K = item->subject.batch;
	const double M = (double)item->subject.rows, N = (double)item->subject.columns;

	if (plan->system->sync == PSD_SYNC_SACP) {
		const double peer_to_peer = (P - 1) * (P - 1) * K * (M + N), by_server = P * K * (M + N) + P * M * N;

		fprintf(out, "(P-1)^2 K (M+N) = %.0f %s P K (M+N) + P M N = %.0f values", peer_to_peer,
			peer_to_peer <= by_server ? "<=" : ">", by_server);
		return;
	}
	const double factors = 2 * K * (P - 1) * (M + N), dense = 2 * M * N * (P + S - 2) / S;

	fprintf(out, "2 K (P-1)(M+N) = %.0f %s 2 M N (P+S-2)/S = %.0f values", factors, factors <= dense ? "<=" : ">",
		dense);
}

static void write_seconds_rule(FILE *out, const struct psd_plan_item *item, enum psd_method fastest)
{
	char sec[PSD_UNITS_TEXT_MAX];

	fprintf(out, "%s takes %s", psd_method_names[fastest],
		psd_units_write_seconds(item->alternatives[fastest].isolated_sec, sec));
	for (int m = 0; m < PSD_METHODS; m++)
		if (m != (int)fastest && item->alternatives[m].is_possible)
			fprintf(out, ", %s %s", psd_method_names[m],
				psd_units_write_seconds(item->alternatives[m].isolated_sec, sec));
}

/* Equal times are no disagreement. */
static bool do_rules_part(const struct psd_plan_item *item, enum psd_method bytes_choice,
			  enum psd_method seconds_choice)
{
	return item->alternatives[seconds_choice].isolated_sec < item->alternatives[bytes_choice].isolated_sec;
}

static void write_reason(FILE *out, const struct psd_plan *plan, const struct psd_plan_item *item)
{
	const enum psd_method bytes_choice = by_bytes(plan, item), seconds_choice = by_seconds(plan, item);
	const bool is_by_seconds = plan->system->rule == PSD_RULE_SECONDS;

	fputs("  ", out);
	psd_grid_write_text(out, plan->graph->layers[item->layer].name);
	fprintf(out, ": %s, as ", psd_method_names[item->method]);
	if (is_by_seconds)
		write_seconds_rule(out, item, seconds_choice);
	else
		write_bytes_rule(out, plan, item);
	if (do_rules_part(item, bytes_choice, seconds_choice)) {
		fprintf(out, "\n    the rule in %s would take %s: ", is_by_seconds ? "bytes" : "seconds",
			psd_method_names[is_by_seconds ? bytes_choice : seconds_choice]);
		if (is_by_seconds)
			write_bytes_rule(out, plan, item);
		else
			write_seconds_rule(out, item, seconds_choice);
	}
	fputc('\n', out);
}

/* Tensors without factors, where the rules part: only counted, since a deep network has hundreds of them. */
static void write_dense_disagreement(FILE *out, const struct psd_plan *plan)
{
	unsigned n_apart = 0, n_dense = 0;

	if (plan->system->sync != PSD_SYNC_HYBRID)
		return;
	for (unsigned i = 0; i < plan->n_items; i++) {
		if (has_factors(&plan->items[i]))
			continue;
		n_dense++;
		n_apart += do_rules_part(&plan->items[i], PSD_METHOD_PS, by_seconds(plan, &plan->items[i]));
	}
	if (n_apart == 0)
		return;
	fprintf(out,
		"  tensors without factors: the rule in bytes takes ps for all %u, the rule in seconds another for "
		"%u\n",
		n_dense, n_apart);
}

static void write_reasons(FILE *out, const struct psd_plan *plan)
{
	const enum psd_sync sync = plan->system->sync;

	if (plan->layout.workers == 1) {
		fputs("one worker: there is nobody to exchange with\n", out);
		return;
	}
	if (sync != PSD_SYNC_HYBRID && sync != PSD_SYNC_SACP) {
		fprintf(out, "sync is %s: the system leaves no choice%s\n", psd_sync_names[sync],
			sync == PSD_SYNC_SFB || sync == PSD_SYNC_ADAM ? ", and tensors without factors take ps" : "");
		return;
	}
	fprintf(out, "sync is %s, by the rule in %s (P = %u workers, S = %u shards, K = %u images):\n",
		psd_sync_names[sync], psd_rule_names[plan->system->rule], plan->layout.workers, plan->layout.shards,
		plan->n_items ? plan->items[0].subject.batch : 0);
	for (unsigned i = 0; i < plan->n_items; i++)
		if (has_factors(&plan->items[i]))
			write_reason(out, plan, &plan->items[i]);
	write_dense_disagreement(out, plan);
}

enum psd_status psd_output_plan(FILE *out, const struct psd_case *planned, const char *point_words,
				struct psd_error *err)
{
	char point[64], rate[PSD_UNITS_TEXT_MAX];
	enum psd_status status;

	psd_grid_write_text(out, planned->system->name);
	fprintf(out, " at %s", psd_result_point_name(&planned->point, point, sizeof(point)));
	if (planned->point.bandwidth_bps > 0.0)
		fprintf(out, ", %s", psd_units_write_rate(planned->point.bandwidth_bps, rate));
	fprintf(out, " (%s)\n", point_words);
	fputs("MB sent plus received by the busiest node an iteration, ms of the tensor alone on the cluster; * is the "
	      "one "
	      "chosen\n\n",
	      out);
	status = write_grid(out, &planned->plan, err);
	if (status)
		return status;
	fputc('\n', out);
	write_reasons(out, &planned->plan);
	return PSD_OK;
}
