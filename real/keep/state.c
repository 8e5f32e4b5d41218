/* One list describes the state, for writing and reading. */
#include "real/keep/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/grow.h"
#include "engine/base/xxh64.h"
#include "real/keep/whole.h"

enum { STAGING_BYTES = 16 << 20, PIECE_BYTES = 256 << 10, SHAPE_TEXT_MAX = 80 };

/* ---- list of parts ---- */

static void add_part(struct psd_state *state, struct psd_state_part part)
{
	struct psd_state_part *parts = psd_grown(state->parts, state->n_parts, &state->parts_capacity, sizeof(*parts));

	if (!parts || !part.tensor.name) {
		state->is_out_of_memory = true;
		state->parts = parts ? parts : state->parts;
		return;
	}
	state->parts = parts;
	state->parts[state->n_parts++] = part;
}

static struct psd_file_tensor vector_of(const char *name, enum psd_tensor_type type, uint64_t n)
{
	return (struct psd_file_tensor){.name = name, .type = type, .n_dims = 1, .dims = {n}};
}

/* Tensors that other programs look for in the file. */
static void add_plain(struct psd_state *state)
{
	const struct psd_host *host = state->host;
	const struct psd_graph *graph = host->graph;
	const bool has_states = psd_layout_is_worker(host->layout, host->self);

	for (unsigned t = 0; t < graph->n_tensors; t++) {
		const struct psd_held held = psd_memory_held(&host->memory, t);

		add_part(state, (struct psd_state_part){.tensor = psd_file_tensor_of(&graph->tensors[t]),
							.here = held.values,
							.there = host->on_device == &host->memory
									 ? NULL
									 : psd_memory_held(&host->apart, t).values,
							.held = held.piece,
							.is_divided = held.is_own});
	}
	for (unsigned s = 0; s < graph->n_states && has_states; s++)
		add_part(state, (struct psd_state_part){.tensor = psd_file_tensor_of(&graph->states[s]),
							.state = &graph->states[s]});
	state->n_plain = state->n_parts;
}

/* Takes over the text. Returns NULL when memory runs out. */
static char *keep_name(struct psd_state *state, struct psd_text *name)
{
	char *copy = name->is_out_of_memory ? NULL : psd_arena_copy(&state->arena, name->bytes, strlen(name->bytes));

	psd_text_release(name);
	return copy;
}

static char *name_buffer(struct psd_state *state, unsigned item, enum psd_buffer buffer)
{
	const struct psd_plan *plan = state->host->plan;
	const unsigned first = psd_plan_tensor(plan, &plan->items[item], 0);
	struct psd_text name = {.bytes = NULL};

	psd_text_add(&name, "%s.%s", plan->graph->tensors[first].name, psd_buffers[buffer].name);
	return keep_name(state, &name);
}

static void *buffer_of(const struct psd_memory *memory, unsigned item, enum psd_buffer buffer)
{
	return memory->items[item].buffers[buffer].base;
}

/* Adds all elements of an item, or this host's parts of it. */
static void add_buffer(struct psd_state *state, unsigned item, enum psd_buffer buffer)
{
	const struct psd_host *host = state->host;
	const uint64_t elements = psd_memory_elements(&host->memory, item, buffer);
	struct psd_state_part part = {
		.here = buffer_of(&host->memory, item, buffer), .is_of_item = true, .item = item, .buffer = buffer};

	if (host->on_device != &host->memory)
		part.there = buffer_of(host->on_device, item, buffer);
	if (elements == 0 || (!part.here && !part.there))
		return;
	part.tensor = vector_of(name_buffer(state, item, buffer), PSD_TENSOR_F32, elements);
	add_part(state, part);
}

/* True for copies of parameters and momentum, which equal those at a checkpoint, or are not in use. A start of local
 * steps is one only if a checkpoint waits for an exchange. */
static bool is_copy(const struct psd_plan *plan, enum psd_buffer buffer)
{
	return buffer == PSD_BUFFER_PARAMETER || buffer == PSD_BUFFER_KEPT_HISTORY ||
	       (buffer == PSD_BUFFER_START && !psd_plan_streams(plan));
}

/* Adds the item's buffers. */
static void add_buffers(struct psd_state *state)
{
	for (unsigned i = 0; i < state->host->plan->n_items; i++)
		for (unsigned b = 0; b < PSD_BUFFERS; b++)
			if (psd_buffers[b].life == PSD_LIFETIME_RUN && !is_copy(state->host->plan, (enum psd_buffer)b))
				add_buffer(state, i, (enum psd_buffer)b);
}

void psd_state_name_late(struct psd_text *name, const struct psd_tensor *tensor, uint32_t age)
{
	psd_text_add(name, "%s.%s.%" PRIu32, tensor->name, psd_buffers[PSD_BUFFER_GRADIENT].name, age);
}

/* Adds one tensor's gradient of an iteration, `age` iterations before the state's. */
static void add_gradient(struct psd_state *state, unsigned t, uint32_t iteration, uint32_t age)
{
	const struct psd_host *host = state->host;
	struct psd_state_part part = {.here = psd_memory_gradients(&host->memory, iteration)[t], .is_late = true};
	struct psd_text name = {.bytes = NULL};

	psd_state_name_late(&name, &host->graph->tensors[t], age);
	part.tensor = psd_file_tensor_of(&host->graph->tensors[t]);
	part.tensor.name = keep_name(state, &name);
	if (host->on_device != &host->memory)
		part.there = psd_memory_gradients(host->on_device, iteration)[t];
	add_part(state, part);
}

/* Adds the sums of an iteration: with local steps, of those items that exchanged. At the end of a run nothing is late,
 * and the values have no effect. */
static void add_gradients(struct psd_state *state, uint32_t iteration, uint32_t age)
{
	const struct psd_plan *plan = state->host->plan;
	struct psd_period period = psd_period_make(psd_plan_steps(plan), 0, UINT32_MAX);

	period.fragments = psd_plan_fragments(plan);
	for (unsigned i = 0; i < plan->n_items; i++)
		for (unsigned n = 0; n < plan->items[i].n_tensors; n++)
			if (psd_period_exchanges_of(&period, plan->items[i].fragment, iteration))
				add_gradient(state, psd_plan_tensor(plan, &plan->items[i], n), iteration, age);
}

/* Adds complete sums that are applied later. */
static void add_late(struct psd_state *state, uint32_t iteration)
{
	if (!psd_layout_is_worker(state->host->layout, state->host->self))
		return;
	for (uint32_t age = 1; age <= state->host->plan->lag && age <= iteration; age++)
		add_gradients(state, iteration - age, age);
}

static uint64_t bytes_of(const struct psd_state_part *part)
{
	uint64_t n_bytes = 0;

	return psd_file_tensor_bytes(&part->tensor, &n_bytes) ? n_bytes : 0;
}

/* Allocates memory for copies from and to the device: as large as the largest part, STAGING_BYTES at most. No later
 * state of the host has a larger part. */
static enum psd_status take_staging(const struct psd_state *state, struct psd_error *err)
{
	struct psd_host *host = state->host;
	uint64_t largest_bytes = 0;

	if (host->staging || host->on_device == &host->memory)
		return PSD_OK;
	for (uint32_t i = 0; i < state->n_parts; i++)
		if (bytes_of(&state->parts[i]) > largest_bytes)
			largest_bytes = bytes_of(&state->parts[i]);
	return host->kind->take_host(host->device, largest_bytes < STAGING_BYTES ? largest_bytes : STAGING_BYTES,
				     &host->staging, err);
}

void psd_state_close(struct psd_state *state)
{
	free(state->parts);
	psd_arena_release(&state->arena);
}

void psd_state_add_vector(struct psd_state *state, const char *name, enum psd_tensor_type type, uint64_t n,
			  void *values)
{
	add_part(state, (struct psd_state_part){.tensor = vector_of(name, type, n), .here = values});
}

enum psd_status psd_state_open(struct psd_state *state, struct psd_host *host, uint32_t iteration,
			       struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	*state = (struct psd_state){.host = host};
	add_plain(state);
	add_buffers(state);
	add_late(state, iteration);
	for (unsigned k = 0; k < host->n_keepers; k++)
		host->keepers[k].add(host->keepers[k].context, state);
	status = state->is_out_of_memory ? psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a checkpoint")
					 : take_staging(state, err);
	if (status)
		psd_state_close(state);
	return status;
}

/* ---- values ---- */

/* Bytes that this host has of a part. */
static uint64_t held_bytes(const struct psd_state_part *part)
{
	return part->is_divided ? part->held.elements * sizeof(float) : bytes_of(part);
}

static uint64_t first_byte_of(const struct psd_state_part *part)
{
	return part->is_divided ? part->held.first * sizeof(float) : 0;
}

static enum psd_status copy(struct psd_host *host, enum psd_stream stream, void *to, const void *from, uint64_t n_bytes,
			    struct psd_error *err)
{
	const struct psd_device_kind *kind = host->kind;

	PSD_TRY(kind->copy(host->device, stream, to, from, n_bytes, err));
	if (kind->is_asynchronous)
		PSD_TRY(kind->wait(host->device, stream, kind->mark(host->device, stream), err));
	return PSD_OK;
}

static unsigned state_number(const struct psd_host *host, const struct psd_state_part *part)
{
	return (unsigned)(part->state - host->graph->states);
}

static float *take_values(uint64_t n_bytes, struct psd_error *err)
{
	float *values = malloc(n_bytes);

	if (!values)
		psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a checkpoint");
	return values;
}

static enum psd_status visit_state(struct psd_host *host, const struct psd_state_part *part, psd_state_take_fn *take,
				   void *context, struct psd_error *err)
{
	const uint64_t n_bytes = bytes_of(part);
	float *values = take_values(n_bytes, err);
	enum psd_status status = PSD_ENOMEM;

	if (values)
		status = host->kind->read_state(host->device, state_number(host, part), values, err);
	if (!status)
		status = take(context, values, n_bytes, err);
	free(values);
	return status;
}

enum psd_status psd_state_visit(const struct psd_state *state, const struct psd_state_part *part,
				psd_state_take_fn *take, void *context, struct psd_error *err)
{
	struct psd_host *host = state->host;
	const uint64_t n_bytes = held_bytes(part);

	if (part->state)
		return visit_state(host, part, take, context, err);
	if (!part->there)
		return take(context, part->here, n_bytes, err);
	for (uint64_t first = 0; first < n_bytes; first += STAGING_BYTES) {
		const uint64_t n = n_bytes - first < STAGING_BYTES ? n_bytes - first : STAGING_BYTES;

		PSD_TRY(copy(host, PSD_STREAM_COPY_OUT, host->staging, (const char *)part->there + first, n, err));
		PSD_TRY(take(context, host->staging, n, err));
	}
	return PSD_OK;
}

static enum psd_status write_values(void *context, const void *values, uint64_t n_bytes, struct psd_error *err)
{
	return psd_tensor_writer_add(context, values, n_bytes, err);
}

enum psd_status psd_state_write(const struct psd_state *state, const struct psd_state_part *part,
				struct psd_tensor_writer *writer, struct psd_error *err)
{
	if (part->is_divided)
		return write_values(writer, psd_whole_tensor(state->host, (unsigned)(part - state->parts)),
				    bytes_of(part), err);
	return psd_state_visit(state, part, write_values, writer, err);
}

static enum psd_status read_state(struct psd_host *host, const struct psd_state_part *part,
				  struct psd_tensor_file *file, const struct psd_file_tensor *tensor,
				  struct psd_error *err)
{
	const uint64_t n_bytes = bytes_of(part);
	float *values = take_values(n_bytes, err);
	enum psd_status status = PSD_ENOMEM;

	if (values)
		status = psd_tensor_file_read(file, tensor, 0, n_bytes, values, err);
	if (!status)
		status = host->kind->write_state(host->device, state_number(host, part), values, err);
	free(values);
	return status;
}

static enum psd_status read_part(struct psd_host *host, const struct psd_state_part *part, struct psd_tensor_file *file,
				 const struct psd_file_tensor *tensor, struct psd_error *err)
{
	const uint64_t n_bytes = held_bytes(part), begin = first_byte_of(part);

	if (part->state)
		return read_state(host, part, file, tensor, err);
	if (part->here)
		PSD_TRY(psd_tensor_file_read(file, tensor, begin, n_bytes, part->here, err));
	for (uint64_t first = 0; part->there && first < n_bytes; first += STAGING_BYTES) {
		const uint64_t n = n_bytes - first < STAGING_BYTES ? n_bytes - first : STAGING_BYTES;

		PSD_TRY(psd_tensor_file_read(file, tensor, begin + first, n, host->staging, err));
		PSD_TRY(copy(host, PSD_STREAM_COPY_IN, (char *)part->there + first, host->staging, n, err));
	}
	return PSD_OK;
}

static bool is_alike(const struct psd_file_tensor *one, const struct psd_file_tensor *other)
{
	bool is_alike = one->type == other->type && one->n_dims == other->n_dims;

	for (unsigned d = 0; is_alike && d < one->n_dims; d++)
		is_alike = one->dims[d] == other->dims[d];
	return is_alike;
}

static void describe(char text[SHAPE_TEXT_MAX], const struct psd_file_tensor *tensor)
{
	const size_t room = SHAPE_TEXT_MAX;
	size_t n = (size_t)snprintf(text, room, "%s", psd_tensor_type_name(tensor->type));

	for (unsigned d = 0; d < tensor->n_dims && n < room; d++)
		n += (size_t)snprintf(text + n, room - n, "%s%" PRIu64, d ? " x " : " ", tensor->dims[d]);
}

static enum psd_status refuse_shape(const char *path, const struct psd_file_tensor *found,
				    const struct psd_file_tensor *wanted, struct psd_error *err)
{
	char there[SHAPE_TEXT_MAX], here[SHAPE_TEXT_MAX];

	describe(there, found);
	describe(here, wanted);
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path}, "'%.100s' is %s, must be %s",
			     wanted->name, there, here);
}

enum psd_status psd_state_read(const struct psd_state *state, const struct psd_state_part *part,
			       struct psd_tensor_file *file, const char *path, bool *is_found, struct psd_error *err)
{
	const struct psd_file_tensor *found = psd_tensor_file_find(file, part->tensor.name);

	*is_found = found;
	if (!found)
		return PSD_OK;
	return is_alike(found, &part->tensor) ? read_part(state->host, part, file, found, err)
					      : refuse_shape(path, found, &part->tensor, err);
}

enum psd_status psd_state_put(const struct psd_state *state, const struct psd_state_part *part, uint64_t first_byte,
			      const void *values, uint64_t n_bytes, struct psd_error *err)
{
	struct psd_host *host = state->host;
	const uint64_t begin = first_byte_of(part), end = begin + held_bytes(part);
	const uint64_t from = first_byte > begin ? first_byte : begin;
	const uint64_t until = first_byte + n_bytes < end ? first_byte + n_bytes : end;

	if (from >= until)
		return PSD_OK;
	values = (const char *)values + (from - first_byte);
	n_bytes = until - from;
	first_byte = from - begin;
	if (part->here)
		memcpy((char *)part->here + first_byte, values, n_bytes);
	for (uint64_t first = 0; part->there && first < n_bytes; first += STAGING_BYTES) {
		const uint64_t n = n_bytes - first < STAGING_BYTES ? n_bytes - first : STAGING_BYTES;

		memcpy(host->staging, (const char *)values + first, n);
		PSD_TRY(copy(host, PSD_STREAM_COPY_IN, (char *)part->there + first_byte + first, host->staging, n,
			     err));
	}
	return PSD_OK;
}

/* ---- digest, and values that are no numbers ---- */

struct looking {
	enum psd_tensor_type type;
	bool looks, sums; /* for values that are no numbers; for the digest */
	struct psd_xxh64 sum;
	uint64_t n_elements; /* so far */
	bool is_odd;
	uint64_t element;
};

/* In pieces that stay in the processor's cache. */
static enum psd_status look_at_values(void *context, const void *values, uint64_t n_bytes, struct psd_error *err)
{
	struct looking *looking = context;
	const unsigned width = psd_tensor_type_bytes(looking->type);

	(void)err;
	for (uint64_t at = 0; at < n_bytes; at += PIECE_BYTES) {
		const uint64_t n = n_bytes - at < PIECE_BYTES ? n_bytes - at : PIECE_BYTES;
		const char *piece = (const char *)values + at;
		uint64_t element;

		if (looking->looks && !looking->is_odd && psd_find_odd(looking->type, piece, n / width, &element)) {
			looking->is_odd = true;
			looking->element = looking->n_elements + element;
		}
		if (looking->sums)
			psd_xxh64_add(&looking->sum, piece, n);
		looking->n_elements += n / width;
	}
	return PSD_OK;
}

enum psd_status psd_state_look_at(const struct psd_state *state, unsigned n_parts, struct psd_state_look *look,
				  struct psd_error *err)
{
	const bool may_skip = state->host->plan->wire->is_scaled;

	*look = (struct psd_state_look){.is_whole = true};
	for (unsigned p = 0; p < n_parts; p++) {
		const struct psd_state_part *part = &state->parts[p];
		struct looking looking = {
			.type = part->tensor.type,
			.looks = !look->is_odd && part->tensor.type == PSD_TENSOR_F32 && !(part->is_late && may_skip),
			.sums = p < state->host->graph->n_tensors && !part->is_divided,
			.n_elements = part->is_divided ? part->held.first : 0,
			.sum = psd_xxh64_begin(),
		};

		look->is_whole = look->is_whole && !part->is_divided;
		if (looking.looks || looking.sums)
			PSD_TRY(psd_state_visit(state, part, look_at_values, &looking, err));
		if (looking.sums) {
			look->sum += psd_xxh64_end(&looking.sum);
			look->weighted += (p + UINT64_C(1)) * psd_xxh64_end(&looking.sum);
		}
		if (looking.is_odd) {
			look->is_odd = true;
			look->part = p;
			look->element = looking.element;
		}
	}
	return PSD_OK;
}
