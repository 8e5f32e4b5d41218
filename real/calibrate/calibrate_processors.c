/* What messages take of processors. Two workers exchange tensors for a short and for a long while: what their processes
 * took of processors in between. Many tensors of 4 KiB, on links without a limit, so that processors are the
 * bottleneck, tell what a message takes that follows another (on two cores of an AMD EPYC 7 us an end; 9.4 on links of
 * 1 Gbit/s, where who waits for the link wakes up more often, in time that nobody misses). One tensor tells what a
 * message takes besides that answers another: by wall time, of one pair of workers and of two on the same cores, for a
 * core that wakes up and falls asleep is busy in time that it would have waited anyway. The rest is measured while on
 * every core a process multiplies matrices, as in training, and counts what the kernel did meanwhile on account of
 * those, too: one tensor tells what layers lose to a message that wakes its receiver; large ones what their bytes take,
 * on links without a limit; and those over the scenario's links what comes on top for what these let pass at a time.
 * There processor time is chosen over wall time, also over what the products lose to the exchange, as others on the
 * machine disturb it far less. */
#define _GNU_SOURCE
#include <math.h>
#include <sys/resource.h>

#include "engine/cost/cost.h"
#include "real/base/affinity.h"
#include "real/calibrate/calibrate_parts.h"
#include "real/calibrate/exchange.h"
#include "real/calibrate/gang.h"
#include "real/cluster/crew.h"

enum {
	WORKERS = 2,
	PAIRS = 2,
	SMALL_TENSORS = 64,
	SMALL_SIDE = 32, /* 4 KiB, and half of it to each shard: PSD_CALIBRATE_SMALL_BYTES */
	SMALL_ITERATIONS = 200,
	LARGE_TENSORS = 8,
	LEAST_SIDE = 256, /* 256 KiB */
	MOST_SIDE = 1024, /* 4 MiB */
	SHORT_ITERATIONS = 2,
	SAMPLES = 4,
	PAIR_SAMPLES = 8,
};

/* No core moves more through its memory. Where others on the machine hide what an exchange takes, this is what is left.
 */
#define MOST_SOCKET_BPS	 400e9
#define WINDOW_SEC	 1.0  /* of an exchange of large tensors */
#define LONE_WINDOW_SEC	 0.5  /* of one of a single small tensor */
#define PAIRS_WINDOW_SEC 1.5  /* of one of two pairs at a time, that begin some 0.1 s apart */
#define LONE_SEC	 3e-4 /* an iteration of it, beside the links' latency */
#define BESIDE_RATIO	 0.25 /* about what the products leave of the rate on idle processors */
#define BYTES_OF(side)	 (4.0 * (side) * (side))

/* ---- processor time ---- */

static double seconds_of(const struct timeval *time)
{
	return (double)time->tv_sec + 1e-6 * (double)time->tv_usec;
}

/* Of all child processes that have ended. */
static double children_sec(void)
{
	struct rusage usage = {.ru_maxrss = 0};

	(void)getrusage(RUSAGE_CHILDREN, &usage); /* fails for other first arguments only */
	return seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime);
}

/* ---- exchanges ---- */

/* link_bps 0: without a limit. */
static struct psd_exchange_options exchange_of(const struct psd_calibration *calibration, double link_bps)
{
	return (struct psd_exchange_options){
		.n_workers = WORKERS,
		.n_tensors = LARGE_TENSORS,
		.side = LEAST_SIDE,
		.n_streams = calibration->options->matter->scenario->train.streams,
		.n_iterations = SMALL_ITERATIONS,
		.rate_bps = link_bps,
		.latency_sec = calibration->options->matter->scenario->network.latency_sec,
		.ground = calibration->options->ground,
		.stall_sec = calibration->options->stall_sec,
		.stop_signal = calibration->options->stop_signal,
	};
}

static struct psd_exchange_options small_exchange(const struct psd_calibration *calibration, double link_bps)
{
	struct psd_exchange_options options = exchange_of(calibration, link_bps);

	options.n_tensors = SMALL_TENSORS;
	options.side = SMALL_SIDE;
	return options;
}

static struct psd_exchange_options large_exchange(const struct psd_calibration *calibration, double link_bps)
{
	const double rate_bps =
		link_bps > 0.0 ? link_bps : BESIDE_RATIO * calibration->measured[PSD_QUANTITY_TRANSPORT_BPS].value;
	struct psd_exchange_options options = exchange_of(calibration, link_bps);

	while (options.side < MOST_SIDE && 8.0 * LARGE_TENSORS * BYTES_OF(2 * options.side) / rate_bps < WINDOW_SEC)
		options.side *= 2;
	options.n_iterations =
		(uint32_t)fmax(1.0, ceil(WINDOW_SEC * rate_bps / (8.0 * LARGE_TENSORS * BYTES_OF(options.side))));
	return options;
}

/* Each worker sends half of every gradient and half of all parameters to the other. */
static double messages_of(const struct psd_exchange_options *options)
{
	return 2.0 * WORKERS * options->n_tensors;
}

/* Sent and received by the two workers, who are shards as well. */
static double moved_bits(const struct psd_exchange_options *options)
{
	return 8.0 * 2.0 * WORKERS * options->n_tensors * BYTES_OF(options->side);
}

/* All workers' gradients pass through the shards. */
static double reduce_sec(const struct psd_calibration *calibration, const struct psd_exchange_options *options)
{
	return 8.0 * WORKERS * options->n_tensors * BYTES_OF(options->side) /
	       calibration->measured[PSD_QUANTITY_REDUCE_BPS].value;
}

/* ---- the measurement ---- */

static enum psd_status run_between(const struct psd_gang *gang, struct psd_exchange_options options,
				   uint32_t n_iterations, double *sec, struct psd_calibrate_point *point,
				   struct psd_error *err)
{
	const double before_sec = children_sec() + psd_gang_kernel_sec(gang);
	struct psd_exchange exchange;
	enum psd_status status;

	options.n_iterations = n_iterations;
	status = psd_exchange_run(&exchange, &options, err);
	if (status)
		return status;
	*sec = children_sec() + psd_gang_kernel_sec(gang) - before_sec;
	*point = (struct psd_calibrate_point){
		.workers = WORKERS,
		.bandwidth_bps = options.rate_bps,
		.iteration_sec = exchange.iteration_sec,
		.node_bytes = (uint64_t)(options.n_tensors * BYTES_OF(options.side)),
	};
	psd_exchange_release(&exchange);
	return PSD_OK;
}

/* Processor seconds of one iteration. */
static enum psd_status sample_exchange(struct psd_gang *gang, const struct psd_exchange_options *options,
				       double values[SAMPLES], struct psd_calibrate_point *point, struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	for (unsigned i = 0; i < SAMPLES && !status; i++) {
		double short_sec = 0.0, long_sec = 0.0;

		status = run_between(gang, *options, SHORT_ITERATIONS, &short_sec, point, err);
		if (!status)
			status = run_between(gang, *options, SHORT_ITERATIONS + options->n_iterations, &long_sec, point,
					     err);
		if (!status)
			status = psd_gang_check(gang, err);
		values[i] = (long_sec - short_sec) / options->n_iterations;
	}
	return status;
}

static enum psd_status sample(unsigned n_multiplying, const struct psd_exchange_options *options,
			      double values[SAMPLES], struct psd_calibrate_point *point, struct psd_error *err)
{
	struct psd_gang gang;
	enum psd_status status = psd_gang_start(&gang, n_multiplying, err);

	if (status)
		return status;
	status = sample_exchange(&gang, options, values, point, err);
	psd_gang_stop(&gang);
	return status;
}

/* ---- nobody to send to ---- */

struct solo {
	struct psd_exchange_options options; /* of one worker */
	double *iteration_sec;		     /* (WORKERS), shared: of processors */
};

static enum psd_status run_solo(void *context, unsigned member, struct psd_error *err)
{
	const struct solo *solo = context;
	struct psd_exchange exchange;
	enum psd_status status;

	(void)psd_affinity_pin(member, WORKERS);
	status = psd_exchange_run(&exchange, &solo->options, err);
	if (status)
		return status;
	solo->iteration_sec[member] = exchange.beside_cpu_sec;
	psd_exchange_release(&exchange);
	return PSD_OK;
}

static enum psd_status run_solos(const struct solo *solo, unsigned n_multiplying, struct psd_error *err)
{
	struct psd_crew solos;
	struct psd_gang gang;
	enum psd_status status = psd_gang_start(&gang, n_multiplying, err);

	if (status)
		return status;
	status = psd_crew_start(&solos, WORKERS, run_solo, (void *)(uintptr_t)solo, err);
	if (!status)
		status = psd_crew_wait(&solos, solo->options.stop_signal, err);
	if (!status)
		status = psd_gang_check(&gang, err);
	psd_gang_stop(&gang);
	return status;
}

/* As many workers as there are in an exchange, each for itself: processor seconds of an iteration of each. */
static enum psd_status sample_solos(unsigned n_multiplying, const struct psd_exchange_options *options,
				    double iteration_sec[WORKERS], struct psd_error *err)
{
	struct solo solo = {*options, psd_crew_share(WORKERS * sizeof(double))};
	enum psd_status status;

	if (!solo.iteration_sec)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a measurement of processors");
	solo.options.n_workers = 1;
	solo.options.ground = PSD_GROUND_LOOPBACK;
	status = run_solos(&solo, n_multiplying, err);
	for (unsigned w = 0; w < WORKERS; w++)
		iteration_sec[w] = solo.iteration_sec[w];
	psd_crew_unshare(solo.iteration_sec, WORKERS * sizeof(double));
	return status;
}

enum psd_status psd_calibrate_dispatch(struct psd_calibration *calibration, struct psd_error *err)
{
	const struct psd_exchange_options options = small_exchange(calibration, 0.0);
	double values[WORKERS];
	const enum psd_status status = sample_solos(0, &options, values, err);

	if (status)
		return status;
	for (unsigned w = 0; w < WORKERS; w++)
		values[w] /= SMALL_TENSORS;
	(void)psd_calibrate_note(calibration, PSD_QUANTITY_DISPATCH_SEC, psd_fit_summary(values, WORKERS),
				 "%d layers, 1 worker on each of %d shares", (int)SMALL_TENSORS, (int)WORKERS);
	return PSD_OK;
}

/* ---- messages ---- */

/* Processor seconds that the workers of an exchange take for handing over its tensors' layers. */
static double dispatch_sec(const struct psd_calibration *calibration, const struct psd_exchange_options *options)
{
	return WORKERS * options->n_tensors * calibration->measured[PSD_QUANTITY_DISPATCH_SEC].value;
}

enum psd_status psd_calibrate_handling(struct psd_calibration *calibration, struct psd_error *err)
{
	const struct psd_exchange_options options = small_exchange(calibration, 0.0);
	struct psd_calibrate_point point;
	double values[SAMPLES];
	const enum psd_status status = sample(0, &options, values, &point, err);

	if (status)
		return status;
	for (unsigned i = 0; i < SAMPLES; i++)
		values[i] = fmax(0.0,
				 (values[i] - reduce_sec(calibration, &options) - dispatch_sec(calibration, &options)) /
					 (2.0 * messages_of(&options)));
	(void)psd_calibrate_note(calibration, PSD_QUANTITY_HANDLING_SEC, psd_fit_summary(values, SAMPLES),
				 "%d workers, tensors of 4 KiB", (int)WORKERS);
	return PSD_OK;
}

/* One tensor's messages: each is answered before the next. */
static struct psd_exchange_options lone_exchange(const struct psd_calibration *calibration, double window_sec)
{
	struct psd_exchange_options options = small_exchange(calibration, calibration->link_bps);

	options.n_tensors = 1;
	options.n_iterations = (uint32_t)ceil(window_sec / (LONE_SEC + 2.0 * options.latency_sec));
	return options;
}

/* Two workers, and perhaps two more on the same cores. */
struct pairs {
	struct psd_exchange_options options;
	double *iteration_sec; /* (PAIRS), shared */
};

static enum psd_status run_pair(void *context, unsigned member, struct psd_error *err)
{
	const struct pairs *pairs = context;
	struct psd_exchange exchange;
	enum psd_status status;

	psd_affinity_keep(WORKERS);
	status = psd_exchange_run(&exchange, &pairs->options, err);
	if (status)
		return status;
	pairs->iteration_sec[member] = exchange.iteration_sec;
	psd_exchange_release(&exchange);
	return PSD_OK;
}

/* The mean iteration of so many pairs at a time. */
static enum psd_status run_pairs(const struct pairs *pairs, unsigned n_pairs, double *sec, struct psd_error *err)
{
	struct psd_crew crew;
	enum psd_status status = psd_crew_start(&crew, n_pairs, run_pair, (void *)(uintptr_t)pairs, err);

	if (!status)
		status = psd_crew_wait(&crew, pairs->options.stop_signal, err);
	if (status)
		return status;
	*sec = 0.0;
	for (unsigned p = 0; p < n_pairs; p++)
		*sec += pairs->iteration_sec[p] / n_pairs;
	return PSD_OK;
}

/* How much longer an iteration of one pair takes when another shares its cores. */
static enum psd_status sample_pairs(const struct psd_exchange_options *options, double values[PAIR_SAMPLES],
				    struct psd_error *err)
{
	const struct pairs pairs = {*options, psd_crew_share(PAIRS * sizeof(double))};
	enum psd_status status = PSD_OK;

	if (!pairs.iteration_sec)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a measurement of processors");
	for (unsigned i = 0; i < PAIR_SAMPLES && !status; i++) {
		double alone_sec, together_sec;

		status = run_pairs(&pairs, 1, &alone_sec, err);
		if (!status)
			status = run_pairs(&pairs, PAIRS, &together_sec, err);
		if (!status)
			values[i] = together_sec - alone_sec;
	}
	psd_crew_unshare(pairs.iteration_sec, PAIRS * sizeof(double));
	return status;
}

/* Put down to receivers, for a sender is at work already when something lets it send. */
enum psd_status psd_calibrate_switch(struct psd_calibration *calibration, struct psd_error *err)
{
	const struct psd_exchange_options options = lone_exchange(calibration, PAIRS_WINDOW_SEC);
	const double handling_sec = calibration->measured[PSD_QUANTITY_HANDLING_SEC].value;
	const unsigned n_cores = calibration->cores < WORKERS ? calibration->cores : WORKERS;
	double values[PAIR_SAMPLES], solo_sec[WORKERS];
	enum psd_status status = sample_solos(0, &options, solo_sec, err);

	if (!status)
		status = sample_pairs(&options, values, err);
	if (status)
		return status;
	for (unsigned i = 0; i < PAIR_SAMPLES; i++)
		values[i] = fmax(0.0, (n_cores * values[i] - solo_sec[0] - solo_sec[1]) / messages_of(&options) -
					      2.0 * handling_sec);
	(void)psd_calibrate_note(calibration, PSD_QUANTITY_SWITCH_SEC, psd_fit_summary(values, PAIR_SAMPLES),
				 "%d and %d workers on %u cores, one tensor of 4 KiB", (int)WORKERS,
				 PAIRS * (int)WORKERS, n_cores);
	return PSD_OK;
}

/* Likewise, beyond switches, with others who lose their cores to it. */
enum psd_status psd_calibrate_wake(struct psd_calibration *calibration, struct psd_error *err)
{
	const struct psd_exchange_options options = lone_exchange(calibration, LONE_WINDOW_SEC);
	const double ends_sec = 2.0 * calibration->measured[PSD_QUANTITY_HANDLING_SEC].value +
				calibration->measured[PSD_QUANTITY_SWITCH_SEC].value;
	struct psd_calibrate_point point;
	double values[SAMPLES], solo_sec[WORKERS];
	enum psd_status status = sample_solos(calibration->cores, &options, solo_sec, err);

	if (!status)
		status = sample(calibration->cores, &options, values, &point, err);
	if (status)
		return status;
	for (unsigned i = 0; i < SAMPLES; i++)
		values[i] = fmax(0.0, (values[i] - solo_sec[0] - solo_sec[1]) / messages_of(&options) - ends_sec);
	(void)psd_calibrate_note(calibration, PSD_QUANTITY_WAKE_SEC, psd_fit_summary(values, SAMPLES),
				 "%d workers, one tensor of 4 KiB", (int)WORKERS);
	return PSD_OK;
}

/* Of one bit, beside the reductions and the messages. */
static double bit_sec(const struct psd_calibration *calibration, const struct psd_exchange_options *options, double sec)
{
	const double handling_sec = calibration->measured[PSD_QUANTITY_HANDLING_SEC].value;

	return (sec - reduce_sec(calibration, options) - dispatch_sec(calibration, options) -
		2.0 * messages_of(options) * handling_sec) /
	       moved_bits(options);
}

enum psd_status psd_calibrate_socket(struct psd_calibration *calibration, struct psd_error *err)
{
	const struct psd_exchange_options options = large_exchange(calibration, 0.0);
	struct psd_calibrate_point point;
	struct psd_summary summary;
	double values[SAMPLES];
	const enum psd_status status = sample(calibration->cores, &options, values, &point, err);

	if (status)
		return status;
	for (unsigned i = 0; i < SAMPLES; i++)
		values[i] = fmax(1.0 / MOST_SOCKET_BPS, bit_sec(calibration, &options, values[i]));
	summary = psd_fit_summary(values, SAMPLES);
	summary.median = 1.0 / summary.median;
	if (psd_calibrate_note(calibration, PSD_QUANTITY_SOCKET_BPS, summary, "%d workers, no limit", (int)WORKERS))
		calibration->socket_point = point;
	return PSD_OK;
}

enum psd_status psd_calibrate_interrupt(struct psd_calibration *calibration, struct psd_error *err)
{
	const double socket_bps = calibration->measured[PSD_QUANTITY_SOCKET_BPS].value,
		     link_bps = calibration->link_bps;
	const struct psd_exchange_options options = large_exchange(calibration, link_bps);
	struct psd_calibrate_point point;
	double values[SAMPLES], passing_bits;
	enum psd_status status;

	if (link_bps <= 0.0)
		return PSD_OK;
	status = sample(calibration->cores, &options, values, &point, err);
	if (status)
		return status;
	passing_bits = 8.0 * psd_cost_coalesced_bytes(link_bps);
	for (unsigned i = 0; i < SAMPLES; i++)
		values[i] = fmax(0.0, bit_sec(calibration, &options, values[i]) - 1.0 / socket_bps) * passing_bits /
			    psd_cost_interrupt_ratio(link_bps);
	if (psd_calibrate_note(calibration, PSD_QUANTITY_INTERRUPT_SEC, psd_fit_summary(values, SAMPLES),
			       "%d workers, links %.4g Mbit/s", (int)WORKERS, 1e-6 * link_bps))
		calibration->interrupt_point = point;
	return PSD_OK;
}
