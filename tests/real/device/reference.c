/* See reference.h. All arrays are (batch, channels, height, width). */
#include "tests/real/device/reference.h"

#include <math.h>
#include <stdlib.h>

#include "real/device/cpu/cpu.h"

struct map {
	struct psd_shape shape;
	double *values;
	/* channels that the element whose gradient is computed reaches: from the first, behind the last */
	uint32_t first, behind;
};

struct pass {
	const struct psd_graph *graph;
	const struct psd_network_options *options;
	const struct psd_batch *batch;
	double *const *parameters;
	struct map *maps; /* per layer */
	double loss;
};

static size_t size_of(struct psd_shape shape)
{
	return (size_t)shape.channels * shape.height * shape.width;
}

static double *at(const struct map *map, uint32_t sample, uint32_t channel, uint32_t row, uint32_t column)
{
	const struct psd_shape shape = map->shape;

	return &map->values[((sample * (size_t)shape.channels + channel) * shape.height + row) * shape.width + column];
}

/* The value there, and 0 in the padding. */
static double padded(const struct map *map, uint32_t sample, uint32_t channel, int64_t row, int64_t column)
{
	if (row < 0 || column < 0 || row >= map->shape.height || column >= map->shape.width)
		return 0;
	return *at(map, sample, channel, (uint32_t)row, (uint32_t)column);
}

static double convolve_at(const struct pass *pass, const struct psd_layer *layer, uint32_t sample, uint32_t output,
			  uint32_t row, uint32_t column)
{
	const struct map *in = &pass->maps[layer->inputs[0]];
	const struct psd_conv_settings *conv = &layer->settings.conv;
	const struct psd_window *w = &conv->window;
	const uint32_t inputs = in->shape.channels / conv->groups;
	const uint32_t first = output / (conv->outputs / conv->groups) * inputs;
	const int64_t top = (int64_t)row * w->stride.height - w->pad.height, height = in->shape.height,
		      left = (int64_t)column * w->stride.width - w->pad.width, width = in->shape.width,
		      right = left + (int64_t)w->kernel.width * w->dilation.width, step = w->dilation.width;
	const double *weight =
		pass->parameters[layer->first_tensor] + (size_t)output * inputs * w->kernel.height * w->kernel.width;
	double sum = conv->has_bias ? pass->parameters[layer->first_tensor + 1][output] : 0;

	for (uint32_t c = first; c < first + inputs; c++)
		for (int64_t k = 0, y = top; k < w->kernel.height; k++, y += w->dilation.height) {
			const double *values = y >= 0 && y < height ? at(in, sample, c, (uint32_t)y, 0) : NULL;

			for (int64_t x = left; x < right; x += step, weight++)
				if (values && x >= 0 && x < width)
					sum += *weight * values[x];
		}
	return sum;
}

/* The value at a place of the stretched input, between whose values there are stride - 1 zeros. */
static double stretched(const struct map *map, uint32_t sample, uint32_t channel, int64_t row, int64_t column,
			struct psd_sides stride)
{
	if (row < 0 || column < 0 || row % stride.height || column % stride.width)
		return 0;
	return padded(map, sample, channel, row / stride.height, column / stride.width);
}

static double deconvolve_at(const struct pass *pass, const struct psd_layer *layer, uint32_t sample, uint32_t output,
			    uint32_t row, uint32_t column)
{
	const struct map *in = &pass->maps[layer->inputs[0]];
	const struct psd_conv_settings *conv = &layer->settings.conv;
	const struct psd_window *w = &conv->window;
	const uint32_t inputs = in->shape.channels / conv->groups, outputs = conv->outputs / conv->groups;
	const size_t places = (size_t)w->kernel.height * w->kernel.width;
	double sum = conv->has_bias ? pass->parameters[layer->first_tensor + 1][output] : 0;

	for (uint32_t c = output / outputs * inputs; c < output / outputs * inputs + inputs; c++) {
		const double *weight =
			pass->parameters[layer->first_tensor] + ((size_t)c * outputs + output % outputs) * places;

		for (uint32_t y = 0; y < w->kernel.height; y++)
			for (uint32_t x = 0; x < w->kernel.width; x++)
				sum += *weight++ *
				       stretched(in, sample, c,
						 (int64_t)row + w->pad.height - (int64_t)y * w->dilation.height,
						 (int64_t)column + w->pad.width - (int64_t)x * w->dilation.width,
						 w->stride);
	}
	return sum;
}

/* The hat function of each of the old places around the new one; corners lie on corners. */
static double resized_at(const struct map *in, struct psd_shape out, uint32_t sample, uint32_t channel, uint32_t row,
			 uint32_t column)
{
	const double y = out.height > 1 ? (in->shape.height - 1.0) / (out.height - 1.0) * row : 0;
	const double x = out.width > 1 ? (in->shape.width - 1.0) / (out.width - 1.0) * column : 0;
	double sum = 0;

	for (uint32_t r = 0; r < in->shape.height; r++)
		for (uint32_t c = 0; c < in->shape.width; c++)
			sum += fmax(0, 1 - fabs(y - r)) * fmax(0, 1 - fabs(x - c)) * *at(in, sample, channel, r, c);
	return sum;
}

static int64_t least(int64_t left, int64_t right)
{
	return left < right ? left : right;
}

/* Caffe's pooling_layer.cpp: the window is cut at the padded map, the average divides by what is left of it. */
static double pool_at(const struct map *in, const struct psd_pool_settings *pool, uint32_t sample, uint32_t channel,
		      uint32_t row, uint32_t column)
{
	const struct psd_window *w = &pool->window;
	const int64_t top = (int64_t)row * w->stride.height - w->pad.height,
		      left = (int64_t)column * w->stride.width - w->pad.width;
	const int64_t bottom = least(top + w->kernel.height, (int64_t)in->shape.height + w->pad.height);
	const int64_t right = least(left + w->kernel.width, (int64_t)in->shape.width + w->pad.width);
	double sum = 0, largest = -INFINITY;

	for (int64_t y = top; y < bottom; y++)
		for (int64_t x = left; x < right; x++) {
			sum += padded(in, sample, channel, y, x);
			if (y >= 0 && x >= 0 && y < in->shape.height && x < in->shape.width)
				largest = fmax(largest, padded(in, sample, channel, y, x));
		}
	return pool->method == PSD_POOL_MAX ? largest : sum / (double)((bottom - top) * (right - left));
}

static double global_pool_at(const struct map *in, uint32_t sample, uint32_t channel)
{
	double sum = 0;

	for (uint32_t y = 0; y < in->shape.height; y++)
		for (uint32_t x = 0; x < in->shape.width; x++)
			sum += *at(in, sample, channel, y, x);
	return sum / in->shape.height / in->shape.width;
}

/* Krizhevsky 2012, section 3.3, and Caffe's own over the square around a place. */
static double lrn_at(const struct map *in, const struct psd_lrn_settings *lrn, uint32_t sample, uint32_t channel,
		     uint32_t row, uint32_t column)
{
	const int64_t half = (lrn->size - 1) / 2;
	const double summands = lrn->is_within_channel ? (double)lrn->size * lrn->size : lrn->size;
	double sum = 0;

	for (int64_t c = (int64_t)channel - half; c <= (int64_t)channel + half && !lrn->is_within_channel; c++)
		if (c >= 0 && c < in->shape.channels)
			sum += pow(*at(in, sample, (uint32_t)c, row, column), 2);
	for (int64_t y = (int64_t)row - half; y <= (int64_t)row + half && lrn->is_within_channel; y++)
		for (int64_t x = (int64_t)column - half; x <= (int64_t)column + half; x++)
			sum += pow(padded(in, sample, channel, y, x), 2);
	return *at(in, sample, channel, row, column) * pow(lrn->k + lrn->alpha / summands * sum, -lrn->beta);
}

static double batch_norm_at(const struct pass *pass, const struct psd_affine_settings *affine, const struct map *in,
			    uint32_t sample, uint32_t channel, uint32_t row, uint32_t column)
{
	const double count = (double)pass->options->batch * in->shape.height * in->shape.width;
	double mean = 0, variance = 0;

	if (affine->is_fixed) /* at what they start with */
		return *at(in, sample, channel, row, column) / sqrt(1 + affine->epsilon);
	for (uint32_t n = 0; n < pass->options->batch; n++)
		mean += global_pool_at(in, n, channel) / pass->options->batch;
	for (uint32_t n = 0; n < pass->options->batch; n++)
		for (uint32_t y = 0; y < in->shape.height; y++)
			for (uint32_t x = 0; x < in->shape.width; x++)
				variance += pow(*at(in, n, channel, y, x) - mean, 2);
	variance /= pass->batch->is_training ? count : count - 1;
	return (*at(in, sample, channel, row, column) - mean) / sqrt(variance + affine->epsilon);
}

static double rms_norm_at(const struct map *in, double epsilon, uint32_t sample, uint32_t channel, uint32_t row,
			  uint32_t column)
{
	double mean_square = 0;

	for (uint32_t c = 0; c < in->shape.channels; c++)
		mean_square += pow(*at(in, sample, c, row, column), 2) / in->shape.channels;
	return *at(in, sample, channel, row, column) / sqrt(mean_square + epsilon);
}

static double layer_norm_at(const struct map *in, double epsilon, uint32_t sample, uint32_t channel, uint32_t row,
			    uint32_t column)
{
	const uint32_t channels = in->shape.channels;
	double mean = 0, variance = 0;

	for (uint32_t c = 0; c < channels; c++)
		mean += *at(in, sample, c, row, column) / channels;
	for (uint32_t c = 0; c < channels; c++)
		variance += pow(*at(in, sample, c, row, column) - mean, 2) / channels;
	return (*at(in, sample, channel, row, column) - mean) / sqrt(variance + epsilon);
}

/* Channel c of a head whose first one is `first`, at a place: rotated as the complex number whose real part is channel
 * c and whose imaginary one is channel c + d / 2, or the other way round (Su et al. 2021, equation 14; Llama's pairs).
 * */
static double rotated_at(const struct map *in, double base, uint32_t sample, uint32_t first, uint32_t depth, uint32_t c,
			 uint32_t place)
{
	const uint32_t half = depth / 2, pair = c % half;
	const double angle = place * pow(base, -2.0 * pair / depth);
	const double real = at(in, sample, first + pair, 0, 0)[place],
		     imaginary = at(in, sample, first + pair + half, 0, 0)[place];

	return c < half ? real * cos(angle) - imaginary * sin(angle) : real * sin(angle) + imaginary * cos(angle);
}

static double queried_at(const struct map *in, double base, uint32_t sample, uint32_t first, uint32_t depth, uint32_t c,
			 uint32_t place)
{
	return base > 0 ? rotated_at(in, base, sample, first, depth, c, place) : at(in, sample, first + c, 0, 0)[place];
}

static double dropout_at(const struct pass *pass, const struct psd_layer *layer, uint32_t sample, size_t element,
			 double ratio, double value)
{
	const uint32_t number = (uint32_t)pass->batch->first_sample + sample;
	const uint32_t counter[4] = {(uint32_t)element / 4, (uint32_t)(layer - pass->graph->layers), number,
				     (uint32_t)pass->batch->iteration};
	uint32_t random[4];

	if (!pass->batch->is_training)
		return value;
	psd_cpu_philox(counter, pass->options->seed, random);
	return random[element % 4] < ratio * 0x1p32 ? 0 : value / (1 - ratio);
}

/* The value that a place of the head of this channel has of another place, and how much it counts: Vaswani et al. 2017,
 * equation 1. Head h has the keys and values of head h kv_heads / heads of theirs. */
static double attended_at(const struct pass *pass, const struct psd_layer *layer, uint32_t sample, uint32_t channel,
			  uint32_t place)
{
	const struct map *in = &pass->maps[layer->inputs[0]];
	const struct psd_attention_settings *attention = &layer->settings.attention;
	const uint32_t heads = attention->heads, kv_heads = attention->kv_heads, all = heads + 2 * kv_heads;
	const uint32_t depth = in->shape.channels / all, head = channel / depth, kv = head * kv_heads / heads;
	const uint32_t keys = (heads + kv) * depth, values = (heads + kv_heads + kv) * depth;
	const uint32_t places = in->shape.height * in->shape.width;
	const double base = attention->rotary_base;
	double sum = 0, weights = 0;

	for (uint32_t p = 0; p < places && !(attention->is_causal && p > place); p++) {
		double score = 0;

		for (uint32_t c = 0; c < depth; c++)
			score += queried_at(in, base, sample, head * depth, depth, c, place) *
				 queried_at(in, base, sample, keys, depth, c, p);
		score = exp(score / sqrt(depth));
		weights += score;
		sum += dropout_at(pass, layer, sample, ((size_t)head * places + place) * places + p,
				  attention->dropout_ratio, score) *
		       at(in, sample, values + channel % depth, 0, 0)[p];
	}
	return sum / weights;
}

/* The rows of a map and then its columns are places behind the vectors. */
static double prefixed_at(const struct pass *pass, const struct psd_layer *layer, uint32_t sample, uint32_t channel,
			  uint32_t place)
{
	const struct map *in = &pass->maps[layer->inputs[0]];
	const uint32_t own = layer->settings.prefix.places, width = in->shape.width;

	if (place < own)
		return pass->parameters[layer->first_tensor][channel * own + place];
	return *at(in, sample, channel, (place - own) / width, (place - own) % width);
}

static double scale_at(const struct pass *pass, const struct psd_layer *layer, uint32_t channel, double value)
{
	const struct psd_affine_settings *affine = &layer->settings.affine;
	const double gamma = affine->has_scale ? pass->parameters[layer->first_tensor][channel] : 1;
	const double beta = affine->has_shift ? pass->parameters[layer->first_tensor + affine->has_scale][channel] : 0;

	return gamma * value + beta;
}

static double product_at(const struct pass *pass, const struct psd_layer *layer, uint32_t sample, uint32_t output)
{
	const struct map *in = &pass->maps[layer->inputs[0]];
	const size_t inputs = size_of(in->shape);
	double sum = layer->settings.inner_product.has_bias ? pass->parameters[layer->first_tensor + 1][output] : 0;

	for (size_t i = 0; i < inputs; i++)
		sum += pass->parameters[layer->first_tensor][output * inputs + i] * in->values[sample * inputs + i];
	return sum;
}

static double concat_at(const struct pass *pass, const struct psd_layer *layer, uint32_t sample, uint32_t channel,
			uint32_t row, uint32_t column)
{
	unsigned i = 0;

	while (channel >= pass->maps[layer->inputs[i]].shape.channels)
		channel -= pass->maps[layer->inputs[i++]].shape.channels;
	return *at(&pass->maps[layer->inputs[i]], sample, channel, row, column);
}

static double add_at(const struct pass *pass, const struct psd_layer *layer, size_t position)
{
	double sum = 0;

	for (unsigned i = 0; i < layer->n_inputs; i++)
		sum += pass->maps[layer->inputs[i]].values[position];
	return sum;
}

static double permuted_at(const struct map *in, const unsigned order[3], uint32_t sample, uint32_t channel,
			  uint32_t row, uint32_t column)
{
	const uint32_t own[3] = {channel, row, column};
	uint32_t place[3] = {0, 0, 0};

	for (unsigned i = 0; i < 3; i++)
		place[order[i] - 1] = own[i];
	return *at(in, sample, place[0], place[1], place[2]);
}

static double multiplied_at(const struct pass *pass, const struct psd_layer *layer, uint32_t sample, uint32_t channel,
			    uint32_t row, uint32_t column)
{
	const struct map *factor = &pass->maps[layer->inputs[1]];
	const bool is_flat = factor->shape.height == 1 && factor->shape.width == 1;

	return *at(&pass->maps[layer->inputs[0]], sample, channel, row, column) *
	       *at(factor, sample, channel, is_flat ? 0 : row, is_flat ? 0 : column);
}

static double softmax_at(const struct map *in, uint32_t sample, uint32_t channel, uint32_t row, uint32_t column)
{
	double sum = 0;

	for (uint32_t c = 0; c < in->shape.channels; c++)
		sum += exp(*at(in, sample, c, row, column));
	return exp(*at(in, sample, channel, row, column)) / sum;
}

/* Applies element-wise functions. */
static double function_at(const struct pass *pass, const struct psd_layer *layer, uint32_t channel, double x)
{
	const union psd_layer_settings *settings = &layer->settings;

	if (layer->kind == &psd_layer_relu)
		return x > 0 ? x : settings->slope.slope * x;
	if (layer->kind == &psd_layer_prelu)
		return x > 0 ? x : x * pass->parameters[layer->first_tensor][settings->prelu.is_shared ? 0 : channel];
	if (layer->kind == &psd_layer_sigmoid)
		return 1 / (1 + exp(-x));
	if (layer->kind == &psd_layer_tanh)
		return tanh(x);
	if (layer->kind == &psd_layer_elu)
		return x > 0 ? x : settings->slope.slope * (exp(x) - 1);
	if (layer->kind == &psd_layer_clip)
		return fmin(fmax(x, 0), settings->linear.factor);
	if (layer->kind == &psd_layer_affine)
		return settings->linear.factor * x + settings->linear.summand;
	if (layer->kind == &psd_layer_exp)
		return exp(x);
	if (layer->kind == &psd_layer_abs)
		return fabs(x);
	if (layer->kind == &psd_layer_log)
		return log(x);
	if (layer->kind == &psd_layer_softplus)
		return log1p(exp(x));
	if (layer->kind == &psd_layer_gelu && settings->gelu.approximation == PSD_GELU_TANH)
		return x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * pow(x, 3)))) / 2;
	if (layer->kind == &psd_layer_gelu)
		return x * (1 + erf(x / sqrt(2))) / 2;
	if (layer->kind == &psd_layer_silu)
		return x / (1 + exp(-x));
	if (layer->kind == &psd_layer_power)
		return pow(x, settings->power.exponent);
	return x;
}

static double value_at(const struct pass *pass, const struct psd_layer *layer, uint32_t n, uint32_t c, uint32_t y,
		       uint32_t x)
{
	const size_t element = ((size_t)c * layer->shape.height + y) * layer->shape.width + x;
	const size_t position = n * size_of(layer->shape) + element;
	const struct map *in = layer->n_inputs ? &pass->maps[layer->inputs[0]] : NULL;

	if (layer->kind == &psd_layer_input)
		return (double)pass->batch->images[position];
	if (layer->kind == &psd_layer_conv)
		return convolve_at(pass, layer, n, c, y, x);
	if (layer->kind == &psd_layer_deconv)
		return deconvolve_at(pass, layer, n, c, y, x);
	if (layer->kind == &psd_layer_resize)
		return resized_at(in, layer->shape, n, c, y, x);
	if (layer->kind == &psd_layer_pool)
		return pool_at(in, &layer->settings.pool, n, c, y, x);
	if (layer->kind == &psd_layer_global_pool)
		return global_pool_at(in, n, c);
	if (layer->kind == &psd_layer_lrn)
		return lrn_at(in, &layer->settings.lrn, n, c, y, x);
	if (layer->kind == &psd_layer_batch_norm)
		return scale_at(pass, layer, c, batch_norm_at(pass, &layer->settings.affine, in, n, c, y, x));
	if (layer->kind == &psd_layer_scale)
		return scale_at(pass, layer, c, in->values[position]);
	if (layer->kind == &psd_layer_layer_norm)
		return scale_at(pass, layer, c, layer_norm_at(in, layer->settings.affine.epsilon, n, c, y, x));
	if (layer->kind == &psd_layer_rms_norm)
		return scale_at(pass, layer, c, rms_norm_at(in, layer->settings.affine.epsilon, n, c, y, x));
	if (layer->kind == &psd_layer_embedding)
		return pass->parameters[layer->first_tensor]
				       [(size_t)*at(in, n, 0, y, x) * layer->settings.embedding.outputs + c];
	if (layer->kind == &psd_layer_position)
		return in->values[position] + pass->parameters[layer->first_tensor][element];
	if (layer->kind == &psd_layer_prefix)
		return prefixed_at(pass, layer, n, c, y);
	if (layer->kind == &psd_layer_attention)
		return attended_at(pass, layer, n, c, y * in->shape.width + x);
	if (layer->kind == &psd_layer_slice)
		return *at(in, n, layer->settings.slice.first + c, y, x);
	if (layer->kind == &psd_layer_multiply)
		return multiplied_at(pass, layer, n, c, y, x);
	if (layer->kind == &psd_layer_permute)
		return permuted_at(in, layer->settings.permute.order, n, c, y, x);
	if (layer->kind == &psd_layer_softmax)
		return softmax_at(in, n, c, y, x);
	if (layer->kind == &psd_layer_shuffle) /* Zhang et al. 2018: as (groups, others), transposed */
		return *at(in, n,
			   c % layer->settings.shuffle.groups *
					   (layer->shape.channels / layer->settings.shuffle.groups) +
				   c / layer->settings.shuffle.groups,
			   y, x);
	if (layer->kind == &psd_layer_dropout)
		return dropout_at(pass, layer, n, element, layer->settings.dropout.ratio, in->values[position]);
	if (layer->kind == &psd_layer_inner_product)
		return product_at(pass, layer, n, c);
	if (layer->kind == &psd_layer_concat)
		return concat_at(pass, layer, n, c, y, x);
	if (layer->kind == &psd_layer_add)
		return add_at(pass, layer, position);
	return function_at(pass, layer, c, in->values[position]);
}

/* A sample's loss is the mean of its places'. */
static void add_loss(struct pass *pass, const struct map *scores, double weight)
{
	const struct psd_shape shape = scores->shape;
	const size_t places = (size_t)shape.height * shape.width;

	for (size_t i = 0; i < pass->options->batch * places; i++) {
		const uint32_t n = (uint32_t)(i / places), y = (uint32_t)(i % places / shape.width),
			       x = (uint32_t)(i % shape.width);
		double sum = 0;

		for (uint32_t c = 0; c < shape.channels; c++)
			sum += exp(*at(scores, n, c, y, x));
		pass->loss += weight * (log(sum) - *at(scores, n, (uint32_t)pass->batch->labels[i], y, x)) /
			      (double)places / pass->options->loss_divisor;
	}
}

static void forward(struct pass *pass, unsigned number)
{
	const struct psd_layer *layer = &pass->graph->layers[number];
	struct map *out = &pass->maps[number];

	for (uint32_t n = 0; n < pass->options->batch; n++)
		for (uint32_t c = out->first; c < out->behind; c++)
			for (uint32_t y = 0; y < out->shape.height; y++)
				for (uint32_t x = 0; x < out->shape.width; x++)
					*at(out, n, c, y, x) = value_at(pass, layer, n, c, y, x);
}

/* Computes the channels that are marked as changed, and the loss. */
static double loss_of(struct pass *pass)
{
	pass->loss = 0;
	for (unsigned l = 0; l < pass->graph->n_layers; l++) {
		const struct psd_layer *layer = &pass->graph->layers[l];

		forward(pass, l);
		if (layer->kind->is_loss)
			add_loss(pass, &pass->maps[layer->inputs[0]], layer->settings.loss.weight);
	}
	return pass->loss;
}

/* Products have weights for each output, one output's behind the other's. */
static bool is_product(const struct psd_layer *layer)
{
	return layer->kind == &psd_layer_conv || layer->kind == &psd_layer_inner_product;
}

/* Changes reach the layers that have the tensor, and all above them. The first element of an output has the output
 * before it computed again, too, without the change of its last element. */
static void mark_changed(struct pass *pass, unsigned tensor, uint64_t element)
{
	for (unsigned l = 0; l < pass->graph->n_layers; l++) {
		const struct psd_layer *layer = &pass->graph->layers[l];
		const bool has_tensor = tensor - layer->first_tensor < layer->n_tensors + layer->n_shared;
		bool is_above = false;
		struct map *map = &pass->maps[l];

		for (unsigned i = 0; i < layer->n_inputs; i++)
			is_above |= pass->maps[layer->inputs[i]].behind > 0;
		map->first = 0;
		map->behind = is_above || has_tensor ? map->shape.channels : 0;
		if (!is_above && has_tensor && is_product(layer)) {
			const uint64_t each = pass->graph->tensors[tensor].elements / map->shape.channels;

			map->behind = (uint32_t)(element / each) + 1;
			map->first = map->behind - (map->behind > 1 && element % each == 0 ? 2 : 1);
		}
	}
}

static struct pass open_pass(const struct psd_graph *graph, const struct psd_network_options *options,
			     const struct psd_batch *batch, double *const parameters[])
{
	struct pass pass = {graph, options, batch, parameters, calloc(graph->n_layers, sizeof(struct map)), 0};

	if (!pass.maps)
		abort();
	for (unsigned l = 0; l < graph->n_layers; l++) {
		const struct psd_shape shape = graph->layers[l].shape;

		pass.maps[l] =
			(struct map){shape, calloc(options->batch * size_of(shape), sizeof(double)), 0, shape.channels};
		if (!pass.maps[l].values)
			abort();
	}
	(void)loss_of(&pass);
	return pass;
}

static void close_pass(struct pass *pass)
{
	for (unsigned l = 0; l < pass->graph->n_layers; l++)
		free(pass->maps[l].values);
	free(pass->maps);
}

double reference_loss(const struct psd_graph *graph, const struct psd_network_options *options,
		      const struct psd_batch *batch, double *const parameters[])
{
	struct pass pass = open_pass(graph, options, batch, parameters);

	close_pass(&pass);
	return pass.loss;
}

double *reference_gradient(const struct psd_graph *graph, const struct psd_network_options *options,
			   const struct psd_batch *batch, double *const parameters[], unsigned tensor)
{
	const uint64_t count = graph->tensors[tensor].elements;
	struct pass pass = open_pass(graph, options, batch, parameters);
	double *gradient = calloc(count, sizeof(*gradient)), *values = parameters[tensor];

	if (!gradient)
		abort();
	for (uint64_t i = 0; i < count; i++) {
		const double kept = values[i];

		mark_changed(&pass, tensor, i);
		values[i] = kept + DIFFERENCE_STEP;
		gradient[i] = loss_of(&pass);
		values[i] = kept - DIFFERENCE_STEP;
		gradient[i] = (gradient[i] - loss_of(&pass)) / (2 * DIFFERENCE_STEP);
		values[i] = kept;
	}
	close_pass(&pass);
	return gradient;
}
