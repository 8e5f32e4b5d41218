/* Which collectives may begin, of programs that have nothing else: four workers, each a host here. */
#include <criterion/criterion.h>

#include "engine/program/collective_order.h"

enum { WORKERS = 4, MOST_OPS = 4 };

static const struct psd_group all = {0, 1, WORKERS}, even = {0, 2, 2}, odd = {1, 2, 2}, first_two = {0, 1, 2};

struct collectives {
	struct psd_op ops[MOST_OPS];
	struct psd_plan plan;
	struct psd_program program;
	uint32_t waits[WORKERS][MOST_OPS];
	struct psd_duties duties[WORKERS];
	const struct psd_duties *duties_of[WORKERS];
	struct psd_collective_order order;
};

/* Operation i is of groups[i], and of turn i. Points into itself: must not move. */
static void open_here(struct collectives *c, const struct psd_group groups[], unsigned n, unsigned n_hosts,
		      bool is_coordinator)
{
	struct psd_error err = {.text = ""};

	*c = (struct collectives){.plan = {.layout = psd_layout_make(WORKERS, 1, 0)},
				  .program = {.ops = c->ops, .n_ops = n, .plan = &c->plan, .window = 2}};
	for (unsigned i = 0; i < n; i++)
		c->ops[i] = (struct psd_op){.kind = PSD_OP_COLLECTIVE, .turn = i, .payload = {.group = groups[i]}};
	for (unsigned h = 0; h < n_hosts; h++) {
		for (unsigned i = 0; i < n; i++)
			c->waits[h][i] = psd_group_has(groups[i], h) ? 0 : PSD_NOT_CARRIED;
		c->duties[h].waits = c->waits[h];
		c->duties_of[h] = &c->duties[h];
	}
	cr_assert_eq(psd_collective_order_init(&c->order, &c->program, n_hosts, c->duties_of, is_coordinator, &err),
		     PSD_OK, "%s", err.text);
}

static void open(struct collectives *c, const struct psd_group groups[], unsigned n)
{
	open_here(c, groups, n, WORKERS, false);
}

static struct psd_task task(uint32_t iteration, uint32_t op)
{
	return (struct psd_task){iteration, op};
}

static void make_ready(struct collectives *c, uint32_t iteration, uint32_t op)
{
	for (unsigned member = 0; member < c->ops[op].payload.group.n; member++)
		psd_collective_order_ready(&c->order, task(iteration, op));
}

static struct psd_running_collective *expect_next(struct collectives *c, uint32_t iteration, uint32_t op)
{
	struct psd_running_collective *next = psd_collective_order_next(&c->order);

	cr_assert(next, "nothing may begin, expected operation %u", op);
	cr_assert(next->task.op == op && next->task.iteration == iteration, "operation %u of iteration %u begins",
		  next->task.op, next->task.iteration);
	return next;
}

static void expect_none(struct collectives *c)
{
	const struct psd_running_collective *next = psd_collective_order_next(&c->order);

	cr_assert_null(next, "operation %u begins", next->task.op);
}

Test(order, a_collective_begins_when_its_last_member_is_ready)
{
	const struct psd_group groups[] = {even};
	struct collectives c;

	open(&c, groups, 1);
	psd_collective_order_ready(&c.order, task(0, 0));
	psd_collective_order_ready(&c.order, task(1, 0)); /* task of the next iteration: counted apart */
	expect_none(&c);
	psd_collective_order_ready(&c.order, task(0, 0));
	cr_expect_eq(expect_next(&c, 0, 0)->n_missing, 2);
	expect_none(&c);
	psd_collective_order_release(&c.order);
}

Test(order, groups_without_a_common_host_are_under_way_at_once)
{
	const struct psd_group groups[] = {even, odd};
	struct collectives c;

	open(&c, groups, 2);
	make_ready(&c, 0, 0);
	make_ready(&c, 0, 1);
	struct psd_running_collective *first = expect_next(&c, 0, 0);
	struct psd_running_collective *second = expect_next(&c, 0, 1);
	cr_expect_eq(psd_collective_order_find(&c.order, task(0, 0)), first);
	cr_expect_eq(psd_collective_order_find(&c.order, task(0, 1)), second);
	psd_collective_order_release(&c.order);
}

Test(order, those_of_one_group_begin_in_order_of_their_turns)
{
	const struct psd_group groups[] = {even, even};
	struct collectives c;

	open(&c, groups, 2);
	make_ready(&c, 0, 1);
	struct psd_running_collective *under_way = expect_next(&c, 0, 1);
	make_ready(&c, 1, 1);
	make_ready(&c, 0, 0);
	expect_none(&c);
	psd_collective_order_end(&c.order, under_way);
	under_way = expect_next(&c, 0, 0);
	expect_none(&c);
	psd_collective_order_end(&c.order, under_way);
	expect_next(&c, 1, 1);
	psd_collective_order_release(&c.order);
}

/* Else a group of few could keep one of many from ever having all its members at once. */
Test(order, a_waiting_collective_blocks_its_hosts_for_later_ones)
{
	const struct psd_group groups[] = {even, first_two, odd, {2, 1, 1}};
	struct collectives c;

	open(&c, groups, 4);
	for (unsigned i = 0; i < 4; i++)
		make_ready(&c, 0, i);
	struct psd_running_collective *under_way = expect_next(&c, 0, 0); /* on hosts 0 and 2 */
	expect_none(&c); /* 1 waits for host 0, 2 for host 1 that 1 is to have, 3 for host 2 */
	psd_collective_order_end(&c.order, under_way);
	under_way = expect_next(&c, 0, 1);
	expect_next(&c, 0, 3);
	expect_none(&c);
	psd_collective_order_end(&c.order, under_way);
	expect_next(&c, 0, 2);
	psd_collective_order_release(&c.order);
}

Test(order, one_of_all_workers_waits_for_every_other)
{
	const struct psd_group groups[] = {all, even, odd};
	struct collectives c;

	open(&c, groups, 3);
	make_ready(&c, 0, 1);
	struct psd_running_collective *under_way = expect_next(&c, 0, 1);
	make_ready(&c, 0, 0);
	make_ready(&c, 0, 2);
	expect_none(&c);
	psd_collective_order_end(&c.order, under_way);
	under_way = expect_next(&c, 0, 0);
	expect_none(&c);
	psd_collective_order_end(&c.order, under_way);
	expect_next(&c, 0, 2);
	psd_collective_order_release(&c.order);
}

/* Only host 0 is here, but others' readiness is heard of. */
Test(order, a_coordinator_counts_members_elsewhere)
{
	const struct psd_group groups[] = {odd, all};
	struct collectives c;

	open_here(&c, groups, 2, 1, true);
	psd_collective_order_ready(&c.order, task(0, 0));
	expect_none(&c);
	psd_collective_order_ready(&c.order, task(0, 0));
	cr_expect_eq(expect_next(&c, 0, 0)->n_missing, 0);
	psd_collective_order_end(&c.order, psd_collective_order_find(&c.order, task(0, 0)));
	make_ready(&c, 0, 1);
	cr_expect_eq(expect_next(&c, 0, 1)->n_missing, 1);
	psd_collective_order_release(&c.order);
}

/* However many are added and begin in between, and wherever they stand: always the smallest turn. */
Test(order, many_begin_in_order_wherever_they_are_added)
{
	enum { TURNS = 211 };
	bool waits[TURNS] = {false};
	unsigned n_waiting = 0;
	struct collectives c;

	open(&c, (const struct psd_group[]){all}, 1);
	for (unsigned i = 0; i < 4 * TURNS; i++) {
		/* 100 generates all residues of a prime; more are added than begin until all have been */
		const unsigned turn = i * 100 % TURNS;
		unsigned first = 0;

		if (i < TURNS) {
			psd_collective_order_add(&c.order, turn, task(turn, 0));
			waits[turn] = true;
			n_waiting++;
		}
		if ((i < TURNS && i % 3 > 0) || n_waiting == 0)
			continue;
		while (!waits[first])
			first++;
		psd_collective_order_end(&c.order, expect_next(&c, first, 0));
		waits[first] = false;
		n_waiting--;
	}
	cr_assert_eq(n_waiting, 0);
	expect_none(&c);
	psd_collective_order_release(&c.order);
}
