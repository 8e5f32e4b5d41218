/* Shapes, tensors and FLOPs as far as several kinds share them; the rest is in kinds/. */
#include "engine/model/layer.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/base/saturate.h"

#define ROW(kind) &psd_layer_##kind,
const struct psd_layer_kind *const psd_layer_kinds[] = {PSD_LAYER_KINDS(ROW) NULL};
#undef ROW

enum { MAX_OTHERS = 15 };

enum psd_status psd_layer_read_keys(void *settings, const struct psd_node *mapping, const char *what,
				    const char *const others[], const struct psd_key *keys, struct psd_error *err)
{
	struct psd_key ignored[MAX_OTHERS + 1] = {{.name = NULL}};
	const struct psd_section section = {.tables = {ignored, keys}};
	const struct psd_schema_reader reader = {.base = settings, .err = err};

	for (unsigned i = 0; others[i]; i++) {
		assert(i < MAX_OTHERS);
		ignored[i] = (struct psd_key){.name = others[i], .type = PSD_KEY_OTHER};
	}
	return psd_schema_read(&reader, &(struct psd_key){.name = what, .section = &section}, mapping);
}

uint64_t psd_shape_elements(struct psd_shape shape)
{
	return (uint64_t)shape.channels * shape.height * shape.width;
}

bool psd_shape_is_equal(struct psd_shape one, struct psd_shape other)
{
	return one.channels == other.channels && one.height == other.height && one.width == other.width;
}

uint64_t psd_layer_hash(const struct psd_layer *layer, uint64_t hash)
{
	hash = psd_hash_bytes(hash, layer->kind->name, strlen(layer->kind->name));
	hash = psd_hash_bytes(hash, layer->inputs, layer->n_inputs * sizeof(*layer->inputs));
	for (const struct psd_key *key = layer->kind->keys; key && key->name; key++)
		hash = psd_schema_hash_number(hash, &layer->settings, key);
	return hash;
}

/* ---- shapes ---- */

static enum psd_status check_size(const struct psd_layer *layer, struct psd_place at, struct psd_error *err)
{
	const struct psd_shape shape = layer->shape;

	if (shape.channels < 1 || shape.channels > PSD_LAYER_CHANNELS_MAX)
		return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s' has %u channels, must be 1 to %u", layer->name,
				     shape.channels, PSD_LAYER_CHANNELS_MAX);
	if (shape.height < 1 || shape.height > PSD_LAYER_SIDE_MAX || shape.width < 1 ||
	    shape.width > PSD_LAYER_SIDE_MAX)
		return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s' is %u high and %u wide, must be 1 to %u",
				     layer->name, shape.height, shape.width, PSD_LAYER_SIDE_MAX);
	return PSD_OK;
}

static enum psd_status check_input_count(const struct psd_layer *layer, struct psd_place at, struct psd_error *err)
{
	const struct psd_layer_kind *kind = layer->kind;

	if (layer->n_inputs < kind->least_inputs || (!kind->takes_more_inputs && layer->n_inputs > kind->least_inputs))
		return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s' (%s) has %u inputs, must be %u%s", layer->name,
				     kind->name, layer->n_inputs, kind->least_inputs,
				     kind->takes_more_inputs ? " or more" : "");
	return PSD_OK;
}

struct psd_shape psd_layer_input_shape(const struct psd_layer *layer, const struct psd_layer *layers)
{
	return layer->n_inputs ? layers[layer->inputs[0]].shape : (struct psd_shape){0};
}

enum psd_status psd_layer_infer_shape(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				      struct psd_error *err)
{
	PSD_TRY(check_input_count(layer, at, err));
	layer->shape = psd_layer_input_shape(layer, layers);
	if (layer->kind->infer)
		PSD_TRY(layer->kind->infer(layer, layers, at, err));
	return check_size(layer, at, err);
}

/* Number of positions of a window along a side; `kernel` is its dilated size. When rounding up, the last window must
 * begin inside the side or its leading pad (Caffe's PoolingLayer::Reshape). False: the window does not fit. */
static bool count_positions(uint64_t side, uint64_t kernel, uint64_t stride, uint64_t pad, bool rounds_up,
			    uint32_t *positions)
{
	const uint64_t padded = side + 2 * pad;
	uint64_t count = 1;

	if (padded < kernel && (!rounds_up || kernel - padded >= stride))
		return false;
	if (padded >= kernel)
		count = (padded - kernel + (rounds_up ? stride - 1 : 0)) / stride + 1;
	if (rounds_up && (count - 1) * stride >= side + pad)
		count--;
	*positions = (uint32_t)count;
	return true;
}

static uint64_t dilated(uint32_t kernel, uint32_t dilation)
{
	return (uint64_t)dilation * (kernel - 1) + 1;
}

enum psd_status psd_layer_slide_window(struct psd_layer *layer, const struct psd_window *window, bool rounds_up,
				       struct psd_shape in, struct psd_place at, struct psd_error *err)
{
	const struct psd_sides kernel = window->kernel, pad = window->pad;

	if (count_positions(in.height, dilated(kernel.height, window->dilation.height), window->stride.height,
			    pad.height, rounds_up, &layer->shape.height) &&
	    count_positions(in.width, dilated(kernel.width, window->dilation.width), window->stride.width, pad.width,
			    rounds_up, &layer->shape.width))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, at,
			     "layer '%.80s': a kernel of %ux%u with a pad of %ux%u does not fit its input of %ux%u",
			     layer->name, kernel.height, kernel.width, pad.height, pad.width, in.height, in.width);
}

/* ---- tensors ---- */

/* Start values are uniform. The weight's variance is 1 / inputs, so that outputs are as large as inputs (LeCun et al.
 * 1998, "Efficient BackProp", section 4.6). The bias starts as in PyTorch. */
bool psd_layer_declare_products(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_tensor weight,
				double inputs, bool has_bias)
{
	const struct psd_tensor bias = {.dims = {layer->shape.channels}, .start_bound = (float)sqrt(1 / inputs)};

	weight.start_bound = (float)sqrt(3 / inputs);
	return psd_graph_build_tensor(build, "weight", weight) &&
	       (!has_bias || psd_graph_build_tensor(build, "bias", bias));
}

/* ---- work ---- */

struct psd_layer_work psd_layer_work_per_element(const struct psd_layer *layer, uint64_t forward, uint64_t data,
						 uint64_t parameters)
{
	const uint64_t elements = psd_shape_elements(layer->shape);

	return (struct psd_layer_work){
		.forward_flops = psd_saturated_mul(elements, forward),
		.data_flops = psd_saturated_mul(elements, data),
		.parameter_flops = psd_saturated_mul(elements, parameters),
	};
}

/* Forward: a multiplication and an addition for each weight and position, and an addition of the bias for each output.
 * Backward: the same products for the weights' gradient and again for the data's (Caffe's two GEMMs). */
struct psd_layer_work psd_layer_work_of_products(const struct psd_layer *layer, struct psd_shape map,
						 uint64_t weight_elements, bool has_bias)
{
	const uint64_t positions = (uint64_t)map.height * map.width;
	const uint64_t products = psd_saturated_mul(2 * positions, weight_elements);
	const uint64_t additions = has_bias ? psd_shape_elements(layer->shape) : 0;

	return (struct psd_layer_work){
		.forward_flops = psd_saturated_add(products, additions),
		.data_flops = products,
		.parameter_flops = psd_saturated_add(products, additions),
	};
}

void psd_layer_count_work(struct psd_layer *layer, const struct psd_layer *layers, bool has_data_gradient)
{
	const struct psd_shape in = psd_layer_input_shape(layer, layers);
	const struct psd_layer_work each = layer->kind->per_element;
	const struct psd_layer_work work =
		layer->kind->count
			? layer->kind->count(layer, in)
			: psd_layer_work_per_element(layer, each.forward_flops, each.data_flops, each.parameter_flops);
	uint64_t read = layer->kind->reads_rows ? psd_shape_elements(layer->shape) : layer->parameters;

	for (unsigned i = 0; i < layer->n_inputs; i++)
		read = psd_saturated_add(read, psd_shape_elements(layers[layer->inputs[i]].shape));
	layer->read_bytes = psd_saturated_mul(work.read_values ? work.read_values : read, sizeof(float));
	layer->write_bytes = psd_shape_elements(layer->shape) * sizeof(float);
	layer->kept_bytes = psd_saturated_mul(work.kept_values, sizeof(float));
	layer->forward_flops = work.forward_flops;
	layer->backward_flops = psd_saturated_add(work.parameter_flops, has_data_gradient ? work.data_flops : 0);
}
