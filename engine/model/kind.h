/* Layer kinds: a row in the list below and a file of kinds/ each. Everything that asks what a kind is asks its
 * descriptor; nothing outside of kinds/ asks which kind it is, but for a device that has a row of its own for each. */
#ifndef PSD_KIND_H
#define PSD_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/model/settings.h"

/* The rows of what devices carry out, in the order in which messages list the kinds: conv is psd_layer_conv of
 * kinds/conv.c. */
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

/* Each device comes by the network's input in its own way. */
#define PSD_LAYER_KINDS(ROW) ROW(input) PSD_CARRIED_OUT_KINDS(ROW)

struct psd_key;
struct psd_graph_build;
struct psd_layer;

/* Which of a device's rates bounds the arithmetic; none: memory alone bounds the layer. */
enum psd_arithmetic { PSD_ARITHMETIC_NONE, PSD_ARITHMETIC_CONV, PSD_ARITHMETIC_GEMM };

struct psd_layer_work {
	uint64_t forward_flops;
	uint64_t data_flops;	  /* backward, of the gradients of the inputs */
	uint64_t parameter_flops; /* backward, of the gradients of the parameters */
	uint64_t kept_values;	  /* beside the output, from forward to backward */
};

struct psd_layer_kind {
	const char *name;      /* in model files */
	unsigned least_inputs; /* and most, unless takes_more_inputs */
	bool takes_more_inputs;
	bool is_in_place; /* the output takes the place of the input */
	bool is_loss;	  /* it compares with the labels: backward begins here */
	bool reads_rows;  /* of its parameters no more than it puts out, those that its input names */
	enum psd_arithmetic arithmetic;
	const struct psd_key *keys;	   /* of model files, into the settings; NULL: none */
	union psd_layer_settings defaults; /* where a key is absent */
	/* Sets layer->shape from the settings and the shapes of its inputs, which layers[] holds; their number is
	 * checked before, the result's size after. PSD_EINVAL with the place `at` when they do not fit. NULL: the shape
	 * of the first input. */
	enum psd_status (*infer)(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				 struct psd_error *err);
	/* Adds the tensors and states with psd_graph_build_tensor() and psd_graph_build_state(), after the shape.
	 * False: out of memory. NULL: it has none. */
	bool (*declare)(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in);
	struct psd_layer_work per_element; /* of one value of the output, unless there is `count` */
	/* Of one sample, after the shape; arithmetic only: no addresses, random numbers or moves of memory. NULL:
	 * so much for each value of the output. */
	struct psd_layer_work (*count)(const struct psd_layer *layer, struct psd_shape in);
};

#define PSD_DECLARE_LAYER_KIND(kind) extern const struct psd_layer_kind psd_layer_##kind;
PSD_LAYER_KINDS(PSD_DECLARE_LAYER_KIND)
#undef PSD_DECLARE_LAYER_KIND

extern const struct psd_layer_kind *const psd_layer_kinds[]; /* NULL at the end */

#endif
