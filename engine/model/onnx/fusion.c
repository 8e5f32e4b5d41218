/* Fusion of nodes: normalisation over the last axis, and rotation of queries and keys by their positions. The first
 * node finds the others and marks them as done. */
#include <math.h>
#include <string.h>

#include "engine/model/layer.h"
#include "engine/model/onnx/parts.h"

/* ---- chains of nodes ---- */

enum { CHAIN_MAX = 12 };

/* Nodes that follow each other from a value on. */
struct chain {
	struct psd_onnx *onnx;
	const char *value; /* output of the last node */
	unsigned nodes[CHAIN_MAX];
	unsigned n;
};

/* The node, if it has that operator, at most two inputs and one output; otherwise NULL. */
static const Onnx__Node *find_plain(const struct psd_onnx *onnx, unsigned node, const char *op)
{
	const Onnx__Node *found = onnx->graph->node[node];
	const bool is = !strcmp(found->op_type, op) && found->n_input >= 1 && found->n_input <= 2 &&
			found->n_output == 1 && !onnx->is_done[node];

	return is ? found : NULL;
}

/* Appends the only consumer of the value if it has that operator; *other: its other input, "" if there is none. */
static bool follow(struct chain *chain, const char *op, const char **other)
{
	const unsigned number = psd_onnx_number_of(chain->onnx, chain->value);
	const unsigned reader = chain->onnx->consumers[number];

	if (chain->onnx->n_consumers[number] != 1 || chain->n == CHAIN_MAX)
		return false;
	const Onnx__Node *node = find_plain(chain->onnx, reader, op);
	if (!node)
		return false;
	*other = node->n_input < 2 ? "" : node->input[strcmp(node->input[0], chain->value) == 0];
	chain->nodes[chain->n++] = reader;
	chain->value = node->output[0];
	return true;
}

static bool follow_scalar(struct chain *chain, const char *op, double *number)
{
	const char *other;
	struct chain next = *chain;

	if (!follow(&next, op, &other) || !psd_onnx_is_scalar(chain->onnx, psd_onnx_named(chain->onnx, other), number))
		return false;
	*chain = next;
	return true;
}

/* Marks the nodes as done and sets the output of the last one. */
static void finish(const struct chain *chain, const struct psd_onnx_value *result)
{
	for (unsigned i = 0; i < chain->n; i++)
		chain->onnx->is_done[chain->nodes[i]] = true;
	*psd_onnx_named(chain->onnx, chain->value) = *result;
}

/* ---- normalisation ---- */

/* Appends the next node if it has that operator and a parameter for each position of the last axis, *name. */
static bool follow_learned(struct chain *chain, const char *op, uint64_t positions, const char **name)
{
	struct chain next = *chain;
	const char *other;

	if (!follow(&next, op, &other))
		return false;
	const struct psd_onnx_value *learned = psd_onnx_named(chain->onnx, other);
	if (!psd_onnx_is_parameter(learned) || psd_onnx_elements(learned) != positions || learned->n_dims == 0 ||
	    learned->dims[learned->n_dims - 1] != positions)
		return false;
	*name = other;
	*chain = next;
	return true;
}

/* Appends 1 / sqrt(mean + epsilon) times the value named *of. */
static bool follow_root(struct chain *chain, double *epsilon, const char **of)
{
	double exponent;

	if (!follow_scalar(chain, "Add", epsilon))
		return false;
	if (follow_scalar(chain, "Pow", &exponent))
		return exponent == -0.5 && follow(chain, "Mul", of);
	if (!follow(chain, "Sqrt", of))
		return false;
	if (follow(chain, "Reciprocal", of))
		return follow(chain, "Mul", of);
	return follow(chain, "Div", of) && !strcmp(chain->onnx->graph->node[chain->nodes[chain->n - 1]]->input[0], *of);
}

static enum psd_status put_norm(struct chain *chain, const struct psd_layer_kind *kind, struct psd_onnx_value data,
				double epsilon)
{
	struct psd_onnx *onnx = chain->onnx;
	const unsigned axis = data.view.n_axes - 1;
	const uint64_t positions = psd_onnx_view_dim(&data.view, axis);
	struct psd_layer_spec spec = {.kind = kind, .settings = kind->defaults, .n_inputs = 1};
	const char *scale = NULL, *shift = NULL;

	PSD_TRY(psd_onnx_channels_first(onnx, &data, axis));
	spec.settings.affine.epsilon = epsilon;
	spec.settings.affine.has_scale = follow_learned(chain, "Mul", positions, &scale);
	spec.settings.affine.has_shift =
		kind == &psd_layer_layer_norm && follow_learned(chain, "Add", positions, &shift);
	spec.inputs[0] = data.view.layer;
	enum psd_status status = psd_onnx_add(
		onnx, &spec, scale ? psd_onnx_own_name(onnx, psd_onnx_named(onnx, scale)) : NULL, &data.view.layer);
	if (!status && scale)
		status = psd_onnx_bind(onnx, data.view.layer, "weight", psd_onnx_named(onnx, scale), NULL);
	if (!status && shift)
		status = psd_onnx_bind(onnx, data.view.layer, "bias", psd_onnx_named(onnx, shift), NULL);
	finish(chain, &data);
	return status;
}

/* x / sqrt(mean of x^2 + epsilon); the node is the mean. */
static enum psd_status match_rms_norm(struct psd_onnx *onnx, bool *is_done)
{
	struct chain chain = {.onnx = onnx, .value = onnx->node->output[0]};
	const struct psd_onnx_value *squares = psd_onnx_input(onnx, 0), *data;
	const char *of;
	double epsilon;

	if (!follow_root(&chain, &epsilon, &of))
		return PSD_OK;
	data = psd_onnx_named(onnx, of);
	*is_done = data->kind == PSD_ONNX_DATA && psd_onnx_is_square(squares, data);
	return *is_done ? put_norm(&chain, &psd_layer_rms_norm, *data, epsilon) : PSD_OK;
}

/* Is the mean over the last axis alone, and does it keep the axis? */
static bool is_over_last(struct psd_onnx *onnx, const Onnx__Node *mean)
{
	const Onnx__Node *before = onnx->node;
	const unsigned n_axes = psd_onnx_input(onnx, 0)->view.n_axes;
	int64_t axis = 0;
	unsigned n = 0;

	onnx->node = mean;
	const bool is = !psd_onnx_integers(onnx, "axes", 1, &axis, 1, &n) && n == 1 &&
			(axis == -1 || axis == (int64_t)n_axes - 1) && psd_onnx_integer(onnx, "keepdims", 1);
	onnx->node = before;
	return is;
}

/* (x - mean) / sqrt(mean of (x - mean)^2 + epsilon); the node is the first mean. */
static enum psd_status match_layer_norm(struct psd_onnx *onnx, bool *is_done)
{
	struct chain chain = {.onnx = onnx, .value = onnx->node->output[0]};
	const char *of, *difference, *root_of;
	const Onnx__Node *square, *mean;
	double epsilon, exponent;

	if (!follow(&chain, "Sub", &of) || strcmp(of, onnx->node->input[0]) != 0 ||
	    !strcmp(of, onnx->node->output[0]) || strcmp(of, onnx->graph->node[chain.nodes[0]]->input[0]) != 0)
		return PSD_OK;
	difference = chain.value;
	const unsigned number = psd_onnx_number_of(onnx, difference);
	square = find_plain(onnx, onnx->consumers[number], "Pow");
	if (square && onnx->n_consumers[number] == 2 && square->n_input == 2) {
		if (!psd_onnx_is_scalar(onnx, psd_onnx_named(onnx, square->input[1]), &exponent) || exponent != 2)
			return PSD_OK;
	} else {
		square = find_plain(onnx, onnx->consumers[number], "Mul");
		if (!square || onnx->n_consumers[number] != 3 || square->n_input != 2 ||
		    strcmp(square->input[0], square->input[1]) != 0)
			return PSD_OK;
	}
	chain.nodes[chain.n++] = onnx->consumers[number];
	chain.value = square->output[0];
	if (!follow(&chain, "ReduceMean", &of))
		return PSD_OK;
	mean = onnx->graph->node[chain.nodes[chain.n - 1]];
	if (!is_over_last(onnx, mean) || !follow_root(&chain, &epsilon, &root_of) || strcmp(root_of, difference) != 0)
		return PSD_OK;
	*is_done = true;
	return put_norm(&chain, &psd_layer_layer_norm, *psd_onnx_input(onnx, 0), epsilon);
}

enum psd_status psd_onnx_match_norm(struct psd_onnx *onnx, bool *is_done)
{
	*is_done = false;
	if (!is_over_last(onnx, onnx->node))
		return PSD_OK;
	const enum psd_status status = match_rms_norm(onnx, is_done);
	return status || *is_done ? status : match_layer_norm(onnx, is_done);
}

/* ---- rotation ---- */

/* Is the value the first or second half of the last axis of `of`? The node that makes it is not converted yet. */
static bool is_half(struct psd_onnx *onnx, const char *value, const char *of, bool is_second)
{
	const unsigned number = psd_onnx_number_of(onnx, value);
	const Onnx__Node *before = onnx->node, *node;
	const struct psd_onnx_view *view = &psd_onnx_named(onnx, of)->view;
	const unsigned axis = psd_onnx_named(onnx, of)->view.n_axes - 1;
	bool is_done = false;

	if (!onnx->producers[number] || onnx->n_consumers[number] != 1)
		return false;
	node = onnx->graph->node[onnx->producers[number] - 1];
	if ((strcmp(node->op_type, "Slice") != 0 && strcmp(node->op_type, "Split") != 0) || node->n_input == 0 ||
	    strcmp(node->input[0], of) != 0)
		return false;
	onnx->node = node;
	struct psd_onnx_view half = *view;
	const uint64_t dim = psd_onnx_view_dim(view, axis);
	if (psd_onnx_try_view(onnx, &is_done) || !is_done) {
		onnx->node = before;
		return false;
	}
	onnx->node = before;
	return dim % 2 == 0 && psd_onnx_view_narrow(&half, axis, is_second ? dim / 2 : 0, dim / 2, 1) &&
	       psd_onnx_view_is_same(&half, &onnx->values[number].view);
}

/* Is the value a constant of positions x depth numbers, the same for all heads? */
static bool is_table(struct psd_onnx *onnx, struct psd_onnx_value *table, uint64_t positions, uint64_t depth)
{
	return table->kind == PSD_ONNX_CONSTANT && table->n_dims >= 2 && table->dims[table->n_dims - 1] == depth &&
	       table->dims[table->n_dims - 2] == positions && psd_onnx_elements(table) == positions * depth &&
	       !psd_onnx_read_numbers(onnx, table);
}

/* Covers the rounding of powers and angles in float. */
#define ANGLE_TOLERANCE_RATIO 2e-6

/* Base of the angles in the tables; 0: there is none. */
static double find_base(const struct psd_onnx_value *cosines, const struct psd_onnx_value *sines, uint64_t positions,
			uint64_t depth)
{
	const uint64_t half = depth / 2;

	/* at position 1, pair 1 has the angle base^(-2 / depth) */
	double base = pow(atan2(sines->numbers[depth + 1], cosines->numbers[depth + 1]), -(double)depth / 2);
	base = fabs(base - round(base)) < 1e-3 * base ? round(base) : base;
	for (uint64_t p = 0; p < positions; p++)
		for (uint64_t i = 0; i < depth; i++) {
			const double angle = (double)p * pow(base, -2 * (double)(i % half) / (double)depth);
			const double tolerance = ANGLE_TOLERANCE_RATIO * (1 + angle);

			if (!(fabs(cosines->numbers[p * depth + i] - cos(angle)) < tolerance &&
			      fabs(sines->numbers[p * depth + i] - sin(angle)) < tolerance))
				return 0;
		}
	return base;
}

/* The node whose output the value is, if it has that operator; otherwise NULL. */
static const Onnx__Node *find_producer(const struct psd_onnx *onnx, const char *value, const char *op, unsigned *node)
{
	const unsigned producer = onnx->producers[psd_onnx_number_of(onnx, value)];
	const Onnx__Node *found = producer ? find_plain(onnx, producer - 1, op) : NULL;

	*node = found ? producer - 1 : 0;
	return found;
}

/* The product of (-second half of x, first half of x) and a table. */
struct rotated_halves {
	const char *second, *first, *table;
	unsigned nodes[3];
};

static bool find_rotated_halves(const struct psd_onnx *onnx, const char *value, struct rotated_halves *halves)
{
	const Onnx__Node *product = find_producer(onnx, value, "Mul", &halves->nodes[0]), *join, *minus;

	if (!product || product->n_input != 2)
		return false;
	const bool is_table_second = psd_onnx_named(onnx, product->input[0])->kind != PSD_ONNX_CONSTANT;
	join = find_producer(onnx, product->input[!is_table_second], "Concat", &halves->nodes[1]);
	minus = join && join->n_input == 2 ? find_producer(onnx, join->input[0], "Neg", &halves->nodes[2]) : NULL;
	if (!minus)
		return false;
	halves->table = product->input[is_table_second];
	halves->second = minus->input[0];
	halves->first = join->input[1];
	return true;
}

static enum psd_status set_base(struct psd_onnx *onnx, const struct psd_onnx_value *cosines,
				const struct psd_onnx_value *sines, uint64_t positions, uint64_t depth,
				struct psd_onnx_value *rotated)
{
	if (positions < 2 || depth < 4)
		return psd_onnx_refuse(onnx, "rotates %llu positions of %llu values, needs 2 of 4 to find the base",
				       (unsigned long long)positions, (unsigned long long)depth);
	if (rotated->rotary_base > 0)
		return psd_onnx_refuse(onnx, "rotates an input that is rotated already");
	rotated->rotary_base = find_base(cosines, sines, positions, depth);
	return rotated->rotary_base > 0 ? PSD_OK
					: psd_onnx_refuse(onnx, "rotates by angles that must be powers of one base");
}

/* x cos + (-second half of x, first half of x) sin; the node is the first product. */
enum psd_status psd_onnx_match_rotation(struct psd_onnx *onnx, bool *is_done)
{
	struct chain chain = {.onnx = onnx, .value = onnx->node->output[0]};
	const bool is_second = psd_onnx_input(onnx, 0)->kind == PSD_ONNX_CONSTANT;
	const char *x = onnx->node->input[is_second], *other;
	struct psd_onnx_value *cosines = psd_onnx_input(onnx, !is_second), *sines;
	struct psd_onnx_value rotated = *psd_onnx_input(onnx, is_second);
	struct rotated_halves halves;
	uint64_t positions, depth;

	*is_done = false;
	if (rotated.kind != PSD_ONNX_DATA || rotated.view.n_axes < 3 || !follow(&chain, "Add", &other) ||
	    !find_rotated_halves(onnx, other, &halves))
		return PSD_OK;
	positions = psd_onnx_view_dim(&rotated.view, rotated.view.n_axes - 2);
	depth = psd_onnx_view_dim(&rotated.view, rotated.view.n_axes - 1);
	sines = psd_onnx_named(onnx, halves.table);
	if (!is_table(onnx, cosines, positions, depth) || !is_table(onnx, sines, positions, depth) ||
	    !is_half(onnx, halves.second, x, true) || !is_half(onnx, halves.first, x, false))
		return PSD_OK;
	PSD_TRY(set_base(onnx, cosines, sines, positions, depth, &rotated));
	for (unsigned i = 0; i < 3; i++)
		chain.nodes[chain.n++] = halves.nodes[i];
	finish(&chain, &rotated);
	onnx->is_done[onnx->producers[psd_onnx_number_of(onnx, halves.second)] - 1] = true;
	onnx->is_done[onnx->producers[psd_onnx_number_of(onnx, halves.first)] - 1] = true;
	*is_done = true;
	return PSD_OK;
}
