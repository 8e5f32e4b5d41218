/* Compute times of layers: seconds of the forward and backward pass of each layer, for the batch of one worker. They
 * come from a measured profile or from a named device. */
#ifndef PSD_COSTS_H
#define PSD_COSTS_H

#include <stdbool.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"
#include "engine/scenario/device.h"

/* Origin of layer times. MODEL: computed from a device's figures; SCALED: measured in a profile, then scaled;
 * MEASURED: as in the profile. Results are marked if the origin is MODEL or SCALED. */
enum psd_costs_source { PSD_COSTS_MODEL, PSD_COSTS_SCALED, PSD_COSTS_MEASURED, PSD_COSTS_SOURCES };
/* Names of the origins in the head of a profile: "model", "scaled", "measured"; NULL ends the array. */
extern const char *const psd_costs_source_names[PSD_COSTS_SOURCES + 1];

struct psd_costs {
	/* Seconds of the forward pass of each layer, n_layers entries, for the whole batch of one worker. */
	double *forward_sec;
	/* Seconds of the backward pass of each layer, n_layers entries; they include the gradients of parameters. */
	double *backward_sec;
	/* Seconds in which backward computes the layer's output again, n_layers entries; 0 where it is kept. They are
	 * not in backward_sec. */
	double *recompute_sec;
	unsigned n_layers;
	double compute_sec; /* seconds of forward, backward and recomputation, sum over all layers */
	/* Rate at which the device rebuilds gradients from factors (matrix products), FLOPs per second. If layer times
	 * are scaled to a throughput, it is scaled alike, unless a profile gives it. */
	double gemm_flops_per_sec;
	bool has_profile_gemm; /* gemm_flops_per_sec is from a profile */
	bool recomputes;       /* backward computes the blocks of the graph again */
	bool has_own_memory;   /* device and host have separate memories, so tensors are copied between them */
	/* the device that is modelled, or on which the profile was measured; NULL: it is not in the table of devices */
	const struct psd_device_row *device;
	enum psd_costs_source source;
};

/* Computes layer times from a device's figures. batch: samples of one worker, >= 1. samples_per_sec > 0: all times are
 * multiplied by one factor, and gemm_flops_per_sec divided by it, so that batch / compute_sec equals it; 0: times stay
 * as computed. The device must have the precision. PSD_EINVAL, PSD_ENOMEM. */
enum psd_status psd_costs_from_device(struct psd_costs *costs, const struct psd_graph *graph,
				      const struct psd_device_row *device, unsigned batch, enum psd_precision precision,
				      double samples_per_sec, struct psd_error *err) PSD_MUST_CHECK;
/* Returns the throughput of one worker, samples per second, if it achieves the share mfu_ratio of the device's peak,
 * counting the model's FLOPs. The device must have the precision. Pure. */
double psd_costs_mfu_rate(const struct psd_graph *graph, const struct psd_device_row *device,
			  enum psd_precision precision, double mfu_ratio);
/* Reads layer times from a profile, a CSV file as in traces/profiles/README.md. It must have every layer of the graph
 * except inputs, and no other layer. Times are scaled from the profile's batch to `batch`, in proportion.
 * samples_per_sec: as in psd_costs_from_device(), but gemm_flops_per_sec stays the profile's. PSD_EFILE, PSD_EINVAL
 * with a place, PSD_ENOMEM. */
enum psd_status psd_costs_from_profile(struct psd_costs *costs, const struct psd_graph *graph, const char *path,
				       unsigned batch, double samples_per_sec, struct psd_error *err) PSD_MUST_CHECK;
/* Makes backward compute all blocks of the graph again. batch, samples_per_sec: the values with which *costs was made;
 * samples_per_sec is a throughput measured with recomputation. PSD_EINVAL: times are not finite. */
enum psd_status psd_costs_recompute(struct psd_costs *costs, const struct psd_graph *graph, unsigned batch,
				    double samples_per_sec, struct psd_error *err) PSD_MUST_CHECK;
void psd_costs_release(struct psd_costs *costs);

/* ---- for sources of costs ---- */

/* Allocates times of 0 for the graph's layers; psd_costs_release() releases them. PSD_ENOMEM. */
enum psd_status psd_costs_init(struct psd_costs *costs, const struct psd_graph *graph,
			       struct psd_error *err) PSD_MUST_CHECK;
/* Multiplies all layer times by one factor so that batch / compute_sec equals samples_per_sec (0: no scaling), divides
 * gemm_flops_per_sec by it unless it is a profile's, and sets compute_sec. PSD_EINVAL at the place `at`: all times are
 * 0, or their sum is not finite. */
enum psd_status psd_costs_settle(struct psd_costs *costs, struct psd_place at, unsigned batch, double samples_per_sec,
				 struct psd_error *err) PSD_MUST_CHECK;

#endif
