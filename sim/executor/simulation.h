/* State of the simulation executor, and the kinds of events that the network reports to it. Private to
 * sim/executor/. */
#ifndef PSD_SIM_SIMULATION_H
#define PSD_SIM_SIMULATION_H

#include "engine/estimate/device_share.h"
#include "engine/estimate/pool.h"
#include "engine/program/event_tag.h"
#include "engine/program/interpreter.h"
#include "engine/program/repeat.h"
#include "sim/executor/flow_classes.h"
#include "sim/executor/simulate.h"

/* Kinds of event. The tag of an event (engine/program/event_tag.h) has the kind, and the numbers that the comment
 * lists after "tag:". */
enum psd_wake {
	PSD_WAKE_WORK,	  /* the work of an operation has ended; tag: host, resource */
	PSD_WAKE_FLOW,	  /* a flow has arrived; tag: sending host, receiving host */
	PSD_WAKE_ARRIVAL, /* a message has arrived; tag: host, task of the send */
	/* Flow fidelity: a flow of a stepwise transfer has arrived, or the host at one of its ends has finished its
	 * processor work; tag: first member of the transfer. */
	PSD_WAKE_STEP_FLOW,
	/* the delay after the last flow of a stepwise transfer has ended; tag: first member */
	PSD_WAKE_STEPS_END,
	/* message fidelity: the fixed time before a stepwise transfer has passed, so its steps begin; tag: first
	 * member */
	PSD_WAKE_STEPS_BEGIN,
	/* message fidelity: one part of a message (its bytes, or the processor work at one end) has ended; tag: host */
	PSD_WAKE_STEP_SENT,
	PSD_WAKE_STEP_ARRIVED,	  /* message fidelity: a message has arrived; tag: host */
	PSD_WAKE_LINK,		  /* the speed of a node's link may change; tag: node */
	PSD_WAKE_BACKGROUND_SENT, /* a transfer of background traffic has ended; tag: its index in the scenario */
	PSD_WAKE_BACKGROUND_DUE,  /* the next transfer of background traffic is due; tag: its index in the scenario */
	PSD_WAKE_POOL,		  /* some work on a pool of processor cores may have ended; tag: pool */
	/* One of the three parts of a crossing (struct psd_crossing) has ended; tag: index of the crossing. */
	PSD_WAKE_CROSSING,
	PSD_WAKE_EXCHANGE, /* flows of classes end or change their rates; tag: see exchange.c */
	/* Tag: two hosts. If they differ: the first queued message from one to the other has left. If they are the same
	 * host: the message of its send operation is in a queue. */
	PSD_WAKE_QUEUE,
	PSD_WAKE_PASSED, /* messages that several classes of hosts sent at the same time have arrived */
};

/* A send operation that a host executes now. */
struct psd_sending {
	struct psd_task task;
	/* counts of receiving hosts: [0] on other nodes, [1] on the sender's node; 0: not counted yet */
	unsigned n_receivers[2];
	unsigned n_flows_left; /* number of the operation's flows that have not ended */
	double start_sec;      /* time at which the operation began, seconds of the simulation */
};

/* Queue of messages from one host to another (psd_collective.is_queued); the first is sent now. */
struct psd_sim_queue {
	struct psd_task *tasks;
	unsigned n, room;
	double start_sec; /* time at which the first began to be sent, seconds of the simulation */
};

/* Crossing: a message for which sender and receiver spend processor time. It consists of three parts: the transfer of
 * its bytes, and the processor work at both ends. It has ended when all three have ended. */
struct psd_crossing {
	unsigned from, to;     /* sending and receiving host */
	bool is_queued;	       /* the message is the first of the queue between them */
	unsigned n_parts_left; /* number of the message's parts that have not ended, 0 to 3 */
	/* index of the next entry in the list of unused crossings; valid if this entry is unused */
	unsigned next_free;
};

/* State of one host, a member, in a stepwise transfer whose steps are simulated. The entry of the first member also
 * has the state of the whole transfer; flow fidelity uses only this one. */
struct psd_transfer {
	struct psd_task task;
	/* Only of the first member. Message fidelity: number of members that have not finished. Flow fidelity: number
	 * of flows, and of processor work at their ends, that have not ended. */
	unsigned n_left;
	/* number of the step whose message is sent next, and of the step whose message is received next */
	unsigned next_send, next_receive;
	unsigned n_steps;
	/* step of the member with the next even number [0] and with the next odd number [1], so that each step is
	 * computed once */
	struct psd_step steps[2];
	unsigned at_step[2]; /* numbers of the steps in `steps` */
	/* number of parts of the message being sent that have not ended: bytes, processor work of sender and of
	 * receiver; 0: no message is being sent */
	unsigned n_parts_left;
	unsigned to;  /* receiver of the message being sent */
	bool is_over; /* the member has executed all its steps */
};

/* All-reduces of a program that have equal payloads, so that they also have equal durations. */
struct psd_alone_kind {
	const struct psd_payload *payload;
	double sec; /* duration of each of these all-reduces, seconds; NaN: not known yet */
	/* begin of the all-reduce that is simulated now, seconds of the simulation */
	double start_sec;
	/* classes of its flows; empty if all flows are simulated, or if the duration is computed without flows */
	struct psd_flow_classes classes;
	/* number of messages, and of messages that were not computed, see struct psd_step_graph */
	uint64_t n_messages, n_skipped;
	uint64_t n_runs; /* number of all-reduces that have begun */
};

/* State for a program in which nothing else uses the network while an all-reduce runs. Then equal all-reduces are
 * simulated once, see alone.c. */
struct psd_alone {
	bool is_on; /* the program is of this kind; false: the other fields are not set */
	/* each kind of all-reduce has classes of flows or a computed duration, so SimGrid needs one link for each class
	 * of links */
	bool has_classes;
	struct psd_alone_kind *kinds; /* kinds of all-reduces in the program, n_kinds entries */
	unsigned n_kinds;
	unsigned *kind_of_op; /* index of the kind of each collective, one entry per operation */
	/* largest number of classes of flows, and of links, in one kind of all-reduce */
	unsigned most_flows, most_links;
};

struct psd_exchange;

struct psd_simulation {
	const struct psd_case *simulated;
	const struct psd_scenario *scenario;
	const struct psd_program *program;
	const struct psd_layout *layout;
	struct psd_interpreter interpreter;
	enum psd_detail detail;
	/* Hosts of the layout that the interpreter executes, n_hosts entries in ascending order; NULL: all hosts of the
	 * layout. The interpreter numbers them from 0; tags of PSD_WAKE_WORK have these numbers. */
	unsigned *hosts;
	unsigned n_hosts, host_room;
	struct psd_alone alone;
	struct psd_exchange *exchange; /* classes of hosts, see exchange.c; NULL: there are none */
	struct psd_repeat repeat;
	/* Values at the last end of an iteration that `repeat` has compared: bytes that each node has sent and
	 * received, and number of begun all-reduces of each kind. NULL: repeated iterations are not searched. */
	uint64_t *sent_before, *received_before, *runs_before;
	/* every message is simulated; false: one flow is simulated for many messages */
	bool is_message_fidelity;
	/* largest number of flows of a host in an exchange of all hosts with all hosts, see psd_sim_shift_flows() */
	unsigned n_shift_flows;
	/* Number of flows of all senders that have ended, in exchanges of all hosts with all hosts. Shape
	 * (program->window, n_ops); iteration i uses row i % window. */
	uint32_t *n_shift_flows_done;
	psd_span_fn span;
	void *span_context; /* first argument of span() */
	/* different duties of hosts, n_duties entries; hosts with equal duties share an entry */
	struct psd_duties *duties;
	unsigned n_duties;
	const struct psd_duties **duties_of_host; /* duties of each host, pointers into `duties`; one entry per host */
	struct psd_sending *sendings;		  /* send operation that each host executes now, one entry per host */
	struct psd_sim_queue *queues;	/* shape (n_hosts, n_hosts): sender, receiver; NULL: no messages are queued */
	struct psd_transfer *transfers; /* state of each host in its stepwise transfer, one entry per host */
	/* mean latency of a message between two members with consecutive ranks on different nodes */
	double hop_latency_sec;
	/* per operation: sum of the latencies of all steps of its transfer; NaN: not computed yet */
	double *delays_sec;
	uint64_t *sent_bytes; /* payload bytes that each node has sent to other nodes, one entry per node */
	uint64_t *received_bytes;
	/* pools of processor cores; NULL: the scenario has no `cluster.machine`, and pools, places, timers_sec,
	 * waits_sec and crossings are not used */
	struct psd_pool *pools;
	unsigned n_pools;
	struct psd_pool_place *places; /* pool of each host, one entry per host */
	double *timers_sec;	       /* time of each pool's next timer, one entry per pool; infinity: none is set */
	double *waits_sec; /* time that each host's emulated device waits after its work on cores, one entry per host */
	struct psd_device_share *device_shares; /* device of each host; NULL: all-reduces do not slow devices down */
	struct psd_crossing *crossings;
	unsigned n_crossings;
	unsigned free_crossing; /* index of the first unused crossing; n_crossings: all are in use */
	/* per entry of the scenario's background traffic: number of transfers that have become due but have not
	 * ended */
	uint64_t n_due[PSD_MAX_EVENTS];
	bool is_out_of_memory;
	uint64_t n_events;
	uint64_t n_operations; /* number of operations of all iterations, counted in n_events at the start */
	/* number of the first host that may not have finished; all hosts before it have finished */
	unsigned first_incomplete;
};

static inline struct psd_payload psd_simulation_payload(const struct psd_simulation *sim, struct psd_task task)
{
	return psd_op_payload(&sim->program->ops[task.op], task.iteration);
}

/* Returns the number in the layout of host number `host` of the interpreter. */
static inline unsigned psd_sim_host(const struct psd_simulation *sim, unsigned host)
{
	return sim->hosts ? sim->hosts[host] : host;
}

/* ---- alone.c ---- */

/* Sets sim->alone. Sets sim->hosts if only some hosts are simulated, one for each class of equal hosts. PSD_ENOMEM. */
enum psd_status psd_sim_alone_prepare(struct psd_simulation *sim, const struct psd_platform *platform,
				      struct psd_error *err) PSD_MUST_CHECK;
void psd_sim_alone_release(struct psd_simulation *sim);
/* Returns the cost of simulating all all-reduces of the program, as a number of events. */
double psd_sim_alone_events(const struct psd_simulation *sim);
/* Returns the kind of all-reduce (struct psd_alone_kind) of operation number `op`. */
struct psd_alone_kind *psd_sim_alone_kind(struct psd_simulation *sim, uint32_t op);
/* Begins one flow for each class of flows of a transfer. first: number of the transfer's first member. */
void psd_sim_alone_start_flows(struct psd_simulation *sim, const struct psd_flow_classes *classes, unsigned first);
/* Sets the fields of *outcome with the numbers of nodes, messages and iterations that were not simulated. */
void psd_sim_count_skipped(const struct psd_simulation *sim, struct psd_outcome *outcome);
/* Returns the bytes per iteration of the node that sends most, and of the node that receives most. */
struct psd_traffic psd_sim_alone_traffic(const struct psd_simulation *sim, uint32_t n_iterations);

/* True if a node's links keep their speeds, and nothing else is on the network. */
bool psd_sim_has_calm_links(const struct psd_scenario *scenario);

/* ---- exchange.c: transfers between classes of hosts ---- */

/* Sets sim->exchange and sim->hosts if hosts have classes. PSD_ENOMEM. */
enum psd_status psd_sim_exchange_prepare(struct psd_simulation *sim, const struct psd_platform *platform,
					 struct psd_error *err) PSD_MUST_CHECK;
void psd_sim_exchange_release(struct psd_simulation *sim);
/* Returns the cost of simulating an operation's flows, in events. */
double psd_sim_exchange_events(const struct psd_simulation *sim);
/* Returns a measure of the time spent on the rates of flows so far, in events. */
uint64_t psd_sim_exchange_work(const struct psd_simulation *sim);
/* Starts all messages of a send operation of a class. Returns false if there are none. */
bool psd_sim_exchange_send(struct psd_simulation *sim, unsigned from, struct psd_task task);
/* Handles PSD_WAKE_EXCHANGE. */
void psd_sim_exchange_wake(struct psd_simulation *sim, uint64_t tag);
/* Called at each event. It ends flows that are due, but only after all other events of the present time, as SimGrid
 * does. tag: the event's tag. */
void psd_sim_exchange_look(struct psd_simulation *sim, uint64_t tag);

/* ---- transfers.c: transfers that send all messages at once ---- */

/* Returns the largest number of flows by which one host's messages are simulated in an exchange of all hosts with all
 * hosts, in flow fidelity. If a host has more messages, several of them share a flow. */
unsigned psd_sim_shift_flows(const struct psd_case *simulated);
/* True if flows carry several messages of the payload. */
bool psd_sim_is_aggregated(const struct psd_simulation *sim, const struct psd_payload *payload);
/* If some hosts do the same as others in every exchange, sets sim->hosts to the hosts that stand for all.
 * PSD_ENOMEM. */
enum psd_status psd_sim_find_alike(struct psd_simulation *sim, struct psd_error *err) PSD_MUST_CHECK;
/* Returns the number of arrivals for which a receive operation waits. It is the psd_arrivals_fn of the simulation. */
uint32_t psd_sim_arrivals(const void *context, const struct psd_op *receive, unsigned host);
/* Returns the cost of simulating the messages of an operation, in events. It is more than one event per message if
 * many messages are under way at the same time. */
double psd_sim_transfer_events(const struct psd_simulation *sim, const struct psd_op *op);
/* Starts all messages of a send operation of a host; called as psd_seam.send. */
bool psd_sim_send(void *context, unsigned host, struct psd_task task);
/* Handles PSD_WAKE_QUEUE. */
void psd_sim_wake_queue(struct psd_simulation *sim, unsigned from, unsigned to);
/* Called when a flow from host `from` to host `to` has arrived. */
void psd_sim_end_flow(struct psd_simulation *sim, unsigned from, unsigned to);

/* Called when one part of a crossing has ended. */
void psd_sim_end_crossing(struct psd_simulation *sim, unsigned index);

/* ---- steps.c: stepwise transfers ---- */

/* True if every message of a stepwise transfer is simulated. This is so in message fidelity. It is also so in flow
 * fidelity if racks share uplinks and the collective has as many messages as flows. */
bool psd_sim_walks_steps(const struct psd_simulation *sim, const struct psd_payload *payload);

/* Computes sim->hop_latency_sec. */
void psd_sim_steps_find_latency(struct psd_simulation *sim);
/* Starts a stepwise transfer; called as psd_seam.collective. */
void psd_sim_steps_start(void *context, struct psd_task task);
/* Ends a stepwise transfer on all its members. first: its first member, here and in the functions below. */
void psd_sim_steps_end(struct psd_simulation *sim, unsigned first);
/* Called in flow fidelity when a flow, or the processor work at one of its ends, has ended. */
void psd_sim_step_flow_done(struct psd_simulation *sim, unsigned first);
/* Begins the steps of all members. Called only if psd_sim_walks_steps() is true. */
void psd_sim_steps_begin(struct psd_simulation *sim, unsigned first);
/* Called when one part of the message that the host is sending has ended; only if psd_sim_walks_steps(). */
void psd_sim_step_part_done(struct psd_simulation *sim, unsigned host);
/* Called when a host has received a message of a collective that is simulated step by step. Not called if
 * psd_sim_walks_steps() is false. */
void psd_sim_step_arrived(struct psd_simulation *sim, unsigned host);

/* ---- processors.c ---- */

/* Makes the pools of processor cores, if the scenario has `cluster.machine`. PSD_ENOMEM. */
enum psd_status psd_sim_open_processors(struct psd_simulation *sim, struct psd_error *err) PSD_MUST_CHECK;
void psd_sim_close_processors(struct psd_simulation *sim);
/* True if layers, sums and the sending and receiving of messages share processor cores (`cluster.machine`). */
bool psd_sim_has_processors(const struct psd_simulation *sim);
/* Begins processor work on a host that takes `sec` seconds of one core and can use at most most_cores cores; an event
 * with this tag reports its end. */
void psd_sim_process(struct psd_simulation *sim, unsigned host, double sec, double most_cores, uint64_t tag);
/* Called when some work of a pool may have ended. Ends the operations whose work has ended, and sets the next
 * timer. */
void psd_sim_wake_processors(struct psd_simulation *sim, unsigned pool);
/* Returns the processor work of the sender, or equally of the receiver, for n_messages messages from host `from` to
 * host `to` with `bytes` bytes in total; see psd_cost_socket_work(). */
struct psd_socket_work psd_sim_socket_work(const struct psd_simulation *sim, unsigned from, unsigned to, uint64_t bytes,
					   double n_messages);

/* Makes the state of the hosts' devices if all-reduces slow devices down; otherwise does nothing. PSD_ENOMEM. */
enum psd_status psd_sim_open_device_shares(struct psd_simulation *sim, struct psd_error *err) PSD_MUST_CHECK;
/* Begins work on a host's device that takes `sec` seconds if no all-reduce runs. */
void psd_sim_begin_device_share(struct psd_simulation *sim, unsigned host, double sec);
/* Called at an event of the host's resource. Returns true if the work on the resource has ended. Otherwise sets the
 * next timer and returns false. */
bool psd_sim_work_ends(struct psd_simulation *sim, unsigned host, enum psd_resource resource);
/* Records that an all-reduce begins (is_beside true) or ends (false) on a host's device. */
void psd_sim_set_beside(struct psd_simulation *sim, unsigned host, bool is_beside);

/* ---- iterations.c: iterations that repeat ---- */

/* Begins the search for repeated iterations. Does nothing if durations have random factors, or if a trace needs all
 * iterations. PSD_ENOMEM. */
enum psd_status psd_sim_repeat_prepare(struct psd_simulation *sim, struct psd_run_length length,
				       struct psd_error *err) PSD_MUST_CHECK;
void psd_sim_repeat_release(struct psd_simulation *sim);
/* Leaves out iterations that would repeat earlier ones. Called if psd_repeat_is_due() is true. */
void psd_sim_repeat(struct psd_simulation *sim);

/* ---- simulate.c ---- */

/* Handles an event of the network. tag: the event's tag, see enum psd_wake. */
void psd_sim_wake(struct psd_simulation *sim, uint64_t tag);

/* ---- disturbances.c: slowdowns, background traffic ---- */

/* Returns the duration, from now on, of work on a node with its slowdowns, seconds. sec: duration at full speed. */
double psd_sim_slowed_sec(const struct psd_simulation *sim, unsigned node, double sec);
/* Starts background traffic, and sets timers for all changes of links' speeds. */
void psd_sim_start_disturbances(struct psd_simulation *sim);
/* Sets the rate of the node's link for the present time, by the scenario's slowdowns. */
void psd_sim_apply_links(const struct psd_simulation *sim, unsigned node);
/* Handles PSD_WAKE_BACKGROUND_DUE for entry `index` of the scenario's background traffic. */
void psd_sim_background_due(struct psd_simulation *sim, unsigned index);
/* Handles PSD_WAKE_BACKGROUND_SENT for entry `index` of the scenario's background traffic. */
void psd_sim_background_sent(struct psd_simulation *sim, unsigned index);

#endif
