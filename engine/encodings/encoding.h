/* Encodings: number formats in which values are sent between hosts. Each encoding is a struct psd_encoding in a file of
 * its own. The buffers of an item's (bucket's) method decide which values are encoded, see engine/program/buffer.h.
 * Pure functions, any thread. */
#ifndef PSD_ENCODING_H
#define PSD_ENCODING_H

#include <stdbool.h>
#include <stdint.h>

struct psd_encoding {
	const char *name;
	unsigned value_bytes; /* bytes of one encoded value */
	/* Values lose precision. They are encoded before they are sent, and decoded after they are received. */
	bool is_lossy;
	/* before gradients are encoded, they are multiplied by `train.loss_scale`, because small ones would become 0 */
	bool is_scaled;
	/* Returns a value in the encoding, rounded to the nearest, ties to even. Infinities and NaNs are kept. NULL:
	 * values are sent unchanged. There are faster functions for arrays; tests compare them with this one. */
	uint16_t (*encode)(float value);
	/* Returns an encoded value as a float, which is exact. NULL: values are sent unchanged. */
	float (*decode)(uint16_t bits);
};

/* All encodings, ROW(identifier), which is also the name in scenarios. The first is the default. */
#define PSD_ENCODINGS(ROW) ROW(fp32) ROW(fp16) ROW(bf16)

#define PSD_DECLARE_ENCODING(identifier) extern const struct psd_encoding psd_encoding_##identifier;
PSD_ENCODINGS(PSD_DECLARE_ENCODING)

/* All encodings, in the order of PSD_ENCODINGS. */
extern const struct psd_encoding *const psd_encodings[];
/* Names of all encodings, in the order of PSD_ENCODINGS; NULL ends the array. */
extern const char *const psd_encoding_names[];

#endif
