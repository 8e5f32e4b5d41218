/* Checkpoints of a host: written between two iterations, read before the first. Called by the thread that executes the
 * device's operations, except psd_host_begin_saving(). */
#ifndef PSD_REAL_SAVE_H
#define PSD_REAL_SAVE_H

#include "real/keep/host.h"
#include "real/keep/old_checkpoint.h"

/* Writes this host's file of the checkpoint before `iteration`; host 0 also writes the file of parameters. PSD_EFILE: a
 * file cannot be created; PSD_ERUN: a file cannot be written completely; PSD_EINVAL: a tensor's name is too long;
 * PSD_ENOMEM. */
enum psd_status psd_host_save(struct psd_host *host, uint32_t iteration, struct psd_error *err) PSD_MUST_CHECK;
/* Removes this host's files of those checkpoints that an earlier run saved after the iteration at which this run
 * starts. Called when all hosts have joined and start at the same iteration. PSD_EFILE: a file cannot be removed. */
enum psd_status psd_host_begin_saving(const struct psd_host *host, struct psd_error *err) PSD_MUST_CHECK;
/* Reads this host's file of the checkpoint before options->first_iteration. PSD_EINVAL: the file is damaged, or belongs
 * to another run; PSD_EFILE: it cannot be opened; PSD_ENOMEM, PSD_ERUN as psd_state_read(). */
enum psd_status psd_host_restore(struct psd_host *host, struct psd_error *err) PSD_MUST_CHECK;
/* Stores the hashes of the run that wrote a checkpoint in host->saved_run_hash and saved_terms_hash, from which the
 * hash of a run that continues it is made. */
void psd_host_take_hashes(struct psd_host *host, const struct psd_old_checkpoint_notes *notes);
/* Reads a checkpoint that other hosts (options->from_hosts) or another system have written, see reshape.c. Parameters
 * are copied only to this host's memory, not to the device. Host 0 prints a line about values that are not in the
 * checkpoint and begin with their initial values. Statuses as psd_host_restore(); PSD_EINVAL also if model or optimiser
 * differ. */
enum psd_status psd_host_reshape(struct psd_host *host, struct psd_error *err) PSD_MUST_CHECK;
/* Reads initial parameters and running statistics from the file of the key 'train.start'. Host 0 prints a line about
 * values that the file lacks. PSD_EINVAL: the file has no tensor of this model, or a tensor of another shape; other
 * statuses as psd_host_restore(). */
enum psd_status psd_host_read_start(struct psd_host *host, struct psd_error *err) PSD_MUST_CHECK;

#endif
