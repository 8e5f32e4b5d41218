/* Two tables that take turns. */
#include "real/work/chunk_selection.h"

#include "engine/base/hash.h"
#include "engine/program/chunks.h"

/* Elements that a chunk of the item covers. */
static struct psd_range range_of(const struct psd_chunk_selection *selection, unsigned item, uint32_t chunk)
{
	return psd_chunks_range(selection->plan->sparse, selection->plan->items[item].subject.elements, chunk);
}

uint64_t psd_chunk_selection_elements(const struct psd_chunk_selection *selection, const struct psd_plan *plan,
				      unsigned item)
{
	return selection->plan ? selection->now.travelling[item] : plan->items[item].travelling;
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

/* Computes the other fields from is_chosen. */
static void complete(const struct psd_chunk_selection *selection, struct psd_chunk_selection_table *table)
{
	count_travelling(selection, table);
	table->digest = psd_hash_bytes(selection->now.digest, table->is_chosen,
				       selection->plan->n_chunks * sizeof(*table->is_chosen));
}

static void choose_all(const struct psd_chunk_selection *selection, struct psd_chunk_selection_table *table)
{
	for (uint32_t c = 0; c < selection->plan->n_chunks; c++)
		table->is_chosen[c] = true;
}

void psd_chunk_selection_go_on(struct psd_chunk_selection *selection, uint32_t iteration, bool sends_all)
{
	const uint8_t *bytes = (const uint8_t *)selection->now.is_chosen; /* a file may contain any byte */

	for (uint32_t c = 0; c < selection->plan->n_chunks; c++)
		selection->now.is_chosen[c] = bytes[c] != 0;
	if (sends_all)
		choose_all(selection, &selection->now);
	selection->iteration = iteration;
	count_travelling(selection, &selection->now);
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

enum psd_status psd_chunk_selection_open(struct psd_chunk_selection *selection, const struct psd_plan *plan,
					 struct psd_arena *arena, struct psd_error *err)
{
	*selection = (struct psd_chunk_selection){.plan = plan};
	selection->order = psd_arena_take(arena, plan->n_chunks * sizeof(*selection->order));
	if (!selection->order || !take_table(&selection->now, plan, arena) ||
	    !take_table(&selection->next, plan, arena))
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u chunks", plan->n_chunks);
	if (plan->managed)
		take_turns(selection, &selection->now, 0, false);
	else
		choose_all(selection, &selection->now);
	complete(selection, &selection->now);
	return PSD_OK;
}

void psd_chunk_selection_prepare(struct psd_chunk_selection *selection, const float norms[])
{
	psd_chunks_choose(selection->next.is_chosen, selection->order, norms, selection->plan->n_chunks,
			  n_kept(selection));
	complete(selection, &selection->next);
}

/* Shuffles whole and smaller chunks apart, only as far as needed, and takes the first. */
void psd_chunk_selection_draw(struct psd_chunk_selection *selection, uint64_t seed)
{
	const uint32_t n = selection->plan->n_chunks, n_drawn = (uint32_t)n_kept(selection),
		       n_whole = lay_out(selection);
	uint64_t hash = psd_hash_number(psd_hash_number(PSD_HASH_START, seed), selection->iteration);

	for (uint32_t c = 0; c < n; c++)
		selection->next.is_chosen[c] = false;
	for (uint32_t i = 0; i < n_drawn; i++) {
		hash = psd_hash_number(hash, i);
		const uint32_t end = i < n_whole ? n_whole : n;
		const uint32_t other = i + (uint32_t)((hash >> 32) % (end - i));
		const uint32_t drawn = selection->order[other];

		selection->order[other] = selection->order[i];
		selection->next.is_chosen[drawn] = true;
	}
	complete(selection, &selection->next);
}

void psd_chunk_selection_turn(struct psd_chunk_selection *selection, bool is_forward)
{
	take_turns(selection, &selection->next, selection->iteration + UINT64_C(1), is_forward);
	complete(selection, &selection->next);
}

/* Counts the values of an iteration that has ended. */
static void count_sent(struct psd_chunk_selection *selection)
{
	const struct psd_chunk_selection_table *now = &selection->now;
	uint32_t n_chosen = 0;
	uint64_t sent = 0;

	for (uint32_t c = 0; c < selection->plan->n_chunks; c++)
		n_chosen += now->is_chosen[c];
	for (unsigned i = 0; i < selection->plan->n_items; i++)
		sent += now->travelling[i];
	selection->sent += sent;
	if (n_chosen == selection->plan->n_chunks)
		return;
	selection->sent_early += sent;
	selection->n_early = n_chosen;
}

void psd_chunk_selection_adopt(struct psd_chunk_selection *selection, bool sends_all)
{
	const struct psd_chunk_selection_table before = selection->now;

	if (sends_all) {
		choose_all(selection, &selection->next);
		complete(selection, &selection->next);
	}
	count_sent(selection);
	selection->now = selection->next;
	selection->next = before;
	selection->digest_before = before.digest;
	selection->iteration++;
}
