/* Tables that take turns: one more than there are iterations whose selections are known. */
#include "real/work/chunk_selection.h"

#include <string.h>

#include "engine/base/hash.h"
#include "engine/program/chunks.h"
#include "engine/program/period.h"

/* Elements that a chunk of the item covers. */
static struct psd_range range_of(const struct psd_chunk_selection *selection, unsigned item, uint32_t chunk)
{
	return psd_chunks_range(selection->plan->sparse, selection->plan->items[item].subject.elements, chunk);
}

struct psd_chunk_selection_table *psd_chunk_selection_of(const struct psd_chunk_selection *selection,
							 uint32_t iteration)
{
	return &selection->tables[iteration % selection->n_tables];
}

/* The selection that is made next. */
static struct psd_chunk_selection_table *next_of(const struct psd_chunk_selection *selection)
{
	return psd_chunk_selection_of(selection, selection->iteration + 1);
}

/* True if the iteration is the last of a clock, or of the run. */
static bool ends_clock(const struct psd_chunk_selection *selection, uint32_t iteration)
{
	const struct psd_sparse *managed = selection->plan->managed;

	if (!managed)
		return false;
	const struct psd_period period = psd_period_make((uint32_t)managed->clock, 0, selection->run.end);
	return iteration < selection->run.end && psd_period_exchanges(&period, iteration);
}

static void count_travelling(const struct psd_chunk_selection *selection, struct psd_chunk_selection_table *table)
{
	const struct psd_plan *plan = selection->plan;

	for (unsigned i = 0; i < plan->n_items; i++) {
		table->travelling[i] = 0;
		for (uint32_t c = 0; c < plan->items[i].n_chunks; c++)
			if (table->is_chosen[plan->items[i].first_chunk + c])
				table->travelling[i] += range_of(selection, i, c).elements;
	}
}

/* Computes the other fields of an iteration's selection from is_chosen. */
static void complete(const struct psd_chunk_selection *selection, uint32_t iteration)
{
	struct psd_chunk_selection_table *table = psd_chunk_selection_of(selection, iteration);

	count_travelling(selection, table);
	table->digest = psd_hash_bytes(psd_chunk_selection_of(selection, iteration - 1)->digest, table->is_chosen,
				       selection->plan->n_chunks * sizeof(*table->is_chosen));
}

static void choose_all(const struct psd_chunk_selection *selection, struct psd_chunk_selection_table *table)
{
	for (uint32_t c = 0; c < selection->plan->n_chunks; c++)
		table->is_chosen[c] = true;
}

uint32_t psd_chunk_selection_keep(struct psd_chunk_selection *selection)
{
	const uint32_t n = selection->n_tables - 1, n_chunks = selection->plan->n_chunks;

	for (uint32_t i = 0; i < n; i++)
		memcpy(selection->kept + (size_t)i * n_chunks,
		       psd_chunk_selection_of(selection, selection->iteration + 1 - n + i)->is_chosen, n_chunks);
	return n;
}

void psd_chunk_selection_go_on(struct psd_chunk_selection *selection)
{
	const uint8_t *bytes = (const uint8_t *)selection->kept; /* a file may contain any byte */
	const uint32_t first = selection->run.first;

	for (uint32_t i = first; i <= selection->iteration; i++) {
		struct psd_chunk_selection_table *table = psd_chunk_selection_of(selection, i);

		for (uint32_t c = 0; c < selection->plan->n_chunks; c++)
			table->is_chosen[c] = *bytes++ != 0;
		if (ends_clock(selection, i))
			choose_all(selection, table);
		if (i == first)
			count_travelling(selection, table);
		else
			complete(selection, i);
	}
}

static bool take_table(struct psd_chunk_selection_table *table, const struct psd_plan *plan, struct psd_arena *arena)
{
	table->is_chosen = psd_arena_take(arena, plan->n_chunks * sizeof(*table->is_chosen));
	table->travelling = psd_arena_take(arena, plan->n_items * sizeof(*table->travelling));
	return table->is_chosen && table->travelling;
}

/* Chunks to select for the next iteration. */
static uint64_t n_kept(const struct psd_chunk_selection *selection)
{
	return psd_chunks_kept(selection->plan->sparse, selection->plan->n_chunks, (uint64_t)selection->iteration + 1);
}

/* Puts whole chunks before smaller ones; returns the number of whole ones. */
static uint32_t lay_out(struct psd_chunk_selection *selection)
{
	const uint64_t whole_elements = selection->plan->sparse->chunk_elements;
	uint32_t n_whole = 0, n_smaller = 0;

	for (unsigned i = 0; i < selection->plan->n_items; i++)
		for (uint32_t c = 0; c < selection->plan->items[i].n_chunks; c++) {
			const uint32_t chunk = selection->plan->items[i].first_chunk + c;

			if (range_of(selection, i, c).elements == whole_elements)
				selection->order[n_whole++] = chunk;
			else
				selection->order[selection->plan->n_chunks - ++n_smaller] = chunk;
		}
	return n_whole;
}

/* Fills the table for an iteration by turns, which go on from iteration to iteration. A clock's last one has none. */
static void take_turns(struct psd_chunk_selection *selection, struct psd_chunk_selection_table *table,
		       uint64_t iteration, bool is_forward)
{
	const uint64_t n_early = n_kept(selection), n_whole = lay_out(selection);
	const uint64_t n = n_early <= n_whole ? n_whole : selection->plan->n_chunks;
	const uint64_t first = (iteration - iteration / selection->plan->sparse->clock) * n_early;

	for (uint32_t c = 0; c < selection->plan->n_chunks; c++)
		table->is_chosen[c] = false;
	for (uint64_t i = 0; i < n_early; i++) {
		const uint64_t at = (first + i) % n;

		table->is_chosen[selection->order[is_forward ? n - 1 - at : at]] = true;
	}
}

static bool take_tables(struct psd_chunk_selection *selection, struct psd_arena *arena)
{
	const size_t n_chunks = selection->plan->n_chunks;
	bool has_all;

	selection->tables = psd_arena_take(arena, selection->n_tables * sizeof(*selection->tables));
	selection->order = psd_arena_take(arena, n_chunks * sizeof(*selection->order));
	selection->kept = psd_arena_take(arena, (selection->n_tables - 1) * n_chunks * sizeof(*selection->kept));
	has_all = selection->tables && selection->order && selection->kept;
	for (uint32_t i = 0; i < selection->n_tables && has_all; i++)
		has_all = take_table(&selection->tables[i], selection->plan, arena);
	return has_all;
}

enum psd_status psd_chunk_selection_open(struct psd_chunk_selection *selection, const struct psd_plan *plan,
					 struct psd_iterations run, struct psd_arena *arena, struct psd_error *err)
{
	*selection = (struct psd_chunk_selection){
		.plan = plan, .run = run, .iteration = run.first + plan->staleness, .n_tables = 2 + plan->staleness};
	if (!take_tables(selection, arena))
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u chunks", plan->n_chunks);
	for (uint32_t i = run.first; i <= selection->iteration; i++) {
		struct psd_chunk_selection_table *table = psd_chunk_selection_of(selection, i);

		if (plan->managed && !ends_clock(selection, i))
			take_turns(selection, table, i - run.first, false);
		else
			choose_all(selection, table);
		complete(selection, i);
	}
	return PSD_OK;
}

void psd_chunk_selection_prepare(struct psd_chunk_selection *selection, const float norms[])
{
	psd_chunks_choose(next_of(selection)->is_chosen, selection->order, norms, selection->plan->n_chunks,
			  n_kept(selection));
	complete(selection, selection->iteration + 1);
}

/* Shuffles whole and smaller chunks apart, only as far as needed, and takes the first. */
void psd_chunk_selection_draw(struct psd_chunk_selection *selection, uint64_t seed)
{
	const uint32_t n = selection->plan->n_chunks, n_drawn = (uint32_t)n_kept(selection),
		       n_whole = lay_out(selection);
	uint64_t hash = psd_hash_number(psd_hash_number(PSD_HASH_START, seed), selection->iteration);
	bool *is_chosen = next_of(selection)->is_chosen;

	for (uint32_t c = 0; c < n; c++)
		is_chosen[c] = false;
	for (uint32_t i = 0; i < n_drawn; i++) {
		hash = psd_hash_number(hash, i);
		const uint32_t end = i < n_whole ? n_whole : n;
		const uint32_t other = i + (uint32_t)((hash >> 32) % (end - i));
		const uint32_t drawn = selection->order[other];

		selection->order[other] = selection->order[i];
		is_chosen[drawn] = true;
	}
	complete(selection, selection->iteration + 1);
}

void psd_chunk_selection_turn(struct psd_chunk_selection *selection, bool is_forward)
{
	take_turns(selection, next_of(selection), selection->iteration + UINT64_C(1), is_forward);
	complete(selection, selection->iteration + 1);
}

/* Counts the values of an iteration that has ended. */
static void count_sent(struct psd_chunk_selection *selection, const struct psd_chunk_selection_table *table)
{
	uint32_t n_chosen = 0;
	uint64_t sent = 0;

	for (uint32_t c = 0; c < selection->plan->n_chunks; c++)
		n_chosen += table->is_chosen[c];
	for (unsigned i = 0; i < selection->plan->n_items; i++)
		sent += table->travelling[i];
	selection->sent += sent;
	if (n_chosen == selection->plan->n_chunks)
		return;
	selection->sent_early += sent;
	selection->n_early = n_chosen;
}

void psd_chunk_selection_adopt(struct psd_chunk_selection *selection)
{
	const uint32_t next = selection->iteration + 1;

	if (ends_clock(selection, next)) {
		choose_all(selection, next_of(selection));
		complete(selection, next);
	}
	count_sent(selection, psd_chunk_selection_of(selection, next - selection->plan->staleness - 1));
	selection->iteration = next;
}
