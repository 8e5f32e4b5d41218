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
		     4U * psd_layout_is_shard(layout, host) + 8U * psd_layout_n_led(layout, host) +
		     1024U * psd_layout_kind(layout, psd_layout_node(layout, host))) ^
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
		if (psd_op_is_send(&program->ops[i]) && are_equal(&program->ops[i].payload, &program->ops[op].payload))
			return false;
	return true;
}

static void find_kinds(struct work *work)
{
	const struct psd_program *program = &work->simulated->program;

	for (unsigned h = 0; h < work->n_hosts; h++)
		work->hosts[h] = kind_by_itself(work, h);
	for (uint32_t i = 0; i < program->n_ops; i++)
		if (psd_op_is_send(&program->ops[i]) && is_first_of_its_kind(program, i))
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

/* ---- representatives ---- */

static void find_representatives(struct psd_host_classes *classes, const struct work *work)
{
	for (unsigned h = work->n_hosts; h-- > 0;) {
		const unsigned node = psd_layout_node(work->layout, h), c = work->class_of[h];

		classes->of[c].representative = h;
		classes->of[c].node = work->class_of_node[node];
		classes->of[c].rack = work->class_of_rack[rack_of(work->layout, node)];
		classes->rack_of_node[classes->of[c].node] = classes->of[c].rack;
	}
}

static bool add_peer(struct psd_host_classes *classes, uint32_t first, uint32_t *n, uint32_t *room,
		     struct psd_host_peers peer)
{
	struct psd_host_peers *grown;

	for (uint32_t p = first; p < *n; p++)
		if (classes->peers[p].to == peer.to) {
			classes->peers[p].n++;
			return true;
		}
	grown = psd_grown(classes->peers, *n, room, sizeof(*grown));
	if (!grown)
		return false;
	classes->peers = grown;
	grown[(*n)++] = peer;
	return true;
}

/* Lists the hosts on the node of each representative. */
static bool find_peers(struct psd_host_classes *classes, const struct work *work)
{
	uint32_t n = 0, room = 0;
	bool has_memory = true;

	for (unsigned c = 0; c < classes->n && has_memory; c++) {
		const unsigned host = classes->of[c].representative, node = psd_layout_node(work->layout, host);
		const unsigned first = psd_layout_first(work->layout, node);
		const unsigned end = psd_layout_first(work->layout, node + 1);

		classes->first_peers[c] = n;
		classes->of[c].n_here = 1;
		for (unsigned h = first; h < end && has_memory; h++) {
			if (h == host)
				continue;
			classes->of[c].n_here += work->class_of[h] == c;
			has_memory = add_peer(classes, classes->first_peers[c], &n, &room,
					      (struct psd_host_peers){work->class_of[h], h, 1});
		}
	}
	classes->first_peers[classes->n] = n;
	return has_memory;
}

static bool fill(struct psd_host_classes *classes, const struct work *work)
{
	classes->first_peers = calloc(classes->n + 1, sizeof(*classes->first_peers));
	classes->rack_of_node = calloc(classes->n_nodes, sizeof(*classes->rack_of_node));
	if (!classes->first_peers || !classes->rack_of_node)
		return false;
	find_representatives(classes, work);
	return find_peers(classes, work);
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
	return work->hosts && work->nodes && work->racks && work->class_of && work->class_of_node &&
	       work->class_of_rack;
}

static void close_work(struct work *work)
{
	free(work->hosts);
	free(work->nodes);
	free(work->racks);
	free(work->class_of);
	free(work->class_of_node);
	free(work->class_of_rack);
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
		has_memory = !*has_classes || fill(classes, &work);
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
	free(classes->rack_of_node);
	free(classes->peers);
	free(classes->first_peers);
	*classes = (struct psd_host_classes){.of = NULL};
}
