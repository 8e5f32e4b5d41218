/* Processors that this process may use, and the share of one of its hosts. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>

#include "real/base/affinity.h"

/* In the test's own words: machines where it runs have no more than a set of the C library holds. */
static unsigned count_allowed(void)
{
	cpu_set_t allowed;

	cr_assert_eq(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	return (unsigned)CPU_COUNT(&allowed);
}

Test(affinity, counts_and_flags_agree_with_the_kernel)
{
	unsigned n_numbers, n_flags = 0;
	bool *is_allowed = psd_affinity_allowed(&n_numbers);

	cr_assert_not_null(is_allowed);
	for (unsigned cpu = 0; cpu < n_numbers; cpu++)
		n_flags += is_allowed[cpu];
	cr_expect_eq(n_flags, count_allowed());
	cr_expect_eq(psd_affinity_count(), count_allowed());
	free(is_allowed);
}

Test(affinity, hosts_as_many_as_processors_have_one_each)
{
	const unsigned n_allowed = count_allowed();

	cr_assert(psd_affinity_pin(n_allowed - 1, n_allowed));
	cr_expect_eq(psd_affinity_count(), 1);
	cr_expect_not(psd_affinity_pin(0, 2), "more hosts than processors are not pinned");
	cr_expect_eq(psd_affinity_count(), 1);
}
