/* Settings of a layer, one struct for each kind that has any; its keys are in the kind's file in kinds/. */
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

/* Window of a convolution or pooling. A kernel of 0, in a pooling, is the whole map; a dilation of 1 is dense. */
struct psd_window {
	struct psd_sides kernel, stride, pad, dilation;
};

struct psd_conv_settings {
	struct psd_window window;
	uint32_t outputs; /* channels of the output */
	uint32_t groups;  /* 0 until the shape is known: one group for each input channel */
	bool has_bias;
};

/* Both enums are numbered as in caffe.proto. */
enum psd_pool_method { PSD_POOL_MAX, PSD_POOL_AVERAGE };
enum psd_pool_rounding { PSD_POOL_UP, PSD_POOL_DOWN };

struct psd_pool_settings {
	struct psd_window window;
	enum psd_pool_method method;
	enum psd_pool_rounding rounding; /* direction in which the number of window positions is rounded */
};

struct psd_inner_product_settings {
	uint32_t outputs;
	bool has_bias;
};

/* Settings of a batch norm, layer norm, RMS norm or scale; the last three members are for a batch norm. */
struct psd_affine_settings {
	bool has_scale;	   /* learned scale (gamma) */
	bool has_shift;	   /* learned shift (beta) */
	double epsilon;	   /* summand beside the variance or mean square */
	bool is_fixed;	   /* training uses the running statistics and leaves them unchanged */
	double kept_ratio; /* share of the running statistics that remains after a batch */
	bool is_average;   /* running statistics start as those of the first batch, as in Caffe; else as 0 and 1 */
};

struct psd_lrn_settings {
	uint32_t size;		/* channels that are summed; within a channel: side of a square of positions */
	bool is_within_channel; /* sums positions of one channel */
	double alpha, beta, k;	/* (k + alpha / summands * sum) ^ -beta */
};

struct psd_linear_settings {
	double factor; /* upper bound, in a clip */
	double summand;
};

enum psd_gelu_approximation { PSD_GELU_EXACT, PSD_GELU_TANH };

struct psd_embedding_settings {
	uint32_t vocabulary; /* rows of the table */
	uint32_t outputs;    /* channels of the output */
};

struct psd_attention_settings {
	uint32_t heads;
	uint32_t kv_heads; /* heads of keys and values; 0 until the shape is known: as many as `heads` */
	bool is_causal;
	double rotary_base; /* base of the angles by which queries and keys are rotated; 0: no rotation */
};

/* The member named after the layer's kind, or after the family of kinds in its comment, is valid. */
union psd_layer_settings {
	struct psd_shape shape;	       /* input, reshape */
	struct psd_conv_settings conv; /* conv, deconv */
	struct psd_pool_settings pool;
	struct psd_inner_product_settings inner_product;
	struct psd_affine_settings affine; /* batch norm, layer norm, RMS norm, scale */
	struct psd_lrn_settings lrn;
	struct {
		double ratio; /* share of values that are dropped */
	} dropout;
	struct {
		double slope; /* factor below 0; of an elu, its limit there */
	} slope;	      /* relu, elu */
	struct {
		bool is_shared; /* one slope for all channels */
	} prelu;
	struct psd_linear_settings linear; /* linear, clip */
	struct {
		enum psd_gelu_approximation approximation;
	} gelu;
	struct {
		double exponent;
	} power;
	struct {
		uint32_t first, channels;
	} slice;
	struct {
		unsigned order[3]; /* axes of the input, from 1, that become channels, rows and columns */
	} permute;
	struct {
		uint32_t groups;
	} shuffle;
	struct psd_sides size; /* resize */
	struct psd_embedding_settings embedding;
	struct {
		uint32_t places; /* learned vectors, each at a position of its own */
	} prefix;
	struct psd_attention_settings attention;
	struct {
		double weight; /* factor of this loss in the sum of losses */
	} loss;
};

#endif
