/* Chooses the cluster of a run: hosts of a file, or a cluster on this machine. */
#include <string.h>

#include "engine/base/hash.h"
#include "engine/base/units.h"
#include "engine/document/document.h"
#include "real/base/console.h"
#include "real/base/machine.h"
#include "real/cluster/join.h"
#include "real/cluster/memory_limit.h"
#include "real/net/secret.h"
#include "real/replay/replay.h"
#include "real/run.h"
#include "real/run_parts.h"

#define JOIN_SEC 120.0 /* a cluster starts its processes one after the other */

/* Loads the hosts of the file or of mpirun, and this process's number among them. Without either there are none. */
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
				     "has %u hosts (0 to %u), there is no host %u", hosts->n_hosts, hosts->n_hosts - 1,
				     (unsigned)options->rank);
	*self = (unsigned)options->rank;
	return PSD_OK;
}

/* Paths may differ between hosts, the name of the scenario's file does not. */
uint64_t psd_run_hash(const struct psd_run_options *options, unsigned n_joined)
{
	const char *const path = options->arguments.n_operands ? options->arguments.operands[0] : "";
	const char *const slash = strrchr(path, '/'), *const name = slash ? slash + 1 : path;
	const char *const system = options->system_name ? options->system_name : "";
	const uint64_t hash = psd_hash_bytes(PSD_HASH_START, name, strlen(name) + 1);

	return psd_hash_number(psd_hash_bytes(hash, system, strlen(system)), n_joined);
}

void psd_run_name_host(const struct psd_run_options *options)
{
	unsigned rank = (unsigned)options->rank;

	if (options->rank != UINT64_MAX || psd_hosts_guess_rank(options->hosts_path, &rank))
		psd_console_name_rank(rank);
}

void psd_run_excuse(const struct psd_run_options *options, unsigned n_joined, const char *words)
{
	struct psd_hosts hosts = {.n_hosts = 0};
	struct psd_secret *secret = NULL;
	struct psd_error err;
	bool is_exposed;
	unsigned self;
	enum psd_status status = load_hosts(options, &hosts, &self, &err);

	if (!status && hosts.n_hosts && options->secret_path)
		status = psd_secret_load(options->secret_path, &secret, &is_exposed, &err);
	if (!status && hosts.n_hosts)
		psd_mesh_report_failure(hosts.hosts, hosts.n_hosts, self, psd_run_hash(options, n_joined), secret,
					words);
	psd_secret_free(secret);
	psd_hosts_release(&hosts);
}

/* Debian's /etc/hosts gives the machine's own name a loopback address. */
static void remark_hidden(const struct psd_run *run)
{
	if (!run->options->is_quiet && psd_hosts_is_hidden(&run->hosts, run->self))
		psd_console_say(
			"psd-run: %s:%u: '%s' is a loopback address on this machine (/etc/hosts), other hosts cannot "
			"connect to it: name another address",
			run->options->hosts_path, run->hosts.lines[run->self], run->hosts.hosts[run->self].address);
}

static enum psd_status load_secret(struct psd_run *run, struct psd_error *err)
{
	const char *path = run->options->secret_path;
	bool is_exposed = false;
	const enum psd_status status = path ? psd_secret_load(path, &run->secret, &is_exposed, err) : PSD_OK;

	if (!status && is_exposed && !run->options->is_quiet)
		psd_console_say("psd-run: %s: other users of this machine can read this secret: chmod 600", path);
	return status;
}

/* From here on a signal ends this process at once; other hosts notice by their connections. With --hosts it prints a
 * line. mpirun ends all its processes by a signal when one has failed, so there it prints none. */
static enum psd_status join_hosts(struct psd_run *run, struct psd_error *err)
{
	const struct psd_run_options *options = run->options;
	enum psd_status status = PSD_OK;
	unsigned index = 0;

	if (run->scenario->has_replay)
		return psd_error_set(
			err, PSD_EINVAL, (struct psd_place){.path = run->scenario->path},
			"'replay' is true, must be false with '--hosts' or mpirun: replays run on this machine alone");
	status = load_secret(run, err);
	if (!status && options->hosts_path)
		status = psd_hosts_look_up(&run->hosts, options->hosts_path, run->self, err);
	if (!status && options->hosts_path)
		remark_hidden(run);
	if (!status && options->system_name)
		status = psd_scenario_find_system(run->scenario, options->system_name, &index, err);
	if (!status)
		status = psd_run_choose_hosts(run->scenario, &run->scenario->systems[index], run->hosts.n_hosts,
					      &run->point, err);
	for (unsigned s = 0; s < run->scenario->n_systems && !status; s++)
		if (psd_run_is_chosen(run, &run->scenario->systems[s]))
			status = psd_run_check_hosts(&run->scenario->systems[s], &run->point, run->hosts.n_hosts, err);
	if (!status && run->hosts.n_hosts > 1)
		status = psd_mesh_listen(&run->hosts.hosts[run->self], &run->listener, err);
	psd_console_let_signals_end(options->hosts_path);
	return status;
}

enum psd_status psd_run_choose_cluster(struct psd_run *run, struct psd_error *err)
{
	PSD_TRY(load_hosts(run->options, &run->hosts, &run->self, err));
	if (!run->hosts.n_hosts)
		return psd_run_choose_point(run->scenario, run->options->n_nodes, &run->point, err);
	PSD_TRY(psd_run_options_check_joined(run->options, (struct psd_place){.path = run->scenario->path}, "mpirun",
					     err));
	return join_hosts(run, err);
}

/* Checked for every kind of cluster. A replay's links are slower by its dilation, so its bandwidth may be larger. */
static enum psd_status check_bandwidth(const struct psd_run *run, struct psd_error *err)
{
	const struct psd_node *root = run->scenario->root;
	const struct psd_node *swept = psd_node_child(psd_node_child(root, "sweep"), "bandwidth");
	const struct psd_node *own =
		psd_node_child(psd_node_child(psd_node_child(root, "cluster"), "network"), "bandwidth");
	const double bps = run->point.bandwidth_bps;
	char text[PSD_UNITS_TEXT_MAX];

	if (run->scenario->has_replay || bps == 0.0 || (bps >= PSD_RUN_MIN_BPS && bps <= PSD_RUN_MAX_BPS))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, swept ? swept->at : own->at,
			     "'bandwidth' is %s, must be 100kbps to 400Gbps for psd-run",
			     psd_units_write_rate(bps, text));
}

enum psd_status psd_run_choose_cluster_kind(struct psd_run *run, struct psd_error *err)
{
	struct psd_error reason;
	struct psd_case made;

	run->cluster_kind = PSD_CLUSTER_HOSTS;
	if (run->hosts.n_hosts)
		return PSD_OK;
	run->cluster_kind = PSD_CLUSTER_LOOPBACK;
	if (run->options->has_no_emulation)
		return PSD_OK;
	run->cluster_kind = PSD_CLUSTER_EMULATED;
	PSD_TRY(check_bandwidth(run, err));
	PSD_TRY(psd_case_make(&made, &run->costed, &run->scenario->systems[0], run->point, err));
	const enum psd_status status = psd_launch_try_emulation(&made, psd_run_replay(run), &reason);
	psd_case_release(&made);
	if (!status)
		return PSD_OK;
	if (status != PSD_ERUN) {
		*err = reason;
		return status;
	}
	run->cluster_kind = PSD_CLUSTER_SHAPED;
	if (!run->options->is_quiet)
		psd_console_say("psd-run: no emulated links here (%s): processes on loopback limit their rates to "
				"those of the links",
				reason.text);
	return PSD_OK;
}

enum psd_status psd_run_check_systems(const struct psd_run *run, struct psd_error *err)
{
	const uint64_t available_bytes = psd_machine_available_bytes();
	enum psd_status status = PSD_OK;

	for (unsigned s = 0; s < run->scenario->n_systems && !status; s++) {
		struct psd_case made;

		if (!psd_run_is_chosen(run, &run->scenario->systems[s]))
			continue;
		PSD_TRY(psd_case_make(&made, &run->costed, &run->scenario->systems[s], run->point, err));
		status = psd_worker_check_optimiser(&made, err);
		if (!status && !run->hosts.n_hosts)
			status = psd_memory_limit_check(&made, psd_run_replay(run), available_bytes, err);
		if (!status && psd_run_replay(run) && !run->replay.finds_dilation)
			status = psd_replay_check_messages(&made, run->replay.dilation_ratio, err);
		psd_case_release(&made);
	}
	return status;
}

/* ---- executions ---- */

void psd_run_remark(void *context, const char *line)
{
	(void)context;
	psd_console_say("psd-run: %s", line);
}

/* Longest wait for the others of a cluster. */
static double join_sec_of(const struct psd_run *run)
{
	if (run->options->join_sec > 0.0)
		return run->options->join_sec;
	return run->hosts.n_hosts ? JOIN_SEC : PSD_LAUNCH_CONNECT_SEC;
}

struct psd_launch_options psd_run_launch_options(const struct psd_run *run, const struct psd_case *made)
{
	const struct psd_run_options *options = run->options;

	return (struct psd_launch_options){
		.worker.made = made,
		.worker.train = &run->train,
		.worker.device = run->device,
		.worker.replay = psd_run_replay(run),
		.worker.secret = run->secret,
		.worker.listener = run->listener,
		.worker.run_hash = psd_run_hash(options, *run->n_joined),
		.worker.build = options->version,
		.worker.n_restarts = (uint32_t)options->n_restarts,
		.worker.connect_sec = join_sec_of(run),
		.worker.remark = options->is_quiet ? NULL : psd_run_remark,
		.worker.stall_sec = options->stall_sec,
		.cluster_kind = run->cluster_kind,
		.stop_signal = &psd_console_stop_signal,
	};
}

enum psd_status psd_run_launch(struct psd_run *run, struct psd_launch_options *launch, struct psd_worker_result *result,
			       struct psd_error *err)
{
	struct psd_recorder *recorder = launch->spans ? launch->spans->hosts : NULL;
	enum psd_status status;

	/* a host that still has to measure is behind the others, as if it lacked their checkpoint */
	run->attempt.first_iteration = run->first_iteration + run->has_measured;
	if (run->hosts.n_hosts == 0)
		return psd_launch(launch, result, err);
	if (run->options->resumes)
		launch->worker.attempt = &run->attempt;
	if (recorder) {
		launch->worker.span = psd_recorder_add_span;
		launch->worker.span_context = recorder;
	}
	status = psd_join(&launch->worker, &run->hosts, run->self, result, err);
	return !status && recorder ? psd_recorder_finish(recorder, err) : status;
}
