/* Processor time and memory of this machine. */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "real/base/machine.h"

Test(machine, a_signal_is_said_with_what_it_may_mean)
{
	struct rlimit limit;

	cr_expect(strstr(psd_machine_kill_hint(SIGKILL), "batch_per_worker"));
	cr_assert_eq(getrlimit(RLIMIT_AS, &limit), 0);
	limit.rlim_cur = RLIM_INFINITY;
	cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
	cr_expect_str_empty(psd_machine_kill_hint(SIGSEGV));
	limit.rlim_cur = (rlim_t)1 << 60; /* more than a sanitiser's */
	cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
	cr_expect(strstr(psd_machine_kill_hint(SIGSEGV), "ulimit -v"));
	cr_expect(strstr(psd_machine_kill_hint(SIGKILL), "batch_per_worker"));
}
