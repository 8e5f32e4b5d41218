/* The packer lists classes and images, crops, scales and writes each image, and at the end writes header and index to
 * the begin of the file. Refuses to keep pixels of more than one image. */
#define _POSIX_C_SOURCE 200809L
#include "real/data/pack.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/hash.h"
#include "engine/base/inputs.h"
#include "engine/base/output.h"
#include "real/data/jpeg.h"
#include "real/data/mapping.h"
#include "real/data/pack_format.h"

enum { MIN_SIDE = 8 };

static const uint64_t max_pixels = UINT64_C(1) << 28; /* largest image: 0.8 GB of pixels */

struct image {
	char *path;
	uint32_t label;
};

struct packer {
	struct image *images;
	uint64_t n_images, room;
	uint8_t *front;	  /* header and index */
	uint64_t sums[3]; /* sums of red, green, blue over all images */
	struct psd_pack pack;
	struct psd_jpeg *jpeg;
	uint8_t *pixels; /* decoded image */
	uint64_t n_pixels_room;
	uint8_t *square; /* image of side x side pixels */
	FILE *out;
	const char *path; /* path of `out`, for messages */
	const struct psd_pack_options *options;
	struct psd_error *err;
};

/* ---- listing ---- */

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int by_bytes(const struct dirent **left, const struct dirent **right)
{
	return strcmp((*left)->d_name, (*right)->d_name);
}

static void free_names(struct dirent **names, int n_names)
{
	for (int i = 0; i < n_names; i++)
		free(names[i]);
	free(names);
}

/* Lists the names in a folder that do not begin with a dot, sorted by their bytes; free_names() frees them. An error if
 * there are none. */
static enum psd_status list(const char *folder, const char *what, struct dirent ***names, int *n_names,
			    struct psd_error *err)
{
	const struct psd_place at = {.path = folder};
	const int found = scandir(folder, names, is_visible, by_bytes);

	if (found < 0 && errno == ENOTDIR)
		return psd_error_set(err, PSD_EINVAL, at,
				     "the path must be a folder: images lie in FOLDER/CLASS/NAME.jpg");
	if (found < 0)
		return psd_error_set(err, PSD_EFILE, at, "cannot be listed: %s", strerror(errno));
	if (found == 0) {
		free(*names);
		return psd_error_set(err, PSD_EINVAL, at, "holds no %s", what);
	}
	*n_names = found;
	return PSD_OK;
}

static bool is_jpeg_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && (!strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg"));
}

/* Adds an image to the list, which owns `path` from now on. */
static enum psd_status add_image(struct packer *packer, char *path)
{
	if (packer->n_images == packer->room) {
		const uint64_t room = packer->room ? 2 * packer->room : 1024;
		struct image *images = realloc(packer->images, (size_t)room * sizeof(*images));

		if (!images) {
			free(path);
			return psd_out_of_memory(packer->err);
		}
		packer->images = images;
		packer->room = room;
	}
	packer->images[packer->n_images++] = (struct image){path, packer->pack.classes};
	psd_inputs_note(path);
	return PSD_OK;
}

static enum psd_status list_class(struct packer *packer, const char *folder)
{
	struct dirent **names;
	int n_names;
	enum psd_status status = PSD_OK;

	PSD_TRY(list(folder, "images", &names, &n_names, packer->err));
	for (int i = 0; !status && i < n_names; i++) {
		char *path = psd_mapping_path(folder, names[i]->d_name);

		if (path && is_jpeg_name(names[i]->d_name)) {
			status = add_image(packer, path);
		} else {
			status = path ? psd_error_set(packer->err, PSD_EINVAL, (struct psd_place){.path = path},
						      "the file must be a .jpg")
				      : psd_out_of_memory(packer->err);
			free(path);
		}
	}
	free_names(names, n_names);
	return status;
}

static enum psd_status list_folder(struct packer *packer, const char *folder)
{
	struct psd_pack *pack = &packer->pack;
	struct dirent **names;
	int n_names;
	enum psd_status status = PSD_OK;

	PSD_TRY(list(folder, "class folders", &names, &n_names, packer->err));
	for (int i = 0; !status && i < n_names; i++) {
		char *path = psd_mapping_path(folder, names[i]->d_name);

		status = path ? list_class(packer, path) : psd_out_of_memory(packer->err);
		pack->names_checksum =
			psd_hash_bytes(pack->names_checksum, names[i]->d_name, strlen(names[i]->d_name) + 1);
		pack->classes++;
		free(path);
	}
	free_names(names, n_names);
	if (!status && pack->classes > PSD_PACK_MAX_CLASSES)
		return psd_error_set(packer->err, PSD_EINVAL, (struct psd_place){.path = folder},
				     "holds more than %d classes", PSD_PACK_MAX_CLASSES);
	return status;
}

/* ---- scaling ---- */

/* Weights around one output position: positive for input positions first..last, none outside 0..n-1. */
struct triangle {
	uint32_t first, last;
	float centre, radius;
};

/* Returns the weights with which n input pixels contribute to output pixel i of `side`. A pixel is an area, so its
 * centre is at i + 0.5. */
static struct triangle triangle_of(uint32_t i, uint32_t side, uint32_t n)
{
	const float ratio = (float)n / (float)side;
	const float radius = ratio > 1.0f ? ratio : 1.0f, centre = ((float)i + 0.5f) * ratio - 0.5f;
	const float first = ceilf(centre - radius), last = floorf(centre + radius);

	return (struct triangle){
		.first = first > 0.0f ? (uint32_t)first : 0,
		.last = last < (float)(n - 1) ? (uint32_t)last : n - 1,
		.centre = centre,
		.radius = radius,
	};
}

static float weight_of(const struct triangle *triangle, uint32_t position)
{
	const float weight = 1.0f - fabsf((float)position - triangle->centre) / triangle->radius;

	return weight > 0.0f ? weight : 0.0f;
}

/* Scales a row of n pixels to `side` pixels. */
static void scale_row(float *out, uint32_t side, const uint8_t *row, uint32_t n)
{
	for (uint32_t i = 0; i < side; i++, out += 3) {
		const struct triangle triangle = triangle_of(i, side, n);
		float sums[3] = {0}, weights = 0;

		for (uint32_t x = triangle.first; x <= triangle.last; x++) {
			const float weight = weight_of(&triangle, x);

			weights += weight;
			for (unsigned channel = 0; channel < 3; channel++)
				sums[channel] += weight * (float)row[(size_t)3 * x + channel];
		}
		for (unsigned channel = 0; channel < 3; channel++)
			out[channel] = sums[channel] / weights;
	}
}

/* Scales column number `column` of an image of n rows with n_columns values each to `side` values, and writes them as
 * bytes. */
static void scale_column(uint8_t *out, uint32_t side, const float *rows, size_t n_columns, size_t column, uint32_t n)
{
	for (uint32_t i = 0; i < side; i++) {
		const struct triangle triangle = triangle_of(i, side, n);
		float sum = 0, weights = 0;

		for (uint32_t y = triangle.first; y <= triangle.last; y++) {
			const float weight = weight_of(&triangle, y);

			weights += weight;
			sum += weight * rows[y * n_columns + column];
		}
		out[i * n_columns + column] = (uint8_t)(sum / weights + 0.5f);
	}
}

/* Scales the middle square of an image (rows of red, green and blue bytes) to out: (side, side, 3) bytes, along rows,
 * then along columns. The weights are a triangle, two output pixels wide (two input pixels if those are larger). */
static enum psd_status scale_square(uint8_t *out, uint32_t side, const uint8_t *pixels, uint32_t height, uint32_t width,
				    struct psd_error *err)
{
	const uint32_t n = height < width ? height : width;
	const uint32_t top = (height - n) / 2, left = (width - n) / 2;
	const size_t n_columns = (size_t)3 * side;
	float *rows = malloc(n * n_columns * sizeof(*rows));

	if (!rows)
		return psd_out_of_memory(err);
	for (uint32_t y = 0; y < n; y++)
		scale_row(rows + y * n_columns, side, pixels + ((size_t)(top + y) * width + left) * 3, n);
	for (size_t column = 0; column < n_columns; column++)
		scale_column(out, side, rows, n_columns, column, n);
	free(rows);
	return PSD_OK;
}

/* ---- one image ---- */

static enum psd_status take_pixels(struct packer *packer, const struct psd_mapping *file, uint64_t n_pixels)
{
	if (n_pixels > max_pixels)
		return psd_mapping_refuse(file, 0, packer->err, "the image has %llu pixels, must have at most %llu",
					  (unsigned long long)n_pixels, (unsigned long long)max_pixels);
	if (n_pixels <= packer->n_pixels_room)
		return PSD_OK;
	uint8_t *pixels = realloc(packer->pixels, (size_t)(3 * n_pixels));
	if (!pixels)
		return psd_out_of_memory(packer->err);
	packer->pixels = pixels;
	packer->n_pixels_room = n_pixels;
	return PSD_OK;
}

static void add_sums(struct packer *packer, const uint8_t *pixels)
{
	const size_t n_pixels = (size_t)packer->pack.height * packer->pack.width;

	for (size_t i = 0; i < n_pixels; i++)
		for (unsigned channel = 0; channel < 3; channel++)
			packer->sums[channel] += pixels[3 * i + channel];
}

/* Sets the JPEG to store for an image: the bytes of its file, or a new JPEG of its scaled middle square. */
static enum psd_status square_image(struct packer *packer, const struct psd_mapping *file,
				    struct psd_pack_record *record)
{
	const struct psd_jpeg_source source = {file, 0, file->n_bytes};
	const uint32_t side = packer->pack.width;
	uint64_t n_bytes = file->n_bytes;
	uint32_t height, width;

	if (file->n_bytes == 0)
		return psd_mapping_refuse(file, 0, packer->err, "the file is empty");
	PSD_TRY(psd_jpeg_size(packer->jpeg, source, &height, &width, packer->err));
	PSD_TRY(take_pixels(packer, file, (uint64_t)height * width));
	PSD_TRY(psd_jpeg_decode(packer->jpeg, source, height, width, packer->pixels, packer->err));
	if (height == side && width == side) {
		record->jpeg = file->bytes;
		add_sums(packer, packer->pixels);
	} else {
		PSD_TRY(scale_square(packer->square, side, packer->pixels, height, width, packer->err));
		PSD_TRY(psd_jpeg_encode(packer->jpeg, packer->square, side, side, &record->jpeg, &n_bytes,
					packer->err));
		add_sums(packer, packer->square);
	}
	if (n_bytes > UINT32_MAX)
		return psd_mapping_refuse(file, 0, packer->err, "the file is longer than 4 GiB");
	record->n_bytes = (uint32_t)n_bytes;
	return PSD_OK;
}

/* ---- writing ---- */

static enum psd_status write_bytes(const struct packer *packer, const void *bytes, uint64_t n_bytes)
{
	if (n_bytes && fwrite(bytes, (size_t)n_bytes, 1, packer->out) != 1)
		return psd_error_set(packer->err, PSD_ERUN, (struct psd_place){.path = packer->path},
				     "cannot be written: %s", strerror(errno));
	return PSD_OK;
}

struct image_writing {
	struct packer *packer;
	const struct psd_mapping *file;
	struct psd_pack_record *record;
};

static enum psd_status write_mapped(void *context, struct psd_error *err)
{
	const struct image_writing *w = context;

	PSD_TRY(square_image(w->packer, w->file, w->record));
	(void)err; /* packer->err */
	return write_bytes(w->packer, w->record->jpeg, w->record->n_bytes);
}

static enum psd_status write_image(struct packer *packer, uint64_t i, uint64_t *offset)
{
	struct psd_pack_record record = {.offset = *offset, .label = packer->images[i].label};
	struct psd_mapping file;

	PSD_TRY(psd_mapping_open(&file, NULL, packer->images[i].path, packer->err));
	const enum psd_status status =
		psd_mapping_guard(&file, 1, write_mapped, &(struct image_writing){packer, &file, &record}, packer->err);
	if (!status)
		psd_pack_write_entry(packer->front + PSD_PACK_HEADER_BYTES + i * PSD_PACK_ENTRY_BYTES, &record);
	*offset += record.n_bytes;
	psd_mapping_close(&file);
	return status;
}

static void set_mean(struct packer *packer)
{
	const double values = (double)packer->n_images * packer->pack.height * packer->pack.width;

	for (unsigned channel = 0; channel < 3; channel++)
		packer->pack.mean[channel] = (uint32_t)((double)packer->sums[channel] / values * 65536.0 + 0.5);
}

/* Writes zeros for header and index, then the images, then header and index over the zeros. */
static enum psd_status write_all(struct packer *packer)
{
	const uint64_t front_bytes = PSD_PACK_HEADER_BYTES + packer->n_images * PSD_PACK_ENTRY_BYTES;
	uint64_t offset = front_bytes;

	PSD_TRY(write_bytes(packer, packer->front, front_bytes));
	for (uint64_t i = 0; i < packer->n_images; i++) {
		PSD_TRY(write_image(packer, i, &offset));
		if (packer->options->progress &&
		    !packer->options->progress(packer->options->context, i + 1, packer->n_images))
			return psd_error_set(packer->err, PSD_ERUN, PSD_NOWHERE, "packing was stopped");
	}
	set_mean(packer);
	psd_pack_write_header(packer->front, &packer->pack, offset);
	if (fseeko(packer->out, 0, SEEK_SET)) /* flushes, so it can fail */
		return psd_error_set(packer->err, errno == ESPIPE ? PSD_EFILE : PSD_ERUN,
				     (struct psd_place){.path = packer->path}, "cannot be written: %s%s",
				     strerror(errno), errno == ESPIPE ? "; must be a file that can be rewritten" : "");
	return write_bytes(packer, packer->front, front_bytes);
}

/* A packed file among the images would be in the way of the next call. */
static enum psd_status check_place(const char *folder, const char *path, struct psd_error *err)
{
	char *inside = psd_inputs_resolve_path(folder), *place = psd_inputs_resolve_path(path);
	const size_t n_bytes = inside ? strlen(inside) : 0;
	const bool is_inside = inside && place && !strncmp(place, inside, n_bytes) &&
			       (n_bytes == 1 || place[n_bytes] == '/' || !place[n_bytes]);

	free(inside);
	free(place);
	return is_inside ? psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
					 "is in the folder that is packed, '%.200s': name a file elsewhere", folder)
			 : PSD_OK;
}

static enum psd_status write_file(struct packer *packer, const char *path)
{
	PSD_TRY(psd_output_open(&packer->out, path, packer->err));
	packer->path = path;
	const enum psd_status status = write_all(packer);
	if (!status)
		return psd_outputs_commit(packer->err);
	psd_outputs_discard();
	return status;
}

static enum psd_status take_room(struct packer *packer)
{
	packer->pack.n_samples = packer->n_images;
	packer->front = calloc(1, PSD_PACK_HEADER_BYTES + (size_t)packer->n_images * PSD_PACK_ENTRY_BYTES);
	packer->square = malloc((size_t)3 * packer->pack.height * packer->pack.width);
	return packer->front && packer->square ? psd_jpeg_new(&packer->jpeg, packer->err)
					       : psd_out_of_memory(packer->err);
}

static void release(struct packer *packer)
{
	for (uint64_t i = 0; i < packer->n_images; i++)
		free(packer->images[i].path);
	free(packer->images);
	free(packer->front);
	free(packer->pixels);
	free(packer->square);
	psd_jpeg_free(packer->jpeg);
}

enum psd_status psd_pack_directory(const char *folder, const char *path, const struct psd_pack_options *options,
				   struct psd_error *err)
{
	const uint32_t side = options->side;
	struct packer packer = {
		.pack = {.height = side, .width = side, .names_checksum = PSD_HASH_START},
		.options = options,
		.err = err,
	};

	if (side < MIN_SIDE || side > PSD_PACK_MAX_SIDE)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "side of packed images is %u pixels, must be %d to %d", side, MIN_SIDE,
				     PSD_PACK_MAX_SIDE);
	enum psd_status status = list_folder(&packer, folder);
	if (!status)
		status = psd_output_check(path, err);
	if (!status)
		status = check_place(folder, path, err);
	if (!status)
		status = take_room(&packer);
	if (!status)
		status = write_file(&packer, path);
	release(&packer);
	return status;
}
