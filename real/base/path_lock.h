/* Locks on the names of files that a run writes, so that two runs on a machine do not write the same one. A file that
 * is written may have no name yet, and the file at its path is replaced later. So the lock is on its name in its
 * folder: neither another spelling nor a link hides it, and nothing stays behind when the process ends. */
#ifndef PSD_REAL_PATH_LOCK_H
#define PSD_REAL_PATH_LOCK_H

#include "engine/base/error.h"

/* Locks the file at path, which need not exist. The lock ends when the caller and all processes that inherit
 * *descriptor have closed it. *descriptor is -1, and nothing is locked, for a path that names no plain file, and where
 * the file system has no locks. Waits a moment for the processes of a run that was killed. said: path in the message.
 * PSD_EFILE: another process has the lock; PSD_ENOMEM. */
enum psd_status psd_path_lock(const char *path, const char *said, int *descriptor,
			      struct psd_error *err) PSD_MUST_CHECK;

#endif
