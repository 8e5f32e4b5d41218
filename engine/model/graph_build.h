/* How loaders build a graph: layers are added in topological order, each with its shape and figures worked out at once,
 * then the graph is sealed. Private to the engine. */
#ifndef PSD_GRAPH_BUILD_H
#define PSD_GRAPH_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/names.h"
#include "engine/model/graph.h"

#define PSD_GRAPH_LAYERS_MAX 100000u
#define PSD_LAYER_INPUTS_MAX 1024u
#define PSD_GRAPH_NAME_MAX   255u /* bytes of a layer's name */

/* How a tensor's values start. Names and formulas are Caffe's (caffe.proto, FillerParameter). */
enum psd_filler_kind {
	PSD_FILLER_CONSTANT, /* value */
	PSD_FILLER_UNIFORM,  /* lowest to highest */
	PSD_FILLER_GAUSSIAN, /* mean, deviation */
	PSD_FILLER_XAVIER,   /* uniform, variance 1 / fan */
	PSD_FILLER_MSRA,     /* gaussian, variance 2 / fan */
	PSD_FILLER_BILINEAR, /* psd_tensor_bilinear(), of a window as high as wide */
};
enum psd_filler_fan { PSD_FAN_IN, PSD_FAN_OUT, PSD_FAN_MEAN };

struct psd_filler {
	enum psd_filler_kind kind;
	enum psd_filler_fan fan;
	double value, lowest, highest, mean, deviation;
};

/* What a file says about a tensor beside its layer's kind. */
struct psd_tensor_spec {
	bool has_ratios, has_filler; /* else what follows is the kind's */
	double rate_ratio, decay_ratio;
	struct psd_filler filler;
};

#define PSD_LAYER_TENSORS_MAX 2

/* One layer as a loader read it. Pointers are borrowed during the call. */
struct psd_layer_spec {
	const char *name;
	struct psd_place at; /* for complaints */
	const struct psd_layer_kind *kind;
	union psd_layer_settings settings;
	struct psd_tensor_spec tensors[PSD_LAYER_TENSORS_MAX]; /* in the kind's order */
	bool is_sharing; /* it has no tensors of its own but those of layer `owner`, which shares with none */
	unsigned owner;
	unsigned n_inputs;
	unsigned inputs[PSD_LAYER_INPUTS_MAX];
};

struct psd_graph_build {
	struct psd_graph graph;
	struct psd_names names; /* of layers */
};				/* all zero is a valid empty build */

/* Appends a layer; its number is build->graph.n_layers - 1. PSD_EINVAL at spec->at for a name that is taken or too
 * long, shapes that do not fit, figures that overflow; PSD_ENOMEM. After a failure only release is allowed. */
enum psd_status psd_graph_build_add(struct psd_graph_build *build, const struct psd_layer_spec *spec,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Appends to spec->inputs. PSD_EINVAL with the place `at` when there are too many. */
enum psd_status psd_layer_spec_add_input(struct psd_layer_spec *spec, unsigned input, struct psd_place at,
					 struct psd_error *err) PSD_MUST_CHECK;
/* For its kind: appends a tensor of the newest layer. tensor: dims, start values, perhaps rows and columns. name:
 * without the layer's. False: out of memory. */
bool psd_graph_build_tensor(struct psd_graph_build *build, const char *name, struct psd_tensor tensor);
bool psd_graph_build_state(struct psd_graph_build *build, const char *name, struct psd_tensor state);
/* Names the graph and moves it to *graph; the build is empty afterwards. PSD_EINVAL at `at` when there is no input
 * layer or nothing but input layers. */
enum psd_status psd_graph_build_seal(struct psd_graph_build *build, const char *name, struct psd_place at,
				     struct psd_graph *graph, struct psd_error *err) PSD_MUST_CHECK;
void psd_graph_build_release(struct psd_graph_build *build);

#endif
