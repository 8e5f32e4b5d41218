/* Each process writes one record into a common pipe, short enough to be written in one piece. */
#define _GNU_SOURCE
#include "real/cluster/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "real/base/affinity.h"
#include "real/base/machine.h"
#include "real/cluster/emulation.h"
#include "real/cluster/process_group.h"
#include "real/device/device.h"
#include "real/keep/agreed_terms.h"
#include "real/net/socket.h"
#include "real/session/pulse.h"

enum { FIRST_PORT = 7411 };

/* Descriptors that a run opens beside its cluster: pipes, and one for each host's part of a trace. */
enum { MOST_RUN_FILES = 4 };

#define LOOK_SEC  0.05 /* longest wait for a record before looking for processes that ended */
#define GRACE_SEC 1.0  /* time for the others to report after the first failure */
#define LATER_SEC 2.0  /* delay where other processes name one that stands still: they know more */
#define LONG_SEC  1.0  /* a longer look means that this process was suspended */

enum { MOST_TIMES_STALL = 10 }; /* limit of a process that has not said another one */

struct record {
	unsigned host;
	enum psd_status status;
	struct psd_worker_result result;
	char text[sizeof(((struct psd_error *)0)->text)];
};

_Static_assert(sizeof(struct record) <= PIPE_BUF, "a record is written in one piece");

struct launch {
	const struct psd_launch_options *options;
	const struct psd_layout *layout;
	struct psd_text terms; /* terms of the run, if it has checkpoints, which are told apart by them */
	unsigned n_hosts;
	struct psd_mesh_host *hosts;
	bool *is_running;
	int *listeners; /* loopback; -1 where closed */
	int pipe_in, pipe_out;
	struct psd_emulation *emulation; /* or NULL: processes are on loopback */
	struct psd_process_group group;
	struct psd_pulse *pulses; /* shared with the processes */
	double *stopped_sec;	  /* time since which each process is stopped; 0: it is not */
	double looked_sec, awake_sec;

	struct record *records;
	bool *has_record;
	bool has_failed;    /* a process failed, or ended by a signal */
	double give_up_sec; /* when to kill the others, once one has failed */
	bool has_first;	    /* a record with a failure came */
	struct psd_error first;
	bool has_killed; /* a signal that was not ours ended a process */
	enum psd_status killed_status;
	char killed[160];
};

/* ---- links ---- */

struct links {
	double send_bps, receive_bps; /* payload out of a node and into it */
	double latency_sec;
};

/* Links in this machine's seconds. A replay's links include the predicted stack's limits, incast and latency; a
 * training has these by itself. A replay with a smaller payload has slower links, so that messages take as long. */
static struct links links_of(const struct psd_case *made, const struct psd_replay *replay)
{
	const struct psd_rates *rates = &made->plan.rates;
	const double bandwidth_bps = made->point.bandwidth_bps;

	if (!replay)
		return (struct links){bandwidth_bps, bandwidth_bps, made->costed->scenario->network.latency_sec};
	return (struct links){
		.send_bps = rates->send_bps * replay->payload_ratio / replay->dilation_ratio,
		.receive_bps = rates->receive_bps * replay->payload_ratio / replay->dilation_ratio,
		.latency_sec = rates->latency_sec * replay->dilation_ratio,
	};
}

/* Returns the rate of a node's link, divided by that of the cluster's links. A replay's links include the stack's
 * limits. */
static double link_ratio(const struct psd_case *made, const struct psd_replay *replay, unsigned node)
{
	const unsigned kind = psd_layout_kind(&made->plan.layout, node);

	if (kind == made->kinds.n)
		return 1.0;
	return replay ? made->kinds.nodes[kind].link_ratio
		      : made->kinds.plan[kind].bandwidth_bps / made->point.bandwidth_bps;
}

/* Returns the factor by which the device of a worker is slowed down. A replay waits for predicted times. */
static double slowed_ratio(const struct psd_case *made, const struct psd_replay *replay, unsigned host)
{
	const unsigned kind = psd_layout_kind(&made->plan.layout, psd_layout_node(&made->plan.layout, host));

	return kind == made->kinds.n || replay ? 0.0 : 1.0 / made->kinds.plan[kind].speed_ratio;
}

/* The rate that messages are paced to, as a share of the links' rates, since a shaped link lets a burst pass at once
 * after a pause; 0: not paced. n_beside: number of hosts on the node. Workers of one node do not see each other's
 * messages, and together gain one burst. A training's bandwidth counts headers, a replay's rates do not. */
static double pace_ratio(enum psd_cluster_kind cluster_kind, const struct psd_case *made,
			 const struct psd_replay *replay, unsigned n_beside)
{
	if (made->point.bandwidth_bps == 0.0)
		return 0.0;
	switch (cluster_kind) {
	case PSD_CLUSTER_SHAPED: return 1.0 / n_beside;
	case PSD_CLUSTER_EMULATED: return replay ? 1.0 : psd_emulation_payload_ratio(PSD_EMULATION_DEFAULT_MTU);
	case PSD_CLUSTER_LOOPBACK:
	case PSD_CLUSTER_HOSTS: break;
	}
	return 0.0;
}

/* ---- in a process ---- */

static struct psd_worker_options worker_of(const struct launch *launch, unsigned self)
{
	const struct psd_launch_options *options = launch->options;
	const struct psd_case *made = options->worker.made;
	const struct links links = links_of(made, options->worker.replay);
	const unsigned node = psd_layout_node(launch->layout, self);
	const double of_cluster = link_ratio(made, options->worker.replay, node);
	const unsigned n_beside = psd_layout_hosts_beside(launch->layout, self);
	const double ratio = of_cluster * pace_ratio(options->cluster_kind, made, options->worker.replay, n_beside);
	struct psd_worker_options worker = options->worker;

	worker.self = self;
	worker.place = options->worker.place + self;
	worker.hosts = launch->hosts;
	worker.terms = launch->terms.bytes;
	worker.pulse = &launch->pulses[self];
	worker.listener = launch->listeners[self];
	worker.has_rate = options->cluster_kind == PSD_CLUSTER_SHAPED && made->point.bandwidth_bps > 0.0;
	/* the workers of a node share its link equally, whether the others are busy or not */
	worker.send_bps = of_cluster * links.send_bps / n_beside;
	worker.receive_bps = of_cluster * links.receive_bps / n_beside;
	worker.slowed_ratio = slowed_ratio(made, options->worker.replay, self);
	worker.pace_send_bps = ratio * links.send_bps;
	worker.pace_receive_bps = ratio * links.receive_bps;
	worker.has_latency = options->cluster_kind != PSD_CLUSTER_LOOPBACK;
	worker.latency_sec = links.latency_sec;
	worker.span = options->spans ? psd_recorder_add_span : NULL;
	worker.span_context = options->spans ? &options->spans->hosts[self] : NULL;
	return worker;
}

static enum psd_status run_worker(struct launch *launch, unsigned self, struct psd_worker_result *result,
				  struct psd_error *err)
{
	const struct psd_spans *spans = launch->options->spans;
	const struct psd_worker_options worker = worker_of(launch, self);
	enum psd_status status = PSD_OK;

	for (unsigned h = 0; h < launch->n_hosts; h++)
		if (h != self && launch->listeners[h] >= 0)
			close(launch->listeners[h]);
	if (launch->emulation)
		status = psd_emulation_enter(launch->emulation, psd_layout_node(launch->layout, self), err);
	if (!worker.replay)
		(void)psd_affinity_pin(self, launch->n_hosts); /* unpinned works as well */
	if (!status)
		status = psd_worker_run(&worker, result, err);
	if (!status && spans)
		status = psd_recorder_finish(&spans->hosts[self], err);
	return status;
}

/* A process's whole work. Its record tells the parent how it ended. */
static enum psd_status run_member(void *context, unsigned self, struct psd_error *err)
{
	struct launch *launch = context;
	struct record record = {.host = self};

	close(launch->pipe_out);
	(void)signal(SIGINT, SIG_IGN);	/* a terminal sends it to all processes; the parent ends its children */
	(void)signal(SIGPIPE, SIG_IGN); /* a reader that went away is a failed write like any other */
	(void)signal(SIGXFSZ, SIG_IGN); /* so is a limit on the size of files */
	psd_socket_allow_many();
	record.status = run_worker(launch, self, &record.result, err);
	memcpy(record.text, err->text, sizeof(record.text)); /* zeros unless something failed */
	if (write(launch->pipe_in, &record, sizeof(record)) != (ssize_t)sizeof(record))
		return PSD_ERUN;
	fflush(NULL);
	return record.status;
}

/* ---- starting ---- */

static enum psd_status place_hosts(struct launch *launch, struct psd_error *err)
{
	static const struct psd_socket_options socket_options = {.has_buffers = false};

	for (unsigned h = 0; h < launch->n_hosts; h++) {
		struct psd_mesh_host *host = &launch->hosts[h];

		launch->listeners[h] = -1;
		if (launch->options->cluster_kind == PSD_CLUSTER_EMULATED) {
			psd_emulation_address(psd_layout_node(launch->layout, h), host->address);
			host->port = (uint16_t)(FIRST_PORT + h);
			continue;
		}
		snprintf(host->address, sizeof(host->address), "127.0.0.1");
		PSD_TRY(psd_socket_listen(host->address, 0, &socket_options, &launch->listeners[h], &host->port, err));
	}
	return PSD_OK;
}

/* Largest number of connections that bring messages to one node at a time; 1 for collectives of steps. */
static unsigned most_connections(const struct psd_case *made)
{
	const struct psd_layout *layout = &made->plan.layout;
	const struct psd_collective *last = NULL;
	unsigned most = 1;

	for (uint32_t i = 0; i < made->program.n_ops; i++) {
		struct psd_payload payload = made->program.ops[i].payload;
		unsigned n_pairs;

		if (!psd_op_is_send(&made->program.ops[i]) || payload.collective == last)
			continue;
		last = payload.collective;
		payload.elements = psd_layout_hosts(layout); /* at least one element for each shard */
		n_pairs = psd_payload_pairs_in(&payload, layout);
		most = n_pairs > most ? n_pairs : most;
	}
	return most > 1 ? most * psd_train_least_streams(&made->costed->scenario->train) : 1;
}

/* A scenario's bandwidth includes headers. A replay's rates are those of payload, so headers are added for its
 * links. */
static enum psd_status open_cluster(const struct psd_case *made, const struct psd_replay *replay,
				    struct psd_emulation **emulation, struct psd_error *err)
{
	const struct links links = links_of(made, replay);
	const double payload_ratio = replay ? psd_emulation_payload_ratio(PSD_EMULATION_DEFAULT_MTU) : 1.0;
	double *ratios = calloc(psd_layout_nodes(&made->plan.layout), sizeof(*ratios));
	const struct psd_emulation_options options = {
		.n_nodes = psd_layout_nodes(&made->plan.layout),
		.node_ratios = ratios,
		.has_rate = made->point.bandwidth_bps > 0.0,
		.rate_bps = links.send_bps / payload_ratio,
		.has_receive_rate = true,
		.receive_bps = links.receive_bps / payload_ratio,
		.most_connections = most_connections(made),
		.has_dilation = replay,
		.dilation_ratio = replay ? replay->dilation_ratio : 1.0,
	};

	if (!ratios)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for an emulated cluster");
	for (unsigned node = 0; node < options.n_nodes; node++)
		ratios[node] = link_ratio(made, replay, node);
	const enum psd_status status = psd_emulation_open(&options, emulation, err);
	free(ratios);
	return status;
}

enum psd_status psd_launch_try_emulation(const struct psd_case *made, const struct psd_replay *replay,
					 struct psd_error *err)
{
	struct psd_emulation *emulation;
	struct rlimit limit, tight;

	psd_socket_allow_many();
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
	tight = limit;
	tight.rlim_cur -= MOST_RUN_FILES + psd_layout_hosts(&made->plan.layout);
	if (tight.rlim_cur > limit.rlim_cur)
		tight.rlim_cur = 0;
	(void)setrlimit(RLIMIT_NOFILE, &tight);
	const enum psd_status status = open_cluster(made, replay, &emulation, err);
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	if (!status)
		psd_emulation_close(emulation);
	return status;
}

static void prepare_forks(const struct psd_worker_options *options)
{
	const struct psd_device_kind *device = options->device ? options->device : &psd_device_cpu;
	const bool computes = !options->replay || options->replay->real_workers > 0;

	if (computes && device->prepare_forks)
		device->prepare_forks();
}

static enum psd_status start_all(struct launch *launch, struct psd_error *err)
{
	prepare_forks(&launch->options->worker);
	launch->looked_sec = launch->awake_sec = psd_socket_now_sec();
	for (unsigned h = 0; h < launch->n_hosts; h++) {
		launch->pulses[h].beat_sec = launch->looked_sec;
		launch->pulses[h].limit_sec = MOST_TIMES_STALL * launch->options->worker.stall_sec;
	}
	const enum psd_status status =
		psd_process_group_start(&launch->group, launch->n_hosts, run_member, launch, err);
	for (unsigned h = 0; h < launch->n_hosts; h++) {
		launch->is_running[h] = !status;
		if (launch->listeners[h] >= 0)
			close(launch->listeners[h]);
		launch->listeners[h] = -1;
	}
	close(launch->pipe_in);
	launch->pipe_in = -1;
	return status;
}

/* ---- waiting ---- */

static void note_failure(struct launch *launch)
{
	if (!launch->has_failed)
		launch->give_up_sec = psd_socket_now_sec() + GRACE_SEC;
	launch->has_failed = true;
}

static void read_records(struct launch *launch)
{
	struct record record;

	while (read(launch->pipe_out, &record, sizeof(record)) == (ssize_t)sizeof(record)) {
		launch->records[record.host] = record;
		launch->has_record[record.host] = true;
		if (!record.status)
			continue;
		note_failure(launch);
		if (!launch->has_first) {
			launch->has_first = true;
			launch->first.status = record.status;
			memcpy(launch->first.text, record.text, sizeof(record.text));
		}
	}
}

/* wait_status: as waitpid() gives it */
static void note_end(struct launch *launch, unsigned host, int wait_status)
{
	const bool was_killed = WIFSIGNALED(wait_status);

	launch->is_running[host] = false;
	if (!wait_status)
		return;
	if (was_killed && !launch->has_killed && !(launch->has_failed && psd_socket_now_sec() >= launch->give_up_sec)) {
		char name[PSD_MESH_NAME_MAX];

		launch->has_killed = true;
		launch->killed_status = psd_machine_kill_is_limit(WTERMSIG(wait_status)) ? PSD_ENOMEM : PSD_ELOST;
		snprintf(launch->killed, sizeof(launch->killed), "%s was killed by signal %d%s",
			 psd_mesh_name(launch->layout, launch->hosts, host, name), WTERMSIG(wait_status),
			 psd_machine_kill_hint(WTERMSIG(wait_status)));
	}
	note_failure(launch);
}

/* Waits for a record, LOOK_SEC at most, then notes records and ends. Once all processes have closed the pipe, poll() no
 * longer waits: the last process ends within a moment. */
static void wait_for_records(struct launch *launch)
{
	const struct timespec moment = {0, 1000000};
	struct pollfd pipe_out = {.fd = launch->pipe_out, .events = POLLIN};
	unsigned host;
	int status = 0;

	if (poll(&pipe_out, 1, (int)(1000 * LOOK_SEC)) > 0 && !(pipe_out.revents & POLLIN))
		nanosleep(&moment, NULL);
	read_records(launch);
	while (psd_process_group_take_end(&launch->group, &host, &status))
		note_end(launch, host, status);
}

static void kill_all(const struct launch *launch)
{
	for (unsigned h = 0; h < launch->n_hosts; h++)
		if (launch->is_running[h])
			psd_process_group_kill(&launch->group, h);
}

static bool is_any_running(const struct launch *launch)
{
	for (unsigned h = 0; h < launch->n_hosts; h++)
		if (launch->is_running[h])
			return true;
	return false;
}

/* ---- processes that stand still ---- */

/* Describes the place of a process in its work. */
static void describe_place(const struct launch *launch, unsigned host, char *text, size_t room)
{
	const struct psd_case *made = launch->options->worker.made;
	const struct psd_pulse *pulse = &launch->pulses[host];
	const enum psd_pulse_place place = atomic_load(&pulse->place);
	const struct psd_op *op = &made->program.ops[atomic_load(&pulse->op)];

	switch (place) {
	case PSD_PULSE_STARTING: snprintf(text, room, "at its start, before it had joined"); return;
	case PSD_PULSE_JOINING: snprintf(text, room, "before all had joined"); return;
	case PSD_PULSE_TURNING: snprintf(text, room, "in iteration %u", atomic_load(&pulse->iteration)); return;
	case PSD_PULSE_ENDING: snprintf(text, room, "at its end"); return;
	case PSD_PULSE_OPERATION: break;
	}
	snprintf(text, room, "at '%s %.60s' in iteration %u, which took %.3g s at most before", psd_ops[op->kind].name,
		 made->plan.graph->layers[op->layer].name, atomic_load(&pulse->iteration),
		 atomic_load(&pulse->longest_sec));
}

/* Notes since when it is stopped; returns that time, or 0. */
static double look_at_stop(struct launch *launch, unsigned host)
{
	const bool is_stopped = psd_process_group_stop_signal(&launch->group, host) != 0;

	if (!is_stopped)
		launch->stopped_sec[host] = 0.0;
	else if (launch->stopped_sec[host] == 0.0)
		launch->stopped_sec[host] = launch->looked_sec;
	return launch->stopped_sec[host];
}

/* Seconds for which the process has stood still beyond its limit; 0: it has not. */
static double still_sec(struct launch *launch, unsigned host)
{
	const struct psd_pulse *pulse = &launch->pulses[host];
	const double stall_sec = launch->options->worker.stall_sec, stopped_sec = look_at_stop(launch, host);
	const double beat_sec =
		fmax(stopped_sec > 0.0 ? stopped_sec : atomic_load(&pulse->beat_sec), launch->awake_sec);
	const enum psd_pulse_place place = atomic_load(&pulse->place);
	const bool is_joined = place == PSD_PULSE_TURNING || place == PSD_PULSE_OPERATION;
	const double limit_sec = (stopped_sec > 0.0 ? stall_sec : atomic_load(&pulse->limit_sec)) +
				 (is_joined && launch->n_hosts > 1 ? LATER_SEC : 0.0);
	const double sec = launch->looked_sec - beat_sec;

	return sec > limit_sec ? sec : 0.0;
}

static void blame(struct launch *launch, unsigned host, double sec)
{
	const int stop_signal = psd_process_group_stop_signal(&launch->group, host);
	char name[PSD_MESH_NAME_MAX], place[160], how[48] = "has stood still";

	psd_mesh_name(launch->layout, launch->hosts, host, name);
	describe_place(launch, host, place, sizeof(place));
	if (stop_signal)
		snprintf(how, sizeof(how), "was stopped by signal %d", stop_signal);
	psd_error_set(&launch->first, PSD_ELOST, PSD_NOWHERE,
		      stop_signal ? "%s %s %.3g s ago, %s" : "%s %s for %.3g s, %s", name, how, sec, place);
	launch->has_first = true;
	launch->has_failed = true;
	launch->give_up_sec = launch->looked_sec;
}

/* Blames a process that was stopped before one that may wait for it. */
static void watch(struct launch *launch)
{
	const double now_sec = psd_socket_now_sec();
	unsigned worst = launch->n_hosts;
	double worst_sec = 0.0;
	bool is_worst_stopped = false;

	if (now_sec > launch->looked_sec + LONG_SEC)
		launch->awake_sec = now_sec;
	launch->looked_sec = now_sec;
	for (unsigned h = 0; h < launch->n_hosts && !launch->has_failed; h++) {
		const double sec = launch->is_running[h] && !launch->has_record[h] ? still_sec(launch, h) : 0.0;
		const bool is_stopped = launch->stopped_sec[h] > 0.0;

		if (sec == 0.0 || is_stopped < is_worst_stopped || (is_stopped == is_worst_stopped && sec <= worst_sec))
			continue;
		worst = h;
		worst_sec = sec;
		is_worst_stopped = is_stopped;
	}
	if (worst < launch->n_hosts)
		blame(launch, worst, worst_sec);
}

static enum psd_status wait_all(struct launch *launch, struct psd_error *err)
{
	const volatile sig_atomic_t *stop_signal = launch->options->stop_signal;

	while (is_any_running(launch)) {
		if (stop_signal && *stop_signal)
			return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "stopped by signal %d", (int)*stop_signal);
		wait_for_records(launch);
		watch(launch);
		if (launch->has_failed && psd_socket_now_sec() >= launch->give_up_sec)
			kill_all(launch);
	}
	read_records(launch);
	return PSD_OK;
}

/* The signal that killed a process is the cause; errors of other processes follow it. */
static enum psd_status judge(const struct launch *launch, struct psd_worker_result *result, struct psd_error *err)
{
	if (launch->has_killed && launch->has_first)
		return psd_error_set(err, launch->killed_status, PSD_NOWHERE, "%s; %s", launch->killed,
				     launch->first.text);
	if (launch->has_killed)
		return psd_error_set(err, launch->killed_status, PSD_NOWHERE, "%s", launch->killed);
	if (launch->has_first) {
		*err = launch->first;
		return launch->first.status;
	}
	for (unsigned h = 0; h < launch->n_hosts; h++)
		if (!launch->has_record[h])
			return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "host %u ended without a result", h);
	for (unsigned h = 0; h < launch->n_hosts && launch->options->worker.compute_sec; h++)
		launch->options->worker.compute_sec[h] = launch->records[h].result.own_compute_sec;
	*result = launch->records[0].result;
	for (unsigned h = 1; h < launch->n_hosts; h++) {
		result->late_sec = fmax(result->late_sec, launch->records[h].result.late_sec);
		result->own_cpu_sec += launch->records[h].result.own_cpu_sec;
		result->real_cpu_sec += launch->records[h].result.real_cpu_sec;
	}
	return PSD_OK;
}

/* ---- all together ---- */

static enum psd_status allocate(struct launch *launch, struct psd_error *err)
{
	int ends[2];

	launch->hosts = calloc(launch->n_hosts, sizeof(*launch->hosts));
	launch->is_running = calloc(launch->n_hosts, sizeof(*launch->is_running));
	launch->listeners = calloc(launch->n_hosts, sizeof(*launch->listeners));
	launch->records = calloc(launch->n_hosts, sizeof(*launch->records));
	launch->has_record = calloc(launch->n_hosts, sizeof(*launch->has_record));
	launch->stopped_sec = calloc(launch->n_hosts, sizeof(*launch->stopped_sec));
	launch->pulses = psd_process_group_share(launch->n_hosts * sizeof(*launch->pulses));
	if (!launch->hosts || !launch->is_running || !launch->listeners || !launch->records || !launch->has_record ||
	    !launch->stopped_sec || !launch->pulses)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u processes", launch->n_hosts);
	for (unsigned h = 0; h < launch->n_hosts; h++)
		launch->listeners[h] = -1;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot make a pipe: %s", strerror(errno));
	launch->pipe_out = ends[0];
	launch->pipe_in = ends[1];
	/* the reading end only: a process waits until its record fits */
	if (fcntl(launch->pipe_out, F_SETFL, O_NONBLOCK) < 0)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot make a pipe: %s", strerror(errno));
	return PSD_OK;
}

static void release(struct launch *launch)
{
	psd_process_group_stop(&launch->group);
	psd_emulation_close(launch->emulation);
	for (unsigned h = 0; launch->listeners && h < launch->n_hosts; h++)
		if (launch->listeners[h] >= 0)
			close(launch->listeners[h]);
	if (launch->pipe_in >= 0)
		close(launch->pipe_in);
	if (launch->pipe_out >= 0)
		close(launch->pipe_out);
	psd_text_release(&launch->terms);
	free(launch->hosts);
	free(launch->is_running);
	free(launch->listeners);
	free(launch->records);
	free(launch->has_record);
	free(launch->stopped_sec);
	psd_process_group_unshare(launch->pulses, launch->n_hosts * sizeof(*launch->pulses));
}

/* Files of checkpoints have a hash of the terms. The number of iterations is left out: a run that is cut and resumed
 * writes the files of an uncut one. */
static enum psd_status make_terms(struct launch *launch, struct psd_error *err)
{
	const struct psd_worker_options *worker = &launch->options->worker;

	return worker->checkpoints ? psd_terms_add(&launch->terms, worker->made, worker->train, 0, err) : PSD_OK;
}

enum psd_status psd_launch(const struct psd_launch_options *options, struct psd_worker_result *result,
			   struct psd_error *err)
{
	struct launch launch = {
		.options = options,
		.layout = &options->worker.made->plan.layout,
		.n_hosts = psd_layout_hosts(&options->worker.made->plan.layout),
		.pipe_in = -1,
		.pipe_out = -1,
	};
	enum psd_status status = psd_worker_check(options->worker.made->costed->scenario, err);

	if (!status)
		status = psd_worker_check_optimiser(options->worker.made, err);
	if (!status)
		status = make_terms(&launch, err);
	if (!status)
		status = allocate(&launch, err);
	if (!status && options->cluster_kind == PSD_CLUSTER_EMULATED)
		status = open_cluster(options->worker.made, options->worker.replay, &launch.emulation, err);
	if (!status)
		status = place_hosts(&launch, err);
	if (!status)
		status = start_all(&launch, err);
	if (!status)
		status = wait_all(&launch, err);
	if (!status)
		status = judge(&launch, result, err);
	release(&launch);
	return status;
}
