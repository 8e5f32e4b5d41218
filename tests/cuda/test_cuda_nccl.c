/* Workers whose gradients NCCL sums, on the stand-in. Speaks of no GPU. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "real/device/cuda/nccl.h"
#include "real/net/socket.h"
#include "tests/cuda/cuda_net.h"
#include "tests/cuda/stand_in.h"
#include "tests/real/training.h"

#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

enum { WORKERS = 3, SEEDS = 4 };

#define TOLERANCE_RATIO 1e-4 /* relative to a host's parameters: fp32 sums in another order, four iterations long */

static struct training *make(const char *system, unsigned workers, unsigned workers_per_node,
			     const struct psd_device_kind *kind)
{
	return training_on(training_make("cifar10-quick.yaml", system, workers, workers_per_node, 4, 3,
					 "iterations: 4, optimiser: {momentum: 0.9, weight_decay: 0.01}, "
					 "learning_rate: {policy: fixed, base: 0.001}"),
			   kind, kind != NULL);
}

/* own: psd's own method in place of the library's, on the processor. Bytes between nodes are equal. */
static void check(const char *library, const char *own, const char *more, unsigned workers, unsigned workers_per_node)
{
	char here_text[128], on_gpu_text[128];
	struct training *here, *on_gpu;

	snprintf(here_text, sizeof(here_text), "sync: %s%s", own, more);
	snprintf(on_gpu_text, sizeof(on_gpu_text), "sync: %s%s", library, more);
	here = make(here_text, workers, workers_per_node, NULL);
	on_gpu = make(on_gpu_text, workers, workers_per_node, &psd_device_cuda);
	training_run(here);
	cr_assert_eq(here->status, PSD_OK, "%s", here->err.text);
	training_finish(on_gpu, on_gpu_text);
	for (unsigned w = 0; w < workers; w++) {
		cr_expect_lt(cuda_net_distance(training_parameters(on_gpu, w), training_parameters(here, w),
					       here->loaded.costed.graph.parameters),
			     TOLERANCE_RATIO, "%s, worker %u of %u", on_gpu_text, w, workers);
		cr_expect(training_is_same(on_gpu, w, on_gpu, 0), "%s, worker %u of %u", on_gpu_text, w, workers);
	}
	cr_expect_eq(on_gpu->result.sent_bytes_per_node, here->result.sent_bytes_per_node, "%s", on_gpu_text);
	training_free(on_gpu);
	training_free(here);
}

Test(cuda_nccl, workers_end_as_with_a_ring_on_the_processor)
{
	check("nccl", "ring", "", WORKERS, 1);
	check("nccl", "ring", ", schedule: sequential, fuse: 64KiB", WORKERS, 1);
}

Test(cuda_nccl, in_parts_and_another_order_too)
{
	check("nccl", "ring", ", fuse: 1MiB, pipeline: 50KiB", WORKERS, 1);
	check("nccl", "ring", ", priority: forward, barrier: layer", WORKERS, 1);
}

/* The last node may have a single worker, and so may all; there may be one node. */
Test(cuda_nccl, inside_nodes_workers_end_as_with_two_levels_on_the_processor)
{
	check("nccl-two-level", "two-level", "", 4, 2);
	check("nccl-two-level", "two-level", ", schedule: sequential, fuse: 64KiB", 3, 2);
	check("nccl-two-level", "two-level", "", 3, 3);
	check("nccl-two-level", "two-level", "", 3, 1);
}

Test(cuda_nccl, inside_nodes_in_parts_and_another_order_too)
{
	check("nccl-two-level", "two-level", ", fuse: 1MiB, pipeline: 50KiB", 4, 2);
	check("nccl-two-level", "two-level", ", priority: forward, barrier: layer", 5, 2);
}

/* ---- when one fails ---- */

struct host {
	struct psd_worker_options options;
	pthread_t thread;
	enum psd_status status;
	struct psd_error err;
};

static void *run_host(void *context)
{
	struct host *host = context;
	struct psd_worker_result result;

	host->status = psd_worker_run(&host->options, &result, &host->err);
	return NULL;
}

/* All in this process, which nothing ends but themselves. */
static void run_hosts(const struct training *training, struct host hosts[WORKERS])
{
	static const struct psd_socket_options socket_options = {.has_buffers = false};
	struct psd_mesh_host places[WORKERS];
	struct psd_error err;

	for (unsigned h = 0; h < WORKERS; h++) {
		hosts[h] = (struct host){.options = training->options.worker};
		hosts[h].options.self = h;
		hosts[h].options.hosts = places;
		snprintf(places[h].address, sizeof(places[h].address), "127.0.0.1");
		cr_assert_eq(psd_socket_listen("127.0.0.1", 0, &socket_options, &hosts[h].options.listener,
					       &places[h].port, &err),
			     PSD_OK, "%s", err.text);
	}
	for (unsigned h = 0; h < WORKERS; h++)
		cr_assert_eq(pthread_create(&hosts[h].thread, NULL, run_host, &hosts[h]), 0);
	for (unsigned h = 0; h < WORKERS; h++)
		pthread_join(hosts[h].thread, NULL);
}

/* Whichever stream runs behind. */
Test(cuda_nccl, inside_nodes_all_seeds_give_the_same_bits)
{
	struct training *at_once = make("sync: nccl-two-level, fuse: 64KiB", 4, 2, &psd_device_cuda);

	psd_stand_in_set_seed(0);
	training_run(at_once);
	cr_assert_eq(at_once->status, PSD_OK, "%s", at_once->err.text);
	for (unsigned seed = 1; seed <= SEEDS; seed++) {
		struct training *behind = make("sync: nccl-two-level, fuse: 64KiB", 4, 2, &psd_device_cuda);

		psd_stand_in_set_seed(seed);
		training_run(behind);
		cr_expect_eq(behind->status, PSD_OK, "seed %u: %s", seed, behind->err.text);
		for (unsigned w = 0; w < 4; w++)
			cr_expect(training_is_same(behind, w, at_once, 0), "seed %u: worker %u differs", seed, w);
		training_free(behind);
	}
	training_free(at_once);
}

static void expect_failure(const char *system, unsigned workers_per_node, const char *function, unsigned nth)
{
	struct training *training = make(system, WORKERS, workers_per_node, &psd_device_cuda);
	struct host hosts[WORKERS];

	psd_stand_in_fail(function, nth, cudaErrorInvalidValue);
	run_hosts(training, hosts);
	for (unsigned h = 0; h < WORKERS; h++) {
		cr_expect_eq(hosts[h].status, PSD_ERUN, "%s, worker %u", system, h);
		cr_expect(strstr(hosts[h].err.text, "nccl failed to sum: unhandled cuda error"), "%s, worker %u: %s",
			  system, h, hosts[h].err.text);
	}
	cr_expect_eq(psd_stand_in_held().handles, 0);
	training_free(training);
}

/* One call of one of them. The others' GPUs wait for it in a sum, which is called off. */
Test(cuda_nccl, a_worker_that_fails_ends_those_that_wait_for_it, .timeout = 60)
{
	expect_failure("sync: nccl", 1, "ncclAllReduce", 5);
}

/* Or for what is to come back to their node, or for the other node's sum. */
Test(cuda_nccl, a_worker_that_fails_inside_a_node_ends_those_who_wait_for_it, .timeout = 60)
{
	expect_failure("sync: nccl-two-level", 2, "ncclAllReduce", 5);
	expect_failure("sync: nccl-two-level", 2, "ncclBroadcast", 5);
}

/* psd-run has the few declarations that it needs from nowhere. */
Test(cuda_nccl, is_called_as_its_own_header_says)
{
#if __has_include(<nccl.h>)
	cr_expect_eq(sizeof(ncclUniqueId), sizeof(struct psd_nccl_id));
	cr_expect_eq((int)ncclSuccess, PSD_NCCL_SUCCESS);
	cr_expect_eq((int)ncclFloat32, PSD_NCCL_FLOAT32);
	cr_expect_eq((int)ncclSum, PSD_NCCL_SUM);
	cr_expect(_Generic(&ncclAllReduce, ncclResult_t(*)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
							   ncclComm_t, cudaStream_t)
			   : true, default
			   : false));
	cr_expect(_Generic(&ncclBroadcast,
			   ncclResult_t(*)(const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)
			   : true, default
			   : false));
	cr_expect(_Generic(&ncclCommInitRank, ncclResult_t(*)(ncclComm_t *, int, ncclUniqueId, int)
			   : true, default
			   : false));
#else
	cr_skip_test("NCCL's header is not here");
#endif
}
