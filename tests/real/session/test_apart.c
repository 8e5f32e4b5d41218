/* A device with memory of its own: what it works on and what travels are copied into each other, and nothing else of
 * either is ever read. It computes as the processor does, so that it must end with the processor's bits. */
#define _XOPEN_SOURCE 700
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/real/going_on.h"
#include "tests/real/legs.h"
#include "tests/real/training.h"
#include "tests/scratch_folder.h"

#define SGD   "optimiser: {momentum: 0.9, weight_decay: 0.01}"
#define ADAMW "optimiser: {kind: adamw, weight_decay: 0.01}"

static enum psd_status take_apart(struct psd_device *device, uint64_t bytes, void **block, struct psd_error *err)
{
	(void)device;
	*block = aligned_alloc(64, (bytes + 63) / 64 * 64); /* until the process ends */
	if (!*block)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	memset(*block, 0, bytes);
	return PSD_OK;
}

static enum psd_status copy(struct psd_device *device, enum psd_stream stream, void *to, const void *from,
			    uint64_t bytes, struct psd_error *err)
{
	(void)device, (void)stream, (void)err;
	memcpy(to, from, bytes);
	return PSD_OK;
}

static struct psd_device_kind apart(void)
{
	struct psd_device_kind kind = psd_device_cpu;

	kind.name = "apart";
	kind.has_own_memory = true;
	kind.take = kind.take_host = take_apart;
	kind.copy = copy;
	return kind;
}

/* With the program of a device that has memory of its own, on either kind: a processor takes no notice of copies. */
static struct training *train(const char *system, unsigned workers, unsigned per_node, const char *keys,
			      const struct psd_device_kind *kind)
{
	char text[256];

	snprintf(text, sizeof(text), "iterations: 4, learning_rate: {policy: fixed, base: 0.001}, %s", keys);
	return training_finish(
		training_on(training_make("cifar10-quick.yaml", system, workers, per_node, 4, 3, text), kind, true),
		system);
}

static void check(const char *system, unsigned workers, unsigned per_node, const char *keys)
{
	const struct psd_device_kind kind = apart();
	struct training *own = train(system, workers, per_node, keys, &kind),
			*shared = train(system, workers, per_node, keys, NULL);

	for (unsigned w = 0; w < workers; w++)
		cr_expect(training_is_same(own, w, shared, w), "%s, worker %u of %u", system, w, workers);
	cr_expect_eq(own->result.last_loss, shared->result.last_loss);
	cr_expect_eq(own->result.sent_bytes_per_node, shared->result.sent_bytes_per_node);
	training_free(own);
	training_free(shared);
}

static const char *const systems[] = {
	"schedule: sequential, sync: ps",
	"schedule: wait-free, sync: ps, pair: 16KiB, slice: 64KiB",
	"schedule: wait-free, sync: sfb",
	"schedule: wait-free, sync: hybrid",
	"schedule: wait-free, sync: adam",
	"schedule: wait-free, sync: ring",
	"schedule: wait-free, sync: ring, pipeline: 20KiB",
	"schedule: wait-free, sync: halving-doubling, fuse: 1MiB, pipeline: 50KiB, wire: fp16",
	"schedule: wait-free, sync: two-level, fuse: 64KiB",
	"schedule: wait-free, sync: ring, wire: bf16",
	"schedule: wait-free, sync: ps, wire: fp16",
	"schedule: wait-free, sync: hybrid, wire: bf16",
	"schedule: wait-free, sync: adam, wire: bf16",
	"schedule: wait-free, sync: ps, wire: fp16",
	"schedule: wait-free, sync: ps, servers: 1, pair: 16KiB, slice: 64KiB, wire: bf16",
	"schedule: wait-free, sync: sfb, wire: fp16",
	"schedule: sequential, sync: hybrid, wire: bf16",
	"schedule: wait-free, sync: adam, pair: 16KiB, slice: 64KiB, wire: bf16",
	"schedule: wait-free, sync: ring, fuse: 1MiB, sparse: {sparsity: 0.8, chunk: 700, warmup: 2}",
	"schedule: wait-free, sync: ps, compress: {by: one-bit}",
	"schedule: wait-free, sync: ps, servers: 2, compress: {by: top-k, kept: 5%}",
	"schedule: sequential, sync: ps, compress: {by: one-bit, block: 2048, tensors: matrices}",
	"schedule: wait-free, sync: ps, compress: {by: top-k}, local_sgd: {steps: 3}",
	"schedule: wait-free, sync: ring, low_rank: {rank: 2}",
	"schedule: sequential, sync: halving-doubling, fuse: 1KiB, pipeline: 200B, low_rank: {rank: 4}",
	"schedule: wait-free, sync: ring, low_rank: {rank: 1}, local_sgd: {steps: 3}",
	"schedule: wait-free, sync: ps, compress: {by: int8}, local_sgd: {steps: 3, delay: 1, outer: {}}",
	"schedule: wait-free, sync: ring, fuse: 1MiB, local_sgd: {steps: 3, fragments: 2, delay: 1, outer: {}}",
};

Test(apart, every_method_ends_with_the_bits_of_shared_memory)
{
	for (size_t s = 0; s < sizeof(systems) / sizeof(systems[0]); s++)
		for (unsigned workers = 1; workers <= 3; workers += 2)
			check(systems[s], workers, 1, SGD);
}

Test(apart, leaders_end_with_the_bits_of_shared_memory)
{
	check("schedule: sequential, sync: two-level-ps", 4, 2, SGD);
	check("schedule: wait-free, sync: two-level, fuse: 1KiB, low_rank: {rank: 2}", 4, 2, SGD);
	check("schedule: wait-free, sync: two-level-ps, pair: 16KiB, slice: 64KiB", 5, 3, SGD);
	check("schedule: wait-free, sync: two-level-ps, servers: 1", 4, 2, SGD);
	check("schedule: wait-free, sync: two-level-ps, pair: 16KiB, slice: 64KiB, wire: fp16", 5, 3, SGD);
	check("schedule: wait-free, sync: two-level-ps, servers: 1, wire: bf16", 4, 2, SGD);
}

/* Gradients leave the range in some slices and not in others: every host that has one finds both kinds. */
Test(apart, updates_are_left_out_as_in_shared_memory)
{
	static const char *const scaled[] = {
		"schedule: wait-free, sync: ps, pair: 16KiB, slice: 64KiB, wire: fp16",
		"schedule: wait-free, sync: ps, servers: 1, wire: fp16",
		"schedule: wait-free, sync: ring, wire: fp16",
		"schedule: wait-free, sync: sfb, wire: fp16",
		"schedule: wait-free, sync: adam, wire: fp16",
	};

	for (size_t s = 0; s < sizeof(scaled) / sizeof(scaled[0]); s++) {
		check(scaled[s], 3, 1, SGD ", loss_scale: 3e6");
		check(scaled[s], 3, 1, SGD ", loss_scale: 1e9");
	}
	check("schedule: wait-free, sync: two-level-ps, pair: 16KiB, slice: 64KiB, wire: fp16", 4, 2,
	      SGD ", loss_scale: 1e6");
	check("schedule: wait-free, sync: two-level-ps, pair: 16KiB, slice: 64KiB, wire: fp16", 4, 2,
	      SGD ", loss_scale: 1e9");
}

static const char *const by_adamw[] = {
	"schedule: sequential, sync: ps",
	"schedule: wait-free, sync: ps, pair: 16KiB, slice: 64KiB, wire: fp16",
	"schedule: wait-free, sync: ring, fuse: 1MiB",
	"schedule: wait-free, sync: hybrid, wire: bf16",
	"schedule: wait-free, sync: adam",
	"schedule: wait-free, sync: ps, compress: {by: one-bit}",
	"schedule: wait-free, sync: ring, low_rank: {rank: 2}",
	"schedule: wait-free, sync: ps, local_sgd: {steps: 3}",
};

Test(apart, adamw_ends_with_the_bits_of_shared_memory)
{
	for (size_t s = 0; s < sizeof(by_adamw) / sizeof(by_adamw[0]); s++)
		check(by_adamw[s], 3, 1, ADAMW);
	check("schedule: wait-free, sync: two-level-ps, pair: 16KiB, slice: 64KiB", 5, 3, ADAMW);
}

/* Squares of devices are in their memory, those of shards in their hosts'. */
Test(apart, adamw_goes_on)
{
	static const char train[] = "data: {training_samples: 40, test_samples: 32}, " ADAMW;
	const struct psd_device_kind kind = apart();

	going_on_check("sync: ring, fuse: 8KiB", train, 2, 1, &kind);
	going_on_check("sync: ps", train, 2, 1, &kind);
	going_on_check("sync: ring, low_rank: {rank: 2}", train, 2, 1, &kind);
}

/* From the checkpoint of three workers on the processor. */
static struct training *go_on_with(struct side is, const char *keys, const struct psd_device_kind *kind)
{
	const struct scratch_folder folder = scratch_folder_make();
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = 2 * LEGS_CUT};
	const struct side was = {is.system, 3, 1};
	const struct leg before = legs_before(LEGS_SMOOTH, was, keys);
	struct training *cut = legs_go(&before, &checkpoints), *after;
	struct leg behind = legs_behind(LEGS_SMOOTH, was, cut, is, keys, LEGS_CUT + 2);

	behind.kind = kind;
	after = legs_go(&behind, &checkpoints);
	training_free(cut);
	scratch_folder_remove(&folder);
	return after;
}

static void check_fewer(const char *system, const char *optimiser)
{
	const struct psd_device_kind kind = apart();
	const struct side is = {system, 2, 1};
	struct training *own, *shared;
	char keys[256];

	snprintf(keys, sizeof(keys), LEGS_DATA "learning_rate: {base: 0.01}, %s", optimiser);
	own = go_on_with(is, keys, &kind);
	shared = go_on_with(is, keys, NULL);
	for (unsigned w = 0; w < 2; w++)
		cr_expect(training_is_same(own, w, shared, w), "%s, worker %u", system, w);
	training_free(own);
	training_free(shared);
}

Test(apart, fewer_go_on_with_the_bits_of_shared_memory)
{
	check_fewer("sync: ring, fuse: 8KiB", SGD);
	check_fewer("sync: ps", ADAMW);
	check_fewer("sync: adam", SGD);
	check_fewer("sync: ring, low_rank: {rank: 2}", ADAMW);
	check_fewer("sync: ps, compress: {by: one-bit}", SGD);
	check_fewer("sync: ring, sparse: {sparsity: 0.8, chunk: 70}", SGD);
	check_fewer("sync: ps, wire: bf16", SGD);
	check_fewer("sync: adam, wire: bf16", SGD);
}
