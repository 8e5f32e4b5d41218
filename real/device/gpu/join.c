/* Layers that join branches: concatenation over channels, element-wise sum. Backward gives each branch its part or a
 * copy; a branch of a sum may instead share the sum's gradient. */
#include "real/device/gpu/gpu.h"

/* ---- concatenation ---- */

/* Returns the view of the output's channels that come from input i. */
static struct psd_gpu_view part_of(const struct psd_gpu_layer *self, unsigned i)
{
	struct psd_gpu_view part = psd_gpu_view_of(self);

	for (unsigned before = 0; before < i; before++)
		part.offset += psd_gpu_below(self, before)->model->shape.channels * part.strides[1];
	part.sizes[1] = psd_gpu_below(self, i)->model->shape.channels;
	return part;
}

static enum psd_status forward_concat(struct psd_gpu_layer *self, struct psd_error *err)
{
	for (unsigned i = 0; i < self->model->n_inputs; i++)
		PSD_TRY(psd_gpu_move_views(self,
					   (struct psd_gpu_move){.from = psd_gpu_value(self, psd_gpu_input(self, i)),
								 .to = psd_gpu_value(self, self->blob),
								 .from_view = psd_gpu_view_of(psd_gpu_below(self, i)),
								 .to_view = part_of(self, i),
								 .scale = 1.0f},
					   err));
	return PSD_OK;
}

static enum psd_status backward_concat(struct psd_gpu_layer *self, struct psd_error *err)
{
	for (unsigned i = 0; i < self->model->n_inputs; i++) {
		struct psd_gpu_blob *in = psd_gpu_input(self, i);

		if (in->has_diff)
			PSD_TRY(psd_gpu_move_views(
				self,
				(struct psd_gpu_move){.from = psd_gpu_diff(self, self->blob),
						      .to = psd_gpu_diff(self, in),
						      .from_view = part_of(self, i),
						      .to_view = psd_gpu_view_of(psd_gpu_below(self, i)),
						      .scale = 1.0f,
						      .adds = psd_gpu_share(in)},
				err));
	}
	return PSD_OK;
}

const struct psd_gpu_kind psd_gpu_kind_concat = {
	.prepare = psd_gpu_declare, .forward = forward_concat, .backward = backward_concat};

/* ---- sum ---- */

/* True if the gradient of an input may use the memory of the sum's gradient: no other layer reads the input, and the
 * input's layer does not change the gradient. */
static bool may_share_diff(const struct psd_gpu_layer *below)
{
	return below->n_readers == 1 && below->blob == &below->own && below->own.has_diff && !below->kind->keeps_diff;
}

static enum psd_status prepare_add(struct psd_gpu_layer *self, struct psd_error *err)
{
	self->rectifies = psd_gpu_feeds_relu(self);
	for (unsigned i = 0; i < self->model->n_inputs; i++)
		if (may_share_diff(psd_gpu_below(self, i)))
			psd_gpu_input(self, i)->diff_of = &self->own;
	return psd_gpu_declare(self, err);
}

/* Begins to add the first two inputs, then each further input to the sum. */
static enum psd_status forward_add(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_values to = psd_gpu_value(self, self->blob);
	struct psd_gpu_values left = psd_gpu_value(self, psd_gpu_input(self, 0));

	for (unsigned i = 1; i < self->model->n_inputs; i++) {
		struct psd_gpu_add run = {.left = left, .right = psd_gpu_value(self, psd_gpu_input(self, i)), .to = to};

		run.is_rectified = self->rectifies && i + 1 == self->model->n_inputs;
		if (run.is_rectified)
			run.slope = psd_gpu_slope_above(self);
		PSD_TRY(psd_gpu_run_add(self->device, &run, self->blob->elements, err));
		left = to;
	}
	return PSD_OK;
}

static enum psd_status backward_add(struct psd_gpu_layer *self, struct psd_error *err)
{
	for (unsigned i = 0; i < self->model->n_inputs; i++) {
		struct psd_gpu_blob *in = psd_gpu_input(self, i);
		struct psd_gpu_convert run = {
			.from = psd_gpu_diff(self, self->blob), .to = psd_gpu_diff(self, in), .scale = 1.0f};

		if (!in->has_diff)
			continue;
		run.adds = psd_gpu_share(in);
		if (in->diff_of)
			continue;
		PSD_TRY(psd_gpu_run_convert(self->device, &run, in->elements, err));
	}
	return PSD_OK;
}

const struct psd_gpu_kind psd_gpu_kind_add = {.prepare = prepare_add, .forward = forward_add, .backward = backward_add};
