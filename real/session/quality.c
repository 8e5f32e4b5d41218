#include "real/session/quality.h"

#include <math.h>

uint32_t psd_quality_steps(const struct psd_local_sgd *local, const struct psd_losses_seen *losses, uint32_t before,
			   bool drops)
{
	const double wanted = ceil(sqrt(losses->last / losses->first) * (double)local->steps);
	const double steps = wanted < before ? wanted : floor(before / 2.0); /* also where the wanted number is NaN */

	if (drops)
		return 1;
	if (local->gap_ratio > 0.0 && !(losses->last <= losses->lowest * (1.0 + local->gap_ratio)))
		return 1;
	return (uint32_t)fmax(steps, 1.0);
}
