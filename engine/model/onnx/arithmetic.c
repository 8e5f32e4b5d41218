/* Sums, products, comparisons and choices that are not elementwise functions of one input: of data with data, with
 * parameters, with random masks, and of attention's scores. */
#include <string.h>

#include "engine/model/layer.h"
#include "engine/model/onnx/parts.h"

/* ---- two inputs ---- */

static enum psd_status put_join(struct psd_onnx *onnx, const struct psd_layer_kind *kind,
				const struct psd_onnx_value *one, const struct psd_onnx_value *other)
{
	struct psd_layer_spec spec = {.kind = kind,
				      .settings = kind->defaults,
				      .n_inputs = 2,
				      .inputs = {one->view.layer, other->view.layer}};
	struct psd_onnx_value result = *one;

	PSD_TRY(psd_onnx_add(onnx, &spec, NULL, &result.view.layer));
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

/* Finds the only axis along which the factor has the data's positions; its other axes have size 1. False: the factor
 * has another shape. */
static bool find_factor_axis(const struct psd_onnx_view *data, const struct psd_onnx_view *factor, unsigned *axis)
{
	unsigned n = 0;

	if (data->n_axes != factor->n_axes)
		return false;
	for (unsigned a = 0; a < data->n_axes; a++) {
		const uint64_t dim = psd_onnx_view_dim(factor, a);

		if (dim == 1 || psd_onnx_view_has_batch(factor, a))
			continue;
		if (dim != psd_onnx_view_dim(data, a))
			return false;
		*axis = a;
		n++;
	}
	return n == 1;
}

/* Multiplies the map of each channel by a factor. */
static enum psd_status scale_maps(struct psd_onnx *onnx, struct psd_onnx_value *data, struct psd_onnx_value *factor,
				  unsigned axis)
{
	PSD_TRY(psd_onnx_channels_first(onnx, data, axis));
	PSD_TRY(psd_onnx_channels_first(onnx, factor, axis));
	return put_join(onnx, &psd_layer_multiply, data, factor);
}

static enum psd_status join_data(struct psd_onnx *onnx, struct psd_onnx_value *one, struct psd_onnx_value *other)
{
	const char *op = onnx->node->op_type;
	const bool is_product = !strcmp(op, "Mul") || !strcmp(op, "Div");
	struct psd_onnx_value changed = *other;
	bool do_match;
	unsigned axis;

	if (!strcmp(op, "Sub") || !strcmp(op, "Div"))
		PSD_TRY(psd_onnx_invert(onnx, &changed, is_product));
	PSD_TRY(psd_onnx_materialize(onnx, one));
	PSD_TRY(psd_onnx_materialize(onnx, &changed));
	if (!strcmp(op, "Add") || !strcmp(op, "Mul"))
		*other = changed;
	PSD_TRY(psd_onnx_match(onnx, &one->view, &changed.view, &do_match));
	if (do_match)
		return put_join(onnx, is_product ? &psd_layer_multiply : &psd_layer_add, one, &changed);
	if (is_product && find_factor_axis(&one->view, &changed.view, &axis))
		return scale_maps(onnx, one, &changed, axis);
	if (!strcmp(op, "Mul") && find_factor_axis(&changed.view, &one->view, &axis))
		return scale_maps(onnx, &changed, one, axis);
	return psd_onnx_refuse_shapes(onnx, "must be equal, or one must have a factor for each map of the other");
}

/* ---- randomness ---- */

enum psd_status psd_onnx_noise(struct psd_onnx *onnx)
{
	const struct psd_onnx_value *like = psd_onnx_input(onnx, 0);
	struct psd_onnx_value result = {.kind = PSD_ONNX_NOISE};
	int64_t dims[PSD_ONNX_AXES_MAX];
	unsigned n;

	PSD_TRY(psd_onnx_integers(onnx, "shape", 0, dims, PSD_ONNX_AXES_MAX, &n));
	if (like->kind == PSD_ONNX_CONSTANT)
		result = (struct psd_onnx_value){.kind = PSD_ONNX_NOISE, .n_dims = like->n_dims};
	for (unsigned d = 0; d < result.n_dims; d++)
		result.dims[d] = like->dims[d];
	if (like->kind == PSD_ONNX_DATA) {
		result.n_dims = like->view.n_axes;
		for (unsigned a = 0; a < like->view.n_axes; a++)
			result.dims[a] = psd_onnx_view_dim(&like->view, a);
	}
	for (unsigned d = 0; like->kind == PSD_ONNX_ABSENT && d < n; d++)
		result.dims[result.n_dims++] = dims[d] > 0 ? (uint64_t)dims[d] : 1;
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

/* Finds the share that a mask keeps: the noise is compared with it, or it is added before rounding down. */
static enum psd_status change_noise(struct psd_onnx *onnx, const struct psd_onnx_value *random,
				    struct psd_onnx_value *other)
{
	const char *op = onnx->node->op_type;
	struct psd_onnx_value result = *random;
	double number = 0;

	if (other->kind != PSD_ONNX_ABSENT && !psd_onnx_is_scalar(onnx, other, &number))
		return psd_onnx_refuse(onnx, "changes a random mask, must compare it with a number");
	if (!strcmp(op, "Less") || !strcmp(op, "LessOrEqual") || !strcmp(op, "Add"))
		result.keep_ratio = number;
	else if (!strcmp(op, "Greater") || !strcmp(op, "GreaterOrEqual"))
		result.keep_ratio = 1 - number;
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

static enum psd_status put_dropout(struct psd_onnx *onnx, struct psd_onnx_value *data, double ratio)
{
	PSD_TRY(psd_onnx_materialize(onnx, data));
	if (!(ratio >= 0 && ratio < 1))
		return psd_onnx_refuse(onnx, "drops %g, must be 0 to less than 1", ratio);
	PSD_TRY(psd_onnx_make_whole(onnx, &data->view));
	if (ratio == 0) {
		*psd_onnx_output(onnx, 0) = *data;
		return PSD_OK;
	}
	return psd_onnx_put_layer(onnx, data, &psd_layer_dropout, &(union psd_layer_settings){.dropout.ratio = ratio},
				  NULL);
}

/* A mask with a number for each value is dropout; one with a number for each sample (stochastic depth) is ignored. */
static enum psd_status mask_data(struct psd_onnx *onnx, struct psd_onnx_value *data,
				 const struct psd_onnx_value *random)
{
	const uint64_t n = psd_onnx_elements(random);
	uint64_t values = 1, samples = 1;

	for (unsigned a = 0; a < data->view.n_axes; a++) {
		values *= psd_onnx_view_dim(&data->view, a);
		samples *= psd_onnx_view_has_batch(&data->view, a) ? psd_onnx_view_dim(&data->view, a) : 1;
	}
	if (n == values && random->keep_ratio > 0)
		return put_dropout(onnx, data, 1 - random->keep_ratio);
	if (random->keep_ratio <= 0)
		return psd_onnx_refuse(onnx, "multiplies by random numbers, must be the mask of dropout");
	if (n != samples)
		return psd_onnx_refuse(onnx, "drops groups of values, must drop single values or whole samples");
	*psd_onnx_output(onnx, 0) = *data;
	return PSD_OK;
}

enum psd_status psd_onnx_dropout(struct psd_onnx *onnx)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	double ratio = psd_onnx_number(onnx, "ratio", 0.5);

	if (data->kind == PSD_ONNX_SCORES) {
		*psd_onnx_output(onnx, 0) = *data;
		return PSD_OK;
	}
	PSD_TRY(psd_onnx_check_data(onnx, data));
	(void)psd_onnx_is_scalar(onnx, psd_onnx_input(onnx, 1), &ratio);
	return put_dropout(onnx, data, ratio);
}

/* ---- arithmetic ---- */

/* The error depends on the inputs. */
static enum psd_status refuse_inputs(const struct psd_onnx *onnx, const struct psd_onnx_value *data,
				     const struct psd_onnx_value *other)
{
	if (data->kind == PSD_ONNX_SCORES)
		return psd_onnx_refuse(onnx, "changes attention's scores, must apply a mask or a factor");
	if (data->kind == PSD_ONNX_DATA && psd_onnx_is_learned(other))
		return psd_onnx_refuse(onnx, "combines samples with values of the file, must add or multiply them: "
					     "normalise samples outside of the network");
	if (data->kind == PSD_ONNX_DATA && other->kind == PSD_ONNX_CONSTANT)
		return psd_onnx_refuse(
			onnx,
			"combines samples with several computed numbers, must be a single one or values of the file");
	if (other->kind == PSD_ONNX_NOISE)
		return psd_onnx_refuse(onnx, "combines samples with random numbers, must be the mask of dropout");
	return psd_onnx_refuse(onnx, "must have two inputs, and samples as one of them");
}

enum psd_status psd_onnx_arithmetic(struct psd_onnx *onnx)
{
	struct psd_onnx_value *left = psd_onnx_input(onnx, 0), *right = psd_onnx_input(onnx, 1);
	const char *op = onnx->node->op_type;
	const bool is_factor = !strcmp(op, "Mul");
	struct psd_onnx_value *data = left->kind == PSD_ONNX_DATA || left->kind == PSD_ONNX_SCORES ? left : right;
	struct psd_onnx_value *other = data == left ? right : left;
	double number;
	bool is_done = false;

	if (is_factor && data->kind == PSD_ONNX_DATA && other->kind == PSD_ONNX_CONSTANT) {
		const enum psd_status status = psd_onnx_match_rotation(onnx, &is_done);

		if (status || is_done)
			return status;
	}
	if (left->kind == PSD_ONNX_NOISE && right->kind != PSD_ONNX_DATA)
		return change_noise(onnx, left, right);
	if (right->kind == PSD_ONNX_NOISE && left->kind != PSD_ONNX_DATA)
		return change_noise(onnx, right, left);
	if (data->kind == PSD_ONNX_DATA && other->kind == PSD_ONNX_NOISE && is_factor)
		return mask_data(onnx, data, other);
	if (data->kind == PSD_ONNX_DATA && other->kind == PSD_ONNX_DATA)
		return join_data(onnx, left, right);
	if (data->kind == PSD_ONNX_DATA && psd_onnx_is_learned(other) && (is_factor || !strcmp(op, "Add")))
		return psd_onnx_affine(onnx, data, other, is_factor);
	if (data->kind == PSD_ONNX_SCORES && !strcmp(op, "Add"))
		return psd_onnx_mask_scores(onnx, data, other, PSD_ONNX_MASK_ADDS, psd_onnx_output(onnx, 0));
	if (data->kind == PSD_ONNX_SCORES && psd_onnx_is_scalar(onnx, other, &number) && is_factor)
		return psd_onnx_scale_scores(onnx, data, number, psd_onnx_output(onnx, 0));
	if (data == left && data->kind == PSD_ONNX_SCORES && psd_onnx_is_scalar(onnx, other, &number) &&
	    !strcmp(op, "Div"))
		return psd_onnx_scale_scores(onnx, data, 1 / number, psd_onnx_output(onnx, 0));
	return refuse_inputs(onnx, data, other);
}

enum psd_status psd_onnx_compare(struct psd_onnx *onnx)
{
	const struct psd_onnx_value *data = psd_onnx_input(onnx, 0);

	if (data->kind == PSD_ONNX_NOISE || psd_onnx_input(onnx, 1)->kind == PSD_ONNX_NOISE)
		return psd_onnx_arithmetic(onnx);
	if (strcmp(onnx->node->op_type, "IsNaN") != 0)
		return psd_onnx_refuse(onnx, "compares samples, which no layer can do");
	*psd_onnx_output(onnx, 0) = (struct psd_onnx_value){.kind = PSD_ONNX_FALSE};
	return PSD_OK;
}

enum psd_status psd_onnx_where(struct psd_onnx *onnx)
{
	struct psd_onnx_value *condition = psd_onnx_input(onnx, 0), *yes = psd_onnx_input(onnx, 1);
	struct psd_onnx_value *no = psd_onnx_input(onnx, 2);
	double number;

	if (condition->kind == PSD_ONNX_FALSE) {
		*psd_onnx_output(onnx, 0) = *no;
		return PSD_OK;
	}
	if (yes->kind == PSD_ONNX_SCORES && psd_onnx_is_scalar(onnx, no, &number) && number < -1e4)
		return psd_onnx_mask_scores(onnx, yes, condition, PSD_ONNX_MASK_SHOWS, psd_onnx_output(onnx, 0));
	if (no->kind == PSD_ONNX_SCORES && psd_onnx_is_scalar(onnx, yes, &number) && number < -1e4)
		return psd_onnx_mask_scores(onnx, no, condition, PSD_ONNX_MASK_HIDES, psd_onnx_output(onnx, 0));
	return psd_onnx_refuse(onnx, "chooses between samples, which no layer can do");
}
