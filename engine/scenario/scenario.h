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
#include "engine/scenario/train.h"

enum {
	PSD_MAX_NODES = 65536,
	PSD_MAX_WORKERS_PER_NODE = 64,
	PSD_MAX_HOSTS = 1 << 20, /* workers and separate servers of one case */
	PSD_MAX_MEASURED_ITERATIONS = 60000,
	PSD_MAX_SYSTEMS = 32,
	PSD_MAX_SWEEP = 256,
	PSD_MAX_COLLECTIVE_CLASSES = 16,
	PSD_MAX_EVENTS = 256,
	PSD_MAX_CORES = 65536,
	PSD_MAX_LOCAL_STEPS = 10000,
};

enum psd_schedule { PSD_SCHEDULE_SEQUENTIAL, PSD_SCHEDULE_WAIT_FREE };
/* What synchronises tensors; the hybrids choose per tensor. */
enum psd_sync {
	PSD_SYNC_PS,
	PSD_SYNC_TWO_LEVEL_PS,
	PSD_SYNC_SFB,
	PSD_SYNC_ADAM,
	PSD_SYNC_HYBRID,
	PSD_SYNC_SACP,
	PSD_SYNC_ALL_REDUCE, /* by the first of psd_all_reduces; by the others in the numbers after it */
	PSD_SYNC_AUTO = PSD_SYNC_ALL_REDUCE + PSD_N_ALL_REDUCES, /* by any of them, for each tensor */
	PSD_SYNC_LIBRARY, /* by the first of PSD_LIBRARIES; by the others in the numbers after it */
};
enum psd_rule { PSD_RULE_BYTES, PSD_RULE_SECONDS }; /* how systems choose */
enum psd_barrier { PSD_BARRIER_ITERATION, PSD_BARRIER_LAYER };
enum psd_priority { PSD_PRIORITY_GENERATION, PSD_PRIORITY_FORWARD };
enum psd_unit { PSD_UNIT_LAYER, PSD_UNIT_TENSOR };		/* what one synchronisation carries */
enum psd_feedback { PSD_FEEDBACK_MOMENTUM, PSD_FEEDBACK_FULL }; /* what is left of a gradient that is held back */
enum psd_fidelity { PSD_FIDELITY_FLOW, PSD_FIDELITY_MESSAGE };
enum psd_topology { PSD_TOPOLOGY_STAR, PSD_TOPOLOGY_RACKS, PSD_TOPOLOGY_FAT_TREE, PSD_TOPOLOGY_PLATFORM };

/* One class of a collective's cost: holds up to these bounds, as far as they are given. A ring of P workers with n =
 * 2(P-1) steps takes call_sec + n step_sec + n/P bytes / min(transport, link / slowdown_ratio), on top of the latency
 * of each step, the network's and the host's. */
struct psd_collective_class {
	uint64_t up_to_bytes; /* of the message; 0: no bound, as in the next two */
	uint64_t chunk_bytes; /* of a message's share for one of its workers */
	unsigned workers;     /* that take part */
	double call_sec;
	double step_sec;
	double slowdown_ratio; /* >= 1 */
};

/* Host side of a software stack. A rate of 0 means: costs nothing. */
struct psd_host_costs {
	double copy_bps;      /* device to host and host to device, where the device has memory of its own */
	double reduce_bps;    /* gradient bytes summed and applied by a server */
	double update_bps;    /* gradient bytes applied by a worker, where the whole gradient is its own */
	double transport_bps; /* what the stack moves in or out of one node, each direction */
	double local_bps;     /* what it moves out of or into a worker, to or from others of its node */
	double incast_ratio;  /* each sending node slows its receiver: rate = transport / (1 + ratio * senders) */
	double latency_sec;   /* what the two ends add to a message's way between nodes, beyond the network's latency */
	double iteration_sec; /* of each iteration, after synchronisation */
	double agree_sec; /* before an all-reduce that layers may run beside: until all workers are known to be ready */
	double tensor_sec;    /* of a worker's device, for a tensor whose sum it applies, whatever its bytes */
	double overlap_ratio; /* of a worker's device, that an all-reduce takes while it runs */
	struct psd_collective_class collective[PSD_MAX_COLLECTIVE_CLASSES];
	unsigned n_collective_classes; /* 0: a ring step costs its latency only */
};

struct psd_network {
	enum psd_topology topology;
	double bandwidth_bps;	       /* of a node's link, each direction */
	double payload_ratio;	       /* of a link's rate: what packet headers leave to tensors */
	double latency_sec;	       /* from node to node, one way; of the links alone, see struct psd_host_costs */
	unsigned nodes_per_rack;       /* racks, fat tree: nodes below one leaf switch */
	double oversubscription_ratio; /* racks, fat tree: sum of a leaf's node links / its uplinks; >= 1 */
	const char *platform_path;     /* platform: SimGrid XML, already relative to the working directory */
	double local_bps;	       /* of a worker's own link inside its node; 0: as fast as needed */
	double local_latency_sec;      /* between workers of one node */
	unsigned local_switches;       /* of a node, each with as many workers; 0: none */
	double between_bps;	       /* of a switch's uplink, where there are several; 0: as local_bps */
};

/* Processors that compute layers, reduce, update and serve the sockets: nodes without accelerators, or
 * nodes that one machine emulates. As in psd-run, each worker has its own share of the cores while there are enough,
 * and all share all otherwise. */
struct psd_machine {
	unsigned cores;	  /* of one machine; 0: layers are computed elsewhere than the rest, and sockets cost nothing */
	unsigned nodes;	  /* on one machine; 0: all are on one */
	unsigned threads; /* of a layer, and so the most cores that it uses: train.threads */
	double bytes_bps; /* sent plus received, that a core moves if it does nothing else; 0: at once */
	double message_sec; /* of a core, that each end of a message takes for it, its bytes aside, unless it follows
			       another of its sender at once */
};

/* What the constants were fitted on; points beyond it are extrapolated. */
struct psd_calibrated {
	unsigned workers; /* the most; 0: not calibrated, or without links */
	double bandwidth_bps;
	double spread_ratio; /* the worst of what was measured, over its value; 0: not known */
};

#define PSD_MOST_SPREAD_RATIO 1000.0

/* From from_sec to until_sec (infinity: for ever) node runs at these shares of its speed. */
struct psd_slowdown {
	unsigned node;
	double compute_ratio; /* 0.5: half the speed; 1: untouched */
	double link_ratio;
	double from_sec, until_sec;
};

/* Every period_sec, `bytes` go from one node to another, from the start of the run to its end. */
struct psd_background {
	unsigned from_node, to_node;
	uint64_t bytes;
	double period_sec; /* 0: the next starts when the one before has ended */
};

/* What a worker computes in an iteration, and how fast. What no system says of its own is 0 or NULL. */
struct psd_workload {
	uint32_t batch_per_worker;
	const char *precision;	  /* of psd_precision_names */
	const char *profile_path; /* or NULL */
	const char *device_name;  /* or NULL; exactly one of the two is given */
	double images_per_sec;	  /* measured on one worker, scales the costs; 0: not given */
};

/* Coarse-grained sparse communication: of all chunks of gradients those with the largest norms travel, the others wait.
 * Source: Sun et al. 2019 (arXiv 1902.06855), section 3.2. */
struct psd_sparse {
	double sparsity;	    /* the share of chunks that are held back; below 1 */
	uint64_t chunk_elements;    /* a chunk; the last of an exchange may have fewer */
	uint64_t warmup_iterations; /* over which the share rises from 0 */
	enum psd_feedback feedback;
};

/* Workers update parameters of their own, and average them every so many iterations. Steps that follow the loss: Wang
 * and Joshi 2019, AdaComm (arXiv 1810.08313). */
struct psd_local_sgd {
	uint64_t steps;	  /* iterations from one exchange to the next; where they follow the loss, in the beginning */
	uint64_t window;  /* iterations after which they follow the loss; 0: they stay */
	double gap_ratio; /* above the lowest loss of a window, that a later one may have; 0: no bound */
};

enum psd_compressed { PSD_COMPRESSED_ALL, PSD_COMPRESSED_MATRICES };
enum psd_momentum { PSD_MOMENTUM_AFTER, PSD_MOMENTUM_BEFORE };

/* Gradients travel to the shards, and their sums back, far smaller and not equal to what they were; what is lost is
 * added to the next. Source: Seide et al. 2014 (1-bit SGD); Tang et al. 2019, DoubleSqueeze (arXiv 1905.05957);
 * momentum before compression: Lin et al. 2018 (arXiv 1712.01887), section 3.2. */
struct psd_compress {
	unsigned by;		 /* the number of a compression */
	uint64_t block_elements; /* values that are compressed together */
	double kept_ratio;	 /* of top-k, the share of a block that travels */
	enum psd_compressed tensors;
	enum psd_momentum momentum; /* of the sum, or of each worker's gradient, which then travels with it */
};

/* Gradients travel as products of two narrow matrices. Source: Vogels et al. 2019, PowerSGD (arXiv 1905.13727). */
struct psd_low_rank {
	unsigned rank; /* 1 to PSD_MOST_RANK: columns of one, rows of the other */
};

enum { PSD_MOST_STALENESS = 16 };

struct psd_system {
	const char *name;
	enum psd_schedule schedule;
	enum psd_sync sync;
	enum psd_rule rule;
	enum psd_barrier barrier;
	enum psd_priority priority;
	enum psd_unit unit;
	unsigned servers;	 /* separate server nodes; 0: one shard on every worker node */
	uint64_t pair_bytes;	 /* a slice has at least so much for each shard */
	uint64_t fuse_bytes;	 /* tensors are gathered into items of at least so much; 0: are not */
	bool finds_fuse;	 /* as much as is quickest on the cluster, instead */
	uint64_t pipeline_bytes; /* of an all-reduce, the largest part that is copied and summed at a time; 0: all */
	uint64_t slice_bytes;	 /* and at most so much, unless that is less */
	unsigned staleness;	 /* iterations that updates come late; up to PSD_MOST_STALENESS */
	unsigned wire;		 /* the number of an encoding: as what values travel */
	bool is_sparse;
	struct psd_sparse sparse; /* if it is */
	bool is_compressed;
	struct psd_compress compress; /* if it is */
	bool is_low_rank;
	struct psd_low_rank low_rank; /* if it is */
	bool is_local;
	struct psd_local_sgd local_sgd; /* if it is */
	struct psd_host_costs host;	/* the cluster's host, overlaid with the system's own */
	unsigned number;		/* among the scenario's systems */
	struct psd_workload own;	/* in place of the scenario's; psd_scenario_workload() says what holds */
	struct psd_place at;
};

enum { PSD_MOST_DILATION = 1000000 };

/* A job whose operations are timed waits, as long as they are predicted to take, while every message is really sent: on
 * a cluster that is slower as a whole, so that a small machine can be it. For psd-run; a prediction is of the cluster
 * itself. */
struct psd_replay {
	double dilation_ratio; /* a second of the cluster takes so many; 1 to PSD_MOST_DILATION */
	bool finds_dilation;   /* `auto`: the run is to find it */
	double payload_ratio; /* of each message's bytes that are sent, over links that are slower by as much; > 0, <= 1
			       */
	/* So many workers, the first, compute all the same, and only beside whole messages at dilation 1; 0: none. */
	unsigned real_workers;
};

/* Links that psd-run can give a worker. */
#define PSD_RUN_MIN_BPS 1e5
#define PSD_RUN_MAX_BPS 400e9

struct psd_scenario {
	const char *path;
	const char *title;
	const char *graph_path; /* relative to the working directory, like every path here */
	uint32_t batch_per_worker;
	bool is_half;		  /* precision: mixed – gradients travel as fp16, compute uses fp16 units */
	const char *profile_path; /* or NULL */
	const char *device_name;  /* or NULL; exactly one of the two is given */
	double images_per_sec;	  /* measured on one worker, scales the costs; 0: not given */
	double jitter_ratio; /* standard deviation of a layer's compute time per node and iteration, as a share; 0: none
			      */
	bool has_replay;
	struct psd_replay replay;
	unsigned nodes;
	unsigned workers_per_node;
	struct psd_network network;
	struct psd_machine machine;
	struct psd_host_costs host;
	struct psd_slowdown slowdowns[PSD_MAX_EVENTS];
	unsigned n_slowdowns;
	struct psd_background backgrounds[PSD_MAX_EVENTS];
	unsigned n_backgrounds;
	struct psd_system systems[PSD_MAX_SYSTEMS];
	unsigned n_systems;
	uint64_t sweep_nodes[PSD_MAX_SWEEP];
	unsigned n_sweep_nodes;
	uint64_t sweep_workers[PSD_MAX_SWEEP]; /* total workers: nodes = workers / workers_per_node rounded up; excludes
						  sweep_nodes */
	unsigned n_sweep_workers;
	double sweep_bandwidth_bps[PSD_MAX_SWEEP];
	unsigned n_sweep_bandwidths;
	uint64_t sweep_fuse_bytes[PSD_MAX_SWEEP]; /* of systems that name a size */
	unsigned n_sweep_fuses;
	enum psd_fidelity fidelity;
	unsigned iterations;  /* measured; 0: chosen by the executor */
	uint64_t most_events; /* of all cases of a prediction; beyond it is refused */
	uint64_t seed;
	const char *baseline;	    /* a system's name, or "compute" */
	int baseline_system;	    /* -1: the compute of one worker alone */
	const char *published_path; /* or NULL */
	struct psd_calibrated calibration;
	bool has_train;
	struct psd_train train;	       /* the job, for executors that carry it out */
	const struct psd_node *root;   /* what was read, --set values included */
	struct psd_document *document; /* owns the strings */
	void *owned;		       /* further strings (joined paths); private */
};

/* Reads and checks a file (or text, named path in messages). *scenario is filled on success, released by
 * psd_scenario_release(). `settings`: NULL-terminated "key.path=value" strings from --set that replace or add scalars,
 * checked the same way (place: "--set key.path"). PSD_EFILE, PSD_EINVAL with place, PSD_ENOMEM. */
enum psd_status psd_scenario_load(struct psd_scenario *scenario, const char *path, const char *const settings[],
				  struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_scenario_parse(struct psd_scenario *scenario, const char *path, const char *text, size_t length,
				   const char *const settings[], struct psd_error *err) PSD_MUST_CHECK;
void psd_scenario_release(struct psd_scenario *scenario);
/* All values that take effect, so that reading the text gives the same again; its paths hold from the working
 * directory. */
void psd_scenario_add_text(struct psd_text *text, const struct psd_scenario *scenario);
/* What all keys mean. PSD_EINVAL: there is none of that topic. */
enum psd_status psd_scenario_add_reference(struct psd_text *text, const struct psd_reference *how,
					   struct psd_error *err) PSD_MUST_CHECK;
/* Takes over what the solver says that `train` names, if it names one: psd_train_load_solver(), and its seed for the
 * scenario, too. Then `train` names no solver any more. Statuses as there. */
enum psd_status psd_scenario_load_solver(struct psd_scenario *scenario, struct psd_error *err) PSD_MUST_CHECK;

/* The number of the system with that name; PSD_EINVAL, with all names, when there is none. */
enum psd_status psd_scenario_find_system(const struct psd_scenario *scenario, const char *name, unsigned *index,
					 struct psd_error *err) PSD_MUST_CHECK;

/* What a worker of that system computes: the scenario's, but for what the system has of its own. A system's device or
 * profile leaves the scenario's images_per_sec out. Pure, any thread. */
struct psd_workload psd_scenario_workload(const struct psd_scenario *scenario, const struct psd_system *system);
/* Gradients travel as fp16, compute uses fp16 units. */
bool psd_workload_is_half(const struct psd_workload *workload);
/* Whether the system has anything of its own in it. */
bool psd_system_has_workload(const struct psd_system *system);

/* One point of the sweep: what differs from the scenario's cluster. */
struct psd_point {
	unsigned nodes;		   /* worker nodes */
	unsigned workers_per_node; /* no more than workers */
	unsigned workers;	   /* total; the last node may hold fewer than the others */
	double bandwidth_bps;
	uint64_t fuse_bytes; /* of systems that name a size; 0: what they name */
};

/* Number of sweep points (at least 1), and the i-th of them, sizes of fusion outermost, then bandwidths, in file order.
 */
unsigned psd_scenario_points(const struct psd_scenario *scenario);
struct psd_point psd_scenario_point(const struct psd_scenario *scenario, unsigned i);
/* What the system gathers tensors to at the point: 0 where it does not, or finds the size itself. Pure, any thread. */
uint64_t psd_system_fuse_bytes(const struct psd_system *system, const struct psd_point *point);

extern const char *const psd_precision_names[]; /* "fp32", "mixed", NULL */
extern const char *const psd_schedule_names[];	/* "sequential", "wait-free", NULL */
extern const char *const psd_sync_names[];	/* of enum psd_sync, then NULL */
extern const char *const psd_rule_names[];	/* "bytes", "seconds", NULL */
extern const char *const psd_barrier_names[];	/* "iteration", "layer", NULL */
extern const char *const psd_priority_names[];	/* "generation", "forward", NULL */
extern const char *const psd_fidelity_names[];	/* "flow", "message", NULL */
extern const char *const psd_topology_names[];	/* "star", "racks", "fat-tree", "platform", NULL */

#endif
