/* Sums that a library does in place of steps. The library here is the test's own: the workers' lanes meet in one
 * process. Its device is the processor under another name. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/net/socket.h"
#include "real/session/session.h"
#include "real/work/sums.h"
#include "tests/loaded_helper.h"

enum { HOSTS = 3, ITERATIONS = 3, MOST_VALUES = 1 << 18, NOBODY = HOSTS };

#define WITHIN_SEC	60.0
#define SHORT_STALL_SEC 0.2
#define TOLERANCE	1e-5 /* sums are taken in another order than a ring's */

/* ---- a library ---- */

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	unsigned n_open, n_orderly, n_came, n_left, n_sums, n_called_off;
	uint64_t n_values; /* number of the sum under way */
	float values[HOSTS][MOST_VALUES];
	unsigned breaks; /* the rank whose second sum fails */
	unsigned hangs;	 /* the rank whose second sum never ends */
	bool is_aborted[HOSTS];
} common = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .breaks = NOBODY, .hangs = NOBODY};

static double stall_sec = WITHIN_SEC;

struct psd_library {
	unsigned rank, n_sums;
};

static enum psd_status check(unsigned n_ranks, struct psd_error *err)
{
	(void)err;
	cr_assert_eq(n_ranks, HOSTS);
	return PSD_OK;
}

static enum psd_status invite(uint8_t invitation[PSD_LIBRARY_INVITATION_BYTES], struct psd_error *err)
{
	(void)err;
	for (unsigned i = 0; i < PSD_LIBRARY_INVITATION_BYTES; i++)
		invitation[i] = (uint8_t)(3 * i);
	return PSD_OK;
}

static enum psd_status open_library(struct psd_library **library, const struct psd_library_options *options,
				    struct psd_error *err)
{
	(void)err;
	for (unsigned i = 0; i < PSD_LIBRARY_INVITATION_BYTES; i++)
		cr_assert_eq(options->invitation[i], (uint8_t)(3 * i));
	cr_assert_eq(options->n_ranks, HOSTS);
	*library = calloc(1, sizeof(**library));
	cr_assert_not_null(*library);
	(*library)->rank = options->rank;
	pthread_mutex_lock(&common.mutex);
	common.n_open++;
	pthread_mutex_unlock(&common.mutex);
	return PSD_OK;
}

/* With the mutex held: the last rank to arrive lets the others go on. */
static void meet(unsigned rank, unsigned *n, unsigned *others)
{
	if (++*n == HOSTS)
		*others = 0;
	pthread_cond_broadcast(&common.changed);
	while (*n < HOSTS && !common.is_aborted[rank])
		pthread_cond_wait(&common.changed, &common.mutex);
}

static enum psd_status add_up(struct psd_library *library, const struct iovec segments[], unsigned n_segments)
{
	float *own = common.values[library->rank];
	uint64_t n = 0;

	for (unsigned p = 0; p < n_segments; p++) {
		memcpy(own + n, segments[p].iov_base, segments[p].iov_len);
		n += segments[p].iov_len / sizeof(float);
	}
	if (common.n_came == 0)
		common.n_values = n;
	cr_assert_eq(common.n_values, n, "ranks sum different things");
	meet(library->rank, &common.n_came, &common.n_left);
	if (common.is_aborted[library->rank]) {
		common.n_called_off++;
		pthread_cond_broadcast(&common.changed);
		return PSD_ERUN;
	}
	n = 0;
	for (unsigned p = 0; p < n_segments; p++)
		for (size_t i = 0; i < segments[p].iov_len / sizeof(float); i++, n++)
			((float *)segments[p].iov_base)[i] =
				common.values[0][n] + common.values[1][n] + common.values[2][n];
	meet(library->rank, &common.n_left, &common.n_came);
	common.n_sums += library->rank == 0;
	return PSD_OK;
}

/* Once the others wait for it. */
static enum psd_status break_down(struct psd_error *err)
{
	pthread_mutex_lock(&common.mutex);
	while (common.n_came < HOSTS - 1)
		pthread_cond_wait(&common.changed, &common.mutex);
	pthread_mutex_unlock(&common.mutex);
	return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "the library is broken");
}

static enum psd_status sum(struct psd_library *library, const struct iovec segments[], unsigned n_segments, void *room,
			   struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	cr_assert_not_null(room);
	if (++library->n_sums == 2 && library->rank == common.breaks)
		return break_down(err);
	pthread_mutex_lock(&common.mutex);
	while (library->n_sums == 2 && library->rank == common.hangs && !common.is_aborted[library->rank])
		pthread_cond_wait(&common.changed, &common.mutex);
	status = add_up(library, segments, n_segments);
	pthread_mutex_unlock(&common.mutex);
	return status ? psd_error_set(err, status, PSD_NOWHERE, "the sum was called off") : PSD_OK;
}

/* NULL: ranks of all hosts. */
static void abort_sum(struct psd_library *library)
{
	pthread_mutex_lock(&common.mutex);
	for (unsigned r = 0; r < HOSTS; r++)
		common.is_aborted[r] |= !library || library->rank == r;
	pthread_cond_broadcast(&common.changed);
	pthread_mutex_unlock(&common.mutex);
}

static void close_library(struct psd_library *library, bool is_orderly)
{
	pthread_mutex_lock(&common.mutex);
	common.n_open--;
	common.n_orderly += is_orderly;
	pthread_mutex_unlock(&common.mutex);
	free(library);
}

static const struct psd_library_kind own_kind = {
	.name = "nccl",
	.check = check,
	.invite = invite,
	.open = open_library,
	.sum = sum,
	.abort = abort_sum,
	.close = close_library,
};

/* ---- its workers ---- */

struct host {
	struct cluster *cluster;
	struct psd_worker_options options;
	struct psd_worker_result result;
	pthread_t thread;
	enum psd_status status;
	struct psd_error err;
	float *parameters;
};

struct cluster {
	struct loaded loaded;
	struct psd_case made;
	struct psd_device_kind device;
	struct psd_library_kind kind;
	const struct psd_library_kind *kinds[2]; /* it alone */
	struct psd_mesh_host places[HOSTS];
	struct host hosts[HOSTS];
};

static void keep(void *context, unsigned self, const struct psd_memory *memory)
{
	struct host *host = context;
	const struct psd_graph *graph = &host->cluster->loaded.costed.graph;
	float *to = calloc(graph->parameters, sizeof(*to));

	(void)self;
	cr_assert_not_null(to);
	host->parameters = to;
	for (unsigned t = 0; t < graph->n_tensors; t++) {
		memcpy(to, memory->parameters[t], graph->tensors[t].elements * sizeof(*to));
		to += graph->tensors[t].elements;
	}
}

static void *run_host(void *context)
{
	struct host *host = context;

	host->status = psd_worker_run(&host->options, &host->result, &host->err);
	return NULL;
}

static void place_host(struct cluster *cluster, unsigned h)
{
	static const struct psd_socket_options socket_options = {.has_buffers = false};
	struct host *host = &cluster->hosts[h];
	struct psd_error err;

	host->cluster = cluster;
	host->options = (struct psd_worker_options){
		.made = &cluster->made,
		.train = &cluster->loaded.scenario.train,
		.device = &cluster->device,
		.n_iterations = ITERATIONS,
		.self = h,
		.hosts = cluster->places,
		.connect_sec = WITHIN_SEC,
		.stall_sec = stall_sec,
		.finished = keep,
		.context = host,
	};
	snprintf(cluster->places[h].address, sizeof(cluster->places[h].address), "127.0.0.1");
	cr_assert_eq(psd_socket_listen("127.0.0.1", 0, &socket_options, &host->options.listener,
				       &cluster->places[h].port, &err),
		     PSD_OK, "%s", err.text);
}

/* has_abort: waiting ranks can be called off. */
static struct cluster *run(const char *system, bool has_abort)
{
	struct cluster *cluster = calloc(1, sizeof(*cluster));

	cr_assert_not_null(cluster);
	loaded_print(
		&cluster->loaded,
		"model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 2}\ncompute: {device: cpu}\n"
		"cluster: {stack: none, nodes: %d, network: {bandwidth: 1Gbps, latency: 50us}}\nsystems: [{name: s, "
		"%s}]\n"
		"train: {iterations: %d, learning_rate: {policy: fixed, base: 0.001}}\n",
		HOSTS, system, ITERATIONS);
	loaded_case(&cluster->made, &cluster->loaded, 0, 0);
	cluster->kind = own_kind;
	if (!has_abort)
		cluster->kind.abort = NULL;
	cluster->device = psd_device_cpu;
	cluster->kinds[0] = &cluster->kind;
	cluster->device.libraries = cluster->kinds;
	for (unsigned h = 0; h < HOSTS; h++)
		place_host(cluster, h);
	for (unsigned h = 0; h < HOSTS; h++)
		cr_assert_eq(pthread_create(&cluster->hosts[h].thread, NULL, run_host, &cluster->hosts[h]), 0);
	for (unsigned h = 0; h < HOSTS; h++)
		pthread_join(cluster->hosts[h].thread, NULL);
	return cluster;
}

static void release(struct cluster *cluster)
{
	for (unsigned h = 0; h < HOSTS; h++)
		free(cluster->hosts[h].parameters);
	psd_case_release(&cluster->made);
	loaded_close(&cluster->loaded);
	free(cluster);
}

/* ---- sums of such a library ---- */

static unsigned collectives_of(const struct cluster *cluster)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < cluster->made.program.n_ops; i++)
		n += cluster->made.program.ops[i].kind == PSD_OP_COLLECTIVE;
	return n;
}

static void expect_same(const struct cluster *made, const struct cluster *expected)
{
	for (unsigned h = 0; h < HOSTS; h++) {
		const struct host *host = &made->hosts[h], *other = &expected->hosts[h];

		cr_assert_eq(host->status, PSD_OK, "host %u: %s", h, host->err.text);
		for (uint64_t i = 0; i < made->loaded.costed.graph.parameters; i++)
			cr_assert_float_eq(host->parameters[i], other->parameters[i], TOLERANCE);
	}
	cr_expect_eq(made->hosts[0].result.sent_bytes_per_node, expected->hosts[0].result.sent_bytes_per_node);
	cr_expect_eq(made->hosts[0].result.received_bytes_per_node, expected->hosts[0].result.received_bytes_per_node);
}

static void check_system(const char *more)
{
	char ring[128], library[128];
	struct cluster *made, *expected;

	snprintf(ring, sizeof(ring), "sync: ring%s", more);
	snprintf(library, sizeof(library), "sync: nccl%s", more);
	expected = run(ring, true);
	cr_expect_eq(common.n_sums, 0);
	made = run(library, true);
	expect_same(made, expected);
	cr_expect_eq(common.n_sums, ITERATIONS * collectives_of(made));
	cr_expect_eq(common.n_open, 0);
	cr_expect_eq(common.n_orderly, HOSTS);
	release(made);
	release(expected);
}

Test(session_library, sums_what_the_ring_would_sum, .timeout = 120)
{
	check_system("");
}

Test(session_library, takes_tensors_that_are_gathered_and_parts_of_them, .timeout = 120)
{
	check_system(", fuse: 100kB, pipeline: 150kB, schedule: sequential");
}

/* Workers are ready in different orders here: worker 0 decides which is next. */
Test(session_library, sums_in_one_order_everywhere, .timeout = 120)
{
	check_system(", priority: forward, barrier: layer");
}

static void expect_broken(const struct cluster *cluster)
{
	for (unsigned h = 0; h < HOSTS; h++) {
		cr_expect_eq(cluster->hosts[h].status, PSD_ERUN, "host %u", h);
		cr_expect(strstr(cluster->hosts[h].err.text, "the library is broken"), "host %u: %s", h,
			  cluster->hosts[h].err.text);
	}
}

/* The others wait for the sum that one of them does not come to. */
Test(session_library, a_sum_that_fails_ends_hosts_that_wait_for_it, .timeout = 60)
{
	struct cluster *cluster;

	common.breaks = 1;
	cluster = run("sync: nccl", true);
	expect_broken(cluster);
	cr_expect_eq(common.n_open, 0);
	cr_expect_eq(common.n_orderly, 0);
	release(cluster);
}

/* There are 512 samples to test, for which the others would wait. */
Test(session_library, a_sum_that_never_ends_is_named, .timeout = 60)
{
	struct cluster *cluster;

	common.hangs = 1;
	stall_sec = SHORT_STALL_SEC;
	cluster = run("sync: nccl", true);
	for (unsigned h = 0; h < HOSTS; h++) {
		cr_expect_eq(cluster->hosts[h].status, PSD_ELOST, "host %u", h);
		cr_expect(strstr(cluster->hosts[h].err.text, " has been at 'collective "), "host %u: %s", h,
			  cluster->hosts[h].err.text);
	}
	release(cluster);
}

/* Its memory is still there when the sum ends after all, and nothing else is touched. */
Test(session_library, a_host_that_cannot_be_cancelled_is_left_waiting, .timeout = 60)
{
	struct cluster *cluster;

	common.breaks = 1;
	cluster = run("sync: nccl", false);
	expect_broken(cluster);
	cr_expect_eq(common.n_open, HOSTS - 1);
	release(cluster);
	abort_sum(NULL);
	pthread_mutex_lock(&common.mutex);
	while (common.n_called_off < HOSTS - 1)
		pthread_cond_wait(&common.changed, &common.mutex);
	pthread_mutex_unlock(&common.mutex);
}

Test(session_library, a_library_that_no_device_has_is_refused_with_its_place)
{
	static const struct psd_system nccl = {.name = "s", .sync = PSD_SYNC_LIBRARY + 1, .at = {"a.yaml", 4, 5}};
	static const struct psd_system ring = {.name = "s", .sync = PSD_SYNC_ALL_REDUCE};
	static const struct psd_system limited = {
		.name = "s", .sync = PSD_SYNC_LIBRARY + 1, .budget_bps = 40e6, .at = {"a.yaml", 4, 5}};
	struct psd_error err;

	cr_expect_eq(psd_worker_check_library(&nccl, 2, &psd_device_cpu, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, "a.yaml:4:5: 'sync' of system 's' is 'nccl', which cannot sum in memory of device "
				   "'cpu': needs 'device: cuda' in 'train'");
	cr_expect_eq(psd_worker_check_library(&nccl, 2, NULL, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, "a.yaml:4:5: 'sync' of system 's' is 'nccl', a library that a replay cannot call: "
				   "must be an all-reduce of psd, such as 'ring'");
	cr_expect_eq(psd_worker_check_library(&limited, 2, &psd_device_cpu, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, "a.yaml:4:5: 'sync' of system 's' is 'nccl', a library that keeps to no 'budget': "
				   "must be an all-reduce of psd, such as 'ring'");
	cr_expect_eq(psd_worker_check_library(&nccl, 1, &psd_device_cpu, &err), PSD_OK, "a lone worker sums nothing");
	cr_expect_eq(psd_worker_check_library(&ring, 2, &psd_device_cpu, &err), PSD_OK);
	cr_expect_eq(psd_worker_check_library(&ring, 2, NULL, &err), PSD_OK);
}

/* Otherwise others would wait for ever in a sum with a lost host. */
Test(session_library, restarts_need_one_that_can_be_called_off)
{
	static const struct psd_system mpi = {.name = "s", .sync = PSD_SYNC_LIBRARY, .at = {"a.yaml", 4, 5}};
	static const struct psd_system nccl = {.name = "s", .sync = PSD_SYNC_LIBRARY + 1, .at = {"a.yaml", 4, 5}};
	static const struct psd_system ring = {.name = "s", .sync = PSD_SYNC_ALL_REDUCE};
	const struct psd_library_kind *const kinds[] = {&own_kind, NULL};
	struct psd_device_kind device = psd_device_cpu;
	struct psd_error err;

	device.libraries = kinds;
	cr_expect_eq(psd_worker_check_restarts(&mpi, &device, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, "a.yaml:4:5: 'sync' of system 's' is 'mpi', which cannot be interrupted for "
				   "'--restarts': must be an all-reduce of psd, such as 'ring'");
	cr_expect_eq(psd_worker_check_restarts(&nccl, &device, &err), PSD_OK);
	cr_expect_eq(psd_worker_check_restarts(&ring, &device, &err), PSD_OK);
}
