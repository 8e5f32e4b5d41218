/* Compute times from a device, and storage and scaling for both sources; profile.c reads profiles, kernels.c has the
 * rules of GPUs. A processor is a roofline: costs beyond FLOPs and bytes are left out. */
#include "engine/cost/costs.h"

#include <math.h>
#include <stdlib.h>

#include "engine/cost/kernels.h"

const char *const psd_costs_source_names[PSD_COSTS_SOURCES + 1] = {"model", "scaled", "measured", NULL};

enum psd_status psd_costs_init(struct psd_costs *costs, const struct psd_graph *graph, struct psd_error *err)
{
	double *block = calloc(3 * (size_t)graph->n_layers + 1, sizeof(*block));

	if (!block)
		return psd_out_of_memory(err);
	*costs = (struct psd_costs){.forward_sec = block,
				    .backward_sec = block + graph->n_layers,
				    .recompute_sec = block + 2 * (size_t)graph->n_layers,
				    .n_layers = graph->n_layers};
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
		sum += costs->forward_sec[i] + costs->backward_sec[i] + costs->recompute_sec[i];
	return sum;
}

enum psd_status psd_costs_settle(struct psd_costs *costs, struct psd_place at, unsigned batch, double samples_per_sec,
				 struct psd_error *err)
{
	const double sum = sum_sec(costs);
	const double factor = samples_per_sec > 0 ? batch / samples_per_sec / sum : 1;

	if (sum <= 0 || !isfinite(sum) || !isfinite(factor))
		return psd_error_set(err, PSD_EINVAL, at,
				     "all layers together take %g s for %u images, must be above 0 and finite", sum,
				     batch);
	for (unsigned i = 0; i < costs->n_layers; i++) {
		costs->forward_sec[i] *= factor;
		costs->backward_sec[i] *= factor;
		costs->recompute_sec[i] *= factor;
	}
	if (!costs->has_profile_gemm)
		costs->gemm_flops_per_sec /= factor;
	costs->compute_sec = sum_sec(costs);
	return PSD_OK;
}

enum psd_status psd_costs_recompute(struct psd_costs *costs, const struct psd_graph *graph, unsigned batch,
				    double samples_per_sec, struct psd_error *err)
{
	costs->recomputes = true;
	for (unsigned i = 0; i < costs->n_layers; i++)
		costs->recompute_sec[i] = graph->layers[i].is_recomputed ? costs->forward_sec[i] : 0;
	return psd_costs_settle(costs, PSD_NOWHERE, batch, samples_per_sec, err);
}

/* Rates that a processor achieves in one kind of arithmetic. */
struct roofline {
	double conv_flops_per_sec, gemm_flops_per_sec;
	double bytes_per_sec;
	double value_ratio; /* bytes of a value over 4 */
};

static struct roofline roofline_of(const struct psd_device_row *device, enum psd_precision precision)
{
	const bool is_half = psd_precision_is_half(psd_device_arithmetic(device, precision));
	const double gemm = psd_kernels_gemm_rate(device, precision);

	return (struct roofline){
		.conv_flops_per_sec = is_half ? gemm : device->peak_flops_per_sec * device->conv_efficiency_ratio,
		.gemm_flops_per_sec = gemm,
		.bytes_per_sec = device->memory_bps * device->memory_efficiency_ratio / 8,
		.value_ratio = psd_precision_is_half(precision) ? 0.5 : 1,
	};
}

/* Seconds of the arithmetic; other layers than convolution and GEMM are bound by memory alone. */
static double arithmetic_sec(const struct roofline *roofline, const struct psd_layer *layer, double flops)
{
	switch (layer->kind->arithmetic) {
	case PSD_ARITHMETIC_CONV: return flops / roofline->conv_flops_per_sec;
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

static void fill_layers(struct psd_costs *costs, const struct psd_graph *graph, const struct psd_device_row *device,
			enum psd_precision precision, unsigned batch)
{
	const struct roofline roofline = roofline_of(device, precision);

	for (unsigned i = 0; i < graph->n_layers; i++) {
		if (device->multiprocessors == 0) {
			fill_layer(costs, graph, i, &roofline, batch);
		} else if (graph->layers[i].n_inputs > 0) {
			const struct psd_layer_sec sec = psd_kernels_layer(device, precision, graph, i, batch);

			costs->forward_sec[i] = sec.forward_sec;
			costs->backward_sec[i] = sec.backward_sec;
		}
	}
	costs->gemm_flops_per_sec = roofline.gemm_flops_per_sec;
	costs->has_own_memory = !device->shares_memory;
	costs->device = device;
}

enum psd_status psd_costs_from_device(struct psd_costs *costs, const struct psd_graph *graph,
				      const struct psd_device_row *device, unsigned batch, enum psd_precision precision,
				      double samples_per_sec, struct psd_error *err)
{
	struct psd_costs fresh;

	PSD_TRY(psd_costs_init(&fresh, graph, err));
	fill_layers(&fresh, graph, device, precision, batch);
	const enum psd_status status = psd_costs_settle(&fresh, PSD_NOWHERE, batch, samples_per_sec, err);
	if (status)
		psd_costs_release(&fresh);
	else
		*costs = fresh;
	return status;
}

double psd_costs_mfu_rate(const struct psd_graph *graph, const struct psd_device_row *device,
			  enum psd_precision precision, double mfu_ratio)
{
	const double flops = (double)graph->forward_flops + (double)graph->backward_flops;

	return mfu_ratio * psd_device_peak(device, precision) / flops;
}
