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
	struct psd_sides kernel, stride, pad, dilation; /* dilation 1: dense */
};

struct psd_conv_settings {
	struct psd_window window;
	uint32_t outputs; /* channels */
	uint32_t groups;
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

/* Of a batch norm or scale. */
struct psd_affine_settings {
	bool has_scale; /* the learned factor (gamma) */
	bool has_shift; /* the learned summand (beta) */
};

struct psd_lrn_settings {
	uint32_t size; /* channels that are summed */
};

struct psd_dropout_settings {
	double ratio; /* dropped share */
};

/* The member of a layer's own kind holds. */
union psd_layer_settings {
	struct psd_shape input;
	struct psd_conv_settings conv;
	struct psd_pool_settings pool;
	struct psd_inner_product_settings inner_product;
	struct psd_affine_settings affine;
	struct psd_lrn_settings lrn;
	struct psd_dropout_settings dropout;
};

#endif
