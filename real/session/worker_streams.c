/* Local steps whose workers have equal parameters only at the end of a run. A checkpoint within says since when, so
 * that a resumed run continues with the exchanges that were begun. */
#include "real/keep/state.h"
#include "real/session/worker_parts.h"

/* At the end of a run parameters are equal. */
static void keep(void *context, struct psd_state *state)
{
	struct psd_worker *worker = context;
	const struct psd_worker_options *options = worker->host.options;
	const bool is_over = worker->phase != PSD_PHASE_OPENING &&
			     psd_interpreter_iteration(&worker->interpreter, 0) == options->n_iterations;

	*worker->saved_equal = is_over ? options->n_iterations : worker->equal_iteration;
	psd_state_add_vector(state, "exchanges", PSD_TENSOR_F64, 1, worker->saved_equal);
}

static enum psd_status take(void *context, const char *path, struct psd_error *err)
{
	struct psd_worker *worker = context;
	const double equal = *worker->saved_equal;

	if (!(equal >= 0.0 && equal <= worker->host.options->first_iteration))
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
				     "'exchanges' of the checkpoint is %g, must be 0 to %u", equal,
				     (unsigned)worker->host.options->first_iteration);
	worker->equal_iteration = (uint32_t)equal;
	return PSD_OK;
}

enum psd_status psd_worker_open_streams(struct psd_worker *worker, struct psd_error *err)
{
	worker->equal_iteration = worker->host.options->first_iteration;
	if (!psd_plan_streams(worker->host.plan))
		return PSD_OK;
	worker->saved_equal = psd_host_take(&worker->host, 1, sizeof(*worker->saved_equal), err);
	worker->host.keepers[worker->host.n_keepers++] =
		(struct psd_keeper){"exchanges", "exchanges of fragments", keep, take, NULL, worker};
	return worker->saved_equal ? PSD_OK : PSD_ENOMEM;
}
