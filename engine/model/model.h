/* Model files in the native YAML form:
 *
 *   name: AlexNet
 *   input: {channels: 3, height: 227, width: 227}      # the first layer, named "input" unless it has a name
 *   layers:
 *     - {name: conv1, kind: conv, outputs: 96, kernel: 11, stride: 4}
 *     - {name: sum, kind: add, inputs: [left, right]}
 *
 * A layer's input (or inputs) are names of layers above it in the file; without the key it is the one just above.
 * kernel, stride, pad and dilation take a count or [height, width]. Keys by kind: conv           outputs, kernel;
 * stride 1, pad 0, dilation 1, groups 1, bias true pool           method (max or average), kernel; stride 1, pad 0,
 * round (down or up) down lrn            size batch-norm     scale true, bias true, or both at once: affine scale bias
 * true dropout        ratio inner-product  outputs; bias true global-pool, relu, concat, add, softmax-loss: nothing
 * more Outside the engine, for graphs that a program makes up. */
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
