/* The files that a program writes. All of them come into their places together, when it has succeeded, but for those
 * that it shows earlier; until then what was there stays whole, and after any other end, SIGKILL too, nothing new lies
 * beside it. A symbolic link is followed, as a shell does: what it names is replaced. What is no plain file (a device,
 * a pipe) is written directly. Refuses to replace what the process reads (inputs.h) or writes already. From one thread
 * at a time. */
#ifndef PSD_OUTPUT_H
#define PSD_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "engine/base/error.h"

/* *out is to be written by the caller and closed by one of the next three; a process that was forked meanwhile may
 * write it, too. A file that is replaced leaves its mode to the new one. PSD_EINVAL: it is in use; PSD_EFILE: it cannot
 * be written; PSD_ENOMEM. */
enum psd_status psd_output_open(FILE **out, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Puts all that are open into their places, the last one first, if every one of them could be written. PSD_ERUN:
 * something could not; then they are discarded, but for those that are in their places already. */
enum psd_status psd_outputs_commit(struct psd_error *err) PSD_MUST_CHECK;
/* As if it had never been opened. NULL: nothing. */
void psd_output_discard(FILE *out);
void psd_outputs_discard(void);
/* Puts it into its place now, where what is written later appears; it is to be discarded, which leaves it there. False:
 * errno. */
bool psd_output_show(FILE *out);
/* Characters in a line of the terminal on standard output; 80 where there is none, or it does not say. */
int psd_output_terminal_width(void);
/* For a handler of a signal that ends the process: takes away what a file system without nameless files needs. */
void psd_outputs_remove(void);

#endif
