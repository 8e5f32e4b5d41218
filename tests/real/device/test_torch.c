/* One whole step of each network, forward, backward and update, against PyTorch's in double, which torch_step.py
 * computes from a description of the graph as psd read it: no network is written twice. Dropouts use our masks. */
#define _XOPEN_SOURCE 700
#include <criterion/criterion.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/model/model.h"
#include "real/device/cpu/cpu.h"
#include "real/work/solver.h"
#include "tests/real/net.h"
#include "tests/scratch_folder.h"
#include "tests/test_with.h"

/* Tolerances of the update's step, as the norm of the difference relative to the step. psd computes in float: a unit
 * may be on the other side of 0 than in double, and deep networks at random weights magnify that, also in PyTorch's
 * float. So a few times PyTorch's own error is allowed. */
#define LOSS_TOLERANCE_RATIO   5e-5
#define STEP_TOLERANCE_RATIO   2e-3
#define SMOOTH_TOLERANCE_RATIO 2e-5 /* where no unit has two sides: GELUs by erf and by tanh are further apart */
#define PYTORCH_FLOAT_TIMES    4

#define RATE	     0.01f
#define MOMENTUM     0.9f
#define WEIGHT_DECAY 0.0005f

#define PYTHON "/usr/bin/python3" /* Debian's, whose torch it is */

static float draw(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (float)(*state >> 8) * 0x1p-23f - 1.0f;
}

/* Sizes at which activations neither vanish nor explode; what is 1 at the start of training is near 1. */
static void initialise(struct net *net)
{
	uint32_t state = NET_SEED;

	for (unsigned t = 0; t < net->graph->n_tensors; t++) {
		const struct psd_tensor *tensor = &net->graph->tensors[t];
		const bool is_vector = tensor->n_dims == 1;
		const float bound = is_vector ? 0.1f : sqrtf(4.0f * (float)tensor->dims[0] / (float)tensor->elements);

		for (uint64_t e = 0; e < net->graph->tensors[t].elements; e++)
			net->parameters[t][e] = tensor->start_value + bound * draw(&state);
	}
}

/* As if steps of the gradients' size had been taken before. */
static float *make_history(const struct net *net, unsigned tensor)
{
	const uint64_t elements = net->graph->tensors[tensor].elements;
	float *history = calloc(elements, sizeof(*history));
	uint32_t state = tensor;
	double squares = 0;

	cr_assert(history);
	for (uint64_t e = 0; e < elements; e++)
		squares += pow((double)net->gradients[tensor][e], 2);
	for (uint64_t e = 0; e < elements; e++)
		history[e] = RATE * (float)sqrt(squares / (double)elements) * draw(&state);
	return history;
}

/* ---- the description ---- */

static void describe_window(FILE *out, const struct psd_window *w)
{
	fprintf(out, " kernel=%ux%u stride=%ux%u pad=%ux%u dilation=%ux%u", w->kernel.height, w->kernel.width,
		w->stride.height, w->stride.width, w->pad.height, w->pad.width, w->dilation.height, w->dilation.width);
}

static void describe_layer(FILE *out, const struct psd_layer *layer)
{
	const union psd_layer_settings *settings = &layer->settings;

	fprintf(out, "layer %s ", layer->kind->name);
	for (unsigned i = 0; i < layer->n_inputs; i++)
		fprintf(out, "%s%u", i ? "," : "", layer->inputs[i]);
	fprintf(out, "%s %u %u", layer->n_inputs ? "" : "-", layer->first_tensor, layer->n_tensors + layer->n_shared);
	if (layer->kind == &psd_layer_conv) {
		describe_window(out, &settings->conv.window);
		fprintf(out, " groups=%u", settings->conv.groups);
	}
	if (layer->kind == &psd_layer_pool) {
		describe_window(out, &settings->pool.window);
		fprintf(out, " max=%d up=%d", settings->pool.method == PSD_POOL_MAX,
			settings->pool.rounding == PSD_POOL_UP);
	}
	if (layer->kind == &psd_layer_batch_norm || layer->kind == &psd_layer_layer_norm ||
	    layer->kind == &psd_layer_scale)
		fprintf(out, " scale=%d bias=%d", settings->affine.has_scale, settings->affine.has_shift);
	if (layer->kind == &psd_layer_permute)
		fprintf(out, " order=%u,%u,%u", settings->permute.order[0], settings->permute.order[1],
			settings->permute.order[2]);
	if (layer->kind == &psd_layer_slice)
		fprintf(out, " first=%u channels=%u", settings->slice.first, settings->slice.channels);
	if (layer->kind == &psd_layer_rms_norm)
		fprintf(out, " scale=%d epsilon=%.17g", settings->affine.has_scale, settings->affine.epsilon);
	if (layer->kind == &psd_layer_lrn)
		fprintf(out, " size=%u", settings->lrn.size);
	if (layer->kind == &psd_layer_gelu)
		fprintf(out, " approximate=%s", settings->gelu.approximation == PSD_GELU_TANH ? "tanh" : "none");
	if (layer->kind == &psd_layer_attention)
		fprintf(out, " heads=%u kv_heads=%u causal=%d rotary=%.17g", settings->attention.heads,
			settings->attention.kv_heads, settings->attention.is_causal, settings->attention.rotary_base);
	fprintf(out, "\n");
}

static void describe_tensor(FILE *out, const struct psd_tensor *tensor)
{
	fprintf(out, "tensor ");
	for (unsigned i = 0; i < tensor->n_dims; i++)
		fprintf(out, "%s%u", i ? "x" : "", tensor->dims[i]);
	fprintf(out, "\n");
}

static void describe(FILE *out, const struct net *net)
{
	const struct psd_graph *graph = net->graph;
	const struct psd_shape shape = graph->layers[0].shape;

	fprintf(out, "step %.9g %.9g %.9g %.9g\n", (double)RATE, (double)MOMENTUM, (double)WEIGHT_DECAY,
		net->options.loss_divisor);
	fprintf(out, "batch %u %u %u %u\n", net->options.batch, shape.channels, shape.height, shape.width);
	fprintf(out, "labels %llu\n", (unsigned long long)graph->labels);
	for (unsigned t = 0; t < graph->n_tensors; t++)
		describe_tensor(out, &graph->tensors[t]);
	for (unsigned l = 0; l < graph->n_layers; l++)
		describe_layer(out, &graph->layers[l]);
}

/* ---- the values ---- */

static void put(FILE *out, const float *values, uint64_t count)
{
	cr_assert_eq(fwrite(values, sizeof(*values), count, out), count);
}

/* The layer's factors, as dropout.c defines them. */
static void put_mask(FILE *out, const struct net *net, unsigned layer)
{
	const struct psd_layer *model = &net->graph->layers[layer];
	const uint32_t elements = model->shape.channels * model->shape.height * model->shape.width;

	for (uint32_t s = 0; s < net->options.batch; s++)
		for (uint32_t e = 0; e < elements; e++) {
			const uint32_t counter[4] = {e / 4, layer, (uint32_t)net->batch.first_sample + s,
						     (uint32_t)net->batch.iteration};
			uint32_t random[4];
			float factor;

			psd_cpu_philox(counter, net->options.seed, random);
			factor = random[e % 4] < model->settings.dropout.ratio * 0x1p32
					 ? 0.0f
					 : (float)(1 / (1 - model->settings.dropout.ratio));
			put(out, &factor, 1);
		}
}

static void put_values(FILE *out, const struct net *net, float *const histories[])
{
	for (unsigned t = 0; t < net->graph->n_tensors; t++) {
		put(out, net->parameters[t], net->graph->tensors[t].elements);
		put(out, histories[t], net->graph->tensors[t].elements);
	}
	put(out, net->images, net->options.batch * net_image_elements(net));
	for (uint64_t i = 0; i < net->options.batch * net->graph->labels; i++) {
		const float label = (float)net->labels[i];

		put(out, &label, 1);
	}
	for (unsigned l = 0; l < net->graph->n_layers; l++)
		if (net->graph->layers[l].kind == &psd_layer_dropout)
			put_mask(out, net, l);
}

/* ---- the comparison ---- */

struct torch {
	FILE *to, *from;
	pid_t pid;
};

/* Starts python with both its ends in pipes. */
static struct torch start_torch(void)
{
	struct torch torch;
	int to[2], from[2];

	cr_assert_eq(pipe(to) | pipe(from), 0);
	torch.pid = fork();
	cr_assert_geq(torch.pid, 0);
	if (torch.pid == 0) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		close(to[0]), close(to[1]), close(from[0]), close(from[1]);
		execl(PYTHON, PYTHON, "tests/real/device/torch_step.py", (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	torch.to = fdopen(to[1], "w");
	torch.from = fdopen(from[0], "r");
	cr_assert(torch.to && torch.from);
	return torch;
}

static void stop_torch(struct torch *torch)
{
	int status;

	fclose(torch->to);
	fclose(torch->from);
	cr_assert_eq(waitpid(torch->pid, &status, 0), torch->pid);
	cr_assert_eq(status, 0);
}

static void ask(const struct torch *torch, const char *path)
{
	char answer[16] = "";

	fprintf(torch->to, "%s\n", path);
	fflush(torch->to);
	cr_assert(fgets(answer, sizeof(answer), torch->from) && strcmp(answer, "done\n") == 0,
		  "torch_step.py failed, its words are above");
}

/* step: ours; the file's next values: torch's. */
static double step_error_ratio(FILE *in, const float *step, uint64_t count)
{
	static float expected[1 << 16];
	double difference = 0, norm = 0;

	for (uint64_t first = 0; first < count; first += sizeof(expected) / sizeof(expected[0])) {
		const uint64_t left = count - first;
		const size_t n =
			left < sizeof(expected) / sizeof(expected[0]) ? left : sizeof(expected) / sizeof(expected[0]);

		cr_assert_eq(fread(expected, sizeof(expected[0]), n, in), n);
		for (size_t i = 0; i < n; i++) {
			difference += pow((double)step[first + i] - (double)expected[i], 2);
			norm += pow((double)expected[i], 2);
		}
	}
	return sqrt(difference / norm);
}

static double tolerance_ratio_of(const struct psd_graph *graph)
{
	for (unsigned l = 0; l < graph->n_layers; l++)
		if (graph->layers[l].kind == &psd_layer_relu || graph->layers[l].kind == &psd_layer_pool)
			return STEP_TOLERANCE_RATIO;
	return SMOOTH_TOLERANCE_RATIO;
}

/* head: torch's loss, and how far its own float is from its double. */
static void compare_steps(const struct net *net, float *const histories[], FILE *in, const double head[2])
{
	const struct psd_update update = {.rate = RATE, .momentum = MOMENTUM, .weight_decay = WEIGHT_DECAY};
	const double tolerance_ratio = tolerance_ratio_of(net->graph) + PYTORCH_FLOAT_TIMES * head[1];
	double worst_ratio = 0;

	for (unsigned t = 0; t < net->graph->n_tensors; t++) {
		const struct psd_tensor *tensor = &net->graph->tensors[t];
		double ratio;

		psd_update_apply(&update, net->parameters[t], net->gradients[t],
				 (struct psd_moments){.history = histories[t]}, tensor->elements);
		ratio = step_error_ratio(in, histories[t], tensor->elements);
		worst_ratio = fmax(worst_ratio, ratio);
		cr_expect_lt(ratio, tolerance_ratio, "%s: the step of %s is off by %g, PyTorch's float by up to %g",
			     net->graph->name, tensor->name, ratio, head[1]);
	}
	cr_log_info("%s: steps off by up to %.1e, PyTorch's float by %.1e\n", net->graph->name, worst_ratio, head[1]);
}

static void compare(const struct net *net, double loss, float *const histories[], const char *path)
{
	FILE *in = fopen(path, "rb");
	double head[2];

	cr_assert(in);
	cr_assert_eq(fread(head, sizeof(head[0]), 2, in), 2);
	cr_expect_lt(fabs(loss / head[0] - 1), LOSS_TOLERANCE_RATIO, "%s: loss %.9g, must be %.9g", net->graph->name,
		     loss, head[0]);
	compare_steps(net, histories, in, head);
	fclose(in);
}

static FILE *create(const char *path, const char *ending)
{
	char name[300];
	FILE *out;

	snprintf(name, sizeof(name), "%s%s", path, ending);
	out = fopen(name, "wb");
	cr_assert(out);
	return out;
}

/* The graph is released. */
static void check_network(const struct torch *torch, const struct scratch_folder *folder, struct psd_graph graph,
			  uint32_t batch)
{
	const struct scratch_path path = scratch_folder_path(folder, "net"),
				  result = scratch_folder_path(folder, "net.out");
	struct net net = net_make_graph(graph, batch);
	float **histories;
	double loss;
	FILE *out;

	histories = calloc(net.graph->n_tensors, sizeof(*histories));
	cr_assert(histories);
	initialise(&net);
	loss = net_run(&net);
	for (unsigned t = 0; t < net.graph->n_tensors; t++)
		histories[t] = make_history(&net, t);
	out = create(path.text, "");
	describe(out, &net);
	fclose(out);
	out = create(path.text, ".in");
	put_values(out, &net, histories);
	fclose(out);
	ask(torch, path.text);
	compare(&net, loss, histories, result.text);
	for (unsigned t = 0; t < net.graph->n_tensors; t++)
		free(histories[t]);
	free(histories);
	net_release(&net);
}

static void compare_graph(struct psd_graph graph, uint32_t batch)
{
	struct scratch_folder folder;
	struct torch torch;

	if (system(PYTHON " -c 'import torch' 2>/dev/null") != 0)
		cr_skip_test("python3-torch is not installed (make deps-bench)");
	/* memory is used again, here and in python, instead of being given back and cleared */
	setenv("MALLOC_MMAP_THRESHOLD_", "4000000000", 1);
	setenv("MALLOC_TRIM_THRESHOLD_", "16000000000", 1);
	mallopt(M_MMAP_THRESHOLD, INT_MAX);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	folder = scratch_folder_make();
	torch = start_torch();
	check_network(&torch, &folder, graph, batch);
	stop_torch(&torch);
	scratch_folder_remove(&folder);
}

static void compare_network(const char *model, uint32_t batch)
{
	struct psd_graph graph;
	struct psd_error err = {0};
	char file[128];

	snprintf(file, sizeof(file), "scenarios/models/%s.yaml", model);
	cr_assert_eq(psd_graph_load(&graph, file, &err), PSD_OK, "%s", err.text);
	compare_graph(graph, batch);
}

static void compare_text(const char *text, uint32_t batch)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_model_parse(&graph, "m.yaml", text, strlen(text), &err), PSD_OK, "%s", err.text);
	compare_graph(graph, batch);
}

/* A case each, so that none has to be done with all of them within the time limit of one. */
TEST_ROW(torch, cifar10_quick_steps_like_pytorch, compare_network("cifar10-quick", 10))
TEST_ROW(torch, mlp_steps_like_pytorch, compare_network("mlp", 4))
TEST_ROW(torch, alexnet_steps_like_pytorch, compare_network("alexnet", 2))
TEST_ROW(torch, googlenet_steps_like_pytorch, compare_network("googlenet", 2))
TEST_ROW(torch, resnet50_steps_like_pytorch, compare_network("resnet50", 4))
TEST_ROW(torch, inception_v3_steps_like_pytorch, compare_network("inception-v3", 2))
TEST_ROW(torch, gpt_small_steps_like_pytorch, compare_network("gpt-small", 4))

#define BLOCK(n, below, channels, thrice, fourfold, attention)                                                         \
	"  - {name: " n ".norm1, kind: layer-norm, input: " below "}\n"                                                \
	"  - {name: " n ".qkv, kind: conv, outputs: " thrice ", kernel: 1}\n"                                          \
	"  - {name: " n ".attention, kind: attention, " attention "}\n"                                                \
	"  - {name: " n ".out, kind: conv, outputs: " channels ", kernel: 1}\n"                                        \
	"  - {name: " n ".sum1, kind: add, inputs: [" below ", " n ".out]}\n"                                          \
	"  - {name: " n ".norm2, kind: layer-norm}\n"                                                                  \
	"  - {name: " n ".up, kind: conv, outputs: " fourfold ", kernel: 1}\n"                                         \
	"  - {name: " n ".gelu, kind: gelu}\n"                                                                         \
	"  - {name: " n ".down, kind: conv, outputs: " channels ", kernel: 1}\n"                                       \
	"  - {name: " n ", kind: add, inputs: [" n ".sum1, " n ".down]}\n"

/* vit-b16.yaml with images of 48 x 64, which are 3 x 4 places, and two blocks of 96 channels. */
Test(torch, a_short_vit_steps_like_pytorch)
{
	compare_text("name: short ViT\ninput: {channels: 3, height: 48, width: 64}\nlayers:\n"
		     "  - {name: patches, kind: conv, outputs: 96, kernel: 16, stride: 16}\n"
		     "  - {name: place, kind: position}\n" BLOCK("b1", "place", "96", "288", "384", "heads: 6") BLOCK(
			     "b2", "b1", "96", "288", "384",
			     "heads: 6") "  - {name: norm, kind: layer-norm}\n  - {name: mean, kind: global-pool}\n"
					 "  - {name: head, kind: inner-product, outputs: 10}\n  - {name: loss, kind: "
					 "softmax-loss}\n",
		     4);
}

/* gpt2.yaml, whose head multiplies by the table, with 300 tokens in sequences of 40, and two blocks of 64 channels. */
Test(torch, a_short_gpt2_steps_like_pytorch)
{
	compare_text(
		"name: short GPT-2\ninput: {channels: 1, height: 40}\nlayers:\n"
		"  - {name: table, kind: embedding, vocabulary: 300, outputs: 64}\n"
		"  - {name: place, kind: position}\n" BLOCK("b1", "place", "64", "192", "256", "heads: 4, causal: true")
			BLOCK("b2", "b1", "64", "192", "256",
			      "heads: 4, causal: true") "  - {name: norm, kind: layer-norm}\n"
							"  - {name: head, kind: conv, outputs: 300, kernel: 1, bias: "
							"false, shares: table}\n"
							"  - {name: loss, kind: softmax-loss}\n",
		3);
}

/* A short ViT with a class token, which alone the head reads: places as channels, of which the first is sliced. */
Test(torch, a_short_vit_with_a_class_token_steps_like_pytorch)
{
	compare_text("name: short ViT\ninput: {channels: 3, height: 48, width: 64}\nlayers:\n"
		     "  - {name: patches, kind: conv, outputs: 96, kernel: 16, stride: 16}\n"
		     "  - {name: token, kind: prefix}\n  - {name: place, kind: position}\n" BLOCK(
			     "b1", "place", "96", "288", "384",
			     "heads: 6") "  - {name: norm, kind: layer-norm}\n"
					 "  - {name: places, kind: permute, channels: 2, rows: 1, columns: 3}\n"
					 "  - {name: first, kind: slice, channels: 1}\n"
					 "  - {name: head, kind: inner-product, outputs: 10}\n  - {name: loss, kind: "
					 "softmax-loss}\n",
		     4);
}

#define LLAMA_BLOCK(n, below)                                                                                          \
	"  - {name: " n ".norm1, kind: rms-norm, input: " below "}\n"                                                  \
	"  - {name: " n ".qkv, kind: conv, outputs: 128, kernel: 1, bias: false}\n"                                    \
	"  - {name: " n ".attention, kind: attention, heads: 4, kv_heads: 2, causal: true, rotary: 10000}\n"           \
	"  - {name: " n ".out, kind: conv, outputs: 64, kernel: 1, bias: false}\n"                                     \
	"  - {name: " n ".sum1, kind: add, inputs: [" below ", " n ".out]}\n"                                          \
	"  - {name: " n ".norm2, kind: rms-norm}\n"                                                                    \
	"  - {name: " n ".gate, kind: conv, outputs: 160, kernel: 1, bias: false}\n"                                   \
	"  - {name: " n ".silu, kind: silu}\n"                                                                         \
	"  - {name: " n ".up, kind: conv, outputs: 160, kernel: 1, bias: false, input: " n ".norm2}\n"                 \
	"  - {name: " n ".gated, kind: multiply, inputs: [" n ".silu, " n ".up]}\n"                                    \
	"  - {name: " n ".down, kind: conv, outputs: 64, kernel: 1, bias: false}\n"                                    \
	"  - {name: " n ", kind: add, inputs: [" n ".sum1, " n ".down]}\n"

/* tinyllama.yaml with 300 tokens in sequences of 40, and two blocks of 64 channels. */
Test(torch, a_short_llama_steps_like_pytorch)
{
	compare_text("name: short Llama\ninput: {channels: 1, height: 40}\nlayers:\n"
		     "  - {name: table, kind: embedding, vocabulary: 300, outputs: 64}\n" LLAMA_BLOCK("b1", "table")
			     LLAMA_BLOCK("b2", "b1") "  - {name: norm, kind: rms-norm, epsilon: 0.00001}\n"
						     "  - {name: head, kind: conv, outputs: 300, kernel: 1, bias: "
						     "false}\n"
						     "  - {name: loss, kind: softmax-loss}\n",
		     3);
}

/* These need gigabytes and half a minute more. */
static void compare_large_network(const char *model, uint32_t batch)
{
	if (!getenv("PSD_FULL_TESTS"))
		cr_skip_test("only with PSD_FULL_TESTS=1");
	compare_network(model, batch);
}

TEST_ROW(torch, alexnet_with_batch_norm_steps_like_pytorch, compare_large_network("alexnet-bn", 4))
TEST_ROW(torch, vgg11_steps_like_pytorch, compare_large_network("vgg11", 1))
