/* Local response normalisation over neighbouring channels or positions. */
#include "real/device/gpu/gpu.h"

struct lrn {
	void *ratios; /* ratio of each element of the output, as floats */
};

/* Returns the factor on each square in the ratio. */
static float alpha_of(const struct psd_lrn_settings *settings)
{
	const double summands = settings->is_within_channel ? (double)settings->size * settings->size : settings->size;

	return (float)(settings->alpha / summands);
}

static enum psd_status prepare(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct lrn *lrn = self->details;

	PSD_TRY(psd_gpu_declare(self, err));
	return psd_gpu_want(self->device, self->own.elements * sizeof(float), &lrn->ratios, err);
}

static struct psd_gpu_lrn lrn_of(const struct psd_gpu_layer *self)
{
	const struct psd_lrn_settings *settings = &self->model->settings.lrn;
	const struct lrn *lrn = self->details;

	return (struct psd_gpu_lrn){.from = psd_gpu_value(self, psd_gpu_input(self, 0)),
				    .to = psd_gpu_value(self, self->blob),
				    .maps = psd_gpu_maps_of(self),
				    .ratios = lrn->ratios,
				    .size = settings->size,
				    .is_within_channel = settings->is_within_channel,
				    .alpha = alpha_of(settings),
				    .beta = (float)settings->beta,
				    .k = (float)settings->k};
}

static enum psd_status forward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_lrn run = lrn_of(self);

	return psd_gpu_run_lrn(self->device, &run, self->blob->elements, err);
}

static enum psd_status backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct psd_gpu_blob *in = psd_gpu_input(self, 0);
	const struct psd_gpu_lrn_back run = {.lrn = lrn_of(self),
					     .diff = psd_gpu_diff(self, self->blob),
					     .to = psd_gpu_diff(self, in),
					     .adds = psd_gpu_share(in)};

	return psd_gpu_run_lrn_back(self->device, &run, in->elements, err);
}

/* keeps the output, which backward reads */
const struct psd_gpu_kind psd_gpu_kind_lrn = {.prepare = prepare,
					      .forward = forward,
					      .backward = backward,
					      .details_bytes = sizeof(struct lrn),
					      .keeps = PSD_KEEPS_ALL};
