/* What transfers have been found to take, of one layout at one system's rates: of equal ones, which most tensors of a
 * network make, the steps are walked once. Not for several threads at a time. */
#ifndef PSD_PRICES_H
#define PSD_PRICES_H

#include "engine/base/error.h"
#include "engine/cost/cost.h"

struct psd_price {
	struct psd_payload payload;
	double transfer_sec; /* psd_cost_transfer_sec() */
	double delay_sec;    /* beyond it step by step, else 0 */
	uint64_t node_bytes; /* psd_price_node_bytes() says it, if it has been asked before */
	bool has_node_bytes;
};

/* Begins as zeros. */
struct psd_prices {
	struct psd_price *all;
	uint32_t n, room;
};

/* Borrowed until the next call; NULL: out of memory. */
struct psd_price *psd_prices_of(struct psd_prices *prices, const struct psd_payload *payload,
				const struct psd_layout *layout, const struct psd_rates *rates) PSD_MUST_CHECK;
/* Sent plus received by the node that moves most. */
uint64_t psd_price_node_bytes(struct psd_price *price, const struct psd_layout *layout);
void psd_prices_release(struct psd_prices *prices);

#endif
