/* Kernels for which cuBLAS and cuDNN have no function, and their arguments. ROW(name, arguments) declares a kernel:
 * psd_gpu_run_NAME() launches it on the compute stream with a struct psd_gpu_ARGUMENTS. A kernel calls its body
 * psd_NAME_at() (bodies_*.h) in parallel, once for each index 0 to n_indices - 1. A comment "Kernel indices: ..." gives
 * the number of indices that a kernel needs; without it, there is one index for each element of the result. An index
 * writes nothing that another index reads or writes. The order in which sums are added depends only on shapes, so equal
 * input gives equal bits. */
#ifndef PSD_REAL_GPU_KERNELS_H
#define PSD_REAL_GPU_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

#define PSD_GPU_SINGLE_KERNELS(ROW)                                                                                    \
	ROW(move, move)                                                                                                \
	ROW(inverse, inverse)                                                                                          \
	ROW(sums, sums)                                                                                                \
	ROW(sums_end, sums_end)                                                                                        \
	ROW(prelu, prelu)                                                                                              \
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
	ROW(layer_norm_end, layer_norm)                                                                                \
	ROW(layer_norm_dots, layer_norm)                                                                               \
	ROW(layer_norm_back, layer_norm)                                                                               \
	ROW(rotary_angles, rotary_angles)                                                                              \
	ROW(rotary, rotary)                                                                                            \
	ROW(attention_sums, attention)                                                                                 \
	ROW(attention_end, attention)                                                                                  \
	ROW(attention_dots, attention)                                                                                 \
	ROW(attention_back, attention)                                                                                 \
	ROW(norms, norms)                                                                                              \
	ROW(squares, squares)                                                                                          \
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
	ROW(int8_look, int8)                                                                                           \
	ROW(int8_reduce, int8)                                                                                         \
	ROW(int8_take, blocks)                                                                                         \
	ROW(int8_put, blocks)                                                                                          \
	ROW(low_rank_move, low_rank_move)                                                                              \
	ROW(low_rank_look, matrices)                                                                                   \
	ROW(low_rank_start, matrices)                                                                                  \
	ROW(low_rank_products, matrices)                                                                               \
	ROW(low_rank_reduce, matrices)                                                                                 \
	ROW(low_rank_factor, low_rank_factor)                                                                          \
	ROW(low_rank_inverse, matrices)                                                                                \
	ROW(low_rank_basis, matrices)

/* Kernels with two bodies. One handles one element per index. The other handles four adjacent elements per index, and
 * is used if one memory access can load all four. */
#define PSD_GPU_FOUR_KERNELS(ROW)                                                                                      \
	ROW(convert, convert)                                                                                          \
	ROW(add, add)                                                                                                  \
	ROW(affine, affine)                                                                                            \
	ROW(function, function)                                                                                        \
	ROW(function_back, function_back)                                                                              \
	ROW(pool, pool)                                                                                                \
	ROW(pool_back, pool_back)

#define PSD_GPU_KERNELS(ROW)                                                                                           \
	PSD_GPU_SINGLE_KERNELS(ROW)                                                                                    \
	PSD_GPU_FOUR_KERNELS(ROW)

/* Number formats: IEEE float of 32 bits, IEEE half of 16 bits, bfloat16. */
enum psd_gpu_type { PSD_GPU_FLOAT, PSD_GPU_HALF, PSD_GPU_BFLOAT };

/* Array in the GPU's memory, and the number format of its elements. */
struct psd_gpu_values {
	void *data;
	enum psd_gpu_type type;
};

/* Shape of the output of one sample. In memory, adjacent elements are those of adjacent columns; with channels last,
 * those of adjacent channels. */
struct psd_gpu_maps {
	uint32_t channels, height, width;
	bool is_channels_last;
};

/* View of an array with four axes. The element at position p[a] on each axis a has the index offset + p[0] * strides[0]
 * + ... + p[3] * strides[3] in the array. The elements of a view are numbered so that the position on the last axis
 * changes fastest. */
struct psd_gpu_view {
	uint32_t sizes[4], strides[4], offset;
};

/* In all kernels: if `adds` is true, the result is added to `to`; otherwise it overwrites `to`. `to` may be the same
 * memory as an input if each index reads only those elements of that input that it writes. */

/* Multiplies element number i of from_view by scale and writes it to element number i of to_view. */
struct psd_gpu_move {
	struct psd_gpu_values from, to;
	struct psd_gpu_view from_view, to_view;
	float scale;
	bool adds;
};

/* to = scale * from, with a conversion between the number formats. */
struct psd_gpu_convert {
	struct psd_gpu_values from, to;
	float scale;
	bool adds;
};

/* to = left + right. If is_rectified, ReLU is applied to the sum. */
struct psd_gpu_add {
	struct psd_gpu_values left, right, to;
	float slope; /* slope of the ReLU for negative values */
	bool is_rectified;
};

/* Rule that gives the channel of an element: (index / inner) % channels. inner: number of positions of a sample; 1 with
 * channels last. */
struct psd_gpu_channel {
	uint32_t inner, channels;
};

/* to = (from - mean) * inverse * gamma + beta. If is_rectified, ReLU is applied to it. mean, inverse, gamma and beta
 * have one value per channel; NULL means mean 0, inverse 1, gamma 1, beta 0. */
struct psd_gpu_affine {
	struct psd_gpu_values from, to;
	struct psd_gpu_channel channel;
	const float *mean, *inverse, *gamma, *beta;
	float slope; /* slope of the ReLU for negative values */
	bool is_rectified;
	bool adds;
};

/* inverse = 1 / sqrt(variance + epsilon); one value per channel. Kernel indices: channels. */
struct psd_gpu_inverse {
	const float *variance;
	float *inverse;
	float epsilon;
};

/* Summand: the value that is added for each element. */
enum psd_gpu_summand {
	/* `left` only */
	PSD_GPU_SUM_LEFT,
	PSD_GPU_SUM_PRODUCT,	/* left * right */
	PSD_GPU_SUM_BELOW_ZERO, /* left * right where right <= 0; otherwise 0 */
	/* left * (right - mean) * inverse. mean and inverse have one value per channel; NULL means mean 0, inverse
	 * 1. */
	PSD_GPU_SUM_NORMALISED,
	/* left * (right - mean) * inverse. mean and inverse have one value for each element number k of an output. */
	PSD_GPU_SUM_NORMALISED_POSITIONS,
};

/* Partial sums of n_outputs outputs; an output is the sum of `count` elements. Output o belongs to channel o % channels
 * and to group o / channels. Its element number k has the index group * group_stride + channel * channel_stride + (k /
 * inner) * outer_stride + (k % inner) * inner_stride. Part p of an output is the sum of its elements p, p + n_parts, p
 * + 2 * n_parts, ... Kernel indices: n_outputs * n_parts. */
struct psd_gpu_sums {
	struct psd_gpu_values left, right;
	enum psd_gpu_summand summand;
	const float *mean, *inverse;
	uint32_t n_outputs, n_parts, channels;
	uint32_t group_stride, channel_stride, outer_stride, inner_stride;
	uint32_t count, inner;
	float *partial; /* partial sums; shape (n_parts, n_outputs) */
};

/* to[o] = scale * (sum of the partial sums of output o). Kernel indices: n_outputs. */
struct psd_gpu_sums_end {
	const float *partial;
	uint32_t n_outputs, n_parts;
	struct psd_gpu_values to;
	float scale;
	bool adds;
};

enum psd_gpu_function_kind {
	PSD_GPU_RELU, /* x for x >= 0, otherwise alpha * x */
	PSD_GPU_SIGMOID,
	PSD_GPU_TANH,
	PSD_GPU_ELU,	/* x for x >= 0, otherwise alpha * (exp(x) - 1) */
	PSD_GPU_CLIP,	/* x, limited to the range 0 to beta */
	PSD_GPU_LINEAR, /* alpha * x + beta */
	PSD_GPU_EXP,
	/* psd_gpu_function_back.known is the output of the functions above, and the input of those below. */
	PSD_GPU_ABS,
	PSD_GPU_LOG,
	PSD_GPU_SOFTPLUS,
	PSD_GPU_POWER, /* x to the power of alpha */
	PSD_GPU_GELU,
	PSD_GPU_GELU_TANH,
	PSD_GPU_SILU
};

/* to = f(from) for each element, where f is the function `kind`. */
struct psd_gpu_function {
	struct psd_gpu_values from, to;
	enum psd_gpu_function_kind kind;
	float alpha, beta;
};

/* to = diff * (derivative of the function). The derivative is computed from `known`. For PSD_GPU_ABS and the functions
 * after it, `known` is the input of the function, otherwise its output. */
struct psd_gpu_function_back {
	struct psd_gpu_values known, diff, to;
	enum psd_gpu_function_kind kind;
	float alpha, beta;
	bool adds;
};

/* to = diff if from > 0; otherwise slopes[channel] * diff. In the forward pass, diff is from. */
struct psd_gpu_prelu {
	struct psd_gpu_values from, diff, to;
	struct psd_gpu_channel channel;
	const float *slopes;
	bool adds;
};

/* to = left * right. `right` has the shape of `left`; if is_flat, it has only one value for each sample and channel. */
struct psd_gpu_multiply {
	struct psd_gpu_values left, right, to;
	struct psd_gpu_maps maps;
	bool is_flat;
	bool adds;
};

/* Dropout of values or gradients: to = 0 for elements that are dropped, otherwise scale * from. An index handles four
 * elements of a sample that are adjacent in row-major order, and draws their random bits together. Kernel indices:
 * (elements of a sample + 3) / 4 for each sample. */
struct psd_gpu_dropout {
	struct psd_gpu_values from, to;
	struct psd_gpu_maps maps;
	uint64_t seed;
	/* Array of two values: number of the batch's first sample, and number of the iteration. */
	const uint32_t *counters;
	uint32_t layer;
	uint32_t threshold; /* an element is dropped if its 32 random bits are a number below this value */
	float scale;	    /* factor by which the other elements are multiplied */
	bool adds;
};

/* Writes first_sample and iteration to the array `to`, from which dropout reads them. This is necessary because the
 * arguments of a recorded kernel cannot change from iteration to iteration. Kernel indices: 1. */
struct psd_gpu_counters {
	uint32_t *to;
	uint32_t first_sample, iteration;
};

/* Local response normalisation: to = from / ratio^beta, with ratio = k + alpha * (sum of the squares of the
 * neighbours). The neighbours are `size` channels of the same position; if is_within_channel, size x size positions of
 * the same channel. */
struct psd_gpu_lrn {
	struct psd_gpu_values from, to;
	struct psd_gpu_maps maps;
	float *ratios; /* ratio of each element, stored for the backward pass */
	uint32_t size;
	bool is_within_channel;
	float alpha, beta, k; /* constants of the layer; alpha is already divided by the number of neighbours */
};

/* Gradient of local response normalisation. Kernel indices: elements of the input. */
struct psd_gpu_lrn_back {
	struct psd_gpu_lrn lrn; /* the forward pass */
	struct psd_gpu_values diff, to;
	bool adds;
};

/* Pooling windows as in Caffe. A maximum ignores padding. An average counts padding as zeros, but does not count the
 * part of a window that is outside of the padding. */
struct psd_gpu_window {
	struct psd_gpu_maps in, out;
	uint32_t kernel_height, kernel_width, stride_height, stride_width, pad_height, pad_width;
	bool is_max;
};

/* Maximum or average of each window. */
struct psd_gpu_pool {
	struct psd_gpu_values from, to;
	struct psd_gpu_window window;
	/* For each output, position (row * width + column) of the maximum in the input. If several positions have it,
	 * it is the first one. */
	uint32_t *positions;
};

/* Gradient of pooling. Kernel indices: elements of the input. */
struct psd_gpu_pool_back {
	struct psd_gpu_values diff, to;
	struct psd_gpu_window window;
	const uint32_t *positions;
	bool adds;
};

/* Resizes maps to the shape `out` by bilinear interpolation between four positions of the input. The corners of input
 * and output coincide. */
struct psd_gpu_resize {
	struct psd_gpu_values from, to;
	struct psd_gpu_maps in, out;
};

/* Gradient of bilinear interpolation. Kernel indices: elements of the input. */
struct psd_gpu_resize_back {
	struct psd_gpu_values diff, to;
	struct psd_gpu_maps in, out;
	bool adds;
};

/* to = softmax of `from` over the channels of each position. Kernel indices: positions of all samples. */
struct psd_gpu_softmax {
	struct psd_gpu_values from, to;
	struct psd_gpu_maps maps;
};

/* Gradient of softmax: to = result * (diff - sum). result: output of the forward pass; sum: sum of result * diff over
 * the channels of the position. Kernel indices: positions of all samples. */
struct psd_gpu_softmax_back {
	struct psd_gpu_values result, diff, to;
	struct psd_gpu_maps maps;
	bool adds;
};

/* ---- softmax with loss: each position of each sample has a label, and its channels are the scores of the classes
 * ---- */

/* Number of parts of a position; one index handles each part. Part p has the channels p, p + PSD_GPU_PARTS, p + 2 *
 * PSD_GPU_PARTS, ... Shapes in comments below use the word `parts` for this number. */
enum { PSD_GPU_PARTS = 32 };

/* Softmax with loss, computed by three kernels: loss_largest and loss_exponents (indices: positions * PSD_GPU_PARTS),
 * then loss_end (indices: positions). */
struct psd_gpu_loss {
	struct psd_gpu_values scores;
	struct psd_gpu_channel channel;
	const int32_t *labels; /* class of each position; shape (positions) */
	float *largest;	       /* largest score of each part; shape (positions, parts) */
	/* class with the largest score of each part, the lowest class if several have it; shape (positions, parts) */
	uint32_t *likely_classes;
	float *exponents;     /* exp(score - largest score of the position); shape of `scores` */
	double *partial_sums; /* sum of the exponentials of each part; shape (positions, parts) */
	double *sums;	      /* sum of the exponentials of each position; shape (positions) */
	double *losses;	      /* loss of each position; shape (positions) */
	/* 1 if the class with the largest score is the label, otherwise 0; shape (positions). */
	uint32_t *is_correct;
};

/* Gradient of the loss with respect to a score: to = weight * (probability of the class - target). target: 1 if the
 * class is the label, otherwise 0. Kernel indices: elements of `scores`. */
struct psd_gpu_loss_back {
	struct psd_gpu_loss loss;
	struct psd_gpu_values to;
	float weight;
	bool adds;
};

/* ---- sequences ---- */

/* Embedding: for each position, `to` gets the row of the table whose number is the position's token. Tokens are valid
 * row numbers, stored as floats. */
struct psd_gpu_embedding {
	struct psd_gpu_values to;
	struct psd_gpu_channel channel;
	/* tokens: token of each position, shape (positions); table: shape (vocabulary, channels) */
	const float *tokens, *table;
};

/* Links all positions with the same token to a chain, in ascending order of positions. Kernel indices: positions. */
struct psd_gpu_token_chains {
	const float *tokens;
	uint32_t n_positions;
	uint32_t *next;	    /* next position of the chain; n_positions: the chain ends here; shape (n_positions) */
	uint32_t *is_first; /* 1 if a chain begins at the position, otherwise 0; shape (n_positions) */
};

/* Gradient of the table: the row of dtable for a token becomes scale * (sum of diff over the positions with this
 * token). Rows of tokens that do not occur are not written. Kernel indices: elements of diff. An index at the first
 * position of a chain sums along the chain, the others do nothing. */
struct psd_gpu_embedding_back {
	struct psd_gpu_values diff;
	struct psd_gpu_channel channel;
	const float *tokens;
	const uint32_t *next, *is_first;
	uint32_t n_positions;
	float *dtable;
	float scale;
};

/* Position embedding: to = from + weight. weight has the shape of one sample, in row-major order, and is used for all
 * samples. */
struct psd_gpu_position {
	struct psd_gpu_values from, to;
	struct psd_gpu_channel channel;
	uint32_t positions; /* number of positions in a sample */
	const float *weight;
};

/* Gradient of the position embedding's weight: dweight = scale * (sum of diff over the samples). Kernel indices:
 * elements of one sample. */
struct psd_gpu_position_back {
	struct psd_gpu_values diff;
	struct psd_gpu_channel channel;
	uint32_t positions, batch;
	float *dweight;
	float scale;
};

/* Gradient of learned values that a layer writes at the first `own` positions of each sample: dweight = scale * (sum of
 * diff over the samples). dweight has the shape (channels, own). Kernel indices: elements of dweight. */
struct psd_gpu_prefix_back {
	struct psd_gpu_values diff;
	struct psd_gpu_channel channel;
	uint32_t positions, own, batch;
	float *dweight;
	float scale;
};

/* Layer norm over the channels of each position, computed by several kernels. Part p of a position has the channels p,
 * p + PSD_GPU_PARTS, ... gamma and beta have one value per channel; NULL means gamma 1, beta 0. If is_centred is
 * false, it is RMSNorm: the mean counts as 0, so the variance is the mean square. The last kernel of the forward pass,
 * layer_norm_end, computes `inverse` and the result. In the backward pass, layer_norm_dots sets partial[0] to partial
 * sums of diff * gamma, and partial[1] to partial sums of diff * gamma * (normalised value), from which
 * layer_norm_back computes the gradient of the input. Indices of all these kernels: positions * PSD_GPU_PARTS. */
struct psd_gpu_layer_norm {
	struct psd_gpu_values from;
	struct psd_gpu_values to; /* result of layer_norm_end or layer_norm_back */
	struct psd_gpu_values diff;
	struct psd_gpu_channel channel;
	bool is_centred;
	const float *gamma, *beta;
	float epsilon;
	/* Mean of each position, and 1 / sqrt(variance + epsilon); shape (positions) each. */
	float *mean, *inverse;
	float *partial[2]; /* two arrays of partial sums, each of shape (positions, PSD_GPU_PARTS) */
	bool adds;
};

/* Angles of rotary position embedding. Angle j (0 to half - 1) of a position is position * base^(-j / half), in
 * radians. Index i computes angle i % half of position i / half. Kernel indices: positions * half. */
struct psd_gpu_rotary_angles {
	float *angles; /* result: cosine and sine of each angle; shape (positions, half, 2) */
	uint32_t half;
	double base_log; /* natural logarithm of the base of the angles */
};

/* Rotary position embedding. In each of the first `heads` heads of a position, channels k and k + half are rotated as a
 * pair by angle k of the position; by the negative angle if is_back. Other channels of `from` and `to` are not read or
 * written. Kernel indices: (positions of all samples) * heads * half. */
struct psd_gpu_rotary {
	struct psd_gpu_values from, to;
	struct psd_gpu_channel from_channel, to_channel;
	const float *angles;
	uint32_t positions; /* number of positions in a sample */
	uint32_t heads, half;
	bool is_back;
	bool adds;
};

/* Softmax of attention scores, in place, by the kernels attention_sums and attention_end. There is one row for each
 * position of each head of each sample; a row has one column for each position. Part p of a row has the columns p, p +
 * PSD_GPU_PARTS, ... The gradient of the scores, which overwrites diff, is probability * (diff - sum), where sum is
 * that of probability * diff over the row: attention_dots sets partial[0] to its partial sums, before attention_back.
 * Kernel indices: rows * PSD_GPU_PARTS. */
struct psd_gpu_attention {
	struct psd_gpu_values rows;
	struct psd_gpu_values diff; /* gradient of the probabilities, then of the scores */
	uint32_t positions;
	bool is_causal;	   /* columns of positions after the row's own position become 0 */
	float *partial[2]; /* two arrays of partial results, each of shape (rows, PSD_GPU_PARTS) */
};

/* ---- encoded values, of 16 bits each ---- */

/* Searches for infinities and NaNs. Part p has the elements p, p + n_parts, p + 2 * n_parts, ... Kernel indices:
 * n_parts. */
struct psd_gpu_look {
	const uint16_t *values;
	uint64_t elements;
	uint16_t infinity; /* mask with the exponent's bits, which are all 1 in an infinity or NaN */
	uint32_t n_parts;
	uint32_t *found; /* 1 if the part has an infinity or NaN, otherwise 0; shape (n_parts) */
};

/* Combines the results of n_parts parts into n_groups results. Group g has the parts g, g + n_groups, ... reduced[g]
 * becomes 1 if found[p] is 1 for at least one part p of the group, otherwise 0. Kernel indices: n_groups. */
struct psd_gpu_look_reduce {
	const uint32_t *found;
	uint32_t n_parts, n_groups;
	uint32_t *reduced;
};

/* Overwrites all values by `nan` if *found is not 0 or `found` is NULL. Kernel indices: elements. */
struct psd_gpu_spoil {
	uint16_t *values;
	uint16_t nan;
	const uint32_t *found; /* result of look_reduce for all values; NULL: the values are always overwritten */
};

/* ---- updates ---- */

/* Partial sums of the squares of one or two arrays. Part p has the elements p, p + n_parts, p + 2 * n_parts, ... Kernel
 * indices: 2 * n_parts, or n_parts if only arrays[0] is needed. */
struct psd_gpu_norms {
	const float *arrays[2];
	uint64_t elements;
	uint32_t n_parts;
	double *partial; /* partial sums of squares; shape (2, n_parts) */
};

/* Adds the n_parts partial sums of each array into n_groups sums. Kernel indices: (number of arrays) * n_groups. */
struct psd_gpu_norms_reduce {
	const double *partial; /* partial sums of squares; shape (arrays, n_parts) */
	uint32_t n_parts, n_groups;
	double *reduced; /* sums of squares; shape (arrays, n_groups) */
};

/* Conversion between sums of squares and the floats in which they are sent. Kernel indices: number of sums. */
struct psd_gpu_squares {
	double *squares;
	float *sent;
	bool is_back; /* converts `sent` to `squares`; false: `squares` to `sent` */
	/* factor by which the values are multiplied whose squares come back; NULL: 1 */
	const float *ratio;
};

/* Computes the learning rate of a tensor by LARS, as psd_update_by_norms(). Kernel indices: 1. */
struct psd_gpu_trust {
	const double *squares[2]; /* sums of squares of the weight and of the gradient; n_groups sums for each */
	uint32_t n_groups;
	float rate, weight_decay;
	double trust_ratio;
	float *own_rate;
};

/* Computes the clipping ratio as psd_clip_find() does. Kernel indices: 1. */
struct psd_gpu_clip {
	const double *reduced; /* sums of squares, whose total is the squared norm; shape (n_groups) */
	uint32_t n_groups;
	double most_norm;
	float *ratio;
};

/* Multiplies the values by *ratio, with the same bits as psd_clip_shrink(). Kernel indices: elements. */
struct psd_gpu_shrunk {
	float *values;
	const float *ratio;
};

/* Update rule of SGD for one tensor. Kernels that use it give the same bits as psd_update_apply(). */
struct psd_gpu_step {
	/* Address of the tensor's learning rate by LARS (psd_gpu_trust), which replaces `rate`; NULL: `rate` is
	 * used. */
	const float *own_rate;
	float rate, momentum, weight_decay;
	bool is_nesterov;
};

/* Update by SGD. Kernel indices: elements. */
struct psd_gpu_update {
	struct psd_gpu_step step;
	float *weight, *history;
	const float *gradient;
};

/* Update by AdamW, with the same bits as psd_update_apply(). Kernel indices: elements. */
struct psd_gpu_adaptive {
	float rate, weight_decay;
	float beta1, beta2, epsilon, mean_ratio, root_ratio;
	float *weight, *history, *squares;
	const float *gradient;
};

/* difference = from - ratio * what, for each element. Kernel indices: elements. */
struct psd_gpu_difference {
	float *difference;
	const float *from, *what;
	float ratio;
};

/* ---- chunks of sparse all-reduce ---- */

/* CHUNK_PARTS: number of parts of a chunk; one index handles each part, and part p has the elements p, p +
 * PSD_GPU_CHUNK_PARTS, ... CHUNK_GROUPS: number of sums into which the partial sums of a chunk are then added. CHUNKS
 * and SPANS: largest numbers of chunks and of spans in one launch. */
enum { PSD_GPU_CHUNK_PARTS = 1024, PSD_GPU_CHUNK_GROUPS = 32, PSD_GPU_CHUNKS = 64, PSD_GPU_SPANS = 40 };

/* Span: the elements that belong both to one chunk and to one tensor. */
struct psd_gpu_span {
	float *weight;	       /* address of the weight of the span's first element */
	const float *gradient; /* address of the gradient of the span's first element */
	uint64_t first;	       /* index, in `residual` and `history`, of the first element that belongs to the span */
	uint64_t first_chosen; /* index of the span's first element in `chosen` */
	uint64_t elements;
	struct psd_gpu_step step;
	bool is_chosen;
};

/* Adjacent chunks that one launch of a kernel handles, and their spans. Chunk c of the launch (from 0) has the spans
 * spans[ends[c - 1]] to spans[ends[c] - 1]; for c = 0 they begin with spans[0]. */
struct psd_gpu_spans {
	struct psd_gpu_span spans[PSD_GPU_SPANS];
	uint32_t ends[PSD_GPU_CHUNKS];
	uint32_t first_chunk, n_chunks;
	bool is_continued; /* the first chunk also has spans that the previous launch of the kernel handled */
	bool is_relative;  /* see psd_chunks.is_relative */
	/* Partial sums of absolute values; shape (PSD_GPU_CHUNKS, PSD_GPU_CHUNK_PARTS). Chunk number c of the bucket
	 * uses row c % PSD_GPU_CHUNKS. */
	double *partial;
};

/* Executes psd_chunks_gather() for the chunks of a launch. Kernel indices: n_chunks * PSD_GPU_CHUNK_PARTS. */
struct psd_gpu_gather {
	struct psd_gpu_spans of;
	float *residual, *chosen;
	float kept_ratio;
};

/* Executes psd_chunks_apply() for the chunks of a launch. Kernel indices: n_chunks * PSD_GPU_CHUNK_PARTS. */
struct psd_gpu_apply_chunks {
	struct psd_gpu_spans of;
	float *history;
	const float *chosen;
	bool is_skipped;
};

/* Norms of chunks: norms[first_chunk + i] = (sum of all groups of chunk i) / divisor, unless is_left_out[i]. Kernel
 * indices: chunks of the launch. */
struct psd_gpu_chunk_norms {
	const double *reduced; /* sums of absolute values; shape (PSD_GPU_CHUNKS, PSD_GPU_CHUNK_GROUPS) */
	float *norms;
	uint32_t first_chunk;
	double divisor;
	bool is_left_out[PSD_GPU_CHUNKS]; /* the norm of this chunk is not changed */
};

/* ---- compressed blocks; for the words block, lane and unit see engine/encodings/compression.h ---- */

enum {
	/* Largest number of compressed blocks in one launch. They have about as many lanes as a large GPU has
	 * threads. */
	PSD_GPU_BLOCKS = 4096,
	PSD_GPU_BLOCK_SPANS = 40
};

/* Span: the compressed blocks of one tensor that one launch handles. All have the full length, except that the tensor's
 * last block may be shorter. */
struct psd_gpu_block_span {
	float *gradient; /* address of the gradient of the span's first value */
	const float *weight;
	uint64_t first; /* index of the span's first value in psd_gpu_blocks.residual */
	uint64_t elements;
	/* number of the span's last block plus 1; the blocks of a kernel launch are numbered from 0 over all its spans
	 * */
	uint32_t end;
	float weight_decay;
};

/* All compressed blocks that one launch of a kernel handles, at most PSD_GPU_BLOCKS. The kernel's comment says what
 * one kernel index handles: a block, one of the PSD_BLOCK_LANES lanes of a block, or one lane of one unit of a block. A
 * unit is PSD_BLOCK_UNIT consecutive values. */
struct psd_gpu_blocks {
	struct psd_gpu_block_span spans[PSD_GPU_BLOCK_SPANS];
	/* For a compressed block of full length: number of its values, number of values that it sends (top-k), and
	 * number of its packed bytes. */
	uint32_t elements, kept, packed_bytes;
	/* address of the residual of the first value in the first compressed block that this kernel launch handles */
	float *residual;
	/* Address of the velocity (momentum) of the first value in the first compressed block that this kernel launch
	 * handles; NULL: no momentum is applied before compression. */
	float *velocity;
	char *packed; /* address of the first compressed block that this kernel launch handles */
	float momentum;
	bool is_nesterov;
};

/* First kernel of compression by one-bit: adds gradient or velocity to the residual, writes the sign bits of the
 * residual to `packed`, and computes sums. Kernel indices: lanes of all compressed blocks. */
struct psd_gpu_one_bit_look {
	struct psd_gpu_blocks of;
	/* For each lane, sum of its values below 0 (row 0) and sum of its other values (row 1); shape (2,
	 * PSD_GPU_BLOCKS, PSD_BLOCK_LANES). */
	float *sums;
	uint16_t *n_low; /* number of values below 0 in each lane; shape (PSD_GPU_BLOCKS, PSD_BLOCK_LANES) */
};

/* Second kernel of compression by one-bit: for each compressed block, computes the mean of its values below 0 and the
 * mean of its other values, and writes both to `packed`. Kernel indices: compressed blocks. */
struct psd_gpu_one_bit_reduce {
	struct psd_gpu_blocks of;
	const float *sums;
	const uint16_t *n_low;
};

/* Decompresses values by one-bit: residual += ratio * value if is_to_residual, otherwise gradient = ratio * value.
 * Kernel indices: lanes of all units. */
struct psd_gpu_one_bit_add {
	struct psd_gpu_blocks of;
	float ratio;
	bool is_to_residual;
};

/* Compression by int8. int8_look adds gradient or velocity to the residual and finds the largest magnitude of each
 * lane; kernel indices: lanes of all compressed blocks. int8_reduce writes the step of each block; kernel indices:
 * compressed blocks. int8_take and int8_put then need only struct psd_gpu_blocks. */
struct psd_gpu_int8 {
	struct psd_gpu_blocks of;
	uint32_t *largest; /* bits of the largest magnitude; shape (PSD_GPU_BLOCKS, PSD_BLOCK_LANES) */
};

/* Top-k selection by radix select. The key of a value is an integer that orders values by magnitude. The lowest
 * selected key of each compressed block is found digit by digit, from the highest digit to the lowest. For each digit,
 * top_k_count counts the keys of each lane, then top_k_choose chooses the digit. When all digits are known, top_k_count
 * counts once more. Then top_k_take knows the position at which each lane writes its values. */
enum { PSD_GPU_KEY_BITS = 15, PSD_GPU_DIGIT_BITS = 3, PSD_GPU_DIGITS = (1 << PSD_GPU_DIGIT_BITS) - 1 };

struct psd_gpu_keys {
	struct psd_gpu_blocks of;
	uint32_t shift; /* number of the lowest bit of the digit that is counted now, in a key, from 0 */
	/* This launch of top_k_count counts the highest digit. Before that, it adds gradient or velocity to the
	 * residual. */
	bool is_first;
	bool is_last; /* this launch is the last count, when all digits of the lowest selected key are known */
	/* Lowest selected key of each compressed block; digits that are not known yet are 0; shape
	 * (PSD_GPU_BLOCKS). */
	uint32_t *lowest;
	/* Count d is the number of keys whose current digit is at least d + 1; shape (PSD_GPU_BLOCKS, PSD_GPU_DIGITS,
	 * PSD_BLOCK_LANES). With is_last, count 0 is the number of keys that are at least the lowest selected key,
	 * count 1 is the number of keys above it, and the others are not used. */
	uint16_t *counts;
};

/* ---- low-rank compression, see real/device/low_rank.h ---- */

/* Limits of one launch. It copies at most PSD_GPU_MOVE_SPANS spans, divided into units of PSD_GPU_MOVE_UNIT values
 * with PSD_GPU_PARTS indices each. It handles at most PSD_GPU_MATRICES matrices. All their rank x rank matrices
 * together have at most PSD_GPU_SQUARES elements, and at most PSD_GPU_PRODUCT_PARTS partial sums. Each matrix has at
 * most PSD_GPU_PRODUCT_LANES lanes (psd_gpu_matrix.n_lanes). */
enum {
	PSD_GPU_MOVE_SPANS = 96,
	PSD_GPU_MOVE_UNIT = 1024,
	PSD_GPU_MATRICES = 40,
	PSD_GPU_SQUARES = 1 << 14,
	PSD_GPU_PRODUCT_PARTS = 1 << 16,
	PSD_GPU_PRODUCT_LANES = 256,
};

/* Span: values of one tensor to be copied. If `adds`, they are added to `to`; otherwise they overwrite `to`. */
struct psd_gpu_move_span {
	float *to;
	const float *from;
	uint64_t elements;
	/* number of the span's last unit plus 1; the units of a kernel launch are numbered from 0 over all its spans */
	uint32_t end;
	bool adds;
};

/* Copies or adds the values of several tensors. Kernel indices: (units of all spans) * PSD_GPU_PARTS. */
struct psd_gpu_low_rank_move {
	struct psd_gpu_move_span spans[PSD_GPU_MOVE_SPANS];
};

/* Low-rank factors of one tensor. */
struct psd_gpu_matrix {
	float *left, *right; /* factors; shapes (rows, rank) and (rank, columns) */
	uint32_t rows, columns;
	uint32_t number; /* number of the tensor in the graph */
	/* Number of lanes; lane l adds the products of rows l, l + n_lanes, l + 2 * n_lanes, ... */
	uint32_t n_lanes;
	/* number of the matrix's last partial sum plus 1; partial sums are numbered from 0 over all matrices of a
	 * kernel launch */
	uint64_t parts_end;
	/* number of the left factor's last row plus 1; rows are numbered from 0 over all left factors of a kernel
	 * launch */
	uint64_t rows_end;
};

/* Low-rank factors that one launch handles. A pair is a pair of columns j and k (j <= k) of a left factor, whose inner
 * product is computed. n: number of matrices; n_pairs: number of pairs of one matrix. */
struct psd_gpu_matrices {
	struct psd_gpu_matrix matrices[PSD_GPU_MATRICES];
	uint32_t n, rank, n_pairs;
	/* 1 if a part of a row of `right` has a value that is not 0, otherwise 0; shape (n, rank, PSD_GPU_PARTS) */
	uint32_t *found;
	double *parts;	  /* partial sums of inner products; for each matrix, an array of shape (n_lanes, n_pairs) */
	double *products; /* inner products; shape (n, rank, rank), of which only the upper triangles are used */
	/* Cholesky factors, with factor^T * factor = products; shape (n, rank, rank), of which only the upper triangles
	 * are used. */
	double *factor;
	/* Inverses of the Cholesky factors; shape (n, rank, rank), of which only the upper triangles are used. */
	double *inverse;
};

/* Computes row `row` of the Cholesky factors of n matrices (rank x rank) from the rows above it. Kernel indices: n *
 * (rank - row), one for each element of these rows on the diagonal or right of it. */
struct psd_gpu_low_rank_factor {
	struct psd_gpu_matrices of;
	uint32_t row;
};

struct psd_device;

#define PSD_DECLARE_GPU_KERNEL(name, arguments)                                                                        \
	enum psd_status psd_gpu_run_##name(struct psd_device *device, const struct psd_gpu_##arguments *of,            \
					   uint64_t n_indices, struct psd_error *err) PSD_MUST_CHECK;
#ifdef __cplusplus
extern "C" {
#endif
PSD_GPU_KERNELS(PSD_DECLARE_GPU_KERNEL)
#ifdef __cplusplus
}
#endif
#undef PSD_DECLARE_GPU_KERNEL

#endif
