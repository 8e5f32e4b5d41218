/* Encodings: number formats of values that travel between hosts. Each encoding is a row in a file of its own. The
 * buffers that a method plans for an item decide which values are encoded, and when. Pure functions, any thread. */
#ifndef PSD_ENCODING_H
#define PSD_ENCODING_H

#include <stdbool.h>
#include <stdint.h>

struct psd_encoding {
	const char *name;
	unsigned value_bytes;
	bool is_lossy;	/* values lose precision: they are encoded before they leave and decoded on arrival */
	bool is_scaled; /* gradients may exceed the range, so they are multiplied by train.loss_scale */
	/* Convert one value, rounded to the nearest one, ties to even; infinities and NaNs are preserved. NULL: values
	 * travel unchanged. Tests compare faster conversions of many values with these. */
	uint16_t (*encode)(float value);
	float (*decode)(uint16_t bits);
};

/* All encodings, one row each: identifier, which is also the name. The first is the default. */
#define PSD_ENCODINGS(ROW) ROW(fp32) ROW(fp16) ROW(bf16)

#define PSD_DECLARE_ENCODING(identifier) extern const struct psd_encoding psd_encoding_##identifier;
PSD_ENCODINGS(PSD_DECLARE_ENCODING)

/* Encodings and their names by number, in the order of the rows; NULL ends the names. */
extern const struct psd_encoding *const psd_encodings[];
extern const char *const psd_encoding_names[];

#endif
