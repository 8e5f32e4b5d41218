/* Layer kinds. Each has a row in the list below and a descriptor in kinds/. Other code reads the descriptor and does
 * not compare kinds; only devices have a row of their own for each kind. */
#ifndef PSD_KIND_H
#define PSD_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/model/settings.h"

/* Kinds that devices execute, in the order in which messages list them: conv is psd_layer_conv. */
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
	ROW(linear)                                                                                                    \
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

/* Devices read the network's input themselves. */
#define PSD_LAYER_KINDS(ROW) ROW(input) PSD_CARRIED_OUT_KINDS(ROW)

struct psd_key;
struct psd_graph_build;
struct psd_layer;

/* Rate of the device that bounds the arithmetic; without one, memory alone bounds the layer. */
enum psd_arithmetic { PSD_ARITHMETIC_NONE, PSD_ARITHMETIC_CONV, PSD_ARITHMETIC_GEMM };

struct psd_layer_work {
	uint64_t forward_flops;
	uint64_t data_flops;	  /* backward, for the gradients of the inputs */
	uint64_t parameter_flops; /* backward, for the gradients of the parameters */
	uint64_t kept_values;	  /* kept from forward to backward, beside the output */
};

struct psd_layer_kind {
	const char *name;      /* name in model files */
	unsigned least_inputs; /* exact number of inputs, unless takes_more_inputs */
	bool takes_more_inputs;
	bool is_in_place; /* the output overwrites the input */
	bool is_loss;	  /* it compares with the labels: backward starts here */
	bool reads_twice; /* statistics of its input, then the input again; backward likewise */
	bool reads_rows;  /* it reads only the parameter rows that its input names, as many values as its output has */
	enum psd_arithmetic arithmetic;
	const struct psd_key *keys; /* keys in model files, which set members of the settings; NULL: none */
	union psd_layer_settings defaults;
	/* Sets layer->shape from the settings and the shapes of the inputs, found in layers[]. The caller has checked
	 * the number of inputs, and checks the size of the result. PSD_EINVAL at the place `at` if the shapes do not
	 * fit. NULL: the shape is that of the first input. */
	enum psd_status (*infer)(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				 struct psd_error *err);
	/* Adds the tensors and states with psd_graph_build_tensor() and psd_graph_build_state(); the shape is known.
	 * False: out of memory. NULL: there are none. */
	bool (*declare)(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in);
	struct psd_layer_work per_element; /* work for each value of the output; not used if there is `count` */
	/* Work for one sample; the shape is known. Only arithmetic counts: no addresses, random numbers or copies.
	 * NULL: per_element holds. */
	struct psd_layer_work (*count)(const struct psd_layer *layer, struct psd_shape in);
};

#define PSD_DECLARE_LAYER_KIND(kind) extern const struct psd_layer_kind psd_layer_##kind;
PSD_LAYER_KINDS(PSD_DECLARE_LAYER_KIND)
#undef PSD_DECLARE_LAYER_KIND

extern const struct psd_layer_kind *const psd_layer_kinds[]; /* ends with NULL */

#endif
