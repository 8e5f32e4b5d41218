/* `train` of a scenario file: the job itself, which psd-run carries out and psd-sim checks. Refuses to look whether the
 * files are there. */
#include <inttypes.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/base/inputs.h"
#include "engine/scenario/scenario_keys.h"
#include "engine/scenario/train.h"

static const char *const data_kind_names[] = {"synthetic", "cifar10", "idx", "packed", "text", "tokens", NULL};
const char *const psd_rate_policy_names[] = {"fixed", "step", "multistep", "inv", "exp", "poly", "cosine", NULL};
const char *const psd_layer_arithmetic_names[] = {"fp32", "tf32", "fp16", "bf16", NULL};
static const char *const divergence_names[] = {"stop", "continue", NULL};
static const char *const device_names[] = {"cpu", "cuda", "auto", NULL};
const char *const psd_optimiser_names[] = {"sgd", "lars", "adamw", NULL};

#define KEY(of, text, kind, member)   .name = (text), .type = PSD_KEY_##kind, .offset = offsetof(struct of, member)
#define DATA(text, kind, member)      KEY(psd_data_source, text, kind, member)
#define OPTIMISER(text, kind, member) KEY(psd_optimiser, text, kind, member)
#define RATE_OF(text, kind, member)   KEY(psd_learning_rate, text, kind, member)
#define TRAIN(text, kind, member)     KEY(psd_train, text, kind, member)

#define OF_DATA(kind) 1u << PSD_DATA_##kind
#define OF_PAIRS      (OF_DATA(PACKED) | OF_DATA(TEXT) | OF_DATA(TOKENS)) /* a file each for training and test */
#define OF_FILES      (OF_DATA(CIFAR10) | OF_DATA(IDX) | OF_PAIRS)

static const struct psd_key data_keys[] = {
	{DATA("kind", CHOICE, kind), .names = data_kind_names, .fallback = "synthetic",
	 .help = "source of samples. synthetic: generated from the seed, in patterns that a network can learn; "
		 "cifar10: CIFAR-10's binary files; idx: MNIST's files; packed: a file of psd-run pack; text: a file "
		 "in which each byte is a token; tokens: a file of 16-bit tokens, little-endian"},
	{DATA("path", PATH, path), .when = {"kind", OF_FILES, OF_FILES},
	 .help = "data set. With cifar10 and idx: the folder of its files; with packed, text and tokens: the file of "
		 "training samples"},
	{DATA("test", PATH, test_path), .when = {"kind", OF_PAIRS, 0}, .uses = PSD_BY_RUN,
	 .help = "file of test samples, of the same kind as the training samples. Default: no tests"},
	{DATA("training_samples", COUNT, training_samples), .lowest = 1, .highest = PSD_MAX_SYNTHETIC_SAMPLES,
	 .fallback = "4096", .when = {"kind", OF_DATA(SYNTHETIC), 0},
	 .help = "number of different training samples that are generated; one pass over them is an epoch"},
	{DATA("test_samples", COUNT, test_samples), .highest = PSD_MAX_SYNTHETIC_SAMPLES, .fallback = "512",
	 .when = {"kind", OF_DATA(SYNTHETIC), 0}, .help = "number of different test samples that are generated"},
	{DATA("noise", RATIO, noise_ratio), .highest = 100, .fallback = "0.5", .when = {"kind", OF_DATA(SYNTHETIC), 0},
	 .help = "images: standard deviation of the noise that is added to patterns with values from -1 to 1. Tokens: "
		 "probability that a token is random instead of the fixed successor of the previous token; values "
		 "above 1 count as 1"},
	{DATA("mirror", FLAG, is_mirrored), .fallback = "true", .when = {"kind", OF_DATA(PACKED), 0},
	 .help = "mirror training images left to right. Each image is mirrored with probability 1/2, drawn anew in "
		 "each epoch"},
	{.name = NULL},
};

const char *const psd_data_file_names[][PSD_DATA_FILES_MAX + 1] = {
	[PSD_DATA_SYNTHETIC] = {NULL},
	[PSD_DATA_CIFAR10] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
			      "data_batch_5.bin", "test_batch.bin"},
	[PSD_DATA_IDX] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
			  "t10k-labels-idx1-ubyte"},
	[PSD_DATA_PACKED] = {NULL},
	[PSD_DATA_TEXT] = {NULL},
	[PSD_DATA_TOKENS] = {NULL},
};

/* Size of the images in an IDX file: four numbers of 32 bits, the first number's byte comes first. */
static struct psd_shape read_idx_shape(const char *path)
{
	static const uint8_t magic[] = {0, 0, 8, 3}; /* bytes in three dimensions */
	uint8_t head[16];
	struct psd_error ignored;
	uint32_t sides[2] = {0};

	if (psd_file_read_part(head, sizeof(head), 0, path, &ignored) || memcmp(head, magic, sizeof(magic)) != 0)
		return (struct psd_shape){0};
	for (unsigned side = 0; side < 2; side++)
		for (unsigned byte = 0; byte < 4; byte++)
			sides[side] = sides[side] << 8 | head[8 + 4 * side + byte];
	return sides[0] && sides[1] ? (struct psd_shape){1, sides[0], sides[1]} : (struct psd_shape){0};
}

struct psd_shape psd_data_sample_shape(const struct psd_data_source *source)
{
	struct psd_text path = {.bytes = NULL};
	struct psd_shape shape = {0};

	if (source->kind == PSD_DATA_CIFAR10)
		return (struct psd_shape){3, 32, 32};
	if (source->kind != PSD_DATA_IDX || !source->path)
		return shape;
	psd_text_add(&path, "%s/%s", source->path, psd_data_file_names[PSD_DATA_IDX][0]);
	if (!path.is_out_of_memory)
		shape = read_idx_shape(path.bytes);
	psd_text_release(&path);
	return shape;
}

/* Notes the files in a folder of data as inputs, read or not; the schema has noted a data set of one file. */
static enum psd_status note_files(const struct psd_schema_reader *reader, void *base, const struct psd_node *mapping)
{
	const struct psd_data_source *source = base;

	(void)mapping;
	for (const char *const *name = psd_data_file_names[source->kind]; source->path && *name; name++) {
		struct psd_text path = {.bytes = NULL};

		psd_text_add(&path, "%s/%s", source->path, *name);
		if (path.is_out_of_memory)
			return psd_error_set(reader->err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
		psd_inputs_note(path.bytes);
		psd_text_release(&path);
	}
	return PSD_OK;
}

static const struct psd_section data = {.tables = {data_keys}, .check = note_files};

/* ---- optimiser ---- */

#define WITH_MOMENTUM (1u << PSD_OPTIMISER_SGD | 1u << PSD_OPTIMISER_LARS)

static const struct psd_key optimiser_keys[] = {
	{OPTIMISER("kind", CHOICE, kind), .names = psd_optimiser_names, .fallback = "sgd",
	 .help = "optimiser. sgd: stochastic gradient descent; lars: sgd with the rate of each tensor multiplied by "
		 "trust * norm(weight) / (norm(gradient) + weight_decay * norm(weight)); adamw: Adam with decoupled "
		 "weight decay"},
	{OPTIMISER("trust", NUMBER, trust_ratio), .lowest = 1e-9, .highest = 1, .fallback = "0.001",
	 .when = {"kind", 1u << PSD_OPTIMISER_LARS, 0}, .help = "constant trust in the formula of lars"},
	{OPTIMISER("momentum", NUMBER, momentum), .highest = 0.9999, .fallback = "0",
	 .when = {"kind", WITH_MOMENTUM, 0},
	 .help = "coefficient of momentum: factor by which the last update is multiplied before it is added to the "
		 "next one"},
	{OPTIMISER("nesterov", FLAG, is_nesterov), .fallback = "false", .when = {"kind", WITH_MOMENTUM, 0},
	 .help = "use Nesterov momentum; needs `train.optimiser.momentum`"},
	{OPTIMISER("beta1", NUMBER, beta1), .highest = 0.999999, .fallback = "0.9",
	 .when = {"kind", 1u << PSD_OPTIMISER_ADAMW, 0},
	 .help = "decay rate of the running mean of gradients, per iteration"},
	{OPTIMISER("beta2", NUMBER, beta2), .highest = 0.999999, .fallback = "0.999",
	 .when = {"kind", 1u << PSD_OPTIMISER_ADAMW, 0},
	 .help = "decay rate of the running mean of squared gradients, per iteration"},
	{OPTIMISER("epsilon", NUMBER, epsilon), .lowest = 1e-30, .highest = 1, .fallback = "0.00000001",
	 .when = {"kind", 1u << PSD_OPTIMISER_ADAMW, 0},
	 .help = "constant that is added to the root of the mean of squared gradients, so that no update divides by 0"},
	{OPTIMISER("weight_decay", NUMBER, weight_decay), .highest = 1, .fallback = "0",
	 .help = "coefficient of weight decay, which applies to all tensors, biases included"},
	{OPTIMISER("clip", NUMBER, most_norm), .lowest = 1e-9, .highest = 1e9,
	 .uses = PSD_BY_SIM | PSD_BY_REPLAY | PSD_BY_RUN | PSD_AGREED,
	 .help = "largest norm of all gradients, taken as one vector; a longer vector is scaled down to this norm. "
		 "Gradients are then applied by workers, not by servers, after the last one is summed. Not allowed "
		 "with sync adam, `systems.sparse`, `systems.local_sgd`, or with before as "
		 "`systems.compress.momentum`. Default: no limit"},
	{.name = NULL},
};

static enum psd_status check_optimiser(const struct psd_schema_reader *reader, void *base,
				       const struct psd_node *mapping)
{
	const struct psd_optimiser *optimiser = base;

	if (optimiser->is_nesterov && !psd_node_child(mapping, "momentum"))
		return psd_error_set(reader->err, PSD_EINVAL, mapping->at,
				     "'optimiser' needs 'momentum' where 'nesterov' is 'true'");
	return PSD_OK;
}

static const struct psd_section optimiser_section = {.tables = {optimiser_keys}, .check = check_optimiser};

/* ---- learning rate ---- */

#define OF_RATE(policy) 1u << PSD_RATE_##policy
#define WITH_GAMMA	(OF_RATE(STEP) | OF_RATE(MULTISTEP) | OF_RATE(INV) | OF_RATE(EXP))
#define WITH_POWER	(OF_RATE(INV) | OF_RATE(POLY))
#define WITH_END	(OF_RATE(POLY) | OF_RATE(COSINE))

static const struct psd_key rate_keys[] = {
	{RATE_OF("policy", CHOICE, policy), .names = psd_rate_policy_names, .fallback = "fixed",
	 .help = "formula by which the learning rate depends on the iteration, see scenarios/README.md. All are "
		 "Caffe's, except cosine"},
	{RATE_OF("base", NUMBER, base), .is_required = true, .lowest = 1e-9, .highest = 1e6,
	 .help = "constant base in the formula of `train.learning_rate.policy`: learning rate at the start, or after "
		 "warm-up"},
	{RATE_OF("gamma", NUMBER, gamma), .highest = 1e6, .when = {"policy", WITH_GAMMA, WITH_GAMMA},
	 .help = "constant gamma in the formula of `train.learning_rate.policy`"},
	{RATE_OF("power", NUMBER, power), .highest = 100, .when = {"policy", WITH_POWER, WITH_POWER},
	 .help = "constant power in the formula of `train.learning_rate.policy`"},
	{RATE_OF("step", COUNT, step_iterations), .lowest = 1, .highest = PSD_MAX_ITERATIONS,
	 .when = {"policy", OF_RATE(STEP), OF_RATE(STEP)},
	 .help = "number of iterations from one multiplication of the rate by gamma to the next"},
	{RATE_OF("steps", COUNT, steps_at), .lowest = 1, .highest = PSD_MAX_ITERATIONS,
	 .most_entries = PSD_MAX_RATE_STEPS, .n_entries_offset = offsetof(struct psd_learning_rate, n_steps),
	 .when = {"policy", OF_RATE(MULTISTEP), OF_RATE(MULTISTEP)},
	 .help = "iterations at which the rate is multiplied by gamma, in rising order"},
	{RATE_OF("max_iterations", COUNT, max_iterations), .lowest = 1, .highest = PSD_MAX_ITERATIONS,
	 .when = {"policy", WITH_END, 0},
	 .help = "iteration at which the rate of poly is 0, and that of cosine is `train.learning_rate.lowest`. "
		 "Default: the end of the job"},
	{RATE_OF("lowest", NUMBER, lowest), .highest = 1e6, .when = {"policy", OF_RATE(COSINE), 0},
	 .help = "learning rate of cosine from `train.learning_rate.max_iterations` on; at most "
		 "`train.learning_rate.base`. Default: 0"},
	{RATE_OF("warmup_iterations", COUNT, warmup_iterations), .lowest = 1, .highest = PSD_MAX_ITERATIONS,
	 .help = "number of first iterations (warm-up) in which the rate rises to the policy's rate in equal steps. "
		 "Default: no warm-up"},
	{RATE_OF("warmup_start", RATIO, warmup_start_ratio), .highest = 1,
	 .help = "share of the policy's rate with which warm-up begins. Default: 0"},
	{RATE_OF("for_batch", COUNT, for_batch), .lowest = 1, .highest = 1e9,
	 .help = "number of samples of all workers in an iteration (global batch) for which `train.learning_rate.base` "
		 "is meant. The rate is multiplied by the global batch of the run, divided by this number. Default: no "
		 "such factor"},
	{.name = NULL},
};

static enum psd_status check_rate(const struct psd_schema_reader *reader, void *base, const struct psd_node *mapping)
{
	const struct psd_learning_rate *rate = base;
	const struct psd_node *list = psd_node_child(mapping, "steps"), *entry = list ? list->first : NULL;

	for (unsigned i = 1; entry && entry->next; i++) {
		entry = entry->next;
		if (rate->steps_at[i] <= rate->steps_at[i - 1])
			return psd_error_set(reader->err, PSD_EINVAL, entry->at,
					     "'steps' has %" PRIu64 " after %" PRIu64 ", must rise", rate->steps_at[i],
					     rate->steps_at[i - 1]);
	}
	if (rate->lowest > rate->base)
		return psd_error_set(reader->err, PSD_EINVAL, psd_node_child(mapping, "lowest")->at,
				     "'lowest' is '%.80s', must be at most 'base', %g",
				     psd_node_child(mapping, "lowest")->text, rate->base);
	return PSD_OK;
}

static const struct psd_section rate_section = {.tables = {rate_keys}, .check = check_rate};

/* ---- the job ---- */

static const struct psd_key train_keys[] = {
	{TRAIN("data", SECTION, data), .section = &data,
	 .help = "training samples and test samples. Default: synthetic samples"},
	{TRAIN("iterations", COUNT, iterations), .lowest = 1, .highest = PSD_MAX_ITERATIONS,
	 .help = "length of the job in iterations. Required unless `train.epochs` or `train.solver` sets it"},
	{TRAIN("epochs", COUNT, epochs), .lowest = 1, .highest = 1e6, .rival = "iterations",
	 .help = "length of the job in epochs (passes over all training samples), in place of `train.iterations`"},
	{TRAIN("solver", PATH, solver_path), .uses = PSD_BY_RUN,
	 .help = "Caffe's solver.prototxt, in place of `train.optimiser` and `train.learning_rate`. It also sets "
		 "iterations, seed and `systems.accumulate` if the scenario does not"},
	{TRAIN("optimiser", SECTION, optimiser), .section = &optimiser_section, .rival = "solver",
	 .help = "update rule and its parameters. Default: sgd without momentum and weight decay"},
	{TRAIN("learning_rate", SECTION, rate), .section = &rate_section, .rival = "solver", .is_required = true,
	 .help = "learning rate in each iteration"},
	{TRAIN("start", PATH, start_path),
	 .help = "safetensors file of initial parameters by name, such as psd-run --save writes. Parameters that it "
		 "lacks are initialised as the model says. Default: all are initialised by the model"},
	{TRAIN("test_every", COUNT, test_every_epochs), .highest = 1e6, .fallback = "1",
	 .help = "number of epochs from one test to the next. 0: no tests"},
	{TRAIN("loss_scale", NUMBER, loss_scale), .lowest = 1e-6, .highest = 1e9, .word = "dynamic",
	 .word_offset = offsetof(struct psd_train, has_dynamic_scale),
	 .help = "factor on gradients while they are sent as fp16 (`wire: fp16`), against underflow. dynamic: a factor "
		 "for each tensor or bucket, at first 32768. It is halved after an overflow, whose update is skipped, "
		 "and doubled after 2000 iterations without overflow. Default: dynamic"},
	{TRAIN("device", CHOICE, device), .names = device_names, .fallback = "cpu", .uses = PSD_BY_RUN,
	 .help = "device that trains. auto: a GPU if there is one, else the CPU. Predictions use `compute.device` "
		 "instead"},
	{TRAIN("arithmetic", CHOICE, arithmetic), .names = psd_layer_arithmetic_names, .fallback = "fp32",
	 .uses = PSD_BY_RUN | PSD_AGREED,
	 .help = "arithmetic of layers in training; parameters, gradients and updates are always fp32. tf32, fp16 and "
		 "bf16 need a GPU that supports them"},
	{TRAIN("graphs", FLAG, has_graphs), .fallback = "true", .uses = PSD_BY_RUN,
	 .help = "record the GPU operations of the layers once, as a CUDA graph, and launch it in each iteration. "
		 "false: launch each operation alone; results are the same, bit by bit"},
	{TRAIN("threads", UNSIGNED, threads), .lowest = 1, .highest = 1024, .fallback = "1",
	 .uses = PSD_BY_SIM | PSD_BY_RUN,
	 .help = "number of computing threads of each worker. psd-sim uses it only with `cluster.machine`"},
	{TRAIN("readers", UNSIGNED, readers), .lowest = 1, .highest = 256, .word = "auto",
	 .word_offset = offsetof(struct psd_train, has_auto_readers), .uses = PSD_BY_RUN,
	 .help = "number of threads of each worker that read samples ahead. auto: 1 if the CPU trains; with a GPU the "
		 "number of the worker's processor cores minus 2, at least 1, at most 16. Default: auto"},
	{TRAIN("streams", UNSIGNED, streams), .lowest = 1, .highest = 64, .word = "auto",
	 .word_offset = offsetof(struct psd_train, has_auto_streams), .uses = PSD_BY_PSD_RUN | PSD_AGREED,
	 .help = "number of connections between any two workers or servers; each large message is divided between "
		 "them. If there are several, each has a thread. auto: 1, 2 or 4, the smallest number that is nearly "
		 "fastest in a trial of about a second; 1 without a trial where processors are few. Default: auto"},
	{TRAIN("deterministic", FLAG, is_deterministic), .fallback = "true",
	 .help = "make equal runs give equal results, bit by bit, unless reads are stale or training is asynchronous. "
		 "false: gradients are summed in the order of arrival, "
		 "and convolutions on a GPU use the fastest algorithms, chosen by measurement"},
	{TRAIN("diverged", CHOICE, diverged), .names = divergence_names, .fallback = "stop",
	 .uses = PSD_BY_RUN | PSD_AGREED,
	 .help = "reaction to a loss or parameter that is infinite or not a number. stop: end the run with status 1 "
		 "and keep earlier checkpoints; continue: train on, and replace checkpoints as usual"},
	{TRAIN("compare_every", COUNT, compare_every), .highest = PSD_MAX_ITERATIONS, .fallback = "100",
	 .uses = PSD_BY_RUN | PSD_AGREED,
	 .help = "number of iterations from one comparison of all workers' parameters to the next. If they differ, the "
		 "run fails. They are also compared at the start, at checkpoints and at the end. 0: never compared"},
	{.name = NULL},
};

unsigned psd_train_least_streams(const struct psd_train *train)
{
	return train->streams > 0 ? train->streams : 1;
}

static enum psd_status settle_train(const struct psd_schema_reader *reader, void *base, const struct psd_node *mapping)
{
	const struct psd_train *train = base;

	if (!train->iterations && !train->epochs && !train->solver_path)
		return psd_error_set(reader->err, PSD_EINVAL, mapping->at, "'train' needs 'iterations' or 'epochs'");
	return PSD_OK;
}

/* A cosine begins when the warm-up is over. The end of a job in epochs is not known yet. */
static enum psd_status check_warmup(const struct psd_schema_reader *reader, const struct psd_learning_rate *rate,
				    const struct psd_node *mapping)
{
	if (rate->policy != PSD_RATE_COSINE || !rate->max_iterations || rate->warmup_iterations < rate->max_iterations)
		return PSD_OK;
	return psd_error_set(reader->err, PSD_EINVAL, psd_node_child(mapping, "warmup_iterations")->at,
			     "'warmup_iterations' is %" PRIu64 ", must be less than %" PRIu64 ", where the cosine ends",
			     rate->warmup_iterations, rate->max_iterations);
}

/* Where poly and cosine end: by default with the job; where the rate is then 0, never before it. */
static enum psd_status check_end(const struct psd_schema_reader *reader, void *base, const struct psd_node *mapping)
{
	struct psd_train *train = base;
	const struct psd_node *rate = psd_node_child(mapping, "learning_rate");
	const struct psd_node *end = psd_node_child(rate, "max_iterations");

	if (!rate || (train->rate.policy != PSD_RATE_POLY && train->rate.policy != PSD_RATE_COSINE))
		return PSD_OK;
	if (end && psd_rate_ends_at_zero(&train->rate) && train->rate.max_iterations < train->iterations)
		return psd_error_set(reader->err, PSD_EINVAL, end->at,
				     "'max_iterations' is %" PRIu64 ", must be 'iterations', %" PRIu64
				     ", or more: the rate is 0 from there on",
				     train->rate.max_iterations, train->iterations);
	if (!end)
		train->rate.max_iterations = train->iterations;
	return check_warmup(reader, &train->rate, rate);
}

bool psd_rate_ends_at_zero(const struct psd_learning_rate *rate)
{
	return rate->policy == PSD_RATE_POLY || (rate->policy == PSD_RATE_COSINE && rate->lowest == 0.0);
}

const struct psd_section psd_scenario_train = {.tables = {train_keys}, .settle = settle_train, .check = check_end};
