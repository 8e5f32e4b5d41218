/* A network as layers in topological order, with inferred shapes, parameter tensors, FLOPs and bytes. All figures are
 * for one sample (one image); nothing here depends on the batch. A graph is built by the loaders (model.h, prototxt.h),
 * then sealed. */
#ifndef PSD_GRAPH_H
#define PSD_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/model/kind.h"
#include "engine/model/settings.h"

#define PSD_TENSOR_DIMS_MAX 5

struct psd_layer {
	char *name;
	const struct psd_layer_kind *kind;
	union psd_layer_settings settings;
	unsigned *inputs; /* layer numbers, all smaller than this one's; none: it is an input of the network */
	unsigned n_inputs;
	bool is_trained;	 /* it or a layer below it has parameters: gradients must reach its output */
	struct psd_shape shape;	 /* of the output */
	uint64_t forward_flops;	 /* multiply and add count 2; source of each kind's formula beside its code */
	uint64_t backward_flops; /* gradients of the data (none for the first layer above the input) and of the
				    parameters */
	uint64_t read_bytes;	 /* fp32 bytes of inputs and parameters that forward reads: the memory-bound floor */
	uint64_t write_bytes;	 /* fp32 bytes of the output */
	uint64_t kept_bytes;	 /* fp32 bytes that backward needs beside it, such as attention's probabilities */
	uint64_t parameters;	 /* elements of its tensors, of shared ones too */
	unsigned first_tensor;
	unsigned n_tensors; /* 0 for layers without parameters; in the order of its kind: a weight before its bias */
	unsigned n_shared;  /* tensors that it has of an earlier layer: first_tensor is theirs, n_tensors 0 */
	unsigned first_state;
	unsigned n_states;
};

/* A parameter, or a state: what a layer keeps from one iteration to the next without a gradient. Its values start
 * uniform in [start_value - start_bound, start_value + start_bound). */
struct psd_tensor {
	char *name; /* "conv1.weight" */
	unsigned layer;
	unsigned n_dims;
	uint32_t dims[PSD_TENSOR_DIMS_MAX]; /* neighbours along the last one lie side by side */
	uint64_t elements;		    /* the product of dims */
	uint32_t rows;	  /* M inputs, if the gradient of this (N,M) matrix can be rebuilt from factors; otherwise 0 */
	uint32_t columns; /* N outputs, if so; otherwise 0 */
	float start_value;
	float start_bound;
	float start_deviation; /* of normal values around start_value instead, unless 0 */
	bool starts_bilinear;  /* instead of all that: see psd_tensor_bilinear() */
	float rate_ratio;      /* of the job's learning rate; 0: it stays as it starts */
	float decay_ratio;     /* of the job's weight decay */
};

struct psd_graph {
	char *name;
	struct psd_layer *layers;
	unsigned n_layers;
	struct psd_tensor *tensors; /* parameters in forward order: layer by layer */
	unsigned n_tensors;
	struct psd_tensor *states; /* in the same order */
	unsigned n_states;
	uint64_t parameters;	/* sum of elements of the tensors */
	uint64_t forward_flops; /* sum over layers */
	uint64_t backward_flops;
	/* fp32 outputs of all layers for one sample, and what they keep beside them; in place, no output */
	uint64_t activation_bytes;
	uint64_t labels;     /* of a sample: one for each place of the last loss; 0: it has no loss */
	uint32_t classes;    /* that a label may be; 0: it has no loss */
	uint32_t vocabulary; /* values of its first input are whole numbers below this; 0: any */
};

/* What element e of a tensor starts with whose last two dims are windows that interpolate between values in steps of
 * half a window: the weight of its place in its window. Source: Caffe's BilinearFiller. Pure. */
float psd_tensor_bilinear(const struct psd_tensor *tensor, uint64_t e);

/* Loads a model file by how its path ends: ".prototxt" is Caffe's form, ".onnx" ONNX's, anything else the native YAML.
 * *graph is filled on success and released by psd_graph_release(). PSD_EFILE, PSD_EINVAL with place,
 * PSD_ENOMEM. */
enum psd_status psd_graph_load(struct psd_graph *graph, const char *path, struct psd_error *err) PSD_MUST_CHECK;
void psd_graph_release(struct psd_graph *graph);

#endif
