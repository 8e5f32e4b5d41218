/* Low-rank factors: two narrow matrices replace a gradient. An all-reduce sums the left matrices. Each worker makes an
 * orthonormal basis of the sum and its right matrix in that basis. A second all-reduce sums the right matrices, and
 * each worker applies the product. Tensors without narrow matrices travel with the left ones. Source: Vogels et al.
 * 2019, PowerSGD (arXiv 1905.13727). */
#include "engine/program/program_builder.h"

/* The cost of an operation. Making the left matrix orthonormal has few bytes and products, unless the rank is near the
 * number of columns: its launches alone count. */
struct work {
	enum psd_op_kind kind;
	enum psd_buffer source, target;
	bool has_gradient, has_residual; /* the operation reads or writes the item's */
	double products;		 /* multiply-adds of an element for each rank */
	unsigned launches;		 /* number of kernels for each matrix */
	unsigned launches_of_rank;	 /* number of kernels for each column of the left matrix */
};

static unsigned element_bytes(const struct psd_plan *plan, const struct work *work)
{
	return (work->has_gradient ? psd_plan_value_bytes(plan, PSD_BUFFER_GRADIENT) : 0) +
	       (work->has_residual ? psd_plan_value_bytes(plan, PSD_BUFFER_RESIDUAL) : 0);
}

/* Seconds follow from the rates of a conversion, which counts the bytes of gradients alone, and of matrix products, and
 * from the launches. */
static uint32_t add_work(struct psd_builder *b, const struct psd_stage *stage, const struct work *work, uint32_t before)
{
	const struct psd_plan *plan = b->plan;
	const double elements = (double)stage->item->subject.elements;
	const double launches = work->launches + (double)work->launches_of_rank * plan->low_rank;
	struct psd_op op = psd_stage_op(stage, work->kind, PSD_WHERE_WORKERS);

	op.source.buffer = work->source;
	op.target.buffer = work->target;
	op.bytes = stage->item->subject.elements * element_bytes(plan, work);
	op.work_sec = psd_builder_sec(b, op.kind, (double)op.bytes) +
		      2.0 * work->products * elements * plan->low_rank / plan->costs->gemm_flops_per_sec +
		      stage->item->n_narrow * launches * plan->system->host.launch_sec;
	const uint32_t added = psd_builder_add_op(b, &op);
	psd_builder_after(b, added, before);
	return added;
}

/* Executed before the remaining layers, since a transfer waits for it. */
static void hurry(struct psd_builder *b, uint32_t op)
{
	if (!b->is_out_of_memory)
		b->program.ops[op].turn = PSD_TURN_BEFORE_LAYERS;
}

static uint32_t add_sum(struct psd_builder *b, const struct psd_stage *stage, enum psd_buffer buffer, uint64_t elements,
			uint32_t before)
{
	const struct psd_route route = {stage->item->method->collective,
					PSD_WHERE_WORKERS,
					PSD_WHERE_WORKERS,
					{.buffer = buffer},
					{.buffer = buffer}};
	const uint32_t out = psd_builder_add_leaving(b, stage, &route, elements, before, PSD_NO_OP);

	if (buffer == PSD_BUFFER_LEFT)
		psd_builder_after(b, b->gate_copied_out, out);
	return psd_builder_add_all_reduce(b, stage, &route, elements, out);
}

static void unroll(struct psd_builder *b, const struct psd_stage *stage)
{
	/* Kernels: add the residual and multiply. Remove earlier columns from each column, take its norm and divide;
	 * multiply twice and subtract. Multiply. */
	static const struct work project = {.kind = PSD_OP_PROJECT,
					    .source = PSD_BUFFER_GRADIENT,
					    .target = PSD_BUFFER_LEFT,
					    .has_gradient = true,
					    .has_residual = true,
					    .products = 1.0,
					    .launches = 2};
	static const struct work fit = {.kind = PSD_OP_FIT,
					.source = PSD_BUFFER_LEFT,
					.target = PSD_BUFFER_RIGHT,
					.has_residual = true,
					.products = 2.0,
					.launches = 3,
					.launches_of_rank = 3};
	static const struct work expand = {.kind = PSD_OP_EXPAND,
					   .source = PSD_BUFFER_RIGHT,
					   .target = PSD_BUFFER_GRADIENT,
					   .has_gradient = true,
					   .products = 1.0,
					   .launches = 1};
	const uint32_t projected = add_work(b, stage, &project, stage->gradient);

	hurry(b, projected);
	psd_builder_after(b, projected, b->gate_backward);
	const uint32_t fitted =
		add_work(b, stage, &fit, add_sum(b, stage, PSD_BUFFER_LEFT, stage->item->left, projected));
	hurry(b, fitted);
	const uint32_t expanded =
		add_work(b, stage, &expand, add_sum(b, stage, PSD_BUFFER_RIGHT, stage->item->right, fitted));
	psd_builder_add_done(b, stage, psd_builder_add_apply(b, stage, PSD_WHERE_WORKERS, expanded));
}

#define BY_ALL_REDUCE(identifier, text)                                                                                \
	{.name = "low-rank " text,                                                                                     \
	 .collective = &psd_##identifier,                                                                              \
	 .keeps = {[PSD_BUFFER_HISTORY] = true,                                                                        \
		   [PSD_BUFFER_RESIDUAL] = true,                                                                       \
		   [PSD_BUFFER_LEFT] = true,                                                                           \
		   [PSD_BUFFER_RIGHT] = true},                                                                         \
	 .unroll = unroll},
const struct psd_method psd_method_low_rank[] = {PSD_ALL_REDUCES(BY_ALL_REDUCE)};
