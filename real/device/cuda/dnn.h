/* Shared by convolution and batch norm on cuDNN, and cuDNN's graph API with its engines' plans. Descriptors, names,
 * types, kinds and statuses are cuDNN's. Private to dnn*.cu. */
#ifndef PSD_CUDA_DNN_H
#define PSD_CUDA_DNN_H

#include "real/device/cuda/cuda.h"

/* True if cuDNN refuses this request, so another one may succeed; false for errors of the machine. */
bool psd_cuda_dnn_refuses(int status);
/* Converts cuDNN's status; `what` is a name such as "convolution". PSD_EINVAL: cuDNN has none for the layer's shape;
 * PSD_ERUN. */
enum psd_status psd_cuda_dnn_check(const struct psd_cuda_layer *layer, int status, const char *what,
				   struct psd_error *err) PSD_MUST_CHECK;

int psd_cuda_dnn_type_of(const struct psd_device *device); /* number by which cuDNN names the blobs' type */

/* Some cuDNN operations cannot add to their output. Then a gradient that must be added to another reader's is computed
 * aside, behind `offset` bytes of the workspace, and a kernel adds it. want: requests the memory, if the input has
 * other readers. at: its address. add: PSD_ERUN. */
void psd_cuda_dnn_want_aside(const struct psd_cuda_layer *layer, uint64_t workspace_bytes);
uint64_t psd_cuda_dnn_aside_at_bytes(uint64_t workspace_bytes);
enum psd_status psd_cuda_dnn_add_aside(const struct psd_cuda_layer *layer, void *aside,
				       struct psd_error *err) PSD_MUST_CHECK;

/* ---- graph API (dnn_graph.cu) ---- */

struct psd_cuda_dnn_attribute {
	int name, type;
	int64_t n;
	const void *values;
};

/* Makes a finalised descriptor with these attributes; *built is NULL after a failure. destroy accepts NULL. */
int psd_cuda_dnn_build(int kind, const struct psd_cuda_dnn_attribute *attributes, int n_attributes, void **built);
void psd_cuda_dnn_destroy(void *built);

enum {
	PSD_CUDA_DNN_TENSORS = 3,      /* number of tensors of an operation; their unique ids are 1, 2, 3 */
	PSD_CUDA_DNN_MOST_CHOICES = 80 /* cuDNN lists at most 40 engines for an operation, and a few fallbacks */
};

struct psd_cuda_dnn_choice {
	void *config;	/* engine of cuDNN with its settings */
	void *plan;	/* plan for the engine; NULL: not made yet, or refused by cuDNN */
	uint64_t bytes; /* workspace bytes of the plan */
};

/* One operation with the plans that can execute it, the preferred one first. All zeros: closed. */
struct psd_cuda_dnn_op {
	void *graph;
	struct psd_cuda_dnn_choice choices[PSD_CUDA_DNN_MOST_CHOICES];
	int n_choices;
	int n_estimated; /* number of choices in cuDNN's list by estimated time; fallbacks follow */
	int chosen;
	uint64_t bytes; /* bytes of the available workspace */
	bool is_to_be_timed;
};

/* Lists the engines for `operation`, which must live until close. Leaves out engines with less precision than the
 * device's arithmetic, engines whose bits vary (unless may_differ) and engines that need a compiler.
 * CUDNN_STATUS_NOT_SUPPORTED: there is none. */
int psd_cuda_dnn_open_op(const struct psd_device *device, void *operation, struct psd_cuda_dnn_op *op);
/* Begins an operation on the compute stream. data: its tensors, in the order of their ids. If cuDNN refuses a plan
 * after all, the next one is used. If may_differ, the first call executes several plans and keeps the fastest: it
 * overwrites data[made] meanwhile, or `aside` unless that is NULL. */
int psd_cuda_dnn_run_op(const struct psd_device *device, struct psd_cuda_dnn_op *op,
			void *const data[PSD_CUDA_DNN_TENSORS], int made, void *aside);
void psd_cuda_dnn_close_op(struct psd_cuda_dnn_op *op);

#endif
