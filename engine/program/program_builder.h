/* Builder that collects the operations and dependencies of a program. Private to engine/program/, engine/methods/ and
 * tests that make programs by hand. */
#ifndef PSD_PROGRAM_BUILDER_H
#define PSD_PROGRAM_BUILDER_H

#include "engine/program/program.h"

#define PSD_NO_OP UINT32_MAX /* number that means: no operation */

/* Turn of device operations that prepare values to be sent, such as encoding. The layers have turn -1, and one of them
 * is always ready during the backward pass. So with a larger turn these operations would start only after all
 * layers. */
enum { PSD_TURN_BEFORE_LAYERS = -2 };

/* Dependency: operation `waits` cannot start before operation `before`, of the iteration that is `distance` iterations
 * earlier, has ended. */
struct psd_builder_edge {
	uint32_t before, waits, distance;
};

/* Operation that ends the synchronisation of an item: of the gradient of `lag` iterations earlier. */
struct psd_builder_done {
	int item;
	uint32_t op, lag;
};

/* Growing arrays of operations and dependencies. A failed allocation is remembered, and psd_builder_close() reports
 * it. */
struct psd_builder {
	const struct psd_plan *plan;
	struct psd_program program; /* program under construction, without dependencies until psd_builder_close() */
	uint32_t ops_capacity;
	struct psd_builder_edge *edges;
	uint32_t n_edges, edges_capacity;
	struct psd_builder_done *done;
	uint32_t n_done, done_capacity;
	bool is_out_of_memory;	     /* an allocation has failed */
	uint32_t *backward_of_layer; /* per layer: number of the backward operation that executes it */
	uint32_t backward_end;	     /* backward operation of the first layer, which is executed last */
	/* gate of a sequential schedule after all backward operations; PSD_NO_OP with other schedules */
	uint32_t gate_backward;
	uint32_t gate_copied_out; /* gate of a sequential schedule after all copies to the host; otherwise PSD_NO_OP */
	uint32_t gate_pushed;	  /* gate of a sequential schedule after all pushes; otherwise PSD_NO_OP */
	uint32_t gate_pulled;	  /* gate of a sequential schedule after all pulls; otherwise PSD_NO_OP */
	/* operation that computes the clipping factor, for which all updates wait; PSD_NO_OP: gradients are not
	 * clipped */
	uint32_t clip;
};

/* Prepares an empty builder; psd_builder_close() releases it. PSD_ENOMEM. */
enum psd_status psd_builder_open(struct psd_builder *builder, const struct psd_plan *plan,
				 struct psd_error *err) PSD_MUST_CHECK;
/* Fills *program with the appended operations, and releases the builder also on failure. psd_program_release() releases
 * *program. PSD_ENOMEM: an allocation failed in this call or in an earlier one. */
enum psd_status psd_builder_close(struct psd_builder *builder, struct psd_program *program,
				  struct psd_error *err) PSD_MUST_CHECK;

/* Appends forward and backward operations of all layers, before all other operations. Returns the number of the first
 * forward operation. */
uint32_t psd_builder_add_compute(struct psd_builder *builder);
/* Appends the operations at the end of an iteration. They wait for the last backward operation and, depending on the
 * system's key `barrier`, for the ends of items' synchronisations. first_forward: result of
 * psd_builder_add_compute(). */
void psd_builder_add_ends(struct psd_builder *builder, uint32_t first_forward);
/* Appends an operation to the program and returns its number. */
uint32_t psd_builder_add_op(struct psd_builder *builder, const struct psd_op *op);
/* Appends a gate, an operation that ends as soon as all operations that it waits for have ended; `where`: hosts on
 * which it exists. Returns its number. */
uint32_t psd_builder_add_gate(struct psd_builder *builder, enum psd_where where);
/* Adds a dependency: operation `waits` cannot start before operation `before` has ended. Does nothing if one of them is
 * PSD_NO_OP. */
void psd_builder_after(struct psd_builder *builder, uint32_t waits, uint32_t before);
/* Adds a dependency across iterations: `waits` cannot start before `before` of the iteration `distance` iterations
 * earlier has ended. */
void psd_builder_after_iterations(struct psd_builder *builder, uint32_t waits, uint32_t before, uint32_t distance);

/* ---- for methods ---- */

/* Item, or slice of an item, whose synchronisation is being appended, with the values that all its operations have in
 * common. */
struct psd_stage {
	const struct psd_plan_item *item;
	int item_index;	   /* number of the item in the plan */
	unsigned slice;	   /* number of the slice */
	int64_t turn;	   /* turn of the operations */
	uint32_t gradient; /* operation after which the gradient is final */
};

/* Route of a transfer: its collective, the hosts that send and receive, and their buffers. */
struct psd_route {
	const struct psd_collective *collective;
	enum psd_where from, to;
	enum psd_buffer source, target;
};

/* Numbers of the operations that send and receive the messages of one transfer. */
struct psd_message {
	uint32_t send, receive;
};

/* Returns the stage for the reply to a push. With a sequential schedule its turn is larger, so on each host all pushes
 * leave before any reply. Otherwise a late worker would make all other workers wait in every iteration. */
struct psd_stage psd_stage_reply(const struct psd_builder *builder, const struct psd_stage *stage);
/* Returns an operation of the stage, without appending it. */
struct psd_op psd_stage_op(const struct psd_stage *stage, enum psd_op_kind kind, enum psd_resource resource,
			   enum psd_where where);
/* Returns an operation that transfers `elements` elements by the route, without appending it. It is executed on the
 * hosts at the route's begin. */
struct psd_op psd_stage_transfer(const struct psd_builder *builder, const struct psd_stage *stage,
				 enum psd_op_kind kind, const struct psd_route *route, uint64_t elements);
/* Appends operations that encode `elements` values of the route's source buffer and copy them to the host's memory, on
 * each host at the route's begin. A device with its own memory encodes before the copy. They wait for operation
 * `before`, which writes the values, and for `gate` (PSD_NO_OP: none). Returns the last of these operations; `before`
 * if none is needed. */
uint32_t psd_builder_add_leaving(struct psd_builder *builder, const struct psd_stage *stage,
				 const struct psd_route *route, uint64_t elements, uint32_t before, uint32_t gate);
/* Appends operations that copy arrived values to the device and decode them. They wait for operation `arrived` and for
 * `gate`, which itself waits for `arrived`. Returns the last of these operations; `arrived` if none is needed. */
uint32_t psd_builder_add_arrival(struct psd_builder *builder, const struct psd_stage *stage,
				 const struct psd_route *route, uint64_t elements, uint32_t arrived, uint32_t gate);
/* As psd_builder_add_leaving() for a worker's gradient or factors, after the operation that computes the stage's
 * gradient. With a sequential schedule it waits for all backward operations. */
uint32_t psd_builder_add_departure(struct psd_builder *builder, const struct psd_stage *stage,
				   const struct psd_route *route, uint64_t elements);
/* Makes operation `waits` wait for `departure`, the result of psd_builder_add_departure(). With a sequential schedule
 * it waits for the departures of all items. */
void psd_builder_after_departure(struct psd_builder *builder, uint32_t waits, uint32_t departure);
/* Appends a send operation and the receive operation that waits for its messages; both are PSD_NO_OP if there is only
 * one host. */
struct psd_message psd_builder_add_message(struct psd_builder *builder, const struct psd_stage *stage,
					   const struct psd_route *route, uint64_t elements);
/* Appends a gate after operations `arrived` and `encoded`. Decoding waits for it, because a host decodes its own
 * encoded values like those of the other hosts, so that all hosts continue with equal values. where: hosts on which the
 * gate exists. Returns the gate. */
uint32_t psd_builder_add_both(struct psd_builder *builder, const struct psd_stage *stage, enum psd_where where,
			      uint32_t arrived, uint32_t encoded);
/* Appends an all-reduce of values that have left the device by operation `departure`. Returns the operation after which
 * the sums are on all workers' devices. */
uint32_t psd_builder_add_all_reduce(struct psd_builder *builder, const struct psd_stage *stage,
				    const struct psd_route *route, uint64_t elements, uint32_t departure);
/* Appends the update of parameters by a whole gradient on the host's own device, after operation `gradient`. A late
 * update uses the gradient of an earlier iteration, and starts after the layers that still need the old parameters.
 * Returns the update. */
uint32_t psd_builder_add_apply(struct psd_builder *builder, const struct psd_stage *stage, enum psd_where where,
			       uint32_t gradient);
/* Appends a local step, in which a worker updates its parameters by its own gradient. Returns the operation after which
 * the change of the parameters since the last exchange is in the gradient's buffer. */
uint32_t psd_builder_add_step(struct psd_builder *builder, const struct psd_stage *stage);
/* Appends all operations that an item needs in a cluster with a single worker: the update. */
void psd_builder_add_lone_worker(struct psd_builder *builder, const struct psd_stage *stage);
/* Appends the transfer of all workers' factors to the devices at the route's end. Returns the operation after which
 * gradients can be rebuilt from them. */
uint32_t psd_builder_add_factor_exchange(struct psd_builder *builder, const struct psd_stage *stage,
					 const struct psd_route *route);
/* Appends an operation that rebuilds the gradient from received factors, after operation `arrived`, and the update of
 * the parameters; returns the update. Called once for an item: the cost of the gradient of the worker's own samples
 * moves from the backward operation to this one. */
uint32_t psd_builder_add_rebuild(struct psd_builder *builder, const struct psd_stage *stage, enum psd_where where,
				 uint32_t arrived);
/* Marks an operation that ends the item's synchronisation. On a host the synchronisation ends when all marked
 * operations have ended: then the new parameters are on the device, and the host's messages have left. */
void psd_builder_add_done(struct psd_builder *builder, const struct psd_stage *stage, uint32_t op);
/* Marks a send operation that ends the item's synchronisation. With late updates not the next iteration but a later one
 * waits for it, before the send's source buffer is overwritten or scaled. */
void psd_builder_add_sent(struct psd_builder *builder, const struct psd_stage *stage, uint32_t send);

/* ---- for the program ---- */

/* Appends the operations that synchronise every item of the plan. */
void psd_builder_add_synchronisation(struct psd_builder *builder);

#endif
