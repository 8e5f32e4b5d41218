/* The arithmetic of results. */
#include "sim/sweep/result.h"

#include <stdio.h>

double psd_result_images_per_sec(const struct psd_point *point, uint32_t batch_per_worker, double iteration_sec)
{
	return (double)point->workers * batch_per_worker / iteration_sec;
}

/* Throughput is what was measured; a speedup has a second measurement in it. */
static void compare(struct psd_result *result)
{
	const struct psd_published_row *row = result->published;

	if (!row || (!row->has_images_per_sec && !row->has_speedup))
		return;
	result->has_error_ratio = true;
	result->error_ratio = row->has_images_per_sec ? result->images_per_sec / row->images_per_sec - 1.0
						      : result->speedup / row->speedup - 1.0;
}

struct psd_result psd_result_make(const struct psd_system *system, struct psd_point point,
				  const struct psd_outcome *outcome, const struct psd_result_basis *basis,
				  double baseline_images_per_sec)
{
	struct psd_result result = {
		.system = system,
		.point = point,
		.outcome = *outcome,
		.images_per_sec = psd_result_images_per_sec(&point, basis->batch_per_worker, outcome->iteration_sec),
	};

	result.speedup = result.images_per_sec / baseline_images_per_sec;
	if (basis->published)
		result.published = psd_published_find(basis->published, system->name, point.workers);
	compare(&result);
	return result;
}

char *psd_result_point_name(const struct psd_point *point, char *text, size_t room)
{
	const char *plural = point->nodes == 1 ? "" : "s";

	if (point->workers == point->nodes)
		snprintf(text, room, "%u node%s", point->nodes, plural);
	else
		snprintf(text, room, "%u node%s (%u workers)", point->nodes, plural, point->workers);
	return text;
}
