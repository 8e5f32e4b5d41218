/* Whole runs on loopback as rows of a table: a treatment of gradients and updates, layouts of workers to which it is
 * applied, and a claim about each of these runs. A row is a test: its suite names the treatment, its case the claim. So
 * a new treatment is a row for each claim and, if it has an algorithm of its own, a part of plain_training.c. In every
 * run all workers must end with the same bits. */
#ifndef PSD_TESTS_REAL_MATRIX_H
#define PSD_TESTS_REAL_MATRIX_H

#include <criterion/criterion.h>

#include "tests/real/training.h"

/* A system on workers. A list ends with an entry without a system. */
struct matrix_layout {
	const char *system; /* keys of the system */
	unsigned workers;   /* 0: runs by 1, 2, 4 and 8 workers */
	unsigned workers_per_node;
};

/* Network, samples and length of runs. */
struct matrix_subject {
	const char *graph; /* as training_make() takes it; with a text the name of the file to write */
	const char *text;  /* text of a model file; NULL: the file exists */
	unsigned batch;	   /* samples of each worker in a micro-batch */
	unsigned samples;  /* samples of all workers in an iteration; 0: as `batch` says */
	unsigned seed;	   /* 0: the number of workers */
	uint32_t iterations;
	const char *train; /* keys of `train`; NULL: none */
	const char *learn; /* more of these keys, for runs without a learning rate of their own */
	bool is_tested;
};

/* Maskless networks: 8 samples for each worker, and 24 for all. */
extern const struct matrix_subject matrix_maskless, matrix_maskless_shared;
/* CIFAR-10 quick with 32 samples for all, with momentum. */
extern const struct matrix_subject matrix_quick;
/* CIFAR-10 quick with 16 samples for each, tested after 100 iterations. */
extern const struct matrix_subject matrix_tested;
/* The network of plain_softmax.h. */
extern const struct matrix_subject matrix_softmax;

/* A rate that moves nothing: runs end where all begin. */
#define MATRIX_LEARN_NOTHING ", learning_rate: {policy: fixed, base: 1e-9}"

enum { MATRIX_MOST_KEYS = 12, MATRIX_MOST_LEARNS = 4, MATRIX_MOST_WORKERS = 4 };

struct matrix_row {
	const struct matrix_subject *subject;
	const struct matrix_layout *layouts;
	unsigned first, end, stride; /* range of the layouts; end 0: up to the last; stride 0: 1 */
	/* Treatments: keys of the system, behind those of the layout, and keys of `train`. Each entry of the one is run
	 * with each of the other on each layout. An empty list is one entry without keys. */
	const char *keys[MATRIX_MOST_KEYS], *learns[MATRIX_MOST_LEARNS];
	bool is_in_turn;	      /* one run on each layout instead, with the next entry of either list */
	bool has_scales;	      /* a run for each loss scale from 2^14 to 2^29, added to `learns` */
	unsigned least_partial;	      /* number of these runs, at least, that leave out some updates but not all */
	uint32_t iterations;	      /* 0: those of the subject */
	unsigned first_seed, n_seeds; /* with PSD_FULL_TESTS all runs for each seed; first_seed 0: the subject's */
	/* The run to compare with. A field that is NULL or 0 is as in the run itself; a layout has no keys of its
	 * own. */
	struct {
		const struct matrix_layout *layout;
		const char *keys, *learn;
		uint32_t iterations;
	} other;
	/* Bounds of the distance from the other run, as ratios of its way from the start and of its norm. Both
	 * count; 0: no bound. */
	double way_ratio, norm_ratio;
	bool is_by_tensor;	/* for each tensor, else for all parameters together */
	double least_way_ratio; /* lower bound of the way, as a ratio of the norm, for the tensor that goes furthest */
	double most_norms[MATRIX_MOST_WORKERS + 1]; /* by number of workers; the number stands for an @ in `learns` */
	double loss_ratio;			    /* bound of the last loss, as a ratio of the other's */
	double lost_ratio;			    /* bound of the accuracy that is lost */
	uint64_t bytes, fewer_bytes;		    /* upper bound of a node's bytes, and its distance from the lower */
	unsigned parts;				    /* the other's bytes over those of the run */
	const char *cluster;			    /* rest of a prediction's keys of `cluster`, and its sweep */
	const char *words;			    /* part of an error's text */
};

/* One run of a row. */
struct matrix_run {
	const struct matrix_row *row;
	struct matrix_layout of, untreated; /* with and without the treatment's keys */
	const char *keys, *learn;
	const char *before; /* the entry of `keys` before this run's; NULL: this is the first */
	char scale[32];	    /* key of the loss scale, or nothing */
	char what[1280];    /* name of the run in messages */
};

typedef void (*matrix_claim)(const struct matrix_run *run);

/* Checks the claim for each run of the row. */
void matrix_check(const struct matrix_row *row, matrix_claim claim);

#define MATRIX_ROW(suite, name, claim, ...)                                                                            \
	Test(suite, name, .timeout = 120)                                                                              \
	{                                                                                                              \
		const struct matrix_row row = {__VA_ARGS__};                                                           \
                                                                                                                       \
		matrix_check(&row, claim);                                                                             \
	}
/* Every all-reduce, as `keys`. */
#define MATRIX_KEY_OF(identifier, name) ", sync: " name,
#define MATRIX_ALL_REDUCES		PSD_ALL_REDUCES(MATRIX_KEY_OF)
#define MATRIX_ON(...)                                                                                                 \
	.layouts = (const struct matrix_layout[])                                                                      \
	{                                                                                                              \
		__VA_ARGS__,                                                                                           \
		{                                                                                                      \
			0                                                                                              \
		}                                                                                                      \
	}

/* ---- claims ---- */

/* All workers end with the same bits, and a node sends and receives the bytes that its program has. */
void matrix_is_same_on_all(const struct matrix_run *run);
/* A second run ends with the same bits. */
void matrix_repeats(const struct matrix_run *run);
/* The other run ends with the same bits. */
void matrix_has_same_bits(const struct matrix_run *run);
/* The other run ends at a distance within the bounds. */
void matrix_is_near(const struct matrix_run *run);
/* The run of the keys before ends further away than `way_ratio`. */
void matrix_is_another(const struct matrix_run *run);
/* The run ends as the algorithm written plainly in double precision, see plain_training.h. */
void matrix_follows_the_algorithm(const struct matrix_run *run);
/* Values of 2 bytes end within the bound that their roundings have, for half of the bytes that values of 4 take. */
void matrix_rounds_nearly(const struct matrix_run *run);
/* A node sends `bytes`; with fewer_bytes it receives as many. */
void matrix_sends(const struct matrix_run *run);
/* The other run sends and receives `parts` times the bytes. */
void matrix_sends_a_part(const struct matrix_run *run);
/* psd-sim predicts the bytes that psd-run counts. */
void matrix_sends_as_predicted(const struct matrix_run *run);
/* The last loss is at most `loss_ratio` of the other run's. */
void matrix_learns(const struct matrix_run *run);
/* The other run tells at most `lost_ratio` more of the test samples. */
void matrix_is_accurate(const struct matrix_run *run);
void matrix_stays_finite(const struct matrix_run *run);
/* A run that is cut and resumed ends as one that is not, see going_on_check(). */
void matrix_resumes(const struct matrix_run *run);
/* A run starts from another's parameters, see going_on_check_start(). */
void matrix_starts(const struct matrix_run *run);
/* The run is an error with `words`. */
void matrix_is_refused(const struct matrix_run *run);

/* ---- runs, for other claims ---- */

/* The run itself, until its claim is checked; another one with each call. */
const struct training *matrix_run_it(const struct matrix_run *run);

/* A run that training_finish() is to start. */
struct training *matrix_make(const struct matrix_subject *subject, const struct matrix_layout *of, uint32_t iterations,
			     const char *learn);
/* A finished one, in which all workers have the same bits; free it with training_free(). */
struct training *matrix_train(const struct matrix_subject *subject, const struct matrix_layout *of, uint32_t iterations,
			      const char *learn);

#endif
