/* Runs the interpreter for every host of a case, with SimGrid as clock and network. Refuses to print and to fork. */
#include "sim/executor/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/program/jitter.h"
#include "sim/executor/simulation.h"
#include "sim/executor/step_graph.h"

static double sim_now(void *context)
{
	(void)context;
	return psd_network_now_sec();
}

static void sim_work(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec)
{
	struct psd_simulation *sim = context;
	const uint64_t tag = psd_event_tag(PSD_WAKE_WORK, host, resource);
	const struct psd_op *op = &sim->program->ops[task.op];
	const unsigned of_layout = psd_sim_host(sim, host);
	const double cores = psd_sim_has_processors(sim) ? psd_op_cores(op, &sim->simulated->plan.machine) : 0.0;
	double busy_sec;

	sec = psd_jittered_sec(sim->scenario, of_layout, op, resource, task, sec);
	busy_sec = sec * psd_program_busy_ratio(sim->program, task.op, of_layout);
	if (resource == PSD_RESOURCE_DEVICE && sim->scenario->n_slowdowns > 0)
		sec = psd_sim_slowed_sec(sim, psd_layout_node(sim->layout, of_layout), sec);
	busy_sec = fmin(busy_sec, sec);
	if (resource == PSD_RESOURCE_DEVICE && cores > 0.0) {
		psd_interpreter_worked(&sim->interpreter, host, sec);
		sim->waits_sec[host] = sec - busy_sec;
	}
	if (cores > 0.0)
		psd_sim_process(sim, host, busy_sec * cores, cores, tag);
	else if (resource == PSD_RESOURCE_DEVICE && sim->device_shares)
		psd_sim_begin_device_share(sim, host, sec);
	else
		psd_network_timer(sec, tag);
}

/* Stops SimGrid when all hosts have finished all iterations; otherwise background traffic and slowdowns would continue
 * for ever. */
static void stop_when_complete(struct psd_simulation *sim)
{
	const struct psd_interpreter *interpreter = &sim->interpreter;
	while (sim->first_incomplete < interpreter->n_hosts &&
	       psd_interpreter_host_is_complete(interpreter, sim->first_incomplete))
		sim->first_incomplete++;
	if (sim->first_incomplete == interpreter->n_hosts)
		psd_network_stop();
}

/* Returns the number of events so far, with the work for rates of flows. */
static uint64_t n_events(const struct psd_simulation *sim)
{
	return sim->n_events + psd_network_work() + psd_sim_exchange_work(sim);
}

void psd_sim_wake(struct psd_simulation *sim, uint64_t value)
{
	const unsigned host = psd_event_tag_host(value);
	const enum psd_wake kind = (enum psd_wake)psd_event_tag_kind(value);

	sim->n_events += kind != PSD_WAKE_WORK; /* the ends of operations were counted by check_length() already */
	if (n_events(sim) > sim->scenario->most_events) {
		psd_network_stop();
		return;
	}
	if (sim->exchange)
		psd_sim_exchange_look(sim, value);
	switch (kind) {
	case PSD_WAKE_WORK:
		if (psd_sim_work_ends(sim, host, (enum psd_resource)psd_event_tag_rest(value)))
			psd_interpreter_finished(&sim->interpreter, host, (enum psd_resource)psd_event_tag_rest(value));
		else
			sim->n_events++;
		break;
	case PSD_WAKE_FLOW: psd_sim_end_flow(sim, host, (unsigned)psd_event_tag_rest(value)); break;
	case PSD_WAKE_QUEUE: psd_sim_wake_queue(sim, host, (unsigned)psd_event_tag_rest(value)); break;
	case PSD_WAKE_ARRIVAL: psd_interpreter_arrived(&sim->interpreter, host, psd_event_tag_task(value)); break;
	case PSD_WAKE_STEP_FLOW: psd_sim_step_flow_done(sim, host); break;
	case PSD_WAKE_STEPS_END: psd_sim_steps_end(sim, host); break;
	case PSD_WAKE_STEPS_BEGIN: psd_sim_steps_begin(sim, host); break;
	case PSD_WAKE_STEP_SENT: psd_sim_step_part_done(sim, host); break;
	case PSD_WAKE_STEP_ARRIVED: psd_sim_step_arrived(sim, host); break;
	case PSD_WAKE_LINK: psd_sim_apply_links(sim, host); break;
	case PSD_WAKE_BACKGROUND_SENT: psd_sim_background_sent(sim, host); break;
	case PSD_WAKE_BACKGROUND_DUE: psd_sim_background_due(sim, host); break;
	case PSD_WAKE_POOL: psd_sim_wake_processors(sim, host); break;
	case PSD_WAKE_EXCHANGE: psd_sim_exchange_wake(sim, value); break;
	case PSD_WAKE_PASSED: psd_interpreter_passed(&sim->interpreter); break;
	case PSD_WAKE_CROSSING: psd_sim_end_crossing(sim, (unsigned)psd_event_tag_rest(value)); break;
	}
	if (psd_repeat_is_due(&sim->repeat, &sim->interpreter))
		psd_sim_repeat(sim);
	stop_when_complete(sim);
}

static void wake(void *context, uint64_t value)
{
	psd_sim_wake(context, value);
}

static void sim_span(void *context, unsigned host, struct psd_task task, double start_sec, double end_sec)
{
	struct psd_simulation *sim = context;
	const struct psd_span span = {
		.host = psd_sim_host(sim, host),
		.task = task,
		.bytes = sim->program->ops[task.op].bytes,
		.start_sec = start_sec,
		.end_sec = end_sec,
	};

	if (task.op == sim->program->next_op) /* the next layer tells as much */
		return;
	sim->span(sim->span_context, sim->program, &span);
}

struct psd_platform psd_simulate_platform(const struct psd_case *simulated)
{
	const struct psd_scenario *scenario = simulated->costed->scenario;
	const struct psd_plan *plan = &simulated->plan;
	return (struct psd_platform){
		.topology = scenario->network.topology,
		.nodes = plan->layout.nodes,
		.workers_per_node = plan->layout.workers_per_node,
		.workers = plan->layout.workers,
		.servers = plan->layout.has_separate_servers ? plan->layout.shards : 0,
		.send_bps = plan->rates.send_bps,
		.receive_bps = plan->rates.receive_bps,
		.latency_sec = scenario->network.latency_sec,
		.host_latency_sec = simulated->system->host.latency_sec,
		.local_bps = isfinite(plan->rates.local_bps) ? plan->rates.local_bps : 0.0,
		.local_latency_sec = scenario->network.local_latency_sec,
		.workers_per_switch = plan->layout.workers_per_switch,
		.between_bps = plan->rates.between_bps,
		.nodes_per_rack = scenario->network.nodes_per_rack,
		.oversubscription_ratio = scenario->network.oversubscription_ratio,
		.servers_in = scenario->network.servers_in,
		.n_servers_in = scenario->network.n_servers_in,
		.link_bps = simulated->point.bandwidth_bps * scenario->network.payload_ratio,
		.kinds = plan->layout.kinds,
		.n_kinds = plan->layout.n_kinds,
		.is_uneven = plan->layout.is_uneven,
		.has_own_latencies = plan->layout.has_own_latencies,
		.path = scenario->network.platform_path,
	};
}

static enum psd_status out_of_memory(const struct psd_simulation *sim, struct psd_error *err)
{
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a simulation of %u hosts",
			     psd_layout_hosts(sim->layout));
}

/* A sweep tries an estimate by itself. A trace needs a simulation. */
static enum psd_status refuse_length(const struct psd_simulation *sim, struct psd_error *err)
{
	return psd_refuse_length(sim->simulated->system, sim->layout->workers, sim->scenario->most_events,
				 sim->scenario->fidelity == PSD_FIDELITY_MESSAGE ? PSD_RELIEF_FLOW : PSD_RELIEF_LENGTH,
				 err);
}

/* Refuses a run with too many events, by a count before it begins: operations of all hosts, and messages of all
 * transfers. */
static enum psd_status check_length(struct psd_simulation *sim, struct psd_run_length length, struct psd_error *err)
{
	const struct psd_program *program = sim->program;
	const double most = (double)sim->scenario->most_events;
	const uint32_t n_exchanges = length.n_iterations / psd_plan_steps(program->plan);
	double n_operations = 0.0, n_messages = 0.0;
	for (uint32_t i = 0; i < program->n_ops && n_operations + n_messages <= most; i++) {
		const struct psd_op *op = &program->ops[i];
		const double times = psd_op_times(op, length.n_iterations, n_exchanges);
		n_operations += times * sim->n_hosts;
		n_messages += sim->alone.is_on ? 0.0 : times * psd_sim_transfer_events(sim, op);
	}
	if (sim->alone.is_on)
		n_messages = psd_sim_alone_events(sim);
	if (n_operations + n_messages > most)
		return refuse_length(sim, err);
	sim->n_events = sim->n_operations = (uint64_t)n_operations;
	return PSD_OK;
}

enum { N_ROLES = 8 };

/* Returns the number of the host's role, below N_ROLES. */
static unsigned role_of(const struct psd_simulation *sim, unsigned host)
{
	const unsigned h = psd_sim_host(sim, host);

	return psd_layout_is_worker(sim->layout, h) + 2U * psd_layout_is_leader(sim->layout, h) +
	       4U * psd_layout_is_shard(sim->layout, h);
}

/* True if hosts of one role have equal duties: no messages are awaited, no operation is of a group or a root, and all
 * nodes are of one kind. */
static bool do_roles_decide(const struct psd_program *program)
{
	if (program->kind_sec)
		return false;
	for (uint32_t i = 0; i < program->n_ops; i++)
		if (psd_op_is_receive(&program->ops[i]) || program->ops[i].where == PSD_WHERE_ROOT ||
		    program->ops[i].where == PSD_WHERE_GROUP)
			return false;
	return true;
}

/* Adds the duties of a host, if no other host has the same ones, and returns their index in *d. */
static enum psd_status add_duties(struct psd_simulation *sim, unsigned host, unsigned *d, struct psd_error *err)
{
	const size_t waits_size = sim->program->n_ops * sizeof(*sim->duties->waits);
	struct psd_duties mine;

	PSD_TRY(psd_duties_make(&mine, sim->program, psd_sim_host(sim, host), psd_sim_arrivals, sim, err));
	*d = 0;
	while (*d < sim->n_duties && (sim->duties[*d].work_sec != mine.work_sec ||
				      memcmp(sim->duties[*d].waits, mine.waits, waits_size) != 0))
		++*d;
	struct psd_duties *grown =
		*d < sim->n_duties ? NULL : realloc(sim->duties, (sim->n_duties + 1) * sizeof(*grown));
	if (grown == NULL) {
		psd_duties_release(&mine);
		return *d < sim->n_duties ? PSD_OK : out_of_memory(sim, err);
	}
	sim->duties = grown;
	sim->duties[sim->n_duties++] = mine;
	return PSD_OK;
}

/* Makes the duties of all hosts; hosts with equal duties share one struct psd_duties. */
static enum psd_status assign_duties(struct psd_simulation *sim, struct psd_error *err)
{
	const bool is_by_role = do_roles_decide(sim->program);
	unsigned of_role[N_ROLES] = {0}; /* index of the duties of a role */
	bool has_duties[N_ROLES] = {false};
	unsigned *duties_index = calloc(sim->n_hosts, sizeof(*duties_index));
	enum psd_status status = duties_index ? PSD_OK : out_of_memory(sim, err);

	for (unsigned h = 0; h < sim->n_hosts && status == PSD_OK; h++) {
		const unsigned role = role_of(sim, h);

		if (!is_by_role || !has_duties[role])
			status = add_duties(sim, h, &of_role[role], err);
		has_duties[role] = true;
		duties_index[h] = of_role[role];
	}
	for (unsigned h = 0; h < sim->n_hosts && status == PSD_OK; h++)
		sim->duties_of_host[h] = &sim->duties[duties_index[h]];
	free(duties_index);
	return status;
}

static enum psd_status allocate(struct psd_simulation *sim, struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(sim->layout);
	const unsigned n_nodes = sim->alone.is_on ? 1 : psd_layout_nodes(sim->layout);
	sim->sendings = calloc(sim->n_hosts, sizeof(*sim->sendings));
	sim->transfers = calloc(sim->alone.is_on && sim->alone.has_classes ? 1 : n_hosts, sizeof(*sim->transfers));
	if (sim->program->plan->async) {
		sim->queues = calloc((size_t)n_hosts * n_hosts, sizeof(*sim->queues));
		if (!sim->queues)
			return out_of_memory(sim, err);
	}
	sim->duties_of_host = calloc(sim->n_hosts, sizeof(*sim->duties_of_host));
	sim->n_shift_flows_done =
		calloc((size_t)sim->program->window * sim->program->n_ops, sizeof(*sim->n_shift_flows_done));
	sim->delays_sec = calloc(sim->program->n_ops, sizeof(*sim->delays_sec));
	for (uint32_t i = 0; sim->delays_sec && i < sim->program->n_ops; i++)
		sim->delays_sec[i] = NAN;
	sim->sent_bytes = calloc(n_nodes, sizeof(*sim->sent_bytes));
	sim->received_bytes = calloc(n_nodes, sizeof(*sim->received_bytes));
	if (sim->sendings == NULL || sim->transfers == NULL || sim->duties_of_host == NULL || sim->sent_bytes == NULL ||
	    sim->received_bytes == NULL || sim->n_shift_flows_done == NULL || sim->delays_sec == NULL)
		return out_of_memory(sim, err);
	if (psd_sim_open_processors(sim, err) || psd_sim_open_device_shares(sim, err))
		return err->status;
	return assign_duties(sim, err);
}

static void release(struct psd_simulation *sim)
{
	psd_interpreter_release(&sim->interpreter);
	psd_sim_close_processors(sim);
	psd_sim_alone_release(sim);
	psd_sim_exchange_release(sim);
	psd_sim_repeat_release(sim);
	free(sim->device_shares);
	free(sim->crossings);
	for (unsigned d = 0; d < sim->n_duties; d++)
		psd_duties_release(&sim->duties[d]);
	free(sim->duties);
	free(sim->duties_of_host);
	for (size_t q = 0; sim->queues && q < (size_t)sim->n_hosts * sim->n_hosts; q++)
		free(sim->queues[q].tasks);
	free(sim->queues);
	free(sim->sendings);
	free(sim->n_shift_flows_done);
	free(sim->transfers);
	free(sim->delays_sec);
	free(sim->sent_bytes);
	free(sim->received_bytes);
}

/* ---- reads of stale parameters ---- */

static double compute_ratio(const struct psd_simulation *sim, unsigned host)
{
	return psd_scenario_compute_ratio(sim->scenario, psd_layout_node(sim->layout, host));
}

/* Returns the simulated host that stands for a host: itself, or one that is as slow. */
static unsigned stand_in(const struct psd_simulation *sim, unsigned host)
{
	unsigned found = 0;

	for (unsigned i = 0; i < sim->n_hosts; i++) {
		const unsigned other = psd_sim_host(sim, i);

		if (other == host)
			return i;
		if (compute_ratio(sim, other) == compute_ratio(sim, host) && psd_layout_is_worker(sim->layout, other))
			found = i;
	}
	return found;
}

static void count_reads(const struct psd_simulation *sim, uint32_t first, struct psd_outcome *outcome)
{
	for (unsigned h = 0; h < psd_layout_hosts(sim->layout) && sim->program->plan->reads_stale; h++)
		if (psd_layout_is_worker(sim->layout, h))
			psd_reads_add(&sim->interpreter.reads, stand_in(sim, h), first, 1, outcome->reads);
}

/* False: out of memory. */
static bool fill_outcome(const struct psd_simulation *sim, struct psd_run_length length, struct psd_outcome *outcome)
{
	*outcome = (struct psd_outcome){
		.iteration_sec = psd_interpreter_iteration_sec(&sim->interpreter, length.first_measured),
		.parts = psd_interpreter_parts(&sim->interpreter, length.first_measured),
		.n_iterations = length.n_iterations,
		.n_events = n_events(sim),
		.takes_factors = psd_outcome_takes_factors(sim->program),
		.early = psd_plan_early(sim->program->plan),
		.period = psd_plan_steps(sim->program->plan),
		.n_parts = psd_plan_parts(sim->program->plan),
	};
	psd_interpreter_find_bound(&sim->interpreter, length.first_measured, outcome);
	for (int r = 0; r < PSD_RESOURCES; r++)
		outcome->busy_sec[r] = psd_interpreter_busy_sec(&sim->interpreter, (enum psd_resource)r);
	count_reads(sim, length.first_measured, outcome);
	if (sim->alone.is_on) {
		const struct psd_traffic traffic = psd_sim_alone_traffic(sim, length.n_iterations);

		outcome->sent_bytes_per_node = traffic.sent_bytes;
		outcome->received_bytes_per_node = traffic.received_bytes;
	}
	for (unsigned node = 0; !sim->alone.is_on && node < psd_layout_nodes(sim->layout); node++) {
		const uint64_t sent_bytes = sim->sent_bytes[node] / length.n_iterations;
		const uint64_t received_bytes = sim->received_bytes[node] / length.n_iterations;
		if (sent_bytes > outcome->sent_bytes_per_node)
			outcome->sent_bytes_per_node = sent_bytes;
		if (received_bytes > outcome->received_bytes_per_node)
			outcome->received_bytes_per_node = received_bytes;
	}
	psd_sim_count_skipped(sim, outcome);
	outcome->has_percentiles = psd_jitter_is_drawn(sim->scenario);
	if (outcome->has_percentiles &&
	    !psd_interpreter_percentiles(&sim->interpreter, length.first_measured, outcome->percentiles_sec))
		return false;
	psd_outcome_lengthen(outcome, psd_interpreter_steady_sec(&sim->interpreter, length.first_measured));
	return true;
}

/* Sets platform->ends_apart where messages of some all-reduce never share a link. There each message lasts as long as
 * its bytes, and over thousands of steps nanoseconds add up. */
static enum psd_status find_ends_apart(const struct psd_simulation *sim, struct psd_platform *platform,
				       struct psd_error *err)
{
	const struct psd_payload *checked = NULL;

	for (uint32_t i = 0; i < sim->program->n_ops && !platform->ends_apart; i++) {
		const struct psd_op *op = &sim->program->ops[i];

		if (!psd_op_is_collective(op) || !psd_sim_walks_steps(sim, &op->payload) ||
		    sim->scenario->network.topology == PSD_TOPOLOGY_PLATFORM)
			continue;
		if (checked && checked->collective == op->payload.collective &&
		    psd_group_equals(checked->group, op->payload.group))
			continue;
		checked = &op->payload;
		PSD_TRY(psd_step_graph_check(&platform->ends_apart, checked, sim->layout, platform, err));
	}
	return PSD_OK;
}

static enum psd_status open_network(struct psd_simulation *sim, const struct psd_platform *platform,
				    struct psd_error *err)
{
	if (sim->alone.is_on && sim->alone.has_classes)
		return psd_network_open_classes(platform, sim->alone.most_flows, sim->alone.most_links, wake, sim, err);
	if (sim->exchange)
		return psd_network_open_classes(platform, 0, 0, wake, sim, err);
	return psd_network_open(platform, wake, sim, err);
}

enum psd_status psd_simulate(const struct psd_case *simulated, enum psd_detail detail, psd_span_fn span, void *context,
			     struct psd_outcome *outcome, struct psd_error *err)
{
	const struct psd_scenario *scenario = simulated->costed->scenario;
	struct psd_simulation sim = {
		.simulated = simulated,
		.scenario = scenario,
		.program = &simulated->program,
		.layout = &simulated->plan.layout,
		.detail = detail,
		.n_hosts = psd_layout_hosts(&simulated->plan.layout),
		.is_message_fidelity = scenario->fidelity == PSD_FIDELITY_MESSAGE,
		.n_shift_flows = psd_sim_shift_flows(simulated),
		.span = span,
		.span_context = context,
	};
	const struct psd_seam seam = {
		.now = sim_now,
		.work = sim_work,
		.send = psd_sim_send,
		.collective = psd_sim_steps_start,
		.span = span != NULL ? sim_span : NULL,
		.context = &sim,
	};
	const struct psd_run_length length =
		psd_run_length_make(simulated->system, psd_jitter_iterations(scenario), scenario->jitter_ratio);
	struct psd_platform platform = psd_simulate_platform(simulated);
	enum psd_status status = find_ends_apart(&sim, &platform, err);
	if (status == PSD_OK)
		status = psd_sim_alone_prepare(&sim, &platform, err);
	if (status == PSD_OK)
		status = psd_sim_exchange_prepare(&sim, &platform, err);
	if (status == PSD_OK)
		status = psd_sim_find_alike(&sim, err);
	if (status == PSD_OK)
		status = check_length(&sim, length, err);
	if (status == PSD_OK)
		status = allocate(&sim, err);
	if (status == PSD_OK)
		status = open_network(&sim, &platform, err);
	if (status == PSD_OK)
		status = psd_interpreter_init(
			&sim.interpreter, sim.program, sim.n_hosts, sim.duties_of_host,
			(struct psd_iterations){.end = length.n_iterations, .n_behind = length.n_behind}, &seam, err);
	if (status == PSD_OK)
		status = psd_sim_repeat_prepare(&sim, length, err);
	if (status == PSD_OK) {
		psd_sim_steps_find_latency(&sim);
		if (!sim.exchange && (!sim.alone.is_on || !sim.alone.has_classes))
			psd_sim_start_disturbances(&sim);
		psd_interpreter_begin(&sim.interpreter);
		status = psd_network_run(err);
	}
	if (status == PSD_OK && sim.is_out_of_memory)
		status = out_of_memory(&sim, err);
	if (status == PSD_OK && n_events(&sim) > scenario->most_events)
		status = refuse_length(&sim, err);
	if (status == PSD_OK)
		status = psd_interpreter_check(&sim.interpreter, err);
	if (status == PSD_OK && !fill_outcome(&sim, length, outcome))
		status = out_of_memory(&sim, err);
	release(&sim);
	return status;
}
