/* Results that people compare, made from an outcome: throughput, speedup, the parts of an iteration, and the error
 * against published values. The same for predictions and for real runs. */
#ifndef PSD_RESULT_H
#define PSD_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/text.h"
#include "engine/program/outcome.h"
#include "engine/scenario/published.h"
#include "engine/scenario/scenario.h"

/* Number in a result that may be absent. */
struct psd_result_value {
	bool is_there;
	double value;
};

enum { PSD_RESULT_LIMIT_MAX = 32 };

/* Result of a system at a point of the sweep; texts are borrowed. */
struct psd_result {
	const char *scenario, *system_name, *executor;
	const struct psd_system *system; /* system of the scenario; NULL: none */
	struct psd_point point;
	struct psd_result_value fuse_bytes;    /* smallest size of the system's buckets, if the scenario gives one */
	struct psd_result_value bandwidth_bps; /* bandwidth of the links, if they have the one of the scenario */
	struct psd_outcome outcome;
	double images_per_sec;			/* throughput of all workers together */
	struct psd_result_value tokens_per_sec; /* throughput of all workers together, in tokens of sequences */
	struct psd_result_value speedup;
	struct psd_result_value percentiles_sec[PSD_PERCENTILES];
	struct psd_result_value published_images_per_sec, published_speedup;
	struct psd_result_value error_ratio; /* error against published throughput, or else against published speedup */
	struct psd_result_value is_fitted;   /* 1: a constant was fitted to the published value; 0: it was not */
	bool is_refused;		     /* no executor may take the case: it has no row */
	char limit[PSD_RESULT_LIMIT_MAX];    /* resource that limits a prediction, as the columns say; "": not known */
	struct psd_result_value low, high;   /* band of a prediction's images per second, by its stack's record */
	/* The values below are for people only, not for CSV. */
	const char *beyond; /* parts of the point beyond the calibration, see psd_result_beyond(); NULL: none */
	struct psd_result_value last_loss, accuracy_ratio; /* only in training; NaN: training has diverged */
	struct psd_result_value dilation_ratio,
		busy_ratio; /* a replay's dilation, and share of the machine's time that it used */
};

/* Input of all results of a scenario; all pointers are borrowed. */
struct psd_result_basis {
	const struct psd_scenario *scenario;
	const char *executor;
	const struct psd_published *published; /* published results to compare with, or NULL */
	uint64_t tokens; /* number of tokens of a sample; 0: the model's input is not a sequence */
	bool has_band;	 /* results are predictions, with the bands of their stacks */
};

/* Throughput: workers * batch / iteration_sec, in images per second. Pure, any thread, as is everything below. */
double psd_result_images_per_sec(const struct psd_point *point, uint32_t batch_per_worker, double iteration_sec);
/* Makes a result from an outcome. baseline_images_per_sec: throughput at speedup 1; 0: not known. */
struct psd_result psd_result_make(const struct psd_result_basis *basis, const struct psd_system *system,
				  struct psd_point point, const struct psd_outcome *outcome,
				  double baseline_images_per_sec);

/* Part of a point that lies beyond the scenario's calibration: "workers", "link" or "both"; NULL: none. */
const char *psd_result_beyond(const struct psd_calibrated *calibration, const struct psd_point *point);

/* Appends a note for each reason why the system trains with other values than exact averages of gradients. */
void psd_result_add_lossy(struct psd_text *text, const struct psd_system *system);
/* Appends a note if a library executes the system's sums: the collective whose steps are assumed. */
void psd_result_add_assumed(struct psd_text *text, const struct psd_system *system);

/* Writes a point's name, "8 nodes", "1 node", "4 nodes (16 workers)"; returns text. */
char *psd_result_point_name(const struct psd_point *point, char *text, size_t room);

#endif
