/* The training job that a scenario describes: its data, its length, its optimiser and its learning rate. Values only:
 * real/ carries it out, a prediction merely checks it. Refuses to open data files; the one file read here is Caffe's
 * solver. */
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
	PSD_DATA_SYNTHETIC, /* made up from the seed, learnable */
	PSD_DATA_CIFAR10,   /* the folder of CIFAR-10's binary version */
	PSD_DATA_IDX,	    /* the folder of MNIST's or Fashion-MNIST's four files, unpacked */
	PSD_DATA_PACKED,    /* a file that psd-run pack made */
	PSD_DATA_TEXT,	    /* a file whose bytes are tokens */
	PSD_DATA_TOKENS,    /* a file of tokens of 16 bits, little-endian */
};

/* Names and formulas are Caffe's (caffe.proto, SolverParameter.lr_policy). */
enum psd_rate_policy {
	PSD_RATE_FIXED,	    /* base */
	PSD_RATE_STEP,	    /* base * gamma ^ floor(i / step) */
	PSD_RATE_MULTISTEP, /* base * gamma ^ (number of steps that are at or before i) */
	PSD_RATE_INV,	    /* base * (1 + gamma * i) ^ -power */
	PSD_RATE_EXP,	    /* base * gamma ^ i */
	PSD_RATE_POLY,	    /* base * (1 - i / max_iterations) ^ power, 0 from max_iterations on */
	/* From base, behind the warm-up, by half a period of a cosine to `lowest` at max_iterations. Source: Loshchilov
	 * and Hutter 2017 (arXiv 1608.03983), without restarts. */
	PSD_RATE_COSINE,
};

struct psd_data_source {
	enum psd_data_kind kind;
	const char *path;	   /* folder or file, relative to the working directory; NULL: synthetic */
	const char *test_path;	   /* packed, text, tokens: the file of test samples; NULL: none */
	uint64_t training_samples; /* synthetic */
	uint64_t test_samples;	   /* synthetic */
	/* synthetic: standard deviation of the noise, the classes' patterns being within -1 and 1; of tokens the chance
	 * that one is not the successor of the one before but any, from 1 on always */
	double noise_ratio;
	bool is_mirrored; /* packed: every other training sample is seen from behind */
};

/* What computes; auto: the first other device that this machine has, else the processor. */
enum psd_device_choice { PSD_CHOOSE_CPU, PSD_CHOOSE_CUDA, PSD_CHOOSE_AUTO };

/* In what layers compute; parameters, gradients and updates are fp32 whatever it is. */
enum psd_layer_arithmetic { PSD_LAYERS_FP32, PSD_LAYERS_TF32, PSD_LAYERS_FP16, PSD_LAYERS_BF16 };

enum psd_optimiser_kind { PSD_OPTIMISER_SGD, PSD_OPTIMISER_LARS, PSD_OPTIMISER_ADAMW };

struct psd_optimiser { /* stochastic gradient descent; all zero: without momentum and decay */
	enum psd_optimiser_kind kind;
	double trust_ratio;	      /* lars: how far a tensor moves at a rate of 1, of its own norm */
	double momentum;	      /* of adamw 0 */
	double beta1, beta2, epsilon; /* adamw */
	double weight_decay;	      /* of every tensor, biases too */
	double most_norm;	      /* of the gradient of all tensors together; 0: whatever it is */
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
	uint64_t max_iterations; /* poly, cosine; 0: where the epochs of the job end */
	uint64_t for_batch;	 /* samples of an iteration that the rate is for, it grows with them; 0: of any */
	uint64_t
		warmup_iterations; /* over which the rate rises in equal steps to the policy's, with the last of them */
	double warmup_start_ratio; /* of it, from where */
};

struct psd_train {
	struct psd_data_source data;
	uint64_t iterations; /* 0: epochs decide */
	uint64_t epochs;     /* 0: iterations decide */
	struct psd_optimiser optimiser;
	struct psd_learning_rate rate;
	const char *solver_path; /* what optimiser and rate are to be taken from by psd_train_load_solver(); NULL: they
				    are here */
	const char *start_path;	 /* a safetensors file that parameters start from; NULL: as the model says */
	uint64_t snapshot_iterations; /* between two checkpoints, as the solver asks for them; 0: it does not */
	struct psd_place snapshot_at; /* where it does */
	uint64_t test_every_epochs;   /* 0: never */
	/* What gradients travel times in an encoding of narrower range than fp32's; 0: dynamic, said or not. */
	double loss_scale;
	bool has_dynamic_scale;
	enum psd_device_choice device;
	enum psd_layer_arithmetic arithmetic;
	bool has_graphs;  /* of a GPU: layers are begun as what was recorded of them */
	unsigned threads; /* of one worker */
	unsigned readers; /* threads of one worker that read samples; 0: auto, said or not */
	bool has_auto_readers;
	unsigned streams; /* connections between two hosts, which share each large message; 0: auto, said or not */
	bool has_auto_streams;
	bool is_deterministic; /* equal runs give equal bits */
	uint64_t seed;	       /* the scenario's */
	bool has_seed;	       /* the scenario names it, a solver cannot change it */
};

/* Completes train by its solver (solver.prototxt), if it has one: optimiser and rate, and where the scenario is silent
 * the iterations and the seed. path, text, length: as if the solver's file held that. Fields that only say what is
 * printed, tested or saved, and where the network is, are accepted and not heeded: the scenario says that. Every other
 * unknown field is an error. On failure *train is unchanged. PSD_EFILE, PSD_EINVAL with place, PSD_ENOMEM. Any thread.
 * Source: caffe.proto, SolverParameter. */
enum psd_status psd_train_load_solver(struct psd_train *train, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_train_parse_solver(struct psd_train *train, const char *path, const char *text, size_t length,
				       struct psd_error *err) PSD_MUST_CHECK;

/* The rate is 0 from max_iterations on. Pure. */
bool psd_rate_ends_at_zero(const struct psd_learning_rate *rate);

/* The streams that there are in any case. Pure. */
unsigned psd_train_least_streams(const struct psd_train *train);

extern const char *const psd_optimiser_names[];	       /* "sgd", "lars", "adamw", NULL */
extern const char *const psd_layer_arithmetic_names[]; /* "fp32", "tf32", "fp16", "bf16", NULL */
/* "fixed", "step", "multistep", "inv", "exp", "poly", "cosine", NULL */
extern const char *const psd_rate_policy_names[];

#endif
