/* The compute seam of the real executor: a network's layers carried out on one device, layer by layer, on memory that
 * the caller owns, so that communication reads and writes the same bytes. Backends: cpu (oneDNN), idle. All calls of
 * one compute come from one thread at a time; inside a call there may be more. The same input gives the same bits. */
#ifndef PSD_REAL_COMPUTE_H
#define PSD_REAL_COMPUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"

struct psd_compute_options {
	uint32_t batch;	     /* samples this worker computes per iteration */
	unsigned n_threads;  /* inside a call, >= 1 */
	uint64_t seed;	     /* of dropout masks */
	double loss_divisor; /* of the sum of losses: the global batch, so that summing workers averages */
};

/* One iteration's samples. images: (batch, channels, height, width) floats; labels: batch class numbers. Borrowed until
 * the iteration's last backward. first_sample: the global number of the first in this iteration over all workers, so
 * that dropout masks depend on seed, iteration, sample and layer, and not on the worker. */
struct psd_batch {
	const float *images;
	const int32_t *labels;
	float *const *gradients; /* where they go, as in open(); NULL: where the last ones went */
	uint64_t iteration;
	uint64_t first_sample;
	bool is_training; /* false: no dropout, batch norm by its running statistics, no backward follows */
};

/* Factors of an inner product's weight gradient (N, M) = top_diff^T bottom, from its backward to its next forward. */
struct psd_factors {
	const float *top_diff; /* (batch, columns N) */
	const float *bottom;   /* (batch, rows M) */
};

struct psd_compute;

/* Every slot is called only between open and close. */
struct psd_compute_backend {
	const char *name;
	/* parameters and gradients: one float pointer for each tensor of the graph, in the tensor's plain layout (conv
	 * weight: outputs, inputs / groups, height, width; inner product weight: N outputs, M inputs; vectors), owned
	 * by the caller and valid until close; 64-byte aligned. A gradient of an inner product may be NULL: it is not
	 * computed, as where all workers' factors will give it. *compute is owned by the caller until close.
	 * PSD_EINVAL: the graph has a layer this backend cannot do (names it); PSD_ENOMEM. */
	enum psd_status (*open)(struct psd_compute **compute, const struct psd_graph *graph,
				const struct psd_compute_options *options, float *const parameters[],
				float *const gradients[], struct psd_error *err);
	/* Begins an iteration: what forward and backward then work on. */
	void (*begin)(struct psd_compute *compute, const struct psd_batch *batch);
	/* Carries out one layer; layers in order. Reads its parameters. Returns when its output is there. */
	enum psd_status (*forward)(struct psd_compute *compute, unsigned layer, struct psd_error *err);
	/* Carries out one layer's backward; layers in reverse order. Then its gradients in gradients[] are final. */
	enum psd_status (*backward)(struct psd_compute *compute, unsigned layer, struct psd_error *err);
	/* After the last forward: the batch's losses / loss_divisor; how many samples are classed as their label. */
	double (*loss)(const struct psd_compute *compute);
	uint32_t (*correct)(const struct psd_compute *compute);
	/* Borrowed views; layer is an inner product. */
	struct psd_factors (*factors)(const struct psd_compute *compute, unsigned layer);
	/* gradient (N, M) = top_diff^T bottom of `samples` samples, those of all workers: the rebuild of sufficient
	 * factors; bias_gradient (N) = column sums of top_diff, unless NULL. Both are overwritten. May be called from
	 * another thread than the rest, for one layer at a time. */
	void (*rebuild)(struct psd_compute *compute, const struct psd_factors *factors, uint32_t samples, uint32_t rows,
			uint32_t columns, float *gradient, float *bias_gradient);
	/* The values of graph->states[state], such as batch norm's running statistics. Borrowed until close; between
	 * iterations the caller may also write them, as after a checkpoint. They start as the graph says. */
	float *(*state)(const struct psd_compute *compute, unsigned state);
	uint64_t (*memory_bytes)(const struct psd_compute *compute); /* held beyond parameters and gradients */
	void (*close)(struct psd_compute *compute);		     /* NULL is allowed */
};

extern const struct psd_compute_backend psd_compute_cpu;
/* Computes nothing, to measure all else: gradients stay, losses are 0. Without factors: for plans of dense tensors. */
extern const struct psd_compute_backend psd_compute_idle;

#endif
