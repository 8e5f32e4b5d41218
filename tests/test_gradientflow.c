/* The scenarios of GradientFlow against what was published: how far off, and whether systems come in the right order.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/estimate/estimate.h"
#include "engine/result/result.h"
#include "engine/scenario/published.h"
#include "tests/loaded_helper.h"

#define MEDIAN_RATIO 0.08
#define WORST_RATIO  0.20
#define GAP_RATIO    1.05 /* below it the order of two systems is not asked for */

enum { MOST_POINTS = 256 };

struct point {
	const char *system;
	unsigned workers;
	double predicted, published; /* images/s */
};

struct comparison {
	struct psd_scenario scenario;
	struct psd_subject_matter matter;
	struct psd_published published;
	struct point points[MOST_POINTS];
	unsigned n_points;
};

static double predict(const struct comparison *comparison, const struct psd_system *system, struct psd_point point)
{
	const struct psd_workload workload = psd_scenario_workload(&comparison->scenario, system);
	const struct psd_run_length length = psd_run_length_make(system, 0, 0.0);
	struct psd_case made;
	struct psd_outcome outcome;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_case_make(&made, &comparison->matter, system, point, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_estimate(&made.program, length, &outcome, &err), PSD_OK, "%s", err.text);
	psd_case_release(&made);
	return psd_result_images_per_sec(&point, workload.batch_per_worker, outcome.iteration_sec);
}

/* Of a speedup as much as the system's one worker does. */
static double published_of(const struct comparison *comparison, const struct psd_system *system,
			   const struct psd_published_row *row)
{
	const struct psd_workload workload = psd_scenario_workload(&comparison->scenario, system);

	return row->has_images_per_sec ? row->images_per_sec
				       : row->speedup * workload.batch_per_worker /
						 psd_subject_matter_costs(&comparison->matter, system)->compute_sec;
}

static void add_points(struct comparison *comparison, const struct psd_system *system)
{
	for (unsigned p = 0; p < psd_scenario_points(&comparison->scenario); p++) {
		const struct psd_point point = psd_scenario_point(&comparison->scenario, p);
		const struct psd_published_row *row =
			psd_published_find(&comparison->published, system->name, point.workers);

		if (!row)
			continue;
		cr_assert_lt(comparison->n_points, MOST_POINTS);
		comparison->points[comparison->n_points++] =
			(struct point){system->name, point.workers, predict(comparison, system, point),
				       published_of(comparison, system, row)};
	}
}

static void comparison_open(struct comparison *comparison, const char *path)
{
	struct psd_scenario *scenario = &comparison->scenario;
	struct psd_error err = {.text = ""};

	*comparison = (struct comparison){.n_points = 0};
	cr_assert_eq(psd_scenario_load(scenario, path, NULL, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_subject_matter_load(&comparison->matter, scenario, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_published_load(&comparison->published, scenario->published_path, &err), PSD_OK, "%s",
		     err.text);
	for (unsigned s = 0; s < scenario->n_systems; s++)
		add_points(comparison, &scenario->systems[s]);
	cr_assert_eq(comparison->n_points, comparison->published.n_rows);
}

static void comparison_close(struct comparison *comparison)
{
	psd_published_release(&comparison->published);
	psd_subject_matter_release(&comparison->matter);
	psd_scenario_release(&comparison->scenario);
}

static double error_of(const struct point *point)
{
	return fabs(point->predicted / point->published - 1.0);
}

static int by_error(const void *a, const void *b)
{
	const double first = error_of(a), second = error_of(b);

	return (first > second) - (first < second);
}

/* Points beyond the bar, each of which README.md explains. */
static void expect_errors(struct comparison *comparison, unsigned most_beyond)
{
	unsigned n_beyond = 0;
	double median;

	qsort(comparison->points, comparison->n_points, sizeof(comparison->points[0]), by_error);
	median = error_of(&comparison->points[comparison->n_points / 2]);
	cr_expect_leq(median, MEDIAN_RATIO, "median of %.1f %%", 100 * median);
	for (unsigned i = 0; i < comparison->n_points; i++)
		n_beyond += error_of(&comparison->points[i]) > WORST_RATIO;
	cr_expect_leq(n_beyond, most_beyond, "%u points, the worst by %.1f %%", n_beyond,
		      100 * error_of(&comparison->points[comparison->n_points - 1]));
}

/* Of one worker alone only the scenario speaks. */
static void expect_order(const struct comparison *comparison, double least_right_ratio)
{
	unsigned n_pairs = 0, n_right = 0;

	for (const struct point *a = comparison->points; a < comparison->points + comparison->n_points; a++)
		for (const struct point *b = comparison->points; b < comparison->points + comparison->n_points; b++) {
			if (a->workers != b->workers || a->workers == 1 || a->published <= GAP_RATIO * b->published)
				continue;
			n_pairs++;
			n_right += a->predicted > b->predicted;
		}
	cr_expect_geq((double)n_right, least_right_ratio * n_pairs, "%u of %u pairs are in order", n_right, n_pairs);
}

Test(gradientflow, alexnet_on_pascal_is_met)
{
	struct comparison comparison;

	comparison_open(&comparison, "scenarios/gradientflow/alexnet-cluster-p.yaml");
	expect_errors(&comparison, 1);
	expect_order(&comparison, 0.98);
	comparison_close(&comparison);
}

Test(gradientflow, resnet_50_on_pascal_is_met)
{
	struct comparison comparison;

	comparison_open(&comparison, "scenarios/gradientflow/resnet50-cluster-p.yaml");
	expect_errors(&comparison, 0);
	expect_order(&comparison, 0.97);
	comparison_close(&comparison);
}

/* What 512 GPUs reached: so many times one of them, so many minutes for so many epochs. No constant was fitted to this
 * cluster; README.md says why AlexNet is beyond the 12 % that the others are held to. */
static void check_volta(const char *path, const char *system, double epochs, double published_minutes,
			double most_ratio)
{
	struct comparison comparison;
	const struct point *point;
	double minutes;

	comparison_open(&comparison, path);
	point = comparison.points;
	while (strcmp(point->system, system) != 0)
		point++;
	minutes = epochs * 1281167.0 / point->predicted / 60.0;
	cr_expect_leq(error_of(point), most_ratio, "%s: %.1f images/s", system, point->predicted);
	cr_expect_leq(fabs(minutes / published_minutes - 1.0), 0.17, "%s: %.2f minutes", system, minutes);
	comparison_close(&comparison);
}

Test(gradientflow, volta_is_near)
{
	check_volta("scenarios/gradientflow/alexnet-cluster-v.yaml", "LA+overlap", 95, 2.6, 0.15);
	check_volta("scenarios/gradientflow/alexnet-cluster-v.yaml", "CSC+overlap", 95, 1.5, 0.17);
	check_volta("scenarios/gradientflow/resnet50-cluster-v.yaml", "CSC+overlap", 90, 7.3, 0.13);
}
