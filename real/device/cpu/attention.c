/* Attention between all positions of a sample. The channels of a position are adjacent here: queries, keys and values
 * of a head are matrices (positions, head's channels) with the row stride of all channels. The probabilities of the
 * whole batch are kept for backward. Rotary embedding works on a copy of the input, made in forward and again in
 * backward. */
#include <math.h>

#include "real/device/cpu/cpu.h"

struct attention {
	struct psd_cpu_op source_in, share_out;
	struct psd_cpu_op softmax, softmax_back; /* softmax over all rows of one sample, and its gradient */
	/* slots (struct psd_cpu_op) of the input and its gradient; shape (batch, positions, apart) */
	void *const *source, *const *share;
	float *probabilities; /* softmax of the scores, kept for backward; shape (batch, heads, positions, positions) */
	void *rows;	      /* address, in `probabilities`, of the current sample */
	/* slot of scratch memory for a sample: probabilities that dropout left; gradient of the probabilities, then of
	 * the scores */
	void *const *drows;
	/* cosine and sine of each angle; shape (positions, depth / 2) each; NULL without rotary embedding */
	float *cosines, *sines;
	dnnl_dim_t positions, channels, heads;
	dnnl_dim_t depth;   /* number of channels of a head */
	dnnl_dim_t apart;   /* number of channels of the input: the distance between positions */
	dnnl_dim_t sharers; /* number of adjacent heads that share keys and values */
	float scale;
};

/* Offsets of a head's matrices within its sample. */
struct head {
	dnnl_dim_t queries, keys, values; /* offsets in the input, or in the input's gradient */
	/* offset of the head's scores or probabilities, shape (positions, positions) */
	dnnl_dim_t scores;
	bool is_first; /* the head is the first of those that share its keys */
};

static double dropout_of(const struct psd_cpu_layer *self)
{
	return self->model->settings.attention.dropout_ratio;
}

static enum psd_status prepare_softmax(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct attention *attention = self->details;
	const dnnl_dims_t dims = {attention->heads * attention->positions, attention->positions};
	dnnl_memory_desc_t rows;
	dnnl_softmax_desc_t desc;
	dnnl_status_t failure;

	dnnl_memory_desc_init_by_tag(&rows, 2, dims, dnnl_f32, dnnl_ab);
	failure = dnnl_softmax_forward_desc_init(&desc, dnnl_forward_training, &rows, 1);
	PSD_TRY(psd_cpu_op_make(&attention->softmax, self, "softmax", failure, &desc, NULL,
				(const struct psd_cpu_arg[]){
					{DNNL_ARG_SRC, &rows, &attention->rows},
					{DNNL_ARG_DST, &rows, &attention->rows},
				},
				2, err));
	if (psd_cpu_input(self, 0)->has_diff || dropout_of(self) > 0)
		attention->drows =
			psd_cpu_scratch_slot(self->device, PSD_CPU_SCRATCH_WEIGHT, dnnl_memory_desc_get_size(&rows));
	if (!psd_cpu_input(self, 0)->has_diff)
		return PSD_OK;
	failure = dnnl_softmax_backward_desc_init(&desc, &rows, &rows, 1);
	return psd_cpu_op_make(&attention->softmax_back, self, "softmax's gradient", failure, &desc,
			       &attention->softmax,
			       (const struct psd_cpu_arg[]){
				       {DNNL_ARG_DST, &rows, &attention->rows},
				       {DNNL_ARG_DIFF_DST, &rows, attention->drows},
				       {DNNL_ARG_DIFF_SRC, &rows, attention->drows},
			       },
			       3, err);
}

/* Computes cosines and sines of all angles; each pair of channels has a frequency of its own. */
static enum psd_status take_angles(struct psd_cpu_layer *self, double base, struct psd_error *err)
{
	struct attention *attention = self->details;
	const dnnl_dim_t half = attention->depth / 2;
	const uint64_t bytes = (uint64_t)(attention->positions * half) * sizeof(float);

	attention->cosines = psd_cpu_take(self->device, bytes);
	attention->sines = psd_cpu_take(self->device, bytes);
	if (!attention->cosines || !attention->sines)
		return psd_cpu_no_memory(err);
	for (dnnl_dim_t position = 0; position < attention->positions; position++)
		for (dnnl_dim_t i = 0; i < half; i++) {
			const double angle = (double)position * pow(base, -(double)i / (double)half);

			attention->cosines[position * half + i] = (float)cos(angle);
			attention->sines[position * half + i] = (float)sin(angle);
		}
	return PSD_OK;
}

/* Sets the slot of the attention's input: with rotary embedding a copy, which is rotated in place; otherwise the input
 * itself. */
static enum psd_status prepare_source(struct psd_cpu_layer *self, const dnnl_memory_desc_t *format,
				      struct psd_error *err)
{
	struct attention *attention = self->details;
	const struct psd_cpu_arg from = psd_cpu_value(psd_cpu_input(self, 0));

	if (!attention->cosines)
		return psd_cpu_op_convert(&attention->source_in, self, from, format, PSD_CPU_SCRATCH_SOURCE,
					  &attention->source, err);
	attention->source =
		psd_cpu_scratch_slot(self->device, PSD_CPU_SCRATCH_SOURCE, dnnl_memory_desc_get_size(format));
	return psd_cpu_op_copy(&attention->source_in, self, from,
			       (struct psd_cpu_arg){DNNL_ARG_TO, format, attention->source}, err);
}

static void measure(struct psd_cpu_layer *self)
{
	const struct psd_attention_settings *settings = &self->model->settings.attention;
	struct attention *attention = self->details;

	attention->positions = (dnnl_dim_t)psd_cpu_places_of(self);
	attention->channels = self->model->shape.channels;
	attention->heads = settings->heads;
	attention->depth = attention->channels / attention->heads;
	attention->apart = psd_cpu_below(self, 0)->model->shape.channels;
	attention->sharers = settings->heads / settings->kv_heads;
	attention->scale = 1.0f / sqrtf((float)attention->depth);
}

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	const dnnl_memory_desc_t own = psd_cpu_channels_last(self),
				 below = psd_cpu_channels_last(psd_cpu_below(self, 0));
	const double base = self->model->settings.attention.rotary_base;
	struct attention *attention = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	uint64_t pairs;

	measure(self);
	pairs = (uint64_t)attention->positions * (uint64_t)attention->positions;
	if (pairs > SIZE_MAX / sizeof(float) / self->device->options.batch / (uint64_t)attention->heads)
		return psd_cpu_no_memory(err);
	attention->probabilities = psd_cpu_take(self->device, self->device->options.batch * (uint64_t)attention->heads *
								      pairs * sizeof(float));
	if (!attention->probabilities)
		return psd_cpu_no_memory(err);
	PSD_TRY(psd_cpu_declare(self, &own, err));
	if (base > 0)
		PSD_TRY(take_angles(self, base, err));
	PSD_TRY(prepare_source(self, &below, err));
	if (in->has_diff)
		PSD_TRY(psd_cpu_op_deliver(&attention->share_out, self, psd_cpu_share(in), &below,
					   PSD_CPU_SCRATCH_RESULT, &attention->share, err));
	return prepare_softmax(self, err);
}

static float *rows_of(const struct attention *attention, uint32_t sample)
{
	return attention->probabilities + sample * attention->heads * attention->positions * attention->positions;
}

static float *source_of(const struct attention *attention, uint32_t sample)
{
	return (float *)*attention->source + sample * attention->positions * attention->apart;
}

static float *share_of(const struct attention *attention, uint32_t sample)
{
	return (float *)*attention->share + sample * attention->positions * attention->apart;
}

static struct head find_head(const struct attention *attention, dnnl_dim_t number)
{
	const dnnl_dim_t kv_channels = attention->channels / attention->sharers;
	const dnnl_dim_t kv = number / attention->sharers * attention->depth;

	return (struct head){
		.queries = number * attention->depth,
		.keys = attention->channels + kv,
		.values = attention->channels + kv_channels + kv,
		.scores = number * attention->positions * attention->positions,
		.is_first = number % attention->sharers == 0,
	};
}

/* Writes a sample's probabilities or their gradients, without the dropped ones, to drows. Returns them: `from` itself
 * if nothing is dropped. */
static const float *drop_rows(const struct psd_cpu_layer *self, uint32_t sample, const float *from)
{
	const struct attention *attention = self->details;
	const uint64_t elements = (uint64_t)(attention->heads * attention->positions * attention->positions);

	if (dropout_of(self) <= 0 || !self->device->batch.is_training)
		return from;
	psd_cpu_drop(self, sample, dropout_of(self), elements, from, *attention->drows);
	return *attention->drows;
}

/* ---- rotation by positions ---- */

/* Rotates a head's channels at one position; direction: 1, or -1 in backward. */
static void rotate(float *restrict first, float *restrict second, const float *restrict cosines,
		   const float *restrict sines, float direction, dnnl_dim_t half)
{
	for (dnnl_dim_t i = 0; i < half; i++) {
		const float x = first[i], y = second[i], sine = direction * sines[i];

		first[i] = x * cosines[i] - y * sine;
		second[i] = x * sine + y * cosines[i];
	}
}

/* Rotates a sample's queries and keys, which are adjacent. */
static void rotate_sample(const struct attention *attention, float *rows, float direction)
{
	const dnnl_dim_t half = attention->depth / 2;
	const dnnl_dim_t rotated = attention->channels + attention->channels / attention->sharers;

	for (dnnl_dim_t position = 0; position < attention->positions && attention->cosines; position++)
		for (dnnl_dim_t first = 0; first < rotated; first += attention->depth) {
			float *head = rows + position * attention->apart + first;

			rotate(head, head + half, attention->cosines + position * half,
			       attention->sines + position * half, direction, half);
		}
}

/* ---- forward ---- */

/* Causal mask: sets scores of later positions to -infinity, so that a position does not depend on later ones. */
static void hide_later(float *scores, dnnl_dim_t positions)
{
	for (dnnl_dim_t row = 0; row < positions; row++)
		for (dnnl_dim_t column = row + 1; column < positions; column++)
			scores[row * positions + column] = -INFINITY;
}

/* Computes scores = scale * queries * keys^T for one head. */
static dnnl_status_t score(const struct psd_cpu_layer *self, struct head head, const float *source, float *scores)
{
	const struct attention *attention = self->details;
	const dnnl_dim_t positions = attention->positions, apart = attention->apart;
	const dnnl_status_t failure =
		dnnl_sgemm('N', 'T', positions, positions, attention->depth, attention->scale, source + head.queries,
			   apart, source + head.keys, apart, 0.0f, scores + head.scores, positions);

	if (!failure && self->model->settings.attention.is_causal)
		hide_later(scores + head.scores, positions);
	return failure;
}

/* Computes top = dropout(softmax(scores)) * values for all heads of a sample. */
static enum psd_status forward_sample(struct psd_cpu_layer *self, uint32_t sample, struct psd_error *err)
{
	struct attention *attention = self->details;
	const dnnl_dim_t positions = attention->positions, channels = attention->channels;
	float *top = (float *)self->blob->value + sample * positions * channels, *source = source_of(attention, sample);
	float *rows = rows_of(attention, sample);
	dnnl_status_t failure = dnnl_success;

	rotate_sample(attention, source, 1);
	for (dnnl_dim_t h = 0; h < attention->heads && !failure; h++)
		failure = score(self, find_head(attention, h), source, rows);
	if (failure)
		return psd_cpu_fail(self, "product", failure, err);
	attention->rows = rows;
	PSD_TRY(psd_cpu_op_run(&attention->softmax, self, err));
	const float *left = drop_rows(self, sample, rows);
	for (dnnl_dim_t h = 0; h < attention->heads && !failure; h++) {
		const struct head head = find_head(attention, h);

		failure = dnnl_sgemm('N', 'N', positions, attention->depth, positions, 1.0f, left + head.scores,
				     positions, source + head.values, attention->apart, 0.0f, top + head.queries,
				     channels);
	}
	return failure ? psd_cpu_fail(self, "product", failure, err) : PSD_OK;
}

static enum psd_status forward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct attention *attention = self->details;

	PSD_TRY(psd_cpu_op_run(&attention->source_in, self, err));
	for (uint32_t n = 0; n < self->device->options.batch; n++)
		PSD_TRY(forward_sample(self, n, err));
	return PSD_OK;
}

/* ---- backward; keys and values get the sum of their sharers' gradients ---- */

/* Computes dvalues = probabilities^T * dtop for one head. */
static dnnl_status_t differentiate_values(const struct attention *attention, struct head head, uint32_t sample,
					  const float *probabilities, const float *dtop)
{
	return dnnl_sgemm('T', 'N', attention->positions, attention->depth, attention->positions, 1.0f,
			  probabilities + head.scores, attention->positions, dtop + head.queries, attention->channels,
			  head.is_first ? 0.0f : 1.0f, share_of(attention, sample) + head.values, attention->apart);
}

/* Computes dprobabilities = dtop * values^T for one head. */
static dnnl_status_t differentiate_rows(const struct attention *attention, struct head head, uint32_t sample,
					const float *dtop)
{
	return dnnl_sgemm('N', 'T', attention->positions, attention->positions, attention->depth, 1.0f,
			  dtop + head.queries, attention->channels, source_of(attention, sample) + head.values,
			  attention->apart, 0.0f, (float *)*attention->drows + head.scores, attention->positions);
}

/* Computes dqueries = scale * dscores * keys and dkeys = scale * dscores^T * queries for one head. */
static dnnl_status_t differentiate_scores(const struct attention *attention, struct head head, uint32_t sample)
{
	const dnnl_dim_t positions = attention->positions, apart = attention->apart, depth = attention->depth;
	const float *dscores = (const float *)*attention->drows + head.scores, *source = source_of(attention, sample);
	float *share = share_of(attention, sample);
	const dnnl_status_t failure =
		dnnl_sgemm('N', 'N', positions, depth, positions, attention->scale, dscores, positions,
			   source + head.keys, apart, 0.0f, share + head.queries, apart);

	return failure ? failure
		       : dnnl_sgemm('T', 'N', positions, depth, positions, attention->scale, dscores, positions,
				    source + head.queries, apart, head.is_first ? 0.0f : 1.0f, share + head.keys,
				    apart);
}

static enum psd_status backward_sample(struct psd_cpu_layer *self, uint32_t sample, struct psd_error *err)
{
	struct attention *attention = self->details;
	const float *dtop = (const float *)self->blob->diff + sample * attention->positions * attention->channels;
	dnnl_status_t failure = dnnl_success;

	const float *left = drop_rows(self, sample, rows_of(attention, sample));
	rotate_sample(attention, source_of(attention, sample), 1);
	for (dnnl_dim_t h = 0; h < attention->heads && !failure; h++)
		failure = differentiate_values(attention, find_head(attention, h), sample, left, dtop);
	for (dnnl_dim_t h = 0; h < attention->heads && !failure; h++)
		failure = differentiate_rows(attention, find_head(attention, h), sample, dtop);
	if (failure)
		return psd_cpu_fail(self, "data gradient", failure, err);
	drop_rows(self, sample, *attention->drows);
	attention->rows = rows_of(attention, sample);
	PSD_TRY(psd_cpu_op_run(&attention->softmax_back, self, err));
	for (dnnl_dim_t h = 0; h < attention->heads && !failure; h++)
		failure = differentiate_scores(attention, find_head(attention, h), sample);
	rotate_sample(attention, share_of(attention, sample), -1);
	return failure ? psd_cpu_fail(self, "data gradient", failure, err) : PSD_OK;
}

static enum psd_status backward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct attention *attention = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);

	if (!in->has_diff)
		return PSD_OK;
	PSD_TRY(psd_cpu_op_run(&attention->source_in, self, err));
	psd_cpu_share_begin(self, in);
	for (uint32_t n = 0; n < self->device->options.batch; n++)
		PSD_TRY(backward_sample(self, n, err));
	PSD_TRY(psd_cpu_op_run(&attention->share_out, self, err));
	return psd_cpu_share_end(self, in, err);
}

const struct psd_cpu_kind psd_cpu_attention = {prepare, forward, backward, .details_bytes = sizeof(struct attention)};
