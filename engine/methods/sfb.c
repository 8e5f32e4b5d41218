/* Sufficient factor broadcasting: every worker sends its factors to all others and rebuilds the gradient. In a partial
 * one it sends them to some, other ones in each iteration, and updates with the mean gradient of those that it has.
 * Parameters then differ by worker, and are averaged through shards in the exchanges of local SGD. */
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

static const struct psd_route to_some = {&psd_partial_broadcast, PSD_WHERE_WORKERS, PSD_WHERE_WORKERS,
					 PSD_VIEW(FACTORS), PSD_VIEW(FACTORS)};

static void unroll_partial(struct psd_builder *b, const struct psd_stage *whole)
{
	struct psd_stage stage = *whole;
	const uint32_t arrived = psd_builder_add_factor_exchange(b, whole, &to_some);

	stage.gradient = psd_builder_add_rebuilt(b, whole, PSD_WHERE_WORKERS, arrived);
	psd_builder_add_local(b, &stage, &psd_method_ps);
}

const struct psd_method psd_method_partial_sfb = {
	.name = "partial sfb",
	.collective = &psd_push,
	.keeps = {[PSD_BUFFER_FACTORS] = true,
		  [PSD_BUFFER_ENCODED_FACTORS] = true,
		  [PSD_BUFFER_PART] = true,
		  [PSD_BUFFER_RECEIVED] = true,
		  [PSD_BUFFER_ENCODED_GRADIENT] = true,
		  [PSD_BUFFER_ENCODED_PARAMETER] = true},
	.slicing = PSD_SLICED,
	.is_partial = true,
	.unroll = unroll_partial,
};
