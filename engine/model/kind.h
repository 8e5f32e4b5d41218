/* Layer kinds. Each has a row in the list below and a descriptor in kinds/. Other code reads the descriptor and does
 * not compare kinds; only devices have a row of their own for each kind. */
#ifndef PSD_KIND_H
#define PSD_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/model/settings.h"

/* Layer kinds that devices execute, in the order in which messages list them; conv stands for psd_layer_conv. */
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

/* All layer kinds. Devices do not execute the kind input: they read the network's input themselves. The kind other is
 * for predictions alone. */
#define PSD_LAYER_KINDS(ROW) ROW(input) PSD_CARRIED_OUT_KINDS(ROW) ROW(other)

struct psd_key;
struct psd_graph_build;
struct psd_layer;

/* Arithmetic of a layer, which selects the device's peak rate; without one, memory alone limits the layer's speed. */
enum psd_arithmetic { PSD_ARITHMETIC_NONE, PSD_ARITHMETIC_CONV, PSD_ARITHMETIC_GEMM };

struct psd_layer_work {
	uint64_t forward_flops;
	uint64_t data_flops;	  /* FLOPs of backward for the gradients of the inputs */
	uint64_t parameter_flops; /* FLOPs of backward for the gradients of the parameters */
	uint64_t kept_values;	  /* number of values kept from forward to backward, beside the output */
	uint64_t read_values;	  /* number of values that forward reads; 0: all of the inputs and parameters */
};

struct psd_layer_kind {
	const char *name;      /* name of the kind in model files */
	unsigned least_inputs; /* number of inputs; if takes_more_inputs, the smallest number */
	bool takes_more_inputs;
	bool is_in_place;	/* the layer's output overwrites its input */
	bool is_loss;		/* the layer compares its input with the labels: backward starts here */
	bool reads_twice;	/* the layer reads its input for statistics, then once more; backward does likewise */
	bool is_predicted_only; /* no device executes the layer */
	bool reads_rows;	/* the layer reads only those parameter rows that its input names */
	enum psd_arithmetic arithmetic;
	const struct psd_key *keys; /* keys in model files, which set members of the settings; NULL: no keys */
	union psd_layer_settings defaults;
	/* Sets layer->shape from the settings and the shapes of the inputs, found in layers[]. The caller has checked
	 * the number of inputs, and checks the size of the result. PSD_EINVAL at the place `at` if the shapes do not
	 * fit. NULL: the shape is that of the first input. */
	enum psd_status (*infer)(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
				 struct psd_error *err);
	/* Adds the layer's tensors and states with psd_graph_build_tensor() and psd_graph_build_state(); the shape is
	 * known. False: out of memory. NULL: it has none. */
	bool (*declare)(struct psd_graph_build *build, const struct psd_layer *layer, struct psd_shape in);
	struct psd_layer_work per_element; /* work for each value of the output; only used without `count` */
	/* Computes the work for one sample; the shape is known. Only arithmetic counts: no addresses, random numbers or
	 * copies. NULL: the work is per_element. */
	struct psd_layer_work (*count)(const struct psd_layer *layer, struct psd_shape in);
};

#define PSD_DECLARE_LAYER_KIND(kind) extern const struct psd_layer_kind psd_layer_##kind;
PSD_LAYER_KINDS(PSD_DECLARE_LAYER_KIND)
#undef PSD_DECLARE_LAYER_KIND

extern const struct psd_layer_kind *const psd_layer_kinds[]; /* all layer kinds; ends with NULL */

#endif
