/* Private to methods and to tests that make programs by hand: operations and edges as they are collected, between open
 * and close. */
#ifndef PSD_PROGRAM_BUILDER_H
#define PSD_PROGRAM_BUILDER_H

#include "engine/program/program.h"

#define PSD_NO_OP UINT32_MAX

/* Grows arrays of operations and edges; remembers a failed allocation instead of reporting each. */
struct psd_builder {
	const struct psd_plan *plan;
	struct psd_program program;
	uint32_t ops_capacity;
	uint32_t edges_capacity;
	bool is_out_of_memory;
	uint32_t *backward_of_layer;
	uint32_t backward_end;	/* the backward operation of the first layer: the last one to run */
	uint32_t gate_backward; /* sequential schedule: stages wait for each other at these; PSD_NO_OP otherwise */
	uint32_t gate_copied_out;
	uint32_t gate_pushed;
	uint32_t gate_pulled;
	uint32_t *done_ops; /* pairs of layer and operation that ends the layer's synchronisation on a host */
	uint32_t n_done;
	uint32_t done_capacity;
};

/* For psd_builder_close() to release, which fills *program unless something failed. PSD_ENOMEM. */
enum psd_status psd_builder_open(struct psd_builder *builder, const struct psd_plan *plan,
				 struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_builder_close(struct psd_builder *builder, struct psd_program *program,
				  struct psd_error *err) PSD_MUST_CHECK;

/* Appends forward and backward operations of all layers; they come first in a program. Returns the first forward one. */
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
/* The layer's synchronisation on a host is over when all such `op`s are done: its new parameters are on the device, and
 * what it owes to others has left. */
void psd_builder_add_done(struct psd_builder *builder, unsigned layer, uint32_t op);
/* Appends the operations that synchronise every item of the plan. */
void psd_builder_add_synchronisation(struct psd_builder *builder);

#endif
