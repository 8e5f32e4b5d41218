/* All-reduce alone as the scenario of GradientFlow's Fig 8 has it, against every size of the figure from 32 KiB on. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/cost/cost.h"
#include "tests/engine/cost/cost_helper.h"

enum { LEAST_KIB = 32, MOST_KIB = 512 * 1024 };

struct point {
	unsigned gpus, kib;
	char algorithm[16];
	double bytes_per_sec;
};

static double predicted_sec(const struct psd_scenario *scenario, const struct point *point)
{
	const struct psd_layout layout = psd_layout_make(point->gpus, scenario->workers_per_node, 0);
	const bool is_ring = !strcmp(point->algorithm, "NCCL");
	const struct psd_payload payload = {
		.collective = is_ring ? &psd_ring : &psd_two_level, .elements = 256ul * point->kib, .value_bytes = 4};
	struct psd_error err = {.text = ""};
	double transfer_sec, delay_sec;
	unsigned system;

	cr_assert_eq(psd_scenario_find_system(scenario, point->algorithm, &system, &err), PSD_OK, "%s", err.text);
	const struct psd_rates rates = psd_rates_make(&scenario->systems[system].host, &scenario->network,
						      scenario->network.bandwidth_bps, 1, 1e12);
	cost_of_collective(&payload, &layout, &rates, &transfer_sec, &delay_sec);
	return transfer_sec + delay_sec;
}

static bool next_point(FILE *file, struct point *point)
{
	char line[128];
	double gbytes;

	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%u,%15[^,],%u,%lf", &point->gpus, point->algorithm, &point->kib, &gbytes) == 4) {
			point->bytes_per_sec = 1e9 * gbytes;
			return true;
		}
	return false;
}

Test(fig8, is_met_from_32_kib_on)
{
	FILE *file = fopen("tests/data/gradientflow_fig8.csv", "r");
	struct psd_scenario scenario;
	struct psd_error err = {.text = ""};
	struct point point;
	unsigned n_points = 0;

	cr_assert_not_null(file);
	cr_assert_eq(psd_scenario_load(&scenario, "scenarios/gradientflow/allreduce-cluster-p.yaml", NULL, &err),
		     PSD_OK, "%s", err.text);
	while (next_point(file, &point)) {
		const double published_sec = 1024.0 * point.kib / point.bytes_per_sec;
		const double error = predicted_sec(&scenario, &point) / published_sec - 1.0;

		n_points += point.kib >= LEAST_KIB;
		cr_expect(point.kib < LEAST_KIB || fabs(error) < (point.kib == MOST_KIB ? 0.03 : 0.15),
			  "%s, %u GPUs, %u KiB: %+.1f %%", point.algorithm, point.gpus, point.kib, 100 * error);
	}
	cr_expect_eq(n_points, 2 * 4 * 15);
	psd_scenario_release(&scenario);
	fclose(file);
}
