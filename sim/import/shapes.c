#include "sim/import/shapes.h"

#include <stdlib.h>
#include <string.h>

/* ---- shapes ---- */

static void close_shape(struct psd_input_shape *shape)
{
	shape->elements = shape->n_dims > 0;
	for (unsigned d = 0; d < shape->n_dims; d++) {
		if (shape->dims[d] && shape->elements > (UINT64_C(1) << 60) / shape->dims[d])
			shape->elements = 0;
		shape->elements *= shape->dims[d];
	}
}

/* State of reading "[[8,16],[[4,16],[4]],[]]": inputs, or lists of tensors, in one list. */
struct shape_reader {
	struct psd_shapes *shapes;
	struct psd_input_shape tensor; /* the innermost list */
	unsigned depth;
	bool is_flat; /* the input is a tensor */
	uint64_t sum; /* values of the tensors of an input that is a list */
};

static void open_list(struct shape_reader *reader)
{
	reader->depth++;
	reader->tensor = (struct psd_input_shape){.n_dims = 0};
	if (reader->depth == 2) {
		reader->is_flat = true;
		reader->sum = 0;
	}
	reader->is_flat &= reader->depth <= 2;
}

static void close_list(struct shape_reader *reader)
{
	struct psd_shapes *shapes = reader->shapes;

	close_shape(&reader->tensor);
	if (reader->depth == 3)
		reader->sum += reader->tensor.elements;
	if (reader->depth == 2 && shapes->n_inputs < PSD_SHAPES_MAX)
		shapes->inputs[shapes->n_inputs++] =
			reader->is_flat ? reader->tensor : (struct psd_input_shape){.n_dims = 0};
	if (reader->depth == 2 && !reader->is_flat)
		shapes->list_elements = reader->sum;
	reader->tensor = (struct psd_input_shape){.n_dims = 0};
	reader->depth -= reader->depth > 0;
}

struct psd_shapes psd_shapes_read(const struct psd_trace *trace, const struct psd_trace_op *op)
{
	struct psd_shapes shapes = {.n_inputs = 0};
	struct shape_reader reader = {.shapes = &shapes};

	for (const char *at = psd_trace_string(trace, op->dims); *at;) {
		char *end = NULL;

		if (*at >= '0' && *at <= '9') {
			const unsigned long long value = strtoull(at, &end, 10);

			if (reader.tensor.n_dims < PSD_SHAPES_DIMS_MAX)
				reader.tensor.dims[reader.tensor.n_dims++] = value;
			else
				reader.tensor.dims[0] = 0; /* more axes than any operator with a weight has */
		} else if (*at == '[') {
			open_list(&reader);
		} else if (*at == ']') {
			close_list(&reader);
		}
		at = end ? end : at + 1;
	}
	return shapes;
}

uint64_t psd_operator_list_parameters(const char *name, const struct psd_shapes *shapes)
{
	static const char *const names[] = {"aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return shapes->list_elements;
	return 0;
}

/* ---- operators ---- */

static const struct psd_operator_row rows[] = {
	{"aten::conv_transpose", {"deconv"}},
	{"aten::conv", {"conv"}},
	{"aten::_convolution", {"conv"}},
	{"aten::cudnn_convolution", {"conv"}},
	{"aten::mkldnn_convolution", {"conv"}},
	{"aten::linear", {"inner-product", "conv"}},
	{"aten::addmm", {"inner-product", "conv"}},
	{"aten::mm", {"inner-product", "conv"}},
	{"aten::matmul", {"inner-product", "conv", "attention"}},
	{"aten::batch_norm", {"batch-norm"}},
	{"aten::native_batch_norm", {"batch-norm"}},
	{"aten::layer_norm", {"layer-norm"}},
	{"aten::native_layer_norm", {"layer-norm"}},
	{"aten::rms_norm", {"rms-norm"}},
	{"aten::_fused_rms_norm", {"rms-norm"}},
	{"aten::embedding", {"embedding"}},
	{"aten::scaled_dot_product_attention", {"attention"}},
	{"aten::_scaled_dot_product", {"attention"}},
	{"aten::cross_entropy_loss", {"softmax-loss"}},
	{"aten::nll_loss", {"softmax-loss"}},
	{"aten::prelu", {"prelu"}},
	{"aten::relu", {"relu"}},
	{"aten::leaky_relu", {"relu"}},
	{"aten::clamp_min", {"relu"}},
	{"aten::max_pool", {"pool"}},
	{"aten::avg_pool", {"pool", "global-pool"}},
	{"aten::adaptive_", {"global-pool", "pool"}},
	{"aten::mean", {"global-pool", "pool"}},
	{"aten::gelu", {"gelu"}},
	{"aten::silu", {"silu"}},
	{"aten::sigmoid", {"sigmoid"}},
	{"aten::tanh", {"tanh"}},
	{"aten::elu", {"elu"}},
	{"aten::softplus", {"softplus"}},
	{"aten::hardtanh", {"clip"}},
	{"aten::clamp", {"clip"}},
	{"aten::dropout", {"dropout"}},
	{"aten::native_dropout", {"dropout"}},
	{"aten::feature_dropout", {"dropout"}},
	{"aten::log_softmax", {"softmax-loss"}},
	{"aten::softmax", {"softmax"}},
	{"aten::cat", {"concat"}},
	{"aten::concat", {"concat"}},
	{"aten::add", {"add", "position", "affine"}},
	{"aten::mul", {"multiply", "scale", "affine"}},
	{"aten::div", {"affine"}},
	{"aten::pow", {"power"}},
	{"aten::exp", {"exp"}},
	{"aten::abs", {"abs"}},
	{"aten::upsample_", {"resize"}},
	{"aten::flatten", {"reshape"}},
	{"aten::reshape", {"reshape"}},
	{"aten::view", {"reshape"}},
	{"aten::permute", {"permute"}},
	{"aten::transpose", {"permute"}},
	{"aten::split", {"slice"}},
	{"aten::slice", {"slice"}},
	{"aten::channel_shuffle", {"shuffle"}},
};

const struct psd_operator_row *psd_operator_find(const char *name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strncmp(name, rows[i].name, strlen(rows[i].name)))
			return &rows[i];
	return NULL;
}

bool psd_operator_has_weight(const struct psd_operator_row *row)
{
	static const char *const kinds[] = {"conv",	  "deconv",   "inner-product", "batch-norm",
					    "layer-norm", "rms-norm", "embedding"};

	for (size_t i = 0; row && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(row->kinds[0], kinds[i]))
			return true;
	return false;
}

static const struct psd_input_shape *input_of(const struct psd_shapes *shapes, unsigned number, unsigned n_dims)
{
	const struct psd_input_shape *shape = &shapes->inputs[number];

	return number < shapes->n_inputs && shape->n_dims == n_dims && shape->elements ? shape : NULL;
}

/* The vector number `n` (0 or 1) behind the first input: scale and shift of a norm. */
static const struct psd_input_shape *vector_of(const struct psd_shapes *shapes, unsigned n)
{
	for (unsigned i = 1; i < shapes->n_inputs; i++)
		if (shapes->inputs[i].n_dims == 1 && shapes->inputs[i].elements && !n--)
			return &shapes->inputs[i];
	return NULL;
}

struct psd_operator_parameters psd_operator_parameters(const struct psd_operator_row *row, const char *name,
						       const struct psd_shapes *shapes)
{
	struct psd_operator_parameters found = {NULL, NULL};
	const char *kind = psd_operator_has_weight(row) ? row->kinds[0] : "";

	if (!strcmp(kind, "conv") || !strcmp(kind, "deconv")) {
		for (unsigned n_dims = 3; n_dims <= 5 && !found.weight; n_dims++)
			found.weight = input_of(shapes, 1, n_dims);
		found.bias = input_of(shapes, 2, 1);
	} else if (!strcmp(name, "aten::linear")) {
		found = (struct psd_operator_parameters){input_of(shapes, 1, 2), input_of(shapes, 2, 1)};
	} else if (!strcmp(name, "aten::addmm")) {
		found = (struct psd_operator_parameters){input_of(shapes, 2, 2), input_of(shapes, 0, 1)};
	} else if (!strcmp(kind, "embedding")) {
		found.weight = input_of(shapes, 0, 2);
	} else if (strstr(kind, "-norm")) {
		found = (struct psd_operator_parameters){vector_of(shapes, 0), vector_of(shapes, 1)};
	}
	return found;
}
