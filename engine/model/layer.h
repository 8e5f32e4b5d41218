/* Functions that layer kinds share, and functions by which readers and the graph builder use all kinds. Private to the
 * engine. FLOPs and bytes are for one sample. They stay at UINT64_MAX instead of overflowing; the graph builder
 * refuses layers with PSD_LAYER_FIGURE_MAX or more. */
#ifndef PSD_LAYER_H
#define PSD_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/document/schema.h"
#include "engine/model/graph.h"
#include "engine/model/graph_build.h"

#define PSD_LAYER_SIDE_MAX     65536u	  /* largest height, width, kernel, stride, padding and dilation */
#define PSD_LAYER_CHANNELS_MAX (1u << 24) /* largest number of channels and of outputs */
#define PSD_LAYER_FIGURE_MAX   (UINT64_C(1) << 60)

/* Initialiser of a struct psd_window: 1x1 with stride 1, without padding and dilation. */
#define PSD_WINDOW_DEFAULT                                                                                             \
	{                                                                                                              \
		.kernel = {1, 1}, .stride = {1, 1}, .dilation = { 1, 1 }                                               \
	}

/* ---- for readers ---- */

/* Reads the keys of a layer's mapping into *settings, as psd_schema_read() does. keys: rows of the layer's kind, or
 * NULL for none. Keys in the NULL-terminated list `others` are ignored. PSD_EINVAL for all other keys; the
 * message calls the mapping `what`. */
enum psd_status psd_layer_read_keys(void *settings, const struct psd_node *mapping, const char *what,
				    const char *const others[], const struct psd_key *keys,
				    struct psd_error *err) PSD_MUST_CHECK;

/* ---- for the graph builder ---- */

/* Sets layer->shape from the settings and the shapes of the inputs, which are in layers[]. PSD_EINVAL at the place
 * `at`: the shapes do not fit, there are too few or too many inputs, or a size exceeds its limit. */
enum psd_status psd_layer_infer_shape(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				      struct psd_error *err) PSD_MUST_CHECK;
/* Returns the shape of the layer's first input; all 0 if it has no inputs. */
struct psd_shape psd_layer_input_shape(const struct psd_layer *layer, const struct psd_layer *layers);
/* Sets the layer's FLOPs and bytes. Its shape and tensors must be known. has_data_gradient: backward also computes the
 * gradients of the layer's inputs. */
void psd_layer_count_work(struct psd_layer *layer, const struct psd_layer *layers, bool has_data_gradient);

/* Returns `hash` extended by the layer's kind, inputs and settings; the start is PSD_HASH_START. Pure. */
uint64_t psd_layer_hash(const struct psd_layer *layer, uint64_t hash);

/* ---- for the kinds ---- */

/* Rows of a table of keys (struct psd_key) for `member` of `struct of`: a count from 1, a height and width, a number,
 * a flag, or a choice. */
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
#define PSD_CHOICE_KEY(key, of, member, choices)                                                                       \
	{                                                                                                              \
		.name = key, .type = PSD_KEY_CHOICE, .offset = offsetof(of, member), .names = choices                  \
	}

/* Returns the number of values of a shape within the limits above; it is less than 2^57. */
uint64_t psd_shape_elements(struct psd_shape shape);
bool psd_shape_is_equal(struct psd_shape one, struct psd_shape other);
/* Sets height and width of layer->shape to the numbers of positions of the window on a map of shape `in`, padding
 * included. rounds_up: a last position that is only partly on the map counts. PSD_EINVAL at the place `at`: the window
 * is larger than the map. */
enum psd_status psd_layer_slide_window(struct psd_layer *layer, const struct psd_window *window, bool rounds_up,
				       struct psd_shape in, struct psd_place at, struct psd_error *err) PSD_MUST_CHECK;
/* Returns the work of a layer that needs these FLOPs for each value of its output: forward, gradients of inputs
 * (data), gradients of parameters. */
struct psd_layer_work psd_layer_work_per_element(const struct psd_layer *layer, uint64_t forward, uint64_t data,
						 uint64_t parameters);
/* Returns the work of a layer that multiplies all its weight_elements weights at each position of a map of shape
 * `map`, and adds a bias if has_bias. */
struct psd_layer_work psd_layer_work_of_products(const struct psd_layer *layer, struct psd_shape map,
						 uint64_t weight_elements, bool has_bias);
/* Appends the tensors of a layer of products to the newest layer: a weight with the dimensions in `weight` and, if
 * has_bias, a bias for each channel of the output. inputs: number of products that are summed to a value of the
 * output; initial values depend on it. False: out of memory. */
bool psd_layer_declare_products(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_tensor weight,
				double inputs, bool has_bias);

#endif
