/* Internals that the files of the Caffe reader share. Functions return PSD_EINVAL with the place of the field that they
 * refuse. */
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

/* Finds a field; *field is NULL if it or the message is absent. PSD_EINVAL if it occurs twice. */
enum psd_status psd_caffe_single(const struct psd_node *message, const char *key, const struct psd_node **field,
				 struct psd_error *err) PSD_MUST_CHECK;
/* Read a field. This and the next functions leave their outputs unchanged if the field is absent. */
enum psd_status psd_caffe_read_count(const struct psd_node *message, const char *key, uint32_t lowest, uint32_t highest,
				     uint32_t *count, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_read_flag(const struct psd_node *message, const char *key, bool *flag,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Reads a height and width: "kernel_size: 3", the same field twice, or "kernel_h: 1 kernel_w: 7". */
enum psd_status psd_caffe_read_pair(const struct psd_node *message, const char *both_key, const char *height_key,
				    const char *width_key, uint32_t lowest, struct psd_sides *sides,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Appends the numbers of a repeated field to numbers[*n_numbers]. PSD_EINVAL if there are more than `most`, or one is
 * not in lowest..highest. */
enum psd_status psd_caffe_read_numbers(const struct psd_node *message, const char *key, double lowest, double highest,
				       double numbers[], unsigned most, unsigned *n_numbers, bool is_whole,
				       struct psd_error *err) PSD_MUST_CHECK;
/* Fills err: the layer lacks that field; returns PSD_EINVAL. */
enum psd_status psd_caffe_missing(const struct psd_node *node, const struct psd_layer_spec *spec, const char *key,
				  struct psd_error *err) PSD_MUST_CHECK;

/* ---- tensors (prototxt_tensors.c) ---- */

/* Reads the filler in field `key` of the message, if there is one. */
enum psd_status psd_caffe_read_filler(const struct psd_node *message, const char *key, struct psd_tensor_spec *tensor,
				      struct psd_error *err) PSD_MUST_CHECK;
/* Reads lr_mult and decay_mult of a layer's blobs, in both syntaxes. Blobs before first_blob are statistics, as are
 * those after the tensors if has_blobs_after. Statistics do not learn: one of their two factors must be 0. */
enum psd_status psd_caffe_read_ratios(const struct psd_node *layer, unsigned first_blob, bool has_blobs_after,
				      struct psd_tensor_spec tensors[PSD_LAYER_TENSORS_MAX],
				      struct psd_error *err) PSD_MUST_CHECK;
/* Sets spec->owner if the layer's blobs have the names of an earlier layer's. PSD_EINVAL: only some of them have. */
enum psd_status psd_caffe_find_owner(const struct psd_node *layer, const struct psd_graph *graph,
				     const struct psd_names *names, struct psd_layer_spec *spec,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Stores the names of a layer's blobs; number: its number in the graph. False: out of memory. */
bool psd_caffe_put_names(const struct psd_node *layer, unsigned number, struct psd_names *names);

/* ---- layer types (prototxt_layers.c) ---- */

struct psd_caffe_type;

/* Reshape and Permute make blobs of five dimensions, to exchange groups of channels. The graph has three beside the
 * batch: the last two become one. The list holds the dimensions of these blobs. */
#define PSD_CAFFE_SIDES_MAX 4 /* dimensions of a blob beside the batch */
struct psd_caffe_blob_5d {
	unsigned layer;
	uint32_t sides[PSD_CAFFE_SIDES_MAX];
};
struct psd_caffe_blobs_5d {
	struct psd_caffe_blob_5d *all; /* entries for all such blobs, freed at the end of the file */
	unsigned n;
};

/* A Caffe layer under conversion: its settings and bottoms are known. */
struct psd_caffe_draft {
	struct psd_graph_build *build;
	struct psd_layer_spec *spec;
	struct psd_caffe_blobs_5d *blobs_5d;
	const struct psd_node *message; /* message with its parameters; NULL if absent */
	unsigned n_tops;
	bool allows_other; /* for a prediction: a pooling may have its mask as a second top */
	unsigned result;   /* number of the graph layer whose output is the first top */
	bool is_one_each;  /* each further top is the output of the next layer; false: all tops are the same */
};

/* Function that adds the layers of the graph which a Caffe layer needs, and sets draft->result. */
typedef enum psd_status psd_caffe_build_fn(struct psd_caffe_draft *draft, struct psd_error *err);

/* Function that sets fields of spec which depend on several fields of the message (NULL if absent), after these were
 * read. choice: index of the value of the type's CHOICE field, or of its default. PSD_EINVAL. */
typedef enum psd_status psd_caffe_finish_fn(const struct psd_node *message, struct psd_layer_spec *spec,
					    unsigned choice, struct psd_error *err);

/* Returns the row of a Caffe layer type; NULL: unknown. */
const struct psd_caffe_type *psd_caffe_find_type(const char *type);
bool psd_caffe_is_loss(const struct psd_caffe_type *type);
/* Sets kind, settings and tensors of spec from the layer's message; its bottoms were read before. */
enum psd_status psd_caffe_read_settings(const struct psd_node *layer, const struct psd_caffe_type *type,
					struct psd_layer_spec *spec, struct psd_error *err) PSD_MUST_CHECK;
/* Adds the layers for a Caffe layer by its type's build function. */
enum psd_status psd_caffe_build(const struct psd_node *layer, const struct psd_caffe_type *type,
				struct psd_caffe_draft *draft, struct psd_error *err) PSD_MUST_CHECK;

/* ---- types that only a prediction needs (prototxt_other.c) ---- */

/* Replaces *root by a tree without fields of forks that change neither shapes nor work, and names these in a remark. */
enum psd_status psd_caffe_drop_harmless(const struct psd_node **root, struct psd_arena *arena, struct psd_text *remarks,
					struct psd_error *err) PSD_MUST_CHECK;
/* True if the type is known; *takes_labels: its bottoms may be labels. */
bool psd_caffe_is_other(const char *type, bool *takes_labels);
/* Adds a layer of the kind other for a layer of such a type, and sets draft->result. */
enum psd_status psd_caffe_build_other(const struct psd_node *layer, const char *type, struct psd_caffe_draft *draft,
				      struct psd_error *err) PSD_MUST_CHECK;

/* ---- rows of the table of types ---- */

/* Finish the settings of layers with several fields (prototxt_finish.c). */
PSD_MUST_CHECK psd_caffe_finish_fn psd_caffe_finish_conv, psd_caffe_finish_depthwise, psd_caffe_finish_pool,
	psd_caffe_finish_spp, psd_caffe_finish_lrn, psd_caffe_finish_batch_norm, psd_caffe_finish_bn,
	psd_caffe_finish_scale, psd_caffe_finish_eltwise;
/* Build graph layers for a Caffe layer (prototxt_build.c). */
PSD_MUST_CHECK psd_caffe_build_fn psd_caffe_build_one, psd_caffe_build_split, psd_caffe_build_slices,
	psd_caffe_build_eltwise, psd_caffe_build_axpy, psd_caffe_build_scale, psd_caffe_build_pyramid,
	psd_caffe_build_loss;
/* Build functions made of several graph layers (prototxt_functions.c). */
PSD_MUST_CHECK psd_caffe_build_fn psd_caffe_build_clip, psd_caffe_build_power, psd_caffe_build_exp, psd_caffe_build_log,
	psd_caffe_build_hard_sigmoid, psd_caffe_build_hard_swish, psd_caffe_build_swish, psd_caffe_build_mish;
/* Builds a normalisation layer (prototxt_normalize.c). */
PSD_MUST_CHECK psd_caffe_build_fn psd_caffe_build_normalize;
/* Build layers that change the shape (prototxt_shapes.c). */
PSD_MUST_CHECK psd_caffe_build_fn psd_caffe_build_interp, psd_caffe_build_flatten, psd_caffe_build_reshape,
	psd_caffe_build_tile, psd_caffe_build_reduction, psd_caffe_build_permute;
bool psd_caffe_is_5d(const struct psd_caffe_blobs_5d *blobs_5d, unsigned layer);

/* ---- helpers of build functions (prototxt_build.c) ---- */

/* Adds a layer of one or two inputs, named after draft, suffix and i. settings: NULL for the kind's defaults. */
enum psd_status psd_caffe_add_other(const struct psd_caffe_draft *draft, const char *suffix, unsigned i,
				    const struct psd_layer_kind *kind, const union psd_layer_settings *settings,
				    unsigned left, unsigned right, unsigned *number,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Adds a further layer whose only input is *layer, and sets *layer to its number. */
enum psd_status psd_caffe_add_above(const struct psd_caffe_draft *draft, const char *suffix,
				    const struct psd_layer_kind *kind, const union psd_layer_settings *settings,
				    unsigned *layer, struct psd_error *err) PSD_MUST_CHECK;
/* Shape of the Caffe layer's first bottom. */
struct psd_shape psd_caffe_shape_of(const struct psd_caffe_draft *draft);

/* ---- the oldest form (prototxt_v0.c) ---- */

/* Replaces *root, if it is in Caffe's older form with layers within layers, by a tree in the newer form; the arena owns
 * new nodes. PSD_EINVAL, PSD_ENOMEM. */
enum psd_status psd_caffe_upgrade(const struct psd_node **root, struct psd_arena *arena,
				  struct psd_error *err) PSD_MUST_CHECK;

/* ---- input sizes (prototxt_input.c) ---- */

struct psd_caffe_data_type {
	const char *name;
	const char *old_name;
	const char *message; /* name of the message with its parameters */
	bool has_size;	     /* the message gives the size; false: images are cropped or scaled to it */
};

/* Returns the row of a Caffe data layer type; NULL: unknown. */
const struct psd_caffe_data_type *psd_caffe_find_data_type(const char *type);
/* Checks that a data layer has no unknown fields. Known ones may have any value: the job decides on data. */
enum psd_status psd_caffe_check_data(const struct psd_node *layer, const struct psd_caffe_data_type *type,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Sizes that the file does not have. */
struct psd_caffe_outside {
	const struct psd_model_choices *choices; /* NULL: none */
	const char *top;			 /* name of the input's blob, by which choices name it, too */
	struct psd_text *remarks;
};
/* Sets the shape in spec->settings to the input size that a data layer gives, or the user does. */
enum psd_status psd_caffe_read_input_size(const struct psd_node *layer, const struct psd_caffe_data_type *type,
					  const struct psd_caffe_outside *outside, struct psd_layer_spec *spec,
					  struct psd_error *err) PSD_MUST_CHECK;
/* Sets *shape to the size that the user gives an input by one of its names; unchanged if there is none. other_name: may
 * be NULL. */
enum psd_status psd_caffe_find_size(const struct psd_model_choices *choices, const char *name, const char *other_name,
				    struct psd_shape *shape, struct psd_error *err) PSD_MUST_CHECK;
/* Reads the shape in a BlobShape of 2 or 4 dims, the first of which is the batch. */
enum psd_status psd_caffe_read_shape(const struct psd_node *message, struct psd_shape *shape,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Reads up to 5 dimensions from a repeated field. */
enum psd_status psd_caffe_read_dims(const struct psd_node *message, const char *key, uint32_t dims[5], unsigned *n_dims,
				    struct psd_error *err) PSD_MUST_CHECK;

#endif
