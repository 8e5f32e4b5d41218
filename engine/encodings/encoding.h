/* Encodings: number formats of values that travel between hosts. Each encoding is a struct psd_encoding in a file of
 * its own. The method of an item (bucket) lists its buffers, and the buffers decide which values are encoded, and when.
 * Pure functions, any thread. */
#ifndef PSD_ENCODING_H
#define PSD_ENCODING_H

#include <stdbool.h>
#include <stdint.h>

struct psd_encoding {
	const char *name;
	unsigned value_bytes; /* bytes of one encoded value */
	bool is_lossy;	      /* values lose precision: they are encoded before they leave and decoded on arrival */
	/* gradients may leave the range of the format, so they are multiplied by `train.loss_scale` before */
	bool is_scaled;
	/* Converts one value to the encoding, rounded to the nearest value, ties to even; infinities and NaNs are
	 * preserved. NULL: values travel unchanged. Tests compare the faster functions for arrays with this one. */
	uint16_t (*encode)(float value);
	/* Converts one encoded value back to a float, exactly. NULL: values travel unchanged. */
	float (*decode)(uint16_t bits);
};

/* All encodings: identifier in C, which is also the name in scenarios. The first is the default. */
#define PSD_ENCODINGS(ROW) ROW(fp32) ROW(fp16) ROW(bf16)

#define PSD_DECLARE_ENCODING(identifier) extern const struct psd_encoding psd_encoding_##identifier;
PSD_ENCODINGS(PSD_DECLARE_ENCODING)

/* All encodings, in the order of PSD_ENCODINGS. */
extern const struct psd_encoding *const psd_encodings[];
/* Names of all encodings, in the order of PSD_ENCODINGS; NULL ends the array. */
extern const char *const psd_encoding_names[];

#endif
