/* `systems` and `baseline` of a scenario file. Refuses names that would break a CSV row. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/spelling.h"
#include "engine/collectives/collective.h"
#include "engine/encodings/compression.h"
#include "engine/encodings/encoding.h"
#include "engine/encodings/low_rank.h"
#include "engine/scenario/device.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_keys.h"
#include "engine/scenario/stack.h"

/* With less, a few packets are already more than 5 % of the bytes of 100 ms. */
/* Two packets of each worker are at most 5 % of what its share carries in 100 ms from 5 Mbit/s on. */
#define LEAST_BUDGET_BPS	10e6
#define LEAST_WORKER_BUDGET_BPS 5e6

enum {
	NAME_MAX_BYTES = 64,
	OTHER_TEXT_MAX = 64,
	LEAST_WINDOW = 16, /* a window has its steps before hosts begin its first iterations, some ahead of others */
};

const char *const psd_schedule_names[] = {"sequential", "wait-free", "clocked", NULL};
#define ALL_REDUCE_NAME(identifier, name) name,
const char *const psd_sync_names[] = {"ps",
				      "two-level-ps",
				      "sfb",
				      "two-level-sfb",
				      "adam",
				      "hybrid",
				      "sacp",
				      PSD_ALL_REDUCES(ALL_REDUCE_NAME) "auto",
				      PSD_SHARDED(ALL_REDUCE_NAME) PSD_LIBRARIES(ALL_REDUCE_NAME) NULL};
const char *const psd_rule_names[] = {"bytes", "seconds", NULL};
const char *const psd_barrier_names[] = {"iteration", "layer", NULL};
const char *const psd_priority_names[] = {"generation", "forward", NULL};
const char *const psd_split_names[] = {"even", "speed", "measured", NULL};
const char *const psd_reads_names[] = {"late", "stale", NULL};
const char *const psd_recompute_names[] = {"none", "blocks", NULL};
static const char *const unit_names[] = {"layer", "tensor", NULL};
static const char *const feedback_names[] = {"momentum", "full", NULL};
static const char *const importance_names[] = {"magnitude", "random", "generation", "forward", NULL};
static const char *const compressed_names[] = {"all", "matrices", NULL};
static const char *const shard_over_names[] = {"cluster", "node", NULL};
static const char *const placement_names[] = {"ranges", "tensors", NULL};
static const char *const async_rate_names[] = {"plain", "by-staleness", NULL};
static const char *const momentum_names[] = {"after", "before", NULL};

#define KEY(text, kind, member) .name = (text), .type = PSD_KEY_##kind, .offset = offsetof(struct psd_system, member)
#define BIT(sync)		(1u << PSD_SYNC_##sync)
#define OF_HYBRIDS		(BIT(HYBRID) | BIT(SACP))
#define OF_SERVERS		(BIT(PS) | BIT(TWO_LEVEL_PS) | BIT(SFB) | BIT(TWO_LEVEL_SFB) | BIT(ADAM) | OF_HYBRIDS)
#define OF_OWN_ALL_REDUCES	(((1u << (PSD_N_ALL_REDUCES + 1)) - 1) << PSD_SYNC_ALL_REDUCE)
#define OF_NAMED_ALL_REDUCES	(((1u << PSD_N_ALL_REDUCES) - 1) << PSD_SYNC_ALL_REDUCE)
#define OF_ALL_REDUCES		(OF_OWN_ALL_REDUCES | ((1u << PSD_N_LIBRARIES) - 1) << PSD_SYNC_LIBRARY)
#define OF_SHARDED		(((1u << PSD_N_SHARDED) - 1) << PSD_SYNC_SHARDED)
#define OF_GATHERING		(3u << (PSD_SYNC_LIBRARY - 2)) /* zero-3, and its other name */
#define OF_DENSE		(BIT(PS) | BIT(TWO_LEVEL_PS) | OF_ALL_REDUCES)
#define OF_LATE			(BIT(PS) | BIT(TWO_LEVEL_PS) | BIT(SFB) | BIT(HYBRID) | OF_OWN_ALL_REDUCES)

static const struct psd_key model_keys[] = {
	{KEY("batch_per_worker", UNSIGNED, own.batch_per_worker), .lowest = 1, .highest = 1e6,
	 .help = "number of samples that each worker processes at a time. Default: `model.batch_per_worker`"},
	{KEY("precision", NAME, own.precision_name), .names = psd_precision_names,
	 .help = "arithmetic of layers and width of gradients, explained at `model.precision`, which is the default"},
	{KEY("recompute", NAME, own.recompute_name), .names = psd_recompute_names,
	 .help = "activations that backward computes again, explained at `model.recompute`, which is the default"},
	{.name = NULL},
};
static const struct psd_section model = {.tables = {model_keys}};

static const struct psd_key compute_keys[] = {
	{KEY("profile", PATH, own.profile_path), .rival = "device",
	 .help = "CSV file with the measured seconds of each layer on one worker. Default: `compute.profile`"},
	{KEY("device", NAME, own.device_name), .names = psd_device_names,
	 .help = "device for which layer times are modelled. Default: `compute.device`. A system with its own device "
		 "or profile does not use `compute.samples_per_sec` and `compute.mfu`"},
	{KEY("samples_per_sec", NUMBER, own.samples_per_sec), .former = "images_per_sec", .lowest = 0.001,
	 .highest = 1e9,
	 .help = "measured throughput of one worker, in samples per second; layer times are scaled to it. With a "
		 "device "
		 "it also scales matrix products of factors and low-rank gradients. Default: "
		 "`compute.samples_per_sec`"},
	{KEY("mfu", RATIO, own.mfu_ratio), .lowest = 0.0001, .highest = 1, .rival = "samples_per_sec",
	 .help = "model FLOPs utilisation of one worker; layer times are scaled to it. It also scales matrix products "
		 "of "
		 "factors and low-rank gradients. Default: `compute.mfu`"},
	{.name = NULL},
};
static const struct psd_section compute = {.tables = {compute_keys}};

#define SPARSE(text, kind, member) .name = (text), .type = PSD_KEY_##kind, .offset = offsetof(struct psd_sparse, member)

static const struct psd_key sparse_keys[] = {
	{SPARSE("sparsity", RATIO, sparsity), .highest = 0.9999, .is_required = true,
	 .help = "share of all chunks of gradients that are not sent in an iteration"},
	{SPARSE("chunk", COUNT, chunk_elements), .lowest = 1, .highest = 1e9, .fallback = "32000",
	 .help = "number of gradient values in a chunk, which is sent as a whole or not at all. The last chunk of a "
		 "tensor or bucket may have fewer values"},
	{SPARSE("warmup", COUNT, warmup_iterations), .highest = 1e9, .fallback = "0", .uses = PSD_BY_RUN | PSD_AGREED,
	 .help = "number of first iterations in which the share of chunks that are not sent rises from 0 to "
		 "`systems.sparse.sparsity`. Predictions are for later iterations"},
	{SPARSE("feedback", CHOICE, feedback), .names = feedback_names, .fallback = "momentum",
	 .uses = PSD_BY_RUN | PSD_AGREED,
	 .help = "error feedback: share of a gradient that is added to the next one if it was not sent. "
		 "momentum: `train.optimiser.momentum` times the gradient, as published; full: the whole gradient"},
	{.name = NULL},
};
static const struct psd_section sparse = {.tables = {sparse_keys}};

static const struct psd_key managed_keys[] = {
	{SPARSE("clock", COUNT, clock), .lowest = 2, .highest = PSD_MAX_LOCAL_STEPS, .is_required = true,
	 .help = "number of iterations of a clock. In the last one workers send all that they have withheld, so that "
		 "no gradient is older when it is applied"},
	{SPARSE("early", RATIO, early_ratio), .lowest = 0.0001, .highest = 1,
	 .help = "share of all chunks of gradients that are sent in an iteration; in the last one of a clock all are "
		 "sent. The number of chunks is rounded up, and a note tells it. Default: the share that "
		 "`systems.budget` carries while an iteration computes"},
	{SPARSE("priority", CHOICE, importance), .names = importance_names, .fallback = "magnitude",
	 .uses = PSD_BY_RUN | PSD_AGREED,
	 .help = "chunks that are sent early. magnitude: those with the largest changes relative to their parameters; "
		 "random: drawn by `seed`; generation: in the order in which the backward pass computes them, round "
		 "robin; forward: in the order in which the next forward pass needs them, round robin"},
	{SPARSE("chunk", COUNT, chunk_elements), .lowest = 1, .highest = 1e9, .fallback = "32000",
	 .help = "number of gradient values in a chunk, which is sent as a whole or not at all. The last chunk of a "
		 "tensor or bucket may have fewer values"},
	{.name = NULL},
};
static const struct psd_section managed = {.tables = {managed_keys}};

#define COMPRESS(text, kind, member)                                                                                   \
	.name = (text), .type = PSD_KEY_##kind, .offset = offsetof(struct psd_compress, member)
#define NUMBER_OF(identifier, text) NUMBER_##identifier,
enum { PSD_COMPRESSIONS(NUMBER_OF) };

static const struct psd_key compress_keys[] = {
	{COMPRESS("by", CHOICE, by), .names = psd_compression_names, .is_required = true,
	 .help = "compression of a block of values: the data that are sent for it. one-bit: the sign of each value, "
		 "the mean of the negative values and the mean of the others; top-k: the values of largest magnitude "
		 "and their positions; int8: a whole number of 8 bits for each value, and the step between two of "
		 "them, the largest magnitude divided by 127"},
	{COMPRESS("block", COUNT, block_elements), .lowest = PSD_BLOCK_UNIT, .highest = PSD_BLOCK_MAX,
	 .fallback = "1024",
	 .help = "number of values that are compressed together, a multiple of 1024. The last block of a tensor may "
		 "have fewer values"},
	{COMPRESS("kept", RATIO, kept_ratio), .lowest = 1e-5, .highest = 1, .fallback = "0.01",
	 .when = {"by", 1u << NUMBER_top_k, 0},
	 .help = "share of each block's values that is sent; at least one value of a block is sent"},
	{COMPRESS("tensors", CHOICE, tensors), .names = compressed_names, .fallback = "all",
	 .help = "tensors that are compressed. all: each tensor; matrices: weights of linear layers, with their biases "
		 "unless `systems.unit` is tensor"},
	{COMPRESS("momentum", CHOICE, momentum), .names = momentum_names, .fallback = "after",
	 .help = "point at which momentum is applied. after: to the sum of gradients, as in training without "
		 "compression; before: each worker applies momentum and weight decay to its own gradient, then "
		 "compresses it. With one-bit, before trains more steadily"},
	{.name = NULL},
};

static const struct psd_key low_rank_keys[] = {
	{.name = "rank",
	 .type = PSD_KEY_UNSIGNED,
	 .offset = offsetof(struct psd_low_rank, rank),
	 .lowest = 1,
	 .highest = PSD_MOST_RANK,
	 .is_required = true,
	 .help = "rank of the product: number of columns of its first matrix and of rows of its second. A higher rank "
		 "is more exact and sends more bytes"},
	{.name = NULL},
};
static const struct psd_section low_rank = {.tables = {low_rank_keys}};

static enum psd_status check_compress(const struct psd_schema_reader *reader, void *base, const struct psd_node *node)
{
	const struct psd_compress *compress = base;
	const struct psd_node *block = psd_node_child(node, "block");

	if (block && compress->block_elements % PSD_BLOCK_UNIT)
		return psd_error_set(reader->err, PSD_EINVAL, block->at, "'block' is '%.80s', must be a multiple of %d",
				     block->text, PSD_BLOCK_UNIT);
	return PSD_OK;
}

static const struct psd_section compress = {.tables = {compress_keys}, .check = check_compress};

#define OUTER(text, kind, member) .name = (text), .type = PSD_KEY_##kind, .offset = offsetof(struct psd_outer, member)

static const struct psd_key outer_keys[] = {
	{OUTER("rate", NUMBER, rate), .lowest = 1e-6, .highest = 100, .fallback = "0.7",
	 .help = "learning rate of the outer optimiser. With 1, and without momentum, parameters become the average of "
		 "all workers'"},
	{OUTER("momentum", NUMBER, momentum), .highest = 0.9999, .fallback = "0.9",
	 .help = "coefficient of momentum of the outer optimiser. With 0 it keeps no state"},
	{OUTER("nesterov", FLAG, is_nesterov), .fallback = "true",
	 .help = "use Nesterov momentum; no effect if `systems.local_sgd.outer.momentum` is 0"},
	{.name = NULL},
};
static const struct psd_section outer = {.tables = {outer_keys}};

#define LOCAL(text, kind, member)                                                                                      \
	.name = (text), .type = PSD_KEY_##kind, .offset = offsetof(struct psd_local_sgd, member)

static const struct psd_key local_keys[] = {
	{LOCAL("steps", COUNT, steps), .lowest = 1, .highest = PSD_MAX_LOCAL_STEPS, .is_required = true,
	 .help = "number of iterations from one averaging of parameters to the next (a period). With "
		 "`systems.local_sgd.window` it is the length of the first periods, and psd-run shortens later ones. "
		 "Predictions and replays measure whole periods"},
	{LOCAL("window", COUNT, window), .lowest = LEAST_WINDOW, .highest = 1e9, .uses = PSD_BY_RUN | PSD_AGREED,
	 .help = "number of iterations (a window) after which psd-run chooses anew how many iterations lie between two "
		 "averagings (a period): the lower the mean loss, the fewer. Periods begin with "
		 "`systems.local_sgd.steps` iterations, and a window must have at least as many. Predictions use "
		 "`systems.local_sgd.steps` for all periods. Default: psd-run uses it for all periods, too"},
	{LOCAL("gap", RATIO, gap_ratio), .lowest = 1e-6, .highest = 10, .uses = PSD_BY_RUN | PSD_AGREED,
	 .help = "largest allowed rise of the loss, relative: the mean loss of a window may exceed the lowest mean "
		 "loss of earlier windows by this share. 0.1 or 10% allows 1.1 times the lowest. After a larger rise "
		 "workers average their parameters in each iteration. Needs `systems.local_sgd.window`. Default: no "
		 "limit"},
	{LOCAL("fragments", UNSIGNED, fragments), .lowest = 1, .highest = PSD_MAX_LOCAL_STEPS, .fallback = "1",
	 .help = "number of fragments: groups of consecutive tensors or buckets of about equal size, which exchange in "
		 "turn, evenly spread over a period, so that at most one of them is sent at a time. At most "
		 "`systems.local_sgd.steps`. All are exchanged at the end of training, and workers' parameters are "
		 "equal only then. Default: all tensors are exchanged together"},
	{LOCAL("delay", UNSIGNED, delay), .highest = PSD_MOST_STALENESS, .fallback = "0",
	 .help = "number of iterations that an exchange may take beside local steps. Its result is joined to the "
		 "parameters this number of iterations later: a worker adds the steps that it has made since the "
		 "exchange began. Less than `systems.local_sgd.steps`. With a delay of d, memory has d + 1 further "
		 "gradients. Not with `systems.low_rank`, nor with all-reduces of a library"},
	{LOCAL("outer", SECTION, outer), .section = &outer, .has_offset = offsetof(struct psd_local_sgd, has_outer),
	 .help = "outer optimiser (DiLoCo): an exchange updates the parameters of the last exchange by the mean change "
		 "of all workers' parameters, which takes the position of a gradient. Default: parameters become the "
		 "average of all workers'"},
	{.name = NULL},
};

static enum psd_status check_local(const struct psd_schema_reader *reader, void *base, const struct psd_node *node)
{
	const struct psd_local_sgd *local = base;
	const struct psd_node *window = psd_node_child(node, "window"), *gap = psd_node_child(node, "gap");

	if (window && local->window < local->steps)
		return psd_error_set(reader->err, PSD_EINVAL, window->at,
				     "'window' is '%.80s', must be at least 'steps', %" PRIu64, window->text,
				     local->steps);
	if (gap && !window)
		return psd_error_set(reader->err, PSD_EINVAL, gap->key_at, "'gap' has no effect without 'window'");
	if (local->fragments > local->steps)
		return psd_error_set(reader->err, PSD_EINVAL, psd_node_child(node, "fragments")->at,
				     "'fragments' is %u, must be at most 'steps', %" PRIu64, local->fragments,
				     local->steps);
	if (local->delay >= local->steps)
		return psd_error_set(reader->err, PSD_EINVAL, psd_node_child(node, "delay")->at,
				     "'delay' is %u, must be less than 'steps', %" PRIu64, local->delay, local->steps);
	if ((local->fragments > 1 || local->delay > 0) && window)
		return psd_error_set(reader->err, PSD_EINVAL, window->key_at,
				     "'window' cannot be used together with '%s', which needs constant 'steps'",
				     local->delay > 0 ? "delay" : "fragments");
	return PSD_OK;
}

static const struct psd_section local_sgd = {.tables = {local_keys}, .check = check_local};

static const struct psd_key async_keys[] = {
	{.name = "bound",
	 .type = PSD_KEY_COUNT,
	 .offset = offsetof(struct psd_async, bound),
	 .lowest = 1,
	 .highest = PSD_MOST_BOUND,
	 .fallback = "1000",
	 .help = "number of iterations by which a worker may be ahead of the slowest one. A worker that is further "
		 "ahead waits. If the bound is `train.iterations` or more, no worker waits. psd-sim simulates the "
		 "beginning of a training, and computes from it the waits until the end (`train.iterations`, or the "
		 "epochs of `job`)"},
	{.name = "rate",
	 .type = PSD_KEY_CHOICE,
	 .offset = offsetof(struct psd_async, rate),
	 .names = async_rate_names,
	 .fallback = "plain",
	 .uses = PSD_BY_RUN | PSD_AGREED,
	 .help = "learning rate of an update. plain: as `train.learning_rate` says; by-staleness: divided by the "
		 "number of updates by other workers since the worker received the parameters of its gradient "
		 "(staleness-aware)"},
	{.name = NULL},
};
static const struct psd_section async = {.tables = {async_keys}};

static const struct psd_key keys[] = {
	{KEY("name", TEXT, name), .is_required = true,
	 .help = "name of the system, for tables, the option --system and the key `baseline`"},
	{KEY("schedule", CHOICE, schedule), .names = psd_schedule_names, .fallback = "wait-free",
	 .help = "time at which gradients are exchanged. wait-free: a layer's gradients as soon as they are computed; "
		 "clocked: as wait-free, but a server sends parameters back only after it has all gradients of the "
		 "iteration; sequential: as clocked, but no exchange starts before the end of the backward pass"},
	{KEY("sync", CHOICE, sync), .names = psd_sync_names, .fallback = "hybrid",
	 .help = "method of synchronisation. ps: parameter server; two-level-ps: parameter server, and the first "
		 "worker of each node sums the gradients of its node; sfb: each worker broadcasts the sufficient "
		 "factors of linear layers' gradients (inputs and output gradients), other tensors use ps; "
		 "two-level-sfb: as sfb, and the first worker of each node sends the factors of its node's workers to "
		 "other nodes as one message; adam: sufficient factors go to a server, which returns the updated "
		 "matrix, other tensors use ps (Project Adam); hybrid: ps or sfb for each tensor; sacp: adam or sfb "
		 "for each matrix, ps for other tensors; auto: the fastest all-reduce on this cluster for each tensor; "
		 "zero-1: a reduce-scatter of gradients, each worker updates a part of the parameters and has the "
		 "optimiser state of that part alone, then an all-gather of parameters; zero-2: as zero-1, and a "
		 "worker keeps the gradients of its part alone; zero-3, fsdp: as zero-2, and a worker keeps the "
		 "parameters of its part alone, others are gathered before each use; mpi: all-reduce of MPI, predicted "
		 "as a ring; nccl: NCCL's all-reduce, predicted as a ring or, where they are faster, as double trees "
		 "over nodes; nccl-two-level: NCCL inside nodes and a ring between nodes; the others: all-reduce of "
		 "that name"},
	{KEY("rule", CHOICE, rule), .names = psd_rule_names, .fallback = "bytes", .when = {"sync", OF_HYBRIDS, 0},
	 .help = "rule by which hybrid and sacp choose a method for each tensor. bytes: the published rules, which "
		 "compare bytes; seconds: the method with the shortest predicted time on this cluster. With seconds, "
		 "hybrid can choose a ring all-reduce, too"},
	{KEY("barrier", CHOICE, barrier), .names = psd_barrier_names, .fallback = "iteration",
	 .help = "condition to start the next iteration. iteration: all layers are synchronised; layer: each layer "
		 "starts when that layer is synchronised"},
	{KEY("priority", CHOICE, priority), .names = psd_priority_names, .fallback = "generation",
	 .help = "order in which waiting gradients are exchanged. generation: as the backward pass computes them; "
		 "forward: as the next forward pass needs them"},
	{KEY("staleness", UNSIGNED, staleness), .highest = PSD_MOST_STALENESS, .fallback = "0",
	 .when = {"sync", OF_LATE, 0},
	 .help = "largest number of iterations by which updates lag. An iteration may compute while the gradients of "
		 "this number of earlier iterations are still being summed. With `systems.managed` a chunk's sum may "
		 "arrive this number of iterations after the iteration that sends the chunk"},
	{KEY("split", CHOICE, split), .names = psd_split_names, .fallback = "even",
	 .help = "division of the samples of an iteration among `cluster.groups`. even: each worker has "
		 "`model.batch_per_worker` samples, or its group's number; speed: the same sum of samples, divided so "
		 "that the slowest worker needs the shortest predicted time; measured: as speed, by seconds that "
		 "psd-run measures before it trains. Gradients are weighted by samples"},
	{KEY("reads", CHOICE, reads), .names = psd_reads_names, .fallback = "late", .when = {"sync", OF_LATE, 0},
	 .help = "gradients that an iteration sees with `systems.staleness`, which must be given, too. late: those of "
		 "all workers, always of "
		 "this number of iterations ago; stale: a worker's own at once and others' as they arrive, never later "
		 "(stale synchronous parallel), so that workers' parameters differ while they train. stale needs "
		 "`sync` ps, two-level-ps or an all-reduce, not sfb or hybrid, and the optimiser sgd without `clip`. "
		 "With "
		 "`systems.managed` it must be stale"},
	{KEY("asynchronous", SECTION, async), .section = &async, .has_offset = offsetof(struct psd_system, is_async),
	 .when = {"sync", BIT(PS), 0},
	 .help = "asynchronous training: a server updates its parameters by a worker's gradient as soon as that has "
		 "arrived, and returns them to this worker. Each worker executes all iterations of the job; quick "
		 "workers end earlier. The samples per second are the sum of what workers compute while they train; "
		 "hours of "
		 "a job last until the slowest one ends. It needs the optimiser sgd without `clip`. Default: servers "
		 "wait for the gradients of all workers"},
	{KEY("accumulate", UNSIGNED, accumulate), .lowest = 1, .highest = PSD_MOST_MICRO_BATCHES,
	 .help = "gradient accumulation: number of batches (micro-batches) that each worker computes in an iteration, "
		 "before one exchange and one update. Each has `model.batch_per_worker` samples; the update uses the "
		 "mean gradient of all of them. With zero-2 and zero-3 each micro-batch is exchanged, and a worker "
		 "adds its part. Batch norm uses the statistics of each micro-batch alone. Default: 1, or `iter_size` "
		 "of `train.solver`"},
	{KEY("peers", UNSIGNED, peers), .lowest = 1, .highest = PSD_MAX_HOSTS,
	 .when = {"sync", BIT(SFB) | BIT(HYBRID), 0},
	 .help = "partial broadcast: number of workers to which a worker sends its sufficient factors in an iteration. "
		 "They take turns: with P workers each pair meets every (P-1)/`peers` iterations. A worker updates "
		 "with the mean gradient of those that it has, so that parameters differ by worker. Needs "
		 "`systems.local_sgd`, which averages them. With P-1 or more, all get all factors and nothing is "
		 "averaged. Default: all other workers"},
	{KEY("unit", CHOICE, unit), .names = unit_names, .fallback = "layer",
	 .help = "smallest set of gradients that is exchanged at a time. layer: all tensors of a layer; tensor: one "
		 "tensor. With an all-reduce or zero-1, or if `systems.placement` is tensors, the default is tensor"},
	{KEY("fuse", BYTES, fuse_bytes), .when = {"sync", OF_ALL_REDUCES | OF_SHARDED, 0}, .word = "auto",
	 .word_offset = offsetof(struct psd_system, finds_fuse),
	 .help = "smallest size of a bucket: consecutive tensors are fused until they have this many bytes, and "
		 "exchanged as one. With `systems.sparse` and `systems.managed` the bytes sent count, a share of the "
		 "gradient's. auto: the fastest size on this cluster. Default: tensors are not fused"},
	{KEY("shard_over", CHOICE, shard_over), .names = shard_over_names, .fallback = "cluster",
	 .when = {"sync", OF_SHARDED, 0},
	 .help = "workers among which updates are divided. cluster: all workers; node: those of each node, with an "
		 "all-reduce of each part across nodes (hybrid sharding). All nodes must then have the same number of "
		 "workers, at least two"},
	{KEY("prefetch", UNSIGNED, prefetch), .highest = PSD_MOST_PREFETCH, .fallback = "1",
	 .when = {"sync", OF_GATHERING, 0},
	 .help = "number of buckets whose parameters are gathered ahead of their use in the forward or backward pass. "
		 "Memory for whole parameters is that of this number of buckets and one more"},
	{KEY("servers", UNSIGNED, servers), .highest = PSD_MAX_NODES, .fallback = "0", .when = {"sync", OF_SERVERS, 0},
	 .help = "number of separate server nodes. Each has a shard, an equal part of the parameters. 0: each worker "
		 "node has a shard"},
	{KEY("pair", BYTES, pair_bytes), .fallback = "2MB", .when = {"sync", OF_SERVERS, 0}, /* ATC'17 section 4.2 */
	 .help = "smallest part of a tensor that one worker exchanges with one shard (the parameters on one server) at "
		 "a time. A tensor that is smaller than this size times the number of shards is divided into equal "
		 "parts, one for each shard"},
	{KEY("slice", BYTES, slice_bytes), .fallback = "32MiB", .when = {"sync", OF_SERVERS, 0},
	 .help = "largest part of a tensor that one worker exchanges with all shards together at a time. It must be at "
		 "least `systems.pair`. If it is smaller than `systems.pair` times the number of shards, it is raised "
		 "to that size"},
	{KEY("pipeline", BYTES, pipeline_bytes), .lowest = 4096, .when = {"sync", OF_ALL_REDUCES, 0},
	 .help = "largest part of a tensor or bucket that is summed at a time, while the next part is copied from the "
		 "device; at least 4KiB. Default: the whole tensor or bucket, as always with `systems.sparse` and "
		 "`systems.low_rank`"},
	{KEY("wire", CHOICE, wire), .names = psd_encoding_names, .fallback = "fp32",
	 .help = "encoding of gradients and parameters in messages. fp32: no conversion; fp16, bf16: rounded to 16 "
		 "bits. Must be fp32 if `model.precision` is mixed or bf16, and with zero-1, zero-2 and zero-3"},
	{KEY("budget", RATE, budget_bps),
	 .help = "largest rate at which each node sends to other nodes, and receives from them, packet headers and "
		 "acknowledgements included. psd-run keeps to it in each 100 ms within 5 %; it must be 10Mbps or "
		 "more, and 5Mbps for each of a node's workers. Default: the rate of the links"},
	{KEY("sparse", SECTION, sparse), .section = &sparse, .has_offset = offsetof(struct psd_system, is_sparse),
	 .when = {"sync", OF_OWN_ALL_REDUCES, 0},
	 .help = "sparse all-reduce: gradients are cut into chunks, and in each iteration only the chunks with the "
		 "largest norms are summed, the same ones on all workers. Default: all gradients are summed"},
	{KEY("managed", SECTION, managed), .section = &managed, .has_offset = offsetof(struct psd_system, is_managed),
	 .when = {"sync", OF_OWN_ALL_REDUCES, 0},
	 .help = "managed communication: gradients are cut into chunks. In most iterations only some chunks are "
		 "summed, the same ones on all workers, and the others are added to the next gradients. Every few "
		 "iterations (a clock) all chunks are summed. With `reads: stale` chunks of updates are sent in place "
		 "of "
		 "gradients (Boesen). Default: all gradients are summed in each iteration"},
	{KEY("compress", SECTION, compress), .section = &compress,
	 .has_offset = offsetof(struct psd_system, is_compressed), .when = {"sync", BIT(PS), 0},
	 .help = "lossy compression of gradients on their way to the shards, and of their sums on the way back. "
		 "Compression errors are added to the next gradient or sum (error feedback). Default: no compression"},
	{KEY("low_rank", SECTION, low_rank), .section = &low_rank,
	 .has_offset = offsetof(struct psd_system, is_low_rank), .when = {"sync", OF_NAMED_ALL_REDUCES, 0},
	 .help = "low-rank compression (PowerSGD): gradients of linear layers and convolutions are sent as products of "
		 "two narrow matrices, where these have fewer values than the gradient. The gradient is taken as a "
		 "matrix with a row for each output of the layer. The narrow matrices are always fp32, and need `wire: "
		 "fp32`. Compression errors are added to the next gradient (error feedback). Default: no compression"},
	{KEY("local_sgd", SECTION, local_sgd), .section = &local_sgd,
	 .has_offset = offsetof(struct psd_system, is_local), .when = {"sync", OF_DENSE | BIT(SFB) | BIT(HYBRID), 0},
	 .help = "local SGD: each worker updates its own parameters; at the end of each period of several iterations "
		 "all workers replace their parameters by the average. With sync hybrid it needs `rule: seconds`, and "
		 "no tensor uses sufficient factors. With `systems.peers` it averages the parameters that are updated "
		 "by factors, and other tensors use ps in each iteration; with sync sfb it needs that key. Default: "
		 "gradients are summed in each iteration"},
	{KEY("placement", CHOICE, placement), .names = placement_names, .fallback = "ranges",
	 .when = {"sync", BIT(PS), 0}, .uses = PSD_BY_SIM, .is_refused = true,
	 .help = "parameters that each server holds. ranges: an equal part of each tensor; tensors: whole tensors, "
		 "assigned round robin, as in distributed TensorFlow"},
	{KEY("stack", NAME, stack_name), .names = psd_stack_names, .uses = PSD_BY_ALL,
	 .help = "communication software of this system. Default: `cluster.stack`, whose default depends on the "
		 "system"},
	{KEY("host", SECTION, host), .section = &psd_scenario_host, .uses = PSD_BY_SIM | PSD_BY_REPLAY | PSD_BY_CHOICE,
	 .inherits = "cluster.host",
	 .help = "costs of this system's communication software, with the keys of `cluster.host`. A key that is not "
		 "given is set by `cluster.host`, or else by the stack"},
	{.name = "model",
	 .type = PSD_KEY_SECTION,
	 .section = &model,
	 .uses = PSD_BY_SIM,
	 .is_refused = true,
	 .help = "batch, precision and recomputation of this system. A key that is not given has the scenario's value"},
	{.name = "compute",
	 .type = PSD_KEY_SECTION,
	 .section = &compute,
	 .uses = PSD_BY_SIM,
	 .is_refused = true,
	 .help = "layer times of this system. A key that is not given has the scenario's value"},
	{.name = NULL},
};

static void prepare(const struct psd_schema_reader *reader, void *base, const struct psd_node *entry)
{
	const struct psd_scenario *scenario = reader->base;
	struct psd_system *system = base;

	system->host = scenario->host;
	system->number = (unsigned)(system - scenario->systems);
	system->at = entry->at;
	system->entry = entry;
}

struct psd_place psd_system_key_at(const struct psd_system *system, const char *key)
{
	return psd_node_option_at(system->entry, key, system->at);
}

static const char compute_baseline[] = "compute";

static enum psd_status check_name(const struct psd_scenario *scenario, const struct psd_system *system,
				  struct psd_place at, struct psd_error *err)
{
	for (const char *c = system->name; *c; c += psd_text_plain_bytes(c))
		if (!psd_text_plain_bytes(c) || strchr(",\"'", *c))
			return psd_error_set(err, PSD_EINVAL, at,
					     "'name' is '%.80s', must not contain commas, quotes or control characters",
					     system->name);
	if (!system->name[strspn(system->name, " ")])
		return psd_error_set(err, PSD_EINVAL, at, "'name' is '%.80s', must have more than blanks",
				     system->name);
	if (strchr("=+-@", *system->name))
		return psd_error_set(err, PSD_EINVAL, at, "'name' is '%.80s', must not begin with one of = + - @",
				     system->name);
	if (strlen(system->name) > NAME_MAX_BYTES)
		return psd_error_set(err, PSD_EINVAL, at, "'name' is '%.80s', must be at most %d bytes long",
				     system->name, NAME_MAX_BYTES);
	if (!strcmp(system->name, compute_baseline))
		return psd_error_set(
			err, PSD_EINVAL, at,
			"'name' is '%s', must be another name: in 'baseline' it means a worker that only computes",
			compute_baseline);
	for (const struct psd_system *other = scenario->systems; other < system; other++)
		if (!strcmp(other->name, system->name))
			return psd_error_set(err, PSD_EINVAL, at,
					     "'name' is '%s', which the system in line %u has already", system->name,
					     other->at.line);
	return PSD_OK;
}

/* True if buckets take turns in memory. A layer's pass needs all its tensors at a time, and its gradients must leave
 * before the end of the backward pass. */
static bool takes_turns(const struct psd_system *system)
{
	return system->sync > PSD_SYNC_SHARDED && system->sync < PSD_SYNC_LIBRARY;
}

static enum psd_status check_turns(const struct psd_system *system, const struct psd_node *entry, struct psd_error *err)
{
	if (system->unit == PSD_UNIT_TENSOR)
		return psd_error_set(err, PSD_EINVAL, psd_node_child(entry, "unit")->at,
				     "'unit' is 'tensor', must be 'layer' where 'sync' is '%s'",
				     psd_sync_names[system->sync]);
	if (system->schedule != PSD_SCHEDULE_WAIT_FREE)
		return psd_error_set(err, PSD_EINVAL, psd_node_child(entry, "schedule")->at,
				     "'schedule' is '%s', must be 'wait-free' where 'sync' is '%s'",
				     psd_schedule_names[system->schedule], psd_sync_names[system->sync]);
	return PSD_OK;
}

/* All that is withheld stays in the residual. */
static void settle_managed(struct psd_system *system, const struct psd_node *entry)
{
	const struct psd_node *section = psd_node_child(entry, "managed");

	system->managed.feedback = PSD_FEEDBACK_FULL;
	system->managed.sparsity = 1.0 - system->managed.early_ratio;
	system->finds_early = section && !psd_node_child(section, "early");
}

static enum psd_status settle(const struct psd_schema_reader *reader, void *base, const struct psd_node *entry)
{
	struct psd_system *system = base;
	const struct psd_node *slice = psd_node_child(entry, "slice");

	if ((system->sync >= PSD_SYNC_ALL_REDUCE || system->placement == PSD_PLACEMENT_TENSORS) &&
	    !psd_node_child(entry, "unit") && !takes_turns(system))
		system->unit = PSD_UNIT_TENSOR;
	if (takes_turns(system))
		PSD_TRY(check_turns(system, entry, reader->err));
	if (system->sync == PSD_SYNC_AUTO)
		system->rule = PSD_RULE_SECONDS;
	psd_scenario_settle_stack(reader->base, system, entry);
	settle_managed(system, entry);
	if (system->slice_bytes >= system->pair_bytes || system->sync >= PSD_SYNC_ALL_REDUCE)
		return PSD_OK;
	if (slice)
		return psd_error_set(reader->err, PSD_EINVAL, slice->at,
				     "'slice' is '%.80s', must be at least 'pair', %" PRIu64 " bytes", slice->text,
				     system->pair_bytes);
	system->slice_bytes = system->pair_bytes;
	return PSD_OK;
}

/* ---- treatments of gradients, and those that exclude each other ---- */

enum treatment {
	LOCAL,
	DELAYED,
	SPARSE,
	MANAGED,
	COMPRESS,
	MOMENTUM_BEFORE,
	LOW_RANK,
	STALE,
	STALE_READS,
	LATE_READS,
	BY_FACTORS,
	ASYNC,
	IN_STAGES,
	BY_TENSORS,
	UNEVEN,
	HYBRID_BY_BYTES,
	SCALED_WIRE,
	BY_LIBRARY,
	TREATMENTS
};

static bool has(const struct psd_system *system, enum treatment treatment)
{
	switch (treatment) {
	case LOCAL: return system->is_local;
	case DELAYED: return system->is_local && system->local_sgd.delay > 0;
	case SPARSE: return system->is_sparse;
	case MANAGED: return system->is_managed;
	case COMPRESS: return system->is_compressed;
	case MOMENTUM_BEFORE: return system->is_compressed && system->compress.momentum == PSD_MOMENTUM_BEFORE;
	case LOW_RANK: return system->is_low_rank;
	case STALE: return system->staleness > 0;
	case STALE_READS: return system->reads == PSD_READS_STALE;
	case LATE_READS: return system->staleness > 0 && system->reads == PSD_READS_LATE;
	case ASYNC: return system->is_async;
	case IN_STAGES: return system->schedule != PSD_SCHEDULE_WAIT_FREE;
	case BY_TENSORS: return system->placement == PSD_PLACEMENT_TENSORS;
	case UNEVEN: return system->split != PSD_SPLIT_EVEN;
	case BY_FACTORS: return system->sync == PSD_SYNC_SFB || system->sync == PSD_SYNC_HYBRID;
	case HYBRID_BY_BYTES:
		return system->peers == 0 && system->sync == PSD_SYNC_HYBRID && system->rule != PSD_RULE_SECONDS;
	case SCALED_WIRE: return psd_encodings[system->wire]->is_scaled;
	case BY_LIBRARY: return system->sync >= PSD_SYNC_LIBRARY;
	case TREATMENTS: break;
	}
	return false;
}

/* Name in messages, and the key whose position they give: the inner one, if there is one. */
static const struct {
	const char *name, *key, *key_inside;
} treatments[TREATMENTS] = {
	[LOCAL] = {"local_sgd", "local_sgd", NULL},
	[DELAYED] = {"delay", "local_sgd", "delay"},
	[SPARSE] = {"sparse", "sparse", NULL},
	[MANAGED] = {"managed", "managed", NULL},
	[COMPRESS] = {"compress", "compress", NULL},
	[MOMENTUM_BEFORE] = {"momentum: before", "compress", "momentum"},
	[LOW_RANK] = {"low_rank", "low_rank", NULL},
	[STALE] = {"staleness", "staleness", NULL},
	[STALE_READS] = {"reads: stale", "reads", NULL},
	[LATE_READS] = {"staleness", "staleness", NULL},
	[ASYNC] = {"asynchronous", "asynchronous", NULL},
	[UNEVEN] = {"split", "split", NULL},
	[BY_TENSORS] = {"placement: tensors", "placement", NULL},
};

/* The first cannot be used together with the other. Choices, residuals and bases of an iteration's sums cannot be late,
 * nor can a worker's own parameters. */
static const struct exclusion {
	enum treatment first, other;
	const char *why; /* follows the name of the other */
} exclusions[] = {
	{LOCAL, HYBRID_BY_BYTES, ", which sends the factors of one iteration: must be 'rule: seconds'"},
	{DELAYED, LOW_RANK, ": each exchange begins with the factors of the last one"},
	{DELAYED, BY_LIBRARY, ": workers wait for a library's all-reduce"},
	{LOCAL, SPARSE, ": it holds back gradients of single iterations"},
	{LOCAL, SCALED_WIRE, "an overflow of a sum would lose many steps of a worker"},
	{MOMENTUM_BEFORE, LOCAL, ", whose steps have a momentum of their own"},
	{LOW_RANK, SPARSE, ": each selects the part of a gradient that travels"},
	{MANAGED, SPARSE, ": each selects the chunks that travel"},
	{MANAGED, LOCAL, ", whose workers send no gradients"},
	{MANAGED, LOW_RANK, ": each selects the part of a gradient that travels"},
	{MANAGED, SCALED_WIRE, "an overflow of a sum would lose the gradients of several iterations"},
	{STALE_READS, LOCAL, ", whose workers send no gradients"},
	{STALE_READS, BY_FACTORS, ": a worker has no gradient of its own before factors arrive"},
	{ASYNC, LOCAL, ""},
	{ASYNC, COMPRESS, ""},
	{ASYNC, STALE, ": its 'bound' says how far workers may be apart"},
	{ASYNC, STALE_READS, ": its 'bound' says how far workers may be apart"},
	{ASYNC, IN_STAGES, ", whose stages wait for all workers"},
	{ASYNC, BY_TENSORS, ""},
	{ASYNC, UNEVEN, ": quick workers execute their iterations earlier"},
	{STALE, SPARSE, ""},
	{LATE_READS, MANAGED, ", whose workers see their withheld gradients at once: must have 'reads: stale'"},
	{STALE, COMPRESS, ""},
	{STALE, LOW_RANK, ""},
	{STALE, LOCAL, ""},
	{STALE, SCALED_WIRE, "each sum sets the loss scale of the next gradients"},
};

static void describe_other(char text[OTHER_TEXT_MAX], const struct psd_system *system, enum treatment other)
{
	if (other == SCALED_WIRE)
		snprintf(text, OTHER_TEXT_MAX, "'wire: %s', must be fp32 or bf16: ", psd_encodings[system->wire]->name);
	else if (other == IN_STAGES)
		snprintf(text, OTHER_TEXT_MAX, "'schedule: %s'", psd_schedule_names[system->schedule]);
	else if (other == HYBRID_BY_BYTES)
		snprintf(text, OTHER_TEXT_MAX, "a hybrid by bytes");
	else if (other == BY_FACTORS || other == BY_LIBRARY)
		snprintf(text, OTHER_TEXT_MAX, "'sync: %s'", psd_sync_names[system->sync]);
	else
		snprintf(text, OTHER_TEXT_MAX, "'%s'", treatments[other].name);
}

static enum psd_status check_exclusions(const struct psd_system *system, const struct psd_node *entry,
					struct psd_error *err)
{
	for (const struct exclusion *e = exclusions; e < exclusions + sizeof(exclusions) / sizeof(exclusions[0]); e++) {
		const struct psd_node *at = psd_node_child(entry, treatments[e->first].key);
		char other[OTHER_TEXT_MAX];

		if (!has(system, e->first) || !has(system, e->other))
			continue;
		at = treatments[e->first].key_inside ? psd_node_child(at, treatments[e->first].key_inside) : at;
		describe_other(other, system, e->other);
		return psd_error_set(err, PSD_EINVAL, at->key_at,
				     "'%s' of system '%s' cannot be used together with %s%s", treatments[e->first].name,
				     system->name, other, e->why);
	}
	return PSD_OK;
}

/* Without 'staleness' no sum may be missing, whatever 'reads' says. */
static enum psd_status check_reads(const struct psd_system *system, const struct psd_node *entry, struct psd_error *err)
{
	const struct psd_node *reads = psd_node_child(entry, "reads");

	if (!reads || psd_node_child(entry, "staleness"))
		return PSD_OK;
	return psd_error_set(
		err, PSD_EINVAL, reads->key_at,
		"'reads' of system '%s' is '%s', needs 'staleness' beside it: 1 to %d iterations, or 0 for "
		"synchronous training",
		system->name, psd_reads_names[system->reads], PSD_MOST_STALENESS);
}

static enum psd_status check_peers(const struct psd_system *system, const struct psd_node *entry, struct psd_error *err)
{
	const struct psd_local_sgd *of = &system->local_sgd;
	const struct {
		const char *key;
		bool is_used;
	} rivals[] = {{"window", of->window > 0},
		      {"fragments", of->fragments > 1},
		      {"delay", of->delay > 0},
		      {"outer", of->has_outer}};
	const struct psd_node *local = psd_node_child(entry, "local_sgd");

	if (system->peers == 0 && system->is_local && system->sync == PSD_SYNC_SFB)
		return psd_error_set(err, PSD_EINVAL, local->key_at,
				     "'local_sgd' of system '%s' needs 'peers' where 'sync' is 'sfb'", system->name);
	if (system->peers == 0)
		return PSD_OK;
	if (!system->is_local)
		return psd_error_set(err, PSD_EINVAL, psd_node_child(entry, "peers")->key_at,
				     "'peers' of system '%s' needs 'local_sgd', whose steps tell when workers average "
				     "their parameters",
				     system->name);
	for (unsigned k = 0; k < sizeof(rivals) / sizeof(rivals[0]); k++)
		if (rivals[k].is_used)
			return psd_error_set(err, PSD_EINVAL, psd_node_child(local, rivals[k].key)->key_at,
					     "'%s' of system '%s' cannot be used together with 'peers'", rivals[k].key,
					     system->name);
	if (system->schedule != PSD_SCHEDULE_WAIT_FREE)
		return psd_error_set(err, PSD_EINVAL, psd_node_child(entry, "schedule")->at,
				     "'schedule' is '%s', must be 'wait-free' with 'peers'",
				     psd_schedule_names[system->schedule]);
	if (system->rule != PSD_RULE_BYTES)
		return psd_error_set(err, PSD_EINVAL, psd_node_child(entry, "rule")->at,
				     "'rule' is '%s', must be 'bytes' with 'peers'", psd_rule_names[system->rule]);
	return PSD_OK;
}

static enum psd_status check_budget(const struct psd_scenario *scenario, const struct psd_system *system,
				    const struct psd_node *entry, struct psd_error *err)
{
	const struct psd_node *budget = psd_node_child(entry, "budget");

	if (!budget)
		return PSD_OK;
	const double least_bps = fmax(LEAST_BUDGET_BPS, LEAST_WORKER_BUDGET_BPS * psd_scenario_most_per_node(scenario));
	if (system->budget_bps < least_bps)
		return psd_error_set(err, PSD_EINVAL, budget->at, "'budget' is '%.80s', must be %gMbps or more%s",
				     budget->text, 1e-6 * least_bps,
				     least_bps > LEAST_BUDGET_BPS ? ", 5Mbps for each worker of a node" : "");
	if (scenario->network.topology == PSD_TOPOLOGY_PLATFORM)
		return psd_error_set(
			err, PSD_EINVAL, budget->key_at,
			"'budget' of system '%s' has no effect with 'platform', whose file defines the links",
			system->name);
	if (scenario->n_backgrounds > 0)
		return psd_error_set(err, PSD_EINVAL, budget->key_at,
				     "'budget' of system '%s' cannot be used together with 'background', whose traffic "
				     "it would limit, too",
				     system->name);
	return PSD_OK;
}

static enum psd_status check(const struct psd_schema_reader *reader, void *base, const struct psd_node *entry)
{
	const struct psd_scenario *scenario = reader->base;
	const struct psd_system *system = base;

	PSD_TRY(check_name(scenario, system, psd_node_child(entry, "name")->at, reader->err));
	PSD_TRY(check_exclusions(system, entry, reader->err));
	PSD_TRY(check_reads(system, entry, reader->err));
	PSD_TRY(check_peers(system, entry, reader->err));
	PSD_TRY(check_budget(scenario, system, entry, reader->err));
	if (system->finds_early && system->budget_bps == 0.0)
		return psd_error_set(reader->err, PSD_EINVAL, psd_node_child(entry, "managed")->key_at,
				     "'managed' of system '%s' needs 'early', or 'budget' beside it", system->name);
	if (system->host.incast_ratio > 0.0 && system->host.transport_bps == 0.0)
		return psd_error_set(reader->err, PSD_EINVAL, entry->at,
				     "'incast' of system '%s' has no effect without 'transport', which it slows",
				     system->name);
	if (system->host.transport_bps > 0.0 && scenario->network.topology == PSD_TOPOLOGY_PLATFORM)
		return psd_error_set(reader->err, PSD_EINVAL, entry->at,
				     "'transport' of system '%s' has no effect with 'platform', whose file defines "
				     "the links",
				     system->name);
	if (system->host.device_share_ratio > 0.0 && scenario->machine.cores)
		return psd_error_set(
			reader->err, PSD_EINVAL, entry->at,
			"'device_share' of system '%s' has no effect with 'machine', whose cores all operations share",
			system->name);
	return PSD_OK;
}

const struct psd_section psd_scenario_system = {.tables = {keys}, .prepare = prepare, .settle = settle, .check = check};

enum psd_status psd_scenario_find_baseline(const struct psd_schema_reader *reader, const struct psd_node *root)
{
	struct psd_scenario *scenario = reader->base;

	scenario->baseline_system = -1;
	for (unsigned i = 0; i < scenario->n_systems; i++)
		if (!strcmp(scenario->systems[i].name, scenario->baseline))
			scenario->baseline_system = (int)i;
	if (scenario->baseline_system >= 0 || !strcmp(scenario->baseline, compute_baseline))
		return PSD_OK;
	return psd_error_set(reader->err, PSD_EINVAL, psd_node_child(root, "baseline")->at,
			     "'baseline' is '%.80s', must be the name of a system or '%s'", scenario->baseline,
			     compute_baseline);
}

enum psd_status psd_scenario_find_system(const struct psd_scenario *scenario, const char *name, unsigned *index,
					 struct psd_error *err)
{
	const char *all[PSD_MAX_SYSTEMS + 1] = {NULL}, *near;
	char names[512] = "";
	size_t length = 0;
	unsigned i = 0;

	for (; i < scenario->n_systems; i++) {
		all[i] = scenario->systems[i].name;
		if (!strcmp(all[i], name)) {
			*index = i;
			return PSD_OK;
		}
		if (length < sizeof(names))
			length +=
				(size_t)snprintf(names + length, sizeof(names) - length, "%s%s", i ? ", " : "", all[i]);
	}
	near = psd_spelling_find(name, all, &i) ? all[i] : psd_spelling_nearest(name, all);
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){scenario->path, 0, 0},
			     "has no system '%.80s', must be one of %s%s%.80s%s", name, names,
			     near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

bool psd_system_has_workload(const struct psd_system *system)
{
	const struct psd_workload *own = &system->own;

	return own->batch_per_worker || own->precision_name || own->recompute_name || own->profile_path ||
	       own->device_name || own->samples_per_sec > 0.0 || own->mfu_ratio > 0.0;
}

/* A device or profile of its own makes throughputs of another one void. */
static void override(struct psd_workload *workload, const struct psd_workload *own)
{
	if (own->batch_per_worker)
		workload->batch_per_worker = own->batch_per_worker;
	if (own->precision_name)
		workload->precision_name = own->precision_name;
	if (own->recompute_name)
		workload->recompute_name = own->recompute_name;
	if (own->profile_path || own->device_name) {
		workload->profile_path = own->profile_path;
		workload->device_name = own->device_name;
	}
	if (own->profile_path || own->device_name || own->samples_per_sec > 0.0 || own->mfu_ratio > 0.0) {
		workload->samples_per_sec = own->samples_per_sec;
		workload->mfu_ratio = own->mfu_ratio;
	}
}

struct psd_workload psd_scenario_workload(const struct psd_scenario *scenario, const struct psd_system *system)
{
	const struct psd_workload *own = &system->own;
	struct psd_workload workload = {
		.batch_per_worker = scenario->batch_per_worker,
		.precision_name = psd_precision_names[scenario->precision],
		.recompute_name = psd_recompute_names[scenario->recomputes],
		.profile_path = scenario->profile_path,
		.device_name = scenario->device_name,
		.samples_per_sec = scenario->samples_per_sec,
		.mfu_ratio = scenario->mfu_ratio,
	};

	override(&workload, own);
	return workload;
}

struct psd_workload psd_scenario_group_workload(const struct psd_scenario *scenario, const struct psd_system *system,
						const struct psd_node_group *group)
{
	struct psd_workload workload = psd_scenario_workload(scenario, system);

	override(&workload, &group->own);
	return workload;
}

unsigned psd_scenario_group_workers(const struct psd_scenario *scenario, const struct psd_node_group *group)
{
	return group->workers_per_node ? group->workers_per_node : scenario->workers_per_node;
}

unsigned psd_scenario_workers(const struct psd_scenario *scenario, unsigned n_nodes)
{
	unsigned workers = 0, left = n_nodes;

	for (unsigned g = 0; g < scenario->n_groups; g++) {
		const unsigned n = scenario->groups[g].nodes < left ? scenario->groups[g].nodes : left;

		workers += n * psd_scenario_group_workers(scenario, &scenario->groups[g]);
		left -= n;
	}
	return workers + left * scenario->workers_per_node;
}

unsigned psd_scenario_most_per_node(const struct psd_scenario *scenario)
{
	unsigned most = scenario->n_groups > 0 ? 1 : scenario->workers_per_node;

	for (unsigned g = 0; g < scenario->n_groups; g++) {
		const unsigned own = psd_scenario_group_workers(scenario, &scenario->groups[g]);

		most = own > most ? own : most;
	}
	return most;
}

unsigned psd_scenario_group(const struct psd_scenario *scenario, unsigned node)
{
	unsigned group = 0;

	for (unsigned end = 0; group < scenario->n_groups; group++) {
		end += scenario->groups[group].nodes;
		if (node < end)
			break;
	}
	return group;
}

bool psd_scenario_find_links(const struct psd_scenario *scenario, double *least_bps, double *most_bps)
{
	double slowest_bps = INFINITY, fastest_bps = 0.0;

	for (unsigned g = 0; g < scenario->n_groups; g++) {
		slowest_bps = fmin(slowest_bps, scenario->groups[g].bandwidth_bps);
		fastest_bps = fmax(fastest_bps, scenario->groups[g].bandwidth_bps);
	}
	for (unsigned s = 0; s < scenario->n_systems; s++)
		if (scenario->systems[s].servers > 0)
			return false;
	if (scenario->n_groups == 0 || slowest_bps <= 0.0 || scenario->network.topology != PSD_TOPOLOGY_STAR)
		return false;
	*least_bps = slowest_bps;
	*most_bps = fastest_bps;
	return true;
}

double psd_scenario_fastest_link_bps(const struct psd_scenario *scenario, const struct psd_system *system,
				     double bandwidth_bps)
{
	double fastest_bps = scenario->n_groups == 0 || system->servers > 0 ? bandwidth_bps : 0.0;

	for (unsigned g = 0; g < scenario->n_groups; g++) {
		const double own_bps = scenario->groups[g].bandwidth_bps;

		fastest_bps = fmax(fastest_bps, own_bps > 0.0 ? own_bps : bandwidth_bps);
	}
	return fastest_bps;
}

/* A rate that the group gives, or says to be free, replaces another one. */
static void take_rate(double *rate_bps, bool *is_free, double own_bps, bool is_own_free)
{
	if (own_bps == 0.0 && !is_own_free)
		return;
	*rate_bps = is_own_free ? 0.0 : own_bps;
	*is_free = is_own_free;
}

static void take_group_host(struct psd_host_costs *host, const struct psd_host_costs *own)
{
	take_rate(&host->copy_bps, &host->is_copy_free, own->copy_bps, own->is_copy_free);
	take_rate(&host->reduce_bps, &host->is_reduce_free, own->reduce_bps, own->is_reduce_free);
	take_rate(&host->update_bps, &host->is_update_free, own->update_bps, own->is_update_free);
	take_rate(&host->convert_bps, &host->is_convert_free, own->convert_bps, own->is_convert_free);
	take_rate(&host->transport_bps, &host->is_transport_free, own->transport_bps, own->is_transport_free);
}

struct psd_system psd_scenario_group_system(const struct psd_scenario *scenario, const struct psd_system *system,
					    const struct psd_node_group *group)
{
	const struct psd_node *entry = psd_node_child(scenario->root, "systems");
	struct psd_system of_group = *system;

	entry = entry ? entry->first : NULL;
	for (unsigned s = 0; s < system->number && entry; s++)
		entry = entry->next;
	override(&of_group.own, &group->own);
	psd_scenario_settle_device(scenario, &of_group, entry);
	take_group_host(&of_group.host, &group->host);
	return of_group;
}

uint64_t psd_scenario_all_samples(const struct psd_scenario *scenario, const struct psd_system *system,
				  unsigned n_nodes, unsigned workers)
{
	const bool is_whole = workers == psd_scenario_workers(scenario, n_nodes);
	uint64_t samples = 0;
	unsigned left = n_nodes;

	for (unsigned g = 0; g < scenario->n_groups; g++) {
		const struct psd_node_group *group = &scenario->groups[g];
		const unsigned n = group->nodes < left ? group->nodes : left;

		left -= n;
		samples += (uint64_t)n * (is_whole ? psd_scenario_group_workers(scenario, group) : workers / n_nodes) *
			   psd_scenario_group_workload(scenario, system, group).batch_per_worker;
	}
	return samples > 0 ? samples * psd_system_micro_batches(system)
			   : (uint64_t)workers * psd_scenario_samples(scenario, system);
}

uint32_t psd_system_micro_batches(const struct psd_system *system)
{
	return system->accumulate ? system->accumulate : 1;
}

uint32_t psd_scenario_samples(const struct psd_scenario *scenario, const struct psd_system *system)
{
	return psd_scenario_workload(scenario, system).batch_per_worker * psd_system_micro_batches(system);
}

enum psd_precision psd_workload_precision(const struct psd_workload *workload)
{
	enum psd_precision precision = PSD_PRECISION_FP32;

	while (strcmp(psd_precision_names[precision], workload->precision_name) != 0)
		precision++;
	return precision;
}

bool psd_workload_recomputes(const struct psd_workload *workload)
{
	return strcmp(workload->recompute_name, psd_recompute_names[true]) == 0;
}

bool psd_workload_is_half(const struct psd_workload *workload)
{
	return psd_precision_is_half(psd_workload_precision(workload));
}
