/* State of the simulation executor, private to it, and the tags by which the network reports events. */
#ifndef PSD_SIM_SIMULATION_H
#define PSD_SIM_SIMULATION_H

#include "engine/estimate/device_share.h"
#include "engine/estimate/pool.h"
#include "engine/program/event_tag.h"
#include "engine/program/interpreter.h"
#include "sim/executor/simulate.h"

/* Kinds of event. Its tag has the kind, then the numbers that each comment lists. */
enum psd_wake {
	PSD_WAKE_WORK,	  /* an operation's work is over; tag: host, resource */
	PSD_WAKE_FLOW,	  /* a message has been sent; tag: from, to */
	PSD_WAKE_ARRIVAL, /* a message has arrived; tag: host, task of the send */
	/* Flow fidelity: a flow of a stepwise transfer has arrived, or one end has finished its work on it; tag: first
	 * member. */
	PSD_WAKE_STEP_FLOW,
	PSD_WAKE_STEPS_END,	  /* a transfer's delay after its last flow is over; tag: first member */
	PSD_WAKE_STEPS_BEGIN,	  /* message fidelity: the cost of the call is paid, steps begin; tag: first member */
	PSD_WAKE_STEP_SENT,	  /* message fidelity: one part of sending a message is over; tag: host */
	PSD_WAKE_STEP_ARRIVED,	  /* message fidelity: a message has arrived; tag: host */
	PSD_WAKE_LINK,		  /* the speed of a node's link changes; tag: node */
	PSD_WAKE_BACKGROUND_SENT, /* background traffic was sent; tag: scenario's index, as for the next kind */
	PSD_WAKE_BACKGROUND_DUE,
	PSD_WAKE_POOL,	   /* some work of a pool may be over; tag: pool */
	PSD_WAKE_CROSSING, /* one part of a crossing is over; tag: its index */
};

struct psd_sending {
	struct psd_task task;
	unsigned n_receivers[2]; /* numbers of receivers on other nodes and on the same node; 0: not counted yet */
	unsigned n_flows_left;
	double start_sec;
};

/* Crossing: a message on which both ends spend processor time; over when its bytes and both ends are done. */
struct psd_crossing {
	unsigned from, to;
	unsigned n_parts_left;
	unsigned next_free; /* index of the next unused crossing */
};

/* Progress of one member through the steps of a transfer, in message fidelity. The first member also has the state of
 * all members, in both fidelities. */
struct psd_transfer {
	struct psd_task task;
	unsigned n_left; /* in the first member: number of members not done, or of flows and ends not done */
	unsigned next_send, next_receive; /* steps of the next messages; messages of earlier steps may be leaving */
	unsigned n_steps;
	struct psd_step steps[2]; /* next even and next odd step of the member, computed once */
	unsigned at_step[2];	  /* step numbers of these two */
	/* parts of the current message that are not done: bytes, both ends' work; 0: no message */
	unsigned n_parts_left;
	unsigned to; /* receiver of the current message */
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
	/* Number of finished shift flows over all senders: a row of operations for each iteration of the window. */
	uint32_t *n_shift_flows_done;
	psd_span_fn span;
	void *span_context;
	struct psd_duties *duties; /* tables of duties, shared by hosts with the same duties */
	unsigned n_duties;
	const struct psd_duties **duties_of_host;
	struct psd_sending *sendings;	/* send in progress on each host, one entry per host */
	struct psd_transfer *transfers; /* progress in a stepwise transfer, one entry per host */
	double hop_latency_sec;		/* mean latency of a step between neighbours on different nodes */
	double *delays_sec;		/* per operation: sum of the latencies of its steps; NaN: not computed yet */
	uint64_t *sent_bytes;		/* payload bytes that each node has sent, one entry per node */
	uint64_t *received_bytes;
	struct psd_pool *pools; /* pools of cores; this and the next three are empty unless the scenario has machines */
	unsigned n_pools;
	struct psd_pool_place *places; /* pool of each host, one entry per host */
	double *timers_sec;	       /* time of each pool's next timer, one entry per pool; infinity: none is set */
	struct psd_device_share *device_shares; /* device of each host; NULL: all-reduces take no share */
	struct psd_crossing *crossings;
	unsigned n_crossings;
	unsigned free_crossing;		/* index of the first unused crossing; n_crossings: none */
	uint64_t n_due[PSD_MAX_EVENTS]; /* per background entry: number of transfers under way or waiting */
	bool is_out_of_memory;
	uint64_t n_events;
	unsigned first_incomplete; /* first host that may not have finished the program; all before it have */
};

static inline const struct psd_payload *psd_simulation_payload(const struct psd_simulation *sim, struct psd_task task)
{
	return &sim->program->ops[task.op].payload;
}

/* ---- transfers.c: transfers that send all messages at once ---- */

/* Largest number of flows for a host's messages in a dense exchange; more messages share flows. */
unsigned psd_sim_shift_flows(const struct psd_case *simulated);
uint32_t psd_sim_arrivals(const void *context, const struct psd_op *receive, unsigned host); /* a psd_arrivals_fn */
/* Cost of simulating an operation's messages, in events. With many messages under way at a time, each costs more than
 * one. */
double psd_sim_transfer_events(const struct psd_simulation *sim, const struct psd_op *op);
bool psd_sim_send(void *context, unsigned host, struct psd_task task); /* called as psd_seam.send */
void psd_sim_end_flow(struct psd_simulation *sim, unsigned from, unsigned to);

void psd_sim_end_crossing(struct psd_simulation *sim, unsigned index);

/* ---- steps.c: stepwise transfers ---- */

void psd_sim_steps_find_latency(struct psd_simulation *sim);
void psd_sim_steps_start(void *context, struct psd_task task); /* called as psd_seam.collective */
void psd_sim_steps_end(struct psd_simulation *sim, unsigned first);
void psd_sim_step_flow_done(struct psd_simulation *sim, unsigned first); /* in flow fidelity */
void psd_sim_steps_begin(struct psd_simulation *sim, unsigned first);	 /* in message fidelity, as the next two */
void psd_sim_step_part_done(struct psd_simulation *sim, unsigned host);
void psd_sim_step_arrived(struct psd_simulation *sim, unsigned host);

/* ---- processors.c ---- */

enum psd_status psd_sim_open_processors(struct psd_simulation *sim, struct psd_error *err) PSD_MUST_CHECK;
void psd_sim_close_processors(struct psd_simulation *sim);
/* True if layers, reductions and sockets share cores. */
bool psd_sim_has_processors(const struct psd_simulation *sim);
/* Begins `sec` seconds of work of one core on host; the network reports `tag` when it is over. */
void psd_sim_process(struct psd_simulation *sim, unsigned host, double sec, double most_cores, uint64_t tag);
void psd_sim_wake_processors(struct psd_simulation *sim, unsigned pool);
/* Processor work at one end of messages between two hosts, see psd_cost_socket_work(). */
struct psd_socket_work psd_sim_socket_work(const struct psd_simulation *sim, unsigned from, unsigned to, uint64_t bytes,
					   double n_messages);

/* Open the hosts' devices, of which all-reduces take a share; begin work on one. */
enum psd_status psd_sim_open_device_shares(struct psd_simulation *sim, struct psd_error *err) PSD_MUST_CHECK;
void psd_sim_begin_device_share(struct psd_simulation *sim, unsigned host, double sec);
/* True if the event ends the resource's work; if not, sets the next timer. */
bool psd_sim_work_ends(struct psd_simulation *sim, unsigned host, enum psd_resource resource);
/* Records that an all-reduce begins or ends on a host's device. */
void psd_sim_set_beside(struct psd_simulation *sim, unsigned host, bool is_beside);

/* ---- simulate.c ---- */

void psd_sim_wake(struct psd_simulation *sim, uint64_t tag);

/* ---- disturbances.c: slowdowns, background traffic ---- */

/* Seconds from now that work of `sec` seconds at full speed takes on this node, with its slowdowns. */
double psd_sim_slowed_sec(const struct psd_simulation *sim, unsigned node, double sec);
void psd_sim_start_disturbances(struct psd_simulation *sim);
void psd_sim_apply_links(const struct psd_simulation *sim, unsigned node);
void psd_sim_background_due(struct psd_simulation *sim, unsigned index);
void psd_sim_background_sent(struct psd_simulation *sim, unsigned index);

#endif
