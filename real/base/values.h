/* Converts arrays of floats to an encoding of 2 bytes per value and back, and sums encoded values. Results have the
 * same bits as those of the functions of struct psd_encoding, except for the payload of a NaN. Uses the processor's
 * instructions for conversions if it has them. Any thread. */
#ifndef PSD_REAL_VALUES_H
#define PSD_REAL_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/encodings/encoding.h"

/* Encodes n floats: to[i] = encoded(from[i] * ratio). In all functions of this file the encoding must have values of 2
 * bytes, and arrays must not overlap. */
void psd_values_encode(const struct psd_encoding *encoding, uint16_t *restrict to, const float *restrict from,
		       float ratio, uint64_t n);
/* Decodes n values to floats: to[i] = decoded(from[i]) * ratio. */
void psd_values_decode(const struct psd_encoding *encoding, float *restrict to, const uint16_t *restrict from,
		       float ratio, uint64_t n);
/* True if none of n encoded values is infinite or NaN. */
bool psd_values_are_finite(const struct psd_encoding *encoding, const uint16_t *values, uint64_t n);
/* Adds n encoded values to encoded sums: sum[i] = encoded(decoded(sum[i]) + decoded(part[i])). */
void psd_values_add(const struct psd_encoding *encoding, void *restrict sum, const void *restrict part, uint64_t n);
/* Adds n encoded values to floats: sum[i] = sum[i] + decoded(part[i]). */
void psd_values_add_to_floats(const struct psd_encoding *encoding, float *restrict sum, const void *restrict part,
			      uint64_t n);

#endif
