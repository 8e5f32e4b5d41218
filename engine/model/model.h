/* Model files in the native YAML form:
 *
 *   name: AlexNet
 *   input: {channels: 3, height: 227, width: 227}      # the first layer, named "input" unless it has a name
 *   layers:
 *     - {name: conv1, kind: conv, outputs: 96, kernel: 11, stride: 4}
 *     - {name: sum, kind: add, inputs: [left, right]}
 *
 * A layer's `input` (or `inputs`) names layers above it in the file; the default is the layer just above. kernel,
 * stride, pad and dilation are a count or [height, width]. The file of a kind in kinds/ has the table of its keys.
 *
 * An entry {repeat: 12, name: b, layers: [...]} stands for 12 copies of its layers, named b1.norm and so on; `first` is
 * the number of the first copy, 1 by default. A name in a copy means a layer of the same copy if there is one, else a
 * layer outside; `above` is the layer above the copy. */
#ifndef PSD_MODEL_H
#define PSD_MODEL_H

#include <stddef.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"

/* Reads a model from length bytes of text; path: its name in errors. As
 * psd_graph_load(); sequence: number of tokens of a sample in place of the file's, 0: the file's. */
enum psd_status psd_model_parse(struct psd_graph *graph, const char *path, const void *text, size_t length,
				struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_model_parse_sequence(struct psd_graph *graph, const char *path, const void *text, size_t length,
					 unsigned sequence, struct psd_error *err) PSD_MUST_CHECK;

#endif
