/* Parts of the layers that only a prediction needs (other.c, families.c). Private to the ONNX reader. */
#ifndef PSD_ONNX_OTHER_H
#define PSD_ONNX_OTHER_H

#include "engine/model/onnx/parts.h"

#define PSD_ONNX_OTHER_INPUTS_MAX 64u

/* Axis of an output: a copy of an axis of an input, or a size. */
struct psd_onnx_out_axis {
	const struct psd_onnx_view *of; /* NULL: a size */
	unsigned axis;
	uint64_t size;
};

/* The output of a node, with its work. */
struct psd_onnx_out {
	struct psd_onnx_out_axis axes[PSD_ONNX_AXES_MAX];
	unsigned n;
	uint64_t flops;		/* FLOPs of forward for one sample */
	bool has_parameters;	/* learned inputs are parameters */
	unsigned no_parameters; /* bit i: input i is none */
	bool reads_output;	/* the layer reads a value for each that it writes: rows of a table */
	bool is_map;		/* the axes after the second are spatial */
	bool is_recurrent;
	bool is_product; /* a product of matrices or a convolution */
};

/* Append an axis. False: there are too many, or the size is 0. */
bool psd_onnx_out_add(struct psd_onnx_out *out, uint64_t size);
bool psd_onnx_out_add_of(struct psd_onnx_out *out, const struct psd_onnx_view *view, unsigned axis);
uint64_t psd_onnx_out_values(const struct psd_onnx_out *out); /* number of values of one sample */
/* Sets *out to a matrix product of two values with several axes. False: they do not fit. */
bool psd_onnx_out_product(struct psd_onnx_out *out, const struct psd_onnx_view *left,
			  const struct psd_onnx_view *right);
/* Infers the output of the node by its operator. *is_done is false if that is unknown. */
enum psd_status psd_onnx_infer_out(struct psd_onnx *onnx, struct psd_onnx_out *out, bool *is_done) PSD_MUST_CHECK;
/* True if the node makes a parameter of its quantized values. */
bool psd_onnx_is_quantized_parameter(const struct psd_onnx *onnx);
/* Adds the layer; *result: its output. *is_done is false if its figures are too large. */
enum psd_status psd_onnx_put_other(struct psd_onnx *onnx, const struct psd_onnx_out *out,
				   const struct psd_onnx_value *const data[], unsigned n_data,
				   struct psd_onnx_value *result, bool *is_done) PSD_MUST_CHECK;

#endif
