/* Layers that only move values: one move for forward and one for backward, between views of input and output with the
 * same axes. */
#include "real/device/gpu/gpu.h"

struct views {
	struct psd_gpu_view in, out;
	/* the move goes through the axes in their own order, because they are not (samples, channels, rows, columns) */
	bool is_in_order;
};

static enum psd_status run(struct psd_gpu_layer *self, struct psd_gpu_move move, struct psd_error *err)
{
	const struct views *views = self->details;

	move.scale = 1.0f;
	if (views->is_in_order)
		return psd_gpu_run_move(self->device, &move, psd_gpu_view_elements(&move.to_view), err);
	return psd_gpu_move_views(self, move, err);
}

static enum psd_status forward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct views *views = self->details;

	return run(self,
		   (struct psd_gpu_move){.from = psd_gpu_value(self, psd_gpu_input(self, 0)),
					 .to = psd_gpu_value(self, self->blob),
					 .from_view = views->in,
					 .to_view = views->out},
		   err);
}

static enum psd_status backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct views *views = self->details;
	struct psd_gpu_blob *in = psd_gpu_input(self, 0);

	return run(self,
		   (struct psd_gpu_move){.from = psd_gpu_diff(self, self->blob),
					 .to = psd_gpu_diff(self, in),
					 .from_view = views->out,
					 .to_view = views->in,
					 .adds = psd_gpu_share(in)},
		   err);
}

/* Prepares a reshape: element i of the input in row-major order becomes element i of the output, for any memory
 * order. */
static enum psd_status prepare_reshape(struct psd_gpu_layer *self, struct psd_error *err)
{
	*(struct views *)self->details =
		(struct views){psd_gpu_view_of(psd_gpu_below(self, 0)), psd_gpu_view_of(self), true};
	return psd_gpu_declare(self, err);
}

static enum psd_status prepare_permute(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_view in = psd_gpu_view_of(psd_gpu_below(self, 0));
	struct views *views = self->details;

	views->in = in;
	views->out = psd_gpu_view_of(self);
	for (unsigned axis = 0; axis < 3; axis++) {
		views->in.sizes[1 + axis] = in.sizes[self->model->settings.permute.order[axis]];
		views->in.strides[1 + axis] = in.strides[self->model->settings.permute.order[axis]];
	}
	return psd_gpu_declare(self, err);
}

static enum psd_status prepare_slice(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct views *views = self->details;

	views->in = psd_gpu_view_of(psd_gpu_below(self, 0));
	views->in.offset = self->model->settings.slice.first * views->in.strides[1];
	views->in.sizes[1] = self->model->shape.channels;
	views->out = psd_gpu_view_of(self);
	return psd_gpu_declare(self, err);
}

/* Begins the backward pass of a slice; the gradient of channels outside the slice becomes 0. */
static enum psd_status backward_slice(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct psd_gpu_blob *in = psd_gpu_input(self, 0);

	if (!psd_gpu_share(in))
		PSD_TRY(psd_gpu_clear(self->device, in->diff, in->bytes, err));
	return backward(self, err);
}

/* Prepares a channel shuffle, a transposition of the axes (groups, channels of a group). Rows and columns are one
 * axis. */
static enum psd_status prepare_shuffle(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_view maps = psd_gpu_view_of(self);
	const uint32_t groups = self->model->settings.shuffle.groups, others = self->model->shape.channels / groups;
	const uint32_t positions = psd_gpu_positions(self), channel = maps.strides[1], position = maps.strides[3];
	struct views *views = self->details;

	views->in = (struct psd_gpu_view){.sizes = {maps.sizes[0], others, groups, positions},
					  .strides = {maps.strides[0], channel, others * channel, position}};
	views->out = (struct psd_gpu_view){.sizes = {maps.sizes[0], others, groups, positions},
					   .strides = {maps.strides[0], groups * channel, channel, position}};
	views->is_in_order = true;
	for (unsigned turn = 0; turn < 2 && self->device->is_channels_last; turn++) {
		psd_gpu_view_turn(&views->in);
		psd_gpu_view_turn(&views->out);
	}
	return psd_gpu_declare(self, err);
}

#define KIND(name, back)                                                                                               \
	const struct psd_gpu_kind psd_gpu_kind_##name = {.prepare = prepare_##name,                                    \
							 .forward = forward,                                           \
							 .backward = back,                                             \
							 .details_bytes = sizeof(struct views)}

KIND(reshape, backward);
KIND(permute, backward);
KIND(slice, backward_slice);
KIND(shuffle, backward);
