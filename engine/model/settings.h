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

/* Window of a convolution or pooling. A pooling's kernel of 0 is the whole map; a dilation of 1 is dense. */
struct psd_window {
	struct psd_sides kernel, stride, pad, dilation;
};

struct psd_conv_settings {
	struct psd_window window;
	uint32_t outputs; /* number of channels of the output */
	uint32_t groups;  /* number of groups; 0 until the shape is known: one for each input channel */
	bool has_bias;
};

/* Ways of pooling, numbered as in caffe.proto; so is the next enum. */
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
	bool has_scale;	   /* the layer has a learned scale (gamma) */
	bool has_shift;	   /* the layer has a learned shift (beta) */
	double epsilon;	   /* summand beside the variance or mean square, which avoids a division by 0 */
	bool is_fixed;	   /* training uses the running statistics and leaves them unchanged */
	double kept_ratio; /* share of the running statistics that remains after a batch */
	bool is_average;   /* running statistics start as those of the first batch, as in Caffe; false: as 0 and 1 */
};

struct psd_lrn_settings {
	uint32_t size;		/* number of summed channels; within a channel: side of a square of positions */
	bool is_within_channel; /* sums are over positions of one channel; false: over channels */
	double alpha, beta, k;	/* constants of the ratio (k + alpha / summands * sum) ^ -beta */
};

struct psd_linear_settings {
	double factor; /* factor on the input; in a clip, the upper bound */
	double summand;
};

enum psd_gelu_approximation { PSD_GELU_EXACT, PSD_GELU_TANH };

struct psd_embedding_settings {
	uint32_t vocabulary; /* number of rows of the table */
	uint32_t outputs;    /* number of channels of the output */
};

struct psd_attention_settings {
	uint32_t heads;
	uint32_t kv_heads; /* number of heads of keys and values; 0 until the shape is known: as many as `heads` */
	bool is_causal;
	double rotary_base; /* base of the angles by which queries and keys are rotated; 0: no rotation */
};

#define PSD_OTHER_TENSORS_MAX 4

struct psd_other_settings {
	struct psd_shape shape;			    /* shape of the output */
	uint64_t forward_flops;			    /* for one sample, as in struct psd_layer */
	uint64_t parameters[PSD_OTHER_TENSORS_MAX]; /* number of values of each tensor; 0: no tensor */
	uint64_t read_values; /* number of values that forward reads; 0: all of the inputs and parameters */
};

/* Settings of a layer. The valid member is named after the layer's kind, or its comment lists the kinds. */
union psd_layer_settings {
	struct psd_shape shape;	       /* for input, reshape */
	struct psd_conv_settings conv; /* for conv, deconv */
	struct psd_pool_settings pool;
	struct psd_inner_product_settings inner_product;
	struct psd_affine_settings affine; /* for batch norm, layer norm, RMS norm, scale */
	struct psd_lrn_settings lrn;
	struct {
		double ratio; /* share of values that are set to 0 */
	} dropout;
	struct {
		double slope; /* factor on inputs below 0; elu: negative of its limit there */
	} slope;	      /* for relu, elu */
	struct {
		bool is_shared; /* one slope for all channels; false: one for each */
	} prelu;
	struct psd_linear_settings linear; /* for linear, clip */
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
		unsigned order[3]; /* axes of the input (1 to 3) that become channels, rows and columns */
	} permute;
	struct {
		uint32_t groups;
	} shuffle;
	struct psd_sides size; /* for resize: height and width of the output */
	struct psd_embedding_settings embedding;
	struct {
		uint32_t places; /* number of learned vectors, each at a position of its own */
	} prefix;
	struct psd_attention_settings attention;
	struct psd_other_settings other;
	struct {
		double weight; /* factor on this loss in the sum of losses */
	} loss;
};

#endif
