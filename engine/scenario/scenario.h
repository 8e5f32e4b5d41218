/* A scenario file that was read, checked and sealed: the model to train, the cluster, the systems to compare, and the
 * sweep. This module knows every key. An unknown key, a wrong unit or an impossible value is an error with
 * file:line:column. It opens no other file than the scenario, and Caffe's solver if asked to. */
#ifndef PSD_SCENARIO_H
#define PSD_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/reference.h"
#include "engine/base/text.h"
#include "engine/collectives/collective.h"
#include "engine/model/graph.h"
#include "engine/scenario/device.h"
#include "engine/scenario/job.h"
#include "engine/scenario/train.h"

enum {
	PSD_MAX_NODES = 65536,
	PSD_MAX_WORKERS_PER_NODE = 64,
	/* largest number of workers and separate servers together, at one point of the sweep */
	PSD_MAX_HOSTS = 1 << 20,
	PSD_MAX_MEASURED_ITERATIONS = 60000,
	PSD_MAX_SYSTEMS = 32,
	PSD_MAX_SWEEP = 256,
	PSD_MAX_SWEPT = 8,
	PSD_MAX_VARIANTS = 4096,
	PSD_MAX_SERVER_RACKS = 64,
	PSD_MAX_COLLECTIVE_CLASSES = 16,
	PSD_MAX_EVENTS = 256,
	PSD_MAX_CORES = 65536,
	PSD_MAX_LOCAL_STEPS = 10000,
	PSD_MAX_GROUPS = 16,
	PSD_MOST_PREFETCH = 64,
};

enum psd_schedule { PSD_SCHEDULE_SEQUENTIAL, PSD_SCHEDULE_WAIT_FREE, PSD_SCHEDULE_CLOCKED };
/* Methods that a system may name. HYBRID and SACP choose between two methods for each tensor. */
enum psd_sync {
	PSD_SYNC_PS,
	PSD_SYNC_TWO_LEVEL_PS,
	PSD_SYNC_SFB,
	PSD_SYNC_TWO_LEVEL_SFB,
	PSD_SYNC_ADAM,
	PSD_SYNC_HYBRID,
	PSD_SYNC_SACP,
	PSD_SYNC_ALL_REDUCE, /* the all-reduces: psd_all_reduces[i] is PSD_SYNC_ALL_REDUCE + i */
	/* the fastest of psd_all_reduces, chosen for each tensor */
	PSD_SYNC_AUTO = PSD_SYNC_ALL_REDUCE + PSD_N_ALL_REDUCES,
	PSD_SYNC_SHARDED, /* sharded data-parallel training: row i of PSD_SHARDED is PSD_SYNC_SHARDED + i */
	PSD_SYNC_ZERO_3 = PSD_SYNC_SHARDED + 2,
	/* the libraries: psd_libraries[i] is PSD_SYNC_LIBRARY + i */
	PSD_SYNC_LIBRARY = PSD_SYNC_SHARDED + PSD_N_SHARDED,
};
/* Quantity by which a system that chooses between methods compares them: bytes sent, by published rules, or predicted
 * seconds. The method with the smaller number wins. */
enum psd_rule { PSD_RULE_BYTES, PSD_RULE_SECONDS };
/* Workers among which sharded training divides updates: all, or those of each node. */
enum psd_shard_over { PSD_SHARD_OVER_CLUSTER, PSD_SHARD_OVER_NODE };
enum psd_barrier { PSD_BARRIER_ITERATION, PSD_BARRIER_LAYER };
enum psd_priority { PSD_PRIORITY_GENERATION, PSD_PRIORITY_FORWARD };
/* Gradients by which parameters are updated before an iteration with staleness. LATE: gradients of all workers, a fixed
 * number of iterations late. STALE: the worker's own gradients at once, and those of others as they arrive. */
enum psd_reads { PSD_READS_LATE, PSD_READS_STALE };
/* Gradients that are synchronised together: those of a whole layer, or a single tensor. */
enum psd_unit { PSD_UNIT_LAYER, PSD_UNIT_TENSOR };
/* Part of a gradient that was not sent which is added to the next gradient (error feedback): the momentum times that
 * gradient, or all of it. */
enum psd_feedback { PSD_FEEDBACK_MOMENTUM, PSD_FEEDBACK_FULL };
enum psd_fidelity { PSD_FIDELITY_FLOW, PSD_FIDELITY_MESSAGE };
enum psd_fabric { PSD_FABRIC_ETHERNET, PSD_FABRIC_INFINIBAND };
/* Parameters on each server: an equal range of every tensor, or whole tensors. */
enum psd_placement { PSD_PLACEMENT_RANGES, PSD_PLACEMENT_TENSORS };
enum psd_topology { PSD_TOPOLOGY_STAR, PSD_TOPOLOGY_RACKS, PSD_TOPOLOGY_FAT_TREE, PSD_TOPOLOGY_PLATFORM };

/* Costs of a collective, for one size class. The first entry of a list whose three bounds all hold is used. A ring of
 * P workers has n = 2(P-1) steps. It takes call_sec + n * step_sec + n/P * message bits / min(transport_bps, link rate
 * / slowdown_ratio), and in each step the latency of the network and of the host. */
struct psd_collective_class {
	uint64_t up_to_bytes; /* largest message, bytes; 0: no bound */
	uint64_t chunk_bytes; /* largest chunk: the message's bytes divided by the number of workers; 0: no bound */
	unsigned workers;     /* largest number of workers of the collective; 0: no bound */
	double call_sec;
	double step_sec;
	double slowdown_ratio; /* factor on the time that bytes take on the links, >= 1 */
};

/* Costs of the software on a host that moves and sums gradients. Rates are bits per second. */
struct psd_host_costs {
	/* rate of copies between the memories of device and host, each direction, bits per second; 0: copies take no
	 * time */
	double copy_bps;
	/* rate at which a server, or the first worker of a node, sums gradients and applies them, bits per second; 0:
	 * no time */
	double reduce_bps;
	/* rate at which a worker applies gradients if no server does, bits per second; 0: no time */
	double update_bps;
	/* largest rate of the software into or out of a node, each direction, bits per second; 0: unlimited */
	double transport_bps;
	/* largest rate of the software into or out of a worker, for traffic inside its node, bits per second; 0:
	 * unlimited */
	double local_bps;
	/* slowdown for each sender to the same receiver: rate = transport_bps / (1 + incast_ratio * senders) */
	double incast_ratio;
	/* time that the software of sender and receiver together adds to a message between nodes */
	double latency_sec;
	double iteration_sec; /* time that the software needs at the end of each iteration */
	/* time before each all-reduce of a wait-free schedule, in which workers agree that all are ready */
	double agree_sec;
	/* fixed time of a worker's device for each tensor to which it applies a sum of gradients */
	double tensor_sec;
	/* share of a worker's device that an all-reduce occupies while it runs, 0 to less than 1 */
	double device_share_ratio;
	double share_ratio; /* largest share of a link's rate that the software reaches; 0: the whole rate */
	/* Share of a link's rate that several streams reach together. Their rate is this share, or transport_bps if
	 * that is higher. 0: transport_bps. */
	double streams_ratio;
	/* Rate at which a device reads and writes bytes when it casts or compresses values, bits per second; 0:
	 * update_bps. */
	double convert_bps;
	double launch_sec; /* time in which a device with its own memory launches a kernel that casts or compresses */
	/* number of requests by which a worker sends the gradient of a tensor to one shard; 0 means 1 */
	unsigned requests;
	double request_sec; /* processor time of a shard for each of these requests, seconds */
	bool is_copy_free, is_reduce_free, is_update_free, is_convert_free, is_transport_free, is_local_free;
	struct psd_collective_class collective[PSD_MAX_COLLECTIVE_CLASSES];
	/* Number of entries of `collective`. 0: a collective takes only the time of its bytes and latencies. */
	unsigned n_collective_classes;
};

struct psd_network {
	enum psd_topology topology;
	enum psd_fabric fabric;
	double bandwidth_bps; /* bandwidth of a node's link, each direction, bits per second */
	/* share of a link's rate that remains for tensors beside packet headers, up to 1 */
	double payload_ratio;
	/* one-way latency of the network between two nodes, without the host's (psd_host_costs.latency_sec) */
	double latency_sec;
	/* topologies racks and fat-tree: number of worker nodes below one leaf switch */
	unsigned nodes_per_rack;
	/* Topologies racks and fat-tree: bandwidth of all node links below a leaf switch, divided by the bandwidth of
	 * its uplinks; >= 1. */
	double oversubscription_ratio;
	/* Topologies racks and fat-tree: server i is in rack servers_in[i % n_servers_in]. */
	uint64_t servers_in[PSD_MAX_SERVER_RACKS];
	/* number of entries of servers_in; 0: servers are spread evenly over the racks of workers */
	unsigned n_servers_in;
	const char *platform_path; /* topology platform only: file of SimGrid XML, relative to the working directory */
	/* bandwidth of a worker's link inside its node, each direction, bits per second; 0: unlimited */
	double local_bps;
	double local_latency_sec; /* one-way latency between two workers of a node */
	/* number of PCIe switches in a node, each with equally many workers; 0: one that never blocks */
	unsigned local_switches;
	/* bandwidth of the uplink of a PCIe switch, each direction, bits per second; 0: equal to local_bps */
	double between_bps;
};

/* Hardware whose processor cores compute layers, sum gradients, update parameters and serve sockets: a node without
 * accelerators, or one computer that emulates several nodes. With at least as many cores as workers and servers, each
 * of these has its own share of the cores. Otherwise all share all cores. */
struct psd_machine {
	/* cores of one machine; 0: not modelled, so layers use devices and sockets take no processor time */
	unsigned cores;
	unsigned nodes;	  /* number of nodes that share one machine; 0: all nodes of the cluster */
	unsigned threads; /* largest number of cores that a layer uses, copied from train.threads */
	/* rate at which one idle core moves bytes through sockets, sent plus received, bits per second; 0:
	 * unlimited */
	double bytes_bps;
	/* Processor time at each end of a message, in addition to the time of its bytes, seconds. If a sender sends
	 * messages without a pause, only the first one costs it. */
	double message_sec;
};

/* Cluster on which the scenario's constants were measured. Predictions for more workers, or for another bandwidth, are
 * marked as extrapolated. */
struct psd_calibrated {
	/* largest number of workers that was measured; 0: not calibrated, or calibrated without links */
	unsigned workers;
	double bandwidth_bps;
	/* largest spread among the measurements, relative: spread of a value divided by the value; 0: not known */
	double spread_ratio;
};

#define PSD_MOST_SPREAD_RATIO 1000.0

/* A node whose speed differs from its normal speed, from from_sec to until_sec after the start of the run (infinity:
 * until its end). */
struct psd_slowdown {
	unsigned node;
	double compute_ratio; /* compute speed of the node, divided by its normal speed: 0.5 is half as fast */
	double link_ratio;
	double from_sec, until_sec;
};

/* Traffic of another job: a transfer of `bytes` bytes between two nodes, every period_sec seconds during the whole
 * run. */
struct psd_background {
	unsigned from_node, to_node;
	uint64_t bytes;
	/* time from one transfer to the next; 0: each transfer begins when the one before has ended */
	double period_sec;
};

extern const char *const psd_recompute_names[]; /* "none", "blocks", NULL */

/* Batch and compute speed of a worker. In struct psd_system, 0 or NULL means that the scenario's value holds. */
struct psd_workload {
	uint32_t batch_per_worker;
	const char *precision_name; /* arithmetic of layers, one of psd_precision_names */
	const char *recompute_name; /* part that backward computes again, one of psd_recompute_names */
	const char *profile_path;   /* file of measured layer times; NULL: a device is given */
	const char *device_name;    /* device whose layer times are computed; NULL: a profile is given */
	/* Measured throughput of one worker, to which the times of all layers are scaled; 0: times are not scaled to
	 * it. */
	double samples_per_sec;
	/* Share of the device's peak FLOPs that a worker achieves (MFU), to which the times of all layers are scaled;
	 * 0: times are not scaled to it. */
	double mfu_ratio;
};

/* Order in which managed communication sends chunks early, see `systems.managed.priority`. */
enum psd_importance {
	PSD_IMPORTANCE_MAGNITUDE,
	PSD_IMPORTANCE_RANDOM,
	PSD_IMPORTANCE_GENERATION,
	PSD_IMPORTANCE_FORWARD
};

/* Group of consecutive worker nodes, which differ from other groups in their devices, numbers of workers, batches or
 * links. */
struct psd_node_group {
	unsigned nodes;
	unsigned workers_per_node; /* number of workers on each of its nodes; 0: the cluster's */
	/* batch and compute speed of the group's workers; 0 and NULL: the scenario's or the system's value holds */
	struct psd_workload own;
	double speed_ratio;   /* factor by which devices of the group are faster than their layer times; > 0 */
	double bandwidth_bps; /* bandwidth of a node's link, each direction; 0: the cluster's */
	double latency_sec;   /* one-way latency between two nodes of the group; 0: the cluster's */
	/* costs of the software on the group's hosts; keys that the group does not give are the system's */
	struct psd_host_costs host;
};

/* Division of the samples of an iteration among groups of nodes. EVEN: each worker has the batch that its group gives,
 * or else the scenario's. SPEED: by predicted seconds, so that the slowest worker is as fast as possible. MEASURED: by
 * the seconds that psd-run measures before it trains; psd-sim uses predicted seconds. */
enum psd_split { PSD_SPLIT_EVEN, PSD_SPLIT_SPEED, PSD_SPLIT_MEASURED };

/* Sparse communication of chunks (coarse-grained): in each iteration workers exchange only the chunks of gradients
 * with the largest norms. Source: Sun et al. 2019 (arXiv 1902.06855), section 3.2. Managed communication is the
 * same with clocks. Source: Wei et al. 2015 (Managed Communication and Consistency for Fast Data-Parallel
 * Iterative Analytics, SoCC), section 3. */
struct psd_sparse {
	double sparsity;	 /* share of chunks that are not sent in an iteration; less than 1 */
	uint64_t chunk_elements; /* number of values in a chunk; the last chunk of a bucket may have fewer */
	/* number of iterations in which the share of chunks that are not sent rises from 0 to `sparsity` */
	uint64_t warmup_iterations;
	enum psd_feedback feedback;
	/* Managed communication: number of iterations of a clock, in the last of which all chunks are sent; 0: there
	 * are no clocks. */
	uint64_t clock;
	/* managed communication: share of chunks that are sent in the iterations before the last of a clock */
	double early_ratio;
	enum psd_importance importance; /* managed communication: chunks that are sent early */
};

/* Outer optimiser of local SGD: the mean change of all workers' parameters is a gradient, by which the parameters of
 * the last exchange are updated. Source: Douillard et al. 2023, DiLoCo (arXiv 2311.08105). */
struct psd_outer {
	double rate;	 /* 1 without momentum: parameters become the average */
	double momentum; /* 0: no state is kept */
	bool is_nesterov;
};

/* Local SGD: each worker updates its own parameters, and after every few iterations workers average their parameters.
 * With `window` this number of iterations adapts to the loss: Wang and Joshi 2019, AdaComm (arXiv 1810.08313). */
struct psd_local_sgd {
	/* number of iterations from one exchange to the next; the initial number if `window` is set */
	uint64_t steps;
	/* length of a window in iterations; after each window `steps` is chosen again by the loss; 0: `steps` is
	 * constant */
	uint64_t window;
	/* Allowed rise of a window's mean loss above the lowest mean loss of earlier windows: 0.1 allows 1.1 times the
	 * lowest. After a larger rise workers exchange in each iteration. 0: no limit. */
	double gap_ratio;
	/* Number of groups of buckets (fragments), which exchange one after the other in a period; 0 or 1: all exchange
	 * together. Source: Douillard et al. 2025, Streaming DiLoCo (arXiv 2501.18512). */
	unsigned fragments;
	/* Number of iterations from an exchange's begin to the one in which workers join its result. Local steps
	 * between them are kept. */
	unsigned delay;
	bool has_outer;
	struct psd_outer outer; /* parameters of the outer optimiser, if has_outer */
};

enum psd_compressed { PSD_COMPRESSED_ALL, PSD_COMPRESSED_MATRICES };
enum psd_momentum { PSD_MOMENTUM_AFTER, PSD_MOMENTUM_BEFORE };

/* Lossy compression of gradients on their way to the shards, and of the sums on the way back. The values lost by
 * compression are added to the next gradient or sum (error feedback). Sources: Seide et al. 2014 (1-bit SGD); Tang et
 * al. 2019, DoubleSqueeze (arXiv 1905.05957); for momentum before compression, Lin et al. 2018 (arXiv 1712.01887),
 * section 3.2. */
struct psd_compress {
	unsigned by;		 /* index in psd_compressions */
	uint64_t block_elements; /* number of values in a block, which are compressed together */
	double kept_ratio;	 /* top-k only: share of a block's values that is sent */
	enum psd_compressed tensors;
	/* momentum is applied to the sum (AFTER), or to each worker's gradient before compression (BEFORE) */
	enum psd_momentum momentum;
};

/* Low-rank compression: workers send two narrow matrices whose product approximates the gradient. Source: Vogels et
 * al. 2019, PowerSGD (arXiv 1905.13727). */
struct psd_low_rank {
	unsigned rank; /* number of columns of one matrix and of rows of the other; 1 to PSD_MOST_RANK */
};

enum { PSD_MOST_STALENESS = 16 };

enum psd_async_rate { PSD_ASYNC_RATE_PLAIN, PSD_ASYNC_RATE_BY_STALENESS };

/* Asynchronous training: servers update by each worker's gradient as it arrives. */
struct psd_async {
	/* Number of iterations by which a worker may be ahead of the slowest. */
	uint64_t bound;
	enum psd_async_rate rate;
};
enum { PSD_MOST_BOUND = 1000 };

struct psd_stack_row; /* defined in engine/scenario/stack.h */

struct psd_system {
	const char *name;
	enum psd_schedule schedule;
	enum psd_sync sync;
	enum psd_rule rule;
	enum psd_barrier barrier;
	enum psd_priority priority;
	enum psd_unit unit;
	unsigned servers; /* number of separate server nodes; 0: one shard on every worker node */
	/* Key `pair`: smallest part of a tensor that a worker sends to one shard. Slices (psd_plan_slice()) are not
	 * smaller than these parts for all shards. */
	uint64_t pair_bytes;
	/* smallest size of a bucket of tensors; 0: each exchange has a single layer or tensor */
	uint64_t fuse_bytes;
	enum psd_shard_over shard_over;
	unsigned prefetch; /* ZeRO-3: number of buckets whose parameters are gathered ahead of their use */
	/* Key `fuse` is `auto`: the plan uses the fastest size of buckets instead of fuse_bytes. */
	bool finds_fuse;
	/* largest part that an all-reduce sums while the next part is copied from the device; 0: no parts */
	uint64_t pipeline_bytes;
	/* largest size of a slice; exceeded where each shard's part would be less than pair_bytes */
	uint64_t slice_bytes;
	/* Number of iterations by which the update with a gradient may be late: 0 to PSD_MOST_STALENESS. */
	unsigned staleness;
	unsigned peers; /* number of peers to which a worker sends factors in an iteration; 0: all */
	enum psd_reads reads;
	bool is_async;
	struct psd_async async; /* parameters of asynchronous training, if is_async */
	/* number of micro-batches in an iteration, see psd_system_micro_batches(); 0: not given */
	unsigned accumulate;
	enum psd_split split;
	unsigned wire; /* index in psd_encodings: encoding of the values that hosts send */
	/* largest rate at which each node sends, and at which it receives, packet headers included, bits per second; 0:
	 * no limit but the links' */
	double budget_bps;
	bool is_sparse;
	struct psd_sparse sparse; /* parameters of sparse communication, if is_sparse */
	bool is_managed;
	struct psd_sparse managed; /* parameters of managed communication, if is_managed */
	/* Key `early` is not given: the plan uses the share of chunks that the budget carries during the passes. */
	bool finds_early;
	bool is_compressed;
	struct psd_compress compress; /* parameters of compression, if is_compressed */
	bool is_low_rank;
	struct psd_low_rank low_rank; /* parameters of low-rank compression, if is_low_rank */
	bool is_local;
	struct psd_local_sgd local_sgd; /* parameters of local SGD, if is_local */
	enum psd_placement placement;
	const char *stack_name; /* software stack that the system itself names; NULL: none */
	/* software stack in use: the system's, else the cluster's, else the default */
	const struct psd_stack_row *stack;
	/* costs in use: for each key the system's value, else the cluster's, else the stack's */
	struct psd_host_costs host;
	unsigned number; /* index among the scenario's systems */
	/* values in place of the scenario's, see psd_scenario_workload(); 0 and NULL: the scenario's holds */
	struct psd_workload own;
	struct psd_place at;
	const struct psd_node *entry; /* node of the system, owned by the scenario; NULL: none */
};

enum { PSD_MOST_DILATION = 1000000 };

/* Replay: psd-run waits for the predicted time of each operation instead of computing, but really sends all messages.
 * A small computer can emulate a large cluster if everything, links too, is slowed down by one factor. Predictions
 * ignore this struct and describe the cluster at full speed. */
struct psd_replay {
	double dilation_ratio; /* factor by which the whole cluster is slowed down; 1 to PSD_MOST_DILATION */
	/* key `dilation` is `auto`: psd-run finds the smallest usable factor and ignores dilation_ratio */
	bool finds_dilation;
	/* Share of each message's bytes that is sent, > 0 and <= 1. Links are slower by the same ratio, so that each
	 * message takes the same time. */
	double payload_ratio;
	/* Number of workers that really compute: the first ones. The others replay. 0: all replay. A value above 0
	 * requires payload_ratio 1 and dilation_ratio 1. */
	unsigned real_workers;
};

/* Smallest and largest link rate that psd-run can emulate for a worker, bits per second. */
#define PSD_RUN_MIN_BPS 1e5
#define PSD_RUN_MAX_BPS 400e9

/* Parameters of a random factor on all work of a worker's device in one iteration, in addition to the jitter of single
 * layers. */
struct psd_spread {
	double ratio;		  /* standard deviation of the factor, which has the mean 1; 0: no such factor */
	double tail_chance_ratio; /* share of iterations that are slow as a whole; 0: none */
	double tail_factor;	  /* factor on the device's times in these slow iterations, >= 1 */
};

/* A key of the scenario that a sweep sets, with the value that it has in this variant. Strings are the scenario's. */
struct psd_swept {
	const char *path;	    /* "model.batch_per_worker" */
	const char *section, *name; /* last two words of the path: "network", "latency" */
	const char *column; /* path with the unit of its values, "cluster.network.latency_sec": name of a column */
	const char *text;   /* value as written: "5us" */
	const char *value;  /* value for programs, if it is not a number: the name of a choice, or a text */
	bool has_number;
	double number;		       /* value of the key as a number, in the unit that `column` names */
	const struct psd_node *values; /* list of all values */
};

struct psd_scenario {
	const char *path;
	const char *title;
	/* path of the model file; this path and all others are relative to the working directory */
	const char *graph_path;
	/* user's choices about the model file; the member `sample` is not set */
	struct psd_model_choices choices;
	uint32_t batch_per_worker;
	enum psd_precision precision;
	bool recomputes;	  /* `model.recompute` is `blocks` */
	const char *profile_path; /* file of measured layer times; NULL: device_name is given */
	const char *device_name;  /* device whose layer times are computed; NULL: profile_path is given */
	/* Measured throughput of one worker, to which the times of all layers are scaled; 0: times are not scaled to
	 * it. */
	double samples_per_sec;
	/* Share of the device's peak FLOPs that a worker achieves (MFU), to which the times of all layers are scaled;
	 * 0: times are not scaled to it. */
	double mfu_ratio;
	/* Standard deviation of the random factor on each layer's compute time, drawn per worker and iteration; 0:
	 * none. */
	double jitter_ratio;
	struct psd_spread spread;
	bool has_replay;
	struct psd_replay replay;
	unsigned nodes;
	unsigned workers_per_node;
	struct psd_node_group groups[PSD_MAX_GROUPS]; /* groups of nodes, in the order of the nodes */
	unsigned n_groups;			      /* 0: all nodes are alike */
	struct psd_network network;
	struct psd_machine machine;
	const char *stack_name; /* software stack of the systems that name none; NULL: each system's default */
	struct psd_host_costs host;
	struct psd_slowdown slowdowns[PSD_MAX_EVENTS];
	unsigned n_slowdowns;
	struct psd_background backgrounds[PSD_MAX_EVENTS];
	unsigned n_backgrounds;
	struct psd_system systems[PSD_MAX_SYSTEMS];
	unsigned n_systems;
	uint64_t sweep_nodes[PSD_MAX_SWEEP];
	unsigned n_sweep_nodes;
	uint64_t sweep_workers[PSD_MAX_SWEEP]; /* total numbers of workers, instead of sweep_nodes */
	unsigned n_sweep_workers;
	double sweep_bandwidth_bps[PSD_MAX_SWEEP];
	unsigned n_sweep_bandwidths;
	/* smallest sizes of buckets, for the systems that fuse tensors by a given size */
	uint64_t sweep_fuse_bytes[PSD_MAX_SWEEP];
	unsigned n_sweep_fuses;
	/* keys that the sweep sets beside these; their values are those of this variant */
	struct psd_swept swept[PSD_MAX_SWEPT];
	unsigned n_swept;
	enum psd_fidelity fidelity;
	/* number of measured iterations; 0: the program that executes the scenario chooses */
	unsigned iterations;
	uint64_t most_events; /* largest number of simulated events, in all cases of a prediction together */
	uint64_t seed;
	const char *baseline; /* system whose throughput has speedup 1: its name, or "compute" */
	/* index of that system; -1 for "compute": one worker that only computes has speedup 1 */
	int baseline_system;
	const char *published_path; /* path of a file of published results, for comparison; NULL: none */
	struct psd_calibrated calibration;
	bool has_job;
	struct psd_training_job job; /* bounds and prices of the whole training, for questions */
	bool has_train;
	struct psd_train train;	       /* training job that psd-run executes */
	const struct psd_node *root;   /* tree of the file, with the values of --set */
	const char *const *settings;   /* settings of the options, ends with NULL; a variant has NULL */
	const struct psd_node *whole;  /* tree with the swept keys, from which other variants are read */
	struct psd_document *document; /* document that owns most of the strings here */
	void *owned;		       /* owner of the other strings, such as joined paths; private */
};

/* psd_scenario_load() reads and checks the file `path`; psd_scenario_parse() does it with length bytes of text, which
 * messages call `path`. *scenario is filled on success and released by psd_scenario_release(). `settings`:
 * "key.path=value" strings of the options --set, NULL-terminated. They replace or add values and are checked in the
 * same way; messages name "--set key.path" as their place. PSD_EFILE, PSD_EINVAL with place, PSD_ENOMEM. */
enum psd_status psd_scenario_load(struct psd_scenario *scenario, const char *path, const char *const settings[],
				  struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_scenario_parse(struct psd_scenario *scenario, const char *path, const char *text, size_t length,
				   const char *const settings[], struct psd_error *err) PSD_MUST_CHECK;
/* Returns the index of the system to which a swept key belongs; n_systems: to none, or to one that the key names in
 * another spelling. Pure. */
unsigned psd_scenario_swept_system(const struct psd_scenario *scenario, unsigned key);
/* Returns the number of variants: combinations of the values of swept keys, at least 1. */
unsigned psd_scenario_variants(const struct psd_scenario *scenario);
/* Makes variant i of a scenario. psd_scenario_load() and psd_scenario_parse() make variant 0; the last swept key
 * changes fastest. The variant borrows the tree of `scenario`, and is released first. PSD_EINVAL with place,
 * PSD_ENOMEM. */
enum psd_status psd_scenario_vary(struct psd_scenario *variant, const struct psd_scenario *scenario, unsigned i,
				  struct psd_error *err) PSD_MUST_CHECK;
/* Reads settings "model.KEY=VALUE" alone into scenario->choices; all other members of *scenario are empty.
 * psd_scenario_release() releases it. PSD_EINVAL: a setting has another key or a wrong value. */
enum psd_status psd_scenario_parse_choices(struct psd_scenario *scenario, const char *const settings[],
					   struct psd_error *err) PSD_MUST_CHECK;
void psd_scenario_release(struct psd_scenario *scenario);
/* Appends all values in use, defaults included, as a scenario file that reads back to equal values. Its paths are
 * relative to the working directory. */
void psd_scenario_add_text(struct psd_text *text, const struct psd_scenario *scenario);
/* Appends the explanations of the scenario keys that match how->topic. PSD_EINVAL: no key matches. */
enum psd_status psd_scenario_add_reference(struct psd_text *text, const struct psd_reference *how,
					   struct psd_error *err) PSD_MUST_CHECK;
/* Appends the explanations of all keys as a manual page. */
void psd_scenario_add_manual(struct psd_text *text, const char *version);
/* Appends a JSON schema of scenarios, for editors. */
void psd_scenario_add_json_schema(struct psd_text *text);
/* Appends the explanation of the key with that path, and its values, in one line without Markdown. */
void psd_scenario_add_meaning(struct psd_text *text, const char *path);
struct psd_command_table;
/* Appends a file that is installed beside a program, see psd_command_table_add_share(). A completion file completes
 * the paths of all keys that have plain values. PSD_EINVAL: there is no such kind. */
enum psd_status psd_scenario_add_share(struct psd_text *text, const struct psd_command_table *table, const char *kind,
				       const char *version, struct psd_error *err) PSD_MUST_CHECK;
/* If `train` names a Caffe solver, reads this file and sets the training job's values from it, see
 * psd_train_load_solver(). The scenario's seed becomes the solver's, unless the scenario gives one. Its
 * `iter_size` becomes the number of micro-batches of each system. PSD_EINVAL: a system has another one; statuses of
 * psd_train_load_solver(). */
enum psd_status psd_scenario_load_solver(struct psd_scenario *scenario, struct psd_error *err) PSD_MUST_CHECK;
/* Checks a scenario that was read. */
typedef enum psd_status (*psd_scenario_check_fn)(const struct psd_scenario *scenario, struct psd_error *err);
/* For the status and error with which check() refuses a variant of the scenario: if it would accept the variant without
 * one of the options, or with the first value of a swept key, the error gets the name of that option, or the place of
 * that value, in front. Unchanged: check() has no such error, or the error begins with an option. */
void psd_scenario_blame(const struct psd_scenario *scenario, unsigned variant, psd_scenario_check_fn check,
			enum psd_status status, struct psd_error *err);
/* For the status and error of a function that opens files of the scenario: if a file cannot be opened (PSD_EFILE) and a
 * key has its path, or that of its folder, the error gets the key's place and value in front. Returns the status. */
enum psd_status psd_scenario_place_file(const struct psd_scenario *scenario, enum psd_status status,
					struct psd_error *err) PSD_MUST_CHECK;

/* Sets *index to the index of the system with that name. PSD_EINVAL if there is none; the text lists all names. */
enum psd_status psd_scenario_find_system(const struct psd_scenario *scenario, const char *name, unsigned *index,
					 struct psd_error *err) PSD_MUST_CHECK;

/* Returns the batch and compute speed of the system's workers: for each key the system's value, or else the
 * scenario's. If the system names a device or profile, samples_per_sec and mfu of the scenario are ignored. Pure, any
 * thread. */
struct psd_workload psd_scenario_workload(const struct psd_scenario *scenario, const struct psd_system *system);
/* Returns the batch and compute speed of workers in a group of nodes: for each key the group's value, or else that of
 * psd_scenario_workload(). The split of the system may divide the sum of all batches anew. Pure, any thread. */
struct psd_workload psd_scenario_group_workload(const struct psd_scenario *scenario, const struct psd_system *system,
						const struct psd_node_group *group);
/* Returns the number of workers on each node of a group. Pure. */
unsigned psd_scenario_group_workers(const struct psd_scenario *scenario, const struct psd_node_group *group);
/* Returns the number of workers on the first n_nodes nodes; with groups, each node has its group's number. Pure. */
unsigned psd_scenario_workers(const struct psd_scenario *scenario, unsigned n_nodes);
/* Returns the largest number of workers on a node. Pure. */
unsigned psd_scenario_most_per_node(const struct psd_scenario *scenario);
/* Returns the number of the group to which a node belongs; n_groups: to none. Pure. */
unsigned psd_scenario_group(const struct psd_scenario *scenario, unsigned node);

/* Returns true if the links of all hosts belong to groups of nodes, so that `cluster.network.bandwidth` has no effect.
 * It has an effect with separate servers and with racks, whose links belong to no group. If true, sets *least_bps and
 * *most_bps to the bandwidths of the slowest and the fastest link, bits per second. */
bool psd_scenario_find_links(const struct psd_scenario *scenario, double *least_bps, double *most_bps);
/* Returns the bandwidth of the fastest link of a node, bits per second; bandwidth_bps: the one of the point. Pure. */
double psd_scenario_fastest_link_bps(const struct psd_scenario *scenario, const struct psd_system *system,
				     double bandwidth_bps);
/* Returns a system whose host has a group's costs: those that the group gives, or else those of the system and the
 * cluster, or else those that follow from the group's device. It borrows from both. Pure, any thread. */
struct psd_system psd_scenario_group_system(const struct psd_scenario *scenario, const struct psd_system *system,
					    const struct psd_node_group *group);
/* Returns the number of batches that a worker of the system computes before one exchange; 1 without accumulation. Pure,
 * any thread. */
uint32_t psd_system_micro_batches(const struct psd_system *system);
/* Returns the number of samples that a worker of the system computes in an iteration: batch_per_worker times the number
 * of micro-batches. Pure, any thread. */
uint32_t psd_scenario_samples(const struct psd_scenario *scenario, const struct psd_system *system);
/* Returns the number of samples that the first n_nodes nodes compute in an iteration; workers: number of workers on
 * them. Pure, any thread. */
uint64_t psd_scenario_all_samples(const struct psd_scenario *scenario, const struct psd_system *system,
				  unsigned n_nodes, unsigned workers);
/* Returns the precision that workload->precision_name names. workload: a result of psd_scenario_workload(). */
enum psd_precision psd_workload_precision(const struct psd_workload *workload);
/* True if gradients are sent as values of 16 bits because of the workload's precision. */
bool psd_workload_is_half(const struct psd_workload *workload);
/* True if backward computes the activations of repeated blocks again. */
bool psd_workload_recomputes(const struct psd_workload *workload);
/* Returns the option's place if an option set the system's key, otherwise the system's. */
struct psd_place psd_system_key_at(const struct psd_system *system, const char *key);
/* True if the system has its own value of at least one key of struct psd_workload, in place of the scenario's. */
bool psd_system_has_workload(const struct psd_system *system);

/* One point of the sweep: its values replace those of the scenario's cluster. */
struct psd_point {
	unsigned nodes;		   /* number of worker nodes */
	unsigned workers_per_node; /* largest number of workers on a node, at most `workers` */
	/* total number of workers; if it is not a multiple of workers_per_node, the last node has fewer, or groups of
	 * nodes have their own numbers */
	unsigned workers;
	double bandwidth_bps;
	/* Smallest size of buckets for the systems that fuse tensors by a given size; 0: the size in each system. */
	uint64_t fuse_bytes;
};

/* Return the number of points of the sweep, at least 1, and point i. Numbers of nodes or workers change fastest from
 * point to point, then bandwidths, then sizes of buckets; each in the order of the file. */
unsigned psd_scenario_points(const struct psd_scenario *scenario);
struct psd_point psd_scenario_point(const struct psd_scenario *scenario, unsigned i);
/* Returns the compute speed of a node, divided by its normal speed, while all its slowdowns last. Pure. */
double psd_scenario_compute_ratio(const struct psd_scenario *scenario, unsigned node);
/* Returns the smallest size of the system's buckets at the point. 0: the system fuses no tensors, or the plan finds
 * the size. Pure, any thread. */
uint64_t psd_system_fuse_bytes(const struct psd_system *system, const struct psd_point *point);

extern const char *const psd_schedule_names[]; /* values "sequential", "wait-free", "clocked", NULL */
/* names of enum psd_sync in its order, libraries included; NULL ends the array */
extern const char *const psd_sync_names[];
extern const char *const psd_rule_names[];     /* values "bytes", "seconds", NULL */
extern const char *const psd_reads_names[];    /* values "late", "stale", NULL */
extern const char *const psd_barrier_names[];  /* values "iteration", "layer", NULL */
extern const char *const psd_priority_names[]; /* values "generation", "forward", NULL */
extern const char *const psd_split_names[];    /* values "even", "speed", "measured", NULL */
extern const char *const psd_fidelity_names[]; /* values "flow", "message", NULL */
extern const char *const psd_topology_names[]; /* "star", "racks", "fat-tree", "platform", NULL */

#endif
