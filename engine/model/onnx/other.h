/* Functions for layers of kind `other`, which stand for nodes that only a prediction needs (other.c, families.c).
 * Private to the ONNX reader. */
#ifndef PSD_ONNX_OTHER_H
#define PSD_ONNX_OTHER_H

#include "engine/model/onnx/parts.h"

#define PSD_ONNX_OTHER_INPUTS_MAX 64u

/* One axis of an output. It has the size of an axis of an input, or a fixed size. */
struct psd_onnx_out_axis {
	const struct psd_onnx_view *of; /* view of the input with that axis; NULL: the size is `size` */
	unsigned axis;
	uint64_t size;
};

/* Output and work of a node, from which a layer of kind `other` is made. */
struct psd_onnx_out {
	struct psd_onnx_out_axis axes[PSD_ONNX_AXES_MAX];
	unsigned n;
	uint64_t flops;	     /* FLOPs of forward for one sample */
	bool has_parameters; /* the node's constant inputs count as parameters of the layer */
	bool is_lifted;	     /* the node computes with constants alone */
	/* constant whose parameters are the layer's only content; NULL: the layer does the work of the node */
	const struct psd_onnx_value *lifted;
	unsigned no_parameters; /* bit i: input i does not count as a parameter */
	/* the layer reads one value for each value that it writes, as if it looked up rows of a table */
	bool reads_output;
	bool is_copy; /* the output is a copy of the first input, of which the node's output is then a view */
	bool is_map;  /* the output is a map: its axes after the second are spatial */
	bool is_recurrent;
	bool is_product; /* a product of matrices or a convolution */
};

/* Append an axis to the output: one of size `size`, or a copy of axis `axis` of the view. False: the output has too
 * many axes, or the size is 0. */
bool psd_onnx_out_add(struct psd_onnx_out *out, uint64_t size);
bool psd_onnx_out_add_of(struct psd_onnx_out *out, const struct psd_onnx_view *view, unsigned axis);
/* Three functions for a constant or data: return its number of axes, return the size of an axis, and append a copy of
 * an axis to the output. */
unsigned psd_onnx_axes_of(const struct psd_onnx_value *value);
uint64_t psd_onnx_dim_of(const struct psd_onnx_value *value, unsigned axis);
bool psd_onnx_out_add_axis(struct psd_onnx_out *out, const struct psd_onnx_value *value, unsigned axis);
uint64_t psd_onnx_out_values(const struct psd_onnx_out *out); /* number of values of one sample */
/* Sets *out to the output of a matrix product over the last two axes; other axes are broadcast. False: the shapes of
 * the views do not fit. */
bool psd_onnx_out_product(struct psd_onnx_out *out, const struct psd_onnx_view *left,
			  const struct psd_onnx_view *right);
/* Sets *out to the output of onnx->node, as the rules of its operator say. *is_done is false if psd has no rule for the
 * operator. */
enum psd_status psd_onnx_infer_out(struct psd_onnx *onnx, struct psd_onnx_out *out, bool *is_done) PSD_MUST_CHECK;
/* Rules of operators that select by value or sample regions (sizes.c): each sets *out to the output of onnx->node.
 * False: its shape is not known. */
bool psd_onnx_out_non_zero(struct psd_onnx *onnx, struct psd_onnx_out *out);
bool psd_onnx_out_chosen(struct psd_onnx *onnx, struct psd_onnx_out *out);
bool psd_onnx_out_suppression(struct psd_onnx *onnx, struct psd_onnx_out *out);
bool psd_onnx_out_regions(struct psd_onnx *onnx, struct psd_onnx_out *out);
bool psd_onnx_out_grid(struct psd_onnx *onnx, struct psd_onnx_out *out);
bool psd_onnx_out_columns(struct psd_onnx *onnx, struct psd_onnx_out *out);
bool psd_onnx_out_one_hot(struct psd_onnx *onnx, struct psd_onnx_out *out);
/* True if onnx->node only converts quantized values of the file to a parameter. */
bool psd_onnx_is_quantized_parameter(const struct psd_onnx *onnx);
/* Adds a layer of kind `other` with the output `out`, which reads the n_data values data[]. *result: output of the
 * layer. *is_done is false, and no layer is added, if a size is too large. */
enum psd_status psd_onnx_put_other(struct psd_onnx *onnx, const struct psd_onnx_out *out,
				   const struct psd_onnx_value *const data[], unsigned n_data,
				   struct psd_onnx_value *result, bool *is_done) PSD_MUST_CHECK;

#endif
