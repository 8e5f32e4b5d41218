/* The program: the operations of one iteration with their dependencies, made from the plan. It is the same for every
 * host. Scheduling choices (wait-free or sequential, barriers, priorities) are expressed only by dependencies and by
 * the operations' turns. Estimate, simulation and real execution execute the same program. */
#ifndef PSD_PROGRAM_H
#define PSD_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/collectives/layout.h"
#include "engine/program/operation.h"
#include "engine/program/period.h"
#include "engine/program/plan.h"
#include "engine/program/view.h"

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
	/* passes of layers and sums of gradients: number of the micro-batch in the iteration, from 0 */
	uint32_t micro_batch;
	/* duration if nothing slows it down, seconds; for operations on a device, copy engine or CPU */
	double work_sec;
	/* Bytes, for reports only. Copies and sums: bytes copied or summed. Transfers: bytes that the host with the
	 * most traffic sends in this operation. */
	uint64_t bytes;
	struct psd_payload payload; /* data of a send, receive or collective */
	/* Values that the operation reads and writes. A transfer reads `source` on the sender and writes `target` on
	 * the receiver; its payload says which elements. Updates leave both open: see psd_method.updates. */
	struct psd_view source, target;
	uint32_t match; /* number of the send operation whose messages a receive operation receives */
	/* updates and their norms: the operation uses the gradient of the iteration `lag` iterations earlier. It
	 * does nothing in the first `lag` iterations, which have no such gradient. If is_exchange, it is executed `lag`
	 * iterations after an exchange, but not in the last iteration of a run. */
	uint32_t lag;
	bool is_exchange;  /* executed only in iterations in which workers exchange (struct psd_period) */
	uint32_t fragment; /* if is_exchange: fragment that exchanges */
	bool is_last;	   /* if is_exchange: executed only in the last iteration of a run */
	bool is_between;   /* executed only in iterations in which workers do not exchange */
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
	uint32_t next_op; /* number of the operation that ends when the next iteration may start */
	/* Largest number of iterations that a host may have begun and not completed: the largest distance of a
	 * dependency plus 1. A message may arrive on a host at most this number of iterations too early. */
	uint32_t window;
	/* Number that is added to an operation's turn for each iteration, so that operations of older iterations start
	 * first. It is not added for operations of the device. 0: turns are the same in all iterations. */
	int64_t iteration_turns;
	/* Durations of operations on nodes of each kind (psd_layout_kind()), in place of psd_op.work_sec; shape
	 * (layout.n_kinds, n_ops). NULL: all nodes are of one kind. */
	double *kind_sec;
	bool has_groups; /* at least one collective has only some of the workers as members */
};

/* Makes the operations of an iteration from the plan. A dependency counts only on hosts that execute both of its
 * operations. *program is filled on success and released by psd_program_release(). PSD_ENOMEM. */
enum psd_status psd_program_make(struct psd_program *program, const struct psd_plan *plan,
				 struct psd_error *err) PSD_MUST_CHECK;
void psd_program_release(struct psd_program *program);

/* Returns the number of iterations that may need a gradient of a worker at the same time. With asynchronous training a
 * worker has the reply to its gradient before its next iteration, however far it is ahead of others. */
static inline uint32_t psd_program_under_way(const struct psd_program *program)
{
	return program->plan->async ? 1 : program->window - 1;
}

/* psd_op_is_send(): the operation sends all messages of this host in one transfer. psd_op_is_receive(): it waits for
 * all messages to this host in one transfer. psd_op_is_collective(): it is a stepwise transfer of a group.
 * psd_op_moves(): it is a send or a collective, whose messages occupy the NIC. */
static inline bool psd_op_is_send(const struct psd_op *op)
{
	return psd_ops[op->kind].part == PSD_PART_SENDS;
}

static inline bool psd_op_is_receive(const struct psd_op *op)
{
	return psd_ops[op->kind].part == PSD_PART_AWAITS;
}

static inline bool psd_op_is_collective(const struct psd_op *op)
{
	return psd_ops[op->kind].part == PSD_PART_TOGETHER;
}

static inline bool psd_op_moves(const struct psd_op *op)
{
	return psd_op_is_send(op) || psd_op_is_collective(op);
}

static inline bool psd_op_is_compute(const struct psd_op *op)
{
	return psd_ops[op->kind].is_forward || psd_ops[op->kind].is_backward;
}

/* Returns the operation's payload in an iteration. op->payload itself is the mean over all iterations. */
static inline struct psd_payload psd_op_payload(const struct psd_op *op, uint32_t iteration)
{
	struct psd_payload payload = op->payload;

	payload.round = iteration + UINT64_C(1);
	return payload;
}

/* Returns the durations of all operations on the host, n_ops entries, borrowed; NULL: they are those in
 * psd_op.work_sec. Pure. */
const double *psd_program_host_sec(const struct psd_program *program, unsigned host);

/* Consecutive layers of the graph: numbers `first` to `end` - 1. */
struct psd_layers {
	unsigned first;
	unsigned end;
};
/* Returns the layers that a forward or backward operation with op->layer = `layer` executes. */
struct psd_layers psd_program_layers(const struct psd_graph *graph, unsigned layer);

/* True if the operation is the last of a forward pass, after which the loss of its micro-batch is known. */
bool psd_op_ends_forward(const struct psd_op *op, const struct psd_graph *graph);

/* Returns the largest number of processor cores that an operation can use. It is machine->threads for layers and other
 * device work, 1 for sums and for work of a fixed duration, 0 for copies and
 * transfers. */
double psd_op_cores(const struct psd_op *op, const struct psd_machine *machine);

/* Returns the share of an operation's seconds on a host in which it uses cores. A device that is slower than its layer
 * times (speed_ratio of its kind) is emulated: work takes as long as on a device of full speed, then the worker waits
 * for the rest. Pure. */
double psd_program_busy_ratio(const struct psd_program *program, uint32_t op, unsigned host);

/* Returns the turn of operation number `op` in an iteration. Among ready operations the one with the smallest turn
 * starts first. Pure. */
int64_t psd_program_turn(const struct psd_program *program, uint32_t op, uint32_t iteration);

/* True if the host is one of those that execute the operation (op->where). */
bool psd_op_runs_on(const struct psd_op *op, const struct psd_layout *layout, unsigned host);

/* True if each worker may begin collectives in the order in which they become ready on it, because this order is the
 * same on all workers. Also, no send operation then waits behind a collective that began too early. False: one host
 * has to decide the order for all hosts. Pure. */
bool psd_program_orders_collectives(const struct psd_program *program);

/* True if the operation is executed in the iteration, if its `lag` and is_last are left out of account. Pure. */
bool psd_op_is_due(const struct psd_op *op, const struct psd_period *period, uint32_t iteration);
/* Returns the first iteration, from `iteration` on, in which the operation is executed. Pure. */
uint32_t psd_op_next(const struct psd_op *op, const struct psd_period *period, uint32_t iteration);
/* Returns the number of iterations, of n_iterations from the begin of a run on, in which the operation is executed.
 * n_exchanges: number of those in which workers exchange. Pure. */
uint32_t psd_op_times(const struct psd_op *op, uint32_t n_iterations, uint32_t n_exchanges);

/* Returns the bytes that a node sends to other nodes, and receives from them, in an iteration in which workers
 * exchange. */
struct psd_traffic psd_program_traffic(const struct psd_program *program, unsigned node);
/* Returns the mean of psd_program_traffic() over all iterations, with the plan's number of local steps. */
struct psd_traffic psd_program_mean_traffic(const struct psd_program *program, unsigned node);

#endif
