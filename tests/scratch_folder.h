/* A folder that a test fills with files and removes. Needs _POSIX_C_SOURCE 200809L and _XOPEN_SOURCE 700 in the file
 * that includes this. */
#ifndef PSD_TESTS_SCRATCH_FOLDER_H
#define PSD_TESTS_SCRATCH_FOLDER_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test_with.h"

struct scratch_folder {
	char path[64];
};

static inline struct scratch_folder scratch_folder_make(void)
{
	struct scratch_folder folder = {"/tmp/psd-data-XXXXXX"};

	cr_assert_not_null(mkdtemp(folder.path));
	return folder;
}

struct scratch_path {
	char text[256];
};

static inline struct scratch_path scratch_folder_path(const struct scratch_folder *folder, const char *name)
{
	struct scratch_path path;

	snprintf(path.text, sizeof(path.text), "%s/%s", folder->path, name);
	return path;
}

static inline void scratch_folder_add(const struct scratch_folder *folder, const char *name)
{
	cr_assert_eq(mkdir(scratch_folder_path(folder, name).text, 0700), 0);
}

/* Creates or replaces the file. */
static inline void scratch_folder_write(const struct scratch_folder *folder, const char *name, const void *bytes,
					size_t n_bytes)
{
	FILE *out = fopen(scratch_folder_path(folder, name).text, "wb");

	cr_assert_not_null(out);
	cr_assert_eq(fwrite(bytes, 1, n_bytes, out), n_bytes);
	cr_assert_eq(fclose(out), 0);
}

/* All of a file as text, which the caller frees. */
static inline char *scratch_folder_read(const struct scratch_folder *folder, const char *name)
{
	FILE *in = fopen(scratch_folder_path(folder, name).text, "r");
	char *text = calloc(1, 1 << 20);

	cr_assert(in && text, "%s", name);
	cr_assert_lt(fread(text, 1, (1 << 20) - 1, in), (1 << 20) - 1);
	fclose(in);
	return text;
}

/* Whether two files have the same bytes. */
static inline bool scratch_folder_is_same(const struct scratch_folder *folder, const char *one, const char *other)
{
	FILE *left = fopen(scratch_folder_path(folder, one).text, "rb"),
	     *right = fopen(scratch_folder_path(folder, other).text, "rb");
	int byte = EOF;
	bool is_same = true;

	cr_assert(left && right, "%s, %s", one, other);
	do {
		byte = getc(left);
		is_same = getc(right) == byte;
	} while (is_same && byte != EOF);
	fclose(left);
	fclose(right);
	return is_same;
}

static inline bool scratch_folder_has(const struct scratch_folder *folder, const char *name)
{
	return !access(scratch_folder_path(folder, name).text, F_OK);
}

struct scratch_options {
	char text[768];
};

/* Each @ in the options of a command becomes the folder's path. */
static inline struct scratch_options scratch_folder_spell(const struct scratch_folder *folder, const char *options)
{
	struct scratch_options spelt;
	size_t n = 0;

	for (; *options && n < sizeof(spelt.text) - sizeof(folder->path); options++)
		n += (size_t)(*options == '@' ? snprintf(spelt.text + n, sizeof(spelt.text) - n, "%s", folder->path)
					      : snprintf(spelt.text + n, sizeof(spelt.text) - n, "%c", *options));
	cr_assert_eq(*options, 0, "too long");
	spelt.text[n] = 0;
	return spelt;
}

/* Entries, hidden ones too. */
static inline unsigned scratch_folder_count(const struct scratch_folder *folder)
{
	DIR *listing = opendir(folder->path);
	unsigned n = 0;

	cr_assert_not_null(listing);
	while (readdir(listing))
		n++;
	closedir(listing);
	return n - 2; /* the folder and the one around it */
}

static inline int scratch_folder_remove_one(const char *path, const struct stat *facts, int kind, struct FTW *walk)
{
	(void)facts;
	(void)kind;
	(void)walk;
	return remove(path);
}

static inline void scratch_folder_remove(const struct scratch_folder *folder)
{
	cr_assert_eq(nftw(folder->path, scratch_folder_remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* A test with a folder, which `make` makes and which is removed at the end. */
#define FOLDER_TEST(suite, claim, make)                                                                                \
	TEST_WITH(suite, claim, const struct scratch_folder, folder, scratch_folder_remove, make)

#endif
