/* Operations of cuDNN's graphs and the plans of engines that carry them out. Descriptors, names, types, kinds and
 * statuses are cuDNN's. Private to dnn*.cu. */
#ifndef PSD_CUDA_DNN_GRAPH_H
#define PSD_CUDA_DNN_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "real/device/cuda/cuda.h"

struct psd_cuda_dnn_attribute {
	int name, type;
	int64_t n;
	const void *values;
};

/* A descriptor with these attributes, finished; *built is NULL after a failure. destroy takes NULL. */
int psd_cuda_dnn_build(int kind, const struct psd_cuda_dnn_attribute *attributes, int n_attributes, void **built);
void psd_cuda_dnn_destroy(void *built);

enum {
	PSD_CUDA_DNN_TENSORS = 3,      /* of an operation: their unique ids are 1, 2, 3 */
	PSD_CUDA_DNN_MOST_CHOICES = 80 /* cuDNN lists 40 or fewer for an operation, and a few more to fall back to */
};

struct psd_cuda_dnn_choice {
	void *config;	/* an engine with its settings */
	void *plan;	/* NULL: not made yet, or refused */
	uint64_t bytes; /* of workspace, once there is a plan */
};

/* One operation by the plans that may carry it out, the preferred one first. All zero: closed. */
struct psd_cuda_dnn_way {
	void *graph;
	struct psd_cuda_dnn_choice choices[PSD_CUDA_DNN_MOST_CHOICES];
	int n_choices;
	int n_estimated; /* of them on the list that goes by estimated time; the others are there to fall back to */
	int chosen;
	uint64_t bytes; /* of workspace that there is for it */
	bool is_to_be_timed;
};

/* Plans for `operation`, which lives until the way is closed. Those of engines that do not compute in less than the
 * device's arithmetic, give equal bits unless the device may differ, and need no compiler. CUDNN_STATUS_NOT_SUPPORTED:
 * there are none. */
int psd_cuda_dnn_open_way(const struct psd_device *device, void *operation, struct psd_cuda_dnn_way *way);
/* Begins it on the compute stream. data: of the tensors, in the order of their ids. A plan that cuDNN refuses after
 * all makes way for the next one. If the device may differ, it is carried out by each of some plans the first time, of
 * which the quickest stays: data[made] is written over meanwhile, or `aside` unless that is NULL. */
int psd_cuda_dnn_run_way(const struct psd_device *device, struct psd_cuda_dnn_way *way,
			 void *const data[PSD_CUDA_DNN_TENSORS], int made, void *aside);
void psd_cuda_dnn_close_way(struct psd_cuda_dnn_way *way);

#endif
