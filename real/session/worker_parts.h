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
	uint64_t first_mark, mark; /* asynchronous device: marks in its stream before and behind the job's work */
	double queued_sec;	   /* time at which the lane received the job (psd_socket_now_sec()) */
	double start_sec;	   /* asynchronous device: start of the job, computed from its duration */
	double sec;
	double busy_sec; /* working time in the thread or on the device; if several threads compute, the duration */
	double cpu_sec;	 /* processor time of the thread, seconds */
	bool is_marked;
	bool is_done_at_once; /* executed at once by the loop's thread; reported to the interpreter afterwards */
	/* Belongs to the pause before the task's iteration, not to an operation (worker_pause.c). */
	bool is_pause;
	bool is_test; /* the pause's job is a test; false: it writes a checkpoint, or looks at the parameters */
	uint64_t test_labels, test_correct; /* samples tested and classified correctly; 0: not tested */
};

/* Jobs of one resource, oldest first. */
struct psd_jobs {
	struct psd_job jobs[PSD_LANE_JOBS];
	uint64_t n_queued, n_over;
	struct psd_lane lane;
	bool has_lane;
	double over_sec; /* end of the last finished job */
};

/* Metadata of the checkpoint that the run resumes from; all zeros without one. */
struct psd_saved {
	uint64_t run_hash;   /* hash of the terms of all earlier runs */
	uint64_t terms_hash; /* hash of the terms of the last run */
};

/* Pauses between iterations for tests and checkpoints, and progress reports. A report is made once an iteration's
 * losses and test are known (worker_pause.c). */
struct psd_pauses {
	double *sec;	   /* per iteration: delay by the pause before it; the last entry is the pause at the end */
	bool is_under_way; /* the lane executes the pause's job */
	bool is_test_over; /* the pause's test is over, its checkpoint is next */
	bool has_progress, has_result; /* all losses are known; the test's result is known, or no test is due */
	struct psd_progress progress;
	double start_sec; /* time at which the tested parameters were complete */
	uint64_t labels, correct;
};

/* Local steps that depend on the loss. All hosts know the steps, only worker 0 the losses (worker_local.c). */
struct psd_quality {
	uint32_t steps[2];	  /* steps of the even and of the odd window; 0: as in the plan */
	uint32_t n_known;	  /* number of windows whose steps are known */
	uint32_t received_steps;  /* steps received for the next window, which hold from its fence on; 0: none */
	uint32_t n_losses_known;  /* number of iterations whose losses are known */
	uint32_t first_iteration; /* iteration of the first known loss */
	double first_loss, lowest_loss;
	double sum; /* sum of the n losses since the last decision */
	uint32_t n;
	double *saved; /* the values above as stored in a checkpoint; NULL: steps do not change */
};

/* Timer of a replay: for an operation, or for the software's latency before a message. Seconds of psd_worker_now(). */
struct psd_timer {
	bool is_set;
	struct psd_task task;
	double start_sec, due_sec;
};

struct psd_timers {
	struct psd_timer each[PSD_RESOURCES];
	const struct psd_timer *firing; /* timer that fires now; NULL: none */
	double *late_sec;		/* per iteration: largest lateness of a timer */
};

/* Processor load of this worker and its machine (worker_load.c). */
struct psd_load {
	double jobs_cpu_sec; /* processor time of all finished jobs, seconds */
	double *beside_sec;  /* processor time outside of jobs, up to the start of each iteration */
	uint32_t n_watched;  /* number of iterations that have begun */
	bool is_watched, has_machine_from;
	double own_from_sec,
		process_from_sec; /* processor times of the thread and process at the first measured iteration */
	struct psd_machine_time machine_from;
};

/* Signs of life of this worker and the others (worker_stalls.c). The first field is in psd_worker_now(), the others in
 * psd_socket_now_sec(). */
struct psd_liveness {
	double last_move_sec;
	double turned_sec;
	double awake_sec;    /* time of the first turn after this process was suspended */
	double alive_sec;    /* time at which the last heartbeat was sent */
	double busy_sec;     /* last heartbeat of a peer that executes something else than a library's sum */
	double doubt_sec;    /* at the end: time at which a peer was lost that had not said that it is done; 0: none */
	double *longest_sec; /* duration of the longest job of each operation; 0: none yet */
};

/* Parts of the work that has no operation: a batch of a test, a tensor of a checkpoint, a part of the start. Times by
 * psd_socket_now_sec(); the device lane's thread writes. */
struct psd_parts_done {
	_Atomic double moved_sec;	 /* end of the last part */
	_Atomic double longest_test_sec; /* duration of the longest batch; 0: none */
	_Atomic double longest_save_sec; /* duration of the longest part of a checkpoint */
};

/* Copies of samples to a device with its own memory. Only the device lane's thread uses it. */
struct psd_sample_copies {
	bool is_ahead;	   /* the copy for the next iteration has begun */
	uint64_t marks[2]; /* marks in the device's stream behind the copies for even and odd iterations */
};

/* Losses that workers report. Only worker 0 has them, except n_own, which each has (worker_messages.c). */
struct psd_losses {
	uint32_t n_own;			 /* number of iterations whose loss this worker has reported */
	uint32_t window;		 /* number of iterations that may be incomplete at a time */
	struct psd_wire_report *reports; /* reports: one row per iteration of `window`, one column per worker */
	uint32_t *n_reports;
	struct psd_wire_parameters *parameters; /* one per worker, to compare them */
	uint32_t n_known;			/* iterations with all reports */
	double last;
};

/* Digest of the parameters after that many iterations. The device lane's thread sets it while no operation executes. */
struct psd_worker_look {
	uint32_t iterations;
	struct psd_wire_parameters parameters;
};

/* Progress of a collective that is executed step by step. */
struct psd_transfer {
	struct psd_task task;
	bool is_active;
	bool is_waiting; /* replay: the transfer waits for a timer before it begins */
	bool is_sending;
	bool has_left;	 /* a step was sent since the loop last looked, so held messages may be acceptable */
	bool has_staged; /* the next step's message has arrived, but the memory to add it to is still being sent */
	unsigned n_steps;
	unsigned next_send, next_receive;
};

/* Messages of one operation expected from a peer. */
struct psd_expected {
	uint32_t next_iteration; /* iteration of the operation's next message */
	uint32_t next_signal;	 /* iteration of its next READY or BEGIN; for the own host: of the next READY to send */
	double start_sec;	 /* time at which the message began to arrive; 0: it has not begun */
};

struct psd_peer {
	struct psd_expected *ops; /* expected messages, one entry per operation */
	uint8_t small[PSD_WIRE_SMALL_BYTES];
	bool is_done; /* it has executed and saved everything */
	bool has_sent_bye;
	struct psd_wire_bye bye;
};

/* State of a library's sum, shared by the lane's thread and the thread that closes the session. */
enum psd_sum_state {
	PSD_SUM_NONE,
	PSD_SUM_UNDER_WAY, /* the library executes the sum */
	PSD_SUM_LEFT,	   /* the session is closed: no sum begins, a running one never returns */
};

enum psd_worker_phase {
	PSD_PHASE_OPENING,
	PSD_PHASE_GOING,   /* the host executes operations */
	PSD_PHASE_PARTING, /* this host is done, and waits until all are */
	PSD_PHASE_LEAVING, /* all are done, and each says so to the others */
	PSD_PHASE_OVER,
};

struct psd_worker {
	struct psd_arena arena; /* owner of all tables of the worker */
	const struct psd_worker_options *options;
	const struct psd_program *program;
	const struct psd_plan *plan;
	const struct psd_layout *layout;
	const struct psd_graph *graph;
	const struct psd_device_kind *kind; /* functions of the worker's device */
	unsigned self, n_hosts;
	unsigned n_connections;		 /* number of connections between two hosts */
	const struct psd_replay *replay; /* replay instead of training; NULL: the worker computes */
	bool is_beside_others;		 /* the worker takes part in a replay with real workers */
	double dilation_ratio;		 /* seconds of this machine per second of the worker's clock */
	double start_sec;		 /* start of the worker's clock on the machine's clock */
	double clock_offset_sec;	 /* time of the trace minus time of this host's clock */
	enum psd_worker_phase phase;

	struct psd_memory memory; /* buffers on the host */
	struct psd_memory apart;  /* buffers on a device with its own memory */
	/* Buffers that the device computes with: one of the two above. */
	const struct psd_memory *on_device;
	struct psd_device *device;
	bool has_device;
	void *staging; /* host memory through which a checkpoint is copied from the device; NULL: not needed so far */
	/* Per iteration under way: gradients in the device's memory; NULL for those rebuilt from factors. */
	float **computed_gradients;
	struct psd_scale *scales;     /* loss scales of a worker's gradients, one per slice of each item */
	struct psd_scale *sum_scales; /* loss scales of the sums made by a shard or root, one per slice of each item */
	struct psd_chunk_selection selection; /* chunks of a sparse plan that are sent; zeros if all hosts replay */
	struct psd_chunks *chunks;	      /* arguments of the device's chunk functions, per item */
	struct psd_packing *packings;	    /* arguments of the device's compression, per item; NULL: no compression */
	struct psd_low_rank_work *low_rank; /* arguments of low-rank compression; NULL: the plan has none */
	struct psd_clip clip;		    /* gradient clipping on the device, if the plan has it */
	double *squares;		    /* per tensor of the plan: sum of squares for the gradient norm */
	struct psd_feed *feed;		    /* source of training samples; NULL: a server */
	struct psd_sample_copies sample_copies;
	uint64_t global_batch;

	struct psd_duties duties;
	struct psd_interpreter interpreter;
	int wake_fd;
	struct psd_jobs jobs[PSD_RESOURCES];
	struct psd_timers timers;
	struct psd_repeated_memory repeated; /* replay: memory that all messages are received into */
	struct psd_repeated_memory zeros;    /* replay with real workers: zeros to send, never written */
	struct psd_load load;
	struct psd_liveness liveness;
	struct psd_parts_done parts_done;
	struct psd_job opening; /* the start, in the device's lane */
	bool is_stuck; /* a job here does not end: its thread, and all that it uses, stay until the process ends */
	bool is_over[PSD_RESOURCES]; /* per resource: its operation has ended, which the interpreter is to be told */
	double *last_sec;	     /* duration of each operation's layers when last executed, seconds; 0: not yet */

	struct psd_mesh_clock clock;
	struct psd_connections *connections;
	struct psd_emulated *emulated; /* emulation of slower links; NULL: not emulated */
	struct psd_peer *peers;
	unsigned n_leaving;  /* number of messages of the current send that the kernel has not fully accepted */
	bool is_coordinated; /* worker 0 decides which collective is executed next */
	struct psd_transfer transfer;
	const struct psd_library_kind *library_kind; /* library that executes collectives; NULL: none */
	struct psd_library *library;
	_Atomic(enum psd_sum_state) sum_state;
	bool brings_back; /* the library inside nodes has to broadcast the result of the ring between nodes */
	uint64_t sent_bytes, received_bytes; /* payload bytes to and from other nodes, in measured iterations */

	struct psd_losses losses;
	struct psd_quality quality;
	struct psd_worker_result result; /* measurements; complete once the host waits for the others to end */
	struct psd_pauses pauses;
	struct psd_saved saved;
	struct psd_worker_look look; /* the last one */
	uint64_t arithmetic;	     /* see struct psd_wire_parameters */

	enum psd_status status; /* error of a callback that cannot return a status */
	struct psd_error *err;
	bool is_blamed;		/* the error already names the host at fault, so others pass it on unchanged */
	bool are_all_done;	/* all hosts are: one has said so in its BYE, or each for itself */
	struct psd_error doubt; /* loss of a peer that may have been done, see liveness.doubt_sec */
};

/* Current time of the worker's clock, for psd_seam.now; context is the worker. While a timer fires: the time for which
 * it was set, so that lateness does not add up. */
double psd_worker_now(void *context);
/* Bytes of a message in the program; a replay may send only a share of them. */
uint64_t psd_worker_message_bytes(const struct psd_worker *worker, const struct psd_wire_head *head, unsigned from,
				  unsigned to);
/* Payload of a send or collective in that iteration: as in the program, or the selected chunks of a sparse plan. */
struct psd_payload psd_worker_carried(const struct psd_worker *worker, struct psd_task task);
/* Payload that is really sent: a replay may send only a share of it. */
struct psd_payload psd_worker_payload(const struct psd_worker *worker, struct psd_task task);
/* True while the task has to wait for a chunk selection. */
bool psd_worker_awaits_choice(const struct psd_worker *worker, struct psd_task task);

/* ---- worker_join.c ---- */

/* Connects to all hosts and opens the connections. PSD_ERUN: a host is missing, has gone, or does not fit. */
enum psd_status psd_worker_join(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_loop.c ---- */

enum psd_status psd_worker_out_of_memory(struct psd_error *err);
/* Starts all operations that need not wait. When one ends at once, starts those that waited for it, too. */
enum psd_status psd_worker_begin(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Waits for an event, within_sec and half a second at most, and handles it. PSD_ERUN: a host is stalled. */
enum psd_status psd_worker_turn(struct psd_worker *worker, double within_sec, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_open.c ---- */

/* Prepares lanes, device, memory, data and network, in the device lane's thread where that computes. */
enum psd_status psd_worker_open_training(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Copies the final parameters from a device with its own memory. */
enum psd_status psd_worker_fetch_parameters(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_tasks.c ---- */

/* Starts an operation's computation on its resource; called as psd_seam.work. */
void psd_worker_work(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);
/* True if an overflow skips the operation's update. One overflow skips all slices of an item. */
bool psd_worker_skips(const struct psd_worker *worker, const struct psd_op *op);
/* Waits for the end of a job on an asynchronous device; runs as the second stage of its lane. */
void psd_worker_finish_job(void *context);
/* Lane that executes an operation: that of its resource, or the device's for work there beside the layers. */
enum psd_resource psd_worker_lane(const struct psd_worker *worker, const struct psd_op *op);
/* Oldest unfinished job of a lane; if all are finished, one of those. */
struct psd_job *psd_worker_job(struct psd_worker *worker, enum psd_resource lane);
/* Executes forward or backward of layers on the current batch, in the device lane's thread. Statuses as the device. */
enum psd_status psd_worker_pass(struct psd_worker *worker, struct psd_pass pass, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_copies.c ---- */

/* Starts the task's copy between the memories of device and host, on the stream of its direction. */
enum psd_status psd_worker_copy(struct psd_worker *worker, struct psd_task task, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_encoding.c ---- */

enum psd_status psd_worker_open_encoding(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Number of loss scales of each kind: one per slice of each item. */
unsigned psd_worker_count_scales(const struct psd_worker *worker);
/* Loss scale of the operation's slice, kept by the host that executes the operation. */
struct psd_scale *psd_worker_scale(const struct psd_worker *worker, const struct psd_op *op);
/* Adds the numbers of updates and skipped updates to *result; a replay has none. */
void psd_worker_count_updates(const struct psd_worker *worker, struct psd_worker_result *result);
/* Range of the item's elements that the operation sends or receives. */
struct psd_range psd_worker_range(const struct psd_worker *worker, const struct psd_op *op);
/* Encodes or decodes from the operation's source buffer to its target; called in a lane's thread, as is the next. */
enum psd_status psd_worker_convert(struct psd_worker *worker, struct psd_task task,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Checks received values for overflows while they are in host memory: before a copy to a device, or while decoding. */
void psd_worker_judge_arrival(struct psd_worker *worker, struct psd_task task);

/* ---- worker_clip.c ---- */

/* Prepares clipping by the gradient norm. PSD_ENOMEM; statuses of the device. */
enum psd_status psd_worker_open_clip(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Start the computation of a gradient's sum of squares, and of the common factor on all gradients. */
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

/* Executes a worker's own update of an item; stores or ends a drift where the iteration begins or ends one. In a lane's
 * thread, as the next two. Statuses as the device. */
enum psd_status psd_worker_step_alone(struct psd_worker *worker, struct psd_task task,
				      struct psd_error *err) PSD_MUST_CHECK;
/* Sets parameters to their values at the last exchange plus the workers' mean drift. Statuses as the device. */
enum psd_status psd_worker_join_steps(struct psd_worker *worker, struct psd_task task,
				      struct psd_error *err) PSD_MUST_CHECK;
/* Values of a shard's part at the last exchange; NULL: the part itself. A worker's may be among its parameters. */
const float *psd_worker_own_start(const struct psd_worker *worker, struct psd_task task);

enum psd_status psd_worker_open_local(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* True if the number of local steps depends on the loss; never in a replay. */
bool psd_worker_follows_loss(const struct psd_worker *worker);
/* First iteration that cannot begin before further steps are known; UINT64_MAX: none. */
uint64_t psd_worker_next_steps(const struct psd_worker *worker);
/* True at the fence before that iteration if its number of steps, or data that goes with it, is missing. */
bool psd_worker_awaits_steps(const struct psd_worker *worker, uint32_t iteration);
/* Records the loss of an iteration, mean over all workers; called on worker 0. */
void psd_worker_follow_loss(struct psd_worker *worker, uint32_t iteration, double loss);
/* True if the number of steps of the iteration's window is known. */
bool psd_worker_knows_steps(const struct psd_worker *worker, uint32_t iteration);
/* Stores the steps received for the next window, which hold from its fence on. */
void psd_worker_receive_steps(struct psd_worker *worker, uint32_t steps);
/* Sets the next window's steps if decided here; called at the fence before that iteration, no steps missing. */
void psd_worker_take_steps(struct psd_worker *worker, uint32_t iteration);
/* Number of quality.saved values in a checkpoint; the next two functions fill and read them. PSD_EINVAL: those in the
 * file at `path` do not fit this run. */
unsigned psd_worker_quality_values(const struct psd_worker *worker);
void psd_worker_save_quality(struct psd_worker *worker);
enum psd_status psd_worker_restore_quality(struct psd_worker *worker, const char *path,
					   struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_packed.c ---- */

enum psd_status psd_worker_open_packings(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Compresses a gradient for sending; called in a lane's thread, as are the next two. */
enum psd_status psd_worker_pack(struct psd_worker *worker, struct psd_task task, struct psd_error *err) PSD_MUST_CHECK;
/* Decompresses the sum of all workers into the gradient's memory. */
enum psd_status psd_worker_unpack(struct psd_worker *worker, struct psd_task task,
				  struct psd_error *err) PSD_MUST_CHECK;
/* On a shard: sums all workers' compressed gradients of its part, and compresses the sum. */
void psd_worker_repack(struct psd_worker *worker, struct psd_task task);

/* ---- worker_low_rank.c ---- */

enum psd_status psd_worker_open_low_rank(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Computes the left low-rank factors of a gradient; in a lane's thread, as the next two. */
enum psd_status psd_worker_project(struct psd_worker *worker, struct psd_task task,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Makes an orthonormal basis of the summed left factors, and computes the right factors. */
enum psd_status psd_worker_fit(struct psd_worker *worker, struct psd_task task, struct psd_error *err) PSD_MUST_CHECK;
/* Makes the gradient as the product of the summed factors. */
enum psd_status psd_worker_expand(struct psd_worker *worker, struct psd_task task,
				  struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_sparse.c ---- */

enum psd_status psd_worker_open_chunks(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Copies the selected chunks of a gradient for sending; in a lane's thread, as the next two. */
enum psd_status psd_worker_gather_chunks(struct psd_worker *worker, struct psd_task task,
					 struct psd_error *err) PSD_MUST_CHECK;
/* Updates the selected elements by their sums over workers. */
enum psd_status psd_worker_apply_chunks(struct psd_worker *worker, struct psd_task task,
					struct psd_error *err) PSD_MUST_CHECK;
/* Prepares the next chunk selection, once the norms of all workers have arrived. */
void psd_worker_choose_chunks(struct psd_worker *worker, struct psd_task task);
/* Selects chunks at random, the same on all hosts, for a replay with real workers. */
void psd_worker_draw_chunks(struct psd_worker *worker);

/* ---- worker_replay.c ---- */

enum psd_status psd_worker_open_replay(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Memory of the messages that a replaying worker sends or receives. A real worker gets zeros: NaNs or denormals would
 * change its work. */
void *psd_worker_replayed_bytes(const struct psd_worker *worker, bool is_sent);
/* Advances the chunk selection to the task's iteration where no operation of the replay does. */
void psd_worker_keep_up(struct psd_worker *worker, struct psd_task task);
/* Starts a timer of the predicted duration in place of computation; called as psd_seam.work. */
void psd_worker_replay(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);
/* Keeps the task's resource busy for sec from now on; one timer per resource. */
void psd_worker_set_timer(struct psd_worker *worker, enum psd_resource resource, struct psd_task task, double sec);
/* Ends the work of the first timer that is due; returns false if none is. */
bool psd_worker_take_timer(struct psd_worker *worker);
bool psd_worker_has_timer(const struct psd_worker *worker);
/* Ends the loop's next turn when the next timer is due. */
void psd_worker_await_timer(struct psd_worker *worker);

/* ---- worker_load.c ---- */

/* Records the processor time so far, when the first operation of an iteration begins. */
void psd_worker_watch_load(struct psd_worker *worker, uint32_t iteration);
void psd_worker_measure_load(struct psd_worker *worker, struct psd_worker_result *result);

/* ---- worker_pause.c ---- */

/* All are called by the loop's thread. */

/* First iteration after `iteration` that has a pause before it; 0: none. */
uint32_t psd_worker_next_pause(const struct psd_worker *worker, uint32_t iteration);
/* Samples processed by all workers before `iteration`, since training began. */
uint64_t psd_worker_samples(const struct psd_worker *worker, uint64_t iteration);
/* Starts the pause's job if the interpreter waits at its fence; passes the fence if no pause is due. Returns false if
 * nothing happened. */
bool psd_worker_pause(struct psd_worker *worker);
/* Passes the fence after a pause's job has ended without error. */
void psd_worker_go_on(struct psd_worker *worker, const struct psd_job *job);
/* Reports the progress of an iteration whose losses are all known, after its test if one is due. */
void psd_worker_report_progress(struct psd_worker *worker, const struct psd_progress *progress);

/* All run in the device lane's thread. */

/* All in the device lane's thread. */

/* Writes this host's checkpoint before `iteration`, host 0 the parameters as well. PSD_EFILE: a file cannot be created;
 * PSD_ERUN: it cannot be written; PSD_EINVAL: a tensor's name is too long; PSD_ENOMEM. */
enum psd_status psd_worker_save(struct psd_worker *worker, uint32_t iteration, struct psd_error *err) PSD_MUST_CHECK;
/* Removes later checkpoints of an earlier run, once all hosts agree on the first iteration. PSD_EFILE: it cannot. */
enum psd_status psd_worker_begin_saving(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Reads the checkpoint before options->first_iteration. PSD_EINVAL: it is damaged, or of another run; PSD_EFILE: it
 * cannot be opened; PSD_ENOMEM, PSD_ERUN as psd_state_read(). */
enum psd_status psd_worker_restore(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Reads the checkpoint of other hosts (options->from_hosts) or of another system (worker_reshape.c), with parameters
 * into this host's memory only. Host 0 names the values that start anew. Statuses as before; PSD_EINVAL also for
 * another model or kind of optimiser. */
enum psd_status psd_worker_reshape(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Reads initial parameters and states from the file of train.start; host 0 names the missing ones. PSD_EINVAL: the file
 * has none of them, or other shapes; other statuses as psd_worker_restore(). */
enum psd_status psd_worker_read_start(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_soundness.c ---- */

struct psd_state;

/* On worker 0: PSD_ERUN if the loss of an iteration is infinite or not a number, unless train.diverged allows it. */
enum psd_status psd_worker_check_loss(struct psd_worker *worker, uint32_t iteration, double loss) PSD_MUST_CHECK;
/* Looks at the first n_parts of a state after that many iterations, at least at all parameters, and keeps their digest.
 * PSD_ERUN: a value is infinite or not a number, and train.diverged does not allow it. In the device lane's thread, as
 * the next three; statuses of psd_state_visit(). */
enum psd_status psd_worker_check_state(const struct psd_state *state, unsigned n_parts, uint32_t iterations,
				       struct psd_error *err) PSD_MUST_CHECK;
/* The same for a state that was read from a file. PSD_EINVAL names file, tensor and element. */
enum psd_status psd_worker_check_read(const struct psd_state *state, unsigned n_parts, const char *path,
				      struct psd_error *err) PSD_MUST_CHECK;
/* Looks at parameters and running statistics where workers are compared; else does nothing. */
enum psd_status psd_worker_look(struct psd_worker *worker, uint32_t iterations, struct psd_error *err) PSD_MUST_CHECK;
/* Hash for psd_wire_parameters.arithmetic. */
uint64_t psd_worker_arithmetic(const struct psd_worker *worker);
/* This worker's digest after that many iterations, if known. */
struct psd_wire_parameters psd_worker_digest(const struct psd_worker *worker, uint32_t iterations);
/* Compares all workers' digests, as far as they are known and come from equal arithmetic. PSD_ERUN: they differ; the
 * text names workers and tensor. */
enum psd_status psd_worker_compare(const struct psd_worker *worker, const struct psd_wire_parameters parameters[],
				   uint32_t iterations, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_trace.c ---- */

/* Records a finished operation of this host in the trace; seconds of psd_worker_now(). */
void psd_worker_record(struct psd_worker *worker, struct psd_task task, double start_sec, double end_sec);
/* Record that a message from a peer begins to arrive, and that it has arrived. */
void psd_worker_record_begin(struct psd_worker *worker, unsigned peer, uint32_t op);
void psd_worker_record_arrival(struct psd_worker *worker, unsigned peer, struct psd_task task, uint64_t bytes);

/* ---- worker_messages.c ---- */

bool psd_worker_send(void *context, unsigned host, struct psd_task task); /* called as psd_seam.send */
void psd_worker_announce(void *context, struct psd_task task);		  /* to worker 0; called as psd_seam.announce */
void psd_worker_choose(void *context, struct psd_task task);		  /* from worker 0; called as psd_seam.choose */
uint32_t psd_worker_arrivals(const void *context, const struct psd_op *receive,
			     unsigned host); /* number of messages of a receive; a psd_arrivals_fn */
/* Sends the loss of this worker's batch to worker 0. */
void psd_worker_report(struct psd_worker *worker, uint32_t iteration, double loss, uint32_t correct);
/* Sends the steps of a window to all hosts; called on worker 0. */
void psd_worker_send_steps(struct psd_worker *worker, uint32_t window_number, uint32_t steps);
/* Sends heartbeats at intervals: they tell whether a job executes here, and whether one does beside a library's sum. */
void psd_worker_send_heartbeat(struct psd_worker *worker, bool is_computing, bool is_busy);
/* Tells all peers that this host gives up, and why. */
void psd_worker_send_failure(struct psd_worker *worker, enum psd_status status, const struct psd_error *err);
/* Tells all peers that this host is done: it has executed and saved everything. */
void psd_worker_send_done(struct psd_worker *worker);
/* Tells all peers that it knows that all are done, and leaves. */
void psd_worker_send_bye(struct psd_worker *worker, const struct psd_wire_bye *bye);

/* True if this host and the peer are on the same node. */
bool psd_worker_is_near(const struct psd_worker *worker, unsigned peer);
/* Segments of a message on this host, which sends or receives it; returns their number. */
unsigned psd_worker_segments(const struct psd_worker *worker, struct psd_task task, unsigned from, unsigned to,
			     struct iovec segments[PSD_SEGMENTS_MAX]);
/* Records a worker's loss of an iteration; called on worker 0. */
void psd_worker_take_report(struct psd_worker *worker, unsigned from, uint32_t iteration,
			    const struct psd_wire_report *report);

/* True if the message's bytes are counted: only those to and from other nodes, in measured iterations. */
bool psd_worker_is_counted(const struct psd_worker *worker, unsigned peer, uint32_t iteration);
void psd_worker_count_sent(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head);

/* ---- worker_steps.c ---- */

void psd_worker_collective(void *context, struct psd_task task); /* called as psd_seam.collective */
/* Starts a collective that is executed step by step. */
void psd_worker_begin_transfer(struct psd_worker *worker, struct psd_task task);
/* Continues the collective after the NIC's timer has fired. */
void psd_worker_continue(struct psd_worker *worker);
/* Sends the next step of the collective in progress, unless it must wait for a message or for the step before. */
void psd_worker_advance(struct psd_worker *worker);
/* Returns true once, when the collective has sent and received all steps. */
bool psd_worker_take_steps_done(struct psd_worker *worker);
/* Message that `rank` sends in a step, with its bytes. */
struct psd_step psd_worker_step(const struct psd_worker *worker, struct psd_task task, unsigned rank, unsigned step);
uint64_t psd_worker_step_bytes(const struct psd_worker *worker, struct psd_task task, const struct psd_step *step);
/* Sets the memory for the message that a step receives. */
void psd_worker_step_destination(const struct psd_worker *worker, struct psd_task task, const struct psd_step *step,
				 unsigned number, struct psd_destination *destination);
/* First step, from `step` on, that receives from that peer; the number of steps if there is none. */
unsigned psd_worker_next_from(const struct psd_worker *worker, struct psd_task task, unsigned peer, unsigned step);
/* Continues the collective after the message of its next receiving step has arrived. */
void psd_worker_step_arrived(struct psd_worker *worker);

/* ---- worker_library.c ---- */

/* Opens the plan's library, if any, over connections that carry nothing else yet. until_sec: deadline
 * (psd_socket_now_sec()). Statuses as psd_worker_check_library(); PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_worker_open_library(struct psd_worker *worker, const struct psd_mesh_options *mesh, const int fds[],
					double until_sec, struct psd_error *err) PSD_MUST_CHECK;
/* Makes the NIC's lane execute a collective. */
void psd_worker_start_sum(struct psd_worker *worker, struct psd_task task);
/* Continues or ends a collective whose job in the lane, or transfer, is over. */
void psd_worker_summed(struct psd_worker *worker, struct psd_task task);
void psd_worker_transfer_is_over(struct psd_worker *worker, struct psd_task task);
/* Payload between the leaders of nodes, where a library sums inside nodes. */
struct psd_payload psd_worker_between_nodes(const struct psd_worker *worker, struct psd_payload payload);
/* Executes a library's collective, or its part before or after the transfer between nodes, in the NIC lane's thread. */
enum psd_status psd_worker_sum(struct psd_worker *worker, struct psd_task task, struct psd_error *err) PSD_MUST_CHECK;
/* True if a library's sum executes that only other hosts can end: its thread stays until the process ends. */
bool psd_worker_is_held(struct psd_worker *worker);
/* Closes the plan's library after its lane. is_orderly: the other hosts close theirs, too. */
void psd_worker_close_library(struct psd_worker *worker, bool is_orderly);

/* ---- worker_arrivals.c ---- */

struct psd_connections_owner psd_worker_owner(struct psd_worker *worker);

/* ---- worker_stalls.c ---- */

/* Decides whether a lost connection is an error; called as psd_connections_owner.lost. */
enum psd_status psd_worker_lost(void *context, unsigned peer, int error_number, struct psd_error *err);
/* Records that a peer gives up with that status. */
void psd_worker_peer_failed(struct psd_worker *worker, unsigned peer, enum psd_status status);
/* True if this host and all others are done. */
bool psd_worker_are_all_done(struct psd_worker *worker);
/* Note that a part of a test, a checkpoint or the start is over; called in the device lane's thread. */
void psd_worker_moved(struct psd_worker *worker);
void psd_worker_moved_test(struct psd_worker *worker);
void psd_worker_moved_save(struct psd_worker *worker);
/* Tells the process that watches this one that it lives. */
void psd_worker_beat(struct psd_worker *worker, enum psd_pulse_place place);
/* The same before an operation in the event loop's thread, at that time. */
void psd_worker_beat_at(struct psd_worker *worker, struct psd_task task, double now_sec);
/* Waits for the start. PSD_ELOST: it stands still. */
enum psd_status psd_worker_await_opening(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Waits until no lane has a job, apart from a library's sums. False: one does not end. */
bool psd_worker_await_jobs(struct psd_worker *worker);
/* Checks for hosts stalled longer than psd_worker_options.stall_sec. PSD_ELOST: one is; the text names it and its
 * operation. */
enum psd_status psd_worker_check_stall(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_metrics.c ---- */

/* Range of the measured iterations. */
struct psd_iterations psd_worker_measured(const struct psd_worker *worker);
/* Computes this host's measurements, after the last iteration. PSD_ENOMEM. */
enum psd_status psd_worker_measure(struct psd_worker *worker, struct psd_worker_result *result,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Adds the other hosts' measurements, once all have sent BYE. */
void psd_worker_gather(struct psd_worker *worker, struct psd_worker_result *result);

#endif
