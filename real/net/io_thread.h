/* Thread that moves chunks for the event loop, so that several connections use several cores. The loop lends it the
 * sender or the receiver of a connection for one chunk; only the loop reads headers and decides. Jobs of many
 * connections proceed side by side, so a slow one delays no other. The loop calls all functions. */
#ifndef PSD_REAL_IO_THREAD_H
#define PSD_REAL_IO_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "real/net/chunk_receiver.h"
#include "real/net/chunk_sender.h"

struct psd_io_thread;

enum psd_io_job_state {
	PSD_IO_JOB_IDLE, /* the loop may use the job's sender or receiver */
	PSD_IO_JOB_LENT, /* the I/O thread uses the job's sender or receiver */
};

/* A chunk to move. The job must not move in memory while lent. The caller fills the first part. All zeros: idle. */
struct psd_io_job {
	unsigned number;	    /* number by which the caller knows the job */
	unsigned slot;		    /* number of the connection in its thread; each has at most one job per direction */
	struct psd_carrier carrier; /* copy of the connection's carrier */
	struct psd_chunk_sender *out; /* sender of the chunk to send; NULL: `in` receives a chunk */
	struct psd_chunk_receiver *in;

	enum psd_io_job_state state; /* state as the event loop sees it */
	int error_number;	     /* errno of the finished job; 0: complete, or closed by the peer */
	bool is_complete;
	_Atomic double moved_sec; /* time of the job's last progress; 0: none. Any thread */

	/* Next job in the thread's list; private to the thread. */
	struct psd_io_job *next;
	atomic_bool is_recalled;
	bool is_over;
};

/* Starts a thread for n_slots connections; the caller closes *io_thread. processor: the thread is pinned to this one of
 * the caller's processors, modulo their number; not pinned if there are fewer than n_io_threads + 1. wake_fd: borrowed
 * eventfd, written when a job ends. PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_io_thread_open(struct psd_io_thread **io_thread, unsigned n_slots, unsigned processor,
				   unsigned n_io_threads, int wake_fd, struct psd_error *err) PSD_MUST_CHECK;
/* Stops the thread and drops its current jobs. NULL is allowed. */
void psd_io_thread_close(struct psd_io_thread *io_thread);

void psd_io_thread_lend(struct psd_io_thread *io_thread, struct psd_io_job *job);
/* Returns a finished job, now idle again; NULL: there is none. */
struct psd_io_job *psd_io_thread_take_back(struct psd_io_thread *io_thread);
/* Waits until the thread has released the job. psd_io_thread_take_back() then does not return it. Does nothing if the
 * job is idle. */
void psd_io_thread_recall(struct psd_io_thread *io_thread, struct psd_io_job *job);

#endif
