/* From folders of JPEGs to one packed file (pack_format.h). Refuses other pictures than JPEGs: an error names the first. */
#ifndef PSD_REAL_PACK_H
#define PSD_REAL_PACK_H

#include <stdint.h>

#include "engine/error.h"

/* Packs folder/CLASS/NAME.jpg (.jpeg, in any case) for every CLASS, numbered in the order of their names' bytes; files whose names begin
 * with a dot are passed over. Each image becomes a square of `side` pixels (8 to 4096): the middle square, as wide as the image's shorter
 * side, scaled with a triangle filter (Krizhevsky et al. 2012 §2) and compressed again with quality 90; one that has the size already is
 * kept byte for byte. The same folder gives the same file. `path` is replaced once all is written; on failure it stays as it was. Needs
 * memory for the names and 24 bytes a sample. PSD_EINVAL: a file is no JPEG, there is no class or a class is empty, side; PSD_EFILE;
 * PSD_ENOMEM. */
enum psd_status psd_pack_directory(const char *folder, const char *path, uint32_t side, struct psd_error *err) PSD_MUST_CHECK;

#endif
