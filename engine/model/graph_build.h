/* Building of a graph: a reader adds layers in topological order, each of which gets its shape and figures at once, and
 * then seals the graph. Private to the engine. */
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

/* Kinds of start values of a tensor, with Caffe's names and formulas (caffe.proto, FillerParameter). */
enum psd_filler_kind {
	PSD_FILLER_CONSTANT, /* all values equal */
	PSD_FILLER_UNIFORM,  /* uniform from lowest to highest */
	PSD_FILLER_GAUSSIAN, /* normal with this mean and deviation */
	PSD_FILLER_XAVIER,   /* uniform with variance 1 / fan */
	PSD_FILLER_MSRA,     /* normal with variance 2 / fan */
	PSD_FILLER_BILINEAR, /* weights of bilinear interpolation, psd_tensor_bilinear(); windows are square */
};
enum psd_filler_fan { PSD_FAN_IN, PSD_FAN_OUT, PSD_FAN_MEAN };

struct psd_filler {
	enum psd_filler_kind kind;
	enum psd_filler_fan fan;
	double value, lowest, highest, mean, deviation;
};

/* Properties of a tensor that a model file sets; the layer's kind sets those that are missing. */
struct psd_tensor_spec {
	bool has_ratios, has_filler;
	double rate_ratio, decay_ratio;
	struct psd_filler filler;
};

#define PSD_LAYER_TENSORS_MAX 2

/* A layer as a model file describes it. Pointers are borrowed during the call. */
struct psd_layer_spec {
	const char *name;
	struct psd_place at; /* line of the layer in the file, for errors */
	const struct psd_layer_kind *kind;
	union psd_layer_settings settings;
	struct psd_tensor_spec tensors[PSD_LAYER_TENSORS_MAX]; /* properties of its tensors, in the order of the kind */
	bool is_sharing; /* the layer uses the tensors of layer `owner` and has none itself */
	unsigned owner;
	unsigned n_inputs;
	unsigned inputs[PSD_LAYER_INPUTS_MAX];
};

/* A graph under construction; all zeros: empty. */
struct psd_graph_build {
	struct psd_graph graph;
	struct psd_names names; /* map from layer names to layer numbers */
	bool is_broken;		/* a layer could not be added: only release is allowed */
};

/* Appends a layer, whose number is build->graph.n_layers - 1. PSD_EINVAL at spec->at if the name exists already or is
 * too long, shapes do not fit, or figures overflow; PSD_ENOMEM. After a failure only release is allowed. */
enum psd_status psd_graph_build_add(struct psd_graph_build *build, const struct psd_layer_spec *spec,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Appends an input to spec->inputs. PSD_EINVAL at the place `at`: there are too many. */
enum psd_status psd_layer_spec_add_input(struct psd_layer_spec *spec, unsigned input, struct psd_place at,
					 struct psd_error *err) PSD_MUST_CHECK;
/* Appends a tensor to the newest layer; called by the layer's kind. name: "weight", without the layer's name. tensor:
 * dims, start values, and rows and columns if factors give its gradient. False: out of memory. */
bool psd_graph_build_tensor(struct psd_graph_build *build, const char *name, struct psd_tensor tensor);
bool psd_graph_build_state(struct psd_graph_build *build, const char *name, struct psd_tensor state);
/* Names the graph and moves it to *graph; the build is empty afterwards. PSD_EINVAL at the place `at`: there is no
 * input layer, or no other layer. */
enum psd_status psd_graph_build_seal(struct psd_graph_build *build, const char *name, struct psd_place at,
				     struct psd_graph *graph, struct psd_error *err) PSD_MUST_CHECK;
void psd_graph_build_release(struct psd_graph_build *build);

#endif
