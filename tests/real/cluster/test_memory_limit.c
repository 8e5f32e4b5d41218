/* The least memory that a cluster takes of this machine. */
#include <criterion/criterion.h>
#include <string.h>

#include "real/base/machine.h"
#include "real/cluster/memory_limit.h"
#include "tests/real/training.h"

#define GIB   (UINT64_C(1) << 30)
#define TRAIN "iterations: 1, learning_rate: {policy: fixed, base: 0.001}"

enum {
	WORKERS = 3,
	BATCH = 8,
	PARAMETERS = 145578 /* CIFAR-10 quick */,
	INPUT_BYTES = 4 * 3 * 32 * 32,
	KEPT_BYTES = 4 * (64 + 10), /* gradients of what its two inner products put out */
	TRAINING_BYTES = 16 << 20   /* beside tensors */
};

static const struct psd_replay replay = {.dilation_ratio = 1.0, .payload_ratio = 1.0};

/* Twice the streams are as many connections more; all else is a process's and a worker's. */
Test(memory_limit, every_worker_has_two_copies_and_its_activations)
{
	struct training *one = training_make("cifar10-quick.yaml", "sync: ps", WORKERS, 1, BATCH, 1, TRAIN);
	struct training *two =
		training_make("cifar10-quick.yaml", "sync: ps", WORKERS, 1, BATCH, 1, TRAIN ", streams: 2");
	const uint64_t trained_bytes = psd_memory_limit_least_bytes(&one->made, NULL),
		       replayed_bytes = psd_memory_limit_least_bytes(&one->made, &replay);

	cr_expect_eq(trained_bytes - replayed_bytes,
		     WORKERS * (TRAINING_BYTES + 2 * 4 * (uint64_t)PARAMETERS +
				BATCH * (one->loaded.costed.graph.activation_bytes + INPUT_BYTES + KEPT_BYTES)));
	cr_expect_gt(psd_memory_limit_least_bytes(&two->made, NULL), trained_bytes);
	cr_expect_lt(trained_bytes, GIB); /* less than any machine has */
	training_free(one);
	training_free(two);
}

/* Beside the tensors, of each sample what is computed and what is read meanwhile. */
Test(memory_limit, activations_of_a_device_with_memory_of_its_own_are_not_the_hosts)
{
	struct training *apart = training_make("cifar10-quick.yaml", "sync: ps", WORKERS, 1, BATCH, 1, TRAIN);

	psd_costed_model_compute_on(&apart->loaded.costed, true);
	cr_expect_eq(psd_memory_limit_least_bytes(&apart->made, NULL) -
			     psd_memory_limit_least_bytes(&apart->made, &replay),
		     WORKERS * (TRAINING_BYTES + 2 * 4 * (uint64_t)PARAMETERS + BATCH * 2 * (uint64_t)INPUT_BYTES));
	training_free(apart);
}

/* A third of each layer, one whole layer, and gradients of two that take turns. Layers have 650, 65600, 51264, 25632
 * and 2432 parameters. */
Test(memory_limit, workers_with_parts_need_less)
{
	struct training *ring = training_make("cifar10-quick.yaml", "sync: ring", WORKERS, 1, BATCH, 1, TRAIN);
	struct training *parts =
		training_make("cifar10-quick.yaml", "sync: zero-3, prefetch: 0", WORKERS, 1, BATCH, 1, TRAIN);
	const uint64_t thirds = 216 + 21866 + 17088 + 8544 + 810, whole = 65600, gradients = 51264 + 65600;

	cr_expect_eq(psd_memory_limit_least_bytes(&ring->made, NULL) - psd_memory_limit_least_bytes(&parts->made, NULL),
		     WORKERS * 4 * (2 * PARAMETERS - thirds - whole - gradients));
	training_free(ring);
	training_free(parts);
}

/* Every worker keeps those of all, of both inner products: 1024 to 64 and 64 to 10. */
Test(memory_limit, factors_take_room)
{
	struct training *ps = training_make("cifar10-quick.yaml", "sync: ps", WORKERS, 1, BATCH, 1, TRAIN);
	struct training *sfb = training_make("cifar10-quick.yaml", "sync: sfb", WORKERS, 1, BATCH, 1, TRAIN);

	cr_expect_eq(psd_memory_limit_least_bytes(&sfb->made, NULL) - psd_memory_limit_least_bytes(&ps->made, NULL),
		     WORKERS * WORKERS * BATCH * 4 * (1024 + 64 + 64 + 10));
	training_free(ps);
	training_free(sfb);
}

/* Two nodes of three workers: three pairs in each, a mebibyte and a little more in each direction. */
Test(memory_limit, workers_of_a_node_share_memory)
{
	struct training *apart = training_make("cifar10-quick.yaml", "sync: ps", 6, 1, BATCH, 1, TRAIN);
	struct training *together = training_make("cifar10-quick.yaml", "sync: ps", 6, 3, BATCH, 1, TRAIN);
	const uint64_t more_bytes = psd_memory_limit_least_bytes(&together->made, &replay) -
				    psd_memory_limit_least_bytes(&apart->made, &replay);

	cr_expect_geq(more_bytes, 2 * 3 * 2 * (1 << 20));
	cr_expect_lt(more_bytes, 2 * 3 * 2 * ((1 << 20) + 4096));
	training_free(apart);
	training_free(together);
}

/* One of three; and what it keeps of all workers' factors. */
Test(memory_limit, real_workers_of_a_replay_take_their_memory)
{
	struct training *training = training_make("cifar10-quick.yaml", "sync: sfb", WORKERS, 1, BATCH, 1, TRAIN);
	struct psd_replay one = replay;
	const uint64_t trained_bytes = psd_memory_limit_least_bytes(&training->made, NULL),
		       replayed_bytes = psd_memory_limit_least_bytes(&training->made, &replay);

	one.real_workers = 1;
	cr_expect_eq(WORKERS * (psd_memory_limit_least_bytes(&training->made, &one) - replayed_bytes),
		     trained_bytes - replayed_bytes);
	training_free(training);
}

Test(memory_limit, a_cluster_that_does_not_fit_is_refused)
{
	struct training *training = training_make("cifar10-quick.yaml", "sync: ps", WORKERS, 1, BATCH, 1, TRAIN);
	const uint64_t least_bytes = psd_memory_limit_least_bytes(&training->made, NULL);
	struct psd_error err = {.text = ""};

	cr_expect_eq(psd_memory_limit_check(&training->made, NULL, least_bytes, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(psd_memory_limit_check(&training->made, NULL, least_bytes - 1, &err), PSD_EINVAL);
	cr_expect(strstr(err.text, "its processes take at least "), "%s", err.text);
	training_free(training);
}

Test(memory_limit, the_machine_says_what_it_has)
{
	const uint64_t available_bytes = psd_machine_available_bytes();

	cr_expect_gt(available_bytes, 1 << 20);
	cr_expect_lt(available_bytes, GIB << 20, "told in kilobytes");
}
