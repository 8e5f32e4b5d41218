#include "sim/executor/flow_classes.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/grow.h"
#include "engine/base/random.h"

/* Kinds are 64-bit hash values of all that is known of a flow or link. */
struct flow {
	uint64_t bytes;
	uint64_t kind;
	uint32_t first_link; /* index of the first of its links in work.links */
	uint32_t n_links;
};

struct kind {
	uint64_t hash;
	unsigned number; /* number of the class */
};

/* The distinct kinds of flows or links; open addressing. */
struct kinds {
	struct kind entries[4 * PSD_MOST_FLOW_CLASSES];
	bool is_used[4 * PSD_MOST_FLOW_CLASSES];
	unsigned n;
};

struct work {
	const struct psd_platform *platform;
	const double *ratios;
	struct flow *flows;
	uint32_t n_flows, flow_room;
	uint32_t *links; /* links of all flows */
	uint32_t n_links, link_room;
	/* per link of the platform: its kind, 0: no flow uses it; and the sum of the kinds of its flows */
	uint64_t *link_kinds, *link_sums;
	struct kinds flow_kinds, link_kind_set;
	uint32_t *first_of_kind; /* link that stands for each class of links */
};

/* Returns the class of a kind, a new one if it has none; PSD_MOST_FLOW_CLASSES if there are too many. */
static unsigned class_of(struct kinds *kinds, uint64_t kind)
{
	const size_t mask = 4 * PSD_MOST_FLOW_CLASSES - 1;
	size_t at = kind & mask;

	while (kinds->is_used[at] && kinds->entries[at].hash != kind)
		at = (at + 1) & mask;
	if (kinds->is_used[at])
		return kinds->entries[at].number;
	if (kinds->n == PSD_MOST_FLOW_CLASSES)
		return PSD_MOST_FLOW_CLASSES;
	kinds->is_used[at] = true;
	kinds->entries[at] = (struct kind){kind, kinds->n};
	return kinds->n++;
}

static void clear(struct kinds *kinds)
{
	memset(kinds->is_used, 0, sizeof(kinds->is_used));
	kinds->n = 0;
}

static bool add_flow(struct work *work, unsigned from, unsigned to, uint64_t bytes)
{
	unsigned links[PSD_ROUTE_LINKS];
	const unsigned n_links = psd_platform_route(work->platform, from, to, links);
	struct flow *flows = psd_grown(work->flows, work->n_flows, &work->flow_room, sizeof(*flows));

	if (!flows)
		return false;
	work->flows = flows;
	flows[work->n_flows++] = (struct flow){bytes, psd_random_mix(bytes), work->n_links, n_links};
	for (unsigned i = 0; i < n_links; i++) {
		uint32_t *grown = psd_grown(work->links, work->n_links, &work->link_room, sizeof(*grown));

		if (!grown)
			return false;
		work->links = grown;
		grown[work->n_links++] = links[i];
	}
	return true;
}

static bool add_flows(struct work *work, const struct psd_payload *payload, const struct psd_layout *layout)
{
	const struct psd_group group = psd_payload_group(payload, layout);
	struct psd_flow flow;

	for (unsigned rank = 0; rank < group.n; rank++) {
		const unsigned host = psd_group_host(group, rank);

		for (unsigned i = 0; psd_payload_flow(payload, layout, host, i, &flow); i++)
			if (flow.to != host && flow.elements > 0 &&
			    !add_flow(work, host, flow.to, flow.elements * payload->value_bytes))
				return false;
	}
	return true;
}

static void start_kinds(struct work *work)
{
	for (uint32_t i = 0; i < work->n_links; i++) {
		const double bps = psd_platform_slowed_bps(work->platform, work->ratios, work->links[i]);
		uint64_t bits;

		memcpy(&bits, &bps, sizeof(bits));
		work->link_kinds[work->links[i]] = psd_random_mix(bits) | 1;
	}
}

/* Tells flows apart by their links, and links by their flows. False: there are too many kinds. */
static bool refine(struct work *work)
{
	clear(&work->flow_kinds);
	clear(&work->link_kind_set);
	for (uint32_t i = 0; i < work->n_links; i++)
		work->link_sums[work->links[i]] = 0;
	for (uint32_t f = 0; f < work->n_flows; f++) {
		struct flow *flow = &work->flows[f];
		uint64_t sum = 0;

		for (uint32_t i = 0; i < flow->n_links; i++)
			sum += psd_random_mix(work->link_kinds[work->links[flow->first_link + i]]);
		flow->kind = psd_random_mix(flow->kind ^ psd_random_mix(sum));
		if (class_of(&work->flow_kinds, flow->kind) == PSD_MOST_FLOW_CLASSES)
			return false;
		for (uint32_t i = 0; i < flow->n_links; i++)
			work->link_sums[work->links[flow->first_link + i]] += psd_random_mix(flow->kind);
	}
	for (uint32_t i = 0; i < work->n_links; i++) {
		const uint32_t link = work->links[i];

		if (work->link_sums[link] == 0)
			continue; /* done already */
		work->link_kinds[link] =
			psd_random_mix(work->link_kinds[link] ^ psd_random_mix(work->link_sums[link])) | 1;
		work->link_sums[link] = 0;
		if (class_of(&work->link_kind_set, work->link_kinds[link]) == PSD_MOST_FLOW_CLASSES)
			return false;
	}
	return true;
}

/* Refines until no class is divided any more. */
static bool refine_all(struct work *work)
{
	unsigned n_flows = 0, n_links = 0;

	do {
		n_flows = work->flow_kinds.n;
		n_links = work->link_kind_set.n;
		if (!refine(work))
			return false;
	} while (work->flow_kinds.n > n_flows || work->link_kind_set.n > n_links);
	return true;
}

/* ---- the result ---- */

static unsigned link_class(struct work *work, uint32_t link)
{
	return class_of(&work->link_kind_set, work->link_kinds[link]);
}

/* Adds one link of one flow: counted on the link that stands for its class. */
static void count_link(struct work *work, struct psd_flow_class *class, uint32_t link)
{
	const unsigned of_link = link_class(work, link);
	unsigned i = 0;

	while (i < class->n_links && class->links[i].link != of_link)
		i++;
	if (i == class->n_links)
		class->links[class->n_links++] = (struct psd_class_link){of_link, 0};
	class->links[i].n_flows += work->first_of_kind[of_link] == link;
}

static unsigned common_divisor(unsigned a, unsigned b)
{
	while (b > 0) {
		const unsigned rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* A link with 24 flows of one class and 8 of another is like a link of an eighth of the rate with 3 flows and 1. */
static bool divide_links(struct psd_flow_classes *classes)
{
	unsigned *divisors = calloc(classes->n_links + 1, sizeof(*divisors));

	if (!divisors)
		return false;
	for (unsigned f = 0; f < classes->n_flows; f++)
		for (unsigned i = 0; i < classes->flows[f].n_links; i++) {
			const struct psd_class_link *link = &classes->flows[f].links[i];

			divisors[link->link] = common_divisor(link->n_flows, divisors[link->link]);
		}
	for (unsigned f = 0; f < classes->n_flows; f++)
		for (unsigned i = 0; i < classes->flows[f].n_links; i++)
			classes->flows[f].links[i].n_flows /= divisors[classes->flows[f].links[i].link];
	for (unsigned l = 0; l < classes->n_links; l++)
		classes->link_bps[l] /= divisors[l];
	free(divisors);
	return true;
}

static bool fill(struct psd_flow_classes *classes, struct work *work)
{
	*classes = (struct psd_flow_classes){.n_flows = work->flow_kinds.n, .n_links = work->link_kind_set.n};
	classes->flows = calloc(classes->n_flows + 1, sizeof(*classes->flows));
	classes->link_bps = calloc(classes->n_links + 1, sizeof(*classes->link_bps));
	work->first_of_kind = malloc((classes->n_links + 1) * sizeof(*work->first_of_kind));
	if (!classes->flows || !classes->link_bps || !work->first_of_kind)
		return false;
	for (uint32_t i = 0; i < work->n_links; i++) {
		const unsigned of_link = link_class(work, work->links[i]);

		if (classes->link_bps[of_link] == 0.0) {
			classes->link_bps[of_link] =
				psd_platform_slowed_bps(work->platform, work->ratios, work->links[i]);
			work->first_of_kind[of_link] = work->links[i];
		}
	}
	for (uint32_t f = 0; f < work->n_flows; f++) {
		const struct flow *flow = &work->flows[f];
		struct psd_flow_class *class = &classes->flows[class_of(&work->flow_kinds, flow->kind)];

		class->bytes = flow->bytes;
		class->n_members++;
		for (uint32_t i = 0; i < flow->n_links; i++)
			count_link(work, class, work->links[flow->first_link + i]);
	}
	return divide_links(classes);
}

static bool find(struct psd_flow_classes *classes, struct work *work, const struct psd_payload *payload,
		 const struct psd_layout *layout, bool *has_classes)
{
	const size_t n_links = psd_platform_links(work->platform) + 1;

	work->link_kinds = calloc(n_links, sizeof(*work->link_kinds));
	work->link_sums = calloc(n_links, sizeof(*work->link_sums));
	if (!work->link_kinds || !work->link_sums || !add_flows(work, payload, layout))
		return false;
	start_kinds(work);
	*has_classes = refine_all(work);
	return !*has_classes || fill(classes, work);
}

enum psd_status psd_flow_classes_find(struct psd_flow_classes *classes, const struct psd_payload *payload,
				      const struct psd_layout *layout, const struct psd_platform *platform,
				      const double *ratios, bool *has_classes, struct psd_error *err)
{
	struct work *work = calloc(1, sizeof(*work));
	bool has_memory = false;

	*classes = (struct psd_flow_classes){.flows = NULL};
	if (work) {
		work->platform = platform;
		work->ratios = ratios;
		has_memory = find(classes, work, payload, layout, has_classes);
		free(work->flows);
		free(work->links);
		free(work->link_kinds);
		free(work->link_sums);
		free(work->first_of_kind);
	}
	free(work);
	if (has_memory)
		return PSD_OK;
	psd_flow_classes_release(classes);
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for classes of flows");
}

void psd_flow_classes_release(struct psd_flow_classes *classes)
{
	free(classes->flows);
	free(classes->link_bps);
	*classes = (struct psd_flow_classes){.flows = NULL};
}
