/* What the parts of a worker share. Private to real/worker*.c. The event loop's thread owns everything; jobs on the two lanes touch tensors and
 * their own struct psd_job only, and the program's order keeps them apart. */
#ifndef PSD_REAL_WORKER_PARTS_H
#define PSD_REAL_WORKER_PARTS_H

#include "engine/interpreter.h"
#include "engine/ring.h"
#include "real/compute.h"
#include "real/data.h"
#include "real/lane.h"
#include "real/streams.h"
#include "real/wire.h"
#include "real/worker.h"

enum {
	LOSS_WINDOW = 8,       /* iterations whose reports may be incomplete at a time; hosts are at most two apart */
	WARMUP_ITERATIONS = 2, /* not measured: first touches of memory, windows of TCP */
};

struct psd_job {
	struct psd_worker *worker;
	struct psd_task task;
	enum psd_status status;
	struct psd_error err;
	double sec;
};

struct psd_ring {
	struct psd_task task;
	bool is_active;
	bool is_sending;
	unsigned n_steps;
	unsigned n_begun; /* steps sent or being sent */
	unsigned n_received;
};

struct psd_peer {
	uint32_t *next_iteration; /* per operation: of its next message from this peer */
	uint8_t small[PSD_WIRE_SMALL_BYTES];
	bool has_said_bye;
	struct psd_wire_bye bye;
};

struct psd_worker {
	const struct psd_worker_options *options;
	const struct psd_program *program;
	const struct psd_plan *plan;
	const struct psd_layout *layout;
	const struct psd_graph *graph;
	const struct psd_compute_backend *backend;
	unsigned self, n_hosts;
	double start_sec;
	double last_move_sec;
	bool has_begun;

	struct psd_memory memory;
	struct psd_compute *compute;
	struct psd_data *data;
	float *images;
	int32_t *labels;
	uint64_t global_batch;
	unsigned end_layer; /* one after the last that forward carries out */

	struct psd_duties duties;
	struct psd_interpreter interpreter;
	int wake_fd;
	struct psd_lane device, cpu;
	bool has_device, has_cpu;
	struct psd_job jobs[PSD_RESOURCES];
	bool is_over[PSD_RESOURCES]; /* to be told to the interpreter when it has returned */
	double *compute_sec;	     /* per iteration */

	struct psd_streams *streams;
	struct psd_peer *peers;
	unsigned n_leaving; /* messages of the current send that the kernel does not have yet */
	struct psd_ring ring;
	uint64_t sent_bytes, received_bytes; /* of tensors, to and from other nodes */

	double *losses; /* LOSS_WINDOW rows of one for each worker */
	uint32_t *correct;
	uint32_t n_reports[LOSS_WINDOW];
	double last_loss;

	enum psd_status status; /* of callbacks that cannot return one */
	struct psd_error *err;
};

double psd_worker_now(void *context); /* psd_seam.now; context is the worker */

/* ---- worker_tasks.c ---- */

/* psd_seam.work */
void psd_worker_work(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);
/* Opens data and compute, in the device lane's thread. */
enum psd_status psd_worker_open_compute(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Passes all test samples that fill batches; in the device lane's thread. */
enum psd_status psd_worker_test(struct psd_worker *worker, uint64_t *samples, uint64_t *correct,
				struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_messages.c ---- */

bool psd_worker_send(void *context, unsigned host, struct psd_task task); /* psd_seam.send */
void psd_worker_collective(void *context, struct psd_task task);	  /* psd_seam.collective */
uint32_t psd_worker_arrivals(const void *context, const struct psd_op *receive,
			     unsigned host); /* psd_arrivals_fn, of the layout */
struct psd_streams_owner psd_worker_owner(struct psd_worker *worker);
/* The collective has sent and received all its steps: true once. */
bool psd_worker_take_ring_done(struct psd_worker *worker);
/* A loss, to worker 0. */
void psd_worker_report(struct psd_worker *worker, uint32_t iteration, double loss, uint32_t correct);
/* Tells all peers that this host has what it needs. */
void psd_worker_say_bye(struct psd_worker *worker, const struct psd_wire_bye *bye);
/* "worker 0 has waited 60 s for ..." */
enum psd_status psd_worker_stalled(struct psd_worker *worker, struct psd_error *err);

#endif
