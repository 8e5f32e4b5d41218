/* Limit of each Criterion case: PSD_TEST_SECONDS in the environment, none without it. Criterion 2.4 takes --timeout and
 * does nothing with it. A case that takes longer ends by SIGALRM, which Criterion reports under the case's name. */
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void limit(void)
{
	const char *seconds = getenv("PSD_TEST_SECONDS");

	/* Criterion runs each case in a process of the same program, which boxfort marks so. */
	if (seconds && getenv("BXFI_MAP"))
		alarm((unsigned)strtoul(seconds, NULL, 10));
}
