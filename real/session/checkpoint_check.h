/* Judges whether a checkpoint is whole: its files can be read, and hold the host and the iterations that their names
 * say. Knows nothing of models and systems: a whole checkpoint may still be of another run. */
#ifndef PSD_REAL_CHECKPOINT_CHECK_H
#define PSD_REAL_CHECKPOINT_CHECK_H

#include "real/session/checkpoint.h"

/* Checks the files of all the set's hosts if they are here, else the host's own. host: as in psd_checkpoints_find().
 * PSD_ENOMEM; any other failure means that the checkpoint is not whole, and the text says why. */
enum psd_status psd_checkpoint_check(const struct psd_checkpoints *checkpoints, const struct psd_checkpoint_set *set,
				     struct psd_checkpoint_host host, struct psd_error *err) PSD_MUST_CHECK;

#endif
