/* The table of devices against published figures of single GPUs: throughputs in
 * scenarios/published/one-gpu/single-gpu.csv, and times of one direction here. `build/psd-tests --filter
 * 'device/meets*' --verbose` prints both tables. */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/csv.h"
#include "engine/cost/costs.h"
#include "engine/model/model.h"

enum column { MODEL, SEQUENCE, DEVICE, PRECISION, BATCH, RATE, LOWEST, HIGHEST, RUNS, USE, SOURCE, N_COLUMNS };
static const char path[] = "scenarios/published/one-gpu/single-gpu.csv";
static const char header[] = "model,sequence,device,precision,batch,samples_per_sec,lowest,highest,runs,use,source";

struct point {
	const char *model, *device; /* model: a file in scenarios/models/ */
	unsigned sequence, batch;
	enum psd_precision precision;
};

static double sum(const double *values, unsigned n)
{
	double total = 0.0;

	for (unsigned i = 0; i < n; i++)
		total += values[i];
	return total;
}

static struct psd_layer_times {
	double forward_sec, backward_sec;
} predict(const struct point *point)
{
	struct psd_error err = {.text = ""};
	struct psd_graph graph;
	struct psd_costs costs;
	char file[128];

	snprintf(file, sizeof(file), "scenarios/models/%s.yaml", point->model);
	cr_assert_eq(psd_graph_load_as(&graph, file, &(struct psd_model_choices){.sequence = point->sequence}, &err),
		     PSD_OK, "%s", err.text);
	cr_assert_eq(psd_costs_from_device(&costs, &graph, psd_device_find(point->device), point->batch,
					   point->precision, 0, &err),
		     PSD_OK, "%s", err.text);
	const struct psd_layer_times times = {sum(costs.forward_sec, costs.n_layers),
					      sum(costs.backward_sec, costs.n_layers)};
	psd_costs_release(&costs);
	psd_graph_release(&graph);
	return times;
}

static enum psd_precision precision_of(const char *name)
{
	enum psd_precision precision = PSD_PRECISION_FP32;

	while (psd_precision_names[precision] && strcmp(psd_precision_names[precision], name) != 0)
		precision++;
	cr_assert_not_null(psd_precision_names[precision], "%s", name);
	return precision;
}

/* Errors of a group of rows. */
struct errors {
	double sum, worst;
	unsigned n;
};

static void add_error(struct errors *errors, double error)
{
	errors->sum += fabs(error);
	errors->worst = fmax(errors->worst, fabs(error));
	errors->n++;
}

static void expect_row(const char *const cells[], struct errors errors[2])
{
	const struct point point = {.model = cells[MODEL],
				    .device = cells[DEVICE],
				    .sequence = (unsigned)strtoul(cells[SEQUENCE], NULL, 10),
				    .batch = (unsigned)strtoul(cells[BATCH], NULL, 10),
				    .precision = precision_of(cells[PRECISION])};
	const struct psd_layer_times times = predict(&point);
	const double published = strtod(cells[RATE], NULL);
	const double error = point.batch / (times.forward_sec + times.backward_sec) / published - 1.0;
	const bool is_target = strcmp(cells[USE], "target") == 0;

	cr_log_info("%-14s %5s %-10s %-5s %4u %9.4g published %9.4g %+4.0f %% %s", point.model, cells[SEQUENCE],
		    point.device, cells[PRECISION], point.batch, published * (1.0 + error), published, 100.0 * error,
		    is_target ? "" : cells[USE]);
	cr_expect(is_target || strcmp(cells[USE], "other") == 0, "%s", cells[USE]);
	if (is_target)
		add_error(&errors[point.sequence > 0], error);
}

/* Convolutional networks: mean error 12 %, worst 25 %. Transformers: mean 15 %. */
Test(device, meets_published_throughputs)
{
	struct psd_csv csv;
	struct psd_error err = {.text = ""};
	struct errors errors[2] = {{0}};
	bool has_line = true, has_header = false;

	cr_assert_eq(psd_csv_open(&csv, path, &err), PSD_OK, "%s", err.text);
	while (psd_csv_next(&csv, &has_line, &err) == PSD_OK && has_line) {
		if (csv.comment)
			continue;
		if (has_header) {
			cr_assert_eq(csv.n_cells, N_COLUMNS, "%u", csv.at.line);
			expect_row(csv.cells, errors);
		} else {
			cr_assert_eq(psd_csv_check_header(&csv, header, &err), PSD_OK, "%s", err.text);
		}
		has_header = true;
	}
	psd_csv_close(&csv);
	cr_assert_str_empty(err.text);
	cr_expect(errors[0].n >= 51 && errors[1].n >= 112, "%u and %u rows", errors[0].n, errors[1].n);
	for (unsigned i = 0; i < 2; i++)
		cr_log_info("%s: mean error %.1f %%, worst %.0f %%, %u rows", i ? "transformers" : "convolutions",
			    100.0 * errors[i].sum / errors[i].n, 100.0 * errors[i].worst, errors[i].n);
	cr_expect_lt(errors[0].sum / errors[0].n, 0.12);
	cr_expect_lt(errors[0].worst, 0.25);
	cr_expect_lt(errors[1].sum / errors[1].n, 0.15);
}

/* TrioSim's sample traces of an H100, fp32 or TF32. GradientFlow (arXiv 1902.06855v3), Fig 13: all layers backward. */
static const struct direction {
	struct point point;
	bool is_backward;
	double milliseconds;
} directions[] = {
	{{"vgg13", "h100", 0, 128, PSD_PRECISION_FP32}, false, 28.1},
	{{"vgg13", "h100", 0, 128, PSD_PRECISION_FP32}, true, 62.4},
	{{"resnet50", "h100", 0, 128, PSD_PRECISION_FP32}, false, 23.9},
	{{"resnet50", "h100", 0, 128, PSD_PRECISION_FP32}, true, 46.0},
	{{"alexnet-bn", "v100", 0, 128, PSD_PRECISION_MIXED}, true, 15.5},
};

Test(device, meets_published_times_of_a_direction)
{
	for (unsigned i = 0; i < sizeof(directions) / sizeof(*directions); i++) {
		const struct direction *direction = &directions[i];
		const struct psd_layer_times times = predict(&direction->point);
		const double ms = 1e3 * (direction->is_backward ? times.backward_sec : times.forward_sec);
		const double error = ms / direction->milliseconds - 1.0;

		cr_log_info("%-10s %-10s %-8s %7.1f ms, published %7.1f, %+3.0f %%", direction->point.model,
			    direction->point.device, direction->is_backward ? "backward" : "forward", ms,
			    direction->milliseconds, 100.0 * error);
		cr_expect(fabs(error) < 0.25, "%s on %s: %g ms, published %g", direction->point.model,
			  direction->point.device, ms, direction->milliseconds);
	}
}
