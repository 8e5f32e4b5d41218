/* Parameters on this processor. */
#include "real/device/device.h"

enum psd_status psd_device_apply_here(struct psd_device *device, const struct psd_update *update, float *weight,
				      const float *gradient, float *history, uint64_t elements, struct psd_error *err)
{
	const struct psd_update own = psd_update_by_norms(*update, weight, gradient, elements);

	(void)device, (void)err;
	psd_update_apply(&own, weight, gradient, history, elements);
	return PSD_OK;
}

enum psd_status psd_device_gather_here(struct psd_device *device, const struct psd_chunks *chunks,
				       struct psd_error *err)
{
	(void)device, (void)err;
	psd_chunks_gather(chunks);
	return PSD_OK;
}

enum psd_status psd_device_apply_chunks_here(struct psd_device *device, const struct psd_chunks *chunks,
					     struct psd_error *err)
{
	(void)device, (void)err;
	psd_chunks_apply(chunks);
	return PSD_OK;
}
