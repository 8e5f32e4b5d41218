/* Memory of the network: layers request it in prepare, and it is allocated as one block. Few gradients of blobs are in
 * use at the same time, so they share memory. Nothing is allocated after load. */
#include <stdlib.h>

#include "engine/base/grow.h"
#include "real/device/gpu/gpu.h"

#define ALIGNMENT_BYTES 256u

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
}

enum psd_status psd_gpu_want(struct psd_device *device, uint64_t bytes, void **slot, struct psd_error *err)
{
	struct psd_gpu_wanted *grown =
		psd_grown(device->wants, device->n_wants, &device->want_capacity, sizeof(*grown));

	if (!grown)
		return psd_gpu_no_memory(err);
	device->wants = grown;
	device->wants[device->n_wants++] = (struct psd_gpu_wanted){bytes, slot};
	return PSD_OK;
}

static void raise(uint64_t *most, uint64_t value)
{
	if (value > *most)
		*most = value;
}

void psd_gpu_want_workspace(struct psd_device *device, uint64_t bytes)
{
	raise(&device->workspace_bytes, bytes);
}

void psd_gpu_want_dweight(struct psd_device *device, uint64_t bytes)
{
	raise(&device->dweight_bytes, bytes);
}

void psd_gpu_want_sums(struct psd_device *device, uint64_t n_sums)
{
	raise(&device->n_sums, n_sums);
}

void psd_gpu_want_ones(struct psd_device *device, uint32_t count)
{
	if (count > device->n_ones)
		device->n_ones = count;
}

/* Returns the lifetime of a blob's gradient: from the backward pass of the last layer that reads the blob, to that of
 * the blob's owner. */
static struct psd_block_lifetime life_of(const struct psd_device *device, const struct psd_gpu_blob *blob)
{
	const unsigned n_layers = device->graph->n_layers;
	const struct psd_gpu_layer *last = &device->layers[blob->last];
	const unsigned first_touch = last->n_readers ? last->last_reader : blob->last;
	/* the gradient is a factor, and is needed after the iteration */
	const bool is_factor = device->layers[blob->owner].kind->keeps_diff;

	return (struct psd_block_lifetime){.owner = blob->owner,
					   .birth_step = n_layers - 1 - first_touch,
					   .death_step = is_factor ? n_layers : n_layers - 1 - blob->owner,
					   .bytes = blob->bytes};
}

/* Returns the blob in whose memory the gradient is: a sum may share its gradient with its inputs, also through another
 * sum. */
static const struct psd_gpu_blob *diff_holder(const struct psd_gpu_blob *blob)
{
	while (blob->diff_of)
		blob = blob->diff_of;
	return blob;
}

/* Sets the offsets of the blobs' gradients in a common memory block, and returns the bytes of the block. A shared
 * gradient is in use until the backward pass of its last user. */
static uint64_t place_diffs(const struct psd_device *device, struct psd_block_lifetime lives[], unsigned *n_lives)
{
	*n_lives = 0;
	for (unsigned l = 0; l < device->graph->n_layers; l++) {
		const struct psd_gpu_layer *layer = &device->layers[l];

		if (layer->blob == &layer->own && layer->own.has_diff && !layer->own.diff_of)
			lives[(*n_lives)++] = life_of(device, &layer->own);
	}
	for (unsigned l = 0; l < device->graph->n_layers; l++) {
		const struct psd_gpu_blob *blob = &device->layers[l].own, *holder = diff_holder(blob);
		const unsigned death_step = life_of(device, blob).death_step;

		for (unsigned i = 0; i < *n_lives && blob != holder; i++)
			if (lives[i].owner == holder->owner && death_step > lives[i].death_step)
				lives[i].death_step = death_step;
	}
	return psd_lifetimes_place(lives, *n_lives, ALIGNMENT_BYTES);
}

static enum psd_status want_shared(struct psd_device *device, struct psd_error *err)
{
	void **const slots[] = {&device->workspace, &device->dweight, &device->sums, &device->ones};
	const uint64_t bytes[] = {device->workspace_bytes, device->dweight_bytes, device->n_sums * sizeof(float),
				  device->n_ones * sizeof(float)};

	for (unsigned i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
		if (bytes[i])
			PSD_TRY(psd_gpu_want(device, bytes[i], slots[i], err));
	return PSD_OK;
}

static enum psd_status fill_ones(struct psd_device *device, struct psd_error *err)
{
	float *ones = malloc((device->n_ones + 1u) * sizeof(*ones));

	if (!ones)
		return psd_gpu_no_memory(err);
	for (uint32_t i = 0; i < device->n_ones; i++)
		ones[i] = 1.0f;
	enum psd_status status =
		psd_gpu_copy(device, PSD_STREAM_COMPUTE, device->ones, ones, device->n_ones * sizeof(*ones), err);
	if (!status) /* a copy may outlive its call where GPUs read pageable memory themselves */
		status = psd_gpu_finish(device, PSD_STREAM_COMPUTE, err);
	free(ones);
	return status;
}

static enum psd_status take_all(struct psd_device *device, struct psd_block_lifetime lives[], struct psd_error *err)
{
	unsigned n_lives;
	const uint64_t diff_bytes = place_diffs(device, lives, &n_lives);
	uint64_t bytes = round_up(diff_bytes), offset_bytes = bytes;
	void *block;

	for (unsigned w = 0; w < device->n_wants; w++)
		bytes += round_up(device->wants[w].bytes);
	PSD_TRY(psd_gpu_take(device, bytes, "the network's activations", &block, err));
	device->held_bytes += bytes;
	for (unsigned i = 0; i < n_lives; i++)
		device->layers[lives[i].owner].own.diff = (char *)block + lives[i].offset_bytes;
	for (unsigned l = 0; l < device->graph->n_layers; l++)
		device->layers[l].own.diff = diff_holder(&device->layers[l].own)->diff;
	for (unsigned w = 0; w < device->n_wants; w++) {
		*device->wants[w].slot = (char *)block + offset_bytes;
		offset_bytes += round_up(device->wants[w].bytes);
	}
	return device->n_ones ? fill_ones(device, err) : PSD_OK;
}

enum psd_status psd_gpu_allocate(struct psd_device *device, struct psd_error *err)
{
	struct psd_block_lifetime *lives = calloc(device->graph->n_layers, sizeof(*lives));
	enum psd_status status = lives ? want_shared(device, err) : psd_gpu_no_memory(err);

	if (!status)
		status = take_all(device, lives, err);
	free(lives);
	return status;
}
