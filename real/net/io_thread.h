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
	PSD_IO_JOB_IDLE, /* the loop may touch its sender or receiver */
	PSD_IO_JOB_LENT, /* the thread uses them */
};

/* Must not move in memory while lent. The caller fills the first part; zeros: idle. */
struct psd_io_job {
	unsigned number;	      /* the caller's */
	unsigned slot;		      /* connection of the thread; has at most one job each way */
	struct psd_carrier carrier;   /* a copy */
	struct psd_chunk_sender *out; /* sends a chunk; NULL: `in` receives one */
	struct psd_chunk_receiver *in;

	enum psd_io_job_state state; /* as the loop sees it */
	int error_number;	     /* result, once returned; 0: complete, or closed by the peer */
	bool is_complete;
	_Atomic double moved_sec; /* last progress; 0: none. Any thread */

	/* Private to the thread. */
	struct psd_io_job *next;
	atomic_bool is_recalled;
	bool is_over;
};

/* The caller closes *io_thread. processor: the thread is pinned to this one of the caller's processors, modulo their
 * number; not pinned if there are fewer than n_io_threads + 1. wake_fd: borrowed eventfd, written when a job ends.
 * PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_io_thread_open(struct psd_io_thread **io_thread, unsigned n_slots, unsigned processor,
				   unsigned n_io_threads, int wake_fd, struct psd_error *err) PSD_MUST_CHECK;
/* Drops current jobs. NULL is allowed. */
void psd_io_thread_close(struct psd_io_thread *io_thread);

void psd_io_thread_lend(struct psd_io_thread *io_thread, struct psd_io_job *job);
/* Returns a finished job, idle again; NULL: none. */
struct psd_io_job *psd_io_thread_take_back(struct psd_io_thread *io_thread);
/* Waits until the thread has released the job, which psd_io_thread_take_back() then does not return. Does nothing if
 * idle. */
void psd_io_thread_recall(struct psd_io_thread *io_thread, struct psd_io_job *job);

#endif
