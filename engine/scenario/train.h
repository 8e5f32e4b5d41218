/* The training job of a scenario: data, length, optimiser and learning rate. Values only: real/ executes the job, a
 * prediction only checks it. Opens no file but Caffe's solver. */
#ifndef PSD_TRAIN_H
#define PSD_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

enum {
	PSD_MAX_RATE_STEPS = 64,
	PSD_MAX_ITERATIONS = 1000000000,
	PSD_MAX_SYNTHETIC_SAMPLES = 1000000000,
};

enum psd_data_kind {
	PSD_DATA_SYNTHETIC, /* generated from the seed; a network can learn it */
	PSD_DATA_CIFAR10,   /* the folder of CIFAR-10's binary version */
	PSD_DATA_IDX,	    /* the folder of MNIST's or Fashion-MNIST's four files, unpacked */
	PSD_DATA_PACKED,    /* file that psd-run pack made */
	PSD_DATA_TEXT,	    /* file whose bytes are tokens */
	PSD_DATA_TOKENS,    /* file of 16-bit tokens, little-endian */
};

/* Names of the files in a data set's folder, for each kind, NULL-terminated; none for kinds without a folder. */
enum { PSD_DATA_FILES_MAX = 6 };
extern const char *const psd_data_file_names[][PSD_DATA_FILES_MAX + 1];

/* Names and formulas are Caffe's (caffe.proto, SolverParameter.lr_policy). */
enum psd_rate_policy {
	PSD_RATE_FIXED,	    /* base */
	PSD_RATE_STEP,	    /* base * gamma ^ floor(i / step) */
	PSD_RATE_MULTISTEP, /* base * gamma ^ (number of steps that are at or before i) */
	PSD_RATE_INV,	    /* base * (1 + gamma * i) ^ -power */
	PSD_RATE_EXP,	    /* base * gamma ^ i */
	PSD_RATE_POLY,	    /* base * (1 - i / max_iterations) ^ power, 0 from max_iterations on */
	/* Falls from base, after the warm-up, along half a period of a cosine to `lowest` at max_iterations. Source:
	 * Loshchilov and Hutter 2017 (arXiv 1608.03983), without restarts. */
	PSD_RATE_COSINE,
};

struct psd_data_source {
	enum psd_data_kind kind;
	const char *path;	   /* folder or file, relative to the working directory; NULL: synthetic */
	const char *test_path;	   /* packed, text, tokens: file of test samples; NULL: none */
	uint64_t training_samples; /* synthetic */
	uint64_t test_samples;	   /* synthetic */
	/* synthetic: standard deviation of noise on patterns within -1 and 1. With tokens: probability that a token is
	 * random instead of the successor of the one before; from 1 on always */
	double noise_ratio;
	bool is_mirrored; /* packed: every other training sample is mirrored */
};

/* Device that trains. auto: the first device of this machine other than the processor, else the processor. */
enum psd_device_choice { PSD_CHOOSE_CPU, PSD_CHOOSE_CUDA, PSD_CHOOSE_AUTO };

/* Arithmetic of layers. Parameters, gradients and updates are always fp32. */
enum psd_layer_arithmetic { PSD_LAYERS_FP32, PSD_LAYERS_TF32, PSD_LAYERS_FP16, PSD_LAYERS_BF16 };

enum psd_optimiser_kind { PSD_OPTIMISER_SGD, PSD_OPTIMISER_LARS, PSD_OPTIMISER_ADAMW };

struct psd_optimiser { /* stochastic gradient descent; all zero: without momentum and decay */
	enum psd_optimiser_kind kind;
	double trust_ratio;	      /* lars: distance that a tensor moves at a rate of 1, over its norm */
	double momentum;	      /* 0 with adamw */
	double beta1, beta2, epsilon; /* adamw */
	double weight_decay;	      /* decay of every tensor, biases too */
	double most_norm;	      /* largest norm of all gradients together; 0: no limit */
	bool is_nesterov;
};

struct psd_learning_rate {
	enum psd_rate_policy policy;
	double base;
	double gamma;
	double power;
	uint64_t step_iterations;	       /* step */
	uint64_t steps_at[PSD_MAX_RATE_STEPS]; /* multistep: iterations, rising */
	unsigned n_steps;
	double lowest;		 /* cosine */
	uint64_t max_iterations; /* poly, cosine: end of the fall; 0: end of the job's epochs */
	uint64_t for_batch; /* samples of an iteration that `base` is for, the rate grows with them; 0: any number */
	uint64_t warmup_iterations; /* iterations over which the rate rises in equal steps to the policy's, reached in
				       the last one */
	double warmup_start_ratio;  /* share of the rate at which warm-up begins */
};

struct psd_train {
	struct psd_data_source data;
	uint64_t iterations; /* 0: epochs decide */
	uint64_t epochs;     /* 0: iterations decide */
	struct psd_optimiser optimiser;
	struct psd_learning_rate rate;
	const char *solver_path; /* file for psd_train_load_solver(), with optimiser and rate; NULL: they are here */
	const char *start_path;	 /* safetensors file of initial parameters; NULL: as the model says */
	uint64_t snapshot_iterations; /* iterations between two checkpoints of the solver; 0: no checkpoints */
	struct psd_place snapshot_at; /* place of that key in the solver */
	uint64_t test_every_epochs;   /* 0: never */
	/* Factor on gradients that travel in an encoding of narrower range than fp32; 0: dynamic. */
	double loss_scale;
	bool has_dynamic_scale;
	enum psd_device_choice device;
	enum psd_layer_arithmetic arithmetic;
	bool has_graphs;  /* layers on a GPU are launched as a recorded CUDA graph */
	unsigned threads; /* threads of one worker */
	unsigned readers; /* threads of one worker that read samples; 0: auto */
	bool has_auto_readers;
	unsigned streams; /* connections between two hosts, which share large messages; 0: auto */
	bool has_auto_streams;
	bool is_deterministic; /* equal runs give equal bits */
	uint64_t seed;	       /* the scenario's */
	bool has_seed;	       /* the scenario names it, so that a solver cannot change it */
};

/* Completes train by its solver (solver.prototxt), if it names one: optimiser and rate, and iterations and seed where
 * the scenario has none. path, text, length: contents of the solver's file. Fields that only say what is printed,
 * tested or saved, or where the network is, have no effect; every other unknown field is an error. On failure *train is
 * unchanged. PSD_EFILE, PSD_EINVAL with place, PSD_ENOMEM. Any thread. Source: caffe.proto, SolverParameter. */
enum psd_status psd_train_load_solver(struct psd_train *train, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_train_parse_solver(struct psd_train *train, const char *path, const char *text, size_t length,
				       struct psd_error *err) PSD_MUST_CHECK;

/* The rate is 0 from max_iterations on. Pure. */
bool psd_rate_ends_at_zero(const struct psd_learning_rate *rate);

/* Number of streams before `auto` has found a larger one. Pure. */
unsigned psd_train_least_streams(const struct psd_train *train);

extern const char *const psd_optimiser_names[];	       /* "sgd", "lars", "adamw", NULL */
extern const char *const psd_layer_arithmetic_names[]; /* "fp32", "tf32", "fp16", "bf16", NULL */
/* "fixed", "step", "multistep", "inv", "exp", "poly", "cosine", NULL */
extern const char *const psd_rate_policy_names[];

#endif
