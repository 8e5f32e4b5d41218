/* What the parts of the ONNX reader share. Private to this folder. Every function that returns a status has set the
 * error, with the place of the node that is being read. */
#ifndef PSD_ONNX_PARTS_H
#define PSD_ONNX_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/names.h"
#include "engine/model/graph_build.h"
#include "engine/model/onnx/onnx.pb-c.h"
#include "engine/model/onnx/view.h"

/* Numbers that are computed here: masks of sequences of 4,096 tokens are the largest. */
#define PSD_ONNX_NUMBERS_MAX (UINT64_C(1) << 24)
/* Of all constants, which stay until the end; a file of few bytes is kept fewer. */
#define PSD_ONNX_ALL_NUMBERS_MAX (UINT64_C(1) << 26)

/* Lists of layouts. */
#define PSD_ONNX_LAYOUTS 256u

/* Of a tensor's elements, as the file numbers them. */
enum psd_onnx_type {
	PSD_ONNX_FLOAT = 1,
	PSD_ONNX_UINT8,
	PSD_ONNX_INT8,
	PSD_ONNX_UINT16,
	PSD_ONNX_INT16,
	PSD_ONNX_INT32,
	PSD_ONNX_INT64,
	PSD_ONNX_STRING,
	PSD_ONNX_BOOL,
	PSD_ONNX_FLOAT16,
	PSD_ONNX_DOUBLE,
	PSD_ONNX_UINT32,
	PSD_ONNX_UINT64,
	PSD_ONNX_BFLOAT16 = 16,
};

enum psd_onnx_kind {
	PSD_ONNX_ABSENT,   /* an optional input that is left out */
	PSD_ONNX_CONSTANT, /* numbers that no sample changes, parameters among them */
	PSD_ONNX_DATA,	   /* what a layer puts out, perhaps with functions of its elements still to come */
	PSD_ONNX_SCORES,   /* of attention, on their way to the values */
	PSD_ONNX_NOISE,	   /* a random mask: of dropout */
	PSD_ONNX_LABELS,   /* for the loss alone */
	PSD_ONNX_PIECES,   /* a sequence that a SplitToSequence makes of what else the value is */
	PSD_ONNX_NEVER,	   /* false everywhere, such as whether a score is no number */
};

struct psd_onnx_term;
struct psd_onnx_scores;
struct psd_onnx_layout;
struct psd_onnx_weight;

struct psd_onnx_value {
	enum psd_onnx_kind kind;
	unsigned n_dims; /* of constants and noise */
	uint64_t dims[PSD_ONNX_AXES_MAX];
	/* Of a constant. */
	const double *numbers;	    /* row by row; NULL: not read yet */
	const Onnx__Tensor *origin; /* of the file, which it is a view of; NULL: it is computed */
	const double *base;	    /* numbers that were computed, which it is a view of */
	bool is_scattered;	    /* it is no view, but its dims are right */
	bool is_real;		    /* of a type with fractions */
	bool is_count;		    /* of data: whole numbers, as the network's input has them */
	struct psd_onnx_view view;  /* of data, too: of a layer's output */
	const Onnx__Node *splitter; /* of pieces: the node that makes them */
	/* Of data. */
	struct psd_onnx_term *term; /* of the layer's values */
	struct psd_onnx_scores *scores;
	double rotary_base; /* of a rotation that is still to come; 0: none */
	double kept;	    /* of noise: which share it keeps; 0: not known */
};

struct psd_onnx {
	const char *path;
	const Onnx__Graph *graph;
	const Onnx__Node *node; /* being read */
	struct psd_arena arena;
	uint64_t n_numbers; /* that constants have in the arena */
	uint64_t most_numbers;
	struct psd_graph_build build;
	struct psd_names names;	       /* of values, to their numbers */
	struct psd_onnx_value *values; /* by number */
	unsigned *uses;		       /* by number: how many inputs of nodes that count it is */
	unsigned *readers;	       /* by number: the first of these nodes */
	unsigned *makers;	       /* by number: 1 + the node that makes it; 0: none does */
	bool *is_done;		       /* of nodes, by number: others have done it along with theirs */
	bool has_loss;
	bool has_lines;		  /* maps of one side, which a window slides over */
	struct psd_names owners;  /* names of matrices, to the first layer that multiplies by each */
	struct psd_names repeats; /* names that layers were to have, to how many did */
	const struct psd_onnx_weight *weights;
	const struct psd_onnx_layout *layouts[PSD_ONNX_LAYOUTS]; /* that exist already, by layer */
	int64_t version;					 /* of the operators */
	struct psd_error *err;
};

/* ---- nodes (nodes.c) ---- */

/* "path: node 'name' (Op): ..." PSD_EINVAL. */
enum psd_status psd_onnx_refuse(const struct psd_onnx *onnx, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
enum psd_status psd_onnx_no_memory(const struct psd_onnx *onnx);

bool psd_onnx_is_foreign(const Onnx__Node *node); /* of another domain than ONNX's own */
/* Of the value that has a name; 0, the absent one's: none has. */
unsigned psd_onnx_number_of(const struct psd_onnx *onnx, const char *name);
struct psd_onnx_value *psd_onnx_named(const struct psd_onnx *onnx, const char *name);
/* The node's input or output; a value of kind PSD_ONNX_ABSENT where there is none. */
struct psd_onnx_value *psd_onnx_input(const struct psd_onnx *onnx, unsigned i);
struct psd_onnx_value *psd_onnx_output(const struct psd_onnx *onnx, unsigned i);

const Onnx__Attribute *psd_onnx_attribute(const Onnx__Node *node, const char *name); /* NULL: none */
int64_t psd_onnx_integer(const struct psd_onnx *onnx, const char *name, int64_t otherwise);
double psd_onnx_number(const struct psd_onnx *onnx, const char *name, double otherwise);
bool psd_onnx_text_is(const struct psd_onnx *onnx, const char *name, const char *text); /* false: absent, too */
/* Up to `most` whole numbers of an attribute, or else of input `i` (0: of none, since that is data); *n = 0: neither is
 * there. */
enum psd_status psd_onnx_integers(struct psd_onnx *onnx, const char *name, unsigned i, int64_t integers[],
				  unsigned most, unsigned *n) PSD_MUST_CHECK;
/* An axis of so many, which may count from behind. */
enum psd_status psd_onnx_axis(const struct psd_onnx *onnx, int64_t given, unsigned n_axes,
			      unsigned *axis) PSD_MUST_CHECK;
/* Which of so many the node names as 'axes', *n of them; are_added: they come to these. */
enum psd_status psd_onnx_mark_axes(struct psd_onnx *onnx, unsigned n_axes, bool are_added,
				   bool is_marked[PSD_ONNX_AXES_MAX], unsigned *n) PSD_MUST_CHECK;

/* ---- constants (constant.c) ---- */

bool psd_onnx_is_real(int32_t type); /* it has fractions */
/* A tensor of the file, whose numbers are not read yet. */
enum psd_status psd_onnx_constant_of(struct psd_onnx *onnx, const Onnx__Tensor *tensor,
				     struct psd_onnx_value *value) PSD_MUST_CHECK;
uint64_t psd_onnx_elements(const struct psd_onnx_value *constant);
/* Room for the constant's numbers, which becomes constant->numbers and stays until the end. */
enum psd_status psd_onnx_take_numbers(struct psd_onnx *onnx, struct psd_onnx_value *constant,
				      double **numbers) PSD_MUST_CHECK;
/* Sets constant->numbers. */
enum psd_status psd_onnx_read(struct psd_onnx *onnx, struct psd_onnx_value *constant) PSD_MUST_CHECK;
/* A view of so many dims, row by row. False: there is none, since one of them is 0. */
bool psd_onnx_by_rows(const struct psd_onnx_value *constant, struct psd_onnx_view *view);
/* Where what a view counts e-th, along its axes, lies. */
uint64_t psd_onnx_place(const struct psd_onnx_view *view, uint64_t e);
/* Numbers of a tensor of the file, by where they lie. */
struct psd_onnx_source {
	const Onnx__Tensor *tensor;
	const uint8_t *raw; /* NULL: they are in a field of a type */
	uint8_t *owned;
	unsigned field;
};
/* On success the source is the caller's to close. PSD_EINVAL, PSD_EFILE, PSD_ENOMEM. */
enum psd_status psd_onnx_source_open(struct psd_onnx_source *source, const struct psd_onnx *onnx,
				     const Onnx__Tensor *tensor) PSD_MUST_CHECK;
/* Notes the file that a tensor's numbers are in, if that is another, as one that is read. PSD_EINVAL. */
enum psd_status psd_onnx_note_input(const struct psd_onnx *onnx, const Onnx__Tensor *tensor) PSD_MUST_CHECK;
double psd_onnx_source_number(const struct psd_onnx_source *source, uint64_t place);
void psd_onnx_source_close(struct psd_onnx_source *source);
bool psd_onnx_is_scalar(struct psd_onnx *onnx, struct psd_onnx_value *value, double *number);
/* Of a layer with so many channels: *is_learned; else it is absent, or all its numbers are the neutral one. */
enum psd_status psd_onnx_check_vector(struct psd_onnx *onnx, struct psd_onnx_value *value, uint64_t channels,
				      double neutral, bool *is_learned) PSD_MUST_CHECK;
/* What is of the file and not computed. Several such values that meet data are learned; a single one may be a number.
 */
bool psd_onnx_is_parameter(const struct psd_onnx_value *value);
bool psd_onnx_is_learned(const struct psd_onnx_value *value);

/* ---- computing (compute.c) ---- */

/* Computes all outputs of a node whose inputs are constants. *is_done false: it is none that can be. */
enum psd_status psd_onnx_compute(struct psd_onnx *onnx, bool *is_done) PSD_MUST_CHECK;

/* ---- shapes (shapes.c) ---- */

/* Of the node, when it only looks at its input in another way. *is_done false: it does more. */
enum psd_status psd_onnx_see(struct psd_onnx *onnx, bool *is_done) PSD_MUST_CHECK;
/* How the node's first input lies. PSD_EINVAL where it cannot be taken apart. */
enum psd_status psd_onnx_read_view(struct psd_onnx *onnx, struct psd_onnx_view *view) PSD_MUST_CHECK;
/* Binds an output to a value seen through a view. */
enum psd_status psd_onnx_put_view(struct psd_onnx *onnx, struct psd_onnx_value *of, const struct psd_onnx_view *view,
				  unsigned output) PSD_MUST_CHECK;
/* Binds the first output to the first input with these sides. */
enum psd_status psd_onnx_reshape_to(struct psd_onnx *onnx, struct psd_onnx_view view, const uint64_t sides[],
				    unsigned n) PSD_MUST_CHECK;
/* A place that may count from behind, within so many. */
int64_t psd_onnx_clamp(int64_t place, int64_t side);

/* ---- layers (layers.c) ---- */

/* The name that a parameter has in the file; NULL: it has none, or other nodes read it, too. */
const char *psd_onnx_own_name(const struct psd_onnx *onnx, const struct psd_onnx_value *parameter);
/* Adds a layer named after the weight whose name it is given, or else the node (NULL). inputs: their numbers. */
enum psd_status psd_onnx_add(struct psd_onnx *onnx, struct psd_layer_spec *spec, const char *weight,
			     unsigned *number) PSD_MUST_CHECK;
/* A layer that another node's needs, such as a permute: its name is the node's and its kind's. */
enum psd_status psd_onnx_add_beside(struct psd_onnx *onnx, struct psd_layer_spec *spec,
				    unsigned *number) PSD_MUST_CHECK;
/* Such a layer that only moves the values of another, which *layer names before and after. */
enum psd_status psd_onnx_move(struct psd_onnx *onnx, const struct psd_layer_kind *kind,
			      union psd_layer_settings settings, unsigned *layer) PSD_MUST_CHECK;
/* As psd_onnx_add(), one of one input. */
enum psd_status psd_onnx_add_simple(struct psd_onnx *onnx, const struct psd_layer_kind *kind,
				    const union psd_layer_settings *settings, unsigned input,
				    unsigned *number) PSD_MUST_CHECK;
struct psd_shape psd_onnx_shape(const struct psd_onnx *onnx, unsigned layer);
uint64_t psd_onnx_values_of(const struct psd_onnx *onnx, unsigned layer);
/* PSD_EINVAL if samples of the batch lie along that axis. */
enum psd_status psd_onnx_check_inner(struct psd_onnx *onnx, const struct psd_onnx_view *view,
				     unsigned axis) PSD_MUST_CHECK;
/* PSD_EINVAL unless the value is data. */
enum psd_status psd_onnx_check_data(struct psd_onnx *onnx, const struct psd_onnx_value *value) PSD_MUST_CHECK;
/* Adds a layer upon data that lies as it should, named as psd_onnx_add() does, and binds the node's output to it: its
 * axes stay as they are. settings: NULL for its kind's. */
enum psd_status psd_onnx_put_layer(struct psd_onnx *onnx, const struct psd_onnx_value *data,
				   const struct psd_layer_kind *kind, const union psd_layer_settings *settings,
				   const char *weight) PSD_MUST_CHECK;

/* ---- the order of values (layout.c) ---- */

/* Digits of a view, the longest steps first; not those of the batch. Returns how many. */
unsigned psd_onnx_in_memory_order(const struct psd_onnx_view *view, unsigned order[PSD_ONNX_DIGITS_MAX]);
/* The view becomes one of a whole layer, perhaps a new one, whatever its order. */
enum psd_status psd_onnx_make_whole(struct psd_onnx *onnx, struct psd_onnx_view *view) PSD_MUST_CHECK;
/* The view becomes one of a layer, perhaps a new one, whose channels are the digits of the axes that are named first,
 * rows those of the next, columns those of the last; each group of axes may be none. All axes are named, but that the
 * batch may be among them says nothing. is_flat: any shape will do whose values lie in that order. */
struct psd_onnx_order {
	unsigned n[3];
	unsigned axes[3][PSD_ONNX_AXES_MAX];
};
enum psd_status psd_onnx_lay_out(struct psd_onnx *onnx, struct psd_onnx_view *view, const struct psd_onnx_order *order,
				 bool is_flat) PSD_MUST_CHECK;
/* Both become views of whole layers of one shape, whose values lie alike. False in *do_match: their sides differ. */
enum psd_status psd_onnx_match(struct psd_onnx *onnx, struct psd_onnx_view *one, struct psd_onnx_view *other,
			       bool *do_match) PSD_MUST_CHECK;
/* Functions that are still to come become layers, and the view one of these. */
enum psd_status psd_onnx_settle(struct psd_onnx *onnx, struct psd_onnx_value *data) PSD_MUST_CHECK;
/* All at once: settled, and with `axis` as channels, the other axes as rows and columns. */
enum psd_status psd_onnx_channels_first(struct psd_onnx *onnx, struct psd_onnx_value *data,
					unsigned axis) PSD_MUST_CHECK;
/* The same axes of another layer with `channels` in place of that axis, which psd_onnx_channels_first() has had. */
void psd_onnx_follow_channels(const struct psd_onnx *onnx, const struct psd_onnx_view *of, unsigned axis,
			      unsigned layer, struct psd_onnx_value *result);

/* ---- functions of elements (term.c) ---- */

struct psd_onnx_term *psd_onnx_term_new(struct psd_onnx *onnx); /* the identity; NULL without memory */
/* Of the node, when it is a function of one input's elements. *is_done false: it is none. */
enum psd_status psd_onnx_apply(struct psd_onnx *onnx, bool *is_done) PSD_MUST_CHECK;
/* The data with its sign changed, or one divided by it. */
enum psd_status psd_onnx_negate(struct psd_onnx *onnx, struct psd_onnx_value *data) PSD_MUST_CHECK;
enum psd_status psd_onnx_invert(struct psd_onnx *onnx, struct psd_onnx_value *data) PSD_MUST_CHECK;
/* The first is the square of the second, element by element. */
bool psd_onnx_is_square(const struct psd_onnx_value *square, const struct psd_onnx_value *of);
/* Only a product with *factor is still to come. */
bool psd_onnx_term_is_product(const struct psd_onnx_term *term, double *factor);

/* ---- attention (attention.c) ---- */

/* A product of data with data begins it, a product with the values ends it. */
enum psd_status psd_onnx_begin_scores(struct psd_onnx *onnx, const struct psd_onnx_value *queries,
				      const struct psd_onnx_value *keys, struct psd_onnx_value *result) PSD_MUST_CHECK;
enum psd_status psd_onnx_scale_scores(struct psd_onnx *onnx, const struct psd_onnx_value *scores, double factor,
				      struct psd_onnx_value *result) PSD_MUST_CHECK;
/* What a number for each pair of places says: what is added to its score, that one does see the other or does not. */
enum psd_onnx_mask { PSD_ONNX_ADDS, PSD_ONNX_SEES, PSD_ONNX_SEES_NOT };
enum psd_status psd_onnx_mask_scores(struct psd_onnx *onnx, const struct psd_onnx_value *scores,
				     struct psd_onnx_value *mask, enum psd_onnx_mask says,
				     struct psd_onnx_value *result) PSD_MUST_CHECK;
unsigned psd_onnx_axes_of_scores(const struct psd_onnx_value *scores);
enum psd_status psd_onnx_normalize_scores(struct psd_onnx *onnx, const struct psd_onnx_value *scores,
					  struct psd_onnx_value *result) PSD_MUST_CHECK;
enum psd_status psd_onnx_end_scores(struct psd_onnx *onnx, const struct psd_onnx_value *scores,
				    const struct psd_onnx_value *values, struct psd_onnx_value *result) PSD_MUST_CHECK;

/* ---- what files spell out (spelt.c) ---- */

/* Of the node, a mean, and what follows it: all of it becomes one layer. *is_done false: it is something else. */
enum psd_status psd_onnx_match_norm(struct psd_onnx *onnx, bool *is_done) PSD_MUST_CHECK;
/* Of the node, a product, and what follows it: data that are rotated. */
enum psd_status psd_onnx_match_rotation(struct psd_onnx *onnx, bool *is_done) PSD_MUST_CHECK;

/* ---- the values of parameters (weights.c) ---- */

/* The tensor or state of that role ("weight") of a layer has the values of a constant: as they lie, or with its axes in
 * another order (NULL: in their own). role: of static storage. */
enum psd_status psd_onnx_note(struct psd_onnx *onnx, unsigned layer, const char *role,
			      const struct psd_onnx_value *value, const unsigned order[]) PSD_MUST_CHECK;
/* The same for values that are broadcast to data, in the order in which that lies in its layer. */
enum psd_status psd_onnx_note_as(struct psd_onnx *onnx, unsigned layer, const char *role,
				 const struct psd_onnx_value *value, const struct psd_onnx_view *data) PSD_MUST_CHECK;
/* That is what has been noted of it: the same values of the file. */
bool psd_onnx_is_noted(const struct psd_onnx *onnx, unsigned layer, const char *role,
		       const struct psd_onnx_value *value, const unsigned order[]);
/* As psd_onnx_values(), of a graph that is sealed. */
enum psd_status psd_onnx_read_weight(const struct psd_onnx *onnx, const struct psd_graph *graph,
				     const struct psd_tensor *tensor, float values[], bool *is_there) PSD_MUST_CHECK;

/* ---- operators ---- */

typedef enum psd_status psd_onnx_operator_fn(struct psd_onnx *onnx);

/* The node, whatever it is (operators.c). */
enum psd_status psd_onnx_operate(struct psd_onnx *onnx) PSD_MUST_CHECK;
/* Of what the network puts out: of sequences the last; of maps, and of lines that a window has slid over, their
 * channels. */
unsigned psd_onnx_class_axis(const struct psd_onnx *onnx, const struct psd_onnx_value *data);
/* Adds the loss of what the network puts out, with that axis as classes. */
enum psd_status psd_onnx_lose(struct psd_onnx *onnx, struct psd_onnx_value *data, unsigned axis) PSD_MUST_CHECK;

/* (pieces.c) Gather by indices that are known. */
psd_onnx_operator_fn psd_onnx_slice, psd_onnx_split, psd_onnx_gather, psd_onnx_split_to_sequence, psd_onnx_sequence_at;

/* (maps.c) */
psd_onnx_operator_fn psd_onnx_pool, psd_onnx_global_pool, psd_onnx_mean, psd_onnx_resize;

/* (attention.c) All of it in one node. */
psd_onnx_operator_fn psd_onnx_attention;

/* (arithmetic.c) */
psd_onnx_operator_fn psd_onnx_arithmetic, psd_onnx_compare, psd_onnx_where, psd_onnx_noise, psd_onnx_dropout;

/* (products.c) */
psd_onnx_operator_fn psd_onnx_conv, psd_onnx_deconv, psd_onnx_gemm, psd_onnx_matmul, psd_onnx_embed;
/* Data with as much learned for each of one axis's places, or for all places. */
enum psd_status psd_onnx_affine(struct psd_onnx *onnx, struct psd_onnx_value *data,
				const struct psd_onnx_value *learned, bool is_factor) PSD_MUST_CHECK;
/* Reads the window of a layer that slides one over maps, and lays the data out for it; kernel: where the node does not
 * say it. *result gets its axes from psd_onnx_map(), once there is a layer. */
enum psd_status psd_onnx_window(struct psd_onnx *onnx, struct psd_onnx_value *data, struct psd_sides kernel,
				struct psd_window *window, struct psd_onnx_value *result) PSD_MUST_CHECK;
void psd_onnx_map(const struct psd_onnx *onnx, unsigned layer, struct psd_onnx_value *result);

#endif
