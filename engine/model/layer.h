/* What layer kinds share, and what the graph builder asks of any. Private to the engine. All figures are for one sample
 * and saturate at UINT64_MAX; the graph builder refuses what reaches PSD_LAYER_FIGURE_MAX. */
#ifndef PSD_LAYER_H
#define PSD_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/document/schema.h"
#include "engine/model/graph.h"
#include "engine/model/graph_build.h"

#define PSD_LAYER_SIDE_MAX     65536u	  /* height, width, kernel, stride, pad, dilation */
#define PSD_LAYER_CHANNELS_MAX (1u << 24) /* channels and outputs */
#define PSD_LAYER_FIGURE_MAX   (UINT64_C(1) << 60)

/* Of the normal values that tables of vectors start with. Source: Radford et al., "Improving language understanding by
 * generative pre-training", 2018, section 4.1. */
#define PSD_LAYER_EMBEDDING_DEVIATION 0.02f

/* 1x1, stride 1, no pad, dense. */
#define PSD_WINDOW_DEFAULT                                                                                             \
	{                                                                                                              \
		.kernel = {1, 1}, .stride = {1, 1}, .dilation = { 1, 1 }                                               \
	}

/* ---- for the loaders ---- */

/* Reads the keys of `keys` (NULL: none) into settings and passes over `others`; every other one is PSD_EINVAL. As
 * psd_schema_read(). */
enum psd_status psd_layer_read_keys(void *settings, const struct psd_node *mapping, const char *what,
				    const char *const others[], const struct psd_key *keys,
				    struct psd_error *err) PSD_MUST_CHECK;

/* ---- for the graph builder ---- */

/* Sets layer->shape from its settings and the shapes of its inputs, which layers[] holds. PSD_EINVAL with the place
 * `at` when the inputs do not fit, are too few or too many, or a size is beyond the limits. */
enum psd_status psd_layer_infer_shape(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				      struct psd_error *err) PSD_MUST_CHECK;
/* Of its first input; all 0 without one. */
struct psd_shape psd_layer_input_shape(const struct psd_layer *layer, const struct psd_layer *layers);
/* Sets the FLOPs and bytes, after the shape and the tensors. has_data_gradient: gradients must reach its inputs. Never
 * fails. */
void psd_layer_count_work(struct psd_layer *layer, const struct psd_layer *layers, bool has_data_gradient);

/* `hash` with all that the layer is told: its inputs, and the settings that its kind has keys of. Pure. */
uint64_t psd_layer_hash(const struct psd_layer *layer, uint64_t hash);

/* ---- for the kinds ---- */

/* Rows of a table of keys: a member of the settings that is a count, a height and width, or a flag. */
#define PSD_COUNT_KEY(key, of, member, most, needed)                                                                   \
	{                                                                                                              \
		.name = key, .type = PSD_KEY_UNSIGNED, .offset = offsetof(of, member), .is_required = needed,          \
		.lowest = 1, .highest = most                                                                           \
	}
#define PSD_PAIR_KEY(key, of, member, least, needed)                                                                   \
	{                                                                                                              \
		.name = key, .type = PSD_KEY_PAIR, .offset = offsetof(of, member), .is_required = needed,              \
		.lowest = least, .highest = PSD_LAYER_SIDE_MAX                                                         \
	}
#define PSD_NUMBER_KEY(key, of, member, least, most)                                                                   \
	{                                                                                                              \
		.name = key, .type = PSD_KEY_NUMBER, .offset = offsetof(of, member), .lowest = least, .highest = most  \
	}
#define PSD_FLAG_KEY(key, of, member)                                                                                  \
	{                                                                                                              \
		.name = key, .type = PSD_KEY_FLAG, .offset = offsetof(of, member)                                      \
	}

/* Elements of a shape within the limits above; below 2^57, so never wraps. */
uint64_t psd_shape_elements(struct psd_shape shape);
/* Sets height and width of layer->shape: how many positions the window has on `in`. */
enum psd_status psd_layer_slide_window(struct psd_layer *layer, const struct psd_window *window, bool rounds_up,
				       struct psd_shape in, struct psd_place at, struct psd_error *err) PSD_MUST_CHECK;
/* So many FLOPs for each element of the output. */
struct psd_layer_work psd_layer_work_per_element(const struct psd_layer *layer, uint64_t forward, uint64_t data,
						 uint64_t parameters);
/* Of a layer that multiplies each of the weight's elements at each place of such a map, and adds a bias. */
struct psd_layer_work psd_layer_work_of_products(const struct psd_layer *layer, struct psd_shape map,
						 uint64_t weight_elements, bool has_bias);
/* Adds such a layer's tensors: a weight of these dims and a bias for each channel of the output. inputs: what one value
 * of that is summed from. False: out of memory. */
bool psd_layer_declare_products(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_tensor weight,
				double inputs, bool has_bias);
/* Adds the tensors of a layer that scales and shifts its channels. False: out of memory. */
bool psd_layer_declare_affine(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in);

/* ---- for convolutions, either way round ---- */

extern const struct psd_key psd_layer_conv_keys[];
#define PSD_CONV_DEFAULT                                                                                               \
	{                                                                                                              \
		.window = PSD_WINDOW_DEFAULT, .groups = 1, .has_bias = true                                            \
	}
/* Sets the groups where there is one for each input, and the output's channels; PSD_EINVAL when they do not divide. */
enum psd_status psd_layer_divide_channels(struct psd_layer *layer, struct psd_shape in, struct psd_place at,
					  struct psd_error *err) PSD_MUST_CHECK;
/* Whose weight meets each place of such a map. */
struct psd_layer_work psd_layer_work_of_conv(const struct psd_layer *layer, struct psd_shape in, struct psd_shape map);

#endif
