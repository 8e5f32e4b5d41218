/* Packs folders of JPEGs into one file (pack_format.h). Refuses other formats: an error names the first such file. */
#ifndef PSD_REAL_PACK_H
#define PSD_REAL_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

struct psd_pack_options {
	uint32_t side; /* height and width of the packed images, pixels */
	/* Called after each image; false stops the packing. May be NULL. */
	bool (*progress)(void *context, uint64_t n_done, uint64_t n_images);
	void *context;
};

/* Packs folder/CLASS/NAME.jpg (.jpeg, in any case) for every CLASS, numbered in the order of their names' bytes; files
 * whose names begin with a dot are passed over. Each image becomes a square of options->side pixels (8 to 4096): the
 * middle square, as wide as the image's shorter side, scaled with a triangle filter (Krizhevsky et al. 2012 §2) and
 * compressed again with quality 90; one that has the size already is kept byte for byte. The same folder gives the same
 * file. `path` is replaced once all is written; on failure it stays as it was. Needs memory for the names and 24 bytes
 * a sample. PSD_EINVAL: a file is no JPEG, there is no class or a class is empty, side; PSD_EFILE; PSD_ERUN: stopped,
 * or path cannot be written to the end; PSD_ENOMEM. */
enum psd_status psd_pack_directory(const char *folder, const char *path, const struct psd_pack_options *options,
				   struct psd_error *err) PSD_MUST_CHECK;

#endif
