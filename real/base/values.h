/* Many values at a time into an encoding and out of it, and sums of what is encoded. As the encoding's own reference
 * has it bit by bit, but for which NaN a NaN becomes; by the processor's own conversions where it has them. Pure but
 * for what they write, any thread. */
#ifndef PSD_REAL_VALUES_H
#define PSD_REAL_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/encodings/encoding.h"

/* to[i] = encoded from[i] * ratio. The encoding is lossy, as in the next two; nothing overlaps. */
void psd_values_encode(const struct psd_encoding *encoding, uint16_t *restrict to, const float *restrict from,
		       float ratio, uint64_t n);
/* to[i] = decoded from[i] * ratio */
void psd_values_decode(const struct psd_encoding *encoding, float *restrict to, const uint16_t *restrict from,
		       float ratio, uint64_t n);
/* No infinity and no NaN among them. */
bool psd_values_are_finite(const struct psd_encoding *encoding, const uint16_t *values, uint64_t n);
/* sum[i] += part[i], both of the encoding, whichever it is: added as floats, and encoded again. */
void psd_values_add(const struct psd_encoding *encoding, void *restrict sum, const void *restrict part, uint64_t n);
/* sum[i] += decoded part[i], of the encoding, whichever it is: the sum is not rounded to it. */
void psd_values_add_to_floats(const struct psd_encoding *encoding, float *restrict sum, const void *restrict part,
			      uint64_t n);

#endif
