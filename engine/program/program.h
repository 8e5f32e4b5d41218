/* The program: operations of one iteration, unrolled from the plan, with their dependencies; the same for every host.
 * Scheduling choices (wait-free or sequential, barriers, priorities) are edges and turns here and nothing else.
 * Estimate, simulation and real execution execute the same program. */
#ifndef PSD_PROGRAM_H
#define PSD_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/collectives/layout.h"
#include "engine/program/plan.h"

enum psd_op_kind {
	PSD_OP_FORWARD,	   /* forward pass of a layer and the parameterless ones after it */
	PSD_OP_BACKWARD,   /* backward pass of the same layers in reverse; then the layer's gradient is final */
	PSD_OP_COPY_OUT,   /* copy from the device to its host */
	PSD_OP_COPY_IN,	   /* copy from the host to its device */
	PSD_OP_SEND,	   /* this host's messages of one collective leave */
	PSD_OP_RECEIVE,	   /* done when all messages of operation `match` to this host have arrived */
	PSD_OP_REDUCE,	   /* a shard sums the gradients of all workers, or leaders, and applies the update */
	PSD_OP_FACTOR,	   /* a gradient is rebuilt from received factors (GEMM), and applied */
	PSD_OP_APPLY,	   /* parameters are updated by a gradient that is complete on this host */
	PSD_OP_COLLECTIVE, /* all-reduce; the members of its group begin together, one collective at a time on a host */
	PSD_OP_GATE,	   /* takes no time: other operations wait for all of its dependencies at once */
	PSD_OP_BARRIER,	   /* work of the software stack at the end of an iteration */
	PSD_OP_CONVERT,	   /* encodes or decodes the values of `source` into `target` */
	PSD_OP_GATHER,	/* held-back parts of earlier gradients are added to a gradient; its chosen chunks are gathered
			   to travel */
	PSD_OP_CHOOSE,	/* choice, by all workers' norms, of the chunks of the next iteration */
	PSD_OP_SUM,	/* a leader adds the gradients of its node's other workers to its own */
	PSD_OP_STEP,	/* a worker applies its own gradient; in an exchange the parameters' change replaces it */
	PSD_OP_PACK,	/* error feedback is added to a gradient, which is compressed to travel */
	PSD_OP_REPACK,	/* a shard sums the compressed gradients of all workers, and compresses the sum */
	PSD_OP_UNPACK,	/* the compressed sum is decompressed into the gradient */
	PSD_OP_PROJECT, /* error feedback is added to a gradient; its left matrix is made */
	PSD_OP_FIT,	/* the sum of left matrices becomes orthonormal; the right matrix and the residual are made */
	PSD_OP_EXPAND,	/* the product of both matrices becomes the gradient */
	PSD_OP_NEXT, /* marks that the next iteration's first layer may start: iterations are timed from NEXT to NEXT */
	PSD_OP_MEASURE, /* computes the sum of squares of a gradient that is complete on this host */
	PSD_OP_CLIP,	/* computes the factor on all gradients before updates, from all sums of squares */
	PSD_OP_KINDS
};
/* Names of the kinds in messages, traces and plots. Both kinds of copy share one name. */
extern const char *const psd_op_kind_names[PSD_OP_KINDS + 1];

/* Resource that an operation holds while it is executed; one operation at a time on each. */
enum psd_resource {
	PSD_RESOURCE_DEVICE,
	PSD_RESOURCE_COPY_OUT,
	PSD_RESOURCE_COPY_IN,
	PSD_RESOURCE_CPU,
	PSD_RESOURCE_NIC, /* sending side of the network interface; receiving never waits for it */
	PSD_RESOURCES,
	PSD_RESOURCE_NONE = PSD_RESOURCES
};

/* Hosts that execute an operation. Root and group are those of its payload. */
enum psd_where {
	PSD_WHERE_WORKERS,
	PSD_WHERE_LEADERS, /* first worker of each node */
	PSD_WHERE_SHARDS,
	PSD_WHERE_ROOT,
	PSD_WHERE_GROUP,
	PSD_WHERE_EVERYWHERE
};

struct psd_op {
	enum psd_op_kind kind;
	enum psd_resource resource;
	enum psd_where where;
	unsigned layer; /* layer's number in the graph */
	int item;	/* item's number in the plan; -1: none */
	unsigned slice;
	double work_sec;	    /* duration on a device, copy engine or CPU */
	uint64_t bytes;		    /* bytes for reports: copied, reduced, or sent in total by the busiest sender */
	struct psd_payload payload; /* data of a send, receive or collective */
	/* Buffers that messages are read from at the sender and written to at the receiver. Converts, copies, gathers
	 * and choices read `source` and write `target`. */
	enum psd_buffer source, target;
	uint32_t match;	  /* receive: number of its send operation */
	uint32_t lag;	  /* apply, measure: age of the gradient in iterations; the first `lag` iterations have none */
	bool is_exchange; /* executed only in iterations that exchange (struct psd_period) */
	bool follows_collective; /* waits for a collective of the same iteration, directly or through other operations
				  */
	int64_t turn; /* rank in the ready queue: smaller turns leave first, then by iteration, then by operation */
	uint32_t first_dependency;
	uint32_t n_dependencies;
	uint32_t first_dependent;
	uint32_t n_dependents;
};

struct psd_edge {
	uint32_t op; /* operation's number: in dependencies, the one to wait for; in dependents, the one that waits */
	/* Number of iterations from the operation that is waited for to the waiting one; 0: the same iteration.
	 * Operations before the first iteration count as done. */
	uint32_t distance;
};

struct psd_program {
	const struct psd_plan *plan; /* plan from which the program was made, borrowed */
	struct psd_op *ops;
	uint32_t n_ops;
	struct psd_edge *dependencies;
	struct psd_edge *dependents;
	uint32_t n_edges;
	uint32_t next_op; /* number of the operation PSD_OP_NEXT */
	/* Number of iterations that a host may have begun and not completed: the largest distance of an edge plus 1.
	 * Messages of a host may be ahead of their receivers by as many iterations. */
	uint32_t window;
	/* Increment of turns per iteration outside the device, so that the oldest of several iterations goes first. 0:
	 * turns alone decide. */
	int64_t iteration_turns;
	bool has_groups; /* some operation belongs to a part of the workers only */
};

/* Makes the operations of an iteration from the plan. A dependency binds only hosts that execute the operation it waits
 * for. *program is filled on success and released by psd_program_release(). PSD_ENOMEM. */
enum psd_status psd_program_make(struct psd_program *program, const struct psd_plan *plan,
				 struct psd_error *err) PSD_MUST_CHECK;
void psd_program_release(struct psd_program *program);

/* Layers that a forward or backward operation with this `layer` executes: first to end - 1. */
struct psd_layers {
	unsigned first;
	unsigned end;
};
struct psd_layers psd_program_layers(const struct psd_graph *graph, unsigned layer);

/* Largest number of a machine's cores that an operation uses; 0: it works on a copy engine or the network. */
double psd_op_cores(const struct psd_op *op, const struct psd_machine *machine);

/* Turn of a task: of the ready tasks, the one with the smallest turn starts first. Pure. */
int64_t psd_program_turn(const struct psd_program *program, uint32_t op, uint32_t iteration);

/* True if the host executes the operation (op->where). */
bool psd_op_runs_on(const struct psd_op *op, const struct psd_layout *layout, unsigned host);

/* True if each worker may itself begin the next collective that is ready there. Then collectives become ready in the
 * same order everywhere, and one that begins too early keeps back nothing that others wait for. Otherwise one host has
 * to decide for all. Pure. */
bool psd_program_orders_collectives(const struct psd_program *program);

/* Bytes that a node sends to and receives from other nodes in an iteration that exchanges. */
struct psd_traffic psd_program_traffic(const struct psd_program *program, unsigned node);

#endif
