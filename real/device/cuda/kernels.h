/* What is told to the kernels that cuBLAS and cuDNN have not. Each does its work once for each index from 0 on, by the
 * body of its name (bodies_*.h); psd_cuda_run_NAME() begins so many on the compute stream. An index writes what no
 * other one reads or writes, and sums go in an order that depends on shapes alone, so that equal input gives equal
 * bits. */
#ifndef PSD_REAL_CUDA_KERNELS_H
#define PSD_REAL_CUDA_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

#define PSD_CUDA_SINGLE_KERNELS(ROW)                                                                                   \
	ROW(move)                                                                                                      \
	ROW(inverse)                                                                                                   \
	ROW(sums)                                                                                                      \
	ROW(sums_end)                                                                                                  \
	ROW(prelu)                                                                                                     \
	ROW(prelu_back)                                                                                                \
	ROW(multiply)                                                                                                  \
	ROW(dropout)                                                                                                   \
	ROW(counters)                                                                                                  \
	ROW(lrn)                                                                                                       \
	ROW(lrn_back)                                                                                                  \
	ROW(resize)                                                                                                    \
	ROW(resize_back)                                                                                               \
	ROW(softmax)                                                                                                   \
	ROW(softmax_back)                                                                                              \
	ROW(loss_largest)                                                                                              \
	ROW(loss_exponents)                                                                                            \
	ROW(loss_end)                                                                                                  \
	ROW(loss_back)                                                                                                 \
	ROW(embedding)                                                                                                 \
	ROW(token_chains)                                                                                              \
	ROW(embedding_back)                                                                                            \
	ROW(position)                                                                                                  \
	ROW(position_back)                                                                                             \
	ROW(prefix_back)                                                                                               \
	ROW(layer_norm_sums)                                                                                           \
	ROW(layer_norm_squares)                                                                                        \
	ROW(layer_norm_end)                                                                                            \
	ROW(layer_norm_dots)                                                                                           \
	ROW(layer_norm_back)                                                                                           \
	ROW(rotary_angles)                                                                                             \
	ROW(rotary)                                                                                                    \
	ROW(attention_sums)                                                                                            \
	ROW(attention_end)                                                                                             \
	ROW(attention_dots)                                                                                            \
	ROW(attention_back)                                                                                            \
	ROW(norms)                                                                                                     \
	ROW(norms_fold)                                                                                                \
	ROW(trust)                                                                                                     \
	ROW(clip)                                                                                                      \
	ROW(shrunk)                                                                                                    \
	ROW(look)                                                                                                      \
	ROW(look_fold)                                                                                                 \
	ROW(spoil)                                                                                                     \
	ROW(update)                                                                                                    \
	ROW(adaptive)                                                                                                  \
	ROW(difference)                                                                                                \
	ROW(gather)                                                                                                    \
	ROW(apply_chunks)                                                                                              \
	ROW(chunk_norms)                                                                                               \
	ROW(one_bit_look)                                                                                              \
	ROW(one_bit_fold)                                                                                              \
	ROW(one_bit_add)                                                                                               \
	ROW(top_k_count)                                                                                               \
	ROW(top_k_choose)                                                                                              \
	ROW(top_k_take)                                                                                                \
	ROW(top_k_put)                                                                                                 \
	ROW(low_rank_move)                                                                                             \
	ROW(low_rank_look)                                                                                             \
	ROW(low_rank_start)                                                                                            \
	ROW(low_rank_products)                                                                                         \
	ROW(low_rank_fold)                                                                                             \
	ROW(low_rank_factor)                                                                                           \
	ROW(low_rank_inverse)                                                                                          \
	ROW(low_rank_basis)

/* Those that do four neighbouring elements for an index where these lie so that one access has them all. */
#define PSD_CUDA_FOUR_KERNELS(ROW)                                                                                     \
	ROW(convert)                                                                                                   \
	ROW(add)                                                                                                       \
	ROW(affine)                                                                                                    \
	ROW(function)                                                                                                  \
	ROW(function_back)                                                                                             \
	ROW(pool)                                                                                                      \
	ROW(pool_back)

#define PSD_CUDA_KERNELS(ROW)                                                                                          \
	PSD_CUDA_SINGLE_KERNELS(ROW)                                                                                   \
	PSD_CUDA_FOUR_KERNELS(ROW)

enum psd_cuda_type { PSD_CUDA_FLOAT, PSD_CUDA_HALF, PSD_CUDA_BFLOAT }; /* IEEE 32 and 16 bits, the upper 16 of 32 */

/* In the GPU's memory. */
struct psd_cuda_values {
	void *data;
	enum psd_cuda_type type;
};

/* A batch of maps: neighbours along the width lie side by side, or where channels come last the channels of a place. */
struct psd_cuda_maps {
	uint32_t channels, height, width;
	bool is_channels_last;
};

/* Elements in the order in which the last of four axes runs fastest: offset + sum of position times stride. */
struct psd_cuda_view {
	uint32_t sizes[4], strides[4], offset;
};

/* Throughout: `adds` puts the result on top of what `to` has; to may be an input where they have the same index. */

/* Element i of one view becomes element i of the other, times scale. */
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

/* left + right; then a rectifier if there is one. */
struct psd_cuda_add {
	struct psd_cuda_values left, right, to;
	float slope; /* below 0 */
	bool is_rectified;
};

/* The channel of an element: its index / inner % channels. inner: places of a map, or 1 where channels come last. */
struct psd_cuda_channel {
	uint32_t inner, channels;
};

/* (value - mean) inverse gamma + beta, vectors by channel, NULL: 0, 1, 1, 0; then a rectifier if there is one. */
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
	PSD_CUDA_SUM_PRODUCT,		/* left right */
	PSD_CUDA_SUM_BELOW_ZERO,	/* left right where right is at most 0 */
	PSD_CUDA_SUM_NORMALISED,	/* left (right - mean) inverse, vectors by channel, NULL: 0 and 1 */
	PSD_CUDA_SUM_NORMALISED_PLACES, /* the same, vectors by element k */
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
	PSD_CUDA_ELU,	 /* alpha: the bound below 0 */
	PSD_CUDA_CLIP,	 /* beta: the upper bound; the lower one is 0 */
	PSD_CUDA_LINEAR, /* alpha: factor, beta: summand */
	PSD_CUDA_EXP,
	/* from here on the derivative needs the input: */
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

/* to = diff times the derivative, which follows from the result, or where it must from the input. */
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

/* right: as many as left, or where it is flat one value for each sample and channel. */
struct psd_cuda_multiply {
	struct psd_cuda_values left, right, to;
	struct psd_cuda_maps maps;
	bool is_flat;
	bool adds;
};

/* Four neighbours of the plain order an index, of a sample (elements + 3) / 4 indices: they share a random draw. Of the
 * value and of its gradient alike. */
struct psd_cuda_dropout {
	struct psd_cuda_values from, to;
	struct psd_cuda_maps maps;
	uint64_t seed;
	const uint32_t *counters; /* of the first sample, and of the iteration */
	uint32_t layer;
	uint32_t threshold; /* random words below it drop their element */
	float scale;	    /* of what is kept */
	bool adds;
};

/* What masks depend on in an iteration: beside kernels' arguments, which are the same in each. One index. */
struct psd_cuda_counters {
	uint32_t *to;
	uint32_t first_sample, iteration;
};

/* Over `size` neighbouring channels, or size x size places: ratio = k + alpha * sum of squares. */
struct psd_cuda_lrn {
	struct psd_cuda_values from, to;
	struct psd_cuda_maps maps;
	float *ratios; /* of each element, for the way back */
	uint32_t size;
	bool is_within_channel;
	float alpha, beta, k; /* alpha: divided by the number of summands */
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

/* Windows as Caffe has them: a maximum ignores padding, an average counts it, but not what lies beyond it. */
struct psd_cuda_window {
	struct psd_cuda_maps in, out;
	uint32_t kernel_height, kernel_width, stride_height, stride_width, pad_height, pad_width;
	bool is_max;
};

struct psd_cuda_pool {
	struct psd_cuda_values from, to;
	struct psd_cuda_window window;
	uint32_t *places; /* of each output the maximum's row * width + column; the first one among equals */
};

/* Indices: of the input. */
struct psd_cuda_pool_back {
	struct psd_cuda_values diff, to;
	struct psd_cuda_window window;
	const uint32_t *places;
	bool adds;
};

/* Bilinear between the nearest four places; corners lie on corners. */
struct psd_cuda_resize {
	struct psd_cuda_values from, to;
	struct psd_cuda_maps in, out;
};

/* Indices: of the input. */
struct psd_cuda_resize_back {
	struct psd_cuda_values diff, to;
	struct psd_cuda_maps in, out;
	bool adds;
};

/* Probabilities of the channels at a place. Indices: places of all samples. */
struct psd_cuda_softmax {
	struct psd_cuda_values from, to;
	struct psd_cuda_maps maps;
};

/* to = result (diff - the sum of result times diff over the channels) */
struct psd_cuda_softmax_back {
	struct psd_cuda_values result, diff, to;
	struct psd_cuda_maps maps;
	bool adds;
};

/* ---- softmax's loss: a label for each place of each sample, whose channels are its scores of the classes ---- */

/* Of a place's so many indices each has every so manieth channel. */
enum { PSD_CUDA_PARTS = 32 };

struct psd_cuda_loss {
	struct psd_cuda_values scores;
	struct psd_cuda_channel channel;
	const int32_t *labels;	  /* (places) */
	float *largest;		  /* (places, parts) */
	uint32_t *likely_classes; /* theirs, the lowest among equals */
	float *exponents;	  /* as scores: of these less the place's largest */
	double *partial_sums;	  /* (places, parts) of them */
	double *sums;		  /* (places) */
	double *losses;		  /* (places) */
	uint32_t *is_correct;	  /* (places) */
};

struct psd_cuda_loss_largest {
	struct psd_cuda_loss loss;
};

struct psd_cuda_loss_exponents {
	struct psd_cuda_loss loss;
};

struct psd_cuda_loss_end { /* indices: places */
	struct psd_cuda_loss loss;
};

/* to = weight (probability - 1 for the label); indices: of the scores. */
struct psd_cuda_loss_back {
	struct psd_cuda_loss loss;
	struct psd_cuda_values to;
	float weight;
	bool adds;
};

/* ---- sequences ---- */

/* The row of the table that each place's token names. Tokens are whole numbers within the table. */
struct psd_cuda_embedding {
	struct psd_cuda_values to;
	struct psd_cuda_channel channel;
	const float *tokens, *table; /* (places), (tokens, channels) */
};

/* Places that have the same token, as chains; indices: places. */
struct psd_cuda_token_chains {
	const float *tokens;
	uint32_t n_places;
	uint32_t *next;	    /* the next place, or n_places */
	uint32_t *is_first; /* of its chain */
};

/* A row of dtable = scale times the sum of diff along the chain; others stay. Indices: of diff; those at the first
 * place of a chain follow it. */
struct psd_cuda_embedding_back {
	struct psd_cuda_values diff;
	struct psd_cuda_channel channel;
	const float *tokens;
	const uint32_t *next, *is_first;
	uint32_t n_places;
	float *dtable;
	float scale;
};

/* Plus the weight, which is the same for all samples and lies in the plain order. */
struct psd_cuda_position {
	struct psd_cuda_values from, to;
	struct psd_cuda_channel channel;
	uint32_t places; /* of a sample */
	const float *weight;
};

/* dweight = scale times the sum of diff over the samples; indices: of one sample. */
struct psd_cuda_position_back {
	struct psd_cuda_values diff;
	struct psd_cuda_channel channel;
	uint32_t places, batch;
	float *dweight;
	float scale;
};

/* dweight (channels, own) = scale times the sum over the samples of diff at the first `own` of their places; indices:
 * of dweight. */
struct psd_cuda_prefix_back {
	struct psd_cuda_values diff;
	struct psd_cuda_channel channel;
	uint32_t places, own, batch;
	float *dweight;
	float scale;
};

/* Normalisation over the channels of a place, in steps; of its PSD_CUDA_PARTS indices each has every so manieth
 * channel. gamma and beta by channel, NULL: 1 and 0. Where it is not centred the mean is 0, and the variance the mean
 * square: that of RMSNorm. */
struct psd_cuda_layer_norm {
	struct psd_cuda_values from;
	struct psd_cuda_channel channel;
	bool is_centred;
	const float *gamma, *beta;
	float epsilon;
	float *mean, *inverse; /* (places): 1 / sqrt(variance + epsilon) */
	float *partial[2];     /* (places, parts) */
};

struct psd_cuda_layer_norm_sums { /* of values, the first partial ones; left out where it is not centred */
	struct psd_cuda_layer_norm norm;
};

struct psd_cuda_layer_norm_squares { /* the mean; of squared differences from it, the second partial sums */
	struct psd_cuda_layer_norm norm;
};

struct psd_cuda_layer_norm_end { /* the inverse and the result */
	struct psd_cuda_layer_norm norm;
	struct psd_cuda_values to;
};

/* Partial sums of diff times gamma, and of that times the normalised value. */
struct psd_cuda_layer_norm_dots {
	struct psd_cuda_layer_norm norm;
	struct psd_cuda_values diff;
};

struct psd_cuda_layer_norm_back {
	struct psd_cuda_layer_norm norm;
	struct psd_cuda_values diff, to;
	bool adds;
};

/* Angle i % half of place i / half is place base^(-i % half / half); indices: places times half. */
struct psd_cuda_rotary_angles {
	float *angles; /* of each its cosine and sine */
	uint32_t half;
	double base_log; /* base's natural logarithm */
};

/* Rotates the first `heads` heads of each place by its angles, channel k with channel k + half of the head, or back
 * again. The channels of from and to go on behind those heads. Indices: places of all samples times heads times half.
 * */
struct psd_cuda_rotary {
	struct psd_cuda_values from, to;
	struct psd_cuda_channel from_channel, to_channel;
	const float *angles;
	uint32_t places; /* of a sample */
	uint32_t heads, half;
	bool is_back;
	bool adds;
};

/* Rows of scores, which become probabilities in place: a row for each place, head and sample, with a column for each
 * place. Of a row's PSD_CUDA_PARTS indices each has every so manieth column. */
struct psd_cuda_attention {
	struct psd_cuda_values rows;
	uint32_t places;
	bool is_causal;	   /* columns of later places than the row's own become 0 */
	float *partial[2]; /* (rows, parts) */
};

struct psd_cuda_attention_sums { /* each part's largest score, and the sum of exponents of scores less that one */
	struct psd_cuda_attention attention;
};

struct psd_cuda_attention_end { /* the probabilities */
	struct psd_cuda_attention attention;
};

struct psd_cuda_attention_dots { /* partial sums of probability times diff */
	struct psd_cuda_attention attention;
	struct psd_cuda_values diff;
};

/* diff becomes that of the scores, in place: probability (diff - the row's sum). */
struct psd_cuda_attention_back {
	struct psd_cuda_attention attention;
	struct psd_cuda_values diff;
};

/* ---- what travels, in 16 bits ---- */

/* Whether a part has an infinity or a NaN: part p has the elements p, p + n_parts, ...; indices: n_parts. */
struct psd_cuda_look {
	const uint16_t *values;
	uint64_t elements;
	uint16_t infinity; /* all bits of the exponent */
	uint32_t n_parts;
	uint32_t *found; /* (n_parts): 0 or 1 */
};

/* Of n_parts fewer: each has found what one of its own has; indices: n_groups. */
struct psd_cuda_look_fold {
	const uint32_t *found;
	uint32_t n_parts, n_groups;
	uint32_t *folded;
};

/* All become `nan` if something was found, or where nothing was looked for. */
struct psd_cuda_spoil {
	uint16_t *values;
	uint16_t nan;
	const uint32_t *found; /* one, or NULL */
};

/* ---- updates ---- */

/* Partial sums of squares of two arrays: part p has the elements p, p + n_parts, ...; indices: 2 n_parts. */
struct psd_cuda_norms {
	const float *arrays[2];
	uint64_t elements;
	uint32_t n_parts;
	double *partial; /* (2, n_parts) */
};

/* Each array's parts become n_groups sums; indices: arrays times n_groups. */
struct psd_cuda_norms_fold {
	const double *partial; /* (arrays, n_parts) */
	uint32_t n_parts, n_groups;
	double *folded; /* (arrays, n_groups) */
};

/* The rate of psd_update_by_norms(); index 0 alone. */
struct psd_cuda_trust {
	const double *folded; /* of the weight, of the gradient */
	uint32_t n_groups;
	float rate, weight_decay;
	double trust_ratio;
	float *own_rate;
};

/* The ratio of psd_clip_find(), squares added up group by group; index 0 alone. */
struct psd_cuda_clip {
	const double *folded; /* (n_groups) */
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
	const float *own_rate; /* instead of rate, unless NULL */
	float rate, momentum, weight_decay;
	bool is_nesterov;
};

struct psd_cuda_update {
	struct psd_cuda_step step;
	float *weight, *history;
	const float *gradient;
};

/* psd_update_apply() of an adaptive update, bit for bit. */
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

/* What one chunk has of one tensor. */
struct psd_cuda_span {
	float *weight;	       /* of the tensor, from the span on */
	const float *gradient; /* from there on, too */
	uint64_t first;	       /* of the residual and history */
	uint64_t first_chosen; /* of the chosen values */
	uint64_t elements;
	struct psd_cuda_step step;
	bool is_chosen;
};

/* Chunks of a launch follow each other; chunk c has the spans up to ends[c]. */
struct psd_cuda_spans {
	struct psd_cuda_span spans[PSD_CUDA_SPANS];
	uint32_t ends[PSD_CUDA_CHUNKS];
	uint32_t first_chunk, n_chunks;
	bool is_continued; /* the first chunk's earlier spans were in the launch before */
	double *partial;   /* (PSD_CUDA_CHUNKS, PSD_CUDA_CHUNK_PARTS), of a chunk at its number % PSD_CUDA_CHUNKS */
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

/* norms[first_chunk + i] = its sum / divisor; indices: chunks. Those that are left out keep theirs. */
struct psd_cuda_chunk_norms {
	const double *folded; /* (PSD_CUDA_CHUNKS, PSD_CUDA_CHUNK_GROUPS) */
	float *norms;
	uint32_t first_chunk;
	double divisor;
	bool is_left_out[PSD_CUDA_CHUNKS];
};

/* ---- blocks that travel compressed; they, their lanes and units are those of engine/encodings/compression.h ---- */

enum { PSD_CUDA_BLOCKS = 4096, PSD_CUDA_BLOCK_SPANS = 40 }; /* a large GPU has as many threads as these have lanes */

/* What a launch has of one tensor: whole blocks, of which the last may have fewer values. */
struct psd_cuda_block_span {
	float *gradient; /* of the tensor, from the span on */
	const float *weight;
	uint64_t first; /* of the launch's residual */
	uint64_t elements;
	uint32_t end; /* of the launch's blocks */
	float weight_decay;
};

/* Blocks of a launch, PSD_CUDA_BLOCKS at most. Indices are blocks, or all their lanes, or lanes of all their units. */
struct psd_cuda_blocks {
	struct psd_cuda_block_span spans[PSD_CUDA_BLOCK_SPANS];
	uint32_t elements, kept, packed_bytes; /* of a block */
	float *residual;		       /* from the first block on, as are the next */
	float *velocity;		       /* NULL: gradients travel without momentum */
	char *packed;
	float momentum;
	bool is_nesterov;
};

/* residual += what is to travel, and the words and sums of that; indices: lanes. */
struct psd_cuda_one_bit_look {
	struct psd_cuda_blocks of;
	float *sums;	 /* (2, PSD_CUDA_BLOCKS, lanes): of values below 0, and of the others */
	uint16_t *n_low; /* (PSD_CUDA_BLOCKS, lanes) */
};

/* A block's means; indices: blocks. */
struct psd_cuda_one_bit_fold {
	struct psd_cuda_blocks of;
	const float *sums;
	const uint16_t *n_low;
};

/* residual += ratio times what travels, or gradient = that; indices: lanes of units. */
struct psd_cuda_one_bit_add {
	struct psd_cuda_blocks of;
	float ratio;
	bool is_to_residual;
};

/* Magnitudes are compared by keys. The lowest key that travels of each block is found digit by digit, from the first
 * one on: lanes count, then the block chooses. When it is known lanes count once more, for what each of them takes. */
enum { PSD_CUDA_KEY_BITS = 15, PSD_CUDA_DIGIT_BITS = 3, PSD_CUDA_DIGITS = (1 << PSD_CUDA_DIGIT_BITS) - 1 };

struct psd_cuda_keys {
	struct psd_cuda_blocks of;
	uint32_t shift;	  /* of the digit that is looked for */
	bool is_first;	  /* no digit is known; residual += what is to travel comes before the count */
	bool is_last;	  /* all are known */
	uint32_t *lowest; /* (PSD_CUDA_BLOCKS): digits that are known, then zeros */
	/* (PSD_CUDA_BLOCKS, PSD_CUDA_DIGITS, lanes): of keys with the digit 1 or above, 2 or above, ...; in the end of
	 * keys from the lowest on, and of those above it, and of no use */
	uint16_t *counts;
};

struct psd_cuda_top_k_count { /* indices: lanes */
	struct psd_cuda_keys keys;
};

struct psd_cuda_top_k_choose { /* indices: blocks */
	struct psd_cuda_keys keys;
};

/* What travels leaves the residual; indices: lanes. */
struct psd_cuda_top_k_take {
	struct psd_cuda_keys keys;
};

/* gradient, which is 0, = what travels; indices: what is kept of all blocks. */
struct psd_cuda_top_k_put {
	struct psd_cuda_blocks of;
};

/* ---- gradients that travel as products of narrow matrices, see real/device/low_rank.h ---- */

/* A unit of values has PSD_CUDA_PARTS indices. The matrices of a launch have PSD_CUDA_SQUARES elements of squares of
 * the rank, and PSD_CUDA_PRODUCT_PARTS partial sums, of PSD_CUDA_PRODUCT_LANES lanes of rows at most each. */
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
	uint32_t end; /* of the launch's units */
	bool adds;
};

/* to = from, or to += from, of several tensors; indices: units times PSD_CUDA_PARTS. */
struct psd_cuda_low_rank_move {
	struct psd_cuda_move_span spans[PSD_CUDA_MOVE_SPANS];
};

struct psd_cuda_matrix {
	float *left, *right; /* (rows, rank), (rank, columns) */
	uint32_t rows, columns;
	uint32_t number;    /* of its tensor */
	uint32_t n_lanes;   /* each sums products of every n_lanes-th row */
	uint64_t parts_end; /* of the launch's partial sums */
	uint64_t rows_end;  /* of the launch's rows */
};

/* Of a launch. A pair is of two columns j <= k of a left matrix. */
struct psd_cuda_matrices {
	struct psd_cuda_matrix matrices[PSD_CUDA_MATRICES];
	uint32_t n, rank, n_pairs;
	uint32_t *found;  /* (n, rank, PSD_CUDA_PARTS) */
	double *parts;	  /* of each matrix (lanes, pairs) */
	double *products; /* (n, rank, rank), as are the next; those with j <= k */
	double *factor;	  /* its transposed times itself is the products */
	double *inverse;  /* of the factor */
};

/* Whether a row of right has anything but zeros. A part looks at every PSD_CUDA_PARTS-th column, up to the first such
 * value. Indices: rows times PSD_CUDA_PARTS, as those of the next. */
struct psd_cuda_low_rank_look {
	struct psd_cuda_matrices of;
};

/* Where no part has found anything the row becomes psd_low_rank_start(), bit for bit. */
struct psd_cuda_low_rank_start {
	struct psd_cuda_matrices of;
};

/* Partial sums of products of pairs; indices: the parts of all matrices. */
struct psd_cuda_low_rank_products {
	struct psd_cuda_matrices of;
};

/* These become sums; indices: matrices times pairs. */
struct psd_cuda_low_rank_fold {
	struct psd_cuda_matrices of;
};

/* One row of the factors, from those above it; indices: matrices times elements of the row from the diagonal on. */
struct psd_cuda_low_rank_factor {
	struct psd_cuda_matrices of;
	uint32_t row;
};

/* Rows of the inverse, of which none needs another; indices: matrices times rank. */
struct psd_cuda_low_rank_inverse {
	struct psd_cuda_matrices of;
};

/* left times the inverse, in place; indices: rows of all matrices. */
struct psd_cuda_low_rank_basis {
	struct psd_cuda_matrices of;
};

struct psd_device;

#define PSD_DECLARE_CUDA_KERNEL(name)                                                                                  \
	enum psd_status psd_cuda_run_##name(struct psd_device *device, const struct psd_cuda_##name *of,               \
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
