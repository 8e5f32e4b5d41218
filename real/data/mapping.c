/* Files as memory. Refuses devices and pipes: their length is unknown. */
#define _DEFAULT_SOURCE /* anonymous memory */
#include "real/data/mapping.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/file.h"
#include "engine/base/text.h"

char *psd_mapping_path(const char *folder, const char *name)
{
	struct psd_text path = {.bytes = NULL};

	psd_text_add(&path, "%s%s%s", folder ? folder : "", folder ? "/" : "", name);
	return path.bytes;
}

/* ---- files that are shortened ---- */

static _Thread_local struct {
	struct psd_mapping *files;
	unsigned n_files;
} guard;

static struct psd_mapping *owner_of(struct psd_mapping *file)
{
	return file->owner ? file->owner : file;
}

/* Replaces missing pages of a shortened file by zeros, so that a library can finish its call. Other threads read these
 * zeros too, so the flag is set first. A fault outside of the guarded files happens again, with its default effect. */
static void read_zeros(int number, siginfo_t *facts, void *context)
{
	const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t address = (uintptr_t)facts->si_addr;

	(void)context;
	for (unsigned f = 0; f < guard.n_files; f++)
		if (address - (uintptr_t)guard.files[f].bytes < guard.files[f].n_bytes) {
			owner_of(&guard.files[f])->is_shortened = true;
			if (mmap((void *)(address & ~(page_bytes - 1)), page_bytes, PROT_READ,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
				return;
		}
	(void)signal(number, SIG_DFL);
}

enum psd_status psd_mapping_guard(struct psd_mapping files[], unsigned n_files, psd_mapping_read_fn *read,
				  void *context, struct psd_error *err)
{
	guard.files = files;
	guard.n_files = n_files;
	const enum psd_status status = read(context, err);
	guard.n_files = 0;
	for (unsigned f = 0; f < n_files; f++)
		if (owner_of(&files[f])->is_shortened)
			return psd_error_set(err, PSD_ERUN, (struct psd_place){.path = files[f].path},
					     "was shortened while it was read");
	return status;
}

/* ---- opening ---- */

static enum psd_status map(struct psd_mapping *mapping, int descriptor, struct psd_error *err)
{
	const struct psd_place at = {.path = mapping->path};
	struct stat facts;

	if (fstat(descriptor, &facts))
		return psd_error_set(err, PSD_EFILE, at, "cannot be read: %s", strerror(errno));
	if (facts.st_size == 0) /* an empty file cannot be mapped; readers refuse its length later */
		return PSD_OK;
	void *bytes = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
	if (bytes == MAP_FAILED)
		return psd_error_set(err, PSD_EFILE, at, "cannot be mapped: %s", strerror(errno));
	(void)sigaction(SIGBUS, &(struct sigaction){.sa_sigaction = read_zeros, .sa_flags = SA_SIGINFO}, NULL);
	mapping->bytes = bytes;
	mapping->n_bytes = (uint64_t)facts.st_size;
	mapping->is_mapped = true;
	return PSD_OK;
}

enum psd_status psd_mapping_open(struct psd_mapping *mapping, const char *folder, const char *name,
				 struct psd_error *err)
{
	struct psd_mapping fresh = {.path = psd_mapping_path(folder, name)};
	int descriptor;

	if (!fresh.path)
		return psd_out_of_memory(err);
	enum psd_status status = psd_file_open(&descriptor, fresh.path, PSD_FILE_REGULAR, err);
	if (!status) {
		status = map(&fresh, descriptor, err);
		close(descriptor);
	}
	if (status)
		psd_mapping_close(&fresh);
	else
		*mapping = fresh;
	return status;
}

enum psd_status psd_mapping_borrow(struct psd_mapping *mapping, const char *path, const uint8_t *bytes,
				   uint64_t n_bytes, struct psd_error *err)
{
	char *copy = psd_mapping_path(NULL, path);

	if (!copy)
		return psd_out_of_memory(err);
	*mapping = (struct psd_mapping){.path = copy, .bytes = bytes, .n_bytes = n_bytes};
	return PSD_OK;
}

enum psd_status psd_mapping_share(struct psd_mapping *mapping, struct psd_mapping *owner, struct psd_error *err)
{
	PSD_TRY(psd_mapping_borrow(mapping, owner->path, owner->bytes, owner->n_bytes, err));
	mapping->owner = owner_of(owner);
	return PSD_OK;
}

void psd_mapping_close(struct psd_mapping *mapping)
{
	if (mapping->is_mapped)
		munmap((void *)(uintptr_t)mapping->bytes, (size_t)mapping->n_bytes);
	free(mapping->path);
	*mapping = (struct psd_mapping){.path = NULL};
}

enum psd_status psd_mapping_refuse(const struct psd_mapping *mapping, uint64_t offset, struct psd_error *err,
				   const char *format, ...)
{
	char message[512];
	va_list values;

	va_start(values, format);
	vsnprintf(message, sizeof(message), format, values);
	va_end(values);
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = mapping->path}, "at byte %llu: %s",
			     (unsigned long long)offset, message);
}
