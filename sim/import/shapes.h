/* Shapes of an operator's inputs, as "Input Dims" of a trace has them, and the parameters among them. */
#ifndef PSD_IMPORT_SHAPES_H
#define PSD_IMPORT_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/import/trace.h"

enum { PSD_SHAPES_MAX = 12, PSD_SHAPES_DIMS_MAX = 6 };

struct psd_input_shape {
	uint64_t dims[PSD_SHAPES_DIMS_MAX];
	unsigned n_dims;
	uint64_t elements; /* product of the dims; 0: the input is no tensor, or is too large */
};

struct psd_shapes {
	struct psd_input_shape inputs[PSD_SHAPES_MAX];
	unsigned n_inputs;	/* 0: not recorded */
	uint64_t list_elements; /* values of the tensors in the last input that is a list of tensors */
};

struct psd_shapes psd_shapes_read(const struct psd_trace *trace, const struct psd_trace_op *op);

/* Number of parameters of a recurrent operator, which come as a list of tensors; 0: the operator is another. */
uint64_t psd_operator_list_parameters(const char *name, const struct psd_shapes *shapes);

/* Kinds of layer that an operator may be, in the order of preference; NULL ends them. */
struct psd_operator_row {
	const char *name; /* beginning of the operator's name, or all of it */
	const char *kinds[4];
};
/* Row of an operator; NULL: it is unknown. */
const struct psd_operator_row *psd_operator_find(const char *name);
/* Whether layers of this kind usually have a weight. */
bool psd_operator_has_weight(const struct psd_operator_row *row);

/* The weight and the bias (or scale and shift) among the inputs; NULL: none. */
struct psd_operator_parameters {
	const struct psd_input_shape *weight, *bias;
};
struct psd_operator_parameters psd_operator_parameters(const struct psd_operator_row *row, const char *name,
						       const struct psd_shapes *shapes);

#endif
