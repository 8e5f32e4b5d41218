/* An estimator at several rates of the links: what it finds is what estimates of new cases find. */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/estimate/estimate.h"
#include "tests/loaded_helper.h"

#define SWEEP "sweep: {bandwidth: [1Gbps, 40Gbps, 200Mbps]}\n"

static const char *const clusters[] = {
	"nodes: 5, network: {bandwidth: 1Gbps, latency: 30us}",
	"nodes: 3, workers_per_node: 4, network: {bandwidth: 1Gbps, latency: 30us, payload: 95%}, local: {bandwidth: "
	"64Gbps, latency: 2us}",
	"nodes: 6, network: {bandwidth: 1Gbps, latency: 30us, topology: racks, nodes_per_rack: 2, oversubscription: 2}",
	"nodes: 4, machine: {cores: 4, nodes: 2, bytes: 2GBps, message: 10us}, "
	"network: {bandwidth: 1Gbps, latency: 30us}",
	"nodes: 4, host: {copy: 6GBps, transport: 4Gbps, streams: 90%, incast: 2%, device_share: 20%}, "
	"network: {bandwidth: 1Gbps, latency: 30us}",
};
static const char *const systems[] = {
	"sync: ps",
	"sync: ps, servers: 2",
	"sync: sfb",
	"sync: hybrid",
	"sync: ring",
	"sync: two-level",
	"sync: torus, fuse: 1MiB",
	"sync: ring, schedule: sequential",
};

/* Estimates of a case of its own. */
static struct psd_outcome estimate_new(const struct loaded *loaded, unsigned point, uint32_t *n_ops)
{
	struct psd_case made;
	struct psd_outcome outcome;
	struct psd_error err = {.text = ""};

	loaded_case(&made, loaded, 0, point);
	cr_assert_eq(psd_estimate(&made.program, psd_run_length_make(made.system, 0, 0.0), &outcome, &err), PSD_OK,
		     "%s", err.text);
	*n_ops = made.program.n_ops;
	psd_case_release(&made);
	return outcome;
}

static void expect_same(const struct psd_outcome *moved, const struct psd_outcome *made, const char *cluster,
			const char *system)
{
	cr_expect_eq(moved->iteration_sec, made->iteration_sec, "%s, %s", cluster, system);
	cr_expect_eq(moved->n_events, made->n_events, "%s, %s", cluster, system);
	cr_expect_eq(moved->sent_bytes_per_node, made->sent_bytes_per_node, "%s, %s", cluster, system);
	cr_expect_eq(moved->received_bytes_per_node, made->received_bytes_per_node, "%s, %s", cluster, system);
	cr_expect_eq(memcmp(&moved->parts, &made->parts, sizeof(moved->parts)), 0, "%s, %s", cluster, system);
	cr_expect_eq(memcmp(moved->busy_sec, made->busy_sec, sizeof(moved->busy_sec)), 0, "%s, %s", cluster, system);
}

static void check(const char *cluster, const char *system)
{
	struct loaded loaded;
	struct psd_case made;
	struct psd_estimator *estimator;
	struct psd_outcome outcome;
	struct psd_error err = {.text = ""};
	uint32_t n_ops;

	loaded_print(&loaded,
		     "title: t\nmodel: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 32}\n"
		     "compute: {device: v100}\ncluster: {stack: none, %s}\nsystems: [{name: s, %s}]\n" SWEEP,
		     cluster, system);
	loaded_case(&made, &loaded, 0, 0);
	struct psd_run_length length = psd_run_length_make(made.system, 0, 0.0);

	cr_assert_eq(psd_estimator_new(&estimator, &made.program, length, &err), PSD_OK, "%s", err.text);
	for (unsigned p = 0; p < psd_scenario_points(&loaded.scenario); p++) {
		const struct psd_point point = psd_scenario_point(&loaded.scenario, p);
		const struct psd_outcome expected = estimate_new(&loaded, p, &n_ops);

		cr_assert(psd_case_reaches(&made, &loaded.costed, made.system, point));
		psd_case_move(&made, point);
		length.most_events = 7; /* a run that is cut off leaves nothing behind */
		cr_expect_eq(psd_estimator_run(estimator, length, &outcome, &err), PSD_EINVAL);
		length.most_events = UINT64_MAX;
		cr_assert_eq(psd_estimator_run(estimator, length, &outcome, &err), PSD_OK, "%s", err.text);
		cr_expect_eq(made.program.n_ops, n_ops);
		expect_same(&outcome, &expected, cluster, system);
	}
	psd_estimator_free(estimator);
	psd_case_release(&made);
	loaded_close(&loaded);
}

Test(estimator, finds_at_each_rate_what_a_new_case_finds)
{
	for (size_t c = 0; c < sizeof(clusters) / sizeof(clusters[0]); c++)
		for (size_t s = 0; s < sizeof(systems) / sizeof(systems[0]); s++)
			check(clusters[c], systems[s]);
}

/* Runs with as many events as they need are not refused. Workers by themselves send 2 (P - 1) messages or so for each
 * tensor and iteration, which is counted before an estimate begins. */
Test(estimator, asynchronous_runs_that_are_too_long_are_refused_before_they_begin)
{
	for (size_t c = 0; c < sizeof(clusters) / sizeof(clusters[0]); c++) {
		struct loaded loaded;
		struct psd_case made;
		struct psd_estimator *estimator;
		struct psd_outcome outcome;
		struct psd_error err = {.text = ""};

		loaded_print(&loaded,
			     "title: t\nmodel: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 32}\n"
			     "compute: {device: v100}\ncluster: {stack: none, %s}\n"
			     "systems: [{name: s, sync: ps, asynchronous: {bound: 2}}]\n",
			     clusters[c]);
		loaded_case(&made, &loaded, 0, 0);
		struct psd_run_length length = psd_run_length_make(made.system, 0, 0.0);

		cr_assert_eq(psd_estimate(&made.program, length, &outcome, &err), PSD_OK, "%s", err.text);
		length.most_events = outcome.n_events;
		cr_expect_eq(psd_estimate(&made.program, length, &outcome, &err), PSD_OK, "%s", err.text);
		length.most_events = outcome.n_events / 32;
		cr_expect_eq(psd_estimator_new(&estimator, &made.program, length, &err), PSD_EINVAL);
		cr_expect(err.is_limit);
		psd_case_release(&made);
		loaded_close(&loaded);
	}
}

/* Methods that are chosen by seconds, and buckets that are found, may differ at another rate. */
Test(estimator, a_case_reaches_no_rate_on_which_it_depends)
{
	static const char *const dependent[] = {"sync: hybrid, rule: seconds", "sync: auto", "sync: ring, fuse: auto"};

	for (size_t s = 0; s < sizeof(dependent) / sizeof(dependent[0]); s++) {
		struct loaded loaded;
		struct psd_case made;

		loaded_print(&loaded,
			     "title: t\nmodel: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 32}\n"
			     "compute: {device: v100}\ncluster: {stack: none, %s}\nsystems: [{name: s, %s}]\n" SWEEP,
			     clusters[0], dependent[s]);
		loaded_case(&made, &loaded, 0, 0);
		cr_expect_not(
			psd_case_reaches(&made, &loaded.costed, made.system, psd_scenario_point(&loaded.scenario, 1)),
			"%s", dependent[s]);
		psd_case_release(&made);
		loaded_close(&loaded);
	}
}
