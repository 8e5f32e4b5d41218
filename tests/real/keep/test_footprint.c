/* The footprint of a worker, against the memory that a real run allocates. */
#define _GNU_SOURCE
#include "real/device/cpu/cpu.h"
#include "tests/footprint_helper.h"

static const char *const systems[] = {
	"sync: ps",
	"sync: ring, fuse: 4MiB",
	"sync: sfb",
	"sync: sfb, peers: 1, local_sgd: {steps: 4}",
	"sync: two-level-sfb",
	"sync: two-level-ps",
	"sync: ring, wire: fp16",
	"sync: ps, compress: {by: one-bit}",
	"sync: ring, low_rank: {rank: 4}",
	"sync: ring, sparse: {sparsity: 90%}",
	"sync: ring, local_sgd: {steps: 4}",
	"sync: ring, local_sgd: {steps: 4, outer: {}}",
	"sync: ps, local_sgd: {steps: 4, outer: {}}",
	"sync: ring, local_sgd: {steps: 4, fragments: 2, delay: 2, outer: {}}",
	"sync: ps, staleness: 2",
	"sync: ring, staleness: 2, reads: stale",
	"sync: ring, staleness: 2, reads: stale, managed: {clock: 4, early: 25%}",
	"sync: zero-1",
	"sync: zero-2, fuse: 1MiB",
	"sync: zero-3, fuse: 1MiB",
	"sync: fsdp, prefetch: 0",
	"sync: ring, accumulate: 2",
	"sync: zero-3, accumulate: 2",
};
static const struct footprint_model models[] = {{"mlp", 64},	  {"cifar10-quick", 64}, {"alexnet", 4},
						{"googlenet", 4}, {"resnet18", 4},	 {"resnet50", 4},
						{"gpt-small", 8}, {"vgg11", 4}};

/* The staging area of a host that exchanges is no part of the model's memory: it is as large as the largest item. */
static uint64_t staging_bytes(const struct psd_plan *plan)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < plan->n_items; i++)
		most = plan->items[i].subject.elements > most ? plan->items[i].subject.elements : most;
	return most * sizeof(float);
}

static uint64_t network_bytes(const struct footprint_model *model)
{
	const struct psd_device_options options = {.n_threads = 1};
	struct psd_error err = {.text = ""};
	struct psd_device *device;
	struct psd_memory memory;
	struct loaded loaded;
	struct psd_case made;
	uint64_t bytes;

	footprint_open(&loaded, &made, model, "cpu", "sync: ps");
	cr_assert_eq(psd_device_cpu.open(&device, &options, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_memory_init(&memory, &made.program, &(struct psd_memory_options){.host = 0}, &err), PSD_OK);
	bytes = footprint_network_bytes(&psd_device_cpu, device, &loaded.costed.graph, model->batch, memory.parameters);
	psd_device_cpu.close(device);
	psd_memory_release(&memory);
	psd_case_release(&made);
	loaded_close(&loaded);
	return bytes;
}

static void expect_allocated(const struct footprint_model *model, const char *system, uint64_t of_network)
{
	const struct psd_memory_options options = {.host = 0, .adds_arrivals = true};
	struct loaded loaded;
	struct psd_case made;
	struct psd_memory memory;
	struct psd_error err = {.text = ""};

	footprint_open(&loaded, &made, model, "cpu", system);
	cr_assert_eq(psd_memory_init(&memory, &made.program, &options, &err), PSD_OK, "%s", err.text);
	footprint_expect(model, system, &made, memory.block_bytes - staging_bytes(&made.plan) + of_network);
	psd_memory_release(&memory);
	psd_case_release(&made);
	loaded_close(&loaded);
}

Test(footprint, is_what_a_worker_allocates)
{
	for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++) {
		const uint64_t of_network = network_bytes(&models[m]);

		for (size_t s = 0; s < sizeof(systems) / sizeof(systems[0]); s++)
			expect_allocated(&models[m], systems[s], of_network);
	}
}

/* Compares values that a worker keeps of a model, without the network. Gaps between arrays of these are small. */
static void expect_kept(const char *name, const char *system)
{
	const struct footprint_model model = {name, 4};
	const struct psd_memory_options options = {.host = 0, .adds_arrivals = true};
	const double tolerance_ratio = 0.02;
	struct loaded loaded;
	struct psd_case made;
	struct psd_memory memory;
	struct psd_error err = {.text = ""};

	footprint_open(&loaded, &made, &model, "cpu", system);
	cr_assert_eq(psd_memory_init(&memory, &made.program, &options, &err), PSD_OK, "%s", err.text);
	const struct psd_footprint footprint = psd_footprint_make(&made.program, model.batch);
	const double kept = (double)(footprint.parameters_bytes + footprint.gradients_bytes +
				     footprint.optimiser_bytes + footprint.buffers_bytes);
	const double ratio = kept / (double)(memory.block_bytes - staging_bytes(&made.plan));

	cr_expect(fabs(ratio - 1.0) <= tolerance_ratio, "%s, %s: %.0f bytes: %+.1f %%", name, system, kept,
		  100.0 * (ratio - 1.0));
	psd_memory_release(&memory);
	psd_case_release(&made);
	loaded_close(&loaded);
}

Test(footprint, of_parts_is_what_a_worker_keeps)
{
	static const char *const names[] = {"alexnet", "resnet50", "gpt-small"};
	static const char *const sharded[] = {"sync: zero-1", "sync: zero-2, fuse: 4MiB", "sync: zero-3, fuse: 4MiB",
					      "sync: fsdp, prefetch: 3, accumulate: 2"};

	for (size_t m = 0; m < sizeof(names) / sizeof(names[0]); m++)
		for (size_t s = 0; s < sizeof(sharded) / sizeof(sharded[0]); s++)
			expect_kept(names[m], sharded[s]);
}
