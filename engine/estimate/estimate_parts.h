/* State of the estimate executor, and the functions that its files share. Private to engine/estimate/. */
#ifndef PSD_ESTIMATE_PARTS_H
#define PSD_ESTIMATE_PARTS_H

#include "engine/base/heap.h"
#include "engine/collectives/fluid.h"
#include "engine/cost/prices.h"
#include "engine/estimate/classes.h"
#include "engine/estimate/device_share.h"
#include "engine/estimate/pool.h"
#include "engine/program/interpreter.h"

/* Kinds of event. The tag of an event (program/event_tag.h) has the kind, and the numbers that the comment lists after
 * "tag:". */
enum psd_estimate_event {
	PSD_ESTIMATE_FINISHED, /* an operation has ended; tag: class, resource */
	PSD_ESTIMATE_ARRIVED,  /* a message has arrived; tag: class, task */
	/* the processor work at the sender or receiver of a path's messages has ended; tag: path */
	PSD_ESTIMATE_MESSAGE_PART,
	/* one part of a collective has ended: the bytes on the network, or the processor work of a member; tag:
	 * first class of hosts that takes part in the collective */
	PSD_ESTIMATE_COLLECTIVE_PART,
	PSD_ESTIMATE_QUEUED,	 /* the message of a send operation is in a queue; tag: class */
	PSD_ESTIMATE_COLLECTIVE, /* a collective has ended; tag: task */
};

struct psd_estimate_collective {
	struct psd_task task;
	/* number of parts that have not ended: bytes on the network, and processor work of each member */
	unsigned n_parts_left;
	/* seconds from the end of the last part to the end of the collective: latencies and waits of its steps */
	double delay_sec;
};

/* Processor work of one host for a collective: for the messages that it sends, and for those that it receives. */
struct psd_estimate_ends {
	struct psd_socket_work sent, received;
};

/* Pool of processor cores that a class uses, if the scenario has `cluster.machine`. */
struct psd_estimate_share {
	unsigned pool;	   /* index of the pool of cores that the class uses */
	double copies;	   /* number of the class's hosts that use the same pool */
	bool shares_cores; /* more than one host uses the pool */
	double wait_sec;   /* time that the emulated device waits after its present work on cores */
};

/* Queue of messages on a path (psd_collective.is_queued); the first is sent now. */
struct psd_estimate_queue {
	struct psd_task *tasks;
	unsigned n, room;
};

struct psd_estimate {
	const struct psd_program *program;
	struct psd_interpreter interpreter;
	struct psd_classes classes;
	double now_sec;
	/* number of events so far, and largest number of events; with more the estimate stops with an error */
	uint64_t n_events, most_events;
	bool is_out_of_memory;
	struct psd_heap events;
	uint64_t next_seq;

	/* Fields for messages between classes: */
	/* flow of each path, n_flows entries in use; a class executes one send operation at a time */
	struct psd_fluid_flow *flows;
	unsigned n_flows, flows_room;
	/* ports of each class: for each kind of link one port out and one port in */
	struct psd_fluid_port *ports;
	double flows_at_sec; /* time up to which the flows' left_bits are computed, seconds */
	/* flows have begun or ended at flows_at_sec, and do not share the ports yet */
	bool have_flows_changed;
	double flow_end_sec; /* time at which the next flow ends, seconds; infinity: there are no flows */
	/* queue of each path; NULL: the program has no queued messages */
	struct psd_estimate_queue *queues;
	/* per path, and again per path for its queue: number of parts of its messages that have not ended: bytes,
	 * processor work of sender and of receiver */
	unsigned *n_parts_left;
	unsigned *n_flows_left;	  /* per class: number of flows of its send operation that have not ended */
	struct psd_task *sending; /* per class: the send operation that it executes now */

	/* Fields for collectives: */
	struct psd_prices *prices; /* cache of transfer times: the caller's, or own_prices */
	struct psd_prices own_prices;
	/* collectives that run now; entry c is the one whose first class is c */
	struct psd_estimate_collective *collectives;
	/* scratch memory: processor work of each class for a collective that begins */
	struct psd_estimate_ends *ends;

	/* Fields for processor cores and devices: */
	/* pools of processor cores, n_pools entries; NULL: the scenario has no `cluster.machine` */
	struct psd_pool *pools;
	unsigned n_pools;
	struct psd_estimate_share *shares; /* for each class, the pool of processor cores that it uses */
	/* device of each class; NULL: all-reduces do not slow devices down */
	struct psd_device_share *devices;
};

static inline const struct psd_layout *psd_estimate_layout(const struct psd_estimate *estimate)
{
	return &estimate->program->plan->layout;
}

/* ---- events, processors and devices (estimate_work.c) ---- */

enum psd_status psd_estimate_out_of_memory(struct psd_error *err);
/* Adds an event at time at_sec. Events at the same time keep the order in which they were added. */
void psd_estimate_push(struct psd_estimate *estimate, double at_sec, uint64_t tag);
enum psd_status psd_estimate_open_work(struct psd_estimate *estimate, struct psd_error *err) PSD_MUST_CHECK;
/* Sets processors and devices to the begin of a run. */
void psd_estimate_begin_work(struct psd_estimate *estimate);
void psd_estimate_close_work(struct psd_estimate *estimate);
/* Starts an operation's work; called as psd_seam.work. */
void psd_estimate_work(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);
/* Called at an event of a class's resource. True if the work on the resource has ended; false: it was slowed down, or
 * the device is emulated and waits, and goes on. */
bool psd_estimate_work_ends(struct psd_estimate *estimate, unsigned class, enum psd_resource resource);
/* Records that an all-reduce begins to run beside the work of a class's device (is_beside true), or ends (false). */
void psd_estimate_set_beside(struct psd_estimate *estimate, unsigned class, bool is_beside);
/* Begins processor work of a class. An event with this tag reports its end. sec: seconds of one core; most_cores:
 * largest number of cores that the work can use. */
void psd_estimate_process(struct psd_estimate *estimate, unsigned class, double sec, double most_cores, uint64_t tag);
/* Returns the processor work of one host that sends, or receives, n_messages messages with `bytes` bytes in total.
 * is_near: the messages stay inside a node. */
struct psd_socket_work psd_estimate_socket_work(const struct psd_estimate *estimate, double bytes, double n_messages,
						bool is_near);
/* Returns the pool in which some work ends first. *next_sec: time of that end; infinity: no pool has work. */
struct psd_pool *psd_estimate_first_pool(struct psd_estimate *estimate, double *next_sec);

/* ---- messages (estimate_messages.c) ---- */

enum psd_status psd_estimate_open_messages(struct psd_estimate *estimate, struct psd_error *err) PSD_MUST_CHECK;
/* Sets messages and ports to the begin of a run, at the plan's present rates. */
void psd_estimate_begin_messages(struct psd_estimate *estimate);
void psd_estimate_close_messages(struct psd_estimate *estimate);
/* Starts the messages of a send operation on class `from`, and returns true if there are any; called as
 * psd_seam.send. */
bool psd_estimate_send(void *context, unsigned from, struct psd_task task);
/* Returns the time at which the next flow ends, seconds. Flows that begin and end at one moment share the ports once:
 * infinity while other work, due at due_sec, is to be done at this moment and may begin more of them. */
double psd_estimate_flow_end_sec(struct psd_estimate *estimate, double due_sec);
/* Ends the flows that have no bits left at now_sec. */
void psd_estimate_end_flows(struct psd_estimate *estimate);
void psd_estimate_end_message_part(struct psd_estimate *estimate, size_t path);

/* ---- collectives (estimate_collectives.c) ---- */

enum psd_status psd_estimate_open_collectives(struct psd_estimate *estimate, struct psd_error *err) PSD_MUST_CHECK;
void psd_estimate_close_collectives(struct psd_estimate *estimate);
/* Starts a collective; called as psd_seam.collective. */
void psd_estimate_collective(void *context, struct psd_task task);
void psd_estimate_end_collective_part(struct psd_estimate *estimate, unsigned first);
void psd_estimate_end_collective(struct psd_estimate *estimate, struct psd_task task);

#endif
