/* Functions of psd_device_kind that update, convert and compress values, for devices that work in the host's memory. */
#include <math.h>

#include "real/base/values.h"
#include "real/device/device.h"

enum psd_status psd_device_apply_here(struct psd_device *device, const struct psd_update *update, float *weight,
				      const float *gradient, struct psd_moments moments, uint64_t elements,
				      struct psd_error *err)
{
	const struct psd_update own = psd_update_by_norms(*update, weight, gradient, elements);

	(void)device, (void)err;
	psd_update_apply(&own, weight, gradient, moments, elements);
	return PSD_OK;
}

enum psd_status psd_device_measure_here(struct psd_device *device, const float *values, uint64_t elements,
					double *square, struct psd_error *err)
{
	(void)device, (void)err;
	*square = psd_clip_measure(values, elements);
	return PSD_OK;
}

enum psd_status psd_device_shrink_here(struct psd_device *device, float *values, uint64_t elements, const float *ratio,
				       struct psd_error *err)
{
	(void)device, (void)err;
	psd_clip_shrink(values, elements, *ratio);
	return PSD_OK;
}

enum psd_status psd_device_convert_here(struct psd_device *device, const struct psd_conversion *conversion,
					struct psd_error *err)
{
	const struct psd_conversion *of = conversion;

	(void)device, (void)err;
	if (of->is_decoding)
		psd_values_decode(of->encoding, of->to, of->from, of->ratio, of->elements);
	else
		psd_values_encode(of->encoding, of->to, of->from, of->ratio, of->elements);
	return PSD_OK;
}

enum psd_status psd_device_spoil_here(struct psd_device *device, const struct psd_encoding *encoding, uint16_t *values,
				      uint64_t elements, bool is_forced, struct psd_error *err)
{
	(void)device, (void)err;
	if (!is_forced && psd_values_are_finite(encoding, values, elements))
		return PSD_OK;
	for (uint64_t e = 0; e < elements; e++)
		values[e] = encoding->encode(NAN);
	return PSD_OK;
}

/* Defines a function of psd_device_kind that only calls another function, which cannot fail. */
#define SLOT(slot, arguments, function)                                                                                \
	enum psd_status psd_device_##slot##_here(struct psd_device *device, const struct arguments *of,                \
						 struct psd_error *err)                                                \
	{                                                                                                              \
		(void)device, (void)err;                                                                               \
		function(of);                                                                                          \
		return PSD_OK;                                                                                         \
	}

SLOT(find_clip, psd_clip, psd_clip_find)
SLOT(drift, psd_drift, psd_drift_take_step)
SLOT(gather, psd_chunks, psd_chunks_gather)
SLOT(apply_chunks, psd_chunks, psd_chunks_apply)
SLOT(pack, psd_packing, psd_packing_pack)
SLOT(unpack, psd_packing, psd_packing_unpack)

#define FALLIBLE_SLOT(slot, arguments, function)                                                                       \
	enum psd_status psd_device_##slot##_here(struct psd_device *device, const struct arguments *of,                \
						 struct psd_error *err)                                                \
	{                                                                                                              \
		(void)device;                                                                                          \
		return function(of, err);                                                                              \
	}

FALLIBLE_SLOT(project, psd_low_rank_work, psd_low_rank_project)
FALLIBLE_SLOT(fit, psd_low_rank_work, psd_low_rank_fit)
FALLIBLE_SLOT(expand, psd_low_rank_work, psd_low_rank_expand)
