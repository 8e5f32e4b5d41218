/* What a message takes of processors at its two ends, beside its bytes: two workers exchange many small tensors, for a short and for a long
 * while, and the processor time of all their processes grows by that of the messages in between. Chosen over the wall time of messages in a row,
 * where an end that is woken once handles many of them: in training most messages wake somebody. */
#include <sys/resource.h>

#include "real/calibrate_parts.h"
#include "real/exchange.h"

enum {
	WORKERS = 2,
	TENSORS = 64,
	SIDE = 16, /* 1 KiB, and half of it to each shard */
	SHORT_ITERATIONS = 10,
	LONG_ITERATIONS = 210,
	SAMPLES = 3,
};

/* Of all child processes that have ended. */
static double children_sec(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_CHILDREN, &usage) < 0)
		return 0.0;
	return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
	       1e-6 * ((double)usage.ru_utime.tv_usec + (double)usage.ru_stime.tv_usec);
}

/* Processor seconds of a whole run. */
static enum psd_status run(const struct psd_calibration *calibration, uint32_t n_iterations, double *sec, struct psd_error *err)
{
	const struct psd_exchange_options options = {
		.n_workers = WORKERS,
		.n_tensors = TENSORS,
		.side = SIDE,
		.n_streams = 1,
		.n_iterations = n_iterations,
		.rate_bps = calibration->link_bps,
		.latency_sec = calibration->options->matter->scenario->network.latency_sec,
		.ground = calibration->options->ground,
		.stall_sec = calibration->options->stall_sec,
		.stop_signal = calibration->options->stop_signal,
	};
	const double before_sec = children_sec();
	struct psd_exchange exchange;
	const enum psd_status status = psd_exchange_run(&exchange, &options, err);

	if (status)
		return status;
	psd_exchange_release(&exchange);
	*sec = children_sec() - before_sec;
	return PSD_OK;
}

enum psd_status psd_calibrate_handling(struct psd_calibration *calibration, struct psd_error *err)
{
	/* each worker sends half of every gradient and half of all parameters to the other */
	const double n_messages = (LONG_ITERATIONS - SHORT_ITERATIONS) * (double)TENSORS * 2.0 * WORKERS;
	double values[SAMPLES], short_sec, long_sec;

	for (unsigned i = 0; i < SAMPLES; i++) {
		enum psd_status status = run(calibration, SHORT_ITERATIONS, &short_sec, err);

		if (!status)
			status = run(calibration, LONG_ITERATIONS, &long_sec, err);
		if (status)
			return status;
		values[i] = long_sec > short_sec ? (long_sec - short_sec) / (2.0 * n_messages) : 0.0;
	}
	(void)psd_calibrate_note(calibration, PSD_QUANTITY_HANDLING_SEC, psd_fit_summary(values, SAMPLES),
				 "%d workers, tensors of 1 KiB", (int)WORKERS);
	return PSD_OK;
}
