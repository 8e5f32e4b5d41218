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

/* Kinds of event. An event's tag has its kind and the numbers that the comment lists. */
enum psd_estimate_event {
	PSD_ESTIMATE_FINISHED, /* an operation has ended; tag: class, resource */
	PSD_ESTIMATE_ARRIVED,  /* a message has arrived; tag: class, task */
	/* the sender or the receiver of a path has finished its processor work for messages; tag: path */
	PSD_ESTIMATE_MESSAGE_PART,
	/* one part of a collective (bytes, or one member's processor work) has ended; tag: the collective's first
	 * class */
	PSD_ESTIMATE_COLLECTIVE_PART,
	PSD_ESTIMATE_COLLECTIVE, /* a collective has ended; tag: task */
};

struct psd_estimate_collective {
	struct psd_task task;
	/* number of parts that have not ended: bytes on the network, and processor work of each member */
	unsigned n_parts_left;
	double delay_sec; /* seconds that latencies of the steps add after the last part has ended */
};

/* Processor work of one host for the messages of a collective. */
struct psd_estimate_ends {
	struct psd_socket_work sent, received;
};

/* Share of one class in the processor cores, where the scenario sets `cluster.machine`. */
struct psd_estimate_share {
	unsigned pool;	   /* index of the pool of cores that the class uses */
	double copies;	   /* number of the class's members that share the pool */
	bool shares_cores; /* other hosts use the same pool */
};

struct psd_estimate {
	const struct psd_program *program;
	struct psd_interpreter interpreter;
	struct psd_classes classes;
	double now_sec;
	/* number of events so far, and the number at which the estimate stops with an error */
	uint64_t n_events, most_events;
	bool is_out_of_memory;
	struct psd_heap events;
	uint64_t next_seq;

	/* Messages. */
	struct psd_fluid_flow *flows; /* flow of each path; a class sends one operation at a time */
	unsigned n_flows, flows_room;
	struct psd_fluid_port *ports; /* ports of each class, one pair (out, in) for each kind of link */
	double flows_at_sec;	      /* time at which the flows' left_bits were last updated, seconds */
	double flow_end_sec;	      /* time at which the next flow ends, seconds; infinity: there are no flows */
	/* per path: number of parts that have not ended: bytes, and processor work at both ends */
	unsigned *n_parts_left;
	unsigned *n_flows_left;	  /* per class: number of its flows that have not ended */
	struct psd_task *sending; /* per class: send operation under way */

	/* Collectives. */
	struct psd_prices *prices; /* cache of transfer times: the caller's, or own_prices */
	struct psd_prices own_prices;
	struct psd_estimate_collective *collectives; /* running collectives; entry c: the one whose first class is c */
	/* scratch memory: processor work of each host for a collective that begins */
	struct psd_estimate_ends *ends;

	/* Processors and devices. */
	struct psd_pool *pools; /* pools of processor cores; NULL: the scenario does not set `cluster.machine` */
	unsigned n_pools;
	struct psd_estimate_share *shares; /* shares of the pools, one entry per class */
	/* devices, one entry per class; NULL: all-reduces do not slow devices down */
	struct psd_device_share *devices;
};

static inline const struct psd_layout *psd_estimate_layout(const struct psd_estimate *estimate)
{
	return &estimate->program->plan->layout;
}

/* ---- events, processors and devices (estimate_work.c) ---- */

enum psd_status psd_estimate_out_of_memory(struct psd_error *err);
/* Adds an event; events at equal times keep their order of creation. */
void psd_estimate_push(struct psd_estimate *estimate, double at_sec, uint64_t tag);
enum psd_status psd_estimate_open_work(struct psd_estimate *estimate, struct psd_error *err) PSD_MUST_CHECK;
void psd_estimate_close_work(struct psd_estimate *estimate);
/* Starts an operation's work; called as psd_seam.work. */
void psd_estimate_work(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);
/* True if the work on a class's resource has ended; called when an event says so. */
bool psd_estimate_work_ends(struct psd_estimate *estimate, unsigned class, enum psd_resource resource);
/* Records that an all-reduce begins (is_beside true) or ends (false) to run on a class's device. */
void psd_estimate_set_beside(struct psd_estimate *estimate, unsigned class, bool is_beside);
/* Begins work on a class's processor cores; its end causes an event with this tag. sec: seconds that one core needs;
 * most_cores: largest number of cores that it can use. */
void psd_estimate_process(struct psd_estimate *estimate, unsigned class, double sec, double most_cores, uint64_t tag);
/* Returns the processor work of one host that sends or receives n_messages messages with `bytes` bytes together.
 * is_near: the messages stay inside a node. */
struct psd_socket_work psd_estimate_socket_work(const struct psd_estimate *estimate, double bytes, double n_messages,
						bool is_near);
/* Returns the pool whose work ends first. *next_sec: time of that end; infinity: no pool has work. */
struct psd_pool *psd_estimate_first_pool(struct psd_estimate *estimate, double *next_sec);

/* ---- messages (estimate_messages.c) ---- */

enum psd_status psd_estimate_open_messages(struct psd_estimate *estimate, struct psd_error *err) PSD_MUST_CHECK;
void psd_estimate_close_messages(struct psd_estimate *estimate);
/* Starts the messages of a send operation from class `from`; called as psd_seam.send. */
bool psd_estimate_send(void *context, unsigned from, struct psd_task task);
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
