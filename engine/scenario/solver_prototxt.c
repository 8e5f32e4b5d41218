/* Caffe's solver.prototxt as a training job. Refuses what would change the arithmetic in a way that the real executor
 * does not follow: other solvers than SGD and Nesterov, sigmoid rates, L1 decay, clipping. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/document/schema.h"
#include "engine/document/text_format.h"
#include "engine/model/prototxt_parts.h"
#include "engine/scenario/train.h"

/* Values of the fields. */
struct values {
	struct psd_train train;
	uint64_t iterations; /* 0: not given */
	uint64_t seed;
	uint64_t snapshot_iterations;
	const char *regularization;
};

static const char *const types[] = {"SGD", "Nesterov", NULL};
static const char *const regularizations[] = {"L2", NULL};

#define FIELD(text, kind, member) .name = (text), .type = PSD_KEY_##kind, .offset = offsetof(struct values, member)
#define OTHER(text)                                                                                                    \
	{                                                                                                              \
		.name = (text), .type = PSD_KEY_OTHER                                                                  \
	}
/* As in Caffe, fields of other policies may stand there without effect. */
#define NEEDED(policies) .when = {"lr_policy", ~0u, policies}
#define OF(policy)	 (1u << PSD_RATE_##policy)

/* Caffe's part of psd_rate_policy_names. */
static const char *const policy_names[] = {"fixed", "step", "multistep", "inv", "exp", "poly", NULL};

static const struct psd_key fields[] = {
	{FIELD("base_lr", NUMBER, train.rate.base), .lowest = 1e-9, .highest = 1e6, .is_required = true},
	{FIELD("lr_policy", CHOICE, train.rate.policy), .names = policy_names, .is_required = true},
	{FIELD("gamma", NUMBER, train.rate.gamma), .highest = 1e6,
	 NEEDED(OF(STEP) | OF(MULTISTEP) | OF(INV) | OF(EXP))},
	{FIELD("power", NUMBER, train.rate.power), .highest = 100, NEEDED(OF(INV) | OF(POLY))},
	{FIELD("stepsize", COUNT, train.rate.step_iterations), .lowest = 1, .highest = PSD_MAX_ITERATIONS,
	 NEEDED(OF(STEP))},
	{.name = "stepvalue", .type = PSD_KEY_OTHER, NEEDED(OF(MULTISTEP))},
	{FIELD("max_iter", COUNT, iterations), .lowest = 1, .highest = PSD_MAX_ITERATIONS},
	{FIELD("momentum", NUMBER, train.optimiser.momentum), .highest = 0.9999},
	{FIELD("weight_decay", NUMBER, train.optimiser.weight_decay), .highest = 1},
	{FIELD("type", FLAG, train.optimiser.is_nesterov), .names = types},
	{FIELD("random_seed", COUNT, seed), .highest = UINT32_MAX},
	{FIELD("iter_size", UNSIGNED, train.solver_batches), .lowest = 1, .highest = PSD_MOST_MICRO_BATCHES},
	{FIELD("regularization_type", NAME, regularization), .names = regularizations},
	/* fields about output, tests, checkpoints and the network, which the scenario decides */
	OTHER("net"),
	OTHER("train_net"),
	OTHER("test_net"),
	OTHER("test_iter"),
	OTHER("test_interval"),
	OTHER("test_initialization"),
	OTHER("test_compute_loss"),
	OTHER("display"),
	OTHER("average_loss"),
	OTHER("debug_info"),
	{FIELD("snapshot", COUNT, snapshot_iterations), .highest = PSD_MAX_ITERATIONS},
	OTHER("snapshot_prefix"),
	OTHER("snapshot_diff"),
	OTHER("snapshot_format"),
	OTHER("snapshot_after_train"),
	OTHER("solver_mode"),
	OTHER("device_id"),
	OTHER("layer_wise_reduce"),
	{.name = NULL},
};

static const struct psd_section section = {.tables = {fields}};

/* Reads each stepvalue. */
static enum psd_status read_steps(struct psd_learning_rate *rate, const struct psd_node *root, struct psd_error *err)
{
	for (const struct psd_node *field = root->first; field; field = field->next) {
		const uint64_t before = rate->n_steps ? rate->steps_at[rate->n_steps - 1] : 0;

		if (strcmp(field->key, "stepvalue") != 0)
			continue;
		if (rate->n_steps == PSD_MAX_RATE_STEPS)
			return psd_error_set(err, PSD_EINVAL, field->key_at, "'stepvalue' is given more than %d times",
					     PSD_MAX_RATE_STEPS);
		PSD_TRY(psd_node_count(field, before + 1, PSD_MAX_ITERATIONS, &rate->steps_at[rate->n_steps++], err));
	}
	return PSD_OK;
}

static enum psd_status read_fields(struct values *values, const struct psd_node *root, struct psd_error *err)
{
	const struct psd_schema_reader reader = {.base = values, .err = err};
	const struct psd_node *field;

	for (const struct psd_key *key = fields; key->name; key++)
		if (key->type != PSD_KEY_OTHER)
			PSD_TRY(psd_caffe_single(root, key->name, &field, err));
	PSD_TRY(psd_schema_read(&reader, &(struct psd_key){.name = "solver", .section = &section}, root));
	if (values->snapshot_iterations) {
		values->train.snapshot_iterations = values->snapshot_iterations;
		values->train.snapshot_at = psd_node_child(root, "snapshot")->key_at;
		values->train.snapshot_at.path = values->train.solver_path; /* the document's does not last */
	}
	if (values->train.rate.policy != PSD_RATE_MULTISTEP)
		return PSD_OK;
	return read_steps(&values->train.rate, root, err);
}

/* The job's length and seed, unless the scenario has said them. */
static enum psd_status settle_length(const struct values *values, struct psd_train *train, struct psd_place at,
				     struct psd_error *err)
{
	if (!train->has_seed)
		train->seed = values->seed;
	if (!values->iterations && !train->iterations && !train->epochs)
		return psd_error_set(err, PSD_EINVAL, at,
				     "'solver' needs 'max_iter', or 'train' needs 'iterations' or 'epochs'");
	train->rate.max_iterations = values->iterations ? values->iterations : train->iterations;
	if (!train->iterations && !train->epochs)
		train->iterations = values->iterations;
	return PSD_OK;
}

enum psd_status psd_train_parse_solver(struct psd_train *train, const char *path, const char *text, size_t length,
				       struct psd_error *err)
{
	struct values values = {.train = *train, .seed = train->seed};
	struct psd_arena arena = {0};
	const struct psd_node *root;
	enum psd_status status = psd_text_format_parse(&root, &arena, path, text, length, err);

	values.train.optimiser = (struct psd_optimiser){0};
	values.train.rate = (struct psd_learning_rate){.policy = PSD_RATE_FIXED};
	values.train.solver_batches = 1;
	if (!status) {
		struct psd_node whole = *root; /* a missing field has no line */

		whole.at = (struct psd_place){.path = root->at.path};
		status = read_fields(&values, &whole, err);
		if (!status)
			status = settle_length(&values, &values.train, whole.at, err);
	}
	if (!status)
		*train = values.train;
	psd_arena_release(&arena);
	return status;
}

enum psd_status psd_train_load_solver(struct psd_train *train, struct psd_error *err)
{
	size_t length;
	char *text;

	if (!train->solver_path)
		return PSD_OK;
	PSD_TRY(psd_file_read(&text, &length, train->solver_path, err));
	const enum psd_status status = psd_train_parse_solver(train, train->solver_path, text, length, err);
	free(text);
	return status;
}
