/* cuDNN's handle and errors. It computes convolution and batch norm. Pooling, response normalisation, element-wise
 * functions, softmax and dropout are psd's kernels, because cuDNN differs in windows beyond the padding, squares of
 * positions, ties and masks. */
#include <cudnn.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "real/device/cuda/dnn.h"
}

static const struct psd_place nowhere = {NULL, 0, 0};

enum { REASON_ROOM = 160 };

/* First line of cuDNN's last message after ": ", or nothing. */
static const char *reason_of(char room[REASON_ROOM])
{
	room[0] = ':', room[1] = ' ', room[2] = '\0';
	cudnnGetLastErrorString(room + 2, REASON_ROOM - 2);
	room[REASON_ROOM - 1] = '\0';
	room[strcspn(room, "\r\n")] = '\0';
	return room[2] ? room : "";
}

enum psd_status psd_gpu_start_dnn(struct psd_device *device, struct psd_error *err)
{
	cudnnStatus_t status = cudnnCreate(&device->dnn);
	char room[REASON_ROOM];

	if (status == CUDNN_STATUS_SUCCESS)
		status = cudnnSetStream(device->dnn, device->streams[PSD_STREAM_COMPUTE]);
	if (status == CUDNN_STATUS_SUCCESS)
		return PSD_OK;
	return psd_error_set(err, PSD_ERUN, nowhere, "cuDNN does not start on %s (%s%s)", device->name,
			     cudnnGetErrorString(status), reason_of(room));
}

void psd_gpu_stop_dnn(struct psd_device *device)
{
	if (device->dnn)
		(void)cudnnDestroy(device->dnn);
}

bool psd_cuda_dnn_refuses(int status)
{
	return status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000 || status / 1000 == CUDNN_STATUS_BAD_PARAM / 1000;
}

enum psd_status psd_cuda_dnn_check(const struct psd_gpu_layer *layer, int status, const char *what,
				   struct psd_error *err)
{
	const struct psd_layer *model = layer->model;
	char room[REASON_ROOM];

	if (status == CUDNN_STATUS_SUCCESS)
		return PSD_OK;
	return psd_error_set(err, psd_cuda_dnn_refuses(status) ? PSD_EINVAL : PSD_ERUN, nowhere,
			     psd_cuda_dnn_refuses(status) ? "layer '%.80s' (%s): cuDNN has no %s for its shape (%s%s)"
							  : "layer '%.80s' (%s): cuDNN failed in its %s (%s%s)",
			     model->name, model->kind->name, what, cudnnGetErrorString((cudnnStatus_t)status),
			     reason_of(room));
}

int psd_cuda_dnn_type_of(const struct psd_device *device)
{
	switch (device->type) {
	case PSD_GPU_FLOAT: return CUDNN_DATA_FLOAT;
	case PSD_GPU_HALF: return CUDNN_DATA_HALF;
	case PSD_GPU_BFLOAT: return CUDNN_DATA_BFLOAT16;
	}
	return CUDNN_DATA_FLOAT;
}

/* ---- aside ---- */

uint64_t psd_cuda_dnn_aside_at_bytes(uint64_t workspace_bytes)
{
	return (workspace_bytes + 255) / 256 * 256;
}

void psd_cuda_dnn_want_aside(const struct psd_gpu_layer *layer, uint64_t workspace_bytes)
{
	if (psd_gpu_input(layer, 0)->has_diff && psd_gpu_below(layer, 0)->n_readers > 1)
		psd_gpu_want_workspace(layer->device,
				       psd_cuda_dnn_aside_at_bytes(workspace_bytes) + psd_gpu_input(layer, 0)->bytes);
}

enum psd_status psd_cuda_dnn_add_aside(const struct psd_gpu_layer *layer, void *aside, struct psd_error *err)
{
	const struct psd_gpu_blob *in = psd_gpu_input(layer, 0);
	struct psd_gpu_add add = {};

	add.left = add.right = add.to = psd_gpu_diff(layer, in);
	add.right.data = aside;
	return psd_gpu_run_add(layer->device, &add, in->elements, err);
}
