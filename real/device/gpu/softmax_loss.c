/* Softmax with multinomial logistic loss, averaged over a sample's positions. Losses of positions are double and copied
 * to the host, which adds them in order: they are few, and losses are compared between runs. */
#include "real/device/gpu/gpu.h"

struct softmax_loss {
	/* arrays on the GPU, as in struct psd_gpu_loss */
	void *largest, *likely_classes, *exponents, *partial_sums, *sums, *losses, *is_correct;
	/* copies of losses and is_correct in the host's memory; shape (positions) each */
	void *host_losses, *host_is_correct;
};

static enum psd_status want_all(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct softmax_loss *loss = self->details;
	const uint64_t positions = psd_gpu_batch_positions(self), parts = positions * PSD_GPU_PARTS;
	const struct {
		void **slot;
		uint64_t bytes;
	} wants[] = {
		{&loss->largest, parts * sizeof(float)},
		{&loss->likely_classes, parts * sizeof(uint32_t)},
		{&loss->exponents, positions * self->model->shape.channels * sizeof(float)},
		{&loss->partial_sums, parts * sizeof(double)},
		{&loss->sums, positions * sizeof(double)},
		{&loss->losses, positions * sizeof(double)},
		{&loss->is_correct, positions * sizeof(uint32_t)},
	};

	for (unsigned i = 0; i < sizeof(wants) / sizeof(wants[0]); i++)
		PSD_TRY(psd_gpu_want(self->device, wants[i].bytes, wants[i].slot, err));
	return PSD_OK;
}

static enum psd_status prepare(struct psd_gpu_layer *self, struct psd_error *err)
{
	const uint64_t positions = psd_gpu_batch_positions(self);
	struct softmax_loss *loss = self->details;

	if (psd_gpu_positions(self) != self->device->graph->labels)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "layer '%.80s' (softmax-loss) has %u positions, the last loss has labels for %llu",
				     self->model->name, psd_gpu_positions(self),
				     (unsigned long long)self->device->graph->labels);
	self->blob = &self->own; /* the loss is the last layer: no layer reads its output */
	PSD_TRY(want_all(self, err));
	PSD_TRY(psd_gpu_take_host(self->device, positions * sizeof(double), &loss->host_losses, err));
	return psd_gpu_take_host(self->device, positions * sizeof(uint32_t), &loss->host_is_correct, err);
}

static struct psd_gpu_loss loss_of(const struct psd_gpu_layer *self)
{
	const struct softmax_loss *loss = self->details;

	return (struct psd_gpu_loss){
		.scores = psd_gpu_value(self, psd_gpu_input(self, 0)),
		.labels = self->device->slots[self->device->slot].labels,
		.channel = psd_gpu_channel_of(self),
		.largest = loss->largest,
		.likely_classes = loss->likely_classes,
		.exponents = loss->exponents,
		.partial_sums = loss->partial_sums,
		.sums = loss->sums,
		.losses = loss->losses,
		.is_correct = loss->is_correct,
	};
}

static enum psd_status check(const struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_batch *batch = &self->device->batch;
	const uint32_t classes = self->model->shape.channels;

	for (uint64_t i = 0; i < psd_gpu_batch_positions(self); i++)
		if (batch->labels[i] < 0 || (uint32_t)batch->labels[i] >= classes)
			return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "sample %llu has label %ld, must be 0 to %u",
					     (unsigned long long)batch->first_sample + i / psd_gpu_positions(self),
					     (long)batch->labels[i], classes - 1);
	return PSD_OK;
}

static enum psd_status forward(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct psd_device *device = self->device;
	const struct psd_gpu_loss of = loss_of(self);
	const struct softmax_loss *loss = self->details;
	const uint64_t positions = psd_gpu_batch_positions(self);

	PSD_TRY(psd_gpu_run_loss_largest(device, &of, positions * PSD_GPU_PARTS, err));
	PSD_TRY(psd_gpu_run_loss_exponents(device, &of, positions * PSD_GPU_PARTS, err));
	PSD_TRY(psd_gpu_run_loss_end(device, &of, positions, err));
	PSD_TRY(psd_gpu_copy(device, PSD_STREAM_COMPUTE, loss->host_losses, loss->losses, positions * sizeof(double),
			     err));
	return psd_gpu_copy(device, PSD_STREAM_COMPUTE, loss->host_is_correct, loss->is_correct,
			    positions * sizeof(uint32_t), err);
}

/* Returns the divisor of the sum of the losses of all positions. */
static double divisor_of(const struct psd_gpu_layer *self)
{
	return self->device->network.loss_divisor * (double)psd_gpu_positions(self);
}

double psd_gpu_loss_of(const struct psd_gpu_layer *layer)
{
	const struct softmax_loss *loss = layer->details;
	const double *losses = loss->host_losses;
	double sum = 0;

	for (uint64_t i = 0; i < psd_gpu_batch_positions(layer); i++)
		sum += losses[i];
	return layer->model->settings.loss.weight * sum / divisor_of(layer);
}

/* A blob's elements fit into 32 bits. */
uint32_t psd_gpu_correct_of(const struct psd_gpu_layer *layer)
{
	const struct softmax_loss *loss = layer->details;
	const uint32_t *is_correct = loss->host_is_correct;
	uint32_t correct = 0;

	for (uint64_t i = 0; i < psd_gpu_batch_positions(layer); i++)
		correct += is_correct[i];
	return correct;
}

static enum psd_status backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct psd_gpu_blob *in = psd_gpu_input(self, 0);
	const double weight = self->model->settings.loss.weight * (double)self->device->diff_scale;
	const struct psd_gpu_loss_back run = {.loss = loss_of(self),
					      .to = psd_gpu_diff(self, in),
					      .weight = (float)(weight / divisor_of(self)),
					      .adds = psd_gpu_share(in)};

	return psd_gpu_run_loss_back(self->device, &run, in->elements, err);
}

const struct psd_gpu_kind psd_gpu_kind_softmax_loss = {.prepare = prepare,
						       .check = check,
						       .forward = forward,
						       .backward = backward,
						       .details_bytes = sizeof(struct softmax_loss)};
