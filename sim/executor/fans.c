#include "sim/executor/fans.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/grow.h"

static const double simgrid_precision_sec = 1e-9; /* SimGrid ends flows together that end in this time */
static const double tie = 1.0 + 1e-11;		  /* shares that differ by less are equal */

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

/* ---- targets ---- */

static bool init_sums(struct psd_fan_sums *sums, const struct psd_host_classes *classes)
{
	sums->in_rack = calloc(classes->n_racks, sizeof(*sums->in_rack));
	sums->on_node = calloc(classes->n_nodes, sizeof(*sums->on_node));
	return sums->in_rack && sums->on_node;
}

static bool init_targets(struct psd_fan_targets *targets, const struct psd_fans *fans)
{
	const struct psd_host_classes *classes = fans->classes;
	bool has_memory = true;

	*targets = (struct psd_fan_targets){
		.bits = calloc(fans->n_words, sizeof(*targets->bits)),
		.on_node = calloc(classes->n_nodes, sizeof(*targets->on_node)),
		.in_rack = calloc(classes->n_racks, sizeof(*targets->in_rack)),
	};
	for (unsigned r = 0; r < PSD_FAN_REACHES; r++)
		has_memory =
			init_sums(&targets->open[r], classes) && init_sums(&targets->known[r], classes) && has_memory;
	return has_memory && targets->bits && targets->on_node && targets->in_rack;
}

static void set_bits(struct psd_fan_targets *targets, const struct psd_fans *fans, const uint64_t *bits, uint64_t hash)
{
	const struct psd_host_classes *classes = fans->classes;

	memcpy(targets->bits, bits, fans->n_words * sizeof(*bits));
	memset(targets->on_node, 0, classes->n_nodes * sizeof(*targets->on_node));
	memset(targets->in_rack, 0, classes->n_racks * sizeof(*targets->in_rack));
	targets->n = 0.0;
	targets->hash = hash;
	targets->is_kept = false;
	for (unsigned c = 0; c < classes->n; c++) {
		const struct psd_host_kind *kind = &classes->of[c];

		if (!(bits[c / 64] >> c % 64 & 1))
			continue;
		targets->n += kind->n_members;
		targets->on_node[kind->node] += kind->n_here;
		targets->in_rack[kind->rack] += (double)kind->n_members / classes->racks_in[kind->rack];
	}
}

static void release_targets(struct psd_fan_targets *targets)
{
	free(targets->bits);
	free(targets->on_node);
	free(targets->in_rack);
	for (unsigned r = 0; r < PSD_FAN_REACHES; r++) {
		free(targets->open[r].in_rack);
		free(targets->open[r].on_node);
		free(targets->known[r].in_rack);
		free(targets->known[r].on_node);
	}
}

/* Makes an unused entry at the end of `live`. */
static bool add_unused(struct psd_fans *fans)
{
	struct psd_fan_targets *grown = psd_grown(fans->targets, fans->n_targets, &fans->target_room, sizeof(*grown));
	uint32_t *live;

	if (!grown)
		return false;
	fans->targets = grown;
	live = psd_grown(fans->live, fans->n_targets, &fans->live_room, sizeof(*live));
	if (!live)
		return false;
	fans->live = live;
	live[fans->n_targets] = fans->n_targets;
	return init_targets(&grown[fans->n_targets++], fans);
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
	set_bits(&fans->targets[*index], fans, bits, hash);
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
	const struct psd_fan_targets *targets = &fans->targets[index];
	const struct psd_host_kind *kind = &fans->classes->of[from];

	return reach == PSD_FAN_BEYOND ? targets->n - targets->in_rack[kind->rack]
				       : targets->in_rack[kind->rack] - targets->on_node[kind->node];
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
		release_targets(&fans->targets[t]);
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

/* Returns the sum over the flows on a link of fans with these targets, at this reach. */
static double sum_on(const struct psd_fan_targets *targets, const struct psd_fan_sums *sums, enum psd_fan_reach reach,
		     enum psd_fan_link_kind kind, unsigned node, unsigned rack)
{
	const bool is_beyond = reach == PSD_FAN_BEYOND;

	switch (kind) {
	case PSD_FAN_OUT:
		return sums->on_node[node] * (is_beyond ? targets->n - targets->in_rack[rack]
							: targets->in_rack[rack] - targets->on_node[node]);
	case PSD_FAN_UP: return is_beyond ? sums->in_rack[rack] * (targets->n - targets->in_rack[rack]) : 0.0;
	case PSD_FAN_IN:
		return targets->on_node[node] *
		       (is_beyond ? sums->all - sums->in_rack[rack] : sums->in_rack[rack] - sums->on_node[node]);
	case PSD_FAN_DOWN: break;
	}
	return is_beyond ? targets->in_rack[rack] * (sums->all - sums->in_rack[rack]) : 0.0;
}

/* Finds the present share of a link. */
static void set_share(struct psd_fans *fans, enum psd_fan_link_kind kind, unsigned class)
{
	struct psd_fan_link *link = &fans->links[first_link(fans, kind) + class];
	const bool is_of_node = kind == PSD_FAN_OUT || kind == PSD_FAN_IN;
	const unsigned node = is_of_node ? class : 0, rack = is_of_node ? fans->classes->rack_of_node[class] : class;
	double n_open = 0.0, known = 0.0;

	for (uint32_t i = 0; i < fans->n_in_use && link->rate > 0.0; i++) {
		const struct psd_fan_targets *targets = &fans->targets[fans->in_use[i]];

		for (unsigned r = 0; r < PSD_FAN_REACHES; r++) {
			const enum psd_fan_reach reach = (enum psd_fan_reach)r;

			if (targets->n_fans[r] == 0)
				continue;
			n_open += sum_on(targets, &targets->open[r], reach, kind, node, rack);
			known += sum_on(targets, &targets->known[r], reach, kind, node, rack);
		}
	}
	link->share = n_open > 0.5 ? fmax(0.0, link->rate - known) / n_open : INFINITY;
	link->at = fans->version;
}

static void set_share_of(struct psd_fans *fans, unsigned link)
{
	const unsigned n_nodes = fans->classes->n_nodes, n_racks = fans->classes->n_racks;

	if (link < n_nodes)
		set_share(fans, PSD_FAN_OUT, link);
	else if (link < n_nodes + n_racks)
		set_share(fans, PSD_FAN_UP, link - n_nodes);
	else if (link < 2 * n_nodes + n_racks)
		set_share(fans, PSD_FAN_IN, link - n_nodes - n_racks);
	else
		set_share(fans, PSD_FAN_DOWN, link - 2 * n_nodes - n_racks);
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
		set_share_of(fans, fans->heap[0]);
		if (isinf(link->share))
			(void)pop(fans);
		else
			sink(fans);
	}
	return false;
}

static void add_to(struct psd_fan_sums *sums, const struct psd_host_classes *classes, unsigned from, double factor)
{
	const struct psd_host_kind *kind = &classes->of[from];

	sums->all += factor * kind->n_members;
	sums->in_rack[kind->rack] += factor * (kind->n_members / classes->racks_in[kind->rack]);
	sums->on_node[kind->node] += factor * kind->n_here;
}

static void fix(struct psd_fans *fans, struct psd_fan *fan, double rate)
{
	struct psd_fan_targets *targets = &fans->targets[fan->targets];

	fan->rate = rate;
	add_to(&targets->open[fan->reach], fans->classes, fan->from, -1.0);
	add_to(&targets->known[fan->reach], fans->classes, fan->from, rate);
}

/* Moves a fan whose rate is not known to other targets. */
static void move(struct psd_fans *fans, struct psd_fan *fan, uint32_t index)
{
	add_to(&fans->targets[fan->targets].open[fan->reach], fans->classes, fan->from, -1.0);
	fans->targets[fan->targets].n_fans[fan->reach]--;
	fan->targets = index;
	fans->targets[index].n_fans[fan->reach]++;
	add_to(&fans->targets[index].open[fan->reach], fans->classes, fan->from, 1.0);
}

/* ---- filling ---- */

static void clear(struct psd_fan_sums *sums, const struct psd_host_classes *classes)
{
	sums->all = 0.0;
	memset(sums->in_rack, 0, classes->n_racks * sizeof(*sums->in_rack));
	memset(sums->on_node, 0, classes->n_nodes * sizeof(*sums->on_node));
}

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
	for (unsigned r = 0; r < PSD_FAN_REACHES; r++) {
		clear(&fans->targets[index].open[r], fans->classes);
		clear(&fans->targets[index].known[r], fans->classes);
	}
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
	memset(first, 0, (classes->n_nodes + 1) * sizeof(*first));
	for (uint32_t f = 0; f < fans->n_fans; f++) {
		struct psd_fan *fan = &fans->fans[f];

		fan->rate = -1.0;
		add_to(&fans->targets[fan->targets].open[fan->reach], classes, fan->from, 1.0);
		first[classes->of[fan->from].node + 1]++;
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
		set_share_of(fans, l);
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
	return fans->links[link].at == fans->version && fans->links[link].share <= rate * tie;
}

/* Finds the targets behind receivers' links that are bottlenecks, at each reach. */
static void find_cut(struct psd_fans *fans, double rate)
{
	const struct psd_host_classes *classes = fans->classes;
	const unsigned in = first_link(fans, PSD_FAN_IN), down = first_link(fans, PSD_FAN_DOWN);

	memset(fans->cut, 0, PSD_FAN_REACHES * fans->n_words * sizeof(*fans->cut));
	for (unsigned c = 0; c < classes->n; c++) {
		const bool is_in = is_tied(fans, in + classes->of[c].node, rate);
		const bool is_down = is_tied(fans, down + classes->of[c].rack, rate);

		if (is_in)
			fans->cut[PSD_FAN_IN_RACK * fans->n_words + c / 64] |= UINT64_C(1) << c % 64;
		if (is_in || is_down)
			fans->cut[PSD_FAN_BEYOND * fans->n_words + c / 64] |= UINT64_C(1) << c % 64;
	}
}

/* Finds the targets `index` inside the cut, or outside of it. False: out of memory. */
static bool find_part(struct psd_fans *fans, uint32_t index, enum psd_fan_reach reach, bool is_inside, uint32_t *part)
{
	const uint64_t *cut = &fans->cut[reach * fans->n_words];
	uint64_t *bits = &fans->cut[PSD_FAN_REACHES * fans->n_words];

	for (unsigned w = 0; w < fans->n_words; w++)
		bits[w] = fans->targets[index].bits[w] & (is_inside ? cut[w] : ~cut[w]);
	return add_targets(fans, bits, part) && use(fans, *part);
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
	part.rate = -1.0;
	if (!append(fans, &part))
		return false;
	add_to(&fans->targets[inside].open[part.reach], fans->classes, part.from, 1.0);
	fix(fans, &fans->fans[fans->n_fans - 1], rate);
	return true;
}

/* Fixes the flows whose receivers' links are bottlenecks. */
static bool fix_receivers(struct psd_fans *fans, double rate)
{
	const uint32_t n_fans = fans->n_fans;
	uint32_t last[PSD_FAN_REACHES] = {UINT32_MAX, UINT32_MAX}, inside[PSD_FAN_REACHES], outside[PSD_FAN_REACHES];

	find_cut(fans, rate);
	for (uint32_t f = 0; f < n_fans; f++) {
		const enum psd_fan_reach reach = fans->fans[f].reach;
		const uint32_t index = fans->fans[f].targets;

		if (fans->fans[f].rate >= 0.0)
			continue;
		if (last[reach] != index && (!find_part(fans, index, reach, true, &inside[reach]) ||
					     !find_part(fans, index, reach, false, &outside[reach])))
			return false;
		last[reach] = index;
		if (!cut_fan(fans, f, inside[reach], outside[reach], rate))
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

bool psd_fans_solve(struct psd_fans *fans, double now_sec)
{
	for (uint32_t f = 0; f < fans->n_fans; f++)
		fans->fans[f].left_bytes =
			fmax(0.0, fans->fans[f].left_bytes - fans->fans[f].rate * (now_sec - fans->now_sec));
	fans->now_sec = now_sec;
	if (!open_fans(fans) || !fill(fans))
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
