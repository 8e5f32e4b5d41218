#include "real/net/delay.h"

#include <assert.h>
#include <stdlib.h>

enum { FIRST_ROOM = 64 };

void psd_delay_release(struct psd_delay *delay)
{
	free(delay->arrivals);
	*delay = (struct psd_delay){.n = 0};
}

static struct psd_arrival *place(const struct psd_delay *delay, unsigned at)
{
	return &delay->arrivals[(delay->first + at) % delay->room];
}

static bool grow(struct psd_delay *delay)
{
	const unsigned room = delay->room ? 2 * delay->room : FIRST_ROOM;
	struct psd_arrival *grown = calloc(room, sizeof(*grown));

	if (!grown)
		return false;
	for (unsigned i = 0; i < delay->n; i++)
		grown[i] = *place(delay, i);
	free(delay->arrivals);
	delay->arrivals = grown;
	delay->room = room;
	delay->first = 0;
	return true;
}

bool psd_delay_add(struct psd_delay *delay, const struct psd_arrival *arrival)
{
	unsigned at;

	if (delay->n == delay->room && !grow(delay))
		return false;
	for (at = delay->n++; at > 0 && place(delay, at - 1)->due_sec > arrival->due_sec; at--)
		*place(delay, at) = *place(delay, at - 1);
	*place(delay, at) = *arrival;
	return true;
}

const struct psd_arrival *psd_delay_first(const struct psd_delay *delay)
{
	return delay->n > 0 ? place(delay, 0) : NULL;
}

void psd_delay_drop_first(struct psd_delay *delay)
{
	assert(delay->n > 0);
	delay->first = (delay->first + 1) % delay->room;
	delay->n--;
}
