/* Which collectives may begin. Each is carried out by a group of hosts; those whose groups share a host take turns, in
 * the same order on all of them, and others do not wait for each other. Refuses to know what hosts do: the interpreter
 * says who is ready, and has them join. */
#ifndef PSD_COLLECTIVE_ORDER_H
#define PSD_COLLECTIVE_ORDER_H

#include "engine/base/error.h"
#include "engine/program/scheduler.h"

/* Its members join as their NICs become free; it runs when none is missing. */
struct psd_running_collective {
	struct psd_task task;
	bool is_under_way; /* else its place is free */
	unsigned n_missing;
};

struct psd_collective_order {
	const struct psd_program *program;
	bool is_coordinator;
	uint32_t *n_members; /* per operation: of a collective, on hosts here */
	uint32_t *n_ready;   /* a row of operations for each iteration of the window, in turn: members that are ready */
	struct psd_ready *waiting; /* ready on all members, in order: from first_waiting on so many */
	unsigned first_waiting, n_waiting, waiting_room;
	struct psd_running_collective *collectives;
	unsigned n_collectives, most_collectives;
	bool has_news; /* what waits may begin now, though it could not before */
	bool is_out_of_memory;
};

/* is_coordinator: hears of members on all hosts of the cluster, not of those here alone. PSD_ENOMEM. */
enum psd_status psd_collective_order_init(struct psd_collective_order *order, const struct psd_program *program,
					  unsigned n_hosts, const struct psd_duties *const duties[],
					  bool is_coordinator, struct psd_error *err) PSD_MUST_CHECK;
void psd_collective_order_release(struct psd_collective_order *order);

/* The collective is ready on one more member. */
void psd_collective_order_ready(struct psd_collective_order *order, struct psd_task task);
/* The collective is ready on all of them; smaller turns begin first. */
void psd_collective_order_add(struct psd_collective_order *order, int64_t turn, struct psd_task task);
/* The first that shares no host with one under way, or with an earlier one that has to wait: it is under way now.
 * NULL: there is none. Borrowed until psd_collective_order_end(). */
struct psd_running_collective *psd_collective_order_next(struct psd_collective_order *order);
/* The collective that is under way as this task. */
struct psd_running_collective *psd_collective_order_find(struct psd_collective_order *order, struct psd_task task);
void psd_collective_order_end(struct psd_collective_order *order, struct psd_running_collective *collective);

#endif
