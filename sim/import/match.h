/* The layer of each unit of a trace: of a model, by name, kind, weights and order; without a model, a layer for each
 * operator of forward. Uses no seconds. */
#ifndef PSD_IMPORT_MATCH_H
#define PSD_IMPORT_MATCH_H

#include "engine/model/graph.h"
#include "sim/import/places.h"

/* A layer that a trace alone gives. */
struct psd_seen_layer {
	const char *name; /* owned by the match */
	uint32_t unit;	  /* first unit of it: of forward, or of backward where forward is missing */
};

struct psd_match {
	uint32_t *layer_of;	     /* layer of each unit of forward and backward; PSD_TRACE_NONE: none */
	bool *is_sure;		     /* the unit itself was recognised; false: it goes with its neighbour */
	unsigned n_layers;	     /* number of layers of the graph, or of `seen` */
	struct psd_seen_layer *seen; /* NULL with a model */
	uint32_t n_seen, seen_room;
	unsigned n_silent; /* layers of the model, with parameters, for which the trace has no operator */
	unsigned silent;   /* the first of them */
	struct psd_names names;
	struct psd_arena arena;
};

/* Finds the layers of a model's graph. On success psd_match_release() releases *match. PSD_EINVAL: the model and the
 * trace have too many layers and operators to compare; PSD_ENOMEM. */
enum psd_status psd_match_graph(struct psd_match *match, const struct psd_places *places, const struct psd_graph *graph,
				const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Makes layers of the trace's operators. PSD_ENOMEM. */
enum psd_status psd_match_alone(struct psd_match *match, const struct psd_places *places,
				struct psd_error *err) PSD_MUST_CHECK;
void psd_match_release(struct psd_match *match);

#endif
