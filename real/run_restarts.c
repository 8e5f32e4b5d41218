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

/* As hosts joined, one of them had but earlier checkpoints: this one's are not those that all have. */
static bool is_too_late(const struct psd_run *run)
{
	return run->attempt.first_iteration < run->first_iteration;
}

/* For hosts to agree on a checkpoint is no restart. Each time they come to an earlier one, at last to the beginning. */
bool psd_run_restarts(struct psd_run *run, struct psd_error *err)
{
	const struct psd_error lost = *err;

	if (run->options->n_restarts == 0 || !is_worth_a_restart(lost.status))
		return false;
	if (run->n_restarts == run->options->n_restarts && !is_too_late(run)) {
		psd_error_set(err, lost.status, PSD_NOWHERE, "%s; no restart is left after %u", lost.text,
			      run->n_restarts);
		return false;
	}
	run->below_iterations = is_too_late(run) ? run->attempt.first_iteration + 1 : 0;
	run->n_restarts += !is_too_late(run);
	run->attempt.number = run->attempt.next_number;
	run->lost = lost;
	return true;
}

void psd_run_say_restart(const struct psd_run *run, const struct psd_system *system, enum psd_status status)
{
	char from[48] = "begins again", nth[64] = "";

	if (!run->lost.status || (run->options->is_quiet && !status))
		return;
	if (status)
		snprintf(from, sizeof(from), "does not go on");
	else if (run->first_iteration > 0)
		snprintf(from, sizeof(from), "goes on after %" PRIu32 " iterations", run->first_iteration);
	if (run->n_restarts > 0)
		snprintf(nth, sizeof(nth), ", restart %u of %" PRIu64, run->n_restarts, run->options->n_restarts);
	psd_console_say("psd-run: %s; %s %s%s", run->lost.text, system->name, from, nth);
}
