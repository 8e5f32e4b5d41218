/* Finds the layer to which each unit of a trace (struct psd_trace_unit) belongs. With a model, the unit's name, the
 * kind of operator, the shapes of weights and the order decide. Without a model, each operator of the forward pass
 * becomes a layer. This module does not use times. */
#ifndef PSD_IMPORT_MATCH_H
#define PSD_IMPORT_MATCH_H

#include "engine/model/graph.h"
#include "sim/import/places.h"

/* A layer that was made from a trace without a model. */
struct psd_seen_layer {
	const char *name; /* name of the layer, owned by struct psd_match */
	/* first unit of the layer in the forward pass; if the trace has none, in the backward pass */
	uint32_t unit;
};

struct psd_match {
	/* number of the layer of each unit of the forward and backward pass; PSD_TRACE_NONE: none */
	uint32_t *layer_of;
	/* per unit: its layer was recognised; false: the unit was given the layer of a neighbouring unit */
	bool *is_sure;
	unsigned n_layers; /* number of layers of the graph, or of `seen` */
	/* layers that were made from the trace, n_seen entries; NULL if there is a model */
	struct psd_seen_layer *seen;
	uint32_t n_seen, seen_room;
	unsigned n_silent; /* number of the model's layers that have parameters but no operator in the trace */
	unsigned silent;   /* number of the first such layer */
	struct psd_names names;
	struct psd_arena arena;
};

/* Finds for each unit its layer in the graph of a model. path: the trace file, for messages. On success
 * psd_match_release() releases *match. PSD_EINVAL: model and trace have too many layers and operators to compare.
 * PSD_ENOMEM. */
enum psd_status psd_match_graph(struct psd_match *match, const struct psd_places *places, const struct psd_graph *graph,
				const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Makes layers from the trace's operators, if there is no model. PSD_ENOMEM. */
enum psd_status psd_match_alone(struct psd_match *match, const struct psd_places *places,
				struct psd_error *err) PSD_MUST_CHECK;
void psd_match_release(struct psd_match *match);

#endif
