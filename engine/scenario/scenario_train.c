/* `train` of a scenario file: the job itself, which psd-run carries out and psd-sim checks. Refuses keys that the
 * chosen kind of data or policy would not heed, and to look whether the files are there. */
#include <inttypes.h>
#include <stddef.h>

#include "engine/document/fields.h"
#include "engine/scenario/scenario_parts.h"

const char *const psd_data_kind_names[] = {"synthetic", "cifar10", "idx", "packed", NULL};
const char *const psd_rate_policy_names[] = {"fixed", "step", "multistep", "inv", "exp", "poly", NULL};
static const char *const optimiser_names[] = {"sgd", NULL};

#define TRAIN(name, type, member) .key = (name), .kind = PSD_FIELD_##type, .offset = offsetof(struct psd_train, member)
#define DATA(name, type, member)                                                                                       \
	.key = (name), .kind = PSD_FIELD_##type, .offset = offsetof(struct psd_data_source, member)
#define OPTIMISER(name, type, member)                                                                                  \
	.key = (name), .kind = PSD_FIELD_##type, .offset = offsetof(struct optimiser_section, member)
#define RATE(name, type, member)                                                                                       \
	.key = (name), .kind = PSD_FIELD_##type, .offset = offsetof(struct psd_learning_rate, member)

static const struct psd_field train_fields[] = {
	{.key = "data"},
	{TRAIN("iterations", COUNT, iterations), .lowest = 1, .highest = PSD_MAX_ITERATIONS},
	{TRAIN("epochs", COUNT, epochs), .lowest = 1, .highest = 1e6},
	{.key = "optimiser"},
	{.key = "learning_rate"},
	{TRAIN("solver", TEXT, solver_path)},
	{TRAIN("test_every", COUNT, test_every_epochs), .highest = 1e6},
	{TRAIN("threads", UNSIGNED, threads), .lowest = 1, .highest = 1024},
	{TRAIN("streams", UNSIGNED, streams), .lowest = 1, .highest = 64},
	{.key = "deterministic"},
	{.key = NULL},
};

static const struct psd_field data_fields[] = {
	{DATA("kind", CHOICE, kind), .names = psd_data_kind_names},
	{DATA("path", TEXT, path)},
	{DATA("test", TEXT, test_path)},
	{DATA("training_samples", COUNT, training_samples), .lowest = 1, .highest = PSD_MAX_SYNTHETIC_SAMPLES},
	{DATA("test_samples", COUNT, test_samples), .highest = PSD_MAX_SYNTHETIC_SAMPLES},
	{DATA("noise", RATIO, noise_ratio), .highest = 100},
	{.key = "mirror"},
	{.key = NULL},
};

struct optimiser_section {
	unsigned kind; /* there is one so far */
	double momentum;
	double weight_decay;
};

static const struct psd_field optimiser_fields[] = {
	{OPTIMISER("kind", CHOICE, kind), .names = optimiser_names},
	{OPTIMISER("momentum", NUMBER, momentum), .highest = 0.9999},
	{.key = "nesterov"},
	{OPTIMISER("weight_decay", NUMBER, weight_decay), .highest = 1},
	{.key = NULL},
};

static const struct psd_field rate_fields[] = {
	{RATE("policy", CHOICE, policy), .names = psd_rate_policy_names},
	{RATE("base", NUMBER, base), .is_required = true, .lowest = 1e-9, .highest = 1e6},
	{RATE("gamma", NUMBER, gamma), .highest = 1e6},
	{RATE("power", NUMBER, power), .highest = 100},
	{RATE("step", COUNT, step_iterations), .lowest = 1, .highest = PSD_MAX_ITERATIONS},
	{.key = "steps"},
	{RATE("max_iterations", COUNT, max_iterations), .lowest = 1, .highest = PSD_MAX_ITERATIONS},
	{RATE("warmup_iterations", COUNT, warmup_iterations), .lowest = 1, .highest = PSD_MAX_ITERATIONS},
	{.key = NULL},
};

/* Which choices heed a key, and whether those cannot do without it. */
struct particular_key {
	const char *key;
	unsigned choices; /* a bit each */
	bool is_needed;
	const char *heeded_by;
};

#define BIT(choice) (1u << PSD_##choice)

static const struct particular_key data_keys[] = {
	{"path", BIT(DATA_CIFAR10) | BIT(DATA_IDX) | BIT(DATA_PACKED), true, "cifar10, idx and packed"},
	{"test", BIT(DATA_PACKED), false, "packed"},
	{"training_samples", BIT(DATA_SYNTHETIC), false, "synthetic"},
	{"test_samples", BIT(DATA_SYNTHETIC), false, "synthetic"},
	{"noise", BIT(DATA_SYNTHETIC), false, "synthetic"},
	{"mirror", BIT(DATA_PACKED), false, "packed"},
	{.key = NULL},
};

static const struct particular_key rate_keys[] = {
	{"gamma", BIT(RATE_STEP) | BIT(RATE_MULTISTEP) | BIT(RATE_INV) | BIT(RATE_EXP), true,
	 "step, multistep, inv and exp"},
	{"power", BIT(RATE_INV) | BIT(RATE_POLY), true, "inv and poly"},
	{"step", BIT(RATE_STEP), true, "step"},
	{"steps", BIT(RATE_MULTISTEP), true, "multistep"},
	{"max_iterations", BIT(RATE_POLY), false, "poly"},
	{.key = NULL},
};

/* what: the mapping's name; chooser: the key in it whose value, number `choice` of names, decides which others have an
 * effect. */
static enum psd_status check_particular(const struct psd_node *mapping, const char *what,
					const struct particular_key *keys, const char *chooser, unsigned choice,
					const char *const names[], struct psd_error *err)
{
	for (; keys->key; keys++) {
		const struct psd_node *child = psd_node_child(mapping, keys->key);
		const bool is_heeded = keys->choices & 1u << choice;

		if (child && !is_heeded)
			return psd_error_set(err, PSD_EINVAL, child->key_at,
					     "'%s' has no effect where '%s' is '%s', only with %s", keys->key, chooser,
					     names[choice], keys->heeded_by);
		if (!child && is_heeded && keys->is_needed)
			return psd_error_set(err, PSD_EINVAL, mapping->at, "'%s' needs '%s' where '%s' is '%s'", what,
					     keys->key, chooser, names[choice]);
	}
	return PSD_OK;
}

static enum psd_status read_flag(const struct psd_node *mapping, const char *key, bool *flag, struct psd_error *err)
{
	const struct psd_node *node = psd_node_child(mapping, key);

	return node ? psd_node_bool(node, flag, err) : PSD_OK;
}

static enum psd_status read_data(const struct psd_scenario_reader *reader, const struct psd_node *mapping)
{
	struct psd_data_source *data = &reader->scenario->train.data;
	enum psd_status status;

	if (!mapping)
		return PSD_OK;
	status = psd_fields_read(data, mapping, "data", data_fields, reader->err);
	if (!status)
		status = check_particular(mapping, "data", data_keys, "kind", data->kind, psd_data_kind_names,
					  reader->err);
	if (!status)
		status = read_flag(mapping, "mirror", &data->is_mirrored, reader->err);
	if (!status && data->path)
		status = psd_scenario_join(reader, data->path, &data->path);
	if (!status && data->test_path)
		status = psd_scenario_join(reader, data->test_path, &data->test_path);
	return status;
}

static enum psd_status read_optimiser(struct psd_optimiser *optimiser, const struct psd_node *mapping,
				      struct psd_error *err)
{
	struct optimiser_section section = {.kind = 0};
	enum psd_status status;

	if (!mapping)
		return PSD_OK;
	status = psd_fields_read(&section, mapping, "optimiser", optimiser_fields, err);
	if (!status)
		status = read_flag(mapping, "nesterov", &optimiser->is_nesterov, err);
	if (!status && optimiser->is_nesterov && !psd_node_child(mapping, "momentum"))
		status = psd_error_set(err, PSD_EINVAL, mapping->at,
				       "'optimiser' needs 'momentum' where 'nesterov' is 'true'");
	optimiser->momentum = section.momentum;
	optimiser->weight_decay = section.weight_decay;
	return status;
}

static enum psd_status read_steps(struct psd_learning_rate *rate, const struct psd_node *list, struct psd_error *err)
{
	enum psd_status status = psd_fields_check_list(list, "steps", PSD_MAX_RATE_STEPS, err);

	for (const struct psd_node *entry = list->first; !status && entry; entry = entry->next) {
		const unsigned i = rate->n_steps++;

		status = psd_node_count(entry, 1, PSD_MAX_ITERATIONS, &rate->steps_at[i], err);
		if (!status && i > 0 && rate->steps_at[i] <= rate->steps_at[i - 1])
			status = psd_error_set(err, PSD_EINVAL, entry->at,
					       "'steps' has %" PRIu64 " after %" PRIu64 ", must rise",
					       rate->steps_at[i], rate->steps_at[i - 1]);
	}
	return status;
}

/* Where poly reaches 0: by default at the end of the job, never before it. */
static enum psd_status settle_end(struct psd_train *train, const struct psd_node *mapping, struct psd_error *err)
{
	const struct psd_node *end = psd_node_child(mapping, "max_iterations");

	if (train->rate.policy != PSD_RATE_POLY)
		return PSD_OK;
	if (!end && !train->iterations)
		return psd_error_set(err, PSD_EINVAL, mapping->at,
				     "'learning_rate' needs 'max_iterations' where 'policy' is 'poly', or 'train' "
				     "needs 'iterations'");
	if (end && train->rate.max_iterations < train->iterations)
		return psd_error_set(err, PSD_EINVAL, end->at,
				     "'max_iterations' is %" PRIu64 ", must be 'iterations', %" PRIu64
				     ", or more: the rate is 0 from there on",
				     train->rate.max_iterations, train->iterations);
	if (!end)
		train->rate.max_iterations = train->iterations;
	return PSD_OK;
}

static enum psd_status read_rate(struct psd_train *train, const struct psd_node *mapping, struct psd_error *err)
{
	struct psd_learning_rate *rate = &train->rate;
	enum psd_status status = psd_fields_read(rate, mapping, "learning_rate", rate_fields, err);

	if (!status)
		status = check_particular(mapping, "learning_rate", rate_keys, "policy", rate->policy,
					  psd_rate_policy_names, err);
	if (!status && rate->policy == PSD_RATE_MULTISTEP)
		status = read_steps(rate, psd_node_child(mapping, "steps"), err);
	return status ? status : settle_end(train, mapping, err);
}

static enum psd_status check_length(const struct psd_node *mapping, struct psd_error *err)
{
	const struct psd_node *epochs = psd_node_child(mapping, "epochs");
	const bool has_iterations = psd_node_child(mapping, "iterations");

	if (epochs && has_iterations)
		return psd_error_set(
			err, PSD_EINVAL, epochs->key_at,
			"'epochs' and 'iterations' cannot both say how long to train, must be one of them");
	if (!epochs && !has_iterations && !psd_node_child(mapping, "solver"))
		return psd_error_set(err, PSD_EINVAL, mapping->at, "'train' needs 'iterations' or 'epochs'");
	return PSD_OK;
}

/* Either a solver or our own keys, so that nobody wonders which of two rates holds. */
static enum psd_status read_solver(const struct psd_scenario_reader *reader, const struct psd_node *mapping)
{
	static const char *const replaced[] = {"optimiser", "learning_rate"};
	struct psd_train *train = &reader->scenario->train;

	for (unsigned i = 0; i < 2; i++) {
		const struct psd_node *child = psd_node_child(mapping, replaced[i]);

		if (child)
			return psd_error_set(reader->err, PSD_EINVAL, child->key_at,
					     "'%s' has no effect beside 'solver', whose file decides", replaced[i]);
	}
	return psd_scenario_join(reader, train->solver_path, &train->solver_path);
}

static enum psd_status read_method(const struct psd_scenario_reader *reader, const struct psd_node *mapping)
{
	struct psd_train *train = &reader->scenario->train;
	const struct psd_node *rate = psd_node_child(mapping, "learning_rate");
	enum psd_status status;

	if (train->solver_path)
		return read_solver(reader, mapping);
	if (!rate)
		return psd_error_set(reader->err, PSD_EINVAL, mapping->at, "'train' needs 'learning_rate' or 'solver'");
	status = read_optimiser(&train->optimiser, psd_node_child(mapping, "optimiser"), reader->err);
	return status ? status : read_rate(train, rate, reader->err);
}

enum psd_status psd_scenario_read_train(const struct psd_scenario_reader *reader)
{
	struct psd_scenario *scenario = reader->scenario;
	const struct psd_node *mapping = psd_node_child(reader->root, "train");
	enum psd_status status;

	scenario->train = (struct psd_train){
		.data = {.training_samples = 4096, .test_samples = 512, .noise_ratio = 0.5, .is_mirrored = true},
		.test_every_epochs = 1,
		.threads = 1,
		.streams = 1,
		.is_deterministic = true,
		.seed = scenario->seed,
		.has_seed = psd_node_child(reader->root, "seed"),
	};
	if (!mapping)
		return PSD_OK;
	scenario->has_train = true;
	status = psd_fields_read(&scenario->train, mapping, "train", train_fields, reader->err);
	if (!status)
		status = read_flag(mapping, "deterministic", &scenario->train.is_deterministic, reader->err);
	if (!status)
		status = check_length(mapping, reader->err);
	if (!status)
		status = read_data(reader, psd_node_child(mapping, "data"));
	return status ? status : read_method(reader, mapping);
}

enum psd_status psd_scenario_load_solver(struct psd_scenario *scenario, struct psd_error *err)
{
	const enum psd_status status = psd_train_load_solver(&scenario->train, err);

	if (status || !scenario->train.solver_path)
		return status;
	scenario->train.solver_path = NULL;
	scenario->seed = scenario->train.seed;
	return PSD_OK;
}
