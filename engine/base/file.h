/* Reading of a whole input file into memory. Private to the engine. */
#ifndef PSD_FILE_H
#define PSD_FILE_H

#include <stddef.h>

#include "engine/base/error.h"

#define PSD_FILE_BYTES_MAX ((size_t)16 * 1024 * 1024)

/* Reads all of path, but for a byte order mark of UTF-8. On success *text (length bytes and a terminator) is the
 * caller's to free(). PSD_EFILE when it cannot be read or is longer than PSD_FILE_BYTES_MAX, PSD_EINVAL: not UTF-8 but
 * UTF-16, PSD_ENOMEM. */
enum psd_status psd_file_read(char **text, size_t *length, const char *path, struct psd_error *err) PSD_MUST_CHECK;

#endif
