#include "engine/estimate/classes.h"

#include <stdlib.h>

#include "engine/base/grow.h"
#include "engine/estimate/estimate_parts.h"

static const struct psd_layout *layout_of(const struct psd_classes *classes)
{
	return &classes->program->plan->layout;
}

size_t psd_classes_path(const struct psd_classes *classes, unsigned from, unsigned to, enum psd_reach reach)
{
	return ((size_t)from * classes->n + to) * PSD_REACHES + reach;
}

size_t psd_classes_n_paths(const struct psd_classes *classes)
{
	return PSD_REACHES * (size_t)classes->n * classes->n;
}

bool psd_classes_have_switches(const struct psd_classes *classes)
{
	return layout_of(classes)->workers_per_switch > 0;
}

bool psd_classes_send(const struct psd_classes *classes, const struct psd_payload *payload, unsigned from, unsigned to,
		      enum psd_reach reach)
{
	const unsigned sender = classes->of[from].representative;
	const struct psd_class_peers *peers = &classes->peers[psd_classes_path(classes, from, to, reach)];
	if (peers->n == 0)
		return false;
	return psd_payload_bytes_between(payload, layout_of(classes), sender, peers->host) > 0 ||
	       (from == to && psd_payload_bytes_between(payload, layout_of(classes), peers->host, sender) > 0);
}

uint32_t psd_classes_arrivals(const void *context, const struct psd_op *receive, unsigned host)
{
	const struct psd_classes *classes = context;
	const unsigned to = classes->class_of[host];
	uint32_t n_senders = 0;
	for (unsigned from = 0; from < classes->n; from++)
		for (unsigned reach = 0; reach < PSD_REACHES; reach++)
			n_senders += psd_classes_send(classes, &receive->payload, from, to, (enum psd_reach)reach);
	return n_senders;
}

/* Marks the hosts that are roots of some operation. */
static void find_roots(const struct psd_program *program, bool *is_root)
{
	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];

		if (op->where == PSD_WHERE_ROOT)
			is_root[op->payload.root] = true;
	}
}

static bool is_alike_by_itself(const struct psd_classes *classes, unsigned a, unsigned b)
{
	const struct psd_layout *layout = layout_of(classes);
	if (psd_layout_is_worker(layout, a) != psd_layout_is_worker(layout, b) ||
	    psd_layout_is_leader(layout, a) != psd_layout_is_leader(layout, b) ||
	    psd_layout_is_shard(layout, a) != psd_layout_is_shard(layout, b) ||
	    psd_layout_kind(layout, psd_layout_node(layout, a)) !=
		    psd_layout_kind(layout, psd_layout_node(layout, b)) ||
	    classes->is_root[a] || classes->is_root[b])
		return false;
	for (unsigned g = 0; g < classes->n_groups; g++)
		if (psd_group_has(classes->groups[g], a) != psd_group_has(classes->groups[g], b))
			return false;
	return true;
}

static bool are_runs_alike(const struct psd_classes *classes, unsigned a, unsigned b, unsigned n)
{
	for (unsigned w = 0; w < n; w++)
		if (!is_alike_by_itself(classes, a + w, b + w))
			return false;
	return true;
}

/* Returns the first worker behind a worker's switch; *n: number of workers there. */
static unsigned switch_run(const struct psd_layout *layout, unsigned worker, unsigned *n)
{
	const unsigned node = psd_layout_node(layout, worker), place = psd_layout_position(layout, worker);
	const unsigned before = place - place % layout->workers_per_switch;
	const unsigned left = psd_layout_workers_on(layout, node) - before;

	*n = left < layout->workers_per_switch ? left : layout->workers_per_switch;
	return worker - place + before;
}

static bool are_switches_alike(const struct psd_classes *classes, unsigned a, unsigned b)
{
	const struct psd_layout *layout = layout_of(classes);
	unsigned n_a, n_b;

	if (!psd_classes_have_switches(classes) || !psd_layout_is_worker(layout, a) || !psd_layout_is_worker(layout, b))
		return true;
	const unsigned first_a = switch_run(layout, a, &n_a), first_b = switch_run(layout, b, &n_b);
	return n_a == n_b && are_runs_alike(classes, first_a, first_b, n_a);
}

/* Returns the first host on a host's machine; *n: number of hosts there. */
static unsigned machine_run(const struct psd_layout *layout, unsigned nodes_per_machine, unsigned host, unsigned *n)
{
	const unsigned n_nodes = psd_layout_nodes(layout), node = psd_layout_node(layout, host);
	const unsigned before = node - node % nodes_per_machine, left = n_nodes - before;
	const unsigned first = psd_layout_first(layout, before);

	*n = psd_layout_first(layout, before + (left > nodes_per_machine ? nodes_per_machine : left)) - first;
	return first;
}

/* True if two machines have equal hosts one by one: the share of a host in its machine's cores depends on the other
 * hosts there. */
static bool are_machines_alike(const struct psd_classes *classes, unsigned a, unsigned b)
{
	const struct psd_machine *machine = &classes->program->plan->machine;
	unsigned n_a, n_b;

	if (machine->cores == 0 || machine->nodes == 0)
		return true;
	const unsigned first_a = machine_run(layout_of(classes), machine->nodes, a, &n_a);
	const unsigned first_b = machine_run(layout_of(classes), machine->nodes, b, &n_b);
	return first_a == first_b || (n_a == n_b && are_runs_alike(classes, first_a, first_b, n_a));
}

/* True if the racks of both nodes are of one kind: flows through a rack's uplinks depend on the other hosts there. */
static bool are_racks_alike(const struct psd_classes *classes, unsigned node_a, unsigned node_b)
{
	const struct psd_layout *layout = layout_of(classes);

	return layout->nodes_per_rack == 0 || classes->racks[psd_layout_rack(layout, node_a)].kind ==
						      classes->racks[psd_layout_rack(layout, node_b)].kind;
}

/* True if hosts a and b are alike: the hosts on their nodes, behind their switches and on their machines are alike one
 * by one, and their racks are of one kind. */
static bool is_alike(const struct psd_classes *classes, unsigned a, unsigned b)
{
	const struct psd_layout *layout = layout_of(classes);
	const unsigned node_a = psd_layout_node(layout, a), node_b = psd_layout_node(layout, b);
	const unsigned n_here = psd_layout_workers_on(layout, node_a);
	if (n_here != psd_layout_workers_on(layout, node_b) ||
	    (node_a != node_b &&
	     !are_runs_alike(classes, psd_layout_first(layout, node_a), psd_layout_first(layout, node_b), n_here)))
		return false;
	return is_alike_by_itself(classes, a, b) && are_switches_alike(classes, a, b) &&
	       are_machines_alike(classes, a, b) && are_racks_alike(classes, node_a, node_b);
}

/* Forgets the counts of members that are nearer to the representative than the next one is. */
static void move_representative(const struct psd_layout *layout, struct psd_host_class *class, unsigned host)
{
	switch (psd_layout_reach(layout, class->representative, host)) {
	case PSD_REACH_BEYOND:
	case PSD_REACH_FAR: class->n_here = class->n_behind = 0; break;
	case PSD_REACH_ACROSS: class->n_behind = 0; break;
	case PSD_REACH_NEAR:
	case PSD_REACHES: break;
	}
}

static bool add_to_class(struct psd_classes *classes, unsigned host)
{
	struct psd_host_class *grown;
	unsigned c = 0;

	while (c < classes->n && !is_alike(classes, classes->of[c].representative, host))
		c++;
	if (c == classes->n) {
		grown = psd_grown(classes->of, classes->n, &classes->room, sizeof(*grown));
		if (grown == NULL)
			return false;
		classes->of = grown;
		classes->of[classes->n++] = (struct psd_host_class){.representative = host};
	}
	move_representative(layout_of(classes), &classes->of[c], host);
	classes->of[c].representative = host;
	classes->of[c].n_members++;
	classes->of[c].n_here++;
	classes->of[c].n_behind++;
	classes->class_of[host] = c;
	return true;
}

static void find_peers(struct psd_classes *classes)
{
	const struct psd_layout *layout = layout_of(classes);
	for (unsigned from = 0; from < classes->n; from++) {
		const unsigned sender = classes->of[from].representative;
		for (unsigned h = 0; h < psd_layout_hosts(layout); h++) {
			const enum psd_reach reach = psd_layout_reach(layout, sender, h);
			struct psd_class_peers *peers =
				&classes->peers[psd_classes_path(classes, from, classes->class_of[h], reach)];
			if (h != sender)
				*peers = (struct psd_class_peers){h, peers->n + 1};
		}
	}
}

static enum psd_status find_groups(struct psd_classes *classes, struct psd_error *err)
{
	const struct psd_program *program = classes->program;
	for (uint32_t i = 0; i < program->n_ops && program->has_groups; i++) {
		const struct psd_group *group = &program->ops[i].payload.group;
		unsigned g = 0;
		while (group->n > 0 && g < classes->n_groups && !psd_group_equals(classes->groups[g], *group))
			g++;
		if (group->n == 0 || g < classes->n_groups)
			continue;
		struct psd_group *grown = realloc(classes->groups, (g + 1) * sizeof(*grown));
		if (grown == NULL)
			return psd_estimate_out_of_memory(err);
		classes->groups = grown;
		classes->groups[classes->n_groups++] = *group;
	}
	return PSD_OK;
}

static struct psd_class_rack *rack_of(const struct psd_classes *classes, unsigned host)
{
	const struct psd_layout *layout = layout_of(classes);

	return &classes->racks[psd_layout_rack(layout, psd_layout_node(layout, host))];
}

static bool are_kinds_equal(const struct psd_class_rack *a, const struct psd_class_rack *b)
{
	return a->n_workers == b->n_workers && a->n_servers == b->n_servers && a->first_kind == b->first_kind &&
	       a->last_kind == b->last_kind && !a->has_root && !b->has_root;
}

/* Hosts come in ascending order. */
static void add_to_rack(const struct psd_classes *classes, struct psd_class_rack *rack, unsigned host)
{
	const struct psd_layout *layout = layout_of(classes);
	const unsigned node_kind = psd_layout_kind(layout, psd_layout_node(layout, host));

	rack->has_root = rack->has_root || classes->is_root[host];
	if (!psd_layout_is_worker(layout, host)) {
		rack->n_servers++;
		return;
	}
	if (rack->n_workers++ == 0)
		rack->first_kind = node_kind;
	rack->last_kind = node_kind;
}

/* Numbers the kinds of racks that have hosts. */
static bool find_racks(struct psd_classes *classes)
{
	const struct psd_layout *layout = layout_of(classes);
	const unsigned n_racks = layout->nodes_per_rack > 0 ? psd_layout_racks(layout) : 0;
	unsigned n_kinds = 0;

	classes->racks = calloc(n_racks + 1, sizeof(*classes->racks));
	for (unsigned h = 0; h < psd_layout_hosts(layout) && n_racks > 0 && classes->racks; h++) {
		add_to_rack(classes, rack_of(classes, h), h);
	}
	for (unsigned r = 0; r < n_racks && classes->racks; r++) {
		struct psd_class_rack *rack = &classes->racks[r];
		unsigned first = 0;

		while (first < r && !are_kinds_equal(&classes->racks[first], rack))
			first++;
		if (first < r)
			rack->kind = classes->racks[first].kind;
		else if (rack->n_workers + rack->n_servers > 0)
			rack->kind = n_kinds++;
	}
	return classes->racks != NULL;
}

/* Members in the representative's rack. */
static unsigned count_in_rack(const struct psd_classes *classes, unsigned c)
{
	unsigned n = 1;

	for (unsigned reach = 0; reach < PSD_REACH_BEYOND; reach++)
		n += classes->peers[psd_classes_path(classes, c, c, (enum psd_reach)reach)].n;
	return n;
}

/* Classes on equal nodes share the ports of the class of these nodes' first hosts; the same holds for switches. Each
 * kind of racks has hosts of no other kind, so that there are as many classes as kinds at least. */
static void find_firsts(struct psd_classes *classes)
{
	const struct psd_layout *layout = layout_of(classes);

	for (unsigned c = 0; c < classes->n; c++) {
		struct psd_host_class *class = &classes->of[c];
		const unsigned host = class->representative;
		const unsigned first = psd_layout_first(layout, psd_layout_node(layout, host));
		unsigned n_unused;

		class->node = classes->class_of[first];
		class->behind = c;
		if (psd_classes_have_switches(classes) && psd_layout_is_worker(layout, host))
			class->behind = classes->class_of[switch_run(layout, host, &n_unused)];
		class->n_in_rack = count_in_rack(classes, c);
		class->rack = layout->nodes_per_rack > 0 ? rack_of(classes, host)->kind : c;
	}
}

enum psd_status psd_classes_find(struct psd_classes *classes, const struct psd_program *program, struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(&program->plan->layout);
	*classes = (struct psd_classes){.program = program};
	classes->is_root = calloc(n_hosts, sizeof(*classes->is_root));
	classes->class_of = calloc(n_hosts, sizeof(*classes->class_of));
	if (classes->is_root == NULL || classes->class_of == NULL)
		return psd_estimate_out_of_memory(err);
	find_roots(program, classes->is_root);
	if (find_groups(classes, err))
		return err->status;
	if (!find_racks(classes))
		return psd_estimate_out_of_memory(err);
	for (unsigned h = 0; h < n_hosts; h++)
		if (!add_to_class(classes, h))
			return psd_estimate_out_of_memory(err);
	classes->peers = calloc(psd_classes_n_paths(classes), sizeof(*classes->peers));
	if (classes->peers == NULL)
		return psd_estimate_out_of_memory(err);
	find_peers(classes);
	find_firsts(classes);
	return PSD_OK;
}

void psd_classes_release(struct psd_classes *classes)
{
	free(classes->is_root);
	free(classes->groups);
	free(classes->racks);
	free(classes->peers);
	free(classes->class_of);
	free(classes->of);
}
