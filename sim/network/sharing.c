#include "sim/network/sharing.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/grow.h"

static const double simgrid_precision_sec = 1e-9; /* SimGrid ends flows together that end in this time */

bool psd_sharing_init(struct psd_sharing *sharing, unsigned n_links)
{
	*sharing = (struct psd_sharing){.n_links = n_links, .next_sec = INFINITY};
	sharing->links = calloc(n_links, sizeof(*sharing->links));
	sharing->open = calloc(n_links, sizeof(*sharing->open));
	return sharing->links && sharing->open;
}

void psd_sharing_release(struct psd_sharing *sharing)
{
	free(sharing->links);
	free(sharing->flows);
	free(sharing->ended);
	free(sharing->of_links);
	free(sharing->open);
	*sharing = (struct psd_sharing){.links = NULL};
}

bool psd_sharing_add(struct psd_sharing *sharing, const struct psd_sharing_flow *flow)
{
	struct psd_sharing_flow *grown =
		psd_grown(sharing->flows, sharing->n_flows, &sharing->room, sizeof(*sharing->flows));

	if (!grown)
		return false;
	sharing->flows = grown;
	if (sharing->ended_room < sharing->room) {
		struct psd_sharing_flow *ended = realloc(sharing->ended, sharing->room * sizeof(*ended));

		if (!ended)
			return false;
		sharing->ended = ended;
		sharing->ended_room = sharing->room;
	}
	grown[sharing->n_flows] = *flow;
	grown[sharing->n_flows].rate = 0.0;
	grown[sharing->n_flows].end_sec = INFINITY;
	grown[sharing->n_flows++].number = sharing->n_begun++;
	return true;
}

bool psd_sharing_is_due(const struct psd_sharing *sharing, double now_sec)
{
	return sharing->next_sec - now_sec < simgrid_precision_sec;
}

static int compare(const void *left, const void *right)
{
	const struct psd_sharing_flow *a = left, *b = right;

	return a->number < b->number ? -1 : 1;
}

/* Moves the flows that are due to `ended`, in the order in which they began. */
static void end_due(struct psd_sharing *sharing, double now_sec)
{
	uint32_t n_kept = 0;

	sharing->n_ended = sharing->next_ended = 0;
	sharing->next_sec = INFINITY;
	for (uint32_t f = 0; f < sharing->n_flows; f++) {
		const struct psd_sharing_flow *flow = &sharing->flows[f];

		if (flow->end_sec - now_sec < simgrid_precision_sec) {
			sharing->ended[sharing->n_ended++] = *flow;
			continue;
		}
		sharing->next_sec = fmin(sharing->next_sec, flow->end_sec);
		if (f != n_kept)
			sharing->flows[n_kept] = *flow;
		n_kept++;
	}
	sharing->n_flows = n_kept;
	qsort(sharing->ended, sharing->n_ended, sizeof(*sharing->ended), compare);
}

bool psd_sharing_take_ended(struct psd_sharing *sharing, double now_sec, struct psd_sharing_flow *ended)
{
	if (sharing->next_ended == sharing->n_ended && psd_sharing_is_due(sharing, now_sec))
		end_due(sharing, now_sec);
	if (sharing->next_ended == sharing->n_ended)
		return false;
	*ended = sharing->ended[sharing->next_ended++];
	return true;
}

/* ---- rates ---- */

/* Lists the flows of each link. */
static bool open_links(struct psd_sharing *sharing, uint32_t *n_open)
{
	uint32_t n = 0;

	for (unsigned l = 0; l < sharing->n_links; l++) {
		sharing->links[l].n_flows = 0.0;
		sharing->links[l].n_open = sharing->links[l].n_known = 0;
		sharing->links[l].left = sharing->links[l].rate;
	}
	for (uint32_t f = 0; f < sharing->n_flows; f++)
		for (unsigned u = 0; u < sharing->flows[f].n_uses; u++) {
			struct psd_sharing_link *link = &sharing->links[sharing->flows[f].uses[u].link];

			link->n_open++;
			link->n_flows += sharing->flows[f].uses[u].n_flows;
		}
	*n_open = 0;
	for (unsigned l = 0; l < sharing->n_links; l++) {
		sharing->links[l].first = n;
		n += sharing->links[l].n_open;
		if (sharing->links[l].n_open > 0)
			sharing->open[(*n_open)++] = l;
	}
	if (n > sharing->of_room) {
		uint32_t *grown = realloc(sharing->of_links, 2 * (size_t)n * sizeof(*grown));

		if (!grown)
			return false;
		sharing->of_links = grown;
		sharing->of_room = 2 * n;
	}
	for (uint32_t f = 0; f < sharing->n_flows; f++)
		for (unsigned u = 0; u < sharing->flows[f].n_uses; u++) {
			struct psd_sharing_link *link = &sharing->links[sharing->flows[f].uses[u].link];

			sharing->of_links[link->first + link->n_known++] = f;
		}
	return true;
}

static void fix(struct psd_sharing *sharing, struct psd_sharing_flow *flow, double rate)
{
	flow->rate = rate;
	for (unsigned u = 0; u < flow->n_uses; u++) {
		struct psd_sharing_link *link = &sharing->links[flow->uses[u].link];

		link->left = fmax(0.0, link->left - rate * flow->uses[u].n_flows);
		link->n_flows -= flow->uses[u].n_flows;
		link->n_open--;
	}
}

/* Returns the index in `open` of the link with the smallest share for each flow, and drops links without flows. */
static uint32_t smallest(struct psd_sharing *sharing, uint32_t *n_open)
{
	uint32_t found = 0;
	double least = INFINITY;

	for (uint32_t i = 0; i < *n_open;) {
		const struct psd_sharing_link *link = &sharing->links[sharing->open[i]];

		if (link->n_open == 0) {
			sharing->open[i] = sharing->open[--*n_open];
			continue;
		}
		if (link->left < least * link->n_flows) {
			least = link->left / link->n_flows;
			found = i;
		}
		i++;
	}
	return found;
}

bool psd_sharing_solve(struct psd_sharing *sharing, double now_sec)
{
	uint32_t n_open;

	for (uint32_t f = 0; f < sharing->n_flows; f++) {
		struct psd_sharing_flow *flow = &sharing->flows[f];

		flow->left_bytes = fmax(0.0, flow->left_bytes - flow->rate * (now_sec - sharing->now_sec));
		flow->rate = -1.0;
	}
	sharing->now_sec = now_sec;
	sharing->n_visits += sharing->n_flows;
	if (!open_links(sharing, &n_open))
		return false;
	while (n_open > 0) {
		const uint32_t i = smallest(sharing, &n_open);

		if (n_open == 0)
			break;
		const struct psd_sharing_link *link = &sharing->links[sharing->open[i]];
		const double rate = link->left / link->n_flows;

		for (uint32_t k = 0; k < link->n_known; k++) {
			struct psd_sharing_flow *flow = &sharing->flows[sharing->of_links[link->first + k]];

			if (flow->rate < 0.0)
				fix(sharing, flow, rate);
		}
	}
	sharing->next_sec = INFINITY;
	for (uint32_t f = 0; f < sharing->n_flows; f++) {
		struct psd_sharing_flow *flow = &sharing->flows[f];

		flow->end_sec = now_sec + flow->left_bytes / flow->rate;
		sharing->next_sec = fmin(sharing->next_sec, flow->end_sec);
	}
	return true;
}
