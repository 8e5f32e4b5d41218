/* A second, slow implementation of every layer's forward in double, straight from the formulas, for tests: gradients
 * come from central differences of its loss, so that no backward is written twice. */
#ifndef PSD_TESTS_REAL_REFERENCE_H
#define PSD_TESTS_REAL_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/model/graph.h"
#include "real/device/device.h"

#define DIFFERENCE_STEP 1e-5 /* change of a parameter in central differences */

/* The loss of a batch, divided by options->loss_divisor. parameters: one array for each tensor of the graph, in its
 * plain layout. Batch norm uses the batch's statistics when training, else those of a population of which the batch is
 * a sample. */
double reference_loss(const struct psd_graph *graph, const struct psd_network_options *options,
		      const struct psd_batch *batch, double *const parameters[]);
/* Central differences of that loss by each element of a tensor; the caller frees them. parameters[tensor] changes
 * meanwhile. Each difference computes only the layers that the tensor reaches. */
double *reference_gradient(const struct psd_graph *graph, const struct psd_network_options *options,
			   const struct psd_batch *batch, double *const parameters[], unsigned tensor);

#endif
