/* Published values: the meaning of a row, and every error with its line. */
#define _POSIX_C_SOURCE 200809L
#include <criterion/criterion.h>

#include "engine/scenario/published.h"
#include "tests/scratch_file.h"

#define COLUMNS "system,workers,images_per_sec,speedup,use,source\n"

static void expect_error(const char *text, const char *rest)
{
	struct scratch_file file = scratch_file_write(text);
	struct psd_published published;
	struct psd_error err = {.text = "accepted"};
	char expected[512];

	cr_expect_eq(psd_published_load(&published, file.path, &err), PSD_EINVAL);
	snprintf(expected, sizeof(expected), "%s%s", file.path, rest);
	cr_expect_str_eq(err.text, expected);
	remove(file.path);
}

Test(published, rows_are_found_by_system_and_workers)
{
	struct scratch_file file =
		scratch_file_write("# why\n" COLUMNS "\nA B,1,34.6,,fit,paper\nA B, 8 ,, 7.6,check,paper\r\n");
	const struct psd_published_row *row;
	struct psd_published published;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_published_load(&published, file.path, &err), PSD_OK, "%s", err.text);
	remove(file.path);
	cr_expect_eq(published.n_rows, 2);
	row = psd_published_find(&published, "A B", 1);
	cr_assert_not_null(row);
	cr_expect(row->has_images_per_sec && row->images_per_sec == 34.6);
	cr_expect_not(row->has_speedup);
	cr_expect(row->is_fit);
	row = psd_published_find(&published, "A B", 8);
	cr_assert_not_null(row);
	cr_expect_not(row->has_images_per_sec);
	cr_expect(row->has_speedup && row->speedup == 7.6);
	cr_expect_not(row->is_fit);
	cr_expect_null(psd_published_find(&published, "A B", 2));
	cr_expect_null(psd_published_find(&published, "A", 1));
	psd_published_release(&published);
}

Test(published, wrong_rows_are_named_by_line)
{
	expect_error("", ": the file has no header line, must have 'system,workers,images_per_sec,speedup,use,source'");
	expect_error("system,nodes\n", ":1: column 2 is 'nodes', the header must be "
				       "'system,workers,images_per_sec,speedup,use,source'");
	expect_error(COLUMNS "A,1,2,,fit\n",
		     ":2: the line has 5 cells, must have the 6 of 'system,workers,images_per_sec,speedup,use,source'");
	expect_error(COLUMNS ",1,2,,fit,p\n", ":2: 'system' is empty, must be the name of a system");
	expect_error(COLUMNS "A,0,2,,fit,p\n", ":2: 'workers' is '0', must be a whole number from 1 to 4194304");
	expect_error(COLUMNS "A,1,,,fit,p\n",
		     ":2: 'images_per_sec' and 'speedup' are empty, one of them must have a value");
	expect_error(COLUMNS "A,1,fast,,fit,p\n", ":2: 'images_per_sec' is 'fast', must be a number above 0 or empty");
	expect_error(COLUMNS "A,1,,0,fit,p\n", ":2: 'speedup' is '0', must be a number above 0 or empty");
	expect_error(COLUMNS "A,1,2,,fitted,p\n", ":2: 'use' is 'fitted', must be fit or check");
	expect_error(COLUMNS "A,1,2,,fit,\n", ":2: 'source' is empty, must name the publication");
	expect_error(COLUMNS "A,1,2,,fit,p\n\nA,1,3,,fit,p\n",
		     ":4: system 'A' with 1 workers is in an earlier line already");
	expect_error(COLUMNS "B,1,2,,fit,p\nA,1,2,,fit,p\nB,1,3,,fit,p\nA,1,3,,fit,p\n",
		     ":4: system 'B' with 1 workers is in an earlier line already");
}

/* Looked for one after the other they take half a minute. */
Test(published, many_rows_are_read_at_once, .timeout = 10)
{
	enum { ROWS = 100000 };
	static char text[ROWS * sizeof("system 12345,1234567,1,,fit,p\n")];
	struct psd_published published;
	struct psd_error err = {.text = ""};
	size_t length = (size_t)snprintf(text, sizeof(text), COLUMNS);

	for (unsigned i = 0; i < ROWS; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "system %u,%u,1,,fit,p\n", i % 10,
					   ROWS - i);
	struct scratch_file file = scratch_file_write(text);

	cr_assert_eq(psd_published_load(&published, file.path, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(published.n_rows, ROWS);
	cr_expect_not_null(psd_published_find(&published, "system 7", ROWS - 7));
	cr_expect_null(psd_published_find(&published, "system 8", ROWS - 7));
	psd_published_release(&published);
	remove(file.path);
}

Test(published, a_missing_file_is_named)
{
	struct psd_published published;
	struct psd_error err = {.text = ""};

	cr_expect_eq(psd_published_load(&published, "no/such.csv", &err), PSD_EFILE);
	cr_expect_str_eq(err.text, "no/such.csv: cannot be opened: No such file or directory");
}
