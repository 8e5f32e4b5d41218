/* Cases of a scenario text. Any failure ends the test with the library's own message. */
#ifndef PSD_TESTS_LOADED_HELPER_H
#define PSD_TESTS_LOADED_HELPER_H

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/case/case.h"

/* A scenario with the graph and the costs that it names; must not move while cases are made of it. */
struct loaded {
	struct psd_scenario scenario;
	struct psd_costed_model costed;
};

/* Paths in `text` are relative to the root of the sources. */
static inline void loaded_open(struct loaded *loaded, const char *text)
{
	static const char *const no_settings[] = {NULL};
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_scenario_parse(&loaded->scenario, "test.yaml", text, strlen(text), no_settings, &err), PSD_OK,
		     "%s\n%s", err.text, text);
	cr_assert_eq(psd_costed_model_load(&loaded->costed, &loaded->scenario, &err), PSD_OK, "%s\n%s", err.text, text);
}

/* As loaded_open() with the text that the format makes. */
__attribute__((format(printf, 2, 3))) static inline void loaded_print(struct loaded *loaded, const char *format, ...)
{
	char text[8192];
	va_list values;

	va_start(values, format);
	cr_assert_lt(vsnprintf(text, sizeof(text), format, values), (int)sizeof(text));
	va_end(values);
	loaded_open(loaded, text);
}

static inline void loaded_close(struct loaded *loaded)
{
	psd_costed_model_release(&loaded->costed);
	psd_scenario_release(&loaded->scenario);
}

/* psd_case_release() when done. */
static inline void loaded_case(struct psd_case *made, const struct loaded *loaded, unsigned system, unsigned point)
{
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_case_make(made, &loaded->costed, &loaded->scenario.systems[system],
				   psd_scenario_point(&loaded->scenario, point), &err),
		     PSD_OK, "%s", err.text);
}

/* Runs check on the plan of every system of the scenario at every point. */
static inline void for_each_plan(const char *text, void (*check)(const struct psd_plan *plan))
{
	struct loaded loaded;

	loaded_open(&loaded, text);
	for (unsigned s = 0; s < loaded.scenario.n_systems; s++)
		for (unsigned p = 0; p < psd_scenario_points(&loaded.scenario); p++) {
			struct psd_case made;

			loaded_case(&made, &loaded, s, p);
			check(&made.plan);
			psd_case_release(&made);
		}
	loaded_close(&loaded);
}

/* A claim about a plan, and the test that checks it on those of the text. */
#define EACH_PLAN(suite, claim, text)                                                                                  \
	static void check_##claim(const struct psd_plan *plan);                                                        \
	Test(suite, claim)                                                                                             \
	{                                                                                                              \
		for_each_plan(text, check_##claim);                                                                    \
	}                                                                                                              \
	static void check_##claim(const struct psd_plan *plan)

/* expected: the error that refuses the first system at the first point; "" if it is accepted. */
static inline void loaded_expect_refused(const char *text, const char *expected)
{
	struct loaded loaded;
	struct psd_case made;
	struct psd_error err = {.text = ""};

	loaded_open(&loaded, text);
	const enum psd_status status = psd_case_make(&made, &loaded.costed, &loaded.scenario.systems[0],
						     psd_scenario_point(&loaded.scenario, 0), &err);
	cr_expect_eq(status, *expected ? PSD_EINVAL : PSD_OK, "%s", text);
	cr_expect_str_eq(err.text, expected);
	if (status == PSD_OK)
		psd_case_release(&made);
	loaded_close(&loaded);
}

/* By the node that sends most, in an iteration that exchanges. */
static inline uint64_t most_sent_bytes(const struct psd_case *made)
{
	uint64_t most = 0;

	for (unsigned node = 0; node < psd_layout_nodes(&made->plan.layout); node++) {
		const uint64_t bytes = psd_program_traffic(&made->program, node).sent_bytes;

		most = bytes > most ? bytes : most;
	}
	return most;
}

#endif
