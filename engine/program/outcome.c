/* Length of a run. */
#include "engine/program/outcome.h"

#include "engine/base/units.h"

/* Equal workers begin in step. Where separate servers bound them, a few iterations pass until pushes of some overlap
 * with pulls of others. */
enum { ASYNC_FIRST = 10, ASYNC_ITERATIONS = 10 };

/* Workers that keep a tensor for all have more to send than others, and fall behind them in the first iterations. With
 * Adam's broadcasts, those of one iteration meet the next one's pushes; none follow the last iteration. */
enum { ROOTS_FIRST = 2 };

bool psd_outcome_takes_factors(const struct psd_program *program)
{
	for (uint32_t i = 0; i < program->n_ops; i++)
		if (psd_ops[program->ops[i].kind].rebuilds)
			return true;
	return false;
}

void psd_outcome_lengthen(struct psd_outcome *outcome, double iteration_sec)
{
	const double sec = iteration_sec - outcome->iteration_sec;

	outcome->iteration_sec = iteration_sec;
	outcome->parts.exposed_comm_sec += sec;
	for (unsigned p = 0; p < PSD_PERCENTILES && outcome->has_percentiles; p++)
		outcome->percentiles_sec[p] += sec;
}

uint32_t psd_run_unit(const struct psd_system *system)
{
	if (system->is_managed) /* with stale reads whole clocks, too */
		return (uint32_t)(system->staleness / system->managed.clock + 1) * (uint32_t)system->managed.clock;
	return system->is_local ? (uint32_t)system->local_sgd.steps : system->staleness + 1;
}

/* Rounded up to whole units. */
static uint32_t whole(const struct psd_system *system, uint32_t iterations)
{
	const uint32_t unit = psd_run_unit(system);

	return (iterations + unit - 1) / unit * unit;
}

/* With late updates, workers begin ahead of them and then wait for data still on their way. */
uint32_t psd_run_first_measured(const struct psd_system *system)
{
	const bool has_roots = system->sync == PSD_SYNC_ADAM || system->sync == PSD_SYNC_SACP;
	const uint32_t of_roots = has_roots ? ROOTS_FIRST : 0;
	const uint32_t full = of_roots + (system->barrier == PSD_BARRIER_LAYER	    ? 3u
					  : system->is_sparse || system->is_managed ? 1u
										    : 0u);

	if (system->is_local && system->local_sgd.delay > 0)
		return full + system->local_sgd.delay + 1;
	/* with a bound that counts: until quick workers wait for slow ones */
	if (system->is_async)
		return system->async.bound <= PSD_MOST_STALENESS ? 2 * ((uint32_t)system->async.bound + 1)
								 : ASYNC_FIRST;
	return full + (system->staleness > 0 ? 2 * (system->staleness + 1) : 0);
}

struct psd_run_length psd_run_length_make(const struct psd_system *system, uint32_t requested, double jitter_ratio)
{
	const uint32_t measured = requested > 0				 ? requested
				  : jitter_ratio > 0.0			 ? 20
				  : system->is_async			 ? ASYNC_ITERATIONS
				  : system->barrier == PSD_BARRIER_LAYER ? 2
									 : 1;
	const uint32_t first = whole(system, psd_run_first_measured(system));

	const uint32_t n_behind = system->sync == PSD_SYNC_ADAM ? whole(system, 1) : 0;

	return (struct psd_run_length){.n_iterations = first + whole(system, measured) + n_behind,
				       .first_measured = first,
				       .n_behind = n_behind,
				       .most_events = UINT64_MAX};
}

enum psd_status psd_refuse_length(const struct psd_system *system, unsigned workers, uint64_t most_events,
				  enum psd_relief relief, struct psd_error *err)
{
	static const char *const words[] = {
		[PSD_RELIEF_NODES] = "fewer nodes",
		[PSD_RELIEF_LENGTH] = "fewer nodes or iterations",
		[PSD_RELIEF_ESTIMATE] = "fewer nodes or iterations, for an estimate",
		[PSD_RELIEF_FLOW] = "fewer nodes or iterations, for flow fidelity",
		[PSD_RELIEF_FLOW_OR_ESTIMATE] = "fewer nodes or iterations, for flow fidelity or an estimate",
	};
	char count[PSD_UNITS_TEXT_MAX];

	psd_error_set(err, PSD_EINVAL, system->at,
		      "system '%s' on %u workers needs more than %s events: ask for %s, or for a larger 'most_events'",
		      system->name, workers, psd_units_write_count(most_events, count), words[relief]);
	if (err)
		err->is_limit = true;
	return PSD_EINVAL;
}
