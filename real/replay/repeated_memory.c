#define _GNU_SOURCE
#include "real/replay/repeated_memory.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FOLD_BYTES = 1 << 20 }; /* fits into a second-level cache, where copies are cheapest */

static bool map_folds(const struct psd_repeated_memory *repeated, int fd)
{
	for (size_t at = 0; at < repeated->length_bytes; at += FOLD_BYTES)
		if (mmap((char *)repeated->base + at, FOLD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			 0) == MAP_FAILED)
			return false;
	return true;
}

enum psd_status psd_repeated_memory_open(struct psd_repeated_memory *repeated, uint64_t n_bytes, struct psd_error *err)
{
	struct psd_repeated_memory made = {.length_bytes = (n_bytes / FOLD_BYTES + 1) * FOLD_BYTES};
	const int fd = memfd_create("psd", MFD_CLOEXEC);
	bool is_made = fd >= 0 && ftruncate(fd, FOLD_BYTES) == 0;

	if (is_made) {
		made.base =
			mmap(NULL, made.length_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		made.base = made.base == MAP_FAILED ? NULL : made.base;
		is_made = made.base && map_folds(&made, fd);
	}
	if (fd >= 0)
		close(fd); /* the mapping keeps the memory */
	if (!is_made) {
		psd_repeated_memory_close(&made);
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for messages of %.0f MB",
				     1e-6 * (double)n_bytes);
	}
	*repeated = made;
	return PSD_OK;
}

void psd_repeated_memory_close(struct psd_repeated_memory *repeated)
{
	if (repeated->base)
		munmap(repeated->base, repeated->length_bytes);
	*repeated = (struct psd_repeated_memory){.base = NULL};
}
