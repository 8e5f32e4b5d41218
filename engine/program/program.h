/* The program: the plan unrolled into the operations of one iteration, the same for every host, with their
 * dependencies. Scheduling choices (wait-free or sequential, barriers, priorities) are edges and turns here and nothing
 * else; estimate, simulation and real execution carry out the same program. */
#ifndef PSD_PROGRAM_H
#define PSD_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/collectives/layout.h"
#include "engine/program/plan.h"

enum psd_op_kind {
	PSD_OP_FORWARD,	   /* a layer and the parameterless ones after it */
	PSD_OP_BACKWARD,   /* the same layers in reverse; then the layer's gradient is final */
	PSD_OP_COPY_OUT,   /* device to host */
	PSD_OP_COPY_IN,	   /* host to device */
	PSD_OP_SEND,	   /* this host's messages of one pattern */
	PSD_OP_RECEIVE,	   /* done when all messages of operation `match` to this host have arrived */
	PSD_OP_REDUCE,	   /* shard sums the gradients of all workers, or leaders, and applies the update */
	PSD_OP_FACTOR,	   /* rebuild of a gradient from received factors by GEMM, and its update */
	PSD_OP_APPLY,	   /* the update of parameters from a gradient that is complete on this host */
	PSD_OP_COLLECTIVE, /* all-reduce; the members of its group begin together, one at a time on a host */
	PSD_OP_GATE,	   /* joins many dependencies; takes no time */
	PSD_OP_BARRIER,	   /* end-of-iteration work of the stack */
	PSD_OP_CONVERT,	   /* values of `source` become those of `target`: as they travel, or what they were before */
	PSD_OP_GATHER,	/* a gradient joins what was held back of earlier ones; the chosen chunks leave it to travel */
	PSD_OP_CHOOSE,	/* by all workers' norms: which chunks travel in the next iteration */
	PSD_OP_SUM,	/* leader adds the gradients of its node's other workers to its own */
	PSD_OP_STEP,	/* a worker applies its own gradient; where it exchanges, how far it has gone takes its place */
	PSD_OP_PACK,	/* a gradient joins what was lost of earlier ones, and is compressed to travel */
	PSD_OP_REPACK,	/* shard sums the compressed gradients of all workers, and compresses the sum */
	PSD_OP_UNPACK,	/* the compressed sum becomes the gradient */
	PSD_OP_PROJECT, /* a gradient joins what was lost of earlier ones; its left narrow matrix is made */
	PSD_OP_FIT,	/* the sum of the left ones becomes orthonormal; the right one is made, and the rest stays */
	PSD_OP_EXPAND,	/* the product of both becomes the gradient */
	PSD_OP_NEXT,	/* the next iteration's first layer may start: iterations are timed from NEXT to NEXT */
	PSD_OP_MEASURE, /* squares of a gradient that is complete on this host, added up */
	PSD_OP_CLIP,	/* by all of these: what gradients are multiplied by before they are applied */
	PSD_OP_KINDS
};
/* The one list of their names, for messages, traces and plots. Copies share one. */
extern const char *const psd_op_kind_names[PSD_OP_KINDS + 1];

/* What an operation occupies while it runs; one operation at a time on each. */
enum psd_resource {
	PSD_RESOURCE_DEVICE,
	PSD_RESOURCE_COPY_OUT,
	PSD_RESOURCE_COPY_IN,
	PSD_RESOURCE_CPU,
	PSD_RESOURCE_NIC, /* the way out; receiving never waits for it */
	PSD_RESOURCES,
	PSD_RESOURCE_NONE = PSD_RESOURCES
};

/* Which hosts carry it out. The root and the group are the payload's. */
enum psd_where {
	PSD_WHERE_WORKERS,
	PSD_WHERE_LEADERS, /* the first worker of each node */
	PSD_WHERE_SHARDS,
	PSD_WHERE_ROOT,
	PSD_WHERE_GROUP,
	PSD_WHERE_EVERYWHERE
};

struct psd_op {
	enum psd_op_kind kind;
	enum psd_resource resource;
	enum psd_where where;
	unsigned layer; /* index in the graph */
	int item;	/* index in the plan, -1: none */
	unsigned slice;
	double work_sec; /* device, copy engines, CPU: time on the resource */
	uint64_t bytes;	 /* payload, for reports: bytes copied, sent in total by the busiest sender, reduced */
	struct psd_payload payload; /* send, receive, collective */
	/* What messages are read from where they leave, and written to where they arrive; of converts, copies, gathers
	 * and choices what they read and write. */
	enum psd_buffer source, target;
	uint32_t match; /* receive: its send */
	uint32_t lag;	/* apply, measure: the gradient is of so many iterations before; the first so many have none */
	bool is_exchange; /* carried out in iterations that exchange alone (struct psd_period) */
	int64_t turn;	  /* smaller leaves the ready queue first; ties in order of iteration, then operation number */
	uint32_t first_dependency;
	uint32_t n_dependencies;
	uint32_t first_dependent;
	uint32_t n_dependents;
};

struct psd_edge {
	uint32_t op; /* in dependencies: what must be done before; in dependents: what waits */
	/* The one that waits belongs to the same iteration (0), to the next (1), or to a later one. What belongs to
	 * an iteration before the first is done. */
	uint32_t distance;
};

struct psd_program {
	const struct psd_plan *plan; /* borrowed */
	struct psd_op *ops;
	uint32_t n_ops;
	struct psd_edge *dependencies;
	struct psd_edge *dependents;
	uint32_t n_edges;
	uint32_t next_op; /* the NEXT operation */
	/* Iterations that a host may have begun and not completed: the largest distance of an edge + 1. A host's
	 * messages reach others up to as many iterations ahead of theirs. */
	uint32_t window;
	/* Added to turns of what is not the device's, for each iteration: where several are under way the oldest goes
	 * first. 0: turns alone decide. */
	int64_t iteration_turns;
	bool has_groups; /* some operation is of some workers only */
};

/* Unrolls the plan. Dependencies on operations that a host does not carry out do not bind it. *program is filled on
 * success and released by psd_program_release(). PSD_ENOMEM. */
enum psd_status psd_program_make(struct psd_program *program, const struct psd_plan *plan,
				 struct psd_error *err) PSD_MUST_CHECK;
void psd_program_release(struct psd_program *program);

/* The layers that a forward or backward operation named after `layer` carries out: first to end - 1. */
struct psd_layers {
	unsigned first;
	unsigned end;
};
struct psd_layers psd_program_layers(const struct psd_graph *graph, unsigned layer);

/* The most cores of a machine that an operation uses while it works; 0: it works elsewhere, on a copy engine or the
 * network. */
double psd_op_cores(const struct psd_op *op, const struct psd_machine *machine);

/* A task's place among those that are ready. Pure. */
int64_t psd_program_turn(const struct psd_program *program, uint32_t op, uint32_t iteration);

/* Whether the host is one of those that carry the operation out (op->where). */
bool psd_op_runs_on(const struct psd_op *op, const struct psd_layout *layout, unsigned host);

/* Whether each worker by itself may begin the next collective that is ready there: they become ready in the same order
 * everywhere, and nothing that others wait for is kept back by one that is begun too early. Elsewhere somebody has to
 * decide for all. */
bool psd_program_orders_collectives(const struct psd_program *program);

/* Bytes a node sends to and receives from other nodes in an iteration that exchanges. */
struct psd_traffic psd_program_traffic(const struct psd_program *program, unsigned node);

#endif
