/* State of a session, and functions that its files share. Private to real/session/. A lane is the queue of jobs of
 * one resource (device, CPU, NIC), with the thread that executes them. A job executes one operation, or the pause
 * between two iterations. The event loop's thread owns the whole state. A job uses only the host, its work and its
 * own struct psd_job. While the job of a pause executes, no other job executes. Files call only those above them in
 * this header. */
#ifndef PSD_REAL_WORKER_PARTS_H
#define PSD_REAL_WORKER_PARTS_H

#include "real/base/lane.h"
#include "real/base/machine.h"
#include "real/net/connections.h"
#include "real/net/emulated.h"
#include "real/replay/repeated_memory.h"
#include "real/replay/timers.h"
#include "real/session/pulse.h"
#include "real/session/worker.h"
#include "real/work/work.h"

/* One operation, or the pause before an iteration, to be executed by a lane. */
struct psd_job {
	struct psd_worker *worker;
	struct psd_task task;
	enum psd_status status;
	struct psd_error err;
	uint64_t first_mark; /* asynchronous device: number of the mark in its stream before the job's work */
	uint64_t mark;	     /* asynchronous device: number of the mark in its stream after the job's work */
	double queued_sec;   /* time at which the job was queued (psd_socket_now_sec()) */
	/* Asynchronous device: time at which the job's work started (psd_worker_now()), computed as its end minus its
	 * duration. */
	double start_sec;
	/* Duration of the job's work, seconds. */
	double sec;
	/* Time in which the thread or the device computed, seconds. If several threads compute, it is the duration of
	 * the job. */
	double busy_sec;
	double cpu_sec; /* processor time that the thread used, seconds */
	bool is_marked;
	/* The event loop's thread has already executed the job; the interpreter is told later that the job has
	 * ended. */
	bool is_done_at_once;
	/* The job executes the pause before the task's iteration, see worker_pause.c; false: it executes an
	 * operation. */
	bool is_pause;
	/* The job of a pause executes a test; false: it writes a checkpoint, or computes digests to compare the
	 * parameters of workers. With is_pause false, the job executes a test before its operation. */
	bool is_test;
	/* The job of a pause begins to gather parameters, see worker_parameters.c; then is_test has no meaning. */
	bool is_gathering;
	double test_start_sec; /* time at which the test started (psd_worker_now()) */
	double test_sec;       /* duration of the test, seconds */
	uint64_t test_labels;  /* number of labels that were tested; 0: the job is not a test */
	uint64_t test_correct; /* number of these labels that were predicted correctly */
};

/* Jobs of one resource, in a ring. Job number i, counted from 0 since the start, is jobs[i % PSD_LANE_JOBS]. */
struct psd_jobs {
	struct psd_job jobs[PSD_LANE_JOBS];
	uint64_t n_queued, n_over;
	struct psd_lane lane;
	bool has_lane;
	double over_sec; /* time at which the last finished job ended (psd_worker_now()) */
};

/* Result of a test. */
struct psd_tested {
	bool is_over;
	double start_sec; /* time at which the parameters were complete that the test uses (psd_worker_now()) */
	uint64_t labels, correct;
};

/* Pauses between iterations, for tests and checkpoints, and the reports of progress. The progress of an iteration is
 * reported when all its losses are known; if a test follows the iteration, when the test has ended. See
 * worker_pause.c. */
struct psd_pauses {
	/* Duration of the pause before each iteration, seconds; shape (n_iterations + 1). The last entry is the pause
	 * at the end of the run. */
	double *sec;
	struct psd_tested *tests; /* the test before each iteration; shape (n_iterations + 1) */
	bool is_under_way;	  /* the lane of the device is executing the job of a pause */
	bool is_test_over;	  /* the test of this pause has ended, and its checkpoint follows */
	bool has_progress;	  /* all losses of the iteration in `progress` are known */
	struct psd_progress progress;
};

enum psd_gathering_state {
	PSD_GATHERING_NONE,
	PSD_GATHERING_BEGINS,  /* the lane of the device copies this host's part */
	PSD_GATHERING_GOES_ON, /* messages may arrive, or leave */
};

/* Gathering of all parameters on worker 0, in a pause. See worker_parameters.c. */
struct psd_gathering {
	enum psd_gathering_state state;
	uint32_t iteration; /* iteration before which the pause is */
	bool is_sending;    /* a message has not left completely */
	/* On worker 0, for each other worker: next item (bucket) whose part it sends. On another worker, for itself:
	 * the next one that it sends. If it equals the number of items, none is left. Shape (n_hosts). */
	unsigned *next;
	double begun_sec; /* time of the beginning (psd_worker_now()) */
};

/* Local SGD in which the number of steps (iterations between two exchanges of parameters) depends on the loss. It is
 * chosen anew for each window, a fixed number of iterations (struct psd_local_sgd). All hosts know the numbers of
 * steps, but only worker 0 knows the losses. See worker_local.c. */
struct psd_quality {
	/* Local SGD: number of steps in the last even-numbered window [0] and in the last odd-numbered window [1],
	 * see struct psd_period; 0: as in the plan. */
	uint32_t steps[2];
	uint32_t n_known; /* number of windows whose number of steps is known */
	/* Number of steps that was received for the next window; 0: not received yet. It is used from the pause before
	 * that window on. */
	uint32_t received_steps;
	uint32_t n_losses_known;  /* number of iterations whose mean loss over all workers is known */
	uint32_t first_iteration; /* first iteration whose loss is known */
	double first_loss, lowest_loss;
	double sum; /* sum of the `n` losses that are known since worker 0 last chose a number of steps */
	uint32_t n;
	/* Values of the fields above, in the order in which a checkpoint stores them; NULL: the number of steps is
	 * constant. */
	double *saved;
};

/* Processor time that this worker and its machine have used. See worker_load.c. */
struct psd_load {
	double jobs_cpu_sec; /* processor time of all jobs that have ended, seconds */
	/* Processor time used outside of jobs until the start of each iteration, counted from the start of the process,
	 * seconds; shape (n_iterations). */
	double *beside_sec;
	uint32_t n_watched; /* number of iterations that have begun, for which beside_sec is set */
	bool is_watched, has_machine_from;
	/* Processor time of the event loop's thread before the first measured iteration, seconds. */
	double own_from_sec;
	double process_from_sec; /* processor time of the process before the first measured iteration, seconds */
	struct psd_machine_time machine_from;
};

/* Signs of life of this worker and of the other hosts. last_move_sec is a time of psd_worker_now(); the other times are
 * of psd_socket_now_sec(). See worker_stalls.c. */
struct psd_liveness {
	double last_move_sec;
	double turned_sec;
	/* Time of the event loop's first turn after this process was last suspended, or after its start. */
	double awake_sec;
	double alive_sec; /* time at which this host last sent a heartbeat */
	/* Time of the last heartbeat of a peer whose threads execute work other than an all-reduce of a library. */
	double busy_sec;
	/* Time at which this host, after finishing its own work, lost a peer that had not said that it has finished; 0:
	 * no such peer was lost. */
	double doubt_sec;
	/* Longest duration of each operation so far, seconds; 0: it was not executed before; shape (n_ops). */
	double *longest_sec;
};

/* Losses that the workers report to worker 0. Other workers use only n_own. See worker_messages.c. */
struct psd_losses {
	uint32_t n_own; /* number of iterations whose loss this worker has sent to worker 0 */
	/* sums over the micro-batches of the present iteration that have passed: loss, and correct labels */
	double own_loss;
	uint32_t own_correct;
	uint32_t window; /* largest number of iterations of which only some workers' losses may be known */
	struct psd_wire_report *reports; /* reports of iteration i are in row i % window; shape (window, workers) */
	uint32_t *n_reports;
	/* Digests of all workers' parameters, collected for a comparison; shape (workers). */
	struct psd_wire_parameters *parameters;
	uint32_t n_known; /* number of iterations of which the reports of all workers have arrived */
	double last;
};

/* State of a collective that this worker executes itself, step by step. */
struct psd_transfer {
	struct psd_task task;
	bool is_active;
	/* In a replay: the transfer begins when a timer ends, which replaces the time that software needs. */
	bool is_waiting;
	bool is_sending;
	/* Since the last turn of the event loop, the transport has accepted all bytes of a step's message. So a message
	 * that was left unread may be accepted now. */
	bool has_left;
	/* The message of step next_receive is in worker->memory.staging, because the values to which it must be added
	 * are still being sent. */
	bool has_staged;
	unsigned n_steps;
	unsigned next_send, next_receive;
};

/* Next messages that this host expects from one peer for one operation. */
struct psd_expected {
	uint32_t next_iteration; /* iteration of the next message of tensors */
	/* Iteration of the next message READY or BEGIN that is expected from the peer. If the peer is this host itself:
	 * iteration of the next READY that it sends to worker 0. */
	uint32_t next_signal;
	/* Time at which the next message of tensors began to arrive (psd_worker_now()); 0: it has not begun to
	 * arrive. */
	double start_sec;
};

struct psd_peer {
	struct psd_expected *ops; /* messages expected from this peer; shape (operations of the program) */
	uint8_t small[PSD_WIRE_SMALL_BYTES];
	/* The peer has said that it has executed all its operations and written its last checkpoint. */
	bool is_done;
	bool has_sent_bye;
	struct psd_wire_bye bye;
};

enum psd_worker_phase {
	PSD_PHASE_OPENING,
	PSD_PHASE_GOING,   /* this host executes operations */
	PSD_PHASE_PARTING, /* this host has finished, and waits until all hosts have finished */
	/* All hosts have finished, and this host waits for the message BYE from each of them. */
	PSD_PHASE_LEAVING,
	PSD_PHASE_OVER,
};

struct psd_worker {
	struct psd_host host;
	struct psd_work work;
	/* Settings of the replay; NULL: this worker computes. They are NULL on real workers of a replay, too. */
	const struct psd_replay *replay;
	/* This worker belongs to a replay in which some workers compute and the others replay. */
	bool is_beside_others;
	/* Host 0's clock minus this host's clock, seconds; added to the times in the trace. */
	double clock_offset_sec;
	enum psd_worker_phase phase;

	struct psd_duties duties;
	struct psd_interpreter interpreter;
	int wake_fd;
	/* seconds that an emulated device still has to wait, see psd_worker_options.slowed_ratio; below 0: it waited
	 * that much too long */
	double owed_sec;
	struct psd_jobs jobs[PSD_RESOURCES];
	struct psd_timers timers;
	/* In a replay: memory into which all messages are received; their contents are not used. */
	struct psd_repeated_memory repeated;
	/* In a replay with real workers: zeros that replaying workers send. They are never overwritten. */
	struct psd_repeated_memory zeros;
	struct psd_load load;
	struct psd_liveness liveness;
	struct psd_job opening; /* first job of the device's lane, which prepares device, memory and data */
	/* A job on this host does not end. Its thread, and all memory that it uses, are kept until the process ends. */
	bool is_stuck;
	/* For each resource: its operation has ended, but the interpreter has not been told yet. */
	bool is_over[PSD_RESOURCES];
	/* Duration of each operation when it was last executed, seconds; 0: it was not executed before; shape
	 * (n_ops). */
	double *last_sec;

	struct psd_mesh_clock clock;
	unsigned n_connections; /* number of connections between two hosts, >= 1 */
	struct psd_connections *connections;
	/* Module that delays messages as the emulated links would; NULL: no links are emulated. */
	struct psd_emulated *emulated;
	struct psd_rate_limit *limit; /* budget of this node's hosts; NULL: this host shares none */
	struct psd_peer *peers;
	/* Number of messages of the current send operation of which the transports have not accepted all bytes. */
	unsigned n_leaving;
	bool is_coordinated; /* worker 0 decides which collective all workers execute next */
	struct psd_transfer transfer;
	uint64_t sent_bytes;	 /* payload bytes sent to hosts on other nodes in measured iterations */
	uint64_t received_bytes; /* payload bytes received from hosts on other nodes in measured iterations */

	struct psd_losses losses;
	struct psd_quality quality;
	/* Iteration before which workers had equal parameters, see struct psd_period; and its value in a checkpoint. */
	uint32_t equal_iteration;
	double *saved_equal;
	struct psd_worker_result result; /* measurements of this host; complete when this host has finished */
	struct psd_pauses pauses;
	struct psd_gathering gathering;

	enum psd_status status; /* first error in a callback that cannot return a status; PSD_OK: no error */
	struct psd_error *err;
	/* *err already names the host that caused the error, so this host's name is not put before it. */
	bool is_blamed;
	/* All hosts have finished: each has said so, or one has said it about all in its message BYE. */
	bool are_all_done;
	struct psd_error doubt; /* error to report if a lost peer had not finished, see liveness.doubt_sec */
};

/* ---- worker_parts.c: payload of operations ---- */

/* Returns the current time of the worker's clock, seconds; called as psd_seam.now. context: the struct psd_worker. */
double psd_worker_now(void *context);
/* Returns the payload bytes that a message has in the program. from, to: numbers of the sending and the receiving host.
 * In a replay with a payload scale, fewer bytes are really sent. */
uint64_t psd_worker_message_bytes(const struct psd_worker *worker, const struct psd_wire_head *head, unsigned from,
				  unsigned to);
/* Returns the payload (elements to transfer) of a send or a collective in the task's iteration. It is the payload in
 * the program; for a sparse exchange, that of the selected chunks. */
struct psd_payload psd_worker_carried(const struct psd_worker *worker, struct psd_task task);
/* Returns the payload that is really sent. It is that of psd_worker_carried(); in a replay with a payload scale, a
 * fraction of it. */
struct psd_payload psd_worker_payload(const struct psd_worker *worker, struct psd_task task);
/* True if the task cannot start yet, because the chunk selection of its iteration is not known. */
bool psd_worker_awaits_choice(const struct psd_worker *worker, struct psd_task task);
/* Chunks in a replay: advances their selection to the iteration. In training, operations do this. */
void psd_worker_draw_until(const struct psd_worker *worker, uint32_t iteration);
/* Returns the memory of the messages that a replaying worker sends (is_sent) or receives (not is_sent). In a replay
 * with real workers it sends zeros, because NaNs or denormals would change the time that real workers need. */
void *psd_worker_replayed_bytes(const struct psd_worker *worker, bool is_sent);
/* Finds the memory of the message that host `from` sends to host `to` in the task. This host must be one of the two.
 * Writes the memory to `segments` and returns the number of segments. */
unsigned psd_worker_segments(const struct psd_worker *worker, struct psd_task task, unsigned from, unsigned to,
			     struct iovec segments[PSD_SEGMENTS_MAX]);
/* Returns the number of messages that a receive operation expects on this host; called as psd_arrivals_fn. */
uint32_t psd_worker_arrivals(const void *context, const struct psd_op *receive, unsigned host);
/* True if this host and host number `peer` are on the same node. */
bool psd_worker_is_near(const struct psd_worker *worker, unsigned peer);
/* True if the number of local SGD steps depends on the loss. Always false in a replay. */
bool psd_worker_follows_loss(const struct psd_worker *worker);
enum { PSD_WARMUP_ITERATIONS = 2 }; /* not measured: first touches of memory, TCP windows */
/* Returns the iterations that are measured: all after the warm-up, if there are enough after those that a prediction
 * leaves out, see psd_run_first_measured(). */
struct psd_iterations psd_worker_measured(const struct psd_worker *worker);
/* Late updates: returns the number of iterations after which the run may end so that only iterations count that wait
 * for updates as all later ones do; 0: only these count. */
uint32_t psd_worker_needed(const struct psd_worker *worker);
/* Returns the number of iterations that are measured as one unit; a unit begins at a multiple of this number. */
uint32_t psd_worker_unit(const struct psd_worker *worker);
/* True if the bytes of a message to or from this peer are counted in the measurements: the peer is on another node, and
 * the iteration is measured. */
bool psd_worker_is_counted(const struct psd_worker *worker, unsigned peer, uint32_t iteration);
void psd_worker_count_sent(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head);

/* ---- worker_pulse.c ---- */

/* Time limit of an operation: PSD_MOST_TIMES_LONGEST times its longest duration so far, and at least stall_sec. At its
 * first execution, when data and memory may be late: PSD_MOST_TIMES_STALL times stall_sec. */
enum { PSD_MOST_TIMES_LONGEST = 10, PSD_MOST_TIMES_STALL = 10 };
/* additional seconds until a host gives up that cannot tell which host is stalled, so that others give up first */
#define PSD_LATER_SEC 1.0
/* Returns the longest time that an operation may take before this host counts as stalled, seconds. */
double psd_worker_limit_of_op(const struct psd_worker *worker, uint32_t op);
/* Writes a sign of life for the process that has started this one. place: current activity of the event loop's
 * thread. */
void psd_worker_beat(struct psd_worker *worker, enum psd_pulse_place place);
/* Writes a sign of life before the event loop's thread itself executes the task's operation. now_sec: current time
 * (psd_socket_now_sec()). */
void psd_worker_beat_at(struct psd_worker *worker, struct psd_task task, double now_sec);

/* ---- worker_load.c ---- */

/* Records the processor time used so far. Called when the first operation of an iteration begins. */
void psd_worker_watch_load(struct psd_worker *worker, uint32_t iteration);
void psd_worker_measure_load(struct psd_worker *worker, struct psd_worker_result *result);

/* ---- worker_jobs.c ---- */

/* Starts to execute an operation on its resource; called as psd_seam.work. context: the struct psd_worker; host: always
 * this host; sec: predicted duration in seconds, not used here. */
void psd_worker_work(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);
/* Starts the threads of a host that trains. PSD_ERUN: a thread cannot be started. */
enum psd_status psd_worker_open_lanes(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Starts the NIC's thread, which calls a library, and opens the library in it. */
enum psd_status psd_worker_open_sums(struct psd_worker *worker, const union psd_wire_payload *invitation,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Returns the lane that executes operation number `op`. It is the lane of the operation's resource, unless the device
 * executes the operation in place of that resource (psd_work_row.follows_device). */
enum psd_resource psd_worker_lane(const struct psd_worker *worker, uint32_t op);
/* Returns the compute speed of this host's node, divided by its normal speed (key `cluster.slow.compute`). */
double psd_worker_speed_ratio(const struct psd_worker *worker);
/* Returns the oldest job of a lane that has not ended. If all have ended, returns the next entry of the ring, which is
 * free. */
struct psd_job *psd_worker_job(struct psd_worker *worker, enum psd_resource lane);

/* ---- worker_trace.c ---- */

/* Records in the trace that an operation was executed on this host. start_sec, end_sec: times of psd_worker_now(). */
void psd_worker_record(struct psd_worker *worker, struct psd_task task, double start_sec, double end_sec);
/* Record in the trace that a message from a peer has begun to arrive (_begin), or has arrived completely (_arrival). */
void psd_worker_record_begin(struct psd_worker *worker, unsigned peer, uint32_t op);
void psd_worker_record_arrival(struct psd_worker *worker, unsigned peer, struct psd_task task, uint64_t bytes);

/* ---- worker_messages.c ---- */

/* Starts to send the messages of a send operation. Returns false if this host has nothing to send. Called as
 * psd_seam.send. */
bool psd_worker_send(void *context, unsigned host, struct psd_task task);
/* Tells worker 0 that this host is ready for a collective; called as psd_seam.announce. */
void psd_worker_announce(void *context, struct psd_task task);
/* On worker 0: tells all workers which collective they must execute next; called as psd_seam.choose. */
void psd_worker_choose(void *context, struct psd_task task);
/* Sends a message REPORT to worker 0. */
void psd_worker_send_report(struct psd_worker *worker, uint32_t iteration, const struct psd_wire_report *report);
/* On worker 0: sends the number of local SGD steps of window number `window_number` to all hosts. */
void psd_worker_send_steps(struct psd_worker *worker, uint32_t window_number, uint32_t steps);
/* Sends a heartbeat to all peers, unless the last one was sent a short time ago. is_computing: this host is executing a
 * job; is_busy: it is executing a job that is not an all-reduce of a library. */
void psd_worker_send_heartbeat(struct psd_worker *worker, bool is_computing, bool is_busy);
/* Tells all peers that this host gives up. status, err: the cause. */
void psd_worker_send_failure(struct psd_worker *worker, enum psd_status status, const struct psd_error *err);
/* Tells all peers that this host has finished: it has executed its last operation and written its last checkpoint. */
void psd_worker_send_done(struct psd_worker *worker);
/* Sends the last message, BYE, to all peers: this host knows that all hosts have finished, and will close its
 * connections. */
void psd_worker_send_bye(struct psd_worker *worker, const struct psd_wire_bye *bye);

/* ---- worker_steps.c ---- */

/* Starts a collective that psd executes itself, step by step, not by a library. */
void psd_worker_begin_transfer(struct psd_worker *worker, struct psd_task task);
/* In a replay: continues the collective after the timer of the resource NIC has ended. */
void psd_worker_continue(struct psd_worker *worker);
/* Sends the message of the collective's next step. Does nothing if another message must arrive before, or if the
 * message of the previous step is still being sent. */
void psd_worker_advance(struct psd_worker *worker);
/* Returns true if the collective has sent and received the messages of all steps. It returns true only once for each
 * collective. */
bool psd_worker_take_steps_done(struct psd_worker *worker);
/* psd_worker_step() returns the message that `rank` sends in step number `step` (from 0) of the task's collective.
 * psd_worker_step_bytes() returns the payload bytes of such a message. */
struct psd_step psd_worker_step(const struct psd_worker *worker, struct psd_task task, unsigned rank, unsigned step);
uint64_t psd_worker_step_bytes(const struct psd_worker *worker, struct psd_task task, const struct psd_step *step);
/* Sets *destination to the memory for the message that this worker receives in step `number` of the task's collective.
 * step: that message. */
void psd_worker_step_destination(const struct psd_worker *worker, struct psd_task task, const struct psd_step *step,
				 unsigned number, struct psd_destination *destination);
/* Returns the first step in which this worker receives a message from the peer, beginning the search with step number
 * `step`. If there is none, returns the number of steps. */
unsigned psd_worker_next_from(const struct psd_worker *worker, struct psd_task task, unsigned peer, unsigned step);
/* Continues the current collective after the message of its step next_receive has arrived. */
void psd_worker_step_arrived(struct psd_worker *worker);

/* ---- worker_collectives.c ---- */

/* Starts a collective; called as psd_seam.collective. */
void psd_worker_collective(void *context, struct psd_task task);
/* Continue or end a task's all-reduce after a part of the library (psd_worker_summed()), and after psd's own transfer.
 * Each starts the next part or, after the last part, ends the operation. */
void psd_worker_summed(struct psd_worker *worker, struct psd_task task);
void psd_worker_transfer_is_over(struct psd_worker *worker, struct psd_task task);

/* ---- worker_streams.c: local SGD in which fragments take turns ---- */

/* Prepares worker->equal_iteration, which checkpoints then store. PSD_ENOMEM. */
enum psd_status psd_worker_open_streams(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_quality.c: local SGD in which the number of steps depends on the loss; replays have none ---- */

enum psd_status psd_worker_open_quality(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Returns the first iteration that cannot begin until a further number of steps is known; UINT64_MAX: there is
 * none. */
uint64_t psd_worker_next_steps(const struct psd_worker *worker);
/* True if `iteration`, before which the interpreter waits, cannot begin yet. Either the number of steps of its window
 * is not known, or on worker 0 the loss of an earlier iteration is missing. */
bool psd_worker_awaits_steps(const struct psd_worker *worker, uint32_t iteration);
/* On worker 0: records the loss of an iteration, which is the mean over all workers. At the end of a window of
 * iterations (struct psd_local_sgd) it chooses the number of steps of the next window and sends it to all hosts. */
void psd_worker_follow_loss(struct psd_worker *worker, uint32_t iteration, double loss);
/* True if the number of local SGD steps is known for the window to which this iteration belongs. */
bool psd_worker_knows_steps(const struct psd_worker *worker, uint32_t iteration);
/* Stores the number of local SGD steps that worker 0 has sent for the next window of iterations (struct psd_local_sgd).
 * psd_worker_take_steps() makes it valid. */
void psd_worker_receive_steps(struct psd_worker *worker, uint32_t steps);
/* If the number of steps of the next window must be decided before this iteration: makes the received number valid.
 * Called in the pause before the iteration, when no loss or number is missing. */
void psd_worker_take_steps(struct psd_worker *worker, uint32_t iteration);

/* ---- worker_parameters.c: parameters of all workers, where each keeps a part ---- */

enum psd_status psd_worker_open_gathering(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* In the pause before `iteration`: begins to gather parameters on worker 0. Returns false if it has begun already. */
bool psd_worker_gather_parameters(struct psd_worker *worker, uint32_t iteration);
/* Continues after the job of psd_worker_gather_parameters(). */
void psd_worker_begin_gathering(struct psd_worker *worker);
/* True if worker 0 has all parameters as they are before `iteration`, or if another worker has sent its part. */
bool psd_worker_has_gathered(const struct psd_worker *worker, uint32_t iteration);
/* Frees the gathered parameters, at the end of the pause. Does nothing if there are none. */
void psd_worker_end_gathering(struct psd_worker *worker);
/* True for a message with a part of the parameters. */
bool psd_worker_is_of_gathering(const struct psd_worker *worker, const struct psd_wire_head *head);
/* True if the peer may send this part, now or later. */
bool psd_worker_expects_part(const struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head);
/* True if the part may be received now; sets *destination. */
bool psd_worker_takes_part(const struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head,
			   struct psd_destination *destination);
/* Record that a part has arrived from a peer, or has left this host. */
void psd_worker_part_arrived(struct psd_worker *worker, unsigned peer);
void psd_worker_part_left(struct psd_worker *worker);

/* ---- worker_pause.c ---- */

/* Returns the first iteration after `iteration` that has a pause before it. A pause is for a test, a checkpoint, a
 * comparison of workers, or a new number of local steps. Returns 0 if there is none. */
uint32_t psd_worker_next_pause(const struct psd_worker *worker, uint32_t iteration);
/* If the interpreter waits for a pause: starts the pause's job or, if the pause has nothing to do, lets the interpreter
 * continue. Returns false if it did neither. */
bool psd_worker_pause(struct psd_worker *worker);
/* Returns the number of test samples, if a batch of this worker has more, so that it cannot test; otherwise 0. */
uint64_t psd_worker_untested(const struct psd_worker *worker);
/* True if the task is the first operation of an iteration, before which its job is to test worker 0. Asynchronous
 * workers do not wait for each other at tests, so that these are no pauses. */
bool psd_worker_takes_test(const struct psd_worker *worker, struct psd_task task);
/* Executes the test of a job, whose fields about the test and its status it sets. Called by the device's lane. */
void psd_worker_test(struct psd_job *job);
/* Handles the end of a test before an operation. */
void psd_worker_tested(struct psd_worker *worker, const struct psd_job *job);
/* Handles the end of a pause's job without error: starts the pause's next job, or lets the interpreter continue. */
void psd_worker_go_on(struct psd_worker *worker, const struct psd_job *job);
/* Stores the progress of an iteration whose losses are all known. If a test follows the iteration, the callback
 * progress() gets it after the test, otherwise immediately. */
void psd_worker_report_progress(struct psd_worker *worker, const struct psd_progress *progress);

/* ---- worker_reports.c ---- */

/* Takes the loss of this worker's batch, and the number of samples in the batch that were classified correctly. After
 * the last micro-batch of an iteration it sends their sums to worker 0. task: the end of the forward pass. */
void psd_worker_report(struct psd_worker *worker, struct psd_task task, double loss, uint32_t correct);
/* On worker 0: stores the report of worker `from` about its loss. After the last worker's report of an iteration, it
 * reports the progress. */
void psd_worker_take_report(struct psd_worker *worker, unsigned from, uint32_t iteration,
			    const struct psd_wire_report *report);

/* ---- worker_stalls.c ---- */

/* Decides whether the end of a connection to a peer is an error, and names the host that caused it; called as
 * psd_connections_owner.lost. error_number: errno; 0: the peer closed the connection. */
enum psd_status psd_worker_lost(void *context, unsigned peer, int error_number, struct psd_error *err);
/* Handles the message of a peer that gives up with this status. */
void psd_worker_peer_failed(struct psd_worker *worker, unsigned peer, enum psd_status status);
/* True if this host and all other hosts have finished. */
bool psd_worker_are_all_done(struct psd_worker *worker);
/* Waits until the job that prepares device, memory and data has ended. PSD_ELOST: the job makes no progress. */
enum psd_status psd_worker_await_opening(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Waits until no lane has a job; an all-reduce of a library is not waited for. Returns false if a job does not end. */
bool psd_worker_await_jobs(struct psd_worker *worker);
/* Checks whether any host has been stalled for longer than options->stall_sec. PSD_ELOST: a host has been; the text
 * names the host and the operation for which this host waits. */
enum psd_status psd_worker_check_stall(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_metrics.c ---- */

/* Computes this host's measurements into *result, after the last iteration. PSD_ENOMEM. */
enum psd_status psd_worker_measure(struct psd_worker *worker, struct psd_worker_result *result,
				   struct psd_error *err) PSD_MUST_CHECK;
/* On worker 0: adds the measurements of all other hosts to *result. Called when each host has sent its message BYE. */
void psd_worker_gather(struct psd_worker *worker, struct psd_worker_result *result);

/* ---- worker_arrivals.c ---- */

struct psd_connections_owner psd_worker_owner(struct psd_worker *worker);

/* ---- worker_replay.c ---- */

enum psd_status psd_worker_open_replay(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* In a replay: starts a timer of sec seconds, the predicted duration, instead of executing the task; called as
 * psd_seam.work. */
void psd_worker_replay(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);

/* ---- worker_open.c ---- */

/* Prepares lanes, device, memory, data and network of a host that trains. The thread that executes the device's
 * operations prepares device, memory and data. */
enum psd_status psd_worker_open_training(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_join.c ---- */

/* Joins all other hosts and opens the connections to them. PSD_ERUN: a host is missing, has closed its connection, or
 * does not belong to this run. */
enum psd_status psd_worker_join(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_loop.c ---- */

/* Starts all operations whose inputs are complete. If an operation ends immediately, it also starts the operations that
 * waited for that one. */
enum psd_status psd_worker_begin(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* One turn of the event loop: waits for an event, at most within_sec seconds and at most half a second, and handles it.
 * PSD_ELOST: a host is stalled; statuses of the operations. */
enum psd_status psd_worker_turn(struct psd_worker *worker, double within_sec, struct psd_error *err) PSD_MUST_CHECK;

#endif
