/* The arithmetic of results. */
#include "engine/result/result.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "engine/base/units.h"
#include "engine/cost/cost.h"
#include "engine/encodings/compression.h"
#include "engine/encodings/encoding.h"
#include "engine/scenario/stack.h"

/* Share of chunks that is sent early, divided by the wanted one; a note tells of more. */
#define MOST_EARLY_RATIO 1.1

/* Exchanges of a training, divided by the predicted ones; a note tells of more. */
#define MOST_MORE_RATIO 1.1

static const double sec_per_hour = 3600.0;

double psd_result_images_per_sec(const struct psd_point *point, uint32_t samples, double iteration_sec)
{
	return (double)point->workers * samples / iteration_sec;
}

/* Throughput is what was measured; a speedup has a second measurement in it. */
static void compare(struct psd_result *result, const struct psd_published_row *published)
{
	result->published_images_per_sec =
		(struct psd_result_value){published->has_images_per_sec, published->images_per_sec};
	result->published_speedup = (struct psd_result_value){published->has_speedup, published->speedup};
	result->error_ratio.is_there = published->has_images_per_sec || published->has_speedup;
	result->error_ratio.value = published->has_images_per_sec
					    ? result->images_per_sec / published->images_per_sec - 1.0
					    : result->speedup.value / published->speedup - 1.0;
	result->is_fitted = (struct psd_result_value){true, published->is_fit ? 1.0 : 0.0};
}

static void add_band(struct psd_result *result, const struct psd_stack_row *stack)
{
	const struct psd_stack_record record = psd_stack_record(stack);

	result->low = (struct psd_result_value){record.has_band, result->images_per_sec * record.low_ratio};
	result->high = (struct psd_result_value){record.has_band, result->images_per_sec * record.high_ratio};
}

double psd_result_job_sec(const struct psd_training_job *job, double step_samples, double iteration_sec)
{
	return ceil((double)job->samples * job->epochs / step_samples) * iteration_sec;
}

double psd_result_last_sec(const struct psd_outcome *outcome)
{
	return fmax(outcome->iteration_sec, outcome->slowest_sec);
}

double psd_result_job_cost(const struct psd_training_job *job, unsigned workers, double job_sec)
{
	return job_sec / sec_per_hour * workers * job->price;
}

static void add_job(struct psd_result *result, const struct psd_training_job *job, double step_samples)
{
	const double sec = psd_result_job_sec(job, step_samples, psd_result_last_sec(&result->outcome));

	result->job = job;
	result->job_hours = (struct psd_result_value){job->samples > 0, sec / sec_per_hour};
	result->job_cost = (struct psd_result_value){job->samples > 0 && job->price > 0.0,
						     psd_result_job_cost(job, result->point.workers, sec)};
}

struct psd_result psd_result_make(const struct psd_result_basis *basis, const struct psd_system *system,
				  struct psd_point point, const struct psd_outcome *outcome,
				  double baseline_images_per_sec)
{
	const struct psd_published_row *published =
		basis->published ? psd_published_find(basis->published, system->name, point.workers) : NULL;
	const struct psd_workload workload = psd_scenario_workload(basis->scenario, system);
	const double all_samples =
		(double)psd_scenario_all_samples(basis->scenario, system, point.nodes, point.workers);
	const uint64_t fuse_bytes = psd_system_fuse_bytes(system, &point);
	struct psd_result result = {
		.scenario = basis->scenario->title,
		.system_name = system->name,
		.executor = basis->executor,
		.system = system,
		.point = point,
		.fuse_bytes = {fuse_bytes > 0, (double)fuse_bytes},
		.bandwidth_bps = {point.bandwidth_bps > 0.0, point.bandwidth_bps},
		.outcome = *outcome,
		.images_per_sec = all_samples / outcome->iteration_sec,
	};

	result.swept = basis->scenario->n_swept ? basis->scenario : NULL;
	result.model = basis->model;
	result.batch = workload.batch_per_worker;
	result.samples = psd_scenario_samples(basis->scenario, system);
	result.precision = workload.precision_name;
	result.device = workload.profile_path ? workload.profile_path : workload.device_name;
	result.stack = system->stack ? system->stack->name : NULL;
	if (basis->tokens > 0)
		result.tokens_per_sec = (struct psd_result_value){true, result.images_per_sec * (double)basis->tokens};
	for (unsigned p = 0; p < PSD_PERCENTILES && outcome->has_percentiles; p++)
		result.percentiles_sec[p] = (struct psd_result_value){true, outcome->percentiles_sec[p]};
	if (baseline_images_per_sec > 0.0)
		result.speedup = (struct psd_result_value){true, result.images_per_sec / baseline_images_per_sec};
	if (published)
		compare(&result, published);
	if (basis->has_band && system->stack && point.workers > 1)
		add_band(&result, system->stack);
	if (basis->compute_sec > 0.0)
		result.efficiency_ratio = (struct psd_result_value){
			true, psd_system_micro_batches(system) * basis->compute_sec / outcome->iteration_sec};
	result.memory_bytes = (struct psd_result_value){outcome->memory_bytes > 0, (double)outcome->memory_bytes};
	if (basis->scenario->has_job)
		add_job(&result, &basis->scenario->job, all_samples);
	return result;
}

void psd_result_add_swept(struct psd_text *text, const struct psd_scenario *swept)
{
	for (unsigned i = 0; swept && i < swept->n_swept; i++)
		psd_text_add(text, ", %s %s", swept->swept[i].path, swept->swept[i].text);
}

const char *psd_result_beyond(const struct psd_calibrated *calibration, const struct psd_point *point)
{
	static const char *const words[2][2] = {{NULL, "link"}, {"workers", "both"}};

	return calibration->workers ? words[point->workers > calibration->workers]
					   [point->bandwidth_bps != calibration->bandwidth_bps]
				    : NULL;
}

char *psd_result_point_name(const struct psd_point *point, char *text, size_t room)
{
	const char *plural = psd_text_plural(point->nodes);

	if (point->workers == point->nodes)
		snprintf(text, room, "%u node%s", point->nodes, plural);
	else
		snprintf(text, room, "%u node%s (%u workers)", point->nodes, plural, point->workers);
	return text;
}

static void add_note(struct psd_text *text, const struct psd_system *system)
{
	psd_text_add(text, "note: '");
	psd_text_add_plain(text, system->name);
}

void psd_result_add_reads(struct psd_text *text, const struct psd_system *system, const char *where,
			  const uint64_t reads[PSD_READ_AGES])
{
	const char *separator = "";
	uint64_t n = 0;

	for (unsigned age = 0; age < PSD_READ_AGES; age++)
		n += reads[age];
	if (n == 0)
		return;
	add_note(text, system);
	psd_text_add(text, "%s read parameters that lacked the sums of", where);
	for (unsigned age = 0; age < PSD_READ_AGES; age++) {
		if (reads[age] == 0)
			continue;
		psd_text_add(text, "%s %u iteration%s (%.3g %%)", separator, age, psd_text_plural(age),
			     100.0 * (double)reads[age] / (double)n);
		separator = ",";
	}
	psd_text_add(text, "\n");
}

static void add_withheld_note(struct psd_text *text, const struct psd_system *system)
{
	const bool sends_updates = system->staleness > 0; /* managed communication then has stale reads */

	add_note(text, system);
	psd_text_add(text,
		     "' sends some chunks of %s in each iteration and all of them every %" PRIu64
		     " iterations, so that %s is withheld for at most %" PRIu64
		     " iteration%s; with more than one worker its training differs from training without this\n",
		     sends_updates ? "updates" : "gradients", system->managed.clock,
		     sends_updates ? "an update" : "a gradient", system->managed.clock - 1,
		     psd_text_plural(system->managed.clock - 1));
}

void psd_result_add_managed(struct psd_text *text, const struct psd_system *system, const char *where,
			    const struct psd_early_chunks *early)
{
	const double sent_ratio = early->n > 0 ? (double)early->n_sent / early->n : 0.0;

	if (!system->is_managed)
		return;
	if (early->n == 0 || early->n_sent < early->n)
		add_withheld_note(text, system);
	if (early->n == 0)
		return;
	add_note(text, system);
	if (early->n_sent < early->n)
		psd_text_add(
			text,
			"%s sent %u of %u chunks (%.3g %%) in each iteration but the last of a clock, %.3g %% of all "
			"values that it sent",
			where, early->n_sent, early->n, 100.0 * sent_ratio, 100.0 * early->values_ratio);
	else if (early->n > 1)
		psd_text_add(text, "%s sent all %u chunks in each iteration and withheld none", where, early->n);
	else
		psd_text_add(text, "%s sent its only chunk in each iteration and withheld nothing", where);
	if (!system->finds_early && sent_ratio > MOST_EARLY_RATIO * system->managed.early_ratio)
		psd_text_add(text, "; smaller chunks ('chunk') come closer to 'early', %.3g %%",
			     100.0 * system->managed.early_ratio);
	psd_text_add(text, "\n");
}

/* Adds " every 8 iterations". */
static void add_every(struct psd_text *text, uint64_t iterations)
{
	if (iterations == 1)
		psd_text_add(text, " in each iteration");
	else
		psd_text_add(text, " every %" PRIu64 " iterations", iterations);
}

/* Tells that a job of fixed parts lasts longer than samples per second say. */
static void add_last_worker(struct psd_text *text, const struct psd_result *result, const char *where)
{
	const double ratio = psd_result_last_sec(&result->outcome) / result->outcome.iteration_sec;

	if (!result->system->is_async || !result->job_hours.is_there || ratio < 1.01)
		return;
	add_note(text, result->system);
	psd_text_add(text,
		     "%s: the job ends when the slowest worker has trained its part, after %.0f %% more time than "
		     "samples/s tell\n",
		     where, 100.0 * (ratio - 1.0));
}

void psd_result_add_bound(struct psd_text *text, const struct psd_result *result, const char *where)
{
	const struct psd_outcome *outcome = &result->outcome;
	const uint64_t bound = result->system->async.bound;

	add_last_worker(text, result, where);
	if (!result->system->is_async || outcome->bound_from == 0)
		return;
	add_note(text, result->system);
	if (!outcome->is_at_bound && outcome->job_iterations > 0) {
		psd_text_add(text,
			     "%s: no worker reaches the bound of %" PRIu64 " in the %" PRIu64
			     " iteration%s of the training\n",
			     where, bound, outcome->job_iterations, psd_text_plural(outcome->job_iterations));
		return;
	}
	psd_text_add(text, "%s: a quick worker is %" PRIu64 " iteration%s ahead after about %" PRIu64, where, bound,
		     psd_text_plural(bound), outcome->bound_from);
	if (outcome->job_iterations > 0)
		psd_text_add(text, " of the %" PRIu64 " iteration%s of the training", outcome->job_iterations,
			     psd_text_plural(outcome->job_iterations));
	psd_text_add(text, outcome->is_at_bound
				   ? " and then waits, which is predicted\n"
				   : " and then waits, which is not predicted: 'train.iterations' and 'job' "
				     "tell how long the training is\n");
}

const char *psd_result_period_name(const struct psd_system *system)
{
	return system->is_managed ? "clock" : "period";
}

void psd_result_add_period(struct psd_text *text, const struct psd_result *result, const char *where)
{
	const uint64_t period = result->outcome.period, iterations = result->outcome.job_iterations;
	const uint64_t n_exchanges = period > 0 ? (iterations + period - 1) / period : 0;

	if (iterations == 0 || (double)(n_exchanges * period) <= MOST_MORE_RATIO * (double)iterations)
		return;
	add_note(text, result->system);
	psd_text_add(text,
		     "%s is predicted over whole %ss of %" PRIu64 " iterations; the training has %" PRIu64
		     " and ends with an exchange of all values, so that it sends more\n",
		     where, psd_result_period_name(result->system), period, iterations);
}

void psd_result_add_budget(struct psd_text *text, const struct psd_system *system, double link_bps,
			   double payload_ratio)
{
	char budget[PSD_UNITS_TEXT_MAX], link[PSD_UNITS_TEXT_MAX];

	if (system->budget_bps == 0.0 || link_bps == 0.0 || psd_cost_budget_bps(system) < link_bps * payload_ratio)
		return;
	add_note(text, system);
	psd_text_add(text, "' has a 'budget' of %s, which limits nothing: the fastest link has %s\n",
		     psd_units_write_rate(system->budget_bps, budget), psd_units_write_rate(link_bps, link));
}

/* One step without an outer optimiser is training without this. */
static void add_local_note(struct psd_text *text, const struct psd_system *system, uint32_t n_parts)
{
	const struct psd_local_sgd *local = &system->local_sgd;

	if (local->steps == 1 && !local->has_outer)
		return;
	add_note(text, system);
	psd_text_add(text, "' lets workers train by themselves and %s",
		     local->has_outer ? "updates their parameters by their mean change" : "averages their parameters");
	add_every(text, local->steps);
	if (local->window)
		psd_text_add(text, " in the beginning");
	if (n_parts > 1)
		psd_text_add(text, " in %" PRIu32 " parts one after the other", n_parts);
	if (local->delay > 0)
		psd_text_add(text, ", joined %u iteration%s late", local->delay, psd_text_plural(local->delay));
	psd_text_add(text, ", so that its training differs from training without this\n");
}

void psd_result_add_assumed(struct psd_text *text, const struct psd_system *system)
{
	if (system->sync < PSD_SYNC_LIBRARY)
		return;
	const struct psd_collective *collective = psd_libraries[system->sync - PSD_SYNC_LIBRARY];
	add_note(text, system);
	psd_text_add(text,
		     "' leaves its sums to a library ('sync: %s') by steps that are not seen here: bytes and predicted "
		     "times are %s\n",
		     collective->name, collective->predicted);
}

void psd_result_add_lossy(struct psd_text *text, const struct psd_system *system, unsigned workers, uint32_t n_parts)
{
	if (psd_encodings[system->wire]->is_lossy && (workers > 1 || system->servers > 0)) {
		add_note(text, system);
		psd_text_add(text,
			     "' rounds what it sends to %s, so that its training differs from training without this\n",
			     psd_encodings[system->wire]->name);
	}
	if (workers == 1)
		return;
	if (system->is_compressed && system->compress.kept_ratio < 1.0) {
		add_note(text, system);
		psd_text_add(text,
			     "' sends %s%s compressed (%s), adds the errors to later ones, so that its training "
			     "differs from training without this\n",
			     system->is_local ? "changes of parameters" : "gradients",
			     system->compress.tensors == PSD_COMPRESSED_MATRICES ? " of matrices" : "",
			     psd_compression_names[system->compress.by]);
	}
	if (system->is_low_rank) {
		add_note(text, system);
		psd_text_add(text,
			     "' sends %s of matrices as products of rank %u where these have fewer values, adds "
			     "the errors to later ones, so that its training differs from training without this\n",
			     system->is_local ? "changes" : "gradients", system->low_rank.rank);
	}
	if (system->peers > 0) {
		add_note(text, system);
		psd_text_add(text,
			     "' sends factors to %u other worker%s in an iteration; with more than %u workers it "
			     "averages their parameters",
			     system->peers, psd_text_plural(system->peers), system->peers + 1);
		add_every(text, system->local_sgd.steps);
		psd_text_add(text, ", so that its training differs from training without this\n");
	} else if (system->is_local) {
		add_local_note(text, system, n_parts);
	}
	if (system->is_async) {
		add_note(text, system);
		psd_text_add(
			text,
			"' updates by each worker's gradient as it arrives, of parameters that others have updated "
			"since, so that with more than one worker its training differs from synchronous training; "
			"workers' "
			"parameters differ, also at the end; its seconds are harmonic means over workers, weighted by "
			"their batches\n");
	}
	const bool is_stale = system->staleness > 0 && system->reads == PSD_READS_STALE;

	if (is_stale) {
		const uint64_t late = system->staleness + (system->is_managed ? system->managed.clock - 1 : 0);

		add_note(text, system);
		psd_text_add(
			text,
			"' reads its own gradients at once and those of other workers at most %" PRIu64 " iteration%s "
			"late: workers' parameters differ while they train, and are equal in tests, checkpoints "
			"and at the end; with more than one worker its training differs from synchronous training\n",
			late, psd_text_plural(late));
	} else if (system->staleness > 0) {
		add_note(text, system);
		psd_text_add(text,
			     "' applies gradients %u iteration%s late, so that with more than one worker its training "
			     "differs from synchronous training\n",
			     system->staleness, psd_text_plural(system->staleness));
	}
	if (system->is_sparse && system->sparse.sparsity > 0.0) {
		add_note(text, system);
		psd_text_add(text,
			     "' sends %.4g %% of each gradient's chunks and holds the others back, so that its "
			     "training differs from training without this\n",
			     100.0 * (1.0 - system->sparse.sparsity));
	}
}
