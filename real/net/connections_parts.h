/* What the parts of the streams share: connections, the messages that go out and those that come in. For
 * real/net/connections*.c alone. */
#ifndef PSD_REAL_CONNECTIONS_PARTS_H
#define PSD_REAL_CONNECTIONS_PARTS_H

#include <stdatomic.h>

#include "real/net/connections.h"
#include "real/net/io_thread.h"

struct psd_line {
	unsigned peer;
	struct psd_carrier carrier;
	struct psd_chunk_sender out;
	struct psd_chunk_receiver in;
	uint32_t events; /* that epoll watches */
	bool is_ready;	 /* to be read, though epoll does not say so */
	bool has_low_water;
	struct psd_chunk_sender chunk; /* of `sending` */
	struct psd_errand sending, reading;
	uint64_t coming_bytes; /* that surely come on it behind the chunk that is coming, or came last */
};

struct psd_peer {
	double heard_sec; /* when anything last came from it */

	/* The message to it. */
	struct psd_wire_head head;
	uint8_t tag[PSD_WIRE_TAG_BYTES];
	struct iovec segments[PSD_SEGMENTS_MAX];
	unsigned n_segments;
	uint64_t n_chunks, n_given; /* chunks: all, and given to lines */
	uint64_t n_left;	    /* chunks that the transport has */
};

/* A message of several chunks, some of which have come. */
struct psd_arriving {
	unsigned peer;
	struct psd_wire_head head; /* of any chunk */
	struct psd_inlet inlet;	   /* of the whole */
	uint8_t tag[PSD_WIRE_TAG_BYTES];
	uint64_t n_missing; /* chunks that are not complete */
};

struct psd_connections {
	struct psd_line *lines;
	struct psd_peer *peers;
	struct psd_io_thread **porters; /* one for each of n_connections; NULL: the loop moves all */
	struct psd_arriving *arriving;
	unsigned n_arriving, arriving_room;
	unsigned n_peers, n_connections, n_all;
	int epoll_fd, wake_fd, timer_fd;
	unsigned tag_bytes;
	struct psd_connections_owner owner;
	uint8_t *scratch; /* received floats on their way to a sum */
	bool has_moved;
	double moved_sec; /* by socket threads, as far as a turn has said; 0: never */
	bool has_told;	  /* arrivals may have made room for what is held */

	uint64_t low_water_bytes; /* UINT64_MAX: none */
	double timer_sec;	  /* when it rings; INFINITY: never */
};

static inline bool psd_line_sends(const struct psd_line *line)
{
	return !psd_chunk_sender_is_idle(&line->out) && line->sending.state == PSD_ERRAND_HOME;
}

static inline bool psd_line_reads(const struct psd_line *line)
{
	return !line->in.is_held && line->reading.state == PSD_ERRAND_HOME;
}

static inline double psd_errand_moved_sec(const struct psd_errand *errand)
{
	return atomic_load_explicit(&errand->moved_sec, memory_order_relaxed);
}

/* For the chunk of a line; NULL: the loop moves it. */
struct psd_io_thread *psd_connections_io_thread(const struct psd_connections *connections, const struct psd_line *line,
						uint64_t bytes);
/* Gives a connection up and says so; PSD_OK where that is fine. */
enum psd_status psd_connections_lose(struct psd_connections *connections, struct psd_line *line, int error_number,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Has epoll wait for what the line can do next. */
enum psd_status psd_connections_watch(struct psd_connections *connections, struct psd_line *line,
				      struct psd_error *err) PSD_MUST_CHECK;

/* One more chunk of the message to a peer has left. */
void psd_connections_take_left(struct psd_connections *connections, unsigned peer);
/* The chunk that the line reads is complete. */
void psd_connections_finish_chunk(struct psd_connections *connections, struct psd_line *line);
/* Reads what is there, headers and payloads, until its turn is over. */
enum psd_status psd_connections_read_line(struct psd_connections *connections, struct psd_line *line,
					  struct psd_error *err) PSD_MUST_CHECK;

#endif
