/* Reader of Caffe's networks (train_val.prototxt), in all three forms: "layers { layer { type: "conv" } }", "layers {
 * type: CONVOLUTION }" and "layer { type: "Convolution" }".
 *
 * Layers: only those of the phase TRAIN, or of TEST if only TEST has data, at level 0 and without stages. Accuracy,
 * Silence, ArgMax and labels are ignored. If a network has no loss, a Softmax that no layer reads becomes its loss.
 * Layers may share parameters by name, either all or none.
 *
 * Input size: from a layer Input, DummyData, MemoryData or ImageData, from input_dim or input_shape, from
 * transform_param.crop_size or resize_param with three channels (one with force_gray), or from the user's choices.
 *
 * Parameters: fillers (initial values), lr_mult and decay_mult are read. Without a filler, initial values are those of
 * YAML models instead of 0.
 *
 * All other fields and layers are PSD_EINVAL with their place. For a prediction one message names all of them, and
 * types that psd-run cannot compute become layers of the kind `other`. Private to the engine. */
#ifndef PSD_PROTOTXT_H
#define PSD_PROTOTXT_H

#include <stddef.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"

/* Reads a network from length bytes of text; path: name of the file in messages. Result and statuses are those of
 * psd_graph_load_as(). */
enum psd_status psd_prototxt_parse(struct psd_graph *graph, const char *path, const void *text, size_t length,
				   const struct psd_model_choices *choices, struct psd_error *err) PSD_MUST_CHECK;

#endif
