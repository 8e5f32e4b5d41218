/* Model files in the native YAML form:
 *
 *   name: AlexNet
 *   input: {channels: 3, height: 227, width: 227}      # the first layer, named "input" unless it has a name
 *   layers:
 *     - {name: conv1, kind: conv, outputs: 96, kernel: 11, stride: 4}
 *     - {name: sum, kind: add, inputs: [left, right]}
 *
 * A layer's input (or inputs) are names of layers above it in the file; without the key it is the one just above.
 * kernel, stride, pad and dilation take a count or [height, width]. The keys of a kind are a table in its file of
 * kinds/. Outside the engine, for graphs that a program makes up. */
#ifndef PSD_MODEL_H
#define PSD_MODEL_H

#include <stddef.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"

/* As psd_graph_load(), for a file or for length bytes of text named path in messages. */
enum psd_status psd_model_load(struct psd_graph *graph, const char *path, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_model_parse(struct psd_graph *graph, const char *path, const char *text, size_t length,
				struct psd_error *err) PSD_MUST_CHECK;

#endif
