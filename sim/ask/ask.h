/* Questions about a scenario, and the predictions that they share: of any system, on any number of nodes, with any
 * bandwidth. Each prediction is made once. Answers are searched by estimates and confirmed by simulations. */
#ifndef PSD_SIM_ASK_H
#define PSD_SIM_ASK_H

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "engine/estimate/estimate.h"
#include "engine/program/outcome.h"
#include "sim/ask/answer.h"
#include "sim/sweep/progress.h"
#include "sim/sweep/sweep.h"

/* Executor that makes a prediction: the estimate, or a simulation that confirms it. */
enum psd_ask_how { PSD_ASK_ESTIMATE, PSD_ASK_CONFIRM };

struct psd_ask_settings {
	const char *question;		       /* name of the only question to answer; NULL: all questions */
	const struct psd_costed_model *costed; /* borrowed */
	/* results that are known already, of any variant of the scenario; NULL: none */
	const struct psd_report *known;
	const char *system_name; /* name of the only system; NULL: all systems */
	bool is_estimate;	 /* nothing is simulated: estimates stand for simulations */
	bool is_short;		 /* only the answers that a table of results has below it */
	bool has_progress;	 /* progress is shown on standard error */
	unsigned n_at_once;	 /* largest number of simulations at a time, >= 1 */
};

struct psd_ask_entry {
	unsigned system, nodes;
	double bandwidth_bps;
	uint64_t fuse_bytes; /* size of buckets in place of the system's own, bytes; 0: the system's own */
	enum psd_ask_how how;
	bool is_there;
	struct psd_outcome outcome;
};

/* The last case of a system that was estimated. An estimate that differs from it only in bandwidth uses the same
 * case. */
struct psd_ask_ready {
	struct psd_case made;
	uint64_t memory_bytes;		 /* memory of its workers */
	struct psd_estimator *estimator; /* NULL: there is no case */
};

struct psd_ask {
	struct psd_ask_settings settings;
	struct psd_ask_ready *ready; /* one for each system that is asked about */
	const struct psd_scenario *scenario;
	/* True if answers are simulated, and the scenario has keys that estimates ignore, such as `slow`. Break-evens
	 * are then searched by simulations. */
	bool has_disturbances;
	unsigned first_system, n_systems; /* systems that are asked about: numbers in the scenario */
	/* those of them that the question compares: a worker fits `job.memory` */
	unsigned candidates[PSD_MAX_SYSTEMS], n_candidates;
	const double *bandwidths_bps; /* bandwidths of the sweep, or the cluster's */
	unsigned n_bandwidths;
	/* most_bps: largest bandwidth of a node's link that searches try, bits per second. n_rates: number of
	 * bandwidths that they try. has_searched_rates: a search has tried some. */
	double most_bps;
	unsigned n_rates;
	bool has_searched_rates;
	bool has_coarse_turns; /* simulations of many events searched break-evens at bandwidths 37 % apart */
	/* bandwidth of the fastest group of nodes, bits per second; 0: not all groups have their own bandwidth, so
	 * bandwidths are searched */
	double fastest_bps;
	/* size of buckets in the next predictions, bytes: the first of the sweep; 0: each system's own */
	uint64_t fuse_bytes;
	/* Smallest and largest number of nodes in the sweep. Thresholds are searched from 1 to most_nodes, but with
	 * groups of nodes only at most_nodes. */
	unsigned least_nodes, most_nodes;
	unsigned *sizes; /* numbers of nodes that searches try, in ascending order: all small ones, then steps of 2 % */
	unsigned n_sizes;
	struct psd_ask_entry *entries; /* hash table of predictions */
	size_t n_entries, n_slots;
	/* numbers of simulations that were made, and of those with too many events, which are estimates instead */
	unsigned n_simulated, n_too_large;
	struct psd_progress progress;
	unsigned n_answered;  /* number of questions answered so far, for the line of progress */
	const char *question; /* name of the question that is answered now */
	int signal_number;
	enum psd_status status; /* first failure; later predictions do nothing */
	struct psd_error *err;
};

/* Answers a question, a row of the table in ask.c. Returns words for what the scenario lacks, such as "`job.samples`",
 * so that there is no answer; NULL: it lacks nothing, and there is no answer only if predictions give none. */
typedef const char *(*psd_question_fn)(struct psd_ask *ask, struct psd_answers *answers);
const char *psd_ask_efficiency(struct psd_ask *ask, struct psd_answers *answers);
const char *psd_ask_knee(struct psd_ask *ask, struct psd_answers *answers);
const char *psd_ask_bandwidth(struct psd_ask *ask, struct psd_answers *answers);
const char *psd_ask_bucket(struct psd_ask *ask, struct psd_answers *answers);
const char *psd_ask_best(struct psd_ask *ask, struct psd_answers *answers);
const char *psd_ask_break_even(struct psd_ask *ask, struct psd_answers *answers);
const char *psd_ask_hours(struct psd_ask *ask, struct psd_answers *answers);
const char *psd_ask_cluster(struct psd_ask *ask, struct psd_answers *answers);
const char *psd_ask_memory(struct psd_ask *ask, struct psd_answers *answers);
const char *psd_ask_failures(struct psd_ask *ask, struct psd_answers *answers);
const char *psd_ask_runs(struct psd_ask *ask, struct psd_answers *answers);

/* Words for what scenarios lack that several questions need. */
extern const char *const psd_ask_several_nodes, *const psd_ask_shared_bandwidth;

/* Answers all questions of a scenario. *answers is filled on success; psd_answers_release() releases it.
 * *signal_number: as with psd_sweep_run(). PSD_EINVAL: the scenario has no bandwidth, an unknown system, a system that
 * cannot run, or lacks what settings->question needs; PSD_ERUN; PSD_ENOMEM. */
enum psd_status psd_ask_all(const struct psd_ask_settings *settings, struct psd_answers *answers, int *signal_number,
			    struct psd_error *err) PSD_MUST_CHECK;

/* ---- predictions, for questions ---- */

/* Open and close the state that questions share (struct psd_ask). Statuses are those of psd_ask_all(). */
enum psd_status psd_ask_open(struct psd_ask *ask, const struct psd_ask_settings *settings,
			     struct psd_error *err) PSD_MUST_CHECK;
void psd_ask_close(struct psd_ask *ask);

/* Tells whether a worker of the system fits `job.memory`, if the scenario has it, on this number of nodes. */
bool psd_ask_fits(struct psd_ask *ask, unsigned system, unsigned nodes);
/* Adds an answer that names systems, with their numbers of nodes, that psd_ask_fits() has refused so far, if any.
 * unanswered: names of the questions without candidates. */
void psd_ask_add_misfits(struct psd_ask *ask, struct psd_answers *answers, const struct psd_text *unanswered);
/* Returns the prediction, borrowed until the next one. Its iteration_sec is 0 if there is none: the system does not
 * run or fit on this number of nodes, or a prediction failed (ask->status). */
const struct psd_outcome *psd_ask_predict(struct psd_ask *ask, unsigned system, unsigned nodes, double bandwidth_bps,
					  enum psd_ask_how how);
/* Simulates the cases wanted[0] to wanted[n - 1] in parallel, so that later calls of psd_ask_predict() find their
 * results. */
void psd_ask_predict_all(struct psd_ask *ask, const struct psd_ask_entry wanted[], unsigned n);

/* Returns the predicted throughput of all workers, samples per second; 0: there is no prediction. */
double psd_ask_samples_per_sec(struct psd_ask *ask, unsigned system, unsigned nodes, double bandwidth_bps,
			       enum psd_ask_how how);
/* Returns the efficiency: samples per second, divided by those of the same number of workers that only compute. 0:
 * there is no prediction. */
double psd_ask_efficiency_ratio(struct psd_ask *ask, unsigned system, unsigned nodes, double bandwidth_bps,
				enum psd_ask_how how);
unsigned psd_ask_workers(const struct psd_ask *ask, unsigned nodes);
/* Returns the number of samples that all workers of a system compute in an iteration on that number of nodes. */
double psd_ask_step_samples(const struct psd_ask *ask, unsigned system, unsigned nodes);
const char *psd_ask_system_name(const struct psd_ask *ask, unsigned system);
/* Sets value->limit to the resource that bounds the system, by a simulation; none: there is no prediction. */
void psd_ask_find_limit(struct psd_ask *ask, unsigned system, unsigned nodes, double bandwidth_bps,
			struct psd_answer_value *value);

/* Appends the notes of a table on the largest cluster without which a comparison of the systems may mislead. */
void psd_ask_add_comparison(struct psd_ask *ask, struct psd_text *text);

/* If only some groups of nodes have bandwidths of their own, appends these in brackets: " (group 2: 10 Gbit/s)". */
void psd_ask_add_own_links(struct psd_text *text, const struct psd_ask *ask);
/* Appends the bandwidth, with psd_ask_add_own_links(); if all groups of nodes have their own, appends the range of
 * these. */
void psd_ask_add_rate(struct psd_text *text, const struct psd_ask *ask, double bandwidth_bps);

/* Returns bandwidth `number` of those that searches try, in steps of 1 %, bits per second: number 1 is 100 Mbit/s,
 * number ask->n_rates is ask->most_bps. */
double psd_ask_rate(const struct psd_ask *ask, uint64_t number);
/* Appends " searched (up to 800 Gbit/s)", with the largest bandwidth that searches try. */
void psd_ask_add_searched(struct psd_text *text, const struct psd_ask *ask);

#endif
