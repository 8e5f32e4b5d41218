/* The footprint of a worker whose device has memory of its own, against the memory that it allocates there. */
#define _GNU_SOURCE
#include "real/device/cuda/cuda.h"
#include "tests/footprint_helper.h"

static const struct footprint_model models[] = {{"mlp", 64},	  {"cifar10-quick", 64}, {"alexnet", 4},
						{"googlenet", 4}, {"resnet18", 4},	 {"resnet50", 4},
						{"gpt-small", 8}, {"resnet34", 4}};
static const char *const systems[] = {"sync: ps",
				      "sync: ring, fuse: 4MiB",
				      "sync: sfb",
				      "sync: ps, compress: {by: one-bit}",
				      "sync: ring, low_rank: {rank: 4}",
				      "sync: ring, local_sgd: {steps: 4}"};

static void expect_allocated(const struct footprint_model *model, const char *system)
{
	const struct psd_device_options options = {.n_threads = 1};
	struct psd_memory_options kept = {.adds_arrivals = true, .place = PSD_MEMORY_DEVICE, .kind = &psd_device_cuda};
	struct psd_error err = {.text = ""};
	struct psd_memory memory;
	struct loaded loaded;
	struct psd_case made;
	uint64_t bytes;

	footprint_open(&loaded, &made, model, "v100", system);
	cr_assert_eq(psd_device_cuda.open(&kept.device, &options, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_memory_init(&memory, &made.program, &kept, &err), PSD_OK, "%s", err.text);
	bytes = memory.block_bytes + footprint_network_bytes(&psd_device_cuda, kept.device, &loaded.costed.graph,
							     model->batch, memory.parameters);
	footprint_expect(model, system, &made, bytes);
	psd_memory_release(&memory);
	psd_device_cuda.close(kept.device);
	psd_case_release(&made);
	loaded_close(&loaded);
}

Test(cuda_footprint, is_what_a_worker_allocates)
{
	for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++)
		for (size_t s = 0; s < sizeof(systems) / sizeof(systems[0]); s++)
			expect_allocated(&models[m], systems[s]);
}
