/* A system's budget: its nodes have links of that rate, in every prediction. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>

#include "tests/simulate_helper.h"

/* fidelity, bandwidth, keys of the system */
#define SCENARIO                                                                                                       \
	"title: t\n"                                                                                                   \
	"model: {graph: scenarios/models/mlp.yaml, batch_per_worker: 32}\n"                                            \
	"compute: {device: k20}\n"                                                                                     \
	"fidelity: %s\n"                                                                                               \
	"cluster: {nodes: 4, stack: none, network: {bandwidth: %s, latency: 50us, payload: 95%%}}\n"                   \
	"systems: [{name: A, %s}]\n"

struct predictions {
	struct psd_outcome estimate, flow, message;
};

static struct psd_outcome predict(const char *fidelity, const char *bandwidth, const char *keys, bool is_estimate)
{
	struct loaded loaded;
	struct psd_case made;

	loaded_print(&loaded, SCENARIO, fidelity, bandwidth, keys);
	loaded_case(&made, &loaded, 0, 0);
	const struct psd_outcome outcome = is_estimate ? estimated(&made) : simulated(&made);
	psd_case_release(&made);
	loaded_close(&loaded);
	return outcome;
}

static struct predictions predict_all(const char *bandwidth, const char *keys)
{
	return (struct predictions){
		.estimate = predict("flow", bandwidth, keys, true),
		.flow = predict("flow", bandwidth, keys, false),
		.message = predict("message", bandwidth, keys, false),
	};
}

static void expect_equal(const struct psd_outcome *one, const struct psd_outcome *other, const char *what)
{
	cr_expect_float_eq(one->iteration_sec, other->iteration_sec, 1e-12 * one->iteration_sec,
			   "%s: %.17g and %.17g s", what, one->iteration_sec, other->iteration_sec);
	cr_expect_eq(one->sent_bytes_per_node, other->sent_bytes_per_node, "%s", what);
}

static void expect_alike(const char *bandwidth, const char *keys, const char *other_bandwidth, const char *other_keys)
{
	const struct predictions one = predict_all(bandwidth, keys), other = predict_all(other_bandwidth, other_keys);

	expect_equal(&one.estimate, &other.estimate, "estimate");
	expect_equal(&one.flow, &other.flow, "flow");
	expect_equal(&one.message, &other.message, "message");
}

/* Not a wider one. Payload has 1448 of the 1547 bytes that a packet and half an acknowledgement have; a link of 14.48
 * Mbit/s whose payload is 95 % has a rate of 14.48 / 0.95. */
Test(budget, nodes_have_links_of_its_rate)
{
	expect_alike("10Gbps", "sync: ring, budget: 15.47Mbps", "15.242105263157895Mbps", "sync: ring");
	expect_alike("10Gbps", "sync: ps, budget: 15.47Mbps", "15.242105263157895Mbps", "sync: ps");
	expect_alike("40Mbps", "sync: ring, budget: 10Gbps", "40Mbps", "sync: ring");
}

/* Half the link takes longer than the link, where the exchange does not hide. */
Test(budget, less_takes_longer)
{
	const struct psd_outcome all = predict("flow", "40Mbps", "sync: ring", true);
	const struct psd_outcome half = predict("flow", "40Mbps", "sync: ring, budget: 20Mbps", true);

	cr_expect_gt(half.iteration_sec, 1.5 * all.iteration_sec);
	cr_expect_eq(half.sent_bytes_per_node, all.sent_bytes_per_node);
}
