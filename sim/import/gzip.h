/* The bytes of a file, decompressed if it is gzip's. Reads from its beginning to its end, once. */
#ifndef PSD_IMPORT_GZIP_H
#define PSD_IMPORT_GZIP_H

#include <stddef.h>

#include "engine/base/error.h"

struct psd_gzip;

/* Opens the file; psd_gzip_close() closes *gzip. PSD_EFILE, PSD_ENOMEM. */
enum psd_status psd_gzip_open(struct psd_gzip **gzip, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* As above, for bytes in memory, borrowed until psd_gzip_close(). path: name in errors. */
enum psd_status psd_gzip_open_bytes(struct psd_gzip **gzip, const char *path, const void *bytes, size_t length,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Sets *length to the number of bytes read, at most `room`; 0: the end. PSD_EFILE; PSD_EINVAL: damaged or cut. */
enum psd_status psd_gzip_take(struct psd_gzip *gzip, void *bytes, size_t room, size_t *length,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Bytes that are read next, at most `*length`; does not move. Borrowed until the next call. */
const void *psd_gzip_peek(const struct psd_gzip *gzip, size_t *length);
void psd_gzip_close(struct psd_gzip *gzip);

#endif
