/* Shapes and work of operators that select by value, or that sample regions, for predictions. Where the size of an
 * output depends on values, the largest size counts, and the reader says so. Refuses outputs of which no size is
 * known. */
#include <string.h>

#include "engine/base/saturate.h"
#include "engine/model/layer.h"
#include "engine/model/onnx/other.h"

/* FLOPs of one value between four neighbours: two interpolations along one axis and one along the other, 3 each. */
enum { SAMPLE_FLOPS = 9 };

/* All values, with those of the batch. */
static uint64_t elements(const struct psd_onnx_value *value)
{
	uint64_t all = 1;

	for (unsigned a = 0; a < psd_onnx_axes_of(value); a++)
		all = psd_saturated_mul(all, psd_onnx_dim_of(value, a));
	return all;
}

/* True if each sample has values of its own, of which a size for all samples says nothing. */
static bool has_samples(const struct psd_onnx_value *value)
{
	for (unsigned a = 0; value->kind == PSD_ONNX_DATA && a < value->view.n_axes; a++)
		if (psd_onnx_view_has_batch(&value->view, a) && psd_onnx_dim_of(value, a) > 1)
			return true;
	return false;
}

static void note_bound(struct psd_onnx *onnx)
{
	if (!onnx->n_bounds++)
		onnx->first_bound = onnx->node;
}

/* Reads a constant input of whole numbers. False: it is not constant, or has another number of them. */
static bool read_numbers(struct psd_onnx *onnx, unsigned i, int64_t numbers[], unsigned n)
{
	unsigned found = 0;

	return !psd_onnx_integers(onnx, "", i, numbers, n, &found) && found == n;
}

static bool is_size(int64_t number)
{
	return number >= 1 && number <= PSD_LAYER_CHANNELS_MAX;
}

bool psd_onnx_out_non_zero(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *data = psd_onnx_input(onnx, 0);

	out->has_parameters = false;
	if (has_samples(data))
		return false;
	note_bound(onnx);
	return psd_onnx_out_add(out, psd_onnx_axes_of(data) ? psd_onnx_axes_of(data) : 1) &&
	       psd_onnx_out_add(out, elements(data));
}

/* Values that a condition chooses, or that differ from each other. */
bool psd_onnx_out_chosen(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *data = psd_onnx_input(onnx, 0);

	out->has_parameters = false;
	if (has_samples(data))
		return false;
	note_bound(onnx);
	if (!psd_onnx_attribute(onnx->node, "axis"))
		return psd_onnx_out_add(out, elements(data));
	for (unsigned a = 0; a < psd_onnx_axes_of(data); a++)
		if (!psd_onnx_out_add_axis(out, data, a))
			return false;
	return true;
}

/* Boxes [batch, n, 4] and scores [batch, classes, n]: the best boxes of each class, up to a number. Each box is
 * compared with those that stay, 16 FLOPs a pair. */
bool psd_onnx_out_suppression(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *boxes = psd_onnx_input(onnx, 0), *scores = psd_onnx_input(onnx, 1);
	int64_t most[1] = {0};
	uint64_t n, classes;

	out->has_parameters = false;
	if (psd_onnx_axes_of(boxes) != 3 || psd_onnx_axes_of(scores) != 3 || has_samples(boxes) ||
	    has_samples(scores) ||
	    (psd_onnx_input(onnx, 2)->kind != PSD_ONNX_ABSENT && !read_numbers(onnx, 2, most, 1)))
		return false;
	n = psd_onnx_dim_of(boxes, 1);
	classes = psd_onnx_dim_of(scores, 0) * psd_onnx_dim_of(scores, 1);
	n = most[0] > 0 && (uint64_t)most[0] < n ? (uint64_t)most[0] : n;
	note_bound(onnx);
	out->flops = psd_saturated_mul(16 * classes, psd_saturated_mul(n, psd_onnx_dim_of(boxes, 1)));
	return psd_onnx_out_add(out, psd_saturated_mul(n, classes)) && psd_onnx_out_add(out, 3);
}

/* Maps of one size from regions of maps: regions, channels, height, width. */
bool psd_onnx_out_regions(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *maps = psd_onnx_input(onnx, 0), *regions = psd_onnx_input(onnx, 1);
	const bool is_align = !strcmp(onnx->node->op_type, "RoiAlign");
	const int64_t ratio = psd_onnx_integer(onnx, "sampling_ratio", 0);
	int64_t sides[2] = {psd_onnx_integer(onnx, "output_height", 1), psd_onnx_integer(onnx, "output_width", 1)};
	const uint64_t samples = ratio > 0 && ratio < 64 ? (uint64_t)(ratio * ratio) : 4;
	unsigned n = 2;

	out->is_map = true;
	out->has_parameters = false;
	if (psd_onnx_axes_of(maps) != 4 || psd_onnx_axes_of(regions) != 2 || has_samples(maps) ||
	    (!is_align && (psd_onnx_integers(onnx, "pooled_shape", 0, sides, 2, &n) || n != 2)) || !is_size(sides[0]) ||
	    !is_size(sides[1]) || !psd_onnx_out_add_axis(out, regions, 0) || !psd_onnx_out_add_axis(out, maps, 1) ||
	    !psd_onnx_out_add(out, (uint64_t)sides[0]) || !psd_onnx_out_add(out, (uint64_t)sides[1]))
		return false;
	out->flops = psd_saturated_mul(SAMPLE_FLOPS * samples, psd_onnx_out_values(out));
	return true;
}

/* Maps and, for each position of the output, a place in them. */
bool psd_onnx_out_grid(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *maps = psd_onnx_input(onnx, 0), *grid = psd_onnx_input(onnx, 1);
	const unsigned n = psd_onnx_axes_of(maps);

	out->is_map = true;
	out->has_parameters = false;
	if (n < 3 || psd_onnx_axes_of(grid) != n || !psd_onnx_out_add_axis(out, maps, 0) ||
	    !psd_onnx_out_add_axis(out, maps, 1))
		return false;
	for (unsigned a = 1; a + 1 < n; a++)
		if (!psd_onnx_out_add(out, psd_onnx_dim_of(grid, a)))
			return false;
	out->flops = psd_saturated_mul(SAMPLE_FLOPS, psd_onnx_out_values(out));
	return true;
}

/* Columns of blocks become a map again: [samples, channels x block, blocks]. */
bool psd_onnx_out_columns(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	int64_t sides[2], block[2];

	out->is_map = true;
	out->has_parameters = false;
	if (psd_onnx_axes_of(data) != 3 || !read_numbers(onnx, 1, sides, 2) || !read_numbers(onnx, 2, block, 2) ||
	    !is_size(sides[0]) || !is_size(sides[1]) || !is_size(block[0]) || !is_size(block[1]))
		return false;
	const uint64_t values = (uint64_t)block[0] * (uint64_t)block[1];
	out->flops = psd_saturated_mul(psd_onnx_dim_of(data, 1), psd_onnx_dim_of(data, 2));
	return psd_onnx_dim_of(data, 1) % values == 0 && psd_onnx_out_add_axis(out, data, 0) &&
	       psd_onnx_out_add(out, psd_onnx_dim_of(data, 1) / values) && psd_onnx_out_add(out, (uint64_t)sides[0]) &&
	       psd_onnx_out_add(out, (uint64_t)sides[1]);
}

/* A further axis, in which one position has another value. */
bool psd_onnx_out_one_hot(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *indices = psd_onnx_input(onnx, 0);
	int64_t depth[1];
	unsigned axis;

	out->has_parameters = false;
	if (!read_numbers(onnx, 1, depth, 1) || !is_size(depth[0]) ||
	    psd_onnx_axis(onnx, psd_onnx_integer(onnx, "axis", -1), psd_onnx_axes_of(indices) + 1, &axis))
		return false;
	for (unsigned a = 0; a <= psd_onnx_axes_of(indices); a++)
		if (a == axis ? !psd_onnx_out_add(out, (uint64_t)depth[0])
			      : !psd_onnx_out_add_axis(out, indices, a - (a > axis)))
			return false;
	return true;
}
