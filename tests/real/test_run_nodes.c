/* Several workers a node, for real: every method trains as with one worker a node, nodes send each other the bytes that
 * the formulas and psd-sim say, and inside a node no tensor goes over a link. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/real/folder_run.h"
#include "tests/real/matrix_keys.h"

enum { WORKERS = 4, A_NODE = 2, PARAMETERS = 145578 /* parameters of CIFAR-10 quick */ };

static const struct matrix_subject nodes = {
	.graph = "cifar10-quick.yaml",
	.batch = 8,
	.seed = 3,
	.iterations = 6,
	.learn = ", optimiser: {momentum: 0.9, weight_decay: 0.004}, learning_rate: {policy: fixed, base: 0.001}",
};

/* ---- the same training ---- */

static const struct matrix_layout one_a_node = {"", WORKERS, 1};

#define ROW_NODES(name, claim, ...)                                                                                    \
	MATRIX_ROW(run_nodes, name, claim, .subject = &nodes, MATRIX_ON({"", WORKERS, A_NODE}),                        \
		   .other.layout = &one_a_node, .keys = {__VA_ARGS__}, .is_by_tensor = true, .norm_ratio = 1e-5)
/* Servers and owners of factors add in order of rank; a ring and a sparse one go around all ranks. */
ROW_NODES(servers_train_as_with_one_worker_a_node, matrix_has_same_bits, "sync: ps", "schedule: sequential, sync: ps",
	  "sync: ps, servers: 1")
ROW_NODES(factors_train_as_with_one_worker_a_node, matrix_has_same_bits, "sync: sfb", "sync: adam", "sync: hybrid")
ROW_NODES(rings_train_as_with_one_worker_a_node, matrix_has_same_bits, "sync: ring",
	  "sync: ring, fuse: 1MiB, sparse: {sparsity: 0.85, chunk: 1000}")
/* Sums have another order. */
ROW_NODES(leaders_train_as_with_one_worker_a_node, matrix_is_near, "sync: two-level-ps",
	  "schedule: sequential, sync: two-level-ps", "sync: two-level-ps, pair: 512B, slice: 8KiB, barrier: layer",
	  "sync: two-level-ps, servers: 2")
#define NAME(identifier, name) "sync: " name,
ROW_NODES(all_reduces_train_as_with_one_worker_a_node, matrix_is_near, PSD_ALL_REDUCES(NAME))

/* The factors of a node's workers travel together, also from a node that is not full; sums have the same order. */
#define ROW_JOINED(name, ...)                                                                                          \
	MATRIX_ROW(run_nodes, name, matrix_has_same_bits, .subject = &matrix_maskless_shared, MATRIX_ON(__VA_ARGS__),  \
		   .keys = {"sync: two-level-sfb"}, .other.keys = "sync: sfb", .learns = {FALLING(SGD, 0.02)})
ROW_JOINED(joined_factors_have_the_bits_of_a_broadcast, {"", 4, 2}, {"barrier: layer, ", 6, 4}, {"", 8, 3}, {"", 4, 4},
	   {"schedule: sequential, ", 4, 2}, {"wire: bf16, servers: 1, ", 6, 2}, {"accumulate: 2, ", 2, 1})
MATRIX_ROW(run_nodes, joined_factors_resume, matrix_resumes, MATRIX_ON({"sync: two-level-sfb", 4, 2}),
	   .learns = {GOING_ON_SGD})

/* ---- bytes ---- */

/* Two-level: a ring of the two leaders, 2 (2 - 1) / 2 of all there is. A ring of the four crosses each link in each of
 * its 2 (4 - 1) steps, with a quarter of each of ten tensors, which may be an element more. A leader pushes the other
 * node's half, and as a server sends its own there: parts of ten tensors may be an element more. A server on its own
 * sends to both nodes: it is the busiest. */
enum { ALL_BYTES = sizeof(float) * PARAMETERS };
#define ROW_BYTES(name, system, most_bytes, n_fewer)                                                                   \
	MATRIX_ROW(run_nodes, name, matrix_sends, .subject = &nodes, MATRIX_ON({system, WORKERS, A_NODE}),             \
		   .bytes = (most_bytes), .fewer_bytes = (n_fewer))
ROW_BYTES(two_levels_send_the_bytes_of_the_formula, "sync: two-level", ALL_BYTES, 0)
ROW_BYTES(gathered_two_levels_send_the_bytes_of_the_formula, "sync: two-level, fuse: 1MiB", ALL_BYTES, 0)
ROW_BYTES(a_server_sends_the_bytes_of_the_formula, "sync: two-level-ps, servers: 1", 2 * ALL_BYTES, 0)
ROW_BYTES(leaders_send_the_bytes_of_the_formula, "sync: two-level-ps", ALL_BYTES + 10 * sizeof(float),
	  10 * sizeof(float))
ROW_BYTES(a_ring_sends_the_bytes_of_the_formula, "sync: ring", 3 * ALL_BYTES / 2 + 10 * 6 * sizeof(float),
	  10 * 6 * sizeof(float))

/* 8 samples of 128 + 24 and of 24 + 10 values of each of two workers. conv, 224, goes by a parameter server, from and
 * to each of them. */
MATRIX_ROW(run_nodes, joined_factors_take_the_bytes_of_the_formula, matrix_sends, .subject = &matrix_maskless,
	   MATRIX_ON({"sync: two-level-sfb", WORKERS, A_NODE}), .learns = {FIXED(SGD, 0.05)},
	   .bytes = 4 * (2 * 8 * (128 + 24 + 24 + 10) + 4 * 112), .fewer_bytes = 1)

/* Every worker for itself pushes twice as many as a leader, and is sent as many. */
Test(run_nodes, workers_without_leaders_send_twice_the_bytes)
{
	struct training *workers = matrix_train(&nodes, &(struct matrix_layout){"sync: ps", WORKERS, A_NODE}, 0, "");

	cr_expect_geq(workers->result.sent_bytes_per_node, 2 * ALL_BYTES);
	training_free(workers);
}

static const char *const scenario =
	"title: t\nmodel: {graph: %s/scenarios/models/cifar10-quick.yaml, batch_per_worker: 4}\ncompute: {device: "
	"cpu}\n"
	"cluster: {stack: none, nodes: 2, workers_per_node: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
	"systems:\n%strain: {iterations: 3, learning_rate: {policy: fixed, base: 0.001}}\n";

/* All but sparse ones, whose chunks a prediction does not know. */
Test(run_nodes, a_prediction_counts_the_same_bytes)
{
	static const char *const syncs[] = {"ps",   "ps, servers: 2",  "two-level-ps", "two-level-ps, servers: 1",
					    "sfb",  "two-level-sfb",   "adam",	       "hybrid",
					    "ring", "ring, wire: bf16"};
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

static uint64_t *loopback_bytes; /* bytes over each node's loopback, in memory that the processes share */

/* Bytes over the node's loopback so far, TCP's own and all. */
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
	const struct matrix_layout of = {system, WORKERS, A_NODE};
	struct training *training = matrix_make(&nodes, &of, 0, "");

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

/* Six iterations, each of which would bring half of all parameters or more. */
Test(run_nodes, no_tensor_goes_over_a_link_inside_a_node)
{
	struct training *training = matrix_make(&nodes, &(struct matrix_layout){"sync: ring", WORKERS, A_NODE}, 0, "");
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
