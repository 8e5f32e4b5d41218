/* Arguments of the kernels that cuBLAS and cuDNN lack: rows of a kernel's name and its struct, psd_cuda_ARGUMENTS. A
 * kernel executes the body of its name (bodies_*.h) once for each index from 0; psd_cuda_run_NAME() launches n indices
 * on the compute stream. An index writes nothing that another index reads or writes, and the order of sums depends on
 * shapes alone, so equal input gives equal bits. */
#ifndef PSD_REAL_CUDA_KERNELS_H
#define PSD_REAL_CUDA_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

#define PSD_CUDA_SINGLE_KERNELS(ROW)                                                                                   \
	ROW(move, move)                                                                                                \
	ROW(inverse, inverse)                                                                                          \
	ROW(sums, sums)                                                                                                \
	ROW(sums_end, sums_end)                                                                                        \
	ROW(prelu, prelu)                                                                                              \
	ROW(prelu_back, prelu_back)                                                                                    \
	ROW(multiply, multiply)                                                                                        \
	ROW(dropout, dropout)                                                                                          \
	ROW(counters, counters)                                                                                        \
	ROW(lrn, lrn)                                                                                                  \
	ROW(lrn_back, lrn_back)                                                                                        \
	ROW(resize, resize)                                                                                            \
	ROW(resize_back, resize_back)                                                                                  \
	ROW(softmax, softmax)                                                                                          \
	ROW(softmax_back, softmax_back)                                                                                \
	ROW(loss_largest, loss)                                                                                        \
	ROW(loss_exponents, loss)                                                                                      \
	ROW(loss_end, loss)                                                                                            \
	ROW(loss_back, loss_back)                                                                                      \
	ROW(embedding, embedding)                                                                                      \
	ROW(token_chains, token_chains)                                                                                \
	ROW(embedding_back, embedding_back)                                                                            \
	ROW(position, position)                                                                                        \
	ROW(position_back, position_back)                                                                              \
	ROW(prefix_back, prefix_back)                                                                                  \
	ROW(layer_norm_sums, layer_norm)                                                                               \
	ROW(layer_norm_squares, layer_norm)                                                                            \
	ROW(layer_norm_end, layer_norm_end)                                                                            \
	ROW(layer_norm_dots, layer_norm_dots)                                                                          \
	ROW(layer_norm_back, layer_norm_back)                                                                          \
	ROW(rotary_angles, rotary_angles)                                                                              \
	ROW(rotary, rotary)                                                                                            \
	ROW(attention_sums, attention)                                                                                 \
	ROW(attention_end, attention)                                                                                  \
	ROW(attention_dots, attention_dots)                                                                            \
	ROW(attention_back, attention_back)                                                                            \
	ROW(norms, norms)                                                                                              \
	ROW(norms_reduce, norms_reduce)                                                                                \
	ROW(trust, trust)                                                                                              \
	ROW(clip, clip)                                                                                                \
	ROW(shrunk, shrunk)                                                                                            \
	ROW(look, look)                                                                                                \
	ROW(look_reduce, look_reduce)                                                                                  \
	ROW(spoil, spoil)                                                                                              \
	ROW(update, update)                                                                                            \
	ROW(adaptive, adaptive)                                                                                        \
	ROW(difference, difference)                                                                                    \
	ROW(gather, gather)                                                                                            \
	ROW(apply_chunks, apply_chunks)                                                                                \
	ROW(chunk_norms, chunk_norms)                                                                                  \
	ROW(one_bit_look, one_bit_look)                                                                                \
	ROW(one_bit_reduce, one_bit_reduce)                                                                            \
	ROW(one_bit_add, one_bit_add)                                                                                  \
	ROW(top_k_count, keys)                                                                                         \
	ROW(top_k_choose, keys)                                                                                        \
	ROW(top_k_take, keys)                                                                                          \
	ROW(top_k_put, blocks)                                                                                         \
	ROW(low_rank_move, low_rank_move)                                                                              \
	ROW(low_rank_look, matrices)                                                                                   \
	ROW(low_rank_start, matrices)                                                                                  \
	ROW(low_rank_products, matrices)                                                                               \
	ROW(low_rank_reduce, matrices)                                                                                 \
	ROW(low_rank_factor, low_rank_factor)                                                                          \
	ROW(low_rank_inverse, matrices)                                                                                \
	ROW(low_rank_basis, matrices)

/* Kernels that handle four adjacent elements in an index, if one access reaches all four. */
#define PSD_CUDA_FOUR_KERNELS(ROW)                                                                                     \
	ROW(convert, convert)                                                                                          \
	ROW(add, add)                                                                                                  \
	ROW(affine, affine)                                                                                            \
	ROW(function, function)                                                                                        \
	ROW(function_back, function_back)                                                                              \
	ROW(pool, pool)                                                                                                \
	ROW(pool_back, pool_back)

#define PSD_CUDA_KERNELS(ROW)                                                                                          \
	PSD_CUDA_SINGLE_KERNELS(ROW)                                                                                   \
	PSD_CUDA_FOUR_KERNELS(ROW)

enum psd_cuda_type { PSD_CUDA_FLOAT, PSD_CUDA_HALF, PSD_CUDA_BFLOAT }; /* IEEE 32 and 16 bits, upper 16 of 32 */

/* An array in the GPU's memory. */
struct psd_cuda_values {
	void *data;
	enum psd_cuda_type type;
};

/* A batch of maps. Neighbours along the width are adjacent, or with channels last the channels of a position. */
struct psd_cuda_maps {
	uint32_t channels, height, width;
	bool is_channels_last;
};

/* Elements at offset + sum of position times stride over four axes; the last axis runs fastest. */
struct psd_cuda_view {
	uint32_t sizes[4], strides[4], offset;
};

/* In all kernels: `adds` adds the result to `to`; `to` may be an input whose elements have the same indices. */

/* Copies element i of one view to element i of the other, times scale. */
struct psd_cuda_move {
	struct psd_cuda_values from, to;
	struct psd_cuda_view from_view, to_view;
	float scale;
	bool adds;
};

struct psd_cuda_convert {
	struct psd_cuda_values from, to;
	float scale;
	bool adds;
};

/* left + right, then optionally ReLU. */
struct psd_cuda_add {
	struct psd_cuda_values left, right, to;
	float slope; /* below 0 */
	bool is_rectified;
};

/* The channel of an element is index / inner % channels. inner: positions in a map, or 1 with channels last. */
struct psd_cuda_channel {
	uint32_t inner, channels;
};

/* (value - mean) inverse gamma + beta, then optionally ReLU. Vectors by channel; NULL is 0, 1, 1, 0. */
struct psd_cuda_affine {
	struct psd_cuda_values from, to;
	struct psd_cuda_channel channel;
	const float *mean, *inverse, *gamma, *beta;
	float slope; /* below 0 */
	bool is_rectified;
	bool adds;
};

/* 1 / sqrt(variance + epsilon) */
struct psd_cuda_inverse {
	const float *variance;
	float *inverse;
	float epsilon;
};

enum psd_cuda_summand {
	PSD_CUDA_SUM_LEFT,
	PSD_CUDA_SUM_PRODUCT,		   /* left right */
	PSD_CUDA_SUM_BELOW_ZERO,	   /* sum of left * right over elements where right is at most 0 */
	PSD_CUDA_SUM_NORMALISED,	   /* left (right - mean) inverse; vectors by channel, NULL is 0 and 1 */
	PSD_CUDA_SUM_NORMALISED_POSITIONS, /* the same, vectors by element k */
};

/* Partial sums of each output over `count` elements. Output o is channel o % channels of group o / channels; element k
 * lies at group * group_stride + channel * channel_stride + k / inner * outer_stride + k % inner * inner_stride. Part p
 * has the elements p, p + n_parts, ...; indices: n_outputs * n_parts. */
struct psd_cuda_sums {
	struct psd_cuda_values left, right;
	enum psd_cuda_summand summand;
	const float *mean, *inverse;
	uint32_t n_outputs, n_parts, channels;
	uint32_t group_stride, channel_stride, outer_stride, inner_stride;
	uint32_t count, inner;
	float *partial; /* (n_parts, n_outputs) */
};

/* to = scale times the sum of the output's parts; indices: n_outputs. */
struct psd_cuda_sums_end {
	const float *partial;
	uint32_t n_outputs, n_parts;
	struct psd_cuda_values to;
	float scale;
	bool adds;
};

enum psd_cuda_function_kind {
	PSD_CUDA_RELU, /* alpha: slope below 0 */
	PSD_CUDA_SIGMOID,
	PSD_CUDA_TANH,
	PSD_CUDA_ELU,	 /* alpha: lower bound */
	PSD_CUDA_CLIP,	 /* beta: upper bound; the lower bound is 0 */
	PSD_CUDA_LINEAR, /* alpha: factor, beta: added */
	PSD_CUDA_EXP,
	/* derivatives of these need the input: */
	PSD_CUDA_ABS,
	PSD_CUDA_LOG,
	PSD_CUDA_SOFTPLUS,
	PSD_CUDA_POWER, /* alpha: exponent */
	PSD_CUDA_GELU,
	PSD_CUDA_GELU_TANH,
	PSD_CUDA_SILU
};

struct psd_cuda_function {
	struct psd_cuda_values from, to;
	enum psd_cuda_function_kind kind;
	float alpha, beta;
};

/* to = diff times the derivative, computed from the output, or from the input where that is necessary. */
struct psd_cuda_function_back {
	struct psd_cuda_values known, diff, to;
	enum psd_cuda_function_kind kind;
	float alpha, beta;
	bool adds;
};

struct psd_cuda_prelu {
	struct psd_cuda_values from, to;
	struct psd_cuda_channel channel;
	const float *slopes;
};

struct psd_cuda_prelu_back {
	struct psd_cuda_values from, diff, to;
	struct psd_cuda_channel channel;
	const float *slopes;
	bool adds;
};

/* right: the same shape as left, or if flat one value for each sample and channel. */
struct psd_cuda_multiply {
	struct psd_cuda_values left, right, to;
	struct psd_cuda_maps maps;
	bool is_flat;
	bool adds;
};

/* Four adjacent elements in plain order for an index share a random draw; a sample has (elements + 3) / 4 indices. For
 * values and gradients. */
struct psd_cuda_dropout {
	struct psd_cuda_values from, to;
	struct psd_cuda_maps maps;
	uint64_t seed;
	const uint32_t *counters; /* number of the first sample, iteration */
	uint32_t layer;
	uint32_t threshold; /* elements with a random word below it are dropped */
	float scale;	    /* factor of kept elements */
	bool adds;
};

/* Writes the counters that masks depend on: kernels' arguments cannot change from iteration to iteration. One index. */
struct psd_cuda_counters {
	uint32_t *to;
	uint32_t first_sample, iteration;
};

/* Local response normalisation over `size` channels, or size x size positions: ratio = k + alpha * sum of squares. */
struct psd_cuda_lrn {
	struct psd_cuda_values from, to;
	struct psd_cuda_maps maps;
	float *ratios; /* one for each element, for backward */
	uint32_t size;
	bool is_within_channel;
	float alpha, beta, k; /* alpha: already divided by the number of squares */
};

struct psd_cuda_lrn_back {
	struct psd_cuda_values from, result, diff, to;
	struct psd_cuda_maps maps;
	const float *ratios;
	uint32_t size;
	bool is_within_channel;
	float alpha, beta;
	bool adds;
};

/* Caffe's windows: a maximum ignores padding. An average counts padding, but not the part of a window beyond it. */
struct psd_cuda_window {
	struct psd_cuda_maps in, out;
	uint32_t kernel_height, kernel_width, stride_height, stride_width, pad_height, pad_width;
	bool is_max;
};

struct psd_cuda_pool {
	struct psd_cuda_values from, to;
	struct psd_cuda_window window;
	uint32_t *positions; /* row * width + column of each output's maximum; the first one among equals */
};

/* Indices: elements of the input. */
struct psd_cuda_pool_back {
	struct psd_cuda_values diff, to;
	struct psd_cuda_window window;
	const uint32_t *positions;
	bool adds;
};

/* Bilinear interpolation between four positions; corners map to corners. */
struct psd_cuda_resize {
	struct psd_cuda_values from, to;
	struct psd_cuda_maps in, out;
};

/* Indices: elements of the input. */
struct psd_cuda_resize_back {
	struct psd_cuda_values diff, to;
	struct psd_cuda_maps in, out;
	bool adds;
};

/* Softmax over the channels of a position. Indices: positions of all samples. */
struct psd_cuda_softmax {
	struct psd_cuda_values from, to;
	struct psd_cuda_maps maps;
};

/* to = result (diff - sum over the channels of result diff) */
struct psd_cuda_softmax_back {
	struct psd_cuda_values result, diff, to;
	struct psd_cuda_maps maps;
	bool adds;
};

/* ---- softmax's loss: a label for each position of each sample, whose channels are its scores of the classes ---- */

/* Softmax with loss, in steps. A position has `parts` indices; each handles every parts-th channel. */
enum { PSD_CUDA_PARTS = 32 };

struct psd_cuda_loss {
	struct psd_cuda_values scores;
	struct psd_cuda_channel channel;
	const int32_t *labels;	  /* (positions) */
	float *largest;		  /* (positions, parts) */
	uint32_t *likely_classes; /* class of each largest score, the lowest among equals */
	float *exponents;	  /* exp(score - the position's largest), like scores */
	double *partial_sums;	  /* (positions, parts): sums of exponents */
	double *sums;		  /* (positions) */
	double *losses;		  /* (positions) */
	uint32_t *is_correct;	  /* (positions) */
};

/* to = weight (probability - 1 for the label); indices: elements of scores. */
struct psd_cuda_loss_back {
	struct psd_cuda_loss loss;
	struct psd_cuda_values to;
	float weight;
	bool adds;
};

/* ---- sequences ---- */

/* Copies the table row of each position's token. Tokens are whole numbers within the table. */
struct psd_cuda_embedding {
	struct psd_cuda_values to;
	struct psd_cuda_channel channel;
	const float *tokens, *table; /* (positions), (tokens, channels) */
};

/* Chains positions with equal tokens; indices: positions. */
struct psd_cuda_token_chains {
	const float *tokens;
	uint32_t n_positions;
	uint32_t *next;	    /* next position of the chain, or n_positions */
	uint32_t *is_first; /* whether the chain begins here */
};

/* Row of dtable = scale times the sum of diff along its chain; other rows stay. Indices: elements of diff; those at a
 * chain's first position follow the chain. */
struct psd_cuda_embedding_back {
	struct psd_cuda_values diff;
	struct psd_cuda_channel channel;
	const float *tokens;
	const uint32_t *next, *is_first;
	uint32_t n_positions;
	float *dtable;
	float scale;
};

/* Adds the weight, which is the same for all samples and in plain order. */
struct psd_cuda_position {
	struct psd_cuda_values from, to;
	struct psd_cuda_channel channel;
	uint32_t positions; /* in a sample */
	const float *weight;
};

/* dweight = scale times the sum of diff over the samples; indices: elements of one sample. */
struct psd_cuda_position_back {
	struct psd_cuda_values diff;
	struct psd_cuda_channel channel;
	uint32_t positions, batch;
	float *dweight;
	float scale;
};

/* dweight (channels, own) = scale times the sum over samples of diff at their first `own` positions; indices: elements
 * of dweight. */
struct psd_cuda_prefix_back {
	struct psd_cuda_values diff;
	struct psd_cuda_channel channel;
	uint32_t positions, own, batch;
	float *dweight;
	float scale;
};

/* Normalisation over the channels of a position, in steps. A position has PSD_CUDA_PARTS indices; each handles every
 * PSD_CUDA_PARTS-th channel. gamma and beta by channel; NULL is 1 and 0. Not centred is RMSNorm: the mean is 0, and the
 * variance the mean square. */
struct psd_cuda_layer_norm {
	struct psd_cuda_values from;
	struct psd_cuda_channel channel;
	bool is_centred;
	const float *gamma, *beta;
	float epsilon;
	float *mean, *inverse; /* (positions): 1 / sqrt(variance + epsilon) */
	float *partial[2];     /* (positions, parts) */
};

struct psd_cuda_layer_norm_end { /* inverse and result */
	struct psd_cuda_layer_norm norm;
	struct psd_cuda_values to;
};

/* Partial sums of diff gamma, and of diff gamma times the normalised value. */
struct psd_cuda_layer_norm_dots {
	struct psd_cuda_layer_norm norm;
	struct psd_cuda_values diff;
};

struct psd_cuda_layer_norm_back {
	struct psd_cuda_layer_norm norm;
	struct psd_cuda_values diff, to;
	bool adds;
};

/* Rotary angles: angle i % half of position i / half is position base^(-i % half / half). Indices: positions times
 * half. */
struct psd_cuda_rotary_angles {
	float *angles; /* (positions, half): cosine and sine */
	uint32_t half;
	double base_log; /* natural logarithm of the base */
};

/* Rotates the first `heads` heads of each position by its angles, channel k with channel k + half of the head, or back.
 * from and to have further channels behind those heads. Indices: positions of all samples times heads times half. */
struct psd_cuda_rotary {
	struct psd_cuda_values from, to;
	struct psd_cuda_channel from_channel, to_channel;
	const float *angles;
	uint32_t positions; /* in a sample */
	uint32_t heads, half;
	bool is_back;
	bool adds;
};

/* Softmax of attention scores, in place. A row for each position, head and sample has a column for each position. A row
 * has PSD_CUDA_PARTS indices; each handles every PSD_CUDA_PARTS-th column. */
struct psd_cuda_attention {
	struct psd_cuda_values rows;
	uint32_t positions;
	bool is_causal;	   /* zeros the columns of positions later than the row's */
	float *partial[2]; /* (rows, parts) */
};

struct psd_cuda_attention_dots { /* partial sums of probability times diff */
	struct psd_cuda_attention attention;
	struct psd_cuda_values diff;
};

/* Gradient of the scores, overwriting diff: probability (diff - the row's sum). */
struct psd_cuda_attention_back {
	struct psd_cuda_attention attention;
	struct psd_cuda_values diff;
};

/* ---- encoded values of 16 bits ---- */

/* Whether a part has an infinity or NaN: part p has the elements p, p + n_parts, ...; indices: n_parts. */
struct psd_cuda_look {
	const uint16_t *values;
	uint64_t elements;
	uint16_t infinity; /* mask of the exponent's bits */
	uint32_t n_parts;
	uint32_t *found; /* (n_parts): 0 or 1 */
};

/* Reduces n_parts findings to n_groups; indices: n_groups. */
struct psd_cuda_look_reduce {
	const uint32_t *found;
	uint32_t n_parts, n_groups;
	uint32_t *reduced;
};

/* Overwrites all values by `nan` if `found` says so, or if it is NULL. */
struct psd_cuda_spoil {
	uint16_t *values;
	uint16_t nan;
	const uint32_t *found; /* one element, or NULL */
};

/* ---- updates ---- */

/* Partial sums of squares of two arrays: part p has the elements p, p + n_parts, ...; indices: 2 n_parts. */
struct psd_cuda_norms {
	const float *arrays[2];
	uint64_t elements;
	uint32_t n_parts;
	double *partial; /* (2, n_parts) */
};

/* Reduces each array's parts to n_groups sums; indices: arrays times n_groups. */
struct psd_cuda_norms_reduce {
	const double *partial; /* (arrays, n_parts) */
	uint32_t n_parts, n_groups;
	double *reduced; /* (arrays, n_groups) */
};

/* The rate of psd_update_by_norms(); index 0 alone. */
struct psd_cuda_trust {
	const double *reduced; /* groups of the weight, then of the gradient */
	uint32_t n_groups;
	float rate, weight_decay;
	double trust_ratio;
	float *own_rate;
};

/* The ratio of psd_clip_find(), adding the squares group by group; index 0 alone. */
struct psd_cuda_clip {
	const double *reduced; /* (n_groups) */
	uint32_t n_groups;
	double most_norm;
	float *ratio;
};

/* psd_clip_shrink(), bit for bit. */
struct psd_cuda_shrunk {
	float *values;
	const float *ratio;
};

/* psd_update_apply(), bit for bit. */
struct psd_cuda_step {
	const float *own_rate; /* replaces rate unless NULL */
	float rate, momentum, weight_decay;
	bool is_nesterov;
};

struct psd_cuda_update {
	struct psd_cuda_step step;
	float *weight, *history;
	const float *gradient;
};

/* psd_update_apply() for AdamW, bit for bit. */
struct psd_cuda_adaptive {
	float rate, weight_decay;
	float beta1, beta2, epsilon, mean_ratio, root_ratio;
	float *weight, *history, *squares;
	const float *gradient;
};

/* difference = from - ratio * what. */
struct psd_cuda_difference {
	float *difference;
	const float *from, *what;
	float ratio;
};

/* ---- chunks; of a chunk's PSD_CUDA_CHUNK_PARTS indices each has every so manieth element ---- */

enum { PSD_CUDA_CHUNK_PARTS = 1024, PSD_CUDA_CHUNK_GROUPS = 32, PSD_CUDA_CHUNKS = 64, PSD_CUDA_SPANS = 40 };

/* Span: the intersection of a chunk and a tensor. */
struct psd_cuda_span {
	float *weight;	       /* from the span on */
	const float *gradient; /* from the span on */
	uint64_t first;	       /* index in residual and history */
	uint64_t first_chosen; /* index in the chosen values */
	uint64_t elements;
	struct psd_cuda_step step;
	bool is_chosen;
};

/* Adjacent chunks of a launch; chunk c's spans end before ends[c]. */
struct psd_cuda_spans {
	struct psd_cuda_span spans[PSD_CUDA_SPANS];
	uint32_t ends[PSD_CUDA_CHUNKS];
	uint32_t first_chunk, n_chunks;
	bool is_continued; /* the first chunk began in the previous launch, which had its earlier spans */
	double *partial;   /* (PSD_CUDA_CHUNKS, PSD_CUDA_CHUNK_PARTS); a chunk's row is its number % PSD_CUDA_CHUNKS */
};

struct psd_cuda_gather {
	struct psd_cuda_spans of;
	float *residual, *chosen;
	float kept_ratio;
};

struct psd_cuda_apply_chunks {
	struct psd_cuda_spans of;
	float *history;
	const float *chosen;
	bool is_skipped;
};

/* norms[first_chunk + i] = sum / divisor; indices: chunks. Skipped chunks keep their norm. */
struct psd_cuda_chunk_norms {
	const double *reduced; /* (PSD_CUDA_CHUNKS, PSD_CUDA_CHUNK_GROUPS) */
	float *norms;
	uint32_t first_chunk;
	double divisor;
	bool is_left_out[PSD_CUDA_CHUNKS];
};

/* ---- blocks that travel compressed; they, their lanes and units are those of engine/encodings/compression.h ---- */

enum {
	PSD_CUDA_BLOCKS = 4096,
	PSD_CUDA_BLOCK_SPANS = 40
}; /* a large GPU has as many threads as these blocks have lanes */

/* Blocks of one tensor in a launch, all whole except perhaps the tensor's last. */
struct psd_cuda_block_span {
	float *gradient; /* from the span on */
	const float *weight;
	uint64_t first; /* index in the launch's residual */
	uint64_t elements;
	uint32_t end; /* behind its last block, in the launch */
	float weight_decay;
};

/* Blocks of a launch, at most PSD_CUDA_BLOCKS. Indices are blocks, or the lanes of all blocks, or the lanes of all
 * blocks' units. */
struct psd_cuda_blocks {
	struct psd_cuda_block_span spans[PSD_CUDA_BLOCK_SPANS];
	uint32_t elements, kept, packed_bytes; /* in a whole block */
	float *residual;		       /* from the launch's first block on, like the next two */
	float *velocity;		       /* NULL: no momentum before compression */
	char *packed;
	float momentum;
	bool is_nesterov;
};

/* Adds gradient or velocity to the residual, and makes its sign bits and sums; indices: lanes. */
struct psd_cuda_one_bit_look {
	struct psd_cuda_blocks of;
	float *sums;	 /* (2, PSD_CUDA_BLOCKS, lanes): of values below 0, of the others */
	uint16_t *n_low; /* (PSD_CUDA_BLOCKS, lanes) */
};

/* A block's means; indices: blocks. */
struct psd_cuda_one_bit_reduce {
	struct psd_cuda_blocks of;
	const float *sums;
	const uint16_t *n_low;
};

/* residual += ratio times the unpacked value, or gradient = that value; indices: lanes of units. */
struct psd_cuda_one_bit_add {
	struct psd_cuda_blocks of;
	float ratio;
	bool is_to_residual;
};

/* Top-k selection by keys of magnitudes, radix select. Each block's lowest selected key is found digit by digit from
 * the top: lanes count, then the block chooses the digit. At the end lanes count once more, to know where each one
 * writes. */
enum { PSD_CUDA_KEY_BITS = 15, PSD_CUDA_DIGIT_BITS = 3, PSD_CUDA_DIGITS = (1 << PSD_CUDA_DIGIT_BITS) - 1 };

struct psd_cuda_keys {
	struct psd_cuda_blocks of;
	uint32_t shift; /* position of the current digit */
	/* launch for the highest digit of the selection; first adds gradient or velocity to the residual */
	bool is_first;
	bool is_last;	  /* all digits are known */
	uint32_t *lowest; /* (PSD_CUDA_BLOCKS): known digits, then zeros */
	/* (PSD_CUDA_BLOCKS, PSD_CUDA_DIGITS, lanes): keys with digit 1 or above, 2 or above, ... At the end: keys from
	 * the lowest selected on, keys above it, unused. */
	uint16_t *counts;
};

/* ---- gradients that travel as products of narrow matrices, see real/device/low_rank.h ---- */

/* A unit of values has PSD_CUDA_PARTS indices. Matrices of a launch have at most PSD_CUDA_SQUARES elements in all rank
 * x rank matrices, and PSD_CUDA_PRODUCT_PARTS partial sums. Each matrix has at most PSD_CUDA_PRODUCT_LANES lanes of
 * rows. */
enum {
	PSD_CUDA_MOVE_SPANS = 96,
	PSD_CUDA_MOVE_UNIT = 1024,
	PSD_CUDA_MATRICES = 40,
	PSD_CUDA_SQUARES = 1 << 14,
	PSD_CUDA_PRODUCT_PARTS = 1 << 16,
	PSD_CUDA_PRODUCT_LANES = 256,
};

struct psd_cuda_move_span {
	float *to;
	const float *from;
	uint64_t elements;
	uint32_t end; /* behind its last unit, in the launch */
	bool adds;
};

/* to = from, or to += from, for several tensors; indices: units times PSD_CUDA_PARTS. */
struct psd_cuda_low_rank_move {
	struct psd_cuda_move_span spans[PSD_CUDA_MOVE_SPANS];
};

struct psd_cuda_matrix {
	float *left, *right; /* (rows, rank), (rank, columns) */
	uint32_t rows, columns;
	uint32_t number;    /* index of its tensor in the graph */
	uint32_t n_lanes;   /* each sums products of every n_lanes-th row */
	uint64_t parts_end; /* behind its last partial sum, in the launch */
	uint64_t rows_end;  /* behind its last row, in the launch */
};

/* Matrices of a launch. A pair is two columns j <= k of a left matrix. */
struct psd_cuda_matrices {
	struct psd_cuda_matrix matrices[PSD_CUDA_MATRICES];
	uint32_t n, rank, n_pairs;
	uint32_t *found;  /* (n, rank, PSD_CUDA_PARTS) */
	double *parts;	  /* (lanes, pairs) of each matrix */
	double *products; /* (n, rank, rank), like the next two; upper triangle */
	double *factor;	  /* Cholesky factor: factor^T factor = products */
	double *inverse;  /* inverse of the factor */
};

/* One row of the Cholesky factors, from the rows above; indices: matrices times elements from the diagonal on. */
struct psd_cuda_low_rank_factor {
	struct psd_cuda_matrices of;
	uint32_t row;
};

struct psd_device;

#define PSD_DECLARE_CUDA_KERNEL(name, arguments)                                                                       \
	enum psd_status psd_cuda_run_##name(struct psd_device *device, const struct psd_cuda_##arguments *of,          \
					    uint64_t n_indices, struct psd_error *err) PSD_MUST_CHECK;
#ifdef __cplusplus
extern "C" {
#endif
PSD_CUDA_KERNELS(PSD_DECLARE_CUDA_KERNEL)
#ifdef __cplusplus
}
#endif
#undef PSD_DECLARE_CUDA_KERNEL

#endif
