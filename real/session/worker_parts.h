/* State of a worker, and functions that its files call of each other. Private to real/session/. Words: an item is one
 * or several tensors that are synchronised as one. A lane is the queue of jobs of one resource (device, CPU, NIC) with
 * the thread that executes them. A job executes one operation, or the pause between two iterations. The event loop's
 * thread owns all state. A job uses only tensors and its own struct psd_job; jobs that use the same tensors are kept
 * apart by the order of the program. While the job of a pause executes, no other job does; it also reads loss scales
 * and chunk selection. Functions psd_worker_open_...() without a comment prepare their file's part of the state, and
 * return PSD_ENOMEM if memory runs out. */
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
	uint64_t first_mark; /* asynchronous device: mark in its stream before the job's work */
	uint64_t mark;	     /* asynchronous device: mark in its stream behind the job's work */
	double queued_sec;   /* time at which the job was queued (psd_socket_now_sec()) */
	/* Asynchronous device: start of the job, computed as its end minus its duration (psd_worker_now()). */
	double start_sec;
	double sec;
	/* Seconds in which the thread or the device worked; if several threads compute, the job's duration. */
	double busy_sec;
	double cpu_sec; /* processor seconds that the thread used */
	bool is_marked;
	/* The event loop's thread executed the job at once; the interpreter is told later that it has ended. */
	bool is_done_at_once;
	/* The job executes the pause before the task's iteration; false: an operation. See worker_pause.c. */
	bool is_pause;
	/* The pause's job is a test; false: it writes a checkpoint, or compares the parameters of workers. */
	bool is_test;
	uint64_t test_labels;  /* number of samples that were tested; 0: not a test */
	uint64_t test_correct; /* number of these samples that were classified correctly */
};

/* Jobs of one resource in a ring; job number i, from 0, is jobs[i % PSD_LANE_JOBS]. */
struct psd_jobs {
	struct psd_job jobs[PSD_LANE_JOBS];
	uint64_t n_queued, n_over;
	struct psd_lane lane;
	bool has_lane;
	double over_sec; /* end of the last job that has ended (psd_worker_now()) */
};

/* Metadata of the checkpoint from which the run resumes; all zeros: it does not resume. */
struct psd_saved {
	uint64_t run_hash;   /* hash of the terms of all runs up to the checkpoint */
	uint64_t terms_hash; /* hash of the terms of the run that wrote the checkpoint */
};

/* Pauses between iterations, for tests and checkpoints, and the reports of progress. The progress of an iteration is
 * reported once all its losses are known and, if a test follows the iteration, the test has ended. See
 * worker_pause.c. */
struct psd_pauses {
	/* Seconds of the pause before each iteration; shape (n_iterations + 1); the last entry is the pause at the
	 * end. */
	double *sec;
	bool is_under_way; /* the device's lane executes the job of a pause */
	bool is_test_over; /* the test of this pause has ended; its checkpoint is next */
	bool has_progress; /* all losses of the iteration in `progress` are known */
	bool has_result;   /* the result of the test after that iteration is known, or no test follows it */
	struct psd_progress progress;
	double start_sec; /* time at which the parameters to be tested were complete (psd_socket_now_sec()) */
	uint64_t labels, correct;
};

/* Local SGD whose number of steps depends on the loss. A window is the iterations between two exchanges. All hosts know
 * the numbers of steps; only worker 0 knows the losses. See worker_local.c. */
struct psd_quality {
	/* Number of steps of the last window with an even number, and of the last with an odd one; 0: as in the
	 * plan. */
	uint32_t steps[2];
	uint32_t n_known; /* number of windows whose number of steps is known */
	/* Number of steps received for the next window, used from the pause before it on; 0: not received. */
	uint32_t received_steps;
	uint32_t n_losses_known;  /* number of iterations whose loss, as mean over all workers, is known */
	uint32_t first_iteration; /* iteration of the first loss that is known */
	double first_loss, lowest_loss;
	double sum; /* sum of the n losses since worker 0 last chose a number of steps */
	uint32_t n;
	/* The fields above in the order in which a checkpoint stores them; NULL: the number of steps is constant. */
	double *saved;
};

/* Timer of a replay, which stands for an operation, or for the time that software takes before a message is sent. Times
 * are those of psd_worker_now(). */
struct psd_timer {
	bool is_set;
	struct psd_task task;
	double start_sec, due_sec;
};

struct psd_timers {
	struct psd_timer each[PSD_RESOURCES];
	const struct psd_timer *firing; /* timer that is being ended; NULL: none */
	/* Largest lateness of a timer in each iteration, seconds; shape (n_iterations). */
	double *late_sec;
};

/* Processor time used by this worker and by its machine. See worker_load.c. */
struct psd_load {
	double jobs_cpu_sec; /* processor seconds of all jobs that have ended */
	/* Processor seconds used outside of jobs, from the start of the process to the start of each iteration; shape
	 * (n_iterations). */
	double *beside_sec;
	uint32_t n_watched; /* number of iterations that have begun, for which beside_sec is set */
	bool is_watched, has_machine_from;
	double own_from_sec;	 /* processor seconds of the event loop's thread before the first measured iteration */
	double process_from_sec; /* processor seconds of the process before the first measured iteration */
	struct psd_machine_time machine_from;
};

/* Signs of life of this worker and the other hosts. last_move_sec is a time of psd_worker_now(), the other times are of
 * psd_socket_now_sec(). See worker_stalls.c. */
struct psd_liveness {
	double last_move_sec;
	double turned_sec;
	double awake_sec; /* time of the first turn of the event loop after this process was suspended */
	double alive_sec; /* time at which this host last sent a heartbeat */
	double busy_sec;  /* time of the last heartbeat of a peer that executes anything but a library's sum */
	/* Time at which this host, itself done, lost a peer that had not said that it is done; 0: none was lost. */
	double doubt_sec;
	/* Longest duration of each operation so far, seconds; 0: not executed so far; shape (n_ops). */
	double *longest_sec;
};

/* Progress of work that is not an operation: tests, checkpoints and the start of a host. It is counted in pieces: a
 * batch of a test, a tensor of a checkpoint. The thread that executes the device's operations writes, the event loop
 * reads. */
struct psd_parts_done {
	_Atomic double moved_sec;	 /* end of the last piece (psd_socket_now_sec()) */
	_Atomic double longest_test_sec; /* longest duration of a test's batch, seconds; 0: none */
	_Atomic double longest_save_sec; /* longest duration of a checkpoint's tensor, seconds; 0: none */
};

/* Copies of training samples to a device with its own memory. Used only by the thread that executes the device's
 * operations. */
struct psd_sample_copies {
	bool is_ahead; /* the copy of the next iteration's samples has been started */
	/* Marks in the device's stream behind the last copy for an even iteration and for an odd one. */
	uint64_t marks[2];
};

/* Losses that the workers report to worker 0. Only worker 0 uses the fields, except n_own. See worker_messages.c. */
struct psd_losses {
	uint32_t n_own;			 /* number of iterations whose loss this worker has sent to worker 0 */
	uint32_t window;		 /* largest number of iterations of which some, not all, losses may be known */
	struct psd_wire_report *reports; /* reports of iteration i are in row i % window; shape (window, workers) */
	uint32_t *n_reports;
	/* Digests of all workers' parameters, gathered to compare them; shape (workers). */
	struct psd_wire_parameters *parameters;
	uint32_t n_known; /* number of iterations of which all reports have arrived */
	double last;
};

/* Digest of this host's parameters after `iterations` iterations. Set by the thread that executes the device's
 * operations while none executes. */
struct psd_worker_look {
	uint32_t iterations;
	struct psd_wire_parameters parameters;
};

/* State of the collective that this worker executes step by step. */
struct psd_transfer {
	struct psd_task task;
	bool is_active;
	bool is_waiting; /* replay: the transfer begins when a timer fires, which stands for the time of software */
	bool is_sending;
	/* The transport has taken a step's message since the event loop last looked, so a message that was held back
	 * may now be accepted. */
	bool has_left;
	/* The message of step next_receive is in worker->memory.staging: the values to which it is to be added are
	 * still being sent. */
	bool has_staged;
	unsigned n_steps;
	unsigned next_send, next_receive;
};

/* The next messages of one operation that this host expects from one peer. */
struct psd_expected {
	uint32_t next_iteration; /* iteration of the next message of tensors */
	/* Iteration of the next message READY or BEGIN that is expected from the peer. In the entry of this host
	 * itself: iteration of the next READY that it sends to worker 0. */
	uint32_t next_signal;
	/* Time at which that message began to arrive (psd_worker_now()); 0: it has not begun. */
	double start_sec;
};

struct psd_peer {
	struct psd_expected *ops; /* messages expected from this peer; one entry for each operation of the program */
	uint8_t small[PSD_WIRE_SMALL_BYTES];
	bool is_done; /* the peer has said that it has executed and saved everything */
	bool has_sent_bye;
	struct psd_wire_bye bye;
};

/* State of a library's all-reduce. The NIC lane's thread and the event loop's thread both change it. */
enum psd_sum_state {
	PSD_SUM_NONE,
	PSD_SUM_UNDER_WAY, /* the library executes an all-reduce */
	/* The session has been closed: no all-reduce begins any more, and one that executes never returns. */
	PSD_SUM_LEFT,
};

enum psd_worker_phase {
	PSD_PHASE_OPENING,
	PSD_PHASE_GOING,   /* this host executes operations */
	PSD_PHASE_PARTING, /* this host is done, and waits until all hosts are */
	PSD_PHASE_LEAVING, /* all hosts are done, and this host waits until each one has said so (BYE) */
	PSD_PHASE_OVER,
};

struct psd_worker {
	struct psd_arena arena; /* owner of the memory of the worker's arrays, which are freed together */
	const struct psd_worker_options *options;
	const struct psd_program *program;
	const struct psd_plan *plan;
	const struct psd_layout *layout;
	const struct psd_graph *graph;
	const struct psd_device_kind *kind; /* functions of the worker's kind of device */
	unsigned self, n_hosts;
	unsigned n_connections; /* number of connections between two hosts, >= 1 */
	/* Settings of the replay in which this worker only waits; NULL: the worker computes. */
	const struct psd_replay *replay;
	bool is_beside_others; /* this worker is part of a replay in which some workers compute */
	/* Seconds of this machine for one second of psd_worker_now(); 1 except in a dilated replay. */
	double dilation_ratio;
	double start_sec; /* time at which psd_worker_now() was 0 (psd_socket_now_sec()) */
	/* Time in the trace (host 0's clock) minus time of this host's clock, seconds. */
	double clock_offset_sec;
	enum psd_worker_phase phase;

	struct psd_memory memory; /* buffers in the host's memory */
	struct psd_memory apart;  /* buffers in the memory of a device that has its own */
	/* Buffers with which the device computes: &memory or &apart. */
	const struct psd_memory *on_device;
	struct psd_device *device;
	bool has_device;
	/* Host memory through which tensors are copied from the device into a checkpoint; NULL: not allocated yet. */
	void *staging;
	/* Addresses to which the device writes gradients; shape (memory.n_under_way, tensors of the graph). NULL: the
	 * gradient is not computed, but made from factors later. */
	float **computed_gradients;
	/* Loss scales of this worker's own gradients, one for each slice of each item (bucket). */
	struct psd_scale *scales;
	/* Loss scales of the sums that this host makes as shard or root, one for each slice of each item (bucket). */
	struct psd_scale *sum_scales;
	/* Chunks that a sparse exchange sends; all zeros if the plan has none, or all workers replay. */
	struct psd_chunk_selection selection;
	/* Arguments of the device's functions for a sparse exchange; one entry for each item (bucket). */
	struct psd_chunks *chunks;
	/* Arguments of the device's compression; one entry for each item (bucket); NULL: gradients are not
	 * compressed. */
	struct psd_packing *packings;
	/* Arguments of the device's low-rank compression; NULL: the plan has none. */
	struct psd_low_rank_work *low_rank;
	/* Arguments of clipping by the gradient norm on the device; all zeros: no clipping. */
	struct psd_clip clip;
	/* Sum of squares of each tensor's gradient, for the gradient norm; shape (tensors of the plan). */
	double *squares;
	struct psd_feed *feed; /* source of training samples; NULL: this host is a server, or only waits */
	struct psd_sample_copies sample_copies;
	uint64_t global_batch;

	struct psd_duties duties;
	struct psd_interpreter interpreter;
	int wake_fd;
	struct psd_jobs jobs[PSD_RESOURCES];
	struct psd_timers timers;
	struct psd_repeated_memory repeated; /* replay: memory into which all messages are received */
	/* Replay with real workers: zeros that replaying workers send; never written. */
	struct psd_repeated_memory zeros;
	struct psd_load load;
	struct psd_liveness liveness;
	struct psd_parts_done parts_done;
	struct psd_job opening; /* job of the device's lane that prepares device, memory and data at the start */
	/* A job on this host does not end: its thread, and all memory that it uses, stay until the process ends. */
	bool is_stuck;
	/* Per resource: its operation has ended, and the interpreter is still to be told. */
	bool is_over[PSD_RESOURCES];
	/* Duration of each operation's layers when last executed, seconds; 0: not executed so far; shape (n_ops). */
	double *last_sec;

	struct psd_mesh_clock clock;
	struct psd_connections *connections;
	/* Decorator that delays messages as the emulated links would; NULL: nothing is emulated. */
	struct psd_emulated *emulated;
	struct psd_peer *peers;
	/* Number of messages of the current send operation that the transports have not completely taken. */
	unsigned n_leaving;
	bool is_coordinated; /* worker 0 decides which collective all workers execute next */
	struct psd_transfer transfer;
	/* Functions of the library that executes all-reduces; NULL: psd's own collectives. */
	const struct psd_library_kind *library_kind;
	struct psd_library *library;
	_Atomic(enum psd_sum_state) sum_state;
	/* The library sums inside nodes only, and must send the sum over all nodes back to the node's other workers. */
	bool brings_back;
	uint64_t sent_bytes;	 /* payload bytes sent to hosts on other nodes in measured iterations */
	uint64_t received_bytes; /* payload bytes received from hosts on other nodes in measured iterations */

	struct psd_losses losses;
	struct psd_quality quality;
	struct psd_worker_result result; /* measurements of this host; complete once this host is done */
	struct psd_pauses pauses;
	struct psd_saved saved;
	struct psd_worker_look look; /* last digest of this host's parameters */
	uint64_t arithmetic;	     /* hash of processor, device and libraries, see struct psd_wire_parameters */

	enum psd_status status; /* error that occurred in a callback without a status; PSD_OK: none */
	struct psd_error *err;
	/* Err already names the host at fault, so this host's name is not put in front of it. */
	bool is_blamed;
	bool are_all_done;	/* all hosts are done: each has said so, or one has said in its BYE that all are */
	struct psd_error doubt; /* error for a lost peer that may have been done, see liveness.doubt_sec */
};

/* Returns the current time of the worker's clock, seconds; called as psd_seam.now. context: the struct psd_worker.
 * While a timer is being ended, this is the time for which the timer was set, so that the lateness of timers does not
 * add up. */
double psd_worker_now(void *context);
/* Returns the payload bytes of a message in the program. In a replay with a payload scale, fewer bytes are really
 * sent. */
uint64_t psd_worker_message_bytes(const struct psd_worker *worker, const struct psd_wire_head *head, unsigned from,
				  unsigned to);
/* Returns the payload (elements to transfer) of a send or a collective in the task's iteration: the one in the program,
 * or that of the selected chunks if the exchange is sparse. */
struct psd_payload psd_worker_carried(const struct psd_worker *worker, struct psd_task task);
/* Returns the payload that is really sent: that of psd_worker_carried(), or a fraction of it in a replay with a payload
 * scale. */
struct psd_payload psd_worker_payload(const struct psd_worker *worker, struct psd_task task);
/* True if the task cannot start yet, because the chunk selection of its iteration is not known. */
bool psd_worker_awaits_choice(const struct psd_worker *worker, struct psd_task task);

/* ---- worker_join.c ----. */

/* Joins all other hosts and opens the connections to them. PSD_ERUN: a host is missing, has gone, or does not fit. */
enum psd_status psd_worker_join(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_loop.c ----. */

enum psd_status psd_worker_out_of_memory(struct psd_error *err);
/* Starts all operations whose inputs are complete. If one ends at once, it also starts the operations that waited for
 * it. */
enum psd_status psd_worker_begin(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* One turn of the event loop: waits for an event, within_sec seconds and half a second at most, and handles it.
 * PSD_ELOST: a host is stalled; statuses of the operations. */
enum psd_status psd_worker_turn(struct psd_worker *worker, double within_sec, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_open.c ----. */

/* Prepares lanes, device, memory, data and network of a host that trains. Device, memory and data are prepared by the
 * thread that executes the device's operations, if there is one. */
enum psd_status psd_worker_open_training(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Copies the final parameters from the device into the host's memory. Does nothing if the device computes in the host's
 * memory. */
enum psd_status psd_worker_fetch_parameters(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_tasks.c ----. */

/* Starts to execute an operation on its resource; called as psd_seam.work. context: the struct psd_worker; host: always
 * this one; sec: predicted duration, ignored here. */
void psd_worker_work(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);
/* True if the operation's update is skipped because a sum overflowed. If the sum of one slice overflows, the updates of
 * all slices of its item (bucket) are skipped. */
bool psd_worker_skips(const struct psd_worker *worker, const struct psd_op *op);
/* Waits until an asynchronous device has finished a job's work. context: the struct psd_job. Called by the lane's
 * second thread. */
void psd_worker_finish_job(void *context);
/* Returns the lane that executes an operation: the lane of its resource, but the device's lane if the operation gathers
 * chunks of a gradient that lies in the device's own memory. */
enum psd_resource psd_worker_lane(const struct psd_worker *worker, const struct psd_op *op);
/* Returns the oldest job of a lane that has not ended; if all have ended, the job of the next entry in the ring. */
struct psd_job *psd_worker_job(struct psd_worker *worker, enum psd_resource lane);
/* Executes the forward or the backward pass of some layers on the current batch. Called by the thread that executes the
 * device's operations. Statuses of the device. */
enum psd_status psd_worker_pass(struct psd_worker *worker, struct psd_pass pass, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_copies.c ----. */

/* Starts the copy operation of a task between the device's and the host's memory, on the device's stream for that
 * direction. */
enum psd_status psd_worker_copy(struct psd_worker *worker, struct psd_task task, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_encoding.c ----. */

enum psd_status psd_worker_open_encoding(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Returns the number of entries of worker->scales, and of worker->sum_scales: one for each slice of each item
 * (bucket). */
unsigned psd_worker_count_scales(const struct psd_worker *worker);
/* Returns the loss scale of the operation's slice: from sum_scales if this operation executes as shard or root,
 * otherwise from scales. */
struct psd_scale *psd_worker_scale(const struct psd_worker *worker, const struct psd_op *op);
/* Adds this host's numbers of updates and of skipped updates to *result. Adds nothing in a replay. */
void psd_worker_count_updates(const struct psd_worker *worker, struct psd_worker_result *result);
/* Returns the range of elements that the operation sends or receives on this host. It counts from the first element of
 * the operation's item (bucket). */
struct psd_range psd_worker_range(const struct psd_worker *worker, const struct psd_op *op);
/* Encodes or decodes values from the operation's source buffer into its target buffer. Called by a lane's thread. */
enum psd_status psd_worker_convert(struct psd_worker *worker, struct psd_task task,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Checks whether received values have overflowed, while they are in the host's memory: before they are copied to a
 * device, or while they are decoded. Called by a lane's thread. */
void psd_worker_judge_arrival(struct psd_worker *worker, struct psd_task task);

/* ---- worker_clip.c ----. */

/* Prepares clipping of gradients by their norm (key 'clip' of the scenario), if the plan has it. PSD_ENOMEM; statuses
 * of the device. */
enum psd_status psd_worker_open_clip(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* psd_worker_measure_gradient() starts to compute the sum of squares of the task's gradient; psd_worker_find_clip()
 * then the factor by which all gradients are multiplied. Statuses of the device. */
enum psd_status psd_worker_measure_gradient(struct psd_worker *worker, struct psd_task task,
					    struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_worker_find_clip(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_reduce.c ----. */

/* On the leader of a node: adds the gradients of the node's other workers to the leader's own gradient, for one slice.
 * Called by a lane's thread. PSD_ENOMEM. */
enum psd_status psd_worker_sum_node(struct psd_worker *worker, struct psd_task task,
				    struct psd_error *err) PSD_MUST_CHECK;
/* On a shard: sums the gradients of all workers for this shard's part of a slice, and updates the part's parameters
 * with the sum. Called by a lane's thread. PSD_ENOMEM. */
enum psd_status psd_worker_reduce(struct psd_worker *worker, struct psd_task task,
				  struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_local.c ----. */

/* Local SGD: updates an item's (bucket's) parameters with this worker's own gradient. Before the first local step after
 * an exchange, it stores the parameters. After the last one, it computes the drift: the difference between parameters
 * and stored ones. Called by a lane's thread. Statuses of the device. */
enum psd_status psd_worker_step_alone(struct psd_worker *worker, struct psd_task task,
				      struct psd_error *err) PSD_MUST_CHECK;
/* Local SGD: sets an item's (bucket's) parameters to the stored ones (those of the last exchange) plus the mean drift
 * of all workers. Called by a lane's thread. Statuses of the device. */
enum psd_status psd_worker_join_steps(struct psd_worker *worker, struct psd_task task,
				      struct psd_error *err) PSD_MUST_CHECK;
/* Local SGD: returns the parameters of a shard's part at the last exchange, if they are apart from those with which
 * this host computes. NULL: the shard's part itself still has those values. */
const float *psd_worker_own_start(const struct psd_worker *worker, struct psd_task task);

enum psd_status psd_worker_open_local(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* True if the number of local SGD steps depends on the loss. Always false in a replay. */
bool psd_worker_follows_loss(const struct psd_worker *worker);
/* Local SGD whose number of steps depends on the loss: returns the first iteration that cannot begin until another
 * number of steps is known; UINT64_MAX: there is none. */
uint64_t psd_worker_next_steps(const struct psd_worker *worker);
/* Local SGD whose number of steps depends on the loss: true if `iteration`, before which the interpreter waits, cannot
 * begin yet. Its number of steps is not known, or on worker 0 the loss of an earlier iteration is missing. */
bool psd_worker_awaits_steps(const struct psd_worker *worker, uint32_t iteration);
/* Local SGD, on worker 0: records the loss of an iteration, as mean over all workers. At the end of a window
 * (iterations up to an exchange) it may choose the number of steps of the next one and send it to all hosts. */
void psd_worker_follow_loss(struct psd_worker *worker, uint32_t iteration, double loss);
/* True if the number of local SGD steps of the window with this iteration is known. */
bool psd_worker_knows_steps(const struct psd_worker *worker, uint32_t iteration);
/* Stores the number of local SGD steps that worker 0 has sent for the next window (iterations until the next exchange).
 * psd_worker_take_steps() makes it valid. */
void psd_worker_receive_steps(struct psd_worker *worker, uint32_t steps);
/* Makes the number of local SGD steps that was received for the next window valid, if the window is to be decided
 * before this iteration. Called in the pause before the iteration, when no value is missing. */
void psd_worker_take_steps(struct psd_worker *worker, uint32_t iteration);
/* Local SGD whose number of steps depends on the loss, in a checkpoint: psd_worker_quality_values() returns the number
 * of values in quality.saved, psd_worker_save_quality() sets them, psd_worker_restore_quality() takes them over after
 * reading. PSD_EINVAL: the values in the file at `path` do not fit this run. */
unsigned psd_worker_quality_values(const struct psd_worker *worker);
void psd_worker_save_quality(struct psd_worker *worker);
enum psd_status psd_worker_restore_quality(struct psd_worker *worker, const char *path,
					   struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_packed.c ----. */

enum psd_status psd_worker_open_packings(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Compresses a gradient for sending. Called by a lane's thread. */
enum psd_status psd_worker_pack(struct psd_worker *worker, struct psd_task task, struct psd_error *err) PSD_MUST_CHECK;
/* Decompresses the sum of all workers' gradients into the gradient's memory. Called by a lane's thread. */
enum psd_status psd_worker_unpack(struct psd_worker *worker, struct psd_task task,
				  struct psd_error *err) PSD_MUST_CHECK;
/* On a shard: sums all workers' compressed gradients of its part, and compresses the sum. Called by a lane's thread. */
void psd_worker_repack(struct psd_worker *worker, struct psd_task task);

/* ---- worker_low_rank.c ----. */

enum psd_status psd_worker_open_low_rank(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Low-rank compression, first step: computes the left factor of each gradient of the item (bucket). Called by a lane's
 * thread. */
enum psd_status psd_worker_project(struct psd_worker *worker, struct psd_task task,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Low-rank compression, second step: makes the columns of the summed left factors orthonormal, and computes the right
 * factors. Called by a lane's thread. */
enum psd_status psd_worker_fit(struct psd_worker *worker, struct psd_task task, struct psd_error *err) PSD_MUST_CHECK;
/* Low-rank compression, last step: computes the gradients as products of left factors and summed right factors. Called
 * by a lane's thread. */
enum psd_status psd_worker_expand(struct psd_worker *worker, struct psd_task task,
				  struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_sparse.c ----. */

enum psd_status psd_worker_open_chunks(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Sparse exchange: copies the selected chunks of a gradient to the buffer that is sent. Called by a lane's thread. */
enum psd_status psd_worker_gather_chunks(struct psd_worker *worker, struct psd_task task,
					 struct psd_error *err) PSD_MUST_CHECK;
/* Sparse exchange: updates the parameters of the selected chunks with the sums over all workers. Called by a lane's
 * thread. */
enum psd_status psd_worker_apply_chunks(struct psd_worker *worker, struct psd_task task,
					struct psd_error *err) PSD_MUST_CHECK;
/* Sparse exchange: prepares the chunk selection of the next iteration, once the norms of all workers' chunks have
 * arrived. */
void psd_worker_choose_chunks(struct psd_worker *worker, struct psd_task task);
/* Sparse exchange in a replay with real workers: draws the next chunk selection at random, equal on all hosts. */
void psd_worker_draw_chunks(struct psd_worker *worker);

/* ---- worker_replay.c ----. */

enum psd_status psd_worker_open_replay(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Returns the memory of the messages that a replaying worker sends (is_sent) or receives. With real workers it sends
 * zeros, since NaNs or denormals would change the time that real workers need. */
void *psd_worker_replayed_bytes(const struct psd_worker *worker, bool is_sent);
/* Sparse exchange in a replay: advances the chunk selection to the task's iteration, since no operation of a replay
 * does that. */
void psd_worker_keep_up(struct psd_worker *worker, struct psd_task task);
/* Replay: starts a timer of sec seconds (the predicted duration) instead of executing the task; called as
 * psd_seam.work. */
void psd_worker_replay(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);
/* Replay: starts a timer of sec seconds during which the task uses the resource. Each resource has one timer. */
void psd_worker_set_timer(struct psd_worker *worker, enum psd_resource resource, struct psd_task task, double sec);
/* Replay: ends the operation of the first timer that is due. Returns false if no timer is due. */
bool psd_worker_take_timer(struct psd_worker *worker);
bool psd_worker_has_timer(const struct psd_worker *worker);
/* Makes the next wait of the event loop end when the next timer is due. */
void psd_worker_await_timer(struct psd_worker *worker);

/* ---- worker_load.c ----. */

/* Records the processor time used so far. Called when the first operation of an iteration begins. */
void psd_worker_watch_load(struct psd_worker *worker, uint32_t iteration);
void psd_worker_measure_load(struct psd_worker *worker, struct psd_worker_result *result);

/* ---- worker_pause.c ----. */

/* The functions of worker_pause.c are called by the event loop's thread. */

/* Returns the first iteration after `iteration` that has a pause before it, for a test, a checkpoint, a comparison of
 * workers, or a number of local steps; 0: there is none. */
uint32_t psd_worker_next_pause(const struct psd_worker *worker, uint32_t iteration);
/* Returns the number of samples that all workers have processed before `iteration`, from the start of training. */
uint64_t psd_worker_samples(const struct psd_worker *worker, uint64_t iteration);
/* If the interpreter waits for a pause: starts the pause's job, or lets the interpreter go on if nothing is due.
 * Returns false if it did neither. */
bool psd_worker_pause(struct psd_worker *worker);
/* Ends the job of a pause that had no error: starts the pause's next job, or lets the interpreter go on. */
void psd_worker_go_on(struct psd_worker *worker, const struct psd_job *job);
/* Takes the progress of an iteration whose losses are all known. The caller of the run gets it after the test that
 * follows the iteration, or at once if none does. */
void psd_worker_report_progress(struct psd_worker *worker, const struct psd_progress *progress);

/* ---- worker_checkpoint.c and worker_reshape.c; called by the thread that executes the device's operations ----. */

/* Writes this host's file of the checkpoint before `iteration`; host 0 also writes the file of parameters. PSD_EFILE: a
 * file cannot be created; PSD_ERUN: it cannot be written; PSD_EINVAL: a tensor's name is too long; PSD_ENOMEM. */
enum psd_status psd_worker_save(struct psd_worker *worker, uint32_t iteration, struct psd_error *err) PSD_MUST_CHECK;
/* Removes this host's later checkpoints of an earlier run, once all hosts have joined with the same first iteration.
 * PSD_EFILE: a file cannot be removed. */
enum psd_status psd_worker_begin_saving(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Reads this host's file of the checkpoint before options->first_iteration. PSD_EINVAL: it is damaged, or of another
 * run; PSD_EFILE: it cannot be opened; PSD_ENOMEM, PSD_ERUN as psd_state_read(). */
enum psd_status psd_worker_restore(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Reads a checkpoint that other hosts (options->from_hosts) or another system have written, see worker_reshape.c.
 * Parameters go into this host's memory only. Host 0 prints a line about values that begin anew. Statuses as
 * psd_worker_restore(); PSD_EINVAL also if model or optimiser differ. */
enum psd_status psd_worker_reshape(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Reads initial parameters and running statistics from the file named by the key 'train.start'. Host 0 prints a line
 * about values that the file lacks. PSD_EINVAL: the file has no tensor of this model, or one of another shape; other
 * statuses as psd_worker_restore(). */
enum psd_status psd_worker_read_start(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_soundness.c ----. */

struct psd_state;

/* On worker 0: returns PSD_ERUN if the loss of an iteration is infinite or not a number, unless the key
 * 'train.diverged' allows it. */
enum psd_status psd_worker_check_loss(struct psd_worker *worker, uint32_t iteration, double loss) PSD_MUST_CHECK;
/* Looks at the first n_parts parts of the state after `iterations` iterations, which must include all parameters, and
 * stores the digest of the parameters. PSD_ERUN: a value is infinite or not a number, and the key 'train.diverged' does
 * not allow it; statuses of psd_state_visit(). This function and the next three are called by the thread that executes
 * the device's operations. */
enum psd_status psd_worker_check_state(const struct psd_state *state, unsigned n_parts, uint32_t iterations,
				       struct psd_error *err) PSD_MUST_CHECK;
/* Checks the first n_parts parts of a state after they were read from the file at `path`. PSD_EINVAL: a value is
 * infinite or not a number; the text names file, tensor and element. */
enum psd_status psd_worker_check_read(const struct psd_state *state, unsigned n_parts, const char *path,
				      struct psd_error *err) PSD_MUST_CHECK;
/* Stores the digest of the parameters after `iterations` iterations, as psd_worker_check_state(). Does nothing if
 * workers are not compared in this run. */
enum psd_status psd_worker_look(struct psd_worker *worker, uint32_t iterations, struct psd_error *err) PSD_MUST_CHECK;
/* Returns the hash of this worker's processor, device and libraries, see psd_wire_parameters.arithmetic. */
uint64_t psd_worker_arithmetic(const struct psd_worker *worker);
/* Returns the digest of this worker's parameters after `iterations` iterations; all zeros: it is not known. */
struct psd_wire_parameters psd_worker_digest(const struct psd_worker *worker, uint32_t iterations);
/* Compares the digests of all workers' parameters after `iterations` iterations. Leaves out digests that are not known,
 * and workers whose arithmetic differs from worker 0's. PSD_ERUN: digests differ; the text names the workers and the
 * tensor. */
enum psd_status psd_worker_compare(const struct psd_worker *worker, const struct psd_wire_parameters parameters[],
				   uint32_t iterations, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_trace.c ----. */

/* Records in the trace that an operation was executed on this host. start_sec, end_sec: times of psd_worker_now(). */
void psd_worker_record(struct psd_worker *worker, struct psd_task task, double start_sec, double end_sec);
/* Record in the trace that a message from a peer begins to arrive (_begin), and that it has arrived completely
 * (_arrival). */
void psd_worker_record_begin(struct psd_worker *worker, unsigned peer, uint32_t op);
void psd_worker_record_arrival(struct psd_worker *worker, unsigned peer, struct psd_task task, uint64_t bytes);

/* ---- worker_messages.c ----. */

/* Starts to send the messages of a send operation. Returns false if this host has nothing to send. Called as
 * psd_seam.send. */
bool psd_worker_send(void *context, unsigned host, struct psd_task task);
/* Tells worker 0 that this host is ready for a collective; called as psd_seam.announce. */
void psd_worker_announce(void *context, struct psd_task task);
/* On worker 0: tells all workers which collective is next; called as psd_seam.choose. */
void psd_worker_choose(void *context, struct psd_task task);
/* Returns the number of messages that a receive operation expects on this host; called as psd_arrivals_fn. */
uint32_t psd_worker_arrivals(const void *context, const struct psd_op *receive, unsigned host);
/* Sends the loss of this worker's batch, and the number of its samples classified correctly, to worker 0. */
void psd_worker_report(struct psd_worker *worker, uint32_t iteration, double loss, uint32_t correct);
/* On worker 0: sends the number of local SGD steps of window number `window_number` to all hosts. */
void psd_worker_send_steps(struct psd_worker *worker, uint32_t window_number, uint32_t steps);
/* Sends a heartbeat to all peers, unless the last one was sent a short time ago. is_computing: a job executes here;
 * is_busy: a job other than a library's sum does. */
void psd_worker_send_heartbeat(struct psd_worker *worker, bool is_computing, bool is_busy);
/* Tells all peers that this host gives up. status, err: the reason. */
void psd_worker_send_failure(struct psd_worker *worker, enum psd_status status, const struct psd_error *err);
/* Tells all peers that this host is done: it has executed its last operation and written its last checkpoint. */
void psd_worker_send_done(struct psd_worker *worker);
/* Sends the last message to all peers: this host knows that all hosts are done, and leaves. */
void psd_worker_send_bye(struct psd_worker *worker, const struct psd_wire_bye *bye);

/* True if this host and host number `peer` are on the same node. */
bool psd_worker_is_near(const struct psd_worker *worker, unsigned peer);
/* Finds the memory of the message that host `from` sends to host `to` in the task; this host is one of both. Writes it
 * to `segments` and returns the number of segments. */
unsigned psd_worker_segments(const struct psd_worker *worker, struct psd_task task, unsigned from, unsigned to,
			     struct iovec segments[PSD_SEGMENTS_MAX]);
/* On worker 0: stores a worker's report of its loss. After the last worker's report of an iteration, it reports the
 * progress. */
void psd_worker_take_report(struct psd_worker *worker, unsigned from, uint32_t iteration,
			    const struct psd_wire_report *report);

/* True if the bytes of a message to or from this peer are counted: the peer is on another node, and the iteration is
 * measured. */
bool psd_worker_is_counted(const struct psd_worker *worker, unsigned peer, uint32_t iteration);
void psd_worker_count_sent(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head);

/* ---- worker_steps.c ----. */

/* Starts a collective; called as psd_seam.collective. */
void psd_worker_collective(void *context, struct psd_task task);
/* Starts a collective that psd executes itself, step by step. */
void psd_worker_begin_transfer(struct psd_worker *worker, struct psd_task task);
/* Replay: goes on with the collective after the timer of the resource NIC has ended. */
void psd_worker_continue(struct psd_worker *worker);
/* Sends the message of the collective's next step, unless a message must arrive first, or the step before is still
 * being sent. */
void psd_worker_advance(struct psd_worker *worker);
/* Returns true, only once, when the collective has sent and received the messages of all steps. */
bool psd_worker_take_steps_done(struct psd_worker *worker);
/* psd_worker_step() returns the message that `rank` sends in step number `step` of the task's collective,
 * psd_worker_step_bytes() the payload bytes of that message. */
struct psd_step psd_worker_step(const struct psd_worker *worker, struct psd_task task, unsigned rank, unsigned step);
uint64_t psd_worker_step_bytes(const struct psd_worker *worker, struct psd_task task, const struct psd_step *step);
/* Sets *destination to the memory for the message that step `number` receives. *step: that message. */
void psd_worker_step_destination(const struct psd_worker *worker, struct psd_task task, const struct psd_step *step,
				 unsigned number, struct psd_destination *destination);
/* Returns the first step, from number `step` on, in which this worker receives from the peer; the number of steps if
 * there is none. */
unsigned psd_worker_next_from(const struct psd_worker *worker, struct psd_task task, unsigned peer, unsigned step);
/* Goes on with the collective that is being executed, after the message of its step next_receive has arrived. */
void psd_worker_step_arrived(struct psd_worker *worker);

/* ---- worker_library.c ----. */

/* Opens the library that executes the plan's all-reduces, if the plan has one. fds: connections between all hosts,
 * which carry nothing else yet; until_sec: deadline (psd_socket_now_sec()). Statuses as psd_worker_check_library();
 * PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_worker_open_library(struct psd_worker *worker, const struct psd_mesh_options *mesh, const int fds[],
					double until_sec, struct psd_error *err) PSD_MUST_CHECK;
/* Queues a task's all-reduce by the library as a job of the NIC lane, whose thread executes it. */
void psd_worker_start_sum(struct psd_worker *worker, struct psd_task task);
/* psd_worker_summed() goes on with a task's all-reduce after its job in the NIC lane, psd_worker_transfer_is_over()
 * after psd's own transfer between nodes. They start the other part, or end the operation. */
void psd_worker_summed(struct psd_worker *worker, struct psd_task task);
void psd_worker_transfer_is_over(struct psd_worker *worker, struct psd_task task);
/* If the library sums inside nodes: returns the payload of the transfer between the leaders of the nodes. Otherwise
 * returns `payload`. */
struct psd_payload psd_worker_between_nodes(const struct psd_worker *worker, struct psd_payload payload);
/* Executes the library's all-reduce of a task. If the library sums inside nodes, it executes the part before psd's
 * transfer between nodes, or the part after it. Called by the NIC lane's thread. */
enum psd_status psd_worker_sum(struct psd_worker *worker, struct psd_task task, struct psd_error *err) PSD_MUST_CHECK;
/* True if a library's all-reduce executes that only other hosts can end. Its thread then stays until the process
 * ends. */
bool psd_worker_is_held(struct psd_worker *worker);
/* Closes the plan's library. Call it after its lane is closed. is_orderly: all other hosts close their library, too. */
void psd_worker_close_library(struct psd_worker *worker, bool is_orderly);

/* ---- worker_arrivals.c ----. */

struct psd_connections_owner psd_worker_owner(struct psd_worker *worker);

/* ---- worker_stalls.c ----. */

/* Decides whether the end of a connection to a peer is an error, and names the host at fault; called as
 * psd_connections_owner.lost. */
enum psd_status psd_worker_lost(void *context, unsigned peer, int error_number, struct psd_error *err);
/* Handles the message that a peer gives up with this status. */
void psd_worker_peer_failed(struct psd_worker *worker, unsigned peer, enum psd_status status);
/* True if this host and all other hosts are done. */
bool psd_worker_are_all_done(struct psd_worker *worker);
/* Record that a piece of work outside of operations has ended, by which the event loop sees progress: a piece of the
 * start (psd_worker_moved()), a batch of a test, a tensor of a checkpoint. Called by the thread that executes the
 * device's operations. */
void psd_worker_moved(struct psd_worker *worker);
void psd_worker_moved_test(struct psd_worker *worker);
void psd_worker_moved_save(struct psd_worker *worker);
/* Writes a sign of life for the process that has started this one. place: present activity of the event loop's
 * thread. */
void psd_worker_beat(struct psd_worker *worker, enum psd_pulse_place place);
/* Writes a sign of life before the event loop's thread executes the task's operation itself. now_sec: current time
 * (psd_socket_now_sec()). */
void psd_worker_beat_at(struct psd_worker *worker, struct psd_task task, double now_sec);
/* Waits until the job that prepares device, memory and data has ended. PSD_ELOST: the job makes no progress. */
enum psd_status psd_worker_await_opening(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Waits until no lane has a job, except a library's sum. Returns false if a job does not end. */
bool psd_worker_await_jobs(struct psd_worker *worker);
/* Checks whether a host has been stalled for longer than options->stall_sec. PSD_ELOST: a host has; the text names the
 * host and the operation for which this host waits. */
enum psd_status psd_worker_check_stall(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_metrics.c ----. */

/* Returns the range of the iterations that are measured: all after the warm-up. */
struct psd_iterations psd_worker_measured(const struct psd_worker *worker);
/* Computes this host's measurements into *result, after the last iteration. PSD_ENOMEM. */
enum psd_status psd_worker_measure(struct psd_worker *worker, struct psd_worker_result *result,
				   struct psd_error *err) PSD_MUST_CHECK;
/* On worker 0: adds the measurements of all other hosts to *result, once each host has sent its BYE. */
void psd_worker_gather(struct psd_worker *worker, struct psd_worker_result *result);

#endif
