/* Measures the processor time of messages. Two workers exchange tensors for a short and for a long time; the difference
 * of their processes' times counts, and that of the kernel's time for the load. The load is a process on every core
 * that multiplies matrices, as in training; with layers on a device there is none. One small tensor gives the time of a
 * message that its receiver waits for, large ones the time of their bytes. Other programs disturb processor time far
 * less than wall time, or than the load's loss of products. */
#define _GNU_SOURCE
#include <math.h>
#include <sys/resource.h>

#include "real/calibrate/calibrate_parts.h"
#include "real/calibrate/core_load.h"
#include "real/calibrate/exchange.h"

enum {
	WORKERS = 2,
	SMALL_SIDE = 32, /* 4 KiB, and half of it to each shard */
	LARGE_TENSORS = 8,
	LEAST_SIDE = 256, /* 256 KiB */
	MOST_SIDE = 1024, /* 4 MiB */
	SHORT_ITERATIONS = 2,
	SAMPLES = 4,
};

/* No core moves more through its memory. The value if other programs hide an exchange's time. */
#define MOST_BYTES_BPS	  400e9
#define WINDOW_SEC	  1.0  /* length of an exchange of large tensors */
#define SMALL_WINDOW_SEC  0.5  /* length of an exchange of a small tensor */
#define SMALL_SEC	  3e-4 /* an iteration of the latter, without the links' latency */
#define TRANSPORT_TO_BUSY 8.0  /* ratio of the machine's rate to links that keep a core of two nodes busy */

/* ---- processor time ---- */

static double seconds_of(const struct timeval *time)
{
	return (double)time->tv_sec + 1e-6 * (double)time->tv_usec;
}

/* Processor seconds of all child processes that have ended. */
static double children_sec(void)
{
	struct rusage usage = {.ru_maxrss = 0};

	(void)getrusage(RUSAGE_CHILDREN, &usage); /* fails for other first arguments only */
	return seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime);
}

/* ---- exchanges ---- */

static struct psd_exchange_options exchange_of(const struct psd_calibration *calibration, double link_bps)
{
	struct psd_exchange_options options = psd_calibrate_exchange(calibration, link_bps);

	options.n_workers = WORKERS;
	options.n_streams = psd_train_least_streams(&calibration->options->costed->scenario->train);
	return options;
}

static struct psd_exchange_options small_exchange(const struct psd_calibration *calibration)
{
	struct psd_exchange_options options = exchange_of(calibration, calibration->link_bps);

	options.side = SMALL_SIDE;
	options.n_iterations = (uint32_t)ceil(SMALL_WINDOW_SEC / (SMALL_SEC + 2.0 * options.latency_sec));
	return options;
}

/* The links are so fast that processors matter. On slow links the processor time of bytes lengthens no iteration. */
static struct psd_exchange_options large_exchange(const struct psd_calibration *calibration)
{
	const double rate_bps = calibration->measured[PSD_QUANTITY_TRANSPORT_BPS].value / TRANSPORT_TO_BUSY;
	struct psd_exchange_options options = exchange_of(calibration, calibration->link_bps > 0.0 ? rate_bps : 0.0);

	options.n_tensors = LARGE_TENSORS;
	options.side = LEAST_SIDE;
	while (options.side < MOST_SIDE &&
	       8.0 * LARGE_TENSORS * PSD_EXCHANGE_BYTES(2 * options.side) / rate_bps < WINDOW_SEC)
		options.side *= 2;
	options.n_iterations = (uint32_t)fmax(
		1.0, ceil(WINDOW_SEC * rate_bps / (8.0 * LARGE_TENSORS * PSD_EXCHANGE_BYTES(options.side))));
	return options;
}

/* Each worker sends half of every gradient and half of all parameters to the other. */
static double messages_of(const struct psd_exchange_options *options)
{
	return 2.0 * WORKERS * options->n_tensors;
}

/* Bits that the two workers, which are shards as well, send and receive. */
static double moved_bits(const struct psd_exchange_options *options)
{
	return 8.0 * 2.0 * WORKERS * options->n_tensors * PSD_EXCHANGE_BYTES(options->side);
}

/* Seconds in which the shards reduce all workers' gradients. */
static double reduce_sec(const struct psd_calibration *calibration, const struct psd_exchange_options *options)
{
	return 8.0 * WORKERS * options->n_tensors * PSD_EXCHANGE_BYTES(options->side) /
	       calibration->measured[PSD_QUANTITY_REDUCE_BPS].value;
}

/* ---- the measurement ---- */

static enum psd_status run_between(const struct psd_core_load *load, struct psd_exchange_options options,
				   uint32_t n_iterations, double *sec, struct psd_calibrate_point *point,
				   struct psd_error *err)
{
	const double before_sec = children_sec() + psd_core_load_kernel_sec(load);
	struct psd_exchange exchange;

	options.n_iterations = n_iterations;
	PSD_TRY(psd_exchange_run(&exchange, &options, err));
	*sec = children_sec() + psd_core_load_kernel_sec(load) - before_sec;
	*point = (struct psd_calibrate_point){
		.workers = WORKERS,
		.bandwidth_bps = options.rate_bps,
		.iteration_sec = exchange.iteration_sec,
		.node_bytes = (uint64_t)(options.n_tensors * PSD_EXCHANGE_BYTES(options.side)),
	};
	psd_exchange_release(&exchange);
	return PSD_OK;
}

static enum psd_status sample_beside(struct psd_core_load *load, const struct psd_exchange_options *options,
				     double values[SAMPLES], struct psd_calibrate_point *point, struct psd_error *err)
{
	for (unsigned i = 0; i < SAMPLES; i++) {
		double short_sec = 0.0, long_sec = 0.0;

		PSD_TRY(run_between(load, *options, SHORT_ITERATIONS, &short_sec, point, err));
		PSD_TRY(run_between(load, *options, SHORT_ITERATIONS + options->n_iterations, &long_sec, point, err));
		PSD_TRY(psd_core_load_check(load, err));
		values[i] = (long_sec - short_sec) / options->n_iterations;
	}
	return PSD_OK;
}

/* Processor seconds of one iteration of all workers. */
static enum psd_status sample(const struct psd_calibration *calibration, const struct psd_exchange_options *options,
			      double values[SAMPLES], struct psd_calibrate_point *point, struct psd_error *err)
{
	const unsigned first_core = calibration->options->device->has_own_memory ? calibration->cores : 0;
	struct psd_core_load load;

	PSD_TRY(psd_core_load_start(&load, first_core, calibration->cores, err));
	const enum psd_status status = sample_beside(&load, options, values, point, err);
	psd_core_load_stop(&load);
	return status;
}

/* Measures workers that have no other worker to send to. */
static enum psd_status sample_solo(const struct psd_calibration *calibration, struct psd_exchange_options options,
				   double *solo_sec, struct psd_error *err)
{
	struct psd_calibrate_point point;
	double values[SAMPLES];

	options.n_workers = 1;
	options.cluster_kind = PSD_CLUSTER_LOOPBACK;
	PSD_TRY(sample(calibration, &options, values, &point, err));
	*solo_sec = WORKERS * psd_fit_summary(values, SAMPLES).median;
	return PSD_OK;
}

/* Each end of a message takes half of its time. Its few bytes take almost none. */
enum psd_status psd_calibrate_message(struct psd_calibration *calibration, struct psd_error *err)
{
	const struct psd_exchange_options options = small_exchange(calibration);
	struct psd_calibrate_point point;
	double values[SAMPLES], solo_sec = 0.0;

	PSD_TRY(sample_solo(calibration, options, &solo_sec, err));
	PSD_TRY(sample(calibration, &options, values, &point, err));
	for (unsigned i = 0; i < SAMPLES; i++)
		values[i] = fmax(0.0, (values[i] - solo_sec) / (2.0 * messages_of(&options)));
	(void)psd_calibrate_note(calibration, PSD_QUANTITY_MESSAGE_SEC, psd_fit_summary(values, SAMPLES),
				 "%d workers, one tensor of 4 KiB", (int)WORKERS);
	return PSD_OK;
}

/* The messages follow one another at once, so their bytes alone count. */
enum psd_status psd_calibrate_bytes(struct psd_calibration *calibration, struct psd_error *err)
{
	const struct psd_exchange_options options = large_exchange(calibration);
	struct psd_calibrate_point point;
	double values[SAMPLES];

	PSD_TRY(sample(calibration, &options, values, &point, err));
	for (unsigned i = 0; i < SAMPLES; i++)
		values[i] = fmax(1.0 / MOST_BYTES_BPS,
				 (values[i] - reduce_sec(calibration, &options)) / moved_bits(&options));
	struct psd_summary summary = psd_fit_summary(values, SAMPLES);
	summary.median = 1.0 / summary.median;
	if (psd_calibrate_note(calibration, PSD_QUANTITY_BYTES_BPS, summary, "%d workers, links %.4g Mbit/s",
			       (int)WORKERS, 1e-6 * options.rate_bps))
		calibration->point = point;
	return PSD_OK;
}
