/* A network as layers in topological order, with shapes, parameter tensors, FLOPs and bytes. All figures are for one
 * sample (one image) and independent of the batch. A reader of model files (readers.c) builds a graph; afterwards it is
 * sealed and never changes. */
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
	unsigned *inputs;	 /* numbers of earlier layers */
	unsigned n_inputs;	 /* 0 for an input of the network */
	bool is_trained;	 /* it or a layer below it has parameters: its output needs a gradient */
	struct psd_shape shape;	 /* shape of the output */
	uint64_t forward_flops;	 /* a multiplication with an addition counts 2; sources are beside each kind's code */
	uint64_t backward_flops; /* gradients of its data, if the layers below need them, and of its parameters */
	uint64_t read_bytes;	 /* inputs and parameters that forward reads, in fp32: the memory-bound minimum */
	uint64_t write_bytes;	 /* output in fp32 */
	uint64_t kept_bytes;	 /* values that backward needs beside the output, in fp32, such as probabilities */
	uint64_t parameters;	 /* elements of its tensors, shared ones included */
	unsigned first_tensor;
	unsigned n_tensors; /* in the order of the kind: a weight before its bias */
	unsigned n_shared;  /* tensors shared with an earlier layer, whose first_tensor this is; then n_tensors is 0 */
	unsigned first_state;
	unsigned n_states;
};

/* A parameter, or a state: values without a gradient that a layer keeps between iterations. */
struct psd_tensor {
	char *name; /* "conv1.weight" */
	unsigned layer;
	unsigned n_dims;
	uint32_t dims[PSD_TENSOR_DIMS_MAX]; /* the last one is contiguous */
	uint64_t elements;		    /* product of dims */
	/* inputs M and outputs N of an (N,M) matrix whose gradient two factors give; otherwise 0 */
	uint32_t rows, columns;
	/* start values: uniform in [start_value - start_bound, start_value + start_bound), or normal around start_value
	 * if start_deviation > 0, or as psd_tensor_bilinear() says */
	float start_value;
	float start_bound;
	float start_deviation;
	bool starts_bilinear;
	float rate_ratio;  /* factor of the job's learning rate; 0: the tensor keeps its start values */
	float decay_ratio; /* factor of the job's weight decay */
};

struct psd_graph {
	char *name;
	struct psd_layer *layers;
	unsigned n_layers;
	struct psd_tensor *tensors; /* parameters, in the order of layers */
	unsigned n_tensors;
	struct psd_tensor *states; /* in the order of layers */
	unsigned n_states;
	uint64_t parameters;	   /* elements of all tensors */
	uint64_t forward_flops;	   /* sum over layers */
	uint64_t backward_flops;   /* sum over layers */
	uint64_t activation_bytes; /* outputs that are not in place, and kept_bytes, in fp32 */
	uint64_t labels;	   /* labels of a sample, one for each position of the last loss; 0: there is no loss */
	uint32_t classes;	   /* number of different labels; 0: there is no loss */
	uint32_t vocabulary;	   /* the first input has whole numbers below this; 0: any values */
};

/* Tokens of a sample where the first input is a sequence of them; else 0. Pure. */
uint64_t psd_graph_tokens(const struct psd_graph *graph);

/* Start value of element e of a tensor whose last two dims are bilinear interpolation windows with steps of half a
 * window: the weight of its position in the window. Source: Caffe's BilinearFiller. Pure. */
float psd_tensor_bilinear(const struct psd_tensor *tensor, uint64_t e);

/* Loads a model file; the end of the path chooses the form: ".prototxt" is Caffe's, ".onnx" ONNX's, all others are
 * YAML. On success psd_graph_release() releases *graph. PSD_EFILE, PSD_EINVAL with the place in the file, PSD_ENOMEM.
 * */
enum psd_status psd_graph_load(struct psd_graph *graph, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* As above, for sequences of that many tokens in place of the file's length; 0: the file's. PSD_EINVAL, too, when the
 * file is not YAML or its input is not a sequence. */
enum psd_status psd_graph_load_sequence(struct psd_graph *graph, const char *path, unsigned sequence,
					struct psd_error *err) PSD_MUST_CHECK;
void psd_graph_release(struct psd_graph *graph);

#endif
