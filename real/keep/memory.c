/* One mapping, laid out twice by the same code: first to count, then to set pointers. */
#define _GNU_SOURCE
#include "real/keep/memory.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
	ALIGNMENT_BYTES = 64,
	HUGE_BLOCK_BYTES = 16 << 20, /* above this, huge pages waste little */
	APART_BYTES = 4096 + ALIGNMENT_BYTES,
	APART_FROM_BYTES = 256 << 10,
};

struct cutter {
	char *base; /* NULL while counting */
	size_t used_bytes;
};

/* Distance to the next array in elements. Arrays that are read together must not be a power of two apart: an update of
 * three such arrays of 128 MiB was measured at 5 GB/s in place of 34. */
static uint64_t spaced(uint64_t elements)
{
	const uint64_t bytes =
		elements * sizeof(float) + (elements * sizeof(float) < APART_FROM_BYTES ? 0 : APART_BYTES);

	return (bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES / sizeof(float);
}

static float *take(struct cutter *cutter, uint64_t elements)
{
	const size_t at = cutter->used_bytes;

	cutter->used_bytes += spaced(elements) * sizeof(float);
	return cutter->base ? (float *)(void *)(cutter->base + at) : NULL;
}

static bool is_shard(const struct psd_memory *memory)
{
	return psd_layout_is_shard(&memory->plan->layout, memory->host);
}

static const struct psd_plan_item *item_of(const struct psd_memory *memory, unsigned item)
{
	return &memory->plan->items[item];
}

struct psd_range psd_memory_own_part(const struct psd_memory *memory, unsigned item, unsigned slice)
{
	return psd_plan_owned(memory->plan, item_of(memory, item), slice, PSD_OWNER_SHARDS, memory->host);
}

/* Elements of this host's parts of the slices before this one. */
static uint64_t part_offset(const struct psd_memory *memory, unsigned item, unsigned slice)
{
	uint64_t elements = 0;

	for (unsigned s = 0; s < slice; s++)
		elements += psd_memory_own_part(memory, item, s).elements;
	return elements;
}

/* Gradients that a shard keeps apart: one for each worker, or for each leader. */
static unsigned received_parts(const struct psd_memory *memory, unsigned item)
{
	return memory->adds_arrivals
		       ? 1
		       : psd_plan_times(memory->plan, item_of(memory, item), PSD_BUFFER_RECEIVED, memory->host);
}

/* Index of this worker's among them. */
static unsigned received_part(const struct psd_memory *memory, unsigned item, unsigned worker)
{
	if (memory->adds_arrivals)
		return 0;
	return memory->plan->items[item].method->joins_nodes ? psd_layout_node(&memory->plan->layout, worker) : worker;
}

/* Elements of all parts' areas for the slices before this one, in one iteration. */
static uint64_t each_part_offset(const struct psd_memory *memory, unsigned item, unsigned slice)
{
	uint64_t elements = 0;

	for (unsigned s = 0; s < slice; s++)
		elements += received_parts(memory, item) * spaced(psd_memory_own_part(memory, item, s).elements);
	return elements;
}

/* Elements of the top factors of all workers that send some; the bottom ones follow. */
static uint64_t top_elements(const struct psd_memory *memory, const struct psd_plan_item *item)
{
	const uint64_t times = psd_plan_times(memory->plan, item, PSD_BUFFER_FACTORS, memory->host);

	return times * item->subject.batch * item->subject.columns;
}

struct psd_range psd_memory_own_blocks(const struct psd_memory *memory, unsigned item)
{
	return psd_plan_owned_blocks(memory->plan, item_of(memory, item), PSD_OWNER_SHARDS, memory->host);
}

/* Values of all senders, with gaps between those that are read together. */
uint64_t psd_memory_elements(const struct psd_memory *memory, unsigned i, enum psd_buffer buffer)
{
	const struct psd_plan_item *item = item_of(memory, i);
	const uint64_t times = psd_plan_times(memory->plan, item, buffer, memory->host);
	const uint64_t tops = top_elements(memory, item);

	if (psd_buffer_is_sum(buffer))
		return is_shard(memory) ? each_part_offset(memory, i, item->n_slices) : 0;
	if (psd_buffers[buffer].content == PSD_CONTENT_FACTORS)
		return spaced(tops) + times * item->subject.batch * item->subject.rows;
	if (psd_buffers[buffer].times == PSD_TIMES_MEMBERS)
		return times * spaced(item->subject.elements);
	return times * psd_plan_values(memory->plan, item, buffer, memory->host);
}

static uint32_t n_iterations(const struct psd_memory *memory, enum psd_buffer buffer)
{
	switch (psd_buffers[buffer].life) {
	case PSD_LIFETIME_RUN: return 1;
	case PSD_LIFETIME_UNDER_WAY: return memory->n_under_way;
	case PSD_LIFETIME_AHEAD: return 2 * memory->n_under_way;
	}
	return 0;
}

/* Values that are added on arrival are not rounded. */
static unsigned value_bytes(const struct psd_memory *memory, enum psd_buffer buffer)
{
	if (psd_buffer_is_sum(buffer) && memory->adds_arrivals)
		return sizeof(float);
	return psd_plan_value_bytes(memory->plan, buffer);
}

static void cut_buffer(struct psd_memory *memory, struct cutter *cutter, unsigned i, enum psd_buffer buffer)
{
	const uint64_t n_bytes = psd_memory_elements(memory, i, buffer) * value_bytes(memory, buffer);
	const uint64_t floats = (n_bytes + sizeof(float) - 1) / sizeof(float); /* floats of the same size */
	struct psd_memory_buffer *kept = &memory->items[i].buffers[buffer];

	kept->apart = spaced(floats);
	kept->base = take(cutter, floats);
	for (uint32_t row = 1; row < n_iterations(memory, buffer); row++)
		(void)take(cutter, floats);
}

static bool travels_as_it_is(const struct psd_memory *memory, enum psd_buffer buffer)
{
	return psd_buffers[buffer].on_wire < PSD_BUFFERS && psd_buffer_on_wire(buffer, memory->plan->wire) == buffer;
}

static bool has_buffer(const struct psd_memory *memory, unsigned item, enum psd_buffer buffer)
{
	const struct psd_buffer_row *row = &psd_buffers[buffer];

	/* A copy of parameters is the host's own, unless they are rounded to travel. Asynchronous servers update theirs
	 * while the host computes with its own. */
	const bool is_apart = memory->plan->wire->is_lossy || (memory->plan->async && row->is_copy);

	if (!psd_plan_keeps(memory->plan, &memory->plan->items[item], buffer) ||
	    ((row->is_copy || row->is_encoded) && !is_apart))
		return false;
	switch (memory->place) {
	case PSD_MEMORY_SHARED: return true;
	case PSD_MEMORY_HOST: return !row->is_on_device || row->is_copy || travels_as_it_is(memory, buffer);
	case PSD_MEMORY_DEVICE: return row->is_on_device || row->is_encoded;
	}
	return false;
}

static void cut_item(struct psd_memory *memory, struct cutter *cutter, unsigned i)
{
	for (unsigned b = 0; b < PSD_BUFFERS; b++)
		if (has_buffer(memory, i, (enum psd_buffer)b))
			cut_buffer(memory, cutter, i, (enum psd_buffer)b);
}

static bool is_beyond_pieces(const struct psd_plan_item *item)
{
	return item->n_tensors > PSD_SEGMENTS_MAX;
}

/* True if the item needs memory without gaps: a message may begin within any tensor, and these are too many to be its
 * segments. A single host sends none. */
static bool is_whole(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	return psd_layout_hosts(&plan->layout) > 1 && is_beyond_pieces(item);
}

/* Lays out an item's gradients, or parameters; has_gaps: each tensor is aligned. */
static void cut_tensors(const struct psd_plan *plan, struct cutter *cutter, const struct psd_plan_item *item,
			bool has_gaps, float **tensors)
{
	float *next = has_gaps ? NULL : take(cutter, item->subject.elements);

	for (unsigned i = 0; i < item->n_tensors; i++) {
		const unsigned t = psd_plan_tensor(plan, item, i);
		const uint64_t elements = plan->graph->tensors[t].elements;

		tensors[t] = has_gaps ? take(cutter, elements) : next;
		next = next ? next + elements : NULL;
	}
}

static void cut_gradients(const struct psd_memory *memory, struct cutter *cutter, const struct psd_plan_item *item,
			  float **tensors)
{
	cut_tensors(memory->plan, cutter, item, !is_whole(memory->plan, item), tensors);
}

typedef bool takes_turns_fn(const struct psd_plan *plan, const struct psd_plan_item *item);
typedef void cut_fn(const struct psd_memory *memory, struct cutter *cutter, const struct psd_plan_item *item,
		    float **tensors);

/* Lays out the gradients, or parameters, of items that take turns: item i has that memory of n_slots in which i leaves
 * the same rest. */
static void cut_turns(const struct psd_memory *memory, struct cutter *cutter, unsigned n_slots,
		      takes_turns_fn *takes_turns, cut_fn *cut_of_item, float **tensors)
{
	const struct psd_plan *plan = memory->plan;

	for (unsigned slot = 0; slot < n_slots; slot++) {
		const size_t begin = cutter->used_bytes;
		size_t end = begin;

		for (unsigned i = slot; i < plan->n_items; i += n_slots) {
			if (!takes_turns(plan, &plan->items[i]))
				continue;
			cutter->used_bytes = begin;
			cut_of_item(memory, cutter, &plan->items[i], tensors);
			end = cutter->used_bytes > end ? cutter->used_bytes : end;
		}
		cutter->used_bytes = end;
	}
}

/* Lays out tensors that belong to no item: backward writes them, nobody reads them. */
static void cut_unread(const struct psd_graph *graph, struct cutter *cutter, float **gradients)
{
	for (unsigned t = 0; t < graph->n_tensors; t++)
		if (graph->tensors[t].rate_ratio == 0.0f)
			gradients[t] = take(cutter, graph->tensors[t].elements);
}

/* True if the item's parameters travel, and need memory without gaps. A device of its own needs tensors that are
 * aligned: they are copied one by one. */
static bool moves_whole(const struct psd_memory *memory, const struct psd_plan_item *item)
{
	return memory->place != PSD_MEMORY_DEVICE && item->method->updates != PSD_OWNER_ALL &&
	       is_whole(memory->plan, item);
}

static void cut_item_parameters(const struct psd_memory *memory, struct cutter *cutter,
				const struct psd_plan_item *item, float **tensors)
{
	cut_tensors(memory->plan, cutter, item, !moves_whole(memory, item), tensors);
}

/* True if the tensor's parameters are laid out with those of its item, not in the order of the graph. */
static bool is_with_item(const struct psd_memory *memory, unsigned tensor)
{
	const struct psd_plan *plan = memory->plan;
	bool is = false;

	for (unsigned i = 0; i < plan->n_items && !is; i++) {
		const struct psd_plan_item *item = &plan->items[i];
		const bool is_apart = moves_whole(memory, item) || psd_plan_shares_parameters(plan, item);

		for (unsigned n = 0; n < item->n_tensors && is_apart; n++)
			is = is || psd_plan_tensor(plan, item, n) == tensor;
	}
	return is;
}

/* Lays out parameters in the order of the graph, then those that travel without gaps, then those that take turns. */
static void cut_parameters(struct psd_memory *memory, struct cutter *cutter)
{
	const struct psd_plan *plan = memory->plan;

	for (unsigned t = 0; t < plan->graph->n_tensors; t++)
		if (!is_with_item(memory, t))
			memory->parameters[t] = take(cutter, plan->graph->tensors[t].elements);
	for (unsigned i = 0; i < plan->n_items; i++)
		if (moves_whole(memory, &plan->items[i]) && !psd_plan_shares_parameters(plan, &plan->items[i]))
			cut_item_parameters(memory, cutter, &plan->items[i], memory->parameters);
	cut_turns(memory, cutter, plan->system->prefetch + 1, psd_plan_shares_parameters, cut_item_parameters,
		  memory->parameters);
}

static void cut(struct psd_memory *memory, struct cutter *cutter)
{
	const struct psd_plan *plan = memory->plan;
	const unsigned n_slots = plan->n_items > 0 ? plan->items[0].method->gradient_slots : 0;
	uint64_t largest = 0;

	cut_parameters(memory, cutter);
	for (uint32_t row = 0; row < memory->n_gradient_rows; row++) {
		float **gradients = memory->gradients + row * plan->graph->n_tensors;

		for (unsigned i = 0; i < plan->n_items; i++)
			if (!psd_plan_shares_gradients(plan, &plan->items[i]))
				cut_gradients(memory, cutter, &plan->items[i], gradients);
		cut_turns(memory, cutter, n_slots, psd_plan_shares_gradients, cut_gradients, gradients);
		cut_unread(plan->graph, cutter, gradients);
	}
	for (unsigned i = 0; i < plan->n_items; i++)
		cut_item(memory, cutter, i);
	for (unsigned i = 0; i < plan->n_items; i++)
		largest = plan->items[i].subject.elements > largest ? plan->items[i].subject.elements : largest;
	if (memory->place != PSD_MEMORY_DEVICE && psd_layout_hosts(&plan->layout) > 1)
		memory->staging = take(cutter, largest);
}

static enum psd_status check_tensors(const struct psd_plan *plan, struct psd_error *err)
{
	for (unsigned i = 0; i < plan->n_items; i++)
		if (is_beyond_pieces(&plan->items[i]) && plan->items[i].method->slicing == PSD_SLICED)
			return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
					     "layer '%.80s' has %u tensors, psd-run takes up to %d",
					     plan->graph->layers[plan->items[i].layer].name, plan->items[i].n_tensors,
					     PSD_SEGMENTS_MAX);
	return PSD_OK;
}

static enum psd_status out_of_memory(struct psd_error *err)
{
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for parameters and gradients");
}

static enum psd_status map_block(struct psd_memory *memory, struct psd_error *err)
{
	void *block = mmap(NULL, memory->block_bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (block == MAP_FAILED)
		return out_of_memory(err);
	memory->block = block;
	memory->is_mapped = true;
	if (memory->block_bytes >= HUGE_BLOCK_BYTES) /* advice only: fewer pages to look up */
		(void)madvise(memory->block, memory->block_bytes, MADV_HUGEPAGE);
	return PSD_OK;
}

static enum psd_status take_block(struct psd_memory *memory, const struct psd_memory_options *options,
				  struct psd_error *err)
{
	switch (memory->place) {
	case PSD_MEMORY_SHARED: break;
	case PSD_MEMORY_HOST:
		return options->kind->take_host(options->device, memory->block_bytes, &memory->block, err);
	case PSD_MEMORY_DEVICE: return options->kind->take(options->device, memory->block_bytes, &memory->block, err);
	}
	return map_block(memory, err);
}

enum psd_status psd_memory_init(struct psd_memory *memory, const struct psd_program *program,
				const struct psd_memory_options *options, struct psd_error *err)
{
	const struct psd_plan *plan = program->plan;
	struct psd_memory made = {.plan = plan,
				  .place = options->place,
				  .host = options->host,
				  .adds_arrivals = options->adds_arrivals,
				  .n_under_way = psd_program_under_way(program),
				  .n_gradient_rows = psd_program_under_way(program) + psd_plan_adds_gradients(plan)};
	struct cutter cutter = {NULL, 0};
	enum psd_status status;

	PSD_TRY(check_tensors(plan, err));
	assert(program->window > 1); /* the next iteration's first layer waits for this one's update */
	made.parameters = calloc(plan->graph->n_tensors + 1u, sizeof(*made.parameters));
	made.gradients = calloc(made.n_gradient_rows * (plan->graph->n_tensors + (size_t)1), sizeof(*made.gradients));
	made.items = calloc(plan->n_items + 1u, sizeof(*made.items));
	if (!made.parameters || !made.gradients || !made.items) {
		status = out_of_memory(err);
	} else {
		cut(&made, &cutter);
		made.block_bytes = cutter.used_bytes + ALIGNMENT_BYTES;
		status = take_block(&made, options, err);
	}
	if (status) {
		psd_memory_release(&made);
		return status;
	}
	cutter = (struct cutter){made.block, 0};
	cut(&made, &cutter);
	*memory = made;
	return PSD_OK;
}

void psd_memory_release(struct psd_memory *memory)
{
	if (memory->is_mapped)
		munmap(memory->block, memory->block_bytes);
	free(memory->parameters);
	free(memory->gradients);
	free(memory->items);
	*memory = (struct psd_memory){0};
}

unsigned psd_memory_segments(const struct psd_memory *memory, float *const tensors[], unsigned item,
			     struct psd_range range, struct iovec segments[PSD_SEGMENTS_MAX])
{
	const struct psd_plan_item *subject = &memory->plan->items[item];
	const uint64_t end = range.first + range.elements;
	uint64_t first = 0; /* first element of the tensor in the item */
	unsigned n_segments = 0;

	for (unsigned i = 0; i < subject->n_tensors; i++) {
		const unsigned t = psd_plan_tensor(memory->plan, subject, i);
		const uint64_t elements = memory->plan->graph->tensors[t].elements;
		const uint64_t from = range.first > first ? range.first : first;
		const uint64_t until = end < first + elements ? end : first + elements;

		if (from < until && n_segments > 0 && is_whole(memory->plan, subject)) {
			segments[0].iov_len += (until - from) * sizeof(float);
		} else if (from < until) {
			assert(n_segments < PSD_SEGMENTS_MAX);
			segments[n_segments++] =
				(struct iovec){tensors[t] + (from - first), (until - from) * sizeof(float)};
		}
		first += elements;
	}
	return n_segments;
}

float *const *psd_memory_gradients(const struct psd_memory *memory, uint32_t iteration)
{
	return memory->gradients + (size_t)(iteration % memory->n_under_way) * memory->plan->graph->n_tensors;
}

float *const *psd_memory_micro_gradients(const struct psd_memory *memory)
{
	return memory->gradients + (size_t)memory->n_under_way * memory->plan->graph->n_tensors;
}

float *psd_memory_buffer(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item, uint32_t iteration)
{
	const struct psd_memory_buffer *kept = &memory->items[item].buffers[buffer];

	assert(kept->base);
	return kept->base + iteration % n_iterations(memory, buffer) * kept->apart;
}

float *psd_memory_kept(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item, uint32_t iteration)
{
	return memory->items[item].buffers[buffer].base ? psd_memory_buffer(memory, buffer, item, iteration) : NULL;
}

float *psd_memory_part(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item, unsigned slice)
{
	float *base = memory->items[item].buffers[buffer].base;

	return base && is_shard(memory) ? base + part_offset(memory, item, slice) : NULL;
}

void *psd_memory_values(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item, uint32_t iteration,
			uint64_t first)
{
	return (char *)psd_memory_buffer(memory, buffer, item, iteration) + first * value_bytes(memory, buffer);
}

void *psd_memory_received(const struct psd_memory *memory, unsigned item, unsigned slice, uint32_t iteration,
			  unsigned worker)
{
	const uint64_t part = received_part(memory, item, worker);

	return psd_memory_values(memory, PSD_BUFFER_RECEIVED, item, iteration,
				 each_part_offset(memory, item, slice) +
					 part * spaced(psd_memory_own_part(memory, item, slice).elements));
}

void *psd_memory_packed_part(const struct psd_memory *memory, unsigned item, uint32_t iteration, unsigned worker)
{
	return psd_memory_values(memory, PSD_BUFFER_PACKED_PARTS, item, iteration,
				 worker * psd_memory_own_blocks(memory, item).elements);
}

void *psd_memory_member(const struct psd_memory *memory, unsigned item, unsigned slice, uint32_t iteration,
			unsigned worker)
{
	const struct psd_plan_item *subject = &memory->plan->items[item];
	const unsigned before = worker - memory->host - 1; /* a leader is the first of its node */

	return psd_memory_values(memory, PSD_BUFFER_MEMBERS, item, iteration,
				 before * spaced(subject->subject.elements) + psd_plan_slice(subject, slice).first);
}

struct psd_moments psd_memory_moments(const struct psd_memory *memory, unsigned item)
{
	return (struct psd_moments){psd_memory_kept(memory, PSD_BUFFER_HISTORY, item, 0),
				    psd_memory_kept(memory, PSD_BUFFER_SQUARES, item, 0)};
}

struct psd_moments psd_memory_part_moments(const struct psd_memory *memory, unsigned item, unsigned slice)
{
	return (struct psd_moments){psd_memory_part(memory, PSD_BUFFER_PART_HISTORY, item, slice),
				    psd_memory_part(memory, PSD_BUFFER_PART_SQUARES, item, slice)};
}

struct psd_held psd_memory_held(const struct psd_memory *memory, unsigned tensor)
{
	const struct psd_plan *plan = memory->plan;

	for (unsigned i = 0; i < plan->n_items; i++) {
		const struct psd_plan_item *item = &plan->items[i];
		const struct psd_range updated = psd_plan_updated(plan, item, memory->host);
		uint64_t before = 0;

		for (unsigned n = 0; n < item->n_tensors && psd_plan_keeps(plan, item, PSD_BUFFER_OWN); n++) {
			const struct psd_piece piece = psd_plan_piece(plan, item, updated, n);

			if (psd_plan_tensor(plan, item, n) == tensor)
				return (struct psd_held){piece, psd_memory_kept(memory, PSD_BUFFER_OWN, i, 0) + before,
							 true};
			before += piece.elements;
		}
	}
	return (struct psd_held){{0, plan->graph->tensors[tensor].elements}, memory->parameters[tensor], false};
}

/* The top or bottom factors of n workers, of which `before` others are in front. */
static struct iovec find_run(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item, uint32_t iteration,
			     struct psd_range workers, bool is_bottom)
{
	const struct psd_plan_item *of = item_of(memory, item);
	const uint64_t each = of->subject.batch * (is_bottom ? of->subject.rows : of->subject.columns);
	const uint64_t first = is_bottom ? spaced(top_elements(memory, of)) : 0;

	return (struct iovec){psd_memory_values(memory, buffer, item, iteration, first + workers.first * each),
			      workers.elements * each * value_bytes(memory, buffer)};
}

/* The segments of a worker's top and bottom factors. */
static unsigned find_factors(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item, uint32_t iteration,
			     unsigned sender, struct iovec segments[PSD_SEGMENTS_MAX])
{
	const struct psd_range run = {
		psd_plan_factors_before(memory->plan, item_of(memory, item), iteration, memory->host, sender), 1};

	segments[0] = find_run(memory, buffer, item, iteration, run, false);
	segments[1] = find_run(memory, buffer, item, iteration, run, true);
	return 2;
}

/* The same of all workers in a range of their values, which may go on behind the last worker with the first one. */
static unsigned find_all_factors(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item,
				 uint32_t iteration, struct psd_range range, struct iovec segments[PSD_SEGMENTS_MAX])
{
	const uint64_t each = psd_subject_factors(&item_of(memory, item)->subject), n = range.elements / each;
	const uint64_t first = range.first / each, before_end = memory->plan->layout.workers - first;
	const struct psd_range runs[2] = {{first, n < before_end ? n : before_end},
					  {0, n < before_end ? 0 : n - before_end}};
	unsigned n_segments = 0;

	for (unsigned is_bottom = 0; is_bottom < 2; is_bottom++)
		for (unsigned r = 0; r < 2; r++)
			if (runs[r].elements > 0)
				segments[n_segments++] = find_run(memory, buffer, item, iteration, runs[r], is_bottom);
	return n_segments;
}

struct psd_factors psd_memory_factors(const struct psd_memory *memory, unsigned item, uint32_t iteration,
				      unsigned worker)
{
	struct iovec segments[PSD_SEGMENTS_MAX];

	find_factors(memory, PSD_BUFFER_FACTORS, item, iteration, worker, segments);
	return (struct psd_factors){segments[0].iov_base, segments[1].iov_base};
}

/* True for a copy of parameters that is the parameters themselves. */
static bool is_no_copy(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item)
{
	return psd_buffers[buffer].is_copy && !memory->items[item].buffers[buffer].base;
}

/* Segments of a shard's own part of a slice, in its own buffer or among the parameters. */
static unsigned find_part(const struct psd_memory *memory, unsigned item, unsigned slice, struct psd_range range,
			  struct iovec segments[PSD_SEGMENTS_MAX])
{
	const uint64_t before = range.first - psd_memory_own_part(memory, item, slice).first;

	if (is_no_copy(memory, PSD_BUFFER_PART, item))
		return psd_memory_segments(memory, memory->parameters, item, range, segments);
	segments[0] = (struct iovec){
		psd_memory_values(memory, PSD_BUFFER_PART, item, 0, part_offset(memory, item, slice) + before),
		range.elements * value_bytes(memory, PSD_BUFFER_PART)};
	return 1;
}

/* Segments of all elements of an item: tensor by tensor, or one if the buffer has no gaps. */
static unsigned find_elements(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item,
			      uint32_t iteration, struct psd_range range, struct iovec segments[PSD_SEGMENTS_MAX])
{
	if (buffer == PSD_BUFFER_GRADIENT)
		return psd_memory_segments(memory, psd_memory_gradients(memory, iteration), item, range, segments);
	if (buffer == PSD_BUFFER_PARAMETER || is_no_copy(memory, buffer, item))
		return psd_memory_segments(memory, memory->parameters, item, range, segments);
	segments[0] = (struct iovec){psd_memory_values(memory, buffer, item, iteration, range.first),
				     range.elements * value_bytes(memory, buffer)};
	return 1;
}

unsigned psd_memory_find(const struct psd_memory *memory, enum psd_buffer buffer, const struct psd_op *op,
			 uint32_t iteration, struct psd_range range, unsigned sender,
			 struct iovec segments[PSD_SEGMENTS_MAX])
{
	const unsigned item = (unsigned)op->item;
	const uint64_t slice_first = psd_plan_slice(&memory->plan->items[item], op->slice).first;
	const struct psd_range of_item = {slice_first + range.first, range.elements};

	const struct psd_buffer_row *row = &psd_buffers[buffer];
	void *first = NULL;

	assert(row->on_wire < PSD_BUFFERS);
	if (row->content == PSD_CONTENT_FACTORS && op->payload.collective && op->payload.collective->is_of_all)
		return find_all_factors(memory, buffer, item, iteration, range, segments);
	if (row->content == PSD_CONTENT_FACTORS)
		return find_factors(memory, buffer, item, iteration, sender, segments);
	if (!row->is_of_updates && row->content == PSD_CONTENT_ELEMENTS && row->times == PSD_TIMES_ONCE)
		return row->owner == PSD_OWNER_SHARDS
			       ? find_part(memory, item, op->slice, of_item, segments)
			       : find_elements(memory, buffer, item, iteration, of_item, segments);
	if (row->is_of_updates)
		first = psd_memory_values(
			memory, buffer, item, iteration,
			of_item.first - psd_plan_updated(memory->plan, &memory->plan->items[item], memory->host).first);
	else if (row->times == PSD_TIMES_MEMBERS)
		first = psd_memory_member(memory, item, op->slice, iteration, sender);
	else if (psd_buffer_is_sum(buffer))
		first = psd_memory_received(memory, item, op->slice, iteration,
					    memory->plan->async ? op->payload.root : sender);
	else if (row->times == PSD_TIMES_SENDERS)
		first = psd_memory_packed_part(memory, item, iteration, sender);
	else
		first = psd_memory_values(memory, buffer, item, iteration, range.first);
	segments[0] = (struct iovec){first, range.elements * value_bytes(memory, buffer)};
	return 1;
}
