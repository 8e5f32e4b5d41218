/* One system of a run: its processes, progress lines, and the dilation of its replay. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/units.h"
#include "engine/program/outcome.h"
#include "real/base/console.h"
#include "real/replay/replay.h"
#include "real/run_parts.h"

#define MOST_STOLEN_RATIO 0.02 /* share of processor time; a line tells of more */

enum { MOST_PROGRESS_LINES = 20, SOUNDING_ITERATIONS = 2, MOST_TIMES_AGAIN = 2 };

/* The context of progress lines in worker 0's process. */
struct observer {
	const struct psd_run *run;
	const struct psd_system *system;
};

static void print_progress(const struct psd_system *system, const struct psd_progress *progress, bool has_replay)
{
	const uint32_t stride = (progress->n_iterations - 1) / MOST_PROGRESS_LINES + 1;
	const double test_ratio =
		progress->test_labels ? (double)progress->test_correct / (double)progress->test_labels : 0.0;
	char test[64] = "", loss[PSD_UNITS_TEXT_MAX];

	if (progress->iteration % stride && progress->iteration + 1 != progress->n_iterations && !progress->test_labels)
		return;
	if (has_replay) {
		psd_console_say("%s: iteration %u of %u, at %.3f s", system->name, progress->iteration + 1,
				progress->n_iterations, progress->elapsed_sec);
		return;
	}
	if (progress->test_labels)
		snprintf(test, sizeof(test), "; %.1f %% in the test", 100.0 * test_ratio);
	psd_console_say("%s: iteration %u of %u, at %.3f s: loss %s, %.1f %% right%s", system->name,
			progress->iteration + 1, progress->n_iterations, progress->elapsed_sec,
			psd_units_write_number(progress->loss, loss), 100.0 * progress->correct_ratio, test);
}

static void observe(void *context, const struct psd_progress *progress)
{
	const struct observer *observer = context;
	struct psd_error err;

	if (psd_run_log_add(&observer->run->log, observer->system, progress, observer->run->scenario->has_replay, &err))
		psd_console_say("psd-run: %s; the run goes on", err.text);
	if (!observer->run->options->is_quiet && psd_console_takes_more())
		print_progress(observer->system, progress, observer->run->scenario->has_replay);
}

static enum psd_status write_trace(struct psd_run *run, const struct psd_case *made, const struct psd_spans *spans,
				   struct psd_error *err)
{
	char executor[PSD_RUN_EXECUTOR_MAX];
	uint32_t last_iteration;

	psd_run_name_executor(executor, run->device, psd_run_replay(run) != NULL, run->cluster_kind);
	PSD_TRY(psd_spans_write(spans, &run->trace, made, executor, run->hosts.n_hosts > 0, &last_iteration, err));
	run->has_trace = true;
	if (last_iteration != UINT32_MAX)
		psd_console_say("psd-run: the trace ends in iteration %u: it holds %d operations of a worker at most",
				last_iteration, PSD_MAX_SPANS);
	if (!run->options->is_quiet && run->n_rows > 1)
		psd_console_say("psd-run: the trace is of %s", made->system->name);
	if (!run->options->is_quiet && run->n_restarts > 0)
		psd_console_say("psd-run: the trace begins with iteration %" PRIu32 ", at the last restart",
				run->first_iteration);
	return PSD_OK;
}

static void say_stolen(const struct psd_run *run, const struct psd_case *made, const struct psd_worker_result *result)
{
	const double stolen_ratio =
		result->machine_cpu_sec > 0.0 ? result->stolen_cpu_sec / result->machine_cpu_sec : 0.0;

	if (stolen_ratio > MOST_STOLEN_RATIO && !run->options->is_quiet)
		psd_console_say(
			"psd-run: %s: the physical host gave %.0f %% of this virtual machine's processor time to "
			"others, so the run was slower",
			made->system->name, 100.0 * stolen_ratio);
}

/* Without --iterations a replay has whole periods, as a prediction measures them. */
static uint32_t iterations_of(const struct psd_run *run, const struct psd_case *made)
{
	const uint32_t n = psd_run_iterations(run);

	return psd_run_replay(run) && run->options->n_iterations == 0
		       ? psd_run_whole_periods(n, psd_run_first_measured(made->system), psd_run_unit(made->system))
		       : n;
}

static enum psd_status launch_case(struct psd_run *run, const struct psd_case *made, struct psd_run_row *row,
				   struct psd_error *err)
{
	const struct psd_run_options *options = run->options;
	struct observer observer = {run, made->system};
	struct psd_spans spans = {.hosts = NULL};
	const bool is_over = psd_run_is_done(run); /* hosts only tell each other that they are done */
	const bool is_traced = made->system == run->traced && !is_over;
	const unsigned n_traced = run->hosts.n_hosts ? 1 : psd_layout_hosts(&made->plan.layout);
	struct psd_launch_options launch = psd_run_launch_options(run, made);
	enum psd_status status = is_traced ? psd_spans_open(&spans, n_traced, err) : PSD_OK;

	launch.worker.first_iteration = run->first_iteration;
	launch.worker.first_sample = run->first_sample;
	launch.worker.from_hosts = run->from_hosts;
	launch.worker.n_iterations = is_over ? run->first_iteration : iterations_of(run, made);
	launch.worker.checkpoints = run->checkpoints.folder ? &run->checkpoints : NULL;
	launch.worker.is_tested = run->scenario->train.test_every_epochs > 0 && !psd_run_replay(run);
	launch.worker.progress = options->is_quiet && !run->log.file ? NULL : observe;
	launch.worker.context = &observer;
	launch.spans = is_traced ? &spans : NULL;
	row->result = (struct psd_worker_result){.iteration_sec = 0.0}; /* a failed run leaves nothing to judge */
	if (!status)
		status = psd_run_launch(run, &launch, &row->result, err);
	*run->n_joined += !status && run->hosts.n_hosts;
	if (is_over)
		return status;
	if (!status && psd_run_replay(run))
		status = psd_replay_check(&row->result, &run->replay, made->system->name, err);
	if (!status) {
		psd_run_add_split(&row->split, run, made);
		run->rows[run->n_rows++] = *row;
		say_stolen(run, made, &row->result);
	}
	if (!status && !row->has_replay && !isfinite(row->result.last_loss))
		psd_console_say("psd-run: %s diverged, its loss is not a number", made->system->name);
	if (!status && is_traced && write_trace(run, made, &spans, &run->trace_err))
		psd_console_say("psd-run: %s; the run goes on", run->trace_err.text);
	psd_spans_close(&spans);
	return status;
}

/* Tries dilations in short runs. If none is true to its times, a whole run would not be either. */
static enum psd_status find_dilation(struct psd_run *run, const struct psd_case *made, struct psd_error *err)
{
	struct psd_launch_options launch = psd_run_launch_options(run, made);
	struct psd_soundings soundings = {.n_runs = 0};
	struct psd_worker_result result;

	launch.worker.n_iterations = SOUNDING_ITERATIONS;
	launch.worker.remark = NULL;
	PSD_TRY(psd_replay_estimate(made, run->replay.payload_ratio, &soundings.next_ratio, err));
	do {
		run->replay.dilation_ratio = soundings.next_ratio;
		PSD_TRY(psd_launch(&launch, &result, err));
	} while (psd_replay_sound(&soundings, &result));
	run->replay.dilation_ratio = soundings.dilation_ratio;
	PSD_TRY(psd_replay_check(&soundings.result, &run->replay, made->system->name, err));
	if (!run->options->is_quiet)
		psd_console_say("psd-run: %s: dilation %g, at which this machine was busy for %.0f %% of the time",
				made->system->name, soundings.dilation_ratio,
				100.0 * psd_replay_busy_ratio(&soundings.result));
	return PSD_OK;
}

/* A whole run may be less true to its times than the short runs before it, so it is repeated at a larger dilation. */
static enum psd_status launch_again(struct psd_run *run, const struct psd_case *made, struct psd_run_row *row,
				    struct psd_error *err)
{
	psd_run_log_begin(&run->log);
	psd_run_log_keep(&run->log);
	enum psd_status status = launch_case(run, made, row, err);
	for (unsigned i = 0; i < MOST_TIMES_AGAIN && status == PSD_ERUN && run->scenario->replay.finds_dilation &&
			     psd_replay_again(&row->result, &run->replay.dilation_ratio);
	     i++) {
		if (!run->options->is_quiet)
			psd_console_say("psd-run: %s: the replay did not keep its times, it is repeated at dilation %g",
					made->system->name, run->replay.dilation_ratio);
		psd_run_log_drop(&run->log);
		row->replay = run->replay;
		status = launch_case(run, made, row, err);
	}
	return status;
}

static void say_done(const struct psd_run *run, const struct psd_system *system)
{
	psd_console_say("psd-run: %s has been trained for %" PRIu32 " iterations: train for more with --iterations",
			*run->from_system ? run->from_system : system->name, run->first_iteration);
}

/* This host joins no other, so a host whose newest checkpoint is older must not wait for it. */
static void report_done(struct psd_run *run)
{
	struct psd_error words;

	if (run->hosts.n_hosts < 2)
		return;
	if (run->listener >= 0)
		close(run->listener);
	run->listener = -1;
	psd_error_set(&words, PSD_ERUN, PSD_NOWHERE,
		      "has written the last checkpoint of this run, after %" PRIu32 " iterations",
		      run->first_iteration);
	psd_mesh_report_failure(run->hosts.hosts, run->hosts.n_hosts, run->self,
				psd_run_hash(run->options, *run->n_joined), run->secret, words.text);
}

/* This host has the last checkpoint. Hosts with folders of their own cannot see whether the others have it, too: they
 * join once more, and go back together if one lacks it. Where the others do not come, a psd-run that has lost one of
 * them fails. A new one may have been killed after the others had ended, and has nothing left to do. */
static enum psd_status end_together(struct psd_run *run, const struct psd_case *made, struct psd_run_row *row,
				    struct psd_error *err)
{
	const bool may_be_alone = run->hosts.n_hosts > 1 && run->options->n_restarts > 0 && !run->has_whole;
	enum psd_status status = may_be_alone ? launch_case(run, made, row, err) : PSD_OK;

	if (status == PSD_EABSENT && !run->lost.status) { /* here, or at another host that came again */
		psd_console_say("psd-run: %s; this host has the last checkpoint, the others may have ended", err->text);
		status = PSD_OK;
	}
	if (status)
		return status;
	say_done(run, made->system);
	if (!may_be_alone)
		report_done(run);
	return PSD_OK;
}

/* Executes the system from its newest checkpoint on. */
static enum psd_status execute(struct psd_run *run, struct psd_case *made, struct psd_run_row *row,
			       struct psd_error *err)
{
	const enum psd_status status = psd_run_find_first(run, made, err);

	psd_run_say_restart(run, run->system, status);
	if (status)
		return status;
	if (psd_run_is_done(run))
		return end_together(run, made, row, err);
	PSD_TRY(psd_run_measure_groups(run, made, err));
	psd_run_say_split(run, made);
	row->samples = psd_case_batch(made, 0) * made->plan.micro_batches;
	row->period = psd_plan_steps(&made->plan);
	row->n_parts = psd_plan_parts(&made->plan);
	row->has_rebuilds = psd_outcome_takes_factors(&made->program);
	return launch_again(run, made, row, err);
}

enum psd_status psd_run_system(struct psd_run *run, const struct psd_system *system, struct psd_error *err)
{
	struct psd_run_row row = {.system = system,
				  .point = run->point,
				  .cluster_kind = run->cluster_kind,
				  .has_replay = run->scenario->has_replay};
	struct psd_case made;

	run->system = system;
	if (!run->options->resumes) /* a resumed run does not know its first iteration yet */
		PSD_TRY(psd_run_settle_end(run, err));
	run->costed.is_measured = run->has_measured = false; /* each system has a measurement of its own */
	PSD_TRY(psd_case_make(&made, &run->costed, system, run->point, err));
	enum psd_status status = PSD_OK;

	psd_run_name_executor(row.executor, run->device, row.has_replay, run->cluster_kind);
	if (row.has_replay && run->scenario->replay.finds_dilation)
		status = find_dilation(run, &made, err);
	row.replay = run->replay;
	if (!status)
		status = execute(run, &made, &row, err);
	while (status && psd_run_restarts(run, err))
		status = execute(run, &made, &row, err);
	if (status && psd_run_has_ended(run, &made)) {
		say_done(run, system);
		status = PSD_OK;
	}
	psd_case_release(&made);
	return status;
}
