/* Locks on files that a run writes, so that two runs on a machine do not write the same file. A file that is being
 * written may have no name yet, and the file at its path is replaced later. So not the file is locked, but its name in
 * its folder. The lock also works if the other run uses another spelling of the path, or a link. It leaves nothing
 * behind when the process ends. */
#ifndef PSD_REAL_PATH_LOCK_H
#define PSD_REAL_PATH_LOCK_H

#include "engine/base/error.h"

/* Locks the file at path, which need not exist. The lock ends when the caller and all processes that inherit
 * *descriptor have closed it. If the path cannot be locked, *descriptor becomes -1 and the result is PSD_OK: the path
 * names something other than a regular file, or the file system has no locks. Waits a short time for processes of a run
 * that was killed. said: path as written in the message. PSD_EFILE: another process has the lock; PSD_ENOMEM. */
enum psd_status psd_path_lock(const char *path, const char *said, int *descriptor,
			      struct psd_error *err) PSD_MUST_CHECK;

#endif
