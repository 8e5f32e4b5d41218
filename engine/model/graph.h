/* A network as layers in topological order, with inferred shapes, parameter tensors, FLOPs and bytes. All figures are
 * for one sample (one image); nothing here depends on the batch. A graph is built by the loaders (model.h, prototxt.h),
 * then sealed. */
#ifndef PSD_GRAPH_H
#define PSD_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

enum psd_layer_kind {
	PSD_LAYER_INPUT,
	PSD_LAYER_CONV,
	PSD_LAYER_POOL,	       /* max or average, window */
	PSD_LAYER_GLOBAL_POOL, /* average over the whole map */
	PSD_LAYER_LRN,
	PSD_LAYER_BATCH_NORM, /* with learned scale and shift (2 tensors of `channels`), unless affine is false */
	PSD_LAYER_SCALE,      /* Caffe's Scale: learned scale and, with bias, shift */
	PSD_LAYER_RELU,
	PSD_LAYER_DROPOUT,
	PSD_LAYER_INNER_PRODUCT,
	PSD_LAYER_CONCAT, /* over channels */
	PSD_LAYER_ADD,	  /* element-wise */
	PSD_LAYER_SOFTMAX_LOSS,
	PSD_LAYER_KINDS
};

/* Lower-case name as in model files ("conv", "inner-product", ...). */
extern const char *const psd_layer_kind_names[PSD_LAYER_KINDS + 1]; /* NULL at the end */

struct psd_shape {
	uint32_t channels;
	uint32_t height;
	uint32_t width;
};

struct psd_window { /* conv and pool */
	uint32_t kernel_height, kernel_width;
	uint32_t stride_height, stride_width;
	uint32_t pad_height, pad_width;
	uint32_t dilation_height, dilation_width; /* 1: dense */
	uint32_t groups;			  /* conv */
	bool is_max;				  /* pool */
	bool rounds_up;				  /* pool: Caffe's ceil; otherwise floor */
};

struct psd_layer {
	char *name;
	enum psd_layer_kind kind;
	unsigned *inputs; /* layer numbers, all smaller than this one's */
	unsigned n_inputs;
	struct psd_window window;
	uint32_t outputs;     /* conv channels or inner-product width */
	bool has_bias;	      /* for batch norm and scale: the learned shift (beta) */
	bool has_scale;	      /* for batch norm and scale: the learned factor (gamma) */
	double dropout_ratio; /* dropped share */
	uint32_t lrn_size;
	struct psd_shape shape;	 /* of the output */
	uint64_t forward_flops;	 /* multiply and add count 2; source of each kind's formula beside its code */
	uint64_t backward_flops; /* gradients of the data (none for the first layer above the input) and of the
				    parameters */
	uint64_t read_bytes;	 /* fp32 bytes of inputs and parameters that forward reads: the memory-bound floor */
	uint64_t write_bytes;	 /* fp32 bytes of the output */
	unsigned first_tensor;
	unsigned n_tensors; /* 0 for layers without parameters; weight first, then bias */
};

struct psd_tensor {
	char *name; /* "conv1.weight" */
	unsigned layer;
	uint64_t elements;
	uint32_t rows;	  /* inner-product weight: M, its inputs; 0 for every other tensor */
	uint32_t columns; /* inner-product weight: N, its outputs; 0 for every other tensor */
};

struct psd_graph {
	char *name;
	struct psd_layer *layers;
	unsigned n_layers;
	struct psd_tensor *tensors; /* in forward order: layer by layer */
	unsigned n_tensors;
	uint64_t parameters;	/* sum of elements */
	uint64_t forward_flops; /* sum over layers */
	uint64_t backward_flops;
	uint64_t activation_bytes; /* fp32 outputs of all layers for one sample; in-place layers (relu, dropout) count
				      nothing */
};

/* Loads a model file by its content's form: Caffe prototxt when path ends in ".prototxt", the native YAML form
 * otherwise. *graph is filled on success and released by psd_graph_release(). PSD_EFILE, PSD_EINVAL with place,
 * PSD_ENOMEM. */
enum psd_status psd_graph_load(struct psd_graph *graph, const char *path, struct psd_error *err) PSD_MUST_CHECK;
void psd_graph_release(struct psd_graph *graph);

#endif
