/* A worker as a whole: checks of the scenario, number of iterations, and its run from start to end. */
#define _GNU_SOURCE
#include "real/session/worker.h"

#include <math.h>

#include "engine/scenario/scenario_heed.h"
#include "real/session/session.h"
#include "real/session/worker_parts.h"

uint32_t psd_worker_iterations(const struct psd_train *train, uint64_t training_samples, uint64_t global_batch,
			       struct psd_worker_start start)
{
	const uint64_t samples = train->epochs * training_samples;
	const uint64_t left = samples > start.samples ? samples - start.samples : 0;
	uint64_t iterations = train->iterations;

	if (iterations == 0)
		iterations = start.iterations + (left + global_batch - 1) / global_batch;
	return iterations < PSD_MAX_ITERATIONS ? (uint32_t)iterations : PSD_MAX_ITERATIONS;
}

enum psd_use psd_worker_use(const struct psd_scenario *scenario)
{
	if (!scenario->has_replay)
		return PSD_BY_RUN;
	return scenario->replay.real_workers > 0 ? PSD_BY_PSD_RUN : PSD_BY_REPLAY;
}

/* Only a processor can be made to pause. */
static enum psd_status check_slow(const struct psd_scenario *scenario, struct psd_error *err)
{
	const struct psd_place at = {scenario->path, 0, 0};

	for (unsigned i = 0; i < scenario->n_slowdowns; i++)
		if (scenario->slowdowns[i].compute_ratio > 1.0)
			return psd_error_set(err, PSD_EINVAL, at,
					     "'compute' of 'slow' is '%g', must be at most 1 in training",
					     scenario->slowdowns[i].compute_ratio);
	if (scenario->n_slowdowns > 0 && scenario->train.device != PSD_CHOOSE_CPU)
		return psd_error_set(err, PSD_EINVAL, at,
				     "'device' of 'train' is not 'cpu', must be 'cpu' with 'slow' of 'cluster'");
	return PSD_OK;
}

enum psd_status psd_worker_check(const struct psd_scenario *scenario, struct psd_error *err)
{
	const enum psd_use use = psd_worker_use(scenario);

	if (!scenario->has_train && use != PSD_BY_REPLAY)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){scenario->path, 0, 0},
				     "has no 'train', which %s; psd-sim predicts without it",
				     use == PSD_BY_RUN ? "psd-run needs" : "'real_workers' need");
	PSD_TRY(psd_scenario_check_heeded(scenario, use, err));
	return use == PSD_BY_REPLAY ? PSD_OK : check_slow(scenario, err);
}

enum psd_status psd_worker_check_optimiser(const struct psd_case *made, struct psd_error *err)
{
	const struct psd_scenario *scenario = made->costed->scenario;
	const enum psd_optimiser_kind kind = scenario->train.optimiser.kind;
	const char *name = psd_optimiser_names[kind];

	if (psd_worker_use(scenario) == PSD_BY_REPLAY)
		return PSD_OK;
	if (kind == PSD_OPTIMISER_SGD)
		return PSD_OK;
	if (made->plan.sparse)
		return psd_error_set(err, PSD_EINVAL, made->system->at,
				     "system '%s' is '%s', optimiser '%s' needs whole gradients", made->system->name,
				     made->plan.managed ? "managed" : "sparse", name);
	if (made->plan.compress && made->plan.compress->momentum == PSD_MOMENTUM_BEFORE)
		return psd_error_set(
			err, PSD_EINVAL, made->system->at,
			"system '%s' has 'momentum: before', optimiser '%s' needs gradients without momentum",
			made->system->name, name);
	for (unsigned i = 0; kind == PSD_OPTIMISER_LARS && i < made->plan.n_items; i++)
		if (psd_plan_keeps(&made->plan, &made->plan.items[i], PSD_BUFFER_PART_HISTORY))
			return psd_error_set(err, PSD_EINVAL, made->system->at,
					     "system '%s' updates parts of tensors, optimiser 'lars' needs whole "
					     "ones, as an all-reduce has them",
					     made->system->name);
	return PSD_OK;
}

enum psd_status psd_worker_run(const struct psd_worker_options *options, struct psd_worker_result *result,
			       struct psd_error *err)
{
	struct psd_worker *session;
	struct psd_worker_result measured;
	bool is_over = false;
	enum psd_status status = psd_session_open(&session, options, err);

	if (status)
		return status;
	while (!status && !is_over)
		status = psd_session_step(session, INFINITY, &is_over, &measured, err);
	/* the run has begun: a file that is wrong now is no mistake of the command's */
	if (status == PSD_EINVAL || status == PSD_EFILE)
		status = err->status = PSD_ERUN;
	psd_session_close(session, status, err);
	if (!status)
		*result = measured;
	return status;
}

enum psd_status psd_worker_count_samples(const struct psd_graph *graph, const struct psd_train *train,
					 uint64_t *samples, struct psd_error *err)
{
	const struct psd_data_options options = psd_data_options_of(graph, train);
	struct psd_data *data;

	PSD_TRY(psd_data_open(&data, &options, err));
	*samples = psd_data_samples(data, PSD_DATA_TRAINING);
	psd_data_close(data);
	return PSD_OK;
}
