/* Seconds of compute, forward and backward of each layer for one worker's batch, from a measured profile or a named
 * device. */
#ifndef PSD_COSTS_H
#define PSD_COSTS_H

#include <stdbool.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"
#include "engine/scenario/device.h"

/* Origin of the seconds of layers; results mark a model's seconds and scaled measurements. */
enum psd_costs_source { PSD_COSTS_MODEL, PSD_COSTS_SCALED, PSD_COSTS_MEASURED, PSD_COSTS_SOURCES };
extern const char *const
	psd_costs_source_names[PSD_COSTS_SOURCES + 1]; /* "model", "scaled", "measured", NULL, as in a profile's head */

struct psd_costs {
	double *forward_sec;  /* forward seconds of each of n_layers layers, for the whole batch of one worker */
	double *backward_sec; /* backward seconds of each of n_layers layers, gradients of parameters included */
	unsigned n_layers;
	double compute_sec;	   /* sum over all layers, forward and backward */
	double gemm_flops_per_sec; /* rate at which a gradient is rebuilt from other workers' factors */
	bool has_own_memory;	   /* the device has its own memory: tensors are copied between it and its host */
	enum psd_costs_source source;
};

/* Computes costs from a device. batch >= 1. samples_per_sec > 0 scales all layers by one factor so that batch /
 * compute_sec equals it, 0 keeps the model's seconds. The device must have the precision. PSD_EINVAL, PSD_ENOMEM. */
enum psd_status psd_costs_from_device(struct psd_costs *costs, const struct psd_graph *graph,
				      const struct psd_device_row *device, unsigned batch, enum psd_precision precision,
				      double samples_per_sec, struct psd_error *err) PSD_MUST_CHECK;
/* Throughput of one worker, samples per second, if the model's FLOPs reach this share of the device's peak. The device
 * must have the precision. Pure. */
double psd_costs_mfu_rate(const struct psd_graph *graph, const struct psd_device_row *device,
			  enum psd_precision precision, double mfu_ratio);
/* Reads costs from a profile CSV (format in traces/profiles/README.md), which must have every layer of the graph except
 * inputs, and no other. Seconds scale linearly from the profile's batch to this one; samples_per_sec as above.
 * PSD_EFILE, PSD_EINVAL with a place, PSD_ENOMEM. */
enum psd_status psd_costs_from_profile(struct psd_costs *costs, const struct psd_graph *graph, const char *path,
				       unsigned batch, double samples_per_sec, struct psd_error *err) PSD_MUST_CHECK;
void psd_costs_release(struct psd_costs *costs);

/* ---- for sources of costs ---- */

/* Allocates zeros for the graph's layers; released by psd_costs_release(). PSD_ENOMEM. */
enum psd_status psd_costs_init(struct psd_costs *costs, const struct psd_graph *graph,
			       struct psd_error *err) PSD_MUST_CHECK;
/* Scales all layers so that batch / compute_sec equals samples_per_sec (0: no scaling), and sums them up. PSD_EINVAL at
 * `at`: the layers take no time. */
enum psd_status psd_costs_settle(struct psd_costs *costs, struct psd_place at, unsigned batch, double samples_per_sec,
				 struct psd_error *err) PSD_MUST_CHECK;

#endif
