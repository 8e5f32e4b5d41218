/* Random chains of nodes that reshape, reorder, cut and join. Plain loops compute the nodes as ONNX defines them, and
 * other loops compute the layers that they become. The input of the loss must be the same, value by value. */
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/model/onnx/onnx_file.h"
#include "tests/test_with.h"

enum { AXES_MAX = 6, VALUES_MAX = 1024, TENSORS_MAX = 32, TEXT_BYTES = 16384 };

/* A tensor of the whole batch, row by row; axis 0 is the batch's. */
struct tensor {
	unsigned n, dims[AXES_MAX];
	unsigned values[VALUES_MAX];
};

struct chain {
	uint64_t state;
	unsigned batch;
	struct tensor tensors[TENSORS_MAX];
	unsigned n_tensors;
	unsigned n_nodes;
	char constants[TEXT_BYTES], nodes[TEXT_BYTES];
};

static struct chain chain;

static unsigned random_below(unsigned n)
{
	chain.state = chain.state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(chain.state >> 33) % n;
}

static void append(char text[TEXT_BYTES], const char *format, ...) __attribute__((format(printf, 2, 3)));

static void append(char text[TEXT_BYTES], const char *format, ...)
{
	const size_t n = strlen(text);
	va_list arguments;

	va_start(arguments, format);
	cr_assert_lt(vsnprintf(text + n, TEXT_BYTES - n, format, arguments), (int)(TEXT_BYTES - n));
	va_end(arguments);
}

static unsigned elements(const struct tensor *tensor)
{
	unsigned n = 1;

	for (unsigned a = 0; a < tensor->n; a++)
		n *= tensor->dims[a];
	return n;
}

static void index_of(const struct tensor *tensor, unsigned e, unsigned index[])
{
	for (unsigned a = tensor->n; a-- > 0; e /= tensor->dims[a])
		index[a] = e % tensor->dims[a];
}

static unsigned value_at(const struct tensor *tensor, const unsigned index[])
{
	unsigned e = 0;

	for (unsigned a = 0; a < tensor->n; a++)
		e = e * tensor->dims[a] + index[a];
	return tensor->values[e];
}

/* ---- nodes: each writes its text and adds its outputs ---- */

/* Tensor t is called t<t>; constants are called after the node. */
static struct tensor *add(void)
{
	struct tensor *tensor = &chain.tensors[chain.n_tensors++];

	cr_assert_leq(chain.n_tensors, (unsigned)TENSORS_MAX);
	return tensor;
}

static void say_constant(char kind, unsigned n, const unsigned numbers[])
{
	append(chain.constants, "%c%u: i64[%u] =", kind, chain.n_nodes, n);
	for (unsigned i = 0; i < n; i++)
		append(chain.constants, " %u", numbers[i]);
	append(chain.constants, "\n");
}

static void say_node(const char *op, unsigned of, const char *others)
{
	append(chain.nodes, "t%u = %s(t%u%s)", chain.n_tensors - 1, op, of, others);
}

static void reshape(unsigned of, const unsigned dims[], unsigned n)
{
	const struct tensor *from = &chain.tensors[of];
	struct tensor *to = add();
	char name[32];

	memcpy(to->values, from->values, sizeof(to->values));
	memcpy(to->dims, dims, n * sizeof(*dims));
	to->n = n;
	snprintf(name, sizeof(name), ", s%u", chain.n_nodes);
	say_constant('s', n, dims);
	say_node("Reshape", of, name);
	append(chain.nodes, "\n");
}

static void reshape_anyhow(unsigned of)
{
	unsigned rest = elements(&chain.tensors[of]) / chain.batch, dims[AXES_MAX] = {chain.batch}, n = 1;

	while (n < AXES_MAX - 1 && rest > 1) {
		unsigned side = 1 + random_below(rest < 6 ? rest : 6);

		while (rest % side)
			side--;
		dims[n++] = side;
		rest /= side;
	}
	if (rest > 1 || n < 2)
		dims[n++] = rest;
	reshape(of, dims, n);
}

static void transpose(unsigned of)
{
	const struct tensor *from = &chain.tensors[of];
	struct tensor *to = add();
	unsigned order[AXES_MAX] = {0}, index[AXES_MAX], at[AXES_MAX];

	for (unsigned a = 1; a < from->n; a++) {
		const unsigned other = 1 + random_below(a);

		order[a] = order[other];
		order[other] = a;
	}
	to->n = from->n;
	for (unsigned a = 0; a < to->n; a++)
		to->dims[a] = from->dims[order[a]];
	for (unsigned e = 0; e < elements(to); e++) {
		index_of(to, e, index);
		for (unsigned a = 0; a < to->n; a++)
			at[order[a]] = index[a];
		to->values[e] = value_at(from, at);
	}
	say_node("Transpose", of, "");
	append(chain.nodes, " perm=[");
	for (unsigned a = 0; a < to->n; a++)
		append(chain.nodes, "%u,", order[a]);
	append(chain.nodes, "]\n");
}

/* Without the axis where it is squeezed. */
static void take(unsigned of, unsigned axis, unsigned first, unsigned n, unsigned step, bool is_squeezed)
{
	const struct tensor *from = &chain.tensors[of];
	struct tensor *to = add();
	unsigned index[AXES_MAX];

	*to = *from;
	to->dims[axis] = n;
	for (unsigned e = 0; e < elements(to); e++) {
		index_of(to, e, index);
		index[axis] = first + index[axis] * step;
		to->values[e] = value_at(from, index);
	}
	if (is_squeezed)
		memmove(to->dims + axis, to->dims + axis + 1, (--to->n - axis) * sizeof(*to->dims));
}

/* Channels as blocks of 2 by 2 positions, or the reverse; a transpose if there are no four axes that divide. */
static void regroup_blocks(unsigned of)
{
	const struct tensor *from = &chain.tensors[of];
	const unsigned *sides = from->dims, kind = random_below(3);
	struct tensor *to;
	unsigned index[AXES_MAX];

	if (from->n != 4 || (kind < 2 ? sides[1] % 4 : sides[2] % 2 || sides[3] % 2)) {
		transpose(of);
		return;
	}
	to = add();
	to->n = 4;
	to->dims[0] = sides[0];
	to->dims[1] = kind < 2 ? sides[1] / 4 : sides[1] * 4;
	to->dims[2] = kind < 2 ? sides[2] * 2 : sides[2] / 2;
	to->dims[3] = kind < 2 ? sides[3] * 2 : sides[3] / 2;
	for (unsigned e = 0; e < elements(to); e++) {
		unsigned c, block;

		index_of(to, e, index);
		c = index[1];
		block = index[2] % 2 * 2 + index[3] % 2; /* one of its block's four values */
		if (kind < 2) {
			index[1] = kind ? c * 4 + block : block * to->dims[1] + c;
			index[2] /= 2;
			index[3] /= 2;
		} else {
			block = c / sides[1];
			index[1] = c % sides[1];
			index[2] = index[2] * 2 + block / 2;
			index[3] = index[3] * 2 + block % 2;
		}
		to->values[e] = value_at(from, index);
	}
	say_node(kind < 2 ? "DepthToSpace" : "SpaceToDepth", of, "");
	append(chain.nodes, " blocksize=2%s\n", kind == 1 ? " mode=\"CRD\"" : "");
}

static void slice(unsigned of)
{
	const struct tensor *from = &chain.tensors[of];
	const unsigned axis = 1 + random_below(from->n - 1), side = from->dims[axis], step = 1 + !random_below(4);
	const unsigned first = random_below(side), n = 1 + random_below((side - first - 1) / step + 1);
	const unsigned end = first + (n - 1) * step + 1;
	char names[64];

	take(of, axis, first, n, step, false);
	say_constant('b', 1, &first);
	say_constant('e', 1, &end);
	say_constant('a', 1, &axis);
	say_constant('p', 1, &step);
	snprintf(names, sizeof(names), ", b%u, e%u, a%u, p%u", chain.n_nodes, chain.n_nodes, chain.n_nodes,
		 chain.n_nodes);
	say_node("Slice", of, names);
	append(chain.nodes, "\n");
}

static void gather(unsigned of)
{
	const struct tensor *from = &chain.tensors[of];
	const unsigned axis = 1 + random_below(from->n - 1), place = random_below(from->dims[axis]);
	char name[32];

	if (from->n < 3)
		return;
	take(of, axis, place, 1, 1, true);
	append(chain.constants, "g%u: i64[] = %d\n", chain.n_nodes,
	       random_below(2) ? (int)place : (int)place - (int)from->dims[axis]);
	snprintf(name, sizeof(name), ", g%u", chain.n_nodes);
	say_node("Gather", of, name);
	append(chain.nodes, " axis=%u\n", axis);
}

static void split(unsigned of)
{
	const struct tensor *from = &chain.tensors[of];
	const unsigned axis = 1 + random_below(from->n - 1), side = from->dims[axis];
	unsigned sizes[2];

	if (side < 2)
		return;
	sizes[0] = 1 + random_below(side - 1);
	sizes[1] = side - sizes[0];
	take(of, axis, 0, sizes[0], 1, false);
	take(of, axis, sizes[0], sizes[1], 1, false);
	say_constant('z', 2, sizes);
	append(chain.nodes, "t%u, t%u = Split(t%u, z%u) axis=%u\n", chain.n_tensors - 2, chain.n_tensors - 1, of,
	       chain.n_nodes, axis);
}

static void squeeze(unsigned of)
{
	const struct tensor *from = &chain.tensors[of];
	struct tensor *to;
	unsigned axis = 1;
	char name[32];

	while (axis < from->n && from->dims[axis] != 1)
		axis++;
	if (axis >= from->n || from->n < 3)
		return;
	to = add();
	*to = *from;
	memmove(to->dims + axis, to->dims + axis + 1, (--to->n - axis) * sizeof(*to->dims));
	say_constant('q', 1, &axis);
	snprintf(name, sizeof(name), ", q%u", chain.n_nodes);
	say_node("Squeeze", of, name);
	append(chain.nodes, "\n");
}

static void unsqueeze(unsigned of)
{
	const struct tensor *from = &chain.tensors[of];
	const unsigned axis = 1 + random_below(from->n);
	struct tensor *to;
	char name[32];

	if (from->n == AXES_MAX)
		return;
	to = add();
	*to = *from;
	memmove(to->dims + axis + 1, to->dims + axis, (to->n++ - axis) * sizeof(*to->dims));
	to->dims[axis] = 1;
	say_constant('u', 1, &axis);
	snprintf(name, sizeof(name), ", u%u", chain.n_nodes);
	say_node("Unsqueeze", of, name);
	append(chain.nodes, "\n");
}

/* With any tensor that fits. */
static void concat(unsigned of)
{
	const struct tensor *one = &chain.tensors[of];
	const unsigned axis = 1 + random_below(one->n - 1), with = random_below(chain.n_tensors);
	const struct tensor *other = &chain.tensors[with];
	unsigned index[AXES_MAX];
	struct tensor *to;

	for (unsigned a = 0; a < one->n; a++)
		if (other->n != one->n || (a != axis && other->dims[a] != one->dims[a]))
			return;
	if (elements(one) + elements(other) > VALUES_MAX)
		return;
	to = add();
	*to = *one;
	to->dims[axis] = one->dims[axis] + other->dims[axis];
	for (unsigned e = 0; e < elements(to); e++) {
		const struct tensor *from = one;

		index_of(to, e, index);
		if (index[axis] >= one->dims[axis]) {
			index[axis] -= one->dims[axis];
			from = other;
		}
		to->values[e] = value_at(from, index);
	}
	append(chain.nodes, "t%u = Concat(t%u, t%u) axis=%u\n", chain.n_tensors - 1, of, with, axis);
}

/* Sum of two tensors with different layouts. */
static void sum(unsigned of)
{
	const unsigned with = random_below(chain.n_tensors);
	const struct tensor *one = &chain.tensors[of], *other = &chain.tensors[with];
	struct tensor *to;

	if (one->n != other->n || memcmp(one->dims, other->dims, one->n * sizeof(*one->dims)) != 0)
		return;
	to = add();
	*to = *one;
	for (unsigned e = 0; e < elements(to); e++)
		to->values[e] += other->values[e];
	append(chain.nodes, "t%u = Add(t%u, t%u)\n", chain.n_tensors - 1, of, with);
}

/* ---- layers ---- */

static void run_permute(const struct psd_layer *layer, struct psd_shape in, const unsigned *from, unsigned *to)
{
	const unsigned sides[3] = {in.channels, in.height, in.width}, *order = layer->settings.permute.order;
	const struct psd_shape out = layer->shape;

	for (unsigned c = 0; c < out.channels; c++)
		for (unsigned h = 0; h < out.height; h++)
			for (unsigned w = 0; w < out.width; w++) {
				unsigned at[3];

				at[order[0] - 1] = c;
				at[order[1] - 1] = h;
				at[order[2] - 1] = w;
				*to++ = from[(at[0] * sides[1] + at[1]) * sides[2] + at[2]];
			}
}

static unsigned values_of(const struct psd_layer *layer)
{
	return layer->shape.channels * layer->shape.height * layer->shape.width;
}

/* Computes one sample: fills values[] of each layer but the loss. There may be many layers. */
static void run_layers(const struct psd_graph *graph, const unsigned *sample, unsigned (*values)[VALUES_MAX])
{
	for (unsigned i = 0; i + 1 < graph->n_layers; i++) {
		const struct psd_layer *layer = &graph->layers[i];
		const struct psd_layer *in = layer->n_inputs ? &graph->layers[layer->inputs[0]] : NULL;
		const unsigned *from = in ? values[layer->inputs[0]] : sample;
		unsigned n = 0;

		cr_assert_leq(values_of(layer), (unsigned)VALUES_MAX);
		if (layer->kind == &psd_layer_permute) {
			run_permute(layer, in->shape, from, values[i]);
		} else if (layer->kind == &psd_layer_slice) {
			memcpy(values[i], from + layer->settings.slice.first * in->shape.height * in->shape.width,
			       values_of(layer) * sizeof(**values));
		} else if (layer->kind == &psd_layer_concat) {
			for (unsigned k = 0; k < layer->n_inputs; k++) {
				const struct psd_layer *part = &graph->layers[layer->inputs[k]];

				cr_assert(part->shape.height == layer->shape.height &&
					  part->shape.width == layer->shape.width);
				memcpy(values[i] + n, values[layer->inputs[k]], values_of(part) * sizeof(**values));
				n += values_of(part);
			}
		} else if (layer->kind == &psd_layer_add) {
			for (unsigned v = 0; v < values_of(layer); v++)
				values[i][v] = from[v] + values[layer->inputs[1]][v];
		} else if (layer->kind == &psd_layer_affine) {
			for (unsigned v = 0; v < values_of(layer); v++)
				values[i][v] = (unsigned)layer->settings.linear.factor * from[v];
		} else {
			cr_assert(layer->kind == &psd_layer_input || layer->kind == &psd_layer_reshape, "%s",
				  layer->kind->name);
			memcpy(values[i], from, values_of(layer) * sizeof(**values));
		}
	}
}

/* ---- both ---- */

/* A sample as psd's input has it: maps with few channels at the end are taken for maps whose channels come last. */
static void sample_of(const struct tensor *input, unsigned b, unsigned *sample)
{
	const unsigned n = elements(input) / chain.batch, channels = input->dims[3];
	const bool is_last = input->n == 4 && channels <= 4 && input->dims[1] > 4 && input->dims[2] > 4;

	for (unsigned e = 0; e < n; e++)
		sample[is_last ? e % channels * (n / channels) + e / channels : e] = input->values[b * n + e];
}

static void begin(unsigned seed, unsigned batch)
{
	static const unsigned sides[] = {1, 2, 3, 4, 5, 6};
	struct tensor *input;

	memset(&chain, 0, sizeof(chain));
	chain.state = seed;
	chain.batch = batch;
	input = add();
	input->n = 2 + random_below(3);
	for (unsigned a = 0; a < input->n; a++)
		input->dims[a] = a ? sides[random_below(6)] : batch;
	for (unsigned e = 0; e < elements(input); e++)
		input->values[e] = (e + 1) * 2654435761u; /* sums of these differ */
	append(chain.nodes, "input t0 f32[");
	for (unsigned a = 0; a < input->n; a++)
		append(chain.nodes, "%u,", input->dims[a]);
	append(chain.nodes, "]\n");
}

/* Chains of `most` nodes, mostly upon the newest tensor. */
static void make_chain(unsigned most)
{
	static void (*const nodes[])(unsigned) = {reshape_anyhow, transpose, slice,  split,  gather,	    squeeze,
						  unsqueeze,	  sum,	     concat, concat, regroup_blocks};

	for (chain.n_nodes = 0; chain.n_nodes < most; chain.n_nodes++) {
		const unsigned of = random_below(3) ? chain.n_tensors - 1 : random_below(chain.n_tensors);

		nodes[random_below(11)](of);
	}
	reshape(chain.n_tensors - 1,
		(const unsigned[]){chain.batch, elements(&chain.tensors[chain.n_tensors - 1]) / chain.batch}, 2);
}

/* False: psd does not know how. */
static bool check_chain(unsigned seed)
{
	static char text[2 * TEXT_BYTES];
	const struct tensor *input = &chain.tensors[0], *output = &chain.tensors[chain.n_tensors - 1];
	const unsigned n_out = elements(output) / chain.batch;
	unsigned sample[VALUES_MAX];
	unsigned(*values)[VALUES_MAX];
	const struct psd_layer *last;
	struct psd_graph graph;
	struct psd_error err = {0};

	if (n_out == 1) /* no choice of classes, so that there is no loss to look at */
		return true;
	snprintf(text, sizeof(text), "%s%s", chain.constants, chain.nodes);
	if (onnx_file_parse(text, &graph, &err))
		return false;
	last = &graph.layers[graph.n_layers - 1];
	cr_assert_eq(values_of(last), n_out, "seed %u\n%s", seed, text);
	values = calloc(graph.n_layers, sizeof(*values));
	cr_assert_not_null(values);
	for (unsigned b = 0; b < chain.batch; b++) {
		sample_of(input, b, sample);
		run_layers(&graph, sample, values);
		cr_assert(!memcmp(values[last->inputs[0]], output->values + b * n_out, n_out * sizeof(**values)),
			  "seed %u, sample %u\n%s", seed, b, text);
	}
	free(values);
	psd_graph_release(&graph);
	return true;
}

/* The others take every second one of an odd number of positions, or regroup axes that are no product. */
#define LEAST_KNOWN 0.95

static void check_chains(unsigned batch, unsigned most, unsigned seeds)
{
	unsigned n_known = 0;

	for (unsigned seed = 1; seed <= seeds; seed++) {
		begin(seed, batch);
		make_chain(1 + random_below(most));
		n_known += check_chain(seed);
	}
	cr_assert_geq(n_known, LEAST_KNOWN * seeds, "%u of %u", n_known, seeds);
}

TEST_ROW(onnx_layout, short_chains_bring_the_values_where_onnx_does, check_chains(1, 4, 4000))
TEST_ROW(onnx_layout, long_chains_bring_the_values_where_onnx_does, check_chains(1, 14, 3000))
TEST_ROW(onnx_layout, samples_of_a_batch_in_the_file_stay_apart, check_chains(3, 10, 3000))
