/* Runs the interpreter for every host of a case, with SimGrid as clock and network. Refuses to print and to fork. */
#include "sim/executor/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/program/jitter.h"
#include "sim/executor/simulation.h"

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
	const double cores = psd_sim_has_processors(sim) ? psd_op_cores(op, &sim->simulated->plan.machine) : 0.0;
	sec = psd_jittered_sec(sim->scenario, host, op, resource, task, sec);
	if (resource == PSD_RESOURCE_DEVICE && sim->scenario->n_slowdowns > 0)
		sec = psd_sim_slowed_sec(sim, psd_layout_node(sim->layout, host), sec);
	if (resource == PSD_RESOURCE_DEVICE && cores > 0.0)
		psd_interpreter_worked(&sim->interpreter, host, sec);
	if (cores > 0.0)
		psd_sim_process(sim, host, sec * cores, cores, tag);
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

void psd_sim_wake(struct psd_simulation *sim, uint64_t value)
{
	const unsigned host = psd_event_tag_host(value);
	const enum psd_wake kind = (enum psd_wake)psd_event_tag_kind(value);

	sim->n_events += kind != PSD_WAKE_WORK; /* the ends of operations were counted by check_length() already */
	if (sim->n_events + psd_network_work() > sim->scenario->most_events) {
		psd_network_stop();
		return;
	}
	switch (kind) {
	case PSD_WAKE_WORK:
		if (psd_sim_work_ends(sim, host, (enum psd_resource)psd_event_tag_rest(value)))
			psd_interpreter_finished(&sim->interpreter, host, (enum psd_resource)psd_event_tag_rest(value));
		else
			sim->n_events++;
		break;
	case PSD_WAKE_FLOW: psd_sim_end_flow(sim, host, (unsigned)psd_event_tag_rest(value)); break;
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
	case PSD_WAKE_CROSSING: psd_sim_end_crossing(sim, (unsigned)psd_event_tag_rest(value)); break;
	}
	stop_when_complete(sim);
}

static void wake(void *context, uint64_t value)
{
	psd_sim_wake(context, value);
}

static void sim_span(void *context, unsigned host, struct psd_task task, double start_sec, double end_sec)
{
	struct psd_simulation *sim = context;
	const struct psd_span span = {host, task, false, sim->program->ops[task.op].bytes, start_sec, end_sec};
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
		const double times = op->is_exchange ? n_exchanges : length.n_iterations;
		n_operations += times * psd_layout_hosts(sim->layout);
		n_messages += times * psd_sim_transfer_events(sim, op);
	}
	if (n_operations + n_messages > most)
		return refuse_length(sim, err);
	sim->n_events = (uint64_t)n_operations;
	return PSD_OK;
}

/* Makes the duties of all hosts; hosts with equal duties share one struct psd_duties. */
static enum psd_status assign_duties(struct psd_simulation *sim, struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(sim->layout);
	const size_t waits_size = sim->program->n_ops * sizeof(*sim->duties->waits);
	unsigned *duties_index = calloc(n_hosts, sizeof(*duties_index));
	enum psd_status status = duties_index != NULL ? PSD_OK : out_of_memory(sim, err);
	for (unsigned h = 0; h < n_hosts && status == PSD_OK; h++) {
		struct psd_duties mine;
		status = psd_duties_make(&mine, sim->program, h, psd_sim_arrivals, sim, err);
		if (status != PSD_OK)
			break;
		unsigned d = 0;
		while (d < sim->n_duties && memcmp(sim->duties[d].waits, mine.waits, waits_size) != 0)
			d++;
		duties_index[h] = d;
		if (d < sim->n_duties) {
			psd_duties_release(&mine);
			continue;
		}
		struct psd_duties *grown = realloc(sim->duties, (d + 1) * sizeof(*grown));
		if (grown == NULL) {
			psd_duties_release(&mine);
			status = out_of_memory(sim, err);
			break;
		}
		sim->duties = grown;
		sim->duties[sim->n_duties++] = mine;
	}
	for (unsigned h = 0; h < n_hosts && status == PSD_OK; h++)
		sim->duties_of_host[h] = &sim->duties[duties_index[h]];
	free(duties_index);
	return status;
}

static enum psd_status allocate(struct psd_simulation *sim, struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(sim->layout);
	const unsigned n_nodes = psd_layout_nodes(sim->layout);
	sim->sendings = calloc(n_hosts, sizeof(*sim->sendings));
	sim->transfers = calloc(n_hosts, sizeof(*sim->transfers));
	sim->duties_of_host = calloc(n_hosts, sizeof(*sim->duties_of_host));
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
	free(sim->device_shares);
	free(sim->crossings);
	for (unsigned d = 0; d < sim->n_duties; d++)
		psd_duties_release(&sim->duties[d]);
	free(sim->duties);
	free(sim->duties_of_host);
	free(sim->sendings);
	free(sim->n_shift_flows_done);
	free(sim->transfers);
	free(sim->delays_sec);
	free(sim->sent_bytes);
	free(sim->received_bytes);
}

/* False: out of memory. */
static bool fill_outcome(const struct psd_simulation *sim, struct psd_run_length length, struct psd_outcome *outcome)
{
	*outcome = (struct psd_outcome){
		.iteration_sec = psd_interpreter_iteration_sec(&sim->interpreter, length.first_measured),
		.parts = psd_interpreter_parts(&sim->interpreter, length.first_measured),
		.n_iterations = length.n_iterations,
		.n_events = sim->n_events + psd_network_work(),
		.takes_factors = psd_outcome_takes_factors(sim->program),
	};
	for (int r = 0; r < PSD_RESOURCES; r++)
		outcome->busy_sec[r] = psd_interpreter_busy_sec(&sim->interpreter, (enum psd_resource)r);
	for (unsigned node = 0; node < psd_layout_nodes(sim->layout); node++) {
		const uint64_t sent_bytes = sim->sent_bytes[node] / length.n_iterations;
		const uint64_t received_bytes = sim->received_bytes[node] / length.n_iterations;
		if (sent_bytes > outcome->sent_bytes_per_node)
			outcome->sent_bytes_per_node = sent_bytes;
		if (received_bytes > outcome->received_bytes_per_node)
			outcome->received_bytes_per_node = received_bytes;
	}
	outcome->has_percentiles = psd_jitter_is_drawn(sim->scenario);
	return !outcome->has_percentiles ||
	       psd_interpreter_percentiles(&sim->interpreter, length.first_measured, outcome->percentiles_sec);
}

enum psd_status psd_simulate(const struct psd_case *simulated, psd_span_fn span, void *context,
			     struct psd_outcome *outcome, struct psd_error *err)
{
	const struct psd_scenario *scenario = simulated->costed->scenario;
	struct psd_simulation sim = {
		.simulated = simulated,
		.scenario = scenario,
		.program = &simulated->program,
		.layout = &simulated->plan.layout,
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
	const struct psd_platform platform = psd_simulate_platform(simulated);
	enum psd_status status = check_length(&sim, length, err);
	if (status == PSD_OK)
		status = allocate(&sim, err);
	if (status == PSD_OK)
		status = psd_network_open(&platform, wake, &sim, err);
	if (status == PSD_OK)
		status = psd_interpreter_init(
			&sim.interpreter, sim.program, psd_layout_hosts(sim.layout), sim.duties_of_host,
			(struct psd_iterations){.first = 0, .end = length.n_iterations}, &seam, err);
	if (status == PSD_OK) {
		psd_sim_steps_find_latency(&sim);
		psd_sim_start_disturbances(&sim);
		psd_interpreter_begin(&sim.interpreter);
		status = psd_network_run(err);
	}
	if (status == PSD_OK && sim.is_out_of_memory)
		status = out_of_memory(&sim, err);
	if (status == PSD_OK && sim.n_events + psd_network_work() > scenario->most_events)
		status = refuse_length(&sim, err);
	if (status == PSD_OK)
		status = psd_interpreter_check(&sim.interpreter, err);
	if (status == PSD_OK && !fill_outcome(&sim, length, outcome))
		status = out_of_memory(&sim, err);
	release(&sim);
	return status;
}
