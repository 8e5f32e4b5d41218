/* Bytes from one end to another through memory that both have mapped, in order, without a system call. One end writes,
 * the other reads; an end that finds nothing to do says that it sleeps, and the other is then told to wake it. Neither
 * trusts what the other writes into the memory: a count that cannot be is an error, never an access beyond the tube.
 * Refuses to know how memory is shared and how somebody is woken. One thread for each end. */
#ifndef PSD_REAL_RING_BUFFER_H
#define PSD_REAL_RING_BUFFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* A power of two. The less room, the more often one end waits for the other. Measured between two processes on two
 * cores of an EPYC with 32 MiB of cache: 128 KiB 3.3 GB/s, 512 KiB 6, 1 MiB 10, 4 MiB 13; TCP on loopback 3.1. */
#define PSD_RING_BUFFER_BYTES (UINT64_C(1) << 20)

/* As it lies in the memory; zeros are an empty one. Each count is written by one end, on a cache line of its own. */
struct psd_ring_buffer {
	_Alignas(64) _Atomic uint64_t n_written; /* bytes, ever */
	_Alignas(64) _Atomic uint64_t n_read;
	_Alignas(64) _Atomic uint32_t does_reader_sleep; /* set by who sleeps, cleared by who wakes it */
	_Alignas(64) _Atomic uint32_t does_writer_sleep;
	_Alignas(64) uint8_t bytes[PSD_RING_BUFFER_BYTES];
};

/* What an end knows by itself. */
struct psd_ring_buffer_end {
	struct psd_ring_buffer *ring; /* borrowed */
	uint64_t n_moved;	      /* bytes, ever */
};

/* How many bytes, at least one; -1 with EAGAIN: there is no room, nothing to read; with EPROTO: the other end has
 * written nonsense. *wakes: the other end sleeps and is to be woken; untouched otherwise. */
ssize_t psd_ring_buffer_write(struct psd_ring_buffer_end *writer, const struct iovec segments[], unsigned n_segments,
			      bool *wakes);
ssize_t psd_ring_buffer_read(struct psd_ring_buffer_end *reader, const struct iovec segments[], unsigned n_segments,
			     bool *wakes);
/* Before an end sleeps. False: the other end is told to wake it, a reader for any byte, a writer once half the tube is
 * empty. True: it is not to sleep, for that is already so, or an error is to be heard. */
bool psd_ring_buffer_may_write(struct psd_ring_buffer_end *writer);
bool psd_ring_buffer_may_read(struct psd_ring_buffer_end *reader);

#endif
