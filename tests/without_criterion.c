/* Functions that Criterion's macros call for their messages, without the library: for a program on a machine that need
 * not have it. runner.c has the rest. Refuses to explain why an assertion failed: it says which one, and the
 * message given with it. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <criterion/options.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct criterion_options criterion_options;

void cri_asserts_passed_incr(void)
{
}

/* The caller frees it with cr_asprintf_free(). */
char *cr_translate_assert_msg(int msg_index, ...)
{
	(void)msg_index;
	return strdup("");
}

int cr_asprintf(char **text, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vasprintf(text, format, arguments);
	va_end(arguments);
	return length;
}

void cr_asprintf_free(char *text)
{
	free(text);
}
