/* Caffe's solver.prototxt as a training job. Refuses what would change the arithmetic in a way that the real executor
 * does not follow: other solvers than SGD and Nesterov, sigmoid rates, L1 decay, clipping, accumulation over several
 * passes. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/document/text_format.h"
#include "engine/model/prototxt_parts.h"
#include "engine/scenario/train.h"

struct solver {
	const struct psd_node *root;
	struct psd_train *train;
	struct psd_error *err;
};

static enum psd_status check_keys(const struct solver *solver)
{
	static const char *const known[] = {
		"base_lr", "lr_policy", "gamma", "power", "stepsize", "stepvalue", "max_iter", "momentum",
		"weight_decay", "type", "random_seed", "iter_size", "regularization_type",
		/* what is printed, tested and saved, and where the network is: the scenario's business */
		"net", "train_net", "test_net", "test_iter", "test_interval", "test_initialization",
		"test_compute_loss", "display", "average_loss", "debug_info", "snapshot", "snapshot_prefix",
		"snapshot_diff", "snapshot_format", "snapshot_after_train", "solver_mode", "device_id",
		"layer_wise_reduce", NULL};

	return psd_node_check_keys(solver->root, "solver", known, solver->err);
}

static enum psd_status missing(const struct solver *solver, const char *key, const char *policy)
{
	const struct psd_place at = {.path = solver->root->at.path};

	if (policy)
		return psd_error_set(solver->err, PSD_EINVAL, at, "'solver' needs '%s' where 'lr_policy' is '%s'", key,
				     policy);
	return psd_error_set(solver->err, PSD_EINVAL, at, "'solver' needs '%s'", key);
}

static enum psd_status read_number(const struct solver *solver, const char *key, double lowest, double highest,
				   double *number, bool *was_there)
{
	const struct psd_node *field;
	enum psd_status status = psd_caffe_single(solver->root, key, &field, solver->err);

	*was_there = field != NULL;
	return status || !field ? status : psd_node_number(field, lowest, highest, number, solver->err);
}

static enum psd_status read_count(const struct solver *solver, const char *key, uint64_t lowest, uint64_t highest,
				  uint64_t *count, bool *was_there)
{
	const struct psd_node *field;
	enum psd_status status = psd_caffe_single(solver->root, key, &field, solver->err);

	*was_there = field != NULL;
	return status || !field ? status : psd_node_count(field, lowest, highest, count, solver->err);
}

static enum psd_status read_choice(const struct solver *solver, const char *key, const char *const names[],
				   unsigned *index, bool *was_there)
{
	const struct psd_node *field;
	enum psd_status status = psd_caffe_single(solver->root, key, &field, solver->err);

	*was_there = field != NULL;
	return status || !field ? status : psd_node_choice(field, names, index, solver->err);
}

/* stepvalue, repeated. */
static enum psd_status read_steps(const struct solver *solver)
{
	struct psd_learning_rate *rate = &solver->train->rate;

	for (const struct psd_node *field = solver->root->first; field; field = field->next) {
		const uint64_t before = rate->n_steps ? rate->steps_at[rate->n_steps - 1] : 0;
		enum psd_status status;

		if (strcmp(field->key, "stepvalue") != 0)
			continue;
		if (rate->n_steps == PSD_MAX_RATE_STEPS)
			return psd_error_set(solver->err, PSD_EINVAL, field->key_at,
					     "'stepvalue' is given more than %d times", PSD_MAX_RATE_STEPS);
		status = psd_node_count(field, before + 1, PSD_MAX_ITERATIONS, &rate->steps_at[rate->n_steps++],
					solver->err);
		if (status)
			return status;
	}
	return rate->n_steps ? PSD_OK : missing(solver, "stepvalue", "multistep");
}

/* What a policy needs of gamma, power, stepsize. As in Caffe, fields of other policies may stand there without effect.
 */
static enum psd_status read_policy_numbers(const struct solver *solver)
{
	struct psd_learning_rate *rate = &solver->train->rate;
	const enum psd_rate_policy policy = rate->policy;
	const char *name = psd_rate_policy_names[policy];
	bool has_gamma, has_power, has_step;
	enum psd_status status = read_number(solver, "gamma", 0, 1e6, &rate->gamma, &has_gamma);

	if (!status)
		status = read_number(solver, "power", 0, 100, &rate->power, &has_power);
	if (!status)
		status = read_count(solver, "stepsize", 1, PSD_MAX_ITERATIONS, &rate->step_iterations, &has_step);
	if (status)
		return status;
	if (!has_gamma && policy != PSD_RATE_FIXED && policy != PSD_RATE_POLY)
		return missing(solver, "gamma", name);
	if (!has_power && (policy == PSD_RATE_INV || policy == PSD_RATE_POLY))
		return missing(solver, "power", name);
	if (!has_step && policy == PSD_RATE_STEP)
		return missing(solver, "stepsize", name);
	return policy == PSD_RATE_MULTISTEP ? read_steps(solver) : PSD_OK;
}

static enum psd_status read_rate(const struct solver *solver)
{
	struct psd_learning_rate *rate = &solver->train->rate;
	unsigned policy;
	bool was_there;
	enum psd_status status = read_number(solver, "base_lr", 1e-9, 1e6, &rate->base, &was_there);

	if (!status && !was_there)
		return missing(solver, "base_lr", NULL);
	if (!status)
		status = read_choice(solver, "lr_policy", psd_rate_policy_names, &policy, &was_there);
	if (!status && !was_there)
		return missing(solver, "lr_policy", NULL);
	if (status)
		return status;
	rate->policy = policy;
	return read_policy_numbers(solver);
}

static enum psd_status read_optimiser(const struct solver *solver)
{
	static const char *const types[] = {"SGD", "Nesterov", NULL};
	static const char *const regularizations[] = {"L2", NULL};
	struct psd_optimiser *optimiser = &solver->train->optimiser;
	unsigned type = 0, regularization = 0;
	uint64_t passes;
	bool was_there;
	enum psd_status status = read_number(solver, "momentum", 0, 0.9999, &optimiser->momentum, &was_there);

	if (!status)
		status = read_number(solver, "weight_decay", 0, 1, &optimiser->weight_decay, &was_there);
	if (!status)
		status = read_choice(solver, "type", types, &type, &was_there);
	if (!status)
		status = read_choice(solver, "regularization_type", regularizations, &regularization, &was_there);
	if (!status)
		status = read_count(solver, "iter_size", 1, 1, &passes, &was_there);
	optimiser->is_nesterov = type == 1;
	return status;
}

/* The job's length and seed, unless the scenario has said them. */
static enum psd_status read_length(const struct solver *solver)
{
	struct psd_train *train = solver->train;
	uint64_t iterations = 0, seed = train->seed;
	bool has_iterations, has_seed;
	enum psd_status status = read_count(solver, "max_iter", 1, PSD_MAX_ITERATIONS, &iterations, &has_iterations);

	if (!status)
		status = read_count(solver, "random_seed", 0, UINT32_MAX, &seed, &has_seed);
	if (status)
		return status;
	if (!train->has_seed)
		train->seed = seed;
	if (!has_iterations && !train->iterations && !train->epochs)
		return psd_error_set(solver->err, PSD_EINVAL, (struct psd_place){.path = solver->root->at.path},
				     "'solver' needs 'max_iter', or 'train' needs 'iterations' or 'epochs'");
	train->rate.max_iterations = has_iterations ? iterations : train->iterations;
	if (!train->iterations && !train->epochs)
		train->iterations = iterations;
	if (train->rate.policy == PSD_RATE_POLY && train->rate.max_iterations == 0)
		return missing(solver, "max_iter", "poly");
	return PSD_OK;
}

enum psd_status psd_train_parse_solver(struct psd_train *train, const char *path, const char *text, size_t length,
				       struct psd_error *err)
{
	struct psd_train fresh = *train;
	struct psd_arena arena = {0};
	struct solver solver = {.train = &fresh, .err = err};
	enum psd_status status = psd_text_format_parse(&solver.root, &arena, path, text, length, err);

	fresh.optimiser = (struct psd_optimiser){0};
	fresh.rate = (struct psd_learning_rate){.policy = PSD_RATE_FIXED};
	if (!status)
		status = check_keys(&solver);
	if (!status)
		status = read_rate(&solver);
	if (!status)
		status = read_optimiser(&solver);
	if (!status)
		status = read_length(&solver);
	if (!status)
		*train = fresh;
	psd_arena_release(&arena);
	return status;
}

enum psd_status psd_train_load_solver(struct psd_train *train, struct psd_error *err)
{
	enum psd_status status;
	size_t length;
	char *text;

	if (!train->solver_path)
		return PSD_OK;
	status = psd_file_read(&text, &length, train->solver_path, err);
	if (status)
		return status;
	status = psd_train_parse_solver(train, train->solver_path, text, length, err);
	free(text);
	return status;
}
