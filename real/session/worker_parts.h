/* Shared parts of a worker. Private to real/session/. The event loop's thread owns everything; a job touches tensors
 * and its own struct psd_job only, and the program's order separates jobs. No other job runs during a pause's job,
 * which also reads scales and chunk selection.
 * Functions psd_worker_open_...() without a comment return PSD_ENOMEM when memory runs out. */
#ifndef PSD_REAL_WORKER_PARTS_H
#define PSD_REAL_WORKER_PARTS_H

#include <stdatomic.h>

#include "engine/base/arena.h"
#include "engine/program/interpreter.h"
#include "real/base/lane.h"
#include "real/base/machine.h"
#include "real/data/feed.h"
#include "real/device/device.h"
#include "real/library/library.h"
#include "real/net/connections.h"
#include "real/net/emulated.h"
#include "real/net/wire.h"
#include "real/session/chunk_selection.h"
#include "real/session/pulse.h"
#include "real/session/repeated_memory.h"
#include "real/session/scale.h"
#include "real/session/worker.h"

struct psd_job {
	struct psd_worker *worker;
	struct psd_task task;
	enum psd_status status;
	struct psd_error err;
	uint64_t first_mark, mark; /* asynchronous device: marks before and behind its work */
	double queued_sec;	   /* time at which the lane got it (psd_socket_now_sec()) */
	double start_sec;	   /* asynchronous device: start by its duration */
	double sec;
	double busy_sec; /* time in the thread or device; all of it if several threads compute */
	double cpu_sec;	 /* processor time of the thread */
	bool is_marked;
	bool is_done_at_once; /* executed by the loop's thread; told to the interpreter when that has returned */
	/* Belongs to the pause before the task's iteration, to no operation (worker_pause.c). */
	bool is_pause;
	bool is_test;			    /* a test; otherwise a checkpoint */
	uint64_t test_labels, test_correct; /* 0: not tested */
};

/* Jobs of a resource, oldest first. */
struct psd_jobs {
	struct psd_job jobs[PSD_LANE_JOBS];
	uint64_t n_queued, n_over;
	struct psd_lane lane;
	bool has_lane;
	double over_sec; /* end of the last one */
};

/* Metadata of the checkpoint that the run resumes from; zeros if none. */
struct psd_saved {
	uint64_t run_hash;   /* hash of the terms of all runs before */
	uint64_t terms_hash; /* hash of the last run's terms */
};

/* Tests and checkpoints between iterations, and progress reports, made once an iteration's losses and test are there
 * (worker_pause.c). */
struct psd_pauses {
	double *sec;	   /* per iteration: delay by the pause before it; the last entry: pause at the end */
	bool is_under_way; /* the lane has its job */
	bool is_test_over; /* the checkpoint of the same pause is next */
	bool has_progress, has_result; /* all losses are there; the test is there, or not due */
	struct psd_progress progress;
	double start_sec; /* time at which the tested parameters were there */
	uint64_t labels, correct;
};

/* Local steps that follow the loss. All hosts know the steps, only worker 0 the losses (worker_local.c). */
struct psd_quality {
	uint32_t steps[2];	  /* for even and odd windows; 0: as in the plan */
	uint32_t n_known;	  /* windows with known steps */
	uint32_t received_steps;  /* steps received for the next window, valid from its fence on; 0: none */
	uint32_t n_losses_known;  /* iterations with known losses */
	uint32_t first_iteration; /* iteration of the first loss */
	double first_loss, lowest_loss;
	double sum; /* sum of n losses since the last decision */
	uint32_t n;
	double *saved; /* these values in a checkpoint; NULL: steps do not change */
};

/* Replay: timer of an operation, or of the stack before a message. Seconds of psd_worker_now(). */
struct psd_timer {
	bool is_set;
	struct psd_task task;
	double start_sec, due_sec;
};

struct psd_timers {
	struct psd_timer each[PSD_RESOURCES];
	const struct psd_timer *firing; /* the one that fires now, or NULL */
	double *late_sec;		/* per iteration: the largest lateness */
};

/* Load of this worker on its machine (worker_load.c). */
struct psd_load {
	double jobs_cpu_sec; /* sum over finished jobs */
	double *beside_sec;  /* per iteration, at its start: time beside jobs so far */
	uint32_t n_watched;  /* iterations that have begun */
	bool is_watched, has_machine_from;
	double own_from_sec, process_from_sec; /* values at the first measured iteration */
	struct psd_machine_time machine_from;
};

/* Liveness of this worker and the others (worker_stalls.c). First field by psd_worker_now(), others by
 * psd_socket_now_sec(). */
struct psd_liveness {
	double last_move_sec;
	double turned_sec;
	double awake_sec;    /* first turn after this process was suspended */
	double alive_sec;    /* last heartbeat sent */
	double busy_sec;     /* last heartbeat of a peer that executes something else than a library's sum */
	double doubt_sec;    /* at the end: when a peer was lost that had not said that it is done; 0: none */
	double *longest_sec; /* per operation: longest job; 0: none */
};

/* Parts of the work that has no operation: a batch of a test, a tensor of a checkpoint, a part of the start. Times by
 * psd_socket_now_sec(); the device lane's thread writes. */
struct psd_parts_done {
	_Atomic double moved_sec;	 /* end of the last one */
	_Atomic double longest_test_sec; /* longest batch; 0: none */
	_Atomic double longest_save_sec; /* longest part of a checkpoint */
};

/* Samples on their way to a device with memory of its own. Only the device lane's thread uses it. */
struct psd_sample_copies {
	bool is_ahead;	   /* the next iteration's copy has begun */
	uint64_t marks[2]; /* marks behind the samples of even and odd iterations */
};

/* Losses reported by workers; on worker 0, except n_own (worker_messages.c). */
struct psd_losses {
	uint32_t n_own;			 /* iterations reported by this worker */
	uint32_t window;		 /* iterations that may be incomplete at a time */
	struct psd_wire_report *reports; /* window rows of one report per worker */
	uint32_t *n_reports;
	double last;
};

/* Progress of a step-by-step transfer. */
struct psd_transfer {
	struct psd_task task;
	bool is_active;
	bool is_waiting; /* replay: waits for a timer before it begins */
	bool is_sending;
	bool has_left;	 /* a step was sent since the loop last looked: held messages may be acceptable */
	bool has_staged; /* the next step's message is there, but the memory to add it to is still being sent */
	unsigned n_steps;
	unsigned next_send, next_receive;
};

/* Expected messages of one operation from a peer. */
struct psd_expected {
	uint32_t next_iteration; /* iteration of its next message */
	uint32_t next_signal;	 /* iteration of its next READY or BEGIN; for oneself: of the next READY sent */
	double start_sec;	 /* time at which its arrival began; 0: it has not */
};

struct psd_peer {
	struct psd_expected *ops; /* one per operation */
	uint8_t small[PSD_WIRE_SMALL_BYTES];
	bool is_done; /* it has executed and saved everything */
	bool has_sent_bye;
	struct psd_wire_bye bye;
};

/* State of a library's sum, shared by the lane's thread and the thread that closes the session. */
enum psd_sum_state {
	PSD_SUM_NONE,
	PSD_SUM_UNDER_WAY, /* the library executes it */
	PSD_SUM_LEFT,	   /* the session is closed: none begins, a current one never returns */
};

enum psd_worker_phase {
	PSD_PHASE_OPENING,
	PSD_PHASE_GOING,   /* operations execute */
	PSD_PHASE_PARTING, /* this host is done, and waits until all are */
	PSD_PHASE_LEAVING, /* all are done, and each says so to the others */
	PSD_PHASE_OVER,
};

struct psd_worker {
	struct psd_arena arena; /* owns all tables here */
	const struct psd_worker_options *options;
	const struct psd_program *program;
	const struct psd_plan *plan;
	const struct psd_layout *layout;
	const struct psd_graph *graph;
	const struct psd_device_kind *kind; /* its device's */
	unsigned self, n_hosts;
	unsigned n_connections;		 /* between two hosts */
	const struct psd_replay *replay; /* NULL: computes */
	bool is_beside_others;		 /* a replay with real workers */
	double dilation_ratio;		 /* machine seconds per second of this worker's clock */
	double start_sec;		 /* machine clock */
	double clock_offset_sec;	 /* clock of the trace minus this host's clock */
	enum psd_worker_phase phase;

	struct psd_memory memory; /* this host's */
	struct psd_memory apart;  /* a device's own */
	/* The device's memory: one of the two. */
	const struct psd_memory *on_device;
	struct psd_device *device;
	bool has_device;
	void *staging; /* host memory for copies of a checkpoint, from the device; NULL: not needed so far */
	/* Per iteration under way: gradients in the device's memory, NULL for rebuilt ones. */
	float **computed_gradients;
	struct psd_scale *scales;     /* workers': per slice of each item */
	struct psd_scale *sum_scales; /* the summing shard's or root's */
	struct psd_chunk_selection
		selection;	      /* for a sparse plan; zeros if all hosts replay: they send the expected amount */
	struct psd_chunks *chunks;    /* per item: arguments for the device */
	struct psd_packing *packings; /* per item: arguments for compression; NULL: none */
	struct psd_low_rank_work *low_rank; /* NULL: the plan has no low-rank items */
	struct psd_clip clip;		    /* clipping by the device, if the plan has it */
	double *squares;		    /* per tensor of the plan, for the norm */
	struct psd_feed *feed;		    /* NULL: a server */
	struct psd_sample_copies sample_copies;
	uint64_t global_batch;

	struct psd_duties duties;
	struct psd_interpreter interpreter;
	int wake_fd;
	struct psd_jobs jobs[PSD_RESOURCES];
	struct psd_timers timers;
	struct psd_repeated_memory repeated; /* replay: memory of all messages */
	struct psd_repeated_memory zeros;    /* replay beside real workers: zeros to send, never written */
	struct psd_load load;
	struct psd_liveness liveness;
	struct psd_parts_done parts_done;
	struct psd_job opening; /* the start, in the device's lane */
	bool is_stuck; /* a job here does not end: its thread, and all that it uses, stay until the process ends */
	bool is_over[PSD_RESOURCES]; /* to be told to the interpreter */
	double *last_sec;	     /* per operation: last wall time of its layers; 0: none */

	struct psd_mesh_clock clock;
	struct psd_connections *connections;
	struct psd_emulated *emulated; /* NULL: not emulated */
	struct psd_peer *peers;
	unsigned n_leaving;  /* messages of the current send that the kernel has not taken */
	bool is_coordinated; /* worker 0 decides which collective is next */
	struct psd_transfer transfer;
	const struct psd_library_kind *library_kind; /* library for collectives, or NULL */
	struct psd_library *library;
	_Atomic(enum psd_sum_state) sum_state;
	bool brings_back;		     /* the library inside nodes is to broadcast the ring's result */
	uint64_t sent_bytes, received_bytes; /* payload to and from other nodes in measured iterations */

	struct psd_losses losses;
	struct psd_quality quality;
	struct psd_worker_result result; /* valid once it parts */
	struct psd_pauses pauses;
	struct psd_saved saved;

	enum psd_status status; /* error of a callback that cannot return it */
	struct psd_error *err;
	bool is_blamed;		/* the error names the host at fault, so others pass it on unchanged */
	bool are_all_done;	/* all hosts are: one has said so in its BYE, or each for itself */
	struct psd_error doubt; /* see liveness.doubt_sec */
};

/* Current time for psd_seam.now; context is the worker. While a timer fires: the time it was due, so that lateness does
 * not add up. */
double psd_worker_now(void *context);
/* Bytes of the program's message; a replay may send a share of it. */
uint64_t psd_worker_message_bytes(const struct psd_worker *worker, const struct psd_wire_head *head, unsigned from,
				  unsigned to);
/* Payload of a send or collective in an iteration: as in the program, or the selected chunks of a sparse plan. */
struct psd_payload psd_worker_carried(const struct psd_worker *worker, struct psd_task task);
/* Payload as really sent: a replay may send a share. */
struct psd_payload psd_worker_payload(const struct psd_worker *worker, struct psd_task task);
/* True while the chunk selection for the task is missing. */
bool psd_worker_awaits_choice(const struct psd_worker *worker, struct psd_task task);

/* ---- worker_join.c ---- */

/* Connects to all hosts and opens the connections. PSD_ERUN: a host is missing, has gone, or does not fit. */
enum psd_status psd_worker_join(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_loop.c ---- */

enum psd_status psd_worker_out_of_memory(struct psd_error *err);
/* Starts all operations that wait for nothing. When one ends at once, starts those that waited for it, too. */
enum psd_status psd_worker_begin(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Waits for an event, within_sec and half a second at most, and handles it. PSD_ERUN: a host is stalled. */
enum psd_status psd_worker_turn(struct psd_worker *worker, double within_sec, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_open.c ---- */

/* Prepares lanes, device, memory, data and network, in the device lane's thread where that computes. */
enum psd_status psd_worker_open_training(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Copies the final parameters from a device with its own memory. */
enum psd_status psd_worker_fetch_parameters(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_tasks.c ---- */

/* psd_seam.work */
void psd_worker_work(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);
/* True if the operation's update is skipped. Slices are applied together: one overflow skips all of them. */
bool psd_worker_skips(const struct psd_worker *worker, const struct psd_op *op);
/* Second stage of a lane (struct psd_job) with an asynchronous device: waits for its end. */
void psd_worker_finish_job(void *context);
/* Lane of an operation: its resource's, or the device's for work there beside the layers. */
enum psd_resource psd_worker_lane(const struct psd_worker *worker, const struct psd_op *op);
/* Oldest unfinished job of a lane; a finished one when there is none. */
struct psd_job *psd_worker_job(struct psd_worker *worker, enum psd_resource lane);
/* Executes forward or backward of layers on the current batch, in the device lane's thread. As the device. */
enum psd_status psd_worker_pass(struct psd_worker *worker, struct psd_pass pass, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_copies.c ---- */

/* Begins a copy between the memories of device and host, on the stream of its direction. */
enum psd_status psd_worker_copy(struct psd_worker *worker, struct psd_task task, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_encoding.c ---- */

enum psd_status psd_worker_open_encoding(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Length of scales and of sum_scales: the slices of all items. */
unsigned psd_worker_count_scales(const struct psd_worker *worker);
/* Loss scale of the operation's slice, as kept by its executor. */
struct psd_scale *psd_worker_scale(const struct psd_worker *worker, const struct psd_op *op);
/* Adds up the counts of this worker's scales; a replay has none. */
void psd_worker_count_updates(const struct psd_worker *worker, struct psd_worker_result *result);
/* Range of the item that is sent or received in the operation's slice. */
struct psd_range psd_worker_range(const struct psd_worker *worker, const struct psd_op *op);
/* Encodes or decodes between the operation's two buffers; in a lane's thread, as the next. */
enum psd_status psd_worker_convert(struct psd_worker *worker, struct psd_task task,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Looks for overflows in received values while in host memory: before a copy to a device, or while decoding. */
void psd_worker_judge_arrival(struct psd_worker *worker, struct psd_task task);

/* ---- worker_clip.c ---- */

/* PSD_ENOMEM; statuses of the device. */
enum psd_status psd_worker_open_clip(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Begin to compute the squares of the operation's gradients, and the common factor. */
enum psd_status psd_worker_measure_gradient(struct psd_worker *worker, struct psd_task task,
					    struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_worker_find_clip(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_reduce.c ---- */

/* Adds the gradients of the node's other workers to the leader's own, for a slice; in a lane's thread. PSD_ENOMEM. */
enum psd_status psd_worker_sum_node(struct psd_worker *worker, struct psd_task task,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Sums the workers' gradients of this shard's part of a slice and updates parameters; in a lane's thread.
 * PSD_ENOMEM. */
enum psd_status psd_worker_reduce(struct psd_worker *worker, struct psd_task task,
				  struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_local.c ---- */

/* Local step of an item; begins or ends a drift if the iteration does. In a lane's thread, as the next two. As the
 * device. */
enum psd_status psd_worker_step_alone(struct psd_worker *worker, struct psd_task task,
				      struct psd_error *err) PSD_MUST_CHECK;
/* Sets parameters to the start plus the workers' mean drift. As the device. */
enum psd_status psd_worker_join_steps(struct psd_worker *worker, struct psd_task task,
				      struct psd_error *err) PSD_MUST_CHECK;
/* The start of a shard's part of a slice; NULL: the part itself. A worker's may be among its parameters. */
const float *psd_worker_own_start(const struct psd_worker *worker, struct psd_task task);

enum psd_status psd_worker_open_local(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* True if local steps follow the loss; not in a replay. */
bool psd_worker_follows_loss(const struct psd_worker *worker);
/* Iteration that must not begin before another window's steps are known; UINT64_MAX: none. */
uint64_t psd_worker_next_steps(const struct psd_worker *worker);
/* True at the fence before that iteration if its steps, or data that goes with them, are missing. */
bool psd_worker_awaits_steps(const struct psd_worker *worker, uint32_t iteration);
/* On worker 0: takes the loss of an iteration over all workers. */
void psd_worker_follow_loss(struct psd_worker *worker, uint32_t iteration, double loss);
/* True if the window has steps. */
bool psd_worker_knows_steps(const struct psd_worker *worker, uint32_t iteration);
/* Receives the steps of the next window, valid from its fence on. */
void psd_worker_receive_steps(struct psd_worker *worker, uint32_t steps);
/* At the fence before that iteration, when no steps are missing: sets the next window's if decided here. */
void psd_worker_take_steps(struct psd_worker *worker, uint32_t iteration);
/* Number of values in quality.saved for a checkpoint; the next two fill and read them. PSD_EINVAL: those of the file at
 * `path` do not fit this run. */
unsigned psd_worker_quality_values(const struct psd_worker *worker);
void psd_worker_save_quality(struct psd_worker *worker);
enum psd_status psd_worker_restore_quality(struct psd_worker *worker, const char *path,
					   struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_packed.c ---- */

enum psd_status psd_worker_open_packings(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Compresses a gradient to be sent; in a lane's thread, as the next two. */
enum psd_status psd_worker_pack(struct psd_worker *worker, struct psd_task task, struct psd_error *err) PSD_MUST_CHECK;
/* Decompresses the sum into the gradient. */
enum psd_status psd_worker_unpack(struct psd_worker *worker, struct psd_task task,
				  struct psd_error *err) PSD_MUST_CHECK;
/* On a shard: sums all workers' compressed gradients of its part, and compresses the sum. */
void psd_worker_repack(struct psd_worker *worker, struct psd_task task);

/* ---- worker_low_rank.c ---- */

enum psd_status psd_worker_open_low_rank(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Computes the left low-rank factors of a gradient; in a lane's thread, as the next two. */
enum psd_status psd_worker_project(struct psd_worker *worker, struct psd_task task,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Makes a basis of their sums, and computes the right factors. */
enum psd_status psd_worker_fit(struct psd_worker *worker, struct psd_task task, struct psd_error *err) PSD_MUST_CHECK;
/* Multiplies the summed factors into the gradient. */
enum psd_status psd_worker_expand(struct psd_worker *worker, struct psd_task task,
				  struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_sparse.c ---- */

enum psd_status psd_worker_open_chunks(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Copies the selected chunks of a gradient for sending; in a lane's thread, as the next two. */
enum psd_status psd_worker_gather_chunks(struct psd_worker *worker, struct psd_task task,
					 struct psd_error *err) PSD_MUST_CHECK;
/* Updates the selected elements with their sums. */
enum psd_status psd_worker_apply_chunks(struct psd_worker *worker, struct psd_task task,
					struct psd_error *err) PSD_MUST_CHECK;
/* All workers' norms are there: prepares the next selection. */
void psd_worker_choose_chunks(struct psd_worker *worker, struct psd_task task);
/* Random selection for a replay with real workers, the same on all hosts. */
void psd_worker_draw_chunks(struct psd_worker *worker);

/* ---- worker_replay.c ---- */

enum psd_status psd_worker_open_replay(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Memory of the messages that it sends or receives. A real worker gets zeros: NaNs or denormals would change its
 * work. */
void *psd_worker_replayed_bytes(const struct psd_worker *worker, bool is_sent);
/* Advances the chunk selection where no operation of this replay does. */
void psd_worker_keep_up(struct psd_worker *worker, struct psd_task task);
/* psd_seam.work: takes the predicted time. */
void psd_worker_replay(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);
/* Keeps the task's resource busy for sec from now on; one timer per resource. */
void psd_worker_set_timer(struct psd_worker *worker, enum psd_resource resource, struct psd_task task, double sec);
/* Handles the first due timer; returns false if none is due. */
bool psd_worker_take_timer(struct psd_worker *worker);
bool psd_worker_has_timer(const struct psd_worker *worker);
/* Ends the loop's next turn when a timer is due. */
void psd_worker_await_timer(struct psd_worker *worker);

/* ---- worker_load.c ---- */

/* Something of this iteration is about to begin: records the processor time so far. */
void psd_worker_watch_load(struct psd_worker *worker, uint32_t iteration);
void psd_worker_measure_load(struct psd_worker *worker, struct psd_worker_result *result);

/* ---- worker_pause.c ---- */

/* All are called by the loop's thread. */

/* First iteration after `iteration` with a pause before it; 0: none. */
uint32_t psd_worker_next_pause(const struct psd_worker *worker, uint32_t iteration);
/* Samples of all workers before `iteration`, since training began. */
uint64_t psd_worker_samples(const struct psd_worker *worker, uint64_t iteration);
/* Gives the device's lane a job of the pause if the interpreter waits at its fence; passes the fence if no pause is
 * due. Returns false if nothing happened. */
bool psd_worker_pause(struct psd_worker *worker);
/* The job has ended without error: passes the fence. */
void psd_worker_go_on(struct psd_worker *worker, const struct psd_job *job);
/* All workers' losses of an iteration are there: reports progress, after its test if one is due. */
void psd_worker_report_progress(struct psd_worker *worker, const struct psd_progress *progress);

/* All run in the device lane's thread. */

/* All in the device lane's thread. */

/* Writes this host's checkpoint before `iteration`, host 0 the parameters as well. PSD_EFILE: a file cannot be created;
 * PSD_ERUN: it cannot be written; PSD_EINVAL: a tensor's name is too long; PSD_ENOMEM. */
enum psd_status psd_worker_save(struct psd_worker *worker, uint32_t iteration, struct psd_error *err) PSD_MUST_CHECK;
/* Removes later files of an earlier run, once all hosts agree on the first iteration. PSD_EFILE: it cannot. */
enum psd_status psd_worker_begin_saving(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Reads the checkpoint of options->first_iteration. PSD_EINVAL: it is damaged, or of another run; PSD_EFILE: it cannot
 * be opened; PSD_ENOMEM, PSD_ERUN as psd_state_read(). */
enum psd_status psd_worker_restore(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Reads the checkpoint of other hosts (options->from_hosts) or of another system (worker_reshape.c), with parameters
 * into this host's memory only. Host 0 names what starts anew. Statuses as before; PSD_EINVAL also for another model or
 * kind of optimiser. */
enum psd_status psd_worker_reshape(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Reads initial parameters and states from the file of train.start; host 0 names the missing ones. PSD_EINVAL: it has
 * none, or other shapes; else as psd_worker_restore(). */
enum psd_status psd_worker_read_start(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_trace.c ---- */

/* Records an operation of this host that is over; seconds of psd_worker_now(). */
void psd_worker_record(struct psd_worker *worker, struct psd_task task, double start_sec, double end_sec);
/* Record that a message begins to arrive, and that it has arrived. */
void psd_worker_record_begin(struct psd_worker *worker, unsigned peer, uint32_t op);
void psd_worker_record_arrival(struct psd_worker *worker, unsigned peer, struct psd_task task, uint64_t bytes);

/* ---- worker_messages.c ---- */

bool psd_worker_send(void *context, unsigned host, struct psd_task task); /* psd_seam.send */
void psd_worker_announce(void *context, struct psd_task task);		  /* psd_seam.announce: to worker 0 */
void psd_worker_choose(void *context, struct psd_task task);		  /* psd_seam.choose: from worker 0 */
uint32_t psd_worker_arrivals(const void *context, const struct psd_op *receive,
			     unsigned host); /* psd_arrivals_fn of the worker */
/* Sends a loss to worker 0. */
void psd_worker_report(struct psd_worker *worker, uint32_t iteration, double loss, uint32_t correct);
/* From worker 0: sends the steps of a window. */
void psd_worker_send_steps(struct psd_worker *worker, uint32_t window_number, uint32_t steps);
/* Sends heartbeats at intervals: whether a job executes here, and whether one does beside a library's sum. */
void psd_worker_send_heartbeat(struct psd_worker *worker, bool is_computing, bool is_busy);
/* Tells all peers that this host gives up, and why. */
void psd_worker_send_failure(struct psd_worker *worker, enum psd_status status, const struct psd_error *err);
/* Tells all peers that this host is done: it has executed and saved everything. */
void psd_worker_send_done(struct psd_worker *worker);
/* Tells all peers that it knows that all are done, and leaves. */
void psd_worker_send_bye(struct psd_worker *worker, const struct psd_wire_bye *bye);

/* True if both are on the same node. */
bool psd_worker_is_near(const struct psd_worker *worker, unsigned peer);
/* Segments of a send's message on this host, which is either end; returns their number. */
unsigned psd_worker_segments(const struct psd_worker *worker, struct psd_task task, unsigned from, unsigned to,
			     struct iovec segments[PSD_SEGMENTS_MAX]);
/* On worker 0: takes a worker's loss of an iteration. */
void psd_worker_take_report(struct psd_worker *worker, unsigned from, uint32_t iteration,
			    const struct psd_wire_report *report);

/* True if bytes count: to and from other nodes, in measured iterations, since traffic may differ at the start. */
bool psd_worker_is_counted(const struct psd_worker *worker, unsigned peer, uint32_t iteration);
void psd_worker_count_sent(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head);

/* ---- worker_steps.c ---- */

void psd_worker_collective(void *context, struct psd_task task); /* psd_seam.collective */
/* Begins a step-by-step transfer. */
void psd_worker_begin_transfer(struct psd_worker *worker, struct psd_task task);
/* The NIC's timer has fired. */
void psd_worker_continue(struct psd_worker *worker);
/* Sends the next step of the collective in progress, unless it must wait for a message or its sender. */
void psd_worker_advance(struct psd_worker *worker);
/* True once when the transfer has sent and received all steps. */
bool psd_worker_take_steps_done(struct psd_worker *worker);
/* The message that `rank` sends in a step, and its bytes. */
struct psd_step psd_worker_step(const struct psd_worker *worker, struct psd_task task, unsigned rank, unsigned step);
uint64_t psd_worker_step_bytes(const struct psd_worker *worker, struct psd_task task, const struct psd_step *step);
/* Destination of the message that a step receives. */
void psd_worker_step_destination(const struct psd_worker *worker, struct psd_task task, const struct psd_step *step,
				 unsigned number, struct psd_destination *destination);
/* Next step from `step` on that receives from that peer; the number of steps: none. */
unsigned psd_worker_next_from(const struct psd_worker *worker, struct psd_task task, unsigned peer, unsigned step);
/* The message of the next receiving step is there. */
void psd_worker_step_arrived(struct psd_worker *worker);

/* ---- worker_library.c ---- */

/* Opens the plan's library, if any, over connections that carry nothing else yet, until until_sec of
 * psd_socket_now_sec(). As psd_worker_check_library(); PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_worker_open_library(struct psd_worker *worker, const struct psd_mesh_options *mesh, const int fds[],
					double until_sec, struct psd_error *err) PSD_MUST_CHECK;
/* Has the NIC's lane execute a collective. */
void psd_worker_start_sum(struct psd_worker *worker, struct psd_task task);
/* The lane's job, or the transfer, is over: goes on with the collective or ends it. */
void psd_worker_summed(struct psd_worker *worker, struct psd_task task);
void psd_worker_transfer_is_over(struct psd_worker *worker, struct psd_task task);
/* Payload between leaders where a library sums inside nodes. */
struct psd_payload psd_worker_between_nodes(const struct psd_worker *worker, struct psd_payload payload);
/* Executes a collective, or its part before or after the transfer, in that lane's thread. */
enum psd_status psd_worker_sum(struct psd_worker *worker, struct psd_task task, struct psd_error *err) PSD_MUST_CHECK;
/* True if a sum executes that only other hosts can end: its thread and memory stay until the process ends. */
bool psd_worker_is_held(struct psd_worker *worker);
/* Called when the lane is closed. is_orderly: the others close theirs, too. */
void psd_worker_close_library(struct psd_worker *worker, bool is_orderly);

/* ---- worker_arrivals.c ---- */

struct psd_connections_owner psd_worker_owner(struct psd_worker *worker);

/* ---- worker_stalls.c ---- */

/* psd_connections_owner.lost */
enum psd_status psd_worker_lost(void *context, unsigned peer, int error_number, struct psd_error *err);
/* A peer gives up, with that status. */
void psd_worker_peer_failed(struct psd_worker *worker, unsigned peer, enum psd_status status);
/* True if this host and all others are done. */
bool psd_worker_are_all_done(struct psd_worker *worker);
/* A part of a test, a checkpoint or the start is over; in the device lane's thread. */
void psd_worker_moved(struct psd_worker *worker);
void psd_worker_moved_test(struct psd_worker *worker);
void psd_worker_moved_save(struct psd_worker *worker);
/* Tells the process that watches this one that it lives. */
void psd_worker_beat(struct psd_worker *worker, enum psd_pulse_place place);
/* The same before an operation in the event loop's thread, at that time. */
void psd_worker_beat_at(struct psd_worker *worker, struct psd_task task, double now_sec);
/* Waits for the start. PSD_ELOST: it stands still. */
enum psd_status psd_worker_await_opening(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Waits until no lane has a job, a library's sums apart. False: one does not end. */
bool psd_worker_await_jobs(struct psd_worker *worker);
/* PSD_ELOST: a host is stalled for longer than psd_worker_options.stall_sec; the text names it and its operation. */
enum psd_status psd_worker_check_stall(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_metrics.c ---- */

/* The measured iterations. */
struct psd_iterations psd_worker_measured(const struct psd_worker *worker);
/* This host's measurements, once all is executed. PSD_ENOMEM. */
enum psd_status psd_worker_measure(struct psd_worker *worker, struct psd_worker_result *result,
				   struct psd_error *err) PSD_MUST_CHECK;
/* The whole cluster's, once all hosts have sent BYE. */
void psd_worker_gather(struct psd_worker *worker, struct psd_worker_result *result);

#endif
