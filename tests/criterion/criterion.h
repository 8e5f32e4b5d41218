/* Criterion's macros with a short form of their assertions: compiling tests takes a third less processor time. Tests
 * find this header in place of the library's. */
#ifndef PSD_TESTS_CRITERION_H
#define PSD_TESTS_CRITERION_H

#pragma GCC system_header

#include_next <criterion/criterion.h>

/* Reports a failed assertion (runner.c). expected: its text, which is freed. format: "x", followed by the format of a
 * message that replaces this text, if there is one. */
CR_FORMAT(printf, 4, 5)
CR_BEGIN_C_API
void psd_tests_report(const char *file, int line, char *expected, const char *format, ...);
CR_END_C_API

/* The first argument and the others, without Criterion's count of up to 64. */
#undef CR_VA_HEAD
#undef CR_VA_TAIL
#define CR_VA_HEAD(...)	       CR_VA_HEAD_(__VA_ARGS__, )
#define CR_VA_HEAD_(head, ...) head
#define CR_VA_TAIL(...)	       CR_VA_TAIL_(__VA_ARGS__)
#define CR_VA_TAIL_(head, ...) __VA_ARGS__

#ifndef cr_assert_impl
#error "Criterion's assertions have another form here, which this runner would not notice"
#endif
#undef cr_assert_impl
#define cr_assert_impl(Fail, Condition, ...)                                                                           \
	do {                                                                                                           \
		if (!(Condition)) {                                                                                    \
			psd_tests_report(__FILE__, __LINE__,                                                           \
					 CR_EXPAND(CR_TRANSLATE_DEF_MSG_(CR_VA_TAIL(__VA_ARGS__))),                    \
					 "x" CR_VA_TAIL(CR_VA_TAIL(CR_VA_TAIL(__VA_ARGS__))));                         \
			Fail();                                                                                        \
		}                                                                                                      \
	} while (0)

#endif
