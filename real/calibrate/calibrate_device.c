/* Measures a device's own copies from and to its host's memory, and its updates, between its events. One process
 * measures, since in a cluster every worker has a device. */
#include <math.h>

#include "real/base/fit.h"
#include "real/calibrate/calibrate_parts.h"
#include "real/calibrate/shared_results.h"
#include "real/calibrate/stopwatch.h"
#include "real/work/solver.h"

enum {
	REPEATS = 7,
	SIZES = 6,		   /* sizes of copies, each four times the one before */
	UPDATE_ELEMENTS = 4 << 20, /* 16 MiB */
};

#define LEAST_BYTES	(UINT64_C(64) << 10)
#define MOST_BYTES	(LEAST_BYTES << 2 * (SIZES - 1)) /* 64 MiB */
#define BITS_OF_ELEMENT 32.0

/* The member's values: seconds of copies out, then in, a size after the other; then of updates. */
enum { AT_OUT = 0, AT_IN = SIZES * REPEATS, AT_UPDATES = 2 * SIZES * REPEATS, VALUES = AT_UPDATES + REPEATS };

/* The device and its memory during a measurement. */
struct bench {
	struct psd_stopwatch watch;
	const struct psd_device_kind *kind;
	struct psd_device *device;
	void *here,
		*there; /* MOST_BYTES each in the host's and the device's memory; fits the four arrays of an update */
};

static uint64_t bytes_of(unsigned size)
{
	return LEAST_BYTES << 2 * size;
}

static enum psd_status time_copy(struct bench *bench, bool is_out, uint64_t bytes, double *sec, struct psd_error *err)
{
	const enum psd_stream stream = is_out ? PSD_STREAM_COPY_OUT : PSD_STREAM_COPY_IN;
	const uint64_t from = psd_stopwatch_mark(&bench->watch, stream);
	enum psd_status status = bench->kind->copy(bench->device, stream, is_out ? bench->here : bench->there,
						   is_out ? bench->there : bench->here, bytes, err);
	const uint64_t to = psd_stopwatch_mark(&bench->watch, stream);

	if (!status)
		status = psd_stopwatch_wait(&bench->watch, stream, to, err);
	*sec = status ? 0.0 : psd_stopwatch_between_sec(&bench->watch, stream, from, to);
	return status;
}

/* The first of each size warms up. */
static enum psd_status time_copies(struct bench *bench, double *values, struct psd_error *err)
{
	for (unsigned c = 0; c < 2 * SIZES; c++)
		for (unsigned i = 0; i <= REPEATS; i++)
			PSD_TRY(time_copy(bench, c < SIZES, bytes_of(c % SIZES), values + c * REPEATS + (i ? i - 1 : 0),
					  err));
	return PSD_OK;
}

static enum psd_status time_update(struct bench *bench, const struct psd_update *update, double *sec,
				   struct psd_error *err)
{
	float *weight = bench->there, *gradient = weight + UPDATE_ELEMENTS;
	const struct psd_moments moments = {gradient + UPDATE_ELEMENTS, gradient + 2 * UPDATE_ELEMENTS};
	const struct psd_apply run = {*update, weight, gradient, moments, UPDATE_ELEMENTS, NULL, NULL};
	const uint64_t from = psd_stopwatch_mark(&bench->watch, PSD_STREAM_COMPUTE);
	enum psd_status status = psd_run_apply(bench->kind->kernels, bench->device, &run, err);
	const uint64_t to = psd_stopwatch_mark(&bench->watch, PSD_STREAM_COMPUTE);

	if (!status)
		status = psd_stopwatch_wait(&bench->watch, PSD_STREAM_COMPUTE, to, err);
	*sec = status ? 0.0 : psd_stopwatch_between_sec(&bench->watch, PSD_STREAM_COMPUTE, from, to);
	return status;
}

static enum psd_status time_updates(struct bench *bench, const struct psd_train *train, double *values,
				    struct psd_error *err)
{
	const struct psd_update update = psd_solver_update(train, 1, 0);

	for (unsigned i = 0; i <= REPEATS; i++)
		PSD_TRY(time_update(bench, &update, values + AT_UPDATES + (i ? i - 1 : 0), err));
	return PSD_OK;
}

static enum psd_status time_device(void *context, unsigned member, struct psd_error *err)
{
	const struct psd_shared_results *results = context;
	const struct psd_calibrate_options *options = results->calibration->options;
	const struct psd_train *train = &options->costed->scenario->train;
	const struct psd_device_options device_options = {.n_threads = train->threads, .arithmetic = train->arithmetic};
	struct bench bench = {.kind = options->device};

	PSD_TRY(bench.kind->open(&bench.device, &device_options, err));
	bench.watch = (struct psd_stopwatch){.kind = bench.kind, .device = bench.device};
	enum psd_status status = bench.kind->take(bench.device, MOST_BYTES, &bench.there, err);
	if (!status)
		status = bench.kind->take_host(bench.device, MOST_BYTES, &bench.here, err);
	if (!status)
		status = time_copies(&bench, psd_shared_results_values(results, member), err);
	if (!status)
		status = time_updates(&bench, train, psd_shared_results_values(results, member), err);
	bench.kind->close(bench.device);
	return status;
}

/* The slope of seconds over bytes. A copy's constant overlaps with other copies. */
static struct psd_summary rate_of(const double *values, double *residual_ratio)
{
	struct psd_summary rate = {.n_samples = SIZES * REPEATS};
	struct psd_fit_sample samples[SIZES * REPEATS];
	struct psd_fit_line line = {.sec_per_byte = 1.0};

	for (unsigned s = 0; s < SIZES * REPEATS; s++)
		samples[s] = (struct psd_fit_sample){(double)bytes_of(s / REPEATS), fmax(values[s], 1e-9)};
	(void)psd_fit_line(&line, samples, SIZES * REPEATS); /* cannot fail: there are several sizes */
	rate.median = 8.0 / fmax(line.sec_per_byte, 1e-15);
	rate.spread_ratio = line.residual_ratio;
	*residual_ratio = line.residual_ratio;
	return rate;
}

/* A prediction has one rate for both directions: the lower one. */
static void note(struct psd_calibration *calibration, const double *values)
{
	double residual_ratio[2], update_sec[REPEATS];
	const struct psd_summary out = rate_of(values + AT_OUT, &residual_ratio[0]);
	const struct psd_summary in = rate_of(values + AT_IN, &residual_ratio[1]);
	const bool is_out = out.median <= in.median;

	if (psd_calibrate_note(calibration, PSD_QUANTITY_COPY_BPS, is_out ? out : in,
			       "64 KiB to 64 MiB, out %.4g, in %.4g GB/s", out.median / 8e9, in.median / 8e9))
		calibration->measured[PSD_QUANTITY_COPY_BPS].residual_ratio = residual_ratio[is_out ? 0 : 1];
	for (unsigned i = 0; i < REPEATS; i++)
		update_sec[i] = values[AT_UPDATES + i];
	struct psd_summary update = psd_fit_summary(update_sec, REPEATS);
	update.median = BITS_OF_ELEMENT * UPDATE_ELEMENTS / fmax(update.median, 1e-12);
	psd_calibrate_note(calibration, PSD_QUANTITY_UPDATE_BPS, update, "16 MiB, on the device");
}

enum psd_status psd_calibrate_device(struct psd_calibration *calibration, struct psd_error *err)
{
	struct psd_shared_results results = {.calibration = calibration, .n_members = 1, .n_values = VALUES};

	if (!calibration->options->device->has_own_memory)
		return PSD_OK;
	const enum psd_status status = psd_shared_results_run(&results, time_device, err);
	if (!status)
		note(calibration, psd_shared_results_values(&results, 0));
	psd_shared_results_close(&results);
	return status;
}
