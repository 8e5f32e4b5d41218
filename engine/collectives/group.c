#include "engine/collectives/group.h"

bool psd_group_has(struct psd_group group, unsigned host)
{
	return host >= group.first && (host - group.first) % group.stride == 0 && psd_group_rank(group, host) < group.n;
}

bool psd_group_equals(struct psd_group a, struct psd_group b)
{
	return a.first == b.first && a.stride == b.stride && a.n == b.n;
}

bool psd_group_shares_host(struct psd_group a, struct psd_group b)
{
	if (psd_group_equals(a, b))
		return a.n > 0;
	for (unsigned rank = 0; rank < a.n; rank++)
		if (psd_group_has(b, psd_group_host(a, rank)))
			return true;
	return false;
}
