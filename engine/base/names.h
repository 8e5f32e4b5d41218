/* A hash map from names to numbers, for graphs with many layers. Private to the engine. Names cannot be removed. */
#ifndef PSD_NAMES_H
#define PSD_NAMES_H

#include <stdbool.h>
#include <stddef.h>

struct psd_names {
	struct psd_names_slot *slots; /* table of n_slots slots; n_slots is a power of two */
	size_t n_slots;
	size_t n_used;
}; /* a map of all zeros is valid and empty */

/* Adds a name with its number, or changes the number of a name that is there. The string is borrowed until
 * psd_names_release(). False: out of memory. */
bool psd_names_put(struct psd_names *names, const char *name, unsigned number);
/* Sets *number to the number of the name. Returns false, with *number unchanged, if the name is not in the map. */
bool psd_names_find(const struct psd_names *names, const char *name, unsigned *number);
void psd_names_release(struct psd_names *names);

#endif
