/* One structure for both directions: from a plan, and from a checkpoint. */
#include "real/keep/shard_map.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "engine/encodings/low_rank.h"
#include "engine/scenario/scenario.h"

enum { MOST_KINDS = 2 * PSD_MAX_GROUPS };

/* ---- from a plan ---- */

static enum psd_status out_of_memory(struct psd_shard_map *shard_map, struct psd_error *err)
{
	psd_shard_map_release(shard_map);
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a checkpoint");
}

/* Zeroed memory; at least one byte, so that NULL is a failure. */
static void *take(struct psd_shard_map *shard_map, size_t n, size_t bytes)
{
	return psd_arena_take(&shard_map->arena, (n + 1) * bytes);
}

/* Computes an item's sizes and its tensors' positions. */
static void lay_out(struct psd_shard_map *shard_map, unsigned i)
{
	struct psd_shard_map_item *item = &shard_map->items[i];
	uint64_t first_right = 0;

	item->elements = item->n_blocks = 0;
	for (unsigned n = 0; n < item->n_tensors; n++) {
		const struct psd_tensor *tensor = &shard_map->graph->tensors[item->tensors[n]];

		shard_map->places[item->tensors[n]] =
			(struct psd_shard_map_place){true, i, item->elements, item->n_blocks, first_right};
		item->elements += tensor->elements;
		if (shard_map->block.elements)
			item->n_blocks += psd_block_count(&shard_map->block, tensor->elements);
		if (shard_map->rank)
			first_right += psd_low_rank_right(tensor, shard_map->rank);
	}
}

static bool take_item(struct psd_shard_map *shard_map, const struct psd_plan *plan, const struct psd_plan_item *item)
{
	struct psd_shard_map_item *made = &shard_map->items[shard_map->n_items];

	*made = (struct psd_shard_map_item){.tensors = take(shard_map, item->n_tensors, sizeof(*made->tensors)),
					    .n_tensors = item->n_tensors,
					    .n_slices = item->n_slices,
					    .has_root = item->method->has_root,
					    .root = item->root,
					    .updates = item->method->updates};
	for (unsigned n = 0; made->tensors && n < item->n_tensors; n++)
		made->tensors[n] = psd_plan_tensor(plan, item, n);
	return made->tensors;
}

/* A map outlives its plan, and is read from a text. Kinds that are alike in their workers do not matter. */
static bool keep_kinds(struct psd_shard_map *shard_map, const struct psd_kind_of_nodes kinds[], unsigned n_kinds)
{
	struct psd_kind_of_nodes *kept = take(shard_map, n_kinds, sizeof(*kept));

	for (unsigned k = 0; kept && k < n_kinds; k++)
		kept[k] = kinds[k];
	shard_map->layout.kinds = NULL;
	shard_map->layout.n_kinds = 0;
	if (kept && n_kinds > 0)
		psd_layout_set_kinds(&shard_map->layout, kept, n_kinds);
	return kept;
}

enum psd_status psd_shard_map_make(struct psd_shard_map *shard_map, const struct psd_plan *plan, struct psd_error *err)
{
	*shard_map = (struct psd_shard_map){
		.graph = plan->graph,
		.layout = plan->layout,
		.rank = plan->low_rank,
		.is_local = plan->local,
		.is_adaptive = plan->is_adaptive,
	};
	if (plan->compress)
		shard_map->block = plan->block;
	shard_map->items = take(shard_map, plan->n_items, sizeof(*shard_map->items));
	shard_map->places = take(shard_map, plan->graph->n_tensors, sizeof(*shard_map->places));
	if (!shard_map->items || !shard_map->places ||
	    !keep_kinds(shard_map, plan->layout.kinds, plan->layout.is_uneven ? plan->layout.n_kinds : 0))
		return out_of_memory(shard_map, err);
	for (unsigned i = 0; i < plan->n_items; i++) {
		if (plan->items[i].n_tensors ==
		    0) /* the norms of chunks; last, so that numbers are those of the plan */
			continue;
		if (!take_item(shard_map, plan, &plan->items[i]))
			return out_of_memory(shard_map, err);
		lay_out(shard_map, shard_map->n_items++);
	}
	return PSD_OK;
}

void psd_shard_map_release(struct psd_shard_map *shard_map)
{
	psd_arena_release(&shard_map->arena);
	*shard_map = (struct psd_shard_map){.graph = NULL};
}

/* ---- text ---- */

static unsigned servers_of(const struct psd_layout *layout)
{
	return layout->has_separate_servers ? layout->shards : 0;
}

void psd_shard_map_add(struct psd_text *text, const struct psd_shard_map *shard_map)
{
	const struct psd_layout *layout = &shard_map->layout;

	psd_text_add(text, "workers %u, on a node %u", layout->workers, layout->workers_per_node);
	for (unsigned k = 0, first = 0; layout->is_uneven && k < layout->n_kinds; first = layout->kinds[k++].end_node)
		psd_text_add(text, "%c%ux%u", k > 0 ? '+' : '=', layout->kinds[k].end_node - first,
			     layout->kinds[k].workers);
	psd_text_add(text, ", servers %u, block %u, rank %u, local %u, adaptive %u:", servers_of(layout),
		     shard_map->block.elements, shard_map->rank, shard_map->is_local, shard_map->is_adaptive);
	for (unsigned i = 0; i < shard_map->n_items; i++) {
		const struct psd_shard_map_item *item = &shard_map->items[i];

		for (unsigned n = 0; n < item->n_tensors; n++)
			psd_text_add(text, "%c%u", n > 0 ? ',' : ' ', item->tensors[n]);
		psd_text_add(text, "/%u", item->n_slices);
		if (item->has_root)
			psd_text_add(text, "@%u", item->root);
		if (item->updates != PSD_OWNER_ALL)
			psd_text_add(text, item->updates == PSD_OWNER_WORKERS ? "*" : "+");
	}
}

/* Rest of a text. */
struct reader {
	const char *next;
	bool is_wrong;
};

static void skip(struct reader *reader, const char *word)
{
	const size_t length = strlen(word);

	reader->is_wrong = reader->is_wrong || strncmp(reader->next, word, length) != 0;
	if (!reader->is_wrong)
		reader->next += length;
}

static bool takes(struct reader *reader, char letter)
{
	const bool is_there = !reader->is_wrong && *reader->next == letter;

	reader->next += is_there;
	return is_there;
}

static unsigned read_number(struct reader *reader, unsigned least, unsigned most)
{
	uint64_t value = 0;
	const char *begin = reader->next;

	while (!reader->is_wrong && isdigit((unsigned char)*reader->next) && value <= most)
		value = 10 * value + (uint64_t)(*reader->next++ - '0');
	reader->is_wrong = reader->is_wrong || reader->next == begin || value < least || value > most;
	return reader->is_wrong ? least : (unsigned)value;
}

/* "=4x2+8x1": numbers of nodes and of the workers on each. Returns the number of kinds. */
static unsigned read_kinds(struct psd_kind_of_nodes kinds[static MOST_KINDS], struct reader *reader)
{
	unsigned n_kinds = 0;

	for (char before = '='; n_kinds < MOST_KINDS && takes(reader, before); before = '+') {
		const struct psd_kind_of_nodes last =
			n_kinds > 0 ? kinds[n_kinds - 1] : (struct psd_kind_of_nodes){.end_node = 0};
		const unsigned n_nodes = read_number(reader, 1, PSD_MAX_HOSTS);

		skip(reader, "x");
		const unsigned n_workers = read_number(reader, 1, PSD_MAX_HOSTS / n_nodes);

		kinds[n_kinds++] = (struct psd_kind_of_nodes){.end_node = last.end_node + n_nodes,
							      .end_worker = last.end_worker + n_nodes * n_workers,
							      .workers = n_workers,
							      .link_ratio = 1.0};
	}
	return n_kinds;
}

static void read_head(struct psd_shard_map *shard_map, struct reader *reader)
{
	struct psd_kind_of_nodes kinds[MOST_KINDS];
	unsigned workers, per_node, servers, n_kinds;

	skip(reader, "workers ");
	workers = read_number(reader, 1, PSD_MAX_HOSTS);
	skip(reader, ", on a node ");
	per_node = read_number(reader, 1, PSD_MAX_HOSTS);
	n_kinds = read_kinds(kinds, reader);
	skip(reader, ", servers ");
	servers = read_number(reader, 0, PSD_MAX_HOSTS);
	skip(reader, ", block ");
	shard_map->block.elements = read_number(reader, 0, PSD_BLOCK_MAX);
	skip(reader, ", rank ");
	shard_map->rank = read_number(reader, 0, PSD_MOST_RANK);
	skip(reader, ", local ");
	shard_map->is_local = read_number(reader, 0, 1);
	skip(reader, ", adaptive ");
	shard_map->is_adaptive = read_number(reader, 0, 1);
	skip(reader, ":");
	reader->is_wrong = reader->is_wrong || (n_kinds > 0 && kinds[n_kinds - 1].end_worker != workers);
	shard_map->layout = psd_layout_make(workers, per_node, servers);
	if (!reader->is_wrong && !keep_kinds(shard_map, kinds, n_kinds))
		reader->is_wrong = true;
}

/* A tensor is in one item at most, which limits items and tensors. */
static void read_tensor(struct psd_shard_map *shard_map, struct psd_shard_map_item *item, struct reader *reader)
{
	const unsigned n_tensors = shard_map->graph->n_tensors, t = read_number(reader, 0, n_tensors);

	reader->is_wrong = reader->is_wrong || t == n_tensors || shard_map->places[t].is_known;
	if (reader->is_wrong)
		return;
	shard_map->places[t].is_known = true;
	item->tensors[item->n_tensors++] = t;
}

/* room: for tensors, behind those of earlier items. */
static void read_item(struct psd_shard_map *shard_map, unsigned **room, struct reader *reader)
{
	struct psd_shard_map_item item = {.tensors = *room};

	do
		read_tensor(shard_map, &item, reader);
	while (takes(reader, ','));
	skip(reader, "/");
	item.n_slices = read_number(reader, 1, UINT32_MAX);
	item.has_root = takes(reader, '@');
	if (item.has_root)
		item.root = read_number(reader, 0, psd_layout_hosts(&shard_map->layout) - 1);
	item.updates = takes(reader, '*') ? PSD_OWNER_WORKERS : takes(reader, '+') ? PSD_OWNER_MEMBERS : PSD_OWNER_ALL;
	if (reader->is_wrong)
		return;
	*room += item.n_tensors;
	shard_map->items[shard_map->n_items] = item;
	lay_out(shard_map, shard_map->n_items++);
}

enum psd_status psd_shard_map_parse(struct psd_shard_map *shard_map, const struct psd_graph *graph, const char *text,
				    struct psd_place at, struct psd_error *err)
{
	struct reader reader = {.next = text};
	unsigned *room;

	*shard_map = (struct psd_shard_map){.graph = graph};
	shard_map->items = take(shard_map, graph->n_tensors, sizeof(*shard_map->items));
	shard_map->places = take(shard_map, graph->n_tensors, sizeof(*shard_map->places));
	room = take(shard_map, graph->n_tensors, sizeof(*room));
	if (!shard_map->items || !shard_map->places || !room)
		return out_of_memory(shard_map, err);
	read_head(shard_map, &reader);
	while (takes(&reader, ' '))
		read_item(shard_map, &room, &reader);
	if (!reader.is_wrong && !*reader.next)
		return PSD_OK;
	psd_shard_map_release(shard_map);
	return psd_error_set(err, PSD_EINVAL, at, "the shard map ('spread') is damaged at '%.40s'", reader.next);
}

/* ---- elements ---- */

/* Finds the one of n equal parts that has the element. */
static unsigned find_part(uint64_t elements, unsigned n, uint64_t element)
{
	unsigned least = 0, most = n - 1;

	while (least < most) {
		const unsigned middle = least + (most - least) / 2;
		const struct psd_range part = psd_range_part(elements, n, middle);

		if (part.first + part.elements > element)
			most = middle;
		else
			least = middle + 1;
	}
	return least;
}

/* The slice with an element; slices below `rest` have one element more. As psd_plan_slice(). */
static struct psd_shard_map_run find_in_slices(const struct psd_shard_map *shard_map,
					       const struct psd_shard_map_item *item, enum psd_owner owner,
					       uint64_t element)
{
	const unsigned n = psd_layout_parts(&shard_map->layout, owner);
	const uint64_t small = item->elements / item->n_slices, rest = item->elements % item->n_slices;
	const bool is_large = element < rest * (small + 1);
	const uint64_t elements = is_large ? small + 1 : small; /* in the slice */
	const uint64_t behind = is_large ? element : element - rest * (small + 1);
	const uint64_t larger_before = is_large ? behind / elements : rest;
	const uint64_t smaller_before = is_large ? 0 : behind / elements;
	const uint64_t inside = behind % elements;
	const unsigned p = find_part(elements, n, inside);
	const struct psd_range part = psd_range_part(elements, n, p);

	return (struct psd_shard_map_run){
		.is_divided = true,
		.host = psd_layout_part_host(&shard_map->layout, owner, p),
		.apart = owner == PSD_OWNER_MEMBERS ? n : 0,
		.first = larger_before * psd_range_part(small + 1, n, p).elements +
			 smaller_before * psd_range_part(small, n, p).elements + (inside - part.first),
		.elements = part.first + part.elements - inside,
	};
}

/* Whole blocks are contiguous; a tensor's last block may be shorter and ends its run. */
static struct psd_shard_map_run find_in_blocks(const struct psd_shard_map *shard_map,
					       const struct psd_shard_map_item *item, enum psd_owner owner,
					       const struct psd_shard_map_place *place, uint64_t element)
{
	const unsigned n = psd_layout_parts(&shard_map->layout, owner);
	const uint64_t block = place->first_block + element / shard_map->block.elements;
	const unsigned p = find_part(item->n_blocks, n, block);
	const struct psd_range part = psd_range_part(item->n_blocks, n, p);
	const uint64_t inside = element % shard_map->block.elements;

	return (struct psd_shard_map_run){
		.is_divided = true,
		.host = psd_layout_part_host(&shard_map->layout, owner, p),
		.first = (block - part.first) * shard_map->block.elements + inside,
		.elements = (part.first + part.elements - block) * shard_map->block.elements - inside,
	};
}

static struct psd_shard_map_run find_in_item(const struct psd_shard_map *shard_map, enum psd_buffer buffer,
					     unsigned tensor, uint64_t element)
{
	const struct psd_shard_map_place *place = &shard_map->places[tensor];
	const struct psd_shard_map_item *item = &shard_map->items[place->item];

	const struct psd_buffer_row *row = &psd_buffers[buffer];
	const enum psd_owner owner = row->is_of_updates ? item->updates : row->owner;

	if (row->content == PSD_CONTENT_BLOCK_ELEMENTS)
		return find_in_blocks(shard_map, item, owner, place, element);
	assert(row->content == PSD_CONTENT_ELEMENTS);
	if (owner == PSD_OWNER_SHARDS || owner == PSD_OWNER_WORKERS || owner == PSD_OWNER_MEMBERS)
		return find_in_slices(shard_map, item, owner, place->first + element);
	return (struct psd_shard_map_run){.first = place->first + element, .elements = UINT64_MAX};
}

struct psd_shard_map_run psd_shard_map_find(const struct psd_shard_map *shard_map, enum psd_buffer buffer,
					    unsigned tensor, uint64_t element)
{
	const uint64_t left = shard_map->graph->tensors[tensor].elements - element;
	struct psd_shard_map_run run = find_in_item(shard_map, buffer, tensor, element);

	run.elements = run.elements < left ? run.elements : left;
	return run;
}
