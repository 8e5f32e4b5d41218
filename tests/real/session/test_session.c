/* Sessions from the outside: one thread carries several on, and none holds it up. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>

#include "real/net/socket.h"
#include "real/session/session.h"
#include "real/session/worker_parts.h"
#include "tests/loaded_helper.h"

enum { HOSTS = 3, ITERATIONS = 3 };

#define WITHIN_SEC 60.0

static const char scenario[] = "title: t\n"
			       "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 2}\n"
			       "compute: {device: cpu}\n"
			       "cluster: {stack: none, nodes: 3, network: {bandwidth: 1Gbps, latency: 50us}}\n"
			       "systems: [{name: s, schedule: wait-free, sync: %s}]\n"
			       "train: {iterations: 3, learning_rate: {policy: fixed, base: 0.001}}\n";

/* Events that a host reports, and its end. */
struct host {
	struct psd_worker_options options;
	struct psd_worker *session;
	struct psd_worker_result result;
	pthread_t thread;
	enum psd_status status;
	struct psd_error err;
	unsigned n_progress, n_finished;
	bool is_over;
};

struct cluster {
	struct loaded loaded;
	struct psd_case made;
	struct psd_mesh_host places[HOSTS];
	struct host hosts[HOSTS];
};

static void count_progress(void *context, const struct psd_progress *progress)
{
	struct host *host = context;

	cr_expect_eq(progress->iteration, host->n_progress);
	host->n_progress++;
}

static void count_finished(void *context, unsigned self, const struct psd_memory *memory)
{
	struct host *host = context;

	(void)memory;
	cr_expect_eq(self, host->options.self);
	host->n_finished++;
}

/* Which waits for the others, so that each needs a thread. */
static void *open_session(void *context)
{
	struct host *host = context;

	host->status = psd_session_open(&host->session, &host->options, &host->err);
	return NULL;
}

static void open_cluster(struct cluster *cluster, const char *sync)
{
	static const struct psd_socket_options socket_options = {.has_buffers = false};
	struct psd_error err;

	memset(cluster, 0, sizeof(*cluster));
	loaded_print(&cluster->loaded, scenario, sync);
	loaded_case(&cluster->made, &cluster->loaded, 0, 0);
	for (unsigned h = 0; h < HOSTS; h++) {
		struct host *host = &cluster->hosts[h];

		host->options = (struct psd_worker_options){
			.made = &cluster->made,
			.train = &cluster->loaded.scenario.train,
			.n_iterations = ITERATIONS,
			.self = h,
			.hosts = cluster->places,
			.connect_sec = WITHIN_SEC,
			.stall_sec = WITHIN_SEC,
			.progress = count_progress,
			.finished = count_finished,
			.context = host,
		};
		snprintf(cluster->places[h].address, sizeof(cluster->places[h].address), "127.0.0.1");
		cr_assert_eq(psd_socket_listen("127.0.0.1", 0, &socket_options, &host->options.listener,
					       &cluster->places[h].port, &err),
			     PSD_OK, "%s", err.text);
	}
	for (unsigned h = 0; h < HOSTS; h++)
		cr_assert_eq(pthread_create(&cluster->hosts[h].thread, NULL, open_session, &cluster->hosts[h]), 0);
	for (unsigned h = 0; h < HOSTS; h++) {
		pthread_join(cluster->hosts[h].thread, NULL);
		cr_assert_eq(cluster->hosts[h].status, PSD_OK, "%s", cluster->hosts[h].err.text);
	}
}

static void close_cluster(struct cluster *cluster)
{
	for (unsigned h = 0; h < HOSTS; h++)
		psd_session_close(cluster->hosts[h].session, cluster->hosts[h].status, &cluster->hosts[h].err);
	psd_case_release(&cluster->made);
	loaded_close(&cluster->loaded);
}

/* Host after host, without waiting for any of them. */
static void run_by_turns(struct cluster *cluster)
{
	unsigned n_over = 0;

	while (n_over < HOSTS)
		for (unsigned h = 0; h < HOSTS; h++) {
			struct host *host = &cluster->hosts[h];

			if (host->is_over)
				continue;
			host->status = psd_session_step(host->session, 0.0, &host->is_over, &host->result, &host->err);
			cr_assert_eq(host->status, PSD_OK, "host %u: %s", h, host->err.text);
			n_over += host->is_over;
		}
}

static void check(const char *sync)
{
	struct cluster *cluster = malloc(sizeof(*cluster));

	cr_assert_not_null(cluster);
	open_cluster(cluster, sync);
	run_by_turns(cluster);
	cr_expect_eq(cluster->hosts[0].n_progress, ITERATIONS);
	for (unsigned h = 0; h < HOSTS; h++)
		cr_expect_eq(cluster->hosts[h].n_finished, 1, "%s, host %u", sync, h);
	cr_expect_gt(cluster->hosts[0].result.last_loss, 0.0);
	close_cluster(cluster);
	free(cluster);
}

Test(session, one_thread_carries_on_several, .timeout = 120)
{
	check("ring");
	check("ps");
	check("sfb");
}

/* A turn of a host that is not over. */
static void step(struct host *host)
{
	if (!host->is_over)
		host->status = psd_session_step(host->session, 0.0, &host->is_over, &host->result, &host->err);
	cr_assert_eq(host->status, PSD_OK, "%s", host->err.text);
}

/* A host that has executed its last operation stays until the others have, too: one may still need it. */
Test(session, none_leaves_before_all_are_done, .timeout = 120)
{
	struct cluster *cluster = malloc(sizeof(*cluster));
	unsigned n_over = 0;

	cr_assert_not_null(cluster);
	open_cluster(cluster, "ring");
	while (n_over < HOSTS) {
		n_over = 0;
		for (unsigned h = 0; h < HOSTS; h++) {
			step(&cluster->hosts[h]);
			for (unsigned o = 0; o < HOSTS && cluster->hosts[h].session->phase > PSD_PHASE_PARTING; o++)
				cr_assert_geq(cluster->hosts[o].session->phase, PSD_PHASE_PARTING,
					      "host %u left host %u", h, o);
			n_over += cluster->hosts[h].is_over;
		}
	}
	close_cluster(cluster);
	free(cluster);
}

/* All have said that they are done; host 2 is lost before it has heard it. */
Test(session, one_that_is_lost_when_all_are_done_leaves_nothing_undone, .timeout = 120)
{
	struct cluster *cluster = malloc(sizeof(*cluster));
	struct host *hosts;

	cr_assert_not_null(cluster);
	open_cluster(cluster, "ring");
	hosts = cluster->hosts;
	for (unsigned n_done = 0; n_done < HOSTS;) {
		n_done = 0;
		for (unsigned h = 0; h < HOSTS; h++) {
			if (hosts[h].session->phase < PSD_PHASE_PARTING)
				step(&hosts[h]);
			n_done += hosts[h].session->phase >= PSD_PHASE_PARTING;
		}
	}
	psd_error_set(&hosts[2].err, PSD_ELOST, PSD_NOWHERE, "was killed");
	psd_session_close(hosts[2].session, PSD_ELOST, &hosts[2].err);
	while (!hosts[0].is_over || !hosts[1].is_over)
		for (unsigned h = 0; h < 2; h++)
			step(&hosts[h]);
	cr_expect_eq(hosts[0].n_finished, 1);
	cr_expect_eq(hosts[1].n_finished, 1);
	for (unsigned h = 0; h < 2; h++)
		psd_session_close(hosts[h].session, PSD_OK, &hosts[h].err);
	psd_case_release(&cluster->made);
	loaded_close(&cluster->loaded);
	free(cluster);
}

/* A session that is closed with a failure tells the others why. */
Test(session, one_that_is_given_up_says_so, .timeout = 120)
{
	struct cluster *cluster = malloc(sizeof(*cluster));
	struct host *first;

	cr_assert_not_null(cluster);
	open_cluster(cluster, "ring");
	first = &cluster->hosts[0];
	cluster->hosts[2].status = psd_error_set(&cluster->hosts[2].err, PSD_ERUN, PSD_NOWHERE, "was told to stop");
	psd_session_close(cluster->hosts[2].session, PSD_ERUN, &cluster->hosts[2].err);
	while (!first->status)
		first->status = psd_session_step(first->session, 1.0, &first->is_over, &first->result, &first->err);
	cr_expect(strstr(first->err.text, "was told to stop"), "%s", first->err.text);
	psd_session_close(first->session, first->status, &first->err);
	psd_session_close(cluster->hosts[1].session, PSD_OK, &cluster->hosts[1].err);
	psd_case_release(&cluster->made);
	loaded_close(&cluster->loaded);
	free(cluster);
}
