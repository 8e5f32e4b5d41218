/* Order of collectives. Groups that share a host execute their collectives one after the other, in the same order on
 * all hosts; other groups do not wait for each other. The interpreter reports each member that is ready and each host
 * that begins its part. */
#ifndef PSD_COLLECTIVE_ORDER_H
#define PSD_COLLECTIVE_ORDER_H

#include "engine/base/error.h"
#include "engine/program/scheduler.h"

/* A collective under way. Members join as their NICs become free; its execution begins when none is missing. */
struct psd_running_collective {
	struct psd_task task;
	bool is_under_way; /* true: a collective is under way; false: the entry is free */
	unsigned n_missing;
};

struct psd_collective_order {
	const struct psd_program *program;
	bool is_coordinator;
	uint32_t *n_members; /* per operation: number of hosts here that take part in its collective */
	uint32_t *n_ready;   /* number of ready members: a row of operations per iteration of the window, in turn */
	struct psd_ready *waiting; /* collectives that are ready on all members, in order; n_waiting of them from
				      first_waiting on */
	unsigned first_waiting, n_waiting, waiting_room;
	struct psd_running_collective *collectives;
	unsigned n_collectives, most_collectives;
	bool has_news; /* a change since the last look: a waiting collective may be able to begin */
	bool is_out_of_memory;
};

/* Makes an empty order. is_coordinator: it hears of members on all hosts of the cluster, not only here. PSD_ENOMEM. */
enum psd_status psd_collective_order_init(struct psd_collective_order *order, const struct psd_program *program,
					  unsigned n_hosts, const struct psd_duties *const duties[],
					  bool is_coordinator, struct psd_error *err) PSD_MUST_CHECK;
void psd_collective_order_release(struct psd_collective_order *order);

/* Records that one more member is ready for the collective. */
void psd_collective_order_ready(struct psd_collective_order *order, struct psd_task task);
/* Adds a collective that is now ready on all its members. The smallest turn among those waiting begins first. */
void psd_collective_order_add(struct psd_collective_order *order, int64_t turn, struct psd_task task);
/* Begins the first collective that shares no host with one under way, or with an earlier one that has to wait. NULL:
 * there is none. Borrowed until psd_collective_order_end(). */
struct psd_running_collective *psd_collective_order_next(struct psd_collective_order *order);
/* Returns the running collective of this task. */
struct psd_running_collective *psd_collective_order_find(struct psd_collective_order *order, struct psd_task task);
void psd_collective_order_end(struct psd_collective_order *order, struct psd_running_collective *collective);

#endif
