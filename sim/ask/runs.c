/* Question about real runs: the two points of the sweep at which a measurement would tell most. */
#include <math.h>

#include "engine/result/result.h"
#include "engine/scenario/stack.h"
#include "sim/ask/ask.h"

/* Error assumed for a stack without a band: 9 in 10 recorded runs of psd-run are predicted within it. */
static const double usual_error_ratio = 0.1;

/* Ends of the band of a prediction, divided by it. */
struct band {
	bool is_recorded; /* it is that of the stack's record; else the usual error is assumed */
	double low_ratio, high_ratio;
};

/* Lead below which two systems are equal, as in break-evens. */
static const double equal_ratio = 0.001;

/* Share of exposed communication below which a profile of one worker tells almost everything. */
static const double least_waiting_ratio = 0.05;

/* Samples per second of the best system on one cluster of the sweep, and of the next one. */
struct rivals {
	struct psd_point point;
	unsigned best, second; /* equal if there is only one system */
	double best_rate, second_rate, waiting_ratio;
};

static struct band band_of(const struct psd_ask *ask, unsigned system)
{
	const struct psd_stack_row *stack = ask->scenario->systems[system].stack;
	const struct psd_stack_record record =
		stack ? psd_stack_record(stack) : (struct psd_stack_record){.n_fitted = 0};

	if (record.has_band)
		return (struct band){true, record.low_ratio, record.high_ratio};
	return (struct band){false, 1.0 - usual_error_ratio, 1.0 + usual_error_ratio};
}

/* False: no system runs there, or a single worker is the whole cluster. */
static bool find_rivals(struct psd_ask *ask, unsigned p, enum psd_ask_how how, struct rivals *rivals)
{
	const struct psd_point point = psd_scenario_point(ask->scenario, p);

	*rivals = (struct rivals){.point = point};
	for (unsigned c = 0; c < ask->n_candidates; c++) {
		const unsigned s = ask->candidates[c];
		const double rate = psd_ask_samples_per_sec(ask, s, point.nodes, point.bandwidth_bps, how);

		if (rate > rivals->best_rate) {
			rivals->second = rivals->best_rate > 0.0 ? rivals->best : s;
			rivals->second_rate = rivals->best_rate;
			rivals->best = s;
			rivals->best_rate = rate;
		} else if (rate > rivals->second_rate) {
			rivals->second = s;
			rivals->second_rate = rate;
		}
	}
	if (rivals->best_rate <= 0.0 || point.nodes < 2)
		return false;
	const struct psd_outcome *outcome = psd_ask_predict(ask, rivals->best, point.nodes, point.bandwidth_bps, how);

	rivals->waiting_ratio = outcome->parts.exposed_comm_sec / outcome->iteration_sec;
	return true;
}

/* Lead of the best system; INFINITY if it has no rival. */
static double lead_of(const struct rivals *rivals)
{
	return rivals->second_rate > 0.0 ? rivals->best_rate / rivals->second_rate - 1.0 : INFINITY;
}

/* The order is in doubt if the next system may be the faster one when the prediction of the best one is too high. */
static bool is_in_doubt(const struct psd_ask *ask, const struct rivals *rivals)
{
	return rivals->second_rate > 0.0 &&
	       rivals->best_rate * band_of(ask, rivals->best).low_ratio < rivals->second_rate;
}

static bool has_job(const struct psd_ask *ask)
{
	return ask->scenario->has_job && ask->scenario->job.samples > 0;
}

/* Quantity that hangs on the prediction: money or hours of the job between the ends of the band, or else the share of
 * the iteration that no measurement of one worker tells. */
static double stake_of(const struct psd_ask *ask, const struct rivals *rivals, double *least, double *most)
{
	const struct psd_training_job *job = &ask->scenario->job;
	const unsigned workers = psd_ask_workers(ask, rivals->point.nodes);
	const double step_samples = psd_ask_step_samples(ask, rivals->best, rivals->point.nodes);
	const struct band band = band_of(ask, rivals->best);

	*least = *most = 0.0;
	if (!has_job(ask))
		return rivals->waiting_ratio < least_waiting_ratio ? 0.0 : rivals->waiting_ratio;
	const double sec = psd_result_job_sec(job, step_samples, step_samples / rivals->best_rate);
	const double stake = job->price > 0.0 ? psd_result_job_cost(job, workers, sec) : sec;

	*least = stake / band.high_ratio;
	*most = stake / band.low_ratio;
	return *most - *least;
}

static void add_point(const struct psd_ask *ask, struct psd_text *text, const struct psd_point *point)
{
	psd_answer_add_nodes(text, point->nodes);
	if (ask->n_bandwidths > 1) {
		psd_text_add(text, " at ");
		psd_ask_add_rate(text, ask, point->bandwidth_bps);
	}
}

static void add_value(const struct psd_ask *ask, struct psd_answers *answers, struct psd_answer *answer,
		      const struct rivals *rivals, const char *name, const char *unit, double number)
{
	psd_answer_add_value(answers, answer,
			     (struct psd_answer_value){.name = name,
						       .unit = unit,
						       .number = number,
						       .system = psd_ask_system_name(ask, rivals->best),
						       .nodes = rivals->point.nodes,
						       .bandwidth_bps = rivals->point.bandwidth_bps});
}

/* ---- the order of the two best ---- */

/* Finds the largest cluster on which the order is in doubt, with the smallest lead of those. If no order is in doubt,
 * it is the smallest lead of all. Returns the number of points of the sweep if there are no rivals. */
static unsigned find_doubt(struct psd_ask *ask)
{
	const unsigned n_points = psd_scenario_points(ask->scenario);
	struct rivals best = {.best = 0}, rivals;
	bool has_doubt = false;
	unsigned found = n_points;

	for (unsigned p = 0; p < n_points && !ask->status; p++) {
		if (!find_rivals(ask, p, PSD_ASK_ESTIMATE, &rivals) || rivals.second_rate <= 0.0)
			continue;
		const bool doubt = is_in_doubt(ask, &rivals);
		const bool is_larger = found < n_points && doubt && rivals.point.nodes > best.point.nodes;
		const bool is_nearer = found < n_points && (!doubt || rivals.point.nodes == best.point.nodes) &&
				       lead_of(&rivals) < lead_of(&best);

		if (found == n_points || doubt > has_doubt || (doubt == has_doubt && (is_larger || is_nearer))) {
			found = p;
			best = rivals;
			has_doubt = doubt;
		}
	}
	return found;
}

/* Appends per cent with two digits, or all digits of a whole number. */
static void add_percent(struct psd_text *text, double ratio)
{
	psd_text_add(text, ratio < 0.995 ? "%.2g %%" : "%.0f %%", 100.0 * ratio);
}

static void add_doubt(struct psd_ask *ask, struct psd_answers *answers, const struct rivals *rivals)
{
	struct psd_answer *answer = psd_answers_add(answers, "runs", psd_ask_system_name(ask, rivals->best));
	struct psd_text *text = &answer->sentence;
	const bool doubt = is_in_doubt(ask, rivals), is_equal = lead_of(rivals) < equal_ratio;
	const struct band band = band_of(ask, rivals->best);

	if (doubt)
		psd_text_add(text, "A real run tells most with ");
	else
		psd_text_add(text, "No order of the two best systems is in doubt: with ");
	add_point(ask, text, &rivals->point);
	if (!doubt && psd_scenario_points(ask->scenario) > 1)
		psd_text_add(text, ", where it is least sure");
	psd_text_add(text, "%s %s ", doubt ? ":" : ",", psd_ask_system_name(ask, rivals->best));
	if (is_equal) {
		psd_text_add(text, "and %s are predicted equal", psd_ask_system_name(ask, rivals->second));
	} else {
		psd_text_add(text, "is predicted ");
		add_percent(text, lead_of(rivals));
		psd_text_add(text, " faster than %s", psd_ask_system_name(ask, rivals->second));
	}
	if (!is_equal || !band.is_recorded) {
		psd_text_add(text, ", and %s ", band.is_recorded ? "its band begins" : "errors of");
		add_percent(text, 1.0 - band.low_ratio);
		psd_text_add(text, band.is_recorded ? " below the prediction" : " are assumed");
	}
	if (doubt)
		psd_text_add(text, ", so that either may be faster.%s",
			     ask->scenario->n_groups > 0 ? "" : " The sweep has no larger cluster with such a doubt.");
	else
		psd_text_add(text, ".");
	add_value(ask, answers, answer, rivals, "lead", "ratio", lead_of(rivals));
	add_value(ask, answers, answer, rivals, band.is_recorded ? "band" : "assumed error", "ratio",
		  1.0 - band.low_ratio);
	add_value(ask, answers, answer, rivals, "is_in_doubt", "flag", doubt);
}

/* ---- the largest stake ---- */

/* Finds the point with the largest stake, except one. Returns the number of points of the sweep if there is none. */
static unsigned find_stake(struct psd_ask *ask, unsigned except)
{
	const unsigned n_points = psd_scenario_points(ask->scenario);
	unsigned found = n_points;
	double largest = 0.0, least, most;
	struct rivals rivals;

	for (unsigned p = 0; p < n_points && !ask->status; p++) {
		if (p == except || !find_rivals(ask, p, PSD_ASK_ESTIMATE, &rivals))
			continue;
		const double stake = stake_of(ask, &rivals, &least, &most);

		if (stake > largest) {
			largest = stake;
			found = p;
		}
	}
	return found;
}

static void add_bounds(const struct psd_ask *ask, struct psd_text *text, double least, double most)
{
	if (ask->scenario->job.price > 0.0) {
		psd_text_add(text, " may cost ");
		psd_answer_add_number(text, least);
		psd_text_add(text, " to ");
		psd_answer_add_number(text, most);
	} else {
		psd_text_add(text, " may take ");
		psd_answer_add_time(text, least);
		psd_text_add(text, " to ");
		psd_answer_add_time(text, most);
	}
}

static void add_stake(struct psd_ask *ask, struct psd_answers *answers, const struct rivals *rivals, bool is_first)
{
	struct psd_answer *answer = psd_answers_add(answers, "runs", psd_ask_system_name(ask, rivals->best));
	struct psd_text *text = &answer->sentence;
	double least, most;

	stake_of(ask, rivals, &least, &most);
	psd_text_add(text, "A real run %stells much of %s with ", is_first ? "" : "also ", answer->system);
	add_point(ask, text, &rivals->point);
	if (has_job(ask)) {
		if (band_of(ask, rivals->best).is_recorded)
			psd_text_add(text, ": by the prediction's band the job");
		else
			psd_text_add(text, ": with errors of %.0f %% the job", 100.0 * usual_error_ratio);
		add_bounds(ask, text, least, most);
		psd_text_add(text, ", the widest span on the best systems of the sweep.");
		add_value(ask, answers, answer, rivals, "least", ask->scenario->job.price > 0.0 ? "money" : "s", least);
		add_value(ask, answers, answer, rivals, "most", ask->scenario->job.price > 0.0 ? "money" : "s", most);
	} else {
		psd_text_add(text,
			     ": %.0f %% of its iteration is exposed communication, the largest share of the best "
			     "systems of the sweep, which no profile of one worker tells.",
			     100.0 * rivals->waiting_ratio);
		add_value(ask, answers, answer, rivals, "exposed", "ratio", rivals->waiting_ratio);
	}
}

static bool has_several_nodes(const struct psd_ask *ask)
{
	for (unsigned p = 0; p < psd_scenario_points(ask->scenario); p++)
		if (psd_scenario_point(ask->scenario, p).nodes > 1)
			return true;
	return false;
}

const char *psd_ask_runs(struct psd_ask *ask, struct psd_answers *answers)
{
	if (!has_several_nodes(ask))
		return "a sweep or cluster of several nodes";

	const unsigned n_points = psd_scenario_points(ask->scenario);
	const unsigned doubt = ask->n_systems > 1 ? find_doubt(ask) : n_points;
	const unsigned stake = find_stake(ask, doubt);
	struct rivals rivals;

	if (doubt < n_points && !ask->status && find_rivals(ask, doubt, PSD_ASK_CONFIRM, &rivals) &&
	    rivals.second_rate > 0.0)
		add_doubt(ask, answers, &rivals);
	if (stake < n_points && !ask->status && find_rivals(ask, stake, PSD_ASK_CONFIRM, &rivals))
		add_stake(ask, answers, &rivals, doubt == n_points);
	return stake == n_points && ask->n_systems == 1 && !has_job(ask) &&
			       psd_ask_fits(ask, ask->first_system, ask->most_nodes)
		       ? "several systems, `job.samples`, or workers that wait for communication"
		       : NULL;
}
