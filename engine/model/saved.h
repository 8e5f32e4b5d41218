/* Values that PyTorch saves for backward. psd-run keeps other ones (activation_bytes of struct psd_graph). */
#ifndef PSD_SAVED_H
#define PSD_SAVED_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"

/* True if backward of the layer reads its inputs; output: its output, or values that forward stores beside it. Pure. */
bool psd_saved_reads(const struct psd_layer *layer, bool output);

/* True if the layer's output has 16 bits under autocast; layers: those of its graph, whose is_half is known up to its
 * inputs. Pure. */
bool psd_saved_is_half(const struct psd_layer *layer, const struct psd_layer *layers);

struct psd_saved {
	uint64_t sample_bytes; /* saved values of a sample, without the sample itself and without scores */
	/* attention's probabilities of a sample and, with dropout, their mask and their values after dropout: saved by
	 * eager attention, not by fused kernels */
	uint64_t score_bytes;
	/* inputs of attention's softmax for a sample, in fp32: eager attention saved these as well before PyTorch
	 * 1.11 */
	uint64_t softmax_input_bytes;
	/* logits of a sample and their gradient, which exist when backward begins */
	uint64_t head_bytes;
	uint64_t weights_bytes; /* copies of parameters in half precision, with any batch */
};

/* Counts what PyTorch 2 saves on a GPU; dropout layers count their masks. is_half: under autocast. recomputes: each
 * block of the graph is checkpointed; its outputs are saved, and one block's other values at a time. Left out are
 * values that are few: statistics of norms and attention, labels. PSD_ENOMEM. Pure. */
enum psd_status psd_saved_count(struct psd_saved *saved, const struct psd_graph *graph, bool is_half, bool recomputes,
				struct psd_error *err) PSD_MUST_CHECK;

#endif
