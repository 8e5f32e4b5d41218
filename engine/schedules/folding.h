/* Exchanges in pairs among any number of members: of 2^k + r, the first 2r fold in pairs before, one of each pair
 * sitting out, and hear the sums after. Source: Thakur, Rabenseifner and Gropp 2005, section 4.5. Pure functions, any
 * thread. */
#ifndef PSD_FOLDING_H
#define PSD_FOLDING_H

#include "engine/schedules/pattern.h"

/* Of the places 0 to 2^k - 1, what one sends to another, and hears from it in the same step. */
struct psd_exchange {
	unsigned other;
	struct psd_range sent;
	bool adds;
};

/* The exchange of a place, number < n_exchanges. */
typedef struct psd_exchange (*psd_exchange_fn)(uint64_t elements, unsigned k, unsigned place, unsigned number);

/* k of a number of members. */
unsigned psd_folding_bits(struct psd_members members);
/* Steps, and a member's, as psd_pattern has them. */
unsigned psd_folding_steps(struct psd_members members, unsigned n_exchanges);
struct psd_step psd_folding_step(uint64_t elements, struct psd_members members, unsigned rank, unsigned number,
				 unsigned n_exchanges, psd_exchange_fn exchange);
/* psd_pattern.alone_sec of such a pattern. */
double psd_folding_alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			     const struct psd_ways *ways);

#endif
