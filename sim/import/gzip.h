/* Reads a file from its beginning to its end, and decompresses it if it is in gzip's format. */
#ifndef PSD_IMPORT_GZIP_H
#define PSD_IMPORT_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/error.h"

struct psd_gzip;

/* Opens a file; psd_gzip_close() closes *gzip. PSD_EFILE, PSD_ENOMEM. */
enum psd_status psd_gzip_open(struct psd_gzip **gzip, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Opens bytes in memory as psd_gzip_open() opens a file. They are borrowed until psd_gzip_close(). path: name in error
 * messages. */
enum psd_status psd_gzip_open_bytes(struct psd_gzip **gzip, const char *path, const void *bytes, size_t length,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Reads the next decompressed bytes, at most `room`, and sets *length to their number; 0: the end of the file.
 * PSD_EFILE: it cannot be read. PSD_EINVAL: the compressed data are damaged or incomplete. */
enum psd_status psd_gzip_take(struct psd_gzip *gzip, void *bytes, size_t room, size_t *length,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Returns the decompressed bytes that psd_gzip_take() reads next, without removing them. *length: largest number
 * wanted, then the number returned. The bytes are borrowed until the next call. */
const void *psd_gzip_peek(const struct psd_gzip *gzip, size_t *length);
/* Goes back to the beginning of the file, of which any part was read. False: it is a pipe. */
bool psd_gzip_rewind(struct psd_gzip *gzip);
void psd_gzip_close(struct psd_gzip *gzip);

#endif
