/* The profile of an import, and the graph of a trace without a model. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "engine/scenario/device.h"
#include "sim/import/import.h"
#include "sim/import/shapes.h"

enum { LONGEST_DEVICE = 64 };

/* ---- the profile ---- */

/* The device of the table that the maker's name contains: the longest, since "a100" stands in "a100-sxm". */
static const char *find_device(const char *name)
{
	char lower[LONGEST_DEVICE] = "";
	const char *best = NULL;

	for (size_t i = 0; i + 1 < sizeof(lower) && name[i]; i++)
		lower[i] = (char)tolower((unsigned char)name[i]);
	for (const char *const *device = psd_device_names; *device; device++)
		if (strstr(lower, *device) && (!best || strlen(*device) > strlen(best)))
			best = *device;
	return best;
}

static void add_device(struct psd_text *text, const struct psd_import *import)
{
	const char *name = psd_trace_string(&import->trace, import->trace.device);
	const char *known = find_device(name);

	if (!import->places.has_kernels) {
		psd_text_add(text, "cpu\n");
		return;
	}
	psd_text_add(text, "%s", known ? known : "gpu");
	if (*name) {
		psd_text_add(text, " (");
		psd_text_add_plain(text, name);
		psd_text_add(text, ")");
	}
	psd_text_add(text, "\n");
}

static void add_head(struct psd_text *text, const struct psd_import *import)
{
	const struct psd_import_spread *spread = &import->spread;

	psd_text_add(text, "# Seconds of layers from a trace of PyTorch's profiler, by psd-sim import.\n# batch: %u\n",
		     import->batch);
	if (import->batch_source == PSD_BATCH_UNKNOWN)
		psd_text_add(text, "# The trace does not tell the samples of a step, which counts as one.\n");
	psd_text_add(text, "# kind: measured\n# origin: ");
	psd_text_add_plain(text, import->settings.trace_path);
	psd_text_add(text, ", median of %u steps, %s\n# device: ", import->n_steps,
		     import->places.has_kernels ? "kernels by their operators" : "operators of the processor");
	add_device(text, import);
	psd_text_add(text, "# gemm_flops_per_sec: %.4gGFLOPS\n# The rate is %s.\n", import->gemm_flops_per_sec / 1e9,
		     import->gemm_source);
	psd_text_add(text, "# percentiles: p50 %.6g s, p90 %.6g s, p99 %.6g s, largest %.6g s\n# spread: %.4g%%\n",
		     spread->median, spread->p90, spread->p99, spread->most, 100 * spread->ratio);
	if (spread->tail_chance_ratio > 0)
		psd_text_add(text, "# tail: {chance: %.4g%%, factor: %.4g}\n", 100 * spread->tail_chance_ratio,
			     spread->tail_factor);
	psd_text_add(text, "# placed: %.4g%% by operator, %.4g%% with the operator before, %.4g%% not placed\n",
		     100 * import->sure_ratio, 100 * import->near_ratio, 100 * import->loose_ratio);
}

/* Layers of a graph have at most this many channels: a larger bucket is several layers. */
#define MOST_CHANNELS (UINT64_C(1) << 24)

static uint64_t n_buckets(const struct psd_import *import, unsigned layer)
{
	return (import->bucket_elements[layer] + MOST_CHANNELS - 1) / MOST_CHANNELS;
}

static uint64_t bucket_channels(const struct psd_import *import, unsigned layer, uint64_t bucket)
{
	const uint64_t rest = import->bucket_elements[layer] - bucket * MOST_CHANNELS;

	return rest < MOST_CHANNELS ? rest : MOST_CHANNELS;
}

static void add_seen_rows(struct psd_text *text, const struct psd_import *import, unsigned layer)
{
	const char *name = import->match.seen[layer].name;

	psd_text_add(text, "%s.in,0,0\n", name);
	for (uint64_t bucket = 0; bucket < n_buckets(import, layer); bucket++)
		psd_text_add(text, "%s.in%" PRIu64 ",0,0\n%s.bucket%" PRIu64 ",0,0\n", name, bucket, name, bucket);
}

void psd_import_add_profile(struct psd_text *text, const struct psd_import *import)
{
	const bool has_model = import->settings.model_path != NULL;

	add_head(text, import);
	psd_text_add(text, "layer,forward_sec,backward_sec\n");
	for (unsigned i = 0; i < import->match.n_layers; i++) {
		if (has_model && !import->graph.layers[i].n_inputs)
			continue;
		if (!has_model)
			add_seen_rows(text, import, i);
		psd_text_add_csv(text, has_model ? import->graph.layers[i].name : import->match.seen[i].name);
		psd_text_add(text, ",%.9g,%.9g\n", import->forward_sec[i], import->backward_sec[i]);
	}
}

/* ---- the graph ---- */

/* A layer of the graph: an input of its own width, then the layer itself. */
struct row {
	const char *kind;
	uint64_t channels, outputs;
	uint64_t kernel[2];
	bool is_conv, is_product, has_bias;
};

static struct row row_of(const struct psd_import *import, unsigned layer)
{
	const struct psd_trace_op *op = &import->trace.ops[import->places.units[import->match.seen[layer].unit].op];
	const char *name = psd_trace_string(&import->trace, op->name);
	const struct psd_operator_row *known = psd_operator_find(name);
	const struct psd_shapes shapes = psd_shapes_read(&import->trace, op);
	const struct psd_operator_parameters found = psd_operator_parameters(known, name, &shapes);
	const struct psd_input_shape *weight = found.weight;
	struct row row = {.kind = "affine", .channels = 1, .has_bias = found.bias != NULL};

	if (!weight || weight->elements > UINT64_C(1) << 40)
		return row;
	row.outputs = weight->dims[0];
	row.channels = weight->n_dims > 1 ? weight->dims[1] : weight->dims[0];
	if (weight->n_dims > 2) {
		row.is_conv = true;
		row.kernel[0] = weight->n_dims > 3 ? weight->elements / (weight->dims[0] * weight->dims[1]) /
							     weight->dims[weight->n_dims - 1]
						   : 1;
		row.kernel[1] = weight->dims[weight->n_dims - 1];
	} else if (weight->n_dims == 2) {
		const bool is_turned = strcmp(name, "aten::linear") != 0; /* addmm and embedding have inputs first */

		row.is_product = true;
		row.outputs = weight->dims[is_turned];
		row.channels = weight->dims[!is_turned];
	} else {
		row.kind = known->kinds[0];
	}
	return row;
}

static void add_row(struct psd_text *text, const char *name, const struct row *row)
{
	psd_text_add(text, "  - {name: %s.in, kind: slice, input: values, first: 0, channels: %" PRIu64 "}\n", name,
		     row->channels);
	psd_text_add(text, "  - {name: %s, kind: ", name);
	if (row->is_conv)
		psd_text_add(text,
			     "conv, outputs: %" PRIu64 ", kernel: [%" PRIu64 ", %" PRIu64 "], pad: [%" PRIu64
			     ", %" PRIu64 "], bias: %s}\n",
			     row->outputs, row->kernel[0], row->kernel[1], row->kernel[0] / 2, row->kernel[1] / 2,
			     row->has_bias ? "true" : "false");
	else if (row->is_product)
		psd_text_add(text, "inner-product, outputs: %" PRIu64 ", bias: %s}\n", row->outputs,
			     row->has_bias ? "true" : "false");
	else
		psd_text_add(text, "%s%s}\n", row->kind,
			     row->outputs && !row->has_bias && strcmp(row->kind, "rms-norm") != 0 ? ", bias: false"
												  : "");
}

/* Parameters whose shapes the trace lacks, in front of the layer: their gradients are ready after its backward. */
static void add_buckets(struct psd_text *text, const struct psd_import *import, unsigned layer)
{
	const char *name = import->match.seen[layer].name;

	for (uint64_t bucket = 0; bucket < n_buckets(import, layer); bucket++)
		psd_text_add(text,
			     "  - {name: %s.in%" PRIu64 ", kind: slice, input: values, first: 0, channels: %" PRIu64
			     "}\n  - {name: %s.bucket%" PRIu64 ", kind: scale, bias: false}\n",
			     name, bucket, bucket_channels(import, layer, bucket), name, bucket);
}

void psd_import_add_graph(struct psd_text *text, const struct psd_import *import)
{
	uint64_t most = 1;

	for (unsigned i = 0; i < import->match.n_layers; i++) {
		const struct row row = row_of(import, i);

		most = row.channels > most ? row.channels : most;
		if (n_buckets(import, i))
			most = bucket_channels(import, i, 0) > most ? bucket_channels(import, i, 0) : most;
	}
	psd_text_add(text, PSD_IMPORT_GRAPH_HEAD " For predictions with its profile alone: layers have\n"
						 "# the parameters of the operators' weights, and do not compute the "
						 "network. From ");
	psd_text_add_plain(text, import->settings.trace_path);
	psd_text_add(text, "\nname: imported\ninput: {name: values, channels: %" PRIu64 "}\nlayers:\n", most);
	for (unsigned i = 0; i < import->match.n_layers; i++) {
		const struct row row = row_of(import, i);

		add_buckets(text, import, i);
		add_row(text, import->match.seen[i].name, &row);
	}
}
