/* cuDNN's graph API: descriptors, lists of engines for an operation, their plans. */
#include <cuda_runtime.h>
#include <cudnn.h>
#include <float.h>
#include <string.h>

extern "C" {
#include "real/device/cuda/dnn.h"
}

/* ---- descriptors ---- */

int psd_cuda_dnn_build(int kind, const struct psd_cuda_dnn_attribute *attributes, int n_attributes, void **built)
{
	int status = cudnnBackendCreateDescriptor((cudnnBackendDescriptorType_t)kind, built);

	if (status != CUDNN_STATUS_SUCCESS) {
		*built = NULL;
		return status;
	}
	for (int i = 0; i < n_attributes && status == CUDNN_STATUS_SUCCESS; i++)
		status = cudnnBackendSetAttribute(*built, (cudnnBackendAttributeName_t)attributes[i].name,
						  (cudnnBackendAttributeType_t)attributes[i].type, attributes[i].n,
						  attributes[i].values);
	if (status == CUDNN_STATUS_SUCCESS)
		status = cudnnBackendFinalize(*built);
	if (status != CUDNN_STATUS_SUCCESS) {
		psd_cuda_dnn_destroy(*built);
		*built = NULL;
	}
	return status;
}

void psd_cuda_dnn_destroy(void *built)
{
	if (built)
		(void)cudnnBackendDestroyDescriptor(built);
}

/* Reads a descriptor that is an attribute of another. */
static int fetch(cudnnBackendDescriptor_t from, cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t kind,
		 cudnnBackendDescriptor_t *fetched)
{
	int status = cudnnBackendCreateDescriptor(kind, fetched);
	int64_t n = 0;

	if (status != CUDNN_STATUS_SUCCESS) {
		*fetched = NULL;
		return status;
	}
	status = cudnnBackendGetAttribute(from, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, fetched);
	return status == CUDNN_STATUS_SUCCESS && n != 1 ? (int)CUDNN_STATUS_INTERNAL_ERROR : status;
}

/* ---- which engines ---- */

enum { MOST_NOTES = 32 };

/* Excludes engines by cuDNN's notes on their precision. Larger Winograd tiles round more; the error of the smallest
 * tiles is a few times a direct sum's. */
static bool takes_number(const struct psd_device *device, cudnnBackendNumericalNote_t note)
{
	switch (note) {
	case CUDNN_NUMERICAL_NOTE_TENSOR_CORE: return device->options.arithmetic != PSD_LAYERS_FP32;
	case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC: return device->options.may_differ;
	case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
	case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
	case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
	case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13: return false;
	default: return true;
	}
}

/* The machine may have no compiler, and compiling takes time. */
static bool takes_behaviour(cudnnBackendBehaviorNote_t note)
{
	return note == CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API ||
	       note == CUDNN_BEHAVIOR_NOTE_CUBLASLT_DEPENDENCY;
}

static int suits(const struct psd_device *device, cudnnBackendDescriptor_t config, bool *does)
{
	cudnnBackendNumericalNote_t numbers[MOST_NOTES];
	cudnnBackendBehaviorNote_t behaviours[MOST_NOTES];
	int64_t n_numbers = 0, n_behaviours = 0;
	cudnnBackendDescriptor_t engine;
	int status = fetch(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine);

	if (status == CUDNN_STATUS_SUCCESS)
		status = cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
						  MOST_NOTES, &n_numbers, numbers);
	if (status == CUDNN_STATUS_SUCCESS)
		status = cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
						  MOST_NOTES, &n_behaviours, behaviours);
	psd_cuda_dnn_destroy(engine);
	*does = status == CUDNN_STATUS_SUCCESS;
	for (int64_t i = 0; *does && i < n_numbers; i++)
		*does = takes_number(device, numbers[i]);
	for (int64_t i = 0; *does && i < n_behaviours; i++)
		*does = takes_behaviour(behaviours[i]);
	return status;
}

/* Keeps the suitable configurations, destroys the others. */
static int keep_suiting(const struct psd_device *device, cudnnBackendDescriptor_t *configs, int64_t n,
			struct psd_cuda_dnn_op *op)
{
	int status = CUDNN_STATUS_SUCCESS;

	for (int64_t i = 0; i < n; i++) {
		bool does = false;

		if (status == CUDNN_STATUS_SUCCESS)
			status = suits(device, configs[i], &does);
		if (does)
			op->choices[op->n_choices++].config = configs[i];
		else
			psd_cuda_dnn_destroy(configs[i]);
	}
	return status;
}

static int fetch_configs(const struct psd_device *device, cudnnBackendDescriptor_t heuristics,
			 struct psd_cuda_dnn_op *op)
{
	cudnnBackendDescriptor_t configs[PSD_CUDA_DNN_MOST_CHOICES];
	const int64_t room = PSD_CUDA_DNN_MOST_CHOICES - op->n_choices;
	int64_t n = 0, n_made = 0, n_fetched = 0;
	int status = cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
					      0, &n, NULL);

	if (n > room)
		n = room;
	while (status == CUDNN_STATUS_SUCCESS && n_made < n) {
		status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[n_made]);
		n_made += status == CUDNN_STATUS_SUCCESS;
	}
	if (status == CUDNN_STATUS_SUCCESS && n > 0)
		status = cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
						  CUDNN_TYPE_BACKEND_DESCRIPTOR, n, &n_fetched, configs);
	if (status != CUDNN_STATUS_SUCCESS || n_fetched > n_made)
		n_fetched = 0;
	for (int64_t i = n_fetched; i < n_made; i++)
		psd_cuda_dnn_destroy(configs[i]);
	return n_fetched > 0 ? keep_suiting(device, configs, n_fetched, op) : status;
}

/* Adds engines from one of cuDNN's heuristics; without a handle for a GPU that is only described. */
static int list(const struct psd_device *device, cudnnBackendHeurMode_t mode, struct psd_cuda_dnn_op *op)
{
	const struct psd_cuda_dnn_attribute attributes[] = {
		{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &op->graph},
		{CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode},
		{CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device->dnn_properties}};
	cudnnBackendDescriptor_t heuristics;
	int status =
		psd_cuda_dnn_build(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, attributes, device->dnn ? 2 : 3, &heuristics);

	if (status == CUDNN_STATUS_SUCCESS)
		status = fetch_configs(device, heuristics, op);
	psd_cuda_dnn_destroy(heuristics);
	return psd_cuda_dnn_refuses(status) ? CUDNN_STATUS_SUCCESS : status;
}

/* ---- plans ---- */

enum { MOST_TIMED = 16, TIMED_REPEATS = 3 };

static void end_plan(struct psd_cuda_dnn_choice *choice)
{
	psd_cuda_dnn_destroy(choice->plan);
	choice->plan = NULL;
}

static int make_plan(const struct psd_device *device, struct psd_cuda_dnn_choice *choice)
{
	const struct psd_cuda_dnn_attribute config = {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
						      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &choice->config};
	const struct psd_cuda_dnn_attribute here[] = {
		config, {CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &device->dnn}};
	const struct psd_cuda_dnn_attribute described[] = {
		config,
		{CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device->dnn_properties}};
	int64_t n = 0, bytes = 0;
	int status = psd_cuda_dnn_build(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, device->dnn ? here : described, 2,
					&choice->plan);

	if (status == CUDNN_STATUS_SUCCESS)
		status = cudnnBackendGetAttribute(choice->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
						  CUDNN_TYPE_INT64, 1, &n, &bytes);
	if (status == CUDNN_STATUS_SUCCESS) {
		choice->bytes = (uint64_t)bytes;
		return status;
	}
	end_plan(choice);
	return status;
}

/* Finds the first choice from `from` on, below `end`, with a plan in this much workspace. An error in one engine need
 * not occur in the next. CUDNN_STATUS_NOT_SUPPORTED, or the last error: there is none. */
static int take_first(const struct psd_device *device, struct psd_cuda_dnn_op *op, int from, int end,
		      uint64_t room_bytes)
{
	int failure = CUDNN_STATUS_NOT_SUPPORTED;

	for (int i = from; i < end; i++) {
		struct psd_cuda_dnn_choice *choice = &op->choices[i];
		const int status = choice->plan ? CUDNN_STATUS_SUCCESS : make_plan(device, choice);

		if (choice->plan && choice->bytes <= room_bytes) {
			op->chosen = i;
			return CUDNN_STATUS_SUCCESS;
		}
		if (!psd_cuda_dnn_refuses(status) && status != CUDNN_STATUS_SUCCESS)
			failure = status;
	}
	return failure;
}

/* Returns the preferred limit for the workspace of a convolution, bytes. */
static uint64_t most_bytes(const struct psd_device *device)
{
	return device->memory_bytes / 16;
}

/* Smallest workspace of all plans; UINT64_MAX: there are no plans. */
static uint64_t least_bytes(const struct psd_cuda_dnn_op *op, int from, int end)
{
	uint64_t bytes = UINT64_MAX;

	for (int i = from; i < end; i++)
		if (op->choices[i].plan && op->choices[i].bytes < bytes)
			bytes = op->choices[i].bytes;
	return bytes;
}

/* Takes the first choice within the preferred workspace. If there is none, as in very large batches, the one with the
 * smallest workspace. */
static int take_of(const struct psd_device *device, struct psd_cuda_dnn_op *op, int from, int end)
{
	const int status = take_first(device, op, from, end, most_bytes(device));

	if (status == CUDNN_STATUS_SUCCESS || least_bytes(op, from, end) == UINT64_MAX)
		return status;
	return take_first(device, op, from, end, least_bytes(op, from, end));
}

/* A list takes about 300 kB of host memory, and networks have hundreds. So this keeps choices with a plan, and the
 * fallbacks, which need no workspace. */
static void keep_few(struct psd_cuda_dnn_op *op)
{
	int n_kept = 0, n_estimated = 0;

	for (int i = 0; i < op->n_choices; i++) {
		struct psd_cuda_dnn_choice *choice = &op->choices[i];
		const bool is_estimated = i < op->n_estimated;

		if (i >= op->chosen && (choice->plan || !is_estimated)) {
			op->choices[n_kept++] = *choice;
			n_estimated += is_estimated;
		} else {
			end_plan(choice);
			psd_cuda_dnn_destroy(choice->config);
		}
	}
	op->n_choices = n_kept;
	op->n_estimated = n_estimated;
	op->chosen = 0;
}

/* Requests workspace for every choice that will be timed, also for fallbacks, which have no order. */
static void enlist(const struct psd_device *device, struct psd_cuda_dnn_op *op)
{
	const int selection = op->chosen;

	for (int i = selection, n_timed = 0; i < op->n_choices && n_timed < MOST_TIMED; i++) {
		if (take_first(device, op, i, i + 1, most_bytes(device)) != CUDNN_STATUS_SUCCESS)
			continue;
		n_timed++;
		if (op->choices[i].bytes > op->bytes)
			op->bytes = op->choices[i].bytes;
	}
	op->chosen = selection;
	op->is_to_be_timed = true;
}

/* cuDNN orders engines by estimated time. Fallbacks have no order: they serve operations without listed engines, for
 * example where only tensor cores are listed, and operations whose engines are refused. */
static int take_preferred(const struct psd_device *device, struct psd_cuda_dnn_op *op)
{
	int status = take_of(device, op, 0, op->n_estimated);

	if (status != CUDNN_STATUS_SUCCESS && op->n_estimated < op->n_choices)
		status = take_of(device, op, op->n_estimated, op->n_choices);
	if (status == CUDNN_STATUS_SUCCESS)
		op->bytes = op->choices[op->chosen].bytes;
	return status;
}

int psd_cuda_dnn_open_op(const struct psd_device *device, void *operation, struct psd_cuda_dnn_op *op)
{
	const struct psd_cuda_dnn_attribute attributes[] = {
		{CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operation},
		{CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &device->dnn}};
	int status = psd_cuda_dnn_build(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, attributes, device->dnn ? 2 : 1,
					&op->graph);

	if (status == CUDNN_STATUS_SUCCESS)
		status = list(device, CUDNN_HEUR_MODE_A, op);
	op->n_estimated = op->n_choices;
	if (status == CUDNN_STATUS_SUCCESS)
		status = list(device, CUDNN_HEUR_MODE_FALLBACK, op);
	if (op->n_choices > 0 || status == CUDNN_STATUS_SUCCESS)
		status = take_preferred(device, op);
	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	if (device->options.may_differ)
		enlist(device, op);
	keep_few(op);
	return status;
}

void psd_cuda_dnn_close_op(struct psd_cuda_dnn_op *op)
{
	for (int i = 0; i < op->n_choices; i++) {
		end_plan(&op->choices[i]);
		psd_cuda_dnn_destroy(op->choices[i].config);
	}
	psd_cuda_dnn_destroy(op->graph);
	*op = {};
}

/* ---- carrying out ---- */

static int execute(const struct psd_device *device, cudnnBackendDescriptor_t plan, void *const *data)
{
	static const int64_t ids[PSD_CUDA_DNN_TENSORS] = {1, 2, 3};
	const struct psd_cuda_dnn_attribute attributes[] = {
		{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, PSD_CUDA_DNN_TENSORS, ids},
		{CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, PSD_CUDA_DNN_TENSORS, data},
		{CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &device->workspace}};
	cudnnBackendDescriptor_t pack;
	int status = psd_cuda_dnn_build(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, attributes, 3, &pack);

	if (status == CUDNN_STATUS_SUCCESS)
		status = cudnnBackendExecute(device->dnn, plan, pack);
	psd_cuda_dnn_destroy(pack);
	return status;
}

struct stopwatch {
	cudaEvent_t start, end;
};

/* Context of timing a plan. */
struct trial {
	const struct psd_device *device;
	struct stopwatch watch;
	void *const *data;
	bool has_ended; /* CUDA can no longer measure: the GPU or its context is lost */
};

/* Time of n executions; FLT_MAX if the plan fails. */
static float time_plan(struct trial *trial, cudnnBackendDescriptor_t plan, int repeats)
{
	cudaStream_t stream = trial->device->streams[PSD_STREAM_COMPUTE];
	int status = CUDNN_STATUS_SUCCESS;
	float msec = 0;

	trial->has_ended = trial->has_ended || cudaEventRecord(trial->watch.start, stream) != cudaSuccess;
	for (int i = 0; i < repeats && status == CUDNN_STATUS_SUCCESS && !trial->has_ended; i++)
		status = execute(trial->device, plan, trial->data);
	trial->has_ended = trial->has_ended || cudaEventRecord(trial->watch.end, stream) != cudaSuccess ||
			   cudaEventSynchronize(trial->watch.end) != cudaSuccess ||
			   cudaEventElapsedTime(&msec, trial->watch.start, trial->watch.end) != cudaSuccess;
	return trial->has_ended || status != CUDNN_STATUS_SUCCESS ? FLT_MAX : msec;
}

/* The first execution loads the plan's code and is not counted. A plan far slower than the best one is not repeated. */
static float time_choice(struct trial *trial, cudnnBackendDescriptor_t plan, float best_msec)
{
	float msec = time_plan(trial, plan, 1);

	if (msec < FLT_MAX)
		msec = time_plan(trial, plan, 1);
	return msec < 2 * best_msec ? time_plan(trial, plan, TIMED_REPEATS) / TIMED_REPEATS : FLT_MAX;
}

/* Chooses the fastest listed plan and keeps only that one. */
static int time_choices(struct trial *trial, struct psd_cuda_dnn_op *op)
{
	float best_msec = FLT_MAX / 2;

	for (int i = 0; i < op->n_choices; i++) {
		const struct psd_cuda_dnn_choice *choice = &op->choices[i];

		if (!choice->plan || choice->bytes > op->bytes)
			continue;
		const float msec = time_choice(trial, choice->plan, best_msec);

		if (msec < best_msec) {
			best_msec = msec;
			op->chosen = i;
		}
	}
	for (int i = 0; i < op->n_choices; i++)
		if (i != op->chosen)
			end_plan(&op->choices[i]);
	keep_few(op);
	return trial->has_ended ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

static int choose_by_time(const struct psd_device *device, struct psd_cuda_dnn_op *op, void *const *data)
{
	struct trial trial = {device, {}, data, false};
	int status = CUDNN_STATUS_EXECUTION_FAILED;

	if (cudaEventCreate(&trial.watch.start) == cudaSuccess && cudaEventCreate(&trial.watch.end) == cudaSuccess)
		status = time_choices(&trial, op);
	if (trial.watch.start)
		(void)cudaEventDestroy(trial.watch.start);
	if (trial.watch.end)
		(void)cudaEventDestroy(trial.watch.end);
	op->is_to_be_timed = false;
	return status;
}

int psd_cuda_dnn_run_op(const struct psd_device *device, struct psd_cuda_dnn_op *op,
			void *const data[PSD_CUDA_DNN_TENSORS], int made, void *aside)
{
	void *trial[PSD_CUDA_DNN_TENSORS];
	int status = CUDNN_STATUS_SUCCESS;

	memcpy(trial, data, sizeof(trial));
	if (aside)
		trial[made] = aside;
	if (op->is_to_be_timed)
		status = choose_by_time(device, op, trial);
	if (status == CUDNN_STATUS_SUCCESS)
		status = execute(device, op->choices[op->chosen].plan, data);
	while (psd_cuda_dnn_refuses(status) &&
	       take_first(device, op, op->chosen + 1, op->n_choices, op->bytes) == CUDNN_STATUS_SUCCESS)
		status = execute(device, op->choices[op->chosen].plan, data);
	return status;
}
