/* Any bytes as a Caffe network: either a sealed graph whose layers are in order, or an error with a text. Never a
 * crash, leak or hang. */
#include "engine/model/prototxt.h"
#include "tests/fuzz/parsed_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	return check_parsed(psd_prototxt_parse(&graph, "fuzz", (const char *)data, size, NULL, &err), &graph, &err);
}
