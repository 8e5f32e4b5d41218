/* How much room a host has for what others send it. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdio.h>

#include "real/keep/memory.h"
#include "tests/loaded_helper.h"

enum { ON_NODE = 3 }; /* workers */

static const char scenario[] =
	"title: t\n"
	"model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 2}\n"
	"compute: {device: cpu}\n"
	"cluster: {stack: none, nodes: 2, workers_per_node: 3, network: {bandwidth: 1Gbps, latency: 50us}}\n"
	"systems: [{name: s, sync: %s}]\n"
	"train: {iterations: 1, optimiser: {%s}, learning_rate: {base: 1}}\n";

/* A host's memory and what it is of. */
struct opened {
	struct loaded loaded;
	struct psd_case made;
	struct psd_memory memory;
};

static void open_memory(struct opened *opened, const char *sync, unsigned host, const char *optimiser)
{
	const struct psd_memory_options options = {.host = host};
	struct psd_error err = {.text = ""};

	loaded_print(&opened->loaded, scenario, sync, optimiser);
	loaded_case(&opened->made, &opened->loaded, 0, 0);
	cr_assert_eq(psd_memory_init(&opened->memory, &opened->made.program, &options, &err), PSD_OK, "%s", err.text);
}

static void close_memory(struct opened *opened)
{
	psd_memory_release(&opened->memory);
	psd_case_release(&opened->made);
	loaded_close(&opened->loaded);
}

/* Elements that a host has of the buffer, of the first item. */
static uint64_t room(const char *sync, unsigned host, enum psd_buffer buffer)
{
	struct opened opened;
	uint64_t elements;

	open_memory(&opened, sync, host, "momentum: 0.9");
	elements = psd_memory_elements(&opened.memory, 0, buffer);
	close_memory(&opened);
	return elements;
}

/* Every worker's gradient of its part, or every leader's. */
Test(memory, a_shard_has_room_for_those_it_hears)
{
	cr_expect_gt(room("two-level-ps", 0, PSD_BUFFER_RECEIVED), 0);
	cr_expect_eq(room("ps", 0, PSD_BUFFER_RECEIVED), ON_NODE * room("two-level-ps", 0, PSD_BUFFER_RECEIVED));
	cr_expect_eq(room("two-level-ps", ON_NODE + 1, PSD_BUFFER_RECEIVED), 0);
}

/* Whole items, with gaps between them; others have none. */
Test(memory, a_leader_has_room_for_the_others_of_its_node)
{
	const uint64_t elements = room("two-level-ps", 0, PSD_BUFFER_GRADIENT);

	cr_expect_geq(room("two-level-ps", ON_NODE, PSD_BUFFER_MEMBERS), (ON_NODE - 1) * elements);
	cr_expect_eq(room("two-level-ps", ON_NODE + 1, PSD_BUFFER_MEMBERS), 0);
}

/* The first item is the last layer's: 10 outputs of 64 inputs, and a bias. 9 (10 + 64) is more than 640, 8 (10 + 64) is
 * less. */
Test(memory, narrow_matrices_have_room_where_they_are)
{
	static const char of_two[] = "ring, unit: layer, low_rank: {rank: 2}";

	cr_expect_eq(room(of_two, 0, PSD_BUFFER_LEFT), 2 * 10 + 10);
	cr_expect_eq(room(of_two, 0, PSD_BUFFER_RIGHT), 2 * 64);
	cr_expect_eq(room(of_two, ON_NODE, PSD_BUFFER_RESIDUAL), 10 * 64 + 10);
	cr_expect_eq(room("ring, unit: layer, low_rank: {rank: 8}", 0, PSD_BUFFER_RIGHT), 8 * 64);
	cr_expect_eq(room("ring, unit: layer, low_rank: {rank: 9}", 0, PSD_BUFFER_RIGHT), 0);
	cr_expect_eq(room("ring, unit: layer", 0, PSD_BUFFER_RIGHT), 0);
}

/* Other hosts may be ahead of a host, or behind it, with their factors: with s late updates by s + 1 iterations. */
Test(memory, factors_that_others_send_ahead_have_room_of_their_own)
{
	for (unsigned staleness = 0; staleness <= 3; staleness++) {
		struct opened opened;
		const float *first;
		unsigned n = 1;
		char sync[64];

		snprintf(sync, sizeof(sync), "sfb, staleness: %u", staleness);
		open_memory(&opened, sync, 0, "momentum: 0.9");
		first = psd_memory_buffer(&opened.memory, PSD_BUFFER_FACTORS, 0, 7);
		while (psd_memory_buffer(&opened.memory, PSD_BUFFER_FACTORS, 0, 7 + n) != first)
			n++;
		cr_expect_eq(n, 2 * (staleness + 1), "%u iterations have room with %s", n, sync);
		close_memory(&opened);
	}
}

/* ---- optimiser state ---- */

static bool is_apart(const float *one, const float *other, uint64_t elements)
{
	return one + elements <= other || other + elements <= one;
}

/* Whole items at a device; none of those of shards. */
static void check_items(const char *sync)
{
	struct opened opened;
	const struct psd_memory *memory = &opened.memory;

	open_memory(&opened, sync, 1, "kind: adamw");
	for (unsigned i = 0; i < opened.made.plan.n_items; i++) {
		const struct psd_moments moments = psd_memory_moments(memory, i);

		cr_assert(moments.history && moments.squares, "%s", sync);
		cr_expect_eq(memory->items[i].buffers[PSD_BUFFER_SQUARES].apart,
			     memory->items[i].buffers[PSD_BUFFER_HISTORY].apart);
		cr_expect(is_apart(moments.history, moments.squares, opened.made.plan.items[i].subject.elements), "%s",
			  sync);
		cr_expect_null(memory->items[i].buffers[PSD_BUFFER_PART_HISTORY].base);
		cr_expect_null(memory->items[i].buffers[PSD_BUFFER_PART_SQUARES].base);
	}
	close_memory(&opened);
}

/* Slice behind slice, each this shard's part of it. */
static void check_parts(const char *sync, unsigned host)
{
	struct opened opened;
	const struct psd_memory *memory = &opened.memory;
	unsigned n_cut = 0;

	open_memory(&opened, sync, host, "kind: adamw");
	for (unsigned i = 0; i < opened.made.plan.n_items; i++) {
		const struct psd_moments whole = psd_memory_part_moments(memory, i, 0);
		uint64_t elements = 0;

		cr_assert(whole.history && whole.squares, "%s", sync);
		for (unsigned s = 0; s < opened.made.plan.items[i].n_slices; s++) {
			const struct psd_moments moments = psd_memory_part_moments(memory, i, s);

			cr_expect_eq(moments.history, whole.history + elements, "%s: slice %u", sync, s);
			cr_expect_eq(moments.squares, whole.squares + elements, "%s: slice %u", sync, s);
			elements += psd_memory_own_part(memory, i, s).elements;
			n_cut += s > 0;
		}
		cr_expect_eq(psd_memory_elements(memory, i, PSD_BUFFER_PART_SQUARES), elements);
		cr_expect(is_apart(whole.history, whole.squares, elements), "%s", sync);
		cr_expect_null(memory->items[i].buffers[PSD_BUFFER_SQUARES].base);
	}
	cr_expect_gt(n_cut, 0, "%s: nothing is sliced", sync);
	close_memory(&opened);
}

Test(memory, squares_lie_as_histories_do)
{
	check_items("ring");
	check_items("ring, fuse: 1MB");
	check_items("ps, local_sgd: {steps: 2}");
	check_parts("ps, pair: 512B, slice: 8KiB", 0);
	check_parts("ps, pair: 512B, slice: 8KiB", ON_NODE);
}

Test(memory, without_an_adaptive_solver_there_are_no_squares)
{
	struct opened ring, ps;

	open_memory(&ring, "ring", 0, "momentum: 0.9");
	open_memory(&ps, "ps", 0, "momentum: 0.9");
	cr_expect(psd_memory_moments(&ring.memory, 0).history && !psd_memory_moments(&ring.memory, 0).squares);
	cr_expect(psd_memory_part_moments(&ps.memory, 0, 0).history);
	cr_expect_null(psd_memory_part_moments(&ps.memory, 0, 0).squares);
	close_memory(&ring);
	close_memory(&ps);
}
