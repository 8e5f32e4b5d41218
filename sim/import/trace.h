/* A trace of PyTorch's profiler (Kineto, in Chrome's JSON format) in memory: operators and ranges of the host,
 * launches, and kernels of the device. Only fields that an import uses are stored. Each different string is stored once
 * and has a number. This module does not know layers. */
#ifndef PSD_IMPORT_TRACE_H
#define PSD_IMPORT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/names.h"

#define PSD_TRACE_NONE UINT32_MAX

/* An interval on a thread of the host: an operator of PyTorch, or a range, such as an annotation or the call of a
 * module. Times are microseconds. */
struct psd_trace_op {
	double start_us, dur_us;
	uint64_t external; /* number ("External id") that the operator's kernels have as well; 0: none */
	/* number of the operator in the sequence of autograd; an operator of backward has the number of its operator of
	 * forward. -1: none */
	int64_t sequence;
	uint32_t name; /* number of the string with the name */
	/* number of the string with the shapes of its inputs, as JSON; PSD_TRACE_NONE: not recorded */
	uint32_t dims;
	uint32_t thread; /* number of the string that names process and thread */
	/* number of the innermost operator or range around it on its thread; PSD_TRACE_NONE: none */
	uint32_t parent;
	uint32_t collective; /* index in trace->collectives; PSD_TRACE_NONE: it is not a collective */
	bool is_range;
	bool has_left_out; /* operators inside it were left out (inner.h) */
	bool is_late;	   /* an operator that starts later was left out before */
};

/* A call on the host that launches work of the device. The work has the same `correlation` number. */
struct psd_trace_launch {
	double start_us;
	uint64_t correlation;
	uint32_t thread;
};

enum psd_trace_copy { PSD_TRACE_KERNEL, PSD_TRACE_COPY, PSD_TRACE_SET };

/* Work of the device: a kernel, a copy or a memory set. */
struct psd_trace_kernel {
	double start_us, dur_us;
	/* number of the launch, and number ("External id") of the operator; 0: not recorded */
	uint64_t correlation, external;
	/* number of blocks in the kernel's grid, and of threads in a block; 0: not recorded */
	uint64_t n_blocks, n_threads;
	uint32_t name;
	/* number of the operator that launched it, set by psd_trace_settle(); PSD_TRACE_NONE: not known */
	uint32_t op;
	enum psd_trace_copy copy;
};

/* Arguments of a collective, from the operator record_param_comms. A range `nccl:...` has only name and type. */
struct psd_trace_collective {
	uint32_t name, dtype; /* numbers of the strings with the collective's name and its type of values */
	uint64_t elements;    /* number of values that a rank contributes */
	uint32_t n_ranks;     /* number of ranks in the group; 0: not known */
};

struct psd_trace {
	/* operators and ranges; after psd_trace_settle() they are ordered by thread, then by start, an outer one before
	 * those inside it */
	struct psd_trace_op *ops;
	uint32_t n_ops, ops_room;
	struct psd_trace_launch *launches;
	uint32_t n_launches, launches_room;
	struct psd_trace_kernel *kernels; /* kernels; after psd_trace_settle() they are ordered by start */
	uint32_t n_kernels, kernels_room;
	struct psd_trace_collective *collectives;
	uint32_t n_collectives, collectives_room;
	const char **strings;
	uint32_t n_strings, strings_room;
	struct psd_names names;
	struct psd_arena arena;
	uint32_t device;	/* number of the string with the first device's name; PSD_TRACE_NONE: not known */
	uint32_t n_ranks, rank; /* world size, and rank of the traced process; n_ranks 0: not known */
	uint64_t n_events;	/* number of events in the file */
	uint64_t n_left_out;	/* number of operators that were left out (inner.h) */
	bool has_dims;		/* at least one operator has the shapes of its inputs */
};

/* Reads a trace file: JSON, which may be compressed by gzip, or the SQLite export of Nsight Systems. On success
 * psd_trace_release() releases *trace. PSD_EINVAL: the file has another format, or has no event that an import uses.
 * PSD_EFILE, PSD_ENOMEM. */
enum psd_status psd_trace_read(struct psd_trace *trace, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Reads a trace as psd_trace_read() does, from length bytes in memory. path: name of the trace in messages. */
enum psd_status psd_trace_parse(struct psd_trace *trace, const char *path, const void *bytes, size_t length,
				struct psd_error *err) PSD_MUST_CHECK;
/* Orders operators and kernels, and finds the parent of each operator and the operator of each kernel. psd_trace_read()
 * and psd_trace_parse() call it. False: an operator was left out that the trace needs. */
bool psd_trace_settle(struct psd_trace *trace);
void psd_trace_release(struct psd_trace *trace);

/* Returns the number of a string, which is added if it is new. PSD_TRACE_NONE: out of memory. */
uint32_t psd_trace_intern(struct psd_trace *trace, const char *text, size_t length);
static inline const char *psd_trace_string(const struct psd_trace *trace, uint32_t number)
{
	return number == PSD_TRACE_NONE ? "" : trace->strings[number];
}

#endif
