/* All-reduces of libraries outside this program: Open MPI's here, NCCL's behind the CUDA device. They sum over all
 * workers, for a comparison with psd's own all-reduces, or over the workers of a node. Each library has one table of
 * functions. It chooses its own connections and steps, waits for other ranks in a thread of the caller, and sums in the
 * same order on all ranks. A library is loaded at first use: psd-run starts without it. Refuses to know programs and
 * messages. */
#ifndef PSD_REAL_LIBRARY_H
#define PSD_REAL_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "engine/base/error.h"

enum { PSD_LIBRARY_INVITATION_BYTES = 128 };

struct psd_device;
struct psd_library;

struct psd_library_options {
	unsigned rank, n_ranks;
	const uint8_t *invitation; /* bytes from invite() of rank 0; NULL if the library has no invite() */
	struct psd_device *device; /* device of the worker, in whose memory it may sum */
};

/* Functions of a library. One thread at a time calls them, except abort(). */
struct psd_library_kind {
	const char *name;  /* name of the library's collective, see engine/collectives/collective.h */
	bool is_on_device; /* sums in the device's memory, on PSD_STREAM_SUMS; false: in the host's memory */
	/* The library's ranks are the workers of one node. Rank 0 of each node then sums over the nodes without the
	 * library, and spread() copies that to the node's other ranks. On devices only. */
	bool is_inside_nodes;
	/* Checks that this process can be one of n_ranks. PSD_EINVAL: it cannot; the text has no place or subject. */
	enum psd_status (*check)(unsigned n_ranks, struct psd_error *err);
	/* Writes the bytes by which ranks find each other; called on rank 0 before open(). NULL: they need none. */
	enum psd_status (*invite)(uint8_t invitation[PSD_LIBRARY_INVITATION_BYTES], struct psd_error *err);
	/* Opens the library with all ranks at once. close() frees it. PSD_EINVAL as check(); PSD_ENOMEM, PSD_ERUN. */
	enum psd_status (*open)(struct psd_library **library, const struct psd_library_options *options,
				struct psd_error *err);
	/* Replaces the floats in `segments` by their sums over all ranks, which have the same number of them. Waits; on
	 * the device it only starts. scratch: memory of the host as large as all segments, overwritten. PSD_ERUN. */
	enum psd_status (*sum)(struct psd_library *library, const struct iovec segments[], unsigned n_segments,
			       void *scratch, struct psd_error *err);
	/* Starts to replace the floats in `segments` by those of rank 0. NULL unless is_inside_nodes. PSD_ERUN. */
	enum psd_status (*spread)(struct psd_library *library, const struct iovec segments[], unsigned n_segments,
				  struct psd_error *err);
	/* Ends a wait in another function, whose results are then undefined. Any thread. NULL: only ranks end a
	 * wait. */
	void (*abort)(struct psd_library *library);
	/* Frees the library; no function may be running. is_orderly: all ranks call it. NULL is allowed. */
	void (*close)(struct psd_library *library, bool is_orderly);
};

extern const struct psd_library_kind psd_library_mpi; /* Open MPI; open() fails unless psd-run was built with it */

#endif
