/* Choice of the attempt that counts, its spread, the reference of a rebuild's rate, and the direction of messages
 * between two workers. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "real/calibrate/calibrate_parts.h"
#include "real/calibrate/exchange.h"
#include "real/calibrate/layer_times.h"
#include "tests/scratch_file.h"

#define ROUNDING 1e-12

static bool note(struct psd_calibration *calibration, double value, double spread_ratio)
{
	return psd_calibrate_note(calibration, PSD_QUANTITY_BYTES_BPS, (struct psd_summary){value, spread_ratio, 3},
				  "here");
}

Test(calibrate, the_calmest_attempt_counts_and_spreads_by_what_lies_between_the_attempts)
{
	struct psd_calibration calibration = {.n_busy = 1};
	const struct psd_measured *measured = &calibration.measured[PSD_QUANTITY_BYTES_BPS];

	cr_expect(note(&calibration, 100.0, 0.02));
	cr_expect_float_eq(psd_calibrate_spread_ratio(measured), 0.02, ROUNDING, "a single attempt has only its own");
	cr_expect_not(note(&calibration, 101.0, 0.03));
	cr_expect_float_eq(psd_calibrate_spread_ratio(measured), 0.02, ROUNDING, "1 of 100 is less than its own");
	cr_expect_not(note(&calibration, 130.0, 0.04));
	cr_expect_float_eq(measured->value, 100.0, ROUNDING);
	cr_expect_float_eq(psd_calibrate_spread_ratio(measured), 0.3, ROUNDING, "from 100 to 130, over 100");
	cr_expect(note(&calibration, 120.0, 0.01));
	cr_expect_float_eq(measured->value, 120.0, ROUNDING);
	cr_expect_float_eq(psd_calibrate_spread_ratio(measured), 0.25, ROUNDING, "from 100 to 130, over 120");
}

Test(calibrate, a_value_of_nothing_spreads_wholly_once_another_attempt_has_one)
{
	struct psd_calibration calibration = {.n_busy = 1};
	const struct psd_measured *measured = &calibration.measured[PSD_QUANTITY_BYTES_BPS];

	(void)note(&calibration, 0.0, 0.01);
	(void)note(&calibration, 0.0, 0.02);
	cr_expect_float_eq(psd_calibrate_spread_ratio(measured), 0.01, ROUNDING);
	(void)note(&calibration, 3.0, 0.02);
	cr_expect_float_eq(psd_calibrate_spread_ratio(measured), 1.0, ROUNDING);
}

/* The largest linear layer of scenarios/models/cifar10-quick.yaml is 64 x 1024. Three more workers of 2 samples are
 * 2 * 3 * 2 * 64 * 1024 FLOPs. */
Test(calibrate, a_rebuild_is_timed_by_the_samples_of_other_workers)
{
	const struct psd_layer_times_options options = {
		.kind = &psd_device_cpu, .batch = 2, .n_threads = 1, .n_repeats = 3};
	struct psd_layer_times times;
	struct psd_graph graph;
	struct psd_error err;
	double secs[3], flops;

	cr_assert_eq(psd_graph_load(&graph, "scenarios/models/cifar10-quick.yaml", &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_layer_times_open(&times, &graph, &options, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_layer_times_rebuild(&times, secs, &flops, &err), PSD_OK, "%s", err.text);
	cr_expect_float_eq(flops, 2.0 * 3 * 2 * 64 * 1024, 0.5);
	for (unsigned i = 0; i < 3; i++)
		cr_expect(secs[i] > 0.0 && (i == 0 || secs[i] >= secs[i - 1]), "repeat %u: %g s", i, secs[i]);
	psd_layer_times_release(&times);
	psd_graph_release(&graph);
}

/* Each of 8 tokens is expected 50 times among 400, within five standard errors of sqrt(400 / 8 * 7 / 8) = 6.6. */
Test(calibrate, layers_of_sequences_are_timed_on_tokens_all_over_the_vocabulary)
{
	static const char text[] = "name: m\ninput: {channels: 1, height: 20}\nlayers:\n"
				   "  - {name: e, kind: embedding, vocabulary: 8, outputs: 4}\n"
				   "  - {name: c, kind: conv, outputs: 8, kernel: 1}\n"
				   "  - {name: l, kind: softmax-loss}\n";
	const struct psd_layer_times_options options = {
		.kind = &psd_device_cpu, .batch = 20, .n_threads = 1, .n_repeats = 1};
	struct scratch_file file = scratch_file_write(text);
	unsigned n_of[8] = {0};
	struct psd_layer_times times;
	struct psd_graph graph;
	struct psd_error err;

	cr_assert_eq(psd_graph_load(&graph, file.path, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_layer_times_open(&times, &graph, &options, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(psd_layer_times_measure(&times, &err), PSD_OK, "%s", err.text);
	for (unsigned i = 0; i < 20 * 20; i++) {
		cr_assert(times.images[i] >= 0 && times.images[i] < 8 && floorf(times.images[i]) == times.images[i]);
		cr_assert_eq(times.labels[i], 0);
		n_of[(unsigned)times.images[i]]++;
	}
	for (unsigned token = 0; token < 8; token++)
		cr_expect(n_of[token] >= 17 && n_of[token] <= 83, "token %u: %u times", token, n_of[token]);
	psd_layer_times_release(&times);
	psd_graph_release(&graph);
	remove(file.path);
}

/* ---- between two workers ---- */

#define STALL_SEC     30.0
#define LINK_BPS      2.5e5 /* half a tensor of 64 KiB is on it for a second */
#define SLOW_LINK_BPS 250.0 /* so slow that for longer than STALL_SEC nothing moves */

/* As it is for two workers, on links of that rate if they are of two nodes. */
static struct psd_exchange_options pair(unsigned workers_per_node, double link_bps)
{
	return (struct psd_exchange_options){
		.n_workers = 2,
		.workers_per_node = workers_per_node,
		.n_tensors = 1,
		.side = 128,
		.n_streams = 1,
		.n_iterations = 1,
		.rate_bps = link_bps,
		.cluster_kind = PSD_CLUSTER_SHAPED,
		.stall_sec = STALL_SEC,
	};
}

/* Seconds of the longest message, and the bytes of all. */
static double longest_sec(const struct psd_exchange_options *options, double *bytes)
{
	struct psd_exchange exchange;
	struct psd_error err = {.text = ""};
	double sec = 0.0;

	cr_assert_eq(psd_exchange_run(&exchange, options, &err), PSD_OK, "%s", err.text);
	*bytes = 0.0;
	for (unsigned f = 0; f < exchange.n_flights; f++) {
		const struct psd_exchange_flight *flight = &exchange.flights[f];

		*bytes += flight->bytes;
		if (flight->bytes > 0.0 && flight->end_sec - flight->start_sec > sec)
			sec = flight->end_sec - flight->start_sec;
	}
	psd_exchange_release(&exchange);
	return sec;
}

Test(calibrate, workers_of_one_node_exchange_past_the_link)
{
	struct psd_exchange_options options = pair(2, SLOW_LINK_BPS);
	const double tensor_bytes = PSD_EXCHANGE_BYTES(options.side), half_sec = 8.0 * tensor_bytes / 2.0 / LINK_BPS;
	double bytes;

	/* to the shard and back: from the other worker's memory, for the link would end the run */
	(void)longest_sec(&options, &bytes);
	cr_expect_eq(bytes, 2.0 * tensor_bytes);
	/* each of two nodes has half of a shard, and the link is between them */
	options = pair(1, LINK_BPS);
	cr_expect_gt(longest_sec(&options, &bytes), half_sec / 2.0);
	cr_expect_eq(bytes, 2.0 * tensor_bytes);
}

enum { LINE_BYTES = 4096 };

static void keep_line(void *context, const char *line)
{
	snprintf(context, LINE_BYTES, "%s", line);
}

/* No file may be longer than this, so no memory can be made that has no name. */
Test(calibrate, workers_that_share_no_memory_say_so)
{
	const struct rlimit limit = {1 << 16, 1 << 16};
	char *line = mmap(NULL, LINE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct psd_exchange_options options = pair(2, LINK_BPS);
	double bytes;

	cr_assert_neq(line, MAP_FAILED);
	options.cluster_kind = PSD_CLUSTER_LOOPBACK;
	options.remark = keep_line;
	options.context = line;
	(void)longest_sec(&options, &bytes);
	cr_expect_str_eq(line, "");
	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	(void)longest_sec(&options, &bytes);
	cr_expect_not_null(strstr(line, "cannot share memory with worker "), "%s", line);
	cr_expect_not_null(strstr(line, ", TCP is used: File too large"), "%s", line);
	munmap(line, LINE_BYTES);
}
