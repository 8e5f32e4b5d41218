#define _GNU_SOURCE
#include "real/affinity.h"

#include <sched.h>

bool psd_affinity_pin(unsigned host, unsigned n_hosts)
{
	cpu_set_t allowed, share;
	unsigned n_allowed, nth = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return false;
	n_allowed = (unsigned)CPU_COUNT(&allowed);
	if (n_hosts > n_allowed)
		return false;
	CPU_ZERO(&share);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		if (nth >= host * n_allowed / n_hosts && nth < (host + 1) * n_allowed / n_hosts)
			CPU_SET(cpu, &share);
		nth++;
	}
	return sched_setaffinity(0, sizeof(share), &share) == 0;
}
