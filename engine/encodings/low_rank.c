#include "engine/encodings/low_rank.h"

struct psd_low_rank_shape psd_low_rank_shape_of(const struct psd_tensor *tensor, unsigned rank)
{
	const uint64_t rows = tensor->n_dims > 1 ? tensor->dims[0] : 0;
	const uint64_t columns = rows ? tensor->elements / rows : 0;

	if (columns > UINT32_MAX || (rows + columns) * rank >= tensor->elements)
		return (struct psd_low_rank_shape){0, 0};
	return (struct psd_low_rank_shape){(uint32_t)rows, (uint32_t)columns};
}

uint64_t psd_low_rank_left(const struct psd_tensor *tensor, unsigned rank)
{
	const struct psd_low_rank_shape shape = psd_low_rank_shape_of(tensor, rank);

	return psd_low_rank_left_values(shape, tensor->elements, rank);
}

uint64_t psd_low_rank_right(const struct psd_tensor *tensor, unsigned rank)
{
	return (uint64_t)psd_low_rank_shape_of(tensor, rank).columns * rank;
}
