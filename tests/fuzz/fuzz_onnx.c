/* Any bytes as a network in ONNX's form: either a sealed graph whose layers are in order, or an error with a text.
 * Never a crash, leak or hang. */
#include "engine/model/onnx/onnx.h"
#include "tests/fuzz/parsed_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	return check_parsed(psd_onnx_parse(&graph, "fuzz", data, size, NULL, &err), &graph, &err);
}
