#include "sim/output/link_tracks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/grow.h"
#include "engine/base/units.h"

static void add_change(struct psd_link_tracks *tracks, struct psd_link_change change)
{
	void *grown = psd_grown(tracks->changes, tracks->n, &tracks->room, sizeof(*tracks->changes));

	if (!grown) {
		tracks->is_out_of_memory = true;
		return;
	}
	tracks->changes = grown;
	tracks->changes[tracks->n++] = change;
}

static void add_flow(struct psd_link_tracks *tracks, unsigned from, unsigned to, uint64_t bytes,
		     const struct psd_span *span)
{
	const double sec = span->end_sec - span->start_sec, bps = sec > 0.0 ? 8.0 * (double)bytes / sec : 0.0;
	unsigned links[PSD_ROUTE_LINKS];
	const unsigned n = from == to || bytes == 0 ? 0 : psd_network_way(from, to, links, PSD_ROUTE_LINKS);

	for (unsigned i = 0; i < n; i++) {
		if (!psd_platform_is_shared(&tracks->platform, links[i]))
			continue;
		add_change(tracks, (struct psd_link_change){span->start_sec, bps, 0, links[i], false});
		add_change(tracks, (struct psd_link_change){span->end_sec, -bps, bytes, links[i], true});
	}
}

/* A send's messages have spans of their own, which are arrivals. */
void psd_link_tracks_add(struct psd_link_tracks *tracks, const struct psd_program *program, const struct psd_span *span)
{
	const struct psd_op *op = &program->ops[span->task.op];
	struct psd_flow flow;

	if (span->is_arrival)
		add_flow(tracks, span->peer, span->host, span->bytes, span);
	else if (psd_op_is_collective(op))
		for (unsigned i = 0; psd_payload_flow(&op->payload, &program->plan->layout, span->host, i, &flow); i++)
			add_flow(tracks, span->host, flow.to, flow.elements * op->payload.value_bytes, span);
}

/* Changes that are equal in these may have any order, as only their sums count. */
static int compare_changes(const void *left, const void *right)
{
	const struct psd_link_change *a = left, *b = right;

	if (a->link != b->link)
		return a->link < b->link ? -1 : 1;
	if (a->at_sec != b->at_sec)
		return a->at_sec < b->at_sec ? -1 : 1;
	return (a->bps > b->bps) - (a->bps < b->bps);
}

/* Appends the counters of the link whose changes begin at `first`. Returns the number of the next link's first. */
static uint32_t add_track(const struct psd_link_tracks *tracks, struct psd_text *text, unsigned pid, uint32_t first)
{
	const struct psd_link_change *changes = tracks->changes;
	char name[PSD_LINK_NAME], rate[PSD_UNITS_TEXT_MAX], words[PSD_LINK_NAME + PSD_UNITS_TEXT_MAX + 8];
	const double link_bps = psd_network_describe_link(changes[first].link, name);
	double bps = 0.0;
	uint64_t bytes = 0;
	int64_t n_flows = 0;
	uint32_t i = first;

	snprintf(words, sizeof(words), "%s of %s", name, psd_units_write_rate(link_bps, rate));
	while (i < tracks->n && changes[i].link == changes[first].link) {
		const double at_sec = changes[i].at_sec;

		for (; i < tracks->n && changes[i].link == changes[first].link && changes[i].at_sec == at_sec; i++) {
			bps += changes[i].bps;
			bytes += changes[i].bytes;
			n_flows += changes[i].is_end ? -1 : 1;
		}
		bps = n_flows > 0 ? bps : 0.0; /* sums of rates leave a rest */
		psd_text_add(text, ",\n{\"name\":");
		psd_text_add_json(text, words);
		psd_text_add(text,
			     ",\"ph\":\"C\",\"pid\":%u,\"ts\":%.3f,\"args\":{\"bit/s\":%.9g,\"bytes\":%" PRIu64 "}}",
			     pid, 1e6 * at_sec, bps, bytes);
	}
	return i;
}

void psd_link_tracks_add_text(struct psd_link_tracks *tracks, struct psd_text *text, unsigned pid)
{
	if (tracks->n > 0) {
		qsort(tracks->changes, tracks->n, sizeof(*tracks->changes), compare_changes);
		psd_text_add(text,
			     ",\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%u,\"args\":{\"name\":\"links\"}}",
			     pid);
	}
	for (uint32_t i = 0; i < tracks->n;)
		i = add_track(tracks, text, pid, i);
	text->is_out_of_memory |= tracks->is_out_of_memory;
}

void psd_link_tracks_release(struct psd_link_tracks *tracks)
{
	free(tracks->changes);
	*tracks = (struct psd_link_tracks){.changes = NULL};
}
