/* Outcomes turned into what people compare: throughput, speedup, exposed communication, and how far from what was
 * published. */
#ifndef PSD_SIM_RESULT_H
#define PSD_SIM_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/program/outcome.h"
#include "engine/scenario/published.h"
#include "engine/scenario/scenario.h"

struct psd_result {
	const struct psd_system *system; /* borrowed from the scenario */
	struct psd_point point;
	struct psd_outcome outcome;
	double images_per_sec; /* of all workers together */
	double speedup;
	const struct psd_published_row *published; /* borrowed, or NULL */
	bool has_error_ratio;
	double error_ratio; /* predicted / published - 1: of images per second when published, else of the speedup */
};

/* What all results of a scenario are computed from. */
struct psd_result_basis {
	uint32_t batch_per_worker;
	const struct psd_published *published; /* or NULL */
};

/* workers * batch / iteration_sec, in images per second. Pure, any thread, as is everything below. */
double psd_result_images_per_sec(const struct psd_point *point, uint32_t batch_per_worker, double iteration_sec);
/* baseline_images_per_sec: what a speedup of 1 is, > 0. */
struct psd_result psd_result_make(const struct psd_system *system, struct psd_point point,
				  const struct psd_outcome *outcome, const struct psd_result_basis *basis,
				  double baseline_images_per_sec);

/* "8 nodes", "1 node", "4 nodes (16 workers)"; returns text. */
char *psd_result_point_name(const struct psd_point *point, char *text, size_t room);

#endif
