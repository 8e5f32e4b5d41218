/* Reader of Caffe's networks (train_val.prototxt), in all three forms: "layers { layer { type: "conv" } }", "layers {
 * type: CONVOLUTION }" and "layer { type: "Convolution" }".
 *
 * Layers: those of the phase TRAIN, or TEST if only that has data, at level 0 without stages. Accuracy, Silence, ArgMax
 * and labels are ignored. A Softmax that no layer reads is the loss of a network that has no other. Layers share
 * parameters by name, all of them or none. Input size: from an Input, DummyData, MemoryData or ImageData layer, from
 * input_dim or input_shape, from transform_param.crop_size or resize_param with three channels (one with force_gray),
 * or from the user's choices. Parameters: fillers, lr_mult and decay_mult are read; without a filler, values start as
 * in YAML models, not at 0. All other fields and layers are PSD_EINVAL with their place; for a prediction one message
 * names all of them, and types that psd-run cannot compute become layers of the kind other. Private to the engine. */
#ifndef PSD_PROTOTXT_H
#define PSD_PROTOTXT_H

#include <stddef.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"

/* Reads a network from length bytes of text; path: its name in errors. As psd_graph_load_as(). */
enum psd_status psd_prototxt_parse(struct psd_graph *graph, const char *path, const void *text, size_t length,
				   const struct psd_model_choices *choices, struct psd_error *err) PSD_MUST_CHECK;

#endif
