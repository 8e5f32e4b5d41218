/* The estimate's state and the functions between its files. Private to engine/estimate/. */
#ifndef PSD_ESTIMATE_PARTS_H
#define PSD_ESTIMATE_PARTS_H

#include "engine/base/heap.h"
#include "engine/collectives/fluid.h"
#include "engine/cost/prices.h"
#include "engine/estimate/classes.h"
#include "engine/estimate/device_share.h"
#include "engine/estimate/pool.h"
#include "engine/program/interpreter.h"

/* Ends of work. The comments list the contents of their tags. */
enum psd_estimate_event {
	PSD_ESTIMATE_FINISHED,	      /* an operation has ended; tag: class, resource */
	PSD_ESTIMATE_ARRIVED,	      /* a message has arrived; tag: class, task */
	PSD_ESTIMATE_MESSAGE_PART,    /* one end of a path has done its processor work for messages; tag: path */
	PSD_ESTIMATE_COLLECTIVE_PART, /* one part of a collective is over; tag: the collective's first class */
	PSD_ESTIMATE_COLLECTIVE,      /* a collective is over; tag: task */
};

struct psd_estimate_collective {
	struct psd_task task;
	unsigned n_parts_left; /* number of parts not over: bytes on the network, and processor work of each member */
	double delay_sec;      /* delay by its steps, added after the last part */
};

/* Processor work of one host for the messages of a collective. */
struct psd_estimate_ends {
	struct psd_socket_work sent, received;
};

/* Share of one class in the processors, where the scenario has machines. */
struct psd_estimate_share {
	unsigned pool;
	double copies; /* number of the class's members that share the pool */
	bool shares_cores;
};

struct psd_estimate {
	const struct psd_program *program;
	struct psd_interpreter interpreter;
	struct psd_classes classes;
	double now_sec;
	uint64_t n_events, most_events;
	bool is_out_of_memory;
	struct psd_heap events;
	uint64_t next_seq;

	/* Messages. */
	struct psd_fluid_flow *flows; /* flow of each path; a class sends one operation at a time */
	unsigned n_flows, flows_room;
	struct psd_fluid_port *ports; /* ports of each class, one pair (out, in) for each kind of link */
	double flows_at_sec;	      /* time for which the flows' left_bits are valid */
	double flow_end_sec;	      /* time at which the first flow ends; infinity: no flows */
	unsigned *n_parts_left;	      /* per path: number of parts not over: bytes, and work at both ends */
	unsigned *n_flows_left;	      /* per class: number of its flows that are not over */
	struct psd_task *sending;     /* per class: task that it sends */

	/* Collectives. */
	struct psd_prices *prices; /* cache of prices: the caller's, or own_prices */
	struct psd_prices own_prices;
	struct psd_estimate_collective *collectives; /* running collectives; entry c: the one whose first class is c */
	struct psd_estimate_ends *ends;		     /* processor work of each host for the collective that begins */

	/* Processors and devices. */
	struct psd_pool *pools; /* pools of cores; NULL: the scenario has no machines */
	unsigned n_pools;
	struct psd_estimate_share *shares; /* shares of the pools, one entry per class */
	struct psd_device_share *devices;  /* devices, one entry per class; NULL: all-reduces take no share of them */
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
/* True if the work on a class's resource is over. */
bool psd_estimate_work_ends(struct psd_estimate *estimate, unsigned class, enum psd_resource resource);
/* Records that an all-reduce begins, or ends, to run beside the work of a class's device. */
void psd_estimate_set_beside(struct psd_estimate *estimate, unsigned class, bool is_beside);
/* Begins work on a class's processors; its end is an event with this tag. sec: seconds of one core. */
void psd_estimate_process(struct psd_estimate *estimate, unsigned class, double sec, double most_cores, uint64_t tag);
/* Processor work at one end of n_messages messages with `bytes` bytes in all; is_near: inside a node. */
struct psd_socket_work psd_estimate_socket_work(const struct psd_estimate *estimate, double bytes, double n_messages,
						bool is_near);
/* Returns the pool whose work ends first. *next_sec: time of that end; infinity: no pool has work. */
struct psd_pool *psd_estimate_first_pool(struct psd_estimate *estimate, double *next_sec);

/* ---- messages (estimate_messages.c) ---- */

enum psd_status psd_estimate_open_messages(struct psd_estimate *estimate, struct psd_error *err) PSD_MUST_CHECK;
void psd_estimate_close_messages(struct psd_estimate *estimate);
/* Starts a class's messages of a send; called as psd_seam.send. */
bool psd_estimate_send(void *context, unsigned from, struct psd_task task);
/* Ends the flows that have no bits left by now. */
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
