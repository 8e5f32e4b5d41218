/* A list that only grows: a process has few inputs, except the photos that it packs. */
#define _XOPEN_SOURCE 700
#include "engine/base/inputs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/grow.h"

enum { MOST_LINKS = 40 };

static struct identity {
	dev_t device;
	ino_t inode;
} * noted;
static uint32_t n_noted, noted_room;
static bool has_lost; /* memory ran out: from then on every file counts as noted */

void psd_inputs_note(const char *path)
{
	struct identity *grown;
	struct stat facts;

	if (stat(path, &facts) || !S_ISREG(facts.st_mode))
		return;
	grown = psd_grown(noted, n_noted, &noted_room, sizeof(*grown));
	if (!grown) {
		has_lost = true;
		return;
	}
	noted = grown;
	noted[n_noted] = (struct identity){facts.st_dev, facts.st_ino};
	n_noted++;
}

bool psd_inputs_have(const char *path)
{
	struct stat facts;

	if (stat(path, &facts))
		return false;
	for (uint32_t i = 0; i < n_noted; i++)
		if (noted[i].device == facts.st_dev && noted[i].inode == facts.st_ino)
			return true;
	return has_lost;
}

/* ---- names ---- */

/* Writes the path without "." and "x/..", which is never longer. */
static void write_shorter(char *out, const char *path)
{
	size_t length = 0, root_length = *path == '/';

	if (root_length)
		out[length++] = '/';
	for (size_t n_bytes; *path; path += n_bytes + (path[n_bytes] == '/')) {
		const char *last;

		n_bytes = strcspn(path, "/");
		if (n_bytes == 0 || (n_bytes == 1 && *path == '.'))
			continue;
		out[length] = '\0';
		last = strrchr(out + root_length, '/');
		last = last ? last + 1 : out + root_length;
		if (n_bytes == 2 && !strncmp(path, "..", 2) && *last && strcmp(last, "..")) {
			length = (size_t)(last - out) - (last > out + root_length);
			continue;
		}
		if (length > root_length)
			out[length++] = '/';
		memcpy(out + length, path, n_bytes);
		length += n_bytes;
	}
	out[length] = '\0';
}

char *psd_inputs_shorten_path(const char *path)
{
	char *shorter = malloc(strlen(path) + 1);
	struct stat one, other;

	if (!shorter)
		return NULL;
	write_shorter(shorter, path);
	if (stat(path, &one) || stat(shorter, &other) || one.st_dev != other.st_dev || one.st_ino != other.st_ino)
		memcpy(shorter, path, strlen(path) + 1);
	return shorter;
}

/* Puts text in front of the rest of a path, with a slash between them. Frees the rest, which may be in `owned`. */
static char *put_before(const char *text, const char *rest, char *owned)
{
	const size_t room = strlen(text) + strlen(rest) + 2;
	char *joined = malloc(room);

	if (joined)
		snprintf(joined, room, "%s/%s", text, rest);
	free(owned);
	return joined;
}

/* Adds one part to the resolved path. Returns the length of the link that is there, in `link`, or -1. */
static ssize_t add_part(char out[PATH_MAX], const char *part, size_t n_bytes, char link[PATH_MAX])
{
	const size_t length = strlen(out);

	if (length + n_bytes + 2 > PATH_MAX)
		return -1;
	snprintf(out + length, PATH_MAX - length, "/%.*s", (int)n_bytes, part);
	const ssize_t link_length = readlink(out, link, PATH_MAX - 1);
	if (link_length < 0)
		return -1;
	link[link_length] = '\0';
	out[link[0] == '/' ? 0 : length] = '\0';
	return link_length;
}

/* Resolves the parts of `rest`, which is owned, from the folder in `out` on. False: errno. */
static bool resolve(char out[PATH_MAX], char *rest)
{
	char link[PATH_MAX], *at = rest;
	unsigned n_links = 0;

	while (at && *at) {
		const size_t n_bytes = strcspn(at, "/");
		const char *part = at;

		at += n_bytes + (at[n_bytes] == '/');
		if (n_bytes == 0 || (n_bytes == 1 && *part == '.'))
			continue;
		if (n_bytes == 2 && !strncmp(part, "..", 2)) {
			if (*out)
				*strrchr(out, '/') = '\0';
			continue;
		}
		errno = strlen(out) + n_bytes + 2 > PATH_MAX ? ENAMETOOLONG : n_links > MOST_LINKS ? ELOOP : 0;
		if (errno)
			break;
		if (add_part(out, part, n_bytes, link) >= 0) {
			n_links++;
			at = rest = put_before(link, at, rest);
		}
		errno = 0;
	}
	if (!at)
		errno = ENOMEM;
	free(rest);
	return errno == 0;
}

char *psd_inputs_resolve_path(const char *path)
{
	char out[PATH_MAX] = "", folder[PATH_MAX];
	char *rest = strdup(path);

	if (rest && *path != '/')
		rest = getcwd(folder, sizeof(folder)) ? put_before(folder, path, rest) : (free(rest), NULL);
	errno = rest ? 0 : ENOMEM;
	return rest && resolve(out, rest) ? strdup(*out ? out : "/") : NULL;
}
