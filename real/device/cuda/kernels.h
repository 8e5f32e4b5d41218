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

/* Kernels that handle four adjacent elements per index, if one access reaches all four. */
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

enum psd_cuda_type { PSD_CUDA_FLOAT, PSD_CUDA_HALF, PSD_CUDA_BFLOAT }; /* IEEE 32 and 16 bits, bfloat16 */

/* Address of an array in the GPU's memory, with the type of its elements. */
struct psd_cuda_values {
	void *data;
	enum psd_cuda_type type;
};

/* Shape of a batch of maps. Adjacent in memory are neighbours along the width or, with channels last, channels. */
struct psd_cuda_maps {
	uint32_t channels, height, width;
	bool is_channels_last;
};

/* View over four axes: an element is at offset + sum of position times stride; the last axis runs fastest. */
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

/* to = left + right, then optionally ReLU. */
struct psd_cuda_add {
	struct psd_cuda_values left, right, to;
	float slope; /* slope of the ReLU below 0 */
	bool is_rectified;
};

/* Channel of an element: index / inner % channels. inner: positions in a map, or 1 with channels last. */
struct psd_cuda_channel {
	uint32_t inner, channels;
};

/* to = (from - mean) inverse gamma + beta, then optionally ReLU. Vectors by channel; NULL is 0, 1, 1, 0. */
struct psd_cuda_affine {
	struct psd_cuda_values from, to;
	struct psd_cuda_channel channel;
	const float *mean, *inverse, *gamma, *beta;
	float slope; /* slope of the ReLU below 0 */
	bool is_rectified;
	bool adds;
};

/* inverse = 1 / sqrt(variance + epsilon), for each channel. */
struct psd_cuda_inverse {
	const float *variance;
	float *inverse;
	float epsilon;
};

enum psd_cuda_summand {
	PSD_CUDA_SUM_LEFT,
	PSD_CUDA_SUM_PRODUCT,		   /* left * right */
	PSD_CUDA_SUM_BELOW_ZERO,	   /* left * right where right is at most 0; otherwise 0 */
	PSD_CUDA_SUM_NORMALISED,	   /* left * (right - mean) * inverse; vectors by channel, NULL is 0 and 1 */
	PSD_CUDA_SUM_NORMALISED_POSITIONS, /* left * (right - mean) * inverse; vectors by element k */
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
	float *partial; /* partial sums; shape (n_parts, n_outputs) */
};

/* to = scale times the sum of each output's parts; indices: n_outputs. */
struct psd_cuda_sums_end {
	const float *partial;
	uint32_t n_outputs, n_parts;
	struct psd_cuda_values to;
	float scale;
	bool adds;
};

enum psd_cuda_function_kind {
	PSD_CUDA_RELU, /* x or, below 0, alpha * x */
	PSD_CUDA_SIGMOID,
	PSD_CUDA_TANH,
	PSD_CUDA_ELU,	 /* x or, below 0, alpha (exp(x) - 1) */
	PSD_CUDA_CLIP,	 /* x between 0 and beta */
	PSD_CUDA_LINEAR, /* alpha * x + beta */
	PSD_CUDA_EXP,
	/* Functions whose derivatives need the input. */
	PSD_CUDA_ABS,
	PSD_CUDA_LOG,
	PSD_CUDA_SOFTPLUS,
	PSD_CUDA_POWER, /* x to the power of alpha */
	PSD_CUDA_GELU,
	PSD_CUDA_GELU_TANH,
	PSD_CUDA_SILU
};

struct psd_cuda_function {
	struct psd_cuda_values from, to;
	enum psd_cuda_function_kind kind;
	float alpha, beta;
};

/* to = diff times the function's derivative, computed from its output or, where necessary, from its input. */
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

/* to = left * right. right has the shape of left or, if flat, one value for each sample and channel. */
struct psd_cuda_multiply {
	struct psd_cuda_values left, right, to;
	struct psd_cuda_maps maps;
	bool is_flat;
	bool adds;
};

/* Dropout of values or gradients. The four adjacent elements of an index, in plain order, share a random draw; a sample
 * has (elements + 3) / 4 indices. */
struct psd_cuda_dropout {
	struct psd_cuda_values from, to;
	struct psd_cuda_maps maps;
	uint64_t seed;
	const uint32_t *counters; /* two values: number of the first sample, iteration */
	uint32_t layer;
	uint32_t threshold; /* bound on the random word of an element: those below it are dropped */
	float scale;	    /* factor on the elements that are kept */
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
	float *ratios; /* ratio of each element, kept for backward */
	uint32_t size;
	bool is_within_channel;
	float alpha, beta, k; /* constants of the layer; alpha is divided by the number of squares */
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

/* Caffe's pooling windows: a maximum ignores padding; an average counts it, but not the window's part beyond it. */
struct psd_cuda_window {
	struct psd_cuda_maps in, out;
	uint32_t kernel_height, kernel_width, stride_height, stride_width, pad_height, pad_width;
	bool is_max;
};

struct psd_cuda_pool {
	struct psd_cuda_values from, to;
	struct psd_cuda_window window;
	uint32_t *positions; /* position (row * width + column) of each output's maximum; the first of equals */
};

/* Gradient of pooling; indices: elements of the input. */
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

/* Gradient of interpolation; indices: elements of the input. */
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

/* Gradient of softmax: to = result (diff - sum over the channels of result diff). */
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
	const int32_t *labels;	  /* class of each position; shape (positions) */
	float *largest;		  /* largest score of each part; shape (positions, parts) */
	uint32_t *likely_classes; /* class of that score, the lowest among equals; shape (positions, parts) */
	float *exponents;	  /* exp(score - the position's largest score); shape of scores */
	double *partial_sums;	  /* sum of exponents of each part; shape (positions, parts) */
	double *sums;		  /* sum of exponents; shape (positions) */
	double *losses;		  /* loss of each position; shape (positions) */
	uint32_t *is_correct;	  /* 1 if the likeliest class is the label, else 0; shape (positions) */
};

/* to = weight (probability - 1 for the label); indices: elements of scores. */
struct psd_cuda_loss_back {
	struct psd_cuda_loss loss;
	struct psd_cuda_values to;
	float weight;
	bool adds;
};

/* ---- sequences ---- */

/* to = row of the table for each position's token. Tokens are whole numbers within the table. */
struct psd_cuda_embedding {
	struct psd_cuda_values to;
	struct psd_cuda_channel channel;
	const float *tokens, *table; /* token of each position, shape (positions); shape (tokens, channels) */
};

/* Links positions with equal tokens to chains; indices: positions. */
struct psd_cuda_token_chains {
	const float *tokens;
	uint32_t n_positions;
	uint32_t *next;	    /* next position of the chain; n_positions: it ends */
	uint32_t *is_first; /* 1 if a chain begins at the position, else 0 */
};

/* Gradient of the table: a row of dtable = scale times the sum of diff along its chain; other rows stay. Indices:
 * elements of diff; those at a chain's first position follow the chain. */
struct psd_cuda_embedding_back {
	struct psd_cuda_values diff;
	struct psd_cuda_channel channel;
	const float *tokens;
	const uint32_t *next, *is_first;
	uint32_t n_positions;
	float *dtable;
	float scale;
};

/* to = from + weight. The weight is the same for all samples and in plain order. */
struct psd_cuda_position {
	struct psd_cuda_values from, to;
	struct psd_cuda_channel channel;
	uint32_t positions; /* number of positions in a sample */
	const float *weight;
};

/* Gradient of that weight: dweight = scale times the sum of diff over samples; indices: elements of one sample. */
struct psd_cuda_position_back {
	struct psd_cuda_values diff;
	struct psd_cuda_channel channel;
	uint32_t positions, batch;
	float *dweight;
	float scale;
};

/* Gradient of a weight (channels, own) for the first `own` positions: dweight = scale times the sum of diff over
 * samples; indices: elements of dweight. */
struct psd_cuda_prefix_back {
	struct psd_cuda_values diff;
	struct psd_cuda_channel channel;
	uint32_t positions, own, batch;
	float *dweight;
	float scale;
};

/* Normalisation over the channels of a position, in steps. A position has PSD_CUDA_PARTS indices; each handles every
 * PSD_CUDA_PARTS-th channel. gamma and beta by channel; NULL is 1 and 0. Not centred is RMSNorm: the mean is 0, and the
 * variance is the mean square. */
struct psd_cuda_layer_norm {
	struct psd_cuda_values from;
	struct psd_cuda_channel channel;
	bool is_centred;
	const float *gamma, *beta;
	float epsilon;
	float *mean, *inverse; /* mean, and 1 / sqrt(variance + epsilon); shape (positions) each */
	float *partial[2];     /* partial sums, two kinds; shape (positions, parts) each */
};

struct psd_cuda_layer_norm_end { /* inverse and result */
	struct psd_cuda_layer_norm norm;
	struct psd_cuda_values to;
};

/* For backward: partial sums of diff gamma, and of diff gamma times the normalised value. */
struct psd_cuda_layer_norm_dots {
	struct psd_cuda_layer_norm norm;
	struct psd_cuda_values diff;
};

struct psd_cuda_layer_norm_back {
	struct psd_cuda_layer_norm norm;
	struct psd_cuda_values diff, to;
	bool adds;
};

/* Rotary angles: angle j < half of a position is position * base^(-j / half). Index i computes angle i % half of
 * position i / half; indices: positions times half. */
struct psd_cuda_rotary_angles {
	float *angles; /* cosine and sine of each angle; shape (positions, half, 2) */
	uint32_t half;
	double base_log; /* natural logarithm of the angles' base */
};

/* Rotates the first `heads` heads of each position by its angles, channel k with channel k + half, or back. `from` and
 * `to` have further channels behind. Indices: positions of all samples times heads times half. */
struct psd_cuda_rotary {
	struct psd_cuda_values from, to;
	struct psd_cuda_channel from_channel, to_channel;
	const float *angles;
	uint32_t positions; /* number of positions in a sample */
	uint32_t heads, half;
	bool is_back;
	bool adds;
};

/* Softmax of attention scores, in place. A row for each position, head and sample has a column for each position. A row
 * has PSD_CUDA_PARTS indices; each handles every PSD_CUDA_PARTS-th column. */
struct psd_cuda_attention {
	struct psd_cuda_values rows;
	uint32_t positions;
	bool is_causal;	   /* makes columns of positions behind the row's 0 */
	float *partial[2]; /* partial results, two kinds; shape (rows, parts) each */
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

/* Looks for infinities and NaNs in each part; part p has the elements p, p + n_parts, ...; indices: n_parts. */
struct psd_cuda_look {
	const uint16_t *values;
	uint64_t elements;
	uint16_t infinity; /* mask of the exponent's bits, all set in an infinity or NaN */
	uint32_t n_parts;
	uint32_t *found; /* 1 if the part has such a value, else 0; shape (n_parts) */
};

/* Combines the findings of n_parts parts to n_groups; indices: n_groups. */
struct psd_cuda_look_reduce {
	const uint32_t *found;
	uint32_t n_parts, n_groups;
	uint32_t *reduced;
};

/* Overwrites all values by `nan` if *found is not 0, or if `found` is NULL. */
struct psd_cuda_spoil {
	uint16_t *values;
	uint16_t nan;
	const uint32_t *found; /* one finding for all values, or NULL */
};

/* ---- updates ---- */

/* Sums of squares of two arrays, in parts; part p has the elements p, p + n_parts, ...; indices: 2 n_parts. */
struct psd_cuda_norms {
	const float *arrays[2];
	uint64_t elements;
	uint32_t n_parts;
	double *partial; /* partial sums; shape (2, n_parts) */
};

/* Adds up the parts of each array to n_groups sums; indices: arrays times n_groups. */
struct psd_cuda_norms_reduce {
	const double *partial; /* partial sums; shape (arrays, n_parts) */
	uint32_t n_parts, n_groups;
	double *reduced; /* sums; shape (arrays, n_groups) */
};

/* Computes the tensor's own rate as psd_update_by_norms(); index 0 alone. */
struct psd_cuda_trust {
	const double *reduced; /* sums of squares: n_groups of the weight, then of the gradient */
	uint32_t n_groups;
	float rate, weight_decay;
	double trust_ratio;
	float *own_rate;
};

/* Computes the ratio as psd_clip_find(), adding the squares group by group; index 0 alone. */
struct psd_cuda_clip {
	const double *reduced; /* sums of squares; shape (n_groups) */
	uint32_t n_groups;
	double most_norm;
	float *ratio;
};

/* Multiplies values by the ratio, with the bits of psd_clip_shrink(). */
struct psd_cuda_shrunk {
	float *values;
	const float *ratio;
};

/* Update rule, with the bits of psd_update_apply(). */
struct psd_cuda_step {
	const float *own_rate; /* rate of the tensor, in place of `rate`; NULL: none */
	float rate, momentum, weight_decay;
	bool is_nesterov;
};

struct psd_cuda_update {
	struct psd_cuda_step step;
	float *weight, *history;
	const float *gradient;
};

/* Update by AdamW, with the bits of psd_update_apply(). */
struct psd_cuda_adaptive {
	float rate, weight_decay;
	float beta1, beta2, epsilon, mean_ratio, root_ratio;
	float *weight, *history, *squares;
	const float *gradient;
};

/* Sets difference = from - ratio * what, element by element. */
struct psd_cuda_difference {
	float *difference;
	const float *from, *what;
	float ratio;
};

/* ---- chunks; index p of a chunk has its elements p, p + PSD_CUDA_CHUNK_PARTS, ... ---- */

enum { PSD_CUDA_CHUNK_PARTS = 1024, PSD_CUDA_CHUNK_GROUPS = 32, PSD_CUDA_CHUNKS = 64, PSD_CUDA_SPANS = 40 };

/* Span: the intersection of a chunk and a tensor. */
struct psd_cuda_span {
	float *weight;	       /* weight, from the span's first value on */
	const float *gradient; /* gradient, from the span's first value on */
	uint64_t first;	       /* index of the span's first value in residual and history */
	uint64_t first_chosen; /* index of the span's first value in the chosen values */
	uint64_t elements;
	struct psd_cuda_step step;
	bool is_chosen;
};

/* Spans of adjacent chunks in a launch; the spans of chunk c end before ends[c]. */
struct psd_cuda_spans {
	struct psd_cuda_span spans[PSD_CUDA_SPANS];
	uint32_t ends[PSD_CUDA_CHUNKS];
	uint32_t first_chunk, n_chunks;
	bool is_continued; /* the first chunk began in the previous launch, with its earlier spans */
	double *partial;   /* shape (PSD_CUDA_CHUNKS, PSD_CUDA_CHUNK_PARTS); chunk c has row c % PSD_CUDA_CHUNKS */
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

/* Norms of chunks: norms[first_chunk + i] = sum / divisor; indices: chunks. Skipped chunks keep their norm. */
struct psd_cuda_chunk_norms {
	const double *reduced; /* sums; shape (PSD_CUDA_CHUNKS, PSD_CUDA_CHUNK_GROUPS) */
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

/* Span: blocks of one tensor in a launch, all whole except perhaps the tensor's last. */
struct psd_cuda_block_span {
	float *gradient; /* gradient, from the span's first value on */
	const float *weight;
	uint64_t first; /* index of the span's first value in the launch's residual */
	uint64_t elements;
	uint32_t end; /* number of the launch's block behind the span's last */
	float weight_decay;
};

/* All blocks of a launch, at most PSD_CUDA_BLOCKS. Indices are blocks, or the lanes of all blocks, or the lanes of all
 * blocks' units. */
struct psd_cuda_blocks {
	struct psd_cuda_block_span spans[PSD_CUDA_BLOCK_SPANS];
	uint32_t elements, kept, packed_bytes; /* values, kept values and packed bytes of a whole block */
	float *residual;		       /* residual, from the launch's first block on; so are the next two */
	float *velocity;		       /* velocity; NULL: no momentum before compression */
	char *packed;
	float momentum;
	bool is_nesterov;
};

/* Adds gradient or velocity to the residual, and makes the residual's sign bits and sums; indices: lanes. */
struct psd_cuda_one_bit_look {
	struct psd_cuda_blocks of;
	float *sums;	 /* sums of values below 0, then of the others; shape (2, PSD_CUDA_BLOCKS, lanes) */
	uint16_t *n_low; /* number of values below 0; shape (PSD_CUDA_BLOCKS, lanes) */
};

/* Computes the two means of a block; indices: blocks. */
struct psd_cuda_one_bit_reduce {
	struct psd_cuda_blocks of;
	const float *sums;
	const uint16_t *n_low;
};

/* Unpacks values: residual += ratio * value, or gradient = value; indices: lanes of units. */
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
	uint32_t shift; /* position of the current digit in a key, in bits */
	/* Launch for the highest digit of the selection; it first adds gradient or velocity to the residual. */
	bool is_first;
	bool is_last;	  /* all digits of the lowest selected key are known */
	uint32_t *lowest; /* known digits of the lowest selected key, then zeros; shape (PSD_CUDA_BLOCKS) */
	/* Numbers of keys with digit 1 or above, 2 or above, ...; shape (PSD_CUDA_BLOCKS, PSD_CUDA_DIGITS, lanes). At
	 * the end: keys from the lowest selected on, keys above it, unused. */
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
	uint32_t end; /* number of the launch's unit behind the span's last */
	bool adds;
};

/* to = from, or to += from, for several tensors; indices: units times PSD_CUDA_PARTS. */
struct psd_cuda_low_rank_move {
	struct psd_cuda_move_span spans[PSD_CUDA_MOVE_SPANS];
};

struct psd_cuda_matrix {
	float *left, *right; /* factors; shapes (rows, rank) and (rank, columns) */
	uint32_t rows, columns;
	uint32_t number;    /* number of its tensor in the graph */
	uint32_t n_lanes;   /* number of lanes; each adds up products of every n_lanes-th row */
	uint64_t parts_end; /* index behind its last partial sum, in the launch */
	uint64_t rows_end;  /* index behind its last row, in the launch */
};

/* Matrices of a launch. A pair is two columns j <= k of a left matrix. */
struct psd_cuda_matrices {
	struct psd_cuda_matrix matrices[PSD_CUDA_MATRICES];
	uint32_t n, rank, n_pairs;
	uint32_t *found;  /* 1 if that part of a row of right is not 0; shape (n, rank, PSD_CUDA_PARTS) */
	double *parts;	  /* partial sums of products; shape (lanes, pairs) for each matrix */
	double *products; /* products; shape (n, rank, rank), upper triangle; so are the next two */
	double *factor;	  /* Cholesky factor: factor^T factor = products */
	double *inverse;  /* inverse of that factor */
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
