/* Cache of transfer times, for one layout and the rates of one system. Most tensors of a network make equal transfers,
 * whose times are then computed once. Loads of links stay in it when rates change. Only one thread at a time may use a
 * cache. */
#ifndef PSD_PRICES_H
#define PSD_PRICES_H

#include "engine/base/error.h"
#include "engine/cost/cost.h"

struct psd_price {
	struct psd_payload payload;
	struct psd_loads loads;
	bool has_sec;	     /* transfer_sec and delay_sec are those of the present rates */
	double transfer_sec; /* seconds of the bytes, psd_cost_loads_sec() */
	/* seconds in addition to transfer_sec, from psd_cost_delay_sec(); 0 unless the transfer is stepwise */
	double delay_sec;
	uint64_t node_bytes; /* bytes sent plus received by the busiest node; valid if has_node_bytes */
	bool has_node_bytes;
};

struct psd_prices { /* cache of prices, initialised by zeros */
	struct psd_price *all;
	uint32_t n, room;
};

/* Returns the entry of the payload, and computes it if it is new. The pointer is valid until the next call. NULL: out
 * of memory. */
struct psd_price *psd_prices_of(struct psd_prices *prices, const struct psd_payload *payload,
				const struct psd_layout *layout, const struct psd_rates *rates) PSD_MUST_CHECK;
/* Forgets the seconds of all entries, because rates have changed. The next call of psd_prices_of() has the new ones. */
void psd_prices_forget_sec(struct psd_prices *prices);
/* Returns the bytes of the payload that the busiest node sends plus receives. They are computed at the first call. */
uint64_t psd_price_node_bytes(struct psd_price *price, const struct psd_layout *layout);
void psd_prices_release(struct psd_prices *prices);

#endif
