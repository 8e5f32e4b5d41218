/* Memory that a worker allocates on a device, to compare with its footprint. */
#ifndef PSD_TESTS_FOOTPRINT_HELPER_H
#define PSD_TESTS_FOOTPRINT_HELPER_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "engine/program/footprint.h"
#include "real/device/device.h"
#include "real/keep/memory.h"
#include "tests/loaded_helper.h"

struct footprint_model {
	const char *name;
	unsigned
		batch; /* so large that what does not grow with it, such as a library's scratch memory, hardly counts */
};

static const double footprint_tolerance_ratio = 0.05;

static inline void footprint_open(struct loaded *loaded, struct psd_case *made, const struct footprint_model *model,
				  const char *device, const char *system)
{
	loaded_print(loaded,
		     "model: {graph: scenarios/models/%s.yaml, batch_per_worker: %u}\n"
		     "compute: {device: %s}\n"
		     "cluster: {stack: none, nodes: 4, network: {bandwidth: 1Gbps, latency: 50us}}\n"
		     "systems: [{name: s, %s}]\n"
		     "train: {iterations: 1, optimiser: {momentum: 0.9}, learning_rate: {base: 1}}\n",
		     model->name, model->batch, device, system);
	loaded_case(made, loaded, 0, 0);
}

/* Bytes of a network on an open device, beside parameters and gradients. */
static inline uint64_t footprint_network_bytes(const struct psd_device_kind *kind, struct psd_device *device,
					       const struct psd_graph *graph, unsigned batch, float **parameters)
{
	const struct psd_network_options options = {.batch = batch, .seed = 1, .loss_divisor = batch};
	struct psd_error err = {.text = ""};

	cr_assert_eq(kind->load(device, graph, &options, parameters, parameters, &err), PSD_OK, "%s", err.text);
	return kind->memory_bytes(device);
}

static inline void footprint_expect(const struct footprint_model *model, const char *system,
				    const struct psd_case *made, uint64_t allocated_bytes)
{
	const struct psd_footprint footprint = psd_footprint_make(&made->program, model->batch);
	const double ratio = (double)psd_footprint_bytes(&footprint) / (double)allocated_bytes;

	cr_expect(fabs(ratio - 1.0) <= footprint_tolerance_ratio, "%s, %s: %.0f bytes, allocated are %.0f: %+.1f %%",
		  model->name, system, (double)psd_footprint_bytes(&footprint), (double)allocated_bytes,
		  100.0 * (ratio - 1.0));
}

#endif
