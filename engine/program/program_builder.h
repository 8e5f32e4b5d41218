/* Private to methods and to tests that make programs by hand: collects operations and edges, between open and close. */
#ifndef PSD_PROGRAM_BUILDER_H
#define PSD_PROGRAM_BUILDER_H

#include "engine/program/program.h"

#define PSD_NO_OP UINT32_MAX

/* Turn of operations that send values from a device. Layers have turn -1, are always ready while backward goes on, and
 * would keep the device. */
enum { PSD_TURN_BEFORE_LAYERS = -2 };

/* `waits` cannot start before `before` of `distance` iterations earlier is done. */
struct psd_builder_edge {
	uint32_t before, waits, distance;
};

/* Operation that ends an item's synchronisation on a host, `lag` iterations earlier. */
struct psd_builder_done {
	int item;
	uint32_t op, lag;
};

/* Growing arrays of operations and edges. A failed allocation is remembered and reported at the end. */
struct psd_builder {
	const struct psd_plan *plan;
	struct psd_program program; /* as yet without edges */
	uint32_t ops_capacity;
	struct psd_builder_edge *edges;
	uint32_t n_edges, edges_capacity;
	struct psd_builder_done *done;
	uint32_t n_done, done_capacity;
	bool is_out_of_memory;
	uint32_t *backward_of_layer;
	uint32_t backward_end;	/* backward operation of the first layer, the last one to run */
	uint32_t gate_backward; /* sequential schedule: stages wait for each other at these; PSD_NO_OP otherwise */
	uint32_t gate_copied_out;
	uint32_t gate_pushed;
	uint32_t gate_pulled;
	uint32_t clip; /* operation that every update waits for; PSD_NO_OP: none */
};

/* *builder is ready for operations on success, until psd_builder_close(). PSD_ENOMEM. */
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
/* Appends an operation and returns its number. */
uint32_t psd_builder_add_op(struct psd_builder *builder, const struct psd_op *op);
/* Appends a gate, which is over as soon as all its dependencies are done. */
uint32_t psd_builder_add_gate(struct psd_builder *builder, enum psd_where where);
/* `waits` cannot start before `before` is done; nothing happens when one of them is PSD_NO_OP. */
void psd_builder_after(struct psd_builder *builder, uint32_t waits, uint32_t before);
/* The same, where `waits` belongs to an iteration `distance` later. */
void psd_builder_after_iterations(struct psd_builder *builder, uint32_t waits, uint32_t before, uint32_t distance);

/* ---- for methods ---- */

/* An item, or a slice of it, that is unrolled. */
struct psd_stage {
	const struct psd_plan_item *item;
	int item_index;
	unsigned slice;
	int64_t turn;
	uint32_t gradient; /* operation that makes the gradient final */
};

/* A transfer: its collective, hosts and buffers. */
struct psd_route {
	const struct psd_collective *collective;
	enum psd_where from, to;
	enum psd_buffer source, target;
};

struct psd_message {
	uint32_t send, receive;
};

/* The stage of a reply. In sequence the replies of all others wait for this host's pushes, so that these leave first;
 * otherwise a late worker would keep the others waiting in every iteration. */
struct psd_stage psd_stage_reply(const struct psd_builder *builder, const struct psd_stage *stage);
/* An operation of the stage, not yet appended. */
struct psd_op psd_stage_op(const struct psd_stage *stage, enum psd_op_kind kind, enum psd_resource resource,
			   enum psd_where where);
/* A transfer of the stage by the route, executed where it begins. */
struct psd_op psd_stage_transfer(const struct psd_builder *builder, const struct psd_stage *stage,
				 enum psd_op_kind kind, const struct psd_route *route, uint64_t elements);
/* Encodes the values that `before` leaves in the route's source and copies them to the host's memory, `elements` on
 * each host that the route begins at; a device with memory of its own encodes before the copy. Each operation waits for
 * the gate; without one, `before` takes its place. */
uint32_t psd_builder_add_leaving(struct psd_builder *builder, const struct psd_stage *stage,
				 const struct psd_route *route, uint64_t elements, uint32_t before, uint32_t gate);
/* The reverse, after the arrival and after the gate, which waits for it. */
uint32_t psd_builder_add_arrival(struct psd_builder *builder, const struct psd_stage *stage,
				 const struct psd_route *route, uint64_t elements, uint32_t arrived, uint32_t gate);
/* Encodes a worker's gradient or factors and moves them off the device, after the stage's gradient. */
uint32_t psd_builder_add_departure(struct psd_builder *builder, const struct psd_stage *stage,
				   const struct psd_route *route, uint64_t elements);
/* `waits` cannot start before the departure is over; in sequence, before every item's departure is. */
void psd_builder_after_departure(struct psd_builder *builder, uint32_t waits, uint32_t departure);
/* A send and its receive; both PSD_NO_OP on a single host. */
struct psd_message psd_builder_add_message(struct psd_builder *builder, const struct psd_stage *stage,
					   const struct psd_route *route, uint64_t elements);
/* Joins values that arrive from others with those that this host has encoded for them, and decodes its own, so that all
 * hosts continue with equal values. where: hosts that execute it; PSD_WHERE_ROOT: the item's. */
uint32_t psd_builder_add_both(struct psd_builder *builder, const struct psd_stage *stage, enum psd_where where,
			      uint32_t arrived, uint32_t encoded);
/* Workers sum departed values by the route. Returns the operation that leaves the sums on every worker's device. */
uint32_t psd_builder_add_all_reduce(struct psd_builder *builder, const struct psd_stage *stage,
				    const struct psd_route *route, uint64_t elements, uint32_t departure);
/* Appends the update, where the whole gradient is on the host's own device. A late update takes an earlier gradient,
 * and runs behind the layers that still compute with the old parameters. */
uint32_t psd_builder_add_apply(struct psd_builder *builder, const struct psd_stage *stage, enum psd_where where,
			       uint32_t gradient);
/* Appends a local step of the worker. Returns the operation that leaves the parameters' change in the gradient's
 * buffer. */
uint32_t psd_builder_add_step(struct psd_builder *builder, const struct psd_stage *stage);
/* Appends the whole synchronisation of a single worker. */
void psd_builder_add_lone_worker(struct psd_builder *builder, const struct psd_stage *stage);
/* Factors leave every worker by the route and arrive on the devices. Returns the operation that a rebuild waits for. */
uint32_t psd_builder_add_factor_exchange(struct psd_builder *builder, const struct psd_stage *stage,
					 const struct psd_route *route);
/* Rebuilds the gradient from received factors and applies it; returns the update. Once for an item: the time of its own
 * samples moves here from the backward operation. */
uint32_t psd_builder_add_rebuild(struct psd_builder *builder, const struct psd_stage *stage, enum psd_where where,
				 uint32_t arrived);
/* The item's synchronisation on a host is over when all such `op`s are done: its new parameters are on the device, and
 * its messages have left. */
void psd_builder_add_done(struct psd_builder *builder, const struct psd_stage *stage, uint32_t op);
/* The same for a send. With late updates a later iteration waits for it, not the next one, before the source has new
 * values, scaled ones included. */
void psd_builder_add_sent(struct psd_builder *builder, const struct psd_stage *stage, uint32_t send);

/* ---- for the program ---- */

/* Appends the operations that synchronise every item of the plan. */
void psd_builder_add_synchronisation(struct psd_builder *builder);

#endif
