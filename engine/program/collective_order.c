/* An ordered list of waiting collectives, scanned from its head whenever something may have changed. */
#include "engine/program/collective_order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct psd_group group_of(const struct psd_collective_order *order, struct psd_task task)
{
	return psd_payload_group(&order->program->ops[task.op].payload, &order->program->plan->layout);
}

static void count_members(struct psd_collective_order *order, unsigned n_hosts, const struct psd_duties *const duties[])
{
	for (uint32_t i = 0; i < order->program->n_ops; i++) {
		if (!psd_op_is_collective(&order->program->ops[i]))
			continue;
		order->has_groups = order->has_groups || order->program->ops[i].payload.group.n > 0;
		for (unsigned h = 0; h < n_hosts; h++)
			order->n_members[i] += duties[h]->waits[i] != PSD_NOT_CARRIED;
	}
}

enum psd_status psd_collective_order_init(struct psd_collective_order *order, const struct psd_program *program,
					  unsigned n_hosts, const struct psd_duties *const duties[],
					  bool is_coordinator, struct psd_error *err)
{
	const size_t n_ops = program->n_ops;
	/* each host here has at most one collective under way; one more may be under way only on other hosts */
	*order = (struct psd_collective_order){
		.program = program, .is_coordinator = is_coordinator, .most_collectives = n_hosts + 1};
	order->n_members = calloc(n_ops, sizeof(*order->n_members));
	order->n_ready = calloc(program->window * n_ops, sizeof(*order->n_ready));
	order->collectives = calloc(order->most_collectives, sizeof(*order->collectives));
	if (!order->n_members || !order->n_ready || !order->collectives) {
		psd_collective_order_release(order);
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for collectives of %u hosts",
				     n_hosts);
	}
	count_members(order, n_hosts, duties);
	return PSD_OK;
}

void psd_collective_order_release(struct psd_collective_order *order)
{
	free(order->n_members);
	free(order->n_ready);
	free(order->waiting);
	free(order->collectives);
	*order = (struct psd_collective_order){.program = NULL};
}

void psd_collective_order_ready(struct psd_collective_order *order, struct psd_task task)
{
	const size_t row = task.iteration % order->program->window;
	uint32_t *n_ready = &order->n_ready[row * order->program->n_ops + task.op];
	const uint32_t n_members = order->is_coordinator ? group_of(order, task).n : order->n_members[task.op];
	if (++*n_ready < n_members)
		return;
	*n_ready = 0;
	psd_collective_order_add(order, psd_program_turn(order->program, task.op, task.iteration), task);
}

/* ---- waiting collectives: mostly taken from the head; with priorities also added there ---- */

static struct psd_ready *waiting_at(const struct psd_collective_order *order, unsigned i)
{
	return &order->waiting[order->first_waiting + i];
}

/* Makes space for an entry before the first and behind the last entry. If there is none, the entries move to the middle
 * of memory of at least twice their size. So n entries move only once in about n additions. */
static bool make_room(struct psd_collective_order *order)
{
	const unsigned n = order->n_waiting;
	const unsigned room = order->waiting_room < 2 * n + 16 ? 4 * n + 16 : order->waiting_room;
	struct psd_ready *moved;

	if (order->first_waiting > 0 && order->first_waiting + n < order->waiting_room)
		return true;
	moved = realloc(order->waiting, room * sizeof(*moved));
	if (!moved)
		return false;
	memmove(moved + (room - n) / 2, moved + order->first_waiting, n * sizeof(*moved));
	order->waiting = moved;
	order->waiting_room = room;
	order->first_waiting = (room - n) / 2;
	return true;
}

/* Returns the number of waiting collectives that begin before this one. */
static unsigned place_of(const struct psd_collective_order *order, const struct psd_ready *added)
{
	unsigned first = 0, end = order->n_waiting;

	while (first < end) {
		const unsigned middle = first + (end - first) / 2;

		if (psd_ready_goes_before(added, waiting_at(order, middle)))
			end = middle;
		else
			first = middle + 1;
	}
	return first;
}

void psd_collective_order_add(struct psd_collective_order *order, int64_t turn, struct psd_task task)
{
	const struct psd_ready added = {turn, task};
	const unsigned at = place_of(order, &added), n_behind = order->n_waiting - at;

	if (!make_room(order)) {
		order->is_out_of_memory = true;
		return;
	}
	struct psd_ready *place = waiting_at(order, at);
	if (at < n_behind) {
		memmove(place - at - 1, place - at, at * sizeof(*place));
		place--;
		order->first_waiting--;
	} else {
		memmove(place + 1, place, n_behind * sizeof(*place));
	}
	*place = added;
	order->n_waiting++;
	order->has_news = true;
}

static void remove_waiting(struct psd_collective_order *order, unsigned at)
{
	struct psd_ready *place = waiting_at(order, at);
	const unsigned n_behind = --order->n_waiting - at;

	if (at < n_behind) {
		memmove(place - at + 1, place - at, at * sizeof(*place));
		order->first_waiting++;
	} else {
		memmove(place, place + 1, n_behind * sizeof(*place));
	}
}

/* ---- begin ---- */

/* True if the waiting collective at this index shares a host with a collective under way, or with an earlier waiting
 * one. */
static bool has_to_wait(const struct psd_collective_order *order, unsigned at)
{
	if (!order->has_groups) /* all share all hosts */
		return order->n_under_way > 0 || at > 0;
	const struct psd_group group = group_of(order, waiting_at(order, at)->task);
	for (unsigned c = 0; c < order->n_collectives; c++)
		if (order->collectives[c].is_under_way &&
		    psd_group_shares_host(group, group_of(order, order->collectives[c].task)))
			return true;
	for (unsigned i = 0; i < at; i++)
		if (psd_group_shares_host(group, group_of(order, waiting_at(order, i)->task)))
			return true;
	return false;
}

static struct psd_running_collective *begin(struct psd_collective_order *order, struct psd_task task)
{
	unsigned c = 0;
	while (c < order->n_collectives && order->collectives[c].is_under_way)
		c++;
	assert(c < order->most_collectives);
	if (c == order->n_collectives)
		order->n_collectives++;
	order->n_under_way++;
	order->collectives[c] = (struct psd_running_collective){task, true, order->n_members[task.op]};
	return &order->collectives[c];
}

struct psd_running_collective *psd_collective_order_next(struct psd_collective_order *order)
{
	for (unsigned i = 0; order->has_news && i < order->n_waiting; i++) {
		const struct psd_task task = waiting_at(order, i)->task;
		if (has_to_wait(order, i)) {
			if (group_of(order, task).n == order->program->plan->layout.workers)
				break; /* all later ones have to wait, too */
			continue;
		}
		remove_waiting(order, i);
		return begin(order, task);
	}
	order->has_news = false;
	return NULL;
}

struct psd_running_collective *psd_collective_order_find(struct psd_collective_order *order, struct psd_task task)
{
	unsigned c = 0;
	while (!order->collectives[c].is_under_way || order->collectives[c].task.op != task.op ||
	       order->collectives[c].task.iteration != task.iteration) {
		c++;
		assert(c < order->n_collectives);
	}
	return &order->collectives[c];
}

void psd_collective_order_end(struct psd_collective_order *order, struct psd_running_collective *collective)
{
	collective->is_under_way = false;
	order->n_under_way--;
	order->has_news = true;
}
