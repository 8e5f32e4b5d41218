/* How long to run. */
#include "engine/program/outcome.h"

struct psd_run_length psd_run_length_make(const struct psd_system *system, uint32_t requested, double jitter_ratio)
{
	const uint32_t measured = requested > 0				 ? requested
				  : jitter_ratio > 0.0			 ? 20
				  : system->barrier == PSD_BARRIER_LAYER ? 2
									 : 1;
	const uint32_t first = system->barrier == PSD_BARRIER_LAYER ? 3 : 0;
	return (struct psd_run_length){first + measured, first};
}
