/* Arrivals, told of only when a cluster's links would have brought what this machine's did. Reads no clock. */
#ifndef PSD_REAL_DELAY_H
#define PSD_REAL_DELAY_H

#include <stdbool.h>

#include "real/net/wire.h"

struct psd_arrival {
	double due_sec;
	unsigned peer;
	struct psd_wire_head head;
};

/* Fields are private to delay.c; all zeros is empty. */
struct psd_delay {
	struct psd_arrival *arrivals; /* a ring, in the order in which they are due */
	unsigned room, first, n;
};

void psd_delay_release(struct psd_delay *delay);
/* Of two that are due at a time the first added comes first. Cheap where due times hardly fall. False: no memory. */
bool psd_delay_add(struct psd_delay *delay, const struct psd_arrival *arrival);
/* The one that is due first; NULL: none. Borrowed until the next call. */
const struct psd_arrival *psd_delay_first(const struct psd_delay *delay);
void psd_delay_drop_first(struct psd_delay *delay);

#endif
