/* Encodings: as what values travel between hosts. An encoding is a row in a file of its own; what it is applied to, and
 * when, follows from the buffers that an item's method keeps. Pure functions, any thread. */
#ifndef PSD_ENCODING_H
#define PSD_ENCODING_H

#include <stdbool.h>
#include <stdint.h>

struct psd_encoding {
	const char *name;
	unsigned value_bytes;
	bool is_lossy;	/* values come back as others: each is converted before it leaves and after it has arrived */
	bool is_scaled; /* gradients would leave its range: they travel times a ratio, see train.loss_scale */
	/* One value, to the nearest that there is and of two to the even one; infinities and NaNs stay what they are.
	 * NULL: values travel as they are. Faster conversions of many values are held against these. */
	uint16_t (*encode)(float value);
	float (*decode)(uint16_t bits);
};

/* One row each: identifier, which is its name as well. The first is what holds where nothing is said. */
#define PSD_ENCODINGS(ROW) ROW(fp32) ROW(fp16) ROW(bf16)

#define PSD_DECLARE_ENCODING(identifier) extern const struct psd_encoding psd_encoding_##identifier;
PSD_ENCODINGS(PSD_DECLARE_ENCODING)

/* In the order of the rows, as are their names, which NULL ends. */
extern const struct psd_encoding *const psd_encodings[];
extern const char *const psd_encoding_names[];

#endif
