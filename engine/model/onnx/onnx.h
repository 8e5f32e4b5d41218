/* Networks in ONNX's form (https://onnx.ai), as PyTorch and others export them. A node becomes the layer that computes
 * the same; nodes that only reshape or reorder become part of how later ones read a layer (view.h), or a reshape or
 * permute where there is no other way. Elementwise functions are put together again from the nodes that spell them out
 * (term.c), as are normalisation and rotation (spelt.c), and attention (attention.c). What follows from constants and
 * shapes alone is computed (compute.c).
 *
 * The first input is the network's, its first axis the batch; an input that only a loss reads is the labels. An open
 * batch counts as 1. Of several outputs the first one counts, and what it does not need is left out. Unless the file
 * computes a loss or puts out one value, a softmax with the multinomial loss follows, in place of a softmax at the end.
 *
 * Parameters are initializers of several values that meet the network's data. Two layers share them where both multiply
 * by the same matrix; vectors are each layer's own, since exporters write equal ones once.
 *
 * Left out: dropout of attention's probabilities and stochastic depth. Outside the engine, for a file's numbers. */
#ifndef PSD_ONNX_H
#define PSD_ONNX_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"

/* As psd_graph_load(), for a file, or for length bytes of one, named path in messages, whose external data is looked
 * for beside it. PSD_EINVAL names the node. */
enum psd_status psd_onnx_load(struct psd_graph *graph, const char *path, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_onnx_parse(struct psd_graph *graph, const char *path, const void *bytes, size_t length,
			       struct psd_error *err) PSD_MUST_CHECK;

/* The same with the numbers of the file. */
struct psd_onnx_file;

/* On success *file is the caller's to close; path: borrowed until then. */
enum psd_status psd_onnx_open(struct psd_onnx_file **file, const char *path, struct psd_error *err) PSD_MUST_CHECK;
const struct psd_graph *psd_onnx_graph(const struct psd_onnx_file *file); /* borrowed */
/* What a tensor or state of that graph has in the file, in psd's order. values: as many as its elements; NULL: only
 * *is_there counts, which is false where the file says nothing of it. PSD_EINVAL: the file leaves its numbers out. */
enum psd_status psd_onnx_values(struct psd_onnx_file *file, const struct psd_tensor *tensor, float values[],
				bool *is_there, struct psd_error *err) PSD_MUST_CHECK;
void psd_onnx_close(struct psd_onnx_file *file); /* NULL is allowed */

#endif
