/* A message of tensors is delivered when its bytes are there and the rate and latency of the emulated links allow. Its
 * tag is the time at which the sender's link has carried it. */
#include "real/net/emulated.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "real/net/link_model.h"
#include "real/net/shaped.h"
#include "real/net/socket.h"

struct psd_emulated {
	struct psd_connections_owner owner; /* the wrapped one */
	bool *is_near;
	double *held_sec; /* per peer: last time at which the owner deferred a message */
	struct psd_rate_limit own_limit;
	struct psd_shaper shaper;
	struct psd_pace pace;
	double *latency_sec; /* per peer */
	double had_latency_sec;
	struct psd_delay delay;
	bool is_out_of_memory;
};

_Static_assert(sizeof(double) <= PSD_WIRE_TAG_BYTES, "a tag is a time");

static bool is_paced(const struct psd_emulated *emulated)
{
	return emulated->pace.send_bps > 0.0;
}

/* ---- outgoing ---- */

/* All hosts of an emulated cluster share a machine, and so a byte order. */
static void stamp(void *context, unsigned peer, const struct psd_wire_head *head, uint8_t tag[])
{
	struct psd_emulated *emulated = context;
	const double off_sec = emulated->is_near[peer]
				       ? 0.0
				       : psd_pace_send(&emulated->pace, head->length_bytes, psd_socket_now_sec());

	memcpy(tag, &off_sec, sizeof(off_sec));
}

static void left(void *context, unsigned peer)
{
	const struct psd_emulated *emulated = context;

	emulated->owner.left(emulated->owner.context, peer);
}

/* ---- incoming ---- */

static enum psd_acceptance expect(void *context, unsigned peer, const struct psd_wire_head *head,
				  struct psd_destination *destination, struct psd_error *err)
{
	struct psd_emulated *emulated = context;
	const enum psd_acceptance acceptance =
		emulated->owner.expect(emulated->owner.context, peer, head, destination, err);

	if (acceptance == PSD_ACCEPT_LATER)
		emulated->held_sec[peer] = psd_socket_now_sec();
	return acceptance;
}

static bool is_delivered_at_once(const struct psd_emulated *emulated, unsigned peer, const struct psd_wire_head *head)
{
	return head->kind != PSD_WIRE_DATA || emulated->is_near[peer];
}

/* Time at which a message counts as arrived. A message sent while an earlier one was deferred queued behind it, so its
 * real arrival time is unknown: the missing latency has passed meanwhile and is not added. */
static double due_sec_of(struct psd_emulated *emulated, unsigned peer, const struct psd_wire_head *head,
			 const uint8_t *tag)
{
	const double now_sec = psd_socket_now_sec(),
		     missing_sec = fmax(emulated->latency_sec[peer] - emulated->had_latency_sec, 0.0);
	double off_sec, begun_sec;

	if (!is_paced(emulated))
		return now_sec + missing_sec;
	memcpy(&off_sec, tag, sizeof(off_sec));
	begun_sec = off_sec - 8.0 * (double)head->length_bytes / emulated->pace.send_bps;
	return fmax(begun_sec < emulated->held_sec[peer] ? now_sec : now_sec + missing_sec,
		    psd_pace_receive(&emulated->pace, head->length_bytes, off_sec, emulated->latency_sec[peer]));
}

static void arrived(void *context, unsigned peer, const struct psd_wire_head *head, const uint8_t *tag)
{
	struct psd_emulated *emulated = context;
	struct psd_arrival arrival = {.peer = peer, .head = *head};

	if (is_delivered_at_once(emulated, peer, head)) {
		emulated->owner.arrived(emulated->owner.context, peer, head, tag);
		return;
	}
	arrival.due_sec = due_sec_of(emulated, peer, head, tag);
	emulated->is_out_of_memory = !psd_delay_add(&emulated->delay, &arrival) || emulated->is_out_of_memory;
}

static double due_sec(void *context)
{
	const struct psd_emulated *emulated = context;
	const struct psd_arrival *first = psd_delay_first(&emulated->delay);

	return first ? first->due_sec : INFINITY;
}

static enum psd_status deliver_due(void *context, bool *has_delivered, struct psd_error *err)
{
	struct psd_emulated *emulated = context;
	const struct psd_arrival *first;

	*has_delivered = false;
	if (emulated->is_out_of_memory)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for arrivals");
	while ((first = psd_delay_first(&emulated->delay)) && first->due_sec <= psd_socket_now_sec()) {
		const struct psd_arrival due = *first;

		psd_delay_drop_first(&emulated->delay);
		emulated->owner.arrived(emulated->owner.context, due.peer, &due.head, NULL);
		*has_delivered = true;
	}
	return PSD_OK;
}

static enum psd_status lost(void *context, unsigned peer, int error_number, struct psd_error *err)
{
	const struct psd_emulated *emulated = context;

	return emulated->owner.lost(emulated->owner.context, peer, error_number, err);
}

/* ---- opening and closing ---- */

static bool wrap_carriers(struct psd_emulated *emulated, const struct psd_emulated_links *links,
			  const struct psd_connections_options *options, struct psd_carrier carriers[])
{
	struct psd_rate_limit *limit = links->shared_limit ? links->shared_limit : &emulated->own_limit;

	psd_rate_limit_init(&emulated->own_limit);
	psd_rate_limit_add(limit, links->send_bps, links->receive_bps, psd_socket_now_sec());
	emulated->shaper = (struct psd_shaper){limit, psd_socket_now_sec};
	for (unsigned i = 0; i < options->n_peers * options->n_connections; i++)
		if (carriers[i].fd >= 0 && !links->is_near[i / options->n_connections] &&
		    !psd_shaped_wrap(&emulated->shaper, &carriers[i]))
			return false;
	return true;
}

static bool fill(struct psd_emulated *emulated, const struct psd_emulated_links *links,
		 const struct psd_connections_options *options, struct psd_carrier carriers[])
{
	emulated->is_near = calloc(options->n_peers + 1u, sizeof(*emulated->is_near));
	emulated->held_sec = calloc(options->n_peers + 1u, sizeof(*emulated->held_sec));
	emulated->latency_sec = calloc(options->n_peers + 1u, sizeof(*emulated->latency_sec));
	if (!emulated->is_near || !emulated->held_sec || !emulated->latency_sec)
		return false;
	memcpy(emulated->is_near, links->is_near, options->n_peers * sizeof(*emulated->is_near));
	emulated->owner = options->owner;
	emulated->pace = (struct psd_pace){.send_bps = links->pace_send_bps, .receive_bps = links->pace_receive_bps};
	memcpy(emulated->latency_sec, links->latency_sec, options->n_peers * sizeof(*emulated->latency_sec));
	emulated->had_latency_sec = links->had_latency_sec;
	return !links->has_rate || wrap_carriers(emulated, links, options, carriers);
}

enum psd_status psd_emulated_open(struct psd_emulated **emulated, const struct psd_emulated_links *links,
				  struct psd_connections_options *options, struct psd_carrier carriers[],
				  struct psd_error *err)
{
	const bool has_pace = links->pace_send_bps > 0.0;
	struct psd_emulated *opened;
	bool adds_latency = false;

	*emulated = NULL;
	for (unsigned p = 0; p < options->n_peers; p++)
		adds_latency = adds_latency || links->latency_sec[p] > links->had_latency_sec;
	if (!has_pace && !links->has_rate && !adds_latency)
		return PSD_OK;
	opened = calloc(1, sizeof(*opened));
	if (!opened || !fill(opened, links, options, carriers)) {
		psd_emulated_close(opened);
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for emulated links");
	}
	options->tag_bytes = has_pace ? sizeof(double) : 0;
	options->owner = (struct psd_connections_owner){
		.expect = expect,
		.arrived = arrived,
		.left = left,
		.lost = lost,
		.stamp = has_pace ? stamp : NULL,
		.due_sec = due_sec,
		.deliver_due = deliver_due,
		.context = opened,
	};
	*emulated = opened;
	return PSD_OK;
}

void psd_emulated_close(struct psd_emulated *emulated)
{
	if (!emulated)
		return;
	psd_delay_release(&emulated->delay);
	free(emulated->held_sec);
	free(emulated->latency_sec);
	free(emulated->is_near);
	free(emulated);
}
