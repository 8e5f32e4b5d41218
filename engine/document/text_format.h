/* Text format of protocol buffers as a tree of nodes. A message becomes a mapping in which keys may repeat; a field
 * with a value becomes a scalar. Private to the engine. These are errors: extensions and Any, nesting deeper than 32,
 * more than a million fields, files over 16 MiB. */
#ifndef PSD_TEXT_FORMAT_H
#define PSD_TEXT_FORMAT_H

#include <stddef.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/document/document.h"

/* Parses length bytes of text, which messages call `path`. *root: the tree. The arena owns its nodes and strings, and
 * the caller releases it, also after a failure. PSD_EINVAL with a place, PSD_ENOMEM. */
enum psd_status psd_text_format_parse(const struct psd_node **root, struct psd_arena *arena, const char *path,
				      const char *text, size_t length, struct psd_error *err) PSD_MUST_CHECK;

#endif
