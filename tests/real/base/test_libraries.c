/* Folders that are searched for a library. The library here is a copy of the C library's own, under another name. */
#define _GNU_SOURCE   1
#define _XOPEN_SOURCE 700
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "real/base/libraries.h"
#include "tests/scratch_folder.h"
#include "tests/test_with.h"

#define NAME "libpsd-nowhere.so.7"

/* Also makes the folders of the path, which ends with one. */
static struct scratch_folder make(const char *folders)
{
	const struct scratch_folder folder = scratch_folder_make();
	char path[256] = "", copy[256], *rest = copy;

	snprintf(copy, sizeof(copy), "%s", folders);
	for (const char *name; (name = strsep(&rest, "/"));) {
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "%s%s", *path ? "/" : "", name);
		scratch_folder_add(&folder, path);
	}
	return folder;
}

static void put_library(const struct scratch_folder *folder, const char *folders)
{
	char name[512];
	Dl_info facts;

	cr_assert(dladdr((void *)(uintptr_t)memchr, &facts));
	snprintf(name, sizeof(name), "%s/%s/" NAME, folder->path, folders);
	cr_assert_eq(symlink(facts.dli_fname, name), 0);
}

static void put_rubbish(const struct scratch_folder *folder, const char *name)
{
	static const char rubbish[64] = "no library";

	scratch_folder_write(folder, name, rubbish, sizeof(rubbish));
}

static void check_found(const char *variable, const char *set_to, const char *folders)
{
	const struct scratch_folder folder = make(folders);
	struct psd_error err = {0};
	char value[256];

	cr_assert_null(psd_libraries_open(NAME, &err));
	put_library(&folder, folders);
	snprintf(value, sizeof(value), "/nowhere:%s%s", folder.path, set_to);
	cr_assert_eq(setenv(variable, value, 1), 0);
	cr_expect(psd_libraries_open(NAME, &err), "%s: %s", variable, err.text);
	cr_assert_eq(unsetenv(variable), 0);
	cr_expect_null(psd_libraries_open(NAME, &err), "%s", variable);
	scratch_folder_remove(&folder);
}

TEST_ROW(libraries, folders_that_are_named_are_looked_through, check_found("PSD_LIBRARIES", "/b", "b"))

Test(libraries, the_toolkit_has_its_own)
{
	check_found("CUDA_PATH", "", "lib64");
	check_found("CUDA_HOME", "", "lib64");
}

Test(libraries, a_python_has_packages)
{
	check_found("PYTHONPATH", "", "nvidia/cudnn/lib");
	check_found("VIRTUAL_ENV", "", "lib/python3.12/site-packages/nvidia/cu13/lib");
	check_found("CONDA_PREFIX", "", "lib/python3.12/site-packages/nvidia/cublas/lib");
	check_found("HOME", "", ".local/lib/python3.11/site-packages/nvidia/cudnn/lib");
}

/* Beside the one that is on PATH, and of no later one. */
FOLDER_TEST(libraries, the_first_python_on_the_path_has_packages, make("lib/python3.12/site-packages/nvidia/cudnn/lib"))
{
	struct psd_error err = {0};
	char path[256];

	put_library(&folder, "lib/python3.12/site-packages/nvidia/cudnn/lib");
	scratch_folder_add(&folder, "bin");
	snprintf(path, sizeof(path), "/nowhere:%s/bin:/usr/bin", folder.path);
	cr_assert_eq(setenv("PATH", path, 1), 0);
	cr_expect_null(psd_libraries_open(NAME, &err));
	cr_assert_eq(symlink("/bin/true", scratch_folder_path(&folder, "bin/python3").text), 0);
	cr_expect(psd_libraries_open(NAME, &err), "%s", err.text);
}

FOLDER_TEST(libraries, one_that_does_not_open_is_told_and_another_is_taken, make("b"))
{
	struct psd_error err = {0};
	char folders[256];

	put_rubbish(&folder, NAME);
	snprintf(folders, sizeof(folders), "%s:%s/b", folder.path, folder.path);
	cr_assert_eq(setenv("PSD_LIBRARIES", folders, 1), 0);
	cr_assert_null(psd_libraries_open(NAME, &err));
	cr_expect_eq(err.status, PSD_ERUN);
	cr_expect(strstr(err.text, "invalid ELF header") && strstr(err.text, "PSD_LIBRARIES"), "%s", err.text);
	put_library(&folder, "b");
	cr_expect(psd_libraries_open(NAME, &err), "%s", err.text);
}
