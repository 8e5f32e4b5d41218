/* A calibration on the CUDA device: the parts that measure it, in processes of their own as on the processor, and what
 * they write. How long a stand-in takes says nothing; that events lie around what they are named for does. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <math.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>

#include "real/calibrate/calibrate_parts.h"
#include "real/calibrate/layer_times.h"
#include "real/cluster/process_group.h"
#include "tests/cuda/cuda_net.h"
#include "tests/cuda/gpus_taken_helper.h"
#include "tests/cuda/stand_in.h"
#include "tests/scratch_folder.h"

static const char text[] =
	"title: t\nmodel: {graph: models/cifar10-quick.yaml, batch_per_worker: 2}\ncompute: {device: cpu}\n"
	"cluster: {stack: none, nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\nsystems:\n  - {name: A, sync: "
	"ring}\n"
	"train:\n  data: {kind: synthetic}\n  device: cuda\n  iterations: 1\n"
	"  learning_rate: {policy: fixed, base: 0.001}\n";

#define STALL_SEC 60.0

struct made {
	struct psd_scenario scenario;
	struct psd_costed_model costed;
	struct psd_calibrate_options options;
	struct psd_calibration calibration;
};

static void make(struct made *made, const char *path)
{
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_scenario_parse(&made->scenario, "scenarios/test.yaml", text, strlen(text), NULL, &err), PSD_OK,
		     "%s", err.text);
	cr_assert_eq(psd_costed_model_load(&made->costed, &made->scenario, &err), PSD_OK, "%s", err.text);
	made->options = (struct psd_calibrate_options){.costed = &made->costed,
						       .device = &psd_device_cuda,
						       .point = psd_scenario_point(&made->scenario, 0),
						       .output_path = path,
						       .stall_sec = STALL_SEC,
						       .version = "test"};
	made->calibration = (struct psd_calibration){
		.options = &made->options,
		.cores = 2,
		.n_busy = 1,
		.device_text = psd_process_group_share(PSD_DEVICE_TEXT_MAX),
		.forward_sec = calloc(made->costed.graph.n_layers, sizeof(double)),
		.backward_sec = calloc(made->costed.graph.n_layers, sizeof(double)),
	};
	cr_assert(made->calibration.device_text && made->calibration.forward_sec && made->calibration.backward_sec);
}

static void release(struct made *made)
{
	psd_process_group_unshare(made->calibration.device_text, PSD_DEVICE_TEXT_MAX);
	free(made->calibration.forward_sec);
	free(made->calibration.backward_sec);
	psd_costed_model_release(&made->costed);
	psd_scenario_release(&made->scenario);
}

static char *read_file(const char *path)
{
	FILE *file = fopen(path, "r");
	char *bytes = calloc(1, 1 << 16);

	cr_assert(file && bytes, "%s", path);
	(void)!fread(bytes, 1, (1 << 16) - 1, file);
	fclose(file);
	return bytes;
}

static void check_profile(const char *path)
{
	char *profile = read_file(path);

	cr_expect(strstr(profile, "; stand-in 0, not a GPU, compute capability 8.0; driver for CUDA 13."), "%s",
		  profile);
	cr_expect(strstr(profile, "# device: cuda, 1 at a time, fp32\n"), "%s", profile);
	cr_expect(strstr(profile, "\nlayer,forward_sec,backward_sec\nconv1,"), "%s", profile);
	free(profile);
}

/* The scenario that psd-sim and psd-run read next. */
static void check_scenario(const char *path, const struct psd_calibration *calibration)
{
	struct psd_scenario calibrated;
	struct psd_costed_model costed;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_scenario_load(&calibrated, path, NULL, &err), PSD_OK, "%s", err.text);
	cr_expect_float_eq(calibrated.host.copy_bps / calibration->measured[PSD_QUANTITY_COPY_BPS].value, 1.0, 1e-3);
	cr_expect_float_eq(calibrated.host.update_bps / calibration->measured[PSD_QUANTITY_UPDATE_BPS].value, 1.0,
			   1e-3);
	cr_assert_eq(psd_costed_model_load(&costed, &calibrated, &err), PSD_OK, "%s", err.text);
	cr_expect(costed.costs.has_own_memory);
	psd_costed_model_release(&costed);
	psd_scenario_release(&calibrated);
}

FOLDER_TEST(cuda_calibrate, layers_copies_and_updates_are_the_devices, scratch_folder_make())
{
	const struct scratch_path path = scratch_folder_path(&folder, "c.yaml");
	struct made made;
	struct psd_calibration *calibration = &made.calibration;
	struct psd_error err = {.text = ""};

	make(&made, path.text);
	cr_assert_eq(psd_calibrate_layers(calibration, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_calibrate_device(calibration, &err), PSD_OK, "%s", err.text);
	for (unsigned l = 1; l < made.costed.graph.n_layers; l++)
		cr_expect_gt(calibration->forward_sec[l], 0.0, "layer %u", l);
	cr_expect_gt(calibration->measured[PSD_QUANTITY_COPY_BPS].value, 0.0);
	cr_expect_gt(calibration->measured[PSD_QUANTITY_UPDATE_BPS].value, 0.0);
	for (unsigned q = 0; q < PSD_QUANTITIES; q++)
		if (!calibration->measured[q].is_there)
			calibration->measured[q] = (struct psd_measured){.is_there = true, .value = 1, .n_samples = 1};
	cr_assert_eq(psd_calibrate_open(calibration, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_calibrate_write(calibration, &err), PSD_OK, "%s", err.text);
	check_profile(scratch_folder_path(&folder, "c-profile.csv").text);
	check_scenario(path.text, calibration);
	release(&made);
}

/* ---- several GPUs ---- */

Test(cuda_calibrate, each_member_of_a_measurement_takes_a_gpu_of_its_own)
{
	static const unsigned one_each[] = {1, 1}, two_each[] = {2, 2};
	const struct psd_device_kind kind = gpus_taken_begin();
	struct made made;
	struct psd_error err = {.text = ""};

	psd_stand_in_set_devices(2);
	make(&made, NULL);
	made.options.device = &kind;
	made.calibration.n_busy = 2;
	cr_assert_eq(psd_calibrate_layers(&made.calibration, &err), PSD_OK, "%s", err.text);
	gpus_taken_check(2, one_each);
	made.calibration.measured[PSD_QUANTITY_LAYERS_SEC].value = INFINITY; /* the fewest iterations will do */
	cr_assert_eq(psd_calibrate_beside(&made.calibration, &err), PSD_OK, "%s", err.text);
	gpus_taken_check(2, two_each);
	release(&made);
	gpus_taken_end();
}

/* ---- without oneDNN ---- */

static bool has_no_onednn;

/* In the way of oneDNN's own. */
dnnl_status_t dnnl_sgemm(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k, float alpha,
			 const float *a, dnnl_dim_t lda, const float *b, dnnl_dim_t ldb, float beta, float *c,
			 dnnl_dim_t ldc)
{
	void *found = dlsym(RTLD_NEXT, "dnnl_sgemm");
	__typeof__(dnnl_sgemm) *own;

	memcpy(&own, &found, sizeof(found));
	return has_no_onednn ? dnnl_runtime_error : own(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* No processor computes layers while a GPU does, so that none need multiply while messages are measured. */
Test(cuda_calibrate, processors_are_measured_without_a_product_of_matrices)
{
	struct made made;
	struct psd_error err = {.text = ""};

	make(&made, NULL);
	made.options.cluster_kind = PSD_CLUSTER_LOOPBACK;
	made.calibration.n_busy = 2;
	has_no_onednn = true;
	cr_expect_eq(psd_calibrate_host(&made.calibration, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(psd_calibrate_message(&made.calibration, &err), PSD_OK, "%s", err.text);
	cr_expect_gt(made.calibration.measured[PSD_QUANTITY_REDUCE_BPS].value, 0.0);
	cr_expect(made.calibration.measured[PSD_QUANTITY_MESSAGE_SEC].is_there);
	made.options.device = &psd_device_cpu;
	cr_expect_eq(psd_calibrate_host(&made.calibration, &err), PSD_ERUN);
	cr_expect(strstr(err.text, "a product of matrices failed"), "%s", err.text);
	has_no_onednn = false;
	release(&made);
}

/* ---- layers ---- */

/* An iteration's seconds are those of its passes, none of which is left out or counted twice. */
Test(cuda_calibrate, passes_add_up_to_an_iteration)
{
	const struct psd_device_kind *kinds[] = {&psd_device_cuda, &psd_device_cpu};

	for (unsigned k = 0; k < 2; k++) {
		const struct psd_layer_times_options options = {
			.kind = kinds[k], .batch = 2, .n_threads = 1, .n_repeats = 1};
		struct psd_layer_times times;
		struct psd_graph graph;
		struct psd_error err = {.text = ""};
		double sec = 0.0;

		cr_assert_eq(psd_graph_load(&graph, "scenarios/models/cifar10-quick.yaml", &err), PSD_OK);
		cr_assert_eq(psd_layer_times_open(&times, &graph, &options, &err), PSD_OK, "%s", err.text);
		cr_assert_eq(psd_layer_times_measure(&times, &err), PSD_OK, "%s", err.text);
		for (unsigned l = 0; l < graph.n_layers; l++)
			sec += times.forward_sec[l] + times.backward_sec[l];
		cr_expect_float_eq(sec / times.turn_sec[0], 1.0, 1e-3, "%s", kinds[k]->name);
		psd_layer_times_release(&times);
		psd_graph_release(&graph);
	}
}
