/* All-reduces of external libraries: Open MPI here, NCCL with the CUDA device. They sum over all workers, so that they
 * can be compared with psd's own all-reduces, or over the workers of one node. Each library is a table of functions
 * (struct psd_library_kind). A library makes its own connections. Its functions wait for other ranks in the caller's
 * thread, and sum in the same order on all ranks. A library is loaded when it is first needed, so psd-run starts
 * without it. This module knows neither psd's programs nor its messages. */
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
	const uint8_t *invitation; /* bytes that invite() wrote on rank 0; NULL if the library has no invite() */
	struct psd_device *device; /* the worker's device, in whose memory the library may sum */
};

/* Functions of one library. Only one thread at a time may call them, except abort(), which any thread may call. */
struct psd_library_kind {
	const char *name; /* name of the library's collective in scenarios, see engine/collectives/collective.h */
	/* The library sums in the device's memory, on the stream PSD_STREAM_SUMS; false: in the host's memory. */
	bool is_on_device;
	/* True: the library's ranks are only the workers of one node. Then rank 0 of each node sums over all nodes by
	 * psd's own all-reduce, and spread() copies the result to the other ranks of the node. Such a library needs
	 * is_on_device. */
	bool is_inside_nodes;
	/* Checks that this process can be one of n_ranks ranks. PSD_EINVAL: it cannot; the caller puts the name of the
	 * library before the text. */
	enum psd_status (*check)(unsigned n_ranks, struct psd_error *err);
	/* Called on rank 0, before open(): writes the bytes that all ranks need to connect to each other. NULL: the
	 * library needs no such bytes. */
	enum psd_status (*invite)(uint8_t invitation[PSD_LIBRARY_INVITATION_BYTES], struct psd_error *err);
	/* Opens the library; all ranks call it at the same time. close() frees *library. PSD_EINVAL as check();
	 * PSD_ENOMEM, PSD_ERUN. */
	enum psd_status (*open)(struct psd_library **library, const struct psd_library_options *options,
				struct psd_error *err);
	/* Replaces each float in `segments` by its sum over all ranks; all ranks must have the same number of floats.
	 * If is_on_device, it only starts the sum; otherwise it waits for the result. scratch: host memory as large as
	 * all segments together; its contents are overwritten. PSD_ERUN: the library failed. */
	enum psd_status (*sum)(struct psd_library *library, const struct iovec segments[], unsigned n_segments,
			       void *scratch, struct psd_error *err);
	/* Starts to replace the floats in `segments` by the floats of rank 0. NULL unless is_inside_nodes. PSD_ERUN:
	 * the library failed. */
	enum psd_status (*spread)(struct psd_library *library, const struct iovec segments[], unsigned n_segments,
				  struct psd_error *err);
	/* Ends a call of sum() or spread() that another thread waits in; the results of that call are
	 * undefined. NULL: a call that waits ends only when the other ranks make the same call. */
	void (*abort)(struct psd_library *library);
	/* Frees the library. No other function may be executing. is_orderly: true if all ranks call close(); false if a
	 * rank may have failed. NULL is allowed for `library`. */
	void (*close)(struct psd_library *library, bool is_orderly);
};

extern const struct psd_library_kind psd_library_mpi; /* Open MPI; open() fails if psd-run was built without it */

#endif
