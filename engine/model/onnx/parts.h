/* Internals that the files of the ONNX reader share. A function that returns an error status has set *onnx->err, with
 * the name of the node that is being converted. */
#ifndef PSD_ONNX_PARTS_H
#define PSD_ONNX_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/names.h"
#include "engine/base/text.h"
#include "engine/model/graph_build.h"
#include "engine/model/onnx/onnx.pb-c.h"
#include "engine/model/onnx/view.h"

/* Largest number of values in one constant: a mask for sequences of 4,096 tokens. */
#define PSD_ONNX_NUMBERS_MAX (UINT64_C(1) << 24)
/* Largest number of values in all constants of a file; small files have a lower limit. */
#define PSD_ONNX_ALL_NUMBERS_MAX (UINT64_C(1) << 26)

/* Number of ties that have a remark each. */
#define PSD_ONNX_TIES_SAID 6u
/* Number of lists of known layouts; a layer's layouts are in list (layer number % this). */
#define PSD_ONNX_LAYOUTS 256u

/* Types of values, numbered as in the file. */
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
	PSD_ONNX_ABSENT,   /* optional input that is absent */
	PSD_ONNX_CONSTANT, /* constant: numbers independent of the samples, parameters included */
	PSD_ONNX_DATA,	   /* output of a layer, with an elementwise expression that is not yet a layer */
	PSD_ONNX_SCORES,   /* attention scores; their product with the values is still to come */
	PSD_ONNX_NOISE,	   /* random numbers or a random mask, for dropout */
	PSD_ONNX_LABELS,   /* labels of the loss */
	PSD_ONNX_SEQUENCE, /* several pieces of data or of a constant, made by SplitToSequence */
	PSD_ONNX_FALSE,	   /* false everywhere, such as the result of IsNaN */
	PSD_ONNX_WRONG,	   /* output of a node that is wrong, or of one that reads it */
};

struct psd_onnx_expr;
struct psd_onnx_scores;
struct psd_onnx_layout;
struct psd_onnx_weight;
struct psd_onnx_matrix;

/* A value of the file. Except for `kind`, each comment begins with the kinds of value for which the member is valid. */
struct psd_onnx_value {
	enum psd_onnx_kind kind;
	unsigned n_dims; /* constant, noise: number of dimensions */
	uint64_t dims[PSD_ONNX_AXES_MAX];
	const double *numbers;	    /* constant: its numbers row by row; NULL until they are read */
	const Onnx__Tensor *origin; /* constant: tensor of the file that the view is of; NULL: computed */
	const double *computed;	    /* constant: computed numbers that the view selects from */
	bool is_gathered; /* constant: its rows are those of a parameter in any order, which no view expresses */
	bool is_real;	  /* constant: its type has fractions, like float */
	bool is_integer;  /* data: whole numbers, as in the network's input */
	struct psd_onnx_view view;    /* constant, data: part and order of the values */
	const Onnx__Node *split_node; /* sequence: node SplitToSequence that made it */
	struct psd_onnx_expr *expr;   /* data: elementwise function applied to the layer's output, not yet a layer */
	struct psd_onnx_scores *scores;
	double rotary_base; /* data: base of a rotation that attention still has to apply; 0: none */
	double keep_ratio;  /* noise: share of values that the mask keeps; 0: unknown */
};

/* State of the reader. Arrays are indexed by value number, except those whose comment says "per node". */
struct psd_onnx {
	const char *path;
	const Onnx__Graph *graph;
	const Onnx__Node *node; /* node of the file that is being converted */
	struct psd_arena arena;
	uint64_t n_numbers; /* number of numbers of all constants in the arena */
	uint64_t most_numbers;
	struct psd_graph_build build;
	struct psd_names names; /* map from value names to value numbers */
	struct psd_onnx_value *values;
	unsigned *n_consumers; /* per value: number of inputs of needed nodes that are this value */
	unsigned *consumers;   /* per value: first node that needs it */
	unsigned *producers;   /* per value: 1 + number of the node that makes it; 0: none */
	bool *is_done;	       /* per node: it needs no conversion, or none any more */
	bool has_loss;
	bool has_1d_windows;		   /* a window was seen that moves along a single axis */
	struct psd_onnx_matrix **matrices; /* layers with a whole matrix of the file, in their order */
	unsigned n_matrices;
	struct psd_names owners;  /* map from tensors of the file to the first of these that has it */
	struct psd_names repeats; /* map from layer names to the number of layers that wanted the name */
	const struct psd_onnx_weight *weights;
	const struct psd_onnx_layout *layouts[PSD_ONNX_LAYOUTS]; /* known layouts of layers, in lists by layer number */
	int64_t version;					 /* version of ONNX's operators in the file */
	const struct psd_model_choices *choices;		 /* NULL: none */
	bool tied_used[PSD_MODEL_TIED_MAX];			 /* per entry of `tied`: a layer has the name */
	struct psd_text remarks, doubts;			 /* the graph has them */
	unsigned n_ties;
	unsigned n_open, first_open; /* tables that values could not be compared with: number, layer of the first */
	unsigned n_copies;	     /* matrices that the file has once and the network for each of several modules */
	uint64_t copied_parameters;
	char first_copy[PSD_GRAPH_NAME_MAX + 1]; /* module of the first of them */
	uint64_t *used;				 /* per value: number of its numbers that parameters of layers have */
	struct psd_text mistakes;		 /* messages about all wrong nodes */
	unsigned n_mistakes, n_unsaid;
	unsigned n_foreign; /* operators of other domains, whose work is not known */
	const Onnx__Node *first_foreign;
	bool *is_output;       /* per output of the file: it counts */
	unsigned first_output; /* number of the output that has the loss */
	struct psd_error *err;
};

/* Function that tries one interpretation of the node. *is_done is false, with PSD_OK, if it does not apply. */
typedef enum psd_status psd_onnx_try_fn(struct psd_onnx *onnx, bool *is_done);

/* ---- nodes (nodes.c) ---- */

/* Fills onnx->err with "path: node 'name' (Op) ..."; returns PSD_EINVAL. */
enum psd_status psd_onnx_refuse(const struct psd_onnx *onnx, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
enum psd_status psd_onnx_no_memory(const struct psd_onnx *onnx);

bool psd_onnx_is_foreign(const Onnx__Node *node); /* true if the node's operator is not in ONNX's own domain */
/* Number of the value with that name; 0, whose kind is PSD_ONNX_ABSENT, if there is none. */
unsigned psd_onnx_number_of(const struct psd_onnx *onnx, const char *name);
struct psd_onnx_value *psd_onnx_named(const struct psd_onnx *onnx, const char *name);
/* Returns input i of the node; next: output i. A value of kind PSD_ONNX_ABSENT if the node has fewer. */
struct psd_onnx_value *psd_onnx_input(const struct psd_onnx *onnx, unsigned i);
struct psd_onnx_value *psd_onnx_output(const struct psd_onnx *onnx, unsigned i);

const Onnx__Attribute *psd_onnx_attribute(const Onnx__Node *node, const char *name); /* by its name; NULL if absent */
int64_t psd_onnx_integer(const struct psd_onnx *onnx, const char *name, int64_t otherwise);
double psd_onnx_number(const struct psd_onnx *onnx, const char *name, double otherwise);
bool psd_onnx_text_is(const struct psd_onnx *onnx, const char *name, const char *text); /* attribute; false if absent */
/* Reads up to `most` whole numbers from an attribute or, without one, from input i > 0; *n is 0 if both are absent. */
enum psd_status psd_onnx_integers(struct psd_onnx *onnx, const char *name, unsigned i, int64_t integers[],
				  unsigned most, unsigned *n) PSD_MUST_CHECK;
/* Checks the number of an axis and sets *axis; a negative number counts from the end. */
enum psd_status psd_onnx_axis(const struct psd_onnx *onnx, int64_t number, unsigned n_axes,
			      unsigned *axis) PSD_MUST_CHECK;
/* Marks the axes listed in 'axes', *n of them. are_added: these axes are new ones, and are counted with the others. */
enum psd_status psd_onnx_mark_axes(struct psd_onnx *onnx, unsigned n_axes, bool are_added,
				   bool is_marked[PSD_ONNX_AXES_MAX], unsigned *n) PSD_MUST_CHECK;

/* ---- constants (constant.c) ---- */

bool psd_onnx_is_real(int32_t type); /* true if the type has fractions, like float */
/* Makes a constant from a tensor of the file, without reading its numbers. */
enum psd_status psd_onnx_constant_of(struct psd_onnx *onnx, const Onnx__Tensor *tensor,
				     struct psd_onnx_value *value) PSD_MUST_CHECK;
uint64_t psd_onnx_elements(const struct psd_onnx_value *constant);
/* Allocates memory for all of the constant's numbers. */
enum psd_status psd_onnx_alloc_numbers(struct psd_onnx *onnx, struct psd_onnx_value *constant,
				       double **numbers) PSD_MUST_CHECK;
/* Reads the constant's numbers into constant->numbers, unless they are there. */
enum psd_status psd_onnx_read_numbers(struct psd_onnx *onnx, struct psd_onnx_value *constant) PSD_MUST_CHECK;
/* Sets *view to all numbers of the constant, row by row. False: a dimension is 0. */
bool psd_onnx_by_rows(const struct psd_onnx_value *constant, struct psd_onnx_view *view);
/* Offset of element e of a view, if elements are counted along its axes. */
uint64_t psd_onnx_offset(const struct psd_onnx_view *view, uint64_t e);
/* Access to the numbers of a tensor in the file, by offset. */
struct psd_onnx_source {
	const Onnx__Tensor *tensor;
	const uint8_t *raw; /* bytes of the numbers; NULL: they are in a typed field */
	uint8_t *owned;
	unsigned field;
};
/* Opens the numbers of a tensor. On success the caller closes the source. PSD_EINVAL, PSD_EFILE, PSD_ENOMEM. */
enum psd_status psd_onnx_source_open(struct psd_onnx_source *source, const struct psd_onnx *onnx,
				     const Onnx__Tensor *tensor) PSD_MUST_CHECK;
double psd_onnx_source_number(const struct psd_onnx_source *source, uint64_t offset);
void psd_onnx_source_close(struct psd_onnx_source *source);
/* Registers the tensor's file of external data, if it has one, as an input of the process. PSD_EINVAL. */
enum psd_status psd_onnx_note_input(const struct psd_onnx *onnx, const Onnx__Tensor *tensor) PSD_MUST_CHECK;
bool psd_onnx_is_scalar(struct psd_onnx *onnx, struct psd_onnx_value *value, double *number);
/* Checks a scale or shift of a layer. It must be a parameter with a value for each channel (*is_learned), or absent, or
 * filled with the neutral number. */
enum psd_status psd_onnx_check_vector(struct psd_onnx *onnx, struct psd_onnx_value *value, uint64_t channels,
				      double neutral, bool *is_learned) PSD_MUST_CHECK;
/* True if the constant is a tensor of the file with fractions; next: if it also has several values (is learned). */
bool psd_onnx_is_parameter(const struct psd_onnx_value *value);
bool psd_onnx_is_learned(const struct psd_onnx_value *value);
/* True if a prediction takes a computed constant for a parameter, as in a network whose values were left out. */
bool psd_onnx_is_made(const struct psd_onnx *onnx, const struct psd_onnx_value *value);

/* ---- constant folding (fold.c) ---- */

/* Tries to compute all outputs of a node whose inputs are constants. */
PSD_MUST_CHECK psd_onnx_try_fn psd_onnx_try_fold;

/* ---- shapes (shapes.c) ---- */

/* Tries to convert a node whose outputs are views of its input. */
PSD_MUST_CHECK psd_onnx_try_fn psd_onnx_try_view;
/* Sets *view to that of the node's first input. PSD_EINVAL if it has none. */
enum psd_status psd_onnx_read_view(struct psd_onnx *onnx, struct psd_onnx_view *view) PSD_MUST_CHECK;
/* Sets output number `output` of the node to the value `of`, seen through `view`. */
enum psd_status psd_onnx_put_view(struct psd_onnx *onnx, struct psd_onnx_value *of, const struct psd_onnx_view *view,
				  unsigned output) PSD_MUST_CHECK;
/* Sets the first output to the first input, seen through `view`, which is reshaped to these dims. */
enum psd_status psd_onnx_reshape_to(struct psd_onnx *onnx, struct psd_onnx_view view, const uint64_t dims[],
				    unsigned n) PSD_MUST_CHECK;
/* Limits a position along an axis to 0..dim; a negative one counts from the end. */
int64_t psd_onnx_clamp(int64_t position, int64_t dim);

/* ---- layers (layers.c) ---- */

/* Name of a parameter in the file; NULL if it has none, or if other nodes read it too. */
const char *psd_onnx_own_name(const struct psd_onnx *onnx, const struct psd_onnx_value *parameter);
/* Writes the node's module in PyTorch, or else its own name; "" if it has neither. */
void psd_onnx_module_of(const struct psd_onnx *onnx, char name[PSD_GRAPH_NAME_MAX + 1]);
/* Writes the name that psd_onnx_add() would give. */
void psd_onnx_preview_name(const struct psd_onnx *onnx, const char *weight, char name[PSD_GRAPH_NAME_MAX + 1]);
/* Adds a layer. Its name is that of the weight or, with NULL, of the node. spec->inputs are set. */
enum psd_status psd_onnx_add(struct psd_onnx *onnx, struct psd_layer_spec *spec, const char *weight,
			     unsigned *number) PSD_MUST_CHECK;
/* Adds a further layer for the node, named after the node and the kind. */
enum psd_status psd_onnx_add_beside(struct psd_onnx *onnx, struct psd_layer_spec *spec,
				    unsigned *number) PSD_MUST_CHECK;
/* Adds a further layer that reads *layer, and sets *layer to its number. */
enum psd_status psd_onnx_move(struct psd_onnx *onnx, const struct psd_layer_kind *kind,
			      union psd_layer_settings settings, unsigned *layer) PSD_MUST_CHECK;
/* Adds a layer of one input, named after the node. settings: NULL for the kind's defaults. */
enum psd_status psd_onnx_add_simple(struct psd_onnx *onnx, const struct psd_layer_kind *kind,
				    const union psd_layer_settings *settings, unsigned input,
				    unsigned *number) PSD_MUST_CHECK;
/* Adds a layer above data and sets the node's output to it, with the same axes. The data must be in the layer's order.
 * weight: as for psd_onnx_add(). */
enum psd_status psd_onnx_put_layer(struct psd_onnx *onnx, const struct psd_onnx_value *data,
				   const struct psd_layer_kind *kind, const union psd_layer_settings *settings,
				   const char *weight) PSD_MUST_CHECK;
struct psd_shape psd_onnx_shape(const struct psd_onnx *onnx, unsigned layer);
uint64_t psd_onnx_values_of(const struct psd_onnx *onnx, unsigned layer);
/* Checks that the axis does not contain the batch. PSD_EINVAL: it does. */
enum psd_status psd_onnx_check_inner(struct psd_onnx *onnx, const struct psd_onnx_view *view,
				     unsigned axis) PSD_MUST_CHECK;
enum psd_status psd_onnx_check_data(struct psd_onnx *onnx, const struct psd_onnx_value *value) PSD_MUST_CHECK;

/* ---- order of values (layout.c) ---- */

/* Sorts the digits of a view by stride, the largest first, without those of the batch. Returns their number. */
unsigned psd_onnx_memory_order(const struct psd_onnx_view *view, unsigned order[PSD_ONNX_DIGITS_MAX]);
/* Makes *view a view of a whole layer, in any order; adds slice layers if necessary. */
enum psd_status psd_onnx_make_whole(struct psd_onnx *onnx, struct psd_onnx_view *view) PSD_MUST_CHECK;
/* Order of axes in a layer: n[0] axes in axes[0] become channels, then rows, columns. All but the batch occur. */
struct psd_onnx_order {
	unsigned n[3];
	unsigned axes[3][PSD_ONNX_AXES_MAX];
};
/* Makes *view a view of a layer with that order of axes; adds layers if necessary. is_flat: the shape may differ if the
 * values have that order. */
enum psd_status psd_onnx_lay_out(struct psd_onnx *onnx, struct psd_onnx_view *view, const struct psd_onnx_order *order,
				 bool is_flat) PSD_MUST_CHECK;
/* Makes both views views of whole layers of one shape with values in the same order. *do_match is false if their dims
 * differ. */
enum psd_status psd_onnx_match(struct psd_onnx *onnx, struct psd_onnx_view *one, struct psd_onnx_view *other,
			       bool *do_match) PSD_MUST_CHECK;
/* Makes data the output of a layer with `axis` as channels and the other axes as rows and columns. */
enum psd_status psd_onnx_channels_first(struct psd_onnx *onnx, struct psd_onnx_value *data,
					unsigned axis) PSD_MUST_CHECK;
/* Sets *result to the output of a layer that reads data laid out by psd_onnx_channels_first(). It has the axes of `of`,
 * except that `axis` has the layer's channels. */
void psd_onnx_follow_channels(const struct psd_onnx *onnx, const struct psd_onnx_view *of, unsigned axis,
			      unsigned layer, struct psd_onnx_value *result);

/* ---- elementwise expressions (expression.c) ---- */

struct psd_onnx_expr *psd_onnx_expr_new(struct psd_onnx *onnx); /* x, the identity; NULL when memory runs out */
/* Tries to convert a node that is an elementwise function of one input to an expression. */
PSD_MUST_CHECK psd_onnx_try_fn psd_onnx_try_function;
/* Adds the layers that compute the value's expression; the value becomes the output of the last one. */
enum psd_status psd_onnx_materialize(struct psd_onnx *onnx, struct psd_onnx_value *data) PSD_MUST_CHECK;
/* Replaces x by -x, or by 1 / x if is_quotient. */
enum psd_status psd_onnx_invert(struct psd_onnx *onnx, struct psd_onnx_value *data, bool is_quotient) PSD_MUST_CHECK;
/* True if the first value is the square of the second. */
bool psd_onnx_is_square(const struct psd_onnx_value *square, const struct psd_onnx_value *of);
/* True if the expression is x * *factor. */
bool psd_onnx_expr_is_product(const struct psd_onnx_expr *expr, double *factor);

/* ---- attention (attention.c) ---- */

/* Begin and end attention scores: the product of data with data, and the product with the values. */
enum psd_status psd_onnx_begin_scores(struct psd_onnx *onnx, const struct psd_onnx_value *queries,
				      const struct psd_onnx_value *keys, struct psd_onnx_value *result) PSD_MUST_CHECK;
enum psd_status psd_onnx_scale_scores(struct psd_onnx *onnx, const struct psd_onnx_value *scores, double factor,
				      struct psd_onnx_value *result) PSD_MUST_CHECK;
/* Meaning of a mask's value for a pair of positions: summand of the score, or true to show or to hide it. */
enum psd_onnx_mask { PSD_ONNX_MASK_ADDS, PSD_ONNX_MASK_SHOWS, PSD_ONNX_MASK_HIDES };
enum psd_status psd_onnx_mask_scores(struct psd_onnx *onnx, const struct psd_onnx_value *scores,
				     struct psd_onnx_value *mask, enum psd_onnx_mask meaning,
				     struct psd_onnx_value *result) PSD_MUST_CHECK;
unsigned psd_onnx_axes_of_scores(const struct psd_onnx_value *scores);
enum psd_status psd_onnx_normalize_scores(struct psd_onnx *onnx, const struct psd_onnx_value *scores,
					  struct psd_onnx_value *result) PSD_MUST_CHECK;
enum psd_status psd_onnx_end_scores(struct psd_onnx *onnx, const struct psd_onnx_value *scores,
				    const struct psd_onnx_value *values, struct psd_onnx_value *result) PSD_MUST_CHECK;

/* Queries and keys, whose product the scores are; the views are of outputs of layers. */
void psd_onnx_factors_of_scores(const struct psd_onnx_value *scores, const struct psd_onnx_value *factors[2]);

/* ---- layers that only a prediction needs (other.c) ---- */

/* Tries to make a layer of the kind other of the node, which psd cannot compute. */
PSD_MUST_CHECK psd_onnx_try_fn psd_onnx_try_other;
bool psd_onnx_allows_other(const struct psd_onnx *onnx); /* true for a prediction */

/* ---- fusion of several nodes (fusion.c) ---- */

/* Tries to fuse the node, a mean, and those after it to a normalisation layer. */
PSD_MUST_CHECK psd_onnx_try_fn psd_onnx_match_norm;
/* Tries to fuse the node, a product, and those after it to a rotation of queries or keys. */
PSD_MUST_CHECK psd_onnx_try_fn psd_onnx_match_rotation;

/* ---- values of parameters (weights.c) ---- */

/* Records that a tensor or state of a layer has the values of a constant. role: its name without the layer's, in static
 * storage. order: order of the constant's axes in the tensor; NULL: unchanged. */
enum psd_status psd_onnx_bind(struct psd_onnx *onnx, unsigned layer, const char *role,
			      const struct psd_onnx_value *value, const unsigned order[]) PSD_MUST_CHECK;
/* Records the same for a constant that is broadcast to data, in the order of the data's layer. */
enum psd_status psd_onnx_bind_broadcast(struct psd_onnx *onnx, unsigned layer, const char *role,
					const struct psd_onnx_value *value,
					const struct psd_onnx_view *data) PSD_MUST_CHECK;
/* True if the tensor was bound to the same values of the file before. */
bool psd_onnx_is_bound(const struct psd_onnx *onnx, unsigned layer, const char *role,
		       const struct psd_onnx_value *value, const unsigned order[]);
/* Reads the values of a tensor of a sealed graph, as psd_onnx_values(). */
enum psd_status psd_onnx_read_weight(const struct psd_onnx *onnx, const struct psd_graph *graph,
				     const struct psd_tensor *tensor, float values[], bool *is_there) PSD_MUST_CHECK;

/* ---- shared matrices (ties.c) ---- */

/* A layer that is about to be added, and the layer above it that has its matrix. */
struct psd_onnx_tie {
	const struct psd_onnx_value *weight, *bias; /* bias: NULL: none */
	const unsigned *order;			    /* order of the weight's axes in the tensor; NULL: unchanged */
	const char *name;			    /* name of the weight in the file; NULL: none */
	bool is_table;				    /* the layer is an embedding */
	bool is_tied;				    /* result: it shares the tensors of layer `owner` */
	unsigned owner;
	bool is_copy;			/* result: a layer above it has the same tensor of the file */
	struct psd_onnx_matrix *matrix; /* result: for psd_onnx_keep_matrix(); NULL: its matrix is not to be shared */
};

/* Decides whether a layer shares its matrix. PSD_EINVAL: the user's choice is impossible. */
enum psd_status psd_onnx_find_tie(struct psd_onnx *onnx, struct psd_onnx_tie *tie) PSD_MUST_CHECK;
/* Keeps the matrix of a layer that was added, for layers below it. */
enum psd_status psd_onnx_keep_matrix(struct psd_onnx *onnx, struct psd_onnx_matrix *matrix,
				     unsigned layer) PSD_MUST_CHECK;
/* True if a layer has that matrix, also transposed if the layer is an embedding. */
bool psd_onnx_is_kept(struct psd_onnx *onnx, const struct psd_onnx_value *value);
/* Checks that every layer that the user ties exists. */
enum psd_status psd_onnx_check_ties(const struct psd_onnx *onnx) PSD_MUST_CHECK;

/* ---- remarks on the graph (remarks.c) ---- */

/* Adds remarks and doubts about all of the file; the graph is complete. */
void psd_onnx_add_remarks(struct psd_onnx *onnx);

/* ---- operators ---- */

typedef enum psd_status psd_onnx_operator_fn(struct psd_onnx *onnx);

/* Converts the node by its operator, with the functions below. */
PSD_MUST_CHECK psd_onnx_operator_fn psd_onnx_convert;
/* Axis of the classes in an output: the last one of a sequence; the channels of maps, or after 1-D windows. */
unsigned psd_onnx_class_axis(const struct psd_onnx *onnx, const struct psd_onnx_value *data);
/* Adds a loss to an output of the network; axis: the axis of its classes. */
enum psd_status psd_onnx_add_loss(struct psd_onnx *onnx, struct psd_onnx_value *data, unsigned axis) PSD_MUST_CHECK;

/* Convert nodes that select parts (slices.c); psd_onnx_gather takes constant indices. */
PSD_MUST_CHECK psd_onnx_operator_fn psd_onnx_slice, psd_onnx_split, psd_onnx_gather, psd_onnx_split_to_sequence,
	psd_onnx_sequence_at;
/* Convert nodes on maps: pooling, means, resizing (maps.c). */
PSD_MUST_CHECK psd_onnx_operator_fn psd_onnx_pool, psd_onnx_global_pool, psd_onnx_mean, psd_onnx_resize;
/* Converts the operator Attention (attention.c). */
PSD_MUST_CHECK psd_onnx_operator_fn psd_onnx_attention;
/* Convert arithmetic, comparisons and dropout (arithmetic.c). */
PSD_MUST_CHECK psd_onnx_operator_fn psd_onnx_arithmetic, psd_onnx_compare, psd_onnx_where, psd_onnx_noise,
	psd_onnx_dropout;
/* Convert convolutions, products and embeddings (products.c). */
PSD_MUST_CHECK psd_onnx_operator_fn psd_onnx_conv, psd_onnx_deconv, psd_onnx_gemm, psd_onnx_matmul, psd_onnx_embed;
/* Adds a layer for a learned factor or summand per position of one axis, or for a learned summand per value. */
enum psd_status psd_onnx_affine(struct psd_onnx *onnx, struct psd_onnx_value *data,
				const struct psd_onnx_value *learned, bool is_factor) PSD_MUST_CHECK;
/* Reads the node's window and lays out the data for it. kernel: size for nodes without 'kernel_shape'. *result becomes
 * data; psd_onnx_put_map() then sets it to the output of a layer, which the node's output becomes. */
enum psd_status psd_onnx_window(struct psd_onnx *onnx, struct psd_onnx_value *data, struct psd_sides kernel,
				struct psd_window *window, struct psd_onnx_value *result) PSD_MUST_CHECK;
void psd_onnx_put_map(const struct psd_onnx *onnx, unsigned layer, struct psd_onnx_value *result);

#endif
