/* The CUDA device besides what it computes: what it refuses and how it says so, marks, memory, factors, states. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/model.h"
#include "real/device/gpu/gpu.h"
#include "tests/cuda/cuda_net.h"
#include "tests/cuda/stand_in.h"

#define TAIL "  - {name: top, kind: inner-product, outputs: 3}\n  - {name: loss, kind: softmax-loss}\n"

static const char mixed_text[] =
	"name: m\ninput: {channels: 3, height: 7, width: 6}\nlayers:\n"
	"  - {name: base, kind: conv, outputs: 4, kernel: 3, pad: 1}\n  - {name: r, kind: relu}\n"
	"  - {name: n, kind: batch-norm}\n  - {name: c, kind: conv, outputs: 16, kernel: 3, groups: 2}\n"
	"  - {name: p, kind: pool, method: max, kernel: 2}\n  - {name: l, kind: lrn, size: 5}\n"
	"  - {name: a, kind: inner-product, outputs: 40}\n  - {name: d, kind: dropout, ratio: 0.5}\n" TAIL;

static enum psd_status try_to_open(enum psd_layer_arithmetic arithmetic, struct psd_error *err)
{
	const struct psd_device_options options = {.n_threads = 1, .arithmetic = arithmetic};
	struct psd_device *device;
	const enum psd_status status = psd_device_cuda.open(&device, &options, err);

	if (!status)
		psd_device_cuda.close(device);
	return status;
}

/* ---- refusals ---- */

Test(cuda_device, a_machine_without_gpu_is_told)
{
	struct psd_error err = {0};

	psd_stand_in_set_devices(0);
	cr_assert_eq(try_to_open(PSD_LAYERS_FP32, &err), PSD_ERUN);
	cr_assert_eq(
		strncmp(err.text, "this machine has no NVIDIA GPU that the driver supports (cudaErrorNoDevice: ", 76),
		0, "%s", err.text);
}

Test(cuda_device, an_old_driver_is_told_with_both_versions)
{
	struct psd_error err = {0};

	psd_stand_in_set_driver(12020);
	cr_assert_eq(try_to_open(PSD_LAYERS_FP32, &err), PSD_ERUN);
	cr_assert_str_eq(err.text, "this machine's NVIDIA driver is for CUDA 12.2, must be for 13.0 or newer "
				   "(cudaErrorInsufficientDriver)");
}

Test(cuda_device, the_driver_for_linking_is_told)
{
	struct psd_error err = {0};

	psd_stand_in_fail("cudaGetDeviceCount", 1, cudaErrorStubLibrary);
	cr_assert_eq(try_to_open(PSD_LAYERS_FP32, &err), PSD_ERUN);
	cr_assert_eq(strncmp(err.text, "libcuda.so.1 on this machine is the stub of the CUDA toolkit", 60), 0, "%s",
		     err.text);
}

Test(cuda_device, arithmetic_that_the_gpu_lacks_is_refused)
{
	struct psd_error err = {0};

	psd_stand_in_set_capability(7, 5);
	cr_assert_eq(try_to_open(PSD_LAYERS_FP32, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(try_to_open(PSD_LAYERS_FP16, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(try_to_open(PSD_LAYERS_BF16, &err), PSD_EINVAL);
	cr_assert(strstr(err.text, "has compute capability 7.5, tf32 or bf16 arithmetic needs 8.0"), "%s", err.text);
	psd_stand_in_set_capability(7, 0);
	cr_assert_eq(try_to_open(PSD_LAYERS_FP32, &err), PSD_EINVAL);
	cr_assert(strstr(err.text, "has compute capability 7.0, psd-run needs 7.5"), "%s", err.text);
}

NET_TEST(cuda_device, memory_that_is_not_there_is_told_in_bytes, net_make(mixed_text, 2))
{
	struct cuda_net cuda = cuda_net_open(net, PSD_LAYERS_FP32);
	struct psd_error err = {0};
	void *block;

	cr_assert_eq(psd_device_cuda.take(cuda.device, UINT64_C(5) << 30, &block, &err), PSD_ENOMEM);
	cr_assert_eq(strncmp(err.text, "the GPU has too little memory for parameters and gradients of 5.369 GB: ", 72),
		     0, "%s", err.text);
	cr_assert(strstr(err.text, " of its 4.295 GB are free"), "%s", err.text);
	cuda_net_close(&cuda);
}

static void refuses(const char *text, enum psd_status status, const char *message)
{
	const struct psd_device_options device_options = {.n_threads = 1};
	const struct psd_network_options options = {.batch = 2, .loss_divisor = 2};
	float *none[16] = {0};
	struct psd_device *device;
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_model_parse(&graph, "m.yaml", text, strlen(text), &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_device_cuda.open(&device, &device_options, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_device_cuda.load(device, &graph, &options, none, none, &err), status);
	cr_assert_eq(strncmp(err.text, message, strlen(message)), 0, "%s", err.text);
	psd_device_cuda.close(device);
	psd_graph_release(&graph);
}

/* The attention layer has 2 x 32768 x 32768 probabilities. */
Test(cuda_device, layers_it_cannot_do_are_refused_by_name)
{
	refuses("name: m\ninput: {channels: 3, height: 7, width: 6}\nlayers:\n"
		"  - {name: c, kind: conv, outputs: 4, kernel: 1}\n  - {name: aside, kind: softmax-loss}\n"
		"  - {name: top, kind: inner-product, input: c, outputs: 3}\n  - {name: loss, kind: softmax-loss}\n",
		PSD_EINVAL, "layer 'aside' (softmax-loss) has 42 positions, the last loss has labels for 1");
	refuses("name: m\ninput: {channels: 3, height: 7, width: 6}\nlayers:\n"
		"  - {name: c, kind: conv, outputs: 4, kernel: 1}\n  - {name: loss, kind: softmax-loss}\n"
		"  - {name: top, kind: gelu}\n",
		PSD_EINVAL, "layer 'top' reads the loss 'loss', cuda supports no layer behind a loss");
	refuses("name: m\ninput: {channels: 1, height: 32768}\nlayers:\n"
		"  - {name: base, kind: embedding, vocabulary: 2, outputs: 3}\n"
		"  - {name: a, kind: attention, heads: 1}\n" TAIL,
		PSD_EINVAL,
		"layer 'a' (attention) has 2147483648 probabilities in a batch of 2, cuda supports less than "
		"2147483648");
}

/* The one weight gradient that gives equal bits works in more than a convolution should, as those of very large batches
 * do: it is taken, so that the GPU's memory decides. */
Test(cuda_device, a_convolution_takes_the_workspace_that_it_needs)
{
	psd_stand_in_set_workspaces((UINT64_C(1) << 30) + 1);
	psd_stand_in_set_memory(UINT64_C(1) << 30);
	refuses("name: m\ninput: {channels: 3, height: 7, width: 6}\nlayers:\n"
		"  - {name: c, kind: conv, outputs: 4, kernel: 3}\n" TAIL,
		PSD_ENOMEM, "the GPU has too little memory for the network's activations of 1.074 GB");
}

NET_TEST(cuda_device, a_label_beyond_the_classes_is_refused,
	 net_make("name: m\ninput: {channels: 4}\nlayers:\n" TAIL, 2))
{
	struct cuda_net cuda = cuda_net_open(net, PSD_LAYERS_FP32);
	struct psd_error err = {0};

	net->labels[1] = 3;
	cr_assert_eq(psd_device_cuda.begin(cuda.device, &net->batch, &err), PSD_OK);
	cr_assert_eq(psd_device_cuda.forward(cuda.device, 0, &err), PSD_OK);
	cr_assert_eq(psd_device_cuda.forward(cuda.device, 1, &err), PSD_OK);
	cr_assert_eq(psd_device_cuda.forward(cuda.device, 2, &err), PSD_EINVAL);
	cr_assert_str_eq(err.text, "sample 9 has label 3, must be 0 to 2");
	cuda_net_close(&cuda);
}

/* ---- failures ---- */

static enum psd_status iterate(struct psd_device *device, const struct net *net, struct psd_error *err)
{
	enum psd_status status = psd_device_cuda.begin(device, &net->batch, err);

	for (unsigned l = 0; l < net->graph->n_layers && !status; l++)
		status = psd_device_cuda.forward(device, l, err);
	for (unsigned l = net->graph->n_layers; l-- > 0 && !status;)
		status = psd_device_cuda.backward(device, l, err);
	return status ? status
		      : psd_device_cuda.wait(device, PSD_STREAM_COMPUTE,
					     psd_device_cuda.mark(device, PSD_STREAM_COMPUTE), err);
}

/* Until iterations begin and end, and the graphs then. */
struct calls {
	unsigned before, after, graphs;
};

/* Begins and ends a device that has a network. */
static enum psd_status run_once(struct net *net, unsigned n_iterations, bool has_graphs, struct calls *calls,
				struct psd_error *err)
{
	const struct psd_device_options options = {.n_threads = 1, .is_without_graphs = !has_graphs};
	const unsigned n_calls = psd_stand_in_calls();
	struct psd_device *device;
	void *blocks[64];
	enum psd_status status = psd_device_cuda.open(&device, &options, err);

	if (status)
		return status;
	for (unsigned t = 0; t < 2 * net->graph->n_tensors && !status; t++)
		status = psd_device_cuda.take(device, net->graph->tensors[t / 2].elements * sizeof(float), &blocks[t],
					      err);
	if (!status) {
		float *parameters[32], *gradients[32];

		for (unsigned t = 0; t < net->graph->n_tensors; t++) {
			parameters[t] = blocks[2 * t];
			gradients[t] = blocks[2 * t + 1];
		}
		status = psd_device_cuda.load(device, net->graph, &net->options, parameters, gradients, err);
	}
	calls->before = psd_stand_in_calls() - n_calls;
	for (unsigned i = 0; i < n_iterations && !status; i++)
		status = iterate(device, net, err);
	calls->after = psd_stand_in_calls() - n_calls;
	calls->graphs = device->recorded.graphs;
	/* how often a wait looks depends on the machine's load: a run may end before the call that was to fail */
	psd_stand_in_fail_no_more();
	psd_device_cuda.close(device);
	return status;
}

static void check_held(unsigned graphs, unsigned call)
{
	const struct psd_stand_in_holdings held = psd_stand_in_held();

	cr_assert_eq(held.blocks + held.host_blocks + held.streams + held.events + held.handles + held.graphs, graphs,
		     "after call %u: %u blocks, %u of the host, %u streams, %u events, %u handles, %u graphs", call,
		     held.blocks, held.host_blocks, held.streams, held.events, held.handles, held.graphs);
}

static void check_nothing_is_held(unsigned call)
{
	check_held(0, call);
}

/* The calls that make events for marks are all alike: only some of them are tried. */
static unsigned next_call(unsigned call)
{
	const unsigned last_mark = PSD_STREAMS * PSD_MOST_MARKS; /* after what comes before them, still one of them */

	if (call <= 8 || call >= last_mark)
		return call + 1;
	return call + 997 < last_mark ? call + 997 : last_mark;
}

/* Each call of opening, loading and an iteration fails once. Those that make a plan for a convolution are not told, as
 * another one does it. */
NET_TEST(cuda_device, every_call_that_fails_leaves_nothing, net_make(mixed_text, 2))
{
	unsigned n_failures = 0, n_told = 0, n_avoided = 0;
	struct calls all, calls;
	struct psd_error err = {0};

	cr_assert_eq(run_once(net, 1, false, &all, &err), PSD_OK, "%s", err.text);
	for (unsigned call = 1; call <= all.after; call = next_call(call)) {
		enum psd_status status;

		err = (struct psd_error){0};
		psd_stand_in_fail(NULL, call, cudaErrorNotSupported); /* no library takes it for a refusal */
		status = run_once(net, 1, false, &calls, &err);
		cr_assert(!status || status == PSD_ERUN || status == PSD_EINVAL, "call %u: status %d", call,
			  (int)status);
		cr_assert(!status || err.text[0], "call %u fails without a word", call);
		check_nothing_is_held(call);
		n_failures += status || call <= calls.after; /* else it was over before */
		n_told += status != PSD_OK;
		n_avoided += status == PSD_OK && call <= all.before;
	}
	cr_expect_eq(n_told + n_avoided, n_failures);
	cr_expect_gt(n_told, 100);
	cr_expect_lt(n_avoided, n_told / 4);
}

/* A failed recording of a graph is not reported, because its layers are begun call by call. Every other failure is. A
 * graph that the failed call should have given back stays held. */
NET_TEST(cuda_device, every_call_that_fails_while_graphs_are_made_leaves_nothing, net_make(mixed_text, 2))
{
	enum { ITERATIONS = 3 };
	unsigned n_told = 0, n_left = 0;
	struct psd_error err = {0};
	struct calls all, calls;

	cr_assert_eq(run_once(net, ITERATIONS, true, &all, &err), PSD_OK, "%s", err.text);
	for (unsigned call = all.before + 1; call <= all.after; call++) {
		psd_stand_in_fail(NULL, call, cudaErrorInvalidValue);
		n_told += run_once(net, ITERATIONS, true, &calls, &err) != PSD_OK;
		if (psd_stand_in_held().graphs == n_left + 1)
			n_left++;
		check_held(n_left, call);
	}
	cr_expect_eq(n_left, all.graphs); /* the captured graph of each, once it can be launched */
	cr_expect_gt(n_told, 100);
	cr_expect_lt(n_told, all.after - all.before - all.graphs);
}

/* After which the device is lost, and what was taken is given back nevertheless. */
NET_TEST(cuda_device, a_failure_under_way_is_told_by_the_wait, net_make(mixed_text, 2))
{
	struct cuda_net cuda = cuda_net_open(net, PSD_LAYERS_FP32);
	struct psd_error err = {0};
	enum psd_status status;

	psd_stand_in_fail_operation(1, cudaErrorIllegalAddress);
	status = psd_device_cuda.begin(cuda.device, &net->batch, &err);
	if (!status)
		status = psd_device_cuda.forward(cuda.device, 0, &err);
	if (!status)
		status = psd_device_cuda.forward(cuda.device, 1, &err);
	if (!status)
		status = psd_device_cuda.wait(cuda.device, PSD_STREAM_COMPUTE,
					      psd_device_cuda.mark(cuda.device, PSD_STREAM_COMPUTE), &err);
	cr_assert_eq(status, PSD_ERUN);
	cr_assert(strstr(err.text, "cudaErrorIllegalAddress"), "%s", err.text);
	cuda_net_close(&cuda);
	check_nothing_is_held(1);
}

/* ---- memory, marks ---- */

NET_TEST(cuda_device, memory_is_zeros_and_aligned, net_make(mixed_text, 2))
{
	struct cuda_net cuda = cuda_net_open(net, PSD_LAYERS_FP32);
	unsigned char bytes[1000];
	struct psd_error err = {0};
	void *block, *of_host;

	cr_assert_eq(psd_device_cuda.take(cuda.device, sizeof(bytes), &block, &err), PSD_OK);
	cr_assert_eq(psd_device_cuda.take_host(cuda.device, sizeof(bytes), &of_host, &err), PSD_OK);
	cr_assert_eq((uintptr_t)block % 64 + (uintptr_t)of_host % 64, 0);
	cuda_net_get(cuda.device, bytes, block, sizeof(bytes));
	for (unsigned i = 0; i < sizeof(bytes); i++)
		cr_assert(bytes[i] == 0 && ((unsigned char *)of_host)[i] == 0);
	cuda_net_close(&cuda);
}

/* More marks than the ring has: each is over when what was begun before it is. */
Test(cuda_device, marks_follow_the_copies_before_them)
{
	const struct psd_device_options options = {.n_threads = 1};
	struct psd_error err = {0};
	struct psd_device *device;
	void *block, *in, *out;
	uint64_t mark = 0;

	cr_assert_eq(psd_device_cuda.open(&device, &options, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_device_cuda.take(device, sizeof(uint32_t), &block, &err), PSD_OK);
	cr_assert_eq(psd_device_cuda.take_host(device, sizeof(uint32_t), &in, &err), PSD_OK);
	cr_assert_eq(psd_device_cuda.take_host(device, sizeof(uint32_t), &out, &err), PSD_OK);
	for (uint32_t i = 0; i < PSD_MOST_MARKS + 10; i++) {
		*(uint32_t *)in = i;
		cr_assert_eq(psd_device_cuda.copy(device, PSD_STREAM_COPY_IN, block, in, sizeof(i), &err), PSD_OK);
		mark = psd_device_cuda.mark(device, PSD_STREAM_COPY_IN);
		cr_assert_eq(psd_device_cuda.wait(device, PSD_STREAM_COPY_IN, mark, &err), PSD_OK);
		if (i % 500 == 0 || i > PSD_MOST_MARKS) {
			cuda_net_get(device, out, block, sizeof(i));
			cr_assert_eq(*(uint32_t *)out, i);
		}
	}
	cr_assert_geq(psd_device_cuda.between_sec(device, PSD_STREAM_COPY_IN, mark - 3, mark), 0.0);
	psd_device_cuda.close(device);
}

/* ---- repeatability ---- */

static void check_repeats(enum psd_layer_arithmetic arithmetic)
{
	struct net net = net_make(mixed_text, 6);
	struct cuda_net one = cuda_net_open(&net, arithmetic), other = cuda_net_open(&net, arithmetic);

	cr_assert_eq(cuda_net_run(&one), cuda_net_run(&other));
	(void)cuda_net_run(&one);
	for (unsigned t = 0; t < net.graph->n_tensors; t++)
		cr_assert_arr_eq(one.host_gradients[t], other.host_gradients[t],
				 net.graph->tensors[t].elements * sizeof(float));
	cuda_net_close(&one);
	cuda_net_close(&other);
	net_release(&net);
}

Test(cuda_device, same_input_same_bits)
{
	check_repeats(PSD_LAYERS_FP32);
	check_repeats(PSD_LAYERS_FP16);
}

enum { ITERATIONS = 6 };

/* Without a wait between them, each with images and a first gradient of its own. */
static void begin_iteration(struct cuda_net *cuda, const float *images, float *first_gradient)
{
	struct psd_batch batch = cuda->net->batch;
	struct psd_error err = {0};

	cuda->gradients[0] = first_gradient;
	batch.images = images;
	batch.gradients = cuda->gradients;
	cr_assert_eq(psd_device_cuda.begin(cuda->device, &batch, &err), PSD_OK, "%s", err.text);
	for (unsigned l = 0; l < cuda->net->graph->n_layers; l++)
		cr_assert_eq(psd_device_cuda.forward(cuda->device, l, &err), PSD_OK, "%s", err.text);
	for (unsigned l = cuda->net->graph->n_layers; l-- > 0;)
		cr_assert_eq(psd_device_cuda.backward(cuda->device, l, &err), PSD_OK, "%s", err.text);
}

/* The next samples are copied while the last ones are worked on: none takes another's place. Images are in memory from
 * which copies wait for their turn. */
NET_TEST(cuda_device, iterations_one_after_the_other_have_their_own_samples, net_make(mixed_text, 2))
{
	struct cuda_net cuda = cuda_net_open(net, PSD_LAYERS_FP32);
	const uint64_t count = 2 * net_image_elements(net), elements = net->graph->tensors[0].elements;
	float *own = net->images, *images[ITERATIONS], *gradients[ITERATIONS];
	struct psd_error err = {0};
	void *block;

	for (unsigned i = 0; i < ITERATIONS; i++) {
		cr_assert_eq(psd_device_cuda.take_host(cuda.device, count * sizeof(float), &block, &err), PSD_OK);
		images[i] = block;
		for (uint64_t e = 0; e < count; e++)
			images[i][e] = own[e] * (float)(i + 1);
		gradients[i] = cuda_net_take(cuda.device, net->gradients[0], elements);
	}
	for (unsigned i = 0; i < ITERATIONS; i++)
		begin_iteration(&cuda, images[i], gradients[i]);
	cuda_net_wait(cuda.device, PSD_STREAM_COMPUTE);
	for (unsigned i = 0; i < ITERATIONS; i++) {
		net->batch.images = images[i];
		(void)net_run(net);
		cuda_net_get(cuda.device, cuda.host_gradients[0], gradients[i], elements * sizeof(float));
		cr_expect_lt(cuda_net_distance(cuda.host_gradients[0], net->gradients[0], elements), 1e-4,
			     "iteration %u", i);
	}
	cuda_net_close(&cuda);
}

/* ---- factors, gradients that nobody wants, states ---- */

static unsigned layer_named(const struct net *net, const char *name)
{
	for (unsigned l = 0; l < net->graph->n_layers; l++)
		if (strcmp(net->graph->layers[l].name, name) == 0)
			return l;
	cr_assert_fail("no layer %s", name);
	return 0;
}

static void check_factors(enum psd_layer_arithmetic arithmetic, double tolerance_ratio)
{
	struct net net = net_make(mixed_text, 5);
	struct cuda_net cuda = cuda_net_open(&net, arithmetic);
	const unsigned layer = layer_named(&net, "a"), tensor = net.graph->layers[layer].first_tensor;
	const struct psd_tensor *weight = &net.graph->tensors[tensor];
	struct psd_error err = {0};
	struct psd_factors factors;
	void *blocks[4];

	for (unsigned b = 0; b < 4; b++)
		cr_assert_eq(psd_device_cuda.take(cuda.device, (weight->elements + 5 * weight->columns) * sizeof(float),
						  &blocks[b], &err),
			     PSD_OK);
	factors = (struct psd_factors){blocks[0], blocks[1]};
	(void)cuda_net_run(&cuda);
	cr_assert_eq(psd_device_cuda.keep_factors(cuda.device, layer, &factors, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_device_cuda.rebuild(cuda.device, &factors, 5, weight->rows, weight->columns, blocks[2],
					     blocks[3], &err),
		     PSD_OK, "%s", err.text);
	cuda_net_wait(cuda.device, PSD_STREAM_COMPUTE);
	for (unsigned t = 0; t < 2; t++) {
		const uint64_t count = net.graph->tensors[tensor + t].elements;
		float *rebuilt = malloc(count * sizeof(*rebuilt));

		cr_assert(rebuilt);
		cuda_net_get(cuda.device, rebuilt, blocks[2 + t], count * sizeof(*rebuilt));
		cr_expect_lt(cuda_net_distance(rebuilt, cuda.host_gradients[tensor + t], count), tolerance_ratio);
		free(rebuilt);
	}
	cuda_net_close(&cuda);
	net_release(&net);
}

/* The factors of all workers, here of one, give the gradient that backward makes. */
Test(cuda_device, factors_give_the_gradient)
{
	check_factors(PSD_LAYERS_FP32, 1e-6);
	check_factors(PSD_LAYERS_TF32, 1e-3);
	check_factors(PSD_LAYERS_FP16, 1e-3);
}

NET_TEST(cuda_device, gradients_that_nobody_wants_are_left_out, net_make(mixed_text, 3))
{
	const unsigned tensor = net->graph->layers[layer_named(net, "a")].first_tensor;
	float *unwanted = net->gradients[tensor];
	struct cuda_net cuda;

	(void)net_run(net);
	net->gradients[tensor] = NULL;
	cuda = cuda_net_open(net, PSD_LAYERS_FP32);
	(void)cuda_net_run(&cuda);
	for (unsigned t = 0; t < net->graph->n_tensors; t++)
		if (t != tensor)
			cr_expect_lt(cuda_net_distance(cuda.host_gradients[t], net->gradients[t],
						       net->graph->tensors[t].elements),
				     1e-4, "%s", net->graph->tensors[t].name);
	net->gradients[tensor] = unwanted;
	cuda_net_close(&cuda);
}

/* As after a checkpoint: with the same parameters and states another device evaluates to the same bits. */
NET_TEST(cuda_device, states_carry_over_to_another_device, net_make(mixed_text, 3))
{
	struct cuda_net trained = cuda_net_open(net, PSD_LAYERS_FP32), fresh = cuda_net_open(net, PSD_LAYERS_FP32);
	struct psd_error err = {0};
	float values[4];
	double loss;

	cr_assert_eq(psd_device_cuda.read_state(fresh.device, 1, values, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(values[3], 1.0f); /* variances start with 1 */
	(void)cuda_net_run_forward(&trained);
	net->batch.is_training = false;
	loss = cuda_net_run_forward(&trained);
	cr_assert_neq(cuda_net_run_forward(&fresh), loss);
	for (unsigned s = 0; s < net->graph->n_states; s++) {
		cr_assert_eq(psd_device_cuda.read_state(trained.device, s, values, &err), PSD_OK, "%s", err.text);
		cr_assert_eq(psd_device_cuda.write_state(fresh.device, s, values, &err), PSD_OK, "%s", err.text);
	}
	cr_assert_eq(cuda_net_run_forward(&fresh), loss);
	cuda_net_close(&trained);
	cuda_net_close(&fresh);
}

/* Ten more convolutions hold ten more outputs, and not their gradients, of which two at a time are alive. */
static uint64_t chain_bytes(unsigned n_convs)
{
	struct net net = net_make_chain(n_convs);
	struct cuda_net cuda = cuda_net_open(&net, PSD_LAYERS_FP32);
	const uint64_t held_bytes = psd_device_cuda.memory_bytes(cuda.device);

	cuda_net_close(&cuda);
	net_release(&net);
	return held_bytes;
}

Test(cuda_device, gradients_share_memory)
{
	const uint64_t output_bytes = UINT64_C(4) * 16 * 32 * 32 * sizeof(float);
	const uint64_t more_bytes = chain_bytes(15) - chain_bytes(5);

	cr_assert_geq(more_bytes, 10 * output_bytes);
	cr_assert_lt(more_bytes, 11 * output_bytes);
}

/* ---- how many there are ---- */

/* Asked for before anything else, as by a program that forks its workers then; and once more where one is in use. */
Test(cuda_device, counting_leaves_a_process_that_may_fork)
{
	struct psd_error why;

	psd_stand_in_set_devices(3);
	cr_assert_eq(psd_device_cuda.count(&why), 3);
	cr_assert_eq(psd_stand_in_calls(), 0);
	cr_assert_eq(try_to_open(PSD_LAYERS_FP32, NULL), PSD_OK);
	cr_assert_eq(psd_device_cuda.count(&why), 3);
}

Test(cuda_device, why_none_is_counted_is_told)
{
	struct psd_error why;

	psd_stand_in_set_devices(0);
	cr_assert_eq(psd_device_cuda.count(&why), 0);
	cr_assert(strstr(why.text, "no NVIDIA GPU that the driver supports"), "%s", why.text);
	psd_stand_in_set_devices(1);
	psd_stand_in_set_driver(12020);
	cr_assert_eq(psd_device_cuda.count(&why), 0);
	cr_assert(strstr(why.text, "driver is for CUDA 12.2, must be for"), "%s", why.text);
	cr_assert_eq(psd_stand_in_calls(), 0);
}
