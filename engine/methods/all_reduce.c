/* All-reduce: workers sum their gradients by a pattern of steps, and each applies the sum. */
#include "engine/program/program_builder.h"

static void unroll(struct psd_builder *b, const struct psd_stage *stage)
{
	const struct psd_route route = {stage->item->method->pattern, PSD_WHERE_WORKERS, PSD_WHERE_WORKERS,
					PSD_BUFFER_GRADIENT, PSD_BUFFER_GRADIENT};
	const uint64_t elements = stage->item->subject.elements;

	if (b->plan->layout.workers == 1) {
		psd_builder_add_lone_worker(b, stage);
		return;
	}
	const uint32_t out = psd_builder_add_departure(b, stage, &route, elements);
	const uint32_t sum = psd_builder_add_all_reduce(b, stage, &route, elements, out);
	psd_builder_add_done(b, stage, psd_builder_add_apply(b, stage, PSD_WHERE_WORKERS, sum));
}

#define BY_PATTERN(identifier, text)                                                                                   \
	{.name = (text),                                                                                               \
	 .pattern = &psd_##identifier,                                                                                 \
	 .keeps = {[PSD_BUFFER_HISTORY] = true, [PSD_BUFFER_ENCODED_GRADIENT] = true},                                 \
	 .unroll = unroll},
const struct psd_method psd_method_all_reduces[] = {PSD_ALL_REDUCES(BY_PATTERN)};
