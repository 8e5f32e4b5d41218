/* Checks a user's platform file in a child process, because SimGrid abort()s or crashes on some of them. Refuses to
 * judge beyond psd_network_open(). */
#define _POSIX_C_SOURCE 200809L

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/scenario/scenario.h"
#include "sim/network/platform.h"

#define LOAD_LIMIT_MSEC 30000
#define WORDS_MAX	65536 /* bytes kept of a crash: the message comes first, a stack dump follows */

/* Finds the first line with a letter in SimGrid's output; the lines after it are a stack dump. Returns its length. */
static size_t meaningful_line(const char *words, const char **line)
{
	for (*line = words; **line; *line += strspn(*line, "\n")) {
		const size_t length = strcspn(*line, "\n");

		for (size_t i = 0; i < length; i++)
			if (isalpha((unsigned char)(*line)[i]))
				return length;
		*line += length;
	}
	return 0;
}

/* Removes "Parse error at PATH:LINE: " from the front; SimGrid may name the file without its folder. */
static unsigned take_line_number(const char **line, size_t *length)
{
	static const char prefix[] = "Parse error at ";
	const char *colon, *end;
	char *after;

	if (strncmp(*line, prefix, strlen(prefix)))
		return 0;
	end = *line + *length;
	for (colon = *line; colon < end - 1 && !(*colon == ':' && isdigit((unsigned char)colon[1])); colon++)
		;
	if (colon >= end - 1)
		return 0;
	const unsigned long number = strtoul(colon + 1, &after, 10);
	if (after + 2 > end || after[0] != ':' || after[1] != ' ')
		return 0;
	*length -= (size_t)(after + 2 - *line);
	*line = after + 2;
	return number <= 1000000000 ? (unsigned)number : 0;
}

enum psd_status psd_platform_refuse(const char *path, const char *words, struct psd_error *err)
{
	struct psd_place at = {path, 0, 0};
	const char *line;
	size_t length = meaningful_line(words, &line);

	at.line = take_line_number(&line, &length);
	if (length == 0)
		return psd_error_set(err, PSD_EINVAL, at, "SimGrid cannot load this platform");
	return psd_error_set(err, PSD_EINVAL, at, "%.*s", (int)(length < 500 ? length : 500), line);
}

static void ignore_wake(void *context, uint64_t tag)
{
	(void)context;
	(void)tag;
}

/* Loads the platform and never returns. The result is one psd_error, which a pipe does not split (1 KiB + 4 <
 * PIPE_BUF). */
static void load_in_child(const struct psd_platform *platform, int words_fd, int result_fd)
{
	static struct psd_error result;

	if (dup2(words_fd, STDERR_FILENO) < 0)
		_exit(1);
	result.status = psd_network_open(platform, ignore_wake, NULL, &result);
	if (write(result_fd, &result, sizeof(result)) != (ssize_t)sizeof(result))
		_exit(1);
	_exit(0);
}

static long long now_msec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Reads the child's stderr to its end and keeps the part that fits. Returns 0 if the child holds it open beyond the
 * limit. */
static int read_words(int fd, char *words, size_t room)
{
	const long long until_msec = now_msec() + LOAD_LIMIT_MSEC;
	char rest[4096];
	size_t length = 0;

	for (;;) {
		const long long left_msec = until_msec - now_msec();
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		ssize_t n;

		if (left_msec <= 0)
			return 0;
		if (poll(&ready, 1, (int)left_msec) < 0 && errno != EINTR)
			break;
		if (!ready.revents)
			continue;
		n = length + 1 < room ? read(fd, words + length, room - 1 - length) : read(fd, rest, sizeof(rest));
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			break;
		if (n > 0 && length + 1 < room)
			length += (size_t)n;
	}
	words[length] = '\0';
	return 1;
}

/* Returns the child's status and fills err: from the result that the child wrote or, if it crashed before that, from
 * SimGrid's output. */
static enum psd_status judge(const char *path, int result_fd, const char *words, struct psd_error *err)
{
	struct psd_error result;

	if (read(result_fd, &result, sizeof(result)) != (ssize_t)sizeof(result))
		return psd_platform_refuse(path, words, err);
	if (result.status != PSD_OK && err)
		*err = result;
	return result.status;
}

static enum psd_status watch_child(const char *path, pid_t child, int words_fd, int result_fd, struct psd_error *err)
{
	char *words = malloc(WORDS_MAX);
	int is_in_time = 0;
	enum psd_status status;

	if (words)
		is_in_time = read_words(words_fd, words, WORDS_MAX);
	if (!is_in_time)
		kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	if (!words)
		status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	else if (!is_in_time)
		status = psd_error_set(err, PSD_EINVAL, (struct psd_place){path, 0, 0},
				       "SimGrid did not load this platform within 30 s");
	else
		status = judge(path, result_fd, words, err);
	free(words);
	return status;
}

enum psd_status psd_platform_check(const struct psd_platform *platform, struct psd_error *err)
{
	int words[2] = {-1, -1}, result[2] = {-1, -1};
	enum psd_status status;
	pid_t child;

	if (platform->topology != PSD_TOPOLOGY_PLATFORM)
		return PSD_OK;
	fflush(stdout); /* flushed before fork(): otherwise the child writes the buffered text again */
	if (pipe(words) || pipe(result) || (child = fork()) < 0) {
		status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot start a process: %s", strerror(errno));
		goto close_all;
	}
	if (child == 0) {
		close(words[0]);
		close(result[0]);
		load_in_child(platform, words[1], result[1]);
	}
	close(words[1]);
	close(result[1]);
	words[1] = result[1] = -1;
	status = watch_child(platform->path, child, words[0], result[0], err);
close_all:
	for (int i = 0; i < 2; i++) {
		if (words[i] >= 0)
			close(words[i]);
		if (result[i] >= 0)
			close(result[i]);
	}
	return status;
}
