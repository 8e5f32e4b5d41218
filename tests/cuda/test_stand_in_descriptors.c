/* Answers of cuDNN's graph API in the stand-in to descriptors that are wrong, or used in the wrong order. It refuses
 * where cuDNN 9.19 ends the process, as for a child of another kind, and where cuDNN accepts an obvious mistake. */
#include <criterion/criterion.h>
#include <cudnn.h>

#include "tests/cuda/conv_helper.h"
#include "tests/cuda/stand_in.h"

static const struct shape one = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_TENSOR_NCHW};
static const float whole[2] = {1, 0};

/* ---- values ---- */

/* A tensor with one attribute changed. */
static cudnnStatus_t change_tensor(const struct attribute *changed)
{
	const cudnnDataType_t type = CUDNN_DATA_FLOAT;
	const int64_t sizes[4] = {2, 4, 6, 5}, strides[4] = {120, 30, 5, 1}, id = 1, alignment_bytes = 16;
	const struct attribute attributes[] = {
		{CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
		{CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, sizes},
		{CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides},
		{CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id},
		{CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment_bytes},
		*changed};
	cudnnStatus_t status;

	destroy(describe_without(-1, CUDNN_BACKEND_TENSOR_DESCRIPTOR, attributes, 6, &status));
	return status;
}

static cudnnStatus_t change_numbers(cudnnBackendAttributeName_t name, const int64_t numbers[4])
{
	return change_tensor(&(struct attribute){name, CUDNN_TYPE_INT64, 4, numbers});
}

static cudnnStatus_t change_alignment(int64_t bytes)
{
	return change_tensor(&(struct attribute){CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &bytes});
}

Test(stand_in_descriptors, tensors_that_cannot_be_are_refused)
{
	const cudnnDataType_t wide = CUDNN_DATA_DOUBLE;

	must(change_alignment(32));
	cr_expect_eq(change_alignment(8), CUDNN_STATUS_NOT_SUPPORTED);
	cr_expect_eq(change_alignment(3), CUDNN_STATUS_BAD_PARAM);
	cr_expect_eq(change_alignment(0), CUDNN_STATUS_BAD_PARAM);
	cr_expect_eq(change_numbers(CUDNN_ATTR_TENSOR_DIMENSIONS, (const int64_t[]){2, 0, 6, 5}),
		     CUDNN_STATUS_BAD_PARAM);
	must(change_numbers(CUDNN_ATTR_TENSOR_STRIDES, (const int64_t[]){120, 1, 20, 4}));
	cr_expect_eq(change_numbers(CUDNN_ATTR_TENSOR_STRIDES, (const int64_t[]){240, 30, 5, 1}),
		     CUDNN_STATUS_NOT_SUPPORTED);
	cr_expect_eq(change_tensor(&(struct attribute){CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &wide}),
		     CUDNN_STATUS_NOT_SUPPORTED);
	cr_expect_eq(psd_stand_in_held().handles, 0);
}

static cudnnStatus_t change_how(cudnnBackendAttributeName_t name, int64_t rows, int64_t columns)
{
	const cudnnDataType_t type = CUDNN_DATA_FLOAT;
	const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
	const int64_t axes = 2, ones[2] = {1, 1}, changed[2] = {rows, columns};
	const struct attribute attributes[] = {
		{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
		{CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode},
		{CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &axes},
		{CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, ones},
		{CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, ones},
		{CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, ones},
		{CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones},
		{name, CUDNN_TYPE_INT64, 2, changed}};
	cudnnStatus_t status;

	destroy(describe_without(-1, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, attributes, 8, &status));
	return status;
}

Test(stand_in_descriptors, ways_that_cannot_be_are_refused)
{
	must(change_how(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 2, 3));
	cr_expect_eq(change_how(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 1, 0), CUDNN_STATUS_BAD_PARAM);
	cr_expect_eq(change_how(CUDNN_ATTR_CONVOLUTION_DILATIONS, 0, 1), CUDNN_STATUS_BAD_PARAM);
	cr_expect_eq(change_how(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 1, -1), CUDNN_STATUS_BAD_PARAM);
	cr_expect_eq(change_how(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 1, 2), CUDNN_STATUS_NOT_SUPPORTED);
	cr_expect_eq(change_how(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 0, 1), CUDNN_STATUS_NOT_SUPPORTED);
	cr_expect_eq(psd_stand_in_held().handles, 0);
}

/* ---- order of calls ---- */

DNN_TEST(stand_in_descriptors, every_attribute_is_needed)
{
	tries_incomplete = true;
	for (enum tensor made = X; made < TENSORS; made++) {
		const cudnnBackendDescriptor_t plan = plan_shape(dnn, &one, CUDNN_DATA_FLOAT, made, whole, 0);

		must(execute(dnn, plan));
		destroy(plan);
	}
}

static cudnnStatus_t set_numbers(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
				 cudnnBackendAttributeType_t type, int64_t n)
{
	const int64_t numbers[9] = {1, 1, 1, 1};

	return set(of, &(struct attribute){name, type, n, numbers});
}

Test(stand_in_descriptors, attributes_have_one_type_and_one_number)
{
	const cudnnBackendDescriptor_t tensor = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);

	must(set_numbers(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4));
	cr_expect_eq(set_numbers(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_DOUBLE, 4),
		     CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
	cr_expect_eq(set_numbers(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 3), CUDNN_STATUS_BAD_PARAM);
	cr_expect_eq(set_numbers(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 5), CUDNN_STATUS_BAD_PARAM);
	cr_expect_eq(set_numbers(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 0), CUDNN_STATUS_BAD_PARAM);
	cr_expect_eq(set_numbers(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, -1), CUDNN_STATUS_BAD_PARAM);
	cr_expect_eq(set_numbers(tensor, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2),
		     CUDNN_STATUS_BAD_PARAM);
	cr_expect_eq(cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, NULL),
		     CUDNN_STATUS_BAD_PARAM);
	destroy(tensor);
}

Test(stand_in_descriptors, finalised_descriptors_stay_as_they_are)
{
	const cudnnBackendDescriptor_t tensor =
		describe_tensor(X, (const int[]){1, 1, 1, 1}, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW);

	cr_expect_eq(set_numbers(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4), CUDNN_STATUS_BAD_PARAM);
	cr_expect_eq(cudnnBackendFinalize(tensor), CUDNN_STATUS_BAD_PARAM);
	destroy(tensor);
}

static cudnnStatus_t set_x(cudnnBackendDescriptor_t operation, const cudnnBackendDescriptor_t *child)
{
	return set(operation, &(struct attribute){CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
						  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, child});
}

Test(stand_in_descriptors, parts_are_finalised_and_of_their_kind)
{
	const cudnnBackendDescriptor_t operation = create(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
	const cudnnBackendDescriptor_t open = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR), how = describe_how(&one);
	const cudnnBackendDescriptor_t graph = create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR), none = NULL;
	const cudnnHandle_t no_handle = NULL;

	cr_expect_eq(set_x(operation, &open), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
	cr_expect_eq(set_x(operation, &how), CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE);
	cr_expect_eq(set_x(operation, &none), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
	cr_expect_eq(
		set(graph, &(struct attribute){CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &no_handle}),
		CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
	cr_expect_eq(set(graph, &(struct attribute){CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
						    &operation}),
		     CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
	destroy(operation);
	destroy(open);
	destroy(how);
	destroy(graph);
}

DNN_TEST(stand_in_descriptors, tensors_of_a_graph_have_ids_of_their_own)
{
	struct parts parts = describe_parts(&one, CUDNN_DATA_FLOAT);
	const struct parts same = {.tensors = {parts.tensors[X], parts.tensors[X], parts.tensors[Y]}, .how = parts.how};
	struct attribute of_operation[OPERATION_ATTRIBUTES];
	cudnnBackendDescriptor_t operation;
	cudnnStatus_t status;

	fill_operation(of_operation, Y, &same, whole);
	operation = describe(operations[Y].kind, of_operation, OPERATION_ATTRIBUTES);
	const struct attribute attributes[] = {
		{CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &dnn->handle},
		{CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operation}};

	destroy(describe_without(-1, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, attributes, 2, &status));
	cr_expect_eq(status, CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES);
	destroy(operation);
	destroy_parts(&parts);
}

static cudnnStatus_t pack(const int64_t *ids, int64_t n_ids, int64_t n_pointers)
{
	void *const pointers[4] = {NULL}, *const workspace = NULL;
	const struct attribute attributes[] = {
		{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n_ids, ids},
		{CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n_pointers, pointers},
		{CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace}};
	cudnnStatus_t status;

	destroy(describe_without(-1, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, attributes, 3, &status));
	return status;
}

Test(stand_in_descriptors, a_pack_has_one_pointer_for_each_id)
{
	const cudnnBackendDescriptor_t open = create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);

	must(pack((const int64_t[]){1, 2, 3}, 3, 3));
	cr_expect_eq(pack((const int64_t[]){1, 2, 3}, 3, 2), CUDNN_STATUS_BAD_PARAM);
	cr_expect_eq(pack((const int64_t[]){1, 2, 1}, 3, 3), CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES);
	cr_expect_eq(set_numbers(open, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 0),
		     CUDNN_STATUS_BAD_PARAM);
	cr_expect_eq(set_numbers(open, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 9),
		     CUDNN_STATUS_BAD_PARAM);
	destroy(open);
}

static cudnnStatus_t get(cudnnBackendDescriptor_t from, cudnnBackendAttributeName_t name,
			 cudnnBackendAttributeType_t type, int64_t room, void *values)
{
	int64_t n = 0;

	return cudnnBackendGetAttribute(from, name, type, room, &n, values);
}

static cudnnBackendDescriptor_t heuristics_of_one(const struct dnn *dnn)
{
	const struct parts parts = describe_parts(&one, CUDNN_DATA_FLOAT);
	const cudnnBackendDescriptor_t graph = describe_graph(dnn, Y, &parts, whole);
	const cudnnBackendDescriptor_t heuristics = describe_heuristics(graph, CUDNN_HEUR_MODE_A);

	destroy(graph);
	destroy_parts(&parts);
	return heuristics;
}

DNN_TEST(stand_in_descriptors, each_fetched_result_needs_its_own_descriptor)
{
	cudnnBackendDescriptor_t config = create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR), heuristics;
	cudnnBackendDescriptor_t engine = create(CUDNN_BACKEND_ENGINE_DESCRIPTOR), none = NULL;

	heuristics = heuristics_of_one(dnn);
	cr_expect_eq(get(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine),
		     CUDNN_STATUS_BAD_PARAM);
	cr_expect_eq(get(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &none),
		     CUDNN_STATUS_BAD_PARAM);
	cr_expect_eq(get(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_INT64, 1, &config),
		     CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
	cr_expect_eq(get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine),
		     CUDNN_STATUS_NOT_INITIALIZED);
	cr_expect_eq(cudnnBackendFinalize(config), CUDNN_STATUS_BAD_PARAM);
	must(get(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config));
	cr_expect_eq(get(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config),
		     CUDNN_STATUS_NOT_SUPPORTED);
	must(get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine));
	cr_expect_eq(get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine),
		     CUDNN_STATUS_NOT_SUPPORTED);
	cr_expect_eq(get(engine, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &none), CUDNN_STATUS_BAD_PARAM);
	destroy(heuristics);
	destroy(config);
	destroy(engine);
}

DNN_TEST(stand_in_descriptors, plans_and_packs_are_executed_once_they_are_finalised)
{
	const cudnnBackendDescriptor_t plan = plan_shape(dnn, &one, CUDNN_DATA_FLOAT, Y, whole, 0);
	const cudnnBackendDescriptor_t open_plan = create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	const cudnnBackendDescriptor_t open_pack = create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
	int64_t bytes;

	cr_expect_eq(cudnnBackendExecute(dnn->handle, plan, open_pack), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
	cr_expect_eq(cudnnBackendExecute(dnn->handle, open_plan, open_pack), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
	cr_expect_eq(cudnnBackendExecute(dnn->handle, open_pack, plan), CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE);
	cr_expect_eq(cudnnBackendExecute(NULL, plan, open_pack), CUDNN_STATUS_BAD_PARAM);
	cr_expect_eq(get(open_plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes),
		     CUDNN_STATUS_NOT_INITIALIZED);
	destroy(plan);
	destroy(open_plan);
	destroy(open_pack);
}

Test(stand_in_descriptors, nothing_is_no_descriptor)
{
	cudnnBackendDescriptor_t made;
	int64_t number = 0;

	cr_expect_eq(cudnnBackendCreateDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &made),
		     CUDNN_STATUS_NOT_SUPPORTED);
	cr_expect_eq(cudnnBackendDestroyDescriptor(NULL), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
	cr_expect_eq(cudnnBackendFinalize(NULL), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
	cr_expect_eq(set_numbers(NULL, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4),
		     CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
	cr_expect_eq(get(NULL, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &number), CUDNN_STATUS_BAD_PARAM);
}

DNN_TEST(stand_in_descriptors, two_modes_list_engines)
{
	const struct parts parts = describe_parts(&one, CUDNN_DATA_FLOAT);
	const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_B;
	cudnnBackendDescriptor_t graph;
	cudnnStatus_t status;

	graph = describe_graph(dnn, Y, &parts, whole);
	const struct attribute attributes[] = {
		{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph},
		{CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode}};

	destroy(describe_without(-1, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, attributes, 2, &status));
	cr_expect_eq(status, CUDNN_STATUS_NOT_SUPPORTED);
	destroy(graph);
	destroy_parts(&parts);
}

/* ---- faults ---- */

DNN_TEST(stand_in_descriptors, calls_fail_as_ordered)
{
	cudnnBackendDescriptor_t made = NULL, tensor = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR), heuristics, plan;
	int64_t number;

	heuristics = heuristics_of_one(dnn);
	plan = plan_shape(dnn, &one, CUDNN_DATA_FLOAT, Y, whole, 0);
	psd_stand_in_fail("cudnnBackendCreateDescriptor", 1, cudaErrorMemoryAllocation);
	cr_expect_eq(cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &made),
		     CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
	psd_stand_in_fail("cudnnBackendSetAttribute", 1, cudaErrorNotSupported);
	cr_expect_eq(set_numbers(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4),
		     CUDNN_STATUS_EXECUTION_FAILED);
	psd_stand_in_fail("cudnnBackendFinalize", 1, cudaErrorNotSupported);
	cr_expect_eq(cudnnBackendFinalize(tensor), CUDNN_STATUS_EXECUTION_FAILED);
	psd_stand_in_fail("cudnnBackendGetAttribute", 1, cudaErrorNotSupported);
	cr_expect_eq(get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &number),
		     CUDNN_STATUS_EXECUTION_FAILED);
	psd_stand_in_fail("cudnnBackendExecute", 1, cudaErrorNotSupported);
	cr_expect_eq(execute(dnn, plan), CUDNN_STATUS_EXECUTION_FAILED);
	must(execute(dnn, plan));
	destroy(plan);
	destroy(heuristics);
	destroy(tensor);
}
