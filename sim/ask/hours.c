/* Questions about the whole job: hours and costs, the cheapest and the fastest cluster, and failures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/result/result.h"
#include "sim/ask/ask.h"
#include "sim/ask/failures.h"

static const double sec_per_hour = 3600.0;

/* Length and cost of the job on one cluster; sec is INFINITY if there is no prediction. */
struct cost {
	unsigned system, nodes;
	double bandwidth_bps, sec, money;
};

/* Money, or hours of workers if the job names no price. */
static double money_of(const struct psd_ask *ask, unsigned nodes, double sec)
{
	struct psd_training_job job = ask->scenario->job;

	job.price = job.price > 0.0 ? job.price : 1.0;
	return psd_result_job_cost(&job, psd_ask_workers(ask, nodes), sec);
}

static struct cost cost_of(struct psd_ask *ask, unsigned system, unsigned nodes, double bandwidth_bps,
			   enum psd_ask_how how)
{
	const struct psd_training_job *job = &ask->scenario->job;
	const struct psd_outcome *outcome = psd_ask_predict(ask, system, nodes, bandwidth_bps, how);
	const double step_samples = psd_ask_step_samples(ask, system, nodes);
	struct cost cost = {system, nodes, bandwidth_bps, INFINITY, INFINITY};

	if (outcome->iteration_sec <= 0.0)
		return cost;
	cost.sec = psd_result_job_sec(job, step_samples, psd_result_last_sec(outcome));
	cost.money = money_of(ask, nodes, cost.sec);
	return cost;
}

static struct psd_failures failures_of(const struct psd_ask *ask, const struct cost *cost)
{
	const struct psd_training_job *job = &ask->scenario->job;

	return (struct psd_failures){cost->sec, job->mtbf_sec / cost->nodes, job->checkpoint_sec, job->restart_sec};
}

/* The same cluster with failures, if the job has them: the mean with the best interval between checkpoints. */
static struct cost with_failures(const struct psd_ask *ask, struct cost cost)
{
	const struct psd_failures failures = failures_of(ask, &cost);

	if (failures.mtbf_sec <= 0.0 || !isfinite(cost.sec))
		return cost;
	cost.sec = psd_failures_expected_sec(&failures, psd_failures_interval_sec(&failures));
	cost.money = money_of(ask, cost.nodes, cost.sec);
	return cost;
}

static bool has_hours(const struct psd_ask *ask)
{
	return ask->scenario->has_job && ask->scenario->job.samples > 0;
}

static const char *money_unit(const struct psd_ask *ask)
{
	return ask->scenario->job.price > 0.0 ? "money" : "worker hours";
}

static void add_money(const struct psd_ask *ask, struct psd_text *text, double money)
{
	psd_text_add(text, ask->scenario->job.price > 0.0 ? "cost " : "");
	psd_answer_add_number(text, money);
	psd_text_add(text, ask->scenario->job.price > 0.0 ? "" : " worker hours");
}

static void add_cost_values(const struct psd_ask *ask, struct psd_answers *answers, struct psd_answer *answer,
			    const struct cost *cost)
{
	struct psd_answer_value value = {.name = "hours",
					 .unit = "h",
					 .number = cost->sec / sec_per_hour,
					 .system = psd_ask_system_name(ask, cost->system),
					 .nodes = cost->nodes,
					 .bandwidth_bps = cost->bandwidth_bps};

	psd_answer_add_value(answers, answer, value);
	value.name = "cost";
	value.unit = money_unit(ask);
	value.number = cost->money;
	psd_answer_add_value(answers, answer, value);
}

/* ---- hours ---- */

static bool is_repeated(const struct psd_ask *ask, unsigned point)
{
	for (unsigned p = 0; p < point; p++)
		if (psd_scenario_point(ask->scenario, p).nodes == psd_scenario_point(ask->scenario, point).nodes)
			return true;
	return false;
}

/* Adds the hours on each number of nodes of the sweep. */
static void add_hours(struct psd_ask *ask, struct psd_answers *answers, unsigned system, double bandwidth_bps)
{
	struct psd_answer *answer = psd_answers_add(answers, "hours", psd_ask_system_name(ask, system));
	struct psd_text *text = &answer->sentence;

	psd_text_add(text, "%s takes at ", answer->system);
	psd_ask_add_rate(text, ask, bandwidth_bps);
	for (unsigned p = 0; p < psd_scenario_points(ask->scenario) && !ask->status; p++) {
		const unsigned nodes = psd_scenario_point(ask->scenario, p).nodes;

		if (is_repeated(ask, p))
			continue;
		const struct cost cost = cost_of(ask, system, nodes, bandwidth_bps, PSD_ASK_CONFIRM);

		if (!isfinite(cost.sec))
			continue;
		psd_text_add(text, "%s ", answer->n_values ? "," : "");
		psd_answer_add_time(text, cost.sec);
		psd_text_add(text, " on ");
		psd_answer_add_nodes(text, nodes);
		psd_text_add(text, " (");
		add_money(ask, text, cost.money);
		psd_text_add(text, ")");
		add_cost_values(ask, answers, answer, &cost);
	}
	psd_text_add(text, ".");
	if (answer->n_values == 0)
		psd_answers_drop(answers);
}

const char *psd_ask_hours(struct psd_ask *ask, struct psd_answers *answers)
{
	if (!has_hours(ask))
		return "`job.samples`";
	for (unsigned b = 0; b < ask->n_bandwidths; b++)
		for (unsigned c = 0; c < ask->n_candidates && !ask->status; c++)
			add_hours(ask, answers, ask->candidates[c], ask->bandwidths_bps[b]);
	struct psd_answer *answer = psd_answers_add(answers, "hours", NULL);
	psd_text_add(&answer->sentence, "Hours are those of %.15g sample%s in %.6g epoch%s. ",
		     (double)ask->scenario->job.samples, ask->scenario->job.samples == 1 ? "" : "s",
		     ask->scenario->job.epochs, ask->scenario->job.epochs > 1.0 ? "s" : "");
	psd_text_add(&answer->sentence,
		     "Further samples that larger batches, late updates or compression need to converge are not "
		     "predicted.");
	return NULL;
}

/* ---- clusters ---- */

/* The wanted cluster: the cheapest of those in time, or the fastest of those within the budget. */
enum wanted { CHEAPEST, FASTEST };

static bool is_allowed(const struct psd_ask *ask, enum wanted wanted, const struct cost *cost)
{
	const struct psd_training_job *job = &ask->scenario->job;

	return wanted == CHEAPEST ? cost->sec <= job->within_sec : cost->money <= job->budget;
}

static bool is_better(enum wanted wanted, const struct cost *a, const struct cost *b)
{
	return wanted == CHEAPEST ? a->money < b->money : a->sec < b->sec;
}

/* Finds the wanted cluster by all predictions that are there: simulations before estimates. If no cluster is allowed,
 * *cost is the one that is nearest to the bound, and the result is false. */
static bool pick(struct psd_ask *ask, enum wanted wanted, double bandwidth_bps, const bool is_simulated[],
		 struct cost *cost, unsigned *index)
{
	const enum wanted other = wanted == CHEAPEST ? FASTEST : CHEAPEST;
	bool has_allowed = false;

	*cost = (struct cost){.sec = INFINITY, .money = INFINITY};
	*index = 0;
	for (unsigned i = 0; i < ask->n_sizes * ask->n_candidates && !ask->status; i++) {
		const unsigned nodes = ask->sizes[i / ask->n_candidates];
		if (nodes < ask->least_nodes)
			continue;
		const struct cost next =
			with_failures(ask, cost_of(ask, ask->candidates[i % ask->n_candidates], nodes, bandwidth_bps,
						   is_simulated[i] ? PSD_ASK_CONFIRM : PSD_ASK_ESTIMATE));
		const bool allowed = is_allowed(ask, wanted, &next);

		if (allowed > has_allowed ||
		    (allowed == has_allowed && is_better(allowed ? wanted : other, &next, cost))) {
			has_allowed = allowed;
			*cost = next;
			*index = i;
		}
	}
	return has_allowed;
}

static void add_bound(const struct psd_ask *ask, struct psd_text *text, enum wanted wanted)
{
	if (wanted == CHEAPEST) {
		psd_text_add(text, "within ");
		psd_answer_add_time(text, ask->scenario->job.within_sec);
	} else {
		psd_text_add(text, "for a cost of ");
		psd_answer_add_number(text, ask->scenario->job.budget);
	}
}

/* Sets *found to the cluster; false: no cluster is allowed, and it is the nearest one, if any. */
static bool add_cluster(struct psd_ask *ask, struct psd_answers *answers, enum wanted wanted, double bandwidth_bps,
			bool is_simulated[], struct cost *found)
{
	struct cost cost;
	unsigned index;
	bool is_found;

	do { /* picks by estimates and simulates the choice, until a simulated one is the best */
		is_found = pick(ask, wanted, bandwidth_bps, is_simulated, &cost, &index);
		if (is_simulated[index])
			break;
		is_simulated[index] = true;
	} while (!ask->status);
	*found = cost;
	if (!isfinite(cost.sec))
		return false;
	struct psd_answer *answer =
		psd_answers_add(answers, wanted == CHEAPEST ? "cheapest within the time" : "fastest within the budget",
				psd_ask_system_name(ask, cost.system));
	struct psd_text *text = &answer->sentence;
	if (is_found)
		psd_text_add(text, "The %s cluster", wanted == CHEAPEST ? "cheapest" : "fastest");
	else
		psd_text_add(text, ask->scenario->n_groups > 0 ? "This cluster" : "No cluster");
	if (ask->scenario->n_groups == 0) {
		psd_text_add(text, " of ");
		if (ask->least_nodes < ask->most_nodes)
			psd_text_add(text, "%u to ", ask->least_nodes);
		psd_answer_add_nodes(text, ask->most_nodes);
	}
	psd_text_add(text, is_found ? " " : " does the job ");
	add_bound(ask, text, wanted);
	psd_text_add(text, " at ");
	psd_ask_add_rate(text, ask, bandwidth_bps);
	psd_text_add(text, is_found ? " is %s on " : "; nearest is %s on ", answer->system);
	psd_answer_add_nodes(text, cost.nodes);
	psd_text_add(text, ": ");
	psd_answer_add_time(text, cost.sec);
	psd_text_add(text, ", ");
	add_money(ask, text, cost.money);
	psd_text_add(text, ask->scenario->job.mtbf_sec > 0.0 ? " (means with failures)." : ".");
	add_cost_values(ask, answers, answer, &cost);
	psd_answer_add_value(answers, answer,
			     (struct psd_answer_value){.name = "is_found", .unit = "flag", .number = is_found});
	return is_found;
}

/* Says at which price a faster link pays: the cheapest clusters with both links then cost the same. */
static void add_link_price(struct psd_ask *ask, struct psd_answers *answers, const struct cost *slow,
			   const struct cost *fast)
{
	const double worker_hours = fast->sec / sec_per_hour * psd_ask_workers(ask, fast->nodes);
	const double price = (slow->money - fast->money) / worker_hours;
	struct psd_answer *answer = psd_answers_add(answers, "price of a link", NULL);
	struct psd_text *text = &answer->sentence;

	psd_text_add(text, "A link of ");
	psd_answer_add_rate(text, fast->bandwidth_bps);
	psd_text_add(text, " in place of ");
	psd_answer_add_rate(text, slow->bandwidth_bps);
	if (price > 0.0) {
		psd_text_add(text, " pays if it costs less than ");
		psd_answer_add_number(text, price);
		psd_text_add(text, " more per worker hour, for the cheapest cluster within the time.");
	} else {
		psd_text_add(text, " does not make the cheapest cluster within the time cheaper.");
	}
	psd_answer_add_value(answers, answer,
			     (struct psd_answer_value){.name = "price",
						       .unit = "money per worker hour",
						       .number = fmax(0.0, price),
						       .nodes = fast->nodes,
						       .bandwidth_bps = fast->bandwidth_bps});
}

const char *psd_ask_cluster(struct psd_ask *ask, struct psd_answers *answers)
{
	const struct psd_training_job *job = &ask->scenario->job;
	const size_t n = (size_t)ask->n_sizes * ask->n_candidates;
	struct cost cheapest[PSD_MAX_SWEEP], found;
	unsigned n_cheapest = 0;
	bool *is_simulated;

	if (!has_hours(ask))
		return "`job.samples`, and `job.within` or `job.budget`";
	if (job->within_sec <= 0.0 && job->budget <= 0.0)
		return "`job.within` or `job.budget`";
	is_simulated = calloc(n, sizeof(*is_simulated));
	for (int wanted = CHEAPEST; wanted <= FASTEST && is_simulated; wanted++)
		for (unsigned b = 0; b < ask->n_bandwidths && !ask->status; b++) {
			if ((wanted == CHEAPEST ? job->within_sec : job->budget) <= 0.0)
				continue;
			memset(is_simulated, 0, n * sizeof(*is_simulated));
			if (!add_cluster(ask, answers, (enum wanted)wanted, ask->bandwidths_bps[b], is_simulated,
					 &found) ||
			    wanted != CHEAPEST || job->price <= 0.0)
				continue;
			cheapest[n_cheapest++] = found;
		}
	for (unsigned i = 1; i < n_cheapest && !ask->status; i++)
		if (cheapest[i].bandwidth_bps > cheapest[i - 1].bandwidth_bps)
			add_link_price(ask, answers, &cheapest[i - 1], &cheapest[i]);
	answers->is_out_of_memory = answers->is_out_of_memory || !is_simulated;
	free(is_simulated);
	return NULL;
}

/* ---- failures ---- */

static void add_time_value(struct psd_answers *answers, struct psd_answer *answer, const char *name, double sec,
			   const struct cost *cost)
{
	psd_answer_add_value(answers, answer,
			     (struct psd_answer_value){.name = name,
						       .unit = "s",
						       .number = sec,
						       .nodes = cost->nodes,
						       .bandwidth_bps = cost->bandwidth_bps});
}

static void add_failures(struct psd_ask *ask, struct psd_answers *answers, const struct cost *cost)
{
	const struct psd_failures failures = failures_of(ask, cost);
	const double interval_sec = psd_failures_interval_sec(&failures);
	const double expected_sec = psd_failures_expected_sec(&failures, interval_sec);
	struct psd_answer *answer = psd_answers_add(answers, "failures", psd_ask_system_name(ask, cost->system));
	struct psd_text *text = &answer->sentence;
	double sec[PSD_FAILURES_JOBS];

	psd_text_add(text, "%s on ", answer->system);
	psd_answer_add_nodes(text, cost->nodes);
	psd_text_add(text, " at ");
	psd_ask_add_rate(text, ask, cost->bandwidth_bps);
	psd_text_add(text, ", %sthe largest cluster, has a failure every ",
		     ask->n_systems > 1 ? "the fastest system on " : "");
	psd_answer_add_time(text, failures.mtbf_sec);
	if (interval_sec < cost->sec) {
		psd_text_add(text, " and is fastest with a checkpoint every ");
		psd_answer_add_time(text, interval_sec);
	} else {
		psd_text_add(text, " and is fastest without checkpoints");
	}
	add_time_value(answers, answer, "interval", interval_sec, cost);
	add_time_value(answers, answer, "mean", expected_sec, cost);
	if (expected_sec <= PSD_FAILURES_MOST_RATIO * cost->sec) {
		psd_failures_simulate(&failures, interval_sec, ask->scenario->seed, sec);
		psd_text_add(text, ": %.1f %% of the time is useful, and half of the jobs end after ",
			     100.0 * cost->sec / expected_sec);
		psd_answer_add_time(text, sec[PSD_FAILURES_JOBS / 2]);
		psd_text_add(text, ", 9 in 10 after ");
		psd_answer_add_time(text, sec[PSD_FAILURES_JOBS * 9 / 10]);
		psd_text_add(text, " (");
		psd_answer_add_time(text, cost->sec);
		psd_text_add(text, " without failures).");
		add_time_value(answers, answer, "p50", sec[PSD_FAILURES_JOBS / 2], cost);
		add_time_value(answers, answer, "p90", sec[PSD_FAILURES_JOBS * 9 / 10], cost);
	} else {
		psd_text_add(text, ", and yet hardly ever ends: less than 1 %% of the time is useful.");
	}
	psd_answer_add_value(answers, answer,
			     (struct psd_answer_value){.name = "useful",
						       .unit = "ratio",
						       .number = cost->sec / expected_sec,
						       .nodes = cost->nodes,
						       .bandwidth_bps = cost->bandwidth_bps});
}

/* Takes the fastest system on the largest cluster, at each bandwidth. */
const char *psd_ask_failures(struct psd_ask *ask, struct psd_answers *answers)
{
	const bool has_failures = ask->scenario->has_job && ask->scenario->job.mtbf_sec > 0.0;

	if (!has_hours(ask))
		return has_failures ? "`job.samples`" : "`job.samples` and `job.mtbf`";
	if (!has_failures)
		return "`job.mtbf`";
	for (unsigned b = 0; b < ask->n_bandwidths && !ask->status; b++) {
		struct cost best = {.sec = INFINITY};

		for (unsigned c = 0; c < ask->n_candidates; c++) {
			const struct cost cost = cost_of(ask, ask->candidates[c], ask->most_nodes,
							 ask->bandwidths_bps[b], PSD_ASK_CONFIRM);

			best = cost.sec < best.sec ? cost : best;
		}
		if (isfinite(best.sec) && !ask->status)
			add_failures(ask, answers, &best);
	}
	return NULL;
}
