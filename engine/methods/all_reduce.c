/* All-reduce: workers sum their gradients by a pattern of steps, and each applies the sum. */
#include "engine/program/program_builder.h"

static void unroll(struct psd_builder *b, const struct psd_stage *stage)
{
	const struct psd_plan_item *item = stage->item;
	const uint64_t bytes = item->subject.elements * b->plan->value_bytes;

	if (b->plan->layout.workers == 1) {
		psd_builder_add_lone_worker(b, stage);
		return;
	}
	const uint32_t out = psd_builder_add_departure(b, stage, bytes);
	struct psd_op op = psd_stage_op(stage, PSD_OP_COLLECTIVE, PSD_RESOURCE_NIC, PSD_WHERE_WORKERS);
	op.source = op.target = PSD_BUFFER_GRADIENT;
	op.payload = (struct psd_payload){
		.pattern = item->method->pattern,
		.elements = item->subject.elements,
		.value_bytes = b->plan->value_bytes,
	};
	op.bytes = bytes;
	const uint32_t sum = psd_builder_add_op(b, &op);
	psd_builder_after_departure(b, sum, out);
	const uint32_t in = psd_builder_add_copy(b, stage, PSD_OP_COPY_IN, PSD_WHERE_WORKERS, bytes, sum);
	psd_builder_add_done(b, stage, psd_builder_add_apply(b, stage, PSD_WHERE_WORKERS, in));
}

#define BY_PATTERN(identifier, text) {.name = (text), .pattern = &psd_##identifier, .unroll = unroll},
const struct psd_method psd_method_all_reduces[] = {PSD_ALL_REDUCES(BY_PATTERN)};
