/* What convolution and batch norm on cuDNN share. A status is one of cuDNN's. */
#ifndef PSD_CUDA_DNN_H
#define PSD_CUDA_DNN_H

#include "real/device/cuda/cuda.h"

/* Whether it is what was asked for that is refused, which another way of asking may avoid; no fault of the machine. */
bool psd_cuda_dnn_refuses(int status);
/* what: "convolution". PSD_EINVAL: cuDNN has none for the layer's shape; PSD_ERUN. */
enum psd_status psd_cuda_dnn_check(const struct psd_cuda_layer *layer, int status, const char *what,
				   struct psd_error *err) PSD_MUST_CHECK;

int psd_cuda_dnn_type_of(const struct psd_device *device); /* cuDNN's, of blobs */

/* Not all that cuDNN has adds to what is there: what is to be added to another's gradient may be made aside, behind so
 * much of the workspace, and a kernel adds it to the input's gradient. want: room for it, where another reads the
 * input, too. at: where in the workspace. add: PSD_ERUN. */
void psd_cuda_dnn_want_aside(const struct psd_cuda_layer *layer, uint64_t workspace_bytes);
uint64_t psd_cuda_dnn_aside_at_bytes(uint64_t workspace_bytes);
enum psd_status psd_cuda_dnn_add_aside(const struct psd_cuda_layer *layer, void *aside,
				       struct psd_error *err) PSD_MUST_CHECK;

#endif
