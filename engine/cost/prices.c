/* A list that is searched from its end: equal tensors of a network are near each other. */
#include "engine/cost/prices.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/grow.h"

static bool are_equal(const struct psd_payload *a, const struct psd_payload *b)
{
	return a->collective == b->collective && a->elements == b->elements && a->value_bytes == b->value_bytes &&
	       a->root == b->root && psd_group_equals(a->group, b->group);
}

static struct psd_price price_of(const struct psd_payload *payload, const struct psd_layout *layout,
				 const struct psd_rates *rates)
{
	struct psd_price price = {.payload = *payload};

	if (!payload->collective->steps) {
		price.transfer_sec = psd_cost_transfer_sec(payload, layout, rates);
		return price;
	}
	psd_cost_collective(payload, layout, rates, &price.transfer_sec, &price.delay_sec);
	return price;
}

struct psd_price *psd_prices_of(struct psd_prices *prices, const struct psd_payload *payload,
				const struct psd_layout *layout, const struct psd_rates *rates)
{
	struct psd_price *grown;

	for (uint32_t i = prices->n; i-- > 0;)
		if (are_equal(&prices->all[i].payload, payload))
			return &prices->all[i];
	grown = psd_grown(prices->all, prices->n, &prices->room, sizeof(*grown));
	if (!grown)
		return NULL;
	prices->all = grown;
	grown += prices->n;
	*grown = price_of(payload, layout, rates);
	if (isnan(grown->delay_sec))
		return NULL;
	prices->n++;
	return grown;
}

uint64_t psd_price_node_bytes(struct psd_price *price, const struct psd_layout *layout)
{
	for (unsigned node = 0; node < psd_layout_nodes(layout) && !price->has_node_bytes; node++) {
		const struct psd_traffic traffic = psd_payload_node_traffic(&price->payload, layout, node);
		const uint64_t bytes = traffic.sent_bytes + traffic.received_bytes;

		price->node_bytes = bytes > price->node_bytes ? bytes : price->node_bytes;
	}
	price->has_node_bytes = true;
	return price->node_bytes;
}

void psd_prices_release(struct psd_prices *prices)
{
	free(prices->all);
	*prices = (struct psd_prices){.all = NULL};
}
