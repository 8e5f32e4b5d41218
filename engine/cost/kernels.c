/* A layer is one kernel forward, and backward one for each gradient. A kernel takes the longer of its arithmetic and
 * its traffic with memory, and a launch. In half precision values have the widths that autocast gives them. All
 * constants here are for all GPUs; those of a generation are in its rows in scenario/device.c. Refuses to know
 * frameworks: published throughputs of equal GPUs differ by up to a factor of 2. */
#include "engine/cost/kernels.h"

#include <math.h>

#include "engine/model/layer.h"

/* Seconds between two kernels: launch, ramp, and the framework between layers. Fitted: batches of 32 to 128 of
 * ResNet-50 and BERT on P100 and V100. */
#define LAUNCH_SEC 15e-6
/* Tile of outputs that one multiprocessor computes at a time, as cuBLAS and cuDNN divide most products. Fewer channels
 * are filled up; fewer rows make a smaller tile. */
#define TILE_ROWS     128.0
#define TILE_CHANNELS 64.0
/* Rounds of tiles in which multiprocessors idle, at the start and end of a kernel. Fitted as LAUNCH_SEC. */
#define IDLE_ROUNDS 2.0
/* A product that sums d products for each output reaches d / (d + this) of its rate. Fitted: Inception and ResNets. */
#define HALF_DEPTH 100.0
/* Products of a 3x3 convolution over those by Winograd's algorithm on tiles of 2x2: 36 / 16 (Lavin and Gray, arXiv
 * 1509.09308); 5x5 ones save no less. */
#define WINOGRAD_RATIO 2.25
/* Matrix units take 8 channels at a time; convolutions of other numbers compute in fp32. */
#define UNIT_CHANNELS 8
/* Attention's backward over its forward rate, in FLOPs per second. FlashAttention reaches 25 to 35 % of an A100 after
 * 30 to 50 %, FlashAttention-2 63 % after 73 % (Dao, arXiv 2307.08691, sections 1 and 4). */
#define ATTENTION_BACKWARD_RATIO 0.8

enum { HALF_BYTES = 2, FLOAT_BYTES = sizeof(float) };

struct rates {
	double flops_per_sec, bytes_per_sec;
	unsigned multiprocessors;
};

/* A product of matrices: rows of outputs, each of which sums depth products, in equal groups. */
struct product {
	double flops;	     /* FLOPs of forward, or of one gradient */
	double rows;	     /* rows of outputs, of all samples of the batch */
	double depth;	     /* number of products that an output sums */
	double channels;     /* number of the output's channels in a group */
	double saving_ratio; /* products over those that the algorithm computes */
};

struct traffic {
	double inputs, outputs, parameters; /* bytes, for the batch */
	double input_values, output_values; /* number of values, for the batch */
	double cast;			    /* bytes of a kernel in front that casts the inputs */
};

static double matrix_rate(const struct psd_device_row *device, enum psd_precision precision)
{
	return psd_precision_is_half(precision) ? device->peak_half_flops_per_sec * device->half_efficiency_ratio
						: device->peak_tf32_flops_per_sec * device->tf32_efficiency_ratio;
}

double psd_kernels_gemm_rate(const struct psd_device_row *device, enum psd_precision precision)
{
	const enum psd_precision arithmetic = psd_device_arithmetic(device, precision);

	return arithmetic != PSD_PRECISION_FP32 ? matrix_rate(device, arithmetic)
						: device->peak_flops_per_sec * device->gemm_efficiency_ratio;
}

static double conv_rate(const struct psd_device_row *device, enum psd_precision precision, unsigned channels)
{
	const bool is_half = psd_precision_is_half(precision);
	const bool fits = !is_half || !device->has_matrix_units || channels % UNIT_CHANNELS == 0;

	return (is_half && fits) || (!is_half && device->peak_tf32_flops_per_sec > 0.0)
		       ? matrix_rate(device, precision)
		       : device->peak_flops_per_sec * device->conv_efficiency_ratio;
}

static bool is_winograd(const struct psd_device_row *device, enum psd_precision precision,
			const struct psd_window *window)
{
	const struct psd_sides kernel = window->kernel;

	return device->has_winograd && !psd_precision_is_half(precision) && kernel.height == kernel.width &&
	       (kernel.height == 3 || kernel.height == 5) && window->stride.height == 1 && window->stride.width == 1;
}

static double traffic_sec(const struct traffic *traffic, const struct rates *rates)
{
	return (traffic->inputs + traffic->outputs + traffic->parameters) / rates->bytes_per_sec;
}

static double filled(double channels)
{
	return ceil(channels / TILE_CHANNELS) * TILE_CHANNELS / channels;
}

static double product_sec(const struct product *product, const struct traffic *traffic, const struct rates *rates)
{
	const double tile_flops =
		2.0 * fmin(product->rows, TILE_ROWS) * TILE_CHANNELS * product->depth / product->saving_ratio;
	const double flops = product->flops / product->saving_ratio * filled(product->channels);
	const double idle_sec = IDLE_ROUNDS * tile_flops * rates->multiprocessors / rates->flops_per_sec;
	const double sec = flops / rates->flops_per_sec * (1.0 + HALF_DEPTH / product->depth) + idle_sec;

	return fmax(sec, traffic_sec(traffic, rates)) + LAUNCH_SEC;
}

/* The gradient of a weight sums over all rows, which multiprocessors divide among themselves: none idles. */
static double weight_sec(const struct product *forward, const struct traffic *traffic, const struct rates *rates)
{
	const double flops = forward->flops / forward->saving_ratio * filled(forward->channels);

	return fmax(flops / rates->flops_per_sec, traffic_sec(traffic, rates)) + LAUNCH_SEC;
}

static double width_of(const struct psd_layer *layer, enum psd_precision precision)
{
	return psd_precision_is_half(precision) && layer->is_half ? HALF_BYTES : FLOAT_BYTES;
}

/* Autocast casts inputs to the width in which a kernel computes; a sum takes inputs of both. */
static struct traffic traffic_of(const struct psd_layer *layer, const struct psd_layer *layers,
				 enum psd_precision precision, unsigned batch)
{
	const double width = width_of(layer, precision), parameters = (double)layer->parameters;
	const double read = (double)layer->read_bytes / FLOAT_BYTES - (layer->kind->reads_rows ? 0.0 : parameters);
	struct traffic traffic = {.input_values = fmax(read, 0.0) * batch,
				  .output_values = (double)layer->write_bytes / FLOAT_BYTES * batch};
	double values = 0.0, bytes = 0.0;
	bool is_cast = true;

	for (unsigned i = 0; i < layer->n_inputs; i++) {
		const struct psd_layer *input = &layers[layer->inputs[i]];

		values += (double)input->write_bytes;
		bytes += (double)input->write_bytes * width_of(input, precision);
		is_cast = is_cast && width_of(input, precision) != width;
	}
	traffic.inputs = traffic.input_values * (is_cast ? width : bytes / values);
	traffic.outputs = traffic.output_values * width;
	traffic.parameters = parameters * width;
	traffic.cast = is_cast ? traffic.input_values * (width + bytes / values) : 0.0;
	return traffic;
}

/* A layer that multiplies by a weight: window NULL: a linear layer, of each position alike. */
static struct psd_layer_sec weighted_sec(const struct psd_layer *layer, struct psd_shape in,
					 const struct psd_window *window, unsigned groups, double saving_ratio,
					 const struct traffic *traffic, const struct rates *rates, unsigned batch)
{
	const double flops = (double)layer->forward_flops * batch;
	const double area = window ? (double)window->kernel.height * window->kernel.width : 1.0;
	const double steps = window ? (double)window->stride.height * window->stride.width : 1.0;
	const struct product forward = {.flops = flops,
					.rows = traffic->output_values / layer->shape.channels,
					.depth = flops / 2.0 / traffic->output_values,
					.channels = (double)layer->shape.channels / groups,
					.saving_ratio = saving_ratio};
	const struct product data = {.flops = flops,
				     .rows = window ? traffic->input_values / in.channels : batch,
				     .depth = forward.channels * fmax(1.0, area / steps),
				     .channels = window ? (double)in.channels / groups : traffic->input_values / batch,
				     .saving_ratio = saving_ratio};
	const bool has_data = layer->backward_flops > layer->forward_flops + layer->forward_flops / 2;
	return (struct psd_layer_sec){.forward_sec = product_sec(&forward, traffic, rates),
				      .backward_sec = weight_sec(&forward, traffic, rates) +
						      (has_data ? product_sec(&data, traffic, rates) : 0.0)};
}

/* Products of activations. Scores stay in the multiprocessors, so that backward computes one of forward's two products
 * again. */
static struct psd_layer_sec attention_sec(const struct psd_device_row *device, const struct psd_layer *layer,
					  const struct traffic *traffic, const struct rates *rates, unsigned batch)
{
	const double rate = rates->flops_per_sec * device->attention_ratio;
	const double forward = (double)layer->forward_flops * batch, again = forward / 2.0;
	const double backward = (double)layer->backward_flops * batch + again;
	const double forward_sec = (traffic->inputs + traffic->outputs) / rates->bytes_per_sec;
	const double backward_sec = (2.0 * traffic->inputs + traffic->outputs) / rates->bytes_per_sec;

	return (struct psd_layer_sec){.forward_sec = fmax(forward / rate, forward_sec) + LAUNCH_SEC,
				      .backward_sec = fmax(backward / (rate * ATTENTION_BACKWARD_RATIO), backward_sec) +
						      2.0 * LAUNCH_SEC};
}

/* Other layers are bound by memory. Backward reads the gradient of the output, and the input where the gradient of the
 * input depends on it, and writes that gradient; of a table it clears the gradient as well. */
static struct psd_layer_sec moving_sec(const struct psd_layer *layer, const struct traffic *traffic,
				       const struct rates *rates)
{
	const double again = layer->kind->reads_twice ? traffic->inputs : 0.0;
	const double kept = layer->backward_flops > 0 ? traffic->inputs : 0.0;
	const double table = layer->kind->reads_rows ? traffic->parameters : 0.0;
	const double forward = traffic->inputs + traffic->outputs + again;
	const double backward = traffic->outputs + traffic->inputs + kept + table +
				(again > 0.0 ? traffic->inputs + traffic->outputs : 0.0);

	return (struct psd_layer_sec){.forward_sec = forward / rates->bytes_per_sec + LAUNCH_SEC,
				      .backward_sec = backward / rates->bytes_per_sec + LAUNCH_SEC};
}

/* A function of single values in front of nothing but its own values, such as ReLU, is part of the kernel above. */
static bool is_fused(const struct psd_device_row *device, enum psd_precision precision, const struct psd_layer *layer)
{
	return device->has_matrix_units && psd_precision_is_half(precision) && layer->kind->is_in_place;
}

static struct psd_layer_sec conv_sec(const struct psd_device_row *device, enum psd_precision precision,
				     const struct psd_layer *layer, struct psd_shape in, const struct traffic *traffic,
				     struct rates *rates, unsigned batch)
{
	const struct psd_conv_settings *conv = &layer->settings.conv;
	const struct psd_window *window = &conv->window;
	const double saving_ratio = is_winograd(device, precision, window) ? WINOGRAD_RATIO : 1.0;

	/* over a sequence, which has one column, it is a linear layer */
	rates->flops_per_sec = in.width == 1 && window->kernel.height == 1
				       ? psd_kernels_gemm_rate(device, precision)
				       : conv_rate(device, precision, in.channels / conv->groups);
	return weighted_sec(layer, in, window, conv->groups, saving_ratio, traffic, rates, batch);
}

/* Seconds without casts. */
static struct psd_layer_sec kernels_sec(const struct psd_device_row *device, enum psd_precision precision,
					const struct psd_layer *layer, struct psd_shape in,
					const struct traffic *traffic, struct rates *rates, unsigned batch)
{
	if (layer->kind->arithmetic == PSD_ARITHMETIC_CONV)
		return conv_sec(device, precision, layer, in, traffic, rates, batch);
	if (layer->kind->arithmetic == PSD_ARITHMETIC_GEMM)
		return layer->parameters ? weighted_sec(layer, in, NULL, 1, 1.0, traffic, rates, batch)
					 : attention_sec(device, layer, traffic, rates, batch);
	return is_fused(device, precision, layer) ? (struct psd_layer_sec){.forward_sec = 0.0}
						  : moving_sec(layer, traffic, rates);
}

struct psd_layer_sec psd_kernels_layer(const struct psd_device_row *device, enum psd_precision precision,
				       const struct psd_graph *graph, unsigned i, unsigned batch)
{
	const struct psd_layer *layer = &graph->layers[i];
	const struct psd_shape in = psd_layer_input_shape(layer, graph->layers);
	const struct traffic traffic = traffic_of(layer, graph->layers, precision, batch);
	const enum psd_precision arithmetic = psd_device_arithmetic(device, precision);
	struct rates rates = {.flops_per_sec = psd_kernels_gemm_rate(device, precision),
			      .bytes_per_sec = device->memory_bps * device->memory_efficiency_ratio / 8.0,
			      .multiprocessors = device->multiprocessors};
	const double cast_sec = traffic.cast / rates.bytes_per_sec;
	const bool has_gradient = graph->layers[layer->inputs[0]].is_trained;
	const struct psd_layer_sec sec = kernels_sec(device, arithmetic, layer, in, &traffic, &rates, batch);

	return (struct psd_layer_sec){.forward_sec = sec.forward_sec + cast_sec,
				      .backward_sec = sec.backward_sec + (has_gradient ? cast_sec : 0.0)};
}
