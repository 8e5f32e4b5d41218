/* Thread that sends and receives chunks for the event loop, so that several connections use several processor cores.
 * The event loop gives the thread the sender or the receiver of a connection, for one chunk. Only the loop reads
 * headers and decides over which connection a chunk is sent. The thread handles chunks of many connections at a time,
 * so a slow connection does not delay the others. The loop's thread calls all functions. */
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

/* A chunk to be sent or received by an I/O thread. The struct must not be moved or freed while it is lent to the
 * thread. The caller fills the fields before `state`. All zeros: idle. */
struct psd_io_job {
	unsigned number; /* number that the caller gives to the job; not used by the thread */
	/* Number of the job's connection among those that the thread serves, 0 to n_slots - 1. A connection has at most
	 * one job for sending and one for receiving. */
	unsigned slot;
	struct psd_carrier carrier; /* copy of the connection's carrier */
	/* Sender of the chunk. NULL: the chunk is received, by the receiver `in`. */
	struct psd_chunk_sender *out;
	struct psd_chunk_receiver *in;

	enum psd_io_job_state state; /* state of the job; only the event loop's thread reads and changes it */
	/* errno with which the job ended. 0 with is_complete: the whole chunk was moved. 0 without is_complete: the
	 * peer has closed the connection. */
	int error_number;
	bool is_complete;
	/* Time at which the job last moved bytes (psd_socket_now_sec()); 0: never; any thread may read it. */
	_Atomic double moved_sec;

	/* Next job in the list of the I/O thread. This field and those below are private to that thread. */
	struct psd_io_job *next;
	atomic_bool is_recalled;
	bool is_over;
};

/* Starts an I/O thread that serves n_slots connections. The caller closes *io_thread. The thread is pinned to the
 * processor with the number `processor`, counted from 0 among those that the caller may use, modulo their count. It is
 * not pinned if the caller may use fewer than n_io_threads + 1 processors. wake_fd: a borrowed eventfd, which the
 * thread writes when a job ends. PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_io_thread_open(struct psd_io_thread **io_thread, unsigned n_slots, unsigned processor,
				   unsigned n_io_threads, int wake_fd, struct psd_error *err) PSD_MUST_CHECK;
/* Stops and frees the thread. Chunks that are only partly sent or received stay incomplete. NULL is allowed. */
void psd_io_thread_close(struct psd_io_thread *io_thread);

/* Gives a job to the thread, which starts it. The job must be idle. */
void psd_io_thread_lend(struct psd_io_thread *io_thread, struct psd_io_job *job);
/* Returns a job that has ended and sets it to idle. NULL: no job has ended since the last call. */
struct psd_io_job *psd_io_thread_take_back(struct psd_io_thread *io_thread);
/* Stops a job before its end: waits until the thread no longer uses it, and sets it to idle. psd_io_thread_take_back()
 * will not return this job. Does nothing if the job is idle. */
void psd_io_thread_recall(struct psd_io_thread *io_thread, struct psd_io_job *job);

#endif
