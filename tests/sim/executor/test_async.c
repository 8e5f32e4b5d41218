/* Simulations and estimates of asynchronous training against algebra. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>
#include <math.h>

#include "engine/result/result.h"
#include "tests/simulate_helper.h"

/* Seconds of an iteration are from least to most in the simulation and in the estimate. */
static void expect_sec(const struct psd_case *made, double least_sec, double most_sec)
{
	const double simulated_sec = simulated(made).iteration_sec, estimated_sec = estimated(made).iteration_sec;

	cr_expect(simulated_sec >= least_sec && simulated_sec <= most_sec, "%u workers, simulated: %g s, not %g to %g",
		  made->plan.layout.workers, simulated_sec, least_sec, most_sec);
	cr_expect(estimated_sec >= least_sec && estimated_sec <= most_sec, "%u workers, estimated: %g s, not %g to %g",
		  made->plan.layout.workers, estimated_sec, least_sec, most_sec);
}

/* A worker pushes all gradients but those of its own shard, and its shard returns as many bytes to other workers: with
 * N nodes, a link moves 2 (N - 1) / N of the 145578 values of 4 bytes in each direction. 2000 samples/s are 5 ms a
 * batch, which overlaps with some of this. A node sends what it pushes and what its shard returns at the same time. */
static void check_slow_links(unsigned nodes)
{
	const double link_sec = 2.0 * (nodes - 1) / nodes * 145578 * 4 * 8 / 20e6;
	struct loaded loaded;
	struct psd_case made;

	loaded_print(&loaded,
		     "title: t\nmodel: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 10}\n"
		     "compute: {device: k20, samples_per_sec: 2000}\n"
		     "cluster: {stack: none, nodes: %u, network: {bandwidth: 20Mbps, latency: 10us}}\n"
		     "systems: [{name: A, sync: ps, asynchronous: {}}]\n",
		     nodes);
	loaded_case(&made, &loaded, 0, 0);
	expect_sec(&made, link_sec, link_sec + 0.007);
	psd_case_release(&made);
	loaded_close(&loaded);
}

Test(async_time, workers_share_slow_links_evenly)
{
	for (unsigned nodes = 2; nodes <= 5; nodes++)
		check_slow_links(nodes);
}

/* Both devices compute 2000 samples/s, whatever their batches: 1020 samples take 1020 / 4000 s. Messages of 0.58 MB
 * add 12 us for each on a link of 400 Gbit/s: 1 % of the 10 ms of a batch of 20. */
Test(async_time, the_rate_is_the_sum_of_workers_rates)
{
	struct loaded loaded;
	struct psd_case made;

	loaded_open(&loaded, "title: t\nmodel: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 20}\n"
			     "compute: {device: k20, samples_per_sec: 2000}\n"
			     "cluster: {stack: none, network: {bandwidth: 400Gbps, latency: 1us}, groups: [{nodes: 1}, "
			     "{nodes: 1, batch_per_worker: 1000, speed: 1}]}\n"
			     "systems: [{name: A, sync: ps, asynchronous: {}}]\n");
	loaded_case(&made, &loaded, 0, 0);
	expect_sec(&made, 1020.0 / 4000, 1.01 * 1020 / 4000);
	psd_case_release(&made);
	loaded_close(&loaded);
}

/* A node at half speed: 10 ms and 20 ms an iteration. The quick worker is B ahead after 2 B of its N
 * iterations. It ends when the slow one has ended N - B, so that its mean is the larger of 10 ms and 20 (N - B) / N ms.
 * The mean over both workers is harmonic. */
static void check_bound(unsigned bound, unsigned iterations, bool is_at_bound)
{
	const double quick_sec = fmax(0.01, 0.02 * (1.0 - (double)bound / iterations));
	const double expected_sec = 2.0 / (1.0 / quick_sec + 1.0 / 0.02);
	struct loaded loaded;
	struct psd_case made;

	loaded_print(&loaded,
		     "title: t\nmodel: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 20}\n"
		     "compute: {device: k20, samples_per_sec: 2000}\n"
		     "cluster: {stack: none, nodes: 2, network: {bandwidth: 400Gbps, latency: 1us}, slow: [{node: 1, "
		     "compute: 50%%}]}\n"
		     "systems: [{name: A, sync: ps, asynchronous: {bound: %u}}]\n"
		     "train: {iterations: %u, learning_rate: {policy: fixed, base: 0.1}}\n",
		     bound, iterations);
	loaded_case(&made, &loaded, 0, 0);
	const struct psd_outcome outcome = simulated(&made);

	cr_expect_float_eq(outcome.iteration_sec, expected_sec, 0.02 * expected_sec, "bound %u: %g s, not %g", bound,
			   outcome.iteration_sec, expected_sec);
	cr_expect_float_eq(outcome.slowest_sec, 0.02, 0.02 * 0.02, "bound %u: %g s", bound, outcome.slowest_sec);
	cr_expect_eq(outcome.is_at_bound, is_at_bound, "bound %u", bound);
	cr_expect(outcome.bound_from + 1 >= 2 * bound && outcome.bound_from <= 2 * bound + 4, "bound %u: from %u",
		  bound, (unsigned)outcome.bound_from);
	psd_case_release(&made);
	loaded_close(&loaded);
}

Test(async_time, a_job_ends_with_its_slowest_worker)
{
	cr_expect_float_eq(psd_result_last_sec(&(struct psd_outcome){.iteration_sec = 1.0, .slowest_sec = 2.0}), 2.0,
			   0);
	cr_expect_float_eq(psd_result_last_sec(&(struct psd_outcome){.iteration_sec = 1.0}), 1.0, 0);
}

Test(async_time, quick_workers_run_ahead_to_the_bound_of_a_short_training)
{
	check_bound(1, 30, true);
	check_bound(5, 25, true);
	check_bound(10, 25, true);
	check_bound(15, 25, false);
	check_bound(15, 100, true);
}

Test(async_time, quick_workers_wait_at_the_bound_of_a_long_training)
{
	check_bound(2, 240, true);
	check_bound(20, 240, true);
	check_bound(50, 240, true);
	check_bound(119, 240, true);
	check_bound(130, 240, false);
	check_bound(1000, 240, false);
}
