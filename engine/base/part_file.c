/* Beside its place, in the same folder, so that the rename cannot fail half way. */
#define _XOPEN_SOURCE 700
#include "engine/base/part_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum psd_status cannot_write(const char *path, int reason, enum psd_status status, struct psd_error *err)
{
	return psd_error_set(err, status, (struct psd_place){.path = path}, "cannot be written: %s", strerror(reason));
}

static char *part_of(const char *path)
{
	const size_t room = strlen(path) + sizeof(".part");
	char *part = malloc(room);

	if (part)
		snprintf(part, room, "%s.part", path);
	return part;
}

enum psd_status psd_part_file_open(struct psd_part_file *file, const char *path, struct psd_error *err)
{
	struct stat found;
	const bool is_there = stat(path, &found) == 0, is_special = is_there && !S_ISREG(found.st_mode);
	/* behind a link it is the file that is replaced; a pipe has no real path */
	struct psd_part_file opened = {.path = is_there && !is_special ? realpath(path, NULL) : strdup(path)};

	if (!is_special)
		opened.part_path = opened.path ? part_of(opened.path) : NULL;
	if (!opened.path || (!is_special && !opened.part_path)) {
		psd_part_file_discard(&opened);
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	}
	opened.out = fopen(is_special ? opened.path : opened.part_path, "wb");
	if (!opened.out) {
		const int reason = errno;

		psd_part_file_discard(&opened);
		return cannot_write(path, reason, PSD_EFILE, err);
	}
	*file = opened;
	return PSD_OK;
}

void psd_part_file_discard(struct psd_part_file *file)
{
	if (file->out) {
		fclose(file->out);
		if (file->part_path)
			unlink(file->part_path);
	}
	free(file->part_path);
	free(file->path);
	*file = (struct psd_part_file){.out = NULL};
}

enum psd_status psd_part_file_commit(struct psd_part_file *file, struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	if (fflush(file->out) || ferror(file->out) || (file->part_path && fsync(fileno(file->out))))
		status = cannot_write(file->path, errno, PSD_ERUN, err);
	if (!status && file->part_path && rename(file->part_path, file->path))
		status = cannot_write(file->path, errno, PSD_ERUN, err);
	if (!status) { /* nothing is left to be taken away */
		free(file->part_path);
		file->part_path = NULL;
	}
	psd_part_file_discard(file);
	return status;
}
