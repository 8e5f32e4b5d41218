/* Names of limits, for columns and for sentences. */
#include "sim/output/limit.h"

#include <stdio.h>

static const struct {
	const char *name, *words;
} names[] = {
	[PSD_LIMIT_NONE] = {"", "a resource that is not known"},
	[PSD_LIMIT_DEVICE] = {"device", "the device"},
	[PSD_LIMIT_LINK] = {"link", "the link"},
	[PSD_LIMIT_LOCAL] = {"local link", "the links inside a node"},
	[PSD_LIMIT_STACK] = {"stack", "the software stack"},
	[PSD_LIMIT_COPIES] = {"copies", "copies to and from the device"},
	[PSD_LIMIT_SERVERS] = {"servers", "the servers"},
	[PSD_LIMIT_UPLINKS] = {"uplinks", "the uplinks of the racks"},
	[PSD_LIMIT_BUDGET] = {"budget", "the budget"},
	[PSD_LIMIT_CORES] = {"cores", "the processor cores"},
	[PSD_LIMIT_JITTER] = {"jitter", "jitter"},
	[PSD_LIMIT_WAITING] = {"waiting", "latency and stages that cannot overlap"},
};

/* Writes "node 3", or "link of group 1" behind the article. */
static void write_place(const struct psd_limit *limit, const char *article, char *text, size_t room)
{
	const bool is_link = limit->kind == PSD_LIMIT_LINK;

	snprintf(text, room, "%s%s%s %u", is_link ? article : "", is_link ? "link of " : "",
		 limit->is_group ? "group" : "node", limit->number);
}

void psd_limit_write(const struct psd_limit *limit, char *text, size_t room)
{
	char place[32];

	write_place(limit, "", place, sizeof(place));
	snprintf(text, room, "%s%s", limit->is_in_turn ? "device+" : "",
		 limit->has_place ? place : names[limit->kind].name);
}

void psd_limit_add(struct psd_text *text, const struct psd_limit *limit)
{
	char place[32];

	write_place(limit, "the ", place, sizeof(place));
	psd_text_add(text, "%s%s%s", limit->is_in_turn ? "the device and " : "",
		     limit->has_place ? place : names[limit->kind].words, limit->is_in_turn ? " in turn" : "");
}
