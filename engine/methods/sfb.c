/* Sufficient factor broadcasting: every worker sends its factors to all others and rebuilds the gradient. */
#include "engine/program/program_builder.h"

static const struct psd_route to_all = {&psd_broadcast, PSD_WHERE_WORKERS, PSD_WHERE_WORKERS, PSD_VIEW(FACTORS),
					PSD_VIEW(FACTORS)};

static void unroll(struct psd_builder *b, const struct psd_stage *stage)
{
	if (b->plan->layout.workers == 1) {
		psd_builder_add_lone_worker(b, stage);
		return;
	}
	const uint32_t arrived = psd_builder_add_factor_exchange(b, stage, &to_all);
	psd_builder_add_done(b, stage, psd_builder_add_rebuild(b, stage, PSD_WHERE_WORKERS, arrived));
}

const struct psd_method psd_method_sfb = {
	.name = "sfb",
	.collective = &psd_broadcast,
	.keeps = {[PSD_BUFFER_FACTORS] = true, [PSD_BUFFER_HISTORY] = true, [PSD_BUFFER_ENCODED_FACTORS] = true},
	.unroll = unroll,
};
