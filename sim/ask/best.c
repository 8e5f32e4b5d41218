/* Questions that compare systems: the best one and the runner-up, and the bandwidths and numbers of nodes at which
 * their order turns. */
#include <math.h>
#include <stdlib.h>

#include "engine/program/jitter.h"
#include "sim/ask/ask.h"
#include "sim/ask/border.h"

/* A system is faster only if it has more samples per second by this ratio: equal systems have no order. */
static const double equal_ratio = 0.001;
/* It is more with random durations of operations, and if messages of asynchronous workers meet by chance. */
static const double chance_equal_ratio = 0.01;
/* A sentence about turns is told only if no simulation contradicts it by more than this ratio. */
static const double clear_ratio = 0.02;
/* A faster link may cost a system this share of its samples per second, because transfers start in another order. */
static const double monotone_ratio = 0.05;

/* Steps of a search by estimates, by simulations of few events, and by others: 3 %, 9 % and 37 %. */
enum { STEP_ESTIMATED = 3, STEP_CHEAP = 9, STEP_SIMULATED = 32, MOST_TURNS = 4 };
/* A simulation with this many events takes 0.025 s. */
static const uint64_t most_cheap_events = 50000;

static const char *const several_systems = "several systems";

/* ---- the best system ---- */

/* Simulates all systems on the largest cluster with all bandwidths at a time. */
static void predict_largest(struct psd_ask *ask)
{
	const unsigned n = ask->n_candidates * ask->n_bandwidths;
	struct psd_ask_entry *wanted = calloc(n, sizeof(*wanted));

	for (unsigned i = 0; wanted && i < n; i++)
		wanted[i] = (struct psd_ask_entry){.system = ask->candidates[i / ask->n_bandwidths],
						   .nodes = ask->most_nodes,
						   .bandwidth_bps = ask->bandwidths_bps[i % ask->n_bandwidths],
						   .how = PSD_ASK_CONFIRM};
	if (wanted)
		psd_ask_predict_all(ask, wanted, n);
	free(wanted);
}

/* Finds the two systems with the most samples per second on the largest cluster; the first of equals. *second is the
 * best if there is no other. False: none has a prediction. */
static bool find_best(struct psd_ask *ask, double bandwidth_bps, unsigned *best, unsigned *second)
{
	double best_rate = 0.0, second_rate = 0.0;

	*best = *second = ask->candidates[0];
	for (unsigned c = 0; c < ask->n_candidates; c++) {
		const unsigned s = ask->candidates[c];
		const double rate = psd_ask_samples_per_sec(ask, s, ask->most_nodes, bandwidth_bps, PSD_ASK_CONFIRM);

		if (rate > best_rate) {
			*second = best_rate <= 0.0 ? s : *best;
			second_rate = best_rate;
			*best = s;
			best_rate = rate;
		} else if (rate > second_rate) {
			*second = s;
			second_rate = rate;
		}
	}
	return best_rate > 0.0;
}

static struct psd_answer_value rate_of(struct psd_ask *ask, unsigned system, double bandwidth_bps)
{
	struct psd_answer_value value = {.name = "samples_per_sec",
					 .unit = "samples/s",
					 .system = psd_ask_system_name(ask, system),
					 .nodes = ask->most_nodes,
					 .bandwidth_bps = bandwidth_bps};

	value.number = psd_ask_samples_per_sec(ask, system, ask->most_nodes, bandwidth_bps, PSD_ASK_CONFIRM);
	psd_ask_find_limit(ask, system, ask->most_nodes, bandwidth_bps, &value);
	return value;
}

/* Adds the share of an iteration in which the device waits for communication. */
static void add_reason(struct psd_ask *ask, struct psd_text *text, unsigned system,
		       const struct psd_answer_value *value)
{
	const struct psd_outcome *outcome =
		psd_ask_predict(ask, system, value->nodes, value->bandwidth_bps, PSD_ASK_CONFIRM);

	psd_text_add(text, "bound by ");
	psd_limit_add(text, &value->limit);
	psd_text_add(text, ", waits for communication %.0f %% of an iteration",
		     100.0 * outcome->parts.exposed_comm_sec / outcome->iteration_sec);
}

const char *psd_ask_best(struct psd_ask *ask, struct psd_answers *answers)
{
	if (ask->n_systems < 2)
		return several_systems;
	predict_largest(ask);
	for (unsigned b = 0; b < ask->n_bandwidths && !ask->status; b++) {
		unsigned best, second;

		if (!find_best(ask, ask->bandwidths_bps[b], &best, &second))
			continue;
		const struct psd_answer_value first = rate_of(ask, best, ask->bandwidths_bps[b]);
		const struct psd_answer_value next = rate_of(ask, second, ask->bandwidths_bps[b]);
		struct psd_answer *answer = psd_answers_add(answers, "best", first.system);
		struct psd_text *text = &answer->sentence;

		psd_text_add(text, "With ");
		psd_answer_add_nodes(text, ask->most_nodes);
		psd_text_add(text, " at ");
		psd_ask_add_rate(text, ask, first.bandwidth_bps);
		psd_text_add(text, ", %s is best: ", first.system);
		psd_answer_add_number(text, first.number);
		psd_text_add(text, " samples/s (");
		add_reason(ask, text, best, &first);
		psd_text_add(text, ").");
		psd_answer_add_value(answers, answer, first);
		if (second == best)
			continue;
		psd_text_add(text, " %s follows with ", next.system);
		psd_answer_add_number(text, next.number);
		psd_text_add(text, " (");
		add_reason(ask, text, second, &next);
		psd_text_add(text, ").");
		psd_answer_add_value(answers, answer, next);
	}
	return NULL;
}

/* ---- break-evens ---- */

/* Two systems, compared over bandwidths at fixed nodes (bandwidth_bps is 0), or over nodes. */
struct duel {
	struct psd_ask *ask;
	unsigned a, b;
	double bandwidth_bps;
	enum psd_ask_how how;
	int before; /* order below a turn, for the search of its border */
};

static bool is_over_rates(const struct duel *duel)
{
	return duel->bandwidth_bps <= 0.0;
}

/* Order of the two: 1 if a is faster, -1 if b is, 0 if they are equal but for the ratio. */
static int order_within(const struct duel *duel, unsigned nodes, double bandwidth_bps, double ratio)
{
	const double a = psd_ask_samples_per_sec(duel->ask, duel->a, nodes, bandwidth_bps, duel->how);
	const double b = psd_ask_samples_per_sec(duel->ask, duel->b, nodes, bandwidth_bps, duel->how);

	if (a <= 0.0 || b <= 0.0 || fabs(a / b - 1.0) <= ratio)
		return 0;
	return a > b ? 1 : -1;
}

static bool has_chance(const struct duel *duel)
{
	const struct psd_scenario *scenario = duel->ask->scenario;

	return psd_jitter_is_drawn(scenario) || scenario->systems[duel->a].is_async ||
	       scenario->systems[duel->b].is_async;
}

static int order_of(const struct duel *duel, uint64_t number)
{
	const unsigned nodes = is_over_rates(duel) ? duel->ask->most_nodes : (unsigned)number;
	const double bps = is_over_rates(duel) ? psd_ask_rate(duel->ask, number) : duel->bandwidth_bps;

	return order_within(duel, nodes, bps, has_chance(duel) ? chance_equal_ratio : equal_ratio);
}

static bool is_as_before(void *context, uint64_t number)
{
	const struct duel *duel = context;

	return order_of(duel, number) == duel->before;
}

/* A turn of the order: above `number` it is `after`. */
struct turn {
	uint64_t number;
	int after;
};

struct turns {
	int first; /* order at the least number */
	unsigned n;
	bool has_more; /* the order turns again after the last one */
	struct turn turns[MOST_TURNS];
};

/* Adds the turns between two numbers. Systems that change places are equal between, if only for a step. */
static void add_turns(struct duel *duel, uint64_t least, uint64_t most, struct turns *turns)
{
	const int end = order_of(duel, most);

	while (duel->before != end && turns->n < MOST_TURNS && !duel->ask->status) {
		const struct psd_border border = {is_as_before, duel, least, most - 1};
		const uint64_t number = psd_border_find(&border, least);

		duel->before = order_of(duel, number + 1);
		turns->turns[turns->n++] = (struct turn){number, duel->before};
		least = number + 1;
	}
	turns->has_more = duel->before != end;
	duel->before = end;
}

/* Tells whether the order is the same at all bandwidths between two: no system loses by a faster link, so neither is
 * faster than at `most` or slower than at `least`. */
static bool is_sure(const struct duel *duel, uint64_t least, uint64_t most)
{
	const struct psd_ask *ask = duel->ask;
	const double slack = 1.0 + monotone_ratio;
	double a[2], b[2];

	for (int i = 0; i < 2; i++) {
		const double bps = psd_ask_rate(ask, i == 0 ? least : most);

		a[i] = psd_ask_samples_per_sec(duel->ask, duel->a, ask->most_nodes, bps, duel->how);
		b[i] = psd_ask_samples_per_sec(duel->ask, duel->b, ask->most_nodes, bps, duel->how);
	}
	return a[0] > 0.0 && b[0] > 0.0 && (a[0] > slack * b[1] || b[0] > slack * a[1]);
}

/* Adds the turns at the listed numbers from `first` to `last`, which are indices of the list. */
static void scan(struct duel *duel, const uint64_t numbers[], unsigned first, unsigned last, struct turns *turns)
{
	const unsigned middle = first + (last - first) / 2;

	if (duel->ask->status || first == last)
		return;
	if (last - first == 1 || (is_over_rates(duel) && is_sure(duel, numbers[first], numbers[last]))) {
		add_turns(duel, numbers[first], numbers[last], turns);
		return;
	}
	scan(duel, numbers, first, middle, turns);
	scan(duel, numbers, middle, last, turns);
}

/* Moves turns to where simulations turn. Leaves out those that simulations do not have, and adds those that they have
 * beyond. */
static void confirm_turns(struct duel *duel, const uint64_t numbers[], unsigned n, struct turns *turns)
{
	const struct turns guessed = *turns;
	uint64_t least = numbers[0];

	duel->how = PSD_ASK_CONFIRM;
	*turns = (struct turns){.first = order_of(duel, least)};
	duel->before = turns->first;
	for (unsigned t = 0; t < guessed.n && !duel->ask->status; t++) {
		const uint64_t most = t + 1 < guessed.n ? guessed.turns[t + 1].number : numbers[n - 1];
		const struct psd_border border = {is_as_before, duel, least, most};
		const uint64_t number = most > least ? psd_border_find(&border, guessed.turns[t].number) : most;

		if (number >= most)
			continue;
		duel->before = order_of(duel, number + 1);
		turns->turns[turns->n++] = (struct turn){number, duel->before};
		least = number + 1;
	}
	add_turns(duel, least, numbers[n - 1], turns);
}

/* Finds turns at the listed numbers, then their borders: by estimates which simulations confirm, or by simulations
 * where estimates leave out keys. */
static void find_turns(struct duel *duel, const uint64_t numbers[], unsigned n, struct turns *turns)
{
	const bool is_guessed = !duel->ask->has_disturbances;

	duel->how = is_guessed ? PSD_ASK_ESTIMATE : PSD_ASK_CONFIRM;
	*turns = (struct turns){.first = order_of(duel, numbers[0])};
	duel->before = turns->first;
	scan(duel, numbers, 0, n - 1, turns);
	if (is_guessed)
		confirm_turns(duel, numbers, n, turns);
}

/* True if the turns say another order than the simulation of the largest cluster at a bandwidth of the sweep, which is
 * made anyway. Bandwidths beside a turn do not count: turns are found to 1 %. */
static bool is_contradicted(const struct duel *duel, const struct turns *turns)
{
	const struct psd_ask *ask = duel->ask;

	for (unsigned b = 0; b < ask->n_bandwidths; b++) {
		const double bps = is_over_rates(duel) ? ask->bandwidths_bps[b] : duel->bandwidth_bps;
		const int order = order_within(duel, ask->most_nodes, bps, clear_ratio);
		int told = turns->first;
		bool is_beside = bps < psd_ask_rate(ask, 1);

		for (unsigned t = 0; t < turns->n; t++) {
			const double at = is_over_rates(duel) ? psd_ask_rate(ask, turns->turns[t].number)
							      : (double)turns->turns[t].number;
			const double number = is_over_rates(duel) ? bps : ask->most_nodes;

			is_beside = is_beside || (is_over_rates(duel) && fabs(number / at - 1.0) <= clear_ratio);
			told = number > at ? turns->turns[t].after : told;
		}
		if (order != 0 && told != order && !is_beside)
			return true;
	}
	return false;
}

static void add_number(struct psd_text *text, const struct duel *duel, uint64_t number)
{
	if (duel->bandwidth_bps > 0.0)
		psd_answer_add_nodes(text, (unsigned)number);
	else
		psd_answer_add_rate(text, psd_ask_rate(duel->ask, number));
}

static void add_faster(struct psd_text *text, const struct duel *duel, int order)
{
	const char *a = psd_ask_system_name(duel->ask, duel->a), *b = psd_ask_system_name(duel->ask, duel->b);

	if (order == 0)
		psd_text_add(text, "%s and %s are equal", a, b);
	else
		psd_text_add(text, "%s is faster than %s", order > 0 ? a : b, order > 0 ? b : a);
}

static void add_duel(struct psd_answers *answers, struct duel *duel, const uint64_t numbers[], unsigned n)
{
	const bool over_rates = is_over_rates(duel);
	struct turns turns;

	find_turns(duel, numbers, n, &turns);
	if ((turns.n == 0 && !over_rates) || duel->ask->status)
		return;
	const bool is_wrong = is_contradicted(duel, &turns), turns_more = is_wrong || turns.has_more;

	if (is_wrong && turns.n < MOST_TURNS)
		return;
	struct psd_answer *answer = psd_answers_add(answers, "break-even", psd_ask_system_name(duel->ask, duel->b));
	psd_text_add(&answer->sentence, over_rates ? "With " : "At ");
	if (over_rates) {
		psd_answer_add_nodes(&answer->sentence, duel->ask->most_nodes);
		psd_ask_add_own_links(&answer->sentence, duel->ask);
	} else {
		psd_answer_add_rate(&answer->sentence, duel->bandwidth_bps);
	}
	psd_text_add(&answer->sentence, ", ");
	add_faster(&answer->sentence, duel, turns.first);
	for (unsigned t = 0; t < turns.n; t++) {
		const bool is_last = t + 1 == turns.n;
		const double at =
			over_rates ? psd_ask_rate(duel->ask, turns.turns[t].number) : (double)turns.turns[t].number;
		const struct psd_answer_value value = {
			.name = "turn",
			.unit = over_rates ? "bit/s" : "nodes",
			.number = at,
			.system = turns.turns[t].after
					  ? psd_ask_system_name(duel->ask, turns.turns[t].after > 0 ? duel->a : duel->b)
					  : NULL,
			.nodes = over_rates ? duel->ask->most_nodes : 0,
			.bandwidth_bps = duel->bandwidth_bps};

		psd_text_add(&answer->sentence, " up to ");
		add_number(&answer->sentence, duel, turns.turns[t].number);
		psd_text_add(&answer->sentence, is_last ? "; beyond, " : ", then ");
		if (is_last && turns_more)
			psd_text_add(&answer->sentence, "their order turns again");
		else
			add_faster(&answer->sentence, duel, turns.turns[t].after);
		psd_answer_add_value(answers, answer, value);
	}
	if (turns.n == 0) {
		psd_text_add(&answer->sentence, " at every bandwidth");
		psd_ask_add_searched(&answer->sentence, duel->ask);
		psd_answer_add_value(
			answers, answer,
			(struct psd_answer_value){
				.name = "turn",
				.unit = "bit/s",
				.number = NAN,
				.system = turns.first
						  ? psd_ask_system_name(duel->ask, turns.first > 0 ? duel->a : duel->b)
						  : NULL,
				.nodes = duel->ask->most_nodes});
	}
	psd_text_add(&answer->sentence, ".");
}

static bool is_cheap(const struct duel *duel)
{
	struct psd_ask *ask = duel->ask;
	const double bps = psd_ask_rate(ask, ask->n_rates);

	return psd_ask_predict(ask, duel->a, ask->most_nodes, bps, PSD_ASK_CONFIRM)->n_events <= most_cheap_events &&
	       psd_ask_predict(ask, duel->b, ask->most_nodes, bps, PSD_ASK_CONFIRM)->n_events <= most_cheap_events;
}

static unsigned step_of(const struct duel *duel)
{
	return !duel->ask->has_disturbances ? STEP_ESTIMATED : is_cheap(duel) ? STEP_CHEAP : STEP_SIMULATED;
}

/* Compares two systems over bandwidths on the largest cluster, and over nodes at each bandwidth. */
static void add_duels(struct psd_ask *ask, struct psd_answers *answers, unsigned a, unsigned b)
{
	struct duel duel = {.ask = ask, .a = a, .b = b};
	const unsigned step = step_of(&duel);
	const unsigned n_rates = (ask->n_rates - 1) / step + 2;
	const unsigned most = n_rates > ask->n_sizes ? n_rates : ask->n_sizes;
	uint64_t *numbers = calloc(most, sizeof(*numbers));
	unsigned n = 0;

	if (!numbers) {
		answers->is_out_of_memory = true;
		return;
	}
	ask->has_coarse_turns = ask->has_coarse_turns || step == STEP_SIMULATED;
	for (uint64_t rate = 1; rate < ask->n_rates; rate += step)
		numbers[n++] = rate;
	numbers[n++] = ask->n_rates;
	add_duel(answers, &duel, numbers, n);
	/* a single node has no exchange between nodes: systems are compared from the second on */
	n = 0;
	for (unsigned i = 1; i < ask->n_sizes; i++)
		if ((!ask->has_disturbances || n == 0 || i + 1 == ask->n_sizes ||
		     ask->sizes[i] >= 2 * numbers[n - 1]) &&
		    psd_ask_fits(ask, a, ask->sizes[i]) && psd_ask_fits(ask, b, ask->sizes[i]))
			numbers[n++] = ask->sizes[i];
	for (unsigned i = 0; i < ask->n_bandwidths && n > 1 && !ask->status; i++) {
		duel.bandwidth_bps = ask->bandwidths_bps[i];
		add_duel(answers, &duel, numbers, n);
	}
	free(numbers);
}

/* Compares the first system, and the best one at each bandwidth with its runner-up. */
const char *psd_ask_break_even(struct psd_ask *ask, struct psd_answers *answers)
{
	bool is_told[PSD_MAX_SYSTEMS][PSD_MAX_SYSTEMS] = {{false}};

	if (ask->n_systems < 2)
		return several_systems;
	if (ask->n_candidates < 2)
		return "several systems that fit `job.memory`";
	if (ask->fastest_bps > 0.0)
		return psd_ask_shared_bandwidth; /* groups fix nodes, too */
	if (ask->most_nodes < 2)
		return psd_ask_several_nodes;
	ask->has_searched_rates = true;
	for (unsigned c = 1; c < ask->n_candidates && !ask->status; c++)
		add_duels(ask, answers, ask->candidates[0], ask->candidates[c]);
	for (unsigned b = 0; b < ask->n_bandwidths && ask->n_candidates > 2 && !ask->status; b++) {
		unsigned best, second;

		if (!find_best(ask, ask->bandwidths_bps[b], &best, &second) || best == second)
			continue;
		if (best == ask->candidates[0] || second == ask->candidates[0] || is_told[best][second])
			continue;
		is_told[best][second] = is_told[second][best] = true;
		add_duels(ask, answers, best, second);
	}
	return NULL;
}
