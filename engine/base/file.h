/* Reading of a whole input file into memory. Private to the engine. */
#ifndef PSD_FILE_H
#define PSD_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

#define PSD_FILE_BYTES_MAX ((size_t)16 * 1024 * 1024)

/* Reads all of path, but for a byte order mark of UTF-8. On success *text (length bytes and a terminator) is the
 * caller's to free(). PSD_EFILE when it cannot be read or is longer than PSD_FILE_BYTES_MAX, PSD_EINVAL: not UTF-8 but
 * UTF-16, PSD_ENOMEM. */
enum psd_status psd_file_read(char **text, size_t *length, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* The same for bytes that are no text, and up to `most` of them: nothing is left out or refused but for its length. */
enum psd_status psd_file_read_bytes(char **bytes, size_t *length, size_t most, const char *path,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Fills length bytes from the file's, from `offset` on. PSD_EFILE also where it ends before. */
enum psd_status psd_file_read_part(void *bytes, size_t length, uint64_t offset, const char *path,
				   struct psd_error *err) PSD_MUST_CHECK;

#endif
