/* Kernel bodies of compression by one-bit, top-k and int8; kernels.h describes their arguments. Sums are added in the
 * order of engine/encodings/one_bit.c, and values are written in the order of top_k.c. So the results have the same
 * bits, except for NaNs. */
#ifndef PSD_REAL_GPU_BODIES_PACKING_H
#define PSD_REAL_GPU_BODIES_PACKING_H

#include "engine/encodings/compression.h"
#include "real/device/gpu/values.h"

struct psd_one_block {
	float *gradient, *residual, *velocity;
	const float *weight;
	char *packed;
	uint32_t n; /* number of values in the block, at least 1 */
	float weight_decay;
};

PSD_BODY uint32_t psd_lesser(uint32_t left, uint32_t right)
{
	return left < right ? left : right;
}

/* Finds the tensor and the values of a compressed block. block: number of the block, from 0, among all blocks that this
 * kernel launch handles. */
PSD_BODY struct psd_one_block psd_block_of(const struct psd_gpu_blocks *of, uint32_t block)
{
	const struct psd_gpu_block_span *span = of->spans;
	struct psd_one_block one;
	uint32_t first = 0;

	for (; block >= span->end; span++)
		first = span->end;
	const uint64_t begin = (uint64_t)(block - first) * of->elements, left = span->elements - begin;

	one.gradient = span->gradient + begin;
	one.weight = span->weight + begin;
	one.weight_decay = span->weight_decay;
	one.residual = of->residual + span->first + begin;
	one.velocity = of->velocity ? of->velocity + span->first + begin : NULL;
	one.packed = of->packed + (uint64_t)block * of->packed_bytes;
	one.n = left < of->elements ? (uint32_t)left : of->elements;
	return one;
}

/* Returns the value of element e that is added to the residual in this iteration. It is the gradient. If there is a
 * velocity, the velocity is updated, and the value is that of psd_packing_pack(). */
PSD_BODY float psd_moved(const struct psd_gpu_blocks *of, const struct psd_one_block *one, uint32_t e)
{
	if (!one->velocity)
		return one->gradient[e];
	const float slope = one->gradient[e] + one->weight_decay * one->weight[e];
	const float velocity = of->momentum * one->velocity[e] + slope;

	one->velocity[e] = velocity;
	return of->is_nesterov ? slope + of->momentum * velocity : velocity;
}

/* Adds this iteration's value of element e to its residual, and returns the new residual. */
PSD_BODY float psd_collect(const struct psd_gpu_blocks *of, const struct psd_one_block *one, uint32_t e)
{
	const float whole = one->residual[e] + psd_moved(of, one, e);

	one->residual[e] = whole;
	return whole;
}

/* ---- one bit ---- */

PSD_BODY uint32_t *psd_words_of(const struct psd_one_block *one)
{
	return (uint32_t *)(void *)one->packed + 2;
}

/* One-bit: computes for one lane of a compressed block the sums of its values, and writes its sign bits. There is one
 * word of sign bits for each unit of a block of full length, even if the block is shorter. */
PSD_BODY void psd_one_bit_look_at(uint64_t i, const struct psd_gpu_one_bit_look *of)
{
	const uint32_t lane = (uint32_t)i % PSD_BLOCK_LANES;
	const struct psd_one_block one = psd_block_of(&of->of, (uint32_t)i / PSD_BLOCK_LANES);
	float low = 0.0f, high = 0.0f;
	uint32_t n_low = 0;

	for (uint32_t unit = 0; unit < of->of.elements; unit += PSD_BLOCK_UNIT) {
		uint32_t word = 0, bit = 0;

		for (uint32_t e = unit + lane; e < psd_lesser(unit + PSD_BLOCK_UNIT, one.n); e += PSD_BLOCK_LANES) {
			const float value = psd_collect(&of->of, &one, e);
			const uint32_t is_low = value < 0.0f;

			low += is_low ? value : 0.0f;
			high += is_low ? 0.0f : value;
			n_low += is_low;
			word |= is_low << bit++;
		}
		psd_words_of(&one)[unit / PSD_BLOCK_LANES + lane] = word;
	}
	of->sums[i] = low;
	of->sums[PSD_GPU_BLOCKS * PSD_BLOCK_LANES + i] = high;
	of->n_low[i] = (uint16_t)n_low;
}

PSD_BODY float psd_mean_of(const float *sums, uint32_t n)
{
	float sum = 0.0f;

	for (uint32_t lane = 0; lane < PSD_BLOCK_LANES; lane++)
		sum += sums[lane];
	return n ? sum / (float)n : 0.0f;
}

PSD_BODY void psd_one_bit_reduce_at(uint64_t i, const struct psd_gpu_one_bit_reduce *of)
{
	const struct psd_one_block one = psd_block_of(&of->of, (uint32_t)i);
	float *means = (float *)(void *)one.packed;
	uint32_t n_low = 0;

	for (uint32_t lane = 0; lane < PSD_BLOCK_LANES; lane++)
		n_low += of->n_low[i * PSD_BLOCK_LANES + lane];
	means[0] = psd_mean_of(of->sums + i * PSD_BLOCK_LANES, n_low);
	means[1] = psd_mean_of(of->sums + (PSD_GPU_BLOCKS + i) * PSD_BLOCK_LANES, one.n - n_low);
}

/* One-bit: decompresses the sign bits of one lane in one unit. Adds the values to the residual, or writes them to the
 * gradient. */
PSD_BODY void psd_one_bit_add_at(uint64_t i, const struct psd_gpu_one_bit_add *of)
{
	const uint32_t n_words = of->of.elements / PSD_BLOCK_LANES, position = (uint32_t)i % n_words;
	const uint32_t unit = position / PSD_BLOCK_LANES * PSD_BLOCK_UNIT;
	const struct psd_one_block one = psd_block_of(&of->of, (uint32_t)i / n_words);
	const float *means = (const float *)(const void *)one.packed;
	const float low = of->ratio * means[0], high = of->ratio * means[1];
	float *to = of->is_to_residual ? one.residual : one.gradient;
	uint32_t word = psd_words_of(&one)[position];

	for (uint32_t e = unit + position % PSD_BLOCK_LANES; e < psd_lesser(unit + PSD_BLOCK_UNIT, one.n);
	     e += PSD_BLOCK_LANES) {
		to[e] = (of->is_to_residual ? to[e] : 0.0f) + (word & 1 ? low : high);
		word >>= 1;
	}
}

/* ---- top-k ---- */

/* Returns the key of a value: an integer that orders values by magnitude. It is the 15 highest bits after the sign. */
PSD_BODY uint32_t psd_key_of(float value)
{
	return psd_bits(value) >> 16 & 0x7fff;
}

/* Returns the address of the counts for one digit of a compressed block: PSD_BLOCK_LANES counts, one for each lane. */
PSD_BODY uint16_t *psd_counts_of(const struct psd_gpu_keys *keys, uint32_t block, uint32_t digit)
{
	return keys->counts + ((uint64_t)block * PSD_GPU_DIGITS + digit) * PSD_BLOCK_LANES;
}

/* Top-k: counts the keys of one lane, for one digit of the keys. Kernel indices: lanes of all compressed blocks. While
 * digits are counted, adjacent lanes read adjacent values. In the last count (is_last) a lane has a contiguous range of
 * values, because selected values are written in their order. A residual is read seven times: once for each of five
 * digits, in the last count, and when values are written. */
PSD_BODY void psd_top_k_count_at(uint64_t i, const struct psd_gpu_keys *keys)
{
	const uint32_t block = (uint32_t)i / PSD_BLOCK_LANES, lane = (uint32_t)i % PSD_BLOCK_LANES;
	const struct psd_one_block one = psd_block_of(&keys->of, block);
	const uint32_t share = keys->of.elements / PSD_BLOCK_LANES, step = keys->is_last ? 1 : PSD_BLOCK_LANES;
	const uint32_t begin = keys->is_last ? lane * share : lane;
	const uint32_t end = keys->is_last ? psd_lesser(begin + share, one.n) : one.n;
	const uint32_t lowest = (keys->is_first ? 0 : keys->lowest[block]) + (keys->is_last ? 0 : 1u << keys->shift);
	uint32_t counts[PSD_GPU_DIGITS] = {0};

	for (uint32_t e = begin; e < end; e += step) {
		const uint32_t key = psd_key_of(keys->is_first ? psd_collect(&keys->of, &one, e) : one.residual[e]);

		for (uint32_t digit = 0; digit < PSD_GPU_DIGITS; digit++)
			counts[digit] += key >= lowest + (digit << keys->shift);
	}
	for (uint32_t digit = 0; digit < PSD_GPU_DIGITS; digit++)
		psd_counts_of(keys, block, digit)[lane] = (uint16_t)counts[digit];
}

/* Chooses one digit of the lowest selected key of a compressed block, which is the k-th largest key. The digit is the
 * largest d for which at least k keys have a digit of d or more. If a block at the end of a tensor has fewer than k
 * values, all digits become 0, and all its values are sent. Kernel indices: compressed blocks. */
PSD_BODY void psd_top_k_choose_at(uint64_t i, const struct psd_gpu_keys *keys)
{
	uint32_t chosen = 0;

	for (uint32_t digit = 0; digit < PSD_GPU_DIGITS; digit++) {
		const uint16_t *counts = psd_counts_of(keys, (uint32_t)i, digit);
		uint32_t n = 0;

		for (uint32_t lane = 0; lane < PSD_BLOCK_LANES; lane++)
			n += counts[lane];
		chosen += n >= keys->of.kept;
	}
	keys->lowest[i] = (keys->is_first ? 0 : keys->lowest[i]) + (chosen << keys->shift);
}

/* Progress of a lane that writes values to a compressed block. */
struct psd_taken {
	/* Number of values of the block that are already written: by earlier lanes, and by this lane. */
	uint32_t n_kept;
	/* Number of values that this lane may still write of those whose key equals the lowest selected key. */
	uint32_t n_equal;
};

/* Returns the progress with which a lane begins, when all earlier lanes have written their values. A block sends `kept`
 * values: all whose keys are above the lowest selected key, and the first of those whose keys equal it. */
PSD_BODY struct psd_taken psd_taken_before(const struct psd_gpu_keys *keys, uint32_t block, uint32_t lane,
					   uint32_t kept)
{
	const uint16_t *from = psd_counts_of(keys, block, 0), *above = psd_counts_of(keys, block, 1);
	uint32_t n_above = 0, n_above_before = 0, n_equal_before = 0;
	struct psd_taken taken;

	for (uint32_t l = 0; l < PSD_BLOCK_LANES; l++) {
		n_above += above[l];
		n_above_before += l < lane ? above[l] : 0u;
		n_equal_before += l < lane ? (uint32_t)from[l] - above[l] : 0u;
	}
	n_equal_before = psd_lesser(n_equal_before, kept - n_above);
	taken.n_kept = n_above_before + n_equal_before;
	taken.n_equal = kept - n_above - n_equal_before;
	return taken;
}

/* Top-k: writes the selected values of one lane to the compressed block, and sets their residuals to 0. Kernel indices:
 * lanes of all compressed blocks. */
PSD_BODY void psd_top_k_take_at(uint64_t i, const struct psd_gpu_keys *keys)
{
	const uint32_t block = (uint32_t)i / PSD_BLOCK_LANES, lane = (uint32_t)i % PSD_BLOCK_LANES;
	const struct psd_one_block one = psd_block_of(&keys->of, block);
	const uint32_t share = keys->of.elements / PSD_BLOCK_LANES, lowest = keys->lowest[block];
	const uint32_t kept = psd_lesser(keys->of.kept, one.n);
	float *values = (float *)(void *)one.packed;
	uint16_t *positions = (uint16_t *)(void *)(values + keys->of.kept);
	struct psd_taken taken = psd_taken_before(keys, block, lane, kept);

	for (uint32_t e = lane * share; e < psd_lesser((lane + 1) * share, one.n); e++) {
		const float value = one.residual[e];
		const uint32_t key = psd_key_of(value);

		if (key < lowest || (key == lowest && taken.n_equal == 0))
			continue;
		taken.n_equal -= key == lowest;
		values[taken.n_kept] = value;
		positions[taken.n_kept++] = (uint16_t)e;
		one.residual[e] = 0.0f;
	}
	for (uint32_t k = kept + lane; k < keys->of.kept; k += PSD_BLOCK_LANES) {
		values[k] = 0.0f;
		/* this position marks an unused entry; a block at the end of a tensor may have fewer values than `kept`
		 * */
		positions[k] = UINT16_MAX;
	}
	if (lane == 0 && keys->of.kept % 2)
		positions[keys->of.kept] = 0; /* padding, so that the bytes of a block are a multiple of 4 */
}

/* Adds one value of a compressed block to the gradient, which is 0 before. Kernel indices: kept values of all
 * compressed blocks. Adding to 0 turns -0 into 0, as on the CPU. Bytes that pack() did not write may contain positions
 * out of range, which are ignored, or the same position twice. */
PSD_BODY void psd_top_k_put_at(uint64_t i, const struct psd_gpu_blocks *of)
{
	const uint32_t k = (uint32_t)i % of->kept;
	const struct psd_one_block one = psd_block_of(of, (uint32_t)i / of->kept);
	const float *values = (const float *)(const void *)one.packed;
	const uint16_t *positions = (const uint16_t *)(const void *)(values + of->kept);

	if (positions[k] < one.n)
		one.gradient[positions[k]] = 0.0f + values[k];
}

/* ---- int8 ---- */

PSD_BODY int8_t *psd_wholes_of(const struct psd_one_block *one)
{
	return (int8_t *)(void *)(one->packed + sizeof(float));
}

PSD_BODY void psd_int8_look_at(uint64_t i, const struct psd_gpu_int8 *of)
{
	const struct psd_one_block one = psd_block_of(&of->of, (uint32_t)i / PSD_BLOCK_LANES);
	uint32_t largest = 0;

	for (uint32_t e = (uint32_t)i % PSD_BLOCK_LANES; e < one.n; e += PSD_BLOCK_LANES) {
		const uint32_t magnitude = psd_bits(psd_collect(&of->of, &one, e)) & 0x7fffffff;

		largest = magnitude > largest ? magnitude : largest;
	}
	of->largest[i] = largest;
}

/* Int8: computes the step of a compressed block; 0 where it would be subnormal. Kernel indices: compressed blocks. */
PSD_BODY void psd_int8_reduce_at(uint64_t i, const struct psd_gpu_int8 *of)
{
	const struct psd_one_block one = psd_block_of(&of->of, (uint32_t)i);
	uint32_t largest = 0;

	for (uint32_t lane = 0; lane < PSD_BLOCK_LANES; lane++)
		if (of->largest[i * PSD_BLOCK_LANES + lane] > largest)
			largest = of->largest[i * PSD_BLOCK_LANES + lane];
	const float step = psd_of_bits(largest) / 127.0f;

	*(float *)(void *)one.packed = step < 1.17549435e-38f ? 0.0f : step;
}

/* Int8: writes the rounded values of one lane, and leaves the rounding errors in the residual. Kernel indices: lanes of
 * all compressed blocks. */
PSD_BODY void psd_int8_take_at(uint64_t i, const struct psd_gpu_blocks *of)
{
	const struct psd_one_block one = psd_block_of(of, (uint32_t)i / PSD_BLOCK_LANES);
	const float step = *(const float *)(const void *)one.packed;
	const bool is_finite = step > 0.0f && step <= 3.40282347e38f;

	for (uint32_t e = (uint32_t)i % PSD_BLOCK_LANES; e < of->elements; e += PSD_BLOCK_LANES) {
		float whole = 0.0f;

		if (e < one.n && is_finite)
			whole = one.residual[e] / step + 12582912.0f - 12582912.0f;
		psd_wholes_of(&one)[e] = (int8_t)whole;
		if (e < one.n && !(step == 0.0f))
			one.residual[e] -= whole * step;
	}
}

/* Int8: writes the decompressed values of one lane to the gradient. Kernel indices: lanes of all compressed blocks. */
PSD_BODY void psd_int8_put_at(uint64_t i, const struct psd_gpu_blocks *of)
{
	const struct psd_one_block one = psd_block_of(of, (uint32_t)i / PSD_BLOCK_LANES);
	const float step = *(const float *)(const void *)one.packed;

	for (uint32_t e = (uint32_t)i % PSD_BLOCK_LANES; e < one.n; e += PSD_BLOCK_LANES)
		one.gradient[e] = 0.0f + (float)psd_wholes_of(&one)[e] * step;
}

#endif
