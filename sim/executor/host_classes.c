#include "sim/executor/host_classes.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/grow.h"

/* Kinds are 64-bit hash values of all that is known of a host, node or rack. */
struct work {
	const struct psd_case *simulated;
	const struct psd_layout *layout;
	unsigned n_hosts, n_nodes, n_racks;
	uint64_t *hosts, *nodes, *racks; /* kinds */
	unsigned *class_of;		 /* class of each host */
	unsigned *class_of_node, *class_of_rack;
	unsigned *rack_hosts;	   /* hosts in the order of their racks */
	unsigned *first_in_rack;   /* index in rack_hosts of the first host of each rack, and one entry more */
	unsigned *n_near, *n_far;  /* number of hosts of each class on a node, and on other nodes of a rack */
	unsigned *near, *far;	   /* one of these hosts */
	unsigned *first, *outside; /* first host of each class, and first one outside the rack of that */
};

static uint64_t mixed(uint64_t value)
{
	value += 0x9e3779b97f4a7c15U;
	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9U;
	value = (value ^ value >> 27) * 0x94d049bb133111ebU;
	return value ^ value >> 31;
}

static uint64_t bits_of(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static unsigned rack_of(const struct psd_layout *layout, unsigned node)
{
	return layout->nodes_per_rack > 0 ? psd_layout_rack(layout, node) : node;
}

/* ---- kinds ---- */

static uint64_t kind_of_slowdowns(const struct psd_scenario *scenario, unsigned node)
{
	uint64_t kind = 0;

	for (unsigned i = 0; i < scenario->n_slowdowns; i++) {
		const struct psd_slowdown *slow = &scenario->slowdowns[i];

		if (slow->node != node)
			continue;
		kind = mixed(kind ^ bits_of(slow->compute_ratio));
		kind = mixed(kind ^ bits_of(slow->link_ratio));
		kind = mixed(kind ^ bits_of(slow->from_sec));
		kind = mixed(kind ^ bits_of(slow->until_sec));
	}
	return kind;
}

static uint64_t kind_by_itself(const struct work *work, unsigned host)
{
	const struct psd_layout *layout = work->layout;

	return mixed(psd_layout_is_worker(layout, host) + 2U * psd_layout_is_leader(layout, host) +
		     4U * psd_layout_is_shard(layout, host) + 8U * psd_layout_n_led(layout, host)) ^
	       kind_of_slowdowns(work->simulated->costed->scenario, psd_layout_node(layout, host));
}

static bool are_equal(const struct psd_payload *a, const struct psd_payload *b)
{
	return a->collective == b->collective && a->elements == b->elements;
}

/* Adds to the kinds of all hosts how many elements they send and receive in a transfer. */
static void add_payload(struct work *work, const struct psd_payload *payload)
{
	const struct psd_collective *reverse = payload->collective->reverse_of;
	const struct psd_collective *collective = reverse ? reverse : payload->collective;

	for (unsigned h = 0; h < work->n_hosts; h++) {
		const struct psd_traffic traffic = collective->host_elements(payload, work->layout, h);

		work->hosts[h] = mixed(work->hosts[h] ^ mixed(traffic.sent_bytes));
		work->hosts[h] = mixed(work->hosts[h] ^ mixed(traffic.received_bytes));
	}
}

static bool is_first_of_its_kind(const struct psd_program *program, uint32_t op)
{
	for (uint32_t i = 0; i < op; i++)
		if (program->ops[i].kind == PSD_OP_SEND &&
		    are_equal(&program->ops[i].payload, &program->ops[op].payload))
			return false;
	return true;
}

static void find_kinds(struct work *work)
{
	const struct psd_program *program = &work->simulated->program;

	for (unsigned h = 0; h < work->n_hosts; h++)
		work->hosts[h] = kind_by_itself(work, h);
	for (uint32_t i = 0; i < program->n_ops; i++)
		if (program->ops[i].kind == PSD_OP_SEND && is_first_of_its_kind(program, i))
			add_payload(work, &program->ops[i].payload);
	for (unsigned h = 0; h < work->n_hosts; h++)
		work->nodes[psd_layout_node(work->layout, h)] += mixed(work->hosts[h]);
	for (unsigned n = 0; n < work->n_nodes; n++)
		work->racks[rack_of(work->layout, n)] += mixed(work->nodes[n]);
	for (unsigned n = 0; n < work->n_nodes; n++)
		work->nodes[n] = mixed(work->nodes[n] ^ mixed(work->racks[rack_of(work->layout, n)]));
	for (unsigned h = 0; h < work->n_hosts; h++)
		work->hosts[h] = mixed(work->hosts[h] ^ work->nodes[psd_layout_node(work->layout, h)]);
}

/* ---- numbers of classes ---- */

/* Numbers the different kinds by their first occurrence, and counts their members. Returns the number of kinds; 0: out
 * of memory, or more than `most`. */
static unsigned number(const uint64_t *kinds, unsigned n, unsigned most, unsigned *class_of, unsigned **counts)
{
	uint64_t *known = malloc((most + 1) * sizeof(*known));
	unsigned n_known = 0, c = 0;

	*counts = calloc(most + 1, sizeof(**counts));
	for (unsigned i = 0; i < n && known && *counts && n_known <= most; i++) {
		if (n_known == 0 || known[c] != kinds[i])
			for (c = 0; c < n_known && known[c] != kinds[i];)
				c++;
		if (c == n_known && n_known < most)
			known[n_known] = kinds[i];
		n_known += c == n_known;
		class_of[i] = c;
		(*counts)[c]++;
	}
	free(known);
	return *counts && n_known <= most ? n_known : 0;
}

static bool number_all(struct psd_host_classes *classes, struct work *work)
{
	const unsigned most = work->n_hosts / 2 < PSD_MOST_HOST_CLASSES ? work->n_hosts / 2 : PSD_MOST_HOST_CLASSES;
	unsigned *n_members;

	classes->n = number(work->hosts, work->n_hosts, most, work->class_of, &n_members);
	if (classes->n > 0) {
		classes->n_nodes =
			number(work->nodes, work->n_nodes, classes->n, work->class_of_node, &classes->nodes_in);
		classes->n_racks =
			number(work->racks, work->n_racks, classes->n + 1, work->class_of_rack, &classes->racks_in);
	}
	classes->of = classes->n > 0 ? calloc(classes->n, sizeof(*classes->of)) : NULL;
	for (unsigned c = 0; c < classes->n && classes->of; c++)
		classes->of[c].n_members = n_members[c];
	free(n_members);
	return classes->of && classes->n_nodes > 0 && classes->n_racks > 0;
}

/* ---- peers ---- */

/* Sorts the hosts by their racks. */
static void sort_by_racks(struct work *work)
{
	for (unsigned h = 0; h < work->n_hosts; h++)
		work->first_in_rack[rack_of(work->layout, psd_layout_node(work->layout, h)) + 1]++;
	for (unsigned r = 0; r < work->n_racks; r++)
		work->first_in_rack[r + 1] += work->first_in_rack[r];
	for (unsigned h = work->n_hosts; h-- > 0;) {
		const unsigned rack = rack_of(work->layout, psd_layout_node(work->layout, h));

		work->rack_hosts[--work->first_in_rack[rack + 1]] = h;
	}
	for (unsigned r = 0; r < work->n_racks; r++) /* each entry was moved to the begin of its rack */
		work->first_in_rack[r] = work->first_in_rack[r + 1];
	work->first_in_rack[work->n_racks] = work->n_hosts;
}

static void find_representatives(struct psd_host_classes *classes, struct work *work)
{
	for (unsigned h = work->n_hosts; h-- > 0;) {
		const unsigned node = psd_layout_node(work->layout, h), c = work->class_of[h];

		classes->of[c].representative = h;
		classes->of[c].node = work->class_of_node[node];
		classes->of[c].rack = work->class_of_rack[rack_of(work->layout, node)];
		work->first[c] = h;
	}
	for (unsigned h = work->n_hosts; h-- > 0;) {
		const unsigned c = work->class_of[h], first = psd_layout_node(work->layout, work->first[c]);

		if (rack_of(work->layout, psd_layout_node(work->layout, h)) != rack_of(work->layout, first))
			work->outside[c] = h;
	}
}

static bool add_peers(struct psd_host_classes *classes, uint32_t *n, uint32_t *room, struct psd_host_peers peers)
{
	struct psd_host_peers *grown;

	if (peers.n == 0)
		return true;
	grown = psd_grown(classes->peers, *n, room, sizeof(*grown));
	if (!grown)
		return false;
	classes->peers = grown;
	grown[(*n)++] = peers;
	return true;
}

/* Counts the hosts on the node and in the rack of a representative. */
static void count_beside(struct work *work, unsigned host)
{
	const unsigned node = psd_layout_node(work->layout, host), rack = rack_of(work->layout, node);

	for (unsigned i = work->first_in_rack[rack]; i < work->first_in_rack[rack + 1]; i++) {
		const unsigned other = work->rack_hosts[i], c = work->class_of[other];

		if (psd_layout_node(work->layout, other) != node) {
			work->n_far[c]++;
			work->far[c] = other;
		} else if (other != host) {
			work->n_near[c]++;
			work->near[c] = other;
		}
	}
}

static bool add_all_peers(struct psd_host_classes *classes, struct work *work, unsigned from, uint32_t *n,
			  uint32_t *room)
{
	const unsigned host = classes->of[from].representative;
	const unsigned rack = rack_of(work->layout, psd_layout_node(work->layout, host));
	bool has_memory = true;

	memset(work->n_near, 0, classes->n * sizeof(*work->n_near));
	memset(work->n_far, 0, classes->n * sizeof(*work->n_far));
	count_beside(work, host);
	classes->of[from].n_here = work->n_near[from] + 1;
	for (unsigned c = 0; c < classes->n && has_memory; c++) {
		const unsigned n_beyond =
			classes->of[c].n_members - work->n_near[c] - work->n_far[c] - (c == from ? 1 : 0);
		const unsigned first_rack = rack_of(work->layout, psd_layout_node(work->layout, work->first[c]));
		const unsigned beyond = first_rack != rack ? work->first[c] : work->outside[c];

		has_memory = add_peers(classes, n, room, (struct psd_host_peers){c, work->near[c], work->n_near[c]}) &&
			     add_peers(classes, n, room, (struct psd_host_peers){c, work->far[c], work->n_far[c]}) &&
			     add_peers(classes, n, room, (struct psd_host_peers){c, beyond, n_beyond});
	}
	return has_memory;
}

static bool find_peers(struct psd_host_classes *classes, struct work *work)
{
	uint32_t n = 0, room = 0;
	unsigned *const scratch = calloc((size_t)classes->n * 6, sizeof(*scratch));
	bool has_memory = true;

	classes->first_peers = calloc(classes->n + 1, sizeof(*classes->first_peers));
	if (!scratch || !classes->first_peers) {
		free(scratch);
		return false;
	}
	work->n_near = scratch;
	work->n_far = scratch + classes->n;
	work->near = scratch + 2 * (size_t)classes->n;
	work->far = scratch + 3 * (size_t)classes->n;
	work->first = scratch + 4 * (size_t)classes->n;
	work->outside = scratch + 5 * (size_t)classes->n;
	sort_by_racks(work);
	find_representatives(classes, work);
	for (unsigned c = 0; c < classes->n && has_memory; c++) {
		classes->first_peers[c] = n;
		has_memory = add_all_peers(classes, work, c, &n, &room);
	}
	classes->first_peers[classes->n] = n;
	free(scratch);
	return has_memory;
}

/* ---- all of it ---- */

static bool open_work(struct work *work)
{
	work->hosts = calloc(work->n_hosts, sizeof(*work->hosts));
	work->nodes = calloc(work->n_nodes, sizeof(*work->nodes));
	work->racks = calloc(work->n_racks, sizeof(*work->racks));
	work->class_of = calloc(work->n_hosts, sizeof(*work->class_of));
	work->class_of_node = calloc(work->n_nodes, sizeof(*work->class_of_node));
	work->class_of_rack = calloc(work->n_racks, sizeof(*work->class_of_rack));
	work->rack_hosts = calloc(work->n_hosts, sizeof(*work->rack_hosts));
	work->first_in_rack = calloc(work->n_racks + 1, sizeof(*work->first_in_rack));
	return work->hosts && work->nodes && work->racks && work->class_of && work->class_of_node &&
	       work->class_of_rack && work->rack_hosts && work->first_in_rack;
}

static void close_work(struct work *work)
{
	free(work->hosts);
	free(work->nodes);
	free(work->racks);
	free(work->class_of);
	free(work->class_of_node);
	free(work->class_of_rack);
	free(work->rack_hosts);
	free(work->first_in_rack);
}

enum psd_status psd_host_classes_find(struct psd_host_classes *classes, const struct psd_case *simulated,
				      bool *has_classes, struct psd_error *err)
{
	const struct psd_layout *layout = &simulated->plan.layout;
	const unsigned n_nodes = psd_layout_nodes(layout);
	struct work work = {
		.simulated = simulated,
		.layout = layout,
		.n_hosts = psd_layout_hosts(layout),
		.n_nodes = n_nodes,
		.n_racks = layout->nodes_per_rack > 0 ? psd_layout_racks(layout) : n_nodes,
	};
	bool has_memory = open_work(&work);

	*classes = (struct psd_host_classes){.of = NULL};
	*has_classes = false;
	if (has_memory) {
		find_kinds(&work);
		*has_classes = number_all(classes, &work);
		has_memory = !*has_classes || find_peers(classes, &work);
	}
	close_work(&work);
	if (!has_memory || !*has_classes)
		psd_host_classes_release(classes);
	return has_memory ? PSD_OK : psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for classes of hosts");
}

void psd_host_classes_release(struct psd_host_classes *classes)
{
	free(classes->of);
	free(classes->nodes_in);
	free(classes->racks_in);
	free(classes->peers);
	free(classes->first_peers);
	*classes = (struct psd_host_classes){.of = NULL};
}
