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
	unsigned *inputs;	 /* numbers of the layers whose outputs it reads, all earlier ones */
	unsigned n_inputs;	 /* number of inputs; 0: the layer is an input of the network */
	bool is_trained;	 /* the layer or an earlier one has parameters, so its output needs a gradient */
	struct psd_shape shape;	 /* shape of the layer's output */
	uint64_t forward_flops;	 /* FLOPs of forward; a multiplication and addition count 2; sources: see each kind */
	uint64_t backward_flops; /* FLOPs of backward: gradients of its parameters and, if needed, of its inputs */
	uint64_t read_bytes;	 /* bytes that forward reads at least, in fp32: inputs and parameters */
	uint64_t write_bytes;	 /* bytes that forward writes, in fp32: the output */
	uint64_t kept_bytes;	 /* bytes kept for backward beside the output, in fp32, such as probabilities */
	uint64_t parameters;	 /* number of its parameters, shared ones included */
	unsigned first_tensor;
	unsigned n_tensors; /* number of its own tensors; the order is the kind's: a weight before its bias */
	unsigned n_shared;  /* tensors shared with an earlier layer, from its first_tensor on; n_tensors is then 0 */
	unsigned first_state;
	unsigned n_states;
};

/* A parameter tensor, or a state: values without a gradient that a layer keeps between iterations. */
struct psd_tensor {
	char *name; /* name with the layer's, such as "conv1.weight" */
	unsigned layer;
	unsigned n_dims;
	uint32_t dims[PSD_TENSOR_DIMS_MAX]; /* dimensions; values along the last one are contiguous */
	uint64_t elements;		    /* number of values, the product of dims */
	/* Inputs M and outputs N of a weight matrix (N,M) whose gradient can be made from two factors; otherwise 0. */
	uint32_t rows, columns;
	/* Start values: uniform in [start_value - start_bound, start_value + start_bound), or normal around start_value
	 * if start_deviation > 0, or from psd_tensor_bilinear(). */
	float start_value;
	float start_bound;
	float start_deviation;
	bool starts_bilinear;
	float rate_ratio;  /* factor on the job's learning rate; 0: the tensor keeps its start values */
	float decay_ratio; /* factor on the job's weight decay */
};

struct psd_graph {
	char *name;
	struct psd_layer *layers;
	unsigned n_layers;
	struct psd_tensor *tensors; /* parameter tensors, in the order of layers */
	unsigned n_tensors;
	struct psd_tensor *states; /* state tensors, in the order of layers */
	unsigned n_states;
	uint64_t parameters;	   /* number of parameters, over all tensors */
	uint64_t forward_flops;	   /* FLOPs of forward, over all layers */
	uint64_t backward_flops;   /* FLOPs of backward, over all layers */
	uint64_t activation_bytes; /* bytes of all outputs that are not in place, and kept_bytes, in fp32 */
	uint64_t labels;  /* labels of a sample, one for each position of the last loss; 0: the network has no loss */
	uint32_t classes; /* number of different labels; 0: the network has no loss */
	uint32_t vocabulary; /* the first input must be whole numbers below this; 0: any values */
	char *remarks;	     /* decisions of the file's reader, a line each; NULL: none */
	char *doubts;	     /* decisions that the file leaves open, a line each; NULL: none */
};

enum { PSD_MODEL_INPUTS_MAX = 16, PSD_MODEL_TIED_MAX = 64, PSD_MODEL_OUTPUTS_MAX = 16 };

/* Choices about a model file that its reader cannot make alone. All zeros: the file decides. Texts are borrowed. */
struct psd_model_choices {
	unsigned sequence;			    /* number of tokens of a sample, for YAML; 0: the file's */
	const char *inputs[PSD_MODEL_INPUTS_MAX];   /* sizes of an input or of a symbolic side: "data=3x224x224" */
	const char *tied[PSD_MODEL_TIED_MAX];	    /* ONNX: "none" alone, or layers: "head", "head=table" */
	const char *outputs[PSD_MODEL_OUTPUTS_MAX]; /* ONNX: outputs that count, the first has the loss */
	unsigned n_inputs, n_tied, n_outputs;
	bool allows_other; /* for a prediction: nodes that psd-run cannot compute become layers of the kind other */
	struct psd_shape sample; /* shape of the training samples, for open sizes; channels 0: unknown */
};

/* Number of tokens of a sample; 0: the first input is not a sequence of tokens. Pure. */
uint64_t psd_graph_tokens(const struct psd_graph *graph);

/* Shares of a graph that only a prediction can use: layers that no device executes, and inputs after the first. */
struct psd_graph_share {
	unsigned n_layers;
	double flops_ratio;	 /* share of forward's and backward's FLOPs */
	double parameters_ratio; /* share of all parameters */
	const char *first;	 /* name of the first of these layers or inputs; NULL: none. Borrowed */
};
struct psd_graph_share psd_graph_predicted_only(const struct psd_graph *graph);

/* Start value of element e of a tensor whose last two dims are bilinear interpolation windows with steps of half a
 * window: the weight of its position in the window. Source: Caffe's BilinearFiller. Pure. */
float psd_tensor_bilinear(const struct psd_tensor *tensor, uint64_t e);

/* Loads a model file; the end of the path chooses the form: ".prototxt" is Caffe's, ".onnx" ONNX's, all others are
 * YAML. On success psd_graph_release() releases *graph. PSD_EFILE, PSD_EINVAL with the place in the file, PSD_ENOMEM.
 * */
enum psd_status psd_graph_load(struct psd_graph *graph, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* As above, with choices, which may be NULL. PSD_EINVAL, too: a choice does not suit the file. */
enum psd_status psd_graph_load_as(struct psd_graph *graph, const char *path, const struct psd_model_choices *choices,
				  struct psd_error *err) PSD_MUST_CHECK;
void psd_graph_release(struct psd_graph *graph);

#endif
