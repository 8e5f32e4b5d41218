/* Attention of all places to each other. Queries, keys and values of a head are matrices (places, channels of the
 * head): where channels come last rows of the blob's are parts of them, else they are stored as their transposes.
 * Probabilities of the whole batch are kept, which backward needs. */
#include <math.h>

#include "engine/base/saturate.h"
#include "real/device/cuda/cuda.h"

struct attention {
	void *probabilities; /* slot: (batch, heads, places, places), of the device's type */
};

/* Of each head of each sample. */
struct matrices {
	struct psd_cuda_values first;
	uint32_t rows, columns;
	uint32_t apart;		     /* stored rows */
	uint64_t by_sample, by_head; /* from one to the next */
	bool is_transposed;	     /* as stored */
};

static const struct psd_attention_settings *settings_of(const struct psd_cuda_layer *self)
{
	return &self->model->settings.attention;
}

static uint64_t count_rows(const struct psd_cuda_layer *self)
{
	return (uint64_t)self->device->network.batch * settings_of(self)->heads * psd_cuda_places_of(self);
}

static enum psd_status prepare(struct psd_cuda_layer *self, struct psd_error *err)
{
	const struct psd_device *device = self->device;
	const uint64_t count = psd_saturated_mul(count_rows(self), psd_cuda_places_of(self));
	const uint64_t bytes = count * (device->type == PSD_CUDA_FLOAT ? sizeof(float) : sizeof(uint16_t));
	struct attention *attention = self->details;
	const enum psd_status status = psd_cuda_declare(self, err);

	if (status)
		return status;
	if (count >= PSD_CUDA_MOST_ELEMENTS)
		return psd_error_set(
			err, PSD_EINVAL, PSD_NOWHERE,
			"layer '%.80s' (attention) has %llu probabilities in a batch of %u, cuda does less than %llu",
			self->model->name, (unsigned long long)count, device->network.batch,
			(unsigned long long)PSD_CUDA_MOST_ELEMENTS);
	psd_cuda_want_sums(self->device, 2 * count_rows(self) * PSD_CUDA_PARTS);
	if (psd_cuda_input(self, 0)->has_diff)
		psd_cuda_want_workspace(self->device, bytes);
	return psd_cuda_want(self->device, bytes, &attention->probabilities, err);
}

/* ---- matrices ---- */

static struct psd_cuda_values later(struct psd_cuda_values values, uint64_t elements)
{
	const uint64_t bytes = elements * (values.type == PSD_CUDA_FLOAT ? sizeof(float) : sizeof(uint16_t));

	return (struct psd_cuda_values){(char *)values.data + bytes, values.type};
}

/* Those of a map with `parts` times the output's channels: its number-th part. */
static struct matrices of_map(const struct psd_cuda_layer *self, struct psd_cuda_values map, uint32_t parts,
			      uint32_t number)
{
	const uint32_t places = psd_cuda_places_of(self), channels = self->model->shape.channels;
	const uint32_t own = channels / settings_of(self)->heads;
	const bool is_channels_last = self->device->is_channels_last;

	return (struct matrices){.first = later(map, (uint64_t)number * channels * (is_channels_last ? 1 : places)),
				 .rows = places,
				 .columns = own,
				 .apart = is_channels_last ? parts * channels : places,
				 .by_sample = (uint64_t)parts * channels * places,
				 .by_head = (uint64_t)own * (is_channels_last ? 1 : places),
				 .is_transposed = !is_channels_last};
}

static struct matrices of_places(const struct psd_cuda_layer *self, void *first)
{
	const uint32_t places = psd_cuda_places_of(self);

	return (struct matrices){.first = {first, self->device->type},
				 .rows = places,
				 .columns = places,
				 .apart = places,
				 .by_sample = (uint64_t)settings_of(self)->heads * places * places,
				 .by_head = (uint64_t)places * places};
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

/* A result that is stored as its transpose is the product of the transposes. */
static struct factors as_stored(struct factors of)
{
	if (!of.result.is_transposed)
		return of;
	return (struct factors){turned(of.right), turned(of.left), turned(of.result)};
}

/* Of the heads of one sample, or of all samples' same head: those of the number-th. */
static struct psd_cuda_products products_of(struct factors of, bool is_by_head, uint32_t number)
{
	const struct matrices left = of.left, right = of.right, result = of.result;
	const uint64_t n = number;

	return (struct psd_cuda_products){
		.first = {.left = later(left.first, n * (is_by_head ? left.by_sample : left.by_head)),
			  .right = later(right.first, n * (is_by_head ? right.by_sample : right.by_head)),
			  .result = later(result.first, n * (is_by_head ? result.by_sample : result.by_head)),
			  .rows = result.rows,
			  .columns = result.columns,
			  .depth = left.columns,
			  .is_left_transposed = left.is_transposed,
			  .is_right_transposed = right.is_transposed},
		.left_apart = left.apart,
		.right_apart = right.apart,
		.result_apart = result.apart,
		.left_stride = is_by_head ? left.by_head : left.by_sample,
		.right_stride = is_by_head ? right.by_head : right.by_sample,
		.result_stride = is_by_head ? result.by_head : result.by_sample,
	};
}

/* result = alpha left right, of each head of each sample: of the more of them with one call. */
static enum psd_status multiply(struct psd_cuda_layer *self, struct factors of, float alpha, bool adds,
				struct psd_error *err)
{
	const uint32_t batch = self->device->network.batch, heads = settings_of(self)->heads;
	const bool is_by_head = heads > batch;
	enum psd_status status = PSD_OK;

	for (uint32_t i = 0; i < (is_by_head ? batch : heads) && !status; i++) {
		struct psd_cuda_products products = products_of(as_stored(of), is_by_head, i);

		products.n = is_by_head ? heads : batch;
		products.first.alpha = alpha;
		products.first.adds = adds;
		status = psd_cuda_multiply_several(self->device, &products, err);
	}
	return status;
}

/* ---- either way ---- */

enum part { QUERIES, KEYS, VALUES, PARTS }; /* of the input's channels */

static struct matrices part_of(const struct psd_cuda_layer *self, enum part part)
{
	return of_map(self, psd_cuda_value(self, psd_cuda_input(self, 0)), PARTS, part);
}

static struct matrices gradient_of(const struct psd_cuda_layer *self, enum part part)
{
	return of_map(self, psd_cuda_diff(self, psd_cuda_input(self, 0)), PARTS, part);
}

static struct matrices probabilities_of(const struct psd_cuda_layer *self)
{
	const struct attention *attention = self->details;

	return of_places(self, attention->probabilities);
}

/* By which scores are multiplied. */
static float scale_of(const struct psd_cuda_layer *self)
{
	return 1.0f / sqrtf((float)(self->model->shape.channels / settings_of(self)->heads));
}

static struct psd_cuda_attention rows_of(const struct psd_cuda_layer *self)
{
	float *sums = self->device->sums;

	return (struct psd_cuda_attention){.rows = probabilities_of(self).first,
					   .places = psd_cuda_places_of(self),
					   .is_causal = settings_of(self)->is_causal,
					   .partial = {sums, sums + count_rows(self) * PSD_CUDA_PARTS}};
}

/* top = softmax(scale queries keys^T) values */
static enum psd_status forward(struct psd_cuda_layer *self, struct psd_error *err)
{
	const struct psd_cuda_attention rows = rows_of(self);
	const struct matrices probabilities = probabilities_of(self);
	const struct matrices top = of_map(self, psd_cuda_value(self, self->blob), 1, 0);
	const struct factors scores = {part_of(self, QUERIES), turned(part_of(self, KEYS)), probabilities};
	const uint64_t parts = count_rows(self) * PSD_CUDA_PARTS;
	enum psd_status status = multiply(self, scores, scale_of(self), false, err);

	if (!status)
		status = psd_cuda_run_attention_sums(self->device, &(struct psd_cuda_attention_sums){rows}, parts, err);
	if (!status)
		status = psd_cuda_run_attention_end(self->device, &(struct psd_cuda_attention_end){rows}, parts, err);
	return status ? status
		      : multiply(self, (struct factors){probabilities, part_of(self, VALUES), top}, 1.0f, false, err);
}

/* dscores = probabilities (dprobabilities - the rows' sums of their products), in place of dprobabilities. */
static enum psd_status differentiate_softmax(struct psd_cuda_layer *self, struct psd_cuda_values diff,
					     struct psd_error *err)
{
	const struct psd_cuda_attention rows = rows_of(self);
	const uint64_t parts = count_rows(self) * PSD_CUDA_PARTS;
	const enum psd_status status =
		psd_cuda_run_attention_dots(self->device, &(struct psd_cuda_attention_dots){rows, diff}, parts, err);

	return status ? status
		      : psd_cuda_run_attention_back(self->device, &(struct psd_cuda_attention_back){rows, diff}, parts,
						    err);
}

/* dvalues = probabilities^T dtop, dprobabilities = dtop values^T; dqueries = scale dscores keys, dkeys = scale
 * dscores^T queries. */
static enum psd_status backward(struct psd_cuda_layer *self, struct psd_error *err)
{
	struct psd_cuda_blob *in = psd_cuda_input(self, 0);
	const struct matrices dtop = of_map(self, psd_cuda_diff(self, self->blob), 1, 0);
	const struct matrices dscores = of_places(self, self->device->workspace); /* and dprobabilities before */
	const struct factors dvalues = {turned(probabilities_of(self)), dtop, gradient_of(self, VALUES)};
	const struct factors dprobabilities = {dtop, turned(part_of(self, VALUES)), dscores};
	const struct factors dqueries = {dscores, part_of(self, KEYS), gradient_of(self, QUERIES)};
	const struct factors dkeys = {turned(dscores), part_of(self, QUERIES), gradient_of(self, KEYS)};
	enum psd_status status;
	bool adds;

	if (!in->has_diff)
		return PSD_OK;
	adds = psd_cuda_share(in);
	status = multiply(self, dvalues, 1.0f, adds, err);
	if (!status)
		status = multiply(self, dprobabilities, 1.0f, false, err);
	if (!status)
		status = differentiate_softmax(self, dscores.first, err);
	if (!status)
		status = multiply(self, dqueries, scale_of(self), adds, err);
	return status ? status : multiply(self, dkeys, scale_of(self), adds, err);
}

const struct psd_cuda_kind psd_cuda_kind_attention = {
	.prepare = prepare, .forward = forward, .backward = backward, .details_bytes = sizeof(struct attention)};
