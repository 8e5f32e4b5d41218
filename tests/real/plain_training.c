#define _GNU_SOURCE 1
#include "tests/real/plain_training.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "real/data/data.h"
#include "real/data/sampler.h"
#include "tests/scratch_folder.h"

static struct training *train(const struct plain_training *of, const char *system, unsigned workers_per_node,
			      unsigned iterations, const char *optimiser, double rate)
{
	const struct scratch_folder folder = scratch_folder_make();
	struct training *training;
	char job[256];

	scratch_folder_write(&folder, "softmax.yaml", PLAIN_SOFTMAX, strlen(PLAIN_SOFTMAX));
	snprintf(job, sizeof(job),
		 "iterations: %u, data: {kind: synthetic, training_samples: 40}, optimiser: {%s}, learning_rate: "
		 "{policy: fixed, base: %g}",
		 iterations, optimiser, rate);
	training = training_make(scratch_folder_path(&folder, "softmax.yaml").text, system, of->workers,
				 workers_per_node, PLAIN_BATCH, 5, job);
	training_finish(training, system);
	scratch_folder_remove(&folder);
	return training;
}

void plain_training_open(struct plain_training *of, const char *system, unsigned workers, unsigned workers_per_node,
			 const char *optimiser, double rate)
{
	struct psd_data_options options;
	struct psd_error err = {.text = ""};

	of->workers = workers;
	of->begun = train(of, system, workers_per_node, 1, "kind: sgd", 1e-9); /* a rate that moves nothing */
	of->trained = train(of, system, workers_per_node, PLAIN_ITERATIONS, optimiser, rate);
	for (unsigned e = 0; e < PLAIN_PARAMETERS; e++)
		of->parameters[e] = (double)training_parameters(of->begun, 0)[e];
	options = psd_worker_data_options(&of->begun->loaded.costed.graph, &of->begun->loaded.scenario.train);
	cr_assert_eq(psd_data_open(&of->data, &options, &err), PSD_OK, "%s", err.text);
}

void plain_training_close(struct plain_training *of)
{
	psd_data_close(of->data);
	training_free(of->begun);
	training_free(of->trained);
}

void plain_training_add_gradient(const struct plain_training *of, unsigned worker, unsigned iteration, double *gradient)
{
	const uint64_t first = psd_sampler_first(iteration, of->workers, worker, PLAIN_BATCH);
	float images[PLAIN_BATCH * PLAIN_INPUTS];
	int32_t labels[PLAIN_BATCH];
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_data_read_batch(of->data, PSD_DATA_TRAINING, first, PLAIN_BATCH, images, labels, &err), PSD_OK,
		     "%s", err.text);
	for (unsigned s = 0; s < PLAIN_BATCH; s++)
		plain_softmax_add(of->parameters, images + s * PLAIN_INPUTS, labels[s], of->workers * PLAIN_BATCH,
				  gradient);
}

double plain_training_apart_ratio(const struct plain_training *of)
{
	const float *begin = training_parameters(of->begun, 0), *end = training_parameters(of->trained, 0);
	double apart = 0.0, way = 0.0;

	for (unsigned e = 0; e < PLAIN_PARAMETERS; e++) {
		apart += pow((double)end[e] - of->parameters[e], 2);
		way += pow((double)begin[e] - of->parameters[e], 2);
	}
	return sqrt(apart / way);
}

void plain_training_step(struct plain_training *of, double rate, double *history, const double *gradient)
{
	for (unsigned e = 0; e < PLAIN_PARAMETERS; e++) {
		history[e] = 0.9 * history[e] + rate * (gradient[e] + 0.01 * of->parameters[e]);
		of->parameters[e] -= history[e];
	}
}
