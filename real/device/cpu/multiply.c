/* Product of two inputs; the second may have one value for each map. */
#include "real/device/cpu/cpu.h"

struct multiply {
	struct psd_cpu_op factor_in, forward; /* factor_in: converts the second input to the format of the product */
	/* gradients by the first and by the second input; sum: adds the values of each channel */
	struct psd_cpu_op by_first, by_second, sum, by_second_out;
	void *const *factor; /* slot (struct psd_cpu_op) of the second input in the format of the product */
	void *const *product, *const *share;
};

static enum psd_status make_product(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_cpu_arg left,
				    struct psd_cpu_arg right, struct psd_cpu_arg to, struct psd_error *err)
{
	dnnl_binary_desc_t desc;
	const dnnl_status_t failure = dnnl_binary_desc_init(&desc, dnnl_binary_mul, left.desc, right.desc, to.desc);

	left.arg = DNNL_ARG_SRC_0;
	right.arg = DNNL_ARG_SRC_1;
	to.arg = DNNL_ARG_DST;
	return psd_cpu_op_make(op, self, "product", failure, &desc, NULL, (const struct psd_cpu_arg[]){left, right, to},
			       3, err);
}

static enum psd_status make_sum(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_cpu_arg from,
				struct psd_cpu_arg to, struct psd_error *err)
{
	dnnl_reduction_desc_t desc;
	const dnnl_status_t failure =
		dnnl_reduction_desc_init(&desc, dnnl_reduction_sum, from.desc, to.desc, 0.0f, 0.0f);

	from.arg = DNNL_ARG_SRC;
	to.arg = DNNL_ARG_DST;
	return psd_cpu_op_make(op, self, "sum", failure, &desc, NULL, (const struct psd_cpu_arg[]){from, to}, 2, err);
}

/* Product of the output's gradient and the first input, summed over a map where the second input has one value. */
static enum psd_status prepare_by_second(struct psd_cpu_layer *self, const dnnl_memory_desc_t *factor,
					 struct psd_error *err)
{
	struct multiply *multiply = self->details;
	struct psd_cpu_blob *first = psd_cpu_input(self, 0), *second = psd_cpu_input(self, 1), *out = self->blob;
	const bool is_summed = factor != &out->desc;

	PSD_TRY(psd_cpu_op_deliver(&multiply->by_second_out, self, psd_cpu_share(second), factor,
				   PSD_CPU_SCRATCH_SOURCE, &multiply->share, err));
	multiply->product =
		is_summed ? psd_cpu_scratch_slot(self->device, PSD_CPU_SCRATCH_RESULT, out->bytes) : multiply->share;
	PSD_TRY(make_product(&multiply->by_second, self, psd_cpu_diff(out), psd_cpu_value(first),
			     (struct psd_cpu_arg){0, &out->desc, multiply->product}, err));
	if (!is_summed)
		return PSD_OK;
	return make_sum(&multiply->sum, self, (struct psd_cpu_arg){0, &out->desc, multiply->product},
			(struct psd_cpu_arg){0, factor, multiply->share}, err);
}

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct multiply *multiply = self->details;
	struct psd_cpu_blob *first = psd_cpu_input(self, 0), *second = psd_cpu_input(self, 1), *out = &self->own;
	const struct psd_shape of_second = psd_cpu_below(self, 1)->model->shape;
	const bool is_flat =
		self->model->shape.height != of_second.height || self->model->shape.width != of_second.width;
	const dnnl_memory_desc_t plain = psd_cpu_plain(psd_cpu_below(self, 1));
	const dnnl_memory_desc_t *factor = is_flat ? &plain : &out->desc;

	PSD_TRY(psd_cpu_declare(self, &first->desc, err));
	PSD_TRY(psd_cpu_op_convert(&multiply->factor_in, self, psd_cpu_value(second), factor, PSD_CPU_SCRATCH_SOURCE,
				   &multiply->factor, err));
	PSD_TRY(make_product(&multiply->forward, self, psd_cpu_value(first),
			     (struct psd_cpu_arg){0, factor, multiply->factor}, psd_cpu_value(out), err));
	if (first->has_diff)
		PSD_TRY(make_product(&multiply->by_first, self, psd_cpu_diff(out),
				     (struct psd_cpu_arg){0, factor, multiply->factor}, psd_cpu_share(first), err));
	return second->has_diff ? prepare_by_second(self, factor, err) : PSD_OK;
}

static enum psd_status forward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct multiply *multiply = self->details;
	struct psd_cpu_op *const ops[] = {&multiply->factor_in, &multiply->forward};

	return psd_cpu_op_run_all(ops, 2, self, err);
}

static enum psd_status backward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct multiply *multiply = self->details;
	struct psd_cpu_blob *first = psd_cpu_input(self, 0), *second = psd_cpu_input(self, 1);
	struct psd_cpu_op *const by_first[] = {&multiply->factor_in, &multiply->by_first};
	struct psd_cpu_op *const by_second[] = {&multiply->by_second, &multiply->sum, &multiply->by_second_out};
	enum psd_status status = PSD_OK;

	if (first->has_diff)
		status = psd_cpu_op_share_all(by_first, 2, self, first, err);
	return status || !second->has_diff ? status : psd_cpu_op_share_all(by_second, 3, self, second, err);
}

const struct psd_cpu_kind psd_cpu_multiply = {prepare, forward, backward, .details_bytes = sizeof(struct multiply)};
