/* The systems of a scenario, one after the other, on one cluster. */
#include "real/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/output.h"
#include "engine/base/units.h"
#include "engine/document/document.h"
#include "engine/result/columns.h"
#include "engine/scenario/scenario_heed.h"
#include "real/base/console.h"
#include "real/base/machine.h"
#include "real/calibrate/calibrate.h"
#include "real/cluster/emulation.h"
#include "real/cluster/join.h"
#include "real/cluster/room.h"
#include "real/run_choice.h"
#include "real/run_output.h"
#include "real/session/replay.h"
#include "real/session/run_log.h"

#define MOST_STOLEN_RATIO 0.02 /* of the processors; with more it is said */

enum { MOST_PROGRESS_LINES = 20, SOUNDING_ITERATIONS = 2, MOST_TIMES_AGAIN = 2 };

struct command {
	const struct psd_run_options *options;
	const struct psd_scenario *scenario;
	struct psd_subject_matter matter;
	const struct psd_device_kind *device; /* NULL: nothing is computed */
	struct psd_point point;
	enum psd_ground ground;
	struct psd_hosts hosts;	  /* none: all processes are started here */
	unsigned self;		  /* of hosts */
	struct psd_replay replay; /* of the system that runs, where the scenario has one */
	uint64_t training_samples;
	struct psd_run_row *rows;
	unsigned n_rows;
	struct psd_run_log log;
	FILE *trace;
	const struct psd_system *traced; /* or NULL */
};

/* What worker 0's process needs for the lines about an iteration. */
struct observer {
	const struct command *command;
	const struct psd_system *system;
};

/* Of the processes of a cluster, worker 0 tells how it went. */
static bool speaks(const struct command *command)
{
	return command->self == 0;
}

static void print_progress(const struct psd_system *system, const struct psd_progress *progress, bool has_replay)
{
	const uint32_t stride = (progress->n_iterations - 1) / MOST_PROGRESS_LINES + 1;
	const double test_ratio =
		progress->test_samples ? (double)progress->test_correct / (double)progress->test_samples : 0.0;
	char test[64] = "", loss[PSD_UNITS_TEXT_MAX];

	if (progress->iteration % stride && progress->iteration + 1 != progress->n_iterations &&
	    !progress->test_samples)
		return;
	if (has_replay) {
		psd_console_say("%s: iteration %u of %u, at %.3f s", system->name, progress->iteration + 1,
				progress->n_iterations, progress->elapsed_sec);
		return;
	}
	if (progress->test_samples)
		snprintf(test, sizeof(test), "; of test samples %.1f %%", 100.0 * test_ratio);
	psd_console_say("%s: iteration %u of %u, at %.3f s: loss %s, %.1f %% right%s", system->name,
			progress->iteration + 1, progress->n_iterations, progress->elapsed_sec,
			psd_units_write_number(progress->loss, loss), 100.0 * progress->correct_ratio, test);
}

static void observe(void *context, const struct psd_progress *progress)
{
	const struct observer *observer = context;

	psd_run_log_add(&observer->command->log, observer->system, progress, observer->command->scenario->has_replay);
	if (!observer->command->options->is_quiet)
		print_progress(observer->system, progress, observer->command->scenario->has_replay);
}

static void say_remark(void *context, const char *line)
{
	(void)context;
	psd_console_say("psd-run: %s", line);
}

static bool is_chosen(const struct command *command, const struct psd_system *system)
{
	return !command->options->system_name || !strcmp(command->options->system_name, system->name);
}

/* Of several, the last is the one that is traced, as with psd-sim. */
static enum psd_status choose_traced(struct command *command, struct psd_error *err)
{
	const struct psd_scenario *scenario = command->scenario;
	const char *wanted = command->options->system_name;
	unsigned index = scenario->n_systems - 1;
	const enum psd_status status = wanted ? psd_scenario_find_system(scenario, wanted, &index, err) : PSD_OK;

	command->traced = command->options->trace_path ? &scenario->systems[index] : NULL;
	return status;
}

static const struct psd_replay *replay_of(const struct command *command)
{
	return command->scenario->has_replay ? &command->replay : NULL;
}

/* Whether this machine lets us emulate or not. A replay's links are slower, by its dilation. */
static enum psd_status check_bandwidth(const struct command *command, struct psd_error *err)
{
	const struct psd_node *root = command->scenario->root;
	const struct psd_node *swept = psd_node_child(psd_node_child(root, "sweep"), "bandwidth");
	const struct psd_node *own =
		psd_node_child(psd_node_child(psd_node_child(root, "cluster"), "network"), "bandwidth");
	const double bps = command->point.bandwidth_bps;
	char text[PSD_UNITS_TEXT_MAX];

	if (command->scenario->has_replay || bps == 0.0 || (bps >= PSD_RUN_MIN_BPS && bps <= PSD_RUN_MAX_BPS))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, swept ? swept->at : own->at,
			     "'bandwidth' is %s, psd-run takes links of 100kbps to 400Gbps",
			     psd_units_write_rate(bps, text));
}

/* Namespaces where this machine lets us have them; else the processes keep to the links' rate themselves. */
static enum psd_status choose_ground(struct command *command, struct psd_error *err)
{
	struct psd_error reason;
	struct psd_case made;
	enum psd_status status;

	command->ground = PSD_GROUND_HOSTS;
	if (command->hosts.n_hosts)
		return PSD_OK;
	command->ground = PSD_GROUND_LOOPBACK;
	if (command->options->has_no_emulation)
		return PSD_OK;
	command->ground = PSD_GROUND_EMULATED;
	status = check_bandwidth(command, err);
	if (!status)
		status = psd_case_make(&made, &command->matter, &command->scenario->systems[0], command->point, err);
	if (status)
		return status;
	status = psd_launch_try_emulation(&made, replay_of(command), &reason);
	psd_case_release(&made);
	if (!status)
		return PSD_OK;
	if (status != PSD_ERUN) {
		*err = reason;
		return status;
	}
	command->ground = PSD_GROUND_SHAPED;
	if (!command->options->is_quiet)
		psd_console_say(
			"psd-run: no emulation here (%s): processes on loopback keep to the links' rate themselves",
			reason.text);
	return PSD_OK;
}

/* Of all processes on this machine, for each system that runs. */
static enum psd_status check_room(const struct command *command, struct psd_error *err)
{
	const uint64_t available_bytes = psd_machine_available_bytes();
	enum psd_status status = PSD_OK;

	for (unsigned s = 0; s < command->scenario->n_systems && !status; s++) {
		struct psd_case made;

		if (!is_chosen(command, &command->scenario->systems[s]))
			continue;
		status = psd_case_make(&made, &command->matter, &command->scenario->systems[s], command->point, err);
		if (status)
			return status;
		status = psd_room_check(&made, command->scenario->has_replay, available_bytes, err);
		psd_case_release(&made);
	}
	return status;
}

/* Before anything trains: a run should not end at its last system for what it could know at the first. */
static enum psd_status check_libraries(const struct command *command, struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	for (unsigned s = 0; s < command->scenario->n_systems && !status; s++)
		if (is_chosen(command, &command->scenario->systems[s]))
			status = psd_worker_check_library(&command->scenario->systems[s], command->point.workers,
							  command->device, err);
	return status;
}

static uint32_t choose_iterations(const struct command *command)
{
	const uint64_t global_batch = (uint64_t)command->point.workers * command->scenario->batch_per_worker;

	return psd_run_choose_iterations(command->scenario, command->options->n_iterations, command->training_samples,
					 global_batch);
}

/* ---- a system ---- */

static enum psd_status write_trace(struct command *command, const struct psd_case *made, const struct psd_spans *spans,
				   struct psd_error *err)
{
	char executor[PSD_RUN_EXECUTOR_MAX];
	uint32_t last_iteration;
	enum psd_status status;

	psd_run_name_executor(executor, command->device, command->ground);
	status = psd_spans_write(spans, command->trace, made, executor, &last_iteration, err);
	if (status)
		return status;
	if (last_iteration != UINT32_MAX)
		psd_console_say("psd-run: the trace ends in iteration %u: it holds %d operations of a worker at most",
				last_iteration, PSD_MAX_SPANS);
	if (!command->options->is_quiet && command->n_rows > 1)
		psd_console_say("psd-run: the trace is of %s", made->system->name);
	return PSD_OK;
}

static void say_stolen(const struct command *command, const struct psd_case *made,
		       const struct psd_worker_result *result)
{
	const double stolen_ratio =
		result->machine_cpu_sec > 0.0 ? result->stolen_cpu_sec / result->machine_cpu_sec : 0.0;

	if (stolen_ratio > MOST_STOLEN_RATIO && !command->options->is_quiet)
		psd_console_say("psd-run: %s: others on its host took %.0f %% of this virtual machine's processor "
				"time; without "
				"them it would be faster",
				made->system->name, 100.0 * stolen_ratio);
}

static enum psd_status launch_case(struct command *command, const struct psd_case *made, struct psd_run_row *row,
				   struct psd_error *err)
{
	const struct psd_run_options *options = command->options;
	struct observer observer = {command, made->system};
	struct psd_spans spans = {.hosts = NULL};
	const bool is_traced = made->system == command->traced;
	const struct psd_launch_options launch = {
		.worker.made = made,
		.worker.train = &command->scenario->train,
		.worker.device = command->device,
		.worker.replay = replay_of(command),
		.worker.n_iterations = choose_iterations(command),
		.ground = command->ground,
		.worker.connect_sec = command->hosts.n_hosts ? options->join_sec : PSD_LAUNCH_CONNECT_SEC,
		.worker.remark = options->is_quiet ? NULL : say_remark,
		.worker.stall_sec = options->stall_sec,
		.worker.is_tested = command->scenario->train.test_every_epochs > 0 && !replay_of(command),
		.spans = is_traced ? &spans : NULL,
		.stop_signal = &psd_console_stop_signal,
		.worker.progress = options->is_quiet && !command->log.file ? NULL : observe,
		.worker.context = &observer,
	};
	enum psd_status status = is_traced ? psd_spans_open(&spans, psd_layout_hosts(&made->plan.layout), err) : PSD_OK;

	row->result = (struct psd_worker_result){.iteration_sec = 0.0}; /* of a run that fails nothing is judged */
	if (!status)
		status = command->hosts.n_hosts
				 ? psd_join(&launch.worker, &command->hosts, command->self, &row->result, err)
				 : psd_launch(&launch, &row->result, err);
	if (!status && replay_of(command))
		status = psd_replay_check(&row->result, command->replay.dilation_ratio, made->system->name, err);
	if (!status) {
		command->rows[command->n_rows++] = *row;
		say_stolen(command, made, &row->result);
	}
	if (!status && !isfinite(row->result.last_loss))
		psd_console_say("psd-run: %s diverged, its loss is no number any more: the learning rate is too high",
				made->system->name);
	if (!status && is_traced)
		status = write_trace(command, made, &spans, err);
	psd_spans_close(&spans);
	return status;
}

/* By short runs; where none is true to its times, the whole would not be either. */
static enum psd_status find_dilation(struct command *command, const struct psd_case *made, struct psd_error *err)
{
	const struct psd_launch_options launch = {
		.worker.made = made,
		.worker.train = &command->scenario->train,
		.worker.replay = &command->replay,
		.worker.n_iterations = SOUNDING_ITERATIONS,
		.ground = command->ground,
		.worker.connect_sec = PSD_LAUNCH_CONNECT_SEC,
		.worker.stall_sec = command->options->stall_sec,
		.stop_signal = &psd_console_stop_signal,
	};
	struct psd_soundings soundings = {.n_runs = 0};
	struct psd_worker_result result;
	enum psd_status status = psd_replay_estimate(made, command->replay.payload_ratio, &soundings.next_ratio, err);

	do {
		command->replay.dilation_ratio = soundings.next_ratio;
		if (!status)
			status = psd_launch(&launch, &result, err);
	} while (!status && psd_replay_sound(&soundings, &result));
	if (status)
		return status;
	command->replay.dilation_ratio = soundings.dilation_ratio;
	status = psd_replay_check(&soundings.result, soundings.dilation_ratio, made->system->name, err);
	if (!status && !command->options->is_quiet)
		psd_console_say("psd-run: %s: dilation %g, at which this machine was busy for %.0f %% of the time",
				made->system->name, soundings.dilation_ratio,
				100.0 * psd_replay_busy_ratio(&soundings.result));
	return status;
}

/* A whole run may be less true to its times than the soundings before it were. */
static enum psd_status launch_again(struct command *command, const struct psd_case *made, struct psd_run_row *row,
				    struct psd_error *err)
{
	enum psd_status status;

	psd_run_log_keep(&command->log);
	status = launch_case(command, made, row, err);
	for (unsigned i = 0; i < MOST_TIMES_AGAIN && status == PSD_ERUN && command->scenario->replay.finds_dilation &&
			     psd_replay_again(&row->result, &command->replay.dilation_ratio);
	     i++) {
		if (!command->options->is_quiet)
			psd_console_say("psd-run: %s: not true to its times, again at dilation %g", made->system->name,
					command->replay.dilation_ratio);
		psd_run_log_drop(&command->log);
		row->replay = command->replay;
		status = launch_case(command, made, row, err);
	}
	return status;
}

static bool has_rebuilds(const struct psd_program *program)
{
	for (uint32_t i = 0; i < program->n_ops; i++)
		if (program->ops[i].kind == PSD_OP_FACTOR)
			return true;
	return false;
}

static enum psd_status run_system(struct command *command, const struct psd_system *system, struct psd_error *err)
{
	struct psd_run_row row = {.system = system,
				  .point = command->point,
				  .ground = command->ground,
				  .has_replay = command->scenario->has_replay};
	struct psd_case made;
	enum psd_status status = psd_case_make(&made, &command->matter, system, command->point, err);

	if (status)
		return status;
	psd_run_name_executor(row.executor, command->device, command->ground);
	row.has_rebuilds = has_rebuilds(&made.program);
	if (row.has_replay)
		status = command->scenario->replay.finds_dilation
				 ? find_dilation(command, &made, err)
				 : psd_replay_check_messages(&made, command->replay.dilation_ratio, err);
	row.replay = command->replay;
	if (!status)
		status = launch_again(command, &made, &row, err);
	psd_case_release(&made);
	return status ? status : psd_run_log_check(&command->log, err);
}

static enum psd_status print_csv_head(struct psd_error *err)
{
	struct psd_text text = {.bytes = NULL};

	psd_columns_add_csv_head(&text);
	return psd_console_print(&text, err);
}

static void say_no_speedup(const struct command *command, const struct psd_run_report *report)
{
	struct psd_text text = {.bytes = NULL};

	psd_run_output_add_no_speedup(&text, report);
	if (text.bytes && !command->options->is_quiet)
		psd_console_say("psd-run: the speedup is %s", text.bytes);
	psd_text_release(&text);
}

/* Once all have run: their speedups have one baseline. */
static enum psd_status print_results(const struct command *command, struct psd_error *err)
{
	const struct psd_run_report report = {
		.matter = &command->matter,
		.n_iterations = choose_iterations(command),
		.rows = command->rows,
		.n_rows = command->n_rows,
	};
	struct psd_text text = {.bytes = NULL};
	enum psd_status status = PSD_OK;

	if (command->options->is_csv) {
		psd_run_output_add_csv(&text, &report);
		say_no_speedup(command, &report);
	} else {
		status = psd_run_output_add_table(&text, &report, err);
	}
	return status ? status : psd_console_print(&text, err);
}

static enum psd_status run_systems(struct command *command, struct psd_error *err)
{
	const struct psd_scenario *scenario = command->scenario;
	enum psd_status status = command->options->is_csv && speaks(command) ? print_csv_head(err) : PSD_OK,
			print_status = PSD_OK;
	struct psd_error print_err;

	for (unsigned s = 0; s < scenario->n_systems && !status; s++)
		if (is_chosen(command, &scenario->systems[s]))
			status = run_system(command, &scenario->systems[s], err);
	/* what was carried out is not lost with what failed after it */
	if (command->n_rows > 0 && speaks(command))
		print_status = print_results(command, &print_err);
	if (!status && print_status)
		*err = print_err;
	return status ? status : print_status;
}

/* ---- a scenario ---- */

static void remark(const struct command *command)
{
	const struct psd_place *snapshot = &command->scenario->train.snapshot_at;
	struct psd_text text = {.bytes = NULL};

	if (command->options->is_quiet || !speaks(command))
		return;
	psd_scenario_add_unheeded(&text, command->scenario, replay_of(command) ? PSD_BY_REPLAY : PSD_BY_RUN,
				  PSD_BY_ALL);
	for (const char *line = text.bytes; line && *line; line = strchr(line, '\n') + 1)
		psd_console_say("psd-run: %.*s", (int)strcspn(line, "\n"), line);
	if (snapshot->line)
		psd_console_say("psd-run: %s:%u:%u: 'snapshot' is not heeded, psd-run writes none", snapshot->path,
				snapshot->line, snapshot->column);
	if (choose_iterations(command) < psd_worker_warmed_up(1))
		psd_console_say("psd-run: what is measured here is slower than later iterations are: with --iterations "
				"%" PRIu32 " or more the first %" PRIu32 " do not count",
				psd_worker_warmed_up(1), psd_worker_warmed_up(0));
	if (command->options->has_no_emulation)
		psd_console_say("psd-run: no emulation: processes on loopback, links are as fast as the machine");
	psd_text_release(&text);
}

/* Nobody trains on at rate 0. */
static enum psd_status check_end(const struct command *command, struct psd_error *err)
{
	const struct psd_learning_rate *rate = &command->scenario->train.rate;
	const uint32_t n_iterations = choose_iterations(command);

	if (replay_of(command) || rate->policy != PSD_RATE_POLY || n_iterations <= rate->max_iterations)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = command->scenario->path},
			     "the run has %" PRIu32 " iterations, 'poly' ends after %" PRIu64
			     ": the rate is 0 from there on",
			     n_iterations, rate->max_iterations);
}

static enum psd_status check_loss(const struct command *command, struct psd_error *err)
{
	const struct psd_graph *graph = &command->matter.graph;
	const struct psd_node *file = psd_node_child(psd_node_child(command->scenario->root, "model"), "graph");

	for (unsigned l = 0; l < graph->n_layers; l++)
		if (graph->layers[l].kind->is_loss)
			return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, file->at,
			     "'graph' is '%.80s', which has no loss to train by: end it with a softmax-loss layer "
			     "(Caffe: SoftmaxWithLoss)",
			     command->scenario->graph_path);
}

/* The hosts of the file, or of mpirun, and which of them this process is; none where there is neither. */
static enum psd_status load_hosts(const struct psd_run_options *options, struct psd_hosts *hosts, unsigned *self,
				  struct psd_error *err)
{
	const enum psd_status status =
		options->hosts_path ? psd_hosts_load(hosts, options->hosts_path, err) : psd_hosts_launched(hosts, err);

	if (status || !hosts->n_hosts)
		return status;
	if (options->rank == UINT64_MAX)
		return psd_hosts_find_rank(hosts->n_hosts, self, err);
	if (options->rank >= hosts->n_hosts)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = options->hosts_path},
				     "names %u hosts, has no host %u", hosts->n_hosts, (unsigned)options->rank);
	*self = (unsigned)options->rank;
	return PSD_OK;
}

void psd_run_excuse(const struct psd_run_options *options, const char *words)
{
	struct psd_hosts hosts = {.n_hosts = 0};
	struct psd_error err;
	unsigned self;

	if (!load_hosts(options, &hosts, &self, &err) && hosts.n_hosts)
		psd_mesh_excuse(hosts.hosts, hosts.n_hosts, self, words);
	psd_hosts_release(&hosts);
}

/* A signal ends this process at once: the others hear of it by their connections. */
static enum psd_status join_hosts(struct command *command, struct psd_error *err)
{
	const struct psd_run_options *options = command->options;
	enum psd_status status = PSD_OK;
	unsigned index = 0;

	if (command->scenario->has_replay)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = command->scenario->path},
				     "'replay' is for a cluster on this machine, not beside '--hosts' or mpirun");
	if (options->hosts_path)
		status = psd_hosts_look_up(&command->hosts, options->hosts_path, command->self, err);
	if (!status && options->system_name)
		status = psd_scenario_find_system(command->scenario, options->system_name, &index, err);
	if (!status)
		status = psd_run_choose_hosts(command->scenario, &command->scenario->systems[index],
					      command->hosts.n_hosts, &command->point, err);
	for (unsigned s = 0; s < command->scenario->n_systems && !status; s++)
		if (is_chosen(command, &command->scenario->systems[s]))
			status = psd_run_check_hosts(&command->scenario->systems[s], &command->point,
						     command->hosts.n_hosts, err);
	psd_console_let_signals_end();
	return status;
}

static enum psd_status choose_cluster(struct command *command, struct psd_error *err)
{
	enum psd_status status = load_hosts(command->options, &command->hosts, &command->self, err);

	if (!status && command->hosts.n_hosts)
		status = psd_run_options_check_joined(
			command->options, (struct psd_place){.path = command->scenario->path}, "mpirun", err);
	if (status)
		return status;
	if (command->hosts.n_hosts)
		return join_hosts(command, err);
	return psd_run_choose_point(command->scenario, command->options->n_nodes, &command->point, err);
}

static enum psd_status choose_device(struct command *command, struct psd_error *err)
{
	const struct psd_node *chosen = psd_node_child(psd_node_child(command->scenario->root, "train"), "device");
	const struct psd_place at = chosen ? chosen->at : PSD_NOWHERE;
	const enum psd_status status = psd_device_choose(&command->device, command->scenario->train.device, at, err);

	if (!status)
		psd_subject_matter_compute_on(&command->matter, command->device->has_own_memory);
	return status;
}

/* Everything that can be wrong with paths and data shows before the first system trains. */
static enum psd_status prepare(struct command *command, struct psd_error *err)
{
	const struct psd_scenario *scenario = command->scenario;
	enum psd_status status = choose_cluster(command, err);

	if (!status && !scenario->has_replay)
		status = choose_device(command, err);
	if (!status)
		status = check_libraries(command, err);
	if (!status)
		status = choose_traced(command, err);
	if (!status && !scenario->has_replay)
		status = check_loss(command, err);
	if (!status && !command->hosts.n_hosts)
		status = check_room(command, err);
	if (!status && !scenario->has_replay)
		status = psd_worker_count_samples(&command->matter.graph, &scenario->train, &command->training_samples,
						  err);
	if (!status && command->traced)
		status = psd_output_open(&command->trace, command->options->trace_path, err);
	if (!status)
		status = psd_run_log_open(&command->log, speaks(command) ? command->options->log_path : NULL, err);
	if (status)
		return status;
	command->rows = calloc(scenario->n_systems, sizeof(*command->rows));
	if (!command->rows)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	status = check_end(command, err);
	if (status)
		return status;
	remark(command);
	return choose_ground(command, err);
}

enum psd_status psd_run_scenario(const struct psd_run_options *options, const struct psd_scenario *scenario,
				 struct psd_error *err)
{
	struct command command = {.options = options, .scenario = scenario, .replay = scenario->replay};
	enum psd_status status = psd_worker_check(scenario, err);

	if (!status)
		status = psd_subject_matter_load(&command.matter, scenario, err);
	if (status)
		return status;
	status = prepare(&command, err);
	if (!status)
		status = run_systems(&command, err);
	if (!status)
		status = psd_outputs_commit(err);
	psd_outputs_discard();
	psd_hosts_release(&command.hosts);
	psd_run_log_close(&command.log);
	free(command.rows);
	psd_subject_matter_release(&command.matter);
	return status;
}

/* ---- a calibration ---- */

static void print_measuring(void *context, const char *line)
{
	const struct psd_run_options *options = context;

	if (!options->is_quiet)
		psd_console_say("psd-run: measuring %s", line);
}

static enum psd_status calibrate_machine(const struct command *command, const char *version, struct psd_error *err)
{
	const struct psd_calibrate_options calibrate_options = {
		.matter = &command->matter,
		.device = command->device,
		.point = command->point,
		.ground = command->ground,
		.stall_sec = command->options->stall_sec,
		.most_attempts = (unsigned)command->options->n_attempts,
		.output_path = command->options->output_path,
		.version = version,
		.stop_signal = &psd_console_stop_signal,
		.progress = print_measuring,
		.remark = command->options->is_quiet ? NULL : say_remark,
		.context = (void *)(uintptr_t)command->options,
	};
	struct psd_text table = {.bytes = NULL};
	double spread_ratio;
	enum psd_status status = psd_calibrate(&calibrate_options, &table, &spread_ratio, err);

	if (status) {
		psd_text_release(&table);
		return status;
	}
	status = psd_console_print(&table, err);
	if (!status && spread_ratio > PSD_CALIBRATE_NOISY_RATIO && !command->options->is_quiet)
		psd_console_say(
			"psd-run: this calibration is noisy, its values spread by up to %.0f %%: predictions may "
			"be off by as much. Calibrate again on a quiet machine, where nothing else runs",
			100.0 * spread_ratio);
	return status;
}

enum psd_status psd_run_calibration(const struct psd_run_options *options, const struct psd_scenario *scenario,
				    const char *version, struct psd_error *err)
{
	const struct psd_node *replay = psd_node_child(psd_node_child(scenario->root, "compute"), "replay");
	struct command command = {.options = options, .scenario = scenario};
	enum psd_status status;

	if (!scenario->has_train)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){scenario->path, 0, 0},
				     "has no 'train', which calibrating needs");
	if (scenario->has_replay)
		return psd_error_set(
			err, PSD_EINVAL, replay->at,
			"'replay' is true, psd-run calibrate measures what is really computed: must be false or "
			"left out, as in "
			"'compute: {device: cpu}'");
	status = psd_subject_matter_load(&command.matter, scenario, err);
	if (status)
		return status;
	status = check_loss(&command, err);
	if (!status)
		status = choose_device(&command, err);
	if (!status)
		status = psd_run_choose_point(scenario, 0, &command.point, err);
	if (!status)
		status = check_room(&command, err);
	if (!status)
		status = choose_ground(&command, err);
	if (!status)
		status = calibrate_machine(&command, version, err);
	psd_subject_matter_release(&command.matter);
	return status;
}
