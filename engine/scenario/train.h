/* The training job of a scenario: data, length, optimiser and learning rate. Values only: real/ executes the job, a
 * prediction only checks it. Opens no file but Caffe's solver. */
#ifndef PSD_TRAIN_H
#define PSD_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/model/settings.h"

enum {
	PSD_MAX_RATE_STEPS = 64,
	PSD_MAX_ITERATIONS = 1000000000,
	PSD_MAX_SYNTHETIC_SAMPLES = 1000000000,
};

enum psd_data_kind {
	PSD_DATA_SYNTHETIC, /* samples generated from the seed; a network can learn them */
	PSD_DATA_CIFAR10,   /* folder of CIFAR-10's binary version */
	PSD_DATA_IDX,	    /* folder of MNIST's or Fashion-MNIST's four files, unpacked */
	PSD_DATA_PACKED,    /* file that psd-run pack made */
	PSD_DATA_TEXT,	    /* file whose bytes are tokens */
	PSD_DATA_TOKENS,    /* file of 16-bit tokens, little-endian */
};

struct psd_data_source;

/* Shape of a sample where the kind of data or its files have it: CIFAR-10's, or that in the header of MNIST's images.
 * channels 0: unknown, or the file cannot be read. */
struct psd_shape psd_data_sample_shape(const struct psd_data_source *source);

/* Names of the files in a data set's folder, for each kind, NULL-terminated; none for kinds without a folder. */
enum { PSD_DATA_FILES_MAX = 6 };
extern const char *const psd_data_file_names[][PSD_DATA_FILES_MAX + 1];

/* Policies of the learning rate, with Caffe's names and formulas (caffe.proto, SolverParameter.lr_policy). */
enum psd_rate_policy {
	PSD_RATE_FIXED,	    /* constant rate: base */
	PSD_RATE_STEP,	    /* rate in iteration i: base * gamma ^ floor(i / step) */
	PSD_RATE_MULTISTEP, /* rate in iteration i: base * gamma ^ (number of steps at or before i) */
	PSD_RATE_INV,	    /* rate in iteration i: base * (1 + gamma * i) ^ -power */
	PSD_RATE_EXP,	    /* rate in iteration i: base * gamma ^ i */
	PSD_RATE_POLY,	    /* rate in iteration i: base * (1 - i / max_iterations) ^ power, 0 from max_iterations on */
	/* After the warm-up, the rate falls from base along half a period of a cosine to `lowest` at max_iterations.
	 * Source: Loshchilov and Hutter 2017 (arXiv 1608.03983), without restarts. */
	PSD_RATE_COSINE,
};

struct psd_data_source {
	enum psd_data_kind kind;
	const char *path;	   /* folder or file, relative to the working directory; NULL: synthetic */
	const char *test_path;	   /* kinds packed, text, tokens: file of test samples; NULL: none */
	uint64_t training_samples; /* synthetic data: number of training samples */
	uint64_t test_samples;	   /* synthetic data: number of test samples */
	/* Synthetic data: standard deviation of noise on patterns within -1 and 1. With tokens: probability that a
	 * token is random instead of the successor of the one before; from 1 on always. */
	double noise_ratio;
	bool is_mirrored; /* packed data: every other training sample is mirrored */
};

/* Device that trains. auto: the first device beside the processor, or the processor if there is none. */
enum psd_device_choice { PSD_CHOOSE_CPU, PSD_CHOOSE_CUDA, PSD_CHOOSE_AUTO };

/* Arithmetic of layers. Parameters, gradients and updates are always fp32. */
enum psd_layer_arithmetic { PSD_LAYERS_FP32, PSD_LAYERS_TF32, PSD_LAYERS_FP16, PSD_LAYERS_BF16 };

enum psd_optimiser_kind { PSD_OPTIMISER_SGD, PSD_OPTIMISER_LARS, PSD_OPTIMISER_ADAMW };

/* End of a run whose loss or parameters are infinite or not numbers. */
enum psd_divergence { PSD_DIVERGED_STOPS, PSD_DIVERGED_CONTINUES };

struct psd_optimiser { /* parameters of an optimiser; all zeros: stochastic gradient descent without momentum */
	enum psd_optimiser_kind kind;
	double trust_ratio;	      /* lars: distance that a tensor moves at a rate of 1, divided by its norm */
	double momentum;	      /* factor of momentum; 0 with adamw */
	double beta1, beta2, epsilon; /* adamw: decay rates of both moments, and the term that avoids a division by 0 */
	double weight_decay;	      /* decay of every tensor, biases too */
	double most_norm; /* largest norm of all gradients together, by which they are clipped; 0: no limit */
	bool is_nesterov;
};

struct psd_learning_rate {
	enum psd_rate_policy policy;
	double base;
	double gamma;
	double power;
	uint64_t step_iterations;	       /* policies step and exp: interval */
	uint64_t steps_at[PSD_MAX_RATE_STEPS]; /* policy multistep: iterations of the steps, rising */
	unsigned n_steps;
	double lowest;		 /* policy cosine: lowest rate */
	uint64_t max_iterations; /* policies poly and cosine: iteration at the fall's end; 0: end of the job's epochs */
	uint64_t for_batch;	 /* global batch for which `base` is meant, the rate grows with it; 0: any batch */
	uint64_t warmup_iterations; /* iterations of warm-up: equal steps up to the policy's rate in the last */
	double warmup_start_ratio;  /* factor on the rate at which warm-up begins */
};

struct psd_train {
	struct psd_data_source data;
	uint64_t iterations; /* length of the job in iterations; 0: epochs decide */
	uint64_t epochs;     /* length of the job in epochs; 0: iterations decide */
	struct psd_optimiser optimiser;
	struct psd_learning_rate rate;
	const char *solver_path;      /* Caffe's solver file with optimiser and rate; NULL: these are in the scenario */
	const char *start_path;	      /* safetensors file of initial parameters; NULL: as the model says */
	uint64_t snapshot_iterations; /* iterations between two checkpoints of the solver; 0: no checkpoints */
	struct psd_place snapshot_at; /* place of the interval's key in the solver file */
	uint64_t test_every_epochs;   /* interval of tests in epochs; 0: no tests */
	/* Loss scale: factor on gradients in an encoding of narrower range than fp32; 0: dynamic. */
	double loss_scale;
	bool has_dynamic_scale;
	enum psd_device_choice device;
	enum psd_layer_arithmetic arithmetic;
	bool has_graphs;  /* layers on a GPU are launched as a recorded CUDA graph */
	unsigned threads; /* number of computing threads of one worker */
	unsigned readers; /* number of threads of one worker that read samples; 0: auto */
	bool has_auto_readers;
	unsigned streams; /* number of connections between two hosts, which share large messages; 0: auto */
	bool has_auto_streams;
	bool is_deterministic; /* equal runs give equal bits, at the cost of speed */
	enum psd_divergence diverged;
	uint64_t compare_every; /* iterations between two comparisons of workers' parameters; 0: none */
	uint64_t seed;		/* seed of random numbers, the scenario's */
	bool has_seed;		/* the scenario gives a seed, so a solver cannot change it */
};

/* Completes *train from its solver (solver.prototxt), if it names one: optimiser and rate, and iterations and seed
 * where the scenario has none. path, text, length: contents of the solver's file. Fields that only concern printing,
 * tests, saving or the network's file have no effect; every other unknown field is an error. On failure *train is
 * unchanged. PSD_EFILE, PSD_EINVAL with place, PSD_ENOMEM. Any thread. Source: caffe.proto, SolverParameter. */
enum psd_status psd_train_load_solver(struct psd_train *train, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_train_parse_solver(struct psd_train *train, const char *path, const char *text, size_t length,
				       struct psd_error *err) PSD_MUST_CHECK;

/* True if the rate is 0 from max_iterations on. Pure. */
bool psd_rate_ends_at_zero(const struct psd_learning_rate *rate);

/* Number of connections between two hosts before `auto` has found a larger one. Pure. */
unsigned psd_train_least_streams(const struct psd_train *train);

extern const char *const psd_optimiser_names[];	       /* "sgd", "lars", "adamw", NULL */
extern const char *const psd_layer_arithmetic_names[]; /* "fp32", "tf32", "fp16", "bf16", NULL */
/* "fixed", "step", "multistep", "inv", "exp", "poly", "cosine", NULL */
extern const char *const psd_rate_policy_names[];

#endif
