/* A list that is searched from its end: equal tensors of a network are near each other. */
#include "engine/cost/prices.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/grow.h"

static bool are_equal(const struct psd_payload *a, const struct psd_payload *b)
{
	return a->collective == b->collective && a->elements == b->elements && a->value_bytes == b->value_bytes &&
	       a->root == b->root && a->peers == b->peers && psd_group_equals(a->group, b->group);
}

/* Returns false when memory runs out. */
static bool fill_sec(struct psd_price *price, const struct psd_layout *layout, const struct psd_rates *rates)
{
	const struct psd_payload *payload = &price->payload;

	price->transfer_sec = psd_cost_loads_sec(&price->loads, layout, rates);
	price->delay_sec = payload->collective->steps ? psd_cost_delay_sec(payload, &price->loads, layout, rates) : 0.0;
	price->has_sec = !isnan(price->delay_sec);
	return price->has_sec;
}

struct psd_price *psd_prices_of(struct psd_prices *prices, const struct psd_payload *payload,
				const struct psd_layout *layout, const struct psd_rates *rates)
{
	struct psd_price *grown;

	for (uint32_t i = prices->n; i-- > 0;)
		if (are_equal(&prices->all[i].payload, payload))
			return prices->all[i].has_sec || fill_sec(&prices->all[i], layout, rates) ? &prices->all[i]
												  : NULL;
	grown = psd_grown(prices->all, prices->n, &prices->room, sizeof(*grown));
	if (!grown)
		return NULL;
	prices->all = grown;
	grown += prices->n;
	*grown = (struct psd_price){.payload = *payload,
				    .loads = psd_cost_loads(payload, layout, isfinite(rates->local_bps))};
	if (!fill_sec(grown, layout, rates))
		return NULL;
	prices->n++;
	return grown;
}

void psd_prices_forget_sec(struct psd_prices *prices)
{
	for (uint32_t i = 0; i < prices->n; i++)
		prices->all[i].has_sec = false;
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
