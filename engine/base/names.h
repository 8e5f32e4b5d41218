/* A hash map from names to numbers, for graphs of many layers. Private to the engine. Refuses to delete. */
#ifndef PSD_NAMES_H
#define PSD_NAMES_H

#include <stdbool.h>
#include <stddef.h>

struct psd_names {
	struct psd_names_slot *slots; /* table of slots, whose number is a power of two */
	size_t n_slots;
	size_t n_used;
}; /* a map of all zeros is valid and empty */

/* Binds name (borrowed until release) to number, replacing an older binding. False: out of memory. */
bool psd_names_put(struct psd_names *names, const char *name, unsigned number);
/* Finds the number that name is bound to. Returns false, with *number unchanged, if there is none. */
bool psd_names_find(const struct psd_names *names, const char *name, unsigned *number);
void psd_names_release(struct psd_names *names);

#endif
