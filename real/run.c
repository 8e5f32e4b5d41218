/* Runs the systems of a scenario, one after the other, on one cluster. */
#include "real/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/output.h"
#include "engine/document/document.h"
#include "engine/result/columns.h"
#include "engine/scenario/scenario_heed.h"
#include "real/base/affinity.h"
#include "real/base/console.h"
#include "real/base/path_lock.h"
#include "real/net/secret.h"
#include "real/run_parts.h"
#include "real/work/sums.h"

/* Worker 0 prints results and remarks for all processes of a cluster. */
static bool prints_results(const struct psd_run *run)
{
	return run->self == 0;
}

static enum psd_status check_real_workers(const struct psd_run *run, struct psd_error *err)
{
	const struct psd_node *node = psd_node_child(psd_node_child(run->scenario->root, "compute"), "real_workers");

	if (run->scenario->replay.real_workers < run->point.workers || !psd_run_replay(run))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, node ? node->at : PSD_NOWHERE,
			     "'real_workers' is %u, must be less than the number of workers, %u: the others replay",
			     run->scenario->replay.real_workers, run->point.workers);
}

/* Without --system the last system is traced, as with psd-sim. */
static enum psd_status choose_traced(struct psd_run *run, struct psd_error *err)
{
	const struct psd_scenario *scenario = run->scenario;
	const char *wanted = run->options->system_name;
	unsigned index = scenario->n_systems - 1;
	const enum psd_status status = wanted ? psd_scenario_find_system(scenario, wanted, &index, err) : PSD_OK;

	run->traced = run->options->trace_path ? &scenario->systems[index] : NULL;
	return status;
}

/* Checks all systems before the first one trains. */
static enum psd_status check_libraries(const struct psd_run *run, struct psd_error *err)
{
	for (unsigned s = 0; s < run->scenario->n_systems; s++) {
		const struct psd_system *system = &run->scenario->systems[s];

		if (!psd_run_is_chosen(run, system))
			continue;
		if (run->secret)
			PSD_TRY(psd_worker_check_secret(system, run->point.nodes, run->device, err));
		PSD_TRY(psd_worker_check_library(system, run->point.workers, psd_run_replay(run) ? NULL : run->device,
						 err));
		PSD_TRY(psd_run_check_restarts(run, system, err));
	}
	return PSD_OK;
}

/* ---- the systems ---- */

static enum psd_status print_csv_head(struct psd_error *err)
{
	struct psd_text text = {.bytes = NULL};

	psd_columns_add_csv_head(&text, NULL);
	return psd_console_print(&text, err);
}

static void say_no_speedup(const struct psd_run *run, const struct psd_run_report *report)
{
	struct psd_text text = {.bytes = NULL};

	psd_run_output_add_no_speedup(&text, report);
	if (text.bytes && !run->options->is_quiet)
		psd_console_say("psd-run: the speedup is %s", text.bytes);
	psd_text_release(&text);
}

/* Worker processes find the last errors of a scenario, so that a note on its results comes behind them. */
static void say_warm_up(const struct psd_run *run)
{
	if (psd_run_iterations(run) < psd_worker_warmed_up(1) && !run->options->is_quiet)
		psd_console_say("psd-run: the first %" PRIu32
				" iterations are slower than later ones: with --iterations "
				"%" PRIu32 " or more they do not count",
				psd_worker_warmed_up(0), psd_worker_warmed_up(1));
}

/* Prints after the last system, since all speedups have one baseline. */
static enum psd_status print_results(const struct psd_run *run, struct psd_error *err)
{
	const struct psd_run_report report = {
		.costed = &run->costed,
		.n_iterations = psd_run_iterations(run),
		.rows = run->rows,
		.n_rows = run->n_rows,
	};
	struct psd_text text = {.bytes = NULL};

	say_warm_up(run);
	if (run->options->is_csv) {
		psd_run_output_add_csv(&text, &report);
		say_no_speedup(run, &report);
	} else {
		PSD_TRY(psd_run_output_add_table(&text, &report, err));
	}
	return psd_console_print(&text, err);
}

static enum psd_status run_systems(struct psd_run *run, struct psd_error *err)
{
	const struct psd_scenario *scenario = run->scenario;
	enum psd_status status = run->options->is_csv && prints_results(run) ? print_csv_head(err) : PSD_OK,
			print_status = PSD_OK;
	struct psd_error print_err;

	for (unsigned s = 0; s < scenario->n_systems && !status; s++)
		if (psd_run_is_chosen(run, &scenario->systems[s]))
			status = psd_run_system(run, &scenario->systems[s], err);
	/* a failure does not lose the results of earlier systems */
	if (run->n_rows > 0 && prints_results(run))
		print_status = print_results(run, &print_err);
	if (!status && print_status)
		*err = print_err;
	return status ? status : print_status;
}

/* ---- a scenario ---- */

/* A replay does not compute. */
static void say_threads(const struct psd_run *run)
{
	const unsigned n_threads = run->scenario->train.threads, n_cores = psd_affinity_count();

	if (n_threads > n_cores && !psd_run_replay(run))
		psd_console_say("psd-run: 'train.threads' is %u, but psd-run may use %u processor core%s here: threads "
				"wait for each other",
				n_threads, n_cores, psd_text_plural(n_cores));
}

static void remark(const struct psd_run *run)
{
	const struct psd_place *snapshot = &run->scenario->train.snapshot_at;
	struct psd_text text = {.bytes = NULL};

	if (run->options->is_quiet || !prints_results(run))
		return;
	psd_scenario_add_unheeded(&text, run->scenario, psd_worker_use(run->scenario), PSD_BY_ALL);
	for (const char *line = text.bytes; line && *line; line = strchr(line, '\n') + 1)
		psd_console_say("psd-run: %.*s", (int)strcspn(line, "\n"), line);
	if (run->scenario->train.snapshot_iterations > 0 && !run->checkpoints.folder)
		psd_console_say("psd-run: %s:%u:%u: 'snapshot' has no effect without --save", snapshot->path,
				snapshot->line, snapshot->column);
	say_threads(run);
	if (run->options->has_no_emulation)
		psd_console_say("psd-run: no emulation: processes on loopback, links are as fast as the machine");
	psd_text_release(&text);
}

/* Hosts of one run that share a folder lock a file each. */
static enum psd_status lock_trace(struct psd_run *run, struct psd_error *err)
{
	const char *const path = run->options->trace_path;
	char *own = run->hosts.n_hosts ? psd_trace_path_of(path, run->self) : NULL;
	const enum psd_status status =
		psd_path_lock(own ? own : path, own ? own : path, &run->locks[PSD_RUN_LOCK_TRACE], err);

	free(own);
	return status;
}

/* A host of a cluster writes its own file; a separate server writes none. */
static enum psd_status open_trace(struct psd_run *run, struct psd_error *err)
{
	const unsigned workers = run->point.workers;

	if (run->hosts.n_hosts == 0)
		return psd_trace_files_open(&run->trace, run->options->trace_path, 0, workers, workers, err);
	return psd_trace_files_open(&run->trace, run->options->trace_path, run->self, run->self < workers, workers,
				    err);
}

/* No other run may write the trace or the log. */
static enum psd_status lock_outputs(struct psd_run *run, struct psd_error *err)
{
	const char *const log = run->options->log_path;

	if (run->traced)
		PSD_TRY(lock_trace(run, err));
	return log && prints_results(run) ? psd_path_lock(log, log, &run->locks[PSD_RUN_LOCK_LOG], err) : PSD_OK;
}

/* Finds every error in paths and data before the first system trains. */
static enum psd_status prepare(struct psd_run *run, struct psd_error *err)
{
	const struct psd_scenario *scenario = run->scenario;
	const bool has_training = psd_run_trains(run);

	PSD_TRY(psd_run_choose_cluster(run, err));
	PSD_TRY(check_real_workers(run, err));
	if (has_training)
		PSD_TRY(psd_run_choose_device(run, err));
	PSD_TRY(psd_run_check_groups(run, err));
	PSD_TRY(psd_run_check_slow(run, err));
	PSD_TRY(check_libraries(run, err));
	PSD_TRY(choose_traced(run, err));
	PSD_TRY(psd_run_check_save(run, err));
	if (has_training)
		PSD_TRY(psd_run_check_loss(run, err));
	PSD_TRY(psd_run_check_systems(run, err));
	if (has_training)
		PSD_TRY(psd_worker_count_samples(&run->costed.graph, &scenario->train, &run->training_samples, err));
	/* all inputs are known by now; nothing is touched before */
	PSD_TRY(psd_run_plan_files(run, err));
	PSD_TRY(lock_outputs(run, err));
	if (run->traced)
		PSD_TRY(open_trace(run, err));
	PSD_TRY(psd_run_open_checkpoints(run, err));
	PSD_TRY(psd_run_log_open(&run->log, prints_results(run) ? run->options->log_path : NULL, err));
	run->rows = calloc(scenario->n_systems, sizeof(*run->rows));
	if (!run->rows)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	if (!run->options->resumes) /* a resumed run does not know its first iteration yet */
		PSD_TRY(psd_run_settle_end(run, err));
	PSD_TRY(psd_run_choose_cluster_kind(run, err));
	remark(run);
	return PSD_OK;
}

/* A replay waits for the time of any layer; all other runs compute. */
static enum psd_status check_layers(const struct psd_graph *graph, const struct psd_scenario *scenario,
				    struct psd_error *err)
{
	const struct psd_graph_share share = psd_graph_predicted_only(graph);

	if (!share.first || (scenario->has_replay && !scenario->replay.real_workers))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = scenario->graph_path},
			     "layer '%.80s' is of kind 'other' or a second input, which psd-run cannot compute, as %u "
			     "in all: psd-sim predicts them, a replay waits for them",
			     share.first, share.n_layers);
}

enum psd_status psd_run_scenario(const struct psd_run_options *options, const struct psd_scenario *scenario,
				 unsigned *n_joined, struct psd_error *err)
{
	struct psd_run run = {
		.options = options,
		.scenario = scenario,
		.replay = scenario->replay,
		.train = scenario->train,
		.listener = -1,
		.locks = {-1, -1, -1},
		.n_joined = n_joined,
	};
	struct psd_error log_err;

	PSD_TRY(psd_worker_check(scenario, err));
	enum psd_status status = psd_costed_model_load(&run.costed, scenario, err);
	if (status) {
		psd_scenario_blame(scenario, 0, psd_case_check_all, status, err);
		return status;
	}
	status = check_layers(&run.costed.graph, scenario, err);
	if (!status)
		status = prepare(&run, err);
	if (!status)
		status = run_systems(&run, err);
	status = psd_scenario_place_file(scenario, status, err);
	if (run.n_rows == 0)
		psd_scenario_blame(scenario, 0, psd_case_check_all, status, err);
	/* files that were right before the first system trained are no mistake of the command's */
	if ((status == PSD_EINVAL || status == PSD_EFILE) && (run.n_rows > 0 || run.n_restarts > 0))
		status = err->status = PSD_ERUN;
	if (psd_run_log_close(&run.log, &log_err)) /* a log is not worth a run */
		psd_console_say("psd-run: %s", log_err.text);
	if (!status && run.trace_err.status) {
		*err = run.trace_err;
		status = run.trace_err.status;
	}
	if (!status && run.trace.files && !run.has_trace) { /* an older trace stays */
		psd_console_say("psd-run: no trace is written, since nothing was left to train");
		psd_trace_files_discard(&run.trace);
	}
	if (!status)
		status = psd_outputs_commit(err);
	psd_outputs_discard();
	psd_trace_files_release(&run.trace);
	if (run.listener >= 0)
		close(run.listener);
	for (unsigned l = 0; l < PSD_RUN_LOCKS; l++)
		if (run.locks[l] >= 0)
			close(run.locks[l]);
	psd_secret_free(run.secret);
	psd_hosts_release(&run.hosts);
	for (unsigned i = 0; i < run.n_rows; i++)
		psd_text_release(&run.rows[i].split);
	free(run.rows);
	psd_costed_model_release(&run.costed);
	return status;
}
