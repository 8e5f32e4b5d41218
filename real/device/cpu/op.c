/* Operations: oneDNN primitives bound to slots, copies between memory formats. Refuses to know a layer's purpose. */
#include "real/device/cpu/cpu.h"

enum psd_status psd_cpu_fail(const struct psd_cpu_layer *self, const char *what, dnnl_status_t status,
			     struct psd_error *err)
{
	const struct psd_layer *model = self->model;

	if (status == dnnl_out_of_memory)
		return psd_cpu_no_memory(err);
	if (status == dnnl_unimplemented || status == dnnl_invalid_arguments)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "layer '%.80s' (%s): oneDNN has no %s for its shape",
				     model->name, model->kind->name, what);
	return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "layer '%.80s' (%s): %s failed with oneDNN status %d",
			     model->name, model->kind->name, what, (int)status);
}

/* The user mode of scratchpads lets all primitives share one block, and counts it. */
static dnnl_status_t make_attr(dnnl_primitive_attr_t *attr, const_dnnl_post_ops_t post_ops)
{
	dnnl_status_t status = dnnl_primitive_attr_create(attr);

	if (status)
		return status;
	status = dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user);
	if (!status && post_ops)
		status = dnnl_primitive_attr_set_post_ops(*attr, post_ops);
	if (status)
		dnnl_primitive_attr_destroy(*attr);
	return status;
}

static void remember(struct psd_cpu_op *op, struct psd_device *owner)
{
	op->next = owner->ops;
	owner->ops = op;
}

enum psd_status psd_cpu_op_describe(struct psd_cpu_op *op, struct psd_cpu_layer *self, const char *what,
				    dnnl_status_t failure, const_dnnl_op_desc_t desc, const struct psd_cpu_op *hint,
				    const_dnnl_post_ops_t post_ops, struct psd_error *err)
{
	dnnl_primitive_attr_t attr;
	dnnl_status_t status = failure ? failure : make_attr(&attr, post_ops);

	if (!status) {
		status = dnnl_primitive_desc_create(&op->desc, desc, attr, self->device->engine,
						    hint ? hint->desc : NULL);
		dnnl_primitive_attr_destroy(attr);
	}
	if (status)
		return psd_cpu_fail(self, what, status, err);
	remember(op, self->device);
	return PSD_OK;
}

const dnnl_memory_desc_t *psd_cpu_op_query(const struct psd_cpu_op *op, dnnl_query_t what)
{
	return dnnl_primitive_desc_query_md(op->desc, what, 0);
}

static dnnl_status_t add_arg(struct psd_cpu_op *op, dnnl_engine_t engine, struct psd_cpu_arg arg)
{
	const dnnl_status_t status =
		dnnl_memory_create(&op->args[op->n_args].memory, arg.desc, engine, DNNL_MEMORY_NONE);

	if (status)
		return status;
	op->args[op->n_args].arg = arg.arg;
	op->slots[op->n_args] = arg.slot;
	op->n_args++;
	return dnnl_success;
}

enum psd_status psd_cpu_op_build(struct psd_cpu_op *op, struct psd_cpu_layer *self, const struct psd_cpu_arg args[],
				 int n_args, struct psd_error *err)
{
	const dnnl_memory_desc_t *pad = psd_cpu_op_query(op, dnnl_query_scratchpad_md);
	const uint64_t pad_bytes = pad ? dnnl_memory_desc_get_size(pad) : 0;
	dnnl_status_t status = dnnl_primitive_create(&op->primitive, op->desc);

	for (int i = 0; i < n_args && !status; i++)
		if (args[i].slot)
			status = add_arg(op, self->device->engine, args[i]);
	if (pad_bytes && !status)
		status = add_arg(
			op, self->device->engine,
			(struct psd_cpu_arg){DNNL_ARG_SCRATCHPAD, pad,
					     psd_cpu_scratch_slot(self->device, PSD_CPU_SCRATCH_PRIMITIVE, pad_bytes)});
	return status ? psd_cpu_fail(self, "primitive", status, err) : PSD_OK;
}

enum psd_status psd_cpu_op_make(struct psd_cpu_op *op, struct psd_cpu_layer *self, const char *what,
				dnnl_status_t failure, const_dnnl_op_desc_t desc, const struct psd_cpu_op *hint,
				const struct psd_cpu_arg args[], int n_args, struct psd_error *err)
{
	PSD_TRY(psd_cpu_op_describe(op, self, what, failure, desc, hint, NULL, err));
	return psd_cpu_op_build(op, self, args, n_args, err);
}

enum psd_status psd_cpu_op_copy(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_cpu_arg from,
				struct psd_cpu_arg to, struct psd_error *err)
{
	const struct psd_cpu_arg args[] = {{DNNL_ARG_FROM, from.desc, from.slot}, {DNNL_ARG_TO, to.desc, to.slot}};
	dnnl_primitive_attr_t attr;
	dnnl_status_t status = make_attr(&attr, NULL);

	if (!status) {
		status = dnnl_reorder_primitive_desc_create(&op->desc, from.desc, self->device->engine, to.desc,
							    self->device->engine, attr);
		dnnl_primitive_attr_destroy(attr);
	}
	if (status)
		return psd_cpu_fail(self, "copy", status, err);
	remember(op, self->device);
	return psd_cpu_op_build(op, self, args, 2, err);
}

enum psd_status psd_cpu_op_sum(struct psd_cpu_op *op, struct psd_cpu_layer *self, const dnnl_memory_desc_t *format,
			       void *const *left, void *const *right, void *const *sum, struct psd_error *err)
{
	const struct psd_cpu_arg args[] = {
		{DNNL_ARG_SRC_0, format, left}, {DNNL_ARG_SRC_1, format, right}, {DNNL_ARG_DST, format, sum}};
	dnnl_binary_desc_t desc;
	const dnnl_status_t failure = dnnl_binary_desc_init(&desc, dnnl_binary_add, format, format, format);

	return psd_cpu_op_make(op, self, "sum", failure, &desc, NULL, args, 3, err);
}

/* True if the strides are those of row-major order; strides of dimensions with one element are ignored. */
static bool has_plain_strides(const dnnl_memory_desc_t *desc)
{
	dnnl_dim_t stride = 1;

	for (int i = desc->ndims - 1; i >= 0; i--) {
		if (desc->dims[i] > 1 && desc->format_desc.blocking.strides[i] != stride)
			return false;
		stride *= desc->dims[i];
	}
	return true;
}

bool psd_cpu_is_plain(const dnnl_memory_desc_t *desc)
{
	const dnnl_blocking_desc_t *blocking = &desc->format_desc.blocking;

	if (desc->format_kind != dnnl_blocked || desc->ndims != 4 || desc->offset0)
		return false;
	if (blocking->inner_nblks == 0)
		return has_plain_strides(desc);
	return blocking->inner_nblks == 1 && blocking->inner_idxs[0] == 1 && desc->dims[2] == 1 && desc->dims[3] == 1 &&
	       desc->padded_dims[1] == desc->dims[1] && blocking->strides[0] == desc->dims[1] &&
	       blocking->strides[1] == blocking->inner_blks[0];
}

static bool is_same_format(const dnnl_memory_desc_t *one, const dnnl_memory_desc_t *other)
{
	return dnnl_memory_desc_equal(one, other) || (psd_cpu_is_plain(one) && psd_cpu_is_plain(other));
}

enum psd_status psd_cpu_op_convert(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_cpu_arg from,
				   const dnnl_memory_desc_t *wanted, enum psd_cpu_scratch_role role, void *const **slot,
				   struct psd_error *err)
{
	*slot = from.slot;
	if (is_same_format(from.desc, wanted))
		return PSD_OK;
	*slot = psd_cpu_scratch_slot(self->device, role, dnnl_memory_desc_get_size(wanted));
	return psd_cpu_op_copy(op, self, from, (struct psd_cpu_arg){DNNL_ARG_TO, wanted, *slot}, err);
}

enum psd_status psd_cpu_op_deliver(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_cpu_arg to,
				   const dnnl_memory_desc_t *made, enum psd_cpu_scratch_role role, void *const **slot,
				   struct psd_error *err)
{
	*slot = to.slot;
	if (is_same_format(to.desc, made))
		return PSD_OK;
	*slot = psd_cpu_scratch_slot(self->device, role, dnnl_memory_desc_get_size(made));
	return psd_cpu_op_copy(op, self, (struct psd_cpu_arg){DNNL_ARG_FROM, made, *slot}, to, err);
}

/* Setting a pointer writes zeros into a format's padding, so it is only done after a change. */
static dnnl_status_t bind_slots(struct psd_cpu_op *op, dnnl_stream_t stream)
{
	for (int i = 0; i < op->n_args; i++) {
		void *const position = *op->slots[i];
		dnnl_status_t status;

		if (position == op->bound[i])
			continue;
		status = dnnl_memory_set_data_handle_v2(op->args[i].memory, position, stream);
		if (status)
			return status;
		op->bound[i] = position;
	}
	return dnnl_success;
}

enum psd_status psd_cpu_op_run(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_error *err)
{
	if (!op->primitive)
		return PSD_OK;
	dnnl_status_t status = bind_slots(op, self->device->stream);
	if (!status)
		status = dnnl_primitive_execute(op->primitive, self->device->stream, op->n_args, op->args);
	return status ? psd_cpu_fail(self, "execution", status, err) : PSD_OK;
}

enum psd_status psd_cpu_op_run_all(struct psd_cpu_op *const ops[], unsigned n_ops, struct psd_cpu_layer *self,
				   struct psd_error *err)
{
	for (unsigned i = 0; i < n_ops; i++)
		PSD_TRY(psd_cpu_op_run(ops[i], self, err));
	return PSD_OK;
}

void psd_cpu_release_ops(struct psd_device *device)
{
	for (struct psd_cpu_op *op = device->ops; op; op = op->next) {
		for (int i = 0; i < op->n_args; i++)
			dnnl_memory_destroy(op->args[i].memory);
		if (op->primitive)
			dnnl_primitive_destroy(op->primitive);
		dnnl_primitive_desc_destroy(op->desc);
	}
}
