/* JPEGs to pixels and back, through libjpeg-turbo. Pixels are rows of red, green and blue bytes without gaps. Refuses
 * images that the library warns about: a warning means missing or senseless data. Refuses CMYK. */
#ifndef PSD_REAL_JPEG_H
#define PSD_REAL_JPEG_H

#include <stdint.h>

#include "engine/base/error.h"
#include "real/data/mapping.h"

/* Position of a JPEG in a file, for messages. */
struct psd_jpeg_source {
	const struct psd_mapping *file;
	uint64_t offset;
	uint64_t n_bytes; /* length of the JPEG, bytes */
};

struct psd_jpeg; /* decoder and encoder, for one thread at a time */

/* Makes a decoder, which the caller owns until psd_jpeg_free() (NULL is allowed). PSD_ENOMEM. */
enum psd_status psd_jpeg_new(struct psd_jpeg **jpeg, struct psd_error *err) PSD_MUST_CHECK;
void psd_jpeg_free(struct psd_jpeg *jpeg);

/* Reads height and width in pixels from a JPEG's header. PSD_EINVAL with the byte offset. */
enum psd_status psd_jpeg_size(struct psd_jpeg *jpeg, struct psd_jpeg_source source, uint32_t *height, uint32_t *width,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Decodes the image into pixels, 3 height width bytes, with height and width of psd_jpeg_size(). PSD_EINVAL with the
 * byte offset. */
enum psd_status psd_jpeg_decode(struct psd_jpeg *jpeg, struct psd_jpeg_source source, uint32_t height, uint32_t width,
				uint8_t *pixels, struct psd_error *err) PSD_MUST_CHECK;
/* Encodes pixels as a JPEG. *bytes (*n_bytes of them) are borrowed from jpeg until its next encode. PSD_ENOMEM. */
enum psd_status psd_jpeg_encode(struct psd_jpeg *jpeg, const uint8_t *pixels, uint32_t height, uint32_t width,
				const uint8_t **bytes, uint64_t *n_bytes, struct psd_error *err) PSD_MUST_CHECK;

#endif
