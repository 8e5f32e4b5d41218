#include "real/device/kernels.h"

#include <math.h>

#include "real/base/values.h"

/* ---- on the processor ---- */

static void apply(const struct psd_apply *of)
{
	const struct psd_update own =
		of->gradient_square ? psd_update_by_squares(of->update, *of->weight_square, *of->gradient_square)
				    : psd_update_by_norms(of->update, of->weight, of->gradient, of->elements);

	psd_update_apply(&own, of->weight, of->gradient, of->moments, of->elements);
}

static void send_squares(const struct psd_squares *of)
{
	const double ratio = of->ratio ? *of->ratio : 1.0;

	for (uint32_t i = 0; i < of->n; i++) {
		if (of->is_back)
			of->squares[i] = ratio * ratio * of->sent[i];
		else
			of->sent[i] = (float)of->squares[i];
	}
}

static void measure(const struct psd_measure *of)
{
	*of->square = psd_clip_measure(of->values, of->elements);
}

static void shrink(const struct psd_shrink *of)
{
	psd_clip_shrink(of->values, of->elements, *of->ratio);
}

static void add(const struct psd_add *of)
{
	psd_values_add(&psd_encoding_fp32, of->to, of->from, of->elements);
}

static void convert(const struct psd_conversion *of)
{
	if (of->is_decoding)
		psd_values_decode(of->encoding, of->to, of->from, of->ratio, of->elements);
	else
		psd_values_encode(of->encoding, of->to, of->from, of->ratio, of->elements);
}

static void spoil(const struct psd_spoil *of)
{
	if (!of->is_forced && psd_values_are_finite(of->encoding, of->values, of->elements))
		return;
	for (uint64_t e = 0; e < of->elements; e++)
		of->values[e] = of->encoding->encode(NAN);
}

/* Kernels that cannot fail, and those that can. */
#define HERE(name, arguments, function)                                                                                \
	static enum psd_status name##_here(struct psd_device *device, const struct arguments *of,                      \
					   struct psd_error *err)                                                      \
	{                                                                                                              \
		(void)device, (void)err;                                                                               \
		function(of);                                                                                          \
		return PSD_OK;                                                                                         \
	}
#define FALLIBLE_HERE(name, arguments, function)                                                                       \
	static enum psd_status name##_here(struct psd_device *device, const struct arguments *of,                      \
					   struct psd_error *err)                                                      \
	{                                                                                                              \
		(void)device;                                                                                          \
		return function(of, err);                                                                              \
	}

HERE(apply, psd_apply, apply)
HERE(send_squares, psd_squares, send_squares)
HERE(measure, psd_measure, measure)
HERE(find_clip, psd_clip, psd_clip_find)
HERE(shrink, psd_shrink, shrink)
HERE(drift, psd_drift, psd_drift_take_step)
HERE(add, psd_add, add)
HERE(convert, psd_conversion, convert)
HERE(spoil, psd_spoil, spoil)
HERE(gather, psd_chunks, psd_chunks_gather)
HERE(apply_chunks, psd_chunks, psd_chunks_apply)
HERE(pack, psd_packing, psd_packing_pack)
HERE(unpack, psd_packing, psd_packing_unpack)
FALLIBLE_HERE(project, psd_low_rank_work, psd_low_rank_project)
FALLIBLE_HERE(fit, psd_low_rank_work, psd_low_rank_fit)
FALLIBLE_HERE(expand, psd_low_rank_work, psd_low_rank_expand)

#define SLOT(name, arguments, text) .name = name##_here,
const struct psd_kernels psd_kernels_here = {PSD_KERNELS(SLOT)};

/* ---- on any device ---- */

#define RUN(name, arguments, text)                                                                                     \
	enum psd_status psd_run_##name(const struct psd_kernels *kernels, struct psd_device *device,                   \
				       const struct arguments *of, struct psd_error *err)                              \
	{                                                                                                              \
		return kernels->name ? kernels->name(device, of, err)                                                  \
				     : psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,                                     \
						     "the device has no '" text "', needs 'device: cpu' in 'train'");  \
	}
PSD_KERNELS(RUN)
