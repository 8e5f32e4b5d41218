/* The CPU as a device over whole iterations: evaluation, repeatability, training, and what it refuses. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/model.h"
#include "real/device/device.h"
#include "tests/real/device/reference.h"
#include "tests/real/net.h"

#define LOSS_TOLERANCE_RATIO   2e-6
#define THREAD_TOLERANCE_RATIO 1e-5

#define HEAD                                                                                                           \
	"name: m\ninput: {channels: 3, height: 7, width: 6}\nlayers:\n  - {name: base, kind: conv, outputs: 4, "       \
	"kernel: 3, pad: "                                                                                             \
	"1}\n"
#define TAIL "  - {name: top, kind: inner-product, outputs: 3}\n  - {name: loss, kind: softmax-loss}\n"

/* The head shares the table. */
static const char sequence_text[] =
	"name: m\ninput: {channels: 1, height: 12}\nlayers:\n"
	"  - {name: table, kind: embedding, vocabulary: 20, outputs: 24}\n  - {name: place, kind: position}\n"
	"  - {name: n, kind: layer-norm}\n  - {name: q, kind: conv, outputs: 72, kernel: 1}\n"
	"  - {name: a, kind: attention, heads: 3, causal: true}\n  - {name: s, kind: add, inputs: [place, a]}\n"
	"  - {name: m, kind: layer-norm}\n  - {name: g, kind: gelu}\n"
	"  - {name: head, kind: conv, outputs: 20, kernel: 1, bias: false, shares: table}\n"
	"  - {name: loss, kind: softmax-loss}\n";

/* ---- evaluation ---- */

static double reference_of(const struct net *net)
{
	double **wide = net_widen_parameters(net);
	const double loss = reference_loss(net->graph, &net->options, &net->batch, wide);

	net_free_wide(net, wide);
	return loss;
}

NET_TEST(cpu_run, evaluation_drops_nothing,
	 net_make(HEAD "  - {name: r, kind: relu}\n  - {name: a, kind: inner-product, outputs: 9}\n"
		       "  - {name: d, kind: dropout, ratio: 0.5}\n" TAIL,
		  2))
{
	(void)net_run(net);
	net->batch.is_training = false;
	cr_assert_lt(fabs(net_run_forward(net) / reference_of(net) - 1), LOSS_TOLERANCE_RATIO);
}

NET_TEST(cpu_run, evaluation_drops_no_probabilities,
	 net_make("name: m\ninput: {channels: 6, height: 9}\nlayers:\n"
		  "  - {name: a, kind: attention, heads: 2, dropout: 0.5}\n" TAIL,
		  2))
{
	const double loss = net_run(net);

	net->batch.is_training = false;
	cr_assert_lt(fabs(net_run_forward(net) / reference_of(net) - 1), LOSS_TOLERANCE_RATIO);
	cr_assert_neq(net_run_forward(net), loss);
}

/* Nothing of a sequence is told that it is a test. */
NET_TEST(cpu_run, evaluation_of_a_sequence_is_as_training, net_make(sequence_text, 2))
{
	const double loss = net_run(net);
	const uint32_t correct = psd_device_cpu.correct(net->device);

	net->batch.is_training = false;
	cr_assert_eq(net_run_forward(net), loss);
	cr_assert_eq(psd_device_cpu.correct(net->device), correct);
	cr_assert_lt(fabs(loss / reference_of(net) - 1), LOSS_TOLERANCE_RATIO);
}

/* Running statistics move a tenth of the way each iteration: after 200 of the same batch 0.9^200 = 7e-10 of their start
 * is left. */
NET_TEST(cpu_run, evaluation_uses_the_running_statistics, net_make(HEAD "  - {name: n, kind: batch-norm}\n" TAIL, 2))
{
	double training_loss;

	for (unsigned i = 0; i < 200; i++)
		training_loss = net_run_forward(net);
	net->batch.is_training = false;
	cr_assert_lt(fabs(net_run_forward(net) / reference_of(net) - 1), LOSS_TOLERANCE_RATIO);
	cr_assert_gt(fabs(net_run_forward(net) / training_loss - 1),
		     10 * LOSS_TOLERANCE_RATIO); /* the variances differ by 84 / 83 */
}

NET_TEST(cpu_run, evaluation_leaves_the_running_statistics, net_make(HEAD "  - {name: n, kind: batch-norm}\n" TAIL, 2))
{
	double loss;

	(void)net_run(net);
	net->batch.is_training = false;
	loss = net_run_forward(net);
	cr_assert_eq(net_run_forward(net), loss);
}

static const char norm_text[] = "name: m\ninput: {channels: 1}\nlayers:\n  - {name: n, kind: batch-norm}\n" TAIL;

static float state_of(const struct net *net, unsigned state)
{
	float value;
	struct psd_error err = {0};

	cr_assert_eq(net->graph->states[state].elements, 1);
	cr_assert_eq(psd_device_cpu.read_state(net->device, state, &value, &err), PSD_OK);
	return value;
}

/* Images 1, 2 and 6: mean 3, squared distances 4 + 1 + 9 over 3 - 1 samples: 7. A tenth of the way from 0 and 1. */
NET_TEST(cpu_run, states_are_the_running_statistics_by_name, net_make(norm_text, 3))
{
	const float images[] = {1, 2, 6};

	memcpy(net->images, images, sizeof(images));
	cr_assert_eq(state_of(net, 0), 0);
	cr_assert_eq(state_of(net, 1), 1);
	(void)net_run_forward(net);
	cr_assert_str_eq(net->graph->states[0].name, "n.running_mean");
	cr_assert_float_eq(state_of(net, 0), 0.1 * 3, 1e-6);
	cr_assert_str_eq(net->graph->states[1].name, "n.running_variance");
	cr_assert_float_eq(state_of(net, 1), 0.9 + 0.1 * 7, 1e-6);
}

/* As after a checkpoint: with the same parameters and states another device evaluates to the same bits. */
Test(cpu_run, states_carry_over_to_another_device)
{
	struct net trained = net_make(norm_text, 3), fresh = net_make(norm_text, 3);
	struct psd_error err = {0};
	double loss;

	(void)net_run_forward(&trained);
	trained.batch.is_training = fresh.batch.is_training = false;
	loss = net_run_forward(&trained);
	cr_assert_neq(net_run_forward(&fresh), loss);
	for (unsigned s = 0; s < trained.graph->n_states; s++) {
		const float value = state_of(&trained, s);

		cr_assert_eq(psd_device_cpu.write_state(fresh.device, s, &value, &err), PSD_OK);
	}
	cr_assert_eq(net_run_forward(&fresh), loss);
	net_release(&trained);
	net_release(&fresh);
}

/* ---- repeatability ---- */

static const char mixed_text[] = HEAD
	"  - {name: r, kind: relu}\n  - {name: n, kind: batch-norm}\n  - {name: c, kind: conv, outputs: 16, kernel: 3, "
	"groups: 2}\n"
	"  - {name: p, kind: pool, method: max, kernel: 2}\n  - {name: l, kind: lrn, size: 5}\n"
	"  - {name: a, kind: inner-product, outputs: 40}\n  - {name: d, kind: dropout, ratio: 0.5}\n" TAIL;

static const char *const repeated_texts[] = {mixed_text, sequence_text};

static struct net make_threaded(const char *text, unsigned n_threads)
{
	struct net net = net_make(text, 6);

	psd_device_cpu.close(net.device);
	net.device_options.n_threads = n_threads;
	net_open(&net);
	return net;
}

static void check_repeats(const char *text, unsigned n_threads)
{
	struct net one = make_threaded(text, n_threads), other = make_threaded(text, n_threads);

	cr_assert_eq(net_run(&one), net_run(&other));
	for (unsigned t = 0; t < one.graph->n_tensors; t++)
		cr_assert_arr_eq(one.gradients[t], other.gradients[t], one.graph->tensors[t].elements * sizeof(float));
	(void)net_run(&one);
	for (unsigned t = 0; t < one.graph->n_tensors; t++)
		cr_assert_arr_eq(one.gradients[t], other.gradients[t], one.graph->tensors[t].elements * sizeof(float));
	net_release(&one);
	net_release(&other);
}

Test(cpu_run, same_input_same_bits)
{
	for (unsigned i = 0; i < 2; i++) {
		check_repeats(repeated_texts[i], 1);
		check_repeats(repeated_texts[i], 2);
	}
}

static void check_threads(const char *text)
{
	struct net one = make_threaded(text, 1), two = make_threaded(text, 2);

	(void)net_run(&one), (void)net_run(&two);
	for (unsigned t = 0; t < one.graph->n_tensors; t++) {
		double *expected = net_widen(one.gradients[t], one.graph->tensors[t].elements);

		cr_expect_lt(net_distance(two.gradients[t], expected, one.graph->tensors[t].elements),
			     THREAD_TOLERANCE_RATIO, "%s", one.graph->tensors[t].name);
		free(expected);
	}
	net_release(&one);
	net_release(&two);
}

Test(cpu_run, threads_change_rounding_only)
{
	for (unsigned i = 0; i < 2; i++)
		check_threads(repeated_texts[i]);
}

static struct net make_cifar10_quick(uint32_t batch)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_graph_load(&graph, "scenarios/models/cifar10-quick.yaml", &err), PSD_OK, "%s", err.text);
	return net_make_graph(graph, batch);
}

/* The convolutions' part gives a sample what it would give it in any batch, bit for bit: only sums over samples round
 * differently. */
Test(cpu_run, convolutions_give_a_sample_the_same_in_every_batch)
{
	struct net whole = make_cifar10_quick(25), part = make_cifar10_quick(3);
	unsigned l = 0;

	for (unsigned t = 0; t < whole.graph->n_tensors; t++)
		memcpy(part.parameters[t], whole.parameters[t], whole.graph->tensors[t].elements * sizeof(float));
	memcpy(part.images, whole.images, 3 * net_image_elements(&whole) * sizeof(float));
	memcpy(part.labels, whole.labels, 3 * sizeof(*whole.labels));
	(void)net_run(&whole), (void)net_run(&part);
	while (whole.graph->layers[l].kind != &psd_layer_inner_product)
		l++;
	const struct psd_factors of_part = net_take_factors(&part, l), of_whole = net_take_factors(&whole, l);

	cr_assert_arr_eq(of_part.bottom, of_whole.bottom,
			 3 * whole.graph->tensors[whole.graph->layers[l].first_tensor].rows * sizeof(float));
	net_free_factors(of_part);
	net_free_factors(of_whole);
	net_release(&whole);
	net_release(&part);
}

/* ---- gradients that others make ---- */

/* The upper linear layer computes neither weight nor bias gradient, the lower one the bias gradient alone. Unused
 * gradients stay untouched, and all others equal those of a network that computes everything. */
Test(cpu_run, gradients_that_nobody_wants_are_left_out)
{
	struct net net = net_make(mixed_text, 3), some = net_make(mixed_text, 3);
	float **wanted = calloc(some.graph->n_tensors, sizeof(*wanted)), **all = some.gradients;
	const unsigned lower = some.graph->layers[7].first_tensor, upper = some.graph->layers[9].first_tensor;

	cr_assert(wanted);
	memcpy(wanted, all, some.graph->n_tensors * sizeof(*wanted));
	wanted[lower] = wanted[upper] = wanted[upper + 1] = NULL;
	psd_device_cpu.close(some.device);
	some.gradients = wanted;
	net_open(&some);
	cr_assert_eq(net_run(&some), net_run(&net));
	for (unsigned t = 0; t < net.graph->n_tensors; t++)
		if (wanted[t])
			cr_expect_arr_eq(wanted[t], net.gradients[t], net.graph->tensors[t].elements * sizeof(float));
		else
			cr_expect_eq(all[t][0], 1e6f); /* as net_make() leaves it */
	some.gradients = all;
	free(wanted);
	net_release(&some);
	net_release(&net);
}

/* ---- training ---- */

/* Class k is a bright band of rows 3 k to 3 k + 2 in noise. */
static void draw_bands(struct net *net)
{
	for (uint32_t i = 0; i < net->options.batch; i++) {
		net->labels[i] = (int32_t)(i % 10);
		for (uint32_t p = 0; p < 3 * 32 * 32; p++)
			net->images[i * 3 * 32 * 32 + p] += p / 32 % 32 / 3 == i % 10 ? 2.0f : 0.0f;
	}
}

/* Normal with the variance of He et al. 2015 is not needed: uniform with the same variance 2 / inputs; biases 0. */
static void initialise(struct net *net)
{
	for (unsigned t = 0; t < net->graph->n_tensors; t++) {
		const struct psd_layer *layer = &net->graph->layers[net->graph->tensors[t].layer];
		const uint64_t inputs = net->graph->tensors[t].elements / net->graph->tensors[t].dims[0];
		const float scale = t == layer->first_tensor ? 2 * sqrtf(6.0f / (float)inputs)
							     : 0; /* parameters are in [-0.5, 0.5) */

		for (uint64_t i = 0; i < net->graph->tensors[t].elements; i++)
			net->parameters[t][i] *= scale;
	}
}

static void descend(struct net *net, float learning_rate)
{
	for (unsigned t = 0; t < net->graph->n_tensors; t++)
		for (uint64_t i = 0; i < net->graph->tensors[t].elements; i++)
			net->parameters[t][i] -= learning_rate * net->gradients[t][i];
}

NET_TEST(cpu_run, cifar10_quick_learns_separable_classes, make_cifar10_quick(20))
{
	double first_loss, loss = 0;

	draw_bands(net);
	initialise(net);
	first_loss = net_run(net);
	for (unsigned i = 0; i < 30; i++) {
		descend(net, 0.02f);
		loss = net_run(net);
	}
	cr_assert_lt(loss, 0.5 * first_loss, "loss went from %g to %g", first_loss, loss);
	cr_assert_gt(psd_device_cpu.correct(net->device), 15);
}

/* ---- ends that no loss depends on, layers without parameters below, limits ---- */

/* x and y are computed between the dead end and the loss: their gradients have been where the dead end's comes to lie.
 */
NET_TEST(cpu_run, gradients_of_a_dead_end_are_zero,
	 net_make(HEAD "  - {name: dead, kind: conv, outputs: 4, kernel: 1}\n  - {name: r, kind: relu}\n"
		       "  - {name: x, kind: conv, outputs: 4, kernel: 1, input: base}\n"
		       "  - {name: y, kind: conv, outputs: 4, kernel: 1}\n" TAIL,
		  2))
{
	(void)net_run(net);
	for (unsigned t = net->graph->layers[2].first_tensor; t < net->graph->layers[2].first_tensor + 2; t++)
		for (uint64_t i = 0; i < net->graph->tensors[t].elements; i++)
			cr_assert_eq(net->gradients[t][i], 0);
}

NET_TEST(cpu_run, layers_above_the_images_have_no_backward,
	 net_make("name: m\ninput: {channels: 3, height: 7, width: 6}\nlayers:\n  - {name: r, kind: relu}\n"
		  "  - {name: p, kind: pool, method: max, kernel: 2}\n" TAIL,
		  2))
{
	const uint64_t image_bytes = 2 * net_image_elements(net) * sizeof(float);
	float *kept = malloc(image_bytes);

	cr_assert(kept);
	memcpy(kept, net->images, image_bytes);
	cr_assert_lt(fabs(net_run(net) / reference_of(net) - 1), LOSS_TOLERANCE_RATIO);
	cr_assert_arr_eq(net->images, kept, image_bytes);
	free(kept);
}

static void refuses(const char *text, const char *message)
{
	const struct psd_device_options device_options = {.n_threads = 1};
	const struct psd_network_options options = {.batch = 2, .loss_divisor = 2};
	float *none[16] = {0};
	struct psd_device *device;
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_model_parse(&graph, "m.yaml", text, strlen(text), &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_device_cpu.open(&device, &device_options, &err), PSD_OK);
	cr_assert_eq(psd_device_cpu.load(device, &graph, &options, none, none, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, message);
	psd_device_cpu.close(device);
	psd_graph_release(&graph);
}

Test(cpu_run, layers_it_cannot_do_are_refused_by_name)
{
	refuses(HEAD "  - {name: p, kind: pool, method: average, kernel: 3, stride: 3, pad: [0, 1], round: up}\n" TAIL,
		"layer 'p' (pool): cpu supports no average over windows that reach beyond the padding: set pad 0 or "
		"rounding down");
	/* labels are for the last one's single place; the base has 7 x 6 */
	refuses(HEAD "  - {name: aside, kind: softmax-loss}\n"
		     "  - {name: top, kind: inner-product, input: base, outputs: 3}\n"
		     "  - {name: loss, kind: softmax-loss}\n",
		"layer 'aside' (softmax-loss) has 42 positions, the last loss has labels for 1");
}

/* The bar for a worker: 4 models (parameters, gradients, history and one more) + activations + 64 MiB. Three are not
 * held here. */
Test(cpu_run, alexnet_holds_less_than_a_model_and_its_activations)
{
	const struct psd_device_options device_options = {.n_threads = 1};
	const struct psd_network_options options = {.batch = 32, .loss_divisor = 32};
	float *none[16] = {0}; /* nothing is run */
	struct psd_device *device;
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_graph_load(&graph, "scenarios/models/alexnet.yaml", &err), PSD_OK, "%s", err.text);
	cr_assert_eq(graph.n_tensors, 16);
	cr_assert_eq(psd_device_cpu.open(&device, &device_options, &err), PSD_OK);
	cr_assert_eq(psd_device_cpu.load(device, &graph, &options, none, none, &err), PSD_OK, "%s", err.text);
	cr_assert_lt(psd_device_cpu.memory_bytes(device),
		     graph.parameters * sizeof(float) + options.batch * graph.activation_bytes + (UINT64_C(64) << 20));
	psd_device_cpu.close(device);
	psd_graph_release(&graph);
}

static uint64_t chain_bytes(unsigned n_convs)
{
	struct net net = net_make_chain(n_convs);
	const uint64_t held_bytes = psd_device_cpu.memory_bytes(net.device);

	net_release(&net);
	return held_bytes;
}

/* Ten more convolutions hold ten more outputs, and not their gradients, of which two at a time are alive. */
Test(cpu_run, gradients_share_memory)
{
	const uint64_t output_bytes = UINT64_C(4) * 16 * 32 * 32 * sizeof(float);
	const uint64_t more_bytes = chain_bytes(15) - chain_bytes(5);

	cr_assert_geq(more_bytes, 10 * output_bytes);
	cr_assert_lt(more_bytes, 11 * output_bytes); /* and small change */
}
