/* Two tables that take turns. */
#include "real/session/chosen.h"

#include "engine/base/hash.h"
#include "engine/program/chunks.h"

/* Elements that a chunk of the item covers. */
static struct psd_range range_of(const struct psd_chosen *chosen, unsigned item, uint32_t chunk)
{
	return psd_chunks_range(chosen->plan->sparse, chosen->plan->items[item].subject.elements, chunk);
}

uint64_t psd_chosen_elements(const struct psd_chosen *chosen, const struct psd_plan *plan, unsigned item)
{
	return chosen->plan ? chosen->now.travelling[item] : plan->items[item].travelling;
}

static void count_travelling(const struct psd_chosen *chosen, struct psd_chosen_table *table)
{
	const struct psd_plan *plan = chosen->plan;

	for (unsigned i = 0; i < plan->n_items; i++) {
		table->travelling[i] = 0;
		for (uint32_t c = 0; c < plan->items[i].n_chunks; c++)
			if (table->is_chosen[plan->items[i].first_chunk + c])
				table->travelling[i] += range_of(chosen, i, c).elements;
	}
}

/* From is_chosen the rest. */
static void complete(const struct psd_chosen *chosen, struct psd_chosen_table *table)
{
	count_travelling(chosen, table);
	table->digest = psd_hash_bytes(chosen->now.digest, table->is_chosen,
				       chosen->plan->n_chunks * sizeof(*table->is_chosen));
}

void psd_chosen_go_on(struct psd_chosen *chosen, uint32_t iteration)
{
	const uint8_t *bytes = (const uint8_t *)chosen->now.is_chosen; /* a file may have any in them */

	for (uint32_t c = 0; c < chosen->plan->n_chunks; c++)
		chosen->now.is_chosen[c] = bytes[c] != 0;
	chosen->iteration = iteration;
	count_travelling(chosen, &chosen->now);
}

static bool take_table(struct psd_chosen_table *table, const struct psd_plan *plan, struct psd_arena *arena)
{
	table->is_chosen = psd_arena_take(arena, plan->n_chunks * sizeof(*table->is_chosen));
	table->travelling = psd_arena_take(arena, plan->n_items * sizeof(*table->travelling));
	return table->is_chosen && table->travelling;
}

enum psd_status psd_chosen_open(struct psd_chosen *chosen, const struct psd_plan *plan, struct psd_arena *arena,
				struct psd_error *err)
{
	*chosen = (struct psd_chosen){.plan = plan};
	chosen->order = psd_arena_take(arena, plan->n_chunks * sizeof(*chosen->order));
	if (!chosen->order || !take_table(&chosen->now, plan, arena) || !take_table(&chosen->next, plan, arena))
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u chunks", plan->n_chunks);
	for (uint32_t c = 0; c < plan->n_chunks; c++)
		chosen->now.is_chosen[c] = true;
	complete(chosen, &chosen->now);
	return PSD_OK;
}

/* Of the chunks, in the iteration after the one that the choice holds for. */
static uint64_t n_kept(const struct psd_chosen *chosen)
{
	return psd_chunks_kept(chosen->plan->sparse, chosen->plan->n_chunks, (uint64_t)chosen->iteration + 1);
}

void psd_chosen_prepare(struct psd_chosen *chosen, const float norms[])
{
	psd_chunks_choose(chosen->next.is_chosen, chosen->order, norms, chosen->plan->n_chunks, n_kept(chosen));
	complete(chosen, &chosen->next);
}

/* Whole chunks before smaller ones; returns how many are whole. */
static uint32_t lay_out(struct psd_chosen *chosen)
{
	const uint64_t whole_elements = chosen->plan->sparse->chunk_elements;
	uint32_t n_whole = 0, n_smaller = 0;

	for (unsigned i = 0; i < chosen->plan->n_items; i++)
		for (uint32_t c = 0; c < chosen->plan->items[i].n_chunks; c++) {
			const uint32_t chunk = chosen->plan->items[i].first_chunk + c;

			if (range_of(chosen, i, c).elements == whole_elements)
				chosen->order[n_whole++] = chunk;
			else
				chosen->order[chosen->plan->n_chunks - ++n_smaller] = chunk;
		}
	return n_whole;
}

/* The first of a deck, in which whole chunks and smaller ones are shuffled apart; no more of it is shuffled. */
void psd_chosen_draw(struct psd_chosen *chosen, uint64_t seed)
{
	const uint32_t n = chosen->plan->n_chunks, n_drawn = (uint32_t)n_kept(chosen), n_whole = lay_out(chosen);
	uint64_t hash = psd_hash_number(psd_hash_number(PSD_HASH_START, seed), chosen->iteration);

	for (uint32_t c = 0; c < n; c++)
		chosen->next.is_chosen[c] = false;
	for (uint32_t i = 0; i < n_drawn; i++) {
		hash = psd_hash_number(hash, i);
		const uint32_t end = i < n_whole ? n_whole : n;
		const uint32_t other = i + (uint32_t)((hash >> 32) % (end - i));
		const uint32_t drawn = chosen->order[other];

		chosen->order[other] = chosen->order[i];
		chosen->next.is_chosen[drawn] = true;
	}
	complete(chosen, &chosen->next);
}

void psd_chosen_adopt(struct psd_chosen *chosen)
{
	const struct psd_chosen_table before = chosen->now;

	chosen->now = chosen->next;
	chosen->next = before;
	chosen->digest_before = before.digest;
	chosen->iteration++;
}
