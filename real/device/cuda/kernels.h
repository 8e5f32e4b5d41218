/* Arguments of the kernels for which cuBLAS and cuDNN have no function. ROW(name, arguments) stands for a kernel:
 * psd_cuda_run_NAME() launches it on the compute stream with a struct psd_cuda_ARGUMENTS. A kernel calls its body
 * psd_NAME_at() (bodies_*.h) once for each index 0 to n_indices - 1, in parallel. Comments say how many indices a
 * kernel needs ("indices: ..."); without that, one for each element of the result. An index writes nothing that another
 * index reads or writes. The order of sums depends only on shapes, so equal input gives equal bits. */
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

/* Kernels with two bodies: one element per index, or four adjacent elements per index if one memory access can load all
 * four. */
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

/* IEEE float of 32 bits, IEEE half of 16 bits, bfloat16 */
enum psd_cuda_type { PSD_CUDA_FLOAT, PSD_CUDA_HALF, PSD_CUDA_BFLOAT };

/* Array in the GPU's memory, and the number format of its elements. */
struct psd_cuda_values {
	void *data;
	enum psd_cuda_type type;
};

/* Shape of the output of one sample. In memory the width runs fastest; with channels last the channel runs fastest. */
struct psd_cuda_maps {
	uint32_t channels, height, width;
	bool is_channels_last;
};

/* View of an array with four axes. The element with position p[a] on each axis a is at index offset + p[0] * strides[0]
 * + ... + p[3] * strides[3]. Elements are numbered with the last axis fastest. */
struct psd_cuda_view {
	uint32_t sizes[4], strides[4], offset;
};

/* In all kernels: if `adds` is true, the result is added to `to`; otherwise it overwrites `to`. `to` may be one of the
 * inputs if each index reads only those elements of that input that it writes. */

/* Copies element i of from_view, times scale, to element i of to_view. */
struct psd_cuda_move {
	struct psd_cuda_values from, to;
	struct psd_cuda_view from_view, to_view;
	float scale;
	bool adds;
};

/* to = scale * from, with a conversion between the number formats. */
struct psd_cuda_convert {
	struct psd_cuda_values from, to;
	float scale;
	bool adds;
};

/* to = left + right, then ReLU if is_rectified. */
struct psd_cuda_add {
	struct psd_cuda_values left, right, to;
	float slope; /* slope of the ReLU below 0 */
	bool is_rectified;
};

/* Rule for the channel of an element: (index / inner) % channels. inner: number of positions of a sample; 1 with
 * channels last. */
struct psd_cuda_channel {
	uint32_t inner, channels;
};

/* to = (from - mean) * inverse * gamma + beta, then ReLU if is_rectified. The vectors have one value per channel; NULL
 * stands for mean 0, inverse 1, gamma 1, beta 0. */
struct psd_cuda_affine {
	struct psd_cuda_values from, to;
	struct psd_cuda_channel channel;
	const float *mean, *inverse, *gamma, *beta;
	float slope; /* slope of the ReLU below 0 */
	bool is_rectified;
	bool adds;
};

/* inverse = 1 / sqrt(variance + epsilon); one value per channel. Indices: channels. */
struct psd_cuda_inverse {
	const float *variance;
	float *inverse;
	float epsilon;
};

/* Value that is summed over the elements. */
enum psd_cuda_summand {
	/* left alone */
	PSD_CUDA_SUM_LEFT,
	PSD_CUDA_SUM_PRODUCT,	 /* left * right */
	PSD_CUDA_SUM_BELOW_ZERO, /* left * right where right is at most 0; otherwise 0 */
	/* left * (right - mean) * inverse; mean, inverse: one value per channel; NULL stands for 0 and 1 */
	PSD_CUDA_SUM_NORMALISED,
	/* left * (right - mean) * inverse; mean, inverse: one value per element k of an output */
	PSD_CUDA_SUM_NORMALISED_POSITIONS,
};

/* Partial sums for n_outputs sums over `count` elements each. Output o belongs to channel o % channels and group o /
 * channels. Its element k is at index group * group_stride + channel * channel_stride + (k / inner) * outer_stride + (k
 * % inner) * inner_stride. Part p of an output sums its elements p, p + n_parts, p + 2 * n_parts, ... Indices:
 * n_outputs * n_parts. */
struct psd_cuda_sums {
	struct psd_cuda_values left, right;
	enum psd_cuda_summand summand;
	const float *mean, *inverse;
	uint32_t n_outputs, n_parts, channels;
	uint32_t group_stride, channel_stride, outer_stride, inner_stride;
	uint32_t count, inner;
	float *partial; /* partial sums; shape (n_parts, n_outputs) */
};

/* to[o] = scale * (sum of the partial sums of output o). Indices: n_outputs. */
struct psd_cuda_sums_end {
	const float *partial;
	uint32_t n_outputs, n_parts;
	struct psd_cuda_values to;
	float scale;
	bool adds;
};

enum psd_cuda_function_kind {
	PSD_CUDA_RELU, /* x for x >= 0, otherwise alpha * x */
	PSD_CUDA_SIGMOID,
	PSD_CUDA_TANH,
	PSD_CUDA_ELU,	 /* x for x >= 0, otherwise alpha * (exp(x) - 1) */
	PSD_CUDA_CLIP,	 /* x, limited to the range 0 to beta */
	PSD_CUDA_LINEAR, /* alpha * x + beta */
	PSD_CUDA_EXP,
	/* For the following functions psd_cuda_function_back.known is the input. */
	PSD_CUDA_ABS,
	PSD_CUDA_LOG,
	PSD_CUDA_SOFTPLUS,
	PSD_CUDA_POWER, /* x to the power of alpha */
	PSD_CUDA_GELU,
	PSD_CUDA_GELU_TANH,
	PSD_CUDA_SILU
};

/* to = function of from, element by element. */
struct psd_cuda_function {
	struct psd_cuda_values from, to;
	enum psd_cuda_function_kind kind;
	float alpha, beta;
};

/* to = diff * derivative of the function. The derivative is computed from `known`: the function's output, or its input
 * for PSD_CUDA_ABS and later ones. */
struct psd_cuda_function_back {
	struct psd_cuda_values known, diff, to;
	enum psd_cuda_function_kind kind;
	float alpha, beta;
	bool adds;
};

/* to = from if from > 0, otherwise slopes[channel] * from. */
struct psd_cuda_prelu {
	struct psd_cuda_values from, to;
	struct psd_cuda_channel channel;
	const float *slopes;
};

/* to = diff if from > 0, otherwise slopes[channel] * diff. */
struct psd_cuda_prelu_back {
	struct psd_cuda_values from, diff, to;
	struct psd_cuda_channel channel;
	const float *slopes;
	bool adds;
};

/* to = left * right. right has the shape of left; if is_flat, it has one value for each sample and channel. */
struct psd_cuda_multiply {
	struct psd_cuda_values left, right, to;
	struct psd_cuda_maps maps;
	bool is_flat;
	bool adds;
};

/* Dropout of values or gradients: to = scale * from, or 0 where an element is dropped. An index handles four elements
 * of a sample that are adjacent in row-major order, with one random draw. Indices: (elements of a sample + 3) / 4 for
 * each sample. */
struct psd_cuda_dropout {
	struct psd_cuda_values from, to;
	struct psd_cuda_maps maps;
	uint64_t seed;
	const uint32_t *counters; /* array of two values: number of the batch's first sample, and iteration */
	uint32_t layer;
	uint32_t threshold; /* an element is dropped if its random word is below this bound */
	float scale;	    /* factor on the elements that are kept */
	bool adds;
};

/* Writes first_sample and iteration to the array `to`, from which dropout reads them: arguments of a recorded kernel
 * cannot change from iteration to iteration. Indices: 1. */
struct psd_cuda_counters {
	uint32_t *to;
	uint32_t first_sample, iteration;
};

/* Local response normalisation: to = from / ratio^beta, with ratio = k + alpha * (sum of squares of the neighbours):
 * `size` channels, or size x size positions if is_within_channel. */
struct psd_cuda_lrn {
	struct psd_cuda_values from, to;
	struct psd_cuda_maps maps;
	float *ratios; /* ratio of each element, kept for backward */
	uint32_t size;
	bool is_within_channel;
	float alpha, beta, k; /* constants of the layer; alpha is already divided by the number of neighbours */
};

/* Gradient of local response normalisation; result: output of the forward pass. Indices: elements of the input. */
struct psd_cuda_lrn_back {
	struct psd_cuda_values from, result, diff, to;
	struct psd_cuda_maps maps;
	const float *ratios;
	uint32_t size;
	bool is_within_channel;
	float alpha, beta;
	bool adds;
};

/* Pooling windows as in Caffe: a maximum ignores padding. An average counts padding as zeros, but not the part of a
 * window that lies beyond the padding. */
struct psd_cuda_window {
	struct psd_cuda_maps in, out;
	uint32_t kernel_height, kernel_width, stride_height, stride_width, pad_height, pad_width;
	bool is_max;
};

/* Maximum or average over each window. */
struct psd_cuda_pool {
	struct psd_cuda_values from, to;
	struct psd_cuda_window window;
	/* position (row * width + column) of each output's maximum in the input; the first among equals */
	uint32_t *positions;
};

/* Gradient of pooling; indices: elements of the input. */
struct psd_cuda_pool_back {
	struct psd_cuda_values diff, to;
	struct psd_cuda_window window;
	const uint32_t *positions;
	bool adds;
};

/* Resize to the shape `out` by bilinear interpolation between four positions; the corners of input and output
 * coincide. */
struct psd_cuda_resize {
	struct psd_cuda_values from, to;
	struct psd_cuda_maps in, out;
};

/* Gradient of bilinear interpolation. Indices: elements of the input. */
struct psd_cuda_resize_back {
	struct psd_cuda_values diff, to;
	struct psd_cuda_maps in, out;
	bool adds;
};

/* to = softmax of `from` over the channels of each position. Indices: positions of all samples. */
struct psd_cuda_softmax {
	struct psd_cuda_values from, to;
	struct psd_cuda_maps maps;
};

/* Gradient of softmax: to = result * (diff - (sum of result * diff over the position's channels)). Indices: positions
 * of all samples. */
struct psd_cuda_softmax_back {
	struct psd_cuda_values result, diff, to;
	struct psd_cuda_maps maps;
	bool adds;
};

/* ---- softmax with loss: each position of each sample has a label, and its channels are the scores of the classes
 * ---- */

/* Number of indices (threads) that handle one position together; in shapes below it is called parts. Index p of a
 * position handles its channels p, p + PSD_CUDA_PARTS, p + 2 * PSD_CUDA_PARTS, ... */
enum { PSD_CUDA_PARTS = 32 };

/* Softmax with loss, computed by three kernels: loss_largest and loss_exponents (indices: positions * PSD_CUDA_PARTS),
 * then loss_end (indices: positions). */
struct psd_cuda_loss {
	struct psd_cuda_values scores;
	struct psd_cuda_channel channel;
	const int32_t *labels; /* class of each position; shape (positions) */
	float *largest;	       /* largest score of each part; shape (positions, parts) */
	/* class of the largest score of each part, the lowest class among equals; shape (positions, parts) */
	uint32_t *likely_classes;
	float *exponents;     /* exp(score - the position's largest score); shape of scores */
	double *partial_sums; /* sum of exponents of each part; shape (positions, parts) */
	double *sums;	      /* sum of exponents; shape (positions) */
	double *losses;	      /* loss of each position; shape (positions) */
	uint32_t *is_correct; /* 1 if the likeliest class is the label, else 0; shape (positions) */
};

/* Gradient of the loss: to = weight * (probability of the class - (1 for the label, otherwise 0)). Indices: elements of
 * scores. */
struct psd_cuda_loss_back {
	struct psd_cuda_loss loss;
	struct psd_cuda_values to;
	float weight;
	bool adds;
};

/* ---- sequences ---- */

/* to = for each position, the row of the table whose number is the position's token. Tokens are valid row numbers,
 * stored as floats. */
struct psd_cuda_embedding {
	struct psd_cuda_values to;
	struct psd_cuda_channel channel;
	/* tokens: token of each position, shape (positions); table: shape (vocabulary, channels) */
	const float *tokens, *table;
};

/* Links all positions with the same token to a chain, in their order. Indices: positions. */
struct psd_cuda_token_chains {
	const float *tokens;
	uint32_t n_positions;
	uint32_t *next;	    /* next position of the chain; n_positions: it ends */
	uint32_t *is_first; /* 1 if a chain begins at the position, else 0 */
};

/* Gradient of the table: the row of dtable for a token = scale * (sum of diff over the positions with this token). Rows
 * of other tokens are not written. Indices: elements of diff; an index at the first position of a chain sums along the
 * chain, the others do nothing. */
struct psd_cuda_embedding_back {
	struct psd_cuda_values diff;
	struct psd_cuda_channel channel;
	const float *tokens;
	const uint32_t *next, *is_first;
	uint32_t n_positions;
	float *dtable;
	float scale;
};

/* Position embedding: to = from + weight. weight has the shape of one sample, in row-major order, and is the same for
 * all samples. */
struct psd_cuda_position {
	struct psd_cuda_values from, to;
	struct psd_cuda_channel channel;
	uint32_t positions; /* number of positions in a sample */
	const float *weight;
};

/* Gradient of the position embedding's weight: dweight = scale * (sum of diff over the samples). Indices: elements of
 * one sample. */
struct psd_cuda_position_back {
	struct psd_cuda_values diff;
	struct psd_cuda_channel channel;
	uint32_t positions, batch;
	float *dweight;
	float scale;
};

/* Gradient of learned values that a layer puts at the first `own` positions of each sample; dweight has shape
 * (channels, own). dweight = scale * (sum of diff over the samples). Indices: elements of dweight. */
struct psd_cuda_prefix_back {
	struct psd_cuda_values diff;
	struct psd_cuda_channel channel;
	uint32_t positions, own, batch;
	float *dweight;
	float scale;
};

/* Layer norm over the channels of each position, computed by several kernels. A position has PSD_CUDA_PARTS indices;
 * index p handles its channels p, p + PSD_CUDA_PARTS, ... gamma and beta have one value per channel; NULL stands for 1
 * and 0. With is_centred false it is RMSNorm: the mean is taken as 0, so the variance is the mean square. Indices:
 * positions * PSD_CUDA_PARTS, for all kernels of layer norm. */
struct psd_cuda_layer_norm {
	struct psd_cuda_values from;
	struct psd_cuda_channel channel;
	bool is_centred;
	const float *gamma, *beta;
	float epsilon;
	float *mean, *inverse; /* mean, and 1 / sqrt(variance + epsilon), of each position; shape (positions) each */
	float *partial[2];     /* two arrays of partial sums, each of shape (positions, PSD_CUDA_PARTS) */
};

struct psd_cuda_layer_norm_end { /* Last kernel of the forward pass: computes norm.inverse and the result `to`. */
	struct psd_cuda_layer_norm norm;
	struct psd_cuda_values to;
};

/* First kernel of the backward pass: sets norm.partial[0] to partial sums of diff * gamma, and norm.partial[1] to
 * partial sums of diff * gamma * (normalised value). */
struct psd_cuda_layer_norm_dots {
	struct psd_cuda_layer_norm norm;
	struct psd_cuda_values diff;
};

/* Last kernel of the backward pass: computes the gradient of the input from these partial sums. */
struct psd_cuda_layer_norm_back {
	struct psd_cuda_layer_norm norm;
	struct psd_cuda_values diff, to;
	bool adds;
};

/* Angles of rotary position embedding: angle j (j < half) of a position is position * base^(-j / half). Index i
 * computes angle i % half of position i / half. Indices: positions * half. */
struct psd_cuda_rotary_angles {
	float *angles; /* cosine and sine of each angle; result; shape (positions, half, 2) */
	uint32_t half;
	double base_log; /* natural logarithm of base */
};

/* Rotary position embedding: in each of the first `heads` heads of a position, rotates the pair of channels (k, k +
 * half) by angle k of the position; by the negative angle if is_back. Further channels of `from` and `to` are not read
 * or written. Indices: (positions of all samples) * heads * half. */
struct psd_cuda_rotary {
	struct psd_cuda_values from, to;
	struct psd_cuda_channel from_channel, to_channel;
	const float *angles;
	uint32_t positions; /* number of positions in a sample */
	uint32_t heads, half;
	bool is_back;
	bool adds;
};

/* Softmax of attention scores, in place, by the kernels attention_sums and attention_end. There is a row for each
 * position of each head of each sample; a row has a column for each position. A row has PSD_CUDA_PARTS indices; index p
 * handles columns p, p + PSD_CUDA_PARTS, ... Indices: rows * PSD_CUDA_PARTS. */
struct psd_cuda_attention {
	struct psd_cuda_values rows;
	uint32_t positions;
	bool is_causal;	   /* sets the columns of positions after the row's own position to 0 */
	float *partial[2]; /* two arrays of partial results, each of shape (rows, PSD_CUDA_PARTS) */
};

struct psd_cuda_attention_dots { /* Sets attention.partial[0] to partial sums of probability * diff. */
	struct psd_cuda_attention attention;
	struct psd_cuda_values diff;
};

/* Gradient of the scores, which overwrites diff: probability * (diff - (the row's sum of probability * diff)). */
struct psd_cuda_attention_back {
	struct psd_cuda_attention attention;
	struct psd_cuda_values diff;
};

/* ---- encoded values of 16 bits ---- */

/* Looks for infinities and NaNs. Part p has elements p, p + n_parts, p + 2 * n_parts, ... Indices: n_parts. */
struct psd_cuda_look {
	const uint16_t *values;
	uint64_t elements;
	uint16_t infinity; /* mask of the exponent's bits, all set in an infinity or NaN */
	uint32_t n_parts;
	uint32_t *found; /* 1 if the part has such a value, else 0; shape (n_parts) */
};

/* Combines the results of n_parts parts to n_groups results: reduced[g] is 1 if found[p] is 1 for some p of group g,
 * else 0. Indices: n_groups. */
struct psd_cuda_look_reduce {
	const uint32_t *found;
	uint32_t n_parts, n_groups;
	uint32_t *reduced;
};

/* Overwrites all values by `nan` if *found is not 0, or if `found` is NULL. Indices: elements. */
struct psd_cuda_spoil {
	uint16_t *values;
	uint16_t nan;
	const uint32_t *found; /* result of look_reduce for all values; NULL: overwrite without a search */
};

/* ---- updates ---- */

/* Partial sums of the squares of two arrays. Part p has elements p, p + n_parts, p + 2 * n_parts, ... Indices: 2 *
 * n_parts; n_parts if only arrays[0] is needed. */
struct psd_cuda_norms {
	const float *arrays[2];
	uint64_t elements;
	uint32_t n_parts;
	double *partial; /* partial sums; shape (2, n_parts) */
};

/* Adds the n_parts partial sums of each array to n_groups sums. Indices: (number of arrays) * n_groups. */
struct psd_cuda_norms_reduce {
	const double *partial; /* partial sums; shape (arrays, n_parts) */
	uint32_t n_parts, n_groups;
	double *reduced; /* sums; shape (arrays, n_groups) */
};

/* Computes the learning rate of a tensor as psd_update_by_norms(). Indices: 1. */
struct psd_cuda_trust {
	const double *reduced; /* sums of squares: n_groups sums of the weight, then n_groups sums of the gradient */
	uint32_t n_groups;
	float rate, weight_decay;
	double trust_ratio;
	float *own_rate;
};

/* Computes the clipping ratio as psd_clip_find(), from the sums of squares of the groups. Indices: 1. */
struct psd_cuda_clip {
	const double *reduced; /* sums of squares; shape (n_groups) */
	uint32_t n_groups;
	double most_norm;
	float *ratio;
};

/* values = values * *ratio, with the same bits as psd_clip_shrink(). Indices: elements. */
struct psd_cuda_shrunk {
	float *values;
	const float *ratio;
};

/* Update rule of SGD for one tensor; kernels that use it give the same bits as psd_update_apply(). */
struct psd_cuda_step {
	/* address of the tensor's learning rate (psd_cuda_trust), used in place of `rate`; NULL: `rate` is used */
	const float *own_rate;
	float rate, momentum, weight_decay;
	bool is_nesterov;
};

/* Update by SGD. Indices: elements. */
struct psd_cuda_update {
	struct psd_cuda_step step;
	float *weight, *history;
	const float *gradient;
};

/* Update by AdamW, with the same bits as psd_update_apply(). Indices: elements. */
struct psd_cuda_adaptive {
	float rate, weight_decay;
	float beta1, beta2, epsilon, mean_ratio, root_ratio;
	float *weight, *history, *squares;
	const float *gradient;
};

/* difference = from - ratio * what, element by element. Indices: elements. */
struct psd_cuda_difference {
	float *difference;
	const float *from, *what;
	float ratio;
};

/* ---- chunks of sparse all-reduce ---- */

/* Numbers of indices per chunk (index p handles its elements p, p + PSD_CUDA_CHUNK_PARTS, ...), of groups to which
 * these partial sums are added, and the largest numbers of chunks and of spans in a launch. */
enum { PSD_CUDA_CHUNK_PARTS = 1024, PSD_CUDA_CHUNK_GROUPS = 32, PSD_CUDA_CHUNKS = 64, PSD_CUDA_SPANS = 40 };

/* Span: the elements that a chunk and a tensor have in common. */
struct psd_cuda_span {
	float *weight;	       /* weight, from the span's first value on */
	const float *gradient; /* gradient, from the span's first value on */
	uint64_t first;	       /* index of the span's first value in residual and history */
	uint64_t first_chosen; /* index of the span's first value in the chosen values */
	uint64_t elements;
	struct psd_cuda_step step;
	bool is_chosen;
};

/* Adjacent chunks that one launch handles, and their spans. The spans of the launch's chunk c are spans[ends[c - 1]] to
 * spans[ends[c] - 1], with 0 in place of ends[-1]. */
struct psd_cuda_spans {
	struct psd_cuda_span spans[PSD_CUDA_SPANS];
	uint32_t ends[PSD_CUDA_CHUNKS];
	uint32_t first_chunk, n_chunks;
	bool is_continued; /* the first chunk has earlier spans, which the previous launch handled */
	/* partial sums of magnitudes; shape (PSD_CUDA_CHUNKS, PSD_CUDA_CHUNK_PARTS); chunk c of the bucket has row c %
	 * PSD_CUDA_CHUNKS */
	double *partial;
};

/* psd_chunks_gather() for the chunks of a launch. Indices: n_chunks * PSD_CUDA_CHUNK_PARTS. */
struct psd_cuda_gather {
	struct psd_cuda_spans of;
	float *residual, *chosen;
	float kept_ratio;
};

/* psd_chunks_apply() for the chunks of a launch. Indices: n_chunks * PSD_CUDA_CHUNK_PARTS. */
struct psd_cuda_apply_chunks {
	struct psd_cuda_spans of;
	float *history;
	const float *chosen;
	bool is_skipped;
};

/* Norms of chunks: norms[first_chunk + i] = (sum of the groups of chunk i) / divisor, unless is_left_out[i]. Indices:
 * chunks of the launch. */
struct psd_cuda_chunk_norms {
	const double *reduced; /* sums; shape (PSD_CUDA_CHUNKS, PSD_CUDA_CHUNK_GROUPS) */
	float *norms;
	uint32_t first_chunk;
	double divisor;
	bool is_left_out[PSD_CUDA_CHUNKS]; /* the chunk keeps its norm */
};

/* ---- compressed blocks; blocks, lanes and units are those of engine/encodings/compression.h ---- */

enum {
	PSD_CUDA_BLOCKS = 4096,
	PSD_CUDA_BLOCK_SPANS = 40
}; /* PSD_CUDA_BLOCKS: largest number of blocks in a launch; a large GPU has about so many threads as they have lanes */

/* Span: the blocks of one tensor that a launch handles. All have the full length, except that the tensor's last block
 * may be shorter. */
struct psd_cuda_block_span {
	float *gradient; /* gradient, from the span's first value on */
	const float *weight;
	uint64_t first; /* index of the span's first value in psd_cuda_blocks.residual */
	uint64_t elements;
	uint32_t end; /* number, in the launch, of the last block of the span, plus 1 */
	float weight_decay;
};

/* All blocks of a launch, at most PSD_CUDA_BLOCKS. Kernels have an index for each block, for each of the
 * PSD_BLOCK_LANES lanes of each block, or for each lane of each unit (PSD_BLOCK_UNIT values) of each block. */
struct psd_cuda_blocks {
	struct psd_cuda_block_span spans[PSD_CUDA_BLOCK_SPANS];
	/* number of values, number of kept values (top-k) and packed bytes of a block of full length */
	uint32_t elements, kept, packed_bytes;
	float *residual; /* residual, from the launch's first block on */
	/* velocity, from the launch's first block on; NULL: no momentum is applied before compression */
	float *velocity;
	char *packed; /* compressed values, from the launch's first block on */
	float momentum;
	bool is_nesterov;
};

/* First kernel of packing by one-bit: adds gradient or velocity to the residual, writes the sign bits of the residual
 * to `packed`, and computes sums. Indices: lanes of all blocks. */
struct psd_cuda_one_bit_look {
	struct psd_cuda_blocks of;
	/* sums of each lane's values below 0, then of its other values; shape (2, PSD_CUDA_BLOCKS, PSD_BLOCK_LANES) */
	float *sums;
	uint16_t *n_low; /* number of values below 0 in each lane; shape (PSD_CUDA_BLOCKS, PSD_BLOCK_LANES) */
};

/* Second kernel: computes the two means of each block (of its values below 0, and of its other values), and writes them
 * to `packed`. Indices: blocks. */
struct psd_cuda_one_bit_reduce {
	struct psd_cuda_blocks of;
	const float *sums;
	const uint16_t *n_low;
};

/* Unpacks values: residual += ratio * value if is_to_residual, otherwise gradient = value. Indices: lanes of all
 * units. */
struct psd_cuda_one_bit_add {
	struct psd_cuda_blocks of;
	float ratio;
	bool is_to_residual;
};

/* Top-k selection by radix select. The key of a value is an integer with the order of the magnitudes. The lowest
 * selected key of each block is found digit by digit from the highest: top_k_count counts keys per lane, then
 * top_k_choose chooses the digit. When all digits are known, top_k_count counts once more, so that top_k_take knows the
 * position at which each lane writes. */
enum { PSD_CUDA_KEY_BITS = 15, PSD_CUDA_DIGIT_BITS = 3, PSD_CUDA_DIGITS = (1 << PSD_CUDA_DIGIT_BITS) - 1 };

struct psd_cuda_keys {
	struct psd_cuda_blocks of;
	uint32_t shift; /* number of the lowest bit of the current digit in a key */
	/* this launch counts the highest digit; it first adds gradient or velocity to the residual */
	bool is_first;
	bool is_last; /* this launch counts after all digits of the lowest selected key are known */
	/* known digits of each block's lowest selected key; the other digits are 0; shape (PSD_CUDA_BLOCKS) */
	uint32_t *lowest;
	/* Numbers of keys whose current digit is at least 1, at least 2, ...; shape (PSD_CUDA_BLOCKS, PSD_CUDA_DIGITS,
	 * PSD_BLOCK_LANES). With is_last, the first two are the numbers of keys that are at least the lowest selected
	 * key, and of keys above it; the others are not used. */
	uint16_t *counts;
};

/* ---- gradients that travel as products of narrow matrices, see real/device/low_rank.h ---- */

/* Limits of a launch. It copies at most PSD_CUDA_MOVE_SPANS spans, in units of PSD_CUDA_MOVE_UNIT values with
 * PSD_CUDA_PARTS indices each. It handles at most PSD_CUDA_MATRICES matrices. All their rank x rank matrices together
 * have at most PSD_CUDA_SQUARES elements, and at most PSD_CUDA_PRODUCT_PARTS partial sums. Each matrix has at most
 * PSD_CUDA_PRODUCT_LANES lanes (psd_cuda_matrix.n_lanes). */
enum {
	PSD_CUDA_MOVE_SPANS = 96,
	PSD_CUDA_MOVE_UNIT = 1024,
	PSD_CUDA_MATRICES = 40,
	PSD_CUDA_SQUARES = 1 << 14,
	PSD_CUDA_PRODUCT_PARTS = 1 << 16,
	PSD_CUDA_PRODUCT_LANES = 256,
};

/* Values of one tensor to copy: to = from, or to += from if `adds`. */
struct psd_cuda_move_span {
	float *to;
	const float *from;
	uint64_t elements;
	uint32_t end; /* number, in the launch, of the last unit of the span, plus 1 */
	bool adds;
};

/* Copies or adds the values of several tensors. Indices: units of all spans * PSD_CUDA_PARTS. */
struct psd_cuda_low_rank_move {
	struct psd_cuda_move_span spans[PSD_CUDA_MOVE_SPANS];
};

/* Low-rank factors of one tensor. */
struct psd_cuda_matrix {
	float *left, *right; /* factors; shapes (rows, rank) and (rank, columns) */
	uint32_t rows, columns;
	uint32_t number;    /* number of the tensor in the graph */
	uint32_t n_lanes;   /* number of lanes; lane l adds products of rows l, l + n_lanes, l + 2 * n_lanes, ... */
	uint64_t parts_end; /* number, in the launch, of the matrix's last partial sum, plus 1 */
	uint64_t rows_end;  /* number, in the launch, of the matrix's last row, plus 1 */
};

/* Matrices of a launch. A pair is a pair of columns j and k of a left matrix with j <= k, whose inner product is
 * computed. */
struct psd_cuda_matrices {
	struct psd_cuda_matrix matrices[PSD_CUDA_MATRICES];
	uint32_t n, rank, n_pairs;
	/* 1 if a part of a row of `right` has a value that is not 0, else 0; shape (n, rank, PSD_CUDA_PARTS) */
	uint32_t *found;
	double *parts;	  /* partial sums of inner products; for each matrix an array of shape (n_lanes, n_pairs) */
	double *products; /* inner products; shape (n, rank, rank), only the upper triangles */
	/* Cholesky factors: factor^T * factor = products; shape (n, rank, rank), only the upper triangles */
	double *factor;
	double *inverse; /* inverses of the Cholesky factors; shape (n, rank, rank), only the upper triangles */
};

/* Computes row `row` of all Cholesky factors from the rows above. Indices: n * (rank - row), for the elements from the
 * diagonal on. */
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
