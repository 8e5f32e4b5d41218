/* Order in which collectives begin. If the groups of two collectives have a host in common, the collectives are
 * executed one after the other, in the same order on all hosts. Otherwise they do not wait for each other. The
 * interpreter reports each member that is ready for a collective, and each end of a collective. */
#ifndef PSD_COLLECTIVE_ORDER_H
#define PSD_COLLECTIVE_ORDER_H

#include "engine/base/error.h"
#include "engine/program/scheduler.h"

/* A collective that has been chosen to begin. Each member joins it when its NIC becomes free. It is executed when all
 * members have joined. */
struct psd_running_collective {
	struct psd_task task;
	bool is_under_way;  /* true: the entry is in use; false: it is free */
	unsigned n_missing; /* number of members among this interpreter's hosts that have not joined yet */
};

struct psd_collective_order {
	const struct psd_program *program;
	bool is_coordinator;
	bool has_groups; /* at least one collective has only some of the workers as members */
	/* per operation: number of this interpreter's hosts that execute it */
	uint32_t *n_members;
	/* Number of members that are ready for each collective. Shape (program->window, n_ops); iteration i uses row i
	 * % window. */
	uint32_t *n_ready;
	/* Collectives that are ready on all members but have not begun, in the order in which they should begin:
	 * entries first_waiting to first_waiting + n_waiting - 1. */
	struct psd_ready *waiting;
	unsigned first_waiting, n_waiting, waiting_room;
	struct psd_running_collective *collectives;
	unsigned n_collectives, most_collectives;
	unsigned n_under_way; /* number of entries of `collectives` that are in use */
	/* something has changed since the last call of psd_collective_order_next(), so another collective may be able
	 * to begin */
	bool has_news;
	bool is_out_of_memory;
};

/* Makes an empty order for n_hosts hosts; duties[h]: the operations of host h. is_coordinator: this order decides for
 * all hosts of the cluster, so members on hosts of other interpreters are reported to it as well. PSD_ENOMEM. */
enum psd_status psd_collective_order_init(struct psd_collective_order *order, const struct psd_program *program,
					  unsigned n_hosts, const struct psd_duties *const duties[],
					  bool is_coordinator, struct psd_error *err) PSD_MUST_CHECK;
void psd_collective_order_release(struct psd_collective_order *order);

/* Records that one more member is ready for the collective. When all members are ready, the collective is added to
 * `waiting`. */
void psd_collective_order_ready(struct psd_collective_order *order, struct psd_task task);
/* Adds a collective that is ready on all its members to `waiting`, which is ordered by turn: the smallest turn begins
 * first. */
void psd_collective_order_add(struct psd_collective_order *order, int64_t turn, struct psd_task task);
/* Begins the first waiting collective that shares no host with a running collective, nor with a waiting one before it.
 * Returns its entry, valid until psd_collective_order_end(); NULL: no collective can begin. */
struct psd_running_collective *psd_collective_order_next(struct psd_collective_order *order);
/* Returns the entry of a running collective. */
struct psd_running_collective *psd_collective_order_find(struct psd_collective_order *order, struct psd_task task);
/* Records that the collective has ended, so that others that share a host with it may begin. */
void psd_collective_order_end(struct psd_collective_order *order, struct psd_running_collective *collective);

#endif
