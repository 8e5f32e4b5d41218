/* A network as a list of layers in topological order, with shapes, parameter tensors, FLOPs and bytes. All numbers are
 * for one sample (such as an image), independent of the batch. A reader of model files (readers.c) builds a graph;
 * afterwards the graph does not change. */
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
	/* numbers of the layers whose outputs this layer reads; all are lower than its own number */
	unsigned *inputs;
	unsigned n_inputs; /* number of inputs; 0: the layer is an input of the network */
	/* the layer or a layer before it has parameters, so backward needs the gradient of the layer's output */
	bool is_trained;
	unsigned block;	   /* repetition of a repeated block that has the layer, from 1; 0: the layer is in none */
	bool is_block_end; /* the layer is in a block, and layers outside this repetition read its output */
	/* The layer is in a block, and recomputation of the block computes it again. Its output, or a value that its
	 * forward stores, is read by its own backward, by the backward of a later layer in the block, or by a later
	 * layer that is computed again. */
	bool is_recomputed;
	bool is_half;		/* the output has 16 bits under autocast, by the rules of saved.c; others have 32 */
	struct psd_shape shape; /* shape of the layer's output */
	/* FLOPs of forward. A multiplication with an addition counts as 2. The file of each kind has the source of its
	 * number. */
	uint64_t forward_flops;
	/* FLOPs of backward: gradients of the layer's parameters, and of its inputs if layers before it need them. */
	uint64_t backward_flops;
	uint64_t read_bytes;  /* smallest number of bytes that forward reads, in fp32: inputs and parameters */
	uint64_t write_bytes; /* bytes that forward writes, in fp32: the output */
	/* bytes that forward stores for backward in addition to the output, in fp32, such as probabilities */
	uint64_t kept_bytes;
	uint64_t parameters; /* number of the layer's parameters, including those shared with another layer */
	unsigned first_tensor;
	/* Number of the layer's own tensors. Their order is that of the kind, with a weight before its bias. */
	unsigned n_tensors;
	/* Number of tensors that the layer shares with an earlier layer: the graph's tensors from number first_tensor
	 * on. If it is not 0, n_tensors is 0. */
	unsigned n_shared;
	unsigned first_state;
	unsigned n_states;
};

/* A parameter tensor, or a state tensor: values that a layer keeps from iteration to iteration and that have no
 * gradient, such as running statistics. */
struct psd_tensor {
	char *name; /* name with that of the layer in front, such as "conv1.weight" */
	unsigned layer;
	unsigned n_dims;
	/* dimensions, n_dims entries; values along the last dimension are contiguous */
	uint32_t dims[PSD_TENSOR_DIMS_MAX];
	uint64_t elements; /* number of values, the product of the dimensions */
	/* Number of rows and columns of a weight matrix whose gradient is the product of two factors: the layer's
	 * inputs (as many per sample as rows) and the gradients of its outputs (as many as columns). Both are 0 for
	 * other tensors. */
	uint32_t rows, columns;
	/* Initial values: uniform in [start_value - start_bound, start_value + start_bound). If start_deviation > 0:
	 * normal with mean start_value and this standard deviation. If starts_bilinear: psd_tensor_bilinear(). */
	float start_value;
	float start_bound;
	float start_deviation;
	bool starts_bilinear;
	float rate_ratio;  /* factor on the learning rate of the job; 0: the tensor keeps its initial values */
	float decay_ratio; /* factor on the weight decay of the job */
};

struct psd_graph {
	char *name;
	struct psd_layer *layers;
	unsigned n_layers;
	struct psd_tensor *tensors; /* parameter tensors, n_tensors entries in the order of layers */
	unsigned n_tensors;
	struct psd_tensor *states; /* state tensors, n_states entries in the order of layers */
	unsigned n_states;
	uint64_t parameters;	 /* number of parameters of all tensors together */
	uint64_t forward_flops;	 /* FLOPs of forward, all layers together */
	uint64_t backward_flops; /* FLOPs of backward, all layers together */
	/* bytes of all outputs that do not overwrite an input, plus kept_bytes of all layers, in fp32 */
	uint64_t activation_bytes;
	/* part of activation_bytes that is in memory at a time if backward computes blocks again: values outside
	 * blocks, outputs that leave a block, and recomputed values of the largest block */
	uint64_t recomputed_bytes;
	unsigned n_blocks; /* number of repetitions of repeated blocks, all together */
	/* bytes of gradients of outputs that backward needs at the same time, in fp32. Gradients of linear layers'
	 * outputs are kept to the end of backward, because they are factors. */
	uint64_t gradient_bytes;
	/* number of labels of a sample: one for each position of the last loss; 0: the network has no loss */
	uint64_t labels;
	uint32_t classes; /* number of different labels; 0: the network has no loss */
	/* the first input must be whole numbers from 0 to vocabulary - 1; 0: it may be any numbers */
	uint32_t vocabulary;
	char *remarks; /* decisions that the file's reader made, a line of text for each; NULL: none */
	/* decisions that the file leaves open and the reader guessed, a line of text for each; NULL: none */
	char *doubts;
};

enum { PSD_MODEL_INPUTS_MAX = 16, PSD_MODEL_TIED_MAX = 64, PSD_MODEL_OUTPUTS_MAX = 16 };

/* Choices of the user about a model file that its reader cannot make alone. All zeros: the reader takes everything from
 * the file. Texts are borrowed. */
struct psd_model_choices {
	unsigned sequence;			  /* number of tokens of a sample, for YAML; 0: as in the file */
	const char *inputs[PSD_MODEL_INPUTS_MAX]; /* sizes of an input or of an open axis: "data=3x224x224" */
	/* ONNX: layers that share a matrix, "head" or "head=table"; or "none" alone */
	const char *tied[PSD_MODEL_TIED_MAX];
	/* ONNX: names of the outputs that are used; the first has the loss */
	const char *outputs[PSD_MODEL_OUTPUTS_MAX];
	unsigned n_inputs, n_tied, n_outputs;
	bool allows_other; /* for a prediction: nodes that psd-run cannot compute become layers of kind `other` */
	/* shape of the training samples, used for sizes that the file leaves open; channels 0: unknown */
	struct psd_shape sample;
};

/* Returns the number of tokens of a sample; 0: the first input is not a sequence of tokens. Pure. */
uint64_t psd_graph_tokens(const struct psd_graph *graph);

/* Parts of a graph that only a prediction can use: layers that no device executes, and inputs after the first one. */
struct psd_graph_share {
	unsigned n_layers;
	double flops_ratio;	 /* FLOPs of these layers, divided by the graph's FLOPs */
	double parameters_ratio; /* parameters of these layers, divided by the graph's parameters */
	const char *first;	 /* name of the first of these layers or inputs; NULL: none. Borrowed */
};
/* Returns the FLOPs of forward in matrix products and convolutions, the only operations that PyTorch's FLOP counter
 * knows. */
uint64_t psd_graph_product_flops(const struct psd_graph *graph);
struct psd_graph_share psd_graph_predicted_only(const struct psd_graph *graph);

/* Returns the initial value of element e of a tensor that does bilinear interpolation: the weight of the element's
 * position in its window. The tensor's last two dimensions are the window; its step on the map is half its size.
 * Source: Caffe's BilinearFiller. Pure. */
float psd_tensor_bilinear(const struct psd_tensor *tensor, uint64_t e);

/* Loads a model file. The end of the path decides the format: ".prototxt" is Caffe's, ".onnx" is ONNX, all others are
 * psd's YAML. On success psd_graph_release() releases *graph. PSD_EFILE, PSD_EINVAL with the place in the file,
 * PSD_ENOMEM. */
enum psd_status psd_graph_load(struct psd_graph *graph, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Loads a model file as psd_graph_load() does, with the choices of the user, which may be NULL. It also returns
 * PSD_EINVAL if a choice does not suit the file. */
enum psd_status psd_graph_load_as(struct psd_graph *graph, const char *path, const struct psd_model_choices *choices,
				  struct psd_error *err) PSD_MUST_CHECK;
void psd_graph_release(struct psd_graph *graph);

#endif
