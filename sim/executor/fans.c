#include "sim/executor/fans.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/grow.h"

static const double simgrid_precision_sec = 1e-9; /* SimGrid ends flows together that end in this time */
static const double tie = 1.0 + 1e-11;		  /* shares that differ by less are equal */

static const double alike = 1.0 + 1e-9; /* rates that differ by less may change together */

static const uint64_t most_idle = 1;	 /* times without being a bottleneck after which a link is not watched */
static const uint32_t none = UINT32_MAX; /* end of a list */

/* ---- links ---- */

static unsigned first_link(const struct psd_fans *fans, enum psd_fan_link_kind kind)
{
	const unsigned n_nodes = fans->classes->n_nodes, n_racks = fans->classes->n_racks;

	switch (kind) {
	case PSD_FAN_OUT: return 0;
	case PSD_FAN_UP: return n_nodes;
	case PSD_FAN_IN: return n_nodes + n_racks;
	case PSD_FAN_DOWN: break;
	}
	return 2 * n_nodes + n_racks;
}

void psd_fans_set_rate(struct psd_fans *fans, enum psd_fan_link_kind kind, unsigned class, double rate)
{
	fans->links[first_link(fans, kind) + class].rate = rate;
}

/* Returns the link up from the rack of a class of nodes. */
static struct psd_fan_link *up_of_node(const struct psd_fans *fans, unsigned node)
{
	return &fans->links[first_link(fans, PSD_FAN_UP) + fans->classes->rack_of_node[node]];
}

static bool is_of_receiver(const struct psd_fans *fans, unsigned link)
{
	return link >= first_link(fans, PSD_FAN_IN);
}

/* ---- targets ---- */

/* Makes room for more targets in an array of `rows` rows. */
static bool widen(void *of_array, unsigned rows, size_t entry_bytes, uint32_t room, uint32_t new_room)
{
	char **array = of_array, *wide = calloc((size_t)rows * new_room + 1, entry_bytes);

	if (!wide)
		return false;
	for (unsigned row = 0; row < rows && *array; row++)
		memcpy(&wide[row * new_room * entry_bytes], &(*array)[row * room * entry_bytes], room * entry_bytes);
	free(*array);
	*array = wide;
	return true;
}

static bool widen_sums(struct psd_fan_sums *sums, const struct psd_host_classes *classes, uint32_t room,
		       uint32_t new_room)
{
	for (unsigned r = 0; r < PSD_FAN_REACHES; r++)
		if (!widen(&sums->all[r], 1, sizeof(double), room, new_room) ||
		    !widen(&sums->in_rack[r], classes->n_racks, sizeof(double), room, new_room))
			return false;
	return widen(&sums->on_node, classes->n_nodes, sizeof(double), room, new_room);
}

static void release_sums(struct psd_fan_sums *sums)
{
	for (unsigned r = 0; r < PSD_FAN_REACHES; r++) {
		free(sums->all[r]);
		free(sums->in_rack[r]);
	}
	free(sums->on_node);
}

static bool add_room(struct psd_fans *fans)
{
	const uint32_t room = fans->target_room, new_room = room > 0 ? 2 * room : 64;
	const unsigned n_nodes = fans->classes->n_nodes, n_racks = fans->classes->n_racks;

	if (!widen(&fans->targets, 1, sizeof(*fans->targets), room, new_room) ||
	    !widen(&fans->live, 1, sizeof(*fans->live), room, new_room) ||
	    !widen(&fans->into_host, 1, sizeof(double), room, new_room) ||
	    !widen(&fans->into_rack, n_racks, sizeof(*fans->into_rack), room, new_room) ||
	    !widen(&fans->on_node, n_nodes, sizeof(double), room, new_room) ||
	    !widen(&fans->in_rack, n_racks, sizeof(double), room, new_room) ||
	    !widen(&fans->most_on_node, n_racks, sizeof(double), room, new_room) ||
	    !widen_sums(&fans->open, fans->classes, room, new_room) ||
	    !widen_sums(&fans->known, fans->classes, room, new_room))
		return false;
	fans->target_room = new_room;
	return true;
}

static size_t at_node(const struct psd_fans *fans, unsigned node, uint32_t targets)
{
	return (size_t)node * fans->target_room + targets;
}

static size_t at_rack(const struct psd_fans *fans, unsigned rack, uint32_t targets)
{
	return (size_t)rack * fans->target_room + targets;
}

static void set_bits(struct psd_fans *fans, uint32_t index, const uint64_t *bits, uint64_t hash)
{
	const struct psd_host_classes *classes = fans->classes;
	struct psd_fan_targets *targets = &fans->targets[index];

	memcpy(targets->bits, bits, fans->n_words * sizeof(*bits));
	for (unsigned n = 0; n < classes->n_nodes; n++)
		fans->on_node[at_node(fans, n, index)] = 0.0;
	for (unsigned r = 0; r < classes->n_racks; r++)
		fans->in_rack[at_rack(fans, r, index)] = fans->most_on_node[at_rack(fans, r, index)] = 0.0;
	*targets = (struct psd_fan_targets){.bits = targets->bits, .hash = hash, .first = none};
	for (unsigned c = 0; c < classes->n; c++) {
		const struct psd_host_kind *kind = &classes->of[c];

		if (!(bits[c / 64] >> c % 64 & 1))
			continue;
		targets->n += kind->n_members;
		fans->on_node[at_node(fans, kind->node, index)] += kind->n_here;
		fans->in_rack[at_rack(fans, kind->rack, index)] +=
			(double)kind->n_members / classes->racks_in[kind->rack];
		double *most = &fans->most_on_node[at_rack(fans, kind->rack, index)];
		*most = fmax(*most, fans->on_node[at_node(fans, kind->node, index)]);
	}
}

/* Makes an unused entry at the end of `live`. */
static bool add_unused(struct psd_fans *fans)
{
	const uint32_t index = fans->n_targets;

	if (index == fans->target_room && !add_room(fans))
		return false;
	fans->targets[index] = (struct psd_fan_targets){.bits = calloc(fans->n_words, sizeof(uint64_t))};
	if (!fans->targets[index].bits)
		return false;
	fans->live[index] = index;
	fans->n_targets++;
	return true;
}

static uint64_t hash_of(const uint64_t *bits, unsigned n)
{
	uint64_t hash = 0;

	for (unsigned w = 0; w < n; w++) {
		hash = (hash ^ bits[w]) * 0x9e3779b97f4a7c15U;
		hash ^= hash >> 29;
	}
	return hash;
}

/* Finds or adds the targets with these bits, and sets their index. False: out of memory. */
static bool add_targets(struct psd_fans *fans, const uint64_t *bits, uint32_t *index)
{
	const uint64_t hash = hash_of(bits, fans->n_words);

	for (uint32_t i = 0; i < fans->n_live; i++) {
		*index = fans->live[i];
		if (fans->targets[*index].hash == hash &&
		    memcmp(fans->targets[*index].bits, bits, fans->n_words * sizeof(*bits)) == 0)
			return true;
	}
	if (fans->n_live == fans->n_targets && !add_unused(fans))
		return false;
	*index = fans->live[fans->n_live++];
	set_bits(fans, *index, bits, hash);
	return true;
}

bool psd_fans_keep_targets(struct psd_fans *fans, const uint64_t *bits, uint32_t *index)
{
	if (!add_targets(fans, bits, index))
		return false;
	fans->targets[*index].is_kept = true;
	return true;
}

unsigned psd_fans_next_target(const struct psd_fans *fans, uint32_t index, unsigned from)
{
	unsigned c = from;

	while (c < fans->classes->n) {
		const uint64_t left = fans->targets[index].bits[c / 64] >> c % 64;

		if (left)
			return c + (unsigned)__builtin_ctzll(left);
		c = (c / 64 + 1) * 64;
	}
	return c;
}

/* Returns the number of targets of a host on a node, or in a rack if they are in others. */
static double count_from(const struct psd_fans *fans, unsigned node, unsigned rack, uint32_t index,
			 enum psd_fan_reach reach)
{
	const double in_rack = fans->in_rack[at_rack(fans, rack, index)];

	return reach == PSD_FAN_BEYOND ? fans->targets[index].n - in_rack
				       : in_rack - fans->on_node[at_node(fans, node, index)];
}

double psd_fans_count(const struct psd_fans *fans, unsigned from, uint32_t index, enum psd_fan_reach reach)
{
	const struct psd_host_kind *kind = &fans->classes->of[from];

	return count_from(fans, kind->node, kind->rack, index, reach);
}

unsigned psd_fans_senders(const struct psd_fans *fans, unsigned from, unsigned to, enum psd_fan_reach reach)
{
	const struct psd_host_kind *here = &fans->classes->of[from], *there = &fans->classes->of[to];
	const unsigned in_rack = here->rack == there->rack ? here->n_members / fans->classes->racks_in[here->rack] : 0;

	if (reach == PSD_FAN_BEYOND)
		return here->n_members - in_rack;
	return in_rack - (here->node == there->node ? here->n_here : 0);
}

/* ---- bundles ---- */

static unsigned n_senders(const struct psd_fans *fans)
{
	return fans->classes->n_nodes + fans->classes->n_racks;
}

/* Adds a bundle to its sender's list. */
static void list_bundle(struct psd_fans *fans, uint32_t index)
{
	struct psd_fan_bundle *bundle = &fans->bundles[index];

	bundle->next = fans->first_of_sender[bundle->sender];
	fans->first_of_sender[bundle->sender] = index;
	bundle->next_alike = fans->targets[bundle->targets].first;
	fans->targets[bundle->targets].first = index;
}

/* Finds or adds the bundle of a sender, and sets its index. False: out of memory. */
static bool find_bundle(struct psd_fans *fans, const struct psd_fan_bundle *wanted, uint32_t *index)
{
	for (*index = fans->first_of_sender[wanted->sender]; *index != none; *index = fans->bundles[*index].next)
		if (fans->bundles[*index].targets == wanted->targets && fans->bundles[*index].reach == wanted->reach)
			return true;
	struct psd_fan_bundle *grown = psd_grown(fans->bundles, fans->n_bundles, &fans->bundle_room, sizeof(*grown));

	if (!grown)
		return false;
	fans->bundles = grown;
	*index = fans->n_bundles++;
	grown[*index] = (struct psd_fan_bundle){
		.sender = wanted->sender,
		.rack = wanted->rack,
		.targets = wanted->targets,
		.reach = wanted->reach,
		.n_targets = count_from(fans, wanted->sender, wanted->rack, wanted->targets, wanted->reach),
		.end_bytes = INFINITY,
		.first = none,
	};
	list_bundle(fans, *index);
	return true;
}

static void count_senders(const struct psd_fans *fans, struct psd_fan_bundle *bundle, unsigned from, double factor)
{
	const struct psd_host_kind *kind = &fans->classes->of[from];

	bundle->n_hosts += factor * kind->n_members;
	bundle->n_in_rack += factor * (kind->n_members / fans->classes->racks_in[kind->rack]);
	bundle->n_on_node += factor * kind->n_here;
}

/* Adds a fan to a bundle, which its flows leave when they have sent left_bytes. */
static void join(struct psd_fans *fans, uint32_t f, uint32_t index)
{
	struct psd_fan *fan = &fans->fans[f];
	struct psd_fan_bundle *bundle = &fans->bundles[index];

	count_senders(fans, bundle, fan->from, 1.0);
	fan->left_bytes += bundle->sent_bytes;
	fan->targets = bundle->targets;
	fan->next = bundle->first;
	bundle->first = f;
	bundle->end_bytes = fmin(bundle->end_bytes, fan->left_bytes);
}

/* Takes all fans out of a bundle, and returns the first of their list. */
static uint32_t empty(struct psd_fans *fans, struct psd_fan_bundle *bundle)
{
	const uint32_t first = bundle->first;

	for (uint32_t f = first; f != none; f = fans->fans[f].next)
		fans->fans[f].left_bytes = fmax(0.0, fans->fans[f].left_bytes - bundle->sent_bytes);
	bundle->first = none;
	bundle->end_bytes = INFINITY;
	bundle->n_hosts = bundle->n_in_rack = bundle->n_on_node = 0.0;
	return first;
}

/* Adds the fans of a list to their bundles. False: out of memory. */
static bool join_all(struct psd_fans *fans, uint32_t first)
{
	for (uint32_t f = first, next; f != none; f = next) {
		const struct psd_fan *fan = &fans->fans[f];
		const struct psd_host_kind *kind = &fans->classes->of[fan->from];
		const bool is_of_node = fans->links[kind->node].is_watched;
		uint32_t index;

		next = fan->next;
		if (!find_bundle(fans,
				 &(struct psd_fan_bundle){.sender = is_of_node ? kind->node
									       : fans->classes->n_nodes + kind->rack,
							  .rack = kind->rack,
							  .targets = fan->targets,
							  .reach = fan->reach},
				 &index))
			return false;
		join(fans, f, index);
	}
	return true;
}

/* Watches the link out of a node, or ceases to. False: out of memory. */
static bool set_watched(struct psd_fans *fans, unsigned node, bool is_watched)
{
	const unsigned of_rack = fans->classes->n_nodes + fans->classes->rack_of_node[node];

	if (fans->links[node].is_watched == is_watched)
		return true;
	fans->links[node].is_watched = is_watched;
	for (uint32_t b = fans->first_of_sender[is_watched ? of_rack : node]; b != none; b = fans->bundles[b].next)
		if (!join_all(fans, empty(fans, &fans->bundles[b])))
			return false;
	return true;
}

/* ---- sums ---- */

static void add_to(const struct psd_fans *fans, const struct psd_fan_sums *sums, const struct psd_fan_bundle *bundle,
		   double factor)
{
	sums->all[bundle->reach][bundle->targets] += factor * bundle->n_hosts;
	sums->in_rack[bundle->reach][at_rack(fans, bundle->rack, bundle->targets)] += factor * bundle->n_in_rack;
	if (bundle->reach == PSD_FAN_IN_RACK)
		sums->on_node[at_node(fans, bundle->sender, bundle->targets)] += factor * bundle->n_on_node;
}

static void clear(const struct psd_fans *fans, const struct psd_fan_sums *sums, const struct psd_fan_bundle *bundle)
{
	sums->all[bundle->reach][bundle->targets] = 0.0;
	sums->in_rack[bundle->reach][at_rack(fans, bundle->rack, bundle->targets)] = 0.0;
	if (bundle->reach == PSD_FAN_IN_RACK)
		sums->on_node[at_node(fans, bundle->sender, bundle->targets)] = 0.0;
}

/* Adds the flows of a bundle to sums and to its senders' links: as flows whose rate is not known, n_open times, and as
 * flows with a rate. */
static void add(struct psd_fans *fans, const struct psd_fan_bundle *bundle, double n_open, double rate)
{
	add_to(fans, &fans->open, bundle, n_open);
	add_to(fans, &fans->known, bundle, rate);
	if (bundle->sender < fans->classes->n_nodes) {
		fans->links[bundle->sender].n_open += n_open * bundle->n_on_node * bundle->n_targets;
		fans->links[bundle->sender].known += rate * bundle->n_on_node * bundle->n_targets;
	}
	if (bundle->reach == PSD_FAN_BEYOND) {
		struct psd_fan_link *up = &fans->links[first_link(fans, PSD_FAN_UP) + bundle->rack];

		up->n_open += n_open * bundle->n_in_rack * bundle->n_targets;
		up->known += rate * bundle->n_in_rack * bundle->n_targets;
	}
}

/* Adds the flows of a bundle as they are, or with factor -1 takes them back. */
static void add_present(struct psd_fans *fans, const struct psd_fan_bundle *bundle, double factor)
{
	add(fans, bundle, bundle->rate < 0.0 ? factor : 0.0, bundle->rate < 0.0 ? 0.0 : factor * bundle->rate);
}

static void fix(struct psd_fans *fans, struct psd_fan_bundle *bundle, double rate)
{
	bundle->rate = rate;
	add(fans, bundle, -1.0, rate);
	if (bundle->sender >= fans->classes->n_nodes) {
		struct psd_fan_link *up = &fans->links[first_link(fans, PSD_FAN_UP) + bundle->rack];

		up->most = rate > up->most ? rate : up->most;
	}
}

/* ---- fans ---- */

bool psd_fans_init(struct psd_fans *fans, const struct psd_host_classes *classes)
{
	*fans = (struct psd_fans){
		.classes = classes,
		.n_words = (classes->n + 63) / 64,
		.n_links = 2 * (classes->n_nodes + classes->n_racks),
		.next_sec = INFINITY,
		.changed_rate = INFINITY,
		.begun = none,
		.unused = none,
	};
	fans->links = calloc(fans->n_links, sizeof(*fans->links));
	fans->n_of_class = calloc(classes->n, sizeof(*fans->n_of_class));
	fans->n_into_rack = calloc(classes->n_racks, sizeof(*fans->n_into_rack));
	fans->first_of_sender = malloc(n_senders(fans) * sizeof(*fans->first_of_sender));
	fans->first_of_rack = malloc(classes->n_racks * sizeof(*fans->first_of_rack));
	fans->next_of_rack = malloc(classes->n_nodes * sizeof(*fans->next_of_rack));
	fans->behind = calloc((size_t)fans->n_words * n_senders(fans), sizeof(*fans->behind));
	fans->cut = calloc((size_t)fans->n_words * PSD_FAN_REACHES + fans->n_words, sizeof(*fans->cut));
	fans->heap = calloc(fans->n_links, sizeof(*fans->heap));
	fans->tied = calloc(fans->n_links, sizeof(*fans->tied));
	if (!fans->links || !fans->n_of_class || !fans->n_into_rack || !fans->first_of_sender || !fans->first_of_rack ||
	    !fans->next_of_rack || !fans->behind || !fans->cut || !fans->heap || !fans->tied)
		return false;
	for (unsigned s = 0; s < n_senders(fans); s++)
		fans->first_of_sender[s] = none;
	for (unsigned rack = 0; rack < classes->n_racks; rack++) {
		fans->first_of_rack[rack] = none;
		fans->links[first_link(fans, PSD_FAN_UP) + rack].is_watched = true;
		fans->links[first_link(fans, PSD_FAN_DOWN) + rack].is_watched = true;
	}
	for (unsigned node = 0; node < classes->n_nodes; node++) {
		fans->links[node].is_watched = true;
		fans->next_of_rack[node] = fans->first_of_rack[classes->rack_of_node[node]];
		fans->first_of_rack[classes->rack_of_node[node]] = node;
	}
	for (unsigned c = 0; c < classes->n; c++) {
		const unsigned node = classes->of[c].node, rack = classes->n_nodes + classes->of[c].rack;

		fans->behind[node * fans->n_words + c / 64] |= UINT64_C(1) << c % 64;
		fans->behind[rack * fans->n_words + c / 64] |= UINT64_C(1) << c % 64;
	}
	return true;
}

void psd_fans_release(struct psd_fans *fans)
{
	for (uint32_t t = 0; t < fans->n_targets; t++)
		free(fans->targets[t].bits);
	release_sums(&fans->open);
	release_sums(&fans->known);
	free(fans->on_node);
	free(fans->in_rack);
	free(fans->most_on_node);
	free(fans->targets);
	free(fans->fans);
	free(fans->ended);
	free(fans->bundles);
	free(fans->first_of_sender);
	free(fans->first_of_rack);
	free(fans->next_of_rack);
	free(fans->n_of_class);
	free(fans->links);
	free(fans->into_rack);
	free(fans->into_host);
	free(fans->n_into_rack);
	free(fans->live);
	free(fans->heap);
	free(fans->tied);
	free(fans->behind);
	free(fans->cut);
	*fans = (struct psd_fans){.fans = NULL};
}

/* Copies a fan into an unused entry, and sets its index. False: out of memory. */
static bool new_fan(struct psd_fans *fans, const struct psd_fan *fan, uint32_t *index)
{
	const struct psd_fan copy = *fan;

	if (fans->unused == none) {
		struct psd_fan *grown = psd_grown(fans->fans, fans->n_fans, &fans->room, sizeof(*grown));

		if (!grown)
			return false;
		fans->fans = grown;
		grown[fans->n_fans].next = none;
		fans->unused = fans->n_fans++;
		grown = fans->ended_room < fans->room ? realloc(fans->ended, fans->room * sizeof(*grown)) : fans->ended;
		if (!grown)
			return false;
		fans->ended = grown;
		fans->ended_room = fans->room;
	}
	*index = fans->unused;
	fans->unused = fans->fans[*index].next;
	fans->fans[*index] = copy;
	fans->n_of_class[copy.from]++;
	return true;
}

bool psd_fans_add(struct psd_fans *fans, const struct psd_fan *fan)
{
	uint32_t f;

	if (!new_fan(fans, fan, &f))
		return false;
	fans->fans[f].number = fans->n_begun++;
	fans->fans[f].next = fans->begun;
	fans->begun = f;
	return true;
}

/* Returns the number of flows that a fan adds to the link out of its senders' node. */
static double flows_beyond(const struct psd_fans *fans, const struct psd_fan *fan)
{
	return fan->reach == PSD_FAN_BEYOND
		       ? fans->classes->of[fan->from].n_here * psd_fans_count(fans, fan->from, fan->targets, fan->reach)
		       : 0.0;
}

/* Adds the fans that have begun to their bundles. */
static bool begin(struct psd_fans *fans)
{
	const uint32_t first = fans->begun;

	fans->begun = none;
	for (uint32_t f = first; f != none; f = fans->fans[f].next) {
		struct psd_fan *fan = &fans->fans[f];
		const unsigned node = fans->classes->of[fan->from].node;

		fans->links[node].n_flows += flows_beyond(fans, fan);
		if (fan->reach == PSD_FAN_IN_RACK && !set_watched(fans, node, true))
			return false;
	}
	return join_all(fans, first);
}

static void find_next(struct psd_fans *fans)
{
	double next_sec = INFINITY; /* from now on */

	for (uint32_t b = 0; b < fans->n_bundles; b++) {
		const struct psd_fan_bundle *bundle = &fans->bundles[b];
		const double left_bytes = bundle->end_bytes - bundle->sent_bytes;

		if (left_bytes < next_sec * bundle->rate)
			next_sec = left_bytes / bundle->rate;
	}
	fans->next_sec = fans->now_sec + next_sec;
}

bool psd_fans_are_due(const struct psd_fans *fans, double now_sec)
{
	return fans->next_sec - now_sec < simgrid_precision_sec;
}

static int compare(const void *left, const void *right)
{
	const struct psd_fan *a = left, *b = right;

	return (a->number > b->number) - (a->number < b->number);
}

/* Ends the due fans of a bundle. */
static void end_in(struct psd_fans *fans, struct psd_fan_bundle *bundle, double now_sec)
{
	/* bytes that will have been sent at a time that is not due */
	const double due_bytes = bundle->sent_bytes + bundle->rate * (now_sec - fans->now_sec + simgrid_precision_sec);
	uint32_t *link = &bundle->first;

	if (bundle->end_bytes >= due_bytes)
		return;
	add_present(fans, bundle, -1.0);
	bundle->end_bytes = INFINITY;
	while (*link != none) {
		const uint32_t f = *link;
		struct psd_fan *fan = &fans->fans[f];

		if (fan->left_bytes >= due_bytes) {
			bundle->end_bytes = fmin(bundle->end_bytes, fan->left_bytes);
			link = &fan->next;
			continue;
		}
		fans->ended[fans->n_ended++] = *fan;
		fans->changed_rate = fmin(fans->changed_rate, bundle->rate);
		count_senders(fans, bundle, fan->from, -1.0);
		fans->links[fans->classes->of[fan->from].node].n_flows -= flows_beyond(fans, fan);
		*link = fan->next;
		fan->next = fans->unused;
		fans->unused = f;
	}
	add_present(fans, bundle, 1.0);
}

static void end_due(struct psd_fans *fans, double now_sec)
{
	fans->n_ended = fans->next_ended = 0;
	for (uint32_t b = 0; b < fans->n_bundles; b++)
		end_in(fans, &fans->bundles[b], now_sec);
	if (fans->n_ended > 0)
		fans->next_sec = INFINITY;
	qsort(fans->ended, fans->n_ended, sizeof(*fans->ended), compare);
}

bool psd_fans_take_ended(struct psd_fans *fans, double now_sec, struct psd_fan *ended)
{
	if (fans->next_ended == fans->n_ended && psd_fans_are_due(fans, now_sec))
		end_due(fans, now_sec);
	if (fans->next_ended == fans->n_ended)
		return false;
	*ended = fans->ended[fans->next_ended++];
	fans->n_of_class[ended->from]--;
	return true;
}

/* ---- shares ---- */

/* Sums up the flows into a node. */
static void sum_into_node(const struct psd_fans *fans, unsigned node, double *n_open, double *known)
{
	const unsigned rack = fans->classes->rack_of_node[node];
	const double *here = &fans->on_node[at_node(fans, node, 0)];
	const double *open_near = &fans->open.in_rack[PSD_FAN_IN_RACK][at_rack(fans, rack, 0)],
		     *open_far = &fans->open.in_rack[PSD_FAN_BEYOND][at_rack(fans, rack, 0)],
		     *open_here = &fans->open.on_node[at_node(fans, node, 0)];
	const double *known_near = &fans->known.in_rack[PSD_FAN_IN_RACK][at_rack(fans, rack, 0)],
		     *known_far = &fans->known.in_rack[PSD_FAN_BEYOND][at_rack(fans, rack, 0)],
		     *known_here = &fans->known.on_node[at_node(fans, node, 0)];

	for (uint32_t i = 0; i < fans->n_into_rack[rack]; i++) {
		const uint32_t t = fans->into_rack[at_rack(fans, rack, i)];

		*n_open += here[t] * (fans->open.all[PSD_FAN_BEYOND][t] - open_far[t] + (open_near[t] - open_here[t]));
		*known +=
			here[t] * (fans->known.all[PSD_FAN_BEYOND][t] - known_far[t] + (known_near[t] - known_here[t]));
	}
}

/* Sums up the flows into a rack. */
static void sum_into_rack(const struct psd_fans *fans, unsigned rack, double *n_open, double *known)
{
	const double *here = &fans->in_rack[at_rack(fans, rack, 0)];
	const double *open = &fans->open.in_rack[PSD_FAN_BEYOND][at_rack(fans, rack, 0)],
		     *of_known = &fans->known.in_rack[PSD_FAN_BEYOND][at_rack(fans, rack, 0)];

	for (uint32_t i = 0; i < fans->n_into_rack[rack]; i++) {
		const uint32_t t = fans->into_rack[at_rack(fans, rack, i)];

		*n_open += here[t] * (fans->open.all[PSD_FAN_BEYOND][t] - open[t]);
		*known += here[t] * (fans->known.all[PSD_FAN_BEYOND][t] - of_known[t]);
	}
}

/* Finds the present share of a link. */
static void set_share(struct psd_fans *fans, unsigned index)
{
	const unsigned in = first_link(fans, PSD_FAN_IN), down = first_link(fans, PSD_FAN_DOWN);
	struct psd_fan_link *link = &fans->links[index];
	double n_open = index < in ? link->n_open : 0.0, known = index < in ? link->known : 0.0;

	if (index >= down)
		sum_into_rack(fans, index - down, &n_open, &known);
	else if (index >= in)
		sum_into_node(fans, index - in, &n_open, &known);
	link->share = n_open > 0.5 && link->rate > 0.0 ? fmax(0.0, link->rate - known) / n_open : INFINITY;
	link->at = fans->version;
}

/* ---- heap of links ---- */

static double share_at(const struct psd_fans *fans, unsigned i)
{
	return fans->links[fans->heap[i]].share;
}

static void push(struct psd_fans *fans, unsigned link)
{
	unsigned at = fans->n_heap++;

	for (; at > 0 && share_at(fans, (at - 1) / 2) > fans->links[link].share; at = (at - 1) / 2)
		fans->heap[at] = fans->heap[(at - 1) / 2];
	fans->heap[at] = link;
}

/* Moves the first link to its place. */
static void sink(struct psd_fans *fans)
{
	const unsigned link = fans->heap[0];
	unsigned at = 0;

	for (;;) {
		unsigned child = 2 * at + 1;

		if (child + 1 < fans->n_heap && share_at(fans, child + 1) < share_at(fans, child))
			child++;
		if (child >= fans->n_heap || share_at(fans, child) >= fans->links[link].share)
			break;
		fans->heap[at] = fans->heap[child];
		at = child;
	}
	fans->heap[at] = link;
}

static unsigned pop(struct psd_fans *fans)
{
	const unsigned link = fans->heap[0];

	fans->heap[0] = fans->heap[--fans->n_heap];
	if (fans->n_heap > 0)
		sink(fans);
	return link;
}

/* Brings the link with the smallest share to the front. Shares only grow while rates become known, so that an old one
 * is a lower bound. False: no link has a share. */
static bool find_smallest(struct psd_fans *fans)
{
	while (fans->n_heap > 0) {
		struct psd_fan_link *link = &fans->links[fans->heap[0]];

		if (link->at == fans->version)
			return true;
		set_share(fans, fans->heap[0]);
		if (isinf(link->share))
			(void)pop(fans);
		else
			sink(fans);
	}
	return false;
}

/* ---- filling ---- */

/* Lists targets with the racks in which they are, unless they are listed. */
static void use(struct psd_fans *fans, uint32_t index)
{
	if (fans->targets[index].used_at == fans->n_opened)
		return;
	fans->targets[index].used_at = fans->n_opened;
	for (unsigned r = 0; r < fans->classes->n_racks; r++)
		if (fans->in_rack[at_rack(fans, r, index)] > 0.0)
			fans->into_rack[at_rack(fans, r, fans->n_into_rack[r]++)] = index;
}

/* Lists all targets that have bundles, and forgets those that are not kept and have none. */
static void use_all(struct psd_fans *fans)
{
	fans->n_opened++;
	memset(fans->n_into_rack, 0, fans->classes->n_racks * sizeof(*fans->n_into_rack));
	for (uint32_t i = 0; i < fans->n_live;) {
		const uint32_t index = fans->live[i];
		const struct psd_fan_targets *targets = &fans->targets[index];

		if (targets->first == none && !targets->is_kept) {
			fans->live[i] = fans->live[--fans->n_live];
			fans->live[fans->n_live] = index;
			continue;
		}
		if (targets->first != none)
			use(fans, index);
		i++;
	}
}

/* Removes bundles without fans, and lists the others anew. */
static void remove_empty(struct psd_fans *fans)
{
	uint32_t n_kept = 0;

	for (unsigned s = 0; s < n_senders(fans); s++)
		fans->first_of_sender[s] = none;
	for (uint32_t i = 0; i < fans->n_live; i++)
		fans->targets[fans->live[i]].first = none;
	for (uint32_t b = 0; b < fans->n_bundles; b++) {
		if (fans->bundles[b].first == none)
			continue;
		if (b != n_kept)
			fans->bundles[n_kept] = fans->bundles[b];
		list_bundle(fans, n_kept++);
	}
	fans->n_bundles = n_kept;
}

/* Makes all rates unknown, and sums up the hosts of each set of targets. */
static void open_all(struct psd_fans *fans)
{
	for (uint32_t b = 0; b < fans->n_bundles; b++) {
		clear(fans, &fans->open, &fans->bundles[b]);
		clear(fans, &fans->known, &fans->bundles[b]);
	}
	remove_empty(fans);
	use_all(fans);
	for (unsigned l = 0; l < fans->n_links; l++)
		fans->links[l].n_open = fans->links[l].known = fans->links[l].most = 0.0;
	for (uint32_t b = 0; b < fans->n_bundles; b++) {
		fans->bundles[b].rate = -1.0;
		add(fans, &fans->bundles[b], 1.0, 0.0);
	}
}

/* Makes the rates unknown that may change after flows have ended. Smaller rates than theirs stay: on the links at which
 * flows have these as bottleneck, no flow was faster, so that none has ended. */
static void open_changed(struct psd_fans *fans)
{
	for (uint32_t b = 0; b < fans->n_bundles; b++) {
		struct psd_fan_bundle *bundle = &fans->bundles[b];

		if (bundle->rate * alike < fans->changed_rate)
			continue;
		add(fans, bundle, 1.0, -bundle->rate);
		bundle->rate = -1.0;
		if (bundle->sender >= fans->classes->n_nodes)
			fans->links[first_link(fans, PSD_FAN_UP) + bundle->rack].most = 0.0;
	}
}

/* Lists all links that have flows whose rate is not known. */
static void find_open_links(struct psd_fans *fans)
{
	fans->version++;
	fans->n_heap = 0;
	for (unsigned l = 0; l < fans->n_links; l++) {
		if (!fans->links[l].is_watched)
			continue;
		set_share(fans, l);
		if (isfinite(fans->links[l].share))
			push(fans, l);
	}
}

/* Gives the rate to all open bundles of a sender, at all reaches or only beyond. Parts of divided bundles have one
 * already. */
static void fix_sender(struct psd_fans *fans, unsigned sender, bool is_beyond_only, double rate)
{
	for (uint32_t b = fans->first_of_sender[sender]; b != none; b = fans->bundles[b].next) {
		struct psd_fan_bundle *bundle = &fans->bundles[b];

		if (bundle->rate < 0.0 && (!is_beyond_only || bundle->reach == PSD_FAN_BEYOND))
			fix(fans, bundle, rate);
	}
}

/* Fixes the flows whose senders' link is the bottleneck. */
static void fix_senders(struct psd_fans *fans, unsigned link, double rate)
{
	const unsigned n_nodes = fans->classes->n_nodes;

	fix_sender(fans, link, link >= n_nodes, rate);
	if (link < n_nodes)
		fans->links[link].cut_at = fans->n_opened;
	for (uint32_t n = link < n_nodes ? none : fans->first_of_rack[link - n_nodes]; n != none;
	     n = fans->next_of_rack[n])
		fix_sender(fans, n, true, rate);
}

/* Finds the targets behind receivers' links that are bottlenecks, at each reach, and the racks where they are. */
static void find_cut(struct psd_fans *fans, double rate)
{
	const unsigned in = first_link(fans, PSD_FAN_IN), down = first_link(fans, PSD_FAN_DOWN);
	uint64_t *near = &fans->cut[PSD_FAN_IN_RACK * fans->n_words], *far = &fans->cut[PSD_FAN_BEYOND * fans->n_words];

	memset(fans->cut, 0, PSD_FAN_REACHES * fans->n_words * sizeof(*fans->cut));
	for (unsigned l = in; l < fans->n_links; l++) {
		struct psd_fan_link *link = &fans->links[l];

		if (!link->is_watched || link->at != fans->version || link->share > rate * tie)
			continue;
		for (unsigned w = 0; w < fans->n_words; w++) {
			far[w] |= fans->behind[(l - in) * fans->n_words + w];
			near[w] |= l < down ? fans->behind[(l - in) * fans->n_words + w] : 0;
		}
		link->cut_at = fans->n_opened;
		fans->links[l < down ? down + fans->classes->rack_of_node[l - in] : l].cut_at = fans->version;
	}
}

/* Finds the part of some targets inside the cut, or outside of it. False: out of memory. */
static bool find_part(struct psd_fans *fans, uint32_t index, enum psd_fan_reach reach, bool is_inside, uint32_t *part)
{
	const uint64_t *cut = &fans->cut[reach * fans->n_words];
	uint64_t *bits = &fans->cut[PSD_FAN_REACHES * fans->n_words];

	for (unsigned w = 0; w < fans->n_words; w++)
		bits[w] = fans->targets[index].bits[w] & (is_inside ? cut[w] : ~cut[w]);
	if (!add_targets(fans, bits, part))
		return false;
	use(fans, *part);
	return true;
}

/* True if some targets have a part inside the cut, or outside of it. */
static bool has_part(const struct psd_fans *fans, uint32_t index, enum psd_fan_reach reach, bool is_inside)
{
	const uint64_t *bits = fans->targets[index].bits, *cut = &fans->cut[reach * fans->n_words];
	uint64_t part = 0;

	for (unsigned w = 0; w < fans->n_words; w++)
		part |= bits[w] & (is_inside ? cut[w] : ~cut[w]);
	return part != 0;
}

/* Finds both parts of some targets; a part without targets is `none`. False: out of memory. */
static bool divide(struct psd_fans *fans, uint32_t index, enum psd_fan_reach reach, uint32_t *inside, uint32_t *outside)
{
	const bool has_inside = has_part(fans, index, reach, true), has_outside = has_part(fans, index, reach, false);

	*inside = has_inside ? index : none;
	*outside = has_outside ? index : none;
	return !has_inside || !has_outside ||
	       (find_part(fans, index, reach, true, inside) && find_part(fans, index, reach, false, outside));
}

/* Finds or adds the bundle of the same senders with other targets. False: out of memory. */
static bool find_beside(struct psd_fans *fans, uint32_t b, uint32_t targets, uint32_t *index)
{
	struct psd_fan_bundle wanted = fans->bundles[b];

	wanted.targets = targets;
	if (!find_bundle(fans, &wanted, index))
		return false;
	if (fans->bundles[*index].first == none)
		fans->bundles[*index].rate = -1.0;
	return true;
}

/* Moves all fans of a bundle whose rate is not known to the bundles of two parts of its targets. */
static bool move(struct psd_fans *fans, uint32_t b, uint32_t inside, uint32_t outside)
{
	add_present(fans, &fans->bundles[b], -1.0);
	add_present(fans, &fans->bundles[inside], -1.0);
	add_present(fans, &fans->bundles[outside], -1.0);
	for (uint32_t f = empty(fans, &fans->bundles[b]), next; f != none; f = next) {
		uint32_t part;

		if (!new_fan(fans, &fans->fans[f], &part))
			return false;
		next = fans->fans[f].next;
		join(fans, part, inside);
		join(fans, f, outside);
	}
	fans->bundles[b].rate = 0.0;
	add_present(fans, &fans->bundles[inside], 1.0);
	add_present(fans, &fans->bundles[outside], 1.0);
	return true;
}

static bool has_targets(const struct psd_fans *fans, const struct psd_fan_bundle *bundle, uint32_t targets)
{
	return targets != none && count_from(fans, bundle->sender, bundle->rack, targets, bundle->reach) > 0.5;
}

/* Fixes the flows of a bundle that pass the cut. If others do not, they get a bundle of their own. */
static bool cut_bundle(struct psd_fans *fans, uint32_t b, uint32_t inside, uint32_t outside, double rate)
{
	if (!has_targets(fans, &fans->bundles[b], inside))
		return true;
	if (!has_targets(fans, &fans->bundles[b], outside))
		inside = b;
	else if (!find_beside(fans, b, inside, &inside) || !find_beside(fans, b, outside, &outside) ||
		 !move(fans, b, inside, outside))
		return false;
	if (fans->bundles[inside].rate < 0.0)
		fix(fans, &fans->bundles[inside], rate);
	return true;
}

/* Fixes the flows to some targets that pass the cut. */
static bool cut_targets(struct psd_fans *fans, uint32_t index, double rate)
{
	uint32_t inside[PSD_FAN_REACHES], outside[PSD_FAN_REACHES];
	bool is_divided[PSD_FAN_REACHES] = {false};

	if (fans->open.all[PSD_FAN_IN_RACK][index] + fans->open.all[PSD_FAN_BEYOND][index] < 0.5)
		return true;
	for (uint32_t b = fans->targets[index].first; b != none; b = fans->bundles[b].next_alike) {
		const enum psd_fan_reach r = fans->bundles[b].reach;

		if (fans->bundles[b].rate >= 0.0 || fans->bundles[b].first == none)
			continue;
		if (!is_divided[r] && !divide(fans, index, r, &inside[r], &outside[r]))
			return false;
		is_divided[r] = true;
		if (!cut_bundle(fans, b, inside[r], outside[r], rate))
			return false;
	}
	return true;
}

/* Fixes the flows whose receivers' links are bottlenecks. */
static bool fix_receivers(struct psd_fans *fans, double rate)
{
	const struct psd_fan_link *down = &fans->links[first_link(fans, PSD_FAN_DOWN)];

	find_cut(fans, rate);
	for (unsigned rack = 0; rack < fans->classes->n_racks; rack++)
		for (uint32_t i = 0, n = fans->n_into_rack[rack]; i < n && down[rack].cut_at == fans->version; i++)
			if (!cut_targets(fans, fans->into_rack[at_rack(fans, rack, i)], rate))
				return false;
	return true;
}

/* Brings the shares of all links up to date that are tied with the smallest share. Returns a tied link of senders, or
 * else the first link. */
static unsigned find_ties(struct psd_fans *fans)
{
	const unsigned first = fans->heap[0];
	const double rate = fans->links[first].share;
	unsigned n_tied = 0, found = first;

	while (find_smallest(fans) && fans->links[fans->heap[0]].share <= rate * tie)
		fans->tied[n_tied++] = pop(fans);
	for (unsigned i = 0; i < n_tied; i++) {
		push(fans, fans->tied[i]);
		if (!is_of_receiver(fans, fans->tied[i]))
			found = fans->tied[i];
	}
	return found;
}

static bool fill(struct psd_fans *fans)
{
	while (find_smallest(fans)) {
		const double rate = fans->links[fans->heap[0]].share;
		const unsigned link = is_of_receiver(fans, fans->heap[0]) ? find_ties(fans) : fans->heap[0];

		fans->n_visits++;
		if (!is_of_receiver(fans, link))
			fix_senders(fans, link, rate);
		else if (!fix_receivers(fans, rate))
			return false;
		fans->version++;
	}
	return true;
}

/* ---- links of nodes ---- */

/* True if a link out of a node could carry more than it can if it is not watched. */
static bool may_fill(const struct psd_fans *fans, unsigned node)
{
	return fans->links[node].n_flows * up_of_node(fans, node)->most > fans->links[node].rate * tie;
}

static bool has_near(const struct psd_fans *fans, unsigned node)
{
	for (uint32_t b = fans->first_of_sender[node]; b != none; b = fans->bundles[b].next)
		if (fans->bundles[b].reach == PSD_FAN_IN_RACK && fans->bundles[b].first != none)
			return true;
	return false;
}

/* Ceases to watch links that have not been a bottleneck for a while. Links out of nodes stay watched without a link up,
 * and beside flows in the rack, which may have no other bottleneck. False: out of memory. */
static bool ignore_idle(struct psd_fans *fans)
{
	struct psd_fan_link *in = &fans->links[first_link(fans, PSD_FAN_IN)];

	for (unsigned node = 0; node < fans->classes->n_nodes; node++) {
		if (fans->n_opened - in[node].cut_at > most_idle)
			in[node].is_watched = false;
		if (fans->links[node].is_watched && fans->n_opened - fans->links[node].cut_at > most_idle &&
		    up_of_node(fans, node)->rate > 0.0 && !has_near(fans, node) && !may_fill(fans, node) &&
		    !set_watched(fans, node, false))
			return false;
	}
	return true;
}

/* Finds the rates of all flows from other nodes to each host of a rack, as far as the rates are known. Returns a bound
 * of their sum at a node. */
static double find_into_rack(struct psd_fans *fans, unsigned rack)
{
	double most = 0.0;

	for (uint32_t i = 0; i < fans->n_into_rack[rack]; i++) {
		const uint32_t t = fans->into_rack[at_rack(fans, rack, i)];
		const size_t at = at_rack(fans, rack, t);

		fans->into_host[i] = fans->known.all[PSD_FAN_BEYOND][t] - fans->known.in_rack[PSD_FAN_BEYOND][at] +
				     fans->known.in_rack[PSD_FAN_IN_RACK][at];
		most += fans->most_on_node[at] * fans->into_host[i];
	}
	return most;
}

/* Returns the sum of the known rates of the flows into a node, after find_into_rack(). */
static double into_node(const struct psd_fans *fans, unsigned rack, unsigned node)
{
	double known = 0.0;

	for (uint32_t i = 0; i < fans->n_into_rack[rack]; i++) {
		const size_t at = at_node(fans, node, fans->into_rack[at_rack(fans, rack, i)]);

		known += fans->on_node[at] * (fans->into_host[i] - fans->known.on_node[at]);
	}
	return known;
}

/* Watches the links of nodes that would carry more than they can, and sets whether there are any. False: out of
 * memory. */
static bool watch(struct psd_fans *fans, bool *is_done)
{
	struct psd_fan_link *ins = &fans->links[first_link(fans, PSD_FAN_IN)];

	*is_done = true;
	for (unsigned rack = 0; rack < fans->classes->n_racks; rack++) {
		const double most = find_into_rack(fans, rack);

		for (uint32_t node = fans->first_of_rack[rack]; node != none; node = fans->next_of_rack[node]) {
			struct psd_fan_link *in = &ins[node];

			if (!fans->links[node].is_watched && may_fill(fans, node)) {
				*is_done = false;
				fans->links[node].cut_at = fans->n_opened;
				if (!set_watched(fans, node, true))
					return false;
			}
			if (in->is_watched || most <= in->rate * tie || into_node(fans, rack, node) <= in->rate * tie)
				continue;
			*is_done = false;
			in->is_watched = true;
			in->cut_at = fans->n_opened;
		}
	}
	return true;
}

/* Finds the rates with the links that are watched, until all others have room. */
static bool fill_all(struct psd_fans *fans)
{
	const bool is_begun = fans->begun != none;
	bool is_done = false;

	if (is_begun && (!begin(fans) || !ignore_idle(fans)))
		return false;
	if (!is_begun)
		open_changed(fans);
	for (bool is_opened = !is_begun; !is_done; is_opened = false) {
		if (!is_opened)
			open_all(fans);
		find_open_links(fans);
		if (!fill(fans) || !watch(fans, &is_done))
			return false;
	}
	fans->changed_rate = INFINITY;
	return true;
}

bool psd_fans_solve(struct psd_fans *fans, double now_sec)
{
	for (uint32_t b = 0; b < fans->n_bundles; b++)
		fans->bundles[b].sent_bytes += fans->bundles[b].rate * (now_sec - fans->now_sec);
	fans->now_sec = now_sec;
	if (!fill_all(fans))
		return false;
	fans->n_visits += fans->n_bundles;
	find_next(fans);
	return true;
}
