/* The files that a program writes. Output files appear together when the program has succeeded, except those that it
 * shows earlier. Until then older files stay whole, and no other end, not even SIGKILL, leaves new files behind. A
 * symbolic link is followed, as a shell does. A path that names no plain file (a device, a pipe) is written directly.
 * Refuses to replace a file that the process reads or keeps (inputs.h) or already writes. From one thread at a time. */
#ifndef PSD_OUTPUT_H
#define PSD_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "engine/base/error.h"

/* Checks that an output may replace the file at path. PSD_EINVAL: this run reads or keeps it. */
enum psd_status psd_output_check(const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Before anything is written: checks that a file may be written at path, where psd_output_open() or another writer puts
 * it later, and takes the path for it, so that no other output gets it. PSD_EINVAL: it is read, kept or taken;
 * PSD_ENOMEM. */
enum psd_status psd_output_claim(const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Takes names in a folder, which need not exist yet, for files that are written by other means. A name is a shell's
 * pattern; its star matches slashes, too. PSD_ENOMEM. */
enum psd_status psd_output_reserve(const char *folder, const char *name, struct psd_error *err) PSD_MUST_CHECK;

/* Opens *out for writing by the caller, or by a process that it forks; one of the next three functions closes it. The
 * new file has the mode of the one that it replaces. PSD_EINVAL: the file is in use; PSD_EFILE: it cannot be written;
 * PSD_ENOMEM. */
enum psd_status psd_output_open(FILE **out, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Moves all open files to their paths, the last one first, if every one could be written. PSD_ERUN: one could not; then
 * all are discarded, except those already moved. */
enum psd_status psd_outputs_commit(struct psd_error *err) PSD_MUST_CHECK;
/* Closes the file and discards its contents, as if it had never been opened. NULL: does nothing. */
void psd_output_discard(FILE *out);
void psd_outputs_discard(void);
/* Moves the file to its path now; text written later appears there. The caller then discards it, which leaves it there.
 * False: errno tells the reason. */
bool psd_output_show(FILE *out);
/* Number of characters in a line of the terminal on standard output; 80 if unknown. */
int psd_output_terminal_width(void);
/* Removes temporary files that have names; for a handler of a signal that ends the process. */
void psd_outputs_remove(void);

#endif
