/* Compression on the GPU, as real/device/packing.c on the processor. A launch handles blocks of several tensors. */
#include "real/device/gpu/gpu.h"

/* Position in the blocks of all tensors, and the blocks of the current launch. */
struct cursor {
	const struct psd_packing *packing;
	unsigned tensor; /* number of the next tensor */
	uint64_t begin;	 /* first element of that tensor that is not in a launch yet */
	struct psd_gpu_blocks of;
	unsigned n_spans;
	uint32_t n_blocks;
	uint64_t elements;
};

typedef enum psd_status begin_fn(struct psd_device *device, const struct cursor *cursor, struct psd_error *err);

/* Adds as many blocks of the next tensor as fit into the launch. */
static void add_span(struct cursor *cursor)
{
	const struct psd_packing_tensor *tensor = &cursor->packing->tensors[cursor->tensor];
	const uint64_t left = tensor->elements - cursor->begin, n_free = PSD_GPU_BLOCKS - cursor->n_blocks;
	const uint64_t elements = psd_least(left, n_free * cursor->of.elements);

	cursor->n_blocks += (uint32_t)psd_block_count(&cursor->packing->block, elements);
	cursor->of.spans[cursor->n_spans] = (struct psd_gpu_block_span){.gradient = tensor->gradient + cursor->begin,
									.weight = tensor->weight + cursor->begin,
									.weight_decay = tensor->weight_decay,
									.first = cursor->elements,
									.elements = elements,
									.end = cursor->n_blocks};
	cursor->n_spans += elements > 0;
	cursor->elements += elements;
	cursor->begin += elements;
	if (elements == left) {
		cursor->tensor++;
		cursor->begin = 0;
	}
}

/* Moves on behind the last launch, and fills the next one. */
static void fill_launch(struct cursor *cursor)
{
	cursor->of.residual += cursor->elements;
	cursor->of.velocity = cursor->of.velocity ? cursor->of.velocity + cursor->elements : NULL;
	cursor->of.packed += (uint64_t)cursor->n_blocks * cursor->of.packed_bytes;
	cursor->n_spans = 0;
	cursor->n_blocks = 0;
	cursor->elements = 0;
	while (cursor->tensor < cursor->packing->n_tensors && cursor->n_spans < PSD_GPU_BLOCK_SPANS &&
	       cursor->n_blocks < PSD_GPU_BLOCKS)
		add_span(cursor);
}

static enum psd_status begin_all(struct psd_device *device, const struct psd_packing *packing, begin_fn *begin,
				 struct psd_error *err)
{
	struct cursor cursor = {.packing = packing,
				.of = {.elements = packing->block.elements,
				       .kept = packing->block.kept,
				       .packed_bytes = packing->compression->bytes(&packing->block),
				       .residual = packing->residual,
				       .velocity = packing->velocity,
				       .momentum = packing->momentum,
				       .is_nesterov = packing->is_nesterov,
				       .packed = packing->packed}};

	while (cursor.tensor < packing->n_tensors) {
		fill_launch(&cursor);
		PSD_TRY(begin(device, &cursor, err));
	}
	return PSD_OK;
}

static uint64_t lanes_of(const struct cursor *cursor)
{
	return (uint64_t)cursor->n_blocks * PSD_BLOCK_LANES;
}

/* ---- one bit ---- */

static enum psd_status add_one_bit(struct psd_device *device, const struct cursor *cursor, float ratio,
				   bool is_to_residual, struct psd_error *err)
{
	const struct psd_gpu_one_bit_add run = {cursor->of, ratio, is_to_residual};

	return psd_gpu_run_one_bit_add(device, &run, lanes_of(cursor) * (cursor->of.elements / PSD_BLOCK_UNIT), err);
}

static enum psd_status pack_one_bit(struct psd_device *device, const struct cursor *cursor, struct psd_error *err)
{
	const struct psd_gpu_one_bit_look look = {cursor->of, device->scratch->lanes.sums,
						  device->scratch->lanes.counts};
	const struct psd_gpu_one_bit_reduce reduce = {cursor->of, device->scratch->lanes.sums,
						      device->scratch->lanes.counts};

	PSD_TRY(psd_gpu_run_one_bit_look(device, &look, lanes_of(cursor), err));
	PSD_TRY(psd_gpu_run_one_bit_reduce(device, &reduce, cursor->n_blocks, err));
	return add_one_bit(device, cursor, -1.0f, true, err);
}

static enum psd_status unpack_one_bit(struct psd_device *device, const struct cursor *cursor, struct psd_error *err)
{
	return add_one_bit(device, cursor, 1.0f, false, err);
}

/* ---- top-k ---- */

/* Begins to find the lowest selected key of each block digit by digit, then the numbers of keys of each lane that are
 * selected. */
static enum psd_status find_keys(struct psd_device *device, struct psd_gpu_keys keys, const struct cursor *cursor,
				 struct psd_error *err)
{
	for (uint32_t left = PSD_GPU_KEY_BITS; left > 0; left -= PSD_GPU_DIGIT_BITS) {
		keys.shift = left - PSD_GPU_DIGIT_BITS;
		keys.is_first = left == PSD_GPU_KEY_BITS;
		PSD_TRY(psd_gpu_run_top_k_count(device, &keys, lanes_of(cursor), err));
		PSD_TRY(psd_gpu_run_top_k_choose(device, &keys, cursor->n_blocks, err));
	}
	keys.is_last = true;
	return psd_gpu_run_top_k_count(device, &keys, lanes_of(cursor), err);
}

static enum psd_status pack_top_k(struct psd_device *device, const struct cursor *cursor, struct psd_error *err)
{
	const struct psd_gpu_keys keys = {
		.of = cursor->of, .lowest = device->scratch->lanes.lowest, .counts = device->scratch->lanes.counts};

	PSD_TRY(find_keys(device, keys, cursor, err));
	return psd_gpu_run_top_k_take(device, &keys, lanes_of(cursor), err);
}

static enum psd_status unpack_top_k(struct psd_device *device, const struct cursor *cursor, struct psd_error *err)
{
	for (unsigned s = 0; s < cursor->n_spans; s++)
		PSD_TRY(psd_gpu_clear(device, cursor->of.spans[s].gradient,
				      cursor->of.spans[s].elements * sizeof(float), err));
	return psd_gpu_run_top_k_put(device, &cursor->of, (uint64_t)cursor->n_blocks * cursor->of.kept, err);
}

/* ---- int8 ---- */

static enum psd_status pack_int8(struct psd_device *device, const struct cursor *cursor, struct psd_error *err)
{
	const struct psd_gpu_int8 run = {cursor->of, device->scratch->lanes.largest};

	PSD_TRY(psd_gpu_run_int8_look(device, &run, lanes_of(cursor), err));
	PSD_TRY(psd_gpu_run_int8_reduce(device, &run, cursor->n_blocks, err));
	return psd_gpu_run_int8_take(device, &cursor->of, lanes_of(cursor), err);
}

static enum psd_status unpack_int8(struct psd_device *device, const struct cursor *cursor, struct psd_error *err)
{
	return psd_gpu_run_int8_put(device, &cursor->of, lanes_of(cursor), err);
}

/* ---- all ---- */

static const struct row {
	const struct psd_compression *compression;
	begin_fn *pack, *unpack;
} rows[] = {
#define ROW(identifier, text) {&psd_compression_##identifier, pack_##identifier, unpack_##identifier},
	PSD_COMPRESSIONS(ROW)
#undef ROW
};

static const struct row *row_of(const struct psd_packing *packing)
{
	const struct row *row = rows;

	while (row->compression != packing->compression)
		row++;
	return row;
}

enum psd_status psd_gpu_kernel_pack(struct psd_device *device, const struct psd_packing *packing, struct psd_error *err)
{
	return begin_all(device, packing, row_of(packing)->pack, err);
}

enum psd_status psd_gpu_kernel_unpack(struct psd_device *device, const struct psd_packing *packing,
				      struct psd_error *err)
{
	return begin_all(device, packing, row_of(packing)->unpack, err);
}
