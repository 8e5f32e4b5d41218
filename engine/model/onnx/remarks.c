/* Differences between the network that the file has and the model that was exported: norms that the exporter folded,
 * rows that no sample reads, outputs that are left out. So readers can compare with PyTorch's own count. */
#include <stdio.h>
#include <string.h>

#include "engine/model/layer.h"
#include "engine/model/onnx/parts.h"

enum { MOST_OUTPUTS_SAID = 6 };

/* ---- values that no layer has ---- */

static uint64_t count(const Onnx__Tensor *tensor)
{
	struct psd_onnx_value value = {.n_dims = 0};

	for (size_t d = 0; d < tensor->n_dims && d < PSD_ONNX_AXES_MAX; d++)
		value.dims[value.n_dims++] = tensor->dims[d] > 0 ? (uint64_t)tensor->dims[d] : 0;
	return psd_onnx_elements(&value);
}

static bool is_learned(const Onnx__Tensor *tensor)
{
	return psd_onnx_is_real(tensor->data_type) && count(tensor) > 1;
}

/* Adds the tables of which layers read a part, and returns the count of parameters in the other rows. */
static uint64_t add_rows(struct psd_onnx *onnx)
{
	uint64_t all = 0;

	for (size_t i = 0; i < onnx->graph->n_initializer; i++) {
		const Onnx__Tensor *tensor = onnx->graph->initializer[i];
		const uint64_t used = onnx->used[psd_onnx_number_of(onnx, tensor->name ? tensor->name : "")];
		const uint64_t elements = count(tensor);

		if (!is_learned(tensor) || used == 0 || used >= elements ||
		    psd_onnx_is_listed(onnx, tensor->name, PSD_ONNX_LISTED_BUFFER))
			continue;
		all += elements - used;
		psd_text_add(&onnx->remarks, "rows: ");
		psd_text_add_plain(&onnx->remarks, tensor->name);
		if (tensor->n_dims == 2 && used % (uint64_t)tensor->dims[1] == 0)
			psd_text_add(&onnx->remarks, " has %lld rows, %llu are read: ", (long long)tensor->dims[0],
				     (unsigned long long)(used / (uint64_t)tensor->dims[1]));
		else
			psd_text_add(&onnx->remarks, " is read in part: ");
		psd_text_add(&onnx->remarks, "%llu parameters are left out\n", (unsigned long long)(elements - used));
	}
	return all;
}

/* True if the node reads input i as statistics. */
static bool is_statistics(const Onnx__Node *node, size_t i)
{
	return !strcmp(node->op_type, "BatchNormalization") && i >= 3;
}

/* Parameters that only nodes beyond the needed ones read. */
static uint64_t count_left_out(struct psd_onnx *onnx)
{
	uint64_t all = 0;

	for (size_t n = 0; n < onnx->graph->n_node; n++)
		for (size_t i = 0; i < onnx->graph->node[n]->n_input; i++) {
			const Onnx__Node *node = onnx->graph->node[n];
			const unsigned number = psd_onnx_number_of(onnx, node->input[i]);
			const Onnx__Tensor *origin = onnx->values[number].origin;

			if (!number || onnx->n_consumers[number] || onnx->producers[number] || !origin ||
			    onnx->used[number] || onnx->is_statistic[number] || is_statistics(node, i) ||
			    !is_learned(origin) || psd_onnx_is_kept(onnx, &onnx->values[number]))
				continue;
			onnx->used[number] = count(origin); /* further readers do not count it again */
			all += onnx->used[number];
		}
	return all;
}

static uint64_t add_left_out(struct psd_onnx *onnx)
{
	const Onnx__Graph *graph = onnx->graph;
	const uint64_t all = count_left_out(onnx);
	unsigned n = 0;

	for (size_t o = 0; o < graph->n_output; o++) {
		const char *name = graph->output[o]->name ? graph->output[o]->name : "";

		if (onnx->is_output[o] || n++ >= MOST_OUTPUTS_SAID)
			continue;
		psd_text_add(&onnx->remarks, "%s", n == 1 ? "outputs left out: " : ", ");
		psd_text_add_plain(&onnx->remarks, name);
	}
	if (n > MOST_OUTPUTS_SAID)
		psd_text_add(&onnx->remarks, " and %u more", n - MOST_OUTPUTS_SAID);
	if (n)
		psd_text_add(&onnx->remarks, ", with %llu parameters of their own (key model.outputs)\n",
			     (unsigned long long)all);
	else if (all)
		psd_text_add(&onnx->remarks, "left out: %llu parameters that the output does not need\n",
			     (unsigned long long)all);
	return all;
}

/* ---- folded norms ---- */

static const char *metadata(const Onnx__Node *node, const char *key)
{
	for (size_t i = 0; i < node->n_metadata; i++)
		if (node->metadata[i]->key && node->metadata[i]->value && !strcmp(node->metadata[i]->key, key))
			return node->metadata[i]->value;
	return "";
}

/* True if the exporter lists a bias beside the node's weight, "conv.bias" for "conv.weight". */
static bool lists_bias(const struct psd_onnx *onnx, const Onnx__Node *node)
{
	static const char ending[] = ".weight";
	const char *weight = node->n_input > 1 ? node->input[1] : "";
	const size_t length = strlen(weight), end = strlen(ending);
	char name[PSD_GRAPH_NAME_MAX + 1];

	if (length < end || strcmp(weight + length - end, ending) != 0)
		return false;
	snprintf(name, sizeof(name), "%.*s.bias", (int)(length - end), weight);
	return psd_onnx_is_listed(onnx, name, PSD_ONNX_LISTED_PARAMETER);
}

/* True if an exporter made the bias for the norm behind the convolution. TorchScript then renames both, PyTorch's newer
 * exporter names the bias after the weight. */
static bool has_folded_norm(const Onnx__Node *node)
{
	const bool has_rule = strstr(metadata(node, "pkg.onnxscript.rewriter.rule_name"), "FuseBatchNormIntoConv");
	static const char prefix[] = "onnx::Conv_", suffix[] = "_bias";
	const char *weight, *bias;

	if (strcmp(node->op_type, "Conv") != 0 || node->n_input < 3)
		return false;
	weight = node->input[1];
	bias = node->input[2];
	const size_t length = strlen(weight);
	return has_rule || (!strncmp(weight, prefix, strlen(prefix)) && !strncmp(bias, prefix, strlen(prefix))) ||
	       (length && !strncmp(bias, weight, length) && !strcmp(bias + length, suffix));
}

static uint64_t add_folded(struct psd_onnx *onnx)
{
	uint64_t channels = 0, own = 0, open = 0; /* channels of norms, of biases before them, of possible biases */
	unsigned n = 0;

	for (size_t i = 0; i < onnx->graph->n_node; i++) {
		const Onnx__Node *node = onnx->graph->node[i];
		const struct psd_onnx_value *bias;

		if (!has_folded_norm(node))
			continue;
		bias = psd_onnx_named(onnx, node->input[2]);
		if (bias->kind != PSD_ONNX_CONSTANT)
			continue;
		channels += psd_onnx_elements(bias);
		own += lists_bias(onnx, node) ? psd_onnx_elements(bias) : 0;
		open += onnx->n_listed ? 0 : psd_onnx_elements(bias);
		n++;
	}
	if (n)
		psd_text_add(
			&onnx->remarks,
			"folded norms: %u, each left a bias in its convolution and had %llu more parameters in all", n,
			(unsigned long long)(channels + own));
	if (open)
		psd_text_add(&onnx->remarks, ", up to %llu if the convolutions had biases",
			     (unsigned long long)(channels + open));
	if (n)
		psd_text_add(&onnx->remarks, "\n");
	return channels + own;
}

/* ---- values of 0 ---- */

/* Outputs of a product; 0: not known. */
static uint64_t outputs_of(const struct psd_onnx *onnx, const Onnx__Node *node)
{
	const struct psd_onnx_value *weight = psd_onnx_named(onnx, node->n_input > 1 ? node->input[1] : "");
	const bool is_computed = weight->kind == PSD_ONNX_DATA && !strcmp(node->op_type, "Conv");
	const Onnx__Attribute *is_turned = psd_onnx_attribute(node, "transB");

	if (is_computed && weight->view.n_axes)
		return psd_onnx_view_dim(&weight->view, 0);
	if (weight->kind != PSD_ONNX_CONSTANT || weight->n_dims < 2)
		return 0;
	return strcmp(node->op_type, "Gemm") != 0 || (is_turned && is_turned->i) ? weight->dims[0] : weight->dims[1];
}

/* True if the node's text in PyTorch's newer exporter has two parameters: "(%x, %p_layer_weight, %p_layer_bias)". */
static bool had_bias(const Onnx__Node *node)
{
	const char *first = strstr(metadata(node, "pkg.torch.onnx.fx_node"), "%p_");

	return first && (strstr(first + 1, "%p_") || strstr(first, "_bias"));
}

/* Exporters leave out a bias of 0 and a norm that changes nothing but the weight, and PyTorch's newer one says so.
 * Returns the number of their parameters. */
static uint64_t add_zeros(struct psd_onnx *onnx)
{
	uint64_t all = 0;
	unsigned n = 0;

	for (size_t i = 0; i < onnx->graph->n_node; i++) {
		const Onnx__Node *node = onnx->graph->node[i];
		const char *rules = metadata(node, "pkg.onnxscript.rewriter.rule_name");
		const char *norm = strstr(rules, "FuseBatchNorm"), *bias = strstr(rules, "RemoveOptionalBias");
		const bool is_without = node->n_input < 3 || !*node->input[2];
		const unsigned vectors = norm ? 2u + (bias && lists_bias(onnx, node)) : bias && had_bias(node);

		if (!vectors || !is_without || !strcmp(node->op_type, "ConvTranspose"))
			continue;
		all += vectors * outputs_of(onnx, node);
		n++;
	}
	if (n)
		psd_text_add(&onnx->remarks, "values of 0: %u layers lost a bias or norm with %llu parameters\n", n,
			     (unsigned long long)all);
	return all;
}

/* True if the node's text in PyTorch's newer exporter has the tensor as a buffer: "%b_layer_mask" for "layer.mask". */
static bool is_buffer(const Onnx__Node *node, const char *tensor)
{
	const char *text = metadata(node, "pkg.torch.onnx.fx_node");

	while ((text = strstr(text, "%b_")) != NULL) {
		size_t n = 0;

		for (text += 3; tensor[n] && (text[n] == tensor[n] || (text[n] == '_' && tensor[n] == '.')); n++)
			;
		if (n && !tensor[n] && !strchr("_0123456789abcdefghijklmnopqrstuvwxyz", text[n]))
			return true;
	}
	return false;
}

/* Returns the number of values of buffers, which PyTorch does not train and psd does. */
static uint64_t add_buffers(struct psd_onnx *onnx)
{
	uint64_t all = 0;

	for (size_t i = 0; i < onnx->graph->n_node; i++) {
		const Onnx__Node *node = onnx->graph->node[i];

		for (size_t k = 0; k < node->n_input; k++) {
			const unsigned number = psd_onnx_number_of(onnx, node->input[k]);

			if (!number || onnx->producers[number] || !onnx->used[number] || is_statistics(node, k) ||
			    !onnx->values[number].origin || !is_learned(onnx->values[number].origin) ||
			    !(is_buffer(node, node->input[k]) ||
			      psd_onnx_is_listed(onnx, node->input[k], PSD_ONNX_LISTED_BUFFER)))
				continue;
			all += onnx->used[number];
			onnx->used[number] = 0; /* further readers do not count it again */
		}
	}
	if (all)
		psd_text_add(&onnx->remarks, "buffers: %llu values that PyTorch does not train count as parameters\n",
			     (unsigned long long)all);
	return all;
}

/* True for a tensor of a module, such as 'layer.scale'. */
static bool is_module_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && dot[1] && !strpbrk(name, ":/") && !strpbrk(dot, "0123456789");
}

/* Parameters of one value act as constants here. */
static uint64_t add_single(struct psd_onnx *onnx)
{
	uint64_t all = 0;

	for (size_t i = 0; i < onnx->graph->n_initializer; i++) {
		const Onnx__Tensor *tensor = onnx->graph->initializer[i];
		const char *name = tensor->name ? tensor->name : "";
		const unsigned number = psd_onnx_number_of(onnx, name);

		if (psd_onnx_is_real(tensor->data_type) && count(tensor) == 1 && is_module_name(name) &&
		    !psd_onnx_is_listed(onnx, name, PSD_ONNX_LISTED_BUFFER) && onnx->n_consumers[number] &&
		    !onnx->used[number])
			all++;
	}
	for (size_t i = 0; i < onnx->graph->n_node; i++) { /* other names of equal ones */
		const Onnx__Node *node = onnx->graph->node[i];
		const struct psd_onnx_value *value = psd_onnx_named(onnx, node->output[0]);

		all += !strcmp(node->op_type, "Identity") && is_module_name(node->output[0]) && value->origin &&
		       value->is_real && psd_onnx_elements(value) == 1 && onnx->n_consumers[value - onnx->values] > 0;
	}
	if (all)
		psd_text_add(&onnx->remarks, "single values: %llu parameters are constants here\n",
			     (unsigned long long)all);
	return all;
}

/* ---- constants that an exporter computed ---- */

/* Says which constants stand for parameters that the file does not have as they were. */
static void add_computed(struct psd_onnx *onnx)
{
	const char *first = NULL;
	uint64_t values = 0;
	unsigned n = 0;

	for (size_t i = 0; i < onnx->graph->n_initializer; i++) {
		const char *name = onnx->graph->initializer[i]->name ? onnx->graph->initializer[i]->name : "";
		const struct psd_onnx_value *value = psd_onnx_named(onnx, name);

		if (!value->is_computed || value->is_table || !onnx->used[value - onnx->values])
			continue;
		first = n++ ? first : name;
		values += onnx->used[value - onnx->values];
	}
	if (n) {
		psd_text_add(&onnx->remarks, "computed by the exporter: %u constants, first '", n);
		psd_text_add_plain(&onnx->remarks, first);
		psd_text_add(&onnx->remarks, "', count %llu parameters, PyTorch may count others\n",
			     (unsigned long long)values);
	}
}

static void add_tables(struct psd_onnx *onnx)
{
	uint64_t values = 0;

	for (unsigned v = 0; v < onnx->n_values && onnx->n_tables; v++)
		values += onnx->table_values[v];
	if (onnx->n_tables)
		psd_text_add(&onnx->remarks,
			     "written-out tables of positions: %u count %llu parameters, rows that no position reads "
			     "are not in the file\n",
			     onnx->n_tables, (unsigned long long)values);
	if (onnx->n_equal_tables)
		psd_text_add(
			&onnx->remarks,
			"biases of attention with one number everywhere: %u count no parameters, PyTorch may count "
			"tables\n",
			onnx->n_equal_tables);
}

/* Says which sizes and branches depend on samples. */
static void add_bounds(struct psd_onnx *onnx)
{
	if (onnx->n_bounds) {
		psd_text_add(&onnx->doubts, "the size of %u outputs depends on values, first of '", onnx->n_bounds);
		psd_text_add_plain(&onnx->doubts, onnx->first_bound->name ? onnx->first_bound->name : "");
		psd_text_add(&onnx->doubts, "' (%.40s): the largest size counts\n", onnx->first_bound->op_type);
	}
	if (onnx->n_open_conditions)
		psd_text_add(&onnx->doubts, "%u conditions depend on values: the branch with more nodes counts\n",
			     onnx->n_open_conditions);
}

/* Says how many names of the exporter's list are missing, those of tied and equal parameters among them. */
static void add_missing(struct psd_onnx *onnx)
{
	if (onnx->n_missing) {
		psd_text_add(&onnx->remarks, "not in the file: %u of PyTorch's %u parameters, first '", onnx->n_missing,
			     onnx->n_parameters);
		psd_text_add_plain(&onnx->remarks, onnx->first_missing);
		psd_text_add(&onnx->remarks, "': they equal others, or no output needs them\n");
	}
}

/* ---- ties ---- */

static void add_ties(struct psd_onnx *onnx)
{
	if (onnx->n_ties > PSD_ONNX_TIES_SAID)
		psd_text_add(&onnx->remarks, "tied: %u layers in all\n", onnx->n_ties);
	if (onnx->n_copies) {
		psd_text_add(&onnx->doubts, "the file has %s of %u layers once (%llu parameters), first of '",
			     onnx->n_copies > 1 ? "the matrices" : "the matrix", onnx->n_copies,
			     (unsigned long long)onnx->copied_parameters);
		psd_text_add_plain(&onnx->doubts, onnx->first_copy);
		psd_text_add(&onnx->doubts, "': each layer has its own here, model.tied changes that\n");
	}
	if (onnx->n_foreign) {
		psd_text_add(&onnx->doubts, "%u operators of other domains than ONNX's count as bytes alone, first '",
			     onnx->n_foreign);
		psd_text_add_plain(&onnx->doubts, onnx->first_foreign->op_type);
		psd_text_add(&onnx->doubts, "' in '");
		psd_text_add_plain(&onnx->doubts, onnx->first_foreign->domain);
		psd_text_add(&onnx->doubts, "'\n");
	}
	if (onnx->n_open) {
		psd_text_add(&onnx->doubts, "the file has no values to compare with the table of '");
		psd_text_add_plain(&onnx->doubts, onnx->build.graph.layers[onnx->first_open].name);
		psd_text_add(&onnx->doubts, "': a head of its size is not tied to it, model.tied changes that\n");
	}
}

void psd_onnx_add_remarks(struct psd_onnx *onnx)
{
	const uint64_t parameters = onnx->build.graph.parameters;
	uint64_t more, fewer;

	add_ties(onnx);
	add_bounds(onnx);
	more = add_folded(onnx);
	more += add_zeros(onnx);
	more += add_single(onnx);
	more += add_rows(onnx);
	more += add_left_out(onnx);
	fewer = add_buffers(onnx);
	add_computed(onnx);
	add_tables(onnx);
	add_missing(onnx);
	if (more || fewer)
		psd_text_add(&onnx->remarks, "PyTorch counts %llu parameters\n",
			     (unsigned long long)(parameters + more - fewer));
}
