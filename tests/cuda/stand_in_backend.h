/* Descriptions of cuDNN's graph API as the stand-in keeps them: one convolution, from its tensors to the plan that
 * executes it. Each holds copies of its children, as cuDNN's do: the children may be destroyed. Private to
 * stand_in_backend.c and stand_in_conv.c. */
#ifndef PSD_TESTS_CUDA_STAND_IN_BACKEND_H
#define PSD_TESTS_CUDA_STAND_IN_BACKEND_H

#include "tests/cuda/stand_in_dnn.h"

struct psd_stand_in_described {
	cudnnDataType_t type;
	int64_t sizes[4], strides[4], id, alignment_bytes;
	struct psd_stand_in_layout layout; /* once it is finalised: all but id and alignment */
};

/* Two axes each: rows, columns. */
struct psd_stand_in_how {
	cudnnDataType_t type; /* type of the sums */
	cudnnConvolutionMode_t mode;
	int64_t axes, strides[2], pads[2], end_pads[2], dilations[2];
};

/* The tensor that is computed from the other two. */
enum psd_stand_in_direction { PSD_STAND_IN_TO_OUTPUT, PSD_STAND_IN_TO_DATA, PSD_STAND_IN_TO_FILTER };

struct psd_stand_in_conv {
	enum psd_stand_in_direction direction;
	struct psd_stand_in_how how;
	struct psd_stand_in_described x, w, y; /* data, filter, output, or their gradients */
	float alpha, beta;
};

struct psd_stand_in_graph {
	cudnnHandle_t handle;
	struct psd_stand_in_conv conv;
};

/* Step at which cuDNN refuses an engine that it has listed. */
enum psd_stand_in_refusal { PSD_STAND_IN_NEVER, PSD_STAND_IN_PLANNED, PSD_STAND_IN_BEGUN };

struct psd_stand_in_engine {
	int64_t index;
	unsigned notes;	     /* numerical ones: a bit for each cudnnBackendNumericalNote_t */
	unsigned behaviours; /* a bit for each cudnnBackendBehaviorNote_t */
	bool has_workspace;
	bool adds_floats_alone; /* for other types beta must be 0 */
	enum psd_stand_in_refusal refusal;
};

enum { PSD_STAND_IN_MOST_ENGINES = 8, PSD_STAND_IN_MOST_POINTERS = 8 };

struct psd_stand_in_heuristics {
	struct psd_stand_in_graph graph;
	cudnnBackendHeurMode_t mode;
	struct psd_stand_in_engine engines[PSD_STAND_IN_MOST_ENGINES];
	int n_engines, n_fetched;
};

struct psd_stand_in_config {
	struct psd_stand_in_conv conv;
	struct psd_stand_in_engine engine;
};

struct psd_stand_in_plan {
	cudnnHandle_t handle;
	struct psd_stand_in_config config;
	int device;
	int64_t workspace_bytes;
};

struct psd_stand_in_pack {
	int64_t ids[PSD_STAND_IN_MOST_POINTERS];
	void *pointers[PSD_STAND_IN_MOST_POINTERS];
	int64_t n_ids, n_pointers;
	void *workspace;
};

/* CUDNN_STATUS_BAD_PARAM: the three tensors do not fit. */
cudnnStatus_t psd_stand_in_check_conv(const struct psd_stand_in_conv *conv);
/* Engines that cuDNN has for the convolution, the preferred one first; `listed` has room for the most. */
int psd_stand_in_list_engines(const struct psd_stand_in_conv *conv, cudnnBackendHeurMode_t mode,
			      struct psd_stand_in_engine *listed);
/* Whether the engine supports it, and with how many bytes of workspace. */
cudnnStatus_t psd_stand_in_plan_conv(const struct psd_stand_in_config *config, int64_t *workspace_bytes);
/* Queues it; begins and ends the call of `function`. */
cudnnStatus_t psd_stand_in_convolve(const char *function, cudnnHandle_t handle, const struct psd_stand_in_plan *plan,
				    const struct psd_stand_in_pack *pack);

#endif
