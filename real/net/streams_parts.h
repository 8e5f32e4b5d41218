/* What the parts of the streams share: connections, the messages that go out and those that come in. For
 * real/net/streams*.c alone. */
#ifndef PSD_REAL_STREAMS_PARTS_H
#define PSD_REAL_STREAMS_PARTS_H

#include <stdatomic.h>

#include "real/net/porter.h"
#include "real/net/streams.h"

struct psd_line {
	unsigned peer;
	struct psd_carrier carrier;
	struct psd_outlet out;
	struct psd_inflow in;
	uint32_t events; /* that epoll watches */
	bool is_ready;	 /* to be read, though epoll does not say so */
	bool has_low_water;
	struct psd_outlet chunk; /* of `sending` */
	struct psd_errand sending, reading;
	uint64_t coming_bytes; /* that surely come on it behind the chunk that is coming, or came last */
};

struct psd_peer {
	double heard_sec; /* when anything last came from it */

	/* The message to it. */
	struct psd_wire_head head;
	uint8_t tag[PSD_WIRE_TAG_BYTES];
	struct iovec pieces[PSD_PIECES_MAX];
	unsigned n_pieces;
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

struct psd_streams {
	struct psd_line *lines;
	struct psd_peer *peers;
	struct psd_porter **porters; /* one for each of n_lines; NULL: the loop moves all */
	struct psd_arriving *arriving;
	unsigned n_arriving, arriving_room;
	unsigned n_peers, n_lines, n_all;
	int epoll_fd, wake_fd, timer_fd;
	unsigned tag_bytes;
	struct psd_streams_owner owner;
	uint8_t *scratch; /* received floats on their way to a sum */
	bool has_moved;
	double moved_sec; /* by socket threads, as far as a turn has said; 0: never */
	bool has_told;	  /* arrivals may have made room for what is held */

	uint64_t low_water_bytes; /* UINT64_MAX: none */
	double timer_sec;	  /* when it rings; INFINITY: never */
};

static inline bool psd_line_sends(const struct psd_line *line)
{
	return !psd_outlet_is_idle(&line->out) && line->sending.state == PSD_ERRAND_HOME;
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
struct psd_porter *psd_streams_porter(const struct psd_streams *streams, const struct psd_line *line, uint64_t bytes);
/* Gives a connection up and says so; PSD_OK where that is fine. */
enum psd_status psd_streams_lose(struct psd_streams *streams, struct psd_line *line, int error_number,
				 struct psd_error *err) PSD_MUST_CHECK;
/* Has epoll wait for what the line can do next. */
enum psd_status psd_streams_watch(struct psd_streams *streams, struct psd_line *line,
				  struct psd_error *err) PSD_MUST_CHECK;

/* One more chunk of the message to a peer has left. */
void psd_streams_take_left(struct psd_streams *streams, unsigned peer);
/* The chunk that the line reads is complete. */
void psd_streams_finish_chunk(struct psd_streams *streams, struct psd_line *line);
/* Reads what is there, headers and payloads, until its turn is over. */
enum psd_status psd_streams_read_line(struct psd_streams *streams, struct psd_line *line,
				      struct psd_error *err) PSD_MUST_CHECK;

#endif
