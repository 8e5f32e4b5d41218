/* All-reduce: workers sum their gradients step by step, or by a library; each worker applies the sum. */
#include "engine/program/program_builder.h"

/* Returns the operation after which every worker's device has the sums of a slice. */
typedef uint32_t add_sum_fn(struct psd_builder *b, const struct psd_stage *stage);

static struct psd_route route_of(const struct psd_stage *stage)
{
	return (struct psd_route){stage->item->method->collective, PSD_WHERE_WORKERS, PSD_WHERE_WORKERS,
				  PSD_VIEW(GRADIENT), PSD_VIEW(GRADIENT)};
}

static uint32_t add_sum_in_host(struct psd_builder *b, const struct psd_stage *stage)
{
	const struct psd_route route = route_of(stage);
	const uint64_t elements = psd_plan_slice(stage->item, stage->slice).elements;

	return psd_builder_add_all_reduce(b, stage, &route, elements,
					  psd_builder_add_departure(b, stage, &route, elements));
}

/* The library reads gradients and writes sums on the devices: no copies. */
static uint32_t add_sum_on_device(struct psd_builder *b, const struct psd_stage *stage)
{
	const struct psd_route route = route_of(stage);
	const uint32_t sum =
		psd_builder_add_collective(b, stage, &route, psd_plan_slice(stage->item, stage->slice).elements);

	psd_builder_after(b, b->gate_copied_out, stage->gradient);
	psd_builder_after_departure(b, sum, stage->gradient);
	return sum;
}

/* Slices are summed one by one and applied together, since the norms of an update are of a whole tensor. */
static void unroll_by(struct psd_builder *b, const struct psd_stage *whole, add_sum_fn *add_sum)
{
	struct psd_stage stage = *whole;

	if (b->plan->layout.workers == 1) {
		psd_builder_add_lone_worker(b, whole);
		return;
	}
	uint32_t sums = add_sum(b, &stage);
	if (whole->item->n_slices > 1) {
		const uint32_t all = psd_builder_add_gate(b, PSD_WHERE_WORKERS);

		psd_builder_after(b, all, sums);
		for (stage.slice = 1; stage.slice < whole->item->n_slices; stage.slice++)
			psd_builder_after(b, all, add_sum(b, &stage));
		sums = all;
	}
	psd_builder_add_done(b, whole, psd_builder_add_apply(b, whole, PSD_WHERE_WORKERS, sums));
}

static void unroll(struct psd_builder *b, const struct psd_stage *whole)
{
	unroll_by(b, whole, add_sum_in_host);
}

static void unroll_on_device(struct psd_builder *b, const struct psd_stage *whole)
{
	unroll_by(b, whole, add_sum_on_device);
}

#define BY_ALL_REDUCE(identifier, text)                                                                                \
	{.name = (text),                                                                                               \
	 .collective = &psd_##identifier,                                                                              \
	 .keeps = {[PSD_BUFFER_HISTORY] = true, [PSD_BUFFER_ENCODED_GRADIENT] = true},                                 \
	 .slicing = PSD_SLICED_ON_DEMAND,                                                                              \
	 .unroll = unroll},
const struct psd_method psd_method_all_reduces[] = {PSD_ALL_REDUCES(BY_ALL_REDUCE)};

/* Libraries sum plain floats: no buffer is encoded. */
#define OF_LIBRARY(identifier, text, function)                                                                         \
	{                                                                                                              \
		.name = (text), .collective = &psd_##identifier, .keeps = {[PSD_BUFFER_HISTORY] = true},               \
		.slicing = PSD_SLICED_ON_DEMAND, .unroll = (function)                                                  \
	}
const struct psd_method psd_method_libraries[PSD_N_LIBRARIES] = {
	OF_LIBRARY(mpi, "mpi", unroll),
	OF_LIBRARY(nccl, "nccl", unroll_on_device),
	OF_LIBRARY(nccl_two_level, "nccl-two-level", unroll_on_device),
};
