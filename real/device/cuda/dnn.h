/* Functions that convolution and batch norm on cuDNN share: cuDNN's graph API, and the choice of its engines.
 * Descriptors are cuDNN's objects. Attribute names, types, kinds and statuses are cuDNN's numbers. Private to
 * dnn*.cu. */
#ifndef PSD_CUDA_DNN_H
#define PSD_CUDA_DNN_H

#include "real/device/gpu/gpu.h"

/* True if the status means that cuDNN does not support this request; then another request may succeed. False if the GPU
 * or the library has failed. */
bool psd_cuda_dnn_refuses(int status);
/* Converts cuDNN's status to PSD_OK, PSD_EINVAL (cuDNN does not support this operation for the layer's shape) or
 * PSD_ERUN. what: name of the operation for error messages, such as "convolution". */
enum psd_status psd_cuda_dnn_check(const struct psd_gpu_layer *layer, int status, const char *what,
				   struct psd_error *err) PSD_MUST_CHECK;

int psd_cuda_dnn_type_of(
	const struct psd_device *device); /* cuDNN's constant (cudnnDataType_t) for the number format of the blobs */

/* Some cuDNN operations cannot add to their output. If several layers read an input, such an operation writes its
 * gradient of the input to separate memory, after the operation's workspace, and a kernel adds it. This function
 * requests the separate memory if it is needed. workspace_bytes: bytes of the operation's workspace. */
void psd_cuda_dnn_want_aside(const struct psd_gpu_layer *layer, uint64_t workspace_bytes);
/* Returns the offset of that separate memory in the device's workspace. The first workspace_bytes bytes are the
 * workspace of the operation itself. */
uint64_t psd_cuda_dnn_aside_at_bytes(uint64_t workspace_bytes);
/* Begins to add the gradient in the separate memory `aside` to the gradient of the layer's first input. PSD_ERUN. */
enum psd_status psd_cuda_dnn_add_aside(const struct psd_gpu_layer *layer, void *aside,
				       struct psd_error *err) PSD_MUST_CHECK;

/* ---- graph API (dnn_graph.cu) ---- */

/* Attribute of a cuDNN descriptor: n values of cuDNN's type `type`. */
struct psd_cuda_dnn_attribute {
	int name, type;
	int64_t n;
	const void *values;
};

/* Creates a descriptor of this kind with these attributes and finalises it. Returns cuDNN's status; after a failure
 * *built is NULL. */
int psd_cuda_dnn_build(int kind, const struct psd_cuda_dnn_attribute *attributes, int n_attributes, void **built);
/* Destroys a descriptor; NULL is allowed. */
void psd_cuda_dnn_destroy(void *built);

enum {
	PSD_CUDA_DNN_TENSORS = 3, /* number of tensors of an operation; their ids in cuDNN's graph are 1, 2, 3 */
	/* Largest number of engines for an operation. cuDNN lists at most 40 by estimated time, and some fallbacks. */
	PSD_CUDA_DNN_MOST_CHOICES = 80
};

/* Engine of cuDNN that can execute an operation. */
struct psd_cuda_dnn_choice {
	void *config; /* descriptor of the engine with its settings */
	/* Descriptor of the execution plan for the engine; NULL: not made yet, or cuDNN does not support it. */
	void *plan;
	uint64_t bytes; /* workspace bytes of the plan */
};

/* Operation of cuDNN, with the engines that can execute it; the first engine is preferred. All zeros: closed. */
struct psd_cuda_dnn_op {
	void *graph; /* descriptor of cuDNN's graph with this one operation */
	struct psd_cuda_dnn_choice choices[PSD_CUDA_DNN_MOST_CHOICES];
	int n_choices;
	/* number of entries of `choices` that cuDNN has sorted by estimated time; the entries after them are fallbacks
	 * */
	int n_estimated;
	int chosen;	/* index, in `choices`, of the engine in use */
	uint64_t bytes; /* bytes of the workspace that is available to the operation */
	/* the next call of psd_cuda_dnn_run_op() executes several engines (their plans) to find the fastest */
	bool is_to_be_timed;
};

/* Lists the engines for the descriptor `operation`, which must exist until psd_cuda_dnn_close_op(). Three kinds of
 * engines are left out: those that compute with less precision than psd_device_options.arithmetic, those whose results
 * differ in some bits from run to run (unless may_differ), and those that need a compiler at run time. Returns cuDNN's
 * status; CUDNN_STATUS_NOT_SUPPORTED: no engine is left. */
int psd_cuda_dnn_open_op(const struct psd_device *device, void *operation, struct psd_cuda_dnn_op *op);
/* Begins an operation on the compute stream, and returns cuDNN's status. data: addresses of its tensors, in the order
 * of their ids; data[made] is the output. If cuDNN does not support a plan, the next one is used. With may_differ, the
 * first call executes several plans to find the fastest. Each of them overwrites data[made], or the memory at `aside`
 * if that is not NULL. */
int psd_cuda_dnn_run_op(const struct psd_device *device, struct psd_cuda_dnn_op *op,
			void *const data[PSD_CUDA_DNN_TENSORS], int made, void *aside);
void psd_cuda_dnn_close_op(struct psd_cuda_dnn_op *op);

#endif
