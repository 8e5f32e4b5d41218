/* Embedding: gathers a row of the table for each token. Tokens are read as floats: 16 bits would round large ones.
 * Gradients of equal tokens are added along chains, in order of position, so that equal input gives equal bits. */
#include <math.h>

#include "real/device/gpu/gpu.h"

struct embedding {
	void *next, *is_first; /* chains of positions with equal tokens */
};

static enum psd_status prepare(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct embedding *embedding = self->details;

	PSD_TRY(psd_gpu_declare(self, err));
	PSD_TRY(psd_gpu_want(self->device, psd_gpu_batch_positions(self) * sizeof(uint32_t), &embedding->next, err));
	return psd_gpu_want(self->device, psd_gpu_batch_positions(self) * sizeof(uint32_t), &embedding->is_first, err);
}

static enum psd_status check(const struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_batch *batch = &self->device->batch;
	const uint32_t vocabulary = self->model->settings.embedding.vocabulary;

	for (uint64_t i = 0; i < psd_gpu_batch_positions(self); i++) {
		const float token = batch->images[i];

		if (!(token >= 0 && token < (float)vocabulary && token == floorf(token)))
			return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
					     "layer '%.80s': sample %llu has token %g, must be a whole number from 0 "
					     "to %u",
					     self->model->name,
					     (unsigned long long)batch->first_sample + i / psd_gpu_positions(self),
					     (double)token, vocabulary - 1);
	}
	return PSD_OK;
}

static const float *tokens_of(const struct psd_gpu_layer *self)
{
	return self->device->slots[self->device->slot].images;
}

static enum psd_status forward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_embedding run = {.to = psd_gpu_value(self, self->blob),
					      .channel = psd_gpu_channel_of(self),
					      .tokens = tokens_of(self),
					      .table = self->device->parameters[self->model->first_tensor]};

	return psd_gpu_run_embedding(self->device, &run, self->blob->elements, err);
}

/* Begins to compute the gradient of the table; rows of tokens that do not occur get 0. */
static enum psd_status backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_embedding_settings *settings = &self->model->settings.embedding;
	const struct embedding *embedding = self->details;
	const struct psd_gpu_token_chains chains = {.tokens = tokens_of(self),
						    .n_positions = (uint32_t)psd_gpu_batch_positions(self),
						    .next = embedding->next,
						    .is_first = embedding->is_first};
	const struct psd_gpu_embedding_back run = {.diff = psd_gpu_diff(self, self->blob),
						   .channel = psd_gpu_channel_of(self),
						   .tokens = chains.tokens,
						   .next = chains.next,
						   .is_first = chains.is_first,
						   .n_positions = chains.n_positions,
						   .dtable = self->gradients[0],
						   .scale = 1.0f / self->device->diff_scale};

	PSD_TRY(psd_gpu_run_token_chains(self->device, &chains, chains.n_positions, err));
	PSD_TRY(psd_gpu_clear(self->device, run.dtable,
			      (uint64_t)settings->vocabulary * settings->outputs * sizeof(float), err));
	return psd_gpu_run_embedding_back(self->device, &run, self->blob->elements, err);
}

const struct psd_gpu_kind psd_gpu_kind_embedding = {.prepare = prepare,
						    .check = check,
						    .forward = forward,
						    .backward = backward,
						    .details_bytes = sizeof(struct embedding)};
