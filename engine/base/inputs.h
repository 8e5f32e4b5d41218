/* The files that a run reads or keeps: no output may overwrite one. Code that opens or lists a file notes it here; the
 * schema notes each file that a scenario names, read or not. Device and inode identify a file, so that no other
 * spelling and no link hides it. From one thread at a time. */
#ifndef PSD_INPUTS_H
#define PSD_INPUTS_H

#include <stdbool.h>

#include "engine/base/error.h"

/* Records that this process reads the file at path. Does nothing without a plain file there. */
void psd_inputs_note(const char *path);
/* True if the file at path was recorded as read. */
bool psd_inputs_have(const char *path);
/* Calls visit with the path of each file that was noted, as it was spelt then; of the first thousands if there are
 * more. For tests, which hold every output against every file. */
void psd_inputs_visit(void (*visit)(void *context, const char *path), void *context);

/* Returns the path without "." and "x/.."; unchanged where the shorter one would not name the same file, as behind a
 * symbolic link. The caller frees it; NULL: out of memory. */
char *psd_inputs_shorten_path(const char *path) PSD_MUST_CHECK;
/* Returns the absolute path behind all links, with or without a file there. The caller frees it; NULL: errno. */
char *psd_inputs_resolve_path(const char *path) PSD_MUST_CHECK;

#endif
