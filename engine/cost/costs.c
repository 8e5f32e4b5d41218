/* Compute times from the roofline of a device, and storage and scaling for both sources; profile.c reads profiles.
 * Refuses to guess costs beyond FLOPs and bytes: launch overheads and fusion are left out. */
#include "engine/cost/costs.h"

#include <math.h>
#include <stdlib.h>

const char *const psd_costs_source_names[PSD_COSTS_SOURCES + 1] = {"model", "scaled", "measured", NULL};

enum psd_status psd_costs_init(struct psd_costs *costs, const struct psd_graph *graph, struct psd_error *err)
{
	double *block = calloc(2 * (size_t)graph->n_layers + 1, sizeof(*block));

	if (!block)
		return psd_out_of_memory(err);
	*costs = (struct psd_costs){
		.forward_sec = block, .backward_sec = block + graph->n_layers, .n_layers = graph->n_layers};
	return PSD_OK;
}

void psd_costs_release(struct psd_costs *costs)
{
	free(costs->forward_sec);
	*costs = (struct psd_costs){.n_layers = 0};
}

static double sum_sec(const struct psd_costs *costs)
{
	double sum = 0;

	for (unsigned i = 0; i < costs->n_layers; i++)
		sum += costs->forward_sec[i] + costs->backward_sec[i];
	return sum;
}

enum psd_status psd_costs_settle(struct psd_costs *costs, struct psd_place at, unsigned batch, double images_per_sec,
				 struct psd_error *err)
{
	const double sum = sum_sec(costs);
	const double factor = images_per_sec > 0 ? batch / images_per_sec / sum : 1;

	if (sum <= 0 || !isfinite(sum) || !isfinite(factor))
		return psd_error_set(err, PSD_EINVAL, at,
				     "all layers together take %g s for %u images, must be above 0 and finite", sum,
				     batch);
	for (unsigned i = 0; i < costs->n_layers; i++) {
		costs->forward_sec[i] *= factor;
		costs->backward_sec[i] *= factor;
	}
	costs->compute_sec = sum_sec(costs);
	return PSD_OK;
}

/* Rates that a device achieves in one kind of arithmetic. */
struct roofline {
	double conv_flops_per_sec;
	double conv_half_depth;
	double gemm_flops_per_sec;
	double bytes_per_sec;
	double value_ratio; /* bytes of a value over 4 */
};

static struct roofline roofline_of(const struct psd_device_row *device, bool half)
{
	const double peak =
		half ? device->peak_half_flops_per_sec * device->half_efficiency_ratio : device->peak_flops_per_sec;

	return (struct roofline){
		.conv_flops_per_sec = half ? peak : device->conv_peak_flops_per_sec * device->conv_efficiency_ratio,
		.conv_half_depth = device->conv_half_depth,
		.gemm_flops_per_sec = half ? peak : peak * device->gemm_efficiency_ratio,
		.bytes_per_sec = device->memory_bps * device->memory_efficiency_ratio / 8,
		.value_ratio = half ? 0.5 : 1,
	};
}

/* Number of products that a layer sums for each value of its output. */
static double depth_of(const struct psd_layer *layer)
{
	return (double)layer->forward_flops / 2.0 / ((double)layer->write_bytes / sizeof(float));
}

/* Seconds of the arithmetic; other layers than convolution and GEMM are bound by memory alone. */
static double arithmetic_sec(const struct roofline *roofline, const struct psd_layer *layer, double flops)
{
	switch (layer->kind->arithmetic) {
	case PSD_ARITHMETIC_CONV:
		return flops / roofline->conv_flops_per_sec * (1.0 + roofline->conv_half_depth / depth_of(layer));
	case PSD_ARITHMETIC_GEMM: return flops / roofline->gemm_flops_per_sec;
	case PSD_ARITHMETIC_NONE: break;
	}
	return 0;
}

/* Parameters are read once for the whole batch, unless a sample selects rows of them; all other values are read once
 * for each sample. Backward reads the gradient of the output, the input and the parameters, and writes the gradients of
 * the input and of the parameters; selected rows of the latter are read and written again. */
static void fill_layer(struct psd_costs *costs, const struct psd_graph *graph, unsigned i,
		       const struct roofline *roofline, unsigned batch)
{
	const struct psd_layer *layer = &graph->layers[i];
	const double parameters = (double)layer->parameters * sizeof(float);
	const double parameters_read = layer->kind->reads_rows ? 0 : parameters;
	const double inputs = fmax((double)layer->read_bytes - parameters_read, 0) * batch;
	const double outputs = (double)layer->write_bytes * batch;
	const double byte_sec = roofline->value_ratio / roofline->bytes_per_sec;

	if (layer->n_inputs == 0)
		return;
	costs->forward_sec[i] = fmax(arithmetic_sec(roofline, layer, (double)layer->forward_flops * batch),
				     (inputs + outputs + parameters_read) * byte_sec);
	costs->backward_sec[i] = fmax(arithmetic_sec(roofline, layer, (double)layer->backward_flops * batch),
				      (outputs + 2 * inputs + parameters_read + parameters) * byte_sec);
}

enum psd_status psd_costs_from_device(struct psd_costs *costs, const struct psd_graph *graph,
				      const struct psd_device_row *device, unsigned batch, bool half,
				      double images_per_sec, struct psd_error *err)
{
	const struct roofline roofline = roofline_of(device, half);
	struct psd_costs fresh;
	enum psd_status status;

	PSD_TRY(psd_costs_init(&fresh, graph, err));
	for (unsigned i = 0; i < graph->n_layers; i++)
		fill_layer(&fresh, graph, i, &roofline, batch);
	fresh.gemm_flops_per_sec = roofline.gemm_flops_per_sec;
	fresh.has_own_memory = !device->shares_memory;
	status = psd_costs_settle(&fresh, PSD_NOWHERE, batch, images_per_sec, err);
	if (status)
		psd_costs_release(&fresh);
	else
		*costs = fresh;
	return status;
}
