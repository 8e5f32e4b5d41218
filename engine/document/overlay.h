/* Applies settings of the command line to a document's tree: "cluster.nodes=4", "systems.0.sync=ring". The document
 * itself stays unchanged: all nodes between the root and the value are copied. Private to the engine. */
#ifndef PSD_OVERLAY_H
#define PSD_OVERLAY_H

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/document/document.h"

/* Replaces *root by a tree in which the node that `setting` ("key.path=value") names has that value: plain, or a list
 * of plain ones ("[1, 2]"). A number in the path counts the entries of a list from 0. Missing keys and mappings are
 * added. The new value may be of another kind, a scalar instead of a list; the reader of the tree accepts or refuses
 * it. New nodes have the place "--set key.path" and live in arena, the others remain in their document. PSD_EINVAL,
 * PSD_ENOMEM: *root is unchanged. */
enum psd_status psd_overlay_set(const struct psd_node **root, const char *setting, struct psd_arena *arena,
				struct psd_error *err) PSD_MUST_CHECK;

#endif
