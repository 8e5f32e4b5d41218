/* Reader of ONNX networks (https://onnx.ai), as PyTorch and others export them.
 *
 * A node becomes the layer that computes the same. Reshapes and transposes change only the view of a layer's output
 * (view.h), unless a layer needs another order. Elementwise nodes are collected and recognised as one function
 * (expression.c); normalisation, rotation (fusion.c) and attention (attention.c) are recognised in several nodes. Nodes
 * of constants and shapes alone are computed (fold.c).
 *
 * The first input is the network's; its first axis is the batch, of size 1 if open. An input that only a loss reads is
 * the labels. Only the first output, or those of the user's choice, and the nodes that they need are read. If the file
 * has no loss and the output has several values, a softmax with the multinomial loss is added, in place of a softmax
 * at the end. For a prediction there may be several inputs, and nodes that psd-run cannot compute become layers of the
 * kind other (other.c).
 *
 * Parameters are initializers of several values that are combined with data. Two layers share a matrix by which both
 * multiply, unless they are copies (ties.c); they do not share vectors, because exporters merge equal ones.
 *
 * Dropout of attention probabilities and stochastic depth are ignored. Outside the engine: for the numbers of a file.
 * */
#ifndef PSD_ONNX_H
#define PSD_ONNX_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"

/* Largest size of a file, a limit of protocol buffers. */
#define PSD_ONNX_BYTES_MAX ((size_t)1 << 31)

/* Reads a graph from length bytes of a file; path: its name in errors, and the folder of external data. As
 * psd_graph_load_as(); errors name the node. */
enum psd_status psd_onnx_parse(struct psd_graph *graph, const char *path, const void *bytes, size_t length,
			       const struct psd_model_choices *choices, struct psd_error *err) PSD_MUST_CHECK;

/* A graph together with the parameter values in its file. */
struct psd_onnx_file;

/* Opens a file. *file is filled on success, and closed by the caller; path and choices are borrowed until then. */
enum psd_status psd_onnx_open(struct psd_onnx_file **file, const char *path, const struct psd_model_choices *choices,
			      struct psd_error *err) PSD_MUST_CHECK;
const struct psd_graph *psd_onnx_graph(const struct psd_onnx_file *file); /* graph of the file, borrowed */
/* Reads the values of a tensor or state of that graph, in psd's order. values: array of tensor->elements, or NULL to
 * set only *is_there, which is false if the file has no values for it. PSD_EINVAL: the file has the tensor without
 * numbers. */
enum psd_status psd_onnx_values(struct psd_onnx_file *file, const struct psd_tensor *tensor, float values[],
				bool *is_there, struct psd_error *err) PSD_MUST_CHECK;
void psd_onnx_close(struct psd_onnx_file *file); /* closes a file; NULL is allowed */

#endif
