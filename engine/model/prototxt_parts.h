/* What the parts of the Caffe reader share: fields, tensors, layer types, input sizes. Private to prototxt*.c. Every
 * function returns PSD_EINVAL with the place of the field it complains about. */
#ifndef PSD_PROTOTXT_PARTS_H
#define PSD_PROTOTXT_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/document/document.h"
#include "engine/model/graph_build.h"

/* ---- fields (prototxt_fields.c) ---- */

/* The field, or NULL in *field when absent (also when message is NULL); twice is an error. */
enum psd_status psd_caffe_single(const struct psd_node *message, const char *key, const struct psd_node **field,
				 struct psd_error *err) PSD_MUST_CHECK;
/* These leave their outputs alone when the field is absent. */
enum psd_status psd_caffe_read_count(const struct psd_node *message, const char *key, uint32_t lowest, uint32_t highest,
				     uint32_t *count, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_read_flag(const struct psd_node *message, const char *key, bool *flag,
				    struct psd_error *err) PSD_MUST_CHECK;
/* "kernel_size: 3", the same twice for height and width, or "kernel_h: 1 kernel_w: 7". */
enum psd_status psd_caffe_read_pair(const struct psd_node *message, const char *both_key, const char *height_key,
				    const char *width_key, uint32_t lowest, struct psd_sides *sides,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Always PSD_EINVAL: the layer has no such field. */
enum psd_status psd_caffe_missing(const struct psd_node *node, const struct psd_layer_spec *spec, const char *key,
				  struct psd_error *err) PSD_MUST_CHECK;

/* Up to `most` numbers of the repeated field `key`; one more is refused, as is one out of lowest..highest. */
enum psd_status psd_caffe_read_numbers(const struct psd_node *message, const char *key, double lowest, double highest,
				       double numbers[], unsigned most, unsigned *n_numbers, bool is_whole,
				       struct psd_error *err) PSD_MUST_CHECK;

/* ---- tensors (prototxt_tensors.c) ---- */

/* The message's filler of that name, if it is there. */
enum psd_status psd_caffe_read_filler(const struct psd_node *message, const char *key, struct psd_tensor_spec *tensor,
				      struct psd_error *err) PSD_MUST_CHECK;
/* lr_mult and decay_mult of a layer's blobs, in both syntaxes; those before first_blob and those behind the tensors,
 * if there may be any, are statistics, which do not learn; where their decay_mult is 0 nothing would move them. */
enum psd_status psd_caffe_read_ratios(const struct psd_node *layer, unsigned first_blob, bool has_blobs_behind,
				      struct psd_tensor_spec tensors[PSD_LAYER_TENSORS_MAX],
				      struct psd_error *err) PSD_MUST_CHECK;
/* Sets spec->owner where blobs have names that another layer has given before. PSD_EINVAL where that holds for some of
 * them alone. */
enum psd_status psd_caffe_find_owner(const struct psd_node *layer, const struct psd_graph *graph,
				     const struct psd_names *names, struct psd_layer_spec *spec,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Remembers the names of the blobs of a layer that has become the graph's of that number. False: out of memory. */
bool psd_caffe_put_names(const struct psd_node *layer, unsigned number, struct psd_names *names);

/* ---- layer types (prototxt_layers.c) ---- */

struct psd_caffe_type;

/* Blobs of five dimensions, which Reshape and Permute mix groups of channels by: the graph has their last two as one.
 */
#define PSD_CAFFE_SIDES_MAX 4 /* beside the batch */
struct psd_caffe_fold {
	unsigned layer;
	uint32_t sides[PSD_CAFFE_SIDES_MAX];
};
struct psd_caffe_folds {
	struct psd_caffe_fold *all; /* whoever reads a file frees it */
	unsigned n;
};

/* A layer whose settings and bottoms are read, on its way into the graph. */
struct psd_caffe_part {
	struct psd_graph_build *build;
	struct psd_layer_spec *spec;
	struct psd_caffe_folds *folds;
	const struct psd_node *message; /* its parameters; NULL: none */
	unsigned n_tops;
	unsigned result;  /* the layer that makes its first top */
	bool is_one_each; /* the next top is made by the next layer; else all by this one */
};

typedef enum psd_status (*psd_caffe_build_fn)(struct psd_caffe_part *part, struct psd_error *err);

/* NULL when there is none. */
const struct psd_caffe_type *psd_caffe_find_type(const char *type);
bool psd_caffe_is_loss(const struct psd_caffe_type *type);
/* Sets spec->kind, settings and tensors, after the bottoms. */
enum psd_status psd_caffe_read_settings(const struct psd_node *layer, const struct psd_caffe_type *type,
					struct psd_layer_spec *spec, struct psd_error *err) PSD_MUST_CHECK;
/* Adds the layers that it stands for and sets part->result. */
enum psd_status psd_caffe_build(const struct psd_node *layer, const struct psd_caffe_type *type,
				struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;

/* ---- fields that mean something together (prototxt_finish.c) ---- */

/* Of a layer whose other fields are read: fills the rest of spec. choice: a value by name or number that the type
 * reads, its default where it has none. message: the type's, or NULL. PSD_EINVAL. */
typedef enum psd_status psd_caffe_finish_fn(const struct psd_node *message, struct psd_layer_spec *spec,
					    unsigned choice, struct psd_error *err);

psd_caffe_finish_fn psd_caffe_finish_conv, psd_caffe_finish_depthwise, psd_caffe_finish_pool, psd_caffe_finish_spp,
	psd_caffe_finish_lrn, psd_caffe_finish_batch_norm, psd_caffe_finish_bn, psd_caffe_finish_scale,
	psd_caffe_finish_eltwise;

/* ---- layers that stand for others (prototxt_build.c) ---- */

/* Adds a layer beside it, of one or two inputs. */
enum psd_status psd_caffe_add_other(const struct psd_caffe_part *part, const char *what, unsigned i,
				    const struct psd_layer_kind *kind, const union psd_layer_settings *settings,
				    unsigned left, unsigned right, unsigned *number,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Of the first bottom. */
struct psd_shape psd_caffe_shape_of(const struct psd_caffe_part *part);
enum psd_status psd_caffe_check_bottoms(const struct psd_caffe_part *part, unsigned wanted,
					struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_one(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_split(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_slices(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_eltwise(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_axpy(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_scale(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_pyramid(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_loss(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;

/* ---- functions of an element (prototxt_functions.c) ---- */

enum psd_status psd_caffe_build_clip(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_power(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_exp(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_log(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_hard_sigmoid(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_hard_swish(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_swish(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_mish(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;

/* (prototxt_normalize.c) */
enum psd_status psd_caffe_build_normalize(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;

/* ---- shapes (prototxt_shapes.c) ---- */

bool psd_caffe_is_folded(const struct psd_caffe_folds *folds, unsigned layer);
enum psd_status psd_caffe_build_interp(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_flat(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_shape(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_tile(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_reduction(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_caffe_build_order(struct psd_caffe_part *part, struct psd_error *err) PSD_MUST_CHECK;

/* ---- the oldest form (prototxt_v0.c) ---- */

/* *root becomes a tree without layers in it, where it has some; new nodes are the arena's. PSD_EINVAL, PSD_ENOMEM. */
enum psd_status psd_caffe_upgrade(const struct psd_node **root, struct psd_arena *arena,
				  struct psd_error *err) PSD_MUST_CHECK;

/* ---- input sizes (prototxt_input.c) ---- */

struct psd_caffe_data_type {
	const char *name;
	const char *old_name;
	const char *message; /* its parameters */
	bool gives_size;     /* says it itself; otherwise images are cut or scaled to it */
};

/* NULL when there is none. */
const struct psd_caffe_data_type *psd_caffe_find_data_type(const char *type);
/* Refuses fields that are none of such a layer's. What is read, and how it is changed, is the job's business. */
enum psd_status psd_caffe_check_data(const struct psd_node *layer, const struct psd_caffe_data_type *type,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Sets spec->settings. */
enum psd_status psd_caffe_read_input_size(const struct psd_node *layer, const struct psd_caffe_data_type *type,
					  struct psd_layer_spec *spec, struct psd_error *err) PSD_MUST_CHECK;
/* A BlobShape of 2 or 4 dims, the first of which is the batch. */
enum psd_status psd_caffe_read_shape(const struct psd_node *message, struct psd_shape *shape,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Gathers up to 5 of the repeated field `key`. */
enum psd_status psd_caffe_read_dims(const struct psd_node *message, const char *key, uint32_t dims[5], unsigned *n_dims,
				    struct psd_error *err) PSD_MUST_CHECK;

#endif
