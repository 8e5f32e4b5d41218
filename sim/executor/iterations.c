/* Iterations that would repeat earlier ones exactly: they are not simulated, and results count them. */
#include <math.h>
#include <stdlib.h>

#include "engine/program/jitter.h"
#include "sim/executor/simulation.h"

/* True if nothing happens at a time of its own. */
static bool is_steady(const struct psd_scenario *scenario)
{
	for (unsigned i = 0; i < scenario->n_slowdowns; i++)
		if (scenario->slowdowns[i].from_sec > 0.0 || isfinite(scenario->slowdowns[i].until_sec))
			return false;
	return scenario->n_backgrounds == 0 && scenario->network.topology != PSD_TOPOLOGY_PLATFORM &&
	       !psd_jitter_is_drawn(scenario);
}

enum psd_status psd_sim_repeat_prepare(struct psd_simulation *sim, struct psd_run_length length, struct psd_error *err)
{
	const size_t n_nodes = psd_layout_nodes(sim->layout);

	if (sim->detail != PSD_DETAIL_CLASSES || sim->span || psd_sim_has_processors(sim) || !is_steady(sim->scenario))
		return PSD_OK;
	const uint64_t unit =
		UINT64_C(1) * psd_run_unit(sim->simulated->system) * psd_plan_rotation(sim->program->plan);

	if (unit > length.n_iterations)
		return PSD_OK;
	PSD_TRY(psd_repeat_init(&sim->repeat, &sim->interpreter, (uint32_t)unit, length.first_measured, err));
	if (!sim->repeat.is_on)
		return PSD_OK;
	sim->sent_before = calloc(n_nodes, sizeof(*sim->sent_before));
	sim->received_before = calloc(n_nodes, sizeof(*sim->received_before));
	sim->runs_before = calloc(sim->alone.n_kinds + 1, sizeof(*sim->runs_before));
	return sim->sent_before && sim->received_before && sim->runs_before
		       ? PSD_OK
		       : psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for repeated iterations");
}

void psd_sim_repeat_release(struct psd_simulation *sim)
{
	psd_repeat_release(&sim->repeat);
	free(sim->sent_before);
	free(sim->received_before);
	free(sim->runs_before);
}

/* Returns true if the begins of all-reduces and of work tell when they end: all-reduces are alone, work has a constant
 * speed. Flows that share links, and work that an all-reduce slows down, do not end at a known time. */
static bool is_settled(const struct psd_simulation *sim)
{
	const double now_sec = psd_network_now_sec();

	if (!sim->alone.is_on && sim->interpreter.account.n_on_way > 0)
		return false;
	for (unsigned h = 0; h < sim->n_hosts && sim->device_shares; h++)
		if (sim->device_shares[h].is_beside ||
		    (sim->device_shares[h].is_busy && sim->device_shares[h].at_sec < now_sec))
			return false;
	return true;
}

/* Counts what happened since the last end n_units times more, and keeps the sums. */
static void count(struct psd_simulation *sim, uint32_t n_units)
{
	const unsigned n_nodes = sim->alone.is_on ? 0 : psd_layout_nodes(sim->layout);

	for (unsigned node = 0; node < n_nodes; node++) {
		const uint64_t sent = sim->sent_bytes[node], received = sim->received_bytes[node];

		sim->sent_bytes[node] += n_units * (sent - sim->sent_before[node]);
		sim->received_bytes[node] += n_units * (received - sim->received_before[node]);
		sim->sent_before[node] = sent;
		sim->received_before[node] = received;
	}
	for (unsigned k = 0; k < sim->alone.n_kinds; k++) {
		const uint64_t n_runs = sim->alone.kinds[k].n_runs;

		sim->alone.kinds[k].n_runs += n_units * (n_runs - sim->runs_before[k]);
		sim->runs_before[k] = n_runs;
	}
}

void psd_sim_repeat(struct psd_simulation *sim)
{
	const uint32_t n_units = psd_repeat_compare(&sim->repeat, &sim->interpreter, is_settled(sim));
	const uint64_t n_left_out = (uint64_t)n_units * sim->repeat.unit;

	count(sim, n_units);
	sim->n_events -= sim->n_operations * n_left_out / (sim->interpreter.iterations.end + n_left_out);
}
