#include "sim/executor/fans.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/grow.h"

static const double simgrid_precision_sec = 1e-9; /* SimGrid ends flows together that end in this time */
static const double tie = 1.0 + 1e-11;		  /* shares that differ by less are equal */

static const uint64_t most_idle = 8; /* times without being a bottleneck after which a link is not watched */

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

static bool is_of_receiver(const struct psd_fans *fans, unsigned link)
{
	return link >= first_link(fans, PSD_FAN_IN);
}

static bool is_into_node(const struct psd_fans *fans, unsigned link)
{
	return link >= first_link(fans, PSD_FAN_IN) && link < first_link(fans, PSD_FAN_DOWN);
}

/* ---- targets ---- */

/* Makes room for more targets in an array of `rows` rows. */
static bool widen(double **array, unsigned rows, uint32_t room, uint32_t new_room)
{
	double *wide = calloc((size_t)rows * new_room + 1, sizeof(*wide));

	if (!wide)
		return false;
	for (unsigned row = 0; row < rows && *array; row++)
		memcpy(&wide[(size_t)row * new_room], &(*array)[(size_t)row * room], room * sizeof(*wide));
	free(*array);
	*array = wide;
	return true;
}

static bool widen_sums(struct psd_fan_sums *sums, const struct psd_host_classes *classes, uint32_t room,
		       uint32_t new_room)
{
	for (unsigned r = 0; r < PSD_FAN_REACHES; r++)
		if (!widen(&sums->all[r], 1, room, new_room) ||
		    !widen(&sums->in_rack[r], classes->n_racks, room, new_room))
			return false;
	return widen(&sums->on_node, classes->n_nodes, room, new_room);
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
	struct psd_fan_targets *targets = realloc(fans->targets, new_room * sizeof(*targets));

	if (!targets)
		return false;
	fans->targets = targets;
	uint32_t *live = realloc(fans->live, new_room * sizeof(*live));

	if (!live)
		return false;
	fans->live = live;
	if (!widen(&fans->on_node, fans->classes->n_nodes, room, new_room) ||
	    !widen(&fans->in_rack, fans->classes->n_racks, room, new_room) ||
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
		fans->in_rack[at_rack(fans, r, index)] = 0.0;
	*targets = (struct psd_fan_targets){.bits = targets->bits, .hash = hash};
	for (unsigned c = 0; c < classes->n; c++) {
		const struct psd_host_kind *kind = &classes->of[c];

		if (!(bits[c / 64] >> c % 64 & 1))
			continue;
		targets->n += kind->n_members;
		fans->on_node[at_node(fans, kind->node, index)] += kind->n_here;
		fans->in_rack[at_rack(fans, kind->rack, index)] +=
			(double)kind->n_members / classes->racks_in[kind->rack];
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

double psd_fans_count(const struct psd_fans *fans, unsigned from, uint32_t index, enum psd_fan_reach reach)
{
	const struct psd_host_kind *kind = &fans->classes->of[from];
	const double in_rack = fans->in_rack[at_rack(fans, kind->rack, index)];

	return reach == PSD_FAN_BEYOND ? fans->targets[index].n - in_rack
				       : in_rack - fans->on_node[at_node(fans, kind->node, index)];
}

unsigned psd_fans_senders(const struct psd_fans *fans, unsigned from, unsigned to, enum psd_fan_reach reach)
{
	const struct psd_host_kind *here = &fans->classes->of[from], *there = &fans->classes->of[to];
	const unsigned in_rack = here->rack == there->rack ? here->n_members / fans->classes->racks_in[here->rack] : 0;

	if (reach == PSD_FAN_BEYOND)
		return here->n_members - in_rack;
	return in_rack - (here->node == there->node ? here->n_here : 0);
}

/* ---- fans ---- */

bool psd_fans_init(struct psd_fans *fans, const struct psd_host_classes *classes)
{
	*fans = (struct psd_fans){
		.classes = classes,
		.n_words = (classes->n + 63) / 64,
		.n_links = 2 * (classes->n_nodes + classes->n_racks),
		.next_sec = INFINITY,
	};
	fans->links = calloc(fans->n_links, sizeof(*fans->links));
	fans->n_of_class = calloc(classes->n, sizeof(*fans->n_of_class));
	fans->first_of_node = calloc(classes->n_nodes + 1, sizeof(*fans->first_of_node));
	fans->cut = calloc((size_t)fans->n_words * PSD_FAN_REACHES + fans->n_words, sizeof(*fans->cut));
	fans->heap = calloc(fans->n_links, sizeof(*fans->heap));
	fans->tied = calloc(fans->n_links, sizeof(*fans->tied));
	return fans->heap && fans->tied && fans->links && fans->n_of_class && fans->first_of_node && fans->cut;
}

void psd_fans_release(struct psd_fans *fans)
{
	for (uint32_t t = 0; t < fans->n_targets; t++)
		free(fans->targets[t].bits);
	release_sums(&fans->open);
	release_sums(&fans->known);
	free(fans->on_node);
	free(fans->in_rack);
	free(fans->targets);
	free(fans->fans);
	free(fans->ended);
	free(fans->n_of_class);
	free(fans->links);
	free(fans->in_use);
	free(fans->live);
	free(fans->heap);
	free(fans->tied);
	free(fans->of_node);
	free(fans->first_of_node);
	free(fans->cut);
	*fans = (struct psd_fans){.fans = NULL};
}

static bool append(struct psd_fans *fans, const struct psd_fan *fan)
{
	struct psd_fan *grown = psd_grown(fans->fans, fans->n_fans, &fans->room, sizeof(*grown));

	if (!grown)
		return false;
	fans->fans = grown;
	if (fans->ended_room < fans->room) {
		struct psd_fan *ended = realloc(fans->ended, fans->room * sizeof(*ended));

		if (!ended)
			return false;
		fans->ended = ended;
		fans->ended_room = fans->room;
	}
	grown[fans->n_fans++] = *fan;
	fans->n_of_class[fan->from]++;
	fans->targets[fan->targets].n_fans[fan->reach]++;
	return true;
}

bool psd_fans_add(struct psd_fans *fans, const struct psd_fan *fan)
{
	struct psd_fan added = *fan;

	added.n = psd_fans_count(fans, fan->from, fan->targets, fan->reach);
	added.rate = 0.0;
	added.end_sec = INFINITY;
	added.number = fans->n_begun++;
	return append(fans, &added);
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

static void end_due(struct psd_fans *fans, double now_sec)
{
	uint32_t n_kept = 0;

	fans->n_ended = fans->next_ended = 0;
	fans->next_sec = INFINITY;
	for (uint32_t f = 0; f < fans->n_fans; f++) {
		const struct psd_fan *fan = &fans->fans[f];

		if (fan->end_sec - now_sec < simgrid_precision_sec) {
			fans->targets[fan->targets].n_fans[fan->reach]--;
			fans->ended[fans->n_ended++] = *fan;
			continue;
		}
		fans->next_sec = fmin(fans->next_sec, fan->end_sec);
		if (f != n_kept)
			fans->fans[n_kept] = *fan;
		n_kept++;
	}
	fans->n_fans = n_kept;
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

	for (uint32_t i = 0; i < fans->n_in_use; i++) {
		const uint32_t t = fans->in_use[i];

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

	for (uint32_t i = 0; i < fans->n_in_use; i++) {
		const uint32_t t = fans->in_use[i];

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

static void add_to(const struct psd_fans *fans, const struct psd_fan_sums *sums, const struct psd_fan *fan,
		   double factor)
{
	const struct psd_host_kind *kind = &fans->classes->of[fan->from];

	sums->all[fan->reach][fan->targets] += factor * kind->n_members;
	sums->in_rack[fan->reach][at_rack(fans, kind->rack, fan->targets)] +=
		factor * (kind->n_members / fans->classes->racks_in[kind->rack]);
	if (fan->reach == PSD_FAN_IN_RACK)
		sums->on_node[at_node(fans, kind->node, fan->targets)] += factor * kind->n_here;
}

static void clear(const struct psd_fans *fans, const struct psd_fan_sums *sums, const struct psd_fan *fan)
{
	const struct psd_host_kind *kind = &fans->classes->of[fan->from];

	sums->all[fan->reach][fan->targets] = 0.0;
	sums->in_rack[fan->reach][at_rack(fans, kind->rack, fan->targets)] = 0.0;
	sums->on_node[at_node(fans, kind->node, fan->targets)] = 0.0;
}

/* Adds the flows of a fan to the links of its senders: n_open is 1 or -1, and the rate is known or 0. */
static void add_to_senders(struct psd_fans *fans, const struct psd_fan *fan, double n_open, double rate)
{
	const struct psd_host_kind *kind = &fans->classes->of[fan->from];
	struct psd_fan_link *out = &fans->links[kind->node], *up = &fans->links[fans->classes->n_nodes + kind->rack];
	const double on_node = kind->n_here * fan->n,
		     in_rack = kind->n_members / fans->classes->racks_in[kind->rack] * fan->n;

	out->n_open += n_open * on_node;
	out->known += rate * on_node;
	if (fan->reach == PSD_FAN_BEYOND) {
		up->n_open += n_open * in_rack;
		up->known += rate * in_rack;
	}
}

static void open_fan(struct psd_fans *fans, struct psd_fan *fan)
{
	fan->rate = -1.0;
	add_to(fans, &fans->open, fan, 1.0);
	add_to_senders(fans, fan, 1.0, 0.0);
}

static void fix(struct psd_fans *fans, struct psd_fan *fan, double rate)
{
	fan->rate = rate;
	add_to(fans, &fans->open, fan, -1.0);
	add_to(fans, &fans->known, fan, rate);
	add_to_senders(fans, fan, -1.0, rate);
}

/* Moves a fan whose rate is not known to other targets. */
static void move(struct psd_fans *fans, struct psd_fan *fan, uint32_t index)
{
	add_to(fans, &fans->open, fan, -1.0);
	add_to_senders(fans, fan, -1.0, 0.0);
	fans->targets[fan->targets].n_fans[fan->reach]--;
	fan->targets = index;
	fan->n = psd_fans_count(fans, fan->from, index, fan->reach);
	fans->targets[index].n_fans[fan->reach]++;
	open_fan(fans, fan);
}

/* ---- filling ---- */

static bool use(struct psd_fans *fans, uint32_t index)
{
	for (uint32_t i = 0; i < fans->n_in_use; i++)
		if (fans->in_use[i] == index)
			return true;
	uint32_t *grown = psd_grown(fans->in_use, fans->n_in_use, &fans->in_use_room, sizeof(*grown));

	if (!grown)
		return false;
	fans->in_use = grown;
	grown[fans->n_in_use++] = index;
	return true;
}

/* Lists the targets that have fans, and forgets those that are not kept and have none. */
static bool use_all(struct psd_fans *fans)
{
	fans->n_in_use = 0;
	for (uint32_t i = 0; i < fans->n_live;) {
		const uint32_t index = fans->live[i];
		const struct psd_fan_targets *targets = &fans->targets[index];
		const bool has_fans = targets->n_fans[PSD_FAN_IN_RACK] + targets->n_fans[PSD_FAN_BEYOND] > 0;

		if (!has_fans && !targets->is_kept) {
			fans->live[i] = fans->live[--fans->n_live];
			fans->live[fans->n_live] = index;
			continue;
		}
		if (has_fans && !use(fans, index))
			return false;
		i++;
	}
	return true;
}

/* Sorts fans by the class of their node, and sums up the hosts of each set of targets. */
static bool open_fans(struct psd_fans *fans)
{
	const struct psd_host_classes *classes = fans->classes;
	uint32_t *first = fans->first_of_node;

	if (fans->of_node_room < fans->room) {
		uint32_t *grown = realloc(fans->of_node, fans->room * sizeof(*grown));

		if (!grown)
			return false;
		fans->of_node = grown;
		fans->of_node_room = fans->room;
	}
	if (!use_all(fans))
		return false;
	for (unsigned l = 0; l < fans->n_links; l++)
		fans->links[l].n_open = fans->links[l].known = 0.0;
	memset(first, 0, (classes->n_nodes + 1) * sizeof(*first));
	for (uint32_t f = 0; f < fans->n_fans; f++) {
		open_fan(fans, &fans->fans[f]);
		first[classes->of[fans->fans[f].from].node + 1]++;
	}
	for (unsigned n = 0; n < classes->n_nodes; n++)
		first[n + 1] += first[n];
	for (uint32_t f = fans->n_fans; f-- > 0;)
		fans->of_node[--first[classes->of[fans->fans[f].from].node + 1]] = f;
	for (unsigned n = 0; n < classes->n_nodes; n++)
		first[n] = first[n + 1];
	first[classes->n_nodes] = fans->n_fans;
	fans->version++;
	fans->n_heap = 0;
	for (unsigned l = 0; l < fans->n_links; l++) {
		if (is_into_node(fans, l) && !fans->links[l].is_watched)
			continue;
		set_share(fans, l);
		if (isfinite(fans->links[l].share))
			push(fans, l);
	}
	return true;
}

/* Gives the rate to all open fans of a node, to all reaches or only beyond. Parts of divided fans have one already. */
static void fix_node(struct psd_fans *fans, unsigned node, bool is_beyond_only, double rate)
{
	for (uint32_t i = fans->first_of_node[node]; i < fans->first_of_node[node + 1]; i++) {
		struct psd_fan *fan = &fans->fans[fans->of_node[i]];

		if (fan->rate < 0.0 && (!is_beyond_only || fan->reach == PSD_FAN_BEYOND))
			fix(fans, fan, rate);
	}
}

/* Fixes the fans whose senders' link is the bottleneck. */
static void fix_senders(struct psd_fans *fans, unsigned link, double rate)
{
	const unsigned n_nodes = fans->classes->n_nodes;

	if (link < n_nodes) {
		fix_node(fans, link, false, rate);
		return;
	}
	for (unsigned n = 0; n < n_nodes; n++)
		if (fans->classes->rack_of_node[n] == link - n_nodes)
			fix_node(fans, n, true, rate);
}

static bool is_tied(const struct psd_fans *fans, unsigned link, double rate)
{
	return (fans->links[link].is_watched || !is_into_node(fans, link)) && fans->links[link].at == fans->version &&
	       fans->links[link].share <= rate * tie;
}

/* Finds the targets behind receivers' links that are bottlenecks, at each reach. */
static void find_cut(struct psd_fans *fans, double rate)
{
	const struct psd_host_classes *classes = fans->classes;
	const unsigned in = first_link(fans, PSD_FAN_IN), down = first_link(fans, PSD_FAN_DOWN);

	memset(fans->cut, 0, PSD_FAN_REACHES * fans->n_words * sizeof(*fans->cut));
	for (unsigned c = 0; c < classes->n; c++) {
		const bool is_in = is_tied(fans, in + classes->of[c].node, rate);
		if (is_in)
			fans->links[in + classes->of[c].node].cut_at = fans->n_solved;
		const bool is_down = is_tied(fans, down + classes->of[c].rack, rate);

		if (is_in)
			fans->cut[PSD_FAN_IN_RACK * fans->n_words + c / 64] |= UINT64_C(1) << c % 64;
		if (is_in || is_down)
			fans->cut[PSD_FAN_BEYOND * fans->n_words + c / 64] |= UINT64_C(1) << c % 64;
	}
}

/* Finds the part of some targets inside the cut, or outside of it. False: out of memory. */
static bool find_part(struct psd_fans *fans, uint32_t index, enum psd_fan_reach reach, bool is_inside, uint32_t *part)
{
	const uint64_t *cut = &fans->cut[reach * fans->n_words];
	uint64_t *bits = &fans->cut[PSD_FAN_REACHES * fans->n_words];

	for (unsigned w = 0; w < fans->n_words; w++)
		bits[w] = fans->targets[index].bits[w] & (is_inside ? cut[w] : ~cut[w]);
	return add_targets(fans, bits, part) && use(fans, *part);
}

/* Finds both parts of some targets. */
static bool divide(struct psd_fans *fans, uint32_t index, enum psd_fan_reach reach)
{
	uint32_t inside, outside;

	if (fans->targets[index].cut_at[reach] == fans->version)
		return true;
	if (!find_part(fans, index, reach, true, &inside) || !find_part(fans, index, reach, false, &outside))
		return false;
	fans->targets[index].inside[reach] = inside;
	fans->targets[index].outside[reach] = outside;
	fans->targets[index].cut_at[reach] = fans->version;
	return true;
}

/* Fixes the flows of a fan that pass the cut. If others do not, they become a fan of their own. */
static bool cut_fan(struct psd_fans *fans, uint32_t f, uint32_t inside, uint32_t outside, double rate)
{
	struct psd_fan *fan = &fans->fans[f];

	if (psd_fans_count(fans, fan->from, inside, fan->reach) < 0.5)
		return true;
	if (psd_fans_count(fans, fan->from, outside, fan->reach) < 0.5) {
		fix(fans, fan, rate);
		return true;
	}
	struct psd_fan part = *fan;

	move(fans, fan, outside);
	part.targets = inside;
	part.n = psd_fans_count(fans, part.from, inside, part.reach);
	if (!append(fans, &part))
		return false;
	open_fan(fans, &fans->fans[fans->n_fans - 1]);
	fix(fans, &fans->fans[fans->n_fans - 1], rate);
	return true;
}

/* Fixes the flows whose receivers' links are bottlenecks. */
static bool fix_receivers(struct psd_fans *fans, double rate)
{
	const uint32_t n_fans = fans->n_fans;

	find_cut(fans, rate);
	for (uint32_t f = 0; f < n_fans; f++) {
		const struct psd_fan *fan = &fans->fans[f];

		if (fan->rate >= 0.0)
			continue;
		if (!divide(fans, fan->targets, fan->reach) ||
		    !cut_fan(fans, f, fans->targets[fan->targets].inside[fan->reach],
			     fans->targets[fan->targets].outside[fan->reach], rate))
			return false;
	}
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

		fans->n_visits += fans->n_in_use;
		if (!is_of_receiver(fans, link))
			fix_senders(fans, link, rate);
		else if (!fix_receivers(fans, rate))
			return false;
		fans->version++;
	}
	return true;
}

/* ---- links into nodes ---- */

/* Watches the links into nodes that would carry more than they can. Returns their number. */
static unsigned watch(struct psd_fans *fans)
{
	const unsigned in = first_link(fans, PSD_FAN_IN);
	unsigned n_watched = 0;

	for (unsigned node = 0; node < fans->classes->n_nodes; node++) {
		struct psd_fan_link *link = &fans->links[in + node];
		double n_open = 0.0, known = 0.0;

		if (link->is_watched)
			continue;
		sum_into_node(fans, node, &n_open, &known);
		if (known <= link->rate * tie)
			continue;
		link->is_watched = true;
		link->cut_at = fans->n_solved;
		n_watched++;
	}
	return n_watched;
}

/* Finds the rates with the links that are watched, until all others have room. */
static bool fill_all(struct psd_fans *fans)
{
	const unsigned in = first_link(fans, PSD_FAN_IN);

	for (;;) {
		if (!open_fans(fans) || !fill(fans))
			return false;
		const bool is_done = watch(fans) == 0;

		for (uint32_t f = 0; f < fans->n_fans; f++)
			clear(fans, &fans->known, &fans->fans[f]);
		if (is_done)
			break;
	}
	for (unsigned node = 0; node < fans->classes->n_nodes; node++)
		if (fans->n_solved - fans->links[in + node].cut_at > most_idle)
			fans->links[in + node].is_watched = false;
	return true;
}

bool psd_fans_solve(struct psd_fans *fans, double now_sec)
{
	for (uint32_t f = 0; f < fans->n_fans; f++)
		fans->fans[f].left_bytes =
			fmax(0.0, fans->fans[f].left_bytes - fans->fans[f].rate * (now_sec - fans->now_sec));
	fans->now_sec = now_sec;
	fans->n_solved++;
	if (!fill_all(fans))
		return false;
	fans->n_visits += fans->n_fans;
	fans->next_sec = INFINITY;
	for (uint32_t f = 0; f < fans->n_fans; f++) {
		struct psd_fan *fan = &fans->fans[f];

		fan->end_sec = now_sec + fan->left_bytes / fan->rate;
		fans->next_sec = fmin(fans->next_sec, fan->end_sec);
	}
	return true;
}
