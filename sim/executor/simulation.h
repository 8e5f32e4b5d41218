/* Private to the simulation executor: its state and the cookies by which the network tells it what is over. */
#ifndef PSD_SIM_SIMULATION_H
#define PSD_SIM_SIMULATION_H

#include "engine/estimate/device_share.h"
#include "engine/estimate/pool.h"
#include "engine/program/event_tag.h"
#include "engine/program/interpreter.h"
#include "sim/executor/simulate.h"

/* What woke us is told by the cookie: the kind, then what is named here. */
enum psd_wake {
	PSD_WAKE_WORK,	      /* host, resource */
	PSD_WAKE_FLOW,	      /* from, to */
	PSD_WAKE_ARRIVAL,     /* host, task of the send */
	PSD_WAKE_STEP_FLOW,   /* first member; flow fidelity: a flow of a stepwise transfer is there, or one end is done
				 with it */
	PSD_WAKE_STEPS_END,   /* first member: what its steps wait for is over too */
	PSD_WAKE_STEPS_BEGIN, /* first member; message fidelity: what its size class adds is over */
	PSD_WAKE_STEP_SENT,   /* host; message fidelity: a part of its message is over */
	PSD_WAKE_STEP_ARRIVED,	  /* host; the message to it is there */
	PSD_WAKE_LINK,		  /* node: its link changes */
	PSD_WAKE_BACKGROUND_SENT, /* index in the scenario, as is the next one */
	PSD_WAKE_BACKGROUND_DUE,
	PSD_WAKE_POOL,	   /* pool: some of its work may be over */
	PSD_WAKE_CROSSING, /* index: one part of it is over */
};

struct psd_sending {
	struct psd_task task;
	unsigned n_receivers[2]; /* on links, and inside the node; 0: not counted yet */
	unsigned n_flows_left;
	double start_sec;
};

/* A transfer whose ends spend processor time on it: it is over when its bytes and both ends are through. */
struct psd_crossing {
	unsigned from, to;
	unsigned n_parts_left;
	unsigned next_free; /* of those not in use */
};

/* A member's way through the steps of a transfer, in message fidelity but for what belongs to its first member. */
struct psd_transfer {
	struct psd_task task;
	unsigned n_left; /* first member: of all members, or of flows and their ends */
	unsigned next_send,
		next_receive; /* steps; of those that are over the last one's message may still be leaving */
	unsigned n_steps;
	struct psd_step steps[2]; /* what it does in an even and an odd one: asked for several times, found once */
	unsigned at_step[2];	  /* which they are */
	unsigned n_parts_left; /* of the message that it sends: its bytes, and what either end does for it; 0: none */
	unsigned to;	       /* whom it goes to */
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
	/* Of all senders: a row of operations for each iteration of the window, in turn. */
	uint32_t *n_shift_flows_done;
	psd_span_fn span;
	void *span_context;
	struct psd_duties *duties; /* distinct ones */
	unsigned n_duties;
	const struct psd_duties **duties_of_host;
	struct psd_sending *sendings; /* per host; its NIC sends one operation at a time */
	struct psd_transfer *walks;   /* per host; its NIC carries one stepwise transfer at a time */
	double hop_latency_sec;	      /* mean over the hops between neighbours on different nodes */
	double *delays_sec;	      /* of each operation's steps; not a number: not asked for yet */
	uint64_t *sent_bytes;	      /* per node */
	uint64_t *received_bytes;
	struct psd_pool *pools; /* only where machines are given, as the next three */
	unsigned n_pools;
	struct psd_pool_place *places;	    /* per host */
	double *timers_sec;		    /* per pool: when it is to be woken, infinity: never */
	struct psd_device_share *yieldings; /* per host its device; NULL: all-reduces take nothing of it */
	struct psd_crossing *crossings;
	unsigned n_crossings;
	unsigned free_crossing;		/* n_crossings: all are in use */
	uint64_t n_due[PSD_MAX_EVENTS]; /* per background: transfers that are under way or wait for those before */
	bool is_out_of_memory;
	uint64_t n_events;
	unsigned first_incomplete; /* hosts below have carried out everything */
};

static inline const struct psd_payload *psd_simulation_payload(const struct psd_simulation *sim, struct psd_task task)
{
	return &sim->program->ops[task.op].payload;
}

/* ---- transfers.c: transfers that send all at once ---- */

/* Flows that stand for a host's messages in a dense exchange, once there are more messages than that. */
unsigned psd_sim_shift_flows(const struct psd_case *simulated);
uint32_t psd_sim_arrivals(const void *context, const struct psd_op *receive, unsigned host); /* psd_arrivals_fn */
/* What an operation's messages are worth in events: more than one each, where many are under way at a time. */
double psd_sim_transfer_events(const struct psd_simulation *sim, const struct psd_op *op);
bool psd_sim_send(void *context, unsigned host, struct psd_task task); /* psd_seam.send */
void psd_sim_end_flow(struct psd_simulation *sim, unsigned from, unsigned to);

void psd_sim_end_crossing(struct psd_simulation *sim, unsigned index);

/* ---- steps.c: transfers that go step by step ---- */

void psd_sim_steps_find_latency(struct psd_simulation *sim);
void psd_sim_steps_start(void *context, struct psd_task task); /* psd_seam.collective */
void psd_sim_steps_end(struct psd_simulation *sim, unsigned first);
void psd_sim_step_flow_done(struct psd_simulation *sim, unsigned first); /* flow fidelity */
void psd_sim_steps_begin(struct psd_simulation *sim, unsigned first);	 /* message fidelity, and so are the next two */
void psd_sim_step_part_done(struct psd_simulation *sim, unsigned host);
void psd_sim_step_arrived(struct psd_simulation *sim, unsigned host);

/* ---- processors.c ---- */

enum psd_status psd_sim_open_processors(struct psd_simulation *sim, struct psd_error *err) PSD_MUST_CHECK;
void psd_sim_close_processors(struct psd_simulation *sim);
/* Layers, reductions and sockets share cores. */
bool psd_sim_has_processors(const struct psd_simulation *sim);
/* So much work of one core begins on host; wakes with cookie when it is over. */
void psd_sim_process(struct psd_simulation *sim, unsigned host, double sec, double most_cores, uint64_t tag);
void psd_sim_wake_processors(struct psd_simulation *sim, unsigned pool);
/* As psd_cost_socket_work(). */
struct psd_socket_work psd_sim_socket_work(const struct psd_simulation *sim, unsigned from, unsigned to, uint64_t bytes,
					   double n_messages);

/* Devices of which all-reduces take a share. */
enum psd_status psd_sim_open_device_shares(struct psd_simulation *sim, struct psd_error *err) PSD_MUST_CHECK;
void psd_sim_begin_device_share(struct psd_simulation *sim, unsigned host, double sec);
/* Whether what woke us is the end of the resource's work; else it is looked after. */
bool psd_sim_work_ends(struct psd_simulation *sim, unsigned host, enum psd_resource resource);
/* An all-reduce begins to run on a host's device, or ends. */
void psd_sim_set_beside(struct psd_simulation *sim, unsigned host, bool is_beside);

/* ---- simulate.c ---- */

void psd_sim_wake(struct psd_simulation *sim, uint64_t tag);

/* ---- disturbances.c: slowdowns, background traffic ---- */

/* Seconds that `sec` of work at full speed take on this node from now on. */
double psd_sim_slowed_sec(const struct psd_simulation *sim, unsigned node, double sec);
void psd_sim_start_disturbances(struct psd_simulation *sim);
void psd_sim_apply_links(const struct psd_simulation *sim, unsigned node);
void psd_sim_background_due(struct psd_simulation *sim, unsigned index);
void psd_sim_background_sent(struct psd_simulation *sim, unsigned index);

#endif
