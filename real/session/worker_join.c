/* Connections of a session: to all hosts, their number, their transports, and the emulation of a cluster's links. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "real/base/affinity.h"
#include "real/keep/agreed_terms.h"
#include "real/net/connection_count.h"
#include "real/net/shaped.h"
#include "real/net/socket.h"
#include "real/session/worker_parts.h"
#include "real/work/sums.h"

/* Several connections need a core beside those of the event loop and the layers. */
enum { LEAST_PROCESSORS = 3 };

/* Kernel's buffers of all connections with a budget: the bytes of WAITING_SEC, and of two round trips for each. Each
 * has at least a few packets, with which TCP works well. */
#define WAITING_SEC	    2e-3
#define LEAST_WAITING_BYTES 6144.0
#define MOST_WAITING_BYTES  4e6

#define TRY_SEC (1.0 / PSD_WIRE_TRIALS)

/* ---- number of connections ---- */

static void close_all(int fds[], size_t n_fds)
{
	for (size_t i = 0; i < n_fds; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/* Neither an emulated link nor memory is faster with two. Trials are not encrypted. */
static bool wants_several(const struct psd_worker *worker)
{
	const struct psd_worker_options *options = worker->host.options;
	const bool has_rate = options->has_rate || options->made->system->budget_bps > 0.0;
	const bool has_links = worker->host.layout->workers_per_node < worker->host.n_hosts;

	return has_links && !worker->replay && !options->secret && !has_rate && !options->has_latency &&
	       psd_affinity_count() >= LEAST_PROCESSORS;
}

static void remark_tried(const struct psd_worker *worker, const struct psd_wire_rates *tried)
{
	struct psd_error line;

	psd_error_set(&line, PSD_ERUN, PSD_NOWHERE,
		      "%u connection%s between two hosts: all hosts together received %.3g Gbps over 1, %.3g over 2, "
		      "%.3g over 4",
		      worker->n_connections, psd_text_plural(worker->n_connections), tried->bps[0] / 1e9,
		      tried->bps[1] / 1e9, tried->bps[2] / 1e9);
	if (worker->host.self == 0 && worker->host.options->remark)
		worker->host.options->remark(worker->host.options->context, line.text);
}

/* Tries them, and keeps the number that all hosts agree on. all: has the first connection of each host, and space for
 * most. */
static enum psd_status keep_best(struct psd_worker *worker, const struct psd_mesh_options *mesh, int all[],
				 struct psd_error *err)
{
	const double until_sec = psd_socket_now_sec() + worker->host.options->connect_sec;
	struct psd_wire_rates tried;

	PSD_TRY(psd_connection_count_try(mesh, all, TRY_SEC, until_sec, &worker->n_connections, &tried, err));
	for (unsigned h = 0; h < worker->host.n_hosts; h++) {
		close_all(all + h * PSD_CONNECTIONS_MOST + worker->n_connections,
			  PSD_CONNECTIONS_MOST - worker->n_connections);
		memmove(all + h * worker->n_connections, all + h * PSD_CONNECTIONS_MOST,
			worker->n_connections * sizeof(*all));
	}
	remark_tried(worker, &tried);
	return PSD_OK;
}

/* fds: one per host at first, n_connections per host on return; space for most. Closed on failure. */
static enum psd_status add_lines(struct psd_worker *worker, const struct psd_mesh_options *more, int fds[],
				 struct psd_error *err)
{
	int *added = calloc((size_t)worker->host.n_hosts * more->n_connections, sizeof(*added));
	struct psd_mesh_clock ignored;
	enum psd_status status = added ? psd_mesh_open(more, added, &ignored, err) : psd_worker_out_of_memory(err);

	if (status) {
		if (!added && more->listener >= 0) /* otherwise opening has closed it */
			close(more->listener);
		close_all(fds, worker->host.n_hosts);
		free(added);
		return status;
	}
	for (unsigned h = worker->host.n_hosts; h-- > 0;) {
		fds[h * PSD_CONNECTIONS_MOST] = fds[h];
		memcpy(fds + h * PSD_CONNECTIONS_MOST + 1, added + h * more->n_connections,
		       more->n_connections * sizeof(*fds));
	}
	free(added);
	status = keep_best(worker, more, fds, err);
	if (status)
		close_all(fds, (size_t)worker->host.n_hosts * PSD_CONNECTIONS_MOST);
	return status;
}

/* One connection, unless all hosts may profit from more, where the scenario leaves it open. */
static enum psd_status open_best(struct psd_worker *worker, const struct psd_mesh_options *one, int fds[],
				 struct psd_error *err)
{
	struct psd_mesh_options more = *one;
	bool is_tried = false;

	more.n_connections = PSD_CONNECTIONS_MOST - 1;
	more.is_addition = true;
	more.listener = one->listener < 0 ? -1 : fcntl(one->listener, F_DUPFD_CLOEXEC, 0);
	enum psd_status status = psd_mesh_open(one, fds, &worker->clock, err);
	if (!status) {
		status = psd_connection_count_agree(one, fds, wants_several(worker),
						    psd_socket_now_sec() + worker->host.options->connect_sec, &is_tried,
						    err);
		if (status)
			close_all(fds, worker->host.n_hosts);
	}
	if (!status && is_tried)
		return add_lines(worker, &more, fds, err);
	if (more.listener >= 0)
		close(more.listener);
	return status;
}

/* ---- connections and emulation ---- */

/* Returns this process's share of its node's budget, as bytes without packet headers; all shares are equal, and the
 * processes use them by need (real/net/rate_limit.h). The links of a replay have the budget's rate already. INFINITY:
 * no budget. */
static double budget_bps(const struct psd_worker *worker)
{
	return worker->host.options->replay ? INFINITY
					    : psd_cost_budget_bps(worker->host.options->made->system) /
						      psd_layout_hosts_beside(worker->host.layout, worker->host.self);
}

/* Bytes that wait in buffers, because the other end was late, pass at the link's rate. Each connection may carry the
 * whole budget of a node, whose processes divide the waiting bytes. rate_bps: this process's share. */
static void limit_waiting(const struct psd_worker *worker, const struct psd_carrier carriers[], double rate_bps)
{
	const unsigned n = worker->host.n_hosts * worker->n_connections;
	const double node_bps = rate_bps * psd_layout_hosts_beside(worker->host.layout, worker->host.self);
	const double round_trip_sec = worker->clock.rtt_sec + 2 * worker->host.options->latency_sec;
	const double wanted_bytes = fmax(rate_bps / 8 * WAITING_SEC / n, node_bps / 8 * 2 * round_trip_sec);
	const int bytes = (int)fmin(fmax(wanted_bytes, LEAST_WAITING_BYTES), MOST_WAITING_BYTES);

	for (unsigned i = 0; i < n && isfinite(rate_bps); i++)
		if (carriers[i].fd >= 0) {
			(void)setsockopt(carriers[i].fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
			(void)setsockopt(carriers[i].fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
		}
}

/* Returns the emulated one-way latency of messages from a peer, seconds. Nodes of a group may have their own. */
static double latency_sec(const struct psd_worker *worker, unsigned peer)
{
	const struct psd_worker_options *options = worker->host.options;
	const struct psd_layout *layout = worker->host.layout;
	const double more_sec = psd_layout_more_latency_sec(layout, psd_layout_node(layout, worker->host.self),
							    psd_layout_node(layout, peer));

	if (!options->has_latency)
		return 0.0;
	return options->latency_sec + more_sec * (worker->replay ? worker->replay->dilation_ratio : 1.0);
}

/* Adds what this machine's links lack to emulate the cluster's, and the limit of the system's budget. */
static enum psd_status emulate_links(struct psd_worker *worker, struct psd_connections_options *connections,
				     struct psd_carrier carriers[], struct psd_error *err)
{
	const struct psd_worker_options *options = worker->host.options;
	bool *is_near = calloc(worker->host.n_hosts, sizeof(*is_near));
	double *latencies_sec = calloc(worker->host.n_hosts, sizeof(*latencies_sec));
	const double most_bps = budget_bps(worker);
	const struct psd_emulated_links links = {
		.is_near = is_near,
		.has_rate = options->has_rate || isfinite(most_bps),
		.send_bps = options->has_rate ? fmin(options->send_bps, most_bps) : most_bps,
		.receive_bps = options->has_rate ? fmin(options->receive_bps, most_bps) : most_bps,
		.shared_limit = worker->limit,
		.pace_send_bps = options->pace_send_bps,
		.pace_receive_bps = options->pace_receive_bps,
		.latency_sec = latencies_sec,
		.had_latency_sec = worker->clock.rtt_sec / 2,
	};

	for (unsigned p = 0; is_near && latencies_sec && p < worker->host.n_hosts; p++) {
		is_near[p] = psd_worker_is_near(worker, p);
		latencies_sec[p] = latency_sec(worker, p);
	}
	limit_waiting(worker, carriers, most_bps);
	const enum psd_status status =
		is_near && latencies_sec ? psd_emulated_open(&worker->emulated, &links, connections, carriers, err)
					 : psd_worker_out_of_memory(err);
	free(is_near);
	free(latencies_sec);
	return status;
}

static enum psd_status open_streams(struct psd_worker *worker, struct psd_carrier carriers[], struct psd_error *err)
{
	const double slowness = worker->replay ? worker->replay->dilation_ratio / worker->replay->payload_ratio : 1.0;
	struct psd_connections_options options = {
		.n_peers = worker->host.n_hosts,
		.n_connections = worker->n_connections,
		.carriers = carriers,
		.wake_fd = worker->wake_fd,
		.link_bps = worker->host.options->made->point.bandwidth_bps / slowness,
		.has_threads = worker->n_connections > 1,
		.first_processor = worker->host.self * worker->n_connections,
		.is_close_to_link = worker->replay,
		.owner = psd_worker_owner(worker),
	};
	const enum psd_status status = emulate_links(worker, &options, carriers, err);

	if (!status)
		return psd_connections_open(&worker->connections, &options, err);
	for (unsigned i = 0; i < options.n_peers * options.n_connections; i++)
		psd_carrier_close(&carriers[i]);
	return status;
}

static enum psd_status open_library(struct psd_worker *worker, const struct psd_mesh_options *mesh, const int fds[],
				    double until_sec, struct psd_error *err)
{
	union psd_wire_payload invitation;

	PSD_TRY(psd_sums_choose(&worker->work, mesh, fds, until_sec, &invitation, err));
	return psd_sums_kind(&worker->work) ? psd_worker_open_sums(worker, &invitation, err) : PSD_OK;
}

/* fds: space for the largest number of connections. */
static enum psd_status join_by(struct psd_worker *worker, struct psd_mesh_options *mesh, int fds[],
			       struct psd_error *err)
{
	const double until_sec = psd_socket_now_sec() + worker->host.options->connect_sec;
	const struct psd_transport_join join = {mesh, fds, until_sec};
	struct psd_carrier *carriers;

	enum psd_status status = worker->host.options->train->streams > 0
					 ? psd_mesh_open(mesh, fds, &worker->clock, err)
					 : open_best(worker, mesh, fds, err);
	worker->clock_offset_sec = -worker->clock.ahead_sec;
	if (status)
		return status;
	mesh->n_connections = worker->n_connections;
	carriers = calloc((size_t)worker->host.n_hosts * worker->n_connections, sizeof(*carriers));
	status = carriers ? open_library(worker, mesh, fds, until_sec, err) : psd_worker_out_of_memory(err);
	if (!status && isfinite(budget_bps(worker)))
		status = psd_rate_limit_share(&join, &worker->limit, err);
	if (status) {
		close_all(fds, (size_t)worker->host.n_hosts * worker->n_connections);
		free(carriers);
		return status;
	}
	status = psd_transport_join(&join, carriers, err);
	if (!status)
		status = open_streams(worker, carriers, err);
	free(carriers);
	return status;
}

enum psd_status psd_worker_join(struct psd_worker *worker, struct psd_error *err)
{
	const unsigned most_connections =
		worker->n_connections > PSD_CONNECTIONS_MOST ? worker->n_connections : PSD_CONNECTIONS_MOST;
	struct psd_text terms = {.bytes = NULL};
	struct psd_mesh_options mesh = {
		.layout = worker->host.layout,
		.hosts = worker->host.options->hosts,
		.self = worker->host.self,
		.n_connections = worker->n_connections,
		.secret = worker->host.options->secret,
		.listener = worker->host.options->listener,
		.run_hash = worker->host.options->run_hash,
		.attempt = worker->host.options->attempt,
		.within_sec = worker->host.options->connect_sec,
		.greeting_sec = PSD_MESH_GREETING_SEC,
		.remind_sec = PSD_MESH_REMIND_SEC,
		.remark = worker->host.options->remark,
		.context = worker->host.options->context,
	};
	int *fds = calloc((size_t)worker->host.n_hosts * most_connections, sizeof(*fds));

	psd_text_add(&terms, "%s", worker->host.options->terms ? worker->host.options->terms : "");
	psd_terms_add_run(&terms, &worker->host);
	psd_terms_add_program(&terms, worker->host.graph, worker->host.program);
	mesh.terms = terms.bytes;
	const enum psd_status status =
		!fds || terms.is_out_of_memory ? psd_worker_out_of_memory(err) : join_by(worker, &mesh, fds, err);
	psd_text_release(&terms);
	free(fds);
	return status;
}
