/* Rules that every executor must follow. The estimate and the simulation execute the same programs on a star, where the
 * estimate's closed forms hold; the simulation is then compared with formulas of its own, and disturbed. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "tests/simulate_helper.h"
#include "tests/test_with.h"

#define AGREEMENT_RATIO	  0.02
#define SHARED_RATIO	  0.05 /* hosts of one kind that share cores do not all end together */
#define FEW_BLOCKS_RATIO  0.1  /* shards have a block or none */
#define RING_RATIO	  0.001
#define RECEIVER_RATIO	  0.01
#define CLOSED_FORM_RATIO 1e-6 /* the network ends what is within 1 ns of now */
#define ROUNDING_RATIO	  1e-9

enum { TEXT_MAX = 4096 };

#define VGG19                                                                                                          \
	"model: {graph: scenarios/models/vgg19.yaml, batch_per_worker: 32}\n"                                          \
	"compute: {device: titan-x, samples_per_sec: 35}\n"
#define CIFAR10_QUICK                                                                                                  \
	"model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 100}\n"                                 \
	"compute: {device: k20}\n"
#define RESNET50                                                                                                       \
	"model: {graph: scenarios/models/resnet50.yaml, batch_per_worker: 32}\n"                                       \
	"compute: {device: p100}\n"
#define ONE_LAYER                                                                                                      \
	"model: {graph: tests/data/one_layer.yaml, batch_per_worker: 64}\n"                                            \
	"compute: {device: v100}\n"
#define ONE_LAYER_64MIB                                                                                                \
	"model: {graph: tests/data/one_layer_64mib.yaml, batch_per_worker: 1}\n"                                       \
	"compute: {device: v100}\n"
#define ONE_LAYER_100MIB                                                                                               \
	"model: {graph: tests/data/one_large_layer.yaml, batch_per_worker: 1}\n"                                       \
	"compute: {device: v100}\n"

#define NETWORK "network: {bandwidth: 10Gbps, latency: 50us}"
#define HOST	"host: {copy: 6GBps, reduce: 8GBps, iteration: 3ms}"

#define UPDATING_HOST "host: {copy: 6GBps, reduce: 8GBps, update: 20GBps, tensor: 30us, iteration: 3ms}"
/* Workers with a node each, or by fours. */
#define STAR	      "cluster: {stack: none, " NETWORK ", " HOST "}\n"
#define FOURS	      "cluster: {stack: none, workers_per_node: 4, local: {bandwidth: 80Gbps}, " NETWORK ", " HOST "}\n"
#define UPDATING_STAR "cluster: {stack: none, " NETWORK ", " UPDATING_HOST "}\n"
#define UPDATING_FOURS                                                                                                 \
	"cluster: {stack: none, workers_per_node: 4, local: {bandwidth: 80Gbps}, " NETWORK ", " UPDATING_HOST "}\n"

#define EVERY_METHOD                                                                                                   \
	"systems:\n"                                                                                                   \
	"  - {name: ps, sync: ps}\n"                                                                                   \
	"  - {name: ps sequential, sync: ps, schedule: sequential}\n"                                                  \
	"  - {name: two-level ps, sync: two-level-ps}\n"                                                               \
	"  - {name: two-level ps sequential, sync: two-level-ps, schedule: sequential}\n"                              \
	"  - {name: sfb, sync: sfb}\n"                                                                                 \
	"  - {name: sfb sequential, sync: sfb, schedule: sequential}\n"                                                \
	"  - {name: two-level sfb, sync: two-level-sfb}\n"                                                             \
	"  - {name: two-level sfb sequential, sync: two-level-sfb, schedule: sequential}\n"                            \
	"  - {name: adam, sync: adam}\n"                                                                               \
	"  - {name: adam sequential, sync: adam, schedule: sequential}\n"                                              \
	"  - {name: hybrid, sync: hybrid}\n"                                                                           \
	"  - {name: hybrid sequential, sync: hybrid, schedule: sequential}\n"                                          \
	"  - {name: sacp, sync: sacp}\n"                                                                               \
	"  - {name: sacp sequential, sync: sacp, schedule: sequential}\n"                                              \
	"  - {name: ring, sync: ring}\n"                                                                               \
	"  - {name: ring sequential, sync: ring, schedule: sequential}\n"
#define SHARDED                                                                                                        \
	"  - {name: zero-1, sync: zero-1}\n"                                                                           \
	"  - {name: zero-2, sync: zero-2, fuse: 1MB}\n"                                                                \
	"  - {name: zero-3, sync: zero-3, fuse: 1MB}\n"                                                                \
	"  - {name: zero-3 by twos, sync: zero-3, fuse: 1MB, accumulate: 2}\n"

static void expect_near(const struct psd_case *made, const char *what, double actual, double expected, double ratio)
{
	cr_expect(fabs(actual - expected) <= ratio * expected,
		  "%s of %s with %u workers is %.9g, expected %.9g (%+.3f %%)", what, made->system->name,
		  made->plan.layout.workers, actual, expected, 100.0 * (actual / expected - 1.0));
}

/* The parts of an iteration are all of it, and each at least nothing. */
static void expect_whole(const struct psd_case *made, const char *what, const struct psd_outcome *outcome)
{
	const struct psd_parts *parts = &outcome->parts;

	expect_near(made, what,
		    parts->compute_sec + parts->other_work_sec + parts->exposed_comm_sec + parts->other_waiting_sec,
		    outcome->iteration_sec, ROUNDING_RATIO);
	cr_expect(parts->compute_sec > 0 && parts->other_work_sec >= 0 && parts->exposed_comm_sec >= 0 &&
			  parts->other_waiting_sec >= 0,
		  "%s of %s with %u workers: %g, %g, %g and %g s", what, made->system->name, made->plan.layout.workers,
		  parts->compute_sec, parts->other_work_sec, parts->exposed_comm_sec, parts->other_waiting_sec);
}

/* Compares the bytes of the nodes that send and receive most. */
static void expect_bytes(const struct psd_case *made, const struct psd_outcome *estimate,
			 const struct psd_outcome *simulation)
{
	cr_expect_eq(estimate->sent_bytes_per_node, simulation->sent_bytes_per_node,
		     "%s with %u workers: %llu bytes sent, simulated %llu", made->system->name,
		     made->plan.layout.workers, (unsigned long long)estimate->sent_bytes_per_node,
		     (unsigned long long)simulation->sent_bytes_per_node);
	cr_expect_eq(estimate->received_bytes_per_node, simulation->received_bytes_per_node,
		     "%s with %u workers: %llu bytes received, simulated %llu", made->system->name,
		     made->plan.layout.workers, (unsigned long long)estimate->received_bytes_per_node,
		     (unsigned long long)simulation->received_bytes_per_node);
}

/* Every system of the scenario at every point of its sweep. */
static void expect_agreement_within(const char *text, double ratio)
{
	struct loaded loaded;

	loaded_open(&loaded, text);
	for (unsigned s = 0; s < loaded.scenario.n_systems; s++) {
		for (unsigned p = 0; p < psd_scenario_points(&loaded.scenario); p++) {
			struct psd_case made;

			loaded_case(&made, &loaded, s, p);
			const struct psd_outcome estimate = estimated(&made);
			const struct psd_outcome simulation = simulated(&made);
			expect_near(&made, "estimated iteration_sec", estimate.iteration_sec, simulation.iteration_sec,
				    ratio);
			cr_expect_eq(estimate.n_iterations, simulation.n_iterations);
			expect_bytes(&made, &estimate, &simulation);
			expect_whole(&made, "estimated parts", &estimate);
			expect_whole(&made, "simulated parts", &simulation);
			cr_expect_gt(estimate.iteration_sec, loaded.costed.costs.compute_sec * (1.0 - ROUNDING_RATIO));
			psd_case_release(&made);
		}
	}
	loaded_close(&loaded);
}

static void expect_agreement(const char *text)
{
	expect_agreement_within(text, AGREEMENT_RATIO);
}

/* ---- estimate and simulation ---- */

TEST_ROW(contract, vgg19_agrees_for_every_method_and_schedule,
	 expect_agreement(VGG19 STAR EVERY_METHOD SHARDED "sweep: {nodes: [1, 2, 3, 8, 16, 17, 32]}\n"))
TEST_ROW(contract, vgg19_agrees_on_other_numbers_of_nodes,
	 expect_agreement(VGG19 STAR EVERY_METHOD SHARDED "sweep: {nodes: [4, 18, 64]}\n"))
#define MIXED_NODES                                                                                                    \
	"cluster: {stack: none, groups: [{nodes: 3}, {nodes: 5, speed: 50%, network: {bandwidth: 4Gbps}}, {nodes: 2, " \
	"samples_per_sec: 20}], " NETWORK ", " HOST "}\n"
#define MIXED_SYSTEMS                                                                                                  \
	"systems:\n  - {name: ps, sync: ps, split: speed}\n"                                                           \
	"  - {name: ps sequential, sync: ps, schedule: sequential}\n"                                                  \
	"  - {name: ps 2, sync: ps, servers: 2, split: speed}\n  - {name: ring, sync: ring, split: speed}\n"           \
	"  - {name: zero-2, sync: zero-2, split: speed}\n"
TEST_ROW(contract, nodes_of_different_kinds_agree, expect_agreement(VGG19 MIXED_NODES MIXED_SYSTEMS))
TEST_ROW(contract, nodes_of_different_kinds_agree_message_by_message,
	 expect_agreement(VGG19 MIXED_NODES MIXED_SYSTEMS "fidelity: message\n"))
/* Kinds with other numbers of workers and other latencies. Methods with factors have equal batches. */
#define UNEQUAL_NODES                                                                                                  \
	"cluster: {stack: none, groups: [{nodes: 3, workers_per_node: 2}, {nodes: 5, speed: 50%, network: {latency: "  \
	"2ms}}, {nodes: 2, workers_per_node: 4, network: {bandwidth: 4Gbps}}], local: {bandwidth: 80Gbps}, " NETWORK   \
	", " HOST "}\n"
#define BY_SPEED                                                                                                       \
	"systems:\n  - {name: ps, sync: ps, split: speed}\n  - {name: ps 2, sync: ps, servers: 2, split: speed}\n"     \
	"  - {name: two-level ps, sync: two-level-ps, split: speed}\n"                                                 \
	"  - {name: ring, sync: ring, split: speed}\n  - {name: two-level, sync: two-level, split: speed}\n"           \
	"  - {name: zero-2, sync: zero-2, fuse: 1MB, split: speed}\n"
TEST_ROW(contract, nodes_of_unequal_numbers_of_workers_agree, expect_agreement(VGG19 UNEQUAL_NODES BY_SPEED))
TEST_ROW(contract, nodes_of_unequal_numbers_of_workers_agree_message_by_message,
	 expect_agreement(VGG19 UNEQUAL_NODES BY_SPEED "fidelity: message\n"))
TEST_ROW(contract, every_method_agrees_where_the_first_nodes_have_one_worker,
	 expect_agreement(VGG19 "cluster: {stack: none, groups: [{nodes: 2}, {nodes: 3, workers_per_node: 4}], local: "
				"{bandwidth: 80Gbps}, " NETWORK ", " HOST "}\n" EVERY_METHOD SHARDED))
TEST_ROW(contract, every_method_agrees_on_nodes_of_unequal_numbers_of_workers,
	 expect_agreement(VGG19 UNEQUAL_NODES EVERY_METHOD SHARDED))
#define SHARDED_OVER_NODES                                                                                             \
	"systems:\n  - {name: zero-1, sync: zero-1, shard_over: node}\n"                                               \
	"  - {name: zero-2, sync: zero-2, shard_over: node, fuse: 1MB}\n"                                              \
	"  - {name: zero-3, sync: zero-3, shard_over: node, fuse: 1MB}\n"
TEST_ROW(contract, hybrid_sharding_agrees,
	 expect_agreement(VGG19 FOURS SHARDED_OVER_NODES "sweep: {nodes: [1, 2, 3, 4, 8, 16]}\n"))
/* Uplinks are four times as slow as the links of a rack's nodes together. */
TEST_ROW(contract, hybrid_sharding_agrees_on_racks,
	 expect_agreement(VGG19 "cluster: {stack: none, workers_per_node: 4, local: {bandwidth: 80Gbps}, network: "
				"{bandwidth: 10Gbps, latency: 50us, topology: racks, nodes_per_rack: 2, "
				"oversubscription: 4}, " HOST "}\n" SHARDED_OVER_NODES "sweep: {nodes: [2, 4, 8]}\n"))
TEST_ROW(contract, clipped_norms_of_parts_agree,
	 expect_agreement(VGG19 FOURS "systems:\n  - {name: zero-1, sync: zero-1, fuse: 1MB}\n"
				      "  - {name: zero-2, sync: zero-2, shard_over: node, fuse: 1MB}\n"
				      "  - {name: zero-3, sync: zero-3, shard_over: node, fuse: 1MB}\n"
				      "train: {iterations: 1, data: {kind: synthetic, training_samples: 64}, "
				      "optimiser: {kind: lars, clip: 1}, learning_rate: {policy: fixed, base: 1}}\n"
				      "sweep: {nodes: [1, 2, 3, 8]}\n"))
TEST_ROW(contract, vgg19_agrees_message_by_message,
	 expect_agreement(VGG19 STAR EVERY_METHOD SHARDED "sweep: {nodes: [2, 3, 8, 16]}\nfidelity: message\n"))

/* Where members send unequally, hosts of a class, which take equally long, do not send equally much. */
Test(contract, all_reduces_of_unequal_members_agree)
{
	static const char form[] = ONE_LAYER_100MIB "cluster: {stack: none, nodes: 1, workers_per_node: %u, " NETWORK
						    "}\nsweep: {nodes: [3, 4, 6]}\nsystems:\n"
						    "  - {name: double-tree, sync: double-tree}\n"
						    "  - {name: halving-doubling, sync: halving-doubling}\n"
						    "  - {name: recursive-doubling, sync: recursive-doubling}\n";
	char text[TEXT_MAX];

	for (unsigned workers_per_node = 1; workers_per_node <= 2; workers_per_node++) {
		snprintf(text, sizeof(text), form, workers_per_node);
		expect_agreement(text);
	}
}

Test(contract, small_tensors_agree)
{
	expect_agreement(CIFAR10_QUICK STAR EVERY_METHOD "sweep: {nodes: [2, 3, 8, 18, 64]}\n");
	expect_agreement(CIFAR10_QUICK STAR EVERY_METHOD "sweep: {nodes: [2, 16]}\nfidelity: message\n");
}

TEST_ROW(contract, many_tensors_agree,
	 expect_agreement(RESNET50 STAR "systems: [{name: ps, sync: ps}, {name: ring, sync: ring}, {name: ring by "
					"layer, sync: ring, unit: layer}]\n"
					"sweep: {nodes: [4, 32]}\n"))
TEST_ROW(contract, a_stack_that_costs_nothing_agrees,
	 expect_agreement(VGG19 "cluster: {stack: none, " NETWORK "}\n" EVERY_METHOD "sweep: {nodes: [1, 2, 8, 32]}\n"))
TEST_ROW(contract, a_slow_transport_with_incast_agrees,
	 expect_agreement(VGG19
			  "cluster:\n  stack: none\n  network: {bandwidth: 40Gbps, latency: 30us}\n"
			  "  host: {copy: 2.3GBps, reduce: 1.4GBps, transport: 14Gbps, incast: 10%}\n" EVERY_METHOD
			  "sweep: {nodes: [2, 8, 32]}\n"))

/* Every matrix has an owner of its own, so that all hosts differ. */
Test(contract, one_owner_on_each_host_agrees)
{
	expect_agreement(
		"model: {graph: tests/data/many_inner_products.yaml, batch_per_worker: 32}\n"
		"compute: {device: v100, samples_per_sec: 1000000}\ncluster: {stack: none, " NETWORK "}\n"
		"systems: [{name: adam, sync: adam}, {name: adam sequential, sync: adam, schedule: sequential}]\n"
		"sweep: {nodes: [2, 5, 20, 110]}\n");
}

/* A nanosecond is less than the clock can tell apart by then. */
TEST_ROW(contract, a_very_slow_network_agrees,
	 expect_agreement(VGG19 "cluster: {stack: none, network: {bandwidth: 100bps, latency: 50us}}\n"
				"systems: [{name: ps, sync: ps}, {name: sfb, sync: sfb}]\nsweep: {nodes: [3, 7]}\n"))

static void expect_refused(const char *system, const char *key)
{
	char text[TEXT_MAX], expected[TEXT_MAX];

	snprintf(text, sizeof(text),
		 VGG19 "cluster: {stack: none, nodes: 2, " NETWORK "}\nsystems: [{name: fine, %s}]\n", system);
	snprintf(expected, sizeof(expected),
		 "test.yaml:4:11: '%s' of system 'fine' cuts its tensors into more than 100000 parts, must be larger",
		 key);
	loaded_expect_refused(text, expected);
}

/* 575 MB in parts of 2 or 4 kB. */
Test(contract, too_many_parts_for_a_run_are_refused)
{
	expect_refused("sync: ps, pair: 1kB, slice: 1kB", "slice");
	expect_refused("sync: ring, pipeline: 4096B", "pipeline");
	expect_refused("sync: auto, fuse: auto, pipeline: 4096B", "pipeline");
}

Test(contract, size_classes_of_collectives_agree)
{
	static const char format[] = VGG19
		"cluster:\n  stack: none\n  " NETWORK "\n"
		"  host: {collective: [{up_to: 64KiB, call: 20us, step: 1us, slowdown: 4}, {call: 90us, step: 5us, "
		"slowdown: 1.5}]}\n"
		"systems: [{name: ring, sync: ring}, {name: ring sequential, sync: ring, schedule: sequential}]\n"
		"sweep: {nodes: [2, 8, 32]}\nfidelity: %s\n";
	char text[TEXT_MAX];

	snprintf(text, sizeof(text), format, "flow");
	expect_agreement(text);
	snprintf(text, sizeof(text), format, "message");
	expect_agreement(text);
}

#define SEPARATE_SERVERS                                                                                               \
	"systems:\n"                                                                                                   \
	"  - {name: ps 1, sync: ps, servers: 1}\n"                                                                     \
	"  - {name: ps 4, sync: ps, servers: 4}\n"                                                                     \
	"  - {name: ps 4 sequential, sync: ps, servers: 4, schedule: sequential}\n"                                    \
	"  - {name: two-level ps 3, sync: two-level-ps, servers: 3}\n"                                                 \
	"  - {name: adam 1, sync: adam, servers: 1}\n"                                                                 \
	"  - {name: adam 4, sync: adam, servers: 4}\n"                                                                 \
	"  - {name: hybrid 4, sync: hybrid, servers: 4}\n"                                                             \
	"  - {name: sacp 4, sync: sacp, servers: 4}\n"                                                                 \
	"  - {name: sacp 4 sequential, sync: sacp, servers: 4, schedule: sequential}\n"                                \
	"  - {name: sfb 4, sync: sfb, servers: 4}\n"

Test(contract, separate_servers_agree)
{
	expect_agreement(VGG19 STAR SEPARATE_SERVERS "sweep: {nodes: [1, 2, 3, 8, 32, 64]}\n");
	expect_agreement(VGG19 STAR SEPARATE_SERVERS "sweep: {nodes: [2, 8, 16]}\nfidelity: message\n");
}

#define EVERY_BARRIER_AND_PRIORITY                                                                                     \
	"systems:\n"                                                                                                   \
	"  - {name: ps forward, sync: ps, priority: forward}\n"                                                        \
	"  - {name: ps layer, sync: ps, barrier: layer}\n"                                                             \
	"  - {name: ps layer forward, sync: ps, barrier: layer, priority: forward}\n"                                  \
	"  - {name: ps layer forward sequential, sync: ps, barrier: layer, priority: forward, schedule: sequential}\n" \
	"  - {name: hybrid layer forward, sync: hybrid, barrier: layer, priority: forward}\n"                          \
	"  - {name: hybrid by seconds, sync: hybrid, rule: seconds, barrier: layer}\n"                                 \
	"  - {name: sfb layer, sync: sfb, barrier: layer}\n"                                                           \
	"  - {name: adam layer, sync: adam, barrier: layer}\n"                                                         \
	"  - {name: ring layer, sync: ring, barrier: layer}\n"                                                         \
	"  - {name: ring layer forward, sync: ring, barrier: layer, priority: forward}\n"                              \
	"  - {name: ps in tensors, sync: ps, unit: tensor, slice: 4MB}\n"

Test(contract, barriers_and_priorities_agree)
{
	expect_agreement(VGG19 STAR EVERY_BARRIER_AND_PRIORITY "sweep: {nodes: [1, 2, 8, 18, 32]}\n");
	expect_agreement(VGG19 STAR EVERY_BARRIER_AND_PRIORITY "sweep: {nodes: [2, 8]}\nfidelity: message\n");
}

TEST_ROW(contract, separate_servers_of_four_workers_on_a_node_agree,
	 expect_agreement(VGG19 FOURS SEPARATE_SERVERS "sweep: {nodes: [1, 2, 5]}\n"))

Test(contract, four_workers_on_a_node_agree)
{
	expect_agreement(VGG19 FOURS EVERY_METHOD "sweep: {nodes: [1, 2, 4, 8]}\n");
	expect_agreement(VGG19 "cluster: {stack: none, workers_per_node: 4, " NETWORK ", " HOST "}\n" EVERY_METHOD
			       "sweep: {nodes: [1, 2, 4]}\nfidelity: message\n");
}

/* Both executors take the stack's rate for the node's. */
TEST_ROW(contract, a_stack_slow_inside_a_node_agrees,
	 expect_agreement(VGG19 "cluster: {stack: none, workers_per_node: 4, local: {bandwidth: 80Gbps}, " NETWORK
				", host: {local: 5Gbps}}\n" EVERY_METHOD "sweep: {nodes: [1, 2]}\n"))

/* Transfers between switches wait for the uplinks of both, and so do transfers that leave the node. */
Test(contract, workers_behind_switches_agree)
{
	expect_agreement(VGG19 "cluster: {stack: none, workers_per_node: 4, local: {bandwidth: 80Gbps, latency: 5us, "
			       "switches: 2, between: 30Gbps}, " NETWORK ", " HOST "}\n" EVERY_METHOD
			       "sweep: {nodes: [1, 2, 3, 8]}\n");
	expect_agreement(VGG19 "cluster: {stack: none, workers_per_node: 8, local: {bandwidth: 80Gbps, switches: 4, "
			       "between: 8Gbps}, " NETWORK ", " HOST "}\n" EVERY_METHOD
			       "sweep: {workers: [4, 8, 16, 21]}\nfidelity: message\n");
	/* one exchange, of which the uplinks are most, or what is late */
	expect_agreement(ONE_LAYER
			 "cluster: {stack: none, workers_per_node: 4, local: {bandwidth: 80Gbps, latency: 5us, "
			 "switches: 2, between: 1Gbps}, " NETWORK "}\n" EVERY_METHOD "sweep: {nodes: [1, 2, 3]}\n");
	expect_agreement(ONE_LAYER
			 "cluster: {stack: none, workers_per_node: 4, local: {bandwidth: 80Gbps, switches: 2, between: "
			 "1Gbps}, " NETWORK "}\n" SEPARATE_SERVERS "sweep: {nodes: [1, 2, 3]}\n");
	expect_agreement(ONE_LAYER
			 "cluster: {stack: none, workers_per_node: 4, local: {bandwidth: 80Gbps, latency: 100ms, "
			 "switches: 2}, " NETWORK "}\n" EVERY_METHOD "sweep: {nodes: [1, 2, 3]}\n");
}

TEST_ROW(contract, half_precision_agrees,
	 expect_agreement("model: {graph: scenarios/models/vgg19.yaml, batch_per_worker: 32, precision: mixed}\n"
			  "compute: {device: v100}\ncluster: {stack: none, " NETWORK ", " HOST "}\n" EVERY_METHOD
			  "sweep: {nodes: [2, 8]}\n"))

#define EVERY_ACCUMULATION                                                                                             \
	"systems:\n"                                                                                                   \
	"  - {name: ps, sync: ps, accumulate: 4}\n"                                                                    \
	"  - {name: ps sequential, sync: ps, schedule: sequential, accumulate: 2}\n"                                   \
	"  - {name: ps layer forward, sync: ps, barrier: layer, priority: forward, accumulate: 3}\n"                   \
	"  - {name: late ps, sync: ps, staleness: 1, accumulate: 2}\n"                                                 \
	"  - {name: two-level ps, sync: two-level-ps, accumulate: 2}\n"                                                \
	"  - {name: sfb, sync: sfb, accumulate: 2}\n"                                                                  \
	"  - {name: adam, sync: adam, accumulate: 2}\n"                                                                \
	"  - {name: hybrid by seconds, sync: hybrid, rule: seconds, accumulate: 4}\n"                                  \
	"  - {name: ring, sync: ring, fuse: 4MiB, accumulate: 4}\n"                                                    \
	"  - {name: low rank, sync: ring, low_rank: {rank: 4}, accumulate: 2}\n"                                       \
	"  - {name: local, sync: ring, local_sgd: {steps: 2}, accumulate: 2}\n"

Test(contract, accumulated_gradients_agree)
{
	expect_agreement(VGG19 UPDATING_STAR EVERY_ACCUMULATION "sweep: {nodes: [1, 2, 8, 18]}\n");
	expect_agreement(VGG19 UPDATING_STAR EVERY_ACCUMULATION "sweep: {nodes: [2, 8]}\nfidelity: message\n");
	expect_agreement(VGG19 UPDATING_FOURS EVERY_ACCUMULATION "sweep: {nodes: [1, 2, 4]}\n");
}

/* Where sums take no time, each further micro-batch is the time of its layers and nothing else: it exchanges nothing,
 * and the last one overlaps the exchange as a single batch does. */
Test(contract, a_micro_batch_adds_the_time_of_its_layers)
{
	static const char *const syncs[] = {"ps", "ps, schedule: sequential", "ring", "ring, barrier: layer",
					    "two-level-ps"};

	for (unsigned s = 0; s < sizeof(syncs) / sizeof(syncs[0]); s++) {
		struct loaded loaded;
		double estimated_sec[2], simulated_sec[2];

		loaded_print(&loaded,
			     VGG19 STAR "systems: [{name: once, sync: %s}, {name: five, sync: %s, accumulate: 5}]\n"
					"sweep: {nodes: [4]}\n",
			     syncs[s], syncs[s]);
		for (unsigned i = 0; i < 2; i++) {
			struct psd_case made;

			loaded_case(&made, &loaded, i, 0);
			estimated_sec[i] = estimated(&made).iteration_sec;
			simulated_sec[i] = simulated(&made).iteration_sec;
			psd_case_release(&made);
		}
		const double more_sec = 4 * loaded.costed.costs.compute_sec;

		cr_expect_float_eq(estimated_sec[1] - estimated_sec[0], more_sec, CLOSED_FORM_RATIO * more_sec,
				   "%s: %g", syncs[s], estimated_sec[1] - estimated_sec[0]);
		cr_expect_float_eq(simulated_sec[1] - simulated_sec[0], more_sec, CLOSED_FORM_RATIO * more_sec,
				   "%s: %g", syncs[s], simulated_sec[1] - simulated_sec[0]);
		loaded_close(&loaded);
	}
}

/* ---- partial broadcasts ---- */

#define EVERY_PARTIAL                                                                                                  \
	"systems:\n"                                                                                                   \
	"  - {name: one, sync: sfb, peers: 1, local_sgd: {steps: 6}}\n"                                                \
	"  - {name: two by layer, sync: sfb, barrier: layer, peers: 2, local_sgd: {steps: 6}}\n"                       \
	"  - {name: hybrid, sync: hybrid, priority: forward, peers: 3, local_sgd: {steps: 4}}\n"                       \
	"  - {name: rounded, sync: sfb, servers: 2, wire: bf16, peers: 2, local_sgd: {steps: 2}}\n"

/* On links that factors fill. */
#define SLOW_STAR "cluster: {stack: none, network: {bandwidth: 1Gbps, latency: 50us}, " UPDATING_HOST "}\n"

Test(contract, partial_broadcasts_agree)
{
	expect_agreement(VGG19 SLOW_STAR EVERY_PARTIAL "sweep: {nodes: [1, 2, 4, 7, 18]}\n");
	expect_agreement(VGG19 SLOW_STAR EVERY_PARTIAL "sweep: {nodes: [3, 7]}\nfidelity: message\n");
}

/* Seconds of n iterations with one exchange at their end. */
static double racks_sec(unsigned steps, const char *fidelity, bool is_estimated)
{
	struct loaded loaded;
	struct psd_case made;

	loaded_print(&loaded,
		     ONE_LAYER
		     "cluster: {stack: none, nodes: 4, network: {bandwidth: 1Gbps, latency: 1us, topology: racks, "
		     "nodes_per_rack: 2, oversubscription: 8}}\n"
		     "systems: [{name: one, sync: sfb, peers: 1, local_sgd: {steps: %u}}]\nfidelity: %s\n",
		     steps, fidelity);
	loaded_case(&made, &loaded, 0, 0);
	const double sec = steps * (is_estimated ? estimated(&made) : simulated(&made)).iteration_sec;
	psd_case_release(&made);
	loaded_close(&loaded);
	return sec;
}

/* Two racks of two workers, and the factors of 64 samples of a layer of 128 x 128. At offsets 1 and 3 a worker of each
 * rack sends to the other one, at offset 2 both do: 4 messages through an uplink of 250 Mbit/s in 3 iterations. The
 * simulation has 3 of them in iterations 10 and 11, the estimate 2 * 4 / 3. Before and behind these the same exchange
 * follows: offsets 1 and 3 mirror each other. */
Test(contract, peers_in_other_racks_pass_uplinks_in_their_turn)
{
	static const char *const fidelities[] = {"flow", "message"};
	const double message_sec = 8.0 * 64 * (128 + 128) * 4 / 250e6;

	for (unsigned f = 0; f < 2; f++) {
		const double at_9_sec = racks_sec(9, fidelities[f], false),
			     at_10_sec = racks_sec(10, fidelities[f], false),
			     at_12_sec = racks_sec(12, fidelities[f], false);

		cr_expect_float_eq(at_12_sec - at_9_sec, 4 * message_sec, AGREEMENT_RATIO * 4 * message_sec, "%g of %g",
				   at_12_sec - at_9_sec, message_sec);
		cr_expect_float_eq(at_12_sec - at_10_sec, 3 * message_sec, AGREEMENT_RATIO * 3 * message_sec,
				   "%g of %g", at_12_sec - at_10_sec, message_sec);
	}
	const double rotation_sec = racks_sec(12, "flow", true) - racks_sec(9, "flow", true);

	cr_expect_float_eq(rotation_sec, 4 * message_sec, AGREEMENT_RATIO * 4 * message_sec, "estimated %g of %g",
			   rotation_sec, message_sec);
}

#define EVERY_ENCODED_METHOD                                                                                           \
	"systems:\n"                                                                                                   \
	"  - {name: ps, sync: ps, wire: bf16}\n"                                                                       \
	"  - {name: ps sequential, sync: ps, schedule: sequential, wire: fp16}\n"                                      \
	"  - {name: two-level ps, sync: two-level-ps, wire: fp16}\n"                                                   \
	"  - {name: sfb, sync: sfb, wire: fp16}\n"                                                                     \
	"  - {name: hybrid, sync: hybrid, wire: bf16}\n"                                                               \
	"  - {name: adam, sync: adam, wire: fp16}\n"                                                                   \
	"  - {name: hybrid by seconds, sync: hybrid, rule: seconds, wire: bf16}\n"                                     \
	"  - {name: ring, sync: ring, wire: fp16, fuse: 4MiB}\n"                                                       \
	"  - {name: ring sequential, sync: ring, schedule: sequential, wire: bf16}\n"                                  \
	"  - {name: halving, sync: halving-doubling, wire: bf16}\n"

Test(contract, rounded_values_agree)
{
	expect_agreement(VGG19 STAR EVERY_ENCODED_METHOD "sweep: {nodes: [1, 2, 8, 18]}\n");
	expect_agreement(VGG19 STAR EVERY_ENCODED_METHOD "sweep: {nodes: [2, 8]}\nfidelity: message\n");
	expect_agreement(VGG19 "cluster: {stack: none, workers_per_node: 3, " NETWORK ", " HOST
			       "}\n" EVERY_ENCODED_METHOD "sweep: {workers: [3, 6, 11]}\n");
}

/* model: more of its keys; system: all but the name of the one on line 5; words: that are in the message. */
static void expect_wire_refused(const char *model, const char *system, const char *words)
{
	struct loaded loaded;
	struct psd_case made;
	struct psd_error err = {.text = ""};

	loaded_print(&loaded,
		     "model: {graph: tests/data/one_layer.yaml, batch_per_worker: 64%s}\n"
		     "compute: {device: v100}\ncluster: {stack: none, nodes: 2, " NETWORK
		     "}\nsystems:\n  - {name: a, %s}\n",
		     model, system);
	cr_expect_eq(psd_case_make(&made, &loaded.costed, &loaded.scenario.systems[0],
				   psd_scenario_point(&loaded.scenario, 0), &err),
		     PSD_EINVAL);
	cr_expect(strstr(err.text, words), "%s", err.text);
	cr_expect(strstr(err.text, ":5:"), "%s", err.text);
	loaded_close(&loaded);
}

TEST_ROW(contract, an_encoding_of_what_has_2_bytes_is_refused_with_its_place,
	 expect_wire_refused(", precision: mixed", "sync: ring, wire: bf16",
			     "'wire' of system 'a' is 'bf16', must be 'fp32' where 'precision' is"))

/* MPI sums floats. */
TEST_ROW(contract, an_encoding_that_a_method_does_not_take_is_refused_with_its_place,
	 expect_wire_refused("", "sync: mpi, wire: bf16",
			     "'wire' of system 'a' is 'bf16', must be 'fp32' where tensors go by method 'mpi'"))

#define UNEVEN_SYSTEMS                                                                                                 \
	"systems:\n"                                                                                                   \
	"  - {name: ps, sync: ps}\n"                                                                                   \
	"  - {name: ps layer, sync: ps, barrier: layer, priority: forward}\n"                                          \
	"  - {name: sfb, sync: sfb}\n"                                                                                 \
	"  - {name: adam sequential, sync: adam, schedule: sequential}\n"                                              \
	"sweep: {nodes: [16, 20]}\n"

/* Flows may stand for many messages, but a receiver still waits for the slowest of its senders. */
static void expect_fidelities_agree(const char *text)
{
	char flow[TEXT_MAX], message[TEXT_MAX];
	struct loaded by_flow, by_message;

	snprintf(flow, sizeof(flow), "%sfidelity: flow\n", text);
	snprintf(message, sizeof(message), "%sfidelity: message\n", text);
	loaded_open(&by_flow, flow);
	loaded_open(&by_message, message);
	for (unsigned s = 0; s < by_flow.scenario.n_systems; s++) {
		for (unsigned p = 0; p < psd_scenario_points(&by_flow.scenario); p++) {
			struct psd_case flows, messages;

			loaded_case(&flows, &by_flow, s, p);
			loaded_case(&messages, &by_message, s, p);
			const struct psd_outcome flow_outcome = simulated(&flows), outcome = simulated(&messages);
			expect_near(&flows, "flow iteration_sec", flow_outcome.iteration_sec, outcome.iteration_sec,
				    AGREEMENT_RATIO);
			expect_whole(&flows, "flow parts", &flow_outcome);
			expect_whole(&messages, "message parts", &outcome);
			psd_case_release(&messages);
			psd_case_release(&flows);
		}
	}
	loaded_close(&by_message);
	loaded_close(&by_flow);
}

TEST_ROW(contract, fidelities_agree_with_a_slow_node,
	 expect_fidelities_agree(VGG19 "cluster:\n  stack: none\n  " NETWORK "\n  " HOST "\n"
				       "  slow: [{node: 2, compute: 50%}, {node: 1, link: 70%}]\n" UNEVEN_SYSTEMS))
TEST_ROW(contract, fidelities_agree_with_jitter,
	 expect_fidelities_agree("model: {graph: scenarios/models/vgg19.yaml, batch_per_worker: 32}\n"
				 "compute: {device: titan-x, samples_per_sec: 35, jitter: 30%}\n"
				 "cluster: {stack: none, " NETWORK ", " HOST "}\niterations: 2\n" UNEVEN_SYSTEMS))

#define UNEQUAL_LINKS                                                                                                  \
	"cluster: {stack: none, groups: [{nodes: 3, network: {bandwidth: 25Gbps}}, {nodes: 4, network: {bandwidth: "   \
	"2Gbps}}, {nodes: 2, network: {bandwidth: 1Gbps}}], network: {bandwidth: 10Gbps, latency: 300us}}\n"
#define EVERY_ALL_REDUCE                                                                                               \
	"systems:\n  - {name: ring, sync: ring}\n  - {name: halving, sync: halving-doubling}\n"                        \
	"  - {name: recursive, sync: recursive-doubling}\n  - {name: tree, sync: double-tree}\n"                       \
	"  - {name: torus, sync: torus}\n  - {name: zero-3, sync: zero-3}\n"
TEST_ROW(contract, fidelities_agree_on_unequal_links,
	 expect_fidelities_agree(CIFAR10_QUICK UNEQUAL_LINKS EVERY_ALL_REDUCE))
TEST_ROW(contract, unequal_links_agree, expect_agreement(CIFAR10_QUICK UNEQUAL_LINKS EVERY_ALL_REDUCE))
#define IN_ONE "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 8}\ncompute: {device: v100}\n"
TEST_ROW(contract, fidelities_agree_on_unequal_links_of_racks,
	 expect_fidelities_agree(IN_ONE
				 "cluster: {stack: none, groups: [{nodes: 1, network: {bandwidth: 1Gbps}}, {nodes: 5, "
				 "network: {bandwidth: 2Gbps}}], network: {bandwidth: 10Gbps, latency: 100us, "
				 "topology: racks, nodes_per_rack: 2, oversubscription: 1}}\n"
				 "systems: [{name: torus, sync: torus, fuse: 100MiB}]\n"))
/* Flows that begin together wait for each other on unequal links. */
TEST_ROW(contract, flows_that_share_unequal_links_agree,
	 expect_fidelities_agree(IN_ONE
				 "cluster: {stack: none, groups: [{nodes: 5, network: {bandwidth: 2Gbps}}, {nodes: 1, "
				 "network: {bandwidth: 1Gbps}}], network: {bandwidth: 10Gbps, latency: 100us}}\n"
				 "systems: [{name: A, sync: halving-doubling, fuse: 100MiB}]\n"))

Test(contract, waiting_for_nothing_is_never_slower)
{
	struct loaded loaded;

	loaded_open(&loaded, VGG19 STAR EVERY_METHOD "sweep: {nodes: [2, 4, 8, 17, 32]}\n");
	for (unsigned s = 0; s < loaded.scenario.n_systems; s += 2) {
		cr_assert_eq(loaded.scenario.systems[s].schedule, PSD_SCHEDULE_WAIT_FREE);
		cr_assert_eq(loaded.scenario.systems[s + 1].schedule, PSD_SCHEDULE_SEQUENTIAL);
		cr_assert_eq(loaded.scenario.systems[s].sync, loaded.scenario.systems[s + 1].sync);
		for (unsigned p = 0; p < psd_scenario_points(&loaded.scenario); p++) {
			struct psd_case wait_free, sequential;

			loaded_case(&wait_free, &loaded, s, p);
			loaded_case(&sequential, &loaded, s + 1, p);
			cr_expect_leq(estimated(&wait_free).iteration_sec,
				      estimated(&sequential).iteration_sec * (1.0 + ROUNDING_RATIO),
				      "estimate of %s with %u workers", wait_free.system->name,
				      wait_free.plan.layout.workers);
			cr_expect_leq(simulated(&wait_free).iteration_sec,
				      simulated(&sequential).iteration_sec * (1.0 + ROUNDING_RATIO),
				      "simulation of %s with %u workers", wait_free.system->name,
				      wait_free.plan.layout.workers);
			psd_case_release(&sequential);
			psd_case_release(&wait_free);
		}
	}
	loaded_close(&loaded);
}

/* ---- bytes: ATC'17 table 1, P workers, S = P shards on the same nodes, (M,N) floats, K samples ---- */

enum { M = 128, N = 128, K = 64, FLOAT_BYTES = 4 };

struct expected_values {
	const char *name;
	uint64_t (*node_values)(uint64_t P);
};

static uint64_t ps_values(uint64_t P)
{
	return 2 * M * N * (P + P - 2) / P; /* P divides M N */
}

static uint64_t sfb_values(uint64_t P)
{
	return 2 * K * (P - 1) * (M + N);
}

static uint64_t adam_values(uint64_t P)
{
	return (P - 1) * (M * N + K * M + K * N);
}

static uint64_t ring_values(uint64_t P)
{
	return 2 * 2 * (P - 1) * M * N / P; /* 2(P-1) steps of 1/P, sent and received */
}

static const char table_1_format[] = ONE_LAYER
	"cluster: {stack: none, " NETWORK "}\n"
	"systems: [{name: ps, sync: ps}, {name: sfb, sync: sfb}, {name: adam, sync: adam}, {name: ring, sync: ring}, "
	"{name: ps16, sync: ps, wire: fp16}, {name: sfb16, sync: sfb, wire: bf16}, {name: adam16, sync: adam, wire: "
	"bf16}, {name: ring16, sync: ring, wire: fp16}]\nsweep: {nodes: [2, 4, 8, 32]}\nfidelity: %s\n";

static void expect_table_1(const char *fidelity)
{
	uint64_t (*const node_values[])(uint64_t) = {ps_values, sfb_values, adam_values, ring_values,
						     ps_values, sfb_values, adam_values, ring_values};
	struct loaded loaded;

	loaded_print(&loaded, table_1_format, fidelity);
	for (unsigned s = 0; s < loaded.scenario.n_systems; s++) {
		for (unsigned p = 0; p < psd_scenario_points(&loaded.scenario); p++) {
			struct psd_case made;

			loaded_case(&made, &loaded, s, p);
			const uint64_t value_bytes = made.system->wire > 0 ? FLOAT_BYTES / 2 : FLOAT_BYTES;
			const uint64_t expected_bytes = value_bytes * node_values[s](made.plan.layout.workers);
			const struct psd_outcome simulation = simulated(&made);
			const struct psd_outcome estimate = estimated(&made);
			cr_expect_eq(simulation.sent_bytes_per_node + simulation.received_bytes_per_node,
				     expected_bytes, "%s, %s, %u workers: simulated %lu + %lu bytes, expected %lu",
				     fidelity, made.system->name, made.plan.layout.workers,
				     simulation.sent_bytes_per_node, simulation.received_bytes_per_node,
				     expected_bytes);
			cr_expect_eq(estimate.sent_bytes_per_node + estimate.received_bytes_per_node, expected_bytes,
				     "%s, %u workers: estimated %lu + %lu bytes, expected %lu", made.system->name,
				     made.plan.layout.workers, estimate.sent_bytes_per_node,
				     estimate.received_bytes_per_node, expected_bytes);
			psd_case_release(&made);
		}
	}
	loaded_close(&loaded);
}

/* Adam's root is the busiest node both ways, so that the busiest sender's and receiver's bytes are one node's. */
_Static_assert(K *(M + N) >= M * N, "the root receives more than a worker does, also with one peer");

TEST_ROW(contract, simulated_flows_carry_the_bytes_of_table_1, expect_table_1("flow"))
TEST_ROW(contract, simulated_messages_carry_the_bytes_of_table_1, expect_table_1("message"))

Test(contract, separate_servers_carry_the_bytes_of_table_1)
{
	struct loaded loaded;

	loaded_open(&loaded,
		    ONE_LAYER "cluster: {stack: none, " NETWORK "}\n"
			      "systems: [{name: ps 2, sync: ps, servers: 2}]\nsweep: {nodes: [1, 2, 4, 8, 32]}\n");
	for (unsigned p = 0; p < psd_scenario_points(&loaded.scenario); p++) {
		struct psd_case made;

		loaded_case(&made, &loaded, 0, p);
		const uint64_t P = made.plan.layout.workers;
		const uint64_t server_values = 2 * P * M * N / 2; /* S = 2 */
		const uint64_t worker_values = 2 * M * N;
		const uint64_t busiest_values = server_values > worker_values ? server_values : worker_values;
		const struct psd_outcome simulation = simulated(&made);
		cr_expect_eq(simulation.sent_bytes_per_node + simulation.received_bytes_per_node,
			     FLOAT_BYTES * busiest_values, "%lu workers: %lu + %lu bytes", P,
			     simulation.sent_bytes_per_node, simulation.received_bytes_per_node);
		psd_case_release(&made);
	}
	loaded_close(&loaded);
}

/* ---- seconds against closed forms ---- */

Test(contract, eight_workers_fill_the_link_of_their_server)
{
	const double bytes = 8.0 * 100 * 1048576; /* parameters of all workers */
	const double receiver_bound_sec = 8.0 * bytes / 10e9;
	const char *const fidelities[] = {"flow", "message"};

	for (unsigned f = 0; f < 2; f++) {
		struct loaded loaded;
		struct psd_case made;
		struct window push = {.collective = &psd_push};

		loaded_print(&loaded,
			     ONE_LAYER_100MIB "cluster: {stack: none, nodes: 8, " NETWORK "}\n"
					      "systems: [{name: ps, sync: ps, servers: 1}]\nfidelity: %s\n",
			     fidelities[f]);
		loaded_case(&made, &loaded, 0, 0);
		simulated_window(&made, &push);
		expect_near(&made, fidelities[f], push.end_sec - push.start_sec, receiver_bound_sec, RECEIVER_RATIO);
		psd_case_release(&made);
		loaded_close(&loaded);
	}
}

/* P hosts, alpha seconds of latency, B bytes per second. */
Test(contract, a_ring_of_64_takes_its_closed_form)
{
	const double P = 64, alpha = 50e-6, B = 10e9 / 8, bytes = 64 * 1048576;
	const double ring_sec = 2 * (P - 1) * (alpha + bytes / (P * B));
	const char *const fidelities[] = {"flow", "message"};

	for (unsigned f = 0; f < 2; f++) {
		struct loaded loaded;
		struct psd_case made;

		loaded_print(&loaded,
			     ONE_LAYER_64MIB "cluster: {stack: none, nodes: 64, " NETWORK "}\n"
					     "systems: [{name: ring, sync: ring}]\nfidelity: %s\n",
			     fidelities[f]);
		loaded_case(&made, &loaded, 0, 0);
		const struct psd_outcome simulation = simulated(&made);
		/* one collective and no dependency: the link is busy for exactly as long as the ring takes */
		expect_near(&made, fidelities[f], simulation.busy_sec[PSD_RESOURCE_NIC], ring_sec, RING_RATIO);
		expect_near(&made, fidelities[f], simulation.iteration_sec, loaded.costed.costs.compute_sec + ring_sec,
			    RING_RATIO);
		expect_near(&made, "estimate", estimated(&made).busy_sec[PSD_RESOURCE_NIC], ring_sec, RING_RATIO);
		psd_case_release(&made);
		loaded_close(&loaded);
	}
}

/* ---- latency of the ends ---- */

struct outcomes {
	struct psd_outcome estimate, simulation;
};

/* Outcomes of one small matrix on four workers. */
static struct outcomes message_bound(const char *system, const char *fidelity, unsigned workers_per_node,
				     const char *cluster)
{
	struct loaded loaded;
	struct psd_case made;

	loaded_print(&loaded,
		     ONE_LAYER "cluster:\n  stack: none\n  nodes: %u\n  workers_per_node: %u\n%s"
			       "systems: [{name: A, schedule: sequential, %s}]\nfidelity: %s\n",
		     4 / workers_per_node, workers_per_node, cluster, system, fidelity);
	loaded_case(&made, &loaded, 0, 0);
	const struct outcomes outcomes = {estimated(&made), simulated(&made)};
	psd_case_release(&made);
	loaded_close(&loaded);
	return outcomes;
}

static void expect_sec(const char *what, const char *system, double actual_sec, double expected_sec)
{
	cr_expect_float_eq(actual_sec, expected_sec, CLOSED_FORM_RATIO * expected_sec,
			   "%s of %s: %.9g, expected %.9g s", what, system, actual_sec, expected_sec);
}

/* Each direction takes longer by the latency of the ends, as if the links had it. */
Test(contract, latency_of_the_ends_is_like_that_of_the_links)
{
	static const struct {
		const char *system;
		unsigned n_ways; /* one after the other, of four nodes */
	} cases[] = {
		{"sync: ps", 2},   {"sync: ps, servers: 1", 2}, {"sync: sfb", 1},
		{"sync: adam", 2}, {"sync: ring", 2 * (4 - 1)},
	};
	static const char *const fidelities[] = {"flow", "message"};
	const double added_sec = 300e-6;

	for (unsigned c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
		for (unsigned k = 0; k < 4; k++) {
			const char *const system = cases[c].system, *const fidelity = fidelities[k / 2];
			const unsigned workers_per_node = 1 + k % 2;
			const struct outcomes plain = message_bound(system, fidelity, workers_per_node,
								    "  network: {bandwidth: 10Gbps, latency: 200us}\n");
			const struct outcomes ends = message_bound(
				system, fidelity, workers_per_node,
				"  network: {bandwidth: 10Gbps, latency: 200us}\n  host: {latency: 300us}\n");
			const struct outcomes links = message_bound(system, fidelity, workers_per_node,
								    "  network: {bandwidth: 10Gbps, latency: 500us}\n");

			expect_sec("estimate", system, ends.estimate.iteration_sec, links.estimate.iteration_sec);
			expect_sec("simulation", system, ends.simulation.iteration_sec, links.simulation.iteration_sec);
			if (workers_per_node > 1)
				continue;
			expect_sec("estimate", system, ends.estimate.iteration_sec,
				   plain.estimate.iteration_sec + cases[c].n_ways * added_sec);
			expect_sec("simulation", system, ends.simulation.iteration_sec,
				   plain.simulation.iteration_sec + cases[c].n_ways * added_sec);
		}
}

/* ---- repeatability ---- */

static void expect_equal(const char *name, const struct psd_outcome *a, const struct psd_outcome *b)
{
	cr_expect(a->iteration_sec == b->iteration_sec, "%s: %.17g and %.17g s", name, a->iteration_sec,
		  b->iteration_sec);
	for (int r = 0; r < PSD_RESOURCES; r++)
		cr_expect(a->busy_sec[r] == b->busy_sec[r], "%s, resource %d: %.17g and %.17g s", name, r,
			  a->busy_sec[r], b->busy_sec[r]);
	cr_expect_eq(a->sent_bytes_per_node, b->sent_bytes_per_node, "%s", name);
	cr_expect_eq(a->received_bytes_per_node, b->received_bytes_per_node, "%s", name);
	cr_expect_eq(a->n_iterations, b->n_iterations, "%s", name);
}

static struct outcomes outcomes_at(const struct loaded *loaded, unsigned system, unsigned point)
{
	struct psd_case made;

	loaded_case(&made, loaded, system, point);
	const struct outcomes outcomes = {estimated(&made), simulated(&made)};
	psd_case_release(&made);
	return outcomes;
}

/* Outcomes of the first system at the first point of the text that the format makes. */
__attribute__((format(printf, 1, 2))) static struct outcomes outcomes_of(const char *format, ...)
{
	char text[TEXT_MAX];
	struct loaded loaded;
	va_list values;

	va_start(values, format);
	vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	loaded_open(&loaded, text);
	const struct outcomes outcomes = outcomes_at(&loaded, 0, 0);
	loaded_close(&loaded);
	return outcomes;
}

/* The simulation of such a text alone. */
#define simulated_text(...) (outcomes_of(__VA_ARGS__).simulation)

/* Both outcomes take as long as a closed form says; format: the case. */
__attribute__((format(printf, 4, 5))) static void expect_closed_form(struct outcomes outcomes, double expected_sec,
								     double tolerance_sec, const char *format, ...)
{
	char name[128];
	va_list values;

	va_start(values, format);
	vsnprintf(name, sizeof(name), format, values);
	va_end(values);
	cr_expect_float_eq(outcomes.simulation.iteration_sec, expected_sec, tolerance_sec,
			   "%s: simulation %.9g s, expected %.9g", name, outcomes.simulation.iteration_sec,
			   expected_sec);
	cr_expect_float_eq(outcomes.estimate.iteration_sec, expected_sec, tolerance_sec,
			   "%s: estimate %.9g s, expected %.9g", name, outcomes.estimate.iteration_sec, expected_sec);
}

Test(contract, two_simulations_are_bit_for_bit_equal)
{
	struct loaded loaded;

	loaded_open(&loaded, VGG19 STAR EVERY_METHOD "sweep: {nodes: [3, 8, 20]}\n");
	for (unsigned s = 0; s < loaded.scenario.n_systems; s++) {
		for (unsigned p = 0; p < psd_scenario_points(&loaded.scenario); p++) {
			struct psd_case made;

			loaded_case(&made, &loaded, s, p);
			const struct psd_outcome first = simulated(&made);
			const struct psd_outcome second = simulated(&made);
			expect_equal(made.system->name, &first, &second);
			const struct psd_outcome first_estimate = estimated(&made);
			const struct psd_outcome second_estimate = estimated(&made);
			expect_equal(made.system->name, &first_estimate, &second_estimate);
			psd_case_release(&made);
		}
	}
	loaded_close(&loaded);
}

static struct psd_outcome jittered(unsigned seed)
{
	return simulated_text("model: {graph: scenarios/models/vgg19.yaml, batch_per_worker: 32}\n"
			      "compute: {device: titan-x, samples_per_sec: 35, jitter: 10%%}\n"
			      "cluster: {stack: none, nodes: 8, " NETWORK ", " HOST
			      "}\nsystems: [{name: ps, sync: ps}]\nseed: %u\n",
			      seed);
}

Test(contract, jitter_depends_on_the_seed_alone)
{
	const struct psd_outcome smooth =
		simulated_text(VGG19 "cluster: {stack: none, nodes: 8, " NETWORK ", " HOST "}\n"
				     "systems: [{name: ps, sync: ps}]\n");
	const struct psd_outcome first = jittered(1);
	const struct psd_outcome again = jittered(1);
	const struct psd_outcome other = jittered(2);

	expect_equal("same seed", &first, &again);
	cr_expect_neq(first.iteration_sec, other.iteration_sec, "seeds 1 and 2 both give %.17g s", first.iteration_sec);
	/* draws have mean 1, and every iteration waits for the slowest of eight */
	cr_expect_gt(first.iteration_sec, smooth.iteration_sec);
	cr_expect_gt(other.iteration_sec, smooth.iteration_sec);
}

/* One worker that only computes: its slow iterations, a tenth, take three times as long as the others. */
Test(contract, percentiles_are_those_of_single_iterations)
{
	const struct psd_outcome outcome =
		simulated_text("model: {graph: scenarios/models/vgg19.yaml, batch_per_worker: 32}\n"
			       "compute: {device: titan-x, samples_per_sec: 35, tail: {chance: 10%%, factor: 3}}\n"
			       "cluster: {nodes: 1, " NETWORK "}\nsystems: [{name: ring, sync: ring}]\n");
	const double sec = 32 / 35.0;

	cr_assert(outcome.has_percentiles);
	cr_expect_eq(outcome.n_iterations, 100);
	cr_expect_float_eq(outcome.percentiles_sec[PSD_P50], sec, 1e-9);
	cr_expect_float_eq(outcome.percentiles_sec[PSD_P95], 3 * sec, 1e-9);
	cr_expect_float_eq(outcome.percentiles_sec[PSD_P99], 3 * sec, 1e-9);
	cr_expect(outcome.iteration_sec > 1.02 * sec && outcome.iteration_sec < 1.4 * sec, "%g", outcome.iteration_sec);
}

/* ---- disturbances ---- */

Test(contract, a_node_at_half_speed_doubles_the_compute)
{
	const char *const head =
		VGG19 "cluster:\n  stack: none\n  nodes: 4\n  network: {bandwidth: 400Gbps, latency: 1us}\n";
	const char *const systems = "systems: [{name: ps, sync: ps}]\n";
	const double compute_sec = 32 / 35.0; /* batch over images per second */

	const double plain_sec = simulated_text("%s%s", head, systems).iteration_sec;
	const double slowed_sec =
		simulated_text("%s  slow: [{node: 2, compute: 50%%}]\n%s", head, systems).iteration_sec;

	cr_expect_lt(plain_sec, 1.01 * compute_sec, "not bound by compute: %.6f s, of which compute %.6f s", plain_sec,
		     compute_sec);
	cr_expect_float_eq(slowed_sec - plain_sec, compute_sec, 0.01 * compute_sec, "%.6f s became %.6f s", plain_sec,
			   slowed_sec);
}

/* The group at half the speed has a third of the samples of two workers, which then end together. */
Test(contract, a_split_by_speed_takes_the_sum_of_speeds)
{
	const char *const head = "model: {graph: scenarios/models/vgg19.yaml, batch_per_worker: 30}\n"
				 "compute: {device: titan-x, samples_per_sec: 35}\ncluster:\n  stack: none\n"
				 "  groups: [{nodes: 2}, {nodes: 2, speed: 0.5}]\n"
				 "  network: {bandwidth: 400Gbps, latency: 1us}\n";

	const double even_sec = simulated_text("%ssystems: [{name: ps, sync: ps}]\n", head).iteration_sec;
	const double split_sec =
		simulated_text("%ssystems: [{name: ps, sync: ps, split: speed}]\n", head).iteration_sec;

	cr_expect_float_eq(even_sec, 2 * 30 / 35.0, 0.01 * even_sec, "%.6f s", even_sec);
	cr_expect_float_eq(split_sec, 40 / 35.0, 0.01 * split_sec, "%.6f s", split_sec);
}

Test(contract, a_node_is_slow_only_for_a_time)
{
	const char *const head =
		VGG19 "cluster:\n  stack: none\n  nodes: 4\n  network: {bandwidth: 400Gbps, latency: 1us}\n";
	const char *const systems = "systems: [{name: ps, sync: ps}]\n";

	const double plain_sec = simulated_text("%s%s", head, systems).iteration_sec;
	const double slowed_sec =
		simulated_text("%s  slow: [{node: 2, compute: 50%%, from: 100ms, until: 300ms}]\n%s", head, systems)
			.iteration_sec;

	/* 0.2 s at half speed do 0.1 s of work */
	cr_expect_float_eq(slowed_sec - plain_sec, 0.1, 1e-4, "%.6f s became %.6f s", plain_sec, slowed_sec);
}

/* 0.8 s at half speed put one of two workers 0.4 s behind, once: after that both are in step again. If the one behind
 * sent what the other waits for late, among its replies, it would stay behind, and every iteration would take 0.27 s
 * longer. */
Test(contract, a_worker_behind_in_sequence_catches_up)
{
	const char *const head = VGG19
		"iterations: 10\ncluster:\n  stack: none\n  nodes: 2\n  network: {bandwidth: 10Gbps, latency: 1us}\n";
	const char *const systems = "systems: [{name: ps, schedule: sequential, sync: ps}]\n";
	const double behind_sec = 0.4, iterations = 10.0;

	const double plain_sec = simulated_text("%s%s", head, systems).iteration_sec;
	const double delayed_sec =
		simulated_text("%s  slow: [{node: 1, compute: 50%%, from: 1us, until: 800ms}]\n%s", head, systems)
			.iteration_sec;

	cr_expect_float_eq(delayed_sec - plain_sec, behind_sec / iterations, 1e-3, "%.6f s became %.6f s", plain_sec,
			   delayed_sec);
}

/* Seconds beside compute of one 64 MiB matrix, with something added to the cluster. */
static double exchange_sec(const char *sync, unsigned nodes, const char *disturbance)
{
	struct loaded loaded;
	struct psd_case made;

	loaded_print(&loaded,
		     ONE_LAYER_64MIB "cluster:\n  stack: none\n  nodes: %u\n  " NETWORK
				     "\n%ssystems: [{name: %s, sync: %s}]\n",
		     nodes, disturbance, sync, sync);
	loaded_case(&made, &loaded, 0, 0);
	const double beside_compute_sec = simulated(&made).iteration_sec - loaded.costed.costs.compute_sec;
	psd_case_release(&made);
	loaded_close(&loaded);
	return beside_compute_sec;
}

static double groups_exchange_sec(const char *sync, const char *groups)
{
	struct loaded loaded;
	struct psd_case made;

	loaded_print(&loaded,
		     ONE_LAYER_64MIB "cluster:\n  stack: none\n  " NETWORK "\n  groups: %s\n"
				     "systems: [{name: A, sync: %s}]\n",
		     groups, sync);
	loaded_case(&made, &loaded, 0, 0);
	const double beside_compute_sec = simulated(&made).iteration_sec - loaded.costed.costs.compute_sec;
	psd_case_release(&made);
	loaded_close(&loaded);
	return beside_compute_sec;
}

/* A slow link of one node, whose messages are simulated, and of a group of one node are the same. */
Test(contract, a_group_of_slow_links_is_as_slow_as_its_nodes)
{
	static const char *const syncs[] = {"ps", "ring", "halving-doubling"};

	for (size_t s = 0; s < sizeof(syncs) / sizeof(syncs[0]); s++) {
		const double slowed_sec =
			exchange_sec(syncs[s], 8, "  slow: [{node: 3, link: 50%}]\nfidelity: message\n");
		const double group_sec = groups_exchange_sec(
			syncs[s], "[{nodes: 3}, {nodes: 1, network: {bandwidth: 5Gbps}}, {nodes: 4}]");

		cr_expect_float_eq(group_sec, slowed_sec, CLOSED_FORM_RATIO * slowed_sec, "%s: %.9f s and %.9f s",
				   syncs[s], group_sec, slowed_sec);
	}
}

/* A chunk takes b over a slow link, and a latency L. The ring has a quick hop before three slow ones. Six messages in a
 * row over slow hops alone change the hop twice, and the last one arrives after L: 6b + 3L. Over the quick hop, too,
 * they would change it each time, 5b + b/10 + 6L, which is less here. */
Test(contract, slow_hops_of_a_ring_hide_latencies)
{
	const double b = 64 * 1048576.0 / 4.0 * 8.0 / 1e9, L = 50e-6;

	cr_expect_float_eq(groups_exchange_sec("ring", "[{nodes: 2}, {nodes: 2, network: {bandwidth: 1Gbps}}]"),
			   6.0 * b + 3.0 * L, CLOSED_FORM_RATIO * 6.0 * b);
}

/* Bytes of all that a node's link carries. Legend: S bytes of the tensor, P workers, N nodes, w workers on the
 * fullest one. A ring's link carries a worker's chunks, 2(P - 1)/P S, one way. A server's shard has S/N: out of the
 * node go w gradients without that part, and that part to the P - w workers of other nodes. */
Test(contract, links_carry_the_bytes_of_all_workers_of_a_node)
{
	static const char *const groups = "[{nodes: 2, workers_per_node: 2}, {nodes: 3}]";
	const double S = 64 * 1048576.0, P = 7.0, nodes = 5.0, w = 2.0;
	const double ring_sec = 2.0 * (P - 1.0) / P * S * 8.0 / 10e9;
	const double latencies_sec = 2.0 * (P - 1.0) * 50e-6; /* at most */
	const double sec = groups_exchange_sec("ring", groups);
	struct loaded loaded;
	struct psd_case made;

	cr_expect(sec >= ring_sec && sec <= (ring_sec + latencies_sec) * (1.0 + CLOSED_FORM_RATIO),
		  "%.9f s, expected %.9f to %.9f", sec, ring_sec, ring_sec + latencies_sec);
	loaded_print(&loaded,
		     ONE_LAYER_64MIB "cluster: {stack: none, " NETWORK
				     ", groups: %s}\nsystems: [{name: A, sync: ps}]\n",
		     groups);
	loaded_case(&made, &loaded, 0, 0);
	cr_expect_float_eq((double)simulated(&made).sent_bytes_per_node, (w * (nodes - 1.0) + P - w) / nodes * S,
			   4.0 * P);
	cr_expect_float_eq((double)estimated(&made).sent_bytes_per_node, (w * (nodes - 1.0) + P - w) / nodes * S,
			   4.0 * P);
	psd_case_release(&made);
	loaded_close(&loaded);
}

/* A group's latency of a and the cluster's of L. A server's node has the cluster's: push and pull take (a + L)/2 longer
 * each way than bytes do, on the slower group's way. In a ring of nodes a, a and L the last of four messages follows
 * three others over consecutive hops: a, two of (a + L)/2, and again the largest one. */
Test(contract, a_groups_latency_is_half_of_each_way)
{
	const double a = 2e-3, L = 50e-6;
	const double same_sec = groups_exchange_sec("ring", "[{nodes: 2}, {nodes: 1}]");
	const double ring_sec = groups_exchange_sec("ring", "[{nodes: 2, network: {latency: 2ms}}, {nodes: 1}]");
	const double servers_sec = groups_exchange_sec("ps, servers: 1", "[{nodes: 2}, {nodes: 1}]");
	const double far_sec =
		groups_exchange_sec("ps, servers: 1", "[{nodes: 2}, {nodes: 1, network: {latency: 2ms}}]");

	cr_expect_float_eq(ring_sec - same_sec, (a + 2.0 * (a + L) / 2.0 + a) - 4.0 * L, 1e-6);
	cr_expect_float_eq(far_sec - servers_sec, 2.0 * ((a + L) / 2.0 - L), 1e-6);
}

Test(contract, a_link_at_half_speed_doubles_the_exchange)
{
	const double latency_share_ratio = 0.02; /* latency stays what it was */
	const char *const syncs[] = {"ps", "ring"};

	for (unsigned s = 0; s < 2; s++) {
		const double plain_sec = exchange_sec(syncs[s], 8, "");
		const double slowed_sec = exchange_sec(syncs[s], 8, "  slow: [{node: 3, link: 50%}]\n");
		cr_expect_float_eq(slowed_sec, 2.0 * plain_sec, 2.0 * latency_share_ratio * plain_sec,
				   "%s: %.6f s became %.6f s", syncs[s], plain_sec, slowed_sec);
	}
}

/* ---- processors that are shared ---- */

#define MACHINE_HOST "host: {reduce: 3GBps, update: 9GBps}"

Test(contract, shared_processors_agree)
{
	const char *const machines[] = {"cores: 2", "cores: 4", "cores: 64", "cores: 1, nodes: 1"};

	for (unsigned m = 0; m < 4; m++) {
		char text[TEXT_MAX];

		snprintf(text, sizeof(text),
			 CIFAR10_QUICK "cluster: {stack: none, " NETWORK ", " MACHINE_HOST
				       ", machine: {%s, bytes: 1.8GBps, message: 20us}}\n" EVERY_METHOD
				       "sweep: {nodes: [1, 2, 3, 4, 8]}\n",
			 machines[m]);
		expect_agreement_within(text, SHARED_RATIO);
	}
}

/* Seconds of an iteration of one 64 MiB matrix on nodes with that machine and host. */
static double shared_sec(const char *sync, unsigned nodes, const char *machine)
{
	return simulated_text(ONE_LAYER_64MIB
			      "cluster:\n  stack: none\n  nodes: %u\n  network: {bandwidth: 1Gbps, latency: 0s}\n%s"
			      "systems: [{name: A, sync: %s, schedule: sequential}]\n",
			      nodes, machine, sync)
		.iteration_sec;
}

Test(contract, workers_with_a_core_each_do_not_wait_for_each_other)
{
	const double alone_sec = shared_sec("ps", 4, "");

	cr_expect_float_eq(shared_sec("ps", 4, "  machine: {cores: 4}\n"), alone_sec, 1e-6 * alone_sec);
}

Test(contract, sockets_bound_an_exchange_that_links_do_not)
{
	const double matrix_bytes = 64 << 20, compute_sec = shared_sec("ps", 1, "");
	/* two workers push one half and receive another, then pull likewise: each moves twice the matrix through its
	 * sockets */
	const double socket_sec = 2 * matrix_bytes / 0.1e9;
	/* each direction of the link: half a matrix out, half in, twice */
	const double link_sec = matrix_bytes / (1e9 / 8);
	const char *const syncs[] = {"ps", "ring"};

	for (unsigned s = 0; s < 2; s++) {
		const double slow_sec = shared_sec(syncs[s], 2, "  machine: {cores: 2, bytes: 0.1GBps}\n");
		const double quick_sec = shared_sec(syncs[s], 2, "  machine: {cores: 2, bytes: 100GBps}\n");

		cr_expect_float_eq(slow_sec - compute_sec, socket_sec, 1e-3 * socket_sec, "%s: %.6f s", syncs[s],
				   slow_sec);
		cr_expect_float_eq(quick_sec - compute_sec, link_sec, 1e-3 * link_sec, "%s: %.6f s", syncs[s],
				   quick_sec);
	}
}

/* A worker that sends to its own node as well as to another spends no less on the latter. */
Test(contract, ways_inside_a_node_do_not_slow_the_ends_of_links)
{
	const double compute_sec = shared_sec("ps", 1, "");
	/* both workers of a node push half the matrix to the other's shard, which sends its half to both of them */
	const double link_sec = 2.0 * (64 << 20) / (1e9 / 8);
	struct outcomes outcomes;

	outcomes = outcomes_of(ONE_LAYER_64MIB
			       "cluster:\n  stack: none\n  nodes: 2\n  workers_per_node: 2\n"
			       "  network: {bandwidth: 1Gbps, latency: 0s}\n  local: {bandwidth: 100GBps}\n"
			       "  machine: {cores: 4, bytes: 100GBps}\n"
			       "systems: [{name: A, sync: ps, schedule: sequential, pair: 1GB, slice: 1GB}]\n");
	expect_closed_form(outcomes, compute_sec + link_sec, 1e-2 * link_sec, "two workers on each of two nodes");
}

Test(contract, messages_bound_an_exchange_whose_bytes_do_not)
{
	const double message_sec = 1.0, compute_sec = shared_sec("ps", 1, "");
	/* one message pushed and one pulled in each direction; as many around a ring of two: four ends on the one core
	 * of each node, longer than the bytes take */
	const double exchange_sec = 4 * message_sec;
	const char *const syncs[] = {"ps, pair: 1GB", "ring"}; /* no part is cut into several operations */

	for (unsigned s = 0; s < 2; s++) {
		/* a reduction, of 7 ms, lies between push and pull */
		const double sec = shared_sec(syncs[s], 2,
					      "  machine: {cores: 1, nodes: 1, message: 1s}\n"
					      "  host: {reduce: 10GBps}\n");

		cr_expect_float_eq(sec - compute_sec, exchange_sec, 5e-3 * exchange_sec, "%s: %.6f s", syncs[s], sec);
	}
}

Test(contract, messages_that_follow_at_once_take_their_bytes_only)
{
	const double message_sec = 1.0, compute_sec = shared_sec("ps", 1, "");
	/* Two workers, each the shard of half of each slice: of the first push each has two ends, while its bytes pass.
	 * Then the other push and both pulls follow one another: what waits for a push is reduced during the next. */
	const double slice_sec = (16 << 20) / (1e9 / 8), exchange_sec = 2 * message_sec + 3 * slice_sec;
	struct outcomes outcomes;

	outcomes = outcomes_of(ONE_LAYER_64MIB
			       "cluster:\n  stack: none\n  nodes: 2\n  network: {bandwidth: 1Gbps, latency: 0s}\n"
			       "  machine: {cores: 1, nodes: 1, message: 1s}\n  host: {reduce: 10GBps}\n"
			       "systems: [{name: A, sync: ps, slice: 32MiB}]\n");
	expect_closed_form(outcomes, compute_sec + exchange_sec, 5e-3 * exchange_sec, "two slices");
}

Test(contract, around_a_ring_delays_and_ends_of_messages_add_up)
{
	const double latency_sec = 5.0, message_sec = 1.0, workers = 3;
	/* in each step a worker sends a message and receives one, on its only core; bytes pass meanwhile */
	const double ring_sec = 2 * (workers - 1) * (latency_sec + 2 * message_sec);
	const char *const fidelities[] = {"flow", "message"};

	for (unsigned f = 0; f < 2; f++) {
		double sec;

		sec = simulated_text(
			      ONE_LAYER_64MIB
			      "cluster:\n  stack: none\n  nodes: 3\n  network: {bandwidth: 400Gbps, latency: 5s}\n"
			      "  machine: {cores: 1, nodes: 1, message: 1s}\n"
			      "systems: [{name: A, sync: ring, schedule: sequential}]\nfidelity: %s\n",
			      fidelities[f])
			      .iteration_sec -
		      shared_sec("ps", 1, "");
		cr_expect_float_eq(sec, ring_sec, 1e-3 * ring_sec, "%s: %.6f s", fidelities[f], sec);
	}
}

Test(contract, workers_beyond_the_cores_take_turns)
{
	const char *const text =
		VGG19 "cluster:\n  stack: none\n  nodes: 6\n  network: {bandwidth: 400Gbps, latency: 0s}\n"
		      "  machine: {cores: 2}\nsystems: [{name: A, sync: ring}]\n";
	const double compute_sec = 32 / 35.0; /* batch over images per second */

	/* six layers at a time on two cores; what is exposed of the exchange is the last layer's */
	cr_expect_float_eq(simulated_text(text).iteration_sec, 3 * compute_sec, 0.01 * compute_sec, "%.6f s",
			   simulated_text(text).iteration_sec);
}

/* Two emulated devices at half speed compute on one core, 2 w, then both wait for w, as psd-run's workers do. */
Test(contract, slow_devices_leave_the_core_to_others_while_they_wait)
{
	const char *const clusters[] = {"nodes: 2\n  slow: [{node: 0, compute: 50%}, {node: 1, compute: 50%}]",
					"groups: [{nodes: 2, speed: 50%}]"};
	const double compute_sec = 32 / 35.0; /* batch over images per second */

	for (unsigned c = 0; c < 2; c++) {
		char text[TEXT_MAX];
		double sec;

		snprintf(text, sizeof(text),
			 VGG19 "cluster:\n  stack: none\n  %s\n  network: {bandwidth: 400Gbps, latency: 0s}\n"
			       "  machine: {cores: 1}\nsystems: [{name: A, sync: ring}]\n",
			 clusters[c]);
		if (c == 1) /* estimates leave slow nodes out */
			expect_agreement_within(text, SHARED_RATIO);
		sec = simulated_text("%s", text).iteration_sec;
		cr_expect_float_eq(sec, 3 * compute_sec, 0.01 * compute_sec, "%s: %.6f s", clusters[c], sec);
	}
}

/* Four nodes of four workers. Transfers between nodes begin after all inside the nodes have ended, and the result goes
 * back inside the nodes after those between nodes. 2 (4-1)/4 of the matrix go between nodes, whatever the method. */
Test(contract, steps_inside_a_node_wait_for_those_between_nodes)
{
	const double matrix_bytes = 64 << 20, core_bytes_per_sec = 1e9, compute_sec = shared_sec("ps", 1, "");
	const double far_sec = 2 * 3.0 / 4 * matrix_bytes / (1e9 / 8);
	/* a node's first worker receives three matrices one by one, and sends three: a core at either end of each */
	const double leader_sec = 2 * 3 * matrix_bytes / core_bytes_per_sec;
	/* each worker moves 3/4 of the matrix out and as much in, before and after, on its own core or half a core */
	const double each_sec = 2 * 2 * 3.0 / 4 * matrix_bytes / core_bytes_per_sec;
	const struct {
		const char *sync;
		unsigned cores;
		double inside_sec;
	} rows[] = {
		{"two-level", 4, leader_sec}, {"torus", 4, each_sec}, {"halving-doubling", 4, each_sec},
		{"two-level", 2, leader_sec}, /* both ends at a time have a core still */
		{"torus", 2, 2 * each_sec},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const double expected_sec = 4 / rows[i].cores * compute_sec + far_sec + rows[i].inside_sec;
		const char *const fidelities[] = {"flow", "message"};

		for (unsigned f = 0; f < 2; f++) {
			const struct outcomes outcomes = outcomes_of(
				ONE_LAYER_64MIB "cluster:\n  stack: none\n  nodes: 4\n  workers_per_node: 4\n"
						"  network: {bandwidth: 1Gbps, latency: 0s}\n"
						"  machine: {cores: %u, nodes: 1, bytes: 1GBps}\n"
						"systems: [{name: A, sync: %s, schedule: sequential}]\nfidelity: %s\n",
				rows[i].cores, rows[i].sync, fidelities[f]);
			expect_closed_form(outcomes, expected_sec, 1e-3 * expected_sec, "%s on %u cores, by %s",
					   rows[i].sync, rows[i].cores, fidelities[f]);
		}
	}
}

/* Two nodes of two workers: a ring's worker that sends to the other node receives from its own, and the reverse. So
 * each moves 2 (4-1)/4 of the matrix through sockets in one direction, and the other direction through memory, in next
 * to no time. */
Test(contract, a_ring_goes_through_sockets_one_way)
{
	const double expected_sec = shared_sec("ps", 1, "") + 2 * 3.0 / 4 * (64 << 20) / 0.1e9;
	const struct outcomes outcomes = outcomes_of(
		ONE_LAYER_64MIB "cluster:\n  stack: none\n  nodes: 2\n  workers_per_node: 2\n"
				"  network: {bandwidth: 10Gbps, latency: 0s}\n  local: {bandwidth: 1000GBps}\n"
				"  machine: {cores: 4, bytes: 0.1GBps}\n"
				"systems: [{name: A, sync: ring, schedule: sequential}]\n");

	expect_closed_form(outcomes, expected_sec, 1e-2 * expected_sec, "a ring of two nodes");
}

/* A machine's core for three workers: what is left stands on a last machine, which is done first and waits. */
Test(contract, an_iteration_takes_as_long_as_the_fullest_machine)
{
	const double compute_sec = 0.1, matrix_sec = 8.0 * (64 << 20) / 1e9;
	const struct {
		unsigned nodes;
		const char *sync;
		double exchange_sec;
	} rows[] = {
		{4, "ring", 2 * 3 * matrix_sec / 4},	   {5, "ring", 2 * 4 * matrix_sec / 5},
		{6, "ring", 2 * 5 * matrix_sec / 6},	   {7, "ps", 2 * 6 * matrix_sec / 7},
		{6, "ps, servers: 1", 2 * 6 * matrix_sec}, /* on a machine of its own: all in, and all out */
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const double expected_sec = 3 * compute_sec + rows[i].exchange_sec;

		const struct outcomes outcomes =
			outcomes_of("model: {graph: tests/data/one_layer_64mib.yaml, batch_per_worker: 1}\n"
				    "compute: {device: v100, samples_per_sec: 10}\n"
				    "cluster:\n  stack: none\n  nodes: %u\n  network: {bandwidth: 1Gbps, latency: 0s}\n"
				    "  machine: {cores: 1, nodes: 3}\n"
				    "systems: [{name: A, schedule: sequential, sync: %s}]\n",
				    rows[i].nodes, rows[i].sync);
		expect_closed_form(outcomes, expected_sec, 1e-3 * expected_sec, "%u nodes, %s", rows[i].nodes,
				   rows[i].sync);
	}
}

/* All of this model's tensors travel as factors, so that the servers have nothing to do, while the traffic beside it
 * goes on for ever. */
Test(contract, idle_servers_do_not_keep_a_run_alive)
{
	const struct psd_outcome outcome =
		simulated_text(ONE_LAYER "cluster:\n  stack: none\n  nodes: 4\n  " NETWORK "\n"
					 "  background: [{from: 0, to: 1, bytes: 10kB, period: 10ms}]\n"
					 "systems: [{name: sfb, sync: sfb, servers: 2}]\n");

	cr_expect_gt(outcome.iteration_sec, 0.0);
}

/* A link that carries half of the background traffic: transfers that wait take no share, the one in progress takes
 * half. */
Test(contract, background_traffic_beyond_its_way_takes_no_more_than_a_share)
{
	const double latency_share_ratio = 0.02;
	const char *const slow = "  slow: [{node: 0, link: 0.01}]\n";
	const double plain_sec = exchange_sec("ring", 2, slow);
	char text[128];

	snprintf(text, sizeof(text), "%s  background: [{from: 0, to: 1, bytes: 10MB, period: 20ms}]\n", slow);
	const double shared_sec = exchange_sec("ring", 2, text);

	cr_expect_float_eq(shared_sec, 2.0 * plain_sec, 2.0 * latency_share_ratio * plain_sec, "%.6f s became %.6f s",
			   plain_sec, shared_sec);
}

Test(contract, background_traffic_takes_its_fair_share)
{
	const double latency_share_ratio = 0.02;
	/* with two workers each link carries one flow in each direction; a second from 0 to 1 halves it, and a ring
	 * waits for the slower direction */
	const double plain_sec = exchange_sec("ring", 2, "");
	const double shared_sec = exchange_sec("ring", 2, "  background: [{from: 0, to: 1, bytes: 1GiB}]\n");

	cr_expect_float_eq(shared_sec, 2.0 * plain_sec, 2.0 * latency_share_ratio * plain_sec, "%.6f s became %.6f s",
			   plain_sec, shared_sec);
}

/* ---- local steps ---- */

#define LOCAL_STEPS "local_sgd: {steps: 4}"
#define LOCAL_SYSTEMS                                                                                                  \
	"systems:\n"                                                                                                   \
	"  - {name: ps, sync: ps, " LOCAL_STEPS "}\n"                                                                  \
	"  - {name: ps sequential, sync: ps, schedule: sequential, " LOCAL_STEPS "}\n"                                 \
	"  - {name: ps layer, sync: ps, barrier: layer, " LOCAL_STEPS "}\n"                                            \
	"  - {name: ps bf16, sync: ps, wire: bf16, " LOCAL_STEPS "}\n"                                                 \
	"  - {name: ps 3, sync: ps, servers: 3, " LOCAL_STEPS "}\n"                                                    \
	"  - {name: ps 3 sequential, sync: ps, servers: 3, schedule: sequential, " LOCAL_STEPS "}\n"                   \
	"  - {name: ps 3 layer, sync: ps, servers: 3, barrier: layer, " LOCAL_STEPS "}\n"                              \
	"  - {name: two-level ps, sync: two-level-ps, " LOCAL_STEPS "}\n"                                              \
	"  - {name: two-level ps 3, sync: two-level-ps, servers: 3, " LOCAL_STEPS "}\n"                                \
	"  - {name: ring, sync: ring, " LOCAL_STEPS "}\n"                                                              \
	"  - {name: ring layer, sync: ring, barrier: layer, " LOCAL_STEPS "}\n"                                        \
	"  - {name: nccl, sync: nccl, " LOCAL_STEPS "}\n"                                                              \
	"  - {name: turns, sync: ring, fuse: 8MB, local_sgd: {steps: 4, fragments: 3}}\n"                              \
	"  - {name: late, sync: ring, fuse: 8MB, local_sgd: {steps: 4, delay: 1}}\n"                                   \
	"  - {name: late turns, sync: ps, local_sgd: {steps: 4, fragments: 2, delay: 3}}\n"                            \
	"  - {name: ps turns, sync: ps, servers: 3, barrier: layer, local_sgd: {steps: 4, fragments: 4}}\n"            \
	"  - {name: auto, sync: auto, " LOCAL_STEPS "}\n"

Test(contract, local_steps_agree)
{
	expect_agreement(VGG19 UPDATING_STAR LOCAL_SYSTEMS "sweep: {nodes: [1, 2, 3, 8, 18, 32]}\n");
	expect_agreement(VGG19 UPDATING_STAR LOCAL_SYSTEMS "sweep: {nodes: [2, 3, 8]}\nfidelity: message\n");
	expect_agreement(VGG19 UPDATING_FOURS LOCAL_SYSTEMS "sweep: {nodes: [1, 2, 3]}\n");
}

/* A node that has what an exchange brings goes on to the next one, while what it sends then may be for a host that is
 * not done with this one. */
Test(contract, local_steps_do_not_wait_for_a_worker_behind)
{
	static const char *const rest[] = {
		"compute: {device: k20}\ncluster:\n  stack: none\n  " NETWORK "\n  " HOST "\n"
		"  slow: [{node: 1, compute: 20%}, {node: 0, link: 50%}]\nsweep: {nodes: [3, 8]}\n" LOCAL_SYSTEMS,
		"compute: {device: k20, jitter: 100%}\ncluster: {stack: none, " NETWORK ", " HOST
		"}\niterations: 24\nsweep: {nodes: [3, 8]}\n" LOCAL_SYSTEMS,
	};

	for (unsigned t = 0; t < sizeof(rest) / sizeof(rest[0]); t++)
		for (unsigned f = 0; f < 2; f++) {
			struct loaded loaded;

			loaded_print(&loaded,
				     "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 100}\n"
				     "%sfidelity: %s\n",
				     rest[t], f ? "message" : "flow");
			for (unsigned s = 0; s < loaded.scenario.n_systems; s++)
				for (unsigned p = 0; p < psd_scenario_points(&loaded.scenario); p++) {
					struct psd_case made;

					loaded_case(&made, &loaded, s, p);
					cr_expect_gt(simulated(&made).iteration_sec, loaded.costed.costs.compute_sec);
					psd_case_release(&made);
				}
			loaded_close(&loaded);
		}
}

/* N - 1 of N iterations compute and end, and one is as without local steps. */
static void expect_mean(const struct loaded *loaded, const struct psd_outcome *local,
			const struct psd_outcome *synchronous, double steps, double end_sec)
{
	const double alone_sec = loaded->costed.costs.compute_sec + end_sec;
	const double expected_sec = ((steps - 1.0) * alone_sec + synchronous->iteration_sec) / steps;

	cr_expect_float_eq(local->iteration_sec, expected_sec, CLOSED_FORM_RATIO * expected_sec, "%.9g s, not %.9g s",
			   local->iteration_sec, expected_sec);
	cr_expect_eq(local->sent_bytes_per_node, synchronous->sent_bytes_per_node / (uint64_t)steps);
	cr_expect_eq(local->received_bytes_per_node, synchronous->received_bytes_per_node / (uint64_t)steps);
	cr_expect_gt(synchronous->sent_bytes_per_node, 0);
}

/* Updates that take no time, and a barrier per iteration: an exchange begins and ends inside its iteration. Iterations
 * end after 3 ms of the stack's. */
Test(contract, an_exchange_is_spread_over_its_local_steps)
{
	static const char *const syncs[] = {
		"ps", "ps, schedule: sequential", "two-level-ps", "ring", "ps, servers: 3", "two-level-ps, servers: 2",
	};

	for (unsigned s = 0; s < sizeof(syncs) / sizeof(syncs[0]); s++) {
		struct loaded loaded;

		loaded_print(&loaded,
			     VGG19 "cluster: {stack: none, workers_per_node: 2, " NETWORK ", " HOST
				   "}\nsweep: {nodes: [2, 5]}\nsystems:\n"
				   "  - {name: synchronous, sync: %s}\n"
				   "  - {name: four, sync: %s, local_sgd: {steps: 4}}\n"
				   "  - {name: five, sync: %s, local_sgd: {steps: 5}}\n"
				   "  - {name: one, sync: %s, local_sgd: {steps: 1}}\n"
				   "  - {name: adapting, sync: %s, local_sgd: {steps: 12, window: 16}}\n",
			     syncs[s], syncs[s], syncs[s], syncs[s], syncs[s]);
		for (unsigned point = 0; point < 2; point++) {
			const struct outcomes synchronous = outcomes_at(&loaded, 0, point);

			for (unsigned local = 1; local <= 4; local++) {
				const double steps = (const double[]){0, 4, 5, 1, 12}[local];
				const struct outcomes both = outcomes_at(&loaded, local, point);

				cr_expect_eq(both.simulation.n_iterations, steps);
				expect_mean(&loaded, &both.estimate, &synchronous.estimate, steps, 3e-3);
				expect_mean(&loaded, &both.simulation, &synchronous.simulation, steps, 3e-3);
			}
		}
		loaded_close(&loaded);
	}
}

/* A node sends 575 MB in 1.15 s, and an iteration computes 0.91 s. With a delay of two such an exchange ends before it
 * is joined, so that all iterations compute and end. */
Test(contract, a_delay_hides_an_exchange)
{
	static const char *const syncs[] = {"ps", "ring", "two-level-ps"};

	for (unsigned s = 0; s < sizeof(syncs) / sizeof(syncs[0]); s++) {
		struct loaded loaded;

		loaded_print(&loaded,
			     VGG19 "cluster: {stack: none, nodes: 2, network: {bandwidth: 4Gbps, latency: 50us}, " HOST
				   "}\nsystems:\n"
				   "  - {name: at once, sync: %s, local_sgd: {steps: 4}}\n"
				   "  - {name: late, sync: %s, local_sgd: {steps: 4, delay: 2}}\n",
			     syncs[s], syncs[s]);
		const double alone_sec = loaded.costed.costs.compute_sec + 3e-3;
		const struct outcomes at_once = outcomes_at(&loaded, 0, 0), late = outcomes_at(&loaded, 1, 0);

		cr_expect_gt(at_once.simulation.iteration_sec, 1.01 * alone_sec);
		cr_expect_float_eq(late.simulation.iteration_sec, alone_sec, CLOSED_FORM_RATIO * alone_sec,
				   "%s: %.9g s, not %.9g s", syncs[s], late.simulation.iteration_sec, alone_sec);
		cr_expect_float_eq(late.estimate.iteration_sec, alone_sec, CLOSED_FORM_RATIO * alone_sec,
				   "%s: %.9g s, not %.9g s", syncs[s], late.estimate.iteration_sec, alone_sec);
		cr_expect_eq(late.simulation.sent_bytes_per_node, at_once.simulation.sent_bytes_per_node);
		loaded_close(&loaded);
	}
}

/* For 25 requested iterations 36 are executed, in periods of 12. The window of 16 changes nothing in a prediction. */
Test(contract, a_prediction_is_of_the_steps_in_the_beginning)
{
	struct loaded loaded;

	loaded_open(&loaded, VGG19 "cluster: {stack: none, nodes: 3, " NETWORK ", " HOST "}\niterations: 25\nsystems:\n"
				   "  - {name: synchronous, sync: ps}\n"
				   "  - {name: adapting, sync: ps, local_sgd: {steps: 12, window: 16}}\n");
	const struct outcomes synchronous = outcomes_at(&loaded, 0, 0), both = outcomes_at(&loaded, 1, 0);

	cr_expect_eq(both.estimate.n_iterations, 36);
	cr_expect_eq(both.simulation.n_iterations, 36);
	expect_mean(&loaded, &both.estimate, &synchronous.estimate, 12, 3e-3);
	expect_mean(&loaded, &both.simulation, &synchronous.simulation, 12, 3e-3);
	loaded_close(&loaded);
}

/* ---- late updates ---- */

#define LATE_SYSTEMS                                                                                                   \
	"systems:\n"                                                                                                   \
	"  - {name: ps, sync: ps, staleness: 1}\n"                                                                     \
	"  - {name: ps sequential, sync: ps, schedule: sequential, staleness: 2}\n"                                    \
	"  - {name: ps layer, sync: ps, barrier: layer, staleness: 3}\n"                                               \
	"  - {name: ps forward, sync: ps, barrier: layer, priority: forward, staleness: 1}\n"                          \
	"  - {name: ps bf16, sync: ps, wire: bf16, staleness: 2}\n"                                                    \
	"  - {name: ps 3, sync: ps, servers: 3, staleness: 1}\n"                                                       \
	"  - {name: two-level ps, sync: two-level-ps, staleness: 1}\n"                                                 \
	"  - {name: sfb, sync: sfb, staleness: 2}\n"                                                                   \
	"  - {name: hybrid, sync: hybrid, staleness: 1}\n"                                                             \
	"  - {name: ring, sync: ring, staleness: 1}\n"                                                                 \
	"  - {name: ring sequential, sync: ring, schedule: sequential, staleness: 4}\n"                                \
	"  - {name: ring layer, sync: ring, barrier: layer, staleness: 2}\n"                                           \
	"  - {name: halving-doubling, sync: halving-doubling, fuse: 4MB, staleness: 1}\n"                              \
	"  - {name: auto, sync: auto, staleness: 1}\n"

Test(contract, late_updates_agree)
{
	expect_agreement(VGG19 UPDATING_STAR LATE_SYSTEMS "sweep: {nodes: [1, 2, 3, 8, 18]}\n");
	expect_agreement(VGG19 UPDATING_STAR LATE_SYSTEMS "sweep: {nodes: [2, 3, 8]}\nfidelity: message\n");
	expect_agreement(VGG19 UPDATING_FOURS LATE_SYSTEMS "sweep: {nodes: [1, 2, 3]}\n");
}

#define STALE_SYSTEMS                                                                                                  \
	"systems:\n"                                                                                                   \
	"  - {name: ps, sync: ps, staleness: 1, reads: stale}\n"                                                       \
	"  - {name: ps layer, sync: ps, barrier: layer, staleness: 3, reads: stale}\n"                                 \
	"  - {name: ps bf16, sync: ps, wire: bf16, staleness: 2, reads: stale}\n"                                      \
	"  - {name: ps 3, sync: ps, servers: 3, staleness: 1, reads: stale}\n"                                         \
	"  - {name: two-level ps, sync: two-level-ps, staleness: 1, reads: stale}\n"                                   \
	"  - {name: ring, sync: ring, staleness: 1, reads: stale}\n"                                                   \
	"  - {name: ring sequential, sync: ring, schedule: sequential, staleness: 4, reads: stale}\n"                  \
	"  - {name: ring layer, sync: ring, barrier: layer, staleness: 2, reads: stale}\n"                             \
	"  - {name: managed, sync: ring, staleness: 2, reads: stale, managed: {clock: 4, early: 25%}}\n"               \
	"  - {name: managed layer, sync: ring, barrier: layer, staleness: 3, reads: stale, managed: {clock: 2, "       \
	"early: "                                                                                                      \
	"10%}}\n"

Test(contract, stale_reads_agree)
{
	expect_agreement(VGG19 UPDATING_STAR STALE_SYSTEMS "sweep: {nodes: [1, 2, 8]}\n");
	expect_agreement(VGG19 UPDATING_STAR STALE_SYSTEMS "sweep: {nodes: [2, 3]}\nfidelity: message\n");
	expect_agreement(VGG19 UPDATING_FOURS STALE_SYSTEMS "sweep: {nodes: [1, 2]}\n");
}

/* A node at a quarter of the speed never waits, and others are ahead of it by the bound: they lack all sums that they
 * may. It lacks at most that of its last gradient, which has just left. All wait for it, whatever the bound. */
static void expect_ages(const char *sync, unsigned iterations)
{
	struct psd_outcome outcome;
	uint64_t n_reads = 0;
	struct loaded loaded;
	struct psd_case made;

	loaded_print(&loaded,
		     CIFAR10_QUICK "cluster: {stack: none, nodes: 4, network: {bandwidth: 100Gbps, latency: 1us}, "
				   "slow: [{node: 1, compute: 25%%}]}\niterations: %u\n"
				   "systems: [{name: A, sync: %s, staleness: 3, reads: stale}]\n",
		     iterations, sync);
	loaded_case(&made, &loaded, 0, 0);
	outcome = simulated(&made);
	for (unsigned age = 0; age < PSD_READ_AGES; age++)
		n_reads += outcome.reads[age];
	cr_expect_eq(n_reads, UINT64_C(4) * iterations * psd_plan_buckets(&made.plan), "%s", sync);
	cr_expect_eq(outcome.reads[3], n_reads / 4 * 3, "%s", sync);
	cr_expect_eq(outcome.reads[0] + outcome.reads[1], n_reads / 4, "%s", sync);
	cr_expect_gt(outcome.reads[0], outcome.reads[1], "%s", sync);
	cr_expect_float_eq(outcome.iteration_sec, 4 * loaded.costed.costs.compute_sec, 0.02 * outcome.iteration_sec,
			   "%s", sync);
	psd_case_release(&made);
	loaded_close(&loaded);
}

TEST_ROW(contract, stale_reads_of_quick_workers_are_as_old_as_the_bound_allows,
	 (expect_ages("ps", 1000), expect_ages("ps, barrier: layer", 100), expect_ages("ring, fuse: 256KiB", 100),
	  expect_ages("ring, fuse: 64KiB, managed: {clock: 4, early: 25%, chunk: 1000}", 100)))

/* One of four workers has half of the speed: without a bound in reach the rate is that of three and a half, as long as
 * all are active; with one it is that of four slow workers. All executors agree where all are equally quick. */
static double rate_of_four(const char *keys, const char *rest)
{
	struct psd_outcome outcome;
	struct loaded loaded;
	struct psd_case made;

	loaded_print(&loaded,
		     CIFAR10_QUICK "cluster: {stack: none, nodes: 4, network: {bandwidth: 100Gbps, latency: 1us}, "
				   "slow: [{node: 1, compute: 50%%}]}\nsystems: [{name: A, sync: ps%s}]\n%s",
		     keys, rest);
	loaded_case(&made, &loaded, 0, 0);
	outcome = simulated(&made);
	const double ratio = 4 * loaded.costed.costs.compute_sec / outcome.iteration_sec;
	psd_case_release(&made);
	loaded_close(&loaded);
	return ratio;
}

Test(contract, an_asynchronous_cluster_has_the_sum_of_its_workers_rates)
{
	cr_expect_float_eq(rate_of_four(", asynchronous: {}", ""), 3.5, 0.05);
	cr_expect_float_eq(rate_of_four(", asynchronous: {}", "fidelity: message\n"), 3.5, 0.05);
	cr_expect_float_eq(rate_of_four(", servers: 2, asynchronous: {}", ""), 3.5, 0.05);
	cr_expect_float_eq(rate_of_four(", asynchronous: {bound: 2}", ""), 2.0, 0.05);
	cr_expect_float_eq(rate_of_four("", ""), 2.0, 0.05);
}

Test(contract, an_asynchronous_cluster_is_estimated)
{
	static const char *const keys[] = {"", ", barrier: layer", ", servers: 2", ", pair: 64kB, slice: 256kB"};

	for (unsigned k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
		struct loaded loaded;

		loaded_print(&loaded,
			     CIFAR10_QUICK "cluster: {stack: none, nodes: 4, " NETWORK "}\n"
					   "systems: [{name: A, sync: ps, asynchronous: {}%s}]\n",
			     keys[k]);
		const struct outcomes outcomes = outcomes_at(&loaded, 0, 0);
		cr_expect_float_eq(outcomes.estimate.iteration_sec, outcomes.simulation.iteration_sec,
				   0.02 * outcomes.simulation.iteration_sec, "%s: %g s, %g s", keys[k],
				   outcomes.estimate.iteration_sec, outcomes.simulation.iteration_sec);
		loaded_close(&loaded);
	}
}

/* Computing and sending go on beside each other, so that an iteration takes what the slower of both does: of M bytes
 * shards have 2 (P-1)/P M leave each node and as much come in, a ring the same in 2 (P-1) steps of each tensor; the
 * stack ends each iteration with 3 ms. */
Test(contract, late_updates_take_as_long_as_the_slower_of_device_and_links)
{
	static const char *const syncs[] = {"ps", "ps, schedule: sequential", "ring", "ring, schedule: sequential"};
	const double P = 4, latency_sec = 50e-6, end_sec = 3e-3;

	for (unsigned s = 0; s < sizeof(syncs) / sizeof(syncs[0]); s++)
		for (unsigned staleness = 1; staleness <= 3; staleness++) {
			struct loaded loaded;

			loaded_print(
				&loaded,
				VGG19
				"cluster: {stack: none, nodes: 4, " NETWORK ", host: {iteration: 3ms}}\n"
				"sweep: {bandwidth: [1Gbps, 400Gbps]}\nsystems: [{name: A, sync: %s, staleness: %u}]\n",
				syncs[s], staleness);
			for (unsigned point = 0; point < 2; point++) {
				const struct psd_graph *graph = &loaded.costed.graph;
				const double bytes = 4.0 * (double)graph->parameters, bps = point ? 400e9 : 1e9;
				const double steps = s < 2 ? 0.0 : 2 * (P - 1) * graph->n_tensors;
				const double links_sec = 2 * (P - 1) / P * 8 * bytes / bps + steps * latency_sec;
				const double device_sec = loaded.costed.costs.compute_sec + end_sec;
				const struct outcomes outcomes = outcomes_at(&loaded, 0, point);

				cr_expect((point == 0) == (links_sec > device_sec));
				expect_closed_form(outcomes, fmax(links_sec, device_sec), CLOSED_FORM_RATIO * links_sec,
						   "%s, %u late", syncs[s], staleness);
			}
			loaded_close(&loaded);
		}
}

/* Layers take longer in some iterations than in others: the more iterations updates may lag, the less one worker waits
 * for the other. */
Test(contract, late_updates_wait_less_for_a_worker_that_is_slow_at_times)
{
	static const char *const syncs[] = {"ps", "ring", "sfb"};

	for (unsigned s = 0; s < sizeof(syncs) / sizeof(syncs[0]); s++) {
		double before_sec = INFINITY;

		for (unsigned staleness = 0; staleness <= 4; staleness += 2) {
			struct loaded loaded;
			struct psd_case made;

			loaded_print(&loaded,
				     CIFAR10_QUICK "cluster: {stack: none, nodes: 4, " NETWORK "}\niterations: 60\n"
						   "systems: [{name: A, sync: %s, staleness: %u}]\n",
				     syncs[s], staleness);
			loaded.scenario.jitter_ratio = 0.5;
			loaded_case(&made, &loaded, 0, 0);
			const double sec = simulated(&made).iteration_sec;
			cr_expect_lt(sec, before_sec, "%s, %u late: %g s, before %g", syncs[s], staleness, sec,
				     before_sec);
			cr_expect_gt(sec, loaded.costed.costs.compute_sec);
			before_sec = sec;
			psd_case_release(&made);
			loaded_close(&loaded);
		}
	}
}

/* ---- clipped gradients ---- */

#define CLIPPING "train: {iterations: 8, optimiser: {clip: 1}, learning_rate: {base: 0.1}}\n"

Test(contract, clipped_gradients_agree)
{
	expect_agreement(VGG19 UPDATING_STAR CLIPPING LATE_SYSTEMS "sweep: {nodes: [1, 2, 3, 8, 18]}\n");
	expect_agreement(VGG19 UPDATING_FOURS CLIPPING LATE_SYSTEMS "sweep: {nodes: [1, 2, 3]}\n");
}

/* One matrix of 64 MiB, summed by a ring of P; then each device reads it for its norm, and once more to apply it. */
Test(contract, a_clipped_gradient_is_read_once_more)
{
	const double P = 4, bytes = 4.0 * 4096 * 4096, update_bytes_per_sec = 20e9;
	const double ring_sec = 2 * (P - 1) * (50e-6 + 8 * bytes / P / 10e9);
	struct loaded loaded;

	loaded_open(&loaded, ONE_LAYER_64MIB "cluster: {stack: none, nodes: 4, " NETWORK ", host: {update: 20GBps}}\n"
					     "systems: [{name: A, sync: ring}]\n" CLIPPING);
	const struct outcomes outcomes = outcomes_at(&loaded, 0, 0);
	const double expected_sec = loaded.costed.costs.compute_sec + ring_sec + 2 * bytes / update_bytes_per_sec;

	expect_closed_form(outcomes, expected_sec, CLOSED_FORM_RATIO * expected_sec, "a clipped gradient");
	loaded_close(&loaded);
}

/* ---- compression ---- */

#define BY_SIGNS  "compress: {by: one-bit}"
#define BY_LARGE  "compress: {by: top-k, kept: 0.5%, block: 4096}"
#define BY_MATRIX "compress: {by: one-bit, block: 2048, tensors: matrices}"
#define COMPRESSED_SYSTEMS                                                                                             \
	"systems:\n"                                                                                                   \
	"  - {name: bits, sync: ps, " BY_SIGNS "}\n"                                                                   \
	"  - {name: bits sequential, sync: ps, schedule: sequential, " BY_SIGNS "}\n"                                  \
	"  - {name: bits layer, sync: ps, barrier: layer, " BY_SIGNS "}\n"                                             \
	"  - {name: bits layer forward, sync: ps, barrier: layer, priority: forward, " BY_SIGNS "}\n"                  \
	"  - {name: bits 3, sync: ps, servers: 3, " BY_SIGNS "}\n"                                                     \
	"  - {name: bits 3 sequential, sync: ps, servers: 3, schedule: sequential, " BY_SIGNS "}\n"                    \
	"  - {name: bits 3 layer, sync: ps, servers: 3, barrier: layer, " BY_SIGNS "}\n"                               \
	"  - {name: bits local, sync: ps, " LOCAL_STEPS ", " BY_SIGNS "}\n"                                            \
	"  - {name: bits 3 local, sync: ps, servers: 3, barrier: layer, " LOCAL_STEPS ", " BY_SIGNS "}\n"              \
	"  - {name: large, sync: ps, unit: tensor, " BY_LARGE "}\n"                                                    \
	"  - {name: large sequential, sync: ps, schedule: sequential, " BY_LARGE "}\n"                                 \
	"  - {name: large 3, sync: ps, servers: 3, " BY_LARGE "}\n"                                                    \
	"  - {name: all, sync: ps, compress: {by: top-k, kept: 100%}}\n"                                               \
	"  - {name: matrices, sync: ps, " BY_MATRIX "}\n"                                                              \
	"  - {name: matrices sequential, sync: ps, schedule: sequential, " BY_MATRIX "}\n"                             \
	"  - {name: matrices layer, sync: ps, barrier: layer, " BY_MATRIX "}\n"                                        \
	"  - {name: matrices 3, sync: ps, servers: 3, " BY_MATRIX "}\n"

Test(contract, compressed_gradients_agree)
{
	expect_agreement(VGG19 UPDATING_STAR COMPRESSED_SYSTEMS "sweep: {nodes: [1, 2, 3, 8, 18, 32]}\n");
	expect_agreement(VGG19 UPDATING_STAR COMPRESSED_SYSTEMS "sweep: {nodes: [2, 3, 8]}\nfidelity: message\n");
	expect_agreement(VGG19 UPDATING_FOURS COMPRESSED_SYSTEMS "sweep: {nodes: [1, 2, 3]}\n");
}

/* Tensors of fewer blocks than shards, so that some shards have none. At a hundredth of the bandwidth that is most of
 * an iteration, and an estimate takes all shards for one. */
Test(contract, compressed_gradients_of_few_blocks_agree)
{
	expect_agreement(CIFAR10_QUICK UPDATING_STAR COMPRESSED_SYSTEMS "sweep: {nodes: [2, 3, 8, 18, 64]}\n");
	expect_agreement(CIFAR10_QUICK UPDATING_STAR COMPRESSED_SYSTEMS "sweep: {nodes: [2, 16]}\nfidelity: message\n");
	expect_agreement_within(CIFAR10_QUICK
				"cluster: {stack: none, network: {bandwidth: 100Mbps, latency: 50us}, " UPDATING_HOST
				"}\n" COMPRESSED_SYSTEMS "sweep: {nodes: [2, 3, 8, 18, 64]}\n",
				FEW_BLOCKS_RATIO);
	expect_agreement_within(CIFAR10_QUICK
				"cluster: {stack: none, network: {bandwidth: 100Mbps, latency: 50us}, " UPDATING_HOST
				"}\n" COMPRESSED_SYSTEMS "sweep: {nodes: [2, 16]}\nfidelity: message\n",
				FEW_BLOCKS_RATIO);
}

TEST_ROW(contract, compressed_gradients_of_half_precision_agree,
	 expect_agreement("model: {graph: scenarios/models/vgg19.yaml, batch_per_worker: 32, precision: mixed}\n"
			  "compute: {device: v100}\ncluster: {stack: none, " NETWORK ", " UPDATING_HOST
			  "}\n" COMPRESSED_SYSTEMS "sweep: {nodes: [2, 8]}\n"))

/* One matrix of 4096 x 4096: each of two nodes has half its blocks, which cross the link twice, each time with the
 * latency. Blocks of top-k keep 1 % of 1024 values, 11 of them, with 12 positions of 2 bytes. Two servers have a half
 * each, of both workers. */
Test(contract, a_compressed_exchange_takes_what_its_blocks_take)
{
	const double n_blocks = 4096.0 * 4096.0 / 1024.0, bps = 10e9, latency_sec = 50e-6;
	const struct {
		const char *system;
		double link_bytes;
	} rows[] = {
		{"compress: {by: one-bit}", n_blocks / 2 * (2 * 4 + 1024 / 8)},
		{"compress: {by: one-bit, tensors: matrices}", n_blocks / 2 * (2 * 4 + 1024 / 8)},
		{"compress: {by: top-k}", n_blocks / 2 * (11 * 4 + 12 * 2)},
		{"compress: {by: one-bit}, servers: 2", n_blocks * (2 * 4 + 1024 / 8)},
		{"compress: {by: one-bit}, schedule: sequential", n_blocks / 2 * (2 * 4 + 1024 / 8)},
	};

	for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		struct loaded loaded;

		loaded_print(&loaded,
			     ONE_LAYER_64MIB "cluster: {stack: none, nodes: 2, " NETWORK
					     "}\nsystems: [{name: A, sync: ps, %s}]\n",
			     rows[r].system);
		const struct outcomes outcomes = outcomes_at(&loaded, 0, 0);
		const double expected_sec =
			loaded.costed.costs.compute_sec + 2 * (8 * rows[r].link_bytes / bps + latency_sec);

		expect_closed_form(outcomes, expected_sec, CLOSED_FORM_RATIO * expected_sec, "%s", rows[r].system);
		loaded_close(&loaded);
	}
}

/* ---- low rank ---- */

/* Low-rank systems: one text for each all-reduce. */
#define LOW_RANK_SYSTEMS(identifier, text)                                                                             \
	"systems:\n"                                                                                                   \
	"  - {name: wait-free, sync: " text ", low_rank: {rank: 2}}\n"                                                 \
	"  - {name: sequential, sync: " text ", schedule: sequential, low_rank: {rank: 2}}\n"                          \
	"  - {name: layer, sync: " text ", barrier: layer, low_rank: {rank: 4}}\n"                                     \
	"  - {name: forward, sync: " text ", barrier: layer, priority: forward, low_rank: {rank: 4}}\n"                \
	"  - {name: layer sequential, sync: " text ", barrier: layer, schedule: sequential, low_rank: {rank: 1}}\n"    \
	"  - {name: units, sync: " text ", unit: layer, low_rank: {rank: 16}}\n"                                       \
	"  - {name: fused, sync: " text ", fuse: 64KiB, priority: forward, low_rank: {rank: 4}}\n"                     \
	"  - {name: fused sequential, sync: " text ", fuse: 256KiB, schedule: sequential, low_rank: {rank: 4}}\n"      \
	"  - {name: found, sync: " text ", fuse: auto, low_rank: {rank: 2}}\n"                                         \
	"  - {name: local, sync: " text ", " LOCAL_STEPS ", low_rank: {rank: 2}}\n"                                    \
	"  - {name: local layer, sync: " text ", barrier: layer, " LOCAL_STEPS ", low_rank: {rank: 2}}\n"              \
	"  - {name: local sequential, sync: " text ", schedule: sequential, " LOCAL_STEPS ", low_rank: {rank: 2}}\n",
static const char *const low_rank_systems[PSD_N_ALL_REDUCES] = {PSD_ALL_REDUCES(LOW_RANK_SYSTEMS)};

/* head: all but systems. */
static void expect_low_rank_agreement(const char *head)
{
	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++) {
		char text[TEXT_MAX];

		snprintf(text, sizeof(text), "%s%s", head, low_rank_systems[p]);
		expect_agreement(text);
	}
}

Test(contract, gradients_of_low_rank_agree)
{
	expect_low_rank_agreement(VGG19 UPDATING_STAR "sweep: {nodes: [1, 2, 3, 8, 18]}\n");
	expect_low_rank_agreement(VGG19
				  "cluster: {stack: none, workers_per_node: 4, local: {bandwidth: 80Gbps}, " NETWORK
				  ", " UPDATING_HOST "}\nsweep: {nodes: [1, 2, 3]}\n");
}

TEST_ROW(contract, gradients_of_low_rank_agree_message_by_message,
	 expect_low_rank_agreement(VGG19 UPDATING_STAR "sweep: {nodes: [2, 3, 8]}\nfidelity: message\n"))

Test(contract, gradients_of_low_rank_of_small_tensors_agree)
{
	expect_low_rank_agreement(CIFAR10_QUICK UPDATING_STAR "sweep: {nodes: [2, 3, 8]}\n");
	expect_low_rank_agreement(CIFAR10_QUICK
				  "cluster: {stack: none, network: {bandwidth: 100Mbps, latency: 50us}, " UPDATING_HOST
				  "}\n"
				  "sweep: {nodes: [2, 8]}\nfidelity: message\n");
}

TEST_ROW(contract, gradients_of_low_rank_and_half_precision_agree,
	 expect_low_rank_agreement(
		 "model: {graph: scenarios/models/vgg19.yaml, batch_per_worker: 32, precision: mixed}\n"
		 "compute: {device: v100}\ncluster: {stack: none, " NETWORK ", " UPDATING_HOST
		 "}\nsweep: {nodes: [2, 8]}\n"))

/* Workers have first sums and second ones ready in orders of their own. */
Test(contract, fidelities_agree_of_low_rank_with_a_slow_node)
{
	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++) {
		char text[TEXT_MAX];

		snprintf(text, sizeof(text),
			 VGG19 "cluster:\n  stack: none\n  " NETWORK "\n  " UPDATING_HOST "\n"
			       "  slow: [{node: 2, compute: 50%%}, {node: 1, link: 70%%}]\nsweep: {nodes: [4, 8]}\n%s",
			 low_rank_systems[p]);
		expect_fidelities_agree(text);
	}
}

/* One matrix of 4096 x 4096 in rank 64: P workers sum 4096 * 64 values around the ring, and as many again, each in
 * 2(P-1) steps. The left matrix, the right one, the rest and the result are a product each. */
Test(contract, an_exchange_of_low_rank_takes_what_its_narrow_matrices_take)
{
	static const char *const schedules[] = {"wait-free", "sequential"};
	const double P = 4, rank = 64, latency_sec = 50e-6, bps = 10e9;
	const double sum_sec = 2 * (P - 1) * (latency_sec + 8 * 4 * 4096 * rank / P / bps);

	for (unsigned s = 0; s < 2; s++) {
		struct loaded loaded;

		loaded_print(&loaded,
			     ONE_LAYER_64MIB
			     "cluster: {stack: none, nodes: 4, " NETWORK
			     "}\nsystems: [{name: A, sync: ring, schedule: %s, low_rank: {rank: 64}}]\n",
			     schedules[s]);
		const struct outcomes outcomes = outcomes_at(&loaded, 0, 0);
		const double product_sec = 2 * 4096.0 * 4096.0 * rank / loaded.costed.costs.gemm_flops_per_sec;
		const double expected_sec = loaded.costed.costs.compute_sec + 4 * product_sec + 2 * sum_sec;

		expect_closed_form(outcomes, expected_sec, CLOSED_FORM_RATIO * expected_sec, "%s", schedules[s]);
		loaded_close(&loaded);
	}
}

/* Nothing is sent: there are as many events as operations, whose ends are none of their own. */
Test(contract, an_operation_of_a_simulation_counts_once)
{
	struct psd_outcome outcome;
	struct psd_error err = {.text = ""};
	struct loaded loaded;
	struct psd_case made;

	loaded_open(&loaded, ONE_LAYER "cluster:\n  stack: none\n  nodes: 1\n  " NETWORK
				       "\nsystems: [{name: one, sync: ring}]\niterations: 3\n");
	loaded_case(&made, &loaded, 0, 0);
	cr_assert_eq(psd_simulate(&made, PSD_DETAIL_CLASSES, NULL, NULL, &outcome, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(outcome.n_events, 3 * made.program.n_ops);
	psd_case_release(&made);
	loaded_close(&loaded);
}

/* Simulates every host. */
static uint64_t events_of_local_steps(unsigned steps, uint32_t *n_local)
{
	struct loaded loaded;
	struct psd_case made;

	loaded_print(&loaded,
		     ONE_LAYER "cluster: {stack: none, nodes: 2, " NETWORK
			       "}\nsystems: [{name: one, sync: ps, local_sgd: "
			       "{steps: %u}}]\n",
		     steps);
	loaded_case(&made, &loaded, 0, 0);
	const uint64_t n_events = simulated_in_detail(&made, PSD_DETAIL_ALL, NULL, NULL).n_events;
	*n_local = 0;
	for (uint32_t op = 0; op < made.program.n_ops; op++)
		*n_local += !made.program.ops[op].is_exchange;
	psd_case_release(&made);
	loaded_close(&loaded);
	return n_events;
}

/* One exchange in 4 iterations and in 9, on two hosts: the 5 between add only their own operations. */
Test(contract, local_steps_count_only_their_operations)
{
	uint32_t n_local;
	const uint64_t of_four = events_of_local_steps(4, &n_local), of_nine = events_of_local_steps(9, &n_local);

	cr_expect_eq(of_nine - of_four, 5 * 2 * n_local, "%lu and %lu", of_four, of_nine);
}

/* Four workers alone have more operations than that. */
Test(contract, a_simulation_with_too_many_events_is_refused)
{
	struct psd_run_length length;
	struct psd_outcome outcome;
	struct psd_error err = {.text = ""};
	struct loaded loaded;
	struct psd_case made;

	loaded_open(&loaded, ONE_LAYER "cluster:\n  stack: none\n  nodes: 4\n  " NETWORK
				       "\nsystems: [{name: one, sync: ps}]\nmost_events: 3\n");
	loaded_case(&made, &loaded, 0, 0);
	cr_expect_eq(psd_simulate(&made, PSD_DETAIL_CLASSES, NULL, NULL, &outcome, &err), PSD_EINVAL);
	cr_expect(strstr(err.text, "'one' on 4 workers needs more than 3 events"), "%s", err.text);
	length = psd_run_length_make(made.system, 1, 0.0);
	length.most_events = 3;
	cr_expect_eq(psd_estimate(&made.program, length, &outcome, &err), PSD_EINVAL);
	psd_case_release(&made);
	loaded_close(&loaded);
}

/* ---- late updates in an endless run ---- */

/* Each of 2 nodes sends half of 582,312 bytes as gradients and half as parameters, or twice half in a ring of two steps
 * with their latency. At this rate that takes longer than the 21.7 ms of computing. The first iterations do not wait
 * for it. */
Test(contract, late_updates_take_as_long_as_the_link)
{
	static const struct {
		const char *system;
		double latencies;
	} rows[] = {
		{"sync: ps, staleness: 1", 0},
		{"sync: ps, staleness: 3", 0},
		{"sync: ps, staleness: 16", 0},
		{"sync: ps, staleness: 1, reads: stale", 0},
		{"sync: ps, staleness: 3, reads: stale", 0},
		{"sync: ring, fuse: 1MB, staleness: 1", 2},
		{"sync: ring, fuse: 1MB, staleness: 3, reads: stale", 2},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const double expected_sec = 582312.0 * 8.0 / 200e6 + rows[i].latencies * 200e-6;
		const struct outcomes outcomes =
			outcomes_of("model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 50}\n"
				    "compute: {device: cpu}\n"
				    "cluster: {stack: none, nodes: 2, network: {bandwidth: 200Mbps, latency: 200us}}\n"
				    "systems: [{name: s, %s}]\n",
				    rows[i].system);

		expect_closed_form(outcomes, expected_sec, CLOSED_FORM_RATIO * expected_sec, "%s", rows[i].system);
		cr_expect_gt(outcomes.simulation.parts.exposed_comm_sec, 0.0, "%s", rows[i].system);
	}
}
