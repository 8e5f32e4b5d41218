/* Layers that share parameters on the CUDA device, against the CPU: the gradient is the sum of all their parts. */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/model/prototxt.h"
#include "tests/cuda/cuda_net.h"
#include "tests/test_with.h"

#define IMAGES "input: 'data' input_shape { dim: [1, 4, 6, 5] }\n"
#define LAYER(name, type, below, names, settings)                                                                      \
	"layer { name: '" name "' type: '" type "' bottom: '" below "' top: '" name "' " names " " settings " }\n"
#define BOTH(left, right) "param: '" left "' param: '" right "'"
#define CONV(name, below)                                                                                              \
	LAYER(name, "Convolution", below, BOTH("w", "b"), "convolution_param { num_output: 4 kernel_size: 3 pad: 1 }")
#define INNER(name, below, names) LAYER(name, "InnerProduct", below, names, "inner_product_param { num_output: 8 }")
#define TOP(below)                                                                                                     \
	LAYER("top", "InnerProduct", below, "", "inner_product_param { num_output: 3 }")                               \
	"layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'top' top: 'loss' }\n"

/* As in test_cuda_net.c. */
static const struct {
	enum psd_layer_arithmetic arithmetic;
	double tolerance_ratio;
} arithmetics[] = {
	{PSD_LAYERS_FP32, 1e-4}, {PSD_LAYERS_TF32, 1e-2}, {PSD_LAYERS_FP16, 2e-2}, {PSD_LAYERS_BF16, 1.5e-1}};

static struct psd_graph parse(const char *text)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_prototxt_parse(&graph, "n.prototxt", text, strlen(text), NULL, &err), PSD_OK, "%s", err.text);
	return graph;
}

/* Twice: the second iteration finds the parts as the first one left them. */
static void check_in(const char *text, enum psd_layer_arithmetic arithmetic, double tolerance_ratio)
{
	struct net net = net_make_graph(parse(text), 3);
	struct cuda_net cuda = cuda_net_open(&net, arithmetic);

	for (unsigned turn = 0; turn < 2; turn++) {
		(void)cuda_net_run(&cuda);
		(void)net_run(&net);
		for (unsigned t = 0; t < net.graph->n_tensors; t++)
			cr_expect_lt(cuda_net_distance(cuda.host_gradients[t], net.gradients[t],
						       net.graph->tensors[t].elements),
				     tolerance_ratio, "arithmetic %d, gradient of %s: %s", (int)arithmetic,
				     net.graph->tensors[t].name, text);
	}
	cuda_net_close(&cuda);
	net_release(&net);
}

static void check(const char *text)
{
	for (unsigned a = 0; a < sizeof(arithmetics) / sizeof(arithmetics[0]); a++)
		check_in(text, arithmetics[a].arithmetic, arithmetics[a].tolerance_ratio);
}

TEST_ROW(cuda_shared, convolutions_add_up, check(IMAGES CONV("a", "data") CONV("c", "a") CONV("d", "c") TOP("d")))
TEST_ROW(cuda_shared, inner_products_add_up,
	 check("input: 'data' input_shape { dim: [1, 8] }\n" INNER("a", "data", BOTH("w", "b"))
		       INNER("c", "a", BOTH("w", "b")) INNER("d", "c", BOTH("v", "u")) INNER("e", "d", BOTH("v", "u"))
			       TOP("e")))

Test(cuda_shared, slopes_and_factors_add_up)
{
	check(IMAGES CONV("a", "data") LAYER("p", "PReLU", "a", "param: 's'", "") CONV("c", "p")
		      LAYER("q", "PReLU", "c", "param: 's'", "") TOP("q"));
	check(IMAGES CONV("a", "data") LAYER("f", "Scale", "a", BOTH("f", "g"), "scale_param { bias_term: true }") CONV(
		"c", "f") LAYER("h", "Scale", "c", BOTH("f", "g"), "scale_param { bias_term: true }") TOP("h"));
}
