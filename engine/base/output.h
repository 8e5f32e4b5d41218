/* Files that a program writes. New files appear at their paths together, when the program has succeeded, except those
 * of psd_output_show(). Until then older files at these paths stay unchanged. If the process ends in another way, even
 * by SIGKILL, no new files remain. A symbolic link is followed. If the path is a device or a pipe, the output is
 * written to it directly. An output is refused if its path is an input of this process (inputs.h), or is already the
 * path of another output. Only one thread at a time may call these functions. */
#ifndef PSD_OUTPUT_H
#define PSD_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "engine/base/error.h"

/* Checks that an output may replace the file at `path`. PSD_EINVAL: that file is an input of this process (inputs.h).
 * */
enum psd_status psd_output_check(const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Called before anything is written. Checks that a file may be written at `path` later, by psd_output_open() or in
 * another way, and reserves the path, so that no other output can use it. PSD_EINVAL: the file is an input of this
 * process (inputs.h), or the path is reserved. PSD_ENOMEM. */
enum psd_status psd_output_claim(const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Reserves paths for files that are written without psd_output_open(), so that no other output can use them. folder:
 * need not exist yet. name: pattern of file names as in a shell, in which '*' also matches slashes. PSD_ENOMEM. */
enum psd_status psd_output_reserve(const char *folder, const char *name, struct psd_error *err) PSD_MUST_CHECK;

/* Opens a file for writing by the caller, or by a process that the caller forks, and sets *out. The file is closed by
 * psd_outputs_commit(), psd_output_discard() or psd_outputs_discard(). The new file has the permissions of the file
 * that it replaces. PSD_EINVAL: the file is an input (inputs.h) or another output of this process. PSD_EFILE: it cannot
 * be written. PSD_ENOMEM. */
enum psd_status psd_output_open(FILE **out, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Writes bytes to a file of psd_output_open(). psd_outputs_commit() finds errors of writing. Other code of the engine
 * does not write. */
void psd_output_write(FILE *out, const void *bytes, size_t n_bytes);
/* If all open files were written without an error, moves them to their paths, the last opened one first. PSD_ERUN: one
 * could not be written or moved; then all are discarded, except those that were already moved. */
enum psd_status psd_outputs_commit(struct psd_error *err) PSD_MUST_CHECK;
/* Closes the file and discards it; the older file at its path stays. Does nothing if out is NULL.
 * psd_outputs_discard() does it with all open files. */
void psd_output_discard(FILE *out);
void psd_outputs_discard(void);
/* Moves the file to its path now; text that is written later is added to it there. The caller closes the file by
 * psd_output_discard(), which does not remove it then. Returns false on failure; errno has the reason. */
bool psd_output_show(FILE *out);
/* Opens /dev/null for closed standard streams, in a direction in which their use fails, so that no file that is opened
 * later becomes one of them. Returns false if that is not possible. */
bool psd_output_fill_streams(void) PSD_MUST_CHECK;
bool psd_output_is_terminal(void);
/* Returns the number of characters in a line of the terminal on standard output; 80 if standard output is not a
 * terminal or its width is not known. */
int psd_output_terminal_width(void);
/* Removes the temporary files of all open outputs, where these have a name. It may be called by a signal handler that
 * ends the process. */
void psd_outputs_remove(void);
/* Lets a write to a closed pipe, or past a limit on file sizes, fail instead of ending the process. A signal that ends
 * it removes the temporary files first. Signals that are ignored at the start, for example by nohup, stay ignored. */
void psd_outputs_heed_signals(void);

#endif
