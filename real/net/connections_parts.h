/* State of struct psd_connections, and functions that the files real/net/connections*.c share. Private to these
 * files. */
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
	uint32_t events; /* events of the carrier's descriptor that epoll is set to report (EPOLLIN, EPOLLOUT) */
	/* Bytes can be read although epoll does not report the descriptor, see psd_transport.is_ready. */
	bool is_ready;
	bool has_low_water;
	/* chunk that is sent by an I/O thread while that thread executes the job `sending` */
	struct psd_chunk_sender chunk;
	struct psd_io_job sending, reading;
	uint64_t coming_bytes; /* bytes that will certainly follow on this connection after its current chunk */
};

struct psd_peer {
	double heard_sec; /* time at which the last byte from this peer arrived (psd_socket_now_sec()) */

	/* Message that is being sent to this peer: its header, tag and payload. */
	struct psd_wire_head head;
	uint8_t tag[PSD_WIRE_TAG_BYTES];
	struct iovec segments[PSD_SEGMENTS_MAX];
	unsigned n_segments;
	uint64_t n_chunks;   /* number of chunks of the message */
	uint64_t n_assigned; /* number of these chunks that were given to a connection */
	/* Number of chunks of the message that the transports have accepted. If it equals n_chunks, no message is being
	 * sent. */
	uint64_t n_left;
};

/* An incoming message of several chunks of which some, not all, have arrived. */
struct psd_arriving {
	unsigned peer;
	struct psd_wire_head head;	    /* header of one chunk of the message */
	struct psd_destination destination; /* memory into which the whole message is received */
	uint8_t tag[PSD_WIRE_TAG_BYTES];
	uint64_t n_missing; /* number of the message's chunks that have not arrived completely */
};

struct psd_connections {
	struct psd_connection *all;
	struct psd_peer *peers;
	/* One I/O thread for each of the n_connections connections to a peer. NULL: the event loop sends and receives
	 * all chunks. */
	struct psd_io_thread **io_threads;
	struct psd_arriving *arriving;
	unsigned n_arriving, arriving_room;
	unsigned n_peers, n_connections, n_all;
	int epoll_fd, wake_fd, timer_fd;
	unsigned tag_bytes;
	struct psd_connections_owner owner;
	uint8_t *scratch; /* memory into which values are received before they are added */
	bool has_moved;
	/* Latest time (psd_socket_now_sec()) at which an I/O thread moved bytes, as read in the last turn of the loop;
	 * 0: never. */
	double moved_sec;
	/* This turn of the loop delivered a message, so expect() is called again for messages that stay unread. */
	bool has_delivered;

	/* Smallest number of readable bytes for which epoll reports a connection. It holds only while at least as many
	 * bytes are still to come on the connection; otherwise one byte is enough. UINT64_MAX: one byte is always
	 * enough. */
	uint64_t low_water_bytes;
	/* Time at which timer_fd becomes readable (psd_socket_now_sec()); INFINITY: not set. */
	double timer_sec;
};

/* Numbers in epoll beside those of connections. */
#define PSD_CONNECTIONS_WAKE  UINT32_MAX
#define PSD_CONNECTIONS_TIMER (UINT32_MAX - 1)

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

/* Returns the I/O thread that sends or receives a chunk of `bytes` bytes on this connection. NULL: the event loop does
 * it. */
struct psd_io_thread *psd_connections_io_thread(const struct psd_connections *connections,
						const struct psd_connection *connection, uint64_t bytes);
/* Closes a connection and calls the owner's lost(). Returns the status of lost(): PSD_OK if the end was expected. */
enum psd_status psd_connections_lose(struct psd_connections *connections, struct psd_connection *connection,
				     int error_number, struct psd_error *err) PSD_MUST_CHECK;
/* Tells epoll which events of the connection's descriptor to report; called after the connection's state has
 * changed. */
enum psd_status psd_connections_watch(struct psd_connections *connections, struct psd_connection *connection,
				      struct psd_error *err) PSD_MUST_CHECK;

/* Counts one more chunk of the peer's outgoing message as accepted by the transport. After the last chunk it calls
 * left(). */
void psd_connections_take_left(struct psd_connections *connections, unsigned peer);
/* Completes the chunk that the connection has received. If it was the last chunk of its message, it calls arrived(). */
void psd_connections_finish_chunk(struct psd_connections *connections, struct psd_connection *connection);
/* Reads headers and payloads of a connection until no bytes are left, or until this turn of the loop has read enough
 * from it. */
enum psd_status psd_connections_read(struct psd_connections *connections, struct psd_connection *connection,
				     struct psd_error *err) PSD_MUST_CHECK;

#endif
