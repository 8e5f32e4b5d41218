/* Protocol buffers' text format as a tree of nodes: a message is a mapping whose keys may repeat, a field is a scalar.
 * Private to the engine. Refuses: extensions and Any, nesting deeper than 32, more than a million fields, files over 16
 * MiB. */
#ifndef PSD_TEXT_FORMAT_H
#define PSD_TEXT_FORMAT_H

#include <stddef.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/document/document.h"

/* Parses length bytes of text named path in messages. Nodes and strings live in the arena, which the caller releases,
 * also after a failure. PSD_EINVAL with place, PSD_ENOMEM. */
enum psd_status psd_text_format_parse(const struct psd_node **root, struct psd_arena *arena, const char *path,
				      const char *text, size_t length, struct psd_error *err) PSD_MUST_CHECK;

#endif
