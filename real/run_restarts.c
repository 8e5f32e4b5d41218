/* When a system is started again: after which failures, how often, and what is said of it. */
#include <inttypes.h>

#include "real/base/console.h"
#include "real/run_parts.h"

enum psd_status psd_run_check_restarts(const struct psd_run *run, const struct psd_system *system,
				       struct psd_error *err)
{
	if (run->options->n_restarts == 0 || psd_run_replay(run))
		return PSD_OK;
	return psd_worker_check_restarts(system, run->device, err);
}

/* Of a process that was killed, of a host or a link that is gone, and of whoever stands still another one takes the
 * place: PSD_ELOST. What a process says of itself would come again at once, and has another status: what is asked for
 * (PSD_EINVAL), files and checkpoints (PSD_EFILE), memory (PSD_ENOMEM), a device, a full disk (PSD_ERUN). A loss that
 * is no number is none of these: the run goes on with it. Whoever interrupts psd-run wants it to end. */
static bool is_worth_a_restart(enum psd_status status)
{
	return status == PSD_ELOST && !psd_console_stop_signal;
}

bool psd_run_restarts(struct psd_run *run, struct psd_error *err)
{
	const struct psd_error lost = *err;

	if (run->options->n_restarts == 0 || !is_worth_a_restart(lost.status))
		return false;
	if (run->n_restarts == run->options->n_restarts) {
		psd_error_set(err, lost.status, PSD_NOWHERE, "%s; no restart is left after %u", lost.text,
			      run->n_restarts);
		return false;
	}
	run->n_restarts++;
	run->lost = lost;
	return true;
}

void psd_run_say_restart(const struct psd_run *run, const struct psd_system *system, enum psd_status status)
{
	char from[48] = "begins again";

	if (run->n_restarts == 0 || (run->options->is_quiet && !status))
		return;
	if (status)
		snprintf(from, sizeof(from), "does not go on");
	else if (run->first_iteration > 0)
		snprintf(from, sizeof(from), "goes on after %" PRIu32 " iterations", run->first_iteration);
	psd_console_say("psd-run: %s; %s %s, restart %u of %" PRIu64, run->lost.text, system->name, from,
			run->n_restarts, run->options->n_restarts);
}
