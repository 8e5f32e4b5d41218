#include "engine/program/view.h"

enum psd_owner psd_buffer_owner(const struct psd_plan_item *item, enum psd_buffer buffer)
{
	return psd_buffers[buffer].is_of_updates ? item->method->updates : psd_buffers[buffer].owner;
}

struct psd_range psd_plan_owned(const struct psd_plan *plan, const struct psd_plan_item *item, unsigned slice,
				enum psd_owner owner, unsigned host)
{
	const struct psd_range whole = psd_plan_slice(item, slice);
	const struct psd_range owned = psd_layout_owned(&plan->layout, owner, item->root, whole.elements, host);

	return (struct psd_range){whole.first + owned.first, owned.elements};
}

struct psd_range psd_plan_owned_blocks(const struct psd_plan *plan, const struct psd_plan_item *item,
				       enum psd_owner owner, unsigned host)
{
	return psd_layout_owned(&plan->layout, owner, item->root, item->n_blocks, host);
}

struct psd_range psd_plan_updated(const struct psd_plan *plan, const struct psd_plan_item *item, unsigned host)
{
	return psd_layout_owned(&plan->layout, item->method->updates, item->root, item->subject.elements, host);
}

static uint64_t owned_elements(const struct psd_plan *plan, const struct psd_plan_item *item, enum psd_owner owner,
			       unsigned host)
{
	uint64_t elements = 0;

	for (unsigned s = 0; s < item->n_slices; s++)
		elements += psd_plan_owned(plan, item, s, owner, host).elements;
	return elements;
}

uint64_t psd_plan_values(const struct psd_plan *plan, const struct psd_plan_item *item, enum psd_buffer buffer,
			 unsigned host)
{
	const struct psd_subject *subject = &item->subject;
	const enum psd_owner owner = psd_buffer_owner(item, buffer);

	switch (psd_buffers[buffer].content) {
	case PSD_CONTENT_ELEMENTS: return owned_elements(plan, item, owner, host);
	case PSD_CONTENT_BLOCKS: return psd_plan_owned_blocks(plan, item, owner, host).elements;
	case PSD_CONTENT_BLOCK_ELEMENTS:
		return psd_plan_owned_blocks(plan, item, owner, host).elements * plan->block.elements;
	case PSD_CONTENT_LEFT: return item->left;
	case PSD_CONTENT_RIGHT: return item->right;
	case PSD_CONTENT_FACTORS: return psd_subject_factors(subject);
	}
	return 0;
}

unsigned psd_plan_times(const struct psd_plan *plan, const struct psd_plan_item *item, enum psd_buffer buffer,
			unsigned host)
{
	switch (psd_buffers[buffer].times) {
	case PSD_TIMES_ONCE: break;
	case PSD_TIMES_SENDERS:
		if (psd_buffers[buffer].content == PSD_CONTENT_FACTORS)
			return item->method->is_partial ? plan->peers + 1 : plan->layout.workers;
		return item->method->joins_nodes ? plan->layout.nodes : plan->layout.workers;
	case PSD_TIMES_MEMBERS: return psd_layout_n_led(&plan->layout, host);
	}
	return 1;
}

bool psd_plan_has_factors(const struct psd_plan *plan, const struct psd_plan_item *item, uint32_t iteration,
			  unsigned host, unsigned sender)
{
	const struct psd_payload payload = {.collective = &psd_partial_broadcast,
					    .elements = 1,
					    .peers = plan->peers,
					    .round = iteration + UINT64_C(1)};

	return !item->method->is_partial || sender == host ||
	       psd_payload_range(&payload, &plan->layout, sender, host).elements > 0;
}

unsigned psd_plan_factors_before(const struct psd_plan *plan, const struct psd_plan_item *item, uint32_t iteration,
				 unsigned host, unsigned sender)
{
	unsigned n = 0;

	if (!item->method->is_partial)
		return sender;
	for (unsigned s = 0; s < sender; s++)
		n += psd_plan_has_factors(plan, item, iteration, host, s);
	return n;
}

struct psd_range psd_view_range(const struct psd_plan *plan, const struct psd_plan_item *item, unsigned slice,
				struct psd_view view, unsigned host)
{
	const enum psd_owner owner = view.owner == PSD_OWNER_ALL ? psd_buffer_owner(item, view.buffer) : view.owner;

	if (psd_buffers[view.buffer].content != PSD_CONTENT_ELEMENTS)
		return (struct psd_range){0, psd_plan_values(plan, item, view.buffer, host)};
	const struct psd_range owned = psd_plan_owned(plan, item, slice, owner, host);
	return (struct psd_range){owned.first - psd_plan_slice(item, slice).first, owned.elements};
}

struct psd_piece psd_plan_piece(const struct psd_plan *plan, const struct psd_plan_item *item, struct psd_range range,
				unsigned n)
{
	const uint64_t end = range.first + range.elements;
	uint64_t first = 0;

	for (unsigned i = 0; i < n; i++)
		first += plan->graph->tensors[psd_plan_tensor(plan, item, i)].elements;
	const uint64_t last = first + plan->graph->tensors[psd_plan_tensor(plan, item, n)].elements;
	const uint64_t from = range.first > first ? range.first : first, until = end < last ? end : last;

	return (struct psd_piece){from < until ? from - first : 0, from < until ? until - from : 0};
}
