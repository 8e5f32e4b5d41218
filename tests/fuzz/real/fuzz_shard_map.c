/* Any text as what a checkpoint says of how its items are spread over hosts: either every element of every tensor is
 * on some host, and the same text can be made again, or an error with a text. Never a crash, leak or hang. */
#include <stdlib.h>
#include <string.h>

#include "engine/model/graph.h"
#include "real/keep/shard_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_TENSORS = 4 };

/* Elements of a tensor follow each other, in runs, on hosts that there are. */
static void walk(const struct psd_shard_map *shard_map, enum psd_buffer buffer, unsigned tensor)
{
	const uint64_t elements = shard_map->graph->tensors[tensor].elements;
	struct psd_shard_map_run run;

	for (uint64_t e = 0; e < elements; e += run.elements) {
		run = psd_shard_map_find(shard_map, buffer, tensor, e);
		if (run.elements < 1 || run.elements > elements - e || run.host >= psd_layout_hosts(&shard_map->layout))
			abort();
	}
}

static void try_all(const struct psd_shard_map *shard_map)
{
	for (unsigned t = 0; t < N_TENSORS; t++) {
		if (!shard_map->places[t].is_known)
			continue;
		walk(shard_map, PSD_BUFFER_RESIDUAL, t);
		walk(shard_map, PSD_BUFFER_PART, t);
		if (shard_map->block.elements > 0)
			walk(shard_map, PSD_BUFFER_PART_RESIDUAL, t);
	}
}

/* Writes the shard map that was read, and expects the same text. */
static void say_again(const struct psd_shard_map *shard_map)
{
	struct psd_text text = {.bytes = NULL}, again = {.bytes = NULL};
	struct psd_shard_map read;

	psd_shard_map_add(&text, shard_map);
	if (text.is_out_of_memory || psd_shard_map_parse(&read, shard_map->graph, text.bytes, PSD_NOWHERE, NULL))
		abort();
	psd_shard_map_add(&again, &read);
	if (again.is_out_of_memory || strcmp(text.bytes, again.bytes) != 0)
		abort();
	psd_shard_map_release(&read);
	psd_text_release(&text);
	psd_text_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct psd_tensor tensors[N_TENSORS] = {
		{.n_dims = 2, .dims = {71, 15}, .elements = 71 * 15},
		{.n_dims = 1, .dims = {71}, .elements = 71},
		{.n_dims = 2, .dims = {7, 71}, .elements = 7 * 71},
		{.n_dims = 1, .dims = {7}, .elements = 7},
	};
	const struct psd_graph graph = {.tensors = tensors, .n_tensors = N_TENSORS};
	struct psd_shard_map shard_map;
	struct psd_error err = {.status = PSD_OK};
	char *text = malloc(size + 1);

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	if (psd_shard_map_parse(&shard_map, &graph, text, PSD_NOWHERE, &err)) {
		if (err.status == PSD_OK || !err.text[0])
			abort();
	} else {
		try_all(&shard_map);
		say_again(&shard_map);
		psd_shard_map_release(&shard_map);
	}
	free(text);
	return 0;
}
