/* How long to run. */
#include "engine/program/outcome.h"

#include "engine/base/units.h"

/* Rounded up: what one exchange takes is spread over as many iterations as it is made for. */
static uint32_t whole_periods(const struct psd_system *system, uint32_t iterations)
{
	const uint64_t steps = system->is_local ? system->local_sgd.steps : 1;

	return (uint32_t)((iterations + steps - 1) / steps * steps);
}

struct psd_run_length psd_run_length_make(const struct psd_system *system, uint32_t requested, double jitter_ratio)
{
	const uint32_t measured = requested > 0				 ? requested
				  : jitter_ratio > 0.0			 ? 20
				  : system->barrier == PSD_BARRIER_LAYER ? 2
									 : 1;
	const uint32_t first = system->barrier == PSD_BARRIER_LAYER ? 3 : system->is_sparse ? 1 : 0;
	const uint32_t whole_first = whole_periods(system, first);

	return (struct psd_run_length){whole_first + whole_periods(system, measured), whole_first, UINT64_MAX};
}

enum psd_status psd_refuse_length(const struct psd_system *system, unsigned workers, uint64_t most_events,
				  struct psd_error *err)
{
	char count[PSD_UNITS_TEXT_MAX];

	return psd_error_set(
		err, PSD_EINVAL, system->at,
		"system '%s' on %u workers needs more than %s events: ask for fewer nodes or iterations, for "
		"flow fidelity or an estimate, or for a larger 'most_events'",
		system->name, workers, psd_units_write_count(most_events, count));
}
