/* Queue of arrivals that are delivered later, when the emulated links would have brought them. Reads no clock. */
#ifndef PSD_REAL_DELAY_H
#define PSD_REAL_DELAY_H

#include <stdbool.h>

#include "real/net/wire.h"

struct psd_arrival {
	double due_sec;
	unsigned peer;
	struct psd_wire_head head;
};

/* Fields are private to delay.c; zeros: empty. */
struct psd_delay {
	struct psd_arrival *arrivals; /* ring, ordered by due_sec */
	unsigned room, first, n;
};

void psd_delay_release(struct psd_delay *delay);
/* Adds an arrival; among equal times the first one added comes first. Fast if times mostly grow. Returns false when
 * memory runs out. */
bool psd_delay_add(struct psd_delay *delay, const struct psd_arrival *arrival);
/* Earliest arrival, or NULL; borrowed until the next call. */
const struct psd_arrival *psd_delay_first(const struct psd_delay *delay);
void psd_delay_drop_first(struct psd_delay *delay);

#endif
