/* Shared by real/net/connections*.c alone: connections, outgoing and incoming messages. */
#ifndef PSD_REAL_CONNECTIONS_PARTS_H
#define PSD_REAL_CONNECTIONS_PARTS_H

#include <stdatomic.h>

#include "real/net/connections.h"
#include "real/net/io_thread.h"

struct psd_connection {
	unsigned peer;
	struct psd_carrier carrier;
	struct psd_chunk_sender out;
	struct psd_chunk_receiver in;
	uint32_t events; /* events of the descriptor that epoll watches */
	bool is_ready;	 /* bytes can be read although epoll does not report it */
	bool has_low_water;
	struct psd_chunk_sender chunk; /* chunk that an I/O thread sends, as the job `sending` */
	struct psd_io_job sending, reading;
	uint64_t coming_bytes; /* bytes that are sure to follow the current or last chunk */
};

struct psd_peer {
	double heard_sec; /* time of the last byte from this peer */

	/* The message that is being sent to this peer. */
	struct psd_wire_head head;
	uint8_t tag[PSD_WIRE_TAG_BYTES];
	struct iovec segments[PSD_SEGMENTS_MAX];
	unsigned n_segments;
	uint64_t n_chunks, n_assigned; /* chunks of the message; chunks assigned to a connection so far */
	uint64_t n_left;	       /* chunks of the message that the transport has taken */
};

/* A message of several chunks, some of which have arrived. */
struct psd_arriving {
	unsigned peer;
	struct psd_wire_head head;	    /* header of one of its chunks */
	struct psd_destination destination; /* memory for the whole message */
	uint8_t tag[PSD_WIRE_TAG_BYTES];
	uint64_t n_missing; /* chunks of the message that are not complete */
};

struct psd_connections {
	struct psd_connection *all;
	struct psd_peer *peers;
	struct psd_io_thread **io_threads; /* one thread per connection number; NULL: the event loop moves all chunks */
	struct psd_arriving *arriving;
	unsigned n_arriving, arriving_room;
	unsigned n_peers, n_connections, n_all;
	int epoll_fd, wake_fd, timer_fd;
	unsigned tag_bytes;
	struct psd_connections_owner owner;
	uint8_t *scratch; /* memory for received values before they are added */
	bool has_moved;
	double moved_sec;   /* time of the I/O threads' last progress, as of the last turn; 0: none yet */
	bool has_delivered; /* a message was delivered, so held back messages may now have room */

	uint64_t low_water_bytes; /* smallest number of readable bytes that epoll reports; UINT64_MAX: not set */
	double timer_sec;	  /* time at which timer_fd fires; INFINITY: not set */
};

static inline bool psd_connection_sends(const struct psd_connection *connection)
{
	return !psd_chunk_sender_is_idle(&connection->out) && connection->sending.state == PSD_IO_JOB_IDLE;
}

static inline bool psd_connection_reads(const struct psd_connection *connection)
{
	return !connection->in.is_held && connection->reading.state == PSD_IO_JOB_IDLE;
}

static inline double psd_io_job_moved_sec(const struct psd_io_job *job)
{
	return atomic_load_explicit(&job->moved_sec, memory_order_relaxed);
}

/* Returns the I/O thread that moves a chunk of this size; NULL: the event loop moves it. */
struct psd_io_thread *psd_connections_io_thread(const struct psd_connections *connections,
						const struct psd_connection *connection, uint64_t bytes);
/* Closes a connection and tells the owner. PSD_OK if the owner accepts that. */
enum psd_status psd_connections_lose(struct psd_connections *connections, struct psd_connection *connection,
				     int error_number, struct psd_error *err) PSD_MUST_CHECK;
/* Sets the events of the connection that epoll reports. */
enum psd_status psd_connections_watch(struct psd_connections *connections, struct psd_connection *connection,
				      struct psd_error *err) PSD_MUST_CHECK;

/* Counts a chunk of the peer's outgoing message as sent. */
void psd_connections_take_left(struct psd_connections *connections, unsigned peer);
/* Completes the chunk that the connection has received, and delivers the message if it was the last one. */
void psd_connections_finish_chunk(struct psd_connections *connections, struct psd_connection *connection);
/* Reads headers and payloads until nothing is left or the turn is over. */
enum psd_status psd_connections_read(struct psd_connections *connections, struct psd_connection *connection,
				     struct psd_error *err) PSD_MUST_CHECK;

#endif
