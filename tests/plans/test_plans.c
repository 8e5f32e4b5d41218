/* Plans for convolutions by cuDNN itself, not by the stand-in, for GPUs that are not here: it lists engines and makes
 * plans for a GPU that is described to it. Their execution is left to a GPU. */
#include <criterion/criterion.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/model.h"
#include "real/device/cuda/dnn.h"
#include "real/device/gpu/gpu.h"
#include "tests/test_with.h"

struct gpu {
	const char *name;
	unsigned capability, processors;
	uint64_t memory_bytes;
	unsigned shared_bytes; /* that a block may ask for */
};

/* One of each generation for which psd-run is compiled. */
static const struct gpu gpus[] = {
	{"Tesla T4", 75, 40, UINT64_C(15843721216), 65536},
	{"NVIDIA A100-SXM4-40GB", 80, 108, UINT64_C(42505273344), 166912},
	{"NVIDIA A10", 86, 72, UINT64_C(23034331136), 101376},
	{"NVIDIA L4", 89, 58, UINT64_C(23034331136), 101376},
	{"NVIDIA H100 80GB HBM3", 90, 132, UINT64_C(85520809984), 232448},
	{"NVIDIA B200", 100, 148, UINT64_C(191510929408), 232448},
	{"NVIDIA GeForce RTX 5090", 120, 170, UINT64_C(34190917632), 101376},
};
enum { GPUS = sizeof(gpus) / sizeof(gpus[0]), H100 = 4 };

/* cuDNN loads the compiler for a plan and unloads it after it, which takes five sixths of the time of all plans. Once
 * loaded before tests are forked, it stays. */
__attribute__((constructor)) static void load_compiler(void)
{
	char name[32];

	snprintf(name, sizeof(name), "libnvrtc.so.%d", CUDART_VERSION / 1000);
	(void)dlopen(name, RTLD_LAZY);
}

static void must(int status)
{
	cr_assert_eq(status, CUDNN_STATUS_SUCCESS, "%s", cudnnGetErrorString((cudnnStatus_t)status));
}

/* In cuDNN's own words, as it writes them of a GPU. */
static cudnnBackendDescriptor_t describe(const struct gpu *gpu)
{
	cudnnBackendDescriptor_t properties;
	char text[1024];
	const int length = snprintf(
		text, sizeof(text),
		"{\"cudaDeviceId\":0,\"deviceVer\":%u,\"driverVer\":13000,\"maxGridSize\":[2147483647,65535,65535],"
		"\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,\"multiProcessorCount\":%u,\"warpSize\":32,"
		"\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%u,"
		"\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"
		"\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,"
		"\"supportCoopLaunch\":1,\"smClockRateKHz\":1500000,\"memClockRateKHz\":2000000,"
		"\"l2CacheSize\":50331648,\"totalGlobalMem\":%llu,\"deviceName\":\"%s\"}",
		10 * gpu->capability, gpu->processors, gpu->shared_bytes, (unsigned long long)gpu->memory_bytes,
		gpu->name);

	must(cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &properties));
	must(cudnnBackendSetAttribute(properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, length,
				      text));
	must(cudnnBackendFinalize(properties));
	return properties;
}

/* Two convolutions that cuDNN sees alike. */
struct shape {
	struct psd_shape below, above;
	struct psd_conv_settings settings;
	bool has_diff, has_other_reader;
};

enum { MOST_SHAPES = 512 };

static bool is_new(const struct psd_gpu_layer *layer, struct shape *shapes, unsigned *n_shapes)
{
	struct shape shape;

	memset(&shape, 0, sizeof(shape));
	shape.below = psd_gpu_below(layer, 0)->model->shape;
	shape.above = layer->model->shape;
	memcpy(&shape.settings, &layer->model->settings.conv, sizeof(shape.settings));
	shape.has_diff = psd_gpu_input(layer, 0)->has_diff;
	shape.has_other_reader = psd_gpu_below(layer, 0)->n_readers > 1;
	for (unsigned i = 0; i < *n_shapes; i++)
		if (memcmp(&shapes[i], &shape, sizeof(shape)) == 0)
			return false;
	cr_assert_lt(*n_shapes, MOST_SHAPES);
	shapes[(*n_shapes)++] = shape;
	return true;
}

static void link_layers(struct psd_device *device)
{
	for (unsigned l = 0; l < device->graph->n_layers; l++) {
		struct psd_gpu_layer *layer = &device->layers[l];

		layer->device = device;
		layer->model = &device->graph->layers[l];
		layer->kind = psd_gpu_find_kind(layer->model->kind);
		layer->blob = &layer->own;
		layer->own.has_diff = layer->model->is_trained;
		for (unsigned i = 0; i < layer->model->n_inputs; i++)
			device->layers[layer->model->inputs[i]].n_readers++;
	}
}

/* How many convolutions it has that are different ones. */
static unsigned plan_model(struct psd_device *device, const struct psd_graph *graph)
{
	struct shape *shapes = calloc(MOST_SHAPES, sizeof(*shapes));
	unsigned n_shapes = 0;

	device->graph = graph;
	device->layers = calloc(graph->n_layers, sizeof(*device->layers));
	cr_assert(shapes && device->layers);
	link_layers(device);
	for (unsigned l = 0; l < graph->n_layers; l++) {
		struct psd_gpu_layer *layer = &device->layers[l];
		struct psd_gpu_dnn_conv *conv;
		struct psd_error err = {0};

		if ((layer->kind != &psd_gpu_kind_conv && layer->kind != &psd_gpu_kind_deconv) ||
		    !is_new(layer, shapes, &n_shapes))
			continue;
		cr_assert_eq(psd_gpu_dnn_conv_open(layer, layer->kind == &psd_gpu_kind_deconv, &conv, &err), PSD_OK,
			     "%s on %s: %s", graph->name, device->name, err.text);
		psd_gpu_dnn_conv_close(conv);
	}
	free(device->layers);
	free(shapes);
	return n_shapes;
}

static void plan(const struct gpu *gpu, enum psd_layer_arithmetic arithmetic, bool may_differ,
		 const struct psd_graph *graph, uint32_t batch)
{
	const bool is_float = arithmetic == PSD_LAYERS_FP32 || arithmetic == PSD_LAYERS_TF32;
	struct psd_device device = {.options = {.arithmetic = arithmetic, .may_differ = may_differ},
				    .capability = gpu->capability,
				    .memory_bytes = gpu->memory_bytes,
				    .dnn_properties = describe(gpu),
				    .network.batch = batch,
				    .type = is_float			    ? PSD_GPU_FLOAT
					    : arithmetic == PSD_LAYERS_FP16 ? PSD_GPU_HALF
									    : PSD_GPU_BFLOAT,
				    .is_channels_last = arithmetic != PSD_LAYERS_FP32};

	snprintf(device.name, sizeof(device.name), "%s", gpu->name);
	cr_assert_gt(plan_model(&device, graph), 0);
	cr_expect_leq(device.workspace_bytes, gpu->memory_bytes / 16, "%s on %s", graph->name, gpu->name);
	must(cudnnBackendDestroyDescriptor(device.dnn_properties));
}

/* Tensor cores of the oldest ones take fp16 alone. */
static void plan_on(const struct gpu *gpu, bool may_differ, const struct psd_graph *graph, uint32_t batch)
{
	const bool is_new = gpu->capability >= 80;

	plan(gpu, PSD_LAYERS_FP32, may_differ, graph, batch);
	plan(gpu, PSD_LAYERS_FP16, may_differ, graph, batch);
	if (is_new)
		plan(gpu, PSD_LAYERS_TF32, may_differ, graph, batch);
	if (is_new)
		plan(gpu, PSD_LAYERS_BF16, may_differ, graph, batch);
}

static void load(struct psd_graph *graph, const char *path)
{
	struct psd_error err = {0};

	cr_assert_eq(psd_graph_load(graph, path, &err), PSD_OK, "%s", err.text);
}

static void plan_everywhere(const char *path, uint32_t batch)
{
	struct psd_graph graph;

	load(&graph, path);
	for (unsigned g = 0; g < GPUS; g++)
		plan_on(&gpus[g], false, &graph, batch);
	psd_graph_release(&graph);
}

TEST_ROW(plans, alexnet_has_them_on_every_gpu, plan_everywhere("scenarios/models/alexnet.yaml", 256))
TEST_ROW(plans, resnet50_has_them_on_every_gpu, plan_everywhere("scenarios/models/resnet50.yaml", 128))
TEST_ROW(plans, vgg19_has_them_on_every_gpu, plan_everywhere("scenarios/models/vgg19.yaml", 64))

Test(plans, models_have_them)
{
	const char *const names[] = {"alexnet-bn", "cifar10-quick", "googlenet-aux", "googlenet", "inception-v3",
				     "resnet152",  "vgg11",	    "vgg13",	     "vgg19-22k"};

	for (size_t m = 0; m < sizeof(names) / sizeof(names[0]); m++) {
		struct psd_graph graph;
		char path[64];

		snprintf(path, sizeof(path), "scenarios/models/%s.yaml", names[m]);
		load(&graph, path);
		plan_on(&gpus[H100], false, &graph, 32);
		psd_graph_release(&graph);
	}
}

/* Sequences: their convolutions have windows of one position; GPT-2's last one has 50257 outputs. */
Test(plans, transformers_have_them)
{
	const char *const names[] = {"gpt-small", "gpt2", "vit-b16", "tinyllama", "llama2-7b"};

	for (size_t m = 0; m < sizeof(names) / sizeof(names[0]); m++) {
		struct psd_graph graph;
		char path[64];

		snprintf(path, sizeof(path), "scenarios/models/%s.yaml", names[m]);
		load(&graph, path);
		plan_on(&gpus[H100], false, &graph, 8);
		plan_on(&gpus[H100], true, &graph, 8);
		psd_graph_release(&graph);
	}
}

/* Whatever a layer may have, and what adds to a gradient that is there. */
Test(plans, odd_shapes_have_them_on_every_gpu)
{
	static const char text[] =
		"name: odd\ninput: {channels: 3, height: 17, width: 13}\nlayers:\n"
		"  - {name: a, kind: conv, outputs: 6, kernel: [3, 2], stride: [2, 1], pad: [0, 1]}\n"
		"  - {name: b, kind: conv, outputs: 6, kernel: 3, pad: 2, dilation: 2, groups: 2}\n"
		"  - {name: c, kind: conv, input: a, outputs: 6, kernel: 1, groups: 6}\n"
		"  - {name: d, kind: deconv, input: a, outputs: 6, kernel: 3, pad: 1, groups: 3}\n"
		"  - {name: sum, kind: add, inputs: [c, d]}\n"
		"  - {name: e, kind: deconv, outputs: 5, kernel: 4, stride: 2, pad: 1}\n"
		"  - {name: f, kind: conv, outputs: 1, kernel: 3}\n"
		"  - {name: g, kind: conv, outputs: 7, kernel: 5}\n"
		"  - {name: top, kind: inner-product, outputs: 3}\n  - {name: loss, kind: softmax-loss}\n";
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_model_parse(&graph, "odd.yaml", text, strlen(text), &err), PSD_OK, "%s", err.text);
	for (unsigned g = 0; g < GPUS; g++) {
		plan_on(&gpus[g], false, &graph, 5);
		plan_on(&gpus[g], true, &graph, 1);
	}
	psd_graph_release(&graph);
}

/* The oldest GPUs' tensor cores do not know bf16, and cuDNN lists nothing. */
Test(plans, missing_plans_are_named)
{
	struct psd_device device = {.options.arithmetic = PSD_LAYERS_BF16,
				    .memory_bytes = gpus[0].memory_bytes,
				    .dnn_properties = describe(&gpus[0]),
				    .network.batch = 4,
				    .type = PSD_GPU_BFLOAT,
				    .is_channels_last = true};
	struct psd_gpu_dnn_conv *conv;
	struct psd_graph graph;
	struct psd_error err = {0};

	load(&graph, "scenarios/models/cifar10-quick.yaml");
	device.graph = &graph;
	device.layers = calloc(graph.n_layers, sizeof(*device.layers));
	cr_assert(device.layers);
	link_layers(&device);
	cr_expect_eq(psd_gpu_dnn_conv_open(&device.layers[1], false, &conv, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text,
			 "layer 'conv1' (conv): cuDNN has no convolution for its shape in bf16 that gives equal bits");
	psd_gpu_dnn_conv_close(conv);
	free(device.layers);
	psd_graph_release(&graph);
	must(cudnnBackendDestroyDescriptor(device.dnn_properties));
}

/* ---- which of them ---- */

enum { X, W, Y };

static cudnnBackendDescriptor_t build(cudnnBackendDescriptorType_t kind,
				      const struct psd_cuda_dnn_attribute *attributes, int n)
{
	cudnnBackendDescriptor_t built;

	must(psd_cuda_dnn_build(kind, attributes, n, &built));
	return built;
}

static cudnnBackendDescriptor_t tensor_of(const int64_t sizes[4], cudnnDataType_t type, int64_t id)
{
	const int64_t strides[4] = {sizes[1] * sizes[2] * sizes[3], 1, sizes[3] * sizes[1], sizes[1]}, alignment = 16;

	return build(CUDNN_BACKEND_TENSOR_DESCRIPTOR,
		     (const struct psd_cuda_dnn_attribute[]){
			     {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
			     {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, sizes},
			     {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides},
			     {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id},
			     {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment}},
		     5);
}

/* The weight gradient of 64 maps of 56 x 56 from as many, by windows of 3 x 3: every arithmetic has many engines for
 * it, deterministic ones and others. Owned by the caller: tensors, the convolution's description, the operation. */
static void build_operation(cudnnDataType_t type, cudnnBackendDescriptor_t made[5])
{
	const int64_t maps[4] = {128, 64, 56, 56}, weight[4] = {64, 64, 3, 3}, ones[2] = {1, 1}, axes = 2;
	const cudnnDataType_t sum_type = CUDNN_DATA_FLOAT;
	const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
	const float alpha = 1, beta = 0;

	made[X] = tensor_of(maps, type, 1);
	made[W] = tensor_of(weight, type, 2);
	made[Y] = tensor_of(maps, type, 3);
	made[3] = build(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
			(const struct psd_cuda_dnn_attribute[]){
				{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sum_type},
				{CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode},
				{CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &axes},
				{CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, ones},
				{CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, ones},
				{CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, ones},
				{CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones}},
			7);
	made[4] = build(
		CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
		(const struct psd_cuda_dnn_attribute[]){
			{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
			 &made[3]},
			{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &made[X]},
			{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &made[W]},
			{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &made[Y]},
			{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT, 1, &alpha},
			{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT, 1, &beta}},
		6);
}

static bool has_note(const struct psd_cuda_dnn_choice *choice, cudnnBackendNumericalNote_t wanted)
{
	cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
	cudnnBackendDescriptor_t engine;
	bool has = false;
	int64_t n = 0;

	must(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine));
	must(cudnnBackendGetAttribute(choice->config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n,
				      &engine));
	must(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
				      CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, notes));
	must(cudnnBackendDestroyDescriptor(engine));
	for (int64_t i = 0; i < n; i++)
		has = has || notes[i] == wanted;
	return has;
}

/* On a GPU with tensor cores for all of them: which engines a device of this arithmetic may choose from. */
static void check_choices(enum psd_layer_arithmetic arithmetic, cudnnDataType_t type, bool may_differ)
{
	struct psd_device device = {.options = {.arithmetic = arithmetic, .may_differ = may_differ},
				    .memory_bytes = gpus[H100].memory_bytes,
				    .dnn_properties = describe(&gpus[H100]),
				    .type = type == CUDNN_DATA_FLOAT  ? PSD_GPU_FLOAT
					    : type == CUDNN_DATA_HALF ? PSD_GPU_HALF
								      : PSD_GPU_BFLOAT};
	struct psd_cuda_dnn_op *op = calloc(1, sizeof(*op));
	cudnnBackendDescriptor_t made[5];
	unsigned n_with_cores = 0, n_that_differ = 0;

	cr_assert(op);
	build_operation(type, made);
	must(psd_cuda_dnn_open_op(&device, made[4], op));
	for (int i = 0; i < op->n_choices; i++) {
		n_with_cores += has_note(&op->choices[i], CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
		n_that_differ += has_note(&op->choices[i], CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
	}
	cr_expect_eq(n_with_cores > 0, arithmetic != PSD_LAYERS_FP32, "%d: %u", arithmetic, n_with_cores);
	cr_expect_eq(n_that_differ > 0, may_differ && type == CUDNN_DATA_FLOAT, "%d: %u", arithmetic, n_that_differ);
	/* the plan estimated to be quickest, not the fallback */
	cr_expect_eq(op->chosen, 0);
	cr_expect_gt(op->n_estimated, 0);
	cr_expect_eq(has_note(&op->choices[0], CUDNN_NUMERICAL_NOTE_TENSOR_CORE), arithmetic != PSD_LAYERS_FP32);
	psd_cuda_dnn_close_op(op);
	free(op);
	for (int i = 5; i-- > 0;)
		must(cudnnBackendDestroyDescriptor(made[i]));
	must(cudnnBackendDestroyDescriptor(device.dnn_properties));
}

/* cuDNN's other engines for it in 16 bits, which are not deterministic, sum in 16 bits, too. */
Test(plans, are_by_engines_of_the_arithmetic_that_give_equal_bits_unless_they_need_not)
{
	for (int may_differ = 0; may_differ < 2; may_differ++) {
		check_choices(PSD_LAYERS_FP32, CUDNN_DATA_FLOAT, may_differ);
		check_choices(PSD_LAYERS_TF32, CUDNN_DATA_FLOAT, may_differ);
		check_choices(PSD_LAYERS_FP16, CUDNN_DATA_HALF, may_differ);
		check_choices(PSD_LAYERS_BF16, CUDNN_DATA_BFLOAT16, may_differ);
	}
}
