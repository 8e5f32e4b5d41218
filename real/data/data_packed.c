/* Packed JPEGs (pack_format.h) as a data set. Each read decodes the image, crops it to the network's size and mirrors
 * it; crop and mirror depend on the seed, the epoch and the sample's number only. Refuses to scale. */
#include <inttypes.h>
#include <stdlib.h>

#include "real/data/data_parts.h"
#include "real/data/jpeg.h"
#include "real/data/pack_format.h"
#include "real/data/random.h"

struct packed {
	struct psd_pack packs[2]; /* packed files of training and test, by enum psd_data_part */
	struct psd_jpeg *jpeg;
	uint8_t *pixels; /* memory for one decoded image */
};

/* Part of an image that is cut out, and whether it is mirrored. */
struct cut {
	uint32_t top, left;
	bool is_mirrored;
};

static enum psd_status check_fit(const struct psd_data *data, const struct psd_pack *pack, struct psd_error *err)
{
	const struct psd_shape shape = data->options.shape;

	if (shape.channels != 3 || shape.height > pack->height || shape.width > pack->width)
		return psd_error_set(
			err, PSD_EINVAL, (struct psd_place){.path = pack->file->path},
			"the file has images of 3 x %u x %u, the network expects %u x %u x %u (channels, height, "
			"width), which cannot be cut from them",
			pack->height, pack->width, shape.channels, shape.height, shape.width);
	return psd_data_check_classes(data, pack->file, pack->classes, err);
}

/* Checks that both files have the same classes, so that a class number has the same meaning in training and test. */
static enum psd_status check_pair(const struct psd_pack packs[2], struct psd_error *err)
{
	if (packs[PSD_DATA_TEST].names_checksum != packs[PSD_DATA_TRAINING].names_checksum)
		return psd_mapping_refuse(packs[PSD_DATA_TEST].file, 56, err, "its class names are not those of '%s'",
					  packs[PSD_DATA_TRAINING].file->path);
	return PSD_OK;
}

static enum psd_status take_pixels(struct packed *packed, unsigned n_packs, struct psd_error *err)
{
	size_t n_bytes = 0;

	for (unsigned i = 0; i < n_packs; i++) {
		const size_t needed = (size_t)3 * packed->packs[i].height * packed->packs[i].width;

		n_bytes = needed > n_bytes ? needed : n_bytes;
	}
	packed->pixels = malloc(n_bytes);
	return packed->pixels ? PSD_OK : psd_out_of_memory(err);
}

static enum psd_status open_packed(struct psd_data *data, struct psd_error *err)
{
	const unsigned n_packs = data->files.n_files;
	struct packed *packed;

	PSD_TRY(psd_data_take_state(data, sizeof(struct packed), err));
	packed = data->state;
	for (unsigned i = 0; i < n_packs; i++) {
		PSD_TRY(psd_pack_open(&packed->packs[i], &data->files.files[i], err));
		PSD_TRY(check_fit(data, &packed->packs[i], err));
		data->n_samples[i] = packed->packs[i].n_samples;
	}
	if (n_packs > 1)
		PSD_TRY(check_pair(packed->packs, err));
	PSD_TRY(take_pixels(packed, n_packs, err));
	return psd_jpeg_new(&packed->jpeg, err);
}

static void close_packed(struct psd_data *data)
{
	struct packed *packed = data->state;

	if (!packed)
		return;
	psd_jpeg_free(packed->jpeg);
	free(packed->pixels);
}

static struct cut choose_cut(const struct psd_data *data, enum psd_data_part part, uint64_t epoch, uint64_t sample,
			     uint32_t spare_rows, uint32_t spare_columns)
{
	if (part == PSD_DATA_TEST)
		return (struct cut){.top = spare_rows / 2, .left = spare_columns / 2};
	const uint64_t bits = psd_random_key(data->options.seed, PSD_RANDOM_CROP, epoch, sample);
	return (struct cut){
		.top = psd_random_below(bits, spare_rows + 1),
		.left = psd_random_below(psd_random_mix(bits), spare_columns + 1),
		.is_mirrored = data->options.source.is_mirrored && (bits & 1),
	};
}

/* Converts the cut of an image from rows of RGB bytes to three planes of floats. */
static void cut_out(float *image, struct psd_shape shape, const uint8_t *pixels, uint32_t pixels_width, struct cut cut,
		    const uint32_t mean[3])
{
	for (unsigned channel = 0; channel < 3; channel++)
		for (uint32_t y = 0; y < shape.height; y++) {
			const uint8_t *row = pixels + ((size_t)(cut.top + y) * pixels_width + cut.left) * 3 + channel;
			const float less = (float)mean[channel] * (1.0f / 65536.0f);

			for (uint32_t x = 0; x < shape.width; x++)
				*image++ = (float)row[3 * (cut.is_mirrored ? shape.width - 1 - x : x)] - less;
		}
}

static enum psd_status read_packed(struct psd_data *data, enum psd_data_part part, uint64_t epoch, uint64_t sample,
				   float *image, int32_t *labels, struct psd_error *err)
{
	struct packed *packed = data->state;
	const struct psd_pack *pack = &packed->packs[part];
	const struct psd_shape shape = data->options.shape;
	struct psd_pack_record record;
	uint32_t height, width;

	PSD_TRY(psd_pack_find(pack, sample, &record, err));
	struct psd_jpeg_source source = {pack->file, record.offset, record.n_bytes};
	PSD_TRY(psd_jpeg_size(packed->jpeg, source, &height, &width, err));
	if (height != pack->height || width != pack->width)
		return psd_mapping_refuse(pack->file, record.offset, err,
					  "sample %" PRIu64 " is %u x %u, must be %u x %u", sample, height, width,
					  pack->height, pack->width);
	PSD_TRY(psd_jpeg_decode(packed->jpeg, source, height, width, packed->pixels, err));
	cut_out(image, shape, packed->pixels, width,
		choose_cut(data, part, epoch, sample, height - shape.height, width - shape.width),
		packed->packs[PSD_DATA_TRAINING].mean);
	labels[0] = (int32_t)record.label;
	return PSD_OK;
}

const struct psd_data_reader psd_data_packed = {
	.has_images = true, .map = psd_data_map_pair, .open = open_packed, .read = read_packed, .close = close_packed};
