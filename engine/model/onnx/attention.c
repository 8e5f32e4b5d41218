/* Attention, which files spell out: the product of queries and keys, a factor, a mask, softmax, the product with the
 * values. In psd it is one layer, whose input has queries, keys and values one behind the other. */
#include <math.h>
#include <string.h>

#include "engine/model/layer.h"
#include "engine/model/onnx/parts.h"

/* Two roots in float and their product. */
#define FACTOR_TOLERANCE_RATIO 1e-6

struct psd_onnx_scores {
	struct psd_onnx_value queries, keys; /* heads x places x depth, each head's place a vector */
	double factor;
	double rotary_base; /* of queries and keys; 0: none */
	bool is_causal;
	bool is_normalized;
};

/* ---- heads, places, depth ---- */

/* The axes of queries, keys or values: `places` and `depth` are the last two, the ones before are the heads. */
struct heads {
	uint64_t heads, places, depth;
	uint64_t groups; /* heads that have their own; the others see one of these */
	struct psd_onnx_order order;
};

/* Heads that share one are steps of 0. */
static bool count_heads(const struct psd_onnx_value *value, unsigned places, unsigned depth, struct heads *heads)
{
	const struct psd_onnx_view *view = &value->view;
	bool is_shared = false;

	if (psd_onnx_view_has_batch(view, places) || psd_onnx_view_has_batch(view, depth))
		return false;
	*heads = (struct heads){.heads = 1,
				.groups = 1,
				.places = psd_onnx_view_side(view, places),
				.depth = psd_onnx_view_side(view, depth)};
	for (unsigned a = 0; a < view->n_axes; a++)
		if (a != places && a != depth)
			heads->order.axes[0][heads->order.n[0]++] = a;
	heads->order.axes[0][heads->order.n[0]++] = depth;
	heads->order.axes[1][heads->order.n[1]++] = places;
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

/* The view without its steps of 0. */
static struct psd_onnx_view without_repeats(const struct psd_onnx_view *view)
{
	struct psd_onnx_view plain = {.layer = view->layer, .offset = view->offset};

	for (unsigned a = 0; a < view->n_axes; a++) {
		psd_onnx_view_add_axis(&plain);
		for (unsigned d = psd_onnx_view_first(view, a); d < view->ends[a]; d++)
			if (view->digits[d].stride)
				psd_onnx_view_add_digit(&plain, view->digits[d].size, view->digits[d].stride);
	}
	return plain;
}

/* ---- the scores ---- */

static enum psd_status put(struct psd_onnx *onnx, struct psd_onnx_scores scores, struct psd_onnx_value *result)
{
	struct psd_onnx_scores *kept = psd_arena_take(&onnx->arena, sizeof(*kept));

	if (!kept)
		return psd_onnx_no_memory(onnx);
	*kept = scores;
	*result = (struct psd_onnx_value){.kind = PSD_ONNX_SCORES, .scores = kept};
	return PSD_OK;
}

enum psd_status psd_onnx_begin_scores(struct psd_onnx *onnx, const struct psd_onnx_value *queries,
				      const struct psd_onnx_value *keys, struct psd_onnx_value *result)
{
	struct psd_onnx_scores scores = {.queries = *queries, .keys = *keys};
	const unsigned n = queries->view.n_axes;
	double of_queries, of_keys;

	if (n < 3 || keys->view.n_axes != n)
		return psd_onnx_refuse(onnx,
				       "multiplies samples by samples, which is known as attention of heads alone");
	if (!psd_onnx_term_is_product(queries->term, &of_queries) || !psd_onnx_term_is_product(keys->term, &of_keys))
		return psd_onnx_refuse(onnx, "has queries or keys that are functions of others, not known here");
	if (queries->rotary_base != keys->rotary_base)
		return psd_onnx_refuse(onnx,
				       "has queries that are rotated by %g and keys by %g, must be by the same base",
				       queries->rotary_base, keys->rotary_base);
	scores.factor = of_queries * of_keys;
	scores.rotary_base = queries->rotary_base;
	scores.queries.rotary_base = scores.keys.rotary_base = 0;
	scores.queries.term = scores.keys.term = psd_onnx_term_new(onnx);
	if (!scores.queries.term)
		return psd_onnx_no_memory(onnx);
	return put(onnx, scores, result);
}

enum psd_status psd_onnx_scale_scores(struct psd_onnx *onnx, const struct psd_onnx_value *scores, double factor,
				      struct psd_onnx_value *result)
{
	struct psd_onnx_scores scaled = *scores->scores;

	if (scaled.is_normalized)
		return psd_onnx_refuse(onnx, "changes what softmax has made of scores");
	scaled.factor *= factor;
	return put(onnx, scaled, result);
}

unsigned psd_onnx_axes_of_scores(const struct psd_onnx_value *scores)
{
	return scores->scores->queries.view.n_axes;
}

/* Of a square of places, for each matrix of it: all see all, or each sees itself and those before. */
static bool read_mask(const struct psd_onnx_value *mask, uint64_t places, enum psd_onnx_mask says, bool *is_causal)
{
	const uint64_t elements = psd_onnx_elements(mask);
	bool sees_all = true, sees_before = true;

	for (uint64_t e = 0; e < elements; e++) {
		const uint64_t row = e / places % places, column = e % places;
		const double number = mask->numbers[e];
		const bool sees = (says == PSD_ONNX_SEES) == (number != 0);

		if (says == PSD_ONNX_ADDS && number != 0 && number > -1e4)
			return false;
		sees_all = sees_all && sees;
		sees_before = sees_before && sees == (column <= row);
	}
	*is_causal = !sees_all;
	return sees_all || sees_before;
}

enum psd_status psd_onnx_mask_scores(struct psd_onnx *onnx, const struct psd_onnx_value *scores,
				     struct psd_onnx_value *mask, enum psd_onnx_mask says,
				     struct psd_onnx_value *result)
{
	struct psd_onnx_scores masked = *scores->scores;
	const struct psd_onnx_view *queries = &masked.queries.view;
	const uint64_t places = psd_onnx_view_side(queries, queries->n_axes - 2);
	const bool is_square =
		mask->n_dims >= 2 && mask->dims[mask->n_dims - 1] == places && mask->dims[mask->n_dims - 2] == places;
	bool is_causal = false;
	enum psd_status status;

	if (masked.is_normalized || mask->kind != PSD_ONNX_CONSTANT)
		return psd_onnx_refuse(onnx, "adds to scores what is no mask of attention");
	status = psd_onnx_read(onnx, mask);
	if (status)
		return status;
	if (!is_square && psd_onnx_elements(mask) > places)
		return psd_onnx_refuse(onnx, "has a mask of another shape than %llu by %llu places",
				       (unsigned long long)places, (unsigned long long)places);
	if (!read_mask(mask, places, says, &is_causal) || (is_causal && !is_square))
		return psd_onnx_refuse(onnx,
				       "has a mask that is neither causal nor lets all places see all, or adds what is "
				       "learned: not known");
	masked.is_causal = masked.is_causal || is_causal;
	return put(onnx, masked, result);
}

static enum psd_status make_causal(struct psd_onnx *onnx, const struct psd_onnx_value *scores,
				   struct psd_onnx_value *result)
{
	struct psd_onnx_scores causal = *scores->scores;

	causal.is_causal = true;
	return put(onnx, causal, result);
}

enum psd_status psd_onnx_normalize_scores(struct psd_onnx *onnx, const struct psd_onnx_value *scores,
					  struct psd_onnx_value *result)
{
	struct psd_onnx_scores normalized = *scores->scores;
	const struct psd_onnx_view *queries = &normalized.queries.view;
	const double depth = (double)psd_onnx_view_side(queries, queries->n_axes - 1);

	if (!(fabs(normalized.factor * sqrt(depth) - 1) < FACTOR_TOLERANCE_RATIO))
		return psd_onnx_refuse(onnx, "has scores times %g, must be 1 by the root of the depth %g",
				       normalized.factor, depth);
	normalized.is_normalized = true;
	return put(onnx, normalized, result);
}

/* ---- the layer ---- */

/* All three are parts of one layer in psd's order already: then that is the input, as it is. */
static bool lie_together(const struct psd_onnx *onnx, const struct psd_onnx_view *const parts[3],
			 const struct heads heads[3])
{
	const unsigned layer = parts[0]->layer;
	const struct psd_shape shape = psd_onnx_shape(onnx, layer);
	uint64_t channels = 0;
	const uint64_t places = heads[0].places;

	for (unsigned p = 0; p < 3; p++) {
		uint64_t stride = places;

		if (parts[p]->layer != layer || parts[p]->offset != channels * places)
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
	/* places are what is left, so they need no look but at their last digit */
	for (unsigned p = 0; p < 3; p++) {
		const unsigned axis = heads[p].order.axes[1][0], n = parts[p]->ends[axis];

		if (psd_onnx_view_count(parts[p], axis) > 1 ||
		    (psd_onnx_view_count(parts[p], axis) && parts[p]->digits[n - 1].stride != 1))
			return false;
	}
	return channels == shape.channels && places == (uint64_t)shape.height * shape.width;
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
		enum psd_status status = psd_onnx_lay_out(onnx, &parts[p], &heads[p].order, false);

		if (status)
			return status;
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
	uint64_t places, stride;
	enum psd_status status = psd_onnx_settle(onnx, &settled);

	if (status)
		return status;
	if (!attention->is_normalized || values->view.n_axes != n)
		return psd_onnx_refuse(onnx,
				       "multiplies samples by samples, which is known as attention of heads alone");
	for (unsigned p = 0; p < 3; p++) {
		/* keys come as depth by places */
		const unsigned place_axis = p == 1 ? n - 1 : n - 2, depth_axis = p == 1 ? n - 2 : n - 1;

		if (!count_heads(parts[p], place_axis, depth_axis, &heads[p]))
			return psd_onnx_refuse(onnx, "has heads in an order that is not known");
		views[p] = without_repeats(&parts[p]->view);
		psd_onnx_view_merge(&views[p]);
	}
	for (unsigned p = 1; p < 3; p++)
		if (heads[p].heads != heads[0].heads || heads[p].places != heads[0].places ||
		    heads[p].depth != heads[0].depth || heads[p].groups != heads[1].groups)
			return psd_onnx_refuse(onnx,
					       "attends to other places than its own, or with other heads: not known");
	if (heads[0].groups != heads[0].heads)
		return psd_onnx_refuse(onnx, "has queries that repeat");
	if (heads[0].heads > PSD_LAYER_CHANNELS_MAX)
		return psd_onnx_refuse(onnx, "has too many heads");
	status = make_input(onnx, views, heads, &spec.inputs[0]);
	if (status)
		return status;
	spec.settings.attention = (struct psd_attention_settings){.heads = (uint32_t)heads[0].heads,
								  .kv_heads = (uint32_t)heads[1].groups,
								  .is_causal = attention->is_causal,
								  .rotary_base = attention->rotary_base};
	*result = (struct psd_onnx_value){.kind = PSD_ONNX_DATA, .term = psd_onnx_term_new(onnx)};
	if (!result->term)
		return psd_onnx_no_memory(onnx);
	status = psd_onnx_add(onnx, &spec, NULL, &result->view.layer);
	/* heads x places x depth of what lies heads x depth x places */
	places = heads[0].places;
	stride = heads[0].heads * heads[0].depth * places;
	for (unsigned a = 0; a < n; a++) {
		psd_onnx_view_add_axis(&result->view);
		for (unsigned d = psd_onnx_view_first(&attention->queries.view, a);
		     a < n - 2 && d < attention->queries.view.ends[a]; d++) {
			const struct psd_onnx_digit digit = attention->queries.view.digits[d];
			const bool is_batch = digit.stride == PSD_ONNX_BATCH;

			stride /= is_batch ? 1 : digit.size;
			psd_onnx_view_add_digit(&result->view, digit.size, is_batch ? PSD_ONNX_BATCH : stride);
		}
		if (a == n - 2)
			psd_onnx_view_add_digit(&result->view, places, 1);
		if (a == n - 1)
			psd_onnx_view_add_digit(&result->view, heads[0].depth, places);
	}
	return status;
}

/* ---- all of it in one node ---- */

/* Heads x places x depth of samples x places x (heads x depth), where they are not told apart yet. */
static enum psd_status tell_heads_apart(struct psd_onnx *onnx, struct psd_onnx_value *part, const char *name)
{
	const int64_t heads = psd_onnx_integer(onnx, name, 0);
	uint64_t sides[4] = {1, 1, 1, 1};
	const unsigned order[4] = {0, 2, 1, 3};

	if (part->view.n_axes == 4)
		return PSD_OK;
	if (part->view.n_axes != 3 || heads < 1 || psd_onnx_view_side(&part->view, 2) % (uint64_t)heads)
		return psd_onnx_refuse(onnx, "must have inputs of four axes, or three and '%s' that divide the last",
				       name);
	sides[0] = psd_onnx_view_side(&part->view, 0);
	sides[1] = psd_onnx_view_side(&part->view, 1);
	sides[2] = (uint64_t)heads;
	sides[3] = psd_onnx_view_side(&part->view, 2) / (uint64_t)heads;
	if (!psd_onnx_view_reshape(&part->view, sides, 4) || !psd_onnx_view_transpose(&part->view, order))
		return psd_onnx_refuse(onnx, "has heads in an order that is not known");
	return PSD_OK;
}

enum psd_status psd_onnx_attention(struct psd_onnx *onnx)
{
	struct psd_onnx_value parts[3], scores, *result = psd_onnx_output(onnx, 0), *mask = psd_onnx_input(onnx, 3);
	static const char *const names[3] = {"q_num_heads", "kv_num_heads", "kv_num_heads"};
	const unsigned keys_order[4] = {0, 1, 3, 2}, back[4] = {0, 2, 1, 3};
	const bool is_flat = psd_onnx_input(onnx, 0)->view.n_axes == 3;
	uint64_t sides[3];
	double depth;
	enum psd_status status = PSD_OK;

	for (unsigned p = 0; p < 3 && !status; p++) {
		parts[p] = *psd_onnx_input(onnx, p);
		status = psd_onnx_check_data(onnx, &parts[p]);
		if (!status)
			status = tell_heads_apart(onnx, &parts[p], names[p]);
	}
	if (status)
		return status;
	if (psd_onnx_input(onnx, 4)->kind != PSD_ONNX_ABSENT || psd_onnx_number(onnx, "softcap", 0) != 0)
		return psd_onnx_refuse(onnx, "has a past or a soft cap: not known");
	depth = (double)psd_onnx_view_side(&parts[0].view, 3);
	psd_onnx_view_transpose(&parts[1].view, keys_order);
	status = psd_onnx_begin_scores(onnx, &parts[0], &parts[1], &scores);
	if (!status)
		status = psd_onnx_scale_scores(onnx, &scores, psd_onnx_number(onnx, "scale", 1 / sqrt(depth)), &scores);
	if (!status && mask->kind != PSD_ONNX_ABSENT)
		status = psd_onnx_mask_scores(onnx, &scores, mask, mask->is_real ? PSD_ONNX_ADDS : PSD_ONNX_SEES,
					      &scores);
	if (!status && psd_onnx_integer(onnx, "is_causal", 0))
		status = make_causal(onnx, &scores, &scores);
	if (!status)
		status = psd_onnx_normalize_scores(onnx, &scores, &scores);
	if (!status)
		status = psd_onnx_end_scores(onnx, &scores, &parts[2], result);
	if (status || !is_flat)
		return status;
	sides[0] = psd_onnx_view_side(&result->view, 0);
	sides[1] = psd_onnx_view_side(&result->view, 2);
	sides[2] = psd_onnx_view_side(&result->view, 1) * psd_onnx_view_side(&result->view, 3);
	if (!psd_onnx_view_transpose(&result->view, back) || !psd_onnx_view_reshape(&result->view, sides, 3))
		return psd_onnx_refuse(onnx, "has heads in an order that is not known");
	return PSD_OK;
}
