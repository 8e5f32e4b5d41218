/* Product of two inputs; the second may have one value for each map. */
#include "real/device/gpu/gpu.h"

static bool is_flat(const struct psd_gpu_layer *self)
{
	return psd_gpu_positions(self) != psd_gpu_positions(psd_gpu_below(self, 1));
}

static struct psd_gpu_multiply product(const struct psd_gpu_layer *self, struct psd_gpu_values left,
				       struct psd_gpu_values right, struct psd_gpu_values to)
{
	return (struct psd_gpu_multiply){
		.left = left, .right = right, .to = to, .maps = psd_gpu_maps_of(self), .is_flat = is_flat(self)};
}

/* Returns the reduction for the gradient of an input with one value per channel and sample: the sum of (gradient of the
 * output) * (first input). */
static struct psd_gpu_reduction sum_of_maps(const struct psd_gpu_layer *self)
{
	return (struct psd_gpu_reduction){.left = psd_gpu_diff(self, self->blob),
					  .right = psd_gpu_value(self, psd_gpu_input(self, 0)),
					  .summand = PSD_GPU_SUM_PRODUCT,
					  .is_by_sample = true,
					  .to = psd_gpu_diff(self, psd_gpu_input(self, 1)),
					  .scale = 1.0f};
}

static enum psd_status prepare(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_reduction sums = {.is_by_sample = true};

	if (is_flat(self))
		psd_gpu_want_reduction(self, &sums);
	return psd_gpu_declare(self, err);
}

static enum psd_status forward(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_gpu_multiply run =
		product(self, psd_gpu_value(self, psd_gpu_input(self, 0)), psd_gpu_value(self, psd_gpu_input(self, 1)),
			psd_gpu_value(self, self->blob));

	return psd_gpu_run_multiply(self->device, &run, self->blob->elements, err);
}

static enum psd_status backward_first(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct psd_gpu_blob *first = psd_gpu_input(self, 0);
	struct psd_gpu_multiply run = product(self, psd_gpu_diff(self, self->blob),
					      psd_gpu_value(self, psd_gpu_input(self, 1)), psd_gpu_diff(self, first));

	run.adds = psd_gpu_share(first);
	return psd_gpu_run_multiply(self->device, &run, first->elements, err);
}

static enum psd_status backward_second(struct psd_gpu_layer *self, struct psd_error *err)
{
	struct psd_gpu_blob *second = psd_gpu_input(self, 1);
	struct psd_gpu_multiply run = product(self, psd_gpu_diff(self, self->blob),
					      psd_gpu_value(self, psd_gpu_input(self, 0)), psd_gpu_diff(self, second));
	struct psd_gpu_reduction sums = sum_of_maps(self);

	run.adds = sums.adds = psd_gpu_share(second);
	return is_flat(self) ? psd_gpu_reduce(self, &sums, err)
			     : psd_gpu_run_multiply(self->device, &run, second->elements, err);
}

static enum psd_status backward(struct psd_gpu_layer *self, struct psd_error *err)
{
	if (psd_gpu_input(self, 0)->has_diff)
		PSD_TRY(backward_first(self, err));
	return psd_gpu_input(self, 1)->has_diff ? backward_second(self, err) : PSD_OK;
}

const struct psd_gpu_kind psd_gpu_kind_multiply = {.prepare = prepare, .forward = forward, .backward = backward};
