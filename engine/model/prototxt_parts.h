/* Functions that the files of the Caffe reader share. On PSD_EINVAL the error has the place of the wrong field. */
#ifndef PSD_PROTOTXT_PARTS_H
#define PSD_PROTOTXT_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/document/document.h"
#include "engine/model/graph_build.h"

/* ---- fields (prototxt_fields.c) ---- */

/* Sets *field to the message's field with that key; NULL if the field or the message is absent. PSD_EINVAL: the field
 * occurs twice. */
enum psd_status psd_caffe_single(const struct psd_node *message, const char *key, const struct psd_node **field,
				 struct psd_error *err) PSD_MUST_CHECK;
/* Returns the number of fields with that key; 0 if the message is NULL. */
unsigned psd_caffe_count_fields(const struct psd_node *message, const char *key);
/* Read the message's field `key`: a whole number from lowest to highest, or a flag. These functions and the next two
 * leave their outputs unchanged if the field is absent. */
enum psd_status psd_caffe_read_count(const struct psd_node *message, const char *key, uint32_t lowest, uint32_t highest,
				     uint32_t *count, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_read_flag(const struct psd_node *message, const char *key, bool *flag,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Reads a height and width, in one of three forms: "kernel_size: 3" for both, the field both_key twice, or "kernel_h:
 * 1 kernel_w: 7". lowest: smallest allowed number. */
enum psd_status psd_caffe_read_pair(const struct psd_node *message, const char *both_key, const char *height_key,
				    const char *width_key, uint32_t lowest, struct psd_sides *sides,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Appends the numbers of a repeated field to numbers[], behind the first *n_numbers, and adds their number to
 * *n_numbers. PSD_EINVAL: there would be more than `most`, a number is not in lowest..highest, or is_whole is set and
 * it is not whole. */
enum psd_status psd_caffe_read_numbers(const struct psd_node *message, const char *key, double lowest, double highest,
				       double numbers[], unsigned most, unsigned *n_numbers, bool is_whole,
				       struct psd_error *err) PSD_MUST_CHECK;
/* Fills err with the message that the layer lacks the field `key`, and returns PSD_EINVAL. */
enum psd_status psd_caffe_missing(const struct psd_node *node, const struct psd_layer_spec *spec, const char *key,
				  struct psd_error *err) PSD_MUST_CHECK;

/* ---- tensors (prototxt_tensors.c) ---- */

/* Reads the filler (initial values) in the message's field `key`. If the field is absent, *tensor stays unchanged. */
enum psd_status psd_caffe_read_filler(const struct psd_node *message, const char *key, struct psd_tensor_spec *tensor,
				      struct psd_error *err) PSD_MUST_CHECK;
/* Reads the factors lr_mult and decay_mult of a layer's blobs, in both syntaxes. Blobs before number first_blob are
 * statistics instead of parameters, as are those behind the parameters if has_blobs_after. Statistics are not trained:
 * lr_mult or decay_mult of each must be 0. */
enum psd_status psd_caffe_read_ratios(const struct psd_node *layer, unsigned first_blob, bool has_blobs_after,
				      struct psd_tensor_spec tensors[PSD_LAYER_TENSORS_MAX],
				      struct psd_error *err) PSD_MUST_CHECK;
/* If the layer's blobs have the names of an earlier layer's blobs, sets spec->is_sharing and sets spec->owner to that
 * layer. names: result of psd_caffe_put_names(). PSD_EINVAL: the layer shares only some of its blobs, or in another
 * order. */
enum psd_status psd_caffe_find_owner(const struct psd_node *layer, const struct psd_graph *graph,
				     const struct psd_names *names, struct psd_layer_spec *spec,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Adds the names of a layer's blobs to `names`. number: number of the layer in the graph. False: out of memory. */
bool psd_caffe_put_names(const struct psd_node *layer, unsigned number, struct psd_names *names);

/* ---- layer types (prototxt_layers.c) ---- */

struct psd_caffe_type;

/* Blobs with five dimensions, the batch included. Caffe's Reshape and Permute make them to exchange groups of
 * channels. The graph has only three dimensions beside the batch, so it merges the last two. This list has the
 * dimensions of all these blobs. */
#define PSD_CAFFE_SIDES_MAX 4 /* number of dimensions of a five-dimensional blob without the batch */
struct psd_caffe_blob_5d {
	unsigned layer;
	uint32_t sides[PSD_CAFFE_SIDES_MAX];
};
struct psd_caffe_blobs_5d {
	/* all five-dimensional blobs so far, n entries; freed at the end of the file */
	struct psd_caffe_blob_5d *all;
	unsigned n;
};

/* A Caffe layer that is being converted. Its settings and its bottoms (inputs) have been read. */
struct psd_caffe_draft {
	struct psd_graph_build *build;
	struct psd_layer_spec *spec;
	struct psd_caffe_blobs_5d *blobs_5d;
	/* message with the layer's parameters, such as convolution_param; NULL if absent */
	const struct psd_node *message;
	unsigned n_tops;
	bool allows_other; /* only for predictions: a pooling layer may have a second top, its mask */
	unsigned result;   /* number, in the graph, of the layer whose output is the first top (output) */
	/* top i is the output of graph layer result + i; false: all tops are the output of `result` */
	bool is_one_each;
};

/* Function that adds the graph layers for a Caffe layer, and sets draft->result. */
typedef enum psd_status psd_caffe_build_fn(struct psd_caffe_draft *draft, struct psd_error *err);

/* Function that sets the fields of spec that depend on several fields of `message` (NULL if absent), after the single
 * fields were read. choice: index of the chosen value, if the type has a field of type CHOICE. PSD_EINVAL. */
typedef enum psd_status psd_caffe_finish_fn(const struct psd_node *message, struct psd_layer_spec *spec,
					    unsigned choice, struct psd_error *err);

/* Returns the row of the Caffe layer type with that name; NULL: unknown type. */
const struct psd_caffe_type *psd_caffe_find_type(const char *type);
bool psd_caffe_is_loss(const struct psd_caffe_type *type);
/* Sets kind, settings and tensors of spec from the layer's message. The layer's bottoms (inputs) must have been read
 * before. */
enum psd_status psd_caffe_read_settings(const struct psd_node *layer, const struct psd_caffe_type *type,
					struct psd_layer_spec *spec, struct psd_error *err) PSD_MUST_CHECK;
/* Adds the graph layers for a Caffe layer, by the build function of its type. */
enum psd_status psd_caffe_build(const struct psd_node *layer, const struct psd_caffe_type *type,
				struct psd_caffe_draft *draft, struct psd_error *err) PSD_MUST_CHECK;

/* ---- types that only a prediction needs (prototxt_other.c) ---- */

/* Replaces *root by a tree without fields that only other programs derived from Caffe (forks) have, if these fields
 * change neither shapes nor work. A remark names the fields. */
enum psd_status psd_caffe_drop_harmless(const struct psd_node **root, struct psd_arena *arena, struct psd_text *remarks,
					struct psd_error *err) PSD_MUST_CHECK;
/* True if this Caffe layer type is one that only a prediction needs. *takes_labels: bottoms (inputs) of the type may be
 * labels. */
bool psd_caffe_is_other(const char *type, bool *takes_labels);
/* Adds a layer of kind `other` to the graph for a Caffe layer of a type that only a prediction needs
 * (psd_caffe_is_other()), and sets draft->result. */
enum psd_status psd_caffe_build_other(const struct psd_node *layer, const char *type, struct psd_caffe_draft *draft,
				      struct psd_error *err) PSD_MUST_CHECK;

/* ---- rows of the table of types ---- */

/* Functions that finish the settings of layers with several fields (prototxt_finish.c). */
PSD_MUST_CHECK psd_caffe_finish_fn psd_caffe_finish_conv, psd_caffe_finish_depthwise, psd_caffe_finish_pool,
	psd_caffe_finish_spp, psd_caffe_finish_lrn, psd_caffe_finish_batch_norm, psd_caffe_finish_bn,
	psd_caffe_finish_scale, psd_caffe_finish_eltwise;
/* Functions that build the graph layers of a Caffe layer (prototxt_build.c). */
PSD_MUST_CHECK psd_caffe_build_fn psd_caffe_build_one, psd_caffe_build_split, psd_caffe_build_slices,
	psd_caffe_build_eltwise, psd_caffe_build_axpy, psd_caffe_build_scale, psd_caffe_build_pyramid,
	psd_caffe_build_loss;
/* Functions that build a mathematical function from several graph layers (prototxt_functions.c). */
PSD_MUST_CHECK psd_caffe_build_fn psd_caffe_build_clip, psd_caffe_build_power, psd_caffe_build_exp, psd_caffe_build_log,
	psd_caffe_build_hard_sigmoid, psd_caffe_build_hard_swish, psd_caffe_build_swish, psd_caffe_build_mish;
/* Function that builds a normalisation layer (prototxt_normalize.c). */
PSD_MUST_CHECK psd_caffe_build_fn psd_caffe_build_normalize;
/* Functions that build layers which change the shape of a blob (prototxt_shapes.c). */
PSD_MUST_CHECK psd_caffe_build_fn psd_caffe_build_interp, psd_caffe_build_flatten, psd_caffe_build_reshape,
	psd_caffe_build_tile, psd_caffe_build_reduction, psd_caffe_build_permute;
bool psd_caffe_is_5d(const struct psd_caffe_blobs_5d *blobs_5d, unsigned layer);

/* ---- helpers of build functions (prototxt_build.c) ---- */

/* Adds a layer with inputs `left` and `right` (only `left` if the kind has one input), and sets *number to its number.
 * Its name is "NAME/SUFFIXi", with the name of the Caffe layer. settings: NULL for the kind's defaults. */
enum psd_status psd_caffe_add_other(const struct psd_caffe_draft *draft, const char *suffix, unsigned i,
				    const struct psd_layer_kind *kind, const union psd_layer_settings *settings,
				    unsigned left, unsigned right, unsigned *number,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Adds a layer whose only input is layer *layer, and sets *layer to its number. Its name is "NAME/SUFFIX0", with the
 * name of the Caffe layer. settings: NULL for the kind's defaults. */
enum psd_status psd_caffe_add_above(const struct psd_caffe_draft *draft, const char *suffix,
				    const struct psd_layer_kind *kind, const union psd_layer_settings *settings,
				    unsigned *layer, struct psd_error *err) PSD_MUST_CHECK;
/* Returns the shape of the first bottom (input) of the Caffe layer that is being converted. */
struct psd_shape psd_caffe_shape_of(const struct psd_caffe_draft *draft);

/* ---- the oldest syntax (prototxt_v0.c) ---- */

/* If *root is in Caffe's oldest syntax, with layers inside layers, replaces *root by a tree in the newer syntax. The
 * arena owns the new nodes. PSD_EINVAL, PSD_ENOMEM. */
enum psd_status psd_caffe_upgrade(const struct psd_node **root, struct psd_arena *arena,
				  struct psd_error *err) PSD_MUST_CHECK;

/* ---- input sizes (prototxt_input.c) ---- */

struct psd_caffe_data_type {
	const char *name;
	const char *old_name;
	const char *message; /* field of a data layer with its parameters, such as image_data_param */
	/* the field `message` has the input size; false: images are cropped or scaled to the size */
	bool has_size;
};

/* Returns the row of the Caffe data layer type with that name; NULL: unknown type. */
const struct psd_caffe_data_type *psd_caffe_find_data_type(const char *type);
/* Checks that a data layer has only known fields. Their values are ignored, because the training job defines the
 * data. */
enum psd_status psd_caffe_check_data(const struct psd_node *layer, const struct psd_caffe_data_type *type,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Sources of input sizes that the model file does not have. */
struct psd_caffe_outside {
	const struct psd_model_choices *choices; /* choices of the user; NULL: none */
	/* name of the input's blob (top); a choice of the user for the input may use this name, too */
	const char *top;
	struct psd_text *remarks;
};
/* Sets the shape in spec->settings to the input size: that in the fields of a data layer, or the size that the user
 * gave. */
enum psd_status psd_caffe_read_input_size(const struct psd_node *layer, const struct psd_caffe_data_type *type,
					  const struct psd_caffe_outside *outside, struct psd_layer_spec *spec,
					  struct psd_error *err) PSD_MUST_CHECK;
/* Sets *shape to the size that the user gave for an input, by one of its names. If the user gave none, *shape is
 * unchanged. other_name: may be NULL. */
enum psd_status psd_caffe_find_size(const struct psd_model_choices *choices, const char *name, const char *other_name,
				    struct psd_shape *shape, struct psd_error *err) PSD_MUST_CHECK;
/* Reads a shape from a BlobShape of 2 or 4 dimensions, of which the first is the batch and is ignored. */
enum psd_status psd_caffe_read_shape(const struct psd_node *message, struct psd_shape *shape,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Reads up to 5 dimensions from the repeated field `key`; *n_dims: their number. */
enum psd_status psd_caffe_read_dims(const struct psd_node *message, const char *key, uint32_t dims[5], unsigned *n_dims,
				    struct psd_error *err) PSD_MUST_CHECK;

#endif
