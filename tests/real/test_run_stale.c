/* The table of matrix.h for stale reads. Parameters depend on the times at which sums arrive, but for those of a run
 * whose every iteration ends with a fence, or that is never late. */
#include "tests/real/matrix_keys.h"

/* Workers compare their parameters after each iteration. */
static const struct matrix_subject fenced = {
	.graph = "../../tests/data/maskless.yaml",
	.samples = 24,
	.seed = 5,
	.iterations = 7,
	.train = ", data: {kind: synthetic, training_samples: 96}, compare_every: 1",
};

static const struct matrix_layout layouts[] = {
	{"sync: ring", 2, 1},
	{"sync: ring, fuse: 1MB, barrier: layer", 3, 1},
	{"sync: halving-doubling, schedule: sequential, pipeline: 4KiB", 4, 1},
	{"sync: ps", 2, 1},
	{"sync: ps, pair: 512B, slice: 1KiB, barrier: layer, priority: forward", 3, 1},
	{"sync: ps, servers: 2", 3, 1},
	{"sync: two-level-ps, pair: 512B, slice: 1KiB", 4, 2},
	{0},
};
enum { SERVERS = 3 };
static const struct matrix_layout alone[] = {{"sync: ring", 1, 1}, {0}};

#define ROW_STALE(name, claim, ...) MATRIX_ROW(run_stale, name, claim, .layouts = layouts, __VA_ARGS__)

ROW_STALE(a_bound_of_0_has_the_bits_of_synchronous_training, matrix_has_same_bits, .subject = &matrix_maskless_shared,
	  .keys = {", staleness: 0, reads: stale"}, .other.keys = "", .learns = {FALLING(SGD, 0.02)})
ROW_STALE(behind_fences_bits_are_those_of_synchronous_training, matrix_has_same_bits, .subject = &fenced,
	  .end = SERVERS, .keys = {", staleness: 1, reads: stale", ", staleness: 3, reads: stale"}, .other.keys = "",
	  .learns = {FALLING(SGD, 0.02)})
ROW_STALE(behind_fences_servers_train_as_without, matrix_is_near, .subject = &fenced, .first = SERVERS,
	  .keys = {", staleness: 2, reads: stale"}, .other.keys = "", .learns = {FALLING(NESTEROV, 0.02)},
	  .way_ratio = SAME_WAY_RATIO)
ROW_STALE(workers_end_with_the_same_bits, matrix_is_same_on_all, .subject = &matrix_maskless_shared,
	  .keys = {", staleness: 1, reads: stale", ", staleness: 3, reads: stale",
		   ", staleness: 2, reads: stale, wire: bf16"},
	  .learns = {FALLING(SGD, 0.02)})
MATRIX_ROW(run_stale, a_worker_alone_is_never_stale, matrix_has_same_bits, .subject = &matrix_maskless_shared,
	   .layouts = alone, .keys = {", staleness: 3, reads: stale"}, .other.keys = "", .learns = {FALLING(SGD, 0.02)})
ROW_STALE(behind_a_fence_a_run_resumes_with_its_bits, matrix_resumes, .is_in_turn = true,
	  .keys = {", staleness: 1, reads: stale", ", staleness: 3, reads: stale"},
	  .learns = {GOING_ON_SGD ", compare_every: 1"})

/* ---- with managed communication: sums of chunks, early or at the end of a clock ---- */

#define OWN ", reads: stale, managed: {clock: 3, early: 30%, chunk: 700}"
static const struct matrix_layout all_reduces[] = {
	{"sync: ring", 2, 1},
	{"sync: ring, fuse: 80kB, barrier: layer", 3, 1},
	{"sync: halving-doubling, fuse: 1MB, schedule: sequential", 4, 1},
	{"sync: two-level, fuse: 1MB", 4, 2},
	{0},
};

MATRIX_ROW(run_stale, with_chunks_workers_end_with_the_same_bits, matrix_is_same_on_all, .subject = &matrix_quick,
	   .layouts = all_reduces, .is_in_turn = true, .iterations = 8,
	   .keys = {", staleness: 1" OWN, ", staleness: 3" OWN, ", staleness: 2, wire: bf16" OWN,
		    ", staleness: 2, accumulate: 2" OWN})
/* Losses are those of the same samples; momentum is of each worker. */
MATRIX_ROW(run_stale, with_chunks_the_loss_falls_as_without, matrix_learns, .subject = &matrix_quick, .iterations = 48,
	   MATRIX_ON({"sync: ring, fuse: 80kB", 2, 1}), .keys = {", staleness: 2" OWN}, .other.keys = "",
	   .loss_ratio = 1.5)

Test(run_stale, with_chunks_a_run_resumes_with_its_bits, .timeout = 120)
{
#define BY_TURNS ", reads: stale, managed: {clock: 2, early: 30%, chunk: 7, priority: generation}"
	going_on_check_own_updates("sync: ring, staleness: 1" BY_TURNS, 2, NULL);
	going_on_check_own_updates("sync: ring, barrier: layer, staleness: 3" BY_TURNS, 3, NULL);
}
