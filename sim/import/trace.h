/* A trace of PyTorch's profiler (Kineto, Chrome's JSON) in memory: operators and ranges of the host, launches, and
 * kernels of the device. The reader streams the file, and keeps only fields that an import uses. Strings are interned.
 * Knows nothing of layers. */
#ifndef PSD_IMPORT_TRACE_H
#define PSD_IMPORT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/names.h"

#define PSD_TRACE_NONE UINT32_MAX

/* A span on a thread of the host: an operator of PyTorch, or a range (an annotation, a module's call). */
struct psd_trace_op {
	double start_us, dur_us;
	uint64_t external;   /* number by which kernels may name the operator; 0: none */
	int64_t sequence;    /* number of the node of autograd; -1: none */
	uint32_t name;	     /* number of a string */
	uint32_t dims;	     /* string of the shapes of its inputs, as JSON; PSD_TRACE_NONE: not recorded */
	uint32_t thread;     /* string of process and thread */
	uint32_t parent;     /* innermost span around it on its thread; PSD_TRACE_NONE: none */
	uint32_t collective; /* number of an entry of `collectives`; PSD_TRACE_NONE: none */
	bool is_range;
};

/* A call of the device's runtime. */
struct psd_trace_launch {
	double start_us;
	uint64_t correlation;
	uint32_t thread;
};

enum psd_trace_copy { PSD_TRACE_KERNEL, PSD_TRACE_COPY, PSD_TRACE_SET };

/* Work of the device. */
struct psd_trace_kernel {
	double start_us, dur_us;
	uint64_t correlation, external; /* 0: none */
	uint64_t n_blocks, n_threads;	/* blocks of the grid, and threads of a block; 0: not recorded */
	uint32_t name;
	uint32_t op; /* number of the operator that launched it, after psd_trace_settle(); PSD_TRACE_NONE: unknown */
	enum psd_trace_copy copy;
};

/* Arguments of a collective, as record_param_comms has them; for a range `nccl:...` only name and type. */
struct psd_trace_collective {
	uint32_t name, dtype; /* strings */
	uint64_t elements;    /* values that a rank sends */
	uint32_t n_ranks;     /* size of the group; 0: unknown */
};

struct psd_trace {
	struct psd_trace_op *ops; /* after psd_trace_settle() by thread, then start, outer ones first */
	uint32_t n_ops, ops_room;
	struct psd_trace_launch *launches;
	uint32_t n_launches, launches_room;
	struct psd_trace_kernel *kernels; /* after psd_trace_settle() by start */
	uint32_t n_kernels, kernels_room;
	struct psd_trace_collective *collectives;
	uint32_t n_collectives, collectives_room;
	const char **strings;
	uint32_t n_strings, strings_room;
	struct psd_names names;
	struct psd_arena arena;
	uint32_t device;	/* string of the first device's name; PSD_TRACE_NONE: unknown */
	uint32_t n_ranks, rank; /* world size and rank; n_ranks 0: unknown */
	uint64_t n_events;	/* number of events in the file */
	bool has_dims;		/* an operator has shapes */
};

/* Reads the file: JSON, gzip or not, or the SQLite export of Nsight Systems. On success psd_trace_release() releases
 * *trace. PSD_EINVAL: it is not JSON, or has no event that an import uses; PSD_EFILE, PSD_ENOMEM. */
enum psd_status psd_trace_read(struct psd_trace *trace, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* As above, from bytes in memory. */
enum psd_status psd_trace_parse(struct psd_trace *trace, const char *path, const void *bytes, size_t length,
				struct psd_error *err) PSD_MUST_CHECK;
/* Finds parents of operators, and operators of kernels. Called by both functions above. */
void psd_trace_settle(struct psd_trace *trace);
void psd_trace_release(struct psd_trace *trace);

/* Number of the string, which is added if it is new. PSD_TRACE_NONE: out of memory. */
uint32_t psd_trace_intern(struct psd_trace *trace, const char *text, size_t length);
static inline const char *psd_trace_string(const struct psd_trace *trace, uint32_t number)
{
	return number == PSD_TRACE_NONE ? "" : trace->strings[number];
}

#endif
