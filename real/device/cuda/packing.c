/* Gradients that travel compressed: what real/device/packing.c does on a host, with blocks of several tensors at a
 * time. */
#include "real/device/cuda/cuda.h"

static uint64_t lesser(uint64_t left, uint64_t right)
{
	return left < right ? left : right;
}

/* Goes through the blocks of all tensors in order, a launch of them at a time. */
struct walk {
	const struct psd_packing *packing;
	unsigned tensor; /* the next one */
	uint64_t begin;	 /* of what is left of it */
	struct psd_cuda_blocks of;
	unsigned n_spans;
	uint32_t n_blocks;
	uint64_t elements;
};

typedef enum psd_status begin_fn(struct psd_device *device, const struct walk *walk, struct psd_error *err);

/* As many blocks of the next tensor as there are, or as the launch has room for. */
static void add_span(struct walk *walk)
{
	const struct psd_packing_tensor *tensor = &walk->packing->tensors[walk->tensor];
	const uint64_t left = tensor->elements - walk->begin, room = PSD_CUDA_BLOCKS - walk->n_blocks;
	const uint64_t elements = lesser(left, room * walk->of.elements);

	walk->n_blocks += (uint32_t)psd_block_count(&walk->packing->block, elements);
	walk->of.spans[walk->n_spans] = (struct psd_cuda_block_span){.gradient = tensor->gradient + walk->begin,
								     .weight = tensor->weight + walk->begin,
								     .weight_decay = tensor->weight_decay,
								     .first = walk->elements,
								     .elements = elements,
								     .end = walk->n_blocks};
	walk->n_spans += elements > 0;
	walk->elements += elements;
	walk->begin += elements;
	if (elements == left) {
		walk->tensor++;
		walk->begin = 0;
	}
}

/* Behind the last launch. */
static void fill_launch(struct walk *walk)
{
	walk->of.residual += walk->elements;
	walk->of.velocity += walk->of.velocity ? walk->elements : 0;
	walk->of.packed += (uint64_t)walk->n_blocks * walk->of.packed_bytes;
	walk->n_spans = 0;
	walk->n_blocks = 0;
	walk->elements = 0;
	while (walk->tensor < walk->packing->n_tensors && walk->n_spans < PSD_CUDA_BLOCK_SPANS &&
	       walk->n_blocks < PSD_CUDA_BLOCKS)
		add_span(walk);
}

static enum psd_status begin_all(struct psd_device *device, const struct psd_packing *packing, begin_fn *begin,
				 struct psd_error *err)
{
	struct walk walk = {.packing = packing,
			    .of = {.elements = packing->block.elements,
				   .kept = packing->block.kept,
				   .packed_bytes = packing->compression->bytes(&packing->block),
				   .residual = packing->residual,
				   .velocity = packing->velocity,
				   .momentum = packing->momentum,
				   .is_nesterov = packing->is_nesterov,
				   .packed = packing->packed}};
	enum psd_status status = psd_cuda_enter(device, err);

	while (walk.tensor < packing->n_tensors && !status) {
		fill_launch(&walk);
		status = begin(device, &walk, err);
	}
	return status;
}

static uint64_t lanes_of(const struct walk *walk)
{
	return (uint64_t)walk->n_blocks * PSD_BLOCK_LANES;
}

/* ---- one bit ---- */

static enum psd_status add_one_bit(struct psd_device *device, const struct walk *walk, float ratio, bool is_to_residual,
				   struct psd_error *err)
{
	const struct psd_cuda_one_bit_add run = {walk->of, ratio, is_to_residual};

	return psd_cuda_run_one_bit_add(device, &run, lanes_of(walk) * (walk->of.elements / PSD_BLOCK_UNIT), err);
}

static enum psd_status pack_one_bit(struct psd_device *device, const struct walk *walk, struct psd_error *err)
{
	const struct psd_cuda_one_bit_look look = {walk->of, device->scratch->lanes.sums,
						   device->scratch->lanes.counts};
	const struct psd_cuda_one_bit_fold fold = {walk->of, device->scratch->lanes.sums,
						   device->scratch->lanes.counts};
	enum psd_status status = psd_cuda_run_one_bit_look(device, &look, lanes_of(walk), err);

	if (!status)
		status = psd_cuda_run_one_bit_fold(device, &fold, walk->n_blocks, err);
	return status ? status : add_one_bit(device, walk, -1.0f, true, err);
}

static enum psd_status unpack_one_bit(struct psd_device *device, const struct walk *walk, struct psd_error *err)
{
	return add_one_bit(device, walk, 1.0f, false, err);
}

/* ---- top-k ---- */

/* The lowest key that travels of each block, a digit after the other, and how many keys each lane has from there on. */
static enum psd_status find_keys(struct psd_device *device, struct psd_cuda_keys keys, const struct walk *walk,
				 struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	for (uint32_t left = PSD_CUDA_KEY_BITS; left > 0 && !status; left -= PSD_CUDA_DIGIT_BITS) {
		keys.shift = left - PSD_CUDA_DIGIT_BITS;
		keys.is_first = left == PSD_CUDA_KEY_BITS;
		status = psd_cuda_run_top_k_count(device, &(struct psd_cuda_top_k_count){keys}, lanes_of(walk), err);
		if (!status)
			status = psd_cuda_run_top_k_choose(device, &(struct psd_cuda_top_k_choose){keys},
							   walk->n_blocks, err);
	}
	keys.is_last = true;
	return status ? status
		      : psd_cuda_run_top_k_count(device, &(struct psd_cuda_top_k_count){keys}, lanes_of(walk), err);
}

static enum psd_status pack_top_k(struct psd_device *device, const struct walk *walk, struct psd_error *err)
{
	const struct psd_cuda_keys keys = {
		.of = walk->of, .lowest = device->scratch->lanes.lowest, .counts = device->scratch->lanes.counts};
	const enum psd_status status = find_keys(device, keys, walk, err);

	return status ? status
		      : psd_cuda_run_top_k_take(device, &(struct psd_cuda_top_k_take){keys}, lanes_of(walk), err);
}

static enum psd_status unpack_top_k(struct psd_device *device, const struct walk *walk, struct psd_error *err)
{
	const struct psd_cuda_top_k_put put = {walk->of};
	enum psd_status status = PSD_OK;

	for (unsigned s = 0; s < walk->n_spans && !status; s++)
		status = psd_cuda_clear(device, walk->of.spans[s].gradient, walk->of.spans[s].elements * sizeof(float),
					err);
	return status ? status : psd_cuda_run_top_k_put(device, &put, (uint64_t)walk->n_blocks * walk->of.kept, err);
}

/* ---- both ---- */

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

enum psd_status psd_cuda_pack(struct psd_device *device, const struct psd_packing *packing, struct psd_error *err)
{
	return begin_all(device, packing, row_of(packing)->pack, err);
}

enum psd_status psd_cuda_unpack(struct psd_device *device, const struct psd_packing *packing, struct psd_error *err)
{
	return begin_all(device, packing, row_of(packing)->unpack, err);
}
