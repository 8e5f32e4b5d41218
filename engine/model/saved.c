/* Rules of autograd and autocast, a row for each kind. Sources: PyTorch's derivatives.yaml says which values the
 * formula of a gradient reads; its page "Automatic Mixed Precision" lists the operators that autocast runs in half
 * precision and in fp32. tests/saved-tensors.py counts the same with PyTorch itself. Storage is saved once, in each
 * width in which a reader needs it. */
#include "engine/model/saved.h"

#include <stdlib.h>

/* Precision under autocast. RUN_WIDEST: the highest precision of the inputs. */
enum run { RUN_WIDEST, RUN_HALF, RUN_FLOAT };

struct rule {
	const struct psd_layer_kind *kind;
	bool saves_input, saves_output;
	enum run run;
	unsigned other_bytes; /* other saved bytes for each value of the output */
	bool is_view;	      /* the output is the storage of the input */
};

enum { HALF_BYTES = 2, FLOAT_BYTES = sizeof(float), MASK_BYTES = 1, INDEX_BYTES = 8 };

#define PRODUCT	   .saves_input = true, .run = RUN_HALF
#define INPUT	   .saves_input = true
#define OUTPUT	   .saves_output = true
#define INPUT_F32  .saves_input = true, .run = RUN_FLOAT
#define OUTPUT_F32 .saves_output = true, .run = RUN_FLOAT
#define NOTHING	   .run = RUN_WIDEST
#define F32	   .run = RUN_FLOAT
#define VIEW	   .is_view = true

#define RULE_input	   F32
#define RULE_conv	   PRODUCT
#define RULE_deconv	   PRODUCT
#define RULE_pool	   INPUT
#define RULE_global_pool   NOTHING				     /* AdaptiveAvgPool2d(1) is a mean */
#define RULE_lrn	   INPUT_F32, .other_bytes = 3 * FLOAT_BYTES /* squares, their scaled sum, its power */
#define RULE_batch_norm	   INPUT
#define RULE_layer_norm	   INPUT_F32
#define RULE_rms_norm	   INPUT_F32, .other_bytes = FLOAT_BYTES /* the quotient, below gamma: LlamaRMSNorm */
#define RULE_scale	   INPUT_F32
#define RULE_relu	   OUTPUT
#define RULE_prelu	   PRODUCT
#define RULE_sigmoid	   OUTPUT
#define RULE_tanh	   OUTPUT
#define RULE_elu	   OUTPUT
#define RULE_clip	   OUTPUT
#define RULE_affine	   NOTHING
#define RULE_abs	   INPUT
#define RULE_exp	   OUTPUT_F32
#define RULE_log	   INPUT_F32
#define RULE_softplus	   INPUT_F32
#define RULE_gelu	   INPUT
#define RULE_silu	   INPUT
#define RULE_power	   INPUT_F32
#define RULE_dropout	   NOTHING, .other_bytes = MASK_BYTES
#define RULE_inner_product PRODUCT
#define RULE_embedding	   F32 /* its input is the sample */
#define RULE_position	   F32
#define RULE_prefix	   F32
#define RULE_attention	   PRODUCT, .saves_output = true
#define RULE_concat	   NOTHING
#define RULE_slice	   VIEW
#define RULE_add	   NOTHING
#define RULE_multiply	   INPUT
#define RULE_reshape	   VIEW
#define RULE_permute	   NOTHING
#define RULE_shuffle	   NOTHING
#define RULE_resize	   NOTHING
#define RULE_softmax	   OUTPUT_F32
#define RULE_softmax_loss  OUTPUT_F32 /* as transformers does; F.cross_entropy alone keeps 2 bytes more */
#define RULE_other	   INPUT

#define ROW(name) {.kind = &psd_layer_##name, RULE_##name},
static const struct rule rules[] = {PSD_LAYER_KINDS(ROW)};

static const struct rule *rule_of(const struct psd_layer *layer)
{
	const struct rule *rule = rules;

	while (rule->kind != layer->kind)
		rule++;
	return rule;
}

/* Output of a layer. */
struct storage {
	unsigned owner; /* layer whose storage it is */
	bool is_half, saves_half, saves_float;
};

/* Saves the storage of layer l in the precision in which its reader computes. */
static void save(struct storage storages[], unsigned l, bool is_half)
{
	struct storage *owner = &storages[storages[l].owner];

	owner->saves_half = owner->saves_half || is_half;
	owner->saves_float = owner->saves_float || !is_half;
}

bool psd_saved_is_half(const struct psd_layer *layer, const struct psd_layer *layers)
{
	const enum run run = rule_of(layer)->run;
	bool all = true;

	if (run != RUN_WIDEST)
		return run == RUN_HALF;
	for (unsigned i = 0; i < layer->n_inputs; i++)
		all = all && layers[layer->inputs[i]].is_half;
	return all;
}

static bool saves_input(const struct psd_layer *layer, const struct rule *rule)
{
	return rule->saves_input && (layer->kind != &psd_layer_scale || layer->settings.affine.has_scale);
}

bool psd_saved_reads(const struct psd_layer *layer, bool output)
{
	const struct rule *rule = rule_of(layer);

	return output ? rule->saves_output || rule->other_bytes > 0 || layer->kept_bytes > 0 : saves_input(layer, rule);
}

/* Saved bytes beside inputs and outputs. */
static uint64_t other_bytes(const struct psd_layer *layer, const struct rule *rule)
{
	const uint64_t elements = layer->write_bytes / FLOAT_BYTES;

	if (layer->kind == &psd_layer_pool && layer->settings.pool.method == PSD_POOL_MAX)
		return elements * INDEX_BYTES;
	return elements * rule->other_bytes;
}

/* Parameters that products convert. Those that a product shares with another one are converted once. */
static uint64_t converted(const struct psd_graph *graph, const struct psd_layer *layer)
{
	uint64_t elements = 0;

	for (unsigned t = layer->first_tensor; t < layer->first_tensor + layer->n_tensors + layer->n_shared; t++)
		if (!layer->n_shared || rule_of(&graph->layers[graph->tensors[t].layer])->run != RUN_HALF)
			elements += graph->tensors[t].elements;
	return elements;
}

static void count_layer(struct psd_saved *saved, const struct psd_graph *graph, struct storage storages[], unsigned l,
			bool is_autocast)
{
	const struct psd_layer *layer = &graph->layers[l];
	const struct rule *rule = rule_of(layer);
	const bool is_half = is_autocast && layer->is_half;

	storages[l] =
		(struct storage){.owner = rule->is_view ? storages[layer->inputs[0]].owner : l, .is_half = is_half};
	for (unsigned i = 0; i < layer->n_inputs && saves_input(layer, rule); i++)
		save(storages, layer->inputs[i],
		     rule->run == RUN_WIDEST ? storages[layer->inputs[i]].is_half : is_half);
	if (rule->saves_output)
		save(storages, l, is_half);
	if (layer->kind->is_loss)
		saved->head_bytes +=
			2 * (layer->write_bytes / FLOAT_BYTES) * (uint64_t)(is_half ? HALF_BYTES : FLOAT_BYTES);
	if (is_autocast && rule->run == RUN_HALF)
		saved->weights_bytes += HALF_BYTES * converted(graph, layer);
}

/* Samples are there anyway, but not their copies in half precision. */
static uint64_t bytes_of(const struct psd_layer *layer, const struct storage *storage)
{
	uint64_t value_bytes = storage->saves_half ? HALF_BYTES : 0;

	if (storage->saves_float && layer->n_inputs > 0)
		value_bytes += FLOAT_BYTES;
	return layer->write_bytes / FLOAT_BYTES * value_bytes;
}

static uint64_t scores_of(const struct psd_layer *layer)
{
	return layer->kind == &psd_layer_attention ? layer->kept_bytes / FLOAT_BYTES : 0;
}

/* The softmax, in fp32; with dropout its mask and the probabilities left, as the product with the values reads them. */
static uint64_t score_bytes(const struct psd_layer *layer, const struct storage *storage)
{
	const bool drops = layer->settings.attention.dropout_ratio > 0;
	const unsigned left_bytes = storage->is_half ? HALF_BYTES : drops ? FLOAT_BYTES : 0;

	return scores_of(layer) ? scores_of(layer) * (FLOAT_BYTES + left_bytes + (drops ? MASK_BYTES : 0)) : 0;
}

/* Saved bytes of a sample, of all layers or of a block. */
struct sum {
	uint64_t values, scores, softmax_inputs;
};

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* A block that is computed again has its inputs saved instead, and its own values while its backward goes on. */
static struct sum sum_of(const struct psd_graph *graph, const struct storage storages[], bool recomputes)
{
	struct sum all = {0, 0, 0}, block = all, most = all;

	for (unsigned l = 0; l < graph->n_layers; l++) {
		const struct psd_layer *layer = &graph->layers[l];
		const uint64_t values = bytes_of(layer, &storages[l]) + other_bytes(layer, rule_of(layer));
		const uint64_t scores = score_bytes(layer, &storages[l]), inputs = FLOAT_BYTES * scores_of(layer);
		const uint64_t width = storages[l].is_half ? HALF_BYTES : FLOAT_BYTES;
		const bool is_again = recomputes && layer->block > 0;
		const uint64_t kept = !is_again		    ? values
				      : layer->is_block_end ? layer->write_bytes / FLOAT_BYTES * width
							    : 0;

		if (l > 0 && layer->block != layer[-1].block)
			block = (struct sum){0, 0, 0};
		block.values += values > kept ? values - kept : 0;
		block.scores += is_again ? scores : 0;
		block.softmax_inputs += is_again ? inputs : 0;
		most = (struct sum){larger(most.values, block.values), larger(most.scores, block.scores),
				    larger(most.softmax_inputs, block.softmax_inputs)};
		all.values += kept;
		all.scores += is_again ? 0 : scores;
		all.softmax_inputs += is_again ? 0 : inputs;
	}
	return (struct sum){all.values + most.values, all.scores + most.scores,
			    all.softmax_inputs + most.softmax_inputs};
}

enum psd_status psd_saved_count(struct psd_saved *saved, const struct psd_graph *graph, bool is_half, bool recomputes,
				struct psd_error *err)
{
	struct storage *storages = calloc(graph->n_layers, sizeof(*storages));
	struct psd_saved counted = {.sample_bytes = 0};

	if (!storages)
		return psd_out_of_memory(err);
	for (unsigned l = 0; l < graph->n_layers; l++)
		count_layer(&counted, graph, storages, l, is_half);
	const struct sum sum = sum_of(graph, storages, recomputes);
	counted.sample_bytes = sum.values;
	counted.score_bytes = sum.scores;
	counted.softmax_input_bytes = sum.softmax_inputs;
	free(storages);
	*saved = counted;
	return PSD_OK;
}
