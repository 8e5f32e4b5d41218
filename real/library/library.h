/* All-reduces of external libraries: Open MPI's here, NCCL's with the CUDA device. They sum over all workers, to
 * compare them with psd's own all-reduces, or over the workers of one node. Each library is a table of functions
 * (struct psd_library_kind). A library chooses its own connections and steps, waits for other ranks in the caller's
 * thread, and sums in the same order on all ranks. It is loaded when first needed, so psd-run starts without it. Knows
 * neither programs nor messages of psd. */
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

/* Functions of one library. One thread at a time may call them; abort() may be called by any thread. */
struct psd_library_kind {
	const char *name;  /* name of the library's collective in scenarios, see engine/collectives/collective.h */
	bool is_on_device; /* sums in the device's memory, on its stream PSD_STREAM_SUMS; false: in the host's memory */
	/* True: the library's ranks are the workers of one node, and only devices have such a library. Rank 0 of each
	 * node then sums over all nodes by psd's own all-reduce, and spread() copies the result to the other ranks of
	 * the node. */
	bool is_inside_nodes;
	/* Checks that this process can be one of n_ranks ranks. PSD_EINVAL: it cannot; the caller puts the name of the
	 * library in front of the text. */
	enum psd_status (*check)(unsigned n_ranks, struct psd_error *err);
	/* On rank 0, before open(): writes the bytes by which all ranks find each other. NULL: the library needs
	 * none. */
	enum psd_status (*invite)(uint8_t invitation[PSD_LIBRARY_INVITATION_BYTES], struct psd_error *err);
	/* Opens the library; all ranks call it at once. close() frees *library. PSD_EINVAL as check(); PSD_ENOMEM,
	 * PSD_ERUN. */
	enum psd_status (*open)(struct psd_library **library, const struct psd_library_options *options,
				struct psd_error *err);
	/* Replaces the floats in `segments` by their sums over all ranks, which must have the same number of floats.
	 * Waits for the result; on a device it only starts the sum. scratch: host memory as large as all segments
	 * together, whose contents are lost. PSD_ERUN: the library failed. */
	enum psd_status (*sum)(struct psd_library *library, const struct iovec segments[], unsigned n_segments,
			       void *scratch, struct psd_error *err);
	/* Starts to replace the floats in `segments` by those of rank 0. NULL unless is_inside_nodes. PSD_ERUN: the
	 * library failed. */
	enum psd_status (*spread)(struct psd_library *library, const struct iovec segments[], unsigned n_segments,
				  struct psd_error *err);
	/* Ends a call of another function that waits; its results are then undefined. NULL: such a call ends only when
	 * other ranks call it, too. */
	void (*abort)(struct psd_library *library);
	/* Frees the library. No other function may be executing. is_orderly: all ranks call close(). library may be
	 * NULL. */
	void (*close)(struct psd_library *library, bool is_orderly);
};

extern const struct psd_library_kind psd_library_mpi; /* Open MPI; open() fails if psd-run was built without it */

#endif
