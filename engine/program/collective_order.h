/* Order in which collectives begin. Two collectives whose groups share a host are executed one after the other, in the
 * same order on all hosts. Groups without a common host do not wait for each other. The interpreter reports each member
 * that is ready for a collective, and each host that begins to execute it. */
#ifndef PSD_COLLECTIVE_ORDER_H
#define PSD_COLLECTIVE_ORDER_H

#include "engine/base/error.h"
#include "engine/program/scheduler.h"

/* A collective under way. Each member joins when its NIC becomes free, and the collective is executed once all members
 * have joined. */
struct psd_running_collective {
	struct psd_task task;
	bool is_under_way;  /* true: a collective is under way; false: the entry is free */
	unsigned n_missing; /* number of members here that have not joined yet */
};

struct psd_collective_order {
	const struct psd_program *program;
	bool is_coordinator;
	/* per operation: number of these hosts that execute it */
	uint32_t *n_members;
	/* number of ready members of each collective; shape (program->window, n_ops); iteration i uses row i %
	 * window */
	uint32_t *n_ready;
	/* collectives that are ready on all members but have not begun, in order: entries first_waiting to
	 * first_waiting + n_waiting - 1 */
	struct psd_ready *waiting;
	unsigned first_waiting, n_waiting, waiting_room;
	struct psd_running_collective *collectives;
	unsigned n_collectives, most_collectives;
	/* something has changed since the last psd_collective_order_next(), so a waiting collective may be able to
	 * begin */
	bool has_news;
	bool is_out_of_memory;
};

/* Makes an empty order for n_hosts hosts; duties[h]: operations of host h. is_coordinator: members on all hosts of the
 * cluster are reported to it, not only those on these hosts. PSD_ENOMEM. */
enum psd_status psd_collective_order_init(struct psd_collective_order *order, const struct psd_program *program,
					  unsigned n_hosts, const struct psd_duties *const duties[],
					  bool is_coordinator, struct psd_error *err) PSD_MUST_CHECK;
void psd_collective_order_release(struct psd_collective_order *order);

/* Records that one more member is ready for the collective. When all members are, the collective is added to the
 * waiting ones. */
void psd_collective_order_ready(struct psd_collective_order *order, struct psd_task task);
/* Adds a collective that is ready on all its members to the waiting ones. The one with the smallest turn begins
 * first. */
void psd_collective_order_add(struct psd_collective_order *order, int64_t turn, struct psd_task task);
/* Begins the first waiting collective that shares no host with a collective under way, nor with an earlier waiting one,
 * and returns it. Returns NULL if there is none. The result is borrowed until psd_collective_order_end(). */
struct psd_running_collective *psd_collective_order_next(struct psd_collective_order *order);
/* Returns the running collective of this task. */
struct psd_running_collective *psd_collective_order_find(struct psd_collective_order *order, struct psd_task task);
/* Records that the collective has ended, so that others on its hosts may begin. */
void psd_collective_order_end(struct psd_collective_order *order, struct psd_running_collective *collective);

#endif
