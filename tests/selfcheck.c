/* One test that must fail, in a binary of its own: `make selfcheck` fails unless it does. Part of no other target. */
#include <criterion/criterion.h>

Test(selfcheck, two_and_two_make_five)
{
	cr_assert_eq(2 + 2, 5);
}
