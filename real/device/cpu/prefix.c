/* Learned vectors in front of each sample's positions. The channels of a position are adjacent here, so vectors and
 * positions are rows. */
#include <string.h>

#include "real/device/cpu/cpu.h"

struct prefix {
	struct psd_cpu_op source_in, share_out;
	/* slots (struct psd_cpu_op) of the input and its gradient; shape (batch, input positions, channels) */
	void *const *source, *const *share;
	uint64_t channels;
	uint64_t own, whole; /* numbers of elements in a sample: of the learned vectors, and of the output */
};

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	const dnnl_memory_desc_t format = psd_cpu_channels_last(self),
				 below = psd_cpu_channels_last(psd_cpu_below(self, 0));
	struct prefix *prefix = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);

	PSD_TRY(psd_cpu_declare(self, &format, err));
	prefix->channels = self->model->shape.channels;
	prefix->own = prefix->channels * self->model->settings.prefix.places;
	prefix->whole = prefix->channels * psd_cpu_places_of(self);
	PSD_TRY(psd_cpu_op_convert(&prefix->source_in, self, psd_cpu_value(in), &below, PSD_CPU_SCRATCH_SOURCE,
				   &prefix->source, err));
	return in->has_diff ? psd_cpu_op_deliver(&prefix->share_out, self, psd_cpu_share(in), &below,
						 PSD_CPU_SCRATCH_RESULT, &prefix->share, err)
			    : PSD_OK;
}

/* Copies the learned vectors to the begin of each sample; the weight has shape (channels, positions). */
static void put_vectors(const struct psd_cpu_layer *self, float *to)
{
	const struct prefix *prefix = self->details;
	const uint32_t positions = self->model->settings.prefix.places;
	const float *weight = self->device->parameters[self->model->first_tensor];

	for (uint32_t position = 0; position < positions; position++)
		for (uint64_t c = 0; c < prefix->channels; c++)
			to[position * prefix->channels + c] = weight[c * positions + position];
}

static enum psd_status forward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct prefix *prefix = self->details;
	const uint64_t others = prefix->whole - prefix->own;

	PSD_TRY(psd_cpu_op_run(&prefix->source_in, self, err));
	for (uint64_t n = 0; n < self->device->options.batch; n++) {
		float *to = (float *)self->blob->value + n * prefix->whole;

		put_vectors(self, to);
		memcpy(to + prefix->own, (const float *)*prefix->source + n * others, others * sizeof(*to));
	}
	return PSD_OK;
}

static void differentiate_vectors(const struct psd_cpu_layer *self)
{
	const struct prefix *prefix = self->details;
	const uint32_t positions = self->model->settings.prefix.places;
	const float *dout = self->blob->diff;
	float *dweight = self->gradients[0];

	memset(dweight, 0, prefix->own * sizeof(*dweight));
	for (uint64_t n = 0; n < self->device->options.batch; n++, dout += prefix->whole)
		for (uint32_t position = 0; position < positions; position++)
			for (uint64_t c = 0; c < prefix->channels; c++)
				dweight[c * positions + position] += dout[position * prefix->channels + c];
}

static enum psd_status backward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct prefix *prefix = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	const uint64_t others = prefix->whole - prefix->own;

	differentiate_vectors(self);
	if (!in->has_diff)
		return PSD_OK;
	psd_cpu_share_begin(self, in);
	for (uint64_t n = 0; n < self->device->options.batch; n++)
		memcpy((float *)*prefix->share + n * others,
		       (const float *)self->blob->diff + n * prefix->whole + prefix->own, others * sizeof(float));
	PSD_TRY(psd_cpu_op_run(&prefix->share_out, self, err));
	return psd_cpu_share_end(self, in, err);
}

const struct psd_cpu_kind psd_cpu_prefix = {prepare, forward, backward, .details_bytes = sizeof(struct prefix)};
