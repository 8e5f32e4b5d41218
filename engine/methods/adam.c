/* Workers send factors to the host that owns the matrix. It rebuilds and applies the gradient, and sends the matrix to
 * all workers. Source: Project Adam, OSDI'14. */
#include "engine/program/program_builder.h"

static const struct psd_route up = {&psd_to_root, PSD_WHERE_WORKERS, PSD_WHERE_ROOT, PSD_VIEW(FACTORS),
				    PSD_VIEW(FACTORS)};
static const struct psd_route down = {&psd_from_root, PSD_WHERE_ROOT, PSD_WHERE_WORKERS, PSD_VIEW(MASTER),
				      PSD_VIEW(PARAMETER)};

/* The root's own device has the matrix already, but copies it in like every worker after it is copied out. A lossy
 * encoding gives the root the same rounded values as the others. */
static uint32_t add_matrix(struct psd_builder *b, const struct psd_stage *stage, uint64_t elements, uint32_t received,
			   uint32_t ready)
{
	const uint32_t arrived =
		b->plan->wire->is_lossy ? psd_builder_add_both(b, stage, PSD_WHERE_WORKERS, received, ready) : received;

	return psd_builder_add_arrival(b, stage, &down, elements, arrived, b->gate_pulled);
}

static void unroll_slice(struct psd_builder *b, const struct psd_stage *stage, uint32_t applied)
{
	const struct psd_stage reply = psd_stage_reply(b, stage);
	const uint64_t elements = psd_plan_slice(stage->item, stage->slice).elements;
	const uint32_t ready = psd_builder_add_leaving(b, stage, &down, elements, applied, PSD_NO_OP);
	const struct psd_message matrix = psd_builder_add_message(b, &reply, &down, elements);

	psd_builder_after(b, matrix.send, ready);
	const uint32_t in = add_matrix(b, stage, elements, matrix.receive, ready);
	psd_builder_after(b, in, ready);
	psd_builder_add_done(b, stage, in);
}

static void unroll(struct psd_builder *b, const struct psd_stage *whole)
{
	const struct psd_layout *layout = &b->plan->layout;
	struct psd_stage stage = *whole;

	if (layout->workers == 1 && !layout->has_separate_servers) {
		psd_builder_add_lone_worker(b, whole);
		return;
	}
	const uint32_t arrived = psd_builder_add_factor_exchange(b, whole, &up);
	const uint32_t applied = psd_builder_add_rebuild(b, whole, PSD_WHERE_ROOT, arrived);
	for (stage.slice = 0; stage.slice < whole->item->n_slices; stage.slice++)
		unroll_slice(b, &stage, applied);
}

const struct psd_method psd_method_adam = {
	.name = "adam",
	.collective = &psd_to_root,
	.keeps = {[PSD_BUFFER_FACTORS] = true,
		  [PSD_BUFFER_HISTORY] = true,
		  [PSD_BUFFER_MASTER] = true,
		  [PSD_BUFFER_ENCODED_FACTORS] = true,
		  [PSD_BUFFER_ENCODED_PARAMETER] = true},
	.slicing = PSD_SLICED,
	.has_root = true,
	.unroll = unroll,
};
