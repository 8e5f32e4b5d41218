/* Any bytes as a network in ONNX's form, for training and for a prediction: either a sealed graph whose layers are in
 * order, or an error with a text. Never a crash, leak or hang. */
#include "engine/model/onnx/onnx.h"
#include "tests/fuzz/parsed_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct psd_model_choices predicts = {.allows_other = true, .sample = {3, 8, 8}};
	struct psd_graph graph;
	struct psd_error err = {0}, other_err = {0};

	check_parsed(psd_onnx_parse(&graph, "fuzz", data, size, NULL, &err), &graph, &err);
	return check_parsed(psd_onnx_parse(&graph, "fuzz", data, size, &predicts, &other_err), &graph, &other_err);
}
