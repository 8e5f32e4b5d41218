#include "engine/estimate/classes.h"

#include <stdlib.h>

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

/* Marks the hosts that are roots of some operation, and returns their number. */
static unsigned find_roots(const struct psd_program *program, bool *is_root)
{
	unsigned n_roots = 0;

	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];

		if (op->where != PSD_WHERE_ROOT || is_root[op->payload.root])
			continue;
		is_root[op->payload.root] = true;
		n_roots++;
	}
	return n_roots;
}

static bool is_alike_by_itself(const struct psd_classes *classes, unsigned a, unsigned b)
{
	const struct psd_layout *layout = layout_of(classes);
	if (psd_layout_is_worker(layout, a) != psd_layout_is_worker(layout, b) ||
	    psd_layout_is_leader(layout, a) != psd_layout_is_leader(layout, b) ||
	    psd_layout_is_shard(layout, a) != psd_layout_is_shard(layout, b) || classes->is_root[a] ||
	    classes->is_root[b])
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
	const unsigned node = psd_layout_node(layout, worker), place = worker % layout->workers_per_node;
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

static unsigned first_host_on(const struct psd_layout *layout, unsigned node)
{
	return node < layout->nodes ? node * layout->workers_per_node : layout->workers + (node - layout->nodes);
}

/* Returns the first host on a host's machine; *n: number of hosts there. */
static unsigned machine_run(const struct psd_layout *layout, unsigned nodes_per_machine, unsigned host, unsigned *n)
{
	const unsigned n_nodes = psd_layout_nodes(layout), node = psd_layout_node(layout, host);
	const unsigned before = node - node % nodes_per_machine, left = n_nodes - before;
	const unsigned first = first_host_on(layout, before);

	*n = left > nodes_per_machine ? first_host_on(layout, before + nodes_per_machine) - first
				      : psd_layout_hosts(layout) - first;
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

/* True if hosts a and b are alike: the hosts on their nodes, behind their switches and on their machines are alike one
 * by one. */
static bool is_alike(const struct psd_classes *classes, unsigned a, unsigned b)
{
	const struct psd_layout *layout = layout_of(classes);
	const unsigned node_a = psd_layout_node(layout, a), node_b = psd_layout_node(layout, b);
	const unsigned n_here = psd_layout_workers_on(layout, node_a);
	const unsigned g = layout->workers_per_node;
	if (n_here != psd_layout_workers_on(layout, node_b) ||
	    (node_a != node_b && !are_runs_alike(classes, node_a * g, node_b * g, n_here)))
		return false;
	return is_alike_by_itself(classes, a, b) && are_switches_alike(classes, a, b) &&
	       are_machines_alike(classes, a, b);
}

static void add_to_class(struct psd_classes *classes, unsigned host)
{
	const unsigned node = psd_layout_node(layout_of(classes), host);
	unsigned c = 0;
	while (c < classes->n && !is_alike(classes, classes->of[c].representative, host))
		c++;
	struct psd_host_class *class = &classes->of[c];
	if (c == classes->n)
		classes->of[classes->n++] = (struct psd_host_class){.n_members = 0};
	else if (psd_layout_node(layout_of(classes), class->representative) != node)
		class->n_here = class->n_behind = 0;
	else if (psd_layout_reach(layout_of(classes), class->representative, host) == PSD_REACH_ACROSS)
		class->n_behind = 0;
	class->representative = host;
	class->n_members++;
	class->n_here++;
	class->n_behind++;
	classes->class_of[host] = c;
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
			return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for an estimate");
		classes->groups = grown;
		classes->groups[classes->n_groups++] = *group;
	}
	return PSD_OK;
}

/* Returns an upper limit for the number of classes. Each node with a root may be unlike all others, and so may the last
 * node. */
static size_t most_classes(const struct psd_classes *classes, unsigned n_roots)
{
	const struct psd_layout *layout = layout_of(classes);
	/* a worker with the shard, beside it, behind another switch, or behind the last one, which may have fewer */
	const size_t n_kinds = layout->workers_per_switch > 0 ? 4 : layout->workers_per_node > 1 ? 3 : 1;
	const size_t n_hosts = psd_layout_hosts(layout);
	/* unique machines: those with a root, the last ones of workers and of servers, and one with both */
	const size_t n_machines = classes->program->plan->machine.nodes > 0 ? n_roots + 5 : 1;
	const size_t most = n_roots * n_kinds + n_machines * (2 * n_kinds + 1);
	return classes->n_groups > 0 || most > n_hosts ? n_hosts : most;
}

/* Classes on equal nodes share the ports of the class of these nodes' first hosts; the same holds for switches. */
static void find_firsts(struct psd_classes *classes)
{
	const struct psd_layout *layout = layout_of(classes);

	for (unsigned c = 0; c < classes->n; c++) {
		struct psd_host_class *class = &classes->of[c];
		const unsigned host = class->representative;
		const unsigned first =
			psd_layout_is_worker(layout, host) ? host - host % layout->workers_per_node : host;
		unsigned n_unused;

		class->node = classes->class_of[first];
		class->behind = c;
		if (psd_classes_have_switches(classes) && psd_layout_is_worker(layout, host))
			class->behind = classes->class_of[switch_run(layout, host, &n_unused)];
	}
}

enum psd_status psd_classes_find(struct psd_classes *classes, const struct psd_program *program, struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(&program->plan->layout);
	*classes = (struct psd_classes){.program = program};
	classes->is_root = calloc(n_hosts, sizeof(*classes->is_root));
	classes->class_of = calloc(n_hosts, sizeof(*classes->class_of));
	const unsigned n_roots = classes->is_root ? find_roots(program, classes->is_root) : 0;
	if (find_groups(classes, err))
		return err->status;
	const size_t most = most_classes(classes, n_roots);
	classes->of = malloc(most * sizeof(*classes->of));
	classes->peers = calloc(PSD_REACHES * most * most, sizeof(*classes->peers));
	if (classes->is_root == NULL || classes->class_of == NULL || classes->of == NULL || classes->peers == NULL)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for an estimate");
	for (unsigned h = 0; h < n_hosts; h++)
		add_to_class(classes, h);
	find_peers(classes);
	find_firsts(classes);
	return PSD_OK;
}

void psd_classes_release(struct psd_classes *classes)
{
	free(classes->is_root);
	free(classes->groups);
	free(classes->peers);
	free(classes->class_of);
	free(classes->of);
}
