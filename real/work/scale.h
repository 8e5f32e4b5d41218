/* Loss scale of an item (bucket): factor by which its gradients are multiplied while they are sent in an encoding with
 * a smaller range than fp32. An overflow makes the sum infinite or NaN on every worker. So all workers skip the same
 * updates and keep equal scales, without messages about them. */
#ifndef PSD_REAL_SCALE_H
#define PSD_REAL_SCALE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/encodings/encoding.h"

enum { PSD_SCALE_PATIENCE = 2000 };
#define PSD_SCALE_START 0x1p15f

struct psd_scale {
	float ratio;
	float last_ratio; /* value of `ratio` with which the last sum was made */
	bool is_dynamic;
	bool is_skipped; /* the last sum overflowed, so its update is skipped */
	uint32_t n_good; /* number of sums without overflow since `ratio` last changed */
	uint32_t n_taken;
	/* Number of these n_taken sums that overflowed, so that their updates were skipped. */
	uint32_t n_left_out;
};

/* Makes a loss scale. loss_scale: its constant value; 0: a dynamic scale, which begins with PSD_SCALE_START. If the
 * encoding needs no loss scale, the result is always 1. */
struct psd_scale psd_scale_make(const struct psd_encoding *encoding, double loss_scale);
/* Adapts a dynamic scale after a sum. is_finite: the sum did not overflow. The scale is halved after an overflow, and
 * doubled after PSD_SCALE_PATIENCE sums without overflow. Source: Micikevicius et al., Mixed Precision Training,
 * 2018. */
void psd_scale_take(struct psd_scale *scale, bool is_finite);

#endif
