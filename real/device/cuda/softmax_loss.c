/* Softmax with the multinomial logistic loss. Losses of samples are double and go to the host, which sums them in
 * order: they are few, and the loss is compared between runs. */
#include "real/device/cuda/cuda.h"

struct softmax_loss {
	void *largest, *places, *exponents, *partial_sums, *sums, *losses, *is_correct; /* slots */
	void *host_losses, *host_is_correct;						/* (batch) */
};

static enum psd_status want_all(struct psd_cuda_layer *self, struct psd_error *err)
{
	struct softmax_loss *loss = self->details;
	const uint64_t batch = self->device->network.batch, parts = batch * PSD_CUDA_LOSS_PARTS;
	const struct {
		void **slot;
		uint64_t bytes;
	} wants[] = {
		{&loss->largest, parts * sizeof(float)},
		{&loss->places, parts * sizeof(uint32_t)},
		{&loss->exponents, batch * self->model->shape.channels * sizeof(float)},
		{&loss->partial_sums, parts * sizeof(double)},
		{&loss->sums, batch * sizeof(double)},
		{&loss->losses, batch * sizeof(double)},
		{&loss->is_correct, batch * sizeof(uint32_t)},
	};
	enum psd_status status = PSD_OK;

	for (unsigned i = 0; i < sizeof(wants) / sizeof(wants[0]) && !status; i++)
		status = psd_cuda_want(self->device, wants[i].bytes, wants[i].slot, err);
	return status;
}

static enum psd_status prepare(struct psd_cuda_layer *self, struct psd_error *err)
{
	const struct psd_layer *model = self->model;
	const uint64_t batch = self->device->network.batch;
	struct softmax_loss *loss = self->details;
	enum psd_status status;

	if (model->shape.height != 1 || model->shape.width != 1)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "layer '%.80s' (softmax-loss) has an input of %ux%u places, cuda needs 1x1",
				     model->name, model->shape.height, model->shape.width);
	self->blob = &self->own; /* nobody reads it */
	status = want_all(self, err);
	if (!status)
		status = psd_cuda_take_host(self->device, batch * sizeof(double), &loss->host_losses, err);
	return status ? status
		      : psd_cuda_take_host(self->device, batch * sizeof(uint32_t), &loss->host_is_correct, err);
}

static struct psd_cuda_loss loss_of(const struct psd_cuda_layer *self)
{
	const struct softmax_loss *loss = self->details;

	return (struct psd_cuda_loss){
		.scores = psd_cuda_value(self, psd_cuda_input(self, 0)),
		.labels = self->device->slots[self->device->slot].labels,
		.classes = self->model->shape.channels,
		.largest = loss->largest,
		.places = loss->places,
		.exponents = loss->exponents,
		.partial_sums = loss->partial_sums,
		.sums = loss->sums,
		.losses = loss->losses,
		.is_correct = loss->is_correct,
	};
}

static enum psd_status check(const struct psd_cuda_layer *self, struct psd_error *err)
{
	const struct psd_batch *batch = &self->device->batch;
	const uint32_t classes = self->model->shape.channels;

	for (uint32_t i = 0; i < self->device->network.batch; i++)
		if (batch->labels[i] < 0 || (uint32_t)batch->labels[i] >= classes)
			return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "sample %llu has label %ld, must be 0 to %u",
					     (unsigned long long)batch->first_sample + i, (long)batch->labels[i],
					     classes - 1);
	return PSD_OK;
}

static enum psd_status forward(struct psd_cuda_layer *self, struct psd_error *err)
{
	struct psd_device *device = self->device;
	const struct psd_cuda_loss of = loss_of(self);
	const struct softmax_loss *loss = self->details;
	const uint64_t batch = device->network.batch;
	enum psd_status status = psd_cuda_run_loss_largest(device, &(struct psd_cuda_loss_largest){of},
							   batch * PSD_CUDA_LOSS_PARTS, err);

	if (!status)
		status = psd_cuda_run_loss_exponents(device, &(struct psd_cuda_loss_exponents){of},
						     batch * PSD_CUDA_LOSS_PARTS, err);
	if (!status)
		status = psd_cuda_run_loss_end(device, &(struct psd_cuda_loss_end){of}, batch, err);
	if (!status)
		status = psd_cuda_copy(device, PSD_STREAM_COMPUTE, loss->host_losses, loss->losses,
				       batch * sizeof(double), err);
	return status ? status
		      : psd_cuda_copy(device, PSD_STREAM_COMPUTE, loss->host_is_correct, loss->is_correct,
				      batch * sizeof(uint32_t), err);
}

double psd_cuda_loss_of(const struct psd_cuda_layer *layer)
{
	const struct softmax_loss *loss = layer->details;
	const double *losses = loss->host_losses;
	double sum = 0;

	for (uint32_t i = 0; i < layer->device->network.batch; i++)
		sum += losses[i];
	return layer->model->settings.loss.weight * sum / layer->device->network.loss_divisor;
}

uint32_t psd_cuda_correct_of(const struct psd_cuda_layer *layer)
{
	const struct softmax_loss *loss = layer->details;
	const uint32_t *is_correct = loss->host_is_correct;
	uint32_t correct = 0;

	for (uint32_t i = 0; i < layer->device->network.batch; i++)
		correct += is_correct[i];
	return correct;
}

static enum psd_status backward(struct psd_cuda_layer *self, struct psd_error *err)
{
	const struct psd_device *device = self->device;
	struct psd_cuda_blob *in = psd_cuda_input(self, 0);
	struct psd_cuda_loss_back run = {.loss = loss_of(self), .to = psd_cuda_diff(self, in)};

	if (!in->has_diff)
		return PSD_OK;
	run.weight =
		(float)(self->model->settings.loss.weight * (double)device->diff_scale / device->network.loss_divisor);
	run.adds = psd_cuda_share(in);
	return psd_cuda_run_loss_back(self->device, &run, in->elements, err);
}

const struct psd_cuda_kind psd_cuda_kind_softmax_loss = {.prepare = prepare,
							 .check = check,
							 .forward = forward,
							 .backward = backward,
							 .details_bytes = sizeof(struct softmax_loss)};
