/* Reads the shapes of an operator's inputs from the field "Input Dims" of a trace, and finds the inputs that are
 * parameters. */
#ifndef PSD_IMPORT_SHAPES_H
#define PSD_IMPORT_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/import/trace.h"

enum { PSD_SHAPES_MAX = 12, PSD_SHAPES_DIMS_MAX = 6 };

struct psd_input_shape {
	uint64_t dims[PSD_SHAPES_DIMS_MAX];
	unsigned n_dims;
	/* number of values, the product of the dimensions; 0: the input is not a tensor, or is too large */
	uint64_t elements;
};

struct psd_shapes {
	struct psd_input_shape inputs[PSD_SHAPES_MAX];
	unsigned n_inputs; /* number of inputs; 0: the trace has no shapes for this operator */
	/* total number of values in the last input that is a list of tensors; 0: no input is a list */
	uint64_t list_elements;
};

struct psd_shapes psd_shapes_read(const struct psd_trace *trace, const struct psd_trace_op *op);

/* Returns the number of parameters of a recurrent operator, whose parameters are a list of tensors; 0: the operator is
 * not recurrent. */
uint64_t psd_operator_list_parameters(const char *name, const struct psd_shapes *shapes);

/* Operator of PyTorch, and the kinds of layer that it may be. */
struct psd_operator_row {
	const char *name; /* the operator's name, or the beginning of the names of several operators */
	const char *kinds[4];
};
/* Returns the row of the operator with that name; NULL: the operator is not known. */
const struct psd_operator_row *psd_operator_find(const char *name);
/* True if layers that this operator computes usually have a weight. */
bool psd_operator_has_weight(const struct psd_operator_row *row);

/* Parameters among an operator's inputs: weight and bias, or scale and shift. NULL: the operator has no such input. */
struct psd_operator_parameters {
	const struct psd_input_shape *weight, *bias;
};
struct psd_operator_parameters psd_operator_parameters(const struct psd_operator_row *row, const char *name,
						       const struct psd_shapes *shapes);

#endif
