/* Functions for kernels: they read and write values of each number format, and compute indices of elements. The code is
 * C that is also valid C++, and is compiled both for the GPU and for the processor. */
#ifndef PSD_REAL_GPU_VALUES_H
#define PSD_REAL_GPU_VALUES_H

#include <math.h>
#include <string.h>

#include "real/device/gpu/kernels.h"

#ifdef __CUDACC__
#define PSD_BODY static __device__ __forceinline__
#else
#define PSD_BODY static inline
#endif

/* ---- values ---- */

/* Returns the bits of a float. */
PSD_BODY uint32_t psd_bits(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Returns the float with these bits. */
PSD_BODY float psd_of_bits(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Converts a half to a float. The multiplication corrects the exponent, and also normalises subnormal numbers. */
PSD_BODY float psd_from_half(uint16_t half)
{
	const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, magnitude = (uint32_t)(half & 0x7fffu) << 13;
	const bool is_finite = (half & 0x7c00u) != 0x7c00u;
	const uint32_t wide =
		is_finite ? psd_bits(psd_of_bits(magnitude) * 5.192296858534828e33f) : magnitude | 0x7f800000u;

	return psd_of_bits(sign | wide);
}

/* Converts a float to a half, rounded to nearest, ties to even. If the half is subnormal, adding 1/2 moves its bits to
 * the lowest bits of the float. */
PSD_BODY uint16_t psd_to_half(float value)
{
	const uint32_t bits = psd_bits(value), magnitude = bits & 0x7fffffffu;
	const uint32_t sign = bits >> 16 & 0x8000u;

	if (magnitude > 0x7f800000u)
		return (uint16_t)(sign | 0x7e00u);
	if (magnitude >= 0x477ff000u)
		return (uint16_t)(sign | 0x7c00u);
	if (magnitude < 0x38800000u)
		return (uint16_t)(sign | (psd_bits(psd_of_bits(magnitude) + 0.5f) - 0x3f000000u));
	return (uint16_t)(sign | ((magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13));
}

/* Converts a float to bfloat16, rounded to nearest, ties to even. */
PSD_BODY uint16_t psd_to_bfloat(float value)
{
	const uint32_t bits = psd_bits(value);

	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)(bits >> 16 | 0x40u);
	return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* Converts 16 bits in the number format `type` to a float. */
PSD_BODY float psd_of_short(enum psd_gpu_type type, uint16_t bits)
{
	return type == PSD_GPU_HALF ? psd_from_half(bits) : psd_of_bits((uint32_t)bits << 16);
}

/* Converts a float to 16 bits in the number format `type`. */
PSD_BODY uint16_t psd_to_short(enum psd_gpu_type type, float value)
{
	return type == PSD_GPU_HALF ? psd_to_half(value) : psd_to_bfloat(value);
}

/* Reads element number i as a float. */
PSD_BODY float psd_get(struct psd_gpu_values values, uint64_t i)
{
	if (values.type == PSD_GPU_FLOAT)
		return ((const float *)values.data)[i];
	return psd_of_short(values.type, ((const uint16_t *)values.data)[i]);
}

/* Writes `value` to element number i. */
PSD_BODY void psd_put(struct psd_gpu_values values, uint64_t i, float value)
{
	if (values.type == PSD_GPU_FLOAT)
		((float *)values.data)[i] = value;
	else
		((uint16_t *)values.data)[i] = psd_to_short(values.type, value);
}

/* Writes `value` to element number i, or adds it to the element if `adds`. */
PSD_BODY void psd_give(struct psd_gpu_values values, uint64_t i, float value, bool adds)
{
	psd_put(values, i, adds ? psd_get(values, i) + value : value);
}

/* Returns vector[i], or `absent` if vector is NULL. */
PSD_BODY float psd_entry(const float *vector, uint32_t i, float absent)
{
	return vector ? vector[i] : absent;
}

/* ---- one value, or four adjacent values ---- */

/* One value or four adjacent values. Functions with an argument n of 1 or 4, known at compile time, use the first n.
 * Four values are aligned so that one memory access can load them. */
struct psd_lanes {
	float of[4];
};

/* Four adjacent values, aligned so that one memory access loads them. */
struct psd_four_floats {
	float of[4];
} __attribute__((aligned(16)));
struct psd_four_shorts {
	uint16_t of[4];
} __attribute__((aligned(8)));
struct psd_four_positions {
	uint32_t of[4];
} __attribute__((aligned(16)));

/* Reads n values (1 or 4), the first at index i. */
PSD_BODY struct psd_lanes psd_get_lanes(struct psd_gpu_values values, uint64_t i, int n)
{
	struct psd_lanes lanes = {{0.0f, 0.0f, 0.0f, 0.0f}};

	if (n == 1) {
		lanes.of[0] = psd_get(values, i);
	} else if (values.type == PSD_GPU_FLOAT) {
		const struct psd_four_floats four = *(const struct psd_four_floats *)((const float *)values.data + i);

		for (int k = 0; k < 4; k++)
			lanes.of[k] = four.of[k];
	} else {
		const struct psd_four_shorts four =
			*(const struct psd_four_shorts *)((const uint16_t *)values.data + i);

		for (int k = 0; k < 4; k++)
			lanes.of[k] = psd_of_short(values.type, four.of[k]);
	}
	return lanes;
}

/* Writes n values (1 or 4), the first at index i. */
PSD_BODY void psd_put_lanes(struct psd_gpu_values values, uint64_t i, struct psd_lanes lanes, int n)
{
	if (n == 1) {
		psd_put(values, i, lanes.of[0]);
	} else if (values.type == PSD_GPU_FLOAT) {
		struct psd_four_floats four;

		for (int k = 0; k < 4; k++)
			four.of[k] = lanes.of[k];
		*(struct psd_four_floats *)((float *)values.data + i) = four;
	} else {
		struct psd_four_shorts four;

		for (int k = 0; k < 4; k++)
			four.of[k] = psd_to_short(values.type, lanes.of[k]);
		*(struct psd_four_shorts *)((uint16_t *)values.data + i) = four;
	}
}

/* Writes n values (1 or 4), the first at index i, or adds them to the elements if `adds`. */
PSD_BODY void psd_give_lanes(struct psd_gpu_values values, uint64_t i, struct psd_lanes lanes, int n, bool adds)
{
	if (adds) {
		const struct psd_lanes there = psd_get_lanes(values, i, n);

		for (int k = 0; k < n; k++)
			lanes.of[k] = there.of[k] + lanes.of[k];
	}
	psd_put_lanes(values, i, lanes, n);
}

/* Reads n positions (1 or 4), the first at index i of `from`. */
PSD_BODY void psd_get_positions(uint32_t positions[4], const uint32_t *from, uint64_t i, int n)
{
	if (n == 4) {
		const struct psd_four_positions four = *(const struct psd_four_positions *)(from + i);

		for (int k = 0; k < 4; k++)
			positions[k] = four.of[k];
	} else {
		positions[0] = from[i];
	}
}

/* Defines the two bodies of a kernel, for one element and for four elements per index. Both call the function
 * psd_NAME_from(), which handles n elements, the first at index i. */
#define PSD_BODIES(name)                                                                                               \
	PSD_BODY void psd_##name##_at(uint64_t i, const struct psd_gpu_##name *of)                                     \
	{                                                                                                              \
		psd_##name##_from(i, of, 1);                                                                           \
	}                                                                                                              \
	PSD_BODY void psd_##name##_four_at(uint64_t i, const struct psd_gpu_##name *of)                                \
	{                                                                                                              \
		psd_##name##_from(4 * i, of, 4);                                                                       \
	}

/* ---- positions ---- */

/* Position of an element in a batch of maps. */
struct psd_spot {
	uint32_t sample, channel, row, column;
};

/* Returns the sample, channel, row and column of the element at index i in memory. */
PSD_BODY struct psd_spot psd_spot_of(struct psd_gpu_maps maps, uint32_t i)
{
	struct psd_spot position;

	if (maps.is_channels_last) {
		position.channel = i % maps.channels;
		i /= maps.channels;
	}
	position.column = i % maps.width;
	i /= maps.width;
	position.row = i % maps.height;
	i /= maps.height;
	if (!maps.is_channels_last) {
		position.channel = i % maps.channels;
		i /= maps.channels;
	}
	position.sample = i;
	return position;
}

/* Returns the index in memory of the element at a position of a batch of maps. */
PSD_BODY uint32_t psd_at(struct psd_gpu_maps maps, struct psd_spot position)
{
	if (maps.is_channels_last)
		return ((position.sample * maps.height + position.row) * maps.width + position.column) * maps.channels +
		       position.channel;
	return ((position.sample * maps.channels + position.channel) * maps.height + position.row) * maps.width +
	       position.column;
}

/* Returns the channel of the element at index i, by the rule `channel`. */
PSD_BODY uint32_t psd_channel_of(struct psd_gpu_channel channel, uint32_t i)
{
	return i / channel.inner % channel.channels;
}

/* Returns the number of the position of the element at index i. Positions are numbered through all samples. */
PSD_BODY uint32_t psd_position_number(struct psd_gpu_channel channel, uint32_t i)
{
	return i / channel.inner / channel.channels * channel.inner + i % channel.inner;
}

/* Returns the index of a position's element in channel 0. The element in channel c has the index c * channel.inner
 * higher. */
PSD_BODY uint32_t psd_first_at(struct psd_gpu_channel channel, uint32_t position)
{
	return position / channel.inner * channel.inner * channel.channels + position % channel.inner;
}

/* Part of a position's channels. One index of a kernel handles one part. number: number of the part, 0 to
 * PSD_GPU_PARTS - 1. */
struct psd_part {
	uint32_t position, number;
};

/* Returns the part of a position's channels (struct psd_part) that index i of a kernel handles. Adjacent indices read
 * adjacent elements. */
PSD_BODY struct psd_part psd_part_of(struct psd_gpu_channel channel, uint64_t i)
{
	/* number of kernel indices for one sample */
	const uint64_t all = (uint64_t)channel.inner * PSD_GPU_PARTS;
	struct psd_part part = {(uint32_t)(i / PSD_GPU_PARTS), (uint32_t)(i % PSD_GPU_PARTS)};

	if (channel.inner > 1) { /* avoids slow 64-bit divisions */
		part.position = (uint32_t)(i / all * channel.inner + i % channel.inner);
		part.number = (uint32_t)(i % all / channel.inner);
	}
	return part;
}

/* Returns the index of this part in an array of shape (positions, PSD_GPU_PARTS). */
PSD_BODY uint64_t psd_part_at(struct psd_part part)
{
	return (uint64_t)part.position * PSD_GPU_PARTS + part.number;
}

/* Returns the index, in the array, of element number i of a view. */
PSD_BODY uint32_t psd_seen_at(const struct psd_gpu_view *view, uint32_t i)
{
	uint32_t at = view->offset;

	for (int axis = 3; axis > 0; axis--) {
		at += i % view->sizes[axis] * view->strides[axis];
		i /= view->sizes[axis];
	}
	return at + i * view->strides[0];
}

#endif
