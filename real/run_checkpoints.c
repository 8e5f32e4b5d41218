/* The checkpoint at which a run begins, and restarts after a loss. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "real/base/console.h"
#include "real/keep/agreed_terms.h"
#include "real/keep/checkpoint_check.h"
#include "real/keep/old_checkpoint.h"
#include "real/run_parts.h"
#include "real/work/sums.h"

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

/* The interval of the command line, else of the solver's file, else an epoch, whose last iteration may begin the next
 * one. */
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
				     "'replay' trains nothing, '--save' needs a run that trains");
	if (count_chosen(run) > 1)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = run->scenario->path},
				     "the scenario has %u systems, '--save' is for one: choose it with '--system NAME'",
				     count_chosen(run));
	return PSD_OK;
}

enum psd_status psd_run_plan_files(struct psd_run *run, struct psd_error *err)
{
	const struct psd_checkpoints checkpoints = {.folder = run->options->save_path};
	const char *const log = run->self == 0 && run->options->resumes ? run->options->log_path : NULL;

	if (checkpoints.folder)
		PSD_TRY(psd_checkpoints_reserve(&checkpoints, err));
	PSD_TRY(psd_arguments_plan_files(&psd_run_options_table, run->options, err));
	return log ? psd_run_log_check(log, err) : PSD_OK;
}

enum psd_status psd_run_open_checkpoints(struct psd_run *run, struct psd_error *err)
{
	const struct psd_run_options *options = run->options;
	const uint64_t every = every_iterations(run);

	if (!options->save_path)
		return PSD_OK;
	run->checkpoints.folder = options->save_path;
	run->checkpoints.every_iterations = every < PSD_MAX_ITERATIONS ? (uint32_t)every : PSD_MAX_ITERATIONS;
	PSD_TRY(psd_checkpoints_open(&run->checkpoints, err));
	return psd_checkpoints_lock(&run->checkpoints, run->self, &run->locks[PSD_RUN_LOCK_SAVE], err);
}

static enum psd_status refuse_begin(const struct psd_run *run, struct psd_error *err)
{
	return psd_error_set(err, PSD_EINVAL, place_of(run),
			     "the folder has checkpoints: go on from them with '--resume', or name another folder");
}

/* A new run would replace them at its first checkpoint. */
static enum psd_status refuse_parameters(const struct psd_run *run, struct psd_error *err)
{
	const struct psd_checkpoint_path parameters = psd_checkpoint_parameters_path(&run->checkpoints);

	return psd_error_set(err, PSD_EINVAL, place_of(run),
			     "has the parameters of an earlier run but no checkpoint: name another folder; begin there "
			     "with these parameters with --set train.start=%.200s",
			     parameters.text);
}

/* Where each host has a folder of its own, host 0 alone has written parameters. */
static enum psd_status refuse_missing(const struct psd_run *run, const struct psd_checkpoint_set *set,
				      bool has_parameters, struct psd_error *err)
{
	const struct psd_checkpoint_host missing = {set->missing, set->n_hosts};
	const struct psd_checkpoint_path path = psd_checkpoint_path(&run->checkpoints, missing, set->iterations);
	const struct psd_checkpoint_path parameters = psd_checkpoint_parameters_path(&run->checkpoints);

	return psd_error_set(
		err, PSD_EINVAL, (struct psd_place){.path = path.text},
		"the file is missing: to go on with other hosts or another system, each host needs the files of all "
		"%u hosts in a shared folder; or begin in another folder with --set train.start=%.200s",
		set->n_hosts, has_parameters ? parameters.text : "FILE, the parameters.safetensors of host 0's folder");
}

/* The run begins at the beginning and would replace them at its first checkpoint. */
static enum psd_status keep_parameters(const struct psd_run *run, struct psd_error *err)
{
	const struct psd_checkpoint_path parameters = psd_checkpoint_parameters_path(&run->checkpoints);
	struct psd_checkpoint_path kept;

	if (!psd_checkpoint_keep_parameters(&run->checkpoints, &kept))
		return refuse_parameters(run, err);
	psd_console_say("psd-run: %s: the parameters of an earlier run are kept as %s", parameters.text, kept.text);
	return PSD_OK;
}

/* A run that was killed at its first checkpoint begins again by itself. Older checkpoints that lack files are
 * refused. */
static enum psd_status refuse_lost(const struct psd_run *run, struct psd_error *err)
{
	return psd_error_set(
		err, PSD_EINVAL, place_of(run),
		"the folder has checkpoints, but none with the files of all hosts: restore the missing files, or name "
		"another folder to begin anew");
}

static void say_begin(const struct psd_run *run, const struct psd_case *made, bool has_any)
{
	if (run->first_iteration > 0)
		psd_console_say("psd-run: %s goes on after %" PRIu32 " iterations, from %s", made->system->name,
				run->first_iteration, run->checkpoints.folder);
	else
		psd_console_say("psd-run: %s: no %scheckpoint to go on from, %s begins at the beginning",
				run->checkpoints.folder, has_any ? "whole " : "", made->system->name);
}

static void say_other(const struct psd_run *run, const struct psd_case *made,
		      const struct psd_old_checkpoint_about *about)
{
	const unsigned n_hosts = psd_layout_hosts(&made->plan.layout), from = run->from_hosts;
	const bool is_alike = from == n_hosts && !strcmp(about->system, made->system->name);

	if (from > 0)
		psd_console_say("psd-run: the run of %u host%s by '%s' goes on with %u by %s'%s'", from,
				psd_text_plural(from), about->system, n_hosts, is_alike ? "another " : "",
				made->system->name);
}

/* The file that describes the whole run: this host's own, or host 0's if other hosts wrote the checkpoint. */
static struct psd_checkpoint_path about_path(const struct psd_run *run, const struct psd_checkpoint_set *set,
					     struct psd_checkpoint_host host)
{
	const bool is_own = set->n_hosts == host.n_hosts && host.host < host.n_hosts;
	const struct psd_checkpoint_host one = {is_own ? host.host : 0, set->n_hosts};

	return psd_checkpoint_path(&run->checkpoints, one, set->iterations);
}

/* Finds the number of samples the run has used, and whether other hosts or another system wrote the checkpoint. */
static enum psd_status look_back(struct psd_run *run, const struct psd_case *made,
				 const struct psd_checkpoints_found *found, struct psd_checkpoint_host host,
				 struct psd_old_checkpoint_about *about, struct psd_error *err)
{
	const struct psd_checkpoint_set *set = &found->newest;
	struct psd_text program = {.bytes = NULL}, text = {.bytes = NULL};
	struct psd_shard_map shard_map;

	PSD_TRY(psd_shard_map_make(&shard_map, &made->plan, err));
	psd_shard_map_add(&text, &shard_map);
	psd_shard_map_release(&shard_map);
	psd_terms_add_program(&program, &run->costed.graph, &made->program);
	enum psd_status status =
		program.is_out_of_memory || text.is_out_of_memory
			? psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory")
			: psd_old_checkpoint_look(about, about_path(run, set, host).text, set->iterations,
						  &run->costed.graph, program.bytes, text.bytes, err);
	psd_text_release(&program);
	psd_text_release(&text);
	if (status)
		return status;
	run->first_sample = about->has_samples ? about->samples : set->iterations * psd_run_global_batch(run);
	run->from_hosts = set->n_hosts == host.n_hosts && about->is_alike ? 0 : set->n_hosts;
	return run->from_hosts == 0 || set->missing == set->n_hosts
		       ? PSD_OK
		       : refuse_missing(run, set, found->has_parameters, err);
}

/* Makes the case again for the measured speeds of the checkpoint, if it has them and as many hosts wrote it. */
static enum psd_status take_split(struct psd_run *run, struct psd_case *made, const struct psd_checkpoint_set *set,
				  struct psd_checkpoint_host host, struct psd_error *err)
{
	const struct psd_checkpoint_path path = about_path(run, set, host);

	run->costed.is_measured = run->has_measured = false;
	if (run->system->split != PSD_SPLIT_MEASURED || set->iterations == 0 || set->n_hosts != host.n_hosts)
		return PSD_OK;
	PSD_TRY(psd_old_checkpoint_read_split(run->costed.sample_sec, run->scenario->n_groups, path.text,
					      &run->costed.is_measured, err));
	psd_case_release(made);
	return psd_case_make(made, &run->costed, run->system, run->point, err);
}

/* Begins at the newest checkpoint, or at iteration 0 without one. */
static enum psd_status begin_at(struct psd_run *run, struct psd_case *made, const struct psd_checkpoints_found *found,
				struct psd_checkpoint_host host, struct psd_error *err)
{
	struct psd_old_checkpoint_about about = {.system = ""};

	PSD_TRY(take_split(run, made, &found->newest, host, err));
	run->first_iteration = found->newest.iterations;
	run->has_whole = found->newest.missing == found->newest.n_hosts;
	run->first_sample = 0;
	run->from_hosts = 0;
	if (found->newest.iterations > 0)
		PSD_TRY(look_back(run, made, found, host, &about, err));
	memcpy(run->from_system, about.system, sizeof(run->from_system));
	PSD_TRY(psd_run_settle_end(run, err));
	if (psd_run_is_done(run) || run->options->is_quiet || run->self != 0)
		return PSD_OK;
	if (run->lost.status) /* psd_run_say_restart() says it */
		return PSD_OK;
	say_begin(run, made, found->has_any);
	say_other(run, made, &about);
	return PSD_OK;
}

/* Says which checkpoints are skipped, a line each. */
static void say_skipped(const char *lines)
{
	for (const char *line = lines; line && *line; line = strchr(line, '\n') + 1)
		psd_console_say("psd-run: %.*s", (int)strcspn(line, "\n"), line);
}

/* Number of iterations of the newest checkpoint, if it is not whole; 0: it is whole, or there is none. */
static uint32_t find_unsound(const struct psd_run *run, const struct psd_checkpoints_found *found,
			     struct psd_checkpoint_host host, struct psd_error *why)
{
	const struct psd_checkpoint_host missing = {found->torn.missing, found->torn.n_hosts};

	if (found->torn.iterations > 0) {
		const struct psd_checkpoint_path path =
			psd_checkpoint_path(&run->checkpoints, missing, found->torn.iterations);

		psd_error_set(why, PSD_EFILE, (struct psd_place){.path = path.text}, "the file is missing");
		return found->torn.iterations;
	}
	return found->newest.iterations > 0 && psd_checkpoint_check(&run->checkpoints, &found->newest, host, why)
		       ? found->newest.iterations
		       : 0;
}

/* Goes back from the newest checkpoint to the newest whole one. found: the newest, replaced. A run that was killed at
 * its first checkpoint begins again; it does not if all files were there. */
static enum psd_status find_whole(const struct psd_run *run, struct psd_checkpoint_host host,
				  struct psd_checkpoints_found *found, struct psd_error *err)
{
	struct psd_text skipped = {.bytes = NULL};
	struct psd_error why, first = {.status = PSD_OK};
	enum psd_status status = PSD_OK;
	uint32_t iterations;

	while (!status && (iterations = find_unsound(run, found, host, &why)) > 0) {
		if (!first.status && found->torn.iterations == 0)
			first = why;
		psd_text_add(&skipped, "%s: the checkpoint of %" PRIu32 " iterations is skipped\n", why.text,
			     iterations);
		if (why.status == PSD_ENOMEM || skipped.is_out_of_memory)
			status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a checkpoint");
		else
			status = psd_checkpoints_find(&run->checkpoints, host, iterations, found, err);
	}
	if (!status && first.status && found->newest.iterations == 0)
		status = psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				       "%s; no other checkpoint is whole: name another folder to begin anew",
				       first.text);
	if (!status && !found->has_lost) /* a refusal says it otherwise */
		say_skipped(skipped.bytes);
	psd_text_release(&skipped);
	return status;
}

/* Says which iterations the log lacks, as when somebody cut it or the disk was full. */
static enum psd_status go_on_log(struct psd_run *run, struct psd_error *err)
{
	struct psd_text missing = {.bytes = NULL};
	const enum psd_status status = psd_run_log_go_on(&run->log, run->first_iteration, &missing, err);

	if (!status && missing.bytes)
		psd_console_say("psd-run: %s: lacks the lines of iterations %s", run->log.path, missing.bytes);
	psd_text_release(&missing);
	return status;
}

enum psd_status psd_run_find_first(struct psd_run *run, struct psd_case *made, struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(&made->plan.layout);
	const struct psd_checkpoint_host host = {run->hosts.n_hosts ? run->self : n_hosts, n_hosts};
	struct psd_checkpoints_found found;

	if (!run->checkpoints.folder)
		return PSD_OK;
	PSD_TRY(psd_checkpoints_find(&run->checkpoints, host, run->below_iterations, &found, err));
	if (found.has_parameters && !found.has_folders)
		return refuse_parameters(run, err);
	if (found.has_parameters && !found.has_any && run->self == 0 && run->n_restarts == 0)
		PSD_TRY(keep_parameters(run, err));
	if (!run->options->resumes)
		return found.has_any ? refuse_begin(run, err) : PSD_OK;
	PSD_TRY(find_whole(run, host, &found, err));
	if (found.newest.iterations == 0 && found.other.iterations > 0)
		return refuse_missing(run, &found.other, found.has_parameters, err);
	if (found.has_lost)
		return refuse_lost(run, err);
	PSD_TRY(begin_at(run, made, &found, host, err));
	return go_on_log(run, err);
}

/* ---- restarts ---- */

bool psd_run_has_ended(struct psd_run *run, const struct psd_case *made)
{
	const unsigned n_hosts = psd_layout_hosts(&made->plan.layout);
	struct psd_checkpoints_found found;
	struct psd_error ignored;

	if (run->hosts.n_hosts < 2 || run->options->n_restarts == 0 ||
	    psd_checkpoints_find(&run->checkpoints, (struct psd_checkpoint_host){run->self, n_hosts}, 0, &found,
				 &ignored) ||
	    found.newest.n_hosts != n_hosts || found.newest.missing != n_hosts)
		return false;
	run->first_iteration = found.newest.iterations;
	*run->from_system = '\0'; /* other hosts of this run wrote it */
	return psd_run_is_done(run);
}

enum psd_status psd_run_check_restarts(const struct psd_run *run, const struct psd_system *system,
				       struct psd_error *err)
{
	if (run->options->n_restarts == 0 || psd_run_replay(run))
		return PSD_OK;
	return psd_worker_check_restarts(system, run->device, err);
}

/* PSD_ELOST: a process was killed or stands still, or a host or a link is gone; a new process can take over. An error
 * that a process reports itself would come again at once, and has another status: wrong input (PSD_EINVAL), files and
 * checkpoints (PSD_EFILE), memory (PSD_ENOMEM), a device or a full disk (PSD_ERUN). A user who interrupts psd-run wants
 * it to end. */
static bool is_worth_a_restart(enum psd_status status)
{
	return status == PSD_ELOST && !psd_console_stop_signal;
}

/* True if this host's newest checkpoint is later than the newest one of another host. */
static bool is_too_late(const struct psd_run *run)
{
	return run->attempt.first_iteration < run->first_iteration;
}

/* Going back to an earlier checkpoint, which all hosts have, does not count as a restart: --resume alone does it. */
bool psd_run_restarts(struct psd_run *run, struct psd_error *err)
{
	const struct psd_error lost = *err;
	const bool is_left = run->n_restarts < run->options->n_restarts;

	if (!is_worth_a_restart(lost.status) || (run->options->n_restarts == 0 && !is_too_late(run)))
		return false;
	if (!is_left && !is_too_late(run)) {
		psd_error_set(err, lost.status, PSD_NOWHERE, "%s; no restart is left after %u", lost.text,
			      run->n_restarts);
		return false;
	}
	run->below_iterations = is_too_late(run) ? run->attempt.first_iteration + 1 : 0;
	run->n_restarts += !is_too_late(run);
	run->attempt.number = run->attempt.next_number;
	run->lost = lost;
	return true;
}

void psd_run_say_restart(const struct psd_run *run, const struct psd_system *system, enum psd_status status)
{
	char from[48] = "begins again", nth[64] = "";

	if (!run->lost.status || (run->options->is_quiet && !status))
		return;
	if (status)
		snprintf(from, sizeof(from), "does not go on");
	else if (run->first_iteration > 0)
		snprintf(from, sizeof(from), "goes on after %" PRIu32 " iterations", run->first_iteration);
	if (run->n_restarts > 0)
		snprintf(nth, sizeof(nth), ", restart %u of %" PRIu64, run->n_restarts, run->options->n_restarts);
	psd_console_say("psd-run: %s; %s %s%s", run->lost.text, system->name, from, nth);
}
