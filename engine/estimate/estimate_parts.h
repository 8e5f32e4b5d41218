/* What the estimate's parts share. Refuses to be included outside of engine/estimate/. */
#ifndef PSD_ESTIMATE_PARTS_H
#define PSD_ESTIMATE_PARTS_H

#include "engine/base/heap.h"
#include "engine/collectives/fluid.h"
#include "engine/cost/prices.h"
#include "engine/estimate/classes.h"
#include "engine/estimate/device_share.h"
#include "engine/estimate/pool.h"
#include "engine/program/interpreter.h"

/* What is over: by the clock, or on processors. */
enum psd_estimate_event {
	PSD_ESTIMATE_FINISHED,	      /* class, resource */
	PSD_ESTIMATE_ARRIVED,	      /* class, task */
	PSD_ESTIMATE_MESSAGE_PART,    /* way: one of both ends is done with its messages */
	PSD_ESTIMATE_COLLECTIVE_PART, /* its first class */
	PSD_ESTIMATE_COLLECTIVE,      /* task */
};

struct psd_estimate_collective {
	struct psd_task task;
	unsigned n_parts_left; /* bytes, and what the members' processors do for them */
	double delay_sec;      /* of its steps, behind them */
};

/* What a host does for the messages of one. */
struct psd_estimate_ends {
	struct psd_socket_work sent, received;
};

/* Where machines are given: what a class works on. */
struct psd_estimate_share {
	unsigned pool;
	double copies; /* of the class's members, those in the pool */
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

	/* messages */
	struct psd_fluid_flow *flows; /* under way; a class sends one operation at a time */
	unsigned n_flows, flows_room;
	struct psd_fluid_port *ports; /* per class a pair of each kind, out and in */
	double flows_at_sec;	      /* what the flows' left_bits refer to */
	double flow_end_sec;	      /* when the first of them ends; infinity: none */
	unsigned *n_parts_left;	      /* per way: of its messages, bytes and both ends */
	unsigned *n_flows_left;	      /* per class, of its send */
	struct psd_task *sending;     /* per class */

	/* collectives */
	struct psd_prices *prices; /* the caller's, or its own */
	struct psd_prices own_prices;
	struct psd_estimate_collective *collectives; /* per class: under way, of which it is the first */
	struct psd_estimate_ends *ends;		     /* per host, of the one that begins */

	/* processors and devices */
	struct psd_pool *pools; /* NULL unless machines are given */
	unsigned n_pools;
	struct psd_estimate_share *shares;  /* per class, of the pools */
	struct psd_device_share *yieldings; /* per class its device; NULL: all-reduces take nothing of it */
};

static inline const struct psd_layout *psd_estimate_layout(const struct psd_estimate *estimate)
{
	return &estimate->program->plan->layout;
}

enum psd_status psd_estimate_out_of_memory(struct psd_error *err);
/* Equal dates keep their order of creation. */
void psd_estimate_push(struct psd_estimate *estimate, double at_sec, uint64_t tag);

/* ---- processors and devices (estimate_work.c) ---- */

enum psd_status psd_estimate_open_work(struct psd_estimate *estimate, struct psd_error *err) PSD_MUST_CHECK;
void psd_estimate_close_work(struct psd_estimate *estimate);
/* Slot `work` of the seam. */
void psd_estimate_work(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);
/* A resource's work may be over: whether it is. */
bool psd_estimate_work_ends(struct psd_estimate *estimate, unsigned class, enum psd_resource resource);
/* An all-reduce begins to run beside the work of a class's device, or ends. */
void psd_estimate_set_beside(struct psd_estimate *estimate, unsigned class, bool is_beside);
/* Work on a class's processors; its end is the cookie's event. */
void psd_estimate_process(struct psd_estimate *estimate, unsigned class, double sec, double most_cores, uint64_t tag);
/* What one end of messages does for them. */
struct psd_socket_work psd_estimate_socket_work(const struct psd_estimate *estimate, double bytes, double n_messages,
						bool is_near);
/* The pool whose work ends first; *next_sec: when, infinity: nothing runs on any. */
struct psd_pool *psd_estimate_first_pool(struct psd_estimate *estimate, double *next_sec);

/* ---- messages (estimate_messages.c) ---- */

enum psd_status psd_estimate_open_messages(struct psd_estimate *estimate, struct psd_error *err) PSD_MUST_CHECK;
void psd_estimate_close_messages(struct psd_estimate *estimate);
/* Slot `send` of the seam. */
bool psd_estimate_send(void *context, unsigned from, struct psd_task task);
/* Ends the flows that are through by now. */
void psd_estimate_end_flows(struct psd_estimate *estimate);
void psd_estimate_end_message_part(struct psd_estimate *estimate, size_t way);

/* ---- collectives (estimate_collectives.c) ---- */

enum psd_status psd_estimate_open_collectives(struct psd_estimate *estimate, struct psd_error *err) PSD_MUST_CHECK;
void psd_estimate_close_collectives(struct psd_estimate *estimate);
/* Slot `collective` of the seam. */
void psd_estimate_collective(void *context, struct psd_task task);
void psd_estimate_end_collective_part(struct psd_estimate *estimate, unsigned first);
void psd_estimate_end_collective(struct psd_estimate *estimate, struct psd_task task);

#endif
