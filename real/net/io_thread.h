/* A thread that moves chunks for the event loop, so that several connections use several processors. The loop lends it
 * half a connection at a time, the sending or the receiving one, until one chunk is through; only the loop reads
 * headers and decides. Errands for any number of connections go on side by side: one that stands still keeps none of
 * the others waiting. All functions are the loop's. */
#ifndef PSD_REAL_IO_THREAD_H
#define PSD_REAL_IO_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "real/net/chunk_receiver.h"
#include "real/net/chunk_sender.h"

struct psd_io_thread;

enum psd_errand_state {
	PSD_ERRAND_HOME,  /* the loop's: what it is about may be touched */
	PSD_ERRAND_GIVEN, /* the porter's */
};

/* Stays where it is while it is given. The loop fills in the first part; zeros are one that is at home. */
struct psd_errand {
	unsigned number;	    /* the caller's */
	unsigned slot;		    /* which of the porter's connections; each has two errands at most, one each way */
	struct psd_carrier carrier; /* a copy */
	struct psd_chunk_sender *out; /* a chunk to send; NULL: there is one to read */
	struct psd_chunk_receiver *in;

	enum psd_errand_state state; /* of the loop's view */
	int error_number;	     /* how it ended, once back: 0: it is complete, or the peer closed the connection */
	bool is_complete;
	_Atomic double moved_sec; /* when bytes last moved; 0: never. Any thread */

	/* the porter's */
	struct psd_errand *next;
	atomic_bool is_recalled;
	bool is_over;
};

/* *porter: closed by the caller. processor: it stays on this one of those that the caller may use, counted round; of
 * fewer than n_porters + 1 on any. wake_fd: a borrowed eventfd, written when an errand is over. PSD_ENOMEM,
 * PSD_ERUN. */
enum psd_status psd_io_thread_open(struct psd_io_thread **io_thread, unsigned n_slots, unsigned processor,
				   unsigned n_porters, int wake_fd, struct psd_error *err) PSD_MUST_CHECK;
/* Leaves what is under way where it is. NULL is allowed. */
void psd_io_thread_close(struct psd_io_thread *io_thread);

void psd_io_thread_give(struct psd_io_thread *io_thread, struct psd_errand *errand);
/* One that is over, and home again; NULL: none. */
struct psd_errand *psd_io_thread_take(struct psd_io_thread *io_thread);
/* Waits until the thread has let go of it, wherever it is; it is not taken any more. Nothing happens to one at home. */
void psd_io_thread_recall(struct psd_io_thread *io_thread, struct psd_errand *errand);

#endif
