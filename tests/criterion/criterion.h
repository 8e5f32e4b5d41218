/* The part of Criterion's interface that the tests use, in place of its own headers, by which each assertion becomes
 * many times the code. tests/runner.c runs the cases. Refuses fixtures, parameters, expected signals and expected
 * statuses. */
#ifndef PSD_TESTS_CRITERION_H
#define PSD_TESTS_CRITERION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As in a header of the system: no warnings of what macros become, or of a message that is not there. */
#pragma GCC system_header

struct psd_test {
	const char *suite;
	const char *name;  /* "SUITE/CASE"; NULL: the suite's own limit */
	void (*run)(void); /* NULL as `name` */
	unsigned timeout;  /* in seconds; 0: the suite's, or the runner's */
};

#define PSD_TEST_ENTRY(test)                                                                                           \
	static const struct psd_test *const test##_entry __attribute__((used, section("psd_tests"))) = &test

/* Symbols of two cases of one name cannot be linked. */
#define Test(suite_, case_, ...)                                                                                       \
	static void suite_##_##case_##_run(void);                                                                      \
	const struct psd_test suite_##_##case_##_test = {                                                              \
		.suite = #suite_, .name = #suite_ "/" #case_, .run = suite_##_##case_##_run, __VA_ARGS__};             \
	PSD_TEST_ENTRY(suite_##_##case_##_test);                                                                       \
	static void suite_##_##case_##_run(void)

#define TestSuite(suite_, ...)                                                                                         \
	const struct psd_test suite_##_suite = {.suite = #suite_, __VA_ARGS__};                                        \
	PSD_TEST_ENTRY(suite_##_suite)

#define PSD_TEST_PRINTS(at) __attribute__((format(printf, at, at + 1)))

/* A failed expectation, with TEXT and a message of the test, which begins with a space. The test goes on. */
void psd_test_fail(const char *file, int line, const char *text, const char *format, ...) PSD_TEST_PRINTS(4);

/* The same, and ends the test. */
_Noreturn void psd_test_stop(const char *file, int line, const char *text, const char *format, ...) PSD_TEST_PRINTS(4);

_Noreturn void psd_test_skip(const char *format, ...) PSD_TEST_PRINTS(1);

#define cr_skip_test(...) psd_test_skip(__VA_ARGS__)
#define cr_log_info(...)  ((void)printf(__VA_ARGS__), (void)putchar('\n'))

#define PSD_TEST_CHECK(fail, is_true, text, ...)                                                                       \
	do {                                                                                                           \
		if (!(is_true))                                                                                        \
			fail(__FILE__, __LINE__, text, " " __VA_ARGS__);                                               \
	} while (0)
#define PSD_TEST_COMPARE(fail, a, op, b, ...) PSD_TEST_CHECK(fail, (a)op(b), #a " " #op " " #b, __VA_ARGS__)
#define PSD_TEST_STRINGS(fail, a, op, b, ...) PSD_TEST_CHECK(fail, strcmp(a, b) op 0, #a " " #op " " #b, __VA_ARGS__)
#define PSD_TEST_BYTES(fail, a, op, b, bytes, ...)                                                                     \
	PSD_TEST_CHECK(fail, memcmp(a, b, bytes) op 0, #a " " #op " " #b, __VA_ARGS__)
#define PSD_TEST_NEAR(fail, a, b, epsilon, ...)                                                                        \
	PSD_TEST_CHECK(fail, (b) - (a) <= (epsilon) && (a) - (b) <= (epsilon), #a " near " #b, __VA_ARGS__)

#define cr_assert(is_true, ...)		       PSD_TEST_CHECK(psd_test_stop, is_true, #is_true, __VA_ARGS__)
#define cr_assert_not(is_true, ...)	       PSD_TEST_CHECK(psd_test_stop, !(is_true), "not " #is_true, __VA_ARGS__)
#define cr_assert_eq(a, b, ...)		       PSD_TEST_COMPARE(psd_test_stop, a, ==, b, __VA_ARGS__)
#define cr_assert_neq(a, b, ...)	       PSD_TEST_COMPARE(psd_test_stop, a, !=, b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...)		       PSD_TEST_COMPARE(psd_test_stop, a, <, b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...)	       PSD_TEST_COMPARE(psd_test_stop, a, <=, b, __VA_ARGS__)
#define cr_assert_gt(a, b, ...)		       PSD_TEST_COMPARE(psd_test_stop, a, >, b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...)	       PSD_TEST_COMPARE(psd_test_stop, a, >=, b, __VA_ARGS__)
#define cr_assert_null(a, ...)		       PSD_TEST_COMPARE(psd_test_stop, a, ==, NULL, __VA_ARGS__)
#define cr_assert_not_null(a, ...)	       PSD_TEST_COMPARE(psd_test_stop, a, !=, NULL, __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...)	       PSD_TEST_STRINGS(psd_test_stop, a, ==, b, __VA_ARGS__)
#define cr_assert_str_neq(a, b, ...)	       PSD_TEST_STRINGS(psd_test_stop, a, !=, b, __VA_ARGS__)
#define cr_assert_str_empty(a, ...)	       PSD_TEST_STRINGS(psd_test_stop, a, ==, "", __VA_ARGS__)
#define cr_assert_arr_eq(a, b, bytes, ...)     PSD_TEST_BYTES(psd_test_stop, a, ==, b, bytes, __VA_ARGS__)
#define cr_assert_arr_neq(a, b, bytes, ...)    PSD_TEST_BYTES(psd_test_stop, a, !=, b, bytes, __VA_ARGS__)
#define cr_assert_float_eq(a, b, epsilon, ...) PSD_TEST_NEAR(psd_test_stop, a, b, epsilon, __VA_ARGS__)
#define cr_assert_fail(...)		       PSD_TEST_CHECK(psd_test_stop, false, "fail", __VA_ARGS__)

#define cr_expect(is_true, ...)		       PSD_TEST_CHECK(psd_test_fail, is_true, #is_true, __VA_ARGS__)
#define cr_expect_not(is_true, ...)	       PSD_TEST_CHECK(psd_test_fail, !(is_true), "not " #is_true, __VA_ARGS__)
#define cr_expect_eq(a, b, ...)		       PSD_TEST_COMPARE(psd_test_fail, a, ==, b, __VA_ARGS__)
#define cr_expect_neq(a, b, ...)	       PSD_TEST_COMPARE(psd_test_fail, a, !=, b, __VA_ARGS__)
#define cr_expect_lt(a, b, ...)		       PSD_TEST_COMPARE(psd_test_fail, a, <, b, __VA_ARGS__)
#define cr_expect_leq(a, b, ...)	       PSD_TEST_COMPARE(psd_test_fail, a, <=, b, __VA_ARGS__)
#define cr_expect_gt(a, b, ...)		       PSD_TEST_COMPARE(psd_test_fail, a, >, b, __VA_ARGS__)
#define cr_expect_geq(a, b, ...)	       PSD_TEST_COMPARE(psd_test_fail, a, >=, b, __VA_ARGS__)
#define cr_expect_null(a, ...)		       PSD_TEST_COMPARE(psd_test_fail, a, ==, NULL, __VA_ARGS__)
#define cr_expect_not_null(a, ...)	       PSD_TEST_COMPARE(psd_test_fail, a, !=, NULL, __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...)	       PSD_TEST_STRINGS(psd_test_fail, a, ==, b, __VA_ARGS__)
#define cr_expect_str_neq(a, b, ...)	       PSD_TEST_STRINGS(psd_test_fail, a, !=, b, __VA_ARGS__)
#define cr_expect_str_empty(a, ...)	       PSD_TEST_STRINGS(psd_test_fail, a, ==, "", __VA_ARGS__)
#define cr_expect_arr_eq(a, b, bytes, ...)     PSD_TEST_BYTES(psd_test_fail, a, ==, b, bytes, __VA_ARGS__)
#define cr_expect_float_eq(a, b, epsilon, ...) PSD_TEST_NEAR(psd_test_fail, a, b, epsilon, __VA_ARGS__)
#define cr_expect_fail(...)		       PSD_TEST_CHECK(psd_test_fail, false, "fail", __VA_ARGS__)

#endif
