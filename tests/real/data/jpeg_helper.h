/* JPEGs whose pixels say where they were. Needs _XOPEN_SOURCE 700 in the file that includes this. */
#ifndef PSD_TESTS_JPEG_HELPER_H
#define PSD_TESTS_JPEG_HELPER_H

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>

#include <turbojpeg.h>

/* Red rises with the column, green with the row; blue is the image's own. */
static inline void paint(uint8_t *pixels, unsigned height, unsigned width, uint8_t blue)
{
	for (unsigned y = 0; y < height; y++)
		for (unsigned x = 0; x < width; x++) {
			uint8_t *pixel = pixels + 3 * (y * width + x);

			pixel[0] = (uint8_t)(x * 255 / (width - 1));
			pixel[1] = (uint8_t)(y * 255 / (height - 1));
			pixel[2] = blue;
		}
}

struct jpeg {
	unsigned char *bytes;
	unsigned long n_bytes;
};

static inline struct jpeg make_jpeg(unsigned height, unsigned width, uint8_t blue)
{
	uint8_t *pixels = malloc((size_t)3 * height * width);
	tjhandle encoder = tjInitCompress();
	struct jpeg jpeg = {NULL, 0};

	cr_assert_not_null(pixels);
	cr_assert_not_null(encoder);
	paint(pixels, height, width, blue);
	cr_assert_eq(tjCompress2(encoder, pixels, (int)width, 0, (int)height, TJPF_RGB, &jpeg.bytes, &jpeg.n_bytes,
				 TJSAMP_444, 100, 0),
		     0);
	tjDestroy(encoder);
	free(pixels);
	return jpeg;
}

#endif
