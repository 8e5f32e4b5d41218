/* Attention, recognised in several nodes: the product of queries and keys, a factor, a mask, softmax, the product with
 * the values. In psd it is one layer, whose input is the concatenation of queries, keys and values. */
#include <math.h>
#include <string.h>

#include "engine/model/layer.h"
#include "engine/model/onnx/parts.h"

/* Covers the rounding of two roots in float, and of their product. */
#define FACTOR_TOLERANCE_RATIO 1e-6

struct psd_onnx_scores {
	struct psd_onnx_value queries, keys; /* heads x positions x depth, and heads x depth x positions */
	double factor;
	double rotary_base; /* base of the rotation of queries and keys; 0: none */
	bool is_causal;
	bool is_normalized;
};

/* Axes of queries, keys or values: positions and depth are the last two, the others are heads. */
struct heads {
	uint64_t heads, positions, depth;
	uint64_t groups; /* heads that are stored; each serves the same number of heads */
	struct psd_onnx_order order;
};

/* Sets *heads. False: the order is unknown. Heads that share a stored one are digits of stride 0 after the others. */
static bool count_heads(const struct psd_onnx_value *value, unsigned positions, unsigned depth, struct heads *heads)
{
	const struct psd_onnx_view *view = &value->view;
	bool is_shared = false;

	if (psd_onnx_view_has_batch(view, positions) || psd_onnx_view_has_batch(view, depth))
		return false;
	*heads = (struct heads){.heads = 1,
				.groups = 1,
				.positions = psd_onnx_view_dim(view, positions),
				.depth = psd_onnx_view_dim(view, depth)};
	for (unsigned a = 0; a < view->n_axes; a++)
		if (a != positions && a != depth)
			heads->order.axes[0][heads->order.n[0]++] = a;
	heads->order.axes[0][heads->order.n[0]++] = depth;
	heads->order.axes[1][heads->order.n[1]++] = positions;
	for (unsigned i = 0; i + 1 < heads->order.n[0]; i++) {
		const unsigned axis = heads->order.axes[0][i];

		for (unsigned d = psd_onnx_view_first(view, axis); d < view->ends[axis]; d++) {
			const struct psd_onnx_digit digit = view->digits[d];

			if (digit.stride == PSD_ONNX_BATCH)
				continue;
			heads->heads *= digit.size;
			if (digit.stride && is_shared)
				return false;
			if (digit.stride)
				heads->groups *= digit.size;
			is_shared = is_shared || !digit.stride;
		}
	}
	return true;
}

/* ---- the scores ---- */

static enum psd_status put(struct psd_onnx *onnx, struct psd_onnx_scores scores, struct psd_onnx_value *result)
{
	struct psd_onnx_scores *stored = psd_arena_take(&onnx->arena, sizeof(*stored));

	if (!stored)
		return psd_onnx_no_memory(onnx);
	*stored = scores;
	*result = (struct psd_onnx_value){.kind = PSD_ONNX_SCORES, .scores = stored};
	return PSD_OK;
}

enum psd_status psd_onnx_begin_scores(struct psd_onnx *onnx, const struct psd_onnx_value *queries,
				      const struct psd_onnx_value *keys, struct psd_onnx_value *result)
{
	struct psd_onnx_scores scores = {.queries = *queries, .keys = *keys};
	const unsigned n = queries->view.n_axes;
	double of_queries, of_keys;

	if (n < 3 || keys->view.n_axes != n)
		return psd_onnx_refuse(
			onnx, "multiplies samples by samples, which psd supports only in attention with heads");
	if (!psd_onnx_expr_is_product(queries->expr, &of_queries) || !psd_onnx_expr_is_product(keys->expr, &of_keys))
		return psd_onnx_refuse(onnx, "has queries or keys with a function that is not a factor");
	if (queries->rotary_base != keys->rotary_base)
		return psd_onnx_refuse(onnx, "has queries rotated by base %g and keys by %g, must be equal",
				       queries->rotary_base, keys->rotary_base);
	scores.factor = of_queries * of_keys;
	scores.rotary_base = queries->rotary_base;
	scores.queries.rotary_base = scores.keys.rotary_base = 0;
	scores.queries.expr = scores.keys.expr = psd_onnx_expr_new(onnx);
	if (!scores.queries.expr)
		return psd_onnx_no_memory(onnx);
	return put(onnx, scores, result);
}

void psd_onnx_factors_of_scores(const struct psd_onnx_value *scores, const struct psd_onnx_value *factors[2])
{
	factors[0] = &scores->scores->queries;
	factors[1] = &scores->scores->keys;
}

enum psd_status psd_onnx_scale_scores(struct psd_onnx *onnx, const struct psd_onnx_value *scores, double factor,
				      struct psd_onnx_value *result)
{
	struct psd_onnx_scores scaled = *scores->scores;

	if (scaled.is_normalized)
		return psd_onnx_refuse(onnx, "changes scores after their softmax, which psd does not support");
	scaled.factor *= factor;
	return put(onnx, scaled, result);
}

unsigned psd_onnx_axes_of_scores(const struct psd_onnx_value *scores)
{
	return scores->scores->queries.view.n_axes;
}

/* Reads masks of all pairs of positions. False: they are neither causal nor show all positions to all. */
static bool read_mask(const struct psd_onnx_value *mask, uint64_t positions, enum psd_onnx_mask meaning,
		      bool *is_causal)
{
	const uint64_t elements = psd_onnx_elements(mask);
	bool shows_all = true, shows_earlier = true;

	for (uint64_t e = 0; e < elements; e++) {
		const uint64_t row = e / positions % positions, column = e % positions;
		const double number = mask->numbers[e];
		const bool is_shown = (meaning == PSD_ONNX_MASK_SHOWS) == (number != 0);

		if (meaning == PSD_ONNX_MASK_ADDS && number != 0 && number > -1e4)
			return false;
		shows_all = shows_all && is_shown;
		shows_earlier = shows_earlier && is_shown == (column <= row);
	}
	*is_causal = !shows_all;
	return shows_all || shows_earlier;
}

enum psd_status psd_onnx_mask_scores(struct psd_onnx *onnx, const struct psd_onnx_value *scores,
				     struct psd_onnx_value *mask, enum psd_onnx_mask meaning,
				     struct psd_onnx_value *result)
{
	struct psd_onnx_scores masked = *scores->scores;
	const struct psd_onnx_view *queries = &masked.queries.view;
	const uint64_t positions = psd_onnx_view_dim(queries, queries->n_axes - 2);
	const bool is_square = mask->n_dims >= 2 && mask->dims[mask->n_dims - 1] == positions &&
			       mask->dims[mask->n_dims - 2] == positions;
	char shape[PSD_ONNX_SHAPE_TEXT_MAX];
	bool is_causal = false;

	if (masked.is_normalized || mask->kind != PSD_ONNX_CONSTANT)
		return psd_onnx_refuse(onnx, "adds to scores, must add a constant mask");
	PSD_TRY(psd_onnx_read_numbers(onnx, mask));
	if (!is_square && psd_onnx_elements(mask) > positions)
		return psd_onnx_refuse(onnx, "has a mask of shape %s, must end with [%llu,%llu]",
				       psd_onnx_write_shape(shape, mask->dims, mask->n_dims),
				       (unsigned long long)positions, (unsigned long long)positions);
	if (!read_mask(mask, positions, meaning, &is_causal) || (is_causal && !is_square))
		return psd_onnx_refuse(onnx, "has a mask that must be causal, or show all positions to all");
	masked.is_causal = masked.is_causal || is_causal;
	return put(onnx, masked, result);
}

enum psd_status psd_onnx_normalize_scores(struct psd_onnx *onnx, const struct psd_onnx_value *scores,
					  struct psd_onnx_value *result)
{
	struct psd_onnx_scores normalized = *scores->scores;
	const struct psd_onnx_view *queries = &normalized.queries.view;
	const double depth = (double)psd_onnx_view_dim(queries, queries->n_axes - 1);

	if (!(fabs(normalized.factor * sqrt(depth) - 1) < FACTOR_TOLERANCE_RATIO))
		return psd_onnx_refuse(onnx, "scales scores by %g, must be 1 / sqrt(%g), the depth of a head",
				       normalized.factor, depth);
	normalized.is_normalized = true;
	return put(onnx, normalized, result);
}

/* ---- the layer ---- */

/* Are queries, keys and values one layer in psd's order already? */
static bool lie_together(const struct psd_onnx *onnx, const struct psd_onnx_view *const parts[3],
			 const struct heads heads[3])
{
	const unsigned layer = parts[0]->layer;
	const struct psd_shape shape = psd_onnx_shape(onnx, layer);
	uint64_t channels = 0;
	const uint64_t positions = heads[0].positions;

	for (unsigned p = 0; p < 3; p++) {
		uint64_t stride = positions;

		if (parts[p]->layer != layer || parts[p]->offset != channels * positions)
			return false;
		for (unsigned i = heads[p].order.n[0]; i-- > 0;) {
			const unsigned axis = heads[p].order.axes[0][i];

			for (unsigned d = parts[p]->ends[axis]; d-- > psd_onnx_view_first(parts[p], axis);) {
				if (parts[p]->digits[d].stride == PSD_ONNX_BATCH)
					continue;
				if (parts[p]->digits[d].stride != stride)
					return false;
				stride *= parts[p]->digits[d].size;
			}
		}
		channels += heads[p].groups * heads[p].depth;
	}
	/* the order of heads fixes that of positions, apart from the last digit */
	for (unsigned p = 0; p < 3; p++) {
		const unsigned axis = heads[p].order.axes[1][0], n = parts[p]->ends[axis];

		if (psd_onnx_view_count(parts[p], axis) > 1 ||
		    (psd_onnx_view_count(parts[p], axis) && parts[p]->digits[n - 1].stride != 1))
			return false;
	}
	return channels == shape.channels && positions == (uint64_t)shape.height * shape.width;
}

static enum psd_status make_input(struct psd_onnx *onnx, struct psd_onnx_view parts[3], struct heads heads[3],
				  unsigned *layer)
{
	const struct psd_onnx_view *const views[3] = {&parts[0], &parts[1], &parts[2]};
	struct psd_layer_spec spec = {.kind = &psd_layer_concat, .n_inputs = 3};

	*layer = parts[0].layer;
	if (lie_together(onnx, views, heads))
		return PSD_OK;
	for (unsigned p = 0; p < 3; p++) {
		PSD_TRY(psd_onnx_lay_out(onnx, &parts[p], &heads[p].order, false));
		spec.inputs[p] = parts[p].layer;
	}
	return psd_onnx_add_beside(onnx, &spec, layer);
}

enum psd_status psd_onnx_end_scores(struct psd_onnx *onnx, const struct psd_onnx_value *scores,
				    const struct psd_onnx_value *values, struct psd_onnx_value *result)
{
	const struct psd_onnx_scores *attention = scores->scores;
	const unsigned n = attention->queries.view.n_axes;
	struct psd_onnx_value settled = *values;
	const struct psd_onnx_value *parts[3] = {&attention->queries, &attention->keys, &settled};
	struct psd_layer_spec spec = {.kind = &psd_layer_attention, .n_inputs = 1};
	struct psd_onnx_view views[3];
	struct heads heads[3];
	uint64_t positions, stride;

	PSD_TRY(psd_onnx_materialize(onnx, &settled));
	if (!attention->is_normalized || values->view.n_axes != n)
		return psd_onnx_refuse(
			onnx, "multiplies samples by samples, which psd supports only in attention with heads");
	for (unsigned p = 0; p < 3; p++) {
		/* keys are transposed: depth before positions */
		const unsigned place_axis = p == 1 ? n - 1 : n - 2, depth_axis = p == 1 ? n - 2 : n - 1;

		if (!count_heads(parts[p], place_axis, depth_axis, &heads[p]))
			return psd_onnx_refuse(onnx, "has heads in an order that psd cannot express");
		views[p] = psd_onnx_view_without(&parts[p]->view, 0);
		psd_onnx_view_merge(&views[p]);
	}
	for (unsigned p = 1; p < 3; p++)
		if (heads[p].heads != heads[0].heads || heads[p].positions != heads[0].positions ||
		    heads[p].depth != heads[0].depth || heads[p].groups != heads[1].groups)
			return psd_onnx_refuse(
				onnx,
				"has other positions or heads in keys and values than in queries, must have the same");
	if (heads[0].groups != heads[0].heads)
		return psd_onnx_refuse(onnx, "has queries that several heads share, must have one for each");
	if (heads[0].heads > PSD_LAYER_CHANNELS_MAX)
		return psd_onnx_refuse(onnx, "has too many heads");
	PSD_TRY(make_input(onnx, views, heads, &spec.inputs[0]));
	spec.settings.attention = (struct psd_attention_settings){.heads = (uint32_t)heads[0].heads,
								  .kv_heads = (uint32_t)heads[1].groups,
								  .is_causal = attention->is_causal,
								  .rotary_base = attention->rotary_base};
	*result = (struct psd_onnx_value){.kind = PSD_ONNX_DATA, .expr = psd_onnx_expr_new(onnx)};
	if (!result->expr)
		return psd_onnx_no_memory(onnx);
	const enum psd_status status = psd_onnx_add(onnx, &spec, NULL, &result->view.layer);
	/* the layer's order is heads x depth x positions, the axes are heads x positions x depth */
	positions = heads[0].positions;
	stride = heads[0].heads * heads[0].depth * positions;
	for (unsigned a = 0; a < n - 2; a++)
		psd_onnx_view_add_dense_axis(&result->view, &attention->queries.view, a, &stride);
	psd_onnx_view_add_axis(&result->view);
	psd_onnx_view_add_digit(&result->view, positions, 1);
	psd_onnx_view_add_axis(&result->view);
	psd_onnx_view_add_digit(&result->view, heads[0].depth, positions);
	return status;
}

/* ---- the operator Attention ---- */

/* Changes the view from samples x positions x (heads * depth) to samples x heads x positions x depth, if necessary. */
static enum psd_status split_heads(struct psd_onnx *onnx, struct psd_onnx_value *part, const char *name)
{
	const int64_t heads = psd_onnx_integer(onnx, name, 0);
	uint64_t dims[4] = {1, 1, 1, 1};
	const unsigned order[4] = {0, 2, 1, 3};

	if (part->view.n_axes == 4)
		return PSD_OK;
	if (part->view.n_axes != 3 || heads < 1 || psd_onnx_view_dim(&part->view, 2) % (uint64_t)heads)
		return psd_onnx_refuse(onnx, "must have inputs of four axes, or three and '%s' that divide the last",
				       name);
	dims[0] = psd_onnx_view_dim(&part->view, 0);
	dims[1] = psd_onnx_view_dim(&part->view, 1);
	dims[2] = (uint64_t)heads;
	dims[3] = psd_onnx_view_dim(&part->view, 2) / (uint64_t)heads;
	if (!psd_onnx_view_reshape(&part->view, dims, 4) || !psd_onnx_view_transpose(&part->view, order))
		return psd_onnx_refuse(onnx, "has heads in an order that psd cannot express");
	return PSD_OK;
}

enum psd_status psd_onnx_attention(struct psd_onnx *onnx)
{
	struct psd_onnx_value parts[3], scores, *result = psd_onnx_output(onnx, 0), *mask = psd_onnx_input(onnx, 3);
	static const char *const names[3] = {"q_num_heads", "kv_num_heads", "kv_num_heads"};
	const unsigned keys_order[4] = {0, 1, 3, 2}, back[4] = {0, 2, 1, 3};
	const bool is_flat = psd_onnx_input(onnx, 0)->view.n_axes == 3;
	uint64_t dims[3];

	for (unsigned p = 0; p < 3; p++) {
		parts[p] = *psd_onnx_input(onnx, p);
		PSD_TRY(psd_onnx_check_data(onnx, &parts[p]));
		PSD_TRY(split_heads(onnx, &parts[p], names[p]));
	}
	if (psd_onnx_input(onnx, 4)->kind != PSD_ONNX_ABSENT || psd_onnx_number(onnx, "softcap", 0) != 0)
		return psd_onnx_refuse(onnx, "has a past or a 'softcap', must have neither");
	const double depth = (double)psd_onnx_view_dim(&parts[0].view, 3);
	psd_onnx_view_transpose(&parts[1].view, keys_order);
	PSD_TRY(psd_onnx_begin_scores(onnx, &parts[0], &parts[1], &scores));
	PSD_TRY(psd_onnx_scale_scores(onnx, &scores, psd_onnx_number(onnx, "scale", 1 / sqrt(depth)), &scores));
	if (mask->kind != PSD_ONNX_ABSENT)
		PSD_TRY(psd_onnx_mask_scores(onnx, &scores, mask,
					     mask->is_real ? PSD_ONNX_MASK_ADDS : PSD_ONNX_MASK_SHOWS, &scores));
	if (psd_onnx_integer(onnx, "is_causal", 0))
		scores.scores->is_causal = true;
	PSD_TRY(psd_onnx_normalize_scores(onnx, &scores, &scores));
	PSD_TRY(psd_onnx_end_scores(onnx, &scores, &parts[2], result));
	if (!is_flat)
		return PSD_OK;
	dims[0] = psd_onnx_view_dim(&result->view, 0);
	dims[1] = psd_onnx_view_dim(&result->view, 2);
	dims[2] = psd_onnx_view_dim(&result->view, 1) * psd_onnx_view_dim(&result->view, 3);
	if (!psd_onnx_view_transpose(&result->view, back) || !psd_onnx_view_reshape(&result->view, dims, 3))
		return psd_onnx_refuse(onnx, "has heads in an order that psd cannot express");
	return PSD_OK;
}
