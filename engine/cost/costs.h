/* Seconds of compute: per layer forward and backward for one worker's batch, from a measured profile or from a named
 * device. */
#ifndef PSD_COSTS_H
#define PSD_COSTS_H

#include <stdbool.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"
#include "engine/scenario/device.h"

/* Where the seconds come from; a model and a scaled measurement are to be labelled so. */
enum psd_costs_source { PSD_COSTS_MODEL, PSD_COSTS_SCALED, PSD_COSTS_MEASURED, PSD_COSTS_SOURCES };
extern const char *const
	psd_costs_source_names[PSD_COSTS_SOURCES + 1]; /* "model", "scaled", "measured", NULL; as in a profile's head */

struct psd_costs {
	double *forward_sec;  /* n_layers, for the whole batch of one worker */
	double *backward_sec; /* n_layers; with all gradients of parameters */
	unsigned n_layers;
	double compute_sec;	   /* sum of all */
	double gemm_flops_per_sec; /* of what other workers' samples add to a rebuild from factors */
	bool has_own_memory;	   /* the device, so that tensors are copied between it and its host */
	enum psd_costs_source source;
};

/* From a device. batch >= 1; images_per_sec > 0 scales all layers alike so that batch / compute_sec meets it, 0 leaves
 * the model's figures. half: fp16 arithmetic. */
enum psd_status psd_costs_from_device(struct psd_costs *costs, const struct psd_graph *graph,
				      const struct psd_device_row *device, unsigned batch, bool half,
				      double images_per_sec, struct psd_error *err) PSD_MUST_CHECK;
/* From a profile CSV (format in traces/profiles/README.md): every layer of the graph but inputs must be in it, and no
 * other. Times scale linearly from the profile's batch to this one; images_per_sec as above. */
enum psd_status psd_costs_from_profile(struct psd_costs *costs, const struct psd_graph *graph, const char *path,
				       unsigned batch, double images_per_sec, struct psd_error *err) PSD_MUST_CHECK;
void psd_costs_release(struct psd_costs *costs);

#endif
