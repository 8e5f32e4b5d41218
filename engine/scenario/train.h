/* The training job of a scenario: data, length, optimiser and learning rate. This module only holds and checks values:
 * psd-run executes the job, predictions do not use it. It opens no file except Caffe's solver. */
#ifndef PSD_TRAIN_H
#define PSD_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/model/settings.h"

enum { PSD_MOST_MICRO_BATCHES = 1000 }; /* most batches of a worker in an iteration */

enum {
	PSD_MAX_RATE_STEPS = 64,
	PSD_MAX_ITERATIONS = 1000000000,
	PSD_MAX_SYNTHETIC_SAMPLES = 1000000000,
};

enum psd_data_kind {
	PSD_DATA_SYNTHETIC, /* random samples made from the seed, with patterns that a network can learn */
	PSD_DATA_CIFAR10,   /* folder with the binary version of CIFAR-10 */
	PSD_DATA_IDX,	    /* folder with the four files of MNIST or Fashion-MNIST, unpacked */
	PSD_DATA_PACKED,    /* file made by `psd-run pack` */
	PSD_DATA_TEXT,	    /* text file in which each byte is a token */
	PSD_DATA_TOKENS,    /* file of tokens, each a little-endian number of 16 bits */
};

struct psd_data_source;

/* Returns the shape of a sample if the kind of data or its files determine it: CIFAR-10's shape, or the one in the
 * header of MNIST's images. channels 0: the shape is not known, or the file cannot be read. */
struct psd_shape psd_data_sample_shape(const struct psd_data_source *source);

/* Names of the files in the folder of each data kind, NULL-terminated. The list of a kind without a folder is
 * empty. */
enum { PSD_DATA_FILES_MAX = 6 };
extern const char *const psd_data_file_names[][PSD_DATA_FILES_MAX + 1];

/* Policies of the learning rate, with Caffe's names and formulas (caffe.proto, SolverParameter.lr_policy). */
enum psd_rate_policy {
	PSD_RATE_FIXED, /* constant rate: base */
	PSD_RATE_STEP,	/* rate in iteration i: base * gamma ^ floor(i / step_iterations) */
	/* rate in iteration i: base * gamma ^ (number of entries of steps_at that are <= i) */
	PSD_RATE_MULTISTEP,
	PSD_RATE_INV, /* rate in iteration i: base * (1 + gamma * i) ^ -power */
	/* rate in iteration i: base * gamma ^ i */
	PSD_RATE_EXP,
	/* rate in iteration i: base * (1 - i / max_iterations) ^ power; 0 for i >= max_iterations */
	PSD_RATE_POLY,
	/* After the warm-up, the rate falls from base along half a period of a cosine to `lowest` at max_iterations.
	 * Source: Loshchilov and Hutter 2017 (arXiv 1608.03983), without restarts. */
	PSD_RATE_COSINE,
};

struct psd_data_source {
	enum psd_data_kind kind;
	/* folder or file of the data, relative to the working directory; NULL with synthetic data */
	const char *path;
	/* file of test samples, only for kinds packed, text and tokens; NULL: no tests */
	const char *test_path;
	uint64_t training_samples; /* synthetic data: number of training samples in an epoch */
	uint64_t test_samples;	   /* synthetic data: number of test samples */
	/* Synthetic images: standard deviation of the noise that is added to patterns with values from -1 to 1.
	 * Synthetic tokens: probability that a token is random, instead of following from the token before it; 1 or
	 * more: all are random. */
	double noise_ratio;
	bool is_mirrored; /* packed data: a random half of the training samples is mirrored left to right */
};

/* Device that trains. PSD_CHOOSE_AUTO: the first GPU, or the processor if there is no GPU. */
enum psd_device_choice { PSD_CHOOSE_CPU, PSD_CHOOSE_CUDA, PSD_CHOOSE_AUTO };

/* Arithmetic of layers. Parameters, gradients and updates are always fp32. */
enum psd_layer_arithmetic { PSD_LAYERS_FP32, PSD_LAYERS_TF32, PSD_LAYERS_FP16, PSD_LAYERS_BF16 };

enum psd_optimiser_kind { PSD_OPTIMISER_SGD, PSD_OPTIMISER_LARS, PSD_OPTIMISER_ADAMW };

/* Action when the loss or a parameter becomes infinite or NaN: the run stops with an error, or continues. */
enum psd_divergence { PSD_DIVERGED_STOPS, PSD_DIVERGED_CONTINUES };

/* Parameters of an optimiser. All zeros: stochastic gradient descent without momentum. */
struct psd_optimiser {
	enum psd_optimiser_kind kind;
	/* lars: distance that a tensor moves in an update at learning rate 1, divided by the tensor's norm. */
	double trust_ratio;
	/* factor on the previous update before it is added to the next one (momentum); 0 with adamw */
	double momentum;
	/* adamw: decay rates of the first and second moment, and the term that avoids a division by 0 */
	double beta1, beta2, epsilon;
	double weight_decay; /* weight decay of every tensor, biases included */
	/* Gradients are clipped: if the norm of all gradients as one vector is larger than this, all are scaled down
	 * to it. 0: no clipping. */
	double most_norm;
	bool is_nesterov;
};

struct psd_learning_rate {
	enum psd_rate_policy policy;
	double base;
	double gamma;
	double power;
	uint64_t step_iterations; /* policy step: number of iterations after which the rate changes */
	/* policy multistep: iterations at which the rate changes, in ascending order */
	uint64_t steps_at[PSD_MAX_RATE_STEPS];
	unsigned n_steps;
	double lowest; /* policy cosine: rate from max_iterations on */
	/* Policies poly and cosine: number of iterations after which the rate has its last value. 0: the length of the
	 * job. */
	uint64_t max_iterations;
	/* Global batch (samples of all workers in an iteration) for which `base` is given. With another global batch
	 * the rate is scaled in proportion. 0: not scaled. */
	uint64_t for_batch;
	/* Number of warm-up iterations, in which the rate rises in equal steps to the rate of the policy. 0: no
	 * warm-up. */
	uint64_t warmup_iterations;
	double warmup_start_ratio; /* rate at the beginning of the warm-up, divided by the policy's rate */
};

struct psd_train {
	struct psd_data_source data;
	uint64_t iterations; /* length of the job in iterations; 0: `epochs` gives the length */
	uint64_t epochs;     /* length of the job in epochs; 0: `iterations` gives the length */
	struct psd_optimiser optimiser;
	struct psd_learning_rate rate;
	/* Caffe's solver file, which sets optimiser and learning rate; NULL: the scenario sets them */
	const char *solver_path;
	/* safetensors file of initial parameters; NULL: initial values as the model file says */
	const char *start_path;
	/* Caffe's solver only: number of iterations from one checkpoint to the next; 0: the solver asks for no
	 * checkpoints */
	uint64_t snapshot_iterations;
	struct psd_place snapshot_at; /* place of the key `snapshot` in the solver file, for messages */
	/* Caffe's solver only: its `iter_size`, number of micro-batches in an iteration */
	unsigned solver_batches;
	uint64_t test_every_epochs; /* number of epochs from one test to the next; 0: no tests */
	/* Loss scale: factor on gradients that are sent as fp16, so that small ones do not become 0. 0 with
	 * has_dynamic_scale: adapted during the run. */
	double loss_scale;
	bool has_dynamic_scale;
	enum psd_device_choice device;
	enum psd_layer_arithmetic arithmetic;
	/* all kernels of the layers on a GPU are launched together, as a recorded CUDA graph */
	bool has_graphs;
	unsigned threads; /* number of threads with which a worker computes layers on the processor */
	/* number of threads of a worker that read samples; 0 with has_auto_readers: psd-run chooses */
	unsigned readers;
	bool has_auto_readers;
	/* number of connections between two hosts, over which large messages are spread; 0 with has_auto_streams:
	 * psd-run chooses */
	unsigned streams;
	bool has_auto_streams;
	bool is_deterministic; /* equal runs give bit-equal results; this costs speed */
	enum psd_divergence diverged;
	/* number of iterations from one comparison of all workers' parameters to the next; 0: no comparisons */
	uint64_t compare_every;
	uint64_t seed; /* seed of random numbers: the scenario's, else the solver's */
	bool has_seed; /* the scenario gives a seed, which a solver does not change */
};

/* If the training job names a Caffe solver (solver.prototxt), sets *train from it: optimiser and learning rate, and
 * iterations and seed if the scenario does not give them. psd_train_load_solver() reads the file;
 * psd_train_parse_solver() takes length bytes of text, which messages call `path`. Fields about printing, tests,
 * saving or the network's file are ignored. Every other unknown field is an error. On failure *train is unchanged.
 * PSD_EFILE, PSD_EINVAL with place, PSD_ENOMEM. Any thread. Source: caffe.proto, SolverParameter. */
enum psd_status psd_train_load_solver(struct psd_train *train, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_train_parse_solver(struct psd_train *train, const char *path, const char *text, size_t length,
				       struct psd_error *err) PSD_MUST_CHECK;

/* True if the learning rate is 0 from iteration rate->max_iterations on. Pure. */
bool psd_rate_ends_at_zero(const struct psd_learning_rate *rate);

/* Returns the number of connections between two hosts with which a run starts; with has_auto_streams it may rise
 * later. Pure. */
unsigned psd_train_least_streams(const struct psd_train *train);

extern const char *const psd_optimiser_names[];	       /* "sgd", "lars", "adamw", NULL */
extern const char *const psd_layer_arithmetic_names[]; /* "fp32", "tf32", "fp16", "bf16", NULL */
/* "fixed", "step", "multistep", "inv", "exp", "poly", "cosine", NULL */
extern const char *const psd_rate_policy_names[];

#endif
