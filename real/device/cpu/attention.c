/* Attention of all places to each other. The channels of a place lie side by side here: queries, keys and values of a
 * head are matrices (places, channels of the head) whose rows are as far apart as those of all channels. Probabilities
 * of the whole batch are kept, which backward needs. */
#include <math.h>

#include "real/device/cpu/cpu.h"

struct attention {
	struct psd_cpu_op source_in, share_out;
	struct psd_cpu_op softmax, softmax_back; /* of a sample's rows */
	void *const *source, *const *share;	 /* slots: (batch, places, 3 channels) */
	float *probabilities;			 /* (batch, heads, places, places) */
	void *rows;				 /* the sample's of these */
	void *const *drows;			 /* slot: their gradient, then that of the scores */
	dnnl_dim_t places, channels, heads;
	float scale;
};

/* One head of one sample: where its matrices begin. */
struct head {
	const float *queries, *keys, *values;
	float *scores; /* or their probabilities, (places, places) */
};

static enum psd_status prepare_softmax(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct attention *attention = self->details;
	const dnnl_dims_t dims = {attention->heads * attention->places, attention->places};
	dnnl_memory_desc_t rows;
	dnnl_softmax_desc_t desc;
	dnnl_status_t failure;
	enum psd_status status;

	dnnl_memory_desc_init_by_tag(&rows, 2, dims, dnnl_f32, dnnl_ab);
	failure = dnnl_softmax_forward_desc_init(&desc, dnnl_forward_training, &rows, 1);
	status = psd_cpu_op_make(&attention->softmax, self, "softmax", failure, &desc, NULL,
				 (const struct psd_cpu_arg[]){
					 {DNNL_ARG_SRC, &rows, &attention->rows},
					 {DNNL_ARG_DST, &rows, &attention->rows},
				 },
				 2, err);
	if (status || !psd_cpu_input(self, 0)->has_diff)
		return status;
	attention->drows = psd_cpu_scratch_slot(self->device, PSD_CPU_SCRATCH_WEIGHT, dnnl_memory_desc_get_size(&rows));
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

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	const dnnl_memory_desc_t own = psd_cpu_channels_last(self),
				 below = psd_cpu_channels_last(psd_cpu_below(self, 0));
	const struct psd_shape shape = self->model->shape;
	struct attention *attention = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	enum psd_status status;
	uint64_t pairs;

	attention->places = (dnnl_dim_t)psd_cpu_places_of(self);
	attention->channels = shape.channels;
	attention->heads = self->model->settings.attention.heads;
	attention->scale = 1.0f / sqrtf((float)(attention->channels / attention->heads));
	pairs = (uint64_t)attention->places * (uint64_t)attention->places;
	if (pairs > SIZE_MAX / sizeof(float) / self->device->options.batch / (uint64_t)attention->heads)
		return psd_cpu_no_memory(err);
	attention->probabilities = psd_cpu_take(self->device, self->device->options.batch * (uint64_t)attention->heads *
								      pairs * sizeof(float));
	if (!attention->probabilities)
		return psd_cpu_no_memory(err);
	status = psd_cpu_declare(self, &own, err);
	if (!status)
		status = psd_cpu_op_convert(&attention->source_in, self, psd_cpu_value(in), &below,
					    PSD_CPU_SCRATCH_SOURCE, &attention->source, err);
	if (!status && in->has_diff)
		status = psd_cpu_op_deliver(&attention->share_out, self, psd_cpu_share(in), &below,
					    PSD_CPU_SCRATCH_RESULT, &attention->share, err);
	return status ? status : prepare_softmax(self, err);
}

static float *rows_of(const struct attention *attention, uint32_t sample)
{
	return attention->probabilities + sample * attention->heads * attention->places * attention->places;
}

static struct head find_head(const struct attention *attention, uint32_t sample, dnnl_dim_t number)
{
	const dnnl_dim_t own = attention->channels / attention->heads;
	const float *first = (const float *)*attention->source + sample * attention->places * 3 * attention->channels;

	return (struct head){
		.queries = first + number * own,
		.keys = first + attention->channels + number * own,
		.values = first + 2 * attention->channels + number * own,
		.scores = rows_of(attention, sample) + number * attention->places * attention->places,
	};
}

/* No place sees a later one. */
static void hide_later(float *scores, dnnl_dim_t places)
{
	for (dnnl_dim_t row = 0; row < places; row++)
		for (dnnl_dim_t column = row + 1; column < places; column++)
			scores[row * places + column] = -INFINITY;
}

/* scores = scale queries keys^T */
static dnnl_status_t score(const struct psd_cpu_layer *self, struct head head)
{
	const struct attention *attention = self->details;
	const dnnl_dim_t places = attention->places, apart = 3 * attention->channels;
	const dnnl_status_t failure =
		dnnl_sgemm('N', 'T', places, places, attention->channels / attention->heads, attention->scale,
			   head.queries, apart, head.keys, apart, 0.0f, head.scores, places);

	if (!failure && self->model->settings.attention.is_causal)
		hide_later(head.scores, places);
	return failure;
}

/* top = softmax(scores) values */
static enum psd_status forward_sample(struct psd_cpu_layer *self, uint32_t sample, struct psd_error *err)
{
	struct attention *attention = self->details;
	const dnnl_dim_t places = attention->places, channels = attention->channels, own = channels / attention->heads;
	float *top = (float *)self->blob->value + sample * places * channels;
	dnnl_status_t failure = dnnl_success;
	enum psd_status status;

	for (dnnl_dim_t h = 0; h < attention->heads && !failure; h++)
		failure = score(self, find_head(attention, sample, h));
	if (failure)
		return psd_cpu_fail(self, "product", failure, err);
	attention->rows = rows_of(attention, sample);
	status = psd_cpu_op_run(&attention->softmax, self, err);
	if (status)
		return status;
	for (dnnl_dim_t h = 0; h < attention->heads && !failure; h++) {
		const struct head head = find_head(attention, sample, h);

		failure = dnnl_sgemm('N', 'N', places, own, places, 1.0f, head.scores, places, head.values,
				     3 * channels, 0.0f, top + h * own, channels);
	}
	return failure ? psd_cpu_fail(self, "product", failure, err) : PSD_OK;
}

static enum psd_status forward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct attention *attention = self->details;
	enum psd_status status = psd_cpu_op_run(&attention->source_in, self, err);

	for (uint32_t n = 0; n < self->device->options.batch && !status; n++)
		status = forward_sample(self, n, err);
	return status;
}

/* dvalues = probabilities^T dtop; dprobabilities = dtop values^T */
static dnnl_status_t differentiate_values(const struct attention *attention, struct head head, const float *dtop,
					  float *dvalues, float *dprobabilities)
{
	const dnnl_dim_t places = attention->places, channels = attention->channels, own = channels / attention->heads;
	const dnnl_status_t failure = dnnl_sgemm('T', 'N', places, own, places, 1.0f, head.scores, places, dtop,
						 channels, 0.0f, dvalues, 3 * channels);

	return failure ? failure
		       : dnnl_sgemm('N', 'T', places, places, own, 1.0f, dtop, channels, head.values, 3 * channels,
				    0.0f, dprobabilities, places);
}

/* dqueries = scale dscores keys; dkeys = scale dscores^T queries */
static dnnl_status_t differentiate_scores(const struct attention *attention, struct head head, const float *dscores,
					  float *dqueries, float *dkeys)
{
	const dnnl_dim_t places = attention->places, apart = 3 * attention->channels,
			 own = attention->channels / attention->heads;
	const dnnl_status_t failure = dnnl_sgemm('N', 'N', places, own, places, attention->scale, dscores, places,
						 head.keys, apart, 0.0f, dqueries, apart);

	return failure ? failure
		       : dnnl_sgemm('T', 'N', places, own, places, attention->scale, dscores, places, head.queries,
				    apart, 0.0f, dkeys, apart);
}

static enum psd_status backward_sample(struct psd_cpu_layer *self, uint32_t sample, struct psd_error *err)
{
	struct attention *attention = self->details;
	const dnnl_dim_t places = attention->places, channels = attention->channels, own = channels / attention->heads;
	const float *dtop = (const float *)self->blob->diff + sample * places * channels;
	float *share = (float *)*attention->share + sample * places * 3 * channels, *drows = *attention->drows;
	dnnl_status_t failure = dnnl_success;
	enum psd_status status;

	for (dnnl_dim_t h = 0; h < attention->heads && !failure; h++)
		failure = differentiate_values(attention, find_head(attention, sample, h), dtop + h * own,
					       share + 2 * channels + h * own, drows + h * places * places);
	if (failure)
		return psd_cpu_fail(self, "data gradient", failure, err);
	attention->rows = rows_of(attention, sample);
	status = psd_cpu_op_run(&attention->softmax_back, self, err);
	if (status)
		return status;
	for (dnnl_dim_t h = 0; h < attention->heads && !failure; h++)
		failure = differentiate_scores(attention, find_head(attention, sample, h), drows + h * places * places,
					       share + h * own, share + channels + h * own);
	return failure ? psd_cpu_fail(self, "data gradient", failure, err) : PSD_OK;
}

static enum psd_status backward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct attention *attention = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	enum psd_status status = PSD_OK;

	if (!in->has_diff)
		return PSD_OK;
	status = psd_cpu_op_run(&attention->source_in, self, err);
	psd_cpu_share_begin(self, in);
	for (uint32_t n = 0; n < self->device->options.batch && !status; n++)
		status = backward_sample(self, n, err);
	if (!status)
		status = psd_cpu_op_run(&attention->share_out, self, err);
	return status ? status : psd_cpu_share_end(self, in, err);
}

const struct psd_cpu_kind psd_cpu_attention = {prepare, forward, backward, .details_bytes = sizeof(struct attention)};
