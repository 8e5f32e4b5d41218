/* Kernel bodies of layers with windows: local response normalisation, pooling, interpolation. Also softmax over
 * channels. kernels.h describes their arguments. */
#ifndef PSD_REAL_GPU_BODIES_NEIGHBOURS_H
#define PSD_REAL_GPU_BODIES_NEIGHBOURS_H

#include "real/device/gpu/values.h"

/* ---- local response normalisation ---- */

/* Neighbours of an element: all elements whose channel, row and column are from low[axis] to high[axis] - 1, where axis
 * 0 is the channel, 1 the row and 2 the column. */
struct psd_neighbours {
	uint32_t low[3], high[3];
};

PSD_BODY void psd_reach(uint32_t centre, uint32_t half, uint32_t side, uint32_t *low, uint32_t *high)
{
	*low = centre > half ? centre - half : 0;
	*high = side - centre > half ? centre + half + 1 : side;
}

PSD_BODY struct psd_neighbours psd_neighbours_of(struct psd_gpu_maps maps, struct psd_spot position, uint32_t size,
						 bool is_within_channel)
{
	const uint32_t half = (size - 1) / 2, positions = is_within_channel ? half : 0;
	struct psd_neighbours around;

	psd_reach(position.channel, is_within_channel ? 0 : half, maps.channels, &around.low[0], &around.high[0]);
	psd_reach(position.row, positions, maps.height, &around.low[1], &around.high[1]);
	psd_reach(position.column, positions, maps.width, &around.low[2], &around.high[2]);
	return around;
}

PSD_BODY void psd_lrn_at(uint64_t i, const struct psd_gpu_lrn *of)
{
	const struct psd_spot here = psd_spot_of(of->maps, (uint32_t)i);
	const struct psd_neighbours around = psd_neighbours_of(of->maps, here, of->size, of->is_within_channel);
	struct psd_spot at = here;
	float sum = 0.0f;

	for (at.channel = around.low[0]; at.channel < around.high[0]; at.channel++)
		for (at.row = around.low[1]; at.row < around.high[1]; at.row++)
			for (at.column = around.low[2]; at.column < around.high[2]; at.column++) {
				const float value = psd_get(of->from, psd_at(of->maps, at));

				sum += value * value;
			}
	of->ratios[i] = of->k + of->alpha * sum;
	psd_put(of->to, i, psd_get(of->from, i) * powf(of->ratios[i], -of->beta));
}

/* Computes the gradient of one input value of local response normalisation. If a is a neighbour of b, then b is a
 * neighbour of a. So the outputs that depend on the value are exactly those of its neighbours. */
PSD_BODY void psd_lrn_back_at(uint64_t i, const struct psd_gpu_lrn_back *of)
{
	const struct psd_gpu_lrn *lrn = &of->lrn;
	const struct psd_spot here = psd_spot_of(lrn->maps, (uint32_t)i);
	const struct psd_neighbours around = psd_neighbours_of(lrn->maps, here, lrn->size, lrn->is_within_channel);
	struct psd_spot at = here;
	float sum = 0.0f;

	for (at.channel = around.low[0]; at.channel < around.high[0]; at.channel++)
		for (at.row = around.low[1]; at.row < around.high[1]; at.row++)
			for (at.column = around.low[2]; at.column < around.high[2]; at.column++) {
				const uint32_t j = psd_at(lrn->maps, at);

				sum += psd_get(of->diff, j) * psd_get(lrn->to, j) / lrn->ratios[j];
			}
	psd_give(of->to, i,
		 psd_get(of->diff, i) * powf(lrn->ratios[i], -lrn->beta) -
			 2.0f * lrn->alpha * lrn->beta * psd_get(lrn->from, i) * sum,
		 of->adds);
}

/* ---- pooling ---- */

/* Rows (or columns) of the input that a window covers: low to high - 1. length: number of rows (or columns) of the
 * window, including padding. */
struct psd_reach {
	uint32_t low, high, length;
};

PSD_BODY struct psd_reach psd_window_reach(uint32_t position, uint32_t stride, uint32_t kernel, uint32_t pad,
					   uint32_t side)
{
	/* First row (or column) of the window, counted from the beginning of the padding. */
	const uint32_t first = position * stride;
	const uint32_t last = first + kernel < side + 2 * pad ? first + kernel : side + 2 * pad;
	struct psd_reach reach;

	reach.length = last - first;
	reach.low = first > pad ? first - pad : 0;
	reach.high = last > pad ? last - pad : 0;
	if (reach.high > side)
		reach.high = side;
	return reach;
}

PSD_BODY struct psd_reach psd_rows_of(const struct psd_gpu_window *window, uint32_t row)
{
	return psd_window_reach(row, window->stride_height, window->kernel_height, window->pad_height,
				window->in.height);
}

PSD_BODY struct psd_reach psd_columns_of(const struct psd_gpu_window *window, uint32_t column)
{
	return psd_window_reach(column, window->stride_width, window->kernel_width, window->pad_width,
				window->in.width);
}

/* Computes n adjacent elements (1 or 4) of the output of pooling, the first at index i. If n is 4, they are four
 * channels of one position. */
PSD_BODY void psd_pool_from(uint64_t i, const struct psd_gpu_pool *of, int n)
{
	const struct psd_gpu_window *window = &of->window;
	struct psd_spot at = psd_spot_of(window->out, (uint32_t)i);
	const struct psd_reach rows = psd_rows_of(window, at.row), columns = psd_columns_of(window, at.column);
	const uint32_t first = rows.low * window->in.width + columns.low;
	uint32_t positions[4] = {first, first, first, first};
	struct psd_lanes sum = {{0.0f, 0.0f, 0.0f, 0.0f}}, largest = {{-INFINITY, -INFINITY, -INFINITY, -INFINITY}};

	for (at.row = rows.low; at.row < rows.high; at.row++)
		for (at.column = columns.low; at.column < columns.high; at.column++) {
			const struct psd_lanes values = psd_get_lanes(of->from, psd_at(window->in, at), n);

			for (int k = 0; k < n; k++) {
				sum.of[k] += values.of[k];
				if (values.of[k] > largest.of[k]) {
					largest.of[k] = values.of[k];
					positions[k] = at.row * window->in.width + at.column;
				}
			}
		}
	for (int k = 0; k < n; k++)
		if (window->is_max)
			of->positions[i + (uint64_t)k] = positions[k];
		else
			largest.of[k] = sum.of[k] / (float)(rows.length * columns.length);
	psd_put_lanes(of->to, i, largest, n);
}
PSD_BODIES(pool)

/* Returns the windows that contain a row (or column) of the input: those with numbers low to high - 1. */
PSD_BODY struct psd_reach psd_windows_over(uint32_t position, uint32_t stride, uint32_t kernel, uint32_t pad,
					   uint32_t n_windows)
{
	const uint32_t padded = position + pad;
	struct psd_reach reach;

	reach.length = 0;
	reach.low = padded >= kernel ? (padded - kernel) / stride + 1 : 0;
	reach.high = padded / stride + 1 < n_windows ? padded / stride + 1 : n_windows;
	return reach;
}

PSD_BODY float psd_window_size(const struct psd_gpu_window *window, struct psd_spot output)
{
	return (float)(psd_rows_of(window, output.row).length * psd_columns_of(window, output.column).length);
}

PSD_BODY void psd_pool_back_from(uint64_t i, const struct psd_gpu_pool_back *of, int n)
{
	const struct psd_gpu_window *window = &of->window;
	const struct psd_spot here = psd_spot_of(window->in, (uint32_t)i);
	const struct psd_reach rows = psd_windows_over(here.row, window->stride_height, window->kernel_height,
						       window->pad_height, window->out.height);
	const struct psd_reach columns = psd_windows_over(here.column, window->stride_width, window->kernel_width,
							  window->pad_width, window->out.width);
	const uint32_t position = here.row * window->in.width + here.column;
	const uint32_t apart = window->out.is_channels_last ? window->out.channels : 1;
	struct psd_spot at = here;
	struct psd_lanes sum = {{0.0f, 0.0f, 0.0f, 0.0f}};

	for (at.row = rows.low; at.row < rows.high; at.row++) {
		uint32_t output;

		at.column = columns.low;
		output = psd_at(window->out, at);
		for (; at.column < columns.high; at.column++, output += apart) {
			uint32_t positions[4] = {position, position, position, position};
			struct psd_lanes diff;

			if (window->is_max)
				psd_get_positions(positions, of->positions, output, n);
			diff = psd_get_lanes(of->diff, output, n);
			for (int k = 0; k < n; k++)
				if (positions[k] == position)
					sum.of[k] +=
						window->is_max ? diff.of[k] : diff.of[k] / psd_window_size(window, at);
		}
	}
	psd_give_lanes(of->to, i, sum, n, of->adds);
}
PSD_BODIES(pool_back)

/* ---- maps of another size ---- */

/* The two rows (or columns) of the input from which a row (or column) of the output is interpolated. nearness: weight
 * of the second one; the first one has the weight 1 - nearness. */
struct psd_between {
	uint32_t first, second;
	float nearness;
};

PSD_BODY struct psd_between psd_between_of(uint32_t position, uint32_t side, uint32_t new_side)
{
	const uint64_t steps = new_side > 1 ? new_side - 1 : 1, way = (uint64_t)position * (side - 1);
	struct psd_between between;

	between.first = (uint32_t)(way / steps);
	between.second = between.first + 1 < side ? between.first + 1 : between.first;
	between.nearness = (float)((double)(way % steps) / (double)steps);
	return between;
}

PSD_BODY float psd_mix(float first, float second, float nearness)
{
	return first + nearness * (second - first);
}

PSD_BODY void psd_resize_at(uint64_t i, const struct psd_gpu_resize *of)
{
	const struct psd_spot here = psd_spot_of(of->out, (uint32_t)i);
	const struct psd_between row = psd_between_of(here.row, of->in.height, of->out.height);
	const struct psd_between column = psd_between_of(here.column, of->in.width, of->out.width);
	struct psd_spot at = here;
	float rows[2];

	for (int second = 0; second < 2; second++) {
		float left;

		at.row = second ? row.second : row.first;
		at.column = column.first;
		left = psd_get(of->from, psd_at(of->in, at));
		at.column = column.second;
		rows[second] = psd_mix(left, psd_get(of->from, psd_at(of->in, at)), column.nearness);
	}
	psd_put(of->to, i, psd_mix(rows[0], rows[1], row.nearness));
}

/* Returns the rows (or columns) of the output that may be interpolated from this row (or column) of the input: low to
 * high - 1. */
PSD_BODY struct psd_reach psd_outputs_around(uint32_t position, uint32_t side, uint32_t new_side)
{
	const uint64_t steps = side > 1 ? side - 1 : 1;
	const uint64_t high = (position + UINT64_C(1)) * (new_side - 1) / steps + 1;
	struct psd_reach reach;

	reach.length = 0;
	reach.low = position ? (uint32_t)((position - UINT64_C(1)) * (new_side - 1) / steps) : 0;
	reach.high = side > 1 && high < new_side ? (uint32_t)high : new_side;
	return reach;
}

/* Returns the interpolation weight that a row (or column) of the input has in a row (or column) of the output. */
PSD_BODY float psd_taken(uint32_t new_place, uint32_t position, uint32_t side, uint32_t new_side)
{
	const struct psd_between between = psd_between_of(new_place, side, new_side);

	return (between.first == position ? 1.0f - between.nearness : 0.0f) +
	       (between.second == position ? between.nearness : 0.0f);
}

PSD_BODY void psd_resize_back_at(uint64_t i, const struct psd_gpu_resize_back *of)
{
	const struct psd_spot here = psd_spot_of(of->in, (uint32_t)i);
	const struct psd_reach rows = psd_outputs_around(here.row, of->in.height, of->out.height);
	const struct psd_reach columns = psd_outputs_around(here.column, of->in.width, of->out.width);
	struct psd_spot at = here;
	float sum = 0.0f;

	for (at.row = rows.low; at.row < rows.high; at.row++) {
		const float of_row = psd_taken(at.row, here.row, of->in.height, of->out.height);

		for (at.column = columns.low; at.column < columns.high; at.column++)
			sum += psd_get(of->diff, psd_at(of->out, at)) * of_row *
			       psd_taken(at.column, here.column, of->in.width, of->out.width);
	}
	psd_give(of->to, i, sum, of->adds);
}

/* ---- softmax of the channels ---- */

/* Returns the element in channel 0 of position number i. Positions are numbered through all samples. */
PSD_BODY struct psd_spot psd_place_of(struct psd_gpu_maps maps, uint32_t i)
{
	struct psd_spot at;

	at.channel = 0;
	at.column = i % maps.width;
	i /= maps.width;
	at.row = i % maps.height;
	at.sample = i / maps.height;
	return at;
}

PSD_BODY void psd_softmax_at(uint64_t i, const struct psd_gpu_softmax *of)
{
	struct psd_spot at = psd_place_of(of->maps, (uint32_t)i);
	float largest = -INFINITY, sum = 0.0f;

	for (at.channel = 0; at.channel < of->maps.channels; at.channel++)
		largest = fmaxf(largest, psd_get(of->from, psd_at(of->maps, at)));
	for (at.channel = 0; at.channel < of->maps.channels; at.channel++)
		sum += expf(psd_get(of->from, psd_at(of->maps, at)) - largest);
	for (at.channel = 0; at.channel < of->maps.channels; at.channel++) {
		const uint32_t j = psd_at(of->maps, at);

		psd_put(of->to, j, expf(psd_get(of->from, j) - largest) / sum);
	}
}

PSD_BODY void psd_softmax_back_at(uint64_t i, const struct psd_gpu_softmax_back *of)
{
	struct psd_spot at = psd_place_of(of->maps, (uint32_t)i);
	float sum = 0.0f;

	for (at.channel = 0; at.channel < of->maps.channels; at.channel++) {
		const uint32_t j = psd_at(of->maps, at);

		sum += psd_get(of->result, j) * psd_get(of->diff, j);
	}
	for (at.channel = 0; at.channel < of->maps.channels; at.channel++) {
		const uint32_t j = psd_at(of->maps, at);

		psd_give(of->to, j, psd_get(of->result, j) * (psd_get(of->diff, j) - sum), of->adds);
	}
}

#endif
