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

/* The ends of work, with the contents of their tags. */
enum psd_estimate_event {
	PSD_ESTIMATE_FINISHED,	      /* class, resource */
	PSD_ESTIMATE_ARRIVED,	      /* class, task */
	PSD_ESTIMATE_MESSAGE_PART,    /* path: one of both ends has done its messages */
	PSD_ESTIMATE_COLLECTIVE_PART, /* the collective's first class */
	PSD_ESTIMATE_COLLECTIVE,      /* task */
};

struct psd_estimate_collective {
	struct psd_task task;
	unsigned n_parts_left; /* bytes, and the work of the members' processors */
	double delay_sec;      /* delay of its steps, after the last part */
};

/* Processor work of a host for the messages of a collective. */
struct psd_estimate_ends {
	struct psd_socket_work sent, received;
};

/* The processors of a class, where the scenario has machines. */
struct psd_estimate_share {
	unsigned pool;
	double copies; /* number of the class's members in the pool */
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
	struct psd_fluid_flow *flows; /* under path; a class sends one operation at a time */
	unsigned n_flows, flows_room;
	struct psd_fluid_port *ports; /* a pair of each kind for each class, out and in */
	double flows_at_sec;	      /* time to which the flows' left_bits refer */
	double flow_end_sec;	      /* end of the first flow; infinity: none */
	unsigned *n_parts_left;	      /* for each path: bytes, and both ends */
	unsigned *n_flows_left;	      /* for each class */
	struct psd_task *sending;     /* one for each class */

	/* collectives */
	struct psd_prices *prices; /* the caller's, or own_prices */
	struct psd_prices own_prices;
	struct psd_estimate_collective *collectives; /* under path, at the number of its first class */
	struct psd_estimate_ends *ends;		     /* one for each host, for the collective that begins */

	/* processors and devices */
	struct psd_pool *pools; /* NULL: the scenario has no machines */
	unsigned n_pools;
	struct psd_estimate_share *shares; /* one for each class */
	struct psd_device_share *devices;  /* one for each class; NULL: all-reduces take no share of a device */
};

static inline const struct psd_layout *psd_estimate_layout(const struct psd_estimate *estimate)
{
	return &estimate->program->plan->layout;
}

/* ---- events, processors and devices (estimate_work.c) ---- */

enum psd_status psd_estimate_out_of_memory(struct psd_error *err);
/* Adds an event; events of equal times keep their order of creation. */
void psd_estimate_push(struct psd_estimate *estimate, double at_sec, uint64_t tag);
enum psd_status psd_estimate_open_work(struct psd_estimate *estimate, struct psd_error *err) PSD_MUST_CHECK;
void psd_estimate_close_work(struct psd_estimate *estimate);
/* The seam's function `work`. */
void psd_estimate_work(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);
/* True when a resource's work is over. */
bool psd_estimate_work_ends(struct psd_estimate *estimate, unsigned class, enum psd_resource resource);
/* Says that an all-reduce begins, or ends, to run beside the work of a class's device. */
void psd_estimate_set_beside(struct psd_estimate *estimate, unsigned class, bool is_beside);
/* Begins work on a class's processors; its end is an event with this tag. */
void psd_estimate_process(struct psd_estimate *estimate, unsigned class, double sec, double most_cores, uint64_t tag);
/* Processor work at one end of messages. */
struct psd_socket_work psd_estimate_socket_work(const struct psd_estimate *estimate, double bytes, double n_messages,
						bool is_near);
/* Returns the pool whose work ends first. *next_sec: time of that; infinity: none has work. */
struct psd_pool *psd_estimate_first_pool(struct psd_estimate *estimate, double *next_sec);

/* ---- messages (estimate_messages.c) ---- */

enum psd_status psd_estimate_open_messages(struct psd_estimate *estimate, struct psd_error *err) PSD_MUST_CHECK;
void psd_estimate_close_messages(struct psd_estimate *estimate);
/* The seam's function `send`. */
bool psd_estimate_send(void *context, unsigned from, struct psd_task task);
/* Ends the flows that are done by now. */
void psd_estimate_end_flows(struct psd_estimate *estimate);
void psd_estimate_end_message_part(struct psd_estimate *estimate, size_t path);

/* ---- collectives (estimate_collectives.c) ---- */

enum psd_status psd_estimate_open_collectives(struct psd_estimate *estimate, struct psd_error *err) PSD_MUST_CHECK;
void psd_estimate_close_collectives(struct psd_estimate *estimate);
/* The seam's function `collective`. */
void psd_estimate_collective(void *context, struct psd_task task);
void psd_estimate_end_collective_part(struct psd_estimate *estimate, unsigned first);
void psd_estimate_end_collective(struct psd_estimate *estimate, struct psd_task task);

#endif
