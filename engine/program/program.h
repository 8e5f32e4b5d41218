/* The program: the operations of one iteration with their dependencies, made from the plan. It is the same for every
 * host. Scheduling choices (wait-free or sequential, barriers, priorities) are expressed only by dependencies and by
 * the operations' turns. Estimate, simulation and real execution execute the same program. */
#ifndef PSD_PROGRAM_H
#define PSD_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/collectives/layout.h"
#include "engine/program/plan.h"

enum psd_op_kind {
	/* forward pass of a layer that has parameters, and of the layers without parameters that follow it */
	PSD_OP_FORWARD,
	/* backward pass of the same layers in reverse order; afterwards the gradient of the layer is complete */
	PSD_OP_BACKWARD,
	PSD_OP_COPY_OUT, /* copy from the device's memory to the host's */
	PSD_OP_COPY_IN,	 /* copy from the host's memory to the device's */
	PSD_OP_SEND,	 /* this host sends all its messages of one transfer */
	PSD_OP_RECEIVE,	 /* ends when all messages of operation `match` to this host have arrived */
	/* a shard sums the gradients that it received from all workers, or from the leaders of nodes, and updates its
	 * parameters */
	PSD_OP_REDUCE,
	/* a gradient is rebuilt from received factors (a matrix product), and the parameters are updated by it */
	PSD_OP_FACTOR,
	PSD_OP_APPLY, /* parameters are updated by a gradient that is complete on this host */
	/* all-reduce. All members of its group begin together. A host executes only one of them at a time. */
	PSD_OP_COLLECTIVE,
	/* Takes no time. An operation that waits for a gate thereby waits for all operations that the gate waits
	 * for. */
	PSD_OP_GATE,
	/* fixed work of the software stack at the end of an iteration, which the next iteration waits for */
	PSD_OP_BARRIER,
	PSD_OP_CONVERT, /* encodes or decodes the values of `source` into `target` */
	/* sparse all-reduce: the residual of earlier iterations is added to the gradient, and the chosen chunks are
	 * copied to the send buffer */
	PSD_OP_GATHER,
	/* Sparse all-reduce: chunks are chosen by their norms, to be sent in the next iteration. */
	PSD_OP_CHOOSE,
	/* the leader (first worker) of a node adds the gradients of the node's other workers to its own */
	PSD_OP_SUM,
	/* Local SGD: a worker updates its parameters by its own gradient. In iterations in which workers exchange, the
	 * change of the parameters since the last exchange then replaces the gradient. */
	PSD_OP_STEP,
	PSD_OP_PACK,	/* the residual is added to the gradient (error feedback), and the result is compressed */
	PSD_OP_REPACK,	/* a shard sums the compressed gradients of all workers, and compresses the sum */
	PSD_OP_UNPACK,	/* the compressed sum is decompressed into the buffer of the gradient */
	PSD_OP_PROJECT, /* low rank: the residual is added to the gradient, and its left matrix is computed */
	/* low rank: the sum of left matrices becomes an orthonormal basis, then right matrix and residual are
	 * computed */
	PSD_OP_FIT,
	PSD_OP_EXPAND, /* low rank: the product of left and right matrix replaces the gradient */
	/* Takes no time. It ends when the first layer of the next iteration may start. The duration of an iteration is
	 * measured from one PSD_OP_NEXT to the next. */
	PSD_OP_NEXT,
	PSD_OP_MEASURE, /* gradient clipping: computes the sum of squares of a gradient that is complete on this host */
	/* Gradient clipping: computes the factor by which all gradients are multiplied, from all sums of squares. */
	PSD_OP_CLIP,
	PSD_OP_KINDS
};
/* Names of the operation kinds in messages, traces and plots, indexed by enum psd_op_kind; the last entry is NULL.
 * PSD_OP_COPY_OUT and PSD_OP_COPY_IN have the same name. */
extern const char *const psd_op_kind_names[PSD_OP_KINDS + 1];

/* Resource of a host that an operation occupies while it is executed. Each resource executes one operation at a
 * time. */
enum psd_resource {
	PSD_RESOURCE_DEVICE,
	PSD_RESOURCE_COPY_OUT,
	PSD_RESOURCE_COPY_IN,
	PSD_RESOURCE_CPU,
	PSD_RESOURCE_NIC, /* sending side of the network interface; receive operations need no resource */
	PSD_RESOURCES,
	PSD_RESOURCE_NONE = PSD_RESOURCES
};

/* Hosts that execute an operation. PSD_WHERE_ROOT: the host op->payload.root; PSD_WHERE_GROUP: the hosts in
 * op->payload.group. */
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
	unsigned layer; /* number, in the graph, of the layer to which the operation belongs */
	int item;	/* number, in the plan, of the item (bucket) to which the operation belongs; -1: to no item */
	unsigned slice; /* number of the item's (bucket's) slice, from 0 */
	/* duration if nothing slows it down, seconds; for operations on a device, copy engine or CPU */
	double work_sec;
	/* Bytes, for reports only. Copies and sums: bytes copied or summed. Transfers: bytes that the host with the
	 * most traffic sends in this operation. */
	uint64_t bytes;
	struct psd_payload payload; /* data of a send, receive or collective */
	/* Buffers. A transfer reads `source` on the sender and writes `target` on the receiver. Operations of kind
	 * CONVERT, COPY_OUT, COPY_IN, GATHER and CHOOSE read `source` and write `target`. */
	enum psd_buffer source, target;
	uint32_t match; /* PSD_OP_RECEIVE: number of the send operation whose messages it receives */
	/* PSD_OP_APPLY, PSD_OP_MEASURE: the operation uses the gradient of the iteration `lag` iterations earlier. It
	 * does nothing in the first `lag` iterations, which have no such gradient. */
	uint32_t lag;
	bool is_exchange; /* executed only in iterations in which workers exchange (struct psd_period) */
	/* The operation waits, directly or through other operations, for a collective of the same iteration. */
	bool follows_collective;
	/* Priority among ready operations of a resource: the smallest turn starts first. Equal turns: first the lowest
	 * iteration, then the lowest operation number. */
	int64_t turn;
	/* index in program->dependencies of the first of the n_dependencies entries of this operation */
	uint32_t first_dependency;
	uint32_t n_dependencies;
	/* index in program->dependents of the first of the n_dependents entries of this operation */
	uint32_t first_dependent;
	uint32_t n_dependents;
};

/* Dependency between two operations. Each one is stored twice: in program->dependencies and in program->dependents. */
struct psd_edge {
	/* Number of an operation. In `dependencies` it is the operation that is waited for, in `dependents` the
	 * operation that waits. */
	uint32_t op;
	/* Number of iterations from the operation that is waited for to the operation that waits; 0: both are in the
	 * same iteration. An operation of an iteration before the first counts as ended. */
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
	/* Number that is added to an operation's turn for each iteration, so that operations of older iterations start
	 * first. It is not added for operations of the device. 0: turns are the same in all iterations. */
	int64_t iteration_turns;
	bool has_groups; /* at least one collective has only some of the workers as members */
};

/* Makes the operations of an iteration from the plan. A dependency counts only on hosts that execute both of its
 * operations. *program is filled on success and released by psd_program_release(). PSD_ENOMEM. */
enum psd_status psd_program_make(struct psd_program *program, const struct psd_plan *plan,
				 struct psd_error *err) PSD_MUST_CHECK;
void psd_program_release(struct psd_program *program);

/* Consecutive layers of the graph: numbers `first` to `end` - 1. */
struct psd_layers {
	unsigned first;
	unsigned end;
};
/* Returns the layers that a PSD_OP_FORWARD or PSD_OP_BACKWARD with op->layer = `layer` executes. */
struct psd_layers psd_program_layers(const struct psd_graph *graph, unsigned layer);

/* Returns the largest number of processor cores that an operation can use. It is machine->threads for layers and other
 * device work, 1 for sums and for work of a fixed duration, 0 for copies and
 * transfers. */
double psd_op_cores(const struct psd_op *op, const struct psd_machine *machine);

/* Returns the turn of operation number `op` in an iteration. Among ready operations the one with the smallest turn
 * starts first. Pure. */
int64_t psd_program_turn(const struct psd_program *program, uint32_t op, uint32_t iteration);

/* True if the host is one of those that execute the operation (op->where). */
bool psd_op_runs_on(const struct psd_op *op, const struct psd_layout *layout, unsigned host);

/* True if each worker may begin collectives in the order in which they become ready on it, because this order is the
 * same on all workers. Also, no send operation then waits behind a collective that began too early. False: one host
 * has to decide the order for all hosts. Pure. */
bool psd_program_orders_collectives(const struct psd_program *program);

/* Returns the bytes that a node sends to other nodes, and receives from them, in an iteration in which workers
 * exchange. */
struct psd_traffic psd_program_traffic(const struct psd_program *program, unsigned node);

#endif
