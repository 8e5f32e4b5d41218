/* Gradients of a network on the CPU against central differences of the reference's loss, and heads of networks whose
 * layers in blocks of channels and not. Every kind stands above a layer with parameters, whose gradient is right only
 * if the kind's data gradient is. */
#ifndef PSD_TESTS_GRADIENTS_HELPER_H
#define PSD_TESTS_GRADIENTS_HELPER_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/real/device/reference.h"
#include "tests/real/net.h"

#define LOSS_TOLERANCE_RATIO	 2e-6 /* float sums of a few hundred terms */
#define GRADIENT_TOLERANCE_RATIO 5e-5 /* ratio to a tensor's norm */

static inline void check_loss(const struct net *net, double loss)
{
	double **wide = net_widen_parameters(net);
	const double expected = reference_loss(net->graph, &net->options, &net->batch, wide);

	cr_assert_lt(fabs(loss / expected - 1), LOSS_TOLERANCE_RATIO, "loss %.9g, must be %.9g", loss, expected);
	net_free_wide(net, wide);
}

static inline void check_tensor(const struct net *net, unsigned tensor, double **wide)
{
	double *expected = reference_gradient(net->graph, &net->options, &net->batch, wide, tensor);
	const double error_ratio = net_distance(net->gradients[tensor], expected, net->graph->tensors[tensor].elements);

	cr_expect_lt(error_ratio, GRADIENT_TOLERANCE_RATIO, "gradient of %s is off by %g of its norm",
		     net->graph->tensors[tensor].name, error_ratio);
	free(expected);
}

/* Loss and every parameter's gradient. The second iteration finds memory as the first one left it. */
static inline void check_network(const char *text, uint32_t batch)
{
	struct net net = net_make(text, batch);
	double **wide = net_widen_parameters(&net);

	(void)net_run(&net);
	check_loss(&net, net_run(&net));
	for (unsigned t = 0; t < net.graph->n_tensors; t++)
		check_tensor(&net, t, wide);
	net_free_wide(&net, wide);
	net_release(&net);
}

#define HEAD                                                                                                           \
	"name: m\ninput: {channels: 3, height: 7, width: 6}\nlayers:\n  - {name: base, kind: conv, outputs: 4, "       \
	"kernel: 3, pad: "                                                                                             \
	"1}\n"
#define TAIL "  - {name: top, kind: inner-product, outputs: 3}\n  - {name: loss, kind: softmax-loss}\n"
#define BLOCKED                                                                                                        \
	"name: m\ninput: {channels: 2, height: 6, width: 5}\nlayers:\n  - {name: base, kind: conv, outputs: 16, "      \
	"kernel: 3, "                                                                                                  \
	"pad: 1}\n"

/* Below 0 as well as above, in place above a convolution, and beside it where another layer reads the same. */
static inline void check_function(const char *keys)
{
	char text[1024];

	snprintf(text, sizeof(text), HEAD "  - {name: f, %s}\n" TAIL, keys);
	check_network(text, 2);
	snprintf(text, sizeof(text),
		 BLOCKED "  - {name: f, input: base, %s}\n  - {name: sum, kind: add, inputs: [f, base]}\n" TAIL, keys);
	check_network(text, 2);
}

#endif
