/* Measures links: one message at a time between a worker and a separate server, then messages of several workers. The
 * first iterations do not count, since memory is touched first and TCP's windows grow. */
#include <math.h>

#include "engine/base/units.h"
#include "real/calibrate/calibrate_parts.h"
#include "real/calibrate/exchange.h"

enum {
	WARM_UPS = 2,
	GROUPS = 8,	  /* fits of one attempt, among which samples are divided in turn */
	MOST_SIZES = 13,  /* 4 bytes to 64 MiB, each four times the one before */
	MOST_SIDE = 4096, /* 64 MiB */
	SHORT_SIDE = 32,  /* 4 KiB */
	SHORT_ITERATIONS = 40,
	LONG_ITERATIONS = 4,
	LOCAL_ITERATIONS = 32, /* messages inside a node are short, and spread more */
	CROWD_ITERATIONS = 6,
	MOST_SENDERS = 3,
};

#define LEAST_SEC	  4e-3 /* shortest time of a long message on the link */
#define LONG_SEC	  0.6  /* longest time, four sizes together */
#define CROWD_SEC	  0.1  /* time of one sender's message on the link */
#define TRANSPORT_TO_LINK 4.0  /* least ratio of the machine's rate to the measured link's */
#define FIRST_RATE_BPS	  1e10 /* guess for the sizes on an unshaped link */
#define NEGLIGIBLE_RATIO  0.02

static bool has_links(const struct psd_calibration *calibration)
{
	return calibration->options->cluster_kind != PSD_CLUSTER_LOOPBACK &&
	       calibration->options->point.bandwidth_bps > 0.0;
}

struct psd_exchange_options psd_calibrate_exchange(const struct psd_calibration *calibration, double rate_bps)
{
	return (struct psd_exchange_options){
		.n_workers = 1,
		.workers_per_node = 1,
		.n_tensors = 1,
		.side = 1,
		.n_streams = 1,
		.rate_bps = rate_bps,
		.latency_sec = calibration->options->costed->scenario->network.latency_sec,
		.cluster_kind = calibration->options->cluster_kind,
		.stall_sec = calibration->options->stall_sec,
		.stop_signal = calibration->options->stop_signal,
	};
}

static struct psd_exchange_options exchange_of(const struct psd_calibration *calibration, double rate_bps)
{
	struct psd_exchange_options options = psd_calibrate_exchange(calibration, rate_bps);

	options.n_servers = 1;
	if (options.cluster_kind == PSD_CLUSTER_SHAPED && rate_bps == 0.0)
		options.cluster_kind = PSD_CLUSTER_LOOPBACK;
	return options;
}

static bool counts(const struct psd_exchange_flight *flight)
{
	return flight->iteration >= WARM_UPS && flight->bytes > 0.0;
}

/* ---- a message at a time ---- */

/* Measures messages of one size: a median for each group. */
static enum psd_status time_size(const struct psd_exchange_options *options, double secs[GROUPS], unsigned *n_samples,
				 struct psd_error *err)
{
	struct psd_exchange exchange;

	PSD_TRY(psd_exchange_run(&exchange, options, err));
	*n_samples = 0;
	for (unsigned g = 0; g < GROUPS; g++) {
		double values[2 * (SHORT_ITERATIONS + WARM_UPS)];
		unsigned n = 0, nth = 0;

		for (unsigned f = 0; f < exchange.n_flights; f++)
			if (counts(&exchange.flights[f]) && nth++ % GROUPS == g)
				values[n++] = exchange.flights[f].end_sec - exchange.flights[f].start_sec;
		secs[g] = n ? psd_fit_summary(values, n).median : 0.0;
		*n_samples += n;
	}
	psd_exchange_release(&exchange);
	return PSD_OK;
}

/* A fitted line for each group. */
struct lines {
	struct psd_fit_line groups[GROUPS];
	unsigned n_samples;
	double least_bytes, most_bytes;
};

/* Adds a size's seconds to the samples of each group. */
static enum psd_status add_size(struct lines *lines, struct psd_fit_sample samples[GROUPS][MOST_SIZES], unsigned nth,
				const struct psd_exchange_options *options, struct psd_error *err)
{
	const double bytes = PSD_EXCHANGE_BYTES(options->side);
	double secs[GROUPS];
	unsigned n_samples = 0;

	PSD_TRY(time_size(options, secs, &n_samples, err));
	for (unsigned g = 0; g < GROUPS; g++)
		samples[g][nth] = (struct psd_fit_sample){bytes, secs[g]};
	lines->n_samples += n_samples;
	lines->least_bytes = nth == 0 ? bytes : lines->least_bytes;
	lines->most_bytes = bytes;
	return PSD_OK;
}

/* Fits a line for each group over all sizes from one side to another. */
static enum psd_status fit_lines(struct lines *lines, struct psd_exchange_options options, unsigned least_side,
				 unsigned most_side, struct psd_error *err)
{
	struct psd_fit_sample samples[GROUPS][MOST_SIZES];
	unsigned n_sizes = 0;

	*lines = (struct lines){.n_samples = 0};
	for (options.side = least_side; options.side <= most_side; options.side *= 2)
		PSD_TRY(add_size(lines, samples, n_sizes++, &options, err));
	for (unsigned g = 0; g < GROUPS; g++)
		if (!psd_fit_line(&lines->groups[g], samples[g], n_sizes))
			return psd_error_set(
				err, PSD_ERUN, PSD_NOWHERE,
				"all measured messages have one size, a line through them needs two sizes");
	return PSD_OK;
}

/* The smallest side whose matrix takes `sec` on the link, a power of two. */
static unsigned side_of(double sec, double rate_bps)
{
	unsigned side = 1;

	while (side < MOST_SIDE && 8.0 * PSD_EXCHANGE_BYTES(side) < sec * rate_bps)
		side *= 2;
	return side;
}

static enum psd_status fit_short(struct lines *lines, struct psd_exchange_options options, struct psd_error *err)
{
	options.n_iterations = WARM_UPS + SHORT_ITERATIONS;
	return fit_lines(lines, options, 1, SHORT_SIDE, err);
}

static double typical_residual(const struct lines *lines)
{
	double values[GROUPS];

	for (unsigned g = 0; g < GROUPS; g++)
		values[g] = lines->groups[g].residual_ratio;
	return psd_fit_summary(values, GROUPS).median;
}

/* Rates of long messages. Their spread is at least the residual: if samples do not lie on a line, its slope is not a
 * rate, even if repeats agree. */
static struct psd_summary summarise_rates(const struct lines *lines)
{
	double values[GROUPS];

	for (unsigned g = 0; g < GROUPS; g++)
		values[g] = 8.0 / lines->groups[g].sec_per_byte;
	struct psd_summary summary = psd_fit_summary(values, GROUPS);
	summary.spread_ratio = fmax(summary.spread_ratio, typical_residual(lines));
	summary.n_samples = lines->n_samples;
	return summary;
}

/* Long messages give the rate: the link's queue and burst hide it from short ones. */
static enum psd_status fit_long(struct lines *lines, struct psd_exchange_options options, double rate_bps,
				unsigned n_iterations, struct psd_error *err)
{
	const unsigned most_side = side_of(LONG_SEC / 4.0, rate_bps), least_side = side_of(LEAST_SEC, rate_bps);

	options.n_iterations = WARM_UPS + n_iterations;
	PSD_TRY(fit_lines(lines, options, least_side < most_side ? least_side : most_side / 2, most_side, err));
	if (!(summarise_rates(lines).median > 0.0))
		return psd_error_set(
			err, PSD_ERUN, PSD_NOWHERE,
			"long messages took no longer than short ones: this machine is too busy to measure its "
			"network");
	return PSD_OK;
}

static struct psd_summary summarise_constants(const struct lines *lines)
{
	double values[GROUPS];

	for (unsigned g = 0; g < GROUPS; g++)
		values[g] = fmax(lines->groups[g].constant_sec, 1e-9);
	struct psd_summary summary = psd_fit_summary(values, GROUPS);
	summary.n_samples = lines->n_samples;
	return summary;
}

static void note_line(struct psd_calibration *calibration, enum psd_quantity quantity, struct psd_summary summary,
		      const struct lines *lines, double rate_bps)
{
	char least[PSD_UNITS_TEXT_MAX], most[PSD_UNITS_TEXT_MAX], rate[PSD_UNITS_TEXT_MAX] = "no limit";

	psd_units_write_bytes((uint64_t)lines->least_bytes, least);
	psd_units_write_bytes((uint64_t)lines->most_bytes, most);
	if (rate_bps > 0.0)
		psd_units_write_rate(rate_bps, rate);
	if (psd_calibrate_note(calibration, quantity, summary, "%s to %s, %s", least, most, rate))
		calibration->measured[quantity].residual_ratio = typical_residual(lines);
}

enum psd_status psd_calibrate_transport(struct psd_calibration *calibration, struct psd_error *err)
{
	struct lines lines;

	PSD_TRY(fit_long(&lines, exchange_of(calibration, 0.0), FIRST_RATE_BPS, LONG_ITERATIONS, err));
	note_line(calibration, PSD_QUANTITY_TRANSPORT_BPS, summarise_rates(&lines), &lines, 0.0);
	if (has_links(calibration) && calibration->link_bps == 0.0) /* later attempts are at the same links */
		calibration->link_bps =
			fmin(calibration->options->point.bandwidth_bps,
			     calibration->measured[PSD_QUANTITY_TRANSPORT_BPS].value / TRANSPORT_TO_LINK);
	return PSD_OK;
}

enum psd_status psd_calibrate_link(struct psd_calibration *calibration, struct psd_error *err)
{
	const double link_bps = calibration->link_bps;
	const struct psd_exchange_options options = exchange_of(calibration, link_bps);
	struct lines lines;

	PSD_TRY(fit_short(&lines, options, err));
	note_line(calibration, PSD_QUANTITY_LATENCY_SEC, summarise_constants(&lines), &lines, link_bps);
	if (link_bps == 0.0)
		return PSD_OK;
	PSD_TRY(fit_long(&lines, options, link_bps, LONG_ITERATIONS, err));
	struct psd_summary rate = summarise_rates(&lines);
	rate.median = fmin(1.0, rate.median / link_bps);
	note_line(calibration, PSD_QUANTITY_PAYLOAD_RATIO, rate, &lines, link_bps);
	return PSD_OK;
}

/* ---- inside a node ---- */

/* An exchange between two workers of a node, the first of which has the node's shard. No link is between them. */
static struct psd_exchange_options local_exchange(const struct psd_calibration *calibration)
{
	struct psd_exchange_options options = psd_calibrate_exchange(calibration, 0.0);

	options.n_workers = options.workers_per_node = 2;
	options.cluster_kind = PSD_CLUSTER_LOOPBACK;
	return options;
}

/* Prints once, instead of in each exchange, the reason if two workers cannot share memory. TCP then gives the rate. */
static enum psd_status remark_memory(const struct psd_calibration *calibration, struct psd_error *err)
{
	struct psd_exchange_options options = local_exchange(calibration);
	struct psd_exchange exchange = {.flights = NULL};

	options.n_iterations = 1;
	options.remark = calibration->options->remark;
	options.context = calibration->options->context;
	const enum psd_status status = psd_exchange_run(&exchange, &options, err);
	psd_exchange_release(&exchange);
	return status;
}

enum psd_status psd_calibrate_local(struct psd_calibration *calibration, struct psd_error *err)
{
	const struct psd_exchange_options options = local_exchange(calibration);
	const bool is_first = !calibration->measured[PSD_QUANTITY_LOCAL_BPS].is_there;
	struct lines lines;

	PSD_TRY(is_first ? remark_memory(calibration, err) : PSD_OK);
	PSD_TRY(fit_short(&lines, options, err));
	note_line(calibration, PSD_QUANTITY_LOCAL_LATENCY_SEC, summarise_constants(&lines), &lines, 0.0);
	PSD_TRY(fit_long(&lines, options, FIRST_RATE_BPS, LOCAL_ITERATIONS, err));
	note_line(calibration, PSD_QUANTITY_LOCAL_BPS, summarise_rates(&lines), &lines, 0.0);
	return PSD_OK;
}

/* ---- many senders ---- */

/* Seconds from the start of an iteration's first push to the end of its last. */
static double pushes_sec(const struct psd_exchange *exchange, uint32_t iteration)
{
	double start_sec = INFINITY, end_sec = 0.0;

	for (unsigned f = 0; f < exchange->n_flights; f++) {
		const struct psd_exchange_flight *flight = &exchange->flights[f];

		if (!flight->is_push || flight->iteration != iteration || flight->bytes == 0.0)
			continue;
		start_sec = fmin(start_sec, flight->start_sec);
		end_sec = fmax(end_sec, flight->end_sec);
	}
	return end_sec - start_sec;
}

/* Measures the rate at which all pushes of an iteration reach the server, a value for each iteration. */
static enum psd_status crowd_rates(struct psd_exchange_options options, double latency_sec,
				   double rates_bps[CROWD_ITERATIONS], struct psd_error *err)
{
	struct psd_exchange exchange;

	options.n_iterations = WARM_UPS + CROWD_ITERATIONS;
	PSD_TRY(psd_exchange_run(&exchange, &options, err));
	for (unsigned i = 0; i < CROWD_ITERATIONS; i++) {
		const double bytes = PSD_EXCHANGE_BYTES(options.side) * options.n_workers;

		rates_bps[i] = 8.0 * bytes / (pushes_sec(&exchange, WARM_UPS + i) - latency_sec);
	}
	psd_exchange_release(&exchange);
	return PSD_OK;
}

/* 1 / rate = (1 + incast * senders) / transport: the line's slope over its constant, for each round of samples. */
static struct psd_summary fit_incast(double rates_bps[MOST_SENDERS][CROWD_ITERATIONS])
{
	double values[CROWD_ITERATIONS];

	for (unsigned i = 0; i < CROWD_ITERATIONS; i++) {
		struct psd_fit_sample samples[MOST_SENDERS];
		struct psd_fit_line line = {.constant_sec = 1.0};

		for (unsigned k = 0; k < MOST_SENDERS; k++)
			samples[k] = (struct psd_fit_sample){k + 1.0, 1.0 / rates_bps[k][i]};
		if (!psd_fit_line(&line, samples, MOST_SENDERS))
			line.sec_per_byte = 0.0;
		values[i] = 1.0 + fmax(0.0, line.sec_per_byte / line.constant_sec);
	}
	/* 1 + incast, since a median of 0 has no spread */
	struct psd_summary summary = psd_fit_summary(values, CROWD_ITERATIONS);
	summary.median -= 1.0;
	if (summary.median < NEGLIGIBLE_RATIO)
		summary.median = 0.0;
	summary.n_samples *= MOST_SENDERS;
	return summary;
}

enum psd_status psd_calibrate_crowds(struct psd_calibration *calibration, struct psd_error *err)
{
	const double latency_sec = calibration->measured[PSD_QUANTITY_LATENCY_SEC].value;
	struct psd_exchange_options options = exchange_of(calibration, calibration->link_bps);
	double rates_bps[MOST_SENDERS][CROWD_ITERATIONS];

	options.side = side_of(CROWD_SEC, calibration->link_bps > 0.0
						  ? calibration->link_bps
						  : calibration->measured[PSD_QUANTITY_TRANSPORT_BPS].value);
	for (unsigned k = 0; k < MOST_SENDERS; k++) {
		options.n_workers = k + 1;
		PSD_TRY(crowd_rates(options, latency_sec, rates_bps[k], err));
	}
	psd_calibrate_note(calibration, PSD_QUANTITY_INCAST_RATIO, fit_incast(rates_bps), "1 to %d senders",
			   (int)MOST_SENDERS);
	return PSD_OK;
}
