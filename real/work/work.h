/* Work of a host: its operations, except messages. Operations of one purpose are a family: a file that fills a struct
 * psd_family, and a row of PSD_FAMILIES. Operations are executed by the threads of their resources. The order of the
 * program ensures that operations which use the same tensors do not execute at the same time. */
#ifndef PSD_REAL_WORK_H
#define PSD_REAL_WORK_H

#include "engine/program/interpreter.h"
#include "real/data/feed.h"
#include "real/keep/host.h"
#include "real/work/chunk_selection.h"
#include "real/work/scale.h"

struct psd_work;

typedef enum psd_status psd_work_open_fn(struct psd_work *work, struct psd_error *err);
typedef enum psd_status psd_work_fn(struct psd_work *work, struct psd_task task, struct psd_error *err);

/* One kind of operation. */
struct psd_work_row {
	enum psd_op_kind kind;
	/* Executes the operation; an asynchronous device may end it later. Called by a thread of its resource. */
	psd_work_fn *run;
	/* Called immediately before run(); its time does not count as the operation's. NULL: nothing to do. */
	psd_work_fn *prepare;
	/* Called by the event loop's thread when the operation has ended. NULL: nothing to do. */
	void (*finish)(struct psd_work *work, struct psd_task task);
	/* True if execution is faster than a change of threads. last_sec: duration of its last execution, seconds; 0:
	 * it was not executed before. NULL: it never is. */
	bool (*is_small)(const struct psd_work *work, const struct psd_op *op, double last_sec);
	/* If the device has its own memory, it executes the operation, although the operation's resource is another
	 * one. */
	bool follows_device;
};
enum { PSD_MOST_WORK_ROWS = 4 };
/* First members of a row: the kind, and the function that executes it. */
#define PSD_RUNS(kind_name, function) .kind = PSD_OP_##kind_name, .run = (function)

struct psd_family {
	/* True if the family executes an operation of its kinds; the first family that does gets it. NULL: always. */
	bool (*takes)(const struct psd_plan *plan, const struct psd_op *op);
	/* Makes the family's state if the plan needs it. PSD_ENOMEM; statuses of the device's functions. */
	psd_work_open_fn *open;			      /* NULL: it has no state */
	struct psd_work_row rows[PSD_MOST_WORK_ROWS]; /* `run` of unused ones is NULL */
};

/* Families, in the order in which they are opened and asked. */
#define PSD_FAMILIES(ROW)                                                                                              \
	ROW(scales)                                                                                                    \
	ROW(own_updates)                                                                                               \
	ROW(sparse)                                                                                                    \
	ROW(packed)                                                                                                    \
	ROW(low_rank)                                                                                                  \
	ROW(clip)                                                                                                      \
	ROW(local) ROW(stale) ROW(async) ROW(accumulate) ROW(layers) ROW(update) ROW(moves) ROW(reduce) ROW(sums)

#define PSD_DECLARE_FAMILY(name) extern const struct psd_family psd_family_##name;
PSD_FAMILIES(PSD_DECLARE_FAMILY)

#define PSD_STATE_OF_FAMILY(name) void *name;
struct psd_work {
	struct psd_host *host;
	const struct psd_period *period;  /* schedule of local SGD: iterations in which workers exchange */
	const struct psd_work_row **rows; /* row of each operation; NULL: there is nothing to execute; shape (n_ops) */
	/* State of each family, known to its file alone; NULL: it has none. */
	struct {
		PSD_FAMILIES(PSD_STATE_OF_FAMILY)
	} states;
};

/* Returns the row that executes an operation of the plan; NULL: there is nothing to execute. Pure. */
const struct psd_work_row *psd_work_find(const struct psd_plan *plan, const struct psd_op *op);
/* Opens all families. The host's memory must be open. PSD_ENOMEM; statuses of the device's functions. */
enum psd_status psd_work_open(struct psd_work *work, struct psd_error *err) PSD_MUST_CHECK;
void psd_work_close(struct psd_work *work);
/* True if an operation is executed faster than it is handed to another thread. last_sec: see psd_work_row. */
bool psd_work_is_small(const struct psd_work *work, const struct psd_op *op, double last_sec);
/* True if adding or updating this number of elements is faster than a change of threads. */
bool psd_work_is_few(uint64_t elements);
/* True if psd_work_is_few() is true for the elements of the operation's item (bucket); for psd_work_row.is_small. */
bool psd_work_has_few(const struct psd_work *work, const struct psd_op *op, double last_sec);

/* ---- layers.c ---- */

/* Executes the forward or the backward pass of some layers on the current batch. Called by the thread that executes the
 * device's operations. Statuses of the device's functions. */
enum psd_status psd_work_pass(const struct psd_work *work, struct psd_pass pass, struct psd_error *err) PSD_MUST_CHECK;
/* Returns the source of training samples; NULL: this host is a separate server, or replays. */
struct psd_feed *psd_work_feed(const struct psd_work *work);

/* ---- scales.c ---- */

/* Returns the loss scale of the operation's slice: of this worker's own gradients or, if this host executes the
 * operation as shard or root (the host that updates an item), of the sums that it makes. */
struct psd_scale *psd_work_scale(const struct psd_work *work, const struct psd_op *op);
/* True if the update of this operation is skipped because a sum overflowed. An overflow in the sum of one slice skips
 * the updates of all slices of the same item (bucket). */
bool psd_work_skips(const struct psd_work *work, const struct psd_op *op);
/* Adds this host's numbers of updates and of skipped updates to *result. Adds nothing in a replay. */
void psd_work_count_updates(const struct psd_work *work, struct psd_worker_result *result);

/* ---- sparse.c ---- */

/* Returns the chunks that a sparse exchange sends; NULL: the plan has no sparse exchange, or all workers replay. */
struct psd_chunk_selection *psd_work_selection(const struct psd_work *work);
/* Returns the number of elements of an operation's item (bucket) that are sent in the task's iteration. Without a
 * selection it is the number in the plan. */
uint64_t psd_work_travelling(const struct psd_work *work, struct psd_task task);
/* Returns arguments of the device's functions for each item (bucket), n_items entries that psd_work_fill_chunks()
 * completes. They belong to the host's arena. NULL: PSD_ENOMEM. */
struct psd_chunks *psd_work_make_chunks(struct psd_host *host, struct psd_error *err);
/* Sets the arguments of the task's item (bucket) for its iteration. Returns the item's tensors, for changes. */
struct psd_chunk_tensor *psd_work_fill_chunks(const struct psd_work *work, struct psd_task task,
					      struct psd_chunks chunks[]);
/* For a host that replays beside real workers: makes the selection of chunks, without the other state of sparse
 * exchange. PSD_ENOMEM. */
enum psd_status psd_work_open_selection(struct psd_work *work, struct psd_error *err) PSD_MUST_CHECK;
/* Draws the selection of the next iteration at random, equal on all hosts of a replay with real workers. */
void psd_work_draw_selection(const struct psd_work *work);
/* Sets the counts of chunks that managed communication has sent early. */
void psd_work_count_early(const struct psd_work *work, struct psd_worker_result *result);
/* Sets the ages of the gradients by which this host's shard has updated. Leaves *ages if training is not asynchronous,
 * and in a replay. */
void psd_work_count_ages(const struct psd_work *work, struct psd_gradient_ages *ages);
/* Takes over the selection that was made last; with managed communication it has all chunks at a clock's end. */
void psd_work_adopt_selection(const struct psd_work *work);
/* True if the operation moves selected chunks. */
bool psd_work_is_of_chunks(const struct psd_work *work, const struct psd_op *op);

/* ---- clip.c ---- */

/* Returns the factor by which gradients are multiplied before an update, in the device's memory; NULL: they are not
 * clipped. */
const float *psd_work_clip_ratio(const struct psd_work *work);
/* For LARS by parts of tensors: sets *squares to the sums of squares of the clipped gradients of an item's (bucket's)
 * tensors, in the device's memory; those of the parameters are n_tensors of the plan further. NULL: each worker has
 * whole tensors. Statuses of the device's functions. */
enum psd_status psd_work_find_squares(struct psd_work *work, const struct psd_plan_item *item, uint32_t iteration,
				      const double **squares, struct psd_error *err) PSD_MUST_CHECK;

#endif
