/* Kernels: work on parameters, gradients and compressed values, which depends on no network. Each kernel is a row of
 * PSD_KERNELS, with a function that computes on the host's processor. A device with its own memory has functions of its
 * own for them. A kernel that a device lacks is refused by name, where it is needed. */
#ifndef PSD_REAL_KERNELS_H
#define PSD_REAL_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/encodings/encoding.h"
#include "real/device/chunks.h"
#include "real/device/low_rank.h"
#include "real/device/packing.h"
#include "real/device/update.h"

struct psd_device;

/* Update of a tensor or a part of one: first psd_update_by_norms(), then psd_update_apply(). */
struct psd_apply {
	struct psd_update update;
	float *weight;
	const float *gradient;
	struct psd_moments moments;
	uint64_t elements;
	/* sums of squares of the whole tensor; NULL: `weight` and `gradient` are the whole tensor */
	const double *weight_square, *gradient_square;
};

/* Conversion between sums of squares and the floats in which they are sent. */
struct psd_squares {
	double *squares;
	float *sent;
	uint32_t n;
	bool is_back; /* converts `sent` to `squares`; false: `squares` to `sent` */
	/* factor by which the values are multiplied whose squares come back; NULL: 1 */
	const float *ratio;
};

/* Sum of the squares of values, as psd_clip_measure(). */
struct psd_measure {
	const float *values;
	uint64_t elements;
	double *square; /* result */
};

/* Multiplication by the factor *ratio, as psd_clip_shrink(). */
struct psd_shrink {
	float *values;
	uint64_t elements;
	const float *ratio;
};

/* Sum to[i] += from[i]. */
struct psd_add {
	float *to;
	const float *from;
	uint64_t elements;
};

/* Conversion to[i] = ratio * from[i], either from float to a lossy encoding or from the encoding to float, as
 * psd_values_encode() or psd_values_decode(). */
struct psd_conversion {
	const struct psd_encoding *encoding;
	void *to;
	const void *from;
	uint64_t elements;
	float ratio;
	bool is_decoding; /* decode `from`; false: encode it */
};

/* Overwrites all encoded values by NaN, if one of them is infinite or NaN, or if is_forced is true. So one overflow on
 * one worker makes the whole sum invalid on all workers. */
struct psd_spoil {
	const struct psd_encoding *encoding;
	uint16_t *values;
	uint64_t elements;
	bool is_forced;
};

/* Kernels: name, struct with the arguments, and name in texts. All arrays are in the device's memory. Results of `pack`
 * and `unpack` have equal bits on all devices, except for the bits of NaNs. */
#define PSD_KERNELS(ROW)                                                                                               \
	ROW(apply, psd_apply, "apply")                                                                                 \
	ROW(send_squares, psd_squares, "send squares")                                                                 \
	ROW(measure, psd_measure, "measure")                                                                           \
	ROW(find_clip, psd_clip, "clip")                                                                               \
	ROW(shrink, psd_shrink, "shrink")                                                                              \
	ROW(drift, psd_drift, "drift")                                                                                 \
	ROW(add, psd_add, "add")                                                                                       \
	ROW(convert, psd_conversion, "convert")                                                                        \
	ROW(spoil, psd_spoil, "spoil")                                                                                 \
	ROW(gather, psd_chunks, "gather")                                                                              \
	ROW(apply_chunks, psd_chunks, "apply chunks")                                                                  \
	ROW(pack, psd_packing, "pack")                                                                                 \
	ROW(unpack, psd_packing, "unpack")                                                                             \
	ROW(project, psd_low_rank_work, "project")                                                                     \
	ROW(fit, psd_low_rank_work, "fit")                                                                             \
	ROW(expand, psd_low_rank_work, "expand")

/* Functions of a kind of device; NULL: the device lacks the kernel. On an asynchronous device they return before the
 * work has ended, and until then the caller must not change the arrays; *of itself is copied. PSD_ERUN: the device has
 * failed. */
#define PSD_KERNEL_FUNCTION(name, arguments, text)                                                                     \
	enum psd_status (*name)(struct psd_device * device, const struct arguments *of, struct psd_error *err);
struct psd_kernels {
	PSD_KERNELS(PSD_KERNEL_FUNCTION)
};

/* Kernels that the host's processor executes, for values in the host's memory. The functions do not use the device. */
extern const struct psd_kernels psd_kernels_here;

/* psd_run_NAME() begins a kernel. PSD_EINVAL: the device lacks it, and the text has its name; statuses of the
 * kernel. */
#define PSD_KERNEL_RUN(name, arguments, text)                                                                          \
	enum psd_status psd_run_##name(const struct psd_kernels *kernels, struct psd_device *device,                   \
				       const struct arguments *of, struct psd_error *err) PSD_MUST_CHECK;
PSD_KERNELS(PSD_KERNEL_RUN)

#endif
