/* An ordered list of what waits, scanned from its head whenever something may have changed. */
#include "engine/program/gathering.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct psd_group group_of(const struct psd_gathering *gathering, struct psd_task task)
{
	return psd_payload_group(&gathering->program->ops[task.op].payload, &gathering->program->plan->layout);
}

static void count_members(struct psd_gathering *gathering, unsigned n_hosts, const struct psd_duties *const duties[])
{
	for (uint32_t i = 0; i < gathering->program->n_ops; i++)
		for (unsigned h = 0; h < n_hosts && gathering->program->ops[i].kind == PSD_OP_COLLECTIVE; h++)
			gathering->n_members[i] += duties[h]->waits[i] != PSD_NOT_CARRIED;
}

enum psd_status psd_gathering_init(struct psd_gathering *gathering, const struct psd_program *program, unsigned n_hosts,
				   const struct psd_duties *const duties[], bool is_coordinator, struct psd_error *err)
{
	const size_t n_ops = program->n_ops;
	/* each under way has a host here to itself; one more may be others' alone */
	*gathering = (struct psd_gathering){
		.program = program, .is_coordinator = is_coordinator, .most_collectives = n_hosts + 1};
	gathering->n_members = calloc(n_ops, sizeof(*gathering->n_members));
	gathering->n_ready = calloc(program->window * n_ops, sizeof(*gathering->n_ready));
	gathering->collectives = calloc(gathering->most_collectives, sizeof(*gathering->collectives));
	if (!gathering->n_members || !gathering->n_ready || !gathering->collectives) {
		psd_gathering_release(gathering);
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for collectives of %u hosts",
				     n_hosts);
	}
	count_members(gathering, n_hosts, duties);
	return PSD_OK;
}

void psd_gathering_release(struct psd_gathering *gathering)
{
	free(gathering->n_members);
	free(gathering->n_ready);
	free(gathering->waiting);
	free(gathering->collectives);
	*gathering = (struct psd_gathering){.program = NULL};
}

void psd_gathering_ready(struct psd_gathering *gathering, struct psd_task task)
{
	const size_t row = task.iteration % gathering->program->window;
	uint32_t *n_ready = &gathering->n_ready[row * gathering->program->n_ops + task.op];
	const uint32_t n_members =
		gathering->is_coordinator ? group_of(gathering, task).n : gathering->n_members[task.op];
	if (++*n_ready < n_members)
		return;
	*n_ready = 0;
	psd_gathering_add(gathering, psd_program_turn(gathering->program, task.op, task.iteration), task);
}

/* ---- what waits: taken mostly from its head, and with priorities added there, too ---- */

static struct psd_ready *waiting_at(const struct psd_gathering *gathering, unsigned i)
{
	return &gathering->waiting[gathering->first_waiting + i];
}

/* For one more before all of them, and for one behind. Where there is none they go to the middle of at least twice as
 * much, so that this happens once in as many additions as there are. */
static bool make_room(struct psd_gathering *gathering)
{
	const unsigned n = gathering->n_waiting;
	const unsigned room = gathering->waiting_room < 2 * n + 16 ? 4 * n + 16 : gathering->waiting_room;
	struct psd_ready *moved;

	if (gathering->first_waiting > 0 && gathering->first_waiting + n < gathering->waiting_room)
		return true;
	moved = realloc(gathering->waiting, room * sizeof(*moved));
	if (!moved)
		return false;
	memmove(moved + (room - n) / 2, moved + gathering->first_waiting, n * sizeof(*moved));
	gathering->waiting = moved;
	gathering->waiting_room = room;
	gathering->first_waiting = (room - n) / 2;
	return true;
}

/* How many of those that wait go before it. */
static unsigned place_of(const struct psd_gathering *gathering, const struct psd_ready *added)
{
	unsigned first = 0, end = gathering->n_waiting;

	while (first < end) {
		const unsigned middle = first + (end - first) / 2;

		if (psd_ready_goes_before(added, waiting_at(gathering, middle)))
			end = middle;
		else
			first = middle + 1;
	}
	return first;
}

void psd_gathering_add(struct psd_gathering *gathering, int64_t turn, struct psd_task task)
{
	const struct psd_ready added = {turn, task};
	const unsigned at = place_of(gathering, &added), n_behind = gathering->n_waiting - at;

	if (!make_room(gathering)) {
		gathering->is_out_of_memory = true;
		return;
	}
	struct psd_ready *place = waiting_at(gathering, at);
	if (at < n_behind) {
		memmove(place - at - 1, place - at, at * sizeof(*place));
		place--;
		gathering->first_waiting--;
	} else {
		memmove(place + 1, place, n_behind * sizeof(*place));
	}
	*place = added;
	gathering->n_waiting++;
	gathering->has_news = true;
}

static void remove_waiting(struct psd_gathering *gathering, unsigned at)
{
	struct psd_ready *place = waiting_at(gathering, at);
	const unsigned n_behind = --gathering->n_waiting - at;

	if (at < n_behind) {
		memmove(place - at + 1, place - at, at * sizeof(*place));
		gathering->first_waiting++;
	} else {
		memmove(place, place + 1, n_behind * sizeof(*place));
	}
}

/* ---- what may begin ---- */

/* By what is under way, or by what goes before and has to wait itself. */
static bool has_to_wait(const struct psd_gathering *gathering, unsigned at)
{
	const struct psd_group group = group_of(gathering, waiting_at(gathering, at)->task);
	for (unsigned c = 0; c < gathering->n_collectives; c++)
		if (gathering->collectives[c].is_under_way &&
		    psd_group_shares_host(group, group_of(gathering, gathering->collectives[c].task)))
			return true;
	for (unsigned i = 0; i < at; i++)
		if (psd_group_shares_host(group, group_of(gathering, waiting_at(gathering, i)->task)))
			return true;
	return false;
}

static struct psd_collective *begin(struct psd_gathering *gathering, struct psd_task task)
{
	unsigned c = 0;
	while (c < gathering->n_collectives && gathering->collectives[c].is_under_way)
		c++;
	assert(c < gathering->most_collectives);
	if (c == gathering->n_collectives)
		gathering->n_collectives++;
	gathering->collectives[c] = (struct psd_collective){task, true, gathering->n_members[task.op]};
	return &gathering->collectives[c];
}

struct psd_collective *psd_gathering_next(struct psd_gathering *gathering)
{
	for (unsigned i = 0; gathering->has_news && i < gathering->n_waiting; i++) {
		const struct psd_task task = waiting_at(gathering, i)->task;
		if (has_to_wait(gathering, i)) {
			if (group_of(gathering, task).n == gathering->program->plan->layout.workers)
				break; /* and so has everything after it */
			continue;
		}
		remove_waiting(gathering, i);
		return begin(gathering, task);
	}
	gathering->has_news = false;
	return NULL;
}

struct psd_collective *psd_gathering_find(struct psd_gathering *gathering, struct psd_task task)
{
	unsigned c = 0;
	while (!gathering->collectives[c].is_under_way || gathering->collectives[c].task.op != task.op ||
	       gathering->collectives[c].task.iteration != task.iteration) {
		c++;
		assert(c < gathering->n_collectives);
	}
	return &gathering->collectives[c];
}

void psd_gathering_end(struct psd_gathering *gathering, struct psd_collective *collective)
{
	collective->is_under_way = false;
	gathering->has_news = true;
}
