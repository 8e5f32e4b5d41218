/* A lock is a byte of the folder: the name chooses a block of bytes, the process's number the byte in it. A folder can
 * only be opened for reading, so the byte is locked for reading, which excludes nobody. Each process therefore locks
 * its byte first, then asks whether any other one of the block is locked. Two processes that see each other try
 * again. */
#define _GNU_SOURCE
#include "real/base/path_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/hash.h"
#include "engine/base/inputs.h"

enum { PROCESS_BITS = 22, NAME_BITS = 40 }; /* Linux has 2^22 processes at most */
/* The processes of a killed run end within this time. */
enum { TRIES = 20, TRY_MS = 100 };

/* Returns the number of another process that has the lock; 0: this process has it now, or there are no locks. */
static pid_t try_lock(int folder, off_t block)
{
	struct flock own = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = block + getpid(), .l_len = 1};
	struct flock other = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = block, .l_len = (off_t)1 << PROCESS_BITS};

	if (fcntl(folder, F_OFD_SETLK, &own) || fcntl(folder, F_OFD_GETLK, &other) || other.l_type == F_UNLCK)
		return 0;
	own.l_type = F_UNLCK;
	(void)fcntl(folder, F_OFD_SETLK, &own);
	return (pid_t)(other.l_start - block);
}

static enum psd_status lock_name(int folder, const char *name, const char *said, struct psd_error *err)
{
	const uint64_t hash = psd_hash_bytes(PSD_HASH_START, name, strlen(name));
	const off_t block = (off_t)(hash >> (64 - NAME_BITS) << PROCESS_BITS);
	pid_t holder = try_lock(folder, block);

	for (unsigned tries = 1; holder && tries < TRIES; tries++) {
		(void)poll(NULL, 0, TRY_MS);
		holder = try_lock(folder, block);
	}
	return holder ? psd_error_set(err, PSD_EFILE, (struct psd_place){.path = said},
				      "is being written by another run (process %d)", (int)holder)
		      : PSD_OK;
}

enum psd_status psd_path_lock(const char *path, const char *said, int *descriptor, struct psd_error *err)
{
	struct stat about;
	char *place, *slash;

	*descriptor = -1;
	if (!stat(path, &about) && !S_ISREG(about.st_mode))
		return PSD_OK;
	place = psd_inputs_resolve_path(path);
	if (!place)
		return errno == ENOMEM ? psd_out_of_memory(err) : PSD_OK;
	slash = strrchr(place, '/');
	*slash = '\0';
	const int folder = open(slash == place ? "/" : place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const enum psd_status status = folder < 0 ? PSD_OK : lock_name(folder, slash + 1, said, err);
	free(place);
	if (status)
		close(folder);
	else
		*descriptor = folder;
	return status;
}
