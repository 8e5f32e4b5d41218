/* What a calibration writes, from measurements that are made up here. */
#define _XOPEN_SOURCE 700
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "real/calibrate/calibrate_parts.h"
#include "tests/scratch_folder.h"

static const char text[] =
	"title: t\nmodel: {graph: models/cifar10-quick.yaml, batch_per_worker: 8}\ncompute: {device: cpu}\n"
	"cluster: {nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
	"systems:\n  - {name: A, sync: ps}\n  - {name: B, sync: ring, host: {latency: 1ms, copy: 8GBps, "
	"collective: [{call: 1ms}]}}\n"
	"train:\n  data: {kind: synthetic}\n  iterations: 1\n  learning_rate: {policy: fixed, base: 0.001}\n";

static void load(struct psd_scenario *scenario)
{
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_scenario_parse(scenario, "scenarios/test.yaml", text, strlen(text), NULL, &err), PSD_OK, "%s",
		     err.text);
}

#define BYTES_BPS   16.384e9
#define MESSAGE_SEC 35e-6
#define BESIDE_SEC  700e-6

/* A machine whose messages have this constant, on the scenario's links. Reads back what was written into *calibrated;
 * table: NULL, or gets it. */
static void calibrate(const struct psd_scenario *scenario, double constant_sec, const char *path,
		      struct psd_scenario *calibrated, struct psd_text *table)
{
	struct psd_subject_matter matter;
	const struct psd_calibrate_options options = {
		.matter = &matter, .point = psd_scenario_point(scenario, 0), .output_path = path, .version = "test"};
	struct psd_calibration calibration = {.options = &options, .cores = 2, .n_busy = 2};
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_subject_matter_load(&matter, scenario, &err), PSD_OK, "%s", err.text);
	calibration.forward_sec = calloc(matter.graph.n_layers, sizeof(double));
	calibration.backward_sec = calloc(matter.graph.n_layers, sizeof(double));
	for (unsigned l = 0; l < matter.graph.n_layers; l++)
		calibration.forward_sec[l] = calibration.backward_sec[l] = 1e-3;
	for (unsigned q = 0; q < PSD_QUANTITIES; q++)
		calibration.measured[q] = (struct psd_measured){.is_there = true, .value = 1, .n_samples = 1};
	calibration.measured[PSD_QUANTITY_REBUILD].value = 1e9; /* a profile has no digits for less than a kFLOPS */
	calibration.measured[PSD_QUANTITY_LATENCY_SEC].value = constant_sec;
	calibration.measured[PSD_QUANTITY_BYTES_BPS].value = BYTES_BPS;
	calibration.measured[PSD_QUANTITY_MESSAGE_SEC].value = MESSAGE_SEC;
	calibration.measured[PSD_QUANTITY_BESIDE_SEC].value = BESIDE_SEC;
	cr_assert_eq(psd_calibrate_open(&calibration, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_calibrate_write(&calibration, &err), PSD_OK, "%s", err.text);
	if (table)
		psd_calibrate_add_table(table, &calibration);
	free(calibration.forward_sec);
	free(calibration.backward_sec);
	psd_subject_matter_release(&matter);
	cr_assert_eq(psd_scenario_load(calibrated, path, NULL, &err), PSD_OK, "%s", err.text);
}

static void expect_latencies(const struct psd_scenario *calibrated, double network_sec, double host_sec)
{
	const double exact_sec = 1e-12; /* four digits are written */

	cr_expect_float_eq(calibrated->network.latency_sec, network_sec, exact_sec, "%.9g s",
			   calibrated->network.latency_sec);
	cr_expect_float_eq(calibrated->host.latency_sec, host_sec, exact_sec, "%.9g s", calibrated->host.latency_sec);
	for (unsigned s = 0; s < calibrated->n_systems; s++)
		cr_expect_float_eq(calibrated->systems[s].host.latency_sec, host_sec, exact_sec, "%s: %.9g s",
				   calibrated->systems[s].name, calibrated->systems[s].host.latency_sec);
}

static void expect_the_machine_and_the_host_alone(const struct psd_scenario *calibrated)
{
	const double rounded_bps = 16.38e9; /* to four digits */

	cr_expect_eq(calibrated->machine.cores, 2);
	cr_expect_float_eq(calibrated->machine.bytes_bps, rounded_bps, 1.0);
	cr_expect_float_eq(calibrated->machine.message_sec, MESSAGE_SEC, 1e-12);
	for (unsigned s = 0; s < calibrated->n_systems; s++) {
		const struct psd_host *host = &calibrated->systems[s].host;

		cr_expect_float_eq(host->iteration_sec, BESIDE_SEC, 1e-12);
		cr_expect(host->copy_bps == 0 && host->n_collective_classes == 0, "%s", calibrated->systems[s].name);
	}
}

Test(calibrate_output, the_links_latency_and_the_message_stay_and_the_rest_is_the_hosts)
{
	const struct scratch_folder folder = scratch_folder_make();
	struct psd_scenario scenario, calibrated;
	struct psd_text table = {.bytes = NULL};
	const char *row;

	load(&scenario);
	calibrate(&scenario, 112.5e-6, scratch_folder_path(&folder, "c.yaml").text, &calibrated, &table);
	expect_latencies(&calibrated, 50e-6, 112.5e-6 - 50e-6 - MESSAGE_SEC);
	expect_the_machine_and_the_host_alone(&calibrated);
	row = strstr(table.bytes, "\nhost.latency ");
	cr_assert_not_null(row, "%s", table.bytes);
	row += strlen("\nhost.latency ");
	cr_expect_eq(strncmp(row + strspn(row, " "), "27.5 us ", 8), 0, "%s", table.bytes);
	psd_text_release(&table);
	psd_scenario_release(&calibrated);
	psd_scenario_release(&scenario);
	scratch_folder_remove(&folder);
}

/* Two attempts that gave 1.0 and 1.06 of the value. */
Test(calibrate_output, noise_is_marked_and_says_what_to_do)
{
	static const double most[] = {1.04, 1.06};
	const struct psd_scenario scenario = {.network.latency_sec = 0.0};
	const struct psd_subject_matter matter = {.scenario = &scenario};
	const struct psd_calibrate_options options = {.matter = &matter};

	for (unsigned i = 0; i < 2; i++) {
		struct psd_calibration calibration = {.options = &options};
		struct psd_text table = {.bytes = NULL};

		calibration.measured[PSD_QUANTITY_REDUCE_BPS] = (struct psd_measured){
			.is_there = true, .value = 1, .least = 1, .most = most[i], .n_samples = 2};
		psd_calibrate_add_table(&table, &calibration);
		cr_expect_eq(strstr(table.bytes, "  noisy\n\nnoisy: measurements lie more than 5 % apart, ") != NULL,
			     i == 1, "%s", table.bytes);
		cr_expect_eq(strstr(table.bytes, "Calibrate again") != NULL, i == 1, "%s", table.bytes);
		psd_text_release(&table);
	}
}

/* Links are delayed by the same again, so a message takes what it took. */
Test(calibrate_output, calibrating_again_raises_nothing)
{
	const struct scratch_folder folder = scratch_folder_make();
	struct psd_scenario scenario, once, twice;

	load(&scenario);
	calibrate(&scenario, 112.5e-6, scratch_folder_path(&folder, "once.yaml").text, &once, NULL);
	calibrate(&once, once.network.latency_sec + MESSAGE_SEC + 22.5e-6,
		  scratch_folder_path(&folder, "twice.yaml").text, &twice, NULL);
	expect_latencies(&twice, 50e-6, 22.5e-6);
	psd_scenario_release(&twice);
	psd_scenario_release(&once);
	psd_scenario_release(&scenario);
	scratch_folder_remove(&folder);
}

Test(calibrate_output, ends_quicker_than_the_links_add_nothing)
{
	const struct scratch_folder folder = scratch_folder_make();
	struct psd_scenario scenario, calibrated;

	load(&scenario);
	calibrate(&scenario, 50e-6 + 0.5 * MESSAGE_SEC, scratch_folder_path(&folder, "c.yaml").text, &calibrated, NULL);
	expect_latencies(&calibrated, 50e-6, 0);
	psd_scenario_release(&calibrated);
	psd_scenario_release(&scenario);
	scratch_folder_remove(&folder);
}
