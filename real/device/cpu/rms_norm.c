/* RMSNorm over the channels of each position, which are adjacent here. oneDNN has no primitive for it. */
#include <math.h>
#include <string.h>

#include "real/device/cpu/cpu.h"

enum { LANES = 16 }; /* interleaved partial sums, for one vector instruction */

struct rms_norm {
	struct psd_cpu_op source_in, share_out;
	void *const *source, *const *share; /* slots (struct psd_cpu_op) of the input and its gradient */
	float *inverse;			    /* 1 / root mean square of each position; shape (positions) */
	uint64_t positions, channels;	    /* positions: number in the whole batch; channels: number per position */
	bool has_scale;
};

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	const dnnl_memory_desc_t format = psd_cpu_channels_last(self);
	struct rms_norm *norm = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);

	PSD_TRY(psd_cpu_declare(self, &format, err));
	norm->positions = self->device->options.batch * psd_cpu_places_of(self);
	norm->channels = self->model->shape.channels;
	norm->has_scale = self->model->settings.affine.has_scale;
	norm->inverse = psd_cpu_take(self->device, norm->positions * sizeof(*norm->inverse));
	if (!norm->inverse)
		return psd_cpu_no_memory(err);
	PSD_TRY(psd_cpu_op_convert(&norm->source_in, self, psd_cpu_value(in), &format, PSD_CPU_SCRATCH_SOURCE,
				   &norm->source, err));
	return in->has_diff ? psd_cpu_op_deliver(&norm->share_out, self, psd_cpu_share(in), &format,
						 PSD_CPU_SCRATCH_RESULT, &norm->share, err)
			    : PSD_OK;
}

static const float *gamma_of(const struct psd_cpu_layer *self)
{
	const struct rms_norm *norm = self->details;

	return norm->has_scale ? self->device->parameters[self->model->first_tensor] : NULL;
}

static float total_of(const float lanes[LANES])
{
	float sum = 0;

	for (unsigned lane = 0; lane < LANES; lane++)
		sum += lanes[lane];
	return sum;
}

/* Returns the sum of left * right * gamma over the channels; gamma NULL: 1. */
static float dot(const float *left, const float *right, const float *gamma, uint64_t channels)
{
	float lanes[LANES] = {0};

	for (uint64_t first = 0; first < channels; first += LANES) {
		const uint64_t n = channels - first < LANES ? channels - first : LANES;

		for (uint64_t i = 0; i < n; i++)
			lanes[i] += left[first + i] * right[first + i] * (gamma ? gamma[first + i] : 1);
	}
	return total_of(lanes);
}

static enum psd_status forward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct rms_norm *norm = self->details;
	const float epsilon = (float)self->model->settings.affine.epsilon, *gamma = gamma_of(self);

	PSD_TRY(psd_cpu_op_run(&norm->source_in, self, err));
	for (uint64_t p = 0; p < norm->positions; p++) {
		const float *from = (const float *)*norm->source + p * norm->channels;
		float *to = (float *)self->blob->value + p * norm->channels;
		const float inverse =
			1 / sqrtf(dot(from, from, NULL, norm->channels) / (float)norm->channels + epsilon);

		norm->inverse[p] = inverse;
		for (uint64_t c = 0; c < norm->channels; c++)
			to[c] = from[c] * inverse * (gamma ? gamma[c] : 1);
	}
	return PSD_OK;
}

static void differentiate_scale(const struct psd_cpu_layer *self)
{
	const struct rms_norm *norm = self->details;
	const float *from = *norm->source, *dto = self->blob->diff;
	float *dgamma = self->gradients[0];

	memset(dgamma, 0, norm->channels * sizeof(*dgamma));
	for (uint64_t p = 0; p < norm->positions; p++, from += norm->channels, dto += norm->channels)
		for (uint64_t c = 0; c < norm->channels; c++)
			dgamma[c] += dto[c] * from[c] * norm->inverse[p];
}

/* Computes the gradient of the input: r * (g - r * r * from * mean(g * from)), where r is the inverse root mean square
 * and g = dto * gamma. */
static void differentiate_input(const struct psd_cpu_layer *self)
{
	const struct rms_norm *norm = self->details;
	const float *gamma = gamma_of(self);

	for (uint64_t p = 0; p < norm->positions; p++) {
		const float *from = (const float *)*norm->source + p * norm->channels;
		const float *dto = (const float *)self->blob->diff + p * norm->channels;
		float *dfrom = (float *)*norm->share + p * norm->channels;
		const float inverse = norm->inverse[p];
		const float mean = dot(dto, from, gamma, norm->channels) / (float)norm->channels;

		for (uint64_t c = 0; c < norm->channels; c++)
			dfrom[c] = inverse * (dto[c] * (gamma ? gamma[c] : 1) - inverse * inverse * mean * from[c]);
	}
}

static enum psd_status backward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct rms_norm *norm = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);

	PSD_TRY(psd_cpu_op_run(&norm->source_in, self, err));
	if (norm->has_scale)
		differentiate_scale(self);
	if (!in->has_diff)
		return PSD_OK;
	psd_cpu_share_begin(self, in);
	differentiate_input(self);
	PSD_TRY(psd_cpu_op_run(&norm->share_out, self, err));
	return psd_cpu_share_end(self, in, err);
}

const struct psd_cpu_kind psd_cpu_rms_norm = {prepare, forward, backward, .details_bytes = sizeof(struct rms_norm)};
