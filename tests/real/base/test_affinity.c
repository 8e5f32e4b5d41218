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

/* The number of the nth processor that the calling thread may run on. */
static unsigned nth_allowed(unsigned nth)
{
	unsigned n_numbers, cpu = 0;
	bool *is_allowed = psd_affinity_allowed(&n_numbers);

	cr_assert_not_null(is_allowed);
	for (; cpu < n_numbers; cpu++)
		if (is_allowed[cpu] && nth-- == 0)
			break;
	free(is_allowed);
	return cpu;
}

Test(affinity, a_thread_takes_one_processor_counted_round)
{
	const unsigned n_allowed = count_allowed(), last = nth_allowed(n_allowed - 1);

	cr_expect_not(psd_affinity_pin_to(0, n_allowed), "others would have none");
	cr_expect_eq(psd_affinity_count(), n_allowed);
	cr_assert(psd_affinity_pin_to(3 * n_allowed - 1, n_allowed - 1));
	cr_expect_eq(psd_affinity_count(), 1);
	cr_expect_eq(nth_allowed(0), last);
}
