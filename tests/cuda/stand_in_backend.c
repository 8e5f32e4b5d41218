/* The descriptors of cuDNN's graph API in the stand-in, as far as one convolution needs them. Two mistakes that cuDNN
 * 9.19 tolerates are refused: missing attributes, and children of another kind. Refuses to compute. */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/stand_in_backend.h"
#include "tests/cuda/stand_in_parts.h"

/* ---- descriptors ---- */

union contents {
	struct psd_stand_in_described tensor;
	struct psd_stand_in_how how;
	struct psd_stand_in_conv conv;
	struct psd_stand_in_graph graph;
	struct psd_stand_in_heuristics heuristics;
	struct psd_stand_in_config config;
	struct psd_stand_in_engine engine;
	struct psd_stand_in_plan plan;
	struct psd_stand_in_pack pack;
};

/* Target of cuDNN's descriptor type, which is a void pointer. */
struct descriptor {
	cudnnBackendDescriptorType_t kind;
	bool is_finalized;
	uint64_t set; /* a bit for each row of `attributes` */
	union contents contents;
};

#define TENSOR	    CUDNN_BACKEND_TENSOR_DESCRIPTOR
#define HOW	    CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR
#define FORWARD	    CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
#define TO_DATA	    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
#define TO_FILTER   CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR
#define GRAPH	    CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR
#define HEURISTICS  CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR
#define CONFIG	    CUDNN_BACKEND_ENGINECFG_DESCRIPTOR
#define ENGINE	    CUDNN_BACKEND_ENGINE_DESCRIPTOR
#define PLAN	    CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR
#define PACK	    CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR
#define AT(member)  offsetof(union contents, member)
#define PART(child) CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, child

/* All must be set. A child's contents are copied: an operation is FORWARD, whichever it is. */
static const struct attribute {
	cudnnBackendDescriptorType_t of;
	cudnnBackendAttributeName_t name;
	cudnnBackendAttributeType_t type;
	int64_t n;	       /* values, the most where there is counted_at */
	int child;	       /* a kind, where the value is a descriptor */
	size_t at, counted_at; /* in the contents; 0: always n */
} attributes[] = {
	{TENSOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 0, AT(tensor.type), 0},
	{TENSOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, 0, AT(tensor.sizes), 0},
	{TENSOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, 0, AT(tensor.strides), 0},
	{TENSOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, 0, AT(tensor.id), 0},
	{TENSOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, 0, AT(tensor.alignment_bytes), 0},
	{HOW, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 0, AT(how.type), 0},
	{HOW, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, 0, AT(how.mode), 0},
	{HOW, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, 0, AT(how.axes), 0},
	{HOW, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, 0, AT(how.strides), 0},
	{HOW, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, 0, AT(how.pads), 0},
	{HOW, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, 0, AT(how.end_pads), 0},
	{HOW, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, 0, AT(how.dilations), 0},
	{FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, PART(HOW), AT(conv.how), 0},
	{FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, PART(TENSOR), AT(conv.x), 0},
	{FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, PART(TENSOR), AT(conv.w), 0},
	{FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, PART(TENSOR), AT(conv.y), 0},
	{FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, 0, AT(conv.alpha), 0},
	{FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, 0, AT(conv.beta), 0},
	{TO_DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, PART(HOW), AT(conv.how), 0},
	{TO_DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, PART(TENSOR), AT(conv.x), 0},
	{TO_DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, PART(TENSOR), AT(conv.w), 0},
	{TO_DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, PART(TENSOR), AT(conv.y), 0},
	{TO_DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT, 1, 0, AT(conv.alpha), 0},
	{TO_DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT, 1, 0, AT(conv.beta), 0},
	{TO_FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, PART(HOW), AT(conv.how), 0},
	{TO_FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, PART(TENSOR), AT(conv.x), 0},
	{TO_FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, PART(TENSOR), AT(conv.w), 0},
	{TO_FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, PART(TENSOR), AT(conv.y), 0},
	{TO_FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT, 1, 0, AT(conv.alpha), 0},
	{TO_FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT, 1, 0, AT(conv.beta), 0},
	{GRAPH, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, 0, AT(graph.handle), 0},
	{GRAPH, CUDNN_ATTR_OPERATIONGRAPH_OPS, PART(FORWARD), AT(graph.conv), 0},
	{HEURISTICS, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, PART(GRAPH), AT(heuristics.graph), 0},
	{HEURISTICS, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 0, AT(heuristics.mode), 0},
	{PLAN, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, 0, AT(plan.handle), 0},
	{PLAN, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, PART(CONFIG), AT(plan.config), 0},
	{PACK, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, PSD_STAND_IN_MOST_POINTERS, 0, AT(pack.ids),
	 AT(pack.n_ids)},
	{PACK, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, PSD_STAND_IN_MOST_POINTERS, 0,
	 AT(pack.pointers), AT(pack.n_pointers)},
	{PACK, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, 0, AT(pack.workspace), 0},
};
enum { ATTRIBUTES = sizeof(attributes) / sizeof(attributes[0]) };
_Static_assert(ATTRIBUTES <= 64, "a bit for each");

/* 0: the stand-in has none of that kind. */
static size_t contents_bytes(cudnnBackendDescriptorType_t kind)
{
	switch ((int)kind) {
	case TENSOR: return sizeof(struct psd_stand_in_described);
	case HOW: return sizeof(struct psd_stand_in_how);
	case FORWARD:
	case TO_DATA:
	case TO_FILTER: return sizeof(struct psd_stand_in_conv);
	case GRAPH: return sizeof(struct psd_stand_in_graph);
	case HEURISTICS: return sizeof(struct psd_stand_in_heuristics);
	case CONFIG: return sizeof(struct psd_stand_in_config);
	case ENGINE: return sizeof(struct psd_stand_in_engine);
	case PLAN: return sizeof(struct psd_stand_in_plan);
	case PACK: return sizeof(struct psd_stand_in_pack);
	default: return 0;
	}
}

static size_t value_bytes(cudnnBackendAttributeType_t type)
{
	switch ((int)type) {
	case CUDNN_TYPE_DATA_TYPE: return sizeof(cudnnDataType_t);
	case CUDNN_TYPE_CONVOLUTION_MODE: return sizeof(cudnnConvolutionMode_t);
	case CUDNN_TYPE_HEUR_MODE: return sizeof(cudnnBackendHeurMode_t);
	case CUDNN_TYPE_INT64: return sizeof(int64_t);
	case CUDNN_TYPE_FLOAT: return sizeof(float);
	case CUDNN_TYPE_HANDLE: return sizeof(cudnnHandle_t);
	case CUDNN_TYPE_VOID_PTR: return sizeof(void *);
	default: return 0;
	}
}

/* Begins a call: returns the status that it must fail with, as ordered. Later work touches nothing shared, so that the
 * lock is released here. */
static cudnnStatus_t begin(const char *function)
{
	const cudaError_t error = psd_stand_in_begin(function);

	psd_stand_in_unlock();
	return psd_stand_in_dnn_status(error);
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind, cudnnBackendDescriptor_t *descriptor)
{
	cudnnStatus_t status;

	if (contents_bytes(kind) == 0)
		return CUDNN_STATUS_NOT_SUPPORTED;
	status = psd_stand_in_dnn_create(__func__, descriptor, sizeof(struct descriptor));
	if (status == CUDNN_STATUS_SUCCESS)
		((struct descriptor *)*descriptor)->kind = kind;
	return status;
}

/* It is a matter of the host's memory, and fails in no other way. */
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
	if (!descriptor)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	psd_stand_in_lock();
	free(descriptor);
	psd_stand_in_count.handles--;
	psd_stand_in_unlock();
	return CUDNN_STATUS_SUCCESS;
}

/* ---- setting ---- */

/* -1: there is none. */
static int attribute_of(cudnnBackendDescriptorType_t kind, cudnnBackendAttributeName_t name)
{
	for (int i = 0; i < ATTRIBUTES; i++)
		if (attributes[i].of == kind && attributes[i].name == name)
			return i;
	return -1;
}

static cudnnStatus_t set_child(void *to, int kind, const struct descriptor *child)
{
	if (!child)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if ((int)child->kind != kind && (kind != FORWARD || (child->kind != TO_DATA && child->kind != TO_FILTER)))
		return CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE;
	if (!child->is_finalized)
		return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
	memcpy(to, &child->contents, contents_bytes(child->kind));
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set(struct descriptor *descriptor, const struct attribute *attribute, int64_t n,
			 const void *values)
{
	char *const contents = (char *)&descriptor->contents;

	if (attribute->type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		return set_child(contents + attribute->at, attribute->child, *(struct descriptor *const *)values);
	if (attribute->type == CUDNN_TYPE_HANDLE && !*(const cudnnHandle_t *)values)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	memcpy(contents + attribute->at, values, (size_t)n * value_bytes(attribute->type));
	if (attribute->counted_at > 0)
		memcpy(contents + attribute->counted_at, &n, sizeof(n));
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
				       cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
	struct descriptor *const descriptor = of;
	cudnnStatus_t status = begin(__func__);
	int i;

	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	if (!descriptor)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	i = attribute_of(descriptor->kind, name);
	if (i < 0 || descriptor->is_finalized || !values || n < 1 || n > attributes[i].n ||
	    (n != attributes[i].n && attributes[i].counted_at == 0))
		return CUDNN_STATUS_BAD_PARAM;
	if (type != attributes[i].type)
		return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
	status = set(descriptor, &attributes[i], n, values);
	if (status == CUDNN_STATUS_SUCCESS)
		descriptor->set |= UINT64_C(1) << i;
	return status;
}

/* ---- finalising ---- */

static cudnnStatus_t finalize_tensor(struct psd_stand_in_described *tensor)
{
	struct psd_stand_in_layout *const layout = &tensor->layout;

	for (int i = 0; i < 4; i++)
		if (tensor->sizes[i] <= 0)
			return CUDNN_STATUS_BAD_PARAM;
	if (!psd_stand_in_number_of(tensor->type, &layout->number))
		return CUDNN_STATUS_NOT_SUPPORTED;
	if (tensor->alignment_bytes <= 0 ||
	    tensor->alignment_bytes % (int64_t)psd_stand_in_number_bytes(layout->number) != 0)
		return CUDNN_STATUS_BAD_PARAM;
	layout->n = (size_t)tensor->sizes[0];
	layout->c = (size_t)tensor->sizes[1];
	layout->h = (size_t)tensor->sizes[2];
	layout->w = (size_t)tensor->sizes[3];
	layout->is_set = true;
	for (int is_last = 0; is_last < 2; is_last++) {
		psd_stand_in_set_strides(layout, is_last);
		if (tensor->strides[0] == (int64_t)layout->strides[0] &&
		    tensor->strides[1] == (int64_t)layout->strides[1] &&
		    tensor->strides[2] == (int64_t)layout->strides[2] &&
		    tensor->strides[3] == (int64_t)layout->strides[3])
			return tensor->alignment_bytes % 16 == 0 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
	}
	return CUDNN_STATUS_NOT_SUPPORTED;
}

static cudnnStatus_t finalize_how(const struct psd_stand_in_how *how)
{
	if (how->axes != 2 || (how->mode != CUDNN_CONVOLUTION && how->mode != CUDNN_CROSS_CORRELATION))
		return CUDNN_STATUS_BAD_PARAM;
	for (int i = 0; i < 2; i++)
		if (how->pads[i] < 0 || how->end_pads[i] < 0 || how->strides[i] <= 0 || how->dilations[i] <= 0)
			return CUDNN_STATUS_BAD_PARAM;
	if (how->type != CUDNN_DATA_FLOAT || how->pads[0] != how->end_pads[0] || how->pads[1] != how->end_pads[1])
		return CUDNN_STATUS_NOT_SUPPORTED;
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finalize_operation(cudnnBackendDescriptorType_t kind, struct psd_stand_in_conv *conv)
{
	conv->direction = kind == FORWARD   ? PSD_STAND_IN_TO_OUTPUT
			  : kind == TO_DATA ? PSD_STAND_IN_TO_DATA
					    : PSD_STAND_IN_TO_FILTER;
	return psd_stand_in_check_conv(conv);
}

static bool are_distinct(const int64_t *ids, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < i; j++)
			if (ids[i] == ids[j])
				return false;
	return true;
}

static cudnnStatus_t finalize_graph(const struct psd_stand_in_conv *conv)
{
	const int64_t ids[] = {conv->x.id, conv->w.id, conv->y.id};

	return are_distinct(ids, 3) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES;
}

static cudnnStatus_t finalize_heuristics(struct psd_stand_in_heuristics *heuristics)
{
	if (heuristics->mode != CUDNN_HEUR_MODE_A && heuristics->mode != CUDNN_HEUR_MODE_FALLBACK)
		return CUDNN_STATUS_NOT_SUPPORTED;
	heuristics->n_engines =
		psd_stand_in_list_engines(&heuristics->graph.conv, heuristics->mode, heuristics->engines);
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finalize_plan(struct psd_stand_in_plan *plan)
{
	plan->device = plan->handle->device;
	return psd_stand_in_plan_conv(&plan->config, &plan->workspace_bytes);
}

static cudnnStatus_t finalize_pack(const struct psd_stand_in_pack *pack)
{
	if (pack->n_ids != pack->n_pointers)
		return CUDNN_STATUS_BAD_PARAM;
	return are_distinct(pack->ids, pack->n_ids) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES;
}

static cudnnStatus_t finalize(struct descriptor *descriptor)
{
	union contents *const contents = &descriptor->contents;

	switch ((int)descriptor->kind) {
	case TENSOR: return finalize_tensor(&contents->tensor);
	case HOW: return finalize_how(&contents->how);
	case FORWARD:
	case TO_DATA:
	case TO_FILTER: return finalize_operation(descriptor->kind, &contents->conv);
	case GRAPH: return finalize_graph(&contents->graph.conv);
	case HEURISTICS: return finalize_heuristics(&contents->heuristics);
	case PLAN: return finalize_plan(&contents->plan);
	case PACK: return finalize_pack(&contents->pack);
	default: return CUDNN_STATUS_BAD_PARAM; /* fetched descriptors are finalised already */
	}
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t of)
{
	struct descriptor *const descriptor = of;
	cudnnStatus_t status = begin(__func__);

	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	if (!descriptor)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (descriptor->is_finalized)
		return CUDNN_STATUS_BAD_PARAM;
	for (int i = 0; i < ATTRIBUTES; i++)
		if (attributes[i].of == descriptor->kind && !(descriptor->set >> i & 1))
			return CUDNN_STATUS_BAD_PARAM;
	status = finalize(descriptor);
	descriptor->is_finalized = status == CUDNN_STATUS_SUCCESS;
	return status;
}

/* ---- getting ---- */

/* Into a descriptor that the caller has made for it. */
static cudnnStatus_t fetch_into(struct descriptor *to, cudnnBackendDescriptorType_t kind, const void *contents)
{
	if (!to || to->kind != kind)
		return CUDNN_STATUS_BAD_PARAM;
	if (to->is_finalized)
		return CUDNN_STATUS_NOT_SUPPORTED;
	memcpy(&to->contents, contents, contents_bytes(kind));
	to->is_finalized = true;
	return CUDNN_STATUS_SUCCESS;
}

/* Each call goes on where the last one ended. A call that only counts is told of one more than there are, as cuDNN
 * does. */
static cudnnStatus_t fetch_results(struct psd_stand_in_heuristics *heuristics, int64_t room, int64_t *n,
				   struct descriptor *const *to)
{
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

	*n = room == 0 ? heuristics->n_engines + 1 : 0;
	while (*n < room && heuristics->n_fetched < heuristics->n_engines) {
		const struct psd_stand_in_config config = {.conv = heuristics->graph.conv,
							   .engine = heuristics->engines[heuristics->n_fetched]};

		status = fetch_into(to[*n], CONFIG, &config);
		if (status != CUDNN_STATUS_SUCCESS)
			break;
		heuristics->n_fetched++;
		++*n;
	}
	return status;
}

static cudnnStatus_t fetch_engine(const struct psd_stand_in_config *config, int64_t room, int64_t *n,
				  struct descriptor *const *to)
{
	if (room > 1)
		return CUDNN_STATUS_NOT_SUPPORTED;
	*n = 1;
	return room == 0 ? CUDNN_STATUS_SUCCESS : fetch_into(to[0], ENGINE, &config->engine);
}

static cudnnStatus_t get_number(int64_t number, int64_t room, int64_t *n, int64_t *to)
{
	*n = 1;
	if (room > 0)
		*to = number;
	return CUDNN_STATUS_SUCCESS;
}

/* Both kinds of notes are enumerations without negative numbers. */
static cudnnStatus_t get_notes(unsigned notes, int64_t room, int64_t *n, unsigned *to)
{
	*n = 0;
	for (unsigned i = 0; i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++)
		if (notes >> i & 1 && (room == 0 || *n < room)) {
			if (room > 0)
				to[*n] = i;
			++*n;
		}
	return CUDNN_STATUS_SUCCESS;
}

/* Attributes that can be read. */
static const struct {
	cudnnBackendDescriptorType_t of;
	cudnnBackendAttributeName_t name;
	cudnnBackendAttributeType_t type;
} answers[] = {
	{HEURISTICS, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR},
	{CONFIG, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR},
	{ENGINE, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64},
	{ENGINE, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE},
	{ENGINE, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE},
	{PLAN, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64},
};

static cudnnStatus_t check_question(const struct descriptor *descriptor, cudnnBackendAttributeName_t name,
				    cudnnBackendAttributeType_t type)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (answers[i].of == descriptor->kind && answers[i].name == name)
			return answers[i].type == type ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
	return CUDNN_STATUS_BAD_PARAM;
}

/* n may be more than was asked for, where room is 0. */
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const of, cudnnBackendAttributeName_t name,
				       cudnnBackendAttributeType_t type, int64_t room, int64_t *n, void *values)
{
	struct descriptor *const descriptor = of;
	cudnnStatus_t status = begin(__func__);

	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	if (!descriptor || room < 0 || !n || (room > 0 && !values))
		return CUDNN_STATUS_BAD_PARAM;
	if (!descriptor->is_finalized)
		return CUDNN_STATUS_NOT_INITIALIZED;
	status = check_question(descriptor, name, type);
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	union contents *const contents = &descriptor->contents;

	switch ((int)name) {
	case CUDNN_ATTR_ENGINEHEUR_RESULTS: return fetch_results(&contents->heuristics, room, n, values);
	case CUDNN_ATTR_ENGINECFG_ENGINE: return fetch_engine(&contents->config, room, n, values);
	case CUDNN_ATTR_ENGINE_GLOBAL_INDEX: return get_number(contents->engine.index, room, n, values);
	case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: return get_notes(contents->engine.notes, room, n, values);
	case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE: return get_notes(contents->engine.behaviours, room, n, values);
	default: return get_number(contents->plan.workspace_bytes, room, n, values);
	}
}

/* ---- execution ---- */

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_of,
				  cudnnBackendDescriptor_t pack_of)
{
	const struct descriptor *const plan = plan_of, *const pack = pack_of;

	if (!handle || !plan || !pack)
		return CUDNN_STATUS_BAD_PARAM;
	if (plan->kind != PLAN || pack->kind != PACK)
		return CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE;
	if (!plan->is_finalized || !pack->is_finalized)
		return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
	if (plan->contents.plan.device != handle->device)
		return CUDNN_STATUS_BAD_PARAM;
	return psd_stand_in_convolve(__func__, handle, &plan->contents.plan, &pack->contents.pack);
}
