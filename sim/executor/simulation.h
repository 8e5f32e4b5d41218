/* State of the simulation executor, private to it, and the tags by which the network reports events. */
#ifndef PSD_SIM_SIMULATION_H
#define PSD_SIM_SIMULATION_H

#include "engine/estimate/device_share.h"
#include "engine/estimate/pool.h"
#include "engine/program/event_tag.h"
#include "engine/program/interpreter.h"
#include "sim/executor/simulate.h"

/* Kinds of event. The tag holds the kind and then the numbers named here. */
enum psd_wake {
	PSD_WAKE_WORK,	  /* host, resource */
	PSD_WAKE_FLOW,	  /* from, to */
	PSD_WAKE_ARRIVAL, /* host, task of the send */
	/* first member; flow fidelity: a flow of a stepwise transfer has arrived, or one end has finished its work on
	 * it */
	PSD_WAKE_STEP_FLOW,
	PSD_WAKE_STEPS_END,	  /* first member; the delay after the last flow is over */
	PSD_WAKE_STEPS_BEGIN,	  /* first member; step by step: the cost of a call in this size class is paid */
	PSD_WAKE_STEP_SENT,	  /* host; step by step: one part of sending a message is over */
	PSD_WAKE_STEP_ARRIVED,	  /* host; step by step: a message has arrived */
	PSD_WAKE_LINK,		  /* node; the speed of its link changes */
	PSD_WAKE_BACKGROUND_SENT, /* index in the scenario's list, as for the next kind */
	PSD_WAKE_BACKGROUND_DUE,
	PSD_WAKE_POOL,	   /* pool; some of its work may be over */
	PSD_WAKE_CROSSING, /* index; one part of a crossing is over */
};

struct psd_sending {
	struct psd_task task;
	unsigned n_receivers[2]; /* number of receivers on other nodes and on the same node; 0: not counted yet */
	unsigned n_flows_left;
	double start_sec;
};

/* A transfer on which both ends spend processor time. It is over when the bytes have arrived and both ends are done. */
struct psd_crossing {
	unsigned from, to;
	unsigned n_parts_left;
	unsigned next_free; /* next one in the list of unused crossings */
};

/* Progress of one member through the steps of a transfer that are simulated. The first member also holds the state of
 * all members, in both fidelities. */
struct psd_transfer {
	struct psd_task task;
	unsigned n_left;		  /* first member: members that are not done yet, or flows and their ends */
	unsigned next_send, next_receive; /* numbers of steps; the last message of earlier steps may still be leaving */
	unsigned n_steps;
	struct psd_step steps[2]; /* cache of the member's next even and odd step */
	unsigned at_step[2];	  /* number of each cached step */
	unsigned
		/* parts of the message that are not done: its bytes and the work of both ends; 0: no message */
		n_parts_left;
	unsigned to; /* receiver of the message */
	bool is_over;
};

struct psd_simulation {
	const struct psd_case *simulated;
	const struct psd_scenario *scenario;
	const struct psd_program *program;
	const struct psd_layout *layout;
	struct psd_interpreter interpreter;
	bool is_message_fidelity;
	unsigned n_shift_flows;
	/* Finished shift flows of all senders: per iteration of the window, one count for each operation. */
	uint32_t *n_shift_flows_done;
	psd_span_fn span;
	void *span_context;
	struct psd_duties *duties; /* distinct ones only */
	unsigned n_duties;
	const struct psd_duties **duties_of_host;
	struct psd_sending *sendings;	/* per host, whose NIC sends one operation at a time */
	struct psd_transfer *transfers; /* per host, whose NIC carries one stepwise transfer at a time */
	double hop_latency_sec;		/* mean latency of a step between neighbours on different nodes */
	double *delays_sec;		/* per operation: latencies of its steps in sum; NaN: not computed yet */
	uint64_t *sent_bytes;		/* per node */
	uint64_t *received_bytes;
	struct psd_pool *pools; /* processors: this and the next three are empty unless the scenario gives a machine */
	unsigned n_pools;
	struct psd_pool_place *places;		/* per host */
	double *timers_sec;			/* per pool: date of its next timer; infinity: none is set */
	struct psd_device_share *device_shares; /* per host; NULL: all-reduces take no share of devices */
	struct psd_crossing *crossings;
	unsigned n_crossings;
	unsigned free_crossing;		/* first unused crossing; n_crossings: none is free */
	uint64_t n_due[PSD_MAX_EVENTS]; /* per background entry: transfers under way or waiting */
	bool is_out_of_memory;
	uint64_t n_events;
	unsigned first_incomplete; /* hosts with lower numbers have finished the program */
};

static inline const struct psd_payload *psd_simulation_payload(const struct psd_simulation *sim, struct psd_task task)
{
	return &sim->program->ops[task.op].payload;
}

/* ---- transfers.c: transfers that send all messages at once ---- */

/* Number of flows that carry a host's messages in a dense exchange with more messages than that. */
unsigned psd_sim_shift_flows(const struct psd_case *simulated);
uint32_t psd_sim_arrivals(const void *context, const struct psd_op *receive, unsigned host); /* psd_arrivals_fn */
/* Cost of simulating an operation's messages, in events. With many messages under way at a time, each costs more than
 * one. */
double psd_sim_transfer_events(const struct psd_simulation *sim, const struct psd_op *op);
bool psd_sim_send(void *context, unsigned host, struct psd_task task); /* psd_seam.send */
void psd_sim_end_flow(struct psd_simulation *sim, unsigned from, unsigned to);

void psd_sim_end_crossing(struct psd_simulation *sim, unsigned index);

/* ---- steps.c: stepwise transfers ---- */

/* Tells whether every message of a stepwise transfer is simulated: in message fidelity, and where racks share uplinks
 * and each step is a flow anyway. */
bool psd_sim_walks_steps(const struct psd_simulation *sim, const struct psd_payload *payload);

void psd_sim_steps_find_latency(struct psd_simulation *sim);
void psd_sim_steps_start(void *context, struct psd_task task); /* psd_seam.collective */
void psd_sim_steps_end(struct psd_simulation *sim, unsigned first);
void psd_sim_step_flow_done(struct psd_simulation *sim, unsigned first); /* all flows at once */
void psd_sim_steps_begin(struct psd_simulation *sim, unsigned first);	 /* step by step, as the next two */
void psd_sim_step_part_done(struct psd_simulation *sim, unsigned host);
void psd_sim_step_arrived(struct psd_simulation *sim, unsigned host);

/* ---- processors.c ---- */

enum psd_status psd_sim_open_processors(struct psd_simulation *sim, struct psd_error *err) PSD_MUST_CHECK;
void psd_sim_close_processors(struct psd_simulation *sim);
/* Tells whether layers, reductions and sockets share cores. */
bool psd_sim_has_processors(const struct psd_simulation *sim);
/* Begins `sec` seconds of work of one core on host; the network reports `tag` when it is over. */
void psd_sim_process(struct psd_simulation *sim, unsigned host, double sec, double most_cores, uint64_t tag);
void psd_sim_wake_processors(struct psd_simulation *sim, unsigned pool);
/* As psd_cost_socket_work(). */
struct psd_socket_work psd_sim_socket_work(const struct psd_simulation *sim, unsigned from, unsigned to, uint64_t bytes,
					   double n_messages);

/* Devices of which all-reduces take a share while they run. */
enum psd_status psd_sim_open_device_shares(struct psd_simulation *sim, struct psd_error *err) PSD_MUST_CHECK;
void psd_sim_begin_device_share(struct psd_simulation *sim, unsigned host, double sec);
/* Tells whether an event is the end of the resource's work; if not, sets the next timer. */
bool psd_sim_work_ends(struct psd_simulation *sim, unsigned host, enum psd_resource resource);
/* Says that an all-reduce begins or ends on a host's device. */
void psd_sim_set_beside(struct psd_simulation *sim, unsigned host, bool is_beside);

/* ---- simulate.c ---- */

void psd_sim_wake(struct psd_simulation *sim, uint64_t tag);

/* ---- disturbances.c: slowdowns, background traffic ---- */

/* Seconds from now on that `sec` seconds of work at full speed take on this node. */
double psd_sim_slowed_sec(const struct psd_simulation *sim, unsigned node, double sec);
void psd_sim_start_disturbances(struct psd_simulation *sim);
void psd_sim_apply_links(const struct psd_simulation *sim, unsigned node);
void psd_sim_background_due(struct psd_simulation *sim, unsigned index);
void psd_sim_background_sent(struct psd_simulation *sim, unsigned index);

#endif
