/* Libraries outside of this program that sum what all workers have, to be compared with its own all-reduces, or what
 * those of a node have. One table of functions for each: mpi here, NCCL's behind the CUDA device. A library chooses its
 * own connections and steps, waits for the others in a thread of the caller's, and sums one thing at a time in an order
 * that is the same everywhere. They are loaded when one is asked for: psd-run starts where there is none. Refuses to
 * know programs and messages. */
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
	const uint8_t *invitation; /* what rank 0's invite() has written; NULL: the library has none */
	struct psd_device *device; /* the worker's */
};

/* All calls come from one thread at a time, but where it is said. */
struct psd_library_kind {
	const char *name;  /* that of its pattern, engine/collectives/collective.h */
	bool is_on_device; /* it sums in the device's memory, on PSD_STREAM_SUMS; else in the host's */
	/* Its ranks are the workers of one node. What they have summed the node's first worker, rank 0, adds up with
	 * the other nodes' first ones, without the library; spread() brings it back. On devices only. */
	bool is_inside_nodes;
	/* Whether this process can be one of n_ranks. PSD_EINVAL: why not, without a place and a subject. */
	enum psd_status (*check)(unsigned n_ranks, struct psd_error *err);
	/* Where ranks find each other by what one of them says: on rank 0, before it opens. Else NULL. */
	enum psd_status (*invite)(uint8_t invitation[PSD_LIBRARY_INVITATION_BYTES], struct psd_error *err);
	/* Waits until all ranks have come. *library is the caller's until close(). PSD_EINVAL as check(); PSD_ENOMEM,
	 * PSD_ERUN. */
	enum psd_status (*open)(struct psd_library **library, const struct psd_library_options *options,
				struct psd_error *err);
	/* The floats in `pieces`, of as many in total on every rank, become their sums over all ranks. Waits, or begins
	 * it where the library is on the device. room: for all of them together, in the host's memory; overwritten.
	 * PSD_ERUN. */
	enum psd_status (*sum)(struct psd_library *library, const struct iovec segments[], unsigned n_segments,
			       void *room, struct psd_error *err);
	/* The floats in `pieces` become rank 0's. Begins it; PSD_ERUN. NULL unless is_inside_nodes. */
	enum psd_status (*shard_map)(struct psd_library *library, const struct iovec segments[], unsigned n_segments,
				     struct psd_error *err);
	/* From any thread: what waits returns, with whatever. NULL: nothing ends a wait but the others. */
	void (*abort)(struct psd_library *library);
	/* Nothing is under way. is_orderly: all ranks close it; else some may have gone. NULL is allowed. */
	void (*close)(struct psd_library *library, bool is_orderly);
};

extern const struct psd_library_kind psd_library_mpi; /* Open MPI's, where psd-run was built with it */

#endif
