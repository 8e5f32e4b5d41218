/* Outputs as the file system sees them: whole or not there, whatever ends the process and whatever else has a name. */
#define _GNU_SOURCE 1
#include "engine/base/output.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/inputs.h"
#include "tests/scratch_folder.h"
#include "tests/test_with.h"

enum { LINES = 16, MOST_STOPS = 1000, MOST_NAMED = 6 }; /* two, and some calls of a sanitiser */
static const char older[] = "older";

/* ---- a folder to write into ---- */

static struct scratch_folder make_older(void)
{
	const struct scratch_folder folder = scratch_folder_make();

	scratch_folder_write(&folder, "out", older, strlen(older));
	return folder;
}

static void expect_text(const struct scratch_folder *folder, const char *name, const char *expected)
{
	char text[256] = "";
	FILE *in = fopen(scratch_folder_path(folder, name).text, "r");

	cr_assert_not_null(in, "%s", name);
	cr_assert_geq(fread(text, 1, sizeof(text) - 1, in), 0);
	fclose(in);
	cr_expect_str_eq(text, expected, "%s", name);
}

static FILE *open_output(const struct scratch_folder *folder, const char *name)
{
	struct psd_error err = {.text = ""};
	FILE *out = NULL;

	cr_assert_eq(psd_output_open(&out, scratch_folder_path(folder, name).text, &err), PSD_OK, "%s", err.text);
	return out;
}

static void commit(void)
{
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_outputs_commit(&err), PSD_OK, "%s", err.text);
}

static void expect_refused(const struct scratch_folder *folder, const char *name, enum psd_status status,
			   const char *words)
{
	const struct scratch_path path = scratch_folder_path(folder, name);
	struct psd_error err = {.text = "accepted"};
	FILE *out;

	cr_expect_eq(psd_output_open(&out, path.text, &err), status, "%s: %s", name, err.text);
	cr_expect_eq(strncmp(err.text, path.text, strlen(path.text)), 0, "%s", err.text);
	cr_expect_not_null(strstr(err.text, words), "%s", err.text);
}

static void link_names(const struct scratch_folder *folder, const char *target, const char *link)
{
	cr_assert_eq(symlink(target, scratch_folder_path(folder, link).text), 0);
}

/* ---- places ---- */

FOLDER_TEST(output_file, comes_into_its_place_when_it_is_whole_and_all_at_once, make_older())
{
	FILE *out = open_output(&folder, "out"), *fresh = open_output(&folder, "fresh");

	fputs("newer", out);
	fputs("new", fresh);
	fflush(out);
	expect_text(&folder, "out", older);
	cr_expect_eq(scratch_folder_count(&folder), 1);
	commit();
	expect_text(&folder, "out", "newer");
	expect_text(&folder, "fresh", "new");
	cr_expect_eq(scratch_folder_count(&folder), 2);
}

FOLDER_TEST(output_file, a_discarded_file_was_never_there, make_older())
{
	FILE *out = open_output(&folder, "out"), *kept = open_output(&folder, "kept");

	fputs("newer", out);
	psd_output_discard(out);
	fputs("kept", kept);
	commit();
	expect_text(&folder, "out", older);
	expect_text(&folder, "kept", "kept");
	open_output(&folder, "none");
	psd_outputs_discard();
	cr_expect_eq(scratch_folder_count(&folder), 2);
}

static void expect_shown(void)
{
	const struct scratch_folder folder = make_older();
	FILE *out = open_output(&folder, "out"), *fresh = open_output(&folder, "fresh");

	cr_assert(psd_output_show(out));
	cr_assert(psd_output_show(fresh));
	expect_text(&folder, "out", "");
	fputs("newer", out);
	fflush(out);
	expect_text(&folder, "out", "newer");
	fputs("kept", fresh);
	psd_output_discard(fresh);
	psd_output_discard(out);
	expect_text(&folder, "fresh", "kept");
	expect_text(&folder, "out", "newer");
	cr_expect_eq(scratch_folder_count(&folder), 2);
	scratch_folder_remove(&folder);
}

TEST_ROW(output_file, a_shown_file_stays_and_grows_whatever_the_end, expect_shown())

/* A folder that came later takes its place, as what is mounted there would. */
FOLDER_TEST(output_file, a_file_that_cannot_be_shown_leaves_no_hidden_name, scratch_folder_make())
{
	FILE *out = open_output(&folder, "out");

	scratch_folder_add(&folder, "out");
	cr_expect_not(psd_output_show(out));
	cr_expect_eq(errno, EISDIR);
	cr_expect_eq(scratch_folder_count(&folder), 1);
	psd_output_discard(out);
}

FOLDER_TEST(output_file, one_that_cannot_be_written_replaces_no_other, make_older())
{
	struct psd_error err = {.text = ""};
	FILE *out = open_output(&folder, "out"), *full = NULL;

	cr_assert_eq(psd_output_open(&full, "/dev/full", &err), PSD_OK, "%s", err.text);
	fputs("newer", out);
	fputs("lost", full);
	cr_expect_eq(psd_outputs_commit(&err), PSD_ERUN);
	cr_expect_str_eq(err.text, "/dev/full: cannot be written: No space left on device");
	expect_text(&folder, "out", older);
	cr_expect_eq(scratch_folder_count(&folder), 1);
}

FOLDER_TEST(output_file, has_the_mode_of_what_it_replaces, make_older())
{
	struct stat facts;

	cr_assert_eq(chmod(scratch_folder_path(&folder, "out").text, 0600), 0);
	umask(0027);
	open_output(&folder, "out");
	open_output(&folder, "fresh");
	commit();
	cr_assert_eq(stat(scratch_folder_path(&folder, "out").text, &facts), 0);
	cr_expect_eq(facts.st_mode & 0777, 0600);
	cr_assert_eq(stat(scratch_folder_path(&folder, "fresh").text, &facts), 0);
	cr_expect_eq(facts.st_mode & 0777, 0666 & ~0027);
}

FOLDER_TEST(output_file, goes_where_a_link_leads_and_leaves_the_link, make_older())
{
	struct stat facts;

	scratch_folder_add(&folder, "far");
	link_names(&folder, "out", "near");
	link_names(&folder, "near", "nearer");
	link_names(&folder, "far/none", "dangling");
	fputs("through two", open_output(&folder, "nearer"));
	fputs("made", open_output(&folder, "dangling"));
	commit();
	expect_text(&folder, "out", "through two");
	expect_text(&folder, "far/none", "made");
	cr_assert_eq(lstat(scratch_folder_path(&folder, "nearer").text, &facts), 0);
	cr_expect(S_ISLNK(facts.st_mode));
	cr_expect_eq(scratch_folder_count(&folder), 5, "out, far and three links");
	link_names(&folder, "round", "round");
	expect_refused(&folder, "round", PSD_EFILE, "cannot be written: Too many levels of symbolic links");
}

FOLDER_TEST(output_file, goes_straight_into_what_is_no_file, scratch_folder_make())
{
	const struct scratch_path path = scratch_folder_path(&folder, "pipe");
	char text[8] = "";

	cr_assert_eq(mkfifo(path.text, 0600), 0);
	const int in = open(path.text, O_RDONLY | O_NONBLOCK);
	FILE *out = open_output(&folder, "pipe");

	fputs("now", out);
	fflush(out);
	cr_expect_eq(read(in, text, sizeof(text) - 1), 3);
	cr_expect_str_eq(text, "now");
	commit();
	close(in);
	expect_refused(&folder, ".", PSD_EFILE, "cannot be written: Is a directory");
	expect_refused(&folder, "none/out", PSD_EFILE, "cannot be written: No such file or directory");
}

/* ---- files in use ---- */

FOLDER_TEST(output_file, replaces_no_input_by_any_name, make_older())
{
	static const char *const names[] = {"out", "./out", "in/../out", "hard", "soft", "in/soft"};

	scratch_folder_add(&folder, "in");
	link_names(&folder, "out", "soft");
	link_names(&folder, "../out", "in/soft");
	cr_assert_eq(link(scratch_folder_path(&folder, "out").text, scratch_folder_path(&folder, "hard").text), 0);
	psd_inputs_note(scratch_folder_path(&folder, "out").text);
	psd_inputs_note(scratch_folder_path(&folder, "none").text);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		expect_refused(&folder, names[i], PSD_EINVAL,
			       ": the file is read by this run, an output must be another file");
	open_output(&folder, "none");
	commit();
	expect_text(&folder, "out", older);
}

FOLDER_TEST(output_file, is_a_file_of_its_own, make_older())
{
	static const char *const names[] = {"fresh", "./fresh", "in/../fresh", "dangling",
					    "out",   "hard",	"soft",	       "shell"};

	scratch_folder_add(&folder, "in");
	link_names(&folder, "fresh", "dangling");
	link_names(&folder, "out", "soft");
	scratch_folder_write(&folder, "shell", "", 0);
	cr_assert_eq(link(scratch_folder_path(&folder, "out").text, scratch_folder_path(&folder, "hard").text), 0);
	cr_assert_not_null(freopen(scratch_folder_path(&folder, "shell").text, "w", stdout));
	open_output(&folder, "fresh");
	open_output(&folder, "out");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		expect_refused(&folder, names[i], PSD_EINVAL,
			       ": the file is written by this run already, an output must be a file of its own");
	psd_outputs_discard();
}

/* Claimed and reserved before anything is there: other spellings, links, and the folder itself are taken as well. */
Test(output_file, a_claimed_path_is_no_other_output)
{
	const struct scratch_folder folder = make_older();
	static const char *const taken[] = {"fresh",	   "./fresh",  "gone/../fresh",	  "dangling",
					    "hard",	   "save",     "save/",		  "save/a",
					    "save/a.part", "save/b-1", "save/b-1/c/host", "in/up/save/b-2"};
	static const char *const others[] = {"other", "save/other", "save/a2", "saved/a"};
	struct psd_error err = {.text = ""};

	scratch_folder_add(&folder, "in");
	link_names(&folder, "..", "in/up");
	link_names(&folder, "fresh", "dangling");
	cr_assert_eq(link(scratch_folder_path(&folder, "out").text, scratch_folder_path(&folder, "hard").text), 0);
	cr_assert_eq(psd_output_claim(scratch_folder_path(&folder, "fresh").text, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_output_claim(scratch_folder_path(&folder, "out").text, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_output_reserve(scratch_folder_path(&folder, "in/../save").text, "a", &err), PSD_OK);
	cr_assert_eq(psd_output_reserve(scratch_folder_path(&folder, "save").text, "a.part", &err), PSD_OK);
	cr_assert_eq(psd_output_reserve(scratch_folder_path(&folder, "save").text, "b-*", &err), PSD_OK);
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		cr_expect_eq(psd_output_claim(scratch_folder_path(&folder, taken[i]).text, &err), PSD_EINVAL, "%s",
			     taken[i]);
		cr_expect_not_null(strstr(err.text,
					  ": the file is written by this run already, an output must be a file of its "
					  "own"),
				   "%s", err.text);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_expect_eq(psd_output_claim(scratch_folder_path(&folder, others[i]).text, &err), PSD_OK, "%s",
			     err.text);
	open_output(&folder, "fresh"); /* by its own claim */
	psd_outputs_discard();
	expect_text(&folder, "out", older);
	scratch_folder_remove(&folder);
}

/* ---- sudden ends ---- */

/* 16 lines of 16 bytes over the older file. Returns what the process ends with. */
static int write_lines(const struct scratch_folder *folder)
{
	struct psd_error err;
	FILE *out;

	if (psd_output_open(&out, scratch_folder_path(folder, "out").text, &err))
		return 2;
	for (unsigned i = 0; i < LINES; i++) {
		fputs("fifteen letters\n", out);
		fflush(out);
	}
	return psd_outputs_commit(&err) == PSD_OK ? 0 : 1;
}

/* At the n-th begin or end of a system call; false when it ends before. */
static bool is_killed_at(const struct scratch_folder *folder, unsigned n)
{
	const pid_t pid = fork();
	int status = 0;

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(77);
		raise(SIGSTOP);
		_exit(write_lines(folder));
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status))
		cr_skip_test("no process may trace another here");
	for (unsigned i = 0; WIFSTOPPED(status) && i < n; i++) {
		cr_assert_eq(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
		cr_assert_eq(waitpid(pid, &status, 0), pid);
	}
	if (WIFEXITED(status)) {
		cr_assert_eq(WEXITSTATUS(status), 0);
		return false;
	}
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return true;
}

/* A name is had between a link and its renaming alone: from the end of one call to the begin of the next. */
Test(output_file, is_older_or_newer_and_alone_wherever_its_process_is_killed)
{
	const struct scratch_folder folder = make_older();
	unsigned n = 0, n_older = 0, n_named = 0;

	for (bool was_killed = true; was_killed && n < MOST_STOPS; n++) {
		struct stat facts;

		scratch_folder_write(&folder, "out", older, strlen(older));
		was_killed = is_killed_at(&folder, n);
		cr_assert_eq(stat(scratch_folder_path(&folder, "out").text, &facts), 0);
		n_older += facts.st_size == (off_t)strlen(older);
		cr_expect(facts.st_size == (off_t)strlen(older) || facts.st_size == LINES * 16, "%lld bytes, stop %u",
			  (long long)facts.st_size, n);
		if (scratch_folder_count(&folder) > 1) {
			n_named++;
			scratch_folder_remove(&folder);
			cr_assert_eq(mkdir(folder.path, 0700), 0);
		}
	}
	cr_expect_gt(n_older, 2 * LINES, "two stops a line at least");
	cr_expect_leq(n_named, MOST_NAMED);
	scratch_folder_remove(&folder);
}

FOLDER_TEST(output_file, beyond_the_limit_of_a_file_is_refused_in_words, make_older())
{
	const struct rlimit limit = {LINES * 16 - 1, LINES * 16 - 1};
	struct psd_error err = {.text = ""};
	FILE *out = open_output(&folder, "out");

	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (unsigned i = 0; i < LINES; i++)
		fputs("fifteen letters\n", out);
	cr_expect_eq(psd_outputs_commit(&err), PSD_ERUN);
	cr_expect_not_null(strstr(err.text, "out: cannot be written: File too large"), "%s", err.text);
	expect_text(&folder, "out", older);
	cr_expect_eq(scratch_folder_count(&folder), 1);
}

/* ---- file systems without nameless files ---- */

#define TMPFILE_BIT (O_TMPFILE & ~O_DIRECTORY)

/* From now on this process finds none that has them. False: it cannot be arranged. */
static bool forbid_nameless_files(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, TMPFILE_BIT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(steps) / sizeof(steps[0]), steps};

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

FOLDER_TEST(output_file, has_a_hidden_name_where_it_must, make_older())
{
	FILE *out;

	if (!forbid_nameless_files())
		cr_skip_test("no system call can be forbidden here");
	out = open_output(&folder, "out");
	fputs("newer", out);
	expect_text(&folder, "out", older);
	cr_expect_eq(scratch_folder_count(&folder), 2);
	commit();
	expect_text(&folder, "out", "newer");
	cr_expect_eq(scratch_folder_count(&folder), 1);
	open_output(&folder, "out");
	psd_outputs_discard();
	open_output(&folder, "out");
	psd_outputs_remove();
	cr_expect_eq(scratch_folder_count(&folder), 1, "as a signal leaves it");
	psd_outputs_discard();
}

Test(output_file, a_shown_file_keeps_no_hidden_name)
{
	if (!forbid_nameless_files())
		cr_skip_test("no system call can be forbidden here");
	expect_shown();
}
