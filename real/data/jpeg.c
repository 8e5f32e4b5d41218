/* The one file that knows libjpeg-turbo. Refuses its inexact transforms: equal bytes give equal pixels everywhere. */
#include "real/data/jpeg.h"

#include <stdlib.h>

#include <turbojpeg.h>

enum { QUALITY = 90 };

struct psd_jpeg {
	tjhandle decoder;
	tjhandle encoder; /* made when it is first needed */
	unsigned char *encoded;
};

enum psd_status psd_jpeg_new(struct psd_jpeg **jpeg, struct psd_error *err)
{
	struct psd_jpeg *fresh = calloc(1, sizeof(*fresh));

	if (!fresh)
		return psd_out_of_memory(err);
	fresh->decoder = tjInitDecompress();
	if (!fresh->decoder) {
		free(fresh);
		return psd_out_of_memory(err);
	}
	*jpeg = fresh;
	return PSD_OK;
}

void psd_jpeg_free(struct psd_jpeg *jpeg)
{
	if (!jpeg)
		return;
	tjDestroy(jpeg->decoder);
	if (jpeg->encoder)
		tjDestroy(jpeg->encoder);
	tjFree(jpeg->encoded);
	free(jpeg);
}

static enum psd_status refuse(const struct psd_jpeg *jpeg, struct psd_jpeg_source source, struct psd_error *err)
{
	return psd_mapping_refuse(source.file, source.offset, err, "not a complete JPEG: %s",
				  tjGetErrorStr2(jpeg->decoder));
}

enum psd_status psd_jpeg_size(struct psd_jpeg *jpeg, struct psd_jpeg_source source, uint32_t *height, uint32_t *width,
			      struct psd_error *err)
{
	int columns, rows, sampling, colours;

	if (tjDecompressHeader3(jpeg->decoder, source.file->bytes + source.offset, (unsigned long)source.n_bytes,
				&columns, &rows, &sampling, &colours))
		return refuse(jpeg, source, err);
	if (colours == TJCS_CMYK || colours == TJCS_YCCK)
		return psd_mapping_refuse(source.file, source.offset, err,
					  "the JPEG is in CMYK, must be in colour or grey");
	*height = (uint32_t)rows;
	*width = (uint32_t)columns;
	return PSD_OK;
}

enum psd_status psd_jpeg_decode(struct psd_jpeg *jpeg, struct psd_jpeg_source source, uint32_t height, uint32_t width,
				uint8_t *pixels, struct psd_error *err)
{
	if (tjDecompress2(jpeg->decoder, source.file->bytes + source.offset, (unsigned long)source.n_bytes, pixels,
			  (int)width, 3 * (int)width, (int)height, TJPF_RGB, TJFLAG_ACCURATEDCT))
		return refuse(jpeg, source, err);
	return PSD_OK;
}

enum psd_status psd_jpeg_encode(struct psd_jpeg *jpeg, const uint8_t *pixels, uint32_t height, uint32_t width,
				const uint8_t **bytes, uint64_t *n_bytes, struct psd_error *err)
{
	unsigned long length = 0;

	if (!jpeg->encoder)
		jpeg->encoder = tjInitCompress();
	if (!jpeg->encoder)
		return psd_out_of_memory(err);
	tjFree(jpeg->encoded);
	jpeg->encoded = NULL;
	if (tjCompress2(jpeg->encoder, pixels, (int)width, 3 * (int)width, (int)height, TJPF_RGB, &jpeg->encoded,
			&length, TJSAMP_420, QUALITY, TJFLAG_ACCURATEDCT))
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "cannot encode a JPEG: %s",
				     tjGetErrorStr2(jpeg->encoder));
	*bytes = jpeg->encoded;
	*n_bytes = length;
	return PSD_OK;
}
