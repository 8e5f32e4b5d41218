/* Checks what a parser of networks has made of any bytes, for the fuzz targets of such parsers. */
#ifndef PSD_TESTS_FUZZ_PARSED_GRAPH_H
#define PSD_TESTS_FUZZ_PARSED_GRAPH_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "engine/model/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Either there is a graph whose layers are in order, which is released, or an error with a text. */
static inline int check_parsed(enum psd_status status, struct psd_graph *graph, const struct psd_error *err)
{
	if (status) {
		if (err->status == PSD_OK || !err->text[0])
			abort();
		return 0;
	}
	for (unsigned i = 0; i < graph->n_layers; i++)
		for (unsigned j = 0; j < graph->layers[i].n_inputs; j++)
			if (graph->layers[i].inputs[j] >= i)
				abort();
	psd_graph_release(graph);
	return 0;
}

#endif
