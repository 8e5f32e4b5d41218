/* Reads input files into memory. Private to the engine. */
#ifndef PSD_FILE_H
#define PSD_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

#define PSD_FILE_BYTES_MAX ((size_t)16 * 1024 * 1024)

/* Reads all of path except a byte order mark of UTF-8. On success *text has length bytes and a terminator; the caller
 * frees it. PSD_EFILE: the file cannot be read or is longer than PSD_FILE_BYTES_MAX; PSD_EINVAL: it is UTF-16 instead
 * of UTF-8; PSD_ENOMEM. */
enum psd_status psd_file_read(char **text, size_t *length, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Reads all of path, up to `most` bytes, which need not be text. PSD_EFILE: as above, or it is longer; PSD_ENOMEM. */
enum psd_status psd_file_read_bytes(char **bytes, size_t *length, size_t most, const char *path,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Reads length bytes from `offset` on. PSD_EFILE also when the file is too short. */
enum psd_status psd_file_read_part(void *bytes, size_t length, uint64_t offset, const char *path,
				   struct psd_error *err) PSD_MUST_CHECK;

#endif
