/* Networks on the CUDA device beside the CPU: arithmetics, their tolerances, and some text to write networks with. */
#ifndef PSD_TESTS_CUDA_COMPARE_HELPER_H
#define PSD_TESTS_CUDA_COMPARE_HELPER_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "tests/cuda/cuda_net.h"

/* Tolerances relative to the loss and to a tensor's norm: in fp32 the bar itself, else some roundings per number. */
static const struct arithmetic {
	const char *name;
	enum psd_layer_arithmetic arithmetic;
	double loss_tolerance_ratio, gradient_tolerance_ratio;
} arithmetics[] = {
	{"fp32", PSD_LAYERS_FP32, 1e-5, 1e-4},
	{"tf32", PSD_LAYERS_TF32, 2e-3, 1e-2},
	{"fp16", PSD_LAYERS_FP16, 5e-3, 2e-2},
	{"bf16", PSD_LAYERS_BF16, 3e-2, 1.5e-1},
};

static inline void compare(const struct cuda_net *cuda, double loss, double expected_loss,
			   const struct arithmetic *arithmetic, const char *text)
{
	const struct psd_graph *graph = cuda->net->graph;

	cr_expect_lt(fabs(loss / expected_loss - 1), arithmetic->loss_tolerance_ratio,
		     "%s: loss %.9g, must be %.9g: %s", arithmetic->name, loss, expected_loss, text);
	for (unsigned t = 0; t < graph->n_tensors; t++) {
		const double error_ratio =
			cuda_net_distance(cuda->host_gradients[t], cuda->net->gradients[t], graph->tensors[t].elements);

		cr_expect_lt(error_ratio, arithmetic->gradient_tolerance_ratio,
			     "%s: gradient of %s is off by %g of its norm: %s", arithmetic->name,
			     graph->tensors[t].name, error_ratio, text);
	}
}

/* Scales parameters down. Else scores are so far apart that one class has all, and its gradient is only rounding. */
static inline void calm(struct net *net)
{
	for (unsigned t = 0; t < net->graph->n_tensors; t++)
		for (uint64_t i = 0; i < net->graph->tensors[t].elements; i++)
			net->parameters[t][i] *= 0.4f;
}

/* Running statistics after two iterations. */
static inline void compare_states(const struct cuda_net *cuda, const struct arithmetic *arithmetic)
{
	const struct psd_graph *graph = cuda->net->graph;
	struct psd_error err = {0};

	for (unsigned s = 0; s < graph->n_states; s++) {
		const uint64_t count = graph->states[s].elements;
		float *own = calloc(count, sizeof(*own)), *expected = calloc(count, sizeof(*expected));

		cr_assert(own && expected);
		cr_assert_eq(psd_device_cuda.read_state(cuda->device, s, own, &err), PSD_OK, "%s", err.text);
		cr_assert_eq(psd_device_cpu.read_state(cuda->net->device, s, expected, &err), PSD_OK, "%s", err.text);
		cr_expect_lt(cuda_net_distance(own, expected, count), arithmetic->gradient_tolerance_ratio, "%s: %s",
			     arithmetic->name, graph->states[s].name);
		free(own);
		free(expected);
	}
}

/* The second iteration finds memory as the first one left it. */
static inline void check_net_in(const char *text, uint32_t batch, const struct arithmetic *arithmetic)
{
	struct net net = net_make(text, batch);
	struct cuda_net cuda;
	double loss;

	calm(&net);
	cuda = cuda_net_open(&net, arithmetic->arithmetic);
	(void)cuda_net_run(&cuda);
	loss = cuda_net_run(&cuda);
	(void)net_run(&net);
	compare(&cuda, loss, net_run(&net), arithmetic, text);
	compare_states(&cuda, arithmetic);
	if (arithmetic->arithmetic == PSD_LAYERS_FP32)
		cr_expect_eq(psd_device_cuda.correct(cuda.device), psd_device_cpu.correct(net.device));
	net.batch.is_training = false;
	loss = cuda_net_run_forward(&cuda);
	cr_expect_lt(fabs(loss / net_run_forward(&net) - 1), arithmetic->loss_tolerance_ratio,
		     "%s outside of training: %s", arithmetic->name, text);
	cuda_net_close(&cuda);
	net_release(&net);
}

/* The iteration in which engines are timed gives the same results as any other. */
static inline void check_timed(const char *text, uint32_t batch, const struct arithmetic *arithmetic)
{
	const struct psd_device_options options = {
		.n_threads = 1, .arithmetic = arithmetic->arithmetic, .may_differ = true};
	struct net net = net_make(text, batch);
	struct cuda_net cuda;
	double loss;

	calm(&net);
	cuda = cuda_net_open_with(&net, &options);
	loss = cuda_net_run(&cuda);
	compare(&cuda, loss, net_run(&net), arithmetic, text);
	cuda_net_close(&cuda);
	net_release(&net);
}

#define HEAD                                                                                                           \
	"name: m\ninput: {channels: 3, height: 7, width: 6}\nlayers:\n"                                                \
	"  - {name: base, kind: conv, outputs: 4, kernel: 3, pad: 1}\n"
#define WIDE                                                                                                           \
	"name: m\ninput: {channels: 2, height: 6, width: 5}\nlayers:\n"                                                \
	"  - {name: base, kind: conv, outputs: 16, kernel: 3, pad: 1}\n"
#define TAIL "  - {name: top, kind: inner-product, outputs: 3}\n  - {name: loss, kind: softmax-loss}\n"
/* Convolutions with groups, transposed ones, and those that add to an existing gradient. */
#define CONVOLUTIONS                                                                                                   \
	WIDE "  - {name: c, kind: conv, outputs: 16, kernel: 3, pad: 1, groups: 2}\n"                                  \
	     "  - {name: r, kind: relu}\n  - {name: s, kind: add, inputs: [r, base]}\n"                                \
	     "  - {name: d, kind: deconv, outputs: 16, kernel: 1}\n"                                                   \
	     "  - {name: t, kind: add, inputs: [s, d]}\n" TAIL

#endif
