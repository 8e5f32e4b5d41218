/* The files that this process reads, so that no output takes the place of one. Whoever opens a file or lists it notes
 * it here; the schema notes what a scenario names, read or not. A file is known by device and inode: no other spelling,
 * hard link or symbolic link hides it. From one thread at a time. */
#ifndef PSD_INPUTS_H
#define PSD_INPUTS_H

#include <stdbool.h>

#include "engine/base/error.h"

/* Nothing happens where there is no plain file. */
void psd_inputs_note(const char *path);
/* Whether the file at path was noted. */
bool psd_inputs_have(const char *path);

/* The same file by a shorter path: without "." and "x/..", unless that would name another file, as behind a symbolic
 * link, or none can be found. The caller's to free(); NULL: out of memory. */
char *psd_inputs_shorten_path(const char *path) PSD_MUST_CHECK;

#endif
