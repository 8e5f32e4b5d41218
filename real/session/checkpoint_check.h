/* Checks whether the files of a checkpoint are undamaged: they can be read, their metadata name the host and the
 * iterations that the file names say, and all are of one run. Knows nothing of models and systems: that run may still
 * be another one than the run that resumes. */
#ifndef PSD_REAL_CHECKPOINT_CHECK_H
#define PSD_REAL_CHECKPOINT_CHECK_H

#include "real/session/checkpoint.h"

/* Checks the files of all hosts of the checkpoint *set if they are here, otherwise only this host's file. host: as in
 * psd_checkpoints_find(). PSD_ENOMEM; any other status means that a file is missing, damaged or of another run than the
 * others, and the text says which and why. */
enum psd_status psd_checkpoint_check(const struct psd_checkpoints *checkpoints, const struct psd_checkpoint_set *set,
				     struct psd_checkpoint_host host, struct psd_error *err) PSD_MUST_CHECK;

#endif
