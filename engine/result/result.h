/* An outcome turned into what people compare: throughput, speedup, the parts of an iteration, and how far from what was
 * published. The same for predictions and for real runs. */
#ifndef PSD_RESULT_H
#define PSD_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/text.h"
#include "engine/program/outcome.h"
#include "engine/scenario/published.h"
#include "engine/scenario/scenario.h"

/* A number that may not be there. */
struct psd_result_value {
	bool is_there;
	double value;
};

/* Texts are borrowed. */
struct psd_result {
	const char *scenario, *system_name, *executor;
	const struct psd_system *system; /* of the scenario; NULL: of none */
	struct psd_point point;
	struct psd_result_value fuse_bytes; /* to which its system gathers tensors, where it is a size that is named */
	struct psd_result_value bandwidth_bps; /* of the links, where the scenario's was theirs */
	struct psd_outcome outcome;
	double images_per_sec; /* of all workers together */
	struct psd_result_value speedup;
	struct psd_result_value published_images_per_sec, published_speedup;
	struct psd_result_value error_ratio; /* of images per second where published, else of the speedup */
	bool is_fit;			     /* a constant was chosen to meet what is published */
	/* For people only. */
	const char *beyond;				    /* in what it lies beyond its calibration, or NULL */
	struct psd_result_value last_loss, accuracy_ratio;  /* of training; what is no number has diverged */
	struct psd_result_value dilation_ratio, busy_ratio; /* of a replay, and how busy it kept the machine */
};

/* What all results of a scenario are computed from; borrowed. */
struct psd_result_basis {
	const struct psd_scenario *scenario;
	const char *executor;
	const struct psd_published *published; /* or NULL */
};

/* workers * batch / iteration_sec, in images per second. Pure, any thread, as is everything below. */
double psd_result_images_per_sec(const struct psd_point *point, uint32_t batch_per_worker, double iteration_sec);
/* baseline_images_per_sec: what a speedup of 1 is; 0: not known. */
struct psd_result psd_result_make(const struct psd_result_basis *basis, const struct psd_system *system,
				  struct psd_point point, const struct psd_outcome *outcome,
				  double baseline_images_per_sec);

/* In what a point lies beyond what a scenario was calibrated on: NULL, "workers", "link" or "both". */
const char *psd_result_beyond(const struct psd_calibrated *calibration, const struct psd_point *point);

/* What no figure shows, a line for each reason: that the system trains with other values than others do. */
void psd_result_add_lossy(struct psd_text *text, const struct psd_system *system);
/* A line where a library carries out the system's sums: whose steps stand for its own. */
void psd_result_add_assumed(struct psd_text *text, const struct psd_system *system);

/* "8 nodes", "1 node", "4 nodes (16 workers)"; returns text. */
char *psd_result_point_name(const struct psd_point *point, char *text, size_t room);

#endif
