/* Racks that share uplinks: the estimate and flow fidelity against message fidelity, for every method, and the order in
 * which they put the methods. tests/racks.sh does the same for larger clusters. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "tests/simulate_helper.h"

#define FLOW_RATIO     0.03
#define ESTIMATE_RATIO 0.06
#define APART_RATIO    1.05 /* methods that differ by more keep their order */

enum { TEXT_MAX = 4096, SYSTEMS_MAX = 16 };

static const char form[] = "title: t\n"
			   "model: {graph: scenarios/models/alexnet.yaml, batch_per_worker: 32}\n"
			   "compute: {device: p100}\n"
			   "cluster:\n  network: {bandwidth: 10Gbps, latency: 30us, topology: %s, nodes_per_rack: 4, "
			   "oversubscription: %u}\n  %s\n"
			   "systems:\n"
			   "  - {name: ring, sync: ring}\n"
			   "  - {name: two-level, sync: two-level}\n"
			   "  - {name: halving-doubling, sync: halving-doubling}\n"
			   "  - {name: recursive-doubling, sync: recursive-doubling}\n"
			   "  - {name: double-tree, sync: double-tree}\n"
			   "  - {name: torus, sync: torus}\n"
			   "  - {name: ps, sync: ps}\n"
			   "  - {name: two servers, sync: ps, servers: 2}\n"
			   "  - {name: two-level-ps, sync: two-level-ps}\n"
			   "  - {name: sfb, sync: sfb}\n"
			   "  - {name: hybrid, sync: hybrid}\n"
			   "fidelity: %s\n";

static unsigned open_point(struct loaded *loaded, const char *topology, unsigned ratio, const char *nodes,
			   const char *fidelity)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text), form, topology, ratio, nodes, fidelity);
	loaded_open(loaded, text);
	return loaded->scenario.n_systems;
}

static void expect_near(const char *what, const char *name, double sec, double expected, double ratio)
{
	cr_expect(fabs(sec - expected) <= ratio * expected, "%s of %s: %.9g s, message fidelity %.9g s", what, name,
		  sec, expected);
}

static void expect_order(const struct psd_scenario *scenario, const double sec[], const double expected_sec[])
{
	for (unsigned a = 0; a < scenario->n_systems; a++)
		for (unsigned b = 0; b < scenario->n_systems; b++)
			cr_expect(expected_sec[a] <= APART_RATIO * expected_sec[b] || sec[a] > sec[b],
				  "systems in another order: %s, %.9g s, and %s, %.9g s", scenario->systems[a].name,
				  sec[a], scenario->systems[b].name, sec[b]);
}

static void expect_agreement(const char *topology, unsigned ratio, const char *nodes)
{
	double flow_sec[SYSTEMS_MAX], message_sec[SYSTEMS_MAX], estimate_sec[SYSTEMS_MAX];
	struct loaded flow, message;
	const unsigned n = open_point(&flow, topology, ratio, nodes, "flow");

	open_point(&message, topology, ratio, nodes, "message");
	for (unsigned s = 0; s < n; s++) {
		const char *name = flow.scenario.systems[s].name;
		struct psd_case made;

		loaded_case(&made, &message, s, 0);
		message_sec[s] = simulated(&made).iteration_sec;
		psd_case_release(&made);
		loaded_case(&made, &flow, s, 0);
		flow_sec[s] = simulated(&made).iteration_sec;
		estimate_sec[s] = estimated(&made).iteration_sec;
		psd_case_release(&made);
		expect_near("flow fidelity", name, flow_sec[s], message_sec[s], FLOW_RATIO);
		expect_near("estimate", name, estimate_sec[s], message_sec[s], ESTIMATE_RATIO);
	}
	expect_order(&flow.scenario, flow_sec, message_sec);
	expect_order(&flow.scenario, estimate_sec, message_sec);
	loaded_close(&flow);
	loaded_close(&message);
}

Test(racks, executors_agree_on_two_racks)
{
	expect_agreement("racks", 4, "nodes: 8");
}

/* The last rack holds two nodes, and neither racks nor rows of the torus begin together. */
Test(racks, executors_agree_where_the_last_rack_is_not_full)
{
	expect_agreement("racks", 16, "nodes: 10");
}

Test(racks, executors_agree_on_a_fat_tree)
{
	expect_agreement("fat-tree", 2, "nodes: 8");
}

/* Racks of one group, and one that both share. */
Test(racks, executors_agree_on_groups_of_nodes)
{
	expect_agreement("racks", 4, "groups: [{nodes: 5}, {nodes: 7, speed: 50%}]");
}

/* Flow fidelity has 16 flows for a sender's 63 messages. The first peers of runs that are counted over all hosts would
 * send 0.4 % too much to other racks. */
Test(racks, a_dense_exchange_sends_its_share_to_other_racks)
{
	struct loaded loaded;
	struct psd_case made;

	loaded_open(&loaded,
		    "title: t\nmodel: {graph: scenarios/models/alexnet.yaml, batch_per_worker: 32}\n"
		    "compute: {device: p100}\n"
		    "cluster:\n  network: {bandwidth: 10Gbps, latency: 30us, topology: racks, nodes_per_rack: 16, "
		    "oversubscription: 4}\n  nodes: 64\n"
		    "systems: [{name: ps, sync: ps}]\n");
	loaded_case(&made, &loaded, 0, 0);
	cr_expect_float_eq(simulated(&made).iteration_sec / estimated(&made).iteration_sec, 1.0, 1e-4);
	psd_case_release(&made);
	loaded_close(&loaded);
}
