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
	uint32_t events; /* watched by epoll */
	bool is_ready;	 /* readable although epoll does not report it */
	bool has_low_water;
	struct psd_chunk_sender chunk; /* moved by `sending` */
	struct psd_io_job sending, reading;
	uint64_t coming_bytes; /* bytes that surely follow the current or last chunk */
};

struct psd_peer {
	double heard_sec; /* time of the last byte from it */

	/* The outgoing message. */
	struct psd_wire_head head;
	uint8_t tag[PSD_WIRE_TAG_BYTES];
	struct iovec segments[PSD_SEGMENTS_MAX];
	unsigned n_segments;
	uint64_t n_chunks, n_assigned; /* chunks in all; chunks assigned to a connection */
	uint64_t n_left;	       /* chunks that the transport has taken */
};

/* A message of several chunks, some of which have arrived. */
struct psd_arriving {
	unsigned peer;
	struct psd_wire_head head;	    /* any chunk's */
	struct psd_destination destination; /* the whole message's */
	uint8_t tag[PSD_WIRE_TAG_BYTES];
	uint64_t n_missing; /* incomplete chunks */
};

struct psd_connections {
	struct psd_connection *all;
	struct psd_peer *peers;
	struct psd_io_thread **io_threads; /* one per connection number; NULL: the loop moves all */
	struct psd_arriving *arriving;
	unsigned n_arriving, arriving_room;
	unsigned n_peers, n_connections, n_all;
	int epoll_fd, wake_fd, timer_fd;
	unsigned tag_bytes;
	struct psd_connections_owner owner;
	uint8_t *scratch; /* for values on their way to a sum */
	bool has_moved;
	double moved_sec;   /* last progress of I/O threads, as of the last turn; 0: none */
	bool has_delivered; /* an arrival may have made room for held messages */

	uint64_t low_water_bytes; /* UINT64_MAX: none */
	double timer_sec;	  /* INFINITY: not set */
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

/* I/O thread that moves a chunk of this size; NULL: the loop does. */
struct psd_io_thread *psd_connections_io_thread(const struct psd_connections *connections,
						const struct psd_connection *connection, uint64_t bytes);
/* Closes a connection and tells the owner. PSD_OK if the owner accepts that. */
enum psd_status psd_connections_lose(struct psd_connections *connections, struct psd_connection *connection,
				     int error_number, struct psd_error *err) PSD_MUST_CHECK;
/* Tells epoll what the connection waits for. */
enum psd_status psd_connections_watch(struct psd_connections *connections, struct psd_connection *connection,
				      struct psd_error *err) PSD_MUST_CHECK;

/* Counts a chunk of the peer's outgoing message as sent. */
void psd_connections_take_left(struct psd_connections *connections, unsigned peer);
/* Ends the chunk that the connection has received. */
void psd_connections_finish_chunk(struct psd_connections *connections, struct psd_connection *connection);
/* Reads headers and payloads until nothing is left or the turn is over. */
enum psd_status psd_connections_read(struct psd_connections *connections, struct psd_connection *connection,
				     struct psd_error *err) PSD_MUST_CHECK;

#endif
