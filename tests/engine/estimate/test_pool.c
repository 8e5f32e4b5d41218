/* Cores shared by several pieces of work: every expected date follows from the sum of work and what each can use. */
#include <criterion/criterion.h>
#include <math.h>

#include "engine/estimate/pool.h"

#define ROUNDING 1e-8 /* the pool ends what is within a nanosecond of now */

/* Runs until the next work ends: its cookie, and when. */
static uint64_t run_to_end(struct psd_pool *pool, double *at_sec)
{
	uint64_t tag = UINT64_MAX;

	*at_sec = psd_pool_next_sec(pool);
	cr_assert(isfinite(*at_sec));
	cr_assert(psd_pool_take_ended(pool, *at_sec, &tag));
	return tag;
}

static void expect_end(struct psd_pool *pool, uint64_t tag, double sec)
{
	double at_sec;

	cr_expect_eq(run_to_end(pool, &at_sec), tag);
	cr_expect_float_eq(at_sec, sec, ROUNDING, "work %u ends at %.9f s, expected %.9f s", (unsigned)tag, at_sec,
			   sec);
}

Test(pool, alone_work_takes_its_time)
{
	struct psd_pool pool;

	psd_pool_init(&pool, 4);
	cr_expect(isinf(psd_pool_next_sec(&pool)));
	cr_assert(psd_pool_add(&pool, 1, 2, 1, 1, 7)); /* it can use one of four cores */
	expect_end(&pool, 7, 3);
	cr_expect(isinf(psd_pool_next_sec(&pool)));
	cr_assert(psd_pool_add(&pool, 5, 2, 4, 1, 8)); /* and this one all: 2 / 4 s */
	expect_end(&pool, 8, 5.5);
	psd_pool_release(&pool);
}

Test(pool, equals_share_equally)
{
	struct psd_pool pool;

	psd_pool_init(&pool, 2);
	for (unsigned w = 0; w < 3; w++)
		cr_assert(psd_pool_add(&pool, 0, 1, 1, 1, w));
	for (unsigned w = 0; w < 3; w++)
		expect_end(&pool, w, 1.5); /* 3 s of work on 2 cores, in the order they began */
	psd_pool_release(&pool);
}

Test(pool, the_others_get_the_capacity_that_one_cannot_use)
{
	struct psd_pool pool;

	psd_pool_init(&pool, 1);
	cr_assert(psd_pool_add(&pool, 0, 1, 1, 1, 0));
	cr_assert(psd_pool_add(&pool, 0, 0.25, 0.25, 1, 1)); /* a quarter of the core until 1 s */
	expect_end(&pool, 1, 1);
	expect_end(&pool, 0, 1.25); /* 0.75 s are done by 1 s, then alone */
	psd_pool_release(&pool);
}

Test(pool, one_that_comes_later_slows_the_rest)
{
	struct psd_pool pool;

	psd_pool_init(&pool, 1);
	cr_assert(psd_pool_add(&pool, 0, 1, 1, 1, 0));
	cr_assert(psd_pool_add(&pool, 0.5, 1, 1, 1, 1));
	expect_end(&pool, 0, 1.5); /* the other half at half the speed */
	expect_end(&pool, 1, 2);   /* all of the work is 2 s */
	psd_pool_release(&pool);
}

Test(pool, copies_count)
{
	struct psd_pool pool;

	psd_pool_init(&pool, 2);
	cr_assert(psd_pool_add(&pool, 0, 1, 1, 3, 0)); /* as three equals on two cores */
	expect_end(&pool, 0, 1.5);
	cr_assert(psd_pool_add(&pool, 2, 1, 1, 3, 1));
	cr_assert(psd_pool_add(&pool, 2, 0.25, 0.5, 1, 2)); /* four on two cores: half a core each */
	expect_end(&pool, 2, 2.5);
	expect_end(&pool, 1, 2.5 + 0.75 * 3 / 2);
	psd_pool_release(&pool);
}

static void expect_places(unsigned workers, unsigned per_node, unsigned servers, struct psd_machine machine,
			  unsigned n_pools, const struct psd_pool_place expected[])
{
	const struct psd_layout layout = psd_layout_make(workers, per_node, servers);
	struct psd_pool_place places[8];

	cr_assert_leq(psd_layout_hosts(&layout), 8);
	cr_expect_eq(psd_pool_fill_places(places, &layout, &machine), n_pools);
	for (unsigned h = 0; h < psd_layout_hosts(&layout); h++) {
		cr_expect_eq(places[h].pool, expected[h].pool, "host %u of %u", h, workers);
		cr_expect_eq(places[h].cores, expected[h].cores, "host %u of %u", h, workers);
		cr_expect_eq(places[h].hosts, expected[h].hosts, "host %u of %u", h, workers);
	}
}

Test(pool, hosts_have_their_own_cores_while_there_are_enough)
{
	expect_places(2, 1, 0, (struct psd_machine){.cores = 5}, 2, (struct psd_pool_place[]){{0, 2, 1}, {1, 3, 1}});
	expect_places(3, 1, 0, (struct psd_machine){.cores = 2}, 1,
		      (struct psd_pool_place[]){{0, 2, 3}, {0, 2, 3}, {0, 2, 3}});
	expect_places(2, 1, 1, (struct psd_machine){.cores = 2}, 1,
		      (struct psd_pool_place[]){{0, 2, 3}, {0, 2, 3}, {0, 2, 3}});
	/* two nodes of two workers, each node a machine of its own; the last node is half full */
	expect_places(3, 2, 0, (struct psd_machine){.cores = 2, .nodes = 1}, 3,
		      (struct psd_pool_place[]){{0, 1, 1}, {1, 1, 1}, {2, 2, 1}});
	expect_places(3, 2, 0, (struct psd_machine){.cores = 1, .nodes = 1}, 2,
		      (struct psd_pool_place[]){{0, 1, 2}, {0, 1, 2}, {1, 1, 1}});
}

/* ---- against the rule itself, worked out anew for every piece at every event ---- */

enum { N_PIECES = 200 };

struct piece {
	double begin_sec, left_sec, most_cores, copies, cores, end_sec;
	bool is_settled;
};

static bool is_running(const struct piece *piece, double now_sec)
{
	return piece->begin_sec <= now_sec && piece->end_sec == 0;
}

/* Among the pieces without a share the one that can use fewest cores takes these, or an equal share of the rest. */
static void fill(struct piece pieces[N_PIECES], double now_sec, double left_cores)
{
	for (unsigned p = 0; p < N_PIECES; p++)
		pieces[p].is_settled = !is_running(&pieces[p], now_sec);
	for (;;) {
		struct piece *modest = NULL;
		double n_open = 0;

		for (struct piece *piece = pieces; piece < pieces + N_PIECES; piece++) {
			n_open += piece->is_settled ? 0 : piece->copies;
			if (!piece->is_settled && (!modest || piece->most_cores < modest->most_cores))
				modest = piece;
		}
		if (!modest)
			return;
		modest->cores = fmin(modest->most_cores, left_cores / n_open);
		modest->is_settled = true;
		left_cores -= modest->cores * modest->copies;
	}
}

static void carry_out(struct piece pieces[N_PIECES], double cores)
{
	for (double now_sec = 0, next_sec; now_sec < INFINITY; now_sec = next_sec) {
		struct piece *ending = NULL;

		fill(pieces, now_sec, cores);
		next_sec = INFINITY;
		for (struct piece *piece = pieces; piece < pieces + N_PIECES; piece++) {
			const double end_sec = now_sec + piece->left_sec / piece->cores;

			if (piece->begin_sec > now_sec)
				next_sec = fmin(next_sec, piece->begin_sec);
			if (is_running(piece, now_sec) &&
			    (!ending || end_sec < now_sec + ending->left_sec / ending->cores))
				ending = piece;
		}
		if (ending && now_sec + ending->left_sec / ending->cores <= next_sec)
			next_sec = now_sec + ending->left_sec / ending->cores;
		else
			ending = NULL;
		for (struct piece *piece = pieces; piece < pieces + N_PIECES; piece++)
			if (is_running(piece, now_sec))
				piece->left_sec -= (next_sec - now_sec) * piece->cores;
		if (ending)
			ending->end_sec = next_sec;
	}
}

static void take_ended(struct psd_pool *pool, double now_sec, double end_sec[N_PIECES])
{
	uint64_t tag;

	while (psd_pool_take_ended(pool, now_sec, &tag))
		end_sec[tag] = now_sec;
}

/* Pieces of five kinds and two numbers of copies, which begin in a seeded order and often together. */
Test(pool, many_pieces_end_as_the_rule_has_it)
{
	static struct piece pieces[N_PIECES];
	double end_sec[N_PIECES] = {0}, now_sec = 0;
	const double cores = 3;
	struct psd_pool pool;
	uint32_t seed = 20;

	for (unsigned p = 0; p < N_PIECES; p++) {
		seed = seed * 1664525 + 1013904223;
		now_sec += seed >> 30 ? 0 : (seed >> 8 & 1023) / 256.0;
		pieces[p] = (struct piece){.begin_sec = now_sec,
					   .left_sec = 0.01 + (seed >> 4 & 4095) / 1024.0,
					   .most_cores = (1 + (seed >> 16) % 5) / 4.0,
					   .copies = 1 + (seed >> 20 & 1)};
	}
	psd_pool_init(&pool, cores);
	for (unsigned p = 0; p < N_PIECES; p++) {
		while (psd_pool_next_sec(&pool) < pieces[p].begin_sec)
			take_ended(&pool, psd_pool_next_sec(&pool), end_sec);
		cr_assert(psd_pool_add(&pool, pieces[p].begin_sec, pieces[p].left_sec, pieces[p].most_cores,
				       pieces[p].copies, p));
	}
	while (isfinite(psd_pool_next_sec(&pool)))
		take_ended(&pool, psd_pool_next_sec(&pool), end_sec);
	psd_pool_release(&pool);
	carry_out(pieces, cores);
	for (unsigned p = 0; p < N_PIECES; p++)
		cr_expect_float_eq(end_sec[p], pieces[p].end_sec, 1e-7, "piece %u ends at %.9f s, expected %.9f s", p,
				   end_sec[p], pieces[p].end_sec);
}
