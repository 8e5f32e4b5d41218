/* List of the input files of this process, which no output may overwrite. Code that opens a file notes it here. Files
 * that must stay although they are not read are noted as well: all files that a scenario names, and checkpoints in the
 * folder of --save. Files are identified by device and inode, so another spelling of the path or a link is the same
 * file. Only one thread at a time may call these functions. */
#ifndef PSD_INPUTS_H
#define PSD_INPUTS_H

#include <stdbool.h>

#include "engine/base/error.h"

/* Notes the file at `path` as an input. Does nothing if there is no regular file. */
void psd_inputs_note(const char *path);
/* True if the file at `path` was noted, under any path. */
bool psd_inputs_have(const char *path);

/* Returns the path without "." and "x/..". If the shorter path would name another file, as behind a symbolic link,
 * returns an unchanged copy. The caller frees it. NULL: out of memory. */
char *psd_inputs_shorten_path(const char *path) PSD_MUST_CHECK;
/* Returns the absolute path after all symbolic links are followed; there need not be a file. The caller frees it.
 * NULL: failure, errno has the reason. */
char *psd_inputs_resolve_path(const char *path) PSD_MUST_CHECK;

#endif
