/* Where a run begins that keeps checkpoints. */
#include <inttypes.h>

#include "real/base/console.h"
#include "real/run_parts.h"

static struct psd_place place_of(const struct psd_run *run)
{
	return (struct psd_place){.path = run->checkpoints.folder};
}

static unsigned count_chosen(const struct psd_run *run)
{
	unsigned n = 0;

	for (unsigned s = 0; s < run->scenario->n_systems; s++)
		n += psd_run_is_chosen(run, &run->scenario->systems[s]);
	return n;
}

/* By the command line, the solver's file, or those of an epoch, the last of which may begin the next. */
static uint64_t every_iterations(const struct psd_run *run)
{
	const uint64_t batch = psd_run_global_batch(run);

	if (run->options->save_every > 0)
		return run->options->save_every;
	if (run->train.snapshot_iterations > 0)
		return run->train.snapshot_iterations;
	return (run->training_samples + batch - 1) / batch;
}

enum psd_status psd_run_check_save(const struct psd_run *run, struct psd_error *err)
{
	if (!run->options->save_path)
		return PSD_OK;
	if (psd_run_replay(run))
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = run->scenario->path},
				     "'replay' trains nothing that '--save' could keep");
	if (count_chosen(run) > 1)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = run->scenario->path},
				     "has %u systems, '--save' is of one: choose it with '--system NAME'",
				     count_chosen(run));
	return PSD_OK;
}

enum psd_status psd_run_open_checkpoints(struct psd_run *run, struct psd_error *err)
{
	const struct psd_run_options *options = run->options;
	const uint64_t every = every_iterations(run);
	enum psd_status status;

	if (!options->save_path)
		return PSD_OK;
	run->checkpoints.folder = options->save_path;
	run->checkpoints.every_iterations = every < PSD_MAX_ITERATIONS ? (uint32_t)every : PSD_MAX_ITERATIONS;
	status = psd_checkpoints_open(&run->checkpoints, err);
	return status || run->self != 0 ? status : psd_checkpoints_lock(&run->checkpoints, &run->checkpoints_lock, err);
}

static enum psd_status refuse_begin(const struct psd_run *run, struct psd_error *err)
{
	return psd_error_set(err, PSD_EINVAL, place_of(run),
			     "has checkpoints: go on from them with '--resume', or name another folder");
}

static enum psd_status refuse_other(const struct psd_run *run, unsigned n_hosts, unsigned other_hosts,
				    struct psd_error *err)
{
	return psd_error_set(err, PSD_EINVAL, place_of(run),
			     "has checkpoints of %u hosts, this run has %u: its parameters may be a start, in another "
			     "folder, with --set train.start=%.200s",
			     other_hosts, n_hosts, psd_checkpoint_parameters_path(&run->checkpoints).text);
}

/* A run that was killed at its first checkpoint begins again by itself, what was written for long does not. */
static enum psd_status refuse_lost(const struct psd_run *run, struct psd_error *err)
{
	return psd_error_set(err, PSD_EINVAL, place_of(run),
			     "has checkpoints, but none of all hosts: bring back the missing files, or name another "
			     "folder to begin anew");
}

static void say_begin(const struct psd_run *run, const struct psd_case *made, const struct psd_checkpoints_found *found)
{
	if (run->options->is_quiet || run->self != 0 || run->lost.status)
		return;
	if (found->iterations > 0)
		psd_console_say("psd-run: %s goes on after %" PRIu32 " iterations, from %s", made->system->name,
				found->iterations, run->checkpoints.folder);
	else
		psd_console_say("psd-run: %s: no %scheckpoint to go on from, %s begins at the beginning",
				run->checkpoints.folder, found->has_any ? "whole " : "", made->system->name);
}

enum psd_status psd_run_find_first(struct psd_run *run, const struct psd_case *made, struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(&made->plan.layout);
	const struct psd_checkpoint_host host = {run->hosts.n_hosts ? run->self : n_hosts, n_hosts};
	struct psd_checkpoints_found found;
	enum psd_status status;

	if (!run->checkpoints.folder)
		return PSD_OK;
	status = psd_checkpoints_find(&run->checkpoints, host, run->below_iterations, &found, err);
	if (status)
		return status;
	if (!run->options->resumes)
		return found.has_any ? refuse_begin(run, err) : PSD_OK;
	if (found.iterations == 0 && found.other_hosts > 0)
		return refuse_other(run, n_hosts, found.other_hosts, err);
	if (found.has_lost)
		return refuse_lost(run, err);
	run->first_iteration = found.iterations;
	if (!psd_run_is_done(run))
		say_begin(run, made, &found);
	return psd_run_log_go_on(&run->log, made->system, found.iterations, err);
}
