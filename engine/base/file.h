/* Opens input files, and reads them into memory. All input files are opened here. */
#ifndef PSD_FILE_H
#define PSD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

#define PSD_FILE_BYTES_MAX ((size_t)16 * 1024 * 1024)

enum psd_file_kind {
	PSD_FILE_REGULAR, /* only regular files: they can be read at any position, and several times */
	PSD_FILE_PIPE,	  /* regular files and pipes: they are read once, from the beginning */
	PSD_FILE_STREAM,  /* regular files, pipes, terminals and other devices */
};

/* Opens the file `path` for reading, without waiting for another process, and notes it as an input (inputs.h). kind:
 * kinds of file that are accepted. The caller closes *descriptor after success. Reads from it do not block. PSD_EFILE:
 * the file cannot be opened, or is of another kind. */
enum psd_status psd_file_open(int *descriptor, const char *path, enum psd_file_kind kind,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Reads from a descriptor of psd_file_open() until `room` bytes are read or the file ends; *length: number of bytes
 * read. On a pipe it waits as long as some process has the pipe open for writing. is_begun: an earlier call has read
 * bytes, so a pipe without a writer is at its end. path: name of the file in messages. PSD_EFILE: the file cannot be
 * read, or is a pipe that no process opens for writing. */
enum psd_status psd_file_take(int descriptor, bool is_begun, void *bytes, size_t room, size_t *length, const char *path,
			      struct psd_error *err) PSD_MUST_CHECK;

/* Reads a whole text file, without UTF-8's byte order mark if it has one. On success *text has *length bytes and a
 * zero behind them; the caller frees it. PSD_EFILE: the file cannot be read, or is longer than PSD_FILE_BYTES_MAX.
 * PSD_EINVAL: it is UTF-16 instead of UTF-8. PSD_ENOMEM. */
enum psd_status psd_file_read(char **text, size_t *length, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Reads a whole file or pipe, which need not be text; `most`: largest number of bytes. The caller frees *bytes.
 * PSD_EFILE: it cannot be read, or is longer than `most`. PSD_ENOMEM. */
enum psd_status psd_file_read_bytes(char **bytes, size_t *length, size_t most, const char *path,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Reads `length` bytes of a regular file, from byte `offset` on. PSD_EFILE: it cannot be read, or ends before. */
enum psd_status psd_file_read_part(void *bytes, size_t length, uint64_t offset, const char *path,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Returns the path without its folders. */
const char *psd_file_name(const char *path);

#endif
