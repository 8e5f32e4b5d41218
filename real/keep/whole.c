/* One mapping: items one after another, each without gaps. */
#define _GNU_SOURCE
#include "real/keep/whole.h"

#include <string.h>
#include <sys/mman.h>

static uint64_t elements_before(const struct psd_plan *plan, unsigned item)
{
	uint64_t elements = 0;

	for (unsigned i = 0; i < item; i++)
		elements += plan->items[i].n_tensors > 0 ? plan->items[i].subject.elements : 0;
	return elements;
}

bool psd_host_keeps_parts(const struct psd_host *host)
{
	return host->plan->n_items > 0 && psd_plan_keeps(host->plan, &host->plan->items[0], PSD_BUFFER_OWN);
}

enum psd_status psd_host_fetch_own(struct psd_host *host, struct psd_error *err)
{
	return host->on_device == &host->memory ? PSD_OK : psd_host_fetch_parameters(host, err);
}

struct psd_range psd_whole_sent(const struct psd_host *host, unsigned item, unsigned from)
{
	const struct psd_plan_item *of = &host->plan->items[item];

	return psd_plan_keeps(host->plan, of, PSD_BUFFER_OWN) &&
			       psd_layout_is_first_with_part(host->layout, of->method->updates, from)
		       ? psd_plan_updated(host->plan, of, from)
		       : (struct psd_range){0, 0};
}

enum psd_status psd_whole_open(struct psd_host *host, struct psd_error *err)
{
	const struct psd_plan *plan = host->plan;
	const uint64_t bytes = elements_before(plan, plan->n_items) * sizeof(float);
	void *values = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (values == MAP_FAILED)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for the parameters of all workers");
	host->whole = (struct psd_whole){values, bytes};
	for (unsigned i = 0; i < plan->n_items; i++) {
		const struct psd_range sent = psd_whole_sent(host, i, host->self);

		if (sent.elements > 0)
			memcpy(psd_whole_at(host, i, sent), psd_memory_kept(&host->memory, PSD_BUFFER_OWN, i, 0),
			       sent.elements * sizeof(float));
	}
	return PSD_OK;
}

void psd_whole_close(struct psd_host *host)
{
	if (host->whole.values)
		munmap(host->whole.values, host->whole.bytes);
	host->whole = (struct psd_whole){.values = NULL};
}

float *psd_whole_at(const struct psd_host *host, unsigned item, struct psd_range range)
{
	return host->whole.values + elements_before(host->plan, item) + range.first;
}

const float *psd_whole_tensor(const struct psd_host *host, unsigned tensor)
{
	const struct psd_plan *plan = host->plan;

	for (unsigned i = 0; host->whole.values && i < plan->n_items; i++) {
		uint64_t first = 0;

		for (unsigned n = 0; n < plan->items[i].n_tensors; n++) {
			const unsigned t = psd_plan_tensor(plan, &plan->items[i], n);

			if (t == tensor)
				return psd_whole_at(host, i, (struct psd_range){first, 0});
			first += plan->graph->tensors[t].elements;
		}
	}
	return NULL;
}

static enum psd_status use_tensor(struct psd_host *host, unsigned tensor, const float *values, struct psd_error *err)
{
	const uint64_t bytes = host->graph->tensors[tensor].elements * sizeof(*values);
	float *to = host->on_device->parameters[tensor];

	if (host->on_device != &host->memory)
		return host->kind->copy(host->device, PSD_STREAM_COMPUTE, to, values, bytes, err);
	memcpy(to, values, bytes);
	return PSD_OK;
}

/* The tensors of a layer are in one item, which is written when its lowest layer is reached. */
enum psd_status psd_whole_use(struct psd_host *host, struct psd_layers layers, struct psd_error *err)
{
	const struct psd_plan *plan = host->plan;

	for (unsigned i = psd_plan_buckets(plan); i-- > 0;) {
		const struct psd_plan_item *item = &plan->items[i];
		const float *values = psd_whole_at(host, i, (struct psd_range){0, 0});

		if (item->layer < layers.first || item->layer >= layers.end)
			continue;
		for (unsigned n = 0; n < item->n_tensors; n++) {
			const unsigned t = psd_plan_tensor(plan, item, n);

			PSD_TRY(use_tensor(host, t, values, err));
			values += plan->graph->tensors[t].elements;
		}
	}
	return PSD_OK;
}
