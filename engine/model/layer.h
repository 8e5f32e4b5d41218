/* What one kind of layer does to shapes, how many parameters it has and how many FLOPs it costs. Private to the engine.
 * All figures are for one sample and saturate at UINT64_MAX; the graph builder refuses what reaches
 * PSD_LAYER_FIGURE_MAX. */
#ifndef PSD_LAYER_H
#define PSD_LAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"

#define PSD_LAYER_SIDE_MAX     65536u	  /* height, width, kernel, stride, pad, dilation */
#define PSD_LAYER_CHANNELS_MAX (1u << 24) /* channels and outputs */
#define PSD_LAYER_FIGURE_MAX   (UINT64_C(1) << 60)

/* Parameter counts of one layer: 0 where it has none. */
struct psd_layer_parameters {
	uint64_t weight;
	uint64_t bias;
};

/* Elements of a shape within the limits above; below 2^57, so never wraps. */
uint64_t psd_shape_elements(struct psd_shape shape);

/* Sets layer->shape from its fields and the shapes of its inputs, which layers[] holds; input layers bring their own.
 * PSD_EINVAL with the place `at` when the inputs do not fit, are too few or too many, or a size is beyond the limits.
 */
enum psd_status psd_layer_infer_shape(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				      struct psd_error *err) PSD_MUST_CHECK;
/* After the shape. Never fails. */
struct psd_layer_parameters psd_layer_count_parameters(const struct psd_layer *layer, const struct psd_layer *layers);
/* Sets the FLOPs and bytes, after the shape. is_trained[i]: layer i or one below it has parameters, so that gradients
 * must reach its output. Never fails. */
void psd_layer_count_work(struct psd_layer *layer, const struct psd_layer *layers, const bool is_trained[]);

#endif
