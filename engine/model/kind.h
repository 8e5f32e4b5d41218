/* Layer kinds. Each kind has a row in the list below, and a descriptor (struct psd_layer_kind) in a file of kinds/.
 * Other code reads the descriptor instead of comparing kinds. Only devices have code for single kinds: a table with a
 * row of functions for each kind. */
#ifndef PSD_KIND_H
#define PSD_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/model/settings.h"

/* Layer kinds that devices execute, in the order in which messages list them. ROW(conv) means psd_layer_conv. */
#define PSD_CARRIED_OUT_KINDS(ROW)                                                                                     \
	ROW(conv)                                                                                                      \
	ROW(deconv)                                                                                                    \
	ROW(pool)                                                                                                      \
	ROW(global_pool)                                                                                               \
	ROW(lrn)                                                                                                       \
	ROW(batch_norm)                                                                                                \
	ROW(layer_norm)                                                                                                \
	ROW(rms_norm)                                                                                                  \
	ROW(scale)                                                                                                     \
	ROW(relu)                                                                                                      \
	ROW(prelu)                                                                                                     \
	ROW(sigmoid)                                                                                                   \
	ROW(tanh)                                                                                                      \
	ROW(elu)                                                                                                       \
	ROW(clip)                                                                                                      \
	ROW(affine)                                                                                                    \
	ROW(abs)                                                                                                       \
	ROW(exp)                                                                                                       \
	ROW(log)                                                                                                       \
	ROW(softplus)                                                                                                  \
	ROW(gelu)                                                                                                      \
	ROW(silu)                                                                                                      \
	ROW(power)                                                                                                     \
	ROW(dropout)                                                                                                   \
	ROW(inner_product)                                                                                             \
	ROW(embedding)                                                                                                 \
	ROW(position)                                                                                                  \
	ROW(prefix)                                                                                                    \
	ROW(attention)                                                                                                 \
	ROW(concat)                                                                                                    \
	ROW(slice)                                                                                                     \
	ROW(add)                                                                                                       \
	ROW(multiply)                                                                                                  \
	ROW(reshape)                                                                                                   \
	ROW(permute)                                                                                                   \
	ROW(shuffle)                                                                                                   \
	ROW(resize)                                                                                                    \
	ROW(softmax)                                                                                                   \
	ROW(softmax_loss)

/* All layer kinds. Devices do not execute the kind `input`: they read the samples directly. The kind `other` is only
 * for predictions. */
#define PSD_LAYER_KINDS(ROW) ROW(input) PSD_CARRIED_OUT_KINDS(ROW) ROW(other)

struct psd_key;
struct psd_graph_build;
struct psd_layer;

/* Arithmetic of a layer, which determines the peak rate of a device for this layer. NONE: the layer's time depends only
 * on the rate of the memory. */
enum psd_arithmetic { PSD_ARITHMETIC_NONE, PSD_ARITHMETIC_CONV, PSD_ARITHMETIC_GEMM };

struct psd_layer_work {
	uint64_t forward_flops;
	uint64_t data_flops;	  /* FLOPs of backward for the gradients of the inputs */
	uint64_t parameter_flops; /* FLOPs of backward for the gradients of the parameters */
	uint64_t kept_values;	  /* number of values that forward stores for backward, in addition to the output */
	uint64_t read_values;	  /* number of values that forward reads; 0: all of the inputs and parameters */
};

struct psd_layer_kind {
	const char *name;      /* name of the kind in model files */
	unsigned least_inputs; /* required number of inputs; if takes_more_inputs is true, the smallest number */
	bool takes_more_inputs;
	bool is_in_place; /* the output overwrites the input */
	bool is_loss;	  /* the layer compares its input with the labels; the backward pass starts at this layer */
	/* The layer reads its input twice: first for statistics, then to compute its output. Backward also reads
	 * twice. */
	bool reads_twice;
	bool is_predicted_only; /* no device executes the layer */
	/* The layer reads only some rows of its parameters, such as an embedding. The values of its input are the
	 * numbers of these rows. */
	bool reads_rows;
	enum psd_arithmetic arithmetic;
	/* keys of the kind in model files, which set members of the settings; NULL: none */
	const struct psd_key *keys;
	union psd_layer_settings defaults;
	/* Sets layer->shape from the settings and the shapes of the inputs, which are in layers[]. The caller has
	 * checked the number of inputs, and checks the size of the result. PSD_EINVAL at the place `at`: the shapes do
	 * not fit. NULL: the output has the shape of the first input. */
	enum psd_status (*infer)(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				 struct psd_error *err);
	/* Appends the layer's tensors and states by psd_graph_build_tensor() and psd_graph_build_state(). layer->shape
	 * is set; in: shape of the first input. False: out of memory. NULL: the kind has no tensors. */
	bool (*declare)(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in);
	/* work for each value of the output; used only if the function `count` below is NULL */
	struct psd_layer_work per_element;
	/* Returns the work of the layer for one sample. layer->shape is set; in: shape of the first input. Only
	 * arithmetic is counted, not addresses, random numbers or copies. NULL: per_element is used. */
	struct psd_layer_work (*count)(const struct psd_layer *layer, struct psd_shape in);
};

#define PSD_DECLARE_LAYER_KIND(kind) extern const struct psd_layer_kind psd_layer_##kind;
PSD_LAYER_KINDS(PSD_DECLARE_LAYER_KIND)
#undef PSD_DECLARE_LAYER_KIND

extern const struct psd_layer_kind *const psd_layer_kinds[]; /* all layer kinds; ends with NULL */

#endif
