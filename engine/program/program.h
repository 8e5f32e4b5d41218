/* The program: operations of one iteration, unrolled from the plan, with their dependencies; the same for every host.
 * Scheduling choices (wait-free or sequential, barriers, priorities) are expressed only by the dependencies and turns
 * of operations. Estimate, simulation and real execution execute the same program. */
#ifndef PSD_PROGRAM_H
#define PSD_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/collectives/layout.h"
#include "engine/program/plan.h"

enum psd_op_kind {
	/* forward pass of a layer with parameters and of the layers without parameters that follow it */
	PSD_OP_FORWARD,
	PSD_OP_BACKWARD, /* backward pass of the same layers in reverse order; then the layer's gradient is final */
	PSD_OP_COPY_OUT, /* copy from the device's memory to the host's */
	PSD_OP_COPY_IN,	 /* copy from the host's memory to the device's */
	PSD_OP_SEND,	 /* this host sends all its messages of one collective */
	PSD_OP_RECEIVE,	 /* done when all messages of operation `match` to this host have arrived */
	/* a shard sums the gradients that it received from all workers, or from the leaders of nodes, and updates its
	 * parameters */
	PSD_OP_REDUCE,
	/* a gradient is rebuilt from received factors (a matrix product), and the parameters are updated by it */
	PSD_OP_FACTOR,
	PSD_OP_APPLY, /* parameters are updated by a gradient that is complete on this host */
	/* all-reduce; all members of its group begin together; a host executes one collective at a time */
	PSD_OP_COLLECTIVE,
	PSD_OP_GATE,	/* takes no time; operations that depend on a gate wait for all dependencies of the gate */
	PSD_OP_BARRIER, /* work of the software stack at the end of an iteration */
	PSD_OP_CONVERT, /* encodes or decodes the values of `source` into `target` */
	/* sparse all-reduce: the residual of earlier gradients is added to a gradient, and the chosen chunks are copied
	 * to the send buffer */
	PSD_OP_GATHER,
	PSD_OP_CHOOSE, /* sparse all-reduce: the chunks that travel in the next iteration are chosen by their norms */
	PSD_OP_SUM,    /* a leader adds the gradients of its node's other workers to its own */
	/* local SGD: a worker updates its parameters by its own gradient; in an iteration with an exchange the
	 * parameters' change then replaces the gradient */
	PSD_OP_STEP,
	PSD_OP_PACK,	/* the residual is added to a gradient (error feedback), and the sum is compressed */
	PSD_OP_REPACK,	/* a shard sums the compressed gradients of all workers, and compresses the sum */
	PSD_OP_UNPACK,	/* the compressed sum is decompressed into the gradient */
	PSD_OP_PROJECT, /* low rank: the residual is added to a gradient, and the left matrix is computed */
	/* low rank: the sum of left matrices is made orthonormal, then right matrix and residual are computed */
	PSD_OP_FIT,
	PSD_OP_EXPAND, /* low rank: the gradient becomes the product of left and right matrix */
	/* takes no time; marks that the next iteration's first layer may start. An iteration lasts from one NEXT to the
	 * next */
	PSD_OP_NEXT,
	PSD_OP_MEASURE, /* gradient clipping: computes the sum of squares of a gradient that is complete on this host */
	PSD_OP_CLIP,	/* gradient clipping: computes the factor on all gradients from all sums of squares */
	PSD_OP_KINDS
};
/* Names of the kinds in messages, traces and plots, by enum psd_op_kind; NULL ends the array. Both kinds of copy have
 * the same name. */
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

/* Hosts that execute an operation. PSD_WHERE_ROOT and PSD_WHERE_GROUP: root or group of the operation's payload. */
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
	unsigned layer;	 /* number, in the graph, of the layer that the operation belongs to */
	int item;	 /* number, in the plan, of the item (bucket) that the operation belongs to; -1: none */
	unsigned slice;	 /* number of the item's slice */
	double work_sec; /* duration on a device, copy engine or CPU, if nothing slows it down */
	/* bytes for reports: bytes copied or summed; for a transfer, all bytes of the host that sends most */
	uint64_t bytes;
	struct psd_payload payload; /* data of a send, receive or collective */
	/* Buffers. A transfer reads `source` on the sender and writes `target` on the receiver. Operations of kind
	 * CONVERT, COPY_OUT, COPY_IN, GATHER and CHOOSE read `source` and write `target`. */
	enum psd_buffer source, target;
	uint32_t match; /* PSD_OP_RECEIVE: number of the send operation whose messages it receives */
	/* PSD_OP_APPLY, PSD_OP_MEASURE: age of the gradient in iterations; in the first `lag` iterations there is no
	 * gradient */
	uint32_t lag;
	bool is_exchange;	 /* executed only in iterations in which workers exchange (struct psd_period) */
	bool follows_collective; /* waits for a collective of the same iteration, directly or through other operations
				  */
	/* priority among ready operations: the smallest turn starts first; among equal turns the lowest iteration, then
	 * the lowest operation number */
	int64_t turn;
	uint32_t first_dependency; /* index of the first of its n_dependencies entries in program->dependencies */
	uint32_t n_dependencies;
	uint32_t first_dependent; /* index of the first of its n_dependents entries in program->dependents */
	uint32_t n_dependents;
};

/* Dependency between two operations. Each one is stored twice: in program->dependencies and in program->dependents. */
struct psd_edge {
	/* number of an operation: in `dependencies` the one that is waited for, in `dependents` the one that waits */
	uint32_t op;
	/* Number of iterations by which the waiting operation is later than the one that is waited for; 0: both are in
	 * the same iteration. Operations before the first iteration count as done. */
	uint32_t distance;
};

struct psd_program {
	const struct psd_plan *plan; /* plan from which the program was made, borrowed */
	struct psd_op *ops;	     /* operations of one iteration, n_ops entries */
	uint32_t n_ops;
	/* array of n_edges entries: the operations that operation 0 waits for, then those that operation 1 waits for,
	 * and so on */
	struct psd_edge *dependencies;
	/* array of n_edges entries: the operations that wait for operation 0, then those that wait for operation 1, and
	 * so on */
	struct psd_edge *dependents;
	uint32_t n_edges;
	uint32_t next_op; /* number of the operation PSD_OP_NEXT */
	/* Largest number of iterations that a host may have begun and not completed: the largest distance of a
	 * dependency plus 1. A message may arrive on a host at most this number of iterations too early. */
	uint32_t window;
	/* Number added to turns per iteration, except on the device, so that operations of the oldest iteration start
	 * first. 0: nothing is added. */
	int64_t iteration_turns;
	bool has_groups; /* some collective has only a part of the workers as members */
};

/* Makes the operations of an iteration from the plan. A dependency counts only on hosts that execute both of its
 * operations. *program is filled on success and released by psd_program_release(). PSD_ENOMEM. */
enum psd_status psd_program_make(struct psd_program *program, const struct psd_plan *plan,
				 struct psd_error *err) PSD_MUST_CHECK;
void psd_program_release(struct psd_program *program);

/* Layers first to end - 1. */
struct psd_layers {
	unsigned first;
	unsigned end;
};
/* Returns the layers that a forward or backward operation with this `layer` executes. */
struct psd_layers psd_program_layers(const struct psd_graph *graph, unsigned layer);

/* Returns the largest number of the machine's processor cores that an operation uses; 0 if it uses a copy engine or the
 * network instead. */
double psd_op_cores(const struct psd_op *op, const struct psd_machine *machine);

/* Returns the turn of an operation in an iteration: among ready operations the one with the smallest turn starts first.
 * Pure. */
int64_t psd_program_turn(const struct psd_program *program, uint32_t op, uint32_t iteration);

/* True if the host executes the operation (op->where). */
bool psd_op_runs_on(const struct psd_op *op, const struct psd_layout *layout, unsigned host);

/* True if each worker may begin collectives in the order in which they become ready there: this order is the same on
 * all workers, and a collective that begins too early delays nothing that other workers wait for. False: one host has
 * to decide the order for all. Pure. */
bool psd_program_orders_collectives(const struct psd_program *program);

/* Returns the bytes that a node sends to and receives from other nodes, in an iteration in which workers exchange. */
struct psd_traffic psd_program_traffic(const struct psd_program *program, unsigned node);

#endif
