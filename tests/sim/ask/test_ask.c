/* Answers of random scenarios, against exhaustive sweeps: of estimates in 50 scenarios, of simulations in some. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"
#include "engine/estimate/estimate.h"
#include "engine/scenario/stack.h"
#include "sim/ask/ask.h"
#include "sim/ask/failures.h"
#include "sim/sweep/sweep.h"
#include "tests/cli_helper.h"
#include "tests/loaded_helper.h"
#include "tests/scratch_file.h"

static const double answer_tolerance_ratio = 0.02, equal_ratio = 0.001;

/* ---- random scenarios ---- */

static uint64_t drawn(uint64_t *seed, uint64_t n)
{
	return psd_random_mix((*seed)++ * UINT64_C(1000003)) % n;
}

static const char *const systems[] = {
	"{name: A, sync: ring, fuse: 4MiB}",
	"{name: B, sync: ps}",
	"{name: C, sync: ring, fuse: 1MiB, low_rank: {rank: 2}}",
	"{name: D, sync: ps, compress: {by: one-bit}}",
	"{name: E, sync: ring, schedule: sequential}",
	"{name: F, sync: halving-doubling, wire: fp16}",
	"{name: G, sync: ring, local_sgd: {steps: 4}}",
	"{name: H, sync: ps, staleness: 1}",
};

enum { N_SYSTEMS_LISTED = sizeof(systems) / sizeof(systems[0]), N_SEEDS = 50 };

static void open_drawn(struct loaded *loaded, uint64_t seed)
{
	static const char *const models[] = {"mlp", "cifar10-quick", "resnet18", "alexnet"};
	static const char *const devices[] = {"v100-sxm2", "titan-x", "a100"};
	static const char *const stacks[] = {"none", "nccl-tcp", "gloo", "psd"};
	uint64_t state = 100 * seed;
	const unsigned most = 2 + (unsigned)drawn(&state, 60), first = (unsigned)drawn(&state, N_SYSTEMS_LISTED);
	const unsigned second = (first + 1 + (unsigned)drawn(&state, N_SYSTEMS_LISTED - 1)) % N_SYSTEMS_LISTED;
	const double bandwidth = 0.5 * pow(1.6, (double)drawn(&state, 10));
	const char *model = models[drawn(&state, 4)], *device = devices[drawn(&state, 3)];
	const char *stack = stacks[drawn(&state, 4)];

	loaded_print(loaded,
		     "model: {graph: scenarios/models/%s.yaml, batch_per_worker: %u}\n"
		     "compute: {device: %s}\n"
		     "cluster:\n"
		     "  workers_per_node: %u\n"
		     "  network: {bandwidth: 1Gbps, latency: %uus}\n"
		     "  stack: %s\n"
		     "systems:\n"
		     "  - %s\n"
		     "  - %s\n"
		     "sweep: {nodes: [1, %u], bandwidth: [%.6gGbps, %.6gGbps]}\n"
		     "job: {samples: 10000000, epochs: %u, price: 2 per worker hour, within: %us, budget: %u, "
		     "efficiency: %u%%}\n",
		     model, 8u << drawn(&state, 4), device, 1u << drawn(&state, 2), (unsigned)drawn(&state, 100), stack,
		     systems[first], systems[second], most, bandwidth, 5.0 * bandwidth, 1 + (unsigned)drawn(&state, 20),
		     60 + (unsigned)drawn(&state, 20000), 1 + (unsigned)drawn(&state, 100),
		     50 + (unsigned)drawn(&state, 45));
}

/* ---- exhaustive sweeps ---- */

/* Case of each system that was estimated last: exhaustive sweeps over bandwidths take it again. */
static struct kept_case {
	struct psd_case made;
	struct psd_estimator *estimator;
} cases[PSD_MAX_SYSTEMS];

static void forget(void)
{
	for (unsigned s = 0; s < PSD_MAX_SYSTEMS; s++) {
		if (cases[s].estimator)
			psd_case_release(&cases[s].made);
		psd_estimator_free(cases[s].estimator);
		cases[s].estimator = NULL;
	}
}

static double estimated_sec(const struct loaded *loaded, unsigned s, unsigned nodes, double bandwidth_bps)
{
	const struct psd_system *system = &loaded->scenario.systems[s];
	const struct psd_run_length length = psd_run_length_make(system, 0, 0.0);
	struct psd_point point = psd_scenario_point(&loaded->scenario, 0);
	struct psd_outcome outcome;
	struct psd_error err = {.text = ""};

	point.nodes = nodes;
	point.workers_per_node = loaded->scenario.workers_per_node;
	point.workers = nodes * point.workers_per_node;
	point.bandwidth_bps = bandwidth_bps;
	if (cases[s].estimator && psd_case_reaches(&cases[s].made, &loaded->costed, system, point)) {
		psd_case_move(&cases[s].made, point);
	} else {
		if (cases[s].estimator)
			psd_case_release(&cases[s].made);
		psd_estimator_free(cases[s].estimator);
		cases[s].estimator = NULL;
		cr_assert_eq(psd_case_make(&cases[s].made, &loaded->costed, system, point, &err), PSD_OK, "%s",
			     err.text);
		cr_assert_eq(psd_estimator_new(&cases[s].estimator, &cases[s].made.program, length, &err), PSD_OK);
	}
	cr_assert_eq(psd_estimator_run(cases[s].estimator, length, &outcome, &err), PSD_OK, "%s", err.text);
	return outcome.iteration_sec;
}

static double efficiency(const struct loaded *loaded, unsigned system, double iteration_sec)
{
	return psd_costed_model_costs(&loaded->costed, &loaded->scenario.systems[system])->compute_sec / iteration_sec;
}

static unsigned most_nodes(const struct loaded *loaded)
{
	return (unsigned)loaded->scenario.sweep_nodes[1];
}

/* The answer to a question about a system, or of those about none; NULL: there is none. */
static const struct psd_answer *find(const struct psd_answers *answers, const char *question, const char *system,
				     double bandwidth_bps)
{
	for (uint32_t i = 0; i < answers->n; i++) {
		const struct psd_answer *answer = &answers->all[i];

		if (strcmp(answer->question, question) != 0 || (system && strcmp(answer->system, system) != 0))
			continue;
		for (uint32_t v = 0; v < answer->n_values; v++)
			if (answer->values[v].bandwidth_bps == bandwidth_bps)
				return answer;
	}
	return NULL;
}

static const struct psd_answer_value *value_at(const struct psd_answer *answer, double bandwidth_bps)
{
	for (uint32_t v = 0; v < answer->n_values; v++)
		if (answer->values[v].bandwidth_bps == bandwidth_bps)
			return &answer->values[v];
	cr_assert_fail("no value in: %s", answer->sentence.bytes);
	return NULL;
}

static void expect_near(double actual, double expected, uint64_t seed, const struct psd_answer *answer)
{
	cr_expect(fabs(actual - expected) <= answer_tolerance_ratio * fabs(expected), "seed %u: %g, not %g: %s",
		  (unsigned)seed, actual, expected, answer->sentence.bytes);
}

/* The largest number of nodes that keeps the efficiency, of all numbers. */
static void check_thresholds(const struct loaded *loaded, const struct psd_answers *answers, uint64_t seed)
{
	for (unsigned s = 0; s < loaded->scenario.n_systems; s++)
		for (unsigned b = 0; b < 2; b++) {
			const double bandwidth_bps = loaded->scenario.sweep_bandwidth_bps[b];
			const struct psd_answer *answer =
				find(answers, "efficiency", loaded->scenario.systems[s].name, bandwidth_bps);
			unsigned last = 0;

			for (unsigned n = 1; n <= most_nodes(loaded); n++)
				if (efficiency(loaded, s, estimated_sec(loaded, s, n, bandwidth_bps)) >=
				    loaded->scenario.job.efficiency_ratio)
					last = n;
			cr_assert_not_null(answer);
			cr_expect_eq(value_at(answer, bandwidth_bps)->number, last, "seed %u: %u nodes: %s",
				     (unsigned)seed, last, answer->sentence.bytes);
			cr_expect_eq(value_at(answer, bandwidth_bps)->is_beyond, last == most_nodes(loaded));
		}
}

static void check_knees(const struct loaded *loaded, const struct psd_answers *answers, uint64_t seed)
{
	const double bandwidth_bps = loaded->scenario.sweep_bandwidth_bps[1];

	for (unsigned s = 0; s < loaded->scenario.n_systems; s++) {
		const struct psd_answer *answer =
			find(answers, "knee", loaded->scenario.systems[s].name, bandwidth_bps);
		double least = INFINITY;

		for (unsigned n = 1; 2 * n <= most_nodes(loaded); n *= 2)
			least = fmin(least, 2.0 * estimated_sec(loaded, s, n, bandwidth_bps) /
						    estimated_sec(loaded, s, 2 * n, bandwidth_bps));
		cr_assert_not_null(answer);
		expect_near(value_at(answer, bandwidth_bps)->number, least, seed, answer);
	}
}

/* Largest bandwidth of a search: 800 Gbit/s for each worker of a node; those of the sweeps here are less. */
static double searched_bps(const struct loaded *loaded)
{
	return 800e9 * loaded->scenario.workers_per_node;
}

/* The first bandwidth with the efficiency of the job, in steps of 0.7 %. */
static void check_bandwidths(const struct loaded *loaded, const struct psd_answers *answers, uint64_t seed)
{
	for (unsigned s = 0; s < loaded->scenario.n_systems; s++) {
		const struct psd_answer *answer = find(answers, "bandwidth", loaded->scenario.systems[s].name, 0.0);
		const double most_bps = searched_bps(loaded);
		double needed_bps = 1e8;

		while (needed_bps < most_bps &&
		       efficiency(loaded, s, estimated_sec(loaded, s, most_nodes(loaded), needed_bps)) <
			       loaded->scenario.job.efficiency_ratio)
			needed_bps *= 1.007;
		cr_assert_not_null(answer);
		cr_expect_eq(answer->values[0].is_beyond, needed_bps >= most_bps, "seed %u: %s", (unsigned)seed,
			     answer->sentence.bytes);
		if (needed_bps < most_bps)
			expect_near(answer->values[0].number, needed_bps, seed, answer);
	}
}

static int order_at(const struct loaded *loaded, unsigned nodes, double bandwidth_bps)
{
	const struct psd_scenario *scenario = &loaded->scenario;
	const double ratio = estimated_sec(loaded, 1, nodes, bandwidth_bps) /
			     estimated_sec(loaded, 0, nodes, bandwidth_bps) *
			     psd_scenario_workload(scenario, &scenario->systems[0]).batch_per_worker /
			     psd_scenario_workload(scenario, &scenario->systems[1]).batch_per_worker;

	return fabs(ratio - 1.0) <= equal_ratio ? 0 : ratio > 1.0 ? 1 : -1;
}

struct turn {
	double number;
	int after;
};

enum { MOST_TURNS = 64, TOLD_TURNS = 4 };

/* Takes out ties narrower than 3 %, which steps of 1 % may miss, and turns that change nothing. */
static unsigned without_narrow_ties(struct turn turns[], unsigned n, int first)
{
	unsigned kept = 0;

	for (unsigned t = 0; t < n; t++) {
		if (turns[t].after == 0 && t + 1 < n && turns[t + 1].number / turns[t].number < 1.03)
			continue;
		if (turns[t].after != (kept > 0 ? turns[kept - 1].after : first))
			turns[kept++] = turns[t];
	}
	return kept;
}

static unsigned told_turns(const struct loaded *loaded, const struct psd_answer *answer, struct turn turns[])
{
	unsigned n = 0;

	for (; n < answer->n_values && !isnan(answer->values[n].number); n++) {
		const char *winner = answer->values[n].system;

		turns[n] = (struct turn){answer->values[n].number, !winner ? 0
								   : !strcmp(winner, loaded->scenario.systems[0].name)
									   ? 1
									   : -1};
	}
	return n;
}

/* All turns between both systems over bandwidths, in steps of 0.7 %. */
static void check_turns_of_bandwidth(const struct loaded *loaded, const struct psd_answers *answers, uint64_t seed)
{
	const struct psd_answer *answer = find(answers, "break-even", loaded->scenario.systems[1].name, 0.0);
	struct turn found[MOST_TURNS], told[MOST_TURNS];
	const int first = order_at(loaded, most_nodes(loaded), 1e8);
	double before_bps = 1e8;
	unsigned n = 0, n_told;
	int order = first;

	cr_assert_not_null(answer);
	for (double bps = 1e8; bps < 0.99 * searched_bps(loaded) && n < MOST_TURNS; before_bps = bps, bps *= 1.007) {
		const int next = order_at(loaded, most_nodes(loaded), bps);

		if (next != order)
			found[n++] = (struct turn){before_bps, next};
		order = next;
	}
	n = without_narrow_ties(found, n, first);
	n_told = without_narrow_ties(told, told_turns(loaded, answer, told), first);
	cr_expect(n_told == n || n > TOLD_TURNS, "seed %u: %u turns, not %u: %s", (unsigned)seed, n_told, n,
		  answer->sentence.bytes);
	for (unsigned t = 0; t < n && t < n_told; t++) {
		expect_near(told[t].number, found[t].number, seed, answer);
		cr_expect_eq(told[t].after, found[t].after, "seed %u: %s", (unsigned)seed, answer->sentence.bytes);
	}
}

static void check_turns_of_nodes(const struct loaded *loaded, const struct psd_answers *answers, uint64_t seed)
{
	const double bandwidth_bps = loaded->scenario.sweep_bandwidth_bps[1];
	const struct psd_answer *answer = find(answers, "break-even", loaded->scenario.systems[1].name, bandwidth_bps);
	unsigned n = 0;

	for (unsigned nodes = 3; nodes <= most_nodes(loaded) && n < 4; nodes++) {
		if (order_at(loaded, nodes, bandwidth_bps) == order_at(loaded, nodes - 1, bandwidth_bps))
			continue;
		cr_assert(answer && n < answer->n_values, "seed %u: a turn at %u nodes is missing", (unsigned)seed,
			  nodes);
		cr_expect_eq(answer->values[n++].number, nodes - 1, "seed %u: turn at %u nodes: %s", (unsigned)seed,
			     nodes - 1, answer->sentence.bytes);
	}
	cr_expect_eq(answer ? answer->n_values : 0, n, "seed %u", (unsigned)seed);
}

/* The cheapest in time and the fastest in budget, of all clusters. */
static void check_clusters(const struct loaded *loaded, const struct psd_answers *answers, uint64_t seed)
{
	const struct psd_training_job *job = &loaded->scenario.job;

	for (unsigned b = 0; b < 2; b++) {
		const double bandwidth_bps = loaded->scenario.sweep_bandwidth_bps[b];
		const struct psd_answer *cheap = find(answers, "cheapest within the time", NULL, bandwidth_bps);
		const struct psd_answer *fast = find(answers, "fastest within the budget", NULL, bandwidth_bps);
		double least_cost = INFINITY, least_sec = INFINITY;

		for (unsigned s = 0; s < loaded->scenario.n_systems; s++)
			for (unsigned n = 1; n <= most_nodes(loaded); n++) {
				const unsigned workers = n * loaded->scenario.workers_per_node;
				const double steps = ceil((double)job->samples * job->epochs /
							  (workers * (double)loaded->scenario.batch_per_worker));
				const double sec = steps * estimated_sec(loaded, s, n, bandwidth_bps);
				const double cost = sec / 3600.0 * workers * job->price;

				least_cost = sec <= job->within_sec ? fmin(least_cost, cost) : least_cost;
				least_sec = cost <= job->budget ? fmin(least_sec, sec) : least_sec;
			}
		cr_assert(cheap && fast);
		cr_expect_eq(cheap->values[2].number, isfinite(least_cost), "seed %u: %s", (unsigned)seed,
			     cheap->sentence.bytes);
		cr_expect_eq(fast->values[2].number, isfinite(least_sec), "seed %u: %s", (unsigned)seed,
			     fast->sentence.bytes);
		if (isfinite(least_cost))
			expect_near(cheap->values[1].number, least_cost, seed, cheap);
		if (isfinite(least_sec))
			expect_near(3600.0 * fast->values[0].number, least_sec, seed, fast);
	}
}

/* Samples per second of the system on a cluster of the sweep. */
static double rate_at(const struct loaded *loaded, unsigned system, struct psd_point point)
{
	const struct psd_scenario *scenario = &loaded->scenario;
	const unsigned batch = psd_scenario_workload(scenario, &scenario->systems[system]).batch_per_worker;

	return point.workers * (double)batch / estimated_sec(loaded, system, point.nodes, point.bandwidth_bps);
}

/* Share of the prediction at which the band of the system's stack begins. */
static double low_ratio_of(const struct psd_system *system)
{
	const struct psd_stack_record record = psd_stack_record(system->stack);

	return record.has_band ? record.low_ratio : 0.9;
}

/* The point with several nodes whose order is in doubt, or else the smaller lead. */
static void check_runs(const struct loaded *loaded, const struct psd_answers *answers, uint64_t seed)
{
	const struct psd_scenario *scenario = &loaded->scenario;
	double leads[2];
	bool doubts[2];
	unsigned points[2], chosen, n = 0;

	for (unsigned p = 0; p < psd_scenario_points(scenario); p++) {
		const struct psd_point point = psd_scenario_point(scenario, p);
		const double a = rate_at(loaded, 0, point), b = rate_at(loaded, 1, point);

		if (point.nodes < 2)
			continue;
		leads[n] = fmax(a, b) / fmin(a, b) - 1.0;
		doubts[n] = fmax(a, b) * low_ratio_of(&scenario->systems[a >= b ? 0 : 1]) < fmin(a, b);
		points[n++] = p;
	}
	chosen = doubts[0] == doubts[1] ? leads[1] < leads[0] : doubts[1];
	const struct psd_answer *answer =
		find(answers, "runs", NULL, psd_scenario_point(scenario, points[chosen]).bandwidth_bps);

	cr_assert(answer, "seed %u", (unsigned)seed);
	cr_expect_float_eq(answer->values[0].number, leads[chosen], 1e-9, "seed %u: %g: %s", (unsigned)seed,
			   leads[chosen], answer->sentence.bytes);
	cr_expect_eq(answer->values[2].number, doubts[chosen], "seed %u: %s", (unsigned)seed, answer->sentence.bytes);
	/* the other one, whose job may cost more, comes second: there are only two points */
	answer = &answer[1];
	cr_expect_eq(answer->values[0].bandwidth_bps, psd_scenario_point(scenario, points[1 - chosen]).bandwidth_bps,
		     "seed %u: %s", (unsigned)seed, answer->sentence.bytes);
}

static void ask_with(const struct psd_ask_settings *settings, struct psd_answers *answers)
{
	struct psd_error err = {.text = ""};
	int signal_number;

	cr_assert_eq(psd_ask_all(settings, answers, &signal_number, &err), PSD_OK, "%s", err.text);
}

static void ask(const struct loaded *loaded, bool is_estimate, struct psd_answers *answers)
{
	const struct psd_ask_settings settings = {
		.costed = &loaded->costed, .is_estimate = is_estimate, .n_at_once = 2};

	ask_with(&settings, answers);
}

static void check_seeds(uint64_t first, uint64_t n)
{
	for (uint64_t seed = first; seed < first + n; seed++) {
		struct loaded loaded;
		struct psd_answers answers;

		open_drawn(&loaded, seed);
		ask(&loaded, true, &answers);
		check_thresholds(&loaded, &answers, seed);
		check_knees(&loaded, &answers, seed);
		check_bandwidths(&loaded, &answers, seed);
		check_turns_of_bandwidth(&loaded, &answers, seed);
		check_turns_of_nodes(&loaded, &answers, seed);
		check_clusters(&loaded, &answers, seed);
		check_runs(&loaded, &answers, seed);
		psd_answers_release(&answers);
		forget();
		loaded_close(&loaded);
	}
}

Test(ask, answers_of_some_scenarios_are_those_of_exhaustive_sweeps)
{
	check_seeds(4, 1);  /* three turns of nodes */
	check_seeds(9, 1);  /* no cluster is in the budget */
	check_seeds(37, 1); /* bandwidths that suffice, and three turns between them */
	check_seeds(42, 1); /* no cluster is in time */
}

Test(ask, answers_of_50_scenarios_are_those_of_exhaustive_sweeps)
{
	check_seeds(1, N_SEEDS);
}

/* ---- simulations ---- */

#define SLOW_NODE                                                                                                      \
	"model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 64}\n"                                  \
	"compute: {device: v100-sxm2}\n"                                                                               \
	"cluster:\n"                                                                                                   \
	"  network: {bandwidth: 40Gbps, latency: 15us}\n"                                                              \
	"  stack: none\n"                                                                                              \
	"  slow: [{node: 3, compute: 50%}]\n"                                                                          \
	"systems:\n"                                                                                                   \
	"  - {name: Ring, sync: ring, fuse: 4MiB}\n"                                                                   \
	"  - {name: PS, sync: ps}\n"                                                                                   \
	"sweep: {nodes: [4, 5, 6, 7, 8]}\n"                                                                            \
	"job: {efficiency: 44.5%, samples: 1000000, within: 2s}\n"

/* The estimate knows no slow node: only simulations find these numbers. */
Test(ask, simulations_correct_what_estimates_leave_out)
{
	struct loaded loaded;
	struct psd_answers answers;
	const struct psd_answer *answer;
	double best = 0.0;

	loaded_open(&loaded, SLOW_NODE);
	const struct psd_sweep sweep = {.costed = &loaded.costed, .detail = PSD_DETAIL_ALL, .n_at_once = 2};
	struct psd_report report;
	struct psd_error err = {.text = ""};
	int signal_number;

	cr_assert_eq(psd_sweep_run(&sweep, &report, &signal_number, &err), PSD_OK, "%s", err.text);
	ask(&loaded, false, &answers);
	for (unsigned s = 0; s < 2; s++) {
		unsigned last = 0;

		for (unsigned p = 0; p < report.n_points; p++) {
			const struct psd_result *result = &report.results[s * report.n_points + p];
			const double ratio = efficiency(&loaded, s, result->outcome.iteration_sec);

			last = ratio >= 0.445 ? result->point.nodes : last;
			best = p + 1 == report.n_points ? fmax(best, result->images_per_sec) : best;
		}
		answer = find(&answers, "efficiency", loaded.scenario.systems[s].name, 40e9);
		cr_assert(answer && last > 0);
		cr_expect_eq(answer->values[0].number, last, "%u: %s", last, answer->sentence.bytes);
	}
	answer = find(&answers, "best", NULL, 40e9);
	cr_assert_not_null(answer);
	cr_expect_float_eq(answer->values[0].number / best, 1.0, 1e-6, "%g: %s", best, answer->sentence.bytes);
	psd_answers_release(&answers);
	psd_report_release(&report);
	loaded_close(&loaded);
}

/* One of 4 nodes computes at half speed. With fast links the synchronous system has 4 / 2 of a node's rate, the
 * asynchronous one 3 + 1 / 2. The estimate knows no slow node: to it both are equal there. */
Test(ask, break_evens_heed_slow_nodes)
{
	struct loaded loaded;
	struct psd_answers answers;
	const struct psd_answer *answer, *best;

	loaded_open(&loaded, "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 100}\n"
			     "compute: {device: k20}\n"
			     "iterations: 20\n"
			     "cluster: {network: {bandwidth: 10Gbps, latency: 50us}, stack: none, "
			     "slow: [{node: 1, compute: 50%}]}\n"
			     "systems: [{name: A, sync: ps}, {name: B, sync: ps, asynchronous: {bound: 50}}]\n"
			     "sweep: {nodes: [2, 4]}\n");
	ask(&loaded, false, &answers);
	best = find(&answers, "best", NULL, 10e9);
	cr_assert(best && best->n_values == 2);
	cr_expect_str_eq(best->values[0].system, "B");
	cr_expect_float_eq(best->values[0].number / best->values[1].number, 3.5 / 2.0, 0.02, "%s",
			   best->sentence.bytes);
	answer = find(&answers, "break-even", "B", 0.0);
	cr_assert(answer && answer->n_values > 0);
	cr_assert_not_null(answer->values[answer->n_values - 1].system, "%s", answer->sentence.bytes);
	cr_expect_str_eq(answer->values[answer->n_values - 1].system, "B", "%s", answer->sentence.bytes);
	psd_answers_release(&answers);
	loaded_close(&loaded);
}

static void expect_steps(unsigned iterations, const char *words)
{
	struct loaded loaded;
	struct psd_answers answers;
	bool is_said = false;

	loaded_print(&loaded,
		     "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 100}\n"
		     "compute: {device: k20}\n"
		     "iterations: %u\n"
		     "cluster: {network: {bandwidth: 10Gbps, latency: 50us}, stack: none, "
		     "slow: [{node: 1, compute: 50%%}]}\n"
		     "systems: [{name: A, sync: ps}, {name: B, sync: ps, asynchronous: {bound: 50}}]\n"
		     "sweep: {nodes: [4]}\n",
		     iterations);
	ask(&loaded, false, &answers);
	for (uint32_t i = 0; i < answers.n; i++)
		is_said = is_said || strstr(answers.all[i].sentence.bytes, words);
	cr_expect(is_said, "%u iterations: %s", iterations, words);
	psd_answers_release(&answers);
	loaded_close(&loaded);
}

/* Each asynchronous iteration is simulated: 5 have fewer than 50,000 events, 200 have more. */
Test(ask, break_evens_are_searched_more_finely_by_simulations_of_few_events)
{
	expect_steps(5, " closer than 10 % may be missed");
	expect_steps(200, " closer than 40 % may be missed");
}

/* At a bound all wait for the slow node, and both systems are as fast where links are. Where links are slow, messages
 * of asynchronous workers meet by chance, and their order turns often by less than 1 %. */
Test(ask, systems_that_differ_by_chance_are_equal)
{
	struct loaded loaded;
	struct psd_answers answers;
	const struct psd_answer *answer;

	loaded_open(&loaded, "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 100}\n"
			     "compute: {device: k20}\n"
			     "iterations: 20\n"
			     "cluster: {network: {bandwidth: 10Gbps, latency: 50us}, stack: psd, "
			     "slow: [{node: 1, compute: 50%}]}\n"
			     "systems: [{name: A, sync: ps}, {name: B, sync: ps, asynchronous: {bound: 2}}]\n"
			     "sweep: {nodes: [2, 4]}\n");
	ask(&loaded, false, &answers);
	answer = find(&answers, "break-even", "B", 0.0);
	cr_assert(answer && answer->n_values > 0);
	cr_expect_null(answer->values[answer->n_values - 1].system, "%s", answer->sentence.bytes);
	psd_answers_release(&answers);
	loaded_close(&loaded);
}

/* An estimate without the spread would be the best. 64 iterations of A have 1.7 times as many events as those of B, and
 * more than the limit. */
Test(ask, systems_with_too_many_events_are_not_estimated_without_jitter)
{
	struct loaded loaded;
	struct psd_answers answers;

	loaded_open(&loaded, "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 100}\n"
			     "compute: {device: k20, spread: 20%}\n"
			     "iterations: 64\n"
			     "most_events: 30000\n"
			     "cluster: {nodes: 4, network: {bandwidth: 10Gbps, latency: 50us}, stack: none}\n"
			     "systems: [{name: A, sync: ps}, {name: B, sync: ring}]\n");
	ask(&loaded, false, &answers);
	const struct psd_answer *best = find(&answers, "best", NULL, 10e9);
	const struct psd_answer *kept = find(&answers, "efficiency", "A", 10e9);

	cr_assert(best && kept);
	cr_expect_eq(best->n_values, 1, "%s", best->sentence.bytes);
	cr_expect_str_eq(best->values[0].system, "B");
	cr_expect_null(strstr(best->sentence.bytes, "follows"), "%s", best->sentence.bytes);
	cr_expect(strstr(kept->sentence.bytes, "no prediction") && !strstr(kept->sentence.bytes, "bound by "), "%s",
		  kept->sentence.bytes);
	psd_answers_release(&answers);
	loaded_close(&loaded);
}

Test(ask, bandwidths_without_a_prediction_have_no_limit)
{
	struct loaded loaded;
	struct psd_answers answers;

	loaded_open(&loaded, "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 100}\n"
			     "compute: {device: k20, spread: 20%}\n"
			     "iterations: 64\n"
			     "most_events: 100\n"
			     "cluster: {nodes: 4, network: {bandwidth: 10Gbps, latency: 50us}, stack: none}\n"
			     "systems: [{name: A, sync: ps}]\n");
	ask_with(&(struct psd_ask_settings){.costed = &loaded.costed, .question = "bandwidth", .n_at_once = 1},
		 &answers);
	cr_expect_str_eq(answers.all[0].sentence.bytes,
			 "A does not reach 80 % efficiency on 4 nodes at any bandwidth searched (up to 800 Gbit/s): "
			 "there is no prediction.");
	psd_answers_release(&answers);
	loaded_close(&loaded);
}

/* Groups fix the number of nodes: 3 here. */
Test(ask, groups_have_answers_about_all_of_their_nodes)
{
	struct loaded loaded;
	struct psd_answers answers;

	loaded_open(&loaded, "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 32}\n"
			     "compute: {device: v100}\n"
			     "cluster: {network: {bandwidth: 10Gbps, latency: 50us}, stack: none, "
			     "groups: [{nodes: 1}, {nodes: 2, speed: 50%}]}\n"
			     "systems: [{name: A, sync: ps}, {name: B, sync: ring}]\n"
			     "job: {samples: 1000000, within: 1h, price: 2 per worker hour}\n");
	ask(&loaded, true, &answers);
	cr_expect_gt(answers.n, 3);
	for (uint32_t i = 0; i < answers.n; i++) {
		const struct psd_answer *answer = &answers.all[i];

		cr_expect(strcmp(answer->question, "efficiency") != 0 && strcmp(answer->question, "knee") != 0, "%s",
			  answer->sentence.bytes);
		for (uint32_t v = 0; v < answer->n_values; v++) {
			cr_expect(answer->values[v].nodes == 0 || answer->values[v].nodes == 3, "%s",
				  answer->sentence.bytes);
			cr_expect_str_neq(answer->values[v].unit, "nodes", "%s", answer->sentence.bytes);
		}
	}
	psd_answers_release(&answers);
	loaded_close(&loaded);
}

/* The cluster's 10 Gbit/s are nobody's, and the slow group has a name. */
Test(ask, groups_with_own_links_leave_no_bandwidth_to_search)
{
	static const char *const said[] = {"With 3 nodes at 100 Gbit/s to 400 Gbit/s, ", "bound by group 1",
					   ", bandwidth (needs a group of nodes without its own `bandwidth`), ",
					   "No order of the two best systems is in doubt: with 3 nodes, "};
	bool is_said[4] = {false};
	struct loaded loaded;
	struct psd_answers answers;

	loaded_open(&loaded, "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 32}\n"
			     "compute: {device: v100}\n"
			     "cluster: {network: {bandwidth: 10Gbps, latency: 50us}, stack: none, groups: [\n"
			     "  {nodes: 1, network: {bandwidth: 100Gbps}},\n"
			     "  {nodes: 2, speed: 1%, network: {bandwidth: 400Gbps}}]}\n"
			     "systems: [{name: A, sync: ps, split: speed}, {name: B, sync: ring}]\n"
			     "job: {samples: 1000000, within: 1h, price: 2 per worker hour}\n");
	ask(&loaded, true, &answers);
	for (uint32_t i = 0; i < answers.n; i++) {
		const char *sentence = answers.all[i].sentence.bytes;

		for (unsigned t = 0; t < 4; t++)
			is_said[t] = is_said[t] || strstr(sentence, said[t]);
		cr_expect(!strstr(sentence, " 10 Gbit/s") && !strstr(sentence, " searched (up"), "%s", sentence);
	}
	for (unsigned t = 0; t < 4; t++)
		cr_expect(is_said[t], "%s", said[t]);
	psd_answers_release(&answers);
	loaded_close(&loaded);
}

/* Bandwidths are those of group 0 alone; each sentence about them says so. */
Test(ask, groups_with_own_links_beside_others_are_named)
{
	static const char *const said[] = {
		"efficiency on 3 nodes (group 1: 1 Gbit/s)", "With 3 nodes at 10 Gbit/s (group 1: 1 Gbit/s), ",
		"With 3 nodes (group 1: 1 Gbit/s), ", "A takes at 10 Gbit/s (group 1: 1 Gbit/s) "};
	bool is_said[4] = {false};
	struct loaded loaded;
	struct psd_answers answers;

	loaded_open(&loaded, "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 32}\n"
			     "compute: {device: v100}\n"
			     "cluster: {network: {bandwidth: 10Gbps, latency: 50us}, stack: none, groups: [\n"
			     "  {nodes: 1}, {nodes: 2, network: {bandwidth: 1Gbps}}]}\n"
			     "systems: [{name: A, sync: ps}, {name: B, sync: ring}]\n"
			     "job: {samples: 1000000}\n");
	ask(&loaded, true, &answers);
	for (uint32_t i = 0; i < answers.n; i++)
		for (unsigned t = 0; t < 4; t++)
			is_said[t] = is_said[t] || strstr(answers.all[i].sentence.bytes, said[t]);
	for (unsigned t = 0; t < 4; t++)
		cr_expect(is_said[t], "%s", said[t]);
	psd_answers_release(&answers);
	loaded_close(&loaded);
}

/* ---- the command ---- */

#define JOB "scenarios/examples/job.yaml"

Test(ask, lines_are_at_most_80_columns_wide)
{
	const struct run made = run_program("psd-sim", "ask --estimate " JOB, "");

	cr_assert_eq(made.exit_status, 0, "%s", made.text);
	for (const char *line = made.text; *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL))
		cr_expect_leq(strcspn(line, "\n"), 80, "%.*s", (int)strcspn(line, "\n"), line);
	cr_expect_not_null(strstr(made.text, "\nPowerSGD keeps 80 % efficiency beyond 64 nodes at 10 Gbit/s"), "%s",
			   made.text);
	cr_expect_not_null(strstr(made.text, "converge are not predicted."), "%s", made.text);
	free(made.text);
}

static unsigned count(const char *text, const char *words)
{
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, words)); at++)
		n++;
	return n;
}

/* Joins lines of the text and looks for each sentence of the JSON in it. */
Test(ask, each_sentence_has_its_row_in_json)
{
	const struct run text = run_program("psd-sim", "ask --estimate " JOB, "");
	const struct run json = run_program("psd-sim", "ask --estimate --json " JOB, "");
	unsigned n_sentences = 0, n_rows = 0;

	cr_assert(text.exit_status == 0 && json.exit_status == 0);
	for (const char *line = strchr(text.text, '\n') + 1; *line;
	     line += strcspn(line, "\n") + (strchr(line, '\n') != NULL))
		n_sentences += *line != ' ' && *line != '\n';
	n_rows = count(json.text, "\"sentence\":\"");
	cr_expect_gt(n_rows, 20);
	cr_expect_eq(n_rows, n_sentences);
	free(text.text);
	free(json.text);
}

/* The sentences below a table begin where its notes end, those of JSON are in its last element. */
Test(ask, sentences_below_a_table_have_their_rows_in_json)
{
	const struct run text = run_program("psd-sim", "--estimate " JOB, "");
	const struct run json = run_program("psd-sim", "--estimate --json " JOB, "");
	unsigned n_sentences = 0;

	cr_assert(text.exit_status == 0 && json.exit_status == 0);
	for (const char *line = strstr(text.text, "\nRing keeps ") + 1; *line;
	     line += strcspn(line, "\n") + (strchr(line, '\n') != NULL))
		n_sentences += *line != ' ' && *line != '\n';
	cr_expect_gt(n_sentences, 10);
	cr_expect_eq(count(json.text, "\"sentence\":\""), n_sentences, "%s", json.text);
	cr_expect_eq(count(json.text, "\"iteration_sec\":"), 18, "%s", json.text);
	free(text.text);
	free(json.text);
}

static void expect_fit(unsigned batch, const char *words)
{
	char arguments[256];

	snprintf(arguments, sizeof(arguments),
		 "ask --estimate --system Ring --set job.memory=4GB --set "
		 "model.batch_per_worker=%u " JOB,
		 batch);
	const struct run made = run_program("psd-sim", arguments, "| tr '\\n' ' ' | tr -s ' '");

	cr_expect_not_null(strstr(made.text, words), "%u: %s", batch, made.text);
	free(made.text);
}

/* The batch that is said to fit does, and the next one does not. */
Test(ask, the_largest_batch_that_fits_is_told)
{
	const struct run made = run_program("psd-sim", "ask --estimate --system Ring --set job.memory=4GB " JOB,
					    "| tr '\\n' ' ' | tr -s ' '");
	const char *told = strstr(made.text, "That does not fit 4 GB, but batches of up to ");

	cr_assert_not_null(told, "%s", made.text);
	const unsigned batch = (unsigned)strtoul(strstr(told, "up to ") + strlen("up to "), NULL, 10);

	expect_fit(batch, "That fits 4 GB");
	expect_fit(batch + 1, "That does not fit 4 GB");
	free(made.text);
}

/* Equal micro-batches of 64 samples. They fit with the number that is told, and not with half of it. */
Test(ask, an_accumulation_that_fits_is_told)
{
	const struct run made = run_program("psd-sim", "ask --estimate --system Ring --set job.memory=4GB " JOB,
					    "| tr '\\n' ' ' | tr -s ' '");
	static const char words[] = "With `accumulate: ";
	const char *told = strstr(made.text, words);

	cr_assert_not_null(told, "%s", made.text);
	const unsigned n = (unsigned)strtoul(told + strlen(words), NULL, 10);
	const unsigned batch = (unsigned)strtoul(strstr(told, "batches of ") + strlen("batches of "), NULL, 10);

	cr_expect_geq(n, 2);
	for (unsigned i = 0; i < 2; i++) {
		char arguments[256];

		snprintf(arguments, sizeof(arguments),
			 "ask --question memory --set job.memory=4GB --set systems.Ring.accumulate=2 --set "
			 "model.batch_per_worker=%u --system Ring " JOB,
			 i == 0 ? batch : 2 * batch);
		const struct run other = run_program("psd-sim", arguments, "| tr '\\n' ' ' | tr -s ' '");

		cr_expect(strstr(other.text, i == 0 ? "That fits 4 GB" : "That does not fit 4 GB"), "%u of %u: %s", n,
			  batch, other.text);
		cr_expect_null(strstr(other.text, words));
		free(other.text);
	}
	free(made.text);
}

/* ---- below the table ---- */

Test(ask, results_of_a_sweep_are_not_predicted_again)
{
	struct loaded loaded;
	struct psd_answers answers, told;
	struct psd_report report;
	struct psd_error err = {.text = ""};
	int signal_number;

	loaded_open(&loaded, SLOW_NODE);
	const struct psd_sweep sweep = {.costed = &loaded.costed, .detail = PSD_DETAIL_CLASSES, .n_at_once = 2};
	struct psd_ask_settings settings = {.costed = &loaded.costed, .n_at_once = 2};

	cr_assert_eq(psd_sweep_run(&sweep, &report, &signal_number, &err), PSD_OK, "%s", err.text);
	ask_with(&settings, &answers);
	settings.known = &report;
	ask_with(&settings, &told);
	cr_assert_eq(answers.n, told.n);
	for (uint32_t i = 0; i + 1 < answers.n; i++)
		cr_expect_str_eq(told.all[i].sentence.bytes, answers.all[i].sentence.bytes);
	/* ten rows of the sweep, all of which questions ask for */
	cr_expect_eq(told.all[told.n - 1].values[0].number, answers.all[answers.n - 1].values[0].number - 10, "%s",
		     told.all[told.n - 1].sentence.bytes);
	psd_answers_release(&answers);
	psd_answers_release(&told);
	psd_report_release(&report);
	loaded_close(&loaded);
}

Test(ask, a_table_with_a_job_has_its_columns_and_answers)
{
	const struct run made = run_program("psd-sim", "--estimate " JOB, "| tr '\\n' ' ' | tr -s ' '");
	static const char *const words[] = {" speedup efficiency hours cost worker ",
					    " Ring keeps 80 % efficiency up to ",
					    " With 64 nodes at 10 Gbit/s, PowerSGD is best: ",
					    " The cheapest cluster of 1 to 64 nodes within 10.0 h at ",
					    " The fastest cluster of 1 to 64 nodes for a cost of 1000 at ",
					    " Workers of all systems fit 16 GB: PowerSGD needs most, ",
					    " is fastest with a checkpoint every ",
					    " A real run tells most with ",
					    " `psd-sim ask` also answers: knee, bandwidth, break-even, hours."};

	cr_assert_eq(made.exit_status, 0, "%s", made.text);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		cr_expect(strstr(made.text, words[i]), "'%s' is missing: %s", words[i], made.text);
	free(made.text);
}

/* Without `stack` each system has that of its method. The table and the answers say the same words about it, and about
 * training that differs in any case. */
Test(ask, answers_have_the_notes_of_a_comparison)
{
	static const char *const arguments[] = {"--estimate " JOB, "ask --estimate --question best " JOB,
						"--estimate --set cluster.stack= " JOB,
						"ask --estimate --question best --set cluster.stack= " JOB};

	for (unsigned i = 0; i < 4; i++) {
		const struct run made = run_program("psd-sim", arguments[i], "| tr '\n' ' ' | tr -s ' '");

		cr_assert_eq(made.exit_status, 0, "%s", made.text);
		cr_expect_not_null(strstr(made.text, " note: 'PowerSGD' sends gradients of matrices as products "),
				   "%s", made.text);
		cr_expect_eq(strstr(made.text, " note: Ring is on stack nccl-tcp and Servers on psd because of their "
					       "methods: the comparison is of software, too; ") != NULL,
			     i >= 2, "%s", made.text);
		free(made.text);
	}
}

Test(ask, only_systems_that_do_not_fit_are_told_below_a_table)
{
	const struct run made =
		run_program("psd-sim", "--estimate --set job.memory=5GB " JOB, "| tr '\\n' ' ' | tr -s ' '");

	cr_expect(strstr(made.text, "does not fit 5 GB, but batches of up to "), "%s", made.text);
	free(made.text);
}

Test(ask, a_table_without_a_job_has_neither)
{
	const struct run made = run_program("psd-sim", "--estimate scenarios/quickstart.yaml", "");

	cr_assert_eq(made.exit_status, 0, "%s", made.text);
	cr_expect_not(strstr(made.text, "efficiency") || strstr(made.text, "hours") || strstr(made.text, "A real run"),
		      "%s", made.text);
	free(made.text);
}

/* The number in column `name` of a line of CSV without quotes. */
static double cell_of(const char *head, const char *line, const char *name)
{
	const size_t length = strlen(name);

	while (strncmp(head, name, length) != 0 || !strchr(",\n", head[length])) {
		head = strchr(head, ',') + 1;
		line = strchr(line, ',') + 1;
	}
	cr_assert(*line != ',', "'%s' is empty", name);
	return strtod(line, NULL);
}

/* 12 workers, of which those of the second group have batches of their own: the job has the samples of the rate. */
Test(ask, times_of_any_length_are_written_in_a_unit_that_shows_them)
{
	static const struct {
		double sec;
		const char *text;
	} rows[] = {{1e-6, "1 us"}, {5e-4, "500 us"}, {0.0012, "0.001 s"}, {90.0, "90.0 s"}, {7200.0, "2.00 h"}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct psd_text text = {.bytes = NULL};

		psd_answer_add_time(&text, rows[i].sec);
		cr_expect_str_eq(text.bytes, rows[i].text);
		psd_text_release(&text);
	}
}

Test(ask, hours_count_the_samples_of_all_groups)
{
	const struct run made = run_program(
		"psd-sim", "--estimate --csv --set title=A --system Even scenarios/examples/groups.yaml", "");
	const char *line = strchr(made.text, '\n') + 1;

	cr_assert_eq(made.exit_status, 0, "%s", made.text);
	cr_expect_float_eq(cell_of(made.text, line, "hours") * 3600.0 * cell_of(made.text, line, "images_per_sec"),
			   90.0 * 1281167.0, 1e-4 * 90.0 * 1281167.0, "%s", line);
	free(made.text);
}

/* By hand: iterations of 64 samples on each worker, at 3 for a worker's hour. */
Test(ask, rows_have_efficiency_memory_hours_and_cost)
{
	const struct run made = run_program("psd-sim", "--estimate --csv --system Ring " JOB, "");
	unsigned n_rows = 0;

	cr_assert_eq(made.exit_status, 0, "%s", made.text);
	for (const char *line = strchr(made.text, '\n') + 1; *line; line = strchr(line, '\n') + 1, n_rows++) {
		const double sec = cell_of(made.text, line, "iteration_sec");
		const double workers = cell_of(made.text, line, "workers");
		const double hours = ceil(90.0 * 1281167.0 / (64.0 * workers)) * sec / 3600.0;

		cr_expect_float_eq(cell_of(made.text, line, "efficiency"),
				   cell_of(made.text, line, "compute_sec") / sec, 1e-5, "%s", line);
		cr_expect_float_eq(cell_of(made.text, line, "hours") / hours, 1.0, 1e-7, "%s", line);
		cr_expect_float_eq(cell_of(made.text, line, "cost") / (3.0 * workers * hours), 1.0, 1e-7, "%s", line);
		/* parameters, gradients and momentum of 25,549,352 values, and activations */
		cr_expect_gt(cell_of(made.text, line, "memory_bytes"), 3.0 * 25549352.0 * 4.0);
	}
	cr_expect_eq(n_rows, 6);
	free(made.text);
}

Test(ask, each_variant_of_a_sweep_is_asked)
{
	const struct run made = run_program(
		"psd-sim", "ask --quiet --estimate --sweep model.batch_per_worker=16,64 --system Ring " JOB, "");

	cr_expect(strstr(made.text, "one V100,\n  model.batch_per_worker 16\n") ||
			  strstr(made.text, "model.batch_per_worker 16\n"),
		  "%s", made.text);
	cr_expect(strstr(made.text, "model.batch_per_worker 64\n"), "%s", made.text);
	free(made.text);
}

/* ---- single questions ---- */

static double value_named(const struct psd_answer *answer, const char *name)
{
	for (uint32_t v = 0; v < answer->n_values; v++)
		if (!strcmp(answer->values[v].name, name))
			return answer->values[v].number;
	cr_assert_fail("'%s' is missing: %s", name, answer->sentence.bytes);
	return 0.0;
}

#define QUICK "scenarios/quickstart.yaml"
#define LARGE_IN(memory)                                                                                               \
	"model: {graph: scenarios/models/gpt2.yaml, batch_per_worker: 4}\n"                                            \
	"compute: {device: v100-sxm2}\n"                                                                               \
	"cluster:\n"                                                                                                   \
	"  nodes: 8\n"                                                                                                 \
	"  network: {bandwidth: 10Gbps, latency: 15us}\n"                                                              \
	"  stack: none\n"                                                                                              \
	"systems: [{name: Ring, sync: ring, fuse: 4MiB}]\n"                                                            \
	"train: {iterations: 1, optimiser: {kind: adamw}, learning_rate: {base: 1}}\n"                                 \
	"sweep: {fuse: [1MiB, 16MiB, 256MiB]}\n"                                                                       \
	"job: {memory: " memory "}\n"
#define LARGE LARGE_IN("3GB")

/* Half precision: two bytes of each activation and gradient fewer, a copy of each parameter more. Shards: an eighth of
 * originals and both moments in fp32, and whole buckets of parameters and of gradients in two bytes, two each, but for
 * the table of tokens, which the loss shares: one whole. */
Test(ask, remedies_of_memory_are_counted_by_hand)
{
	const double parameters_bytes = 4.0 * 124439808.0;
	struct loaded loaded;
	struct psd_answers answers;
	const struct psd_answer *answer;

	loaded_open(&loaded, LARGE);
	ask_with(
		&(struct psd_ask_settings){
			.costed = &loaded.costed, .question = "Memory", .is_estimate = true, .n_at_once = 1},
		&answers);
	answer = &answers.all[0];
	cr_expect_str_eq(answer->question, "memory");
	cr_expect_eq(value_named(answer, "parameters"), parameters_bytes);
	cr_expect_eq(value_named(answer, "optimiser"), 2.0 * parameters_bytes);
	const double kept_bytes = value_named(answer, "activations") + value_named(answer, "their gradients");
	const double half_bytes = value_named(answer, "memory") - kept_bytes / 2.0;
	/* probabilities of 12 heads in 12 layers, of 1,024 by 1,024 tokens in two bytes */
	const double scores_bytes = 4.0 * 12.0 * 12.0 * 1024.0 * 1024.0 * 2.0;

	cr_expect_float_eq(value_named(answer, "in fp16"), half_bytes, 2.0);
	const double states_bytes = (0.5 + 1.0 + 0.5 + 2.0) * parameters_bytes; /* copy, original, gradient, moments */
	const double sharded_bytes = half_bytes - states_bytes - value_named(answer, "buffers") +
				     (1.0 + 2.0) * parameters_bytes / 8.0 + 2.0 * 2.0 * 50257.0 * 768.0;

	cr_expect_gt(value_named(answer, "sharded"), sharded_bytes);
	cr_expect_lt(value_named(answer, "sharded"), sharded_bytes + 4.0 * 2.0 * 75e6, "%g",
		     (value_named(answer, "sharded") - sharded_bytes) / 2e6);
	cr_expect_eq(value_named(answer, "sharded") - value_named(answer, "with fused attention"), scores_bytes);
	cr_expect_not_null(strstr(answer->sentence.bytes, " With that and parameters, gradients and optimiser sharded"),
			   "%s", answer->sentence.bytes);
	cr_expect_not_null(strstr(answer->sentence.bytes, " With all of that and fused attention, "), "%s",
			   answer->sentence.bytes);
	cr_expect_not_null(strstr(answer->sentence.bytes, "That does not fit 3 GB"), "%s", answer->sentence.bytes);
	psd_answers_release(&answers);
	loaded_close(&loaded);
}

/* Remedies of the first system are the others, also where its gradients are several and its activations few. */
Test(ask, each_remedy_is_the_system_with_those_before_it)
{
	static const char *const keys[] = {"", ", staleness: 3", ", accumulate: 4", ", schedule: sequential"};
	static const char *const names[] = {"in bf16", "with blocks computed again", "sharded"};

	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct loaded loaded;
		struct psd_answers answers;

		loaded_print(
			&loaded,
			"model: {graph: scenarios/models/gpt2-medium.yaml, batch_per_worker: 1, sequence: 64}\n"
			"compute: {device: a100}\n"
			"cluster: {nodes: 8, stack: none, network: {bandwidth: 100Gbps, latency: 20us}}\n"
			"systems:\n"
			"  - {name: Whole, sync: ring%s}\n"
			"  - {name: Half, sync: ring%s, model: {precision: bf16}}\n"
			"  - {name: Again, sync: ring%s, model: {precision: bf16, recompute: blocks}}\n"
			"  - {name: Sharded, sync: fsdp, fuse: 25MiB, model: {precision: bf16, recompute: blocks}}\n"
			"job: {memory: 1GB}\n",
			keys[i], keys[i], keys[i]);
		ask_with(
			&(struct psd_ask_settings){
				.costed = &loaded.costed, .question = "memory", .is_estimate = true, .n_at_once = 1},
			&answers);
		for (unsigned n = 0; n < 3; n++)
			cr_expect_eq(value_named(&answers.all[0], names[n]), value_named(&answers.all[n + 1], "memory"),
				     "%s%s: %s", names[n], keys[i], answers.all[0].sentence.bytes);
		psd_answers_release(&answers);
		loaded_close(&loaded);
	}
}

/* The device gains nothing from 16 bits. Recomputation comes first, and sharding would do without it. */
Test(ask, sharding_that_is_enough_alone_is_told)
{
	struct loaded loaded;
	struct psd_answers answers;

	loaded_open(&loaded, "model: {graph: scenarios/models/gpt2-medium.yaml, batch_per_worker: 1, sequence: 64}\n"
			     "compute: {device: k20}\n"
			     "cluster: {nodes: 8, stack: none, network: {bandwidth: 100Gbps, latency: 20us}}\n"
			     "systems: [{name: Whole, sync: ring}, {name: Sharded, sync: fsdp, fuse: 25MiB}]\n"
			     "job: {memory: 3GB}\n");
	ask_with(
		&(struct psd_ask_settings){
			.costed = &loaded.costed, .question = "memory", .is_estimate = true, .n_at_once = 1},
		&answers);
	const struct psd_answer *whole = &answers.all[0];

	cr_expect_gt(value_named(whole, "with blocks computed again"), 3e9);
	cr_expect_lt(value_named(whole, "sharded"), value_named(whole, "sharded alone"));
	cr_expect_eq(value_named(whole, "sharded alone"), value_named(&answers.all[1], "memory"));
	cr_expect_not_null(strstr(whole->sentence.bytes, " With `sync: fsdp` alone it needs "), "%s",
			   whole->sentence.bytes);
	psd_answers_release(&answers);
	loaded_close(&loaded);
}

/* The whole needs 5.701 GB, of which 4.207 GB are activations, their gradients, samples and workspace: with shards of
 * the rest a worker fits 5.7 GB, and not 4. */
Test(ask, remedies_end_with_the_one_that_fits)
{
	static const char *const memories[] = {"5.7GB", "4GB"};

	for (unsigned i = 0; i < 2; i++) {
		struct loaded loaded;
		struct psd_answers answers;

		loaded_print(&loaded,
			     "model: {graph: scenarios/models/gpt2.yaml, batch_per_worker: 4, precision: bf16}\n"
			     "compute: {device: a100}\n"
			     "cluster: {nodes: 8, stack: none, network: {bandwidth: 100Gbps, latency: 20us}}\n"
			     "systems: [{name: Whole, sync: ring}]\n"
			     "job: {memory: %s}\n",
			     memories[i]);
		ask_with(
			&(struct psd_ask_settings){
				.costed = &loaded.costed, .question = "memory", .is_estimate = true, .n_at_once = 1},
			&answers);
		cr_expect_eq(strstr(answers.all[0].sentence.bytes, " fused attention") != NULL, i > 0, "%s: %s",
			     memories[i], answers.all[0].sentence.bytes);
		psd_answers_release(&answers);
		loaded_close(&loaded);
	}
}

/* FSDP has no buffers of factors. */
Test(ask, a_sharded_remedy_has_no_peers)
{
	struct loaded loaded;
	struct psd_answers answers;

	loaded_open(&loaded, "model: {graph: scenarios/models/one-tensor.yaml, batch_per_worker: 32}\n"
			     "compute: {device: cpu}\n"
			     "cluster: {nodes: 4, stack: none, network: {bandwidth: 10Gbps, latency: 0us}}\n"
			     "systems:\n"
			     "  - {name: Factors, sync: sfb, peers: 1, local_sgd: {steps: 6}}\n"
			     "  - {name: Sharded, sync: fsdp, fuse: 25MiB}\n"
			     "job: {memory: 100MB}\n");
	ask_with(
		&(struct psd_ask_settings){
			.costed = &loaded.costed, .question = "memory", .is_estimate = true, .n_at_once = 1},
		&answers);
	cr_expect_eq(value_named(&answers.all[0], "sharded"), value_named(&answers.all[1], "memory"), "%s",
		     answers.all[0].sentence.bytes);
	psd_answers_release(&answers);
	loaded_close(&loaded);
}

/* Originals are sharded already: half precision adds the copies alone. 16 bits are refused beside `wire`. */
Test(ask, half_precision_of_other_systems_is_a_remedy_where_they_run)
{
	struct loaded loaded;
	struct psd_answers answers;

	loaded_open(&loaded, "model: {graph: scenarios/models/gpt2.yaml, batch_per_worker: 1}\n"
			     "compute: {device: a100}\n"
			     "cluster: {nodes: 8, stack: none, network: {bandwidth: 100Gbps, latency: 20us}}\n"
			     "systems:\n"
			     "  - {name: Sharded, sync: fsdp, fuse: 25MiB}\n"
			     "  - {name: Half, sync: fsdp, fuse: 25MiB, model: {precision: bf16}}\n"
			     "  - {name: Wire, sync: ring, wire: fp16}\n"
			     "job: {memory: 100MB}\n");
	ask_with(
		&(struct psd_ask_settings){
			.costed = &loaded.costed, .question = "memory", .is_estimate = true, .n_at_once = 1},
		&answers);
	cr_expect_eq(value_named(&answers.all[0], "in bf16"), value_named(&answers.all[1], "memory"), "%s",
		     answers.all[0].sentence.bytes);
	cr_expect_null(strstr(answers.all[2].sentence.bytes, " in bf16 "), "%s", answers.all[2].sentence.bytes);
	psd_answers_release(&answers);
	loaded_close(&loaded);
}

/* The remedy is the other system: psd keeps the scores. */
Test(ask, sharding_is_a_remedy_without_fused_attention)
{
	struct loaded loaded;
	struct psd_answers answers;

	loaded_open(&loaded, "model: {graph: scenarios/models/gpt2.yaml, batch_per_worker: 4, precision: bf16}\n"
			     "compute: {device: a100}\n"
			     "cluster: {nodes: 8, stack: none, network: {bandwidth: 100Gbps, latency: 20us}}\n"
			     "systems: [{name: Whole, sync: ring}, {name: Sharded, sync: fsdp, fuse: 25MiB}]\n"
			     "job: {memory: 4GB}\n");
	ask_with(
		&(struct psd_ask_settings){
			.costed = &loaded.costed, .question = "memory", .is_estimate = true, .n_at_once = 1},
		&answers);
	cr_expect_eq(value_named(&answers.all[0], "sharded"), value_named(&answers.all[1], "memory"), "%s",
		     answers.all[0].sentence.bytes);
	cr_expect_gt(value_named(&answers.all[0], "sharded"), value_named(&answers.all[0], "with fused attention"));
	psd_answers_release(&answers);
	loaded_close(&loaded);
}

static const char *const half_words[] = {" With layers in bf16 (`model.precision: bf16`) it needs ",
					 " With layers in fp16 (`model.precision: mixed`) it needs "};

/* V100 has fp16 alone; a K20 and a processor are no faster with 16 bits. psd-sim refuses bf16 on all of these. */
Test(ask, half_precision_is_a_remedy_where_all_devices_have_it)
{
	static const struct {
		const char *device, *groups;
		int remedy; /* number of the remedy in half_words; -1: none */
	} rows[] = {
		{"a100", "", 0},
		{"v100", "", 1},
		{"k20", "", -1},
		{"cpu", "", -1},
		{"a100", ", groups: [{nodes: 1}, {nodes: 1, device: h100}]", 0},
		{"a100", ", groups: [{nodes: 1}, {nodes: 1, device: v100}]", 1},
		{"a100", ", groups: [{nodes: 1}, {nodes: 1, device: k20}]", -1},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct loaded loaded;
		struct psd_answers answers;

		loaded_print(&loaded,
			     "model: {graph: scenarios/models/resnet18.yaml, batch_per_worker: 64}\n"
			     "compute: {device: %s}\n"
			     "cluster: {nodes: 2%s,\n"
			     "  stack: none, network: {bandwidth: 10Gbps, latency: 15us}}\n"
			     "systems: [{name: Ring, sync: ring}]\n"
			     "job: {memory: 1GB}\n",
			     rows[i].device, rows[i].groups);
		ask_with(
			&(struct psd_ask_settings){
				.costed = &loaded.costed, .question = "memory", .is_estimate = true, .n_at_once = 1},
			&answers);
		for (int w = 0; w < 2; w++)
			cr_expect_eq(strstr(answers.all[0].sentence.bytes, half_words[w]) != NULL, w == rows[i].remedy,
				     "%u: %s", i, answers.all[0].sentence.bytes);
		psd_answers_release(&answers);
		loaded_close(&loaded);
	}
}

/* remedy: as above. A device outside of the table counts as one with bf16. */
Test(ask, half_precision_is_a_remedy_where_the_device_of_a_profile_has_it)
{
	static const struct {
		const char *device;
		int remedy;
	} rows[] = {{"a100", 0}, {"v100 (mixed precision)", 1}, {"k20", -1}, {"cpu, 2 at a time", -1}, {"other", 0}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct loaded loaded;
		struct psd_answers answers;
		char profile[256];

		snprintf(profile, sizeof(profile),
			 "# batch: 64\n# kind: measured\n# origin: here\n# device: %s\n# gemm_flops_per_sec: 2TFLOPS\n"
			 "layer,forward_sec,backward_sec\nfc,1e-3,2e-3\n",
			 rows[i].device);
		struct scratch_file file = scratch_file_write(profile);

		loaded_print(&loaded,
			     "model: {graph: tests/data/one_layer.yaml, batch_per_worker: 64}\n"
			     "compute: {profile: %s}\n"
			     "cluster: {nodes: 2, stack: none, network: {bandwidth: 10Gbps, latency: 15us}}\n"
			     "systems: [{name: Ring, sync: ring}]\n"
			     "job: {memory: 1kB}\n",
			     file.path);
		ask_with(
			&(struct psd_ask_settings){
				.costed = &loaded.costed, .question = "memory", .is_estimate = true, .n_at_once = 1},
			&answers);
		for (int w = 0; w < 2; w++)
			cr_expect_eq(strstr(answers.all[0].sentence.bytes, half_words[w]) != NULL, w == rows[i].remedy,
				     "%u: %s", i, answers.all[0].sentence.bytes);
		psd_answers_release(&answers);
		loaded_close(&loaded);
		remove(file.path);
	}
}

/* The remedy is the other system; one block's scores are left. */
Test(ask, recomputation_is_a_remedy_of_memory)
{
	struct loaded loaded;
	struct psd_answers answers;

	loaded_open(&loaded,
		    "model: {graph: scenarios/models/gpt2-medium.yaml, batch_per_worker: 8, precision: bf16}\n"
		    "compute: {device: a100-80gb}\n"
		    "cluster: {nodes: 8, stack: none, network: {bandwidth: 100Gbps, latency: 20us}}\n"
		    "systems: [{name: Kept, sync: ring}, {name: Again, sync: ring, model: {recompute: blocks}}]\n"
		    "job: {memory: 4GB}\n");
	ask_with(
		&(struct psd_ask_settings){
			.costed = &loaded.costed, .question = "memory", .is_estimate = true, .n_at_once = 1},
		&answers);
	const struct psd_answer *again = &answers.all[1];

	cr_expect_eq(value_named(&answers.all[0], "with blocks computed again"), value_named(again, "memory"));
	/* 16 heads of 1,024 by 1,024 tokens in two bytes, of one layer */
	cr_expect_eq(value_named(again, "sharded") - value_named(again, "with fused attention"),
		     8.0 * 16.0 * 1024.0 * 1024.0 * 2.0);
	cr_expect_not_null(strstr(answers.all[2].sentence.bytes, "DDP, without checkpointing, needs"), "%s",
			   answers.all[2].sentence.bytes);
	psd_answers_release(&answers);
	loaded_close(&loaded);
}

/* The worker with the largest batch is in the second group, on whose nodes 4 workers share a link. */
Test(ask, groups_have_their_own_batches_and_workers)
{
	struct loaded loaded;
	struct psd_answers answers;
	struct psd_report report;
	struct psd_error err = {.text = ""};
	int signal_number;

	loaded_open(&loaded, "model: {graph: scenarios/models/resnet18.yaml, batch_per_worker: 8}\n"
			     "compute: {device: v100}\n"
			     "cluster: {groups: [{nodes: 1}, {nodes: 1, workers_per_node: 4, batch_per_worker: 64}],\n"
			     "  stack: none, network: {bandwidth: 10Gbps, latency: 15us}}\n"
			     "systems: [{name: Ring, sync: ring}]\n"
			     "job: {memory: 16GB}\n");
	const struct psd_sweep sweep = {.costed = &loaded.costed, .is_estimate = true, .n_at_once = 1};
	struct psd_ask_settings settings = {
		.costed = &loaded.costed, .question = "memory", .is_estimate = true, .n_at_once = 1};
	struct psd_ask ask;

	cr_assert_eq(psd_sweep_run(&sweep, &report, &signal_number, &err), PSD_OK, "%s", err.text);
	for (unsigned i = 0; i < 2; i++) {
		settings.is_short = i == 1;
		ask_with(&settings, &answers);
		cr_expect_eq(value_named(&answers.all[0], "memory"), (double)report.results[0].outcome.memory_bytes);
		cr_expect_str_eq(answers.all[answers.n - 1].question, i == 0 ? "memory" : "notes");
		cr_expect_not_null(strstr(answers.all[0].sentence.bytes, "Ring in group 1 (batch 64) needs "), "%s",
				   answers.all[0].sentence.bytes);
		psd_answers_release(&answers);
	}
	cr_assert_eq(psd_ask_open(&ask, &settings, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(ask.most_bps, 4.0 * 800e9);
	psd_ask_close(&ask);
	psd_report_release(&report);
	loaded_close(&loaded);
}

/* 64 samples of the second group need to be divided by 4 to fit, which divides 4 and 8 samples of the first, not 6. */
Test(ask, accumulation_divides_the_batches_of_all_groups)
{
	static const struct {
		unsigned first_batch;
		const char *split, *advice; /* advice NULL: none */
	} rows[] = {
		{4, "even",
		 " With `accumulate: 4`, in batches of 1 in group 0, 16 in group 1, an iteration with all samples "
		 "fits."},
		{8, "even",
		 " With `accumulate: 4`, in batches of 2 in group 0, 16 in group 1, an iteration with all samples "
		 "fits."},
		{6, "even", NULL},
		{64, "even", " With `accumulate: 4`, in batches of 16, an iteration with all samples fits."},
		{11, "speed",
		 " No `accumulate` is named, since the batches of its split follow from speed and have no common "
		 "divisor that fits."},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct loaded loaded;
		struct psd_answers answers;

		loaded_print(&loaded,
			     "model: {graph: scenarios/models/resnet18.yaml, batch_per_worker: 8}\n"
			     "compute: {device: v100}\n"
			     "cluster: {groups: [{nodes: 1, batch_per_worker: %u}, {nodes: 1, batch_per_worker: 64}],\n"
			     "  stack: none, network: {bandwidth: 10Gbps, latency: 15us}}\n"
			     "systems: [{name: Ring, sync: ring, split: %s}]\n"
			     "job: {memory: 1GB}\n",
			     rows[i].first_batch, rows[i].split);
		ask_with(
			&(struct psd_ask_settings){
				.costed = &loaded.costed, .question = "memory", .is_estimate = true, .n_at_once = 1},
			&answers);
		const char *sentence = answers.all[0].sentence.bytes;

		cr_expect(rows[i].advice ? strstr(sentence, rows[i].advice) != NULL
					 : strstr(sentence, "`accumulate") == NULL,
			  "%s", sentence);
		psd_answers_release(&answers);
		loaded_close(&loaded);
	}
}

/* DDP: parameters, gradients, buckets, two moments. Four samples of 1,024 tokens, 50,257 logits and their gradient of
 * each, and the saved values of saved/is_what_pytorch_saves. */
Test(ask, memory_in_pytorch_is_counted_by_hand)
{
	const double parameters_bytes = 4.0 * 124439808.0, tokens = 4.0 * 1024.0;
	struct loaded loaded;
	struct psd_answers answers;
	const struct psd_answer *answer;

	loaded_open(&loaded, LARGE);
	ask_with(
		&(struct psd_ask_settings){
			.costed = &loaded.costed, .question = "memory", .is_estimate = true, .n_at_once = 1},
		&answers);
	answer = &answers.all[1];
	cr_expect_not_null(strstr(answer->sentence.bytes, "A worker of PyTorch 2 with DDP needs "), "%s",
			   answer->sentence.bytes);
	cr_expect_eq(value_named(answer, "saved by eager attention"), 4.0 * 4.0 * 12.0 * 12.0 * 1024.0 * 1024.0);
	cr_expect_eq(value_named(answer, "memory in PyTorch"), 5.0 * parameters_bytes +
								       value_named(answer, "saved for backward") +
								       tokens * 4.0 * (2.0 * 50257.0 + 1.0));
	cr_expect_eq(value_named(answer, "fits"), 0.0);
	psd_answers_release(&answers);
	loaded_close(&loaded);
}

/* The system in front keeps an eighth of the states. Its line of PyTorch is that of the ring behind it, as above: 5
 * times the parameters in states. Alone it has no such line. */
Test(ask, memory_in_pytorch_is_not_that_of_sharded_systems)
{
	static const char *const systems_of[] = {"{name: FSDP, sync: fsdp}, {name: Ring, sync: ring}",
						 "{name: FSDP, sync: fsdp}"};

	for (unsigned i = 0; i < 2; i++) {
		struct loaded loaded;
		struct psd_answers answers;
		double states_bytes = 0.0;

		loaded_print(&loaded,
			     "model: {graph: scenarios/models/gpt2.yaml, batch_per_worker: 4}\n"
			     "compute: {device: v100-sxm2}\n"
			     "cluster: {nodes: 8, network: {bandwidth: 10Gbps, latency: 15us}, stack: none}\n"
			     "systems: [%s]\n"
			     "train: {iterations: 1, optimiser: {kind: adamw}, learning_rate: {base: 1}}\n"
			     "job: {memory: 3GB}\n",
			     systems_of[i]);
		ask_with(
			&(struct psd_ask_settings){
				.costed = &loaded.costed, .question = "memory", .is_estimate = true, .n_at_once = 1},
			&answers);
		for (uint32_t a = 0; a < answers.n; a++)
			if (strstr(answers.all[a].sentence.bytes, "PyTorch 2"))
				states_bytes = value_named(&answers.all[a], "memory in PyTorch") -
					       value_named(&answers.all[a], "saved for backward") -
					       4.0 * 1024.0 * 4.0 * (2.0 * 50257.0 + 1.0);
		cr_expect_eq(states_bytes, i == 0 ? 5.0 * 4.0 * 124439808.0 : 0.0, "%g", states_bytes);
		psd_answers_release(&answers);
		loaded_close(&loaded);
	}
}

/* Peaks in MiB that others measured with PyTorch before 1.11, on one GPU with AdamW.
 *
 * Hugging Face, "Efficient Training on a Single GPU" (now "Model training anatomy"), January 2022: BERT-large with 512
 * tokens on a V100, of which 1,343 MiB were taken before the model. Batches of 1 were accumulated.
 *
 * Mesa (arXiv 2111.11124), README of its repository: DeiT-B by max_memory_allocated(), PyTorch 1.7.1 with AMP, batch
 * 128. Training keeps a moving average of the parameters, too, 4 bytes each. */
Test(ask, memory_in_pytorch_is_within_a_tenth_of_published_peaks)
{
	static const struct {
		const char *model, *of_model;
		double mib, more_bytes;
	} rows[] = {
		{"bert-large", "batch_per_worker: 4", 14949.0 - 1343.0, 0.0},
		{"bert-large", "batch_per_worker: 1", 8681.0 - 1343.0, 0.0},
		{"bert-large", "batch_per_worker: 1, recompute: blocks", 6775.0 - 1343.0, 0.0},
		{"bert-large", "batch_per_worker: 4, precision: mixed", 13939.0 - 1343.0, 0.0},
		{"bert-large", "batch_per_worker: 1, precision: mixed, recompute: blocks", 7275.0 - 1343.0, 0.0},
		{"vit-b16", "batch_per_worker: 128, precision: mixed", 17691.0, 4.0 * 86566120.0},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct loaded loaded;
		struct psd_answers answers;

		loaded_print(&loaded,
			     "model: {graph: scenarios/models/%s.yaml, %s}\n"
			     "compute: {device: v100-sxm2}\n"
			     "cluster: {nodes: 1, network: {bandwidth: 10Gbps, latency: 15us}}\n"
			     "systems: [{name: PyTorch, sync: ring, stack: nccl-tcp}]\n"
			     "train: {iterations: 1, optimiser: {kind: adamw}, learning_rate: {base: 1}}\n"
			     "job: {memory: 1GB}\n",
			     rows[i].model, rows[i].of_model);
		ask_with(
			&(struct psd_ask_settings){
				.costed = &loaded.costed, .question = "memory", .is_estimate = true, .n_at_once = 1},
			&answers);
		const struct psd_answer *answer = &answers.all[1];
		const double bytes = value_named(answer, "memory in PyTorch") +
				     value_named(answer, "saved by eager attention before 1.11") + rows[i].more_bytes;

		cr_expect_float_eq(bytes / (rows[i].mib * 1048576.0), 1.0, 0.1, "%s, %s: %.2f GB, published %.2f: %s",
				   rows[i].model, rows[i].of_model, bytes / 1e9, rows[i].mib * 1048576e-9,
				   answer->sentence.bytes);
		psd_answers_release(&answers);
		loaded_close(&loaded);
	}
}

/* The one cluster of the sweep, once without failures: Daly's expected time of that work. */
Test(ask, clusters_are_chosen_with_failures)
{
	static const char *const texts[] = {"", ", mtbf: 10h per node, checkpoint: 60s, restart: 5min"};
	struct psd_failures failures = {.mtbf_sec = 36000.0 / 4.0, .checkpoint_sec = 60.0, .restart_sec = 300.0};
	double hours[2];

	for (unsigned i = 0; i < 2; i++) {
		struct loaded loaded;
		struct psd_answers answers;

		loaded_print(&loaded,
			     "model: {graph: scenarios/models/resnet18.yaml, batch_per_worker: 32}\n"
			     "compute: {device: v100-sxm2}\n"
			     "cluster: {nodes: 4, stack: none, network: {bandwidth: 10Gbps, latency: 15us}}\n"
			     "systems: [{name: Ring, sync: ring}]\n"
			     "sweep: {nodes: [4]}\n"
			     "job: {samples: 1281167, epochs: 90, price: 3 per worker hour, within: 200h%s}\n",
			     texts[i]);
		ask_with(
			&(struct psd_ask_settings){
				.costed = &loaded.costed, .question = "clusters", .is_estimate = true, .n_at_once = 1},
			&answers);
		hours[i] = value_named(&answers.all[0], "hours");
		cr_expect_float_eq(value_named(&answers.all[0], "cost"), 4.0 * 3.0 * hours[i], 1e-6 * hours[i]);
		cr_expect(strstr(answers.all[0].sentence.bytes, "The cheapest cluster of 4 nodes within 200 h at "),
			  "%s", answers.all[0].sentence.bytes);
		cr_expect_eq(strstr(answers.all[0].sentence.bytes, "(means with failures).") != NULL, i == 1, "%s",
			     answers.all[0].sentence.bytes);
		psd_answers_release(&answers);
		loaded_close(&loaded);
	}
	failures.work_sec = 3600.0 * hours[0];
	cr_expect_gt(hours[1], hours[0]);
	cr_expect_float_eq(3600.0 * hours[1] /
				   psd_failures_expected_sec(&failures, psd_failures_interval_sec(&failures)),
			   1.0, 1e-9);
}

static void ask_in(double memory_bytes, struct loaded *loaded, struct psd_answers *answers)
{
	loaded_print(loaded,
		     "model: {graph: scenarios/models/gpt2.yaml, batch_per_worker: 4}\n"
		     "compute: {device: v100-sxm2}\n"
		     "cluster: {nodes: 8, stack: none, network: {bandwidth: 10Gbps, latency: 15us}}\n"
		     "systems: [{name: Ring, sync: ring, fuse: 4MiB}, {name: Shards, sync: fsdp, fuse: 4MiB}]\n"
		     "train: {iterations: 1, optimiser: {kind: adamw}, learning_rate: {base: 1}}\n"
		     "job: {samples: 1000, within: 1000h, memory: %.0fB}\n",
		     memory_bytes);
	ask_with(&(struct psd_ask_settings){.costed = &loaded->costed, .is_estimate = true, .n_at_once = 1}, answers);
}

static const struct psd_answer *answer_with(const struct psd_answers *answers, const char *words)
{
	for (uint32_t i = 0; i < answers->n; i++)
		if (strstr(answers->all[i].sentence.bytes, words))
			return &answers->all[i];
	cr_assert_fail("'%s' is missing", words);
	return NULL;
}

/* Ring keeps more on each worker than shards do: with a byte less than it needs on 8 nodes, only shards are answers. On
 * fewer nodes shards are larger, and with a byte less than theirs on 8 nodes, nothing fits. */
Test(ask, systems_that_do_not_fit_are_no_answers)
{
	struct psd_answers answers;
	struct loaded loaded;
	double bytes[2];

	ask_in(1e12, &loaded, &answers);
	cr_expect_str_eq(answer_with(&answers, " is best: ")->system, "Ring");
	bytes[0] = value_named(answer_with(&answers, "A worker of Ring needs "), "memory");
	bytes[1] = value_named(answer_with(&answers, "A worker of Shards needs "), "memory");
	cr_assert_gt(bytes[0], bytes[1]);
	psd_answers_release(&answers);
	loaded_close(&loaded);
	for (unsigned i = 0; i < 2; i++) {
		ask_in(bytes[i] - 1.0, &loaded, &answers);
		for (uint32_t a = 0; a < answers.n; a++) {
			const struct psd_answer *answer = &answers.all[a];

			if (strcmp(answer->question, "memory") != 0 && strcmp(answer->question, "notes") != 0)
				cr_expect(i == 0 && !strstr(answer->sentence.bytes, "Ring"), "%u: %s", i,
					  answer->sentence.bytes);
		}
		const struct psd_answer *left_out = answer_with(&answers, "Left out of answers, since a worker ");
		cr_expect_eq(left_out->values[0].number, bytes[0], "%s", left_out->sentence.bytes);
		cr_expect(strstr(left_out->sentence.bytes, "Ring on 1 to 8 nodes"), "%s", left_out->sentence.bytes);
		if (i == 0) {
			cr_expect_str_eq(answer_with(&answers, " is best: ")->system, "Shards");
			cr_expect_str_eq(answer_with(&answers, "The cheapest cluster ")->system, "Shards");
		} else {
			answer_with(&answers, " No system fits, so there is no answer to: efficiency, ");
		}
		psd_answers_release(&answers);
		loaded_close(&loaded);
	}
}

/* A question that also lacks a key needs it first. */
Test(ask, questions_without_fitting_systems_name_what_they_lack)
{
	struct loaded loaded;
	struct psd_answers answers;

	loaded_open(&loaded, LARGE_IN("1MB"));
	ask_with(&(struct psd_ask_settings){.costed = &loaded.costed, .is_estimate = true, .n_at_once = 1}, &answers);
	cr_expect_str_eq(answer_with(&answers, "Left out: ")->sentence.bytes,
			 "Left out: best (needs several systems), break-even (needs several systems), hours (needs "
			 "`job.samples`), clusters (needs `job.samples`, and `job.within` or `job.budget`), failures "
			 "(needs `job.samples` and `job.mtbf`).");
	answer_with(&answers, " No system fits, so there is no answer to: efficiency, knee, bandwidth, bucket, runs.");
	psd_answers_release(&answers);
	loaded_close(&loaded);
}

/* Two of the systems have few enough. */
Test(ask, simulations_of_too_many_events_are_told)
{
	const struct run made = run_program("psd-sim", "ask --question best --set most_events=300 " QUICK,
					    "| tr '\\n' ' ' | tr -s ' '");

	cr_expect(strstr(made.text, " and 2 simulations (sim-flow) confirmed. 2 more would need more events than "
				    "`most_events`: answers have estimates instead. "),
		  "%s", made.text);
	free(made.text);
}

/* Where links slow down, a table and answers have the same note. */
Test(ask, slow_links_are_noted_in_flow_fidelity)
{
	static const char *const arguments[] = {"", "ask --question best "};
	char text[256];

	for (unsigned i = 0; i < 4; i++) {
		snprintf(text, sizeof(text),
			 "%s--set fidelity=%s --set cluster.nodes=6 scenarios/examples/straggler.yaml",
			 arguments[i % 2], i < 2 ? "flow" : "message");
		const struct run made = run_program("psd-sim", text, "2>&1 | tr '\\n' ' ' | tr -s ' '");

		cr_expect_eq(strstr(made.text, "note: flow fidelity takes a ring as one flow for each neighbour, and "
					       "was off by up to 30 % where links slow down or have other traffic: "
					       "use fidelity: message ") != NULL,
			     i < 2, "%s", made.text);
		free(made.text);
	}
}

/* The best of the listed sizes on all 8 nodes. */
Test(ask, the_best_bucket_is_that_of_the_sweep)
{
	struct loaded loaded;
	struct psd_answers answers;
	struct psd_report report;
	struct psd_error err = {.text = ""};
	int signal_number;
	unsigned best = 0;

	loaded_open(&loaded, LARGE_IN("16GB"));
	const struct psd_sweep sweep = {.costed = &loaded.costed, .is_estimate = true, .n_at_once = 1};

	cr_assert_eq(psd_sweep_run(&sweep, &report, &signal_number, &err), PSD_OK, "%s", err.text);
	for (unsigned p = 1; p < 3; p++)
		best = report.results[p].images_per_sec > report.results[best].images_per_sec ? p : best;
	ask_with(
		&(struct psd_ask_settings){
			.costed = &loaded.costed, .question = "bucket", .is_estimate = true, .n_at_once = 1},
		&answers);
	cr_assert_geq(answers.n, 1);
	cr_expect_eq(answers.all[0].values[0].number, report.results[best].point.fuse_bytes, "%s",
		     answers.all[0].sentence.bytes);
	cr_expect_eq(answers.all[0].values[0].nodes, 8);
	cr_expect_float_eq(answers.all[0].values[0].samples_per_sec / report.results[best].images_per_sec, 1.0, 1e-9);
	psd_answers_release(&answers);
	psd_report_release(&report);
	loaded_close(&loaded);
}

/* With the price of the link, both cheapest clusters cost the same. */
Test(ask, the_price_of_a_link_makes_clusters_equal)
{
	struct loaded loaded;
	struct psd_answers answers;
	const struct psd_answer *price = NULL;
	double costs[2], worker_hours = 0.0;
	unsigned n = 0;

	loaded_open(&loaded, "model: {graph: scenarios/models/resnet50.yaml, batch_per_worker: 32}\n"
			     "compute: {device: v100-sxm2}\n"
			     "cluster: {stack: none, network: {bandwidth: 1Gbps, latency: 15us}}\n"
			     "systems: [{name: Ring, sync: ring, fuse: 4MiB}]\n"
			     "sweep: {nodes: [1, 16], bandwidth: [2Gbps, 20Gbps]}\n"
			     "job: {samples: 1281167, epochs: 90, price: 3, within: 60h}\n");
	ask_with(
		&(struct psd_ask_settings){
			.costed = &loaded.costed, .question = "clusters", .is_estimate = true, .n_at_once = 1},
		&answers);
	for (uint32_t i = 0; i < answers.n; i++) {
		const struct psd_answer *answer = &answers.all[i];

		if (!strcmp(answer->question, "price of a link"))
			price = answer;
		else if (!strcmp(answer->question, "cheapest within the time")) {
			costs[n++] = value_named(answer, "cost");
			worker_hours = value_named(answer, "hours") * answer->values[0].nodes;
		}
	}
	cr_assert(price && n == 2);
	cr_expect_float_eq(costs[1] + value_named(price, "price") * worker_hours, costs[0], 1e-6 * costs[0], "%s",
			   price->sentence.bytes);
	cr_expect_gt(value_named(price, "price"), 0.0);
	psd_answers_release(&answers);
	loaded_close(&loaded);
}

Test(ask, equal_systems_have_no_lead)
{
	struct loaded loaded;
	struct psd_answers answers;

	loaded_open(&loaded, "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 100}\n"
			     "compute: {device: k20}\n"
			     "cluster: {nodes: 4, network: {bandwidth: 10Gbps, latency: 50us}, stack: none}\n"
			     "systems: [{name: A, sync: ps}, {name: B, sync: ps}]\n");
	ask_with(
		&(struct psd_ask_settings){
			.costed = &loaded.costed, .question = "runs", .is_estimate = true, .n_at_once = 1},
		&answers);
	cr_expect_not_null(
		strstr(answers.all[0].sentence.bytes,
		       ": A and B are predicted equal, and errors of 10 % are assumed, so that either may be faster."),
		"%s", answers.all[0].sentence.bytes);
	psd_answers_release(&answers);
	loaded_close(&loaded);
}

/* Ends of an error of 10 % are 1 / 1.1 and 1 / 0.9 of the cost. */
Test(ask, a_stack_without_a_band_has_none_in_answers)
{
	static const char *const stacks[] = {"none", "nccl-rdma"};

	for (unsigned i = 0; i < 2; i++) {
		const bool has_band = psd_stack_record(psd_stack_find(stacks[i])).has_band;
		struct loaded loaded;
		struct psd_answers answers;

		cr_assert_eq(has_band, i == 1);
		loaded_print(&loaded,
			     "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 100}\n"
			     "compute: {device: k20}\n"
			     "cluster: {network: {bandwidth: 10Gbps, latency: 50us}, stack: %s}\n"
			     "systems: [{name: A, sync: ps}, {name: B, sync: ring}]\n"
			     "sweep: {nodes: [2, 4]}\n"
			     "job: {samples: 1000000, price: 1}\n",
			     stacks[i]);
		ask_with(
			&(struct psd_ask_settings){
				.costed = &loaded.costed, .question = "runs", .is_estimate = true, .n_at_once = 1},
			&answers);
		const char *lead = answers.all[0].sentence.bytes, *cost = answers.all[1].sentence.bytes;

		cr_expect_eq(strstr(lead, ", and its band begins ") != NULL, has_band, "%s", lead);
		cr_expect_eq(strstr(lead, ", and errors of 10 % are assumed") != NULL, !has_band, "%s", lead);
		cr_expect_eq(strstr(cost, ": by the prediction's band the job may cost ") != NULL, has_band, "%s",
			     cost);
		cr_expect_eq(strstr(cost, ": with errors of 10 % the job may cost ") != NULL, !has_band, "%s", cost);
		cr_expect_str_eq(answers.all[0].values[1].name, has_band ? "band" : "assumed error");
		if (!has_band)
			cr_expect_float_eq(value_named(&answers.all[1], "most") / value_named(&answers.all[1], "least"),
					   1.1 / 0.9, 1e-9);
		psd_answers_release(&answers);
		loaded_close(&loaded);
	}
}

Test(ask, a_large_lead_has_no_exponent)
{
	const struct run made =
		run_program("psd-sim", "ask --estimate --question runs scenarios/examples/mixed-nodes.yaml", "");

	cr_expect(strstr(made.text, "predicted 1") && !strstr(made.text, "e+02"), "%s", made.text);
	free(made.text);
}

Test(ask, a_scenario_without_a_job_has_no_hours)
{
	const struct run made = run_program("psd-sim", "ask --estimate scenarios/compression.yaml", "");

	cr_assert_eq(made.exit_status, 0, "%s", made.text);
	cr_expect_null(strstr(made.text, " takes at "), "%s", made.text);
	cr_expect_not_null(strstr(made.text, "needs "), "%s", made.text);
	free(made.text);
}

#define TWO_SYSTEMS "{name: A, sync: ps}, {name: B, sync: ring}"

Test(ask, a_question_names_what_the_scenario_lacks)
{
	static const struct {
		const char *question, *nodes, *systems, *others, *lacked;
	} rows[] = {
		{"efficiency", "4, groups: [{nodes: 4}]", TWO_SYSTEMS, "", "a cluster without `groups`"},
		{"knee", "4, groups: [{nodes: 4}]", TWO_SYSTEMS, "", "a cluster without `groups`"},
		{"knee", "2", TWO_SYSTEMS, "sweep: {nodes: 1}", "several nodes"},
		{"bandwidth", "2", TWO_SYSTEMS, "sweep: {nodes: 1}", "several nodes"},
		{"bandwidth", "2, groups: [{nodes: 2, network: {bandwidth: 1Gbps}}]", TWO_SYSTEMS, "",
		 "a group of nodes without its own `bandwidth`"},
		{"bucket", "4", TWO_SYSTEMS, "", "a sweep such as `--sweep fuse=4MiB,25MiB`"},
		{"best", "4", "{name: A, sync: ps}", "", "several systems"},
		{"break-even", "4", "{name: A, sync: ps}", "", "several systems"},
		{"break-even", "4, groups: [{nodes: 4, network: {bandwidth: 1Gbps}}]", TWO_SYSTEMS, "",
		 "a group of nodes without its own `bandwidth`"},
		{"break-even", "2", TWO_SYSTEMS, "sweep: {nodes: 1}", "several nodes"},
		{"hours", "4", TWO_SYSTEMS, "job: {memory: 1GB}", "`job.samples`"},
		{"clusters", "4", TWO_SYSTEMS, "", "`job.samples`, and `job.within` or `job.budget`"},
		{"clusters", "4", TWO_SYSTEMS, "job: {samples: 1}", "`job.within` or `job.budget`"},
		{"memory", "4", TWO_SYSTEMS, "job: {samples: 1}", "`job.memory`"},
		{"failures", "4", TWO_SYSTEMS, "", "`job.samples` and `job.mtbf`"},
		{"failures", "4", TWO_SYSTEMS, "job: {samples: 1}", "`job.mtbf`"},
		{"failures", "4", TWO_SYSTEMS, "job: {mtbf: 1h, checkpoint: 1s}", "`job.samples`"},
		{"runs", "2", TWO_SYSTEMS, "sweep: {nodes: 1}", "a sweep or cluster of several nodes"},
		{"runs", "1", TWO_SYSTEMS, "", "a sweep or cluster of several nodes"},
		/* each worker computes for years */
		{"runs", "2", "{name: A, sync: ps, compute: {samples_per_sec: 0.001}}", "",
		 "several systems, `job.samples`, or workers that wait for communication"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct psd_answers answers = {.all = NULL};
		struct psd_error err = {.text = ""};
		struct loaded loaded;
		int signal_number;
		char expected[256];

		loaded_print(&loaded,
			     "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 100}\n"
			     "compute: {device: k20}\n"
			     "cluster: {network: {bandwidth: 10Gbps, latency: 50us}, stack: none, nodes: %s}\n"
			     "systems: [%s]\n%s\n",
			     rows[i].nodes, rows[i].systems, rows[i].others);
		const struct psd_ask_settings settings = {
			.costed = &loaded.costed, .question = rows[i].question, .is_estimate = true, .n_at_once = 1};

		snprintf(expected, sizeof(expected), "%s: '--question' is '%s', which needs %s", loaded.scenario.path,
			 rows[i].question, rows[i].lacked);
		cr_expect_eq(psd_ask_all(&settings, &answers, &signal_number, &err), PSD_EINVAL, "%s", expected);
		cr_expect_str_eq(err.text, expected);
		psd_answers_release(&answers);
		loaded_close(&loaded);
	}
}

/* A single system, no job: only efficiency, knee, bandwidth and runs have answers. */
Test(ask, answers_that_are_left_out_are_named)
{
	const struct run made = run_program("psd-sim", "ask --estimate --system DDP scenarios/examples/first.yaml",
					    "| tr '\\n' ' ' | tr -s ' '");

	cr_expect(strstr(made.text,
			 " Left out: bucket (needs a sweep such as `--sweep fuse=4MiB,25MiB`), best (needs several "
			 "systems), break-even (needs several systems), hours (needs `job.samples`), clusters (needs "
			 "`job.samples`, and `job.within` or `job.budget`), memory (needs `job.memory`), failures "
			 "(needs `job.samples` and `job.mtbf`). Efficiency: "),
		  "%s", made.text);
	free(made.text);
}

Test(ask, misuse_is_one_line)
{
	expect_one_line("psd-sim", "ask --estimate --question hours scenarios/examples/first.yaml", 2,
			"scenarios/examples/first.yaml: '--question' is 'hours', which needs `job.samples`");
	expect_one_line("psd-sim",
			"ask --question bucket --sweep fuse=4MiB,25MiB --system Servers scenarios/examples/first.yaml",
			2, "'--question' is 'bucket', which needs a system with a size in `fuse`");

	expect_one_line("psd-sim", "ask --csv " JOB, 2, "'--csv' is an option of 'psd-sim', not of 'psd-sim ask'");
	expect_one_line("psd-sim", "ask --system Nobody " JOB, 2, "has no system 'Nobody'");
	expect_one_line("psd-sim", "ask --question cost " JOB, 2,
			"'--question' is 'cost', must be one of: efficiency, ");
}
