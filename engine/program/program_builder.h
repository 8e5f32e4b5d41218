/* Private to methods and to tests that make programs by hand: collects operations and edges, between open and close. */
#ifndef PSD_PROGRAM_BUILDER_H
#define PSD_PROGRAM_BUILDER_H

#include "engine/program/program.h"

#define PSD_NO_OP UINT32_MAX

/* Turn of operations that send values from a device. Layers have turn -1 and are always ready during the backward pass,
 * so a larger turn would have to wait for all of them. */
enum { PSD_TURN_BEFORE_LAYERS = -2 };

/* Dependency: operation `waits` cannot start before operation `before` of `distance` iterations earlier is done. */
struct psd_builder_edge {
	uint32_t before, waits, distance;
};

/* Operation that ends an item's synchronisation on a host, for the iteration `lag` iterations earlier. */
struct psd_builder_done {
	int item;
	uint32_t op, lag;
};

/* Growing arrays of operations and edges. A failed allocation is remembered and reported at the end. */
struct psd_builder {
	const struct psd_plan *plan;
	struct psd_program program; /* program under construction, still without edges */
	uint32_t ops_capacity;
	struct psd_builder_edge *edges;
	uint32_t n_edges, edges_capacity;
	struct psd_builder_done *done;
	uint32_t n_done, done_capacity;
	bool is_out_of_memory;
	uint32_t *backward_of_layer;
	uint32_t backward_end;	/* backward operation of the first layer, which is executed last */
	uint32_t gate_backward; /* sequential schedule: gates at which stages wait for each other; else PSD_NO_OP */
	uint32_t gate_copied_out;
	uint32_t gate_pushed;
	uint32_t gate_pulled;
	uint32_t clip; /* operation that computes the clipping factor, before every update; PSD_NO_OP: none */
};

/* Prepares a builder for appending operations, until psd_builder_close(). PSD_ENOMEM. */
enum psd_status psd_builder_open(struct psd_builder *builder, const struct psd_plan *plan,
				 struct psd_error *err) PSD_MUST_CHECK;
/* Fills *program with the appended operations, for psd_program_release(). Releases the builder also on failure:
 * PSD_ENOMEM, now or in any call before. */
enum psd_status psd_builder_close(struct psd_builder *builder, struct psd_program *program,
				  struct psd_error *err) PSD_MUST_CHECK;

/* Appends forward and backward operations of all layers; they come first in a program. Returns the first forward one.
 */
uint32_t psd_builder_add_compute(struct psd_builder *builder);
/* Appends the end of an iteration, which waits for the last backward operation and, as the system's barrier says, for
 * ends of items. */
void psd_builder_add_ends(struct psd_builder *builder, uint32_t first_forward);
/* Appends an operation to the program and returns its number. */
uint32_t psd_builder_add_op(struct psd_builder *builder, const struct psd_op *op);
/* Appends a gate, which is over as soon as all its dependencies are done. */
uint32_t psd_builder_add_gate(struct psd_builder *builder, enum psd_where where);
/* Adds a dependency: `waits` cannot start before `before` is done. Does nothing if one of them is PSD_NO_OP. */
void psd_builder_after(struct psd_builder *builder, uint32_t waits, uint32_t before);
/* Adds a dependency where `waits` belongs to an iteration `distance` later than `before`. */
void psd_builder_after_iterations(struct psd_builder *builder, uint32_t waits, uint32_t before, uint32_t distance);

/* ---- for methods ---- */

/* Synchronisation of an item, or of a slice of it, for which operations are appended. */
struct psd_stage {
	const struct psd_plan_item *item;
	int item_index;
	unsigned slice;
	int64_t turn;
	uint32_t gradient; /* operation after which the gradient is final */
};

/* Route of a transfer: its collective, hosts and buffers. */
struct psd_route {
	const struct psd_collective *collective;
	enum psd_where from, to;
	enum psd_buffer source, target;
};

struct psd_message {
	uint32_t send, receive;
};

/* Stage for the reply to a push. In sequence the replies of all others wait for this host's pushes, so that these leave
 * first. Otherwise a late worker would keep the others waiting in every iteration. */
struct psd_stage psd_stage_reply(const struct psd_builder *builder, const struct psd_stage *stage);
/* Fills in an operation of the stage, without appending it. */
struct psd_op psd_stage_op(const struct psd_stage *stage, enum psd_op_kind kind, enum psd_resource resource,
			   enum psd_where where);
/* Fills in a transfer of the stage by the route, executed on the hosts where the route begins. */
struct psd_op psd_stage_transfer(const struct psd_builder *builder, const struct psd_stage *stage,
				 enum psd_op_kind kind, const struct psd_route *route, uint64_t elements);
/* Encodes `elements` values that operation `before` leaves in the route's source, and copies them to the host's memory,
 * on each host where the route begins. A device with its own memory encodes before the copy. Each operation waits for
 * the gate; without one, for `before`. */
uint32_t psd_builder_add_leaving(struct psd_builder *builder, const struct psd_stage *stage,
				 const struct psd_route *route, uint64_t elements, uint32_t before, uint32_t gate);
/* Copies arrived values to the device and decodes them, after the arrival and the gate, which waits for the arrival. */
uint32_t psd_builder_add_arrival(struct psd_builder *builder, const struct psd_stage *stage,
				 const struct psd_route *route, uint64_t elements, uint32_t arrived, uint32_t gate);
/* Encodes a worker's gradient or factors and moves them off the device, after the stage's gradient. */
uint32_t psd_builder_add_departure(struct psd_builder *builder, const struct psd_stage *stage,
				   const struct psd_route *route, uint64_t elements);
/* Makes `waits` start after the departure is over; in sequence, after every item's departure is. */
void psd_builder_after_departure(struct psd_builder *builder, uint32_t waits, uint32_t departure);
/* Appends a send and its receive; both are PSD_NO_OP on a single host. */
struct psd_message psd_builder_add_message(struct psd_builder *builder, const struct psd_stage *stage,
					   const struct psd_route *route, uint64_t elements);
/* Combines arrived values with the encoded ones of this host, which it decodes like the others, so that all hosts
 * continue with equal values. where: hosts that execute it; PSD_WHERE_ROOT: the root of the item. */
uint32_t psd_builder_add_both(struct psd_builder *builder, const struct psd_stage *stage, enum psd_where where,
			      uint32_t arrived, uint32_t encoded);
/* Appends an all-reduce of departed values. Returns the operation after which the sums are on all workers' devices. */
uint32_t psd_builder_add_all_reduce(struct psd_builder *builder, const struct psd_stage *stage,
				    const struct psd_route *route, uint64_t elements, uint32_t departure);
/* Appends the update, where the whole gradient is on the host's own device. A late update takes an earlier gradient,
 * and runs behind the layers that still compute with the old parameters. */
uint32_t psd_builder_add_apply(struct psd_builder *builder, const struct psd_stage *stage, enum psd_where where,
			       uint32_t gradient);
/* Appends a local step of the worker. Returns the operation after which the parameters' change is in the gradient's
 * buffer. */
uint32_t psd_builder_add_step(struct psd_builder *builder, const struct psd_stage *stage);
/* Appends the whole synchronisation for a cluster with a single worker. */
void psd_builder_add_lone_worker(struct psd_builder *builder, const struct psd_stage *stage);
/* Appends the exchange of factors from every worker to the devices. Returns the operation that a rebuild waits for. */
uint32_t psd_builder_add_factor_exchange(struct psd_builder *builder, const struct psd_stage *stage,
					 const struct psd_route *route);
/* Appends the rebuild of the gradient from received factors and its update; returns the update. Called once for an
 * item: the cost of the worker's own samples moves here from the backward operation. */
uint32_t psd_builder_add_rebuild(struct psd_builder *builder, const struct psd_stage *stage, enum psd_where where,
				 uint32_t arrived);
/* Marks an operation that ends the item's synchronisation. It is over on a host when all of these are done: its new
 * parameters are on the device, and its messages have left. */
void psd_builder_add_done(struct psd_builder *builder, const struct psd_stage *stage, uint32_t op);
/* Marks a send that ends the item's synchronisation. With late updates a later iteration waits for it, not the next
 * one, before the source has new values, scaled ones included. */
void psd_builder_add_sent(struct psd_builder *builder, const struct psd_stage *stage, uint32_t send);

/* ---- for the program ---- */

/* Appends the operations that synchronise every item of the plan. */
void psd_builder_add_synchronisation(struct psd_builder *builder);

#endif
