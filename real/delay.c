#include "real/delay.h"

#include <assert.h>
#include <stdlib.h>

enum { FIRST_ROOM = 64 };

void psd_delay_release(struct psd_delay *delay)
{
	free(delay->arrivals);
	*delay = (struct psd_delay){.n = 0};
}

static bool grow(struct psd_delay *delay)
{
	const unsigned room = delay->room ? 2 * delay->room : FIRST_ROOM;
	struct psd_arrival *grown = calloc(room, sizeof(*grown));

	if (!grown)
		return false;
	for (unsigned i = 0; i < delay->n; i++)
		grown[i] = delay->arrivals[(delay->first + i) % delay->room];
	free(delay->arrivals);
	delay->arrivals = grown;
	delay->room = room;
	delay->first = 0;
	return true;
}

bool psd_delay_add(struct psd_delay *delay, const struct psd_arrival *arrival)
{
	if (delay->n == delay->room && !grow(delay))
		return false;
	delay->arrivals[(delay->first + delay->n++) % delay->room] = *arrival;
	return true;
}

const struct psd_arrival *psd_delay_first(const struct psd_delay *delay)
{
	return delay->n > 0 ? &delay->arrivals[delay->first] : NULL;
}

void psd_delay_drop_first(struct psd_delay *delay)
{
	assert(delay->n > 0);
	delay->first = (delay->first + 1) % delay->room;
	delay->n--;
}
