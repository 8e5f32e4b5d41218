/* Attention between all positions of a sample. Queries, keys and values of a head are matrices (positions, head's
 * channels): with channels last they are parts of the blob's rows, else they are stored transposed. Probabilities of
 * the whole batch are kept for backward. The workspace holds queries and keys with rotary embedding, computed in
 * forward and again in backward, and their gradients until those are rotated back; then probabilities that dropout
 * left, also computed again, and in their place the gradients of the probabilities and scores. */
#include <math.h>

#include "engine/base/saturate.h"
#include "real/device/gpu/gpu.h"

struct attention {
	/* probabilities, shape (batch, heads, positions, positions), in the number format of the device */
	void *probabilities;
	/* cosine and sine of each angle, as floats; shape (positions, depth / 2, 2); NULL without rotary embedding */
	void *angles;
	uint64_t rotated_bytes; /* bytes, in the workspace, of rotated queries and keys and their gradients */
};

/* Range of a blob's channels that is divided evenly among heads. */
struct map {
	struct psd_gpu_values values;
	uint32_t channels;
};

/* Matrices of queries, keys or values, of all heads and samples, inside a blob or the workspace. */
struct matrices {
	struct psd_gpu_values first;
	uint32_t rows, columns;
	uint32_t apart; /* distance between the begins of successive rows in memory, in elements */
	/* distance between the matrices of successive samples, and of successive heads, in elements */
	uint64_t by_sample, by_head;
	uint32_t sharers;   /* number of adjacent heads that share a matrix */
	bool is_transposed; /* the matrices are stored transposed */
};

static const struct psd_attention_settings *settings_of(const struct psd_gpu_layer *self)
{
	return &self->model->settings.attention;
}

static uint64_t count_rows(const struct psd_gpu_layer *self)
{
	return (uint64_t)self->device->network.batch * settings_of(self)->heads * psd_gpu_positions(self);
}

static uint32_t depth_of(const struct psd_gpu_layer *self)
{
	return self->model->shape.channels / settings_of(self)->heads;
}

static bool is_rotary(const struct psd_gpu_layer *self)
{
	return settings_of(self)->rotary_base > 0;
}

/* Returns the number of heads of queries and keys together. */
static uint32_t rotated_heads(const struct psd_gpu_layer *self)
{
	return settings_of(self)->heads + settings_of(self)->kv_heads;
}

static uint64_t value_bytes(const struct psd_gpu_layer *self)
{
	return self->device->type == PSD_GPU_FLOAT ? sizeof(float) : sizeof(uint16_t);
}

/* Returns rotated_bytes, rounded up so that the next array in the workspace is aligned as cuBLAS prefers. */
static uint64_t count_rotated_bytes(const struct psd_gpu_layer *self)
{
	const uint64_t channels = (uint64_t)rotated_heads(self) * depth_of(self), alignment = 256;
	const uint64_t bytes = psd_gpu_batch_positions(self) * channels * value_bytes(self);

	return is_rotary(self) ? (bytes + alignment - 1) / alignment * alignment : 0;
}

static enum psd_status want_rotation(struct psd_gpu_layer *self, struct psd_error *err)
{
	const uint64_t n_angles = (uint64_t)psd_gpu_positions(self) * (depth_of(self) / 2);
	struct attention *attention = self->details;

	attention->rotated_bytes = count_rotated_bytes(self);
	psd_gpu_want_workspace(self->device, attention->rotated_bytes);
	return is_rotary(self) ? psd_gpu_want(self->device, 2 * n_angles * sizeof(float), &attention->angles, err)
			       : PSD_OK;
}

static enum psd_status prepare(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_device *device = self->device;
	const uint64_t count = psd_saturated_mul(count_rows(self), psd_gpu_positions(self));
	const uint64_t bytes = count * value_bytes(self);
	struct attention *attention = self->details;

	PSD_TRY(psd_gpu_declare(self, err));
	if (count >= PSD_GPU_MOST_ELEMENTS)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "layer '%.80s' (attention) has %llu probabilities in a batch of %u, cuda supports "
				     "less than %llu",
				     self->model->name, (unsigned long long)count, device->network.batch,
				     (unsigned long long)PSD_GPU_MOST_ELEMENTS);
	psd_gpu_want_sums(self->device, 2 * count_rows(self) * PSD_GPU_PARTS);
	PSD_TRY(want_rotation(self, err));
	self->device->counts = self->device->counts || settings_of(self)->dropout_ratio > 0;
	if (psd_gpu_input(self, 0)->has_diff || settings_of(self)->dropout_ratio > 0)
		psd_gpu_want_workspace(self->device, 2 * attention->rotated_bytes + bytes);
	return psd_gpu_want(self->device, bytes, &attention->probabilities, err);
}

/* ---- matrices ---- */

static struct psd_gpu_values later(struct psd_gpu_values values, uint64_t elements)
{
	const uint64_t bytes = elements * (values.type == PSD_GPU_FLOAT ? sizeof(float) : sizeof(uint16_t));

	return (struct psd_gpu_values){(char *)values.data + bytes, values.type};
}

/* Returns the matrices of all heads in a range of channels of a blob. */
static struct matrices of_map(const struct psd_gpu_layer *self, struct map map, uint32_t first_channel,
			      uint32_t sharers)
{
	const uint32_t positions = psd_gpu_positions(self), depth = depth_of(self);
	const bool is_channels_last = self->device->is_channels_last;

	return (struct matrices){
		.first = later(map.values, (uint64_t)first_channel * (is_channels_last ? 1 : positions)),
		.rows = positions,
		.columns = depth,
		.apart = is_channels_last ? map.channels : positions,
		.by_sample = (uint64_t)map.channels * positions,
		.by_head = (uint64_t)depth * (is_channels_last ? 1 : positions),
		.sharers = sharers,
		.is_transposed = !is_channels_last};
}

static struct matrices of_places(const struct psd_gpu_layer *self, void *first)
{
	const uint32_t positions = psd_gpu_positions(self);

	return (struct matrices){.first = {first, self->device->type},
				 .rows = positions,
				 .columns = positions,
				 .apart = positions,
				 .by_sample = (uint64_t)settings_of(self)->heads * positions * positions,
				 .by_head = (uint64_t)positions * positions,
				 .sharers = 1};
}

static struct matrices turned(struct matrices of)
{
	const uint32_t rows = of.rows;

	of.rows = of.columns;
	of.columns = rows;
	of.is_transposed = !of.is_transposed;
	return of;
}

/* ---- products ---- */

struct factors {
	struct matrices left, right, result;
};

/* Returns the product as it is stored: a result that is stored transposed is the product of the transposed factors in
 * exchanged order. */
static struct factors as_stored(struct factors of)
{
	if (!of.result.is_transposed)
		return of;
	return (struct factors){turned(of.right), turned(of.left), turned(of.result)};
}

/* Returns the address of the matrix of a head in a sample. */
static struct psd_gpu_values head_of(struct matrices of, uint32_t sample, uint32_t head)
{
	return later(of.first, sample * of.by_sample + head / of.sharers * of.by_head);
}

/* Returns the products for one head of all samples, or for the heads `head`, `head` + step, `head` + 2 * step, ... of
 * one sample. */
static struct psd_gpu_products products_of(struct factors of, bool is_by_head, uint32_t sample, uint32_t head,
					   uint32_t step)
{
	const struct matrices left = of.left, right = of.right, result = of.result;

	return (struct psd_gpu_products){
		.first = {.left = head_of(left, sample, head),
			  .right = head_of(right, sample, head),
			  .result = head_of(result, sample, head),
			  .rows = result.rows,
			  .columns = result.columns,
			  .depth = left.columns,
			  .is_left_transposed = left.is_transposed,
			  .is_right_transposed = right.is_transposed},
		.left_apart = left.apart,
		.right_apart = right.apart,
		.result_apart = result.apart,
		.left_stride = is_by_head ? left.by_head * (step / left.sharers) : left.by_sample,
		.right_stride = is_by_head ? right.by_head * (step / right.sharers) : right.by_sample,
		.result_stride = is_by_head ? result.by_head * (step / result.sharers) : result.by_sample,
	};
}

/* Begins the products result = alpha * left * right for each head of each sample. One call covers all samples, or all
 * heads with keys of their own, whichever are more: no two products of a call share a result. A result that heads share
 * becomes their sum. */
static enum psd_status multiply(struct psd_gpu_layer *self, struct factors of, float alpha, bool adds,
				struct psd_error *err)
{
	const uint32_t batch = self->device->network.batch, kv_heads = settings_of(self)->kv_heads;
	const uint32_t sharers = settings_of(self)->heads / kv_heads;
	const bool is_by_head = kv_heads > batch;

	for (uint32_t i = 0; i < (is_by_head ? batch : kv_heads) * sharers; i++) {
		const uint32_t head = is_by_head ? i % sharers : i, sample = is_by_head ? i / sharers : 0;
		struct psd_gpu_products products = products_of(as_stored(of), is_by_head, sample, head, sharers);

		products.n = is_by_head ? kv_heads : batch;
		products.first.alpha = alpha;
		products.first.adds = adds || head % of.result.sharers > 0;
		PSD_TRY(psd_gpu_multiply_several(self->device, &products, err));
	}
	return PSD_OK;
}

/* ---- either way ---- */

enum part { QUERIES, KEYS, VALUES }; /* ranges of the input's channels, in this order */

/* Returns the matrices of queries, keys or values in a blob with the channels of the input, or with the first of these
 * channels. */
static struct matrices of_part(const struct psd_gpu_layer *self, struct map map, enum part part)
{
	const struct psd_attention_settings *settings = settings_of(self);
	const uint32_t before = part == QUERIES ? 0 : part == KEYS ? settings->heads : rotated_heads(self);

	return of_map(self, map, before * depth_of(self), part == QUERIES ? 1 : settings->heads / settings->kv_heads);
}

static struct map input_map(const struct psd_gpu_layer *self, struct psd_gpu_values values)
{
	return (struct map){values, psd_gpu_below(self, 0)->model->shape.channels};
}

/* Returns the matrices, in the workspace, of rotated queries or keys, or of their gradients. */
static struct map rotated_map(const struct psd_gpu_layer *self, bool is_gradient)
{
	const struct attention *attention = self->details;
	char *first = self->device->workspace;

	return (struct map){{first + (is_gradient ? attention->rotated_bytes : 0), self->device->type},
			    rotated_heads(self) * depth_of(self)};
}

static struct matrices part_of(const struct psd_gpu_layer *self, enum part part)
{
	const bool is_rotated = is_rotary(self) && part != VALUES;

	return of_part(self,
		       is_rotated ? rotated_map(self, false)
				  : input_map(self, psd_gpu_value(self, psd_gpu_input(self, 0))),
		       part);
}

static struct matrices gradient_of(const struct psd_gpu_layer *self, enum part part)
{
	const bool is_rotated = is_rotary(self) && part != VALUES;

	return of_part(self,
		       is_rotated ? rotated_map(self, true)
				  : input_map(self, psd_gpu_diff(self, psd_gpu_input(self, 0))),
		       part);
}

static struct matrices of_output(const struct psd_gpu_layer *self, struct psd_gpu_values values)
{
	return of_map(self, (struct map){values, self->model->shape.channels}, 0, 1);
}

static struct psd_gpu_channel channel_of(const struct psd_gpu_layer *self, struct map map)
{
	return (struct psd_gpu_channel){psd_gpu_channel_of(self).inner, map.channels};
}

static enum psd_status rotate(struct psd_gpu_layer *self, struct map from, struct map to, bool is_back, bool adds,
			      struct psd_error *err)
{
	const struct attention *attention = self->details;
	const struct psd_gpu_rotary run = {.from = from.values,
					   .to = to.values,
					   .from_channel = channel_of(self, from),
					   .to_channel = channel_of(self, to),
					   .angles = attention->angles,
					   .positions = psd_gpu_positions(self),
					   .heads = rotated_heads(self),
					   .half = depth_of(self) / 2,
					   .is_back = is_back,
					   .adds = adds};

	return psd_gpu_run_rotary(self->device, &run, psd_gpu_batch_positions(self) * run.heads * run.half, err);
}

/* Begins to write the rotated queries and keys to the workspace; does nothing without rotary embedding. */
static enum psd_status rotate_input(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct map input = input_map(self, psd_gpu_value(self, psd_gpu_input(self, 0)));

	return is_rotary(self) ? rotate(self, input, rotated_map(self, false), false, false, err) : PSD_OK;
}

static enum psd_status find_angles(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct attention *attention = self->details;
	const struct psd_gpu_rotary_angles run = {.angles = attention->angles,
						  .half = depth_of(self) / 2,
						  .base_log = log(settings_of(self)->rotary_base)};

	if (!is_rotary(self))
		return PSD_OK;
	return psd_gpu_run_rotary_angles(self->device, &run, (uint64_t)psd_gpu_positions(self) * run.half, err);
}

static struct matrices probabilities_of(const struct psd_gpu_layer *self)
{
	const struct attention *attention = self->details;

	return of_places(self, attention->probabilities);
}

/* Returns the factor on the scores. */
static float scale_of(const struct psd_gpu_layer *self)
{
	return 1.0f / sqrtf((float)depth_of(self));
}

static struct psd_gpu_attention rows_of(const struct psd_gpu_layer *self)
{
	float *sums = self->device->sums;

	return (struct psd_gpu_attention){.rows = probabilities_of(self).first,
					  .positions = psd_gpu_positions(self),
					  .is_causal = settings_of(self)->is_causal,
					  .partial = {sums, sums + count_rows(self) * PSD_GPU_PARTS}};
}

/* Returns the matrices, in the workspace, of probabilities that dropout left, or of gradients of probabilities. */
static struct matrices workspace_places(const struct psd_gpu_layer *self)
{
	const struct attention *attention = self->details;

	return of_places(self, (char *)self->device->workspace + 2 * attention->rotated_bytes);
}

/* Begins to write probabilities or their gradients, without the dropped ones, to the workspace. *left: where they are;
 * `from` if nothing is dropped. */
static enum psd_status drop(struct psd_gpu_layer *self, struct matrices from, struct matrices *left,
			    struct psd_error *err)
{
	const struct psd_device *device = self->device;
	const double ratio = settings_of(self)->dropout_ratio; /* below 1 */
	const struct psd_gpu_maps maps = {settings_of(self)->heads, from.rows, from.rows, false};

	*left = from;
	if (ratio <= 0 || !device->batch.is_training)
		return PSD_OK;
	*left = workspace_places(self);
	return psd_gpu_run_drop(self, from.first, left->first, maps, ratio, false, err);
}

/* Begins the forward pass: top = dropout(softmax(scale * queries * keys^T)) * values. */
static enum psd_status forward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_attention rows = rows_of(self);
	const struct matrices probabilities = probabilities_of(self);
	const struct matrices top = of_output(self, psd_gpu_value(self, self->blob));
	const struct factors scores = {part_of(self, QUERIES), turned(part_of(self, KEYS)), probabilities};
	const uint64_t parts = count_rows(self) * PSD_GPU_PARTS;
	struct matrices left;

	PSD_TRY(find_angles(self, err));
	PSD_TRY(rotate_input(self, err));
	PSD_TRY(multiply(self, scores, scale_of(self), false, err));
	PSD_TRY(psd_gpu_run_attention_sums(self->device, &rows, parts, err));
	PSD_TRY(psd_gpu_run_attention_end(self->device, &rows, parts, err));
	PSD_TRY(drop(self, probabilities, &left, err));
	return multiply(self, (struct factors){left, part_of(self, VALUES), top}, 1.0f, false, err);
}

/* Begins dscores = probabilities * (dprobabilities - row sums of probabilities * dprobabilities), which overwrites
 * dprobabilities. */
static enum psd_status differentiate_softmax(struct psd_gpu_layer *self, struct psd_gpu_values diff,
					     struct psd_error *err)
{
	const uint64_t parts = count_rows(self) * PSD_GPU_PARTS;
	struct psd_gpu_attention rows = rows_of(self);

	rows.diff = diff;
	PSD_TRY(psd_gpu_run_attention_dots(self->device, &rows, parts, err));
	return psd_gpu_run_attention_back(self->device, &rows, parts, err);
}

/* Begins dqueries = scale * dscores * keys and dkeys = scale * dscores^T * queries. adds: they are added to the input's
 * gradient. */
static enum psd_status differentiate_scores(struct psd_gpu_layer *self, struct matrices dscores, bool adds,
					    struct psd_error *err)
{
	const struct factors dqueries = {dscores, part_of(self, KEYS), gradient_of(self, QUERIES)};
	const struct factors dkeys = {turned(dscores), part_of(self, QUERIES), gradient_of(self, KEYS)};
	const struct map dinput = input_map(self, psd_gpu_diff(self, psd_gpu_input(self, 0)));

	PSD_TRY(multiply(self, dqueries, scale_of(self), adds && !is_rotary(self), err));
	PSD_TRY(multiply(self, dkeys, scale_of(self), adds && !is_rotary(self), err));
	return is_rotary(self) ? rotate(self, rotated_map(self, true), dinput, true, adds, err) : PSD_OK;
}

/* Begins the backward pass: dvalues = probabilities^T * dtop, dprobabilities = dtop * values^T, then dscores, dqueries
 * and dkeys. */
static enum psd_status backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct psd_gpu_blob *in = psd_gpu_input(self, 0);
	const struct matrices dtop = of_output(self, psd_gpu_diff(self, self->blob));
	const struct matrices dscores = workspace_places(self);
	const struct factors dprobabilities = {dtop, turned(part_of(self, VALUES)), dscores};
	struct matrices left;
	bool adds;

	if (!in->has_diff)
		return PSD_OK;
	adds = psd_gpu_share(in);
	PSD_TRY(rotate_input(self, err));
	PSD_TRY(drop(self, probabilities_of(self), &left, err));
	PSD_TRY(multiply(self, (struct factors){turned(left), dtop, gradient_of(self, VALUES)}, 1.0f, adds, err));
	PSD_TRY(multiply(self, dprobabilities, 1.0f, false, err));
	PSD_TRY(drop(self, dscores, &left, err));
	PSD_TRY(differentiate_softmax(self, dscores.first, err));
	return differentiate_scores(self, dscores, adds, err);
}

const struct psd_gpu_kind psd_gpu_kind_attention = {
	.prepare = prepare, .forward = forward, .backward = backward, .details_bytes = sizeof(struct attention)};
