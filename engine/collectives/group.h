/* A regular group of hosts, that carries out a collective together. Pure functions, any thread. */
#ifndef PSD_GROUP_H
#define PSD_GROUP_H

#include <stdbool.h>

/* Rank i is host first + i * stride, i < n. */
struct psd_group {
	unsigned first;
	unsigned stride; /* >= 1 */
	unsigned n;
};

static inline unsigned psd_group_host(struct psd_group group, unsigned rank)
{
	return group.first + rank * group.stride;
}

/* Of a host that the group has. */
static inline unsigned psd_group_rank(struct psd_group group, unsigned host)
{
	return (host - group.first) / group.stride;
}

bool psd_group_has(struct psd_group group, unsigned host);
bool psd_group_equals(struct psd_group a, struct psd_group b);
/* Whether there is a host in both. */
bool psd_group_shares_host(struct psd_group a, struct psd_group b);

#endif
