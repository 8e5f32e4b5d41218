/* Construction of a graph. A reader adds layers in topological order; the builder computes the shape, FLOPs and bytes
 * of each layer when it is added. Finally the reader seals the graph. Private to the engine. */
#ifndef PSD_GRAPH_BUILD_H
#define PSD_GRAPH_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/names.h"
#include "engine/model/graph.h"

#define PSD_GRAPH_LAYERS_MAX 100000u
#define PSD_LAYER_INPUTS_MAX 1024u
#define PSD_GRAPH_NAME_MAX   255u /* largest length of a layer's name, bytes */

/* Kinds of initial values of a tensor, with Caffe's names and formulas (caffe.proto, FillerParameter). */
enum psd_filler_kind {
	PSD_FILLER_CONSTANT, /* all values are psd_filler.value */
	PSD_FILLER_UNIFORM,  /* uniform between psd_filler.lowest and highest */
	PSD_FILLER_GAUSSIAN, /* normal with psd_filler.mean and standard deviation psd_filler.deviation */
	/* uniform with mean 0 and variance 1 / n, where n is the number of inputs, of outputs, or the mean of both, as
	 * psd_filler.fan says */
	PSD_FILLER_XAVIER,
	/* normal with mean 0 and variance 2 / n, where n is the number of inputs, of outputs, or the mean of both, as
	 * psd_filler.fan says */
	PSD_FILLER_MSRA,
	/* weights of bilinear interpolation, see psd_tensor_bilinear(); the windows must be square */
	PSD_FILLER_BILINEAR,
};
enum psd_filler_fan { PSD_FAN_IN, PSD_FAN_OUT, PSD_FAN_MEAN };

struct psd_filler {
	enum psd_filler_kind kind;
	enum psd_filler_fan fan;
	double value, lowest, highest, mean, deviation;
};

/* Properties of a tensor that a model file may set. If has_ratios or has_filler is false, the layer's kind decides
 * these properties. */
struct psd_tensor_spec {
	bool has_ratios, has_filler;
	double rate_ratio, decay_ratio;
	struct psd_filler filler;
};

#define PSD_LAYER_TENSORS_MAX 2

/* A layer as described by a model file. Pointers are borrowed during the call. */
struct psd_layer_spec {
	const char *name;
	struct psd_place at; /* place of the layer in the file, for messages */
	const struct psd_layer_kind *kind;
	union psd_layer_settings settings;
	/* properties of the layer's tensors, in the order in which its kind declares them */
	struct psd_tensor_spec tensors[PSD_LAYER_TENSORS_MAX];
	bool is_sharing; /* the layer uses the tensors of layer number `owner`, and has no tensors of its own */
	unsigned owner;
	unsigned block; /* repetition of a repeated block, from 1, in the order of layers; 0: none */
	unsigned n_inputs;
	unsigned inputs[PSD_LAYER_INPUTS_MAX];
};

/* A graph under construction. A builder of all zeros is valid and empty. */
struct psd_graph_build {
	struct psd_graph graph;
	struct psd_names names; /* map from layer names to layer numbers */
	bool is_broken;		/* a layer could not be added: only release is allowed */
};

/* Appends a layer; its number is build->graph.n_layers - 1 afterwards. PSD_EINVAL at the place spec->at: a layer of
 * this name exists, the name is too long, shapes do not fit, or a size is too large. PSD_ENOMEM. After a failure only
 * psd_graph_build_release() is allowed. */
enum psd_status psd_graph_build_add(struct psd_graph_build *build, const struct psd_layer_spec *spec,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Appends an input to spec->inputs. PSD_EINVAL at the place `at`: the layer has too many inputs. */
enum psd_status psd_layer_spec_add_input(struct psd_layer_spec *spec, unsigned input, struct psd_place at,
					 struct psd_error *err) PSD_MUST_CHECK;
/* Append a parameter tensor or a state tensor to the newest layer; called by the layer's kind. name: name without that
 * of the layer, such as "weight". tensor: dimensions and initial values; also rows and columns if its gradient is the
 * product of two factors. False: out of memory. */
bool psd_graph_build_tensor(struct psd_graph_build *build, const char *name, struct psd_tensor tensor);
bool psd_graph_build_state(struct psd_graph_build *build, const char *name, struct psd_tensor state);
/* Sets the name of the graph and moves the graph to *graph. The builder is empty afterwards. PSD_EINVAL at the place
 * `at`: the graph has no input layer, or no other layer. */
enum psd_status psd_graph_build_seal(struct psd_graph_build *build, const char *name, struct psd_place at,
				     struct psd_graph *graph, struct psd_error *err) PSD_MUST_CHECK;
void psd_graph_build_release(struct psd_graph_build *build);

#endif
