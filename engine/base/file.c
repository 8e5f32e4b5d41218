/* Reads whole files up to a limit, which exceeds any text that a person writes. */
#define _XOPEN_SOURCE 700
#include "engine/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/inputs.h"
#include "engine/base/spelling.h"

/* A writer of a named pipe opens it within this time, as it waits for the reader. */
enum { WRITER_TRIES = 200, WRITER_TRY_MS = 10, FIRST_ROOM = 16384 };

/* ---- opening ---- */

static const char *const kind_names[] = {
	[PSD_FILE_REGULAR] = "a regular file",
	[PSD_FILE_PIPE] = "a regular file or a pipe",
	[PSD_FILE_STREAM] = "a regular file or a pipe",
};

static enum psd_status check_kind(int descriptor, const char *path, enum psd_file_kind kind, struct psd_error *err)
{
	const struct psd_place at = {.path = path};
	struct stat facts;

	if (fstat(descriptor, &facts))
		return psd_error_set(err, PSD_EFILE, at, "cannot be read: %s", strerror(errno));
	if (kind != PSD_FILE_REGULAR && S_ISDIR(facts.st_mode))
		return psd_error_set(err, PSD_EFILE, at, "cannot be read: %s", strerror(EISDIR));
	if (kind != PSD_FILE_STREAM && !S_ISREG(facts.st_mode) &&
	    (kind == PSD_FILE_REGULAR || !S_ISFIFO(facts.st_mode)))
		return psd_error_set(err, PSD_EFILE, at, "must be %s", kind_names[kind]);
	return PSD_OK;
}

/* ---- names that are near ---- */

enum { MOST_NAMES = 512, NAME_BYTES = 64, PATH_BYTES = 4096 };

/* A file that the user may have meant. */
struct candidate {
	char stem[NAME_BYTES + 1];  /* name without folder and ending */
	char path[NAME_BYTES + 32]; /* from the folder of the missing file on */
};

struct candidates {
	struct candidate all[MOST_NAMES];
	unsigned n;
};

static int compare_candidates(const void *one, const void *other)
{
	const struct candidate *a = one, *b = other;
	const int order = strcmp(a->stem, b->stem);

	return order ? order : strcmp(a->path, b->path);
}

/* Copies the file's name without folder and ending. False: it is too long. */
static bool copy_stem(const char *path, char stem[NAME_BYTES + 1])
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *dot = strrchr(base, '.');
	const size_t length = dot && dot != base ? (size_t)(dot - base) : strlen(base);

	if (length == 0 || length > NAME_BYTES)
		return false;
	memcpy(stem, base, length);
	stem[length] = '\0';
	return true;
}

/* Adds the model and scenario files of a folder below the one of the path. */
static void add_names(struct candidates *names, const char *path, const char *below)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_BYTES];
	const struct dirent *entry;

	if (snprintf(folder, sizeof(folder), "%.*s%s", slash ? (int)(slash - path) + 1 : 0, path,
		     slash || *below ? below : ".") >= PATH_BYTES)
		return;
	DIR *opened = opendir(*folder ? folder : ".");
	while (opened && names->n < MOST_NAMES && (entry = readdir(opened)) != NULL) {
		const char *ending = strrchr(entry->d_name, '.');
		const bool is_model = ending && (!strcmp(ending, ".yaml") || !strcmp(ending, ".onnx") ||
						 !strcmp(ending, ".prototxt"));
		struct candidate *candidate = &names->all[names->n];

		if (is_model && copy_stem(entry->d_name, candidate->stem) &&
		    snprintf(candidate->path, sizeof(candidate->path), "%s%s", below, entry->d_name) <
			    (int)sizeof(candidate->path))
			names->n++;
	}
	if (opened)
		closedir(opened);
}

/* Refuses a file that is not there, and names the one whose name is nearest: in its folder, or among the models. */
static enum psd_status refuse_missing(const char *path, struct psd_error *err)
{
	static const char *const folders[] = {"", "models/", "scenarios/models/"};
	const struct psd_place at = {.path = path};
	const char *stems[MOST_NAMES + 1] = {NULL}, *near = NULL, *other;
	struct candidates *names = calloc(1, sizeof(*names));
	char stem[NAME_BYTES + 1];
	unsigned index = 0;

	for (unsigned f = 0; names && f < sizeof(folders) / sizeof(folders[0]); f++)
		add_names(names, path, folders[f]);
	if (names)
		qsort(names->all, names->n, sizeof(names->all[0]), compare_candidates);
	for (unsigned i = 0; names && i < names->n; i++)
		stems[i] = names->all[i].stem;
	if (stems[0] && copy_stem(path, stem))
		near = psd_spelling_find(stem, stems, &index) ? stems[index] : psd_spelling_nearest(stem, stems);
	while (near && stems[index] != near)
		index++;
	other = near && index + 1 < names->n && !strcmp(names->all[index + 1].stem, near) ? names->all[index + 1].path
											  : NULL;
	const enum psd_status status =
		near ? psd_error_set(err, PSD_EFILE, at, "cannot be opened: %s, did you mean '%s'%s%s%s?",
				     strerror(ENOENT), names->all[index].path, other ? " or '" : "", other ? other : "",
				     other ? "'" : "")
		     : psd_error_set(err, PSD_EFILE, at, "cannot be opened: %s", strerror(ENOENT));
	free(names);
	return status;
}

enum psd_status psd_file_open(int *descriptor, const char *path, enum psd_file_kind kind, struct psd_error *err)
{
	const struct psd_place at = {.path = path};
	const int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	const int reason = errno;
	struct stat facts;

	if (opened < 0 && reason == ENXIO && !stat(path, &facts) && S_ISSOCK(facts.st_mode))
		return psd_error_set(err, PSD_EFILE, at, "is a socket, must be %s", kind_names[kind]);
	if (opened < 0 && reason == ENOENT)
		return refuse_missing(path, err);
	if (opened < 0)
		return psd_error_set(err, PSD_EFILE, at, "cannot be opened: %s", strerror(reason));
	psd_inputs_note(path);
	const enum psd_status status = check_kind(opened, path, kind, err);
	if (status)
		close(opened);
	else
		*descriptor = opened;
	return status;
}

/* ---- reading ---- */

/* As read(), but waits for bytes. tries: left for a pipe that nobody has opened to write; 0 afterwards. False with
 * errno: EPIPE means that none has. */
static bool read_some(int descriptor, void *bytes, size_t room, unsigned *tries, size_t *length)
{
	struct pollfd ready = {.fd = descriptor, .events = POLLIN};

	for (;;) {
		const ssize_t n = read(descriptor, bytes, room);

		*length = n > 0 ? (size_t)n : 0;
		if (n > 0 || (n == 0 && *tries == 0)) {
			*tries = 0;
			return true;
		}
		if (n < 0 && errno != EAGAIN)
			return false;
		if (n < 0)
			*tries = 0; /* a writer is there */
		if (n == 0 && --*tries == 0) {
			errno = EPIPE;
			return false;
		}
		if (poll(&ready, n < 0, n < 0 ? -1 : WRITER_TRY_MS) < 0)
			return false;
	}
}

static unsigned writer_tries(int descriptor)
{
	struct stat facts;

	return !fstat(descriptor, &facts) && S_ISFIFO(facts.st_mode) ? WRITER_TRIES : 0;
}

static enum psd_status take(int descriptor, char *bytes, size_t room, size_t *length, unsigned *tries, const char *path,
			    struct psd_error *err)
{
	const struct psd_place at = {.path = path};
	size_t n = 1;

	for (*length = 0; *length < room && n > 0; *length += n)
		if (!read_some(descriptor, bytes + *length, room - *length, tries, &n))
			return errno == EPIPE
				       ? psd_error_set(err, PSD_EFILE, at,
						       "is a pipe to which no process writes, must be a file or "
						       "a pipe with a writer")
				       : psd_error_set(err, PSD_EFILE, at, "cannot be read: %s", strerror(errno));
	return PSD_OK;
}

enum psd_status psd_file_take(int descriptor, bool is_begun, void *bytes, size_t room, size_t *length, const char *path,
			      struct psd_error *err)
{
	unsigned tries = is_begun ? 0 : writer_tries(descriptor);

	return take(descriptor, bytes, room, length, &tries, path, err);
}

/* Doubles the memory until the file ends or exceeds the limit. *text: owned by the caller, also on failure. */
static enum psd_status read_all(int descriptor, char **text, size_t *length, size_t most, const char *path,
				struct psd_error *err)
{
	unsigned tries = writer_tries(descriptor);
	size_t room = 0;

	*length = 0;
	do {
		size_t n;
		char *larger = realloc(*text, (room ? 2 * room : FIRST_ROOM) + 1);

		if (!larger)
			return psd_error_set(err, PSD_ENOMEM, (struct psd_place){.path = path}, "out of memory");
		*text = larger;
		room = room ? 2 * room : FIRST_ROOM;
		PSD_TRY(take(descriptor, *text + *length, room - *length, &n, &tries, path, err));
		*length += n;
	} while (*length == room && *length <= most);
	return PSD_OK;
}

static bool is_utf16(const char *text, size_t length)
{
	return length >= 2 && (!memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2));
}

/* Some editors put a mark in front of UTF-8, where it has no meaning. Returns the length. */
static size_t skip_byte_order_mark(char *text, size_t length)
{
	static const char mark[] = "\xef\xbb\xbf";
	const size_t mark_length = sizeof(mark) - 1;

	if (length < mark_length || memcmp(text, mark, mark_length) != 0)
		return length;
	memmove(text, text + mark_length, length - mark_length + 1);
	return length - mark_length;
}

static enum psd_status read_whole(char **bytes, size_t *length, size_t most, const char *path, enum psd_file_kind kind,
				  struct psd_error *err)
{
	char *read = NULL;
	size_t read_length = 0;
	int descriptor;

	PSD_TRY(psd_file_open(&descriptor, path, kind, err));
	enum psd_status status = read_all(descriptor, &read, &read_length, most, path, err);
	close(descriptor);
	if (!status && read_length > most)
		status = psd_error_set(err, PSD_EFILE, (struct psd_place){.path = path},
				       "is longer than %zu MiB, too long for an input file", most >> 20);
	if (status) {
		free(read);
		return status;
	}
	read[read_length] = '\0';
	*bytes = read;
	*length = read_length;
	return PSD_OK;
}

enum psd_status psd_file_read_bytes(char **bytes, size_t *length, size_t most, const char *path, struct psd_error *err)
{
	return read_whole(bytes, length, most, path, PSD_FILE_PIPE, err);
}

enum psd_status psd_file_read_part(void *bytes, size_t length, uint64_t offset, const char *path, struct psd_error *err)
{
	size_t read_length = 0;
	int descriptor;
	enum psd_status status = psd_file_open(&descriptor, path, PSD_FILE_REGULAR, err);

	if (status)
		return status;
	if (offset <= LONG_MAX && lseek(descriptor, (off_t)offset, SEEK_SET) >= 0)
		status = psd_file_take(descriptor, false, bytes, length, &read_length, path, err);
	close(descriptor);
	if (status || read_length == length)
		return status;
	return psd_error_set(err, PSD_EFILE, (struct psd_place){.path = path}, "ends before byte %llu",
			     (unsigned long long)(offset + length));
}

enum psd_status psd_file_read(char **text, size_t *length, const char *path, struct psd_error *err)
{
	char *read;
	size_t read_length;

	PSD_TRY(read_whole(&read, &read_length, PSD_FILE_BYTES_MAX, path, PSD_FILE_STREAM, err));
	if (is_utf16(read, read_length)) {
		free(read);
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path}, "is UTF-16, must be UTF-8");
	}
	*text = read;
	*length = skip_byte_order_mark(read, read_length);
	return PSD_OK;
}

const char *psd_file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}
