/* Model files in psd's own YAML form:
 *
 *     name: AlexNet
 *     input: {channels: 3, height: 227, width: 227}      # the first layer; its name is "input" if it has no key `name`
 *     layers:
 *       - {name: conv1, kind: conv, outputs: 96, kernel: 11, stride: 4}
 *       - {name: sum, kind: add, inputs: [left, right]}
 *
 * The key `input` (or `inputs`) of a layer has the names of layers above it in the file. Default: the layer directly
 * above. kernel, stride, pad and dilation are a number, or [height, width]. The other keys of a kind are in its file in
 * kinds/.
 *
 * An entry {repeat: 12, name: b, layers: [...]} means 12 copies of its layers. A layer `norm` has the name b1.norm in
 * the first copy and b12.norm in the last. The key `first` changes the number of the first copy, by default 1. A name
 * inside a copy means the layer of the same copy, or a layer outside if the copy has none of this name. `above` means
 * the layer directly above the copy. */
#ifndef PSD_MODEL_H
#define PSD_MODEL_H

#include <stddef.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"

/* Read a model from length bytes of text; path: name of the file in messages. Results and statuses are those of
 * psd_graph_load(). sequence: number of tokens per sample; 0: the file's. */
enum psd_status psd_model_parse(struct psd_graph *graph, const char *path, const void *text, size_t length,
				struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_model_parse_sequence(struct psd_graph *graph, const char *path, const void *text, size_t length,
					 unsigned sequence, struct psd_error *err) PSD_MUST_CHECK;

#endif
