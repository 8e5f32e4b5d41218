/* Seconds of transfers that were computed before, for one layout and one system's rates: most tensors of a network make
 * equal transfers, whose steps are timed once. From one thread at a time. */
#ifndef PSD_PRICES_H
#define PSD_PRICES_H

#include "engine/base/error.h"
#include "engine/cost/cost.h"

struct psd_price {
	struct psd_payload payload;
	double transfer_sec; /* seconds of the transfer, psd_cost_transfer_sec() */
	double delay_sec;    /* further seconds of a stepwise transfer; 0 for others */
	uint64_t node_bytes; /* bytes of the busiest node; set by psd_price_node_bytes() */
	bool has_node_bytes;
};

struct psd_prices { /* cache of prices, initialised by zeros */
	struct psd_price *all;
	uint32_t n, room;
};

/* Returns the payload's price, computed once; borrowed until the next call. NULL: out of memory. */
struct psd_price *psd_prices_of(struct psd_prices *prices, const struct psd_payload *payload,
				const struct psd_layout *layout, const struct psd_rates *rates) PSD_MUST_CHECK;
/* Returns the bytes that the busiest node sends and receives for the payload. */
uint64_t psd_price_node_bytes(struct psd_price *price, const struct psd_layout *layout);
void psd_prices_release(struct psd_prices *prices);

#endif
