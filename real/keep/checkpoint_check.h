/* Checks whether the files of a checkpoint are undamaged. They must be readable, their metadata must have the host and
 * the iterations of their names, and all must belong to one run. That run may be another one than the run that resumes,
 * because this module does not check model and system. */
#ifndef PSD_REAL_CHECKPOINT_CHECK_H
#define PSD_REAL_CHECKPOINT_CHECK_H

#include "real/keep/checkpoint.h"

/* Checks the files of all hosts of the checkpoint *set if this folder has all of them, otherwise only this host's file.
 * host: as in psd_checkpoints_find(). PSD_ENOMEM. Any other status means that a file is missing, damaged, or of another
 * run than the others; the text names the file and the reason. */
enum psd_status psd_checkpoint_check(const struct psd_checkpoints *checkpoints, const struct psd_checkpoint_set *set,
				     struct psd_checkpoint_host host, struct psd_error *err) PSD_MUST_CHECK;

#endif
