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

enum { WORKERS = 3 };

#define TOLERANCE_RATIO 1e-4 /* of a host's parameters: fp32 sums in another order, four iterations long */

static struct training *make(const char *system, const struct psd_device_kind *kind)
{
	struct training *training = training_make("cifar10-quick.yaml", system, WORKERS, 1, 4, 3,
						  "iterations: 4, optimiser: {momentum: 0.9, weight_decay: 0.01}, "
						  "learning_rate: {policy: fixed, base: 0.001}");

	psd_case_release(&training->made);
	psd_subject_matter_compute_on(&training->loaded.matter, kind != NULL);
	loaded_case(&training->made, &training->loaded, 0, 0);
	training->options.worker.device = kind;
	return training;
}

static void check(const char *more)
{
	char ring[128], nccl[128];
	struct training *here, *on_gpu;

	snprintf(ring, sizeof(ring), "sync: ring%s", more);
	snprintf(nccl, sizeof(nccl), "sync: nccl%s", more);
	here = make(ring, NULL);
	on_gpu = make(nccl, &psd_device_cuda);
	training_run(here);
	cr_assert_eq(here->status, PSD_OK, "%s", here->err.text);
	training_run(on_gpu);
	cr_assert_eq(on_gpu->status, PSD_OK, "%s: %s", nccl, on_gpu->err.text);
	for (unsigned w = 0; w < WORKERS; w++)
		cr_expect_lt(cuda_net_distance(training_parameters(on_gpu, w), training_parameters(here, w),
					       here->loaded.matter.graph.parameters),
			     TOLERANCE_RATIO, "%s, worker %u", nccl, w);
	training_free(on_gpu);
	training_free(here);
}

Test(cuda_nccl, workers_end_as_with_a_ring_on_the_processor)
{
	check("");
	check(", schedule: sequential, fuse: 64KiB");
}

Test(cuda_nccl, in_parts_and_another_order_too)
{
	check(", fuse: 1MiB, pipeline: 50KiB");
	check(", priority: forward, barrier: layer");
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

/* One call of one of them. The others' GPUs wait for it in a sum, which is called off. */
Test(cuda_nccl, a_worker_that_fails_ends_those_who_wait_for_it, .timeout = 60)
{
	struct training *training = make("sync: nccl", &psd_device_cuda);
	struct host hosts[WORKERS];

	psd_stand_in_fail("ncclAllReduce", 5, cudaErrorInvalidValue);
	run_hosts(training, hosts);
	for (unsigned h = 0; h < WORKERS; h++) {
		cr_expect_eq(hosts[h].status, PSD_ERUN, "worker %u", h);
		cr_expect(strstr(hosts[h].err.text, "nccl failed to sum: unhandled cuda error"), "worker %u: %s", h,
			  hosts[h].err.text);
	}
	cr_expect_eq(psd_stand_in_held().handles, 0);
	training_free(training);
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
	cr_expect(_Generic(&ncclCommInitRank, ncclResult_t(*)(ncclComm_t *, int, ncclUniqueId, int)
			   : true, default
			   : false));
#else
	cr_skip_test("NCCL's header is not here");
#endif
}
