/* Cost of one simulated iteration of a whole model: wall seconds and memory of a process that loads the model, plans
 * and simulates. With a path, the table goes to stdout and the CSV to the path. Without one, the CSV goes to stdout and
 * the table to stderr. */
#define _DEFAULT_SOURCE

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/executor/simulate.h"

enum { TEXT_MAX = 1024 };

struct iteration {
	const char *model;
	const char *sync;
	unsigned workers;
	const char *fidelity;
};

static const struct iteration iterations[] = {
	{"resnet152", "ring", 256, "flow"}, {"resnet152", "ring", 64, "message"}, {"vgg19", "ps", 32, "message"},
	{"vgg19", "ps", 32, "flow"},	    {"vgg19", "hybrid", 256, "flow"},
};

struct cost {
	double wall_sec;
	double cpu_sec;
	double rss_mib; /* largest, of the process */
};

static double now_sec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static enum psd_status simulate_scenario(const struct psd_scenario *scenario, struct psd_error *err)
{
	struct psd_costed_model costed;
	struct psd_case made;
	struct psd_outcome outcome;
	enum psd_status status = psd_costed_model_load(&costed, scenario, err);

	if (status != PSD_OK)
		return status;
	status = psd_case_make(&made, &costed, &scenario->systems[0], psd_scenario_point(scenario, 0), err);
	if (status == PSD_OK) {
		status = psd_simulate(&made, PSD_DETAIL_CLASSES, NULL, NULL, &outcome, err);
		psd_case_release(&made);
	}
	psd_costed_model_release(&costed);
	return status;
}

/* The child's exit status. */
static int simulate(const struct iteration *iteration)
{
	static const char *const no_settings[] = {NULL};
	char text[TEXT_MAX];
	struct psd_scenario scenario;
	struct psd_error err;

	snprintf(text, sizeof(text),
		 "title: iteration bench\n"
		 "model: {graph: scenarios/models/%s.yaml, batch_per_worker: 32}\n"
		 "compute: {device: p100}\n"
		 "cluster:\n  stack: none\n  nodes: %u\n  network: {bandwidth: 40Gbps, latency: 30us}\n"
		 "  host: {copy: 6GBps, reduce: 8GBps}\n"
		 "systems: [{name: it, schedule: wait-free, sync: %s}]\nfidelity: %s\niterations: 1\n",
		 iteration->model, iteration->workers, iteration->sync, iteration->fidelity);
	enum psd_status status = psd_scenario_parse(&scenario, "bench.yaml", text, strlen(text), no_settings, &err);
	if (status == PSD_OK) {
		status = simulate_scenario(&scenario, &err);
		psd_scenario_release(&scenario);
	}
	if (status != PSD_OK)
		fprintf(stderr, "%s\n", err.text);
	return status != PSD_OK;
}

/* One process per case, as psd-sim does: memory does not add up, and SimGrid is one per process. */
static int measure(const struct iteration *iteration, struct cost *cost)
{
	const double start_sec = now_sec();
	struct rusage usage;
	int wait_status;

	fflush(NULL);
	const pid_t child = fork();
	if (child == 0)
		_exit(simulate(iteration));
	if (child < 0 || wait4(child, &wait_status, 0, &usage) != child || wait_status != 0)
		return 1;
	*cost = (struct cost){
		.wall_sec = now_sec() - start_sec,
		.cpu_sec = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
			   1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec),
		.rss_mib = (double)usage.ru_maxrss / 1024,
	};
	return 0;
}

int main(int argc, char *argv[])
{
	FILE *csv = argc > 1 ? fopen(argv[1], "w") : stdout;
	FILE *table = argc > 1 ? stdout : stderr;
	int n_failed = 0;

	if (csv == NULL) {
		perror(argv[1]);
		return 2;
	}
	fprintf(table, "%-10s %-7s %8s %-9s %8s %8s %8s\n", "model", "sync", "workers", "fidelity", "wall s", "cpu s",
		"rss MiB");
	fprintf(csv, "model,sync,workers,fidelity,wall_sec,cpu_sec,rss_mib\n");
	for (size_t i = 0; i < sizeof(iterations) / sizeof(iterations[0]); i++) {
		const struct iteration *it = &iterations[i];
		struct cost cost;
		if (measure(it, &cost) != 0) {
			fprintf(stderr, "%s, %s, %u workers, %s: failed\n", it->model, it->sync, it->workers,
				it->fidelity);
			n_failed++;
			continue;
		}
		fprintf(table, "%-10s %-7s %8u %-9s %8.3f %8.3f %8.1f\n", it->model, it->sync, it->workers,
			it->fidelity, cost.wall_sec, cost.cpu_sec, cost.rss_mib);
		fprintf(csv, "%s,%s,%u,%s,%.6f,%.6f,%.1f\n", it->model, it->sync, it->workers, it->fidelity,
			cost.wall_sec, cost.cpu_sec, cost.rss_mib);
	}
	if (fclose(csv) != 0)
		n_failed++;
	return n_failed != 0;
}
