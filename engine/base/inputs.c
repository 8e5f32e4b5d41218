/* A list that only grows: a process has few inputs, except the photos that it packs. */
#define _XOPEN_SOURCE 700
#include "engine/base/inputs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/grow.h"

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
	noted[n_noted++] = (struct identity){facts.st_dev, facts.st_ino};
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
