/* A pass of one layer, with gradients of tensors that several layers share. */
#include "real/device/gpu/gpu.h"

static enum psd_status add_part(struct psd_device *device, void *sum, const void *part, uint64_t elements,
				struct psd_error *err)
{
	const struct psd_gpu_add add = {
		.left = psd_gpu_floats(sum), .right = psd_gpu_floats(part), .to = psd_gpu_floats(sum)};

	return psd_gpu_run_add(device, &add, elements, err);
}

/* Begins to add the gradients of a shared tensor by all layers that share it. `owner` is the lowest of these layers, so
 * all gradients are computed when its backward pass has ended. */
static enum psd_status add_shared(const struct psd_gpu_layer *owner, struct psd_error *err)
{
	struct psd_device *device = owner->device;
	const unsigned first = owner->model->first_tensor;

	for (unsigned l = owner->number + 1; l < device->graph->n_layers; l++) {
		const struct psd_gpu_layer *other = &device->layers[l];

		for (unsigned i = 0; i < other->model->n_shared && other->model->first_tensor == first; i++)
			PSD_TRY(add_part(device, owner->gradients[i], other->gradients[i],
					 device->graph->tensors[first + i].elements, err));
	}
	return PSD_OK;
}

static enum psd_status begin_backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	if (!self->model->is_trained)
		return PSD_OK;
	/* the loss does not depend on this blob, so its gradient is 0 */
	if (self->blob->has_diff && !psd_gpu_share(self->blob))
		PSD_TRY(psd_gpu_clear(self->device, self->blob->diff, self->blob->bytes, err));
	PSD_TRY(self->kind->backward(self, err));
	return self->model->n_tensors == 0 ? PSD_OK : add_shared(self, err);
}

enum psd_status psd_gpu_begin_layer(struct psd_gpu_layer *layer, bool is_backward, struct psd_error *err)
{
	return is_backward ? begin_backward(layer, err) : layer->kind->forward(layer, err);
}
