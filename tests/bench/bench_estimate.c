/* How many points of a sweep the estimate answers in a second of one core: plan, program and estimate of VGG19 on 1 to
 * 32 nodes, system by system. With a path: the table goes to stdout and the CSV to the path; without one: CSV to
 * stdout, table to stderr. */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/case/case.h"
#include "engine/estimate/estimate.h"

#define MEASURED_SEC 1.0

static const char scenario_text[] =
	"title: estimate bench\n"
	"model: {graph: scenarios/models/vgg19.yaml, batch_per_worker: 32}\n"
	"compute: {device: titan-x}\n"
	"cluster:\n  stack: none\n"
	"  network: {bandwidth: 10Gbps, latency: 50us}\n"
	"  host: {copy: 6GBps, reduce: 8GBps, transport: 8Gbps, iteration: 3ms}\n"
	"systems: [{name: hybrid, sync: hybrid}, {name: ps, sync: ps}, {name: ring, sync: ring}]\n"
	"sweep: {nodes: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, "
	"26, 27, 28, 29, 30, 31, 32]}\n";

struct measure {
	unsigned points;
	double cpu_sec;
	double iteration_sec; /* sum over all points: what is measured is also used */
	double operations;    /* mean of the programs */
};

static double cpu_now_sec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static enum psd_status answer(const struct psd_costed_model *costed, const struct psd_system *system, unsigned point,
			      struct measure *measure, struct psd_error *err)
{
	const struct psd_scenario *scenario = costed->scenario;
	struct psd_case made;
	struct psd_outcome outcome;
	enum psd_status status = psd_case_make(&made, costed, system, psd_scenario_point(scenario, point), err);

	if (status != PSD_OK)
		return status;
	status = psd_estimate(&made.program, psd_run_length_make(system, scenario->iterations, scenario->jitter_ratio),
			      &outcome, err);
	if (status == PSD_OK) {
		measure->points++;
		measure->iteration_sec += outcome.iteration_sec;
		measure->operations += made.program.n_ops;
	}
	psd_case_release(&made);
	return status;
}

/* Whole sweeps, until the time is over. */
static enum psd_status measure_system(const struct psd_costed_model *costed, const struct psd_system *system,
				      struct measure *measure, struct psd_error *err)
{
	const double start_sec = cpu_now_sec();
	enum psd_status status = PSD_OK;

	*measure = (struct measure){0};
	while (status == PSD_OK && measure->cpu_sec < MEASURED_SEC) {
		for (unsigned p = 0; p < psd_scenario_points(costed->scenario) && status == PSD_OK; p++)
			status = answer(costed, system, p, measure, err);
		measure->cpu_sec = cpu_now_sec() - start_sec;
	}
	measure->operations /= measure->points > 0 ? measure->points : 1;
	return status;
}

static enum psd_status measure_all(const struct psd_costed_model *costed, FILE *table, FILE *csv, struct psd_error *err)
{
	const struct psd_scenario *scenario = costed->scenario;

	fprintf(table, "%-8s %10s %10s %16s %14s\n", "system", "points", "cpu s", "points per cpu s", "us per point");
	fprintf(csv, "system,model,points,cpu_sec,points_per_cpu_sec,mean_operations\n");
	for (unsigned s = 0; s < scenario->n_systems; s++) {
		struct measure measure;
		const enum psd_status status = measure_system(costed, &scenario->systems[s], &measure, err);
		if (status != PSD_OK)
			return status;
		fprintf(table, "%-8s %10u %10.3f %16.0f %14.2f\n", scenario->systems[s].name, measure.points,
			measure.cpu_sec, measure.points / measure.cpu_sec, 1e6 * measure.cpu_sec / measure.points);
		fprintf(csv, "%s,vgg19,%u,%.6f,%.0f,%.1f\n", scenario->systems[s].name, measure.points, measure.cpu_sec,
			measure.points / measure.cpu_sec, measure.operations);
	}
	return PSD_OK;
}

int main(int argc, char *argv[])
{
	static const char *const no_settings[] = {NULL};
	struct psd_scenario scenario;
	struct psd_costed_model costed;
	struct psd_error err;
	FILE *csv = argc > 1 ? fopen(argv[1], "w") : stdout;

	if (csv == NULL) {
		perror(argv[1]);
		return 2;
	}
	enum psd_status status =
		psd_scenario_parse(&scenario, "bench.yaml", scenario_text, strlen(scenario_text), no_settings, &err);
	if (status == PSD_OK) {
		status = psd_costed_model_load(&costed, &scenario, &err);
		if (status == PSD_OK) {
			status = measure_all(&costed, argc > 1 ? stdout : stderr, csv, &err);
			psd_costed_model_release(&costed);
		}
		psd_scenario_release(&scenario);
	}
	if (status != PSD_OK)
		fprintf(stderr, "%s\n", err.text);
	if (fclose(csv) != 0 && status == PSD_OK)
		status = PSD_EFILE;
	return status != PSD_OK;
}
