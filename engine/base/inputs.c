/* A list that only grows: a process has few inputs, but for the photos that it packs. */
#define _XOPEN_SOURCE 700
#include "engine/base/inputs.h"

#include <stdlib.h>
#include <sys/stat.h>

static struct identity {
	dev_t device;
	ino_t inode;
} * noted;
static size_t n_noted, noted_room;
static bool has_lost; /* for want of memory: then every file counts as noted */

void psd_inputs_note(const char *path)
{
	struct stat facts;

	if (stat(path, &facts) || !S_ISREG(facts.st_mode))
		return;
	if (n_noted == noted_room) {
		const size_t room = noted_room ? 2 * noted_room : 16;
		struct identity *grown = realloc(noted, room * sizeof(*grown));

		if (!grown) {
			has_lost = true;
			return;
		}
		noted = grown;
		noted_room = room;
	}
	noted[n_noted++] = (struct identity){facts.st_dev, facts.st_ino};
}

bool psd_inputs_have(const char *path)
{
	struct stat facts;

	if (stat(path, &facts))
		return false;
	for (size_t i = 0; i < n_noted; i++)
		if (noted[i].device == facts.st_dev && noted[i].inode == facts.st_ino)
			return true;
	return has_lost;
}
