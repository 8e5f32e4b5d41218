#include "real/device/gpu/gpu.h"

enum psd_status psd_gpu_no_memory(struct psd_error *err)
{
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for the list of the network's allocations");
}
