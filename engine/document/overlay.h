/* Applies --set options of the command line, such as "cluster.nodes=4" or "systems.0.sync=ring", to the tree of a
 * document. The document itself does not change: all nodes from the root to the value are copied. Private to the
 * engine. */
#ifndef PSD_OVERLAY_H
#define PSD_OVERLAY_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/document/document.h"

/* A setting is "key.path=value". A setting that another option than --set made is "--option prefix. key=value": its
 * path is prefix.key, and messages name "--option key". With an empty key, as in "--option path =value", the path is
 * the prefix alone, and messages name "--option".
 *
 * Replaces *root by a tree in which the node at the path of `setting` ("key.path=value") has that value: a scalar, or a
 * list of scalars ("[1, 2]"). A number in the path is the index of a list's entry, from 0, and another step the `name`
 * of an entry. Missing keys and mappings are added; an empty value ("key.path=") removes the key. The new value may be
 * of another kind than the old one; the reader of the tree checks it. New nodes have the place "--set key.path" (or of
 * the option) and are owned by the arena; the other nodes still belong to their document. PSD_EINVAL: the setting is
 * malformed, or there is no key to remove. PSD_EINVAL, PSD_ENOMEM: *root is unchanged. at: NULL, or a place of new
 * nodes in place of "--set"; its path is borrowed as long as they exist, and an empty value is set as a scalar. */
enum psd_status psd_overlay_set(const struct psd_node **root, const char *setting, const struct psd_place *at,
				struct psd_arena *arena, struct psd_error *err) PSD_MUST_CHECK;
/* True if the first `length` bytes of `step` name the child: by its key, or in a list by its position or its own
 * `name`. Pure. */
bool psd_overlay_names(const struct psd_node *parent, const struct psd_node *child, unsigned position, const char *step,
		       size_t length);
/* Appends the option and the key of a setting, as places of its nodes have them: "--set key.path". */
void psd_overlay_add_name(struct psd_text *text, const char *setting);

#endif
