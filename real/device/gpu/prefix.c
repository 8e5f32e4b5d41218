/* Learned vectors in front of each sample's positions: copies of the vectors and of the input's positions. Rows and
 * columns are one axis. */
#include "real/device/gpu/gpu.h"

static uint32_t own_places(const struct psd_gpu_layer *self)
{
	return self->model->settings.prefix.places;
}

/* Returns a view of the output's positions from `first` on. */
static struct psd_gpu_view part_of(const struct psd_gpu_layer *self, uint32_t first, uint32_t positions)
{
	struct psd_gpu_view part = psd_gpu_view_of(self);

	part.offset = first * part.strides[2];
	part.sizes[2] = positions;
	return part;
}

static struct psd_gpu_view others_of(const struct psd_gpu_layer *self)
{
	return part_of(self, own_places(self), psd_gpu_positions(self) - own_places(self));
}

static struct psd_gpu_view input_of(const struct psd_gpu_layer *self)
{
	struct psd_gpu_view in = psd_gpu_view_of(psd_gpu_below(self, 0));

	in.sizes[2] *= in.sizes[3];
	in.strides[2] = in.strides[3];
	in.sizes[3] = 1;
	return in;
}

static enum psd_status put_vectors(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_view to = part_of(self, 0, own_places(self));
	struct psd_gpu_view from = to;

	from.strides[0] = 0; /* every sample gets the same vectors */
	from.strides[1] = own_places(self);
	from.strides[2] = 1;
	return psd_gpu_move_views(
		self,
		(struct psd_gpu_move){.from = psd_gpu_floats(self->device->parameters[self->model->first_tensor]),
				      .to = psd_gpu_value(self, self->blob),
				      .from_view = from,
				      .to_view = to,
				      .scale = 1.0f},
		err);
}

static enum psd_status forward(struct psd_gpu_layer *self, struct psd_error *err)
{
	PSD_TRY(put_vectors(self, err));
	return psd_gpu_move_views(self,
				  (struct psd_gpu_move){
					  .from = psd_gpu_value(self, psd_gpu_input(self, 0)),
					  .to = psd_gpu_value(self, self->blob),
					  .from_view = input_of(self),
					  .to_view = others_of(self),
					  .scale = 1.0f,
				  },
				  err);
}

static enum psd_status backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_device *device = self->device;
	struct psd_gpu_blob *in = psd_gpu_input(self, 0);
	const struct psd_gpu_prefix_back run = {.diff = psd_gpu_diff(self, self->blob),
						.channel = psd_gpu_channel_of(self),
						.positions = psd_gpu_positions(self),
						.own = own_places(self),
						.batch = device->network.batch,
						.dweight = self->gradients[0],
						.scale = 1.0f / device->diff_scale};
	const enum psd_status status =
		psd_gpu_run_prefix_back(self->device, &run, (uint64_t)run.own * run.channel.channels, err);

	return status || !in->has_diff ? status
				       : psd_gpu_move_views(self,
							    (struct psd_gpu_move){
								    .from = run.diff,
								    .to = psd_gpu_diff(self, in),
								    .from_view = others_of(self),
								    .to_view = input_of(self),
								    .scale = 1.0f,
								    .adds = psd_gpu_share(in),
							    },
							    err);
}

const struct psd_gpu_kind psd_gpu_kind_prefix = {.prepare = psd_gpu_declare, .forward = forward, .backward = backward};
