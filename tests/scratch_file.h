/* A file that a test writes and reads back by its path. */
#ifndef PSD_TESTS_SCRATCH_FILE_H
#define PSD_TESTS_SCRATCH_FILE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct scratch_file {
	char path[32];
};

/* Needs _POSIX_C_SOURCE in the file that includes this. remove(file.path) when done. */
static inline struct scratch_file scratch_file_write(const char *text)
{
	struct scratch_file file = {"/tmp/psd-test-XXXXXX"};
	const int descriptor = mkstemp(file.path);

	cr_assert_geq(descriptor, 0);
	cr_assert_eq(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
	close(descriptor);
	return file;
}

#endif
