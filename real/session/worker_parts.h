/* What the parts of a worker share. Private to real/session/. The event loop's thread owns everything; jobs, on lanes
 * or at once, touch tensors and their own struct psd_job only, and the program's order keeps them apart. While the job
 * of a pause runs no other does: it reads scales and the choice of chunks, too. */
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
#include "real/session/repeated_memory.h"
#include "real/session/scale.h"
#include "real/session/worker.h"

struct psd_job {
	struct psd_worker *worker;
	struct psd_task task;
	enum psd_status status;
	struct psd_error err;
	uint64_t first_mark, mark; /* of an asynchronous device, before and behind what was begun */
	double given_sec;	   /* of psd_socket_now_sec(): to the lane */
	double start_sec;	   /* of an asynchronous device, by what it took */
	double sec;
	double busy_sec; /* of it, that the thread ran, or the device; all of it where more than one thread computes */
	double cpu_sec;	 /* that the thread ran */
	bool is_marked;
	bool is_done_at_once; /* by the loop's thread; to be told to the interpreter when that has returned */
	/* Of no operation, but of a pause before the task's iteration (worker_pause.c). */
	bool is_pause;
	bool is_test;			    /* that is a test; otherwise a checkpoint */
	uint64_t test_labels, test_correct; /* 0: not tested */
};

/* What a resource has been given, the oldest first. */
struct psd_jobs {
	struct psd_job jobs[PSD_LANE_JOBS];
	uint64_t n_given, n_over;
	struct psd_lane lane;
	bool has_lane;
	double over_sec; /* when the last was */
};

/* What the checkpoint says that the run goes on from; 0, 0 where it begins. */
struct psd_saved {
	uint64_t run_hash;   /* of the terms of all runs that led to it */
	uint64_t terms_hash; /* of the last one's */
};

/* Tests and checkpoints between iterations, and what is told of an iteration once its reports and its test are there
 * (worker_pause.c). */
struct psd_pauses {
	double *sec;	   /* per iteration: how long a pause kept it from beginning; one more: after the last */
	bool is_under_way; /* the lane has its job */
	bool is_test_over; /* the checkpoint of the same pause comes next */
	bool has_progress, has_result; /* of an iteration: all reports; its test, or that there is none */
	struct psd_progress progress;
	double begun_sec; /* when the parameters were there that were tested */
	uint64_t labels, correct;
};

/* Local steps that follow the loss: all hosts know the steps, worker 0 alone the losses (worker_local.c). */
struct psd_quality {
	uint32_t steps[2]; /* of windows with even and odd numbers; 0: they stay as the plan has them */
	uint32_t n_known;  /* windows that have their steps */
	uint32_t heard;	   /* of the next window, which it gets at the fence before it; 0: not told yet */
	uint32_t n_told;   /* iterations whose losses are known */
	uint32_t begun;	   /* the iteration with the first loss */
	double first_loss, lowest_loss;
	double sum; /* of n losses since the last choice */
	uint32_t n;
	double *saved; /* room for all that as a checkpoint has it; NULL: steps stay as they are */
};

/* Replay: what stands for an operation, or for what a stack does before bytes move. Seconds of psd_worker_now(). */
struct psd_alarm {
	bool is_set;
	struct psd_task task;
	double begun_sec, due_sec;
};

struct psd_timers {
	struct psd_alarm alarms[PSD_RESOURCES];
	const struct psd_alarm *ringing; /* or NULL */
	double *late_sec;		 /* per iteration: of the latest alarm */
};

/* What this worker takes of its machine (worker_load.c). */
struct psd_load {
	double jobs_cpu_sec; /* of all jobs that are over */
	double *beside_sec;  /* per iteration, until it began: what this worker took beside its jobs */
	uint32_t n_watched;  /* iterations that have begun */
	bool is_watched, has_machine_from;
	double own_from_sec, process_from_sec; /* where the measured iterations begin */
	struct psd_machine_time machine_from;
};

/* Whether this worker and the others go on (worker_stalls.c). The first is of psd_worker_now(), the others of
 * psd_socket_now_sec(). */
struct psd_pulse {
	double last_move_sec;
	double turned_sec;
	double awake_sec;    /* the first turn after this process stood still */
	double alive_sec;    /* when the others were last told so */
	double *longest_sec; /* per op: of its jobs; 0: there was none */
};

/* What of the samples is on its way to a device with memory of its own, or there; the device lane's thread's. */
struct psd_fetching {
	bool is_ahead;	   /* those of the iteration after the one that was begun last */
	uint64_t marks[2]; /* behind the samples of an iteration, by its parity */
};

/* What workers report of their iterations; on worker 0, but for n_own (worker_messages.c). */
struct psd_losses {
	uint32_t n_own;			 /* iterations whose loss this worker has reported */
	uint32_t window;		 /* iterations whose reports may be incomplete at a time */
	struct psd_wire_report *reports; /* as many rows of one for each worker */
	uint32_t *n_reports;
	double last;
};

/* The way through the steps of a transfer. */
struct psd_transfer {
	struct psd_task task;
	bool is_active;
	bool is_waiting; /* replay: for an alarm, to begin */
	bool is_sending;
	bool has_left;	 /* a step, since the loop looked: what waited outside for it may come in */
	bool has_staged; /* the next step's message is there, and what it is added to has not left */
	unsigned n_steps;
	unsigned next_send, next_receive;
};

/* What comes of one operation from a peer. */
struct psd_coming {
	uint32_t next_iteration; /* of its next message */
	uint32_t next_signal;	 /* of its next READY or BEGIN; from oneself: of the next READY given */
	double begun_sec;	 /* when that began to arrive; 0: it does not */
};

struct psd_peer {
	struct psd_coming *ops; /* one for each operation */
	uint8_t small[PSD_WIRE_SMALL_BYTES];
	bool has_said_bye;
	struct psd_wire_bye bye;
};

/* Of a library's sum, between the lane's thread and the one that closes the session. */
enum psd_sum_state {
	PSD_SUM_NONE,
	PSD_SUM_UNDER_WAY, /* the library has it */
	PSD_SUM_LEFT,	   /* the session is closed: none begins, and from one that is under way nobody returns */
};

enum psd_worker_phase {
	PSD_PHASE_OPENING,
	PSD_PHASE_GOING,   /* operations are carried out */
	PSD_PHASE_PARTING, /* this host has all it needs, and waits until the others have */
	PSD_PHASE_OVER,
};

struct psd_worker {
	struct psd_arena arena; /* of all tables here */
	const struct psd_worker_options *options;
	const struct psd_program *program;
	const struct psd_plan *plan;
	const struct psd_layout *layout;
	const struct psd_graph *graph;
	const struct psd_device_kind *kind; /* of its device */
	unsigned self, n_hosts;
	unsigned n_connections;		 /* connections between two hosts */
	const struct psd_replay *replay; /* NULL: computes */
	bool is_beside_others;		 /* some hosts of this run compute, and some replay */
	double dilation_ratio;		 /* a second of this worker's clock in seconds of the machine */
	double start_sec;		 /* of the machine's clock */
	double clock_offset_sec;	 /* what the clock of the trace is ahead of this host's */
	enum psd_worker_phase phase;

	struct psd_memory memory; /* of this host */
	struct psd_memory apart;  /* of a device that has its own */
	/* Where the device works: one of the two. */
	const struct psd_memory *on_device;
	struct psd_device *device;
	bool has_device;
	void *staging; /* room in the host's memory for copies of a checkpoint, the device's; NULL: not needed so far */
	/* of each iteration under way, as the device's memory has them, but NULL where they are rebuilt */
	float **computed_gradients;
	struct psd_scale *scales;     /* of each slice of each item, as workers know it */
	struct psd_scale *sum_scales; /* as a shard or a root that sums it knows it */
	struct psd_chunk_selection
		selection;		    /* of a sparse plan; nothing where all replay: they send what is expected */
	struct psd_chunks *chunks;	    /* of each item, what the device is to do with them */
	struct psd_packing *packings;	    /* the same of a plan that compresses; NULL: it does not */
	struct psd_low_rank_work *low_rank; /* of a plan of low rank */
	struct psd_clip clip;		    /* of a plan that clips, as the device finds it */
	double *squares;		    /* that it is found by, of the plan's tensors */
	struct psd_feed *feed;		    /* NULL: a server */
	struct psd_fetching fetching;
	uint64_t global_batch;

	struct psd_duties duties;
	struct psd_interpreter interpreter;
	int wake_fd;
	struct psd_jobs jobs[PSD_RESOURCES];
	struct psd_timers timers;
	struct psd_repeated_memory folded; /* replay: where all messages lie */
	struct psd_repeated_memory zeros;  /* replay beside others: what it sends, never written */
	struct psd_load load;
	struct psd_pulse pulse;
	bool is_over[PSD_RESOURCES]; /* to be told to the interpreter when it has returned */
	double *last_sec;	     /* per op: wall time of its layers when they last ran; 0: they have not */

	struct psd_mesh_clock clock;
	struct psd_connections *connections;
	struct psd_emulated *emulated; /* NULL: links are as they are */
	struct psd_peer *peers;
	unsigned n_leaving;  /* messages of the current send that the kernel does not have yet */
	bool is_coordinated; /* worker 0 says which collective is next */
	struct psd_transfer transfer;
	const struct psd_library_kind *library_kind; /* that carries collectives out in place of walks; or NULL */
	struct psd_library *library;
	_Atomic(enum psd_sum_state) sum_state;
	bool brings_back; /* a library inside nodes is to spread what the ring between them has summed */
	uint64_t sent_bytes, received_bytes; /* of tensors, to and from other nodes, in measured iterations */

	struct psd_losses losses;
	struct psd_quality quality;
	struct psd_worker_result result; /* once it parts */
	struct psd_pauses pauses;
	struct psd_saved saved;

	enum psd_status status; /* of callbacks that cannot return one */
	struct psd_error *err;
	bool is_blamed; /* the error names who is at fault, whoever tells it */
};

/* psd_seam.now; context is the worker. While an alarm is told of: when it was due, so that lateness does not add up. */
double psd_worker_now(void *context);
/* Bytes of the program's message that this one is, or, where a replay sends a share of it, stands for. */
uint64_t psd_worker_message_bytes(const struct psd_worker *worker, const struct psd_wire_head *head, unsigned from,
				  unsigned to);
/* What a send or a collective carries in an iteration: as the program has it, but of a sparse plan's gradients the
 * chunks that were chosen. */
struct psd_payload psd_worker_carried(const struct psd_worker *worker, struct psd_task task);
/* What its messages carry here: a share of it, where the replay says so. */
struct psd_payload psd_worker_payload(const struct psd_worker *worker, struct psd_task task);
/* True: what the task carries is still to be chosen. */
bool psd_worker_awaits_choice(const struct psd_worker *worker, struct psd_task task);

/* ---- worker_join.c ---- */

/* Connects to all hosts, and opens the streams. PSD_ERUN: somebody is missing, has gone, or does not fit. */
enum psd_status psd_worker_join(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_loop.c ---- */

enum psd_status psd_worker_out_of_memory(struct psd_error *err);
/* Begins what nothing is waited for, and carries on as long as something is over at once. */
enum psd_status psd_worker_begin(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Waits until something happens, for so long and half a second at most, and carries on. PSD_ERUN: somebody stands
 * still. */
enum psd_status psd_worker_turn(struct psd_worker *worker, double within_sec, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_open.c ---- */

/* Lanes, device, memory, data and network, in the device lane's thread where it computes. */
enum psd_status psd_worker_open_training(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Parameters of a device with memory of its own come to this host's, when all is over. */
enum psd_status psd_worker_fetch_parameters(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_tasks.c ---- */

/* psd_seam.work */
void psd_worker_work(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);
/* The operation's update is left out. Slices are applied together: one whose sum has left its range takes the others
 * with it. */
bool psd_worker_skips(const struct psd_worker *worker, const struct psd_op *op);
/* What a lane's second stage does with a job (struct psd_job) of an asynchronous device: waits for its end. */
void psd_worker_finish_job(void *context);
/* Whose lane carries out an operation: its resource's, or the device's where it works there beside the layers. */
enum psd_resource psd_worker_lane(const struct psd_worker *worker, const struct psd_op *op);
/* The oldest job that a lane has been given and that is not over; what it was, once it is. */
struct psd_job *psd_worker_job(struct psd_worker *worker, enum psd_resource lane);
/* Forward or backward through layers, with the batch that was begun; in the device lane's thread. As the device. */
enum psd_status psd_worker_pass(struct psd_worker *worker, struct psd_pass pass, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_copies.c ---- */

/* Begins a copy between a device's own memory and this host's, on the stream of its direction. */
enum psd_status psd_worker_copy(struct psd_worker *worker, struct psd_task task, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_encoding.c ---- */

/* PSD_ENOMEM. */
enum psd_status psd_worker_open_encoding(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* The length of scales, and of sum_scales: the slices of all items. */
unsigned psd_worker_count_scales(const struct psd_worker *worker);
/* Of the operation's slice, as those know it who carry it out. */
struct psd_scale *psd_worker_scale(const struct psd_worker *worker, const struct psd_op *op);
/* Adds up what this worker's scales have counted; a replay has none. */
void psd_worker_count_updates(const struct psd_worker *worker, struct psd_worker_result *result);
/* Of the operation's slice, what leaves or has arrived of its item. */
struct psd_range psd_worker_range(const struct psd_worker *worker, const struct psd_op *op);
/* Values become what travels, or what has arrived becomes values, from one of the operation's buffers to the other; in
 * a lane's thread, as is the next one. */
enum psd_status psd_worker_convert(struct psd_worker *worker, struct psd_task task,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Whether something of what has arrived has left the encoding's range, while it lies in this host's memory: before it
 * is copied to a device, or as it is converted here. */
void psd_worker_judge_arrival(struct psd_worker *worker, struct psd_task task);

/* ---- worker_clip.c ---- */

/* PSD_ENOMEM; what the device says. */
enum psd_status psd_worker_open_clip(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Begins to measure the operation's gradients; begins to find what all are multiplied by. */
enum psd_status psd_worker_measure_gradient(struct psd_worker *worker, struct psd_task task,
					    struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_worker_find_clip(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_reduce.c ---- */

/* A leader adds the gradients of its node's other workers to its own, of a slice; in a lane's thread. PSD_ENOMEM. */
enum psd_status psd_worker_sum_node(struct psd_worker *worker, struct psd_task task,
				    struct psd_error *err) PSD_MUST_CHECK;
/* This shard's part of a slice: sums the workers' gradients, and updates parameters; in a lane's thread. PSD_ENOMEM. */
enum psd_status psd_worker_reduce(struct psd_worker *worker, struct psd_task task,
				  struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_local.c ---- */

/* A local step of an item, which begins and ends a drift where its iteration does; in a lane's thread, as are the next
 * two. As the device. */
enum psd_status psd_worker_step_alone(struct psd_worker *worker, struct psd_task task,
				      struct psd_error *err) PSD_MUST_CHECK;
/* All workers' drifts are there: parameters become the start and the mean of these. As the device. */
enum psd_status psd_worker_join_steps(struct psd_worker *worker, struct psd_task task,
				      struct psd_error *err) PSD_MUST_CHECK;
/* Where the start of a shard's part of a slice is kept; NULL: in the part itself. That of a worker may lie among the
 * parameters of its own. */
const float *psd_worker_own_start(const struct psd_worker *worker, struct psd_task task);

/* PSD_ENOMEM. */
enum psd_status psd_worker_open_local(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Local steps become fewer as the loss falls: not where some replay, who have none. */
bool psd_worker_follows_loss(const struct psd_worker *worker);
/* Nothing of that iteration begins before the steps of another window are known; UINT64_MAX: they are. */
uint64_t psd_worker_next_steps(const struct psd_worker *worker);
/* At the fence before that iteration: they are not known yet, or not all that goes with them. */
bool psd_worker_awaits_steps(const struct psd_worker *worker, uint32_t iteration);
/* On worker 0: the loss of an iteration is there, of all workers. */
void psd_worker_follow_loss(struct psd_worker *worker, uint32_t iteration, double loss);
/* Its window has steps. */
bool psd_worker_knows_steps(const struct psd_worker *worker, uint32_t iteration);
/* The next window will have so many steps: from the fence before it on, whatever this host is at now. */
void psd_worker_hear_steps(struct psd_worker *worker, uint32_t steps);
/* At the fence before that iteration, which awaits no steps: if they are decided here, the next window has them. */
void psd_worker_take_steps(struct psd_worker *worker, uint32_t iteration);
/* What a checkpoint keeps of it: quality.saved has so many values, which are filled, and taken. PSD_EINVAL: those of
 * the file at `path` are none of this run's. */
unsigned psd_worker_quality_values(const struct psd_worker *worker);
void psd_worker_save_quality(struct psd_worker *worker);
enum psd_status psd_worker_restore_quality(struct psd_worker *worker, const char *path,
					   struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_packed.c ---- */

/* PSD_ENOMEM. */
enum psd_status psd_worker_open_packings(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* A gradient is compressed to travel; in a lane's thread, as are the next two. */
enum psd_status psd_worker_pack(struct psd_worker *worker, struct psd_task task, struct psd_error *err) PSD_MUST_CHECK;
/* The compressed sum becomes the gradient. */
enum psd_status psd_worker_unpack(struct psd_worker *worker, struct psd_task task,
				  struct psd_error *err) PSD_MUST_CHECK;
/* What a shard does when all workers' compressed gradients of its part are there. */
void psd_worker_repack(struct psd_worker *worker, struct psd_task task);

/* ---- worker_low_rank.c ---- */

/* PSD_ENOMEM. */
enum psd_status psd_worker_open_low_rank(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* The left narrow matrices of a gradient are made; in a lane's thread, as are the next two. */
enum psd_status psd_worker_project(struct psd_worker *worker, struct psd_task task,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Their sums become a basis; the right ones are made. */
enum psd_status psd_worker_fit(struct psd_worker *worker, struct psd_task task, struct psd_error *err) PSD_MUST_CHECK;
/* The product of the sums becomes the gradient. */
enum psd_status psd_worker_expand(struct psd_worker *worker, struct psd_task task,
				  struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_sparse.c ---- */

/* PSD_ENOMEM. */
enum psd_status psd_worker_open_chunks(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* The chunks that were chosen leave a gradient to travel; in a lane's thread, as are the next two. */
enum psd_status psd_worker_gather_chunks(struct psd_worker *worker, struct psd_task task,
					 struct psd_error *err) PSD_MUST_CHECK;
/* Updates what was chosen by the sums. */
enum psd_status psd_worker_apply_chunks(struct psd_worker *worker, struct psd_task task,
					struct psd_error *err) PSD_MUST_CHECK;
/* All workers' norms are there: prepares the next choice. */
void psd_worker_choose_chunks(struct psd_worker *worker, struct psd_task task);
/* The choice where some replay, who have no norms: the same on all hosts. */
void psd_worker_draw_chunks(struct psd_worker *worker);

/* ---- worker_replay.c ---- */

enum psd_status psd_worker_open_replay(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Where all messages lie that it sends, or that come. Who computes gets zeros: what is no number, or too small a one,
 * would change the work that this is. */
void *psd_worker_replayed_bytes(const struct psd_worker *worker, bool is_sent);
/* What the task carries is chosen, if nothing but a choice says what: one that costs nothing is no operation here. */
void psd_worker_keep_up(struct psd_worker *worker, struct psd_task task);
/* psd_seam.work: takes as long as it is predicted to. */
void psd_worker_replay(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);
/* Something of the task keeps its resource busy for so long from now on; one at a time on each. */
void psd_worker_set_alarm(struct psd_worker *worker, enum psd_resource resource, struct psd_task task, double sec);
/* Carries on after the first alarm that is due; false when none is. */
bool psd_worker_take_alarm(struct psd_worker *worker);
bool psd_worker_has_alarm(const struct psd_worker *worker);
/* Ends the loop's next turn when an alarm is due. */
void psd_worker_await_alarm(struct psd_worker *worker);

/* ---- worker_load.c ---- */

/* Something of this iteration is about to begin: notes what processors have done before each; what they did since. */
void psd_worker_watch_load(struct psd_worker *worker, uint32_t iteration);
void psd_worker_measure_load(struct psd_worker *worker, struct psd_worker_result *result);

/* ---- worker_pause.c ---- */

/* All are called by the loop's thread. */

/* The first iteration after `iteration` that a pause stands before; 0: there is none. */
uint32_t psd_worker_next_pause(const struct psd_worker *worker, uint32_t iteration);
/* Samples that all workers have gone through when `iteration` begins, since training began. */
uint64_t psd_worker_samples(const struct psd_worker *worker, uint64_t iteration);
/* Gives the device's lane the job of a pause, if the interpreter stands at its fence and the job was not given yet;
 * passes the fence where there is none. False: nothing has happened. */
bool psd_worker_pause(struct psd_worker *worker);
/* The job is over, without an error: passes the fence. */
void psd_worker_go_on(struct psd_worker *worker, const struct psd_job *job);
/* All workers' reports of an iteration are there: tells what they say, after its test if one is due. */
void psd_worker_tell(struct psd_worker *worker, const struct psd_progress *progress);

/* ---- worker_checkpoint.c ---- */

/* All in the device lane's thread. */

/* Writes what this host keeps before `iteration` as a checkpoint, host 0 the parameters as well. PSD_EFILE: a file
 * cannot be begun; PSD_ERUN: it cannot be written; PSD_EINVAL: a tensor's name is too long for a file; PSD_ENOMEM. */
enum psd_status psd_worker_save(struct psd_worker *worker, uint32_t iteration, struct psd_error *err) PSD_MUST_CHECK;
/* Once all hosts have agreed where they begin, before the first iteration. PSD_EFILE: an earlier run's files are in the
 * way. */
enum psd_status psd_worker_begin_saving(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Reads the checkpoint that the run goes on from, options->first_iteration. PSD_EINVAL: it is damaged, or of another
 * run; PSD_EFILE: it cannot be opened; PSD_ENOMEM, PSD_ERUN as psd_state_read(). */
enum psd_status psd_worker_restore(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Reads the checkpoint of other hosts, options->from_hosts, or of another system (worker_reshape.c). Parameters are in
 * this host's memory then, and not yet where they are kept beside. Host 0 names what begins anew. As before; PSD_EINVAL
 * also: it is of another model or kind of optimiser. */
enum psd_status psd_worker_reshape(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;
/* Reads the parameters and states that training starts from, as far as the file of train.start has them; host 0 names
 * those that it lacks. PSD_EINVAL: it has none, or of other shapes; else as psd_worker_restore(). */
enum psd_status psd_worker_read_start(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_trace.c ---- */

/* An operation of this host is over; seconds of psd_worker_now(). */
void psd_worker_record(struct psd_worker *worker, struct psd_task task, double start_sec, double end_sec);
/* A message begins to arrive; it has arrived. */
void psd_worker_record_begin(struct psd_worker *worker, unsigned peer, uint32_t op);
void psd_worker_record_arrival(struct psd_worker *worker, unsigned peer, struct psd_task task, uint64_t bytes);

/* ---- worker_messages.c ---- */

bool psd_worker_send(void *context, unsigned host, struct psd_task task); /* psd_seam.send */
void psd_worker_announce(void *context, struct psd_task task);		  /* psd_seam.announce: to worker 0 */
void psd_worker_choose(void *context, struct psd_task task);		  /* psd_seam.choose: from worker 0 */
uint32_t psd_worker_arrivals(const void *context, const struct psd_op *receive,
			     unsigned host); /* psd_arrivals_fn, of the worker */
/* A loss, to worker 0. */
void psd_worker_report(struct psd_worker *worker, uint32_t iteration, double loss, uint32_t correct);
/* From worker 0: steps of a window. */
void psd_worker_say_steps(struct psd_worker *worker, uint32_t window_number, uint32_t steps);
/* Tells all peers now and then that this loop goes on, and whether something computes here. */
void psd_worker_say_alive(struct psd_worker *worker, bool is_computing);
/* Tells all peers that this host gives up, and why. */
void psd_worker_say_failed(struct psd_worker *worker, enum psd_status status, const struct psd_error *err);
/* Tells all peers that this host has what it needs. */
void psd_worker_say_bye(struct psd_worker *worker, const struct psd_wire_bye *bye);

/* No link lies between: traffic of a node's own. */
bool psd_worker_is_near(const struct psd_worker *worker, unsigned peer);
/* Where a send's message from one host to another lies on this one of the two; returns the number of pieces. */
unsigned psd_worker_segments(const struct psd_worker *worker, struct psd_task task, unsigned from, unsigned to,
			     struct iovec segments[PSD_SEGMENTS_MAX]);
/* On worker 0: one more worker's loss of an iteration. */
void psd_worker_take_report(struct psd_worker *worker, unsigned from, uint32_t iteration,
			    const struct psd_wire_report *report);

/* Bytes count to and from other nodes, in iterations that are measured: what travels may differ at the start. */
bool psd_worker_is_counted(const struct psd_worker *worker, unsigned peer, uint32_t iteration);
void psd_worker_count_sent(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head);

/* ---- worker_steps.c ---- */

void psd_worker_collective(void *context, struct psd_task task); /* psd_seam.collective */
/* Begins the steps of a transfer. */
void psd_worker_begin_transfer(struct psd_worker *worker, struct psd_task task);
/* The alarm of the NIC is over. */
void psd_worker_continue(struct psd_worker *worker);
/* Sends the next step, if it may go. */
void psd_worker_advance(struct psd_worker *worker);
/* The transfer under way has sent and received all its steps: true once. */
bool psd_worker_take_steps_done(struct psd_worker *worker);
/* What `rank` sends in a step, and its bytes. */
struct psd_step psd_worker_step(const struct psd_worker *worker, struct psd_task task, unsigned rank, unsigned step);
uint64_t psd_worker_step_bytes(const struct psd_worker *worker, struct psd_task task, const struct psd_step *step);
/* Where what comes of a step goes. */
void psd_worker_step_inlet(const struct psd_worker *worker, struct psd_task task, const struct psd_step *step,
			   unsigned number, struct psd_inlet *inlet);
/* The next step from `step` on that brings something from that peer; the number of steps when there is none. */
unsigned psd_worker_next_from(const struct psd_worker *worker, struct psd_task task, unsigned peer, unsigned step);
/* The message of the next step that brings something is there. */
void psd_worker_step_arrived(struct psd_worker *worker);

/* ---- worker_library.c ---- */

/* Opens the library that the plan leaves its sums to, if it does; over connections that carry nothing else yet, until
 * a moment of psd_socket_now_sec(). As psd_worker_check_library(); PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_worker_open_library(struct psd_worker *worker, const struct psd_mesh_options *mesh, const int fds[],
					double until_sec, struct psd_error *err) PSD_MUST_CHECK;
/* Has the NIC's lane carry a collective out. */
void psd_worker_start_sum(struct psd_worker *worker, struct psd_task task);
/* The lane's job is over, or a walk is: the collective goes on or is over. */
void psd_worker_summed(struct psd_worker *worker, struct psd_task task);
void psd_worker_transfer_is_over(struct psd_worker *worker, struct psd_task task);
/* What nodes' first workers carry where a library sums inside nodes. */
struct psd_payload psd_worker_between_nodes(const struct psd_worker *worker, struct psd_payload payload);
/* A collective, or its part before or behind the walk, in that lane's thread. */
enum psd_status psd_worker_sum(struct psd_worker *worker, struct psd_task task, struct psd_error *err) PSD_MUST_CHECK;
/* True: a sum is under way that nothing ends but the others, so that its thread and memory stay until the process ends.
 */
bool psd_worker_is_held(struct psd_worker *worker);
/* When the lane is closed. is_orderly: the others close theirs. */
void psd_worker_close_library(struct psd_worker *worker, bool is_orderly);

/* ---- worker_arrivals.c ---- */

struct psd_connections_owner psd_worker_owner(struct psd_worker *worker);

/* ---- worker_stalls.c ---- */

/* psd_connections_owner.lost */
enum psd_status psd_worker_lost(void *context, unsigned peer, int error_number, struct psd_error *err);
/* A peer gives up, with that status. */
void psd_worker_told(struct psd_worker *worker, unsigned peer, enum psd_status status);
/* PSD_ELOST: somebody stands still for longer than psd_worker_options.stall_sec; who, and at what. */
enum psd_status psd_worker_check_stall(struct psd_worker *worker, struct psd_error *err) PSD_MUST_CHECK;

/* ---- worker_metrics.c ---- */

/* The iterations that are measured. */
struct psd_iterations psd_worker_measured(const struct psd_worker *worker);
/* This host's own, once it has carried everything out. PSD_ENOMEM. */
enum psd_status psd_worker_measure(struct psd_worker *worker, struct psd_worker_result *result,
				   struct psd_error *err) PSD_MUST_CHECK;
/* The whole cluster's, once everybody has said bye. */
void psd_worker_gather(struct psd_worker *worker, struct psd_worker_result *result);

#endif
