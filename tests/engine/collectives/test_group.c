/* Groups against lists of their hosts. */
#include <criterion/criterion.h>

#include "engine/collectives/layout.h"

enum { HOSTS = 12 };

/* By the definition alone: host first + i * stride for some i < n. */
static bool lists(struct psd_group group, unsigned host)
{
	for (unsigned i = 0; i < group.n; i++)
		if (group.first + i * group.stride == host)
			return true;
	return false;
}

static struct psd_group any_group(unsigned number)
{
	return (struct psd_group){number % 4, 1 + number / 4 % 3, number / 12 % 5};
}

enum { N_GROUPS = 60 };

Test(group, has_the_hosts_of_its_ranks_and_no_others)
{
	for (unsigned g = 0; g < N_GROUPS; g++) {
		const struct psd_group group = any_group(g);

		for (unsigned host = 0; host < HOSTS + 4; host++)
			cr_expect_eq(psd_group_has(group, host), lists(group, host), "group %u, host %u", g, host);
		for (unsigned rank = 0; rank < group.n; rank++)
			cr_expect_eq(psd_group_rank(group, psd_group_host(group, rank)), rank);
	}
}

Test(group, shares_a_host_with_another_if_one_is_in_both)
{
	for (unsigned a = 0; a < N_GROUPS; a++)
		for (unsigned b = 0; b < N_GROUPS; b++) {
			bool is_shared = false;

			for (unsigned host = 0; host < HOSTS + 4; host++)
				is_shared = is_shared || (lists(any_group(a), host) && lists(any_group(b), host));
			cr_expect_eq(psd_group_shares_host(any_group(a), any_group(b)), is_shared, "groups %u and %u",
				     a, b);
		}
}
