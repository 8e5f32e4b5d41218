#include "sim/executor/step_graph.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "sim/network/platform.h"

enum { NOBODY = 0 }; /* the owner of a link that has none; hosts count from 1 */

/* The way of a member's messages to one receiver. */
struct hop {
	unsigned to;
	double byte_sec; /* seconds of a byte on the slowest link */
	double latency_sec;
};

/* An arrival that the member does not need before its next message. */
struct early {
	unsigned step;
	unsigned next; /* index of the member's next early arrival, + 1; 0: there is none */
	double sec;
};

struct member {
	unsigned next_send, next_receive;
	struct psd_step steps[2]; /* next steps with an even and an odd number; at_step: their numbers */
	unsigned at_step[2];
	struct hop hop;
	double left_sec;		       /* time at which its last message left */
	double needed_sec;		       /* time of the last arrival before its next message */
	double arrived_sec, before_sender_sec; /* last arrival, and last one from another sender than the last */
	unsigned sender;
	unsigned first_early, last_early; /* indices + 1 */
	bool is_queued;
};

struct graph {
	const struct psd_payload *payload;
	const struct psd_layout *layout;
	const struct psd_platform *platform;
	const double *ratios;
	struct psd_group group;
	unsigned n_steps;
	struct member *members; /* by rank */
	unsigned *queue;	/* ranks that may be able to send; circular, an entry per member */
	unsigned first_queued, n_queued;
	struct early *early;
	unsigned n_early, early_room, free_early; /* free_early: index + 1 */
	uint64_t n_sent;
	bool is_out_of_memory;
};

static unsigned rank_of(const struct graph *graph, unsigned host)
{
	return psd_group_rank(graph->group, host);
}

static struct hop hop_to(const struct graph *graph, unsigned from, unsigned to)
{
	unsigned links[PSD_ROUTE_LINKS];
	const unsigned n_links = psd_platform_route(graph->platform, from, to, links);
	double least_bps = INFINITY;

	for (unsigned i = 0; i < n_links; i++)
		least_bps = fmin(least_bps, psd_platform_slowed_bps(graph->platform, graph->ratios, links[i]));
	return (struct hop){to, 8.0 / least_bps, psd_platform_latency_sec(graph->platform, from, to)};
}

/* ---- sharing: a member sends one message at a time, and one at a time is sent to it ---- */

struct owners {
	unsigned *senders, *receivers;	   /* host + 1 of the only sender and receiver of each link, or NOBODY */
	bool *has_senders, *has_receivers; /* there are several */
};

/* Returns false if several hosts send over a link to several others. */
static bool own_links(const struct graph *graph, const struct owners *owners, unsigned from, unsigned to)
{
	unsigned links[PSD_ROUTE_LINKS];
	const unsigned n_links = psd_platform_route(graph->platform, from, to, links);

	for (unsigned i = 0; i < n_links; i++) {
		const unsigned link = links[i];

		owners->has_senders[link] |= owners->senders[link] != NOBODY && owners->senders[link] != from + 1;
		owners->has_receivers[link] |= owners->receivers[link] != NOBODY && owners->receivers[link] != to + 1;
		owners->senders[link] = from + 1;
		owners->receivers[link] = to + 1;
		if (owners->has_senders[link] && owners->has_receivers[link])
			return false;
	}
	return true;
}

static bool own_links_of(const struct graph *graph, const struct owners *owners, unsigned host)
{
	struct psd_flow flow;

	for (unsigned i = 0; psd_payload_flow(graph->payload, graph->layout, host, i, &flow); i++)
		if (flow.to != host && !own_links(graph, owners, host, flow.to))
			return false;
	return true;
}

static bool find_sharing(const struct graph *graph, bool *is_free)
{
	const size_t n_links = psd_platform_links(graph->platform) + 1;
	const struct owners owners = {
		.senders = calloc(n_links, sizeof(*owners.senders)),
		.receivers = calloc(n_links, sizeof(*owners.receivers)),
		.has_senders = calloc(n_links, sizeof(*owners.has_senders)),
		.has_receivers = calloc(n_links, sizeof(*owners.has_receivers)),
	};
	const bool has_memory = owners.senders && owners.receivers && owners.has_senders && owners.has_receivers;

	*is_free = true;
	for (unsigned rank = 0; rank < graph->group.n && has_memory && *is_free; rank++)
		*is_free = own_links_of(graph, &owners, psd_group_host(graph->group, rank));
	free(owners.senders);
	free(owners.receivers);
	free(owners.has_senders);
	free(owners.has_receivers);
	return has_memory;
}

/* ---- steps that are all alike ---- */

/* No message lasts longer than one of the most elements, so that no member ends step s later than s + 1 of these and
 * their latencies. A chain of such messages, each of which waits for the one before, ends as late as that. */
static bool find_equal_steps(const struct graph *graph, struct psd_step_graph *result)
{
	const struct psd_collective *collective = graph->payload->collective;
	const unsigned first = psd_group_host(graph->group, 0);
	struct hop hop = {0};
	unsigned host = UINT_MAX;

	if (!collective->largest || graph->n_steps == 0)
		return false;
	const uint64_t largest =
		collective->largest(graph->payload->elements, psd_payload_members(graph->payload, graph->layout));
	for (unsigned rank = 0; rank < graph->group.n; rank++) {
		const unsigned from = psd_group_host(graph->group, rank);
		const struct psd_step step = psd_payload_step(graph->payload, graph->layout, from, 0);
		const struct hop here = hop_to(graph, from, step.to);

		if (from == first)
			hop = here;
		if (here.byte_sec != hop.byte_sec || here.latency_sec != hop.latency_sec)
			return false;
		if (step.sent.elements == largest && host == UINT_MAX)
			host = from;
	}
	for (unsigned s = 0; s < graph->n_steps && host != UINT_MAX; s++) {
		const struct psd_step step = psd_payload_step(graph->payload, graph->layout, host, s);

		host = step.sent.elements == largest ? step.to : UINT_MAX;
	}
	if (host == UINT_MAX)
		return false;
	result->sec =
		graph->n_steps * ((double)(largest * graph->payload->value_bytes) * hop.byte_sec + hop.latency_sec);
	result->n_messages = (uint64_t)graph->n_steps * graph->group.n;
	result->n_skipped = result->n_messages - graph->group.n;
	return true;
}

/* ---- every message ---- */

static const struct psd_step *step_of(struct graph *graph, unsigned rank, unsigned number)
{
	struct member *member = &graph->members[rank];

	if (member->at_step[number % 2] != number)
		member->steps[number % 2] =
			psd_payload_step(graph->payload, graph->layout, psd_group_host(graph->group, rank), number);
	member->at_step[number % 2] = number;
	return &member->steps[number % 2];
}

static unsigned next_step(struct graph *graph, unsigned rank, unsigned number, bool is_sent)
{
	const unsigned host = psd_group_host(graph->group, rank);

	for (; number < graph->n_steps; number++) {
		const struct psd_step *step = step_of(graph, rank, number);

		if ((is_sent ? step->to : step->from) != host)
			break;
	}
	return number;
}

static void queue(struct graph *graph, unsigned rank)
{
	if (graph->members[rank].is_queued)
		return;
	graph->members[rank].is_queued = true;
	graph->queue[(graph->first_queued + graph->n_queued++) % graph->group.n] = rank;
}

static unsigned take_queued(struct graph *graph)
{
	const unsigned rank = graph->queue[graph->first_queued];

	graph->first_queued = (graph->first_queued + 1) % graph->group.n;
	graph->n_queued--;
	graph->members[rank].is_queued = false;
	return rank;
}

static void keep_early(struct graph *graph, struct member *member, unsigned step, double sec)
{
	if (graph->free_early == 0) {
		if (graph->n_early == graph->early_room) {
			const unsigned room = graph->early_room ? 2 * graph->early_room : 64;
			struct early *grown = realloc(graph->early, room * sizeof(*grown));

			if (!grown) {
				graph->is_out_of_memory = true;
				return;
			}
			graph->early = grown;
			graph->early_room = room;
		}
		graph->early[graph->n_early].next = 0;
		graph->free_early = ++graph->n_early;
	}
	const unsigned at = graph->free_early;

	graph->free_early = graph->early[at - 1].next;
	graph->early[at - 1] = (struct early){step, 0, sec};
	if (member->first_early == 0)
		member->first_early = at;
	else
		graph->early[member->last_early - 1].next = at;
	member->last_early = at;
}

/* Takes the arrivals of the steps before the member's next message. */
static void take_early(struct graph *graph, struct member *member)
{
	while (member->first_early > 0 && graph->early[member->first_early - 1].step < member->next_send) {
		const unsigned at = member->first_early;

		member->needed_sec = graph->early[at - 1].sec;
		member->first_early = graph->early[at - 1].next;
		graph->early[at - 1].next = graph->free_early;
		graph->free_early = at;
	}
}

static void arrive(struct graph *graph, unsigned rank, unsigned from, double sec)
{
	struct member *member = &graph->members[rank];
	const unsigned step = member->next_receive;

	if (member->sender != from)
		member->before_sender_sec = member->arrived_sec;
	member->sender = from;
	member->arrived_sec = fmax(member->arrived_sec, sec);
	if (step < member->next_send)
		member->needed_sec = member->arrived_sec;
	else
		keep_early(graph, member, step, member->arrived_sec);
	member->next_receive = next_step(graph, rank, step + 1, false);
	queue(graph, rank);
	if (member->next_receive < graph->n_steps)
		queue(graph, rank_of(graph, step_of(graph, rank, member->next_receive)->from));
}

/* Sends the member's next message if all that it waits for is known. */
static void advance(struct graph *graph, unsigned rank)
{
	struct member *member = &graph->members[rank];
	const unsigned number = member->next_send;

	if (number == graph->n_steps || member->next_receive < number)
		return;
	const struct psd_step step = *step_of(graph, rank, number);
	const unsigned host = psd_group_host(graph->group, rank), to = rank_of(graph, step.to);
	struct member *receiver = &graph->members[to];

	if (receiver->next_receive != number)
		return;
	const double awaited_sec = receiver->sender == host ? receiver->before_sender_sec : receiver->arrived_sec;
	const double start_sec = fmax(fmax(member->left_sec, member->needed_sec), awaited_sec);

	if (member->hop.to != step.to)
		member->hop = hop_to(graph, host, step.to);
	member->left_sec =
		start_sec + (double)(step.sent.elements * graph->payload->value_bytes) * member->hop.byte_sec;
	member->next_send = next_step(graph, rank, number + 1, true);
	take_early(graph, member);
	graph->n_sent++;
	queue(graph, rank);
	arrive(graph, to, host, member->left_sec + member->hop.latency_sec);
}

static bool walk(struct graph *graph, struct psd_step_graph *result)
{
	graph->members = calloc(graph->group.n, sizeof(*graph->members));
	graph->queue = calloc(graph->group.n, sizeof(*graph->queue));
	if (!graph->members || !graph->queue)
		return false;
	for (unsigned rank = 0; rank < graph->group.n; rank++) {
		struct member *member = &graph->members[rank];

		member->at_step[0] = member->at_step[1] = member->sender = member->hop.to = UINT_MAX;
		member->next_send = next_step(graph, rank, 0, true);
		member->next_receive = next_step(graph, rank, 0, false);
		queue(graph, rank);
	}
	while (graph->n_queued > 0)
		advance(graph, take_queued(graph));
	*result = (struct psd_step_graph){.is_free = true, .n_messages = graph->n_sent};
	for (unsigned rank = 0; rank < graph->group.n; rank++) {
		const struct member *member = &graph->members[rank];

		result->sec = fmax(result->sec, fmax(member->left_sec, member->arrived_sec));
		result->is_free = result->is_free && member->next_send == graph->n_steps;
	}
	return !graph->is_out_of_memory;
}

enum psd_status psd_step_graph_find(struct psd_step_graph *result, const struct psd_payload *payload,
				    const struct psd_layout *layout, const struct psd_platform *platform,
				    const double *ratios, struct psd_error *err)
{
	struct graph graph = {
		.payload = payload,
		.layout = layout,
		.platform = platform,
		.ratios = ratios,
		.group = psd_payload_group(payload, layout),
		.n_steps = psd_payload_steps(payload, layout),
	};
	bool has_memory = true;

	*result = (struct psd_step_graph){.is_free = true};
	if (graph.group.n > 1)
		has_memory = find_sharing(&graph, &result->is_free);
	if (has_memory && result->is_free && graph.group.n > 1 && !find_equal_steps(&graph, result))
		has_memory = walk(&graph, result);
	free(graph.members);
	free(graph.queue);
	free(graph.early);
	return has_memory ? PSD_OK : psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for steps");
}

enum psd_status psd_step_graph_check(bool *is_free, const struct psd_payload *payload, const struct psd_layout *layout,
				     const struct psd_platform *platform, struct psd_error *err)
{
	const struct graph graph = {
		.payload = payload,
		.layout = layout,
		.platform = platform,
		.group = psd_payload_group(payload, layout),
	};

	return find_sharing(&graph, is_free) ? PSD_OK
					     : psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for steps");
}
