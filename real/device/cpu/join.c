/* Layers that join branches: concatenation over channels, element-wise sum. Backward gives each branch its part or a
 * copy. */
#include "real/device/cpu/cpu.h"

/* State of a layer for one of its inputs. */
struct join {
	struct psd_cpu_op convert; /* element-wise sum: operation that converts the input to the format of the sum */
	struct psd_cpu_op forward, backward;
};

static enum psd_status take_joins(struct psd_cpu_layer *self, struct psd_error *err)
{
	self->details = psd_cpu_take(self->device, self->model->n_inputs * sizeof(struct join));
	return self->details ? PSD_OK : psd_cpu_no_memory(err);
}

static enum psd_status forward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct join *joins = self->details;

	for (unsigned i = 0; i < self->model->n_inputs; i++) {
		PSD_TRY(psd_cpu_op_run(&joins[i].convert, self, err));
		PSD_TRY(psd_cpu_op_run(&joins[i].forward, self, err));
	}
	return PSD_OK;
}

static enum psd_status backward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct join *joins = self->details;

	for (unsigned i = 0; i < self->model->n_inputs; i++)
		if (psd_cpu_input(self, i)->has_diff)
			PSD_TRY(psd_cpu_op_share_all(&(struct psd_cpu_op *){&joins[i].backward}, 1, self,
						     psd_cpu_input(self, i), err));
	return PSD_OK;
}

/* ---- concatenation ---- */

/* Describes the channels of `whole` that come from input i. Returns false if they begin inside a block of channels of
 * the format. */
static bool find_part(const struct psd_cpu_layer *self, unsigned i, const dnnl_memory_desc_t *whole,
		      dnnl_memory_desc_t *part)
{
	const dnnl_memory_desc_t *in = &psd_cpu_input(self, i)->desc;
	dnnl_dims_t offsets = {0};

	for (unsigned before = 0; before < i; before++)
		offsets[1] += psd_cpu_below(self, before)->model->shape.channels;
	return dnnl_memory_desc_init_submemory(part, whole, in->dims, offsets) == dnnl_success;
}

/* The first input's format if every input is a whole number of channel blocks; else plain. */
static dnnl_memory_desc_t choose_concat_format(const struct psd_cpu_layer *self)
{
	const dnnl_memory_desc_t *first = &psd_cpu_input(self, 0)->desc;
	const dnnl_memory_desc_t plain = psd_cpu_plain(self);
	const dnnl_format_tag_t tags[] = {dnnl_nChw8c, dnnl_nChw16c};
	const dnnl_dim_t blocks[] = {8, 16};

	for (unsigned t = 0; t < 2; t++) {
		dnnl_memory_desc_t same, whole;
		bool is_whole_blocks = true;

		dnnl_memory_desc_init_by_tag(&same, 4, first->dims, dnnl_f32, tags[t]);
		dnnl_memory_desc_init_by_tag(&whole, 4, plain.dims, dnnl_f32, tags[t]);
		for (unsigned i = 0; i < self->model->n_inputs; i++)
			is_whole_blocks = is_whole_blocks && psd_cpu_input(self, i)->desc.dims[1] % blocks[t] == 0;
		if (is_whole_blocks && dnnl_memory_desc_equal(first, &same))
			return whole;
	}
	return plain;
}

static enum psd_status prepare_concat(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct psd_cpu_blob *out = &self->own;
	const dnnl_memory_desc_t format = choose_concat_format(self);

	PSD_TRY(take_joins(self, err));
	struct join *joins = self->details;
	PSD_TRY(psd_cpu_declare(self, &format, err));
	for (unsigned i = 0; i < self->model->n_inputs; i++) {
		struct psd_cpu_blob *in = psd_cpu_input(self, i);
		dnnl_memory_desc_t part;

		if (!find_part(self, i, &format, &part))
			return psd_cpu_fail(self, "concatenation", dnnl_unimplemented, err);
		PSD_TRY(psd_cpu_op_copy(&joins[i].forward, self, psd_cpu_value(in),
					(struct psd_cpu_arg){DNNL_ARG_TO, &part, &out->value}, err));
		if (in->has_diff)
			PSD_TRY(psd_cpu_op_copy(&joins[i].backward, self,
						(struct psd_cpu_arg){DNNL_ARG_FROM, &part, &out->diff},
						psd_cpu_share(in), err));
	}
	return PSD_OK;
}

const struct psd_cpu_kind psd_cpu_concat = {.prepare = prepare_concat, .forward = forward, .backward = backward};

/* ---- sum ---- */

/* Step 1 adds the first two inputs, step i adds input i to the sum so far. */
static enum psd_status prepare_add(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct psd_cpu_blob *first = psd_cpu_input(self, 0), *out = &self->own;

	PSD_TRY(take_joins(self, err));
	struct join *joins = self->details;
	PSD_TRY(psd_cpu_declare(self, &first->desc, err));
	for (unsigned i = 0; i < self->model->n_inputs; i++) {
		struct psd_cpu_blob *in = psd_cpu_input(self, i);
		void *const *slot;

		PSD_TRY(psd_cpu_op_convert(&joins[i].convert, self, psd_cpu_value(in), &out->desc,
					   PSD_CPU_SCRATCH_SOURCE, &slot, err));
		if (i > 0)
			PSD_TRY(psd_cpu_op_sum(&joins[i].forward, self, &out->desc,
					       i == 1 ? &first->value : &out->value, slot, &out->value, err));
		if (in->has_diff)
			PSD_TRY(psd_cpu_op_copy(&joins[i].backward, self, psd_cpu_diff(out), psd_cpu_share(in), err));
	}
	return PSD_OK;
}

const struct psd_cpu_kind psd_cpu_add = {.prepare = prepare_add, .forward = forward, .backward = backward};
