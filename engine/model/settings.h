/* Settings of a layer: one struct for each kind with settings. The kind's file in kinds/ has the keys that set
 * them. */
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

/* Window of a convolution or pooling. A pooling whose kernel is 0 covers the whole map. Dilation is the distance
 * between two values of the kernel on the map; 1: adjacent values. */
struct psd_window {
	struct psd_sides kernel, stride, pad, dilation;
};

struct psd_conv_settings {
	struct psd_window window;
	uint32_t outputs; /* number of channels of the output */
	/* number of groups. In a depthwise convolution it is 0 until psd_layer_infer_shape() sets it to the number of
	 * input channels */
	uint32_t groups;
	bool has_bias;
};

/* Pooling methods and directions of rounding, numbered as in caffe.proto. */
enum psd_pool_method { PSD_POOL_MAX, PSD_POOL_AVERAGE };
enum psd_pool_rounding { PSD_POOL_UP, PSD_POOL_DOWN };

struct psd_pool_settings {
	struct psd_window window;
	enum psd_pool_method method;
	/* rounding of the number of window positions, if the window does not fit evenly */
	enum psd_pool_rounding rounding;
};

struct psd_inner_product_settings {
	uint32_t outputs;
	bool has_bias;
};

/* Settings of a batch norm, layer norm, RMS norm or scale. The last three members are only for a batch norm. */
struct psd_affine_settings {
	bool has_scale; /* the layer has a learned scale (gamma) */
	bool has_shift; /* the layer has a learned shift (beta) */
	double epsilon; /* added to the variance or mean square, to avoid a division by 0 */
	/* training uses the running statistics instead of the batch's, and does not change them */
	bool is_fixed;
	/* Share of a running statistic that remains at each batch; the rest comes from the batch. */
	double kept_ratio;
	/* true: running statistics begin with the statistics of the first batch, as in Caffe; false: with mean 0 and
	 * variance 1 */
	bool is_average;
};

struct psd_lrn_settings {
	/* number of neighbouring channels whose squared values are summed. With is_within_channel: side of the square
	 * of positions whose squared values are summed */
	uint32_t size;
	/* sums are over positions of one channel; false: over channels at one position */
	bool is_within_channel;
	/* constants in the factor (k + alpha / n * sum) ^ -beta on each value; n: number of summed squares, sum: their
	 * sum */
	double alpha, beta, k;
};

struct psd_linear_settings {
	double factor; /* factor on the input; in a clip, the upper bound of the output */
	double summand;
};

enum psd_gelu_approximation { PSD_GELU_EXACT, PSD_GELU_TANH };

struct psd_embedding_settings {
	uint32_t vocabulary; /* number of rows of the table */
	uint32_t outputs;    /* number of channels of the output */
};

struct psd_attention_settings {
	uint32_t heads;
	/* number of heads of keys and values; 0 until the shape is known: then it becomes `heads` */
	uint32_t kv_heads;
	bool is_causal;
	double rotary_base;   /* base of the angles of rotary position encoding; 0: none */
	double dropout_ratio; /* share of probabilities that are set to 0 in training */
};

#define PSD_OTHER_TENSORS_MAX 8

struct psd_other_settings {
	struct psd_shape shape;			    /* shape of the output */
	uint64_t forward_flops;			    /* for one sample, as in struct psd_layer */
	uint64_t parameters[PSD_OTHER_TENSORS_MAX]; /* number of values of each tensor; 0: no tensor */
	uint64_t read_values; /* number of values that forward reads; 0: all of the inputs and parameters */
	bool is_product;      /* a product of matrices or a convolution */
};

/* Settings of a layer. The member with the name of the layer's kind is valid, or the member whose comment names the
 * kind. */
union psd_layer_settings {
	struct psd_shape shape;	       /* for layers of kinds input and reshape */
	struct psd_conv_settings conv; /* for layers of kinds conv and deconv */
	struct psd_pool_settings pool;
	struct psd_inner_product_settings inner_product;
	struct psd_affine_settings affine; /* for layers of kinds batch norm, layer norm, RMS norm and scale */
	struct psd_lrn_settings lrn;
	struct {
		double ratio; /* share of values that are set to 0 in training */
	} dropout;
	struct {
		/* relu: factor on inputs below 0; elu: alpha, so that the output approaches -slope for very negative
		 * inputs */
		double slope;
	} slope; /* for layers of kinds relu and elu */
	struct {
		bool is_shared; /* all channels have one slope; false: each channel has its own */
	} prelu;
	struct psd_linear_settings linear; /* for layers of kinds affine and clip */
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
		/* axes of the input (1 channels, 2 rows, 3 columns) that become channels, rows and columns */
		unsigned order[3];
	} permute;
	struct {
		uint32_t groups;
	} shuffle;
	struct psd_sides size; /* for layers of kind resize: height and width of the output */
	struct psd_embedding_settings embedding;
	struct {
		uint32_t places; /* number of learned vectors that are put in front of a sequence */
	} prefix;
	struct psd_attention_settings attention;
	struct psd_other_settings other;
	struct {
		double weight; /* factor on this loss in the sum of all losses */
	} loss;
};

#endif
