/* The table of stacks. Each constant names the published value that it was fitted to, or the place that it is from.
 * Costs of devices are not here: they follow from the device's memory (scenario_stack.c). */
#include "engine/scenario/stack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/sort.h"
#include "engine/document/schema.h"
#include "engine/scenario/scenario_keys.h"

#define GBPS	       1e9
#define GBYTES_PER_SEC 8e9 /* in bits */

#define COLLECTIVE(call, step)                                                                                         \
	.collective = {{.call_sec = (call), .step_sec = (step), .slowdown_ratio = 1}}, .n_collective_classes = 1
#define ALL_OF_LINK .share_ratio = 1, .requests = 1

/* Pinned memory over PCIe 3.0 x16 reaches 12 of its 15.75 GB/s. */
#define PINNED_COPY .copy_bps = 12 * GBYTES_PER_SEC

static const struct psd_stack_row stacks[] = {
	{.name = "ideal",
	 .about = "an upper bound: the whole link, and a host that costs nothing",
	 .source = "no software does this; devices still convert, update and launch at their own rates",
	 .host = {ALL_OF_LINK}},
	{.name = "none",
	 .about = "nothing costs anything but layers and links",
	 .source = "for calculations by hand, and for scenarios that state each cost themselves",
	 .frees_device = true,
	 .host = {ALL_OF_LINK}},
	{.name = "nccl-tcp",
	 .about = "NCCL between GPUs over TCP sockets",
	 .source = "transport: fitted to VGG-16 by Horovod and NCCL over TCP, 25 Gbit/s, 2017, one stream. streams: "
		   "several sockets of faster links, an assumption. share: headers of TCP/IP. collective: half of what "
		   "NCCL's calls and steps take in arXiv 1902.06855 Fig 8, and 10 us a step for sockets",
	 .is_on_device = true,
	 .assumes_streams = true,
	 .host = {.transport_bps = 13 * GBPS,
		  .streams_ratio = 0.45,
		  .share_ratio = 0.94,
		  .requests = 1,
		  COLLECTIVE(30e-6, 10e-6)}},
	{.name = "nccl-rdma",
	 .about = "NCCL between GPUs over InfiniBand or RoCE",
	 .source =
		 "share: fitted to VGG-16 by Horovod and NCCL over RDMA, 25 Gbit/s, 2017. collective: NCCL's calls and "
		 "steps in arXiv 1902.06855 Fig 8",
	 .is_on_device = true,
	 .host = {.share_ratio = 0.82, .requests = 1, COLLECTIVE(20e-6, 4e-6)}},
	{.name = "gloo",
	 .about = "Gloo of PyTorch over TCP, through the host's memory",
	 .source = "transport, local: OpenMPI of arXiv 1902.06855 Fig 8, 16 GPUs, the largest size. incast: fitted to "
		   "AlexNet, 32 GPUs (Fig 6a). collective: Fig 8, 16 KiB",
	 .host = {.transport_bps = 0.76 * GBYTES_PER_SEC,
		  .local_bps = 0.76 * GBYTES_PER_SEC,
		  .incast_ratio = 0.81,
		  ALL_OF_LINK,
		  COLLECTIVE(0, 8e-6)}},
	{.name = "mpi",
	 .about = "all-reduces of MPI on the host's processor",
	 .source = "transport: fitted to VGG-16 by Horovod over MPI and TCP, 25 Gbit/s, 2017. local, collective: "
		   "OpenMPI alone of arXiv 1902.06855 Fig 8",
	 .host = {.transport_bps = 5.5 * GBPS, .local_bps = 0.76 * GBYTES_PER_SEC, ALL_OF_LINK, COLLECTIVE(50e-6, 0)}},
	{.name = "grpc",
	 .about = "distributed TensorFlow of 2017 over gRPC; its servers hold whole tensors (placement: tensors)",
	 .source = "transport, reduce: fitted to ResNet-101 and VGG-16 on 4 x 4 GPUs and 25 Gbit/s, 2017. copy: pinned "
		   "memory over PCIe 3.0",
	 .host = {PINNED_COPY, .reduce_bps = 1.2 * GBYTES_PER_SEC, .transport_bps = 14 * GBPS, ALL_OF_LINK}},
	{.name = "ps-lite",
	 .about = "servers of MXNet over ZeroMQ and TCP",
	 .source = "transport: borrowed from the servers of Poseidon 2017, on 40 Gbit/s. copy: pinned memory over PCIe "
		   "3.0. Nothing was fitted",
	 .host = {PINNED_COPY, .reduce_bps = 4 * GBYTES_PER_SEC, .transport_bps = 14.7 * GBPS, ALL_OF_LINK}},
	{.name = "petuum",
	 .about = "servers of Poseidon 2015 (Petuum's Boesen) over ZeroMQ and TCP",
	 .source = "copy, transport, iteration: borrowed from Poseidon 2017; factors travel unpacked, 5 bytes for 4. "
		   "reduce, update: 16 passes over memory by the released code, on one core of 2012 with 4 GB/s. "
		   "request: fitted to GoogLeNet on 8 nodes. requests are the scenario's",
	 .host = {.copy_bps = 2.29 * GBYTES_PER_SEC,
		  .reduce_bps = 0.25 * GBYTES_PER_SEC,
		  .update_bps = 0.25 * GBYTES_PER_SEC,
		  .transport_bps = 14.7 / 1.25 * GBPS,
		  .iteration_sec = 10e-3,
		  .request_sec = 120e-6,
		  ALL_OF_LINK}},
	{.name = "psd",
	 .about = "psd-run itself, over TCP",
	 .source =
		 "medians of psd-run calibrate on the machines of traces/measured, two cores each; copy: pinned memory "
		 "over PCIe 3.0",
	 .host = {PINNED_COPY, .reduce_bps = 56 * GBPS, .transport_bps = 49 * GBPS, ALL_OF_LINK,
		  .iteration_sec = 0.8e-3}},
};

enum { N_STACKS = sizeof(stacks) / sizeof(stacks[0]) };

const char *const psd_stack_names[] = {"ideal", "none",	   "nccl-tcp", "nccl-rdma", "gloo", "mpi",
				       "grpc",	"ps-lite", "petuum",   "psd",	    NULL};

_Static_assert(sizeof(psd_stack_names) / sizeof(psd_stack_names[0]) == N_STACKS + 1, "a name for every stack");

const struct psd_stack_row *psd_stack_find(const char *name)
{
	for (unsigned i = 0; i < N_STACKS; i++)
		if (!strcmp(stacks[i].name, name))
			return &stacks[i];
	return NULL;
}

/* ---- records ---- */

static const struct psd_stack_point points[] = {
#define FITTED(stack, where, published, predicted)  {stack, where, published, predicted, true},
#define CHECKED(stack, where, published, predicted) {stack, where, published, predicted, false},
#include "engine/scenario/stack_points.inc"
};

enum { N_POINTS = sizeof(points) / sizeof(points[0]), LEAST_OF_BAND = 3 };

const struct psd_stack_point *psd_stack_point(const struct psd_stack_row *stack, unsigned i)
{
	for (unsigned p = 0; p < N_POINTS; p++)
		if (!strcmp(points[p].stack, stack->name) && i-- == 0)
			return &points[p];
	return NULL;
}

/* Quantile of n sorted values, between neighbours in proportion. */
static double quantile(const double sorted[], unsigned n, double ratio)
{
	const double at = ratio * (n - 1);
	const unsigned below = (unsigned)at;

	return below + 1 < n ? sorted[below] + (at - below) * (sorted[below + 1] - sorted[below]) : sorted[n - 1];
}

struct psd_stack_record psd_stack_record(const struct psd_stack_row *stack)
{
	struct psd_stack_record record = {.n_checked = 0};
	double ratios[N_POINTS], errors[N_POINTS];
	const struct psd_stack_point *point;

	for (unsigned i = 0; (point = psd_stack_point(stack, i)); i++) {
		if (point->is_fitted) {
			record.n_fitted++;
			continue;
		}
		ratios[record.n_checked] = point->published / point->predicted;
		errors[record.n_checked++] = fabs(point->predicted / point->published - 1.0);
	}
	if (record.n_checked == 0)
		return record;
	psd_sort_doubles(ratios, record.n_checked);
	psd_sort_doubles(errors, record.n_checked);
	record.median_ratio = quantile(errors, record.n_checked, 0.5);
	record.worst_ratio = errors[record.n_checked - 1];
	record.has_band = record.n_checked >= LEAST_OF_BAND;
	record.low_ratio = quantile(ratios, record.n_checked, 0.1);
	record.high_ratio = quantile(ratios, record.n_checked, 0.9);
	return record;
}

/* ---- texts ---- */

static void add_record(struct psd_text *text, const struct psd_stack_row *stack)
{
	const struct psd_stack_record record = psd_stack_record(stack);

	if (stack->runs)
		psd_text_add(text, "%s", stack->runs);
	else if (record.n_checked == 0)
		psd_text_add(text, "no published value to compare with%s", record.n_fitted ? " but fitted ones" : "");
	else
		psd_text_add(text, "%u published value%s not fitted: median error %.1f %%, worst %.1f %%",
			     record.n_checked, psd_text_plural(record.n_checked), 100.0 * record.median_ratio,
			     100.0 * record.worst_ratio);
}

void psd_stack_add_line(struct psd_text *text, const struct psd_stack_row *stack)
{
	psd_text_add(text, "%s: %s; ", stack->name, stack->about);
	add_record(text, stack);
}

void psd_stack_add_list(struct psd_text *text)
{
	for (unsigned i = 0; i < N_STACKS; i++) {
		psd_stack_add_line(text, &stacks[i]);
		psd_text_add(text, "\n");
	}
}

static void add_constants(struct psd_text *text, const struct psd_stack_row *stack)
{
	const struct psd_key *key;

	psd_text_add(text, "\nhost:\n");
	for (unsigned i = 0; (key = psd_section_key(&psd_scenario_host, i)); i++) {
		if (!psd_schema_is_changed(&stack->host, &psd_scenario_host, key))
			continue;
		psd_text_add(text, "  %s: ", key->name);
		psd_schema_add_value(text, &stack->host, key);
		psd_text_add(text, "\n");
	}
	if (!stack->frees_device)
		psd_text_add(text, "  convert, update%s, tensor: from the device's memory and launches\n",
			     stack->is_on_device ? ", reduce" : "");
}

static void add_points(struct psd_text *text, const struct psd_stack_row *stack)
{
	const struct psd_stack_record record = psd_stack_record(stack);
	const struct psd_stack_point *point;

	psd_text_add(text, "\n");
	add_record(text, stack);
	psd_text_add(text, "\n");
	if (record.has_band)
		psd_text_add(text, "band: %.3g to %.3g of the prediction holds 8 of 10 of these values\n",
			     record.low_ratio, record.high_ratio);
	else
		psd_text_add(text, "no band: fewer than %d of them\n", LEAST_OF_BAND);
	for (unsigned i = 0; (point = psd_stack_point(stack, i)); i++)
		psd_text_add(text, "  %-52s published %8.6g  predicted %8.6g  %+6.1f %%%s\n", point->where,
			     point->published, point->predicted, 100.0 * (point->predicted / point->published - 1.0),
			     point->is_fitted ? "  fitted" : "");
}

void psd_stack_add_details(struct psd_text *text, const struct psd_stack_row *stack)
{
	psd_text_add(text, "%s: %s\nsource: %s\n", stack->name, stack->about, stack->source);
	add_constants(text, stack);
	add_points(text, stack);
}
