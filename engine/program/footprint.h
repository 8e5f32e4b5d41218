/* Memory that a worker needs for a program, by the same table of buffers from which a real run allocates it. */
#ifndef PSD_FOOTPRINT_H
#define PSD_FOOTPRINT_H

#include <stdint.h>

#include "engine/program/program.h"

/* Bytes in the memory in which a worker's layers compute: that of its device, or of its host where they are one. */
struct psd_footprint {
	uint64_t parameters_bytes;    /* parameters; in half precision also their originals in fp32 */
	uint64_t gradients_bytes;     /* gradients of all iterations that are under way at the same time */
	uint64_t optimiser_bytes;     /* momentum, and mean of squared gradients */
	uint64_t buffers_bytes;	      /* all other buffers of the methods */
	uint64_t activations_bytes;   /* outputs of layers, and other values that forward keeps for backward */
	uint64_t differentials_bytes; /* gradients of outputs, as many as backward needs at a time */
	/* samples, if the device has memory of its own; running statistics; gradients that layers add to shared
	 * parameters' gradients. Workspace of libraries is left out. */
	uint64_t other_bytes;
};

/* Counts the memory of worker 0, which is also a shard where shards are on workers. batch: number of samples that the
 * worker computes in an iteration. Shards are taken to add gradients on arrival, as psd-run does unless it is
 * deterministic. Pure. */
struct psd_footprint psd_footprint_make(const struct psd_program *program, uint64_t batch);
uint64_t psd_footprint_bytes(const struct psd_footprint *footprint);

#endif
