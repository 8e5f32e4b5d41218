/* Several workers a node, for real: every method trains as with one worker a node, what nodes send each other is what
 * the formulas and psd-sim say, and inside a node no tensor goes over a link. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/real/folder_run.h"
#include "tests/real/training.h"

enum { WORKERS = 4, A_NODE = 2, PARAMETERS = 145578 /* CIFAR-10 quick */ };

/* Share of a tensor's norm: sums have another order. */
#define SAME_TOLERANCE_RATIO 1e-5

#define JOB                                                                                                            \
	"iterations: 6, optimiser: {momentum: 0.9, weight_decay: 0.004}, learning_rate: {policy: fixed, base: 0.001}"

static struct training *make(const char *system, unsigned workers_per_node)
{
	return training_make("cifar10-quick.yaml", system, WORKERS, workers_per_node, 8, 3, JOB);
}

static struct training *train(const char *system, unsigned workers_per_node)
{
	return training_finish(make(system, workers_per_node), system);
}

/* ---- the same training ---- */

static void check_close(const struct training *left, const struct training *right, const char *system)
{
	const struct psd_graph *graph = &left->loaded.costed.graph;
	const float *a = training_parameters(left, 0), *b = training_parameters(right, 0);

	for (unsigned t = 0; t < graph->n_tensors; t++) {
		const uint64_t elements = graph->tensors[t].elements;
		const double apart = training_values_distance(a, b, elements);
		const double norm = training_values_distance(b, NULL, elements);

		cr_expect_leq(apart, SAME_TOLERANCE_RATIO * norm, "%s: %s differs by %g", system,
			      graph->tensors[t].name, apart / norm);
		a += elements, b += elements;
	}
}

/* has_order: each sum is taken in the same order however workers lie. */
static void check_same(const char *system, bool has_order)
{
	struct training *apart = train(system, 1), *together = train(system, A_NODE);

	for (unsigned w = 1; w < WORKERS; w++)
		cr_expect(training_is_same(together, w, together, 0), "%s: worker %u differs from worker 0", system, w);
	if (has_order)
		cr_expect(training_is_same(together, 0, apart, 0), "%s differs from one worker a node", system);
	check_close(together, apart, system);
	training_free(apart);
	training_free(together);
}

/* Servers and owners of factors add in order of rank; a ring and what is chosen of one go around all ranks. */
Test(run_nodes, methods_train_as_with_one_worker_a_node)
{
	check_same("schedule: wait-free, sync: ps", true);
	check_same("schedule: sequential, sync: ps", true);
	check_same("schedule: wait-free, sync: ps, servers: 1", true);
	check_same("schedule: wait-free, sync: sfb", true);
	check_same("schedule: wait-free, sync: adam", true);
	check_same("schedule: wait-free, sync: hybrid", true);
	check_same("schedule: wait-free, sync: two-level-ps", false);
	check_same("schedule: sequential, sync: two-level-ps", false);
	check_same("schedule: wait-free, sync: two-level-ps, pair: 512B, slice: 8KiB, barrier: layer", false);
	check_same("schedule: wait-free, sync: two-level-ps, servers: 2", false);
	check_same("schedule: wait-free, sync: ring", true);
	check_same("schedule: wait-free, sync: ring, fuse: 1MiB, sparse: {sparsity: 0.85, chunk: 1000}", true);
}

Test(run_nodes, all_reduces_train_as_with_one_worker_a_node)
{
	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++) {
		char system[64];

		snprintf(system, sizeof(system), "schedule: wait-free, sync: %s", psd_all_reduces[p]->name);
		check_same(system, false);
	}
}

/* ---- bytes ---- */

static void check_sent(const char *system, uint64_t sent_bytes)
{
	struct training *training = train(system, A_NODE);

	cr_expect_eq(training->result.sent_bytes_per_node, sent_bytes, "%s: %" PRIu64 ", must be %" PRIu64, system,
		     training->result.sent_bytes_per_node, sent_bytes);
	training_free(training);
}

/* A leader pushes the other node's half, and as a server sends its own there: parts of ten tensors may be an element
 * more. Every worker for itself would push twice as much, and be sent as much. */
static void expect_halves_sent(void)
{
	const uint64_t all_bytes = sizeof(float) * (uint64_t)PARAMETERS;
	struct training *leaders = train("sync: two-level-ps", A_NODE), *workers = train("sync: ps", A_NODE);

	cr_expect_geq(leaders->result.sent_bytes_per_node, all_bytes);
	cr_expect_leq(leaders->result.sent_bytes_per_node, all_bytes + 10 * sizeof(float));
	cr_expect_geq(workers->result.sent_bytes_per_node, 2 * all_bytes);
	training_free(leaders);
	training_free(workers);
}

/* Two-level: a ring of the two leaders, 2 (2 - 1) / 2 of all there is. A ring of the four crosses each link in each of
 * its 2 (4 - 1) steps, with a quarter of each of ten tensors, which may be an element more. */
Test(run_nodes, two_levels_send_what_the_formula_says)
{
	const uint64_t all_bytes = sizeof(float) * (uint64_t)PARAMETERS;
	struct training *ring = train("sync: ring", A_NODE);

	check_sent("sync: two-level", all_bytes);
	check_sent("sync: two-level, fuse: 1MiB", all_bytes);
	check_sent("sync: two-level-ps, servers: 1", all_bytes * 2); /* to both nodes: the server is the busiest */
	expect_halves_sent();
	cr_expect_geq(ring->result.sent_bytes_per_node, 3 * all_bytes / 2);
	cr_expect_leq(ring->result.sent_bytes_per_node, 3 * all_bytes / 2 + 10 * 6 * sizeof(float));
	training_free(ring);
}

static const char *const scenario =
	"title: t\nmodel: {graph: %s/scenarios/models/cifar10-quick.yaml, batch_per_worker: 4}\ncompute: {device: "
	"cpu}\n"
	"cluster: {nodes: 2, workers_per_node: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
	"systems:\n%strain: {iterations: 3, learning_rate: {policy: fixed, base: 0.001}}\n";

/* All but sparse ones, whose chunks a prediction does not know. */
Test(run_nodes, a_prediction_counts_the_same_bytes)
{
	static const char *const syncs[] = {"ps",   "ps, servers: 2", "two-level-ps", "two-level-ps, servers: 1", "sfb",
					    "adam", "hybrid",	      "ring",	      "ring, wire: bf16"};
	char systems[2048] = "", text[4096], *here = realpath(".", NULL);
	unsigned n_systems = 0;

	for (unsigned s = 0; s < sizeof(syncs) / sizeof(syncs[0]); s++, n_systems++)
		snprintf(systems + strlen(systems), sizeof(systems) - strlen(systems), "  - {name: s%u, sync: %s}\n",
			 n_systems, syncs[s]);
	for (unsigned p = 1; p < PSD_N_ALL_REDUCES; p++, n_systems++)
		snprintf(systems + strlen(systems), sizeof(systems) - strlen(systems), "  - {name: s%u, sync: %s}\n",
			 n_systems, psd_all_reduces[p]->name);
	snprintf(text, sizeof(text), scenario, here, systems);
	folder_run_sends_as_predicted(text, n_systems, 5);
	free(here);
}

/* ---- inside a node ---- */

static uint64_t *loopback_bytes; /* one for each node, in memory that the processes share */

/* Bytes on the node's loopback so far, TCP's headers included. */
static void note_loopback(void *context, unsigned self, const struct psd_memory *memory)
{
	FILE *devices = fopen("/proc/self/net/dev", "r");
	char line[512];

	(void)context, (void)memory;
	while (devices && fgets(line, sizeof(line), devices))
		if (strstr(line, " lo:"))
			(void)sscanf(strchr(line, ':') + 1, "%" SCNu64, &loopback_bytes[self / A_NODE]);
	if (devices)
		fclose(devices);
}

static void check_inside(const char *system)
{
	const uint64_t all_bytes = sizeof(float) * (uint64_t)PARAMETERS;
	struct training *training = make(system, A_NODE);

	training->options.cluster_kind = PSD_CLUSTER_EMULATED;
	training->options.worker.finished = note_loopback;
	memset(loopback_bytes, 0, 2 * sizeof(*loopback_bytes));
	training_finish(training, system);
	for (unsigned node = 0; node < WORKERS / A_NODE; node++) {
		cr_expect_gt(loopback_bytes[node], 0); /* they greet there */
		cr_expect_lt(loopback_bytes[node], all_bytes / 2, "%s: node %u: %" PRIu64, system, node,
			     loopback_bytes[node]);
	}
	training_free(training);
}

/* Bytes of six iterations, each of which would bring half of all parameters or more. */
Test(run_nodes, no_tensor_goes_over_a_link_inside_a_node)
{
	struct training *training = make("sync: ring", A_NODE);
	struct psd_error err;

	if (psd_launch_try_emulation(&training->made, NULL, &err))
		cr_skip_test("%s", err.text);
	training_free(training);
	loopback_bytes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq((void *)loopback_bytes, MAP_FAILED);
	check_inside("sync: two-level");
	check_inside("sync: ps");
	check_inside("sync: sfb");
}
