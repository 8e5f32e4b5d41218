/* Answers of random scenarios, against exhaustive sweeps: of estimates in 50 scenarios, of simulations in some. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"
#include "engine/estimate/estimate.h"
#include "sim/ask/ask.h"
#include "sim/sweep/sweep.h"
#include "tests/cli_helper.h"
#include "tests/loaded_helper.h"

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

static double estimated_sec(const struct loaded *loaded, unsigned system, unsigned nodes, double bandwidth_bps)
{
	struct psd_point point = psd_scenario_point(&loaded->scenario, 0);
	struct psd_run_length length = psd_run_length_make(&loaded->scenario.systems[system], 0, 0.0);
	struct psd_outcome outcome;
	struct psd_error err = {.text = ""};
	struct psd_case made;

	point.nodes = nodes;
	point.workers_per_node = loaded->scenario.workers_per_node;
	point.workers = nodes * point.workers_per_node;
	point.bandwidth_bps = bandwidth_bps;
	cr_assert_eq(psd_case_make(&made, &loaded->costed, &loaded->scenario.systems[system], point, &err), PSD_OK,
		     "%s", err.text);
	cr_assert_eq(psd_estimate_time(&made.program, length, NULL, &outcome, &err), PSD_OK, "%s", err.text);
	psd_case_release(&made);
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

/* The first bandwidth with 90 %, in steps of 0.7 %. */
static void check_bandwidths(const struct loaded *loaded, const struct psd_answers *answers, uint64_t seed)
{
	for (unsigned s = 0; s < loaded->scenario.n_systems; s++) {
		const struct psd_answer *answer = find(answers, "bandwidth", loaded->scenario.systems[s].name, 0.0);
		double needed_bps = 1e8;

		while (needed_bps < 1e13 &&
		       efficiency(loaded, s, estimated_sec(loaded, s, most_nodes(loaded), needed_bps)) < 0.9)
			needed_bps *= 1.007;
		cr_assert_not_null(answer);
		cr_expect_eq(answer->values[0].is_beyond, needed_bps >= 1e13, "seed %u: %s", (unsigned)seed,
			     answer->sentence.bytes);
		if (needed_bps < 1e13)
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
	for (double bps = 1e8; bps < 0.99e13 && n < MOST_TURNS; before_bps = bps, bps *= 1.007) {
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

static void ask(const struct loaded *loaded, bool is_estimate, struct psd_answers *answers)
{
	const struct psd_ask_settings settings = {
		.costed = &loaded->costed, .is_estimate = is_estimate, .n_at_once = 2};
	struct psd_error err = {.text = ""};
	int signal_number;

	cr_assert_eq(psd_ask_all(&settings, answers, &signal_number, &err), PSD_OK, "%s", err.text);
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
		psd_answers_release(&answers);
		loaded_close(&loaded);
	}
}

Test(ask, answers_of_some_scenarios_are_those_of_exhaustive_sweeps)
{
	check_seeds(3, 2);  /* with many turns */
	check_seeds(12, 1); /* bandwidths that suffice */
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
	for (const char *at = json.text; (at = strstr(at, "\"sentence\":\"")); at++)
		n_rows++;
	cr_expect_gt(n_rows, 20);
	cr_expect_eq(n_rows, n_sentences);
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

Test(ask, a_scenario_without_a_job_has_no_hours)
{
	const struct run made = run_program("psd-sim", "ask --estimate scenarios/compression.yaml", "");

	cr_assert_eq(made.exit_status, 0, "%s", made.text);
	cr_expect_null(strstr(made.text, " takes at "), "%s", made.text);
	cr_expect_not_null(strstr(made.text, "needs "), "%s", made.text);
	free(made.text);
}

Test(ask, misuse_is_one_line)
{
	expect_one_line("psd-sim", "ask --csv " JOB, 2, "'--csv' is an option of 'psd-sim', not of 'psd-sim ask'");
	expect_one_line("psd-sim", "ask --system Nobody " JOB, 2, "has no system 'Nobody'");
}
