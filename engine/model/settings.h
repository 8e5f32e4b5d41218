/* What a model file says about a layer of each kind; kinds that are not here are told nothing. */
#ifndef PSD_SETTINGS_H
#define PSD_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct psd_shape {
	uint32_t channels;
	uint32_t height;
	uint32_t width;
};

struct psd_sides {
	uint32_t height;
	uint32_t width;
};

/* Of a convolution or pooling. */
struct psd_window {
	struct psd_sides kernel, stride, pad, dilation; /* kernel 0: of a pooling the whole map; dilation 1: dense */
};

/* Of a deconv, too. */
struct psd_conv_settings {
	struct psd_window window;
	uint32_t outputs; /* channels */
	uint32_t groups;  /* 0: as many as inputs, until the shape is known */
	bool has_bias;
};

/* Numbered as in caffe.proto. */
enum psd_pool_method { PSD_POOL_MAX, PSD_POOL_AVERAGE };
enum psd_pool_rounding { PSD_POOL_UP, PSD_POOL_DOWN };

struct psd_pool_settings {
	struct psd_window window;
	enum psd_pool_method method;
	enum psd_pool_rounding rounding; /* of the number of positions */
};

struct psd_inner_product_settings {
	uint32_t outputs;
	bool has_bias;
};

/* Of a batch norm, layer norm, RMS norm or scale. */
struct psd_affine_settings {
	bool has_scale; /* the learned factor (gamma) */
	bool has_shift; /* the learned summand (beta) */
	double epsilon; /* beside the variance or mean square */
	/* of a batch norm: */
	bool is_fixed;	   /* training too goes by the running statistics, and leaves them alone */
	double kept_ratio; /* what a batch leaves of the running statistics */
	bool is_average;   /* they begin with the first batch, as Caffe's do, not with mean 0 and variance 1 */
};

struct psd_lrn_settings {
	uint32_t size; /* channels that are summed, or the side of the square of places in the own one */
	bool is_within_channel;
	double alpha, beta, k; /* (k + alpha / summands * sum) ^ -beta */
};

struct psd_dropout_settings {
	double ratio; /* dropped share */
};

struct psd_slope_settings { /* of a rectifier or elu */
	double slope;	    /* below 0; of an elu its bound there */
};

struct psd_prelu_settings {
	bool is_shared; /* one slope for all channels */
};

struct psd_linear_settings { /* of a linear or clip */
	double factor;	     /* of a clip its upper bound */
	double summand;
};

enum psd_gelu_approximation { PSD_GELU_EXACT, PSD_GELU_TANH };

struct psd_gelu_settings {
	enum psd_gelu_approximation approximation;
};

struct psd_power_settings {
	double exponent;
};

struct psd_slice_settings {
	uint32_t first, channels;
};

struct psd_permute_settings {
	unsigned order[3]; /* which axis of the input, from 1, becomes channels, rows, columns */
};

struct psd_shuffle_settings {
	uint32_t groups;
};

struct psd_embedding_settings {
	uint32_t vocabulary; /* rows of the table */
	uint32_t outputs;    /* channels */
};

struct psd_prefix_settings {
	uint32_t places;
};

struct psd_attention_settings {
	uint32_t heads;
	uint32_t kv_heads; /* of keys and values; 0: as many as heads, until the shape is known */
	bool is_causal;
	double rotary_base; /* of the angles by which queries and keys are turned; 0: by none */
};

struct psd_loss_settings {
	double weight; /* of it in the sum of losses */
};

/* The member of a layer's own kind holds. */
union psd_layer_settings {
	struct psd_shape shape; /* of an input or reshape */
	struct psd_conv_settings conv;
	struct psd_pool_settings pool;
	struct psd_inner_product_settings inner_product;
	struct psd_affine_settings affine;
	struct psd_lrn_settings lrn;
	struct psd_dropout_settings dropout;
	struct psd_slope_settings slope;
	struct psd_prelu_settings prelu;
	struct psd_linear_settings linear;
	struct psd_gelu_settings gelu;
	struct psd_power_settings power;
	struct psd_slice_settings slice;
	struct psd_permute_settings permute;
	struct psd_shuffle_settings shuffle;
	struct psd_sides size; /* of a resize */
	struct psd_embedding_settings embedding;
	struct psd_prefix_settings prefix;
	struct psd_attention_settings attention;
	struct psd_loss_settings loss;
};

#endif
