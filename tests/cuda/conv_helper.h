/* A convolution described for cuDNN's graph API, its engines, plans and their execution, for tests of the stand-in. */
#ifndef PSD_TESTS_CUDA_CONV_HELPER_H
#define PSD_TESTS_CUDA_CONV_HELPER_H

#include <criterion/criterion.h>
#include <cudnn.h>
#include <stdbool.h>

#include "tests/cuda/dnn_helper.h"

enum { MOST_ENGINES = 16 };

/* Sizes and ways of one convolution. */
struct shape {
	int n, c, h, w; /* data */
	int k, r, s;	/* filter: outputs, height, width */
	int groups, pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w;
	cudnnConvolutionMode_t mode;
	cudnnTensorFormat_t format;
};

static inline int out_h(const struct shape *shape)
{
	return (shape->h + 2 * shape->pad_h - (shape->r - 1) * shape->dilation_h - 1) / shape->stride_h + 1;
}

static inline int out_w(const struct shape *shape)
{
	return (shape->w + 2 * shape->pad_w - (shape->s - 1) * shape->dilation_w - 1) / shape->stride_w + 1;
}

/* ---- descriptors ---- */

struct attribute {
	cudnnBackendAttributeName_t name;
	cudnnBackendAttributeType_t type;
	int64_t n;
	const void *values;
};

static inline cudnnBackendDescriptor_t create(cudnnBackendDescriptorType_t kind)
{
	cudnnBackendDescriptor_t made = NULL;

	must(cudnnBackendCreateDescriptor(kind, &made));
	return made;
}

static inline void destroy(cudnnBackendDescriptor_t made)
{
	must(cudnnBackendDestroyDescriptor(made));
}

static inline cudnnStatus_t set(cudnnBackendDescriptor_t of, const struct attribute *attribute)
{
	return cudnnBackendSetAttribute(of, attribute->name, attribute->type, attribute->n, attribute->values);
}

/* Sets all attributes but one, or all for -1. *status: the result of finalising. */
static inline cudnnBackendDescriptor_t describe_without(int left_out, cudnnBackendDescriptorType_t kind,
							const struct attribute *attributes, int n,
							cudnnStatus_t *status)
{
	const cudnnBackendDescriptor_t made = create(kind);

	for (int i = 0; i < n; i++)
		if (i != left_out)
			must(set(made, &attributes[i]));
	*status = cudnnBackendFinalize(made);
	return made;
}

/* Whether each description is first tried without each of its attributes, which must be refused. */
static bool tries_incomplete;

static inline cudnnBackendDescriptor_t describe(cudnnBackendDescriptorType_t kind, const struct attribute *attributes,
						int n)
{
	cudnnStatus_t status;

	for (int i = 0; i < n && tries_incomplete; i++) {
		destroy(describe_without(i, kind, attributes, n, &status));
		cr_expect_eq(status, CUDNN_STATUS_BAD_PARAM, "kind %d without attribute %d: %s", (int)kind, i,
			     cudnnGetErrorString(status));
	}
	const cudnnBackendDescriptor_t made = describe_without(-1, kind, attributes, n, &status);

	must(status);
	return made;
}

/* The product's three tensors, with the ids 1, 2, 3. An operation makes one of them of the others. */
enum tensor { X, W, Y, TENSORS };

static inline cudnnBackendDescriptor_t describe_tensor(enum tensor which, const int sizes[4], cudnnDataType_t type,
						       cudnnTensorFormat_t format)
{
	const int64_t id = which + 1, alignment_bytes = 16, n = sizes[0], c = sizes[1], h = sizes[2], w = sizes[3];
	const int64_t dimensions[4] = {n, c, h, w};
	const int64_t plain[4] = {c * h * w, h * w, w, 1}, channels_last[4] = {c * h * w, 1, w * c, c};
	const struct attribute attributes[] = {
		{CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
		{CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dimensions},
		{CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, format == CUDNN_TENSOR_NCHW ? plain : channels_last},
		{CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id},
		{CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment_bytes}};

	return describe(CUDNN_BACKEND_TENSOR_DESCRIPTOR, attributes, 5);
}

static inline cudnnBackendDescriptor_t describe_how(const struct shape *shape)
{
	const cudnnDataType_t type = CUDNN_DATA_FLOAT;
	const int64_t axes = 2, pads[2] = {shape->pad_h, shape->pad_w};
	const int64_t strides[2] = {shape->stride_h, shape->stride_w};
	const int64_t dilations[2] = {shape->dilation_h, shape->dilation_w};
	const struct attribute attributes[] = {
		{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
		{CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &shape->mode},
		{CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &axes},
		{CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides},
		{CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pads},
		{CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pads},
		{CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilations}};

	return describe(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, attributes, 7);
}

struct parts {
	cudnnBackendDescriptor_t tensors[TENSORS], how;
};

static inline struct parts describe_parts(const struct shape *shape, cudnnDataType_t type)
{
	return (struct parts){
		.tensors = {describe_tensor(X, (const int[]){shape->n, shape->c, shape->h, shape->w}, type,
					    shape->format),
			    describe_tensor(W, (const int[]){shape->k, shape->c / shape->groups, shape->r, shape->s},
					    type, shape->format),
			    describe_tensor(Y, (const int[]){shape->n, shape->k, out_h(shape), out_w(shape)}, type,
					    shape->format)},
		.how = describe_how(shape)};
}

static inline void destroy_parts(const struct parts *parts)
{
	for (int i = 0; i < TENSORS; i++)
		destroy(parts->tensors[i]);
	destroy(parts->how);
}

static const struct operation {
	cudnnBackendDescriptorType_t kind;
	cudnnBackendAttributeName_t how, tensors[TENSORS], alpha, beta;
} operations[TENSORS] = {
	[X] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
	       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
	       {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
		CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
	       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
	       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
	[W] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
	       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
	       {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
		CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
	       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
	       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
	[Y] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
	       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
	       {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
		CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
	       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
	       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
};
enum { OPERATION_ATTRIBUTES = 6 };

/* ratios: alpha, beta. attributes point into the arguments. */
static inline void fill_operation(struct attribute attributes[OPERATION_ATTRIBUTES], enum tensor made,
				  const struct parts *parts, const float ratios[2])
{
	const struct operation *const names = &operations[made];

	attributes[0] = (struct attribute){names->how, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &parts->how};
	for (int i = 0; i < TENSORS; i++)
		attributes[1 + i] =
			(struct attribute){names->tensors[i], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &parts->tensors[i]};
	attributes[4] = (struct attribute){names->alpha, CUDNN_TYPE_FLOAT, 1, &ratios[0]};
	attributes[5] = (struct attribute){names->beta, CUDNN_TYPE_FLOAT, 1, &ratios[1]};
}

/* The graph of the operation that computes `made` from the other parts. */
static inline cudnnBackendDescriptor_t describe_graph(const struct dnn *dnn, enum tensor made,
						      const struct parts *parts, const float ratios[2])
{
	struct attribute of_operation[OPERATION_ATTRIBUTES];
	cudnnBackendDescriptor_t operation, graph;

	fill_operation(of_operation, made, parts, ratios);
	operation = describe(operations[made].kind, of_operation, OPERATION_ATTRIBUTES);
	const struct attribute attributes[] = {
		{CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &dnn->handle},
		{CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operation}};

	graph = describe(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, attributes, 2);
	destroy(operation);
	return graph;
}

/* ---- engines ---- */

static inline cudnnBackendDescriptor_t describe_heuristics(cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode)
{
	const struct attribute attributes[] = {
		{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph},
		{CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode}};

	return describe(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, attributes, 2);
}

/* Creates configs for the engines, as many as can be fetched. */
static inline int64_t fetch_configs(cudnnBackendDescriptor_t heuristics, cudnnBackendDescriptor_t *configs,
				    int64_t room)
{
	int64_t n = 0;

	for (int64_t i = 0; i < room; i++)
		configs[i] = create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
	must(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, room,
				      &n, configs));
	for (int64_t i = n; i < room; i++)
		destroy(configs[i]);
	return n;
}

/* Description of one engine by cuDNN. */
struct said {
	int64_t index;
	unsigned notes, behaviours; /* a bit for each */
};

static inline unsigned bits_of(const unsigned *notes, int64_t n)
{
	unsigned bits = 0;

	for (int64_t i = 0; i < n; i++)
		bits |= 1U << notes[i];
	return bits;
}

static inline struct said say(cudnnBackendDescriptor_t config)
{
	cudnnBackendDescriptor_t engine = create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
	unsigned notes[MOST_ENGINES];
	struct said said = {0};
	int64_t n = 0;

	must(cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n,
				      &engine));
	must(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n, &said.index));
	must(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, MOST_ENGINES,
				      &n, notes));
	said.notes = bits_of(notes, n);
	must(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, MOST_ENGINES,
				      &n, notes));
	said.behaviours = bits_of(notes, n);
	destroy(engine);
	return said;
}

/* The configurations that one mode lists. */
struct list {
	cudnnBackendDescriptor_t configs[MOST_ENGINES];
	struct said said[MOST_ENGINES];
	int64_t n;
};

static inline struct list list_engines(cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode)
{
	const cudnnBackendDescriptor_t heuristics = describe_heuristics(graph, mode);
	struct list list;

	list.n = fetch_configs(heuristics, list.configs, MOST_ENGINES);
	destroy(heuristics);
	for (int64_t i = 0; i < list.n; i++)
		list.said[i] = say(list.configs[i]);
	return list;
}

static inline void destroy_list(const struct list *list)
{
	for (int64_t i = 0; i < list->n; i++)
		destroy(list->configs[i]);
}

/* ---- plans ---- */

/* status: the result of finalising. */
static inline cudnnBackendDescriptor_t try_plan(const struct dnn *dnn, cudnnBackendDescriptor_t config,
						cudnnStatus_t *status)
{
	const struct attribute attributes[] = {
		{CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &dnn->handle},
		{CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config}};

	if (tries_incomplete)
		destroy(describe(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, attributes, 2));
	return describe_without(-1, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, attributes, 2, status);
}

static inline cudnnStatus_t plan_status(const struct dnn *dnn, cudnnBackendDescriptor_t config)
{
	cudnnStatus_t status;

	destroy(try_plan(dnn, config, &status));
	return status;
}

/* A plan for the engine with that index, in either mode. All parts of the plan are destroyed before it is returned. */
static inline cudnnBackendDescriptor_t plan_shape(const struct dnn *dnn, const struct shape *shape,
						  cudnnDataType_t type, enum tensor made, const float ratios[2],
						  int64_t index)
{
	const struct parts parts = describe_parts(shape, type);
	const cudnnBackendDescriptor_t graph = describe_graph(dnn, made, &parts, ratios);
	cudnnBackendDescriptor_t plan = NULL;
	cudnnStatus_t status;

	destroy_parts(&parts);
	for (int is_fallback = 0; is_fallback < 2 && !plan; is_fallback++) {
		const struct list list =
			list_engines(graph, is_fallback ? CUDNN_HEUR_MODE_FALLBACK : CUDNN_HEUR_MODE_A);

		for (int64_t i = 0; i < list.n && !plan; i++)
			if (list.said[i].index == index) {
				plan = try_plan(dnn, list.configs[i], &status);
				must(status);
			}
		destroy_list(&list);
	}
	destroy(graph);
	cr_assert(plan, "no engine %d", (int)index);
	return plan;
}

static inline int64_t workspace_bytes(cudnnBackendDescriptor_t plan)
{
	int64_t n = 0, bytes = -1;

	must(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &bytes));
	cr_assert_eq(n, 1);
	return bytes;
}

static inline cudnnStatus_t execute_with(const struct dnn *dnn, cudnnBackendDescriptor_t plan, int n_pointers,
					 void *const *pointers, void *workspace)
{
	static const int64_t ids[TENSORS] = {X + 1, W + 1, Y + 1};
	const struct attribute attributes[] = {
		{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n_pointers, ids},
		{CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n_pointers, pointers},
		{CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace}};
	const cudnnBackendDescriptor_t pack = describe(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, attributes, 3);
	const cudnnStatus_t status = cudnnBackendExecute(dnn->handle, plan, pack);

	destroy(pack);
	return status;
}

static inline cudnnStatus_t execute(const struct dnn *dnn, cudnnBackendDescriptor_t plan)
{
	void *const pointers[] = {dnn->device_x, dnn->device_w, dnn->device_y};

	return execute_with(dnn, plan, TENSORS, pointers, workspace_bytes(plan) > 0 ? dnn->workspace : NULL);
}

#endif
