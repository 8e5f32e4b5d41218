/* Any bytes as a network in ONNX's form: either a sealed graph whose layers are in order, or an error with a text.
 * Never a crash, leak or hang. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "engine/model/onnx/onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	if (psd_onnx_parse(&graph, "fuzz", data, size, &err)) {
		if (err.status == PSD_OK || !err.text[0])
			abort();
		return 0;
	}
	for (unsigned i = 0; i < graph.n_layers; i++)
		for (unsigned j = 0; j < graph.layers[i].n_inputs; j++)
			if (graph.layers[i].inputs[j] >= i)
				abort();
	psd_graph_release(&graph);
	return 0;
}
