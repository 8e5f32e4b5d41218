/* Layers that join branches: concatenation over channels, element-wise sum. Backward gives each branch its part or a
 * copy; a branch of a sum may instead share the sum's gradient. */
#include "real/device/gpu/gpu.h"

/* ---- concatenation ---- */

/* Returns the view of the output's channels that come from input i. */
static struct psd_cuda_view part_of(const struct psd_cuda_layer *self, unsigned i)
{
	struct psd_cuda_view part = psd_cuda_view_of(self);

	for (unsigned before = 0; before < i; before++)
		part.offset += psd_cuda_below(self, before)->model->shape.channels * part.strides[1];
	part.sizes[1] = psd_cuda_below(self, i)->model->shape.channels;
	return part;
}

static enum psd_status forward_concat(struct psd_cuda_layer *self, struct psd_error *err)
{
	for (unsigned i = 0; i < self->model->n_inputs; i++)
		PSD_TRY(psd_cuda_move_views(
			self,
			(struct psd_cuda_move){.from = psd_cuda_value(self, psd_cuda_input(self, i)),
					       .to = psd_cuda_value(self, self->blob),
					       .from_view = psd_cuda_view_of(psd_cuda_below(self, i)),
					       .to_view = part_of(self, i),
					       .scale = 1.0f},
			err));
	return PSD_OK;
}

static enum psd_status backward_concat(struct psd_cuda_layer *self, struct psd_error *err)
{
	for (unsigned i = 0; i < self->model->n_inputs; i++) {
		struct psd_cuda_blob *in = psd_cuda_input(self, i);

		if (in->has_diff)
			PSD_TRY(psd_cuda_move_views(
				self,
				(struct psd_cuda_move){.from = psd_cuda_diff(self, self->blob),
						       .to = psd_cuda_diff(self, in),
						       .from_view = part_of(self, i),
						       .to_view = psd_cuda_view_of(psd_cuda_below(self, i)),
						       .scale = 1.0f,
						       .adds = psd_cuda_share(in)},
				err));
	}
	return PSD_OK;
}

const struct psd_cuda_kind psd_cuda_kind_concat = {
	.prepare = psd_cuda_declare, .forward = forward_concat, .backward = backward_concat};

/* ---- sum ---- */

/* True if the gradient of an input may use the memory of the sum's gradient: no other layer reads the input, and the
 * input's layer does not change the gradient. */
static bool may_share_diff(const struct psd_cuda_layer *below)
{
	return below->n_readers == 1 && below->blob == &below->own && below->own.has_diff && !below->kind->keeps_diff;
}

static enum psd_status prepare_add(struct psd_cuda_layer *self, struct psd_error *err)
{
	self->rectifies = psd_cuda_feeds_relu(self);
	for (unsigned i = 0; i < self->model->n_inputs; i++)
		if (may_share_diff(psd_cuda_below(self, i)))
			psd_cuda_input(self, i)->diff_of = &self->own;
	return psd_cuda_declare(self, err);
}

/* Begins to add the first two inputs, then each further input to the sum. */
static enum psd_status forward_add(struct psd_cuda_layer *self, struct psd_error *err)
{
	const struct psd_cuda_values to = psd_cuda_value(self, self->blob);
	struct psd_cuda_values left = psd_cuda_value(self, psd_cuda_input(self, 0));

	for (unsigned i = 1; i < self->model->n_inputs; i++) {
		struct psd_cuda_add run = {
			.left = left, .right = psd_cuda_value(self, psd_cuda_input(self, i)), .to = to};

		run.is_rectified = self->rectifies && i + 1 == self->model->n_inputs;
		if (run.is_rectified)
			run.slope = psd_cuda_slope_above(self);
		PSD_TRY(psd_cuda_run_add(self->device, &run, self->blob->elements, err));
		left = to;
	}
	return PSD_OK;
}

static enum psd_status backward_add(struct psd_cuda_layer *self, struct psd_error *err)
{
	for (unsigned i = 0; i < self->model->n_inputs; i++) {
		struct psd_cuda_blob *in = psd_cuda_input(self, i);
		struct psd_cuda_convert run = {
			.from = psd_cuda_diff(self, self->blob), .to = psd_cuda_diff(self, in), .scale = 1.0f};

		if (!in->has_diff)
			continue;
		run.adds = psd_cuda_share(in);
		if (in->diff_of)
			continue;
		PSD_TRY(psd_cuda_run_convert(self->device, &run, in->elements, err));
	}
	return PSD_OK;
}

const struct psd_cuda_kind psd_cuda_kind_add = {
	.prepare = prepare_add, .forward = forward_add, .backward = backward_add};
