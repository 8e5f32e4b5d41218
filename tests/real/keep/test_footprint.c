/* The footprint of a worker, against the memory that a real run allocates. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <math.h>

#include "engine/program/footprint.h"
#include "real/keep/memory.h"
#include "tests/loaded_helper.h"

static const double tolerance_ratio = 0.05;

static const char *const systems[] = {
	"sync: ps",
	"sync: ring, fuse: 4MiB",
	"sync: sfb",
	"sync: two-level-ps",
	"sync: ring, wire: fp16",
	"sync: ps, compress: {by: one-bit}",
	"sync: ring, low_rank: {rank: 4}",
	"sync: ring, sparse: {sparsity: 90%}",
	"sync: ring, local_sgd: {steps: 4}",
	"sync: ps, staleness: 2",
};
static const char *const models[] = {"mlp",	 "cifar10-quick", "alexnet",   "googlenet",
				     "resnet18", "resnet50",	  "gpt-small", "vgg11"};

/* The staging area of a host that exchanges is no part of the model's memory: it is as large as the largest item. */
static uint64_t staging_bytes(const struct psd_plan *plan)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < plan->n_items; i++)
		most = plan->items[i].subject.elements > most ? plan->items[i].subject.elements : most;
	return most * sizeof(float);
}

static void expect_allocated(const char *model, const char *system)
{
	const struct psd_memory_options options = {.host = 0, .adds_arrivals = true};
	struct loaded loaded;
	struct psd_case made;
	struct psd_memory memory;
	struct psd_error err = {.text = ""};

	loaded_print(&loaded,
		     "model: {graph: scenarios/models/%s.yaml, batch_per_worker: 2}\n"
		     "compute: {device: cpu}\n"
		     "cluster: {stack: none, nodes: 4, network: {bandwidth: 1Gbps, latency: 50us}}\n"
		     "systems: [{name: s, %s}]\n"
		     "train: {iterations: 1, optimiser: {momentum: 0.9}, learning_rate: {base: 1}}\n",
		     model, system);
	loaded_case(&made, &loaded, 0, 0);
	cr_assert_eq(psd_memory_init(&memory, &made.program, &options, &err), PSD_OK, "%s", err.text);
	const struct psd_footprint footprint = psd_footprint_make(&made.program, 2);
	const double counted = (double)(psd_footprint_bytes(&footprint) - footprint.activations_bytes);
	const double allocated = (double)(memory.block_bytes - staging_bytes(&made.plan));

	cr_expect(fabs(counted / allocated - 1.0) <= tolerance_ratio, "%s, %s: %.0f bytes, allocated are %.0f", model,
		  system, counted, allocated);
	psd_memory_release(&memory);
	psd_case_release(&made);
	loaded_close(&loaded);
}

Test(footprint, is_what_a_worker_allocates_beside_activations)
{
	for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++)
		for (size_t s = 0; s < sizeof(systems) / sizeof(systems[0]); s++)
			expect_allocated(models[m], systems[s]);
}
