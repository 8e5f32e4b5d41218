/* Thread that sends and receives chunks for the event loop, so that several connections use several processor cores.
 * The loop lends the thread the sender or the receiver of a connection for one chunk. Only the loop reads headers and
 * decides which chunk a connection takes. The thread works on the chunks of many connections at a time, so a slow
 * connection delays no other. The loop's thread calls all functions. */
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

/* A chunk to be sent or received by an I/O thread. The struct must stay at its address while lent. The caller fills the
 * fields before `state`. All zeros: idle. */
struct psd_io_job {
	unsigned number; /* number that the caller gives to the job; not used by the thread */
	/* Number of the job's connection among those of the thread; each has at most one job per direction. */
	unsigned slot;
	struct psd_carrier carrier; /* copy of the connection's carrier */
	/* Sender of the chunk that is to be sent; NULL: a chunk is to be received, by `in`. */
	struct psd_chunk_sender *out;
	struct psd_chunk_receiver *in;

	enum psd_io_job_state state; /* state of the job; only the event loop's thread reads and changes it */
	/* errno with which the job ended; 0: its chunk is complete, or the peer has closed the connection. */
	int error_number;
	bool is_complete;
	/* Time at which the job last moved bytes (psd_socket_now_sec()); 0: never; any thread may read it. */
	_Atomic double moved_sec;

	/* Next job in the list of the I/O thread. This field and those below are private to that thread. */
	struct psd_io_job *next;
	atomic_bool is_recalled;
	bool is_over;
};

/* Starts an I/O thread that serves n_slots connections. The caller closes *io_thread. processor: number of the
 * processor that the thread is pinned to, counted in the processors of the caller, modulo their number. The thread is
 * not pinned if the caller has fewer than n_io_threads + 1 processors. wake_fd: a borrowed eventfd, written when a job
 * ends. PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_io_thread_open(struct psd_io_thread **io_thread, unsigned n_slots, unsigned processor,
				   unsigned n_io_threads, int wake_fd, struct psd_error *err) PSD_MUST_CHECK;
/* Stops the thread. Chunks that it is still moving are abandoned. NULL is allowed. */
void psd_io_thread_close(struct psd_io_thread *io_thread);

void psd_io_thread_lend(struct psd_io_thread *io_thread, struct psd_io_job *job);
/* Returns a job that has ended, now idle again; NULL: none has ended. */
struct psd_io_job *psd_io_thread_take_back(struct psd_io_thread *io_thread);
/* Takes a job back from the thread before its end: waits until the thread no longer uses it. psd_io_thread_take_back()
 * will not return this job. Does nothing if the job is idle. */
void psd_io_thread_recall(struct psd_io_thread *io_thread, struct psd_io_job *job);

#endif
