#include "sim/import/match.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/grow.h"
#include "sim/import/shapes.h"

/* Most pairs of a layer and an operator in one step that are compared. */
#define MOST_PAIRS (UINT64_C(1) << 28)

/* Scores of an alignment. A weight that fits decides; one that does not fit forbids. Others break ties by order. */
#define SCORE_NAME	  30.0
#define SCORE_FITTING	  20.0
#define SCORE_WEIGHT_KIND 10.0
#define SCORE_STRUCTURE	  8.0
#define SCORE_KIND	  3.0
#define COST_WEIGHT	  4.0
#define COST_OTHER	  0.5
#define COST_UNIT	  0.1
#define SCORE_PART	  0.3
#define FORBIDDEN	  -1e9

enum move { MOVE_NONE, MOVE_BOTH, MOVE_UNIT, MOVE_LAYER };

/* One step's units of forward beside the layers that compute. */
struct pairing {
	const struct psd_places *places;
	const struct psd_graph *graph;
	const unsigned *layers; /* numbers of layers with inputs */
	unsigned n_layers;
	const uint32_t *units;
	uint32_t n_units;
	const struct psd_operator_row **rows; /* row of each unit */
	struct psd_shapes *shapes;
	unsigned char *moves; /* (n_layers + 1) x (n_units + 1) */
	double *above, *here;
	uint32_t *layer_at; /* index in layers of each unit; PSD_TRACE_NONE: none */
	bool *is_sure;
	bool *is_taken; /* layers that have an operator */
};

static const char *name_of(const struct pairing *pairing, uint32_t u)
{
	const struct psd_trace *trace = pairing->places->trace;

	return psd_trace_string(trace, trace->ops[pairing->places->units[pairing->units[u]].op].name);
}

static const struct psd_layer *layer_of(const struct pairing *pairing, unsigned l)
{
	return &pairing->graph->layers[pairing->layers[l]];
}

static bool has_weight(const struct psd_layer *layer)
{
	return layer->n_tensors > 0 || layer->n_shared > 0;
}

/* Index of the layer's kind among those of the row; 4: it is not there. */
static unsigned rank_of_kind(const struct psd_operator_row *row, const char *kind)
{
	unsigned i = 0;

	while (i < 4 && row->kinds[i] && strcmp(row->kinds[i], kind) != 0)
		i++;
	return i < 4 && row->kinds[i] ? i : 4;
}

enum fit { FIT_UNKNOWN, FIT_GOOD, FIT_BAD };

/* Whether an input of the operator has as many values as the layer's weight. */
static enum fit fit_weight(const struct pairing *pairing, const struct psd_layer *layer, uint32_t u)
{
	const struct psd_shapes *shapes = &pairing->shapes[u];
	const uint64_t elements = has_weight(layer) ? pairing->graph->tensors[layer->first_tensor].elements : 0;

	if (!elements || !shapes->n_inputs)
		return FIT_UNKNOWN;
	for (unsigned i = 0; i < shapes->n_inputs; i++)
		if (shapes->inputs[i].elements == elements)
			return FIT_GOOD;
	return FIT_BAD;
}

static bool is_named(const struct pairing *pairing, const struct psd_layer *layer, uint32_t u)
{
	const struct psd_trace *trace = pairing->places->trace;
	const uint32_t module = pairing->places->units[pairing->units[u]].module;

	return module != PSD_TRACE_NONE && !strcmp(psd_trace_string(trace, trace->ops[module].name), layer->name);
}

/* A layer of kind `other` may be any operator, known or not, that has a weight where the layer has one. */
static unsigned rank_of(const struct psd_layer *layer, const struct psd_operator_row *row)
{
	if (!strcmp(layer->kind->name, "other"))
		return psd_operator_has_weight(row) == has_weight(layer) ? 3 : 4;
	return row ? rank_of_kind(row, layer->kind->name) : 4;
}

static double score_pair(const struct pairing *pairing, unsigned l, uint32_t u)
{
	const struct psd_layer *layer = layer_of(pairing, l);
	const struct psd_operator_row *row = pairing->rows[u];
	const unsigned rank = rank_of(layer, row);
	const enum fit fit = fit_weight(pairing, layer, u);
	const bool is_strong = psd_operator_has_weight(row) && has_weight(layer);

	if (rank == 4)
		return is_named(pairing, layer, u) ? SCORE_NAME : FORBIDDEN;
	if (is_strong && fit == FIT_BAD && !is_named(pairing, layer, u))
		return FORBIDDEN;
	double score = layer->kind->is_loss || !strcmp(layer->kind->name, "attention") ? SCORE_STRUCTURE : SCORE_KIND;

	if (is_strong)
		score = fit == FIT_GOOD ? SCORE_FITTING : SCORE_WEIGHT_KIND;
	else if (fit == FIT_GOOD)
		score += SCORE_KIND;
	return score - 0.01 * rank + (is_named(pairing, layer, u) ? SCORE_NAME : 0);
}

/* Operators that a layer of one kind is spelt with. */
static bool is_part_of(const struct psd_layer *layer, const char *name)
{
	static const char *const attention[] = {"aten::bmm",	 "aten::matmul", "aten::baddbmm", "aten::softmax",
						"aten::masked_", "aten::where",	 "aten::tril",	  NULL};
	static const char *const loss[] = {"aten::log_softmax", "aten::nll_loss", "aten::neg", "aten::sum", NULL};
	static const char *const norm[] = {"aten::pow", "aten::mean", "aten::rsqrt", "aten::mul", "aten::to", NULL};
	const char *kind = layer->kind->name;
	const char *const *parts = !strcmp(kind, "attention")  ? attention
				   : layer->kind->is_loss      ? loss
				   : !strcmp(kind, "rms-norm") ? norm
							       : NULL;

	for (; parts && *parts; parts++)
		if (!strncmp(name, *parts, strlen(*parts)))
			return true;
	return false;
}

static double score_attached(const struct pairing *pairing, unsigned l, uint32_t u)
{
	if (l && is_named(pairing, layer_of(pairing, l - 1), u))
		return SCORE_NAME / 2;
	if (l && is_part_of(layer_of(pairing, l - 1), name_of(pairing, u)))
		return SCORE_PART;
	return psd_operator_has_weight(pairing->rows[u]) ? -COST_WEIGHT : -COST_UNIT;
}

static void score_row(struct pairing *pairing, unsigned l)
{
	const uint32_t n = pairing->n_units;
	unsigned char *moves = pairing->moves + (size_t)l * (n + 1);
	const double cost = l && has_weight(layer_of(pairing, l - 1)) ? COST_WEIGHT : COST_OTHER;

	for (uint32_t u = 0; u <= n; u++) {
		double best = l || u ? FORBIDDEN * 2 : 0;
		enum move move = MOVE_NONE;

		if (l && u) {
			best = pairing->above[u - 1] + score_pair(pairing, l - 1, u - 1);
			move = MOVE_BOTH;
		}
		if (u && pairing->here[u - 1] + score_attached(pairing, l, u - 1) > best) {
			best = pairing->here[u - 1] + score_attached(pairing, l, u - 1);
			move = MOVE_UNIT;
		}
		if (l && pairing->above[u] - cost > best) {
			best = pairing->above[u] - cost;
			move = MOVE_LAYER;
		}
		pairing->here[u] = best;
		moves[u] = (unsigned char)move;
	}
}

/* The best alignment of both orders, by dynamic programming. */
static void align(struct pairing *pairing)
{
	unsigned l = pairing->n_layers;
	uint32_t u = pairing->n_units;

	for (unsigned row = 0; row <= pairing->n_layers; row++) {
		double *swapped = pairing->above;

		score_row(pairing, row);
		pairing->above = pairing->here;
		pairing->here = swapped;
	}
	while (u) {
		const enum move move = pairing->moves[(size_t)l * (pairing->n_units + 1) + u];

		if (move == MOVE_LAYER) {
			l--;
			continue;
		}
		u--;
		pairing->layer_at[u] = l ? l - 1 : PSD_TRACE_NONE;
		pairing->is_sure[u] =
			move == MOVE_BOTH || (l && is_part_of(layer_of(pairing, l - 1), name_of(pairing, u)));
		if (move == MOVE_BOTH)
			pairing->is_taken[--l] = true;
	}
}

/* Gives operators that the order left over to layers that it left over: branches may run in another order. */
static void pair_rest(struct pairing *pairing)
{
	for (uint32_t u = 0; u < pairing->n_units; u++) {
		unsigned best = pairing->n_layers;
		double best_score = 0;

		if (pairing->is_sure[u] || !psd_operator_has_weight(pairing->rows[u]))
			continue;
		for (unsigned l = 0; l < pairing->n_layers; l++) {
			const double score = pairing->is_taken[l] || !has_weight(layer_of(pairing, l))
						     ? 0
						     : score_pair(pairing, l, u);

			if (score > best_score) {
				best_score = score;
				best = l;
			}
		}
		if (best == pairing->n_layers)
			continue;
		pairing->layer_at[u] = best;
		pairing->is_sure[u] = pairing->is_taken[best] = true;
	}
	/* operators before the first layer go with it */
	for (uint32_t u = pairing->n_units; u-- > 0;)
		if (pairing->layer_at[u] == PSD_TRACE_NONE && pairing->n_layers)
			pairing->layer_at[u] = u + 1 < pairing->n_units ? pairing->layer_at[u + 1] : 0;
}

static void release_pairing(struct pairing *pairing)
{
	free(pairing->rows);
	free(pairing->shapes);
	free(pairing->moves);
	free(pairing->above);
	free(pairing->here);
	free(pairing->layer_at);
	free(pairing->is_sure);
	free(pairing->is_taken);
}

static bool init_pairing(struct pairing *pairing)
{
	const size_t n = (size_t)pairing->n_units + 1, rows = (size_t)pairing->n_layers + 1;

	pairing->rows = calloc(n, sizeof(*pairing->rows));
	pairing->shapes = calloc(n, sizeof(*pairing->shapes));
	pairing->moves = malloc(n * rows);
	pairing->above = calloc(n, sizeof(*pairing->above));
	pairing->here = calloc(n, sizeof(*pairing->here));
	pairing->layer_at = calloc(n, sizeof(*pairing->layer_at));
	pairing->is_sure = calloc(n, sizeof(*pairing->is_sure));
	pairing->is_taken = calloc(rows, sizeof(*pairing->is_taken));
	if (!pairing->rows || !pairing->shapes || !pairing->moves || !pairing->above || !pairing->here ||
	    !pairing->layer_at || !pairing->is_sure || !pairing->is_taken)
		return false;
	for (uint32_t u = 0; u < pairing->n_units; u++) {
		const struct psd_trace *trace = pairing->places->trace;
		const struct psd_trace_op *op = &trace->ops[pairing->places->units[pairing->units[u]].op];

		pairing->rows[u] = psd_operator_find(psd_trace_string(trace, op->name));
		pairing->shapes[u] = psd_shapes_read(trace, op);
	}
	return true;
}

static void keep_pairing(struct psd_match *match, const struct pairing *pairing)
{
	for (uint32_t u = 0; u < pairing->n_units; u++) {
		match->layer_of[pairing->units[u]] =
			pairing->layer_at[u] == PSD_TRACE_NONE ? PSD_TRACE_NONE : pairing->layers[pairing->layer_at[u]];
		match->is_sure[pairing->units[u]] = pairing->is_sure[u];
	}
	match->n_silent = 0;
	for (unsigned l = pairing->n_layers; l-- > 0;)
		if (!pairing->is_taken[l] && has_weight(layer_of(pairing, l))) {
			match->n_silent++;
			match->silent = pairing->layers[l];
		}
}

static enum psd_status pair_step(struct psd_match *match, struct pairing *pairing, const char *path,
				 struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	if ((uint64_t)pairing->n_units * pairing->n_layers > MOST_PAIRS)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
				     "a step has %u operators for the model's %u layers, must be at most %llu pairs; "
				     "record with ProfilerStep marks",
				     pairing->n_units, pairing->n_layers, (unsigned long long)MOST_PAIRS);
	if (init_pairing(pairing)) {
		align(pairing);
		pair_rest(pairing);
		keep_pairing(match, pairing);
	} else {
		status = psd_out_of_memory(err);
	}
	release_pairing(pairing);
	return status;
}

/* ---- steps ---- */

static bool is_same_step(const struct psd_places *places, const uint32_t *one, const uint32_t *other, uint32_t n)
{
	const struct psd_trace_op *ops = places->trace->ops;

	for (uint32_t u = 0; u < n; u++) {
		const struct psd_trace_op *left = &ops[places->units[one[u]].op],
					  *right = &ops[places->units[other[u]].op];

		if (left->name != right->name || left->dims != right->dims)
			return false;
	}
	return true;
}

static void copy_step(struct psd_match *match, const uint32_t *from, const uint32_t *to, uint32_t n)
{
	for (uint32_t u = 0; u < n; u++) {
		match->layer_of[to[u]] = match->layer_of[from[u]];
		match->is_sure[to[u]] = match->is_sure[from[u]];
	}
}

/* Gradients go with their unit of forward, or with the gradient before them. */
static void follow_forward(struct psd_match *match, const struct psd_places *places)
{
	for (uint32_t u = 0; u < places->n_units; u++) {
		const struct psd_trace_unit *unit = &places->units[u];

		if (unit->role != PSD_ROLE_BACKWARD)
			continue;
		if (unit->forward != PSD_TRACE_NONE) {
			match->layer_of[u] = match->layer_of[unit->forward];
			match->is_sure[u] = match->is_sure[unit->forward];
		} else if (unit->before != PSD_TRACE_NONE) {
			match->layer_of[u] = match->layer_of[unit->before];
			/* the sum into a parameter's gradient belongs to the layer whose backward made it */
			match->is_sure[u] = match->is_sure[unit->before] &&
					    strstr(psd_trace_string(places->trace, places->trace->ops[unit->op].name),
						   "AccumulateGrad");
		}
	}
}

static bool init(struct psd_match *match, const struct psd_places *places)
{
	match->layer_of = malloc(((size_t)places->n_units + 1) * sizeof(*match->layer_of));
	match->is_sure = calloc((size_t)places->n_units + 1, sizeof(*match->is_sure));
	for (uint32_t u = 0; match->layer_of && u < places->n_units; u++)
		match->layer_of[u] = PSD_TRACE_NONE;
	return match->layer_of && match->is_sure;
}

/* Units of forward of each step, one step behind the other. */
static uint32_t list_forward(const struct psd_places *places, uint32_t *units, uint32_t *begins)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < places->n_steps; s++)
		begins[s] = 0;
	for (uint32_t u = 0; u < places->n_units; u++)
		if (places->units[u].role == PSD_ROLE_FORWARD && places->units[u].step != PSD_TRACE_NONE)
			begins[places->units[u].step]++;
	for (uint32_t s = 0; s <= places->n_steps; s++) {
		const uint32_t more = s < places->n_steps ? begins[s] : 0;

		begins[s] = n;
		n += more;
	}
	for (uint32_t u = 0; u < places->n_units; u++)
		if (places->units[u].role == PSD_ROLE_FORWARD && places->units[u].step != PSD_TRACE_NONE)
			units[begins[places->units[u].step]++] = u;
	for (uint32_t s = places->n_steps; s > 0; s--)
		begins[s] = begins[s - 1];
	begins[0] = 0;
	return n;
}

static enum psd_status pair_steps(struct psd_match *match, struct pairing *pairing, const uint32_t *units,
				  const uint32_t *begins, const char *path, struct psd_error *err)
{
	const struct psd_places *places = pairing->places;

	for (uint32_t s = 0; s < places->n_steps; s++) {
		const uint32_t n = begins[s + 1] - begins[s];

		if (s && n == begins[s] - begins[s - 1] &&
		    is_same_step(places, units + begins[s - 1], units + begins[s], n)) {
			copy_step(match, units + begins[s - 1], units + begins[s], n);
			continue;
		}
		pairing->units = units + begins[s];
		pairing->n_units = n;
		PSD_TRY(pair_step(match, pairing, path, err));
	}
	return PSD_OK;
}

enum psd_status psd_match_graph(struct psd_match *match, const struct psd_places *places, const struct psd_graph *graph,
				const char *path, struct psd_error *err)
{
	struct psd_match fresh = {.n_layers = graph->n_layers};
	uint32_t *units = malloc(((size_t)places->n_units + 1) * sizeof(*units));
	uint32_t *begins = malloc(((size_t)places->n_steps + 2) * sizeof(*begins));
	unsigned *layers = malloc((graph->n_layers + (size_t)1) * sizeof(*layers));
	struct pairing pairing = {.places = places, .graph = graph, .layers = layers};
	enum psd_status status = PSD_OK;

	if (!units || !begins || !layers || !init(&fresh, places))
		status = psd_out_of_memory(err);
	for (unsigned i = 0; !status && i < graph->n_layers; i++)
		if (graph->layers[i].n_inputs)
			layers[pairing.n_layers++] = i;
	if (!status) {
		list_forward(places, units, begins);
		status = pair_steps(&fresh, &pairing, units, begins, path, err);
	}
	free(units);
	free(begins);
	free(layers);
	if (status) {
		psd_match_release(&fresh);
		return status;
	}
	follow_forward(&fresh, places);
	*match = fresh;
	return PSD_OK;
}

/* ---- layers of a trace alone ---- */

/* The name of a layer: the operator's without its namespace, in characters that YAML and CSV need not quote. */
static void write_name(char *text, size_t room, const char *op, unsigned number)
{
	const char *last = strrchr(op, ':');
	size_t n = 0;

	for (const char *at = last ? last + 1 : op; *at && n + 16 < room; at++) {
		const char c = *at;

		if (c == ' ' && !n)
			continue;
		text[n++] =
			(char)((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_');
	}
	snprintf(text + n, room - n, "%s%u", n ? "-" : "operator-", number);
}

static uint32_t see(struct psd_match *match, const char *name, uint32_t unit)
{
	unsigned number = PSD_TRACE_NONE;

	if (psd_names_find(&match->names, name, &number))
		return number;
	void *grown = psd_grown(match->seen, match->n_seen, &match->seen_room, sizeof(*match->seen));
	if (!grown)
		return PSD_TRACE_NONE;
	match->seen = grown;
	char *kept = psd_arena_copy(&match->arena, name, strlen(name));
	if (!kept || !psd_names_put(&match->names, kept, match->n_seen))
		return PSD_TRACE_NONE;
	match->seen[match->n_seen] = (struct psd_seen_layer){kept, unit};
	return match->n_seen++;
}

/* A unit's layer has the operator's name, and the number of units of that name before it in its step. */
static bool see_units(struct psd_match *match, const struct psd_places *places, enum psd_role role, unsigned *counts,
		      uint32_t *step_of)
{
	const struct psd_trace *trace = places->trace;

	memset(step_of, 0xff, trace->n_strings * sizeof(*step_of));
	for (uint32_t u = 0; u < places->n_units; u++) {
		const struct psd_trace_unit *unit = &places->units[u];
		const uint32_t string = trace->ops[unit->op].name;
		const char *name = psd_trace_string(trace, string);
		char text[96];

		if (unit->role != role || unit->step == PSD_TRACE_NONE || unit->forward != PSD_TRACE_NONE ||
		    strstr(name, "AccumulateGrad"))
			continue;
		counts[string] = step_of[string] == unit->step ? counts[string] + 1 : 1;
		step_of[string] = unit->step;
		write_name(text, sizeof(text), name, counts[string]);
		match->layer_of[u] = see(match, text, u);
		match->is_sure[u] = true;
		if (match->layer_of[u] == PSD_TRACE_NONE)
			return false;
	}
	return true;
}

enum psd_status psd_match_alone(struct psd_match *match, const struct psd_places *places, struct psd_error *err)
{
	struct psd_match fresh = {.n_layers = 0};
	const size_t n_strings = places->trace->n_strings + (size_t)1;
	unsigned *counts = calloc(n_strings, sizeof(*counts));
	uint32_t *step_of = malloc(n_strings * sizeof(*step_of));
	bool is_done = counts && step_of && init(&fresh, places);

	is_done = is_done && see_units(&fresh, places, PSD_ROLE_FORWARD, counts, step_of) &&
		  see_units(&fresh, places, PSD_ROLE_BACKWARD, counts, step_of);
	free(counts);
	free(step_of);
	if (!is_done) {
		psd_match_release(&fresh);
		return psd_out_of_memory(err);
	}
	for (uint32_t u = 0; u < places->n_units; u++) {
		const struct psd_trace_unit *unit = &places->units[u];

		if (unit->role != PSD_ROLE_BACKWARD || fresh.layer_of[u] != PSD_TRACE_NONE)
			continue;
		if (unit->forward != PSD_TRACE_NONE)
			fresh.layer_of[u] = fresh.layer_of[unit->forward];
		else if (unit->before != PSD_TRACE_NONE)
			fresh.layer_of[u] = fresh.layer_of[unit->before];
		fresh.is_sure[u] = fresh.layer_of[u] != PSD_TRACE_NONE;
	}
	fresh.n_layers = fresh.n_seen;
	*match = fresh;
	return PSD_OK;
}

void psd_match_release(struct psd_match *match)
{
	free(match->layer_of);
	free(match->is_sure);
	free(match->seen);
	psd_names_release(&match->names);
	psd_arena_release(&match->arena);
	*match = (struct psd_match){.layer_of = NULL};
}
