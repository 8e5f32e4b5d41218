/* A layer is one kernel forward, and backward one for each gradient. A kernel takes the longer of its arithmetic and
 * its traffic with memory, and a launch. All constants here are for all GPUs; those of a generation are in its rows in
 * scenario/device.c. Refuses to know frameworks: published throughputs of equal GPUs differ by up to a factor of 2. */
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
/* Attention over the rate of linear layers, every pair of positions counted. Fitted: MPT, 512 to 65,536 positions. */
#define ATTENTION_RATIO 0.8

struct rates {
	double flops_per_sec, values_per_sec;
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
	double inputs, outputs, parameters; /* number of values, for the batch */
};

static double matrix_rate(const struct psd_device_row *device, enum psd_precision precision)
{
	return psd_precision_is_half(precision) ? device->peak_half_flops_per_sec * device->half_efficiency_ratio
						: device->peak_tf32_flops_per_sec * device->tf32_efficiency_ratio;
}

double psd_kernels_gemm_rate(const struct psd_device_row *device, enum psd_precision precision)
{
	return precision != PSD_PRECISION_FP32 ? matrix_rate(device, precision)
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
	return (traffic->inputs + traffic->outputs + traffic->parameters) / rates->values_per_sec;
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

static struct traffic traffic_of(const struct psd_layer *layer, unsigned batch)
{
	const double parameters = (double)layer->parameters;
	const double read = (double)layer->read_bytes / sizeof(float) - (layer->kind->reads_rows ? 0.0 : parameters);

	return (struct traffic){.inputs = fmax(read, 0.0) * batch,
				.outputs = (double)layer->write_bytes / sizeof(float) * batch,
				.parameters = parameters};
}

/* A layer that multiplies by a weight: window NULL: a linear layer, of each position alike. */
static struct psd_layer_sec weighted_sec(const struct psd_layer *layer, struct psd_shape in,
					 const struct psd_window *window, unsigned groups, double saving_ratio,
					 const struct rates *rates, unsigned batch)
{
	const struct traffic traffic = traffic_of(layer, batch);
	const double flops = (double)layer->forward_flops * batch;
	const double area = window ? (double)window->kernel.height * window->kernel.width : 1.0;
	const double steps = window ? (double)window->stride.height * window->stride.width : 1.0;
	const struct product forward = {.flops = flops,
					.rows = traffic.outputs / layer->shape.channels,
					.depth = flops / 2.0 / traffic.outputs,
					.channels = (double)layer->shape.channels / groups,
					.saving_ratio = saving_ratio};
	const struct product data = {.flops = flops,
				     .rows = window ? traffic.inputs / in.channels : batch,
				     .depth = forward.channels * fmax(1.0, area / steps),
				     .channels = window ? (double)in.channels / groups : traffic.inputs / batch,
				     .saving_ratio = saving_ratio};
	const bool has_data = layer->backward_flops > layer->forward_flops + layer->forward_flops / 2;
	return (struct psd_layer_sec){.forward_sec = product_sec(&forward, &traffic, rates),
				      .backward_sec = weight_sec(&forward, &traffic, rates) +
						      (has_data ? product_sec(&data, &traffic, rates) : 0.0)};
}

/* Products of activations; scores stay in the multiprocessors. */
static struct psd_layer_sec attention_sec(const struct psd_layer *layer, const struct rates *rates, unsigned batch)
{
	const struct traffic traffic = traffic_of(layer, batch);
	const double rate = rates->flops_per_sec * ATTENTION_RATIO;
	const double forward_sec = (traffic.inputs + traffic.outputs) / rates->values_per_sec;
	const double backward_sec = (2.0 * traffic.inputs + traffic.outputs) / rates->values_per_sec;

	return (struct psd_layer_sec){
		.forward_sec = fmax((double)layer->forward_flops * batch / rate, forward_sec) + LAUNCH_SEC,
		.backward_sec = fmax((double)layer->backward_flops * batch / rate, backward_sec) + 2.0 * LAUNCH_SEC};
}

/* Other layers are bound by memory. Backward reads the gradient of the output, and the input where the gradient of the
 * input depends on it, and writes that gradient; of a table it clears the gradient as well. */
static struct psd_layer_sec moving_sec(const struct psd_layer *layer, const struct rates *rates, unsigned batch)
{
	const struct traffic traffic = traffic_of(layer, batch);
	const double again = layer->kind->reads_twice ? traffic.inputs : 0.0;
	const double kept = layer->backward_flops > 0 ? traffic.inputs : 0.0;
	const double table = layer->kind->reads_rows ? traffic.parameters : 0.0;
	const double forward = traffic.inputs + traffic.outputs + again;
	const double backward = traffic.outputs + traffic.inputs + kept + table +
				(again > 0.0 ? traffic.inputs + traffic.outputs : 0.0);

	return (struct psd_layer_sec){.forward_sec = forward / rates->values_per_sec + LAUNCH_SEC,
				      .backward_sec = backward / rates->values_per_sec + LAUNCH_SEC};
}

/* A function of single values in front of nothing but its own values, such as ReLU, is part of the kernel above. */
static bool is_fused(const struct psd_device_row *device, enum psd_precision precision, const struct psd_layer *layer)
{
	return device->has_matrix_units && psd_precision_is_half(precision) && layer->kind->is_in_place;
}

static struct psd_layer_sec conv_sec(const struct psd_device_row *device, enum psd_precision precision,
				     const struct psd_layer *layer, struct psd_shape in, struct rates *rates,
				     unsigned batch)
{
	const struct psd_conv_settings *conv = &layer->settings.conv;
	const struct psd_window *window = &conv->window;
	const double saving_ratio = is_winograd(device, precision, window) ? WINOGRAD_RATIO : 1.0;

	/* over a sequence, which has one column, it is a linear layer */
	rates->flops_per_sec = in.width == 1 && window->kernel.height == 1
				       ? psd_kernels_gemm_rate(device, precision)
				       : conv_rate(device, precision, in.channels / conv->groups);
	return weighted_sec(layer, in, window, conv->groups, saving_ratio, rates, batch);
}

struct psd_layer_sec psd_kernels_layer(const struct psd_device_row *device, enum psd_precision precision,
				       const struct psd_graph *graph, unsigned i, unsigned batch)
{
	const struct psd_layer *layer = &graph->layers[i];
	const struct psd_shape in = psd_layer_input_shape(layer, graph->layers);
	const double value_bits = psd_precision_is_half(precision) ? 16.0 : 32.0;
	struct rates rates = {.flops_per_sec = psd_kernels_gemm_rate(device, precision),
			      .values_per_sec = device->memory_bps * device->memory_efficiency_ratio / value_bits,
			      .multiprocessors = device->multiprocessors};

	if (layer->kind->arithmetic == PSD_ARITHMETIC_CONV)
		return conv_sec(device, precision, layer, in, &rates, batch);
	if (layer->kind->arithmetic == PSD_ARITHMETIC_GEMM)
		return layer->parameters ? weighted_sec(layer, in, NULL, 1, 1.0, &rates, batch)
					 : attention_sec(layer, &rates, batch);
	return is_fused(device, precision, layer) ? (struct psd_layer_sec){.forward_sec = 0.0}
						  : moving_sec(layer, &rates, batch);
}
