/* Resuming from a checkpoint of other hosts or of another system. Each kept element gets its new position:
 *
 *   parameters     all hosts get the exact ones, from the hosts that keep exact copies, else from worker 0
 *   moments        an element's go from its old updater to its new one; with local steps, the mean over all workers
 *   outer momentum an element's goes to its new updater
 *   residuals      worker w's, velocities included, go to worker w modulo the new number of workers, so the total is
 *                  the same; servers' go to servers, if there are any
 *   statistics     worker w takes those of worker w modulo the old number; so worker 0, which tests, keeps its own
 *   low-rank basis as many rows as both ranks have
 *   late sums      sums that both systems have yet to apply; a sum that was applied already becomes an empty update,
 *                  which momentum continues
 *
 * Everything else starts anew, and is named in a remark. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "real/keep/save.h"
#include "real/keep/soundness.h"

enum { ROOM_ELEMENTS = 1 << 20 };

struct reshaping {
	struct psd_host *host;
	struct psd_state state;
	struct psd_shard_map own; /* this run's */
	struct psd_old_checkpoint old;
	float *values, *others; /* scratch */
};

typedef enum psd_status read_fn(struct reshaping *of, enum psd_buffer buffer, unsigned tensor, struct psd_range range,
				float *to, struct psd_error *err);

static unsigned self_of(const struct reshaping *of)
{
	return of->host->self;
}

static bool keeps(const struct reshaping *of, enum psd_buffer buffer, unsigned tensor)
{
	const struct psd_shard_map_place *place = &of->own.places[tensor];

	return place->is_known && psd_plan_keeps(of->host->plan, &of->host->plan->items[place->item], buffer);
}

static void multiply(float *values, uint64_t n, float ratio)
{
	for (uint64_t i = 0; i < n && ratio != 1.0f; i++)
		values[i] *= ratio;
}

static void clear(float *values, uint64_t n)
{
	memset(values, 0, n * sizeof(*values));
}

/* ---- parameters ---- */

static enum psd_status read_plain(struct reshaping *of, unsigned tensor, struct psd_range range, float *to,
				  struct psd_error *err)
{
	const struct psd_tensor *wanted = &of->host->graph->tensors[tensor];
	const struct psd_file_tensor *found = psd_tensor_file_find(of->old.files[0], wanted->name);
	uint64_t n_bytes = 0;

	if (!found || found->type != PSD_TENSOR_F32 || !psd_file_tensor_bytes(found, &n_bytes) ||
	    n_bytes != wanted->elements * sizeof(*to))
		return psd_error_set(
			err, PSD_EINVAL, (struct psd_place){.path = psd_old_checkpoint_path(&of->old, 0).text},
			"the checkpoint has no '%.100s' of %" PRIu64 " values, which this run resumes from",
			wanted->name, wanted->elements);
	return psd_tensor_file_read(of->old.files[0], found, range.first * sizeof(*to), range.elements * sizeof(*to),
				    to, err);
}

static enum psd_status read_parameter(struct reshaping *of, unsigned tensor, struct psd_range range, float *to,
				      struct psd_error *err)
{
	struct psd_old_checkpoint *old = &of->old;

	if (psd_old_checkpoint_keeps(old, PSD_BUFFER_PART, tensor))
		return psd_old_checkpoint_read(old, PSD_BUFFER_PART, 0, tensor, range, to, err);
	if (psd_old_checkpoint_keeps(old, PSD_BUFFER_OWN, tensor))
		return psd_old_checkpoint_read(old, PSD_BUFFER_OWN, 0, tensor, range, to, err);
	if (psd_old_checkpoint_keeps(old, PSD_BUFFER_MASTER, tensor))
		return psd_old_checkpoint_read(old, PSD_BUFFER_MASTER, psd_old_checkpoint_root(old, tensor), tensor,
					       range, to, err);
	/* within a period the parameters of the last exchange are those that all workers had */
	if (psd_old_checkpoint_keeps(old, PSD_BUFFER_START, tensor))
		return psd_old_checkpoint_read(old, PSD_BUFFER_START, 0, tensor, range, to, err);
	return read_plain(of, tensor, range, to, err);
}

/* ---- moments ---- */

/* Ratio of one worker's gradient, divided by all workers' samples, to the sum; power: the exponent of the gradient in
 * the moment. */
static float adaptive_ratio(const struct reshaping *of, unsigned power)
{
	const float was = of->old.shard_map.is_local ? (float)of->old.shard_map.layout.workers : 1.0f;
	const float is = of->own.is_local ? (float)of->own.layout.workers : 1.0f;
	float ratio = 1.0f;

	for (unsigned i = 0; i < power && of->own.is_adaptive; i++)
		ratio *= was / is;
	return ratio;
}

/* Adds the buffers of every `stride`-th worker from the first on. */
static enum psd_status add_workers(struct reshaping *of, enum psd_buffer buffer, unsigned first, unsigned stride,
				   unsigned tensor, struct psd_range range, float *to, struct psd_error *err)
{
	for (unsigned w = first; w < of->old.shard_map.layout.workers; w += stride) {
		PSD_TRY(psd_old_checkpoint_read(&of->old, buffer, w, tensor, range, of->others, err));
		for (uint64_t i = 0; i < range.elements; i++)
			to[i] += of->others[i];
	}
	return PSD_OK;
}

/* With momentum before compression the history is only the last step. */
static enum psd_status read_moment(struct reshaping *of, enum psd_buffer whole, enum psd_buffer part, unsigned tensor,
				   struct psd_range range, float *to, struct psd_error *err)
{
	struct psd_old_checkpoint *old = &of->old;

	if (psd_old_checkpoint_keeps(old, part, tensor))
		return psd_old_checkpoint_read(old, part, 0, tensor, range, to, err);
	clear(to, range.elements);
	if (psd_old_checkpoint_keeps(old, PSD_BUFFER_VELOCITY, tensor) || !psd_old_checkpoint_keeps(old, whole, tensor))
		return PSD_OK;
	if (!old->shard_map.is_local)
		return psd_old_checkpoint_read(old, whole, psd_old_checkpoint_root(old, tensor), tensor, range, to,
					       err);
	const enum psd_status status = add_workers(of, whole, 0, 1, tensor, range, to, err);
	multiply(to, range.elements, 1.0f / (float)old->shard_map.layout.workers);
	return status;
}

static enum psd_status read_moments(struct reshaping *of, enum psd_buffer buffer, unsigned tensor,
				    struct psd_range range, float *to, struct psd_error *err)
{
	const bool are_squares = buffer == PSD_BUFFER_SQUARES || buffer == PSD_BUFFER_PART_SQUARES;
	const enum psd_buffer whole = are_squares ? PSD_BUFFER_SQUARES : PSD_BUFFER_HISTORY;
	const enum psd_buffer part = are_squares ? PSD_BUFFER_PART_SQUARES : PSD_BUFFER_PART_HISTORY;
	const enum psd_status status = read_moment(of, whole, part, tensor, range, to, err);

	multiply(to, range.elements, adaptive_ratio(of, are_squares ? 2 : 1));
	return status;
}

/* Outer momentum is of the mean change, and equal on all workers. */
static enum psd_status read_outer(struct reshaping *of, enum psd_buffer buffer, unsigned tensor, struct psd_range range,
				  float *to, struct psd_error *err)
{
	struct psd_old_checkpoint *old = &of->old;

	(void)buffer;
	clear(to, range.elements);
	if (psd_old_checkpoint_keeps(old, PSD_BUFFER_PART_OUTER, tensor))
		return psd_old_checkpoint_read(old, PSD_BUFFER_PART_OUTER, 0, tensor, range, to, err);
	return psd_old_checkpoint_keeps(old, PSD_BUFFER_OUTER, tensor)
		       ? psd_old_checkpoint_read(old, PSD_BUFFER_OUTER, 0, tensor, range, to, err)
		       : PSD_OK;
}

/* ---- residuals ---- */

/* True if both systems keep the buffer, or none does. */
static bool keeps_alike(struct reshaping *of, enum psd_buffer buffer, unsigned tensor)
{
	return psd_old_checkpoint_keeps(&of->old, buffer, tensor) == keeps(of, buffer, tensor);
}

/* False if momentum is of other values: of each worker's own gradients before compression, or before it sends them. */
static bool has_momentum_alike(struct reshaping *of, unsigned tensor)
{
	return keeps_alike(of, PSD_BUFFER_VELOCITY, tensor) && keeps_alike(of, PSD_BUFFER_OWN_HISTORY, tensor);
}

/* False if the residual changes its meaning: velocities where momentum comes before compression, updates where workers
 * send these, drifts with local steps. */
static bool holds_alike(struct reshaping *of, unsigned tensor)
{
	return of->old.shard_map.is_local == of->own.is_local && has_momentum_alike(of, tensor);
}

/* A drift is averaged over all workers. */
static float held_ratio(const struct reshaping *of)
{
	return of->own.is_local ? (float)of->own.layout.workers / (float)of->old.shard_map.layout.workers : 1.0f;
}

static enum psd_status add_worker_held(struct reshaping *of, enum psd_buffer buffer, unsigned tensor,
				       struct psd_range range, float *to, struct psd_error *err)
{
	if (!holds_alike(of, tensor) || !psd_old_checkpoint_keeps(&of->old, buffer, tensor))
		return PSD_OK;
	return add_workers(of, buffer, self_of(of), of->own.layout.workers, tensor, range, to, err);
}

static enum psd_status read_worker_held(struct reshaping *of, enum psd_buffer buffer, unsigned tensor,
					struct psd_range range, float *to, struct psd_error *err)
{
	clear(to, range.elements);
	return add_worker_held(of, buffer, tensor, range, to, err);
}

static enum psd_status read_part_residual(struct reshaping *of, enum psd_buffer buffer, unsigned tensor,
					  struct psd_range range, float *to, struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	clear(to, range.elements);
	if (holds_alike(of, tensor) && psd_old_checkpoint_keeps(&of->old, buffer, tensor))
		status = psd_old_checkpoint_read(&of->old, buffer, 0, tensor, range, to, err);
	multiply(to, range.elements, held_ratio(of));
	return status;
}

/* Worker 0 takes the servers' residuals if no server keeps any now. */
static enum psd_status read_residual(struct reshaping *of, enum psd_buffer buffer, unsigned tensor,
				     struct psd_range range, float *to, struct psd_error *err)
{
	clear(to, range.elements);
	if (self_of(of) == 0 && !keeps(of, PSD_BUFFER_PART_RESIDUAL, tensor))
		PSD_TRY(read_part_residual(of, PSD_BUFFER_PART_RESIDUAL, tensor, range, to, err));
	multiply(to, range.elements, 1.0f / held_ratio(of));
	PSD_TRY(add_worker_held(of, buffer, tensor, range, to, err));
	multiply(to, range.elements, held_ratio(of));
	return PSD_OK;
}

/* ---- filling the state ---- */

/* Fills all elements of a tensor that this host has in a part of the state. */
static enum psd_status fill_tensor(struct reshaping *of, const struct psd_state_part *part, unsigned tensor,
				   read_fn *read, struct psd_error *err)
{
	struct psd_shard_map_run run;

	for (uint64_t e = 0; e < of->host->graph->tensors[tensor].elements; e += run.elements) {
		run = psd_shard_map_find(&of->own, part->buffer, tensor, e);
		if (run.is_divided && run.host != (run.apart > 0 ? self_of(of) % run.apart : self_of(of)))
			continue;
		run.elements = run.elements < ROOM_ELEMENTS ? run.elements : ROOM_ELEMENTS;
		PSD_TRY(read(of, part->buffer, tensor, (struct psd_range){e, run.elements}, of->values, err));
		PSD_TRY(psd_state_put(&of->state, part, run.first * sizeof(float), of->values,
				      run.elements * sizeof(float), err));
	}
	return PSD_OK;
}

static enum psd_status fill_parameters(struct reshaping *of, struct psd_error *err)
{
	for (unsigned t = 0; t < of->host->graph->n_tensors; t++) {
		const uint64_t elements = of->host->graph->tensors[t].elements;

		for (uint64_t e = 0; e < elements; e += ROOM_ELEMENTS) {
			const uint64_t n = elements - e < ROOM_ELEMENTS ? elements - e : ROOM_ELEMENTS;

			PSD_TRY(read_parameter(of, t, (struct psd_range){e, n}, of->values, err));
			PSD_TRY(psd_state_put(&of->state, &of->state.parts[t], e * sizeof(float), of->values,
					      n * sizeof(float), err));
		}
	}
	return PSD_OK;
}

static enum psd_status fill_states(struct reshaping *of, struct psd_error *err)
{
	const unsigned host = self_of(of) % of->old.shard_map.layout.workers;
	const struct psd_checkpoint_path path = psd_old_checkpoint_path(&of->old, host);

	for (unsigned p = of->host->graph->n_tensors; p < of->state.n_plain; p++) {
		const struct psd_state_part *part = &of->state.parts[p];
		bool is_found = false;

		PSD_TRY(psd_state_read(&of->state, part, of->old.files[host], path.text, &is_found, err));
		if (!is_found)
			return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path.text},
					     "the checkpoint has no '%.100s', which this run resumes from",
					     part->tensor.name);
	}
	return PSD_OK;
}

/* Rows of a right low-rank factor are contiguous. */
static enum psd_status fill_right(struct reshaping *of, const struct psd_state_part *part, unsigned tensor,
				  struct psd_error *err)
{
	const struct psd_tensor *about = &of->host->graph->tensors[tensor];
	const uint64_t is = psd_low_rank_right(about, of->own.rank), first = of->own.places[tensor].first_right;
	const uint64_t was = of->old.shard_map.rank ? psd_low_rank_right(about, of->old.shard_map.rank) : 0;
	const uint64_t elements = is < was ? is : was;

	if (!psd_old_checkpoint_keeps(&of->old, PSD_BUFFER_RIGHT, tensor))
		return PSD_OK;
	for (uint64_t e = 0; e < elements; e += ROOM_ELEMENTS) {
		const uint64_t n = elements - e < ROOM_ELEMENTS ? elements - e : ROOM_ELEMENTS;
		const struct psd_range range = {of->old.shard_map.places[tensor].first_right + e, n};

		PSD_TRY(psd_old_checkpoint_read_run(&of->old, PSD_BUFFER_RIGHT, 0, tensor, range, of->values, err));
		PSD_TRY(psd_state_put(&of->state, part, (first + e) * sizeof(float), of->values, n * sizeof(float),
				      err));
	}
	return PSD_OK;
}

/* Reader of a buffer; NULL: not read from a checkpoint. Copies of parameters follow those. */
static read_fn *reader_of(enum psd_buffer buffer)
{
	switch (buffer) {
	case PSD_BUFFER_HISTORY:
	case PSD_BUFFER_PART_HISTORY:
	case PSD_BUFFER_SQUARES:
	case PSD_BUFFER_PART_SQUARES: return read_moments;
	case PSD_BUFFER_OUTER:
	case PSD_BUFFER_PART_OUTER: return read_outer;
	case PSD_BUFFER_RESIDUAL: return read_residual;
	case PSD_BUFFER_PART_RESIDUAL: return read_part_residual;
	case PSD_BUFFER_VELOCITY:
	case PSD_BUFFER_OWN_HISTORY: return read_worker_held;
	case PSD_BUFFER_RIGHT: /* is divided by rows */
	case PSD_BUFFER_PARAMETER:
	case PSD_BUFFER_OWN:
	case PSD_BUFFER_MASTER:
	case PSD_BUFFER_PART:
	case PSD_BUFFER_SENT:
	case PSD_BUFFER_START:
	case PSD_BUFFER_KEPT_HISTORY: /* the others live in one iteration */
	case PSD_BUFFER_GRADIENT:
	case PSD_BUFFER_KEPT:
	case PSD_BUFFER_SUM:
	case PSD_BUFFER_FACTORS:
	case PSD_BUFFER_CHOSEN:
	case PSD_BUFFER_NORMS:
	case PSD_BUFFER_MEMBERS:
	case PSD_BUFFER_RECEIVED:
	case PSD_BUFFER_PACKED:
	case PSD_BUFFER_PACKED_PARTS:
	case PSD_BUFFER_PACKED_SUM:
	case PSD_BUFFER_LEFT:
	case PSD_BUFFER_ENCODED_GRADIENT:
	case PSD_BUFFER_ENCODED_PARAMETER:
	case PSD_BUFFER_ENCODED_FACTORS:
	case PSD_BUFFERS: break;
	}
	return NULL;
}

/* False for a buffer of a whole item on a host that does not update it. */
static bool uses(const struct reshaping *of, const struct psd_state_part *part)
{
	const struct psd_plan_item *item = &of->host->plan->items[part->item];

	if (psd_buffers[part->buffer].owner == PSD_OWNER_SHARDS)
		return true;
	return item->method->has_root ? item->root == self_of(of) : psd_layout_is_worker(of->host->layout, self_of(of));
}

static enum psd_status fill_part(struct reshaping *of, const struct psd_state_part *part, struct psd_error *err)
{
	const struct psd_shard_map_item *item = &of->own.items[part->item];
	read_fn *read = reader_of(part->buffer);

	for (unsigned n = 0; n < item->n_tensors && part->buffer == PSD_BUFFER_RIGHT; n++)
		PSD_TRY(fill_right(of, part, item->tensors[n], err));
	for (unsigned n = 0; n < item->n_tensors && read; n++)
		PSD_TRY(fill_tensor(of, part, item->tensors[n], read, err));
	return PSD_OK;
}

/* All workers have the same. */
static enum psd_status fill_late(struct reshaping *of, const struct psd_state_part *part, struct psd_error *err)
{
	bool is_found = false;

	return psd_state_read(&of->state, part, of->old.files[0], psd_old_checkpoint_path(&of->old, 0).text, &is_found,
			      err);
}

static enum psd_status fill(struct reshaping *of, struct psd_error *err)
{
	PSD_TRY(fill_parameters(of, err));
	PSD_TRY(fill_states(of, err));
	for (unsigned p = of->state.n_plain; p < of->state.n_parts; p++)
		if (of->state.parts[p].is_late)
			PSD_TRY(fill_late(of, &of->state.parts[p], err));
		else if (of->state.parts[p].is_of_item && uses(of, &of->state.parts[p]))
			PSD_TRY(fill_part(of, &of->state.parts[p], err));
	for (unsigned k = 0; k < of->host->n_keepers; k++)
		if (of->host->keepers[k].begin)
			of->host->keepers[k].begin(of->host->keepers[k].context);
	return PSD_OK;
}

/* ---- parts that start anew ---- */

static bool has_held(struct psd_old_checkpoint *old, unsigned tensor)
{
	return psd_old_checkpoint_keeps(old, PSD_BUFFER_RESIDUAL, tensor) ||
	       psd_old_checkpoint_keeps(old, PSD_BUFFER_PART_RESIDUAL, tensor);
}

static bool loses_held(struct reshaping *of)
{
	bool loses = false;

	for (unsigned t = 0; t < of->host->graph->n_tensors && !loses; t++)
		loses = has_held(&of->old, t) && !(keeps(of, PSD_BUFFER_RESIDUAL, t) && holds_alike(of, t));
	return loses;
}

static bool loses_momentum(struct reshaping *of)
{
	bool loses = false;

	for (unsigned t = 0; t < of->host->graph->n_tensors && !loses; t++)
		loses = !has_momentum_alike(of, t);
	return loses && of->host->options->train->optimiser.momentum > 0.0;
}

static bool loses_outer(struct reshaping *of)
{
	bool loses = false;

	for (unsigned t = 0; t < of->host->graph->n_tensors && !loses; t++)
		loses = (psd_old_checkpoint_keeps(&of->old, PSD_BUFFER_OUTER, t) ||
			 psd_old_checkpoint_keeps(&of->old, PSD_BUFFER_PART_OUTER, t)) &&
			!keeps(of, PSD_BUFFER_OUTER, t) && !keeps(of, PSD_BUFFER_PART_OUTER, t);
	return loses;
}

/* True for an iteration that this system has already applied. */
static bool loses_late(const struct reshaping *of)
{
	const struct psd_host *host = of->host;
	struct psd_text name = {.bytes = NULL};
	bool loses = false;

	for (unsigned t = 0; t < host->graph->n_tensors && !loses; t++) {
		psd_state_name_late(&name, &host->graph->tensors[t], host->plan->lag + 1);
		loses = name.bytes && psd_tensor_file_find(of->old.files[0], name.bytes);
		psd_text_release(&name);
	}
	return loses;
}

static bool has_file(const struct reshaping *of, const char *name)
{
	return psd_tensor_file_find(of->old.files[0], name);
}

static void add_loss(struct psd_text *text, bool is_lost, const char *what)
{
	if (is_lost)
		psd_text_add(text, "%s%s", text->bytes ? ", " : "", what);
}

static void remark_losses(struct reshaping *of)
{
	const struct psd_host *host = of->host;
	struct psd_text text = {.bytes = NULL};
	struct psd_error line;

	if (host->self != 0 || !host->options->remark)
		return;
	add_loss(&text, loses_momentum(of), "momentum");
	add_loss(&text, loses_outer(of), "outer momentum");
	add_loss(&text, loses_held(of), "residuals of gradients");
	add_loss(&text, loses_late(of), "sums that 'staleness' had not applied");
	for (unsigned k = 0; k < host->n_keepers; k++)
		add_loss(&text, has_file(of, host->keepers[k].tensor), host->keepers[k].name);
	if (text.bytes) {
		psd_error_set(&line, PSD_ERUN, PSD_NOWHERE, "starts anew: %s", text.bytes);
		host->options->remark(host->options->context, line.text);
	}
	psd_text_release(&text);
}

/* ---- reading all ---- */

static enum psd_status check_optimiser(const struct reshaping *of, struct psd_error *err)
{
	if (of->old.shard_map.is_adaptive == of->own.is_adaptive)
		return PSD_OK;
	return psd_error_set(
		err, PSD_EINVAL, (struct psd_place){.path = psd_old_checkpoint_path(&of->old, 0).text},
		"is of %s 'adamw', which keeps another state: to begin with its parameters alone, see train.start",
		of->old.shard_map.is_adaptive ? "optimiser" : "another optimiser than");
}

/* Hosts share the files. */
static enum psd_status verify(const struct reshaping *of, struct psd_error *err)
{
	bool has_checksums;

	for (unsigned h = self_of(of); h < of->old.n_hosts; h += of->host->n_hosts)
		PSD_TRY(psd_tensor_file_verify(of->old.files[h], &has_checksums, err));
	return PSD_OK;
}

static enum psd_status reshape(struct reshaping *of, struct psd_error *err)
{
	const struct psd_old_checkpoint_notes notes = psd_old_checkpoint_read_notes(of->old.files[0]);
	enum psd_status status = check_optimiser(of, err);

	of->values = malloc(ROOM_ELEMENTS * sizeof(*of->values));
	of->others = malloc(ROOM_ELEMENTS * sizeof(*of->others));
	if (!status && (!of->values || !of->others))
		status = psd_worker_out_of_memory(err);
	if (!status)
		status = verify(of, err);
	if (!status)
		status = fill(of, err);
	if (!status && of->host->options->train->diverged == PSD_DIVERGED_STOPS)
		status = psd_host_check_read(&of->state, of->state.n_parts, psd_old_checkpoint_path(&of->old, 0).text,
					     err);
	if (!status) {
		psd_host_take_hashes(of->host, &notes);
		remark_losses(of);
	}
	free(of->values);
	free(of->others);
	return status;
}

enum psd_status psd_host_reshape(struct psd_host *host, struct psd_error *err)
{
	const struct psd_worker_options *options = host->options;
	struct reshaping of = {.host = host};

	PSD_TRY(psd_state_open(&of.state, host, options->first_iteration, err));
	enum psd_status status = psd_shard_map_make(&of.own, host->plan, err);
	if (!status)
		status = psd_old_checkpoint_open(&of.old, options->checkpoints, options->from_hosts,
						 options->first_iteration, host->graph, err);
	if (!status) {
		status = reshape(&of, err);
		psd_old_checkpoint_close(&of.old);
	}
	psd_shard_map_release(&of.own);
	psd_state_close(&of.state);
	return status;
}
