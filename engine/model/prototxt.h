/* Caffe networks (train_val.prototxt), in the oldest form (layers { layer { type: "conv" } }), the older (layers {
 * type: CONVOLUTION }) and the newer one (layer { type: "Convolution" }). The TRAIN phase without stages at level 0
 * is taken. The input's size comes from the Input, DummyData, MemoryData or ImageData layer, from input_dim or
 * input_shape, or from transform_param.crop_size, then with three channels unless force_gray is set. What fillers,
 * lr_mult and decay_mult say is the graph's; where there is no filler, values start as in psd's own model files,
 * not at 0. A Softmax that no layer reads stands for the loss where there is none. Ignored: Accuracy, Silence,
 * ArgMax, labels, what data is read from. Layers may share all their parameters by the names of these. Refuses
 * every other field and layer, with its place. Private to the engine. */
#ifndef PSD_PROTOTXT_H
#define PSD_PROTOTXT_H

#include <stddef.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"

/* As psd_graph_load(), for a file or for length bytes of text named path in messages. */
enum psd_status psd_prototxt_load(struct psd_graph *graph, const char *path, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_prototxt_parse(struct psd_graph *graph, const char *path, const char *text, size_t length,
				   struct psd_error *err) PSD_MUST_CHECK;

#endif
