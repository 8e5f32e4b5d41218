/* A temporary file has no name where the file system supports that (O_TMPFILE), so that it vanishes with the process.
 * Elsewhere it has a random name in the folder of its place. */
#define _GNU_SOURCE
#include "engine/base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/inputs.h"

enum { MOST_LINKS = 40, MODE = 0666, MODE_BITS = 0777, OPEN_NAME = 32 };
enum { WIDTH = 80, NARROWEST = 40 };

struct output {
	struct output *next;
	FILE *out;
	char *path;	 /* the caller's */
	char *folder;	 /* absolute, with a slash at its end */
	char *place;	 /* final path in the folder; NULL: written directly */
	char *temporary; /* path in the folder; NULL: the file has no name */
};

static struct output *outputs; /* the last one first */

/* Files of which psd_output_claim() or psd_output_reserve() was told. */
static struct taken {
	struct taken *next;
	bool is_pattern; /* name is a pattern in the folder; else the path is whole */
	char *folder;
	char name[];
} * taken;

/* ---- names ---- */

static char *join(const char *folder, size_t folder_length, const char *name)
{
	const size_t room = folder_length + strlen(name) + 1;
	char *path = malloc(room);

	if (path)
		snprintf(path, room, "%.*s%s", (int)folder_length, folder, name);
	return path;
}

static size_t folder_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Returns the path behind all links, where no file need exist. NULL: errno. */
static char *follow(const char *path)
{
	char *at = strdup(path), link[PATH_MAX], *behind;

	for (unsigned n = 0; at; n++, at = behind) {
		const ssize_t length = readlink(at, link, sizeof(link) - 1);

		if (length < 0)
			return at;
		link[length] = '\0';
		errno = ELOOP;
		behind = n < MOST_LINKS ? join(at, link[0] == '/' ? 0 : folder_length(at), link) : NULL;
		free(at);
	}
	return NULL;
}

/* False: errno. */
static bool find_place(struct output *output)
{
	char *end = follow(output->path), *folder = end ? join(end, folder_length(end), ".") : NULL;
	char *absolute = folder ? realpath(folder, NULL) : NULL;
	const int reason = errno;

	output->folder = absolute ? join(absolute, strlen(absolute), absolute[1] ? "/" : "") : NULL;
	if (output->folder)
		output->place = join(output->folder, strlen(output->folder), end + folder_length(end));
	free(absolute);
	free(folder);
	free(end);
	errno = reason;
	return output->place;
}

static bool take_temporary_name(struct output *output)
{
	uint64_t number;
	char name[32];

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return false;
	snprintf(name, sizeof(name), ".psd-%016" PRIx64, number);
	output->temporary = join(output->folder, strlen(output->folder), name);
	return output->temporary;
}

/* ---- files in use ---- */

static bool is_same_file(const struct stat *one, const struct stat *other)
{
	return S_ISREG(one->st_mode) && one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* ---- paths that are taken ---- */

static enum psd_status take(const char *path, const char *name, struct psd_error *err)
{
	struct taken *fresh = calloc(1, sizeof(*fresh) + strlen(name) + 1);

	if (!fresh || !(fresh->folder = psd_inputs_resolve_path(path))) {
		const int reason = fresh ? errno : ENOMEM;

		free(fresh);
		return psd_error_set(err, reason == ENOMEM ? PSD_ENOMEM : PSD_EFILE, (struct psd_place){.path = path},
				     "cannot be written: %s", strerror(reason));
	}
	fresh->is_pattern = *name;
	memcpy(fresh->name, name, strlen(name) + 1);
	fresh->next = taken;
	taken = fresh;
	return PSD_OK;
}

enum psd_status psd_output_reserve(const char *folder, const char *name, struct psd_error *err)
{
	return take(folder, name, err);
}

static bool is_in(const struct taken *reserved, const char *place)
{
	const size_t length = strlen(reserved->folder);

	return !strncmp(reserved->folder, place, length) &&
	       (!place[length] || (place[length] == '/' && !fnmatch(reserved->name, place + length + 1, 0)));
}

/* place: resolved. found: the file that is there, or NULL. */
static bool is_taken(const char *place, const struct stat *found, bool counts_claims)
{
	struct stat other;

	for (const struct taken *t = taken; t; t = t->next)
		if (t->is_pattern ? is_in(t, place)
				  : counts_claims && (!strcmp(t->folder, place) || (found && !stat(t->folder, &other) &&
										    is_same_file(found, &other))))
			return true;
	return false;
}

/* True if standard output or standard error goes to this file. */
static bool is_standard_stream(const struct stat *found)
{
	struct stat other;

	for (int fd = STDOUT_FILENO; found && fd <= STDERR_FILENO; fd++)
		if (!fstat(fd, &other) && is_same_file(found, &other))
			return true;
	return false;
}

static enum psd_status refuse_read(const char *path, struct psd_error *err)
{
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
			     "the file is read by this run, an output must be another file");
}

static enum psd_status refuse_written(const char *path, struct psd_error *err)
{
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
			     "the file is written by this run already, an output must be a file of its own");
}

enum psd_status psd_output_check(const char *path, struct psd_error *err)
{
	return psd_inputs_have(path) ? refuse_read(path, err) : PSD_OK;
}

enum psd_status psd_output_claim(const char *path, struct psd_error *err)
{
	struct stat facts;
	const struct stat *found = stat(path, &facts) ? NULL : &facts;

	if (found && S_ISDIR(found->st_mode))
		return psd_error_set(err, PSD_EFILE, (struct psd_place){.path = path}, "cannot be written: %s",
				     strerror(EISDIR));
	if (found && !S_ISREG(found->st_mode))
		return PSD_OK;
	if (psd_inputs_have(path))
		return refuse_read(path, err);
	char *place = psd_inputs_resolve_path(path);
	const bool is_free = !place || (!is_taken(place, found, true) && !is_standard_stream(found));
	free(place);
	return is_free ? take(path, "", err) : refuse_written(path, err);
}

/* ---- opening ---- */

/* found: the file that is at its place, or NULL. */
static enum psd_status check_use(const struct output *output, const struct stat *found, struct psd_error *err)
{
	struct stat other;
	bool is_written = is_taken(output->place, found, false);

	if (found && psd_inputs_have(output->path))
		return refuse_read(output->path, err);
	is_written = is_written || is_standard_stream(found);
	for (const struct output *o = outputs; o; o = o->next)
		is_written = is_written || (o->place && !strcmp(o->place, output->place)) ||
			     (found && o->place && !stat(o->place, &other) && is_same_file(found, &other));
	return is_written ? refuse_written(output->path, err) : PSD_OK;
}

static void name_open(char name[OPEN_NAME], int fd)
{
	snprintf(name, OPEN_NAME, "/proc/self/fd/%d", fd);
}

/* -1: errno. */
static int open_temporary(struct output *output)
{
	const int fd = open(output->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, MODE);
	char name[OPEN_NAME];

	name_open(name, fd);
	if (fd >= 0 && !access(name, F_OK))
		return fd;
	if (fd >= 0)
		close(fd);
	return take_temporary_name(output) ? open(output->temporary, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, MODE) : -1;
}

/* False: errno. */
static bool open_stream(struct output *output, const struct stat *found)
{
	if (!output->place) {
		output->out = fopen(output->path, "we");
		return output->out;
	}
	const int fd = open_temporary(output);
	if (fd >= 0 && found)
		(void)fchmod(fd, found->st_mode & MODE_BITS); /* on failure the mode is that of a new file */
	output->out = fd < 0 ? NULL : fdopen(fd, "w");
	if (fd >= 0 && !output->out)
		close(fd);
	return output->out;
}

static enum psd_status cannot_write(const struct output *output, enum psd_status status, struct psd_error *err)
{
	return psd_error_set(err, errno == ENOMEM ? PSD_ENOMEM : status, (struct psd_place){.path = output->path},
			     "cannot be written: %s", strerror(errno));
}

static void release(struct output *output)
{
	if (output->out)
		fclose(output->out);
	if (output->temporary)
		unlink(output->temporary);
	free(output->temporary);
	free(output->place);
	free(output->folder);
	free(output->path);
	free(output);
}

enum psd_status psd_output_open(FILE **out, const char *path, struct psd_error *err)
{
	struct output *output = calloc(1, sizeof(*output));
	struct stat facts;
	const struct stat *found = stat(path, &facts) ? NULL : &facts;
	enum psd_status status = PSD_OK;

	if (!output || !(output->path = strdup(path))) {
		free(output);
		return psd_out_of_memory(err);
	}
	errno = EISDIR;
	if (found && S_ISDIR(found->st_mode))
		status = cannot_write(output, PSD_EFILE, err);
	else if (!found || S_ISREG(found->st_mode))
		status = find_place(output) ? check_use(output, found, err) : cannot_write(output, PSD_EFILE, err);
	if (!status && !open_stream(output, found))
		status = cannot_write(output, PSD_EFILE, err);
	if (status) {
		release(output);
		return status;
	}
	output->next = outputs;
	outputs = output;
	*out = output->out;
	return PSD_OK;
}

/* ---- the end ---- */

static bool link_as(const struct output *output, const char *path)
{
	char name[OPEN_NAME];

	name_open(name, fileno(output->out));
	return !linkat(AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

/* A file without a name is linked to a free place; an occupied one needs a temporary name. False: errno. */
static bool put_in_place(struct output *output)
{
	int reason;

	if (!output->temporary) {
		if (link_as(output, output->place))
			return true;
		if (errno != EEXIST || !take_temporary_name(output) || !link_as(output, output->temporary))
			return false;
	}
	const bool is_there = !rename(output->temporary, output->place);
	if (!is_there) {
		reason = errno;
		unlink(output->temporary);
		errno = reason;
	}
	free(output->temporary);
	output->temporary = NULL;
	return is_there;
}

bool psd_output_show(FILE *out)
{
	struct output *output = outputs;

	while (output->out != out)
		output = output->next;
	return !output->place || put_in_place(output);
}

/* Writing the rest of the buffer also tells why an earlier write failed. */
static bool is_written(const struct output *output)
{
	errno = EIO;
	return !fflush(output->out) && !ferror(output->out) && (!output->place || !fsync(fileno(output->out)));
}

void psd_output_write(FILE *out, const void *bytes, size_t n_bytes)
{
	if (n_bytes)
		fwrite(bytes, 1, n_bytes, out);
}

enum psd_status psd_outputs_commit(struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	for (const struct output *o = outputs; o && !status; o = o->next)
		if (!is_written(o))
			status = cannot_write(o, PSD_ERUN, err);
	for (struct output *o = outputs; o && !status; o = o->next)
		if (o->place && !put_in_place(o))
			status = cannot_write(o, PSD_ERUN, err);
	psd_outputs_discard();
	return status;
}

void psd_output_discard(FILE *out)
{
	for (struct output **at = &outputs; *at; at = &(*at)->next)
		if ((*at)->out == out) {
			struct output *output = *at;

			*at = output->next;
			release(output);
			return;
		}
}

void psd_outputs_discard(void)
{
	while (outputs)
		psd_output_discard(outputs->out);
}

void psd_outputs_remove(void)
{
	for (const struct output *o = outputs; o; o = o->next)
		if (o->temporary)
			unlink(o->temporary);
}

static void end_at_once(int number)
{
	psd_outputs_remove();
	signal(number, SIG_DFL);
	raise(number);
}

void psd_outputs_heed_signals(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (signal(ends[i], end_at_once) == SIG_IGN)
			signal(ends[i], SIG_IGN);
}

bool psd_output_is_terminal(void)
{
	return isatty(STDOUT_FILENO);
}

bool psd_output_fill_streams(void)
{
	static const int modes[] = {O_WRONLY, O_RDONLY, O_WRONLY};

	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", modes[fd]) != fd)
			return false;
	return true;
}

int psd_output_terminal_width(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= NARROWEST ? size.ws_col : WIDTH;
}
