/* The table of devices against published times of single GPUs. `build/psd-tests --filter 'device/meets*' --verbose`
 * prints the table. */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <math.h>
#include <stdio.h>

#include "engine/cost/costs.h"
#include "engine/model/model.h"

enum quantity { ITERATION, FORWARD, BACKWARD };
static const char *const quantity_names[] = {"iteration", "forward", "backward"};

struct rate {
	const char *device, *network; /* network: a file in scenarios/models/ */
	unsigned batch;
	bool is_half;
	enum quantity quantity;
	double milliseconds;
};

/* Caffe's own notes on its CaffeNet, whose normalisation comes behind the pools: 20 iterations on K20 before cuDNN, on
 * K40 with its first version. GradientFlow (arXiv 1902.06855v3), Fig 1. Poseidon (ATC'17): 34.6 images/s in Caffe.
 * TrioSim's sample traces of an H100, fp32 or TF32. */
static const struct rate rates[] = {
	{"k20", "alexnet", 256, false, ITERATION, 1800},
	{"k40", "alexnet", 256, false, ITERATION, 1325},
	{"k80", "alexnet-bn", 128, false, ITERATION, 314.5},
	{"m40", "alexnet-bn", 128, false, ITERATION, 133.5},
	{"p100", "alexnet-bn", 128, false, ITERATION, 76.9},
	{"v100", "alexnet-bn", 128, false, ITERATION, 45.6},
	{"v100", "alexnet-bn", 128, true, ITERATION, 35.2},
	{"k80", "resnet50", 64, false, ITERATION, 1640},
	{"m40", "resnet50", 64, false, ITERATION, 710},
	{"p100", "resnet50", 64, false, ITERATION, 450}, /* the text has 172 images/s, which are 372 ms */
	{"v100", "resnet50", 64, false, ITERATION, 230},
	{"v100", "resnet50", 64, true, ITERATION, 130},
	{"titan-x", "vgg19-22k", 32, false, ITERATION, 924.9},
	{"h100", "vgg13", 128, false, FORWARD, 28.1},
	{"h100", "vgg13", 128, false, BACKWARD, 62.4},
	{"h100", "resnet50", 128, false, FORWARD, 23.9},
	{"h100", "resnet50", 128, false, BACKWARD, 46.0},
};
enum { N_RATES = sizeof(rates) / sizeof(*rates) };

static double sum(const double *values, unsigned n)
{
	double total = 0.0;

	for (unsigned i = 0; i < n; i++)
		total += values[i];
	return total;
}

static double predicted_ms(const struct rate *rate)
{
	struct psd_error err = {.text = ""};
	struct psd_graph graph;
	struct psd_costs costs;
	char path[128];

	snprintf(path, sizeof(path), "scenarios/models/%s.yaml", rate->network);
	cr_assert_eq(psd_graph_load(&graph, path, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_costs_from_device(&costs, &graph, psd_device_find(rate->device), rate->batch, rate->is_half, 0,
					   &err),
		     PSD_OK, "%s", err.text);
	const double parts_ms[] = {[ITERATION] = 1e3 * costs.compute_sec,
				   [FORWARD] = 1e3 * sum(costs.forward_sec, costs.n_layers),
				   [BACKWARD] = 1e3 * sum(costs.backward_sec, costs.n_layers)};
	psd_costs_release(&costs);
	psd_graph_release(&graph);
	return parts_ms[rate->quantity];
}

Test(device, meets_published_times)
{
	double error_sum = 0.0;

	for (unsigned i = 0; i < N_RATES; i++) {
		const double ms = predicted_ms(&rates[i]), error = ms / rates[i].milliseconds - 1.0;

		error_sum += fabs(error);
		cr_log_info("%-8s %-10s %3u %-5s %-9s %7.1f ms, published %7.1f, %+3.0f %%", rates[i].device,
			    rates[i].network, rates[i].batch, rates[i].is_half ? "mixed" : "fp32",
			    quantity_names[rates[i].quantity], ms, rates[i].milliseconds, 100 * error);
		cr_expect(fabs(error) < 0.25, "%s, %s: %g ms, published %g", rates[i].device, rates[i].network, ms,
			  rates[i].milliseconds);
	}
	cr_expect_lt(error_sum / N_RATES, 0.12);
}
