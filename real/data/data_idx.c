/* MNIST's IDX files (LeCun, yann.lecun.com/exdb/mnist), also of Fashion-MNIST: a big-endian header (two zero bytes,
 * type 8 for bytes, number of dimensions, each dimension), then the bytes. Refuses other types and compressed files. */
#include <inttypes.h>

#include "real/data/data_parts.h"

enum { IMAGES_MAGIC = 0x00000803, LABELS_MAGIC = 0x00000801, LABELS_HEADER_BYTES = 8, IMAGES_HEADER_BYTES = 16 };

static enum psd_status map_idx(struct psd_data_files *files, const struct psd_data_source *source,
			       struct psd_error *err)
{
	/* images and labels of the training part, then of the test part */
	for (const char *const *name = psd_data_file_names[PSD_DATA_IDX]; *name; name++)
		PSD_TRY(psd_data_map(files, source->path, *name, err));
	return PSD_OK;
}

static enum psd_status check_header(const struct psd_mapping *file, uint32_t magic, uint64_t header_bytes,
				    struct psd_error *err)
{
	if (file->n_bytes >= 2 && file->bytes[0] == 0x1f && file->bytes[1] == 0x8b)
		return psd_mapping_refuse(file, 0, err, "the file is compressed, unpack it with gunzip");
	if (file->n_bytes < header_bytes)
		return psd_mapping_refuse(file, file->n_bytes, err,
					  "the file is shorter than its header of %" PRIu64 " bytes", header_bytes);
	if (psd_big_u32(file->bytes) != magic)
		return psd_mapping_refuse(file, 0, err,
					  "magic number is 0x%08" PRIx32 ", must be 0x%08" PRIx32 " (IDX, %s)",
					  psd_big_u32(file->bytes), magic, magic == IMAGES_MAGIC ? "images" : "labels");
	if (psd_big_u32(file->bytes + 4) == 0)
		return psd_mapping_refuse(file, 4, err, "number of samples is 0, must be 1 or more");
	return PSD_OK;
}

static enum psd_status check_length(const struct psd_mapping *file, uint64_t expected_bytes, struct psd_error *err)
{
	if (file->n_bytes < expected_bytes)
		return psd_mapping_refuse(file, file->n_bytes, err,
					  "the file is cut short, its header says %" PRIu64 " bytes", expected_bytes);
	if (file->n_bytes > expected_bytes)
		return psd_mapping_refuse(file, expected_bytes, err,
					  "the file has more bytes than its header says, %" PRIu64 " in all",
					  file->n_bytes);
	return PSD_OK;
}

static enum psd_status check_images(const struct psd_data *data, const struct psd_mapping *file, struct psd_error *err)
{
	PSD_TRY(check_header(file, IMAGES_MAGIC, IMAGES_HEADER_BYTES, err));
	struct psd_shape shape = {1, psd_big_u32(file->bytes + 8), psd_big_u32(file->bytes + 12)};
	PSD_TRY(psd_data_check_shape(data, file, shape, err));
	const uint64_t image_bytes =
		(uint64_t)shape.height * shape.width; /* the network's shape, so the product below cannot overflow */
	return check_length(file, IMAGES_HEADER_BYTES + psd_big_u32(file->bytes + 4) * image_bytes, err);
}

static enum psd_status refuse_label(const struct psd_data *data, const struct psd_mapping *file, uint64_t at,
				    struct psd_error *err)
{
	return psd_mapping_refuse(file, at, err, "label is %u, the network's classes are 0 to %" PRIu32,
				  file->bytes[at], data->options.classes - 1);
}

static enum psd_status check_labels(const struct psd_data *data, const struct psd_mapping *file,
				    const struct psd_mapping *images, struct psd_error *err)
{
	const uint32_t n_images = psd_big_u32(images->bytes + 4);

	PSD_TRY(check_header(file, LABELS_MAGIC, LABELS_HEADER_BYTES, err));
	if (psd_big_u32(file->bytes + 4) != n_images)
		return psd_mapping_refuse(file, 4, err,
					  "number of labels is %" PRIu32 ", but '%s' holds %" PRIu32 " images",
					  psd_big_u32(file->bytes + 4), images->path, n_images);
	PSD_TRY(check_length(file, LABELS_HEADER_BYTES + (uint64_t)n_images, err));
	for (uint64_t at = LABELS_HEADER_BYTES; at < file->n_bytes; at++)
		if (file->bytes[at] >= data->options.classes)
			return refuse_label(data, file, at, err);
	return PSD_OK;
}

static enum psd_status open_idx(struct psd_data *data, struct psd_error *err)
{
	for (unsigned part = PSD_DATA_TRAINING; part <= PSD_DATA_TEST; part++) {
		const struct psd_mapping *images = &data->files.files[2 * part];

		PSD_TRY(check_images(data, images, err));
		PSD_TRY(check_labels(data, images + 1, images, err));
		data->n_samples[part] = psd_big_u32(images->bytes + 4);
	}
	return PSD_OK;
}

static enum psd_status read_idx(struct psd_data *data, enum psd_data_part part, uint64_t epoch, uint64_t sample,
				float *image, int32_t *labels, struct psd_error *err)
{
	const struct psd_mapping *images = &data->files.files[2 * (unsigned)part];
	const uint64_t elements = (uint64_t)data->options.shape.height * data->options.shape.width;
	const uint8_t *pixels = images->bytes + IMAGES_HEADER_BYTES + sample * elements;

	(void)epoch;
	labels[0] = images[1].bytes[LABELS_HEADER_BYTES + sample];
	if ((uint32_t)labels[0] >= data->options.classes)
		return refuse_label(data, images + 1, LABELS_HEADER_BYTES + sample, err);
	for (uint64_t i = 0; i < elements; i++)
		image[i] = (float)pixels[i] * (1.0f / 256.0f);
	return PSD_OK;
}

const struct psd_data_reader psd_data_idx = {.has_images = true, .map = map_idx, .open = open_idx, .read = read_idx};
