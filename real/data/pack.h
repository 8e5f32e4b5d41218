/* Packs folders of JPEGs into one file (format: pack_format.h). If a folder contains another image format, that is an
 * error which names the first such file. */
#ifndef PSD_REAL_PACK_H
#define PSD_REAL_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

struct psd_pack_options {
	uint32_t side; /* height and width of the packed images, pixels */
	/* Called after each image. n_done: number of images packed so far; n_images: number of all images. If it
	 * returns false, the packing stops. NULL: not called. */
	bool (*progress)(void *context, uint64_t n_done, uint64_t n_images);
	void *context; /* first argument of progress() */
};

/* Packs all images folder/CLASS/NAME.jpg into the file `path`. NAME may also end in .jpeg, in upper or lower case. Each
 * folder CLASS is a class; classes are numbered in the order of the bytes of their names. Files whose names begin with
 * a dot are ignored. Each image becomes a square of options->side pixels (8 to 4096). For this, the middle square of
 * the image, as wide as its shorter side, is scaled with a triangle filter (Krizhevsky et al. 2012 §2) and compressed
 * with quality 90. An image that has this size already is copied byte for byte. The same folder gives the same file.
 * `path` is replaced only when the new file is complete; after a failure the old file is unchanged. Needs memory for
 * the names, and 24 bytes per image. PSD_EINVAL: a file is not a JPEG, there are no classes, a class is empty, or
 * options->side is out of range; PSD_EFILE; PSD_ERUN: progress() stopped the packing, or the file cannot be written
 * completely; PSD_ENOMEM. */
enum psd_status psd_pack_directory(const char *folder, const char *path, const struct psd_pack_options *options,
				   struct psd_error *err) PSD_MUST_CHECK;

#endif
