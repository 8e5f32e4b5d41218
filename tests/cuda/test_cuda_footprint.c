/* The footprint of a worker whose device has memory of its own, against the memory that it allocates there. */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "real/device/gpu/gpu.h"
#include "tests/footprint_helper.h"

static const struct footprint_model models[] = {{"mlp", 64},	  {"cifar10-quick", 64}, {"alexnet", 4},
						{"googlenet", 4}, {"resnet18", 4},	 {"resnet50", 4},
						{"gpt-small", 8}, {"resnet34", 4}};
static const char *const systems[] = {"sync: ps",
				      "sync: ring, fuse: 4MiB",
				      "sync: sfb",
				      "sync: ps, compress: {by: one-bit}",
				      "sync: ring, low_rank: {rank: 4}",
				      "sync: ring, local_sgd: {steps: 4}",
				      "sync: ring, local_sgd: {steps: 4, outer: {}}",
				      "sync: ring, accumulate: 4",
				      "sync: zero-1",
				      "sync: zero-2, fuse: 1MiB",
				      "sync: zero-3, fuse: 1MiB"};

/* Addresses that nothing uses: parameters and buffers are only counted. */
static enum psd_status take_unused(struct psd_device *device, uint64_t bytes, void **block, struct psd_error *err)
{
	(void)device;
	(void)err;
	*block = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	cr_assert_neq(*block, MAP_FAILED);
	return PSD_OK;
}

static void open_memory(struct psd_memory *memory, const struct psd_case *made)
{
	struct psd_device_kind kind = psd_device_cuda;
	const struct psd_memory_options options = {.adds_arrivals = true, .place = PSD_MEMORY_DEVICE, .kind = &kind};
	struct psd_error err = {.text = ""};

	kind.take = take_unused;
	cr_assert_eq(psd_memory_init(memory, &made->program, &options, &err), PSD_OK, "%s", err.text);
}

static void close_memory(struct psd_memory *memory)
{
	munmap(memory->block, memory->block_bytes);
	psd_memory_release(memory);
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

	footprint_open(&loaded, &made, model, "v100", "sync: ps");
	cr_assert_eq(psd_device_cuda.open(&device, &options, &err), PSD_OK, "%s", err.text);
	open_memory(&memory, &made);
	bytes = footprint_network_bytes(&psd_device_cuda, device, &loaded.costed.graph, model->batch,
					memory.parameters);
	psd_device_cuda.close(device);
	close_memory(&memory);
	psd_case_release(&made);
	loaded_close(&loaded);
	return bytes;
}

static void expect_allocated(const struct footprint_model *model, const char *system, uint64_t of_network)
{
	struct psd_memory memory;
	struct loaded loaded;
	struct psd_case made;

	footprint_open(&loaded, &made, model, "v100", system);
	open_memory(&memory, &made);
	footprint_expect(model, system, &made, memory.block_bytes + of_network);
	close_memory(&memory);
	psd_case_release(&made);
	loaded_close(&loaded);
}

Test(cuda_footprint, is_what_a_worker_allocates)
{
	for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++) {
		const uint64_t of_network = network_bytes(&models[m]);

		for (size_t s = 0; s < sizeof(systems) / sizeof(systems[0]); s++)
			expect_allocated(&models[m], systems[s], of_network);
	}
}
