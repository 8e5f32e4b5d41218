/* Limit of a prediction: the resource that bounds its speed, in parts. Its text is that of the column `limit`; its
 * words are for a sentence. */
#ifndef PSD_SIM_LIMIT_H
#define PSD_SIM_LIMIT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/text.h"

enum psd_limit_kind {
	PSD_LIMIT_NONE, /* no limit is known */
	PSD_LIMIT_DEVICE,
	PSD_LIMIT_LINK,
	PSD_LIMIT_LOCAL, /* links inside a node */
	PSD_LIMIT_STACK,
	PSD_LIMIT_COPIES, /* between device and host */
	PSD_LIMIT_SERVERS,
	PSD_LIMIT_UPLINKS,
	PSD_LIMIT_BUDGET,
	PSD_LIMIT_CORES,
	PSD_LIMIT_JITTER,
	PSD_LIMIT_WAITING, /* for latency, or for stages that cannot overlap */
};

/* A struct of all zeros is no limit. */
struct psd_limit {
	enum psd_limit_kind kind;
	bool is_in_turn; /* the device works in turn with the resource */
	/* The resource is the device or link of one slow node, or of one group of nodes. */
	bool has_place, is_group;
	unsigned number; /* number of that node or group */
};

/* Writes the text of the column: "device+link", "node 3", "link of group 1"; "" for no limit. */
void psd_limit_write(const struct psd_limit *limit, char *text, size_t room);
/* Appends words: "the device and the link in turn", "node 3", "the link of group 1". */
void psd_limit_add(struct psd_text *text, const struct psd_limit *limit);

#endif
