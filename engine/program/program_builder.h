/* Builder that collects the operations and dependencies of a program. Private to engine/program/, engine/methods/ and
 * tests that make programs by hand. */
#ifndef PSD_PROGRAM_BUILDER_H
#define PSD_PROGRAM_BUILDER_H

#include "engine/program/program.h"

#define PSD_NO_OP UINT32_MAX /* operation number that means: no operation */

/* Turns (psd_op.turn) on the device. Layers come before rebuilds and updates: gradients still to come hold up more than
 * parameters that are not yet needed. During the backward pass a layer is always ready: an operation that prepares
 * values for sending, such as encoding, comes before them, or it would start only after all layers. */
enum { PSD_TURN_BEFORE_LAYERS = -2, PSD_TURN_OF_LAYERS = -1 };

/* Dependency: operation `waits` cannot start before operation `before` has ended. Iteration i of `waits` waits for
 * iteration i - distance of `before`. */
struct psd_builder_edge {
	uint32_t before, waits, distance;
};

/* Operation that ends the synchronisation of an item (bucket). With lag > 0 an iteration waits for the operation of
 * `lag` iterations earlier. */
struct psd_builder_done {
	int item;
	uint32_t op, lag;
};

/* Program under construction: growing arrays of operations and dependencies. If an allocation fails,
 * psd_builder_close() reports it. */
struct psd_builder {
	const struct psd_plan *plan;
	struct psd_program program; /* program under construction; psd_builder_close() adds its dependencies */
	uint32_t ops_capacity;
	struct psd_builder_edge *edges;
	uint32_t n_edges, edges_capacity;
	struct psd_builder_done *done;
	uint32_t n_done, done_capacity;
	bool is_out_of_memory; /* an allocation has failed */
	/* per layer of the graph: number of the operation with its backward pass, in the last micro-batch */
	uint32_t *backward_of_layer;
	/* per micro-batch: number of its first forward operation */
	uint32_t *first_pass;
	/* numbers of the last forward and the last backward operation that were appended; the latter is of the first
	 * layer */
	uint32_t forward_end, backward_end;
	uint32_t n_compute; /* number of operations that psd_builder_add_compute() has appended */
	/* Gates (PSD_OP_GATE) of a sequential schedule; with other schedules they are PSD_NO_OP. This gate ends after
	 * all backward operations. */
	uint32_t gate_backward;
	/* gate (PSD_OP_GATE) of a sequential schedule that ends after all copies to the host; else PSD_NO_OP */
	uint32_t gate_copied_out;
	/* gate (PSD_OP_GATE) of a sequential schedule that ends after all pushes; else PSD_NO_OP */
	uint32_t gate_pushed;
	/* gate (PSD_OP_GATE) of a sequential schedule that ends after all pulls; else PSD_NO_OP */
	uint32_t gate_pulled;
	/* operation that computes the clipping factor; all updates wait for it. PSD_NO_OP: gradients are not
	 * clipped */
	uint32_t clip;
};

/* Prepares a builder without operations; psd_builder_close() releases it. PSD_ENOMEM. */
enum psd_status psd_builder_open(struct psd_builder *builder, const struct psd_plan *plan,
				 struct psd_error *err) PSD_MUST_CHECK;
/* Moves the appended operations to *program, which psd_program_release() releases. Releases the builder, also after a
 * failure. PSD_ENOMEM: an allocation failed in this call or in an earlier one. */
enum psd_status psd_builder_close(struct psd_builder *builder, struct psd_program *program,
				  struct psd_error *err) PSD_MUST_CHECK;

/* Appends the forward and backward operations of all layers, for each micro-batch, with the sums of gradients between
 * them. It must be called before any other operation is appended. Returns the number of the first forward operation. */
uint32_t psd_builder_add_compute(struct psd_builder *builder);
/* Appends the forward and backward operations of all layers for one micro-batch. The first of them waits for operation
 * `before` (PSD_NO_OP: for none). Returns its number. */
uint32_t psd_builder_add_passes(struct psd_builder *builder, uint32_t micro_batch, uint32_t before);
/* Returns the number of a forward or backward operation of micro-batch `micro_batch`: the one with the same layers as
 * operation `pass` of the last micro-batch. */
uint32_t psd_builder_pass_of(const struct psd_builder *builder, uint32_t pass, uint32_t micro_batch);
/* Appends the operations at the end of an iteration. They wait for the last backward operation. Depending on the
 * system's key `barrier`, they also wait for the synchronisation of all items (buckets). first_forward: result of
 * psd_builder_add_compute(). */
void psd_builder_add_ends(struct psd_builder *builder, uint32_t first_forward);
/* Appends an operation to the program and returns its number. */
uint32_t psd_builder_add_op(struct psd_builder *builder, const struct psd_op *op);
/* Returns an operation of this kind that belongs to no item (bucket), on all workers. It is not appended. */
struct psd_op psd_builder_op(enum psd_op_kind kind);
/* Appends a gate: an operation that takes no time and ends when all operations for which it waits have ended. where:
 * hosts that execute it. Returns its number. */
uint32_t psd_builder_add_gate(struct psd_builder *builder, enum psd_where where);
/* Adds a dependency: operation `waits` cannot start before operation `before` has ended. Does nothing if one of them is
 * PSD_NO_OP. */
void psd_builder_after(struct psd_builder *builder, uint32_t waits, uint32_t before);
/* Adds a dependency from one iteration to a later one: `waits` in iteration i cannot start before `before` in
 * iteration i - distance has ended. */
void psd_builder_after_iterations(struct psd_builder *builder, uint32_t waits, uint32_t before, uint32_t distance);

/* ---- for methods ---- */

/* Item whose synchronisation is being appended, or one slice of it, with the values that all its operations have in
 * common. */
struct psd_stage {
	const struct psd_plan_item *item;
	int item_index;	   /* number of the item (bucket) in the plan */
	unsigned slice;	   /* number of the slice in the item (bucket) */
	int64_t turn;	   /* turn of all operations of the stage, see psd_op.turn */
	uint32_t gradient; /* number of the operation after which the gradient is complete */
};

/* Route of a transfer: the collective, the sending and the receiving hosts, and the values that leave a sender's memory
 * and that arrive in a receiver's. */
struct psd_route {
	const struct psd_collective *collective;
	enum psd_where from, to;
	struct psd_view source, target;
};

/* Numbers of the send operation and the receive operation of one transfer. */
struct psd_message {
	uint32_t send, receive;
};

/* Returns the stage for the shards' replies to pushes. With a sequential schedule its turn is larger, so that each
 * host sends all its pushes before any reply. Otherwise one late worker would make all other workers wait in every
 * iteration. */
struct psd_stage psd_stage_reply(const struct psd_builder *builder, const struct psd_stage *stage);
/* Returns an operation that has the values of the stage: item (bucket), slice and turn, and the resource of its
 * kind. It is not appended to the program. */
struct psd_op psd_stage_op(const struct psd_stage *stage, enum psd_op_kind kind, enum psd_where where);
/* Returns the seconds in which an operation moves `bytes` bytes at the rate of its kind (psd_op_row.rate). */
double psd_builder_sec(const struct psd_builder *builder, enum psd_op_kind kind, double bytes);
/* Appends the operation, which moves op.bytes bytes at the rate of its kind and works `more_sec` seconds beside that,
 * after operation `before`. Returns it. */
uint32_t psd_builder_add_work(struct psd_builder *builder, struct psd_op op, double more_sec, uint32_t before);
/* Appends operations that encode `elements` values of the buffer route->source and copy them to the host's memory, on
 * the hosts route->from. A device with its own memory encodes before the copy. They wait for operation `before`, which
 * writes the values, and for `gate` (PSD_NO_OP: no gate). Returns the last of these operations, or `before` if none is
 * needed. */
uint32_t psd_builder_add_leaving(struct psd_builder *builder, const struct psd_stage *stage,
				 const struct psd_route *route, uint64_t elements, uint32_t before, uint32_t gate);
/* Appends operations that copy `elements` received values to the device and decode them into route->target. They wait
 * for operation `arrived` and for `gate`, which itself waits for `arrived`. Returns the last of these operations, or
 * `arrived` if none is needed. */
uint32_t psd_builder_add_arrival(struct psd_builder *builder, const struct psd_stage *stage,
				 const struct psd_route *route, uint64_t elements, uint32_t arrived, uint32_t gate);
/* Same as psd_builder_add_leaving() for a worker's gradient or factors, after the operation stage->gradient. With a
 * sequential schedule they wait for all backward operations. */
uint32_t psd_builder_add_departure(struct psd_builder *builder, const struct psd_stage *stage,
				   const struct psd_route *route, uint64_t elements);
/* Makes operation `waits` wait for `departure`, a result of psd_builder_add_departure(). With a sequential schedule it
 * waits for the departures of all items (buckets) instead. */
void psd_builder_after_departure(struct psd_builder *builder, uint32_t waits, uint32_t departure);
/* Appends two operations for a transfer: one sends its messages, the other receives them. Returns their numbers; both
 * are PSD_NO_OP if the cluster has only one host. */
struct psd_message psd_builder_add_message(struct psd_builder *builder, const struct psd_stage *stage,
					   const struct psd_route *route, uint64_t elements);
/* Appends a collective that transfers `elements` elements by the route, and returns it. */
uint32_t psd_builder_add_collective(struct psd_builder *builder, const struct psd_stage *stage,
				    const struct psd_route *route, uint64_t elements);
/* Appends the update of a shard's part by the sum of received gradients, of `bytes` bytes together, from `n_senders`
 * hosts. where: hosts that execute it. Returns it. */
uint32_t psd_builder_add_reduce(struct psd_builder *builder, const struct psd_stage *stage, enum psd_where where,
				double bytes, unsigned n_senders);
/* Appends the sum of the gradients of a node's workers on its leader, of `bytes` bytes together, and returns it. */
uint32_t psd_builder_add_node_sum(struct psd_builder *builder, const struct psd_stage *stage, double bytes);
/* Appends an operation that writes `elements` values of route->source to route->target, both in the memory in which
 * devices compute, after operation `before`. Returns it. */
uint32_t psd_builder_add_move(struct psd_builder *builder, const struct psd_stage *stage, const struct psd_route *route,
			      uint64_t elements, uint32_t before);
/* Appends a gate that waits for operations `arrived` and `encoded`, before decoding. A host decodes its own encoded
 * values, too, in the same way as those of other hosts, so that all hosts continue with equal values. where: hosts
 * that execute the gate. Returns the gate. */
uint32_t psd_builder_add_both(struct psd_builder *builder, const struct psd_stage *stage, enum psd_where where,
			      uint32_t arrived, uint32_t encoded);
/* Appends an all-reduce of `elements` values that operation `departure` has brought to the host's memory. Returns the
 * operation after which the sums are on the devices of all workers. */
uint32_t psd_builder_add_all_reduce(struct psd_builder *builder, const struct psd_stage *stage,
				    const struct psd_route *route, uint64_t elements, uint32_t departure);
/* Appends the update of parameters on the host's device by a gradient that is complete there after operation
 * `gradient`. A late update uses the gradient of an earlier iteration, and starts after the layers that still need the
 * old parameters. Returns the update. where: hosts that execute it. */
uint32_t psd_builder_add_apply(struct psd_builder *builder, const struct psd_stage *stage, enum psd_where where,
			       uint32_t gradient);
/* Appends a local step, in which a worker updates its parameters by its own gradient. Returns the operation after
 * which the gradient's buffer has the change of the parameters since the last exchange. */
uint32_t psd_builder_add_step(struct psd_builder *builder, const struct psd_stage *stage);
/* Appends all operations that an item (bucket) needs if the cluster has a single worker: only the update. */
void psd_builder_add_lone_worker(struct psd_builder *builder, const struct psd_stage *stage);
/* Appends the transfer of all workers' factors to the devices of the hosts route->to. Returns the operation after
 * which gradients can be rebuilt from them. */
uint32_t psd_builder_add_factor_exchange(struct psd_builder *builder, const struct psd_stage *stage,
					 const struct psd_route *route);
/* Appends operations that copy all workers' factors from the memory of the hosts route->to to their devices and decode
 * them. They wait for operation `arrived`, after which the factors are in the hosts' memory. departure: result of
 * psd_builder_add_departure() for a worker's own factors. Returns the operation after which gradients can be
 * rebuilt. */
uint32_t psd_builder_add_factor_arrival(struct psd_builder *builder, const struct psd_stage *stage,
					const struct psd_route *route, uint32_t arrived, uint32_t departure);
/* Appends two operations: one rebuilds the gradient from the factors that are there after operation `arrived`, the
 * other updates the parameters. Returns the update. It must be called once for an item (bucket): the rebuild includes
 * the gradient of the worker's own samples, so this work is subtracted from the backward operation. */
uint32_t psd_builder_add_rebuild(struct psd_builder *builder, const struct psd_stage *stage, enum psd_where where,
				 uint32_t arrived);
/* Appends only the operation that rebuilds the gradient, as psd_builder_add_rebuild() does. Returns it. */
uint32_t psd_builder_add_rebuilt(struct psd_builder *builder, const struct psd_stage *stage, enum psd_where where,
				 uint32_t arrived);
/* Appends the operations of local SGD: a step by the gradient that is complete after operation stage->gradient and, in
 * iterations in which workers exchange, the operations of `method` with the change of the parameters. */
void psd_builder_add_local(struct psd_builder *builder, const struct psd_stage *stage, const struct psd_method *method);
/* Marks an operation as one that ends the item's (bucket's) synchronisation. On a host the synchronisation has ended
 * when all operations marked for the item have ended. Then the new parameters are on the device, and the host's
 * messages have left. */
void psd_builder_add_done(struct psd_builder *builder, const struct psd_stage *stage, uint32_t op);
/* Marks a send operation as one that ends the item's (bucket's) synchronisation. With late updates the next iteration
 * does not wait for it, but a later one does, before it overwrites the send's source buffer. */
void psd_builder_add_sent(struct psd_builder *builder, const struct psd_stage *stage, uint32_t send);

/* ---- accumulate.c ---- */

/* Returns the operation after which the item's (bucket's) gradient is complete. It is the backward operation of the
 * item's lowest layer or, with accumulation, the sum with gradients of earlier micro-batches, which is appended. stage:
 * the whole item; stage->gradient is not read. */
uint32_t psd_builder_add_gradient(struct psd_builder *builder, const struct psd_stage *stage);
/* Appends an operation that adds this worker's part of a micro-batch's gradient, `elements` elements, to the sum of
 * earlier micro-batches in PSD_BUFFER_SUM. It waits for operation `before`. Returns it. */
uint32_t psd_builder_add_part_sum(struct psd_builder *builder, const struct psd_stage *stage, uint32_t micro_batch,
				  uint64_t elements, uint32_t before);
/* Returns the seconds in which the gradients of one more micro-batch are added to those of an item (bucket); 0 if its
 * method makes gradients from factors. Pure. */
double psd_builder_accumulate_sec(const struct psd_builder *builder, const struct psd_plan_item *item);

/* ---- stale_reads.c ---- */

/* Appends the operation by which a worker keeps its own gradient of the item (bucket), and returns it. Transfers of the
 * gradient wait for it. */
uint32_t psd_builder_add_keep(struct psd_builder *builder, const struct psd_stage *stage);
/* Appends the operations PSD_OP_READ, which make the parameters of each item (bucket) for the next forward pass as late
 * as possible. first_forward: result of psd_builder_add_compute(); barrier: operation at the end of an iteration. */
void psd_builder_add_reads(struct psd_builder *builder, uint32_t first_forward, uint32_t barrier);

/* ---- for program.c ---- */

/* Appends the operations that synchronise every item (bucket) of the plan. */
void psd_builder_add_synchronisation(struct psd_builder *builder);

#endif
