/* Open addressing with linear probing, at most half full. */
#include "engine/base/names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"

struct psd_names_slot {
	const char *name; /* NULL: free */
	unsigned number;
};

static uint64_t hash(const char *name)
{
	const uint64_t value = psd_hash_bytes(PSD_HASH_START, name, strlen(name));

	return value ^ value >> 32;
}

/* The slot that holds name, or the free one where it belongs; n_slots is not 0 and one slot is free. */
static struct psd_names_slot *slot_of(const struct psd_names *names, const char *name)
{
	size_t at = (size_t)hash(name) & (names->n_slots - 1);

	while (names->slots[at].name && strcmp(names->slots[at].name, name) != 0)
		at = (at + 1) & (names->n_slots - 1);
	return &names->slots[at];
}

static bool grow(struct psd_names *names)
{
	struct psd_names larger = {.n_slots = names->n_slots ? 2 * names->n_slots : 64, .n_used = names->n_used};

	larger.slots = calloc(larger.n_slots, sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (size_t i = 0; i < names->n_slots; i++)
		if (names->slots[i].name)
			*slot_of(&larger, names->slots[i].name) = names->slots[i];
	free(names->slots);
	*names = larger;
	return true;
}

bool psd_names_put(struct psd_names *names, const char *name, unsigned number)
{
	if (2 * (names->n_used + 1) > names->n_slots && !grow(names))
		return false;
	struct psd_names_slot *slot = slot_of(names, name);
	names->n_used += !slot->name;
	*slot = (struct psd_names_slot){name, number};
	return true;
}

bool psd_names_find(const struct psd_names *names, const char *name, unsigned *number)
{
	const struct psd_names_slot *slot = names->n_slots ? slot_of(names, name) : NULL;

	if (!slot || !slot->name)
		return false;
	*number = slot->number;
	return true;
}

void psd_names_release(struct psd_names *names)
{
	free(names->slots);
	*names = (struct psd_names){0};
}
