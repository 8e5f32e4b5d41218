/* The plan of one case as a table, then the reason of each choice in words and figures. Asks both rules and says where
 * they disagree; decides nothing. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/program/chunks.h"
#include "sim/output/grid.h"
#include "sim/output/output.h"

enum { MOST_DECIMALS = 3, FEW_TENSORS = 2 };

static bool has_factors(const struct psd_plan_item *item)
{
	return item->subject.rows > 0;
}

/* ---- the table ---- */

/* Writes "weight, bias": tensor names without the layer's name. A number comes first where the end may be cut off. */
static void write_tensor_names(const struct psd_plan *plan, const struct psd_plan_item *item, char *text, size_t room)
{
	const struct psd_graph *graph = plan->graph;
	const char *layer_name = graph->layers[item->layer].name;
	const size_t prefix_length = strlen(layer_name);
	size_t length = 0;

	text[0] = '\0';
	if (item->n_tensors == 0)
		snprintf(text, room, "%" PRIu64 " %s", item->subject.elements,
			 plan->sums_per_tensor > 0 ? "squares of norms" : "norms of chunks");
	else if (item->n_tensors > FEW_TENSORS)
		length = (size_t)snprintf(text, room, "%u tensors: ", item->n_tensors);
	for (unsigned t = 0; t < item->n_tensors && length < room; t++) {
		const char *name = graph->tensors[psd_plan_tensor(plan, item, t)].name;
		const bool is_prefixed = !strncmp(name, layer_name, prefix_length) && name[prefix_length] == '.';

		length += (size_t)snprintf(text + length, room - length, "%s%s", t ? ", " : "",
					   is_prefixed ? name + prefix_length + 1 : name);
	}
}

/* Seconds and bytes of each item (bucket) for each candidate method. */
struct weighed {
	const struct psd_plan *plan;
	struct psd_alternative (*items)[PSD_CANDIDATES];
};

static void set_alternative(struct psd_grid *grid, unsigned column, const struct psd_alternative *alternative,
			    bool is_chosen)
{
	char mb[PSD_UNITS_TEXT_MAX], msec[PSD_UNITS_TEXT_MAX];

	if (!alternative->is_possible) {
		psd_grid_set(grid, column, "-  ");
		return;
	}
	psd_grid_set(grid, column, "%s %9s%c", psd_units_write_number((double)alternative->node_bytes / 1e6, mb),
		     psd_units_write_number(1e3 * alternative->isolated_sec, msec), is_chosen ? '*' : ' ');
}

static bool is_chosen(const struct psd_plan *plan, const struct psd_method *method)
{
	for (unsigned i = 0; i < plan->n_items; i++)
		if (plan->items[i].method == method)
			return true;
	return false;
}

/* A narrow terminal leaves out methods that no tensor has, then names of tensors. */
static void add_columns(struct psd_grid *grid, const struct psd_plan *plan, char uppers[PSD_CANDIDATES][PSD_GRID_CELL])
{
	enum { OTHERS = 1, TENSORS = OTHERS + PSD_CANDIDATES, CHOSEN = TENSORS + 1, SIZE = CHOSEN + PSD_CANDIDATES };

	psd_grid_add_column(grid, "", "layer", true);
	grid->worth[psd_grid_add_column(grid, "", "tensors", true)] = TENSORS;
	grid->worth[psd_grid_add_column(grid, "size", "MB", false)] = SIZE;
	psd_grid_add_column(grid, "", "method", true);
	for (unsigned m = 0; m < plan->n_candidates; m++) {
		const struct psd_method *method = plan->candidates[m];
		unsigned column;

		snprintf(uppers[m], PSD_GRID_CELL, "%s        ", method->name);
		column = psd_grid_add_column(grid, uppers[m], "MB        ms ", false);
		grid->worth[column] = (is_chosen(plan, method) ? CHOSEN : OTHERS) + plan->n_candidates - 1 - m;
	}
}

static void add_row(struct psd_grid *grid, const struct weighed *weighed, unsigned i)
{
	const struct psd_plan *plan = weighed->plan;
	const struct psd_plan_item *item = &plan->items[i];
	const double mb = (double)item->subject.elements * item->subject.value_bytes / 1e6;
	char names[PSD_GRID_CELL];

	psd_grid_add_row(grid);
	write_tensor_names(plan, item, names, sizeof(names));
	psd_grid_set(grid, 0, "%s", plan->graph->layers[item->layer].name);
	psd_grid_set(grid, 1, "%s", names);
	psd_grid_set_number(grid, 2, mb, MOST_DECIMALS);
	psd_grid_set(grid, 3, "%s", item->method->name);
	for (unsigned m = 0; m < plan->n_candidates; m++)
		set_alternative(grid, 4 + m, &weighed->items[i][m], item->method == plan->candidates[m]);
}

static enum psd_status write_grid(FILE *out, const struct weighed *weighed, struct psd_error *err)
{
	char uppers[PSD_CANDIDATES][PSD_GRID_CELL];
	struct psd_grid grid = {.n_rows = 0};
	struct psd_text text = {.bytes = NULL};

	add_columns(&grid, weighed->plan, uppers);
	for (unsigned i = 0; i < weighed->plan->n_items; i++)
		add_row(&grid, weighed, i);
	psd_grid_add(&text, &grid);
	psd_grid_release(&grid);
	return psd_output_text(out, &text, err);
}

/* ---- the two rules ---- */

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

static void write_seconds_rule(FILE *out, const struct weighed *weighed, unsigned i, unsigned fastest)
{
	const struct psd_plan *plan = weighed->plan;
	const struct psd_alternative *alternatives = weighed->items[i];
	char sec[PSD_UNITS_TEXT_MAX];

	fprintf(out, "%s takes %s", plan->candidates[fastest]->name,
		psd_units_write_seconds(alternatives[fastest].isolated_sec, sec));
	for (unsigned m = 0; m < plan->n_candidates; m++)
		if (m != fastest && alternatives[m].is_possible)
			fprintf(out, ", %s %s", plan->candidates[m]->name,
				psd_units_write_seconds(alternatives[m].isolated_sec, sec));
}

/* Tells whether a bytes rule exists: all-reduces and exchanges of local steps are chosen by seconds only. */
static bool has_bytes_rule(const struct psd_plan *plan)
{
	return plan->system->sync != PSD_SYNC_AUTO && !plan->local;
}

/* Tells whether the method with the shortest time is faster than the method that the bytes rule selects. */
static bool do_rules_part(const struct weighed *weighed, unsigned i, unsigned seconds_choice)
{
	const struct psd_method *bytes_choice = psd_choice_by_bytes(weighed->plan, &weighed->plan->items[i]);
	unsigned m = 0;

	while (weighed->plan->candidates[m] != bytes_choice)
		m++;
	return weighed->items[i][seconds_choice].isolated_sec < weighed->items[i][m].isolated_sec;
}

static void write_reason(FILE *out, const struct weighed *weighed, unsigned i)
{
	const struct psd_plan *plan = weighed->plan;
	const struct psd_plan_item *item = &plan->items[i];
	const struct psd_method *bytes_choice = psd_choice_by_bytes(plan, item);
	const unsigned fastest = psd_choice_by_seconds(weighed->items[i], plan, item);
	const bool is_by_seconds = plan->system->rule == PSD_RULE_SECONDS;

	fputs("  ", out);
	psd_grid_write_text(out, plan->graph->layers[item->layer].name);
	fprintf(out, ": %s, as ", item->method->name);
	if (is_by_seconds)
		write_seconds_rule(out, weighed, i, fastest);
	else
		write_bytes_rule(out, plan, item);
	if (has_bytes_rule(plan) && do_rules_part(weighed, i, fastest)) {
		fprintf(out, "\n    the rule in %s would take %s: ", is_by_seconds ? "bytes" : "seconds",
			is_by_seconds ? bytes_choice->name : plan->candidates[fastest]->name);
		if (is_by_seconds)
			write_bytes_rule(out, plan, item);
		else
			write_seconds_rule(out, weighed, i, fastest);
	}
	fputc('\n', out);
}

/* Counts disagreements on tensors without factors; a deep network has too many to list. */
static void write_dense_disagreement(FILE *out, const struct weighed *weighed)
{
	const struct psd_plan *plan = weighed->plan;
	unsigned n_apart = 0, n_dense = 0;

	for (unsigned i = 0; i < plan->n_items; i++) {
		if (has_factors(&plan->items[i]) || plan->items[i].n_tensors == 0)
			continue;
		n_dense++;
		n_apart += do_rules_part(weighed, i, psd_choice_by_seconds(weighed->items[i], plan, &plan->items[i]));
	}
	if (n_apart == 0)
		return;
	fprintf(out,
		"  tensors without factors: the rule in bytes takes ps for all %u, the rule in seconds another for "
		"%u\n",
		n_dense, n_apart);
}

static void write_reasons(FILE *out, const struct weighed *weighed)
{
	const struct psd_plan *plan = weighed->plan;
	const enum psd_sync sync = plan->system->sync;

	if (plan->layout.workers == 1) {
		fputs("one worker: it exchanges with servers alone\n", out);
		return;
	}
	if (!psd_choice_is_open(plan->system)) {
		fprintf(out, "sync is %s: the system leaves no choice%s\n", psd_sync_names[sync],
			psd_choice_may_take_factors(plan->system) ? ", and tensors without factors take ps" : "");
		return;
	}
	fprintf(out, "sync is %s, by the rule in %s (P = %u workers, S = %u shards, K = %u images):\n",
		psd_sync_names[sync], psd_rule_names[plan->system->rule], plan->layout.workers, plan->layout.shards,
		plan->n_items ? plan->items[0].subject.batch : 0);
	for (unsigned i = 0; i < plan->n_items; i++)
		if (has_factors(&plan->items[i]) || (!has_bytes_rule(plan) && plan->items[i].n_tensors > 0))
			write_reason(out, weighed, i);
	if (has_bytes_rule(plan))
		write_dense_disagreement(out, weighed);
}

static enum psd_status weigh(struct weighed *weighed, const struct psd_plan *plan, struct psd_error *err)
{
	*weighed = (struct weighed){plan, calloc(plan->n_items + 1u, sizeof(*weighed->items))};
	if (!weighed->items)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a plan");
	for (unsigned i = 0; i < plan->n_items; i++)
		PSD_TRY(psd_choice_weigh(weighed->items[i], plan, &plan->items[i], err));
	return PSD_OK;
}

static void write_local_steps(FILE *out, const struct psd_plan *plan)
{
	fprintf(out, "local_sgd: an exchange every %u iterations", (unsigned)psd_plan_steps(plan));
	if (psd_plan_parts(plan) > 1)
		fprintf(out, ", in %u parts one after the other", (unsigned)psd_plan_parts(plan));
	if (plan->staleness > 0)
		fprintf(out, ", joined %u iteration%s late", (unsigned)plan->staleness,
			psd_text_plural(plan->staleness));
	fputs("\n\n", out);
	if (plan->peers > 0)
		fprintf(out,
			"peers: factors are sent in each of these %u iterations; MB and ms of partial sfb are those of "
			"an iteration\nwith an exchange, its factors and the parameters, of other methods the "
			"parameters alone\n\n",
			(unsigned)psd_plan_steps(plan));
}

enum psd_status psd_output_plan(FILE *out, const struct psd_case *planned, const char *point_words,
				struct psd_error *err)
{
	char point[64], rate[PSD_UNITS_TEXT_MAX];
	struct weighed weighed;

	psd_grid_write_text(out, planned->system->name);
	fprintf(out, " at %s", psd_result_point_name(&planned->point, point, sizeof(point)));
	if (planned->point.bandwidth_bps > 0.0)
		fprintf(out, ", %s", psd_units_write_rate(planned->point.bandwidth_bps, rate));
	fprintf(out, " (%s)\n", point_words);
	if (psd_layout_hosts(&planned->plan.layout) == 1) {
		fputs("one worker: there is nobody to exchange with\n", out);
		return PSD_OK;
	}
	fprintf(out,
		"MB sent plus received by the busiest node %s, ms of the tensor alone on the cluster; * is the one "
		"chosen\n\n",
		planned->plan.local ? "in an exchange" : "in an iteration");
	if (planned->plan.local)
		write_local_steps(out, &planned->plan);
	if (planned->plan.managed)
		fprintf(out,
			"managed: %" PRIu64 " of %u chunks in an iteration, all of them in every %" PRIu64
			"th; MB and ms are those of %" PRIu64 "\n\n",
			psd_chunks_kept(planned->plan.managed, planned->plan.n_chunks, 1), planned->plan.n_chunks,
			planned->plan.managed->clock,
			psd_chunks_kept(planned->plan.managed, planned->plan.n_chunks, 1));
	if (psd_plan_adds_gradients(&planned->plan))
		fprintf(out, "accumulate: gradients of %u micro-batches are added before they are exchanged\n\n",
			(unsigned)planned->plan.micro_batches);
	else if (planned->plan.micro_batches > 1)
		fprintf(out, "accumulate: each of %u micro-batches is exchanged, a worker adds its part of each\n\n",
			(unsigned)planned->plan.micro_batches);
	if (planned->system->finds_fuse && planned->plan.fuse_bytes == 0)
		fprintf(out, "fuse is auto: nothing is fused, %u exchanges in all\n\n", planned->plan.n_items);
	else if (planned->system->finds_fuse)
		fprintf(out, "fuse is auto: exchanges of %s or more, %u in all\n\n",
			psd_units_write_bytes(planned->plan.fuse_bytes, rate), planned->plan.n_items);
	enum psd_status status = weigh(&weighed, &planned->plan, err);
	if (!status)
		status = write_grid(out, &weighed, err);
	if (!status) {
		fputc('\n', out);
		write_reasons(out, &weighed);
	}
	free(weighed.items);
	return status;
}
