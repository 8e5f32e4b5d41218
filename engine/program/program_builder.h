/* Private to methods and to tests that make programs by hand: operations and edges as they are collected, between open
 * and close. */
#ifndef PSD_PROGRAM_BUILDER_H
#define PSD_PROGRAM_BUILDER_H

#include "engine/program/program.h"

#define PSD_NO_OP UINT32_MAX

/* Of what leaves a device: layers, whose turn is -1, are always ready while backward goes on, and would keep it. */
enum { PSD_TURN_BEFORE_LAYERS = -2 };

/* `waits` cannot start before `before`, of so many iterations earlier, is done. */
struct psd_builder_edge {
	uint32_t before, waits, distance;
};

/* Operation that ends an item's synchronisation on a host, so many iterations before. */
struct psd_builder_done {
	int item;
	uint32_t op, lag;
};

/* Grows arrays of operations and edges; remembers a failed allocation instead of reporting each. */
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
	uint32_t backward_end;	/* the backward operation of the first layer: the last one to run */
	uint32_t gate_backward; /* sequential schedule: stages wait for each other at these; PSD_NO_OP otherwise */
	uint32_t gate_copied_out;
	uint32_t gate_pushed;
	uint32_t gate_pulled;
	uint32_t clip; /* what every update waits for; PSD_NO_OP: nothing that all have in common */
};

/* *builder is ready for operations on success, until psd_builder_close(). PSD_ENOMEM. */
enum psd_status psd_builder_open(struct psd_builder *builder, const struct psd_plan *plan,
				 struct psd_error *err) PSD_MUST_CHECK;
/* Fills *program with what was appended, for psd_program_release(), and releases the builder also where that fails:
 * PSD_ENOMEM, now or in any call before. */
enum psd_status psd_builder_close(struct psd_builder *builder, struct psd_program *program,
				  struct psd_error *err) PSD_MUST_CHECK;

/* Appends forward and backward operations of all layers; they come first in a program. Returns the first forward one.
 */
uint32_t psd_builder_add_compute(struct psd_builder *builder);
/* Appends the end of an iteration, which waits for the last backward operation, and for what is done as the system's
 * barrier has it. */
void psd_builder_add_ends(struct psd_builder *builder, uint32_t first_forward);
/* Appends an operation and returns its number. */
uint32_t psd_builder_add_op(struct psd_builder *builder, const struct psd_op *op);
/* A gate, carried out at once when all it waits for is done. */
uint32_t psd_builder_add_gate(struct psd_builder *builder, enum psd_where where);
/* `waits` cannot start before `before` is done; nothing happens when one of them is PSD_NO_OP. */
void psd_builder_after(struct psd_builder *builder, uint32_t waits, uint32_t before);
/* The same, where `waits` belongs to an iteration so many after. */
void psd_builder_after_iterations(struct psd_builder *builder, uint32_t waits, uint32_t before, uint32_t distance);

/* ---- for methods ---- */

/* What is unrolled: an item, or a slice of it. */
struct psd_stage {
	const struct psd_plan_item *item;
	int item_index;
	unsigned slice;
	int64_t turn;
	uint32_t gradient; /* the operation that makes it final */
};

/* What a message is: between whom, and of what. */
struct psd_route {
	const struct psd_collective *collective;
	enum psd_where from, to;
	enum psd_buffer source, target;
};

struct psd_message {
	uint32_t send, receive;
};

/* What comes back of a stage. In sequence the replies of all others wait for this host's pushes, so these leave first,
 * else a worker that is behind would keep the others waiting for it, iteration after iteration. */
struct psd_stage psd_stage_reply(const struct psd_builder *builder, const struct psd_stage *stage);
/* An operation of the stage, not yet appended. */
struct psd_op psd_stage_op(const struct psd_stage *stage, enum psd_op_kind kind, enum psd_resource resource,
			   enum psd_where where);
/* The same of a transfer by the route, carried out where it begins. */
struct psd_op psd_stage_transfer(const struct psd_builder *builder, const struct psd_stage *stage,
				 enum psd_op_kind kind, const struct psd_route *route, uint64_t elements);
/* What `before` leaves in the route's source becomes what travels and comes to the host's memory, on the hosts that the
 * route begins at, `elements` of it on each: values of a device with memory of its own are converted there and copied
 * out. Each operation waits for the gate; where there is none, `before` stands for it. */
uint32_t psd_builder_add_leaving(struct psd_builder *builder, const struct psd_stage *stage,
				 const struct psd_route *route, uint64_t elements, uint32_t before, uint32_t gate);
/* The way back, after what has arrived and after the gate, which waits for that. */
uint32_t psd_builder_add_arrival(struct psd_builder *builder, const struct psd_stage *stage,
				 const struct psd_route *route, uint64_t elements, uint32_t arrived, uint32_t gate);
/* A worker's gradient or factors become what travels and leave the device, after the stage's gradient. */
uint32_t psd_builder_add_departure(struct psd_builder *builder, const struct psd_stage *stage,
				   const struct psd_route *route, uint64_t elements);
/* `waits` cannot start before the departure is over, in sequence that of every item. */
void psd_builder_after_departure(struct psd_builder *builder, uint32_t waits, uint32_t departure);
/* A send and its receive; both PSD_NO_OP on a single host. */
struct psd_message psd_builder_add_message(struct psd_builder *builder, const struct psd_stage *stage,
					   const struct psd_route *route, uint64_t elements);
/* Joins what has arrived from others with what this host has encoded for them, which it decodes itself, so that all go
 * on with the same values. Carried out by the hosts `where`; PSD_WHERE_ROOT: the item's. */
uint32_t psd_builder_add_both(struct psd_builder *builder, const struct psd_stage *stage, enum psd_where where,
			      uint32_t arrived, uint32_t encoded);
/* Workers sum by the route what has departed; returns what leaves the sums on every worker's device. */
uint32_t psd_builder_add_all_reduce(struct psd_builder *builder, const struct psd_stage *stage,
				    const struct psd_route *route, uint64_t elements, uint32_t departure);
/* The update, where the whole gradient is on the host's own device; where updates come late, of an earlier one, behind
 * the layers that still compute with the old parameters. */
uint32_t psd_builder_add_apply(struct psd_builder *builder, const struct psd_stage *stage, enum psd_where where,
			       uint32_t gradient);
/* A local step of the worker; returns what leaves in the gradient's place how far its parameters have gone. */
uint32_t psd_builder_add_step(struct psd_builder *builder, const struct psd_stage *stage);
/* All of the synchronisation, where a single worker has nobody to hear from. */
void psd_builder_add_lone_worker(struct psd_builder *builder, const struct psd_stage *stage);
/* Factors leave every worker by the route and arrive, copied to the device; returns what a rebuild waits for. */
uint32_t psd_builder_add_factor_exchange(struct psd_builder *builder, const struct psd_stage *stage,
					 const struct psd_route *route);
/* The gradient is rebuilt from the factors that have arrived, and applied; returns what applies it. Once for an item:
 * what its own samples take moves here from the backward operation. */
uint32_t psd_builder_add_rebuild(struct psd_builder *builder, const struct psd_stage *stage, enum psd_where where,
				 uint32_t arrived);
/* The item's synchronisation on a host is over when all such `op`s are done: its new parameters are on the device, and
 * what it owes to others has left. */
void psd_builder_add_done(struct psd_builder *builder, const struct psd_stage *stage, uint32_t op);
/* The same of what is sent: where updates come late the next iteration does not wait for it, but a later one, before
 * what is read from has new values, scaled ones included. */
void psd_builder_add_sent(struct psd_builder *builder, const struct psd_stage *stage, uint32_t send);

/* ---- for the program ---- */

/* Appends the operations that synchronise every item of the plan. */
void psd_builder_add_synchronisation(struct psd_builder *builder);

#endif
