/* Reader of ONNX networks (https://onnx.ai), as PyTorch and other programs export them.
 *
 * A node becomes the layer that computes the same. Reshapes and transposes change only the view of a layer's output
 * (view.h), unless a layer needs its input in another order. Consecutive elementwise nodes are joined to one function
 * (expression.c). A normalisation, a rotary position encoding (fusion.c) and an attention (attention.c) are recognised
 * in their several nodes. Nodes whose inputs are constants or shapes are computed when the file is read (fold.c).
 *
 * The first input of the file is the network's input. Its first axis is the batch; if its size is not fixed, it counts
 * as 1. An input that only a loss reads has the labels. Only the first output, or the outputs that the user chose, are
 * read, with the nodes that they need. If the file has no loss and the output has more than one value, a softmax with
 * the multinomial loss is added. It replaces a softmax at the end of the network. For a prediction there may be several
 * inputs, and nodes that psd-run cannot compute become layers of the kind `other` (other.c).
 *
 * Parameters are initializers with more than one value that are combined with data. Two layers share a matrix if both
 * multiply by it, unless their matrices are copies (ties.c). They do not share vectors, because exporters merge equal
 * vectors of different layers.
 *
 * Dropout of attention probabilities and stochastic depth are ignored. Code outside the engine uses this file for the
 * values of parameters. */
#ifndef PSD_ONNX_H
#define PSD_ONNX_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"

/* Largest size of a file, bytes: a limit of protocol buffers. */
#define PSD_ONNX_BYTES_MAX ((size_t)1 << 31)

/* Reads a graph from length bytes of a file. path: name of the file in messages; external data are in its folder.
 * Result and statuses are those of psd_graph_load_as(); messages name the node. */
enum psd_status psd_onnx_parse(struct psd_graph *graph, const char *path, const void *bytes, size_t length,
			       const struct psd_model_choices *choices, struct psd_error *err) PSD_MUST_CHECK;

/* Graph of an ONNX file, together with the values that the file has for its parameters. */
struct psd_onnx_file;

/* Opens a file. On success *file is set, and the caller closes it by psd_onnx_close(). path and choices are borrowed
 * until then. */
enum psd_status psd_onnx_open(struct psd_onnx_file **file, const char *path, const struct psd_model_choices *choices,
			      struct psd_error *err) PSD_MUST_CHECK;
const struct psd_graph *psd_onnx_graph(const struct psd_onnx_file *file); /* graph of the file, borrowed */
/* Reads the values of a tensor or state of the file's graph, in the order of psd's tensors. values: array of
 * tensor->elements entries; NULL: only *is_there is set. *is_there becomes true if the file has values for the tensor.
 * PSD_EINVAL: the file has the tensor, but leaves out its numbers. */
enum psd_status psd_onnx_values(struct psd_onnx_file *file, const struct psd_tensor *tensor, float values[],
				bool *is_there, struct psd_error *err) PSD_MUST_CHECK;
void psd_onnx_close(struct psd_onnx_file *file); /* closes a file; does nothing if file is NULL */

#endif
