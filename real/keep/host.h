/* One host of a run: its plan, its device, and the memory that it keeps from iteration to iteration. Parts of the host
 * that work or send messages are built on it. It knows neither messages nor operations. After psd_host_open_memory()
 * the pointers do not change. */
#ifndef PSD_REAL_HOST_H
#define PSD_REAL_HOST_H

#include <stdatomic.h>

#include "engine/base/arena.h"
#include "real/keep/run.h"
#include "real/net/wire.h"

struct psd_state;

/* A part of the host with values that checkpoints keep beside the host's memory. */
struct psd_keeper {
	const char *tensor; /* name of its first tensor in a file */
	const char *name;   /* name of its values, for the note that a checkpoint lacks them */
	/* Adds its tensors to the list, with their present values. */
	void (*add)(void *context, struct psd_state *state);
	/* Takes the values that were read into its tensors. path: name of the file for errors. PSD_EINVAL: the file has
	 * values that are impossible in this run. */
	enum psd_status (*take)(void *context, const char *path, struct psd_error *err);
	/* Begins without values, in a run that resumes from another system's checkpoint; NULL: nothing to do. */
	void (*begin)(void *context);
	void *context;
};
enum { PSD_MOST_KEEPERS = 5 };

/* Progress of work that is not an operation: tests, checkpoints and the start of a host. It is counted in pieces. A
 * piece is a batch of a test, or a tensor of a checkpoint. The thread that executes the device's operations writes
 * these fields, and the event loop reads them. */
struct psd_parts_done {
	_Atomic double moved_sec; /* time at which the last piece ended (psd_socket_now_sec()) */
	/* Longest duration of a test's batch so far, seconds; 0: no test so far. */
	_Atomic double longest_test_sec;
	/* Longest duration of a checkpoint's tensor so far, seconds; 0: no checkpoint so far. */
	_Atomic double longest_save_sec;
};

/* Parameters of all workers, see whole.h. */
struct psd_whole {
	float *values; /* NULL: they are not gathered */
	uint64_t bytes;
};

struct psd_host {
	struct psd_arena arena; /* owner of the memory of the host's arrays, which is freed as a whole */
	const struct psd_worker_options *options;
	const struct psd_program *program;
	const struct psd_plan *plan;
	const struct psd_layout *layout;
	const struct psd_graph *graph;
	const struct psd_device_kind *kind; /* functions of the host's kind of device */
	unsigned self, n_hosts;
	uint64_t global_batch; /* number of samples of all workers in an iteration */
	uint32_t batch;	       /* number of samples of a micro-batch of this worker; of a server: that of worker 0 */
	/* number of samples of an iteration that belong to workers with smaller numbers */
	uint64_t samples_before;

	struct psd_device *device;
	bool has_device;
	struct psd_memory memory; /* parameters, gradients and buffers in the host's memory */
	/* Buffers in the device's own memory; not used if the device computes in the host's memory. */
	struct psd_memory apart;
	/* Memory in which the device computes: &memory or &apart. */
	const struct psd_memory *on_device;
	struct psd_whole whole;
	/* Host memory through which tensors are copied from the device to the file of a checkpoint; NULL: not allocated
	 * yet. */
	void *staging;

	struct psd_keeper keepers[PSD_MOST_KEEPERS]; /* in the order of their tensors in files */
	unsigned n_keepers;
	struct psd_parts_done parts_done;
	/* Hashes of the terms of all runs that led to the checkpoint from which this run resumes, and of the run that
	 * wrote it; 0: it does not resume from one. */
	uint64_t saved_run_hash, saved_terms_hash;
	/* Last digest of this host's parameters, after look_iterations iterations. Set by the thread that executes the
	 * device's operations, while no operation is executing. */
	uint32_t look_iterations;
	struct psd_wire_parameters look;
	/* Hash of this host's processor, device and libraries, see struct psd_wire_parameters. */
	uint64_t arithmetic;
};

enum psd_status psd_worker_out_of_memory(struct psd_error *err);
/* Returns zeroed memory that lives as long as the host. NULL: memory ran out, and *err says so. */
void *psd_host_take(struct psd_host *host, size_t n, size_t bytes, struct psd_error *err);
/* Allocates the memory of host and device, with initial parameters. PSD_ENOMEM; statuses of the device's functions. */
enum psd_status psd_host_open_memory(struct psd_host *host, struct psd_error *err) PSD_MUST_CHECK;
/* Copies the parameters in this host's memory to every other place where they are stored: to the copies in fp32 that
 * shards and roots update, and to the device's own memory. */
enum psd_status psd_host_bring_parameters(struct psd_host *host, struct psd_error *err) PSD_MUST_CHECK;
/* Copies the final parameters from the device into the host's memory. Does nothing if the device computes in the host's
 * memory. */
enum psd_status psd_host_fetch_parameters(struct psd_host *host, struct psd_error *err) PSD_MUST_CHECK;
/* Returns the total number of samples that all workers have processed before `iteration`, since the start of
 * training. */
uint64_t psd_host_samples(const struct psd_host *host, uint64_t iteration);
/* Record that a piece of work which is not an operation has ended, so that the event loop sees progress. The piece is a
 * part of the start (psd_host_moved()), a batch of a test (_test), or a tensor of a checkpoint (_save). Called by the
 * thread that executes the device's operations. */
void psd_host_moved(struct psd_host *host);
void psd_host_moved_test(struct psd_host *host);
void psd_host_moved_save(struct psd_host *host);

#endif
