/* Questions about efficiency: the number of nodes up to which a system keeps it, the doubling that gains least, and
 * the bandwidth that it needs. */
#include <math.h>
#include <string.h>

#include "sim/ask/ask.h"
#include "sim/ask/border.h"

static double wanted_ratio(const struct psd_ask *ask)
{
	return ask->scenario->has_job ? ask->scenario->job.efficiency_ratio : PSD_JOB_EFFICIENCY_RATIO;
}

/* Claim that a system keeps an efficiency: on a number of nodes, or (at fixed nodes) misses it with a bandwidth. */
struct claim {
	struct psd_ask *ask;
	unsigned system, nodes;
	double bandwidth_bps, ratio;
	enum psd_ask_how how;
};

static bool keeps(void *context, uint64_t nodes)
{
	const struct claim *claim = context;

	return psd_ask_efficiency_ratio(claim->ask, claim->system, (unsigned)nodes, claim->bandwidth_bps, claim->how) >=
	       claim->ratio;
}

static bool misses(void *context, uint64_t rate)
{
	const struct claim *claim = context;

	return psd_ask_efficiency_ratio(claim->ask, claim->system, claim->nodes, psd_ask_rate(claim->ask, rate),
					claim->how) < claim->ratio;
}

/* ---- numbers of nodes ---- */

/* Tries all sizes from the largest on, then all numbers between the best size and the next one. */
static unsigned guess_nodes(struct claim *claim)
{
	const struct psd_ask *ask = claim->ask;
	unsigned i = ask->n_sizes;

	while (i > 0 && !keeps(claim, ask->sizes[i - 1]))
		i--;
	if (i == 0 || i == ask->n_sizes)
		return i == 0 ? 0 : ask->most_nodes;
	return (unsigned)psd_border_find(&(struct psd_border){keeps, claim, ask->sizes[i - 1], ask->sizes[i] - 1},
					 ask->sizes[i - 1]);
}

static unsigned find_nodes(struct psd_ask *ask, unsigned system, double bandwidth_bps)
{
	struct claim claim = {ask, system, 0, bandwidth_bps, wanted_ratio(ask), PSD_ASK_ESTIMATE};
	const unsigned guess = guess_nodes(&claim);

	claim.how = PSD_ASK_CONFIRM;
	return (unsigned)psd_border_find(&(struct psd_border){keeps, &claim, 1, ask->most_nodes}, guess);
}

static void add_kept(struct psd_answers *answers, struct psd_answer *answer, const struct psd_answer_value *value)
{
	struct psd_text *text = &answer->sentence;

	psd_text_add(text, answer->n_values ? ", " : " ");
	if (value->is_beyond)
		psd_text_add(text, "beyond %u", (unsigned)value->number);
	else if (value->number > 0.0)
		psd_text_add(text, "up to %u", (unsigned)value->number);
	else
		psd_text_add(text, "not even on 1");
	psd_text_add(text, " node%s at ", value->number > 1.0 ? "s" : "");
	psd_answer_add_rate(text, value->bandwidth_bps);
	if (!value->is_beyond && value->limit.kind == PSD_LIMIT_NONE) {
		psd_text_add(text, " (there is no prediction of the next size)");
	} else if (!value->is_beyond) {
		psd_text_add(text, " (then bound by ");
		psd_limit_add(text, &value->limit);
		psd_text_add(text, ")");
	}
	psd_answer_add_value(answers, answer, *value);
}

/* Groups fix the number of nodes. */
static const char *const no_groups = "a cluster without `groups`";

const char *psd_ask_efficiency(struct psd_ask *ask, struct psd_answers *answers)
{
	if (ask->scenario->n_groups > 0)
		return no_groups;
	for (unsigned c = 0; c < ask->n_candidates && !ask->status; c++) {
		const unsigned system = ask->candidates[c];
		struct psd_answer *answer = psd_answers_add(answers, "efficiency", psd_ask_system_name(ask, system));

		psd_text_add(&answer->sentence, "%s keeps %.4g %% efficiency", answer->system,
			     100.0 * wanted_ratio(ask));
		for (unsigned b = 0; b < ask->n_bandwidths && !ask->status; b++) {
			const unsigned nodes = find_nodes(ask, system, ask->bandwidths_bps[b]);
			struct psd_answer_value value = {.name = "nodes",
							 .unit = "nodes",
							 .number = nodes,
							 .bandwidth_bps = ask->bandwidths_bps[b],
							 .is_beyond = nodes == ask->most_nodes};

			psd_ask_find_limit(ask, system, value.is_beyond ? nodes : nodes + 1, value.bandwidth_bps,
					   &value);
			add_kept(answers, answer, &value);
		}
		psd_text_add(&answer->sentence, ".");
	}
	return NULL;
}

/* ---- the knee ---- */

/* Finds the doubling of nodes that gains least, of those within the range; false: the range has none. */
static bool find_knee(struct psd_ask *ask, unsigned system, double bandwidth_bps, unsigned *nodes, double *gain)
{
	*gain = INFINITY;
	for (unsigned n = 1; 2 * n <= ask->most_nodes && !ask->status; n *= 2) {
		const double before = psd_ask_samples_per_sec(ask, system, n, bandwidth_bps, PSD_ASK_CONFIRM);
		const double after = psd_ask_samples_per_sec(ask, system, 2 * n, bandwidth_bps, PSD_ASK_CONFIRM);

		if (before > 0.0 && after > 0.0 && after / before < *gain) {
			*gain = after / before;
			*nodes = n;
		}
	}
	return isfinite(*gain);
}

const char *psd_ask_knee(struct psd_ask *ask, struct psd_answers *answers)
{
	if (ask->scenario->n_groups > 0)
		return no_groups;
	if (ask->most_nodes < 2)
		return psd_ask_several_nodes;
	for (unsigned c = 0; c < ask->n_candidates && !ask->status; c++) {
		const unsigned system = ask->candidates[c];
		struct psd_answer *answer = psd_answers_add(answers, "knee", psd_ask_system_name(ask, system));

		psd_text_add(&answer->sentence, "The doubling of nodes that gains %s least:", answer->system);
		for (unsigned b = 0; b < ask->n_bandwidths && !ask->status; b++) {
			struct psd_answer_value value = {
				.name = "gain", .unit = "ratio", .bandwidth_bps = ask->bandwidths_bps[b]};

			if (!find_knee(ask, system, value.bandwidth_bps, &value.nodes, &value.number))
				continue;
			psd_text_add(&answer->sentence, "%s from %u to %u nodes, %.2f times the samples/s, at ",
				     answer->n_values ? ";" : "", value.nodes, 2 * value.nodes, value.number);
			psd_answer_add_rate(&answer->sentence, value.bandwidth_bps);
			psd_ask_find_limit(ask, system, 2 * value.nodes, value.bandwidth_bps, &value);
			psd_text_add(&answer->sentence, " (bound by ");
			psd_limit_add(&answer->sentence, &value.limit);
			psd_text_add(&answer->sentence, ")");
			psd_answer_add_value(answers, answer, value);
		}
		psd_text_add(&answer->sentence, ".");
		if (answer->n_values == 0)
			psd_answers_drop(answers);
	}
	return NULL;
}

/* ---- the bandwidth ---- */

/* Without a prediction there is no limit, and the device is what efficiency is about. */
static bool tells_more(const struct psd_limit *limit)
{
	return limit->kind != PSD_LIMIT_NONE && (limit->kind != PSD_LIMIT_DEVICE || limit->has_place);
}

static void add_needed(struct psd_ask *ask, struct psd_answers *answers, unsigned system)
{
	struct claim claim = {ask, system, ask->most_nodes, 0.0, wanted_ratio(ask), PSD_ASK_ESTIMATE};
	const struct psd_border border = {misses, &claim, 1, ask->n_rates};
	struct psd_answer *answer = psd_answers_add(answers, "bandwidth", psd_ask_system_name(ask, system));
	struct psd_text *text = &answer->sentence;
	struct psd_answer_value value = {.name = "bandwidth", .unit = "bit/s", .nodes = ask->most_nodes};
	uint64_t rate = psd_border_find(&border, ask->n_rates / 2);

	claim.how = PSD_ASK_CONFIRM;
	rate = psd_border_find(&border, rate);
	value.is_beyond = rate == ask->n_rates;
	value.number = psd_ask_rate(ask, value.is_beyond ? rate : rate + 1);
	psd_text_add(text, "%s ", answer->system);
	psd_ask_find_limit(ask, system, ask->most_nodes, psd_ask_rate(ask, rate > 0 ? rate : 1), &value);
	if (value.is_beyond) {
		const double reached_ratio =
			psd_ask_efficiency_ratio(ask, system, ask->most_nodes, value.number, PSD_ASK_CONFIRM);

		psd_text_add(text, "does not reach %.4g %% efficiency on ", 100.0 * claim.ratio);
		psd_answer_add_nodes(text, ask->most_nodes);
		psd_ask_add_own_links(text, ask);
		psd_text_add(text, " at any bandwidth");
		psd_ask_add_searched(text, ask);
		if (value.limit.kind == PSD_LIMIT_NONE) {
			psd_text_add(text, ": there is no prediction");
		} else {
			psd_text_add(text, ": there it has %.3g %%, bound by ", 100.0 * reached_ratio);
			psd_limit_add(text, &value.limit);
		}
	} else {
		psd_text_add(text, "needs ");
		psd_answer_add_rate(text, value.number);
		psd_text_add(text, "%s for %.4g %% efficiency on ", rate > 0 ? "" : " or less", 100.0 * claim.ratio);
		psd_answer_add_nodes(text, ask->most_nodes);
		psd_ask_add_own_links(text, ask);
		if (rate > 0 && tells_more(&value.limit)) {
			psd_text_add(text, "; below, it is bound by ");
			psd_limit_add(text, &value.limit);
		}
	}
	psd_text_add(text, ".");
	psd_answer_add_value(answers, answer, value);
}

const char *psd_ask_bandwidth(struct psd_ask *ask, struct psd_answers *answers)
{
	if (ask->fastest_bps > 0.0)
		return psd_ask_shared_bandwidth;
	if (ask->most_nodes < 2)
		return psd_ask_several_nodes;
	ask->has_searched_rates = true;
	for (unsigned c = 0; c < ask->n_candidates && !ask->status; c++)
		add_needed(ask, answers, ask->candidates[c]);
	return NULL;
}
