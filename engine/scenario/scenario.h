/* A scenario file read, checked and sealed: what to train, on which cluster, by which systems, over which sweep. Knows
 * every key; an unknown key, a wrong unit or an impossible value is an error with file:line:column. Reads no file but
 * the scenario itself. */
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
#include "engine/scenario/train.h"

enum {
	PSD_MAX_NODES = 65536,
	PSD_MAX_WORKERS_PER_NODE = 64,
	PSD_MAX_HOSTS = 1 << 20, /* largest number of workers and separate servers of one case */
	PSD_MAX_MEASURED_ITERATIONS = 60000,
	PSD_MAX_SYSTEMS = 32,
	PSD_MAX_SWEEP = 256,
	PSD_MAX_SERVER_RACKS = 64,
	PSD_MAX_COLLECTIVE_CLASSES = 16,
	PSD_MAX_EVENTS = 256,
	PSD_MAX_CORES = 65536,
	PSD_MAX_LOCAL_STEPS = 10000,
};

enum psd_schedule { PSD_SCHEDULE_SEQUENTIAL, PSD_SCHEDULE_WAIT_FREE, PSD_SCHEDULE_CLOCKED };
/* Methods that a system may name; hybrids choose one for each tensor. */
enum psd_sync {
	PSD_SYNC_PS,
	PSD_SYNC_TWO_LEVEL_PS,
	PSD_SYNC_SFB,
	PSD_SYNC_ADAM,
	PSD_SYNC_HYBRID,
	PSD_SYNC_SACP,
	PSD_SYNC_ALL_REDUCE, /* first of psd_all_reduces; the others have the next numbers */
	PSD_SYNC_AUTO = PSD_SYNC_ALL_REDUCE + PSD_N_ALL_REDUCES, /* any all-reduce, chosen for each tensor */
	PSD_SYNC_LIBRARY, /* first of PSD_LIBRARIES; the others have the next numbers */
};
enum psd_rule { PSD_RULE_BYTES, PSD_RULE_SECONDS }; /* quantity by which hybrids choose: the smallest wins */
enum psd_barrier { PSD_BARRIER_ITERATION, PSD_BARRIER_LAYER };
enum psd_priority { PSD_PRIORITY_GENERATION, PSD_PRIORITY_FORWARD };
enum psd_unit { PSD_UNIT_LAYER, PSD_UNIT_TENSOR };		/* gradients in one exchange */
enum psd_feedback { PSD_FEEDBACK_MOMENTUM, PSD_FEEDBACK_FULL }; /* added part of a held-back gradient */
enum psd_fidelity { PSD_FIDELITY_FLOW, PSD_FIDELITY_MESSAGE };
enum psd_fabric { PSD_FABRIC_ETHERNET, PSD_FABRIC_INFINIBAND };
enum psd_placement { PSD_PLACEMENT_RANGES, PSD_PLACEMENT_TENSORS }; /* parts of a tensor, or tensors, on each server */
enum psd_topology { PSD_TOPOLOGY_STAR, PSD_TOPOLOGY_RACKS, PSD_TOPOLOGY_FAT_TREE, PSD_TOPOLOGY_PLATFORM };

/* Cost of a collective in one size class: within all bounds. A ring of P workers with n = 2(P-1) steps takes call_sec +
 * n step_sec + n/P bytes / min(transport, link / slowdown_ratio), and both latencies for each step. */
struct psd_collective_class {
	uint64_t up_to_bytes; /* bound on the message's size; 0: no bound, as in the next two */
	uint64_t chunk_bytes; /* bound on a worker's share of the message */
	unsigned workers;     /* bound on the number of workers of the collective */
	double call_sec;
	double step_sec;
	double slowdown_ratio; /* factor by which the link is slower, >= 1 */
};

/* Costs of a software stack on a host. A rate of 0 costs nothing. */
struct psd_host_costs {
	double copy_bps;	   /* rate of copies between device and host, if the device has its own memory */
	double reduce_bps;	   /* rate at which a server sums and applies gradients, bits per second */
	double update_bps;	   /* rate at which a worker applies gradients to whole tensors, bits per second */
	double transport_bps;	   /* rate of the stack into or out of a node, each direction */
	double local_bps;	   /* rate of the stack into or out of a worker, inside its node */
	double incast_ratio;	   /* slowdown by each sender: rate = transport / (1 + ratio * senders) */
	double latency_sec;	   /* time that both ends add to a message between nodes */
	double iteration_sec;	   /* time of the software at the end of each iteration */
	double agree_sec;	   /* time before a wait-free all-reduce, until all workers are known to be ready */
	double tensor_sec;	   /* time of a worker's device for each tensor whose sum it applies */
	double device_share_ratio; /* share of a worker's device that an all-reduce takes while it runs */
	double share_ratio;	   /* share of a link's rate that the stack reaches at most; 0: all of it */
	double streams_ratio;	   /* share of a link's rate that several streams reach where transport_bps is less */
	double convert_bps;	   /* rate at which a device reads and writes values that it converts; 0: update_bps */
	unsigned requests;	   /* number of parts in which a sender pushes a tensor to one shard; 0: 1 */
	double request_sec;	   /* time of a shard's processor for each of these parts */
	bool is_copy_free, is_reduce_free, is_update_free, is_convert_free, is_transport_free, is_local_free;
	struct psd_collective_class collective[PSD_MAX_COLLECTIVE_CLASSES];
	unsigned n_collective_classes; /* number of size classes; 0: a ring step costs its latency alone */
};

struct psd_network {
	enum psd_topology topology;
	enum psd_fabric fabric;
	double bandwidth_bps;	 /* bandwidth of a node's link, each direction */
	double payload_ratio;	 /* share of a link's rate that packet headers leave to tensors */
	double latency_sec;	 /* one-way latency of the links from node to node, see struct psd_host_costs */
	unsigned nodes_per_rack; /* racks and fat tree only: number of nodes below one leaf switch */
	/* racks, fat tree: bandwidth of a leaf's node links over that of its uplinks; >= 1 */
	double oversubscription_ratio;
	/* racks, fat tree: rack of each separate server; the list is repeated if there are more servers */
	uint64_t servers_in[PSD_MAX_SERVER_RACKS];
	unsigned n_servers_in;	   /* number of entries of servers_in; 0: evenly over the racks of workers */
	const char *platform_path; /* topology platform only: file of SimGrid XML, relative to the working directory */
	double local_bps;	   /* bandwidth of a worker's own link inside its node; 0: unlimited */
	double local_latency_sec;  /* latency between workers of one node */
	unsigned local_switches;   /* number of switches in a node, with equal numbers of workers; 0: none */
	double between_bps;	   /* bandwidth of a switch's uplink in a node; 0: as local_bps */
};

/* Machines whose cores compute layers, sum, update and serve sockets: nodes without accelerators, or nodes that one
 * machine emulates. As in psd-run, each worker has its own share of the cores where there are enough; otherwise all
 * share all. */
struct psd_machine {
	unsigned cores;	    /* cores of one machine; 0: layers compute elsewhere, and sockets cost nothing */
	unsigned nodes;	    /* number of nodes on one machine; 0: all of them */
	unsigned threads;   /* largest number of cores that a layer uses, from train.threads */
	double bytes_bps;   /* rate of an idle core, bits of bytes sent plus received per second; 0: unlimited */
	double message_sec; /* core's time at each end of a message; 0 if it directly follows one of its sender */
};

/* Bounds of the measurements to which the constants were fitted. Points beyond them are extrapolated. */
struct psd_calibrated {
	unsigned workers; /* largest measured number of workers; 0: not calibrated, or without links */
	double bandwidth_bps;
	double spread_ratio; /* largest spread of a measurement divided by its value; 0: not known */
};

#define PSD_MOST_SPREAD_RATIO 1000.0

/* Slow node: shares of its full speed from from_sec to until_sec (infinity: for ever). */
struct psd_slowdown {
	unsigned node;
	double compute_ratio; /* share of its compute speed; 0.5: half the speed; 1: unchanged */
	double link_ratio;
	double from_sec, until_sec;
};

/* Traffic of another job: `bytes` bytes go from one node to another every period_sec, during the whole run. */
struct psd_background {
	unsigned from_node, to_node;
	uint64_t bytes;
	double period_sec; /* interval of transfers; 0: a transfer begins when the one before is over */
};

/* Work of a worker in an iteration, and its speed. In a system, 0 or NULL: the scenario's value holds. */
struct psd_workload {
	uint32_t batch_per_worker;
	const char *precision_name; /* arithmetic, one of psd_precision_names */
	const char *profile_path;   /* path of a measured profile of the layers, or NULL */
	const char *device_name;    /* name of a modelled device, or NULL; exactly one of the two is given */
	double samples_per_sec;	    /* throughput measured on one worker, to which the costs are scaled; 0: not given */
	double mfu_ratio; /* share of the device's peak, to which the costs are scaled instead; 0: not given */
};

/* Coarse-grained sparse communication: only the chunks of gradients with the largest norms travel. Source: Sun et al.
 * 2019 (arXiv 1902.06855), section 3.2. */
struct psd_sparse {
	double sparsity;	    /* share of chunks that are held back; less than 1 */
	uint64_t chunk_elements;    /* number of values in a chunk; the last of an exchange may have fewer */
	uint64_t warmup_iterations; /* number of iterations in which the share rises from 0 */
	enum psd_feedback feedback;
};

/* Local SGD: workers update their own parameters and average them every few iterations. Steps that depend on the loss:
 * Wang and Joshi 2019, AdaComm (arXiv 1810.08313). */
struct psd_local_sgd {
	uint64_t steps;	 /* number of iterations from one exchange to the next; at the beginning, if the loss decides */
	uint64_t window; /* number of iterations after which the loss decides anew; 0: never */
	double gap_ratio; /* allowed rise of the loss above the lowest loss of a window; 0: no bound */
};

enum psd_compressed { PSD_COMPRESSED_ALL, PSD_COMPRESSED_MATRICES };
enum psd_momentum { PSD_MOMENTUM_AFTER, PSD_MOMENTUM_BEFORE };

/* Lossy compression of gradients on their way to the shards and of their sums on the way back; losses are added to the
 * next ones (error feedback). Source: Seide et al. 2014 (1-bit SGD); Tang et al. 2019, DoubleSqueeze (arXiv
 * 1905.05957); momentum before compression: Lin et al. 2018 (arXiv 1712.01887), section 3.2. */
struct psd_compress {
	unsigned by;		 /* number of the compression in PSD_COMPRESSIONS */
	uint64_t block_elements; /* number of values that are compressed together */
	double kept_ratio;	 /* top-k only: share of a block's values that travels */
	enum psd_compressed tensors;
	enum psd_momentum momentum; /* applied to the sum, or to each worker's gradient before compression */
};

/* Low-rank compression: gradients travel as products of two narrow matrices. Source: Vogels et al. 2019, PowerSGD
 * (arXiv 1905.13727). */
struct psd_low_rank {
	unsigned rank; /* number of columns of one matrix and of rows of the other; 1 to PSD_MOST_RANK */
};

enum { PSD_MOST_STALENESS = 16 };

struct psd_stack_row; /* engine/scenario/stack.h */

struct psd_system {
	const char *name;
	enum psd_schedule schedule;
	enum psd_sync sync;
	enum psd_rule rule;
	enum psd_barrier barrier;
	enum psd_priority priority;
	enum psd_unit unit;
	unsigned servers;    /* number of separate server nodes; 0: one shard on every worker node */
	uint64_t pair_bytes; /* smallest size of a shard's part of a slice */
	uint64_t fuse_bytes; /* smallest size of a bucket; 0: tensors are not fused into buckets */
	bool finds_fuse;     /* the smallest size of a bucket is the quickest on the cluster, in place of fuse_bytes */
	uint64_t pipeline_bytes; /* largest part that an all-reduce copies and sums at a time; 0: no limit */
	uint64_t slice_bytes;	 /* largest size of a slice, where pair_bytes allows it */
	unsigned staleness;	 /* number of iterations by which updates lag, up to PSD_MOST_STALENESS */
	unsigned wire;		 /* number of the encoding of values that travel, in PSD_ENCODINGS */
	bool is_sparse;
	struct psd_sparse sparse; /* parameters of sparse communication, if used */
	bool is_compressed;
	struct psd_compress compress; /* parameters of compression, if used */
	bool is_low_rank;
	struct psd_low_rank low_rank; /* parameters of low-rank compression, if used */
	bool is_local;
	struct psd_local_sgd local_sgd; /* parameters of local SGD, if used */
	enum psd_placement placement;
	const char *stack_name;		   /* the stack that the system names; NULL: none */
	const struct psd_stack_row *stack; /* its stack: named here or by the cluster, or the default */
	struct psd_host_costs host; /* costs of its software; for each key the system's value or else the cluster's */
	unsigned number;	    /* index among the scenario's systems */
	struct psd_workload own;    /* values that replace the scenario's, see psd_scenario_workload() */
	struct psd_place at;
};

enum { PSD_MOST_DILATION = 1000000 };

/* Replay: operations are waits of the predicted length, while messages are really sent. A small machine can emulate the
 * whole cluster slowed down. For psd-run; predictions are for the cluster itself. */
struct psd_replay {
	double dilation_ratio; /* factor by which the whole cluster is slowed down; 1 to PSD_MOST_DILATION */
	bool finds_dilation;   /* key `dilation` is `auto`: the run finds the factor */
	double payload_ratio;  /* sent share of each message's bytes, over equally slower links; > 0, <= 1 */
	/* Number of workers that compute while the others replay. They are the first ones; 0: none. Needs whole
	 * messages and dilation 1. */
	unsigned real_workers;
};

/* Smallest and largest link rate that psd-run can give a worker. */
#define PSD_RUN_MIN_BPS 1e5
#define PSD_RUN_MAX_BPS 400e9

/* Spread of a worker's whole iterations, beside that of its layers. In each iteration a factor scales all work of its
 * device. */
struct psd_spread {
	double ratio;		  /* standard deviation of the factor, whose mean is 1; 0: none */
	double tail_chance_ratio; /* share of iterations that take tail_factor times as long; 0: none */
	double tail_factor;	  /* factor of the slow iterations, 1 or more */
};

struct psd_scenario {
	const char *path;
	const char *title;
	const char *graph_path; /* path of the model, relative to the working directory, like every path here */
	struct psd_model_choices choices; /* choices about the model file, without the sample */
	uint32_t batch_per_worker;
	enum psd_precision precision;
	const char *profile_path; /* path of a measured profile of the layers, or NULL */
	const char *device_name;  /* name of a modelled device, or NULL; exactly one of the two is given */
	double samples_per_sec;	  /* throughput measured on one worker, to which the costs are scaled; 0: not given */
	double mfu_ratio;	  /* share of the device's peak, to which the costs are scaled instead; 0: not given */
	double jitter_ratio;	  /* spread of a layer's compute time over its mean, per node and iteration; 0: none */
	struct psd_spread spread;
	bool has_replay;
	struct psd_replay replay;
	unsigned nodes;
	unsigned workers_per_node;
	struct psd_network network;
	struct psd_machine machine;
	const char *stack_name; /* the stack of systems that name none; NULL: the default of each */
	struct psd_host_costs host;
	struct psd_slowdown slowdowns[PSD_MAX_EVENTS];
	unsigned n_slowdowns;
	struct psd_background backgrounds[PSD_MAX_EVENTS];
	unsigned n_backgrounds;
	struct psd_system systems[PSD_MAX_SYSTEMS];
	unsigned n_systems;
	uint64_t sweep_nodes[PSD_MAX_SWEEP];
	unsigned n_sweep_nodes;
	uint64_t sweep_workers[PSD_MAX_SWEEP]; /* total numbers of workers; excludes sweep_nodes */
	unsigned n_sweep_workers;
	double sweep_bandwidth_bps[PSD_MAX_SWEEP];
	unsigned n_sweep_bandwidths;
	uint64_t sweep_fuse_bytes[PSD_MAX_SWEEP]; /* smallest sizes of buckets, for systems that fuse by a given size */
	unsigned n_sweep_fuses;
	enum psd_fidelity fidelity;
	unsigned iterations;  /* number of measured iterations; 0: the executor chooses */
	uint64_t most_events; /* limit on the events of all cases of a prediction */
	uint64_t seed;
	const char *baseline;	    /* baseline of speedups: a system's name, or "compute" */
	int baseline_system;	    /* index of the baseline's system; -1: the compute time of one worker alone */
	const char *published_path; /* path of published results, or NULL */
	struct psd_calibrated calibration;
	bool has_train;
	struct psd_train train;	       /* training job that psd-run executes */
	const struct psd_node *root;   /* tree of the file that was read, with --set values */
	struct psd_document *document; /* document that owns the strings */
	void *owned;		       /* owner of further strings (joined paths); private */
};

/* Reads and checks a file (or text, named path in messages). *scenario is filled on success, released by
 * psd_scenario_release(). `settings`: NULL-terminated "key.path=value" strings from --set that replace or add scalars,
 * checked the same way (place: "--set key.path"). PSD_EFILE, PSD_EINVAL with place, PSD_ENOMEM. */
enum psd_status psd_scenario_load(struct psd_scenario *scenario, const char *path, const char *const settings[],
				  struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_scenario_parse(struct psd_scenario *scenario, const char *path, const char *text, size_t length,
				   const char *const settings[], struct psd_error *err) PSD_MUST_CHECK;
/* Reads settings "model.KEY=VALUE" alone into scenario->choices; all other members are empty. To be released, too.
 * PSD_EINVAL: another key or a bad value. */
enum psd_status psd_scenario_parse_choices(struct psd_scenario *scenario, const char *const settings[],
					   struct psd_error *err) PSD_MUST_CHECK;
void psd_scenario_release(struct psd_scenario *scenario);
/* Appends all effective values as a scenario with equal values; its paths are relative to the working directory. */
void psd_scenario_add_text(struct psd_text *text, const struct psd_scenario *scenario);
/* Appends the explanations of the scenario keys that match how->topic. PSD_EINVAL: none matches. */
enum psd_status psd_scenario_add_reference(struct psd_text *text, const struct psd_reference *how,
					   struct psd_error *err) PSD_MUST_CHECK;
/* Replaces the solver that `train` names, if any, by the values in its file, see psd_train_load_solver(); its seed
 * becomes the scenario's. Statuses as there. */
enum psd_status psd_scenario_load_solver(struct psd_scenario *scenario, struct psd_error *err) PSD_MUST_CHECK;

/* Finds the index of the system with that name. PSD_EINVAL, with all names: there is none. */
enum psd_status psd_scenario_find_system(const struct psd_scenario *scenario, const char *name, unsigned *index,
					 struct psd_error *err) PSD_MUST_CHECK;

/* Work of one worker in the system: for each key the system's value or else the scenario's. If the system has a device
 * or profile, the scenario's samples_per_sec and mfu do not count. Pure, any thread. */
struct psd_workload psd_scenario_workload(const struct psd_scenario *scenario, const struct psd_system *system);
/* Returns the precision of a workload that psd_scenario_workload() has made. */
enum psd_precision psd_workload_precision(const struct psd_workload *workload);
/* Tells whether gradients travel as values of 16 bits. */
bool psd_workload_is_half(const struct psd_workload *workload);
/* True if the system replaces a value of the scenario's workload. */
bool psd_system_has_workload(const struct psd_system *system);

/* One point of the sweep: values that differ from the scenario's cluster. */
struct psd_point {
	unsigned nodes;		   /* number of worker nodes */
	unsigned workers_per_node; /* number of workers on a node, at most `workers` */
	unsigned workers;	   /* total number of workers; the last node may have fewer than the others */
	double bandwidth_bps;
	uint64_t fuse_bytes; /* smallest size of buckets for the systems that fuse by a given size; 0: their own */
};

/* Number of points of the sweep, at least 1. Next: point i; sizes of buckets change slowest, then bandwidths, in file
 * order. */
unsigned psd_scenario_points(const struct psd_scenario *scenario);
struct psd_point psd_scenario_point(const struct psd_scenario *scenario, unsigned i);
/* Smallest size of the system's buckets at the point; 0 if it fuses nothing, or finds the size itself. Pure, any
 * thread. */
uint64_t psd_system_fuse_bytes(const struct psd_system *system, const struct psd_point *point);

extern const char *const psd_schedule_names[]; /* values "sequential", "wait-free", "clocked", NULL */
extern const char *const psd_sync_names[];     /* names of enum psd_sync, then NULL */
extern const char *const psd_rule_names[];     /* values "bytes", "seconds", NULL */
extern const char *const psd_barrier_names[];  /* values "iteration", "layer", NULL */
extern const char *const psd_priority_names[]; /* values "generation", "forward", NULL */
extern const char *const psd_fidelity_names[]; /* values "flow", "message", NULL */
extern const char *const psd_topology_names[]; /* "star", "racks", "fat-tree", "platform", NULL */

#endif
