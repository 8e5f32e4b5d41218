/* psd-run: trains on a cluster of worker processes from a scenario file. Prints, and chooses the exit status; everything else is elsewhere. */
#define _GNU_SOURCE 1

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "real/launch.h"
#include "real/run_options.h"
#include "real/run_output.h"

#ifndef PSD_VERSION
#define PSD_VERSION "unknown"
#endif

enum { EXIT_DONE = 0, EXIT_RUN_FAILED = 1, EXIT_BAD_INPUT = 2 };

enum { MOST_NODES_UNASKED = 4, MOST_PROGRESS_LINES = 20 };

#define CONNECT_SEC 30.0

static int exit_of(enum psd_status status)
{
	if (status == PSD_OK)
		return EXIT_DONE;
	return status == PSD_EINVAL || status == PSD_EFILE ? EXIT_BAD_INPUT : EXIT_RUN_FAILED;
}

/* What names a file and line stands alone, as compilers do it, so that editors find the place. */
static int complain(enum psd_status status, const struct psd_error *err, bool has_place)
{
	fprintf(stderr, "%s%s\n", has_place ? "" : "psd-run: ", err->text);
	return exit_of(status);
}

/* ---- progress ---- */

static void print_progress(void *context, const struct psd_progress *progress)
{
	const struct psd_system *system = context;
	const uint32_t stride = (progress->n_iterations - 1) / MOST_PROGRESS_LINES + 1;

	if (progress->iteration % stride == 0 || progress->iteration + 1 == progress->n_iterations)
		fprintf(stderr, "%s: iteration %u of %u, %.3f s: loss %.6f, %.1f %% right\n", system->name, progress->iteration,
			progress->n_iterations, progress->elapsed_sec, progress->loss, 100.0 * progress->correct_ratio);
}

/* ---- what to run ---- */

/* The first cluster of several nodes that one machine can be, else the first that it can be. */
static enum psd_status choose_point(const struct psd_run_options *options, const struct psd_scenario *scenario,
				    struct psd_point *point, struct psd_error *err)
{
	const unsigned n_points = psd_scenario_points(scenario);
	bool has_point = false;

	*point = psd_scenario_point(scenario, 0);
	if (options->n_nodes) {
		point->workers_per_node = scenario->workers_per_node;
		point->nodes = (unsigned)options->n_nodes;
		point->workers = point->nodes * point->workers_per_node;
		return PSD_OK;
	}
	for (unsigned i = 0; i < n_points; i++) {
		const struct psd_point candidate = psd_scenario_point(scenario, i);

		if (candidate.nodes > MOST_NODES_UNASKED || (has_point && (point->nodes > 1 || candidate.nodes == 1)))
			continue;
		*point = candidate;
		has_point = true;
	}
	if (has_point)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){scenario->path, 0, 0},
			     "has no cluster of %d nodes or fewer, say how many with --nodes", MOST_NODES_UNASKED);
}

/* One scenario's run. */
struct command {
	const struct psd_run_options *options;
	const struct psd_scenario *scenario;
	struct psd_train train;
	struct psd_subject_matter matter;
	struct psd_point point;
	struct psd_run_row *rows;
	unsigned n_rows;
	uint64_t training_samples;
};

static uint32_t choose_iterations(const struct command *command)
{
	const uint64_t global_batch = (uint64_t)command->point.workers * command->scenario->batch_per_worker;

	return command->options->n_iterations ? (uint32_t)command->options->n_iterations
					      : psd_worker_iterations(&command->train, command->training_samples, global_batch);
}

static enum psd_status run_system(struct command *command, const struct psd_system *system, struct psd_error *err)
{
	const struct psd_run_options *options = command->options;
	struct psd_launch_options launch = {
		.train = &command->train,
		.n_iterations = choose_iterations(command),
		.is_emulated = !options->has_no_emulation,
		.connect_sec = CONNECT_SEC,
		.stall_sec = options->stall_sec,
		.is_tested = command->train.test_every_epochs > 0,
		.progress = options->is_quiet ? NULL : print_progress,
		.context = (void *)(uintptr_t)system,
	};
	struct psd_run_row row = {.system = system,
				  .point = command->point,
				  .has_bandwidth = launch.is_emulated && command->point.bandwidth_bps > 0};
	struct psd_case made;
	enum psd_status status = psd_case_make(&made, &command->matter, system, command->point, err);

	if (status)
		return status;
	launch.made = &made;
	status = psd_launch(&launch, &row.result, err);
	psd_case_release(&made);
	if (status)
		return status;
	command->rows[command->n_rows++] = row;
	if (options->is_csv)
		psd_run_output_csv(stdout, command->scenario, &row);
	fflush(stdout);
	return PSD_OK;
}

static enum psd_status run_systems(struct command *command, struct psd_error *err)
{
	const struct psd_scenario *scenario = command->scenario;
	const char *wanted = command->options->system_name;
	enum psd_status status = PSD_OK;
	bool has_run = false;

	if (command->options->is_csv)
		psd_run_output_csv_head(stdout);
	for (unsigned s = 0; s < scenario->n_systems && !status; s++) {
		if (wanted && strcmp(wanted, scenario->systems[s].name) != 0)
			continue;
		has_run = true;
		status = run_system(command, &scenario->systems[s], err);
	}
	if (!has_run)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){scenario->path, 0, 0}, "has no system '%.200s'", wanted);
	if (!status && !command->options->is_csv)
		psd_run_output_table(stdout, scenario, command->rows, command->n_rows);
	return status;
}

static void remark(const struct command *command)
{
	if (command->options->is_quiet)
		return;
	if (command->options->has_no_emulation)
		fputs("psd-run: no emulation: processes on loopback, links are as fast as the machine\n", stderr);
	else if (command->scenario->network.latency_sec > 0.0)
		fputs("psd-run: links have the scenario's bandwidth, but this machine's latency\n", stderr);
}

static enum psd_status run_scenario(const struct psd_run_options *options, const struct psd_scenario *scenario,
				    struct psd_error *err)
{
	struct command command = {.options = options, .scenario = scenario, .train = scenario->train};
	enum psd_status status;

	if (!scenario->has_train)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){scenario->path, 0, 0},
				     "has no 'train', which psd-run needs; psd-sim predicts without it");
	status = psd_train_load_solver(&command.train, err);
	if (!status)
		status = choose_point(options, scenario, &command.point, err);
	if (!status)
		status = psd_subject_matter_load(&command.matter, scenario, err);
	if (status)
		return status;
	status = psd_worker_count_samples(&command.matter.graph, &command.train, &command.training_samples, err);
	if (status) {
		psd_subject_matter_release(&command.matter);
		return status;
	}
	command.rows = calloc(scenario->n_systems, sizeof(*command.rows));
	if (command.rows) {
		remark(&command);
		status = run_systems(&command, err);
	} else {
		status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	}
	free(command.rows);
	psd_subject_matter_release(&command.matter);
	return status;
}

static int run(const struct psd_run_options *options)
{
	struct psd_scenario scenario;
	struct psd_error err;
	enum psd_status status;

	if (options->is_help) {
		psd_run_options_write_help(stdout);
		return EXIT_DONE;
	}
	if (options->is_version) {
		puts("psd-run " PSD_VERSION);
		return EXIT_DONE;
	}
	status = psd_scenario_load(&scenario, options->scenario_path, options->settings, &err);
	if (status)
		return complain(status, &err, true);
	status = run_scenario(options, &scenario, &err);
	psd_scenario_release(&scenario);
	return status ? complain(status, &err, status == PSD_EINVAL || status == PSD_EFILE) : EXIT_DONE;
}

int main(int argc, char *argv[])
{
	struct psd_run_options options;
	struct psd_error err;
	int exit_status;

	signal(SIGPIPE, SIG_IGN); /* a reader that went away is a failed write like any other */
	if (psd_run_options_parse(&options, argc, argv, &err))
		return complain(PSD_EINVAL, &err, false);
	exit_status = run(&options);
	psd_run_options_release(&options);
	if (fflush(stdout) || ferror(stdout)) {
		fputs("psd-run: cannot write to standard output\n", stderr);
		return exit_status ? exit_status : EXIT_RUN_FAILED;
	}
	return exit_status;
}
