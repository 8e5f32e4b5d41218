/* How much a system gathers that leaves it open. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>
#include <math.h>

#include "tests/simulate_helper.h"

#define SAME_RATIO 1e-6

static const char *const sizes[] = {"1B", "64KiB", "1MiB", "16MiB", "64MiB", "1GiB", "auto"};
enum { SIZES = sizeof(sizes) / sizeof(*sizes) };

/* A system for each size. */
static void open_sizes(struct loaded *loaded, const char *cluster, const char *system)
{
	char text[4096];
	int length =
		snprintf(text, sizeof(text),
			 "title: t\nmodel: {graph: scenarios/models/alexnet.yaml, batch_per_worker: 32}\n"
			 "compute: {device: v100}\n"
			 "cluster: {stack: none, nodes: 8, network: {bandwidth: 10Gbps, latency: 50us}%s}\nsystems:\n",
			 cluster);

	for (unsigned i = 0; i < SIZES; i++)
		length += snprintf(text + length, sizeof(text) - (size_t)length, "  - {name: s%u, fuse: %s, %s}\n", i,
				   sizes[i], system);
	loaded_open(loaded, text);
}

static void expect_quickest(const char *cluster, const char *system)
{
	double sec[SIZES], least_sec = INFINITY;
	struct loaded loaded;

	open_sizes(&loaded, cluster, system);
	for (unsigned i = 0; i < SIZES; i++) {
		struct psd_case made;

		loaded_case(&made, &loaded, i, 0);
		sec[i] = simulated(&made).iteration_sec;
		least_sec = fmin(least_sec, sec[i]);
		psd_case_release(&made);
	}
	cr_expect_leq(sec[SIZES - 1], (1.0 + SAME_RATIO) * least_sec, "%s, %s: %.6f s, %.6f s by another size", cluster,
		      system, sec[SIZES - 1], least_sec);
	loaded_close(&loaded);
}

/* Copies, updates and the next iteration's layers go on beside exchanges, if these are small enough. */
Test(gathered, no_other_size_is_quicker_in_simulation)
{
	static const char *const clusters[] = {
		"",
		", host: {copy: 3GBps}",
		", host: {copy: 6GBps, update: 5GBps}",
		", host: {reduce: 2GBps, agree: 1ms}",
		", host: {copy: 3GBps, device_share: 30%, agree: 300us, tensor: 50us, iteration: 2ms}",
	};
	static const char *const systems[] = {"sync: ring", "sync: ring, schedule: sequential, wire: bf16",
					      "sync: ring, barrier: layer, priority: forward",
					      "sync: auto, pipeline: 4MiB"};

	for (unsigned c = 0; c < sizeof(clusters) / sizeof(*clusters); c++)
		for (unsigned s = 0; s < sizeof(systems) / sizeof(*systems); s++)
			expect_quickest(clusters[c], systems[s]);
}

/* Hosts of a run agree on what they exchange, but not on their machines. */
Test(gathered, machines_do_not_matter)
{
	uint64_t fuse_bytes[2];

	for (unsigned i = 0; i < 2; i++) {
		struct loaded loaded;
		struct psd_case made;

		open_sizes(&loaded, i ? ", machine: {cores: 8, bytes: 100MBps, message: 1ms}" : "", "sync: ring");
		loaded_case(&made, &loaded, SIZES - 1, 0);
		fuse_bytes[i] = made.plan.fuse_bytes;
		psd_case_release(&made);
		loaded_close(&loaded);
	}
	cr_expect_eq(fuse_bytes[0], fuse_bytes[1]);
}
