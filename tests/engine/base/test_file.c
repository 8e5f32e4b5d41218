/* Input files as editors leave them. */
#define _GNU_SOURCE 1
#include "engine/base/file.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/base/csv.h"
#include "engine/base/inputs.h"
#include "engine/base/text.h"
#include "tests/scratch_file.h"
#include "tests/scratch_folder.h"

#define MARK "\xef\xbb\xbf"

Test(file, a_byte_order_mark_is_no_text)
{
	static const char *const texts[][2] = {
		{MARK "title: t\n", "title: t\n"}, {MARK, ""}, {"\xef\xbb", "\xef\xbb"}, {MARK MARK "a", MARK "a"}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct scratch_file file = scratch_file_write(texts[i][0]);
		struct psd_error err = {.text = ""};
		char *text;
		size_t length;

		cr_assert_eq(psd_file_read(&text, &length, file.path, &err), PSD_OK, "%s", err.text);
		cr_expect_str_eq(text, texts[i][1]);
		cr_expect_eq(length, strlen(texts[i][1]));
		free(text);
		remove(file.path);
	}
}

/* The mark moves no column. */
Test(file, a_byte_order_mark_stands_before_no_column)
{
	struct scratch_file file = scratch_file_write(MARK "a,b\n");
	struct psd_error err = {.text = ""};
	struct psd_csv csv;
	bool has_line;

	cr_assert_eq(psd_csv_open(&csv, file.path, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_csv_next(&csv, &has_line, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(psd_csv_check_header(&csv, "a,b", &err), PSD_OK, "%s", err.text);
	psd_csv_close(&csv);
	remove(file.path);
}

Test(file, utf16_is_named_in_the_error)
{
	static const char *const texts[] = {"\xff\xfet", "\xfe\xff"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct scratch_file file = scratch_file_write(texts[i]);
		struct psd_error err = {.text = "accepted"};
		char *text;
		size_t length;

		cr_expect_eq(psd_file_read(&text, &length, file.path, &err), PSD_EINVAL);
		cr_expect_not_null(strstr(err.text, ": is UTF-16, must be UTF-8"), "%s", err.text);
		remove(file.path);
	}
}

/* "link" is a/b, so that link/.. is a, not the folder that link is in. */
FOLDER_TEST(file, a_path_is_shortened_where_it_stays_the_same_file, scratch_folder_make())
{
	static const char *const paths[][2] = {
		{"a/../a/./b//file", "a/b/file"}, {"a/b/../b/../../a/b/file", "a/b/file"},
		{"a/b/../../top", "top"},	  {"link/../b/file", "link/../b/file"},
		{"a/../gone", "a/../gone"},	  {"top", "top"},
	};
	char path[256], expected[256];

	scratch_folder_add(&folder, "a");
	scratch_folder_add(&folder, "a/b");
	scratch_folder_add(&folder, "b");
	scratch_folder_write(&folder, "b/file", "", 0);
	scratch_folder_write(&folder, "top", "", 0);
	scratch_folder_write(&folder, "a/b/file", "", 0);
	cr_assert_eq(symlink("a/b", scratch_folder_path(&folder, "link").text), 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder.path, paths[i][0]);
		snprintf(expected, sizeof(expected), "%s/%s", folder.path, paths[i][1]);
		char *const shorter = psd_inputs_shorten_path(path);

		cr_expect_str_eq(shorter, expected);
		free(shorter);
	}
}

/* ---- kinds of files ---- */

static void expect_kinds(const struct scratch_folder *folder, const char *name, const char *regular, const char *pipe,
			 const char *stream)
{
	const char *const expected[] = {
		[PSD_FILE_REGULAR] = regular, [PSD_FILE_PIPE] = pipe, [PSD_FILE_STREAM] = stream};
	const struct scratch_path path = scratch_folder_path(folder, name);

	for (int kind = PSD_FILE_REGULAR; kind <= PSD_FILE_STREAM; kind++) {
		struct psd_error err = {.text = ""};
		size_t length;
		char byte;
		int fd = -1;
		enum psd_status status = psd_file_open(&fd, *name == '/' ? name : path.text, kind, &err);

		if (!status)
			status = psd_file_take(fd, false, &byte, 1, &length, path.text, &err);
		if (fd >= 0)
			close(fd);
		cr_expect_eq(status, expected[kind] ? PSD_EFILE : PSD_OK, "%s as %d: %s", name, kind, err.text);
		cr_expect(!expected[kind] || strstr(err.text, expected[kind]), "%s as %d: %s", name, kind, err.text);
	}
}

/* Nothing waits for ever, and each is one line. */
Test(file, each_kind_is_opened_or_refused_at_once, .timeout = 60)
{
	static const char regular[] = ": must be a regular file", or_pipe[] = ": must be a regular file or a pipe";
	static const char folder_words[] = ": cannot be read: Is a directory";
	static const char writer[] = ": is a pipe to which no process writes, must be a file or a pipe with a writer";
	static const char socket_words[] = ": is a socket, must be a regular file";
	const struct scratch_folder folder = scratch_folder_make();
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	scratch_folder_write(&folder, "plain", "x", 1);
	cr_assert_eq(mkfifo(scratch_folder_path(&folder, "fifo").text, 0600), 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder.path);
	cr_assert_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	expect_kinds(&folder, "plain", NULL, NULL, NULL);
	expect_kinds(&folder, "fifo", regular, writer, writer);
	expect_kinds(&folder, "socket", socket_words, socket_words, socket_words);
	expect_kinds(&folder, ".", regular, folder_words, folder_words);
	expect_kinds(&folder, "/dev/null", regular, or_pipe, NULL);
	expect_kinds(&folder, "/dev/zero", regular, or_pipe, NULL);
	scratch_folder_remove(&folder);
}

/* A writer comes a moment later, and stays longer than its first bytes. */
Test(file, a_pipe_is_read_to_the_end_of_its_writer, .timeout = 60)
{
	const struct scratch_folder folder = scratch_folder_make();
	const struct scratch_path path = scratch_folder_path(&folder, "fifo");
	struct psd_error err = {.text = ""};
	char command[512], *text;
	size_t length;

	cr_assert_eq(mkfifo(path.text, 0600), 0);
	snprintf(command, sizeof(command), "{ printf one; head -c 100000 /dev/zero | tr '\\0' x; printf two; } >%s &",
		 path.text);
	cr_assert_eq(system(command), 0);
	cr_assert_eq(psd_file_read(&text, &length, path.text, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(length, 100006);
	cr_expect(!memcmp(text, "onexxx", 6) && !strcmp(text + length - 5, "xxtwo"));
	free(text);
	scratch_folder_remove(&folder);
}

/* Names as psd_text_add_csv() writes them are those that psd_csv_next() reads; a spreadsheet gets no formula. */
Test(file, names_go_through_csv_as_they_are)
{
	static const char *const names[][2] = {
		{"conv", "conv"},      {"a,b", "\"a,b\""}, {"a\"b", "\"a\"\"b\""}, {"=1+1", "'=1+1"}, {"-x", "'-x"},
		{"+x,y", "\"'+x,y\""}, {"@x", "'@x"},	   {"'=x", "''=x"},	   {"'x", "'x"},      {"#x", "\"#x\""}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct psd_text text = {.bytes = NULL};
		struct psd_error err = {.text = ""};
		struct psd_csv csv;
		bool has_line;

		psd_text_add_csv(&text, names[i][0]);
		cr_assert_str_eq(text.bytes, names[i][1]);
		psd_text_add(&text, ",1\n");
		struct scratch_file file = scratch_file_write(text.bytes);

		cr_assert_eq(psd_csv_open(&csv, file.path, &err), PSD_OK, "%s", err.text);
		cr_assert_eq(psd_csv_next(&csv, &has_line, &err), PSD_OK, "%s", err.text);
		cr_assert_eq(csv.n_cells, 2, "%s", names[i][0]);
		cr_expect_str_eq(csv.cells[0], names[i][0]);
		cr_expect_str_eq(csv.cells[1], "1");
		psd_csv_close(&csv);
		psd_text_release(&text);
		remove(file.path);
	}
}
