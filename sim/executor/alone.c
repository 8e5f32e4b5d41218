/* All-reduces during which nothing else uses the network. In some programs every transfer is an all-reduce of all
 * workers. Then the duration of an all-reduce does not depend on the time at which it begins. So all-reduces with
 * equal payloads are simulated once, with one flow for each class of equal flows. Equal hosts are simulated by one of
 * them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/grow.h"
#include "engine/estimate/classes.h"
#include "engine/program/jitter.h"
#include "sim/executor/simulation.h"
#include "sim/executor/step_graph.h"

/* ---- programs whose all-reduces are alone ---- */

/* True if the slowdown changes a link for a part of the run only. */
static bool changes_link(const struct psd_slowdown *slowdown)
{
	return slowdown->link_ratio != 1.0 && (slowdown->from_sec > 0.0 || isfinite(slowdown->until_sec));
}

bool psd_sim_has_calm_links(const struct psd_scenario *scenario)
{
	for (unsigned i = 0; i < scenario->n_slowdowns; i++)
		if (changes_link(&scenario->slowdowns[i]))
			return false;
	return scenario->n_backgrounds == 0 && scenario->network.topology != PSD_TOPOLOGY_PLATFORM;
}

static bool is_of_all(const struct psd_simulation *sim, const struct psd_op *op)
{
	return psd_op_is_collective(op) && psd_payload_group(&op->payload, sim->layout).n == sim->layout->workers;
}

static bool is_alone(const struct psd_simulation *sim)
{
	if (sim->detail == PSD_DETAIL_ALL || psd_sim_has_processors(sim) || !psd_sim_has_calm_links(sim->scenario))
		return false;
	for (uint32_t i = 0; i < sim->program->n_ops; i++) {
		const struct psd_op *op = &sim->program->ops[i];

		if (op->resource == PSD_RESOURCE_NIC && !is_of_all(sim, op))
			return false;
		if (psd_op_is_receive(op))
			return false;
	}
	return true;
}

/* ---- the distinct payloads ---- */

static bool are_equal(const struct psd_payload *a, const struct psd_payload *b)
{
	return a->collective == b->collective && a->elements == b->elements && a->value_bytes == b->value_bytes &&
	       psd_group_equals(a->group, b->group);
}

static void find_kinds(struct psd_simulation *sim)
{
	struct psd_alone *alone = &sim->alone;

	for (uint32_t i = 0; i < sim->program->n_ops; i++) {
		const struct psd_op *op = &sim->program->ops[i];
		unsigned k = 0;

		if (!psd_op_is_collective(op))
			continue;
		while (k < alone->n_kinds && !are_equal(alone->kinds[k].payload, &op->payload))
			k++;
		if (k == alone->n_kinds)
			alone->kinds[alone->n_kinds++] = (struct psd_alone_kind){.payload = &op->payload, .sec = NAN};
		alone->kind_of_op[i] = k;
	}
}

static double *links_ratios(const struct psd_simulation *sim)
{
	const unsigned n_nodes = psd_layout_nodes(sim->layout);
	double *ratios = malloc(n_nodes * sizeof(*ratios));

	for (unsigned node = 0; node < n_nodes && ratios; node++)
		ratios[node] = 1.0;
	for (unsigned i = 0; i < sim->scenario->n_slowdowns && ratios; i++)
		if (sim->scenario->slowdowns[i].node < n_nodes)
			ratios[sim->scenario->slowdowns[i].node] *= sim->scenario->slowdowns[i].link_ratio;
	return ratios;
}

/* Finds the duration of a kind, or the classes of its flows. *is_found is false if all its messages or flows have to be
 * simulated. */
static enum psd_status solve(struct psd_simulation *sim, struct psd_alone_kind *kind,
			     const struct psd_platform *platform, const double *ratios, bool *is_found,
			     struct psd_error *err)
{
	struct psd_step_graph graph;

	if (!psd_sim_walks_steps(sim, kind->payload))
		return psd_flow_classes_find(&kind->classes, kind->payload, sim->layout, platform, ratios, is_found,
					     err);
	PSD_TRY(psd_step_graph_find(&graph, kind->payload, sim->layout, platform, ratios, err));
	*is_found = graph.is_free;
	if (!graph.is_free)
		return PSD_OK;
	kind->n_messages = graph.n_messages;
	kind->n_skipped = graph.n_skipped;
	kind->sec = psd_cost_class_sec(kind->payload, sim->layout, &sim->simulated->plan.rates) + graph.sec;
	return PSD_OK;
}

static enum psd_status solve_all(struct psd_simulation *sim, const struct psd_platform *platform, const double *ratios,
				 struct psd_error *err)
{
	struct psd_alone *alone = &sim->alone;

	alone->has_classes = true;
	for (unsigned k = 0; k < alone->n_kinds; k++) {
		struct psd_alone_kind *kind = &alone->kinds[k];
		bool is_found = true;

		PSD_TRY(solve(sim, kind, platform, ratios, &is_found, err));
		alone->has_classes = alone->has_classes && is_found;
		if (kind->classes.n_flows > alone->most_flows)
			alone->most_flows = kind->classes.n_flows;
		if (kind->classes.n_links > alone->most_links)
			alone->most_links = kind->classes.n_links;
	}
	return PSD_OK;
}

/* ---- hosts ---- */

static bool is_slow(const struct psd_simulation *sim, unsigned node)
{
	for (unsigned i = 0; i < sim->scenario->n_slowdowns; i++)
		if (sim->scenario->slowdowns[i].node == node)
			return true;
	return false;
}

/* Tells whether an earlier host that is simulated stands for this one. Hosts of a slow node stand only for hosts of
 * their node. */
static bool has_stand_in(const struct psd_simulation *sim, const struct psd_classes *classes, unsigned host)
{
	const unsigned node = psd_layout_node(sim->layout, host);
	const bool is_alone = is_slow(sim, node);

	for (unsigned i = 0; i < sim->n_hosts; i++) {
		const unsigned other = sim->hosts[i], other_node = psd_layout_node(sim->layout, other);

		if (classes->class_of[other] == classes->class_of[host] &&
		    (is_alone || is_slow(sim, other_node) ? other_node == node : true))
			return true;
	}
	return false;
}

static enum psd_status find_stand_ins(struct psd_simulation *sim, struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(sim->layout);
	struct psd_classes classes;
	enum psd_status status = psd_classes_find(&classes, sim->program, err);

	if (status == PSD_OK)
		sim->n_hosts = 0;
	for (unsigned h = 0; h < n_hosts && status == PSD_OK; h++) {
		if (has_stand_in(sim, &classes, h))
			continue;
		unsigned *grown = psd_grown(sim->hosts, sim->n_hosts, &sim->host_room, sizeof(*grown));

		if (!grown) {
			status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u hosts", n_hosts);
			break;
		}
		sim->hosts = grown;
		sim->hosts[sim->n_hosts++] = h;
	}
	psd_classes_release(&classes);
	return status;
}

enum psd_status psd_sim_alone_prepare(struct psd_simulation *sim, const struct psd_platform *platform,
				      struct psd_error *err)
{
	struct psd_alone *alone = &sim->alone;

	if (!is_alone(sim))
		return PSD_OK;
	alone->is_on = true;
	alone->kinds = calloc(sim->program->n_ops + 1, sizeof(*alone->kinds));
	alone->kind_of_op = calloc(sim->program->n_ops + 1, sizeof(*alone->kind_of_op));
	double *ratios = links_ratios(sim);
	if (!alone->kinds || !alone->kind_of_op || !ratios) {
		free(ratios);
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for all-reduces");
	}
	find_kinds(sim);
	enum psd_status status = solve_all(sim, platform, ratios, err);
	free(ratios);
	if (status == PSD_OK && sim->detail == PSD_DETAIL_CLASSES && !psd_jitter_is_drawn(sim->scenario))
		status = find_stand_ins(sim, err);
	return status;
}

void psd_sim_alone_release(struct psd_simulation *sim)
{
	for (unsigned k = 0; k < sim->alone.n_kinds; k++)
		psd_flow_classes_release(&sim->alone.kinds[k].classes);
	free(sim->alone.kinds);
	free(sim->alone.kind_of_op);
	free(sim->hosts);
}

/* ---- running ---- */

/* Returns the cost of all all-reduces of a kind together, in events. */
static double kind_events(const struct psd_simulation *sim, const struct psd_alone_kind *kind)
{
	const double events_per_message = 0.1; /* messages that SimGrid does not simulate are cheap */

	if (!isnan(kind->sec))
		return events_per_message * (double)(kind->n_messages - kind->n_skipped);
	if (kind->classes.n_flows > 0)
		return kind->classes.n_flows;
	return (double)psd_payload_group(kind->payload, sim->layout).n *
	       (psd_sim_walks_steps(sim, kind->payload) ? psd_payload_steps(kind->payload, sim->layout) : 1);
}

double psd_sim_alone_events(const struct psd_simulation *sim)
{
	double n_events = 0.0;

	for (unsigned k = 0; k < sim->alone.n_kinds; k++)
		n_events += kind_events(sim, &sim->alone.kinds[k]);
	return n_events;
}

struct psd_alone_kind *psd_sim_alone_kind(struct psd_simulation *sim, uint32_t op)
{
	return &sim->alone.kinds[sim->alone.kind_of_op[op]];
}

/* The classes of an all-reduce take the first links. */
void psd_sim_alone_start_flows(struct psd_simulation *sim, const struct psd_flow_classes *classes, unsigned first)
{
	for (unsigned l = 0; l < classes->n_links; l++)
		psd_network_set_rate(l, classes->link_bps[l]);
	sim->transfers[first].n_left += classes->n_flows;
	for (unsigned f = 0; f < classes->n_flows; f++)
		psd_network_flow(f, classes->flows[f].links, classes->flows[f].n_links, classes->flows[f].bytes,
				 psd_event_tag(PSD_WAKE_STEP_FLOW, first, 0));
}

/* Returns the bytes per iteration of the busiest node. */
struct psd_traffic psd_sim_alone_traffic(const struct psd_simulation *sim, uint32_t n_iterations)
{
	struct psd_traffic most = {0, 0};

	for (unsigned node = 0; node < sim->layout->nodes; node++) {
		struct psd_traffic sum = {0, 0};

		for (unsigned k = 0; k < sim->alone.n_kinds; k++) {
			const struct psd_alone_kind *kind = &sim->alone.kinds[k];
			const struct psd_traffic traffic = psd_payload_node_traffic(kind->payload, sim->layout, node);

			sum.sent_bytes += kind->n_runs * traffic.sent_bytes;
			sum.received_bytes += kind->n_runs * traffic.received_bytes;
		}
		sum.sent_bytes /= n_iterations;
		sum.received_bytes /= n_iterations;
		most.sent_bytes = sum.sent_bytes > most.sent_bytes ? sum.sent_bytes : most.sent_bytes;
		most.received_bytes =
			sum.received_bytes > most.received_bytes ? sum.received_bytes : most.received_bytes;
	}
	return most;
}

static uint64_t kind_messages(const struct psd_simulation *sim, const struct psd_payload *payload)
{
	return (uint64_t)psd_payload_group(payload, sim->layout).n * psd_payload_steps(payload, sim->layout);
}

void psd_sim_count_skipped(const struct psd_simulation *sim, struct psd_outcome *outcome)
{
	outcome->n_skipped_iterations = sim->interpreter.n_skipped;
	outcome->n_nodes = psd_layout_nodes(sim->layout);
	for (unsigned i = 0; i < sim->n_hosts && sim->hosts; i++)
		outcome->n_simulated_nodes += i == 0 || psd_layout_node(sim->layout, sim->hosts[i]) !=
								psd_layout_node(sim->layout, sim->hosts[i - 1]);
	for (unsigned k = 0; k < sim->alone.n_kinds; k++) {
		const struct psd_alone_kind *kind = &sim->alone.kinds[k];

		if (psd_sim_walks_steps(sim, kind->payload) && kind->n_runs > 0)
			outcome->n_skipped_messages +=
				kind->n_skipped + (kind->n_runs - 1) * kind_messages(sim, kind->payload);
	}
}
