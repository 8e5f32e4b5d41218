/* A run that goes on with other hosts, or by another system, against one worker that takes the samples of all. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/real/legs.h"
#include "tests/scratch_folder.h"

TestSuite(reshape, .timeout = 240);

enum { END = 7 };

#define SGD                                                                                                            \
	LEGS_DATA "learning_rate: {policy: exp, base: 0.05, gamma: 0.9, warmup_iterations: 4}, "                       \
		  "optimiser: {momentum: 0.9, weight_decay: 0.01}"
#define ADAMW LEGS_DATA "learning_rate: {base: 0.003}, optimiser: {kind: adamw, beta2: 0.95, weight_decay: 0.1}"

/* Sums over samples in another order, relative to the distance since the cut. */
#define ROUNDING_RATIO 2e-4

/* One worker takes the samples of all before the cut, and of all behind it; it goes on as what it was. */
static struct training *go_alone(const char *train, unsigned workers_before, unsigned workers)
{
	const struct scratch_folder folder = scratch_folder_make();
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = END};
	const struct side one = {"sync: ring", 1, 1};
	const struct leg before = {LEGS_SMOOTH, train, one, LEGS_BATCH * workers_before, 0, LEGS_CUT, 0, 0, NULL};
	const struct leg behind = {LEGS_SMOOTH,
				   train,
				   one,
				   LEGS_BATCH * workers,
				   LEGS_CUT,
				   END,
				   (uint64_t)LEGS_CUT * LEGS_BATCH * workers_before,
				   0,
				   NULL};
	struct training *alone;

	training_free(legs_go(&before, &checkpoints));
	alone = legs_go(&behind, &checkpoints);
	scratch_folder_remove(&folder);
	return alone;
}

static void check(struct side was, struct side is, const char *train)
{
	const struct scratch_folder folder = scratch_folder_make();
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = END};
	const struct leg before = legs_before(LEGS_SMOOTH, was, train);
	struct training *cut = legs_go(&before, &checkpoints), *alone = go_alone(train, was.workers, is.workers),
			*after;
	const struct leg behind = legs_behind(LEGS_SMOOTH, was, cut, is, train, END);
	char what[256];
	double apart_ratio;

	snprintf(what, sizeof(what), "%u of '%s', then %u of '%s'", was.workers, was.system, is.workers, is.system);
	after = legs_go(&behind, &checkpoints);
	training_expect_same_on_all(after, what);
	apart_ratio = training_apart_ratio(cut, alone, after);
	cr_expect_leq(apart_ratio, ROUNDING_RATIO, "%s: off by %g of the way", what, apart_ratio);
	training_free(cut);
	training_free(alone);
	training_free(after);
	scratch_folder_remove(&folder);
}

static void check_both(struct side was, struct side is)
{
	check(was, is, SGD);
	check(was, is, ADAMW);
}

static const struct side ring4 = {"sync: ring", 4, 1}, ring2 = {"sync: ring", 2, 1}, ps4 = {"sync: ps", 4, 1},
			 ps2 = {"sync: ps", 2, 1}, lone = {"sync: ps", 1, 1},
			 sliced3 = {"sync: ps, pair: 1KiB, slice: 4KiB", 3, 1},
			 served2 = {"sync: ps, servers: 2", 2, 1}, served3 = {"sync: ps, servers: 1", 3, 1},
			 owned3 = {"sync: adam", 3, 1}, owned2 = {"sync: adam, servers: 2", 2, 1},
			 factors2 = {"sync: sfb", 2, 1}, nodes4 = {"sync: two-level-ps", 4, 2},
			 fused3 = {"sync: halving-doubling, fuse: 8KiB", 3, 1};

Test(reshape, rings_become_smaller_and_larger)
{
	check_both(ring4, ring2);
	check_both(ring2, ring4);
	check_both(ring2, fused3);
	check_both(fused3, lone);
}

Test(reshape, servers_parts_are_gathered_and_spread)
{
	check_both(ps4, ps2);
	check_both(ps2, sliced3);
	check_both(sliced3, ps4);
	check_both(nodes4, sliced3);
}

Test(reshape, servers_give_to_rings_and_take_from_them)
{
	check_both(ps4, ring2);
	check_both(ring4, ps2);
	check_both(sliced3, ring2);
	check_both(ring2, sliced3);
	check_both(ps2, ring2);
}

Test(reshape, separate_servers_come_and_go)
{
	check_both(served2, ring2);
	check_both(ring4, served3);
	check_both(served2, served3);
	check_both(served3, ps4);
	check_both(ps4, served2);
}

Test(reshape, states_of_one_host_move)
{
	check_both(owned3, ring2);
	check_both(owned2, owned3);
	check_both(ps4, owned2);
	check_both(factors2, owned3);
}

/* Optimiser state, or parameters too, of parts of all workers, or of those of a node. */
Test(reshape, parts_of_workers_become_other_parts_and_whole_again)
{
	static const struct side parts4 = {"sync: zero-3", 4, 1}, parts3 = {"sync: zero-3, fuse: 8KiB", 3, 1},
				 of_node4 = {"sync: fsdp, shard_over: node, prefetch: 0", 4, 2},
				 states2 = {"sync: zero-1", 2, 1};

	check_both(parts4, ring2);
	check_both(ring2, parts3);
	check_both(parts3, of_node4);
	check_both(of_node4, states2);
	check(states2, parts4, SGD);
}

/* Each worker remembers updates of its own, of which all together make one. */
Test(reshape, local_steps_are_joined)
{
	check((struct side){"sync: ring, local_sgd: {steps: 1}", 4, 1}, ring2, SGD);
	check(ring4, (struct side){"sync: ps, local_sgd: {steps: 1}", 2, 1}, SGD);
	check((struct side){"sync: ps, local_sgd: {steps: 1}", 2, 1}, ps4, SGD);
}

/* ---- as one that was never cut ---- */

/* Half the workers with twice the samples each: iterations, samples and rates stay what they were. */
static void check_uncut_as(struct side one, struct side was, struct side is, const char *train)
{
	const struct scratch_folder folder = scratch_folder_make();
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = END};
	const struct leg before = legs_before(LEGS_SMOOTH, was, train);
	const struct leg whole = {.graph = LEGS_SMOOTH,
				  .train = train,
				  .side = one,
				  .batch = LEGS_BATCH * was.workers / one.workers,
				  .end = END};
	struct training *cut = legs_go(&before, &checkpoints), *uncut = legs_go(&whole, NULL), *after;
	struct leg behind = legs_behind(LEGS_SMOOTH, was, cut, is, train, END);
	double apart_ratio;

	behind.batch = LEGS_BATCH * was.workers / is.workers;
	after = legs_go(&behind, &checkpoints);
	apart_ratio = training_apart_ratio(cut, uncut, after);
	cr_expect_leq(apart_ratio, ROUNDING_RATIO, "'%s', then '%s': off by %g of the way", was.system, is.system,
		      apart_ratio);
	training_free(cut);
	training_free(uncut);
	training_free(after);
	scratch_folder_remove(&folder);
}

static void check_uncut(struct side was, struct side is, const char *train)
{
	check_uncut_as((struct side){"sync: ring", 1, 1}, was, is, train);
}

/* With one local step the mean drift is the update by the mean gradient, whatever the number of workers. */
Test(reshape, outer_momentum_follows_the_updates)
{
	static const struct side of_ring = {"sync: ring, local_sgd: {steps: 1, outer: {}}", 4, 1},
				 of_ps = {"sync: ps, local_sgd: {steps: 1, outer: {}}", 2, 1},
				 of_ring2 = {"sync: ring, local_sgd: {steps: 1, outer: {}}", 2, 1};

	check_uncut_as(of_ring, of_ring, of_ps, SGD);
	check_uncut_as(of_ps, of_ps, of_ring2, SGD);
}

Test(reshape, larger_batches_make_up_for_lost_workers)
{
	check_uncut(ring4, ps2, SGD);
	check_uncut(ps4, ring2, ADAMW);
	check_uncut(served2, ring4, SGD);
	check_uncut(ring2, lone, ADAMW);
}

/* Its sums have come and are still to be applied. A single worker is never late, so there are two. */
Test(reshape, late_sums_are_applied_by_the_hosts_that_go_on)
{
	const struct side late2 = {"sync: ring, staleness: 2", 2, 1}, late4 = {"sync: ps, staleness: 2", 4, 1},
			  served2_late = {"sync: ps, servers: 1, staleness: 2", 2, 1};

	check_uncut_as(late2, late4, late2, SGD);
	check_uncut_as(late2, late2, late4, ADAMW);
	check_uncut_as(late2, late4, served2_late, SGD);
}

/* ---- nothing new ---- */

static int run_line(const char *line)
{
	return system(line);
}

/* The same hosts and system, with all that was kept taken apart and put together, or as it was. Servers have parameters
 * that they do not update, and that nobody reads: of another time. */
static void check_alike(const char *system, unsigned workers, unsigned per_node, const char *train)
{
	const struct scratch_folder folder = scratch_folder_make(), other = scratch_folder_make();
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = END},
				     others = {.folder = other.path, .every_iterations = END};
	const struct side side = {system, workers, per_node};
	const struct leg before = legs_before(LEGS_SMOOTH, side, train);
	struct training *cut = legs_go(&before, &checkpoints), *again = legs_go(&before, &others), *reshaped, *kept;
	struct leg behind = legs_behind(LEGS_SMOOTH, side, cut, side, train, END);

	reshaped = legs_go(&behind, &checkpoints);
	behind.from_hosts = 0;
	kept = legs_go(&behind, &others);
	for (unsigned h = 0; h < workers; h++) {
		const struct psd_checkpoint_host host = {h, psd_layout_hosts(&cut->made.plan.layout)};
		char line[2 * PSD_CHECKPOINT_PATH_MAX + 16];

		snprintf(line, sizeof(line), "cmp -s %s %s", psd_checkpoint_path(&checkpoints, host, END).text,
			 psd_checkpoint_path(&others, host, END).text);
		cr_expect_eq(run_line(line), 0, "'%s': host %u has another file", system, h);
	}
	training_free(cut);
	training_free(again);
	training_free(reshaped);
	training_free(kept);
	scratch_folder_remove(&folder);
	scratch_folder_remove(&other);
}

Test(reshape, nothing_is_new_where_nothing_has_changed)
{
	check_alike("sync: ring, fuse: 8KiB", 3, 1, SGD);
	check_alike("sync: ps, pair: 1KiB, slice: 4KiB", 3, 1, ADAMW);
	check_alike("sync: ps, servers: 2", 2, 1, SGD);
	check_alike("sync: two-level-ps", 4, 2, ADAMW);
	check_alike("sync: adam", 3, 1, ADAMW);
	check_alike("sync: ring, low_rank: {rank: 2}", 3, 1, SGD);
	check_alike("sync: ring, fuse: 8KiB, low_rank: {rank: 3}", 2, 1, ADAMW);
	check_alike("sync: ps, compress: {by: one-bit, momentum: before}", 3, 1, SGD);
	check_alike("sync: ps, compress: {by: top-k, kept: 5%}, servers: 2", 3, 1, ADAMW);
}

/* Items of other tensors, which have the same bits where each is summed from two. */
static void check_cut_anew(const char *was, const char *is, const char *train)
{
	const struct scratch_folder folder = scratch_folder_make();
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = END};
	const struct side side = {was, 2, 1}, anew = {is, 2, 1};
	const struct leg before = legs_before(LEGS_SMOOTH, side, train);
	struct leg whole = legs_before(LEGS_SMOOTH, side, train);
	struct training *cut = legs_go(&before, &checkpoints), *after, *uncut;
	const struct leg behind = legs_behind(LEGS_SMOOTH, side, cut, anew, train, END);

	whole.end = END;
	uncut = legs_go(&whole, NULL);
	after = legs_go(&behind, &checkpoints);
	cr_expect(training_is_same(after, 0, uncut, 0), "'%s', then '%s'", was, is);
	training_free(cut);
	training_free(after);
	training_free(uncut);
	scratch_folder_remove(&folder);
}

Test(reshape, items_are_cut_anew)
{
	check_cut_anew("sync: ring, fuse: 100B, low_rank: {rank: 3}", "sync: ring, fuse: 1MiB, low_rank: {rank: 3}",
		       SGD);
	check_cut_anew("sync: ring, fuse: 1MiB, low_rank: {rank: 2}", "sync: ring, fuse: 100B, low_rank: {rank: 2}",
		       ADAMW);
	check_cut_anew("sync: ring, fuse: 1MiB", "sync: ps, pair: 1KiB, slice: 4KiB", ADAMW);
	check_cut_anew("sync: ps, pair: 1KiB, slice: 4KiB", "sync: ps, servers: 3", SGD);
}
