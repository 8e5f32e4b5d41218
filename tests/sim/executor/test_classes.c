/* Simulations in which one host, flow or all-reduce stands for many, against those of everything: random clusters and
 * methods. */
#define _DEFAULT_SOURCE
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>

#include "tests/simulate_helper.h"

enum { FIRST_SAMPLE = 24, END_SAMPLE = 36, N_ALL = 200, MOST_SPANS = 1 << 21 };

static const double most_error_ratio = 1e-9;

static uint64_t drawn(uint64_t *state, uint64_t n)
{
	*state = *state * 6364136223846793005U + 1442695040888963407U;
	return (*state >> 33) % n;
}

static const char *one_of(uint64_t *state, const char *const words[], unsigned n)
{
	return words[drawn(state, n)];
}

#define ONE_OF(state, ...)                                                                                             \
	one_of(state, (const char *const[]){__VA_ARGS__},                                                              \
	       sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* The systems' methods, in turn; the keys behind them are drawn. */
static const char *const methods[] = {
	"ring",
	"two-level",
	"halving-doubling",
	"ring",
	"double-tree",
	"torus",
	"recursive-doubling",
	"ring",
	"nccl",
	"nccl-two-level",
	"mpi",
	"auto",
	"ps",
	"hybrid, rule: seconds",
	"ring, fuse: 100KiB",
	"two-level-ps",
	"sfb",
	"ring, local_sgd: {steps: 3}",
	"torus",
	"ring, barrier: layer, priority: forward",
	"halving-doubling",
	"ring, staleness: 1",
	"two-level",
	"double-tree, fuse: 1MiB",
};

static void add_cluster(char *text, size_t room, uint64_t *state)
{
	const unsigned nodes = 2 + (unsigned)drawn(state, 10),
		       per_node = drawn(state, 2) ? 1 : 1 + (unsigned)drawn(state, 5);
	const unsigned n_slow = (unsigned)drawn(state, 3) % 2;
	char racks[128] = "", slow[128] = "";

	if (drawn(state, 3) == 0)
		snprintf(racks, sizeof(racks), ", topology: %s, nodes_per_rack: %u, oversubscription: %u",
			 ONE_OF(state, "racks", "fat-tree"), 2 + (unsigned)drawn(state, 3),
			 1 + (unsigned)drawn(state, 4));
	if (n_slow)
		snprintf(slow, sizeof(slow), "  slow: [{node: %u, compute: %s, link: %s%s}]\n",
			 (unsigned)drawn(state, nodes), ONE_OF(state, "1", "0.5", "0.3"), ONE_OF(state, "1", "0.5"),
			 ONE_OF(state, "", "", ", from: 1ms, until: 20ms"));
	snprintf(text, room,
		 "cluster:\n  stack: none\n  nodes: %u\n  workers_per_node: %u\n"
		 "  network: {bandwidth: %s, latency: %s%s}\n  local: {bandwidth: %s, latency: 3us}\n"
		 "  host: {copy: 10GBps, reduce: 8GBps%s}\n%s",
		 nodes, per_node, ONE_OF(state, "1Gbps", "10Gbps", "100Gbps"), ONE_OF(state, "0s", "5us", "50us"),
		 racks, ONE_OF(state, "12GBps", "100GBps"), ONE_OF(state, "", ", device_share: 0.2", ", latency: 7us"),
		 slow);
}

static void write_scenario(char *text, size_t room, unsigned seed)
{
	uint64_t state = seed * 7919 + 1;
	char cluster[1024];

	add_cluster(cluster, sizeof(cluster), &state);
	snprintf(text, room,
		 "title: seed %u\nmodel: {graph: scenarios/models/%s.yaml, batch_per_worker: 4}\n"
		 "compute: {device: p100%s}\n%ssystems: [{name: s, sync: %s}]\nfidelity: %s\niterations: %u\n"
		 "most_events: 1000000000\n",
		 seed, ONE_OF(&state, "mlp", "cifar10-quick", "small-layers"), drawn(&state, 6) ? "" : ", jitter: 5%",
		 cluster, methods[seed % (sizeof(methods) / sizeof(methods[0]))], drawn(&state, 2) ? "flow" : "message",
		 1 + (unsigned)drawn(&state, 3) * (unsigned)drawn(&state, 20));
}

/* ---- spans ---- */

struct spans {
	struct psd_span of[MOST_SPANS];
	unsigned n;
};

static void keep_span(void *context, const struct psd_program *program, const struct psd_span *span)
{
	struct spans *spans = context;

	(void)program;
	if (spans->n < MOST_SPANS)
		spans->of[spans->n++] = *span;
}

/* In order of host, task, kind, bytes and time: arrivals of one task at a host are several. */
static int compare_spans(const void *left, const void *right)
{
	const struct psd_span *a = left, *b = right;

	if (a->host != b->host)
		return a->host < b->host ? -1 : 1;
	if (a->task.iteration != b->task.iteration)
		return a->task.iteration < b->task.iteration ? -1 : 1;
	if (a->task.op != b->task.op)
		return a->task.op < b->task.op ? -1 : 1;
	if (a->is_arrival != b->is_arrival)
		return a->is_arrival ? 1 : -1;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	return (a->end_sec > b->end_sec) - (a->end_sec < b->end_sec);
}

static struct spans *sorted_spans(const struct psd_case *made, enum psd_detail detail)
{
	struct spans *spans = shared_memory(sizeof(*spans));

	simulated_in_detail(made, detail, keep_span, spans);
	cr_assert_lt(spans->n, MOST_SPANS);
	qsort(spans->of, spans->n, sizeof(spans->of[0]), compare_spans);
	return spans;
}

/* Each span of a simulated host is a span of the whole simulation. */
static void check_spans(const struct psd_case *made, enum psd_detail detail, const char *text)
{
	struct spans *all = sorted_spans(made, PSD_DETAIL_ALL), *some = sorted_spans(made, detail);
	unsigned at = 0;

	cr_expect(some->n > 0 && (detail == PSD_DETAIL_CLASSES || some->n == all->n), "%u of %u spans\n%s", some->n,
		  all->n, text);
	for (unsigned i = 0; i < some->n; i++) {
		const struct psd_span *span = &some->of[i];

		while (at < all->n && (all->of[at].host != span->host || all->of[at].task.op != span->task.op ||
				       all->of[at].task.iteration != span->task.iteration ||
				       all->of[at].bytes != span->bytes || all->of[at].is_arrival != span->is_arrival))
			at++;
		cr_assert_lt(at, all->n, "host %u has no span of operation %u\n%s", span->host, span->task.op, text);
		const struct psd_span *expected = &all->of[at++];
		const double most_sec = most_error_ratio * expected->end_sec;

		cr_assert(fabs(span->start_sec - expected->start_sec) <= most_sec &&
				  fabs(span->end_sec - expected->end_sec) <= most_sec && span->bytes == expected->bytes,
			  "host %u, operation %u: %.12g to %.12g s, expected %.12g to %.12g\n%s", span->host,
			  span->task.op, span->start_sec, span->end_sec, expected->start_sec, expected->end_sec, text);
	}
	munmap(all, sizeof(*all));
	munmap(some, sizeof(*some));
}

/* ---- outcomes ---- */

static bool are_close(double a_sec, double b_sec, double whole_sec)
{
	return fabs(a_sec - b_sec) <= most_error_ratio * whole_sec;
}

static void check_outcomes(const struct psd_outcome *some, const struct psd_outcome *all, const char *text)
{
	const double sec = all->iteration_sec;
	bool are_equal = are_close(some->iteration_sec, sec, sec) &&
			 are_close(some->parts.compute_sec, all->parts.compute_sec, sec) &&
			 are_close(some->parts.other_work_sec, all->parts.other_work_sec, sec) &&
			 are_close(some->parts.exposed_comm_sec, all->parts.exposed_comm_sec, sec) &&
			 are_close(some->parts.other_waiting_sec, all->parts.other_waiting_sec, sec);

	for (unsigned r = 0; r < PSD_RESOURCES; r++)
		are_equal = are_equal && are_close(some->busy_sec[r], all->busy_sec[r], sec);
	for (unsigned p = 0; p < PSD_PERCENTILES; p++)
		are_equal = are_equal && are_close(some->percentiles_sec[p], all->percentiles_sec[p], sec);
	cr_expect(are_equal && some->sent_bytes_per_node == all->sent_bytes_per_node &&
			  some->received_bytes_per_node == all->received_bytes_per_node &&
			  some->n_iterations == all->n_iterations,
		  "%.12g s and %lu bytes, expected %.12g s and %lu bytes\n%s", some->iteration_sec,
		  some->sent_bytes_per_node, sec, all->sent_bytes_per_node, text);
}

/* Returns the outcome of the simulation of classes. */
static struct psd_outcome check_text(const char *text)
{
	struct loaded loaded;
	struct psd_case made;

	loaded_open(&loaded, text);
	loaded_case(&made, &loaded, 0, 0);
	const struct psd_outcome all = simulated_in_detail(&made, PSD_DETAIL_ALL, NULL, NULL);
	const struct psd_outcome of_hosts = simulated_in_detail(&made, PSD_DETAIL_HOSTS, NULL, NULL);
	const struct psd_outcome of_classes = simulated_in_detail(&made, PSD_DETAIL_CLASSES, NULL, NULL);

	check_outcomes(&of_hosts, &all, text);
	check_outcomes(&of_classes, &all, text);
	check_spans(&made, PSD_DETAIL_HOSTS, text);
	check_spans(&made, PSD_DETAIL_CLASSES, text);
	psd_case_release(&made);
	loaded_close(&loaded);
	return of_classes;
}

static void check_seed(unsigned seed)
{
	char text[2048];

	write_scenario(text, sizeof(text), seed);
	(void)check_text(text);
}

/* Hosts are alike where each sends to all others on a link that it has to itself. Parts of a tensor differ by an
 * element from host to host, and hosts that own none of it send more. */
Test(classes, exchanges_of_all_hosts_with_and_without_classes)
{
	static const char *const systems[] = {
		"ps",
		"ps, schedule: sequential",
		"ps, barrier: layer, priority: forward",
		"ps, staleness: 1",
		"ps, local_sgd: {steps: 3}",
		"ps, pair: 1KiB, slice: 100KiB",
		"sfb",
		"hybrid",
	};
	static const char *const nodes[] = {"18", "40", "67"};

	for (size_t s = 0; s < sizeof(systems) / sizeof(systems[0]); s++) {
		char text[2048];

		snprintf(text, sizeof(text),
			 "title: t\nmodel: {graph: scenarios/models/%s.yaml, batch_per_worker: 4}\n"
			 "compute: {device: p100}\ncluster: {stack: none, nodes: %s, "
			 "network: {bandwidth: 1Gbps, latency: 20us}, host: {copy: 10GBps, reduce: 8GBps}}\n"
			 "systems: [{name: s, sync: %s}]\niterations: %zu\n",
			 s % 2 ? "cifar10-quick" : "small-layers", nodes[s % 3], systems[s], 1 + 4 * (s % 3));
		const struct psd_outcome outcome = check_text(text);

		cr_expect_lt(outcome.n_simulated_nodes, outcome.n_nodes, "%s", text);
	}
}

#define RACKS_OF(nodes, ratio)                                                                                         \
	"network: {bandwidth: 1Gbps, latency: 20us, topology: racks, nodes_per_rack: " nodes                           \
	", oversubscription: " ratio "}"

struct exchange {
	const char *system, *cluster, *slow;
};

/* Parts of tensors are equal, or differ by an element. Slow nodes are first, in the middle and last; two are equally
 * slow. The last one's link out is full, but not its rack's link up. */
static const struct exchange exchanges[] = {
	{"ps", "nodes: 12, workers_per_node: 3, " RACKS_OF("4", "4"), "node: 5, compute: 0.5"},
	{"ps", "nodes: 6, workers_per_node: 6, " RACKS_OF("2", "4"), "node: 0, compute: 0.3, link: 0.5"},
	{"hybrid", "nodes: 6, workers_per_node: 4, " RACKS_OF("2", "4"), "node: 5, compute: 0.5"},
	{"hybrid, barrier: layer, priority: forward", "nodes: 8, workers_per_node: 5, " RACKS_OF("4", "2"),
	 "node: 3, link: 0.5"},
	{"hybrid", "nodes: 12, workers_per_node: 2, " RACKS_OF("6", "16"),
	 "node: 1, compute: 0.5}, {node: 7, compute: 0.5"},
	{"sfb", "nodes: 12, workers_per_node: 2, " RACKS_OF("4", "4"), "node: 2, compute: 0.5"},
	{"sfb", "nodes: 7, workers_per_node: 4, " RACKS_OF("3", "3"), "node: 6, compute: 0.5, from: 2ms, until: 30ms"},
	{"two-level-ps", "nodes: 12, workers_per_node: 3, " RACKS_OF("4", "4"), "node: 5, compute: 0.5"},
	{"ps, servers: 4", "nodes: 8, workers_per_node: 2, " RACKS_OF("4", "4"), "node: 5, compute: 0.5"},
	{"ps, staleness: 1", "nodes: 9, workers_per_node: 3, " RACKS_OF("3", "4"), "node: 4, link: 0.25"},
	{"ps, local_sgd: {steps: 3}", "nodes: 6, workers_per_node: 3, " RACKS_OF("2", "4"), "node: 4, compute: 0.5"},
	{"ps, pair: 1KiB, slice: 100KiB", "nodes: 8, workers_per_node: 2, " RACKS_OF("4", "4"),
	 "node: 1, compute: 0.5"},
	{"ps, schedule: sequential", "nodes: 12, workers_per_node: 2, network: {bandwidth: 1Gbps, latency: 20us}",
	 "node: 11, compute: 0.5"},
	{"hybrid", "nodes: 9, workers_per_node: 4, network: {bandwidth: 1Gbps, latency: 0s}", "node: 4, link: 0.5"},
	{"ps", "nodes: 12, " RACKS_OF("4", "4"), "node: 9, compute: 0.5"},
	{"two-level-ps", "nodes: 10, workers_per_node: 4, " RACKS_OF("4", "2"), "node: 9, compute: 0.5"},
	{"two-level-sfb", "nodes: 12, workers_per_node: 3, " RACKS_OF("4", "4"), "node: 5, compute: 0.5"},
};

Test(classes, exchanges_of_several_workers_a_node_with_and_without_classes)
{
	for (size_t e = 0; e < sizeof(exchanges) / sizeof(exchanges[0]); e++) {
		char text[2048];

		snprintf(text, sizeof(text),
			 "title: t\nmodel: {graph: scenarios/models/%s.yaml, batch_per_worker: 4}\n"
			 "compute: {device: p100}\ncluster: {stack: none, %s, slow: [{%s}], "
			 "local: {bandwidth: 100Gbps, latency: 3us}, host: {copy: 10GBps, reduce: 8GBps}}\n"
			 "systems: [{name: s, sync: %s}]\niterations: %zu\nfidelity: %s\nmost_events: 1000000000\n",
			 e % 2 ? "cifar10-quick" : "small-layers", exchanges[e].cluster, exchanges[e].slow,
			 exchanges[e].system, 1 + e % 2, e % 4 && e != 14 ? "flow" : "message");
		const struct psd_outcome outcome = check_text(text);

		cr_expect_lt(outcome.n_simulated_nodes, outcome.n_nodes, "%s", text);
	}
}

Test(classes, a_sample_of_simulations_with_and_without_classes)
{
	for (unsigned seed = FIRST_SAMPLE; seed < END_SAMPLE; seed++)
		check_seed(seed);
}

Test(classes, many_simulations_with_and_without_classes)
{
	if (!getenv("PSD_FULL_TESTS"))
		cr_skip_test("a minute, many with sanitisers: PSD_FULL_TESTS=1 runs it");
	for (unsigned seed = 0; seed < N_ALL; seed++)
		if (seed < FIRST_SAMPLE || seed >= END_SAMPLE)
			check_seed(seed);
}

/* ---- cost ---- */

/* A large simulation, with limits of its events and of the memory that it asks for. Both are equal on all machines. */
struct large {
	const char *cluster, *system, *fidelity;
	uint64_t most_events;
	size_t most_kib;
};

#define STAR  "network: {bandwidth: 25Gbps, latency: 10us}"
#define RACKS "network: {bandwidth: 25Gbps, latency: 10us, topology: racks, nodes_per_rack: 32, oversubscription: 4}"

static const struct large larges[] = {
	{"nodes: 4096, " STAR, "ring", "flow", 10000, 1200},
	{"nodes: 65536, " STAR, "ring", "flow", 10000, 8000},
	{"nodes: 65536, workers_per_node: 16, " STAR, "ring, fuse: 25MiB", "flow", 5000, 110000},
	{"nodes: 8192, " STAR, "hybrid", "flow", 400000, 23000},
	{"nodes: 8192, workers_per_node: 8, slow: [{node: 77, compute: 0.5}], " RACKS, "two-level", "flow", 40000,
	 14000},
	{"nodes: 256, workers_per_node: 8, slow: [{node: 7, compute: 0.5}], " RACKS, "hybrid", "flow", 460000, 2700},
	{"nodes: 1024, " STAR, "ring", "message", 10000, 400},
	{"nodes: 4096, " STAR, "ring", "message", 10000, 400},
	{"nodes: 1024, " STAR, "halving-doubling", "message", 10000, 400},
	{"nodes: 1024, " STAR, "double-tree", "message", 10000, 400},
	{"nodes: 1024, " STAR, "torus", "message", 10000, 400},
};

/* All memory comes from one heap that never shrinks. Sanitisers count nothing. */
static size_t heap_bytes(void)
{
	return mallinfo2().arena;
}

static void check_large(const struct large *large)
{
	struct loaded loaded;
	struct psd_case made;
	struct {
		struct psd_outcome outcome;
		size_t bytes;
	} *shared = shared_memory(sizeof(*shared));
	int wait_status = 0;

	loaded_print(&loaded,
		     "title: t\nmodel: {graph: scenarios/models/resnet50.yaml, batch_per_worker: 32}\n"
		     "compute: {device: v100}\ncluster: {stack: none, %s}\nsystems: [{name: s, sync: %s}]\n"
		     "fidelity: %s\niterations: 1000\nmost_events: 100000000\n",
		     large->cluster, large->system, large->fidelity);
	loaded_case(&made, &loaded, 0, 0);
	fflush(NULL);
	const pid_t child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		struct psd_error err;

		mallopt(M_MMAP_MAX, 0);
		mallopt(M_TRIM_THRESHOLD, INT_MAX);
		const size_t before_bytes = heap_bytes();
		const enum psd_status status =
			psd_simulate(&made, PSD_DETAIL_CLASSES, NULL, NULL, &shared->outcome, &err);

		shared->bytes = heap_bytes() - before_bytes;
		_exit(status);
	}
	cr_assert_eq(waitpid(child, &wait_status, 0), child);
	cr_expect_eq(wait_status, 0, "%s, %s: status %d", large->cluster, large->system, wait_status);
	cr_expect_leq(shared->outcome.n_events, large->most_events, "%s, %s: %lu events", large->cluster, large->system,
		      shared->outcome.n_events);
	cr_expect_leq(shared->bytes >> 10, large->most_kib, "%s, %s: %zu KiB", large->cluster, large->system,
		      shared->bytes >> 10);
	cr_expect_gt(shared->outcome.n_skipped_iterations, 900);
	munmap(shared, sizeof(*shared));
	psd_case_release(&made);
	loaded_close(&loaded);
}

Test(classes, large_clusters_take_few_events_and_little_memory)
{
	for (size_t i = 0; i < sizeof(larges) / sizeof(larges[0]); i++)
		check_large(&larges[i]);
}
