/* Functions that the files of the ONNX reader share. A function that returns an error status has filled *onnx->err;
 * the message names the node that is being converted. */
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

/* Largest number of values in one constant: enough for the mask of a sequence of 4096 tokens. Fuzzing has its own. */
#ifndef PSD_ONNX_NUMBERS_MAX
#define PSD_ONNX_NUMBERS_MAX (UINT64_C(1) << 24)
#endif
/* Largest number of values in all constants of a file together; for small files the limit is lower. */
#define PSD_ONNX_ALL_NUMBERS_MAX (UINT64_C(1) << 26)

/* Largest number of tied layers that get a remark of their own; more are only counted. */
#define PSD_ONNX_TIES_SAID 6u
/* Number of lists of known layouts (psd_onnx.layouts). The known layouts of layer i's output are in list i %
 * PSD_ONNX_LAYOUTS. */
#define PSD_ONNX_LAYOUTS 256u

/* Types of values, with the numbers of the ONNX format. */
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
	PSD_ONNX_ABSENT,   /* an optional input of a node that is not given */
	PSD_ONNX_CONSTANT, /* numbers that do not depend on the samples, parameters included */
	PSD_ONNX_DATA,	   /* output of a layer, to which an elementwise function may still have to be applied */
	PSD_ONNX_SCORES,   /* attention scores. They become a layer only with the product by the values */
	PSD_ONNX_NOISE,	   /* random numbers or a random mask; only dropout can use them */
	PSD_ONNX_LABELS,   /* labels of the loss */
	/* sequence of parts of data or of a constant, made by the operator SplitToSequence */
	PSD_ONNX_SEQUENCE,
	PSD_ONNX_FALSE, /* false for all samples, such as the result of IsNaN */
	PSD_ONNX_WRONG, /* output of a node that cannot be converted, or of a node that reads such an output */
};

/* Branch of a condition that nodes belong to. */
struct psd_onnx_guard {
	const struct psd_onnx_guard *outer; /* NULL: the condition is in the graph itself */
	const char *condition;		    /* name of a value */
	bool is_then;
	bool is_preferred; /* taken if the condition depends on samples */
};

struct psd_onnx_list;
struct psd_onnx_expr;
struct psd_onnx_scores;
struct psd_onnx_layout;
struct psd_onnx_weight;
struct psd_onnx_matrix;

/* A value of the file: an input or output of nodes. The comment of each member begins with the kinds of value for
 * which the member is valid. */
struct psd_onnx_value {
	enum psd_onnx_kind kind;
	unsigned n_dims; /* constant, noise: number of dimensions */
	uint64_t dims[PSD_ONNX_AXES_MAX];
	const double *numbers; /* constant: its numbers, row by row; NULL until psd_onnx_read_numbers() */
	/* constant: tensor of the file from which `view` selects; NULL: from `computed` */
	const Onnx__Tensor *origin;
	const double *computed; /* constant: computed numbers from which `view` selects; NULL: from `origin` */
	/* Constant: selected rows of a parameter, in an order that `view` cannot express. */
	bool is_gathered;
	bool is_real;	  /* constant: its type has fractions, such as float */
	bool is_fixed;	  /* constant of a prediction: PyTorch does not train it, as a mask */
	bool is_computed; /* constant of a prediction: an exporter computed it from a parameter and other values */
	bool is_table; /* constant of a prediction: an exporter wrote out rows of a table, see psd_onnx.table_values */
	/* constant of a prediction: parameter from which it was computed, a number from a number; NULL: there is
	 * none */
	const Onnx__Tensor *derived_from;
	/* constant: number of the value by which an Identity node names it, if the exporter wrote equal tensors only
	 * once; 0: none */
	unsigned alias;
	bool is_integer; /* data: whole numbers, such as the tokens of the network's input */
	/* data: values of the layer's output that belong to this value, and their order; constant: the same for the
	 * numbers in `origin` or `computed` */
	struct psd_onnx_view view;
	const Onnx__Node *split_node;	  /* sequence: the SplitToSequence node that made it; NULL: it is a list */
	const struct psd_onnx_list *list; /* sequence: its values */
	/* data: elementwise function that is still to be applied to the layer's output */
	struct psd_onnx_expr *expr;
	struct psd_onnx_scores *scores;
	/* data: base of a rotary position encoding that attention still has to apply; 0: none */
	double rotary_base;
	double keep_ratio; /* noise: share of values that a dropout mask does not set to 0; 0: not known */
};

/* A sequence of values, one after the other. */
struct psd_onnx_list {
	unsigned n;
	struct psd_onnx_value values[];
};

/* State of the reader. An array has an entry for each value of the file, except where a comment says "per node" or "per
 * output". */
struct psd_onnx {
	const char *path;
	const Onnx__Graph *graph;
	const Onnx__Node *node; /* node of the file that is being converted */
	struct psd_arena arena;
	uint64_t n_numbers; /* number of values of all constants in the arena */
	uint64_t most_numbers;
	bool is_out_of_memory; /* the numbers of a constant had no place */
	struct psd_graph_build build;
	struct psd_names names; /* map from value names to value numbers */
	struct psd_onnx_value *values;
	unsigned n_values;
	bool has_aliases; /* equal parameters are written once, and each has a name by an Identity */
	bool *is_counted; /* per value, by alias: the parameter counts in some layer of a prediction */
	bool has_weights; /* some initializer has several numbers with fractions: literal constants are not trained */
	unsigned *n_consumers; /* per value: number of inputs of needed nodes that have this value */
	unsigned *consumers;   /* per value: number of the first needed node that reads it */
	unsigned *producers;   /* per value: 1 + number of the node whose output it is; 0: it is not an output */
	bool *is_done;	       /* per node: the node was converted, or needs no conversion */
	/* Per node: branch that the node belongs to; NULL: none. The arrays are NULL if no node has a graph. */
	const struct psd_onnx_guard **guards;
	const struct psd_onnx_guard **choices_of; /* per node: then-branch of a node If; NULL for other nodes */
	unsigned n_open_conditions;		  /* nodes If whose condition depends on samples */
	unsigned n_bounds;			  /* nodes whose output's size depends on values */
	const Onnx__Node *first_bound;
	bool has_loss;
	bool has_1d_windows; /* some window of the network moves along a single axis */
	/* array of layers that have a whole matrix of the file as their weight, in the order of the graph */
	struct psd_onnx_matrix **matrices;
	unsigned n_matrices;
	/* map from the name of a tensor in the file to an index in `matrices`: that of the first layer with this
	 * tensor */
	struct psd_names owners;
	/* Map from a layer name that several layers would get to the highest number that was appended to it: 3 for
	 * "name-3". */
	struct psd_names repeats;
	/* map from kind and module of a normalisation to the number of the module's first layer */
	struct psd_names modules;
	const struct psd_onnx_weight *weights;
	/* Layers that were added to put the values of another layer in another order, each with the view that needed
	 * it. They are recorded so that each is added only once. An entry of the array is the head of a linked list. */
	const struct psd_onnx_layout *layouts[PSD_ONNX_LAYOUTS];
	int64_t version;			 /* version of ONNX's set of operators that the file uses */
	const struct psd_model_choices *choices; /* choices of the user; NULL: none */
	bool tied_used[PSD_MODEL_TIED_MAX];	 /* per entry of choices->tied: the file has a layer with that name */
	struct psd_text remarks, doubts; /* remarks and doubts about the conversion; they become those of the graph */
	unsigned n_ties;
	/* Number of embedding tables that could not be compared with a matrix because the file leaves out numbers;
	 * number of the first such layer. */
	unsigned n_open, first_open;
	/* number of matrices that are stored once in the file, although several layers have copies of them */
	unsigned n_copies;
	uint64_t copied_parameters;
	char first_copy[PSD_GRAPH_NAME_MAX + 1]; /* name of the first layer (module in PyTorch) with such a copy */
	bool *is_statistic; /* per value: only statistics need it, which a norm in training computes itself */
	uint64_t *used;	    /* per value: number of its values that are parameters of layers */
	/* per value, for constants with `is_table`: number of parameters of the table; 0: the table of another value */
	uint64_t *table_values;
	/* names of PyTorch's parameters, buffers and constants, as its newer exporter lists them */
	struct psd_names listed;
	unsigned n_listed, n_parameters;
	unsigned n_missing; /* listed parameters that no tensor and no node of the file names */
	const char *first_missing;
	unsigned n_tables, n_equal_tables; /* written-out tables; those whose numbers are all equal */
	struct psd_text mistakes;	   /* messages about all nodes that cannot be converted */
	unsigned n_mistakes, n_unsaid;
	/* number of nodes whose operator is not defined by ONNX itself, so their FLOPs are not known */
	unsigned n_foreign;
	const Onnx__Node *first_foreign;
	bool *is_output;       /* per output of the file: the output is used */
	unsigned first_output; /* number of the output from which the loss is computed */
	struct psd_error *err;
};

/* Function that tries one way to convert the node onnx->node. If this way does not fit the node, it returns PSD_OK and
 * sets *is_done to false. */
typedef enum psd_status psd_onnx_try_fn(struct psd_onnx *onnx, bool *is_done);

/* ---- nodes (nodes.c) ---- */

/* Fills onnx->err with "path: node 'name' (Op) ", followed by the formatted text. Returns PSD_EINVAL. */
enum psd_status psd_onnx_refuse(const struct psd_onnx *onnx, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Refuses the node because the shapes of its inputs do not fit. The message is "has inputs of shapes [2,3] and [4],
 * RULE". rule: shapes that are accepted, such as "must be equal". Returns PSD_EINVAL. */
enum psd_status psd_onnx_refuse_shapes(const struct psd_onnx *onnx, const char *rule);
/* Writes a shape as ONNX does, "[2,3]", and returns text. "[]" is the shape of a single number. */
#define PSD_ONNX_SHAPE_TEXT_MAX 176u /* room for PSD_ONNX_AXES_MAX numbers of 20 digits */
char *psd_onnx_write_shape(char text[PSD_ONNX_SHAPE_TEXT_MAX], const uint64_t dims[], unsigned n_dims);
enum psd_status psd_onnx_no_memory(const struct psd_onnx *onnx);

/* true if the operator is not one of ONNX's standard operators */
bool psd_onnx_is_foreign(const Onnx__Node *node);
/* Returns the number of the value with that name. Returns 0 if there is none; value 0 has the kind PSD_ONNX_ABSENT. */
unsigned psd_onnx_number_of(const struct psd_onnx *onnx, const char *name);
struct psd_onnx_value *psd_onnx_named(const struct psd_onnx *onnx, const char *name);
/* Return input i, or output i, of the node onnx->node. If the node has i or fewer, the value has the kind
 * PSD_ONNX_ABSENT. */
struct psd_onnx_value *psd_onnx_input(const struct psd_onnx *onnx, unsigned i);
struct psd_onnx_value *psd_onnx_output(const struct psd_onnx *onnx, unsigned i);

/* Returns the attribute of the node with that name; NULL: the node does not have it. */
const Onnx__Attribute *psd_onnx_attribute(const Onnx__Node *node, const char *name);
int64_t psd_onnx_integer(const struct psd_onnx *onnx, const char *name, int64_t otherwise);
double psd_onnx_number(const struct psd_onnx *onnx, const char *name, double otherwise);
/* true if the node has the attribute and it is that text */
bool psd_onnx_text_is(const struct psd_onnx *onnx, const char *name, const char *text);
/* Reads up to `most` whole numbers from the attribute `name` or, if it is absent, from input i > 0. *n: their number;
 * 0 if both are absent. */
enum psd_status psd_onnx_integers(struct psd_onnx *onnx, const char *name, unsigned i, int64_t integers[],
				  unsigned most, unsigned *n) PSD_MUST_CHECK;
/* Sets *axis to `number` of n_axes axes, counted from 0; a negative number counts from the end. PSD_EINVAL: there is no
 * such axis. */
enum psd_status psd_onnx_axis(const struct psd_onnx *onnx, int64_t number, unsigned n_axes,
			      unsigned *axis) PSD_MUST_CHECK;
/* Sets is_marked[a] for each axis a in the node's attribute or input 'axes', and *n to their number. are_added: the
 * node adds these axes, so numbers count old and new axes together; n_axes is the number of old ones. */
enum psd_status psd_onnx_mark_axes(struct psd_onnx *onnx, unsigned n_axes, bool are_added,
				   bool is_marked[PSD_ONNX_AXES_MAX], unsigned *n) PSD_MUST_CHECK;

/* ---- graphs inside nodes (inline.c) ---- */

/* Replaces calls of functions, loops of constant length and branches by their nodes. Called before anything else is
 * read. length: bytes of the file. PSD_EINVAL, PSD_ENOMEM. */
enum psd_status psd_onnx_inline(struct psd_onnx *onnx, Onnx__Model *model, size_t length) PSD_MUST_CHECK;

/* ---- constants (constant.c) ---- */

bool psd_onnx_is_real(int32_t type); /* true if the type has fractions, such as float */
/* Sets *value to a constant that has the numbers of a tensor in the file, without reading the numbers. */
enum psd_status psd_onnx_constant_of(struct psd_onnx *onnx, const Onnx__Tensor *tensor,
				     struct psd_onnx_value *value) PSD_MUST_CHECK;
uint64_t psd_onnx_elements(const struct psd_onnx_value *constant);
/* Sets *numbers to memory for all numbers of the constant, owned by the arena. */
enum psd_status psd_onnx_alloc_numbers(struct psd_onnx *onnx, struct psd_onnx_value *constant,
				       double **numbers) PSD_MUST_CHECK;
/* Sets constant->numbers. Does nothing if they were read before. */
enum psd_status psd_onnx_read_numbers(struct psd_onnx *onnx, struct psd_onnx_value *constant) PSD_MUST_CHECK;
/* Sets *view to all numbers of the constant, row by row. False: a dimension is 0, so there are no numbers. */
bool psd_onnx_by_rows(const struct psd_onnx_value *constant, struct psd_onnx_view *view);
/* Returns the distance from the tensor's first number to element e of the view, in numbers. Elements are counted along
 * the axes of the view. */
uint64_t psd_onnx_offset(const struct psd_onnx_view *view, uint64_t e);
/* Access to the numbers of a tensor in the file, by their index. */
struct psd_onnx_source {
	const Onnx__Tensor *tensor;
	/* bytes of the numbers; NULL: they are in a field of their type, such as float_data */
	const uint8_t *raw;
	uint8_t *owned;
	unsigned field;
};
/* Opens the numbers of a tensor; the caller closes *source after success. PSD_EINVAL, PSD_EFILE, PSD_ENOMEM. */
enum psd_status psd_onnx_source_open(struct psd_onnx_source *source, const struct psd_onnx *onnx,
				     const Onnx__Tensor *tensor) PSD_MUST_CHECK;
double psd_onnx_source_number(const struct psd_onnx_source *source, uint64_t offset);
void psd_onnx_source_close(struct psd_onnx_source *source);
/* If the tensor's numbers are in an external file, records that this process reads the file, see psd_inputs_note().
 * PSD_EINVAL. */
enum psd_status psd_onnx_note_input(const struct psd_onnx *onnx, const Onnx__Tensor *tensor) PSD_MUST_CHECK;
bool psd_onnx_is_scalar(struct psd_onnx *onnx, struct psd_onnx_value *value, double *number);
/* True if the value is a constant, and all its numbers are this one. */
bool psd_onnx_is_filled(struct psd_onnx *onnx, struct psd_onnx_value *value, double number);
/* Checks a scale or shift of a layer. It must be a parameter with one value for each channel (*is_learned becomes
 * true), or be absent, or have the value `neutral` everywhere (*is_learned becomes false). */
enum psd_status psd_onnx_check_vector(struct psd_onnx *onnx, struct psd_onnx_value *value, uint64_t channels,
				      double neutral, bool *is_learned) PSD_MUST_CHECK;
/* True if the constant is a tensor of the file whose type has fractions, and is trained. psd_onnx_is_learned(): true
 * if it also has more than one value. */
bool psd_onnx_is_parameter(const struct psd_onnx_value *value);
bool psd_onnx_is_learned(const struct psd_onnx_value *value);
/* True if a prediction counts the constant as a parameter: also a table, or numbers computed from a parameter. */
bool psd_onnx_is_trained(const struct psd_onnx_value *value);
/* True if a prediction counts a computed constant as a parameter. This is for files whose parameters were replaced by
 * computed numbers to save space. */
bool psd_onnx_is_made(const struct psd_onnx *onnx, const struct psd_onnx_value *value);

/* ---- origins of constants (origins.c) ---- */

/* Kind of a name in the exporter's list. */
enum psd_onnx_listed { PSD_ONNX_LISTED_PARAMETER = 1, PSD_ONNX_LISTED_BUFFER, PSD_ONNX_LISTED_CONSTANT };
/* Reads the exporter's list of parameters. For a prediction it also marks initializers that PyTorch does not train,
 * and tables that an exporter wrote out. */
enum psd_status psd_onnx_find_origins(struct psd_onnx *onnx) PSD_MUST_CHECK;
/* True if a prediction counts this very parameter already, in another layer. Without has_aliases it is false for
 * vectors, because equal vectors may be different parameters. */
bool psd_onnx_is_counted(const struct psd_onnx *onnx, const struct psd_onnx_value *value);
/* Records that a layer has the parameter. */
enum psd_status psd_onnx_note_counted(struct psd_onnx *onnx, const struct psd_onnx_value *value) PSD_MUST_CHECK;
/* true if the exporter lists the name as being of that kind */
bool psd_onnx_is_listed(const struct psd_onnx *onnx, const char *name, enum psd_onnx_listed kind);

/* ---- constant folding (fold.c) ---- */

/* Tries to compute all outputs of the node as constants; this way fits nodes with only constant inputs. */
PSD_MUST_CHECK psd_onnx_try_fn psd_onnx_try_fold;

/* Sets the node's output to a part of a constant's numbers, in any order along its axes: n starts, ends and steps.
 * axes: NULL for the first n. */
enum psd_status psd_onnx_slice_numbers(struct psd_onnx *onnx, const int64_t starts[], const int64_t ends[],
				       const int64_t axes[], const int64_t steps[], unsigned n) PSD_MUST_CHECK;

/* ---- shapes (shapes.c) ---- */

/* Tries to convert the node without a layer; this way fits nodes whose outputs are views of their input. */
PSD_MUST_CHECK psd_onnx_try_fn psd_onnx_try_view;
/* Sets *view to the view of the node's first input. PSD_EINVAL: the input is not a value with a view. */
enum psd_status psd_onnx_read_view(struct psd_onnx *onnx, struct psd_onnx_view *view) PSD_MUST_CHECK;
/* Sets output number `output` of the node to a copy of `of` whose view is `view`. */
enum psd_status psd_onnx_put_view(struct psd_onnx *onnx, struct psd_onnx_value *of, const struct psd_onnx_view *view,
				  unsigned output) PSD_MUST_CHECK;
/* Sets the node's first output to its first input, reshaped. view: view of the input; dims: the n dimensions of the
 * output. */
enum psd_status psd_onnx_reshape_to(struct psd_onnx *onnx, struct psd_onnx_view view, const uint64_t dims[],
				    unsigned n) PSD_MUST_CHECK;
/* Returns the position along an axis of size dim, limited to 0..dim; a negative position counts from the end. */
int64_t psd_onnx_clamp(int64_t position, int64_t dim);

/* ---- layers (layers.c) ---- */

/* Returns the name of a parameter in the file; NULL: it is not a tensor of the file, or other nodes read it as
 * well. */
const char *psd_onnx_own_name(const struct psd_onnx *onnx, const struct psd_onnx_value *parameter);
/* Writes the name of the PyTorch module that the node is a part of, or else the node's own name; "" if the file has
 * neither. */
void psd_onnx_module_of(const struct psd_onnx *onnx, char name[PSD_GRAPH_NAME_MAX + 1]);
/* Writes the name that psd_onnx_add() would give to a layer for this node. weight: as there. */
void psd_onnx_preview_name(const struct psd_onnx *onnx, const char *weight, char name[PSD_GRAPH_NAME_MAX + 1]);
/* Adds a layer, whose spec->inputs are set, and sets *number to its number. weight: name of the file's tensor after
 * which the layer is named; NULL: it is named after the node. */
enum psd_status psd_onnx_add(struct psd_onnx *onnx, struct psd_layer_spec *spec, const char *weight,
			     unsigned *number) PSD_MUST_CHECK;
/* Adds a further layer for the node, and sets *number to the layer's number. Its name is that of the node followed by
 * the layer's kind. */
enum psd_status psd_onnx_add_beside(struct psd_onnx *onnx, struct psd_layer_spec *spec,
				    unsigned *number) PSD_MUST_CHECK;
/* Adds a layer whose only input is layer *layer, and sets *layer to its number. */
enum psd_status psd_onnx_move(struct psd_onnx *onnx, const struct psd_layer_kind *kind,
			      union psd_layer_settings settings, unsigned *layer) PSD_MUST_CHECK;
/* Adds a layer whose only input is layer `input`, named after the node, and sets *number to its number. settings: NULL
 * for the kind's defaults. */
enum psd_status psd_onnx_add_simple(struct psd_onnx *onnx, const struct psd_layer_kind *kind,
				    const union psd_layer_settings *settings, unsigned input,
				    unsigned *number) PSD_MUST_CHECK;
/* Adds a layer that reads `data`, and sets the node's output to the layer's output, with the axes of `data`. The data
 * must be a whole layer in its own order. weight: as for psd_onnx_add(). */
enum psd_status psd_onnx_put_layer(struct psd_onnx *onnx, const struct psd_onnx_value *data,
				   const struct psd_layer_kind *kind, const union psd_layer_settings *settings,
				   const char *weight) PSD_MUST_CHECK;
struct psd_shape psd_onnx_shape(const struct psd_onnx *onnx, unsigned layer);
uint64_t psd_onnx_values_of(const struct psd_onnx *onnx, unsigned layer);
/* Checks that an axis of the view does not contain the batch. PSD_EINVAL: it contains the batch. */
enum psd_status psd_onnx_check_inner(struct psd_onnx *onnx, const struct psd_onnx_view *view,
				     unsigned axis) PSD_MUST_CHECK;
enum psd_status psd_onnx_check_data(struct psd_onnx *onnx, const struct psd_onnx_value *value) PSD_MUST_CHECK;

/* ---- order of values (layout.c) ---- */

/* Sets order[] to the indices of a view's digits, from the digit with the largest stride to that with the smallest.
 * Digits of the batch are left out. Returns the number of indices. */
unsigned psd_onnx_memory_order(const struct psd_onnx_view *view, unsigned order[PSD_ONNX_DIGITS_MAX]);
/* Makes *view a view that has each value of its layer once, in any order; adds slice layers if necessary. */
enum psd_status psd_onnx_make_whole(struct psd_onnx *onnx, struct psd_onnx_view *view) PSD_MUST_CHECK;
/* Order of a view's axes in a layer. The n[0] axes in axes[0] become the channels, those in axes[1] the rows, those in
 * axes[2] the columns. All axes except the batch must be listed. */
struct psd_onnx_order {
	unsigned n[3];
	unsigned axes[3][PSD_ONNX_AXES_MAX];
};
/* Adds layers if the axes of *view do not have the given order in the layer, and makes *view a view of the last one.
 * is_flat: only the order of values matters, so the layer may have another shape. */
enum psd_status psd_onnx_lay_out(struct psd_onnx *onnx, struct psd_onnx_view *view, const struct psd_onnx_order *order,
				 bool is_flat) PSD_MUST_CHECK;
/* Adds layers until both views have each value of their layers once, in the same order, and the layers have one shape.
 * *do_match is false if the dimensions of the views differ. */
enum psd_status psd_onnx_match(struct psd_onnx *onnx, struct psd_onnx_view *one, struct psd_onnx_view *other,
			       bool *do_match) PSD_MUST_CHECK;
/* Makes `data` the output of a layer with `axis` as channels, and the other axes as rows and columns; adds layers if
 * necessary. */
enum psd_status psd_onnx_channels_first(struct psd_onnx *onnx, struct psd_onnx_value *data,
					unsigned axis) PSD_MUST_CHECK;
/* Sets *result to the output of layer `layer`, which reads data laid out by psd_onnx_channels_first(). The result has
 * the axes of view `of`, but along `axis` the channels of the layer. */
void psd_onnx_follow_channels(const struct psd_onnx *onnx, const struct psd_onnx_view *of, unsigned axis,
			      unsigned layer, struct psd_onnx_value *result);

/* ---- elementwise expressions (expression.c) ---- */

/* new expression for the function f(x) = x; NULL: out of memory */
struct psd_onnx_expr *psd_onnx_expr_new(struct psd_onnx *onnx);
/* Tries to extend the expression of the node's input; this way fits nodes that are an elementwise function of one
 * input. */
PSD_MUST_CHECK psd_onnx_try_fn psd_onnx_try_function;
/* Adds the layers that compute the data's expression. Afterwards `data` is the output of the last of them. */
enum psd_status psd_onnx_materialize(struct psd_onnx *onnx, struct psd_onnx_value *data) PSD_MUST_CHECK;
/* Replaces the data x by -x; by 1 / x if is_quotient. */
enum psd_status psd_onnx_invert(struct psd_onnx *onnx, struct psd_onnx_value *data, bool is_quotient) PSD_MUST_CHECK;
/* True if `square` is the square of `of`: both are values of the file. */
bool psd_onnx_is_square(const struct psd_onnx_value *square, const struct psd_onnx_value *of);
/* True if the expression is x multiplied by a constant; *factor is set to the constant. */
bool psd_onnx_expr_is_product(const struct psd_onnx_expr *expr, double *factor);

/* ---- attention (attention.c) ---- */

/* psd_onnx_begin_scores() makes attention scores, the product of queries and keys. psd_onnx_end_scores() multiplies
 * them by the values and adds the attention layer. */
enum psd_status psd_onnx_begin_scores(struct psd_onnx *onnx, const struct psd_onnx_value *queries,
				      const struct psd_onnx_value *keys, struct psd_onnx_value *result) PSD_MUST_CHECK;
enum psd_status psd_onnx_scale_scores(struct psd_onnx *onnx, const struct psd_onnx_value *scores, double factor,
				      struct psd_onnx_value *result) PSD_MUST_CHECK;
/* Meaning of a mask's values. ADDS: each is added to a score; SHOWS: true keeps a score; HIDES: true removes it. */
enum psd_onnx_mask { PSD_ONNX_MASK_ADDS, PSD_ONNX_MASK_SHOWS, PSD_ONNX_MASK_HIDES };
enum psd_status psd_onnx_mask_scores(struct psd_onnx *onnx, const struct psd_onnx_value *scores,
				     struct psd_onnx_value *mask, enum psd_onnx_mask meaning,
				     struct psd_onnx_value *result) PSD_MUST_CHECK;
unsigned psd_onnx_axes_of_scores(const struct psd_onnx_value *scores);
enum psd_status psd_onnx_normalize_scores(struct psd_onnx *onnx, const struct psd_onnx_value *scores,
					  struct psd_onnx_value *result) PSD_MUST_CHECK;
enum psd_status psd_onnx_end_scores(struct psd_onnx *onnx, const struct psd_onnx_value *scores,
				    const struct psd_onnx_value *values, struct psd_onnx_value *result) PSD_MUST_CHECK;

/* Sets factors[] to the queries and the keys whose product the scores are. */
void psd_onnx_factors_of_scores(const struct psd_onnx_value *scores, const struct psd_onnx_value *factors[2]);

/* ---- layers that only a prediction needs (other.c) ---- */

/* Tries to convert the node to a layer of kind `other`; this way fits nodes that psd cannot compute, if only a
 * prediction is wanted. */
PSD_MUST_CHECK psd_onnx_try_fn psd_onnx_try_other;
bool psd_onnx_allows_other(const struct psd_onnx *onnx); /* true if the graph is only for a prediction */

/* ---- fusion of several nodes (fusion.c) ---- */

/* Tries to convert the node and those after it to one normalisation layer; this way fits a mean that begins a
 * normalisation. */
PSD_MUST_CHECK psd_onnx_try_fn psd_onnx_match_norm;
/* Tries to convert the node and those after it to a rotary position encoding; this way fits a product of queries or
 * keys. */
PSD_MUST_CHECK psd_onnx_try_fn psd_onnx_match_rotation;

/* ---- values of parameters (weights.c) ---- */

/* Records that a tensor or state of a layer has the values of a constant. role: name of the tensor without the name
 * of the layer, such as "weight", in static storage. order: for each axis of the tensor, the axis of the constant;
 * NULL: the same axes. */
enum psd_status psd_onnx_bind(struct psd_onnx *onnx, unsigned layer, const char *role,
			      const struct psd_onnx_value *value, const unsigned order[]) PSD_MUST_CHECK;
/* Records the same as psd_onnx_bind(), for a constant that is broadcast to the shape of `data`. The values are put in
 * the order of the output of the data's layer. */
enum psd_status psd_onnx_bind_broadcast(struct psd_onnx *onnx, unsigned layer, const char *role,
					const struct psd_onnx_value *value,
					const struct psd_onnx_view *data) PSD_MUST_CHECK;
/* True if psd_onnx_bind() was called before for this tensor with the same values of the file. */
bool psd_onnx_is_bound(const struct psd_onnx *onnx, unsigned layer, const char *role,
		       const struct psd_onnx_value *value, const unsigned order[]);
/* Reads the values of a tensor of the graph, as psd_onnx_values() does. The graph must be sealed. */
enum psd_status psd_onnx_read_weight(const struct psd_onnx *onnx, const struct psd_graph *graph,
				     const struct psd_tensor *tensor, float values[], bool *is_there) PSD_MUST_CHECK;

/* ---- shared matrices (ties.c) ---- */

/* Arguments and results of psd_onnx_find_tie(), about a layer that is going to be added. If the layer shares its matrix
 * with an earlier layer, the two are tied. */
struct psd_onnx_tie {
	const struct psd_onnx_value *weight, *bias; /* weight and bias of the new layer; bias may be NULL */
	/* for each axis of the layer's tensor, the axis of the weight in the file; NULL: the same axes */
	const unsigned *order;
	const char *name; /* name of the weight in the file; NULL: it has no name */
	bool is_table;	  /* the new layer is an embedding */
	bool is_tied;	  /* result: the new layer shares the tensors of layer number `owner` */
	unsigned owner;
	bool is_copy; /* result: an earlier layer has the same tensor of the file, but does not share it */
	/* result: argument of psd_onnx_keep_matrix(); NULL: later layers cannot share this layer's matrix */
	struct psd_onnx_matrix *matrix;
};

/* Decides whether the new layer shares the matrix of an earlier layer. PSD_EINVAL: the user's entry in `tied` cannot be
 * followed. */
enum psd_status psd_onnx_find_tie(struct psd_onnx *onnx, struct psd_onnx_tie *tie) PSD_MUST_CHECK;
/* Records the matrix of layer number `layer`, which was added to the graph, so that later layers can share it. */
enum psd_status psd_onnx_keep_matrix(struct psd_onnx *onnx, struct psd_onnx_matrix *matrix,
				     unsigned layer) PSD_MUST_CHECK;
/* True if a layer of the graph has the matrix `value`. An embedding with the transposed matrix counts, too. */
bool psd_onnx_is_kept(struct psd_onnx *onnx, const struct psd_onnx_value *value);
/* Checks that the file has a layer for each entry of the user's `tied`. PSD_EINVAL: it does not. */
enum psd_status psd_onnx_check_ties(const struct psd_onnx *onnx) PSD_MUST_CHECK;

/* ---- remarks on the graph (remarks.c) ---- */

/* Adds the remarks and doubts about the file as a whole to the graph. Called after the last layer was added. */
void psd_onnx_add_remarks(struct psd_onnx *onnx);

/* ---- operators ---- */

typedef enum psd_status psd_onnx_operator_fn(struct psd_onnx *onnx);

/* Converts the node onnx->node, by one of the functions below. */
PSD_MUST_CHECK psd_onnx_operator_fn psd_onnx_convert;
/* Returns the number of the axis of `data`, an output of the network, that has the classes. In a sequence it is the
 * last axis. In a map it is the axis of channels, even if the windows of the network move along a single axis. */
unsigned psd_onnx_class_axis(const struct psd_onnx *onnx, const struct psd_onnx_value *data);
/* Adds a loss that reads `data`, an output of the network. axis: number of the axis with the classes. */
enum psd_status psd_onnx_add_loss(struct psd_onnx *onnx, struct psd_onnx_value *data, unsigned axis) PSD_MUST_CHECK;

/* Convert nodes that select a part of their input (slices.c). psd_onnx_gather() requires constant indices. */
PSD_MUST_CHECK psd_onnx_operator_fn psd_onnx_slice, psd_onnx_split, psd_onnx_gather, psd_onnx_split_to_sequence,
	psd_onnx_sequence_at, psd_onnx_sequence_of, psd_onnx_sequence_insert, psd_onnx_sequence_length;
/* Convert nodes that work on maps: pooling, means and resizing (maps.c). */
PSD_MUST_CHECK psd_onnx_operator_fn psd_onnx_pool, psd_onnx_global_pool, psd_onnx_mean, psd_onnx_resize;
/* Converts a node of the operator Attention (attention.c). */
PSD_MUST_CHECK psd_onnx_operator_fn psd_onnx_attention;
/* Convert nodes of arithmetic, comparison and dropout (arithmetic.c). */
PSD_MUST_CHECK psd_onnx_operator_fn psd_onnx_arithmetic, psd_onnx_compare, psd_onnx_where, psd_onnx_noise,
	psd_onnx_dropout;
/* Convert convolutions, matrix products and embeddings (products.c). */
PSD_MUST_CHECK psd_onnx_operator_fn psd_onnx_conv, psd_onnx_deconv, psd_onnx_gemm, psd_onnx_matmul, psd_onnx_embed;
/* Adds a layer that multiplies `data` by the parameter `learned` (is_factor) or adds it. The parameter has one value
 * for each position along one axis; as a summand it may also have one for each value of a sample. */
enum psd_status psd_onnx_affine(struct psd_onnx *onnx, struct psd_onnx_value *data,
				const struct psd_onnx_value *learned, bool is_factor) PSD_MUST_CHECK;
/* Reads the node's window, and makes `data` the output of a layer in the order that windows need. kernel: size of the
 * window if the node has no 'kernel_shape'. *result is prepared for psd_onnx_put_map(), which sets it and the node's
 * output to the output of the layer that the caller adds. */
enum psd_status psd_onnx_window(struct psd_onnx *onnx, struct psd_onnx_value *data, struct psd_sides kernel,
				struct psd_window *window, struct psd_onnx_value *result) PSD_MUST_CHECK;
void psd_onnx_put_map(const struct psd_onnx *onnx, unsigned layer, struct psd_onnx_value *result);

#endif
