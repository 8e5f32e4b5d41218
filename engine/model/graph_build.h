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
#define PSD_GRAPH_NAME_MAX   255u /* bytes of a layer's name */

/* One layer as a loader read it. Pointers are borrowed during the call. Fields that its kind has no use for are
 * ignored. */
struct psd_layer_spec {
	const char *name;
	struct psd_place at; /* for complaints */
	enum psd_layer_kind kind;
	const unsigned *inputs;
	unsigned n_inputs;
	struct psd_window window;
	struct psd_shape shape; /* of an input layer */
	uint32_t outputs;
	bool has_bias;
	bool has_scale;
	double dropout_ratio;
	uint32_t lrn_size;
};

struct psd_graph_build {
	struct psd_graph graph;
	struct psd_names names; /* of layers */
	bool *is_trained;	/* per layer: it or one below it has parameters */
	unsigned layer_room;
	unsigned tensor_room;
}; /* all zero is a valid empty build */

/* A dense 1x1 window with stride 1 and no pad: what loaders start from. */
extern const struct psd_window psd_window_default;

/* Appends a layer; its number is build->graph.n_layers - 1. PSD_EINVAL at spec->at for a name that is taken or too
 * long, shapes that do not fit, figures that overflow; PSD_ENOMEM. After a failure only release is allowed. */
enum psd_status psd_graph_build_add(struct psd_graph_build *build, const struct psd_layer_spec *spec,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Names the graph, adds up its totals and moves it to *graph; the build is empty afterwards. PSD_EINVAL at `at` when
 * there is no input layer or nothing but input layers. */
enum psd_status psd_graph_build_seal(struct psd_graph_build *build, const char *name, struct psd_place at,
				     struct psd_graph *graph, struct psd_error *err) PSD_MUST_CHECK;
void psd_graph_build_release(struct psd_graph_build *build);

#endif
