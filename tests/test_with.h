/* Forms of tests: one that begins by making a thing and ends by releasing it, and rows of a table. */
#ifndef PSD_TESTS_TEST_WITH_H
#define PSD_TESTS_TEST_WITH_H

#include <criterion/criterion.h>

/* A test of one call: a row of a table, each of which can be run alone. */
#define TEST_ROW(suite, claim, ...)                                                                                    \
	Test(suite, claim)                                                                                             \
	{                                                                                                              \
		__VA_ARGS__;                                                                                           \
	}

/* The last argument makes the thing, which has this name in the test. */
#define TEST_WITH(suite, claim, type, name, release, ...)                                                              \
	static void check_##claim(type name);                                                                          \
	Test(suite, claim)                                                                                             \
	{                                                                                                              \
		type made = __VA_ARGS__;                                                                               \
                                                                                                                       \
		check_##claim(made);                                                                                   \
		release(&made);                                                                                        \
	}                                                                                                              \
	static void check_##claim(type name)

/* The same where the thing must not move: open() fills it in, and the test has a pointer to it. */
#define TEST_OPENED(suite, claim, type, name, open, release)                                                           \
	static void check_##claim(type *name);                                                                         \
	Test(suite, claim)                                                                                             \
	{                                                                                                              \
		type opened;                                                                                           \
                                                                                                                       \
		open(&opened);                                                                                         \
		check_##claim(&opened);                                                                                \
		release(&opened);                                                                                      \
	}                                                                                                              \
	static void check_##claim(type *name)

#define GRAPH_TEST(suite, claim, ...) TEST_WITH(suite, claim, struct psd_graph, graph, psd_graph_release, __VA_ARGS__)
#define SCENARIO_TEST(suite, claim, ...)                                                                               \
	TEST_WITH(suite, claim, struct psd_scenario, scenario, psd_scenario_release, __VA_ARGS__)

#endif
