/* Embedding: gathers a row of the table for each token. */
#include <math.h>
#include <string.h>

#include "real/device/cpu/cpu.h"

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	const dnnl_memory_desc_t format = psd_cpu_channels_last(self);

	return psd_cpu_declare(self, &format, err);
}

static enum psd_status refuse(const struct psd_cpu_layer *self, uint64_t sample, float token, struct psd_error *err)
{
	return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
			     "layer '%.80s': sample %llu has token %g, must be a whole number from 0 to %u",
			     self->model->name, (unsigned long long)(self->device->batch.first_sample + sample),
			     (double)token, self->model->settings.embedding.vocabulary - 1);
}

static enum psd_status forward(struct psd_cpu_layer *self, struct psd_error *err)
{
	const struct psd_embedding_settings *embedding = &self->model->settings.embedding;
	const uint64_t n_positions = psd_cpu_places_of(self), n_tokens = self->device->options.batch * n_positions;
	const float *tokens = psd_cpu_input(self, 0)->value;
	const float *table = self->device->parameters[self->model->first_tensor];
	float *out = self->blob->value;

	for (uint64_t i = 0; i < n_tokens; i++) {
		if (!(tokens[i] >= 0 && tokens[i] < (float)embedding->vocabulary && tokens[i] == floorf(tokens[i])))
			return refuse(self, i / n_positions, tokens[i], err);
		memcpy(out + i * embedding->outputs, table + (uint64_t)tokens[i] * embedding->outputs,
		       embedding->outputs * sizeof(*out));
	}
	return PSD_OK;
}

static enum psd_status backward(struct psd_cpu_layer *self, struct psd_error *err)
{
	const struct psd_embedding_settings *embedding = &self->model->settings.embedding;
	const uint64_t n_tokens = self->device->options.batch * psd_cpu_places_of(self);
	const float *tokens = psd_cpu_input(self, 0)->value, *dout = self->blob->diff;
	float *dtable = self->gradients[0];

	(void)err;
	memset(dtable, 0, (uint64_t)embedding->vocabulary * embedding->outputs * sizeof(*dtable));
	for (uint64_t i = 0; i < n_tokens; i++) {
		float *row = dtable + (uint64_t)tokens[i] * embedding->outputs;

		for (uint32_t c = 0; c < embedding->outputs; c++)
			row[c] += dout[i * embedding->outputs + c];
	}
	return PSD_OK;
}

const struct psd_cpu_kind psd_cpu_embedding = {.prepare = prepare, .forward = forward, .backward = backward};
