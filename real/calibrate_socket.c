/* What moving bytes takes from computing. On every core a process multiplies matrices while two workers of an idle network exchange tensors: what
 * the products lose to the exchange is what it cost, whoever the kernel charged for it. Without a limit that is what the bytes cost; on the
 * links, what is lost beyond that comes with the time that they are busy. Chosen over comparing the layers'
 * seconds with and without traffic, as there reductions and waiting are mixed in and the difference is of the size of the spread. */
#define _GNU_SOURCE
#include <math.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "real/affinity.h"
#include "real/calibrate_parts.h"
#include "real/cpu.h"
#include "real/crew.h"
#include "real/exchange.h"
#include "real/layer_times.h"
#include "real/socket.h"

enum {
	PRODUCT_SIDE = 384,	/* half a millisecond to two: fine enough for windows of half a second */
	MOST_PRODUCTS = 200000, /* of one core */
	WORKERS = 2,
	TENSORS = 8,
	LEAST_SIDE = 256, /* 256 KiB */
	MOST_SIDE = 1024, /* 4 MiB */
	WARM_UPS = 2,
	WINDOWS = 8,
};

/* No core moves more through its memory. Where others on the machine hide what an exchange takes, this is what is left. */
#define MOST_SOCKET_BPS 400e9
#define QUIET_SEC	0.8 /* before and after the exchange */
#define WINDOW_SEC	0.5
#define BESIDE_RATIO	0.25 /* about what the products leave of the rate on idle processors */
#define WARM_SEC	0.2  /* of the products, not counted */
#define BYTES_OF(side)	(4.0 * (side) * (side))

/* Of one core: when each product ended. */
struct tally {
	_Atomic uint32_t n_products; /* written after the seconds that it counts */
	double ended_sec[MOST_PRODUCTS];
};

struct gang {
	const struct psd_calibration *calibration;
	double link_bps;       /* that the exchange runs over; 0: without a limit */
	struct tally *tallies; /* one for each core, shared */
};

/* Until it is stopped, or the tally is full. */
static enum psd_status multiply(void *context, unsigned core, struct psd_error *err)
{
	const struct gang *gang = context;
	struct tally *tally = &gang->tallies[core];
	const dnnl_dim_t side = PRODUCT_SIDE;
	float *left = psd_layer_times_values(PRODUCT_SIDE * PRODUCT_SIDE, 1.0f);
	float *right = psd_layer_times_values(PRODUCT_SIDE * PRODUCT_SIDE, 1.0f);
	float *result = psd_layer_times_values(PRODUCT_SIDE * PRODUCT_SIDE, 1.0f);

	if (!left || !right || !result)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a measurement of sockets");
	(void)psd_affinity_pin(core, gang->calibration->cores);
	omp_set_num_threads(1);
	for (uint32_t p = 0; p < MOST_PRODUCTS; p++) {
		if (dnnl_sgemm('N', 'N', side, side, side, 1.0f, left, side, right, side, 0.0f, result, side))
			return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "a product of matrices failed");
		tally->ended_sec[p] = psd_socket_now_sec();
		atomic_store_explicit(&tally->n_products, p + 1, memory_order_release);
	}
	return PSD_OK;
}

static uint32_t count_products(const struct tally *tally)
{
	return atomic_load_explicit(&tally->n_products, memory_order_acquire);
}

/* Products that ended by then, the one that runs counted in part. */
static double products_by(const struct tally *tally, double sec)
{
	const uint32_t n_products = count_products(tally);
	uint32_t low = 0, high = n_products;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (tally->ended_sec[middle] <= sec)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || low == n_products)
		return low;
	return low + (sec - tally->ended_sec[low - 1]) / (tally->ended_sec[low] - tally->ended_sec[low - 1]);
}

static double products_between(const struct tally *tally, double from_sec, double until_sec)
{
	return products_by(tally, until_sec) - products_by(tally, from_sec);
}

/* ---- windows ---- */

struct window {
	double from_sec, until_sec;
};

/* Median seconds of a product in the windows without traffic: others on the machine, who stop some, count nothing. 0: there are none. */
static double quiet_product_sec(const struct tally *tally, const struct window quiet[2], double room[])
{
	const uint32_t n_products = count_products(tally);
	unsigned n = 0;

	for (uint32_t p = 1; p < n_products; p++)
		for (unsigned q = 0; q < 2; q++)
			if (tally->ended_sec[p - 1] >= quiet[q].from_sec && tally->ended_sec[p] <= quiet[q].until_sec)
				room[n++] = tally->ended_sec[p] - tally->ended_sec[p - 1];
	return n ? psd_fit_summary(room, n).median : 0.0;
}

/* What the products of all cores lost in a window, in seconds of one core. */
static double lost_sec(const struct gang *gang, struct window window, const double product_sec[])
{
	double lost = 0.0;

	for (unsigned c = 0; c < gang->calibration->cores; c++)
		lost += window.until_sec - window.from_sec -
			products_between(&gang->tallies[c], window.from_sec, window.until_sec) * product_sec[c];
	return lost;
}

/* From the first departure of one iteration to that of another. */
static double iteration_start_sec(const struct psd_exchange *exchange, uint32_t iteration)
{
	double start_sec = INFINITY;

	for (unsigned f = 0; f < exchange->n_flights; f++)
		if (exchange->flights[f].iteration == iteration && exchange->flights[f].bytes > 0.0)
			start_sec = fmin(start_sec, exchange->flights[f].start_sec);
	return start_sec;
}

static struct window pause_window(void)
{
	const struct timespec pause = {0, (long)(1e9 * QUIET_SEC)};
	struct window window = {.from_sec = psd_socket_now_sec()};

	nanosleep(&pause, NULL);
	window.until_sec = psd_socket_now_sec();
	return window;
}

/* ---- the measurement ---- */

/* link_bps 0: without a limit. */
static struct psd_exchange_options exchange_of(const struct psd_calibration *calibration, double link_bps)
{
	const double rate_bps =
		link_bps > 0.0 ? link_bps : BESIDE_RATIO * calibration->measured[PSD_QUANTITY_TRANSPORT_BPS].value;
	struct psd_exchange_options options = {
		.n_workers = WORKERS,
		.n_tensors = TENSORS,
		.side = LEAST_SIDE,
		.n_streams = calibration->options->matter->scenario->train.streams,
		.rate_bps = link_bps,
		.latency_sec = calibration->options->matter->scenario->network.latency_sec,
		.ground = calibration->options->ground,
		.stall_sec = calibration->options->stall_sec,
		.stop_signal = calibration->options->stop_signal,
	};
	double iteration_sec;

	while (options.side < MOST_SIDE && 8.0 * TENSORS * BYTES_OF(2 * options.side) / rate_bps < WINDOW_SEC)
		options.side *= 2;
	iteration_sec = 8.0 * TENSORS * BYTES_OF(options.side) / rate_bps;
	options.n_iterations = WARM_UPS + 1 + WINDOWS * (uint32_t)fmax(1.0, ceil(WINDOW_SEC / iteration_sec));
	return options;
}

/* Bits of one iteration sent and received by the two workers, who are shards as well: each sends half of its gradients and half of the
 * parameters, and receives as much. */
static double moved_bits(const struct psd_exchange_options *options)
{
	return 8.0 * 2.0 * WORKERS * TENSORS * BYTES_OF(options->side);
}

/* Seconds of one core that the reductions of one iteration take: all workers' gradients pass through the shards. */
static double reduce_sec(const struct psd_calibration *calibration, const struct psd_exchange_options *options)
{
	return 8.0 * WORKERS * TENSORS * BYTES_OF(options->side) / calibration->measured[PSD_QUANTITY_REDUCE_BPS].value;
}

/* Seconds for a bit, as bits per second; the spread stays. */
static struct psd_summary inverse_of(struct psd_summary summary)
{
	summary.median = 1.0 / summary.median;
	return summary;
}

/* What a bit takes. True: kept. */
static bool note_socket(struct psd_calibration *calibration, double sec_per_bit[])
{
	return psd_calibrate_note(calibration, PSD_QUANTITY_SOCKET_BPS, inverse_of(psd_fit_summary(sec_per_bit, WINDOWS)),
				  "%d workers, no limit", (int)WORKERS);
}

/* What each second of a busy direction takes beyond its bytes. True: kept. */
static bool note_interrupts(struct psd_calibration *calibration, const struct psd_exchange_options *options, double sec_per_bit[])
{
	const double socket_bps = calibration->measured[PSD_QUANTITY_SOCKET_BPS].value;

	for (unsigned w = 0; w < WINDOWS; w++)
		sec_per_bit[w] = fmin(1.0, fmax(0.0, sec_per_bit[w] - 1.0 / socket_bps) * options->rate_bps);
	return psd_calibrate_note(calibration, PSD_QUANTITY_INTERRUPTS_RATIO, psd_fit_summary(sec_per_bit, WINDOWS),
				  "%d workers, links %.4g Mbit/s", (int)WORKERS, 1e-6 * options->rate_bps);
}

static void conclude(struct psd_calibration *calibration, const struct gang *gang, const struct psd_exchange_options *options,
		     const struct psd_exchange *exchange, const double product_sec[])
{
	const uint32_t n_of_window = (options->n_iterations - WARM_UPS - 1) / WINDOWS;
	const struct psd_calibrate_point point = {
		.workers = WORKERS,
		.bandwidth_bps = gang->link_bps,
		.iteration_sec = exchange->iteration_sec,
		.node_bytes = (uint64_t)(TENSORS * BYTES_OF(options->side)),
	};
	double values[WINDOWS];

	for (unsigned w = 0; w < WINDOWS; w++) {
		const uint32_t first = WARM_UPS + w * n_of_window;
		const struct window window = {iteration_start_sec(exchange, first),
					      iteration_start_sec(exchange, first + n_of_window)};
		const double sec = lost_sec(gang, window, product_sec) - n_of_window * reduce_sec(calibration, options);

		values[w] = fmax(1.0 / MOST_SOCKET_BPS, sec / (n_of_window * moved_bits(options)));
	}
	if (gang->link_bps == 0.0 && note_socket(calibration, values))
		calibration->socket_point = point;
	else if (gang->link_bps > 0.0 && note_interrupts(calibration, options, values))
		calibration->interrupts_point = point;
}

/* Of every core, with room for the median of one. */
static enum psd_status conclude_with(struct psd_calibration *calibration, const struct gang *gang,
				     const struct psd_exchange_options *options, const struct psd_exchange *exchange,
				     const struct window quiet[2], struct psd_error *err)
{
	double *product_sec = calloc(calibration->cores, sizeof(*product_sec)), *room = calloc(MOST_PRODUCTS, sizeof(*room));
	enum psd_status status = PSD_OK;

	if (!product_sec || !room)
		status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a measurement of sockets");
	for (unsigned c = 0; c < calibration->cores && !status; c++) {
		product_sec[c] = quiet_product_sec(&gang->tallies[c], quiet, room);
		if (product_sec[c] == 0.0)
			status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "processor %u of %u finished nothing in %g s", c,
					       calibration->cores, 2.0 * QUIET_SEC);
	}
	if (!status)
		conclude(calibration, gang, options, exchange, product_sec);
	free(product_sec);
	free(room);
	return status;
}

static enum psd_status exchange_beside(struct psd_calibration *calibration, const struct gang *gang, struct psd_error *err)
{
	const struct timespec warm = {0, (long)(1e9 * WARM_SEC)};
	const struct psd_exchange_options options = exchange_of(calibration, gang->link_bps);
	struct psd_exchange exchange;
	struct window quiet[2];
	enum psd_status status;

	nanosleep(&warm, NULL);
	quiet[0] = pause_window();
	status = psd_exchange_run(&exchange, &options, err);
	if (status)
		return status;
	quiet[1] = pause_window();
	status = conclude_with(calibration, gang, &options, &exchange, quiet, err);
	psd_exchange_release(&exchange);
	return status;
}

static enum psd_status measure(struct psd_calibration *calibration, double link_bps, struct psd_error *err)
{
	struct gang gang = {.calibration = calibration, .link_bps = link_bps};
	const size_t bytes = calibration->cores * sizeof(*gang.tallies);
	struct psd_crew crew;
	enum psd_status status;

	gang.tallies = psd_crew_share(bytes);
	if (!gang.tallies)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a measurement of sockets");
	status = psd_crew_start(&crew, calibration->cores, multiply, &gang, err);
	if (!status) {
		struct psd_error cause;

		status = exchange_beside(calibration, &gang, err);
		if (psd_crew_check(&crew, &cause)) { /* what a process failed of is why its products are missed */
			*err = cause;
			status = cause.status;
		}
		psd_crew_stop(&crew);
	}
	psd_crew_unshare(gang.tallies, bytes);
	return status;
}

enum psd_status psd_calibrate_socket(struct psd_calibration *calibration, struct psd_error *err)
{
	return measure(calibration, 0.0, err);
}

enum psd_status psd_calibrate_interrupts(struct psd_calibration *calibration, struct psd_error *err)
{
	return calibration->link_bps > 0.0 ? measure(calibration, calibration->link_bps, err) : PSD_OK;
}
