/* Memory of the CPU device: blocks that live until close, scratch, and gradients of activations, of which few are alive
 * at once. Allocates nothing after load. */
#define _DEFAULT_SOURCE

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "real/device/cpu/cpu.h"

#define ALIGNMENT_BYTES	 64u
#define HUGE_PAGE_BYTES	 (UINT64_C(2) << 20)
#define HUGE_PIECE_BYTES (UINT64_C(16) << 20) /* rounding larger blocks up to huge pages wastes an eighth at most */

enum psd_status psd_cpu_no_memory(struct psd_error *err)
{
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "no memory for the network's activations");
}

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

void *psd_cpu_take(struct psd_device *device, uint64_t bytes)
{
	const bool is_huge = bytes >= HUGE_PIECE_BYTES;
	const uint64_t unit = is_huge ? HUGE_PAGE_BYTES : ALIGNMENT_BYTES;
	const uint64_t rounded_bytes = round_up(bytes + ALIGNMENT_BYTES, unit);

	if (bytes > SIZE_MAX / 2)
		return NULL;
	struct psd_cpu_piece *piece = aligned_alloc(unit, rounded_bytes);
	if (!piece)
		return NULL;
	if (is_huge) /* advice only: fewer TLB misses in large strides */
		(void)madvise(piece, rounded_bytes, MADV_HUGEPAGE);
	memset(piece, 0, rounded_bytes);
	piece->next = device->pieces;
	device->pieces = piece;
	device->held_bytes += rounded_bytes;
	return (char *)piece + ALIGNMENT_BYTES;
}

void psd_cpu_release_taken(struct psd_device *device)
{
	while (device->pieces) {
		struct psd_cpu_piece *next = device->pieces->next;

		free(device->pieces);
		device->pieces = next;
	}
}

void *const *psd_cpu_scratch_slot(struct psd_device *device, enum psd_cpu_scratch_role role, uint64_t bytes)
{
	if (bytes > device->scratch[role].bytes)
		device->scratch[role].bytes = bytes;
	return &device->scratch[role].data;
}

/* ---- gradients of blobs: alive from the backward of their last reader to that of their owner, in rising steps ---- */

static struct psd_block_lifetime life_of(const struct psd_device *device, const struct psd_cpu_blob *blob)
{
	const unsigned n_layers = device->graph->n_layers;
	const struct psd_cpu_layer *last = &device->layers[blob->last];
	const unsigned first_touch = last->n_readers ? last->last_reader : blob->last;
	/* factors are needed after the iteration, so their memory is not shared */
	const bool is_factor = device->layers[blob->owner].kind->keeps_diff;

	return (struct psd_block_lifetime){.owner = blob->owner,
					   .birth_step = n_layers - 1 - first_touch,
					   .death_step = is_factor ? n_layers : n_layers - 1 - blob->owner,
					   .bytes = blob->bytes};
}

static enum psd_status place_diffs(struct psd_device *device, struct psd_block_lifetime lives[], struct psd_error *err)
{
	unsigned n_lives = 0;

	for (unsigned l = 0; l < device->graph->n_layers; l++)
		if (device->layers[l].blob == &device->layers[l].own && device->layers[l].own.has_diff)
			lives[n_lives++] = life_of(device, &device->layers[l].own);
	char *block = psd_cpu_take(device, psd_lifetimes_place(lives, n_lives, ALIGNMENT_BYTES));
	if (!block)
		return psd_cpu_no_memory(err);
	for (unsigned i = 0; i < n_lives; i++) {
		struct psd_cpu_blob *blob = &device->layers[lives[i].owner].own;

		blob->diff = blob->share = block + lives[i].offset_bytes;
	}
	return PSD_OK;
}

enum psd_status psd_cpu_place(struct psd_device *device, struct psd_error *err)
{
	struct psd_block_lifetime *lives = calloc(device->graph->n_layers, sizeof(*lives));

	if (!lives)
		return psd_cpu_no_memory(err);
	enum psd_status status = place_diffs(device, lives, err);
	free(lives);
	for (unsigned role = 0; role < PSD_CPU_SCRATCH_ROLES && !status; role++) {
		struct psd_cpu_scratch *scratch = &device->scratch[role];

		if (!scratch->bytes)
			continue;
		scratch->data = psd_cpu_take(device, scratch->bytes);
		if (!scratch->data)
			status = psd_cpu_no_memory(err);
	}
	return status;
}
