/* The training job of a scenario and Caffe's solver: the values read, the defaults, and the exact text and place of
 * every error. */
#define _POSIX_C_SOURCE 200809L
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "engine/scenario/scenario.h"
#include "engine/scenario/train.h"
#include "tests/scratch_file.h"
#include "tests/test_with.h"

/* Nine lines, so that the text of a test begins at line 10. */
static const char base[] = "model: {graph: m.yaml, batch_per_worker: 32}\n"
			   "compute: {device: titan-x}\n"
			   "cluster:\n"
			   "  nodes: 8\n"
			   "  network: {bandwidth: 40Gbps, latency: 30us}\n"
			   "systems:\n"
			   "  - {name: A, sync: ps}\n"
			   "title: a test\n"
			   "train:\n";

static enum psd_status parse(struct psd_scenario *scenario, const char *train, const char *const settings[],
			     struct psd_error *err)
{
	char text[4096];
	const int length = snprintf(text, sizeof(text), "%s%s\n", base, train);

	return psd_scenario_parse(scenario, "dir/a.yaml", text, (size_t)length, settings, err);
}

static struct psd_scenario read_train(const char *train)
{
	struct psd_scenario scenario;
	struct psd_error err = {.text = ""};

	cr_assert_eq(parse(&scenario, train, NULL, &err), PSD_OK, "%s", err.text);
	cr_assert(scenario.has_train);
	return scenario;
}

static void refuses(const char *train, const char *expected)
{
	struct psd_scenario scenario;
	struct psd_error err = {.text = "accepted"};

	cr_expect_eq(parse(&scenario, train, NULL, &err), PSD_EINVAL, "%s", train);
	cr_expect_str_eq(err.text, expected);
}

/* ---- the section ---- */

Test(train, a_scenario_need_not_train)
{
	char text[sizeof(base)];
	struct psd_scenario scenario;
	struct psd_error err = {.text = ""};

	memcpy(text, base, sizeof(base));
	cr_assert_eq(psd_scenario_parse(&scenario, "a.yaml", text, strlen(base) - strlen("train:\n"), NULL, &err),
		     PSD_OK, "%s", err.text);
	cr_expect_not(scenario.has_train);
	psd_scenario_release(&scenario);
}

SCENARIO_TEST(train, the_shortest_job_gets_the_documented_defaults,
	      read_train("  iterations: 20\n  learning_rate: {base: 0.01}"))
{
	const struct psd_train *train = &scenario.train;

	cr_expect_eq(train->iterations, 20);
	cr_expect_eq(train->epochs, 0);
	cr_expect_eq(train->data.kind, PSD_DATA_SYNTHETIC);
	cr_expect_null(train->data.path);
	cr_expect_null(train->data.test_path);
	cr_expect_eq(train->data.training_samples, 4096);
	cr_expect_eq(train->data.test_samples, 512);
	cr_expect_eq(train->data.noise_ratio, 0.5);
	cr_expect(train->data.is_mirrored);
	cr_expect_eq(train->optimiser.momentum, 0);
	cr_expect_eq(train->optimiser.weight_decay, 0);
	cr_expect_not(train->optimiser.is_nesterov);
	cr_expect_eq(train->optimiser.kind, PSD_OPTIMISER_SGD);
	cr_expect_eq(train->rate.warmup_start_ratio, 0);
	cr_expect_eq(train->rate.for_batch, 0);
	cr_expect_eq(train->rate.policy, PSD_RATE_FIXED);
	cr_expect_eq(train->rate.base, 0.01);
	cr_expect_eq(train->rate.warmup_iterations, 0);
	cr_expect_null(train->solver_path);
	cr_expect_eq(train->test_every_epochs, 1);
	cr_expect_eq(train->threads, 1);
	cr_expect(train->is_deterministic);
	cr_expect_eq(train->seed, scenario.seed);
	cr_expect_not(train->has_seed);
}

SCENARIO_TEST(train, every_key_arrives_in_its_place,
	      read_train("  data: {kind: packed, path: /data/train.psdpack, test: val.psdpack, mirror: false}\n"
			 "  epochs: 90\n"
			 "  optimiser: {kind: lars, trust: 0.002, momentum: 0.9, nesterov: true, weight_decay: 5e-4}\n"
			 "  learning_rate: {policy: multistep, base: 0.1, gamma: 0.2, steps: [100, 250, 251], "
			 "warmup_iterations: 5, warmup_start: 0.25, for_batch: 256}\n"
			 "  test_every: 0\n"
			 "  threads: 2\n"
			 "  deterministic: false\n"
			 "seed: 7"))
{
	const struct psd_train *train = &scenario.train;

	cr_expect_eq(train->iterations, 0);
	cr_expect_eq(train->epochs, 90);
	cr_expect_eq(train->data.kind, PSD_DATA_PACKED);
	cr_expect_str_eq(train->data.path, "/data/train.psdpack");
	cr_expect_str_eq(train->data.test_path, "dir/val.psdpack");
	cr_expect_not(train->data.is_mirrored);
	cr_expect_eq(train->optimiser.momentum, 0.9);
	cr_expect_eq(train->optimiser.weight_decay, 5e-4);
	cr_expect(train->optimiser.is_nesterov);
	cr_expect_eq(train->rate.policy, PSD_RATE_MULTISTEP);
	cr_expect_eq(train->rate.gamma, 0.2);
	cr_expect_eq(train->rate.n_steps, 3);
	cr_expect_eq(train->rate.steps_at[0], 100);
	cr_expect_eq(train->rate.steps_at[2], 251);
	cr_expect_eq(train->rate.warmup_iterations, 5);
	cr_expect_eq(train->rate.warmup_start_ratio, 0.25);
	cr_expect_eq(train->rate.for_batch, 256);
	cr_expect_eq(train->optimiser.kind, PSD_OPTIMISER_LARS);
	cr_expect_eq(train->optimiser.trust_ratio, 0.002);
	cr_expect_eq(train->test_every_epochs, 0);
	cr_expect_eq(train->threads, 2);
	cr_expect_not(train->is_deterministic);
	cr_expect_eq(train->seed, 7);
	cr_expect(train->has_seed);
}

Test(train, adamw_has_the_numbers_of_its_authors_unless_told_otherwise)
{
	struct psd_scenario scenario =
		read_train("  epochs: 1\n  learning_rate: {base: 1}\n  optimiser: {kind: adamw}");
	const struct psd_optimiser *optimiser = &scenario.train.optimiser;

	cr_expect_eq(optimiser->kind, PSD_OPTIMISER_ADAMW);
	cr_expect_eq(optimiser->beta1, 0.9);
	cr_expect_eq(optimiser->beta2, 0.999);
	cr_expect_eq(optimiser->epsilon, 1e-8);
	cr_expect_eq(optimiser->weight_decay, 0);
	cr_expect_eq(optimiser->momentum, 0);
	cr_expect_not(optimiser->is_nesterov);
	psd_scenario_release(&scenario);
	scenario = read_train("  epochs: 1\n  learning_rate: {base: 1}\n"
			      "  optimiser: {kind: adamw, beta1: 0, beta2: 0.95, epsilon: 1e-6, weight_decay: 0.1}");
	cr_expect_eq(optimiser->beta1, 0);
	cr_expect_eq(optimiser->beta2, 0.95);
	cr_expect_eq(optimiser->epsilon, 1e-6);
	cr_expect_eq(optimiser->weight_decay, 0.1);
	psd_scenario_release(&scenario);
}

SCENARIO_TEST(train, synthetic_data_can_be_sized,
	      read_train("  iterations: 20\n"
			 "  learning_rate: {base: 1}\n"
			 "  data: {kind: synthetic, training_samples: 100, test_samples: 0, noise: 150%}"))
{
	cr_expect_eq(scenario.train.data.training_samples, 100);
	cr_expect_eq(scenario.train.data.test_samples, 0);
	cr_expect_float_eq(scenario.train.data.noise_ratio, 1.5, 1e-12);
}

Test(train, texts_and_tokens_have_a_file_each_for_training_and_test)
{
	static const struct {
		const char *name;
		enum psd_data_kind kind;
	} kinds[] = {{"text", PSD_DATA_TEXT}, {"tokens", PSD_DATA_TOKENS}};

	for (unsigned i = 0; i < 2; i++) {
		struct psd_scenario scenario;
		char text[256];

		snprintf(text, sizeof(text),
			 "  epochs: 1\n  learning_rate: {base: 1}\n  data: {kind: %s, path: /a, test: b}",
			 kinds[i].name);
		scenario = read_train(text);
		cr_expect_eq(scenario.train.data.kind, kinds[i].kind);
		cr_expect_str_eq(scenario.train.data.path, "/a");
		cr_expect_str_eq(scenario.train.data.test_path, "dir/b");
		psd_scenario_release(&scenario);
	}
}

SCENARIO_TEST(train, paths_count_from_the_scenario,
	      read_train("  data: {kind: idx, path: ../mnist}\n  epochs: 1\n  solver: solver.prototxt"))
{
	cr_expect_str_eq(scenario.train.data.path, "dir/../mnist");
	cr_expect_str_eq(scenario.train.solver_path, "dir/solver.prototxt");
}

Test(train, every_policy_has_its_numbers)
{
	static const char *const rates[] = {"base: 0.1",
					    "policy: step, base: 0.1, gamma: 0.5, step: 30",
					    "policy: multistep, base: 0.1, gamma: 0.5, steps: [30]",
					    "policy: inv, base: 0.1, gamma: 0.5, power: 0.75",
					    "policy: exp, base: 0.1, gamma: 0.5",
					    "policy: poly, base: 0.1, power: 0.75, max_iterations: 30",
					    "policy: cosine, base: 0.1, lowest: 0.01, max_iterations: 30"};

	for (unsigned policy = PSD_RATE_FIXED; policy <= PSD_RATE_COSINE; policy++) {
		struct psd_scenario scenario;
		const struct psd_learning_rate *rate = &scenario.train.rate;
		char text[256];

		snprintf(text, sizeof(text), "  epochs: 1\n  learning_rate: {%s}", rates[policy]);
		scenario = read_train(text);
		cr_expect_eq((unsigned)rate->policy, policy);
		cr_expect_eq(rate->gamma, strstr(rates[policy], "gamma") ? 0.5 : 0);
		cr_expect_eq(rate->power, strstr(rates[policy], "power") ? 0.75 : 0);
		cr_expect_eq(rate->step_iterations, policy == PSD_RATE_STEP ? 30 : 0);
		cr_expect_eq(rate->max_iterations, strstr(rates[policy], "max") ? 30 : 0);
		cr_expect_eq(rate->lowest, policy == PSD_RATE_COSINE ? 0.01 : 0);
		psd_scenario_release(&scenario);
	}
}

Test(train, poly_ends_with_the_job_unless_told_otherwise)
{
	struct psd_scenario scenario =
		read_train("  iterations: 20\n  learning_rate: {policy: poly, base: 1, power: 2}");

	cr_expect_eq(scenario.train.rate.max_iterations, 20);
	psd_scenario_release(&scenario);
	scenario = read_train("  epochs: 3\n  learning_rate: {policy: poly, base: 1, power: 2}");
	cr_expect_eq(scenario.train.rate.max_iterations, 0);
	psd_scenario_release(&scenario);
}

Test(train, cosine_ends_with_the_job_unless_told_otherwise)
{
	struct psd_scenario scenario = read_train("  iterations: 20\n  learning_rate: {policy: cosine, base: 1}");

	cr_expect_eq(scenario.train.rate.max_iterations, 20);
	psd_scenario_release(&scenario);
	scenario = read_train("  iterations: 20\n  learning_rate: {policy: cosine, base: 1, lowest: 0.1, "
			      "max_iterations: 10}");
	cr_expect_eq(scenario.train.rate.max_iterations, 10);
	psd_scenario_release(&scenario);
	refuses("  iterations: 20\n  learning_rate: {policy: cosine, base: 1, max_iterations: 19}",
		"dir/a.yaml:11:60: 'max_iterations' is 19, must be 'iterations', 20, or more: the rate is 0 from there "
		"on");
	refuses("  iterations: 20\n  learning_rate: {policy: cosine, base: 1, lowest: 2}",
		"dir/a.yaml:11:52: 'lowest' is '2', must be at most 'base', 1");
	refuses("  iterations: 20\n  learning_rate: {policy: cosine, base: 1, warmup_iterations: 20}",
		"dir/a.yaml:11:63: 'warmup_iterations' is 20, must be less than 20, where the cosine ends");
}

Test(train, settings_reach_the_job)
{
	static const char *const settings[] = {"train.iterations=5", "train.learning_rate.base=0.5",
					       "train.data.noise=2", NULL};
	struct psd_scenario scenario;
	struct psd_error err = {.text = ""};

	cr_assert_eq(parse(&scenario, "  iterations: 20\n  learning_rate: {base: 1}", settings, &err), PSD_OK, "%s",
		     err.text);
	cr_expect_eq(scenario.train.iterations, 5);
	cr_expect_eq(scenario.train.rate.base, 0.5);
	cr_expect_eq(scenario.train.data.noise_ratio, 2);
	psd_scenario_release(&scenario);
}

/* ---- complaints ---- */

Test(train, wrong_keys_are_named)
{
	refuses("  iteration: 20", "dir/a.yaml:10:3: unknown key 'iteration' in 'train', did you mean 'iterations'?");
	refuses("  epochs: 1\n  data: {kind: idx, pth: x}",
		"dir/a.yaml:11:21: unknown key 'pth' in 'data', did you mean 'path'?");
	refuses("  epochs: 1\n  learning_rate: {base: 1}\n  optimiser: {moment: 0.9}",
		"dir/a.yaml:12:15: unknown key 'moment' in 'optimiser', did you mean 'momentum'?");
	refuses("  epochs: 1\n  learning_rate: {base: 1, gama: 2}",
		"dir/a.yaml:11:28: unknown key 'gama' in 'learning_rate', did you mean 'gamma'?");
	refuses("  learning_rate",
		"dir/a.yaml:10:3: 'train' is plain text, must be a mapping of keys: data, iterations, epochs, solver, "
		"optimiser, learning_rate, start, test_every, loss_scale, device, arithmetic, graphs, threads, "
		"readers, streams, deterministic, diverged, compare_every");
}

Test(train, missing_keys_are_named)
{
	refuses("  threads: 1", "dir/a.yaml:10:3: 'train' needs 'iterations' or 'epochs'");
	refuses("  epochs: 1", "dir/a.yaml:10:3: 'train' needs 'learning_rate' or 'solver'");
	refuses("  epochs: 1\n  learning_rate: {policy: fixed}", "dir/a.yaml:11:18: 'learning_rate' needs 'base'");
	refuses("  epochs: 1\n  data: {kind: idx}", "dir/a.yaml:11:9: 'data' needs 'path' where 'kind' is 'idx'");
	refuses("  epochs: 1\n  data: {kind: tokens, test: x}",
		"dir/a.yaml:11:9: 'data' needs 'path' where 'kind' is 'tokens'");
	refuses("  epochs: 1\n  learning_rate: {policy: step, base: 1, gamma: 0.1}",
		"dir/a.yaml:11:18: 'learning_rate' needs 'step' where 'policy' is 'step'");
	refuses("  epochs: 1\n  learning_rate: {policy: inv, base: 1, gamma: 0.1}",
		"dir/a.yaml:11:18: 'learning_rate' needs 'power' where 'policy' is 'inv'");
	refuses("  epochs: 1\n  learning_rate: {policy: multistep, base: 1, gamma: 0.1}",
		"dir/a.yaml:11:18: 'learning_rate' needs 'steps' where 'policy' is 'multistep'");
	refuses("  epochs: 1\n  learning_rate: {policy: exp, base: 1}",
		"dir/a.yaml:11:18: 'learning_rate' needs 'gamma' where 'policy' is 'exp'");
	refuses("  epochs: 1\n  learning_rate: {base: 1}\n  optimiser: {nesterov: true}",
		"dir/a.yaml:12:14: 'optimiser' needs 'momentum' where 'nesterov' is 'true'");
}

Test(train, a_key_that_takes_a_word_says_so)
{
	refuses("  epochs: 1\n  learning_rate: {base: 1}\n  readers: 0",
		"dir/a.yaml:12:12: 'readers' is '0', must be 'auto' or a whole number from 1 to 256");
	refuses("  epochs: 1\n  learning_rate: {base: 1}\n  loss_scale: static",
		"dir/a.yaml:12:15: 'loss_scale' is 'static', must be 'dynamic' or a number from 1e-06 to 1000000000");
}

Test(train, keys_without_effect_are_refused)
{
	refuses("  epochs: 1\n  iterations: 1",
		"dir/a.yaml:10:3: 'epochs' cannot be used together with 'iterations', must be one of them");
	refuses("  epochs: 1\n  data: {path: x}", "dir/a.yaml:11:10: 'path' has no effect where 'kind' is 'synthetic', "
						  "only with cifar10, idx, packed, text and tokens");
	refuses("  epochs: 1\n  data: {kind: cifar10, path: x, noise: 1}",
		"dir/a.yaml:11:34: 'noise' has no effect where 'kind' is 'cifar10', only with synthetic");
	refuses("  epochs: 1\n  data: {kind: cifar10, path: x, mirror: true}",
		"dir/a.yaml:11:34: 'mirror' has no effect where 'kind' is 'cifar10', only with packed");
	refuses("  epochs: 1\n  data: {kind: idx, path: x, test: y}",
		"dir/a.yaml:11:30: 'test' has no effect where 'kind' is 'idx', only with packed, text and tokens");
	refuses("  epochs: 1\n  data: {kind: text, path: x, mirror: true}",
		"dir/a.yaml:11:31: 'mirror' has no effect where 'kind' is 'text', only with packed");
	refuses("  epochs: 1\n  learning_rate: {base: 1, gamma: 2}",
		"dir/a.yaml:11:28: 'gamma' has no effect where 'policy' is 'fixed', only with step, multistep, inv and "
		"exp");
	refuses("  epochs: 1\n  learning_rate: {policy: multistep, base: 1, gamma: 2, step: 3, steps: [4]}",
		"dir/a.yaml:11:57: 'step' has no effect where 'policy' is 'multistep', only with step");
	refuses("  epochs: 1\n  learning_rate: {base: 1}\n  optimiser: {kind: adamw, momentum: 0.9}",
		"dir/a.yaml:12:28: 'momentum' has no effect where 'kind' is 'adamw', only with sgd and lars");
	refuses("  epochs: 1\n  learning_rate: {base: 1}\n  optimiser: {kind: adamw, nesterov: true}",
		"dir/a.yaml:12:28: 'nesterov' has no effect where 'kind' is 'adamw', only with sgd and lars");
	refuses("  epochs: 1\n  learning_rate: {base: 1}\n  optimiser: {beta1: 0.9}",
		"dir/a.yaml:12:15: 'beta1' has no effect where 'kind' is 'sgd', only with adamw");
	refuses("  epochs: 1\n  learning_rate: {base: 1}\n  optimiser: {kind: lars, epsilon: 1e-8}",
		"dir/a.yaml:12:27: 'epsilon' has no effect where 'kind' is 'lars', only with adamw");
	refuses("  solver: s.prototxt\n  learning_rate: {base: 1}",
		"dir/a.yaml:11:3: 'learning_rate' cannot be used together with 'solver', must be one of them");
	refuses("  solver: s.prototxt\n  optimiser: {momentum: 0.9}",
		"dir/a.yaml:11:3: 'optimiser' cannot be used together with 'solver', must be one of them");
}

Test(train, values_are_checked)
{
	refuses("  iterations: 0",
		"dir/a.yaml:10:15: 'iterations' is '0', must be a whole number from 1 to 1000000000");
	refuses("  epochs: 1\n  threads: 0",
		"dir/a.yaml:11:12: 'threads' is '0', must be a whole number from 1 to 1024");
	refuses("  epochs: 1\n  deterministic: yes",
		"dir/a.yaml:11:18: 'deterministic' is 'yes', must be true or false");
	refuses("  epochs: 1\n  data: {kind: mnist}",
		"dir/a.yaml:11:16: 'kind' is 'mnist', must be one of: synthetic, cifar10, idx, packed, text, tokens");
	refuses("  epochs: 1\n  data: {kind: packed, path: x, mirror: 1}",
		"dir/a.yaml:11:41: 'mirror' is '1', must be true or false");
	refuses("  epochs: 1\n  learning_rate: {base: 0}",
		"dir/a.yaml:11:25: 'base' is '0', must be a number from 1e-09 to 1000000");
	refuses("  epochs: 1\n  learning_rate: {policy: sigmoid, base: 1}",
		"dir/a.yaml:11:27: 'policy' is 'sigmoid', must be one of: fixed, step, multistep, inv, exp, poly, "
		"cosine");
	refuses("  epochs: 1\n  learning_rate: {base: 1}\n  optimiser: {kind: adam}",
		"dir/a.yaml:12:21: 'kind' is 'adam', must be one of: sgd, lars, adamw; did you mean adamw?");
	refuses("  epochs: 1\n  learning_rate: {base: 1}\n  optimiser: {momentum: 1}",
		"dir/a.yaml:12:25: 'momentum' is '1', must be a number from 0 to 0.9999");
	refuses("  epochs: 1\n  learning_rate: {base: 1}\n  optimiser: {kind: adamw, beta1: 1}",
		"dir/a.yaml:12:35: 'beta1' is '1', must be a number from 0 to 0.999999");
	refuses("  epochs: 1\n  learning_rate: {base: 1}\n  optimiser: {kind: adamw, beta2: 1}",
		"dir/a.yaml:12:35: 'beta2' is '1', must be a number from 0 to 0.999999");
	refuses("  epochs: 1\n  learning_rate: {base: 1}\n  optimiser: {kind: adamw, epsilon: 0}",
		"dir/a.yaml:12:37: 'epsilon' is '0', must be a number from 1e-30 to 1");
	refuses("  epochs: 1\n  learning_rate: {policy: multistep, base: 1, gamma: 2, steps: {a: 4}}",
		"dir/a.yaml:11:64: 'steps' is a mapping, must be a list such as [...]");
	refuses("  epochs: 1\n  learning_rate: {policy: multistep, base: 1, gamma: 2, steps: [4, 3]}",
		"dir/a.yaml:11:68: 'steps' has 3 after 4, must rise");
	refuses("  iterations: 20\n  learning_rate: {policy: poly, base: 1, power: 1, max_iterations: 19}",
		"dir/a.yaml:11:68: 'max_iterations' is 19, must be 'iterations', 20, or more: the rate is 0 from there "
		"on");
}

/* ---- Caffe's solver ---- */

/* Values that a scenario with `solver` and nothing else leaves to the solver. */
static const struct psd_train silent = {.seed = 1};

static struct psd_train read_solver(struct psd_train train, const char *text)
{
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_train_parse_solver(&train, "s.prototxt", text, strlen(text), &err), PSD_OK, "%s", err.text);
	return train;
}

static void solver_refuses(const char *text, const char *expected)
{
	struct psd_train train = silent;
	struct psd_error err = {.text = "accepted"};

	cr_expect_eq(psd_train_parse_solver(&train, "s.prototxt", text, strlen(text), &err), PSD_EINVAL, "%s", text);
	cr_expect_str_eq(err.text, expected);
	cr_expect_eq(train.rate.base, 0, "a refused solver leaves no trace");
}

/* As Caffe ships it for LeNet (examples/mnist/lenet_solver.prototxt), comments shortened. */
static const char lenet[] = "# The train/test net protocol buffer definition\n"
			    "net: \"examples/mnist/lenet_train_test.prototxt\"\n"
			    "test_iter: 100\n"
			    "test_interval: 500\n"
			    "base_lr: 0.01\n"
			    "momentum: 0.9\n"
			    "weight_decay: 0.0005\n"
			    "lr_policy: \"inv\"\n"
			    "gamma: 0.0001\n"
			    "power: 0.75\n"
			    "display: 100\n"
			    "max_iter: 10000\n"
			    "snapshot: 5000\n"
			    "snapshot_prefix: \"examples/mnist/lenet\"\n"
			    "solver_mode: GPU\n";

Test(train, a_solver_as_caffe_ships_it_is_read)
{
	const struct psd_train train = read_solver(silent, lenet);

	cr_expect_eq(train.iterations, 10000);
	cr_expect_eq(train.snapshot_iterations, 5000);
	cr_expect_eq(train.optimiser.momentum, 0.9);
	cr_expect_eq(train.optimiser.weight_decay, 0.0005);
	cr_expect_not(train.optimiser.is_nesterov);
	cr_expect_eq(train.rate.policy, PSD_RATE_INV);
	cr_expect_eq(train.rate.base, 0.01);
	cr_expect_eq(train.rate.gamma, 0.0001);
	cr_expect_eq(train.rate.power, 0.75);
	cr_expect_eq(train.seed, 1);
}

Test(train, a_solver_is_read_from_its_file)
{
	struct scratch_file file = scratch_file_write(lenet);
	struct psd_train train = silent;
	struct psd_error err = {.text = ""};

	train.solver_path = file.path;
	cr_assert_eq(psd_train_load_solver(&train, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(train.iterations, 10000);
	remove(file.path);
	cr_expect_eq(psd_train_load_solver(&train, &err), PSD_EFILE);
	train.solver_path = NULL;
	train.rate.base = 0.25;
	cr_assert_eq(psd_train_load_solver(&train, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(train.rate.base, 0.25, "without a solver the scenario's own values stay");
}

Test(train, a_solver_gives_steps_types_and_seeds)
{
	const struct psd_train train =
		read_solver(silent, "base_lr: 1 lr_policy: 'multistep' gamma: 0.5 max_iter: 9 type: 'Nesterov'\n"
				    "stepvalue: 3 stepvalue: 5 random_seed: 4 regularization_type: 'L2'");

	cr_expect_eq(train.rate.policy, PSD_RATE_MULTISTEP);
	cr_expect_eq(train.rate.n_steps, 2);
	cr_expect_eq(train.rate.steps_at[0], 3);
	cr_expect_eq(train.rate.steps_at[1], 5);
	cr_expect(train.optimiser.is_nesterov);
	cr_expect_eq(train.optimiser.momentum, 0);
	cr_expect_eq(train.seed, 4);
}

Test(train, the_scenario_overrides_its_solver)
{
	static const char text[] = "base_lr: 1 lr_policy: 'poly' power: 1 max_iter: 9 random_seed: 4";
	const struct psd_train by_iterations =
		read_solver((struct psd_train){.iterations = 5, .seed = 7, .has_seed = true}, text);
	const struct psd_train by_epochs = read_solver((struct psd_train){.epochs = 2}, text);

	cr_expect_eq(by_iterations.iterations, 5);
	cr_expect_eq(by_iterations.seed, 7);
	cr_expect_eq(by_iterations.rate.max_iterations, 9, "the rate stays the solver's");
	cr_expect_eq(by_epochs.iterations, 0);
	cr_expect_eq(by_epochs.epochs, 2);
}

Test(train, a_bad_solver_is_refused_where_it_is_bad)
{
	solver_refuses(
		"base_lr: 1\nlr_policy: 'fixed'\nmax_iter: 1\nclip_gradients: 35\n",
		"s.prototxt:4:1: unknown key 'clip_gradients' in 'solver', known are base_lr, lr_policy, gamma, power, "
		"stepsize, stepvalue, max_iter, momentum, weight_decay, type, random_seed, iter_size, "
		"regularization_type, net, train_net, test_net, test_iter, test_interval, test_initialization, "
		"test_compute_loss, display, average_loss, debug_info, snapshot, snapshot_prefix, snapshot_diff, "
		"snapshot_format, snapshot_after_train, solver_mode, device_id, layer_wise_reduce");
	solver_refuses(
		"base_lr: 1\nlr_policy: 'sigmoid'\n",
		"s.prototxt:2:12: 'lr_policy' is 'sigmoid', must be one of: fixed, step, multistep, inv, exp, poly");
	solver_refuses("base_lr: 1\nlr_policy: 'fixed'\ntype: 'AdaDelta'",
		       "s.prototxt:3:7: 'type' is 'AdaDelta', must be one of: SGD, Nesterov");
	solver_refuses("base_lr: 1\nbase_lr: 2\n", "s.prototxt:2:1: 'base_lr' is already in line 1");
	solver_refuses("base_lr: fast", "s.prototxt:1:10: 'base_lr' is 'fast', must be a number from 1e-09 to 1000000");
	solver_refuses("base_lr: 1\nlr_policy: 'multistep' gamma: 1\nstepvalue: 5\nstepvalue: 5",
		       "s.prototxt:4:12: 'stepvalue' is '5', must be a whole number from 6 to 1000000000");
	solver_refuses("base_lr: 1 lr_policy: 'fixed'\niter_size: 0",
		       "s.prototxt:2:12: 'iter_size' is '0', must be a whole number from 1 to 1000");
	solver_refuses("base_lr: 1 lr_policy: 'fixed'\nregularization_type: 'L1'",
		       "s.prototxt:2:22: 'regularization_type' is 'L1', must be one of: L2");
	solver_refuses("base_lr: 1 lr_policy: 'fixed' max_iter: 1\nrandom_seed: -1",
		       "s.prototxt:2:14: 'random_seed' is '-1', must be a whole number from 0 to 4294967295");
	solver_refuses("base_lr: 1 }", "s.prototxt:1:12: found '}', must be the name of a field");
}

Test(train, a_solver_that_misses_something_says_what)
{
	solver_refuses("", "s.prototxt: 'solver' needs 'base_lr'");
	solver_refuses("base_lr: 1", "s.prototxt: 'solver' needs 'lr_policy'");
	solver_refuses("base_lr: 1 lr_policy: 'step' gamma: 1",
		       "s.prototxt: 'solver' needs 'stepsize' where 'lr_policy' is 'step'");
	solver_refuses("base_lr: 1 lr_policy: 'step' stepsize: 1",
		       "s.prototxt: 'solver' needs 'gamma' where 'lr_policy' is 'step'");
	solver_refuses("base_lr: 1 lr_policy: 'poly'",
		       "s.prototxt: 'solver' needs 'power' where 'lr_policy' is 'poly'");
	solver_refuses("base_lr: 1 lr_policy: 'multistep' gamma: 1",
		       "s.prototxt: 'solver' needs 'stepvalue' where 'lr_policy' is 'multistep'");
	solver_refuses("base_lr: 1 lr_policy: 'fixed'",
		       "s.prototxt: 'solver' needs 'max_iter', or 'train' needs 'iterations' or 'epochs'");
}

Test(train, poly_in_a_solver_without_its_end_ends_with_the_job)
{
	static const char text[] = "base_lr: 1 lr_policy: 'poly' power: 1";
	const struct psd_train by_iterations = read_solver((struct psd_train){.iterations = 5}, text);
	const struct psd_train by_epochs = read_solver((struct psd_train){.epochs = 2}, text);

	cr_expect_eq(by_iterations.rate.max_iterations, 5);
	cr_expect_eq(by_epochs.rate.max_iterations, 0);
}

Test(train, a_solver_has_room_for_its_steps)
{
	char text[4096] = "base_lr: 1 lr_policy: 'multistep' gamma: 1 max_iter: 1\n";
	const size_t head = strlen(text);
	size_t length = head;

	for (int i = 1; i <= PSD_MAX_RATE_STEPS; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "stepvalue: %d\n", i);
	cr_expect_eq(read_solver(silent, text).rate.n_steps, PSD_MAX_RATE_STEPS);
	snprintf(text + length, sizeof(text) - length, "stepvalue: 1000");
	solver_refuses(text, "s.prototxt:66:1: 'stepvalue' is given more than 64 times");
}

/* ---- printed and read again ---- */

static struct psd_text print(const struct psd_scenario *scenario)
{
	struct psd_text text = {.bytes = NULL};

	psd_scenario_add_text(&text, scenario);
	cr_assert_not(text.is_out_of_memory);
	return text;
}

/* Paths are given as absolute ones, which hold from everywhere. */
static void check_reads_back(const struct psd_scenario *scenario)
{
	struct psd_text first = print(scenario), second;
	struct psd_scenario again;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_scenario_parse(&again, "again.yaml", first.bytes, first.length, NULL, &err), PSD_OK,
		     "%s in\n%s", err.text, first.bytes);
	second = print(&again);
	cr_expect_str_eq(second.bytes, first.bytes);
	cr_expect_eq(again.train.rate.policy, scenario->train.rate.policy);
	cr_expect_eq(again.train.rate.base, scenario->train.rate.base);
	cr_expect_eq(again.train.seed, scenario->train.seed);
	psd_text_release(&first);
	psd_text_release(&second);
	psd_scenario_release(&again);
}

Test(train, every_section_reads_back_as_it_is_printed)
{
	static const char *const sections[] = {
		"  epochs: 3\n  learning_rate: {base: 0.1}",
		"  iterations: 7\n  learning_rate: {policy: step, base: 0.1, gamma: 0.3333333333333333, step: 5}\n  "
		"threads: 2",
		"  iterations: 7\n  learning_rate: {policy: multistep, base: 0.1, gamma: 0.5, steps: [2, 4, 6]}",
		"  iterations: 7\n  learning_rate: {policy: multistep, base: 0.1, gamma: 0.5, steps: 2}",
		"  iterations: 7\n  learning_rate: {policy: inv, base: 0.1, gamma: 0.5, power: 0.75}\n  deterministic: "
		"false",
		"  iterations: 7\n  learning_rate: {policy: exp, base: 0.1, gamma: 0.5, warmup_iterations: 3}\n  "
		"test_every: 0",
		"  iterations: 7\n  learning_rate: {policy: poly, base: 0.1, power: 2}",
		"  epochs: 1\n  learning_rate: {base: 1}\n  optimiser: {momentum: 0.9, nesterov: true, weight_decay: "
		"1e-4}",
		"  epochs: 1\n  learning_rate: {base: 1}\n  data: {kind: packed, path: /a b, test: /c, mirror: false}",
		"  epochs: 1\n  learning_rate: {base: 1}\n  data: {kind: cifar10, path: /cifar}",
		"  epochs: 1\n  learning_rate: {base: 1}\n  data: {kind: text, path: /input.txt}",
		"  epochs: 1\n  learning_rate: {base: 1}\n  data: {kind: tokens, path: /train.bin, test: /val.bin}",
		"  epochs: 1\n  learning_rate: {base: 1}\n  data: {training_samples: 9, test_samples: 0, noise: 12.5%}",
		"  epochs: 1\n  solver: /solver.prototxt",
	};

	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		struct psd_scenario scenario = read_train(sections[i]);

		check_reads_back(&scenario);
		psd_scenario_release(&scenario);
	}
}

Test(train, a_scenario_prints_what_its_solver_says)
{
	struct scratch_file file =
		scratch_file_write("base_lr: 0.25\nlr_policy: \"fixed\"\nmax_iter: 12\nrandom_seed: 77\n");
	char section[64];
	struct psd_error err = {.text = ""};
	struct psd_scenario scenario;
	struct psd_text text;

	snprintf(section, sizeof(section), "  solver: %s", file.path);
	scenario = read_train(section);
	cr_assert_eq(psd_scenario_load_solver(&scenario, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(scenario.seed, 77);
	cr_expect_null(scenario.train.solver_path);
	text = print(&scenario);
	cr_expect_not_null(strstr(text.bytes, "\nseed: 77\n"), "%s", text.bytes);
	cr_expect_not_null(strstr(text.bytes, "\n  iterations: 12\n"), "%s", text.bytes);
	cr_expect_not_null(strstr(text.bytes, "\n  learning_rate: {policy: fixed, base: 0.25}\n"), "%s", text.bytes);
	check_reads_back(&scenario);
	psd_text_release(&text);
	psd_scenario_release(&scenario);
	remove(file.path);
}

Test(train, batches_of_an_iteration_are_those_of_the_solver)
{
	struct scratch_file file =
		scratch_file_write("base_lr: 0.25\nlr_policy: \"fixed\"\nmax_iter: 12\niter_size: 3\n");
	char section[64];

	snprintf(section, sizeof(section), "  solver: %s", file.path);
	for (unsigned own = 0; own <= 3; own++) {
		struct psd_scenario scenario = read_train(section);
		struct psd_system *system = &scenario.systems[0];
		struct psd_error err = {.text = ""};
		enum psd_status status;

		system->accumulate = own;
		status = psd_scenario_load_solver(&scenario, &err);
		if (own == 0 || own == 3) {
			cr_expect_eq(status, PSD_OK, "%s", err.text);
			cr_expect_eq(psd_system_micro_batches(system), 3);
		} else {
			cr_expect_eq(status, PSD_EINVAL);
			cr_expect_not_null(strstr(err.text, "must be 'iter_size' of the solver, 3"), "%s", err.text);
		}
		psd_scenario_release(&scenario);
	}
	remove(file.path);
}

SCENARIO_TEST(train, a_missing_solver_leaves_the_scenario_as_it_was, read_train("  solver: /no/such.prototxt"))
{
	struct psd_error err = {.text = ""};

	cr_expect_eq(psd_scenario_load_solver(&scenario, &err), PSD_EFILE);
	cr_expect_not_null(strstr(err.text, ": 'solver' is '/no/such.prototxt': /no/such.prototxt: cannot be opened: "),
			   "%s", err.text);
	cr_expect_str_eq(scenario.train.solver_path, "/no/such.prototxt");
}
