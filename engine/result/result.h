/* Results for people to compare, made from an outcome: throughput, speedup, the parts of an iteration, and the error
 * against published values. Predictions and real runs have the same results. */
#ifndef PSD_RESULT_H
#define PSD_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/text.h"
#include "engine/program/outcome.h"
#include "engine/scenario/published.h"
#include "engine/scenario/scenario.h"

/* A number of a result. It may be absent. */
struct psd_result_value {
	bool is_there;
	double value;
};

struct psd_costed_model; /* defined in engine/case/case.h */

enum { PSD_RESULT_LIMIT_MAX = 32 };

/* Result of a system at a point of the sweep; strings are borrowed. */
struct psd_result {
	const char *scenario, *system_name, *executor;
	const struct psd_system *system; /* the system, borrowed from the scenario; NULL: none */
	struct psd_point point;
	/* smallest size of the system's buckets, bytes; absent if the scenario gives none */
	struct psd_result_value fuse_bytes;
	/* bandwidth of the nodes' links, bits per second; absent if a platform file defines the links */
	struct psd_result_value bandwidth_bps;
	struct psd_outcome outcome;
	double images_per_sec; /* throughput of all workers together, samples per second */
	/* throughput of all workers together, tokens per second; absent if samples are not sequences */
	struct psd_result_value tokens_per_sec;
	struct psd_result_value speedup;
	struct psd_result_value percentiles_sec[PSD_PERCENTILES];
	/* values of the case that have columns only in a sweep of other keys */
	const char *model, *precision, *device, *stack;
	unsigned batch;
	uint32_t samples;		       /* number of samples that a worker computes in an iteration */
	const struct psd_scenario *swept;      /* variant whose swept keys have columns; NULL: no key is swept */
	const struct psd_costed_model *costed; /* model of the variant, borrowed; NULL: the report's */
	struct psd_result_value published_images_per_sec, published_speedup;
	/* Error against the published throughput or, if there is none, the published speedup: value / published value
	 * - 1. */
	struct psd_result_value error_ratio;
	struct psd_result_value is_fitted; /* 1: a constant was fitted to the published value; 0: none was */
	/* place of the row in a sweep that is predicted in parts; shard NULL: it is not */
	const char *settings; /* options that all parts must have in common, as in psd-sim --set seed=2 */
	const char *shard;    /* part of the sweep, as in 2/8 */
	unsigned row, n_rows; /* number of the row, from 1, and number of rows of the whole sweep */
	bool is_elsewhere;    /* the case belongs to another part, so it has no row; is_refused is set, too */
	bool is_refused;      /* the case needs too many events for any executor, so it has no row in the output */
	/* Resource that limits the speed of a prediction, as text of the column `limit`; "": not known. */
	char limit[PSD_RESULT_LIMIT_MAX];
	/* lower and upper end of the band of a prediction's images_per_sec, from the record of its stack */
	struct psd_result_value low, high;
	/* samples per second divided by those of as many workers that only compute; absent in a real run */
	struct psd_result_value efficiency_ratio;
	/* memory that a worker's device needs, bytes; absent in a real run */
	struct psd_result_value memory_bytes;
	/* hours and cost of the scenario's job; absent unless the job gives `samples` and, for the cost, `price` */
	struct psd_result_value job_hours, job_cost;
	const struct psd_training_job *job; /* job of the scenario, borrowed; NULL: it has none */
	/* The values below are only in tables, not in CSV. */
	/* Kinds of values of the point that are beyond the scenario's calibration, see psd_result_beyond(); NULL:
	 * none. */
	const char *beyond;
	/* only of training: loss of the last iteration, and share of correct test samples; NaN: training has
	 * diverged */
	struct psd_result_value last_loss, accuracy_ratio;
	/* only of a replay: factor by which the cluster was slowed down; share of this machine's processor time in use
	 * */
	struct psd_result_value dilation_ratio, busy_ratio;
};

/* Values that all results of a scenario have in common. Pointers are borrowed. */
struct psd_result_basis {
	const struct psd_scenario *scenario;
	const char *executor;
	const struct psd_published *published; /* published results to compare with; NULL: none */
	uint64_t tokens;    /* number of tokens of a sample; 0: the model's input is not a sequence */
	bool has_band;	    /* results are predictions, which get the bands (low, high) of their stacks */
	const char *model;  /* name of the model; NULL: not known */
	double compute_sec; /* time in which a worker computes a batch, seconds; 0: not known */
};

/* Returns the throughput of all workers, samples per second: workers * samples / iteration_sec. samples: those of a
 * worker in an iteration. Pure, any thread, as all functions below. */
double psd_result_images_per_sec(const struct psd_point *point, uint32_t samples, double iteration_sec);
/* Returns the seconds by which one more iteration lengthens a job: an asynchronous one ends with its slowest worker. */
double psd_result_last_sec(const struct psd_outcome *outcome);
/* psd_result_job_sec() returns the seconds of a whole job whose iterations have step_samples samples on all workers,
 * psd_result_job_cost() its cost. */
double psd_result_job_sec(const struct psd_training_job *job, double step_samples, double iteration_sec);
double psd_result_job_cost(const struct psd_training_job *job, unsigned workers, double job_sec);
/* Makes a result from an outcome. baseline_images_per_sec: throughput that counts as speedup 1; 0: not known, so there
 * is no speedup. */
struct psd_result psd_result_make(const struct psd_result_basis *basis, const struct psd_system *system,
				  struct psd_point point, const struct psd_outcome *outcome,
				  double baseline_images_per_sec);

/* Returns the kinds of values of a point that are beyond the calibration: "workers" (more than measured), "link"
 * (another bandwidth), "both"; NULL: none. */
const char *psd_result_beyond(const struct psd_calibrated *calibration, const struct psd_point *point);

/* Appends a note for each setting of the system by which it trains with other values than the exact mean of gradients.
 * A single worker sends nothing, except to separate servers. n_parts: number of parts that exchange in turn, see
 * psd_plan_parts(). */
void psd_result_add_lossy(struct psd_text *text, const struct psd_system *system, unsigned workers, uint32_t n_parts);
/* Appends a note about the ages of a system's stale reads (psd_read_counts), if there are any. where: text behind the
 * system's name, with a quote in front. */
void psd_result_add_reads(struct psd_text *text, const struct psd_system *system, const char *where,
			  const uint64_t reads[PSD_READ_AGES]);
/* If the system's communication is managed, appends a note about withheld chunks, and one about those that are sent
 * early. where: as above. */
void psd_result_add_managed(struct psd_text *text, const struct psd_system *system, const char *where,
			    const struct psd_early_chunks *early);
/* Appends notes that tell when a worker of asynchronous training reaches its bound, if one does, and how much longer
 * the slowest worker trains. where: as above. */
void psd_result_add_bound(struct psd_text *text, const struct psd_result *result, const char *where);
/* Returns the word for the iterations from one exchange of all values to the next: "period", or "clock". */
const char *psd_result_period_name(const struct psd_system *system);
/* Appends a note if the system's budget limits no link. link_bps: rate of the fastest link, bits per second;
 * payload_ratio: share of it that payload has. */
void psd_result_add_budget(struct psd_text *text, const struct psd_system *system, double link_bps,
			   double payload_ratio);
/* Appends a note if the training is too short for the prediction, which has whole periods: its last iteration sends
 * all, although a period has not ended. where: as above. */
void psd_result_add_period(struct psd_text *text, const struct psd_result *result, const char *where);
/* If a library executes the system's all-reduces, appends a note about the steps that predictions assume. */
void psd_result_add_assumed(struct psd_text *text, const struct psd_system *system);

/* Appends ", model.batch_per_worker 64" for each swept key of the variant; nothing if `swept` is NULL. */
void psd_result_add_swept(struct psd_text *text, const struct psd_scenario *swept);
/* Writes the name of a point to text, which has `room` bytes: "8 nodes", "1 node", "4 nodes (16 workers)". Returns
 * text. */
char *psd_result_point_name(const struct psd_point *point, char *text, size_t room);

#endif
