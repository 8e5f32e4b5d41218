/* Two tests that must fail, in a binary of their own: `make selfcheck` fails unless they do. In no other target. */
#include <criterion/criterion.h>
#include <unistd.h>

Test(selfcheck, two_and_two_make_five)
{
	cr_assert_eq(2 + 2, 5);
}

Test(selfcheck, this_has_no_end, .timeout = 1)
{
	for (;;)
		pause();
}
