/* Decodes and encodes JPEGs, by libjpeg-turbo. Pixels are stored row by row, each as three bytes: red, green, blue;
 * there are no gaps. An image about which the library warns is an error, because its data are missing or damaged. CMYK
 * images are an error, too. */
#ifndef PSD_REAL_JPEG_H
#define PSD_REAL_JPEG_H

#include <stdint.h>

#include "engine/base/error.h"
#include "real/data/mapping.h"

/* A JPEG inside a mapped file: n_bytes bytes, beginning at byte `offset`. */
struct psd_jpeg_source {
	const struct psd_mapping *file;
	uint64_t offset;
	uint64_t n_bytes; /* length of the JPEG, bytes */
};

struct psd_jpeg; /* decoder and encoder, for one thread at a time */

/* Makes a decoder and encoder, which the caller owns until psd_jpeg_free(). PSD_ENOMEM. */
enum psd_status psd_jpeg_new(struct psd_jpeg **jpeg, struct psd_error *err) PSD_MUST_CHECK;
/* Frees a decoder and encoder; NULL is allowed. */
void psd_jpeg_free(struct psd_jpeg *jpeg);

/* Reads height and width, in pixels, from the header of a JPEG. PSD_EINVAL: the header is damaged; the text has the
 * byte offset in the file. */
enum psd_status psd_jpeg_size(struct psd_jpeg *jpeg, struct psd_jpeg_source source, uint32_t *height, uint32_t *width,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Decodes the image to `pixels`, which has 3 * height * width bytes. height and width must be those of psd_jpeg_size().
 * PSD_EINVAL: the image is damaged; the text has the byte offset in the file. */
enum psd_status psd_jpeg_decode(struct psd_jpeg *jpeg, struct psd_jpeg_source source, uint32_t height, uint32_t width,
				uint8_t *pixels, struct psd_error *err) PSD_MUST_CHECK;
/* Encodes pixels, height * width * 3 bytes, as a JPEG. Sets *bytes to the JPEG and *n_bytes to its length. *bytes stays
 * valid until the next psd_jpeg_encode() with the same `jpeg`. PSD_ENOMEM. */
enum psd_status psd_jpeg_encode(struct psd_jpeg *jpeg, const uint8_t *pixels, uint32_t height, uint32_t width,
				const uint8_t **bytes, uint64_t *n_bytes, struct psd_error *err) PSD_MUST_CHECK;

#endif
