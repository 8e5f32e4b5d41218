/* The one way to open input files, and to read them into memory. */
#ifndef PSD_FILE_H
#define PSD_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

#define PSD_FILE_BYTES_MAX ((size_t)16 * 1024 * 1024)

enum psd_file_kind {
	PSD_FILE_REGULAR, /* read at any position, and again */
	PSD_FILE_PIPE,	  /* read once from its beginning: a pipe will do */
	PSD_FILE_STREAM,  /* terminals and other devices will do, too */
};

/* Opens path to read, without waiting for another process, and notes it as an input (inputs.h). On success the caller
 * closes *descriptor. Its reads do not block. PSD_EFILE: it cannot be opened, or is of another kind. */
enum psd_status psd_file_open(int *descriptor, const char *path, enum psd_file_kind kind,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Reads from a descriptor of psd_file_open() until *length is `room`, or less at the end of the file. Waits as long as
 * a process keeps a pipe open to write. PSD_EFILE: it cannot be read, or is a pipe to which no process writes. */
enum psd_status psd_file_take(int descriptor, void *bytes, size_t room, size_t *length, const char *path,
			      struct psd_error *err) PSD_MUST_CHECK;

/* Reads all of path except a byte order mark of UTF-8. On success *text has length bytes and a terminator; the caller
 * frees it. PSD_EFILE: the file cannot be read or is longer than PSD_FILE_BYTES_MAX; PSD_EINVAL: it is UTF-16 instead
 * of UTF-8; PSD_ENOMEM. */
enum psd_status psd_file_read(char **text, size_t *length, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Reads all of path, up to `most` bytes, a file or a pipe, which need not be text. PSD_EFILE: as above, or it is
 * longer; PSD_ENOMEM. */
enum psd_status psd_file_read_bytes(char **bytes, size_t *length, size_t most, const char *path,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Reads length bytes from `offset` on. PSD_EFILE also when the file is too short. */
enum psd_status psd_file_read_part(void *bytes, size_t length, uint64_t offset, const char *path,
				   struct psd_error *err) PSD_MUST_CHECK;

#endif
